/* config show, completion, version, help: about the tool itself. */
#include <string.h>

#include <weir/version.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/help.h"
#include "cli/json.h"
#include "cli/out.h"

struct show_opts {
    bool origin;
};

static const struct cli_opt show_options[] = {
    {"origin", 0, CLI_FLAG, offsetof(struct show_opts, origin), NULL,
     "also where each value comes from"},
    {0},
};

static void
show_json(struct cli *cli)
{
    for (size_t i = 0; i < CLI_SET_COUNT; i++) {
        struct cli_json *json = cli_json_new();
        char value[600];

        cli_setting_show(cli->settings, (enum cli_setting)i, value, sizeof(value));
        cli_json_text(json, "key", cli_setting_key((enum cli_setting)i));
        if (cli_setting(cli->settings, (enum cli_setting)i))
            cli_json_text(json, "value", value);
        else
            cli_json_null(json, "value");
        cli_json_text(json, "origin",
                      cli_setting_origin(cli->settings, (enum cli_setting)i));
        cli_json_print(json, cli->out);
        cli_json_free(json);
    }
}

/* A row a value of a handler: handler.TYPE.KEY. */
static void
each_handler_value(struct cli *cli,
                   void (*each)(struct cli *cli, const char *key, const char *value,
                                const char *origin, void *context),
                   void *context)
{
    const struct cli_handlers *all = cli_handlers(cli->settings);

    for (size_t i = 0; i < all->n; i++) {
        for (size_t j = 0; j < all->list[i]->values_n; j++) {
            const struct cli_handler_value *v = &all->list[i]->values[j];
            char key[200], value[4200];

            snprintf(key, sizeof(key), "handler.%s.%s", all->list[i]->type, v->key);
            cli_handler_show(v, value, sizeof(value));
            each(cli, key, value, v->origin, context);
        }
    }
}

static void
handler_json(struct cli *cli, const char *key, const char *value, const char *origin,
             void *context)
{
    struct cli_json *json = cli_json_new();

    (void)context;
    cli_json_text(json, "key", key);
    cli_json_text(json, "value", value);
    cli_json_text(json, "origin", origin);
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

struct show_table {
    struct cli_table *table;
    bool origin;
};

static void
handler_row(struct cli *cli, const char *key, const char *value, const char *origin,
            void *context)
{
    struct show_table *t = context;

    (void)cli;
    cli_cell_text(t->table, key);
    cli_cell_text(t->table, value);
    if (t->origin)
        cli_cell_text(t->table, origin);
}

static enum weir_err
show_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"key", false, false}, {"value", false, false}, {"origin", false, false}};
    const struct show_opts *o = opts;
    struct cli_table *t;

    (void)args;
    (void)err;
    if (cli_out_is_json(cli)) {
        show_json(cli);
        each_handler_value(cli, handler_json, NULL);
        return WEIR_OK;
    }
    t = cli_table_new(cli, columns, o->origin ? 3 : 2);
    for (size_t i = 0; i < CLI_SET_COUNT; i++) {
        char value[600];

        cli_setting_show(cli->settings, (enum cli_setting)i, value, sizeof(value));
        cli_cell_text(t, cli_setting_key((enum cli_setting)i));
        cli_cell_text(t, value);
        if (o->origin)
            cli_cell_text(t, cli_setting_origin(cli->settings, (enum cli_setting)i));
    }
    each_handler_value(cli, handler_row, &(struct show_table){t, o->origin});
    cli_table_end(t);
    return WEIR_OK;
}

const struct cli_cmd cmd_config_show = {
    .noun = "config",
    .verb = "show",
    .group = "Run it",
    .args = "",
    .summary = "the settings in force",
    .examples = "  weir config show --origin\n",
    .needs = CLI_NEEDS_SETTINGS,
    .opts = show_options,
    .opts_size = sizeof(struct show_opts),
    .run = show_run,
};

/* Everything is a comment: the text is a configuration that changes nothing. */
static enum weir_err
default_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    (void)opts;
    (void)args;
    (void)err;
    fputs("# weir.conf: all settings, with what is built in. See weir.conf(5).\n",
          cli->out);
    for (size_t i = 0; i < CLI_SET_COUNT; i++) {
        const char *value = cli_setting_built_in((enum cli_setting)i);

        fprintf(cli->out, "\n# %s\n# %s =%s%s\n", cli_setting_help((enum cli_setting)i),
                cli_setting_key((enum cli_setting)i), value ? " " : "",
                value ? value : "");
    }
    fputs("\n# The command for jobs of a type, and its bounds.\n# [handler.TYPE]\n",
          cli->out);
    for (const struct cli_handler_key *k = cli_handler_keys; k->key; k++)
        fprintf(cli->out, "\n# %s\n# %s =\n", k->help, k->key);
    return WEIR_OK;
}

