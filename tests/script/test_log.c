/* What jobs print: stored by piece, bounded, fenced, read from any offset, gone with the
 * job. */
#include "script/rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"

static void
take_one(const char *worker, const char *id)
{
    assert_int_equal(rig_put(id), WR_ADMIT_STORED);
    assert_string_equal(rig_take(worker, 1)->ids, id);
}

static enum wr_logged
print_bytes(const char *worker, const char *id, int64_t at, struct wr_span bytes,
            bool last)
{
    struct wr_log_part part = {.id = wr_span_str(id),
                               .token = wr_span_str(rig_token(worker, id)),
                               .bytes = bytes,
                               .at = at,
                               .last = last};
    enum wr_logged out;

    assert_int_equal(wr_store_log(rig.store, rig.queue, worker, &part, 1, &out, &rig.err),
                     WEIR_OK);
    return out;
}

static enum wr_logged
print_text(const char *worker, const char *id, int64_t at, const char *text)
{
    return print_bytes(worker, id, at, wr_span_str(text), false);
}

/* All pieces of a run from an offset on, put together. */
static const char *
output_of(const char *id, int64_t number, int64_t offset)
{
    static struct wr_buf text;
    struct wr_reply *reply;
    size_t runs, first;

    wr_buf_clear(&text);
    wr_buf_add_str(&text, "");
    assert_int_equal(wr_store_output(rig.store, rig.queue, wr_span_str(id), number,
                                     offset, 1 << 20, &reply, &rig.err),
                     WEIR_OK);
    runs = (size_t)wr_reply_int(wr_reply_at(reply, 3));
    first = 4 + 5 * runs + 1;
    for (size_t i = first; i + 1 < wr_reply_len(reply); i += 2) {
        struct wr_span piece = wr_reply_span(wr_reply_at(reply, i + 1));

        wr_buf_add(&text, piece.ptr, piece.len);
    }
    wr_reply_free(reply);
    return text.ptr;
}

static int64_t
fields(void)
{
    return atoll(redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_log)));
}

static void
what_a_job_prints_can_be_read_from_any_offset(void **state)
{
    (void)state;
    take_one("w", "A");
    assert_int_equal(print_text("w", "A", 0, "one "), WR_LOGGED_OK);
    assert_int_equal(print_text("w", "A", 4, "two "), WR_LOGGED_OK);
    assert_int_equal(print_text("w", "A", 8, "three"), WR_LOGGED_OK);
    assert_string_equal(output_of("A", 0, 0), "one two three");
    assert_string_equal(output_of("A", 1, 6), "o three");
    assert_string_equal(output_of("A", 0, 13), "");
    assert_string_equal(output_of("A", 7, 0), "");
    assert_int_equal(rig_stat("log_bytes"), 13);
    rig_assert_sums();
}

static void
a_repeated_call_stores_nothing_twice_G14(void **state)
{
    (void)state;
    take_one("w", "A");
    print_text("w", "A", 0, "abc");
    print_text("w", "A", 0, "abc");
    assert_string_equal(output_of("A", 0, 0), "abc");
    print_text("w", "A", 1, "bcde"); /* the new part of it alone */
    assert_string_equal(output_of("A", 0, 0), "abcde");
    assert_int_equal(rig_stat("log_bytes"), 5);
}

static void
a_stale_delivery_prints_nothing_L03(void **state)
{
    (void)state;
    take_one("w", "A");
    print_text("w", "A", 0, "old");
    rig_pass(RIG_LEASE);
    rig_reclaim();
    assert_int_equal(print_text("w", "A", 3, "late"), WR_LOGGED_STALE);
    rig_take("v", 1);
    assert_int_equal(print_text("w", "A", 3, "late"), WR_LOGGED_STALE);
    assert_int_equal(print_text("v", "A", 0, "new"), WR_LOGGED_OK);
    assert_string_equal(output_of("A", 1, 0), "old");
    assert_string_equal(output_of("A", 2, 0), "new");
    rig_ack("v", "A");
    assert_int_equal(print_text("v", "A", 3, "after"), WR_LOGGED_GONE);
    assert_int_equal(fields(), 0);
    assert_int_equal(rig_stat("log_bytes"), 0);
    rig_assert_sums();
}

static void
the_last_lines_may_come_after_the_answer(void **state)
{
    (void)state;
    take_one("w", "A");
    rig_bury("w", "A");
    assert_int_equal(print_text("w", "A", 0, "why it died"), WR_LOGGED_OK);
    assert_string_equal(output_of("A", 0, 0), "why it died");
    rig_assert_sums();
}

