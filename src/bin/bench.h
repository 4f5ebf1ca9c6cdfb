/*
 * bin/bench.h - what the parts of weir bench share: the run, the other processes, and
 * what these tell by shared memory.
 */
#ifndef WR_BIN_BENCH_H
#define WR_BIN_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/client.h>

#include "cli/cli.h"
#include "cli/json.h"
#include "redis/url.h"

#define BENCH_QUEUE "bench"
#define BENCH_LATENESS_JOBS 200

/* Written by the other processes, read by us. */
struct bench_shared {
    _Atomic int64_t started_us; /* CLOCK_MONOTONIC at the last start of a handler */
    _Atomic int64_t runs;
    _Atomic int64_t late_us[BENCH_LATENESS_JOBS];
    struct weir_error why; /* of the process that ended by itself */
};
extern struct bench_shared *bench_shared;

struct bench;

/* Another process, of which there are at most two at a time. */
struct bench_process {
    pid_t pid;        /* 0: none */
    const char *name; /* for people */
};

struct bench {
    struct cli *cli;
    struct weir_client *client;
    struct bench_process others[2];
    char ns[64];
    const char *url;
    struct wr_url where; /* the same, with the password from elsewhere */
    int64_t jobs, payload_bytes, slots;
    struct cli_json *json;
    char *payload;
};

/* The parts. Each measures, and puts what it found into b->json. */
enum weir_err bench_enqueue(struct bench *b, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err bench_process(struct bench *b, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err bench_start(struct bench *b, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err bench_call(struct bench *b, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err bench_lateness(struct bench *b, struct weir_error *err) WEIR_MUST_CHECK;

struct weir_job bench_job(const struct bench *b, const char *type);
/* p50, p99, max and min of n numbers, which are sorted, divided by `unit`, as the member
 * `name`. Answers the p50, undivided. */
int64_t bench_tell_spread(struct bench *b, const char *name, int64_t *values, size_t n,
                          double unit);

/* ---- the other processes: bench_processes.c ---- */

/* Memory for what they tell, and SIGINT and SIGTERM caught once each: the second one ends
 * the program as ever. */
enum weir_err bench_prepare(struct weir_error *err) WEIR_MUST_CHECK;
int bench_interrupted(void); /* the signal, or 0 */

/* Runs until a SIGTERM or the end of this program; bench_check() says what `run` failed
 * of. */
enum weir_err bench_begin(struct bench *b, const char *name,
                          enum weir_err (*run)(struct bench *b, struct weir_error *err),
                          struct weir_error *err) WEIR_MUST_CHECK;
/* The worker, with a handler of "noop" and of "late". */
enum weir_err bench_begin_worker(struct bench *b, struct weir_error *err) WEIR_MUST_CHECK;
void bench_end(struct bench *b); /* all that began */
/* Why nothing comes: Redis does not answer, the queue is gone, a process ended. */
enum weir_err bench_check(struct bench *b, struct weir_error *err) WEIR_MUST_CHECK;

/* A handler starts: the other process notes when. */
void bench_note_start(void);
/* Waits until so many handlers ran. Fails when none does because a process ended, Redis
 * went away, this program is interrupted, or for no reason in a minute. */
enum weir_err
bench_wait_runs(struct bench *b, int64_t runs, struct weir_error *err) WEIR_MUST_CHECK;
/* E_CANCELLED: interrupted. */
enum weir_err bench_go_on(struct weir_error *err) WEIR_MUST_CHECK;

#endif
