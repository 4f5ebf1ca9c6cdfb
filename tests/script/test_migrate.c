/* migrate: a queue goes to the other engine, step by step, while it is used. */
#include "script/rig.h"

#include <stdio.h>
#include <string.h>

static const char *
name_of(enum rig_engine engine)
{
    return engine == RIG_LIST ? "list" : "stream";
}

static enum rig_engine
other(void)
{
    return rig.engine == RIG_LIST ? RIG_STREAM : RIG_LIST;
}

/* One step of at most `limit` jobs. The tests go on with the engine that the queue has.
 */
static struct wr_migrated
step_to(enum rig_engine to, size_t limit)
{
    struct wr_migrated m;

    if (wr_store_migrate(rig.store, rig.queue, name_of(to), "me", limit, &m, &rig.err) !=
        WEIR_OK)
        fail_msg("migrate: %s", rig.err.text);
    rig_follow_engine();
    return m;
}

/* The rest of them. */
static void
move_to(enum rig_engine to, size_t limit)
{
    struct wr_migrated m = {.word = WR_MIGRATE_COPIED};

    for (int i = 0; m.word != WR_MIGRATE_DONE; i++) {
        assert_true(i < 1000);
        m = step_to(to, limit);
        assert_int_not_equal(m.word, WR_MIGRATE_RUNS);
        assert_int_not_equal(m.word, WR_MIGRATE_RESUMED);
    }
}

/* What a move uses is gone, and the old engine's keys are. */
static void
assert_moved_to(enum rig_engine engine)
{
    assert_int_equal(rig.engine, engine);
    assert_string_equal(
        redis_do(rig.redis, "EXISTS %s %s %s", rig_key(WR_QUEUE_KEY_next_ready),
                 rig_key(WR_QUEUE_KEY_next_stream), rig_key(WR_QUEUE_KEY_next_ids)),
        "0");
    assert_string_equal(
        engine == RIG_LIST
            ? redis_do(rig.redis, "EXISTS %s %s", rig_key(WR_QUEUE_KEY_stream),
                       rig_key(WR_QUEUE_KEY_ids))
            : redis_do(rig.redis, "EXISTS %s %s %s", rig_key(WR_QUEUE_KEY_ready),
                       rig_key(WR_QUEUE_KEY_tombs), rig_key(WR_QUEUE_KEY_processing)),
        "0");
    assert_string_equal(redis_do(rig.redis, "HMGET %s moving moved moving_at",
                                 rig_key(WR_QUEUE_KEY_config)),
                        "(nil) (nil) (nil)");
    rig_assert_sums();
}

/* A job in each place, and waiting ones with a past: B C D E F wait in this order. */
static void
make_world(void)
{
    rig_kill_job("X");
    rig_put_job((struct rig_job){.id = "K", .options = " keep=9000"});
    rig_take("w", 1);
    rig_ack_result("w", "K", "result");
    rig_put_job((struct rig_job){.id = "L", .due = "+500"});
    rig_put("C");
    rig_take("w", 1);
    rig_retry("w", "C", 1);
    rig_pass(1);
    rig_put("B");
    rig_take("w", 1);
    rig_promote(1); /* C, its second life in the line */
    rig_put_job((struct rig_job){.id = "D", .options = " unique=k", .unique = "0 k"});
    rig_put_many("gone E");
    rig_put_job((struct rig_job){.id = "F", .options = " keep=700"});
    rig_cancel("gone");
    rig_release("w", "B");
}

