/*
 * The hooks around a job, in its slot's thread. A handler that runs in another process
 * has its times kept there; a hook runs here, so the I/O thread watches it as it watches
 * a C handler: stop_at_ms says until when.
 */
#include "base/clock.h"
#include "base/error.h"
#include "worker/worker_internal.h"

static void
begin_hook(struct weir_delivery *d)
{
    int64_t timeout = d->record.timeout_ms;

    if (atomic_load(&d->stop_at_ms) == 0 && timeout > 0)
        atomic_store(&d->stop_at_ms, wr_clock_ms() + timeout);
    atomic_store(&d->in_hook, true);
}

static void
end_hook(struct wr_run *run)
{
    atomic_store(&run->d.in_hook, false);
    if (!run->handler->ops->in_process)
        atomic_store(&run->d.stop_at_ms, 0);
}

bool
wr_hook_start(weir_job_start_fn start, struct weir_delivery *d, void *context)
{
    struct weir_error err = {0};
    enum weir_err rc = start(d, context, &err);

    if (rc != WEIR_OK)
        weir_delivery_set_error(d, "the hook before the job: %.400s",
                                err.text[0] ? err.text : weir_err_name(rc));
    return rc == WEIR_OK;
}

/* False: the handler is not to be called, the attempt failed. */
static bool
call_start(struct wr_run *run, void *context)
{
    bool ok;

    begin_hook(&run->d);
    ok = wr_hook_start(run->d.hooks->start, &run->d, context);
    end_hook(run);
    return ok;
}

static enum weir_outcome
call_handler(struct wr_run *run)
{
    int64_t start = wr_clock_us();
    enum weir_outcome outcome = run->handler->ops->run(run->handler, &run->d);

    run->took_ms = (wr_clock_us() - start + 500) / 1000;
    return outcome;
}

enum weir_outcome
wr_hooks_run(struct wr_run *run)
{
    const struct wr_job_hooks *hooks = run->d.hooks;
    void *context = run->d.context; /* a plugin's handlers see another */
    enum weir_outcome outcome = WEIR_RETRY;

    if (!hooks->start && !hooks->end)
        return call_handler(run);
    if (!hooks->start || call_start(run, context))
        outcome = call_handler(run);
    run->d.context = context;
    if (hooks->end) {
        begin_hook(&run->d);
        hooks->end(&run->d, outcome, context);
        end_hook(run);
    }
    return outcome;
}
