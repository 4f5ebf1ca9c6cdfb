/*
 * script/model.h - a queue of either engine in memory, complete: places, order, records,
 * states, errors, unique keys, windows, claims, channels, counters, markers.
 *
 * Written from the law in words (docs, DESIGN), not from the scripts, so that the two can
 * be compared. Each transition changes the model and answers the reply that the script
 * must give, its elements with blanks between. model_dump() writes all state as one text;
 * model_dump_script is the Lua that writes the same text from Redis.
 *
 * Bodies and entries that vanish are part of the model: model_lose_body(). Nothing else
 * may be changed behind it.
 */
#ifndef SCRIPT_MODEL_H
#define SCRIPT_MODEL_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define MODEL_JOBS 512
#define MODEL_READY 4096
#define MODEL_WORKERS 4
#define MODEL_CHANNELS 4
#define MODEL_KEYS 3
#define MODEL_BATCH 8
#define MODEL_PAYLOAD_MAX 64
#define MODEL_PARK 86400000
#define MODEL_LINES 2                          /* order keys */
#define MODEL_PARKED INT64_C(1000000000000000) /* behind another of the line */
#define MODEL_LEASE 15000                      /* of a worker whose claims are gone */

/* Every counter of the ledger, by its name in stats. */
/* clang-format off */
#define MODEL_COUNTERS(X)                                                          \
    X(enqueued)                                                                    \
    X(scheduled)                                                                   \
    X(promoted)                                                                    \
    X(released)                                                                    \
    X(reclaimed) X(reclaimed_delayed) X(replayed) X(deliveries) X(done) X(retried) \
        X(buried) X(cancelled_ready) X(cancelled_delayed) X(cancelled_processing)  \
            X(expired_ready) X(lost_body_ready) X(lost_body_delayed) X(purged) X(kept_in) X(forgotten)  \
                X(stale) X(replaced) X(skipped) X(deferred) X(trimmed) X(tokens) X(kept_bytes) X(dead_bytes) X(shelved) \
                    X(log_next) X(log_head) X(log_dropped)
/* clang-format on */

enum model_place {
    MODEL_WAITS, /* in ready, or nowhere */
    MODEL_PROCESSING,
    MODEL_DELAYED,
    MODEL_DEAD,
    MODEL_KEPT,
};

/* What a record says about its end. */
struct model_options {
    int64_t keep, expires, max_deliveries;
    int key;        /* index, -1: none */
    int order;      /* index of the line, -1: none */
    char states[4]; /* s: lets it go when it starts, x: holds it dead, k: kept */
};

struct model_state {
    int64_t token, keep, deliveries, attempts, lost, interrupted, snoozes, started,
        max_deliveries;
    int key, order;
    char states[4];
    bool flag;
    char worker[16], progress[32];
};

/* Who waits for the end of a job. */
#define MODEL_WAITERS 2
struct model_waiter {
    int channel; /* "ch0" */
    int64_t number, until;
};

/* One run's line and pieces in `log`. */
#define MODEL_RUNS 2
#define MODEL_PIECES 24
struct model_piece {
    int64_t at;
    char text[48];
};
struct model_run {
    int64_t number, token, seq, started, taken, end;
    bool open;
    struct model_piece pieces[MODEL_PIECES];
    size_t n;
};

struct model_job {
    char id[16];
    bool record, has_state, tomb;
    bool meant; /* in this call */
    /* Of a stream: the number of its entry (0: none), how often that was handed out, and
     * whether it stands in front; the state of a delivery need not be stored. gone: the
     * entry was deleted by hand while it was pending, and nobody booked that so far. */
    int64_t entry, count, delivered_at;
    bool front, unstored, gone;
    int64_t indexed; /* the entry that `ids` says; it may be gone; 0: none */
    char head[16], tail[192], defaults[32];
    int64_t enqueued_at;
    struct model_options options;
    enum model_place place;
    int64_t score;
    int line; /* where it stands in line: 1 + index; 0: nowhere */
    struct model_state state;
    char result[32];
    char errors[10][160];
    size_t errors_n;
    struct model_run runs[MODEL_RUNS]; /* oldest first */
    size_t runs_n;
    struct model_waiter waiters[MODEL_WAITERS]; /* the first to come first */
    size_t waiters_n;
};

