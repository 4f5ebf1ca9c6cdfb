/*
 * The I/O thread of a worker child: claims jobs, hands them to the slots, gives their
 * answers. One exchange call acks what finished and reserves the next. It sleeps only on
 * the wake markers of its queues and on its own slots.
 *
 *   RUN ──told to stop, or nothing left──► DRAIN ──grace over──► STOP ──► end
 *
 * RUN claims and runs. DRAIN claims nothing, lets run what runs. STOP has told the rest
 * to stop and waits for it a moment. Answers are given in every state; one that Redis
 * does not take is kept and given again.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "redis/backoff.h"
#include "redis/conn.h"
#include "worker/worker_internal.h"

#define COMMAND_TIMEOUT_MS 2000
#define BLOCK_MS 5000
#define BLOCK_LOST_MS 1000 /* after a marker was lost */
#define BLOCK_SLACK_MS 2000
#define LOST_MEMORY_MS 30000 /* how long a lost marker is remembered */
#define REGISTRY_MS 5000
#define REGISTRY_EMPTY_MS 1000 /* no queue so far: a first job waits no longer */
#define CALL_MAX 256           /* jobs reserved in one call */
#define AHEAD_US 4000          /* of work a slot may have claimed ahead */
#define CHECK_MS 5             /* between looks at all runs */
#define RECALL_MS 20           /* short jobs that wait so long stand behind a long one */
#define AHEAD_WAIT_MS 2000     /* a job claimed ahead waits no longer */
#define STOP_GRACE_MS 6000     /* SIGTERM, 5 s, SIGKILL, and the answer */
#define HURRY_MS 1500
#define HAND_BACK_MS 1500 /* to hand back the jobs of handlers that did not stop */
#define ORPHAN_STOP_MS 800
#define ORPHAN_HAND_BACK_MS 500
#define ORPHAN_MAX_S 2       /* and the end, whatever hangs */
#define AWAY_GIVE_UP_MS 1800 /* at the end, with Redis away */
#define AWAY_MAX_MS 1000
#define PROGRESS_MS 500
#define STOP_AGAIN_MS 500 /* a stop that came before its command had started */

enum io_state {
    IO_RUN,
    IO_DRAIN,
    IO_STOP
};

struct pending {
    struct wr_run *first, **last;
    size_t n;
};

struct line {
    struct line *next;
    struct wr_queue *queue;
    bool maybe_ready; /* ask it: a marker came, or the last answer was full */
    bool owes_call;   /* a marker was taken: call, also with nothing wanted */
    int64_t again_ms; /* this queue refused: not before */
    unsigned failures;
    int64_t
        repeat;   /* number of a call whose end is not known: it is made again; 0: none */
    size_t doubt; /* jobs it may have claimed */
    struct pending answers[WR_VERDICTS];
};

struct io {
    const struct wr_io_options *o;
    const struct weir_worker *w;
    struct wr_runner *runner;
    struct wr_server *server;
    struct wr_store *store;
    struct line *lines;
    size_t lines_n;

    enum io_state state;
    bool hurry, orphaned, lapsed, replace, handed_back;
    int64_t began_ms;    /* DRAIN or STOP */
    int64_t deadline_ms; /* of DRAIN or STOP */
    int64_t call;        /* number of the next reserve or exchange */
    size_t outstanding;  /* claimed and not answered */
    size_t doubt;        /* sum of the lines' */
    int64_t processed;
    struct wr_run *alone, **alone_last; /* wait until nothing else runs */
    size_t alone_n;
    struct wr_run *alone_runs;
    int64_t again_ms; /* Redis is away: not before */
    unsigned failures;
    int64_t registry_ms;
    int64_t stop_again_ms, progress_ms, checked_ms;

    struct wr_conn *block; /* waits for markers */
    bool posted;
    int64_t posted_ms, block_ms, connect_ms, marker_lost_ms;
    bool timed_out; /* the last block ended without a marker: look, to be sure */
};

/* A worker that cannot reach Redis must see it well before its leases end. */
static int64_t
command_timeout(const struct io *io)
{
    return io->w->lease_ms / 2 < COMMAND_TIMEOUT_MS ? io->w->lease_ms / 2
                                                    : COMMAND_TIMEOUT_MS;
}

/* ---- queues ---- */

