/*
 * Offers (test_offer.c) that are made, and that stand no more: what was called, what is
 * over, who is dead. An offer takes the one job that waits.
 */
#include "script/offers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- offers that stand no more ---- */

static void
an_offer_whose_call_was_made_is_void(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    assert_int_equal(offers_call("w", 3)->word, WR_RESERVE_EMPTY);
    rig_put("A");
    assert_string_equal(rig_where("A"), "JR");
    assert_string_equal(offers_pop(), "1");
    assert_int_equal(offers_standing(), 0);
    assert_string_equal(offers_call("w", 4)->ids, "A");
    offers_stand("w", "5");
    rig_pause();
    assert_int_equal(offers_call("w", 5)->word, WR_RESERVE_PAUSED);
    rig_resume();
    rig_put("B");
    assert_string_equal(rig_where("B"), "JR");
    rig_assert_sums();
}

static void
an_offer_of_a_call_that_was_made_is_behind(void **state)
{
    (void)state;
    offers_none_waits();
    offers_call("w", 5);
    assert_string_equal(offers_make("w", "5", "", "0"), "BEHIND");
    assert_string_equal(offers_make("w", "4", "", "0"), "BEHIND");
    assert_int_equal(offers_standing(), 0);
    offers_stand("w", "10"); /* a number, no text: "10" is after "5" */
    rig_put("A");
    assert_string_equal(offers_make("w", "10", "", "0"), "BEHIND"); /* made for it */
    assert_string_equal(offers_pop(), "10 w A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
an_offer_made_again_stands_once(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    offers_stand("w", "3");
    offers_stand("w", "4");
    assert_int_equal(offers_standing(), 1);
    rig_put("A");
    assert_string_equal(offers_pop(), "4 w A");
    rig_put("B");
    assert_string_equal(offers_pop(), "1");
    rig_assert_sums();
}

static void
an_offer_whose_time_is_over_is_void(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    rig_pass(OFFERS_WAIT - 1);
    rig_put("A");
    assert_string_equal(offers_pop(), "3 w A");
    offers_stand("w", "4");
    rig_pass(OFFERS_WAIT);
    rig_put("B");
    assert_string_equal(offers_pop(), "1");
    assert_int_equal(offers_standing(), 0);
    rig_assert_sums();
}

static int64_t
server_ms(void)
{
    const char *text = redis_do(rig.redis, "TIME");
    char *end;
    int64_t s = strtoll(text, &end, 10);

    return s * 1000 + strtoll(end, NULL, 10) / 1000;
}

static void
the_time_of_an_offer_is_the_servers(void **state)
{
    int64_t at;

    (void)state;
    offers_none_waits();
    rig_clock(0);
    assert_string_equal(rig_script("offer", "", "v", "3", "9000", "1", "", "0", NULL),
                        "OK");
    for (at = server_ms(); server_ms() < at + 2;)
        ;
    offers_stand("w", "3");
    rig_put("A");
    assert_string_equal(offers_pop(), "3 w A");
    assert_int_equal(offers_standing(), 0);
    rig_assert_sums();
}

static void
an_offer_from_before_the_clock_was_set_back_is_void(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    rig_pass(-3600000);
    rig_put("A");
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(rig_take("v", 1)->ids, "A");
    offers_stand("v", "9");
    rig_put("B");
    assert_string_equal(offers_pop(), "9 v B");
    rig_assert_sums();
}

/* A stray entry of offers is void too. */
static void
an_offer_without_its_claim_is_void(void **state)
{
    (void)state;
    offers_none_waits();
    redis_do(rig.redis, "ZADD %s 1 nobody", rig_key(WR_QUEUE_KEY_offers));
    offers_stand("v", "3");
    redis_do(rig.redis, "HDEL %s v", rig_key(WR_QUEUE_KEY_claims));
    redis_do(rig.redis, "HSET %s u odd", rig_key(WR_QUEUE_KEY_claims));
    redis_do(rig.redis, "ZADD %s 2 u", rig_key(WR_QUEUE_KEY_offers));
    offers_stand("w", "3");
    rig_put("A");
    assert_string_equal(offers_pop(), "3 w A");
    assert_int_equal(offers_standing(), 0);
    rig_assert_sums();
}

static void
void_offers_are_cleared_a_few_at_a_time(void **state)
{
    (void)state;
    offers_none_waits();
    for (char worker[] = "a"; worker[0] <= 'j'; worker[0]++) {
        offers_stand(worker, "3");
        offers_call(worker, 3);
    }
    offers_stand("w", "3");
    rig_put("A"); /* too many of them are before w */
    assert_string_equal(offers_pop(), "1");
    assert_int_equal(offers_standing(), 3);
    assert_string_equal(rig_take("v", 1)->ids, "A");
    rig_put("B");
    assert_string_equal(offers_pop(), "3 w B");
    assert_int_equal(offers_standing(), 0);
    rig_assert_sums();
}

/* Of two who wait only the other one could run it: it hears of it by the marker, when the
 * first has put it off. */
static void
what_is_not_for_who_waits_longest_is_for_none(void **state)
{
    (void)state;
    offers_none_waits();
    assert_string_equal(offers_make("v", "3", " s ", "0"), "OK");
    rig_pass(1);
    offers_stand("w", "3");
    rig_put("A");
    assert_string_equal(offers_pop(), "1");
    assert_int_equal(offers_standing(), 2);
    assert_string_equal(rig_take("u", 1)->ids, "A");
    rig_script("enqueue", offers_now(), "", "0", "m", "B", "1 s", "\nx", "", NULL);
    assert_string_equal(offers_pop(), "3 v B");
    rig_put("C");
    assert_string_equal(offers_pop(), "3 w C");
    rig_assert_sums();
}

static void
the_offer_of_a_dead_worker_is_gone(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    offers_stand("v", "3");
    assert_memory_equal(rig_script("reclaim_held", offers_now(), "w", "", NULL), "OK 0",
                        4);
    assert_int_equal(offers_standing(), 1);
    rig_put("A");
    assert_string_equal(offers_pop(), "3 v A");
    rig_put("B");
    assert_string_equal(offers_pop(), "1");
    rig_assert_sums();
}

static void
what_its_last_call_got_is_known_behind_an_offer(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put("A");
    assert_string_equal(offers_call("w", 3)->ids, "A");
    offers_stand("w", "4");
    assert_string_equal(offers_call("w", 3)->ids, "A");
    assert_memory_equal(rig_script("reclaim_held", offers_now(), "w", "", NULL),
                        "OK 1 0 0 0", 10);
    assert_string_equal(rig_where("A"), "JRS");
    assert_int_equal(rig_state("A").lost, 0);
    rig_assert_sums();
}

static void
old_offers_are_swept_and_go_with_the_queue(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("v", "3");
    rig_pass(3599999);
    offers_stand("w", "3");
    rig_script("sweep", offers_now(), "3600000", "0", "0", "10", NULL);
    assert_int_equal(offers_standing(), 2);
    rig_pass(1);
    rig_script("sweep", offers_now(), "3600000", "0", "0", "10", NULL);
    assert_int_equal(offers_standing(), 1);
    rig_pass(3600000);
    assert_memory_equal(rig_script("drop", offers_now(), "0", "", NULL), "OK", 2);
    assert_string_equal(redis_do(rig.redis, "KEYS weir:{q}:*"), "");
}

/* ---- making one ---- */

static void
an_offer_while_jobs_wait_puts_the_marker_that_is_missing(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put("A");
    offers_drop_marker(); /* who took it owes a call, or died */
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(offers_pop(), "-");
    assert_string_equal(rig_where("A"), "JR");
    rig_pause();
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "-");
    rig_resume();
    offers_drop_marker();
    assert_string_equal(rig_take("v", 1)->ids, "A");
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "-"); /* none waits */
    rig_release("v", "A");
    offers_drop_marker();
    offers_stand("w", "3"); /* it waits in front */
    assert_string_equal(offers_pop(), "1");
    rig_assert_sums();
}

