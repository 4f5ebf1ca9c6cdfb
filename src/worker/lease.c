/*
 * The lease thread: renews what this child holds, hears so of cancels, and stops jobs
 * whose lease may soon be somebody else's. It has its own connection, so neither handlers
 * nor the I/O thread can starve it; and it renews nothing for an I/O thread that is
 * stuck.
 *
 * Between renewals the sender may have the connection, for one bounded call at a time. A
 * renewal that is due waits for the end of that call, which has its own time limit, and
 * no other one begins before it. Fences do not wait for that, and for a renewal itself
 * half their margin at the most.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "worker/turns.h"
#include "worker/worker_internal.h"

#define RENEWALS 4          /* in a lease: two may fail before its jobs are stopped */
#define WAITING_MAX_MS 2000 /* a job that waits longer for its slot is not renewed */
#define IO_SLACK_MS 5000    /* a call of the I/O thread may take this long */
#define OVERTIME_MS 5000    /* beyond timeout and kill time */
#define LENT_MAX_MS 2000    /* one call of the sender */
#define LATE_MS 2           /* between two looks whether a renewal that is due begins */

struct wr_lease_thread {
    const struct weir_worker *worker;
    struct wr_runner *runner;
    char me[100];
    _Atomic int64_t *io_tick_ms;
    struct wr_server *server;
    struct wr_store *store;
    int wake_fd; /* eventfd */
    _Atomic bool hinted, stopping;
    pthread_t thread;
    struct wr_turns turns;       /* on the connection: renewals go first */
    _Atomic int64_t renew_at_ms; /* written by this thread alone */
    int64_t excused_until_ms;
    size_t held_n;      /* at the last renewal */
    _Atomic bool away;  /* written by this thread alone */
    bool failing, said; /* something could not be renewed; and at the time before */
    const struct wr_queue *mute; /* the last that had no answer: its turn comes last */
};

int64_t
wr_lease_timeout_ms(int64_t lease_ms)
{
    return lease_ms / 5 < 2000 ? lease_ms / 5 : 2000;
}

int64_t
wr_lease_reconnect_ms(int64_t lease_ms)
{
    return lease_ms / 10 < 2000 ? lease_ms / 10 : 2000;
}

int64_t
wr_lease_margin_ms(int64_t lease_ms)
{
    int64_t tenth = lease_ms / 10, least = lease_ms / 4 < 500 ? lease_ms / 4 : 500;

    return tenth > least ? tenth : least;
}

/* A copy of what must be renewed: the runs may end meanwhile. */
struct held {
    struct wr_run *run;
    struct wr_queue *queue;
    char id[256], token[WR_TOKEN_MAX];
    int64_t limit_ms;
    bool later; /* its queue comes after those that were kept waiting the last time */
};

static int64_t
limit_of(const struct wr_run *run)
{
    const struct wr_record *r = &run->d.record;
    int64_t extended = atomic_load(&run->d.limit_ms);
    int64_t limit = extended > r->timeout_ms ? extended : r->timeout_ms;
    int64_t kill_after = atomic_load(&run->d.kill_after_ms);

    return r->timeout_ms > 0 ? limit + kill_after + OVERTIME_MS : 0;
}

static bool
must_renew(const struct wr_run *run, int64_t now)
{
    if (!run->in_use || run->answered)
        return false;
    return run->alone || run->phase != WR_RUN_WAITING ||
           now - run->claimed_ms < WAITING_MAX_MS;
}

static size_t
copy_held(struct wr_lease_thread *t, struct held **out)
{
    struct wr_runner *r = t->runner;
    struct held *held = calloc(r->n, sizeof(*held));
    int64_t now = wr_clock_ms();
    size_t n = 0;

    *out = held;
    if (!held)
        return 0;
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n; i++) {
        struct wr_run *run = &r->runs[i];

        if (!must_renew(run, now))
            continue;
        held[n] = (struct held){.run = run,
                                .queue = run->queue,
                                .limit_ms = limit_of(run),
                                .later = t->mute && run->queue <= t->mute};
        snprintf(held[n].id, sizeof(held[n].id), "%s", run->d.id);
        snprintf(held[n].token, sizeof(held[n].token), "%s", run->d.state.token);
        n++;
    }
    pthread_mutex_unlock(&r->mu);
    return n;
}

static int
by_queue(const void *a, const void *b)
{
    const struct held *x = a, *y = b;

    if (x->later != y->later)
        return x->later ? 1 : -1;
    return x->queue < y->queue ? -1 : x->queue > y->queue;
}

