/* cli/queues.h - the queues a command is about: those named with -q, else all. */
#ifndef WR_CLI_QUEUES_H
#define WR_CLI_QUEUES_H

#include "cli/cli.h"

struct cli_names {
    char **names;
    size_t n;
};

/* E_ARG: not a queue name. Free with cli_names_fini(). */
enum weir_err cli_queues(struct cli *cli, const struct cli_list *given,
                         struct cli_names *out, struct weir_error *err) WEIR_MUST_CHECK;
void cli_names_fini(struct cli_names *names);

/* Is it the fault of the queue that was looked at, so that another one may be well? */
bool cli_queue_at_fault(enum weir_err rc);

/* A queue whose stored data makes no sense must not hide the others: it is told on
 * stderr, the first one as what the command ends with after it has shown the others.
 * Begin with zeroes. */
struct cli_broken {
    enum weir_err rc;
    struct weir_error error; /* of the first one */
};
/* True: `rc` is of that kind, and was told. */
bool cli_is_broken(struct cli *cli, enum weir_err rc, const struct weir_error *err,
                   struct cli_broken *broken);
/* rc, or if that is OK, what was broken. */
enum weir_err cli_broken_end(const struct cli_broken *broken, enum weir_err rc,
                             struct weir_error *err) WEIR_MUST_CHECK;

/* E_ARG */
enum weir_err cli_check_queue(const char *name, struct weir_error *err) WEIR_MUST_CHECK;

#endif
