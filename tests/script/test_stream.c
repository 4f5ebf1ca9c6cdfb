/* What is particular to the stream engine: ids that it gives itself, what a job costs,
 * what was done to its stream by hand, the names of its consumers. */
#include "script/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
stream(void)
{
    return rig_key(WR_QUEUE_KEY_stream);
}

/* Puts n jobs without a name of their own, by one call; their ids. */
static const struct wr_admitted *
put_unnamed(size_t n)
{
    static struct wr_admitted out[64];
    struct wr_admit items[64];
    char ids[64][32];

    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof(ids[i]), "made-up-%d-%zu", (int)rig.channel.number, i);
        items[i] = rig_item((struct rig_job){.id = ids[i]});
        items[i].made_up = true;
    }
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, items, n, out,
                                      NULL, &rig.err),
                     WEIR_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(out[i].word, WR_ADMIT_STORED);
    return out;
}

/* ---- ids ---- */

static void
a_job_without_a_name_is_an_entry_and_nothing_else_A5(void **state)
{
    char id[48], keys[1024];

    (void)state;
    snprintf(id, sizeof(id), "%s", put_unnamed(1)[0].id);
    snprintf(keys, sizeof(keys), "%s", redis_do(rig.redis, "KEYS weir:{q}:*"));
    assert_null(strstr(keys, ":ids"));
    assert_null(strstr(keys, ":jobs"));
    assert_null(strstr(keys, ":state"));
    assert_string_equal(rig_where(id), "JR");
    assert_string_equal(rig_take("w", 1)->ids, id);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_state)),
                        "0");
    assert_int_equal(rig_ack("w", id), WR_ANSWERED_OK);
    assert_string_equal(redis_do(rig.redis, "XLEN %s", stream()), "0");
    rig_assert_sums();
}

/* Made up by the client, which learns from the answer, also from that of a repeat, which
 * entry it waits for. */
static void
a_call_without_a_name_waits_for_its_entry_A5(void **state)
{
    char reply[200], id[48] = "";

    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(reply, sizeof(reply), "%s",
                 rig_script("call", "1796000000000", "c", "1", "mark", "weir:ended:t/1",
                            "30000", "\tmade-up", "1 t", "\nx", "", "", NULL));
        assert_int_equal(
            sscanf(reply, i == 0 ? "OK 0 0 IDS %47s" : "BEFORE 0 0 IDS %47s", id), 1);
        assert_string_equal(
            redis_do(rig.redis, "HKEYS %s", rig_key(WR_QUEUE_KEY_waiters)), id);
    }
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_ids)), "0");
    assert_string_equal(rig_take("w", 1)->ids, id);
    assert_int_equal(rig_ack("w", id), WR_ANSWERED_OK);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_waiters)),
                        "0");
    rig_assert_sums();
}

static void
a_job_that_got_its_id_keeps_it_through_its_life_A5(void **state)
{
    char id[48];

    (void)state;
    snprintf(id, sizeof(id), "%s", put_unnamed(1)[0].id);
    rig_take("w", 1);
    assert_int_equal(rig_retry("w", id, 5), WR_ANSWERED_OK);
    assert_string_equal(rig_where(id), "JLS");
    rig_pass(5);
    rig_promote(9);
    assert_string_equal(rig_take("w", 1)->ids, id);
    assert_int_equal(rig_bury("w", id), WR_ANSWERED_OK);
    assert_int_equal(rig_replay(id), WR_REPLAY_OK);
    assert_int_equal(rig_put(id), WR_ADMIT_EXISTS);
    assert_int_equal(rig_cancel(id), WR_CANCEL_READY);
    assert_string_equal(rig_where(id), "");
    rig_assert_sums();
}

static void
a_repeated_call_is_told_the_same_ids_A5(void **state)
{
    struct wr_channel before;
    char first[3][48];
    const struct wr_admitted *out;

    (void)state;
    put_unnamed(1); /* makes the channel */
    before = rig.channel;
    out = put_unnamed(3);
    for (size_t i = 0; i < 3; i++)
        snprintf(first[i], sizeof(first[i]), "%s", out[i].id);
    assert_string_not_equal(first[0], first[1]);
    rig_take("w", 9);
    rig_ack("w", first[1]); /* it may be over by then */
    rig.channel = before;
    out = put_unnamed(3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(out[i].id, first[i]);
    assert_int_equal(rig_stat("enqueued"), 4);
    rig_assert_sums();
}

static void
named_and_unnamed_jobs_of_a_call_get_what_is_theirs(void **state)
{
    struct wr_admit items[4];
    struct wr_admitted out[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        items[i] = rig_item(
            (struct rig_job){.id = (const char *[]){"m0", "A", "m2", "m3"}[i],
                             .due = i == 3 ? "+50" : NULL});
        items[i].made_up = i != 1;
    }
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, items, 4, out,
                                      NULL, &rig.err),
                     WEIR_OK);
    assert_string_equal(out[1].id, "");
    assert_string_equal(out[3].id, ""); /* it has a due time: the id that was made up */
    assert_string_equal(rig_where("A"), "JR");
    assert_string_equal(rig_where("m3"), "JL");
    assert_string_equal(rig_where("m0"), "");
    assert_string_equal(rig_where(out[0].id), "JR");
    assert_string_equal(rig_where(out[2].id), "JR");
    rig_assert_sums();
}

