/*
 * Reading what people write. Each field becomes bits; what cannot be meant is refused
 * with the field's name.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cron/civil.h"
#include "cron/schedule.h"

#define FIELDS 6

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed",
                                            "thu", "fri", "sat", NULL};

enum field_id {
    SECOND,
    MINUTE,
    HOUR,
    DAY,
    MONTH,
    WEEKDAY
};

struct field {
    const char *name;
    int min, max;
    int top; /* where '*' and "a/n" end: 7 is another name of Sunday */
    const char *const *names;
};

static const struct field fields[FIELDS] = {
    [SECOND] = {"second", 0, 59, 59, NULL},
    [MINUTE] = {"minute", 0, 59, 59, NULL},
    [HOUR] = {"hour", 0, 23, 23, NULL},
    [DAY] = {"day of month", 1, 31, 31, NULL},
    [MONTH] = {"month", 1, 12, 12, month_names},
    [WEEKDAY] = {"day of week", 0, 7, 6, weekday_names},
};

/* What one field says. */
struct bits {
    uint64_t set, last; /* last: of weekdays, the last in the month */
    bool any, last_day;
};

/* A word of a field being read. */
struct part {
    const struct field *field;
    const char *at, *end;
    struct weir_error *err;
};

static enum weir_err
wrong(const struct part *p, const char *why)
{
    return wr_fail(p->err, WEIR_E_DATA, 0, "schedule: %s: %s", p->field->name, why);
}

static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The position of a three-letter name, or -1. */
static int
take_name(struct part *p)
{
    for (int i = 0; p->field->names && p->field->names[i] && p->end - p->at >= 3; i++) {
        const char *name = p->field->names[i];

        if (lower(p->at[0]) == name[0] && lower(p->at[1]) == name[1] &&
            lower(p->at[2]) == name[2]) {
            p->at += 3;
            return i + (p->field == &fields[MONTH]);
        }
    }
    return -1;
}

static enum weir_err
take_number(struct part *p, int max, int *out)
{
    const char *begin = p->at;
    int n = 0;

    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') {
        n = n * 10 + (*p->at++ - '0');
        if (n > max || p->at - begin > 4) {
            char why[48];

            snprintf(why, sizeof(why), "a number over %d", max);
            return wrong(p, why);
        }
    }
    if (p->at == begin)
        return wrong(p, p->at == p->end ? "a number is missing"
                                        : "neither a number nor a name of it");
    *out = n;
    return WEIR_OK;
}

static enum weir_err
take_value(struct part *p, int *out)
{
    enum weir_err rc;
    int name = take_name(p);

    if (name >= 0) {
        *out = name;
        return WEIR_OK;
    }
    rc = take_number(p, p->field->max, out);
    if (rc == WEIR_OK && *out < p->field->min) {
        char why[48];

        snprintf(why, sizeof(why), "a number below %d", p->field->min);
        return wrong(p, why);
    }
    return rc;
}

static bool
take_char(struct part *p, char wanted)
{
    if (p->at == p->end || lower(*p->at) != wanted)
        return false;
    p->at++;
    return true;
}

/* a-b: the end of it. Sunday at the end of a range is the day after Saturday. */
static enum weir_err
take_range_end(struct part *p, int from, int *to)
{
    enum weir_err rc = take_value(p, to);

    if (rc != WEIR_OK)
        return rc;
    if (p->field == &fields[WEEKDAY] && *to == 0 && from > 0)
        *to = 7;
    if (*to < from)
        return wrong(p, "a range that runs backwards (split it: 22-23,0-2)");
    return WEIR_OK;
}

static bool
is_day_field(const struct field *f)
{
    return f == &fields[DAY] || f == &fields[WEEKDAY];
}

/* The first part of an element: *, L, a, aL, a-b. *done: nothing may follow. */
static enum weir_err
take_span(struct part *p, struct bits *out, int *from, int *to, bool *done)
{
    enum weir_err rc;

    *done = false;
    *from = p->field->min;
    *to = p->field->top;
    if (take_char(p, '*') || (is_day_field(p->field) && take_char(p, '?')))
        return WEIR_OK;
    if (p->field == &fields[DAY] && take_char(p, 'l')) {
        *done = out->last_day = true;
        return WEIR_OK;
    }
    rc = take_value(p, from);
    if (rc != WEIR_OK)
        return rc;
    if (p->field == &fields[WEEKDAY] && take_char(p, 'l')) {
        out->last |= UINT64_C(1) << (*from % 7);
        *done = true;
        return WEIR_OK;
    }
    if (take_char(p, '-'))
        return take_range_end(p, *from, to);
    if (p->at == p->end || *p->at != '/')
        *to = *from;
    else if (*to < *from)
        return wrong(p, "7/n: write 0/n");
    return WEIR_OK;
}

/* One element of a list. */
static enum weir_err
take_element(struct part *p, struct bits *out)
{
    int from, to, step = 1;
    bool done;
    enum weir_err rc = take_span(p, out, &from, &to, &done);

    if (rc != WEIR_OK)
        return rc;
    if (!done && take_char(p, '/')) {
        rc = take_number(p, 999, &step);
        if (rc != WEIR_OK)
            return rc;
        if (step == 0)
            return wrong(p, "a step of 0");
        if (step > p->field->top - p->field->min + 1)
            return wrong(p, "a step that is longer than the field");
    }
    if (p->at < p->end)
        return wrong(p,
                     "cannot be read (a number, a-b, */n, a/n, or a list with commas)");
    for (int i = from; !done && i <= to; i += step)
        out->set |= UINT64_C(1) << i;
    return WEIR_OK;
}

