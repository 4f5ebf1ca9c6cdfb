/*
 * cli/job_spec.h - what a job to be stored is made of: the flags of `weir enqueue`, and
 * the members of a line of `weir enqueue --from`, which have the same meaning.
 */
#ifndef WR_CLI_JOB_SPEC_H
#define WR_CLI_JOB_SPEC_H

#include "cli/cli.h"

/* As given; numbers CLI_UNSET and texts NULL where not. */
struct cli_job_spec {
    const char *queue, *id, *backoff, *unique, *unique_states, *expires, *then, *key;
    int64_t in, at, retry, max_deliveries, timeout, kill_after, keep_result, debounce;
    int64_t keep_progress;
    struct cli_list meta; /* "NAME=VALUE" */
    bool replace, keep_last, ordered;
};

/* The rows of these flags in an option table; `base` is where a struct cli_job_spec lies
 * in the command's option struct. */
/* clang-format off */
#define CLI_JOB_FIELD(base, member) (base) + offsetof(struct cli_job_spec, member)
#define CLI_JOB_OPTIONS(base) \
    {"queue", 'q', CLI_TEXT, CLI_JOB_FIELD(base, queue), "Q", "its queue; default \"default\""}, \
    {"id", 0, CLI_TEXT, CLI_JOB_FIELD(base, id), "ID", "its name, 1 to 255 bytes; default: a new one"}, \
    {"in", 0, CLI_DURATION, CLI_JOB_FIELD(base, in), "D", "start it not before so long from now"}, \
    {"at", 0, CLI_TIME, CLI_JOB_FIELD(base, at), "T", "start it not before this time"}, \
    {"retry", 0, CLI_COUNT, CLI_JOB_FIELD(base, retry), "N", "runs after the first that failed; default 3"}, \
    {"backoff", 0, CLI_TEXT, CLI_JOB_FIELD(base, backoff), "SPEC", "exp:2s,1h (default), fixed:10s, linear:60s, list:0s,60s"}, \
    {"max-deliveries", 0, CLI_COUNT, CLI_JOB_FIELD(base, max_deliveries), "N", "workers it may take with it; default 3, 0: no limit"}, \
    {"timeout", 0, CLI_DURATION, CLI_JOB_FIELD(base, timeout), "D", "how long a run may take; default 30m, 0: no limit"}, \
    {"kill-after", 0, CLI_DURATION, CLI_JOB_FIELD(base, kill_after), "D", "from SIGTERM to SIGKILL; default 10s"}, \
    {"expires", 0, CLI_TEXT, CLI_JOB_FIELD(base, expires), "T", "do not start it later than this: a duration or a time"}, \
    {"unique", 0, CLI_TEXT, CLI_JOB_FIELD(base, unique), "KEY[:TTL]", "refuse it while another job holds KEY, and for TTL (with a unit: 5m)"}, \
    {"unique-states", 0, CLI_TEXT, CLI_JOB_FIELD(base, unique_states), "LIST", "in which states it holds KEY; default ready,delayed,processing; more: dead, done"}, \
    {"debounce", 0, CLI_DURATION, CLI_JOB_FIELD(base, debounce), "D", "with --unique: start so long after the last one with KEY, with its payload"}, \
    {"keep-last", 0, CLI_FLAG, CLI_JOB_FIELD(base, keep_last), NULL, "with --unique: one that waits gets this record; after one that runs one more runs"}, \
    {"key", 0, CLI_TEXT, CLI_JOB_FIELD(base, key), "KEY", "with --ordered: the line that it stands in"}, \
    {"ordered", 0, CLI_FLAG, CLI_JOB_FIELD(base, ordered), NULL, "jobs of one --key run one after the other, as they came, failed ones first"}, \
    {"replace", 0, CLI_FLAG, CLI_JOB_FIELD(base, replace), NULL, "a waiting job of this id (or KEY) gets this record, a finished one runs again"}, \
    {"then", 0, CLI_TEXT, CLI_JOB_FIELD(base, then), "TYPE[@Q],...", "when it succeeds, a job of this type with its result as payload; then the next"}, \
    {"meta", 0, CLI_LIST, CLI_JOB_FIELD(base, meta), "K=V", "a text beside the payload; may be repeated"}, \
    {"keep-result", 0, CLI_DURATION, CLI_JOB_FIELD(base, keep_result), "D", "how long it can be looked at when done; default 24h"}, \
    {"keep-progress", 0, CLI_DURATION, CLI_JOB_FIELD(base, keep_progress), "D", "how long its progress is kept after its end; default as long as the job"}
/* clang-format on */

/* A job made of a spec, with the memory it points to. */
struct cli_job {
    struct weir_job job;
    char *unique;
    struct weir_then *then;
    char *then_text;
    struct weir_meta *meta;
    char **meta_texts;
    size_t meta_n;
    void *payload;         /* owned */
    struct wr_json *line;  /* owned: what texts of a line lie in; or NULL */
    struct cli_list lists; /* owned array: the meta of a line */
};

/* Fills *out but type and payload. E_ARG. Free with cli_job_fini(), also on failure. */
enum weir_err cli_job_make(const struct cli_job_spec *spec, int64_t max_retry,
                           struct cli_job *out, struct weir_error *err) WEIR_MUST_CHECK;
/* Reads one JSON line; `base` is what the line does not say. E_DATA, E_ARG. */
enum weir_err cli_job_read(const char *line, size_t len, const struct cli_job_spec *base,
                           int64_t max_retry, struct cli_job *out,
                           struct weir_error *err) WEIR_MUST_CHECK;
void cli_job_fini(struct cli_job *job);

#endif
