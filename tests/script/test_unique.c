/* Unique keys: who holds one, how long, what happens to those that come meanwhile. */
#include "script/rig.h"

#include <stdio.h>
#include <string.h>

#define ALL "ready,delayed,processing,dead,done"

/* A job with key k; states NULL: the default; mode as in the item, "" or " r" or " l". */
static struct wr_admit
job(const char *id, const char *payload, const char *states, const char *mode,
    const char *due)
{
    static char options[8][128], unique[8][32];
    static unsigned turn;
    unsigned at = turn++ % 8;

    snprintf(options[at], sizeof(options[0]), " keep=9000 unique=k%s%s",
             states ? " unique_states=" : "", states ? states : "");
    snprintf(unique[at], sizeof(unique[0]), "0 k%s", mode);
    return rig_item((struct rig_job){.id = id,
                                     .options = options[at],
                                     .payload = {payload, strlen(payload)},
                                     .unique = unique[at],
                                     .due = due});
}

static enum wr_admit_word
put(struct wr_admit item)
{
    struct wr_admitted out;

    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_OK);
    return out.word;
}

/* What the library does with a job that may take another's place; *id is whose it got. */
static enum weir_err
put_last(struct wr_admit item, char id[256])
{
    struct wr_replaced replaced;
    enum weir_err rc = wr_store_replace(rig.store, rig.queue, &rig.channel, &item,
                                        &replaced, &rig.err);

    snprintf(id, 256, "%s", rc == WEIR_OK ? replaced.id : "");
    if (rc != WEIR_E_NO_JOB)
        return rc;
    snprintf(id, 256, "%s", (const char *)item.id.ptr);
    return put(item) == WR_ADMIT_STORED ? WEIR_OK : WEIR_E_UNIQUE;
}

static bool
is_held(void)
{
    return strcmp(redis_do(rig.redis, "HEXISTS %s k", rig_key(WR_QUEUE_KEY_unique)),
                  "1") == 0;
}

/* Nobody holds the key: another job may have it, and ends. */
static void
assert_free(const char *id)
{
    assert_false(is_held());
    assert_int_equal(put(job(id, "x", NULL, "", NULL)), WR_ADMIT_STORED);
    assert_int_equal(rig_cancel(id), WR_CANCEL_READY);
    rig_assert_sums();
}

/* ---- held, and let go ---- */

static void
a_key_outlives_the_death_of_its_worker_and_not_its_job_U01(void **state)
{
    (void)state;
    put(job("A", "x", NULL, "", NULL));
    rig_take("w", 1);
    rig_pass(RIG_LEASE);
    rig_reclaim();
    assert_int_equal(put(job("B", "x", NULL, "", NULL)), WR_ADMIT_UNIQUE);
    assert_string_equal(rig_take("w2", 1)->ids, "A");
    assert_int_equal(put(job("B", "x", NULL, "", NULL)), WR_ADMIT_UNIQUE);
    rig_ack("w2", "A");
    assert_free("B");
}

/* Takes A to its end by one way; false: there are no more ways. */
static bool
end_by(int way)
{
    const char *states = way >= 5 ? ALL : NULL;
    const char *due = way == 1 ? "+500" : "";
    size_t moved;

    if (way == 2) {
        rig_put_job((struct rig_job){
            .id = "A", .options = " expires=5 unique=k", .unique = "0 k"});
        rig_pass(5);
        return rig_take("w", 1)->n == 0;
    }
    put(job("A", "x", states, "", due));
    switch (way) {
    case 0:
    case 1:
        return rig_cancel("A") <= WR_CANCEL_DELAYED;
    case 3: /* cancelled while it runs */
        rig_take("w", 1);
        rig_cancel("A");
        return rig_retry("w", "A", 0) == WR_ANSWERED_CANCELLED;
    case 4: /* dead */
        rig_take("w", 1);
        return rig_bury("w", "A") == WR_ANSWERED_OK;
    case 5: /* dead, and purged */
    case 6: /* by the limits */
        rig_take("w", 1);
        rig_bury("w", "A");
        assert_true(is_held());
        if (way == 5)
            return rig_purge("A") == WR_REPLAY_OK;
        rig_script("trim", "1796000900000", "9", "0", "1", "0", NULL);
        return rig_stat("trimmed") == 1;
    case 7: /* kept, and forgotten */
        rig_take("w", 1);
        rig_ack("w", "A");
        assert_true(is_held());
        rig_pass(9000);
        return rig_forget(9).moved == 1;
    case 8: /* all that wait are purged */
        assert_int_equal(rig_cancel("A"), WR_CANCEL_READY);
        return true;
    case 9: /* of many dead ones */
        rig_take("w", 1);
        rig_bury("w", "A");
        assert_int_equal(
            wr_store_purge(rig.store, rig.queue, NULL, 9, 0, NULL, &moved, &rig.err),
            WEIR_OK);
        return moved > 0;
    default:
        return false;
    }
}

