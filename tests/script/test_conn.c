/* Connections and the pool of a server, against a real one, also through bad networks. */
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "redis/conn.h"
#include "redis/script.h"
#include "redis/server.h"
#include "support/proxy.h"
#include "support/redis_server.h"

#define CHILDREN 10
#define PER_CHILD 1000

static struct redis_server *server;
static int port;

static int64_t
in_ms(int64_t ms)
{
    return wr_clock_ms() + ms;
}

static int
start_server(void **state)
{
    char text[12];
    const char *extra[] = {"--bind", "127.0.0.1", "--port", text, NULL};

    (void)state;
    port = redis_server_free_port();
    snprintf(text, sizeof(text), "%d", port);
    server = redis_server_start(extra);
    return 0;
}

static int
stop_server(void **state)
{
    (void)state;
    redis_server_stop(server);
    return 0;
}

static int
empty_server(void **state)
{
    (void)state;
    assert_string_equal(redis_do(server, "FLUSHALL"), "OK");
    return 0;
}

static enum weir_err
open_url(const char *text, int64_t timeout_ms, struct wr_conn **out,
         struct weir_error *err)
{
    struct wr_url url;
    struct wr_conn_options o = {.url = &url, .name = "test"};
    enum weir_err rc = wr_url_parse(text, &url, err);

    *out = NULL;
    if (rc == WEIR_OK)
        rc = wr_conn_open(&o, in_ms(timeout_ms), out, err);
    return rc;
}

static struct wr_conn *
must_open(const char *text)
{
    struct weir_error err = {0};
    struct wr_conn *conn;

    if (open_url(text, 10000, &conn, &err) != WEIR_OK)
        fail_msg("%s: %s", text, err.text);
    return conn;
}

/* The reply to INCR key, or -1. */
static int64_t
incr(struct wr_conn *conn, int64_t timeout_ms)
{
    struct wr_reply *reply;
    int64_t n = -1;

    if (wr_conn_do(conn, in_ms(timeout_ms), &reply, NULL, "INCR", "n", (char *)NULL) ==
        WEIR_OK)
        n = wr_reply_int(reply);
    wr_reply_free(reply);
    return n;
}

static struct wr_server *
must_make(const char *url, size_t max, int64_t health_ms)
{
    struct wr_server_options o = {.max_connections = max,
                                  .health_check_interval_ms = health_ms,
                                  .connect_timeout_ms = 5000};
    struct wr_server *s;

    assert_int_equal(wr_url_parse(url, &o.url, NULL), WEIR_OK);
    assert_int_equal(wr_server_new(&o, &s, NULL), WEIR_OK);
    return s;
}

static struct wr_conn *
must_take(struct wr_server *s)
{
    struct weir_error err = {0};
    struct wr_conn *conn;

    if (wr_server_take(s, in_ms(10000), &conn, &err) != WEIR_OK)
        fail_msg("%s", err.text);
    return conn;
}

static void
a_unix_and_a_tcp_connection_work_alike(void **state)
{
    char tcp[64];
    const char *urls[] = {redis_server_url(server), tcp};

    (void)state;
    snprintf(tcp, sizeof(tcp), "redis://127.0.0.1:%d/3", port);
    for (int i = 0; i < 2; i++) {
        struct wr_conn *conn = must_open(urls[i]);
        struct wr_reply *reply;

        assert_int_equal(incr(conn, 5000), 1); /* each in its own database */
        assert_int_equal(wr_conn_owner(conn), getpid());
        assert_true(fcntl(wr_conn_fd(conn), F_GETFD) & FD_CLOEXEC);
        assert_true(wr_conn_idle_ms(conn) < 5000);
        assert_int_equal(wr_conn_do(conn, in_ms(5000), &reply, NULL, "CLIENT", "GETNAME",
                                    (char *)NULL),
                         WEIR_OK);
        assert_true(wr_reply_is(reply, "test"));
        wr_reply_free(reply);
        wr_conn_close(conn);
    }
}

static void
a_database_that_does_not_exist_is_the_callers_fault(void **state)
{
    struct wr_conn *conn;
    char text[160];

    (void)state;
    snprintf(text, sizeof(text), "%s?db=9999", redis_server_url(server));
    assert_int_equal(open_url(text, 5000, &conn, NULL), WEIR_E_ARG);
}

