/* When the next time is: first on a calendar without zones, then on the clock. */
#include "base/text.h"
#include "cron/civil.h"
#include "cron/schedule.h"

#define YEAR_MAX 9999
#define NONE (-1)

/* ---- the calendar: local seconds since 1970, as if no clock were ever changed ---- */

static bool
day_matches(const struct wr_schedule *s, int64_t days, const struct wr_civil *d)
{
    int weekday = wr_civil_weekday(days), length = wr_civil_month_days(d->year, d->month);
    bool day = (s->days >> d->day & 1) || (s->last_day && d->day == length);
    bool in_week = (s->weekdays >> weekday & 1) ||
                   ((s->last_weekdays >> weekday & 1) && d->day > length - 7);

    if (s->any_day || s->any_weekday)
        return day && in_week;
    return day || in_week;
}

/* The lowest bit at or above `from`, or NONE. */
static int
bit_from(uint64_t set, int from)
{
    uint64_t rest = from < 64 ? set >> from << from : 0;

    return rest == 0 ? NONE : __builtin_ctzll(rest);
}

/* The first second of a day, at or after `from`, that matches; NONE. */
static int
time_from(const struct wr_schedule *s, int from)
{
    int hour = from / 3600, minute = from / 60 % 60, second = from % 60;

    for (int h = bit_from(s->hours, hour); h >= 0; h = bit_from(s->hours, h + 1)) {
        int m_from = h > hour ? 0 : minute;

        for (int m = bit_from(s->minutes, m_from); m >= 0;
             m = bit_from(s->minutes, m + 1)) {
            bool later = h > hour || m > minute;
            int sec = bit_from(s->seconds, later ? 0 : second);

            if (sec >= 0)
                return h * 3600 + m * 60 + sec;
        }
    }
    return NONE;
}

/* The first local second at or after `from` that matches; NONE. */
static int64_t
calendar_from(const struct wr_schedule *s, int64_t from)
{
    int64_t days = wr_civil_day_of(from);
    int in_day = (int)(from - days * WR_DAY_S);
    struct wr_civil d = wr_civil_of(days);

    while (d.year <= YEAR_MAX) {
        if (!(s->months >> d.month & 1)) {
            days += wr_civil_month_days(d.year, d.month) - d.day + 1;
        } else {
            int at = day_matches(s, days, &d) ? time_from(s, in_day) : NONE;

            if (at >= 0)
                return days * WR_DAY_S + at;
            days++;
        }
        in_day = 0;
        d = wr_civil_of(days);
    }
    return NONE;
}

/* ---- the clock ---- */

/* The latest time that the clock has shown up to second t. Only a change of the last two
 * days can have turned it back behind what it showed before. */
static int64_t
latest_shown(const struct wr_zone *zone, int64_t t)
{
    struct wr_zone_span span = wr_zone_at(zone, t);
    int64_t latest = t + span.offset;

    while (span.from > t - 2 * WR_DAY_S) {
        int64_t last = span.from - 1;

        span = wr_zone_at(zone, last);
        if (last + span.offset > latest)
            latest = last + span.offset;
    }
    return latest;
}

/* The first instant at which the clock shows `local`, or has passed it. */
static int64_t
first_shown(const struct wr_zone *zone, int64_t local)
{
    struct wr_zone_span span = wr_zone_at(zone, local - 2 * WR_DAY_S);

    for (;;) {
        int64_t at = local - span.offset;

        if (at < span.from)
            return span.from; /* left out: the clock went past it here */
        if (at < span.until)
            return at;
        span = wr_zone_at(zone, span.until);
    }
}

static int64_t
next_fixed(const struct wr_schedule *s, const struct wr_zone *zone, int64_t after)
{
    int64_t local = calendar_from(s, latest_shown(zone, after) + 1);

    return local < 0 ? NONE : first_shown(zone, local);
}

static int64_t
next_running(const struct wr_schedule *s, const struct wr_zone *zone, int64_t after)
{
    struct wr_zone_span span = wr_zone_at(zone, after + 1);
    int64_t from = after + 1;

    for (;;) {
        int64_t local = calendar_from(s, from + span.offset);

        if (local < 0)
            return NONE;
        if (local - span.offset < span.until)
            return local - span.offset;
        from = span.until;
        span = wr_zone_at(zone, from);
    }
}

int64_t
wr_schedule_next(const struct wr_schedule *s, const struct wr_zone *zone,
                 int64_t after_ms)
{
    int64_t after, at;

    if (after_ms < 0)
        after_ms = 0;
    if (after_ms >= WR_TIME_MAX_MS)
        return NONE;
    if (s->every_ms > 0) {
        at = after_ms - after_ms % s->every_ms;
        return at <= WR_TIME_MAX_MS - s->every_ms ? at + s->every_ms : NONE;
    }
    after = after_ms / 1000;
    at = s->running ? next_running(s, zone, after) : next_fixed(s, zone, after);
    return at < 0 || at > WR_TIME_MAX_MS / 1000 ? NONE : at * 1000;
}

/* ---- looking back ---- */

#define COUNT_MAX 10000 /* more that were missed are not counted one by one */
#define WINDOW_FIRST_MS 60000

/* Walks from first_ms on; keeps the last cap in the ring. Answers how many there are, or
 * `limit` if there are so many or more (0: no limit). */
static int64_t
walk(const struct wr_schedule *s, const struct wr_zone *zone, int64_t first_ms,
     int64_t until_ms, int64_t *ring, size_t cap, int64_t limit)
{
    int64_t n = 0;

    for (int64_t at = first_ms; at >= 0 && at <= until_ms;
         at = wr_schedule_next(s, zone, at)) {
        if (cap > 0)
            ring[(size_t)n % cap] = at;
        if (++n == limit)
            break;
    }
    return n;
}

static void
reverse(int64_t *a, size_t from, size_t to)
{
    while (from + 1 < to) {
        int64_t t = a[from];

        a[from++] = a[--to];
        a[to] = t;
    }
}

/* A ring that was written n times: its oldest becomes the first. */
static void
unroll(int64_t *ring, size_t cap, int64_t n)
{
    size_t cut;

    if (cap == 0 || n <= (int64_t)cap)
        return;
    cut = (size_t)n % cap;
    reverse(ring, 0, cut);
    reverse(ring, cut, cap);
    reverse(ring, 0, cap);
}

size_t
wr_schedule_passed(const struct wr_schedule *s, const struct wr_zone *zone,
                   int64_t first_ms, int64_t until_ms, int64_t *out, size_t cap,
                   int64_t *more)
{
    int64_t n = walk(s, zone, first_ms, until_ms, out, cap, COUNT_MAX), window, begin;

    *more = n;
    if (n == COUNT_MAX) {
        /* Years of seconds, perhaps: look back from the end, farther and farther. */
        n = 0;
        for (window = WINDOW_FIRST_MS; n < (int64_t)cap; window *= 2) {
            begin = until_ms - window;
            if (begin < first_ms)
                begin = first_ms - 1;
            n = walk(s, zone, wr_schedule_next(s, zone, begin), until_ms, out, cap, 0);
            if (begin < first_ms)
                break;
        }
    }
    unroll(out, cap, n);
    n = n < (int64_t)cap ? n : (int64_t)cap;
    *more = *more > n ? *more - n : 0;
    return (size_t)n;
}