/* Tokens are numbers of their queue: a job of another one may have the same. */
static bool
is_still_held(const struct wr_run *run, const struct held *h)
{
    return run->in_use && run->queue == h->queue && strcmp(run->d.id, h->id) == 0 &&
           strcmp(run->d.state.token, h->token) == 0;
}

static void
take_word(struct wr_lease_thread *t, const struct held *h, enum wr_extended word,
          int64_t fence_ms)
{
    struct wr_run *run = h->run;

    pthread_mutex_lock(&t->runner->mu);
    if (is_still_held(run, h)) {
        switch (word) {
        case WR_EXTEND_OK:
            atomic_store(&run->fence_ms, fence_ms);
            break;
        case WR_EXTEND_CANCEL:
            atomic_store(&run->fence_ms, fence_ms);
            wr_run_stop(run, WR_STOP_CANCELLED);
            break;
        case WR_EXTEND_TIMEOUT:
            wr_run_stop(run, WR_STOP_TIMEOUT);
            break;
        case WR_EXTEND_BEFORE:
            break; /* its answer is on its way */
        case WR_EXTEND_STALE:
        case WR_EXTEND_GONE:
            /* Once: a handler that does not heed it is renewed, in vain, until it ends.
             */
            if (run->phase != WR_RUN_FINISHED &&
                atomic_load(&run->d.stop) != WR_STOP_LOST)
                wr_log_warn("job %s: its lease is no longer ours, it is stopped", h->id);
            wr_run_stop(run, WR_STOP_LOST);
            break;
        }
    }
    pthread_mutex_unlock(&t->runner->mu);
}

/* If it goes for all queues nothing can be renewed. */
static bool
is_outage(enum weir_err rc)
{
    enum weir_err_kind kind = weir_err_kind_of(rc);

    return kind == WEIR_KIND_BUSY || kind == WEIR_KIND_UNKNOWN || rc == WEIR_E_READONLY ||
           rc == WEIR_E_SERVER;
}

/* Self-fencing: what was not renewed in time is stopped before somebody else may start
 * it. Answers when to look again, at the latest when the next one is due: the page tells
 * the supervisor of that, should this process stand still then. */
static int64_t
fence_all(struct wr_lease_thread *t)
{
    struct wr_runner *r = t->runner;
    int64_t now = wr_clock_ms(), first = INT64_MAX;

    atomic_store(&r->page->fenced_ms, now);
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n; i++) {
        struct wr_run *run = &r->runs[i];
        int64_t fence = atomic_load(&run->fence_ms);

        if (!run->in_use || run->answered || run->phase == WR_RUN_FINISHED ||
            atomic_load(&run->d.stop) == WR_STOP_LOST)
            continue;
        if (now >= fence) {
            wr_log_warn("job %s: its lease was not renewed and may lapse, it is stopped",
                        run->d.id);
            wr_run_stop(run, WR_STOP_LOST);
        } else if (fence < first) {
            first = fence;
        }
    }
    atomic_store(&r->page->fence_ms, first);
    pthread_mutex_unlock(&r->mu);
    return first < now + 60000 ? first : now + 60000;
}

/* Of a call that Redis does not answer: what is to be fenced meanwhile is late by half
 * the margin at the most. */
static int64_t
call_timeout_ms(struct wr_lease_thread *t)
{
    int64_t lease = t->worker->lease_ms, most = wr_lease_timeout_ms(lease),
            left = fence_all(t) - wr_clock_ms() + wr_lease_margin_ms(lease) / 2;

    return left < most ? left : most;
}

/* The next call would only wait as long. */
static bool
is_mute(enum weir_err rc)
{
    return rc == WEIR_E_CONNECT || rc == WEIR_E_NO_REPLY || rc == WEIR_E_POOL_FULL;
}

