/*
 * cron/civil.h - dates of the Gregorian calendar as numbers. Days and seconds count from
 * 1970-01-01; nothing here knows of zones.
 */
#ifndef WR_CRON_CIVIL_H
#define WR_CRON_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#define WR_DAY_S INT64_C(86400)

struct wr_civil {
    int64_t year;
    int month, day; /* from 1 */
};

bool wr_civil_is_leap(int64_t year);
int wr_civil_month_days(int64_t year, int month);
int64_t wr_civil_days(int64_t year, int month, int day);
struct wr_civil wr_civil_of(int64_t days);
int wr_civil_weekday(int64_t days); /* 0: Sunday */
/* The day that holds this second, also before 1970. */
int64_t wr_civil_day_of(int64_t seconds);

#endif
