/* What schedulers and supervisors do: promote, reclaim, reclaim_held, forget, sweep. */
#include "script/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- promote ---- */

static void
a_job_is_promoted_when_it_is_due_and_not_a_ms_before_T01(void **state)
{
    struct wr_moved m;

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .due = "+500"});
    rig_pass(499);
    m = rig_promote(10);
    assert_int_equal(m.moved, 0);
    assert_int_equal(m.next_us, 1000);
    assert_false(rig_has_marker());
    rig_pass(1);
    m = rig_promote(10);
    assert_int_equal(m.moved, 1);
    assert_int_equal(m.next_us, -1);
    assert_string_equal(rig_where("A"), "JR");
    assert_true(rig_has_marker());
    assert_int_equal(rig_promote(10).moved, 0);
    assert_int_equal(rig_stat("promoted"), 1);
    rig_assert_sums();
}

static void
due_jobs_are_promoted_oldest_first_and_in_bounded_slices(void **state)
{
    struct wr_moved m;

    (void)state;
    rig_put_job((struct rig_job){.id = "C", .due = "+30"});
    rig_put_job((struct rig_job){.id = "B", .due = "+20"});
    rig_put_job((struct rig_job){.id = "A", .due = "+10"});
    rig_pass(30);
    m = rig_promote(2);
    assert_true(m.more);
    assert_int_equal(m.moved, 2);
    assert_int_equal(m.next_us, 0);
    m = rig_promote(2);
    assert_false(m.more);
    assert_int_equal(m.moved, 1);
    assert_string_equal(rig_take("w", 9)->ids, "A B C");
    rig_assert_sums();
}

static void
promotion_shows_that_it_is_alive(void **state)
{
    const char *ttl;

    (void)state;
    rig_put("A");
    rig_promote(1);
    assert_string_equal(
        redis_do(rig.redis, "GET %s", rig_key(WR_QUEUE_KEY_heartbeat_promote)),
        "1796000000000");
    ttl = redis_do(rig.redis, "TTL %s", rig_key(WR_QUEUE_KEY_heartbeat_promote));
    assert_in_range(atoi(ttl), 25, 30);
}

static void
a_paused_queue_promotes_and_wakes_nobody_A15d(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .due = "+10"});
    rig_pause();
    rig_pass(10);
    assert_int_equal(rig_promote(1).moved, 1);
    assert_false(rig_has_marker());
    rig_resume();
    assert_true(rig_has_marker());
}

/* ---- reclaim ---- */

static void
a_lease_ends_at_its_ms_and_not_before_T26(void **state)
{
    struct wr_moved m;

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_pass(RIG_LEASE - 1);
    m = rig_reclaim();
    assert_int_equal(m.moved, 0);
    assert_int_equal(m.next_ms, 1);
    rig_pass(1);
    m = rig_reclaim();
    assert_int_equal(m.moved, 1);
    assert_int_equal(m.next_ms, -1);
    assert_int_equal(m.server_ms, rig.now);
    assert_string_equal(rig_where("A"), "JRS");
    assert_int_equal(rig_state("A").lost, 1);
    assert_string_equal(rig_state("A").worker, "-");
    assert_true(rig_has_marker());
    assert_int_equal(rig_reclaim().moved, 0);
    rig_assert_sums();
}

static void
a_first_loss_goes_to_the_front_later_ones_wait_A13(void **state)
{
    struct wr_moved m;

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " max_deliveries=0"});
    rig_put("B");
    for (int loss = 1; loss <= 4; loss++) {
        assert_string_equal(rig_take("w", 1)->ids, "A");
        rig_pass(RIG_LEASE);
        m = rig_reclaim();
        assert_int_equal(rig_state("A").lost, loss);
        if (loss == 1) {
            assert_int_equal(m.moved, 1); /* before B again */
            continue;
        }
        assert_int_equal(m.delayed, 1);
        rig_pass((1000 << (loss - 2)) - 1);
        assert_int_equal(rig_promote(1).moved, 0);
        rig_pass(1);
        assert_int_equal(rig_promote(1).moved, 1);
        if (loss == 2) {
            rig_take("w", 1); /* B, which stood before it now */
            rig_ack("w", "B");
        }
    }
    assert_int_equal(rig_stat("reclaimed"), 1);
    assert_int_equal(rig_stat("reclaimed_delayed"), 3);
    rig_assert_sums();
}

