/* enqueue and schedule: answers, channels, unique keys, windows, due times, tombstones.
 */
#include "script/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENQUEUE "enqueue"

/* A call made the queue, if it is a list: others are there before. */
static const char *
made_ok(void)
{
    return rig_either("OK 1", "OK 0");
}

/* One plain job under a channel number. */
static const char *
put_as(const char *channel, const char *number, const char *id)
{
    return rig_script(ENQUEUE, "1796000000000", channel, number, "mark", id, "1 t", "\nx",
                      "", NULL);
}

static void
a_job_waits_after_its_enqueue(void **state)
{
    (void)state;
    assert_string_equal(
        rig_script(ENQUEUE, "", "", "0", "m", "A", "1 t", "\nx", "", NULL), made_ok());
    assert_string_equal(rig_where("A"), "JR");
    assert_int_equal(rig_stat("enqueued"), 1);
    assert_true(rig_has_marker());
    rig_assert_sums();
}

static void
jobs_of_a_call_are_taken_in_their_order_P12(void **state)
{
    (void)state;
    rig_put_many("C A B");
    rig_put_many("E D");
    assert_string_equal(rig_take("w", 10)->ids, "C A B E D");
    rig_assert_sums();
}

static void
the_same_id_and_record_exists_another_record_is_refused_U07(void **state)
{
    struct rig_job other = {.id = "A", .payload = {"other", 5}};

    (void)state;
    assert_int_equal(rig_put("A"), WR_ADMIT_STORED);
    rig_pass(5000); /* the time of the enqueue does not count */
    assert_int_equal(rig_put("A"), WR_ADMIT_EXISTS);
    assert_int_equal(rig_put_job(other), WR_ADMIT_OTHER);
    rig_take("w", 1);
    assert_int_equal(rig_put("A"), WR_ADMIT_EXISTS);
    assert_int_equal(rig_put_job(other), WR_ADMIT_OTHER);
    rig_bury("w", "A");
    assert_int_equal(rig_put("A"), WR_ADMIT_EXISTS);
    assert_int_equal(rig_purge("A"), WR_REPLAY_OK);
    assert_int_equal(rig_put_job(other), WR_ADMIT_STORED); /* starts clean */
    assert_string_equal(rig_where("A"), "JR");
    assert_int_equal(rig_stat("enqueued"), 2);
    rig_assert_sums();
}

static void
the_answer_says_where_the_other_job_is_U07(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " keep=5000"});
    assert_string_equal(put_as("", "0", "A"), "OK 0 0 OTHER ready");
    rig_take("w", 1);
    assert_string_equal(put_as("", "0", "A"), "OK 0 0 OTHER processing");
    rig_ack("w", "A");
    assert_string_equal(put_as("", "0", "A"), "OK 0 0 OTHER done");
    rig_kill_job("B");
    assert_string_equal(put_as("", "0", "B"), "OK 0 0 EXISTS dead");
    rig_put_job((struct rig_job){.id = "C", .due = "+100"});
    assert_string_equal(put_as("", "0", "C"), "OK 0 0 EXISTS delayed");
    rig_assert_sums();
}

static void
each_job_of_a_call_has_its_own_answer_A3d(void **state)
{
    const char *first;

    (void)state;
    rig_put("B");
    first = rig_script(ENQUEUE, "", "c", "1", "m", "A", "1 t", "\nx", "", "B", "1 t",
                       "\nx", "", "C", "1 t", "\nx", "", "A", "1 t", "\nz", "", NULL);
    assert_string_equal(first, "OK 0 1 EXISTS ready 3 OTHER ready");
    assert_string_equal(rig_script(ENQUEUE, "", "c", "1", "m", "A", "1 t", "\nx", "", "B",
                                   "1 t", "\nx", "", "C", "1 t", "\nx", "", "A", "1 t",
                                   "\nz", "", NULL),
                        "BEFORE 0 1 EXISTS - 3 OTHER -");
    assert_string_equal(rig_take("w", 9)->ids, "B A C");
    rig_assert_sums();
}

