#include "cli/roster.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/client_internal.h"
#include "redis/conn.h"
#include "redis/server.h"
#include "store/keys.h"

#define WORKERS_MAX 1000
#define TIMEOUT_MS 5000

static void
copy(char *out, size_t cap, struct wr_span text)
{
    snprintf(out, cap, "%.*s", (int)text.len, (const char *)text.ptr);
}

static void
take_field(struct cli_worker *w, const struct wr_reply *name,
           const struct wr_reply *value)
{
    if (wr_reply_is(name, "host"))
        copy(w->host, sizeof(w->host), wr_reply_span(value));
    else if (wr_reply_is(name, "queues"))
        copy(w->queues, sizeof(w->queues), wr_reply_span(value));
    else if (wr_reply_is(name, "pid"))
        w->pid = wr_reply_int(value);
    else if (wr_reply_is(name, "slots"))
        w->slots = wr_reply_int(value);
    else if (wr_reply_is(name, "busy"))
        w->busy = wr_reply_int(value);
    else if (wr_reply_is(name, "processed"))
        w->processed = wr_reply_int(value);
    else if (wr_reply_is(name, "started_at"))
        w->started_at = wr_reply_int(value);
}

static enum weir_err
read_details(struct cli *cli, struct wr_conn *conn, struct cli_worker *w,
             struct weir_error *err)
{
    struct wr_store *store = wr_client_store(cli->client);
    char key[WR_KEY_MAX];
    struct wr_reply *reply;
    enum weir_err rc;

    wr_key_worker(key, wr_store_namespace(store), w->id);
    rc = wr_conn_do(conn, wr_clock_ms() + TIMEOUT_MS, &reply, err, "HGETALL", key, NULL);
    if (rc != WEIR_OK)
        return rc;
    for (size_t i = 0; i + 1 < wr_reply_len(reply); i += 2)
        take_field(w, wr_reply_at(reply, i), wr_reply_at(reply, i + 1));
    wr_reply_free(reply);
    return WEIR_OK;
}

static enum weir_err
read_all_details(struct cli *cli, struct cli_roster *r, struct weir_error *err)
{
    struct wr_server *server = wr_store_server(wr_client_store(cli->client));
    struct wr_conn *conn;
    enum weir_err rc = wr_server_take(server, wr_clock_ms() + TIMEOUT_MS, &conn, err);

    if (rc != WEIR_OK)
        return rc;
    for (size_t i = 0; i < r->n && rc == WEIR_OK; i++)
        rc = read_details(cli, conn, &r->workers[i], err);
    wr_server_give(server, conn);
    return rc;
}

enum weir_err
cli_roster_read(struct cli *cli, bool details, struct cli_roster *out,
                struct weir_error *err)
{
    struct wr_reply *reply;
    enum weir_err rc = wr_store_roster(wr_client_store(cli->client), WORKERS_MAX, &reply,
                                       err);

    *out = (struct cli_roster){0};
    if (rc != WEIR_OK)
        return rc;
    out->now = wr_reply_int(wr_reply_at(reply, 1));
    out->workers = cli_alloc((wr_reply_len(reply) / 2 + 1) * sizeof(*out->workers));
    for (size_t i = 2; i + 1 < wr_reply_len(reply); i += 2) {
        struct cli_worker *w = &out->workers[out->n++];

        copy(w->id, sizeof(w->id), wr_reply_span(wr_reply_at(reply, i)));
        w->silent_ms = out->now - wr_reply_int(wr_reply_at(reply, i + 1));
        out->late += w->silent_ms > CLI_WORKER_LATE_MS;
    }
    wr_reply_free(reply);
    if (details)
        rc = read_all_details(cli, out, err);
    if (rc != WEIR_OK)
        cli_roster_fini(out);
    return rc;
}

void
cli_roster_fini(struct cli_roster *r)
{
    free(r->workers);
    *r = (struct cli_roster){0};
}
