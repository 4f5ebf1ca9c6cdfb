/*
 * base/clock.h - the clocks of this machine. Deadlines are always monotonic;
 * the wall clock is only for what people read. The clock that decides about
 * jobs is the Redis server's, inside the scripts.
 */
#ifndef WR_BASE_CLOCK_H
#define WR_BASE_CLOCK_H

#include <stdint.h>

int64_t wr_clock_ms(void);      /* CLOCK_MONOTONIC, ms */
int64_t wr_clock_us(void);      /* CLOCK_MONOTONIC, us */
int64_t wr_clock_wall_ms(void); /* CLOCK_REALTIME, ms since 1970 */

#endif
