/*
 * How many commands a second the spawner runs, next to what `xargs -P` does with the same
 * command. One line of JSON.
 *
 *     bench_spawner [jobs [slots]]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "worker/spawner.h"

#define SLOTS_MAX 64

static struct wr_spawner *spawner;
static _Atomic int64_t jobs_left, failed;

static void *
run_jobs(void *arg)
{
    static const char *const argv[] = {"true", NULL}, *const env[] = {NULL};
    const struct wr_exec_run run = {.argv = argv,
                                    .env = env,
                                    .timeout_ms = 60000,
                                    .kill_after_ms = 1000,
                                    .result_max = 65536,
                                    .control = true};
    const size_t *slot = arg;
    struct wr_buf out = {0}, err = {0};

    while (jobs_left-- > 0) {
        struct wr_exec_end end;

        wr_buf_clear(&out);
        wr_buf_clear(&err);
        if (wr_spawner_run(spawner, *slot, &run, NULL, &out, &err, &end, NULL) !=
                WEIR_OK ||
            end.exit_code != 0)
            failed++;
    }
    wr_buf_fini(&out);
    wr_buf_fini(&err);
    return NULL;
}

static double
spawner_rate(int64_t jobs, size_t n)
{
    struct wr_slots *slots = wr_slots_new(n);
    pthread_t threads[SLOTS_MAX];
    size_t numbers[SLOTS_MAX], started = 0;
    int64_t start;
    double rate;

    if (!slots || wr_spawner_start(slots, n, &spawner, NULL) != WEIR_OK) {
        fputs("bench_spawner: cannot start the spawner\n", stderr);
        exit(70);
    }
    jobs_left = jobs;
    start = wr_clock_us();
    for (; started < n; started++) {
        numbers[started] = started;
        if (pthread_create(&threads[started], NULL, run_jobs, &numbers[started]) != 0)
            break;
    }
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    rate = (double)jobs * 1e6 / (double)(wr_clock_us() - start);
    wr_spawner_stop(spawner);
    wr_slots_free(slots);
    return rate;
}

/* 0: it could not be run. */
static double
xargs_rate(int64_t jobs, size_t n)
{
    char line[128];
    int64_t start = wr_clock_us();

    snprintf(line, sizeof(line), "seq %lld | xargs -P%zu -n1 true", (long long)jobs, n);
    if (system(line) != 0)
        return 0;
    return (double)jobs * 1e6 / (double)(wr_clock_us() - start);
}

int
main(int argc, char **argv)
{
    int64_t jobs = 2000, n = 2;
    double ours, theirs;

    if ((argc > 1 && !wr_text_int(argv[1], 1, 10000000, &jobs)) ||
        (argc > 2 && !wr_text_int(argv[2], 1, SLOTS_MAX, &n))) {
        fputs("usage: bench_spawner [jobs [slots]]\n", stderr);
        return 64;
    }
    ours = spawner_rate(jobs, (size_t)n);
    theirs = xargs_rate(jobs, (size_t)n);
    printf("{\"jobs\":%lld,\"slots\":%lld,\"failed\":%lld,\"jobs_per_s\":%.0f,"
           "\"xargs_jobs_per_s\":%.0f}\n",
           (long long)jobs, (long long)n, (long long)failed, ours, theirs);
    return failed == 0 ? 0 : 1;
}
