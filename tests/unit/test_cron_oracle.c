/*
 * Schedules against a reference that is slow and obvious: it walks every minute from 2024
 * to 2040, asks libc what the clocks show, and compares it with the fields.
 *
 * WEIR_CRON_ORACLE=N   so many expressions (default 60, over 2024 to 2027; from 1000 on
 * to 2040, in all zones) WEIR_SEED=N          the same expressions again
 */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cron/schedule.h"

#define TIMES 200
#define LONG_RUN 1000
#define NIGHT_HOUR 4
#define FROM INT64_C(1704067200)        /* 2024-01-01 */
#define SHORT_UNTIL INT64_C(1830297600) /* 2028-01-01 */
#define LONG_UNTIL INT64_C(2240524800)  /* 2041-01-01 */

/* The first six have every change of clocks that is odd in its own way. */
static const char *const zones[] = {
    "Europe/Berlin",    "America/New_York",  "America/Santiago", "Australia/Lord_Howe",
    "Asia/Kolkata",     "Africa/Casablanca", "Antarctica/Troll", "America/Scoresbysund",
    "America/St_Johns", "Asia/Gaza",         "Pacific/Chatham",  "UTC",
};
#define SHORT_ZONES 6

static uint64_t seed;

static uint64_t
next_random(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed >> 33;
}

static int
below(int n)
{
    return (int)(next_random() % (uint64_t)n);
}

/* ---- what the clocks show, minute by minute ---- */

struct shown {
    int32_t local;                                     /* minutes since 1970, as shown */
    uint8_t minute, hour, day, month, weekday, length; /* length: of the month */
};

