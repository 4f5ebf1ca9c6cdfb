/* Zone files: what is read, what is refused. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cron/rule.h"
#include "cron/schedule.h"
#include "cron/zone.h"

static int64_t
nine_o_clock(const char *name)
{
    struct wr_schedule s;
    struct wr_zone *z;
    struct weir_error err = {0};
    int64_t at;

    assert_int_equal(wr_schedule_parse("0 9 * * *", &s, NULL), WEIR_OK);
    if (wr_zone_open(name, &z, &err) != WEIR_OK)
        fail_msg("%s: %s", name, err.text);
    at = wr_schedule_next(&s, z, INT64_C(1796083200000)); /* 2026-12-01T00:00:00Z */
    wr_zone_free(z);
    return at;
}

static void
each_zone_has_its_own_nine_o_clock__C07(void **unused)
{
    (void)unused;
    assert_int_equal(nine_o_clock("Asia/Kolkata"), INT64_C(1796083200000) + 12600000);
    assert_int_equal(nine_o_clock("America/St_Johns"), INT64_C(1796083200000) + 45000000);
    assert_int_equal(nine_o_clock("UTC"), INT64_C(1796083200000) + 32400000);
}

static void
assert_open(const char *name, enum weir_err code, const char *why)
{
    struct weir_error err = {0};
    struct wr_zone *z = (void *)&err;

    assert_int_equal(wr_zone_open(name, &z, &err), code);
    assert_null(z);
    if (!strstr(err.text, why))
        fail_msg("%s: \"%s\"", name, err.text);
}

static void
a_zone_that_is_none_is_refused__C07(void **unused)
{
    (void)unused;
    assert_open("Mars/X", WEIR_E_DATA, "no such time zone: Mars/X");
    assert_open("Europe", WEIR_E_DATA, "no such time zone");
    assert_open("Europe/Berlin/X", WEIR_E_DATA, "no such time zone");
    assert_open("tzdata.zi", WEIR_E_DATA, "");
    assert_open("localtime", WEIR_E_DATA, "differs from machine");
    assert_open("", WEIR_E_DATA, "no name");
}

static void
names_lead_nowhere_else(void **unused)
{
    static const char *const names[] = {
        "/etc/passwd", "../../../etc/passwd", "Europe/../UTC",
        "./UTC",       "Europe//Berlin",      "Europe/",
        "a b",         "Europe/.hidden",      "UTC\n",
        "\xff"};
    char longer[200];

    (void)unused;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(wr_zone_is_name(names[i]));
        assert_open(names[i], WEIR_E_DATA, "no name");
    }
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_false(wr_zone_is_name(longer));
    assert_true(wr_zone_is_name("America/Argentina/Buenos_Aires"));
    assert_true(wr_zone_is_name("Etc/GMT+5"));
}

static void
missing_zone_files_are_an_error_and_never_utc__C07(void **unused)
{
    char dir[] = "/tmp/weir-zone-XXXXXX", fifo[64];

    (void)unused;
    assert_non_null(mkdtemp(dir));
    snprintf(fifo, sizeof(fifo), "%s/Pipe", dir);
    setenv("TZDIR", dir, 1);
    assert_open("Europe/Berlin", WEIR_E_CONFIG, "install the package tzdata");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_open("Pipe", WEIR_E_DATA, "no such time zone"); /* and it does not wait */
    assert_int_equal(nine_o_clock("UTC"), INT64_C(1796083200000) + 32400000);
    unsetenv("TZDIR");
    unlink(fifo);
    rmdir(dir);
}

static size_t
read_berlin(unsigned char *out, size_t cap)
{
    FILE *f = fopen(WR_ZONE_DIR "/Europe/Berlin", "rb");
    size_t n;

    assert_non_null(f);
    n = fread(out, 1, cap, f);
    fclose(f);
    return n;
}

