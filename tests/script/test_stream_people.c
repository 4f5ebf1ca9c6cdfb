/* What is particular to looking at a stream and deciding there: its pages, its audit, its
 * consumers. */
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "script/rig.h"

static bool
note_finding(const char *kind, const char *id, const char *detail, void *context)
{
    char *text = context;

    (void)detail;
    snprintf(text + strlen(text), 1024 - strlen(text), "%s %s;", kind, id);
    return true;
}

/* The same of what a repair leaves. */
static bool
note_left(const char *kind, const char *id, const char *detail, void *context)
{
    return strncmp(detail, "left: ", 6) != 0 || note_finding(kind, id, detail, context);
}

/* "kind id;" of each finding. */
static const char *
deep(void)
{
    static char text[1024];
    size_t n;

    text[0] = '\0';
    assert_int_equal(
        wr_audit_deep(rig.store, rig.queue, note_finding, text, &n, &rig.err), WEIR_OK);
    return text;
}

static const char *
stream(void)
{
    return rig_key(WR_QUEUE_KEY_stream);
}

static const char *
entry_of(const char *id)
{
    return redis_do(rig.redis, "HGET %s %s", rig_key(WR_QUEUE_KEY_ids), id);
}

/* The ids of a page, "A B > CURSOR". */
static const char *
page(const char *place, const char *cursor, const char *limit)
{
    static char text[512];
    char now[32];
    struct wr_span words[4];
    struct wr_reply *reply;

    snprintf(now, sizeof(now), "%lld", (long long)rig.now);
    words[0] = wr_span_str(now);
    words[1] = wr_span_str(place);
    words[2] = wr_span_str(cursor);
    words[3] = wr_span_str(limit);
    reply = rig_script_argv("browse", words, 4);
    text[0] = '\0';
    for (size_t i = 2; i < wr_reply_len(reply); i += 6)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.*s ",
                 (int)wr_reply_span(wr_reply_at(reply, i)).len,
                 (const char *)wr_reply_span(wr_reply_at(reply, i)).ptr);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "> %.*s",
             (int)wr_reply_span(wr_reply_at(reply, 1)).len,
             (const char *)wr_reply_span(wr_reply_at(reply, 1)).ptr);
    wr_reply_free(reply);
    return text;
}

static const char *
cursor_of(const char *page_text)
{
    static char cursor[2][64];
    static unsigned turn;

    snprintf(cursor[++turn % 2], 64, "%s", strstr(page_text, "> ") + 2);
    return cursor[turn % 2];
}

/* In the order in which they will be handed out, over the border of front and line. */
static void
a_page_of_a_stream_begins_with_what_was_given_back(void **state)
{
    const char *text, *cursor;

    (void)state;
    rig_put_many("A B C D E");
    rig_take("w", 3);
    rig_release("w", "C");
    rig_release("w", "A");
    text = page("ready", "0", "2");
    assert_memory_equal(text, "A C > ", 6);
    cursor = cursor_of(text);
    text = page("ready", cursor, "2");
    assert_memory_equal(text, "D E > ", 6);
    cursor = cursor_of(text);
    assert_string_equal(page("ready", cursor, "2"), "> 0");
    assert_string_equal(page("ready", "0", "9"), "A C D E > 0");
    assert_string_equal(page("processing", "0", "9"), "B > 0");
    rig_assert_sums();
}

/* A page ends after 256 KiB; a record of more than 64 KiB is not sent. */
static void
a_page_of_large_jobs_is_short(void **state)
{
    static char bytes[100000];
    const char *text;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 6; i++) {
        char id[8];

        snprintf(id, sizeof(id), "L%d", i);
        rig_put_job((struct rig_job){.id = id, .payload = {bytes, sizeof(bytes)}});
    }
    text = page("ready", "0", "100");
    assert_memory_equal(text, "L0 L1 L2 > ", 11);
    text = page("ready", cursor_of(text), "100");
    assert_memory_equal(text, "L3 L4 L5 > ", 11);
    assert_string_equal(page("ready", cursor_of(text), "100"), "> 0");
}