/* A move to the other engine: config's `moving` and `moved`, and next_ready. Of the copy
 * itself only its size is known; what it is made of shows when it is the queue. */
struct model_move {
    bool is_on, to_stream, was; /* was: paused, beside that */
    enum {
        MODEL_MOVE_COPY,
        MODEL_MOVE_AGAIN,
        MODEL_MOVE_SWEEP
    } phase;
    bool has_copy;
    size_t copied, sofar,
        left; /* copied: places of a list; sofar: jobs; left: to be swept */
    int64_t signature[11], last_entry;
    struct model_job *last;
};

struct model_claim {
    struct model_job *job;
    int64_t token;
    bool ahead;
};

/* What an idle worker says: it would make this call. */
struct model_offer {
    int worker;
    int64_t call, lease, until, keep;
    const char *type; /* as in struct model_reserve */
    char types[16];   /* as the script is told */
};

/* A worker's last call. */
struct model_asked {
    bool is_set;
    int64_t call, at, lease;
    struct model_claim list[2 * MODEL_BATCH];
    size_t n;
    enum {
        MODEL_ASKED,
        MODEL_OFFERS, /* offer says what */
        MODEL_HANDED, /* to its offer; it has not heard of it */
    } head;
    struct model_offer offer;
};

struct model {
    int64_t now;
    bool stream;     /* the engine */
    int64_t entries; /* how many were ever added */
    bool has_stream;
    int64_t generation; /* of its group */
    struct model_move move;
    int64_t reclaim_at, reclaim_end; /* where reclaim goes on; 0: from the start */
    struct model_job jobs[MODEL_JOBS];
    size_t jobs_n;
    struct model_job *ready[MODEL_READY]; /* [0] is the left end */
    size_t ready_n;
    struct {
        struct model_job *holder, *before; /* whose end the holder waits for */
        int64_t window;                    /* its end; -1: none */
    } keys[MODEL_KEYS];
    struct {
        struct model_job *jobs[MODEL_JOBS]; /* [0] is the first */
        size_t n;
    } lines[MODEL_LINES];
    struct model_asked claims[MODEL_WORKERS];
    int64_t offered[MODEL_WORKERS]; /* zset offers: since when, ms; 0: not there */
    int64_t offers_off;             /* none are taken until then */
    int64_t handed, withdrawn;      /* how often, for the report */
    struct {
        bool is_set;
        int64_t number, at;
        size_t count;
        char first[16], notes[128], detail[32]; /* of a replacement */
    } channels[MODEL_CHANNELS];
    struct wr_buf told; /* what the last calls told those who wait, a line each */
    int64_t ungrouped;  /* of deliveries whose group was destroyed: nobody books that */
    int64_t
        vanished; /* waiting jobs whose entries were deleted by hand: SUM shows them */
    bool let_in;  /* in this call */
    bool hands;   /* this call may hand its job over */
    bool wake, due, paused;
    bool is_long; /* a record may be long: config says so */
    struct {      /* the job that wake brings; call 0: none */
        int worker;
        int64_t call;
        char text[300];
    } brought;
    bool wakes_later;  /* inside of a reserve: the marker is put at its end */
    char defaults[32]; /* " retry=7": of jobs that do not say it */
    int64_t paused_at;
    char paused_by[40]; /* and why */
    char shelved_last[64];
    struct {
#define X(name) int64_t name;
        MODEL_COUNTERS(X)
#undef X
    } n;
};

struct model_item {
    struct model_job *job; /* NULL: has a made-up name */
    char made_up[16];
    bool tabbed; /* a stream may give it the id of its entry */
    char head[16], tail[192], unique[32], due[32];
    struct model_options options;
    int64_t window;
    char mode[2]; /* "", "r", "l" */
    size_t payload_len;
};

