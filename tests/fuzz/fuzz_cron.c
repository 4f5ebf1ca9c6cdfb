/* A schedule as a stranger writes it: read or refused; its times rise and are found fast.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cron/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
must(bool holds)
{
    if (!holds)
        abort();
}

static void
follow(const struct wr_schedule *s, const struct wr_zone *z, int64_t at)
{
    int64_t passed[4], more, first = wr_schedule_next(s, z, at);

    for (int i = 0; i < 20; i++) {
        int64_t next = wr_schedule_next(s, z, at);

        must(next == -1 || (next > at && next <= WR_TIME_MAX_MS && next % 1000 == 0) ||
             s->every_ms > 0);
        if (next < 0)
            return;
        at = next;
    }
    must(wr_schedule_passed(s, z, first, at, passed, 4, &more) == 4);
    must(passed[3] == at && more == 16);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct wr_zone *zones[2];
    struct wr_schedule s;
    struct weir_error err;
    char spec[300], text[600];

    if (!zones[0] && (wr_zone_open("Europe/Berlin", &zones[0], NULL) != WEIR_OK ||
                      wr_zone_open("Australia/Lord_Howe", &zones[1], NULL) != WEIR_OK))
        abort();
    len = len < sizeof(spec) - 1 ? len : sizeof(spec) - 1;
    if (len > 0)
        memcpy(spec, bytes, len);
    spec[len] = '\0';
    if (wr_schedule_parse(spec, &s, &err) != WEIR_OK)
        return 0;
    wr_schedule_warn(&s, text, sizeof(text));
    for (int i = 0; i < 2; i++) {
        follow(&s, zones[i], INT64_C(1774663200000));
        (void)wr_schedule_next(&s, zones[i], WR_TIME_MAX_MS - 86400000);
    }
    return 0;
}
