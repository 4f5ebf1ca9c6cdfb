/*
 * weir/worker.h - run handlers inside your own program.
 *
 *     static enum weir_outcome
 *     greet(struct weir_delivery *d, void *context)
 *     {
 *         size_t len;
 *         const char *name = weir_delivery_payload(d, &len);
 *         printf("hello %.*s\n", (int)len, name);
 *         return WEIR_DONE;
 *     }
 *
 *     weir_worker_new(&options, &worker, &err);
 *     weir_worker_handle(worker, "greet", greet, NULL, &err);
 *     weir_worker_run(worker, &err);
 *
 * Processes  weir_worker_run() makes the calling process the supervisor: it forks a
 *            service child and worker children, watches them, and returns when all
 *            have ended. The caller must have one thread only when it calls run().
 *            Handlers run in threads of the children: each slot has one, in which its
 *            jobs run one after the other. Between jobs that thread may talk to Redis,
 *            so a handler must not leave it unable to (by a seccomp filter, say).
 * Signals    while it runs, SIGTERM and SIGINT stop the worker (a second one hurries),
 *            SIGCHLD and SIGPIPE are its own; the old dispositions come back after.
 *            SIGHUP stops it too, and SIGUSR2 replaces its children one by one, if the
 *            program had left them at their default.
 * Guarantee  at least once: a handler may run again when its worker died, so make its
 *            effect idempotent, for instance by weir_delivery_id().
 */
#ifndef WEIR_WORKER_H
#define WEIR_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/client.h>
#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_worker;
struct weir_delivery; /* one hand-out of a job to this handler; valid until it returns */

enum weir_outcome {
    WEIR_DONE,   /* success; what weir_delivery_set_result() got is the result */
    WEIR_RETRY,  /* failed: again by the job's policy, dead when attempts are used up */
    WEIR_SNOOZE, /* not now: again later (30 s or weir_delivery_set_delay()), uncharged */
    WEIR_PERMANENT, /* can never work: dead at once */
};

typedef enum weir_outcome (*weir_handler_fn)(struct weir_delivery *delivery,
                                             void *context);

/* One queue of a worker that does not treat all alike. */
struct weir_worker_share {
    const char *queue;
    /* Its part of the starts while all queues have work: 6, 3 and 1 are 60, 30 and 10 %.
     * 0: not said, counts as 1; at most WEIR_WEIGHT_MAX. */
    unsigned weight;
    size_t reserved; /* slots of each child that only this queue may use */
};
#define WEIR_WEIGHT_MAX 1000

struct weir_worker_options { /* zero means the default */
    size_t struct_size;
    const char *url, *name_space, *password; /* as in weir_client_options */
    const char *const *queues; /* names, NULL at the end; NULL: every registered queue */
    size_t concurrency;        /* slots per child; default the number of CPUs */
    size_t processes;          /* worker children; default 1 */
    int64_t lease_ms;          /* default WEIR_LEASE, else 15000; 1000 to 600000 */
    int64_t grace_ms;          /* default 20000: how long running jobs get at the end */
    bool no_scheduler;         /* do not promote and reclaim here */
    bool drain;                /* end when every queue is empty (ready and delayed-due) */
    size_t max_jobs;           /* end after so many deliveries; 0: no limit */
    bool once;                 /* end after one job */
    const char *pidfile;       /* NULL: none */
    int64_t max_time_ms;       /* end after so long, as if told to stop; 0: no limit */
    bool notify; /* tell the service manager of NOTIFY_SOCKET (systemd, Type=notify) when
                    it is ready, how it is and when it ends; takes that variable and
                    WATCHDOG_USEC out of the environment */
    /* Instead of queues. Not copied further than weir_worker_new(). With reserved slots a
     * child claims only what can start at once, also of very short jobs. */
    const struct weir_worker_share *shares;
    size_t shares_count;
    bool strict; /* a queue gets a slot only while those named before it are empty; with
                    weights E_ARG */
    /* How long a run may take of a job that does not say it itself, that is, whose
     * timeout is the default of 30 min. 0: so long; WEIR_NONE: no limit. */
    int64_t job_timeout_ms;
    /* How long a job can be looked at, its result too, that is done here and does not say
     * it itself. 0: not at all. */
    int64_t keep_result_ms;
    const char *engine; /* of queues that its jobs or its cron entries make: "list" or
                           "stream"; default: WEIR_ENGINE, else "list" */
};
#define WEIR_WORKER_OPTIONS_INIT .struct_size = sizeof(struct weir_worker_options)

/* E_ARG, E_CONFIG. Does not connect. Free with weir_worker_free(). */
WEIR_API enum weir_err
weir_worker_new(const struct weir_worker_options *options, struct weir_worker **out,
                struct weir_error *err) WEIR_MUST_CHECK;
