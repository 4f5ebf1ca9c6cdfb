/* cli/queues.h - the queues a command is about: those named with -q, else all. */
#ifndef WR_CLI_QUEUES_H
#define WR_CLI_QUEUES_H

#include "cli/cli.h"

struct cli_names {
    char **names;
    size_t n;
};

/* E_ARG: not a queue name. Free with cli_names_fini(). */
enum weir_err cli_queues(struct cli *cli, const struct cli_list *given,
                         struct cli_names *out, struct weir_error *err) WEIR_MUST_CHECK;
void cli_names_fini(struct cli_names *names);

/* E_ARG */
enum weir_err cli_check_queue(const char *name, struct weir_error *err) WEIR_MUST_CHECK;

#endif
