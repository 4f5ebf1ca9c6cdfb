/* What people decide and look at: cancel, replay, purge, replace, pause, inspect, browse.
 */
#include "script/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static void
put_unique(const char *id, const char *key, enum wr_admit_word word)
{
    char options[64], unique[64];

    snprintf(options, sizeof(options), " unique=%s", key);
    snprintf(unique, sizeof(unique), "0 %s", key);
    assert_int_equal(
        rig_put_job((struct rig_job){.id = id, .options = options, .unique = unique}),
        word);
}

/* ---- cancel ---- */

static void
a_job_that_goes_round_is_cancelled_wherever_it_is_L18(void **state)
{
    (void)state;
    for (int where = 0; where < 3; where++) {
        rig_put_job((struct rig_job){.id = "A", .options = " max_deliveries=0"});
        for (int loss = 0; loss < 2; loss++) {
            assert_string_equal(rig_take("w", 1)->ids, "A");
            if (where == 2 && loss == 1)
                break;
            rig_pass(RIG_LEASE);
            rig_reclaim();
            if (where == 0)
                break;
        }
        assert_int_equal(rig_cancel("A"), where == 0   ? WR_CANCEL_READY
                                          : where == 1 ? WR_CANCEL_DELAYED
                                                       : WR_CANCEL_FLAGGED);
        rig_pass(RIG_LEASE);
        rig_reclaim();
        rig_promote(9);
        assert_int_equal(rig_take("w", 1)->n, 0);
        assert_string_equal(rig_where("A"), "");
        rig_assert_sums();
    }
}

static void
a_waiting_job_is_cancelled_at_once(void **state)
{
    (void)state;
    rig_put_many("B A");
    assert_int_equal(rig_cancel("A"), WR_CANCEL_READY);
    assert_int_equal(rig_cancel("A"), WR_CANCEL_GONE);
    assert_string_equal(rig_where("A"), rig_or_tomb("RT"));
    assert_int_equal(rig_stat("cancelled_ready"), 1);
    rig_put_job((struct rig_job){.id = "C", .due = "+100"});
    assert_int_equal(rig_cancel("C"), WR_CANCEL_DELAYED);
    assert_int_equal(rig_cancel("C"), WR_CANCEL_GONE);
    assert_string_equal(rig_where("C"), "");
    assert_int_equal(rig_stat("cancelled_delayed"), 1);
    rig_assert_sums();
}

static void
a_running_job_is_flagged_and_its_worker_told_A19(void **state)
{
    (void)state;
    rig_put("A");
    rig_take("w", 1);
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED);
    assert_string_equal(redis_do(rig.redis, "LRANGE weir:worker:w:hint 0 -1"), "cancel");
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED); /* twice: the same */
    assert_string_equal(rig_where("A"), "JPS");
    assert_int_equal(rig_stat("cancelled_processing"), 0);
    assert_int_equal(rig_release("w", "A"), WR_ANSWERED_CANCELLED);
    rig_assert_sums();
}

static void
what_ended_cannot_be_cancelled_A19(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " keep=1000"});
    rig_take("w", 1);
    rig_ack("w", "A");
    assert_int_equal(rig_cancel("A"), WR_CANCEL_DONE);
    rig_kill_job("B");
    assert_int_equal(rig_cancel("B"), WR_CANCEL_DEAD);
    assert_int_equal(rig_cancel("C"), WR_CANCEL_GONE);
    assert_string_equal(rig_where("A"), "JKS");
    assert_string_equal(rig_where("B"), "JSX");
    rig_assert_sums();
}

static void
a_released_job_can_be_cancelled_and_comes_to_its_tombstone(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_take("w", 2);
    rig_release("w", "B");
    rig_release("w", "A");
    assert_int_equal(rig_cancel("B"), WR_CANCEL_READY);
    assert_string_equal(rig_where("B"), rig_or_tomb("RT"));
    assert_string_equal(rig_take("w", 9)->ids, "A C");
    rig_assert_sums();
}

static void
tombstones_at_the_front_go_with_the_cancel_that_reaches_them_A4(void **state)
{
    (void)state;
    rig_put_many("A B C D E");
    rig_cancel("C");
    rig_cancel("B");
    assert_string_equal(rig_where("B"), rig_or_tomb("RT"));
    rig_cancel("A");
    assert_string_equal(
        redis_do(rig.redis, "LRANGE %s 0 -1", rig_key(WR_QUEUE_KEY_ready)), "E D");
    assert_int_equal(rig_stat("skipped"), 3);
    assert_string_equal(rig_take("w", 9)->ids, "D E");
    rig_assert_sums();
}

