/* explain: what a transition does in Redis, as its script says. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/explained.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/queues.h"
#include "redis/script.h"
#include "store/keys.h"

#define NAMES_MAX 256

struct explain_opts {
    const char *engine, *queue;
};

static const struct cli_opt explain_options[] = {
    {"engine", 0, CLI_TEXT, offsetof(struct explain_opts, engine), "E",
     "list or stream: the scripts of this engine alone"},
    {"queue", 'q', CLI_TEXT, offsetof(struct explain_opts, queue), "Q",
     "show the keys of this queue; default \"Q\""},
    {0},
};

/* Whom it wakes that a command is called on a key of this name; NULL: on none. */
static const struct wake {
    const char *command, *key, *whom;
} wakes[] = {
    {"LPUSH", "wake", "one worker that waits for jobs of the queue"},
    {"LPUSH", "due", "the scheduler that leads the queue"},
    {"LPUSH", "hint", "the worker whose key it is"},
    {"PUBLISH", NULL,
     "who waits for the end of a job: weir job wait, weir_result_wait()"},
};
#define WAKES (sizeof(wakes) / sizeof(wakes[0]))

static const char *
key_name(const struct cli_explained *e, int key)
{
    return key >= 0 ? e->keys[key].name : NULL;
}

static bool
wakes_somebody(const struct cli_explained *e, const struct wake *w)
{
    for (const struct cli_explained_command *c = e->commands; c->name; c++) {
        const char *key = key_name(e, c->key);

        if (strcmp(c->name, w->command) == 0 &&
            (w->key ? key && strcmp(key, w->key) == 0 : !key))
            return true;
    }
    return false;
}

/* ---- the names of keys ---- */

struct names {
    const char *ns;
    struct wr_keys keys;
};

static void
full_key(const struct names *names, const struct cli_explained *e, size_t key,
         char out[WR_KEY_MAX])
{
    const char *name = e->keys[key].name;

    if (e->script->keys)
        snprintf(out, WR_KEY_MAX, "%s", wr_key_text(&names->keys, e->script->keys[key]));
    else if (strcmp(name, "worker") == 0)
        wr_key_worker(out, names->ns, "WORKER");
    else if (strcmp(name, "hint") == 0)
        wr_key_hint(out, names->ns, "WORKER");
    else if (strcmp(name, "workers") == 0)
        wr_key_workers(out, names->ns);
    else
        wr_key_queues(out, names->ns);
}

/* "HMGET HSET": the commands on one key that read, or those that write. */
static void
commands_of(const struct cli_explained *e, int key, bool writes, char *out,
            size_t out_len)
{
    size_t len = 0;

    snprintf(out, out_len, "-");
    for (const struct cli_explained_command *c = e->commands; c->name; c++) {
        if (c->key == key && c->writes == writes && len < out_len)
            len += (size_t)snprintf(out + len, out_len - len, "%s%s", len > 0 ? " " : "",
                                    c->name);
    }
}

static void
moves_of(const struct cli_explained *e, char *out, size_t out_len)
{
    size_t len = 0;

    snprintf(out, out_len, "-");
    for (const struct cli_explained_item *m = e->moves; m->name && len < out_len; m++)
        len += (size_t)snprintf(out + len, out_len - len, "%s%s -> %s",
                                len > 0 ? ", " : "", m->name, m->type);
}

/* ---- JSON ---- */

static struct cli_json *
commands_json(const struct cli_explained *e, int key, bool writes)
{
    struct cli_json *list = cli_json_new_array();

    for (const struct cli_explained_command *c = e->commands; c->name; c++) {
        if (c->key == key && c->writes == writes)
            cli_json_append_text(list, c->name);
    }
    return list;
}

static void
put_keys(struct cli_json *json, const struct names *names, const struct cli_explained *e)
{
    struct cli_json *list = cli_json_new_array();

    for (size_t i = 0; e->keys[i].name; i++) {
        struct cli_json *one = cli_json_new();
        char key[WR_KEY_MAX];

        full_key(names, e, i, key);
        cli_json_text(one, "key", key);
        cli_json_text(one, "name", e->keys[i].name);
        cli_json_text(one, "type", e->keys[i].type);
        cli_json_text(one, "holds", e->keys[i].text);
        cli_json_adopt(one, "reads", commands_json(e, (int)i, false));
        cli_json_adopt(one, "writes", commands_json(e, (int)i, true));
        cli_json_append(list, one);
    }
    cli_json_adopt(json, "keys", list);
}