static void
every_end_of_a_job_lets_its_key_go_U02(void **state)
{
    int way = 0;

    (void)state;
    for (; way < 10; way++) {
        rig_fresh(NULL);
        rig_put("other");
        rig_take("v", 1);
        if (!end_by(way))
            fail_msg("way %d", way);
        if (is_held())
            fail_msg("after way %d the key is still held", way);
        assert_free("B");
    }
}

static void
a_dead_job_holds_its_key_only_if_it_was_asked_to_U04(void **state)
{
    (void)state;
    put(job("A", "x", NULL, "", NULL));
    rig_take("w", 1);
    rig_bury("w", "A");
    assert_free("B");
    put(job("C", "x", "ready,delayed,processing,dead", "", NULL));
    rig_take("w", 1);
    rig_bury("w", "C");
    assert_int_equal(put(job("D", "x", NULL, "", NULL)), WR_ADMIT_UNIQUE);
    assert_int_equal(rig_replay("A"), WR_REPLAY_UNIQUE);
    assert_int_equal(rig_replay("C"), WR_REPLAY_OK); /* its own key */
    assert_string_equal(rig_take("w", 1)->ids, "C");
    rig_ack("w", "C");
    assert_int_equal(rig_replay("A"), WR_REPLAY_OK);
    assert_int_equal(put(job("D", "x", NULL, "", NULL)), WR_ADMIT_UNIQUE);
    rig_assert_sums();
}

static void
a_key_is_held_through_a_long_run_and_its_retries_U05(void **state)
{
    (void)state;
    put(job("A", "x", NULL, "", NULL));
    for (int run = 0; run < 3; run++) {
        rig_take("w", 1);
        for (int minute = 0; minute < 4; minute++) {
            rig_pass(10000);
            rig_extend("w", "A", 0);
            assert_int_equal(put(job("B", "x", NULL, "", NULL)), WR_ADMIT_UNIQUE);
        }
        rig_retry("w", "A", 40000);
        rig_pass(39999);
        assert_int_equal(put(job("B", "x", NULL, "", NULL)), WR_ADMIT_UNIQUE);
        rig_pass(1);
        rig_promote(9);
    }
    rig_assert_sums();
}

static void
a_window_is_over_to_the_ms_whatever_becomes_of_its_job_U05_U11(void **state)
{
    struct rig_job b = {.id = "B", .options = " unique=k", .unique = "200 k"};

    (void)state;
    rig_put_job((struct rig_job){
        .id = "A", .options = " unique=k", .unique = "200 k", .due = "+100"});
    rig_pass(100);
    rig_promote(9);
    rig_take("w", 1);
    rig_ack("w", "A");
    rig_pass(99);
    assert_int_equal(rig_put_job(b), WR_ADMIT_UNIQUE);
    rig_pass(1);
    assert_int_equal(rig_put_job(b), WR_ADMIT_STORED);
    rig_assert_sums();
}

static void
a_job_that_holds_its_key_till_it_starts_may_enqueue_its_successor_U05(void **state)
{
    (void)state;
    put(job("A", "x", "ready,delayed", "", NULL));
    assert_int_equal(put(job("B", "x", "ready,delayed", "", NULL)), WR_ADMIT_UNIQUE);
    rig_take("w", 1);
    assert_int_equal(put(job("B", "x", "ready,delayed", "", NULL)), WR_ADMIT_STORED);
    rig_ack("w", "A");
    assert_true(is_held()); /* by B */
    rig_take("w", 1);
    assert_false(is_held());
    rig_retry("w", "B", 100); /* it waits again, and nobody has its key */
    assert_int_equal(put(job("C", "x", "ready,delayed", "", NULL)), WR_ADMIT_UNIQUE);
    rig_assert_sums();
}

/* ---- those that come meanwhile ---- */

/* An ack and a reserve of one job in one call. */
static void
rig_exchange_ack(const char *worker, const char *id)
{
    struct wr_reserve how = {
        .worker = worker, .call = rig.call++, .free = 1, .lease_ms = RIG_LEASE};
    struct wr_answer answer = {.id = wr_span_str(id),
                               .token = wr_span_str(rig_token(worker, id)),
                               .result = wr_span_str("")};
    enum wr_answered acked;
    struct wr_batch batch;

    assert_int_equal(wr_store_exchange(rig.store, rig.queue, &how, &answer, 1, &acked,
                                       &batch, &rig.err),
                     WEIR_OK);
    assert_int_equal(acked, WR_ANSWERED_OK);
    wr_batch_fini(&batch);
}

