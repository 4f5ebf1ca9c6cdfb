/* reserve and exchange: what is handed out, to whom, in which order, and what is not. */
#include "script/rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct rig_taken *
take_call(const char *worker, int64_t call, size_t free, size_t ahead)
{
    struct wr_reserve how = {.worker = worker,
                             .call = call,
                             .free = free,
                             .ahead = ahead,
                             .lease_ms = RIG_LEASE};

    return rig_take_how(&how);
}

static void
a_delivery_has_a_token_a_lease_and_a_count_L02(void **state)
{
    const struct rig_taken *t;

    (void)state;
    rig_put("A");
    t = rig_take("w1", 1);
    assert_int_equal(t->n, 1);
    if (rig.engine == RIG_LIST)
        assert_string_equal(t->first.token, "1");
    else
        assert_non_null(strstr(t->first.token, "-0.1")); /* entry and count */
    assert_string_equal(t->first.worker, "w1");
    assert_int_equal(t->first.deliveries, 1);
    assert_int_equal(t->first.started_at_ms, RIG_START);
    assert_int_equal(t->first.max_deliveries, 3);
    assert_int_equal(rig_score("A"), INT64_C(1796000015000));
    assert_string_equal(rig_where("A"), "JPS");
    assert_int_equal(rig_stat("deliveries"), 1);
    rig_assert_sums();
}

static void
what_a_job_does_not_say_of_its_result_its_worker_does(void **state)
{
    static const struct {
        const char *id, *options;
        int64_t kept_ms; /* 0: gone */
    } rows[] = {{"plain", "", 7000},
                {"some", " retry=1", 7000},
                {"own", " keep=5000", 5000},
                {"key", "", 7000}};
    struct wr_reserve how = {
        .worker = "w", .call = 1, .free = 4, .lease_ms = RIG_LEASE, .keep_ms = 7000};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        rig_put_job((struct rig_job){.id = rows[i].id,
                                     .options = rows[i].options,
                                     .unique = i == 3 ? "0 k" : NULL});
    assert_string_equal(rig_take_how(&how)->ids, "plain some own key");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(rig_ack_result("w", rows[i].id, "r"), WR_ANSWERED_OK);
        assert_int_equal(rig_score(rows[i].id), RIG_START + rows[i].kept_ms);
    }
    /* Each delivery anew: the next worker may say something else. */
    rig_put("again");
    how.call = 2;
    assert_string_equal(rig_take_how(&how)->ids, "again");
    assert_int_equal(rig_release("w", "again"), WR_ANSWERED_OK);
    assert_string_equal(rig_take("v", 1)->ids, "again");
    assert_int_equal(rig_ack("v", "again"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("again"), "");
    rig_assert_sums();
}

static void
nothing_ready_is_said(void **state)
{
    (void)state;
    assert_int_equal(rig_take("w", 1)->word, WR_RESERVE_EMPTY); /* no queue yet */
    rig_put("A");
    assert_int_equal(rig_take("w", 2)->word, WR_RESERVE_OK);
    assert_int_equal(rig_take("w", 1)->word, WR_RESERVE_EMPTY);
    assert_int_equal(rig_take("w", 0)->word, WR_RESERVE_OK);
}

static void
no_more_than_asked_for_is_handed_out_P03(void **state)
{
    (void)state;
    rig_put_many("A B C D");
    assert_string_equal(rig_take("w", 1)->ids, "A");
    assert_string_equal(rig_take("w", 2)->ids, "B C");
    assert_string_equal(rig_take("v", 2)->ids, "D");
    rig_assert_sums();
}