/* Walks no tombstone twice: time by the square would be minutes. */
/* What the server's processor did so far, us: no matter how busy the machine is. */
static int64_t
server_us(void)
{
    const char *text = redis_do(rig.redis, "INFO cpu");
    const char *sys = strstr(text, "used_cpu_sys:"),
               *user = strstr(text, "used_cpu_user:");

    assert_true(sys && user);
    return (int64_t)(1e6 * (strtod(sys + strlen("used_cpu_sys:"), NULL) +
                            strtod(user + strlen("used_cpu_user:"), NULL)));
}

/* Answers what it took the server. */
static int64_t
purge_thousands(struct weir_client *client, int thousands)
{
    size_t moved = 1, sum = 0;
    int calls = 0;
    int64_t began;

    for (int n = 0; n < thousands; n++)
        rig_put_thousand(n * 1000);
    began = server_us();
    for (; moved > 0; calls++) {
        assert_int_equal(weir_queue_purge(client, "q", "ready", 1000, &moved, &rig.err),
                         WEIR_OK);
        sum += moved;
    }
    began = server_us() - began;
    assert_int_equal(sum, thousands * 1000);
    assert_int_equal(calls, thousands + 1);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_tombs)),
                        "0");
    return began;
}

/* Ten times the jobs would take a hundred times as long, were it not so. WEIR_PURGE_JOBS:
 * how many at last. */
static void
a_large_queue_is_purged_in_linear_time(void **state)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT};
    const char *text = getenv("WEIR_PURGE_JOBS");
    int thousands = (text ? atoi(text) : 30000) / 1000;
    struct weir_client *client;
    int64_t few, many;

    (void)state;
    o.url = redis_server_url(rig.redis);
    assert_int_equal(weir_client_open(&o, &client, &rig.err), WEIR_OK);
    few = purge_thousands(client, thousands / 10);
    many = purge_thousands(client, thousands);
    print_message("a tenth: %lld us, all: %lld us\n", (long long)few, (long long)many);
    assert_true(many < 30 * few);
    weir_client_close(client);
    rig_assert_equations(0);
}

/* ---- reschedule ---- */

static enum weir_err
move_to(const char *id, const char *due, int64_t *at)
{
    bool delayed;

    *at = -1;
    return wr_store_reschedule(rig.store, rig.queue, wr_span_str(id), wr_span_str(due),
                               &delayed, at, &rig.err);
}

static void
a_delayed_job_is_moved_to_another_time_or_to_the_front_T01(void **state)
{
    int64_t at;

    (void)state;
    rig_put("first");
    rig_put_job((struct rig_job){.id = "A", .due = "+500"});
    rig_put_job((struct rig_job){.id = "B", .due = "+600"});
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_due));
    assert_int_equal(move_to("A", "+900", &at), WEIR_OK);
    assert_true(at == RIG_START + 900);
    assert_string_equal(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_due)), "0");
    assert_int_equal(move_to("A", "@1796000000100", &at), WEIR_OK);
    assert_string_equal(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_due)), "1");
    assert_int_equal(rig_promote(9).moved, 0);
    rig_pass(100);
    assert_int_equal(rig_promote(9).moved, 1);
    assert_int_equal(move_to("B", "", &at), WEIR_OK);
    assert_true(at == 0);
    assert_string_equal(rig_take("w", 9)->ids, rig_either("B first A", "first A B"));
    assert_int_equal(rig_stat("promoted"), 2);
    assert_int_equal(rig_stat("deferred"), 0);
    rig_assert_sums();
}

static void
a_ready_job_is_deferred_and_runs_once_when_it_is_due_A4b(void **state)
{
    int64_t at;

    (void)state;
    rig_put_many("A B C");
    assert_int_equal(move_to("B", "+100", &at), WEIR_OK);
    assert_string_equal(rig_where("B"), rig_or_tomb("JLRT"));
    rig_assert_sums();
    assert_string_equal(rig_take("w", 1)->ids, "A");
    rig_pass(100);
    rig_promote(9);
    assert_string_equal(rig_where("B"), "JR"); /* a list: in its old place, once */
    assert_string_equal(rig_take("w", 9)->ids, rig_either("B C", "C B"));
    assert_int_equal(rig_stat("deferred"), 1);
    rig_assert_sums();
}

static void
what_does_not_wait_is_not_rescheduled(void **state)
{
    int64_t at;

    (void)state;
    rig_put_job((struct rig_job){.id = "K", .options = " keep=1000"});
    rig_take("w", 1);
    rig_ack("w", "K");
    rig_kill_job("X");
    rig_put("P");
    rig_take("w", 1);
    assert_int_equal(move_to("K", "", &at), WEIR_E_WRONG_STATE);
    assert_int_equal(move_to("X", "+5", &at), WEIR_E_WRONG_STATE);
    assert_int_equal(move_to("P", "@5", &at), WEIR_E_WRONG_STATE);
    assert_non_null(strstr(rig.err.text, "processing"));
    assert_int_equal(move_to("none", "", &at), WEIR_E_NO_JOB);
    redis_do(rig.redis, "HSET %s lost 'x'", rig_key(WR_QUEUE_KEY_jobs));
    assert_int_equal(move_to("lost", "+5", &at),
                     rig.engine == RIG_LIST ? WEIR_E_CORRUPT : WEIR_E_NO_JOB);
    redis_do(rig.redis, "HDEL %s lost", rig_key(WR_QUEUE_KEY_jobs));
    rig_assert_sums();
}