/* Head and tail of a long run stay, and what is stored has a bound. */
static void
a_flood_keeps_its_head_and_its_tail(void **state)
{
    char block[4096], mark[16];
    int64_t at = 0, bytes;
    size_t len;
    const char *text;

    (void)state;
    take_one("w", "A");
    for (int i = 0; i < 500; i++) {
        memset(block, 'a' + i % 26, sizeof(block));
        snprintf(mark, sizeof(mark), "<%04d>", i);
        memcpy(block, mark, 6);
        print_bytes("w", "A", at, (struct wr_span){block, sizeof(block)}, i == 499);
        at += (int64_t)sizeof(block);
    }
    text = output_of("A", 0, 0);
    len = strlen(text);
    assert_true(len >= 16384 + 49152 && len <= 16384 + 49152 + 2 * 4096);
    assert_int_equal(strncmp(text, "<0000>", 6), 0);
    assert_non_null(strstr(text, "<0003>"));
    assert_null(strstr(text, "<0005>"));
    assert_non_null(strstr(text, "<0499>"));
    bytes = rig_stat("log_bytes");
    assert_int_equal(bytes, (int64_t)len);
    assert_true(fields() < 24);
    rig_ack("w", "A");
    assert_int_equal(rig_stat("log_bytes"), 0);
    assert_int_equal(fields(), 0);
}

static void
a_queue_has_a_bound_and_the_oldest_output_goes_first_R03(void **state)
{
    struct wr_span words[] = {
        wr_span_str("w"), wr_span_str("100"), wr_span_str("100"),       wr_span_str("50"),
        wr_span_str("4"), wr_span_str("30"),  wr_span_str("A"),         {NULL, 0},
        wr_span_str("0"), wr_span_str("0"),   wr_span_str("0123456789")};

    (void)state;
    for (int i = 0; i < 6; i++) {
        char id[2] = {(char)('A' + i), '\0'};

        take_one("w", id);
        words[6] = wr_span_str(id);
        words[7] = wr_span_str(rig_token("w", id));
        wr_reply_free(rig_script_argv("log", words, 11));
    }
    assert_int_equal(rig_stat("log_bytes"), 30);
    assert_int_equal(rig_stat("log_dropped"), 3);
    assert_string_equal(output_of("C", 0, 0), "");
    assert_string_equal(output_of("D", 0, 0), "0123456789");
    assert_int_equal(fields(), 9);
    rig_assert_sums();
}

static void
any_bytes_are_stored_as_they_are_D03(void **state)
{
    char bytes[256];
    struct wr_reply *reply;
    struct wr_span got;

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    take_one("w", "A");
    print_bytes("w", "A", 0, (struct wr_span){bytes, 256}, true);
    assert_int_equal(wr_store_output(rig.store, rig.queue, wr_span_str("A"), 0, 0, 1000,
                                     &reply, &rig.err),
                     WEIR_OK);
    got = wr_reply_span(wr_reply_at(reply, 11));
    assert_int_equal(got.len, 256);
    assert_memory_equal(got.ptr, bytes, 256);
    assert_string_equal(wr_reply_span(wr_reply_at(reply, 8)).ptr, "0"); /* not open */
    wr_reply_free(reply);
}

static void
print_one(const char *id, const char *options)
{
    rig_put_job((struct rig_job){.id = id, .options = options});
    rig_take("w", 1);
    print_text("w", id, 0, "x");
}

/* Every way out takes the output along; the neighbour's stays. */
static void
output_goes_with_its_job_on_every_way_out_R03(void **state)
{
    (void)state;
    print_one("stays", "");
    print_one("acked", "");
    rig_ack("w", "acked");
    print_one("kept", " keep=10");
    rig_ack("w", "kept");
    print_one("buried", "");
    rig_bury("w", "buried");
    print_one("flagged", "");
    rig_cancel("flagged");
    rig_retry("w", "flagged", 0);
    print_one("delayed", "");
    rig_retry("w", "delayed", 5000);
    rig_cancel("delayed");
    print_one("waits", "");
    rig_release("w", "waits");
    rig_cancel("waits");
    print_one("lost", "");
    rig_cancel("lost");
    assert_string_equal(output_of("kept", 0, 0), "x");
    assert_string_equal(output_of("buried", 0, 0), "x");
    rig_pass(10);
    assert_int_equal(rig_forget(10).moved, 1);
    assert_int_equal(rig_purge("buried"), WR_REPLAY_OK);
    assert_int_equal(rig_extend("w", "stays", 0), WR_EXTEND_OK);
    rig_pass(RIG_LEASE - 5);
    rig_reclaim();
    assert_string_equal(output_of("stays", 0, 0), "x");
    assert_int_equal(fields(), 3);
    assert_int_equal(rig_stat("log_bytes"), 1);
    rig_assert_sums();
}

static bool
note_finding(const char *kind, const char *id, const char *detail, void *context)
{
    char *all = context;

    (void)detail;
    snprintf(all + strlen(all), 200 - strlen(all), "%s %s;", kind, id);
    return true;
}