static void
a_call_that_comes_again_is_not_applied_again_A3(void **state)
{
    (void)state;
    assert_string_equal(put_as("c", "1", "A"), made_ok());
    rig_take("w", 1);
    rig_ack("w", "A"); /* it is over before the repeat comes */
    assert_string_equal(put_as("c", "1", "A"), "BEFORE 0");
    assert_string_equal(rig_where("A"), "");
    assert_int_equal(rig_stat("enqueued"), 1);
    rig_assert_sums();
}

static void
the_same_number_with_other_ids_clashes_A3b(void **state)
{
    (void)state;
    put_as("c", "7", "A");
    assert_string_equal(put_as("c", "7", "B"), "CLASH 0");
    assert_string_equal(rig_script(ENQUEUE, "", "c", "7", "m", "A", "1 t", "\nx", "", "B",
                                   "1 t", "\nx", "", NULL),
                        "CLASH 0");
    assert_string_equal(rig_where("B"), "");
    rig_assert_sums();
}

static void
a_lower_number_is_late_and_a_jump_is_a_gap_A3a(void **state)
{
    (void)state;
    assert_string_equal(put_as("c", "4", "A"), made_ok()); /* no field: apply */
    assert_string_equal(put_as("c", "3", "B"), "LATE 0");
    assert_string_equal(rig_where("B"), "");
    assert_string_equal(put_as("c", "5", "B"), "OK 0");
    assert_string_equal(put_as("c", "7", "C"), "GAP 0"); /* applied, and said */
    assert_string_equal(rig_where("C"), "JR");
    assert_string_equal(put_as("c", "7", "C"), "BEFORE 0");
    rig_assert_sums();
}

static void
the_client_takes_a_new_channel_after_a_clash_and_when_late_A3(void **state)
{
    struct wr_channel clone;
    char name[33];

    (void)state;
    rig_put("A");
    clone = rig.channel; /* as after a fork that nobody noticed */
    rig_put("B");
    memcpy(name, clone.name, sizeof(name));
    rig.channel = clone; /* the same number, another id */
    assert_int_equal(rig_put("C"), WR_ADMIT_STORED);
    assert_string_not_equal(rig.channel.name, name);
    rig_put("D");
    rig.channel = clone;
    rig.channel.number--; /* late */
    assert_int_equal(rig_put("E"), WR_ADMIT_STORED);
    assert_string_equal(rig_take("w", 9)->ids, "A B C D E");
    rig_assert_sums();
}

static void
a_gap_is_told_to_the_caller_A18(void **state)
{
    struct wr_admit item = rig_item((struct rig_job){.id = "B"});
    struct wr_admitted out;
    bool gap = false;

    (void)state;
    rig_put("A");
    rig.channel.number += 3;
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      &gap, &rig.err),
                     WEIR_OK);
    assert_true(gap);
}

static void
a_clean_close_takes_its_channel_along(void **state)
{
    (void)state;
    rig_put("A");
    assert_string_equal(redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_producers)),
                        "1");
    wr_store_farewell(rig.store, rig.queue, &rig.channel, 1);
    assert_string_equal(redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_producers)),
                        "0");
}

static void
a_unique_key_is_held_until_the_end_U01(void **state)
{
    struct rig_job a = {.id = "A", .options = " unique=k", .unique = "0 k"};
    struct rig_job b = {.id = "B", .options = " unique=k", .unique = "0 k"};

    (void)state;
    rig_put_job(a);
    assert_int_equal(rig_put_job(b), WR_ADMIT_UNIQUE);
    rig_take("w", 1);
    assert_int_equal(rig_put_job(b), WR_ADMIT_UNIQUE);
    rig_retry("w", "A", 100);
    assert_int_equal(rig_put_job(b), WR_ADMIT_UNIQUE);
    rig_pass(100);
    rig_promote(10);
    rig_take("w", 1);
    rig_ack("w", "A");
    assert_int_equal(rig_put_job(b), WR_ADMIT_STORED);
    rig_assert_sums();
}

