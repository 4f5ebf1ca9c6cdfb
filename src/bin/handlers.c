/* Which commands a worker runs: those of the command line, then those of weir.conf. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "bin/handlers.h"
#include "cli/config.h"

enum kind {
    KIND_ARGV,
    KIND_SHELL, /* --exec: a shell's line */
    KIND_COPROC /* --coproc: the same, but it stays */
};

/* With the section of the file for this type, if it has one: the flag says only which
 * command. */
static enum weir_err
add(struct cli *cli, const struct work_opts *o, struct weir_worker *worker,
    const char *type, const char *const *argv, enum kind kind, struct weir_error *err)
{
    const struct cli_handler *h = cli_handlers_find(cli_handlers(cli->settings), type);
    struct weir_exec_options options = {WEIR_EXEC_OPTIONS_INIT};
    const char **pass = cli_alloc((o->pass_env.n + 1) * sizeof(*pass));
    char here[PATH_MAX];
    enum weir_err rc;

    if (h)
        options = h->options;
    options.argv = argv;
    options.shell = kind != KIND_ARGV;
    options.coproc = kind == KIND_COPROC;
    options.clean_env = options.clean_env || o->clean_env;
    for (size_t i = 0; i < o->pass_env.n; i++)
        pass[i] = o->pass_env.items[i];
    if (o->pass_env.n > 0)
        options.pass_env = pass;
    if (!options.cwd && getcwd(here, sizeof(here)))
        options.cwd = here; /* a script beside the person who typed its name is found */
    rc = weir_worker_exec_with(worker, type, &options, err);
    free(pass);
    return rc;
}

/* "TYPE=CMD": CMD is a shell's line. */
static enum weir_err
add_flag(struct cli *cli, const struct work_opts *o, struct weir_worker *worker,
         const char *text, enum kind kind, struct weir_error *err)
{
    const char *flag = kind == KIND_COPROC ? "--coproc" : "--exec";
    const char *equals = strchr(text, '=');
    const char *argv[] = {equals ? equals + 1 : "", NULL};
    char type[130];

    if (!equals || equals == text || equals - text > 128 || equals[1] == '\0')
        return wr_fail(err, WEIR_E_ARG, 0, "%s %.80s: not TYPE=CMD", flag, text);
    memcpy(type, text, (size_t)(equals - text));
    type[equals - text] = '\0';
    if (strcmp(type, CLI_COMMAND_JOB_TYPE) == 0)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "%s %s: jobs of this type bring their own command: see "
                       "--allow-command-jobs",
                       flag, type);
    return add(cli, o, worker, type, argv, kind, err);
}

static bool
names(const struct cli_list *list, const char *type)
{
    size_t len = strlen(type);

    for (size_t i = 0; i < list->n; i++) {
        if (strncmp(list->items[i], type, len) == 0 && list->items[i][len] == '=')
            return true;
    }
    return false;
}

static bool
has_flag(const struct work_opts *o, const char *type)
{
    return names(&o->exec, type) || names(&o->coprocs, type);
}

static enum weir_err
add_section(struct weir_worker *worker, const struct cli_handler *h,
            struct weir_error *err)
{
    struct weir_error why = {0};
    struct cli_conf_place at = {.path = h->path, .line = h->line};
    enum weir_err rc = weir_worker_exec_with(worker, h->type, &h->options, &why);

    if (rc == WEIR_E_ARG) /* an unknown user and the like */
        return cli_conf_fail(&at, err, "[handler.%.60s] %s", h->type, why.text);
    if (rc != WEIR_OK)
        *err = why;
    return rc;
}

/* The patterns in force, for the caller to free; NULL: jobs bring no commands. */
static char *
allowed_commands(const struct cli *cli, const struct work_opts *o)
{
    const char *setting = cli_setting(cli->settings, CLI_SET_ALLOW_COMMAND_JOBS);
    struct wr_buf list = {0};

    for (size_t i = 0; i < o->allow_commands.n; i++)
        wr_buf_addf(&list, "%s%s", i ? "," : "", o->allow_commands.items[i]);
    if (o->allow_commands.n == 0 && setting)
        wr_buf_add_str(&list, setting);
    else if (o->allow_commands.n == 0 && o->allow_all_commands)
        wr_buf_add_str(&list, "*");
    if (list.failed)
        cli_out_of_memory();
    return list.ptr;
}

static enum weir_err
add_commands(struct cli *cli, const struct work_opts *o, struct weir_worker *worker,
             struct weir_error *err)
{
    const struct cli_handler *h = cli_handlers_find(cli_handlers(cli->settings),
                                                    CLI_COMMAND_JOB_TYPE);
    char *allow = allowed_commands(cli, o);
    struct weir_command_options c = {
        WEIR_COMMAND_OPTIONS_INIT,
        .allow = allow,
        .allow_env = cli_setting(cli->settings, CLI_SET_ALLOW_COMMAND_ENV),
        .allow_cwd = cli_setting(cli->settings, CLI_SET_ALLOW_COMMAND_CWD),
        .signature_file = cli_setting(cli->settings, CLI_SET_REQUIRE_SIGNATURE),
        .exec = h ? &h->options : NULL,
    };
    enum weir_err rc = WEIR_OK;

    if (o->allow_all_commands && allow && strcmp(allow, "*") == 0)
        c.allow_env = c.allow_cwd = "*";
    if (allow)
        rc = weir_worker_commands(worker, &c, err);
    free(allow);
    return rc;
}

enum weir_err
bin_add_handlers(struct cli *cli, const struct work_opts *o, struct weir_worker *worker,
                 struct weir_error *err)
{
    const struct cli_handlers *file = cli_handlers(cli->settings);
    bool command = cli->command && cli->command[0];
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < o->exec.n && rc == WEIR_OK; i++)
        rc = add_flag(cli, o, worker, o->exec.items[i], KIND_SHELL, err);
    for (size_t i = 0; i < o->coprocs.n && rc == WEIR_OK; i++)
        rc = add_flag(cli, o, worker, o->coprocs.items[i], KIND_COPROC, err);
    for (size_t i = 0; i < o->plugins.n && rc == WEIR_OK; i++)
        rc = weir_worker_plugin(worker, o->plugins.items[i], err);
    if (rc == WEIR_OK && command)
        rc = add(cli, o, worker, "*", (const char *const *)cli->command, KIND_ARGV, err);
    for (size_t i = 0; i < file->n && rc == WEIR_OK && !command; i++) {
        if (file->list[i]->options.argv && !has_flag(o, file->list[i]->type))
            rc = add_section(worker, file->list[i], err);
    }
    return rc == WEIR_OK ? add_commands(cli, o, worker, err) : rc;
}

bool
bin_has_handlers(const struct cli *cli, const struct work_opts *o)
{
    const struct cli_handlers *file = cli_handlers(cli->settings);
    char *allow = allowed_commands(cli, o);

    free(allow);
    if (allow)
        return true;
    for (size_t i = 0; i < file->n; i++) {
        if (file->list[i]->options.argv)
            return true;
    }
    return o->exec.n > 0 || o->coprocs.n > 0 || o->plugins.n > 0 ||
           (cli->command && cli->command[0]);
}
