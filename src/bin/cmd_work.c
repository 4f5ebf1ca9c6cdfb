/* weir work: a worker from the command line; its handlers are commands. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/worker.h>

#include "base/error.h"
#include "bin/commands.h"
#include "bin/handlers.h"
#include "bin/work_queues.h"
#include "cli/config.h"

static const struct cli_opt work_options[] = {
    {"queue", 'q', CLI_LIST, offsetof(struct work_opts, queues), "Q[:W]",
     "serve this queue, with this weight (default: every registered one)"},
    {"strict", 0, CLI_FLAG, offsetof(struct work_opts, strict), NULL,
     "a queue only while those named before it are empty"},
    {"reserve", 0, CLI_LIST, offsetof(struct work_opts, reserve), "Q=N",
     "keep N slots of each child for this queue"},
    {"exec", 0, CLI_LIST, offsetof(struct work_opts, exec), "TYPE=CMD",
     "run CMD by /bin/sh for jobs of this type"},
    {"coproc", 0, CLI_LIST, offsetof(struct work_opts, coprocs), "TYPE=CMD",
     "keep CMD running and give it jobs of this type as lines of JSON"},
    {"plugin", 0, CLI_LIST, offsetof(struct work_opts, plugins), "FILE.so",
     "run the handlers of this shared object"},
    {"allow-command-jobs", 0, CLI_LIST, offsetof(struct work_opts, allow_commands),
     "PATTERN", "run the commands that jobs bring, if the program fits (weir run)"},
    {"clean-env", 0, CLI_FLAG, offsetof(struct work_opts, clean_env), NULL,
     "commands see only PATH HOME USER LANG TZ of this environment"},
    {"pass-env", 0, CLI_LIST, offsetof(struct work_opts, pass_env), "NAME",
     "and this variable; NAME* for all that begin so"},
    {"concurrency", 'c', CLI_COUNT, offsetof(struct work_opts, concurrency), "N",
     "slots of a child (default: the number of CPUs)"},
    {"processes", 0, CLI_COUNT, offsetof(struct work_opts, processes), "N",
     "worker children (default 1)"},
    {"grace", 0, CLI_DURATION, offsetof(struct work_opts, grace_ms), "D",
     "what running jobs get at the end (default 20s)"},
    {"lease", 0, CLI_DURATION, offsetof(struct work_opts, lease_ms), "D",
     "how soon a lost host is noticed (default 15s)"},
    {"job-timeout", 0, CLI_DURATION, offsetof(struct work_opts, job_timeout_ms), "D",
     "how long a run may take of a job that does not say it (default 30m; 0: no limit)"},
    {"keep-result", 0, CLI_DURATION, offsetof(struct work_opts, keep_result_ms), "D",
     "how long a job that is done is kept if it does not say it (default: not at all)"},
    {"max-jobs", 0, CLI_COUNT, offsetof(struct work_opts, max_jobs), "N",
     "end after so many jobs"},
    {"max-time", 0, CLI_DURATION, offsetof(struct work_opts, max_time_ms), "D",
     "end after so long, as after SIGTERM"},
    {"once", 0, CLI_FLAG, offsetof(struct work_opts, once), NULL, "end after one job"},
    {"drain", 0, CLI_FLAG, offsetof(struct work_opts, drain), NULL,
     "end when nothing is ready"},
    {"no-scheduler", 0, CLI_FLAG, offsetof(struct work_opts, no_scheduler), NULL,
     "leave promotion and reclaim to others"},
    {"pidfile", 0, CLI_TEXT, offsetof(struct work_opts, pidfile), "FILE",
     "write the process number there"},
    {"log", 0, CLI_TEXT, offsetof(struct work_opts, log), "FILE",
     "append messages there instead of standard error"},
    {0},
};

/* A flag, else the setting, else `otherwise`. */
static enum weir_err
number_of(struct cli *cli, int64_t given, enum cli_setting setting, int64_t otherwise,
          int64_t *out, struct weir_error *err)
{
    *out = otherwise;
    if (given == CLI_UNSET)
        return cli_setting_number(cli->settings, setting, out, err);
    *out = given;
    return WEIR_OK;
}

static enum weir_err
fill(struct cli *cli, const struct work_opts *o, struct weir_worker_options *w,
     struct weir_error *err)
{
    const struct {
        int64_t given;
        enum cli_setting setting;
        int64_t *out;
    } rows[] = {{o->grace_ms, CLI_SET_GRACE, &w->grace_ms},
                {o->lease_ms, CLI_SET_LEASE, &w->lease_ms},
                {o->max_time_ms, CLI_SET_MAX_TIME, &w->max_time_ms},
                {o->keep_result_ms, CLI_SET_KEEP_RESULT, &w->keep_result_ms}};
    int64_t concurrency, processes, max_jobs, job_timeout;
    enum weir_err rc = number_of(cli, o->concurrency, CLI_SET_CONCURRENCY, 0,
                                 &concurrency, err);

