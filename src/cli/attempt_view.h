/* cli/attempt_view.h - what became of a job's runs, for people and as JSON. */
#ifndef WR_CLI_ATTEMPT_VIEW_H
#define WR_CLI_ATTEMPT_VIEW_H

#include "base/buf.h"
#include "cli/cli.h"

struct cli_json;

/* One line, not escaped. */
void cli_attempt_text(struct cli *cli, const struct weir_attempt *attempt, int64_t now,
                      struct wr_buf *out);
/* An array of all that are known. */
struct cli_json *cli_attempts_json(const struct weir_job_view *view);

#endif
