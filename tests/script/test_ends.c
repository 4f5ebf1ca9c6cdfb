/* The end of a job: who waits is told, and its follow-up jobs come, through the outbox.
 */
#include "base/clock.h"
#include "model/follow.h"
#include "redis/conn.h"
#include "redis/server.h"
#include "script/rig.h"

#include <stdio.h>
#include <string.h>

/* ---- who waits ---- */

static struct wr_conn *listening;
static const struct wr_waiter tagged = {"weir:ended:t/1", 30000};

static void
listen_to(const char *channel)
{
    struct wr_reply *reply;

    assert_int_equal(
        wr_server_open(rig.server, "test", wr_clock_ms() + 5000, &listening, &rig.err),
        WEIR_OK);
    assert_int_equal(wr_conn_do(listening, wr_clock_ms() + 5000, &reply, &rig.err,
                                "SUBSCRIBE", channel, (char *)NULL),
                     WEIR_OK);
    wr_reply_free(reply);
}

static int
hang_up(void **state)
{
    (void)state;
    wr_conn_close(listening);
    listening = NULL;
    redis_do(rig.redis, "ACL SETUSER default allchannels");
    return 0;
}

/* The next message, or "". What a script published is there before its answer is. */
static const char *
heard(void)
{
    static char text[200];
    struct wr_reply *reply;
    struct wr_span s;

    text[0] = '\0';
    if (!wr_conn_wait_reply(listening, wr_clock_ms() + 100))
        return text;
    assert_int_equal(wr_conn_recv(listening, wr_clock_ms() + 5000, &reply, &rig.err),
                     WEIR_OK);
    s = wr_reply_span(wr_reply_at(reply, 2));
    snprintf(text, sizeof(text), "%.*s", (int)s.len, (const char *)s.ptr);
    wr_reply_free(reply);
    return text;
}

static void
wait_for(const char *id)
{
    bool ended;

    assert_int_equal(wr_store_wait(rig.store, rig.queue, wr_span_str(id), &tagged, false,
                                   &ended, &rig.err),
                     WEIR_OK);
    assert_false(ended);
}

static bool
is_waited_for(const char *id)
{
    return strcmp(redis_do(rig.redis, "HEXISTS %s %s", rig_key(WR_QUEUE_KEY_waiters), id),
                  "1") == 0;
}

static void
take(const char *id)
{
    rig_take("w", 1);
    assert_non_null(rig_token("w", id));
}

static void
put_waited(const char *id, const char *options)
{
    assert_int_equal(rig_put_job((struct rig_job){.id = id, .options = options}),
                     WR_ADMIT_STORED);
    wait_for(id);
}

#define TOLD(id, what)                                                 \
    do {                                                               \
        assert_string_equal(heard(), "weir:ended:t/1\n" id "\n" what); \
        assert_false(is_waited_for(id));                               \
    } while (0)

static void
each_end_of_a_job_is_told_once(void **state)
{
    (void)state;
    listen_to("weir:ended:t");
    put_waited("A", "");
    take("A");
    rig_ack_result("w", "A", "re\nsult");
    TOLD("A", "done\nre\nsult");
    put_waited("B", " keep=60000");
    take("B");
    rig_ack_result("w", "B", "result");
    TOLD("B", "kept\n");
    put_waited("C", "");
    rig_cancel("C");
    TOLD("C", "cancelled\n");
    rig_take("w", 1); /* over its tombstone */
    put_waited("D", "");
    take("D");
    rig_cancel("D");
    assert_int_equal(rig_retry("w", "D", 0), WR_ANSWERED_CANCELLED);
    TOLD("D", "cancelled\n");
    put_waited("E", "");
    take("E");
    rig_bury("w", "E");
    TOLD("E", "dead\n");
    put_waited("F", " expires=5");
    rig_pass(10);
    rig_take("w", 1);
    TOLD("F", "expired\n");
    put_waited("G", " max_deliveries=1");
    take("G");
    rig_pass(2 * RIG_LEASE);
    rig_reclaim();
    TOLD("G", "dead\n");
    assert_string_equal(heard(), "");
    rig_assert_sums();
}

