/* Ordered jobs: those of one key run one after the other, in the order of their enqueue,
 * whatever becomes of the first. */
#include "script/rig.h"

#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"

static struct wr_admit
job(const char *id, const char *key, const char *more, const char *due)
{
    static char options[8][128], line[8][64];
    static unsigned turn;
    unsigned at = turn++ % 8;

    snprintf(options[at], sizeof(options[0]), "%s order=%s", more, key);
    snprintf(line[at], sizeof(line[0]), "0 - =%s", key);
    return rig_item((struct rig_job){
        .id = id, .options = options[at], .unique = line[at], .due = due});
}

static void
put_later(const char *id, const char *key, const char *due)
{
    struct wr_admit item = job(id, key, "", due);
    struct wr_admitted out;

    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_OK);
    assert_int_equal(out.word, WR_ADMIT_STORED);
}

static void
put(const char *id, const char *key)
{
    put_later(id, key, NULL);
}

/* Everything that can be taken at once. */
static void
takes(const char *ids)
{
    assert_string_equal(rig_take("w1", 9)->ids, ids);
}

static void
nothing_of_a_key_overtakes_a_job_that_fails_twice_R07(void **state)
{
    (void)state;
    put("j1", "K");
    put("j2", "K");
    put("j3", "K");
    put("o1", "other");
    takes("j1 o1");
    for (int run = 0; run < 2; run++) {
        assert_int_equal(rig_retry("w1", "j1", 1000), WR_ANSWERED_OK);
        takes("");
        rig_pass(999);
        assert_int_equal(rig_promote(10).moved, 0);
        rig_pass(1);
        assert_int_equal(rig_promote(10).moved, 1);
        takes("j1");
    }
    rig_assert_sums();
    assert_int_equal(rig_ack("w1", "j1"), WR_ANSWERED_OK);
    takes("j2");
    takes("");
    assert_int_equal(rig_ack("w1", "j2"), WR_ANSWERED_OK);
    takes("j3");
    assert_int_equal(rig_ack("w1", "j3"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w1", "o1"), WR_ANSWERED_OK);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_order)),
                        "0");
    rig_assert_sums();
}

static void
cancel_first(void)
{
    assert_int_equal(rig_cancel("a"), WR_CANCEL_READY);
}

static void
ack_first(void)
{
    takes("a");
    assert_int_equal(rig_ack("w1", "a"), WR_ANSWERED_OK);
}

static void
bury_first(void)
{
    takes("a");
    assert_int_equal(rig_bury("w1", "a"), WR_ANSWERED_OK);
}

static void
flag_first(void)
{
    takes("a");
    assert_int_equal(rig_cancel("a"), WR_CANCEL_FLAGGED);
    assert_int_equal(rig_retry("w1", "a", 0), WR_ANSWERED_CANCELLED);
}

static void
cancel_first_in_its_retry(void)
{
    takes("a");
    assert_int_equal(rig_retry("w1", "a", 5000), WR_ANSWERED_OK);
    assert_int_equal(rig_cancel("a"), WR_CANCEL_DELAYED);
}

static void
lose_worker_of_first(void)
{
    for (int i = 0; i < 3; i++) {
        takes("a");
        rig_pass(RIG_LEASE);
        rig_reclaim();
        rig_pass(10000);
        rig_promote(10);
    }
}

static void
lose_body_of_first(void)
{
    rig_lose_body("a");
    takes("");
}

static void
every_end_of_the_first_lets_the_next_go_R07(void **state)
{
    static void (*const ends[])(void) = {cancel_first,
                                         ack_first,
                                         bury_first,
                                         flag_first,
                                         cancel_first_in_its_retry,
                                         lose_worker_of_first,
                                         lose_body_of_first};

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (ends[i] == lose_body_of_first && rig.engine == RIG_STREAM)
            continue; /* its body is its place: nobody knows that it was there */
        rig_fresh(NULL);
        put("a", "K");
        put("b", "K");
        put("c", "K");
        ends[i]();
        takes("b");
        takes("");
        rig_assert_sums();
        assert_int_equal(rig_ack("w1", "b"), WR_ANSWERED_OK);
        takes("c");
        assert_int_equal(rig_ack("w1", "c"), WR_ANSWERED_OK);
        rig_assert_sums();
    }
}

static void
one_that_is_too_late_lets_the_next_go_R07(void **state)
{
    struct wr_admit item = job("a", "K", " expires=100", NULL);
    struct wr_admitted out;

    (void)state;
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_OK);
    put("b", "K");
    rig_pass(100);
    takes("");
    assert_true(rig_has_marker());
    takes("b");
    rig_assert_sums();
}

