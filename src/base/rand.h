/* base/rand.h - random bytes from the kernel: right after fork and in clones. */
#ifndef WR_BASE_RAND_H
#define WR_BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

void wr_rand_bytes(void *out, size_t len);
uint64_t wr_rand_below(uint64_t limit); /* 0 .. limit-1, unbiased; limit > 0 */

#endif
