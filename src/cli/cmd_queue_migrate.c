/* queue migrate: moves a queue to the other engine. */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/queue_view.h"
#include "cli/queues.h"

struct migrate_opts {
    const char *engine, *progress;
    int64_t wait_ms;
};

static const struct cli_opt migrate_options[] = {
    {"engine", 0, CLI_TEXT, offsetof(struct migrate_opts, engine), "ENGINE",
     "list or stream"},
    {"wait", 0, CLI_DURATION, offsetof(struct migrate_opts, wait_ms), "D",
     "for the end of running jobs (1m); 0: not at all"},
    {"progress", 0, CLI_TEXT, offsetof(struct migrate_opts, progress), "FORM",
     "auto, json or none"},
    {0},
};

static volatile sig_atomic_t interrupted;

static void
on_interrupt(int signal)
{
    interrupted = signal;
}

static void
catch_interrupts(bool on)
{
    struct sigaction action = {.sa_handler = on ? on_interrupt : SIG_DFL};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

struct watch {
    struct cli *cli;
    struct cli_progress *progress;
    const char *queue;
    int64_t ready;
    bool told; /* that jobs still run */
};

static bool
watch_move(const struct weir_migration *m, void *context)
{
    struct watch *w = context;

    if (m->processing > 0 && !w->told)
        cli_note(w->cli, "Queue \"%s\" is paused; waiting for %lld running job%s.",
                 w->queue, (long long)m->processing, wr_text_s(m->processing));
    w->told = w->told || m->processing > 0;
    cli_progress_show(w->progress, m->copied, m->copied, w->ready);
    return !interrupted;
}

static void
say_done(struct cli *cli, const char *queue, const struct weir_audit *before,
         const char *engine, int64_t moved, int64_t ms)
{
    char sentence[400];

    if (cli_out_is_json(cli)) {
        struct cli_json *j = cli_json_new();

        cli_json_text(j, "queue", queue);
        cli_json_text(j, "from", before->engine);
        cli_json_text(j, "engine", engine);
        cli_json_int(j, "moved", moved);
        cli_json_int(j, "ms", ms);
        cli_json_print(j, cli->out);
        cli_json_free(j);
        return;
    }
    if (strcmp(before->engine, engine) == 0)
        snprintf(sentence, sizeof(sentence), "Queue \"%s\" is a %s.", queue, engine);
    else
        snprintf(sentence, sizeof(sentence),
                 "Moved queue \"%s\" from %s to %s with %lld waiting job%s in %.1f s.",
                 queue, before->engine, engine, (long long)moved, wr_text_s(moved),
                 (double)ms / 1000);
    cli_queue_done(cli, queue, engine, sentence);
}

static enum weir_err
check(const struct migrate_opts *o, const char *queue, struct weir_error *err)
{
    if (!o->engine)
        return wr_fail(err, WEIR_E_ARG, 0, "--engine: list or stream?");
    if (strcmp(o->engine, "list") != 0 && strcmp(o->engine, "stream") != 0)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "--engine: \"%.20s\" is neither list nor stream", o->engine);
    return cli_check_queue(queue, err);
}

static enum weir_err
migrate_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct migrate_opts *o = opts;
    struct cli_progress progress;
    struct watch w = {.cli = cli, .progress = &progress, .queue = args[0]};
    struct weir_migrate_options mo = {WEIR_MIGRATE_OPTIONS_INIT, .each = watch_move,
                                      .context = &w};
    struct weir_audit before;
    int64_t moved, begin = wr_clock_ms();
    enum weir_err rc = check(o, args[0], err);

    if (rc == WEIR_OK)
        rc = cli_progress_init(&progress, cli, o->progress, "jobs", err);
    if (rc == WEIR_OK)
        rc = weir_queue_audit(cli->client, args[0], &before, err);
    if (rc != WEIR_OK)
        return rc;
    if (cli->globals.dry_run) {
        cli_note(cli,
                 "Would move queue \"%s\" from %s to %s with %lld waiting job%s. "
                 "Nothing changed.",
                 args[0], before.engine, o->engine, (long long)before.ready,
                 wr_text_s(before.ready));
        return WEIR_OK;
    }
    if (before.moving_to[0] && before.paused)
        cli_note(cli, "Queue \"%s\" was moving to %s before: this %s.", args[0],
                 before.moving_to,
                 strcmp(before.moving_to, o->engine) == 0 ? "goes on with it"
                                                          : "takes it back");
    w.ready = before.ready;
    if (o->wait_ms != CLI_UNSET)
        mo.wait_ms = o->wait_ms == 0 ? WEIR_NONE : o->wait_ms;
    interrupted = 0;
    catch_interrupts(true);
    rc = weir_queue_migrate(cli->client, args[0], o->engine, &mo, &moved, err);
    catch_interrupts(false);
    cli_progress_end(&progress);
    if (rc == WEIR_OK)
        say_done(cli, args[0], &before, o->engine, moved, wr_clock_ms() - begin);
    return rc;
}

const struct cli_cmd cmd_queue_migrate = {
    .noun = "queue",
    .verb = "migrate",
    .group = "Decide",
    .args = "Q",
    .summary = "move a queue to the other engine; producers and workers may go on",
    .examples = "  weir queue migrate mail --engine stream\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = migrate_options,
    .opts_size = sizeof(struct migrate_opts),
    .run = migrate_run,
};
