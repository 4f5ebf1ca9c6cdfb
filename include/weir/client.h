/*
 * weir/client.h - put jobs in, follow them, decide about the dead, check the sums.
 *
 * Threads    one weir_client may be used by many threads at once.
 * fork       a child may use the client it inherited; it opens connections of its
 *            own and never touches its parent's.
 * Ownership  what a function returns through `T **out` belongs to the caller and is
 *            freed by the function named beside it. `const T *` arguments are only
 *            read, and only until the call returns.
 * Time       every call ends by command_timeout_ms (waits: by their own timeout).
 * Errors     see weir/error.h. On failure *out is NULL. Besides the codes named at a
 *            function, each may report E_CONNECT, E_LOADING, E_POOL_FULL, E_DENIED,
 *            E_READONLY, E_FULL, E_REFUSED, E_NO_REPLY, E_NO_MEMORY, E_CORRUPT.
 *            E_NO_REPLY: it may have happened. Repeating an enqueue with the same id,
 *            and any other call here, does no harm.
 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_client;

/* A job's name. A value: copy it, compare it with strcmp(), never free it. */
struct weir_job_id {
    char str[256]; /* NUL-terminated; 1 to 255 bytes, no control characters */
};

/*
 * Zero means "the default" in every field. New fields are added at the end, so a
 * program built against an older header keeps working:
 *
 *     struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT, .url = url};
 */
struct weir_client_options {
    size_t struct_size;               /* set by WEIR_CLIENT_OPTIONS_INIT */
    const char *url;                  /* default: WEIR_URL, REDIS_URL, VALKEY_URL, else
                                         redis://127.0.0.1:6379/0 */
    const char *name_space;           /* default: WEIR_NAMESPACE, else "weir" */
    const char *password;             /* instead of one in the URL */
    const char *name;                 /* CLIENT SETNAME; default "weir" */
    size_t max_connections;           /* default 10 */
    int64_t pool_timeout_ms;          /* default 5000: wait for a free connection */
    int64_t connect_timeout_ms;       /* default 5000 */
    int64_t command_timeout_ms;       /* default 5000: a whole call with its repeats */
    int64_t health_check_interval_ms; /* default 30000: PING a connection idle longer */
    const char *engine;               /* of queues that this client makes: "list" or
                                         "stream"; default: WEIR_ENGINE, else "list" */
};
#define WEIR_CLIENT_OPTIONS_INIT .struct_size = sizeof(struct weir_client_options)

/*
 * Opens a client. Connects once, so that a wrong URL or password is reported here and
 * not at the first job. Free with weir_client_close().
 *
 * E_ARG, E_CONFIG   the URL, namespace or an option cannot be used
 * E_CONNECT         no server answers there
 * E_SERVER          what answers is no Redis >= 7.0 or Valkey >= 7.2
 */
WEIR_API enum weir_err
weir_client_open(const struct weir_client_options *options, struct weir_client **out,
                 struct weir_error *err) WEIR_MUST_CHECK;
/* Closes every connection. NULL is allowed. No thread may still be inside a call. */
WEIR_API void weir_client_close(struct weir_client *client);

/* ---- enqueue ---- */

#define WEIR_NONE (-1)

/* What is stored as text beside the payload; values may be any bytes but NUL. */
struct weir_meta {
    const char *name, *value;
};

/* When another job holds the unique key. */
enum weir_unique_conflict {
    WEIR_UNIQUE_REJECT,  /* E_UNIQUE; the answer says who holds it */
    WEIR_UNIQUE_REPLACE, /* if that one waits, it gets this record (and time) */
    /* The same, and if it runs, this job takes the key over and waits for its end (a day
     * at most): however many come while one runs, one more runs after it, with the record
     * of the last. One with a time of its own, or debounced, does not wait for the end.
     */
    WEIR_UNIQUE_KEEP_LAST,
};

/* One step of a chain. */
struct weir_then {
    const char *type, *queue; /* queue NULL: that of the job */
};