static void
the_deep_audit_finds_output_without_a_job_A16(void **state)
{
    char found[200] = "";
    size_t n;

    (void)state;
    take_one("w", "A");
    print_text("w", "A", 0, "x");
    redis_do(rig.redis, "HSET %s B 1%%201", rig_key(WR_QUEUE_KEY_log));
    assert_int_equal(
        wr_audit_deep(rig.store, rig.queue, note_finding, found, &n, &rig.err), WEIR_OK);
    assert_string_equal(found, "orphan_log B;");
}

/* Jobs come and go, each at once with all that is stored of it. */
static void *
come_and_go(void *arg)
{
    static const char script[] =
        "local before, now = 'X' .. ARGV[1] - 1, 'X' .. ARGV[1]\n"
        "for i = 1, 3 do redis.call('HDEL', KEYS[i], before) end\n"
        "redis.call('ZREM', KEYS[5], before)\n"
        "for i = 1, 3 do redis.call('HSET', KEYS[i], now, '1 t 1\\nx') end\n"
        "redis.call('ZADD', KEYS[5], 1, now)\n"
        "redis.call('HSET', KEYS[4], 'k', now)\n";
    const atomic_bool *stop = arg;
    struct wr_conn *conn;
    char number[32];

    if (wr_server_open(rig.server, "test", wr_clock_ms() + 5000, &conn, NULL) != WEIR_OK)
        return arg;
    for (long n = 1; !atomic_load(stop); n++) {
        struct wr_reply *reply;

        snprintf(number, sizeof(number), "%ld", n);
        if (wr_conn_do(conn, wr_clock_ms() + 5000, &reply, NULL, "EVAL", script, "5",
                       rig_key(WR_QUEUE_KEY_jobs), rig_key(WR_QUEUE_KEY_errors),
                       rig_key(WR_QUEUE_KEY_results), rig_key(WR_QUEUE_KEY_unique),
                       rig_key(WR_QUEUE_KEY_dead), number, (char *)NULL) != WEIR_OK)
            break;
        wr_reply_free(reply);
    }
    wr_conn_close(conn);
    return NULL;
}

static void
a_job_that_ends_while_the_deep_audit_looks_left_nothing_behind_T09(void **state)
{
    char found[200] = "";
    atomic_bool stop = false;
    pthread_t thread;
    void *failed;
    size_t n = 0;

    (void)state;
    rig_put("A");
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, &stop), 0);
    for (int i = 0; i < 200 && n == 0; i++)
        assert_int_equal(
            wr_audit_deep(rig.store, rig.queue, note_finding, found, &n, &rig.err),
            WEIR_OK);
    atomic_store(&stop, true);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_string_equal(found, "");
    /* What stays is found. */
    redis_do(rig.redis, "DEL %s %s", rig_key(WR_QUEUE_KEY_jobs),
             rig_key(WR_QUEUE_KEY_dead));
    redis_do(rig.redis, "HSET %s k Y", rig_key(WR_QUEUE_KEY_unique));
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_errors));
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_ready));
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_results));
    redis_do(rig.redis, "HSET %s Z r", rig_key(WR_QUEUE_KEY_results));
    assert_int_equal(
        wr_audit_deep(rig.store, rig.queue, note_finding, found, &n, &rig.err), WEIR_OK);
    assert_string_equal(found, "orphan_result Z;orphan_unique Y;");
}

static void
a_full_server_refuses_output_and_the_job_goes_on_F17(void **state)
{
    struct wr_log_part part = {.id = wr_span_str("A"), .bytes = wr_span_str("x")};
    enum wr_logged out;

    (void)state;
    take_one("w", "A");
    part.token = wr_span_str(rig_token("w", "A"));
    redis_do(rig.redis, "CONFIG SET maxmemory 1");
    assert_int_equal(wr_store_log(rig.store, rig.queue, "w", &part, 1, &out, &rig.err),
                     WEIR_E_FULL);
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    redis_do(rig.redis, "CONFIG SET maxmemory 0");
    assert_int_equal(fields(), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(what_a_job_prints_can_be_read_from_any_offset),
        RIG_TEST(a_repeated_call_stores_nothing_twice_G14),
        RIG_TEST(a_stale_delivery_prints_nothing_L03),
        RIG_TEST(the_last_lines_may_come_after_the_answer),
        RIG_TEST(a_flood_keeps_its_head_and_its_tail),
        RIG_TEST(a_queue_has_a_bound_and_the_oldest_output_goes_first_R03),
        RIG_TEST(any_bytes_are_stored_as_they_are_D03),
        RIG_TEST(output_goes_with_its_job_on_every_way_out_R03),
        RIG_TEST(the_deep_audit_finds_output_without_a_job_A16),
        RIG_TEST(a_job_that_ends_while_the_deep_audit_looks_left_nothing_behind_T09),
        RIG_TEST(a_full_server_refuses_output_and_the_job_goes_on_F17),
    };

    return RIG_MAIN(tests);
}
