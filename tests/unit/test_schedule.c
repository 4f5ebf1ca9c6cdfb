/* When recurring things are due. test_cron_oracle.c compares thousands with a reference;
 * here are the rules one by one. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cron/schedule.h"

static struct wr_schedule
parsed(const char *spec)
{
    struct wr_schedule s;
    struct weir_error err = {0};

    if (wr_schedule_parse(spec, &s, &err) != WEIR_OK)
        fail_msg("%s: %s", spec, err.text);
    return s;
}

static struct wr_zone *
opened(const char *name)
{
    struct weir_error err = {0};
    struct wr_zone *z;

    if (wr_zone_open(name, &z, &err) != WEIR_OK)
        fail_msg("%s: %s", name, err.text);
    return z;
}

static int64_t
ms_of(const char *time_text)
{
    int64_t ms;

    if (!wr_text_time(time_text, 0, &ms))
        fail_msg("no time: %s", time_text);
    return ms;
}

/* The times after `after`, as they are written in `want` (UTC, a blank between). */
static void
assert_times(const char *spec, const char *zone, const char *after, const char *want)
{
    struct wr_schedule s = parsed(spec);
    struct wr_zone *z = opened(zone);
    int64_t at = ms_of(after);
    char text[512], *save, *word;

    snprintf(text, sizeof(text), "%s", want);
    for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char got[32];

        at = wr_schedule_next(&s, z, at);
        wr_text_show_time(at, got);
        if (at != ms_of(word))
            fail_msg("%s in %s: %s instead of %s", spec, zone, got, word);
    }
    wr_zone_free(z);
}

static void
assert_refused(const char *spec, const char *why)
{
    struct wr_schedule s;
    struct weir_error err = {0};

    assert_int_equal(wr_schedule_parse(spec, &s, &err), WEIR_E_DATA);
    if (!strstr(err.text, why))
        fail_msg("\"%s\": \"%s\" does not say \"%s\"", spec, err.text, why);
}

static void
fields_are_numbers_names_ranges_steps_and_lists(void **unused)
{
    (void)unused;
    assert_times("5 9 * * *", "UTC", "2026-01-01T00:00:00Z",
                 "2026-01-01T09:05:00Z 2026-01-02T09:05:00Z");
    assert_times("0 9-11/2,13 * * *", "UTC", "2026-01-01T00:00:00Z",
                 "2026-01-01T09:00:00Z 2026-01-01T11:00:00Z 2026-01-01T13:00:00Z");
    assert_times("0 0 1 JAN,jul *", "UTC", "2026-01-01T00:00:00Z",
                 "2026-07-01T00:00:00Z 2027-01-01T00:00:00Z");
    assert_times("0 12 * * fri-sun", "UTC", "2026-11-30T00:00:00Z",
                 "2026-12-04T12:00:00Z 2026-12-05T12:00:00Z 2026-12-06T12:00:00Z");
    assert_times("0 12 * * 7", "UTC", "2026-11-30T00:00:00Z", "2026-12-06T12:00:00Z");
    assert_times("10/20 * * * *", "UTC", "2026-01-01T00:00:00Z",
                 "2026-01-01T00:10:00Z 2026-01-01T00:30:00Z 2026-01-01T00:50:00Z");
    assert_times("15,45 0 12 * * *", "UTC", "2026-01-01T12:00:15Z",
                 "2026-01-01T12:00:45Z 2026-01-02T12:00:15Z");
    assert_times("\t0   12\t? * mon ", "UTC", "2026-11-30T12:00:00Z",
                 "2026-12-07T12:00:00Z");
}

static void
l_is_the_last_day_and_fril_the_last_friday(void **unused)
{
    (void)unused;
    assert_times("0 0 L * *", "UTC", "2028-01-15T00:00:00Z",
                 "2028-01-31T00:00:00Z 2028-02-29T00:00:00Z 2028-03-31T00:00:00Z");
    assert_times("0 0 * * friL", "UTC", "2026-11-01T00:00:00Z",
                 "2026-11-27T00:00:00Z 2026-12-25T00:00:00Z");
    assert_times("0 0 * * 5L", "UTC", "2026-11-01T00:00:00Z", "2026-11-27T00:00:00Z");
}

