/* When a failed job runs again. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/rand.h"
#include "model/retry.h"

static struct wr_backoff
parsed(const char *spec)
{
    struct wr_backoff b;

    memset(&b, 0x5a, sizeof(b));
    if (!wr_backoff_parse(spec, &b))
        fail_msg("cannot read: %s", spec ? spec : "NULL");
    return b;
}

/* A cheap generator with a seed, so that every run is the same. */
static uint64_t
next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state ^ (*state >> 29);
}

static void
the_default_is_two_seconds_doubled_up_to_an_hour(void **unused)
{
    static const char *const specs[] = {NULL, "", "exp:2s,1h", "exp:2s"};

    (void)unused;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct wr_backoff b = parsed(specs[i]);

        assert_int_equal(b.kind, WR_BACKOFF_EXP);
        assert_int_equal(b.base_ms, 2000);
        assert_int_equal(b.cap_ms, 3600000);
    }
}

static void
each_kind_can_be_written(void **unused)
{
    (void)unused;
    assert_int_equal(parsed("fixed:10s").kind, WR_BACKOFF_FIXED);
    assert_int_equal(parsed("fixed:10s").base_ms, 10000);
    assert_int_equal(parsed("linear:60s").kind, WR_BACKOFF_LINEAR);
    assert_int_equal(parsed("linear:60s,5m").cap_ms, 300000);
    assert_int_equal(parsed("exp:250ms,1m30s").cap_ms, 90000);
    assert_int_equal(parsed("list:0s,60s,180s").steps, 3);
    assert_int_equal(parsed("list:0s,60s,180s").steps_ms[2], 180000);
}

static void
nonsense_is_refused(void **unused)
{
    static const char *const specs[] = {"x",
                                        "exp",
                                        "exp:",
                                        "exp:,1h",
                                        "exp:2s,",
                                        "exp:2s,1h,3",
                                        "exp:-2s",
                                        "exp:nan",
                                        "exp:1e3",
                                        "exp: 2s",
                                        "fixed:",
                                        "fixed:1,2",
                                        "fixed:10sx",
                                        "FIXED:10s",
                                        "fixed :10s",
                                        "linear:",
                                        "linear:a",
                                        "list:",
                                        "list:1s,,2s",
                                        "list:1s,",
                                        "10s",
                                        " fixed:10s",
                                        "inf",
                                        "fixed:1s\n",
                                        "exp:2s 1h",
                                        "fixed:99999999999999999999",
                                        "fixed:9223372036854775807s",
                                        "list:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
                                        "fixed:000000000000000000000000000000000000001s"};
    struct wr_backoff b;

    (void)unused;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        if (wr_backoff_parse(specs[i], &b))
            fail_msg("was read: %s", specs[i]);
    }
}

static void
a_list_may_have_sixteen_steps_and_its_last_one_repeats(void **unused)
{
    struct wr_backoff b = parsed("list:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15");

    (void)unused;
    for (int64_t i = 1; i <= 16; i++)
        assert_int_equal(wr_backoff_delay_ms(&b, i, 7), (i - 1) * 1000);
    assert_int_equal(wr_backoff_delay_ms(&b, 17, 7), 15000);
    assert_int_equal(wr_backoff_delay_ms(&b, INT64_MAX, 7), 15000);
}

static void
a_fixed_delay_is_exactly_that(void **unused)
{
    struct wr_backoff b = parsed("fixed:10s");

    (void)unused;
    assert_int_equal(wr_backoff_delay_ms(&b, 1, 1), 10000);
    assert_int_equal(wr_backoff_delay_ms(&b, INT64_MAX, UINT64_MAX), 10000);
}

static void
assert_about(int64_t delay, int64_t middle, int64_t cap)
{
    int64_t low = middle - middle / 10, high = middle + middle / 10;

    if (high > cap)
        high = cap;
    assert_in_range(delay, low, high);
}

static void
delays_double_within_ten_percent(void **unused)
{
    struct wr_backoff b = parsed(NULL);
    uint64_t seed = 1;

    (void)unused;
    for (int round = 0; round < 1000; round++) {
        int64_t middle = 2000;

        for (int64_t attempts = 1; attempts <= 11; attempts++, middle *= 2)
            assert_about(wr_backoff_delay_ms(&b, attempts, next_random(&seed)), middle,
                         3600000);
    }
}

static void
linear_delays_grow_by_their_step(void **unused)
{
    struct wr_backoff b = parsed("linear:60s,10m");
    uint64_t seed = 2;

    (void)unused;
    for (int64_t attempts = 1; attempts <= 10; attempts++)
        assert_about(wr_backoff_delay_ms(&b, attempts, next_random(&seed)),
                     60000 * attempts, 600000);
}

/* T03, D05: a shift or a product that overflows gives a delay of zero or a negative one.
 */
