/* What stands in Redis of a job's output and of its runs, as anybody may have written it;
 * and output in pieces of any size through the buffer of its run. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/attempt.h"
#include "model/output.h"
#include "worker/output.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
must(bool holds)
{
    if (!holds)
        abort();
}

/* Whatever is read is part of what was given, and is written as it was read. */
static void
read_records(struct wr_span all)
{
    struct wr_output_record r, again;
    struct wr_span left = all, copy;
    struct wr_buf text = {0};
    bool damaged;

    while (wr_output_read(&left, &r, &damaged)) {
        must(!damaged && left.len < all.len);
        must(r.bytes.len <= all.len);
        wr_buf_clear(&text);
        wr_output_write(&text, &r);
        copy = wr_buf_span(&text);
        must(wr_output_read(&copy, &again, &damaged) && copy.len == 0);
        must(again.kind == r.kind && again.ms == r.ms && again.position == r.position &&
             again.bytes.len == r.bytes.len);
    }
    wr_buf_fini(&text);
}

static void
read_attempts(struct wr_span all)
{
    struct wr_attempt a;
    struct wr_span left = all;
    struct wr_buf facts = {0};

    while (wr_attempt_read(&left, &a)) {
        must(left.len < all.len || all.len == 0);
        must(a.outcome.len + a.worker.len + a.text.len <= all.len);
        wr_buf_clear(&facts);
        wr_attempt_write_facts(&facts, &a);
        must(memchr(wr_buf_span(&facts).ptr, ' ', facts.len) == NULL);
    }
    wr_buf_fini(&facts);
}

/* One part, as a reader counts it: *at is how much was printed before what comes next. */
static void
read_part(struct wr_buf *part, const uint8_t *bytes, size_t len, size_t *at)
{
    struct wr_span left = wr_buf_span(part);
    struct wr_output_record r;
    bool damaged;

    while (wr_output_read(&left, &r, &damaged)) {
        if (r.kind == WR_OUTPUT_AT) {
            must(r.position >= (int64_t)*at && r.position <= (int64_t)len);
            *at = (size_t)r.position;
            continue;
        }
        must(r.bytes.len <= len - *at &&
             memcmp(bytes + *at, r.bytes.ptr, r.bytes.len) == 0);
        *at += r.bytes.len;
    }
    must(left.len == 0);
    wr_buf_clear(part);
}

/* Bytes go in and come out the same, but for what is told to be left out. */
static void
through_buffer(const uint8_t *bytes, size_t len)
{
    struct wr_output_buffer b = {.free_left = len > 0 ? bytes[0] : 0};
    struct wr_buf part = {0};
    int64_t now = 0;
    size_t seen = 0;
    bool empty = false;

    for (size_t at = 0; at < len;) {
        size_t n = bytes[at] % 37U + 1U;

        n = n < len - at ? n : len - at;
        wr_output_buffer_add(&b, (const char *)bytes + at, n, 0, now);
        at += n;
        now += bytes[at - 1];
        if (bytes[at - 1] % 3 == 0) {
            (void)wr_output_buffer_take(&b, &part, false, now);
            read_part(&part, bytes, len, &seen);
        }
    }
    for (size_t i = 0; i <= len && !empty; i++) {
        empty = wr_output_buffer_take(&b, &part, true, now);
        read_part(&part, bytes, len, &seen);
    }
    must((empty || len == 0) && seen == len);
    wr_output_buffer_fini(&b);
    wr_buf_fini(&part);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct wr_span all = {len > 0 ? (const void *)bytes : "", len};

    read_records(all);
    read_attempts(all);
    through_buffer(bytes, len);
    return 0;
}
