/*
 * redis/server.h - one server and the pool of connections to it.
 */
#ifndef WR_REDIS_SERVER_H
#define WR_REDIS_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "redis/conn.h"
#include "redis/pool.h"
#include "redis/url.h"

struct wr_server;

/* 0 means the default everywhere. Copied. */
struct wr_server_options {
    struct wr_url url;
    char name[64];                    /* CLIENT SETNAME; default "weir" */
    size_t max_connections;           /* 10 */
    int64_t pool_timeout_ms;          /* 5000 */
    int64_t connect_timeout_ms;       /* 5000 */
    int64_t health_check_interval_ms; /* 30000 */
    /* At most so long (by chance, growing) nothing is tried after a connect that failed:
     * whoever asks meanwhile hears E_CONNECT at once. 0: each call tries. */
    int64_t reconnect_ms;
};

enum weir_err
wr_server_new(const struct wr_server_options *options, struct wr_server **out,
              struct weir_error *err) WEIR_MUST_CHECK;
void wr_server_free(struct wr_server *server); /* NULL is allowed */

/* deadline_ms bounds the whole; pool_timeout_ms and connect_timeout_ms cap their parts.
 */
enum weir_err
wr_server_take(struct wr_server *server, int64_t deadline_ms, struct wr_conn **out,
               struct weir_error *err) WEIR_MUST_CHECK;
void wr_server_give(struct wr_server *server, struct wr_conn *conn);
/* A connection outside the pool, for one that blocks for long; wr_conn_close() it. */
enum weir_err
wr_server_open(struct wr_server *server, const char *name, int64_t deadline_ms,
               struct wr_conn **out, struct weir_error *err) WEIR_MUST_CHECK;
const struct wr_url *wr_server_url(const struct wr_server *server);

#endif