static void
a_conflict_replaces_the_holder_that_waits_U06(void **state)
{
    char id[256];

    (void)state;
    put(job("A", "old", NULL, "", NULL));
    assert_int_equal(put_last(job("B", "new", NULL, " r", NULL), id), WEIR_OK);
    assert_string_equal(id, "A");
    assert_string_equal(rig_where("B"), "");
    assert_string_equal(rig_record("A"), "1 t 1796000000000 keep=9000 unique=k\nnew");
    rig_take("w", 1);
    assert_int_equal(put_last(job("B", "new", NULL, " r", NULL), id), WEIR_E_UNIQUE);
    rig_assert_sums();
}

static void
five_that_come_while_one_runs_give_exactly_one_more_with_the_last_payload_U06(
    void **state)
{
    char id[256], payload[8];

    (void)state;
    assert_int_equal(put_last(job("A", "p", NULL, " l", NULL), id), WEIR_OK);
    assert_string_equal(rig_take("w", 9)->ids, "A");
    for (int i = 1; i <= 5; i++) {
        snprintf(payload, sizeof(payload), "p%d", i);
        assert_int_equal(put_last(job(payload, payload, NULL, " l", NULL), id), WEIR_OK);
        assert_string_equal(id, "p1"); /* the first of them */
    }
    assert_int_equal(rig_take("w2", 9)->n, 0); /* not beside the one that runs */
    rig_retry("w", "A", 0);                    /* which has not ended yet */
    rig_promote(9);
    assert_string_equal(rig_take("w", 9)->ids, "A");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_ack("w", "A"); /* does not free what is not its own any more */
    assert_true(rig_has_marker());
    assert_string_equal(rig_take("w2", 9)->ids, "p1");
    assert_string_equal(rig_record("p1"), "1 t 1796000000000 keep=9000 unique=k\np5");
    assert_int_equal(put(job("B", "x", NULL, "", NULL)), WR_ADMIT_UNIQUE);
    rig_ack("w2", "p1");
    assert_int_equal(rig_take("w", 9)->n, 0);
    assert_free("B");
}

/* Whatever the end of the one that runs: the one that waits for it is let in. */
static void
the_end_of_a_job_lets_in_the_one_that_waits_for_it_U06(void **state)
{
    char id[256];

    (void)state;
    for (int way = 0; way < 6; way++) {
        rig_fresh(NULL);
        put_last(job("A", "x", NULL, " l", NULL), id);
        rig_take("w", 1);
        put_last(job("B", "x", NULL, " l", NULL), id);
        assert_string_equal(rig_where("B"), "JL");
        if (way == 0)
            rig_bury("w", "A");
        if (way == 1 || way == 2)
            rig_cancel("A");
        if (way == 1)
            rig_release("w", "A");
        if (way == 2) {
            rig_pass(RIG_LEASE);
            rig_reclaim();
        }
        if (way == 3) { /* while it waits for its next attempt */
            rig_retry("w", "A", 5000);
            rig_cancel("A");
        }
        for (int loss = 0; way == 4 && loss < 3; loss++) {
            rig_pass(20 * RIG_LEASE);
            rig_promote(9);
            if (loss > 0)
                rig_take("w", 1);
            rig_pass(RIG_LEASE);
            rig_reclaim();
        }
        if (way == 5) {
            rig_exchange_ack("w", "A");
            assert_string_equal(rig_where("B"), "JPS"); /* handed out by the same call */
        } else if (strcmp(rig_where("B"), "JR") != 0)
            fail_msg("way %d: %s", way, rig_where("B"));
        rig_assert_sums();
    }
}

static void
one_that_waits_for_another_gives_the_key_back_when_it_is_called_off_U06(void **state)
{
    char id[256];

    (void)state;
    put_last(job("A", "x", NULL, " l", NULL), id);
    rig_take("w", 1);
    put_last(job("B", "x", NULL, " l", NULL), id);
    rig_cancel("B");
    assert_int_equal(put(job("C", "x", NULL, "", NULL)), WR_ADMIT_UNIQUE);
    rig_ack("w", "A");
    assert_free("C");
}

/* The one that waited for A is gone, its key and what it waited for are not: they are
 * nothing to the job that gets the key next, and has a time of its own. */
static void
the_record_of_one_that_waits_may_go_and_no_other_starts_early_U06_A17(void **state)
{
    char id[256];

    (void)state;
    for (int way = 0; way < 2; way++) {
        rig_fresh(NULL);
        put_last(job("A", "x", NULL, " l", NULL), id);
        rig_take("w", 1);
        put_last(job("B", "x", NULL, " l", NULL), id);
        rig_lose_body("B");
        if (way == 0) {
            assert_int_equal(put(job("C", "x", NULL, "", "+5000")), WR_ADMIT_STORED);
        } else {
            assert_int_equal(put_last(job("C", "x", NULL, " l", "+5000"), id), WEIR_OK);
            assert_string_equal(id, "C");
        }
        rig_ack("w", "A");
        assert_string_equal(rig_where("C"), "JL");
        rig_pass(5000);
        rig_promote(9);
        assert_string_equal(rig_where("C"), "JR");
    }
}

