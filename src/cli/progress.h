/*
 * cli/progress.h - a line on stderr that says how far a long command is.
 *
 * Only on a terminal and only after 500 ms; `json` prints lines for machines instead.
 */
#ifndef WR_CLI_PROGRESS_H
#define WR_CLI_PROGRESS_H

#include "cli/cli.h"

struct cli_progress {
    bool on, json, shown;
    int64_t begin_ms, last_ms;
    const char *what; /* "jobs" */
};

/* form: NULL or "": by itself, "json", "none". E_ARG. */
enum weir_err cli_progress_init(struct cli_progress *p, struct cli *cli, const char *form,
                                const char *what, struct weir_error *err) WEIR_MUST_CHECK;
/* done of the unit `what`; part of whole is for the bar (whole <= 0: not known). */
void cli_progress_show(struct cli_progress *p, int64_t done, int64_t part, int64_t whole);
void cli_progress_end(struct cli_progress *p); /* wipes the line */

#endif