/* One delivery named by a worker, and what the worker says about it. */
struct model_answer {
    struct model_job *job;
    int64_t token, delay, limit;
    bool snoozed, started;
    char text[32];  /* result, error, reason's text; what was printed */
    char facts[16]; /* of the run */
    int64_t at;     /* log */
    bool last;      /* log */
};

struct model_reserve {
    int worker;
    int64_t call, lease, bytes;
    size_t free, ahead;
    const char *type; /* the only one that it runs; NULL: any */
    int64_t keep;     /* of jobs that do not say it */
};

const char *model_worker(int worker);    /* "w1" */
const char *model_channel(int channel);  /* "c1" */
const char *model_key(int key);          /* "k1", "-" */
const char *model_line(int order);       /* "g1", "" */
const char *model_waits_at(int channel); /* "ch1" */

/*
 * A job that has its entry's id has its number for a name, "#0000007", and one that is
 * dead because its entry was deleted by hand "lost-#0000007".
 *
 * Entries have numbers here, in the order in which they were added. The token of a
 * delivery of the stream engine is a number too: that of the entry, its group's, its
 * count.
 */
#define MODEL_ENTRY "#%07" PRId64
#define MODEL_TOKENS INT64_C(1000000000)
#define MODEL_TOKEN(entry, generation, count) \
    (MODEL_TOKENS + (entry)*1000000 + (generation)*1000 + (count))

void model_init(struct model *m, int64_t now, bool stream);
struct model_job *model_job(struct model *m, const char *id); /* made when unknown */

void
model_admit(struct model *m, int channel, int64_t number, const struct model_item *items,
            size_t n, bool schedule, struct wr_buf *out);
/* enqueue of one, whose end the tag waits for. */
struct model_tag {
    int channel;
    int64_t number, keep;
};
void
model_call(struct model *m, int channel, int64_t number, const struct model_item *item,
           const struct model_tag *tag, struct wr_buf *out);
void model_wait(struct model *m, struct model_job *job, const struct model_tag *tag,
                bool early, struct wr_buf *out);
void model_replace(struct model *m, int channel, int64_t number,
                   const struct model_item *item, struct wr_buf *out);
void model_farewell(struct model *m, int channel, struct wr_buf *out);
void model_reserve(struct model *m, const struct model_reserve *r, struct wr_buf *out);
void model_exchange(struct model *m, const struct model_reserve *r,
                    const struct model_answer *a, size_t n, struct wr_buf *out);
void model_extend(struct model *m, int worker, int64_t lease,
                  const struct model_answer *a, size_t n, struct wr_buf *out);
void model_progress(struct model *m, int worker, const struct model_answer *a,
                    struct wr_buf *out);
/* Limits of a log call, small ones. */
struct model_log {
    int64_t head, tail, piece, bytes;
};
void model_log(struct model *m, int worker, const struct model_log *limits,
               const struct model_answer *a, size_t n, struct wr_buf *out);
void model_ack_then(struct model *m, int worker, const struct model_answer *a, size_t n,
                    struct wr_buf *out);
void model_ack(struct model *m, int worker, const struct model_answer *a, size_t n,
               struct wr_buf *out);
void model_retry(struct model *m, int worker, const struct model_answer *a, size_t n,
                 struct wr_buf *out);
void model_bury(struct model *m, int worker, const struct model_answer *a, size_t n,
                struct wr_buf *out);
void model_release(struct model *m, int worker, const struct model_answer *a, size_t n,
                   struct wr_buf *out);
void model_promote(struct model *m, size_t limit, struct wr_buf *out);

/* Offers: part_model_offer.c. */
void model_offer(struct model *m, const struct model_offer *o, int64_t wait,
                 struct wr_buf *out);
void
model_withdraw(struct model *m, int worker, int64_t call, bool off, struct wr_buf *out);
void model_pop_marker(struct model *m); /* somebody takes it */

struct model_reclaim {
    int64_t lease, lease_max, gap, last; /* gap -1: first call */
    bool quiet;
    size_t limit;
};
void model_reclaim(struct model *m, const struct model_reclaim *r, struct wr_buf *out);
void model_reclaim_held(struct model *m, int worker, const struct model_answer *a,
                        size_t n, struct wr_buf *out);