/*
 * A job to be stored. Zero means the default in every field; where the default is a
 * number, WEIR_NONE says "none":
 *
 *     struct weir_job job = {WEIR_JOB_INIT, .queue = "mail", .type = "welcome",
 *                            .payload = text, .payload_len = strlen(text)};
 */
struct weir_job {
    size_t struct_size;
    const char *queue; /* default "default"; 1-128 bytes, no braces, no control bytes */
    const char *type;  /* selects the handler; 1-128 bytes, no control bytes */
    const char *id;    /* NULL: made here; else 1-255 bytes, no control bytes */
    const void *payload;
    size_t payload_len; /* at most the queue's limit, by default 1 MiB */
    int64_t delay_ms;   /* start not before now + delay_ms on the server's clock */
    int64_t at_ms;      /* or not before this time, ms since 1970; 0: at once */
    int64_t max_retry;  /* runs after the first that failed; 0: the queue's default, at
                           first 3; WEIR_NONE: none */
    const char
        *backoff; /* "exp:2s,1h" (default), "fixed:10s", "linear:60s", "list:0s,60s", with
                     jitter "fixed:10s,25%"; NULL: the queue's default */
    int64_t max_deliveries; /* workers it may take with it; 0: 3, WEIR_NONE: no limit */
    int64_t timeout_ms;     /* how long a run may take; 0: 30 min, WEIR_NONE: no limit */
    int64_t kill_after_ms;  /* from SIGTERM to SIGKILL; 0: 10 s, WEIR_NONE: at once */
    int64_t keep_result_ms; /* the finished job can be looked at so long; 0: not at all */
    int64_t expires_ms;     /* do not start later than this after the enqueue; 0: never */
    const char *unique; /* refused while another waiting or running job holds this key */
    int64_t unique_window_ms; /* and for this long after the enqueue; 0: only while it
                                 lives */
    bool replace; /* a job of this id that has not started gets this record (and time),
                     one that is done and kept a new life */
    const struct weir_meta *meta;
    size_t meta_count; /* at most 64 */
    /* The states in which it holds `unique`, comma separated: ready and delayed always,
     * and any of processing, dead, done (while it is kept). NULL:
     * ready,delayed,processing. */
    const char *unique_states;
    enum weir_unique_conflict unique_conflict;
    int64_t debounce_ms; /* with `unique`: start so long after the last enqueue with this
                            key, with the record of that one; 0: no */
    /* Follow-up jobs: when this one succeeds the first is enqueued, exactly once, with
     * the result as payload, then the next after that. A step of the chain keeps its
     * result as this job does. */
    const struct weir_then *then;
    size_t then_count; /* at most 16 */
    /* Jobs of one order key run one after the other, in the order in which they were
     * enqueued: none starts before the one in front of it is done, dead, cancelled or
     * expired, however long that one waits for its time or for a retry. 1-255 bytes;
     * NULL: none. Not together with WEIR_UNIQUE_KEEP_LAST or debounce_ms. */
    const char *order_key;
    /* How long what it said of its progress can be read after it was done or cancelled,
     * weir_job_progress(), whether the job itself is kept or not; 0: the queue's default,
     * at first as long as the job; WEIR_NONE: not at all. A dead job keeps it as long as
     * it is dead. */
    int64_t keep_progress_ms;
};
#define WEIR_JOB_INIT .struct_size = sizeof(struct weir_job)

/* The answer for one job. */
struct weir_enqueued {
    enum weir_err
        code;     /* OK, E_EXISTS, E_UNIQUE, E_TOO_BIG, E_ARG; many: also E_NO_REPLY... */
    bool existed; /* OK, and the same job had been stored before */
    /* Its id. A queue that is a stream names jobs that were given none when it stores
     * them: after E_NO_REPLY that name is not known, so give ids to jobs that you may
     * have to ask for. */
    struct weir_job_id id;
    char detail[256]; /* E_EXISTS: where it is; E_UNIQUE: who holds the key, "-" while its
                         window is not over */
    bool replaced; /* OK, and it was put in place of the record of the waiting job `id` */
};