static void
every_end_lets_the_unique_key_go_A14(void **state)
{
    struct rig_job a = {
        .id = "A", .options = " unique=k expires=50 max_deliveries=1", .unique = "0 k"};

    (void)state;
    for (int end = 0; end < 6; end++) {
        assert_int_equal(rig_put_job(a), WR_ADMIT_STORED);
        if (end == 0)
            rig_cancel("A");
        else if (end == 1) {
            rig_pass(50);
            rig_take("w", 1); /* expired */
        } else
            rig_take("w", 1);
        if (end == 2)
            rig_bury("w", "A");
        else if (end == 3) {
            rig_cancel("A");
            rig_release("w", "A");
        } else if (end == 4) {
            rig_pass(RIG_LEASE);
            assert_int_equal(rig_reclaim().dead, 1);
        } else if (end == 5)
            rig_ack("w", "A");
        assert_string_equal(redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_unique)),
                            "0");
        rig_purge("A");
        rig_assert_sums();
    }
}

static void
two_jobs_of_one_call_cannot_share_a_unique_key_A14(void **state)
{
    (void)state;
    assert_string_equal(rig_script(ENQUEUE, "", "", "0", "m", "A", "1 t", " unique=k\nx",
                                   "0 k", "B", "1 t", " unique=k\nx", "0 k", NULL),
                        rig_either("OK 1 1 UNIQUE A", "OK 0 1 UNIQUE A"));
    rig_assert_sums();
}

static void
a_holder_whose_body_is_gone_holds_nothing_A17(void **state)
{
    struct rig_job b = {.id = "B", .options = " unique=k", .unique = "0 k"};

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " unique=k", .unique = "0 k"});
    rig_lose_body("A");
    rig_take("w", 1); /* A is dead, and nobody knew its key */
    assert_int_equal(rig_put_job(b), WR_ADMIT_STORED);
    rig_assert_sums();
}

static void
a_running_holder_keeps_its_key_though_its_body_is_gone_A17(void **state)
{
    struct rig_job b = {.id = "B", .options = " unique=k", .unique = "0 k"};

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " unique=k", .unique = "0 k"});
    rig_take("w", 1);
    rig_lose_body("A");
    assert_int_equal(rig_put_job(b), WR_ADMIT_UNIQUE);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_put_job(b), WR_ADMIT_STORED);
    rig_assert_sums();
}

static void
a_window_outlives_the_job_and_ends_to_the_ms(void **state)
{
    struct rig_job a = {.id = "A", .options = " unique=k", .unique = "1000 k"};
    struct rig_job b = {.id = "B", .options = " unique=k", .unique = "1000 k"};

    (void)state;
    rig_put_job(a);
    rig_take("w", 1);
    rig_ack("w", "A");
    rig_pass(999);
    assert_int_equal(rig_put_job(b), WR_ADMIT_UNIQUE);
    rig_pass(1);
    assert_int_equal(rig_put_job(b), WR_ADMIT_STORED);
    rig_assert_sums();
}

static void
due_jobs_wait_in_delayed_and_past_ones_are_ready_T02(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .due = "+500"});
    assert_string_equal(rig_where("A"), "JL");
    assert_int_equal(rig_score("A"), INT64_C(1796000000500));
    rig_put_job((struct rig_job){.id = "B", .due = "+0"});
    rig_put_job((struct rig_job){.id = "C", .due = "@1796000000000"}); /* now: over */
    rig_put_job((struct rig_job){.id = "D", .due = "@1796000000001"});
    rig_put_job((struct rig_job){.id = "E", .due = "@0"});
    assert_string_equal(rig_where("B"), "JR");
    assert_string_equal(rig_where("C"), "JR");
    assert_string_equal(rig_where("D"), "JL");
    assert_string_equal(rig_take("w", 9)->ids, "B C E");
    assert_int_equal(rig_stat("enqueued"), 5);
    assert_int_equal(rig_stat("scheduled"), 2);
    rig_assert_sums();
}

