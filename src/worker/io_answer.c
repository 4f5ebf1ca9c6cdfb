/* The calls of the I/O thread: answers of what finished, and the claims that go with
 * them. An answer that Redis does not take is kept and given again. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "redis/backoff.h"
#include "worker/io.h"

/* Between two calls that only put off what is not for this worker. */
#define LOOK_MS 10
#define OUTPUT_WAIT_MS 500 /* for the last of what a job printed to be stored */

/* What is known of the run, for its job's history. Nobody reads that of a job that leaves
 * nothing. */
static void
note_facts(struct wr_run *run, enum wr_verdict kind)
{
    const struct wr_exec_end *e = &run->d.exec;
    bool given_up = wr_run_is_given_up(run);
    struct wr_attempt a = {.wall_ms = given_up ? run->stead.took_ms : run->took_ms,
                           .is_command = !given_up && run->d.has_exec};
    struct wr_buf text = {0};

    if (a.wall_ms < 0 || (kind == WR_VERDICT_ACK && run->d.record.keep_ms == 0))
        return;
    if (a.is_command) {
        a.wall_ms = e->start_errno != 0 ? a.wall_ms : e->wall_ms;
        a.exit_code = e->start_errno != 0 || e->signal != 0 ? -1 : e->exit_code;
        a.signal = e->signal;
        a.start_errno = e->start_errno;
        a.pid = e->pid;
        a.user_us = e->user_us;
        a.sys_us = e->sys_us;
        a.max_rss_kib = e->max_rss_kib;
        a.bytes_in = e->bytes_in;
        a.bytes_out = e->bytes_out;
        a.bytes_err = e->bytes_err;
        a.out_cut = e->out_truncated;
        a.err_cut = e->err_truncated;
        a.core = e->core;
        a.out_of_memory = e->out_of_memory;
    }
    wr_attempt_write_facts(&text, &a);
    snprintf(run->facts, sizeof(run->facts), "%s", (const char *)wr_buf_span(&text).ptr);
    wr_buf_fini(&text);
}

void
wr_io_put_answer(struct wr_line *l, enum wr_verdict kind, struct wr_run *run)
{
    note_facts(run, kind);
    run->next = NULL;
    *l->answers[kind].last = run;
    l->answers[kind].last = &run->next;
    l->answers[kind].n++;
}

/* An answer waits until the last of the run's output is stored, so that who sees the job
 * ended sees all of it. Nobody sees that of a job that leaves nothing. */
static bool
waits_for_output(struct wr_io *io, struct wr_run *run, enum wr_verdict kind)
{
    bool discard = kind <= WR_VERDICT_ACK_THEN && run->d.record.keep_ms == 0;

    if (!wr_output_end(&run->d, discard) || io->hurry || io->orphaned)
        return false;
    run->verdict = (int)kind;
    run->wait_until_ms = wr_clock_ms() + OUTPUT_WAIT_MS;
    run->next = io->printing;
    io->printing = run;
    return true;
}

static bool
may_answer(const struct wr_io *io, const struct wr_run *run)
{
    return wr_output_is_stored(&run->d) || io->hurry || io->orphaned ||
           wr_clock_ms() >= run->wait_until_ms;
}

int64_t
wr_io_printing_until(const struct wr_io *io)
{
    int64_t until = INT64_MAX;

    for (const struct wr_run *run = io->printing; run; run = run->next) {
        int64_t at = may_answer(io, run) ? 0 : run->wait_until_ms;

        until = at < until ? at : until;
    }
    return until;
}

static void
collect_printing(struct wr_io *io)
{
    struct wr_run **at = &io->printing;

    while (*at) {
        struct wr_run *run = *at;

        if (!may_answer(io, run)) {
            at = &run->next;
            continue;
        }
        *at = run->next;
        wr_io_put_answer(wr_io_line_of(io, run->queue), (enum wr_verdict)run->verdict,
                         run);
    }
}

/* We stood still, and the supervisor ended it because leases were about to lapse: that is
 * no attempt. */
static void
note_cut(struct wr_io *io, struct wr_run *run)
{
    if (run->took_ms < 0 || run->outcome != WEIR_RETRY ||
        run->d.started_ms > atomic_load(&io->o->page->cut_ms))
        return;
    pthread_mutex_lock(&io->runner->mu);
    wr_run_stop(run, WR_STOP_LOST);
    pthread_mutex_unlock(&io->runner->mu);
}

