/* Two that share something, one of whom goes first. */
#include "support/cmocka_all.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/turns.h"

static struct wr_turns turns;
static _Atomic int seen, inside;

static int64_t
in_ms(int64_t ms)
{
    return wr_clock_ms() + ms;
}

/* The one that goes first: notes that it was there. */
static void *
go_first(void *arg)
{
    (void)arg;
    assert_true(wr_turns_claim(&turns, in_ms(30000)));
    usleep(20000);
    seen = 1;
    wr_turns_leave(&turns);
    return NULL;
}

static bool
is_wanted(void)
{
    bool wanted;

    pthread_mutex_lock(&turns.mu);
    wanted = turns.first;
    pthread_mutex_unlock(&turns.mu);
    return wanted;
}

static void
one_turn_is_all_that_the_first_waits_for(void **state)
{
    pthread_t thread;

    (void)state;
    for (int i = 0; i < 20; i++) {
        seen = 0;
        wr_turns_take(&turns);
        assert_int_equal(pthread_create(&thread, NULL, go_first, NULL), 0);
        while (!is_wanted())
            usleep(100);
        assert_int_equal(seen, 0); /* it waits for the turn that has begun */
        wr_turns_give(&turns);
        wr_turns_take(&turns); /* the next one is behind it, at whatever speed it comes */
        assert_int_equal(seen, 1);
        wr_turns_give(&turns);
        pthread_join(thread, NULL);
    }
}

static void
a_claim_waits_no_longer_than_it_was_told_and_still_lets_nobody_in(void **state)
{
    int64_t begin = wr_clock_ms();
    pthread_t thread;

    (void)state;
    wr_turns_take(&turns);
    assert_false(wr_turns_claim(&turns, in_ms(30)));
    assert_true(wr_clock_ms() - begin >= 30);
    assert_false(wr_turns_claim(&turns, begin)); /* over already */
    wr_turns_give(&turns);
    assert_true(is_wanted());
    seen = 0;
    assert_int_equal(pthread_create(&thread, NULL, go_first, NULL), 0);
    wr_turns_take(&turns);
    assert_int_equal(seen, 1);
    wr_turns_give(&turns);
    pthread_join(thread, NULL);
}

static void *
take_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2000; i++) {
        wr_turns_take(&turns);
        assert_int_equal(inside++, 0);
        inside--;
        wr_turns_give(&turns);
    }
    return NULL;
}

static void
no_turn_is_had_by_both(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, take_often, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        assert_true(wr_turns_claim(&turns, in_ms(30000)));
        assert_int_equal(inside++, 0);
        inside--;
        wr_turns_leave(&turns);
    }
    pthread_join(thread, NULL);
}

static int
setup(void **state)
{
    (void)state;
    wr_turns_init(&turns);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    wr_turns_fini(&turns);
    return 0;
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_turn_is_all_that_the_first_waits_for),
        TEST(a_claim_waits_no_longer_than_it_was_told_and_still_lets_nobody_in),
        TEST(no_turn_is_had_by_both),
    };

    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