static void
the_last_waiting_job_takes_list_and_tombstones_along_A4(void **state)
{
    (void)state;
    rig_put_many("A B");
    rig_cancel("A");
    rig_cancel("B");
    assert_string_equal(redis_do(rig.redis, "EXISTS %s %s", rig_key(WR_QUEUE_KEY_ready),
                                 rig_key(WR_QUEUE_KEY_tombs)),
                        "0");
    rig_assert_sums();
}

static void
a_record_without_a_place_is_not_taken_for_ready_A4d(void **state)
{
    (void)state;
    rig_put("A");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_ready)); /* evicted */
    assert_int_equal(rig_cancel("A"), WR_CANCEL_BROKEN);
    assert_string_equal(rig_where("A"), "J");
    assert_int_equal(rig_audit().ready, 0);
}

static void
one_id_twice_in_a_call_is_cancelled_once(void **state)
{
    struct wr_span ids[] = {{"A", 1}, {"A", 1}, {"B", 1}, {"B", 1}};
    enum wr_cancelled out[4];

    (void)state;
    rig_put("A");
    rig_put("C");
    rig_put_job((struct rig_job){.id = "B", .due = "+100"});
    assert_int_equal(wr_store_cancel(rig.store, rig.queue, ids, 4, out, &rig.err),
                     WEIR_OK);
    assert_int_equal(out[0], WR_CANCEL_READY);
    assert_int_equal(out[1], WR_CANCEL_GONE);
    assert_int_equal(out[2], WR_CANCEL_DELAYED);
    assert_int_equal(out[3], WR_CANCEL_GONE);
    rig_assert_sums();
}

/* ---- replay and purge ---- */

static void
a_replayed_job_has_a_new_life_T21(void **state)
{
    const struct rig_taken *t;

    (void)state;
    rig_put_many("A B");
    rig_take("w", 1);
    rig_retry("w", "A", 0);
    rig_promote(1);
    rig_take("w", 2);
    rig_bury("w", "A");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    assert_int_equal(rig_replay("A"), WR_REPLAY_OK);
    assert_string_equal(rig_where("A"), "JRS");
    assert_true(rig_has_marker());
    t = rig_take("w", 1);
    assert_int_equal(t->first.attempts, 0);
    assert_int_equal(t->first.lost, 0);
    assert_int_equal(t->first.deliveries, 3);
    assert_int_equal(rig_replay("A"), WR_REPLAY_GONE);
    assert_int_equal(rig_stat("replayed"), 1);
    rig_assert_sums();
}

static void
a_replayed_job_goes_to_the_back(void **state)
{
    (void)state;
    rig_kill_job("A");
    rig_put_many("B C");
    rig_replay("A");
    assert_string_equal(rig_take("w", 9)->ids, "B C A");
}

static void
replay_takes_the_unique_key_again_or_says_who_has_it_A14b(void **state)
{
    (void)state;
    put_unique("A", "k", WR_ADMIT_STORED);
    rig_take("w", 1);
    rig_bury("w", "A");
    put_unique("B", "k", WR_ADMIT_STORED);
    assert_int_equal(rig_replay("A"), WR_REPLAY_UNIQUE);
    assert_string_equal(rig_where("A"), "JSX");
    rig_take("w", 1);
    rig_ack("w", "B");
    assert_int_equal(rig_replay("A"), WR_REPLAY_OK);
    put_unique("C", "k", WR_ADMIT_UNIQUE);
    rig_assert_sums();
}

static void
two_dead_jobs_of_one_key_do_not_both_come_back_A14b(void **state)
{
    size_t moved;

    (void)state;
    for (char id[] = "A"; id[0] <= 'B'; id[0]++) {
        put_unique(id, "k", WR_ADMIT_STORED);
        rig_take("w", 1);
        rig_bury("w", id);
        rig_pass(1);
    }
    assert_int_equal(
        wr_store_replay(rig.store, rig.queue, NULL, 10, 0, NULL, &moved, &rig.err),
        WEIR_OK);
    assert_int_equal(moved, 1);
    assert_string_equal(rig_where("A"), "JRS");
    assert_string_equal(rig_where("B"), "JSX");
    rig_assert_sums();
}

/* Its record goes by hand before it is ready. */
static void
kill_without_body(const char *id)
{
    rig_put_job((struct rig_job){.id = id, .due = "+1"});
    redis_do(rig.redis, "HDEL %s %s", rig_key(WR_QUEUE_KEY_jobs), id);
    rig_pass(1);
    rig_promote(1);
    rig_take("w", 1);
    assert_non_null(strchr(rig_where(id), 'X'));
}

