/* config check: would a worker start with this configuration, and find its programs? */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/worker.h>

#include "base/error.h"
#include "bin/commands.h"
#include "bin/handlers.h"
#include "cli/config.h"
#include "cli/json.h"
#include "cli/out.h"
#include "command/allow.h"

struct check {
    struct cli *cli;
    struct cli_json *problems; /* an array; NULL: told as text */
    size_t n;
};

static void
report(struct check *c, const struct cli_handler *h, const char *what,
       const char *program)
{
    char text[512];

    snprintf(text, sizeof(text), "%.200s:%u: [handler.%.60s] %s: %.100s", h->path,
             h->line, h->type, what, program);
    c->n++;
    if (c->problems) {
        struct cli_json *row = cli_json_new();

        cli_json_text(row, "file", h->path);
        cli_json_int(row, "line", h->line);
        cli_json_text(row, "text", text);
        cli_json_append(c->problems, row);
        return;
    }
    cli_print_text(c->cli, text);
    fputc('\n', c->cli->out);
}

/* Of a shell's line only the shell is known. */
static void
check_program(struct check *c, const struct cli_handler *h)
{
    const char *program = h->options.shell ? "/bin/sh" : h->options.argv[0];
    const char *path = getenv("PATH");
    char found[PATH_MAX];
    bool is_path = strchr(program, '/') != NULL;

    for (size_t i = 0; h->options.env && h->options.env[i]; i++) {
        if (strncmp(h->options.env[i], "PATH=", 5) == 0)
            path = h->options.env[i] + 5;
    }
    if (!is_path &&
        !wr_allow_find(path ? path : "/usr/local/bin:/usr/bin:/bin", program, found))
        report(c, h, "no such program in PATH", program);
    else if (access(is_path ? program : found, F_OK) != 0)
        report(c, h, "no such program", program);
    else if (access(is_path ? program : found, X_OK) != 0)
        report(c, h, "may not be run", program);
}

static void
conclude(struct check *c, size_t handlers)
{
    const char *file = cli_settings_file(c->cli->settings);

    if (c->problems) {
        struct cli_json *json = cli_json_new();

        cli_json_bool(json, "ok", c->n == 0);
        if (file)
            cli_json_text(json, "file", file);
        else
            cli_json_null(json, "file");
        cli_json_int(json, "handlers", (int64_t)handlers);
        cli_json_adopt(json, "problems", c->problems);
        cli_json_print(json, c->cli->out);
        cli_json_free(json);
    } else if (c->n == 0) {
        fprintf(c->cli->out, "%s: good, %zu handler%s\n",
                file ? file : "no configuration file", handlers,
                handlers == 1 ? "" : "s");
    }
}

static enum weir_err
check_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct cli_handlers *all = cli_handlers(cli->settings);
    struct check c = {.cli = cli};
    struct weir_worker *worker = NULL;
    struct work_opts o = BIN_WORK_OPTS_UNSET;
    enum weir_err rc = bin_worker_new(cli, &o, cli_setting(cli->settings, CLI_SET_URL),
                                      &worker, err);

    (void)opts;
    (void)args;
    if (rc != WEIR_OK)
        return rc;
    weir_worker_free(worker);
    if (cli_out_is_json(cli))
        c.problems = cli_json_new_array();
    for (size_t i = 0; i < all->n; i++) {
        if (all->list[i]->options.argv)
            check_program(&c, all->list[i]);
    }
    conclude(&c, all->n);
    cli->said = c.n > 0;
    return c.n > 0 ? wr_fail(err, WEIR_E_CHECK_FAILED, 0, "%zu problems", c.n) : WEIR_OK;
}

const struct cli_cmd cmd_config_check = {
    .noun = "config",
    .verb = "check",
    .group = "Run it",
    .args = "",
    .summary = "whether a worker here could start with the configuration",
    .examples = "  weir config check --config new.conf\n",
    .needs = CLI_NEEDS_SETTINGS,
    .run = check_run,
};
