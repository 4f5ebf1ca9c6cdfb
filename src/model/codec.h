/*
 * model/codec.h - a job as it is stored: one header line, a newline, the payload.
 *
 *     1 mail 1796000000000 retry=5 keep=86400000 meta.trace=abc
 *
 * format version, type, time of the enqueue (put in by the script), then every
 * option that differs from its default, as name=value. Values are words: blanks,
 * '%', '=' and control bytes are percent-encoded. Unknown names are kept apart and
 * ignored, so that older workers can run newer jobs; an unknown format version is
 * an error and the job is released, not buried.
 */
#ifndef WR_MODEL_CODEC_H
#define WR_MODEL_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

#define WR_FORMAT_VERSION 1
#define WR_HEADER_MAX 4096 /* bytes of a header line */
/* What a job said of its progress is kept as long as the job itself. */
#define WR_PROGRESS_WITH_JOB INT64_MAX

/* What a record says. Spans point into the record, or into `text`, which
 * wr_job_record_fini frees. */
struct wr_record {
    struct wr_span type; /* decoded */
    int64_t enqueued_at_ms;
    int64_t max_retry;            /* default 3 */
    bool max_retry_given;         /* write it also if it is 3: not the queue's default */
    int64_t max_deliveries;       /* default 3; 0: no limit */
    int64_t timeout_ms;           /* default 30 min; 0: none */
    int64_t kill_after_ms;        /* default 10 s */
    int64_t keep_ms;              /* default 0 */
    int64_t expires_ms;           /* after its enqueue; 0: never */
    int64_t keep_progress_ms;     /* after its end; default WR_PROGRESS_WITH_JOB */
    struct wr_span backoff;       /* spec, decoded; empty: default */
    struct wr_span unique;        /* key, decoded; empty: none */
    struct wr_span unique_states; /* in which it holds the key; empty: default */
    struct wr_span order;         /* key of its line, decoded; empty: none */
    struct wr_span then; /* what follows its success, see wr_then_add(); empty: nothing
                          */
    struct wr_span
        meta; /* the raw "meta.k=v meta.k=v" part of the header; may be empty */
    struct wr_span payload;
    bool lost_body;     /* a stub: the record itself is gone */
    struct wr_buf text; /* where decoded words are */
};

/* False when the record cannot be read; *version is then the number it begins with,
 * or -1, and *out has the payload alone, if any. The record must live as long as *out. */
bool wr_record_read(struct wr_span record, struct wr_record *out, int *version);
/* Appends the value of a meta field to out; false if the job has none of this name. */
bool wr_record_meta(const struct wr_record *record, const char *name, struct wr_buf *out);
void wr_record_fini(struct wr_record *record);

/* The two parts that enqueue sends: head "1 mail", tail " opts\npayload". The fields of
 * `r` that are used: type, all options, unique, backoff, payload; meta must be encoded
 * already. False if the header would be longer than WR_HEADER_MAX, there is no type, a
 * number is negative, or memory ran out. The same job gives the same bytes. */
bool wr_record_write(const struct wr_record *r, struct wr_buf *head, struct wr_buf *tail);

/* Bytes of a delivery's token, with its NUL. The list engine draws a number, the stream
 * engine says entry and count: "1796000000000-5.2". */
#define WR_TOKEN_MAX 64

/* What of a job changes: the value in the `state` hash. */
struct wr_job_state {
    char token[WR_TOKEN_MAX];
    char worker[100];
    bool cancelled; /* flagged */
    int64_t keep_ms, deliveries, attempts, lost, interrupted, snoozes, started_at_ms,
        max_deliveries;
    struct wr_span progress; /* points into the text given */
};
bool wr_job_state_read(struct wr_span text, struct wr_job_state *out);

#endif
