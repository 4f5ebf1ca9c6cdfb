/*
 * cli/config.h - what is configured, and where each value came from.
 *
 * flag > environment > configuration file > built in. The file is --config, else
 * WEIR_CONFIG, else $XDG_CONFIG_HOME/weir/weir.conf, else /etc/weir/weir.conf: lines
 * `key = value`, then sections of handlers; see weir.conf(5). Without a URL the socket of
 * `weir dev` is used if it answers, else redis://127.0.0.1:6379/0.
 */
#ifndef WR_CLI_CONFIG_H
#define WR_CLI_CONFIG_H

#include "cli/cli.h"
#include "cli/handlers.h"

/* X(NAME, key in the file, flag, environment, second and third name there, built in,
 *   kind, help) */
/* clang-format off */
#define CLI_SETTINGS(X) \
    X(URL, "url", "--url", "WEIR_URL", "REDIS_URL", "VALKEY_URL", NULL, TEXT, "the server") \
    X(NAMESPACE, "namespace", "--namespace", "WEIR_NAMESPACE", NULL, NULL, "weir", TEXT, \
      "first part of every key") \
    X(PASSWORD, "password", NULL, "REDISCLI_AUTH", NULL, NULL, NULL, SECRET, \
      "unless the URL has one") \
    X(PASSWORD_FILE, "password_file", "--password-file", "WEIR_PASSWORD_FILE", NULL, NULL, \
      NULL, TEXT, "file whose first line is the password") \
    X(COMMAND_TIMEOUT, "command_timeout", "--command-timeout", "WEIR_COMMAND_TIMEOUT", NULL, \
      NULL, "5s", DURATION, "how long a call may take") \
    X(ENGINE, "engine", NULL, "WEIR_ENGINE", NULL, NULL, "list", ENGINE, \
      "of queues that are made by their first job: list or stream") \
    X(OUTPUT, "output", "--output", "WEIR_OUTPUT", NULL, NULL, NULL, TEXT, \
      "form of the answers") \
    X(MAX_RETRY, "max_retry", NULL, "WEIR_MAX_RETRY", "MAX_RETRY", NULL, "3", COUNT, \
      "enqueue: runs after the first that failed") \
    X(LEASE, "lease", NULL, "WEIR_LEASE", "VISIBILITY_TIMEOUT", NULL, "15s", DURATION, \
      "work, scheduler: the lease of a delivery") \
    X(QUEUES, "queues", NULL, "WEIR_QUEUES", NULL, NULL, NULL, TEXT, \
      "work: names with commas between, each with :WEIGHT if it has one") \
    X(STRICT, "strict", NULL, "WEIR_STRICT", NULL, NULL, NULL, SWITCH, \
      "work: a queue only while those before it are empty") \
    X(RESERVE, "reserve", NULL, "WEIR_RESERVE", NULL, NULL, NULL, TEXT, \
      "work: QUEUE=SLOTS kept for that queue, with commas between") \
    X(CONCURRENCY, "concurrency", NULL, "WEIR_CONCURRENCY", NULL, NULL, NULL, COUNT, \
      "work: slots of a child") \
    X(PROCESSES, "processes", NULL, "WEIR_PROCESSES", NULL, NULL, "1", COUNT, \
      "work: children") \
    X(GRACE, "grace", NULL, "WEIR_GRACE", NULL, NULL, "20s", DURATION, \
      "work: time for running jobs at the end") \
    X(JOB_TIMEOUT, "job_timeout", NULL, "WEIR_JOB_TIMEOUT", NULL, NULL, NULL, DURATION, \
      "work: how long a run may take of a job that does not say it; 0: no limit") \
    X(KEEP_RESULT, "keep_result", NULL, "WEIR_KEEP_RESULT", NULL, NULL, NULL, DURATION, \
      "work: how long a done job is kept that does not say it") \
    X(MAX_JOBS, "max_jobs", NULL, "WEIR_MAX_JOBS", NULL, NULL, NULL, COUNT, \
      "work: end after so many jobs") \
    X(MAX_TIME, "max_time", NULL, "WEIR_MAX_TIME", NULL, NULL, NULL, DURATION, \
      "work: end after so long") \
    X(PIDFILE, "pidfile", NULL, "WEIR_PIDFILE", NULL, NULL, NULL, TEXT, \
      "work: where its process id is written") \
    X(LOG_FILE, "log_file", NULL, "WEIR_LOG_FILE", NULL, NULL, NULL, TEXT, \
      "work: where its messages go") \
    X(SIGNATURE_KEY, "signature_key", NULL, "WEIR_SIGNATURE_KEY", NULL, NULL, NULL, TEXT, \
      "run: file with the key that signs commands") \
    X(ALLOW_COMMAND_JOBS, "allow_command_jobs", NULL, "WEIR_ALLOW_COMMAND_JOBS", NULL, NULL, \
      NULL, TEXT, "work: which programs jobs may name") \
    X(ALLOW_COMMAND_ENV, "allow_command_env", NULL, "WEIR_ALLOW_COMMAND_ENV", NULL, NULL, \
      "LANG, LC_*, TZ", TEXT, "work: which variables such a job may set") \
    X(ALLOW_COMMAND_CWD, "allow_command_cwd", NULL, "WEIR_ALLOW_COMMAND_CWD", NULL, NULL, \
      NULL, TEXT, "work: in which folders such a job may run") \
    X(REQUIRE_SIGNATURE, "require_signature", NULL, "WEIR_REQUIRE_SIGNATURE", NULL, NULL, \
      NULL, TEXT, "work: file with the keys that such a job must be signed with")
