#include "redis/backoff.h"

#include <poll.h>

#include "base/clock.h"
#include "base/rand.h"

#define FIRST_MS 20

int64_t
wr_backoff_ms(unsigned failures, int64_t cap_ms)
{
    int64_t limit = cap_ms;

    if (failures < 30 && (INT64_C(1) << failures) * FIRST_MS < cap_ms)
        limit = (INT64_C(1) << failures) * FIRST_MS;
    if (limit < 1)
        limit = 1;
    return 1 + (int64_t)wr_rand_below((uint64_t)limit);
}

int
wr_backoff_sleep(unsigned failures, int64_t cap_ms, int64_t deadline_ms)
{
    int64_t nap = wr_backoff_ms(failures, cap_ms), left = deadline_ms - wr_clock_ms();

    if (left <= 0)
        return 0;
    poll(NULL, 0, (int)(nap < left ? nap : left));
    return 1;
}