static bool
add_line(const char *name, void *context)
{
    struct io *io = context;
    struct wr_queue *queue;
    struct line *l;

    if (wr_store_queue(io->store, name, &queue, NULL) != WEIR_OK)
        return true;
    for (l = io->lines; l; l = l->next) {
        if (l->queue == queue)
            return true;
    }
    l = calloc(1, sizeof(*l));
    if (!l)
        return true; /* tried again at the next look */
    l->queue = queue;
    l->maybe_ready = true;
    for (int i = 0; i < WR_VERDICTS; i++)
        l->answers[i].last = &l->answers[i].first;
    l->next = io->lines;
    io->lines = l;
    io->lines_n++;
    return true;
}

static void
look_for_queues(struct io *io, int64_t now)
{
    if (now < io->registry_ms)
        return;
    if (io->w->queues) {
        for (char **name = io->w->queues; *name; name++)
            add_line(*name, io);
        io->registry_ms = INT64_MAX;
        return;
    }
    io->registry_ms = now + (io->lines ? REGISTRY_MS : REGISTRY_EMPTY_MS);
    if (wr_store_each_queue(io->store, add_line, io, NULL) != WEIR_OK)
        return; /* Redis is away: the commands say it */
}

/* Each turn begins with another queue. */
static void
rotate_lines(struct io *io)
{
    struct line *first = io->lines, **last = &io->lines;

    if (!first || !first->next)
        return;
    io->lines = first->next;
    while (*last)
        last = &(*last)->next;
    first->next = NULL;
    *last = first;
}

/* ---- claiming ---- */

/* How many jobs may be claimed beyond free slots: a few ms of work, as measured. */
static size_t
ahead_limit(const struct io *io)
{
    int64_t us = atomic_load_explicit(&io->runner->ewma_us, memory_order_relaxed);
    int64_t each;

    if (us < 0 || us > AHEAD_US / 2)
        return 0;
    each = AHEAD_US / (us < 1 ? 1 : us);
    each *= (int64_t)io->runner->slots;
    return each < WR_AHEAD_MAX ? (size_t)each : WR_AHEAD_MAX;
}

static int64_t
jobs_left(const struct io *io)
{
    return io->w->jobs_left ? atomic_load(io->w->jobs_left) : INT64_MAX;
}

/* For a call on this queue; NULL: on any. */
static void
want(const struct io *io, const struct line *l, struct wr_reserve *r)
{
    size_t slots = io->runner->slots, ahead = ahead_limit(io), free, total, left;
    size_t out = io->outstanding + io->doubt - (l ? l->doubt : 0);
    int64_t limit = jobs_left(io);

    r->free = r->ahead = 0;
    if (io->state != IO_RUN || io->alone || io->alone_runs || limit <= 0)
        return;
    left = limit < CALL_MAX ? (size_t)limit : CALL_MAX;
    free = out < slots ? slots - out : 0;
    total = out < slots + ahead ? slots + ahead - out : 0;
    /* A batch that is worth the call, once the slots are busy. */
    if (free == 0 && total < ahead / 4)
        total = 0;
    total = total < left ? total : left;
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
    return any;
}

static void
fill_run(struct io *io, struct wr_run *run, struct line *line,
         const struct wr_delivery *d, struct wr_batch_ref *ref, int64_t sent_ms)
{
    int64_t lease = io->w->lease_ms;

    run->queue = line->queue;
    run->ref = ref;
    ref->refs++;
    run->claimed_ms = sent_ms;
    run->stopped_ms = 0;
    run->answered = run->alone = false;
    run->reason = "failed";
    atomic_store(&run->fence_ms, sent_ms + lease - wr_lease_margin_ms(lease));
    atomic_store(&run->d.stop, WR_STOP_NONE);
    wr_buf_clear(&run->d.result);
    run->d.queue = wr_queue_name(line->queue);
    run->d.id = d->id.ptr;
    run->d.worker = io->o->page->worker;
    run->d.record_bytes = d->record;
    run->d.state = d->state;
    run->d.context = io->o->context;
    run->d.error[0] = '\0';
    run->d.delay_ms = -1;
    run->d.progress_new = false;
    run->d.mu = &io->runner->mu;
    run->handler = NULL;
    run->d.type = "";
    if (wr_record_read(d->record, &run->d.record, &run->version)) {
        run->d.type = run->d.record.type.ptr;
        run->handler = find_handler(io->w, run->d.type);
    }
}

static void
put_answer(struct line *l, enum wr_verdict kind, struct wr_run *run)
{
    run->next = NULL;
    *l->answers[kind].last = run;
    l->answers[kind].last = &run->next;
    l->answers[kind].n++;
}

