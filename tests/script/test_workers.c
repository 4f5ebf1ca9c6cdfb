/* The roster of workers, what they tell, and the orders that stand for them. */
#include "script/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static struct wr_told
told_to(const char *worker, const char *state)
{
    static const char *const fields[] = {"host", "here", "started_at", "7", NULL};
    struct wr_beat b = {.worker = worker, .state = state, .fields = fields};
    struct wr_told told = {.order = WR_ORDER_STOP};

    assert_int_equal(wr_store_beat(rig.store, &b, &told, &rig.err), WEIR_OK);
    return told;
}

static enum wr_order
beat(const char *worker, const char *state)
{
    return told_to(worker, state).order;
}

static void
leave(const char *worker)
{
    struct wr_beat b = {.worker = worker, .leave = true};

    assert_int_equal(wr_store_beat(rig.store, &b, NULL, &rig.err), WEIR_OK);
}

/* Answers the order that stood before; fails if the worker is not known. */
static enum wr_order
order_with(const char *worker, enum wr_order what, int64_t grace_ms)
{
    enum wr_order before;
    bool known;

    assert_int_equal(wr_store_order(rig.store, worker, &(struct wr_told){what, grace_ms},
                                    "ann@here", &known, &before, &rig.err),
                     WEIR_OK);
    assert_true(known);
    return before;
}

static enum wr_order
order(const char *worker, enum wr_order what)
{
    return order_with(worker, what, -1);
}

static bool
is_known(const char *worker)
{
    enum wr_order before;
    bool known;

    assert_int_equal(wr_store_order(rig.store, worker,
                                    &(struct wr_told){WR_ORDER_QUIET, -1}, "ann", &known,
                                    &before, &rig.err),
                     WEIR_OK);
    return known;
}

