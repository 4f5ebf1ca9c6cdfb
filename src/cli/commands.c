#include "cli/commands.h"

/* In the order of the help. */
const struct cli_cmd *const cli_commands[] = {
    &cmd_enqueue,     &cmd_status,
    &cmd_audit,       &cmd_job_ls,
    &cmd_job_show,    &cmd_job_wait,
    &cmd_job_payload, &cmd_job_result,
    &cmd_queue_ls,    &cmd_queue_show,
    &cmd_worker_ls,   &cmd_dead_ls,
    &cmd_dead_show,   &cmd_dead_retry,
    &cmd_dead_purge,  &cmd_job_cancel,
    &cmd_queue_pause, &cmd_queue_resume,
    &cmd_queue_purge, &cmd_queue_create,
    &cmd_doctor,      &cmd_config_show,
    &cmd_completion,  &cmd_version,
    &cmd_help,        NULL,
};
