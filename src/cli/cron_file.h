/*
 * cli/cron_file.h - cron entries as a file says them, for `weir cron apply`.
 *
 *     # comment
 *     [nightly]
 *     schedule = 0 3 * * *
 *     tz = Europe/Berlin
 *     type = report
 *
 * A section is an entry. Its names are the flags of `weir cron add` (without dashes in
 * front), and schedule, type, payload. A value goes on to the end of its line; blanks
 * around it are dropped.
 */
#ifndef WR_CLI_CRON_FILE_H
#define WR_CLI_CRON_FILE_H

#include "cli/cron_spec.h"

#define CLI_CRON_FILE_MAX (16 * 1024 * 1024)

struct cli_cron_section {
    char *name;
    size_t line; /* of its head, from 1 */
    struct cli_cron_spec spec;
};

struct cli_cron_file {
    char *text; /* what the specs point to */
    struct cli_cron_section *sections;
    size_t n;
};

/* "-" is stdin. Every error names file and line. E_IO, E_DATA. Free with
 * cli_cron_file_fini(), also on failure. */
enum weir_err cli_cron_file_read(const char *path, struct cli_cron_file *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;
void cli_cron_file_fini(struct cli_cron_file *file);

#endif
