/*
 * weir/cron.h - jobs that recur: "every weekday at nine in Berlin".
 *
 * An entry lives in Redis, in the queue of its jobs. Every scheduler fires it (`weir
 * work`, `weir scheduler`), and each tick makes one job, however many there are: the due
 * time is compared and set in the step that stores the job. A tick's job has the id
 * "cron:NAME:MS", MS being the tick in ms since 1970.
 *
 * Schedules: "0 9 * * mon-fri" (minute, hour, day of month, month, day of week; a sixth
 * field in front is the second), "@daily" and its kin, "every 20s". weir-cron(5) says
 * what they mean, also when clocks are changed.
 *
 * Threads, fork, ownership, errors: as weir/client.h.
 */
#ifndef WEIR_CRON_H
#define WEIR_CRON_H

#include <weir/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of ticks that no scheduler was there to fire. */
enum weir_missed {
    WEIR_MISSED_ONCE, /* one job for all of them together */
    WEIR_MISSED_SKIP, /* none; later than grace_ms counts as missed */
    WEIR_MISSED_ALL,  /* a job for each; at most the newest missed_cap of them */
};

/* What becomes of a tick while the job of the one before still waits or runs (also: waits
 * for its next attempt). */
enum weir_overlap {
    WEIR_OVERLAP_ALLOW, /* nothing: its job is made */
    WEIR_OVERLAP_SKIP,  /* it is left out */
    WEIR_OVERLAP_QUEUE, /* its job is made when that one has ended; only the last waits */
    WEIR_OVERLAP_REPLACE, /* that job is cancelled, its own is made */
};

/*
 * An entry. Zero means the default in every field but name, schedule and job:
 *
 *     struct weir_job job = {WEIR_JOB_INIT, .type = "report"};
 *     struct weir_cron entry = {WEIR_CRON_INIT, .name = "nightly", .queue = "reports",
 *                               .schedule = "0 3 * * *", .zone = "Europe/Berlin",
 *                               .job = &job};
 */
struct weir_cron {
    size_t struct_size;
    const char *queue;    /* default "default" */
    const char *name;     /* 1-100 bytes, no control characters; one of its queue */
    const char *schedule; /* at most 256 bytes */
    const char *zone;     /* of the IANA list ("Europe/Berlin"); default "UTC" */
    enum weir_missed missed;
    int64_t missed_cap; /* 1-1000; 0: 100 */
    int64_t grace_ms;   /* 0: 60 s; WEIR_NONE: none */
    enum weir_overlap overlap;
    int64_t jitter_ms; /* each job starts up to so much later; the same for all who ask */
    /* What each job is made of. queue, id, delay_ms, at_ms, replace, debounce_ms and
     * unique_conflict must not be set. The whole entry has at most 64 KiB. */
    const struct weir_job *job;
};
#define WEIR_CRON_INIT .struct_size = sizeof(struct weir_cron)

/* An entry as it is stored. Made by the library, which may add fields at the end; all
 * lives until weir_cron_info_free(), or as long as the callback that got it. */
struct weir_cron_info {
    struct weir_cron entry; /* what was stored; its job without a payload in lists */
    int64_t revision;       /* grows with each change */
    bool paused;
    bool waiting;        /* a run waits for the end of the one before (OVERLAP_QUEUE) */
    int64_t next_at;     /* the due tick, ms; 0: paused, or never again */
    int64_t last_at;     /* when the last job was made, ms; 0: none so far */
    const char *last_id; /* that job; "" if none */
    int64_t fired;       /* jobs made */
    int64_t skipped;     /* ticks without one: missed, overlapping, refused */
    int64_t now;         /* the server's time, ms */
};

/* ---- schedules ---- */

/*
 * The next n times after after_ms (ms since 1970), and any number of sentences about what
 * may surprise, a newline between them. *count may be less than n: there are no more.
 * zone NULL is UTC; warning may be NULL.
 *
 * E_DATA    not a schedule, one that never comes, or no such zone; the text says what
 * E_CONFIG  this machine has no time zone files
 */