static void
the_end_of_each_job_of_a_call_is_told(void **state)
{
    static const char *const ids[] = {"A", "B", "C"};
    struct wr_answer answers[3] = {0};
    enum wr_answered said[3];

    (void)state;
    listen_to("weir:ended:t");
    rig_put("A");
    put_waited("B", "");
    rig_put("C");
    rig_take("w", 3);
    for (size_t i = 0; i < 3; i++) {
        answers[i].id = wr_span_str(ids[i]);
        answers[i].token = wr_span_str(rig_token("w", ids[i]));
    }
    assert_int_equal(wr_store_ack(rig.store, rig.queue, "w", answers, 3, said, &rig.err),
                     WEIR_OK);
    TOLD("B", "done\n");
    assert_string_equal(heard(), "");
    rig_assert_sums();
}

static void
what_goes_on_is_not_told_as_an_end(void **state)
{
    (void)state;
    listen_to("weir:ended:t");
    put_waited("A", "");
    take("A");
    rig_retry("w", "A", 10);
    rig_pass(20);
    rig_promote(10);
    take("A");
    rig_release("w", "A");
    take("A");
    rig_pass(2 * RIG_LEASE);
    rig_reclaim();
    rig_ack("w", "A"); /* refused: it is nobody's */
    assert_string_equal(heard(), "");
    assert_true(is_waited_for("A"));
}

/* The right to publish is asked for before the first write: in the midst of them the
 * error of PUBLISH would leave a job half ended. */
static void
a_worker_that_may_not_publish_ends_its_jobs_all_the_same(void **state)
{
    (void)state;
    put_waited("A", " keep=60000");
    take("A");
    put_waited("B", "");
    take("B");
    rig_cancel("B");
    put_waited("C", "");
    take("C");
    put_waited("D", "");
    redis_do(rig.redis, "ACL SETUSER default resetchannels");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "JKS");
    assert_int_equal(rig_retry("w", "B", 0), WR_ANSWERED_CANCELLED);
    assert_string_equal(rig_where("B"), "");
    assert_int_equal(rig_bury("w", "C"), WR_ANSWERED_OK);
    assert_int_equal(rig_cancel("D"), WR_CANCEL_READY);
    rig_assert_sums();
}

static void
who_comes_after_the_end_is_told_so_at_once(void **state)
{
    static const char *const over[] = {"A", "B"};
    bool ended;

    (void)state;
    rig_kill_job("A");
    rig_put_job((struct rig_job){.id = "B", .options = " keep=60000"});
    take("B");
    rig_ack("w", "B");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(wr_store_wait(rig.store, rig.queue, wr_span_str(over[i]),
                                       &tagged, false, &ended, &rig.err),
                         WEIR_OK);
        assert_true(ended);
    }
    assert_int_equal(wr_store_wait(rig.store, rig.queue, wr_span_str("C"), &tagged, false,
                                   &ended, &rig.err),
                     WEIR_E_NO_JOB);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_waiters)),
                        "0");
}

static void
those_who_gave_up_are_swept_and_no_others(void **state)
{
    struct wr_sweep at = {.producers = "0", .claims = "0"};

    (void)state;
    put_waited("A", "");
    rig_pass(20000);
    put_waited("B", "");
    rig_pass(15000);
    assert_int_equal(wr_store_sweep(rig.store, rig.queue, 3600000, 100, &at, &rig.err),
                     WEIR_OK);
    assert_false(is_waited_for("A"));
    assert_true(is_waited_for("B"));
}

/* ---- a job that is waited for from the first moment on ---- */

/* One plain job under a channel number. */
static const char *
call_as(const char *channel, const char *number, const char *id, const char *tail,
        const char *unique, const char *due)
{
    return rig_script("call", "1796000000000", channel, number, "mark", "weir:ended:t/1",
                      "30000", id, "1 t", tail, unique, due, NULL);
}

static const char *
call(const char *id)
{
    return call_as("", "0", id, "\nx", "", "");
}

static void
a_call_stores_its_job_and_who_waits_in_one_step(void **state)
{
    (void)state;
    listen_to("weir:ended:t");
    assert_string_equal(call("A"), rig_either("OK 1", "OK 0"));
    assert_true(rig_has_marker());
    assert_true(is_waited_for("A"));
    take("A");
    rig_ack_result("w", "A", "re\nsult");
    TOLD("A", "done\nre\nsult");
    assert_string_equal(call_as("", "0", "L", "\nx", "", "+500"), "OK 0");
    assert_string_equal(rig_where("L"), "JL");
    assert_true(is_waited_for("L"));
    rig_cancel("L");
    TOLD("L", "cancelled\n");
    assert_string_equal(heard(), "");
    rig_assert_sums();
}