/* The reply of an enqueue is lost, the queue moves, the call is repeated. */
static void
a_call_that_is_repeated_after_a_move_is_not_applied_again_A3(void **state)
{
    struct wr_migrated m = {.word = WR_MIGRATE_COPIED};
    struct wr_channel before;
    char id[48];

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *to = i == 0 ? "list" : "stream";
        const struct wr_admitted *out;

        put_unnamed(1); /* makes the channel */
        before = rig.channel;
        snprintf(id, sizeof(id), "%s", put_unnamed(1)[0].id);
        m.word = WR_MIGRATE_COPIED;
        while (m.word != WR_MIGRATE_DONE)
            assert_int_equal(
                wr_store_migrate(rig.store, rig.queue, to, "me", 9, &m, &rig.err),
                WEIR_OK);
        rig.channel = before;
        out = put_unnamed(1);
        assert_int_equal(rig_stat("enqueued"), 2 * (i + 1));
        if (i == 0)
            assert_string_equal(out[0].id, id);
    }
    rig_assert_sums();
}

/* ---- deliveries ---- */

static void
a_renewal_does_not_steal_a_delivery_back_A8(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_pass(RIG_LEASE);
    rig_reclaim();
    rig_take("v", 1);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_STALE);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_extend("v", "A", 0), WR_EXTEND_OK);
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
what_goes_back_stands_before_what_was_never_handed_out_A7(void **state)
{
    (void)state;
    rig_put_many("A B C D");
    rig_take("w", 3);
    rig_release("w", "C");
    rig_release("w", "A");
    assert_string_equal(rig_take("v", 2)->ids, "A C");
    assert_int_equal(rig_state("A").deliveries, 2);
    assert_string_equal(rig_take("v", 9)->ids, "D");
    rig_assert_sums();
}

static void
a_job_that_kills_its_workers_is_counted_across_entries_L16(void **state)
{
    struct wr_moved m = {0};

    (void)state;
    rig_put_many("A B");
    for (int loss = 1; loss <= 3; loss++) {
        assert_string_equal(rig_take("w", 1)->ids, "A");
        rig_pass(RIG_LEASE);
        m = rig_reclaim();
        rig_pass(5000);
        rig_promote(1);
        if (loss == 2) {
            rig_take("w", 1); /* B: A came back as a new entry behind it */
            rig_ack("w", "B");
        }
    }
    assert_int_equal(m.dead, 1);
    assert_int_equal(rig_state("A").lost, 3);
    assert_int_equal(rig_state("A").deliveries, 3);
    rig_assert_sums();
}

static void
pending_entries_are_looked_at_in_turn_and_all_are_found_A23(void **state)
{
    struct wr_reserve how = {
        .worker = "w", .call = 1, .free = 1000, .lease_ms = RIG_LEASE};
    struct wr_batch batch;
    size_t found = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        rig_put_thousand(1000 * i);
        assert_int_equal(wr_store_reserve(rig.store, rig.queue, &how, &batch, &rig.err),
                         WEIR_OK);
        assert_int_equal(batch.n, 1000);
        wr_batch_fini(&batch);
        how.call++;
        rig_pass(i == 1 ? RIG_LEASE : 0); /* those of the third are not over */
    }
    for (int i = 0; i < 40 && found < 2000; i++)
        found += (size_t)rig_reclaim().moved;
    assert_int_equal(found, 2000);
    for (int i = 0; i < 10; i++)
        assert_int_equal(rig_reclaim().moved, 0);
    rig_assert_equations(0);
}

/* ---- by hand ---- */

static const char *
entry_of(const char *id)
{
    return redis_do(rig.redis, "HGET %s %s", rig_key(WR_QUEUE_KEY_ids), id);
}

static void
an_entry_deleted_while_it_runs_is_booked_when_it_is_reclaimed_A17(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_take("w", 3);
    rig_lose_body("A");
    rig_lose_body("B");
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_OK); /* that it ran is what counts */
    rig_extend("w", "A", 0); /* Redis would forget it if it were claimed */
    rig_release("w", "A");
    assert_int_equal(rig_release("w", "C"), WR_ANSWERED_OK);
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().dead, 1);
    assert_int_equal(rig_audit().dead, 1);
    assert_int_equal(rig_stat("buried"), 1);
    rig_assert_equations(0);
}

