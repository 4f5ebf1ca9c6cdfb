/* One connection, against a scripted server: what a real one does only on a bad day. */
#include "support/cmocka_all.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "redis/conn.h"
#include "support/fake_redis.h"

static int64_t
in_ms(int64_t ms)
{
    return wr_clock_ms() + ms;
}

/* Opens a connection to a fake with these steps, with a login. */
static enum weir_err
open_as(const struct fake_step *steps, const char *user, const char *password, int db,
        const char *name, struct weir_error *err)
{
    struct fake_redis *fake = fake_redis_start(steps);
    struct wr_url url = {.is_unix = true, .db = db};
    struct wr_conn_options o = {.url = &url, .name = name};
    struct wr_conn *conn;
    enum weir_err rc;

    snprintf(url.host, sizeof(url.host), "%s", fake_redis_socket(fake));
    snprintf(url.user, sizeof(url.user), "%s", user);
    snprintf(url.password, sizeof(url.password), "%s", password);
    rc = wr_conn_open(&o, in_ms(5000), &conn, err);
    assert_true((rc == WEIR_OK) == (conn != NULL));
    wr_conn_close(conn);
    if (!fake_redis_stop(fake) && rc == WEIR_OK)
        fail_msg("the greeting is not what was expected");
    return rc;
}

static void
the_greeting_logs_in_selects_and_names(void **state)
{
    static const struct fake_step all[] = {EXPECT("AUTH app pw"),
                                           EXPECT("SELECT 3"),
                                           EXPECT("CLIENT SETNAME weir"),
                                           EXPECT("PING"),
                                           SEND("+OK\r\n+OK\r\n+OK\r\n+PONG\r\n"),
                                           END};
    static const struct fake_step password[] = {EXPECT("AUTH pw"), EXPECT("PING"),
                                                SEND("+OK\r\n+PONG\r\n"), END};
    static const struct fake_step plain[] = {GREETING, END};

    (void)state;
    assert_int_equal(open_as(all, "app", "pw", 3, "weir", NULL), WEIR_OK);
    assert_int_equal(open_as(password, "", "pw", 0, NULL, NULL), WEIR_OK);
    assert_int_equal(open_as(plain, "", "", 0, NULL, NULL), WEIR_OK);
}

static void
n15_a_user_without_password_is_not_the_default_user(void **state)
{
    static const struct fake_step steps[] = {EXPECT("AUTH app "), EXPECT("PING"),
                                             SEND("+OK\r\n+PONG\r\n"), END};

    (void)state;
    assert_int_equal(open_as(steps, "app", "", 0, NULL, NULL), WEIR_OK);
}

static void
a_refused_greeting_tells_why(void **state)
{
    static const struct fake_step denied[] = {
        EXPECT("AUTH app sesame"), EXPECT("PING"),
        SEND("-WRONGPASS invalid username-password pair or user is disabled.\r\n"
             "-NOAUTH Authentication required.\r\n"),
        END};
    static const struct fake_step loading[] = {
        EXPECT("PING"), SEND("-LOADING Redis is loading the dataset in memory\r\n"), END};
    struct weir_error err;

    (void)state;
    assert_int_equal(open_as(denied, "app", "sesame", 0, NULL, &err), WEIR_E_DENIED);
    assert_non_null(strstr(err.text, "wrong user or password"));
    assert_null(strstr(err.text, "sesame"));
    assert_int_equal(open_as(loading, "", "", 0, NULL, &err), WEIR_E_LOADING);
}

static void
who_may_not_have_a_name_works_without(void **state)
{
    static const struct fake_step name[] = {
        EXPECT("CLIENT SETNAME weir"), EXPECT("PING"),
        SEND(
            "-NOPERM this user has no permissions to run the 'client|setname' command\r\n"
            "+PONG\r\n"),
        END};
    static const struct fake_step ping[] = {
        EXPECT("CLIENT SETNAME weir"), EXPECT("PING"),
        SEND("+OK\r\n-NOPERM this user has no permissions to run the 'ping' command\r\n"),
        END};
    static const struct fake_step nothing[] = {
        EXPECT("CLIENT SETNAME weir"), EXPECT("PING"),
        SEND("-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n"),
        END};

    (void)state;
    assert_int_equal(open_as(name, "", "", 0, "weir", NULL), WEIR_OK);
    assert_int_equal(open_as(ping, "", "", 0, "weir", NULL), WEIR_E_DENIED);
    assert_int_equal(open_as(nothing, "", "", 0, "weir", NULL), WEIR_E_DENIED);
}

