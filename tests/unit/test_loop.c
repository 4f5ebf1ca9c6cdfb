/* The event loop: descriptors, timers, calls from other threads. */
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "loop/loop.h"

struct scene {
    struct wr_loop *loop;
    struct wr_watch *watch[2];
    struct wr_timer *timer[8];
    int fds[2];
    int calls;
    unsigned events;
    int order[8];
    int64_t due_us[8], late_us;
};

static int
set_up(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    assert_int_equal(wr_loop_new(&s->loop, NULL), WEIR_OK);
    assert_int_equal(pipe2(s->fds, O_CLOEXEC), 0);
    *state = s;
    return 0;
}

static int
tear_down(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 2; i++)
        wr_watch_free(s->watch[i]);
    for (int i = 0; i < 8; i++)
        wr_timer_free(s->timer[i]);
    wr_loop_free(s->loop);
    for (int i = 0; i < 2; i++) {
        if (s->fds[i] >= 0)
            close(s->fds[i]);
    }
    free(s);
    return 0;
}

static void
run(struct scene *s)
{
    assert_int_equal(wr_loop_run(s->loop, NULL), WEIR_OK);
}

static void
stop_loop(void *arg)
{
    struct scene *s = arg;

    s->calls++;
    wr_loop_stop(s->loop);
}

static void
note_events(void *arg, unsigned events)
{
    struct scene *s = arg;

    s->events = events;
    stop_loop(s);
}

static void
watch(struct scene *s, int which, wr_watch_fn *fn, unsigned events)
{
    assert_int_equal(wr_watch_new(s->loop, s->fds[which], fn, s, &s->watch[which], NULL),
                     WEIR_OK);
    wr_watch_ask(s->watch[which], events);
}

static void
a_readable_descriptor_is_told(void **state)
{
    struct scene *s = *state;

    watch(s, 0, note_events, WR_READABLE);
    assert_int_equal(write(s->fds[1], "x", 1), 1);
    run(s);
    assert_int_equal(s->events, WR_READABLE);
}

static void
it_is_told_again_while_bytes_are_left(void **state)
{
    struct scene *s = *state;

    watch(s, 0, note_events, WR_READABLE);
    assert_int_equal(write(s->fds[1], "x", 1), 1);
    run(s);
    run(s);
    assert_int_equal(s->calls, 2);
}

static void
a_writable_descriptor_is_told(void **state)
{
    struct scene *s = *state;

    watch(s, 1, note_events, WR_WRITABLE);
    run(s);
    assert_int_equal(s->events, WR_WRITABLE);
}

static void
a_closed_other_end_counts_as_what_was_asked_for_every_time(void **state)
{
    struct scene *s = *state;

    watch(s, 1, note_events, WR_WRITABLE);
    close(s->fds[0]);
    s->fds[0] = -1;
    for (int i = 1; i <= 3; i++) {
        run(s);
        assert_int_equal(s->events, WR_WRITABLE);
        assert_int_equal(s->calls, i);
    }
}

static void
a_watch_that_rests_is_not_called(void **state)
{
    struct scene *s = *state;

    watch(s, 0, note_events, WR_READABLE);
    wr_watch_ask(s->watch[0], 0);
    assert_int_equal(write(s->fds[1], "x", 1), 1);
    s->timer[0] = wr_timer_new(s->loop, stop_loop, s);
    wr_timer_set(s->timer[0], wr_clock_us() + 5000);
    run(s);
    assert_int_equal(s->events, 0);
    assert_int_equal(s->calls, 1);
}

static void
free_both(void *arg, unsigned events)
{
    struct scene *s = arg;

    (void)events;
    for (int i = 0; i < 2; i++) {
        wr_watch_free(s->watch[i]);
        s->watch[i] = NULL;
    }
    stop_loop(s);
}

static void
a_callback_may_free_itself_and_others_of_the_same_turn(void **state)
{
    struct scene *s = *state;

    assert_int_equal(write(s->fds[1], "x", 1), 1);
    watch(s, 0, free_both, WR_READABLE);
    watch(s, 1, free_both, WR_WRITABLE);
    run(s);
    s->timer[0] = wr_timer_new(s->loop, stop_loop, s);
    wr_timer_set(s->timer[0], wr_clock_us() + 2000);
    run(s);
    assert_int_equal(s->calls, 2); /* one watch, one timer */
}

static void
a_descriptor_number_can_be_watched_again_at_once(void **state)
{
    struct scene *s = *state;

    watch(s, 0, note_events, WR_READABLE);
    wr_watch_free(s->watch[0]);
    watch(s, 0, note_events, WR_READABLE);
    assert_int_equal(write(s->fds[1], "x", 1), 1);
    run(s);
    assert_int_equal(s->calls, 1);
}

static void
a_regular_file_cannot_be_watched(void **state)
{
    struct scene *s = *state;
    char path[] = "/tmp/weir-loop-XXXXXX";
    int fd = mkstemp(path);
    struct wr_watch *out;

    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(wr_watch_new(s->loop, fd, note_events, s, &out, NULL), WEIR_E_IO);
    assert_null(out);
    close(fd);
}