void
wr_io_collect(struct wr_io *io)
{
    struct wr_run *list = wr_runner_take_finished(io->runner);

    collect_printing(io);

    while (list) {
        struct wr_run *run = list;
        struct wr_line *l = wr_io_line_of(io, run->queue);
        enum wr_verdict kind;

        list = run->next;
        if (run == io->alone_runs)
            io->alone_runs = NULL;
        note_cut(io, run);
        kind = wr_judge(run);
        wr_io_send_last_progress(io, run, kind);
        if (!waits_for_output(io, run, kind))
            wr_io_put_answer(l, kind, run);
    }
}

static void
fill_answer(const struct wr_run *run, struct wr_answer *a)
{
    const struct weir_delivery *d = &run->d;
    bool given_up = wr_run_is_given_up(run);

    *a = (struct wr_answer){
        .id = wr_span_str(d->id),
        .token = wr_span_str(d->state.token),
        .result = given_up ? wr_span_str("") : wr_buf_span(&d->result),
        .follow = given_up ? wr_span_str("") : wr_buf_span(&d->follow),
        .delay_ms = given_up ? run->stead.delay_ms : d->delay_ms,
        .snoozed = strcmp(run->reason, "snoozed") == 0,
        .reason = strcmp(run->reason, "permanent") == 0 ? "permanent" : "attempts",
        .text = wr_span_str(given_up ? run->stead.error : d->error),
        .facts = wr_span_str(run->facts),
    };
}

static void
say_answered(const struct wr_run *run, enum wr_verdict kind, enum wr_answered word)
{
    static const char *const names[] = {"ack", "ack", "retry", "bury", "release"};

    if (word == WR_ANSWERED_STALE)
        wr_log_warn("job %s: %s refused, the job is somebody else's now", run->d.id,
                    names[kind]);
    else
        wr_log_debug("job %s: %s %s", run->d.id, names[kind],
                     wr_run_is_given_up(run) ? run->stead.error : run->d.error);
}

/* For `weir worker ls`. What was handed back is no run that ended. */
static void
count_answer(struct wr_io *io, const struct wr_run *run, enum wr_verdict kind)
{
    if (kind == WR_VERDICT_RELEASE)
        return;
    atomic_fetch_add_explicit(&io->o->page->answered, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&io->w->shared->processed, 1, memory_order_relaxed);
    if (kind > WR_VERDICT_ACK_THEN && strcmp(run->reason, "snoozed") != 0)
        atomic_fetch_add_explicit(&io->w->shared->failed, 1, memory_order_relaxed);
}

static bool
is_away(enum weir_err rc)
{
    return rc == WEIR_E_CONNECT || rc == WEIR_E_NO_REPLY || rc == WEIR_E_LOADING ||
           rc == WEIR_E_POOL_FULL || rc == WEIR_E_READONLY || rc == WEIR_E_SERVER;
}

/* From the outbox into their queues. What fails is done by the scheduler's leader. False:
 * Redis is away, so that the next would only wait as long. */
static bool
relay(struct wr_io *io, struct wr_line *l, const struct wr_run *run)
{
    struct weir_error err = {0};
    enum weir_err rc = wr_store_relay(io->store, l->queue,
                                      wr_span_str(run->d.state.token),
                                      wr_buf_span(&run->d.follow), &err);

    if (rc != WEIR_OK)
        wr_log_warn("job %s: its follow-up jobs wait in the outbox: %s", run->d.id,
                    err.text);
    return !is_away(rc);
}

/* What ended may have let in a job that stood behind it, or stored the next of its chain,
 * in any queue: one that only drains looks once more before it ends. */
static void
ask_again(struct wr_io *io)
{
    for (struct wr_line *l = io->lines; l; l = l->next)
        l->maybe_ready = true;
}

/* Takes the first n of a list that were given, and frees them. */
static void
drop_answers(struct wr_io *io, struct wr_line *l, enum wr_verdict kind, size_t n)
{
    struct wr_pending *p = &l->answers[kind];
    bool can_relay = kind == WR_VERDICT_ACK_THEN;

    for (size_t i = 0; i < n; i++) {
        struct wr_run *run = p->first;

        WR_ASSERT(run);
        p->first = run->next;
        if (!p->first)
            p->last = &p->first;
        p->n--;
        say_answered(run, kind, io->words[i]);
        if (can_relay && io->words[i] == WR_ANSWERED_OK)
            can_relay = relay(io, l, run);
        io->outstanding--;
        l->outstanding--;
        count_answer(io, run, kind);
        if (run->phase == WR_RUN_ABANDONED) { /* its thread still uses it */
            pthread_mutex_lock(&io->runner->mu);
            run->answered = true;
            pthread_mutex_unlock(&io->runner->mu);
        } else {
            wr_runner_free_run(io->runner, run);
        }
    }
    if (io->w->drain && n > 0)
        ask_again(io);
}