WEIR_API void weir_worker_free(struct weir_worker *worker); /* NULL is allowed */

/* Before run. type "*": every type that has no handler of its own. context is passed
 * on and stays the caller's. E_ARG: bad or second registration of a type. */
WEIR_API enum weir_err
weir_worker_handle(struct weir_worker *worker, const char *type, weir_handler_fn fn,
                   void *context, struct weir_error *err) WEIR_MUST_CHECK;
/* Runs a command per job: payload on stdin, stdout is the result, exit 0 done, 75 later,
 * 65 never, else retry. argv ends with NULL and is copied. It runs in the folder that is
 * current now. See weir-exec(7). */
WEIR_API enum weir_err
weir_worker_exec(struct weir_worker *worker, const char *type, const char *const *argv,
                 struct weir_error *err) WEIR_MUST_CHECK;

/* ---- commands with everything that a handler's section of weir.conf may set ---- */

/* What becomes of a command's standard output. */
enum weir_exec_result {
    WEIR_EXEC_STDOUT,    /* its bytes are the result, cut at result_max */
    WEIR_EXEC_NONE,      /* there is no result: it joins standard error in the log */
    WEIR_EXEC_LAST_LINE, /* the last line that is not empty, without its newline */
    WEIR_EXEC_JSON, /* the bytes, if they are one JSON text; else the attempt fails */
};

/* A rule for exit statuses first to last (0 to 255, both included). */
struct weir_exec_exit {
    int first, last;
    enum weir_outcome outcome;
};

#define WEIR_EXEC_UNLIMITED (-1)

/* Zero means the default, which is what weir_worker_exec() does, but for cwd. All is
 * copied. */
struct weir_exec_options {
    size_t struct_size;
    const char *const
        *argv;  /* NULL at the end; argv[0] without '/': looked for in PATH */
    bool shell; /* argv is one string for /bin/sh -c; $0 is "weir-job" */

    /* Environment. The worker's own secrets (WEIR_*, REDIS*, VALKEY*) never pass. */
    bool clean_env; /* of the worker's only PATH HOME USER LANG TZ and pass_env */
    const char *const *pass_env; /* names, "NAME*" for all that begin so; NULL at the end;
                                    with clean_env off they change nothing */
    const char *const *env;      /* "NAME=VALUE", NULL at the end; a name set here wins;
                                    WEIR_* is refused (E_ARG) */
    const char *cwd; /* absolute; NULL: a private folder, made for each attempt (0700)
                        and removed with all in it; WEIR_TMPDIR names it either way */
    bool keep_failed_dir; /* unless the attempt succeeded */

    enum weir_exec_result result;
    size_t result_max; /* bytes, at most and by default 65536 */

    /* Times in ms. */
    int64_t timeout_ms;      /* 0: the job's; else the shorter of the two */
    int64_t kill_after_ms;   /* from the stop signal to SIGKILL; 0: the job's */
    int64_t idle_timeout_ms; /* no output and no control line so long: as a timeout */
    int stop_signal;         /* default SIGTERM */
    bool keep_stragglers;    /* processes that a command leaves behind may go on until
                                the worker child ends; by default they are killed */

    /* Limits, set between fork and exec. 0: as the worker's; WEIR_EXEC_UNLIMITED. */
    int64_t rlimit_as, rlimit_fsize, rlimit_core; /* bytes */
    int64_t rlimit_cpu;                           /* seconds */
    int64_t rlimit_nofile, rlimit_nproc;
    int nice;         /* added to the worker's */
    int ioprio_class; /* 0: as the worker's; 1 realtime, 2 best effort, 3 idle */
    int ioprio_level; /* 0 to 7, of classes 1 and 2 */
    bool set_umask;
    unsigned umask;       /* with set_umask */
    const char *user;     /* name or number; needs a worker that runs as root */
    const char *group;    /* default: the user's */
    int oom_score_adj;    /* -1000 to 1000; 0: as the worker's */
    bool allow_new_privs; /* by default set-user-id programs gain nothing */

    /* Exit statuses: the first rule that matches counts; without one 0 is WEIR_DONE, 75
     * WEIR_SNOOZE, 65 WEIR_PERMANENT, all others WEIR_RETRY. 126 and 127 without a rule,
     * and a command that cannot be started, are retried as well; after three of them in a
     * row the handler counts as broken and this worker takes no more of its jobs. */
    const struct weir_exec_exit *exits;
    size_t exits_n;
    int64_t snooze_ms;   /* default 30000 */
    int64_t max_snoozes; /* default 100; what comes after counts as a failed attempt */

