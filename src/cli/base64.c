#include "cli/base64.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                             "0123456789+/";

char *
cli_base64_write(const void *ptr, size_t len)
{
    char *out = cli_alloc((len + 2) / 3 * 4 + 1), *o = out;
    const unsigned char *p = ptr;

    for (size_t i = 0; i < len; i += 3) {
        unsigned a = p[i], b = i + 1 < len ? p[i + 1] : 0, c = i + 2 < len ? p[i + 2] : 0;

        *o++ = digits[a >> 2];
        *o++ = digits[(a & 3) << 4 | b >> 4];
        *o++ = i + 1 < len ? digits[(b & 15) << 2 | c >> 6] : '=';
        *o++ = i + 2 < len ? digits[c & 63] : '=';
    }
    return out;
}

bool
cli_base64_read(const char *text, size_t text_len, void **out, size_t *len)
{
    unsigned char *bytes;
    size_t n = 0, pad = 0;
    unsigned bits = 0;

    *out = NULL;
    if (text_len % 4 != 0)
        return false;
    while (pad < 2 && pad < text_len && text[text_len - 1 - pad] == '=')
        pad++;
    bytes = cli_alloc(text_len / 4 * 3 + 1);
    for (size_t i = 0; i < text_len; i++) {
        const char *at = i < text_len - pad && text[i] != '\0' ? strchr(digits, text[i])
                                                               : NULL;

        if (!at && i < text_len - pad) {
            free(bytes);
            return false;
        }
        bits = bits << 6 | (at ? (unsigned)(at - digits) : 0);
        if (i % 4 == 3) {
            bytes[n++] = (unsigned char)(bits >> 16 & 255);
            bytes[n++] = (unsigned char)(bits >> 8 & 255);
            bytes[n++] = (unsigned char)(bits & 255);
            bits = 0;
        }
    }
    *out = bytes;
    *len = n - pad;
    return true;
}
