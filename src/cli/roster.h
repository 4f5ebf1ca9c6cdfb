/* cli/roster.h - the workers, from their heartbeats. */
#ifndef WR_CLI_ROSTER_H
#define WR_CLI_ROSTER_H

#include "cli/cli.h"

#define CLI_WORKER_LATE_MS 12000 /* two heartbeats, and what a call may take */

struct cli_worker {
    char id[132], host[68], mode[16], version[32], boot[24], order[8], order_by[100];
    char broken[256];       /* types whose handlers cannot be started there; "" if none */
    char *queues, *running; /* running: lines "queue TAB id", at most 20; "" if none */
    char *alone;            /* such lines of jobs for which a child takes no others */
    char *timeouts;         /* lines "type TAB ms" of its handlers; "" if none has one */
    int64_t silent_ms;      /* since its last heartbeat */
    int64_t protocol, pid, children, slots, busy, processed, failed, rss, started_at;
    int64_t contact_ms;  /* its slowest child had fetched nothing for so long, then */
    int64_t order_at;    /* 0: no order stands */
    int64_t order_grace; /* of a stop, ms; -1: not said */
    int64_t job_timeout; /* of jobs that do not say it, ms; 0: none; -1: not said */
};

struct cli_roster {
    struct cli_worker *workers; /* the last heard first */
    size_t n, late;
    int64_t now; /* the server's time */
};

/* "late", "up", "quiet" or "draining". */
const char *cli_worker_state(const struct cli_worker *worker);
/* True if this queue is among those that it was told to serve. Needs details. */
bool cli_worker_names(const struct cli_worker *worker, const char *queue);
/* True if it takes jobs of this queue. Needs details. */
bool cli_worker_serves(const struct cli_worker *worker, const char *queue);

/* details: also what each told about itself. Free with cli_roster_fini(). */
enum weir_err cli_roster_read(struct cli *cli, bool details, struct cli_roster *out,
                              struct weir_error *err) WEIR_MUST_CHECK;
/* What the worker of this name tells about itself, or that of which it is a child; false:
 * it told nothing, or it cannot be asked. Free its texts with cli_worker_fini(). */
bool cli_worker_read(struct cli *cli, const char *id, struct cli_worker *out);
/* How long its handler for this type lets a run take, ms; 0: as long as the job may. */
int64_t cli_worker_timeout_of(const struct cli_worker *worker, const char *type);
void cli_worker_fini(struct cli_worker *worker);
/* The worker of this name, also by the name of one of its children; NULL: none. */
const struct cli_worker *cli_roster_find(const struct cli_roster *roster, const char *id);
void cli_roster_fini(struct cli_roster *roster);

#endif
