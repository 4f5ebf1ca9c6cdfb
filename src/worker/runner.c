#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "worker/worker_internal.h"

#define DEAL_US 500 /* of work that a thread takes at once */
#define DEAL_MAX 64
#define QUICK_US 500 /* a moment */
#define QUICK_MIN 16 /* so many in a row: always */

static void
note_time(struct wr_runner *r, int64_t us)
{
    int64_t old = atomic_load_explicit(&r->ewma_us, memory_order_relaxed);

    /* Two threads may lose one of their figures to each other: it is an estimate. */
    atomic_store_explicit(&r->ewma_us, old < 0 ? us : old + (us - old) / 8,
                          memory_order_relaxed);
}

static void
note_quick(struct wr_handler *handler, int64_t us)
{
    unsigned n = atomic_load_explicit(&handler->quick_n, memory_order_relaxed);

    if (us > QUICK_US)
        n = 0;
    else if (n < QUICK_MIN)
        n++;
    atomic_store_explicit(&handler->quick_n, n, memory_order_relaxed);
}

static enum weir_outcome
run_handler(struct wr_runner *r, struct wr_run *run)
{
    int64_t start = wr_clock_us(), us;
    enum weir_outcome outcome;

    if (!run->handler || atomic_load(&run->d.stop) != WR_STOP_NONE)
        return WEIR_RETRY; /* judge.c knows what that means */
    outcome = wr_hooks_run(run);
    us = wr_clock_us() - start;
    note_time(r, us);
    note_quick(run->handler, us);
    return outcome;
}

/* How many to deal at once: a moment's work, and a fair share. */
static size_t
deal_size(const struct wr_runner *r)
{
    int64_t us = atomic_load_explicit(&r->ewma_us, memory_order_relaxed);
    size_t share = r->waiting / r->slots, most;

    if (us < 0 || us > DEAL_US)
        return 1;
    most = (size_t)(DEAL_US / (us + 1)) + 1;
    share = share < most ? share : most;
    return share < 1 ? 1 : share < DEAL_MAX ? share : DEAL_MAX;
}

/* With mu held and something in the list. */
static void
deal(struct wr_runner *r, struct wr_hand *hand)
{
    size_t n = deal_size(r);
    struct wr_run **at = &r->first;

    for (size_t i = 0; i < n && *at; i++) {
        r->waiting--;
        at = &(*at)->next;
    }
    pthread_mutex_lock(&hand->mu);
    hand->runs = r->first;
    r->first = *at;
    *at = NULL;
    pthread_mutex_unlock(&hand->mu);
    if (!r->first)
        r->last = &r->first;
}

/* What a thread is to do. */
struct wr_task {
    bool has_runs; /* its hand is filled */
    void (*lead)(void *context, size_t slot);
    void *context;
};

/* False when the runner is closed. Wakes the next thread if there is more to do, so that
 * a submit wakes few. */
static bool
wait_for_task(struct wr_runner *r, struct wr_hand *hand, struct wr_task *task)
{
    bool more;

    pthread_mutex_lock(&r->mu);
    while (!r->first && !r->closed && !r->lead) {
        r->idle++;
        pthread_cond_wait(&r->ready, &r->mu);
        r->idle--;
    }
    *task = (struct wr_task){r->first != NULL, r->lead, r->lead_context};
    r->lead = NULL;
    if (task->has_runs)
        deal(r, hand);
    more = r->first && r->idle > 0;
    pthread_mutex_unlock(&r->mu);
    if (more)
        pthread_cond_signal(&r->ready);
    return task->has_runs || task->lead;
}

static struct wr_run *
take_from(struct wr_hand *hand)
{
    struct wr_run *run;

    pthread_mutex_lock(&hand->mu);
    run = hand->runs;
    if (run)
        hand->runs = run->next;
    pthread_mutex_unlock(&hand->mu);
    return run;
}

static void
begin_run(struct wr_runner *r, struct wr_run *run, size_t slot)
{
    run->d.slot = slot;
    run->d.started_ms = wr_clock_ms();
    atomic_store(&run->d.stop_at_ms, run->handler && run->handler->ops->in_process &&
                                             run->d.record.timeout_ms > 0
                                         ? run->d.started_ms + run->d.record.timeout_ms
                                         : 0);
    atomic_store_explicit(&r->page->slot[run->page_slot].state, WR_SLOT_RUNNING,
                          memory_order_release);
    atomic_store(&run->phase, WR_RUN_RUNNING);
}

void
wr_runner_wake_io(struct wr_runner *r)
{
    if (atomic_exchange(&r->io_waits, false))
        (void)eventfd_write(r->wake_fd, 1); /* fails only when it stands at its limit */
}

