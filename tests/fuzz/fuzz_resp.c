/* The protocol reader with its limits, fed in pieces whose length the input chooses. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "redis/conn.h"
#include "redis/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Touches all that the views show of a reply. */
static size_t
look_at(const struct wr_reply *reply, int depth)
{
    struct wr_span s = wr_reply_span(reply);
    size_t sum = (size_t)wr_reply_int(reply) + wr_reply_is(reply, "OK");

    if (depth > WR_RESP_DEPTH_MAX)
        abort();
    for (size_t i = 0; i < s.len; i++)
        sum += ((const unsigned char *)s.ptr)[i];
    for (size_t i = 0; i < wr_reply_len(reply); i++)
        sum += look_at(wr_reply_at(reply, i), depth + 1);
    if (wr_reply_kind(reply) == WR_REPLY_ERROR) {
        struct weir_error err;

        if (wr_reply_error(reply, &err) == WEIR_OK)
            abort();
    }
    return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    size_t piece = len > 0 ? 1 + bytes[0] : 1;
    struct wr_resp *r = wr_resp_new(65536);
    bool alive = r != NULL;

    for (size_t at = len > 0; at < len && alive; at += piece) {
        struct wr_reply *reply;
        enum wr_resp_state state;

        alive = wr_resp_feed(r, bytes + at, at + piece < len ? piece : len - at);
        while (alive && (state = wr_resp_next(r, &reply)) != WR_RESP_MORE) {
            alive = state == WR_RESP_READY;
            (void)look_at(reply, 0);
            wr_reply_free(reply);
        }
    }
    wr_resp_free(r);
    return 0;
}