static void
a_call_leaves_who_waits_for_its_job_already(void **state)
{
    static const struct wr_waiter early = {"weir:ended:u/7", 30000};
    const char *tags;
    bool ended;

    (void)state;
    rig_make_queue();
    assert_int_equal(wr_store_wait(rig.store, rig.queue, wr_span_str("A"), &early, true,
                                   &ended, &rig.err),
                     WEIR_OK);
    assert_string_equal(call("A"), "OK 0");
    tags = redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_waiters));
    assert_non_null(strstr(tags, "weir:ended:u/7 "));
    assert_non_null(strstr(tags, "weir:ended:t/1 "));
}

/* The answer of the first was lost. */
static void
a_call_that_is_repeated_is_applied_once_and_told_once_E02(void **state)
{
    (void)state;
    listen_to("weir:ended:t");
    assert_string_equal(call_as("c", "1", "A", "\nx", "", ""),
                        rig_either("OK 1", "OK 0"));
    assert_string_equal(call_as("c", "1", "A", "\nx", "", ""), "BEFORE 0");
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_waiters)),
                        "weir:ended:t/1 1796000030000");
    take("A");
    rig_ack_result("w", "A", "out");
    TOLD("A", "done\nout");
    assert_string_equal(call_as("c", "1", "A", "\nx", "", ""), "BEFORE 0");
    assert_false(is_waited_for("A"));
    assert_string_equal(heard(), "");
    assert_string_equal(call_as("c", "1", "B", "\nx", "", ""), "CLASH 0");
    assert_false(is_waited_for("B"));
    assert_int_equal(rig_stat("enqueued"), 1);
}

static void
a_call_waits_for_what_is_there_and_not_for_what_has_ended(void **state)
{
    (void)state;
    rig_put("A");
    assert_string_equal(call("A"), "OK 0 0 EXISTS ready");
    assert_true(is_waited_for("A"));
    take("A");
    assert_string_equal(call("A"), "OK 0 0 EXISTS processing");
    assert_true(is_waited_for("A"));
    rig_bury("w", "A");
    assert_string_equal(call("A"), "OK 0 0 EXISTS dead");
    assert_false(is_waited_for("A"));
    call_as("", "0", "K", " keep=60000\nx", "", "");
    take("K");
    rig_ack("w", "K");
    assert_string_equal(call_as("", "0", "K", " keep=60000\nx", "", ""),
                        "OK 0 0 EXISTS done");
    assert_false(is_waited_for("K"));
}

static void
a_call_that_is_refused_leaves_nobody_waiting(void **state)
{
    char many[32 * 1000];
    struct wr_reply *reply;
    size_t n = 0;

    (void)state;
    rig_put_job((struct rig_job){.id = "U", .options = " unique=k", .unique = "0 k"});
    assert_string_equal(call_as("", "0", "A", " unique=k\nx", "0 k", ""),
                        "OK 0 0 UNIQUE U");
    assert_string_equal(call_as("", "0", "U", "\nother", "", ""), "OK 0 0 OTHER ready");
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_waiters)),
                        "0");
    for (int i = 0; i < 1000; i++)
        n += (size_t)snprintf(many + n, sizeof(many) - n, "c%d/1 1896000000000%s", i,
                              i < 999 ? " " : "");
    assert_int_equal(wr_conn_do(rig.conn, wr_clock_ms() + 5000, &reply, &rig.err, "HSET",
                                rig_key(WR_QUEUE_KEY_waiters), "B", many, (char *)NULL),
                     WEIR_OK);
    wr_reply_free(reply);
    assert_string_equal(call("B"), "MANY");
    assert_string_equal(rig_where("B"), "");
    rig_assert_sums();
}

/* ---- follow-up jobs ---- */

static char channel[WR_FOLLOW_CHANNEL_LEN + 1];

