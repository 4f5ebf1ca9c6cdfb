/* Waiting before the next try. */
#include "support/cmocka_all.h"

#include <limits.h>

#include "base/clock.h"
#include "redis/backoff.h"

static void
the_wait_doubles_and_is_capped(void **state)
{
    (void)state;
    for (unsigned failures = 0; failures < 70; failures++) {
        int64_t limit = failures < 7 ? INT64_C(20) << failures : 2000, longest = 0;

        limit = limit < 2000 ? limit : 2000;
        for (int i = 0; i < 300; i++) {
            int64_t ms = wr_backoff_ms(failures, 2000);

            assert_true(ms >= 1 && ms <= limit);
            longest = ms > longest ? ms : longest;
        }
        assert_true(longest > limit / 2); /* the jitter is full: 1 in 2^300 fails */
    }
}

static void
absurd_arguments_still_give_a_wait(void **state)
{
    (void)state;
    assert_int_equal(wr_backoff_ms(0, 0), 1);
    assert_int_equal(wr_backoff_ms(5, -7), 1);
    assert_true(wr_backoff_ms(UINT_MAX, 10) <= 10);
    assert_true(wr_backoff_ms(UINT_MAX, INT64_MAX) >= 1);
}

static void
it_never_sleeps_past_the_deadline(void **state)
{
    int64_t start = wr_clock_ms();

    (void)state;
    assert_int_equal(wr_backoff_sleep(20, 60000, start - 1), 0);
    assert_int_equal(wr_backoff_sleep(20, 60000, start), 0);
    while (wr_backoff_sleep(20, 60000, start + 30))
        continue;
    assert_true(wr_clock_ms() >= start + 30);
    assert_true(wr_clock_ms() < start + 20000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wait_doubles_and_is_capped),
        cmocka_unit_test(absurd_arguments_still_give_a_wait),
        cmocka_unit_test(it_never_sleeps_past_the_deadline),
    };

    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