static void
a_job_that_takes_three_workers_along_is_dead_T6(void **state)
{
    struct wr_moved m = {0};

    (void)state;
    rig_put("A");
    for (int loss = 1; loss <= 3; loss++) {
        assert_string_equal(rig_take("w", 1)->ids, "A");
        rig_pass(RIG_LEASE);
        m = rig_reclaim();
        rig_pass(5000);
        rig_promote(1);
    }
    assert_int_equal(m.dead, 1);
    assert_string_equal(rig_where("A"), "JSX");
    assert_int_equal(rig_state("A").attempts, 0);
    assert_int_equal(rig_state("A").deliveries, 3);
    assert_non_null(
        strstr(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)),
               "lost_worker =n:3;worker:w worker w died with it, loss 3 of 3"));
    rig_assert_sums();
}

static void
what_was_claimed_ahead_is_not_charged_A12(void **state)
{
    struct wr_reserve how = {
        .worker = "w", .call = 1, .free = 1, .ahead = 2, .lease_ms = RIG_LEASE};

    (void)state;
    rig_put_many("A B C");
    rig_take_how(&how);
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().moved, 3);
    assert_int_equal(rig_state("A").lost, 1);
    assert_int_equal(rig_state("B").lost, 0);
    assert_int_equal(rig_state("C").lost, 0);
    assert_string_equal(rig_take("v", 9)->ids, "A B C"); /* in their old order */
    rig_assert_sums();
}

static void
a_reclaim_is_bounded(void **state)
{
    struct wr_reclaim how = {.lease_ms = RIG_LEASE,
                             .lease_max_ms = 60000,
                             .gap_ms = 0,
                             .last_ms = 0,
                             .limit = 2};
    struct wr_moved m;

    (void)state;
    rig_put_many("A B C");
    rig_take("w", 3);
    rig_pass(RIG_LEASE);
    how.last_ms = rig.now;
    assert_int_equal(wr_store_reclaim(rig.store, rig.queue, &how, &m, &rig.err), WEIR_OK);
    assert_true(m.more);
    assert_int_equal(m.moved, 2);
    assert_int_equal(wr_store_reclaim(rig.store, rig.queue, &how, &m, &rig.err), WEIR_OK);
    assert_false(m.more);
    assert_int_equal(m.moved, 1);
    rig_assert_sums();
}

static struct wr_moved
reclaim_after(int64_t gap, int64_t last, bool quiet)
{
    struct wr_reclaim how = {.lease_ms = RIG_LEASE,
                             .lease_max_ms = 60000,
                             .gap_ms = gap,
                             .last_ms = last,
                             .quiet = quiet,
                             .limit = 10};
    struct wr_moved m;

    assert_int_equal(wr_store_reclaim(rig.store, rig.queue, &how, &m, &rig.err), WEIR_OK);
    return m;
}

static void
a_reclaimer_that_cannot_trust_time_takes_nothing_back_A11(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_pass(RIG_LEASE + 1000);
    assert_true(reclaim_after(-1, 0, false).quiet);                /* its first call */
    assert_true(reclaim_after(1000, rig.now - 1000, true).quiet);  /* not over yet */
    assert_true(reclaim_after(7501, rig.now - 7501, false).quiet); /* it was away */
    assert_true(reclaim_after(1000, rig.now - 2001, false).quiet); /* a step on */
    assert_true(reclaim_after(3000, rig.now - 1999, false).quiet); /* a step back */
    assert_string_equal(rig_where("A"), "JPS");
    assert_int_equal(reclaim_after(7500, rig.now - 7500, false).moved, 1);
    rig_assert_sums();
}

static void
a_small_step_of_the_clock_is_no_jump_A11(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_pass(RIG_LEASE);
    assert_int_equal(reclaim_after(1000, rig.now - 2000, false).moved, 1);
}

