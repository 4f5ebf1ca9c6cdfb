/*
 * Watches are uv_poll handles. Timers are not libuv's, which count milliseconds and may
 * be early by one: a heap of them stands behind one timerfd.
 */
#include "loop/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <uv.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"

#define NOT_SET SIZE_MAX

struct wr_timer {
    struct wr_loop *loop;
    void (*fn)(void *arg);
    void *arg;
    int64_t at_us;
    size_t place; /* in the heap; NOT_SET */
};

struct wr_watch {
    uv_poll_t poll;
    struct wr_loop *loop;
    wr_watch_fn *fn;
    void *arg;
    unsigned asked;
    bool freed;
};

struct wr_loop {
    uv_loop_t uv;
    uv_async_t wake;
    bool has_wake;
    void (*wake_fn)(void *arg);
    void *wake_arg;
    bool stopped;
    int timer_fd;
    struct wr_watch *timer_watch;
    bool timer_failed;
    int64_t armed_us; /* what timer_fd is set to; 0: not set */
    int64_t turn_us;  /* while timers are called: those up to this time; 0: not now */
    /* The soonest is first. Room for every timer there is, so that setting one cannot
     * fail. */
    struct wr_timer **heap;
    size_t heap_n, heap_cap, timers_n, watches_n;
};

/* ---- the heap ---- */

static void
put(struct wr_loop *loop, size_t place, struct wr_timer *timer)
{
    loop->heap[place] = timer;
    timer->place = place;
}

static void
sift_up(struct wr_loop *loop, struct wr_timer *timer, size_t place)
{
    while (place > 0 && timer->at_us < loop->heap[(place - 1) / 2]->at_us) {
        put(loop, place, loop->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(loop, place, timer);
}

static void
sift_down(struct wr_loop *loop, struct wr_timer *timer, size_t place)
{
    for (;;) {
        size_t next = 2 * place + 1;

        if (next + 1 < loop->heap_n &&
            loop->heap[next + 1]->at_us < loop->heap[next]->at_us)
            next++;
        if (next >= loop->heap_n || loop->heap[next]->at_us >= timer->at_us)
            break;
        put(loop, place, loop->heap[next]);
        place = next;
    }
    put(loop, place, timer);
}

static void
take_out(struct wr_timer *timer)
{
    struct wr_loop *loop = timer->loop;
    size_t place = timer->place;
    struct wr_timer *last;

    if (place == NOT_SET)
        return;
    last = loop->heap[--loop->heap_n];
    timer->place = NOT_SET;
    if (last == timer)
        return;
    if (place > 0 && last->at_us < loop->heap[(place - 1) / 2]->at_us)
        sift_up(loop, last, place);
    else
        sift_down(loop, last, place);
}

/* ---- timers ---- */

/* Sets the timerfd to the soonest. Later than needed is not possible, sooner costs one
 * idle turn, so a timer that is taken away leaves it as it is. */
static void
arm(struct wr_loop *loop)
{
    struct itimerspec spec = {0};
    int64_t at_us;

    if (loop->heap_n == 0)
        return;
    at_us = loop->heap[0]->at_us;
    if (at_us <= 0)
        at_us = 1; /* 0 would turn it off */
    if (loop->armed_us != 0 && loop->armed_us <= at_us)
        return;
    spec.it_value.tv_sec = at_us / 1000000;
    spec.it_value.tv_nsec = at_us % 1000000 * 1000;
    if (timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) != 0) {
        loop->timer_failed = true;
        uv_stop(&loop->uv);
        return;
    }
    loop->armed_us = at_us;
}

static void
on_timer_fd(void *arg, unsigned events)
{
    struct wr_loop *loop = arg;
    int64_t now = wr_clock_us();
    uint64_t times;

    (void)events;
    if (read(loop->timer_fd, &times, sizeof(times)) < 0)
        return; /* set anew since it became readable */
    loop->armed_us = 0;
    loop->turn_us = now;
    while (loop->heap_n > 0 && loop->heap[0]->at_us <= now && !loop->stopped) {
        struct wr_timer *timer = loop->heap[0];

        take_out(timer);
        timer->fn(timer->arg);
    }
    loop->turn_us = 0;
    arm(loop);
}

struct wr_timer *
wr_timer_new(struct wr_loop *loop, void (*fn)(void *arg), void *arg)
{
    struct wr_timer *timer = calloc(1, sizeof(*timer));

    if (!timer)
        return NULL;
    if (loop->timers_n == loop->heap_cap) {
        size_t cap = loop->heap_cap ? loop->heap_cap * 2 : 16;
        struct wr_timer **heap = realloc(loop->heap, cap * sizeof(struct wr_timer *));

        if (!heap) {
            free(timer);
            return NULL;
        }
        loop->heap = heap;
        loop->heap_cap = cap;
    }
    loop->timers_n++;
    *timer = (struct wr_timer){.loop = loop, .fn = fn, .arg = arg, .place = NOT_SET};
    return timer;
}

void
wr_timer_set(struct wr_timer *timer, int64_t at_us)
{
    struct wr_loop *loop = timer->loop;

    take_out(timer);
    /* A callback that sets a time that has passed waits for the next turn, else the
     * descriptors would wait for it. */
    timer->at_us = at_us > loop->turn_us ? at_us : loop->turn_us + 1;
    sift_up(loop, timer, loop->heap_n++);
    arm(loop);
}

void
wr_timer_off(struct wr_timer *timer)
{
    take_out(timer);
}

void
wr_timer_free(struct wr_timer *timer)
{
    if (!timer)
        return;
    take_out(timer);
    timer->loop->timers_n--;
    free(timer);
}

/* ---- watches ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void
start_poll(struct wr_watch *watch)
{
    int events = ((watch->asked & WR_READABLE) ? UV_READABLE : 0) |
                 ((watch->asked & WR_WRITABLE) ? UV_WRITABLE : 0);

    if (events == 0)
        uv_poll_stop(&watch->poll);
    else
        uv_poll_start(&watch->poll, events, on_poll);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct wr_watch *watch = poll->data;
    unsigned what = ((events & UV_READABLE) ? WR_READABLE : 0u) |
                    ((events & UV_WRITABLE) ? WR_WRITABLE : 0u);

    if (status < 0) {
        /* libuv has stopped the handle: go on as poll(2) would. */
        what = watch->asked;
        start_poll(watch);
    }
    what &= watch->asked;
    if (what != 0)
        watch->fn(watch->arg, what);
}

