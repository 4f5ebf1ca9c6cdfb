/* cli/run_follow.h - what a command job prints beside its result, as it comes, on stderr
 * here: bytes as they are, but escaped on a terminal. */
#ifndef WR_CLI_RUN_FOLLOW_H
#define WR_CLI_RUN_FOLLOW_H

#include "cli/cli.h"

/* A value; zero but for the first three. */
struct cli_follow {
    struct cli *cli;
    const char *queue, *id;
    struct weir_output_place place;
    bool in_line; /* the last bytes had no newline */
};

/* All that has come since the last call. What cannot be read is left out: it is only
 * what people see of it. */
void cli_follow_read(struct cli_follow *follow);
/* The job is over: what comes a moment later, too. printed: there must be something. */
void cli_follow_end(struct cli_follow *follow, bool printed);

#endif