    if (rc == WEIR_OK)
        rc = number_of(cli, o->processes, CLI_SET_PROCESSES, 1, &processes, err);
    if (rc == WEIR_OK)
        rc = number_of(cli, o->max_jobs, CLI_SET_MAX_JOBS, 0, &max_jobs, err);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && rc == WEIR_OK; i++)
        rc = number_of(cli, rows[i].given, rows[i].setting, 0, rows[i].out, err);
    if (rc == WEIR_OK)
        rc = number_of(cli, o->job_timeout_ms, CLI_SET_JOB_TIMEOUT, CLI_UNSET,
                       &job_timeout, err);
    if (rc != WEIR_OK)
        return rc;
    w->job_timeout_ms = job_timeout == CLI_UNSET ? 0
                        : job_timeout == 0       ? WEIR_NONE
                                                 : job_timeout;
    if (o->grace_ms == 0)
        w->grace_ms = 1; /* 0 is the default there */
    w->concurrency = (size_t)concurrency;
    w->processes = (size_t)processes;
    w->max_jobs = (size_t)max_jobs;
    w->once = o->once;
    w->drain = o->drain;
    w->notify = true;
    w->no_scheduler = o->no_scheduler;
    w->pidfile = o->pidfile ? o->pidfile : cli_setting(cli->settings, CLI_SET_PIDFILE);
    return WEIR_OK;
}

/* The messages go to the end of a file; it may be moved away and the worker restarted. */
static enum weir_err
redirect_log(struct cli *cli, const struct work_opts *o, struct weir_error *err)
{
    const char *path = o->log ? o->log : cli_setting(cli->settings, CLI_SET_LOG_FILE);
    int fd;

    if (!path)
        return WEIR_OK;
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0) {
        int failed = errno;

        if (fd >= 0)
            close(fd);
        return wr_fail(err, WEIR_E_IO, failed, "log file %.200s", path);
    }
    close(fd);
    return WEIR_OK;
}

/* 0 would silently be the default. */
static enum weir_err
check_zeros(const struct work_opts *o, struct weir_error *err)
{
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {{"--concurrency", o->concurrency},
                {"--processes", o->processes},
                {"--lease", o->lease_ms},
                {"--max-jobs", o->max_jobs},
                {"--max-time", o->max_time_ms}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].value == 0)
            return wr_fail(err, WEIR_E_ARG, 0, "%s: more than 0", rows[i].name);
    }
    return WEIR_OK;
}

enum weir_err
bin_worker_new(struct cli *cli, const struct work_opts *o, const char *url,
               struct weir_worker **out, struct weir_error *err)
{
    struct weir_worker_options w = {
        WEIR_WORKER_OPTIONS_INIT,
        .url = url,
        .name_space = cli_setting(cli->settings, CLI_SET_NAMESPACE),
        .password = cli_password(cli->settings),
        .engine = cli_setting(cli->settings, CLI_SET_ENGINE),
    };
    struct bin_queues queues;
    enum weir_err rc = bin_queues_read(cli, o, &queues, err);

    *out = NULL;
    w.shares = queues.shares;
    w.shares_count = queues.n;
    w.strict = queues.strict;
    if (rc == WEIR_OK)
        rc = cli_setting_check(cli->settings, CLI_SET_ENGINE, err);
    if (rc == WEIR_OK)
        rc = check_zeros(o, err);
    if (rc == WEIR_OK)
        rc = fill(cli, o, &w, err);
    if (rc == WEIR_OK)
        rc = weir_worker_new(&w, out, err);
    if (rc == WEIR_OK)
        rc = bin_add_handlers(cli, o, *out, err);
    bin_queues_fini(&queues);
    if (rc != WEIR_OK) {
        weir_worker_free(*out);
        *out = NULL;
    }
    return rc;
}

static enum weir_err
work(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct work_opts *o = opts;
    struct weir_worker *worker;
    enum weir_err rc;

    (void)args;
    if (!bin_has_handlers(cli, o))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "nothing to run: give a command after --, --exec TYPE=CMD, "
                       "--plugin FILE.so, --allow-command-jobs, or sections "
                       "[handler.TYPE] in weir.conf");
    rc = bin_worker_new(cli, o, cli_setting(cli->settings, CLI_SET_URL), &worker, err);
    if (rc != WEIR_OK)
        return rc;
    rc = redirect_log(cli, o, err);
    if (rc == WEIR_OK)
        rc = weir_worker_run(worker, err);
    weir_worker_free(worker);
    return rc;
}

const struct cli_cmd cmd_work = {
    .noun = "work",
    .group = "Work",
    .args = "[-- CMD ARG...]",
    .summary = "run jobs: CMD for every job, payload on stdin, stdout is the result",
    .examples = "  weir work -q mail -- ./send-mail\n"
                "  weir work -q mail:6 -q report:1 -- ./run-job\n"
                "  weir work --exec 'hash=sha256sum'\n",
    .takes_command = true,
    .needs = CLI_NEEDS_SETTINGS,
    .opts = work_options,
    .opts_size = sizeof(struct work_opts),
    .run = work,
};