enum weir_err
wr_watch_new(struct wr_loop *loop, int fd, wr_watch_fn *fn, void *arg,
             struct wr_watch **out, struct weir_error *err)
{
    struct wr_watch *watch = calloc(1, sizeof(*watch));
    int rc;

    *out = NULL;
    if (!watch)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "watch a descriptor");
    watch->loop = loop;
    watch->fn = fn;
    watch->arg = arg;
    rc = uv_poll_init(&loop->uv, &watch->poll, fd);
    if (rc != 0) {
        free(watch);
        return wr_fail(err, WEIR_E_IO, -rc, "watch descriptor %d", fd);
    }
    watch->poll.data = watch;
    loop->watches_n++;
    *out = watch;
    return WEIR_OK;
}

void
wr_watch_ask(struct wr_watch *watch, unsigned events)
{
    WR_ASSERT(watch);
    if (watch->asked == events)
        return;
    watch->asked = events;
    start_poll(watch);
}

static void
on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void
wr_watch_free(struct wr_watch *watch)
{
    if (!watch)
        return;
    WR_ASSERT(!watch->freed);
    watch->freed = true;
    watch->asked = 0;
    watch->loop->watches_n--;
    uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

/* ---- the loop ---- */

static void
on_wake(uv_async_t *wake)
{
    struct wr_loop *loop = wake->data;

    if (loop->wake_fn)
        loop->wake_fn(loop->wake_arg);
}

static enum weir_err
open_parts(struct wr_loop *loop, struct weir_error *err)
{
    enum weir_err rc;
    int uv_rc = uv_async_init(&loop->uv, &loop->wake, on_wake);

    if (uv_rc != 0)
        return wr_fail(err, WEIR_E_NO_MEMORY, -uv_rc, "event loop");
    loop->wake.data = loop;
    loop->has_wake = true;
    loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->timer_fd < 0)
        return wr_fail(err, WEIR_E_NO_MEMORY, errno, "timer of the event loop");
    rc = wr_watch_new(loop, loop->timer_fd, on_timer_fd, loop, &loop->timer_watch, err);
    if (rc == WEIR_OK)
        wr_watch_ask(loop->timer_watch, WR_READABLE);
    return rc;
}

enum weir_err
wr_loop_new(struct wr_loop **out, struct weir_error *err)
{
    struct wr_loop *loop = calloc(1, sizeof(*loop));
    enum weir_err rc;
    int uv_rc;

    *out = NULL;
    if (!loop)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "event loop");
    loop->timer_fd = -1;
    uv_rc = uv_loop_init(&loop->uv);
    if (uv_rc != 0) {
        free(loop);
        return wr_fail(err, WEIR_E_NO_MEMORY, -uv_rc, "event loop");
    }
    rc = open_parts(loop, err);
    if (rc != WEIR_OK) {
        wr_loop_free(loop);
        return rc;
    }
    *out = loop;
    return WEIR_OK;
}

void
wr_loop_free(struct wr_loop *loop)
{
    if (!loop)
        return;
    wr_watch_free(loop->timer_watch);
    WR_ASSERT(loop->timers_n == 0 && loop->watches_n == 0);
    if (loop->has_wake)
        uv_close((uv_handle_t *)&loop->wake, NULL);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0) /* handles are freed in its turns */
        continue;
    WR_ASSERT(uv_loop_close(&loop->uv) == 0);
    if (loop->timer_fd >= 0)
        close(loop->timer_fd);
    free(loop->heap);
    free(loop);
}

enum weir_err
wr_loop_run(struct wr_loop *loop, struct weir_error *err)
{
    while (!loop->stopped && !loop->timer_failed)
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop->stopped = false;
    if (loop->timer_failed)
        return wr_fail(err, WEIR_E_IO, 0, "timer of the event loop");
    return WEIR_OK;
}

void
wr_loop_stop(struct wr_loop *loop)
{
    loop->stopped = true;
    uv_stop(&loop->uv);
}

void
wr_loop_on_wake(struct wr_loop *loop, void (*fn)(void *arg), void *arg)
{
    loop->wake_fn = fn;
    loop->wake_arg = arg;
}

void
wr_loop_wake(struct wr_loop *loop)
{
    uv_async_send(&loop->wake);
}