static void
all_that_waits_goes_in_its_order_with_what_is_known_of_it(void **state)
{
    enum rig_engine to = other();

    (void)state;
    make_world();
    move_to(to, 2);
    assert_moved_to(to);
    assert_false(rig_audit().paused);
    assert_true(rig_has_marker());
    assert_string_equal(rig_where("X"), "JSX");
    assert_string_equal(rig_where("K"), "JKS");
    assert_string_equal(rig_where("L"), "JL");
    assert_string_equal(rig_where("gone"), "");
    assert_int_equal(rig_state("B").interrupted, 1);
    assert_int_equal(rig_state("C").attempts, 1);
    assert_int_equal(rig_put_job((struct rig_job){
                         .id = "D2", .options = " unique=k", .unique = "0 k"}),
                     WR_ADMIT_UNIQUE);
    assert_int_equal(rig_put("E"), WR_ADMIT_EXISTS);
    assert_string_equal(rig_take("v", 9)->ids, "B C D E F");
    assert_int_equal(rig_state("B").deliveries, 2);
    assert_int_equal(rig_ack("v", "F"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("F"), "JKS");
    assert_int_equal(rig_ack("v", "D"), WR_ANSWERED_OK);
    assert_int_equal(rig_replay("X"), WR_REPLAY_OK);
    rig_assert_sums();
}

static void
there_and_back_is_as_it_was(void **state)
{
    enum rig_engine from = rig.engine, to = other();

    (void)state;
    make_world();
    move_to(to, 3);
    move_to(from, 3);
    assert_moved_to(from);
    /* the consumers of another group have other names */
    assert_string_equal(
        redis_do(rig.redis, "HGET %s generation", rig_key(WR_QUEUE_KEY_config)),
        from == RIG_LIST ? "1" : "2");
    assert_string_equal(rig_take("v", 9)->ids, "B C D E F");
    rig_assert_sums();
}

/* The copy is past the old place of B when B comes again and takes it. */
static void
who_takes_an_old_place_behind_the_copy_is_not_left_out_A4c(void **state)
{
    (void)state;
    rig_put_many("A B C D E");
    rig_cancel("B");
    assert_int_equal(step_to(RIG_STREAM, 3).word, WR_MIGRATE_COPIED);
    rig_put("B");
    assert_int_equal(step_to(RIG_STREAM, 3).word, WR_MIGRATE_AGAIN);
    move_to(RIG_STREAM, 3);
    assert_moved_to(RIG_STREAM);
    assert_string_equal(rig_take("v", 9)->ids, "A B C D E");
}

static void
an_empty_queue_changes_its_engine_and_one_that_has_it_does_nothing(void **state)
{
    enum rig_engine from = rig.engine, to = other();

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_ack("w", "A");
    assert_int_equal(step_to(from, 9).word, WR_MIGRATE_DONE);
    assert_int_equal(rig.engine, from);
    move_to(to, 9);
    assert_moved_to(to);
    rig_put("B");
    assert_string_equal(rig_take("w", 9)->ids, "B");
}

static void
what_runs_ends_first_and_nothing_is_handed_out_meanwhile(void **state)
{
    enum rig_engine from = rig.engine, to = other();
    struct wr_migrated m;

    (void)state;
    rig_put_many("A B C D");
    rig_take("w", 3);
    m = step_to(to, 9);
    assert_int_equal(m.word, WR_MIGRATE_RUNS);
    assert_int_equal(m.n, 3);
    assert_int_equal(rig_take("v", 1)->word, WR_RESERVE_PAUSED);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_OK);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_retry("w", "B", 10), WR_ANSWERED_OK);
    assert_int_equal(step_to(to, 9).n, 1);
    assert_int_equal(rig.engine, from);
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().moved, 1); /* C */
    rig_promote(1);
    move_to(to, 9);
    assert_moved_to(to);
    assert_string_equal(rig_take("v", 9)->ids, "C D B");
    rig_assert_sums();
}

static void
jobs_that_come_in_while_it_is_copied_are_taken_along(void **state)
{
    enum rig_engine to = other();
    char id[] = "a";

    (void)state;
    rig_kill_job("X");
    rig_put_many("A B C D E");
    rig_put_job((struct rig_job){.id = "L", .due = "+5"});
    rig_pass(5);
    for (; id[0] < 'd'; id[0]++) { /* each step takes two, one comes */
        assert_int_equal(step_to(to, 2).word, WR_MIGRATE_COPIED);
        assert_int_equal(rig_put(id), WR_ADMIT_STORED);
        assert_int_equal(rig_put("A"), WR_ADMIT_EXISTS);
        if (id[0] == 'a')
            rig_promote(1);
        if (id[0] == 'b')
            rig_replay("X");
    }
    move_to(to, 2);
    assert_moved_to(to);
    assert_string_equal(rig_take("v", 20)->ids, "A B C D E a L b X c");
    rig_assert_sums();
}

