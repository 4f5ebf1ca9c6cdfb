/*
 * loop/loop.h - the door to libuv: descriptors to watch, timers, and a call from
 * another thread. Nothing outside this folder includes <uv.h>.
 *
 * A loop belongs to the thread that runs it: only wr_loop_wake() may be called from
 * elsewhere. It does not survive fork: a child makes its own and leaves the inherited one
 * alone. Callbacks may free any watch or timer, their own too; what was freed is not
 * called any more, not even in the same turn. No signals: a signalfd is a descriptor like
 * others.
 */
#ifndef WR_LOOP_LOOP_H
#define WR_LOOP_LOOP_H

#include <stdint.h>

#include <weir/error.h>

struct wr_loop;
struct wr_watch;
struct wr_timer;

/* E_NO_MEMORY: also when descriptors run out. */
enum weir_err wr_loop_new(struct wr_loop **out, struct weir_error *err) WEIR_MUST_CHECK;
/* Not from a callback. Its watches and timers must have been freed. NULL is allowed. */
void wr_loop_free(struct wr_loop *loop);
/* Until wr_loop_stop(). E_IO: the timer cannot be set. */
enum weir_err wr_loop_run(struct wr_loop *loop, struct weir_error *err) WEIR_MUST_CHECK;
/* From a callback: run() returns after this turn. Before run(): it returns at once. */
void wr_loop_stop(struct wr_loop *loop);

/* fn is called on the loop's thread at least once after each wake; many may become one.
 */
void wr_loop_on_wake(struct wr_loop *loop, void (*fn)(void *arg), void *arg);
/* Any thread, and signal handlers. The loop must not be freed meanwhile. */
void wr_loop_wake(struct wr_loop *loop);

enum wr_watch_event {
    WR_READABLE = 1,
    WR_WRITABLE = 2,
};

/* events: what of the asked has come. An error or a closed other end counts as all that
 * was asked for: the next read or write says which. Level-triggered. */
typedef void wr_watch_fn(void *arg, unsigned events);

/* Asks for nothing yet. The descriptor stays the caller's and becomes non-blocking (so
 * does every duplicate of it); one watch a descriptor; free the watch before closing it.
 * E_IO: it cannot be watched, as regular files. */
enum weir_err wr_watch_new(struct wr_loop *loop, int fd, wr_watch_fn *fn, void *arg,
                           struct wr_watch **out, struct weir_error *err) WEIR_MUST_CHECK;
void wr_watch_ask(struct wr_watch *watch, unsigned events); /* 0: nothing, it rests */
void wr_watch_free(struct wr_watch *watch);                 /* NULL is allowed */

/* NULL when out of memory. Not set yet. */
struct wr_timer *wr_timer_new(struct wr_loop *loop, void (*fn)(void *arg), void *arg);
/* Calls fn once, never before at_us (wr_clock_us(): CLOCK_MONOTONIC); replaces a time
 * that was set before. A time that has passed: in the next turn. */
void wr_timer_set(struct wr_timer *timer, int64_t at_us);
void wr_timer_off(struct wr_timer *timer);
void wr_timer_free(struct wr_timer *timer); /* NULL is allowed */

#endif