static void
a_lease_far_in_the_future_is_pulled_back_A11(void **state)
{
    (void)state;
    rig_put_many("A B");
    rig_take("w", 2);
    redis_do(rig.redis, "HDEL %s w", rig_key(WR_QUEUE_KEY_claims));
    rig_clock(RIG_START - 3600000); /* the server's clock stepped back */
    assert_true(reclaim_after(-1, 0, false).quiet);
    assert_int_equal(rig_score("A"), INT64_C(1795996415000));
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().moved, 2);
    rig_assert_sums();
}

static void
a_lease_that_may_be_is_not_pulled_back_A11(void **state)
{
    struct wr_reserve how = {.worker = "w", .call = 1, .free = 1, .lease_ms = 60000};

    (void)state;
    rig_put("A");
    rig_take_how(&how);
    rig_reclaim();
    assert_int_equal(rig_score("A"), INT64_C(1796000060000));
}

static void
a_lost_job_that_was_cancelled_ends_A19(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_cancel("A");
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().cancelled, 1);
    assert_string_equal(rig_where("A"), "");
    rig_assert_sums();
}

static void
a_lost_job_without_body_is_dead_A17(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_lose_body("A");
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().dead, 1);
    if (rig.engine == RIG_LIST) { /* an entry that is gone has no name any more */
        assert_string_equal(rig_where("A"), "JSX");
        assert_int_equal(rig_replay("A"), WR_REPLAY_NOBODY);
    }
    assert_int_equal(rig_stat("buried"), 1);
    rig_assert_equations(0);
}

static void
a_lost_job_without_state_lives_on(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    redis_do(rig.redis, "HDEL %s A", rig_key(WR_QUEUE_KEY_state));
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().moved, 1);
    assert_string_equal(rig_take("v", 1)->ids, "A");
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* ---- reclaim_held ---- */

static struct wr_moved
reclaim_held(const char *worker, const char *id, const char *token, bool started,
             size_t *stale)
{
    struct wr_holding h = {
        .id = wr_span_str(id), .token = wr_span_str(token), .started = started};
    struct wr_moved m;

    assert_int_equal(wr_store_reclaim_held(rig.store, rig.queue, worker,
                                           "killed by SIGABRT", &h, id[0] ? 1 : 0, &m,
                                           stale, &rig.err),
                     WEIR_OK);
    return m;
}

static void
a_dead_workers_jobs_are_back_before_their_lease_ends_A13(void **state)
{
    size_t stale;

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    assert_int_equal(reclaim_held("w", "A", rig_token("w", "A"), true, &stale).moved, 1);
    assert_int_equal(stale, 0);
    assert_string_equal(rig_where("A"), "JRS");
    assert_int_equal(rig_state("A").lost, 1);
    assert_true(rig_has_marker());
    assert_int_equal(reclaim_held("w", "A", rig_token("w", "A"), true, &stale).moved, 0);
    assert_int_equal(stale, 1); /* repeated: no harm */
    rig_assert_sums();
}

static void
a_wrong_triple_does_no_harm_A13(void **state)
{
    size_t stale;

    (void)state;
    rig_put_many("A B");
    rig_take("w", 1);
    rig_take("v", 1);
    assert_int_equal(reclaim_held("x", "A", rig_token("w", "A"), true, &stale).moved, 0);
    assert_int_equal(stale, 1);
    assert_int_equal(reclaim_held("x", "A", "99", true, &stale).moved, 0);
    assert_int_equal(stale, 1);
    assert_int_equal(reclaim_held("v", "A", rig_token("v", "B"), true, &stale).moved, 1);
    assert_int_equal(stale, 1);
    assert_string_equal(rig_where("A"), "JPS");
    assert_string_equal(rig_where("B"), "JRS"); /* by v's claims: not charged */
    assert_int_equal(rig_state("B").lost, 0);
    rig_assert_sums();
}

static void
what_nobody_named_is_found_in_the_claims_and_not_charged_A13(void **state)
{
    size_t stale;

    (void)state;
    rig_put_many("A B C");
    rig_take("w", 3);
    assert_int_equal(reclaim_held("w", "B", rig_token("w", "B"), true, &stale).moved, 3);
    assert_int_equal(rig_state("A").lost, 0);
    assert_int_equal(rig_state("B").lost, 1);
    assert_int_equal(rig_state("C").lost, 0);
    assert_string_equal(rig_take("v", 9)->ids, "A B C");
    assert_string_equal(redis_do(rig.redis, "HEXISTS %s w", rig_key(WR_QUEUE_KEY_claims)),
                        "0");
    rig_assert_sums();
}