static void
answers_of_a_replay_stand_at_their_items(void **state)
{
    struct wr_span ids[] = {{"none", 4}, {"A", 1}, {"B", 1}, {"B", 1}};
    enum wr_replayed out[4];
    size_t moved;

    (void)state;
    kill_without_body("A");
    rig_kill_job("B");
    assert_int_equal(
        wr_store_replay(rig.store, rig.queue, ids, 4, 0, out, &moved, &rig.err), WEIR_OK);
    assert_int_equal(moved, 1);
    assert_int_equal(out[0], WR_REPLAY_GONE);
    assert_int_equal(out[1], WR_REPLAY_NOBODY);
    assert_int_equal(out[2], WR_REPLAY_OK);
    assert_int_equal(out[3], WR_REPLAY_GONE);
    rig_assert_sums();
}

static void
stubs_do_not_hide_the_others_from_a_slice(void **state)
{
    size_t moved, looked;

    (void)state;
    kill_without_body("A");
    kill_without_body("B");
    kill_without_body("C");
    rig_pass(5);
    rig_kill_job("D");
    for (size_t page = 0, skip = 0; page < 4; page++) { /* three stubs stand before D */
        assert_int_equal(wr_store_replay_page(rig.store, rig.queue, 1, 0, skip, &looked,
                                              &moved, &rig.err),
                         WEIR_OK);
        assert_int_equal(looked, 1);
        assert_int_equal(moved, page == 3);
        skip += looked - moved;
    }
    assert_string_equal(rig_where("D"), "JRS");
    rig_assert_sums();
}

static void
the_oldest_dead_go_first_and_none_that_died_later(void **state)
{
    size_t moved;

    (void)state;
    rig_kill_job("C");
    rig_pass(10);
    rig_kill_job("B");
    rig_pass(10);
    rig_kill_job("A");
    assert_int_equal(
        wr_store_purge(rig.store, rig.queue, NULL, 1, 0, NULL, &moved, &rig.err),
        WEIR_OK);
    assert_string_equal(rig_where("C"), "");
    assert_int_equal(wr_store_purge(rig.store, rig.queue, NULL, 9, RIG_START + 10, NULL,
                                    &moved, &rig.err),
                     WEIR_OK);
    assert_int_equal(moved, 1);
    assert_string_equal(rig_where("B"), "");
    assert_string_equal(rig_where("A"), "JSX");
    assert_int_equal(rig_stat("purged"), 2);
    rig_assert_sums();
}

static struct wr_moved
trim(size_t limit)
{
    struct wr_moved m;

    assert_int_equal(wr_store_trim(rig.store, rig.queue, limit, &m, &rig.err), WEIR_OK);
    return m;
}

static void
set_config(const char *name, const char *value)
{
    struct wr_span pair[] = {wr_span_str(name), wr_span_str(value)};

    assert_int_equal(wr_store_configure(rig.store, rig.queue, pair, 1, &rig.err),
                     WEIR_OK);
}

static void
dead_jobs_over_the_limit_are_trimmed_and_counted_R03(void **state)
{
    char id[16];

    (void)state;
    for (int i = 0; i < 250; i++) {
        snprintf(id, sizeof(id), "d%d", i);
        rig_kill_job(id);
        redis_do(rig.redis, "HSET %s %s output", rig_key(WR_QUEUE_KEY_log), id);
        rig_pass(1);
    }
    assert_int_equal(trim(1000).moved, 0);
    set_config("dead_max", "100");
    assert_true(trim(100).more);
    assert_int_equal(trim(100).moved, 50);
    assert_int_equal(rig_audit().dead, 100);
    assert_int_equal(rig_stat("trimmed"), 150);
    assert_int_equal(rig_stat("purged"), 150);
    assert_string_equal(redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_log)), "100");
    assert_string_equal(rig_where("d149"), "");
    assert_string_equal(rig_where("d150"), "JSX");
    rig_assert_sums();
    set_config("dead_max", "0"); /* none */
    set_config("dead_age_max", "50");
    assert_int_equal(trim(100).moved, 51); /* d150 died 100 ms ago, d200 50 */
    set_config("dead_age_max", "");
    set_config("dead_bytes_max", "1000");
    while (trim(10).more)
        continue;
    assert_in_range(rig_stat("dead_bytes"), 900, 1000);
    rig_assert_sums();
    while (rig_audit().dead > 0) {
        size_t moved;

        assert_int_equal(
            wr_store_purge(rig.store, rig.queue, NULL, 10, 0, NULL, &moved, &rig.err),
            WEIR_OK);
    }
    assert_int_equal(rig_stat("dead_bytes"), 0);
    rig_assert_sums();
}

