/* worker ls, show: who works, as their heartbeats tell. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/roster.h"

struct ls_opts {
    const char *host;
};

static const struct cli_opt ls_options[] = {
    {"host", 0, CLI_TEXT, offsetof(struct ls_opts, host), "H", "only those of this host"},
    {0},
};

/* Moves over one line "queue TAB id" of what runs; false at the end. */
static bool
next_running(const char **at, char *queue, size_t queue_cap, char *id, size_t id_cap)
{
    size_t line = strcspn(*at, "\n"), name = strcspn(*at, "\t\n");

    if (line == 0)
        return false;
    snprintf(queue, queue_cap, "%.*s", (int)name, *at);
    snprintf(id, id_cap, "%.*s", name < line ? (int)(line - name - 1) : 0,
             *at + name + (name < line));
    *at += line + ((*at)[line] == '\n');
    return true;
}

static struct cli_json *
jobs_json(const char *at)
{
    struct cli_json *list = cli_json_new_array();
    char queue[132], id[260];

    while (next_running(&at, queue, sizeof(queue), id, sizeof(id))) {
        struct cli_json *one = cli_json_new();

        cli_json_text(one, "queue", queue);
        cli_json_text(one, "id", id);
        cli_json_append(list, one);
    }
    return list;
}

static void
print_json(struct cli *cli, const struct cli_worker *w)
{
    struct cli_json *json = cli_json_new();

    cli_json_text(json, "worker", w->id);
    cli_json_text(json, "state", cli_worker_state(w));
    cli_json_text(json, "mode", w->mode);
    cli_json_int(json, "heartbeat_ms", w->silent_ms);
    cli_json_int(json, "contact_ms", w->contact_ms + w->silent_ms);
    cli_json_text(json, "host", w->host);
    cli_json_int(json, "pid", w->pid);
    cli_json_text(json, "boot", w->boot);
    cli_json_text(json, "version", w->version);
    cli_json_int(json, "protocol", w->protocol);
    cli_json_int(json, "children", w->children);
    cli_json_int(json, "slots", w->slots);
    cli_json_int(json, "busy", w->busy);
    cli_json_int(json, "processed", w->processed);
    cli_json_int(json, "failed", w->failed);
    cli_json_int(json, "rss_bytes", w->rss);
    cli_json_text(json, "queues", w->queues);
    if (w->started_at != 0)
        cli_json_int(json, "started_at", w->started_at);
    if (w->job_timeout >= 0)
        cli_json_int(json, "job_timeout_ms", w->job_timeout);
    if (w->order_at != 0) {
        cli_json_text(json, "order", w->order);
        cli_json_text(json, "order_by", w->order_by);
        cli_json_int(json, "order_at", w->order_at);
        if (w->order_grace >= 0)
            cli_json_int(json, "order_grace_ms", w->order_grace);
    }
    cli_json_text(json, "broken", w->broken);
    cli_json_adopt(json, "running", jobs_json(w->running));
    cli_json_adopt(json, "alone", jobs_json(w->alone));
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

static enum cli_color
state_color(const char *state)
{
    if (strcmp(state, "up") == 0)
        return CLI_GREEN;
    return strcmp(state, "late") == 0 ? CLI_RED : CLI_YELLOW;
}

static void
print_row(struct cli_table *t, const struct cli_worker *w, int64_t now)
{
    const char *state = cli_worker_state(w);

    cli_cell_id(t, w->id);
    cli_cell(t, state_color(state), "%s", state);
    cli_cell_how_long(t, w->silent_ms > 0 ? w->silent_ms : 0);
    cli_cell(t, CLI_PLAIN, "%lld/%lld", (long long)w->busy, (long long)w->slots);
    cli_cell_int(t, w->processed);
    cli_cell_text(t, w->queues);
    cli_cell_text(t, w->host);
    cli_cell_int(t, w->pid);
    cli_cell_when(t, w->started_at, now);
    cli_cell_int(t, w->failed);
    cli_cell_int(t, w->children);
    cli_cell(t, CLI_PLAIN, "%lldM", (long long)(w->rss >> 20));
    cli_cell_text(t, w->version);
}

static enum weir_err
ls_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"worker", false, false}, {"state", false, false},    {"heartbeat", true, false},
        {"busy", true, false},    {"processed", true, false}, {"queues", false, false},
        {"host", false, true},    {"pid", true, true},        {"started", false, false},
        {"failed", true, true},   {"children", true, true},   {"memory", true, true},
        {"version", false, true}};
    const struct ls_opts *o = opts;
    struct cli_roster r;
    struct cli_table *t;
    enum weir_err rc = cli_roster_read(cli, true, &r, err);

    (void)args;
    if (rc != WEIR_OK)
        return rc;
    t = cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < r.n; i++) {
        if (o->host && strcmp(o->host, r.workers[i].host) != 0)
            continue;
        if (cli_out_is_json(cli))
            print_json(cli, &r.workers[i]);
        else
            print_row(t, &r.workers[i], r.now);
    }
    cli_table_end(t);
    if (r.n == 0)
        cli_note(cli, "No workers. Start one with: weir work");
    cli_roster_fini(&r);
    return WEIR_OK;
}