static void
the_deep_audit_sees_what_happened_to_a_stream_by_hand_A25(void **state)
{
    char wanted[256], entry[64];

    (void)state;
    rig_put_many("A B C D");
    assert_string_equal(deep(), "");
    rig_take("w", 2);
    assert_string_equal(deep(), "");
    snprintf(entry, sizeof(entry), "%s", entry_of("B"));

    redis_do(rig.redis, "XDEL %s %s", stream(), entry);
    snprintf(wanted, sizeof(wanted), "no_body lost-%s;orphan_index B;", entry);
    assert_string_equal(deep(), wanted);
    rig_fresh(NULL);

    rig_put_many("A B");
    redis_do(rig.redis, "HDEL %s A", rig_key(WR_QUEUE_KEY_ids));
    assert_string_equal(deep(), "unindexed A;");
    rig_fresh(NULL);

    rig_put_many("A B");
    rig_take("w", 1);
    redis_do(rig.redis, "XGROUP DELCONSUMER %s workers w", stream());
    assert_string_equal(deep(), "passed_over A;");
    rig_fresh(NULL);

    rig_put("A");
    rig_put_job((struct rig_job){.id = "L", .due = "+9000"});
    redis_do(rig.redis, "HSET %s A x", rig_key(WR_QUEUE_KEY_jobs));
    redis_do(rig.redis, "HSET %s N x", rig_key(WR_QUEUE_KEY_jobs));
    redis_do(rig.redis, "ZADD %s 7 A", rig_key(WR_QUEUE_KEY_dead));
    redis_do(rig.redis, "HDEL %s L", rig_key(WR_QUEUE_KEY_jobs));
    snprintf(wanted, sizeof(wanted), "%s", deep());
    assert_non_null(strstr(wanted, "two_places A;"));
    assert_non_null(strstr(wanted, "no_place N;"));
    assert_non_null(strstr(wanted, "no_body L;"));
    redis_do(rig.redis, "ZREM %s A", rig_key(WR_QUEUE_KEY_dead));
    assert_non_null(strstr(deep(), "two_bodies A;"));
}

static struct weir_repair
repair(void)
{
    struct weir_repair r;

    assert_int_equal(wr_audit_repair(rig.store, rig.queue, NULL, NULL, &r, &rig.err),
                     WEIR_OK);
    return r;
}

/* Its jobs come back to the front, what it may still say counts no more, and the sums
 * know that its deliveries are over. */
static void
jobs_of_a_consumer_that_was_deleted_by_hand_come_back_A25(void **state)
{
    struct weir_audit a;

    (void)state;
    rig_put_many("A B C");
    rig_take("w", 2);
    redis_do(rig.redis, "XGROUP DELCONSUMER %s workers w", stream());
    a = rig_audit();
    assert_int_equal(a.gap_processing, 2);
    assert_int_equal(a.gap_ready, -2);
    assert_int_equal(repair().booked, 2);
    assert_string_equal(deep(), "");
    rig_assert_sums();
    assert_int_equal(repair().mended, 0);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_STALE);
    assert_string_equal(rig_take("w", 9)->ids, "A B C");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_assert_sums();
}

/* Those of the front were not given out: there is nothing to book. */
static void
the_front_comes_back_when_it_was_deleted_by_hand_A25(void **state)
{
    struct weir_repair r;

    (void)state;
    rig_put_many("A B");
    rig_take("w", 1);
    rig_release("w", "A");
    redis_do(rig.redis, "XGROUP DELCONSUMER %s workers _front", stream());
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
    r = repair();
    assert_int_equal(r.mended, 1);
    assert_int_equal(r.booked, 0);
    assert_true(rig_has_marker());
    assert_string_equal(rig_take("w", 9)->ids, "A B");
    assert_int_equal(rig_state("A").deliveries, 2);
    rig_assert_sums();
}

static void
an_index_that_was_deleted_by_hand_is_made_again_A5(void **state)
{
    (void)state;
    rig_put_many("A B");
    redis_do(rig.redis, "HDEL %s A", rig_key(WR_QUEUE_KEY_ids));
    assert_int_equal(repair().mended, 1);
    assert_int_equal(rig_cancel("A"), WR_CANCEL_READY);
    rig_assert_sums();

    rig_take("w", 1);
    redis_do(rig.redis, "XDEL %s %s", stream(), entry_of("B"));
    assert_int_equal(repair().left, 2); /* body and index: reclaim books it first */
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().dead, 1);
    assert_int_equal(repair().mended, 1);
    rig_assert_sums();
}

