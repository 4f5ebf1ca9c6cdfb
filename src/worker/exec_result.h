/* worker/exec_result.h - the result of a command that succeeded. */
#ifndef WR_WORKER_EXEC_RESULT_H
#define WR_WORKER_EXEC_RESULT_H

#include "worker/exec_config.h"
#include "worker/handler.h"

/* Makes d->result, which holds what was kept of its output, the result as the handler
 * wants it: the file it named, its last line, JSON. folder: where relative names begin.
 * False when the attempt fails for it; d->error then says why. */
bool wr_exec_result_take(struct weir_delivery *d, const struct wr_exec_config *config,
                         const struct wr_exec_end *end, const char *folder);

#endif
