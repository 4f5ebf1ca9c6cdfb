/*
 * redis/reply.h - typed views of one reply.
 *
 * A struct wr_reply is owned by whoever received it: wr_reply_free(). Spans and
 * children live as long as the reply they come from. The views never fail:
 * asked for what is not there they answer empty, 0 or NULL, and the caller
 * checks the shape with wr_reply_kind() and wr_reply_len() where it matters.
 */
#ifndef WR_REDIS_REPLY_H
#define WR_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum wr_reply_kind {
    WR_REPLY_NIL,
    WR_REPLY_STRING, /* bulk or simple string */
    WR_REPLY_INTEGER,
    WR_REPLY_ARRAY,
    WR_REPLY_ERROR,
};

struct wr_reply;

void wr_reply_free(struct wr_reply *reply); /* NULL is allowed */
enum wr_reply_kind wr_reply_kind(const struct wr_reply *reply);
size_t wr_reply_len(const struct wr_reply *reply); /* elements of an array, else 0 */
const struct wr_reply *wr_reply_at(const struct wr_reply *reply, size_t i);
struct wr_span wr_reply_span(const struct wr_reply *reply); /* string or error text */
/* The string, cut to what fits. */
void wr_reply_copy(const struct wr_reply *reply, char *out, size_t cap);
/* An integer, or a string that is a decimal integer; else 0. */
int64_t wr_reply_int(const struct wr_reply *reply);
bool
wr_reply_is(const struct wr_reply *reply, const char *word); /* a string equal to word */

#endif