static void
words_stand_for_fields(void **unused)
{
    (void)unused;
    assert_times("@daily", "UTC", "2026-02-28T00:00:00Z",
                 "2026-03-01T00:00:00Z 2026-03-02T00:00:00Z");
    assert_times("@hourly", "UTC", "2026-02-28T23:00:00Z", "2026-03-01T00:00:00Z");
    assert_times("@weekly", "UTC", "2026-11-30T00:00:00Z", "2026-12-06T00:00:00Z");
    assert_times("@monthly", "UTC", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z");
    assert_times("@yearly", "UTC", "2026-11-30T00:00:00Z", "2027-01-01T00:00:00Z");
}

static void
an_interval_keeps_its_phase__C16(void **unused)
{
    struct wr_schedule s = parsed("every 1s");
    int64_t at = ms_of("2026-01-01T00:00:00.750Z");

    (void)unused;
    assert_times("every 20s", "UTC", "2026-01-01T00:00:00.001Z",
                 "2026-01-01T00:00:20Z 2026-01-01T00:00:40Z");
    assert_times("@every 1h30m", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z");
    for (int i = 0; i < 600; i++)
        at = wr_schedule_next(&s, NULL, at);
    assert_int_equal(at, ms_of("2026-01-01T00:10:00Z"));
}

static void
a_time_in_the_gap_is_due_once_at_the_first_instant_after_it__C05(void **unused)
{
    (void)unused;
    assert_times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
                 "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z");
    assert_times("0,30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
                 "2026-03-29T01:00:00Z 2026-03-29T01:30:00Z 2026-03-30T00:00:00Z");
    assert_times("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
                 "2026-03-08T07:00:00Z 2026-03-09T06:30:00Z");
    /* Midnight itself is left out. */
    assert_times("0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z",
                 "2026-09-06T04:00:00Z 2026-09-07T03:00:00Z");
    assert_times("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
                 "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z");
    /* A whole day that was never there. */
    assert_times("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
                 "2011-12-29T19:00:00Z 2011-12-30T10:00:00Z 2011-12-30T19:00:00Z");
}

static void
a_time_that_comes_twice_is_due_the_first_time__C05(void **unused)
{
    (void)unused;
    assert_times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
                 "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z");
    assert_times("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
                 "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z");
    assert_times("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
                 "2026-04-04T14:45:00Z 2026-04-05T15:15:00Z");
    assert_times("30 23 * * *", "America/Santiago", "2026-04-04T12:00:00Z",
                 "2026-04-05T02:30:00Z 2026-04-06T03:30:00Z");
}

static void
stars_go_on_in_real_time__C05(void **unused)
{
    (void)unused;
    assert_times("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
                 "2026-03-29T00:30:00Z 2026-03-29T01:30:00Z 2026-03-29T02:30:00Z");
    assert_times("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
                 "2026-10-25T00:30:00Z 2026-10-25T01:00:00Z 2026-10-25T01:30:00Z");
}

static void
day_of_month_or_day_of_week__C12(void **unused)
{
    (void)unused;
    assert_times("0 9 13 * 5", "UTC", "2026-11-01T00:00:00Z",
                 "2026-11-06T09:00:00Z 2026-11-13T09:00:00Z 2026-11-20T09:00:00Z "
                 "2026-11-27T09:00:00Z 2026-12-04T09:00:00Z 2026-12-11T09:00:00Z "
                 "2026-12-13T09:00:00Z");
    /* A field that begins with '*' restricts nothing by itself: both must match. */
    assert_times("0 9 */10 * 1", "UTC", "2026-11-01T00:00:00Z",
                 "2026-12-21T09:00:00Z 2027-01-11T09:00:00Z");
}

