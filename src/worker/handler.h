/*
 * worker/handler.h - what a kind of handler must be able to do: C functions
 * (handler_fn.c), commands (handler_exec.c); shared objects and co-processes later.
 *
 * run() is called on a slot's own thread and blocks until the job is over. stop() may
 * come from any other thread while run() is under way, more than once, and must make
 * run() return soon if that is possible at all (a C function can only be asked).
 */
#ifndef WR_WORKER_HANDLER_H
#define WR_WORKER_HANDLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "base/buf.h"
#include "base/clock.h"
#include "model/codec.h"
#include "worker/exec.h"
#include "worker/output.h"

/* Why a run is to end before it is over. Higher ones win over lower ones. */
enum wr_stop {
    WR_STOP_NONE,
    WR_STOP_SHUTDOWN,  /* the worker ends: released, not charged */
    WR_STOP_TIMEOUT,   /* ran longer than it may: retried */
    WR_STOP_CANCELLED, /* the job was called off */
    WR_STOP_LOST, /* the lease is somebody else's, or may soon be: kill at once, no answer
                     but a release by token, which is refused if it is lost */
};

/* What is called around every handler; NULL: nothing. */
struct wr_job_hooks {
    weir_job_start_fn start;
    weir_job_end_fn end;
};

/* One delivery as a handler sees it. Owned by the runner. The name is public: handlers
 * get it as an opaque struct weir_delivery. */
struct weir_delivery {
    size_t slot;
    const char *queue, *id; /* NUL-terminated */
    const char *type;
    const char *worker, *name_space;
    struct wr_span record_bytes;
    struct wr_record record; /* payload, options, meta */
    struct wr_job_state state;
    void *context;                    /* from the startup hook */
    struct wr_sender *sender;         /* stores what it prints; NULL: nobody does */
    struct wr_output *_Atomic output; /* what it printed; NULL: nothing yet */
    int64_t handed_out_ms;            /* monotonic: when the claim's reply came */
    _Atomic int stop;                 /* enum wr_stop */
    int64_t started_ms;               /* monotonic */
    _Atomic int64_t stop_at_ms; /* monotonic: when the timeout ends of what runs in this
                                   process; 0: none */
    _Atomic bool in_hook;       /* that is a hook */
    const struct wr_job_hooks *hooks;
    _Atomic int64_t
        limit_ms; /* how long it may run in all, if not as its record says; 0 */
    _Atomic int64_t kill_after_ms; /* of its command */
    char last_error[1024];         /* of the attempt before; empty: none, or not known */

    /* What the handler said. */
    struct wr_buf result;
    struct wr_buf follow; /* follow-up jobs, as model/follow.h writes them */
    size_t follow_n;
    struct wr_buf meta_value; /* what weir_delivery_meta() answered last */
    char error[1024];
    int64_t delay_ms;    /* -1: by policy */
    int64_t max_snoozes; /* 0: as the policy says */
    bool not_taken;      /* it was not run: this worker cannot, another may */
    bool progress_new;   /* it and the text: guarded by *mu, the runner's */
    char progress[512];
    pthread_mutex_t *mu;

    /* Of a command, valid when it has ended: how, and what is kept of its standard error
     * and its notes. */
    bool has_exec;
    struct wr_exec_end exec;
    struct wr_buf log;
};

struct wr_handler;

struct wr_handler_ops {
    const char *kind; /* "function", "exec" */
    bool in_process;  /* a crash of it is a crash of the child: after a loss it runs alone
                       */
    enum weir_outcome (*run)(struct wr_handler *handler, struct weir_delivery *d);
    void (*stop)(struct wr_handler *handler, struct weir_delivery *d, enum wr_stop why);
    /* In a child that ends in order, when no run is under way any more; may be NULL. */
    void (*end)(struct wr_handler *handler);
    void (*free)(struct wr_handler *handler);
};

/* Handlers embed this as their first member. */
struct wr_handler {
    const struct wr_handler_ops *ops;
    char type[129]; /* "*": all that have none of their own */
    struct wr_handler *next;
    int64_t timeout_ms; /* its runs take no longer, whatever their jobs say; 0: as those
                           say */

    /* It cannot be started: after some failures in a row it rests, then one more try. */
    _Atomic int start_failures;
    _Atomic int64_t broken_until_ms; /* monotonic; 0: it is well */
    bool left_out; /* I/O thread: it was broken when the types were listed */

    _Atomic unsigned quick_n; /* runs in a row that were over in a moment; about */
};

/* Reserve nothing of its type now, and hand back what came. */
static inline bool
wr_handler_is_broken(const struct wr_handler *handler)
{
    int64_t until = atomic_load_explicit(&handler->broken_until_ms, memory_order_relaxed);

    return until != 0 && until > wr_clock_ms();
}

/* handler_fn.c */
struct wr_handler *wr_handler_fn_new(const char *type, weir_handler_fn fn, void *context);
/* handler_exec.c: adopts config, also when it fails. The handler talks to the spawner of
 * the child it runs in, see spawner.h. */
struct wr_exec_config;
struct wr_handler *wr_handler_exec_new(const char *type, struct wr_exec_config *config);
/* One attempt by this configuration, for handlers that make it for each job; the same
 * thread and the same stop as an exec handler's. */
enum weir_outcome
wr_exec_attempt(struct wr_handler *handler, const struct wr_exec_config *config,
                struct weir_delivery *d);
void wr_exec_attempt_stop(struct weir_delivery *d, enum wr_stop why);

/* handler_command.c: jobs that bring their command. E_CONFIG, E_ARG. */
enum weir_err
wr_handler_command_new(const struct weir_command_options *options,
                       struct wr_handler **out, struct weir_error *err) WEIR_MUST_CHECK;

/* handler_plugin.c: a shared object. The supervisor knows its types, the children load
 * it.
 */
struct wr_plugin {
    struct wr_plugin *next;
    char *path;
    char *types; /* of its handlers, one behind the other, each NUL-ended */
    size_t types_len;
    void *library;            /* in a child: of dlopen */
    struct weir_plugin table; /* a copy: of an older one the end is zero */
    void *context;            /* of its startup hook */
};

/* Looks at the file in a process of its own. E_CONFIG. */
enum weir_err wr_plugin_new(const char *path, struct wr_plugin **out,
                            struct weir_error *err) WEIR_MUST_CHECK;
void wr_plugin_free(struct wr_plugin *plugin); /* NULL is allowed */
struct wr_handler *wr_handler_plugin_new(const char *type, struct wr_plugin *plugin);
/* In a child: loads it, finds the functions of those handlers in the list that are its
 * own, and calls its startup hook. */
enum weir_err wr_plugin_load(struct wr_plugin *plugin, struct wr_handler *handlers,
                             struct weir_error *err) WEIR_MUST_CHECK;
void wr_plugin_unload(struct wr_plugin *plugin); /* its shutdown hook */

/* handler_coproc.c: adopts config, also when it fails; n processes at most, with the
 * spawner's seats from first_seat on. */
struct wr_handler *wr_handler_coproc_new(const char *type, struct wr_exec_config *config,
                                         size_t first_seat, size_t n);

#endif
