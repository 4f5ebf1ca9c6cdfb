/*
 * model/entry.h - a cron entry as it is stored: a value of the hash `cron`.
 *
 *     1795999000000 1796000060000 - 1796000000000 1796000000004 12 0 -
 *     spec=*%2F5%20*%20*%20*%20* zone=UTC overlap=skip
 *     1 mail retry=5
 *     {"to":"ann"}
 *
 * The first line is written by scripts alone: revision, next tick (ms, - for none), p or
 * - (paused), the end of the last job's id, when that was made, jobs made, ticks skipped,
 * the run that waits or -. The rest is the definition: options that differ from their
 * default, and the record of its jobs without the time. Unknown options are ignored.
 */
#ifndef WR_MODEL_ENTRY_H
#define WR_MODEL_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

#define WR_ENTRY_NAME_MAX 100
#define WR_ENTRY_BYTES_MAX 65536 /* of a definition */
#define WR_ENTRIES_MAX 10000     /* in a queue */
#define WR_ENTRY_SPEC_MAX 256
#define WR_ENTRY_ZONE_MAX 64
#define WR_CAP_DEFAULT 100
#define WR_CAP_MAX 1000
#define WR_GRACE_DEFAULT_MS 60000

/* What becomes of ticks that nobody could fire in time. */
enum wr_missed {
    WR_MISSED_ONCE, /* one run for all of them */
    WR_MISSED_SKIP,
    WR_MISSED_ALL, /* a run for each, the newest `cap` of them */
};

/* What becomes of a tick while the job of the one before waits or runs. */
enum wr_overlap {
    WR_OVERLAP_ALLOW,
    WR_OVERLAP_SKIP,
    WR_OVERLAP_QUEUE,   /* it runs after that one; at most one waits so */
    WR_OVERLAP_REPLACE, /* that one is called off */
};

extern const char *const wr_missed_words[];  /* "once", ...; NULL at the end */
extern const char *const wr_overlap_words[]; /* "allow", ... */

struct wr_entry {
    /* what changes */
    int64_t rev;
    int64_t due_ms; /* -1: never again */
    bool paused;
    char last[64]; /* a tick's ms or a word; "": no job so far */
    int64_t last_at_ms, fired, skipped;
    char waits[64]; /* "": none */
    /* the definition */
    char spec[WR_ENTRY_SPEC_MAX + 1], zone[WR_ENTRY_ZONE_MAX + 1];
    enum wr_missed missed;
    enum wr_overlap overlap;
    int64_t cap, grace_ms, jitter_ms, window_ms; /* window: of the unique key */
    struct wr_span record; /* "1 type options\npayload", or its first line alone */
};

/* 1 to 100 bytes, no control characters. */
bool wr_entry_is_name(struct wr_span name);
/* False if it cannot be read. record points into the text. */
bool wr_entry_read(struct wr_span text, struct wr_entry *out);
/* Appends the definition: the options of `e`, then head and tail of wr_record_write().
 * The same entry gives the same bytes. */
void wr_entry_write(const struct wr_entry *e, struct wr_span head, struct wr_span tail,
                    struct wr_buf *out);

/* How long the job of a tick is held back: 0 to jitter_ms, always the same for the same
 * entry and tick, whoever asks. */
int64_t wr_entry_jitter(const char *name, int64_t tick_ms, int64_t jitter_ms);

#endif
