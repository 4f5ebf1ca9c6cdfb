/* cron apply: makes the entries what a file says. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/cron_file.h"
#include "cli/cron_view.h"
#include "cli/json.h"
#include "cli/queues.h"

struct apply_opts {
    struct cli_list queues;
    bool prune;
};

static const struct cli_opt apply_options[] = {
    {"queue", 'q', CLI_LIST, offsetof(struct apply_opts, queues), "Q",
     "with --prune: this queue as well, should the file not name it; may be repeated"},
    {"prune", 0, CLI_FLAG, offsetof(struct apply_opts, prune), NULL,
     "remove the entries of the file's queues that it does not name"},
    {0},
};

/* What is to be done with one entry. */
struct change {
    const char *word; /* "add", "change", "remove", "same" */
    char *queue, *name;
    int64_t revision;
    struct cli_cron wanted;
    struct wr_buf before, after; /* as lines */
};

struct plan {
    struct cli *cli;
    struct cli_cron_file file;
    struct change *changes;
    size_t n, removals;
    const char *queue; /* being listed */
};

static struct change *
add_change(struct plan *p, const char *queue, const char *name)
{
    struct change *c;

    p->changes = cli_grow(p->changes, p->n + 1, sizeof(*p->changes));
    c = &p->changes[p->n++];
    *c = (struct change){
        .word = "same", .queue = cli_strdup(queue), .name = cli_strdup(name)};
    return c;
}

static void
plan_fini(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct change *c = &p->changes[i];

        free(c->queue);
        free(c->name);
        cli_cron_fini(&c->wanted);
        wr_buf_fini(&c->before);
        wr_buf_fini(&c->after);
    }
    free(p->changes);
    cli_cron_file_fini(&p->file);
}

/* ---- the plan ---- */

static enum weir_err
plan_section(struct plan *p, const struct cli_cron_section *s, const char *path,
             struct weir_error *err)
{
    const char *queue = s->spec.job.queue ? s->spec.job.queue : "default";
    struct change *c = add_change(p, queue, s->name);
    struct weir_cron_info *info;
    struct weir_error why = {0};
    enum weir_err rc = cli_cron_make(p->cli, &s->spec, c->name, NULL, &c->wanted, &why);

    c->wanted.entry.job = &c->wanted.job;
    if (rc != WEIR_OK)
        return wr_fail(err, rc == WEIR_E_ARG ? WEIR_E_DATA : rc, 0,
                       "%.60s:%zu: %.40s: %.130s", path, s->line, s->name, why.text);
    cli_cron_render(&c->wanted.entry, &c->after);
    rc = weir_cron_get(p->cli->client, queue, s->name, &info, err);
    if (rc == WEIR_E_NO_CRON) {
        c->word = "add";
        return WEIR_OK;
    }
    if (rc != WEIR_OK)
        return rc;
    c->revision = info->revision;
    cli_cron_render(&info->entry, &c->before);
    if (strcmp(c->before.ptr, c->after.ptr) != 0)
        c->word = "change";
    weir_cron_info_free(info);
    return WEIR_OK;
}