static void
tokens_never_repeat_for_an_id_that_lives_again_A2(void **state)
{
    char first[WR_TOKEN_MAX];

    (void)state;
    rig_put("A");
    snprintf(first, sizeof(first), "%s", rig_take("w", 1)->first.token);
    rig_ack("w", "A");
    rig_put("A");
    rig_take("v", 1);
    assert_string_not_equal(rig_token("v", "A"), first);
    rig_set_token("w", "A", first);
    assert_int_equal(rig_ack("w", "A"),
                     rig.engine == RIG_LIST ? WR_ANSWERED_STALE : WR_ANSWERED_GONE);
    assert_string_equal(rig_where("A"), "JPS");
}

static void
the_token_alone_does_not_hold_a_job_A2(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_set_token("v", "A", rig_token("w", "A")); /* as after a failover */
    assert_int_equal(rig_ack("v", "A"), WR_ANSWERED_STALE);
    assert_int_equal(rig_extend("v", "A", 0), WR_EXTEND_STALE);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
}

static void
a_repeated_call_gets_the_same_jobs_A9(void **state)
{
    const struct rig_taken *t;
    char token[WR_TOKEN_MAX];

    (void)state;
    rig_put_many("A B C");
    t = take_call("w", 5, 2, 0);
    assert_string_equal(t->ids, "A B");
    snprintf(token, sizeof(token), "%s", t->first.token);
    t = take_call("w", 5, 2, 0); /* the reply was lost */
    assert_string_equal(t->ids, "A B");
    assert_string_equal(t->first.token, token);
    assert_int_equal(t->first.deliveries, 1);
    assert_int_equal(rig_stat("deliveries"), 2);
    rig_ack("w", "A");
    assert_string_equal(take_call("w", 5, 2, 0)->ids, "B"); /* what it still holds */
    assert_string_equal(take_call("w", 6, 2, 0)->ids, "C");
    rig_assert_sums();
}

static void
a_repeat_does_not_take_what_was_lost_meanwhile_A9(void **state)
{
    (void)state;
    rig_put_many("A B");
    take_call("w", 5, 2, 0);
    rig_pass(RIG_LEASE);
    rig_reclaim();
    assert_string_equal(rig_take("v", 1)->ids, "A");
    assert_string_equal(take_call("w", 5, 2, 0)->ids, "");
    rig_assert_sums();
}

/* The worker counts the lease from the call that it heard of. */
static void
a_repeat_gives_its_jobs_a_whole_lease_A9(void **state)
{
    (void)state;
    rig_put_many("A B");
    take_call("w", 5, 2, 0);
    rig_pass(RIG_LEASE - 1);
    assert_string_equal(take_call("w", 5, 2, 0)->ids, "A B");
    rig_pass(RIG_LEASE - 1);
    rig_reclaim();
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_pass(1);
    rig_reclaim();
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_STALE);
    rig_assert_sums();
}

static void
other_workers_calls_are_no_repeats_A9(void **state)
{
    (void)state;
    rig_put_many("A B");
    assert_string_equal(take_call("w", 5, 1, 0)->ids, "A");
    assert_string_equal(take_call("v", 5, 1, 0)->ids, "B");
}

static void
a_job_delivered_before_is_not_claimed_ahead_A12(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_take("w", 2);
    rig_release("w", "B"); /* B stands first now, and was delivered before */
    assert_string_equal(take_call("v", 1, 0, 2)->ids, "");
    assert_string_equal(take_call("v", 2, 1, 2)->ids, "B C");
    rig_assert_sums();
}

static void
ahead_stops_before_one_that_was_delivered_before_A12(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_take("w", 1);
    rig_retry("w", "A", 0);
    rig_promote(9); /* B C A */
    assert_string_equal(take_call("v", 1, 1, 5)->ids, "B C");
    assert_string_equal(take_call("v", 2, 1, 0)->ids, "A");
}

static void
a_paused_queue_hands_out_nothing_T23(void **state)
{
    (void)state;
    rig_put("A");
    rig_pause();
    assert_int_equal(rig_take("w", 1)->word, WR_RESERVE_PAUSED);
    assert_string_equal(rig_where("A"), "JR");
    rig_resume();
    assert_string_equal(rig_take("w", 1)->ids, "A");
    rig_assert_sums();
}

