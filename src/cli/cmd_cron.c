/* cron ls, show, next, pause, resume, run, rm. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "cli/commands.h"
#include "cli/cron_view.h"
#include "cli/json.h"
#include "cli/queues.h"

struct cron_opts {
    const char *queue, *tz, *id;
    int64_t count;
};

static const struct cli_opt queue_option[] = {
    {"queue", 'q', CLI_TEXT, offsetof(struct cron_opts, queue), "Q",
     "the queue of the entry; default: the one that has it"},
    {0},
};

static const struct cli_opt run_options[] = {
    {"queue", 'q', CLI_TEXT, offsetof(struct cron_opts, queue), "Q",
     "the queue of the entry; default: the one that has it"},
    {"id", 0, CLI_TEXT, offsetof(struct cron_opts, id), "ID",
     "of this call: for an hour a repeat with the same makes no second job"},
    {0},
};

/* ---- ls ---- */

struct listing {
    struct cli *cli;
    struct cli_table *table;
    const char *queue;
    size_t n;
};

static bool
list_one(const char *name, const struct weir_cron_info *info, void *context)
{
    struct listing *l = context;

    if (info)
        cli_cron_row(l->cli, l->table, info);
    else
        cli_note(l->cli, "weir: cron entry \"%s\" of queue %s cannot be read", name,
                 l->queue);
    l->n++;
    return true;
}

static enum weir_err
ls_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct cron_opts *o = opts;
    struct cli_list one = {(const char **)(uintptr_t)&o->queue, o->queue ? 1 : 0};
    struct listing l = {.cli = cli};
    struct cli_names queues;
    enum weir_err rc = cli_queues(cli, &one, &queues, err);

    (void)args;
    if (rc != WEIR_OK)
        return rc;
    l.table = cli_cron_table(cli);
    for (size_t i = 0; i < queues.n && rc == WEIR_OK; i++) {
        l.queue = queues.names[i];
        rc = weir_cron_list(cli->client, queues.names[i], list_one, &l, err);
    }
    cli_table_end(l.table);
    if (rc == WEIR_OK && l.n == 0)
        cli_note(cli, "No cron entries.");
    cli_names_fini(&queues);
    return rc;
}

const struct cli_cmd cmd_cron_ls = {
    .noun = "cron",
    .verb = "ls",
    .group = "Look",
    .args = "",
    .summary = "list the cron entries",
    .examples = "  weir cron ls\n  weir cron ls -q reports --json\n",
    .needs = CLI_NEEDS_CLIENT,
    .opts = queue_option,
    .opts_size = sizeof(struct cron_opts),
    .run = ls_run,
};

/* ---- show, next ---- */

static enum weir_err
show_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct cron_opts *o = opts;
    enum weir_err rc = WEIR_OK;

    for (; *args && rc == WEIR_OK; args++) {
        struct weir_cron_info *info;

        rc = cli_cron_find(cli, o->queue, *args, &info, err);
        if (rc == WEIR_OK)
            cli_cron_show(cli, info);
        weir_cron_info_free(info);
    }
    return rc;
}

const struct cli_cmd cmd_cron_show = {
    .noun = "cron",
    .verb = "show",
    .group = "Look",
    .args = "NAME...",
    .summary = "all about a cron entry",
    .examples = "  weir cron show nightly\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = queue_option,
    .opts_size = sizeof(struct cron_opts),
    .run = show_run,
};

static const struct cli_opt next_options[] = {
    {"queue", 'q', CLI_TEXT, offsetof(struct cron_opts, queue), "Q",
     "the queue of the entry; default: the one that has it"},
    {"count", 0, CLI_COUNT, offsetof(struct cron_opts, count), "N",
     "how many times, 1 to 1000; default 5"},
    {"tz", 0, CLI_TEXT, offsetof(struct cron_opts, tz), "ZONE",
     "as if the entry had this time zone"},
    {0},
};

