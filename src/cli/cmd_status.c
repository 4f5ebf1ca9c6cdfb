/* status: one screen; with --check an answer for scripts. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <weir/version.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/check.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/cron_view.h"
#include "cli/health.h"
#include "cli/out.h"
#include "cli/queue_view.h"
#include "cli/queues.h"
#include "cli/roster.h"
#include "cli/server_info.h"

#define WATCH_MIN_MS 100

struct status_opts {
    struct cli_list queues;
    int64_t watch;
    const char *check;
};

static const struct cli_opt status_options[] = {
    {"queue", 'q', CLI_LIST, offsetof(struct status_opts, queues), "Q",
     "only this queue; may be repeated"},
    {"watch", 0, CLI_EVERY, offsetof(struct status_opts, watch), "D",
     "again and again; every 2s or D"},
    {"check", 0, CLI_OPTIONAL, offsetof(struct status_opts, check), "EXPR",
     "exit 0 if EXPR holds for every queue (dead<10,age<60s); alone: if jobs are "
     "done here"},
    {0},
};

static void
print_head(struct cli *cli, bool healthy, const struct cli_server_info *info)
{
    char url[450];

    if (!cli_out_is_table(cli))
        return;
    cli_setting_show(cli->settings, CLI_SET_URL, url, sizeof(url));
    fprintf(cli->out, "weir %s · %s %s at %s · namespace %s   ", WEIR_VERSION, info->name,
            info->version, url, cli_setting(cli->settings, CLI_SET_NAMESPACE));
    cli_print(cli, healthy ? CLI_GREEN : CLI_RED, "%s\n", healthy ? "OK" : "DEGRADED");
}

static void
print_workers(struct cli *cli, const struct cli_roster *r)
{
    char text[32];

    if (!cli_out_is_table(cli))
        return;
    fprintf(cli->out, "workers %zu up", r->n - r->late);
    if (r->late > 0) {
        wr_text_show_duration(r->workers[r->n - 1].silent_ms, text, sizeof(text));
        fprintf(cli->out, ", %zu late (the last heard %s ago)", r->late, text);
    }
    fputc('\n', cli->out);
}

/* --check without an expression. */
static bool
checks_health(const struct status_opts *o)
{
    return o->check == cli_no_value;
}

/* Is it as --check or, without it, as good sense wants? */
static bool
is_well(struct cli *cli, const struct status_opts *o, const char *queue,
        const struct weir_audit *a, const struct cli_roster *roster)
{
    char why[300];

    if (checks_health(o))
        return cli_health_of_queue(cli, queue, a, roster);
    if (o->check ? cli_check_holds(o->check, a, why, sizeof(why))
                 : !cli_queue_complaint(queue, a, why, sizeof(why)))
        return true;
    if (o->check || !cli_out_is_table(cli)) {
        fflush(cli->out);
        cli_note(cli, "%s: %s", queue, why);
    }
    return false;
}

static enum weir_err
look(struct cli *cli, const struct status_opts *o, bool *well, struct weir_error *err)
{
    struct cli_server_info info = {0};
    struct cli_roster roster = {0};
    struct cli_names queues = {0};
    struct cli_broken broken = {0};
    struct weir_audit *audits = NULL;
    struct cli_table *t;
    enum weir_err rc = cli_queues(cli, &o->queues, &queues, err);

    *well = true;
    if (rc == WEIR_OK && (cli_out_is_table(cli) || checks_health(o)))
        rc = cli_server_info_read(cli, &info, err);
    if (rc == WEIR_OK && (cli_out_is_table(cli) || checks_health(o)))
        rc = cli_roster_read(cli, checks_health(o), &roster, err);
    if (rc == WEIR_OK && checks_health(o)) {
        *well = cli_health_of_server(cli, &info);
        *well = cli_health_of_workers(cli, &roster) && *well;
    }
    audits = cli_alloc(queues.n * sizeof(*audits));
    for (size_t i = 0; i < queues.n && rc == WEIR_OK; i++) {
        rc = weir_queue_audit(cli->client, queues.names[i], &audits[i], err);
        if (cli_is_broken(cli, rc, err, &broken)) {
            audits[i].engine[0] = '\0'; /* no row */
            *well = false;
            rc = WEIR_OK;
        } else if (rc == WEIR_OK &&
                   !is_well(cli, o, queues.names[i], &audits[i], &roster))
            *well = false;
    }
    if (rc == WEIR_OK) {
        print_head(cli, *well, &info);
        t = cli_queue_table(cli);
        for (size_t i = 0; i < queues.n; i++) {
            if (audits[i].engine[0])
                cli_queue_row(cli, t, queues.names[i], &audits[i]);
        }
        cli_table_end(t);
        print_workers(cli, &roster);
        if (cli_out_is_table(cli))
            rc = cli_cron_summary(cli, queues.names, queues.n, err);
    }
    free(audits);
    cli_roster_fini(&roster);
    cli_names_fini(&queues);
    return cli_broken_end(&broken, rc, err);
}

static enum weir_err
watch(struct cli *cli, const struct status_opts *o, struct weir_error *err)
{
    for (;;) {
        bool well;
        enum weir_err rc;

        if (cli->out_is_tty)
            fputs("\033[H\033[J", cli->out);
        rc = look(cli, o, &well, err);
        if (weir_err_kind_of(rc) == WEIR_KIND_BUSY ||
            weir_err_kind_of(rc) == WEIR_KIND_UNKNOWN)
            cli_tell(cli, rc, err); /* it may come back */
        else if (rc != WEIR_OK)
            return rc;
        if (fflush(cli->out) != 0)
            return WEIR_OK; /* nobody reads any more; the end finds out why */
        poll(NULL, 0, (int)o->watch);
    }
}

static enum weir_err
status_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct status_opts *o = opts;
    bool well;
    enum weir_err rc = WEIR_OK;

    (void)args;
    if (o->check && !checks_health(o))
        rc = cli_check_parse(o->check, err);
    if (rc != WEIR_OK)
        return rc;
    if (o->watch != CLI_UNSET) {
        if (o->watch < WATCH_MIN_MS || o->watch > 3600000)
            return wr_fail(err, WEIR_E_ARG, 0, "--watch: from 100ms to 1h");
        return watch(cli, o, err);
    }
    rc = look(cli, o, &well, err);
    if (rc != WEIR_OK || well)
        return rc;
    cli->said = true;
    return WEIR_E_CHECK_FAILED;
}

const struct cli_cmd cmd_status = {
    .noun = "status",
    .group = "Look",
    .args = "",
    .summary = "what is going on; exit 1 if something is wrong",
    .examples = "  weir status --watch\n  weir status --check --quiet\n"
                "  weir status --check 'dead<10,age<60s'\n",
    .needs = CLI_NEEDS_CLIENT,
    .opts = status_options,
    .opts_size = sizeof(struct status_opts),
    .run = status_run,
};
