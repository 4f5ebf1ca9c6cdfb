/*
 * sched/sched.h - keeps queues moving: promotes what is due, takes back what lost its
 * worker, forgets and trims.
 *
 * One struct wr_sched runs in one thread (wr_sched_run blocks). Any number may run; of
 * each queue one is the leader and punctual, the others watch the lock and take over
 * when its renewal count stands still. That two believe to lead for a moment does no
 * harm: every step is one atomic script.
 *
 * Time  the leader sleeps to the microsecond on a timerfd, woken by the queue's `due`
 *       marker when an earlier job comes. Redis away: it backs off and goes on.
 */
#ifndef WR_SCHED_SCHED_H
#define WR_SCHED_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>

#include "store/store.h"

struct wr_sched;

struct wr_sched_options {
    struct wr_store *store; /* borrowed; for commands */
    const char *const
        *queues;      /* NULL at the end, borrowed; NULL: every registered queue */
    int64_t lease_ms; /* what workers use here; default 15000 */
};

enum weir_err wr_sched_new(const struct wr_sched_options *options, struct wr_sched **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/* Until stop_fd becomes readable (or its other end is closed). Gives its locks up. */
void wr_sched_run(struct wr_sched *sched, int stop_fd);
void wr_sched_free(struct wr_sched *sched); /* NULL is allowed */

#endif