/* The one that came just before the offer did, and whose marker nobody has. */
static void
the_job_that_waits_alone_is_handed_over_by_the_offer(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put("A");
    offers_stand("w", "3");
    assert_string_equal(rig_where("A"), "JPS");
    assert_int_equal(rig_score("A"), rig.now + OFFERS_LEASE);
    assert_int_equal(rig_stat("deliveries"), 2);
    assert_int_equal(offers_standing(), 0);
    assert_string_equal(offers_make("w", "3", "", "0"), "BEHIND"); /* the repeat of it */
    assert_string_equal(offers_call("w", 3)->ids, "A");
    assert_string_equal(offers_pop(), "3 w A");
    assert_string_equal(offers_pop(), "-");
    rig_assert_sums();
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_put("B");
    assert_string_equal(offers_make("w", "4", " t ", "500"), "OK");
    assert_string_equal(offers_withdraw("w", "4"), "OK"); /* it may be given back */
    assert_string_equal(rig_where("B"), "JRS");
    assert_string_equal(rig_take("v", 1)->ids, "B");
    rig_assert_sums();
}

/* And the offer does what it does when none waits. */
static void
of_more_than_one_the_offer_hands_none_over(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put_many("A B");
    offers_stand("w", "3");
    assert_string_equal(rig_where("A"), "JR");
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(rig_take("v", 1)->ids, "A");
    rig_release("v", "A"); /* one in front, one behind */
    offers_stand("w", "3");
    assert_string_equal(rig_where("A"), "JRS");
    assert_string_equal(offers_pop(), "1");
    assert_int_equal(offers_standing(), 1);
    rig_assert_sums();
}

