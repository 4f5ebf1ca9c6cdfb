/* What people write, read and shown. */
#include "support/cmocka_all.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/digits.h"
#include "base/text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NOW_MS INT64_C(1796000000123) /* 2026-11-30T00:53:20.123Z */

struct row {
    const char *text;
    int64_t value; /* -1: refused */
};

static void
integers_take_the_whole_text_or_nothing(void **state)
{
    static const char *const bad[] = {"",
                                      "-",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "0x10",
                                      "1e3",
                                      "1.0",
                                      "--1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "1a"};
    int64_t v = 42;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (wr_text_int(bad[i], INT64_MIN, INT64_MAX, &v))
            fail_msg("\"%s\" was read as %lld", bad[i], (long long)v);
    }
    assert_int_equal(v, 42); /* untouched by failures */
    assert_true(wr_text_int("9223372036854775807", INT64_MIN, INT64_MAX, &v));
    assert_true(v == INT64_MAX);
    assert_true(wr_text_int("-9223372036854775808", INT64_MIN, INT64_MAX, &v));
    assert_true(v == INT64_MIN);
    assert_true(wr_text_int("007", 0, 7, &v));
    assert_int_equal(v, 7);
    assert_false(wr_text_int("8", 0, 7, &v));
    assert_false(wr_text_int("-1", 0, 7, &v));
    assert_true(wr_span_int(wr_span_str("9223372036854775807"), &v));
    assert_int_equal(v, INT64_MAX);
    assert_false(wr_span_int(wr_span_str("9223372036854775808"), &v));
    assert_false(wr_span_int(wr_span_str("-1"), &v));
    assert_false(wr_span_int(wr_span_str(""), &v));
    assert_false(wr_span_int((struct wr_span){"1\0", 2}, &v));
}

static void
check_durations(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = -1;
        bool ok = wr_text_duration(rows[i].text, &v);

        if (ok != (rows[i].value >= 0) || (ok && v != rows[i].value))
            fail_msg("\"%s\": %d, %lld", rows[i].text, ok, (long long)v);
    }
}

static void
digits_are_those_of_printf(void **state)
{
    (void)state;
    for (uint64_t power = 1;; power *= 10) {
        const uint64_t all[] = {0, power - 1, power, power + 1, UINT64_MAX - power};

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            char mine[WR_DIGITS_MAX], theirs[WR_DIGITS_MAX + 1];
            int len = snprintf(theirs, sizeof(theirs), "%" PRIu64, all[i]);

            assert_int_equal(wr_digits(all[i], mine), len);
            assert_memory_equal(mine, theirs, (size_t)len);
        }
        if (power > UINT64_MAX / 10)
            break;
    }
}

static void
durations_have_units_and_decimals(void **state)
{
    static const struct row rows[] = {{"0", 0},
                                      {"250ms", 250},
                                      {"15s", 15000},
                                      {"5m", 300000},
                                      {"2h", 7200000},
                                      {"3d", 259200000},
                                      {"1w", 604800000},
                                      {"1h30m", 5400000},
                                      {"1.5s", 1500},
                                      {"90", 90000},
                                      {"0.5", 500},
                                      {"1.0005s", 1000},
                                      {"1m5s250ms", 65250},
                                      {"0.1w", 60480000},
                                      {"9007199254740992ms", 9007199254740992}};

    (void)state;
    check_durations(rows, COUNT(rows));
}

static void
bad_durations_are_refused(void **state)
{
    static const struct row rows[] = {
        {"", -1},
        {"-1", -1},
        {"+1s", -1},
        {"nan", -1},
        {"inf", -1},
        {"s", -1},
        {"1x", -1},
        {"1 s", -1},
        {" 1s", -1},
        {"1s ", -1},
        {"1e3", -1},
        {"0x10", -1},
        {"1h30", -1},
        {".5s", -1},
        {"1.s", -1},
        {"1..5s", -1},
        {"1S", -1},
        {"1,5s", -1},
        {"1s-1s", -1},
        {"9007199254740993ms", -1},
        {"9223372036854775807w", -1},
        {"9223372036854775.9", -1},
        {"99999999999999999999s", -1},
        {"9223372036854775807.999999ms9223372036854775807ms", -1}};

    (void)state;
    check_durations(rows, COUNT(rows));
}