static void
an_entry_deleted_in_front_is_booked_when_it_would_be_handed_out_A17(void **state)
{
    (void)state;
    rig_put_many("A B");
    rig_take("w", 1);
    rig_release("w", "A");
    rig_lose_body("A");
    assert_string_equal(rig_take("w", 1)->ids, "B");
    assert_int_equal(rig_stat("lost_body_ready"), 1);
    assert_int_equal(rig_audit().dead, 1);
    rig_assert_equations(0);
}

static void
an_entry_deleted_before_it_was_handed_out_shows_in_the_sum_A17(void **state)
{
    struct weir_audit a;

    (void)state;
    rig_put_many("A B");
    redis_do(rig.redis, "XDEL %s %s", stream(), entry_of("A"));
    a = rig_audit();
    assert_int_equal(a.gap, 1);
    assert_int_equal(a.gap_ready, 1);
    assert_int_equal(rig_put("A"), WR_ADMIT_STORED); /* what names no entry is no job */
    assert_string_equal(rig_take("w", 9)->ids, "B A");
}

static void
a_retry_of_a_deleted_entry_is_dead_when_it_is_due_A17(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_lose_body("A");
    assert_int_equal(rig_retry("w", "A", 5), WR_ANSWERED_OK);
    rig_pass(5);
    assert_int_equal(rig_promote(9).moved, 0);
    assert_string_equal(rig_where("A"), "JSX");
    assert_int_equal(rig_stat("lost_body_delayed"), 1);
    assert_int_equal(rig_replay("A"), WR_REPLAY_NOBODY);
    rig_assert_sums();
}

/* Redis counts deliveries of a group that was made again from 1: old handles must not
 * fit. */
static void
a_destroyed_group_is_made_again_and_its_deliveries_are_stale_A25(void **state)
{
    (void)state;
    rig_put_many("A B");
    assert_string_equal(rig_take("w", 1)->ids, "A");
    redis_do(rig.redis, "XGROUP DESTROY %s workers", stream());
    assert_int_equal(rig_take("v", 1)->word, WR_RESERVE_MORE); /* that made it */
    assert_string_equal(rig_take("v", 1)->ids, "A");           /* from the first on */
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    assert_string_equal(rig_take("w", 1)->ids, "B");
    assert_int_equal(rig_extend("w", "B", 0), WR_EXTEND_OK);
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_OK);
    assert_string_equal(redis_do(rig.redis, "XLEN %s", stream()), "0");
}

/* The same entry, the same worker, the first delivery by the group's count: another one.
 */
static void
a_handle_of_a_destroyed_group_is_no_handle_of_the_next_A25(void **state)
{
    char old[WR_TOKEN_MAX];

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    snprintf(old, sizeof(old), "%s", rig_token("w", "A"));
    redis_do(rig.redis, "XGROUP DESTROY %s workers", stream());
    rig_take("w", 1);
    assert_string_equal(rig_take("w", 1)->ids, "A");
    assert_string_not_equal(rig_token("w", "A"), old);
    rig_set_token("w", "A", old);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    assert_string_equal(rig_where("A"), "JPS");
}

static void
sweep(void)
{
    struct wr_sweep at = {"0", "0", 0};

    assert_int_equal(wr_store_sweep(rig.store, rig.queue, 3600000, 100, &at, &rig.err),
                     WEIR_OK);
}

/* Its worker does not know that somebody deleted the entry, and will answer. */
static void
a_deleted_entry_that_runs_is_its_workers_till_then_A17(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " order=g", .unique = "0 - =g"});
    rig_put_job((struct rig_job){.id = "B", .options = " order=g", .unique = "0 - =g"});
    assert_string_equal(rig_take("w", 9)->ids, "A");
    rig_lose_body("A");
    assert_int_equal(rig_put("A"), WR_ADMIT_OTHER);
    assert_int_equal(rig_put_job((struct rig_job){.id = "A", .due = "+5"}),
                     WR_ADMIT_OTHER);
    sweep();
    assert_int_equal(rig_take("v", 9)->word, WR_RESERVE_EMPTY); /* B waits for it */
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_CANCEL);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(rig_take("v", 9)->ids, "B");
    assert_int_equal(rig_put("A"), WR_ADMIT_STORED);
    rig_assert_sums();
}