static void
an_order_stands_until_another_comes(void **state)
{
    (void)state;
    assert_int_equal(beat("w", "running"), WR_ORDER_NONE);
    assert_int_equal(order("w", WR_ORDER_QUIET), WR_ORDER_NONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(beat("w", i == 0 ? "running" : "quiet"), WR_ORDER_QUIET);
    assert_int_equal(order("w", WR_ORDER_RUN), WR_ORDER_QUIET);
    assert_int_equal(beat("w", "quiet"), WR_ORDER_RUN);
    assert_int_equal(beat("w", "quiet"), WR_ORDER_RUN); /* the first reply was lost */
    assert_int_equal(beat("w", "running"), WR_ORDER_NONE);
    assert_string_equal(redis_do(rig.redis, "HGET weir:worker:w order"), "(nil)");
    assert_string_equal(redis_do(rig.redis, "HGET weir:worker:w host"), "here");
}

static void
a_stop_is_not_taken_back(void **state)
{
    (void)state;
    beat("w", "running");
    assert_int_equal(order("w", WR_ORDER_STOP), WR_ORDER_NONE);
    assert_int_equal(order("w", WR_ORDER_RUN), WR_ORDER_STOP);
    assert_int_equal(beat("w", "running"), WR_ORDER_STOP);
    assert_string_equal(redis_do(rig.redis, "HGET weir:worker:w order_by"), "ann@here");
    leave("w");
    assert_string_equal(redis_do(rig.redis, "KEYS weir:worker:w"), "");
    assert_false(is_known("w"));
}

static void
the_grace_time_of_a_stop_can_be_said_anew(void **state)
{
    (void)state;
    beat("w", "running");
    assert_int_equal(order_with("w", WR_ORDER_QUIET, 7), WR_ORDER_NONE);
    assert_int_equal(told_to("w", "quiet").grace_ms, -1); /* it is a stop's alone */
    order("w", WR_ORDER_STOP);
    assert_int_equal(told_to("w", "quiet").grace_ms, -1);
    assert_int_equal(order_with("w", WR_ORDER_STOP, 5000), WR_ORDER_STOP);
    assert_int_equal(told_to("w", "draining").grace_ms, 5000);
    assert_int_equal(order("w", WR_ORDER_STOP), WR_ORDER_STOP); /* nothing new */
    assert_int_equal(told_to("w", "draining").grace_ms, 5000);
    assert_int_equal(order_with("w", WR_ORDER_STOP, 0), WR_ORDER_STOP);
    assert_int_equal(told_to("w", "draining").grace_ms, 0);
    assert_int_equal(order_with("w", WR_ORDER_RUN, 9000), WR_ORDER_STOP);
    assert_int_equal(told_to("w", "draining").order, WR_ORDER_STOP);
    assert_int_equal(told_to("w", "draining").grace_ms, 0);
    redis_do(rig.redis, "HSET weir:worker:w order_grace -77");
    assert_int_equal(told_to("w", "draining").grace_ms, -1);
    redis_do(rig.redis, "HSET weir:worker:w order_grace 9223372036854775807");
    assert_in_range(told_to("w", "draining").grace_ms, 1, INT64_C(100) * 86400000);
    leave("w");
    beat("w", "running");
    assert_int_equal(told_to("w", "running").grace_ms, -1);
}

static void
nobody_can_be_told_who_was_never_heard(void **state)
{
    (void)state;
    assert_false(is_known("w"));
    assert_string_equal(redis_do(rig.redis, "KEYS *"), "");
}

static void
an_order_waits_an_hour_for_a_worker_that_is_silent(void **state)
{
    (void)state;
    beat("w", "running");
    assert_in_range(atoi(redis_do(rig.redis, "TTL weir:worker:w")), 50, 60);
    order("w", WR_ORDER_QUIET);
    assert_in_range(atoi(redis_do(rig.redis, "TTL weir:worker:w")), 3500, 3600);
    beat("w", "quiet"); /* and it stands as long for one that is heard */
    assert_in_range(atoi(redis_do(rig.redis, "TTL weir:worker:w")), 3500, 3600);
    order("w", WR_ORDER_RUN);
    beat("w", "running");
    assert_in_range(atoi(redis_do(rig.redis, "TTL weir:worker:w")), 50, 60);
}

static void
a_worker_with_an_order_is_told_at_once(void **state)
{
    (void)state;
    beat("w", "running");
    order("w", WR_ORDER_QUIET);
    assert_string_equal(redis_do(rig.redis, "LRANGE weir:worker:w:hint 0 -1"), "order");
}

/* A thousand a beat, so that no beat takes long. What each told of itself goes by its
 * own time. */
static void
ten_thousand_that_died_are_forgotten_in_a_minute_M08(void **state)
{
    char name[16];

    (void)state;
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        beat(name, "running");
        if (i % 100 == 0)
            assert_in_range(atoi(redis_do(rig.redis, "TTL weir:worker:%s", name)), 1, 60);
    }
    assert_string_equal(redis_do(rig.redis, "ZCARD weir:workers"), "10000");
    rig_pass(59000);
    beat("live", "running");
    assert_string_equal(redis_do(rig.redis, "ZCARD weir:workers"), "10001");
    rig_pass(1000);
    for (int i = 0; i < 10; i++)
        beat("live", "running");
    assert_string_equal(redis_do(rig.redis, "ZRANGE weir:workers 0 -1"), "live");
    redis_do(rig.redis, "FLUSHALL"); /* a minute of the server's own clock */
    beat("live", "running");
    leave("live");
    assert_string_equal(redis_do(rig.redis, "KEYS *"), "");
}

static void
a_full_server_takes_beats_and_orders_F17(void **state)
{
    (void)state;
    redis_do(rig.redis, "CONFIG SET maxmemory 1");
    beat("w", "running");
    order("w", WR_ORDER_QUIET);
    assert_int_equal(beat("w", "running"), WR_ORDER_QUIET);
    redis_do(rig.redis, "CONFIG SET maxmemory 0");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        /* About no queue: once is enough. */
        RIG_LIST_TEST(an_order_stands_until_another_comes),
        RIG_LIST_TEST(a_stop_is_not_taken_back),
        RIG_LIST_TEST(the_grace_time_of_a_stop_can_be_said_anew),
        RIG_LIST_TEST(nobody_can_be_told_who_was_never_heard),
        RIG_LIST_TEST(an_order_waits_an_hour_for_a_worker_that_is_silent),
        RIG_LIST_TEST(a_worker_with_an_order_is_told_at_once),
        RIG_LIST_TEST(ten_thousand_that_died_are_forgotten_in_a_minute_M08),
        RIG_LIST_TEST(a_full_server_takes_beats_and_orders_F17),
    };

    return RIG_MAIN(tests);
}
