#include "model/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/retry.h"

/* The options of a header that are numbers, and what they are when not given. */
/* clang-format off */
static const struct {
    const char *name;
    size_t field;
    int64_t otherwise;
} numbers[] = {
    {"retry",          offsetof(struct wr_record, max_retry),      WR_RETRY_DEFAULT},
    {"max_deliveries", offsetof(struct wr_record, max_deliveries), WR_DELIVERIES_DEFAULT},
    {"timeout",        offsetof(struct wr_record, timeout_ms),     WR_TIMEOUT_DEFAULT_MS},
    {"kill_after",     offsetof(struct wr_record, kill_after_ms),  WR_KILL_AFTER_DEFAULT_MS},
    {"keep",           offsetof(struct wr_record, keep_ms),        0},
    {"expires",        offsetof(struct wr_record, expires_ms),     0},
    {"keep_progress",  offsetof(struct wr_record, keep_progress_ms), WR_PROGRESS_WITH_JOB},
};
/* clang-format on */
#define TIME_LEN 24 /* what the script adds: a blank and the time of the enqueue */
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static int64_t *
number_field(struct wr_record *r, size_t i)
{
    return (int64_t *)(void *)((char *)r + numbers[i].field);
}

/* ---- reading ---- */

/* The next word of *line, up to a blank; false at the end, or if there is none. */
static bool
next_word(struct wr_span *line, struct wr_span *word)
{
    const char *p = line->ptr, *blank;

    *word = (struct wr_span){"", 0};
    if (line->len == 0)
        return false;
    blank = memchr(p, ' ', line->len);
    word->ptr = p;
    word->len = blank ? (size_t)(blank - p) : line->len;
    line->ptr = p + word->len + (blank ? 1 : 0);
    line->len -= word->len + (blank ? 1 : 0);
    return word->len > 0;
}

/* The same, however many blanks stand before it. */
static bool
next_option(struct wr_span *line, struct wr_span *word)
{
    while (line->len > 0 && *(const char *)line->ptr == ' ') {
        line->ptr = (const char *)line->ptr + 1;
        line->len--;
    }
    return next_word(line, word);
}

/* The word as it was before it was encoded. read_front() made the room. */
static bool
decode_word(struct wr_record *r, struct wr_span word, struct wr_span *out)
{
    size_t at = r->text.len;

    if (!wr_text_word_decode(&r->text, word))
        return false;
    *out = (struct wr_span){r->text.ptr + at, r->text.len - at};
    wr_buf_add(&r->text, "", 1); /* ends each word, so that it is a C string as well */
    return !r->text.failed;
}

static bool
has_prefix(struct wr_span word, const char *prefix)
{
    return word.len >= strlen(prefix) && memcmp(word.ptr, prefix, strlen(prefix)) == 0;
}

/* The stretch of the header from the first meta to the last. */
static void
add_meta(struct wr_record *r, struct wr_span word)
{
    if (r->meta.len == 0)
        r->meta = word;
    else
        r->meta.len = (size_t)((const char *)word.ptr + word.len -
                               (const char *)r->meta.ptr);
}

/* Another writer may have mixed metas and options. What stands between the metas must
 * not be taken for one, nor be written twice, so then they are gathered in `text`. */
static bool
only_meta(struct wr_record *r)
{
    struct wr_span line = r->meta, word;
    size_t at = r->text.len;
    bool mixed = false;

    while (next_option(&line, &word))
        mixed = mixed || !has_prefix(word, "meta.");
    if (!mixed)
        return true;
    line = r->meta;
    while (next_option(&line, &word)) {
        if (!has_prefix(word, "meta."))
            continue;
        if (r->text.len > at)
            wr_buf_add(&r->text, " ", 1);
        wr_buf_add(&r->text, word.ptr, word.len);
    }
    r->meta = (struct wr_span){r->text.ptr + at, r->text.len - at};
    return !r->text.failed;
}