static void
bytes_bound_a_call_but_never_below_one_job_A22(void **state)
{
    char *big = calloc(1, 100000);

    (void)state;
    assert_non_null(big);
    for (char id[] = "A"; id[0] <= 'E'; id[0]++)
        rig_put_job((struct rig_job){.id = id, .payload = {big, 100000}});
    assert_string_equal(rig_take("w", 5)->ids, "A B"); /* 256 KiB in all */
    assert_int_equal(rig_take("w", 5)->word, WR_RESERVE_MORE);
    rig_put_job((struct rig_job){.id = "F", .payload = {big, 100000}});
    free(big);
    assert_memory_equal(
        rig_script("reserve", "", "v", "1", "9", "0", "1000", "10", "", "0", NULL),
        "MORE E ", 7);
    assert_string_equal(rig_where("E"), "JPS");
    assert_string_equal(rig_where("F"), "JR");
    rig_assert_sums();
}

static void
a_tombstone_is_skipped_and_uncounted_A4(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_cancel("A");
    assert_int_equal(rig_audit().ready, 2);
    assert_string_equal(rig_take("w", 1)->ids, "B");
    assert_string_equal(rig_where("A"), "");
    assert_int_equal(rig_stat("skipped"), 1);
    assert_string_equal(redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_tombs)), "0");
    rig_assert_sums();
}

static void
a_missing_body_is_told_from_a_tombstone_A4a(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_lose_body("A");
    rig_cancel("B");
    assert_string_equal(rig_take("w", 3)->ids, "C");
    assert_string_equal(rig_where("A"), "JX");
    assert_string_equal(rig_where("B"), "");
    assert_int_equal(rig_stat("lost_body_ready"), 1);
    rig_assert_sums();
}

static void
a_thousand_tombstones_are_skipped_a_call_A4e(void **state)
{
    struct wr_admit *items = calloc(1000, sizeof(*items));
    struct wr_admitted *out = calloc(1000, sizeof(*out));
    char(*ids)[16] = calloc(2500, sizeof(*ids));
    struct wr_span span;
    enum wr_cancelled word;

    (void)state;
    assert_true(items && out && ids);
    for (size_t i = 0; i < 2500; i++) {
        struct wr_admit item;

        snprintf(ids[i], sizeof(ids[i]), "job-%zu", i);
        item = rig_item((struct rig_job){.id = ids[i]});
        assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1,
                                          out, NULL, &rig.err),
                         WEIR_OK);
    }
    for (size_t i = 1; i < 2499; i++) { /* behind one that waits: they stay */
        span = wr_span_str(ids[i]);
        assert_int_equal(wr_store_cancel(rig.store, rig.queue, &span, 1, &word, &rig.err),
                         WEIR_OK);
    }
    assert_int_equal(rig_audit().ready, 2);
    assert_string_equal(rig_take("w", 1)->ids, "job-0");
    assert_int_equal(rig_take("w", 1)->word, WR_RESERVE_MORE);
    assert_int_equal(rig_stat("skipped"), 1000);
    assert_int_equal(rig_take("w", 1)->word, WR_RESERVE_MORE);
    assert_string_equal(rig_take("w", 1)->ids, "job-2499");
    rig_assert_sums();
    free(items);
    free(out);
    free(ids);
}

static void
a_lost_body_is_dead_and_counted_A17(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " unique=k", .unique = "0 k"});
    rig_put("B");
    rig_take("w", 1);
    rig_release("w", "A");
    rig_lose_body("A");
    assert_string_equal(rig_take("w", 1)->ids, "B");
    assert_string_equal(rig_where("A"), "JSX");
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)),
                        "1796000000000 lost_body the stored job was gone");
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_unique)),
                        "0");
    assert_int_equal(rig_replay("A"), WR_REPLAY_NOBODY);
    rig_assert_sums();
    assert_int_equal(rig_purge("A"), WR_REPLAY_OK);
    rig_assert_sums();
}