static void
what_may_be_called_off_leaves_the_line_and_nobody_starts_for_it_R07(void **state)
{
    (void)state;
    put("a", "K");
    put("b", "K");
    put("c", "K");
    takes("a");
    assert_int_equal(rig_cancel("b"), WR_CANCEL_DELAYED);
    takes("");
    rig_assert_sums();
    assert_int_equal(rig_ack("w1", "a"), WR_ANSWERED_OK);
    takes("c");
    rig_assert_sums();
}

static void
a_lost_first_keeps_its_place_R07(void **state)
{
    (void)state;
    put("a", "K");
    put("b", "K");
    takes("a");
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().moved, 1); /* at once */
    takes("a");
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().delayed, 1);
    takes("");
    rig_pass(1000);
    assert_int_equal(rig_promote(10).moved, 1);
    takes("a");
    assert_int_equal(rig_release("w1", "a"), WR_ANSWERED_OK);
    takes("a");
    assert_int_equal(rig_ack("w1", "a"), WR_ANSWERED_OK);
    takes("b");
    rig_assert_sums();
}

static void
a_time_of_its_own_counts_behind_the_line_as_well_R07(void **state)
{
    (void)state;
    put_later("a", "K", "+1000");
    put_later("b", "K", "+500");
    put_later("c", "K", "+9000");
    put("d", "K");
    rig_pass(600);
    assert_int_equal(rig_promote(10).moved, 0); /* b is due, and waits for a */
    assert_int_equal(rig_audit().next_due, RIG_START + 1000);
    assert_int_equal(rig_audit().parked, 3);
    rig_pass(400);
    assert_int_equal(rig_promote(10).moved, 1);
    takes("a");
    assert_int_equal(rig_ack("w1", "a"), WR_ANSWERED_OK);
    assert_int_equal(rig_promote(10).moved, 1);
    takes("b");
    assert_int_equal(rig_ack("w1", "b"), WR_ANSWERED_OK);
    assert_int_equal(rig_promote(10).moved, 0);
    assert_int_equal(rig_score("c"), RIG_START + 9000);
    rig_pass(8000);
    assert_int_equal(rig_promote(10).moved, 1);
    takes("c");
    assert_int_equal(rig_ack("w1", "c"), WR_ANSWERED_OK);
    takes("d");
    rig_assert_sums();
}

static void
a_dead_job_lives_again_at_the_end_of_its_line_R07(void **state)
{
    (void)state;
    put("a", "K");
    put("b", "K");
    takes("a");
    assert_int_equal(rig_bury("w1", "a"), WR_ANSWERED_OK);
    takes("b");
    assert_int_equal(rig_replay("a"), WR_REPLAY_OK);
    takes("");
    rig_assert_sums();
    assert_int_equal(rig_ack("w1", "b"), WR_ANSWERED_OK);
    takes("a");
    rig_assert_sums();
}

static void
no_time_and_no_word_lets_one_overtake_R07(void **state)
{
    int64_t due;
    bool delayed;

    (void)state;
    put("a", "K");
    put("b", "K");
    takes("a");
    assert_int_equal(wr_store_reschedule(rig.store, rig.queue, wr_span_str("b"),
                                         wr_span_str(""), &delayed, &due, &rig.err),
                     WEIR_E_WRONG_STATE);
    assert_non_null(strstr(rig.err.text, "waits for the end of a"));
    assert_int_equal(wr_store_reschedule(rig.store, rig.queue, wr_span_str("b"),
                                         wr_span_str("+5"), &delayed, &due, &rig.err),
                     WEIR_OK);
    rig_pass(10);
    assert_int_equal(rig_promote(10).moved, 0);
    assert_int_equal(rig_ack("w1", "a"), WR_ANSWERED_OK);
    assert_int_equal(rig_promote(10).moved, 1);
    takes("b");
    rig_assert_sums();
}

static void
another_record_keeps_the_place_another_key_gives_it_up_R07(void **state)
{
    struct wr_admit same = job("b", "K", " keep=9", NULL),
                    other = job("c", "L", "", NULL);
    struct wr_replaced replaced;

    (void)state;
    put("a", "K");
    put("b", "K");
    put("c", "K");
    put("l", "L");
    takes("a l");
    assert_int_equal(
        wr_store_replace(rig.store, rig.queue, &rig.channel, &same, &replaced, &rig.err),
        WEIR_OK);
    assert_int_equal(
        wr_store_replace(rig.store, rig.queue, &rig.channel, &other, &replaced, &rig.err),
        WEIR_OK);
    rig_assert_sums();
    assert_int_equal(rig_ack("w1", "a"), WR_ANSWERED_OK);
    takes("b");
    assert_int_equal(rig_ack("w1", "b"), WR_ANSWERED_OK);
    takes("");
    assert_int_equal(rig_ack("w1", "l"), WR_ANSWERED_OK);
    takes("c");
    rig_assert_sums();
}

