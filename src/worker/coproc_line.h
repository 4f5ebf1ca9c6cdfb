/*
 * worker/coproc_line.h - the lines of the protocol weir-coproc/1, made and read: no
 * processes here. docs/coproc-protocol.md is the specification.
 */
#ifndef WR_WORKER_COPROC_LINE_H
#define WR_WORKER_COPROC_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/worker.h>

#include "base/buf.h"

#define WR_COPROC_VERSION 1
#define WR_COPROC_RESULT_MAX 65536
/* Of a line that a process writes: a result of which every byte is an escape of six
 * characters, and something beside it. */
#define WR_COPROC_LINE_MAX (6 * WR_COPROC_RESULT_MAX + 65536)

/* The first line to a process. */
void wr_coproc_hello(struct wr_buf *out, const char *type, const char *worker);
/* A job. call: its number, by which the answer is known. */
void wr_coproc_job(struct wr_buf *out, const struct weir_delivery *d, int64_t call);

enum wr_coproc_word {
    WR_COPROC_NOISE,   /* no object: somebody printed something */
    WR_COPROC_GARBAGE, /* an object, but not one of the protocol; why says it */
    WR_COPROC_OTHER,   /* an object that this version does not know */
    WR_COPROC_HELLO,
    WR_COPROC_ANSWER,
    WR_COPROC_PROGRESS,
    WR_COPROC_LOG,
};

/* What a line says. Reuse it: its buffers keep their memory. */
struct wr_coproc_line {
    enum wr_coproc_word word;
    int64_t version; /* HELLO */
    int64_t call;    /* ANSWER, PROGRESS; -1: not said */
    enum weir_outcome outcome;
    int64_t delay_ms; /* -1: not said */
    bool last;        /* ANSWER: it ends after this */
    int percent;      /* PROGRESS; -1: not said */
    bool has_result;
    struct wr_buf result; /* its bytes */
    struct wr_buf text;   /* error, progress text, log line */
    struct wr_buf stage;  /* of progress */
    char why[200];        /* GARBAGE */
};

/* False: out of memory. */
bool wr_coproc_read(struct wr_coproc_line *line, const char *text, size_t len);
void wr_coproc_line_fini(struct wr_coproc_line *line);

#endif
