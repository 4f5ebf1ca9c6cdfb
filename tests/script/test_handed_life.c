/*
 * To all that does not hand jobs over, a job that was is one that was reserved: while it
 * runs, while the queue moves, and when somebody deletes by hand.
 */
#include "script/offers.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"

/* ---- and else it is a job that runs ---- */

static void
by_reserve(void)
{
    struct wr_reserve how = {
        .worker = "w", .call = 3, .free = 1, .lease_ms = OFFERS_LEASE};

    offers_none_waits();
    rig_put("A");
    assert_string_equal(rig_take_how(&how)->ids, "A");
}

static void
by_offer(void)
{
    offers_hand_unheard("A");
    assert_string_equal(offers_pop(), "3 w A");
}

static void
do_ack(void)
{
    assert_int_equal(rig_ack_result("w", "A", "out"), WR_ANSWERED_OK);
}

static void
do_retry(void)
{
    assert_int_equal(rig_retry("w", "A", 500), WR_ANSWERED_OK);
}

static void
do_bury(void)
{
    assert_int_equal(rig_bury("w", "A"), WR_ANSWERED_OK);
}

static void
do_release(void)
{
    assert_int_equal(rig_release("w", "A"), WR_ANSWERED_OK);
}

static void
do_extend(void)
{
    rig_pass(700);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_OK);
}

static void
do_progress(void)
{
    assert_int_equal(rig_progress("w", "A", "half"), WR_EXTEND_OK);
}

static void
do_cancel(void)
{
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED);
    assert_int_equal(rig_release("w", "A"), WR_ANSWERED_CANCELLED);
}

static void
do_log(void)
{
    rig_script("log", "w", "9", "9", "9", "4", "99", "A", rig_token("w", "A"), "0", "1",
               "text", NULL);
    assert_int_equal(rig_stat("log_bytes"), 4);
}

/* Where it is then, and all that inspect tells of it, without the token of w. */
static const char *
looks_of(void (*gets)(void), void (*does)(void))
{
    static struct wr_buf texts[2];
    static unsigned turn;
    struct wr_buf *out = &texts[turn++ % 2];
    const char *text, *token, *at;

    rig_fresh(NULL);
    gets();
    does();
    token = rig_token("w", "A");
    text = rig_script("inspect", offers_now(), "A", "100", NULL);
    wr_buf_clear(out);
    wr_buf_add_str(out, rig_where("A"));
    for (; (at = strstr(text, token)) != NULL; text = at + strlen(token))
        wr_buf_add(out, text, (size_t)(at - text));
    wr_buf_add_str(out, text);
    rig_assert_sums();
    return wr_buf_span(out).ptr;
}

static void
all_that_is_done_with_a_reserved_job_is_done_with_a_handed_over_one(void **state)
{
    void (*const acts[])(void) = {do_ack,    do_retry,    do_bury,   do_release,
                                  do_extend, do_progress, do_cancel, do_log};

    (void)state;
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        assert_string_equal(looks_of(by_offer, acts[i]), looks_of(by_reserve, acts[i]));
}

static void
people_see_a_handed_over_job_where_it_runs(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    assert_non_null(
        strstr(rig_script("browse", offers_now(), "processing", "0", "10", NULL), "A"));
    assert_null(
        strstr(rig_script("browse", offers_now(), "ready", "0", "10", NULL), "A"));
    assert_int_equal(rig_audit().processing, 1);
    assert_int_equal(rig_audit().ready, 0);
    rig_assert_sums();
}

/* It was not too late to start. */
static void
a_handed_over_job_that_expires_runs_on(void **state)
{
    (void)state;
    offers_none_waits();
    offers_hand_job("w", (struct rig_job){.id = "A", .options = " expires=1000"});
    rig_pass(5000);
    assert_string_equal(offers_call("v", 9)->ids, "");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_stat("expired_ready"), 0);
    rig_assert_sums();
}

/* ---- the queue moves ---- */

static void
move_it(const char *to, enum wr_migrate_word wanted)
{
    struct wr_migrated m = {.word = WR_MIGRATE_COPIED};

    for (int i = 0; i < 20 && m.word != WR_MIGRATE_DONE && m.word != WR_MIGRATE_RUNS; i++)
        assert_int_equal(
            wr_store_migrate(rig.store, rig.queue, to, "me", 10, &m, &rig.err), WEIR_OK);
    assert_int_equal(m.word, wanted);
    rig_follow_engine();
}

