/* queue ls, show, pause, resume, purge. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/queue_view.h"
#include "cli/queues.h"

#define SLICE 500

static enum weir_err
list_queues(struct cli *cli, const struct cli_list *given, struct weir_error *err)
{
    struct cli_broken broken = {0};
    struct cli_names queues;
    struct cli_table *t;
    enum weir_err rc = cli_queues(cli, given, &queues, err);

    if (rc != WEIR_OK)
        return rc;
    t = cli_queue_table(cli);
    for (size_t i = 0; i < queues.n && rc == WEIR_OK; i++) {
        struct weir_audit a;

        rc = weir_queue_audit(cli->client, queues.names[i], &a, err);
        if (rc == WEIR_OK)
            cli_queue_row(cli, t, queues.names[i], &a);
        else if (cli_is_broken(cli, rc, err, &broken))
            rc = WEIR_OK;
    }
    cli_table_end(t);
    if (rc == WEIR_OK && queues.n == 0)
        cli_note(cli, "No queues.");
    cli_names_fini(&queues);
    return cli_broken_end(&broken, rc, err);
}

static enum weir_err
ls_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    (void)opts;
    (void)args;
    return list_queues(cli, NULL, err);
}

const struct cli_cmd cmd_queue_ls = {
    .noun = "queue",
    .verb = "ls",
    .group = "Look",
    .args = "",
    .summary = "list the queues",
    .examples = "  weir queue ls --json\n",
    .needs = CLI_NEEDS_CLIENT,
    .run = ls_run,
};

/* ---- show ---- */

static void
show_row(struct cli *cli, const char *name, int64_t value)
{
    if (cli_out_is_table(cli))
        cli_print(cli, CLI_DIM, "  %-16s", name);
    else
        fprintf(cli->out, "%s\t", name);
    fprintf(cli->out, "%lld\n", (long long)value);
}

static void
show_counters(struct cli *cli, const struct weir_audit *a)
{
    /* clang-format off */
    const struct { const char *name; int64_t value; } rows[] = {
        {"enqueued", a->enqueued}, {"scheduled", a->scheduled}, {"deliveries", a->deliveries},
        {"done", a->done}, {"retried", a->retried}, {"buried", a->buried},
        {"replayed", a->replayed}, {"released", a->released},
        {"reclaimed", a->reclaimed + a->reclaimed_delayed}, {"cancelled", a->cancelled},
        {"expired", a->expired}, {"purged", a->purged}, {"trimmed", a->trimmed}, {"kept", a->kept},
        {"kept_bytes", a->kept_bytes}, {"dead_bytes", a->dead_bytes}, {"log_bytes", a->log_bytes},
        {"log_dropped", a->log_dropped}, {"shelved", a->shelved},
        {"stale", a->stale}, {"gap", a->gap},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        show_row(cli, rows[i].name, rows[i].value);
}

/* What holds for it, set or not. */
static void
show_limits(struct cli *cli, const struct weir_audit *a)
{
    /* clang-format off */
    const struct { const char *name; int64_t value; } rows[] = {
        {"payload_max", a->payload_max_bytes}, {"kept_max", a->kept_max_jobs},
        {"kept_max_bytes", a->kept_max_bytes}, {"dead_max", a->dead_max_jobs},
        {"dead_max_age_ms", a->dead_max_age_ms}, {"dead_max_bytes", a->dead_max_bytes},
        {"log_max_bytes", a->log_max_bytes}, {"retry", a->max_retry},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        show_row(cli, rows[i].name, rows[i].value);
    if (cli_out_is_table(cli))
        cli_print(cli, CLI_DIM, "  %-16s", "backoff");
    else
        fputs("backoff\t", cli->out);
    fprintf(cli->out, "%s\n", a->backoff);
    if (a->keep_progress_ms >= 0)
        show_row(cli, "keep_progress_ms", a->keep_progress_ms);
}

static enum weir_err
show_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    (void)opts;
    for (; *args && rc == WEIR_OK; args++) {
        const char *name = *args;
        struct cli_list one = {&name, 1};
        struct weir_audit a;

        rc = list_queues(cli, &one, err);
        if (rc == WEIR_OK && !cli_out_is_json(cli) && cli->format != CLI_OUT_ID) {
            rc = weir_queue_audit(cli->client, *args, &a, err);
            if (rc == WEIR_OK) {
                show_counters(cli, &a);
                show_limits(cli, &a);
            }
        }
    }
    return rc;
}

const struct cli_cmd cmd_queue_show = {
    .noun = "queue",
    .verb = "show",
    .group = "Look",
    .args = "Q...",
    .summary = "sizes, counters and limits of a queue",
    .examples = "  weir queue show mail\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .run = show_run,
};

/* ---- pause, resume ---- */

struct pause_opts {
    const char *reason;
};

static const struct cli_opt pause_options[] = {
    {"reason", 0, CLI_TEXT, offsetof(struct pause_opts, reason), "TEXT",
     "why, for those who look at it"},
    {0},
};

static enum weir_err
pause_one(struct cli *cli, const char *queue, const char *why, struct weir_error *err)
{
    struct weir_audit a = {0};
    char sentence[600];
    bool was = false;
    enum weir_err rc = cli_check_queue(queue, err);

    if (rc == WEIR_OK)
        rc = weir_queue_audit(cli->client, queue, &a, err);
    if (rc == WEIR_OK && !cli->globals.dry_run)
        rc = weir_queue_pause(cli->client, queue, NULL, why, &was, err);
    if (rc != WEIR_OK)
        return rc;
    if (cli->globals.dry_run) {
        cli_note(cli, "Would pause queue \"%s\" with %lld ready job%s. Nothing changed.",
                 queue, (long long)a.ready, wr_text_s(a.ready));
        return WEIR_OK;
    }
    snprintf(sentence, sizeof(sentence),
             "%s \"%s\". %lld ready job%s will wait. Resume with: weir queue resume %s",
             was ? "It was paused before: queue" : "Paused queue", queue,
             (long long)a.ready, wr_text_s(a.ready), queue);
    cli_queue_done(cli, queue, was ? "was paused" : "paused", sentence);
    return WEIR_OK;
}

static enum weir_err
pause_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct pause_opts *o = opts;
    enum weir_err rc = WEIR_OK;

    for (; *args && rc == WEIR_OK; args++)
        rc = pause_one(cli, *args, o->reason, err);
    return rc;
}