static void
a_place_without_body_whose_id_lives_again_gets_another_name_A17(void **state)
{
    (void)state;
    rig_put("A");
    rig_lose_body("A");
    rig_put("A"); /* stands twice now, with one body */
    assert_string_equal(rig_take("w", 9)->ids, "A");
    assert_string_equal(rig_where("A"), "JPS");
    assert_int_equal(rig_audit().dead, 1);
    rig_assert_sums();
    rig_ack("w", "A");
    rig_assert_sums();
}

/* The id of A stands in ready and comes in again, its record having been deleted. */
static void
put_twice(const char *options, const char *due)
{
    rig_fresh(NULL);
    rig_put("A");
    redis_do(rig.redis, "HDEL %s A", rig_key(WR_QUEUE_KEY_jobs));
    rig_put_job((struct rig_job){.id = "A", .options = options, .due = due});
}

static void
a_second_place_of_an_id_runs_nothing_wherever_the_first_is_A17(void **state)
{
    static const char *const wheres[] = {"JPS", "JLS", "JSX", "JKS", "JL", "JP"};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        put_twice(i == 3 ? " keep=9000" : "", i == 4 ? "+9000" : NULL);
        if (i != 4)
            assert_string_equal(rig_take("w", 1)->ids, "A");
        if (i == 1)
            assert_int_equal(rig_retry("w", "A", 9000), WR_ANSWERED_OK);
        else if (i == 2)
            assert_int_equal(rig_bury("w", "A"), WR_ANSWERED_OK);
        else if (i == 3)
            assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
        else if (i == 5) /* its state was deleted as well */
            redis_do(rig.redis, "HDEL %s A", rig_key(WR_QUEUE_KEY_state));
        assert_int_equal(rig_take("w", 9)->n, 0);
        assert_string_equal(rig_where("A"), wheres[i]);
        assert_int_equal(rig_stat("lost_body_ready"), 1);
        rig_assert_equations(0);
    }
}

static void
a_job_too_late_to_start_expires_to_the_ms_T12(void **state)
{
    struct rig_job a = {.id = "A", .options = " expires=1000"};

    (void)state;
    rig_put_job(a);
    rig_pass(999);
    assert_string_equal(rig_take("w", 1)->ids, "A");
    rig_ack("w", "A");
    rig_put_job(a);
    rig_pass(1000);
    assert_int_equal(rig_take("w", 1)->word, WR_RESERVE_EMPTY);
    assert_string_equal(rig_where("A"), "");
    assert_int_equal(rig_stat("expired_ready"), 1);
    assert_int_equal(rig_stat("deliveries"), 1);
    rig_assert_sums();
}

static void
a_job_that_started_once_does_not_expire_T12(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " expires=1000"});
    rig_take("w", 1);
    rig_release("w", "A");
    rig_pass(5000);
    assert_string_equal(rig_take("w", 1)->ids, "A");
}

static void
words_in_a_payload_are_no_options(void **state)
{
    (void)state;
    rig_put_job(
        (struct rig_job){.id = "A", .payload = {" keep=9 unique=k expires=1 x=y\n", 32}});
    rig_pass(5000);
    assert_string_equal(rig_take("w", 1)->ids, "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "");
    rig_assert_sums();
}

static void
the_marker_is_put_back_while_jobs_wait_A15b(void **state)
{
    (void)state;
    rig_put_many("A B C");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake)); /* taken */
    rig_take("w", 0);                                          /* its taker has no slot */
    assert_true(rig_has_marker());
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_take("w", 1);
    assert_true(rig_has_marker());
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_take("w", 2);
    assert_false(rig_has_marker());
}