/* False: it is to be handed to a thread. */
static bool
put_aside(struct io *io, struct line *line, struct wr_run *run)
{
    if (io->state != IO_RUN) { /* the late answer of a call: not wanted any more */
        wr_runner_hold(io->runner, run);
        put_answer(line, WR_VERDICT_RELEASE, run);
    } else if (run->d.state.lost > 0 && run->handler && run->handler->ops->in_process) {
        /* What took a worker with it runs alone, so that only it can do it again. */
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

static void
admit(struct io *io, struct line *line, struct wr_batch *batch, int64_t sent_ms)
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
    for (size_t i = 0; i < ref->batch.n; i++) {
        struct wr_run *run = wr_runner_new_run(io->runner);

        if (!run)
            break; /* more than was asked for: lapses as well */
        fill_run(io, run, line, &ref->batch.jobs[i], ref, sent_ms);
        io->outstanding++;
        if (put_aside(io, line, run))
            continue;
        run->next = NULL;
        *last = run;
        last = &run->next;
        n++;
    }
    wr_runner_submit(io->runner, list, n);
    if (--ref->refs == 0) {
        wr_batch_fini(&ref->batch);
        free(ref);
    }
}

/* ---- answering ---- */

static struct line *
line_of(struct io *io, const struct wr_queue *queue)
{
    struct line *l = io->lines;

    while (l && l->queue != queue)
        l = l->next;
    return l;
}

static void
collect(struct io *io)
{
    struct wr_run *list = wr_runner_take_finished(io->runner);

    while (list) {
        struct wr_run *run = list;
        struct line *l = line_of(io, run->queue);

        list = run->next;
        if (run == io->alone_runs)
            io->alone_runs = NULL;
        put_answer(l, wr_judge(run), run);
    }
}

static void
fill_answer(const struct wr_run *run, struct wr_answer *a)
{
    const struct weir_delivery *d = &run->d;

    *a = (struct wr_answer){
        .id = wr_span_str(d->id),
        .token = wr_span_str(d->state.token),
        .result = wr_buf_span(&d->result),
        .delay_ms = d->delay_ms,
        .snoozed = strcmp(run->reason, "snoozed") == 0,
        .reason = strcmp(run->reason, "permanent") == 0 ? "permanent" : "attempts",
        .text = wr_span_str(d->error),
    };
}

static void
say_answered(const struct wr_run *run, enum wr_verdict kind, enum wr_answered word)
{
    static const char *const names[] = {"ack", "retry", "bury", "release"};

    if (word == WR_ANSWERED_STALE)
        wr_log_warn("job %s: %s refused, the job is somebody else's now", run->d.id,
                    names[kind]);
    else
        wr_log_debug("job %s: %s %s", run->d.id, names[kind], run->d.error);
}

/* Takes the first n of a list that were given, and frees them. */
static void
drop_answers(struct io *io, struct pending *p, enum wr_verdict kind, size_t n,
             const enum wr_answered *words)
{
    for (size_t i = 0; i < n; i++) {
        struct wr_run *run = p->first;

        WR_ASSERT(run);
        p->first = run->next;
        if (!p->first)
            p->last = &p->first;
        p->n--;
        say_answered(run, kind, words[i]);
        io->outstanding--;
        io->processed++;
        if (run->phase == WR_RUN_ABANDONED) { /* its thread still uses it */
            pthread_mutex_lock(&io->runner->mu);
            run->answered = true;
            pthread_mutex_unlock(&io->runner->mu);
        } else {
            wr_runner_free_run(io->runner, run);
        }
    }
}

static bool
is_away(enum weir_err rc)
{
    return rc == WEIR_E_CONNECT || rc == WEIR_E_NO_REPLY || rc == WEIR_E_LOADING ||
           rc == WEIR_E_POOL_FULL || rc == WEIR_E_READONLY || rc == WEIR_E_SERVER;
}

/* Redis did not take it: not at once again. What is wrong with one queue alone does not
 * keep the others waiting. */
static void
note_failure(struct io *io, struct line *l, enum weir_err rc,
             const struct weir_error *err)
{
    int64_t now = wr_clock_ms();

    if (is_away(rc)) {
        if (io->failures == 0)
            wr_log_warn("%s", err->text);
        io->again_ms = now + wr_backoff_ms(io->failures++, AWAY_MAX_MS);
        return;
    }
    if (io->failures > 0)
        wr_log_warn("Redis answers again");
    io->failures = 0;
    if (rc == WEIR_OK) {
        l->failures = 0;
        return;
    }
    if (l->failures == 0)
        wr_log_error("queue %s: %s", wr_queue_name(l->queue), err->text);
    l->again_ms = now + wr_backoff_ms(l->failures++, AWAY_MAX_MS);
}

typedef enum weir_err (*answer_fn)(struct wr_store *store, struct wr_queue *queue,
                                   const char *worker, const struct wr_answer *answers,
                                   size_t n, enum wr_answered *out,
                                   struct weir_error *err);

static size_t
fill_answers(const struct pending *p, struct wr_answer *out, size_t max)
{
    size_t n = 0, bytes = 0;

    for (struct wr_run *run = p->first; run && n < max && bytes < WR_BATCH_BYTES;
         run = run->next) {
        fill_answer(run, &out[n++]);
        bytes += run->d.result.len;
    }
    return n;
}

static bool
give_answers(struct io *io, struct line *l, enum wr_verdict kind, answer_fn give)
{
    struct wr_answer answers[CALL_MAX];
    enum wr_answered words[CALL_MAX];

    while (l->answers[kind].n > 0) {
        struct weir_error err = {0};
        size_t n = fill_answers(&l->answers[kind], answers, CALL_MAX);
        enum weir_err rc = give(io->store, l->queue, io->o->page->worker, answers, n,
                                words, &err);

        note_failure(io, l, rc, &err);
        if (rc != WEIR_OK)
            return false;
        drop_answers(io, &l->answers[kind], kind, n, words);
    }
    return true;
}

/* A call that failed may have been done: the same number on the same queue again, and
 * the script answers what it answered then. */
static void
note_call(struct io *io, struct line *l, enum weir_err rc, size_t wanted)
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
    if (is_away(rc)) /* else it was refused before it claimed anything */
        l->doubt = wanted > l->doubt ? wanted : l->doubt;
    io->doubt += l->doubt;
}

