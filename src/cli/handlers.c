#include "cli/handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/words.h"

#define PREFIX "handler."

static struct cli_handler *
last_of(struct cli_handlers *all)
{
    return all->list[all->n - 1];
}

const struct cli_handler *
cli_handlers_find(const struct cli_handlers *all, const char *type)
{
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->list[i]->type, type) == 0)
            return all->list[i];
    }
    return NULL;
}

enum weir_err
cli_handlers_section(struct cli_handlers *all, const struct cli_conf_place *at,
                     const char *name, struct weir_error *err)
{
    const char *type = name + strlen(PREFIX);
    const struct cli_handler *before;
    struct cli_handler *h;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return cli_conf_fail(at, err, "no section [%.60s]; there are [handler.TYPE]",
                             name);
    if (!wr_text_is_type(wr_span_str(type)))
        return cli_conf_fail(at, err,
                             "[handler.TYPE]: the type has 1 to 128 bytes and no control "
                             "characters");
    if (at->others_write)
        return cli_conf_fail(at, err,
                             "names a command, and everybody may write the file: chmod "
                             "o-w it");
    before = cli_handlers_find(all, type);
    if (before)
        return cli_conf_fail(at, err, "[handler.%.60s] is there already, in line %u",
                             type, before->line);
    h = cli_alloc(sizeof(*h));
    snprintf(h->type, sizeof(h->type), "%s", type);
    h->path = cli_strdup(at->path);
    h->line = at->line;
    h->options = (struct weir_exec_options){WEIR_EXEC_OPTIONS_INIT, .clean_env = true};
    all->list = cli_grow(all->list, all->n + 1, sizeof(*all->list));
    all->list[all->n++] = h;
    return WEIR_OK;
}

static const struct cli_handler_key *
find_key(const char *name)
{
    for (const struct cli_handler_key *k = cli_handler_keys; k->key; k++) {
        if (strcmp(k->key, name) == 0)
            return k;
    }
    return NULL;
}

static enum weir_err
unknown_key(const struct cli_conf_place *at, const char *key, struct weir_error *err)
{
    const char *names[64];
    size_t n = 0;

    for (const struct cli_handler_key *k = cli_handler_keys; k->key && n < 63; k++)
        names[n++] = k->key;
    names[n] = NULL;
    return cli_conf_unknown(at, "no setting of a handler", key, names, err);
}

static const struct cli_handler_value *
value_of(const struct cli_handler *h, const char *key)
{
    for (size_t i = 0; i < h->values_n; i++) {
        if (strcmp(h->values[i].key, key) == 0)
            return &h->values[i];
    }
    return NULL;
}

/* These add to what was there. */
static bool
may_repeat(const char *key)
{
    return strcmp(key, "env") == 0 || strcmp(key, "pass_env") == 0 ||
           strncmp(key, "exit.", 5) == 0;
}

static void
remember(struct cli_handler *h, const struct cli_conf_place *at, const char *key,
         const char *value)
{
    char origin[300];

    snprintf(origin, sizeof(origin), "%.280s:%u", at->path, at->line);
    h->values = cli_grow(h->values, h->values_n + 1, sizeof(*h->values));
    h->values[h->values_n++] = (struct cli_handler_value){
        .key = key,
        .text = cli_handler_own(h, cli_strdup(value)),
        .origin = cli_handler_own(h, cli_strdup(origin)),
        .line = at->line,
    };
}

enum weir_err
cli_handlers_pair(struct cli_handlers *all, const struct cli_conf_place *at,
                  const char *name, const char *value, struct weir_error *err)
{
    const struct cli_handler_key *key = find_key(name);
    const struct cli_handler_value *before;
    struct cli_handler *h = last_of(all);
    const char *why;

    if (!key)
        return unknown_key(at, name, err);
    before = value_of(h, key->key);
    if (before && !may_repeat(key->key))
        return cli_conf_fail(at, err, "%s: is there already, in line %u", key->key,
                             before->line);
    why = key->take(h, key, value);
    if (why)
        return cli_conf_fail(at, err, "%s: not %s", key->key, why);
    remember(h, at, key->key, value);
    return WEIR_OK;
}

/* ---- the end ---- */

static enum weir_err
make_argv(struct cli_handler *h, const struct cli_handler_value *command,
          struct weir_error *err)
{
    struct cli_conf_place at = {.path = h->path, .line = command->line};
    struct cli_words words;
    const char *why;

    if (h->options.shell) {
        const char **argv = cli_handler_own(h, cli_alloc(2 * sizeof(*argv)));

        argv[0] = command->text;
        h->options.argv = argv;
        return WEIR_OK;
    }
    why = cli_words_split(command->text, &words);
    for (size_t i = 0; i < words.n; i++)
        cli_handler_own(h, words.list[i]);
    h->options.argv = (const char *const *)cli_handler_own(h, words.list);
    if (!why && (words.n == 0 || words.list[0][0] == '\0'))
        why = "it names no program";
    if (why)
        return cli_conf_fail(&at, err, "command: %s", why);
    return WEIR_OK;
}

static enum weir_err
end_of(struct cli_handler *h, struct weir_error *err)
{
    const struct cli_handler_value *command = value_of(h, "command"),
                                   *shell = value_of(h, "shell");
    struct cli_conf_place at = {.path = h->path, .line = h->line};

    if (strcmp(h->type, CLI_COMMAND_JOB_TYPE) != 0) {
        if (!command)
            return cli_conf_fail(&at, err, "[handler.%.60s] has no command", h->type);
        return make_argv(h, command, err);
    }
    if (!command && !shell)
        return WEIR_OK;
    at.line = command ? command->line : shell->line;
    return cli_conf_fail(&at, err,
                         "jobs of this type bring their own command: see "
                         "allow_command_jobs");
}

enum weir_err
cli_handlers_end(struct cli_handlers *all, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < all->n && rc == WEIR_OK; i++)
        rc = end_of(all->list[i], err);
    return rc;
}

void
cli_handlers_fini(struct cli_handlers *all)
{
    for (size_t i = 0; i < all->n; i++) {
        struct cli_handler *h = all->list[i];

        for (size_t j = 0; j < h->owned_n; j++)
            free(h->owned[j]);
        free(h->owned);
        free(h->values);
        free(h->path);
        free(h);
    }
    free(all->list);
    *all = (struct cli_handlers){0};
}

void
cli_handler_show(const struct cli_handler_value *v, char *out, size_t cap)
{
    struct cli_words words;
    size_t used = 0;

    if (strcmp(v->key, "env") != 0) {
        snprintf(out, cap, "%s", v->text);
        return;
    }
    *out = '\0';
    (void)cli_words_split(v->text, &words);
    for (size_t i = 0; i < words.n && used < cap; i++)
        used += (size_t)snprintf(out + used, cap - used, "%s%.*s=***", i ? " " : "",
                                 (int)strcspn(words.list[i], "="), words.list[i]);
    cli_words_fini(&words);
}
