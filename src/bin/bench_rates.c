/* weir bench: how many jobs go in, and through, in a second. */
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "bin/bench.h"

#define BATCH 1000
#define SINGLE 5000

static double
per_second(int64_t n, int64_t us)
{
    return us > 0 ? (double)n * 1e6 / (double)us : 0;
}

static enum weir_err
enqueue_single(struct bench *b, struct weir_error *err)
{
    struct weir_job job = bench_job(b, "noop");
    int64_t start = wr_clock_us(), n = b->jobs < SINGLE ? b->jobs : SINGLE;
    enum weir_err rc = WEIR_OK;

    for (int64_t i = 0; i < n && rc == WEIR_OK; i++) {
        rc = bench_go_on(err);
        if (rc == WEIR_OK)
            rc = weir_job_enqueue(b->client, &job, NULL, err);
    }
    cli_json_real(b->json, "enqueue_per_s", per_second(n, wr_clock_us() - start));
    return rc;
}

static enum weir_err
enqueue_bulk(struct bench *b, struct weir_error *err)
{
    struct weir_job *jobs = cli_alloc(BATCH * sizeof(*jobs));
    struct weir_enqueued *out = cli_alloc(BATCH * sizeof(*out));
    enum weir_err rc = WEIR_OK;
    int64_t start;

    for (int i = 0; i < BATCH; i++)
        jobs[i] = bench_job(b, "noop");
    start = wr_clock_us();
    for (int64_t left = b->jobs; left > 0 && rc == WEIR_OK; left -= BATCH) {
        rc = bench_go_on(err);
        if (rc == WEIR_OK)
            rc = weir_job_enqueue_many(b->client, jobs,
                                       left < BATCH ? (size_t)left : BATCH, out, err);
    }
    cli_json_real(b->json, "enqueue_bulk_per_s",
                  per_second(b->jobs, wr_clock_us() - start));
    free(jobs);
    free(out);
    return rc;
}

enum weir_err
bench_enqueue(struct bench *b, struct weir_error *err)
{
    enum weir_err rc = enqueue_single(b, err);

    return rc == WEIR_OK ? enqueue_bulk(b, err) : rc;
}

static int64_t
cpu_us(const struct rusage *u)
{
    return (int64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 +
           u->ru_utime.tv_usec + u->ru_stime.tv_usec;
}

enum weir_err
bench_process(struct bench *b, struct weir_error *err)
{
    struct rusage before, after;
    struct weir_audit a;
    int64_t start = 0, us;
    enum weir_err rc = weir_queue_audit(b->client, BENCH_QUEUE, &a, err);

    if (rc != WEIR_OK)
        return rc;
    bench_shared->runs = 0;
    getrusage(RUSAGE_CHILDREN, &before);
    rc = bench_begin_worker(b, err);
    if (rc == WEIR_OK)
        rc = bench_wait_runs(b, 1, err);
    start = wr_clock_us();
    if (rc == WEIR_OK)
        rc = bench_wait_runs(b, a.ready, err);
    us = wr_clock_us() - start;
    bench_end(b);
    if (rc != WEIR_OK)
        return rc;
    getrusage(RUSAGE_CHILDREN, &after);
    cli_json_real(b->json, "process_per_s", per_second(a.ready, us));
    cli_json_real(b->json, "worker_us_per_job",
                  (double)(cpu_us(&after) - cpu_us(&before)) / (double)a.ready);
    return rc;
}