static void
no_number_of_attempts_overflows(void **unused)
{
    static const char *const specs[] = {NULL,
                                        "exp:1ms,104249991d",
                                        "exp:104249991d,104249991d",
                                        "linear:104249991d",
                                        "linear:1ms,104249991d",
                                        "exp:0s",
                                        "linear:0s"};
    static const int64_t attempts[] = {INT64_MIN,
                                       -1,
                                       0,
                                       1,
                                       2,
                                       31,
                                       32,
                                       33,
                                       52,
                                       53,
                                       54,
                                       62,
                                       63,
                                       64,
                                       65,
                                       1000,
                                       INT32_MAX,
                                       INT64_C(1) << 32,
                                       INT64_MAX - 1,
                                       INT64_MAX};
    uint64_t seed = 3;

    (void)unused;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct wr_backoff b = parsed(specs[i]);

        for (size_t k = 0; k < sizeof(attempts) / sizeof(attempts[0]); k++) {
            for (int round = 0; round < 100; round++)
                assert_in_range(wr_backoff_delay_ms(&b, attempts[k], next_random(&seed)),
                                0, b.cap_ms);
        }
    }
}

static void
a_delay_never_gets_shorter_before_the_cap(void **unused)
{
    struct wr_backoff b = parsed("exp:1ms,104249991d");
    int64_t before = 0;

    (void)unused;
    for (int64_t attempts = 1; attempts <= 60; attempts++) {
        int64_t delay = wr_backoff_delay_ms(&b, attempts,
                                            0); /* the lowest of its range */

        assert_true(delay >= before);
        before = delay;
    }
}

static void
a_base_over_the_cap_that_nobody_wrote_lifts_the_cap(void **unused)
{
    struct wr_backoff b = parsed("exp:2h");

    (void)unused;
    assert_int_equal(b.cap_ms, 7200000);
    assert_in_range(wr_backoff_delay_ms(&b, 1, 5), 6480000, 7200000);
}

static void
the_same_number_gives_the_same_delay_and_others_spread(void **unused)
{
    struct wr_backoff b = parsed(NULL);
    int64_t lowest = INT64_MAX, highest = 0;
    uint64_t seed = 4;

    (void)unused;
    assert_int_equal(wr_backoff_delay_ms(&b, 5, 12345),
                     wr_backoff_delay_ms(&b, 5, 12345));
    for (int i = 0; i < 1000; i++) {
        int64_t delay = wr_backoff_delay_ms(&b, 5, next_random(&seed));

        lowest = delay < lowest ? delay : lowest;
        highest = delay > highest ? delay : highest;
    }
    assert_true(lowest < 32000 - 2500 && highest > 32000 + 2500);
}

static void
a_last_part_in_percent_is_the_jitter(void **state)
{
    static const char *const bad[] = {"fixed:25%",  "exp:2s,101%", "exp:2s,25%,1h",
                                      "fixed:1s,%", "list:1s,-5%", "fixed:1s,25%%"};
    struct wr_backoff b;

    (void)state;
    assert_int_equal(parsed("exp:2s").jitter, 10);
    assert_int_equal(parsed("fixed:2s").jitter, 0);
    assert_int_equal(parsed("exp:2s,1h,0%").jitter, 0);
    assert_int_equal(parsed("list:1s,2s,50%").jitter, 50);
    assert_int_equal(parsed("list:1s,2s,50%").steps, 2);
    assert_int_equal(parsed("exp:2s,50%").cap_ms, 3600000);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(wr_backoff_parse(bad[i], &b));
    b = parsed("fixed:10s,25%");
    for (uint64_t random = 0; random < 20000; random += 7)
        assert_in_range(wr_backoff_delay_ms(&b, 3, random), 7500, 12500);
}

/* Each tenth of the window gets its share of them, give or take a half. */
static void
ten_thousand_that_fail_together_come_back_spread_over_the_window_R09(void **state)
{
    static const char *const specs[] = {"", "linear:30s", "fixed:10s,25%",
                                        "list:1m,100%"};

    (void)state;
    for (size_t s = 0; s < sizeof(specs) / sizeof(specs[0]); s++) {
        struct wr_backoff b = parsed(specs[s]);
        int64_t base = b.base_ms, spread = base * b.jitter / 100;
        int tenths[10] = {0};

        for (int job = 0; job < 10000; job++) {
            uint64_t random;
            int64_t delay, at;

            wr_rand_bytes(&random, sizeof(random));
            delay = wr_backoff_delay_ms(&b, 1, random);
            at = (delay - (base - spread)) * 10 / (2 * spread + 1);
            assert_in_range(at, 0, 9);
            tenths[at]++;
        }
        for (int i = 0; i < 10; i++)
            assert_in_range(tenths[i], 500, 1500);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_last_part_in_percent_is_the_jitter),
        cmocka_unit_test(
            ten_thousand_that_fail_together_come_back_spread_over_the_window_R09),
        cmocka_unit_test(the_default_is_two_seconds_doubled_up_to_an_hour),
        cmocka_unit_test(each_kind_can_be_written),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(a_list_may_have_sixteen_steps_and_its_last_one_repeats),
        cmocka_unit_test(a_fixed_delay_is_exactly_that),
        cmocka_unit_test(delays_double_within_ten_percent),
        cmocka_unit_test(linear_delays_grow_by_their_step),
        cmocka_unit_test(no_number_of_attempts_overflows),
        cmocka_unit_test(a_delay_never_gets_shorter_before_the_cap),
        cmocka_unit_test(a_base_over_the_cap_that_nobody_wrote_lifts_the_cap),
        cmocka_unit_test(the_same_number_gives_the_same_delay_and_others_spread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