static void
n15_an_acl_user_with_a_difficult_password_logs_in(void **state)
{
    struct weir_error err;
    struct wr_conn *conn;
    char text[200];

    (void)state;
    assert_string_equal(redis_do(server,
                                 "ACL SETUSER app on >p@s:s/w%%#\xc3\xa9 ~q:* &q:* +@all "
                                 "-@dangerous"),
                        "OK");
    snprintf(text, sizeof(text),
             "redis://app:p%%40s%%3As%%2Fw%%25%%23%%C3%%A9@127.0.0.1:%d", port);
    conn = must_open(text);
    assert_int_equal(incr(conn, 5000), -1); /* not its key; the connection lives */
    assert_false(wr_conn_is_broken(conn));
    wr_conn_close(conn);
    snprintf(text, sizeof(text), "redis://app:sesame@127.0.0.1:%d", port);
    assert_int_equal(open_url(text, 5000, &conn, &err), WEIR_E_DENIED);
    assert_null(strstr(err.text, "sesame"));
    snprintf(text, sizeof(text), "redis://app@127.0.0.1:%d", port);
    assert_int_equal(open_url(text, 5000, &conn, &err), WEIR_E_DENIED);
    redis_do(server, "ACL DELUSER app");
}

static void
a_missing_right_is_named(void **state)
{
    struct weir_error err;
    struct wr_reply *reply;
    struct wr_conn *conn;
    char text[100];

    (void)state;
    redis_do(server, "ACL SETUSER weak on nopass ~* +@all -incr");
    snprintf(text, sizeof(text), "redis://weak@127.0.0.1:%d", port);
    conn = must_open(text);
    assert_int_equal(
        wr_conn_do(conn, in_ms(5000), &reply, &err, "INCR", "n", (char *)NULL),
        WEIR_E_DENIED);
    assert_non_null(strstr(err.text, "incr"));
    wr_conn_close(conn);
    redis_do(server, "ACL DELUSER weak");
}

static void
many_large_replies_under_way_arrive_whole_and_in_order(void **state)
{
    /* 64 commands of 256 KiB, each echoed, all sent before the first is received. */
    size_t len = 256 * 1024, n = 64;
    char *payload = malloc(len);
    struct wr_span argv[] = {wr_span_str("ECHO"), {payload, len}};
    struct wr_conn *conn = must_open(redis_server_url(server));

    (void)state;
    assert_non_null(payload);
    for (size_t i = 0; i < n; i++) {
        memset(payload, 'a' + (int)(i % 26), len);
        assert_int_equal(wr_conn_send(conn, argv, 2, in_ms(20000), NULL), WEIR_OK);
    }
    for (size_t i = 0; i < n; i++) {
        struct wr_reply *reply;
        struct wr_span s;

        assert_int_equal(wr_conn_recv(conn, in_ms(20000), &reply, NULL), WEIR_OK);
        s = wr_reply_span(reply);
        assert_int_equal(s.len, len);
        assert_int_equal(((const char *)s.ptr)[len - 1], 'a' + (int)(i % 26));
        wr_reply_free(reply);
    }
    wr_conn_close(conn);
    free(payload);
}

static void
what_is_held_goes_out_with_the_next_command(void **state)
{
    struct wr_span first[] = {wr_span_str("ECHO"), wr_span_str("1")};
    struct wr_span second[] = {wr_span_str("ECHO"), wr_span_str("2")};
    struct wr_conn *conn = must_open(redis_server_url(server));
    struct wr_reply *reply;

    (void)state;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(wr_conn_hold(conn, first, 2, NULL), WEIR_OK);
        assert_false(wr_conn_is_idle(conn));
        assert_false(wr_conn_wait_reply(conn, in_ms(20)));
        assert_int_equal(wr_conn_send(conn, second, 2, in_ms(10000), NULL), WEIR_OK);
        for (int i = 1; i <= 2; i++) {
            assert_int_equal(wr_conn_recv(conn, in_ms(10000), &reply, NULL), WEIR_OK);
            assert_int_equal(wr_reply_int(reply), i);
            wr_reply_free(reply);
        }
        assert_true(wr_conn_is_idle(conn));
    }
    wr_conn_close(conn);
}

