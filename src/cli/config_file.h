/*
 * cli/config_file.h - the form of weir.conf: `key = value`, [sections], # comments.
 *
 * What the keys mean is the business of who reads it: config.c, handlers.c.
 */
#ifndef WR_CLI_CONFIG_FILE_H
#define WR_CLI_CONFIG_FILE_H

#include <stdbool.h>

#include <weir/error.h>

#include "cli/cli.h"

/* Where a line stands. */
struct cli_conf_place {
    const char *path;
    unsigned line;
    bool others_write; /* everybody may write the file */
};

struct cli_conf_reader {
    /* "[name]", trimmed. */
    enum weir_err (*section)(const struct cli_conf_place *at, const char *name,
                             void *context, struct weir_error *err);
    /* Of the section read last, if any. */
    enum weir_err (*pair)(const struct cli_conf_place *at, const char *key,
                          const char *value, void *context, struct weir_error *err);
    void *context;
};

/* Reads the file from its beginning to its end, or to the first failure. A file that is
 * not there is none unless it must be. E_CONFIG, with file and line. */
enum weir_err
cli_conf_read(const char *path, bool must, const struct cli_conf_reader *reader,
              struct weir_error *err) WEIR_MUST_CHECK;

/* E_CONFIG: "FILE:LINE: " and the text. */
enum weir_err cli_conf_fail(const struct cli_conf_place *at, struct weir_error *err,
                            const char *fmt, ...) WEIR_PRINTF(3, 4);
/* E_CONFIG: `what` ("no setting") "name", and which of `names` may be meant. */
enum weir_err
cli_conf_unknown(const struct cli_conf_place *at, const char *what, const char *name,
                 const char *const *names, struct weir_error *err);

#endif