/* WEIR_DEAD_JOBS=500000 for the full length. */
static void
many_dead_jobs_are_replayed_each_once_R04(void **state)
{
    const char *text = getenv("WEIR_DEAD_JOBS");
    int thousands = (text ? atoi(text) : 10000) / 1000;
    size_t skip = 0, moved, looked = 1, sum = 0;
    int64_t worst = 0;

    (void)state;
    for (int i = 0; i < thousands; i++) {
        rig_put_thousand(1000 * i);
        rig_kill_thousand();
        if (i == 0) /* bodies of the oldest are lost: more than one page of them */
            for (int n = 0; n < 1000; n++)
                redis_do(rig.redis, "HDEL %s n%d", rig_key(WR_QUEUE_KEY_jobs), n);
    }
    while (looked > 0) {
        int64_t began = wr_clock_us();

        assert_int_equal(wr_store_replay_page(rig.store, rig.queue, 500, 0, skip, &looked,
                                              &moved, &rig.err),
                         WEIR_OK);
        worst = wr_clock_us() - began > worst ? wr_clock_us() - began : worst;
        skip += looked - moved;
        sum += moved;
    }
    print_message("slowest page of 500: %lld us\n", (long long)worst);
    assert_int_equal(sum, (thousands - 1) * 1000);
    assert_int_equal(rig_stat("replayed"), (thousands - 1) * 1000);
    assert_int_equal(rig_audit().dead, 1000);
    rig_assert_equations(-1000);
}

static void
a_purged_job_leaves_nothing(void **state)
{
    (void)state;
    rig_kill_job("A");
    assert_int_equal(rig_purge("A"), WR_REPLAY_OK);
    assert_int_equal(rig_purge("A"), WR_REPLAY_GONE);
    assert_string_equal(rig_where("A"), "");
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_errors)),
                        "0");
    rig_assert_sums();
}

/* ---- replace ---- */

static struct wr_replaced replaced;

static enum weir_err
replace(const char *id, const char *payload, const char *unique, const char *due)
{
    char options[64] = "";
    struct wr_admit item;

    if (unique)
        snprintf(options, sizeof(options), " unique=%s", strchr(unique, ' ') + 1);
    item = rig_item((struct rig_job){.id = id,
                                     .options = options,
                                     .payload = {payload, strlen(payload)},
                                     .unique = unique,
                                     .due = due});
    return wr_store_replace(rig.store, rig.queue, &rig.channel, &item, &replaced,
                            &rig.err);
}

/* An entry of a stream cannot change: there the job goes to the back. */
static void
a_job_that_waits_can_be_replaced_and_keeps_its_place_U07(void **state)
{
    (void)state;
    rig_put_many("A B");
    rig_pass(100);
    assert_int_equal(replace("A", "new", NULL, NULL), WEIR_OK);
    assert_string_equal(rig_record("A"), "1 t 1796000000000\nnew");
    assert_int_equal(rig_stat("replaced"), 1);
    assert_string_equal(rig_take("w", 9)->ids, rig_either("A B", "B A"));
    rig_assert_sums();
}

static void
a_delayed_job_gets_its_new_time(void **state)
{
    (void)state;
    rig_put_job((struct rig_job){.id = "A", .due = "+5000"});
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_due));
    assert_int_equal(replace("A", "new", NULL, NULL), WEIR_OK);
    assert_int_equal(rig_score("A"), INT64_C(1796000005000));
    assert_int_equal(replace("A", "new", NULL, "+100"), WEIR_OK);
    assert_int_equal(rig_score("A"), INT64_C(1796000000100));
    assert_string_equal(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_due)), "1");
    assert_int_equal(replace("A", "new", NULL, "@1"), WEIR_OK); /* over: due at once */
    assert_int_equal(rig_promote(1).moved, 1);
    rig_assert_sums();
}

static void
what_started_or_ended_is_not_replaced_T19(void **state)
{
    (void)state;
    assert_int_equal(replace("A", "new", NULL, NULL), WEIR_E_NO_JOB);
    rig_put_job((struct rig_job){.id = "A", .options = " keep=1000"});
    rig_take("w", 1);
    assert_int_equal(replace("A", "new", NULL, NULL), WEIR_E_WRONG_STATE);
    rig_kill_job("B");
    assert_int_equal(replace("B", "new", NULL, NULL), WEIR_E_WRONG_STATE);
    assert_int_equal(replace("B", "x", NULL, NULL), WEIR_OK); /* it is that very job */
    assert_true(replaced.existed);
    assert_int_equal(replace("C", "new", NULL, NULL), WEIR_E_NO_JOB);
    assert_string_equal(rig_where("C"), "");
    rig_assert_sums();
}