static void
a_reply_over_the_limit_breaks_the_connection(void **state)
{
    struct wr_url url;
    struct wr_conn_options o = {.url = &url, .reply_max_bytes = 10000};
    struct wr_reply *reply;
    struct wr_conn *conn;
    struct weir_error err;

    (void)state;
    redis_do(server, "SETRANGE long 20000 x");
    redis_do(server, "SETRANGE short 5000 x");
    assert_int_equal(wr_url_parse(redis_server_url(server), &url, NULL), WEIR_OK);
    assert_int_equal(wr_conn_open(&o, in_ms(5000), &conn, NULL), WEIR_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(
            wr_conn_do(conn, in_ms(5000), &reply, NULL, "GET", "short", (char *)NULL),
            WEIR_OK);
        wr_reply_free(reply);
    }
    assert_int_equal(
        wr_conn_do(conn, in_ms(5000), &reply, &err, "GET", "long", (char *)NULL),
        WEIR_E_NO_REPLY);
    assert_non_null(strstr(err.text, "longer than allowed"));
    assert_true(wr_conn_is_broken(conn));
    wr_conn_close(conn);
}

static void
n02_a_network_that_forgot_us_is_left_at_the_deadline(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(server));
    struct wr_conn *conn = must_open(proxy_url(proxy)), *second;
    int64_t before;

    (void)state;
    assert_int_equal(incr(conn, 5000), 1);
    proxy_stall(proxy);
    before = wr_clock_ms();
    assert_int_equal(incr(conn, 100), -1);
    assert_true(wr_clock_ms() >= before + 100 && wr_clock_ms() < before + 5000);
    assert_true(wr_conn_is_broken(conn));
    assert_int_equal(open_url(proxy_url(proxy), 100, &second, NULL), WEIR_E_CONNECT);
    wr_conn_close(conn);
    proxy_forward(proxy);
    conn = must_open(proxy_url(proxy));
    assert_true(incr(conn, 5000) >= 2);
    wr_conn_close(conn);
    assert_int_equal(proxy_connections(proxy), 3);
    proxy_stop(proxy);
}

static void
n12_a_reply_that_is_lost_leaves_the_command_done_and_unknown(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(server));

    (void)state;
    for (unsigned i = 1; i <= 20; i++) {
        struct wr_conn *conn = must_open(proxy_url(proxy));
        struct wr_reply *reply;

        proxy_cut_after_requests(proxy, 1);
        assert_int_equal(
            wr_conn_do(conn, in_ms(5000), &reply, NULL, "INCR", "n", (char *)NULL),
            WEIR_E_NO_REPLY);
        assert_int_equal(proxy_cuts(proxy), i);
        wr_conn_close(conn);
    }
    assert_string_equal(redis_do(server, "GET n"), "20");
    proxy_stop(proxy);
}

static void
a_reply_cut_at_any_byte_is_unknown(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(server));

    (void)state;
    redis_do(server, "SET k hello"); /* $5 CR LF hello CR LF: 11 bytes */
    for (size_t n = 0; n < 11; n++) {
        struct wr_conn *conn = must_open(proxy_url(proxy));
        struct wr_reply *reply;

        proxy_cut_reply_at(proxy, n);
        assert_int_equal(
            wr_conn_do(conn, in_ms(5000), &reply, NULL, "GET", "k", (char *)NULL),
            WEIR_E_NO_REPLY);
        wr_conn_close(conn);
    }
    assert_int_equal(proxy_cuts(proxy), 11);
    proxy_stop(proxy);
}

static void
a_slow_network_is_only_slow(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(server));
    struct wr_conn *conn = must_open(proxy_url(proxy));
    int64_t before = wr_clock_ms();

    (void)state;
    proxy_delay(proxy, 30);
    assert_int_equal(incr(conn, 10000), 1);
    assert_true(wr_clock_ms() - before >= 60); /* there and back */
    wr_conn_close(conn);
    proxy_stop(proxy);
}

