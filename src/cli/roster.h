/* cli/roster.h - the workers, from their heartbeats. */
#ifndef WR_CLI_ROSTER_H
#define WR_CLI_ROSTER_H

#include "cli/cli.h"

#define CLI_WORKER_LATE_MS 15000 /* three heartbeats */

struct cli_worker {
    char id[132], host[68], queues[300];
    int64_t silent_ms; /* since its last heartbeat */
    int64_t pid, slots, busy, processed, started_at;
};

struct cli_roster {
    struct cli_worker *workers; /* the last heard first */
    size_t n, late;
    int64_t now; /* the server's time */
};

/* details: also what each told about itself. Free with cli_roster_fini(). */
enum weir_err cli_roster_read(struct cli *cli, bool details, struct cli_roster *out,
                              struct weir_error *err) WEIR_MUST_CHECK;
void cli_roster_fini(struct cli_roster *roster);

#endif
