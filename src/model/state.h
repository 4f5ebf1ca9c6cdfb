/*
 * model/state.h - the life of a job.
 *
 * This table is the law: luapack checks the contract of every Lua script against
 * it when weir is built. No code below this layer or beside it decides where a job
 * may go.
 *
 *               enqueue                  reserve                    ack
 *     none ───────────────► ready ───────────────► processing ────────────► done
 *      │ schedule   promote ▲  ▲ release, reclaim   │  │ bury, reclaim       │ forget
 *      └──────► delayed ────┘  └────────────────────┤  ▼                     ▼
 *                  ▲   retry, reclaim               │ dead ──► replay,      none
 *                  └────────────────────────────────┘          purge
 *
 * cancelled and expired have no structure: they are counted and gone.
 */
#ifndef WR_MODEL_STATE_H
#define WR_MODEL_STATE_H

#include <stdbool.h>

/* clang-format off */
/* X(NAME, word, where the job is) */
#define WR_STATES(X) \
    X(NONE,       "none",       "not stored: before enqueue, after removal") \
    X(READY,      "ready",      "waiting for a worker") \
    X(DELAYED,    "delayed",    "waiting for its time") \
    X(PROCESSING, "processing", "leased by a worker") \
    X(DEAD,       "dead",       "given up: a person decides") \
    X(DONE,       "done",       "finished; kept as long as its result") \
    X(CANCELLED,  "cancelled",  "called off") \
    X(EXPIRED,    "expired",    "too late to start")

/* X(TRANSITION, FROM, TO): the name is that of its script in lua/ENGINE/. */
#define WR_TRANSITIONS(X) \
    X(ENQUEUE, NONE, READY) \
    X(ENQUEUE, NONE, DELAYED) \
    X(ENQUEUE, NONE, PROCESSING) \
    X(SCHEDULE, NONE, DELAYED) \
    X(SCHEDULE, NONE, READY) \
    X(CALL, NONE, READY) \
    X(CALL, NONE, DELAYED) \
    X(CALL, NONE, PROCESSING) \
    X(REPLACE, READY, READY) \
    X(REPLACE, DELAYED, DELAYED) \
    X(REPLACE, READY, DELAYED) \
    X(REPLACE, DONE, READY) \
    X(REPLACE, DONE, DELAYED) \
    X(PROMOTE, DELAYED, READY) \
    X(PROMOTE, DELAYED, DEAD) \
    X(RESCHEDULE, DELAYED, DELAYED) \
    X(RESCHEDULE, DELAYED, READY) \
    X(RESCHEDULE, READY, DELAYED) \
    X(RESERVE, READY, PROCESSING) \
    X(RESERVE, READY, DEAD) \
    X(RESERVE, READY, EXPIRED) \
    X(RESERVE, READY, DELAYED) \
    X(OFFER, READY, PROCESSING) \
    X(OFFER, READY, DEAD) \
    X(OFFER, READY, EXPIRED) \
    X(OFFER, READY, DELAYED) \
    X(EXTEND, PROCESSING, PROCESSING) \
    X(PROGRESS, PROCESSING, PROCESSING) \
    X(LOG, PROCESSING, PROCESSING) \
    X(ACK, PROCESSING, DONE) \
    X(ACK_THEN, PROCESSING, DONE) \
    X(RETRY, PROCESSING, DELAYED) \
    X(RETRY, PROCESSING, CANCELLED) \
    X(BURY, PROCESSING, DEAD) \
    X(BURY, PROCESSING, CANCELLED) \
    X(WITHDRAW, PROCESSING, READY) \
    X(WITHDRAW, PROCESSING, CANCELLED) \
    X(RELEASE, PROCESSING, READY) \
    X(RELEASE, PROCESSING, CANCELLED) \
    X(RECLAIM, PROCESSING, READY) \
    X(RECLAIM, PROCESSING, DELAYED) \
    X(RECLAIM, PROCESSING, DEAD) \
    X(RECLAIM, PROCESSING, CANCELLED) \
    X(RECLAIM_HELD, PROCESSING, READY) \
    X(RECLAIM_HELD, PROCESSING, DELAYED) \
    X(RECLAIM_HELD, PROCESSING, DEAD) \
    X(RECLAIM_HELD, PROCESSING, CANCELLED) \
    X(REPAIR, PROCESSING, READY) \
    X(CANCEL, READY, CANCELLED) \
    X(CANCEL, DELAYED, CANCELLED) \
    X(CANCEL, PROCESSING, PROCESSING) \
    X(REPLAY, DEAD, READY) \
    X(REPLAY, DEAD, DELAYED) \
    X(PURGE, DEAD, NONE) \
    X(TRIM, DEAD, NONE) \
    X(CRON_FIRE, NONE, READY) \
    X(CRON_FIRE, NONE, DELAYED) \
    X(CRON_FIRE, READY, CANCELLED) \
    X(CRON_FIRE, DELAYED, CANCELLED) \
    X(CRON_FIRE, PROCESSING, PROCESSING) \
    X(CRON_RUN, NONE, READY) \
    X(CRON_RUN, READY, CANCELLED) \
    X(CRON_RUN, DELAYED, CANCELLED) \
    X(CRON_RUN, PROCESSING, PROCESSING) \
    X(FORGET, DONE, NONE) \
    X(MIGRATE, READY, READY) \
    X(MIGRATE, READY, DEAD)
/* clang-format on */

enum wr_state {
#define X(name, word, text) WR_STATE_##name,
    WR_STATES(X)
#undef X
};

/* "ready": as people and JSON see it. */
const char *wr_state_word(enum wr_state state);
bool wr_state_parse(const char *word, enum wr_state *out);

#endif