/* clang-format on */

enum cli_setting {
#define X(name, key, flag, env, env2, env3, built_in, kind, help) CLI_SET_##name,
    CLI_SETTINGS(X)
#undef X
    CLI_SET_COUNT,
};

struct cli_settings;

/* E_CONFIG (with file and line), E_ARG. Free with cli_settings_free(). */
enum weir_err
cli_settings_load(const struct cli_globals *globals, struct cli_settings **out,
                  struct weir_error *err) WEIR_MUST_CHECK;
void cli_settings_free(struct cli_settings *settings);

/* The value, NULL if there is none. */
const char *cli_setting(const struct cli_settings *settings, enum cli_setting which);
/* "--url", "WEIR_URL", "/etc/weir/weir.conf:3", "built in". */
const char *
cli_setting_origin(const struct cli_settings *settings, enum cli_setting which);
const char *cli_setting_key(enum cli_setting which);
/* As it may be shown: passwords as ***. */
void cli_setting_show(const struct cli_settings *settings, enum cli_setting which,
                      char *out, size_t cap);
/* A number or a duration in ms; *out stays as it is when there is none. E_CONFIG. */
enum weir_err
cli_setting_number(const struct cli_settings *settings, enum cli_setting which,
                   int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;

/* Is it, if there is one, what its kind allows? E_CONFIG. */
enum weir_err
cli_setting_check(const struct cli_settings *settings, enum cli_setting which,
                  struct weir_error *err) WEIR_MUST_CHECK;

/* yes or no; *out stays as it is when there is none. E_CONFIG. */
enum weir_err
cli_setting_switch(const struct cli_settings *settings, enum cli_setting which, bool *out,
                   struct weir_error *err) WEIR_MUST_CHECK;

/* The password that goes with the URL; NULL if there is none beside the URL's own. */
const char *cli_password(const struct cli_settings *settings);

/* The file that was read; NULL: there is none. */
const char *cli_settings_file(const struct cli_settings *settings);
/* Of any process: what a setting is for, and its value built in, or NULL. */
const char *cli_setting_help(enum cli_setting which);
const char *cli_setting_built_in(enum cli_setting which);

/* The handlers of the file. */
const struct cli_handlers *cli_handlers(const struct cli_settings *settings);

#endif
