/*
 * cli/args.h - reads a command line by the tables of its command.
 *
 * The order of flags and arguments is free, so the command is found first, with what
 * all tables together say about which flag takes a value: a name means the same in
 * every command.
 */
#ifndef WR_CLI_ARGS_H
#define WR_CLI_ARGS_H

#include "cli/cli.h"

#define CLI_OPTS_MAX 512 /* bytes of the largest option struct */

extern const struct cli_opt cli_global_options[];

struct cli_line {
    const struct cli_cmd *cmd; /* NULL: none named */
    const char *noun;          /* as typed; NULL: none */
    char **args;               /* NULL at the end */
    size_t args_n;
    char *const *command; /* after "--"; NULL: no such word */
    _Alignas(max_align_t) char opts[CLI_OPTS_MAX];
};

/* Fills globals and *line. E_ARG. line->cmd and globals are set as far as they are
 * known, also on failure. Free with cli_line_fini(). */
enum weir_err cli_line_read(int argc, char **argv, const struct cli_cmd *const *commands,
                            struct cli_globals *globals, struct cli_line *line,
                            struct weir_error *err) WEIR_MUST_CHECK;
void cli_line_fini(struct cli_line *line);

/* The command called "noun" or "noun verb"; NULL: none. */
const struct cli_cmd *
cli_find(const struct cli_cmd *const *commands, const char *noun, const char *verb);
bool cli_is_noun(const struct cli_cmd *const *commands, const char *noun);

/* Reads the text of an option; name is for the message. */
enum weir_err
cli_option_store(const struct cli_opt *option, const char *name, const char *value,
                 void *opts, struct weir_error *err) WEIR_MUST_CHECK;

#endif
