/* Running scripts, against a scripted server. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/clock.h"
#include "redis/script.h"
#include "support/fake_redis.h"

#define SHA "0123456789012345678901234567890123456789"
#define SHA_B "abcdefabcdabcdefabcdabcdefabcdabcdefabcd"
#define NOSCRIPT SEND("-NOSCRIPT No matching script. Please use EVAL.\r\n")
#define DONE SEND("*2\r\n$4\r\nDONE\r\n:7\r\n")
#define CALL EXPECT("EVALSHA " SHA " 1 key arg")
#define CALL_B EXPECT("EVALSHA " SHA_B " 1 key arg")
#define LOAD EXPECT("SCRIPT LOAD return-1"), SEND("$40\r\n" SHA "\r\n")

static const char *const statuses[] = {"DONE", "STALE", NULL};
static const struct wr_script script = {.name = "list/test",
                                        .body = "return-1",
                                        .body_len = 8,
                                        .sha1 = SHA,
                                        .nkeys = 1,
                                        .nargs = 1,
                                        .statuses = statuses};
static const struct wr_script script_b = {.name = "list/other",
                                          .body = "return-2",
                                          .body_len = 8,
                                          .sha1 = SHA_B,
                                          .nkeys = 1,
                                          .nargs = 1,
                                          .statuses = statuses};

static struct fake_redis *fake;
static struct wr_conn *conn;

static int64_t
soon(void)
{
    return wr_clock_ms() + 5000;
}

static void
start(const struct fake_step *steps)
{
    struct weir_error err = {0};

    fake = fake_redis_start(steps);
    if (fake_redis_open(fake, soon(), &conn, &err) != WEIR_OK)
        fail_msg("%s", err.text);
}

static void
finish(void)
{
    wr_conn_close(conn);
    assert_true(fake_redis_stop(fake));
}

static enum weir_err
run(unsigned *status, struct weir_error *err)
{
    struct wr_span argv[] = {wr_span_str("key"), wr_span_str("arg")};
    struct wr_reply *reply;
    enum weir_err rc = wr_script_run(conn, &script, argv, 2, soon(), &reply, status, err);

    assert_true((rc == WEIR_OK) == (reply != NULL));
    if (rc == WEIR_OK)
        assert_int_equal(wr_reply_int(wr_reply_at(reply, 1)), 7);
    wr_reply_free(reply);
    return rc;
}

static void
a_known_script_takes_one_round_trip(void **state)
{
    static const struct fake_step steps[] = {
        GREETING, CALL, DONE, CALL, SEND("*2\r\n$5\r\nSTALE\r\n:7\r\n"), END};
    unsigned status = 9;

    (void)state;
    start(steps);
    assert_int_equal(run(&status, NULL), WEIR_OK);
    assert_int_equal(status, 0);
    assert_int_equal(run(&status, NULL), WEIR_OK);
    assert_int_equal(status, 1);
    finish();
}

static void
n05_a_script_that_the_server_forgot_is_loaded_and_repeated(void **state)
{
    static const struct fake_step steps[] = {GREETING, CALL, NOSCRIPT, LOAD,
                                             CALL,     DONE, END};
    unsigned status = 9;

    (void)state;
    start(steps);
    assert_int_equal(run(&status, NULL), WEIR_OK);
    assert_int_equal(status, 0);
    finish();
}

static void
a_server_that_forgets_three_times_is_given_up(void **state)
{
    static const struct fake_step steps[] = {
        GREETING, CALL, NOSCRIPT, LOAD, CALL, NOSCRIPT, LOAD, CALL, NOSCRIPT, LOAD, END};
    struct weir_error err;
    unsigned status;

    (void)state;
    start(steps);
    assert_int_equal(run(&status, &err), WEIR_E_LOADING);
    assert_non_null(strstr(err.text, "list/test"));
    finish();
}

static void
a_load_that_is_refused_tells_why(void **state)
{
    static const struct fake_step steps[] = {
        GREETING,
        CALL,
        NOSCRIPT,
        EXPECT("SCRIPT LOAD return-1"),
        SEND("-NOPERM this user has no permissions to run the 'script|load' command\r\n"),
        END};
    struct weir_error err;
    unsigned status;

    (void)state;
    start(steps);
    assert_int_equal(run(&status, &err), WEIR_E_DENIED);
    assert_non_null(strstr(err.text, "script|load"));
    assert_false(wr_conn_is_broken(conn));
    finish();
}

static void
an_answer_outside_the_contract_is_corruption(void **state)
{
    static const struct fake_step steps[] = {GREETING,
                                             CALL,
                                             SEND("*1\r\n$3\r\nFOO\r\n"),
                                             CALL,
                                             SEND(":1\r\n"),
                                             CALL,
                                             SEND("$-1\r\n"),
                                             CALL,
                                             SEND("*0\r\n"),
                                             END};
    struct weir_error err;
    unsigned status;

    (void)state;
    start(steps);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(run(&status, &err), WEIR_E_CORRUPT);
        assert_non_null(strstr(err.text, "list/test"));
    }
    finish();
}

static void
an_error_reply_becomes_its_code(void **state)
{
    static const struct fake_step steps[] = {
        GREETING, CALL, SEND("-OOM command not allowed\r\n"), CALL, DONE, END};
    unsigned status;

    (void)state;
    start(steps);
    assert_int_equal(run(&status, NULL), WEIR_E_FULL);
    assert_int_equal(run(&status, NULL), WEIR_OK); /* the connection is still good */
    finish();
}

