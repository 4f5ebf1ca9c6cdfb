/* job ls, show, wait, payload, result, cancel: jobs by their ids. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/job_view.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/queues.h"
#include "cli/wait_bar.h"

#define WAIT_FOR_EVER_MS (INT64_C(1) << 50)

struct one_opts {
    const char *queue;
};

#define QUEUE_OPTION(type)                                                            \
    {                                                                                 \
        "queue", 'q', CLI_TEXT, offsetof(type, queue), "Q", "look only in this queue" \
    }

static const struct cli_opt one_options[] = {QUEUE_OPTION(struct one_opts), {0}};

/* ---- ls ---- */

struct ls_opts {
    struct cli_list queues, states;
    const char *type;
    int64_t limit, scan, since;
    bool overdue, upcoming;
};

static const struct cli_opt ls_options[] = {
    {"queue", 'q', CLI_LIST, offsetof(struct ls_opts, queues), "Q",
     "only this queue; may be repeated"},
    {"state", 's', CLI_LIST, offsetof(struct ls_opts, states), "STATE",
     "ready, delayed, processing, dead or done; may be repeated"},
    {"type", 't', CLI_TEXT, offsetof(struct ls_opts, type), "T",
     "only jobs of this type"},
    {"since", 0, CLI_DURATION, offsetof(struct ls_opts, since), "D",
     "only jobs enqueued at most so long ago"},
    {"limit", 0, CLI_COUNT, offsetof(struct ls_opts, limit), "N",
     "at most so many; default 100"},
    {"scan", 0, CLI_COUNT, offsetof(struct ls_opts, scan), "N",
     "look at no more than so many of each state; default 100000"},
    {"overdue", 0, CLI_FLAG, offsetof(struct ls_opts, overdue), NULL,
     "only delayed jobs that are due and were not moved to ready"},
    {"upcoming", 0, CLI_FLAG, offsetof(struct ls_opts, upcoming), NULL,
     "only delayed jobs that are not due yet, the next first"},
    {0},
};

struct ls {
    struct cli *cli;
    const struct ls_opts *opts;
    struct cli_table *table;
    int64_t left, now;
    int64_t server_now; /* --overdue, --upcoming: the server's clock says what is due */
};

static bool
is_wanted(const struct ls *ls, const struct weir_job_view *v)
{
    struct weir_job_numbers n;

    weir_job_view_numbers(v, &n);
    if (ls->opts->type && strcmp(ls->opts->type, weir_job_view_type(v)) != 0)
        return false;
    if ((ls->opts->overdue && n.due_at > ls->server_now) ||
        (ls->opts->upcoming && n.due_at <= ls->server_now))
        return false;
    if ((ls->opts->overdue || ls->opts->upcoming) && *weir_job_view_behind(v))
        return false; /* no time makes it start */
    return ls->opts->since == CLI_UNSET || n.enqueued_at >= ls->now - ls->opts->since;
}

static bool
ls_row(const struct weir_job_view *v, void *context)
{
    struct ls *ls = context;

    if (!is_wanted(ls, v))
        return true;
    cli_job_row(ls->cli, ls->table, v);
    return --ls->left > 0;
}

static enum weir_err
ls_queue(struct ls *ls, const char *queue, struct weir_error *err)
{
    static const char *all[] = {"ready", "delayed", "processing", "dead", "done"};
    struct cli_list states = ls->opts->states;
    enum weir_err rc = WEIR_OK;

    if (ls->opts->overdue || ls->opts->upcoming) {
        struct weir_audit a = {0};

        rc = weir_queue_audit(ls->cli->client, queue, &a, err);
        ls->server_now = a.now;
    }
    if (states.n == 0)
        states = (struct cli_list){all, sizeof(all) / sizeof(all[0])};
    for (size_t i = 0; i < states.n && ls->left > 0 && rc == WEIR_OK; i++)
        rc = weir_job_list(ls->cli->client, queue, states.items[i],
                           (size_t)ls->opts->scan, ls_row, ls, err);
    return rc;
}

