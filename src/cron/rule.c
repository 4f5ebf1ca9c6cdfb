#include "cron/rule.h"

#include "cron/civil.h"

/* A text being read; nothing is read past its end. */
struct cursor {
    const char *at, *end;
};

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
take(struct cursor *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool
take_number(struct cursor *c, int max, int *out)
{
    int n = 0;

    if (c->at == c->end || !is_digit(*c->at))
        return false;
    while (c->at < c->end && is_digit(*c->at)) {
        n = n * 10 + (*c->at++ - '0');
        if (n > max)
            return false;
    }
    *out = n;
    return true;
}

/* At least three letters, or anything of letters, digits and signs in <>. */
static bool
take_name(struct cursor *c)
{
    const char *begin = c->at;

    if (take(c, '<')) {
        while (c->at < c->end &&
               (is_letter(*c->at) || is_digit(*c->at) || *c->at == '+' || *c->at == '-'))
            c->at++;
        return c->at - begin >= 4 && take(c, '>');
    }
    while (c->at < c->end && is_letter(*c->at))
        c->at++;
    return c->at - begin >= 3;
}

/* [+-]hh[:mm[:ss]], hours up to max. */
static bool
take_time(struct cursor *c, int max_hours, int32_t *out)
{
    int h, m = 0, s = 0;
    bool minus = take(c, '-');

    if (!minus)
        (void)take(c, '+');
    if (!take_number(c, max_hours, &h))
        return false;
    if (take(c, ':') &&
        (!take_number(c, 59, &m) || (take(c, ':') && !take_number(c, 59, &s))))
        return false;
    *out = (minus ? -1 : 1) * (h * 3600 + m * 60 + s);
    return true;
}

static bool
take_change(struct cursor *c, struct wr_rule_change *out)
{
    *out = (struct wr_rule_change){.time_s = 7200};
    if (take(c, 'J')) {
        out->kind = WR_RULE_JULIAN;
        if (!take_number(c, 365, &out->day) || out->day == 0)
            return false;
    } else if (take(c, 'M')) {
        out->kind = WR_RULE_WEEKDAY;
        if (!take_number(c, 12, &out->month) || out->month == 0 || !take(c, '.') ||
            !take_number(c, 5, &out->week) || out->week == 0 || !take(c, '.') ||
            !take_number(c, 6, &out->day))
            return false;
    } else {
        out->kind = WR_RULE_ORDINAL;
        if (!take_number(c, 365, &out->day))
            return false;
    }
    return !take(c, '/') || take_time(c, 167, &out->time_s);
}

bool
wr_rule_parse(const char *text, size_t len, struct wr_rule *out)
{
    struct cursor c = {text, text + len};
    int32_t west;

    *out = (struct wr_rule){0};
    if (!take_name(&c) || !take_time(&c, 24, &west))
        return false;
    out->standard_s = -west;
    if (c.at == c.end)
        return true;
    out->has_summer = true;
    out->summer_s = out->standard_s + 3600;
    if (!take_name(&c))
        return false;
    if (c.at < c.end && *c.at != ',') {
        if (!take_time(&c, 24, &west))
            return false;
        out->summer_s = -west;
    }
    return take(&c, ',') && take_change(&c, &out->to_summer) && take(&c, ',') &&
           take_change(&c, &out->to_standard) && c.at == c.end;
}

static int64_t
day_of_change(const struct wr_rule_change *change, int64_t year)
{
    int64_t first;
    int day;

    switch (change->kind) {
    case WR_RULE_JULIAN:
        return wr_civil_days(year, 1, 1) + change->day - 1 +
               (change->day >= 60 && wr_civil_is_leap(year));
    case WR_RULE_ORDINAL:
        return wr_civil_days(year, 1, 1) + change->day;
    case WR_RULE_WEEKDAY:
        first = wr_civil_days(year, change->month, 1);
        day = (change->day - wr_civil_weekday(first) + 7) % 7 + 7 * (change->week - 1);
        if (day >= wr_civil_month_days(year, change->month))
            day -= 7; /* week 5 is the last one */
        return first + day;
    }
    return 0;
}

/* When the change of that year is, by the clocks that were right until then. */
static int64_t
time_of_change(const struct wr_rule_change *change, int64_t year, int32_t offset)
{
    return day_of_change(change, year) * WR_DAY_S + change->time_s - offset;
}

int32_t
wr_rule_at(const struct wr_rule *rule, int64_t t, int64_t *from, int64_t *until)
{
    int64_t year = wr_civil_of(wr_civil_day_of(t)).year;
    int32_t offset = rule->standard_s;

    *from = INT64_MIN;
    *until = INT64_MAX;
    if (!rule->has_summer)
        return offset;
    /* A change may be a week away from its day, so neighbouring years count. Of two at
     * the same second the one to summer time wins: such a zone has it all year. */
    for (int64_t y = year - 1; y <= year + 1; y++) {
        const int64_t at[] = {
            time_of_change(&rule->to_standard, y, rule->summer_s),
            time_of_change(&rule->to_summer, y, rule->standard_s),
        };

        for (int i = 0; i < 2; i++) {
            if (at[i] <= t && at[i] >= *from) {
                *from = at[i];
                offset = i == 0 ? rule->standard_s : rule->summer_s;
            }
            if (at[i] > t && at[i] < *until)
                *until = at[i];
        }
    }
    return offset;
}
