#include "cli/server_info.h"

#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/client_internal.h"
#include "redis/server.h"

#define TIMEOUT_MS 5000

/* The value of "name:value\r\n" in the answer of INFO; "" if it is not there. */
static void
find_value(struct wr_span info, const char *name, char *out, size_t cap)
{
    const char *at = info.ptr, *end = at + info.len;
    size_t len = strlen(name);

    *out = '\0';
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((newline ? newline : end) - at);

        if (line > len && strncmp(at, name, len) == 0 && at[len] == ':') {
            snprintf(out, cap, "%.*s", (int)(line - len - 1), at + len + 1);
            out[strcspn(out, "\r")] = '\0';
            return;
        }
        at += line + 1;
    }
}

static int64_t
find_number(struct wr_span info, const char *name)
{
    char text[32];
    int64_t value = 0;

    find_value(info, name, text, sizeof(text));
    (void)wr_text_int(text, 0, INT64_MAX, &value);
    return value;
}

static bool
is_failing(struct wr_span info, const char *name)
{
    char text[16];

    find_value(info, name, text, sizeof(text));
    return *text && strcmp(text, "ok") != 0;
}

static void
take_info(struct wr_span info, struct cli_server_info *out)
{
    find_value(info, "valkey_version", out->version, sizeof(out->version));
    snprintf(out->name, sizeof(out->name), "%s", *out->version ? "valkey" : "redis");
    if (!*out->version)
        find_value(info, "redis_version", out->version, sizeof(out->version));
    find_value(info, "role", out->role, sizeof(out->role));
    find_value(info, "maxmemory_policy", out->policy, sizeof(out->policy));
    out->clients = find_number(info, "connected_clients");
    out->clients_max = find_number(info, "maxclients");
    out->used_memory = find_number(info, "used_memory");
    out->max_memory = find_number(info, "maxmemory");
    out->aof = find_number(info, "aof_enabled") == 1;
    out->aof_failing = is_failing(info, "aof_last_write_status");
    out->rdb_failing = is_failing(info, "rdb_last_bgsave_status");
    out->loading = find_number(info, "loading") == 1;
}

/* Whether snapshots are made is told by CONFIG alone, which may be forbidden. */
static void
take_save(struct wr_conn *conn, struct cli_server_info *out)
{
    struct wr_reply *reply;

    if (wr_conn_do(conn, wr_clock_ms() + TIMEOUT_MS, &reply, NULL, "CONFIG", "GET",
                   "save", NULL) == WEIR_OK)
        out->rdb = wr_reply_span(wr_reply_at(reply, 1)).len > 0;
    wr_reply_free(reply);
}

enum weir_err
cli_server_info_read(struct cli *cli, struct cli_server_info *out, struct weir_error *err)
{
    struct wr_server *server = wr_store_server(wr_client_store(cli->client));
    struct wr_reply *reply;
    struct wr_conn *conn;
    enum weir_err rc = wr_server_take(server, wr_clock_ms() + TIMEOUT_MS, &conn, err);

    *out = (struct cli_server_info){0};
    if (rc != WEIR_OK)
        return rc;
    rc = wr_conn_do(conn, wr_clock_ms() + TIMEOUT_MS, &reply, err, "INFO", NULL);
    if (rc == WEIR_OK) {
        take_info(wr_reply_span(reply), out);
        wr_reply_free(reply);
        if (!wr_conn_is_broken(conn))
            take_save(conn, out);
    }
    wr_server_give(server, conn);
    return rc;
}
