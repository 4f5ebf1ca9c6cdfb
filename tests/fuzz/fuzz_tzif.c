/* A zone file with any bytes: refused, or a zone whose spans join without a hole. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "cron/schedule.h"

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
    struct wr_schedule s;
    struct wr_zone *z;
    int64_t t = INT64_C(1704067200), at = t * 1000;

    if (wr_zone_read(len > 0 ? (const void *)bytes : "", len, &z, NULL) != WEIR_OK)
        return 0;
    for (int i = 0; i < 40; i++) {
        struct wr_zone_span span = wr_zone_at(z, t);

        must(span.from <= t && t < span.until);
        if (span.until == INT64_MAX || span.until > INT64_C(1) << 40)
            break;
        t = span.until;
    }
    must(wr_schedule_parse("30 2 * * *", &s, NULL) == WEIR_OK);
    for (int i = 0; i < 40 && at >= 0; i++) {
        int64_t next = wr_schedule_next(&s, z, at);

        must(next == -1 || next > at);
        at = next;
    }
    wr_zone_free(z);
    return 0;
}