static void
end_run(struct wr_runner *r, struct wr_run *run)
{
    int running = WR_RUN_RUNNING;
    struct wr_run *before;

    if (!atomic_compare_exchange_strong(&run->phase, &running, WR_RUN_FINISHED))
        return; /* abandoned: its answer was given, the process ends soon */
    before = atomic_load(&r->finished);
    do {
        run->next = before;
    } while (!atomic_compare_exchange_weak(&r->finished, &before, run));
    wr_runner_wake_io(r);
}

static unsigned forks; /* how many lie between the first process and this one */
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void
note_fork(void)
{
    forks++;
}

static void
count_forks(void)
{
    int rc = pthread_atfork(NULL, NULL, note_fork);

    WR_ASSERT(rc == 0);
}

/* Nothing here is its own: it would go on by the connections of the worker. */
static _Noreturn void
end_copy(const struct wr_run *run)
{
    wr_log_error("job %s: its handler forked, and the new process returned from the "
                 "handler: it ends here",
                 run->d.id);
    _exit(EXIT_FAILURE);
}

static void
run_one(struct wr_runner *r, struct wr_run *run, size_t slot)
{
    begin_run(r, run, slot);
    run->outcome = run_handler(r, run);
    if (r->forks != forks)
        end_copy(run);
    end_run(r, run);
}

void
wr_runner_run_here(struct wr_runner *r, size_t slot)
{
    struct wr_run *run;

    pthread_mutex_lock(&r->mu);
    run = r->first;
    WR_ASSERT(run);
    r->first = run->next;
    if (!r->first)
        r->last = &r->first;
    r->waiting--;
    pthread_mutex_unlock(&r->mu);
    run_one(r, run, slot);
}

struct thread_start {
    struct wr_runner *runner;
    size_t slot;
};

static void *
slot_main(void *arg)
{
    struct thread_start start = *(struct thread_start *)arg;
    struct wr_runner *r = start.runner;
    struct wr_hand *hand = &r->hands[start.slot];
    struct wr_task task;

    free(arg);
    while (wait_for_task(r, hand, &task)) {
        struct wr_run *run;

        if (task.lead)
            task.lead(task.context, start.slot);
        while ((run = take_from(hand)) != NULL)
            run_one(r, run, start.slot);
    }
    return NULL;
}

static enum weir_err
start_thread(struct wr_runner *r, size_t slot, struct weir_error *err)
{
    struct thread_start *start = malloc(sizeof(*start));
    pthread_attr_t attr;
    int rc;

    if (!start)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "slot thread");
    *start = (struct thread_start){r, slot};
    pthread_attr_init(&attr);
    rc = pthread_create(&r->threads[slot], &attr, slot_main, start);
    pthread_attr_destroy(&attr);
    if (rc != 0) {
        free(start);
        return wr_fail(err, WEIR_E_NO_MEMORY, rc, "slot thread");
    }
    r->threads_n++;
    return WEIR_OK;
}

enum weir_err
wr_runner_start(struct wr_runner *r, size_t slots, struct wr_slots *page,
                struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    *r = (struct wr_runner){.slots = slots, .page = page, .n = page->n};
    r->last = &r->first;
    r->ewma_us = -1;
    pthread_once(&forks_once, count_forks);
    r->forks = forks;
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->runs = calloc(r->n, sizeof(*r->runs));
    r->threads = calloc(slots, sizeof(*r->threads));
    r->hands = calloc(slots, sizeof(*r->hands));
    if (r->wake_fd < 0 || !r->runs || !r->threads || !r->hands)
        return wr_fail(err, WEIR_E_NO_MEMORY, errno, "runner");
    pthread_mutex_init(&r->mu, NULL);
    pthread_cond_init(&r->ready, NULL);
    for (size_t i = 0; i < slots; i++)
        pthread_mutex_init(&r->hands[i].mu, NULL);
    for (size_t i = r->n; i-- > 0;) {
        r->runs[i].page_slot = i;
        r->runs[i].next = r->free;
        r->free = &r->runs[i];
    }
    for (size_t i = 0; i < slots && rc == WEIR_OK; i++)
        rc = start_thread(r, i, err);
    return rc;
}

void
wr_runner_stop(struct wr_runner *r)
{
    pthread_mutex_lock(&r->mu);
    r->closed = true;
    pthread_cond_broadcast(&r->ready);
    pthread_mutex_unlock(&r->mu);
    for (size_t i = 0; i < r->threads_n; i++)
        pthread_join(r->threads[i], NULL);
    for (size_t i = 0; i < r->slots; i++)
        pthread_mutex_destroy(&r->hands[i].mu);
    pthread_cond_destroy(&r->ready);
    pthread_mutex_destroy(&r->mu);
    close(r->wake_fd);
    free(r->hands);
    free(r->threads);
    free(r->runs);
}

