/*
 * worker/output.h - what jobs print while they run, on its way to Redis.
 *
 * Slot threads add bytes to the buffer of their run; a thread of its own, the sender,
 * stores them, in pieces, by the lease thread's connection while that renews nothing. So
 * neither a slow Redis nor a flood of output delays a job or an answer, and a renewal by
 * one piece at most: a buffer is bounded, and what does not fit is left out, counted, and
 * told in the output itself.
 *
 * Live, a run's first 16 KiB and then 50 lines a second are stored; when it is silent for
 * a moment, or over, whatever its buffer still holds (48 KiB) is stored too. So the end
 * of the output is always there.
 */
#ifndef WR_WORKER_OUTPUT_H
#define WR_WORKER_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>

#include "base/buf.h"

struct weir_worker;
struct weir_delivery;
struct wr_runner;
struct wr_lease_thread;
struct wr_output; /* of one run; made when it prints first */
struct wr_sender;

/* The runner's I/O thread is woken when the last bytes of a run are stored. */
enum weir_err
wr_sender_start(const struct weir_worker *w, const char *worker, struct wr_runner *runner,
                struct wr_lease_thread *lease, struct wr_sender **out,
                struct weir_error *err) WEIR_MUST_CHECK;
/* Stores what is left, for a second at most; the lease thread has stopped, and is freed
 * after this. NULL is allowed. */
void wr_sender_stop(struct wr_sender *sender);

/* ---- slot threads, and threads of a handler ---- */

/* left_out: bytes that got lost before these. */
void
wr_output_add(struct weir_delivery *d, const char *bytes, size_t len, int64_t left_out);

/* ---- I/O thread, when the run is over ---- */

/* It prints no more. discard: nobody will read it. True if its last bytes are being
 * stored, which takes a moment: the answer should wait for it, for a while. */
bool wr_output_end(struct weir_delivery *d, bool discard);
bool wr_output_is_stored(const struct weir_delivery *d);
/* Before the delivery is used again. What is not stored yet may still be. */
void wr_output_let_go(struct weir_delivery *d);

/* ---- output_buffer.c: the buffer itself; the caller holds its lock ---- */

#define WR_OUTPUT_RING_MAX 49152
#define WR_OUTPUT_LINE_MAX 4096
#define WR_OUTPUT_PART_MAX 8192
#define WR_OUTPUT_FREE 16384 /* so much is stored at any rate */
#define WR_OUTPUT_RATE 50    /* lines a second after that */
#define WR_OUTPUT_QUIET_MS 300
#define WR_OUTPUT_PARTIAL_MS 200 /* a line without an end waits so long */

/* How much was printed before something. */
struct wr_output_position {
    int64_t bytes, lines;
};

struct wr_output_buffer {
    struct wr_buf line; /* that has no end yet */
    int64_t line_ms;    /* when it began */
    struct wr_buf head; /* whole records that wait: of the begin of the run */
    struct wr_buf ring; /* and of the rest, oldest first */
    struct wr_output_position head_at, ring_at;
    int64_t told_bytes;  /* up to where it was taken */
    int64_t added_bytes; /* printed so far */
    int64_t added_ms;    /* last */
    int64_t free_left;   /* of WR_OUTPUT_FREE, for the head */
    int64_t rate_ms;     /* when the next line may go */
    bool whole;          /* all that waits may go */
};

/* Times are ms since the run began. */
void wr_output_buffer_add(struct wr_output_buffer *b, const char *bytes, size_t len,
                          int64_t left_out, int64_t now);
/* Appends to part what may be stored now, WR_OUTPUT_PART_MAX bytes or a little more.
 * ended: all may. True if nothing is left. */
bool wr_output_buffer_take(struct wr_output_buffer *b, struct wr_buf *part, bool ended,
                           int64_t now);
/* When to look again; INT64_MAX: nothing waits. */
int64_t wr_output_buffer_due(const struct wr_output_buffer *b);
void wr_output_buffer_fini(struct wr_output_buffer *b);

#endif