static enum weir_err
read_field(const struct field *f, const char *text, size_t len, struct bits *out,
           struct weir_error *err)
{
    const char *end = text + len;

    *out = (struct bits){.any = *text == '*' || *text == '?'};
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        struct part p = {f, text, comma ? comma : end, err};
        enum weir_err rc = take_element(&p, out);

        if (rc != WEIR_OK || !comma)
            return rc;
        text = comma + 1;
    }
}

/* ---- the whole ---- */

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Splits into words; answers how many there are, of which the first FIELDS are filled. */
static size_t
split(const char *spec, struct wr_span out[FIELDS])
{
    size_t n = 0;

    while (*spec) {
        const char *begin;

        while (is_blank(*spec))
            spec++;
        if (!*spec)
            break;
        begin = spec;
        while (*spec && !is_blank(*spec))
            spec++;
        if (n < FIELDS)
            out[n] = (struct wr_span){begin, (size_t)(spec - begin)};
        n++;
    }
    return n;
}

/* Dates come from days and months alone: is there one that exists? */
static bool
has_a_date(const struct wr_schedule *s)
{
    if (s->any_day || !s->any_weekday || s->last_day)
        return true;
    for (int month = 1; month <= 12; month++) {
        for (int day = 1; day <= wr_civil_month_days(2000, month); day++) {
            if (s->months >> month & 1 && s->days >> day & 1)
                return true;
        }
    }
    return false;
}

static enum weir_err
read_calendar(const char *spec, struct wr_schedule *out, struct weir_error *err)
{
    struct wr_span words[FIELDS];
    struct bits bits[FIELDS] = {[SECOND] = {.set = 1}};
    size_t n = split(spec, words);

    if (n != FIELDS && n != FIELDS - 1)
        return wr_fail(
            err, WEIR_E_DATA, 0,
            "schedule: %zu fields instead of 5 (minute hour day month weekday) or "
            "6 (second first); or @daily, or every 20s",
            n);
    for (size_t i = 0; i < n; i++) {
        size_t f = i + FIELDS - n;
        enum weir_err rc = read_field(&fields[f], words[i].ptr, words[i].len, &bits[f],
                                      err);

        if (rc != WEIR_OK)
            return rc;
    }
    *out = (struct wr_schedule){
        .seconds = bits[SECOND].set,
        .minutes = bits[MINUTE].set,
        .hours = (uint32_t)bits[HOUR].set,
        .days = (uint32_t)bits[DAY].set,
        .months = (uint16_t)bits[MONTH].set,
        .weekdays = (uint8_t)((bits[WEEKDAY].set | bits[WEEKDAY].set >> 7) & 0x7f),
        .last_weekdays = (uint8_t)bits[WEEKDAY].last,
        .last_day = bits[DAY].last_day,
        .any_day = bits[DAY].any,
        .any_weekday = bits[WEEKDAY].any,
        .running = bits[SECOND].any || bits[MINUTE].any || bits[HOUR].any,
    };
    if (!has_a_date(out))
        return wr_fail(err, WEIR_E_DATA, 0,
                       "schedule: no such date: none of these months has such a day");
    return WEIR_OK;
}

static enum weir_err
read_every(const char *text, struct wr_schedule *out, struct weir_error *err)
{
    int64_t ms;

    while (is_blank(*text))
        text++;
    if (!wr_text_duration(text, &ms) || ms < WR_EVERY_MIN_MS || ms > WR_TIME_MAX_MS)
        return wr_fail(
            err, WEIR_E_DATA, 0,
            "schedule: every: a duration of at least 1s (every 20s, every 1h30m)");
    *out = (struct wr_schedule){.every_ms = ms};
    return WEIR_OK;
}

static const char *
alias(const char *spec)
{
    static const char *const rows[][2] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(spec, rows[i][0]) == 0)
            return rows[i][1];
    }
    return NULL;
}

enum weir_err
wr_schedule_parse(const char *spec, struct wr_schedule *out, struct weir_error *err)
{
    const char *meant = alias(spec);

    *out = (struct wr_schedule){0};
    if (strlen(spec) > WR_SCHEDULE_MAX)
        return wr_fail(err, WEIR_E_DATA, 0, "schedule: more than %d bytes",
                       WR_SCHEDULE_MAX);
    if (meant)
        return read_calendar(meant, out, err);
    if (strncmp(spec, "every", 5) == 0 && is_blank(spec[5]))
        return read_every(spec + 6, out, err);
    if (strncmp(spec, "@every", 6) == 0 && is_blank(spec[6]))
        return read_every(spec + 7, out, err);
    if (*spec == '@')
        return wr_fail(err, WEIR_E_DATA, 0,
                       "schedule: known words: @yearly @monthly @weekly @daily @hourly "
                       "@every");
    return read_calendar(spec, out, err);
}
