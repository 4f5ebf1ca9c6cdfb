/*
 * bin/handlers.h - which commands a worker runs.
 *
 * `-- CMD` runs every job, but those of an --exec; without it the sections of weir.conf
 * count, and an --exec names another command for the type of a section.
 */
#ifndef WR_BIN_HANDLERS_H
#define WR_BIN_HANDLERS_H

#include <weir/worker.h>

#include "bin/commands.h"

enum weir_err
bin_add_handlers(struct cli *cli, const struct work_opts *opts,
                 struct weir_worker *worker, struct weir_error *err) WEIR_MUST_CHECK;
/* False: a worker would have nothing to run. */
bool bin_has_handlers(const struct cli *cli, const struct work_opts *opts);

#endif