/* ---- timers ---- */

#define TIMERS 8

struct tick {
    struct scene *s;
    int number;
};

static void
note_tick(void *arg)
{
    struct tick *tick = arg;
    struct scene *s = tick->s;
    int64_t late_us = wr_clock_us() - s->due_us[tick->number];

    assert_true(late_us >= 0);
    s->late_us = late_us > s->late_us ? late_us : s->late_us;
    s->order[s->calls++] = tick->number;
    if (s->calls == TIMERS)
        wr_loop_stop(s->loop);
}

static void
timers_come_in_order_and_never_early(void **state)
{
    static const int wait_us[TIMERS] = {7100, 300, 5001, 0, 2999, 3000, 1, 6000};
    static const int order[TIMERS] = {3, 6, 1, 4, 5, 2, 7, 0};
    struct scene *s = *state;
    struct tick ticks[TIMERS];

    for (int round = 0; round < 20; round++) {
        int64_t now = wr_clock_us();

        s->calls = 0;
        for (int i = 0; i < TIMERS; i++) {
            ticks[i] = (struct tick){s, i};
            wr_timer_free(s->timer[i]);
            s->timer[i] = wr_timer_new(s->loop, note_tick, &ticks[i]);
            s->due_us[i] = now + wait_us[i];
            wr_timer_set(s->timer[i], s->due_us[i]);
        }
        run(s);
        assert_memory_equal(s->order, order, sizeof(order));
    }
    print_message("timers were late by %d us at most\n", (int)s->late_us);
}

static void
a_timer_set_again_forgets_its_first_time(void **state)
{
    struct scene *s = *state;
    int64_t start = wr_clock_us();

    s->timer[0] = wr_timer_new(s->loop, stop_loop, s);
    wr_timer_set(s->timer[0], start + 1000);
    wr_timer_set(s->timer[0], start + 20000);
    run(s);
    assert_true(wr_clock_us() >= start + 20000);
    wr_timer_set(s->timer[0], start + 3600000000);
    wr_timer_set(s->timer[0], wr_clock_us() + 1000);
    run(s);
    assert_int_equal(s->calls, 2);
}

static void
a_timer_that_is_off_is_not_called(void **state)
{
    struct scene *s = *state;

    s->timer[0] = wr_timer_new(s->loop, stop_loop, s);
    s->timer[1] = wr_timer_new(s->loop, stop_loop, s);
    wr_timer_set(s->timer[0], wr_clock_us() + 1000);
    wr_timer_set(s->timer[1], wr_clock_us() + 5000);
    wr_timer_off(s->timer[0]);
    wr_timer_off(s->timer[0]);
    run(s);
    assert_int_equal(s->calls, 1);
}

static void
set_to_the_past(void *arg)
{
    struct scene *s = arg;

    s->calls++;
    wr_timer_set(s->timer[0], 0);
}

static void
a_timer_that_sets_itself_to_the_past_starves_nobody(void **state)
{
    struct scene *s = *state;

    s->timer[0] = wr_timer_new(s->loop, set_to_the_past, s);
    wr_timer_set(s->timer[0], 0);
    watch(s, 0, note_events, WR_READABLE);
    assert_int_equal(write(s->fds[1], "x", 1), 1);
    run(s);
    assert_int_equal(s->events, WR_READABLE);
}

/* ---- other threads ---- */

static void *
wake_often(void *arg)
{
    struct scene *s = arg;

    for (int i = 0; i < 1000; i++)
        wr_loop_wake(s->loop);
    return NULL;
}

static void
another_thread_can_wake_it(void **state)
{
    struct scene *s = *state;
    pthread_t threads[2];

    wr_loop_on_wake(s->loop, stop_loop, s);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wake_often, s), 0);
    run(s);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(s->calls, 1, 2000);
}

static void
a_stop_before_the_run_ends_it_at_once_and_once(void **state)
{
    struct scene *s = *state;

    wr_loop_stop(s->loop);
    run(s);
    s->timer[0] = wr_timer_new(s->loop, stop_loop, s);
    wr_timer_set(s->timer[0], wr_clock_us());
    run(s);
    assert_int_equal(s->calls, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_readable_descriptor_is_told),
        TEST(it_is_told_again_while_bytes_are_left),
        TEST(a_writable_descriptor_is_told),
        TEST(a_closed_other_end_counts_as_what_was_asked_for_every_time),
        TEST(a_watch_that_rests_is_not_called),
        TEST(a_callback_may_free_itself_and_others_of_the_same_turn),
        TEST(a_descriptor_number_can_be_watched_again_at_once),
        TEST(a_regular_file_cannot_be_watched),
        TEST(timers_come_in_order_and_never_early),
        TEST(a_timer_set_again_forgets_its_first_time),
        TEST(a_timer_that_is_off_is_not_called),
        TEST(a_timer_that_sets_itself_to_the_past_starves_nobody),
        TEST(another_thread_can_wake_it),
        TEST(a_stop_before_the_run_ends_it_at_once_and_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