const struct cli_cmd cmd_worker_ls = {
    .noun = "worker",
    .verb = "ls",
    .group = "Look",
    .args = "",
    .summary = "list the workers, from their heartbeats",
    .examples = "  weir worker ls -o wide\n",
    .needs = CLI_NEEDS_CLIENT,
    .opts = ls_options,
    .opts_size = sizeof(struct ls_opts),
    .run = ls_run,
};

/* ---- show ---- */

static void
show_line(struct cli *cli, const char *name, const char *text)
{
    if (cli_out_is_table(cli))
        cli_print(cli, CLI_DIM, "  %-11s", name);
    else
        fprintf(cli->out, "%s\t", name);
    cli_print_text(cli, text);
    fputc('\n', cli->out);
}

static void
show_numbers(struct cli *cli, const struct cli_worker *w)
{
    const struct {
        const char *name;
        int64_t number;
    } rows[] = {{"pid", w->pid},       {"children", w->children},   {"slots", w->slots},
                {"busy", w->busy},     {"processed", w->processed}, {"failed", w->failed},
                {"rss_bytes", w->rss}, {"protocol", w->protocol}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[24];

        snprintf(text, sizeof(text), "%lld", (long long)rows[i].number);
        show_line(cli, rows[i].name, text);
    }
}

static void
show_running(struct cli *cli, const struct cli_worker *w)
{
    const char *at = w->running;
    char queue[132], id[260], text[400];

    while (next_running(&at, queue, sizeof(queue), id, sizeof(id))) {
        snprintf(text, sizeof(text), "%s  (queue %s)", id, queue);
        show_line(cli, "runs", text);
    }
    at = w->alone;
    while (next_running(&at, queue, sizeof(queue), id, sizeof(id))) {
        snprintf(
            text, sizeof(text),
            "%s  (queue %s): a worker was lost with it, so its child takes no others", id,
            queue);
        show_line(cli, "alone", text);
    }
}

static void
show(struct cli *cli, const struct cli_worker *w, int64_t now)
{
    char text[220], when[48], grace[32];

    if (cli_out_is_json(cli)) {
        print_json(cli, w);
        return;
    }
    cli_print_id(cli, w->id);
    fputc('\n', cli->out);
    if (cli->format == CLI_OUT_ID)
        return;
    cli_how_long(cli, w->silent_ms > 0 ? w->silent_ms : 0, when, sizeof(when));
    show_line(cli, "state", cli_worker_state(w));
    show_line(cli, "heartbeat", when);
    cli_how_long(cli, w->contact_ms + w->silent_ms, when, sizeof(when));
    show_line(cli, "contact", when);
    show_line(cli, "queues", w->queues);
    show_line(cli, "host", w->host);
    show_line(cli, "boot", w->boot);
    show_line(cli, "version", w->version);
    cli_when(cli, w->started_at, now, when, sizeof(when));
    show_line(cli, "started", when);
    if (w->job_timeout >= 0) {
        cli_how_long(cli, w->job_timeout, when, sizeof(when));
        show_line(cli, "job_timeout", w->job_timeout > 0 ? when : "none");
    }
    show_numbers(cli, w);
    if (w->order_at != 0) {
        cli_when(cli, w->order_at, now, when, sizeof(when));
        wr_text_show_duration(w->order_grace, grace, sizeof(grace));
        snprintf(text, sizeof(text), "%s%s%s, by %s, %s", w->order,
                 w->order_grace >= 0 ? " with a grace of " : "",
                 w->order_grace >= 0 ? grace : "", w->order_by, when);
        show_line(cli, "order", text);
    }
    if (w->broken[0] != '\0')
        show_line(cli, "broken", w->broken);
    show_running(cli, w);
}

static enum weir_err
show_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    struct cli_roster r;
    enum weir_err rc = cli_roster_read(cli, true, &r, err);

    (void)opts;
    if (rc != WEIR_OK)
        return rc;
    for (; *args && rc == WEIR_OK; args++) {
        const struct cli_worker *w = cli_roster_find(&r, *args);

        if (w)
            show(cli, w, r.now);
        else
            rc = wr_fail(err, WEIR_E_NO_WORKER, 0, "no worker %.100s", *args);
    }
    cli_roster_fini(&r);
    return rc;
}

const struct cli_cmd cmd_worker_show = {
    .noun = "worker",
    .verb = "show",
    .group = "Look",
    .args = "W...",
    .summary = "what a worker tells about itself, and what it runs",
    .examples = "  weir worker show $(weir worker ls -o id)\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .run = show_run,
};
