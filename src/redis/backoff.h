/* redis/backoff.h - how long to wait before the next try at a server. */
#ifndef WR_REDIS_BACKOFF_H
#define WR_REDIS_BACKOFF_H

#include <stdint.h>

/* Full jitter over min(20 ms * 2^failures, cap_ms); at least 1 ms. */
int64_t wr_backoff_ms(unsigned failures, int64_t cap_ms);
/* Sleeps that long, but not past deadline_ms; returns 0 when the deadline is reached. */
int wr_backoff_sleep(unsigned failures, int64_t cap_ms, int64_t deadline_ms);

#endif
