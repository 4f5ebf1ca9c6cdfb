/* What a worker says about its deliveries: ack, retry, bury, release, extend, progress.
 */
#include "model/attempt.h"
#include "script/rig.h"

#include <stdio.h>
#include <string.h>

static void
take_one(const char *id)
{
    assert_int_equal(rig_put(id), WR_ADMIT_STORED);
    assert_string_equal(rig_take("w", 1)->ids, id);
}

/* ---- ack ---- */

static void
ack_ends_a_job_and_leaves_nothing(void **state)
{
    (void)state;
    take_one("A");
    rig_progress("w", "A", "half");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "");
    assert_int_equal(rig_stat("done"), 1);
    assert_string_equal(
        redis_do(rig.redis, "EXISTS %s %s %s %s %s", rig_key(WR_QUEUE_KEY_jobs),
                 rig_key(WR_QUEUE_KEY_state), rig_key(WR_QUEUE_KEY_processing),
                 rig_key(WR_QUEUE_KEY_errors), rig_key(WR_QUEUE_KEY_results)),
        "0");
    rig_assert_sums();
}

static void
a_second_ack_is_harmless_A1(void **state)
{
    (void)state;
    take_one("A");
    rig_ack("w", "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_GONE);
    assert_int_equal(rig_stat("done"), 1);
    assert_int_equal(rig_stat("stale"), 0);
    rig_assert_sums();
}

static void
an_ack_after_a_retry_changes_nothing_A1(void **state)
{
    (void)state;
    take_one("A");
    assert_int_equal(rig_retry("w", "A", 100), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_BEFORE);
    assert_string_equal(rig_where("A"), "JLS");
    rig_pass(100);
    rig_promote(1);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_BEFORE);
    assert_string_equal(rig_where("A"), "JRS");
    assert_int_equal(rig_stat("done"), 0);
    rig_assert_sums();
}

static void
every_pair_of_answers_moves_a_job_once_A1(void **state)
{
    enum wr_answered (*const answers[])(const char *, const char *) = {rig_ack, rig_bury,
                                                                       rig_release};

    (void)state;
    for (int first = 0; first < 4; first++) {
        for (int second = 0; second < 4; second++) {
            enum wr_answered a, b;

            rig_fresh(NULL);
            rig_put_job((struct rig_job){.id = "A", .options = " keep=1000"});
            rig_take("w", 1);
            a = first < 3 ? answers[first]("w", "A") : rig_retry("w", "A", 5);
            b = second < 3 ? answers[second]("w", "A") : rig_retry("w", "A", 5);
            assert_int_equal(a, WR_ANSWERED_OK);
            assert_int_equal(b, WR_ANSWERED_BEFORE);
            rig_assert_sums();
        }
    }
}

static void
a_stale_ack_does_not_end_anothers_run_L03(void **state)
{
    (void)state;
    take_one("A");
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().moved, 1);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE); /* nobody's yet */
    rig_take("v", 1);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_retry("w", "A", 0), WR_ANSWERED_STALE);
    assert_int_equal(rig_bury("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_release("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_STALE);
    assert_int_equal(rig_progress("w", "A", "no"), WR_EXTEND_STALE);
    assert_string_equal(rig_where("A"), "JPS");
    assert_int_equal(rig_stat("stale"), 5);
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
the_same_worker_cannot_use_its_older_delivery_T10(void **state)
{
    char old[WR_TOKEN_MAX];

    (void)state;
    take_one("A");
    snprintf(old, sizeof(old), "%s", rig_token("w", "A"));
    rig_pass(RIG_LEASE);
    rig_reclaim();
    rig_take("w", 1);
    rig_set_token("w", "A", old);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    rig_assert_sums();
}

static void
an_answer_after_the_lease_but_before_reclaim_counts(void **state)
{
    (void)state;
    take_one("A");
    rig_pass(RIG_LEASE + 5000);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
items_of_an_ack_are_judged_one_by_one(void **state)
{
    struct wr_answer a[4];
    enum wr_answered out[4];
    const char *ids[] = {"A", "X", "B", "A"};

    (void)state;
    rig_put_many("A B");
    rig_take("w", 2);
    for (size_t i = 0; i < 4; i++)
        a[i] = (struct wr_answer){.id = wr_span_str(ids[i]),
                                  .token = wr_span_str(rig_token("w", ids[i])),
                                  .result = wr_span_str("")};
    assert_int_equal(wr_store_ack(rig.store, rig.queue, "w", a, 4, out, &rig.err),
                     WEIR_OK);
    assert_int_equal(out[0], WR_ANSWERED_OK);
    assert_int_equal(out[1], WR_ANSWERED_GONE);
    assert_int_equal(out[2], WR_ANSWERED_OK);
    assert_int_equal(out[3], WR_ANSWERED_BEFORE); /* named twice */
    assert_int_equal(rig_stat("done"), 2);
    rig_assert_sums();
}

static void
a_kept_job_stays_with_its_result_and_clean_counts(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " keep=1000"});
    rig_take("w", 1);
    assert_int_equal(rig_ack_result("w", "A", "out"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "JKS");
    assert_int_equal(rig_state("A").attempts, 1);
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_results)),
                        "out");
    assert_int_equal(rig_score("A"), INT64_C(1796000001000));
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_BEFORE);
    assert_int_equal(rig_stat("kept_in"), 1);
    rig_assert_sums();
}

