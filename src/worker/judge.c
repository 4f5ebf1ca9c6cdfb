/* What the end of a run means for its job. No I/O: the answer is given by io_answer.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "base/text.h"
#include "model/retry.h"
#include "worker/worker_internal.h"

#define NO_HANDLER_MS 5000
#define NEWER_FORMAT_MS 30000

/* What is told of the run: of one that was given up not in its delivery, which its thread
 * goes on using. */
static void say(struct wr_run *run, const char *fmt, ...) WEIR_PRINTF(2, 3);

static void
say(struct wr_run *run, const char *fmt, ...)
{
    char text[sizeof(run->stead.error)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (wr_run_is_given_up(run))
        snprintf(run->stead.error, sizeof(run->stead.error), "%s", text);
    else
        weir_delivery_set_error(&run->d, "%s", text);
}

static int64_t *
delay_of(struct wr_run *run)
{
    return wr_run_is_given_up(run) ? &run->stead.delay_ms : &run->d.delay_ms;
}

/* A failure: again by policy, or dead when its attempts are used up. */
static enum wr_verdict
fail_run(struct wr_run *run)
{
    const struct weir_delivery *d = &run->d;
    int64_t attempts = d->state.attempts + 1, *delay_ms = delay_of(run);
    struct wr_backoff backoff;
    uint64_t random;

    *delay_ms = *delay_ms < 0 ? -1 : *delay_ms;
    if (attempts > d->record.max_retry)
        return WR_VERDICT_BURY;
    if (*delay_ms < 0) {
        char spec[256];

        snprintf(spec, sizeof(spec), "%.*s", (int)d->record.backoff.len,
                 d->record.backoff.ptr ? (const char *)d->record.backoff.ptr : "");
        if (!wr_backoff_parse(spec, &backoff))
            (void)wr_backoff_parse(NULL, &backoff);
        wr_rand_bytes(&random, sizeof(random));
        *delay_ms = wr_backoff_delay_ms(&backoff, attempts, random);
    }
    return WR_VERDICT_RETRY;
}

static enum wr_verdict
snooze_run(struct wr_run *run)
{
    int64_t most = run->d.max_snoozes > 0 ? run->d.max_snoozes : WR_SNOOZES_MAX;

    if (run->d.state.snoozes >= most) {
        weir_delivery_set_error(&run->d, "snoozed %lld time%s", (long long)most,
                                wr_text_s(most));
        run->d.delay_ms = -1;
        run->reason = "attempts";
        return fail_run(run);
    }
    if (run->d.delay_ms < 0)
        run->d.delay_ms = WR_SNOOZE_DEFAULT_MS;
    run->reason = "snoozed";
    return WR_VERDICT_RETRY;
}

/* No handler here, or a record from another version: someone else may know it. */
static enum wr_verdict
judge_unknown(struct wr_run *run)
{
    struct weir_delivery *d = &run->d;

    if (run->version >= 0 && run->version != WR_FORMAT_VERSION) {
        weir_delivery_set_error(d, "format version %d is newer than this worker",
                                run->version);
        d->delay_ms = NEWER_FORMAT_MS;
    } else if (d->type[0] == '\0') {
        weir_delivery_set_error(d, "its record cannot be read");
        run->reason = "permanent";
        return WR_VERDICT_BURY;
    } else {
        weir_delivery_set_error(d, "no handler for type %.100s on this worker", d->type);
        d->delay_ms = NO_HANDLER_MS;
    }
    run->reason = "snoozed";
    return WR_VERDICT_RETRY;
}

/* Of a run that was told to stop for this reason. */
static enum wr_verdict
judge_stopped(struct wr_run *run, enum wr_stop stop)
{
    const struct weir_delivery *d = &run->d;
    char limit[32];

    run->reason = "failed";
    switch (stop) {
    case WR_STOP_NONE:
        break;
    case WR_STOP_SHUTDOWN:
        if (d->state.interrupted < WR_INTERRUPTED_MAX)
            return WR_VERDICT_RELEASE;
        say(run, "interrupted too often");
        break;
    case WR_STOP_TIMEOUT:
        wr_text_show_duration(atomic_load(&d->limit_ms) > 0 ? atomic_load(&d->limit_ms)
                                                            : d->record.timeout_ms,
                              limit, sizeof(limit));
        say(run, "timeout after %s", limit);
        break;
    case WR_STOP_CANCELLED:
        say(run, "cancelled");
        *delay_of(run) = 0; /* the script ends it as cancelled */
        return WR_VERDICT_RETRY;
    case WR_STOP_LOST:
        return WR_VERDICT_RELEASE; /* refused if it is somebody else's by now */
    }
    run->reason = "attempts";
    return fail_run(run);
}

enum wr_verdict
wr_judge_given_up(struct wr_run *run, enum wr_stop why)
{
    run->stead = (struct wr_in_its_stead){.delay_ms = -1,
                                          .took_ms = wr_clock_ms() - run->d.started_ms};
    return judge_stopped(run, why);
}

enum wr_verdict
wr_judge(struct wr_run *run)
{
    enum wr_stop stop = (enum wr_stop)atomic_load(&run->d.stop);

    if (stop != WR_STOP_NONE && !(run->handler && run->outcome == WEIR_DONE))
        return judge_stopped(run, stop);
    if (!run->handler)
        return judge_unknown(run);
    if (run->d.not_taken) {
        if (run->d.delay_ms < 0)
            run->d.delay_ms = NO_HANDLER_MS;
        run->reason = "snoozed";
        return WR_VERDICT_RETRY;
    }
    run->reason = "failed";
    switch (run->outcome) {
    case WEIR_DONE:
        if (!wr_follow_up(run))
            break;
        return run->d.follow_n > 0 ? WR_VERDICT_ACK_THEN : WR_VERDICT_ACK;
    case WEIR_SNOOZE:
        return snooze_run(run);
    case WEIR_PERMANENT:
        run->reason = "permanent";
        return WR_VERDICT_BURY;
    case WEIR_RETRY:
        break;
    }
    if (fail_run(run) == WR_VERDICT_RETRY)
        return WR_VERDICT_RETRY;
    run->reason = "attempts";
    return WR_VERDICT_BURY;
}
