/*
 * store/store.h - jobs in Redis: one function per transition.
 *
 * Each call borrows a connection, runs the script of the queue's engine, and gives
 * the connection back. A call that got no answer, or "not now" (loading, busy), is
 * repeated with the same channel number, call number or tokens until deadline: all
 * transitions are made to be repeated. What comes back as E_NO_REPLY after that may
 * have happened.
 *
 * Threads  any thread may call; the pool inside bounds how many at once.
 * fork     a child may go on using its copy: it opens connections of its own.
 * Time     every call ends by command_timeout_ms; who needs another deadline has a
 *          store of its own (the lease thread).
 * Errors   besides those named: E_CONNECT, E_LOADING, E_FULL, E_REFUSED, E_DENIED,
 *          E_READONLY, E_NO_REPLY, E_CORRUPT, E_WRONG_ENGINE, E_NO_QUEUE.
 */
#ifndef WR_STORE_STORE_H
#define WR_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "base/span.h"
#include "model/codec.h"
#include "redis/reply.h"
#include "redis/server.h"

/* What holds for a queue unless its config says otherwise. Of dead jobs enough that
 * nobody meets it by accident, and that a queue nobody looks at ends somewhere. */
#define WR_PAYLOAD_MAX_BYTES 1048576
#define WR_KEPT_MAX_JOBS 10000
#define WR_KEPT_MAX_BYTES (64 * 1024 * 1024)
#define WR_DEAD_MAX_JOBS 1000000
#define WR_DEAD_MAX_AGE_MS (INT64_C(180) * 86400000)
#define WR_DEAD_MAX_BYTES (INT64_C(1024) * 1024 * 1024)
#define WR_LOG_MAX_BYTES (64 * 1024 * 1024)

/* A job in `delayed` that waits for another of its order key has this score, or this and
 * its own due time. */
#define WR_PARKED_MS INT64_C(1000000000000000)

#define WR_BATCH_MAX 1000           /* items in one call */
#define WR_BATCH_BYTES (256 * 1024) /* bytes of records in one call; at least one job */

struct wr_store;
struct wr_queue; /* a queue's name and keys; made by wr_store_queue, lives as long as the
                    store */

struct wr_store_options {
    struct wr_server *server;   /* borrowed: must outlive the store */
    const char *ns;             /* namespace; default "weir" */
    int64_t command_timeout_ms; /* default 5000 */
    int64_t test_now_ms; /* 0: the server's clock. Tests set another here or later */
    const char *engine;  /* of queues that this store makes: "list" or "stream"; default
                            WEIR_ENGINE, else "list" */
};

/* *out: the engine that is given, or else the environment's. E_ARG; E_CONFIG: what
 * WEIR_ENGINE says is none. */
