#include "redis/resp.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/text.h"

struct wr_resp {
    redisReader *reader;
    size_t max_bytes;
    size_t pending;  /* fed since the last whole reply */
    size_t elements; /* of all arrays of the reply being read */
    redisReplyObjectFunctions functions, original;
    bool broken;
    bool refused; /* an array was too long or too deep */
    char why[128];
};

/* A struct wr_reply is a redisReply under another name: nobody outside looks in. */
static const redisReply *
in(const struct wr_reply *reply)
{
    return (const redisReply *)(const void *)reply;
}

#define HEAD_MAX (1 + WR_DIGITS_MAX + 2)

static char *
put_head(char *to, char kind, size_t n)
{
    *to++ = kind;
    to += wr_digits(n, to);
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

/* Each command comes by here: room is made once, and written into. */
void
wr_resp_format(struct wr_buf *out, const struct wr_span *argv, size_t argc)
{
    size_t most = HEAD_MAX;
    char *to;

    for (size_t i = 0; i < argc; i++)
        most += HEAD_MAX + argv[i].len + 2;
    to = wr_buf_room(out, most);
    if (!to)
        return;
    to = put_head(to, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        to = put_head(to, '$', argv[i].len);
        if (argv[i].len > 0)
            memcpy(to, argv[i].ptr, argv[i].len);
        to += argv[i].len;
        *to++ = '\r';
        *to++ = '\n';
    }
    *to = '\0';
    out->len = (size_t)(to - out->ptr);
}

/*
 * An array of n elements may begin below task. The memory for its elements is taken
 * before one of them was read, and an element costs ten times its bytes on the wire, so
 * the sum over a reply is bounded too, not only each array.
 */
static bool
may_begin_array(const redisReadTask *task, size_t n)
{
    struct wr_resp *r = task->privdata;
    int depth = 1;

    for (const redisReadTask *t = task->parent; t; t = t->parent)
        depth++;
    if (depth > WR_RESP_DEPTH_MAX || n > WR_RESP_ELEMENTS_MAX - r->elements)
        return false;
    r->elements += n;
    return true;
}

/* NULL is "out of memory" to the reader, which then is broken. */
static void *
#if HIREDIS_MAJOR >= 1
make_array(const redisReadTask *task, size_t elements)
#else
make_array(const redisReadTask *task, int elements)
#endif
{
    struct wr_resp *r = task->privdata;

    if (!may_begin_array(task, (size_t)elements)) {
        r->refused = true;
        return NULL;
    }
    return r->original.createArray(task, elements);
}

struct wr_resp *
wr_resp_new(size_t reply_max_bytes)
{
    struct wr_resp *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->reader = redisReaderCreate();
    if (!r->reader) {
        free(r);
        return NULL;
    }
    r->max_bytes = reply_max_bytes;
    r->reader->privdata = r;
    r->original = *r->reader->fn;
    r->functions = r->original;
    r->functions.createArray = make_array;
    r->reader->fn = &r->functions;
    r->reader->maxbuf = 1 << 20; /* keep a warm buffer between replies of that size */
    return r;
}

void
wr_resp_free(struct wr_resp *r)
{
    if (!r)
        return;
    redisReaderFree(r->reader);
    free(r);
}

static bool
fail(struct wr_resp *r, const char *why)
{
    struct wr_buf text = {0};

    r->broken = true;
    wr_text_escape(&text, wr_span_str(why));
    snprintf(r->why, sizeof(r->why), "%.120s", (const char *)wr_buf_span(&text).ptr);
    wr_buf_fini(&text);
    return false;
}

bool
wr_resp_feed(struct wr_resp *r, const void *bytes, size_t len)
{
    if (r->broken)
        return false;
    r->pending += len;
    if (r->pending > r->max_bytes)
        return fail(r, "a reply longer than allowed");
    if (redisReaderFeed(r->reader, bytes, len) != REDIS_OK)
        return fail(r, r->reader->errstr);
    return true;
}

enum wr_resp_state
wr_resp_next(struct wr_resp *r, struct wr_reply **out)
{
    void *reply = NULL;

    *out = NULL;
    if (r->broken)
        return WR_RESP_BROKEN;
    if (redisReaderGetReply(r->reader, &reply) != REDIS_OK) {
        fail(r, r->refused ? "a reply with more or deeper arrays than allowed"
                           : r->reader->errstr);
        return WR_RESP_BROKEN;
    }
    if (!reply)
        return WR_RESP_MORE;
    r->pending = r->reader->len - r->reader->pos;
    r->elements = 0;
    *out = reply;
    return WR_RESP_READY;
}

const char *
wr_resp_why(const struct wr_resp *r)
{
    return r->why;
}

/* ---- views ---- */

void
wr_reply_free(struct wr_reply *reply)
{
    if (reply)
        freeReplyObject(reply);
}

enum wr_reply_kind
wr_reply_kind(const struct wr_reply *reply)
{
    switch (reply ? in(reply)->type : REDIS_REPLY_NIL) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
        return WR_REPLY_STRING;
    case REDIS_REPLY_INTEGER:
        return WR_REPLY_INTEGER;
    case REDIS_REPLY_ARRAY:
        return WR_REPLY_ARRAY;
    case REDIS_REPLY_ERROR:
        return WR_REPLY_ERROR;
    default:
        return WR_REPLY_NIL;
    }
}

size_t
wr_reply_len(const struct wr_reply *reply)
{
    return wr_reply_kind(reply) == WR_REPLY_ARRAY ? in(reply)->elements : 0;
}

const struct wr_reply *
wr_reply_at(const struct wr_reply *reply, size_t i)
{
    if (i >= wr_reply_len(reply))
        return NULL;
    return (const struct wr_reply *)(const void *)in(reply)->element[i];
}

struct wr_span
wr_reply_span(const struct wr_reply *reply)
{
    enum wr_reply_kind kind = wr_reply_kind(reply);

    if (kind != WR_REPLY_STRING && kind != WR_REPLY_ERROR)
        return (struct wr_span){"", 0};
    return (struct wr_span){in(reply)->str, (size_t)in(reply)->len};
}

int64_t
wr_reply_int(const struct wr_reply *reply)
{
    struct wr_span s;
    char text[24];
    int64_t value;

    if (wr_reply_kind(reply) == WR_REPLY_INTEGER)
        return in(reply)->integer;
    s = wr_reply_span(reply);
    if (s.len == 0 || s.len >= sizeof(text))
        return 0;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return wr_text_int(text, INT64_MIN, INT64_MAX, &value) ? value : 0;
}

void
wr_reply_copy(const struct wr_reply *reply, char *out, size_t cap)
{
    wr_span_copy(wr_reply_span(reply), out, cap);
}

bool
wr_reply_is(const struct wr_reply *reply, const char *word)
{
    struct wr_span s = wr_reply_span(reply);

    return wr_reply_kind(reply) == WR_REPLY_STRING && s.len == strlen(word) &&
           memcmp(s.ptr, word, s.len) == 0;
}