static void
a_kept_id_comes_again_clean_and_a_repeat_of_the_call_makes_no_third_U07(void **state)
{
    struct wr_channel before;

    (void)state;
    rig_put_job((struct rig_job){.id = "A", .options = " keep=9000"});
    rig_take("w", 1);
    rig_ack_result("w", "A", "old result");
    before = rig.channel;
    assert_int_equal(replace("A", "new", NULL, NULL), WEIR_OK);
    assert_true(replaced.anew);
    assert_string_equal(rig_where("A"), "JR");
    assert_string_equal(redis_do(rig.redis, "EXISTS %s %s", rig_key(WR_QUEUE_KEY_results),
                                 rig_key(WR_QUEUE_KEY_state)),
                        "0");
    rig_assert_sums();
    assert_string_equal(rig_take("w", 1)->ids, "A");
    rig_ack("w", "A");
    rig.channel = before; /* the reply was lost, the job is over by now */
    assert_int_equal(replace("A", "new", NULL, NULL), WEIR_OK);
    assert_true(replaced.anew);
    assert_string_equal(replaced.id, "A");
    assert_int_equal(rig_stat("enqueued"), 2);
    assert_int_equal(rig_take("w", 1)->n, 0);
    rig_assert_sums();
}

static void
a_ready_job_that_gets_a_later_time_waits_for_it(void **state)
{
    (void)state;
    rig_put_many("A B");
    assert_int_equal(replace("A", "new", NULL, "+100"), WEIR_OK);
    assert_string_equal(rig_take("w", 9)->ids, "B");
    rig_pass(100);
    rig_promote(9);
    assert_string_equal(rig_take("w", 9)->ids, "A");
    rig_assert_sums();
}

static void
a_replace_takes_a_new_channel_after_a_clash_and_when_late_A3(void **state)
{
    struct wr_channel clone;

    (void)state;
    rig_put("A");
    clone = rig.channel; /* as after a fork that nobody noticed */
    rig_put("B");
    rig.channel = clone; /* the same number, another call */
    assert_int_equal(replace("A", "new", NULL, NULL), WEIR_OK);
    assert_string_not_equal(rig.channel.name, clone.name);
    rig.channel = clone;
    rig.channel.number--; /* late */
    assert_int_equal(replace("B", "new", NULL, NULL), WEIR_OK);
    assert_int_equal(rig_stat("replaced"), 2);
    assert_string_equal(rig_take("w", 9)->ids, "A B");
    rig_assert_sums();
}

static void
replace_gives_the_old_unique_key_back_and_takes_the_new_A14d(void **state)
{
    (void)state;
    put_unique("A", "k1", WR_ADMIT_STORED);
    assert_int_equal(replace("A", "new", "0 k2", NULL), WEIR_OK);
    put_unique("B", "k1", WR_ADMIT_STORED);
    put_unique("C", "k2", WR_ADMIT_UNIQUE);
    assert_int_equal(replace("A", "new", "0 k1", NULL), WEIR_E_UNIQUE);
    assert_int_equal(replace("A", "new", NULL, NULL), WEIR_OK);
    put_unique("C", "k2", WR_ADMIT_STORED);
    rig_take("w", 9);
    rig_ack("w", "A");
    rig_ack("w", "B");
    rig_ack("w", "C");
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_unique)),
                        "0");
    rig_assert_sums();
}

static void
a_cancel_after_a_replace_frees_the_key_of_the_new_record_A14d(void **state)
{
    (void)state;
    put_unique("A", "k1", WR_ADMIT_STORED);
    rig_take("w", 1);
    rig_release("w", "A"); /* its state names k1 */
    assert_int_equal(replace("A", "new", "0 k2", NULL), WEIR_OK);
    assert_int_equal(rig_cancel("A"), WR_CANCEL_READY);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_unique)),
                        "0");
    rig_assert_sums();
}

static void
a_payload_over_the_limit_does_not_replace_D05(void **state)
{
    struct wr_limits limits = {.payload_max = 5, .kept_max = -1, .kept_bytes_max = -1};

    (void)state;
    rig_put("A");
    assert_int_equal(wr_store_create(rig.store, rig.queue, &limits, NULL, &rig.err),
                     WEIR_OK);
    assert_int_equal(replace("A", "123456", NULL, NULL), WEIR_E_TOO_BIG);
    assert_int_equal(replace("A", "12345", NULL, NULL), WEIR_OK);
}

/* ---- pause, resume ---- */

static void
pause_and_resume_say_what_was(void **state)
{
    struct weir_audit a;
    bool was;

    (void)state;
    rig_put("A");
    assert_int_equal(
        wr_store_pause(rig.store, rig.queue, "ann", "too hot", &was, &rig.err), WEIR_OK);
    assert_false(was);
    rig_pass(50);
    assert_int_equal(wr_store_pause(rig.store, rig.queue, "bob", "other", &was, &rig.err),
                     WEIR_OK);
    assert_true(was);
    a = rig_audit();
    assert_true(a.paused);
    assert_string_equal(a.paused_by, "ann");
    assert_string_equal(a.paused_why, "too hot");
    assert_int_equal(a.paused_at, RIG_START);
    assert_false(rig_resume());
    assert_true(rig_resume());
    assert_false(rig_audit().paused);
}

