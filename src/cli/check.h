/*
 * cli/check.h - the conditions of `weir status --check`: "dead<10,age<60s".
 *
 * Names: ready delayed processing dead done overdue stuck gap stale retried reclaimed
 * (numbers), age (of the oldest ready job), lag (of the first overdue one).
 */
#ifndef WR_CLI_CHECK_H
#define WR_CLI_CHECK_H

#include "cli/cli.h"

/* Reads it once without a queue, to find mistakes. E_ARG. */
enum weir_err cli_check_parse(const char *expr, struct weir_error *err) WEIR_MUST_CHECK;
/* False: *why says which condition does not hold. expr is one that could be parsed. */
bool cli_check_holds(const char *expr, const struct weir_audit *audit, char *why,
                     size_t why_cap);

#endif