/* Only delayed jobs are due at a time; that state need not be named. */
static enum weir_err
check_due(struct ls_opts *o, struct weir_error *err)
{
    static const char *delayed[] = {"delayed"};

    if (!o->overdue && !o->upcoming)
        return WEIR_OK;
    if (o->overdue && o->upcoming)
        return wr_fail(err, WEIR_E_ARG, 0, "overdue and upcoming: give one of them");
    for (size_t i = 0; i < o->states.n; i++) {
        if (strcmp(o->states.items[i], "delayed") != 0)
            return wr_fail(err, WEIR_E_ARG, 0,
                           "overdue and upcoming are about delayed jobs, not %.20s",
                           o->states.items[i]);
    }
    o->states = (struct cli_list){delayed, 1};
    return WEIR_OK;
}

static enum weir_err
list_jobs(struct cli *cli, const struct ls_opts *given, struct weir_error *err)
{
    struct ls_opts o = *given;
    struct ls ls = {.cli = cli, .opts = &o, .now = wr_clock_wall_ms()};
    struct cli_names queues;
    enum weir_err rc = check_due(&o, err);

    if (rc == WEIR_OK)
        rc = cli_queues(cli, &o.queues, &queues, err);
    if (rc != WEIR_OK)
        return rc;
    o.scan = o.scan == CLI_UNSET ? 100000 : o.scan;
    ls.left = o.limit == CLI_UNSET ? 100 : o.limit;
    ls.table = cli_job_table(cli);
    for (size_t i = 0; i < queues.n && ls.left > 0 && rc == WEIR_OK; i++)
        rc = ls_queue(&ls, queues.names[i], err);
    cli_table_end(ls.table);
    cli_names_fini(&queues);
    return rc;
}

static enum weir_err
ls_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    (void)args;
    return list_jobs(cli, opts, err);
}

const struct cli_cmd cmd_job_ls = {
    .noun = "job",
    .verb = "ls",
    .group = "Look",
    .args = "",
    .summary = "list jobs",
    .examples = "  weir job ls -q mail -s dead\n"
                "  weir job ls -t welcome -o id | weir job cancel -\n"
                "  weir job ls --upcoming --limit 10\n",
    .needs = CLI_NEEDS_CLIENT,
    .opts = ls_options,
    .opts_size = sizeof(struct ls_opts),
    .run = ls_run,
};

/* ---- dead ls ---- */

static enum weir_err
dead_ls_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    static const char *dead[] = {"dead"};
    struct ls_opts o = *(const struct ls_opts *)opts;

    (void)args;
    o.states = (struct cli_list){dead, 1};
    return list_jobs(cli, &o, err);
}

static const struct cli_opt dead_ls_options[] = {
    {"queue", 'q', CLI_LIST, offsetof(struct ls_opts, queues), "Q",
     "only this queue; may be repeated"},
    {"type", 't', CLI_TEXT, offsetof(struct ls_opts, type), "T",
     "only jobs of this type"},
    {"since", 0, CLI_DURATION, offsetof(struct ls_opts, since), "D",
     "only jobs enqueued at most so long ago"},
    {"limit", 0, CLI_COUNT, offsetof(struct ls_opts, limit), "N",
     "at most so many; default 100"},
    {"scan", 0, CLI_COUNT, offsetof(struct ls_opts, scan), "N",
     "look at no more than so many; default 100000"},
    {0},
};

const struct cli_cmd cmd_dead_ls = {
    .noun = "dead",
    .verb = "ls",
    .group = "Look",
    .args = "",
    .summary = "list the jobs that were given up, the oldest first",
    .examples = "  weir dead ls -q mail\n",
    .needs = CLI_NEEDS_CLIENT,
    .opts = dead_ls_options,
    .opts_size = sizeof(struct ls_opts),
    .run = dead_ls_run,
};

/* ---- show ---- */

struct show {
    const char *queue;
    bool only_dead;
};