/* It may be the place of the one that waits, or another one's. */
static void
beside_one_that_was_called_off_the_offer_hands_none_over(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put("A");
    rig_cancel("A");
    offers_stand("w", "3");
    assert_int_equal(offers_standing(), 1);
    assert_int_equal(offers_call("w", 3)->n, 0);
    rig_assert_sums();
}

static void
no_offer_hands_over_what_waits_in_a_paused_queue(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put("A");
    rig_pause();
    offers_stand("w", "3");
    assert_string_equal(rig_where("A"), "JR");
    assert_int_equal(offers_standing(), 1);
    rig_assert_sums();
}

static void
an_offer_that_is_off_hands_nothing_over(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    offers_drop_marker();
    assert_string_equal(offers_withdraw("w", "3"), "OK");
    assert_string_equal(offers_make("v", "3", "", "0"), "OFF");
    assert_string_equal(rig_where("A"), "JRS");
    assert_string_equal(rig_take("u", 1)->ids, "A");
    offers_drop_marker();
    rig_put("B");
    assert_string_equal(offers_make("v", "3", "", "0"), "OFF");
    assert_string_equal(rig_where("B"), "JR");
    assert_string_equal(offers_pop(), "1");
    rig_assert_sums();
}

/* It is judged as by reserve: this one ends, or waits a moment, or is dead. */
static void
what_an_offer_cannot_take_goes_where_reserve_sends_it(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put_job((struct rig_job){.id = "A", .options = " expires=100"});
    rig_pass(100);
    offers_stand("w", "3");
    assert_string_equal(rig_where("A"), "");
    assert_int_equal(rig_stat("expired_ready"), 1);
    assert_string_equal(offers_pop(), "-");
    rig_put("B"); /* the offer stands all the same */
    assert_string_equal(offers_pop(), "3 w B");
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_OK);
    rig_put("C");
    assert_string_equal(offers_make("w", "4", " s ", "0"), "OK");
    assert_string_equal(rig_where("C"), "JL");
    assert_int_equal(rig_stat("shelved"), 1);
    assert_string_equal(offers_pop(), "-");
    assert_int_equal(offers_standing(), 1);
    rig_pass(5000);
    assert_int_equal(rig_promote(9).moved, 1);
    rig_assert_sums();
}

/* Whatever it is: the states of its key, its line and its limit are those of reserve. */
static void
an_offer_takes_a_special_job_as_reserve_does(void **state)
{
    static const struct rig_job jobs[] = {
        {.id = "A", .options = " unique=k", .unique = "0 k"},
        {.id = "A", .options = " unique=k unique_states=ready", .unique = "0 k"},
        {.id = "A", .options = " order=k", .unique = "0 - =k"},
        {.id = "A", .options = " max_deliveries=9 keep=300"}};
    struct wr_reserve how = {
        .worker = "w", .call = 3, .free = 1, .lease_ms = OFFERS_LEASE};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char keys[200], text[400];

        rig_fresh(NULL);
        offers_none_waits();
        assert_int_equal(rig_put_job(jobs[i]), WR_ADMIT_STORED);
        assert_string_equal(rig_take_how(&how)->ids, "A");
        rig_release("w", "A");
        snprintf(keys, sizeof(keys), "%s",
                 redis_do(rig.redis, "HGETALL %s", rig_key(WR_QUEUE_KEY_unique)));
        rig_fresh(NULL);
        offers_none_waits();
        assert_int_equal(rig_put_job(jobs[i]), WR_ADMIT_STORED);
        offers_stand("w", "3");
        assert_string_equal(offers_pop(), "3 w A");
        assert_string_equal(offers_withdraw("w", "3"), "OK");
        assert_string_equal(
            redis_do(rig.redis, "HGETALL %s", rig_key(WR_QUEUE_KEY_unique)), keys);
        snprintf(text, sizeof(text), "%s", offers_call("v", 3)->ids);
        assert_string_equal(text, "A");
        assert_int_equal(rig_bury("v", "A"), WR_ANSWERED_OK);
        rig_assert_sums();
    }
}