static void
a_job_that_had_not_started_is_not_charged_A13(void **state)
{
    size_t stale;

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    reclaim_held("w", "A", rig_token("w", "A"), false, &stale);
    assert_int_equal(rig_state("A").lost, 0);
    assert_int_equal(rig_stat("reclaimed"), 1);
}

static void
the_third_death_by_a_job_buries_it_at_once_L16(void **state)
{
    struct wr_moved m = {0};
    size_t stale;

    (void)state;
    rig_put("A");
    for (int i = 0; i < 3; i++) {
        rig_take("w", 1);
        m = reclaim_held("w", "A", rig_token("w", "A"), true, &stale);
        rig_pass(5000);
        rig_promote(1);
    }
    assert_int_equal(m.dead, 1);
    assert_non_null(strstr(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)),
                           "loss 3 of 3: killed by SIGABRT"));
    rig_assert_sums();
}

/* ---- forget ---- */

static void
keep(const char *id, const char *options)
{
    rig_put_job((struct rig_job){.id = id, .options = options});
    rig_take("w", 1);
    assert_int_equal(rig_ack_result("w", id, "result"), WR_ANSWERED_OK);
}

static void
a_kept_job_is_forgotten_when_its_time_is_over_and_not_before(void **state)
{
    struct wr_moved m;

    (void)state;
    keep("A", " keep=1000");
    rig_pass(999);
    m = rig_forget(10);
    assert_int_equal(m.moved, 0);
    assert_int_equal(m.next_ms, 1);
    rig_pass(1);
    m = rig_forget(10);
    assert_int_equal(m.moved, 1);
    assert_int_equal(m.next_ms, -1);
    assert_string_equal(rig_where("A"), "");
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_results)),
                        "0");
    assert_int_equal(rig_stat("kept_bytes"), 0);
    assert_int_equal(rig_stat("forgotten"), 1);
    assert_int_equal(rig_put("A"), WR_ADMIT_STORED); /* starts clean: U07 */
    rig_assert_sums();
}

static void
more_than_a_queue_keeps_goes_the_next_to_go_first_M03(void **state)
{
    struct wr_limits limits = {.payload_max = -1, .kept_max = 2, .kept_bytes_max = -1};
    struct wr_moved m;

    (void)state;
    keep("A", " keep=3000");
    keep("B", " keep=1000");
    keep("C", " keep=2000");
    keep("D", " keep=4000");
    assert_int_equal(wr_store_create(rig.store, rig.queue, &limits, NULL, &rig.err),
                     WEIR_OK);
    m = rig_forget(1);
    assert_true(m.more);
    assert_string_equal(rig_where("B"), "");
    m = rig_forget(10);
    assert_false(m.more);
    assert_int_equal(m.moved, 1);
    assert_string_equal(rig_where("C"), "");
    assert_string_equal(rig_where("A"), "JKS");
    rig_assert_sums();
}

static void
more_bytes_than_a_queue_keeps_go_M03(void **state)
{
    struct wr_limits limits = {.payload_max = -1, .kept_max = -1, .kept_bytes_max = 0};
    int64_t each;

    (void)state;
    keep("A", " keep=1000");
    each = rig_stat("kept_bytes");
    assert_in_range(each, 20, 60);
    keep("B", " keep=2000");
    keep("C", " keep=3000");
    limits.kept_bytes_max = 2 * each;
    assert_int_equal(wr_store_create(rig.store, rig.queue, &limits, NULL, &rig.err),
                     WEIR_OK);
    assert_int_equal(rig_forget(10).moved, 1);
    assert_string_equal(rig_where("A"), "");
    assert_int_equal(rig_stat("kept_bytes"), 2 * each);
    assert_int_equal(rig_forget(10).moved, 0);
    rig_assert_sums();
}