/* What is left of a job that is over and not kept: its last progress, perhaps. */
static enum weir_err
show_over(struct cli *cli, const char *id, const char *queue, struct weir_error *err)
{
    struct weir_error no_job = *err;
    struct weir_job_view *v;
    enum weir_err rc = weir_job_progress(cli->client, queue, id, &v, err);

    if (rc == WEIR_E_NO_JOB)
        *err = no_job;
    if (rc != WEIR_OK)
        return rc;
    cli_job_show_over(cli, v);
    weir_job_view_free(v);
    return WEIR_OK;
}

static enum weir_err
show_one(struct cli *cli, const char *id, void *context, struct weir_error *err)
{
    const struct show *show = context;
    struct weir_job_view *v;
    enum weir_err rc = weir_job_inspect(cli->client, show->queue, id, &v, err);

    if (rc == WEIR_E_NO_JOB && !show->only_dead)
        return show_over(cli, id, show->queue, err);
    if (rc != WEIR_OK)
        return rc;
    if (show->only_dead && strcmp(weir_job_view_state(v), "dead") != 0)
        rc = wr_fail(err, WEIR_E_WRONG_STATE, 0, "job %.100s is not dead, it is %s", id,
                     weir_job_view_state(v));
    else
        cli_job_show(cli, v);
    weir_job_view_free(v);
    return rc;
}

static enum weir_err
show_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct one_opts *o = opts;
    struct show show = {o->queue, false};

    return cli_each_id(cli, args, show_one, &show, err);
}

const struct cli_cmd cmd_job_show = {
    .noun = "job",
    .verb = "show",
    .group = "Look",
    .args = "ID...",
    .summary = "all that is known of a job",
    .examples =
        "  weir job show 06e5k3...\n  weir job show --json 06e5k3... | jq .state\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = one_options,
    .opts_size = sizeof(struct one_opts),
    .run = show_run,
};

static enum weir_err
dead_show_run(struct cli *cli, const void *opts, char *const *args,
              struct weir_error *err)
{
    const struct one_opts *o = opts;
    struct show show = {o->queue, true};

    return cli_each_id(cli, args, show_one, &show, err);
}

const struct cli_cmd cmd_dead_show = {
    .noun = "dead",
    .verb = "show",
    .group = "Look",
    .args = "ID...",
    .summary = "all that is known of a dead job",
    .examples = "  weir dead show 06e5k3...\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = one_options,
    .opts_size = sizeof(struct one_opts),
    .run = dead_show_run,
};

/* ---- payload, result ---- */

struct bytes {
    const char *queue;
    bool many, result;
};

static void
print_bytes(struct cli *cli, const struct bytes *b, const char *id, const void *ptr,
            size_t len)
{
    struct wr_buf shown = {0};

    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "id", id);
        cli_json_bytes(json, b->result ? "result" : "payload", ptr, len);
        cli_json_print(json, cli->out);
        cli_json_free(json);
    } else if (b->many || cli->out_is_tty) {
        wr_text_escape(&shown, (struct wr_span){ptr, len});
        if (b->many) {
            cli_print_id(cli, id);
            fputc('\t', cli->out);
        }
        fprintf(cli->out, "%s\n", (const char *)wr_buf_span(&shown).ptr);
    } else {
        fwrite(ptr, 1, len, cli->out);
    }
    wr_buf_fini(&shown);
}

static enum weir_err
bytes_one(struct cli *cli, const char *id, void *context, struct weir_error *err)
{
    const struct bytes *b = context;
    struct weir_job_view *v;
    const void *ptr;
    size_t len;
    enum weir_err rc = weir_job_inspect(cli->client, b->queue, id, &v, err);

    if (rc != WEIR_OK)
        return rc;
    ptr = b->result ? weir_job_view_result(v, &len) : weir_job_view_payload(v, &len);
    if (b->result && strcmp(weir_job_view_state(v), "done") != 0)
        rc = wr_fail(err, WEIR_E_WRONG_STATE, 0, "job %.100s has no result, it is %s", id,
                     weir_job_view_state(v));
    else
        print_bytes(cli, b, id, ptr, len);
    weir_job_view_free(v);
    return rc;
}

