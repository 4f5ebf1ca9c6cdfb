/*
 * Offers: an idle worker says which call of reserve it would make next, and a job that
 * comes alone is handed to it by the step that stores it. Who gets it, and when none is
 * handed over.
 */
#include "script/offers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- who gets it ---- */

static void
a_job_that_comes_alone_is_handed_to_who_waits_longest(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w2", "3");
    rig_pass(1);
    offers_stand("w1", "8");
    rig_pass(1);
    offers_stand("w3", "5");
    rig_put("A");
    assert_string_equal(rig_where("A"), "JPS");
    assert_string_equal(offers_pop(), "3 w2 A");
    rig_pass(1);
    offers_stand("w2", "4"); /* it waits again: behind the others */
    rig_put("B");
    assert_string_equal(offers_pop(), "8 w1 B");
    rig_put("C");
    assert_string_equal(offers_pop(), "5 w3 C");
    rig_put("D");
    assert_string_equal(offers_pop(), "4 w2 D");
    rig_put("E"); /* nobody waits */
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(rig_where("E"), "JR");
    assert_int_equal(rig_stat("deliveries"), 5);
    rig_assert_sums();
    assert_int_equal(rig_ack("w2", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w1", "B"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w3", "C"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w2", "D"), WR_ANSWERED_OK);
    assert_string_equal(rig_take("w1", 9)->ids, "E");
    rig_assert_sums();
}

/* By the server's clock it counts in microseconds. */
static void
who_waits_longest_is_known_to_less_than_a_ms(void **state)
{
    (void)state;
    offers_none_waits();
    rig_clock(0);
    for (char worker[] = "i"; worker[0] > 'a'; worker[0]--)
        offers_stand(worker, "1");
    for (char id[] = "A"; id[0] < 'I'; id[0]++) {
        char wanted[] = "1 ? ?";

        rig_put(id);
        wanted[2] = (char)('i' - (id[0] - 'A'));
        wanted[4] = id[0];
        assert_string_equal(offers_pop(), wanted);
    }
    rig_assert_sums();
}

static void
the_lease_the_types_and_the_keep_are_those_of_the_offer(void **state)
{
    (void)state;
    offers_none_waits();
    assert_string_equal(offers_make("w", "3", " s t ", "7000"), "OK");
    rig_put("A");
    assert_string_equal(offers_pop(), "3 w A");
    assert_int_equal(rig_score("A"), rig.now + OFFERS_LEASE);
    assert_int_equal(rig_ack_result("w", "A", "out"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "JKS");
    assert_int_equal(rig_score("A"), rig.now + 7000);
    assert_string_equal(offers_make("w", "4", "! s ", "7000"), "OK");
    rig_put_job((struct rig_job){.id = "B", .options = " keep=300"});
    assert_string_equal(offers_pop(), "4 w B");
    assert_int_equal(rig_ack_result("w", "B", "out"), WR_ANSWERED_OK);
    assert_int_equal(rig_score("B"), rig.now + 300); /* the job's own goes before */
    rig_pass(7000);
    assert_int_equal(rig_forget(9).moved, 2);
    rig_assert_sums();
}

/* Of a worker that keeps no results. */
static void
a_handed_over_job_keeps_the_result_that_it_asks_for(void **state)
{
    (void)state;
    offers_none_waits();
    offers_hand_job("w", (struct rig_job){.id = "A", .options = " keep=300"});
    assert_int_equal(rig_ack_result("w", "A", "out"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "JKS");
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_results)),
                        "out");
    rig_assert_sums();
}

/* Where it stands, and all that inspect tells of it, but for the token. */
static const char *
shown(const char *worker, const char *id)
{
    static struct wr_buf texts[2];
    static unsigned turn;
    struct wr_buf *out = &texts[turn++ % 2];
    const char *text = rig_script("inspect", offers_now(), id, "100", NULL);
    const char *token = rig_token(worker, id), *at = strstr(text, token);

    assert_non_null(at);
    wr_buf_clear(out);
    wr_buf_add_str(out, rig_where(id));
    wr_buf_add(out, text, (size_t)(at - text));
    wr_buf_add_str(out, at + strlen(token));
    return wr_buf_span(out).ptr;
}

static void
a_handed_over_job_looks_as_a_reserved_one(void **state)
{
    static const char *const options[] = {"", " keep=300", " expires=5000", " retry=2"};
    struct wr_reserve how = {
        .worker = "w", .call = 0, .free = 1, .lease_ms = OFFERS_LEASE};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const char *reserved;

        rig_fresh(NULL);
        offers_none_waits();
        rig_put_job((struct rig_job){.id = "A", .options = options[i]});
        how.call = 50;
        assert_string_equal(rig_take_how(&how)->ids, "A");
        reserved = shown("w", "A");
        rig_fresh(NULL);
        offers_none_waits();
        offers_hand_job("w", (struct rig_job){.id = "A", .options = options[i]});
        assert_string_equal(shown("w", "A"), reserved);
        rig_assert_sums();
    }
}