/* Of whatever kind, and also what only the repair brought to light. */
static void
what_a_repair_tells_as_left_is_what_the_next_audit_finds_A25(void **state)
{
    char told[1024] = "";
    struct weir_repair r;

    (void)state;
    rig_put_many("A B C");
    rig_take("w", 1);
    rig_release("w", "A"); /* it has a state */
    redis_do(rig.redis, "XDEL %s %s", stream(), entry_of("A"));
    rig_take("w", 1); /* its body is lost: booked */
    redis_do(rig.redis, "HSET %s N x", rig_key(WR_QUEUE_KEY_jobs));
    redis_do(rig.redis, "HSET %s G x", rig_key(WR_QUEUE_KEY_results));
    redis_do(rig.redis, "HSET %s G x", rig_key(WR_QUEUE_KEY_errors));
    redis_do(rig.redis, "HSET %s key G", rig_key(WR_QUEUE_KEY_unique));
    assert_int_equal(wr_audit_repair(rig.store, rig.queue, note_left, told, &r, &rig.err),
                     WEIR_OK);
    assert_int_equal(r.mended, 1); /* the index of A */
    assert_string_equal(deep(), told);
    assert_int_equal(r.left, 5);
    for (size_t i = 0; i < 5; i++)
        assert_non_null(strstr(
            told, (const char *[]){"no_place N;", "orphan_state A;", "orphan_result G;",
                                   "orphan_error G;", "orphan_unique G;"}[i]));
}

/* Which of them counts only a person knows. */
static void
two_entries_of_one_job_are_left_to_a_person_A5(void **state)
{
    (void)state;
    rig_put("A");
    redis_do(rig.redis, "XADD %s * j x i A", stream());
    assert_string_equal(deep(), "unindexed A;");
    assert_int_equal(repair().left, 1);
    assert_string_equal(deep(), "unindexed A;");
}

/* How long the group has seen nothing of it, in ms of the server; -1: it is not there. */
static long
idle_of(const char *consumer)
{
    char name[64];
    const char *at;
    long pending, idle = -1;

    snprintf(name, sizeof(name), "name %s pending ", consumer);
    at = strstr(redis_do(rig.redis, "XINFO CONSUMERS %s workers", stream()), name);
    if (at && sscanf(at + strlen(name), "%ld idle %ld", &pending, &idle) != 2)
        fail_msg("%s", at);
    return idle;
}

/* Only those that had nothing to do for so long, and never _front. */
static void
consumers_of_workers_that_are_gone_are_swept_A25(void **state)
{
    struct wr_sweep at = {.producers = "0", .claims = "0"};

    (void)state;
    rig_put_many("A B C");
    rig_take("idle", 1);
    rig_ack("idle", "A");
    rig_take("back", 1);
    rig_release("back", "B");
    rig_take("back", 1); /* now _front is empty */
    rig_ack("back", "B");
    rig_take("busy", 1);
    assert_int_equal(wr_store_sweep(rig.store, rig.queue, 3600000, 100, &at, &rig.err),
                     WEIR_OK);
    while (idle_of("idle") < 3 || idle_of("busy") < 3 || idle_of("_front") < 3)
        ; /* time passes while it is asked */
    assert_int_equal(wr_store_sweep(rig.store, rig.queue, 1, 100, &at, &rig.err),
                     WEIR_OK);
    assert_int_equal(idle_of("idle"), -1);
    assert_int_not_equal(idle_of("busy"), -1);
    assert_int_not_equal(idle_of("_front"), -1);
    assert_int_equal(rig_ack("busy", "C"), WR_ANSWERED_OK);
    rig_assert_sums();
}

static void
the_audit_counts_leases_that_are_over(void **state)
{
    (void)state;
    rig_put_many("A B C");
    rig_take("w", 2);
    assert_int_equal(rig_audit().stuck, 0);
    assert_int_equal(rig_audit().oldest_ready, RIG_START);
    rig_pass(RIG_LEASE - 1);
    assert_int_equal(rig_audit().stuck, 0);
    rig_pass(1);
    assert_int_equal(rig_audit().stuck, 2);
    assert_int_equal(rig_audit().processing, 2);
    assert_int_equal(rig_audit().ready, 1);
}

/* A job that nobody renewed so far has no state stored; a flag needs one. */
static void
a_flag_makes_the_state_of_a_job_that_has_none_X01(void **state)
{
    struct wr_job_state s;

    (void)state;
    rig_put("A");
    rig_take("w", 1);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_state)),
                        "0");
    s = rig_state("A");
    assert_string_equal(s.token, rig_token("w", "A"));
    assert_int_equal(s.deliveries, 1);
    assert_false(s.cancelled);
    rig_pass(1000);
    assert_int_equal(rig_cancel("A"), WR_CANCEL_FLAGGED);
    s = rig_state("A");
    assert_true(s.cancelled);
    assert_string_equal(s.token, rig_token("w", "A"));
    assert_int_equal(s.started_at_ms, RIG_START);
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_CANCEL);
    assert_int_equal(rig_retry("w", "A", 5), WR_ANSWERED_CANCELLED);
    rig_assert_sums();
}