static const char *
other_engine(void)
{
    return rig_either("stream", "list");
}

static void
an_offer_stands_when_the_queue_has_moved(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    move_it(other_engine(), WR_MIGRATE_DONE);
    rig_put("A");
    assert_string_equal(rig_where("A"), "JPS");
    assert_string_equal(offers_call("w", 3)->ids, "A");
    assert_string_equal(offers_pop(), "3 w A");
    offers_stand("w", "4");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    move_it(other_engine(), WR_MIGRATE_DONE); /* and back */
    rig_put("B");
    assert_string_equal(offers_pop(), "4 w B");
    assert_int_equal(rig_extend("w", "B", 0), WR_EXTEND_OK);
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
a_move_waits_for_the_end_of_what_was_handed_over(void **state)
{
    const char *to = other_engine();

    (void)state;
    offers_hand_unheard("A");
    move_it(to, WR_MIGRATE_RUNS);
    assert_string_equal(offers_call("w", 3)->ids, "A");
    rig_put("B");
    assert_string_equal(rig_where("B"), "JR"); /* paused meanwhile */
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    move_it(to, WR_MIGRATE_DONE);
    assert_string_equal(rig_take("w", 9)->ids, "B");
    rig_assert_sums();
}

static void
a_move_takes_along_what_was_given_back(void **state)
{
    const char *to = other_engine();

    (void)state;
    offers_hand_unheard("A");
    offers_drop_marker();
    move_it(to, WR_MIGRATE_RUNS);
    assert_string_equal(offers_withdraw("w", "3"), "OK");
    assert_false(rig_has_marker());
    move_it(to, WR_MIGRATE_DONE);
    assert_true(rig_has_marker());
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    assert_int_equal(offers_call("w", 3)->n, 0);
    assert_string_equal(rig_take("v", 9)->ids, "A");
    assert_int_equal(rig_state("A").deliveries, 2);
    assert_int_equal(rig_state("A").lost, 0);
    rig_assert_sums();
}

/* ---- deleted by hand ---- */

static void
who_forgot_that_it_was_handed_over_loses_it_by_its_lease(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_claims));
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    assert_int_equal(offers_call("w", 3)->n, 0);
    rig_pass(RIG_LEASE + 1);
    assert_int_equal(rig_reclaim().moved, 1);
    assert_string_equal(rig_take("w", 1)->ids, "A");
    rig_assert_sums();
}

static void
one_whose_body_is_gone_dies_when_it_was_given_back(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    rig_lose_body("A");
    offers_drop_marker();
    assert_string_equal(offers_withdraw("w", "3"), "OK");
    rig_pass(RIG_LEASE + 1);
    rig_reclaim();
    assert_int_equal(rig_take("v", 1)->n, 0);
    assert_int_equal(rig_audit().dead, 1);
    rig_assert_equations(0); /* what else it left is mended by repair */
}

/* Of an id whose job was deleted while it ran and was called off. */
static void
a_state_that_was_left_is_not_that_of_a_handed_over_job(void **state)
{
    struct wr_span argv[] = {wr_span_str("HSET"), rig.keys.key[WR_QUEUE_KEY_state],
                             wr_span_str("A"), wr_span_str("9 v c - 0 1 0 2 0 0 1 3|")};
    struct wr_reply *reply;

    (void)state;
    offers_none_waits();
    assert_int_equal(
        wr_conn_call(rig.conn, argv, 4, wr_clock_ms() + 5000, &reply, &rig.err), WEIR_OK);
    wr_reply_free(reply);
    offers_hand("w", "A");
    assert_int_equal(rig_state("A").lost, 0);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "");
    rig_assert_sums();
}

/* ---- the marker ---- */

static void
an_ordinary_marker_brings_no_job(void **state)
{
    static const struct wr_span odd[] = {
        {"1", 1},         {"", 0},           {"3\n", 2},
        {"3\nA", 3},      {"3\nA\0x", 5},    {"3\nA\0x\ny", 7},
        {"\nA\0x\ny", 6}, {"x\nA\0x\ny", 7}, {"3\nA\0\n\n", 6}};
    static const char text[] = "3\nA b\0001-1.1 w - - 0 1 0 0 0 0 9 3|\n1 t 9\nx";
    struct wr_handed h;

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        assert_false(wr_handed_read(odd[i], &h));
    assert_true(wr_handed_read((struct wr_span){text, sizeof(text) - 1}, &h));
    assert_int_equal(h.call, 3);
    assert_int_equal(h.job.id.len, 3);
    assert_memory_equal(h.job.id.ptr, "A b", 3);
    assert_string_equal(h.job.state.worker, "w");
    assert_string_equal(h.job.state.token, "1-1.1");
    assert_int_equal(h.job.record.len, 7);
    assert_memory_equal(h.job.record.ptr, "1 t 9\nx", 7);
}