static void
tokens_go_on_from_those_of_other_deliveries(void **state)
{
    char token[64];

    (void)state;
    offers_none_waits();
    offers_hand("w", "A");
    assert_string_equal(rig_token("w", "A"), "2"); /* the first had 1 */
    snprintf(token, sizeof(token), "%s", rig_token("w", "A"));
    rig_put("B");
    rig_take("v", 1);
    assert_string_equal(rig_token("v", "B"), "3");
    rig_set_token("w", "B", token);
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_STALE);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* ---- when none is handed over ---- */

static void
it_is_paused(void)
{
    rig_pause();
}

static void
a_marker_stands(void)
{
    redis_do(rig.redis, "LPUSH %s 1", rig_key(WR_QUEUE_KEY_wake));
}

static void
one_waits(void)
{
    rig_put_many("X Y");
    rig_take("z", 1);
    offers_drop_marker();
}

static void
one_waits_in_front(void)
{
    a_marker_stands();
    rig_put("X");
    rig_take("z", 1);
    rig_release("z", "X");
    offers_drop_marker();
}

static void
nothing(void)
{
}

static void
it_may_not_be_the_workers(void)
{
    assert_string_equal(offers_make("w", "3", " s u ", "0"), "OK");
}

static void
it_is_what_the_worker_does_not_run(void)
{
    assert_string_equal(offers_make("w", "3", "! s t ", "0"), "OK");
}

static const struct reason {
    const char *name;
    void (*happens)(void); /* after the offer */
    struct rig_job job;
    const char *where;
    const char *marker; /* then */
} reasons[] = {
    {"paused", it_is_paused, {.id = "A"}, "JR", "-"},
    {"a marker stands", a_marker_stands, {.id = "A"}, "JR", "1"},
    {"one waits", one_waits, {.id = "A"}, "JR", "1"},
    {"one waits in front", one_waits_in_front, {.id = "A"}, "JR", "1"},
    {"unique", nothing, {.id = "A", .options = " unique=k", .unique = "0 k"}, "JR", "1"},
    {"unique for a while",
     nothing,
     {.id = "A", .options = " unique=k", .unique = "9000 k"},
     "JR",
     "1"},
    {"in a line",
     nothing,
     {.id = "A", .options = " order=k", .unique = "0 - =k"},
     "JR",
     "1"},
    {"deliveries", nothing, {.id = "A", .options = " max_deliveries=9"}, "JR", "1"},
    {"later", nothing, {.id = "A", .due = "+5"}, "JL", "-"},
    {"types", it_may_not_be_the_workers, {.id = "A"}, "JR", "1"},
    {"other types", it_is_what_the_worker_does_not_run, {.id = "A"}, "JR", "1"},
};

/* And the offer stands: what is handed over next is for the same worker. */
static void
a_job_that_is_special_or_does_not_come_alone_is_not_handed_over(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        const struct reason *r = &reasons[i];
        int64_t before;
        const char *marker;

        rig_fresh(NULL);
        offers_none_waits();
        offers_stand("w", "3");
        r->happens();
        before = rig_stat("deliveries");
        assert_int_equal(rig_put_job(r->job), WR_ADMIT_STORED);
        if (strcmp(rig_where("A"), r->where) != 0)
            fail_msg("%s: A is in %s", r->name, rig_where("A"));
        marker = offers_pop();
        if (strcmp(marker, r->marker) != 0 || strcmp(offers_pop(), "-") != 0)
            fail_msg("%s: the marker is %s", r->name, marker);
        if (offers_standing() != 1 || rig_stat("deliveries") != before)
            fail_msg("%s: the offer is gone", r->name);
        rig_assert_sums();
    }
}

static void
what_comes_with_others_is_not_handed_over(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    rig_put_many("A B");
    assert_string_equal(rig_where("A"), "JR");
    assert_string_equal(rig_where("B"), "JR");
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(offers_pop(), "-");
    assert_int_equal(offers_standing(), 1);
    rig_assert_sums();
}

