/* A cron entry as it might stand in Redis, changed by hand: refused, or read, written and
 * read back as the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
must(bool holds)
{
    if (!holds)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct wr_span all = {len > 0 ? (const void *)bytes : "", len};
    struct wr_buf text = {0};
    struct wr_entry e, again;

    (void)wr_entry_is_name(all);
    if (!wr_entry_read(all, &e))
        return 0;
    must(e.cap >= 1 && e.cap <= WR_CAP_MAX && e.due_ms >= -1 && e.spec[0] && e.zone[0]);
    wr_buf_add_str(&text, "1 2 - - 0 0 0 -\n");
    wr_entry_write(&e, e.record, (struct wr_span){"", 0}, &text);
    must(wr_entry_read(wr_buf_span(&text), &again));
    must(strcmp(again.spec, e.spec) == 0 && strcmp(again.zone, e.zone) == 0);
    must(again.missed == e.missed && again.overlap == e.overlap && again.cap == e.cap &&
         again.grace_ms == e.grace_ms && again.jitter_ms == e.jitter_ms &&
         again.window_ms == e.window_ms && again.record.len == e.record.len);
    wr_buf_fini(&text);
    return 0;
}