static void
any_bytes_come_with_the_marker_D03(void **state)
{
    static char all[256];
    static const char *const ids[] = {"a:b", " a b ", "%00",      "-",
                                      "3",   "|",     "\xc3\xbc", "\xff\xfe"};

    (void)state;
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    offers_none_waits();
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        struct wr_span argv[] = {wr_span_str("LPOP"), rig.keys.key[WR_QUEUE_KEY_wake]};
        struct wr_reply *reply;
        struct wr_handed h;

        assert_string_equal(offers_make("w", "9", "", "0"), i == 0 ? "OK" : "BEHIND");
        redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_claims));
        offers_stand("w", "9");
        rig_put_job((struct rig_job){.id = ids[i], .payload = {all, 256}});
        assert_int_equal(
            wr_conn_call(rig.conn, argv, 2, wr_clock_ms() + 5000, &reply, &rig.err),
            WEIR_OK);
        assert_true(wr_handed_read(wr_reply_span(reply), &h));
        assert_int_equal(h.job.id.len, strlen(ids[i]));
        assert_memory_equal(h.job.id.ptr, ids[i], h.job.id.len);
        assert_memory_equal((const char *)h.job.record.ptr + h.job.record.len - 256, all,
                            256);
        rig_set_token("w", ids[i], h.job.state.token);
        wr_reply_free(reply);
        assert_string_equal(offers_call("w", 9)->ids, ids[i]);
        assert_int_equal(rig_ack("w", ids[i]), WR_ANSWERED_OK);
    }
    rig_assert_sums();
}

/* ---- streams ---- */

