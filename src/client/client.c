#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "client/client_internal.h"
#include "client/listener.h"
#include "redis/conn.h"
#include "redis/server.h"

/* Options of an older program are shorter; what it does not know is 0. */
static struct weir_client_options
known_options(const struct weir_client_options *given)
{
    struct weir_client_options o = {0};
    size_t size = given ? given->struct_size : 0;

    if (given)
        memcpy(&o, given, size < sizeof(o) ? size : sizeof(o));
    return o;
}

static enum weir_err
fill_server(const struct weir_client_options *o, struct wr_server_options *out,
            struct weir_error *err)
{
    const char *url = o->url ? o->url : wr_env_url();
    enum weir_err rc = wr_url_parse(url, &out->url, err);

    if (rc != WEIR_OK)
        return rc;
    if (o->password) {
        if (strlen(o->password) >= sizeof(out->url.password))
            return wr_fail(err, WEIR_E_ARG, 0, "password: longer than %zu bytes",
                           sizeof(out->url.password) - 1);
        snprintf(out->url.password, sizeof(out->url.password), "%s", o->password);
    }
    snprintf(out->name, sizeof(out->name), "%s", o->name ? o->name : "weir");
    out->max_connections = o->max_connections;
    out->pool_timeout_ms = o->pool_timeout_ms;
    out->connect_timeout_ms = o->connect_timeout_ms;
    out->health_check_interval_ms = o->health_check_interval_ms;
    return WEIR_OK;
}

/* A first connection, and a script with a header that only servers weir can use accept.
 */
static enum weir_err
probe(struct weir_client *c, int64_t connect_timeout_ms, struct weir_error *err)
{
    struct wr_conn *conn;
    enum weir_err rc;

    rc = wr_server_take(c->server, wr_clock_ms() + connect_timeout_ms, &conn, err);
    if (rc != WEIR_OK)
        return rc;
    wr_server_give(c->server, conn);
    return wr_store_each_queue(c->store, NULL, NULL, err);
}

enum weir_err
weir_client_open(const struct weir_client_options *options, struct weir_client **out,
                 struct weir_error *err)
{
    struct weir_client_options o = known_options(options);
    struct wr_server_options server = {0};
    struct wr_store_options store = {.command_timeout_ms = o.command_timeout_ms};
    struct weir_client *c;
    enum weir_err rc = fill_server(&o, &server, err);

    *out = NULL;
    if (rc != WEIR_OK)
        return rc;
    c = calloc(1, sizeof(*c));
    if (!c || pthread_mutex_init(&c->mu, NULL) != 0) {
        free(c);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "client");
    }
    c->owner = getpid();
    rc = wr_server_new(&server, &c->server, err);
    wr_url_wipe(&server.url);
    store.server = c->server;
    store.ns = o.name_space ? o.name_space : wr_env_namespace();
    store.engine = o.engine;
    if (rc == WEIR_OK)
        rc = wr_store_new(&store, &c->store, err);
    if (rc == WEIR_OK)
        rc = probe(c, o.connect_timeout_ms > 0 ? o.connect_timeout_ms : 5000, err);
    if (rc != WEIR_OK) {
        weir_client_close(c);
        return rc;
    }
    *out = c;
    return WEIR_OK;
}

void
weir_client_close(struct weir_client *c)
{
    if (!c)
        return;
    while (c->slots) {
        struct wr_call_slot *s = c->slots;

        c->slots = s->next;
        if (c->owner == getpid())
            wr_store_farewell(c->store, s->queue, &s->channel, 1);
        free(s);
    }
    wr_listener_free_idle(c);
    wr_store_free(c->store);
    wr_server_free(c->server);
    pthread_mutex_destroy(&c->mu);
    free(c);
}

struct wr_store *
wr_client_store(struct weir_client *c)
{
    return c->store;
}

enum weir_err
wr_client_queue(struct weir_client *c, const char *queue, struct wr_queue **out,
                struct weir_error *err)
{
    return wr_store_queue(c->store, queue ? queue : "default", out, err);
}

struct find {
    struct weir_client *client;
    struct wr_span id;
    bool over; /* also one that is over, if its progress is kept */
    struct wr_queue *found;
    enum weir_err rc; /* of the last look */
    struct weir_error *err;
};

static bool
look_in(const char *name, void *context)
{
    struct find *f = context;
    struct wr_queue *queue;
    struct wr_reply *reply;

    f->rc = wr_store_queue(f->client->store, name, &queue, f->err);
    if (f->rc != WEIR_OK)
        return false;
    if (f->over)
        f->rc = wr_store_inspect_over(f->client->store, queue, f->id, &reply, f->err);
    else
        f->rc = wr_store_inspect(f->client->store, queue, f->id, 0, &reply, f->err);
    wr_reply_free(reply);
    if (f->rc == WEIR_OK)
        f->found = queue;
    return f->rc == WEIR_E_NO_JOB || f->rc == WEIR_E_NO_QUEUE;
}

static enum weir_err
find(struct weir_client *c, const char *queue, const char *id, bool over,
     struct wr_queue **out, struct weir_error *err)
{
    struct find f = {.client = c, .id = wr_span_str(id), .over = over, .err = err};
    enum weir_err rc;

    if (!wr_text_is_job_id(f.id))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "job id: 1 to 255 bytes, no control characters");
    if (queue)
        return wr_store_queue(c->store, queue, out, err);
    rc = wr_store_each_queue(c->store, look_in, &f, err);
    *out = f.found;
    if (rc != WEIR_OK || f.found)
        return rc;
    if (f.rc == WEIR_OK || f.rc == WEIR_E_NO_JOB || f.rc == WEIR_E_NO_QUEUE)
        return wr_fail(err, WEIR_E_NO_JOB, 0, "no such job in any queue of namespace %s",
                       wr_store_namespace(c->store));
    return f.rc;
}

enum weir_err
wr_client_find(struct weir_client *c, const char *queue, const char *id,
               struct wr_queue **out, struct weir_error *err)
{
    return find(c, queue, id, false, out, err);
}

enum weir_err
wr_client_find_over(struct weir_client *c, const char *queue, const char *id,
                    struct wr_queue **out, struct weir_error *err)
{
    enum weir_err rc = find(c, queue, id, false, out, err);

    return rc == WEIR_E_NO_JOB && !queue ? find(c, queue, id, true, out, err) : rc;
}
