#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/version.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/help.h"
#include "cli/out.h"

#define COMMANDS_MAX 128

void
cli_out_of_memory(void)
{
    static const char text[] = "weir: out of memory  [E_NO_MEMORY]\n";

    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(weir_err_exit_status(WEIR_E_NO_MEMORY));
}

void *
cli_alloc(size_t size)
{
    void *ptr = calloc(1, size ? size : 1);

    if (!ptr)
        cli_out_of_memory();
    return ptr;
}

void *
cli_grow(void *ptr, size_t count, size_t size)
{
    ptr = reallocarray(ptr, count, size);
    if (!ptr)
        cli_out_of_memory();
    return ptr;
}

char *
cli_strdup(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        cli_out_of_memory();
    return copy;
}

/* What to do about it. */
static const char *
hint(enum weir_err rc)
{
    /* clang-format off */
    static const struct {
        enum weir_err code;
        const char *text;
    } hints[] = {
        {WEIR_E_CONNECT, "Is it running? `weir dev` starts a private one; WEIR_URL or --url names another."},
        {WEIR_E_NO_JOB, "A finished job is known as long as its result is kept (--keep-result). Try: weir job ls"},
        {WEIR_E_NO_QUEUE, "The first enqueue makes a queue. Try: weir queue ls"},
        {WEIR_E_NO_CRON, "Try: weir cron ls"},
        {WEIR_E_CHANGED, "Look at what is there now, then repeat the command."},
        {WEIR_E_NO_WORKER, "It ended, or was not heard for long. Try: weir worker ls"},
        {WEIR_E_WRONG_ENGINE, "A queue keeps its engine until it is moved: weir queue migrate Q --engine list|stream"},
        {WEIR_E_EXISTS, "Take another --id, or --replace as long as it has not started."},
        {WEIR_E_TOO_BIG, "Store it elsewhere and pass its name, or raise the limit: weir queue create Q --payload-max SIZE"},
        {WEIR_E_FULL, "Workers can still drain the queues. Raise maxmemory, or wait."},
        {WEIR_E_READONLY, "Use the URL of the primary server."},
        {WEIR_E_SERVER, "weir needs Redis 7.0 or later, or Valkey 7.2 or later. Try: weir doctor"},
        {WEIR_E_DENIED, "Give the password by WEIR_URL, --password-file or REDISCLI_AUTH; rights by ACL SETUSER."},
        {WEIR_E_LOADING, "Try again in a moment."},
        {WEIR_E_NO_REPLY, "Repeat the same command: with the same id it does no harm."},
        {WEIR_E_CORRUPT, "See what is wrong with: weir audit --deep; weir doctor"},
        {WEIR_E_BUG, "Please report it with the command and the output of: weir version"},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        if (hints[i].code == rc)
            return hints[i].text;
    }
    return NULL;
}

static void
tell(enum weir_err rc, const struct weir_error *err, bool with_hint)
{
    const char *text = err->text[0] ? err->text : weir_err_text(rc);
    struct wr_buf shown = {0};

    wr_text_escape(&shown, wr_span_str(text));
    fprintf(stderr, "weir: %s  [%s]\n", (const char *)wr_buf_span(&shown).ptr,
            weir_err_name(rc));
    if (with_hint && hint(rc) && strncmp(text, "cron entry", 10) != 0) /* not a job */
        fprintf(stderr, "      %s\n", hint(rc));
    wr_buf_fini(&shown);
}

void
cli_tell(struct cli *cli, enum weir_err rc, const struct weir_error *err)
{
    fflush(cli->out);
    tell(rc, err, !cli->said);
    cli->said = true;
}

void
cli_note(struct cli *cli, const char *fmt, ...)
{
    va_list ap;

    if (cli->globals.quiet)
        return;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

enum weir_err
cli_confirm(struct cli *cli, struct weir_error *err, const char *fmt, ...)
{
    char answer[16] = "";
    va_list ap;

    if (cli->globals.yes)
        return WEIR_OK;
    if (cli->globals.no_input || !isatty(STDIN_FILENO))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "this asks before it changes something, and there is nobody to "
                       "ask: add --yes");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\nContinue? [y/N] ", stderr);
    fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return WEIR_OK;
    cli_note(cli, "Nothing changed.");
    cli->said = true;
    return WEIR_E_CHECK_FAILED;
}

/* ---- one run ---- */