static void
an_unreadable_state_does_not_tear_a_reserve(void **state)
{
    (void)state;
    rig_put_many("A B");
    redis_do(rig.redis, "HSET %s A rubbish", rig_key(WR_QUEUE_KEY_state));
    assert_string_equal(rig_take("w", 2)->ids, "A B");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* ---- types ---- */

static const struct rig_taken *
take_types(const char *worker, size_t free, const char *types)
{
    struct wr_reserve how = {.worker = worker,
                             .call = ++rig.call,
                             .free = free,
                             .lease_ms = RIG_LEASE,
                             .types = types};

    return rig_take_how(&how);
}

static void
put_type(const char *id, const char *head)
{
    struct wr_admit item = rig_item((struct rig_job){.id = id});
    struct wr_admitted out;

    item.head = wr_span_str(head);
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_OK);
    assert_int_equal(out.word, WR_ADMIT_STORED);
}

static void
a_job_of_a_type_the_worker_does_not_run_waits_5_s_uncharged_P01(void **state)
{
    struct weir_audit a;

    (void)state;
    put_type("A", "1 hash");
    put_type("B", "1 mail");
    assert_string_equal(take_types("w", 9, " mail hashes ")->ids, "B");
    assert_string_equal(rig_where("A"), "JL");
    assert_int_equal(rig_score("A"), INT64_C(1796000005000));
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)),
                        "1796000000000 no_handler no handler for type hash on worker w");
    assert_string_equal(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_due)), "1");
    a = rig_audit();
    assert_int_equal(a.shelved, 1);
    assert_int_equal(a.shelved_at, RIG_START);
    assert_string_equal(a.shelved_type, "hash");
    assert_int_equal(a.deliveries, 1);
    rig_assert_sums();
    rig_pass(5000);
    rig_promote(9);
    assert_string_equal(take_types("v", 9, " hash ")->ids, "A"); /* one that knows it */
    assert_int_equal(rig_take("v", 0)->first.attempts, 0);
    rig_assert_sums();
}

static void
a_worker_can_name_what_it_does_not_run(void **state)
{
    (void)state;
    put_type("A", "1 hash");
    put_type("B", "1 mail");
    assert_string_equal(take_types("w", 9, "! hash ")->ids, "B");
    assert_string_equal(rig_where("A"), "JL");
    rig_assert_sums();
}

static void
being_put_off_again_and_again_keeps_the_older_errors(void **state)
{
    const char *errors;

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_retry("w", "A", 0);
    for (int i = 0; i < 12; i++) {
        rig_promote(9);
        assert_string_equal(take_types("w", 1, " other ")->ids, "");
        rig_pass(5000);
    }
    errors = redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors));
    assert_non_null(strstr(errors, "1796000000000 failed"));
    assert_non_null(strstr(errors, "1796000055000 no_handler"));
    assert_null(strstr(errors, "1796000050000 no_handler"));
    assert_int_equal(rig_stat("shelved"), 12);
    rig_assert_sums();
}

static void
at_most_a_hundred_are_put_off_in_one_call(void **state)
{
    char id[16];

    (void)state;
    for (int i = 0; i < 130; i++) {
        snprintf(id, sizeof(id), "j%03d", i);
        rig_put(id);
    }
    put_type("M", "1 mail");
    assert_int_equal(take_types("w", 1, " mail ")->word, WR_RESERVE_MORE);
    assert_int_equal(rig_stat("shelved"), 100);
    assert_true(rig_has_marker());
    assert_string_equal(take_types("w", 1, " mail ")->ids, "M");
    assert_int_equal(rig_stat("shelved"), 130);
    rig_assert_sums();
}

static void
a_record_that_cannot_be_read_is_handed_out_whatever_the_types(void **state)
{
    (void)state;
    rig_put("A");
    redis_do(rig.redis, "HSET %s A nonsense", rig_key(WR_QUEUE_KEY_jobs));
    assert_string_equal(take_types("w", 1, " mail ")->ids, "A"); /* it will be buried */
    rig_assert_sums();
}

