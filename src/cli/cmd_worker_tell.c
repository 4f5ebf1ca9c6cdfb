/* worker quiet, resume, stop: orders that stand in Redis until they are obeyed. */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/roster.h"
#include "client/client_internal.h"

struct tell_opts {
    const char *host;
    bool all;
    int64_t grace_ms; /* of stop */
};

#define TELL_ALL                                                                  \
    {                                                                             \
        "all", 0, CLI_FLAG, offsetof(struct tell_opts, all), NULL, "every worker" \
    }
#define TELL_HOST                                                   \
    {                                                               \
        "host", 0, CLI_TEXT, offsetof(struct tell_opts, host), "H", \
            "every worker of this host"                             \
    }

static const struct cli_opt tell_options[] = {TELL_ALL, TELL_HOST, {0}};
static const struct cli_opt stop_options[] = {
    TELL_ALL,
    TELL_HOST,
    {"grace", 0, CLI_DURATION, offsetof(struct tell_opts, grace_ms), "D",
     "what running jobs get (default: the worker's own); also for one that is ending"},
    {0},
};

/* What the three commands say. */
struct order {
    enum wr_order order;
    const char *verb, *done;
    const char *sentence; /* after "Told W " */
    int64_t grace_ms;     /* -1: not said */
};

/* "ann@host", for those who look at it. */
static void
who_am_i(char *out, size_t cap)
{
    const struct passwd *user = getpwuid(getuid());
    char host[64] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(out, cap, "%.40s@%.50s", user ? user->pw_name : "somebody", host);
}

static void
say_order(const struct order *o, char *out, size_t cap)
{
    char grace[32];

    if (o->grace_ms < 0) {
        snprintf(out, cap, "%s", o->sentence);
        return;
    }
    wr_text_show_duration(o->grace_ms, grace, sizeof(grace));
    snprintf(out, cap, "to stop: running jobs get %s.", grace);
}

static void
print_told(struct cli *cli, const struct order *o, const struct cli_worker *w, bool stops)
{
    const char *word = stops ? "stops" : o->done;
    char sentence[160];

    say_order(o, sentence, sizeof(sentence));

    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "worker", w->id);
        cli_json_text(json, "result", word);
        cli_json_text(json, "state", cli_worker_state(w));
        if (o->grace_ms >= 0)
            cli_json_int(json, "grace_ms", o->grace_ms);
        cli_json_print(json, cli->out);
        cli_json_free(json);
    } else if (cli_out_is_table(cli)) {
        fputs(stops ? "Told to stop before: " : "Told ", cli->out);
        cli_print_id(cli, w->id);
        fprintf(cli->out, stops ? "\n" : " %s\n", sentence);
    } else {
        cli_print_id(cli, w->id);
        if (cli->format != CLI_OUT_ID)
            fprintf(cli->out, "\t%s", word);
        fputc('\n', cli->out);
    }
    if (w->silent_ms > CLI_WORKER_LATE_MS)
        cli_note(cli, "It is late: it obeys when it is back, if that is within an hour.");
}

static enum weir_err
tell_one(struct cli *cli, const struct order *o, const struct cli_worker *w,
         struct weir_error *err)
{
    enum wr_order before;
    char who[100];
    bool known;
    enum weir_err rc;

    if (cli->globals.dry_run) {
        char sentence[160];

        say_order(o, sentence, sizeof(sentence));
        cli_note(cli, "Would tell %s %s Nothing changed.", w->id, sentence);
        return WEIR_OK;
    }
    who_am_i(who, sizeof(who));
    rc = wr_store_order(wr_client_store(cli->client), w->id,
                        &(struct wr_told){o->order, o->grace_ms}, who, &known, &before,
                        err);
    if (rc == WEIR_OK && !known)
        rc = wr_fail(err, WEIR_E_NO_WORKER, 0, "no worker %.120s", w->id);
    if (rc == WEIR_OK)
        print_told(cli, o, w, before == WR_ORDER_STOP && o->order != WR_ORDER_STOP);
    return rc;
}