    /* The command stays and gets job after job as lines of JSON, one at a time, as
     * docs/coproc-protocol.md says; of the above these have a meaning then: argv, shell,
     * the environment, cwd (default the worker's), timeout_ms, kill_after_ms,
     * stop_signal, keep_stragglers and the limits. At most one process a slot runs. */
    bool coproc;

    /* Members of payloads that are JSON objects (text, number or bool): a word of argv
     * that is "{NAME}" becomes the member NAME, one word whatever is in it. NULL at the
     * end. A payload without one of them makes the job dead. Not with shell or coproc. */
    const char *const *json_fields;
};
#define WEIR_EXEC_OPTIONS_INIT .struct_size = sizeof(struct weir_exec_options)

/* E_ARG: a value that makes no sense, no command, an unknown user; the text says which.
 * E_NO_MEMORY. */
WEIR_API enum weir_err weir_worker_exec_with(struct weir_worker *worker, const char *type,
                                             const struct weir_exec_options *options,
                                             struct weir_error *err) WEIR_MUST_CHECK;

/* ---- commands that jobs bring (weir run): off unless this is called ---- */

/* All is copied; the file system is looked at for each job. See weir-run(1). */
struct weir_command_options {
    size_t struct_size;
    /* Which programs, with commas between: a name ("ffmpeg": the program of this name in
     * PATH), an absolute path, a pattern of such ("/usr/local/bin/" and a star), or "*"
     * for all. What counts is where a path leads in the end, without symbolic links. */
    const char *allow;
    const char *allow_env; /* variables, patterns of names; NULL: "LANG, LC_*, TZ" */
    const char *allow_cwd; /* folders, patterns of paths; NULL: none but private ones */
    const char *signature_file; /* keys, one a line; NULL: nobody looks at signatures */
    const struct weir_exec_options *exec; /* bounds of all; its argv and shell do not
                                             count. NULL: the defaults with clean_env */
};
#define WEIR_COMMAND_OPTIONS_INIT .struct_size = sizeof(struct weir_command_options)

/* Takes the jobs of type "weir.exec", which type "*" never does. A job against the rules
 * is dead with an error that names the rule. E_CONFIG: patterns or key file. E_ARG. */
WEIR_API enum weir_err weir_worker_commands(struct weir_worker *worker,
                                            const struct weir_command_options *options,
                                            struct weir_error *err) WEIR_MUST_CHECK;

/* The handlers of a shared object, see weir/handler.h; path is made absolute. The file is
 * loaded and looked at by a process of its own, now. A program that is linked with the
 * archive of libweir-worker must export its calls: -rdynamic.
 * E_CONFIG     cannot be loaded, is no plugin, or was built for another ABI
 * E_ARG        one of its types has a handler already */
WEIR_API enum weir_err weir_worker_plugin(struct weir_worker *worker, const char *path,
                                          struct weir_error *err) WEIR_MUST_CHECK;

/* Called in each worker child, on its first thread, before its first job and after its
 * last. A startup hook that answers anything but OK ends the worker with that error.
 * What it stores through *context is passed to shutdown and, as weir_delivery_context(),
 * to every handler. */
typedef enum weir_err (*weir_startup_fn)(void **context, struct weir_error *err);
typedef void (*weir_shutdown_fn)(void *context);
WEIR_API void weir_worker_on_startup(struct weir_worker *worker, weir_startup_fn fn);
WEIR_API void weir_worker_on_shutdown(struct weir_worker *worker, weir_shutdown_fn fn);

/*
 * Called in the slot's thread, right before and after the handler of each job, whatever
 * kind of handler that is; several at a time. context is what the worker's startup hook
 * stored. weir_delivery_id(), _type(), _attempt() and all others work in them; their time
 * counts as the job's.
 *
 * start   anything but OK: the handler is not called, the attempt failed (WEIR_RETRY)
 * with the text of err end     after every start, also one that failed; outcome is what
 * the handler answered. weir_delivery_should_stop() tells that it was stopped, by its
 * timeout for instance; what becomes of the job is decided after this. What it sets
 *         (_set_error(), _set_result(), _then()) counts as if the handler had
 *
 * One that crashes or exits takes its child with it, as a handler that does: the child's
 * jobs come back, those that had begun are charged a loss and run alone from then on. One
 * that hangs is given up when the job's timeout is over, and the child is replaced.
 */
typedef enum weir_err (*weir_job_start_fn)(struct weir_delivery *delivery, void *context,
                                           struct weir_error *err);
typedef void (*weir_job_end_fn)(struct weir_delivery *delivery, enum weir_outcome outcome,
                                void *context);
WEIR_API void weir_worker_on_job_start(struct weir_worker *worker, weir_job_start_fn fn);
WEIR_API void weir_worker_on_job_end(struct weir_worker *worker, weir_job_end_fn fn);