static void
ack_wins_over_the_cancel_flag_A19(void **state)
{
    (void)state;
    take_one("A");
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_stat("done"), 1);
    assert_int_equal(rig_stat("cancelled_processing"), 0);
    rig_assert_sums();
}

static void
ack_works_when_the_body_is_gone_A17(void **state)
{
    (void)state;
    take_one("A");
    rig_lose_body("A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* ---- retry ---- */

static void
a_retry_waits_and_uses_up_an_attempt_T4(void **state)
{
    (void)state;
    take_one("A");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_due));
    assert_int_equal(rig_retry("w", "A", 2000), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "JLS");
    assert_int_equal(rig_state("A").attempts, 1);
    assert_int_equal(rig_state("A").snoozes, 0);
    assert_int_equal(rig_score("A"), INT64_C(1796000002000));
    assert_string_equal(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_due)), "1");
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)),
                        "1796000000000 failed =n:1;worker:w why");
    rig_assert_sums();
}

static void
a_snooze_uses_up_no_attempt_R08(void **state)
{
    struct wr_answer a = {.id = wr_span_str("A"),
                          .snoozed = true,
                          .delay_ms = 10,
                          .text = wr_span_str("later")};
    enum wr_answered out;

    (void)state;
    take_one("A");
    a.token = wr_span_str(rig_token("w", "A"));
    assert_int_equal(wr_store_retry(rig.store, rig.queue, "w", &a, 1, &out, &rig.err),
                     WEIR_OK);
    assert_int_equal(out, WR_ANSWERED_OK);
    assert_int_equal(rig_state("A").attempts, 0);
    assert_int_equal(rig_state("A").snoozes, 1);
    rig_assert_sums();
}

static void
an_answer_of_the_handler_clears_the_losses_L15(void **state)
{
    (void)state;
    take_one("A");
    rig_pass(RIG_LEASE);
    rig_reclaim();
    rig_take("w", 1);
    assert_int_equal(rig_state("A").lost, 1);
    assert_int_equal(rig_state("A").attempts, 0);
    rig_retry("w", "A", 0);
    assert_int_equal(rig_state("A").lost, 0);
    assert_int_equal(rig_state("A").attempts, 1);
    rig_assert_sums();
}

static void
attempts_count_runs_that_failed_R01(void **state)
{
    (void)state;
    rig_put("A");
    for (int run = 1; run <= 4; run++) {
        rig_take("w", 1);
        assert_int_equal(rig_state("A").attempts, run - 1);
        assert_int_equal(rig_state("A").deliveries, run);
        if (run < 4) {
            rig_retry("w", "A", 10);
            rig_pass(10);
            rig_promote(1);
        } else
            rig_bury("w", "A");
    }
    assert_string_equal(rig_where("A"), "JSX");
    assert_int_equal(rig_state("A").attempts, 4);
    rig_assert_sums();
}