static void
sizes_are_powers_of_1024(void **state)
{
    static const struct row rows[] = {{"0", 0},
                                      {"512", 512},
                                      {"64k", 65536},
                                      {"1K", 1024},
                                      {"1M", 1048576},
                                      {"1g", 1073741824},
                                      {"8t", INT64_C(8796093022208)},
                                      {"", -1},
                                      {"k", -1},
                                      {"1kb", -1},
                                      {"-1", -1},
                                      {"1.5k", -1},
                                      {"1 k", -1},
                                      {"9999999999999g", -1},
                                      {"9223372036854775807", INT64_MAX},
                                      {"9223372036854775808", -1},
                                      {"1x", -1}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t v = -1;
        bool ok = wr_text_size(rows[i].text, &v);

        if (ok != (rows[i].value >= 0) || (ok && v != rows[i].value))
            fail_msg("\"%s\": %d, %lld", rows[i].text, ok, (long long)v);
    }
}

static void
check_times(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = -1;
        bool ok = wr_text_time(rows[i].text, NOW_MS, &v);

        if (ok != (rows[i].value >= 0) || (ok && v != rows[i].value))
            fail_msg("\"%s\": %d, %lld", rows[i].text, ok, (long long)v);
    }
}

static void
times_are_numbers_rfc3339_or_relative(void **state)
{
    static const struct row rows[] = {
        {"0", 0},
        {"1796000000", 1796000000000},
        {"1796000000.5", 1796000000500},
        {"1796000000000ms", 1796000000000},
        {"now", NOW_MS},
        {"now+5m", NOW_MS + 300000},
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-30T09:00:00Z", 1796029200000},
        {"2026-11-30 09:00:00Z", 1796029200000},
        {"2026-11-30t09:00:00z", 1796029200000},
        {"2026-11-30T09:00:00+01:00", 1796025600000},
        {"2026-11-30T09:00:00-0130", 1796034600000},
        {"2026-11-30T09:00:00.25Z", 1796029200250},
        {"2026-11-30T09:00:00.123456789123Z", 1796029200123},
        {"2024-02-29T00:00:00Z", 1709164800000},
        {"2000-02-29T23:59:60Z", 951868800000},
        {"9999-12-31T23:59:59.999Z", WR_TIME_MAX_MS}};

    (void)state;
    check_times(rows, COUNT(rows));
}

static void
bad_times_are_refused(void **state)
{
    static const struct row rows[] = {{"", -1},
                                      {"-1", -1},
                                      {"soon", -1},
                                      {"now-5m", -1},
                                      {"now+", -1},
                                      {"now+-1s", -1},
                                      {"now+9007199254740992ms", -1},
                                      {"253402300800", -1},
                                      {"9223372036854775807", -1},
                                      {"9223372036854775807.9", -1},
                                      {"1796000000.5ms", -1},
                                      {"1e9", -1},
                                      {"2026-11-30", -1},
                                      {"2026-11-30T09:00:00", -1},
                                      {"2026-13-01T00:00:00Z", -1},
                                      {"2026-00-01T00:00:00Z", -1},
                                      {"2026-02-29T00:00:00Z", -1},
                                      {"2100-02-29T00:00:00Z", -1},
                                      {"2026-11-31T00:00:00Z", -1},
                                      {"2026-11-30T24:00:00Z", -1},
                                      {"2026-11-30T09:60:00Z", -1},
                                      {"2026-11-30T09:00:00.Z", -1},
                                      {"2026-11-30T09:00:00Zx", -1},
                                      {"2026-11-30T09:00:00+24:00", -1},
                                      {"1969-12-31T23:59:59Z", -1},
                                      {"1970-01-01T00:00:00+01:00", -1},
                                      {"9999-12-31T23:59:59-01:00", -1},
                                      {"tomorrow", -1},
                                      {"tomorrow 25:00", -1},
                                      {"tomorrow 9:00", -1},
                                      {"today 09:00x", -1},
                                      {"today  09:00", -1}};

    (void)state;
    check_times(rows, COUNT(rows));
}

