/*
 * cli/handlers.h - the sections [handler.TYPE] of weir.conf: which command runs jobs of
 * a type, and within which bounds. See weir.conf(5).
 */
#ifndef WR_CLI_HANDLERS_H
#define WR_CLI_HANDLERS_H

#include <weir/worker.h>

#include "cli/config_file.h"

/* X(key, kind, field of struct weir_exec_options, help); take_KIND() of handler_values.c
 * reads the value. */
/* clang-format off */
#define CLI_HANDLER_KEYS(X) \
    X("command", command, argv, "words of the command, or with shell the line for /bin/sh") \
    X("shell", bool, shell, "the command is a line for /bin/sh -c") \
    X("coproc", bool, coproc, "the command stays and gets its jobs as lines of JSON (no)") \
    X("json_fields", fields, json_fields, "members of a JSON payload: the word {NAME} of the command becomes one") \
    X("clean_env", bool, clean_env, "of the worker's environment only PATH HOME USER LANG TZ and pass_env (yes)") \
    X("pass_env", names, pass_env, "names of variables that pass, NAME* for all that begin so") \
    X("env", env, env, "NAME=VALUE ...; may be repeated") \
    X("cwd", path, cwd, "working folder; default a private one for each attempt") \
    X("keep_failed_dir", bool, keep_failed_dir, "keep the private folder of an attempt that failed") \
    X("result", result, result, "stdout (default), none, last-line or json") \
    X("result_max", size, result_max, "bytes of a result, at most 64k (default)") \
    X("timeout", duration, timeout_ms, "how long a run may take, if the job does not say less") \
    X("kill_after", duration, kill_after_ms, "from the stop signal to SIGKILL; default the job's") \
    X("idle_timeout", duration, idle_timeout_ms, "how long a run may say nothing") \
    X("stop_signal", signal, stop_signal, "default TERM") \
    X("kill_stragglers", not, keep_stragglers, "end what a command leaves behind (yes)") \
    X("rlimit_as", limit_size, rlimit_as, "bytes of memory, or unlimited") \
    X("rlimit_fsize", limit_size, rlimit_fsize, "bytes of a file it writes, or unlimited") \
    X("rlimit_core", limit_size, rlimit_core, "bytes of a core file, or unlimited") \
    X("rlimit_cpu", limit_time, rlimit_cpu, "CPU time, or unlimited") \
    X("rlimit_nofile", limit, rlimit_nofile, "open files, or unlimited") \
    X("rlimit_nproc", limit, rlimit_nproc, "processes of its user, or unlimited") \
    X("nice", nice, nice, "added to the worker's, -20 to 19") \
    X("ioprio", ioprio, ioprio_class, "idle, best-effort[:0-7] or realtime[:0-7]") \
    X("umask", umask, umask, "octal, like 027") \
    X("user", text, user, "name or number; the worker must be root") \
    X("group", text, group, "name or number; default the user's") \
    X("oom_score_adj", oom, oom_score_adj, "-1000 to 1000") \
    X("no_new_privs", not, allow_new_privs, "set-user-id programs gain nothing (yes)") \
    X("exit.success", exit_success, exits, "exit statuses that mean done: 0,24 or 3-9 or *") \
    X("exit.permanent", exit_permanent, exits, "dead at once") \
    X("exit.snooze", exit_snooze, exits, "again later, not charged") \
    X("exit.retry", exit_retry, exits, "failed: again by the job's policy") \
    X("snooze", duration, snooze_ms, "how long a snooze lasts; default 30s") \
    X("max_snoozes", count, max_snoozes, "what comes after counts as failed; default 100")
/* clang-format on */

/* Command jobs bring their own command; its section says the rest. */
#define CLI_COMMAND_JOB_TYPE "weir.exec"

/* One value as it stands in the file, for `config show`. */
struct cli_handler_value {
    const char *key;
    const char *text, *origin; /* "FILE:LINE" */
    unsigned line;
};

struct cli_handler {
    char type[129];
    char *path; /* of the file */
    unsigned line;
    struct weir_exec_options options; /* argv NULL: CLI_COMMAND_JOB_TYPE */
    struct cli_handler_value *values;
    size_t values_n;
    void **owned; /* what options point to */
    size_t owned_n;
};

struct cli_handlers {
    struct cli_handler **list;
    size_t n;
};

/* A section begins: "handler.TYPE". E_CONFIG: the name is no good, or is there twice. */
enum weir_err
cli_handlers_section(struct cli_handlers *all, const struct cli_conf_place *at,
                     const char *name, struct weir_error *err) WEIR_MUST_CHECK;
/* A line of the section that began last. E_CONFIG. */
enum weir_err cli_handlers_pair(struct cli_handlers *all, const struct cli_conf_place *at,
                                const char *name, const char *value,
                                struct weir_error *err) WEIR_MUST_CHECK;
/* The file is at its end. E_CONFIG: a handler without a command, and the like. */
enum weir_err
cli_handlers_end(struct cli_handlers *all, struct weir_error *err) WEIR_MUST_CHECK;
void cli_handlers_fini(struct cli_handlers *all);

const struct cli_handler *
cli_handlers_find(const struct cli_handlers *all, const char *type);
/* As it may be shown: the values of variables as ***. */
void cli_handler_show(const struct cli_handler_value *value, char *out, size_t cap);

/* ---- handler_values.c: what may stand behind the = ---- */

struct cli_handler_key {
    const char *key, *help;
    /* Stores the value; NULL, or what it should have been. */
    const char *(*take)(struct cli_handler *handler, const struct cli_handler_key *key,
                        const char *text);
    size_t field; /* in struct weir_exec_options */
};
extern const struct cli_handler_key cli_handler_keys[]; /* key NULL at the end */

/* Keeps memory as long as the handler lives. */
void *cli_handler_own(struct cli_handler *handler, void *ptr);

#endif
