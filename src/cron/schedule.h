/*
 * cron/schedule.h - when something that recurs is due. Pure: time comes in as an
 * argument.
 *
 *     0 9 * * mon-fri      minute hour day-of-month month day-of-week
 *     30 0 9 * * mon-fri   the same with seconds in front
 *     @daily               @yearly @monthly @weekly @daily @hourly, and their synonyms
 *     every 20s            and @every 20s: at the multiples of 20 s since 1970 (UTC)
 *
 * A field is '*', a number, a name (jan-dec, sun-sat), a range a-b, a step *\/n, a-b/n or
 * a/n (from a on), or a list of these with commas. 'L' as a day of the month is the
 * last one; "friL" or "5L" as a day of the week is the last Friday of the month. 0 and 7
 * are Sunday. Ranges do not run backwards.
 *
 * Day of month and day of week: if both are restricted, a day that matches either will
 * do; a field that begins with '*' restricts nothing by itself (as cron has always done
 * it).
 *
 * When clocks are changed:
 *   fixed     seconds, minutes and hours all without '*': due when the clock shows the
 * time or has passed it for the first time. A time that is left out (gap) is due once, at
 * the first instant after the gap; of a time that comes twice (overlap), the first
 * counts. So a daily entry is due once each day. running   with a '*' in one of them: due
 * at every instant whose local time matches. So "every quarter of an hour" stays that in
 * real time.
 */
#ifndef WR_CRON_SCHEDULE_H
#define WR_CRON_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "cron/zone.h"

#define WR_SCHEDULE_MAX 256 /* bytes of a spec */
#define WR_EVERY_MIN_MS 1000

struct wr_schedule {
    int64_t every_ms; /* > 0: an interval, and nothing else counts */

    uint64_t seconds, minutes; /* a bit each */
    uint32_t hours, days;      /* days: bits 1-31 */
    uint16_t months;           /* bits 1-12 */
    uint8_t weekdays;          /* bits 0-6, 0: Sunday */
    uint8_t last_weekdays;     /* of the month */
    bool last_day;             /* of the month */
    bool any_day, any_weekday; /* the field begins with '*' */
    bool running;              /* '*' in seconds, minutes or hours */
};

/* E_DATA: not such a spec, or one that never comes (30 February). The text says which
 * field is wrong. */
enum weir_err wr_schedule_parse(const char *spec, struct wr_schedule *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/* The first time after after_ms, in ms since 1970; -1: none before the year 10000. */
int64_t wr_schedule_next(const struct wr_schedule *schedule, const struct wr_zone *zone,
                         int64_t after_ms);

/*
 * The last `cap` times in [first_ms, until_ms], rising; first_ms must itself be one.
 * Returns how many it wrote; *more: there are others before them, at least so many.
 */
size_t wr_schedule_passed(const struct wr_schedule *schedule, const struct wr_zone *zone,
                          int64_t first_ms, int64_t until_ms, int64_t *out, size_t cap,
                          int64_t *more);

/* What may surprise about it, one sentence each, a newline between; "" if nothing. */
void wr_schedule_warn(const struct wr_schedule *schedule, char *out, size_t out_len);

#endif