/* ack what finished and claim the next, in one call. */
static bool
exchange(struct io *io, struct line *l)
{
    struct wr_answer answers[CALL_MAX];
    enum wr_answered words[CALL_MAX];
    struct wr_reserve r = {.worker = io->o->page->worker,
                           .call = l->repeat > 0 ? l->repeat : io->call,
                           .lease_ms = io->w->lease_ms};
    struct weir_error err = {0};
    struct wr_batch batch;
    size_t n = fill_answers(&l->answers[WR_VERDICT_ACK], answers, CALL_MAX);
    int64_t sent_ms = wr_clock_ms();
    size_t wanted;
    enum weir_err rc;

    want(io, l, &r);
    wanted = r.free + r.ahead;
    if (io->w->jobs_left)
        atomic_fetch_sub(io->w->jobs_left, (int64_t)wanted);
    rc = n > 0
             ? wr_store_exchange(io->store, l->queue, &r, answers, n, words, &batch, &err)
             : wr_store_reserve(io->store, l->queue, &r, &batch, &err);
    if (io->w->jobs_left)
        atomic_fetch_add(io->w->jobs_left, (int64_t)wanted - (int64_t)batch.n);
    note_failure(io, l, rc, &err);
    note_call(io, l, rc, wanted);
    if (rc != WEIR_OK) {
        wr_batch_fini(&batch);
        return false;
    }
    drop_answers(io, &l->answers[WR_VERDICT_ACK], WR_VERDICT_ACK, n, words);
    l->owes_call = false;
    if (wanted > 0) {
        if (io->timed_out && batch.n > 0)
            io->marker_lost_ms = sent_ms;
        l->maybe_ready = batch.word == WR_RESERVE_MORE ||
                         (batch.word == WR_RESERVE_OK && batch.n > 0);
    }
    admit(io, l, &batch, sent_ms);
    return true;
}

static size_t
answers_n(const struct io *io)
{
    size_t n = 0;

    for (const struct line *l = io->lines; l; l = l->next) {
        for (int i = 0; i < WR_VERDICTS; i++)
            n += l->answers[i].n;
    }
    return n;
}

/* Of the last ones the release is one call, so that they keep their order: it waits for
 * the slowest. */
static bool
may_release(const struct io *io)
{
    return io->state != IO_STOP || io->handed_back || io->outstanding == answers_n(io) ||
           wr_clock_ms() > io->deadline_ms - 500;
}

/* True if something was done. */
static bool
serve_line(struct io *io, struct line *l)
{
    static const answer_fn give[] = {
        [WR_VERDICT_RETRY] = wr_store_retry,
        [WR_VERDICT_BURY] = wr_store_bury,
        [WR_VERDICT_RELEASE] = wr_store_release,
    };
    struct wr_reserve r = {0};
    bool done = false;

    for (int kind = WR_VERDICT_RETRY; kind < WR_VERDICTS; kind++) {
        if (l->answers[kind].n == 0 || (kind == WR_VERDICT_RELEASE && !may_release(io)))
            continue;
        if (!give_answers(io, l, (enum wr_verdict)kind, give[kind]))
            return false;
        done = true;
    }
    want(io, l, &r);
    if (l->answers[WR_VERDICT_ACK].n > 0 || l->owes_call || l->repeat > 0 ||
        (l->maybe_ready && r.free + r.ahead > 0))
        return exchange(io, l);
    return done;
}