/* Of what comes with it nothing is stored. */
static void
what_comes_with_one_that_is_there_already_comes_alone(void **state)
{
    const char *reply;

    (void)state;
    offers_none_waits();
    offers_hand("v", "A");
    offers_stand("w", "3");
    reply = rig_script("enqueue", offers_now(), "", "0", "m", "A", "1 t", "\nx", "", "B",
                       "1 t", "\nx", "", NULL);
    assert_string_equal(reply, "OK 0 0 EXISTS processing");
    assert_string_equal(offers_pop(), "3 w B");
    rig_assert_sums();
}

static void
a_long_job_is_not_handed_over(void **state)
{
    static char big[5000];

    (void)state;
    memset(big, 'x', sizeof(big));
    offers_none_waits();
    offers_stand("w", "3");
    rig_put_job((struct rig_job){.id = "A", .payload = {big, 4000}});
    assert_string_equal(offers_pop(), "3 w A");
    offers_stand("w", "4");
    rig_put_job((struct rig_job){.id = "B", .payload = {big, sizeof(big)}});
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(rig_where("B"), "JR");
    rig_assert_sums();
}

/* What makes a job ready that was there before puts the ordinary marker. */
static void
what_only_gets_ready_is_not_handed_over(void **state)
{
    (void)state;
    rig_kill_job("A");
    rig_put_job((struct rig_job){.id = "B", .due = "+100"});
    offers_drop_marker();
    offers_stand("w", "3");
    assert_int_equal(rig_replay("A"), WR_REPLAY_OK);
    assert_string_equal(rig_where("A"), "JRS");
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(rig_take("v", 1)->ids, "A");
    rig_pass(100);
    assert_int_equal(rig_promote(9).moved, 1);
    assert_string_equal(rig_where("B"), "JR");
    assert_string_equal(offers_pop(), "1");
    assert_int_equal(offers_standing(), 1);
    rig_assert_sums();
}

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
    rig_put_many("A B");
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "1");
    assert_string_equal(offers_pop(), "-"); /* one stood */
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "1");
    rig_pause();
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "-");
    rig_resume();
    offers_drop_marker();
    assert_string_equal(rig_take("v", 2)->ids, "A B");
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "-"); /* none waits */
    rig_release("v", "A");
    offers_drop_marker();
    offers_stand("w", "3"); /* it waits in front */
    assert_string_equal(offers_pop(), "1");
    rig_assert_sums();
}

/* It came just before the offer did. */
static void
the_one_job_whose_marker_nobody_took_is_handed_to_who_offers_next(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put("A");
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "3 w A");
    assert_string_equal(offers_pop(), "-"); /* the marker is gone with it */
    rig_assert_sums();
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_put("B");
    assert_string_equal(offers_pop(), "1");
    offers_stand("w", "4"); /* somebody has the marker, and owes a call */
    assert_string_equal(offers_pop(), "1");
    rig_assert_sums();
}

static void
one_that_cannot_run_is_not_handed_over_by_an_offer(void **state)
{
    (void)state;
    offers_none_waits();
    rig_put_job((struct rig_job){.id = "A", .options = " expires=5"});
    rig_pass(10);
    offers_stand("w", "3");
    assert_string_equal(offers_pop(), "-");
    assert_string_equal(rig_where("A"), "");
    rig_assert_sums();
    rig_put("B"); /* the offer stands */
    assert_string_equal(offers_pop(), "3 w B");
    rig_assert_sums();
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
        RIG_TEST(a_job_that_comes_alone_is_handed_to_who_waits_longest),
        RIG_TEST(who_waits_longest_is_known_to_less_than_a_ms),
        RIG_TEST(the_lease_the_types_and_the_keep_are_those_of_the_offer),
        RIG_TEST(a_handed_over_job_keeps_the_result_that_it_asks_for),
        RIG_TEST(a_handed_over_job_looks_as_a_reserved_one),
        RIG_LIST_TEST(tokens_go_on_from_those_of_other_deliveries),
        RIG_TEST(a_job_that_is_special_or_does_not_come_alone_is_not_handed_over),
        RIG_TEST(what_comes_with_others_is_not_handed_over),
        RIG_TEST(what_comes_with_one_that_is_there_already_comes_alone),
        RIG_TEST(a_long_job_is_not_handed_over),
        RIG_TEST(what_only_gets_ready_is_not_handed_over),
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
        RIG_TEST(the_one_job_whose_marker_nobody_took_is_handed_to_who_offers_next),
        RIG_TEST(one_that_cannot_run_is_not_handed_over_by_an_offer),
        RIG_TEST(nobody_offers_to_a_queue_that_nobody_made),
        RIG_TEST(the_first_job_of_a_queue_is_run_all_the_same),
        RIG_TEST(a_full_server_takes_offers_and_their_withdrawal_but_no_job_F17),
    };

    return RIG_MAIN(tests);
}
