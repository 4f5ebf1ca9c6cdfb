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
copy_long(char **out, struct wr_span text)
{
    free(*out);
    *out = cli_alloc(text.len + 1);
    memcpy(*out, text.ptr, text.len);
}

/* Fields of newer workers are left out. */
static void
take_field(struct cli_worker *w, const struct wr_reply *name,
           const struct wr_reply *value)
{
    const struct {
        const char *name;
        char *text;
        size_t cap;
    } texts[] = {{"host", w->host, sizeof(w->host)},
                 {"state", w->mode, sizeof(w->mode)},
                 {"version", w->version, sizeof(w->version)},
                 {"boot", w->boot, sizeof(w->boot)},
                 {"broken", w->broken, sizeof(w->broken)},
                 {"order", w->order, sizeof(w->order)},
                 {"order_by", w->order_by, sizeof(w->order_by)}};
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {{"protocol", &w->protocol},
                   {"pid", &w->pid},
                   {"children", &w->children},
                   {"slots", &w->slots},
                   {"busy", &w->busy},
                   {"processed", &w->processed},
                   {"failed", &w->failed},
                   {"rss", &w->rss},
                   {"started_at", &w->started_at},
                   {"contact_ms", &w->contact_ms},
                   {"order_at", &w->order_at},
                   {"order_grace", &w->order_grace},
                   {"job_timeout", &w->job_timeout}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (wr_reply_is(name, texts[i].name))
            copy(texts[i].text, texts[i].cap, wr_reply_span(value));
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (wr_reply_is(name, numbers[i].name))
            *numbers[i].number = wr_reply_int(value);
    }
    if (wr_reply_is(name, "queues"))
        copy_long(&w->queues, wr_reply_span(value));
    else if (wr_reply_is(name, "running"))
        copy_long(&w->running, wr_reply_span(value));
    else if (wr_reply_is(name, "alone"))
        copy_long(&w->alone, wr_reply_span(value));
    else if (wr_reply_is(name, "timeouts"))
        copy_long(&w->timeouts, wr_reply_span(value));
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
    w->order_grace = w->job_timeout = -1;
    rc = wr_conn_do(conn, wr_clock_ms() + TIMEOUT_MS, &reply, err, "HGETALL", key, NULL);
    if (rc != WEIR_OK)
        return rc;
    for (size_t i = 0; i + 1 < wr_reply_len(reply); i += 2)
        take_field(w, wr_reply_at(reply, i), wr_reply_at(reply, i + 1));
    if (!w->queues)
        w->queues = cli_strdup("");
    if (!w->running)
        w->running = cli_strdup("");
    if (!w->alone)
        w->alone = cli_strdup("");
    if (!w->timeouts)
        w->timeouts = cli_strdup("");
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

bool
cli_worker_read(struct cli *cli, const char *id, struct cli_worker *out)
{
    struct wr_server *server = wr_store_server(wr_client_store(cli->client));
    struct wr_conn *conn;
    bool told;

    *out = (struct cli_worker){0};
    snprintf(out->id, sizeof(out->id), "%.*s", (int)strcspn(id, "/"), id);
    if (wr_server_take(server, wr_clock_ms() + TIMEOUT_MS, &conn, NULL) != WEIR_OK)
        return false;
    told = read_details(cli, conn, out, NULL) == WEIR_OK && out->protocol != 0;
    wr_server_give(server, conn);
    if (!told)
        cli_worker_fini(out);
    return told;
}

void
cli_worker_fini(struct cli_worker *w)
{
    free(w->queues);
    free(w->running);
    free(w->alone);
    free(w->timeouts);
    w->queues = w->running = w->alone = w->timeouts = NULL;
}

const char *
cli_worker_state(const struct cli_worker *w)
{
    if (w->silent_ms > CLI_WORKER_LATE_MS)
        return "late";
    return w->mode[0] == '\0' || strcmp(w->mode, "running") == 0 ? "up" : w->mode;
}

bool
cli_worker_names(const struct cli_worker *w, const char *queue)
{
    size_t len = strlen(queue);

    for (const char *at = w->queues; *at; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == len && strncmp(at, queue, len) == 0)
            return true;
    }
    return false;
}

bool
cli_worker_serves(const struct cli_worker *w, const char *queue)
{
    return strcmp(cli_worker_state(w), "up") == 0 &&
           (strcmp(w->queues, "*") == 0 || cli_worker_names(w, queue));
}

const struct cli_worker *
cli_roster_find(const struct cli_roster *r, const char *id)
{
    size_t len = strcspn(id, "/"); /* a child's name is its worker's, "/" and a number */

    for (size_t i = 0; i < r->n; i++) {
        if (strlen(r->workers[i].id) == len && strncmp(r->workers[i].id, id, len) == 0)
            return &r->workers[i];
    }
    return NULL;
}

void
cli_roster_fini(struct cli_roster *r)
{
    for (size_t i = 0; i < r->n; i++)
        cli_worker_fini(&r->workers[i]);
    free(r->workers);
    *r = (struct cli_roster){0};
}

int64_t
cli_worker_timeout_of(const struct cli_worker *w, const char *type)
{
    int64_t all = 0;

    for (const char *at = w->timeouts; *at;) {
        size_t len = strcspn(at, "\t"), rest = strcspn(at, "\n");
        int64_t ms = len < rest ? strtoll(at + len + 1, NULL, 10) : 0;

        if (len == strlen(type) && strncmp(at, type, len) == 0)
            return ms;
        if (len == 1 && *at == '*')
            all = ms;
        at += rest + (at[rest] == '\n');
    }
    return all;
}