static bool
read_option(struct wr_record *r, struct wr_span word)
{
    const char *equals = memchr(word.ptr, '=', word.len);
    struct wr_span name = {word.ptr,
                           equals ? (size_t)(equals - (const char *)word.ptr) : 0};
    struct wr_span value = {equals ? equals + 1 : "",
                            equals ? word.len - name.len - 1 : 0};

    if (!equals)
        return true; /* a word of a later version */
    for (size_t i = 0; i < NUMBERS; i++) {
        if (name.len == strlen(numbers[i].name) &&
            memcmp(name.ptr, numbers[i].name, name.len) == 0)
            return wr_span_int(value, number_field(r, i));
    }
    if (has_prefix(word, "backoff="))
        return decode_word(r, value, &r->backoff);
    if (has_prefix(word, "unique="))
        return decode_word(r, value, &r->unique);
    if (has_prefix(word, "unique_states="))
        return decode_word(r, value, &r->unique_states);
    if (has_prefix(word, "order="))
        return decode_word(r, value, &r->order);
    if (has_prefix(word, "then="))
        return decode_word(r, value, &r->then);
    if (has_prefix(word, "lost_body="))
        r->lost_body = true;
    else if (has_prefix(word, "meta."))
        add_meta(r, word);
    return true;
}

/* Format version, type, time; *line is moved on to the options. */
static bool
read_front(struct wr_record *r, struct wr_span *line, int *version)
{
    struct wr_span word;
    int64_t number;

    if (!next_word(line, &word) || !wr_span_int(word, &number) || number > 1000000)
        return false;
    *version = (int)number;
    /* Room for every decoded word and for the metas: spans into it stay valid. */
    return *version == WR_FORMAT_VERSION && wr_buf_room(&r->text, 2 * line->len + 8) &&
           next_word(line, &word) && decode_word(r, word, &r->type) &&
           next_word(line, &word) && wr_span_int(word, &r->enqueued_at_ms);
}

static bool
read_header(struct wr_record *r, struct wr_span line, int *version)
{
    struct wr_span word;

    if (!read_front(r, &line, version))
        return false;
    while (next_option(&line, &word)) {
        if (!read_option(r, word))
            return false;
    }
    return only_meta(r);
}

bool
wr_record_read(struct wr_span record, struct wr_record *out, int *version)
{
    const char *newline = record.len > 0 ? memchr(record.ptr, '\n', record.len) : NULL;
    struct wr_span line;

    *version = -1;
    *out = (struct wr_record){0};
    for (size_t i = 0; i < NUMBERS; i++)
        *number_field(out, i) = numbers[i].otherwise;
    if (!newline)
        return false;
    line = (struct wr_span){record.ptr, (size_t)(newline - (const char *)record.ptr)};
    out->payload = (struct wr_span){newline + 1, record.len - line.len - 1};
    if (read_header(out, line, version))
        return true;
    wr_record_fini(out);
    *out = (struct wr_record){.payload = out->payload};
    return false;
}

void
wr_record_fini(struct wr_record *record)
{
    wr_buf_fini(&record->text);
}

bool
wr_record_meta(const struct wr_record *r, const char *name, struct wr_buf *out)
{
    struct wr_span line = r->meta, word;
    struct wr_buf wanted = {0};
    bool found = false;

    wr_buf_add_str(&wanted, "meta.");
    wr_text_word_encode(&wanted, wr_span_str(name));
    wr_buf_add_str(&wanted, "=");
    while (!found && next_option(&line, &word)) {
        if (!wanted.failed && has_prefix(word, wanted.ptr))
            found = wr_text_word_decode(
                out, (struct wr_span){(const char *)word.ptr + wanted.len,
                                      word.len - wanted.len});
    }
    wr_buf_fini(&wanted);
    return found;
}

/* ---- writing ---- */

static void
add_word(struct wr_buf *out, const char *name, struct wr_span value)
{
    if (value.len == 0)
        return;
    wr_buf_addf(out, " %s=", name);
    wr_text_word_encode(out, value);
}

