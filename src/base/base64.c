#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                             "0123456789+/";

void
wr_base64_write(struct wr_buf *out, struct wr_span bytes)
{
    size_t len = (bytes.len + 2) / 3 * 4;
    char *o = wr_buf_room(out, len);
    const unsigned char *p = (const unsigned char *)bytes.ptr;

    if (!o)
        return;
    for (size_t i = 0; i < bytes.len; i += 3) {
        unsigned a = p[i], b = i + 1 < bytes.len ? p[i + 1] : 0,
                 c = i + 2 < bytes.len ? p[i + 2] : 0;

        *o++ = digits[a >> 2];
        *o++ = digits[(a & 3) << 4 | b >> 4];
        *o++ = i + 1 < bytes.len ? digits[(b & 15) << 2 | c >> 6] : '=';
        *o++ = i + 2 < bytes.len ? digits[c & 63] : '=';
    }
    out->len += len;
    out->ptr[out->len] = '\0';
}

/* 0 to 63, or -1. */
static int
value_of(char c)
{
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

bool
wr_base64_read(struct wr_buf *out, struct wr_span text)
{
    const char *from = text.ptr;
    size_t pad = 0, n = 0;
    unsigned bits = 0;
    char *to;

    if (text.len % 4 != 0)
        return false;
    while (pad < 2 && pad < text.len && from[text.len - 1 - pad] == '=')
        pad++;
    to = wr_buf_room(out, text.len / 4 * 3 + 1);
    if (!to)
        return true; /* out->failed says it */
    for (size_t i = 0; i < text.len; i++) {
        int value = i < text.len - pad ? value_of(from[i]) : 0;

        if (value < 0) {
            *to = '\0';
            return false;
        }
        bits = bits << 6 | (unsigned)value;
        if (i % 4 == 3) {
            to[n++] = (char)(bits >> 16 & 255);
            to[n++] = (char)(bits >> 8 & 255);
            to[n++] = (char)(bits & 255);
            bits = 0;
        }
    }
    out->len += n - pad;
    out->ptr[out->len] = '\0';
    return true;
}
