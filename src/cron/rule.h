/*
 * cron/rule.h - the rule for future years in the last line of a zone file, as POSIX
 * writes it for TZ: "CET-1CEST,M3.5.0,M10.5.0/3", with the additions of RFC 9636 (names
 * in
 * <>, hours from -167 to 167).
 */
#ifndef WR_CRON_RULE_H
#define WR_CRON_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wr_rule_day {
    WR_RULE_JULIAN,  /* Jn: day 1-365, 29 February is never counted */
    WR_RULE_ORDINAL, /* n: day 0-365 */
    WR_RULE_WEEKDAY, /* Mm.w.d */
};

struct wr_rule_change {
    enum wr_rule_day kind;
    int day; /* of the year, or of the week (0: Sunday) */
    int week, month;
    int32_t time_s; /* local, from the midnight that begins the day */
};

struct wr_rule {
    int32_t standard_s, summer_s; /* east of Greenwich */
    bool has_summer;
    struct wr_rule_change to_summer, to_standard;
};

#define WR_OFFSET_MAX_S 93599 /* 25:59:59; wider ones no zone has */

/* False if the text is no such rule. */
bool wr_rule_parse(const char *text, size_t len, struct wr_rule *out);
/* The offset at second t, and the changes around it: the last at or before t, the first
 * after it (INT64_MIN, INT64_MAX: none). */
int32_t wr_rule_at(const struct wr_rule *rule, int64_t t, int64_t *from, int64_t *until);

#endif