static void
a_due_time_in_the_year_9999_is_exact_T03(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .due = "@253402300799999"});
    assert_int_equal(rig_score("A"), INT64_C(253402300799999));
    assert_int_equal(rig_promote(10).moved, 0);
}

static void
an_earlier_due_time_wakes_the_scheduler_A15e(void **state)
{
    const char *due = rig_key(WR_QUEUE_KEY_due);

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .due = "+500"});
    assert_string_equal(redis_do(rig.redis, "LLEN %s", due), "1");
    redis_do(rig.redis, "DEL %s", due);
    rig_put_job((struct rig_job){.id = "B", .due = "+500"});
    assert_string_equal(redis_do(rig.redis, "LLEN %s", due), "0");
    rig_put_job((struct rig_job){.id = "C", .due = "+499"});
    rig_put_job((struct rig_job){.id = "D", .due = "+498"});
    assert_string_equal(redis_do(rig.redis, "LLEN %s", due), "1");
    assert_false(rig_has_marker()); /* no worker is needed yet */
}

static void
an_id_that_was_cancelled_while_it_waited_takes_its_old_place_or_a_new_one_A4c(
    void **state)
{
    (void)state;
    rig_put_many("B A C");
    rig_cancel("A");
    assert_string_equal(rig_where("A"), rig_or_tomb("RT"));
    assert_int_equal(rig_put("A"), WR_ADMIT_STORED);
    assert_string_equal(rig_where("A"), "JR");
    assert_string_equal(rig_take("w", 9)->ids, rig_either("B A C", "B C A"));
    rig_assert_sums();
}

static void
a_cancelled_id_that_comes_again_with_a_delay_runs_once_A4b(void **state)
{
    (void)state;
    rig_put_many("B A");
    rig_cancel("A");
    rig_put_job((struct rig_job){.id = "A", .due = "+100"});
    assert_string_equal(rig_where("A"), rig_or_tomb("JLRT"));
    assert_string_equal(rig_take("w", 9)->ids, "B");
    assert_string_equal(rig_where("A"), "JL");
    rig_pass(100);
    assert_int_equal(rig_promote(10).moved, 1);
    assert_string_equal(rig_take("w", 9)->ids, "A");
    rig_assert_sums();
}

static void
a_payload_over_the_queues_limit_is_refused_D05(void **state)
{
    struct wr_limits limits = {.payload_max = 5, .kept_max = -1, .kept_bytes_max = -1};
    char *big = calloc(1, 1048577);
    bool made;

    (void)state;
    assert_non_null(big);
    assert_int_equal(rig_put_job((struct rig_job){.id = "A", .payload = {big, 1048576}}),
                     WR_ADMIT_STORED);
    assert_int_equal(rig_put_job((struct rig_job){.id = "B", .payload = {big, 1048577}}),
                     WR_ADMIT_BIG);
    free(big);
    assert_int_equal(wr_store_create(rig.store, rig.queue, &limits, &made, &rig.err),
                     WEIR_OK);
    assert_false(made);
    assert_int_equal(rig_put_job((struct rig_job){.id = "C", .payload = {"12345", 5}}),
                     WR_ADMIT_STORED);
    assert_int_equal(rig_put_job((struct rig_job){.id = "D", .payload = {"123456", 6}}),
                     WR_ADMIT_BIG);
    rig_assert_sums();
}

static void
a_queue_of_another_engine_is_refused_A21(void **state)
{
    struct wr_admit item = rig_item((struct rig_job){.id = "A"});
    struct wr_admitted out;

    (void)state;
    redis_do(rig.redis, "HSET %s engine other", rig_key(WR_QUEUE_KEY_config));
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_E_WRONG_ENGINE);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_jobs)),
                        "0");
}