static enum weir_err
payload_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct one_opts *o = opts;
    struct bytes b = {o->queue, cli_ids_are_many(args), false};

    return cli_each_id(cli, args, bytes_one, &b, err);
}

const struct cli_cmd cmd_job_payload = {
    .noun = "job",
    .verb = "payload",
    .group = "Look",
    .args = "ID...",
    .summary = "the bytes of a job's payload; of several: lines of id and payload",
    .examples = "  weir job payload 06e5k3... > payload.bin\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = one_options,
    .opts_size = sizeof(struct one_opts),
    .run = payload_run,
};

static enum weir_err
result_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct one_opts *o = opts;
    struct bytes b = {o->queue, cli_ids_are_many(args), true};

    return cli_each_id(cli, args, bytes_one, &b, err);
}

const struct cli_cmd cmd_job_result = {
    .noun = "job",
    .verb = "result",
    .group = "Look",
    .args = "ID...",
    .summary = "the bytes of a job's result; of several: lines of id and result",
    .examples = "  weir job result 06e5k3...\n"
                "  weir job ls -s done -o id | weir job result -\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = one_options,
    .opts_size = sizeof(struct one_opts),
    .run = result_run,
};

/* ---- wait ---- */

struct wait_opts {
    const char *queue, *progress;
    int64_t timeout;
    bool any;
};

static const struct cli_opt wait_options[] = {
    QUEUE_OPTION(struct wait_opts),
    {"any", 0, CLI_FLAG, offsetof(struct wait_opts, any), NULL,
     "until the first of them ended"},
    {"timeout", 0, CLI_DURATION, offsetof(struct wait_opts, timeout), "D",
     "give up after so long (exit 124)"},
    {"progress", 0, CLI_MAYBE, offsetof(struct wait_opts, progress), "FORM",
     "how far it is, on stderr: auto (on a terminal), json or none"},
    {0},
};

struct waiting {
    struct cli *cli;
    struct cli_wait_bar *bar;
    bool any;
    char **ids;
    size_t n, ended;
    enum weir_err first; /* of those that were told */
};

static void
print_end(struct cli *cli, const struct weir_job_view *v)
{
    if (cli->globals.quiet)
        return;
    if (cli_out_is_json(cli)) {
        cli_job_show(cli, v);
        return;
    }
    cli_print_id(cli, weir_job_view_id(v));
    if (cli->format != CLI_OUT_ID)
        fprintf(cli->out, "\t%s", weir_job_view_state(v));
    fputc('\n', cli->out);
    fflush(cli->out);
}

static enum weir_err
keep_id(struct cli *cli, const char *id, void *context, struct weir_error *err)
{
    struct waiting *w = context;

    (void)cli;
    (void)err;
    w->ids = cli_grow(w->ids, w->n + 1, sizeof(*w->ids));
    w->ids[w->n++] = cli_strdup(id);
    return WEIR_OK;
}

/* Each says its end as it comes; an end other than success is told at once. */
static bool
end_one(size_t index, enum weir_err rc, struct weir_job_view *v,
        const struct weir_error *err, void *context)
{
    struct waiting *w = context;
    struct weir_error why = *err;

    if (rc == WEIR_E_TIMEOUT && w->any) { /* said once, for all of them */
        weir_job_view_free(v);
        return true;
    }
    cli_wait_bar_hide(w->bar);
    if (rc == WEIR_OK || rc == WEIR_E_JOB_FAILED)
        print_end(w->cli, v);
    weir_job_view_free(v);
    w->ended++;
    if (rc != WEIR_OK) {
        if (!strstr(why.text, w->ids[index]))
            (void)wr_fail(&why, rc, 0, "%.100s: %.140s", w->ids[index], err->text);
        cli_tell(w->cli, rc, &why);
        if (w->first == WEIR_OK)
            w->first = rc;
    }
    cli_wait_bar_go_on(w->bar, true);
    return !w->any;
}