static void
sweep(void)
{
    struct wr_sweep at = {.producers = "0", .claims = "0"};

    assert_int_equal(wr_store_sweep(rig.store, rig.queue, 3600000, 100, &at, &rig.err),
                     WEIR_OK);
}

/* Its state as a reserve of before would have written it. */
static void
forget_line_of_a(void)
{
    char text[128];
    struct wr_span argv[] = {wr_span_str("HSET"),
                             wr_span_str(rig_key(WR_QUEUE_KEY_state)), wr_span_str("a"),
                             wr_span_str(text)};
    struct wr_reply *reply;

    snprintf(text, sizeof(text), "%s w1 - - 0 1 0 0 0 0 %lld 3|", rig_token("w1", "a"),
             (long long)rig.now);
    argv[3] = wr_span_str(text);
    assert_int_equal(
        wr_conn_call(rig.conn, argv, 4, wr_clock_ms() + 5000, &reply, &rig.err), WEIR_OK);
    wr_reply_free(reply);
}

/* The keys of the lines are evicted, or deleted by hand; or a program of before, whose
 * scripts know no lines, ended the first. */
static void
what_was_taken_by_hand_holds_nobody_for_ever_R07(void **state)
{
    (void)state;
    put("a", "K");
    put("b", "K");
    put("c", "K");
    takes("a");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_order));
    sweep();
    takes("b c");
    rig_assert_sums();
    rig_fresh(NULL);
    put("a", "K");
    put("b", "K");
    takes("a");
    forget_line_of_a();
    assert_int_equal(rig_ack("w1", "a"), WR_ANSWERED_OK);
    takes("");
    sweep();
    takes("b");
    rig_assert_sums();
}

static void
a_long_line_costs_the_first_nothing_R07(void **state)
{
    int64_t began;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        char id[16];

        snprintf(id, sizeof(id), "j%d", i);
        put(id, "K");
    }
    began = wr_clock_ms();
    for (int i = 0; i < 1000; i++) {
        char id[16];

        snprintf(id, sizeof(id), "j%d", i);
        takes(id);
        assert_int_equal(rig_ack("w1", id), WR_ANSWERED_OK);
    }
    assert_true(wr_clock_ms() - began < 5000);
    rig_assert_equations(0);
}

static bool
note_finding(const char *kind, const char *id, const char *detail, void *context)
{
    char *text = context;

    (void)detail;
    snprintf(text + strlen(text), 256 - strlen(text), "%s %s;", kind, id);
    return true;
}

/* It stands in several structures, and each is walked. */
static void
each_fault_of_a_line_is_found_once_R07(void **state)
{
    char text[256] = "";
    size_t n;

    (void)state;
    put("A", "g");
    put("B", "g");
    put("C", "g");
    redis_do(rig.redis, "ZADD %s 5 B", rig_key(WR_QUEUE_KEY_delayed));
    redis_do(rig.redis, "HDEL %s =C", rig_key(WR_QUEUE_KEY_order));
    redis_do(rig.redis, "ZADD %s 7 A", rig_key(WR_QUEUE_KEY_dead));
    assert_int_equal(
        wr_audit_deep(rig.store, rig.queue, note_finding, text, &n, &rig.err), WEIR_OK);
    assert_int_equal(n, 3);
    assert_non_null(strstr(text, "out_of_line B;"));
    assert_non_null(strstr(text, "not_let_in C;"));
    assert_non_null(strstr(text, "two_places A;"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(nothing_of_a_key_overtakes_a_job_that_fails_twice_R07),
        RIG_TEST(every_end_of_the_first_lets_the_next_go_R07),
        RIG_TEST(one_that_is_too_late_lets_the_next_go_R07),
        RIG_TEST(what_may_be_called_off_leaves_the_line_and_nobody_starts_for_it_R07),
        RIG_TEST(a_lost_first_keeps_its_place_R07),
        RIG_TEST(a_time_of_its_own_counts_behind_the_line_as_well_R07),
        RIG_TEST(a_dead_job_lives_again_at_the_end_of_its_line_R07),
        RIG_TEST(no_time_and_no_word_lets_one_overtake_R07),
        RIG_TEST(another_record_keeps_the_place_another_key_gives_it_up_R07),
        RIG_TEST(what_was_taken_by_hand_holds_nobody_for_ever_R07),
        RIG_TEST(a_long_line_costs_the_first_nothing_R07),
        RIG_TEST(each_fault_of_a_line_is_found_once_R07),
    };

    return RIG_MAIN(tests);
}