static struct wr_run *
take_alone(struct io *io, struct wr_run **at)
{
    struct wr_run *run = *at;

    *at = run->next;
    if (!*at)
        io->alone_last = at;
    io->alone_n--;
    return run;
}

/* Those that must run alone: one at a time, when all others have ended. */
static void
start_alone(struct io *io)
{
    for (struct wr_run **at = &io->alone; *at;) {
        if (atomic_load(&(*at)->d.stop) == WR_STOP_NONE) {
            at = &(*at)->next;
            continue;
        }
        struct wr_run *run = take_alone(io, at); /* cancelled or lost while it waited */

        put_answer(line_of(io, run->queue), wr_judge(run), run);
    }
    if (io->alone && !io->alone_runs && io->outstanding == io->alone_n) {
        io->alone_runs = take_alone(io, &io->alone);
        io->alone_runs->next = NULL;
        wr_runner_submit(io->runner, io->alone_runs, 1);
    }
}

static bool
serve(struct io *io)
{
    bool done = false;

    if (wr_clock_ms() < io->again_ms)
        return false;
    rotate_lines(io);
    for (struct line *l = io->lines; l && wr_clock_ms() >= io->again_ms; l = l->next) {
        atomic_store(io->o->tick_ms, wr_clock_ms());
        if (wr_clock_ms() >= l->again_ms)
            done = serve_line(io, l) || done;
    }
    if (done)
        io->timed_out = false;
    start_alone(io);
    return done;
}

/* ---- markers ---- */

static void
drop_block(struct io *io)
{
    wr_conn_close(io->block);
    io->block = NULL;
    io->posted = false;
    io->connect_ms = wr_clock_ms() + wr_backoff_ms(io->failures, AWAY_MAX_MS);
    for (struct line *l = io->lines; l; l = l->next)
        l->maybe_ready = true; /* a marker may have been on its way to us */
}

static bool
may_block(struct io *io, int64_t now)
{
    struct wr_reserve r = {0};

    if (io->posted || now < io->connect_ms || now < io->again_ms || io->lines_n == 0)
        return false;
    want(io, NULL, &r);
    if (r.free == 0)
        return false; /* a marker would be taken and put back, again and again */
    for (struct line *l = io->lines; l; l = l->next) {
        if (l->maybe_ready && l->failures == 0)
            return false;
    }
    return true;
}

static void
post_block(struct io *io, int64_t now)
{
    struct wr_span argv[1002];
    size_t n = 0;

    if (!may_block(io, now))
        return;
    if (!io->block && wr_server_open(io->server, "weir-wait", now + command_timeout(io),
                                     &io->block, NULL) != WEIR_OK) {
        drop_block(io);
        return;
    }
    io->block_ms = io->marker_lost_ms > 0 && now - io->marker_lost_ms < LOST_MEMORY_MS
                       ? BLOCK_LOST_MS
                       : BLOCK_MS;
    argv[n++] = wr_span_str("BLPOP");
    for (struct line *l = io->lines; l && n < 1000; l = l->next)
        argv[n++] = wr_queue_wake_key(l->queue);
    argv[n++] = wr_span_str(io->block_ms == BLOCK_MS ? "5" : "1");
    if (wr_conn_send(io->block, argv, n, now + command_timeout(io), NULL) != WEIR_OK) {
        drop_block(io);
        return;
    }
    io->posted = true;
    io->posted_ms = now;
}

static void
take_marker(struct io *io)
{
    struct wr_reply *reply;
    struct wr_span key;

    if (!io->posted)
        return;
    if (!wr_conn_has_reply(io->block)) {
        /* The server's own timeout follows its wall clock, which may stand still. */
        if (wr_clock_ms() > io->posted_ms + io->block_ms + BLOCK_SLACK_MS)
            drop_block(io);
        return;
    }
    io->posted = false;
    if (wr_conn_recv(io->block, wr_clock_ms() + 1000, &reply, NULL) != WEIR_OK ||
        wr_reply_kind(reply) == WR_REPLY_ERROR) {
        wr_reply_free(reply);
        drop_block(io);
        return;
    }
    key = wr_reply_span(wr_reply_at(reply, 0));
    io->timed_out = wr_reply_kind(reply) == WR_REPLY_NIL;
    for (struct line *l = io->lines; l; l = l->next) {
        struct wr_span wake = wr_queue_wake_key(l->queue);
        bool mine = wake.len == key.len && memcmp(wake.ptr, key.ptr, key.len) == 0;

        if (mine)
            l->owes_call = true;
        if (mine || io->timed_out)
            l->maybe_ready = true;
    }
    wr_reply_free(reply);
}

