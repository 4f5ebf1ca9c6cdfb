/*
 * Co-processes as handlers: a process that stays and gets its jobs as lines of JSON. Each
 * type has a pool: a job takes a process that is idle, the one that was used last if it
 * can, and only when none is, another is started; so there are never more than slots.
 *
 * A process that ends, hangs, or says what makes no sense while it has a job costs that
 * job an attempt, and is replaced. One that does not get as far as its hello costs nobody
 * anything: the job goes to another worker or waits, and the next start is not at once.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "worker/coproc.h"
#include "worker/worker_internal.h"

#define SHUTDOWN_KILL_MS 5000
#define START_AGAIN_MS 30000 /* at most, after starts that failed */
#define TRIES 3              /* with processes that end before they read the job */

struct handler_coproc {
    struct wr_handler base;
    struct wr_exec_config *config;
    size_t n;
    pthread_mutex_t mu;     /* guards `idle`; never held while anything waits */
    struct wr_coproc *idle; /* those that run first */
    struct wr_coproc procs[];
};

/* ---- the pool ---- */

static struct wr_coproc *
take_process(struct handler_coproc *h, struct weir_delivery *d)
{
    struct wr_coproc *p;

    pthread_mutex_lock(&h->mu);
    p = h->idle;
    h->idle = p->next; /* there is one a slot */
    pthread_mutex_unlock(&h->mu);
    pthread_mutex_lock(&p->mu);
    p->current = d;
    p->killed = false;
    pthread_mutex_unlock(&p->mu);
    return p;
}

static void
give_back(struct handler_coproc *h, struct wr_coproc *p)
{
    struct wr_coproc **at = &h->idle;
    bool killed;
    char how[600];

    pthread_mutex_lock(&p->mu);
    p->current = NULL;
    killed = p->killed;
    pthread_mutex_unlock(&p->mu);
    if (p->open && (killed || p->line.last))
        (void)wr_coproc_close(p, WR_COPROC_LAST_MS, 0, how, sizeof(how));
    pthread_mutex_lock(&h->mu);
    while (!p->open && *at && (*at)->open)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
    pthread_mutex_unlock(&h->mu);
}

/* After a start that failed this worker takes no job of its type for a while; how long.
 */
static int64_t
note_start(struct wr_handler *h, bool ok)
{
    int64_t wait;
    int failures;

    if (ok) {
        atomic_store(&h->start_failures, 0);
        atomic_store(&h->broken_until_ms, 0);
        return 0;
    }
    failures = atomic_fetch_add(&h->start_failures, 1);
    wait = (int64_t)1000 << (failures < 5 ? failures : 5);
    wait = wait < START_AGAIN_MS ? wait : START_AGAIN_MS;
    atomic_store(&h->broken_until_ms, wr_clock_ms() + wait);
    return wait;
}

/* ---- a job ---- */

/* As when a command cannot be started any more: the supervisor cleans up. */
static enum weir_outcome
spawner_is_gone(void)
{
    if (!wr_spawner_current())
        return WEIR_RETRY; /* the child is about to end */
    wr_log_error("the spawner is gone: this child ends, its jobs go to others");
    _exit(WR_CHILD_REPLACE);
}

/* The job was not begun: later, or elsewhere, and nothing is charged. */
static enum weir_outcome
not_now(struct weir_delivery *d, int64_t wait_ms, const char *why)
{
    weir_delivery_set_error(d, "its co-process cannot be started: %s", why);
    if (wait_ms > 0)
        weir_delivery_set_delay(d, wait_ms);
    d->not_taken = true;
    return WEIR_SNOOZE;
}

static enum weir_outcome
open_process(struct handler_coproc *h, struct wr_coproc *p, struct weir_delivery *d,
             bool *open)
{
    char why[700] = "";
    enum wr_coproc_end end;
    int64_t wait;

    *open = false;
    if (wr_handler_is_broken(&h->base))
        return not_now(d, 0, "an earlier start failed, see the worker's log");
    end = wr_coproc_open(p, d, why, sizeof(why));
    if (end == WR_COPROC_GONE)
        return spawner_is_gone();
    *open = end == WR_COPROC_OK;
    if (atomic_load(&d->stop) != WR_STOP_NONE && !*open)
        return WEIR_RETRY; /* it was killed: no fault of the command */
    wait = note_start(&h->base, *open);
    if (*open)
        return WEIR_RETRY;
    wr_log_error("co-process for %s: %s; tried again in %lld s", h->base.type, why,
                 (long long)wait / 1000);
    return not_now(d, wait + 1000, why); /* when it may be tried again, and not before */
}

