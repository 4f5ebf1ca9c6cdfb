/* Schedules that often mean something else than they say. */
#include <stdio.h>
#include <string.h>

#include "cron/schedule.h"

#define ALL_60 (UINT64_MAX >> 4)
#define ALL_HOURS 0xffffffu

static int
count(uint64_t set)
{
    return __builtin_popcountll(set);
}

/* Where the sentences go. */
struct text {
    char *out;
    size_t len, cap;
};

static void
say(struct text *t, const char *sentence)
{
    int n;

    if (t->len + 1 >= t->cap)
        return;
    n = snprintf(t->out + t->len, t->cap - t->len, "%s%s", t->len > 0 ? "\n" : "",
                 sentence);
    if (n > 0)
        t->len = t->len + (size_t)n < t->cap ? t->len + (size_t)n : t->cap - 1;
}

/* "*" in a finer field than one that is restricted. */
static void
warn_many(const struct wr_schedule *s, struct text *t)
{
    char line[160];

    if (s->seconds == ALL_60 && (s->minutes != ALL_60 || s->hours != ALL_HOURS))
        say(t, "* as second: 60 runs in each of these minutes; write 0 for one");
    if (s->minutes == ALL_60 && s->hours != ALL_HOURS) {
        snprintf(line, sizeof(line),
                 "* as minute: 60 runs in each of these hours, %d a day; write 0 for one",
                 60 * count(s->hours) * count(s->seconds));
        say(t, line);
    }
}

/* "*\/7": the last distance is another one. */
static void
warn_uneven(const char *name, uint64_t set, int size, struct text *t)
{
    int first = count(set) > 1 ? __builtin_ctzll(set) : 0, step = 0, last = first;
    char line[160];

    if (count(set) < 3 || first != 0)
        return;
    for (int i = first + 1; i < size; i++) {
        if (!(set >> i & 1))
            continue;
        if (step == 0)
            step = i - last;
        else if (i - last != step)
            return; /* not a step: somebody chose these */
        last = i;
    }
    if (size - last == step)
        return;
    snprintf(line, sizeof(line),
             "every %d %ss does not divide %d: after %d comes 0 again", step, name, size,
             last);
    say(t, line);
}

static void
warn_days(const struct wr_schedule *s, struct text *t)
{
    if (!s->any_day && !s->any_weekday)
        say(t, "day of month and day of week are both given: a day that matches either "
               "of them will do");
    if (s->any_weekday && !s->any_day && !s->last_day &&
        (s->days & ((UINT32_C(1) << 29) - 1)) == 0)
        say(t, "months without this day are left out; L is the last day of each");
}

void
wr_schedule_warn(const struct wr_schedule *s, char *out, size_t out_len)
{
    struct text t = {out, 0, out_len};

    *out = '\0';
    if (s->every_ms > 0)
        return;
    warn_many(s, &t);
    warn_uneven("second", s->seconds, 60, &t);
    warn_uneven("minute", s->minutes, 60, &t);
    warn_uneven("hour", s->hours, 24, &t);
    warn_days(s, &t);
}
