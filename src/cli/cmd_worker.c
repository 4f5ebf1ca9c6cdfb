/* worker ls: who works, as their heartbeats tell. */
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/roster.h"

static void
print_json(struct cli *cli, const struct cli_worker *w)
{
    struct cli_json *json = cli_json_new();

    cli_json_text(json, "worker", w->id);
    cli_json_text(json, "state", w->silent_ms > CLI_WORKER_LATE_MS ? "late" : "up");
    cli_json_int(json, "heartbeat_ms", w->silent_ms);
    cli_json_text(json, "host", w->host);
    cli_json_int(json, "pid", w->pid);
    cli_json_int(json, "slots", w->slots);
    cli_json_int(json, "busy", w->busy);
    cli_json_int(json, "processed", w->processed);
    cli_json_text(json, "queues", w->queues);
    if (w->started_at != 0)
        cli_json_int(json, "started_at", w->started_at);
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

static void
print_row(struct cli_table *t, const struct cli_worker *w, int64_t now)
{
    bool late = w->silent_ms > CLI_WORKER_LATE_MS;

    cli_cell_id(t, w->id);
    cli_cell(t, late ? CLI_RED : CLI_GREEN, late ? "late" : "up");
    cli_cell_how_long(t, w->silent_ms > 0 ? w->silent_ms : 0);
    cli_cell(t, CLI_PLAIN, "%lld/%lld", (long long)w->busy, (long long)w->slots);
    cli_cell_int(t, w->processed);
    cli_cell_text(t, w->queues);
    cli_cell_text(t, w->host);
    cli_cell_int(t, w->pid);
    cli_cell_when(t, w->started_at, now);
}

static enum weir_err
ls_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"worker", false, false}, {"state", false, false},    {"heartbeat", true, false},
        {"busy", true, false},    {"processed", true, false}, {"queues", false, false},
        {"host", false, true},    {"pid", true, true},        {"started", false, false}};
    struct cli_roster r;
    struct cli_table *t;
    enum weir_err rc = cli_roster_read(cli, true, &r, err);

    (void)opts;
    (void)args;
    if (rc != WEIR_OK)
        return rc;
    t = cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < r.n; i++) {
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
    .run = ls_run,
};