enum weir_err wr_store_choose_engine(const char *given, const char **out,
                                     struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_store_new(const struct wr_store_options *options, struct wr_store **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
void wr_store_free(struct wr_store *store); /* NULL is allowed; not the server */
void wr_store_set_test_clock(struct wr_store *store, int64_t now_ms); /* 0: off */
/* Of the calls from now on; by the thread that makes them. */
void wr_store_set_timeout(struct wr_store *store, int64_t command_timeout_ms);
const char *wr_store_namespace(const struct wr_store *store);
struct wr_server *wr_store_server(struct wr_store *store);
/* The server's clock in us (or the test clock). */
enum weir_err wr_store_time(struct wr_store *store, int64_t *us,
                            struct weir_error *err) WEIR_MUST_CHECK;

/* E_ARG: not a queue name. The same name gives the same object. */
enum weir_err
wr_store_queue(struct wr_store *store, const char *name, struct wr_queue **out,
               struct weir_error *err) WEIR_MUST_CHECK;
const char *wr_queue_name(const struct wr_queue *queue);
struct wr_span wr_queue_wake_key(const struct wr_queue *queue); /* for BLPOP of workers */
struct wr_span
wr_queue_due_key(const struct wr_queue *queue); /* for BLPOP of the leader */

/* ---- producers ---- */

/* A channel numbers the calls of one call slot: one call outstanding at a time. */
struct wr_channel {
    char name[33];  /* 32 hex digits; empty: no channel */
    int64_t number; /* of the next call */
};
void wr_channel_renew(struct wr_channel *channel);

/* One job to store. head and tail come from wr_record_write(). */
struct wr_admit {
    struct wr_span id, head, tail;
    struct wr_span unique; /* "WINDOW_MS KEY[ MODE][ =ORDER]", encoded, KEY "-": none */
    struct wr_span due;    /* "+ms", "@ms"; empty: ready at once */
    bool made_up; /* the id: a queue that is a stream gives the job another one, if it is
                     ready at once and has no unique key */
};

enum wr_admit_word {
    WR_ADMIT_STORED,
    WR_ADMIT_EXISTS,
    WR_ADMIT_OTHER,
    WR_ADMIT_UNIQUE,
    WR_ADMIT_BIG
};

struct wr_admitted {
    enum wr_admit_word word;
    char detail[256]; /* place, holder or limit */
    char id[48];      /* the job's id where it is not that of the item; else empty */
};

/*
 * enqueue, or schedule when any item has a due time. n <= WR_BATCH_MAX. out[n] gets each
 * item's answer. Registers a queue that the call made. Renews the channel when it has to
 * (CLASH, LATE, or the call ends as unknown). *gap: calls of this channel that were
 * acknowledged are missing: the server lost them (may be NULL).
 */
enum weir_err wr_store_enqueue(struct wr_store *store, struct wr_queue *queue,
                               struct wr_channel *channel, const struct wr_admit *items,
                               size_t n, struct wr_admitted *out, bool *gap,
                               struct weir_error *err) WEIR_MUST_CHECK;
/* Who waits for the end of a job: what tells it begins with tag, "CHANNEL/NUMBER" of
 * lua/include/ended.lua. It is forgotten after keep_ms, unless it comes again. */
struct wr_waiter {
    const char *tag;
    int64_t keep_ms;
};
/* As wr_store_enqueue() of one job, which is waited for from the first moment on: unless
 * it is refused, or EXISTS and is dead or done. EXISTS with the detail "-", the answer of
 * a repeated call, may be either. E_REFUSED: too many wait for it. */
enum weir_err
wr_store_call(struct wr_store *store, struct wr_queue *queue, struct wr_channel *channel,
              const struct wr_admit *item, const struct wr_waiter *waiter,
              struct wr_admitted *out, struct weir_error *err) WEIR_MUST_CHECK;
/* What became of a replacement. */
struct wr_replaced {
    bool existed; /* it started or ended before, with this very record: nothing changed */
    bool anew;    /* it was done and kept: forgotten, and enqueued again */
    char id[256]; /* the job's; another than asked for if that holds the unique key */
};
/*
 * Gives a ready or delayed job a new record (and due time), a kept one a new life. If no
 * job has the id, and item->unique ends in " r" or " l", the job that holds the key is
 * meant, if it waits. E_NO_JOB: absent. E_WRONG_STATE: it started or ended. E_UNIQUE:
 * another job holds its new unique key. E_TOO_BIG.
 */
enum weir_err
wr_store_replace(struct wr_store *store, struct wr_queue *queue,
                 struct wr_channel *channel, const struct wr_admit *item,
                 struct wr_replaced *out, struct weir_error *err) WEIR_MUST_CHECK;
/* At a clean close: the server forgets these channels. Best effort. */
void wr_store_farewell(struct wr_store *store, struct wr_queue *queue,
                       const struct wr_channel *channels, size_t n);

/* ---- workers ---- */

struct wr_delivery {
    struct wr_span id, record; /* live as long as the batch */
    struct wr_job_state state; /* token, counters */
};

enum wr_reserve_word {
    WR_RESERVE_OK,
    WR_RESERVE_EMPTY,
    WR_RESERVE_MORE, /* stopped at a bound: call again at once */
    WR_RESERVE_PAUSED,
    WR_RESERVE_SHELVED, /* as EMPTY; jobs of types that the worker does not run were put
                           off */
};

struct wr_batch {
    struct wr_reply *reply;
    enum wr_reserve_word word;
    struct wr_delivery *jobs;
    size_t n;
};
void wr_batch_fini(struct wr_batch *batch);

struct wr_reserve {
    const char *worker; /* the worker's id */
    int64_t
        call; /* number of this call of the worker: rises by one a call over ALL queues */
    size_t free, ahead;
    int64_t lease_ms;
    /* What the worker runs, encoded as in records, a blank before and after each; with a
     * '!' before: everything but these; NULL: everything. What it does not run is put
     * off. */
    const char *types;
    int64_t keep_ms; /* of jobs that do not say how long they are kept when done */
};

/* One answer of a delivery. */
struct wr_answer {
    struct wr_span id, token;
    struct wr_span result; /* ack */
    struct wr_span follow; /* ack_then: its follow-up jobs, see model/follow.h */
    int64_t delay_ms;      /* retry */
    bool snoozed;          /* retry: does not use up an attempt */
    const char *reason;    /* bury: "attempts" or "permanent" */
    struct wr_span text;   /* retry, bury: why, one line, already escaped */
    struct wr_span facts;  /* of the run (model/attempt.h); empty: it had not begun, or
                              ack: nothing of it is kept */
};

enum wr_answered {
    WR_ANSWERED_OK,        /* moved as asked */
    WR_ANSWERED_CANCELLED, /* it was flagged and ended as cancelled */
    WR_ANSWERED_BEFORE,    /* ANSWERED: this delivery gave its answer before */
    WR_ANSWERED_STALE,     /* somebody else's now */
    WR_ANSWERED_GONE,
};

/* ack the n answers and reserve the next jobs, in one call; acked[n] may be NULL. A queue
 * that nobody made answers EMPTY. Free the batch with wr_batch_fini(), also on error. */
enum weir_err
wr_store_exchange(struct wr_store *store, struct wr_queue *queue,
                  const struct wr_reserve *want, const struct wr_answer *answers,
                  size_t n, enum wr_answered *acked, struct wr_batch *out,
                  struct weir_error *err) WEIR_MUST_CHECK;
/* Reserves the next jobs, without answers. */
enum weir_err wr_store_reserve(struct wr_store *store, struct wr_queue *queue,
                               const struct wr_reserve *want, struct wr_batch *out,
                               struct weir_error *err) WEIR_MUST_CHECK;
/*
 * An offer: the reserve that a worker would make next, of one job, given before it waits
 * for the marker. A job that comes while none waits is handed to it at once, and comes
 * with the marker. The call itself, under its number, takes the offer back, and answers
 * what was handed over: whoever did not get the marker makes it.
 */
enum wr_offer_word {
    WR_OFFER_OK,
    WR_OFFER_OFF,   /* none stands: others take the markers */
    WR_OFFER_BEHIND /* that call was made before */
};

/* The two halves on a connection of the caller's: hold writes it with the next command,
 * the wait. It stands for wait_ms. `free` and `ahead` do not matter. recv fails where no
 * offer stands; with E_NO_REPLY nobody knows. mute: there is no answer to receive, and
 * nobody knows either (wr_conn_hold_mute). */
enum weir_err
wr_store_offer_hold(struct wr_store *store, struct wr_queue *queue,
                    const struct wr_reserve *want, int64_t wait_ms, struct wr_conn *conn,
                    bool mute, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err
wr_store_offer_recv(struct wr_store *store, struct wr_queue *queue, struct wr_conn *conn,
                    int64_t deadline_ms, enum wr_offer_word *word,
                    struct weir_error *err) WEIR_MUST_CHECK;

/* What a marker brings. */
struct wr_handed {
    int64_t call;
    struct wr_delivery job; /* in the marker's text; its state says whose it is */
};

/* False: an ordinary marker. The text must outlive the job. */
bool wr_handed_read(struct wr_span marker, struct wr_handed *out);
/* For a marker that brings another worker's job: gives it back in that one's name, unless
 * that has it. makes_offers: the caller does; if not, none is taken for a while. */
enum weir_err wr_store_withdraw(struct wr_store *store, struct wr_queue *queue,
                                const char *worker, int64_t call, bool makes_offers,
                                struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_store_ack(struct wr_store *store, struct wr_queue *queue,
                           const char *worker, const struct wr_answer *answers, size_t n,
                           enum wr_answered *out, struct weir_error *err) WEIR_MUST_CHECK;
/* As ack, for answers with follow-up jobs: they are in the outbox when this returns. */
enum weir_err
wr_store_ack_then(struct wr_store *store, struct wr_queue *queue, const char *worker,
                  const struct wr_answer *answers, size_t n, enum wr_answered *out,
                  struct weir_error *err) WEIR_MUST_CHECK;
/* Enqueues the follow-up jobs that lie in the outbox of `queue` under this token (text as
 * given to ack_then), then takes them out. May be repeated, also by another process, an
 * hour after the last time: the channel in the text makes it harmless. An error leaves
 * them there; those for queues that are well were enqueued all the same. */
enum weir_err
wr_store_relay(struct wr_store *store, struct wr_queue *queue, struct wr_span token,
               struct wr_span text, struct weir_error *err) WEIR_MUST_CHECK;
/* The same for what lies there longer than age_ms, at most `limit` of them. *more: others
 * are left. What cannot be relayed does not keep the others waiting; the error is that of
 * the first. */
enum weir_err wr_store_relay_late(struct wr_store *store, struct wr_queue *queue,
                                  int64_t age_ms, size_t limit, size_t *relayed,
                                  bool *more, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err
wr_store_retry(struct wr_store *store, struct wr_queue *queue, const char *worker,
               const struct wr_answer *answers, size_t n, enum wr_answered *out,
               struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err
wr_store_bury(struct wr_store *store, struct wr_queue *queue, const char *worker,
              const struct wr_answer *answers, size_t n, enum wr_answered *out,
              struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err
wr_store_release(struct wr_store *store, struct wr_queue *queue, const char *worker,
                 const struct wr_answer *answers, size_t n, enum wr_answered *out,
                 struct weir_error *err) WEIR_MUST_CHECK;

struct wr_holding {
    struct wr_span id, token;
    int64_t limit_ms; /* extend: ms after its start at which it must be over; 0: none */
    bool started;     /* reclaim_held: its handler had started */
};

enum wr_extended {
    WR_EXTEND_OK,
    WR_EXTEND_CANCEL,  /* renewed; cancelled: stop it */
    WR_EXTEND_TIMEOUT, /* not renewed: ran longer than it may */
    WR_EXTEND_BEFORE,  /* answered already */
    WR_EXTEND_STALE,   /* lost to another delivery: stop it */
    WR_EXTEND_GONE,
};

enum weir_err
wr_store_extend(struct wr_store *store, struct wr_queue *queue, const char *worker,
                int64_t lease_ms, const struct wr_holding *held, size_t n,
                enum wr_extended *out, struct weir_error *err) WEIR_MUST_CHECK;
/* keep_ms: after the end of the job, WR_PROGRESS_WITH_JOB: as long as the job. *word: OK,
 * CANCEL, BEFORE, STALE or GONE. */
enum weir_err
wr_store_progress(struct wr_store *store, struct wr_queue *queue, const char *worker,
                  struct wr_span id, struct wr_span token, struct wr_span text,
                  int64_t keep_ms, enum wr_extended *word,
                  struct weir_error *err) WEIR_MUST_CHECK;

/* ---- what jobs print ---- */

/* Of one run, from its `at`-th byte on: whole records (model/output.h). */
struct wr_log_part {
    struct wr_span id, token, bytes;
    int64_t at;
    bool last; /* there will be no more */
};

enum wr_logged {
    WR_LOGGED_OK,
    WR_LOGGED_STALE, /* another delivery owns the job: send no more */
    WR_LOGGED_GONE,
};

/* A repeat stores nothing twice. E_FULL: the server is full; the job goes on. */
enum weir_err wr_store_log(struct wr_store *store, struct wr_queue *queue,
                           const char *worker, const struct wr_log_part *parts, size_t n,
                           enum wr_logged *out, struct weir_error *err) WEIR_MUST_CHECK;
/* The raw reply of lua/common/output.lua. number 0: the last run that is kept. E_NO_JOB.
 */
enum weir_err
wr_store_output(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
                int64_t number, int64_t offset, size_t bytes_max, struct wr_reply **out,
                struct weir_error *err) WEIR_MUST_CHECK;

/* ---- movers ---- */

struct wr_moved {
    bool more;                        /* call again at once */
    bool quiet;                       /* reclaim: nothing was taken back */
    int64_t moved;                    /* promote, forget; reclaim: to ready */
    int64_t delayed, dead, cancelled; /* reclaim */
    int64_t next_us;                  /* promote: until the next is due; -1: none */
    int64_t next_ms;                  /* forget, reclaim: until the next; -1: none */
    int64_t server_ms;                /* reclaim: the server's time */
};

enum weir_err
wr_store_promote(struct wr_store *store, struct wr_queue *queue, size_t limit,
                 struct wr_moved *out, struct weir_error *err) WEIR_MUST_CHECK;

struct wr_reclaim {
    int64_t lease_ms, lease_max_ms;
    int64_t gap_ms;  /* since the last good call, monotonic; < 0: first call */
    int64_t last_ms; /* the server's time at that call */
    bool quiet;      /* the quiet period is not over */
    size_t limit;
};
enum weir_err wr_store_reclaim(struct wr_store *store, struct wr_queue *queue,
                               const struct wr_reclaim *how, struct wr_moved *out,
                               struct weir_error *err) WEIR_MUST_CHECK;
/* Takes back what a dead worker held; pairs that are not its own are skipped (*stale).
 * death: how it died, for the jobs' errors; NULL: nobody saw it. */
enum weir_err
wr_store_reclaim_held(struct wr_store *store, struct wr_queue *queue,
                      const char *dead_worker, const char *death,
                      const struct wr_holding *held, size_t n, struct wr_moved *out,
                      size_t *stale, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err
wr_store_forget(struct wr_store *store, struct wr_queue *queue, size_t limit,
                struct wr_moved *out, struct weir_error *err) WEIR_MUST_CHECK;
/* Holds the dead jobs of a queue within its limits: `moved` were removed. */
enum weir_err wr_store_trim(struct wr_store *store, struct wr_queue *queue, size_t limit,
                            struct wr_moved *out, struct weir_error *err) WEIR_MUST_CHECK;
/* One slice; cursors begin and end as "0". */
struct wr_sweep {
    char producers[24], claims[24];
    int64_t removed;
};
enum weir_err
wr_store_sweep(struct wr_store *store, struct wr_queue *queue, int64_t idle_ms,
               size_t limit, struct wr_sweep *at, struct weir_error *err) WEIR_MUST_CHECK;
/* Leader lock of a queue. *leads says whether `me` leads; if not, value gets the lock's
 * value. seen: take over if the value is still this; "" otherwise. *server_ms: the
 * server's time. */
enum weir_err
wr_store_lead(struct wr_store *store, struct wr_queue *queue, const char *me,
              const char *seen, bool *leads, char value[128], int64_t *server_ms,
              struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_store_unlead(struct wr_store *store, struct wr_queue *queue,
                              const char *me, struct weir_error *err) WEIR_MUST_CHECK;

/* ---- people ---- */

enum wr_cancelled {
    WR_CANCEL_READY,
    WR_CANCEL_DELAYED, /* cancelled */
    WR_CANCEL_FLAGGED, /* runs: its next answer ends it */
    WR_CANCEL_DEAD,
    WR_CANCEL_DONE,
    WR_CANCEL_GONE,
    WR_CANCEL_BROKEN, /* nothing changed */
};
/* Flagged ones: their workers are told at once. */
enum weir_err
wr_store_cancel(struct wr_store *store, struct wr_queue *queue, const struct wr_span *ids,
                size_t n, enum wr_cancelled *out, struct weir_error *err) WEIR_MUST_CHECK;

/* due: "+ms" from now, "@ms" since 1970, empty: now, before all others. *delayed: it
 * waits until *due_ms; else it is ready. E_NO_JOB. E_WRONG_STATE: it runs or has ended.
 */
enum weir_err
wr_store_reschedule(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
                    struct wr_span due, bool *delayed, int64_t *due_ms,
                    struct weir_error *err) WEIR_MUST_CHECK;

/* What a step of a move came to; n and copied go with it. */
enum wr_migrate_word {
    WR_MIGRATE_DONE,
    WR_MIGRATE_RUNS,   /* n deliveries are not over: wait a little */
    WR_MIGRATE_COPIED, /* n jobs, `copied` in all */
    WR_MIGRATE_AGAIN,  /* waiting jobs were changed meanwhile: it begins anew */
    WR_MIGRATE_SWEPT,
    WR_MIGRATE_RESUMED, /* somebody resumed the queue: it is not moved */
    WR_MIGRATE_FULL,    /* of memory */
};
struct wr_migrated {
    enum wr_migrate_word word;
    int64_t n, copied;
};
/* One step of moving a queue to the engine `to` ("list", "stream"); again until DONE. The
 * engine that it has takes back what was begun. */
enum weir_err
wr_store_migrate(struct wr_store *store, struct wr_queue *queue, const char *to,
                 const char *who, size_t limit, struct wr_migrated *out,
                 struct weir_error *err) WEIR_MUST_CHECK;

enum wr_replayed {
    WR_REPLAY_OK,
    WR_REPLAY_GONE,
    WR_REPLAY_NOBODY,
    WR_REPLAY_UNIQUE
};
/* ids NULL: the oldest dead ones, at most n, that died not after before_ms (0: any).
 * out[n] may be NULL, and is filled only for given ids; *moved counts. */
enum weir_err
wr_store_replay(struct wr_store *store, struct wr_queue *queue, const struct wr_span *ids,
                size_t n, int64_t before_ms, enum wr_replayed *out, size_t *moved,
                struct weir_error *err) WEIR_MUST_CHECK;
/* Looks at n dead ones behind the first `skip`; *looked says how many there were. */
enum weir_err
wr_store_replay_page(struct wr_store *store, struct wr_queue *queue, size_t n,
                     int64_t before_ms, size_t skip, size_t *looked, size_t *moved,
                     struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err
wr_store_purge(struct wr_store *store, struct wr_queue *queue, const struct wr_span *ids,
               size_t n, int64_t before_ms, enum wr_replayed *out, size_t *moved,
               struct weir_error *err) WEIR_MUST_CHECK;
/* *was: it was so before. who: one word; why may be NULL. */
enum weir_err
wr_store_pause(struct wr_store *store, struct wr_queue *queue, const char *who,
               const char *why, bool *was, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_store_resume(struct wr_store *store, struct wr_queue *queue, bool *was,
                              struct weir_error *err) WEIR_MUST_CHECK;
/* Sets values of the queue's config, which it makes if need be: pairs of name and value,
 * the value "" for the default. lua/common/create.lua has the names. */
enum weir_err wr_store_configure(struct wr_store *store, struct wr_queue *queue,
                                 const struct wr_span *pairs, size_t n,
                                 struct weir_error *err) WEIR_MUST_CHECK;
/* Limits < 0: as they are; payload_max, kept_max, kept_bytes_max. engine: "list",
 * "stream", NULL: as it is, or a list. *made: it is new. E_WRONG_ENGINE: it has another
 * engine. */
struct wr_limits {
    int64_t payload_max, kept_max, kept_bytes_max;
    const char *engine;
};
enum weir_err wr_store_create(struct wr_store *store, struct wr_queue *queue,
                              const struct wr_limits *limits, bool *made,
                              struct weir_error *err) WEIR_MUST_CHECK;
/* Removes a queue that holds nothing; only_look: would it? *out is the reply: OK and its
 * counters as name, value; or USED, what it holds, how many. Free with wr_reply_free().
 */
enum weir_err wr_store_drop(struct wr_store *store, struct wr_queue *queue,
                            int64_t recent_ms, bool only_look, struct wr_reply **out,
                            struct weir_error *err) WEIR_MUST_CHECK;
/* The raw replies of the scripts that only look; see the headers of lua/common/NAME.lua.
 * E_NO_JOB from inspect. Free with wr_reply_free(). */
enum weir_err
wr_store_audit(struct wr_store *store, struct wr_queue *queue, struct wr_reply **out,
               struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_store_inspect(struct wr_store *store, struct wr_queue *queue,
                               struct wr_span id, size_t bytes_max, struct wr_reply **out,
                               struct weir_error *err) WEIR_MUST_CHECK;
/* The same of a job that may be over, if its progress is kept: no record, no result. */
enum weir_err
wr_store_inspect_over(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
                      struct wr_reply **out, struct weir_error *err) WEIR_MUST_CHECK;
/* Registers who wants to be told of the end of a job. early: the job may come later.
 * *ended: no need, it is dead or done. E_NO_JOB; E_REFUSED: too many wait for it. */
enum weir_err wr_store_wait(struct wr_store *store, struct wr_queue *queue,
                            struct wr_span id, const struct wr_waiter *waiter, bool early,
                            bool *ended, struct weir_error *err) WEIR_MUST_CHECK;
/* A page of jobs. The reply's second element is the cursor of the next one, "0" at the
 * end; it fits into WR_CURSOR_MAX. */
#define WR_CURSOR_MAX 64
enum weir_err
wr_store_browse(struct wr_store *store, struct wr_queue *queue, const char *place,
                const char *cursor, size_t limit, struct wr_reply **out,
                struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err
wr_store_locate(struct wr_store *store, struct wr_queue *queue, const struct wr_span *ids,
                size_t n, bool scan, struct wr_reply **out,
                struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err
wr_store_walk(struct wr_store *store, struct wr_queue *queue, const char *name,
              const char *cursor, size_t limit, struct wr_reply **out,
              struct weir_error *err) WEIR_MUST_CHECK;

/* One slice of name: stream, ids or sums; the reply is that of lua/common/repair.lua. */
enum weir_err
wr_store_repair(struct wr_store *store, struct wr_queue *queue, const char *name,
                const char *cursor, size_t limit, struct wr_reply **out,
                struct weir_error *err) WEIR_MUST_CHECK;

/* ---- registry (no queue) ---- */

/* Calls each with the name of every registered queue, until it answers false. What is no
 * queue's name, which nobody of ours wrote, is left out. each NULL: only asks. */
typedef bool (*wr_queue_name_fn)(const char *name, void *context);
enum weir_err wr_store_each_queue(struct wr_store *store, wr_queue_name_fn each,
                                  void *context, struct weir_error *err) WEIR_MUST_CHECK;
/* Takes the name out of the registry: a scheduler no longer serves it. */
enum weir_err wr_store_delist(struct wr_store *store, struct wr_queue *queue,
                              struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_store_enroll(struct wr_store *store, struct wr_queue *queue,
                              struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_store_roster(struct wr_store *store, size_t limit, struct wr_reply **out,
                              struct weir_error *err) WEIR_MUST_CHECK;

enum wr_order {
    WR_ORDER_NONE,
    WR_ORDER_RUN,
    WR_ORDER_QUIET, /* claim nothing more, let run what runs */
    WR_ORDER_STOP,
};
/* What a worker is told. */
struct wr_told {
    enum wr_order order;
    int64_t
        grace_ms; /* of a stop: what running jobs get; -1: what the worker gives them */
};
struct wr_beat {
    const char *worker, *state; /* state: running, quiet, draining */
    const char *const *fields;  /* name, value, ...; NULL at the end; may be NULL */
    bool leave;                 /* it ends: all that is known of it goes */
};
/* A worker's beat: in the roster, and what `weir worker ls` shows. *told: what it is told
 * to be; it is told again with each beat. May be NULL. */
enum weir_err wr_store_beat(struct wr_store *store, const struct wr_beat *beat,
                            struct wr_told *told, struct weir_error *err) WEIR_MUST_CHECK;
/* What Redis does when it is full, if that is to throw keys away; else "". "" also when
 * it may not be asked. */
enum weir_err wr_store_eviction(struct wr_store *store, char *policy, size_t cap,
                                struct weir_error *err) WEIR_MUST_CHECK;
/* How a daemon says it. */
#define WR_EVICTION_TEXT                                                                \
    "DANGER: Redis will throw jobs away when it is full (maxmemory-policy %s). Set it " \
    "right: CONFIG SET maxmemory-policy noeviction"
/* Tells a worker what to be. *known false: no such worker. *before: the order that stood
 * till now; WR_ORDER_STOP stays, but for its grace time. by: who says so. */
enum weir_err
wr_store_order(struct wr_store *store, const char *worker, const struct wr_told *told,
               const char *by, bool *known, enum wr_order *before,
               struct weir_error *err) WEIR_MUST_CHECK;

#endif