static void
long_and_short_records_come_in_their_order_A22(void **state)
{
    char *big = calloc(1, 5000);

    (void)state;
    assert_non_null(big);
    rig_put("A");
    assert_string_equal(redis_do(rig.redis, "HGET %s long", rig_key(WR_QUEUE_KEY_config)),
                        "(nil)");
    rig_put_job((struct rig_job){.id = "B", .payload = {big, 5000}});
    free(big);
    rig_put_many("C D");
    rig_cancel("C");
    assert_string_equal(redis_do(rig.redis, "HGET %s long", rig_key(WR_QUEUE_KEY_config)),
                        "1");
    assert_string_equal(rig_take("w", 9)->ids, "A B D");
    rig_assert_sums();
}

/* ---- exchange ---- */

static struct wr_batch
exchange(const char *worker, int64_t call, size_t free, const char *id,
         enum wr_answered *acked)
{
    struct wr_reserve how = {
        .worker = worker, .call = call, .free = free, .lease_ms = RIG_LEASE};
    struct wr_answer a = {.id = wr_span_str(id),
                          .token = wr_span_str(rig_token(worker, id)),
                          .result = wr_span_str("out")};
    struct wr_batch batch;

    assert_int_equal(
        wr_store_exchange(rig.store, rig.queue, &how, &a, 1, acked, &batch, &rig.err),
        WEIR_OK);
    return batch;
}

static void
exchange_ends_and_takes_in_one_call(void **state)
{
    enum wr_answered acked;
    struct wr_batch b;

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " keep=1000"});
    rig_put("B");
    rig_take("w", 1);
    b = exchange("w", 9, 1, "A", &acked);
    assert_int_equal(acked, WR_ANSWERED_OK);
    assert_int_equal(b.n, 1);
    assert_memory_equal(b.jobs[0].id.ptr, "B", 1);
    wr_batch_fini(&b);
    assert_string_equal(rig_where("A"), "JKS");
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_results)),
                        "out");
    rig_assert_sums();
}

static void
a_repeated_exchange_says_answered_and_gives_the_same_jobs_A9(void **state)
{
    enum wr_answered acked;
    struct wr_batch b;

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " keep=1000"});
    rig_put_many("B C");
    rig_take("w", 1);
    for (int i = 0; i < 2; i++) {
        b = exchange("w", 9, 1, "A", &acked);
        assert_int_equal(acked, i == 0 ? WR_ANSWERED_OK : WR_ANSWERED_BEFORE);
        assert_int_equal(b.n, 1);
        assert_memory_equal(b.jobs[0].id.ptr, "B", 1);
        wr_batch_fini(&b);
    }
    assert_int_equal(rig_stat("done"), 1);
    assert_int_equal(rig_stat("deliveries"), 2);
    rig_assert_sums();
}

static void
exchange_of_a_stale_handle_still_takes_T8(void **state)
{
    enum wr_answered acked;
    struct wr_batch b;

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    rig_pass(RIG_LEASE);
    rig_reclaim();
    b = exchange("w", 9, 1, "A", &acked);
    assert_int_equal(acked, WR_ANSWERED_STALE);
    assert_int_equal(b.n, 1); /* as a new delivery */
    assert_int_equal(b.jobs[0].state.deliveries, 2);
    wr_batch_fini(&b);
    assert_int_equal(rig_stat("stale"), 1);
    rig_assert_sums();
}

/* Its body was deleted by hand and its id enqueued anew, so it stands in two places. */
static void
what_an_exchange_ends_is_gone_before_its_next_jobs_are_looked_at_A17(void **state)
{
    enum wr_answered acked;
    struct wr_batch b;

    (void)state;
    rig_put("A");
    rig_lose_body("A");
    rig_put("A");
    rig_take("w", 1);
    b = exchange("w", 9, 1, "A", &acked);
    assert_int_equal(acked, WR_ANSWERED_OK);
    assert_int_equal(b.n, 0);
    wr_batch_fini(&b);
    assert_string_equal(rig_where("A"), "JX"); /* under its own name, for nobody has it */
    rig_assert_sums();
}