static void
a_killed_server_is_noticed_and_found_again(void **state)
{
    struct wr_conn *conn = must_open(redis_server_url(server)), *none;
    struct weir_error err;

    (void)state;
    redis_server_kill(server);
    assert_int_equal(incr(conn, 5000), -1);
    assert_true(wr_conn_is_broken(conn));
    wr_conn_close(conn);
    assert_int_equal(open_url(redis_server_url(server), 1000, &none, &err),
                     WEIR_E_CONNECT);
    assert_non_null(strstr(err.text, redis_server_socket(server)));
    redis_server_restart(server);
    conn = must_open(redis_server_url(server));
    assert_int_equal(incr(conn, 5000), 1);
    wr_conn_close(conn);
}

static void
n05_a_script_survives_a_flush_of_the_cache(void **state)
{
    static const char *const statuses[] = {"OK", NULL};
    static const char body[] = "return {'OK', redis.call('INCR', KEYS[1])}";
    struct wr_conn *conn = must_open(redis_server_url(server));
    char sha1[41] = "";
    struct wr_script script = {.name = "test/incr",
                               .body = body,
                               .body_len = sizeof(body) - 1,
                               .nkeys = 1,
                               .statuses = statuses};
    struct wr_span key = wr_span_str("n"), load[] = {wr_span_str("SCRIPT"),
                                                     wr_span_str("LOAD"),
                                                     {body, sizeof(body) - 1}};
    struct wr_reply *reply;

    (void)state;
    assert_int_equal(wr_conn_call(conn, load, 3, in_ms(5000), &reply, NULL), WEIR_OK);
    assert_int_equal(wr_reply_span(reply).len, 40);
    memcpy(sha1, wr_reply_span(reply).ptr, 40);
    wr_reply_free(reply);
    script.sha1 = sha1;
    for (int64_t i = 1; i <= 100; i++) {
        unsigned status = 9;

        if (i % 2)
            assert_string_equal(redis_do(server, "SCRIPT FLUSH"), "OK");
        assert_int_equal(
            wr_script_run(conn, &script, &key, 1, in_ms(5000), &reply, &status, NULL),
            WEIR_OK);
        assert_int_equal(status, 0);
        assert_int_equal(wr_reply_int(wr_reply_at(reply, 1)), i);
        wr_reply_free(reply);
    }
    wr_conn_close(conn);
}

static void
a_connection_with_an_unread_reply_is_not_lent_again(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(server));
    struct wr_server *s = must_make(proxy_url(proxy), 2, 0);
    struct wr_conn *conn = must_take(s);
    struct wr_span ping = wr_span_str("PING");

    (void)state;
    proxy_delay(proxy, 100); /* the reply is not there yet when it is lent again */
    assert_int_equal(wr_conn_send(conn, &ping, 1, in_ms(5000), NULL), WEIR_OK);
    wr_server_give(s, conn); /* its PONG would be taken for the answer to INCR */
    conn = must_take(s);
    assert_int_equal(incr(conn, 5000), 1);
    wr_server_give(s, conn);
    wr_server_free(s);
    proxy_stop(proxy);
}

static void
a_connection_that_the_server_closed_is_replaced(void **state)
{
    struct wr_server *s = must_make(redis_server_url(server), 2, 0);
    struct wr_conn *conn = must_take(s);

    (void)state;
    assert_int_equal(incr(conn, 5000), 1);
    wr_server_give(s, conn);
    redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
    conn = must_take(s);
    assert_int_equal(incr(conn, 5000), 2);
    wr_server_give(s, conn);
    wr_server_free(s);
}

static void
n02_a_dead_idle_connection_leaves_time_for_a_new_one(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(server));
    struct wr_server *s = must_make(proxy_url(proxy), 1, 1);
    struct wr_conn *conn = must_take(s);
    int64_t before;

    (void)state;
    assert_int_equal(incr(conn, 5000), 1);
    before = wr_clock_ms();
    while (wr_clock_ms() < before + 3) /* idle longer than the interval */
        poll(NULL, 0, 1);
    wr_server_give(s, conn);
    proxy_stall(proxy);
    before = wr_clock_ms();
    assert_int_equal(wr_server_take(s, in_ms(400), &conn, NULL), WEIR_E_CONNECT);
    assert_true(wr_clock_ms() < before + 5000);
    assert_int_equal(proxy_connections(proxy), 2); /* the PING did not use up all */
    proxy_forward(proxy);
    conn = must_take(s);
    assert_int_equal(incr(conn, 5000), 2);
    wr_server_give(s, conn);
    wr_server_free(s);
    proxy_stop(proxy);
}