static void
the_last_ten_errors_are_kept(void **state)
{
    char *line;
    int n = 0;
    char copy[4096];

    (void)state;
    rig_put("A");
    for (int run = 0; run < 13; run++) {
        rig_take("w", 1);
        rig_retry("w", "A", 0);
        rig_pass(1);
        rig_promote(1);
    }
    snprintf(copy, sizeof(copy), "%s",
             redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)));
    assert_memory_equal(copy, "1796000000003 ", 14);
    for (line = copy; line; line = strchr(line + 1, '\n'))
        n++;
    assert_int_equal(n, 10);
}

static void
a_flagged_job_ends_as_cancelled_whatever_its_handler_says_A19(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        take_one("A");
        rig_cancel("A");
        assert_int_equal(way == 0   ? rig_retry("w", "A", 5)
                         : way == 1 ? rig_bury("w", "A")
                                    : rig_release("w", "A"),
                         WR_ANSWERED_CANCELLED);
        assert_string_equal(rig_where("A"), "");
        assert_int_equal(rig_stat("cancelled_processing"), way + 1);
        rig_assert_sums();
    }
}

/* ---- bury ---- */

/* What a worker knows of a run stands in its line; of one that succeeded if it is kept.
 */
static void
the_history_of_a_job_says_what_became_of_each_run(void **state)
{
    struct wr_answer a = {.id = wr_span_str("A"), .facts = wr_span_str("wall:5;exit:3")};
    struct wr_attempt run;
    struct wr_span lines;
    enum wr_answered out;

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " keep=1000"});
    rig_take("w", 1);
    a.token = wr_span_str(rig_token("w", "A"));
    a.text = wr_span_str("exit 3: \x1b\n no");
    assert_int_equal(wr_store_retry(rig.store, rig.queue, "w", &a, 1, &out, &rig.err),
                     WEIR_OK);
    rig_promote(1);
    rig_take("v", 1);
    a.token = wr_span_str(rig_token("v", "A"));
    a.facts = wr_span_str("wall:7\n odd");
    assert_int_equal(wr_store_release(rig.store, rig.queue, "v", &a, 1, &out, &rig.err),
                     WEIR_OK);
    rig_take("w", 1);
    rig_release("w", "A"); /* it had not begun: no line */
    rig_take("w", 1);
    a.token = wr_span_str(rig_token("w", "A"));
    a.facts = wr_span_str("wall:9");
    assert_int_equal(wr_store_ack(rig.store, rig.queue, "w", &a, 1, &out, &rig.err),
                     WEIR_OK);
    lines = wr_span_str(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)));
    assert_true(wr_attempt_read(&lines, &run));
    assert_int_equal(run.number, 1);
    assert_int_equal(run.wall_ms, 5);
    assert_int_equal(run.exit_code, 3);
    assert_memory_equal(run.text.ptr, "exit 3:    no", run.text.len);
    assert_true(wr_attempt_read(&lines, &run));
    assert_memory_equal(run.outcome.ptr, "released", 8);
    assert_memory_equal(run.worker.ptr, "v", run.worker.len);
    assert_int_equal(run.number, 2);
    assert_true(wr_attempt_read(&lines, &run));
    assert_memory_equal(run.outcome.ptr, "done", 4);
    assert_int_equal(run.number, 4);
    assert_int_equal(run.wall_ms, 9);
    assert_false(wr_attempt_read(&lines, &run));
}

static void
a_buried_job_is_dead_with_its_reason_T5(void **state)
{
    (void)state;
    take_one("A");
    assert_int_equal(rig_bury("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "JSX");
    assert_int_equal(rig_stat("buried"), 1);
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)),
                        "1796000000000 permanent =n:1;worker:w why");
    rig_pass(RIG_LEASE * 2);
    assert_int_equal(rig_reclaim().moved, 0); /* the dead stay dead */
    assert_string_equal(rig_where("A"), "JSX");
    rig_assert_sums();
}

