#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_MAX (INT64_C(1) << 53)

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool
wr_text_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
    bool negative = *text == '-';
    int64_t value = 0;

    text += negative;
    if (!is_digit(*text))
        return false;
    for (; is_digit(*text); text++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *text - '0', &value))
            return false;
    }
    /* Counted downwards, since INT64_MIN has no positive twin. */
    if (*text != '\0' || (!negative && value == INT64_MIN))
        return false;
    value = negative ? value : -value;
    if (value < min || value > max)
        return false;
    *out = value;
    return true;
}

bool
wr_span_int(struct wr_span word, int64_t *out)
{
    char text[24];

    if (word.len == 0 || word.len >= sizeof(text))
        return false;
    memcpy(text, word.ptr, word.len);
    text[word.len] = '\0';
    return strspn(text, "0123456789") == word.len && wr_text_int(text, 0, INT64_MAX, out);
}

/* Reads digits, with a fraction of at most nine, as billionths; moves *text on. */
static bool
read_decimal(const char **text, int64_t *whole, int64_t *billionths)
{
    const char *p = *text;
    int64_t unit = 100000000;

    *whole = *billionths = 0;
    if (!is_digit(*p))
        return false;
    for (; is_digit(*p); p++) {
        if (__builtin_mul_overflow(*whole, 10, whole) ||
            __builtin_add_overflow(*whole, *p - '0', whole))
            return false;
    }
    if (*p == '.') {
        p++;
        if (!is_digit(*p))
            return false;
        for (; is_digit(*p); p++, unit /= 10)
            *billionths += unit * (*p - '0');
    }
    *text = p;
    return true;
}

/* A part of a duration, "90" and its unit; a missing unit is seconds, only allowed alone.
 */
static bool
read_part(const char **text, bool alone, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1},      {"s", 1000},     {"m", 60000},
                 {"h", 3600000}, {"d", 86400000}, {"w", 604800000}};
    int64_t whole, billionths, unit = 0, value;
    size_t len;

    if (!read_decimal(text, &whole, &billionths))
        return false;
    len = strcspn(*text, "0123456789");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strlen(units[i].name) == len && strncmp(units[i].name, *text, len) == 0)
            unit = units[i].ms;
    }
    if (len == 0 && alone && **text == '\0')
        unit = 1000;
    if (unit == 0 || __builtin_mul_overflow(whole, unit, &value) || value > MS_MAX)
        return false;
    *text += len;
    value += billionths / 1000 * unit / 1000000;
    return !__builtin_add_overflow(*ms, value, ms) && *ms <= MS_MAX;
}

bool
wr_text_duration(const char *text, int64_t *out_ms)
{
    bool first = true;
    int64_t ms = 0;

    do {
        if (!read_part(&text, first, &ms))
            return false;
        first = false;
    } while (*text != '\0');
    *out_ms = ms;
    return true;
}

bool
wr_text_size(const char *text, int64_t *out_bytes)
{
    static const char units[] = "kmgt";
    int64_t whole, billionths, value;
    const char *unit = NULL;

    if (!read_decimal(&text, &whole, &billionths) || billionths != 0)
        return false;
    if (*text != '\0') {
        char lower = *text >= 'A' && *text <= 'Z' ? (char)(*text + 32) : *text;

        unit = strchr(units, lower);
        if (!unit || text[1] != '\0')
            return false;
    }
    if (__builtin_mul_overflow(whole, INT64_C(1) << (unit ? 10 * (unit - units + 1) : 0),
                               &value))
        return false;
    *out_bytes = value;
    return true;
}

/* ---- times ---- */

static bool
two_digits(const char **p, int max, int *out)
{
    if (!is_digit((*p)[0]) || !is_digit((*p)[1]))
        return false;
    *out = ((*p)[0] - '0') * 10 + ((*p)[1] - '0');
    *p += 2;
    return *out <= max;
}

static bool
one_of(const char **p, const char *chars)
{
    if (**p == '\0' || !strchr(chars, **p))
        return false;
    (*p)++;
    return true;
}

/* Days since 1970 of a date of the Gregorian calendar. The year is shifted so that it
 * begins in March and the leap day comes last. */
static int64_t
days_from_date(int64_t year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400, in_era = y % 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + day_of_year - 719468;
}