static bool
is_planned(const struct plan *p, const char *queue, const char *name)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->changes[i].queue, queue) == 0 &&
            strcmp(p->changes[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool
plan_removal(const char *name, const struct weir_cron_info *info, void *context)
{
    struct plan *p = context;
    struct change *c;

    if (is_planned(p, p->queue, name))
        return true;
    c = add_change(p, p->queue, name);
    c->word = "remove";
    c->revision = info ? info->revision : WEIR_REVISION_ANY;
    if (info)
        cli_cron_render(&info->entry, &c->before);
    p->removals++;
    return true;
}

static enum weir_err
plan_prune(struct plan *p, const struct cli_list *queues, struct weir_error *err)
{
    size_t named = p->n;
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < queues->n && rc == WEIR_OK; i++) {
        p->queue = queues->items[i];
        rc = cli_check_queue(p->queue, err);
        if (rc == WEIR_OK)
            rc = weir_cron_list(p->cli->client, p->queue, plan_removal, p, err);
    }
    for (size_t i = 0; i < named && rc == WEIR_OK; i++) {
        char *queue = cli_strdup(p->changes[i].queue); /* the array may move */

        p->queue = queue;
        rc = weir_cron_list(p->cli->client, queue, plan_removal, p, err);
        free(queue);
    }
    return rc;
}

static enum weir_err
make_plan(struct plan *p, const char *path, const struct apply_opts *o,
          struct weir_error *err)
{
    enum weir_err rc = cli_cron_file_read(path, &p->file, err);

    for (size_t i = 0; i < p->file.n && rc == WEIR_OK; i++)
        rc = plan_section(p, &p->file.sections[i], path, err);
    for (size_t i = 0; i < p->n; i++) /* they may have moved */
        p->changes[i].wanted.entry.job = &p->changes[i].wanted.job;
    if (rc == WEIR_OK && o->prune)
        rc = plan_prune(p, &o->queues, err);
    for (size_t i = 0; i < p->n; i++)
        p->changes[i].wanted.entry.job = &p->changes[i].wanted.job;
    return rc;
}

/* ---- showing it ---- */

/* Is this line (up to its newline) one of the text's? */
static bool
has_line(const struct wr_buf *text, const char *line, size_t len)
{
    const char *p = text->ptr ? text->ptr : "";

    while (*p) {
        size_t n = strcspn(p, "\n");

        if (n == len && memcmp(p, line, len) == 0)
            return true;
        p += n + (p[n] == '\n');
    }
    return false;
}

typedef void (*line_fn)(struct cli *cli, char sign, const char *line, size_t len,
                        void *context);

static void
each_lost(struct cli *cli, char sign, const struct wr_buf *from, const struct wr_buf *to,
          line_fn fn, void *context)
{
    const char *p = from->ptr ? from->ptr : "";

    while (*p) {
        size_t n = strcspn(p, "\n");

        if (!has_line(to, p, n))
            fn(cli, sign, p, n, context);
        p += n + (p[n] == '\n');
    }
}

static void
print_line(struct cli *cli, char sign, const char *line, size_t len, void *context)
{
    (void)context;
    cli_print(cli, sign == '+' ? CLI_GREEN : CLI_RED, "    %c %.*s", sign, (int)len,
              line);
    fputc('\n', cli->out);
}

static void
take_line(struct cli *cli, char sign, const char *line, size_t len, void *context)
{
    struct cli_json *one = cli_json_new();

    (void)cli;
    cli_json_text(one, "sign", sign == '+' ? "+" : "-");
    cli_json_bytes(one, "line", line, len);
    cli_json_append(context, one);
}

static void
print_change(struct cli *cli, const struct change *c)
{
    struct cli_json *json, *diff;

    if (cli_out_is_json(cli)) {
        json = cli_json_new();
        diff = cli_json_new_array();
        cli_json_text(json, "name", c->name);
        cli_json_text(json, "queue", c->queue);
        cli_json_text(json, "action", c->word);
        each_lost(cli, '-', &c->before, &c->after, take_line, diff);
        each_lost(cli, '+', &c->after, &c->before, take_line, diff);
        cli_json_adopt(json, "diff", diff);
        cli_json_print(json, cli->out);
        cli_json_free(json);
        return;
    }
    if (cli->format == CLI_OUT_ID) {
        cli_print_id(cli, c->name);
        fputc('\n', cli->out);
        return;
    }
    fputs(c->word, cli->out);
    fputc(cli_out_is_table(cli) ? ' ' : '\t', cli->out);
    cli_print_text(cli, c->queue);
    fputc(cli_out_is_table(cli) ? ' ' : '\t', cli->out);
    cli_print_id(cli, c->name);
    fputc('\n', cli->out);
    if (cli_out_is_table(cli)) {
        each_lost(cli, '-', &c->before, &c->after, print_line, NULL);
        each_lost(cli, '+', &c->after, &c->before, print_line, NULL);
    }
}

/* ---- doing it ---- */

static enum weir_err
do_change(struct cli *cli, const struct change *c, struct weir_error *err)
{
    switch (*c->word) {
    case 'a':
        return weir_cron_put(cli->client, &c->wanted.entry, WEIR_REVISION_NEW, NULL, err);
    case 'c':
        return weir_cron_put(cli->client, &c->wanted.entry, c->revision, NULL, err);
    case 'r':
        return weir_cron_remove(cli->client, c->queue, c->name, c->revision, err);
    default:
        return WEIR_OK;
    }
}

static enum weir_err
do_plan(struct cli *cli, const struct plan *p, struct weir_error *err)
{
    size_t done = 0, same = 0;
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < p->n && rc == WEIR_OK; i++) {
        const struct change *c = &p->changes[i];

        if (!cli->globals.dry_run)
            rc = do_change(cli, c, err);
        if (rc != WEIR_OK)
            break;
        print_change(cli, c);
        done += *c->word != 's';
        same += *c->word == 's';
    }
    fflush(cli->out);
    if (rc == WEIR_OK)
        cli_note(cli,
                 cli->globals.dry_run ? "Would change %zu entr%s, the same: %zu. "
                                        "Nothing was stored."
                                      : "Changed %zu entr%s, the same: %zu.",
                 done, done == 1 ? "y" : "ies", same);
    else if (done > 0)
        cli_note(cli, "%zu entr%s changed before this; apply again for the rest.", done,
                 done == 1 ? "y was" : "ies were");
    return rc;
}

static enum weir_err
apply_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct apply_opts *o = opts;
    struct plan p = {.cli = cli};
    enum weir_err rc;

    if (o->queues.n > 0 && !o->prune)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "-q goes with --prune; the file says the queue of each entry");
    rc = make_plan(&p, args[0], o, err);
    if (rc == WEIR_OK && p.removals > 0 && !cli->globals.dry_run)
        rc = cli_confirm(cli, err,
                         "This will remove %zu cron entr%s that %.100s does not "
                         "name.",
                         p.removals, p.removals == 1 ? "y" : "ies", args[0]);
    if (rc == WEIR_OK)
        rc = do_plan(cli, &p, err);
    plan_fini(&p);
    return rc;
}

const struct cli_cmd cmd_cron_apply = {
    .noun = "cron",
    .verb = "apply",
    .group = "Decide",
    .args = "FILE|-",
    .summary = "make the cron entries what a file says",
    .examples = "  weir cron apply schedules.conf --dry-run\n"
                "  weir cron apply schedules.conf --prune --yes\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = apply_options,
    .opts_size = sizeof(struct apply_opts),
    .run = apply_run,
};