static enum weir_err
replace(const char *id)
{
    struct wr_admit item = rig_item(
        (struct rig_job){.id = id, .payload = wr_span_str("new")});
    struct wr_replaced out;

    return wr_store_replace(rig.store, rig.queue, &rig.channel, &item, &out, &rig.err);
}

static void
defer(const char *id)
{
    bool delayed;
    int64_t at;

    assert_int_equal(wr_store_reschedule(rig.store, rig.queue, wr_span_str(id),
                                         wr_span_str("+5"), &delayed, &at, &rig.err),
                     WEIR_OK);
}

static void
cancel_and_again(const char *id)
{
    rig_cancel(id);
    rig_put(id);
}

static void
what_is_changed_while_it_is_copied_is_not_copied_twice_or_lost(void **state)
{
    enum rig_engine from = rig.engine, to;

    (void)state;
    for (int change = 0; change < 4; change++) {
        rig_fresh(NULL);
        to = other();
        rig_put_many("A B C D E");
        assert_int_equal(step_to(to, 3).word, WR_MIGRATE_COPIED);
        if (change == 0)
            assert_int_equal(rig_cancel("B"), WR_CANCEL_READY);
        else if (change == 1)
            assert_int_equal(replace("B"), WEIR_OK);
        else if (change == 2)
            defer("B");
        else
            cancel_and_again("B");
        assert_int_equal(step_to(to, 3).word, WR_MIGRATE_AGAIN);
        assert_int_equal(rig.engine, from);
        move_to(to, 3);
        assert_moved_to(to);
        if (change == 0 || change == 2)
            assert_string_equal(rig_take("v", 9)->ids, "A C D E");
        else
            assert_int_equal(rig_take("v", 9)->n, 5);
        assert_string_equal(rig_where("B"), change == 0   ? ""
                                            : change == 2 ? "JL"
                                                          : "JPS");
        if (change == 1)
            assert_non_null(strstr(rig_record("B"), "\nnew"));
        rig_assert_sums();
    }
}

static void
a_move_can_be_taken_back_at_any_step(void **state)
{
    enum rig_engine from = rig.engine;

    (void)state;
    for (int steps = 1; steps < 6; steps++) {
        rig_fresh(NULL);
        make_world();
        for (int i = 0; i < steps && rig.engine == from; i++)
            step_to(from == RIG_LIST ? RIG_STREAM : RIG_LIST, 1);
        rig_cancel("C");
        move_to(from, 2);
        assert_moved_to(from);
        assert_false(rig_audit().paused);
        assert_string_equal(rig_take("v", 9)->ids, "B D E F");
        rig_assert_sums();
    }
}

/* While it waits for a delivery a step does nothing else: that is written once a second.
 */
static void
a_move_says_when_it_began_and_about_when_its_last_step_was(void **state)
{
    enum rig_engine to = other();
    struct weir_audit a;

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    assert_string_equal(rig_audit().moving_to, "");
    step_to(to, 9);
    rig_pass(999);
    step_to(to, 9);
    a = rig_audit();
    assert_string_equal(a.moving_to, name_of(to));
    assert_int_equal(a.moving_at, RIG_START);
    assert_int_equal(a.moving_step_at, RIG_START);
    rig_pass(1);
    step_to(to, 9);
    a = rig_audit();
    assert_int_equal(a.moving_at, RIG_START);
    assert_int_equal(a.moving_step_at, RIG_START + 1000);
    rig_ack("w", "A");
    move_to(to, 9);
    assert_moved_to(to);
    assert_string_equal(rig_audit().moving_to, "");
}

static void
a_queue_that_somebody_resumes_stays_what_it_was(void **state)
{
    enum rig_engine from = rig.engine, to = other();

    (void)state;
    rig_put_many("A B C D");
    assert_int_equal(step_to(to, 1).word, WR_MIGRATE_COPIED);
    rig_resume();
    assert_string_equal(rig_take("v", 1)->ids, "A");
    assert_int_equal(step_to(to, 1).word, WR_MIGRATE_RESUMED);
    assert_int_equal(rig.engine, from);
    move_to(from, 9);
    assert_moved_to(from);
    assert_string_equal(rig_take("v", 9)->ids, "B C D");
    rig_assert_sums();
}

