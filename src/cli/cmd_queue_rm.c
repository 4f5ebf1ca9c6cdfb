/* queue rm: removes queues that hold nothing and that nobody serves by name. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/queues.h"
#include "cli/roster.h"

/* What makes it unused. */
static void
tell_what_to_do(const char *queue, const char *used_by)
{
    static const struct {
        const char *what, *text, *commands[2]; /* each ends with the queue's name */
    } rows[] = {
        {"processing",
         "Wait until it ends, or cancel it",
         {"weir job ls -s processing -q"}},
        {"ready", "Let a worker run it, or cancel it", {"weir queue purge"}},
        {"delayed",
         "Let a worker run it when it is due, or cancel it",
         {"weir queue purge"}},
        {"dead",
         "Run it again, or remove it",
         {"weir dead retry --all -q", "weir dead purge --all -q"}},
        {"done", "It goes when its --keep-result is over", {"weir job ls -s done -q"}},
        {"broken", "See which", {"weir audit --deep -q"}},
        {"outbox", "A worker or a scheduler enqueues them", {"weir scheduler -q"}},
        {"moving", "See what goes on with it or takes it back", {"weir queue show"}},
        {"cron", "Remove it with weir cron rm", {"weir cron ls -q"}},
        {"windows", "Wait until the TTL of its --unique KEY:TTL is over", {NULL}},
        {"producers",
         "It may repeat its call: wait a minute after its last one",
         {"weir queue rm"}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].what, used_by) != 0)
            continue;
        fprintf(stderr, "      %s", rows[i].text);
        for (size_t k = 0; k < 2 && rows[i].commands[k]; k++)
            fprintf(stderr, "%s %s %s", k == 0 ? ":" : ";", rows[i].commands[k], queue);
        fputs(rows[i].commands[0] ? "\n" : ".\n", stderr);
    }
}

/* Of a refusal also what to do about it. */
static enum weir_err
refused(struct cli *cli, const char *queue, enum weir_err rc,
        const struct weir_error *err)
{
    struct weir_queue_use use;

    if (rc != WEIR_E_WRONG_STATE)
        return rc;
    cli_tell(cli, rc, err);
    if (weir_queue_used_by(cli->client, queue, &use, NULL) == WEIR_OK)
        tell_what_to_do(queue, use.what);
    return rc;
}

/* Its id is what somebody has put among the workers. */
static void
say_worker(const char *queue, const char *id)
{
    struct wr_buf text = {0};

    wr_text_escape(&text, wr_span_str(id));
    fprintf(stderr, "      Start it without -q %s, or stop it: weir worker stop %s\n",
            queue, text.failed ? "ID" : text.ptr);
    wr_buf_fini(&text);
}

/* Who serves every registered queue lets it go; who names it would make its keys anew. */
static enum weir_err
check_workers(struct cli *cli, const char *queue, struct weir_error *err)
{
    struct cli_roster r;
    enum weir_err rc = cli_roster_read(cli, true, &r, err);

    if (rc != WEIR_OK)
        return rc;
    for (size_t i = 0; i < r.n && rc == WEIR_OK; i++) {
        const struct cli_worker *w = &r.workers[i];

        if (strcmp(cli_worker_state(w), "late") == 0 || !cli_worker_names(w, queue))
            continue;
        rc = wr_fail(err, WEIR_E_WRONG_STATE, 0,
                     "queue %s is in use: worker %s serves it", queue, w->id);
        cli_tell(cli, rc, err);
        say_worker(queue, w->id);
    }
    cli_roster_fini(&r);
    return rc;
}

static void
say_removed(struct cli *cli, const char *queue, const struct weir_queue_past *p)
{
    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "queue", queue);
        cli_json_text(json, "result", "removed");
        cli_json_int(json, "enqueued", p->enqueued);
        cli_json_int(json, "done", p->done);
        cli_json_int(json, "cancelled", p->cancelled);
        cli_json_int(json, "expired", p->expired);
        cli_json_int(json, "purged", p->purged);
        cli_json_print(json, cli->out);
        cli_json_free(json);
    } else if (cli_out_is_table(cli)) {
        fprintf(cli->out,
                "Removed queue \"%s\". Of its %lld job%s: done %lld, cancelled %lld, "
                "expired %lld, purged %lld.\n",
                queue, (long long)p->enqueued, wr_text_s(p->enqueued), (long long)p->done,
                (long long)p->cancelled, (long long)p->expired, (long long)p->purged);
    } else {
        cli_print_id(cli, queue);
        if (cli->format != CLI_OUT_ID)
            fprintf(cli->out, "\tremoved\t%lld", (long long)p->enqueued);
        fputc('\n', cli->out);
    }
}

static enum weir_err
remove_one(struct cli *cli, const char *queue, struct weir_error *err)
{
    struct weir_queue_past past;
    enum weir_err rc = cli_check_queue(queue, err);

    if (rc == WEIR_OK)
        rc = check_workers(cli, queue, err);
    if (rc == WEIR_OK)
        rc = refused(cli, queue, weir_queue_check_unused(cli->client, queue, err), err);
    if (cli->globals.dry_run) {
        if (rc == WEIR_OK)
            cli_note(cli, "Would remove queue \"%s\". Nothing changed.", queue);
        return rc;
    }
    if (rc == WEIR_OK)
        rc = cli_confirm(cli, err,
                         "This will remove queue \"%s\", its settings and its counters.",
                         queue);
    if (rc == WEIR_OK || rc == WEIR_E_NO_QUEUE) /* a name without a queue goes as well */
        rc = refused(cli, queue, weir_queue_remove(cli->client, queue, &past, err), err);
    if (rc == WEIR_OK)
        say_removed(cli, queue, &past);
    return rc;
}

static enum weir_err
rm_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    (void)opts;
    for (; *args && rc == WEIR_OK; args++)
        rc = remove_one(cli, *args, err);
    return rc;
}

const struct cli_cmd cmd_queue_rm = {
    .noun = "queue",
    .verb = "rm",
    .group = "Decide",
    .args = "Q...",
    .summary = "remove queues that hold nothing and that nobody uses",
    .examples = "  weir queue rm old --dry-run\n  weir queue rm old --yes\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .run = rm_run,
};