static void
a_server_that_refuses_and_closes_keeps_its_reason(void **state)
{
    /* It reads nothing: the greeting may meet a closed socket. */
    static const struct fake_step full[] = {
        SEND("-ERR max number of clients reached\r\n"), CLOSE, END};
    static const struct fake_step protected_mode[] = {
        SEND("-DENIED Redis is running in protected mode\r\n"), CLOSE, END};
    struct weir_error err;

    (void)state;
    for (int i = 0; i < 20; i++) { /* the race goes one way or the other */
        assert_int_equal(open_as(full, "", "", 0, "weir", &err), WEIR_E_LOADING);
        assert_non_null(strstr(err.text, "maxclients"));
        assert_int_equal(err.code, WEIR_E_LOADING);
    }
    assert_int_equal(open_as(protected_mode, "", "", 0, "weir", &err), WEIR_E_DENIED);
    assert_non_null(strstr(err.text, "protected mode"));
}

static void
a_reason_is_read_also_when_the_greeting_met_a_closed_socket(void **state)
{
    static const struct fake_step full[] = {
        SEND("-ERR max number of clients reached\r\n"), CLOSE, END};
    static char name[4 << 20]; /* more than fits into the pipe: the rest must fail */
    struct weir_error err;

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    assert_int_equal(open_as(full, "", "", 0, name, &err), WEIR_E_LOADING);
    assert_non_null(strstr(err.text, "maxclients"));
}

static void
what_is_no_redis_is_called_so(void **state)
{
    static const struct fake_step http[] = {
        EXPECT("PING"), SEND("HTTP/1.1 400 Bad Request\r\n\r\n"), END};
    static const struct fake_step wrong[] = {EXPECT("PING"), SEND("+HELLO\r\n"), END};
    struct weir_error err;

    (void)state;
    assert_int_equal(open_as(http, "", "", 0, NULL, &err), WEIR_E_SERVER);
    assert_non_null(strstr(err.text, "no Redis"));
    assert_int_equal(open_as(wrong, "", "", 0, NULL, &err), WEIR_E_SERVER);
}

static void
a_server_that_takes_but_never_answers_is_no_connection(void **state)
{
    static const struct fake_step steps[] = {STALL, END};
    struct fake_redis *fake = fake_redis_start(steps);
    int64_t before = wr_clock_ms();
    struct weir_error err;
    struct wr_conn *conn;

    (void)state;
    assert_int_equal(fake_redis_open(fake, before + 100, &conn, &err), WEIR_E_CONNECT);
    assert_null(conn);
    assert_non_null(strstr(err.text, fake_redis_socket(fake)));
    assert_true(wr_clock_ms() >= before + 100);
    assert_true(wr_clock_ms() < before + 5000);
    fake_redis_stop(fake);
}

static void
nobody_at_the_address_is_said_with_the_address(void **state)
{
    struct wr_url url = {.is_unix = true, .host = "/nowhere/redis.sock"};
    struct wr_conn_options o = {.url = &url};
    struct weir_error err;
    struct wr_conn *conn;

    (void)state;
    assert_int_equal(wr_conn_open(&o, in_ms(1000), &conn, &err), WEIR_E_CONNECT);
    assert_non_null(strstr(err.text, "/nowhere/redis.sock"));
    assert_non_null(strstr(err.text, "No such file"));
    url = (struct wr_url){.host = "127.0.0.1", .port = 1};
    assert_int_equal(wr_conn_open(&o, in_ms(1000), &conn, &err), WEIR_E_CONNECT);
    assert_non_null(strstr(err.text, "127.0.0.1:1"));
}

