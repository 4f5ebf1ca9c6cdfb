#include "client/listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digits.h"
#include "base/error.h"
#include "base/rand.h"
#include "client/client_internal.h"
#include "redis/server.h"

void
wr_listener_free(struct wr_listener *l)
{
    if (l)
        wr_conn_close(l->conn);
    free(l);
}

void
wr_listener_free_idle(struct weir_client *c)
{
    while (c->listeners) {
        struct wr_listener *l = c->listeners;

        c->listeners = l->next;
        wr_listener_free(l);
    }
}

static struct wr_listener *
take_idle(struct weir_client *c)
{
    struct wr_listener *l;

    pthread_mutex_lock(&c->mu);
    if (c->listeners_owner != getpid()) { /* after fork: they are the parent's */
        wr_listener_free_idle(c);
        c->listeners_owner = getpid();
    }
    l = c->listeners;
    if (l)
        c->listeners = l->next;
    pthread_mutex_unlock(&c->mu);
    return l;
}

void
wr_listener_give(struct weir_client *c, struct wr_listener *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&c->mu);
    l->next = c->listeners;
    c->listeners = l;
    pthread_mutex_unlock(&c->mu);
}

static enum weir_err
subscribe(struct wr_listener *l, int64_t deadline_ms, struct weir_error *err)
{
    struct wr_reply *reply;
    enum weir_err rc;
    unsigned char bytes[8];

    wr_rand_bytes(bytes, sizeof(bytes));
    snprintf(l->channel, sizeof(l->channel),
             "weir:ended:%02x%02x%02x%02x%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2],
             bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]);
    rc = wr_conn_do(l->conn, deadline_ms, &reply, err, "SUBSCRIBE", l->channel,
                    (char *)NULL);
    wr_reply_free(reply);
    return rc;
}

static enum weir_err
listener_open(struct weir_client *c, int64_t deadline_ms, struct wr_listener **out,
              struct weir_error *err)
{
    struct wr_listener *l = calloc(1, sizeof(*l));
    enum weir_err rc;

    *out = NULL;
    if (!l)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "wait");
    rc = wr_server_open(c->server, "weir-wait", deadline_ms, &l->conn, err);
    if (rc == WEIR_OK)
        rc = subscribe(l, deadline_ms, err);
    if (rc != WEIR_OK) {
        wr_listener_free(l);
        return rc;
    }
    *out = l;
    return WEIR_OK;
}

/* Those that broke while they were idle, or may have, are dropped. What they were told
 * meanwhile is of earlier waits. */
enum weir_err
wr_listener_take(struct weir_client *c, int64_t deadline_ms, struct wr_listener **out,
                 struct weir_error *err)
{
    while ((*out = take_idle(c)) != NULL) {
        while (wr_conn_has_reply((*out)->conn) && !wr_conn_is_broken((*out)->conn)) {
            struct wr_reply *old;

            if (wr_conn_recv((*out)->conn, wr_clock_ms(), &old, NULL) == WEIR_OK)
                wr_reply_free(old);
        }
        if (!wr_conn_is_broken((*out)->conn) &&
            wr_conn_idle_ms((*out)->conn) < WR_LISTENER_REFRESH_MS)
            return WEIR_OK;
        wr_listener_free(*out);
    }
    return listener_open(c, deadline_ms, out, err);
}

/* Nothing comes by a connection that a firewall forgot, and nothing says so: it has to
 * answer from one registration to the next. */
bool
wr_listener_is_alive(struct wr_listener *l)
{
    struct wr_span ping[] = {wr_span_str("PING")};

    return !wr_conn_is_broken(l->conn) &&
           wr_conn_idle_ms(l->conn) <
               WR_LISTENER_REFRESH_MS + WR_LISTENER_REFRESH_MS / 2 &&
           wr_conn_send(l->conn, ping, 1, wr_clock_ms() + 1000, NULL) == WEIR_OK;
}

void
wr_listener_begin(struct wr_listener *l, char tag[WR_LISTENER_TAG_MAX])
{
    size_t len = strlen(l->channel);

    l->number++;
    memcpy(tag, l->channel, len);
    tag[len++] = '/';
    len += wr_digits(l->number, tag + len);
    tag[len] = '\0';
}