static enum weir_err
next_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct cron_opts *o = opts;
    int64_t count = o->count == CLI_UNSET ? CLI_CRON_PREVIEW : o->count;
    struct weir_cron_info *info;
    enum weir_err rc;

    if (count < 1 || count > CLI_CRON_PREVIEW_MAX)
        return wr_fail(err, WEIR_E_ARG, 0, "--count: from 1 to %d", CLI_CRON_PREVIEW_MAX);
    rc = cli_cron_find(cli, o->queue, args[0], &info, err);
    if (rc != WEIR_OK)
        return rc;
    if (info->paused)
        cli_note(cli, "Note: the entry is paused.");
    rc = cli_cron_preview(cli, info->entry.name, info->entry.schedule,
                          o->tz ? o->tz : info->entry.zone, info->now, (size_t)count,
                          err);
    weir_cron_info_free(info);
    return rc;
}

const struct cli_cmd cmd_cron_next = {
    .noun = "cron",
    .verb = "next",
    .group = "Look",
    .args = "NAME",
    .summary = "the next times of a cron entry",
    .examples = "  weir cron next nightly --count 20\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = next_options,
    .opts_size = sizeof(struct cron_opts),
    .run = next_run,
};

/* ---- pause, resume, run, rm ---- */

typedef enum weir_err (*entry_fn)(struct cli *cli, const struct cron_opts *o,
                                  const char *queue, const char *name,
                                  struct weir_error *err);

/* Calls fn with each named entry; what is refused is told, the others go on. */
static enum weir_err
each_entry(struct cli *cli, const struct cron_opts *o, char *const *args,
           const char *verb, entry_fn fn, struct weir_error *err)
{
    enum weir_err first = WEIR_OK;

    for (; *args; args++) {
        struct weir_cron_info *info;
        enum weir_err rc = cli_cron_find(cli, o->queue, *args, &info, err);

        if (rc == WEIR_OK && cli->globals.dry_run)
            cli_note(cli, "Would %s cron entry \"%s\" of queue %s. Nothing changed.",
                     verb, *args, info->entry.queue);
        else if (rc == WEIR_OK)
            rc = fn(cli, o, info->entry.queue, *args, err);
        else if (rc == WEIR_E_CORRUPT && o->queue && strcmp(verb, "remove") == 0)
            rc = fn(cli, o, o->queue, *args, err); /* unreadable: just this helps */
        weir_cron_info_free(info);
        if (rc == WEIR_OK)
            continue;
        if (weir_err_kind_of(rc) != WEIR_KIND_STATE &&
            weir_err_kind_of(rc) != WEIR_KIND_USAGE)
            return rc;
        cli_tell(cli, rc, err);
        first = first == WEIR_OK ? rc : first;
    }
    return first;
}

static enum weir_err
pause_one(struct cli *cli, const struct cron_opts *o, const char *queue, const char *name,
          struct weir_error *err)
{
    char sentence[700];
    bool was;
    enum weir_err rc = weir_cron_pause(cli->client, queue, name, &was, err);

    (void)o;
    if (rc != WEIR_OK)
        return rc;
    snprintf(sentence, sizeof(sentence),
             "%s cron entry \"%s\". Its ticks pass without a job. Resume with: weir cron "
             "resume %s",
             was ? "Was paused before:" : "Paused", name, name);
    cli_cron_done(cli, queue, name, "paused", sentence);
    return WEIR_OK;
}

static enum weir_err
resume_one(struct cli *cli, const struct cron_opts *o, const char *queue,
           const char *name, struct weir_error *err)
{
    char sentence[700];
    bool was;
    enum weir_err rc = weir_cron_resume(cli->client, queue, name, &was, err);

    (void)o;
    if (rc != WEIR_OK)
        return rc;
    snprintf(sentence, sizeof(sentence),
             "%s cron entry \"%s\". Next times: weir cron next %s",
             was ? "Was not paused:" : "Resumed", name, name);
    cli_cron_done(cli, queue, name, "resumed", sentence);
    return WEIR_OK;
}