/* Threads to wake for n runs: for short ones few, which wake others if there is more. */
static size_t
wake_size(const struct wr_runner *r, size_t n)
{
    int64_t us = atomic_load_explicit(&r->ewma_us, memory_order_relaxed);

    if (us >= 0 && us <= DEAL_US && n > 1)
        n = 1;
    return n < r->idle ? n : r->idle;
}

void
wr_runner_submit(struct wr_runner *r, struct wr_run *list, size_t n, bool helps)
{
    struct wr_run *last = list;
    size_t wake;

    if (!list)
        return;
    for (struct wr_run *run = list; run; run = run->next) {
        wr_run_to_page(r->page, run);
        atomic_store(&run->phase, WR_RUN_WAITING);
        last = run;
    }
    pthread_mutex_lock(&r->mu);
    for (struct wr_run *run = list; run; run = run->next)
        wr_runner_guard(r, run);
    *r->last = list;
    r->last = &last->next;
    r->waiting += n;
    wake = wake_size(r, n - helps);
    pthread_mutex_unlock(&r->mu);
    for (; wake > 0; wake--)
        pthread_cond_signal(&r->ready);
}

size_t
wr_runner_waiting(struct wr_runner *r)
{
    size_t n;

    pthread_mutex_lock(&r->mu);
    n = r->waiting;
    pthread_mutex_unlock(&r->mu);
    return n;
}

bool
wr_runner_next_is_steady(struct wr_runner *r)
{
    const struct wr_handler *handler;

    pthread_mutex_lock(&r->mu);
    WR_ASSERT(r->first);
    handler = r->first->handler;
    pthread_mutex_unlock(&r->mu);
    return !handler ||
           atomic_load_explicit(&handler->quick_n, memory_order_relaxed) == QUICK_MIN;
}

bool
wr_runner_offer_lead(struct wr_runner *r, void (*lead)(void *context, size_t slot),
                     void *context)
{
    bool any;

    pthread_mutex_lock(&r->mu);
    any = r->idle > 0;
    if (any) {
        r->lead = lead;
        r->lead_context = context;
    }
    pthread_mutex_unlock(&r->mu);
    if (any)
        pthread_cond_signal(&r->ready);
    return any;
}

bool
wr_runner_may_sleep(struct wr_runner *r)
{
    atomic_store(&r->io_waits, true);
    if (!atomic_load(&r->finished))
        return true;
    atomic_store(&r->io_waits, false);
    return false;
}

void
wr_runner_is_awake(struct wr_runner *r)
{
    atomic_store_explicit(&r->io_waits, false, memory_order_relaxed);
}

/* With mu held. The hands' runs are older than those in the list. */
static bool
recall_hands(struct wr_runner *r)
{
    bool any = false;

    for (size_t i = 0; i < r->threads_n; i++) {
        struct wr_hand *hand = &r->hands[i];
        struct wr_run *list, **end = &list;

        pthread_mutex_lock(&hand->mu);
        list = hand->runs;
        hand->runs = NULL;
        pthread_mutex_unlock(&hand->mu);
        if (!list)
            continue;
        for (; *end; end = &(*end)->next)
            r->waiting++;
        *end = r->first;
        if (!r->first)
            r->last = end;
        r->first = list;
        any = true;
    }
    return any;
}

void
wr_runner_recall(struct wr_runner *r)
{
    pthread_mutex_lock(&r->mu);
    if (recall_hands(r)) {
        atomic_store(&r->ewma_us, DEAL_US + 1); /* one at a time, until measured again */
        pthread_cond_broadcast(&r->ready);
    }
    pthread_mutex_unlock(&r->mu);
}

/* Newest first becomes oldest first. */
static struct wr_run *
reverse(struct wr_run *list)
{
    struct wr_run *out = NULL;

    while (list) {
        struct wr_run *next = list->next;

        list->next = out;
        out = list;
        list = next;
    }
    return out;
}

struct wr_run *
wr_runner_take_finished(struct wr_runner *r)
{
    return reverse(atomic_exchange(&r->finished, NULL));
}

struct wr_run *
wr_runner_take_waiting(struct wr_runner *r)
{
    struct wr_run *list;

    pthread_mutex_lock(&r->mu);
    (void)recall_hands(r);
    list = r->first;
    r->first = NULL;
    r->last = &r->first;
    r->waiting = 0;
    for (struct wr_run *run = list; run; run = run->next)
        atomic_store(&run->phase, WR_RUN_FINISHED);
    pthread_mutex_unlock(&r->mu);
    return list;
}