const struct cli_cmd cmd_queue_pause = {
    .noun = "queue",
    .verb = "pause",
    .group = "Decide",
    .args = "Q...",
    .summary = "hand out no jobs of a queue; those that run go on",
    .examples = "  weir queue pause mail --reason 'smtp down'\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = pause_options,
    .opts_size = sizeof(struct pause_opts),
    .run = pause_run,
};

static enum weir_err
resume_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;
    struct weir_audit a;
    char sentence[300];
    bool was = false, is_known;

    (void)opts;
    for (; *args && rc == WEIR_OK; args++) {
        rc = cli_check_queue(*args, err);
        if (rc == WEIR_OK && cli->globals.dry_run) {
            cli_note(cli, "Would resume queue \"%s\". Nothing changed.", *args);
            continue;
        }
        if (rc != WEIR_OK)
            break;
        /* For a word about it; what cannot be looked at can be resumed all the same. */
        is_known = weir_queue_audit(cli->client, *args, &a, NULL) == WEIR_OK;
        rc = weir_queue_resume(cli->client, *args, &was, err);
        if (rc != WEIR_OK)
            break;
        if (is_known && a.moving_to[0] && strcmp(a.engine, a.moving_to) != 0)
            cli_note(cli,
                     "Queue \"%s\" was moving to %s: that is called off. If nobody is at "
                     "it, clean up with: weir queue migrate %s --engine %s",
                     *args, a.moving_to, *args, a.engine);
        snprintf(sentence, sizeof(sentence), "%s \"%s\".",
                 was ? "It was not paused: queue" : "Resumed queue", *args);
        cli_queue_done(cli, *args, was ? "was running" : "resumed", sentence);
    }
    return rc;
}

const struct cli_cmd cmd_queue_resume = {
    .noun = "queue",
    .verb = "resume",
    .group = "Decide",
    .args = "Q...",
    .summary = "hand out jobs of a paused queue again",
    .examples = "  weir queue resume mail\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .run = resume_run,
};