/* Follow-ups of A's delivery, one for each queue; their ids are those of the queues. */
static struct wr_buf
follow_text(const char *token, const char *const *queues)
{
    struct wr_buf text = {0};

    wr_follow_channel("q", "A", token, channel);
    wr_follow_begin(&text, channel);
    for (; *queues; queues++)
        wr_follow_write(&text, &(struct wr_follow){.queue = wr_span_str(*queues),
                                                   .id = wr_span_str(*queues),
                                                   .head = wr_span_str("1 t"),
                                                   .tail = wr_span_str("\nx")});
    return text;
}

static enum wr_answered
ack_then(const char *worker, const char *id, const struct wr_buf *text)
{
    struct wr_answer answer = {.id = wr_span_str(id),
                               .token = wr_span_str(rig_token(worker, id)),
                               .follow = wr_buf_span(text)};
    enum wr_answered word;

    assert_int_equal(
        wr_store_ack_then(rig.store, rig.queue, worker, &answer, 1, &word, &rig.err),
        WEIR_OK);
    return word;
}

static const char *
outbox_len(void)
{
    return redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_outbox));
}

static enum weir_err
relay_late(size_t *relayed, bool *more)
{
    return wr_store_relay_late(rig.store, rig.queue, 1000, 100, relayed, more, &rig.err);
}

static void
done_with(const char *id, const char *const *queues)
{
    struct wr_buf text;

    assert_int_equal(rig_put(id), WR_ADMIT_STORED);
    take(id);
    text = follow_text(rig_token("w", id), queues);
    assert_int_equal(ack_then("w", id, &text), WR_ANSWERED_OK);
    wr_buf_fini(&text);
}

static void
only_an_answer_that_counts_leaves_follow_up_jobs(void **state)
{
    static const char *const queues[] = {"other", NULL};
    struct wr_buf text;

    (void)state;
    rig_put("A");
    take("A");
    text = follow_text(rig_token("w", "A"), queues);
    rig_pass(2 * RIG_LEASE);
    rig_reclaim();
    rig_take("v", 1);
    assert_int_equal(ack_then("w", "A", &text), WR_ANSWERED_STALE);
    assert_string_equal(outbox_len(), "0");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_due));
    assert_int_equal(ack_then("v", "A", &text), WR_ANSWERED_OK);
    assert_string_equal(outbox_len(), "1");
    assert_string_equal(redis_do(rig.redis, "HEXISTS %s %s", rig_key(WR_QUEUE_KEY_outbox),
                                 rig_token("v", "A")),
                        "1");
    assert_string_equal(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_due)), "1");
    assert_int_equal(ack_then("v", "A", &text), WR_ANSWERED_GONE);
    assert_string_equal(outbox_len(), "1");
    rig_assert_sums();
    wr_buf_fini(&text);
}

static void
follow_up_jobs_have_their_time_before_another_enqueues_them(void **state)
{
    static const char *const queues[] = {"q", NULL};
    size_t relayed;
    bool more;

    (void)state;
    done_with("A", queues);
    rig_pass(999);
    assert_int_equal(relay_late(&relayed, &more), WEIR_OK);
    assert_int_equal(relayed, 0);
    assert_true(more);
    rig_pass(1);
    assert_int_equal(relay_late(&relayed, &more), WEIR_OK);
    assert_int_equal(relayed, 1);
    assert_string_equal(outbox_len(), "0");
    assert_string_equal(rig_where("q"), "JR");
    assert_int_equal(relay_late(&relayed, &more), WEIR_OK);
    assert_false(more);
}

/* A queue of another engine, a text that nobody can read, one that is no text at all:
 * all others come through, and the error is said. */
static void
what_cannot_be_relayed_keeps_nobody_waiting(void **state)
{
    static const char *const bad[] = {"foreign", "good", NULL}, *const one[] = {"q",
                                                                                NULL};
    size_t relayed;
    bool more;

    (void)state;
    redis_do(rig.redis, "HSET weir:{foreign}:config engine other");
    done_with("A", bad);
    redis_do(rig.redis, "HSET %s 1000 1\nnonsense", rig_key(WR_QUEUE_KEY_outbox));
    redis_do(rig.redis, "HSET %s 1001 nonsense", rig_key(WR_QUEUE_KEY_outbox));
    done_with("B", one);
    for (int i = 0; i < 5; i++) { /* at other times it begins with others */
        rig_pass(1001);
        assert_int_not_equal(relay_late(&relayed, &more), WEIR_OK);
        assert_int_equal(relayed, i == 0);
        assert_string_equal(outbox_len(), "3");
        assert_string_equal(rig_where("q"), "JR");
    }
    assert_string_equal(redis_do(rig.redis, "LLEN weir:{good}:ready"), "1");
    redis_do(rig.redis, "DEL weir:{foreign}:config");
    assert_int_not_equal(relay_late(&relayed, &more), WEIR_OK);
    assert_int_equal(relayed, 1);
    assert_string_equal(redis_do(rig.redis, "LLEN weir:{foreign}:ready"), "1");
    assert_string_equal(outbox_len(), "2");
}