/* ---- release ---- */

static void
released_jobs_go_to_the_front_in_their_old_order_A25(void **state)
{
    struct wr_answer a[3];
    enum wr_answered out[3];
    const char *ids[] = {"B", "C", "A"};

    (void)state;
    rig_put_many("A B C D");
    rig_take("w", 3);
    for (size_t i = 0; i < 3; i++)
        a[i] = (struct wr_answer){.id = wr_span_str(ids[i]),
                                  .token = wr_span_str(rig_token("w", ids[i]))};
    assert_int_equal(wr_store_release(rig.store, rig.queue, "w", a, 3, out, &rig.err),
                     WEIR_OK);
    assert_string_equal(rig_take("v", 9)->ids, "A B C D");
    assert_int_equal(rig_state("A").interrupted, 1);
    assert_int_equal(rig_state("A").attempts, 0);
    assert_int_equal(rig_state("A").lost, 0);
    rig_assert_sums();
}

static void
ten_tokens_sort_as_numbers_A25(void **state)
{
    struct wr_answer a[12];
    char ids[12][4];
    enum wr_answered out[12];

    (void)state;
    rig_put_many("A B C D E F G H I J K L");
    rig_take("w", 12); /* tokens 1 to 12 */
    for (size_t i = 0; i < 12; i++) {
        snprintf(ids[i], sizeof(ids[i]), "%c", (char)('L' - (char)i));
        a[i] = (struct wr_answer){.id = wr_span_str(ids[i]),
                                  .token = wr_span_str(rig_token("w", ids[i]))};
    }
    assert_int_equal(wr_store_release(rig.store, rig.queue, "w", a, 12, out, &rig.err),
                     WEIR_OK);
    assert_string_equal(rig_take("v", 12)->ids, "A B C D E F G H I J K L");
}

static void
a_release_wakes_a_worker_A15a(void **state)
{
    (void)state;
    take_one("A");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_release("w", "A");
    assert_true(rig_has_marker());
    rig_take("w", 1);
    rig_pause();
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_release("w", "A");
    assert_false(rig_has_marker());
    assert_int_equal(rig_stat("released"), 2);
    rig_assert_sums();
}

/* ---- extend, progress ---- */

static void
a_renewal_moves_the_end_of_the_lease_L06(void **state)
{
    (void)state;
    take_one("A");
    rig_pass(14000);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_OK);
    assert_int_equal(rig_score("A"), INT64_C(1796000029000));
    rig_pass(14999);
    assert_int_equal(rig_reclaim().moved, 0);
    rig_pass(1);
    assert_int_equal(rig_reclaim().moved, 1);
}

static void
a_lost_lease_is_not_revived_by_a_renewal_T9(void **state)
{
    (void)state;
    take_one("A");
    rig_pass(RIG_LEASE);
    rig_reclaim();
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_STALE);
    assert_string_equal(rig_where("A"), "JRS");
    rig_take("v", 1);
    rig_pass(1000);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_STALE);
    assert_int_equal(rig_score("A"), INT64_C(1796000030000));
}

static void
a_renewal_after_the_answer_is_harmless_A1(void **state)
{
    (void)state;
    take_one("A");
    rig_retry("w", "A", 50);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_BEFORE);
    assert_string_equal(rig_where("A"), "JLS");
    take_one("B");
    rig_ack("w", "B");
    assert_int_equal(rig_extend("w", "B", 0), WR_EXTEND_GONE);
}

static void
a_renewal_tells_of_the_cancel_and_of_the_timeout_A24(void **state)
{
    (void)state;
    take_one("A");
    rig_pass(999);
    assert_int_equal(rig_extend("w", "A", 1000), WR_EXTEND_OK);
    rig_cancel("A");
    assert_int_equal(rig_extend("w", "A", 1000), WR_EXTEND_CANCEL);
    rig_pass(1);
    assert_int_equal(rig_extend("w", "A", 1000), WR_EXTEND_TIMEOUT);
    assert_int_equal(rig_score("A"), INT64_C(1796000015999)); /* not renewed */
}

