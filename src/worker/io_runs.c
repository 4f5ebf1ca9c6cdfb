/* What the I/O thread looks after while jobs run: their timeouts, their progress. */
#include <stdio.h>

#include "base/log.h"
#include "worker/io.h"

#define CHECK_MS 5         /* between looks at all runs */
#define RECALL_MS 20       /* short jobs that wait so long stand behind a long one */
#define AHEAD_WAIT_MS 2000 /* a job claimed ahead waits no longer */
#define ALL_LONG_MS 100    /* nor this, when every slot has a long job */
#define PROGRESS_MS 500
#define ALONE_SAY_MS 3000 /* a job that runs alone and is over sooner is no news */
#define STOP_AGAIN_MS 500 /* a stop that came before its command had started */

/* A C handler that ignores its timeout: its job gets its answer, the others get the grace
 * time, then this process ends, for a thread cannot be ended alone. */
static void
abandon(struct wr_io *io, struct wr_run *run)
{
    int running = WR_RUN_RUNNING;

    if (!atomic_compare_exchange_strong(&run->phase, &running, WR_RUN_ABANDONED))
        return; /* it has just ended */
    wr_log_error("job %s ignores its timeout: its handler hangs, this child is replaced",
                 run->d.id);
    wr_io_put_answer(wr_io_line_of(io, run->queue),
                     wr_judge_given_up(run, WR_STOP_TIMEOUT), run);
    io->replace = true;
}

/* Claimed, and not answered: io->outstanding of them. Few of all runs that there may be,
 * and as a rule they stand first: a walk ends behind the last of them, since through the
 * memory of the others it takes longer than the answer that somebody waits for. */
static bool
is_out(const struct wr_run *run)
{
    return run->in_use && !run->answered;
}

/* A slot with a long job takes no part in claiming ahead. */
void
wr_io_count_long(struct wr_io *io, int64_t now)
{
    struct wr_runner *r = io->runner;

    if (now < io->counted_ms + CHECK_MS)
        return;
    io->counted_ms = now;
    io->long_n = 0;
    for (size_t i = 0, seen = 0; i < r->n && seen < io->outstanding; i++) {
        const struct wr_run *run = &r->runs[i];

        if (!is_out(run))
            continue;
        seen++;
        if (atomic_load_explicit(&run->phase, memory_order_acquire) == WR_RUN_RUNNING &&
            now - run->d.started_ms > RECALL_MS)
            io->long_n++;
    }
    if (io->long_n > r->slots)
        io->long_n = r->slots;
}

static void
say_alone(const struct wr_io *io, const struct wr_run *run)
{
    size_t others = io->outstanding - io->alone_n;

    if (run == io->alone_runs)
        wr_log_warn(
            "job %s runs alone, for a worker was lost with it: this child takes no "
            "others until it is over",
            run->d.id);
    else
        wr_log_warn(
            "job %s will run alone, for a worker was lost with it: this child takes "
            "no others, and waits for the end of %zu",
            run->d.id, others);
}

void
wr_io_note_alone(struct wr_io *io)
{
    const struct wr_run *run = io->alone_runs ? io->alone_runs : io->alone;
    struct wr_alone_note *n = &io->alone_note;
    bool runs = io->alone_runs != NULL;

    if ((!run && !n->run) || io->runner->slots < 2)
        return; /* nothing, or nothing that it could keep away */
    if (run != n->run || runs != n->runs || run->claimed_ms != n->claimed_ms) {
        *n = (struct wr_alone_note){.run = run,
                                    .claimed_ms = run ? run->claimed_ms : 0,
                                    .since_ms = wr_clock_ms(),
                                    .runs = runs};
        atomic_store(&io->o->page->alone, run ? 1 + (int)run->page_slot : 0);
    } else if (!n->said && wr_clock_ms() - n->since_ms >= ALONE_SAY_MS) {
        n->said = true;
        say_alone(io, run);
    }
}

/* One that runs: its timeout, and a stop that came too early. Answers when to look
 * again. */
static int64_t
check_running(struct wr_io *io, struct wr_run *run, int64_t now, bool again)
{
    enum wr_stop stop = (enum wr_stop)atomic_load(&run->d.stop);
    int64_t stop_at = atomic_load(&run->d.stop_at_ms), next = INT64_MAX;
    int64_t kill_at = stop_at + run->d.record.kill_after_ms;

    if (stop_at != 0 && now >= stop_at && stop == WR_STOP_NONE)
        wr_run_stop(run, WR_STOP_TIMEOUT);
    else if (stop != WR_STOP_NONE && again)
        wr_run_stop(run, stop);
    if (stop_at != 0 && now >= kill_at)
        abandon(io, run);
    else if (stop_at != 0)
        next = now < stop_at ? stop_at : kill_at;
    if (stop != WR_STOP_NONE && io->stop_again_ms < next)
        next = io->stop_again_ms;
    return next;
}

