/*
 * redis/resp.h - the Redis protocol: the door to hiredis.
 *
 * Only hiredis' reader is used, and only here. hiredis 0.14 has no limits of its own,
 * so replies are bounded by us: total bytes, elements of all arrays of a reply, depth.
 */
#ifndef WR_REDIS_RESP_H
#define WR_REDIS_RESP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"
#include "redis/reply.h"

#define WR_RESP_ELEMENTS_MAX 1048576
#define WR_RESP_DEPTH_MAX 8 /* hiredis 0.14 itself ends at 7 */

/* Appends one command. */
void wr_resp_format(struct wr_buf *out, const struct wr_span *argv, size_t argc);

struct wr_resp;

enum wr_resp_state {
    WR_RESP_READY,  /* *out has a reply */
    WR_RESP_MORE,   /* feed it more bytes */
    WR_RESP_BROKEN, /* not the protocol, too long, or out of memory: wr_resp_why() */
};

struct wr_resp *wr_resp_new(size_t reply_max_bytes); /* NULL: out of memory */
void wr_resp_free(struct wr_resp *resp);
/* Takes bytes from the server. False when broken. */
bool wr_resp_feed(struct wr_resp *resp, const void *bytes, size_t len);
/* The next whole reply; the caller frees it. */
enum wr_resp_state wr_resp_next(struct wr_resp *resp, struct wr_reply **out);
const char *wr_resp_why(const struct wr_resp *resp);

#endif
