/*
 * cli/cli.h - what every subcommand of `weir` looks like.
 *
 * To add one: write cmd_NAME.c, export a struct cli_cmd, add it to the table in
 * commands.c (or, if it needs the worker or the scheduler, to the one in bin/weir.c)
 * and to docs/man/weir.1.scd. Parsing, help, completion and the exit status come from
 * the table.
 *
 * The tool is one thread; it may end with a message when memory runs out.
 */
#ifndef WR_CLI_CLI_H
#define WR_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/client.h>

/* A number, duration, size or time that was not given. */
#define CLI_UNSET INT64_MIN

enum cli_opt_type {
    CLI_FLAG,     /* bool */
    CLI_TEXT,     /* const char *, borrowed from argv */
    CLI_LIST,     /* struct cli_list; may be given again and again */
    CLI_COUNT,    /* int64_t, 0 to 1,000,000,000 */
    CLI_DURATION, /* int64_t ms: "90s", "5m", "250ms"; a bare number is seconds */
    CLI_SIZE,     /* int64_t bytes: "64k", "1M" */
    CLI_TIME,     /* int64_t ms since 1970: RFC 3339, "now+5m", "tomorrow 09:00" */
    CLI_EVERY,    /* int64_t ms; the value is optional and only taken after a `=` */
    CLI_MAYBE,    /* const char *; the same: "" when given without one */
    CLI_OPTIONAL, /* const char *; the next word too, if it is no flag; cli_no_value */
};
extern const char cli_no_value[]; /* its address: the flag came alone */

struct cli_list {
    const char **items; /* borrowed texts; the array is the parser's */
    size_t n;
};

struct cli_opt {
    const char *name; /* without the dashes; NULL ends the table */
    char letter;      /* 0: none */
    enum cli_opt_type type;
    size_t field;    /* offsetof() in the command's option struct */
    const char *arg; /* "TIME" in the help; NULL for a flag */
    const char *help;
};

/* The flags that every command knows. */
struct cli_globals {
    const char *url, *name_space, *config, *output, *password_file;
    bool json, quiet, verbose, no_color, utc, yes, dry_run, no_input, help, version;
    int64_t command_timeout_ms;
};

enum cli_format {
    CLI_OUT_TABLE,
    CLI_OUT_WIDE,
    CLI_OUT_PLAIN,
    CLI_OUT_JSON,
    CLI_OUT_JSONL,
    CLI_OUT_ID
};

struct cli_settings;
struct cli_cmd;

/* What a subcommand may use. It owns none of it. */
struct cli {
    struct cli_globals globals;
    struct cli_settings *settings;
    const struct cli_cmd *const *commands; /* NULL at the end */
    const struct cli_cmd *cmd;             /* the one that runs */
    struct weir_client *client;            /* NULL unless the command connects */
    FILE *out;                             /* answers; all else goes to stderr */
    enum cli_format format;
    bool out_is_tty, err_is_tty, color;
    bool said;       /* a failure has been told already: print nothing more about it */
    int exit_status; /* what the program ends with; -1: as the answer of run() says */
    char *const *command; /* what follows "--", for commands that run one; or NULL */
};

enum cli_needs {
    CLI_NEEDS_NOTHING,  /* reads no configuration */
    CLI_NEEDS_SETTINGS, /* cli->settings */
    CLI_NEEDS_CLIENT,   /* cli->client, connected */
};

struct cli_cmd {
    const char *noun, *verb; /* verb NULL: a command of one word */
    const char *alias;       /* another noun; NULL: none */
    const char *group;       /* heading in the help */
    const char *args;        /* "ID..." */
    const char *summary;     /* one line, no full stop */
    const char *examples;    /* lines; NULL: none */
    int min_args, max_args;  /* max -1: no limit */
    bool takes_command;      /* words after "--" are a command, not arguments */
    enum cli_needs needs;
    int failure_status; /* exit status of every failure of its own; 0: by the error */
    const struct cli_opt *opts; /* NULL: none */
    size_t opts_size;

    /* args ends with NULL. opts points to opts_size bytes: zero, or CLI_UNSET for
     * numbers, where not given. */
    enum weir_err (*run)(struct cli *cli, const void *opts, char *const *args,
                         struct weir_error *err);
};

/* Runs one command line and returns the exit status. `more` (NULL at the end) are the
 * commands of the program beside those of cli/. */
int cli_main(int argc, char **argv, const struct cli_cmd *const *more);

/* Asks y/N on the terminal; --yes answers it. E_ARG: there is nobody to ask.
 * E_CHECK_FAILED (and told): the answer was no. */
enum weir_err cli_confirm(struct cli *cli, struct weir_error *err, const char *fmt,
                          ...) WEIR_MUST_CHECK WEIR_PRINTF(3, 4);

/* A line for people on stderr, unless --quiet. */
void cli_note(struct cli *cli, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* One failure of several, told at once as main would tell the last one. */
void cli_tell(struct cli *cli, enum weir_err rc, const struct weir_error *err);

/* Memory, or the end of the program. */
_Noreturn void cli_out_of_memory(void);
void *cli_alloc(size_t size); /* zeroed */
void *cli_grow(void *ptr, size_t count, size_t size);
char *cli_strdup(const char *text);

#endif
