/* The protocol reader, its limits, and the views of a reply. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "redis/resp.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LIMIT ((size_t)1 << 20)

/* The reply in text, which must be whole. */
static struct wr_reply *
parse(const char *text, size_t len)
{
    struct wr_resp *r = wr_resp_new(LIMIT);
    struct wr_reply *reply;

    assert_non_null(r);
    assert_true(wr_resp_feed(r, text, len));
    assert_int_equal(wr_resp_next(r, &reply), WR_RESP_READY);
    wr_resp_free(r);
    return reply;
}

static struct wr_reply *
parse_str(const char *text)
{
    return parse(text, strlen(text));
}

static void
a_command_is_an_array_of_counted_words(void **state)
{
    struct wr_span argv[] = {wr_span_str("SET"), {"a\0b", 3}, {"", 0}};
    struct wr_buf out = {0};

    (void)state;
    wr_resp_format(&out, argv, 3);
    assert_int_equal(out.len, 4 + 9 + 9 + 6);
    assert_memory_equal(out.ptr, "*3\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$0\r\n\r\n", out.len);
    wr_buf_fini(&out);
}

static void
a_word_of_any_length_is_counted_as_printf_would(void **state)
{
    static char big[123456];
    struct wr_buf out = {0};

    (void)state;
    memset(big, 'x', sizeof(big));
    for (size_t len = 0; len <= sizeof(big); len = len < 9 ? len + 1 : len * 10 / 9) {
        struct wr_span argv[12];
        char head[64];
        int n = snprintf(head, sizeof(head), "*12\r\n$%zu\r\n", len);

        for (size_t i = 0; i < 12; i++)
            argv[i] = (struct wr_span){big, len};
        wr_buf_clear(&out);
        wr_resp_format(&out, argv, 12);
        assert_false(out.failed);
        assert_memory_equal(out.ptr, head, (size_t)n);
        assert_int_equal(out.len, 5 + 12 * ((size_t)n - 5 + len + 2));
        assert_memory_equal(out.ptr + out.len - 2, "\r\n", 3);
    }
    wr_buf_fini(&out);
}

static void
every_kind_of_reply_has_its_view(void **state)
{
    struct wr_reply *r = parse_str(
        "*6\r\n$-1\r\n:-42\r\n+OK\r\n$2\r\n17\r\n-ERR x\r\n*0\r\n");

    (void)state;
    assert_int_equal(wr_reply_kind(r), WR_REPLY_ARRAY);
    assert_int_equal(wr_reply_len(r), 6);
    assert_int_equal(wr_reply_kind(wr_reply_at(r, 0)), WR_REPLY_NIL);
    assert_int_equal(wr_reply_int(wr_reply_at(r, 1)), -42);
    assert_true(wr_reply_is(wr_reply_at(r, 2), "OK"));
    assert_false(wr_reply_is(wr_reply_at(r, 2), "O"));
    assert_int_equal(wr_reply_int(wr_reply_at(r, 3)), 17);
    assert_int_equal(wr_reply_kind(wr_reply_at(r, 4)), WR_REPLY_ERROR);
    assert_int_equal(wr_reply_span(wr_reply_at(r, 4)).len, 5);
    assert_false(wr_reply_is(wr_reply_at(r, 4), "ERR x")); /* an error is no word */
    assert_int_equal(wr_reply_kind(wr_reply_at(r, 5)), WR_REPLY_ARRAY);
    assert_int_equal(wr_reply_len(wr_reply_at(r, 5)), 0);
    wr_reply_free(r);
}

static void
what_is_not_there_is_empty(void **state)
{
    struct wr_reply *r = parse_str("$3\r\n1.5\r\n");

    (void)state;
    assert_null(wr_reply_at(r, 0));
    assert_int_equal(wr_reply_len(r), 0);
    assert_int_equal(wr_reply_int(r), 0); /* not an integer */
    assert_int_equal(wr_reply_kind(NULL), WR_REPLY_NIL);
    assert_int_equal(wr_reply_span(NULL).len, 0);
    assert_non_null(wr_reply_span(NULL).ptr);
    assert_int_equal(wr_reply_int(NULL), 0);
    assert_false(wr_reply_is(NULL, ""));
    assert_null(wr_reply_at(NULL, 0));
    wr_reply_free(NULL);
    wr_reply_free(r);
    r = parse_str("*-1\r\n");
    assert_int_equal(wr_reply_kind(r), WR_REPLY_NIL);
    wr_reply_free(r);
    r = parse("$3\r\na\0b\r\n", 9);
    assert_int_equal(wr_reply_span(r).len, 3);
    wr_reply_free(r);
}

static void
a_reply_may_come_byte_by_byte(void **state)
{
    static const char text[] = "*2\r\n$5\r\nhello\r\n:7\r\n+next\r\n";
    struct wr_resp *r = wr_resp_new(LIMIT);
    struct wr_reply *reply;
    int whole = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        assert_true(wr_resp_feed(r, text + i, 1));
        switch (wr_resp_next(r, &reply)) {
        case WR_RESP_READY:
            whole++;
            assert_true(i == 18 || i == sizeof(text) - 2);
            wr_reply_free(reply);
            break;
        case WR_RESP_MORE:
            assert_null(reply);
            break;
        case WR_RESP_BROKEN:
            fail();
        }
    }
    assert_int_equal(whole, 2);
    wr_resp_free(r);
}

