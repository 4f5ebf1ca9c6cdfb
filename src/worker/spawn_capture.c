#include "worker/spawn.h"

#define SLACK 4096

void
wr_capture_reset(struct wr_capture *c, size_t head_max, size_t tail_max)
{
    wr_buf_fini(&c->head);
    wr_buf_fini(&c->tail);
    *c = (struct wr_capture){.head_max = head_max, .tail_max = tail_max};
}

void
wr_capture_add(struct wr_capture *c, const char *bytes, size_t len)
{
    size_t head = c->head_max - c->head.len;

    c->bytes += (int64_t)len;
    head = head < len ? head : len;
    wr_buf_add(&c->head, bytes, head);
    bytes += head;
    len -= head;
    if (len > c->tail_max) {
        bytes += len - c->tail_max;
        len = c->tail_max;
    }
    if (len == 0)
        return;
    wr_buf_add(&c->tail, bytes, len);
    if (c->tail.len > 2 * c->tail_max + SLACK) /* seldom: dropping moves the rest */
        wr_buf_drop(&c->tail, c->tail.len - c->tail_max);
}

void
wr_capture_text(struct wr_capture *c, struct wr_buf *out)
{
    int64_t left;

    if (c->tail.len > c->tail_max)
        wr_buf_drop(&c->tail, c->tail.len - c->tail_max);
    left = c->bytes - (int64_t)(c->head.len + c->tail.len);
    wr_buf_add(out, wr_buf_span(&c->head).ptr, c->head.len);
    if (left > 0)
        wr_buf_addf(out, "\n[... %lld bytes left out ...]\n", (long long)left);
    wr_buf_add(out, wr_buf_span(&c->tail).ptr, c->tail.len);
}