static void
tls_is_not_built_in_yet_and_says_so(void **state)
{
    struct wr_conn_options o = {0};
    struct weir_error err;
    struct wr_conn *conn;
    struct wr_url url;

    (void)state;
    assert_int_equal(wr_url_parse("rediss://127.0.0.1", &url, NULL), WEIR_OK);
    o.url = &url;
    assert_int_equal(wr_conn_open(&o, in_ms(1000), &conn, &err), WEIR_E_CONFIG);
    assert_non_null(strstr(err.text, "TLS is not built in yet"));
}

static struct fake_redis *fake;

static struct wr_conn *
must_open(const struct fake_step *steps)
{
    struct weir_error err = {0};
    struct wr_conn *conn;

    fake = fake_redis_start(steps);
    if (fake_redis_open(fake, in_ms(5000), &conn, &err) != WEIR_OK)
        fail_msg("%s", err.text);
    return conn;
}

static void
replies_come_in_the_order_of_the_commands(void **state)
{
    static const struct fake_step steps[] = {GREETING, EXPECT("A"), EXPECT("B"),
                                             SEND(":1\r\n:2\r\n"), END};
    struct wr_conn *conn = must_open(steps);
    struct wr_span a = wr_span_str("A"), b = wr_span_str("B");
    struct wr_reply *reply;

    (void)state;
    assert_true(wr_conn_is_idle(conn));
    assert_int_equal(wr_conn_send(conn, &a, 1, in_ms(5000), NULL), WEIR_OK);
    assert_int_equal(wr_conn_send(conn, &b, 1, in_ms(5000), NULL), WEIR_OK);
    assert_false(wr_conn_is_idle(conn));
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(wr_conn_recv(conn, in_ms(5000), &reply, NULL), WEIR_OK);
        assert_int_equal(wr_reply_int(reply), i);
        wr_reply_free(reply);
    }
    assert_true(wr_conn_is_idle(conn));
    wr_conn_close(conn);
    assert_true(fake_redis_stop(fake));
}

static void
a_posted_command_has_its_reply_dropped_in_its_turn(void **state)
{
    static const struct fake_step steps[] = {
        GREETING, EXPECT("A"), EXPECT("P"), EXPECT("B"), SEND(":1\r\n:9\r\n:2\r\n"), END};
    struct wr_conn *conn = must_open(steps);
    struct wr_span a = wr_span_str("A"), b = wr_span_str("B"), p = wr_span_str("P");
    struct wr_reply *reply;

    (void)state;
    assert_int_equal(wr_conn_send(conn, &a, 1, in_ms(5000), NULL), WEIR_OK);
    assert_int_equal(wr_conn_post(conn, &p, 1, in_ms(5000), NULL), WEIR_OK);
    assert_int_equal(wr_conn_send(conn, &b, 1, in_ms(5000), NULL), WEIR_OK);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(wr_conn_recv(conn, in_ms(5000), &reply, NULL), WEIR_OK);
        assert_int_equal(wr_reply_int(reply), i);
        wr_reply_free(reply);
    }
    assert_true(wr_conn_is_idle(conn));
    wr_conn_close(conn);
    assert_true(fake_redis_stop(fake));
}

