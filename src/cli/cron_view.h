/* cli/cron_view.h - cron entries as people and programs see them. */
#ifndef WR_CLI_CRON_VIEW_H
#define WR_CLI_CRON_VIEW_H

#include <weir/cron.h>

#include "cli/cli.h"
#include "cli/out.h"

#define CLI_CRON_PREVIEW 5
#define CLI_CRON_PREVIEW_MAX 1000

struct cli_table *cli_cron_table(struct cli *cli);
/* A row of that table, or a line of JSON. */
void
cli_cron_row(struct cli *cli, struct cli_table *table, const struct weir_cron_info *info);
void cli_cron_show(struct cli *cli, const struct weir_cron_info *info);

/* The next `count` times after after_ms: a line each, for people also in the zone's own
 * time. To stderr: what may surprise. E_DATA, E_CONFIG. */
enum weir_err cli_cron_preview(struct cli *cli, const char *name, const char *schedule,
                               const char *zone, int64_t after_ms, size_t count,
                               struct weir_error *err) WEIR_MUST_CHECK;

/* The queue of the entry: the given one, or the only registered one that has it; *info is
 * the entry there. E_NO_CRON; E_ARG: several have it. */
enum weir_err
cli_cron_find(struct cli *cli, const char *queue, const char *name,
              struct weir_cron_info **info, struct weir_error *err) WEIR_MUST_CHECK;

/* For status, on a terminal: how many entries these queues have, and which is due next.
 * Nothing if there are none. */
enum weir_err cli_cron_summary(struct cli *cli, char *const *queues, size_t n,
                               struct weir_error *err) WEIR_MUST_CHECK;

/* What was done to an entry: a sentence for people, else the word, queue and name. */
void cli_cron_done(struct cli *cli, const char *queue, const char *name, const char *word,
                   const char *sentence);

#endif