/*
 * A cron entry that belongs to this program: stored when the worker starts to run, as
 * `weir cron apply` would, and again until Redis takes it. Copied. Its queue NULL: the
 * first of the worker's queues. The same entry declared by many workers is one entry; of
 * two definitions the one of the worker that started last counts. A worker that is not
 * started anew changes nothing, so what a person changes by `weir cron edit` stays until
 * then; an entry that is paused stays paused.
 *
 * An entry that the program no longer declares stays where it is and goes on firing: take
 * it away by `weir cron remove`. It fires wherever a scheduler serves its queue.
 *
 * E_ARG, E_DATA, E_CONFIG, E_TOO_BIG  as weir_cron_put()
 */
struct weir_cron;
WEIR_API enum weir_err
weir_worker_cron(struct weir_worker *worker, const struct weir_cron *entry,
                 struct weir_error *err) WEIR_MUST_CHECK;

/*
 * Runs until told to stop: by a signal, weir_worker_stop(), by `weir worker
 * stop`, or drain / max_jobs / max_time / once.
 * OK           everything ended in order
 * E_CONNECT    jobs could not be handed back: their leases will lapse
 * E_BUG        a child could not be kept alive
 */
WEIR_API enum weir_err
weir_worker_run(struct weir_worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
/* Async-signal-safe; from the process that runs. */
WEIR_API void weir_worker_stop(struct weir_worker *worker);

/* ---- inside a handler: any thread of its own, until the handler returns ---- */

WEIR_API const char *weir_delivery_id(const struct weir_delivery *d);
WEIR_API const char *weir_delivery_queue(const struct weir_delivery *d);
WEIR_API const char *weir_delivery_type(const struct weir_delivery *d);
WEIR_API const void *weir_delivery_payload(const struct weir_delivery *d, size_t *len);
WEIR_API int64_t weir_delivery_number(const struct weir_delivery *d); /* 1 at the first */
WEIR_API int64_t
weir_delivery_attempt(const struct weir_delivery *d); /* 1 at the first */
WEIR_API int64_t weir_delivery_enqueued_at(const struct weir_delivery *d);
WEIR_API const char *weir_delivery_meta(const struct weir_delivery *d, const char *name);
WEIR_API void *weir_delivery_context(const struct weir_delivery *d); /* from startup */
/* What weir_delivery_set_error() got in this run, or why it failed; "": nothing. */
WEIR_API const char *weir_delivery_error(const struct weir_delivery *d);

/* True once the job should stop: cancelled, timed out, lease lost, or the worker ends.
 * A handler that runs long asks now and then and returns WEIR_RETRY. */
WEIR_API bool weir_delivery_should_stop(const struct weir_delivery *d);
/* Copied; at most 64 KiB are kept (E_TOO_BIG). */
WEIR_API enum weir_err
weir_delivery_set_result(struct weir_delivery *d, const void *ptr, size_t len);
/* A follow-up job: enqueued, exactly once, if and when this delivery is booked as done;
 * in any queue. Copied. Without an id it gets one that is the same for each repeat. At
 * most 100, of 1 MiB in all; 99 beside the next step of a chain. It cannot replace
 * another job. E_ARG, E_TOO_BIG, E_NO_MEMORY. */
WEIR_API enum weir_err
weir_delivery_then(struct weir_delivery *d, const struct weir_job *job,
                   struct weir_error *err) WEIR_MUST_CHECK;
/* Why it failed, one line; copied, at most 1 KiB. */
WEIR_API void
weir_delivery_set_error(struct weir_delivery *d, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Before WEIR_RETRY or WEIR_SNOOZE: when to run again, ms from now. */
WEIR_API void weir_delivery_set_delay(struct weir_delivery *d, int64_t ms);
/* percent 0-100 or -1; text one line. Written to Redis at most twice a second, the newest
 * counts; refused there once the delivery is over or another's. It can be read as long as
 * the job, weir_job_view_progress_parts(). */
WEIR_API void
weir_delivery_progress(struct weir_delivery *d, int percent, const char *text);
/* The same with the name of what the job is at: "download", "resize". NULL: none. */
WEIR_API void weir_delivery_progress_stage(struct weir_delivery *d, const char *stage,
                                           int percent, const char *text);
/* A line of the job's output, without its newline: `weir job logs` shows it within a
 * second, on any host. Never waits for Redis. Of a run the first 16 KiB and the last
 * 48 KiB are kept; of a flood 50 lines a second are stored, the others are counted. */
WEIR_API void
weir_delivery_log(struct weir_delivery *d, const char *fmt, ...) WEIR_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif
