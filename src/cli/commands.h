/* cli/commands.h - one line per command of cli/; commands.c has their order. */
#ifndef WR_CLI_COMMANDS_H
#define WR_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_cmd cmd_enqueue, cmd_run;
extern const struct cli_cmd cmd_status, cmd_audit;
extern const struct cli_cmd cmd_job_ls, cmd_job_show, cmd_job_wait, cmd_job_payload,
    cmd_job_result, cmd_job_logs, cmd_job_cancel, cmd_job_edit, cmd_job_run;
extern const struct cli_cmd cmd_cron_ls, cmd_cron_show, cmd_cron_next, cmd_cron_add,
    cmd_cron_edit, cmd_cron_pause, cmd_cron_resume, cmd_cron_run, cmd_cron_rm,
    cmd_cron_apply;
extern const struct cli_cmd cmd_dead_ls, cmd_dead_show, cmd_dead_retry, cmd_dead_purge;
extern const struct cli_cmd cmd_queue_ls, cmd_queue_show, cmd_queue_create,
    cmd_queue_pause, cmd_queue_resume, cmd_queue_purge, cmd_queue_set, cmd_queue_migrate,
    cmd_queue_rm;
extern const struct cli_cmd cmd_worker_ls, cmd_worker_show, cmd_worker_quiet,
    cmd_worker_resume, cmd_worker_stop;
extern const struct cli_cmd cmd_doctor, cmd_explain;
extern const struct cli_cmd cmd_progress, cmd_note, cmd_heartbeat, cmd_extend, cmd_snooze,
    cmd_fail, cmd_result, cmd_token;
extern const struct cli_cmd cmd_config_show, cmd_config_default, cmd_completion,
    cmd_version, cmd_help;

extern const struct cli_cmd *const cli_commands[]; /* NULL at the end */

#endif