/* One call: the held jobs of one queue. */
static enum weir_err
renew_queue(struct wr_lease_thread *t, const struct held *held, size_t n)
{
    struct wr_holding *h = calloc(n, sizeof(*h));
    enum wr_extended *words = calloc(n, sizeof(*words));
    int64_t lease = t->worker->lease_ms;
    int64_t fence = wr_clock_ms() + lease - wr_lease_margin_ms(lease);
    struct weir_error err = {0};
    enum weir_err rc = WEIR_E_NO_MEMORY;

    for (size_t i = 0; h && i < n; i++)
        h[i] = (struct wr_holding){.id = wr_span_str(held[i].id),
                                   .token = wr_span_str(held[i].token),
                                   .limit_ms = held[i].limit_ms};
    wr_store_set_timeout(t->store, call_timeout_ms(t));
    if (h && words)
        rc = wr_store_extend(t->store, held[0].queue, t->me, lease, h, n, words, &err);
    for (size_t i = 0; rc == WEIR_OK && i < n; i++)
        take_word(t, &held[i], words[i], fence);
    if (rc != WEIR_OK && !t->said)
        wr_log_warn("leases of queue %s cannot be renewed: %s",
                    wr_queue_name(held[0].queue), err.text);
    t->failing = t->failing || rc != WEIR_OK;
    free(h);
    free(words);
    return rc;
}

/* Does Redis answer here at all? */
static bool
probe(struct wr_lease_thread *t)
{
    int64_t deadline = wr_clock_ms() + wr_lease_timeout_ms(t->worker->lease_ms);
    struct wr_reply *reply = NULL;
    struct wr_conn *conn;
    bool well;

    if (wr_server_take(t->server, deadline, &conn, NULL) != WEIR_OK)
        return false;
    well = wr_conn_do(conn, deadline, &reply, NULL, "PING", NULL) == WEIR_OK;
    wr_reply_free(reply);
    wr_server_give(t->server, conn);
    return well;
}

/* What is wrong with one queue alone, that is its own loss: the others are renewed, and
 * those behind one that has no answer come first the next time. False: Redis is away. */
static bool
renew_held(struct wr_lease_thread *t, const struct held *held, size_t n)
{
    bool any = false, outage = false, denied = false;

    for (size_t first = 0, end; first < n; first = end) {
        enum weir_err rc;

        for (end = first; end < n && held[end].queue == held[first].queue &&
                          end - first < WR_BATCH_MAX;)
            end++;
        rc = renew_queue(t, held + first, end - first);
        any = any || rc == WEIR_OK;
        outage = outage || (rc != WEIR_OK && is_outage(rc));
        denied = denied || rc == WEIR_E_DENIED;
        if (is_mute(rc)) {
            t->mute = held[first].queue;
            t->away = true;
            return false;
        }
    }
    /* Denied are the keys of these queues, or the worker itself. */
    t->away = !any && (outage || (denied && !probe(t)));
    return !t->away;
}

static bool
renew_all(struct wr_lease_thread *t)
{
    struct held *held;
    size_t n = copy_held(t, &held);
    bool ok = held != NULL;

    t->held_n = n;
    if (ok && n == 0 && t->away) { /* the last renewal failed: is it over? */
        ok = probe(t);
        t->away = !ok;
    }
    t->said = t->failing;
    t->failing = n == 0 && t->away;
    if (held)
        qsort(held, n, sizeof(*held), by_queue);
    if (ok && n > 0)
        ok = renew_held(t, held, n);
    free(held);
    return ok;
}

/* ---- the connection ---- */

/* Who has it ends in time; should he not, the pool says it to the renewal. */
static void
take_back(struct wr_lease_thread *t)
{
    int64_t deadline = wr_clock_ms() + wr_lease_timeout_ms(t->worker->lease_ms), until;

    do {
        until = fence_all(t);
        until = until < deadline ? until : deadline;
    } while (!wr_turns_claim(&t->turns, until) && wr_clock_ms() < deadline);
}

bool
wr_lease_lend(struct wr_lease_thread *t, int64_t *until_ms)
{
    int64_t timeout = wr_lease_timeout_ms(t->worker->lease_ms), now, until;

    wr_turns_take(&t->turns);
    /* On a busy machine the renewal that is due may not have said so yet. */
    while (wr_clock_ms() >= atomic_load(&t->renew_at_ms) && !atomic_load(&t->away) &&
           !atomic_load(&t->stopping)) {
        wr_turns_give(&t->turns);
        poll(NULL, 0, LATE_MS);
        wr_turns_take(&t->turns);
    }
    if (atomic_load(&t->away) && !atomic_load(&t->stopping)) {
        wr_turns_give(&t->turns);
        return false;
    }
    now = wr_clock_ms();
    until = atomic_load(&t->renew_at_ms) + timeout;
    until = until > now + timeout ? until : now + timeout;
    *until_ms = until < now + LENT_MAX_MS ? until : now + LENT_MAX_MS;
    return true;
}

void
wr_lease_give_back(struct wr_lease_thread *t)
{
    wr_turns_give(&t->turns);
}

