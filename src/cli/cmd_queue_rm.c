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

        if (strcmp(cli_worker_state(w), "late") != 0 && cli_worker_names(w, queue))
            rc = wr_fail(err, WEIR_E_WRONG_STATE, 0,
                         "queue %s is in use: worker %s serves it", queue, w->id);
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
        rc = weir_queue_check_unused(cli->client, queue, err);
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
        rc = weir_queue_remove(cli->client, queue, &past, err);
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
