/* cron add, edit. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/cron_spec.h"
#include "cli/cron_view.h"

#define EDIT_TRIES 10

static const struct cli_opt add_options[] = {CLI_CRON_OPTIONS, {0}};

/* The next times: by the server's clock if the entry is there. */
static enum weir_err
preview(struct cli *cli, const struct weir_cron *e, struct weir_error *err)
{
    const char *zone = e->zone ? e->zone : "UTC";
    struct weir_cron_info *info = NULL;
    int64_t now = wr_clock_wall_ms();
    enum weir_err rc;

    if (!cli->globals.dry_run &&
        weir_cron_get(cli->client, e->queue, e->name, &info, NULL) == WEIR_OK)
        now = info->now;
    rc = cli_cron_preview(cli, e->name, e->schedule, zone, now, CLI_CRON_PREVIEW, err);
    weir_cron_info_free(info);
    return rc;
}

static void
say_title(struct cli *cli, const char *what, const struct weir_cron *e)
{
    if (!cli_out_is_table(cli))
        return;
    fprintf(cli->out, "%s \"", what);
    cli_print_text(cli, e->name);
    fputs("\": ", cli->out);
    cli_print_text(cli, e->job->type);
    fputs(" → ", cli->out);
    cli_print_text(cli, e->queue);
    fputs(", ", cli->out);
    cli_print_text(cli, e->schedule);
    fprintf(cli->out, " in %s. Next:\n", e->zone ? e->zone : "UTC");
}

static enum weir_err
add_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    struct cli_cron_spec spec = *(const struct cli_cron_spec *)opts;
    struct cli_cron c;
    bool same = false;
    enum weir_err rc;

    spec.schedule = args[1];
    spec.type = args[2];
    spec.payload = args[3];
    rc = cli_cron_make(cli, &spec, args[0], NULL, &c, err);
    if (rc == WEIR_OK && cli->globals.dry_run)
        cli_note(cli, "Would add cron entry \"%s\". Nothing was stored.", args[0]);
    else if (rc == WEIR_OK)
        rc = weir_cron_put(cli->client, &c.entry, WEIR_REVISION_NEW, &same, err);
    if (rc == WEIR_E_EXISTS)
        rc = wr_fail(
            err, rc, 0,
            "cron entry \"%.60s\" of queue %.60s exists and says something else; "
            "change it with: weir cron edit",
            args[0], c.entry.queue);
    if (rc == WEIR_OK) {
        say_title(cli,
                  cli->globals.dry_run ? "Would add"
                  : same               ? "Already there:"
                                       : "Added",
                  &c.entry);
        rc = preview(cli, &c.entry, err);
    }
    cli_cron_fini(&c);
    return rc;
}

const struct cli_cmd cmd_cron_add = {
    .noun = "cron",
    .verb = "add",
    .group = "Produce",
    .args = "NAME EXPR TYPE [PAYLOAD|@FILE|-]",
    .summary = "make jobs again and again, at the times of EXPR",
    .examples =
        "  weir cron add nightly '0 3 * * *' report --tz Europe/Berlin -q reports\n"
        "  weir cron add ping 'every 20s' ping --overlap skip --expires 10s\n"
        "  weir cron add payroll '0 9 L * *' pay '{\"run\":\"month\"}' --missed all\n",
    .min_args = 3,
    .max_args = 4,
    .needs = CLI_NEEDS_CLIENT,
    .opts = add_options,
    .opts_size = sizeof(struct cli_cron_spec),
    .run = add_run,
};

/* ---- edit ---- */

static const struct cli_opt edit_options[] = {
    CLI_CRON_OPTIONS,
    CLI_CRON_PARTS,
    {"unset", 0, CLI_LIST, CLI_CRON_FIELD(unset), "FLAG",
     "what this flag said is the default again, as unique or meta; may be repeated"},
    {0},
};

static bool
is_empty(const struct cli_cron_spec *spec)
{
    struct cli_cron_spec none;

    if (spec->unset.n > 0)
        return false;
    cli_cron_spec_init(&none);
    for (const struct cli_opt *o = cli_cron_parts; o->name; o++) {
        size_t size = o->type == CLI_TEXT   ? sizeof(const char *)
                      : o->type == CLI_LIST ? sizeof(struct cli_list)
                                            : sizeof(int64_t);

        if (strcmp(o->name, "queue") != 0 &&
            memcmp((const char *)spec + o->field, (const char *)&none + o->field, size) !=
                0)
            return false;
    }
    return true;
}

/* Reads, changes, and stores if nobody else did meanwhile. */
static enum weir_err
edit_once(struct cli *cli, const struct cli_cron_spec *spec, const char *name, bool *same,
          struct weir_error *err)
{
    struct weir_cron_info *info;
    struct cli_cron c = {0};
    enum weir_err rc = cli_cron_find(cli, spec->job.queue, name, &info, err);

    if (rc != WEIR_OK)
        return rc;
    rc = cli_cron_make(cli, spec, name, &info->entry, &c, err);
    if (rc == WEIR_OK && cli->globals.dry_run)
        cli_note(cli, "Would change cron entry \"%s\". Nothing was stored.", name);
    else if (rc == WEIR_OK)
        rc = weir_cron_put(cli->client, &c.entry, info->revision, same, err);
    if (rc == WEIR_OK) {
        say_title(cli,
                  cli->globals.dry_run ? "Would change"
                  : *same              ? "Nothing to change in"
                                       : "Changed",
                  &c.entry);
        rc = preview(cli, &c.entry, err);
    }
    cli_cron_fini(&c);
    weir_cron_info_free(info);
    return rc;
}

static enum weir_err
edit_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct cli_cron_spec *spec = opts;
    bool same = false;
    enum weir_err rc;
    int tries = 0;

    if (is_empty(spec))
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "nothing to change: give --schedule, --tz, --payload, --unset or another");
    if (spec->payload && strcmp(spec->payload, "-") == 0)
        tries = EDIT_TRIES - 1; /* stdin can be read once */
    do
        rc = edit_once(cli, spec, args[0], &same, err);
    while (rc == WEIR_E_CHANGED && ++tries < EDIT_TRIES);
    return rc;
}

const struct cli_cmd cmd_cron_edit = {
    .noun = "cron",
    .verb = "edit",
    .group = "Decide",
    .args = "NAME",
    .summary = "change what is given of a cron entry",
    .examples = "  weir cron edit nightly --schedule '0 4 * * *'\n"
                "  weir cron edit nightly --payload @new.json --retry 5\n"
                "  weir cron edit nightly --unset unique --unset meta\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = edit_options,
    .opts_size = sizeof(struct cli_cron_spec),
    .run = edit_run,
};
