#include "model/entry.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

const char *const wr_missed_words[] = {
    [WR_MISSED_ONCE] = "once",
    [WR_MISSED_SKIP] = "skip",
    [WR_MISSED_ALL] = "all",
    NULL,
};
const char *const wr_overlap_words[] = {
    [WR_OVERLAP_ALLOW] = "allow",
    [WR_OVERLAP_SKIP] = "skip",
    [WR_OVERLAP_QUEUE] = "queue",
    [WR_OVERLAP_REPLACE] = "replace",
    NULL,
};

/* The options that are numbers. */
/* clang-format off */
static const struct {
    const char *name;
    size_t field;
    int64_t otherwise;
} numbers[] = {
    {"cap",    offsetof(struct wr_entry, cap),       WR_CAP_DEFAULT},
    {"grace",  offsetof(struct wr_entry, grace_ms),  WR_GRACE_DEFAULT_MS},
    {"jitter", offsetof(struct wr_entry, jitter_ms), 0},
    {"window", offsetof(struct wr_entry, window_ms), 0},
};
/* clang-format on */
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static int64_t *
number_field(struct wr_entry *e, size_t i)
{
    return (int64_t *)(void *)((char *)e + numbers[i].field);
}

bool
wr_entry_is_name(struct wr_span name)
{
    return name.len <= WR_ENTRY_NAME_MAX && wr_text_is_job_id(name);
}

/* Takes what stands before the next `end`, and that; false if it is not there. */
static bool
take(struct wr_span *rest, char end, struct wr_span *out)
{
    const char *begin = rest->ptr, *at = memchr(begin, end, rest->len);

    if (!at)
        return false;
    *out = (struct wr_span){begin, (size_t)(at - begin)};
    rest->ptr = at + 1;
    rest->len -= out->len + 1;
    return true;
}

static bool
copy(struct wr_span word, char *out, size_t cap)
{
    if (word.len >= cap || memchr(word.ptr, '\0', word.len))
        return false;
    memcpy(out, word.ptr, word.len);
    out[word.len] = '\0';
    return true;
}

static bool
is_dash(struct wr_span word)
{
    return word.len == 1 && *(const char *)word.ptr == '-';
}

/* A word, or "" for "-". */
static bool
read_word(struct wr_span word, char *out, size_t cap)
{
    if (is_dash(word))
        word.len = 0;
    return copy(word, out, cap);
}

static bool
read_state(struct wr_span line, struct wr_entry *e)
{
    struct wr_span w[8];

    for (int i = 0; i < 7; i++) {
        if (!take(&line, ' ', &w[i]))
            return false;
    }
    w[7] = line;
    e->due_ms = -1;
    e->paused = !is_dash(w[2]);
    return wr_span_int(w[0], &e->rev) &&
           (is_dash(w[1]) || wr_span_int(w[1], &e->due_ms)) &&
           read_word(w[3], e->last, sizeof(e->last)) &&
           wr_span_int(w[4], &e->last_at_ms) && wr_span_int(w[5], &e->fired) &&
           wr_span_int(w[6], &e->skipped) && read_word(w[7], e->waits, sizeof(e->waits));
}

static bool
read_text(struct wr_span value, char *out, size_t cap)
{
    struct wr_buf buf = {0};
    bool ok = wr_text_word_decode(&buf, value) && copy(wr_buf_span(&buf), out, cap);

    wr_buf_fini(&buf);
    return ok;
}

static bool
is(struct wr_span word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.ptr, text, word.len) == 0;
}

static int
find_word(struct wr_span word, const char *const *words)
{
    for (int i = 0; words[i]; i++) {
        if (is(word, words[i]))
            return i;
    }
    return -1;
}

static bool
read_option(struct wr_span name, struct wr_span value, struct wr_entry *e)
{
    int word;

    if (is(name, "spec"))
        return read_text(value, e->spec, sizeof(e->spec));
    if (is(name, "zone"))
        return read_text(value, e->zone, sizeof(e->zone));
    if (is(name, "missed")) {
        word = find_word(value, wr_missed_words);
        e->missed = word < 0 ? WR_MISSED_ONCE : (enum wr_missed)word;
        return word >= 0;
    }
    if (is(name, "overlap")) {
        word = find_word(value, wr_overlap_words);
        e->overlap = word < 0 ? WR_OVERLAP_ALLOW : (enum wr_overlap)word;
        return word >= 0;
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        if (is(name, numbers[i].name))
            return wr_span_int(value, number_field(e, i));
    }
    return true; /* of a later version */
}

static bool
read_options(struct wr_span line, struct wr_entry *e)
{
    bool ok = true;

    for (size_t i = 0; i < NUMBERS; i++)
        *number_field(e, i) = numbers[i].otherwise;
    while (ok && line.len > 0) {
        struct wr_span option, name;

        if (!take(&line, ' ', &option)) {
            option = line;
            line.len = 0;
        }
        ok = take(&option, '=', &name) && read_option(name, option, e);
    }
    return ok && e->spec[0] && e->zone[0] && e->cap >= 1 && e->cap <= WR_CAP_MAX;
}

bool
wr_entry_read(struct wr_span text, struct wr_entry *out)
{
    struct wr_span line;

    *out = (struct wr_entry){0};
    if (!take(&text, '\n', &line) || !read_state(line, out) ||
        !take(&text, '\n', &line) || !read_options(line, out) ||
        !memchr(text.ptr, '\n', text.len))
        return false;
    out->record = text;
    return true;
}

void
wr_entry_write(const struct wr_entry *e, struct wr_span head, struct wr_span tail,
               struct wr_buf *out)
{
    struct wr_entry copy_of = *e;

    wr_buf_add_str(out, "spec=");
    wr_text_word_encode(out, wr_span_str(e->spec));
    wr_buf_add_str(out, " zone=");
    wr_text_word_encode(out, wr_span_str(e->zone));
    if (e->missed != WR_MISSED_ONCE)
        wr_buf_addf(out, " missed=%s", wr_missed_words[e->missed]);
    if (e->overlap != WR_OVERLAP_ALLOW)
        wr_buf_addf(out, " overlap=%s", wr_overlap_words[e->overlap]);
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t n = *number_field(&copy_of, i);

        if (n != numbers[i].otherwise)
            wr_buf_addf(out, " %s=%lld", numbers[i].name, (long long)n);
    }
    wr_buf_add_str(out, "\n");
    wr_buf_add(out, head.ptr, head.len);
    wr_buf_add(out, tail.ptr, tail.len);
}

int64_t
wr_entry_jitter(const char *name, int64_t tick_ms, int64_t jitter_ms)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    if (jitter_ms <= 0)
        return 0;
    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (uint64_t)(tick_ms >> (8 * i) & 0xff)) * UINT64_C(1099511628211);
    hash ^= hash >> 32; /* the low bits alone are weak */
    return (int64_t)(hash % ((uint64_t)jitter_ms + 1));
}
