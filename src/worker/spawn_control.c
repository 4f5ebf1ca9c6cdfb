/* What a command says of itself, a line at a time: see weir-exec(7). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "worker/spawn.h"

#define EXTEND_MAX_MS (INT64_C(7) * 86400 * 1000)
#define DELAY_MAX_MS (INT64_C(366) * 86400 * 1000)

/* A line cut in words; NUL-ended, odd bytes made blank. */
struct words {
    char text[WR_CONTROL_LINE_MAX + 1];
    char *rest; /* after the first word and its blanks */
};

static void
split(struct words *w, const char *line, size_t len)
{
    size_t word;

    len = len < WR_CONTROL_LINE_MAX ? len : WR_CONTROL_LINE_MAX;
    while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    memcpy(w->text, line, len);
    w->text[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        if (w->text[i] == '\0' || w->text[i] == '\t')
            w->text[i] = ' ';
    }
    word = strcspn(w->text, " ");
    w->rest = w->text + word + strspn(w->text + word, " ");
    w->text[word] = '\0';
}

/* Takes a word off the rest. */
static char *
next_word(struct words *w)
{
    char *word = w->rest;
    size_t len = strcspn(word, " ");

    w->rest = word + len + strspn(word + len, " ");
    word[len] = '\0';
    return word;
}

static void
copy(char *out, size_t out_len, const char *text)
{
    snprintf(out, out_len, "%s", text);
}

/* "40", "40%" and "3/12" are percents; -1: it is none of these. */
static int
read_percent(const char *word)
{
    const char *slash = strchr(word, '/');
    char part[24];
    int64_t done, all;

    if (slash && slash - word < (ptrdiff_t)sizeof(part)) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - word), word);
        if (!wr_text_int(part, 0, INT32_MAX, &done) ||
            !wr_text_int(slash + 1, 1, INT32_MAX, &all))
            return -1;
        return (int)((done < all ? done : all) * 100 / all);
    }
    snprintf(part, sizeof(part), "%.*s", (int)strcspn(word, "%"), word);
    if (!wr_text_int(part, 0, INT32_MAX, &done))
        return -1;
    return done < 100 ? (int)done : 100;
}

static enum wr_control_word
progress(struct words *w, struct wr_exec_end *end)
{
    char text[sizeof(end->progress)], *word;
    const char *stage;
    int percent, at = 0;

    copy(text, sizeof(text), w->rest);
    word = next_word(w);
    percent = read_percent(word);
    if (percent < 0) {
        snprintf(end->progress, sizeof(end->progress), "- %.250s", text);
        return WR_CONTROL_PROGRESS;
    }
    stage = strncmp(w->rest, "stage=", 6) == 0 ? next_word(w) : "";
    at = snprintf(end->progress, sizeof(end->progress), "%d %.100s%s", percent, stage,
                  *stage ? " " : "");
    if (strchr(word, '/')) /* people like to read it as it was said */
        at += snprintf(end->progress + at, sizeof(end->progress) - (size_t)at, "%.24s%s",
                       word, *w->rest ? " " : "");
    snprintf(end->progress + at, sizeof(end->progress) - (size_t)at, "%s", w->rest);
    return WR_CONTROL_PROGRESS;
}

/* A first word that is no time belongs to the reason. */
static int64_t
take_time(struct words *w, int64_t max_ms)
{
    char first[32];
    size_t len = strcspn(w->rest, " ");
    int64_t ms;

    if (len == 0 || len >= sizeof(first))
        return -1;
    snprintf(first, sizeof(first), "%.*s", (int)len, w->rest);
    if (!wr_text_duration(first, &ms))
        return -1;
    (void)next_word(w);
    return ms < max_ms ? ms : max_ms;
}

static enum wr_control_word
verdict(struct words *w, struct wr_exec_end *end, enum wr_exec_said said)
{
    end->said = said;
    end->delay_ms = said == WR_SAID_PERMANENT ? -1 : take_time(w, DELAY_MAX_MS);
    copy(end->why, sizeof(end->why), w->rest);
    return WR_CONTROL_NOTHING;
}

static enum wr_control_word
level(struct words *w, struct wr_buf *note)
{
    char *name = next_word(w);

    wr_buf_addf(note, "[%s] %s\n", name, w->rest);
    return WR_CONTROL_NOTE;
}

static void
add_tag(struct wr_exec_end *end, const char *tag)
{
    size_t len = strlen(end->tags), more = strlen(tag);

    if (more == 0 || len + more + 2 > sizeof(end->tags))
        return; /* what does not fit is left out whole */
    snprintf(end->tags + len, sizeof(end->tags) - len, "%s%s", len ? " " : "", tag);
}

enum wr_control_word
wr_control_line(const char *line, size_t len, struct wr_exec_end *end,
                struct wr_buf *note, int64_t *extend_ms)
{
    struct words w;

    split(&w, line, len);
    end->lines++;
    if (strcmp(w.text, "progress") == 0)
        return progress(&w, end);
    if (strcmp(w.text, "note") == 0) {
        wr_buf_addf(note, "%s\n", w.rest);
        return WR_CONTROL_NOTE;
    }
    if (strcmp(w.text, "level") == 0)
        return level(&w, note);
    if (strcmp(w.text, "push") == 0) {
        wr_buf_addf(note, "%s\n", w.rest);
        return WR_CONTROL_PUSH;
    }
    if (strcmp(w.text, "extend") == 0) {
        *extend_ms = take_time(&w, EXTEND_MAX_MS);
        return *extend_ms > 0 ? WR_CONTROL_EXTEND : WR_CONTROL_NOTHING;
    }
    if (strcmp(w.text, "snooze") == 0)
        return verdict(&w, end, WR_SAID_SNOOZE);
    if (strcmp(w.text, "permanent") == 0)
        return verdict(&w, end, WR_SAID_PERMANENT);
    if (strcmp(w.text, "retry") == 0)
        return verdict(&w, end, WR_SAID_RETRY);
    if (strcmp(w.text, "error") == 0)
        copy(end->why, sizeof(end->why), w.rest);
    else if (strcmp(w.text, "result-file") == 0)
        copy(end->result_file, sizeof(end->result_file), w.rest);
    else if (strcmp(w.text, "tag") == 0)
        add_tag(end, w.rest);
    return WR_CONTROL_NOTHING; /* heartbeat: that it spoke is all it says */
}