WEIR_API enum weir_err
weir_cron_next(const char *schedule, const char *zone, int64_t after_ms, int64_t *out,
               size_t n, size_t *count, char *warning, size_t warning_len,
               struct weir_error *err) WEIR_MUST_CHECK;

/* ---- entries ---- */

#define WEIR_REVISION_ANY INT64_C(-1) /* whatever is there, or nothing */
#define WEIR_REVISION_NEW INT64_C(0)  /* there must be none */

/*
 * Stores an entry, or changes it. Idempotent: the same entry answers OK, whatever
 * revision is given (*same may be NULL). As long as schedule and zone stay the same, a
 * tick that is due stays due; else the first one after now counts. Makes the queue if
 * need be.
 *
 * E_ARG, E_DATA, E_CONFIG, E_TOO_BIG  the entry cannot be used; nothing was sent
 * E_EXISTS    REVISION_NEW, and there is another entry of this name
 * E_NO_CRON   there is none of this name to change
 * E_CHANGED   it has another revision by now
 */
WEIR_API enum weir_err
weir_cron_put(struct weir_client *client, const struct weir_cron *entry, int64_t revision,
              bool *same, struct weir_error *err) WEIR_MUST_CHECK;
/* Takes it away: no tick fires after this. Its jobs stay. E_NO_CRON, E_CHANGED. */
WEIR_API enum weir_err
weir_cron_remove(struct weir_client *client, const char *queue, const char *name,
                 int64_t revision, struct weir_error *err) WEIR_MUST_CHECK;
/* Ticks pass without a job, until it is resumed: then the first one after that counts.
 * *was (may be NULL): it was so before. E_NO_CRON. */
WEIR_API enum weir_err
weir_cron_pause(struct weir_client *client, const char *queue, const char *name,
                bool *was, struct weir_error *err) WEIR_MUST_CHECK;
WEIR_API enum weir_err
weir_cron_resume(struct weir_client *client, const char *queue, const char *name,
                 bool *was, struct weir_error *err) WEIR_MUST_CHECK;
/*
 * Makes one job now, beside the ticks; the overlap rule holds for it as well. id may be
 * NULL.
 *
 * E_NO_CRON
 * E_UNIQUE        its unique key is held, or OVERLAP_SKIP and the run before is not over
 * E_EXISTS, E_TOO_BIG  the queue refused the job
 * E_WRONG_STATE   OVERLAP_QUEUE: it waits for the end of the run before
 */
WEIR_API enum weir_err
weir_cron_run(struct weir_client *client, const char *queue, const char *name,
              struct weir_job_id *id, struct weir_error *err) WEIR_MUST_CHECK;
#define WEIR_CRON_REQUEST_MAX 40
/* The same for a caller that may repeat the call, also in another process: who gives the
 * same request within an hour gets the job of the first, and no second one is made, even
 * when that one is over. request: 1-40 letters, digits, dots, dashes, underscores; the
 * job is called cron:NAME:run-REQUEST. E_ARG. */
WEIR_API enum weir_err
weir_cron_run_as(struct weir_client *client, const char *queue, const char *name,
                 const char *request, struct weir_job_id *id,
                 struct weir_error *err) WEIR_MUST_CHECK;

/* E_NO_CRON. E_CORRUPT: it cannot be read. Free with weir_cron_info_free(). */
WEIR_API enum weir_err
weir_cron_get(struct weir_client *client, const char *queue, const char *name,
              struct weir_cron_info **out, struct weir_error *err) WEIR_MUST_CHECK;
WEIR_API void weir_cron_info_free(struct weir_cron_info *info); /* NULL is allowed */

/* Called for each entry; must not call the client. Return false to stop. info NULL: the
 * entry cannot be read. */
typedef bool (*weir_cron_fn)(const char *name, const struct weir_cron_info *info,
                             void *context);
/* The entries of a queue, by name. */
WEIR_API enum weir_err
weir_cron_list(struct weir_client *client, const char *queue, weir_cron_fn each,
               void *context, struct weir_error *err) WEIR_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
