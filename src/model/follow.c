#include "model/follow.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* FNV-1a, 64 bits. It tells deliveries apart that come from one server; it is no secret.
 */
static uint64_t
hash(uint64_t h, const char *text)
{
    do {
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    } while (*text++);
    return h;
}

void
wr_follow_channel(const char *queue, const char *id, const char *token,
                  char out[WR_FOLLOW_CHANNEL_LEN + 1])
{
    uint64_t a = hash(hash(hash(UINT64_C(0xcbf29ce484222325), queue), id), token);
    uint64_t b = hash(hash(hash(a ^ UINT64_C(0x9e3779b97f4a7c15), token), id), queue);

    snprintf(out, WR_FOLLOW_CHANNEL_LEN + 1, "%016" PRIx64 "%016" PRIx64, a, b);
}

void
wr_follow_id(const char *channel, size_t n, char out[21])
{
    snprintf(out, 21, "%.16s-%03zu", channel, n % 1000);
}

void
wr_follow_begin(struct wr_buf *out, const char *channel)
{
    wr_buf_add_str(out, channel);
    wr_buf_add_str(out, "\n");
}

void
wr_follow_write(struct wr_buf *out, const struct wr_follow *f)
{
    const struct wr_span parts[] = {f->queue, f->id, f->head, f->tail, f->unique, f->due};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        wr_buf_addf(out, "%s%zu", i > 0 ? " " : "", parts[i].len);
    wr_buf_add_str(out, "\n");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        wr_buf_add(out, parts[i].ptr, parts[i].len);
    wr_buf_add_str(out, "\n");
}

static struct wr_span
take(struct wr_span *text, size_t len)
{
    struct wr_span part = {text->ptr, len};

    text->ptr = (const char *)text->ptr + len;
    text->len -= len;
    return part;
}

bool
wr_follow_open(struct wr_span *text, struct wr_span *channel)
{
    const char *p = text->ptr;

    if (text->len <= WR_FOLLOW_CHANNEL_LEN || p[WR_FOLLOW_CHANNEL_LEN] != '\n' ||
        strspn(p, "0123456789abcdef") < WR_FOLLOW_CHANNEL_LEN)
        return false;
    *channel = take(text, WR_FOLLOW_CHANNEL_LEN);
    (void)take(text, 1);
    return true;
}

/* A decimal number and the character after it; false if it is none or too large. */
static bool
take_length(struct wr_span *text, char after, size_t *out)
{
    const char *p = text->ptr;
    size_t n = 0, i = 0;

    for (; i < text->len && p[i] >= '0' && p[i] <= '9' && i < 8; i++)
        n = n * 10 + (size_t)(p[i] - '0');
    if (i == 0 || i >= text->len || p[i] != after)
        return false;
    (void)take(text, i + 1);
    *out = n;
    return true;
}

bool
wr_follow_next(struct wr_span *text, struct wr_follow *out)
{
    struct wr_span rest = *text, *parts[] = {&out->queue, &out->id,     &out->head,
                                             &out->tail,  &out->unique, &out->due};
    size_t lens[6], all = 1;

    if (rest.len == 0)
        return false;
    for (size_t i = 0; i < 6; i++) {
        if (!take_length(&rest, i < 5 ? ' ' : '\n', &lens[i]))
            return false;
        all += lens[i];
    }
    if (all > rest.len)
        return false;
    for (size_t i = 0; i < 6; i++)
        *parts[i] = take(&rest, lens[i]);
    if (*(const char *)take(&rest, 1).ptr != '\n')
        return false;
    *text = rest;
    return true;
}

void
wr_then_add(struct wr_buf *out, struct wr_span type, struct wr_span queue)
{
    if (out->len > 0)
        wr_buf_add_str(out, " ");
    wr_text_word_encode(out, type);
    wr_buf_add_str(out, "=");
    wr_text_word_encode(out, queue);
}

bool
wr_then_take(struct wr_span *then, struct wr_buf *type, struct wr_buf *queue)
{
    const char *blank = then->len > 0 ? memchr(then->ptr, ' ', then->len) : NULL;
    struct wr_span word = take(then, blank ? (size_t)(blank - (const char *)then->ptr)
                                           : then->len);
    const char *equals = word.len > 0 ? memchr(word.ptr, '=', word.len) : NULL;
    size_t len = equals ? (size_t)(equals - (const char *)word.ptr) : 0;

    if (blank)
        (void)take(then, 1);
    return equals && wr_text_word_decode(type, (struct wr_span){word.ptr, len}) &&
           wr_text_word_decode(queue, (struct wr_span){equals + 1, word.len - len - 1}) &&
           type->len > 0 && queue->len > 0;
}
