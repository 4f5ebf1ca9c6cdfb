/*
 * cli/wait_bar.h - what `weir job wait` shows on stderr while it waits: of one job how
 * far it is, of several how many have ended.
 *
 * Who waits is told of the end and asks for nothing; how far a job is must be looked up,
 * twice a second, by a thread of its own. There is none, and nothing is looked up, when
 * nobody would see it.
 */
#ifndef WR_CLI_WAIT_BAR_H
#define WR_CLI_WAIT_BAR_H

#include "cli/cli.h"

struct cli_wait_bar;

/* form: as of cli_progress_init(). *out is NULL when nothing is to be shown. queue and
 * ids must live until the stop. E_ARG. */
enum weir_err cli_wait_bar_start(struct cli *cli, const char *form, const char *queue,
                                 char *const *ids, size_t n, struct cli_wait_bar **out,
                                 struct weir_error *err) WEIR_MUST_CHECK;
/* Before and after a line for people: the bar is wiped, and nothing is drawn meanwhile.
 * NULL is allowed. */
void cli_wait_bar_hide(struct cli_wait_bar *bar);
void cli_wait_bar_go_on(struct cli_wait_bar *bar, bool one_ended);
void cli_wait_bar_stop(struct cli_wait_bar *bar); /* NULL is allowed */

#endif
