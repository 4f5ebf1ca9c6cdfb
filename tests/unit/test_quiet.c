/* When a reclaimer may trust time. */
#include "support/cmocka_all.h"

#include "sched/quiet.h"

#define LEASE_MS 15000
#define S 1000000 /* us */
#define SERVER_MS INT64_C(1796000000000)

/* A contact that took no time, with a server whose clock runs as ours. */
static void
contact(struct wr_quiet *q, int64_t at_us)
{
    wr_quiet_contact(q, at_us, at_us, SERVER_MS + at_us / 1000, LEASE_MS);
}

/* One that has looked every second for so long that it trusts time. */
static struct wr_quiet
trusting(int64_t until_us)
{
    struct wr_quiet q = {0};

    for (int64_t at = S; at <= until_us; at += S)
        contact(&q, at);
    assert_false(wr_quiet_holds(&q, until_us));
    return q;
}

static void
the_first_lease_is_quiet(void **unused)
{
    struct wr_quiet q = {0};

    (void)unused;
    assert_int_equal(wr_quiet_gap_ms(&q, 5 * S), -1);
    contact(&q, 5 * S);
    assert_true(wr_quiet_holds(&q, 5 * S));
    for (int64_t at = 6 * S; at < 20 * S; at += S) {
        contact(&q, at);
        assert_true(wr_quiet_holds(&q, at));
    }
    assert_false(wr_quiet_holds(&q, 20 * S));
    assert_int_equal(wr_quiet_gap_ms(&q, 20 * S), 1000);
}

static void
half_a_lease_without_contact_is_no_gap_and_more_is(void **unused)
{
    struct wr_quiet q = trusting(30 * S);

    (void)unused;
    contact(&q, 30 * S + LEASE_MS * 500);
    assert_false(wr_quiet_holds(&q, 38 * S));
    q = trusting(30 * S);
    contact(&q, 30 * S + LEASE_MS * 500 + 1000);
    assert_true(wr_quiet_holds(&q, 38 * S));
    assert_true(wr_quiet_holds(&q, 52 * S));
    assert_false(wr_quiet_holds(&q, 53 * S));
}

static void
a_failed_call_begins_a_quiet_lease_at_the_next_contact(void **unused)
{
    struct wr_quiet q = trusting(30 * S);

    (void)unused;
    wr_quiet_lost(&q);
    assert_false(wr_quiet_holds(&q, 31 * S)); /* nothing can be reclaimed anyway */
    contact(&q, 31 * S);
    assert_true(wr_quiet_holds(&q, 45 * S));
    assert_false(wr_quiet_holds(&q, 46 * S));
}

static void
a_second_outage_inside_a_quiet_period_makes_it_longer(void **unused)
{
    struct wr_quiet q = {0};

    (void)unused;
    contact(&q, 1 * S); /* quiet until 16 s */
    contact(&q, 6 * S);
    contact(&q, 15 * S); /* 9 s without contact */
    assert_true(wr_quiet_holds(&q, 16 * S));
    assert_true(wr_quiet_holds(&q, 29 * S));
    assert_false(wr_quiet_holds(&q, 30 * S));
}

static void
a_step_of_the_servers_clock_is_quiet_either_way(void **unused)
{
    static const int64_t steps_ms[] = {1001, -1001, 3600000, -3600000, 60000};

    (void)unused;
    for (size_t i = 0; i < sizeof(steps_ms) / sizeof(steps_ms[0]); i++) {
        struct wr_quiet q = trusting(30 * S);

        wr_quiet_contact(&q, 31 * S, 31 * S, SERVER_MS + 31000 + steps_ms[i], LEASE_MS);
        assert_true(wr_quiet_holds(&q, 45 * S));
    }
}

static void
a_drift_under_a_second_is_not_a_step(void **unused)
{
    struct wr_quiet q = trusting(30 * S);

    (void)unused;
    wr_quiet_contact(&q, 31 * S, 31 * S, SERVER_MS + 31900, LEASE_MS);
    assert_false(wr_quiet_holds(&q, 31 * S));
    wr_quiet_contact(&q, 32 * S, 32 * S, SERVER_MS + 32000, LEASE_MS);
    assert_false(wr_quiet_holds(&q, 32 * S));
}

/* The server stood still while the call was under way: workers could not renew. */
static void
a_call_that_was_held_up_is_quiet_from_its_end(void **unused)
{
    struct wr_quiet q = trusting(30 * S);

    (void)unused;
    wr_quiet_contact(&q, 31 * S, 35 * S, SERVER_MS + 35000, LEASE_MS);
    assert_true(wr_quiet_holds(&q, 49 * S));
    assert_false(wr_quiet_holds(&q, 50 * S));
}

/* Its answer was held up, not the call itself: the next contact seems to come too early.
 */
static void
an_answer_that_was_held_up_is_noticed_at_the_next_contact(void **unused)
{
    struct wr_quiet q = trusting(30 * S);

    (void)unused;
    wr_quiet_contact(&q, 31 * S, 41 * S, SERVER_MS + 31000, LEASE_MS);
    contact(&q, 41 * S);
    assert_true(wr_quiet_holds(&q, 55 * S));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_lease_is_quiet),
        cmocka_unit_test(half_a_lease_without_contact_is_no_gap_and_more_is),
        cmocka_unit_test(a_failed_call_begins_a_quiet_lease_at_the_next_contact),
        cmocka_unit_test(a_second_outage_inside_a_quiet_period_makes_it_longer),
        cmocka_unit_test(a_step_of_the_servers_clock_is_quiet_either_way),
        cmocka_unit_test(a_drift_under_a_second_is_not_a_step),
        cmocka_unit_test(a_call_that_was_held_up_is_quiet_from_its_end),
        cmocka_unit_test(an_answer_that_was_held_up_is_noticed_at_the_next_contact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