static void
renewals_of_a_call_are_judged_one_by_one(void **state)
{
    struct wr_holding h[3];
    enum wr_extended out[3];
    const char *ids[] = {"A", "X", "B"};

    (void)state;
    rig_put_many("A B");
    rig_take("w", 2);
    for (size_t i = 0; i < 3; i++)
        h[i] = (struct wr_holding){.id = wr_span_str(ids[i]),
                                   .token = wr_span_str(rig_token("w", ids[i]))};
    rig_cancel("B");
    assert_int_equal(
        wr_store_extend(rig.store, rig.queue, "w", RIG_LEASE, h, 3, out, &rig.err),
        WEIR_OK);
    assert_int_equal(out[0], WR_EXTEND_OK);
    assert_int_equal(out[1], WR_EXTEND_GONE);
    assert_int_equal(out[2], WR_EXTEND_CANCEL);
}

static void
progress_is_written_for_a_held_job_alone_T15_M10(void **state)
{
    struct wr_job_state s;

    (void)state;
    take_one("A");
    assert_int_equal(rig_progress("w", "A", "50 half\tway\n"), WR_EXTEND_OK);
    s = rig_state("A");
    assert_int_equal(s.progress.len, 12);
    assert_memory_equal(s.progress.ptr, "50 half way ", 12);
    rig_cancel("A");
    assert_int_equal(rig_progress("w", "A", "60"), WR_EXTEND_CANCEL);
    rig_ack("w", "A");
    assert_int_equal(rig_progress("w", "A", "70"), WR_EXTEND_GONE);
    assert_string_equal(rig_where("A"), ""); /* nothing was made anew */
    take_one("B");
    rig_bury("w", "B");
    assert_int_equal(rig_progress("w", "B", "70"), WR_EXTEND_BEFORE);
    rig_assert_sums();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(ack_ends_a_job_and_leaves_nothing),
        RIG_TEST(a_second_ack_is_harmless_A1),
        RIG_TEST(an_ack_after_a_retry_changes_nothing_A1),
        RIG_TEST(every_pair_of_answers_moves_a_job_once_A1),
        RIG_TEST(a_stale_ack_does_not_end_anothers_run_L03),
        RIG_TEST(the_same_worker_cannot_use_its_older_delivery_T10),
        RIG_TEST(an_answer_after_the_lease_but_before_reclaim_counts),
        RIG_TEST(items_of_an_ack_are_judged_one_by_one),
        RIG_TEST(a_kept_job_stays_with_its_result_and_clean_counts),
        RIG_TEST(ack_wins_over_the_cancel_flag_A19),
        RIG_TEST(ack_works_when_the_body_is_gone_A17),
        RIG_TEST(a_retry_waits_and_uses_up_an_attempt_T4),
        RIG_TEST(a_snooze_uses_up_no_attempt_R08),
        RIG_TEST(an_answer_of_the_handler_clears_the_losses_L15),
        RIG_TEST(attempts_count_runs_that_failed_R01),
        RIG_TEST(the_last_ten_errors_are_kept),
        RIG_TEST(a_flagged_job_ends_as_cancelled_whatever_its_handler_says_A19),
        RIG_TEST(the_history_of_a_job_says_what_became_of_each_run),
        RIG_TEST(a_buried_job_is_dead_with_its_reason_T5),
        RIG_TEST(released_jobs_go_to_the_front_in_their_old_order_A25),
        RIG_TEST(ten_tokens_sort_as_numbers_A25),
        RIG_TEST(a_release_wakes_a_worker_A15a),
        RIG_TEST(a_renewal_moves_the_end_of_the_lease_L06),
        RIG_TEST(a_lost_lease_is_not_revived_by_a_renewal_T9),
        RIG_TEST(a_renewal_after_the_answer_is_harmless_A1),
        RIG_TEST(a_renewal_tells_of_the_cancel_and_of_the_timeout_A24),
        RIG_TEST(renewals_of_a_call_are_judged_one_by_one),
        RIG_TEST(progress_is_written_for_a_held_job_alone_T15_M10),
    };

    return RIG_MAIN(tests);
}