static void
put_items(struct cli_json *json, const char *name, const struct cli_explained_item *items,
          const char *first, const char *second)
{
    struct cli_json *list = cli_json_new_array();

    for (; items->name; items++) {
        struct cli_json *one = cli_json_new();

        cli_json_text(one, first, items->name);
        cli_json_text(one, second, *items->type ? items->type : items->text);
        cli_json_append(list, one);
    }
    cli_json_adopt(json, name, list);
}

static void
print_json(struct cli *cli, const struct names *names, const struct cli_explained *e)
{
    struct cli_json *json = cli_json_new(), *list = cli_json_new_array();

    cli_json_text(json, "transition", e->name);
    cli_json_text(json, "engine", e->engine);
    cli_json_text(json, "summary", e->summary);
    cli_json_text(json, "flags", e->flags);
    cli_json_text(json, "cost", e->cost);
    cli_json_text(json, "sha1", e->script->sha1);
    put_items(json, "moves", e->moves, "from", "to");
    put_items(json, "answers", e->answers, "word", "meaning");
    put_keys(json, names, e);
    cli_json_adopt(json, "without_key", commands_json(e, CLI_KEY_NONE, false));
    for (size_t i = 0; i < WAKES; i++) {
        struct cli_json *one;

        if (!wakes_somebody(e, &wakes[i]))
            continue;
        one = cli_json_new();
        cli_json_text(one, "whom", wakes[i].whom);
        cli_json_text(one, "command", wakes[i].command);
        if (wakes[i].key)
            cli_json_text(one, "key", wakes[i].key);
        else
            cli_json_null(one, "key");
        cli_json_append(list, one);
    }
    cli_json_adopt(json, "wakes", list);
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

/* ---- for people ---- */

static void
print_head(struct cli *cli, const struct cli_explained *e)
{
    char moves[300];

    moves_of(e, moves, sizeof(moves));
    cli_print(cli, CLI_BOLD, "%s/%s", e->engine, e->name);
    fprintf(cli->out, ": %s\n", e->summary);
    fprintf(cli->out, "  moves    %s\n", moves);
    fprintf(cli->out, "  cost     %s\n", *e->cost ? e->cost : "-");
    if (*e->flags)
        fprintf(cli->out, "  flags    %s\n", e->flags);
    for (const struct cli_explained_item *a = e->answers; a->name; a++)
        fprintf(cli->out, "  %-8s %s: %s\n", a == e->answers ? "answers" : "", a->name,
                a->text);
    fputc('\n', cli->out);
}

static void
print_wakes(struct cli *cli, const struct cli_explained *e)
{
    bool any = false;

    for (size_t i = 0; i < WAKES; i++) {
        if (!wakes_somebody(e, &wakes[i]))
            continue;
        fprintf(cli->out, "%s  %s, by %s%s%s\n", any ? "" : "\nMay wake\n", wakes[i].whom,
                wakes[i].command, wakes[i].key ? " " : "",
                wakes[i].key ? wakes[i].key : "");
        any = true;
    }
    fputc('\n', cli->out);
}

static void
key_rows(struct cli_table *t, const struct names *names, const struct cli_explained *e)
{
    char key[WR_KEY_MAX], reads[300], writes[300];

    for (size_t i = 0; e->keys[i].name; i++) {
        full_key(names, e, i, key);
        commands_of(e, (int)i, false, reads, sizeof(reads));
        commands_of(e, (int)i, true, writes, sizeof(writes));
        cli_cell_id(t, key);
        cli_cell_text(t, e->keys[i].type);
        cli_cell_text(t, reads);
        cli_cell_text(t, writes);
        cli_cell_text(t, e->keys[i].text);
        cli_cell(t, CLI_PLAIN, "%s/%s", e->engine, e->name);
    }
    commands_of(e, CLI_KEY_NONE, false, reads, sizeof(reads));
    if (strcmp(reads, "-") == 0)
        return;
    cli_cell_text(t, "-");
    cli_cell_text(t, "-");
    cli_cell_text(t, reads);
    cli_cell_text(t, "-");
    cli_cell_text(t, "commands without a key");
    cli_cell(t, CLI_PLAIN, "%s/%s", e->engine, e->name);
}

static void
print_one(struct cli *cli, const struct names *names, const struct cli_explained *e)
{
    static const struct cli_column columns[] = {
        {"KEY", false, false},    {"TYPE", false, false},  {"READS", false, false},
        {"WRITES", false, false}, {"HOLDS", false, false}, {"SCRIPT", false, true},
    };
    struct cli_table *t;

    if (cli_out_is_json(cli)) {
        print_json(cli, names, e);
        return;
    }
    if (cli_out_is_table(cli))
        print_head(cli, e);
    t = cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
    key_rows(t, names, e);
    cli_table_end(t);
    if (cli_out_is_table(cli))
        print_wakes(cli, e);
}

/* ---- the command ---- */

static bool
is_asked_for(const struct cli_explained *e, const struct explain_opts *o)
{
    return !o->engine || strcmp(e->engine, o->engine) == 0 ||
           strcmp(e->engine, "common") == 0;
}

static void
print_list(struct cli *cli, const struct names *names, const struct explain_opts *o)
{
    static const struct cli_column columns[] = {
        {"TRANSITION", false, false},
        {"ENGINE", false, false},
        {"MOVES", false, false},
        {"WHAT IT DOES", false, false},
    };
    struct cli_table *t = NULL;

    if (!cli_out_is_json(cli))
        t = cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
    for (const struct cli_explained *e = cli_explained; e->name; e++) {
        char moves[300];

        if (!is_asked_for(e, o))
            continue;
        if (!t) {
            print_json(cli, names, e);
            continue;
        }
        moves_of(e, moves, sizeof(moves));
        cli_cell_id(t, e->name);
        cli_cell_text(t, e->engine);
        cli_cell_text(t, moves);
        cli_cell_text(t, e->summary);
    }
    if (t)
        cli_table_end(t);
}

static enum weir_err
unknown(const char *name, const struct explain_opts *o, struct weir_error *err)
{
    const char *all[NAMES_MAX + 1], *near;
    struct wr_buf shown = {0};
    enum weir_err rc;
    size_t n = 0;

    for (const struct cli_explained *e = cli_explained; e->name && n < NAMES_MAX; e++) {
        if (is_asked_for(e, o))
            all[n++] = e->name;
    }
    all[n] = NULL;
    near = wr_text_nearest(name, all);
    wr_text_escape(&shown, wr_span_str(name));
    rc = wr_fail(err, WEIR_E_ARG, 0, "no transition \"%.60s\"%s%s%s",
                 (const char *)wr_buf_span(&shown).ptr,
                 near ? "; did you mean \"" : " (see: weir explain)", near ? near : "",
                 near ? "\"?" : "");
    wr_buf_fini(&shown);
    return rc;
}

static enum weir_err
check_engine(const struct explain_opts *o, struct weir_error *err)
{
    if (!o->engine || strcmp(o->engine, "list") == 0 || strcmp(o->engine, "stream") == 0)
        return WEIR_OK;
    return wr_fail(err, WEIR_E_ARG, 0, "--engine: list or stream");
}

static enum weir_err
explain_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct explain_opts *o = opts;
    const char *ns = cli_setting(cli->settings, CLI_SET_NAMESPACE);
    struct names names = {.ns = ns ? ns : "weir"};
    enum weir_err rc = check_engine(o, err);

    if (rc == WEIR_OK && o->queue)
        rc = cli_check_queue(o->queue, err);
    if (rc != WEIR_OK)
        return rc;
    wr_keys_make(&names.keys, names.ns, o->queue ? o->queue : "Q");
    if (!*args)
        print_list(cli, &names, o);
    for (; *args; args++) {
        bool found = false;

        for (const struct cli_explained *e = cli_explained; e->name; e++) {
            if (strcmp(e->name, *args) != 0 || !is_asked_for(e, o))
                continue;
            print_one(cli, &names, e);
            found = true;
        }
        if (!found)
            return unknown(*args, o, err);
    }
    return WEIR_OK;
}

const struct cli_cmd cmd_explain = {
    .noun = "explain",
    .group = "Look",
    .args = "[TRANSITION...]",
    .summary = "the Redis commands and keys of a transition, as its script has them",
    .examples = "  weir explain\n"
                "  weir explain reserve -q mail\n"
                "  weir explain ack --json\n",
    .max_args = -1,
    .needs = CLI_NEEDS_SETTINGS,
    .opts = explain_options,
    .opts_size = sizeof(struct explain_opts),
    .run = explain_run,
};