static void
today_and_tomorrow_are_in_the_zone_of_tz(void **state)
{
    static const struct row berlin[] = {{"today 18:30", 1796059800000},
                                        {"tomorrow 09:00", 1796112000000},
                                        {"tomorrow 09:00:30", 1796112030000}};
    static const struct row utc[] = {{"tomorrow 09:00", 1796115600000}};
    int64_t spring;

    (void)state;
    /* A zone as POSIX writes it: also without the zone files. */
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    check_times(berlin, COUNT(berlin));
    /* The night to 2026-03-29 has 23 hours: 09:00 is 07:00 UTC, not 08:00. */
    assert_true(wr_text_time("tomorrow 09:00", INT64_C(1774710000000), &spring));
    assert_int_equal(spring, INT64_C(1774767600000));
    setenv("TZ", "UTC0", 1);
    tzset();
    check_times(utc, COUNT(utc));
}

static void
a_shown_time_is_read_back(void **state)
{
    static const int64_t times[] = {0, 999, 951782400000, NOW_MS, WR_TIME_MAX_MS};
    char text[32];
    int64_t back;

    (void)state;
    for (size_t i = 0; i < COUNT(times); i++) {
        wr_text_show_time(times[i], text);
        assert_true(wr_text_time(text, 0, &back));
        assert_int_equal(back, times[i]);
    }
    wr_text_show_time(1796029200123, text);
    assert_string_equal(text, "2026-11-30T09:00:00.123Z");
    wr_text_show_time(INT64_MAX, text);
    assert_string_equal(text, "9223372036854775807ms");
    wr_text_show_time(INT64_MIN, text);
    assert_string_equal(text, "-9223372036854775808ms");
}

static void
durations_are_shown_short(void **state)
{
    static const struct row rows[] = {
        {"0ms", 0},          {"812ms", 812},    {"1.5s", 1500},      {"1m05s", 65000},
        {"3h12m", 11520000}, {"2d", 172800000}, {"2d05h", 190800000}};
    char text[24];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        wr_text_show_duration(rows[i].value, text, sizeof(text));
        assert_string_equal(text, rows[i].text);
    }
    wr_text_show_duration(INT64_MAX, text, sizeof(text));
    assert_true(strlen(text) < sizeof(text));
    wr_text_show_duration(-5, text, sizeof(text));
    assert_string_equal(text, "-5ms");
}

static void
check_escape(const char *in, size_t len, const char *wanted)
{
    struct wr_buf b = {0};

    wr_text_escape(&b, (struct wr_span){in, len});
    assert_int_equal(b.len, strlen(wanted));
    assert_memory_equal(wr_buf_span(&b).ptr, wanted, b.len);
    wr_buf_fini(&b);
}

static void
what_a_stranger_wrote_cannot_steer_a_terminal(void **state)
{
    (void)state;
    check_escape("", 0, "");
    check_escape("plain \xc3\xa9 \xf0\x9f\x98\x80", 13,
                 "plain \xc3\xa9 \xf0\x9f\x98\x80");
    check_escape("\x1b[31m", 5, "\\x1b[31m");
    check_escape("a\0b\nc\x7f", 6, "a\\x00b\\x0ac\\x7f");
    check_escape("\xc2\x9b"
                 "1m",
                 4,
                 "\\xc2\\x9b"
                 "1m"); /* CSI in one character */
    check_escape("\xe2\x80\xae"
                 "x",
                 4, "\\xe2\\x80\\xaex");                /* right to left */
    check_escape("\xc0\xaf", 2, "\\xc0\\xaf");          /* overlong */
    check_escape("\xed\xa0\x80", 3, "\\xed\\xa0\\x80"); /* half a surrogate pair */
    check_escape("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"); /* past Unicode */
    check_escape("\xe2\x82", 2, "\\xe2\\x82");                   /* cut */
}

static void
any_bytes_become_one_word_and_back(void **state)
{
    struct wr_buf all = {0}, word = {0}, back = {0};

    (void)state;
    for (int i = 0; i < 256; i++)
        wr_buf_add(&all, &(char){(char)i}, 1);
    wr_text_word_encode(&word, wr_buf_span(&all));
    for (size_t i = 0; i < word.len; i++)
        assert_true((unsigned char)word.ptr[i] > ' ' && word.ptr[i] != '=' &&
                    word.ptr[i] != 0x7f);
    assert_true(wr_text_word_decode(&back, wr_buf_span(&word)));
    assert_int_equal(back.len, 256);
    assert_memory_equal(back.ptr, all.ptr, 256);
    wr_buf_fini(&all);
    wr_buf_fini(&word);
    wr_buf_fini(&back);
}

