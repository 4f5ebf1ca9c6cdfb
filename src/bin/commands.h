/* bin/commands.h - the commands that need the worker, the scheduler or the embedded
 * server. */
#ifndef WR_BIN_COMMANDS_H
#define WR_BIN_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_cmd cmd_work, cmd_scheduler, cmd_dev, cmd_bench, cmd_config_check;

/* The options of weir work, used by weir dev as well. */
struct work_opts {
    struct cli_list queues, reserve, exec, coprocs, pass_env, allow_commands, plugins;
    int64_t concurrency, processes, grace_ms, lease_ms, max_jobs, max_time_ms,
        job_timeout_ms, keep_result_ms;
    bool strict, once, drain, no_scheduler, clean_env, allow_all_commands;
    const char *pidfile, *log;
};
/* No flag given. */
#define BIN_WORK_OPTS_UNSET                                                      \
    {                                                                            \
        .concurrency = CLI_UNSET, .processes = CLI_UNSET, .grace_ms = CLI_UNSET, \
        .lease_ms = CLI_UNSET, .max_jobs = CLI_UNSET, .max_time_ms = CLI_UNSET,  \
        .job_timeout_ms = CLI_UNSET, .keep_result_ms = CLI_UNSET                 \
    }
struct weir_worker;
/* A worker from options and settings, with its exec handlers. Free with
 * weir_worker_free(). */
enum weir_err
bin_worker_new(struct cli *cli, const struct work_opts *opts, const char *url,
               struct weir_worker **out, struct weir_error *err) WEIR_MUST_CHECK;
/* Schedules until SIGTERM or SIGINT. queues NULL: every registered one; lease_ms
 * CLI_UNSET: from the settings. */
enum weir_err
bin_scheduler_run(struct cli *cli, const char *url, const char *const *queues,
                  int64_t lease_ms, struct weir_error *err) WEIR_MUST_CHECK;

#endif
