/* job edit, job run: when a job that waits shall start. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/json.h"
#include "cli/out.h"

struct edit_opts {
    const char *queue;
    int64_t in, at;
};

static const struct cli_opt edit_options[] = {
    {"queue", 'q', CLI_TEXT, offsetof(struct edit_opts, queue), "Q",
     "look only in this queue"},
    {"in", 0, CLI_DURATION, offsetof(struct edit_opts, in), "D",
     "start it not before so long from now"},
    {"at", 0, CLI_TIME, offsetof(struct edit_opts, at), "T",
     "start it not before this time"},
    {0},
};

/* What was done: "delayed" until due, or "ready". */
static void
print_when(struct cli *cli, const char *id, int64_t due)
{
    char when[32] = "";

    if (due > 0)
        wr_text_show_time(due, when);
    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "id", id);
        cli_json_text(json, "state", due > 0 ? "delayed" : "ready");
        if (due > 0)
            cli_json_int(json, "due_at", due);
        cli_json_print(json, cli->out);
        cli_json_free(json);
        return;
    }
    cli_print_id(cli, id);
    if (cli_out_is_table(cli))
        fprintf(cli->out, due > 0 ? " waits until %s." : " is ready.%s", when);
    else if (cli->format != CLI_OUT_ID)
        fprintf(cli->out, "\t%s\t%s", due > 0 ? "delayed" : "ready", when);
    fputc('\n', cli->out);
}

/* What --dry-run prints; the refusals are those of the real thing. */
static enum weir_err
would_edit(struct cli *cli, const char *queue, const char *id, struct weir_error *err)
{
    struct weir_job_view *v;
    const char *state;
    enum weir_err rc = weir_job_inspect(cli->client, queue, id, &v, err);

    if (rc != WEIR_OK)
        return rc;
    state = weir_job_view_state(v);
    if (strcmp(state, "ready") != 0 && strcmp(state, "delayed") != 0)
        rc = wr_fail(err, WEIR_E_WRONG_STATE, 0, "job %.100s does not wait, it is %s", id,
                     state);
    else
        cli_note(cli, "Would change when job %.100s starts. Nothing changed.", id);
    weir_job_view_free(v);
    return rc;
}

static enum weir_err
edit_one(struct cli *cli, const char *id, void *context, struct weir_error *err)
{
    const struct edit_opts *o = context;
    int64_t due = 0;
    enum weir_err rc;

    if (cli->globals.dry_run)
        return would_edit(cli, o->queue, id, err);
    rc = weir_job_reschedule(cli->client, o->queue, id, o->in, o->at, &due, err);
    if (rc == WEIR_OK)
        print_when(cli, id, due);
    return rc;
}

static enum weir_err
edit_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    struct edit_opts o = *(const struct edit_opts *)opts;

    if ((o.in == CLI_UNSET) == (o.at == CLI_UNSET))
        return wr_fail(err, WEIR_E_ARG, 0, "in and at: give one of them");
    /* 0 is "at once" to the library; a time that is over is that as well. */
    o.at = o.at == CLI_UNSET ? 0 : o.at > 0 ? o.at : 1;
    if (o.in == CLI_UNSET)
        o.in = 0;
    else if (o.in == 0)
        o.at = 1;
    return cli_each_id(cli, args, edit_one, &o, err);
}

const struct cli_cmd cmd_job_edit = {
    .noun = "job",
    .verb = "edit",
    .group = "Decide",
    .args = "ID...",
    .summary = "change when a waiting job starts",
    .examples = "  weir job edit 06e5k3... --at 'tomorrow 09:00'\n"
                "  weir job edit 06e5k3... --in 10m\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = edit_options,
    .opts_size = sizeof(struct edit_opts),
    .run = edit_run,
};

static enum weir_err
run_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    struct edit_opts o = *(const struct edit_opts *)opts;

    o.in = o.at = 0;
    return cli_each_id(cli, args, edit_one, &o, err);
}

static const struct cli_opt run_options[] = {
    {"queue", 'q', CLI_TEXT, offsetof(struct edit_opts, queue), "Q",
     "look only in this queue"},
    {0},
};

const struct cli_cmd cmd_job_run = {
    .noun = "job",
    .verb = "run",
    .group = "Decide",
    .args = "ID...",
    .summary = "let delayed jobs start now, before all others",
    .examples = "  weir job run 06e5k3...\n"
                "  weir job ls -s delayed -t report -o id | weir job run -\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = run_options,
    .opts_size = sizeof(struct edit_opts),
    .run = run_run,
};