/* ---- stopping ---- */

static void
stop_running(struct io *io, enum wr_stop why)
{
    pthread_mutex_lock(&io->runner->mu);
    for (size_t i = 0; i < io->runner->n; i++) {
        if (io->runner->runs[i].in_use)
            wr_run_stop(&io->runner->runs[i], why);
    }
    pthread_mutex_unlock(&io->runner->mu);
}

/* What was claimed and has not started goes back at once. */
static void
release_waiting(struct io *io)
{
    struct wr_run *list = wr_runner_take_waiting(io->runner);

    while (list) {
        struct wr_run *run = list;

        list = run->next;
        put_answer(line_of(io, run->queue), WR_VERDICT_RELEASE, run);
    }
}

static void
release_alone(struct io *io)
{
    while (io->alone) {
        struct wr_run *run = take_alone(io, &io->alone);

        put_answer(line_of(io, run->queue), WR_VERDICT_RELEASE, run);
    }
}

static void
begin_drain(struct io *io, int64_t grace_ms, const char *why)
{
    if (io->state != IO_RUN)
        return;
    wr_log_info("%s: no more jobs are claimed, %zu run", why, io->outstanding);
    io->state = IO_DRAIN;
    io->began_ms = wr_clock_ms();
    io->deadline_ms = io->began_ms + grace_ms;
    release_waiting(io);
    release_alone(io);
    /* The marker that might be sent to us must not be lost with us. */
    if (io->posted)
        drop_block(io);
    for (struct line *l = io->lines; l; l = l->next)
        l->owes_call = true;
}

static void
begin_stop(struct io *io)
{
    io->state = IO_STOP;
    io->began_ms = wr_clock_ms();
    io->deadline_ms = io->began_ms + (io->orphaned ? ORPHAN_STOP_MS
                                      : io->hurry  ? HURRY_MS
                                                   : STOP_GRACE_MS);
    stop_running(io, io->hurry || io->orphaned ? WR_STOP_LOST : WR_STOP_SHUTDOWN);
}

static void
read_signals(struct io *io)
{
    struct signalfd_siginfo info;

    while (read(io->o->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (io->state == IO_RUN) {
            begin_drain(io, io->w->grace_ms, "told to stop");
        } else {
            io->hurry = true;
            if (io->state == IO_DRAIN)
                io->deadline_ms = 0;
            else
                begin_stop(io);
        }
    }
}

static bool
all_empty(const struct io *io)
{
    for (struct line *l = io->lines; l; l = l->next) {
        if (l->maybe_ready || l->owes_call)
            return false;
    }
    return io->lines_n > 0 && io->outstanding == 0;
}

/* A C handler that ignores its timeout: its job gets its answer, the others get the grace
 * time, then this process ends, for a thread cannot be ended alone. */
static void
abandon(struct io *io, struct wr_run *run)
{
    int running = WR_RUN_RUNNING;

    if (!atomic_compare_exchange_strong(&run->phase, &running, WR_RUN_ABANDONED))
        return; /* it has just ended */
    wr_log_error("job %s ignores its timeout: its handler hangs, this child is replaced",
                 run->d.id);
    put_answer(line_of(io, run->queue), wr_judge_stopped(run, WR_STOP_TIMEOUT), run);
    io->replace = true;
}

/* Timeouts of C handlers, stops that came too early, jobs that wait too long. Answers
 * when to look again. */
static int64_t
check_runs(struct io *io, int64_t now)
{
    struct wr_runner *r = io->runner;
    int64_t next = now + 60000;
    bool late = false, stuck = false, waits = false, again = now >= io->stop_again_ms;

    if (now < io->checked_ms + CHECK_MS)
        return now + CHECK_MS;
    io->checked_ms = now;
    if (again)
        io->stop_again_ms = now + STOP_AGAIN_MS;
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n; i++) {
        struct wr_run *run = &r->runs[i];
        enum wr_stop stop = (enum wr_stop)atomic_load(&run->d.stop);

        if (!run->in_use)
            continue;
        if (run->phase == WR_RUN_WAITING && !run->alone) {
            waits = true;
            stuck = stuck || now - run->claimed_ms > RECALL_MS;
            late = late || now - run->claimed_ms > AHEAD_WAIT_MS;
        }
        if (run->phase != WR_RUN_RUNNING)
            continue;
        if (run->d.stop_at_ms != 0 && now >= run->d.stop_at_ms && stop == WR_STOP_NONE)
            wr_run_stop(run, WR_STOP_TIMEOUT);
        else if (stop != WR_STOP_NONE && again)
            wr_run_stop(run, stop);
        if (run->d.stop_at_ms != 0) {
            int64_t kill_at = run->d.stop_at_ms + run->d.record.kill_after_ms;
            int64_t at = now < run->d.stop_at_ms ? run->d.stop_at_ms : kill_at;

            if (now >= kill_at)
                abandon(io, run);
            else if (at < next)
                next = at;
        }
        if (stop != WR_STOP_NONE && io->stop_again_ms < next)
            next = io->stop_again_ms;
    }
    pthread_mutex_unlock(&r->mu);
    if (late)
        release_waiting(io);
    else if (stuck)
        wr_runner_recall(r);
    if (waits && now + RECALL_MS < next)
        next = now + RECALL_MS;
    return next;
}