struct wr_server *
wr_lease_server(struct wr_lease_thread *t)
{
    return t->server;
}

/* ---- the thread ---- */

/* After both were frozen, which this thread sees by what a turn of its own took, the tick
 * is old and it needs a moment. */
static bool
io_is_alive(const struct wr_lease_thread *t)
{
    if (wr_clock_ms() < t->excused_until_ms)
        return true;
    return wr_clock_ms() - atomic_load(t->io_tick_ms) < t->worker->lease_ms + IO_SLACK_MS;
}

/* While Redis is away no hint may take the time that fencing needs. */
static bool
must_renew_now(struct wr_lease_thread *t)
{
    bool hinted = atomic_exchange(&t->hinted, false);

    return (hinted && !t->away) || wr_clock_ms() >= t->renew_at_ms;
}

static void
renew(struct wr_lease_thread *t)
{
    int64_t period = t->worker->lease_ms / RENEWALS, began = wr_clock_ms();
    bool well;

    take_back(t);
    well = renew_all(t);
    /* One that failed after a while is repeated at once. */
    atomic_store(&t->renew_at_ms, began + (well ? period : period / 4 + 1));
    wr_turns_leave(&t->turns);
}

static void *
lease_main(void *arg)
{
    struct wr_lease_thread *t = arg;

    for (;;) {
        int64_t began_ms = wr_clock_ms(), now, next, wait_ms;
        struct pollfd p = {.fd = t->wake_fd, .events = POLLIN};
        eventfd_t count;

        if (!io_is_alive(t)) {
            wr_log_error(
                "the I/O thread is stuck: this child ends, its jobs go to others");
            atomic_store(&t->runner->page->ended, 1 + WR_CHILD_REPLACE);
            _exit(WR_CHILD_REPLACE);
        }
        /* Before the renewal too: it may take long, and we may have been frozen. */
        (void)fence_all(t);
        if (must_renew_now(t))
            renew(t);
        next = fence_all(t);
        next = t->renew_at_ms < next ? t->renew_at_ms : next;
        now = wr_clock_ms();
        wait_ms = next > now ? next - now : 0;
        if (poll(&p, 1, (int)wait_ms) > 0)
            (void)eventfd_read(t->wake_fd, &count);
        if (wr_clock_ms() - began_ms - wait_ms > IO_SLACK_MS)
            t->excused_until_ms = wr_clock_ms() + IO_SLACK_MS;
        if (atomic_load(&t->stopping))
            return NULL;
    }
}

enum weir_err
wr_lease_start(const struct weir_worker *w, struct wr_runner *runner, const char *worker,
               _Atomic int64_t *io_tick_ms, struct wr_lease_thread **out,
               struct weir_error *err)
{
    struct wr_lease_thread *t = calloc(1, sizeof(*t));
    int64_t timeout = wr_lease_timeout_ms(w->lease_ms);
    enum weir_err rc;

    *out = NULL;
    if (!t)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "lease thread");
    t->worker = w;
    t->runner = runner;
    t->io_tick_ms = io_tick_ms;
    snprintf(t->me, sizeof(t->me), "%s", worker);
    wr_turns_init(&t->turns);
    t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = t->wake_fd < 0
             ? wr_fail(err, WEIR_E_NO_MEMORY, errno, "lease thread")
             : wr_worker_connect(w, "weir-lease", 1, timeout, &t->server, &t->store, err);
    if (rc == WEIR_OK && pthread_create(&t->thread, NULL, lease_main, t) != 0)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, errno, "lease thread");
    if (rc != WEIR_OK) {
        wr_lease_free(t);
        return rc;
    }
    *out = t;
    return WEIR_OK;
}

static void
wake(struct wr_lease_thread *t)
{
    (void)eventfd_write(t->wake_fd, 1); /* fails only when it stands at its limit */
}

void
wr_lease_hint(struct wr_lease_thread *t)
{
    atomic_store(&t->hinted, true);
    wake(t);
}

void
wr_lease_stop(struct wr_lease_thread *t)
{
    atomic_store(&t->stopping, true);
    wake(t);
    pthread_join(t->thread, NULL);
}

void
wr_lease_free(struct wr_lease_thread *t)
{
    wr_store_free(t->store);
    wr_server_free(t->server);
    wr_turns_fini(&t->turns);
    close(t->wake_fd);
    free(t);
}

bool
wr_lease_is_away(const struct wr_lease_thread *t)
{
    return atomic_load(&t->away);
}