/* It waited longer than anybody waits for another, was let in, and got a time of its own.
 */
static void
who_waited_a_day_and_is_put_off_waits_for_nobody_U06(void **state)
{
    char id[256], now[32];

    (void)state;
    for (int way = 0; way < 2; way++) {
        rig_fresh(NULL);
        put_last(job("A", "x", NULL, " l", NULL), id);
        rig_take("w", 1);
        put_last(job("B", "x", NULL, " l", NULL), id);
        rig_pass(86400000);
        snprintf(now, sizeof(now), "%lld", (long long)rig.now);
        rig_promote(9);
        assert_string_equal(rig_where("B"), "JR");
        if (way == 0)
            rig_script("reschedule", now, "B", "+5000", NULL);
        else
            put_last(job("B", "y", NULL, " l", "+5000"), id);
        rig_ack("w", "A");
        assert_string_equal(rig_where("B"), "JL");
        rig_assert_sums();
    }
}

static void
debounced_jobs_run_once_so_long_after_the_last_with_its_payload_U06(void **state)
{
    char id[256], name[8];

    (void)state;
    for (int i = 0; i < 10; i++) {
        if (i > 0)
            rig_pass(100);
        snprintf(name, sizeof(name), "p%d", i);
        assert_int_equal(put_last(job(name, name, NULL, " l", "+1000"), id), WEIR_OK);
        assert_string_equal(id, "p0");
        assert_int_equal(rig_promote(9).moved, 0);
    }
    rig_pass(999);
    assert_int_equal(rig_promote(9).moved, 0);
    rig_pass(1);
    assert_int_equal(rig_promote(9).moved, 1);
    /* Due, and still not started: one that comes now puts it off again. */
    assert_int_equal(put_last(job("late", "late", NULL, " l", "+1000"), id), WEIR_OK);
    assert_string_equal(id, "p0");
    assert_int_equal(rig_take("w", 9)->n, 0);
    rig_assert_sums();
    rig_pass(1000);
    rig_promote(9);
    assert_string_equal(rig_take("w", 9)->ids, "p0");
    assert_string_equal(rig_record("p0"), "1 t 1796000000000 keep=9000 unique=k\nlate");
    assert_int_equal(rig_stat("enqueued"), 1);
    assert_int_equal(rig_stat("replaced"), 10);
    rig_assert_sums();
}

static void
a_key_is_its_exact_bytes_U10(void **state)
{
    static const char *const keys[] = {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "K", "k",
                                       "\xc3\xa9",          "e\xcc\x81"};

    (void)state;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char id[8], options[64], unique[64];

        snprintf(id, sizeof(id), "j%zu", i);
        snprintf(options, sizeof(options), " unique=%s", keys[i]);
        snprintf(unique, sizeof(unique), "0 %s", keys[i]);
        assert_int_equal(
            rig_put_job((struct rig_job){.id = id, .options = options, .unique = unique}),
            WR_ADMIT_STORED);
        assert_int_equal(rig_put_job((struct rig_job){
                             .id = "again", .options = options, .unique = unique}),
                         WR_ADMIT_UNIQUE);
    }
    rig_assert_sums();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_key_outlives_the_death_of_its_worker_and_not_its_job_U01),
        RIG_TEST(every_end_of_a_job_lets_its_key_go_U02),
        RIG_TEST(a_dead_job_holds_its_key_only_if_it_was_asked_to_U04),
        RIG_TEST(a_key_is_held_through_a_long_run_and_its_retries_U05),
        RIG_TEST(a_window_is_over_to_the_ms_whatever_becomes_of_its_job_U05_U11),
        RIG_TEST(a_job_that_holds_its_key_till_it_starts_may_enqueue_its_successor_U05),
        RIG_TEST(a_conflict_replaces_the_holder_that_waits_U06),
        RIG_TEST(
            five_that_come_while_one_runs_give_exactly_one_more_with_the_last_payload_U06),
        RIG_TEST(the_end_of_a_job_lets_in_the_one_that_waits_for_it_U06),
        RIG_TEST(one_that_waits_for_another_gives_the_key_back_when_it_is_called_off_U06),
        RIG_TEST(the_record_of_one_that_waits_may_go_and_no_other_starts_early_U06_A17),
        RIG_TEST(who_waited_a_day_and_is_put_off_waits_for_nobody_U06),
        RIG_TEST(debounced_jobs_run_once_so_long_after_the_last_with_its_payload_U06),
        RIG_TEST(a_key_is_its_exact_bytes_U10),
    };

    return RIG_MAIN(tests);
}