static void
a_queue_that_was_paused_stays_paused(void **state)
{
    enum rig_engine to = other();

    (void)state;
    rig_put_many("A B");
    rig_pause();
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    move_to(to, 1);
    assert_moved_to(to);
    assert_true(rig_audit().paused);
    assert_false(rig_has_marker());
    rig_resume();
    assert_string_equal(rig_take("v", 9)->ids, "A B");
}

static void
a_queue_that_is_paused_while_it_moves_stays_paused(void **state)
{
    enum rig_engine from = rig.engine, to = other();

    (void)state;
    rig_put_many("A B C");
    assert_int_equal(step_to(to, 1).word, WR_MIGRATE_COPIED);
    rig_pause(); /* OK: before, it was the move that had paused it */
    move_to(to, 1);
    assert_moved_to(to);
    assert_true(rig_audit().paused);
    rig_resume();
    assert_int_equal(step_to(from, 1).word, WR_MIGRATE_COPIED);
    rig_pause();
    move_to(to, 1); /* taken back: that does not resume it either */
    assert_true(rig_audit().paused);
    rig_resume();
    assert_string_equal(rig_take("v", 9)->ids, "A B C");
    rig_assert_sums();
}

/* A worker that was away for all of that. */
static void
handles_of_the_other_engine_are_stale_or_gone(void **state)
{
    enum rig_engine to = other();

    (void)state;
    rig_put_many("A B");
    rig_take("w", 2);
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().moved, 2);
    move_to(to, 9);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_STALE);
    assert_string_equal(rig_take("v", 1)->ids, "A");
    assert_int_equal(rig_retry("w", "A", 5), WR_ANSWERED_STALE);
    assert_int_equal(rig_release("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_bury("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_progress("w", "A", "half"), WR_EXTEND_STALE);
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_GONE);
    rig_assert_sums();
}

static void
a_full_server_takes_no_copy_and_the_move_can_be_taken_back_F17(void **state)
{
    enum rig_engine from = rig.engine, to = other();

    (void)state;
    rig_put_many("A B C");
    assert_int_equal(step_to(to, 1).word, WR_MIGRATE_COPIED);
    redis_do(rig.redis, "CONFIG SET maxmemory 1");
    assert_int_equal(step_to(to, 1).word, WR_MIGRATE_FULL);
    move_to(from, 9);
    redis_do(rig.redis, "CONFIG SET maxmemory 0");
    assert_moved_to(from);
    assert_string_equal(rig_take("v", 9)->ids, "A B C");
}

static void
bytes_bound_a_step_but_never_below_one_job_A22(void **state)
{
    static char big[100000];
    enum rig_engine to = other();

    (void)state;
    for (char id[] = "A"; id[0] <= 'F'; id[0]++)
        rig_put_job((struct rig_job){.id = id, .payload = {big, sizeof(big)}});
    assert_in_range(step_to(to, 9).n, 1, 3);
    move_to(to, 9);
    assert_moved_to(to);
    assert_string_equal(rig_take("v", 9)->ids, "A B"); /* 256 KiB in all */
    rig_assert_sums();
}

static void
a_job_whose_body_is_gone_dies_on_the_way_A17(void **state)
{
    const struct wr_waiter waiter = {"ch/1", 30000};
    enum rig_engine to = other();
    bool ended;

    (void)state;
    rig_put_many("A B C");
    assert_int_equal(wr_store_wait(rig.store, rig.queue, wr_span_str("B"), &waiter, false,
                                   &ended, &rig.err),
                     WEIR_OK);
    rig_lose_body("B");
    move_to(to, 2);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_waiters)),
                        "0"); /* who waits for it is told */
    assert_string_equal(rig_where("B"), "JX");
    assert_string_equal(rig_take("v", 9)->ids, "A C");
    rig_assert_sums();
}

