/*
 * cli/ids.h - the ids a command is about: its arguments, where "-" stands for the lines
 * of stdin. Of a line only the part before the first tab counts, so that lists of other
 * commands can be piped in.
 */
#ifndef WR_CLI_IDS_H
#define WR_CLI_IDS_H

#include "cli/cli.h"

typedef enum weir_err (*cli_id_fn)(struct cli *cli, const char *id, void *context,
                                   struct weir_error *err);

/*
 * Calls each(id) for every id. A failure of kind STATE or USAGE is told, the rest goes
 * on, and the first such code is the answer; any other failure ends it.
 */
enum weir_err cli_each_id(struct cli *cli, char *const *args, cli_id_fn each,
                          void *context, struct weir_error *err) WEIR_MUST_CHECK;
/* True if there may be more than one. */
bool cli_ids_are_many(char *const *args);

#endif
