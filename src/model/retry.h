/*
 * model/retry.h - what becomes of a job whose handler did not succeed.
 *
 * Pure functions. Delays: exponential min(base * 2^(attempt-1), cap) by default
 * (base 2 s, cap 1 h, jitter 10 %), "fixed:10s", "linear:60s", "list:0s,60s,180s",
 * "exp:2s,1h". A last part "25%" is the jitter: each delay is up to so much shorter or
 * longer, but not over the cap; without one it is 10 % for exp and linear, else none.
 * Safe against overflow for any attempt.
 */
#ifndef WR_MODEL_RETRY_H
#define WR_MODEL_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#define WR_RETRY_DEFAULT 3             /* four runs */
#define WR_DELIVERIES_DEFAULT 3        /* losses before dead; 0: no limit */
#define WR_TIMEOUT_DEFAULT_MS 1800000  /* 30 min; 0: none */
#define WR_KILL_AFTER_DEFAULT_MS 10000 /* between SIGTERM and SIGKILL */
#define WR_SNOOZE_DEFAULT_MS 30000
#define WR_SNOOZES_MAX 100
#define WR_INTERRUPTED_MAX 10
#define WR_BACKOFF_MAX_STEPS 16

enum wr_backoff_kind {
    WR_BACKOFF_EXP,
    WR_BACKOFF_FIXED,
    WR_BACKOFF_LINEAR,
    WR_BACKOFF_LIST
};

struct wr_backoff {
    enum wr_backoff_kind kind;
    int64_t base_ms, cap_ms;                /* cap: exp and linear */
    unsigned jitter;                        /* percent */
    int64_t steps_ms[WR_BACKOFF_MAX_STEPS]; /* of a list; its last one repeats */
    unsigned steps;
};

/* Reads a spec; NULL or "" is the default. False if it cannot be read. */
bool wr_backoff_parse(const char *spec, struct wr_backoff *out);

/* ms before the run after `attempts` failures (1 after the first); random is any
 * number, used for the jitter: the same number gives the same delay. */
int64_t
wr_backoff_delay_ms(const struct wr_backoff *backoff, int64_t attempts, uint64_t random);

#endif