/* ---- purge ---- */

struct purge_opts {
    struct cli_list states;
};

static const struct cli_opt purge_options[] = {
    {"state", 's', CLI_LIST, offsetof(struct purge_opts, states), "STATE",
     "only ready or delayed ones; default both"},
    {0},
};

static bool
wants(const struct purge_opts *o, const char *state)
{
    for (size_t i = 0; i < o->states.n; i++) {
        if (strcmp(o->states.items[i], state) == 0)
            return true;
    }
    return o->states.n == 0;
}

/* At most `count` of them: jobs that come meanwhile were not asked about. */
static enum weir_err
purge_state(struct cli *cli, const char *queue, const char *state, int64_t count,
            int64_t *total, struct weir_error *err)
{
    struct cli_progress progress;
    int64_t done = 0;
    size_t moved = 1;
    enum weir_err rc = cli_progress_init(&progress, cli, NULL, "jobs cancelled", err);

    while (rc == WEIR_OK && done < count && moved > 0) {
        size_t limit = count - done < SLICE ? (size_t)(count - done) : SLICE;

        rc = weir_queue_purge(cli->client, queue, state, limit, &moved, err);
        done += (int64_t)moved;
        cli_progress_show(&progress, done, done, count);
    }
    cli_progress_end(&progress);
    *total += done;
    return rc;
}

static enum weir_err
check_states(const struct purge_opts *o, struct weir_error *err)
{
    for (size_t i = 0; i < o->states.n; i++) {
        if (strcmp(o->states.items[i], "ready") != 0 &&
            strcmp(o->states.items[i], "delayed") != 0)
            return wr_fail(err, WEIR_E_ARG, 0,
                           "--state: \"%.20s\" is not ready or delayed; dead ones: weir "
                           "dead purge",
                           o->states.items[i]);
    }
    return WEIR_OK;
}

static enum weir_err
purge_queue(struct cli *cli, const struct purge_opts *o, const char *queue,
            struct weir_error *err)
{
    struct weir_audit a = {0};
    int64_t ready, delayed, total = 0;
    char sentence[300], word[40];
    enum weir_err rc = weir_queue_audit(cli->client, queue, &a, err);

    ready = wants(o, "ready") ? a.ready : 0;
    delayed = wants(o, "delayed") ? a.delayed : 0;
    if (rc == WEIR_OK && cli->globals.dry_run) {
        cli_note(cli, "Would cancel %lld ready and %lld delayed job%s. Nothing changed.",
                 (long long)ready, (long long)delayed, wr_text_s(delayed));
        return WEIR_OK;
    }
    if (rc == WEIR_OK && ready + delayed > 0)
        rc = cli_confirm(
            cli, err,
            "This will cancel %lld ready and %lld delayed job%s of queue \"%s\".",
            (long long)ready, (long long)delayed, wr_text_s(delayed), queue);
    if (rc == WEIR_OK)
        rc = purge_state(cli, queue, "ready", ready, &total, err);
    if (rc == WEIR_OK)
        rc = purge_state(cli, queue, "delayed", delayed, &total, err);
    if (rc != WEIR_OK)
        return rc;
    snprintf(word, sizeof(word), "%lld", (long long)total);
    snprintf(sentence, sizeof(sentence), "Cancelled %lld job%s of queue \"%s\".",
             (long long)total, wr_text_s(total), queue);
    cli_queue_done(cli, queue, word, sentence);
    return WEIR_OK;
}

static enum weir_err
purge_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    enum weir_err rc = check_states(opts, err);

    if (rc == WEIR_OK)
        rc = cli_check_queue(args[0], err);
    if (rc == WEIR_OK)
        rc = purge_queue(cli, opts, args[0], err);
    return rc;
}

const struct cli_cmd cmd_queue_purge = {
    .noun = "queue",
    .verb = "purge",
    .group = "Decide",
    .args = "Q",
    .summary = "cancel all jobs of a queue that wait",
    .examples =
        "  weir queue purge mail --dry-run\n  weir queue purge mail -s delayed --yes\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = purge_options,
    .opts_size = sizeof(struct purge_opts),
    .run = purge_run,
};
