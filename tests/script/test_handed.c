/*
 * A job that was handed over (test_offer.c): its worker hears of it by the marker, or by
 * the call itself; who got another one's marker gives it back.
 */
#include "script/offers.h"

#include <stdio.h>
#include <string.h>

static const char *
off_until(void)
{
    return redis_do(rig.redis, "HGET %s offers_off", rig_key(WR_QUEUE_KEY_stats));
}

/* ---- the call itself ---- */

static void
the_call_that_was_offered_answers_what_was_handed_over(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    for (int i = 0; i < 3; i++)
        assert_string_equal(offers_call("w", 3)->ids, "A");
    assert_int_equal(rig_stat("deliveries"), 2);
    assert_string_equal(offers_pop(), "3 w A"); /* the marker is late */
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(offers_call("w", 3)->n, 0);
    rig_assert_sums();
}

static void
what_its_worker_knows_of_is_not_given_back(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    assert_string_equal(offers_call("w", 3)->ids, "A");
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    assert_string_equal(rig_where("A"), "JPS");
    assert_string_equal(off_until(), "(nil)");
    assert_string_equal(offers_call("w", 3)->ids, "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* Nor what it got with the marker: it goes on with the next offer. */
static void
an_offer_says_that_the_job_before_has_come(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    assert_string_equal(offers_pop(), "3 w A");
    offers_stand("w", "4");
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    assert_string_equal(rig_where("A"), "JPS");
    assert_string_equal(offers_call("w", 3)->ids, "A"); /* its list is kept */
    rig_put("B");
    assert_string_equal(offers_pop(), "4 w B");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
a_paused_queue_tells_what_was_handed_over_before(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    rig_pause();
    assert_string_equal(offers_call("w", 3)->ids, "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* While the marker stands another one puts none; whoever got it with a job owes no call,
 * but makes an offer when it waits again. */
static void
a_job_behind_one_that_was_handed_over_gets_its_marker_by_the_next_offer(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    offers_stand("v", "3");
    rig_put("B");
    assert_string_equal(rig_where("B"), "JR");
    assert_string_equal(offers_pop(), "3 w A");
    assert_string_equal(offers_pop(), "-");
    offers_stand("w", "4");
    assert_string_equal(offers_pop(), "1");
    rig_assert_sums();
}

static void
the_repeat_of_an_enqueue_hands_nothing_over_a_second_time(void **state)
{
    const char *reply = "OK 0";

    (void)state;
    offers_none_waits();
    offers_stand("v", "3");
    rig_pass(1);
    offers_stand("w", "3");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(rig_script("enqueue", offers_now(), "c", "1", "m", "A", "1 t",
                                       "\nx", "", NULL),
                            reply);
        reply = "BEFORE 0";
    }
    /* A client that was made anew calls on another channel. */
    assert_string_equal(
        rig_script("enqueue", offers_now(), "d", "1", "m", "A", "1 t", "\nx", "", NULL),
        "OK 0 0 EXISTS processing");
    assert_int_equal(offers_standing(), 1);
    assert_int_equal(rig_stat("deliveries"), 2);
    assert_string_equal(offers_pop(), "3 v A");
    assert_string_equal(offers_pop(), "-");
    rig_assert_sums();
}

static void
a_call_is_handed_over_and_its_end_is_told(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    assert_string_equal(rig_script("call", offers_now(), "c", "1", "m", "ch/1", "9000",
                                   "A", "1 t", "\nx", "", "", NULL),
                        "OK 0");
    assert_string_equal(rig_where("A"), "JPS");
    assert_string_equal(offers_pop(), "3 w A");
    assert_string_equal(redis_do(rig.redis, "HKEYS %s", rig_key(WR_QUEUE_KEY_waiters)),
                        "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_waiters)),
                        "0");
    offers_stand("w", "4"); /* a time that is over is none */
    assert_string_equal(rig_script("call", offers_now(), "c", "2", "m", "ch/1", "9000",
                                   "B", "1 t", "\nx", "", "@1", NULL),
                        "OK 0");
    assert_string_equal(offers_pop(), "4 w B");
    offers_stand("v", "3");
    assert_string_equal(rig_script("call", offers_now(), "c", "3", "m", "ch/1", "9000",
                                   "C", "1 t", "\nx", "", "+9", NULL),
                        "OK 0");
    assert_string_equal(rig_where("C"), "JL");
    assert_int_equal(offers_standing(), 1);
    rig_assert_sums();
}

/* ---- it is given back ---- */

static void
what_is_given_back_is_next_and_is_not_charged(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    rig_put("B"); /* the marker stands: it waits */
    assert_string_equal(offers_pop(), "3 w A");
    assert_string_equal(offers_withdraw("w", "3"), "OK");
    assert_string_equal(rig_where("A"), "JRS");
    assert_string_equal(offers_pop(), "1");
    assert_int_equal(rig_stat("released"), 1);
    rig_assert_sums();
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_BEFORE);
    assert_string_equal(rig_take("v", 9)->ids, "A B");
    assert_int_equal(rig_state("A").deliveries, 2);
    assert_int_equal(rig_state("A").lost, 0);
    assert_int_equal(rig_state("A").attempts, 0);
    assert_int_equal(rig_state("A").interrupted, 0);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
the_call_answers_nothing_when_it_was_given_back(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    offers_drop_marker();
    assert_string_equal(offers_withdraw("w", "3"), "OK");
    assert_int_equal(offers_call("w", 3)->n, 0);
    assert_string_equal(rig_where("A"), "JRS");
    assert_true(rig_has_marker());
    assert_string_equal(offers_call("w", 4)->ids, "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
it_is_given_back_once(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    offers_drop_marker();
    assert_string_equal(offers_withdraw("w", "2"), "STALE");
    assert_string_equal(offers_withdraw("w", "30"), "STALE");
    assert_string_equal(offers_withdraw("v", "3"), "STALE");
    assert_string_equal(rig_where("A"), "JPS");
    assert_string_equal(offers_withdraw("w", "3"), "OK");
    assert_null(
        strstr(redis_do(rig.redis, "HGET %s w", rig_key(WR_QUEUE_KEY_claims)), "A"));
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    assert_int_equal(rig_stat("released"), 1);
    assert_string_equal(rig_take("w", 1)->ids, "A"); /* by another call */
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    assert_string_equal(rig_where("A"), "JPS");
    rig_assert_sums();
}

static void
what_was_called_off_ends_when_it_is_given_back(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    offers_drop_marker();
    rig_script("wait", offers_now(), "A", "ch/1", "9000", "", NULL);
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED);
    assert_string_equal(offers_withdraw("w", "3"), "OK");
    assert_string_equal(rig_where("A"), "");
    assert_int_equal(rig_stat("cancelled_processing"), 1);
    assert_int_equal(rig_stat("released"), 0);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_waiters)),
                        "0");
    assert_false(rig_has_marker());
    assert_int_equal(offers_call("w", 3)->n, 0);
    rig_assert_sums();
}

/* Its worker got the marker before, or its lease is over: all stays as it is. */
static void
what_its_worker_has_no_more_is_not_given_back(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    assert_string_equal(offers_pop(), "3 w A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    assert_string_equal(rig_where("A"), "");
    offers_stand("w", "4");
    rig_put("B");
    assert_string_equal(offers_pop(), "4 w B");
    rig_pass(OFFERS_LEASE + 1);
    assert_int_equal(rig_reclaim().moved, 1);
    assert_string_equal(offers_withdraw("w", "4"), "STALE");
    assert_string_equal(rig_take("v", 1)->ids, "B");
    assert_string_equal(offers_withdraw("w", "4"), "STALE");
    assert_string_equal(rig_where("B"), "JPS");
    assert_string_equal(off_until(), "(nil)");
    assert_int_equal(rig_stat("released"), 0);
    assert_int_equal(rig_ack("v", "B"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* Somebody takes markers and makes no offers: for a while they are of no use. */
static void
no_offer_is_taken_for_a_while_after_one_was_given_back(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    offers_drop_marker();
    offers_withdraw("w", "3");
    assert_string_equal(rig_take("v", 1)->ids, "A");
    offers_drop_marker();
    rig_pass(29999);
    assert_string_equal(offers_make("w", "4", "", "0"), "OFF");
    assert_int_equal(offers_standing(), 0);
    rig_put("B");
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(rig_where("B"), "JR");
    assert_string_equal(offers_make("w", "4", "", "0"), "OFF");
    assert_string_equal(offers_pop(), "1"); /* what is missing is put all the same */
    assert_string_equal(rig_take("u", 1)->ids, "B");
    rig_pass(1);
    offers_stand("w", "4");
    rig_put("C");
    assert_string_equal(offers_pop(), "4 w C");
    rig_assert_sums();
}

static void
that_while_is_no_longer_when_the_clock_is_set_back(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    offers_withdraw("w", "3");
    rig_pass(-1);
    offers_stand("w", "4");
    rig_pass(2);
    assert_string_equal(offers_make("w", "5", "", "0"), "OFF");
    rig_pass(-3600000);
    offers_stand("w", "5");
    rig_assert_sums();
}

/* ---- its worker dies ---- */

static void
the_lease_of_a_handed_over_job_runs_out(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    rig_pass(OFFERS_LEASE - 1);
    assert_int_equal(rig_reclaim().moved, 0);
    rig_pass(2);
    assert_int_equal(rig_reclaim().moved, 1);
    assert_string_equal(rig_where("A"), "JRS");
    assert_int_equal(rig_state("A").lost, 1); /* nobody knows whether it had started */
    assert_int_equal(offers_call("w", 3)->n, 0);
    rig_assert_sums();
}

/* Known to be dead, and never heard of. */
static void
a_dead_worker_has_nothing_that_was_handed_to_it(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    assert_memory_equal(rig_script("reclaim_held", offers_now(), "w", "", NULL),
                        "OK 1 0 0 0", 10);
    assert_string_equal(rig_where("A"), "JRS");
    assert_int_equal(rig_state("A").lost, 0);
    offers_drop_marker(); /* which another one got */
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    assert_string_equal(rig_take("v", 1)->ids, "A");
    rig_assert_sums();
}

/* It says that the job had started. */
static void
what_had_started_is_charged_to_a_dead_worker(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    assert_string_equal(offers_pop(), "3 w A");
    assert_memory_equal(rig_script("reclaim_held", offers_now(), "w", "", "A",
                                   rig_token("w", "A"), "1", NULL),
                        "OK 1 0 0 0", 10);
    assert_int_equal(rig_state("A").lost, 1);
    rig_assert_sums();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_call_that_was_offered_answers_what_was_handed_over),
        RIG_TEST(what_its_worker_knows_of_is_not_given_back),
        RIG_TEST(an_offer_says_that_the_job_before_has_come),
        RIG_TEST(a_paused_queue_tells_what_was_handed_over_before),
        RIG_TEST(a_job_behind_one_that_was_handed_over_gets_its_marker_by_the_next_offer),
        RIG_TEST(the_repeat_of_an_enqueue_hands_nothing_over_a_second_time),
        RIG_TEST(a_call_is_handed_over_and_its_end_is_told),
        RIG_TEST(what_is_given_back_is_next_and_is_not_charged),
        RIG_TEST(the_call_answers_nothing_when_it_was_given_back),
        RIG_TEST(it_is_given_back_once),
        RIG_TEST(what_was_called_off_ends_when_it_is_given_back),
        RIG_TEST(what_its_worker_has_no_more_is_not_given_back),
        RIG_TEST(no_offer_is_taken_for_a_while_after_one_was_given_back),
        RIG_TEST(that_while_is_no_longer_when_the_clock_is_set_back),
        RIG_TEST(the_lease_of_a_handed_over_job_runs_out),
        RIG_TEST(a_dead_worker_has_nothing_that_was_handed_to_it),
        RIG_TEST(what_had_started_is_charged_to_a_dead_worker),
    };

    return RIG_MAIN(tests);
}
