/* cli/command_line.h - the command of a command job, as a person would type it. */
#ifndef WR_CLI_COMMAND_LINE_H
#define WR_CLI_COMMAND_LINE_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/cli.h"

/* Appends its words, quoted for a shell where they must be. False: it is no such job, or
 * its payload cannot be read. */
bool cli_command_line(const struct weir_job_view *view, struct wr_buf *out);

#endif