static void
resume_wakes_a_worker_only_if_a_job_waits_A15a(void **state)
{
    (void)state;
    rig_put("A");
    rig_pause();
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_resume();
    assert_true(rig_has_marker());
    rig_cancel("A");
    rig_pause();
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    rig_resume();
    assert_false(rig_has_marker());
}

static void
what_runs_goes_on_while_paused(void **state)
{
    (void)state;
    rig_put_many("A B");
    rig_take("w", 1);
    rig_pause();
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_OK);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_int_equal(rig_cancel("B"), WR_CANCEL_READY);
    rig_assert_sums();
}

/* ---- looking ---- */

static const char *
inspect(const char *id)
{
    return rig_script("inspect", "1796000000000", id, "100", NULL);
}

static void
inspect_tells_all_of_a_job(void **state)
{
    (void)state;
    rig_put("A");
    assert_string_equal(inspect("A"),
                        "OK 1796000000000 ready  1 t 1796000000000\nx 19   0   ");
    assert_string_equal(inspect("B"), "GONE 1796000000000");
    rig_put_job((struct rig_job){.id = "B", .options = " keep=5", .due = "+100"});
    assert_string_equal(inspect("B"), "OK 1796000000000 delayed 1796000000100 "
                                      "1 t 1796000000000 keep=5\nx 26   0   ");
}

static void
an_old_tombstone_does_not_make_a_delayed_job_look_broken_A4b(void **state)
{
    (void)state;
    rig_put_many("A B");
    rig_cancel("A");
    assert_string_equal(inspect("A"), "GONE 1796000000000");
    rig_put_job((struct rig_job){.id = "A", .due = "+100"});
    assert_memory_equal(inspect("A"), "OK 1796000000000 delayed ", 25);
}

static const char *
browse(const char *place, const char *cursor)
{
    return rig_script("browse", "1796000000000", place, cursor, "2", NULL);
}

static void
a_page_of_ready_jobs_leaves_the_cancelled_out(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_cancel("B");
    assert_string_equal(browse("ready", "0"), "OK l2 A  1 t 1796000000000\nx   ");
    assert_string_equal(browse("ready", "l2"), "OK 0 C  1 t 1796000000000\nx   ");
    assert_string_equal(browse("ready", "l3"), "OK 0");
    assert_string_equal(browse("dead", "0"), "OK 0");
}

static void
create_says_whether_the_queue_is_new_A21(void **state)
{
    struct wr_limits limits = {.payload_max = -1, .kept_max = 7, .kept_bytes_max = -1};
    bool made;

    (void)state;
    assert_int_equal(wr_store_create(rig.store, rig.queue, &limits, &made, &rig.err),
                     WEIR_OK);
    assert_true(made);
    assert_int_equal(wr_store_create(rig.store, rig.queue, NULL, &made, &rig.err),
                     WEIR_OK);
    assert_false(made);
    assert_string_equal(
        redis_do(rig.redis, "HMGET %s engine kept_max", rig_key(WR_QUEUE_KEY_config)),
        "list 7");
    assert_string_equal(redis_do(rig.redis, "SISMEMBER weir:queues q"), "1");
    assert_string_equal(rig_script("create", "m", "kept_max", "", NULL), "AGAIN");
    assert_string_equal(
        redis_do(rig.redis, "HEXISTS %s kept_max", rig_key(WR_QUEUE_KEY_config)), "0");
}

static bool
count_queue(const char *name, void *context)
{
    int *n = context;

    (void)name;
    (*n)++;
    return true;
}

static bool
stop_at_once(const char *name, void *context)
{
    count_queue(name, context);
    return false;
}

static void
many_queues_can_be_listed(void **state)
{
    int n = 0;

    (void)state;
    for (int i = 0; i < 9000; i += 10)
        redis_do(rig.redis, "SADD weir:queues q%d q%d q%d q%d q%d q%d q%d q%d q%d q%d", i,
                 i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7, i + 8, i + 9);
    assert_int_equal(wr_store_each_queue(rig.store, count_queue, &n, &rig.err), WEIR_OK);
    assert_int_equal(n, 9000);
    n = 0;
    assert_int_equal(wr_store_each_queue(rig.store, stop_at_once, &n, &rig.err), WEIR_OK);
    assert_int_equal(n, 1);
}

/* A name cut to fit would be another queue's. */
static void
names_that_are_no_queues_are_left_out_of_the_registry(void **state)
{
    char name[201];
    int n = 0;

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    redis_do(rig.redis, "SADD weir:queues %s {odd} good", name);
    assert_int_equal(wr_store_each_queue(rig.store, count_queue, &n, &rig.err), WEIR_OK);
    assert_int_equal(n, 1);
}

/* ---- the leader's lock ---- */

