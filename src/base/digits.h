/*
 * base/digits.h - numbers as decimal digits, where they are written so often that printf
 * would cost more than all else.
 */
#ifndef WR_BASE_DIGITS_H
#define WR_BASE_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#define WR_DIGITS_MAX 20 /* of a uint64_t */

/* Writes those of n, without an end; answers how many. */
static inline size_t
wr_digits(uint64_t n, char out[WR_DIGITS_MAX])
{
    size_t len = 1;

    for (uint64_t rest = n / 10; rest > 0; rest /= 10)
        len++;
    for (size_t i = len; i-- > 0; n /= 10)
        out[i] = (char)('0' + n % 10);
    return len;
}

#endif