static void
a_connection_that_breaks_leaves_it_unknown(void **state)
{
    static const struct fake_step steps[] = {GREETING, CALL, CLOSE, END};
    unsigned status;

    (void)state;
    start(steps);
    assert_int_equal(run(&status, NULL), WEIR_E_NO_REPLY);
    assert_true(wr_conn_is_broken(conn));
    assert_int_equal(run(&status, NULL), WEIR_E_CONNECT);
    wr_conn_close(conn);
    fake_redis_stop(fake); /* it waits for another connection: no verdict */
}

static enum weir_err
send_one(const struct wr_script *s)
{
    struct wr_span argv[] = {wr_span_str("key"), wr_span_str("arg")};

    return wr_script_send(conn, s, argv, 2, soon(), NULL);
}

static enum weir_err
recv_one(const struct wr_script *s, int64_t wanted)
{
    struct wr_reply *reply;
    unsigned status;
    enum weir_err rc = wr_script_recv(conn, s, soon(), &reply, &status, NULL);

    if (rc == WEIR_OK)
        assert_int_equal(wr_reply_int(wr_reply_at(reply, 1)), wanted);
    wr_reply_free(reply);
    return rc;
}

static void
n05_replies_under_way_do_not_cross_when_a_script_is_missing(void **state)
{
    /* Three under way; the first is unknown, and so its LOAD goes out behind them. */
    static const struct fake_step steps[] = {
        GREETING,
        CALL,
        CALL_B,
        CALL_B,
        NOSCRIPT,
        EXPECT("SCRIPT LOAD return-1"),
        SEND("*2\r\n$4\r\nDONE\r\n:1\r\n*2\r\n$4\r\nDONE\r\n:2\r\n$40\r\n" SHA "\r\n"),
        CALL,
        SEND("*2\r\n$4\r\nDONE\r\n:3\r\n"),
        END};

    (void)state;
    start(steps);
    assert_int_equal(send_one(&script), WEIR_OK);
    assert_int_equal(send_one(&script_b), WEIR_OK);
    assert_int_equal(send_one(&script_b), WEIR_OK);
    assert_int_equal(recv_one(&script, 0), WEIR_E_LOADING);
    assert_int_equal(recv_one(&script_b, 1), WEIR_OK);
    assert_int_equal(recv_one(&script_b, 2), WEIR_OK);
    assert_int_equal(send_one(&script), WEIR_OK);
    assert_int_equal(recv_one(&script, 3), WEIR_OK);
    finish();
}

static void
many_arguments_are_sent_as_well(void **state)
{
    static const struct fake_step steps[] = {GREETING, EXPECT("*"), DONE, END};
    struct wr_span argv[500];
    struct wr_reply *reply;
    unsigned status;

    (void)state;
    for (int i = 0; i < 500; i++)
        argv[i] = wr_span_str("x");
    start(steps);
    assert_int_equal(
        wr_script_run(conn, &script, argv, 500, soon(), &reply, &status, NULL), WEIR_OK);
    wr_reply_free(reply);
    finish();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_script_takes_one_round_trip),
        cmocka_unit_test(n05_a_script_that_the_server_forgot_is_loaded_and_repeated),
        cmocka_unit_test(a_server_that_forgets_three_times_is_given_up),
        cmocka_unit_test(a_load_that_is_refused_tells_why),
        cmocka_unit_test(an_answer_outside_the_contract_is_corruption),
        cmocka_unit_test(an_error_reply_becomes_its_code),
        cmocka_unit_test(a_connection_that_breaks_leaves_it_unknown),
        cmocka_unit_test(n05_replies_under_way_do_not_cross_when_a_script_is_missing),
        cmocka_unit_test(many_arguments_are_sent_as_well),
    };

    return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
