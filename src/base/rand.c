#include "base/rand.h"

#include <errno.h>
#include <sys/random.h>

#include "base/assert.h"

void
wr_rand_bytes(void *out, size_t len)
{
    char *at = out;

    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);

        if (n < 0) {
            WR_ASSERT(errno == EINTR); /* the kernel has no other answer for this call */
            continue;
        }
        at += n;
        len -= (size_t)n;
    }
}

uint64_t
wr_rand_below(uint64_t limit)
{
    uint64_t value, bound = UINT64_MAX - UINT64_MAX % limit;

    do
        wr_rand_bytes(&value, sizeof(value));
    while (value >= bound);
    return value % limit;
}