static void
exchange_on_a_paused_queue_acks_and_takes_nothing(void **state)
{
    enum wr_answered acked;
    struct wr_batch b;

    (void)state;
    rig_put_many("A B");
    rig_take("w", 1);
    rig_pause();
    b = exchange("w", 9, 1, "A", &acked);
    assert_int_equal(acked, WR_ANSWERED_OK);
    assert_int_equal(b.word, WR_RESERVE_PAUSED);
    assert_int_equal(b.n, 0);
    wr_batch_fini(&b);
    rig_assert_sums();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_delivery_has_a_token_a_lease_and_a_count_L02),
        RIG_TEST(what_a_job_does_not_say_of_its_result_its_worker_does),
        RIG_TEST(what_a_job_does_not_say_of_its_result_its_worker_does),
        RIG_TEST(nothing_ready_is_said),
        RIG_TEST(no_more_than_asked_for_is_handed_out_P03),
        RIG_TEST(tokens_never_repeat_for_an_id_that_lives_again_A2),
        RIG_TEST(the_token_alone_does_not_hold_a_job_A2),
        RIG_TEST(a_repeated_call_gets_the_same_jobs_A9),
        RIG_TEST(a_repeat_does_not_take_what_was_lost_meanwhile_A9),
        RIG_TEST(a_repeat_gives_its_jobs_a_whole_lease_A9),
        RIG_TEST(other_workers_calls_are_no_repeats_A9),
        RIG_TEST(a_job_delivered_before_is_not_claimed_ahead_A12),
        RIG_TEST(ahead_stops_before_one_that_was_delivered_before_A12),
        RIG_TEST(a_paused_queue_hands_out_nothing_T23),
        RIG_TEST(bytes_bound_a_call_but_never_below_one_job_A22),
        RIG_LIST_TEST(a_tombstone_is_skipped_and_uncounted_A4),
        RIG_LIST_TEST(a_missing_body_is_told_from_a_tombstone_A4a),
        RIG_LIST_TEST(a_thousand_tombstones_are_skipped_a_call_A4e),
        RIG_LIST_TEST(a_lost_body_is_dead_and_counted_A17),
        RIG_LIST_TEST(a_place_without_body_whose_id_lives_again_gets_another_name_A17),
        RIG_LIST_TEST(a_second_place_of_an_id_runs_nothing_wherever_the_first_is_A17),
        RIG_TEST(a_job_too_late_to_start_expires_to_the_ms_T12),
        RIG_TEST(a_job_that_started_once_does_not_expire_T12),
        RIG_TEST(words_in_a_payload_are_no_options),
        RIG_TEST(the_marker_is_put_back_while_jobs_wait_A15b),
        RIG_TEST(an_unreadable_state_does_not_tear_a_reserve),
        RIG_TEST(exchange_ends_and_takes_in_one_call),
        RIG_TEST(a_repeated_exchange_says_answered_and_gives_the_same_jobs_A9),
        RIG_TEST(exchange_of_a_stale_handle_still_takes_T8),
        RIG_LIST_TEST(
            what_an_exchange_ends_is_gone_before_its_next_jobs_are_looked_at_A17),
        RIG_TEST(a_job_of_a_type_the_worker_does_not_run_waits_5_s_uncharged_P01),
        RIG_TEST(a_worker_can_name_what_it_does_not_run),
        RIG_TEST(being_put_off_again_and_again_keeps_the_older_errors),
        RIG_TEST(at_most_a_hundred_are_put_off_in_one_call),
        RIG_LIST_TEST(a_record_that_cannot_be_read_is_handed_out_whatever_the_types),
        RIG_TEST(long_and_short_records_come_in_their_order_A22),
        RIG_TEST(exchange_on_a_paused_queue_acks_and_takes_nothing),
    };

    return RIG_MAIN(tests);
}
