/* cli/run_wait.h - to the end of a command job, and as what it ended. */
#ifndef WR_CLI_RUN_WAIT_H
#define WR_CLI_RUN_WAIT_H

#include "cli/cli.h"

/* Waits however long it takes, also for a server that is away; SIGINT ends the program
 * with 130 and leaves the job. Prints its output, or why it failed, and sets
 * cli->exit_status: that of the command; 124 its timeout, 126 it may not or cannot be
 * run, 127 there is no such program, 128 + n it was killed by signal n. later: it was not
 * to start at once. E_NO_JOB: it was cancelled or removed. */
enum weir_err cli_run_wait(struct cli *cli, const char *queue, const char *id, bool later,
                           struct weir_error *err) WEIR_MUST_CHECK;

#endif
