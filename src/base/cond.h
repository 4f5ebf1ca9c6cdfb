/*
 * base/cond.h - condition variables whose waits end by wr_clock_ms(), whatever becomes of
 * the wall clock.
 */
#ifndef WR_BASE_COND_H
#define WR_BASE_COND_H

#include <pthread.h>
#include <stdint.h>

/* 0, or an errno: with glibc it does not fail. */
int wr_cond_init(pthread_cond_t *cond);
/* As pthread_cond_timedwait(). */
int wr_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mu, int64_t until_ms);

#endif