const struct cli_cmd cmd_config_default = {
    .noun = "config",
    .verb = "default",
    .group = "Run it",
    .args = "",
    .summary = "a configuration file with every setting, as a comment",
    .examples = "  weir config default > ~/.config/weir/weir.conf\n",
    .needs = CLI_NEEDS_NOTHING,
    .run = default_run,
};

static enum weir_err
completion_run(struct cli *cli, const void *opts, char *const *args,
               struct weir_error *err)
{
    (void)opts;
    if (strcmp(args[0], "bash") != 0)
        return wr_fail(err, WEIR_E_ARG, 0, "completion: only bash so far");
    cli_help_completion(cli->out, cli->commands);
    return WEIR_OK;
}

const struct cli_cmd cmd_completion = {
    .noun = "completion",
    .group = "Run it",
    .args = "SHELL",
    .summary = "a completion script for bash",
    .examples = "  . <(weir completion bash)\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_NOTHING,
    .run = completion_run,
};

static enum weir_err
version_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    (void)opts;
    (void)args;
    (void)err;
    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "version", WEIR_VERSION);
        cli_json_print(json, cli->out);
        cli_json_free(json);
    } else {
        fprintf(cli->out, "weir %s\n", WEIR_VERSION);
    }
    return WEIR_OK;
}

const struct cli_cmd cmd_version = {
    .noun = "version",
    .group = "Run it",
    .args = "",
    .summary = "the version of weir",
    .needs = CLI_NEEDS_NOTHING,
    .run = version_run,
};

struct help_opts {
    bool all;
};

static const struct cli_opt help_options[] = {
    {"all", 0, CLI_FLAG, offsetof(struct help_opts, all), NULL,
     "every command with its flags"},
    {0},
};

static void
exit_status_topic(FILE *out)
{
    fputs("Exit statuses\n\n"
          "  0    done\n"
          "  1    a clear no: not found, job failed, check failed\n"
          "  64   the command line is wrong\n"
          "  65   the input is wrong\n"
          "  69   the server cannot be reached or used\n"
          "  70   a bug in weir, or stored data that makes no sense\n"
          "  74   input or output failed\n"
          "  75   try again: the server is loading, full or busy\n"
          "  76   sent, no answer came: repeat with the same id\n"
          "  77   refused: password, rights, read-only replica\n"
          "  78   the configuration is wrong\n"
          "  124  the time to wait ran out\n"
          "\nweir run exits as its command did, 128 and the number after a signal, or "
          "with\n\n"
          "  125  weir itself failed: what the other commands say with 64 to 78\n"
          "  126  the command was found and could not be run, or is not allowed\n"
          "  127  the worker has no such command\n",
          out);
}

static enum weir_err
help_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct help_opts *o = opts;
    const struct cli_cmd *cmd;

    if (o->all) {
        cli_help_tree(cli->out, cli->commands);
        return WEIR_OK;
    }
    if (!args[0]) {
        cli_help_overview(cli->out, cli->commands);
        return WEIR_OK;
    }
    if (strcmp(args[0], "exit-status") == 0) {
        exit_status_topic(cli->out);
        return WEIR_OK;
    }
    cmd = cli_find(cli->commands, args[0], args[1]);
    if (cmd)
        cli_help_command(cli->out, cmd);
    else if (!args[1] && cli_is_noun(cli->commands, args[0]))
        cli_help_noun(cli->out, cli->commands, args[0]);
    else
        return wr_fail(err, WEIR_E_ARG, 0,
                       "no help about \"%.60s\": it knows the commands and exit-status",
                       args[0]);
    return WEIR_OK;
}

const struct cli_cmd cmd_help = {
    .noun = "help",
    .group = "Run it",
    .args = "[TOPIC]",
    .summary = "help about a command, or exit-status",
    .examples = "  weir help job show\n  weir help --all\n",
    .max_args = 2,
    .needs = CLI_NEEDS_NOTHING,
    .opts = help_options,
    .opts_size = sizeof(struct help_opts),
    .run = help_run,
};