struct crowd {
    struct wr_server *server;
    _Atomic int failed;
};

static void *
count_up(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < 300; i++) {
        struct wr_conn *conn;

        if (wr_server_take(crowd->server, in_ms(20000), &conn, NULL) != WEIR_OK) {
            crowd->failed++;
            continue;
        }
        if (incr(conn, 20000) < 1)
            crowd->failed++;
        wr_server_give(crowd->server, conn);
    }
    return NULL;
}

static void
threads_share_the_pool_of_a_server(void **state)
{
    struct crowd crowd = {.server = must_make(redis_server_url(server), 3, 0)};
    pthread_t threads[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &crowd), 0);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.failed, 0);
    assert_string_equal(redis_do(server, "GET n"), "1800");
    wr_server_free(crowd.server);
}

/* A child of N16: its own words through the pool it inherited. */
static int
push_own(struct wr_server *s, struct wr_conn *lent, int child)
{
    wr_server_give(s, lent); /* the parent's: let go without a word to the server */
    for (int i = 0; i < PER_CHILD; i++) {
        struct wr_conn *conn;
        struct wr_reply *reply;
        char word[32];
        bool added;

        snprintf(word, sizeof(word), "%d.%d", child, i);
        if (wr_server_take(s, in_ms(20000), &conn, NULL) != WEIR_OK)
            return 1;
        if (wr_conn_owner(conn) != getpid())
            return 2;
        if (wr_conn_do(conn, in_ms(20000), &reply, NULL, "SADD", "words", word,
                       (char *)NULL) != WEIR_OK)
            return 3;
        added = wr_reply_kind(reply) == WR_REPLY_INTEGER && wr_reply_int(reply) == 1;
        wr_reply_free(reply);
        wr_server_give(s, conn);
        if (!added)
            return 4;
    }
    return 0;
}

static void
n16_forked_processes_never_share_a_connection(void **state)
{
    struct wr_server *s = must_make(redis_server_url(server), 2, 0);
    struct wr_conn *idle = must_take(s), *lent = must_take(s);
    pid_t children[CHILDREN];

    (void)state;
    wr_server_give(s, idle); /* one idle and one lent at the time of the fork */
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            _exit(push_own(s, lent, i));
    }
    for (int i = 0; i < 200; i++) /* meanwhile the parent goes on with both */
        assert_int_equal(incr(lent, 20000), i + 1);
    for (int i = 0; i < CHILDREN; i++) {
        int status;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_string_equal(redis_do(server, "SCARD words"), "10000");
    wr_server_give(s, lent);
    idle = must_take(s);
    assert_ptr_equal(idle, lent); /* no child's end broke it */
    assert_int_equal(incr(idle, 5000), 201);
    wr_server_give(s, idle);
    wr_server_free(s);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, empty_server)
    const struct CMUnitTest tests[] = {
        TEST(a_unix_and_a_tcp_connection_work_alike),
        TEST(a_database_that_does_not_exist_is_the_callers_fault),
        TEST(n15_an_acl_user_with_a_difficult_password_logs_in),
        TEST(a_missing_right_is_named),
        TEST(many_large_replies_under_way_arrive_whole_and_in_order),
        TEST(what_is_held_goes_out_with_the_next_command),
        TEST(a_reply_over_the_limit_breaks_the_connection),
        TEST(n02_a_network_that_forgot_us_is_left_at_the_deadline),
        TEST(n12_a_reply_that_is_lost_leaves_the_command_done_and_unknown),
        TEST(a_reply_cut_at_any_byte_is_unknown),
        TEST(a_slow_network_is_only_slow),
        TEST(a_killed_server_is_noticed_and_found_again),
        TEST(n05_a_script_survives_a_flush_of_the_cache),
        TEST(a_connection_with_an_unread_reply_is_not_lent_again),
        TEST(a_connection_that_the_server_closed_is_replaced),
        TEST(n02_a_dead_idle_connection_leaves_time_for_a_new_one),
        TEST(threads_share_the_pool_of_a_server),
        TEST(n16_forked_processes_never_share_a_connection),
    };

    return cmocka_run_group_tests_name("conn", tests, start_server, stop_server);
}