static void
a_queue_is_not_made_where_a_key_of_it_is_something_else_T4(void **state)
{
    struct wr_admit item = rig_item((struct rig_job){.id = "B"});
    struct wr_admitted out;

    (void)state;
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_config));
    redis_do(rig.redis, "SET %s x", rig_key(WR_QUEUE_KEY_offers));
    assert_int_not_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1,
                                          &out, NULL, &rig.err),
                         WEIR_OK);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_config)),
                        "0");
}

static void
a_queue_whose_config_is_gone_is_not_made_again_A21b(void **state)
{
    struct wr_admit item = rig_item((struct rig_job){.id = "B"});
    struct wr_admitted out;

    (void)state;
    rig_put("A");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_config));
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_E_CORRUPT);
    assert_string_equal(redis_do(rig.redis, "HEXISTS %s B", rig_key(WR_QUEUE_KEY_jobs)),
                        "0");
    /* What the message says brings it back. */
    assert_non_null(
        strstr(rig.err.text, "; HSET weir:{q}:config engine list (or stream)"));
    redis_do(rig.redis, "HSET %s engine %s", rig_key(WR_QUEUE_KEY_config),
             rig.engine == RIG_LIST ? "list" : "stream");
    rig_put("B");
}

static void
a_queue_that_was_flushed_is_registered_again_A21c(void **state)
{
    (void)state;
    rig_put("A");
    assert_string_equal(redis_do(rig.redis, "SISMEMBER weir:queues q"), "1");
    redis_do(rig.redis, "FLUSHALL");
    rig_put("B");
    assert_string_equal(redis_do(rig.redis, "SISMEMBER weir:queues q"), "1");
    assert_string_equal(
        redis_do(rig.redis, "HGET %s engine", rig_key(WR_QUEUE_KEY_config)), "list");
}

static void
a_new_queue_is_registered_by_its_first_job_A21c(void **state)
{
    struct wr_admit item = rig_item((struct rig_job){.id = "A"});
    struct wr_channel channel = {0};
    struct wr_admitted out;
    struct wr_queue *queue;

    (void)state;
    assert_int_equal(wr_store_queue(rig.store, "new", &queue, &rig.err), WEIR_OK);
    assert_int_equal(
        wr_store_enqueue(rig.store, queue, &channel, &item, 1, &out, NULL, &rig.err),
        WEIR_OK);
    assert_string_equal(redis_do(rig.redis, "SISMEMBER weir:queues new"), "1");
}

static void
a_paused_queue_takes_jobs_and_wakes_nobody_A15d(void **state)
{
    (void)state;
    rig_put("A");
    rig_pause();
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_put("B");
    assert_false(rig_has_marker());
    rig_resume();
    assert_true(rig_has_marker());
    assert_string_equal(rig_take("w", 9)->ids, "A B");
}

static void
a_marker_stands_once_however_many_jobs_come_A15(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_put("D");
    assert_string_equal(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_wake)), "1");
}

/* Who took the marker owes a call: till then a job waits without one. */
static void
a_job_whose_marker_is_taken_is_still_known_U07(void **state)
{
    (void)state;
    rig_put("A");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    assert_int_equal(rig_put("A"), WR_ADMIT_EXISTS);
    rig_assert_sums();
}

static void
a_lost_body_in_processing_does_not_let_its_id_in_again_A17(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_lose_body("A");
    assert_string_equal(put_as("", "0", "A"), "OK 0 0 OTHER processing");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_put("A"), WR_ADMIT_STORED);
    rig_assert_sums();
}