/* Redis did not take it: not at once again. What is wrong with one queue alone does not
 * keep the others waiting. */
static void
note_failure(struct wr_io *io, struct wr_line *l, enum weir_err rc,
             const struct weir_error *err)
{
    int64_t now = wr_clock_ms();

    if (is_away(rc)) {
        if (io->failures == 0)
            wr_log_warn("%s", err->text);
        io->again_ms = now + wr_backoff_ms(io->failures++, WR_IO_AWAY_MAX_MS);
        return;
    }
    if (io->failures > 0)
        wr_log_warn("Redis answers again");
    io->failures = 0;
    if (rc == WEIR_OK) {
        atomic_store(&io->o->page->contact_ms, now);
        l->failures = 0;
        return;
    }
    if (l->failures == 0)
        wr_log_error("queue %s: %s", wr_queue_name(l->queue), err->text);
    l->again_ms = now + wr_backoff_ms(l->failures++, WR_IO_AWAY_MAX_MS);
}

typedef enum weir_err (*answer_fn)(struct wr_store *store, struct wr_queue *queue,
                                   const char *worker, const struct wr_answer *answers,
                                   size_t n, enum wr_answered *out,
                                   struct weir_error *err);

static size_t
fill_answers(struct wr_io *io, const struct wr_pending *p)
{
    size_t n = 0, bytes = 0;

    for (struct wr_run *run = p->first;
         run && n < WR_IO_CALL_MAX && bytes < WR_BATCH_BYTES; run = run->next) {
        fill_answer(run, &io->answers[n]);
        bytes += io->answers[n].result.len + io->answers[n].follow.len;
        n++;
    }
    return n;
}

static bool
give_answers(struct wr_io *io, struct wr_line *l, enum wr_verdict kind, answer_fn give)
{
    while (l->answers[kind].n > 0) {
        struct weir_error err = {0};
        size_t n = fill_answers(io, &l->answers[kind]);
        enum weir_err rc = give(io->store, l->queue, io->o->page->worker, io->answers, n,
                                io->words, &err);

        note_failure(io, l, rc, &err);
        if (rc != WEIR_OK)
            return false;
        drop_answers(io, l, kind, n);
    }
    return true;
}

/* A call that failed may have been done: the same number on the same queue again, and
 * the script answers what it answered then. */
static void
note_call(struct wr_io *io, struct wr_line *l, enum weir_err rc, size_t wanted)
{
    if (l->repeat == 0)
        io->call++;
    io->doubt -= l->doubt;
    if (rc == WEIR_OK) {
        l->repeat = 0;
        l->doubt = 0;
        return;
    }
    if (l->repeat == 0)
        l->repeat = io->call - 1;
    /* Else it was refused before it claimed anything. What was handed over to an offer
     * of that number may be ours all the same: it waits for a slot then. */
    l->doubt = !is_away(rc) ? 0 : wanted > l->doubt ? wanted : l->doubt;
    io->doubt += l->doubt;
}

static void
take_batch(struct wr_io *io, struct wr_line *l, size_t wanted, struct wr_batch *batch,
           int64_t sent_ms)
{
    l->owes_call = false;
    l->asked_ms = sent_ms;
    wr_io_note_share(l, batch->n);
    if (batch->word == WR_RESERVE_SHELVED)
        io->shelved_ms = l->asked_ms;
    if (batch->word == WR_RESERVE_MORE && batch->n == 0)
        l->look_ms = wr_clock_ms() + LOOK_MS;
    if (wanted > 0) {
        if (io->timed_out && batch->n > 0)
            io->marker_lost_ms = wr_clock_ms();
        /* Fewer than wanted: the queue is empty, or a marker stands for the rest. */
        l->maybe_ready = batch->word == WR_RESERVE_MORE || batch->n == wanted;
    }
    wr_io_admit(io, l, batch, sent_ms);
}

