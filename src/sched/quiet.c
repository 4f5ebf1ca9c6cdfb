#include "sched/quiet.h"

/* The same as in lua/both/reclaim.lua. */
#define JUMP_MS 1000

void
wr_quiet_lost(struct wr_quiet *q)
{
    q->contact_us = 0;
}

int64_t
wr_quiet_gap_ms(const struct wr_quiet *q, int64_t now_us)
{
    return q->contact_us == 0 ? -1 : (now_us - q->contact_us) / 1000;
}

bool
wr_quiet_holds(const struct wr_quiet *q, int64_t now_us)
{
    return now_us < q->until_us;
}

/*
 * The gap is counted from start to start. Where a call was slow to be run, the server's
 * time runs ahead of ours, or falls behind at the next contact, and that looks like a
 * step of the clock: as it should, since workers had to wait as well.
 */
static bool
is_steady(const struct wr_quiet *q, int64_t began_us, int64_t server_ms, int64_t lease_ms)
{
    int64_t gap = wr_quiet_gap_ms(q, began_us);
    int64_t jump = server_ms - q->server_ms - gap;

    return gap >= 0 && gap <= lease_ms / 2 && jump >= -JUMP_MS && jump <= JUMP_MS;
}

void
wr_quiet_contact(struct wr_quiet *q, int64_t began_us, int64_t ended_us,
                 int64_t server_ms, int64_t lease_ms)
{
    if (!is_steady(q, began_us, server_ms, lease_ms))
        q->until_us = ended_us + lease_ms * 1000;
    q->contact_us = began_us;
    q->server_ms = server_ms;
}