/* A page of dead jobs that go back into the stream is short if they are large; a person
 * who names one gets it. */
static void
large_dead_jobs_are_replayed_a_few_at_a_time_A22(void **state)
{
    static char bytes[100000];
    size_t moved, looked, all = 0;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < 7; i++) {
        char id[8];

        snprintf(id, sizeof(id), "L%d", i);
        rig_put_job((struct rig_job){.id = id, .payload = {bytes, sizeof(bytes)}});
    }
    while (all < 7) {
        const struct rig_taken *t = rig_take("w", 9);
        char ids[64], *save = NULL;

        snprintf(ids, sizeof(ids), "%s", t->ids);
        all += t->n;
        for (char *id = strtok_r(ids, " ", &save); id; id = strtok_r(NULL, " ", &save))
            assert_int_equal(rig_bury("w", id), WR_ANSWERED_OK);
    }
    assert_int_equal(
        wr_store_replay_page(rig.store, rig.queue, 9, 0, 0, &looked, &moved, &rig.err),
        WEIR_OK);
    assert_int_equal(moved, 3);
    assert_int_equal(looked, 3);
    assert_int_equal(rig_replay("L6"), WR_REPLAY_OK);
    assert_int_equal(
        wr_store_replay_page(rig.store, rig.queue, 9, 0, 0, &looked, &moved, &rig.err),
        WEIR_OK);
    assert_int_equal(moved, 3);
    rig_assert_sums();
}

/* Somebody chose an id that is written as an entry's, and one day an entry gets that very
 * id: the job in it gets another one, and both are done. */
static void
an_id_that_was_chosen_is_not_made_up_again_U07(void **state)
{
    struct wr_admit items[4];
    struct wr_admitted out[4];

    (void)state;
    rig_put("first");
    redis_do(rig.redis, "XSETID %s 9000000000000-5", stream());
    rig_put("9000000000000-8"); /* in the entry 9000000000000-6 */
    rig_put_job((struct rig_job){.id = "9000000000000-9", .due = "+500"});
    for (int i = 0; i < 4; i++) {
        items[i] = rig_item(
            (struct rig_job){.id = (const char *[]){"a", "b", "c", "d"}[i]});
        items[i].made_up = true;
    }
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, items, 4, out,
                                      NULL, &rig.err),
                     WEIR_OK);
    assert_string_equal(out[0].id, "9000000000000-7");
    for (int i = 1; i < 4; i++) {
        assert_string_not_equal(out[i].id, "9000000000000-8");
        assert_string_not_equal(out[i].id, "9000000000000-9");
    }
    rig_assert_sums();
    rig_pass(500);
    rig_promote(9);
    assert_int_equal(rig_take("w", 9)->n, 7);
    for (int i = 0; i < 4; i++)
        assert_int_equal(rig_ack("w", out[i].id), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w", "9000000000000-8"), WR_ANSWERED_OK);
    assert_int_equal(rig_ack("w", "9000000000000-9"), WR_ANSWERED_OK);
    rig_assert_sums();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_STREAM_TEST(a_page_of_a_stream_begins_with_what_was_given_back),
        RIG_STREAM_TEST(a_page_of_large_jobs_is_short),
        RIG_STREAM_TEST(the_deep_audit_sees_what_happened_to_a_stream_by_hand_A25),
        RIG_STREAM_TEST(jobs_of_a_consumer_that_was_deleted_by_hand_come_back_A25),
        RIG_STREAM_TEST(the_front_comes_back_when_it_was_deleted_by_hand_A25),
        RIG_STREAM_TEST(an_index_that_was_deleted_by_hand_is_made_again_A5),
        RIG_STREAM_TEST(what_a_repair_tells_as_left_is_what_the_next_audit_finds_A25),
        RIG_STREAM_TEST(two_entries_of_one_job_are_left_to_a_person_A5),
        RIG_STREAM_TEST(an_id_that_was_chosen_is_not_made_up_again_U07),
        RIG_STREAM_TEST(large_dead_jobs_are_replayed_a_few_at_a_time_A22),
        RIG_STREAM_TEST(consumers_of_workers_that_are_gone_are_swept_A25),
        RIG_STREAM_TEST(the_audit_counts_leases_that_are_over),
        RIG_STREAM_TEST(a_flag_makes_the_state_of_a_job_that_has_none_X01),
    };

    return RIG_MAIN(tests);
}
