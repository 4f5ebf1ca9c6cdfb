#include <stdio.h>

#include "base/clock.h"
#include "redis/backoff.h"
#include "redis/conn.h"
#include "store/keys.h"
#include "worker/worker_internal.h"

#define FAILED_MS 500    /* before it is tried again, and up to so much more */
#define FAILED_SPREAD 30 /* the whole of it, not a part that grows */
#define SEND_MS 1000     /* for a few bytes */
#define RECEIVE_MS 500   /* the rest of a reply that has begun */
#define BLOCK_S "10"
#define ANSWER_MS 13000 /* the server's own clock may stand still */

_Static_assert(sizeof((struct wr_hints){0}.key) >= WR_KEY_MAX, "a hint's key");

void
wr_hints_init(struct wr_hints *h, struct wr_server *server, const char *ns,
              const char *worker, int64_t timeout_ms)
{
    *h = (struct wr_hints){.server = server, .timeout_ms = timeout_ms};
    wr_key_hint(h->key, ns, worker);
}

void
wr_hints_close(struct wr_hints *h)
{
    wr_conn_close(h->conn);
    h->conn = NULL;
    h->posted = false;
    h->again_ms = wr_clock_ms() + FAILED_MS + wr_backoff_ms(FAILED_SPREAD, FAILED_MS);
}

void
wr_hints_post(struct wr_hints *h)
{
    struct wr_span argv[] = {wr_span_str("BLPOP"), wr_span_str(h->key),
                             wr_span_str(BLOCK_S)};

    if (h->posted || wr_clock_ms() < h->again_ms)
        return;
    if (!h->conn && wr_server_open(h->server, "weir-hints", wr_clock_ms() + h->timeout_ms,
                                   &h->conn, NULL) != WEIR_OK) {
        wr_hints_close(h);
        return;
    }
    h->posted = wr_conn_send(h->conn, argv, 3, wr_clock_ms() + SEND_MS, NULL) == WEIR_OK;
    h->again_ms = wr_clock_ms() + ANSWER_MS;
    if (!h->posted)
        wr_hints_close(h);
}

int
wr_hints_fd(const struct wr_hints *h)
{
    return h->posted ? wr_conn_fd(h->conn) : -1;
}

bool
wr_hints_take(struct wr_hints *h)
{
    struct wr_reply *reply = NULL;
    bool came;

    if (!h->posted)
        return false;
    if (!wr_conn_has_reply(h->conn)) {
        if (wr_clock_ms() > h->again_ms)
            wr_hints_close(h);
        return false;
    }
    h->posted = false;
    h->again_ms = 0;
    if (wr_conn_recv(h->conn, wr_clock_ms() + RECEIVE_MS, &reply, NULL) != WEIR_OK ||
        wr_reply_kind(reply) == WR_REPLY_ERROR) {
        wr_reply_free(reply);
        wr_hints_close(h);
        return false;
    }
    came = wr_reply_kind(reply) == WR_REPLY_ARRAY;
    wr_reply_free(reply);
    return came;
}
