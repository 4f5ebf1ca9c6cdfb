/* Runs: one for each job that a child holds, from its claim to its answer. */
#include <stdlib.h>

#include "base/clock.h"
#include "worker/worker_internal.h"

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

void
wr_run_to_page(struct wr_slots *page, const struct wr_run *run)
{
    struct wr_slot *slot = &page->slot[run->page_slot];

    wr_span_copy(wr_span_str(run->d.queue), slot->queue, sizeof(slot->queue));
    wr_span_copy(wr_span_str(run->d.id), slot->id, sizeof(slot->id));
    wr_span_copy(wr_span_str(run->d.state.token), slot->token, sizeof(slot->token));
    atomic_store_explicit(&slot->state, WR_SLOT_CLAIMED, memory_order_release);
}

void
wr_runner_guard(struct wr_runner *r, struct wr_run *run)
{
    int64_t fence = atomic_load(&run->fence_ms);

    run->in_use = true;
    if (fence < atomic_load(&r->page->fence_ms))
        atomic_store(&r->page->fence_ms, fence);
}

void
wr_runner_hold(struct wr_runner *r, struct wr_run *run)
{
    wr_run_to_page(r->page, run);
    pthread_mutex_lock(&r->mu);
    run->phase = WR_RUN_WAITING;
    wr_runner_guard(r, run);
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
    if (run->d.follow.cap > 0)
        wr_buf_fini(&run->d.follow);
    if (run->d.result.cap > 4096)
        wr_buf_fini(&run->d.result);
    wr_buf_fini(&run->d.log);
    wr_output_let_go(&run->d);
    if (--run->ref->refs == 0) {
        wr_batch_fini(&run->ref->batch);
        free(run->ref);
    }
    run->ref = NULL;
    run->next = r->free;
    r->free = run;
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