/* Timeouts of C handlers, stops that came too early, jobs that wait too long. Answers
 * when to look again. */
int64_t
wr_io_check_runs(struct wr_io *io, int64_t now)
{
    struct wr_runner *r = io->runner;
    int64_t next = now + 60000;
    bool late = false, stuck = false, waits = false, again = now >= io->stop_again_ms;

    if (io->outstanding == 0)
        return next;
    if (now < io->checked_ms + CHECK_MS)
        return now + CHECK_MS;
    io->checked_ms = now;
    wr_io_count_long(io, now);
    if (again)
        io->stop_again_ms = now + STOP_AGAIN_MS;
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0, seen = 0; i < r->n && seen < io->outstanding; i++) {
        struct wr_run *run = &r->runs[i];
        int64_t at;

        if (!is_out(run))
            continue;
        seen++;
        if (run->phase == WR_RUN_WAITING && !run->alone) {
            waits = true;
            stuck = stuck || now - run->claimed_ms > RECALL_MS;
            late = late || now - run->claimed_ms >
                               (io->long_n >= r->slots ? ALL_LONG_MS : AHEAD_WAIT_MS);
        }
        if (run->phase != WR_RUN_RUNNING)
            continue;
        at = check_running(io, run, now, again);
        next = at < next ? at : next;
    }
    pthread_mutex_unlock(&r->mu);
    if (late)
        wr_io_release_waiting(io);
    else if (stuck)
        wr_runner_recall(r);
    if (waits && now + RECALL_MS < next)
        next = now + RECALL_MS;
    return next;
}

/* False: Redis did not take it. For people only: the next one says more. */
static bool
send_progress_of(struct wr_io *io, struct wr_run *run)
{
    pthread_mutex_t *mu = &io->runner->mu;
    char id[256], token[WR_TOKEN_MAX], text[sizeof(run->d.progress)];
    enum wr_extended word;
    int64_t keep_ms;
    bool any;

    pthread_mutex_lock(mu);
    any = run->phase == WR_RUN_RUNNING && run->d.progress_new;
    if (any) {
        snprintf(id, sizeof(id), "%s", run->d.id);
        snprintf(token, sizeof(token), "%s", run->d.state.token);
        snprintf(text, sizeof(text), "%s", run->d.progress);
        run->d.progress_new = false;
    }
    keep_ms = run->d.record.keep_progress_ms;
    pthread_mutex_unlock(mu);
    return !any || wr_store_progress(io->store, run->queue, io->o->page->worker,
                                     wr_span_str(id), wr_span_str(token),
                                     wr_span_str(text), keep_ms, &word, NULL) == WEIR_OK;
}

/* Sends what handlers said of their progress since the last look. */
void
wr_io_send_progress(struct wr_io *io, int64_t now)
{
    struct wr_runner *r = io->runner;

    if (io->outstanding == 0 || now < io->progress_ms || now < io->again_ms)
        return;
    io->progress_ms = now + PROGRESS_MS;
    for (size_t i = 0, seen = 0; i < r->n && seen < io->outstanding; i++) {
        if (!is_out(&r->runs[i]))
            continue;
        seen++;
        if (!send_progress_of(io, &r->runs[i]))
            return;
    }
}

/* What a handler said last, when it has ended: who looks at its job afterwards sees that.
 * Nobody sees that of a job that leaves nothing. */
void
wr_io_send_last_progress(struct wr_io *io, struct wr_run *run, enum wr_verdict kind)
{
    const struct wr_record *record = &run->d.record;
    bool kept = record->keep_progress_ms == WR_PROGRESS_WITH_JOB
                    ? record->keep_ms > 0
                    : record->keep_progress_ms > 0;
    enum wr_extended word;

    if (!run->d.progress_new || (kind <= WR_VERDICT_ACK_THEN && !kept) ||
        io->failures > 0 || io->hurry || io->orphaned)
        return;
    run->d.progress_new = false;
    (void)!wr_store_progress(io->store, run->queue, io->o->page->worker,
                             wr_span_str(run->d.id), wr_span_str(run->d.state.token),
                             wr_span_str(run->d.progress), record->keep_progress_ms,
                             &word, NULL);
}