static void
several_replies_in_one_piece_come_in_order(void **state)
{
    struct wr_resp *r = wr_resp_new(LIMIT);
    struct wr_reply *reply;

    (void)state;
    assert_true(wr_resp_feed(r, ":1\r\n:2\r\n:3\r", 11));
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(wr_resp_next(r, &reply), WR_RESP_READY);
        assert_int_equal(wr_reply_int(reply), i);
        wr_reply_free(reply);
    }
    assert_int_equal(wr_resp_next(r, &reply), WR_RESP_MORE);
    wr_resp_free(r);
}

/* Feeds text until the reader is broken; false when it never is. */
static bool
breaks(const char *text, size_t times, char why[128])
{
    struct wr_resp *r = wr_resp_new(LIMIT);
    struct wr_reply *reply;
    bool broken = false;

    for (size_t i = 0; i < times && !broken; i++) {
        broken = !wr_resp_feed(r, text, strlen(text));
        if (!broken && wr_resp_next(r, &reply) == WR_RESP_BROKEN)
            broken = true;
        else if (!broken)
            wr_reply_free(reply);
    }
    if (broken) {
        snprintf(why, 128, "%s", wr_resp_why(r));
        assert_false(wr_resp_feed(r, "+OK\r\n", 5)); /* and stays so */
        assert_int_equal(wr_resp_next(r, &reply), WR_RESP_BROKEN);
        assert_null(reply);
    }
    wr_resp_free(r);
    return broken;
}

static void
what_is_not_the_protocol_breaks_it(void **state)
{
    static const char *const bad[] = {"HTTP/1.1 400 Bad Request\r\n", "\x1b[31m\r\n",
                                      "$-2\r\n", "*-2\r\n", "\r\n"};
    char why[128];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (!breaks(bad[i], 1, why))
            fail_msg("\"%s\" was taken", bad[i]);
        assert_true(why[0] != '\0');
        assert_null(strchr(why, '\x1b'));
    }
}

static void
a_reply_longer_than_allowed_breaks_it(void **state)
{
    char why[128];

    (void)state;
    /* The count promises a gigabyte; only what arrives is stored, up to the limit. */
    assert_true(breaks("$1000000000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                       LIMIT / 40, why));
    assert_non_null(strstr(why, "longer than allowed"));
    /* Many short ones that are taken away are no long one. */
    assert_false(
        breaks("+0123456789012345678901234567890123456789\r\n", LIMIT / 20, why));
}

static void
an_array_of_absurd_length_breaks_it_at_once(void **state)
{
    char why[128];

    (void)state;
    assert_true(breaks("*1048577\r\n", 1, why));
    assert_non_null(strstr(why, "arrays"));
    assert_true(breaks("*2147483647\r\n", 1, why));
    assert_true(breaks("*9223372036854775807\r\n", 1, why));
    assert_false(breaks("*1048576\r\n", 1, why));
}

static void
arrays_in_an_array_count_together(void **state)
{
    char why[128], text[4100];

    (void)state;
    assert_true(breaks("*2\r\n*600000\r\n*600000\r\n", 1, why));
    assert_non_null(strstr(why, "arrays"));
    /* Each reply begins anew: more elements than allowed, over many replies. */
    strcpy(text, "*1\r\n*1000\r\n");
    for (int i = 0; i < 1000; i++)
        strcat(text + 4 * i, ":1\r\n");
    assert_false(breaks(text, WR_RESP_ELEMENTS_MAX / 1000 + 10, why));
}

static void
arrays_nested_too_deep_break_it(void **state)
{
    char text[400] = "", why[128];

    (void)state;
    for (int i = 0; i < 7; i++)
        strcat(text, "*1\r\n");
    assert_false(breaks(text, 1, why));
    strcat(text, "*1\r\n*1\r\n");
    assert_true(breaks(text, 1, why));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_is_an_array_of_counted_words),
        cmocka_unit_test(a_word_of_any_length_is_counted_as_printf_would),
        cmocka_unit_test(every_kind_of_reply_has_its_view),
        cmocka_unit_test(what_is_not_there_is_empty),
        cmocka_unit_test(a_reply_may_come_byte_by_byte),
        cmocka_unit_test(several_replies_in_one_piece_come_in_order),
        cmocka_unit_test(what_is_not_the_protocol_breaks_it),
        cmocka_unit_test(a_reply_longer_than_allowed_breaks_it),
        cmocka_unit_test(an_array_of_absurd_length_breaks_it_at_once),
        cmocka_unit_test(arrays_in_an_array_count_together),
        cmocka_unit_test(arrays_nested_too_deep_break_it),
    };

    return cmocka_run_group_tests_name("resp", tests, NULL, NULL);
}