/* The same of one that has the id of its entry: it stands in no index. */
static void
the_id_of_a_deleted_entry_that_runs_is_taken_also_without_a_name_A17(void **state)
{
    char id[48];

    (void)state;
    snprintf(id, sizeof(id), "%s", put_unnamed(1)[0].id);
    rig_take("w", 1);
    rig_lose_body(id);
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake)); /* nothing else is there */
    assert_int_equal(rig_put(id), WR_ADMIT_OTHER);
    assert_int_equal(rig_put_job((struct rig_job){.id = id, .due = "+5"}),
                     WR_ADMIT_OTHER);
    assert_int_equal(rig_put("1-1"), WR_ADMIT_STORED); /* that was never an entry */
    assert_int_equal(rig_ack("w", id), WR_ANSWERED_OK);
    assert_int_equal(rig_put(id), WR_ADMIT_STORED);
    assert_int_equal(rig_take("w", 9)->n, 2);
    assert_int_equal(rig_ack("w", id), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* Whoever leaves jobs behind wakes another worker for them. */
static void
a_deleted_entry_that_runs_hides_no_job_that_waits_A17(void **state)
{
    (void)state;
    rig_put_many("A B C D");
    rig_take("w", 2);
    rig_lose_body("A");
    rig_lose_body("B");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    assert_string_equal(rig_take("v", 1)->ids, "C");
    assert_true(rig_has_marker());
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_resume();
    assert_true(rig_has_marker());
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    assert_string_equal(rig_take("v", 1)->ids, "D");
    assert_false(rig_has_marker());
    rig_resume();
    assert_false(rig_has_marker());
}

static void
a_copy_in_jobs_does_not_hide_that_a_record_is_gone_A17(void **state)
{
    struct wr_migrated m;

    (void)state;
    rig_put_many("A B C");
    rig_put_job((struct rig_job){.id = "L", .due = "+5"});
    assert_int_equal(
        wr_store_migrate(rig.store, rig.queue, "list", "me", 2, &m, &rig.err), WEIR_OK);
    redis_do(rig.redis, "HDEL %s L", rig_key(WR_QUEUE_KEY_jobs));
    assert_int_equal(rig_put("L"), WR_ADMIT_OTHER);
}

/* Nobody can say whose the entry was: its state stays under the id. */
static void
a_cancel_of_a_deleted_entry_is_none_of_the_next_life_A17(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED);
    rig_lose_body("A");
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().dead, 1);
    assert_int_equal(rig_put("A"), WR_ADMIT_STORED);
    rig_take("w", 1);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_OK);
    assert_int_equal(rig_release("w", "A"), WR_ANSWERED_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_STREAM_TEST(a_job_without_a_name_is_an_entry_and_nothing_else_A5),
        RIG_STREAM_TEST(a_call_without_a_name_waits_for_its_entry_A5),
        RIG_STREAM_TEST(a_job_that_got_its_id_keeps_it_through_its_life_A5),
        RIG_STREAM_TEST(a_repeated_call_is_told_the_same_ids_A5),
        RIG_STREAM_TEST(named_and_unnamed_jobs_of_a_call_get_what_is_theirs),
        RIG_STREAM_TEST(a_call_that_is_repeated_after_a_move_is_not_applied_again_A3),
        RIG_STREAM_TEST(a_renewal_does_not_steal_a_delivery_back_A8),
        RIG_STREAM_TEST(what_goes_back_stands_before_what_was_never_handed_out_A7),
        RIG_STREAM_TEST(a_job_that_kills_its_workers_is_counted_across_entries_L16),
        RIG_STREAM_TEST(pending_entries_are_looked_at_in_turn_and_all_are_found_A23),
        RIG_STREAM_TEST(
            an_entry_deleted_while_it_runs_is_booked_when_it_is_reclaimed_A17),
        RIG_STREAM_TEST(
            an_entry_deleted_in_front_is_booked_when_it_would_be_handed_out_A17),
        RIG_STREAM_TEST(an_entry_deleted_before_it_was_handed_out_shows_in_the_sum_A17),
        RIG_STREAM_TEST(a_retry_of_a_deleted_entry_is_dead_when_it_is_due_A17),
        RIG_STREAM_TEST(a_destroyed_group_is_made_again_and_its_deliveries_are_stale_A25),
        RIG_STREAM_TEST(a_handle_of_a_destroyed_group_is_no_handle_of_the_next_A25),
        RIG_STREAM_TEST(a_deleted_entry_that_runs_is_its_workers_till_then_A17),
        RIG_STREAM_TEST(
            the_id_of_a_deleted_entry_that_runs_is_taken_also_without_a_name_A17),
        RIG_STREAM_TEST(a_deleted_entry_that_runs_hides_no_job_that_waits_A17),
        RIG_STREAM_TEST(a_cancel_of_a_deleted_entry_is_none_of_the_next_life_A17),
        RIG_STREAM_TEST(a_copy_in_jobs_does_not_hide_that_a_record_is_gone_A17),
    };

    return RIG_MAIN(tests);
}
