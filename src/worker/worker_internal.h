/*
 * worker/worker_internal.h - the struct behind struct weir_worker, and what a child is
 * made of; private to worker/.
 *
 * Processes: supervisor.c (no threads, no Redis) forks one service child (service.c) and
 * the worker children (child.c). Threads of a worker child: the main thread, which does
 * the I/O (io.c) unless the thread of an idle slot does (io_lead.c), one lease thread
 * (lease.c), one thread a slot (runner.c).
 */
#ifndef WR_WORKER_WORKER_INTERNAL_H
#define WR_WORKER_WORKER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/worker.h>

#include "model/attempt.h"
#include "redis/server.h"
#include "store/store.h"
#include "worker/handler.h"
#include "worker/slots.h"
#include "worker/spawner.h"

#define WR_AHEAD_MAX 512 /* jobs a child may hold beyond its slots */

/* How a child ends: its exit status. */
enum wr_child_exit {
    WR_CHILD_DONE = 0,    /* told to, or nothing left to do */
    WR_CHILD_HUNG = 1,    /* the same, but handlers that did not stop end with it; their
                             jobs were handed back */
    WR_CHILD_REPLACE = 3, /* a handler hangs: start another in its place */
    WR_CHILD_STARTUP = 4, /* its startup hook failed: end the whole worker */
    WR_CHILD_LAPSE = 5,   /* told to, but jobs could not be handed back */
};

/* What the processes of a running worker share. */
struct wr_shared {
    int64_t started_ms;        /* since 1970; never changes */
    _Atomic int64_t jobs_left; /* max_jobs: what may still be claimed */
    _Atomic int64_t processed, failed;
    _Atomic bool quiet;       /* claim nothing; the service child's */
    _Atomic int64_t grace_ms; /* what running jobs get at the end; the service child's */
    /* The service child's: of the program's entries so many are stored, or refused for
     * good; done: all. */
    _Atomic size_t crons_n;
    _Atomic bool cron_done;
    _Atomic bool stopping; /* the supervisor's */
};

/* What weir_worker_share says of one queue. */
struct wr_share {
    unsigned weight; /* from 1 */
    size_t reserved;
};

/* Never written after weir_worker_new() and the registrations, but for its atomics, and
 * by the supervisor before its first fork. */
struct weir_worker {
    char *url, *ns, *password, *pidfile, *engine;
    char **queues;           /* NULL: every registered queue */
    struct wr_share *shares; /* one for each of them; NULL: all alike */
    size_t reserved;         /* slots of a child, the sum of the shares' */
    bool strict;             /* in the order of queues */
    size_t concurrency, processes, max_jobs;
    int64_t lease_ms, grace_ms, max_time_ms;
    int64_t stuck_ms; /* beyond the lease: a child that stands still for so long is
                         replaced; a test has less time */
    bool no_scheduler, drain, notify;
    struct wr_handler *handlers;
    struct wr_plugin *plugins; /* in the order they were given */
    weir_startup_fn startup;
    weir_shutdown_fn shutdown;
    struct wr_job_hooks hooks;
    int64_t job_timeout_ms, keep_result_ms; /* of jobs that do not say it; 0: not said */
    struct wr_worker_cron *crons;           /* in the order they were given */
    bool has_exec, has_in_process; /* handlers of that kind; a hook is in process */
    size_t coprocs_n;              /* handlers of that kind */
    _Atomic int stop_pid;          /* the supervisor while it runs; 0: not */
    _Atomic bool stop_asked;
    char id[100]; /* while it runs: its own; a child's is this, a slash and a number */
    struct wr_shared *shared;   /* while it runs */
    _Atomic int64_t *jobs_left; /* there; NULL: no limit */
};

/* shares.c: queues, shares, reserved and strict from the options; concurrency is known.
 * What is there after a failure is freed as well. */
enum weir_err
wr_worker_copy_queues(struct weir_worker *w, const struct weir_worker_options *o,
                      struct weir_error *err) WEIR_MUST_CHECK;
void wr_worker_free_queues(struct weir_worker *w);

/* Seats of a child's spawner: one a slot for commands, and for each kind of co-process.
 */
