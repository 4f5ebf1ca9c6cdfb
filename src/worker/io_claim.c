/* What the I/O thread claims, and how claimed jobs reach the slots. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "command/command.h"
#include "model/retry.h"
#include "worker/io.h"

#define AHEAD_US 4000 /* of work a slot may have claimed ahead */

/* How many jobs may be claimed beyond free slots: a few ms of work, as measured. */
static size_t
ahead_limit(const struct wr_io *io)
{
    int64_t us = atomic_load_explicit(&io->runner->ewma_us, memory_order_relaxed);
    int64_t each;

    if (us < 0 || us > AHEAD_US / 2)
        return 0;
    each = AHEAD_US / (us < 1 ? 1 : us);
    each *= (int64_t)(io->runner->slots - io->long_n);
    return each < WR_AHEAD_MAX ? (size_t)each : WR_AHEAD_MAX;
}

int64_t
wr_io_jobs_left(const struct wr_io *io)
{
    return io->w->jobs_left ? atomic_load(io->w->jobs_left) : INT64_MAX;
}

static bool
may_run(const struct wr_io *io)
{
    return io->state == WR_IO_RUN && !atomic_load(&io->w->shared->quiet) &&
           !wr_lease_is_away(io->o->lease);
}

bool
wr_io_may_claim(const struct wr_io *io)
{
    return may_run(io) && !io->alone && !io->alone_runs && !io->knows_nothing;
}

/* With reserved slots a job that waits for a slot might get one of these. */
static size_t
ahead_free(const struct wr_io *io, size_t out)
{
    size_t slots = io->runner->slots, ahead = io->w->reserved > 0 ? 0 : ahead_limit(io);
    size_t total = out < slots + ahead ? slots + ahead - out : 0;

    /* A batch that is worth the call, once the slots are busy. */
    return out >= slots && total < ahead / 4 ? 0 : total;
}

void
wr_io_want(const struct wr_io *io, const struct wr_line *l, size_t ending,
           struct wr_reserve *r)
{
    size_t slots = io->runner->slots, free, total;
    size_t out = io->outstanding + io->doubt - (l ? l->doubt : 0) - ending;
    int64_t limit = wr_io_jobs_left(io);

    r->free = r->ahead = 0;
    r->keep_ms = io->w->keep_result_ms;
    r->types = io->types.len > 0 ? io->types.ptr : NULL;
    if (!wr_io_may_claim(io) || limit <= 0 || (l && wr_clock_ms() < l->look_ms))
        return;
    free = l ? wr_io_free_for(io, l, ending) : out < slots ? slots - out : 0;
    total = ahead_free(io, out);
    if (io->w->reserved > 0 || (io->w->strict && free == 0))
        total = free;
    if (limit < (int64_t)total)
        total = (size_t)limit;
    if (l && l->quota < total)
        total = l->quota;
    total = total < WR_IO_CALL_MAX ? total : WR_IO_CALL_MAX;
    r->free = free < total ? free : total;
    r->ahead = total - r->free;
}

static struct wr_handler *
find_handler(const struct weir_worker *w, const char *type)
{
    struct wr_handler *any = NULL;

    for (struct wr_handler *h = w->handlers; h; h = h->next) {
        if (strcmp(h->type, type) == 0)
            return h;
        if (strcmp(h->type, "*") == 0)
            any = h;
    }
    /* Jobs that bring their command are for those who say which they run. */
    return strcmp(type, WR_COMMAND_TYPE) == 0 ? NULL : any;
}

/* What the job does not say itself, the worker may. */
static void
fill_settings(const struct weir_worker *w, struct wr_record *record)
{
    if (w->job_timeout_ms != 0 && record->timeout_ms == WR_TIMEOUT_DEFAULT_MS)
        record->timeout_ms = w->job_timeout_ms == WEIR_NONE ? 0 : w->job_timeout_ms;
    if (record->keep_ms == 0)
        record->keep_ms = w->keep_result_ms; /* as the reserve was told */
}

static void
fill_run(struct wr_io *io, struct wr_run *run, struct wr_line *line,
         const struct wr_delivery *d, struct wr_batch_ref *ref, int64_t sent_ms)
{
    int64_t lease = io->w->lease_ms;

    run->queue = line->queue;
    run->ref = ref;
    ref->refs++;
    run->claimed_ms = wr_clock_ms(); /* an offer may have stood for seconds */
    run->stopped_ms = 0;
    run->took_ms = -1;
    run->facts[0] = '\0';
    run->answered = run->alone = false;
    run->reason = "failed";
    atomic_store(&run->fence_ms, sent_ms + lease - wr_lease_margin_ms(lease));
    atomic_store(&run->d.stop, WR_STOP_NONE);
    wr_buf_clear(&run->d.result);
    wr_buf_clear(&run->d.follow);
    run->d.follow_n = 0;
    run->d.queue = wr_queue_name(line->queue);
    run->d.id = d->id.ptr;
    run->d.worker = io->o->page->worker;
    run->d.record_bytes = d->record;
    run->d.state = d->state;
    run->d.context = io->o->context;
    run->d.hooks = &io->w->hooks;
    atomic_store(&run->d.in_hook, false);
    run->d.sender = io->o->sender;
    run->d.handed_out_ms = run->claimed_ms; /* what is printed counts from here */
    run->d.error[0] = '\0';
    run->d.delay_ms = -1;
    run->d.max_snoozes = 0;
    run->d.not_taken = run->d.has_exec = false;
    run->d.last_error[0] = '\0';
    run->d.name_space = io->w->ns;
    atomic_store(&run->d.limit_ms, 0);
    run->d.progress_new = false;
    run->d.mu = &io->runner->mu;
    run->handler = NULL;
    run->d.type = "";
    if (wr_record_read(d->record, &run->d.record, &run->version)) {
        run->d.type = run->d.record.type.ptr;
        run->handler = find_handler(io->w, run->d.type);
        fill_settings(io->w, &run->d.record);
    }
    atomic_store(&run->d.kill_after_ms, run->d.record.kill_after_ms);
}