static void
has_reply_never_waits_and_keeps_what_it_found(void **state)
{
    static const struct fake_step steps[] = {
        GREETING, EXPECT("A"), SEND("$5\r\nhel"), EXPECT("B"), SEND("lo\r\n:2\r\n"), END};
    struct wr_conn *conn = must_open(steps);
    struct wr_span a = wr_span_str("A"), b = wr_span_str("B");
    struct wr_reply *reply;
    int64_t deadline;

    (void)state;
    assert_false(wr_conn_has_reply(conn));
    assert_int_equal(wr_conn_send(conn, &a, 1, in_ms(5000), NULL), WEIR_OK);
    assert_false(wr_conn_has_reply(conn)); /* half of it, or nothing yet */
    assert_int_equal(wr_conn_send(conn, &b, 1, in_ms(5000), NULL), WEIR_OK);
    deadline = in_ms(5000);
    while (!wr_conn_has_reply(conn) && wr_clock_ms() < deadline)
        poll(NULL, 0, 1);
    assert_true(wr_conn_has_reply(conn));
    assert_int_equal(wr_conn_recv(conn, in_ms(5000), &reply, NULL), WEIR_OK);
    assert_true(wr_reply_is(reply, "hello"));
    wr_reply_free(reply);
    assert_int_equal(wr_conn_recv(conn, in_ms(5000), &reply, NULL), WEIR_OK);
    assert_int_equal(wr_reply_int(reply), 2);
    wr_reply_free(reply);
    wr_conn_close(conn);
    assert_true(fake_redis_stop(fake));
}

static void
an_end_in_the_middle_of_a_reply_is_unknown(void **state)
{
    static const struct fake_step steps[] = {GREETING, EXPECT("GET k"), SEND("$5\r\nhel"),
                                             CLOSE, END};
    struct wr_conn *conn = must_open(steps);
    struct weir_error err;
    struct wr_reply *reply;

    (void)state;
    assert_int_equal(
        wr_conn_do(conn, in_ms(5000), &reply, &err, "GET", "k", (char *)NULL),
        WEIR_E_NO_REPLY);
    assert_null(reply);
    assert_true(wr_conn_is_broken(conn));
    assert_true(wr_conn_has_reply(conn)); /* recv() has something to say */
    assert_int_equal(wr_conn_recv(conn, in_ms(5000), &reply, &err), WEIR_E_NO_REPLY);
    assert_int_equal(
        wr_conn_do(conn, in_ms(5000), &reply, &err, "GET", "k", (char *)NULL),
        WEIR_E_CONNECT); /* certainly not sent */
    wr_conn_close(conn);
    fake_redis_stop(fake);
}

static void
n02_a_silent_server_is_left_at_the_deadline(void **state)
{
    static const struct fake_step steps[] = {GREETING, EXPECT("GET k"), STALL, END};
    struct wr_conn *conn = must_open(steps);
    int64_t before = wr_clock_ms();
    struct wr_reply *reply;

    (void)state;
    assert_int_equal(
        wr_conn_do(conn, before + 80, &reply, NULL, "GET", "k", (char *)NULL),
        WEIR_E_NO_REPLY);
    assert_true(wr_clock_ms() >= before + 80 && wr_clock_ms() < before + 5000);
    assert_true(wr_conn_is_broken(conn));
    wr_conn_close(conn);
    fake_redis_stop(fake);
}

static void
a_command_that_fills_the_pipe_of_a_silent_server_ends_as_unknown(void **state)
{
    static const struct fake_step steps[] = {GREETING, STALL, END};
    static char payload[8 << 20];
    struct wr_conn *conn = must_open(steps);
    struct wr_span argv[] = {wr_span_str("SET"), {payload, sizeof(payload)}};

    (void)state;
    assert_int_equal(wr_conn_send(conn, argv, 2, in_ms(80), NULL), WEIR_E_NO_REPLY);
    assert_true(wr_conn_is_broken(conn));
    wr_conn_close(conn);
    fake_redis_stop(fake);
}

static void
two_full_pipes_do_not_lock_each_other(void **state)
{
    /* The fake reads the second command only when its reply to the first is gone. */
    static char bytes[8 << 20], reply_text[(8 << 20) + 32];
    const struct fake_step steps[] = {GREETING,    EXPECT("A"),    SEND(reply_text),
                                      EXPECT("*"), SEND(":2\r\n"), END};
    struct wr_span a = wr_span_str("A"), argv[] = {wr_span_str("SET"), {bytes, 8 << 20}};
    struct wr_conn *conn;
    struct wr_reply *reply;
    int n = snprintf(reply_text, 32, "$%d\r\n", 8 << 20);

    (void)state;
    memset(reply_text + n, 'x', 8 << 20);
    memcpy(reply_text + n + (8 << 20), "\r\n", 3);
    conn = must_open(steps);
    assert_int_equal(wr_conn_send(conn, &a, 1, in_ms(8000), NULL), WEIR_OK);
    assert_int_equal(wr_conn_send(conn, argv, 2, in_ms(8000), NULL), WEIR_OK);
    assert_int_equal(wr_conn_recv(conn, in_ms(8000), &reply, NULL), WEIR_OK);
    assert_int_equal(wr_reply_span(reply).len, 8 << 20);
    wr_reply_free(reply);
    assert_int_equal(wr_conn_recv(conn, in_ms(8000), &reply, NULL), WEIR_OK);
    assert_int_equal(wr_reply_int(reply), 2);
    wr_reply_free(reply);
    wr_conn_close(conn);
    assert_true(fake_redis_stop(fake));
}

