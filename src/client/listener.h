/*
 * client/listener.h - connections that hear of ends of jobs, each on a channel of its
 * own; private to client/. They are kept for the next wait: a stack, since few threads
 * wait at a time.
 */
#ifndef WR_CLIENT_LISTENER_H
#define WR_CLIENT_LISTENER_H

#include <weir/client.h>

#include "base/digits.h"
#include "redis/conn.h"

/* Registered again so often: a lost message costs so much. */
#define WR_LISTENER_REFRESH_MS 10000
#define WR_LISTENER_CHANNEL_MAX 32
#define WR_LISTENER_TAG_MAX (WR_LISTENER_CHANNEL_MAX + WR_DIGITS_MAX + 1)

struct wr_listener {
    struct wr_listener *next;
    struct wr_conn *conn;
    char channel[WR_LISTENER_CHANNEL_MAX];
    uint64_t number; /* of the last wait */
};

/* One that works, idle or new. */
enum weir_err
wr_listener_take(struct weir_client *client, int64_t deadline_ms,
                 struct wr_listener **out, struct weir_error *err) WEIR_MUST_CHECK;
/* NULL is allowed. */
void wr_listener_give(struct weir_client *client, struct wr_listener *listener);
void wr_listener_free(struct wr_listener *listener); /* or NULL */
void wr_listener_free_idle(struct weir_client *client);
/* Of a wait that goes on: it has to answer from one registration to the next. */
bool wr_listener_is_alive(struct wr_listener *listener);
/* A new wait. tag: "CHANNEL/NUMBER", by which the script that ends a job finds it. */
void wr_listener_begin(struct wr_listener *listener, char tag[WR_LISTENER_TAG_MAX]);

#endif
