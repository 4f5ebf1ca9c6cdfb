/*
 * worker/coproc.h - one process that stays and runs job after job, as the thread sees it
 * that has a job for it. The spawner starts it and hands its pipes over; what goes
 * through them is in coproc_line.h.
 *
 * One thread at a time owns a process (handler_coproc.c sees to that); only
 * wr_coproc_stop() may come from another.
 */
#ifndef WR_WORKER_COPROC_H
#define WR_WORKER_COPROC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/coproc_line.h"
#include "worker/exec_config.h"
#include "worker/handler.h"
#include "worker/spawner.h"

#define WR_COPROC_LAST_MS 1500 /* for one that said that it ends, to end */

struct wr_coproc {
    struct wr_coproc *next;              /* handler_coproc.c's */
    const char *type;                    /* for its environment and the log */
    const struct wr_exec_config *config; /* what is run, where, with which bounds */
    size_t seat;                         /* of the spawner */

    bool open;
    int fds[3];        /* its stdin, stdout, stderr; not blocking */
    int64_t call;      /* the number of its last job */
    struct wr_buf out; /* a line to it, of which `sent` bytes are written */
    size_t sent;
    size_t wrote;     /* the same, also when it takes no more */
    struct wr_buf in; /* what came and is not read; the first `looked` have no newline */
    size_t looked;
    struct wr_buf err;  /* of its standard error: a part of a line */
    char err_last[512]; /* its last line */
    size_t logged;      /* lines since the last job began: a flood is cut */
    struct wr_coproc_line line;
    struct wr_exec_end end; /* how the last process ended */

    pthread_mutex_t mu; /* guards what follows */
    struct weir_delivery *current;
    bool killed; /* it was told to end: it gets no other job */
};

/* What became of a start or a job. */
enum wr_coproc_end {
    WR_COPROC_OK,     /* it said hello; the answer is in line */
    WR_COPROC_FAILED, /* why says it; the process is gone */
    WR_COPROC_UNREAD, /* the same, and it had read nothing of the job */
    WR_COPROC_TIMEOUT,
    WR_COPROC_GONE, /* so is the spawner */
};

/* Starts it, and waits for its hello. */
enum wr_coproc_end wr_coproc_open(struct wr_coproc *p, const struct weir_delivery *d,
                                  char *why, size_t why_len);
/* False: it has ended, or said what it must not, while it had nothing to do; it is gone.
 */
bool wr_coproc_is_well(struct wr_coproc *p);
/* Gives it the job and waits for its answer, for as long as the job may run. */
enum wr_coproc_end
wr_coproc_run(struct wr_coproc *p, struct weir_delivery *d, char *why, size_t why_len);
/* Closes its stdin, gives it wait_ms to end by itself, then stops it as a command is
 * stopped, and waits for its end. how (NULL: do not say) is what it ended with, and its
 * last word: "exit 1: ImportError: ...". */
enum wr_coproc_end wr_coproc_close(struct wr_coproc *p, int64_t wait_ms,
                                   int64_t kill_after_ms, char *how, size_t how_len);
/* All of them, at the same time, when nothing runs any more. */
void wr_coproc_close_all(struct wr_coproc *list, size_t n);
/* From any thread: ends it if it runs this job. */
void
wr_coproc_stop(struct wr_coproc *p, const struct weir_delivery *d, int64_t kill_after_ms);

#endif
