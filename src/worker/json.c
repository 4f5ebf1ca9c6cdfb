#include "worker/json.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 512

struct reader {
    const unsigned char *at, *end;
};

static void
skip_blanks(struct reader *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool
take(struct reader *r, char c)
{
    if (r->at == r->end || *r->at != (unsigned char)c)
        return false;
    r->at++;
    return true;
}

static bool
take_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

static bool
take_digits(struct reader *r)
{
    const unsigned char *first = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > first;
}

static bool
take_number(struct reader *r)
{
    (void)take(r, '-');
    if (!take(r, '0') && !take_digits(r))
        return false;
    if (take(r, '.') && !take_digits(r))
        return false;
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '+'))
            (void)take(r, '-');
        return take_digits(r);
    }
    return true;
}

/* The bytes after the first of a UTF-8 sequence; no surrogates, nothing overlong. */
static bool
take_utf8(struct reader *r)
{
    unsigned char first = *r->at++;
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    uint32_t c = first & (0x3fU >> more);
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

    if (first < 0xc2 || first > 0xf4)
        return false;
    for (int i = 0; i < more; i++) {
        if (r->at == r->end || (*r->at & 0xc0) != 0x80)
            return false;
        c = c << 6 | (*r->at++ & 0x3fU);
    }
    return c >= least[more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

static bool
take_escape(struct reader *r)
{
    if (r->at == r->end)
        return false;
    if (*r->at != 'u')
        return strchr("\"\\/bfnrt", *r->at) != NULL && *r->at++ != '\0';
    r->at++;
    for (int i = 0; i < 4; i++, r->at++) {
        if (r->at == r->end || *r->at == '\0' ||
            !strchr("0123456789abcdefABCDEF", *r->at))
            return false;
    }
    return true;
}

static bool
take_string(struct reader *r)
{
    if (!take(r, '"'))
        return false;
    while (r->at < r->end) {
        if (take(r, '"'))
            return true;
        if (take(r, '\\')) {
            if (!take_escape(r))
                return false;
        } else if (*r->at < 0x20) {
            return false;
        } else if (*r->at < 0x80) {
            r->at++;
        } else if (!take_utf8(r)) {
            return false;
        }
    }
    return false;
}

/* A name and its colon. */
static bool
take_name(struct reader *r)
{
    skip_blanks(r);
    if (!take_string(r))
        return false;
    skip_blanks(r);
    return take(r, ':');
}

static bool
take_plain(struct reader *r)
{
    if (r->at == r->end)
        return false;
    switch (*r->at) {
    case '"':
        return take_string(r);
    case 't':
        return take_word(r, "true");
    case 'f':
        return take_word(r, "false");
    case 'n':
        return take_word(r, "null");
    default:
        return take_number(r);
    }
}

/* What follows a value: closes, goes on in its container, or is the end of all. */
static bool
after_value(struct reader *r, const char *closers, int *depth, bool *more)
{
    *more = false;
    while (*depth > 0) {
        skip_blanks(r);
        if (take(r, ',')) {
            *more = true;
            return closers[*depth - 1] == ']' || take_name(r);
        }
        if (!take(r, closers[*depth - 1]))
            return false;
        --*depth;
    }
    return true;
}

/* Opens what begins here as deep as it goes; *whole: it ended in an empty container. */
static bool
open_containers(struct reader *r, char *closers, int *depth, bool *whole)
{
    *whole = false;
    for (;;) {
        bool list;

        skip_blanks(r);
        list = r->at < r->end && *r->at == '[';
        if (!list && !(r->at < r->end && *r->at == '{'))
            return true;
        if (*depth == DEPTH_MAX)
            return false;
        r->at++;
        closers[(*depth)++] = list ? ']' : '}';
        skip_blanks(r);
        if (take(r, closers[*depth - 1])) {
            --*depth;
            *whole = true;
            return true;
        }
        if (!list && !take_name(r))
            return false;
    }
}

bool
wr_json_is_valid(struct wr_span text, size_t *at)
{
    const unsigned char *first = (const unsigned char *)text.ptr;
    struct reader r = {first, first + text.len};
    char closers[DEPTH_MAX];
    bool ok = true, more = true, whole;
    int depth = 0;

    while (ok && more) {
        ok = open_containers(&r, closers, &depth, &whole) && (whole || take_plain(&r)) &&
             after_value(&r, closers, &depth, &more);
    }
    if (ok)
        skip_blanks(&r);
    *at = (size_t)(r.at - first);
    return ok && r.at == r.end;
}