/* Sends what handlers said of their progress since the last look. */
static void
send_progress(struct io *io, int64_t now)
{
    struct wr_runner *r = io->runner;

    if (now < io->progress_ms || now < io->again_ms)
        return;
    io->progress_ms = now + PROGRESS_MS;
    for (size_t i = 0; i < r->n; i++) {
        struct wr_run *run = &r->runs[i];
        char id[256], token[24], text[256];
        struct wr_queue *queue = NULL;
        enum wr_extended word;

        pthread_mutex_lock(&r->mu);
        if (run->in_use && run->phase == WR_RUN_RUNNING && run->d.progress_new) {
            snprintf(id, sizeof(id), "%s", run->d.id);
            snprintf(token, sizeof(token), "%s", run->d.state.token);
            snprintf(text, sizeof(text), "%s", run->d.progress);
            run->d.progress_new = false;
            queue = run->queue;
        }
        pthread_mutex_unlock(&r->mu);
        if (queue && wr_store_progress(io->store, queue, io->o->page->worker,
                                       wr_span_str(id), wr_span_str(token),
                                       wr_span_str(text), &word, NULL) != WEIR_OK)
            return; /* for people only: the next one says more */
    }
}

static void
check_end(struct io *io)
{
    int64_t now = wr_clock_ms();

    if (io->replace)
        begin_drain(io, io->w->grace_ms, "a handler hangs");
    if (io->state == IO_RUN && jobs_left(io) <= 0 && io->outstanding == 0 &&
        io->doubt == 0)
        begin_drain(io, 0, "did as many jobs as it was told");
    if (io->state == IO_RUN && io->w->drain && all_empty(io))
        begin_drain(io, 0, "nothing is ready");
    if (io->state == IO_DRAIN && io->outstanding > 0 && now >= io->deadline_ms)
        begin_stop(io);
}

/* Answers still to be given, or markers to be given back. */
static bool
owes(const struct io *io)
{
    for (struct line *l = io->lines; l; l = l->next) {
        if (l->owes_call || l->repeat > 0)
            return true;
    }
    return answers_n(io) > 0;
}

/* C handlers that did not stop end with this process, in a moment: their jobs are handed
 * back before. Commands are not handed back while they may still run. */
static void
hand_back(struct io *io)
{
    struct wr_runner *r = io->runner;

    io->handed_back = true;
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n; i++) {
        struct wr_run *run = &r->runs[i];

        int running = WR_RUN_RUNNING;

        if (!run->in_use || !run->handler || !run->handler->ops->in_process ||
            !atomic_compare_exchange_strong(&run->phase, &running, WR_RUN_ABANDONED))
            continue;
        wr_log_error("job %s: its handler did not stop, it ends with this child",
                     run->d.id);
        put_answer(line_of(io, run->queue),
                   wr_judge_stopped(run, (enum wr_stop)atomic_load(&run->d.stop)), run);
    }
    pthread_mutex_unlock(&r->mu);
    io->deadline_ms = wr_clock_ms() + (io->orphaned ? ORPHAN_HAND_BACK_MS : HAND_BACK_MS);
}

