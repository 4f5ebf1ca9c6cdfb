/* cli/queue_view.h - one queue, as status and queue ls show it. */
#ifndef WR_CLI_QUEUE_VIEW_H
#define WR_CLI_QUEUE_VIEW_H

#include "cli/cli.h"
#include "cli/out.h"

struct cli_table *cli_queue_table(struct cli *cli);
/* A row of that table, or a line of JSON. */
void cli_queue_row(struct cli *cli, struct cli_table *table, const char *queue,
                   const struct weir_audit *audit);
/* Why it is not healthy, one line; false: it is. */
bool cli_queue_complaint(const char *queue, const struct weir_audit *audit, char *out,
                         size_t cap);
/* Nobody takes the steps of its move to another engine any more. */
bool cli_queue_move_is_left(const struct weir_audit *audit);
/* Of a queue that moves: since when, and the command that goes on or takes it back. */
void cli_queue_say_move(const char *queue, const struct weir_audit *audit, char *out,
                        size_t cap);
/* That command alone. */
void cli_queue_move_fix(const char *queue, const struct weir_audit *audit, char *out,
                        size_t cap);

/* What was done to a queue: a sentence, a line, or JSON. */
void cli_queue_done(struct cli *cli, const char *queue, const char *word,
                    const char *sentence);

#endif