static bool
read_zone(const char **p, int64_t *offset_s)
{
    int sign, hours, minutes;

    *offset_s = 0;
    if (one_of(p, "Zz"))
        return true;
    sign = **p == '-' ? -1 : 1;
    if (!one_of(p, "+-") || !two_digits(p, 23, &hours))
        return false;
    (void)one_of(p, ":");
    if (!two_digits(p, 59, &minutes))
        return false;
    *offset_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool
is_date(int64_t year, int month, int day)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return year >= 1970 && month >= 1 && month <= 12 && day >= 1 &&
           day <= lengths[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* RFC 3339 */
static bool
read_rfc3339(const char *p, int64_t *out_ms)
{
    int century, years, month, day, hour, minute, second;
    int64_t offset_s, year, whole, billionths = 0;

    if (!two_digits(&p, 99, &century) || !two_digits(&p, 99, &years) ||
        !one_of(&p, "-") || !two_digits(&p, 12, &month) || !one_of(&p, "-") ||
        !two_digits(&p, 31, &day) || !one_of(&p, "Tt ") || !two_digits(&p, 23, &hour) ||
        !one_of(&p, ":") || !two_digits(&p, 59, &minute) || !one_of(&p, ":") ||
        !two_digits(&p, 60, &second))
        return false;
    if (*p == '.') {
        char fraction[16] = "0";
        const char *q = fraction;
        size_t len = strspn(p + 1, "0123456789");

        if (len == 0)
            return false;
        snprintf(fraction, sizeof(fraction), "0.%.*s", (int)(len < 9 ? len : 9), p + 1);
        if (!read_decimal(&q, &whole, &billionths))
            return false;
        p += 1 + len;
    }
    year = century * 100 + years;
    if (!is_date(year, month, day) || !read_zone(&p, &offset_s) || *p != '\0')
        return false;
    *out_ms = ((days_from_date(year, month, day) * 24 + hour) * 60 + minute) * 60000 +
              second * 1000 - offset_s * 1000 + billionths / 1000000;
    return true;
}

/* "today 18:30", "tomorrow 09:00": in the zone of TZ. */
static bool
read_day(const char *p, int64_t now_ms, int64_t *out_ms)
{
    time_t now = (time_t)(now_ms / 1000), then;
    int days = strncmp(p, "tomorrow ", 9) == 0 ? 1 : 0, hour, minute, second = 0;
    struct tm tm;

    p += strcspn(p, " ");
    if (!one_of(&p, " ") || !two_digits(&p, 23, &hour) || !one_of(&p, ":") ||
        !two_digits(&p, 59, &minute))
        return false;
    if (*p == ':' && (p++, !two_digits(&p, 59, &second)))
        return false;
    if (*p != '\0' || !localtime_r(&now, &tm))
        return false;
    tm.tm_mday += days;
    tm.tm_hour = hour;
    tm.tm_min = minute;
    tm.tm_sec = second;
    tm.tm_isdst = -1;
    then = mktime(&tm);
    if (then == (time_t)-1)
        return false;
    *out_ms = (int64_t)then * 1000;
    return true;
}

static bool
read_epoch(const char *p, int64_t *out_ms)
{
    int64_t whole, billionths, ms;

    if (!read_decimal(&p, &whole, &billionths))
        return false;
    if (strcmp(p, "ms") == 0 && billionths == 0) {
        *out_ms = whole;
        return true;
    }
    if (*p != '\0' || __builtin_mul_overflow(whole, 1000, &ms) ||
        __builtin_add_overflow(ms, billionths / 1000000, out_ms))
        return false;
    return true;
}

bool
wr_text_time(const char *text, int64_t now_ms, int64_t *out_ms)
{
    int64_t ms = 0;
    bool ok;

    if (strcmp(text, "now") == 0) {
        ms = now_ms;
        ok = true;
    } else if (strncmp(text, "now+", 4) == 0) {
        ok = wr_text_duration(text + 4, &ms) && !__builtin_add_overflow(ms, now_ms, &ms);
    } else if (strncmp(text, "today ", 6) == 0 || strncmp(text, "tomorrow ", 9) == 0) {
        ok = read_day(text, now_ms, &ms);
    } else {
        ok = read_rfc3339(text, &ms) || read_epoch(text, &ms);
    }
    if (!ok || ms < 0 || ms > WR_TIME_MAX_MS)
        return false;
    *out_ms = ms;
    return true;
}

void
wr_text_show_duration(int64_t ms, char *out, size_t out_len)
{
    long long s = ms / 1000;

    if (ms < 0)
        snprintf(out, out_len, "%lldms", (long long)ms);
    else if (ms < 1000)
        snprintf(out, out_len, "%lldms", (long long)ms);
    else if (ms < 60000)
        snprintf(out, out_len, "%lld.%llds", s, (long long)ms % 1000 / 100);
    else if (s < 3600)
        snprintf(out, out_len, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, out_len, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else if (s / 3600 % 24 == 0)
        snprintf(out, out_len, "%lldd", s / 86400);
    else
        snprintf(out, out_len, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}

void
wr_text_show_time(int64_t ms, char out[32])
{
    time_t s = (time_t)(ms / 1000);
    char date[24];
    struct tm tm;

    if (ms < 0 || ms > WR_TIME_MAX_MS || !gmtime_r(&s, &tm)) {
        snprintf(out, 32, "%lldms", (long long)ms);
        return;
    }
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, 32, "%s.%03dZ", date, (int)(ms % 1000));
}

/* ---- words ---- */

/* Length of the valid UTF-8 character at p that may be shown; 0: none. */
static size_t
printable_len(const unsigned char *p, size_t left)
{
    size_t len = p[0] < 0x80    ? 1
                 : p[0] >= 0xf0 ? 4
                 : p[0] >= 0xe0 ? 3
                 : p[0] >= 0xc2 ? 2
                                : 0;

    if (len == 1)
        return p[0] >= 0x20 && p[0] != 0x7f ? 1 : 0;
    if (len == 0 || len > left || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    if (p[0] == 0xc2 && p[1] < 0xa0) /* C1 control characters */
        return 0;
    if (p[0] == 0xe2 && p[1] == 0x80 && p[2] >= 0x8e &&
        (p[2] <= 0x8f || (p[2] >= 0xaa && p[2] <= 0xae)))
        return 0; /* marks that turn the writing direction */
    return len;
}

void
wr_text_escape(struct wr_buf *out, struct wr_span text)
{
    const unsigned char *p = text.ptr;

    for (size_t i = 0; i < text.len;) {
        size_t len = printable_len(p + i, text.len - i);

        if (len > 0)
            wr_buf_add(out, p + i, len);
        else
            wr_buf_addf(out, "\\x%02x", p[i]);
        i += len > 0 ? len : 1;
    }
}

void
wr_text_word_encode(struct wr_buf *out, struct wr_span text)
{
    const unsigned char *p = text.ptr;

    for (size_t i = 0; i < text.len; i++) {
        if (p[i] <= ' ' || p[i] == '%' || p[i] == '=' || p[i] == 0x7f)
            wr_buf_addf(out, "%%%02X", p[i]);
        else
            wr_buf_add(out, &p[i], 1);
    }
}

void
wr_text_given_word_encode(struct wr_buf *out, struct wr_span text)
{
    if (text.len == 1 && *(const char *)text.ptr == '-')
        wr_buf_add_str(out, "%2D");
    else
        wr_text_word_encode(out, text);
}

static int
hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool
wr_text_word_decode(struct wr_buf *out, struct wr_span word)
{
    const char *p = word.ptr;

    for (size_t i = 0; i < word.len; i++) {
        char c = p[i];

        if (c == '%') {
            int high = i + 2 < word.len ? hex_value(p[i + 1]) : -1;
            int low = high >= 0 ? hex_value(p[i + 2]) : -1;

            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        wr_buf_add(out, &c, 1);
    }
    return !out->failed;
}

static bool
is_name(struct wr_span name, size_t max, const char *forbidden)
{
    const unsigned char *p = name.ptr;

    if (name.len == 0 || name.len > max)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f || strchr(forbidden, p[i]))
            return false;
    }
    return true;
}

bool
wr_text_is_job_id(struct wr_span id)
{
    return is_name(id, 255, "");
}

bool
wr_text_is_queue(struct wr_span queue)
{
    return is_name(queue, 128, "{}");
}

bool
wr_text_is_type(struct wr_span type)
{
    return is_name(type, 128, "");
}

const char *
wr_text_s(int64_t n)
{
    return n == 1 ? "" : "s";
}

const char *
wr_text_are(int64_t n)
{
    return n == 1 ? "is" : "are";
}

/* Levenshtein distance, for words of the length of commands; two letters that changed
 * places count as one change. */
static size_t
distance(const char *a, const char *b)
{
    size_t row[65], before[65] = {0}, m = strlen(a), n = strlen(b);

    if (m > 64 || n > 64)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t last[65];

        memcpy(last, row, sizeof(last));
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);

            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
            row[j] = best;
        }
        memcpy(before, last, sizeof(before));
    }
    return row[n];
}

const char *
wr_text_nearest(const char *text, const char *const *names)
{
    const char *nearest = NULL;
    size_t best = (strlen(text) < 6 ? 1 : strlen(text) / 3) + 1;

    for (; *names; names++) {
        size_t d = distance(text, *names);

        if (d < best) {
            best = d;
            nearest = *names;
        }
    }
    return nearest;
}
