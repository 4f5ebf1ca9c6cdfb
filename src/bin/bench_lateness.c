/* weir bench: how late delayed jobs start. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rand.h"
#include "bin/bench.h"

#define DELAY_MIN_MS 100
#define DELAY_SPREAD_MS 3000

static enum weir_err
enqueue_delayed(struct bench *b, int i, struct weir_error *err)
{
    int64_t delay = DELAY_MIN_MS + (int64_t)wr_rand_below(DELAY_SPREAD_MS);
    char number[16], due[32];
    struct weir_meta meta = {"due_us", due};
    struct weir_job job = {WEIR_JOB_INIT,     .queue = BENCH_QUEUE, .type = "late",
                           .payload = number, .delay_ms = delay,    .meta = &meta,
                           .meta_count = 1};

    snprintf(number, sizeof(number), "%d", i);
    job.payload_len = strlen(number) + 1;
    snprintf(due, sizeof(due), "%lld", (long long)(wr_clock_us() + delay * 1000));
    return weir_job_enqueue(b->client, &job, NULL, err);
}

enum weir_err
bench_lateness(struct bench *b, struct weir_error *err)
{
    int64_t us[BENCH_LATENESS_JOBS];
    enum weir_err rc = bench_begin_worker(b, err);

    bench_shared->runs = 0;
    poll(NULL, 0, 500); /* until it waits */
    for (int i = 0; i < BENCH_LATENESS_JOBS && rc == WEIR_OK; i++) {
        rc = bench_go_on(err);
        if (rc == WEIR_OK)
            rc = enqueue_delayed(b, i, err);
    }
    if (rc == WEIR_OK)
        rc = bench_wait_runs(b, BENCH_LATENESS_JOBS, err);
    bench_end(b);
    for (int i = 0; i < BENCH_LATENESS_JOBS; i++)
        us[i] = bench_shared->late_us[i];
    if (rc == WEIR_OK)
        bench_tell_spread(b, "lateness_ms", us, BENCH_LATENESS_JOBS, 1000);
    return rc;
}
