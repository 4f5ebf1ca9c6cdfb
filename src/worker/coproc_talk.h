/*
 * worker/coproc_talk.h - what goes through the pipes of a co-process; for coproc.c. The
 * thread that owns the process calls all of it.
 */
#ifndef WR_WORKER_COPROC_TALK_H
#define WR_WORKER_COPROC_TALK_H

#include "worker/coproc.h"

#define WR_COPROC_LOG_LINES 200 /* of one job, in the worker's log */

enum wr_heard {
    WR_HEARD_NOTHING, /* wait for more */
    WR_HEARD_WORD,    /* what was waited for is in line */
    WR_HEARD_BAD,     /* it cannot be trusted any more */
};

/* What is waited for. */
struct wr_coproc_wait {
    struct weir_delivery *d; /* whose answer; NULL with hello */
    bool hello;
    int64_t until_ms; /* 0: no limit */
    char *why;
    size_t why_len;
};

/* What of `out` the pipe takes now. */
void wr_coproc_write_out(struct wr_coproc *p);
/* What it did not read still stands in the pipe: all that was written. */
bool wr_coproc_is_unread(const struct wr_coproc *p);
/* What stands in a pipe now, but no more than a piece: false at its end. */
bool wr_coproc_read_piece(int fd, struct wr_buf *to);
/* All lines that have come, up to the one that was waited for. d: whose job it has; NULL:
 * none. */
enum wr_heard wr_coproc_read_lines(struct wr_coproc *p, struct weir_delivery *d,
                                   bool hello, char *why, size_t why_len);
/* One turn: sends what is to be sent, waits, reads. seat_fd: readable when it has ended.
 * *ended: it will say no more. */
enum wr_heard wr_coproc_turn(struct wr_coproc *p, const struct wr_coproc_wait *w,
                             int seat_fd, bool *ended);
/* It has ended: what it said on standard error before. */
void wr_coproc_hear_last(struct wr_coproc *p);

#endif
