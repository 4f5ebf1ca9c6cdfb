#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"

void
wr_buf_fini(struct wr_buf *b)
{
    free(b->ptr);
    *b = (struct wr_buf){0};
}

void
wr_buf_clear(struct wr_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->ptr)
        b->ptr[0] = '\0';
}

char *
wr_buf_room(struct wr_buf *b, size_t len)
{
    size_t need, cap = b->cap ? b->cap : 64;
    char *ptr;

    if (b->failed || __builtin_add_overflow(b->len, len, &need) || need >= SIZE_MAX / 4) {
        b->failed = true;
        return NULL;
    }
    need++; /* the NUL */
    if (need <= b->cap)
        return b->ptr + b->len;
    while (cap < need)
        cap *= 2;
    ptr = realloc(b->ptr, cap);
    if (!ptr) {
        b->failed = true;
        return NULL;
    }
    b->ptr = ptr;
    b->cap = cap;
    return b->ptr + b->len;
}

void
wr_buf_add(struct wr_buf *b, const void *ptr, size_t len)
{
    char *to = wr_buf_room(b, len);

    if (!to)
        return;
    if (len > 0)
        memcpy(to, ptr, len);
    b->len += len;
    b->ptr[b->len] = '\0';
}

void
wr_buf_add_str(struct wr_buf *b, const char *str)
{
    wr_buf_add(b, str, strlen(str));
}

void
wr_buf_add_number(struct wr_buf *b, uint64_t number)
{
    char digits[WR_DIGITS_MAX];

    wr_buf_add(b, digits, wr_digits(number, digits));
}

void
wr_buf_addf(struct wr_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    int len;
    char *to;

    va_start(ap, fmt);
    va_copy(again, ap);
    len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    to = len < 0 ? NULL : wr_buf_room(b, (size_t)len);
    if (to) {
        vsnprintf(to, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    }
    va_end(again);
}

void
wr_buf_drop(struct wr_buf *b, size_t len)
{
    if (len == 0)
        return;
    if (len > b->len)
        len = b->len;
    memmove(b->ptr, b->ptr + len, b->len - len);
    b->len -= len;
    b->ptr[b->len] = '\0';
}