/* Where "-" stands for none. */
static void
a_given_dash_is_not_the_dash_of_none(void **state)
{
    static const char *const rows[][2] = {
        {"-", "%2D"}, {"--", "--"}, {"a-", "a-"}, {"=", "%3D"}, {"", ""}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wr_buf word = {0};

        wr_text_given_word_encode(&word, wr_span_str(rows[i][0]));
        assert_string_equal(wr_buf_span(&word).ptr, rows[i][1]);
        wr_buf_fini(&word);
    }
}

static void
bad_escapes_are_refused(void **state)
{
    static const char *const bad[] = {"%",   "%4",   "a%",  "%g0",
                                      "%0g", "%%41", "%-1", "% 1"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct wr_buf out = {0};

        if (wr_text_word_decode(&out, wr_span_str(bad[i])))
            fail_msg("\"%s\" was taken", bad[i]);
        wr_buf_fini(&out);
    }
}

static void
names_have_lengths_and_forbidden_bytes(void **state)
{
    char name[260];

    (void)state;
    memset(name, 'x', sizeof(name));
    assert_true(wr_text_is_job_id((struct wr_span){name, 255}));
    assert_false(wr_text_is_job_id((struct wr_span){name, 256}));
    assert_false(wr_text_is_job_id((struct wr_span){name, 0}));
    assert_true(wr_text_is_job_id(wr_span_str("a b{}\xc3\xa9")));
    assert_false(wr_text_is_job_id((struct wr_span){"a\0b", 3}));
    assert_false(wr_text_is_job_id(wr_span_str("a\nb")));
    assert_false(wr_text_is_job_id(wr_span_str("a\x7f")));
    assert_true(wr_text_is_queue((struct wr_span){name, 128}));
    assert_false(wr_text_is_queue((struct wr_span){name, 129}));
    assert_false(wr_text_is_queue(wr_span_str("a{b")));
    assert_false(wr_text_is_queue(wr_span_str("a}b")));
    assert_false(wr_text_is_queue(wr_span_str("")));
    assert_true(wr_text_is_type((struct wr_span){name, 128}));
    assert_false(wr_text_is_type((struct wr_span){name, 129}));
    assert_false(wr_text_is_type(wr_span_str("a\t")));
}

static void
a_slip_of_the_finger_finds_its_word(void **state)
{
    static const char *const names[] = {"enqueue", "work", "status", "audit", NULL};
    static const char *const none[] = {NULL};
    char lengthy[200];

    (void)state;
    assert_string_equal(wr_text_nearest("enqeue", names), "enqueue");
    assert_string_equal(wr_text_nearest("wrok", names), "work");
    assert_string_equal(wr_text_nearest("statsu", names), "status");
    assert_string_equal(wr_text_nearest("audit", names), "audit");
    assert_null(wr_text_nearest("frobnicate", names));
    assert_null(wr_text_nearest("wk", names)); /* half of a short word is not near */
    assert_null(wr_text_nearest("wobble", names));
    assert_null(wr_text_nearest("work", none));
    memset(lengthy, 'w', sizeof(lengthy) - 1);
    lengthy[sizeof(lengthy) - 1] = '\0';
    assert_null(wr_text_nearest(lengthy, names));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_take_the_whole_text_or_nothing),
        cmocka_unit_test(digits_are_those_of_printf),
        cmocka_unit_test(durations_have_units_and_decimals),
        cmocka_unit_test(bad_durations_are_refused),
        cmocka_unit_test(sizes_are_powers_of_1024),
        cmocka_unit_test(times_are_numbers_rfc3339_or_relative),
        cmocka_unit_test(bad_times_are_refused),
        cmocka_unit_test(today_and_tomorrow_are_in_the_zone_of_tz),
        cmocka_unit_test(a_shown_time_is_read_back),
        cmocka_unit_test(durations_are_shown_short),
        cmocka_unit_test(what_a_stranger_wrote_cannot_steer_a_terminal),
        cmocka_unit_test(any_bytes_become_one_word_and_back),
        cmocka_unit_test(a_given_dash_is_not_the_dash_of_none),
        cmocka_unit_test(bad_escapes_are_refused),
        cmocka_unit_test(names_have_lengths_and_forbidden_bytes),
        cmocka_unit_test(a_slip_of_the_finger_finds_its_word),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
