#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "worker/worker_internal.h"

static void
note_time(struct wr_runner *r, int64_t us)
{
    int64_t old = atomic_load_explicit(&r->ewma_us, memory_order_relaxed);

    /* Two threads may lose one of their figures to each other: it is an estimate. */
    atomic_store_explicit(&r->ewma_us, old < 0 ? us : old + (us - old) / 8,
                          memory_order_relaxed);
}

static enum weir_outcome
run_handler(struct wr_runner *r, struct wr_run *run)
{
    int64_t start = wr_clock_us();
    enum weir_outcome outcome;

    if (!run->handler || atomic_load(&run->d.stop) != WR_STOP_NONE)
        return WEIR_RETRY; /* io.c knows what that means */
    outcome = run->handler->ops->run(run->handler, &run->d);
    note_time(r, wr_clock_us() - start);
    return outcome;
}

/* With mu held: the next run, or NULL when the runner is closed. */
static struct wr_run *
wait_for_run(struct wr_runner *r)
{
    struct wr_run *run;

    while (!r->first && !r->closed)
        pthread_cond_wait(&r->ready, &r->mu);
    run = r->first;
    if (!run)
        return NULL;
    r->first = run->next;
    if (!r->first)
        r->last = &r->first;
    r->waiting--;
    r->running++;
    run->phase = WR_RUN_RUNNING;
    return run;
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
    struct wr_run *run;

    free(arg);
    pthread_mutex_lock(&r->mu);
    while ((run = wait_for_run(r)) != NULL) {
        bool wake;

        run->d.slot = start.slot;
        run->d.started_ms = wr_clock_ms();
        run->d.stop_at_ms = run->handler && run->handler->ops->in_process &&
                                    run->d.record.timeout_ms > 0
                                ? run->d.started_ms + run->d.record.timeout_ms
                                : 0;
        atomic_store_explicit(&r->page->slot[run->page_slot].state, WR_SLOT_RUNNING,
                              memory_order_release);
        pthread_mutex_unlock(&r->mu);

        run->outcome = run_handler(r, run);

        pthread_mutex_lock(&r->mu);
        r->running--;
        if (run->phase == WR_RUN_ABANDONED)
            continue; /* its answer was given: the process ends soon */
        run->phase = WR_RUN_FINISHED;
        run->next = r->finished;
        r->finished = run;
        wake = r->io_waits;
        r->io_waits = false;
        if (wake && eventfd_write(r->wake_fd, 1) != 0)
            r->io_waits = true;
    }
    pthread_mutex_unlock(&r->mu);
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
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->runs = calloc(r->n, sizeof(*r->runs));
    r->threads = calloc(slots, sizeof(*r->threads));
    if (r->wake_fd < 0 || !r->runs || !r->threads)
        return wr_fail(err, WEIR_E_NO_MEMORY, errno, "runner");
    pthread_mutex_init(&r->mu, NULL);
    pthread_cond_init(&r->ready, NULL);
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
    pthread_cond_destroy(&r->ready);
    pthread_mutex_destroy(&r->mu);
    close(r->wake_fd);
    free(r->threads);
    free(r->runs);
}

struct wr_run *
wr_runner_new_run(struct wr_runner *r)
{
    struct wr_run *run = r->free;

    if (!run)
        return NULL;
    r->free = run->next;
    run->next = NULL;
    return run;
}

static void
copy_to_page(struct wr_slot *slot, const struct wr_run *run)
{
    snprintf(slot->queue, sizeof(slot->queue), "%s", run->d.queue);
    snprintf(slot->id, sizeof(slot->id), "%s", run->d.id);
    snprintf(slot->token, sizeof(slot->token), "%s", run->d.state.token);
    atomic_store_explicit(&slot->state, WR_SLOT_CLAIMED, memory_order_release);
}

void
wr_runner_hold(struct wr_runner *r, struct wr_run *run)
{
    copy_to_page(&r->page->slot[run->page_slot], run);
    pthread_mutex_lock(&r->mu);
    run->phase = WR_RUN_WAITING;
    run->in_use = true;
    pthread_mutex_unlock(&r->mu);
}

void
wr_runner_submit(struct wr_runner *r, struct wr_run *run)
{
    copy_to_page(&r->page->slot[run->page_slot], run);
    pthread_mutex_lock(&r->mu);
    run->phase = WR_RUN_WAITING;
    run->in_use = true;
    run->next = NULL;
    *r->last = run;
    r->last = &run->next;
    r->waiting++;
    pthread_cond_signal(&r->ready);
    pthread_mutex_unlock(&r->mu);
}

void
wr_runner_free_run(struct wr_runner *r, struct wr_run *run)
{
    atomic_store_explicit(&r->page->slot[run->page_slot].state, WR_SLOT_FREE,
                          memory_order_release);
    pthread_mutex_lock(&r->mu);
    run->in_use = false;
    pthread_mutex_unlock(&r->mu);
    wr_record_fini(&run->d.record);
    if (run->d.result.cap > 4096)
        wr_buf_fini(&run->d.result);
    if (--run->ref->refs == 0) {
        wr_batch_fini(&run->ref->batch);
        free(run->ref);
    }
    run->ref = NULL;
    run->next = r->free;
    r->free = run;
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
    struct wr_run *list;

    pthread_mutex_lock(&r->mu);
    list = r->finished;
    r->finished = NULL;
    pthread_mutex_unlock(&r->mu);
    return reverse(list);
}

struct wr_run *
wr_runner_take_waiting(struct wr_runner *r)
{
    struct wr_run *list;

    pthread_mutex_lock(&r->mu);
    list = r->first;
    r->first = NULL;
    r->last = &r->first;
    r->waiting = 0;
    for (struct wr_run *run = list; run; run = run->next)
        run->phase = WR_RUN_FINISHED;
    pthread_mutex_unlock(&r->mu);
    return list;
}

void
wr_run_stop(struct wr_run *run, enum wr_stop why)
{
    int before = atomic_load(&run->d.stop);

    while (before < (int)why &&
           !atomic_compare_exchange_weak(&run->d.stop, &before, (int)why))
        continue;
    if (run->stopped_ms == 0)
        run->stopped_ms = wr_clock_ms();
    if (run->phase == WR_RUN_RUNNING && run->handler)
        run->handler->ops->stop(run->handler, &run->d,
                                (enum wr_stop)atomic_load(&run->d.stop));
}