/*
 * Stores a job. Idempotent: a job with this id and the same record that lives, is dead
 * or is kept answers OK with existed; with another record E_EXISTS. out may be NULL.
 */
WEIR_API enum weir_err
weir_job_enqueue(struct weir_client *client, const struct weir_job *job,
                 struct weir_enqueued *out, struct weir_error *err) WEIR_MUST_CHECK;
/*
 * Stores n jobs in few calls; out[n] gets each answer, in their order. Jobs of one
 * queue become ready in that order. Returns OK when every one was stored or existed,
 * else the first error; the others went on, but after an error of kind BUSY, UNKNOWN
 * or BROKEN the rest is not tried (code E_CONNECT and the like, nothing changed).
 */
WEIR_API enum weir_err
weir_job_enqueue_many(struct weir_client *client, const struct weir_job *jobs, size_t n,
                      struct weir_enqueued *out, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- follow ---- */

struct weir_job_view; /* all that is known of a job at one moment */

/* E_NO_JOB: never existed, or ended and is forgotten. E_NO_QUEUE. queue NULL: every
 * registered queue is asked. Free with weir_job_view_free(). */
WEIR_API enum weir_err
weir_job_inspect(struct weir_client *client, const char *queue, const char *id,
                 struct weir_job_view **out, struct weir_error *err) WEIR_MUST_CHECK;
/* How far a job is, without its payload and its result; also of one that ended and is not
 * kept, while its progress is (keep_progress_ms): of that the view has id, queue, state
 * ("done" or "cancelled"), finished_at and the progress, and nothing else. Errors as
 * above. */
WEIR_API enum weir_err
weir_job_progress(struct weir_client *client, const char *queue, const char *id,
                  struct weir_job_view **out, struct weir_error *err) WEIR_MUST_CHECK;
/*
 * Waits until the job ended, at most timeout_ms; 0 only looks. Blocks without polling on
 * a connection of its own (beside the pool, used again by later waits), told by the
 * script that ends the job: a result comes also when the job keeps none.
 *
 * OK             done; the view has the result (if the job keeps none: only id, queue,
 *                state and result)
 * E_JOB_FAILED   it is dead (*out is set)
 * E_CANCELLED, E_EXPIRED
 * E_TIMEOUT      it still waits or runs (*out is set)
 * E_NO_JOB       no such job: it never existed, or had ended before and was not kept
 */
WEIR_API enum weir_err
weir_result_wait(struct weir_client *client, const char *queue, const char *id,
                 int64_t timeout_ms, struct weir_job_view **out,
                 struct weir_error *err) WEIR_MUST_CHECK;
/*
 * The same for many jobs at once, which may be in several queues (queue NULL). each() is
 * called for every one as it ends, with what weir_result_wait() would answer, and at the
 * end with E_TIMEOUT for the others; the view is its own (weir_job_view_free(), may be
 * NULL), and err is valid until it returns. It answers false to stop the wait, and must
 * not call the client.
 */
typedef bool (*weir_result_fn)(size_t index, enum weir_err rc, struct weir_job_view *view,
                               const struct weir_error *err, void *context);
WEIR_API enum weir_err
weir_result_wait_each(struct weir_client *client, const char *queue,
                      const char *const *ids, size_t n, int64_t timeout_ms,
                      weir_result_fn each, void *context,
                      struct weir_error *err) WEIR_MUST_CHECK;
/*
 * Request and response: stores the job and waits for its end, as the two calls, but sees
 * also the end of a job that is over at once, and is faster: who waits is registered by
 * the same call to Redis that stores the job. A job without id gets one; one that exists
 * with the same record is waited for, or looked at if it has ended. Errors of both; after
 * E_TIMEOUT and E_NO_REPLY the job may still run.
 */
WEIR_API enum weir_err
weir_call(struct weir_client *client, const struct weir_job *job, int64_t timeout_ms,
          struct weir_job_view **out, struct weir_error *err) WEIR_MUST_CHECK;
WEIR_API void weir_job_view_free(struct weir_job_view *view);

/* Views live as long as the struct. Times are ms since 1970; 0: not so far. */
WEIR_API const char *weir_job_view_id(const struct weir_job_view *v);
WEIR_API const char *weir_job_view_queue(const struct weir_job_view *v);
WEIR_API const char *weir_job_view_type(const struct weir_job_view *v);
WEIR_API const char *weir_job_view_state(const struct weir_job_view *v);  /* "ready"... */
WEIR_API const char *weir_job_view_worker(const struct weir_job_view *v); /* "" if none */
WEIR_API const char *weir_job_view_errors(
    const struct weir_job_view *v); /* of runs that did not succeed and
                                       the like: "ms outcome text\n..." */
/* The last runs, the oldest first: ten at most. What it was before its first run is told
 * too, with number 0: lost_body, no_handler. */
struct weir_attempt {
    int64_t at;          /* when it was over, ms since 1970 */
    int64_t number;      /* of the delivery, 1 for the first */
    const char *outcome; /* done, failed, snoozed, attempts (used up), permanent,
                            released, lost, lost_worker, lost_body, no_handler */
    const char *worker;  /* HOST.PID.RANDOM; "" if not known */
    const char *text;    /* why, one line, escaped; may be empty */
    int64_t wall_ms;     /* -1: not known */
    bool is_command;     /* the rest is valid */
    int exit_code;       /* -1: it was killed, or never started */
    int signal;          /* 0: none */
    int start_errno;     /* 0: it started */
    int64_t pid, user_us, sys_us, max_rss_kib, bytes_in, bytes_out, bytes_err;
    bool out_cut, err_cut; /* not all of it was kept */
    bool core;
    bool out_of_memory; /* the kernel ended something for memory just then */
};
WEIR_API const struct weir_attempt *
weir_job_view_attempts(const struct weir_job_view *v, size_t *n);
/* How far it is, or was at its end. As it is stored, for people: "40 resizing", "". */
WEIR_API const char *weir_job_view_progress(const struct weir_job_view *v);
struct weir_progress {
    int percent; /* 0 to 100; -1: not said */
    const char *stage,
        *message; /* "" if not said; of strangers, but without control bytes */
};
/* The same in its parts, which live as long as the view. */
WEIR_API void
weir_job_view_progress_parts(const struct weir_job_view *v, struct weir_progress *out);
WEIR_API const char *
weir_job_view_meta(const struct weir_job_view *v, const char *name); /* NULL */
WEIR_API const void *weir_job_view_payload(const struct weir_job_view *v, size_t *len);
WEIR_API const void *weir_job_view_result(const struct weir_job_view *v, size_t *len);
WEIR_API bool weir_job_view_is_cancelled(const struct weir_job_view *v); /* flagged */

/* Of an ordered job that waits for another of its order key: the one in front of it; "":
 * it waits for none. Its due_at is then what it waits for after that, or 0. */
WEIR_API const char *weir_job_view_behind(const struct weir_job_view *v);
struct weir_job_numbers {
    int64_t enqueued_at, due_at, started_at, finished_at, lease_until, now;
    int64_t deliveries, attempts, lost, interrupted, snoozes;
    int64_t max_retry, max_deliveries, timeout_ms, keep_result_ms;
    int64_t keep_progress_ms; /* -1: as long as the job */
};
WEIR_API void
weir_job_view_numbers(const struct weir_job_view *v, struct weir_job_numbers *out);

/* ---- what jobs print ---- */

/* Output is kept of a job's last four runs: of each its begin (16 KiB) and its end (48
 * KiB). It is there within a second while the job runs, and goes with the job. */
struct weir_output_line {
    int64_t run;     /* 1: the first delivery */
    int64_t at;      /* ms since 1970, by the server's clock */
    const char *ptr; /* any bytes, with the newline; may be empty */
    size_t len;
    bool part; /* has no newline: the next one goes on with it */
    int64_t left_out,
        left_out_lines; /* bytes and lines before this one; seldom 0 lines
                           though there are bytes: nobody could count them */
};
/* Answers false to stop. */
typedef bool (*weir_output_fn)(const struct weir_output_line *line, void *context);

/* Where a reader is. Begin with zeroes, or with a run. */
struct weir_output_place {
    int64_t run; /* 0: the newest that is kept */
    /* The library's. */
    int64_t offset, bytes, lines;
    char queue[132];
    /* Filled in by each call. */
    char state[16];     /* of the job */
    int64_t deliveries; /* so far */
    int64_t next_run;   /* that is kept after this one; 0: none */
    bool kept;          /* anything is kept of this run */
    bool open;          /* more may come of it */
};

/* Gives all that has come since the last call of one run. E_NO_JOB: as weir_job_inspect.
 * Asks little of the server when there is nothing new: a follower may call four times a
 * second. */
WEIR_API enum weir_err
weir_job_output(struct weir_client *client, const char *queue, const char *id,
                struct weir_output_place *place, weir_output_fn each, void *context,
                struct weir_error *err) WEIR_MUST_CHECK;

/* ---- decide ---- */

enum weir_cancel_result {
    WEIR_CANCELLED,      /* it waited; it will not run */
    WEIR_CANCEL_FLAGGED, /* it runs: its worker is told, its next answer ends it */
};
/* E_NO_JOB; E_WRONG_STATE: dead or done. queue NULL: as weir_job_inspect. out may be
 * NULL. */
WEIR_API enum weir_err
weir_job_cancel(struct weir_client *client, const char *queue, const char *id,
                enum weir_cancel_result *out, struct weir_error *err) WEIR_MUST_CHECK;
/*
 * When a job shall start that waits: after delay_ms from now, or not before at_ms (ms
 * since 1970); give one of them. Over already: it is ready at once. Both 0: now, before
 * all others that wait. *due_ms (may be NULL): its due time, 0 when it is ready.
 * E_NO_JOB; E_WRONG_STATE: it runs, is dead or done. queue NULL: as weir_job_inspect.
 */
WEIR_API enum weir_err
weir_job_reschedule(struct weir_client *client, const char *queue, const char *id,
                    int64_t delay_ms, int64_t at_ms, int64_t *due_ms,
                    struct weir_error *err) WEIR_MUST_CHECK;
/* Gives a dead job a new life. E_NO_JOB: not dead. E_WRONG_STATE: its body is lost.
 * E_UNIQUE. */
WEIR_API enum weir_err
weir_dead_replay(struct weir_client *client, const char *queue, const char *id,
                 struct weir_error *err) WEIR_MUST_CHECK;
WEIR_API enum weir_err
weir_dead_purge(struct weir_client *client, const char *queue, const char *id,
                struct weir_error *err) WEIR_MUST_CHECK;
/* One slice of at most `limit` (<= 1000) of the oldest dead jobs that died not after
 * before_ms (0: any). *moved 0: nothing left that can move. */
WEIR_API enum weir_err
weir_dead_replay_all(struct weir_client *client, const char *queue, size_t limit,
                     int64_t before_ms, size_t *moved,
                     struct weir_error *err) WEIR_MUST_CHECK;
/* The same page by page, for a progress bar or a pace: at most `limit` jobs are looked
 * at, behind the first *skip, which could not move. *skip begins as 0 and is kept up to
 * date; *more false: there are no more. */
WEIR_API enum weir_err
weir_dead_replay_page(struct weir_client *client, const char *queue, size_t limit,
                      int64_t before_ms, size_t *skip, bool *more, size_t *moved,
                      struct weir_error *err) WEIR_MUST_CHECK;
WEIR_API enum weir_err weir_dead_purge_all(struct weir_client *client, const char *queue,
                                           size_t limit, int64_t before_ms, size_t *moved,
                                           struct weir_error *err) WEIR_MUST_CHECK;

/* ---- lists ---- */

/* Called for each job; must not call the client. Return false to stop. */
typedef bool (*weir_job_fn)(const struct weir_job_view *view, void *context);
/* Jobs of one state (ready delayed processing dead done), in order, at most limit.
 * Views in lists have no result. */
WEIR_API enum weir_err
weir_job_list(struct weir_client *client, const char *queue, const char *state,
              size_t limit, weir_job_fn each, void *context,
              struct weir_error *err) WEIR_MUST_CHECK;

/* ---- queues ---- */

struct weir_queue_limits { /* -1: as it is */
    int64_t payload_max_bytes, kept_max_jobs, kept_max_bytes;
};
/* *made: it is new. engine: "list" or "stream"; NULL: as it is, or that of the client's
 * options. limits may be NULL. E_WRONG_ENGINE: it has another one. */
WEIR_API enum weir_err
weir_queue_create(struct weir_client *client, const char *queue, const char *engine,
                  const struct weir_queue_limits *limits, bool *made,
                  struct weir_error *err) WEIR_MUST_CHECK;
#define WEIR_DEFAULT (-2) /* a setting of a queue: the default again */

/*
 * What holds for a queue. Zero (NULL) leaves a setting as it is, WEIR_NONE is "no limit",
 * or for max_retry "no retries", WEIR_DEFAULT (backoff: "") is the default again:
 *
 *     struct weir_queue_settings s = {WEIR_QUEUE_SETTINGS_INIT, .dead_max_jobs = 1000};
 */
struct weir_queue_settings {
    size_t struct_size;
    /* Dead jobs beyond these are removed, the oldest first, booked as purged and trimmed.
     * By default 1,000,000 jobs, 180 days, 1 GiB. */
    int64_t dead_max_jobs, dead_max_age_ms, dead_max_bytes;
    /* Of jobs that are enqueued from now on and do not say it themselves. */
    int64_t max_retry;
    const char *backoff;
    /* Bytes of what jobs print (weir_job_output); beyond it the output of the runs that
     * began first goes. By default 64 MiB. */
    int64_t log_max_bytes;
    /* Of jobs that are enqueued from now on and do not say it themselves: how long their
     * progress is kept after their end. */
    int64_t keep_progress_ms;
};
#define WEIR_QUEUE_SETTINGS_INIT .struct_size = sizeof(struct weir_queue_settings)
/* E_ARG; E_NO_QUEUE: nobody made it. */
WEIR_API enum weir_err weir_queue_configure(struct weir_client *client, const char *queue,
                                            const struct weir_queue_settings *settings,
                                            struct weir_error *err) WEIR_MUST_CHECK;
/* who: one word, default the login name; why may be NULL. *was: it was so before. */
WEIR_API enum weir_err
weir_queue_pause(struct weir_client *client, const char *queue, const char *who,
                 const char *why, bool *was, struct weir_error *err) WEIR_MUST_CHECK;
WEIR_API enum weir_err
weir_queue_resume(struct weir_client *client, const char *queue, bool *was,
                  struct weir_error *err) WEIR_MUST_CHECK;
/* How far a move is. */
struct weir_migration {
    const char *engine; /* where it goes */
    int64_t processing; /* deliveries whose end is waited for */
    int64_t copied;     /* waiting jobs */
    int64_t restarts;   /* how often waiting jobs were cancelled or changed meanwhile, so
                           that the copy began anew */
};
struct weir_migrate_options {
    size_t struct_size;
    int64_t wait_ms; /* for the end of what runs; 0: a minute; WEIR_NONE: at most now */
    const char *who; /* one word, default the login name */
    /* Called now and then; must not call the client. false takes the move back. */
    bool (*each)(const struct weir_migration *m, void *context);
    void *context;
};
#define WEIR_MIGRATE_OPTIONS_INIT .struct_size = sizeof(struct weir_migrate_options)
/*
 * Moves a queue to another engine, "list" or "stream". Producers and workers may go on:
 * new jobs are taken all the time, but the queue is paused and hands out nothing until
 * all that runs has ended and what waits is copied, about a second for 100,000 jobs.
 * Nothing is lost or changes its place wherever this process or Redis is stopped: the
 * queue stays paused until the next call, which goes on, or, told the engine that the
 * queue has, takes the move back. options may be NULL; *moved: waiting jobs.
 *
 * E_TIMEOUT  jobs ran longer than wait_ms: taken back
 * E_CHANGED  somebody resumed the queue, or changes waiting jobs all the time: taken back
 * E_FULL     Redis has no room for the copy: taken back
 * E_CANCELLED  `each` said so: taken back
 * E_ARG, E_NO_QUEUE
 */
WEIR_API enum weir_err
weir_queue_migrate(struct weir_client *client, const char *queue, const char *engine,
                   const struct weir_migrate_options *options, int64_t *moved,
                   struct weir_error *err) WEIR_MUST_CHECK;
/* Cancels up to limit waiting jobs (state "ready" or "delayed"). *moved 0: none left. */
WEIR_API enum weir_err
weir_queue_purge(struct weir_client *client, const char *queue, const char *state,
                 size_t limit, size_t *moved, struct weir_error *err) WEIR_MUST_CHECK;
/* What a queue did until it was removed. */
struct weir_queue_past {
    int64_t enqueued, done, cancelled, expired, purged;
};
/*
 * Removes a queue that holds nothing, with its settings and its counters, in one step.
 * past may be NULL. Whoever enqueues into it afterwards makes it anew, also a worker that
 * serves it by name or the next step of a chain.
 *
 * E_WRONG_STATE  it holds something: jobs in any state, finished ones that are kept too;
 *                follow-up jobs on their way; cron entries; a unique key's window; or a
 *                producer called in the last minute, and might repeat that. err says what
 * E_NO_QUEUE     it is not there; its name is taken out of the registry
 */
WEIR_API enum weir_err
weir_queue_remove(struct weir_client *client, const char *queue,
                  struct weir_queue_past *past, struct weir_error *err) WEIR_MUST_CHECK;
/* E_WRONG_STATE, E_NO_QUEUE: it would not be removed. */
WEIR_API enum weir_err
weir_queue_check_unused(struct weir_client *client, const char *queue,
                        struct weir_error *err) WEIR_MUST_CHECK;
/* What keeps a queue from being removed, the first of: "processing", "ready", "delayed",
 * "dead", "done" (finished jobs that are kept), "broken" (records in no place), "outbox"
 * (follow-up jobs on their way), "moving" (to another engine), "cron" (entries),
 * "windows" (of unique keys), "producers" (that called in the last minute); "": nothing.
 * New words may come. */
struct weir_queue_use {
    char what[16];
    int64_t count;
};
/* E_NO_QUEUE */
WEIR_API enum weir_err
weir_queue_used_by(struct weir_client *client, const char *queue,
                   struct weir_queue_use *out, struct weir_error *err) WEIR_MUST_CHECK;
typedef bool (*weir_queue_fn)(const char *queue, void *context);
/* Every registered queue, by name. */
WEIR_API enum weir_err
weir_queue_list(struct weir_client *client, weir_queue_fn each, void *context,
                struct weir_error *err) WEIR_MUST_CHECK;

/* ---- the promise ---- */

/* Sizes, counters and sums of one queue, all from one moment. */
struct weir_audit {
    char engine[16];
    bool paused;
    char paused_by[64], paused_why[160];
    int64_t paused_at;
    int64_t now; /* the server's time, ms */
    /* sizes */
    int64_t ready, delayed, processing, dead, kept, jobs;
    /* counters */
    int64_t enqueued, scheduled, promoted, released, reclaimed, reclaimed_delayed,
        replayed, deliveries, done, retried, buried, cancelled_ready, cancelled_delayed,
        cancelled_processing, expired_ready, expired_delayed, lost_body_ready,
        lost_body_delayed, purged, kept_in, forgotten, stale, replaced, skipped, tokens,
        kept_bytes, deferred, trimmed, dead_bytes;
    int64_t cancelled, expired; /* sums of the above */
    /* what each equation is off by; all 0 when nothing is lost */
    int64_t gap; /* SUM: enqueued - (all places a job can be) */
    int64_t gap_processing, gap_ready, gap_delayed, gap_dead, gap_kept, gap_bodies;
    /* for status */
    int64_t overdue, stuck, next_due, oldest_ready, heartbeat_promote, heartbeat_reclaim;
    int64_t log_bytes;   /* what jobs printed that is kept */
    int64_t log_dropped; /* counter: runs whose output went for want of room */
    int64_t shelved;     /* counter: ready jobs put off, for the worker had no handler */
    int64_t shelved_at;  /* when that was last, ms; 0: never */
    char shelved_type[132]; /* and of which type that job was */
    int64_t bodies;         /* records that there must be: `jobs` when all is well */
    int64_t parked; /* of the delayed: they wait for another job of their order key */
    /* What holds for the queue: set for it, or the default. 0 of the limits of dead jobs
     * and of output: none. */
    int64_t payload_max_bytes, kept_max_jobs, kept_max_bytes, dead_max_jobs,
        dead_max_age_ms, dead_max_bytes, log_max_bytes, max_retry;
    char backoff[64];
    int64_t keep_progress_ms; /* -1: as long as the job */
    /* A move to another engine that is not over; "": none. Nothing is handed out until it
     * is: weir_queue_migrate(). */
    char moving_to[16];
    int64_t moving_at, moving_step_at; /* its begin and about its last step, ms; 0: of an
                                          older program, which did not say it */
};
WEIR_API enum weir_err
weir_queue_audit(struct weir_client *client, const char *queue, struct weir_audit *out,
                 struct weir_error *err) WEIR_MUST_CHECK;
/* True when the gap and every equation are 0. */
WEIR_API bool weir_audit_is_good(const struct weir_audit *audit);

/* Walks the structures in slices, and checks every suspicion again in one step. Each
 * finding is reported; *findings counts. Safe on a live queue. kind: "no_place",
 * "two_places", "no_body", "orphan_state", "orphan_error", "orphan_result",
 * "orphan_log", "orphan_tomb", "orphan_unique"; "orphan_order" (in the line of an order
 * key, though it is over), "not_let_in" (it waits there for nobody), "out_of_line" (it
 * does not wait); of the stream engine also "two_bodies", "unindexed", "passed_over",
 * "orphan_index". */
typedef bool (*weir_finding_fn)(const char *kind, const char *id, const char *detail,
                                void *context);
WEIR_API enum weir_err
weir_queue_audit_deep(struct weir_client *client, const char *queue, weir_finding_fn each,
                      void *context, size_t *findings,
                      struct weir_error *err) WEIR_MUST_CHECK;

struct weir_repair {
    int64_t mended; /* entries and ids that were put right */
    int64_t left;   /* findings of weir_queue_audit_deep() afterwards */
    int64_t booked; /* deliveries that nobody had any more, booked as reclaimed */
};
/*
 * Puts right what was done by hand to a queue of the stream engine: passed_over entries
 * go to the front, unindexed ones are found again, orphan_index goes, and the sums know
 * of it. Each is reported by its kind, with the detail "put right". Then the queue is
 * walked as by weir_queue_audit_deep(), and what that finds is left to a person: it is
 * reported with "left: " before its detail, such as two entries that hold one job. Of a
 * queue of the list engine nothing is put right. When `each` answers false it ends early
 * and `left` counts what was reported so far. Safe on a live queue.
 */
WEIR_API enum weir_err
weir_queue_repair(struct weir_client *client, const char *queue, weir_finding_fn each,
                  void *context, struct weir_repair *out,
                  struct weir_error *err) WEIR_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