/* Its body was deleted by hand, it came in again: its old place is still there. */
static void
an_id_that_came_in_again_is_moved_once_A4(void **state)
{
    enum rig_engine to = other();

    (void)state;
    rig_put_many("A B C");
    rig_lose_body("A");
    rig_lose_body("C");
    assert_int_equal(rig_put("A"), WR_ADMIT_STORED);
    assert_int_equal(rig_put_job((struct rig_job){.id = "C", .due = "+500"}),
                     WR_ADMIT_STORED);
    move_to(to, 2);
    assert_moved_to(to);
    assert_int_equal(rig_stat("lost_body_ready"), 2);
    assert_string_equal(rig_take("v", 9)->ids, "A B");
    assert_string_equal(rig_where("C"), "JL");
    rig_assert_sums();
}

static void
an_entry_deleted_in_front_is_booked_on_the_way_A17(void **state)
{
    enum rig_engine to = other();

    (void)state;
    rig_put_many("A B C");
    rig_take("w", 2);
    rig_release("w", "B");
    rig_release("w", "A");
    rig_lose_body("A");
    assert_int_equal(step_to(to, 2).word, WR_MIGRATE_AGAIN);
    move_to(to, 2);
    assert_int_equal(rig_stat("lost_body_ready"), 1);
    assert_string_equal(rig_take("v", 9)->ids, "B C");
    rig_assert_equations(0); /* what else is stored of A stays */
}

/* What stands for its record went along. */
static void
a_retry_of_a_deleted_entry_is_dead_on_the_other_side_A17(void **state)
{
    enum rig_engine to = other();

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_lose_body("A");
    assert_int_equal(rig_retry("w", "A", 5), WR_ANSWERED_OK);
    move_to(to, 2);
    rig_pass(5);
    assert_int_equal(rig_promote(9).moved, 1);
    assert_int_equal(rig_take("w", 1)->word, WR_RESERVE_EMPTY);
    assert_string_equal(rig_where("A"), "JSX");
    rig_assert_sums();
}

static void
a_cancel_of_a_deleted_entry_does_not_move_along_A17(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED);
    rig_lose_body("A");
    rig_pass(RIG_LEASE);
    rig_reclaim();
    rig_put("A");
    move_to(RIG_LIST, 9);
    rig_take("w", 1);
    assert_int_equal(rig_release("w", "A"), WR_ANSWERED_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(all_that_waits_goes_in_its_order_with_what_is_known_of_it),
        RIG_TEST(there_and_back_is_as_it_was),
        RIG_LIST_TEST(who_takes_an_old_place_behind_the_copy_is_not_left_out_A4c),
        RIG_TEST(an_empty_queue_changes_its_engine_and_one_that_has_it_does_nothing),
        RIG_TEST(what_runs_ends_first_and_nothing_is_handed_out_meanwhile),
        RIG_TEST(jobs_that_come_in_while_it_is_copied_are_taken_along),
        RIG_TEST(what_is_changed_while_it_is_copied_is_not_copied_twice_or_lost),
        RIG_TEST(a_move_can_be_taken_back_at_any_step),
        RIG_TEST(a_move_says_when_it_began_and_about_when_its_last_step_was),
        RIG_TEST(a_queue_that_somebody_resumes_stays_what_it_was),
        RIG_TEST(a_queue_that_was_paused_stays_paused),
        RIG_TEST(a_queue_that_is_paused_while_it_moves_stays_paused),
        RIG_TEST(handles_of_the_other_engine_are_stale_or_gone),
        RIG_TEST(a_full_server_takes_no_copy_and_the_move_can_be_taken_back_F17),
        RIG_TEST(bytes_bound_a_step_but_never_below_one_job_A22),
        RIG_LIST_TEST(a_job_whose_body_is_gone_dies_on_the_way_A17),
        RIG_LIST_TEST(an_id_that_came_in_again_is_moved_once_A4),
        RIG_STREAM_TEST(an_entry_deleted_in_front_is_booked_on_the_way_A17),
        RIG_STREAM_TEST(a_retry_of_a_deleted_entry_is_dead_on_the_other_side_A17),
        RIG_STREAM_TEST(a_cancel_of_a_deleted_entry_does_not_move_along_A17),
    };

    return RIG_MAIN(tests);
}