static void
bytes_of_records_deleted_by_hand_are_not_counted_for_ever_M03(void **state)
{
    (void)state;
    keep("A", " keep=1000");
    rig_lose_body("A");
    rig_pass(1000);
    assert_int_equal(rig_forget(10).moved, 1);
    assert_int_equal(rig_stat("kept_bytes"), 0);
    rig_assert_sums();
}

/* ---- sweep ---- */

static void
idle_channels_claims_and_old_windows_are_trimmed(void **state)
{
    struct wr_sweep at = {"0", "0", 0};

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " unique=k", .unique = "5000 k"});
    rig_take("w", 1);
    rig_pass(3000);
    assert_int_equal(wr_store_sweep(rig.store, rig.queue, 3000, 100, &at, &rig.err),
                     WEIR_OK);
    assert_int_equal(at.removed, 0);
    rig_put("B");
    rig_pass(2000);
    assert_int_equal(wr_store_sweep(rig.store, rig.queue, 3000, 100, &at, &rig.err),
                     WEIR_OK);
    assert_int_equal(at.removed, 2); /* the claim and the window */
    assert_string_equal(at.producers, "0");
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_windows)),
                        "0");
    assert_string_equal(redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_producers)),
                        "1");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
many_channels_are_trimmed_in_slices(void **state)
{
    struct wr_sweep at = {"0", "0", 0};
    int64_t removed = 0;
    int slices = 0;

    (void)state;
    rig_put("A");
    for (int i = 0; i < 700; i++)
        redis_do(rig.redis, "HSET %s c%d x", rig_key(WR_QUEUE_KEY_producers), i);
    do {
        assert_int_equal(wr_store_sweep(rig.store, rig.queue, 3000, 100, &at, &rig.err),
                         WEIR_OK);
        removed += at.removed;
    } while (strcmp(at.producers, "0") != 0 && ++slices < 1000);
    assert_int_equal(removed, 700); /* of unreadable ones; A's own stays */
    assert_true(slices > 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_job_is_promoted_when_it_is_due_and_not_a_ms_before_T01),
        RIG_TEST(due_jobs_are_promoted_oldest_first_and_in_bounded_slices),
        RIG_TEST(promotion_shows_that_it_is_alive),
        RIG_TEST(a_paused_queue_promotes_and_wakes_nobody_A15d),
        RIG_TEST(a_lease_ends_at_its_ms_and_not_before_T26),
        RIG_TEST(a_first_loss_goes_to_the_front_later_ones_wait_A13),
        RIG_TEST(a_job_that_takes_three_workers_along_is_dead_T6),
        RIG_TEST(what_was_claimed_ahead_is_not_charged_A12),
        RIG_TEST(a_reclaim_is_bounded),
        RIG_TEST(a_reclaimer_that_cannot_trust_time_takes_nothing_back_A11),
        RIG_TEST(a_small_step_of_the_clock_is_no_jump_A11),
        RIG_TEST(a_lease_far_in_the_future_is_pulled_back_A11),
        RIG_TEST(a_lease_that_may_be_is_not_pulled_back_A11),
        RIG_TEST(a_lost_job_that_was_cancelled_ends_A19),
        RIG_TEST(a_lost_job_without_body_is_dead_A17),
        RIG_TEST(a_lost_job_without_state_lives_on),
        RIG_TEST(a_dead_workers_jobs_are_back_before_their_lease_ends_A13),
        RIG_TEST(a_wrong_triple_does_no_harm_A13),
        RIG_TEST(what_nobody_named_is_found_in_the_claims_and_not_charged_A13),
        RIG_TEST(a_job_that_had_not_started_is_not_charged_A13),
        RIG_TEST(the_third_death_by_a_job_buries_it_at_once_L16),
        RIG_TEST(a_kept_job_is_forgotten_when_its_time_is_over_and_not_before),
        RIG_TEST(more_than_a_queue_keeps_goes_the_next_to_go_first_M03),
        RIG_TEST(more_bytes_than_a_queue_keeps_go_M03),
        RIG_TEST(bytes_of_records_deleted_by_hand_are_not_counted_for_ever_M03),
        RIG_TEST(idle_channels_claims_and_old_windows_are_trimmed),
        RIG_TEST(many_channels_are_trimmed_in_slices),
    };

    return RIG_MAIN(tests);
}
