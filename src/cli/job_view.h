/* cli/job_view.h - one job, as it is shown: as a row, whole, or as JSON. */
#ifndef WR_CLI_JOB_VIEW_H
#define WR_CLI_JOB_VIEW_H

#include "cli/cli.h"
#include "cli/out.h"

struct cli_table *cli_job_table(struct cli *cli);
/* A row of that table, or a line of JSON. */
void
cli_job_row(struct cli *cli, struct cli_table *table, const struct weir_job_view *view);
void cli_job_show(struct cli *cli, const struct weir_job_view *view);
/* One that is over and not kept: what weir_job_progress() knows of it. */
void cli_job_show_over(struct cli *cli, const struct weir_job_view *view);

#endif
