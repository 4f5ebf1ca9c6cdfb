#include "model/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char stage_word[] = "stage=";

/* Escaped for people, and no longer than that. */
static void
add_cut(struct wr_buf *out, struct wr_span text, size_t max)
{
    struct wr_buf shown = {0};

    wr_text_escape(&shown, text);
    wr_buf_add(out, shown.ptr, shown.len < max ? shown.len : max);
    out->failed = out->failed || shown.failed;
    wr_buf_fini(&shown);
}

void
wr_progress_write(int percent, struct wr_span stage, struct wr_span message,
                  struct wr_buf *out)
{
    struct wr_buf shown = {0};
    char number[16];

    snprintf(number, sizeof(number), percent < 0 ? "- " : "%d ",
             percent < 100 ? percent : 100);
    wr_buf_add_str(out, number);
    if (stage.len > 0) {
        add_cut(&shown, stage, WR_STAGE_MAX);
        wr_buf_add_str(out, stage_word);
        wr_text_word_encode(out, wr_buf_span(&shown));
        wr_buf_add_str(out, " ");
        out->failed = out->failed || shown.failed;
        wr_buf_fini(&shown);
    }
    add_cut(out, message, WR_PROGRESS_TEXT_MAX);
}

static int
read_percent(struct wr_span word)
{
    char text[8];
    int64_t n;

    if (word.len == 0 || word.len >= sizeof(text))
        return -1;
    memcpy(text, word.ptr, word.len);
    text[word.len] = '\0';
    return wr_text_int(text, 0, 100, &n) ? (int)n : -1;
}

/* The word at the begin of *text, which goes on behind it and its blank. */
static struct wr_span
take_word(struct wr_span *text)
{
    const char *p = text->ptr, *blank = text->len > 0 ? memchr(p, ' ', text->len) : NULL;
    size_t len = blank ? (size_t)(blank - p) : text->len;
    struct wr_span word = {p, len};

    len += blank != NULL;
    text->ptr = p + len;
    text->len -= len;
    return word;
}

void
wr_progress_read(struct wr_span text, struct wr_progress *out)
{
    struct wr_span rest = text, word = take_word(&rest), stage;

    wr_buf_clear(&out->stage);
    wr_buf_clear(&out->message);
    out->percent = read_percent(word);
    if (out->percent < 0 && !(word.len == 1 && *(const char *)word.ptr == '-'))
        rest = text;
    stage = rest;
    word = take_word(&stage);
    if (word.len > sizeof(stage_word) - 1 &&
        memcmp(word.ptr, stage_word, sizeof(stage_word) - 1) == 0) {
        word.ptr = (const char *)word.ptr + sizeof(stage_word) - 1;
        word.len -= sizeof(stage_word) - 1;
        if (wr_text_word_decode(&out->stage, word))
            rest = stage;
        else
            wr_buf_clear(&out->stage);
    }
    wr_buf_add(&out->message, rest.ptr, rest.len);
}

void
wr_progress_fini(struct wr_progress *progress)
{
    wr_buf_fini(&progress->stage);
    wr_buf_fini(&progress->message);
}

struct wr_span
wr_progress_text(struct wr_span stored)
{
    static const char keep[] = "keep=";
    struct wr_span rest = stored, word = take_word(&rest);

    if (word.len < sizeof(keep) || memcmp(word.ptr, keep, sizeof(keep) - 1) != 0)
        return stored;
    for (size_t i = sizeof(keep) - 1; i < word.len; i++) {
        char c = ((const char *)word.ptr)[i];

        if (c < '0' || c > '9')
            return stored;
    }
    return rest;
}

bool
wr_progress_over_read(struct wr_span stored, struct wr_progress_over *out)
{
    *out = (struct wr_progress_over){.text = stored};
    return stored.len > 0 && wr_span_int(take_word(&out->text), &out->until_ms) &&
           wr_span_int(take_word(&out->text), &out->ended_at_ms) &&
           (out->word = take_word(&out->text)).len > 0;
}
