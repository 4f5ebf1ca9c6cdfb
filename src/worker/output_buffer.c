/* What a run printed and nobody has stored yet. */
#include <string.h>

#include "model/output.h"
#include "worker/output.h"

#define OLD_MS 1000 /* what the rate holds back longer is left out */
#define LINE_MS (1000 / WR_OUTPUT_RATE)

static void
pass(struct wr_output_position *at, const struct wr_output_record *r)
{
    if (r->kind == WR_OUTPUT_AT) {
        at->bytes = r->position;
        return;
    }
    at->bytes += (int64_t)r->bytes.len;
    at->lines += r->kind == WR_OUTPUT_LINE;
}

/* The begin of a run is kept apart: it is never left out. */
static void
write_record(struct wr_output_buffer *b, enum wr_output_kind kind, const char *bytes,
             size_t len, int64_t now)
{
    struct wr_output_record r = {.kind = kind, .ms = now, .bytes = {bytes, len}};
    size_t before = b->head.len;

    if (b->free_left <= 0) {
        wr_output_write(&b->ring, &r);
        return;
    }
    wr_output_write(&b->head, &r);
    b->free_left -= (int64_t)(b->head.len - before);
    pass(&b->ring_at, &r);
}

static void
end_line(struct wr_output_buffer *b, enum wr_output_kind kind, int64_t now)
{
    write_record(b, kind, b->line.ptr, b->line.len, now);
    wr_buf_clear(&b->line);
}

/* Leaves out the oldest records until no more than `most` bytes are left, and those that
 * are older than `old`. */
static void
drop_oldest(struct wr_output_buffer *b, size_t most, int64_t old)
{
    struct wr_span left = wr_buf_span(&b->ring);
    struct wr_output_record r;
    bool damaged;
    size_t before = left.len, n = left.len;

    while (wr_output_read(&left, &r, &damaged) && (n > most || r.ms < old)) {
        pass(&b->ring_at, &r);
        n = left.len;
    }
    wr_buf_drop(&b->ring, before - n);
}

static void
add_bytes(struct wr_output_buffer *b, const char *bytes, size_t len, int64_t now)
{
    while (len > 0) {
        const char *newline = memchr(bytes, '\n', len);
        size_t n = newline ? (size_t)(newline - bytes) + 1 : len,
               room = WR_OUTPUT_LINE_MAX - b->line.len;
        bool whole = newline && n <= room;

        n = n < room ? n : room;
        if (whole && b->line.len == 0) {
            write_record(b, WR_OUTPUT_LINE, bytes, n, now);
        } else {
            if (b->line.len == 0)
                b->line_ms = now;
            wr_buf_add(&b->line, bytes, n);
            if (whole)
                end_line(b, WR_OUTPUT_LINE, now);
            else if (b->line.len >= WR_OUTPUT_LINE_MAX)
                end_line(b, WR_OUTPUT_PART, now);
        }
        bytes += n;
        len -= n;
    }
}

void
wr_output_buffer_add(struct wr_output_buffer *b, const char *bytes, size_t len,
                     int64_t left_out, int64_t now)
{
    if (left_out > 0) {
        if (b->line.len > 0)
            end_line(b, WR_OUTPUT_PART, now);
        b->added_bytes += left_out;
        b->free_left = 0;
        wr_output_write(&b->ring, &(struct wr_output_record){.kind = WR_OUTPUT_AT,
                                                             .ms = now,
                                                             .position = b->added_bytes});
    }
    add_bytes(b, bytes, len, now);
    b->added_bytes += (int64_t)len;
    b->added_ms = now;
    if (b->ring.len > 2 * WR_OUTPUT_RING_MAX) /* seldom: it moves the rest */
        drop_oldest(b, WR_OUTPUT_RING_MAX, INT64_MIN);
    if (b->head.failed || b->ring.failed || b->line.failed) { /* out of memory */
        wr_output_buffer_fini(b);
        b->free_left = 0;
        b->ring_at.bytes = b->added_bytes;
    }
}

/* May this record go, by the rate? */
static bool
may_go(struct wr_output_buffer *b, int64_t now)
{
    if (b->rate_ms > now)
        return false;
    b->rate_ms = (b->rate_ms > now - 1000 ? b->rate_ms : now - 1000) + LINE_MS;
    return true;
}

/* A part begins with its position, for what was stored before it may be dropped one day;
 * so does what comes after a gap. */
static void
tell_position(struct wr_output_buffer *b, const struct wr_output_position *at,
              struct wr_buf *part, int64_t now)
{
    if (at->bytes != b->told_bytes || (part->len == 0 && at->bytes > 0))
        wr_output_write(part, &(struct wr_output_record){.kind = WR_OUTPUT_AT,
                                                         .ms = now,
                                                         .position = at->bytes,
                                                         .lines = at->lines});
    b->told_bytes = at->bytes;
}

/* Moves records to part until it is full. True if the rate held some back. */
static bool
move(struct wr_output_buffer *b, struct wr_buf *from, struct wr_output_position *at,
     struct wr_buf *part, bool all, int64_t now)
{
    struct wr_span left = wr_buf_span(from);
    struct wr_output_record r;
    bool held_back = false, damaged;
    size_t taken = 0;

    while (part->len < WR_OUTPUT_PART_MAX) {
        struct wr_span record = left;

        if (!wr_output_read(&left, &r, &damaged))
            break;
        record.len -= left.len;
        held_back = !all && !may_go(b, now);
        if (held_back)
            break;
        taken += record.len;
        if (r.kind != WR_OUTPUT_AT) {
            tell_position(b, at, part, r.ms);
            wr_buf_add(part, record.ptr, record.len);
        }
        pass(at, &r);
        if (r.kind != WR_OUTPUT_AT)
            b->told_bytes = at->bytes;
    }
    wr_buf_drop(from, taken);
    return held_back;
}

bool
wr_output_buffer_take(struct wr_output_buffer *b, struct wr_buf *part, bool ended,
                      int64_t now)
{
    bool all;

    if (b->line.len > 0 && (ended || now - b->line_ms >= WR_OUTPUT_PARTIAL_MS))
        end_line(b, WR_OUTPUT_PART, now);
    (void)move(b, &b->head, &b->head_at, part, true, now);
    if (b->head.len > 0)
        return false;
    if (b->ring.len > WR_OUTPUT_RING_MAX)
        drop_oldest(b, WR_OUTPUT_RING_MAX, INT64_MIN);
    all = ended || b->whole || now - b->added_ms >= WR_OUTPUT_QUIET_MS;
    if (move(b, &b->ring, &b->ring_at, part, all, now))
        drop_oldest(b, SIZE_MAX, now - OLD_MS);
    if (b->ring.len > 0)
        return false;
    b->whole = false;
    if (all && b->told_bytes != b->ring_at.bytes)
        tell_position(b, &b->ring_at, part, now);
    return b->line.len == 0 && b->told_bytes == b->ring_at.bytes;
}

int64_t
wr_output_buffer_due(const struct wr_output_buffer *b)
{
    if (b->head.len > 0 || b->ring.len > 0 || b->told_bytes != b->ring_at.bytes)
        return 0;
    return b->line.len > 0 ? b->line_ms + WR_OUTPUT_PARTIAL_MS : INT64_MAX;
}

void
wr_output_buffer_fini(struct wr_output_buffer *b)
{
    wr_buf_fini(&b->line);
    wr_buf_fini(&b->head);
    wr_buf_fini(&b->ring);
}
