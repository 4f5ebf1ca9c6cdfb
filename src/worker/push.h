/*
 * worker/push.h - follow-up jobs as a command asks for them: `push JSON` on its control
 * pipe. See weir-exec(7).
 */
#ifndef WR_WORKER_PUSH_H
#define WR_WORKER_PUSH_H

#include <stdbool.h>

#include "base/span.h"
#include "worker/handler.h"

#define WR_PUSH_BYTES_MAX 262144 /* of all lines of a command */

/* Lines of JSON, each a follow-up job of this delivery. False: one of them is no job, the
 * delivery's error says which and why. */
bool wr_push_take(struct weir_delivery *d, struct wr_span lines);

#endif