void model_forget(struct model *m, size_t limit, size_t count_max, int64_t bytes_max,
                  struct wr_buf *out);
void model_sweep(struct model *m, int64_t idle, struct wr_buf *out);
void model_cancel(struct model *m, struct model_job *const *jobs, size_t n,
                  struct wr_buf *out);
void model_reschedule(struct model *m, struct model_job *job, const char *due,
                      struct wr_buf *out);
/* jobs NULL: the oldest dead ones. before < 0: any. */
void model_replay(struct model *m, struct model_job *const *jobs, size_t n, size_t limit,
                  int64_t before, size_t skip, struct wr_buf *out);
void model_purge(struct model *m, struct model_job *const *jobs, size_t n, size_t limit,
                 int64_t before, struct wr_buf *out);
struct model_trim {
    size_t limit, count; /* limits: 0 is none */
    int64_t age, bytes;
};
void model_trim(struct model *m, const struct model_trim *t, struct wr_buf *out);
void model_pause(struct model *m, struct wr_buf *out);
void model_resume(struct model *m, struct wr_buf *out);
void model_inspect(struct model *m, struct model_job *job, struct wr_buf *out);
/* Somebody deletes the record in `jobs`, or the entry of a stream. */
void model_lose_body(struct model *m, struct model_job *job);

/* Somebody destroyed the group of a stream that has entries: the next reserve makes one.
 */
void model_lose_group(struct model *m, const struct model_reserve *r, struct wr_buf *out);

/* One step of a move: part_model_move.c. */
void model_migrate(struct model *m, bool to_stream, size_t limit, size_t bytes,
                   struct wr_buf *out);
void model_move_dump(const struct model *m, struct wr_buf *out);

/*
 * Cron entries stand beside the queue: part_model_cron.c. Their ticks are small numbers
 * here, which come again and again.
 */
#define MODEL_ENTRIES 2
struct model_entry {
    bool is_set, paused;
    int64_t rev, at, fired, skipped;
    char due[24], last[24], waits[24]; /* "-": none */
    int spec, overlap;                 /* overlap: index in model_overlaps */
    char def[300];
    struct model_item item; /* what its jobs are; without job and due */
};
struct model_cron {
    struct model_entry entries[MODEL_ENTRIES];
    int64_t version, version_at;                      /* version 0: no hash */
    int64_t made, refused, skipped, waited, replaced; /* what happened, for the report */
};
struct model_tick {
    int64_t rev;
    char expected[24], tick[24], next[24], at[32]; /* tick "": none */
    int64_t passed;
};
extern const char *const model_overlaps[4];
const char *model_entry_name(int entry); /* "e0" */
/* Fills def, of the other fields of the definition. */
void model_entry_define(struct model_entry *e);
/* rev -1: any. wanted: the definition. */
void
model_cron_put(struct model *m, struct model_cron *c, int entry, int64_t rev,
               const char *next, const struct model_entry *wanted, struct wr_buf *out);
void model_cron_remove(struct model *m, struct model_cron *c, int entry, int64_t rev,
                       struct wr_buf *out);
void
model_cron_pause(struct model *m, struct model_cron *c, int entry, struct wr_buf *out);
void model_cron_resume(struct model *m, struct model_cron *c, int entry, int64_t rev,
                       const char *next, struct wr_buf *out);
void model_cron_fire(struct model *m, struct model_cron *c, int entry,
                     const struct model_tick *t, struct wr_buf *out);
void model_cron_run(struct model *m, struct model_cron *c, int entry, const char *run,
                    struct wr_buf *out);
void model_cron_dump(const struct model_cron *c, struct wr_buf *out);
extern const char model_cron_dump_script[];

/* Places without a record: what gap_bodies must be, negated; and the jobs whose entries
 * were deleted by hand, and are not booked: what SUM and READY must be off by. */
int64_t model_missing_bodies(const struct model *m);
int64_t model_missing_entries(const struct model *m);
void model_dump(const struct model *m, struct wr_buf *out);
extern const char model_dump_script[];

#endif
