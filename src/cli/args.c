#include "cli/args.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#define COUNT_MAX 1000000000
#define NAMES_MAX 96

#define GLOBAL(member) offsetof(struct cli_globals, member)

/* clang-format off */
const struct cli_opt cli_global_options[] = {
    {"url", 'u', CLI_TEXT, GLOBAL(url), "URL", "the server: redis://host:port/db, unix:///path?db=N"},
    {"namespace", 'N', CLI_TEXT, GLOBAL(name_space), "NS", "first part of every key; default weir"},
    {"config", 0, CLI_TEXT, GLOBAL(config), "FILE", "configuration file"},
    {"password-file", 0, CLI_TEXT, GLOBAL(password_file), "FILE", "file whose first line is the password"},
    {"output", 'o', CLI_TEXT, GLOBAL(output), "FORM", "table, wide, plain, json, jsonl or id"},
    {"json", 0, CLI_FLAG, GLOBAL(json), NULL, "the same as -o json"},
    {"quiet", 0, CLI_FLAG, GLOBAL(quiet), NULL, "no messages but errors"},
    {"verbose", 'v', CLI_FLAG, GLOBAL(verbose), NULL, "say more"},
    {"no-color", 0, CLI_FLAG, GLOBAL(no_color), NULL, "no colours"},
    {"utc", 0, CLI_FLAG, GLOBAL(utc), NULL, "show times in UTC, not relative"},
    {"command-timeout", 0, CLI_DURATION, GLOBAL(command_timeout_ms), "D", "how long a call may take; default 5s"},
    {"yes", 'y', CLI_FLAG, GLOBAL(yes), NULL, "do not ask"},
    {"dry-run", 'n', CLI_FLAG, GLOBAL(dry_run), NULL, "say what would be done, change nothing"},
    {"no-input", 0, CLI_FLAG, GLOBAL(no_input), NULL, "never ask: fail instead"},
    {"help", 'h', CLI_FLAG, GLOBAL(help), NULL, "show help"},
    {"version", 'V', CLI_FLAG, GLOBAL(version), NULL, "show the version"},
    {0},
};
/* clang-format on */

/* One flag of the line: "--name", "--name=value", "-x", "-xvalue". */
struct flag {
    const char *text; /* the whole word */
    const char *name; /* of a long one; NULL: short */
    size_t name_len;
    char letter;
    const char *attached; /* the value, if it is in the same word */
};

static bool
is_named(const struct cli_opt *o, const struct flag *f)
{
    if (f->name)
        return strlen(o->name) == f->name_len &&
               strncmp(o->name, f->name, f->name_len) == 0;
    return o->letter && o->letter == f->letter;
}

static const struct cli_opt *
find_option(const struct cli_opt *table, const struct flag *f)
{
    for (; table && table->name; table++) {
        if (is_named(table, f))
            return table;
    }
    return NULL;
}

/* Of any command: enough to know whether a value follows. */
static const struct cli_opt *
find_anywhere(const struct cli_cmd *const *commands, const struct flag *f)
{
    const struct cli_opt *o = find_option(cli_global_options, f);

    for (; !o && *commands; commands++)
        o = find_option((*commands)->opts, f);
    return o;
}

static bool
takes_value(const struct cli_opt *o)
{
    return o->type != CLI_FLAG && o->type != CLI_EVERY && o->type != CLI_MAYBE;
}

static struct flag
read_long(const char *word)
{
    const char *equals = strchr(word, '=');

    return (struct flag){
        .text = word,
        .name = word + 2,
        .name_len = equals ? (size_t)(equals - word - 2) : strlen(word + 2),
        .attached = equals ? equals + 1 : NULL,
    };
}

struct walk {
    const struct cli_cmd *const *commands;
    const struct cli_cmd *cmd; /* NULL while it is looked for */
    struct cli_globals *globals;
    struct cli_line *line;
    char **argv; /* what is left */
};