/* Those that --all or --host choose. One that ended meanwhile is no failure. */
static enum weir_err
tell_many(struct cli *cli, const struct order *o, const struct tell_opts *opts,
          const struct cli_roster *r, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += !opts->host || strcmp(opts->host, r->workers[i].host) == 0;
    if (n == 0) {
        cli_note(cli, "No workers.");
        return WEIR_OK;
    }
    if (o->order == WR_ORDER_STOP && !cli->globals.dry_run)
        rc = cli_confirm(cli, err, "This will stop %zu worker%s.", n, n == 1 ? "" : "s");
    for (size_t i = 0; i < r->n && rc == WEIR_OK; i++) {
        if (opts->host && strcmp(opts->host, r->workers[i].host) != 0)
            continue;
        rc = tell_one(cli, o, &r->workers[i], err);
        if (rc == WEIR_E_NO_WORKER)
            rc = WEIR_OK;
    }
    return rc;
}

static enum weir_err
tell(struct cli *cli, const struct order *o, const struct tell_opts *opts,
     char *const *args, struct weir_error *err)
{
    bool many = opts->all || opts->host;
    struct cli_roster r;
    enum weir_err rc;

    if (many == (args[0] != NULL))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "worker %s: name workers, or --all, or --host H", o->verb);
    rc = cli_roster_read(cli, true, &r, err);
    if (rc != WEIR_OK)
        return rc;
    if (many)
        rc = tell_many(cli, o, opts, &r, err);
    for (; *args && rc == WEIR_OK; args++) {
        const struct cli_worker *w = cli_roster_find(&r, *args);
        struct cli_worker silent = {.silent_ms = INT64_MAX};

        if (!w) { /* not in the roster any more, but its order may still wait for it */
            snprintf(silent.id, sizeof(silent.id), "%s", *args);
            w = &silent;
        }
        rc = strlen(*args) < sizeof(silent.id)
                 ? tell_one(cli, o, w, err)
                 : wr_fail(err, WEIR_E_NO_WORKER, 0, "no worker has such a long name");
    }
    cli_roster_fini(&r);
    return rc;
}

static enum weir_err
quiet_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    static const struct order quiet = {
        WR_ORDER_QUIET, "quiet", "quiet",
        "to be quiet: it claims nothing more, what runs goes on. Undo: weir worker "
        "resume.",
        -1};

    return tell(cli, &quiet, opts, args, err);
}

const struct cli_cmd cmd_worker_quiet = {
    .noun = "worker",
    .verb = "quiet",
    .group = "Decide",
    .args = "[W...]",
    .summary = "a worker claims nothing more; what runs goes on",
    .examples = "  weir worker quiet --host web-2\n",
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = tell_options,
    .opts_size = sizeof(struct tell_opts),
    .run = quiet_run,
};

static enum weir_err
resume_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    static const struct order run = {WR_ORDER_RUN, "resume", "resumed",
                                     "to claim jobs again.", -1};

    return tell(cli, &run, opts, args, err);
}

const struct cli_cmd cmd_worker_resume = {
    .noun = "worker",
    .verb = "resume",
    .group = "Decide",
    .args = "[W...]",
    .summary = "a quiet worker claims jobs again",
    .examples = "  weir worker resume --all\n",
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = tell_options,
    .opts_size = sizeof(struct tell_opts),
    .run = resume_run,
};

static enum weir_err
stop_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    int64_t grace_ms = ((const struct tell_opts *)opts)->grace_ms;
    const struct order stop = {WR_ORDER_STOP, "stop", "told to stop",
                               "to stop: running jobs get its grace time, as after "
                               "SIGTERM.",
                               grace_ms == CLI_UNSET ? -1 : grace_ms};

    return tell(cli, &stop, opts, args, err);
}

const struct cli_cmd cmd_worker_stop = {
    .noun = "worker",
    .verb = "stop",
    .group = "Decide",
    .args = "[W...]",
    .summary = "a worker ends as after SIGTERM; its service manager may start it again",
    .examples = "  weir worker stop --all --yes\n"
                "  weir worker stop web-2.4711.0f1e2d3c4b5a6978 --grace 5s\n",
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = stop_options,
    .opts_size = sizeof(struct tell_opts),
    .run = stop_run,
};