/* What took a worker with it runs alone, so that only it can do it again. Beside handlers
 * that can take the worker with them, so does what the next loss would kill, whosever
 * fault that is. */
static bool
must_be_alone(const struct wr_io *io, const struct wr_run *run)
{
    int64_t lost = run->d.state.lost, max = run->d.record.max_deliveries;

    if (!run->handler)
        return false;
    if ((run->handler->ops->in_process || io->w->hooks.start || io->w->hooks.end) &&
        lost > 0)
        return true;
    return io->w->has_in_process && max > 0 && lost + 1 >= max;
}

/* False: it is to be handed to a thread. */
static bool
put_aside(struct wr_io *io, struct wr_line *line, struct wr_run *run)
{
    if (!may_run(io)) { /* the late answer of a call: not wanted any more */
        wr_runner_hold(io->runner, run);
        wr_io_put_answer(line, WR_VERDICT_RELEASE, run);
    } else if (io->alone || io->alone_runs || must_be_alone(io, run)) {
        /* Also what a call of before brings meanwhile keeps away from such a one. */
        run->alone = true;
        wr_runner_hold(io->runner, run);
        run->next = NULL;
        *io->alone_last = run;
        io->alone_last = &run->next;
        io->alone_n++;
    } else {
        return false;
    }
    return true;
}

void
wr_io_admit(struct wr_io *io, struct wr_line *line, struct wr_batch *batch,
            int64_t sent_ms)
{
    struct wr_batch_ref *ref = batch->n > 0 ? calloc(1, sizeof(*ref)) : NULL;
    struct wr_run *list = NULL, **last = &list;
    size_t n = 0;

    if (batch->n == 0 || !ref) {
        /* Without memory they are not run: their leases lapse and others get them. */
        wr_batch_fini(batch);
        return;
    }
    ref->batch = *batch;
    ref->refs = 1;
    io->lead.lonely = batch->n == 1 && io->outstanding == 0 ? io->lead.lonely + 1 : 0;
    for (size_t i = 0; i < ref->batch.n; i++) {
        struct wr_run *run = wr_runner_new_run(io->runner);

        if (!run)
            break; /* more than was asked for: lapses as well */
        fill_run(io, run, line, &ref->batch.jobs[i], ref, sent_ms);
        io->outstanding++;
        line->outstanding++;
        if (put_aside(io, line, run))
            continue;
        run->next = NULL;
        *last = run;
        last = &run->next;
        n++;
    }
    wr_io_recall(io, list);
    wr_runner_submit(io->runner, list, n, wr_io_slot_leads(io));
    if (--ref->refs == 0) {
        wr_batch_fini(&ref->batch);
        free(ref);
    }
}

static struct wr_run *
take_alone(struct wr_io *io, struct wr_run **at)
{
    struct wr_run *run = *at;

    *at = run->next;
    if (!*at)
        io->alone_last = at;
    io->alone_n--;
    return run;
}

/* Those that must run alone: one at a time, when all others have ended. */
void
wr_io_start_alone(struct wr_io *io)
{
    for (struct wr_run **at = &io->alone; *at;) {
        if (atomic_load(&(*at)->d.stop) == WR_STOP_NONE) {
            at = &(*at)->next;
            continue;
        }
        struct wr_run *run = take_alone(io, at); /* cancelled or lost while it waited */

        wr_io_put_answer(wr_io_line_of(io, run->queue), wr_judge(run), run);
    }
    if (io->alone && !io->alone_runs && io->outstanding == io->alone_n) {
        io->alone_runs = take_alone(io, &io->alone);
        io->alone_runs->next = NULL;
        wr_runner_submit(io->runner, io->alone_runs, 1, wr_io_slot_leads(io));
    }
    wr_io_note_alone(io);
}

void
wr_io_release_alone(struct wr_io *io)
{
    while (io->alone) {
        struct wr_run *run = take_alone(io, &io->alone);

        wr_io_put_answer(wr_io_line_of(io, run->queue), WR_VERDICT_RELEASE, run);
    }
}