/* As long as somebody tries, the target remembers that it has the job, also when the job
 * is over: else a follow-up would run again an hour after the first of many tries. */
static void
a_follow_up_that_is_tried_for_hours_comes_once(void **state)
{
    static const char *const queues[] = {"q", "foreign", NULL};
    size_t relayed;
    bool more;

    (void)state;
    redis_do(rig.redis, "HSET weir:{foreign}:config engine other");
    done_with("A", queues);
    rig_pass(2000);
    for (int i = 0; i < 6; i++) {
        struct wr_sweep at = {.producers = "0", .claims = "0"};

        assert_int_not_equal(relay_late(&relayed, &more), WEIR_OK);
        assert_int_equal(rig_take("w", 1)->n, i == 0);
        if (i == 0)
            assert_int_equal(rig_ack("w", "q"), WR_ANSWERED_OK);
        rig_pass(1800000);
        assert_int_equal(
            wr_store_sweep(rig.store, rig.queue, 3600000, 100, &at, &rig.err), WEIR_OK);
    }
    assert_int_equal(rig_stat("enqueued"), 2);
}

/* A worker that lost a job and got it again may answer for both in one call. */
static void
a_result_is_told_of_the_delivery_that_holds_the_job(void **state)
{
    struct wr_answer answers[2];
    enum wr_answered out[2];
    char old[WR_TOKEN_MAX];

    (void)state;
    listen_to("weir:ended:t");
    for (int first = 0; first < 2; first++) { /* the one that holds it */
        put_waited("A", "");
        take("A");
        snprintf(old, sizeof(old), "%s", rig_token("w", "A"));
        rig_pass(2 * RIG_LEASE);
        rig_reclaim();
        take("A");
        for (int i = 0; i < 2; i++)
            answers[i] = (struct wr_answer){
                .id = wr_span_str("A"),
                .token = wr_span_str(i == first ? rig_token("w", "A") : old),
                .result = wr_span_str(i == first ? "new" : "old")};
        assert_int_equal(
            wr_store_ack(rig.store, rig.queue, "w", answers, 2, out, &rig.err), WEIR_OK);
        assert_int_equal(out[first], WR_ANSWERED_OK);
        assert_int_equal(out[1 - first], WR_ANSWERED_STALE);
        TOLD("A", "done\nnew");
    }
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_fresh, hang_up)
    const struct CMUnitTest tests[] = {
        TEST(each_end_of_a_job_is_told_once),
        TEST(the_end_of_each_job_of_a_call_is_told),
        TEST(what_goes_on_is_not_told_as_an_end),
        TEST(a_result_is_told_of_the_delivery_that_holds_the_job),
        TEST(a_worker_that_may_not_publish_ends_its_jobs_all_the_same),
        TEST(who_comes_after_the_end_is_told_so_at_once),
        TEST(those_who_gave_up_are_swept_and_no_others),
        TEST(a_call_stores_its_job_and_who_waits_in_one_step),
        TEST(a_call_leaves_who_waits_for_its_job_already),
        TEST(a_call_that_is_repeated_is_applied_once_and_told_once_E02),
        TEST(a_call_waits_for_what_is_there_and_not_for_what_has_ended),
        TEST(a_call_that_is_refused_leaves_nobody_waiting),
        TEST(only_an_answer_that_counts_leaves_follow_up_jobs),
        TEST(follow_up_jobs_have_their_time_before_another_enqueues_them),
        TEST(what_cannot_be_relayed_keeps_nobody_waiting),
        TEST(a_follow_up_that_is_tried_for_hours_comes_once),
    };

    return RIG_MAIN(tests);
}
