/*
 * worker/exec_config.h - what a handler that runs commands was told, checked and copied:
 * the inside of struct weir_exec_options.
 *
 * Made before the worker has processes or threads, never written afterwards.
 */
#ifndef WR_WORKER_EXEC_CONFIG_H
#define WR_WORKER_EXEC_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <weir/worker.h>

#include "worker/spawner.h"

#define WR_RESULT_MAX 65536 /* bytes of a result */

struct wr_exec_config {
    struct weir_exec_options o; /* defaults filled in; of its pointers argv, cwd and exits
                                   lead to copies, the others are NULL */
    /* Environment: what the handler sets, then what it takes from the worker. NULL at the
     * end. */
    char **env;
    struct wr_exec_limits limits;
    char **argv;        /* what is run: with shell, /bin/sh and so on */
    char **json_fields; /* words of argv that each job's payload says; NULL: none */
    char *file; /* instead of argv[0]; NULL: that. Of a job that brings its command */
    char *cwd;
    struct weir_exec_exit *exits;
};

/* E_ARG with a text that says which option and why; E_NO_MEMORY. */
enum weir_err
wr_exec_config_new(const struct weir_exec_options *options, struct wr_exec_config **out,
                   struct weir_error *err) WEIR_MUST_CHECK;
void wr_exec_config_free(struct wr_exec_config *config); /* NULL is allowed */

/* What an exit status means here. */
enum weir_outcome wr_exec_config_outcome(const struct wr_exec_config *config, int status);
/* The status is 126 or 127 and no rule says what it means. */
bool wr_exec_config_is_broken(const struct wr_exec_config *config, int status);

/* A variable of the worker that no command may see. */
bool wr_exec_is_secret(const char *variable);

#endif
