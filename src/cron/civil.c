#include "cron/civil.h"

/*
 * Years are counted from March, so that the leap day is the last of its year, and in eras
 * of 400 years, which all have the same days.
 */
#define ERA_YEARS 400
#define ERA_DAYS 146097
#define DAYS_TO_1970 719468 /* from 0000-03-01 */

static int64_t
floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

bool
wr_civil_is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int
wr_civil_month_days(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && wr_civil_is_leap(year) ? 29 : days[month - 1];
}

int64_t
wr_civil_days(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = floor_div(y, ERA_YEARS), in_era = y - era * ERA_YEARS;
    int64_t from_march = month > 2 ? month - 3 : month + 9;
    int64_t in_year = (153 * from_march + 2) / 5 + day - 1;

    return era * ERA_DAYS + in_era * 365 + in_era / 4 - in_era / 100 + in_year -
           DAYS_TO_1970;
}

struct wr_civil
wr_civil_of(int64_t days)
{
    int64_t n = days + DAYS_TO_1970, era = floor_div(n, ERA_DAYS);
    int64_t in_era = n - era * ERA_DAYS;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t from_march = (5 * in_year + 2) / 153;
    int month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);

    return (struct wr_civil){
        .year = era * ERA_YEARS + year + (month <= 2),
        .month = month,
        .day = (int)(in_year - (153 * from_march + 2) / 5 + 1),
    };
}

int
wr_civil_weekday(int64_t days)
{
    int64_t n = (days + 4) % 7;

    return (int)(n < 0 ? n + 7 : n);
}

int64_t
wr_civil_day_of(int64_t seconds)
{
    return floor_div(seconds, WR_DAY_S);
}