static void
a_file_that_was_cut_or_changed_is_refused_or_harmless(void **unused)
{
    static unsigned char bytes[WR_ZONE_FILE_MAX];
    size_t n = read_berlin(bytes, sizeof(bytes));
    struct wr_zone *z;

    (void)unused;
    assert_int_equal(wr_zone_read(bytes, n, &z, NULL), WEIR_OK);
    wr_zone_free(z);
    for (size_t len = 0; len < n; len++)
        assert_int_equal(wr_zone_read(bytes, len, &z, NULL), WEIR_E_DATA);
    for (size_t at = 0; at < n; at++) {
        unsigned char was = bytes[at];

        bytes[at] = (unsigned char)~was;
        if (wr_zone_read(bytes, n, &z, NULL) == WEIR_OK) {
            (void)wr_zone_at(z, INT64_C(1796083200));
            wr_zone_free(z);
        }
        bytes[at] = was;
    }
}

static void
leap_seconds_are_not_what_servers_count(void **unused)
{
    struct wr_zone *z;
    struct weir_error err = {0};

    (void)unused;
    if (access(WR_ZONE_DIR "/right/Europe/Berlin", R_OK) != 0)
        skip();
    assert_int_equal(wr_zone_open("right/Europe/Berlin", &z, &err), WEIR_E_DATA);
    assert_non_null(strstr(err.text, "leap seconds"));
}

static bool
is_rule(const char *text)
{
    struct wr_rule r;

    return wr_rule_parse(text, strlen(text), &r);
}

static int32_t
rule_at(const char *text, int64_t t)
{
    struct wr_rule r;
    int64_t from, until;
    int32_t offset;

    assert_true(wr_rule_parse(text, strlen(text), &r));
    offset = wr_rule_at(&r, t, &from, &until);
    assert_true(from <= t && t < until);
    return offset;
}

static void
rules_for_the_future_are_read(void **unused)
{
    static const char *const bad[] = {"",
                                      "CET",
                                      "CE-1",
                                      "CET-1x",
                                      "CET-1CEST",
                                      "CET-1CEST,M3.5.0",
                                      "CET-25",
                                      "CET-1CEST,M13.5.0,M10.5.0",
                                      "<+01-1",
                                      "CET-1CEST,M3.6.0,M10.5.0",
                                      "<>-1",
                                      "CET-1CEST,M3.5.0,M10.5.0/168",
                                      "CET-1CEST,J0,J5",
                                      "CET-1CEST,M3.5.0,M10.5.0 "};

    (void)unused;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (is_rule(bad[i]))
            fail_msg("is no rule: \"%s\"", bad[i]);
    }
    /* 2050-01-15 and 2050-07-15, noon UTC */
    assert_int_equal(rule_at("CET-1CEST,M3.5.0,M10.5.0/3", INT64_C(2525860800)), 3600);
    assert_int_equal(rule_at("CET-1CEST,M3.5.0,M10.5.0/3", INT64_C(2541499200)), 7200);
    /* South of the equator summer spans the new year. */
    assert_int_equal(rule_at("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", INT64_C(2525860800)),
                     39600);
    assert_int_equal(rule_at("EST5EDT,0/0,J365/25", INT64_C(2525860800)), -14400);
    assert_int_equal(rule_at("EST5EDT,0/0,J365/25", INT64_C(2541499200)), -14400);
    assert_int_equal(rule_at("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", INT64_C(2541499200)),
                     -3600);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_zone_has_its_own_nine_o_clock__C07),
        cmocka_unit_test(a_zone_that_is_none_is_refused__C07),
        cmocka_unit_test(names_lead_nowhere_else),
        cmocka_unit_test(missing_zone_files_are_an_error_and_never_utc__C07),
        cmocka_unit_test(a_file_that_was_cut_or_changed_is_refused_or_harmless),
        cmocka_unit_test(leap_seconds_are_not_what_servers_count),
        cmocka_unit_test(rules_for_the_future_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