static bool
lead(const char *me, const char *seen, char value[128])
{
    int64_t server_ms;
    bool leads;

    assert_int_equal(wr_store_lead(rig.store, rig.queue, me, seen, &leads, value,
                                   &server_ms, &rig.err),
                     WEIR_OK);
    assert_int_equal(server_ms, rig.now);
    return leads;
}

static void
one_leads_and_another_takes_over_when_nothing_moves_A25(void **state)
{
    char value[128], seen[128];

    (void)state;
    assert_true(lead("a", "", value));
    assert_false(lead("b", "", value));
    snprintf(seen, sizeof(seen), "%s", value);
    assert_true(lead("a", "", value)); /* it moved */
    assert_false(lead("b", seen, value));
    assert_string_not_equal(value, seen);
    rig_clock(RIG_START - 3600000); /* no clock has a say in it */
    assert_true(lead("b", value, seen));
    assert_false(lead("a", "", value));
    assert_int_equal(wr_store_unlead(rig.store, rig.queue, "a", &rig.err), WEIR_OK);
    assert_false(lead("a", "", value)); /* not a's lock: it stays */
    assert_int_equal(wr_store_unlead(rig.store, rig.queue, "b", &rig.err), WEIR_OK);
    assert_true(lead("a", "", value));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_job_that_goes_round_is_cancelled_wherever_it_is_L18),
        RIG_TEST(a_waiting_job_is_cancelled_at_once),
        RIG_TEST(a_running_job_is_flagged_and_its_worker_told_A19),
        RIG_TEST(what_ended_cannot_be_cancelled_A19),
        RIG_TEST(a_released_job_can_be_cancelled_and_comes_to_its_tombstone),
        RIG_LIST_TEST(tombstones_at_the_front_go_with_the_cancel_that_reaches_them_A4),
        RIG_TEST(a_large_queue_is_purged_in_linear_time),
        RIG_TEST(a_delayed_job_is_moved_to_another_time_or_to_the_front_T01),
        RIG_TEST(a_ready_job_is_deferred_and_runs_once_when_it_is_due_A4b),
        RIG_TEST(what_does_not_wait_is_not_rescheduled),
        RIG_LIST_TEST(the_last_waiting_job_takes_list_and_tombstones_along_A4),
        RIG_LIST_TEST(a_record_without_a_place_is_not_taken_for_ready_A4d),
        RIG_TEST(one_id_twice_in_a_call_is_cancelled_once),
        RIG_TEST(a_replayed_job_has_a_new_life_T21),
        RIG_TEST(a_replayed_job_goes_to_the_back),
        RIG_TEST(replay_takes_the_unique_key_again_or_says_who_has_it_A14b),
        RIG_TEST(two_dead_jobs_of_one_key_do_not_both_come_back_A14b),
        RIG_TEST(answers_of_a_replay_stand_at_their_items),
        RIG_TEST(stubs_do_not_hide_the_others_from_a_slice),
        RIG_TEST(the_oldest_dead_go_first_and_none_that_died_later),
        RIG_TEST(dead_jobs_over_the_limit_are_trimmed_and_counted_R03),
        RIG_TEST(many_dead_jobs_are_replayed_each_once_R04),
        RIG_TEST(a_purged_job_leaves_nothing),
        RIG_TEST(a_job_that_waits_can_be_replaced_and_keeps_its_place_U07),
        RIG_TEST(a_delayed_job_gets_its_new_time),
        RIG_TEST(what_started_or_ended_is_not_replaced_T19),
        RIG_TEST(a_kept_id_comes_again_clean_and_a_repeat_of_the_call_makes_no_third_U07),
        RIG_TEST(a_ready_job_that_gets_a_later_time_waits_for_it),
        RIG_TEST(a_replace_takes_a_new_channel_after_a_clash_and_when_late_A3),
        RIG_TEST(replace_gives_the_old_unique_key_back_and_takes_the_new_A14d),
        RIG_TEST(a_cancel_after_a_replace_frees_the_key_of_the_new_record_A14d),
        RIG_TEST(a_payload_over_the_limit_does_not_replace_D05),
        RIG_TEST(pause_and_resume_say_what_was),
        RIG_TEST(resume_wakes_a_worker_only_if_a_job_waits_A15a),
        RIG_TEST(what_runs_goes_on_while_paused),
        RIG_TEST(inspect_tells_all_of_a_job),
        RIG_LIST_TEST(an_old_tombstone_does_not_make_a_delayed_job_look_broken_A4b),
        RIG_LIST_TEST(a_page_of_ready_jobs_leaves_the_cancelled_out),
        RIG_LIST_TEST(create_says_whether_the_queue_is_new_A21),
        RIG_TEST(many_queues_can_be_listed),
        RIG_TEST(names_that_are_no_queues_are_left_out_of_the_registry),
        RIG_TEST(one_leads_and_another_takes_over_when_nothing_moves_A25),
    };

    return RIG_MAIN(tests);
}
