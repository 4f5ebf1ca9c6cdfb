/* cli/bulk.h - `weir enqueue --from FILE`: one job a line. */
#ifndef WR_CLI_BULK_H
#define WR_CLI_BULK_H

#include "cli/job_spec.h"

struct cli_bulk_options {
    const char *file; /* "-": stdin */
    const char *progress;
    int64_t batch; /* lines of one call */
    bool continue_on_error;
    const struct cli_job_spec *base;
    int64_t max_retry;
};

/* E_DATA: a line was wrong (told as FILE:LINE: why); the jobs of other lines are stored,
 * and it says how many. */
enum weir_err cli_bulk(struct cli *cli, const struct cli_bulk_options *options,
                       struct weir_error *err) WEIR_MUST_CHECK;

#endif
