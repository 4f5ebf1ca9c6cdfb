/*
 * Offers: an idle worker says which call of reserve it would make next, and a job that
 * comes alone is handed to it by the step that stores it. Who gets it, and when none is
 * handed over.
 */
#include "script/offers.h"

#include <stdio.h>
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
    assert_string_equal(rig_where("B"), "JR");
    offers_stand("w", "4");
    assert_string_equal(rig_where("B"), "JR");
    assert_string_equal(offers_pop(), "1");
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
    };

    return RIG_MAIN(tests);
}