static void
a_made_up_id_is_told_when_the_job_is_handed_over(void **state)
{
    char reply[64], wanted[80];

    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    for (int i = 0; i < 2; i++) { /* also by the repeat */
        const char *id;

        snprintf(reply, sizeof(reply), "%s",
                 rig_script("enqueue", offers_now(), "c", "1", "m", "\tN", "1 t", "\nx",
                            "", NULL));
        id = strrchr(reply, ' ') + 1;
        snprintf(wanted, sizeof(wanted), "%s 0 0 IDS %s", i == 0 ? "OK" : "BEFORE", id);
        assert_string_equal(reply, wanted);
        assert_string_equal(rig_where(id), "JPS");
    }
    snprintf(wanted, sizeof(wanted), "3 w %s", strrchr(reply, ' ') + 1);
    assert_string_equal(offers_pop(), wanted);
    assert_int_equal(rig_ack("w", strrchr(reply, ' ') + 1), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* Beside one that is there already. */
static void
a_made_up_id_is_told_with_its_place_in_the_call(void **state)
{
    const char *reply;
    char wanted[80];

    (void)state;
    offers_none_waits();
    offers_hand("v", "A");
    offers_stand("w", "3");
    reply = rig_script("enqueue", offers_now(), "", "0", "m", "A", "1 t", "\nx", "",
                       "\tN", "1 t", " keep=9\nx", "", NULL);
    assert_memory_equal(reply, "OK 0 0 EXISTS processing 1 IDS ", 31);
    snprintf(wanted, sizeof(wanted), "3 w %s", strrchr(reply, ' ') + 1);
    assert_string_equal(offers_pop(), wanted);
    rig_assert_sums();
}

static void
a_call_by_a_made_up_id_waits_for_what_was_handed_over(void **state)
{
    const char *reply;
    char id[64];

    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    reply = rig_script("call", offers_now(), "c", "1", "m", "ch/1", "9000", "\tN", "1 t",
                       "\nx", "", "", NULL);
    snprintf(id, sizeof(id), "%s", strrchr(reply, ' ') + 1);
    assert_string_equal(redis_do(rig.redis, "HKEYS %s", rig_key(WR_QUEUE_KEY_waiters)),
                        id);
    assert_string_equal(rig_where(id), "JPS");
    rig_assert_sums();
}

/* The group knows that it gave it out. */
static void
nobody_else_gets_what_was_handed_over(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    assert_int_equal(rig_take("v", 9)->word, WR_RESERVE_EMPTY);
    rig_put("B");
    assert_string_equal(rig_take("v", 9)->ids, "B");
    assert_string_equal(rig_where("A"), "JPS");
    rig_assert_sums();
}

static void
nothing_is_handed_over_without_a_group(void **state)
{
    (void)state;
    offers_none_waits();
    offers_stand("w", "3");
    redis_do(rig.redis, "XGROUP DESTROY %s workers", rig_key(WR_QUEUE_KEY_stream));
    rig_put("A");
    assert_string_equal(rig_where("A"), "JR");
    assert_string_equal(offers_pop(), "1");
    rig_take("w", 1); /* the group is made anew */
    assert_string_equal(rig_take("w", 1)->ids, "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
what_was_handed_over_waits_again_when_its_group_is_destroyed(void **state)
{
    char token[64];

    (void)state;
    offers_hand_unheard("A");
    assert_string_equal(offers_pop(), "3 w A");
    snprintf(token, sizeof(token), "%s", rig_token("w", "A"));
    redis_do(rig.redis, "XGROUP DESTROY %s workers", rig_key(WR_QUEUE_KEY_stream));
    assert_string_equal(offers_withdraw("w", "3"), "STALE");
    rig_take("v", 1);
    assert_string_equal(rig_take("v", 1)->ids, "A");
    rig_set_token("w", "A", token);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_OK);
}

/* Its token says so, or a delivery of the first group by this entry could answer. */
static void
what_is_handed_over_in_another_group_is_a_delivery_of_that(void **state)
{
    (void)state;
    offers_none_waits();
    redis_do(rig.redis, "XGROUP DESTROY %s workers", rig_key(WR_QUEUE_KEY_stream));
    rig_put("A");
    rig_take("v", 1);
    assert_string_equal(rig_take("v", 1)->ids, "A");
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_OK);
    offers_drop_marker();
    offers_hand("w", "B");
    assert_non_null(strstr(rig_token("w", "B"), ".1.2"));
    assert_non_null(strstr(
        redis_do(rig.redis, "XPENDING %s workers", rig_key(WR_QUEUE_KEY_stream)), "w#2"));
    assert_int_equal(rig_extend("w", "B", 0), WR_EXTEND_OK);
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* As many are pending as there are entries, one of which waits. */
static void
one_that_was_deleted_while_it_ran_hides_none_that_waits(void **state)
{
    (void)state;
    offers_hand_unheard("A");
    rig_put("B");
    rig_lose_body("A");
    offers_drop_marker();
    offers_stand("v", "3");
    offers_drop_marker();
    rig_put("C");
    assert_string_equal(rig_where("C"), "JR");
    assert_string_equal(rig_take("v", 9)->ids, "B C");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(all_that_is_done_with_a_reserved_job_is_done_with_a_handed_over_one),
        RIG_TEST(people_see_a_handed_over_job_where_it_runs),
        RIG_TEST(a_handed_over_job_that_expires_runs_on),
        RIG_TEST(an_offer_stands_when_the_queue_has_moved),
        RIG_TEST(a_move_waits_for_the_end_of_what_was_handed_over),
        RIG_TEST(a_move_takes_along_what_was_given_back),
        RIG_TEST(who_forgot_that_it_was_handed_over_loses_it_by_its_lease),
        RIG_TEST(one_whose_body_is_gone_dies_when_it_was_given_back),
        RIG_TEST(a_state_that_was_left_is_not_that_of_a_handed_over_job),
        RIG_TEST(an_ordinary_marker_brings_no_job),
        RIG_TEST(any_bytes_come_with_the_marker_D03),
        RIG_STREAM_TEST(a_made_up_id_is_told_when_the_job_is_handed_over),
        RIG_STREAM_TEST(a_made_up_id_is_told_with_its_place_in_the_call),
        RIG_STREAM_TEST(a_call_by_a_made_up_id_waits_for_what_was_handed_over),
        RIG_STREAM_TEST(nobody_else_gets_what_was_handed_over),
        RIG_STREAM_TEST(nothing_is_handed_over_without_a_group),
        RIG_STREAM_TEST(what_was_handed_over_waits_again_when_its_group_is_destroyed),
        RIG_STREAM_TEST(what_is_handed_over_in_another_group_is_a_delivery_of_that),
        RIG_STREAM_TEST(one_that_was_deleted_while_it_ran_hides_none_that_waits),
    };

    return RIG_MAIN(tests);
}