static enum weir_err
remove_one(struct cli *cli, const struct cron_opts *o, const char *queue,
           const char *name, struct weir_error *err)
{
    char sentence[700];
    enum weir_err rc = weir_cron_remove(cli->client, queue, name, WEIR_REVISION_ANY, err);

    (void)o;
    if (rc != WEIR_OK)
        return rc;
    snprintf(sentence, sizeof(sentence),
             "Removed cron entry \"%s\" of queue %s. Jobs that it made stay.", name,
             queue);
    cli_cron_done(cli, queue, name, "removed", sentence);
    return WEIR_OK;
}

static void
print_json_run(struct cli *cli, const char *queue, const char *name, const char *id)
{
    struct cli_json *json = cli_json_new();

    cli_json_text(json, "id", id);
    cli_json_text(json, "name", name);
    cli_json_text(json, "queue", queue);
    cli_json_text(json, "action", "queued");
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

/* The answer is the job, as that of enqueue. */
static enum weir_err
run_one(struct cli *cli, const struct cron_opts *o, const char *queue, const char *name,
        struct weir_error *err)
{
    struct weir_job_id id;
    char sentence[900];
    enum weir_err rc = weir_cron_run_as(cli->client, queue, name, o->id, &id, err);

    if (weir_err_kind_of(rc) == WEIR_KIND_UNKNOWN)
        cli_note(cli, "A repeat makes no second job: weir cron run %s -q %s --id %s",
                 name, queue, o->id);
    if (rc != WEIR_OK)
        return rc;
    if (!cli_out_is_json(cli) && !cli_out_is_table(cli)) {
        cli_print_id(cli, id.str);
        fputc('\n', cli->out);
        return WEIR_OK;
    }
    snprintf(sentence, sizeof(sentence), "Queued %s → %s   (follow: weir job wait '%s')",
             id.str, queue, id.str);
    if (cli_out_is_table(cli)) {
        cli_print_text(cli, sentence);
        fputc('\n', cli->out);
    } else {
        print_json_run(cli, queue, name, id.str);
    }
    return WEIR_OK;
}

static enum weir_err
pause_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    return each_entry(cli, opts, args, "pause", pause_one, err);
}

static enum weir_err
resume_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    return each_entry(cli, opts, args, "resume", resume_one, err);
}

static enum weir_err
run_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    struct cron_opts o = *(const struct cron_opts *)opts;
    char made[WR_ID_LEN + 1];

    wr_id_make(made);
    o.id = o.id ? o.id : made;
    return each_entry(cli, &o, args, "run", run_one, err);
}

static enum weir_err
rm_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    return each_entry(cli, opts, args, "remove", remove_one, err);
}

const struct cli_cmd cmd_cron_pause = {
    .noun = "cron",
    .verb = "pause",
    .group = "Decide",
    .args = "NAME...",
    .summary = "let the ticks of a cron entry pass without jobs",
    .examples = "  weir cron pause nightly\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = queue_option,
    .opts_size = sizeof(struct cron_opts),
    .run = pause_run,
};

const struct cli_cmd cmd_cron_resume = {
    .noun = "cron",
    .verb = "resume",
    .group = "Decide",
    .args = "NAME...",
    .summary = "let a paused cron entry go on with its next tick",
    .examples = "  weir cron resume nightly\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = queue_option,
    .opts_size = sizeof(struct cron_opts),
    .run = resume_run,
};

const struct cli_cmd cmd_cron_run = {
    .noun = "cron",
    .verb = "run",
    .group = "Decide",
    .args = "NAME...",
    .summary = "make a job of a cron entry now, beside its ticks",
    .examples = "  weir cron run nightly\n"
                "  weir cron run nightly --id deploy-42\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = run_options,
    .opts_size = sizeof(struct cron_opts),
    .run = run_run,
};

const struct cli_cmd cmd_cron_rm = {
    .noun = "cron",
    .verb = "rm",
    .group = "Decide",
    .args = "NAME...",
    .summary = "remove a cron entry; its jobs stay",
    .examples = "  weir cron rm nightly\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = queue_option,
    .opts_size = sizeof(struct cron_opts),
    .run = rm_run,
};