static double
seconds_for(const char *spec)
{
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    assert_refused(spec, "no such date");
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

static void
dates_that_never_are_are_refused_at_once(void **unused)
{
    (void)unused;
    assert_true(seconds_for("0 0 30 2 *") < 0.01);
    assert_true(seconds_for("0 0 31 feb,apr,jun,sep,nov *") < 0.01);
    assert_times("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z");
    assert_times("0 0 30 2 mon", "UTC", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z");
}

static void
what_cannot_be_meant_is_refused_with_its_field(void **unused)
{
    (void)unused;
    assert_refused("", "0 fields");
    assert_refused("* * * *", "4 fields");
    assert_refused("* * * * * * *", "7 fields");
    assert_refused("60 * * * *", "minute: a number over 59");
    assert_refused("* 24 * * *", "hour");
    assert_refused("* * 0 * *", "day of month: a number below 1");
    assert_refused("* * * 13 *", "month");
    assert_refused("* * * * 8", "day of week");
    assert_refused("*/0 * * * *", "step of 0");
    assert_refused("*/61 * * * *", "longer than the field");
    assert_refused("5-1 * * * *", "backwards");
    assert_refused("1, * * * *", "missing");
    assert_refused("1-2-3 * * * *", "cannot be read");
    assert_refused("-1 * * * *", "neither a number");
    assert_refused("* * * foo *", "month");
    assert_refused("* L * * *", "hour");
    assert_refused("99999999999999999999 * * * *", "minute");
    assert_refused("@noon", "known words");
    assert_refused("every 0s", "at least 1s");
    assert_refused("every", "fields");
    assert_refused("every -5s", "at least 1s");
    assert_refused("* * * * * ; rm -rf /", "fields");
}

static void
the_end_of_time_is_an_end(void **unused)
{
    struct wr_schedule s = parsed("0 0 1 1 *"), every = parsed("every 1000w");
    struct wr_zone *z = opened("Europe/Berlin");

    (void)unused;
    assert_int_equal(wr_schedule_next(&s, z, ms_of("9999-06-01T00:00:00Z")), -1);
    assert_int_equal(wr_schedule_next(&every, z, WR_TIME_MAX_MS - 5), -1);
    assert_int_equal(wr_schedule_next(&s, z, INT64_MAX), -1);
    assert_int_equal(wr_schedule_next(&s, z, -5), ms_of("1970-12-31T23:00:00Z"));
    wr_zone_free(z);
}

static void
what_has_passed_is_found_from_its_end__C04(void **unused)
{
    struct wr_schedule s = parsed("* * * * * *"), hourly = parsed("@hourly");
    struct wr_zone *z = opened("UTC");
    int64_t begin = ms_of("2026-01-01T00:00:01Z"), out[5], more;

    (void)unused;
    assert_int_equal(wr_schedule_passed(&s, z, begin, begin + 99999, out, 5, &more), 5);
    assert_int_equal(out[0], begin + 95000);
    assert_int_equal(out[4], begin + 99000);
    assert_int_equal(more, 95);
    /* Two years later: not counted to the end, but found. */
    assert_int_equal(
        wr_schedule_passed(&s, z, begin, begin + INT64_C(63072000000), out, 5, &more), 5);
    assert_int_equal(out[4], begin + INT64_C(63072000000));
    assert_int_equal(out[0], out[4] - 4000);
    assert_true(more >= 9995);
    begin = ms_of("2026-01-01T00:00:00Z");
    assert_int_equal(wr_schedule_passed(&hourly, z, begin, begin + 1, out, 5, &more), 1);
    assert_int_equal(out[0], begin);
    assert_int_equal(more, 0);
    assert_int_equal(
        wr_schedule_passed(&hourly, z, begin, begin + 7200000, out, 0, &more), 0);
    assert_int_equal(more, 3);
    wr_zone_free(z);
}

static void
assert_warning(const char *spec, const char *part)
{
    struct wr_schedule s = parsed(spec);
    char text[600];

    wr_schedule_warn(&s, text, sizeof(text));
    if (part ? !strstr(text, part) : *text != '\0')
        fail_msg("%s: \"%s\"", spec, text);
}

static void
patterns_that_surprise_are_named__C12(void **unused)
{
    struct wr_schedule s = parsed("* * 0 1 * 1");
    char narrow[8];

    (void)unused;
    assert_warning("* 0 * * *", "60 runs in each of these hours, 60 a day");
    assert_warning("* 0 12 * * *", "60 runs in each of these minutes");
    assert_warning("*/7 * * * *", "after 56 comes 0 again");
    assert_warning("0 */5 * * *", "after 20 comes 0 again");
    assert_warning("0 9 13 * 5", "matches either");
    assert_warning("0 0 31 * *", "L is the last day");
    assert_warning("* * * * *", NULL);
    assert_warning("*/15 * * * *", NULL);
    assert_warning("0 0 L * *", NULL);
    assert_warning("0 9 * * mon-fri", NULL);
    assert_warning("@daily", NULL);
    assert_warning("every 7m", NULL);
    wr_schedule_warn(&s, narrow, sizeof(narrow));
    assert_true(strlen(narrow) < sizeof(narrow));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_numbers_names_ranges_steps_and_lists),
        cmocka_unit_test(l_is_the_last_day_and_fril_the_last_friday),
        cmocka_unit_test(words_stand_for_fields),
        cmocka_unit_test(an_interval_keeps_its_phase__C16),
        cmocka_unit_test(
            a_time_in_the_gap_is_due_once_at_the_first_instant_after_it__C05),
        cmocka_unit_test(a_time_that_comes_twice_is_due_the_first_time__C05),
        cmocka_unit_test(stars_go_on_in_real_time__C05),
        cmocka_unit_test(day_of_month_or_day_of_week__C12),
        cmocka_unit_test(dates_that_never_are_are_refused_at_once),
        cmocka_unit_test(what_cannot_be_meant_is_refused_with_its_field),
        cmocka_unit_test(the_end_of_time_is_an_end),
        cmocka_unit_test(what_has_passed_is_found_from_its_end__C04),
        cmocka_unit_test(patterns_that_surprise_are_named__C12),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
