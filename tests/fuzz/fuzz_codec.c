/*
 * Reaches model/codec.c (records and states) and the words of base/text.c.
 *
 * What can be read must be written again and read back as the same; everything else must
 * be refused. Build with clang and -DWEIR_FUZZ=ON.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
    if (!holds)
        abort();
}

static bool
same(struct wr_span a, struct wr_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static void
round_trip(const struct wr_record *r)
{
    struct wr_buf head = {0}, tail = {0};
    struct wr_record again;
    int version;

    if (wr_record_write(r, &head, &tail)) {
        wr_buf_addf(&head, " %lld", (long long)r->enqueued_at_ms);
        wr_buf_add(&head, tail.ptr, tail.len);
        must(wr_record_read(wr_buf_span(&head), &again, &version));
        must(same(again.type, r->type) && same(again.unique, r->unique) &&
             same(again.backoff, r->backoff) && same(again.meta, r->meta) &&
             same(again.payload, r->payload));
        must(again.keep_ms == r->keep_ms && again.max_retry == r->max_retry &&
             again.expires_ms == r->expires_ms && again.timeout_ms == r->timeout_ms &&
             again.max_deliveries == r->max_deliveries &&
             again.enqueued_at_ms == r->enqueued_at_ms);
        wr_record_fini(&again);
    }
    wr_buf_fini(&head);
    wr_buf_fini(&tail);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wr_span text = {data, size};
    struct wr_buf value = {0};
    struct wr_job_state state;
    struct wr_record r;
    int version;

    if (wr_record_read(text, &r, &version)) {
        must(version == WR_FORMAT_VERSION && r.keep_ms >= 0 && r.max_retry >= 0);
        (void)wr_record_meta(&r, "trace", &value);
        round_trip(&r);
    }
    wr_record_fini(&r);
    if (wr_job_state_read(text, &state))
        must(strlen(state.token) < sizeof(state.token) && state.deliveries >= 0 &&
             state.progress.len <= size);
    wr_buf_fini(&value);
    return 0;
}