static void
an_error_reply_does_not_break_the_connection(void **state)
{
    static const struct fake_step steps[] = {
        GREETING,        EXPECT("GET k"), SEND("-WRONGTYPE Operation against a key\r\n"),
        EXPECT("GET k"), SEND("$-1\r\n"), END};
    struct wr_conn *conn = must_open(steps);
    struct wr_reply *reply;

    (void)state;
    assert_int_equal(
        wr_conn_do(conn, in_ms(5000), &reply, NULL, "GET", "k", (char *)NULL),
        WEIR_E_CORRUPT);
    assert_null(reply);
    assert_int_equal(
        wr_conn_do(conn, in_ms(5000), &reply, NULL, "GET", "k", (char *)NULL), WEIR_OK);
    assert_int_equal(wr_reply_kind(reply), WR_REPLY_NIL);
    wr_reply_free(reply);
    wr_conn_close(conn);
    assert_true(fake_redis_stop(fake));
}

static void
a_hostile_reply_breaks_the_connection_only(void **state)
{
    static const struct fake_step steps[] = {GREETING, EXPECT("GET k"),
                                             SEND("*2147483647\r\n"), END};
    struct wr_conn *conn = must_open(steps);
    struct weir_error err;
    struct wr_reply *reply;

    (void)state;
    assert_int_equal(
        wr_conn_do(conn, in_ms(5000), &reply, &err, "GET", "k", (char *)NULL),
        WEIR_E_NO_REPLY);
    assert_true(wr_conn_is_broken(conn));
    wr_conn_close(conn);
    assert_true(fake_redis_stop(fake));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greeting_logs_in_selects_and_names),
        cmocka_unit_test(n15_a_user_without_password_is_not_the_default_user),
        cmocka_unit_test(a_refused_greeting_tells_why),
        cmocka_unit_test(who_may_not_have_a_name_works_without),
        cmocka_unit_test(a_server_that_refuses_and_closes_keeps_its_reason),
        cmocka_unit_test(a_reason_is_read_also_when_the_greeting_met_a_closed_socket),
        cmocka_unit_test(what_is_no_redis_is_called_so),
        cmocka_unit_test(a_server_that_takes_but_never_answers_is_no_connection),
        cmocka_unit_test(nobody_at_the_address_is_said_with_the_address),
        cmocka_unit_test(tls_is_not_built_in_yet_and_says_so),
        cmocka_unit_test(replies_come_in_the_order_of_the_commands),
        cmocka_unit_test(a_posted_command_has_its_reply_dropped_in_its_turn),
        cmocka_unit_test(has_reply_never_waits_and_keeps_what_it_found),
        cmocka_unit_test(an_end_in_the_middle_of_a_reply_is_unknown),
        cmocka_unit_test(n02_a_silent_server_is_left_at_the_deadline),
        cmocka_unit_test(
            a_command_that_fills_the_pipe_of_a_silent_server_ends_as_unknown),
        cmocka_unit_test(two_full_pipes_do_not_lock_each_other),
        cmocka_unit_test(an_error_reply_does_not_break_the_connection),
        cmocka_unit_test(a_hostile_reply_breaks_the_connection_only),
    };

    return cmocka_run_group_tests_name("conn", tests, NULL, NULL);
}