static void
an_id_without_a_body_is_not_let_in_wherever_it_stands_A17(void **state)
{
    (void)state;
    rig_kill_job("X");
    rig_put_job((struct rig_job){.id = "K", .options = " keep=9000"});
    rig_take("w", 1);
    rig_ack("w", "K");
    rig_put_job((struct rig_job){.id = "L", .due = "+9000"});
    redis_do(rig.redis, "HDEL %s X K L", rig_key(WR_QUEUE_KEY_jobs));
    assert_string_equal(put_as("", "0", "X"), "OK 0 0 OTHER dead");
    assert_string_equal(put_as("", "0", "K"), "OK 0 0 OTHER done");
    assert_string_equal(put_as("", "0", "L"), "OK 0 0 OTHER delayed");
    assert_string_equal(rig_script(ENQUEUE, "", "", "0", "m", "A", "1 t", "\nx", "", "B",
                                   "1 t", "\nx", "", "K", "1 t", "\nx", "", "C", "1 t",
                                   "\nx", "", "D", "1 t", "\nx", "", NULL),
                        "OK 0 2 OTHER done");
    assert_string_equal(rig_take("w", 9)->ids, "A B C D");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_job_waits_after_its_enqueue),
        RIG_TEST(jobs_of_a_call_are_taken_in_their_order_P12),
        RIG_TEST(the_same_id_and_record_exists_another_record_is_refused_U07),
        RIG_TEST(the_answer_says_where_the_other_job_is_U07),
        RIG_TEST(each_job_of_a_call_has_its_own_answer_A3d),
        RIG_TEST(a_call_that_comes_again_is_not_applied_again_A3),
        RIG_TEST(the_same_number_with_other_ids_clashes_A3b),
        RIG_TEST(a_lower_number_is_late_and_a_jump_is_a_gap_A3a),
        RIG_TEST(the_client_takes_a_new_channel_after_a_clash_and_when_late_A3),
        RIG_TEST(a_gap_is_told_to_the_caller_A18),
        RIG_TEST(a_clean_close_takes_its_channel_along),
        RIG_TEST(a_unique_key_is_held_until_the_end_U01),
        RIG_TEST(every_end_lets_the_unique_key_go_A14),
        RIG_TEST(two_jobs_of_one_call_cannot_share_a_unique_key_A14),
        RIG_LIST_TEST(a_holder_whose_body_is_gone_holds_nothing_A17),
        RIG_TEST(a_running_holder_keeps_its_key_though_its_body_is_gone_A17),
        RIG_TEST(a_window_outlives_the_job_and_ends_to_the_ms),
        RIG_TEST(due_jobs_wait_in_delayed_and_past_ones_are_ready_T02),
        RIG_TEST(a_due_time_in_the_year_9999_is_exact_T03),
        RIG_TEST(an_earlier_due_time_wakes_the_scheduler_A15e),
        RIG_TEST(
            an_id_that_was_cancelled_while_it_waited_takes_its_old_place_or_a_new_one_A4c),
        RIG_TEST(a_cancelled_id_that_comes_again_with_a_delay_runs_once_A4b),
        RIG_TEST(a_payload_over_the_queues_limit_is_refused_D05),
        RIG_TEST(a_queue_of_another_engine_is_refused_A21),
        RIG_TEST(a_queue_is_not_made_where_a_key_of_it_is_something_else_T4),
        RIG_TEST(a_queue_whose_config_is_gone_is_not_made_again_A21b),
        RIG_LIST_TEST(a_queue_that_was_flushed_is_registered_again_A21c),
        RIG_TEST(a_new_queue_is_registered_by_its_first_job_A21c),
        RIG_TEST(a_paused_queue_takes_jobs_and_wakes_nobody_A15d),
        RIG_TEST(a_marker_stands_once_however_many_jobs_come_A15),
        RIG_TEST(a_job_whose_marker_is_taken_is_still_known_U07),
        RIG_LIST_TEST(a_lost_body_in_processing_does_not_let_its_id_in_again_A17),
        RIG_TEST(an_id_without_a_body_is_not_let_in_wherever_it_stands_A17),
    };

    return RIG_MAIN(tests);
}
