/* cli/help.h - what the table of commands says, for people. */
#ifndef WR_CLI_HELP_H
#define WR_CLI_HELP_H

#include "cli/cli.h"

void cli_help_overview(FILE *out, const struct cli_cmd *const *commands);
void cli_help_noun(FILE *out, const struct cli_cmd *const *commands, const char *noun);
void cli_help_command(FILE *out, const struct cli_cmd *cmd);
void cli_help_tree(FILE *out, const struct cli_cmd *const *commands);
void cli_help_completion(FILE *out, const struct cli_cmd *const *commands);

#endif