static enum weir_outcome
apply_answer(const struct wr_coproc_line *l, struct weir_delivery *d)
{
    enum weir_err rc;

    if (l->text.len > 0)
        weir_delivery_set_error(d, "%.900s", (const char *)wr_buf_span(&l->text).ptr);
    else if (l->outcome != WEIR_DONE)
        weir_delivery_set_error(d, "its co-process gave no reason");
    if (l->delay_ms >= 0)
        weir_delivery_set_delay(d, l->delay_ms);
    if (l->outcome != WEIR_DONE || !l->has_result)
        return l->outcome;
    rc = weir_delivery_set_result(d, wr_buf_span(&l->result).ptr, l->result.len);
    if (rc == WEIR_OK)
        return WEIR_DONE;
    if (rc == WEIR_E_TOO_BIG)
        weir_delivery_set_error(d, "a result of %zu bytes, %d are allowed", l->result.len,
                                WR_COPROC_RESULT_MAX);
    else
        weir_delivery_set_error(d, "out of memory for its result");
    return WEIR_RETRY;
}

/* One try. *again: a process ended without having read of the job, which is nobody's
 * fault: an exit between two jobs that nobody saw in time. */
static enum weir_outcome
try_on(struct handler_coproc *h, struct wr_coproc *p, struct weir_delivery *d,
       bool *again)
{
    char why[700] = "";
    bool open = p->open && wr_coproc_is_well(p);
    enum weir_outcome outcome;

    *again = d->not_taken = false;
    d->error[0] = '\0';
    if (atomic_load(&d->stop) != WR_STOP_NONE)
        return WEIR_RETRY;
    if (!open) {
        outcome = open_process(h, p, d, &open);
        if (!open)
            return outcome;
    }
    switch (wr_coproc_run(p, d, why, sizeof(why))) {
    case WR_COPROC_OK:
        return apply_answer(&p->line, d);
    case WR_COPROC_UNREAD:
        *again = atomic_load(&d->stop) == WR_STOP_NONE;
        return not_now(d, 0, why);
    case WR_COPROC_FAILED:
    case WR_COPROC_TIMEOUT:
        weir_delivery_set_error(d, "%s", why);
        return WEIR_RETRY;
    case WR_COPROC_GONE:
        break;
    }
    return spawner_is_gone();
}

static enum weir_outcome
run_on(struct handler_coproc *h, struct wr_coproc *p, struct weir_delivery *d)
{
    enum weir_outcome outcome = WEIR_RETRY;
    bool again = true;

    for (int i = 0; again && i < TRIES; i++)
        outcome = try_on(h, p, d, &again);
    return outcome;
}

static enum weir_outcome
coproc_run(struct wr_handler *handler, struct weir_delivery *d)
{
    struct handler_coproc *h = (struct handler_coproc *)handler;
    struct wr_coproc *p;
    enum weir_outcome outcome;

    if (!wr_spawner_current())
        return WEIR_RETRY; /* the child is about to end */
    p = take_process(h, d);
    p->line.last = false;
    outcome = run_on(h, p, d);
    give_back(h, p);
    return outcome;
}

static void
coproc_stop(struct wr_handler *handler, struct weir_delivery *d, enum wr_stop why)
{
    struct handler_coproc *h = (struct handler_coproc *)handler;
    int64_t own = h->config->o.kill_after_ms,
            kill_after = own > 0 ? own : d->record.kill_after_ms;

    if (why == WR_STOP_NONE)
        return;
    if (why == WR_STOP_SHUTDOWN)
        kill_after = SHUTDOWN_KILL_MS;
    if (why == WR_STOP_LOST)
        kill_after = 0;
    for (size_t i = 0; i < h->n; i++)
        wr_coproc_stop(&h->procs[i], d, kill_after);
}

static void
coproc_end(struct wr_handler *handler)
{
    struct handler_coproc *h = (struct handler_coproc *)handler;

    wr_coproc_close_all(h->procs, h->n);
}

static void
coproc_free(struct wr_handler *handler)
{
    struct handler_coproc *h = (struct handler_coproc *)handler;

    for (size_t i = 0; i < h->n; i++) {
        wr_coproc_line_fini(&h->procs[i].line);
        wr_buf_fini(&h->procs[i].err);
        pthread_mutex_destroy(&h->procs[i].mu);
    }
    pthread_mutex_destroy(&h->mu);
    wr_exec_config_free(h->config);
    free(h);
}

static const struct wr_handler_ops coproc_ops = {
    .kind = "coproc",
    .in_process = false,
    .run = coproc_run,
    .stop = coproc_stop,
    .end = coproc_end,
    .free = coproc_free,
};

struct wr_handler *
wr_handler_coproc_new(const char *type, struct wr_exec_config *config, size_t first_seat,
                      size_t n)
{
    struct handler_coproc *h = calloc(1, sizeof(*h) + n * sizeof(h->procs[0]));

    if (!h) {
        wr_exec_config_free(config);
        return NULL;
    }
    h->base.ops = &coproc_ops;
    h->base.timeout_ms = config->o.timeout_ms;
    snprintf(h->base.type, sizeof(h->base.type), "%s", type);
    h->config = config;
    pthread_mutex_init(&h->mu, NULL);
    for (; h->n < n; h->n++) {
        struct wr_coproc *p = &h->procs[h->n];

        *p = (struct wr_coproc){.type = h->base.type,
                                .config = config,
                                .seat = first_seat + h->n,
                                .fds = {-1, -1, -1}};
        pthread_mutex_init(&p->mu, NULL);
        p->next = h->idle;
        h->idle = p;
    }
    return &h->base;
}