static void
add_number(struct wr_buf *out, const char *name, uint64_t value)
{
    wr_buf_add(out, " ", 1);
    wr_buf_add_str(out, name);
    wr_buf_add(out, "=", 1);
    wr_buf_add_number(out, value);
}

static bool
add_numbers(struct wr_buf *out, struct wr_record r)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t value = *number_field(&r, i);

        if (value < 0)
            return false; /* no reader would take it */
        if (value != numbers[i].otherwise ||
            (r.max_retry_given &&
             numbers[i].field == offsetof(struct wr_record, max_retry)))
            add_number(out, numbers[i].name, (uint64_t)value);
    }
    return true;
}

bool
wr_record_write(const struct wr_record *r, struct wr_buf *head, struct wr_buf *tail)
{
    size_t before = head->len + tail->len;

    if (r->type.len == 0)
        return false;
    wr_buf_add_number(head, WR_FORMAT_VERSION);
    wr_buf_add(head, " ", 1);
    wr_text_word_encode(head, r->type);
    if (!add_numbers(tail, *r))
        return false;
    add_word(tail, "backoff", r->backoff);
    if (r->unique.len > 0) {
        wr_buf_add_str(tail, " unique=");
        wr_text_given_word_encode(tail, r->unique);
    }
    add_word(tail, "unique_states", r->unique_states);
    if (r->order.len > 0) {
        wr_buf_add_str(tail, " order=");
        wr_text_given_word_encode(tail, r->order);
    }
    add_word(tail, "then", r->then);
    if (r->meta.len > 0) {
        wr_buf_add_str(tail, " ");
        wr_buf_add(tail, r->meta.ptr, r->meta.len);
    }
    if (head->len + tail->len - before + TIME_LEN > WR_HEADER_MAX)
        return false;
    (void)wr_buf_room(tail, 1 + r->payload.len);
    wr_buf_add(tail, "\n", 1);
    wr_buf_add(tail, r->payload.ptr, r->payload.len);
    return !head->failed && !tail->failed;
}

/* ---- state ---- */

/* Digits, and what stands between those of the stream engine. */
static bool
is_token(struct wr_span token)
{
    const char *p = token.ptr;

    for (size_t i = 0; i < token.len; i++) {
        bool digit = p[i] >= '0' && p[i] <= '9';

        if (!digit && (i == 0 || (p[i] != '-' && p[i] != '.')))
            return false;
    }
    return token.len > 0 && token.len < WR_TOKEN_MAX;
}

bool
wr_job_state_read(struct wr_span text, struct wr_job_state *out)
{
    const char *bar = text.len > 0 ? memchr(text.ptr, '|', text.len) : NULL;
    struct wr_span line = {text.ptr, bar ? (size_t)(bar - (const char *)text.ptr) : 0};
    int64_t *rest[] = {&out->keep_ms,       &out->deliveries,    &out->attempts,
                       &out->lost,          &out->interrupted,   &out->snoozes,
                       &out->started_at_ms, &out->max_deliveries};
    struct wr_span token, worker, flag, unique, word;

    *out = (struct wr_job_state){0};
    if (!bar || !next_word(&line, &token) || !next_word(&line, &worker) ||
        !next_word(&line, &flag) || !next_word(&line, &unique))
        return false;
    if (!is_token(token) || worker.len >= sizeof(out->worker))
        return false;
    memcpy(out->token, token.ptr, token.len);
    memcpy(out->worker, worker.ptr, worker.len);
    out->cancelled = flag.len == 1 && *(const char *)flag.ptr == 'c';
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
        if (!next_word(&line, &word) || !wr_span_int(word, rest[i]))
            return false;
    }
    if (line.len > 0)
        return false;
    out->progress = (struct wr_span){
        bar + 1, text.len - (size_t)(bar + 1 - (const char *)text.ptr)};
    return true;
}
