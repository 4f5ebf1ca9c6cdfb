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
};
/* clang-format on */
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static int64_t *
number_field(struct wr_record *r, size_t i)
{
    return (int64_t *)(void *)((char *)r + numbers[i].field);
}

/* ---- reading ---- */

/* The next word of *line, up to a blank; false at the end. */
static bool
next_word(struct wr_span *line, struct wr_span *word)
{
    const char *p = line->ptr, *blank;

    if (line->len == 0)
        return false;
    blank = memchr(p, ' ', line->len);
    word->ptr = p;
    word->len = blank ? (size_t)(blank - p) : line->len;
    line->ptr = p + word->len + (blank ? 1 : 0);
    line->len -= word->len + (blank ? 1 : 0);
    return word->len > 0;
}

static bool
read_int(struct wr_span word, int64_t *out)
{
    char text[24];

    if (word.len == 0 || word.len >= sizeof(text))
        return false;
    memcpy(text, word.ptr, word.len);
    text[word.len] = '\0';
    return wr_text_int(text, 0, INT64_MAX, out);
}

/* Where decoded words go: room for the whole header is made once, so spans stay valid. */
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

static void
add_meta(struct wr_record *r, struct wr_span word)
{
    if (r->meta.len == 0)
        r->meta = word;
    else /* words of one line: the stretch from the first to this one */
        r->meta.len = (size_t)((const char *)word.ptr + word.len -
                               (const char *)r->meta.ptr);
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
            return read_int(value, number_field(r, i));
    }
    if (has_prefix(word, "backoff="))
        return decode_word(r, value, &r->backoff);
    if (has_prefix(word, "unique="))
        return decode_word(r, value, &r->unique);
    if (has_prefix(word, "lost_body="))
        r->lost_body = true;
    else if (has_prefix(word, "meta."))
        add_meta(r, word);
    return true;
}

bool
wr_record_read(struct wr_span record, struct wr_record *out, int *version)
{
    const char *newline = memchr(record.ptr, '\n', record.len);
    struct wr_span line, word;
    int64_t number;

    *version = -1;
    *out = (struct wr_record){0};
    for (size_t i = 0; i < NUMBERS; i++)
        *number_field(out, i) = numbers[i].otherwise;
    if (!newline)
        return false;
    line = (struct wr_span){record.ptr, (size_t)(newline - (const char *)record.ptr)};
    out->payload = (struct wr_span){newline + 1, record.len - line.len - 1};
    if (!next_word(&line, &word) || !read_int(word, &number) || number > 1000000)
        return false;
    *version = (int)number;
    if (*version != WR_FORMAT_VERSION || !wr_buf_room(&out->text, line.len + 8))
        return false;
    if (!next_word(&line, &word) || !decode_word(out, word, &out->type) ||
        !next_word(&line, &word) || !read_int(word, &out->enqueued_at_ms))
        return false;
    while (next_word(&line, &word)) {
        if (!read_option(out, word))
            return false;
    }
    return true;
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
    while (!found && next_word(&line, &word)) {
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

bool
wr_record_write(const struct wr_record *r, struct wr_buf *head, struct wr_buf *tail)
{
    struct wr_record copy = *r;

    wr_buf_addf(head, "%d ", WR_FORMAT_VERSION);
    wr_text_word_encode(head, r->type);
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t value = *number_field(&copy, i);

        if (value != numbers[i].otherwise)
            wr_buf_addf(tail, " %s=%lld", numbers[i].name, (long long)value);
    }
    add_word(tail, "backoff", r->backoff);
    add_word(tail, "unique", r->unique);
    if (r->meta.len > 0) {
        wr_buf_add_str(tail, " ");
        wr_buf_add(tail, r->meta.ptr, r->meta.len);
    }
    if (head->len + tail->len + 24 > WR_HEADER_MAX)
        return false;
    wr_buf_add_str(tail, "\n");
    wr_buf_add(tail, r->payload.ptr, r->payload.len);
    return !head->failed && !tail->failed;
}

/* ---- state ---- */

bool
wr_job_state_read(struct wr_span text, struct wr_job_state *out)
{
    const char *bar = memchr(text.ptr, '|', text.len);
    struct wr_span line = {text.ptr, bar ? (size_t)(bar - (const char *)text.ptr) : 0};
    int64_t *rest[] = {&out->keep_ms,       &out->deliveries,    &out->attempts,
                       &out->lost,          &out->interrupted,   &out->snoozes,
                       &out->started_at_ms, &out->max_deliveries};
    struct wr_span token, worker, flag, unique, word;

    *out = (struct wr_job_state){0};
    if (!bar || !next_word(&line, &token) || !next_word(&line, &worker) ||
        !next_word(&line, &flag) || !next_word(&line, &unique))
        return false;
    if (token.len >= sizeof(out->token) || worker.len >= sizeof(out->worker))
        return false;
    memcpy(out->token, token.ptr, token.len);
    memcpy(out->worker, worker.ptr, worker.len);
    out->cancelled = flag.len == 1 && *(const char *)flag.ptr == 'c';
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
        if (!next_word(&line, &word) || !read_int(word, rest[i]))
            return false;
    }
    out->progress = (struct wr_span){
        bar + 1, text.len - (size_t)(bar + 1 - (const char *)text.ptr)};
    return true;
}
