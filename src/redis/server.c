#include "redis/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/backoff.h"

/* A dead peer must not use up the time in which a new connection could be opened. */
#define PING_MAX_MS 1000

struct wr_server {
    struct wr_server_options o; /* never written after new */
    struct wr_pool *pool;
    _Atomic int64_t closed_until_ms; /* reconnect_ms */
    _Atomic unsigned failures;
    pthread_mutex_t mu; /* of closed_by alone; held for a copy */
    struct weir_error closed_by;
};

static int64_t
sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Why it was closed: the same again, so that it is said whichever call comes first. */
static enum weir_err
say_closed(struct wr_server *s, struct weir_error *err)
{
    pthread_mutex_lock(&s->mu);
    if (err)
        *err = s->closed_by;
    pthread_mutex_unlock(&s->mu);
    return WEIR_E_CONNECT;
}

static void
close_for_a_while(struct wr_server *s, const struct weir_error *why)
{
    pthread_mutex_lock(&s->mu);
    s->closed_by = *why;
    s->closed_by.code = WEIR_E_CONNECT; /* it was not tried: certainly not done */
    pthread_mutex_unlock(&s->mu);
    atomic_store(&s->closed_until_ms,
                 wr_clock_ms() +
                     wr_backoff_ms(atomic_fetch_add(&s->failures, 1), s->o.reconnect_ms));
}

enum weir_err
wr_server_open(struct wr_server *s, const char *name, int64_t deadline_ms,
               struct wr_conn **out, struct weir_error *err)
{
    struct wr_conn_options o = {.url = &s->o.url, .name = name ? name : s->o.name};
    struct weir_error why = {0};
    enum weir_err rc;

    *out = NULL;
    if (wr_clock_ms() < atomic_load(&s->closed_until_ms))
        return say_closed(s, err);
    rc = wr_conn_open(&o, sooner(deadline_ms, wr_clock_ms() + s->o.connect_timeout_ms),
                      out, &why);
    if (rc == WEIR_OK)
        atomic_store(&s->failures, 0);
    else if (s->o.reconnect_ms > 0)
        close_for_a_while(s, &why);
    if (rc != WEIR_OK && err)
        *err = why;
    return rc;
}

static enum weir_err
pool_open(void *ctx, int64_t deadline_ms, struct wr_conn **out, struct weir_error *err)
{
    return wr_server_open(ctx, NULL, deadline_ms, out, err);
}

static bool
pool_is_healthy(void *ctx, struct wr_conn *conn, int64_t deadline_ms)
{
    struct wr_server *s = ctx;
    int64_t now = wr_clock_ms(), ping_ms = sooner(PING_MAX_MS, (deadline_ms - now) / 2);
    struct wr_reply *reply;
    bool ok;

    /* An idle connection has nothing to say: a reply, or the end, is a bad sign. */
    if (wr_conn_is_broken(conn) || wr_conn_has_reply(conn))
        return false;
    if (wr_conn_idle_ms(conn) < s->o.health_check_interval_ms)
        return true;
    ok = wr_conn_do(conn, now + ping_ms, &reply, NULL, "PING", (char *)NULL) == WEIR_OK;
    wr_reply_free(reply);
    return ok;
}

static const struct wr_pool_ops pool_ops = {
    .open = pool_open,
    .is_healthy = pool_is_healthy,
    .owner = wr_conn_owner,
    .close = wr_conn_close,
    .abandon = wr_conn_abandon,
};

enum weir_err
wr_server_new(const struct wr_server_options *options, struct wr_server **out,
              struct weir_error *err)
{
    struct wr_server *s = calloc(1, sizeof(*s));
    enum weir_err rc;

    *out = NULL;
    if (!s)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "server");
    pthread_mutex_init(&s->mu, NULL);
    s->o = *options;
    if (s->o.name[0] == '\0')
        snprintf(s->o.name, sizeof(s->o.name), "weir");
    if (s->o.max_connections == 0)
        s->o.max_connections = 10;
    if (s->o.pool_timeout_ms <= 0)
        s->o.pool_timeout_ms = 5000;
    if (s->o.connect_timeout_ms <= 0)
        s->o.connect_timeout_ms = 5000;
    if (s->o.health_check_interval_ms <= 0)
        s->o.health_check_interval_ms = 30000;
    rc = wr_pool_new(&pool_ops, s, s->o.max_connections, &s->pool);
    if (rc != WEIR_OK) {
        pthread_mutex_destroy(&s->mu);
        free(s);
        return wr_fail(err, rc, 0, "a pool of connections");
    }
    *out = s;
    return WEIR_OK;
}

void
wr_server_free(struct wr_server *s)
{
    if (!s)
        return;
    wr_pool_free(s->pool);
    wr_url_wipe(&s->o.url);
    pthread_mutex_destroy(&s->mu);
    free(s);
}

enum weir_err
wr_server_take(struct wr_server *s, int64_t deadline_ms, struct wr_conn **out,
               struct weir_error *err)
{
    return wr_pool_take(s->pool,
                        sooner(deadline_ms, wr_clock_ms() + s->o.pool_timeout_ms),
                        deadline_ms, out, err);
}

void
wr_server_give(struct wr_server *s, struct wr_conn *conn)
{
    /* A reply that nobody read would be taken for the answer to the next command. */
    bool usable = !wr_conn_is_broken(conn) && wr_conn_is_idle(conn);

    wr_pool_give(s->pool, conn, usable ? WR_GIVE_CLEAN : WR_GIVE_BROKEN);
}

const struct wr_url *
wr_server_url(const struct wr_server *s)
{
    return &s->o.url;
}