static enum weir_err
connect_client(struct cli *cli, struct weir_error *err)
{
    struct weir_client_options o = {
        WEIR_CLIENT_OPTIONS_INIT,
        .url = cli_setting(cli->settings, CLI_SET_URL),
        .name_space = cli_setting(cli->settings, CLI_SET_NAMESPACE),
        .password = cli_password(cli->settings),
        .name = "weir-cli",
        .engine = cli_setting(cli->settings, CLI_SET_ENGINE),
    };
    enum weir_err rc = cli_setting_number(cli->settings, CLI_SET_COMMAND_TIMEOUT,
                                          &o.command_timeout_ms, err);

    if (rc == WEIR_OK)
        rc = cli_setting_check(cli->settings, CLI_SET_ENGINE, err);
    if (rc == WEIR_OK && o.command_timeout_ms == 0)
        rc = wr_fail(err, WEIR_E_ARG, 0, "command timeout: more than 0");
    if (rc != WEIR_OK)
        return rc;
    o.connect_timeout_ms = o.command_timeout_ms;
    return weir_client_open(&o, &cli->client, err);
}

/* Help and version; false: there is a command to run. */
static bool
answer_without_command(struct cli *cli, const struct cli_line *line, enum weir_err *rc)
{
    FILE *out = cli->out;

    *rc = WEIR_OK;
    if (cli->globals.version && !line->cmd) {
        fprintf(out, "weir %s\n", WEIR_VERSION);
        return true;
    }
    if (line->cmd && !cli->globals.help)
        return false;
    if (!cli->globals.help) { /* `weir`, `weir job`: not enough said */
        *rc = WEIR_E_ARG;
        cli->said = true;
        out = stderr;
    }
    if (line->cmd)
        cli_help_command(out, line->cmd);
    else if (line->noun)
        cli_help_noun(out, cli->commands, line->noun);
    else
        cli_help_overview(out, cli->commands);
    return true;
}

static enum weir_err
setup(struct cli *cli, const struct cli_cmd *cmd, struct weir_error *err)
{
    const char *form = cli->globals.json ? "json" : cli->globals.output;
    enum weir_err rc;

    if (cmd->needs == CLI_NEEDS_NOTHING)
        return cli_out_setup(cli, form, "--output", err);
    rc = cli_settings_load(&cli->globals, &cli->settings, err);
    if (rc != WEIR_OK)
        return rc;
    rc = cli_out_setup(cli, cli_setting(cli->settings, CLI_SET_OUTPUT),
                       cli_setting_origin(cli->settings, CLI_SET_OUTPUT), err);
    if (rc == WEIR_OK && cmd->needs == CLI_NEEDS_CLIENT)
        rc = connect_client(cli, err);
    return rc;
}

static enum weir_err
run_line(struct cli *cli, int argc, char **argv, struct weir_error *err)
{
    struct cli_line line;
    enum weir_err rc = cli_line_read(argc, argv, cli->commands, &cli->globals, &line,
                                     err);

    if (rc == WEIR_OK && answer_without_command(cli, &line, &rc)) {
        cli_line_fini(&line);
        return rc;
    }
    cli->cmd = line.cmd;
    cli->command = line.command;
    if (rc == WEIR_OK)
        rc = setup(cli, line.cmd, err);
    if (rc == WEIR_OK)
        rc = line.cmd->run(cli, line.opts, line.args, err);
    weir_client_close(cli->client);
    cli_settings_free(cli->settings);
    cli_line_fini(&line);
    return rc;
}

/* A closed 0, 1 or 2 would become the next socket; the stand-in for 1 and 2 refuses
 * writes, so that the loss is noticed. */
static void
keep_standard_descriptors(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            _exit(weir_err_exit_status(WEIR_E_IO));
    }
}

/* All that was printed must have arrived. A reader that went away is no failure. */
static enum weir_err
finish_output(struct cli *cli, enum weir_err rc, struct weir_error *err)
{
    bool failed = ferror(cli->out) != 0;

    errno = 0;
    if (fflush(cli->out) != 0)
        failed = true;
    if (!failed || errno == EPIPE || rc != WEIR_OK)
        return rc;
    return wr_fail(err, WEIR_E_IO, errno, "standard output");
}

int
cli_main(int argc, char **argv, const struct cli_cmd *const *more)
{
    const struct cli_cmd *commands[COMMANDS_MAX] = {0};
    struct cli cli = {.out = stdout, .commands = commands, .exit_status = -1};
    struct weir_error err = {0};
    enum weir_err rc;
    size_t n = 0;

    keep_standard_descriptors();
    wr_log_setup_from_env();
    cli.out_is_tty = isatty(STDOUT_FILENO) == 1;
    cli.err_is_tty = isatty(STDERR_FILENO) == 1;
    for (const struct cli_cmd *const *c = cli_commands; *c && n < COMMANDS_MAX - 1; c++)
        commands[n++] = *c;
    for (; more && *more && n < COMMANDS_MAX - 1; more++)
        commands[n++] = *more;
    rc = run_line(&cli, argc, argv, &err);
    rc = finish_output(&cli, rc, &err);
    if (rc != WEIR_OK && !cli.said)
        tell(rc, &err, true);
    if (cli.exit_status >= 0)
        return cli.exit_status;
    if (rc != WEIR_OK && cli.cmd && cli.cmd->failure_status != 0)
        return cli.cmd->failure_status;
    return weir_err_exit_status(rc);
}