static enum weir_err
unknown_flag(const struct walk *w, const struct flag *f, struct weir_error *err)
{
    const char *names[NAMES_MAX], *near;
    char name[66];
    size_t n = 0;

    if (!f->name)
        return wr_fail(err, WEIR_E_ARG, 0, "no flag -%c (see: weir %s%s%s --help)",
                       f->letter, w->cmd ? w->cmd->noun : "",
                       w->cmd && w->cmd->verb ? " " : "",
                       w->cmd && w->cmd->verb ? w->cmd->verb : "");
    for (const struct cli_opt *o = cli_global_options; o->name; o++)
        names[n++] = o->name;
    for (const struct cli_opt *o = w->cmd ? w->cmd->opts : NULL;
         o && o->name && n < NAMES_MAX - 1; o++)
        names[n++] = o->name;
    names[n] = NULL;
    snprintf(name, sizeof(name), "%.*s", (int)f->name_len, f->name);
    near = wr_text_nearest(name, names);
    return wr_fail(err, WEIR_E_ARG, 0, "no flag --%s%s%s%s", name,
                   near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

static enum weir_err
bad_value(const char *name, const char *value, const char *what, struct weir_error *err)
{
    struct wr_buf shown = {0};
    enum weir_err rc;

    wr_text_escape(&shown, wr_span_str(value));
    rc = wr_fail(err, WEIR_E_ARG, 0, "%s: \"%.80s\" is not %s", name,
                 (const char *)wr_buf_span(&shown).ptr, what);
    wr_buf_fini(&shown);
    return rc;
}

static void
list_add(struct cli_list *list, const char *value)
{
    list->items = cli_grow(list->items, list->n + 1, sizeof(*list->items));
    list->items[list->n++] = value;
}

enum weir_err
cli_option_store(const struct cli_opt *o, const char *name, const char *value, void *opts,
                 struct weir_error *err)
{
    char *field = (char *)opts + o->field;
    bool yes = true;
    int64_t number = 0;

    switch (o->type) {
    case CLI_FLAG:
        memcpy(field, &yes, sizeof(yes));
        return WEIR_OK;
    case CLI_MAYBE:
    case CLI_OPTIONAL:
    case CLI_TEXT:
        memcpy(field, &value, sizeof(value));
        return WEIR_OK;
    case CLI_LIST:
        list_add((struct cli_list *)(void *)field, value);
        return WEIR_OK;
    case CLI_COUNT:
        if (!wr_text_int(value, 0, COUNT_MAX, &number))
            return bad_value(name, value, "a whole number from 0 to 1000000000", err);
        break;
    case CLI_EVERY:
    case CLI_DURATION:
        if (!wr_text_duration(value, &number))
            return bad_value(name, value, "a duration like 250ms, 15s, 5m, 2h or 3d",
                             err);
        break;
    case CLI_SIZE:
        if (!wr_text_size(value, &number))
            return bad_value(name, value, "a size like 4096, 64k or 1M", err);
        break;
    case CLI_TIME:
        if (!wr_text_time(value, wr_clock_wall_ms(), &number))
            return bad_value(
                name, value,
                "a time like 2030-01-31T09:00:00Z, now+5m or \"tomorrow 09:00\"", err);
        break;
    }
    memcpy(field, &number, sizeof(number));
    return WEIR_OK;
}

const char cli_no_value[] = "";

static bool
is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* The value of a flag: attached, or the next word. Moves over the next word. */
static enum weir_err
take_value(struct walk *w, const struct cli_opt *o, const struct flag *f,
           const char **value, struct weir_error *err)
{
    *value = f->attached;
    if (!takes_value(o)) {
        if (o->type == CLI_FLAG && f->attached && f->name)
            return wr_fail(err, WEIR_E_ARG, 0, "--%s takes no value", o->name);
        return WEIR_OK;
    }
    if (!*value && o->type == CLI_OPTIONAL && (!*w->argv || is_flag(*w->argv)))
        *value = cli_no_value;
    if (!*value && *w->argv)
        *value = *w->argv++;
    if (!*value)
        return wr_fail(err, WEIR_E_ARG, 0, "--%s needs a value: %s", o->name, o->arg);
    return WEIR_OK;
}

static enum weir_err
apply(struct walk *w, const struct flag *f, bool *takes, struct weir_error *err)
{
    const struct cli_opt *o = find_option(cli_global_options, f);
    void *opts = o ? (void *)w->globals : w->line->opts;
    const char *value;
    char name[40];
    enum weir_err rc;

    if (!o && w->cmd)
        o = find_option(w->cmd->opts, f);
    if (!o)
        return unknown_flag(w, f, err);
    *takes = takes_value(o);
    rc = take_value(w, o, f, &value, err);
    if (rc != WEIR_OK)
        return rc;
    if (!value && o->type == CLI_EVERY)
        value = "2s";
    snprintf(name, sizeof(name), "--%s", o->name);
    return cli_option_store(o, name, value ? value : "", opts, err);
}

static enum weir_err
apply_letters(struct walk *w, const char *word, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    for (const char *p = word + 1; *p && rc == WEIR_OK; p++) {
        struct flag f = {.text = word, .letter = *p, .attached = p[1] ? p + 1 : NULL};
        bool takes = false;

        if (f.attached && *f.attached == '=')
            f.attached++;
        rc = apply(w, &f, &takes, err);
        if (takes)
            break;
    }
    return rc;
}

/* Skips a flag and its value, while the command is not known. */
static void
skip_flag(struct walk *w, const char *word)
{
    if (word[1] == '-') {
        struct flag f = read_long(word);
        const struct cli_opt *o = find_anywhere(w->commands, &f);

        if (o && takes_value(o) && !f.attached && *w->argv)
            w->argv++;
        return;
    }
    for (const char *p = word + 1; *p; p++) {
        struct flag f = {.text = word, .letter = *p};
        const struct cli_opt *o = find_anywhere(w->commands, &f);

        if (o && takes_value(o)) {
            if (!p[1] && *w->argv)
                w->argv++;
            return;
        }
    }
}

/* The next word that is no flag, or NULL. */
static char *
next_plain(struct walk *w)
{
    while (*w->argv) {
        char *word = *w->argv++;

        if (strcmp(word, "--") == 0)
            return NULL;
        if (!is_flag(word))
            return word;
        skip_flag(w, word);
    }
    return NULL;
}

const struct cli_cmd *
cli_find(const struct cli_cmd *const *commands, const char *noun, const char *verb)
{
    for (; *commands; commands++) {
        const struct cli_cmd *c = *commands;

        if (strcmp(c->noun, noun) != 0 && !(c->alias && strcmp(c->alias, noun) == 0))
            continue;
        if (!c->verb || (verb && strcmp(c->verb, verb) == 0))
            return c;
    }
    return NULL;
}

bool
cli_is_noun(const struct cli_cmd *const *commands, const char *noun)
{
    for (; *commands; commands++) {
        if (strcmp((*commands)->noun, noun) == 0)
            return true;
    }
    return false;
}

static enum weir_err
unknown_command(const struct cli_cmd *const *commands, const char *noun, const char *verb,
                struct weir_error *err)
{
    const char *names[NAMES_MAX], *near;
    struct wr_buf shown = {0};
    size_t n = 0;
    enum weir_err rc;

    for (; *commands && n < NAMES_MAX - 2; commands++) {
        const struct cli_cmd *c = *commands;

        if (verb && strcmp(c->noun, noun) == 0)
            names[n++] = c->verb;
        else if (!verb)
            names[n++] = c->noun;
        if (!verb && c->alias)
            names[n++] = c->alias;
    }
    names[n] = NULL;
    near = wr_text_nearest(verb ? verb : noun, names);
    wr_text_escape(&shown, wr_span_str(verb ? verb : noun));
    rc = wr_fail(err, WEIR_E_ARG, 0, "no command \"%s%s%.60s\"%s%s%s%s%s",
                 verb ? noun : "", verb ? " " : "", (const char *)wr_buf_span(&shown).ptr,
                 near ? "; did you mean \"" : " (see: weir --help)",
                 near && verb ? noun : "", near && verb ? " " : "", near ? near : "",
                 near ? "\"?" : "");
    wr_buf_fini(&shown);
    return rc;
}

/* Finds the command; *words is how many plain words name it. */
static enum weir_err
find_command(struct walk *w, char **argv, size_t *words, struct weir_error *err)
{
    const char *noun, *verb = NULL;

    w->argv = argv;
    *words = 0;
    noun = next_plain(w);
    if (!noun)
        return WEIR_OK;
    w->line->noun = noun;
    w->cmd = cli_find(w->commands, noun, NULL);
    if (w->cmd) {
        *words = 1;
        return WEIR_OK;
    }
    if (!cli_is_noun(w->commands, noun))
        return unknown_command(w->commands, noun, NULL, err);
    verb = next_plain(w);
    if (!verb) {
        *words = 1;
        return WEIR_OK; /* `weir job`: the caller shows the verbs */
    }
    w->cmd = cli_find(w->commands, noun, verb);
    if (!w->cmd)
        return unknown_command(w->commands, noun, verb, err);
    *words = 2;
    return WEIR_OK;
}

static void
set_unset(const struct cli_opt *o, void *opts)
{
    const int64_t unset = CLI_UNSET;

    for (; o && o->name; o++) {
        if (o->type == CLI_COUNT || o->type == CLI_DURATION || o->type == CLI_SIZE ||
            o->type == CLI_TIME || o->type == CLI_EVERY)
            memcpy((char *)opts + o->field, &unset, sizeof(unset));
    }
}

static void
add_arg(struct cli_line *line, char *word)
{
    line->args[line->args_n++] = word;
    line->args[line->args_n] = NULL;
}

static void
take_rest(struct walk *w)
{
    if (w->cmd && w->cmd->takes_command) {
        w->line->command = w->argv;
        return;
    }
    while (*w->argv)
        add_arg(w->line, *w->argv++);
}

static enum weir_err
check_count(const struct cli_cmd *cmd, size_t n, struct weir_error *err)
{
    if (n >= (size_t)cmd->min_args && (cmd->max_args < 0 || n <= (size_t)cmd->max_args))
        return WEIR_OK;
    return wr_fail(
        err, WEIR_E_ARG, 0, "%s; usage: weir %s%s%s %s",
        n < (size_t)cmd->min_args ? "an argument is missing" : "too many arguments",
        cmd->noun, cmd->verb ? " " : "", cmd->verb ? cmd->verb : "", cmd->args);
}

enum weir_err
cli_line_read(int argc, char **argv, const struct cli_cmd *const *commands,
              struct cli_globals *globals, struct cli_line *line, struct weir_error *err)
{
    struct walk w = {.commands = commands, .globals = globals, .line = line};
    size_t words;
    enum weir_err rc;

    *globals = (struct cli_globals){0};
    *line = (struct cli_line){0};
    line->args = cli_alloc(((size_t)argc + 1) * sizeof(*line->args));
    set_unset(cli_global_options, globals);
    if (argc < 1)
        return WEIR_OK;
    rc = find_command(&w, argv + 1, &words, err);
    line->cmd = w.cmd;
    if (rc != WEIR_OK)
        return rc;
    if (w.cmd && w.cmd->opts_size > sizeof(line->opts))
        return wr_fail(err, WEIR_E_BUG, 0, "%s: options too large", w.cmd->noun);
    if (w.cmd)
        set_unset(w.cmd->opts, line->opts);
    w.argv = argv + 1;
    while (*w.argv && rc == WEIR_OK) {
        char *word = *w.argv++;
        bool takes = false;

        if (strcmp(word, "--") == 0) {
            take_rest(&w);
            break;
        }
        if (!is_flag(word)) {
            if (words > 0)
                words--;
            else
                add_arg(line, word);
        } else if (word[1] == '-') {
            struct flag f = read_long(word);

            rc = apply(&w, &f, &takes, err);
        } else {
            rc = apply_letters(&w, word, err);
        }
    }
    if (rc == WEIR_OK && w.cmd && !globals->help && !globals->version)
        rc = check_count(w.cmd, line->args_n, err);
    return rc;
}

void
cli_line_fini(struct cli_line *line)
{
    for (const struct cli_opt *o = line->cmd ? line->cmd->opts : NULL; o && o->name;
         o++) {
        if (o->type == CLI_LIST)
            free(((struct cli_list *)(void *)(line->opts + o->field))->items);
    }
    free(line->args);
}
