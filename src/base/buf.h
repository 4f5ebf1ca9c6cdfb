/*
 * base/buf.h - bytes that grow.
 *
 * A struct wr_buf is a value: initialise with {0}, end with wr_buf_fini().
 * When memory runs out the buffer keeps what it has, `failed` is set and stays
 * set, so a writer may append many times and check once.
 */
#ifndef WR_BASE_BUF_H
#define WR_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>

#include "base/span.h"

struct wr_buf {
    char *ptr; /* NUL after len whenever ptr is not NULL */
    size_t len, cap;
    bool failed;
};

void wr_buf_fini(struct wr_buf *buf);
void wr_buf_clear(struct wr_buf *buf); /* keeps the memory; clears `failed` */
void wr_buf_add(struct wr_buf *buf, const void *ptr, size_t len);
void wr_buf_add_str(struct wr_buf *buf, const char *str);
void wr_buf_add_number(struct wr_buf *buf, uint64_t number);
void wr_buf_addf(struct wr_buf *buf, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Makes room for len more bytes and returns where they go; NULL when out of
 * memory. The caller adds what it wrote to buf->len. */
char *wr_buf_room(struct wr_buf *buf, size_t len);
void wr_buf_drop(struct wr_buf *buf, size_t len); /* forgets the first len bytes */

static inline struct wr_span
wr_buf_span(const struct wr_buf *buf)
{
    return (struct wr_span){buf->ptr ? buf->ptr : "", buf->len};
}

#endif