/* Nothing more to wait for, or no more time to wait. */
static bool
is_over(struct io *io)
{
    int64_t now = wr_clock_ms();

    if (io->state == IO_RUN)
        return false;
    if (io->outstanding == 0 && !owes(io))
        return true;
    if (io->outstanding == 0) /* only markers are owed: they are not worth a long wait */
        return now >= io->began_ms + AWAY_GIVE_UP_MS;
    if (io->state == IO_DRAIN)
        return false;
    if (now < io->deadline_ms &&
        (io->failures == 0 || now < io->began_ms + AWAY_GIVE_UP_MS))
        return false;
    if (io->failures == 0 && !io->handed_back) {
        hand_back(io);
        return false;
    }
    io->lapsed = true;
    return true;
}

/* ---- the loop ---- */

/* Whatever hangs: a handler, Redis, the spawner. */
static void
end_soon(void)
{
    sigset_t mask;

    signal(SIGALRM, SIG_DFL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    alarm(ORPHAN_MAX_S);
}

static void
rest(struct io *io, int64_t next)
{
    struct wr_runner *r = io->runner;
    struct pollfd p[4];
    eventfd_t count;
    int64_t now = wr_clock_ms();
    bool finished;

    finished = !wr_runner_may_sleep(r);
    if (io->again_ms > now && io->again_ms < next)
        next = io->again_ms;
    for (const struct line *l = io->lines; l; l = l->next) {
        if (l->again_ms > now && l->again_ms < next)
            next = l->again_ms;
    }
    if (io->connect_ms > now && io->connect_ms < next)
        next = io->connect_ms;
    if (io->posted && io->posted_ms + io->block_ms + BLOCK_SLACK_MS < next)
        next = io->posted_ms + io->block_ms + BLOCK_SLACK_MS;
    if (io->registry_ms < next)
        next = io->registry_ms;
    if (io->state != IO_RUN && io->deadline_ms < next)
        next = io->deadline_ms > now ? io->deadline_ms : now + 20;
    if (next > now + 1000)
        next = now + 1000; /* the lease thread looks at our tick */
    p[0] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
    p[1] = (struct pollfd){.fd = io->posted ? wr_conn_fd(io->block) : -1,
                           .events = POLLIN};
    p[2] = (struct pollfd){.fd = io->o->signal_fd, .events = POLLIN};
    p[3] = (struct pollfd){.fd = io->orphaned ? -1 : io->o->lifeline_fd,
                           .events = POLLIN};
    poll(p, 4, finished || next <= now ? 0 : (int)(next - now));
    if (p[0].revents)
        (void)!read(r->wake_fd, &count, sizeof(count));
    if (p[2].revents)
        read_signals(io);
    if (p[3].revents) {
        wr_log_error("the supervisor is gone: jobs are stopped and handed back");
        io->orphaned = io->hurry = true;
        end_soon();
        begin_drain(io, 0, "orphaned");
        begin_stop(io);
    }
}

static bool
setup(struct io *io)
{
    struct weir_error err = {0};

    io->alone_last = &io->alone;
    if (wr_worker_connect(io->w, "weir-work", 2, command_timeout(io), &io->server,
                          &io->store, &err) != WEIR_OK) {
        wr_log_error("%s", err.text);
        return false;
    }
    return true;
}

static void
teardown(struct io *io)
{
    wr_conn_close(io->block);
    while (io->lines) {
        struct line *l = io->lines;

        io->lines = l->next;
        free(l);
    }
    wr_store_free(io->store);
    wr_server_free(io->server);
}

enum wr_child_exit
wr_io_run(const struct wr_io_options *o)
{
    struct io io = {.o = o, .w = o->worker, .runner = o->runner, .call = 1};

    if (!setup(&io))
        return WR_CHILD_STARTUP;
    while (!is_over(&io)) {
        int64_t now = wr_clock_ms(), next;
        bool done;

        atomic_store(o->tick_ms, now);
        look_for_queues(&io, now);
        collect(&io);
        take_marker(&io);
        done = serve(&io);
        wr_lease_set_processed(o->lease, io.processed);
        next = check_runs(&io, wr_clock_ms());
        send_progress(&io, wr_clock_ms());
        check_end(&io);
        if (!done) {
            post_block(&io, wr_clock_ms());
            rest(&io, next);
        } else {
            rest(&io, 0); /* signals and markers, without waiting */
        }
    }
    if (io.lapsed)
        wr_log_error(
            "%zu jobs could not be handed back: their leases will lapse and others "
            "run them",
            io.outstanding);
    atomic_store(o->tick_ms, INT64_MAX / 2); /* the end may take longer than a tick */
    teardown(&io);
    return io.lapsed        ? WR_CHILD_LAPSE
           : io.replace     ? WR_CHILD_REPLACE
           : io.handed_back ? WR_CHILD_HUNG
                            : WR_CHILD_DONE;
}