static enum weir_err
wait_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct wait_opts *o = opts;
    struct waiting w = {.cli = cli, .any = o->any};
    enum weir_err rc = cli_each_id(cli, args, keep_id, &w, err);

    if (rc == WEIR_OK)
        rc = cli_wait_bar_start(cli, o->progress, o->queue, w.ids, w.n, &w.bar, err);
    if (rc == WEIR_OK && w.n > 0)
        rc = weir_result_wait_each(
            cli->client, o->queue, (const char *const *)w.ids, w.n,
            o->timeout == CLI_UNSET ? WAIT_FOR_EVER_MS : o->timeout, end_one, &w, err);
    cli_wait_bar_stop(w.bar);
    if (rc == WEIR_OK && o->any && w.n > 0 && w.ended == 0)
        rc = wr_fail(err, WEIR_E_TIMEOUT, 0, "none of %zu jobs has ended", w.n);
    for (size_t i = 0; i < w.n; i++)
        free(w.ids[i]);
    free(w.ids);
    return rc != WEIR_OK ? rc : w.first;
}

const struct cli_cmd cmd_job_wait = {
    .noun = "job",
    .verb = "wait",
    .group = "Look",
    .args = "ID...",
    .summary = "wait until jobs ended; exit 0 when every one succeeded",
    .examples = "  weir job wait --timeout 1m 06e5k3... && echo done\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = wait_options,
    .opts_size = sizeof(struct wait_opts),
    .run = wait_run,
};

/* ---- cancel ---- */

static void
print_cancelled(struct cli *cli, const char *id, enum weir_cancel_result how)
{
    const char *word = how == WEIR_CANCELLED ? "cancelled" : "flagged";

    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "id", id);
        cli_json_text(json, "result", word);
        cli_json_print(json, cli->out);
        cli_json_free(json);
    } else if (cli_out_is_table(cli)) {
        fputs(how == WEIR_CANCELLED ? "Cancelled " : "Flagged ", cli->out);
        cli_print_id(cli, id);
        fputs(how == WEIR_CANCELLED ? ".\n" : ": it runs; its worker has been told.\n",
              cli->out);
    } else {
        cli_print_id(cli, id);
        if (cli->format != CLI_OUT_ID)
            fprintf(cli->out, "\t%s", word);
        fputc('\n', cli->out);
    }
}

static enum weir_err
would_cancel(struct cli *cli, const char *queue, const char *id, struct weir_error *err)
{
    struct weir_job_view *v;
    enum weir_err rc = weir_job_inspect(cli->client, queue, id, &v, err);

    if (rc != WEIR_OK)
        return rc;
    cli_print_id(cli, id);
    fprintf(cli->out, "\t%s\n", weir_job_view_state(v));
    weir_job_view_free(v);
    return WEIR_OK;
}

static enum weir_err
cancel_one(struct cli *cli, const char *id, void *context, struct weir_error *err)
{
    const struct one_opts *o = context;
    enum weir_cancel_result how = WEIR_CANCELLED;
    enum weir_err rc;

    if (cli->globals.dry_run)
        return would_cancel(cli, o->queue, id, err);
    rc = weir_job_cancel(cli->client, o->queue, id, &how, err);
    if (rc == WEIR_OK)
        print_cancelled(cli, id, how);
    return rc;
}

static enum weir_err
cancel_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    struct one_opts o = *(const struct one_opts *)opts;

    return cli_each_id(cli, args, cancel_one, &o, err);
}

const struct cli_cmd cmd_job_cancel = {
    .noun = "job",
    .verb = "cancel",
    .group = "Decide",
    .args = "ID...",
    .summary = "call off jobs; one that runs is told to stop",
    .examples = "  weir job cancel 06e5k3...\n"
                "  weir job ls -t welcome -s ready | weir job cancel -\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = one_options,
    .opts_size = sizeof(struct one_opts),
    .run = cancel_run,
};
