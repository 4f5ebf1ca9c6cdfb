#include "model/output.h"

#include <stdio.h>
#include <string.h>

#define HEAD_MAX 48 /* of a record */

void
wr_output_write(struct wr_buf *out, const struct wr_output_record *r)
{
    char at[48];
    struct wr_span bytes = r->bytes;

    if (r->kind == WR_OUTPUT_AT) {
        bytes.len = (size_t)snprintf(at, sizeof(at), "%lld %lld", (long long)r->position,
                                     (long long)r->lines);
        bytes.ptr = at;
    }
    wr_buf_addf(out, "%c%lld %zu\n", (char)r->kind, (long long)r->ms, bytes.len);
    wr_buf_add(out, bytes.ptr, bytes.len);
}

/* Digits up to `end`, at least one and no more than 15; false: not so. */
static bool
read_number(const char **at, const char *stop, char end, int64_t *out)
{
    const char *p = *at;

    *out = 0;
    while (p < stop && *p >= '0' && *p <= '9' && p - *at < 15)
        *out = *out * 10 + (*p++ - '0');
    if (p == *at || p == stop || *p != end)
        return false;
    *at = p + 1;
    return true;
}

static bool
read_at(struct wr_output_record *r)
{
    char text[48];
    long long bytes, lines;

    if (r->bytes.len >= sizeof(text))
        return false;
    memcpy(text, r->bytes.ptr, r->bytes.len);
    text[r->bytes.len] = '\0';
    if (sscanf(text, "%lld %lld", &bytes, &lines) != 2 || bytes < 0 || lines < 0)
        return false;
    r->position = bytes;
    r->lines = lines;
    r->bytes = (struct wr_span){"", 0};
    return true;
}

bool
wr_output_read(struct wr_span *from, struct wr_output_record *out, bool *damaged)
{
    const char *at = from->ptr, *stop = at + from->len;
    const char *line = from->len > 0
                           ? memchr(at, '\n', from->len < HEAD_MAX ? from->len : HEAD_MAX)
                           : NULL;
    int64_t len;

    *damaged = false;
    if (!line) {
        *damaged = from->len >= HEAD_MAX;
        return false;
    }
    *out = (struct wr_output_record){.kind = (enum wr_output_kind) * at++};
    *damaged = true;
    if ((out->kind != WR_OUTPUT_LINE && out->kind != WR_OUTPUT_PART &&
         out->kind != WR_OUTPUT_AT) ||
        !read_number(&at, line + 1, ' ', &out->ms) ||
        !read_number(&at, line + 1, '\n', &len))
        return false;
    if (len > stop - at) {
        *damaged = false;
        return false;
    }
    out->bytes = (struct wr_span){at, (size_t)len};
    from->ptr = at + len;
    from->len = (size_t)(stop - (at + len));
    if (out->kind == WR_OUTPUT_AT && !read_at(out))
        return false;
    *damaged = false;
    return true;
}