/* ack what finished and claim the next, in one call. */
static bool
exchange(struct wr_io *io, struct wr_line *l)
{
    struct wr_reserve r = {.worker = io->o->page->worker,
                           .call = l->repeat > 0 ? l->repeat : io->call,
                           .lease_ms = io->w->lease_ms};
    struct weir_error err = {0};
    struct wr_batch batch;
    size_t n = fill_answers(io, &l->answers[WR_VERDICT_ACK]);
    int64_t sent_ms = wr_clock_ms();
    size_t wanted;
    enum weir_err rc;

    wr_io_want(io, l, n, &r);
    wanted = r.free + r.ahead;
    if (io->w->jobs_left)
        atomic_fetch_sub(io->w->jobs_left, (int64_t)wanted);
    rc = n > 0 ? wr_store_exchange(io->store, l->queue, &r, io->answers, n, io->words,
                                   &batch, &err)
               : wr_store_reserve(io->store, l->queue, &r, &batch, &err);
    if (io->w->jobs_left)
        atomic_fetch_add(io->w->jobs_left, (int64_t)wanted - (int64_t)batch.n);
    note_failure(io, l, rc, &err);
    note_call(io, l, rc, wanted);
    if (rc != WEIR_OK) {
        wr_batch_fini(&batch);
        return false;
    }
    drop_answers(io, l, WR_VERDICT_ACK, n);
    take_batch(io, l, wanted, &batch, sent_ms);
    return true;
}

size_t
wr_io_answers_n(const struct wr_io *io)
{
    size_t n = 0;

    for (const struct wr_line *l = io->lines; l; l = l->next) {
        for (int i = 0; i < WR_VERDICTS; i++)
            n += l->answers[i].n;
    }
    return n;
}

/* Of the last ones the release is one call, so that they keep their order: it waits for
 * the slowest. */
static bool
may_release(const struct wr_io *io)
{
    return io->state != WR_IO_STOP || io->handed_back ||
           io->outstanding == wr_io_answers_n(io) ||
           wr_clock_ms() > io->deadline_ms - 500;
}

/* The last marker brought another worker's job, which goes back before anything else is
 * asked of the queue. False: it could not be. */
static bool
give_back(struct wr_io *io, struct wr_line *l)
{
    struct weir_error err = {0};
    enum weir_err rc;

    if (l->other_call == 0)
        return true;
    rc = wr_store_withdraw(io->store, l->queue, l->other_worker, l->other_call,
                           wr_io_makes_offers(io), &err);
    note_failure(io, l, rc, &err);
    if (!is_away(rc)) /* refused: it waits until its lease is over */
        l->other_call = 0;
    return rc == WEIR_OK;
}

/* While an offer stands no other claim is made: by its number what was handed over would
 * not be known again. And who waits for the one job of an idle child does not wait for a
 * look at a queue that was empty just now. */
static bool
only_answers(const struct wr_io *io, const struct wr_line *l)
{
    return l == io->offer_line ||
           (wr_io_slot_leads(io) && !l->maybe_ready && !l->owes_call && l->repeat == 0);
}

bool
wr_io_serve_line(struct wr_io *io, struct wr_line *l)
{
    static const answer_fn give[] = {
        [WR_VERDICT_ACK_THEN] = wr_store_ack_then,
        [WR_VERDICT_RETRY] = wr_store_retry,
        [WR_VERDICT_BURY] = wr_store_bury,
        [WR_VERDICT_RELEASE] = wr_store_release,
    };
    struct wr_reserve r = {0};
    bool done = false;

    if (!give_back(io, l))
        return false;
    for (int kind = WR_VERDICT_ACK_THEN; kind < WR_VERDICTS; kind++) {
        if (l->answers[kind].n == 0 || (kind == WR_VERDICT_RELEASE && !may_release(io)))
            continue;
        if (!give_answers(io, l, (enum wr_verdict)kind, give[kind]))
            return false;
        done = true;
    }
    if (only_answers(io, l))
        return (l->answers[WR_VERDICT_ACK].n > 0 &&
                give_answers(io, l, WR_VERDICT_ACK, wr_store_ack)) ||
               done;
    wr_io_want(io, l, 0, &r);
    if (l->answers[WR_VERDICT_ACK].n > 0 || l->owes_call || l->repeat > 0 ||
        (l->maybe_ready && r.free + r.ahead > 0))
        return exchange(io, l);
    return done;
}