static int
month_length(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month] +
           (month == 1 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

static struct shown
shown_of(const struct tm *tm)
{
    struct tm copy = *tm;

    return (struct shown){
        .local = (int32_t)(timegm(&copy) / 60),
        .minute = (uint8_t)tm->tm_min,
        .hour = (uint8_t)tm->tm_hour,
        .day = (uint8_t)tm->tm_mday,
        .month = (uint8_t)(tm->tm_mon + 1),
        .weekday = (uint8_t)tm->tm_wday,
        .length = (uint8_t)month_length(tm->tm_year + 1900, tm->tm_mon),
    };
}

struct table {
    struct shown *minutes;
    size_t n;
    int64_t changes[256]; /* seconds at which the offset changed */
    int changes_n;
};

static void
fill_table(struct table *t, const char *zone, int64_t until)
{
    setenv("TZ", zone, 1);
    tzset();
    t->n = (size_t)(until - FROM) / 60;
    t->changes_n = 0;
    for (size_t i = 0; i < t->n; i++) {
        time_t at = (time_t)(FROM + (int64_t)i * 60);
        struct tm tm;

        assert_non_null(localtime_r(&at, &tm));
        assert_int_equal(tm.tm_sec, 0);
        t->minutes[i] = shown_of(&tm);
        if (i > 0 && t->minutes[i].local != t->minutes[i - 1].local + 1) {
            assert_true(t->changes_n < 256);
            t->changes[t->changes_n++] = at;
        }
    }
}

/* ---- an expression: its text, and what it means, made together ---- */

struct fields {
    char text[256];
    bool second[60], minute[60], hour[24], day[32], month[13], weekday[7];
    bool last_day, last_weekday[7];
    bool any_day, any_weekday, running;
};

/* Appends one element to the field's text and sets what it means. */
static void
add_element(char *text, int min, int max, bool *set, const char *const *names)
{
    int a = min + below(max - min + 1), b = min + below(max - min + 1), step;
    char *end = text + strlen(text);

    if (a > b) {
        int t = a;

        a = b;
        b = t;
    }
    switch (below(5)) {
    case 0:
        b = a;
        step = 1;
        sprintf(end, "%d", a);
        break;
    case 1:
        step = 1;
        sprintf(end, "%d-%d", a, b);
        break;
    case 2:
        step = 1 + below(max - min + 1);
        sprintf(end, "%d-%d/%d", a, b, step);
        break;
    case 3:
        step = 1 + below((max - min + 1) / 2);
        b = max == NIGHT_HOUR ? 23 : max; /* a/n goes on to the end of the field */
        sprintf(end, "%d/%d", a, step);
        break;
    default:
        b = a;
        step = 1;
        if (names)
            sprintf(end, "%s", names[a - min]);
        else
            sprintf(end, "%d", a);
        break;
    }
    for (int i = a; i <= b; i += step)
        set[i] = true;
}

static bool
add_field(char *text, int min, int max, bool *set, const char *const *names, int stars)
{
    int n = 1 + (below(3) == 0 ? below(3) : 0);

    if (below(10) < stars) {
        int step = below(2) ? 1 : 1 + below(max - min + 1);

        sprintf(text + strlen(text), step == 1 ? "* " : "*/%d ", step);
        for (int i = min; i <= max; i += step)
            set[i] = true;
        return true;
    }
    for (int i = 0; i < n; i++) {
        if (i > 0)
            strcat(text, ",");
        add_element(text, min, max, set, names);
    }
    strcat(text, " ");
    return false;
}

static void
make_fields(struct fields *f)
{
    static const char *const months[] = {"jan", "FEB", "mar", "apr", "May", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};
    static const char *const weekdays[] = {"sun", "Mon", "tue", "WED",
                                           "thu", "fri", "sat"};
    int stars = below(4);

    *f = (struct fields){.second = {false}};
    if (below(4) == 0)
        f->running |= add_field(f->text, 0, 59, f->second, NULL, 1);
    else
        f->second[0] = true;
    f->running |= add_field(f->text, 0, 59, f->minute, NULL, stars);
    /* Clocks are changed at night. */
    f->running |= below(2) ? add_field(f->text, 0, NIGHT_HOUR, f->hour, NULL, 0)
                           : add_field(f->text, 0, 23, f->hour, NULL, stars);
    if (below(12) == 0) {
        f->last_day = true;
        strcat(f->text, "L ");
    } else {
        f->any_day = add_field(f->text, 1, 31, f->day, NULL, 7);
    }
    add_field(f->text, 1, 12, f->month, months, 8);
    if (below(12) == 0) {
        int day = below(7);

        f->last_weekday[day] = true;
        sprintf(f->text + strlen(f->text), "%dL ", day);
    } else {
        f->any_weekday = add_field(f->text, 0, 6, f->weekday, weekdays, 7);
    }
}

static bool
day_is(const struct fields *f, const struct shown *m)
{
    bool day = f->day[m->day] || (f->last_day && m->day == m->length);
    bool weekday = f->weekday[m->weekday] ||
                   (f->last_weekday[m->weekday] && m->day + 7 > m->length);

    if (!f->month[m->month])
        return false;
    return f->any_day || f->any_weekday ? day && weekday : day || weekday;
}

static bool
minute_is(const struct fields *f, const struct shown *m)
{
    return f->minute[m->minute] && f->hour[m->hour] && day_is(f, m);
}

/* ---- the reference ---- */

struct ticks {
    int64_t at[TIMES + 60 + 1];
    int n;
};

static void
add_tick(struct ticks *out, int64_t at, int64_t after)
{
    if (at > after && (out->n == 0 || out->at[out->n - 1] != at))
        out->at[out->n++] = at;
}

static void
add_minute(const struct fields *f, struct ticks *out, int64_t at, int64_t after)
{
    for (int s = 0; s < 60; s++) {
        if (f->second[s])
            add_tick(out, at + s, after);
    }
}

/* Did the clock jump over a time that matches? */
static bool
jumped_over(const struct fields *f, int32_t from, int32_t to)
{
    for (int32_t local = from; local < to; local++) {
        time_t at = (time_t)local * 60;
        struct tm tm;
        struct shown m;

        gmtime_r(&at, &tm);
        m = shown_of(&tm);
        if (minute_is(f, &m))
            return true;
    }
    return false;
}

/* The TIMES times after `after`, or fewer where the table ends. */
static void
refer(const struct fields *f, const struct table *t, int64_t after, struct ticks *out)
{
    size_t first = (size_t)(after - FROM) / 60, i = first > 2880 ? first - 2880 : 0;
    int32_t latest = t->minutes[i].local - 1; /* the clock showed all up to here */

    out->n = 0;
    for (; i < t->n && out->n < TIMES; i++) {
        const struct shown *m = &t->minutes[i];
        int64_t at = FROM + (int64_t)i * 60;

        if (f->running) {
            if (i >= first && minute_is(f, m))
                add_minute(f, out, at, after);
            continue;
        }
        if (m->local > latest + 1 && jumped_over(f, latest + 1, m->local))
            add_tick(out, at, after);
        if (m->local > latest) {
            latest = m->local;
            if (i >= first && minute_is(f, m))
                add_minute(f, out, at, after);
        }
    }
    if (out->n > TIMES)
        out->n = TIMES;
}

/* ---- the comparison ---- */

static void
explain(const struct fields *f, const char *zone, int64_t after, int i, int64_t want,
        int64_t got)
{
    time_t w = (time_t)want, g = (time_t)(got / 1000);
    char w_text[64], g_text[64];
    struct tm tm;

    strftime(w_text, sizeof(w_text), "%F %T %z", localtime_r(&w, &tm));
    strftime(g_text, sizeof(g_text), "%F %T %z", localtime_r(&g, &tm));
    fail_msg("\"%s\" in %s after %lld: time %d is %s (%lld), not %s (%lld)", f->text,
             zone, (long long)after, i, w_text, (long long)want, g_text, (long long)got);
}

static int
compare(const struct fields *f, const struct table *t, const char *zone,
        const struct wr_zone *z, int64_t after)
{
    struct wr_schedule s;
    struct weir_error err = {0};
    static struct ticks want;
    int64_t at = after * 1000 + below(1000);

    if (wr_schedule_parse(f->text, &s, &err) != WEIR_OK) {
        /* Refused is right only for a date that never is. */
        if (!strstr(err.text, "no such date"))
            fail_msg("\"%s\": %s", f->text, err.text);
        refer(f, t, FROM, &want);
        assert_int_equal(want.n, 0);
        return 0;
    }
    refer(f, t, after, &want);
    for (int i = 0; i < want.n; i++) {
        int64_t next = wr_schedule_next(&s, z, at);

        if (next != want.at[i] * 1000)
            explain(f, zone, after, i, want.at[i], next);
        at = next;
    }
    return want.n;
}

static int64_t
start(const struct table *t, int64_t until)
{
    if (t->changes_n > 0 && below(3) > 0)
        return t->changes[below(t->changes_n)] - below(60 * 3600);
    return FROM + 3 * 86400 +
           (int64_t)(next_random() % (uint64_t)(until - FROM - 400 * 86400));
}

static void
schedules_equal_a_walk_over_every_minute__C05(void **unused)
{
    const char *wanted = getenv("WEIR_CRON_ORACLE"), *given = getenv("WEIR_SEED");
    int total = wanted ? atoi(wanted) : 60;
    int zones_n = total >= LONG_RUN ? (int)(sizeof(zones) / sizeof(zones[0]))
                                    : SHORT_ZONES;
    int64_t until = total >= LONG_RUN ? LONG_UNTIL : SHORT_UNTIL;
    long long compared = 0;
    struct table t = {0};

    (void)unused;
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("WEIR_SEED=%llu WEIR_CRON_ORACLE=%d\n", (unsigned long long)seed,
                  total);
    t.minutes = calloc((size_t)(until - FROM) / 60, sizeof(*t.minutes));
    assert_non_null(t.minutes);
    for (int zone = 0; zone < zones_n; zone++) {
        struct weir_error err = {0};
        struct wr_zone *z;

        fill_table(&t, zones[zone], until);
        if (wr_zone_open(zones[zone], &z, &err) != WEIR_OK)
            fail_msg("%s", err.text);
        for (int i = zone; i < total; i += zones_n) {
            struct fields f;
            int64_t after;

            make_fields(&f);
            after = start(&t, until);
            compared += compare(&f, &t, zones[zone], z, after < FROM ? FROM : after);
        }
        wr_zone_free(z);
    }
    free(t.minutes);
    print_message("%lld times compared\n", compared);
    assert_true(compared > total);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_equal_a_walk_over_every_minute__C05),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