static inline size_t
wr_seats(const struct weir_worker *w)
{
    return w->concurrency * (1 + w->coprocs_n);
}

/* Entries of a child's page: its slots and what it may claim ahead, or its seats, whose
 * process groups stand there too. */
static inline size_t
wr_page_size(const struct weir_worker *w)
{
    size_t jobs = w->concurrency + WR_AHEAD_MAX;

    return jobs > wr_seats(w) ? jobs : wr_seats(w);
}

/* A server and a store of their own for one thread. */
enum weir_err
wr_worker_connect(const struct weir_worker *w, const char *name, size_t connections,
                  int64_t command_timeout_ms, struct wr_server **server,
                  struct wr_store **store, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- runner.c: claimed jobs and the threads that run them ---- */

struct wr_reply;

/* Jobs of one reserve share its reply; the last one frees it. Of who leads. */
struct wr_batch_ref {
    struct wr_batch batch;
    size_t refs;
};

enum wr_run_phase {
    WR_RUN_WAITING,
    WR_RUN_RUNNING,
    WR_RUN_FINISHED,
    WR_RUN_ABANDONED
};

/* Of a run that was given up: its thread still writes into the delivery, so what is
 * answered in its stead stands here. */
struct wr_in_its_stead {
    char error[256];
    int64_t delay_ms, took_ms;
};

struct wr_run {
    struct weir_delivery d;
    struct wr_run *next; /* in the list it stands in; guarded by that list's lock */
    struct wr_queue *queue;
    struct wr_handler
        *handler; /* NULL: none for its type, or the record cannot be read */
    struct wr_batch_ref *ref;
    size_t page_slot;
    _Atomic int phase; /* enum wr_run_phase; RUNNING ends by one compare-and-swap */
    enum weir_outcome outcome; /* valid when FINISHED */
    const char *reason;        /* of its answer: failed, snoozed, attempts, permanent */
    int version;               /* of a record that cannot be read */
    int64_t claimed_ms;        /* when it came, monotonic: how long it waits for a slot */
    _Atomic int64_t fence_ms;  /* monotonic: renewed since, or stopped before then */
    int64_t stopped_ms;        /* when it was told to stop; 0: not */
    int64_t took_ms;           /* its handler; -1: it was not called */
    struct wr_in_its_stead stead; /* valid when ABANDONED */
    char facts[WR_FACTS_MAX + 1]; /* of its answer */
    int verdict;           /* enum wr_verdict: of one whose output is being stored */
    int64_t wait_until_ms; /* how long its answer waits for that */
    bool alone;    /* runs when nothing else does, however long that takes to come */
    bool answered; /* abandoned, and its answer is given */
    bool in_use;   /* held: renewed, fenced; with answered guarded by mu */
};

static inline bool
wr_run_is_given_up(const struct wr_run *run)
{
    return atomic_load(&run->phase) == WR_RUN_ABANDONED;
}

/* What a thread took for itself: short jobs are dealt several at a time. They can be
 * recalled while they have not started. */
struct wr_hand {
    pthread_mutex_t mu; /* taken alone, or after the runner's */
    struct wr_run *runs;
};

struct wr_runner {
    pthread_mutex_t mu; /* guards the list and in_use; never held while a handler runs */
    pthread_cond_t ready;
    struct wr_run *first, **last; /* claimed, waiting for a thread */
    size_t waiting, idle;         /* runs in the list; threads that sleep */
    bool closed;
    void (*lead)(void *context, size_t slot); /* offered to an idle thread; NULL: not */
    void *lead_context;
    _Atomic(struct wr_run *) finished; /* newest first */
    struct wr_hand *hands;             /* one a thread */
    int wake_fd;                       /* eventfd: something finished */
    _Atomic bool io_waits;             /* who leads sleeps: write to wake_fd */
    size_t slots;
    pthread_t *threads;
    size_t threads_n;
    _Atomic int64_t ewma_us; /* how long a run takes */
    unsigned forks;          /* a process that a handler forks has one more */

    struct wr_run *runs; /* all there are; n of them */
    size_t n;
    struct wr_run *free; /* of who leads */
    struct wr_slots *page;
};

enum weir_err wr_runner_start(struct wr_runner *r, size_t slots, struct wr_slots *page,
                              struct weir_error *err) WEIR_MUST_CHECK;
void wr_runner_stop(struct wr_runner *r);    /* every handler must have returned */
void wr_runner_wake_io(struct wr_runner *r); /* if it sleeps; any thread */

/* runs.c */
/* Who leads: a run to fill, or NULL when all are in use. */
struct wr_run *wr_runner_new_run(struct wr_runner *r);
void wr_runner_free_run(struct wr_runner *r, struct wr_run *run);
/* For the supervisor, should this process die. */
void wr_run_to_page(struct wr_slots *page, const struct wr_run *run);
/* With mu held: from now on the lease thread renews and fences it, and should the child
 * stand still the supervisor. */
void wr_runner_guard(struct wr_runner *r, struct wr_run *run);
/* Puts it on the page and guards it. */
void wr_runner_hold(struct wr_runner *r, struct wr_run *run);
/* With mu held: tells a run to stop; higher reasons win. */
void wr_run_stop(struct wr_run *run, enum wr_stop why);

/* runner.c */
/* As hold for n of them, linked by next, and hands them to threads: one of them the
 * caller itself, if `helps`. */
void wr_runner_submit(struct wr_runner *r, struct wr_run *list, size_t n, bool helps);
/* Runs that no thread has taken. */
size_t wr_runner_waiting(struct wr_runner *r);
/* Calls lead(context, slot) on an idle thread. False: none is idle. */
bool wr_runner_offer_lead(struct wr_runner *r, void (*lead)(void *context, size_t slot),
                          void *context);
/* The first of them has a handler that is always over in a moment. */
bool wr_runner_next_is_steady(struct wr_runner *r);
/* On the slot's own thread: runs the first of them. */
void wr_runner_run_here(struct wr_runner *r, size_t slot);
/* Before the leader sleeps: false if something finished already. And after. */
bool wr_runner_may_sleep(struct wr_runner *r);
void wr_runner_is_awake(struct wr_runner *r);
/* Back into the list with what threads took and have not started: one of the jobs before
 * them is longer than was thought. */
void wr_runner_recall(struct wr_runner *r);
/* All that finished since the last call, oldest first. */
struct wr_run *wr_runner_take_finished(struct wr_runner *r);
/* Takes back what waits for a thread (to be released), oldest first. */
struct wr_run *wr_runner_take_waiting(struct wr_runner *r);

/* ---- hooks.c ---- */

/* The hook before a job; false: the attempt failed, and why is its error. */
bool wr_hook_start(weir_job_start_fn start, struct weir_delivery *d, void *context);
/* Calls the handler, and the hooks around it. Slot thread. */
enum weir_outcome wr_hooks_run(struct wr_run *run);

/* ---- crons.c: the cron entries that a program declares ---- */

struct wr_worker_cron;

void wr_crons_free(struct wr_worker_cron *first);
/* Stores what is not stored yet, once for each run of the worker. Service child. True:
 * nothing is left to do; else *next_ms is when to call again. */
bool wr_crons_step(const struct weir_worker *w, struct wr_store *store, int64_t *next_ms);

/* ---- judge.c: what the end of a run means for its job ---- */

/* How an answer is given. */
enum wr_verdict {
    WR_VERDICT_ACK,
    WR_VERDICT_ACK_THEN, /* with follow-up jobs */
    WR_VERDICT_RETRY,
    WR_VERDICT_BURY,
    WR_VERDICT_RELEASE,
    WR_VERDICTS
};

/* follow.c: a run that succeeded gets the next step of its chain among its follow-up
 * jobs. False: that cannot be, its error says why. */
bool wr_follow_up(struct wr_run *run);

/* Of a run that finished: sets its reason, delay and error text. A success wins over a
 * late stop; else the stop over what the handler said. */
enum wr_verdict wr_judge(struct wr_run *run);
/* Of one whose thread does not come back; it is ABANDONED. */
enum wr_verdict wr_judge_given_up(struct wr_run *run, enum wr_stop why);

/* ---- lease.c ---- */

struct wr_lease_thread;

enum weir_err
wr_lease_start(const struct weir_worker *w, struct wr_runner *runner, const char *worker,
               _Atomic int64_t *io_tick_ms, struct wr_lease_thread **out,
               struct weir_error *err) WEIR_MUST_CHECK;
void wr_lease_stop(struct wr_lease_thread *t);
void wr_lease_free(struct wr_lease_thread *t); /* it has stopped */
/* The sender: its connection for one call, until *until_ms; waits while it is renewing.
 * False: leases cannot be renewed now, so nothing else is tried. */
bool wr_lease_lend(struct wr_lease_thread *t, int64_t *until_ms) WEIR_MUST_CHECK;
void wr_lease_give_back(struct wr_lease_thread *t);
struct wr_server *wr_lease_server(struct wr_lease_thread *t);
/* Something changed about what this child holds: asked now, not at the next renewal. */
void wr_lease_hint(struct wr_lease_thread *t);
/* Leases cannot be renewed now: nothing may be claimed. */
bool wr_lease_is_away(const struct wr_lease_thread *t);

/* How long one command may take here: long enough for a busy server, short enough to
 * leave time to fence. */
int64_t wr_lease_timeout_ms(int64_t lease_ms);
/* The longest pause between two tries to reach Redis again. */
int64_t wr_lease_reconnect_ms(int64_t lease_ms);
/* How long before its end a lease counts as lost here. */
int64_t wr_lease_margin_ms(int64_t lease_ms);

/* ---- hints.c: the service child blocks on a hint key, so that orders come at once. A
 * worker child does so where it waits for work: io_wait.c ---- */

struct wr_hints {
    struct wr_server *server; /* borrowed */
    char key[256];
    int64_t timeout_ms; /* of connecting */
    struct wr_conn *conn;
    bool posted;
    int64_t again_ms;
};

void wr_hints_init(struct wr_hints *h, struct wr_server *server, const char *ns,
                   const char *worker, int64_t timeout_ms);
void wr_hints_post(struct wr_hints *h); /* unless it waits already, or failed just now */
int wr_hints_fd(const struct wr_hints *h); /* to poll; -1: nothing to wait for */
bool wr_hints_take(struct wr_hints *h);    /* true: one has come */
void wr_hints_close(struct wr_hints *h);

/* ---- beat.c: what the service child tells of the whole worker, and hears ---- */

struct wr_beats;

/* The server must outlive it. */
enum weir_err wr_beats_new(const struct weir_worker *w, struct wr_server *server,
                           struct wr_slots **pages, size_t pages_n, struct wr_beats **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/* Beats if it is time, or at once if `now`. True: the worker is told to stop. *next_ms:
 * when to call again. */
bool wr_beats_step(struct wr_beats *b, bool now, int64_t *next_ms);
int wr_beats_fd(const struct wr_beats *b); /* readable: call step; -1: none */
void wr_beats_leave(struct wr_beats *b); /* the worker ends; frees it. NULL is allowed */

/* ---- io.c and its parts: io.h ---- */

struct wr_io_options {
    const struct weir_worker *worker;
    struct wr_runner *runner;
    struct wr_lease_thread *lease;
    struct wr_slots *page;
    struct wr_sender *sender;
    void *context;   /* of the startup hook */
    int lifeline_fd; /* EOF: the supervisor is gone */
    int signal_fd;   /* SIGTERM */
};
/* Until told to stop or nothing is left to do. Stops the lease thread at the end. */
enum wr_child_exit wr_io_run(const struct wr_io_options *options);

/* ---- child.c, service.c, supervisor.c ---- */

_Noreturn void
wr_child_main(const struct weir_worker *w, struct wr_slots *page, int lifeline_fd);
/* fd: one byte a dead child, the number of its page; answered by the same byte. And these
 * two, which are no page's number. */
#define WR_BYTE_BEAT 0xfe /* to the service child: say how things are, now */
#define WR_BYTE_STOP 0xff /* to the supervisor: somebody told this worker to stop */
_Noreturn void wr_service_main(const struct weir_worker *w, struct wr_slots **pages,
                               size_t pages_n, int fd);
enum weir_err wr_supervise(struct weir_worker *w, struct weir_error *err);

#endif
