/* bin/work_queues.h - which queues `weir work` serves, and how they share its slots. */
#ifndef WR_BIN_WORK_QUEUES_H
#define WR_BIN_WORK_QUEUES_H

#include <weir/worker.h>

#include "bin/commands.h"

struct bin_queues {
    struct weir_worker_share *shares; /* n of them; none: every registered queue */
    size_t n;
    bool strict;
};

/* From the options, else the settings. End it with bin_queues_fini(), also on error. */
enum weir_err
bin_queues_read(struct cli *cli, const struct work_opts *opts, struct bin_queues *out,
                struct weir_error *err) WEIR_MUST_CHECK;
void bin_queues_fini(struct bin_queues *queues);

#endif