static void
nobody_offers_to_a_queue_that_nobody_made(void **state)
{
    (void)state;
    redis_do(rig.redis, "FLUSHALL");
    assert_string_equal(offers_make("w", "3", "", "0"), "NOQUEUE");
    assert_string_equal(offers_withdraw("w", "3"), "NOQUEUE");
    assert_string_equal(redis_do(rig.redis, "DBSIZE"), "0");
}

/* A stream has no group yet: only who makes it knows that none waits. */
static void
the_first_job_of_a_queue_is_run_all_the_same(void **state)
{
    (void)state;
    redis_do(rig.redis, "FLUSHALL");
    rig_make_queue();
    offers_stand("w", "3");
    rig_put("A");
    assert_string_equal(offers_pop(), rig_either("3 w A", "1"));
    assert_string_equal(offers_call("w", rig.engine == RIG_LIST ? 3 : 4)->ids, "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
a_full_server_takes_offers_and_their_withdrawal_but_no_job_F17(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("v", "3");
    rig_put("A");
    redis_do(rig.redis, "CONFIG SET maxmemory 1");
    offers_stand("w", "3");
    assert_memory_equal(
        rig_script("enqueue", offers_now(), "", "0", "m", "B", "1 t", "\nx", "", NULL),
        "ERR OOM", 7);
    assert_int_equal(offers_standing(), 1);
    assert_string_equal(offers_withdraw("v", "3"), "OK");
    redis_do(rig.redis, "CONFIG SET maxmemory 0");
    assert_string_equal(rig_take("u", 1)->ids, "A");
    offers_drop_marker();
    rig_put("B");
    assert_string_equal(offers_pop(), "3 w B");
    rig_assert_sums();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(an_offer_whose_call_was_made_is_void),
        RIG_TEST(an_offer_of_a_call_that_was_made_is_behind),
        RIG_TEST(an_offer_made_again_stands_once),
        RIG_TEST(an_offer_whose_time_is_over_is_void),
        RIG_TEST(the_time_of_an_offer_is_the_servers),
        RIG_TEST(an_offer_from_before_the_clock_was_set_back_is_void),
        RIG_TEST(an_offer_without_its_claim_is_void),
        RIG_TEST(void_offers_are_cleared_a_few_at_a_time),
        RIG_TEST(what_is_not_for_who_waits_longest_is_for_none),
        RIG_TEST(the_offer_of_a_dead_worker_is_gone),
        RIG_TEST(what_its_last_call_got_is_known_behind_an_offer),
        RIG_TEST(old_offers_are_swept_and_go_with_the_queue),
        RIG_TEST(an_offer_while_jobs_wait_puts_the_marker_that_is_missing),
        RIG_TEST(the_job_that_waits_alone_is_handed_over_by_the_offer),
        RIG_TEST(of_more_than_one_the_offer_hands_none_over),
        RIG_TEST(beside_one_that_was_called_off_the_offer_hands_none_over),
        RIG_TEST(no_offer_hands_over_what_waits_in_a_paused_queue),
        RIG_TEST(an_offer_that_is_off_hands_nothing_over),
        RIG_TEST(what_an_offer_cannot_take_goes_where_reserve_sends_it),
        RIG_TEST(an_offer_takes_a_special_job_as_reserve_does),
        RIG_TEST(nobody_offers_to_a_queue_that_nobody_made),
        RIG_TEST(the_first_job_of_a_queue_is_run_all_the_same),
        RIG_TEST(a_full_server_takes_offers_and_their_withdrawal_but_no_job_F17),
    };

    return RIG_MAIN(tests);
}
