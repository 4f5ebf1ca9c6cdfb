/*
 * store/cron.h - cron entries in Redis: one function per transition, under the rules of
 * store.h. Each answers the server's time, so that callers compute with its clock alone.
 */
#ifndef WR_STORE_CRON_H
#define WR_STORE_CRON_H

#include "model/entry.h"
#include "store/store.h"

#define WR_CRON_VERSION_MAX 64
#define WR_CRON_DETAIL_MAX 320

/* Calls each with every entry: its name, and its stored text without the payload. It may
 * be called twice with one. An unreadable entry comes as well. */
typedef void (*wr_cron_fn)(struct wr_span name, struct wr_span text, void *context);

/*
 * version: in, what the caller knows ("": nothing); out, what was read. *same: nothing
 * changed since, and each was not called. *server_us: the server's time, of a moment
 * within this call. A queue that nobody made has no entries.
 */
enum weir_err wr_store_cron_each(struct wr_store *store, struct wr_queue *queue,
                                 char version[WR_CRON_VERSION_MAX], bool *same,
                                 int64_t *server_us, wr_cron_fn each, void *context,
                                 struct weir_error *err) WEIR_MUST_CHECK;
/* One entry with its payload; *text lies in *reply. E_NO_CRON. */
enum weir_err
wr_store_cron_get(struct wr_store *store, struct wr_queue *queue, const char *name,
                  int64_t *server_us, struct wr_reply **reply, struct wr_span *text,
                  struct weir_error *err) WEIR_MUST_CHECK;

#define WR_REV_ANY (-1)
#define WR_REV_NEW 0

/* rev: which one to change. Makes the queue if need be. *same: nothing was to be done.
 * E_EXISTS, E_NO_CRON, E_CHANGED. next_ms < 0: never. */
enum weir_err
wr_store_cron_put(struct wr_store *store, struct wr_queue *queue, const char *name,
                  int64_t rev, int64_t next_ms, struct wr_span def, int64_t *new_rev,
                  bool *same, struct weir_error *err) WEIR_MUST_CHECK;
/* E_NO_CRON, E_CHANGED. */
enum weir_err
wr_store_cron_remove(struct wr_store *store, struct wr_queue *queue, const char *name,
                     int64_t rev, struct weir_error *err) WEIR_MUST_CHECK;
/* *was: it was so before. E_NO_CRON; resume: E_CHANGED. */
enum weir_err
wr_store_cron_pause(struct wr_store *store, struct wr_queue *queue, const char *name,
                    bool *was, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_store_cron_resume(struct wr_store *store, struct wr_queue *queue,
                                   const char *name, int64_t rev, int64_t next_ms,
                                   bool *was, struct weir_error *err) WEIR_MUST_CHECK;

struct wr_cron_tick {
    const char *name;
    int64_t rev;
    int64_t expected_ms; /* the tick that is due */
    int64_t tick_ms;     /* the one that makes a job; -1: none */
    int64_t next_ms;     /* -1: never again */
    int64_t at_ms;       /* the job starts not before; 0: at once */
    int64_t passed;      /* ticks that are skipped for good */
};

enum wr_cron_word {
    WR_CRON_OK,
    WR_CRON_PASSED,
    WR_CRON_SKIPPED,
    WR_CRON_WAITS,
    WR_CRON_REFUSED,
    WR_CRON_NONE,
    WR_CRON_EARLY,
    WR_CRON_CHANGED,
    WR_CRON_GONE,
};

struct wr_cron_fired {
    enum wr_cron_word word;
    char detail[WR_CRON_DETAIL_MAX]; /* a job's id, or why it was refused */
    int64_t early_us;                /* EARLY: until it is due */
    /* the entry as it is now, but not GONE */
    int64_t rev, due_ms;
    bool paused, waits;
};

enum weir_err
wr_store_cron_fire(struct wr_store *store, struct wr_queue *queue,
                   const struct wr_cron_tick *tick, struct wr_cron_fired *out,
                   struct weir_error *err) WEIR_MUST_CHECK;
/* run: a new word, or "" for the run that waits. */
enum weir_err
wr_store_cron_run(struct wr_store *store, struct wr_queue *queue, const char *name,
                  const char *run, struct wr_cron_fired *out,
                  struct weir_error *err) WEIR_MUST_CHECK;

#endif
