/*
 * base/text.h - reading and showing what people write: numbers, durations,
 * sizes, times, names. Pure functions; nothing depends on the locale.
 */
#ifndef WR_BASE_TEXT_H
#define WR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

#define WR_TIME_MAX_MS 253402300799999 /* the last ms of the year 9999 */

/* All parsers take the whole string or fail; no blanks, no sign but a leading
 * '-' where negative numbers are allowed, no hex, no exponent. */
bool wr_text_int(const char *text, int64_t min, int64_t max, int64_t *out);
/* Digits alone, as the scripts write them: no sign, no NUL inside. */
bool wr_span_int(struct wr_span word, int64_t *out);
/* "250ms" "15s" "5m" "2h" "3d" "1w" "1h30m", decimals like "1.5s"; a bare
 * number is seconds. Fails when negative, empty, NaN or over 2^53 ms. */
bool wr_text_duration(const char *text, int64_t *out_ms);
/* "64k" "1M" "1G" (powers of 1024), a bare number is bytes. */
bool wr_text_size(const char *text, int64_t *out_bytes);
/* Seconds since 1970 ("1796000000", "1796000000.5"), ms as "1796000000000ms",
 * RFC 3339 ("2026-11-30T09:00:00Z", "+01:00", fractions, blank for T),
 * "now", "now+5m", "tomorrow 09:00", "today 18:30" (zone of TZ). Fails past the
 * year 9999. now_ms is the wall clock. */
bool wr_text_time(const char *text, int64_t now_ms, int64_t *out_ms);
/* "1m05s", "812ms", "3h12m", "2d": short, for people. out_len >= 24. */
void wr_text_show_duration(int64_t ms, char *out, size_t out_len);
/* "2026-11-30T09:00:00.123Z". */
void wr_text_show_time(int64_t ms, char out[32]);
/* Appends text with control characters, DEL and invalid UTF-8 as \xNN: what a
 * stranger wrote must not steer a terminal. */
void wr_text_escape(struct wr_buf *out, struct wr_span text);
/* Percent-encodes blanks, '%', '=' and control bytes, so that it is one word. */
void wr_text_word_encode(struct wr_buf *out, struct wr_span text);
/* The same for a place where a lone "-" stands for none: it is encoded too. */
void wr_text_given_word_encode(struct wr_buf *out, struct wr_span text);
/* The reverse; false on a bad escape. */
bool wr_text_word_decode(struct wr_buf *out, struct wr_span word);

/* 1-255 bytes of anything but control characters (below 0x20, and 0x7f). */
bool wr_text_is_job_id(struct wr_span id);
/* 1-128 bytes without braces or control characters. */
bool wr_text_is_queue(struct wr_span queue);
/* 1-128 bytes without control characters. */
bool wr_text_is_type(struct wr_span type);

/* What makes a plural: "" for one, else "s"; "is" for one, else "are". */
const char *wr_text_s(int64_t n);
const char *wr_text_are(int64_t n);

/* The one of `names` (NULL at the end) that is closest to text, for "did you
 * mean"; NULL when none is near: more than a third of it would change, of a short word
 * more than one letter. */
const char *wr_text_nearest(const char *text, const char *const *names);

#endif
