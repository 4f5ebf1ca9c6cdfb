/*
 * sched/sched_internal.h - a scheduler and what it knows of each queue; private to
 * sched/.
 *
 * sched.c leads, and does what is due; sched_wait.c is how it is woken by due markers.
 */
#ifndef WR_SCHED_SCHED_INTERNAL_H
#define WR_SCHED_SCHED_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/conn.h"
#include "sched/cron_fire.h"
#include "sched/quiet.h"
#include "sched/sched.h"
#include "store/store.h"

#define WR_SCHED_PROMOTE_IDLE_MS 5000
/* Follow-up jobs whose worker has had so long to enqueue them. */
#define WR_SCHED_RELAY_AGE_MS 1000
#define WR_SCHED_AWAY_MAX_MS 1000

enum step {
    LEAD,
    PROMOTE,
    CRON,
    RECLAIM,
    FORGET,
    TRIM,
    SWEEP,
    RELAY,
    STEPS
};

/* What is known of one queue. All times are monotonic, in us. */
struct watch {
    struct watch *next;
    struct wr_queue *queue;
    bool listed; /* at the last look into the registry */
    bool leads;
    char seen[128]; /* the lock's value at the last look, while another leads */
    int still;      /* looks at which it had not changed */
    int64_t at[STEPS];
    bool broken[STEPS]; /* said once, until it works again */
    bool awaited;       /* conn blocks on its due marker, or did */
    int64_t owes_until; /* took the marker and leads no more: promotes until then */
    size_t batch;
    struct wr_quiet quiet;
    struct wr_sweep sweep;
    int64_t trimmed; /* since it was last said */
    struct wr_cron_watch cron;
};

struct wr_sched {
    struct wr_store *store;
    const char *const *names;
    int64_t lease_ms;
    char me[100];
    struct watch *watches;
    int64_t registry_at;
    bool registry_broken; /* said once */

    struct wr_conn *conn; /* blocks on the due markers of what this one leads */
    bool posted;
    bool stale; /* what it leads is no longer what conn waits for */
    int64_t posted_us, connect_at;
    size_t turn; /* which queue comes first in the next wait */
    unsigned conn_failures;
    char run_id[64]; /* of the server that conn reached last */

    int timer;
    bool away; /* the server does not answer, or not now: said once */
    unsigned failures;
    int64_t retry_at;
};

static inline int64_t
wr_sched_us(int64_t ms)
{
    return ms * 1000;
}

/* ---- sched_wait.c ---- */

size_t wr_sched_count_led(const struct wr_sched *s);
/* Asks to be woken by the due markers of the queues it leads. */
void wr_sched_post_block(struct wr_sched *s);
/* If one came: its queue is looked at. Gives up a wait that was not answered in time. */
void wr_sched_take_marker(struct wr_sched *s);
/* When it is to be given up, or may be tried again, us. */
int64_t wr_sched_block_until(const struct wr_sched *s);

#endif
