/*
 * cli/cron_spec.h - what a cron entry is made of: the flags of `weir cron add` and
 * `edit`, and the lines of a file for `weir cron apply`, which have the same names and
 * meaning.
 */
#ifndef WR_CLI_CRON_SPEC_H
#define WR_CLI_CRON_SPEC_H

#include <weir/cron.h>

#include "base/buf.h"
#include "cli/job_spec.h"

/* As given; numbers CLI_UNSET and texts NULL where not. */
struct cli_cron_spec {
    struct cli_job_spec job;
    const char *schedule, *type, *payload, *tz, *missed, *overlap;
    int64_t cap, grace, jitter;
    struct cli_list unset; /* names of parts that have their default again */
};

/* clang-format off */
#define CLI_CRON_FIELD(member) offsetof(struct cli_cron_spec, member)
#define CLI_CRON_JOB(member) offsetof(struct cli_cron_spec, job.member)
#define CLI_CRON_OPTIONS \
    {"tz", 0, CLI_TEXT, CLI_CRON_FIELD(tz), "ZONE", "time zone of the schedule, as Europe/Berlin; default UTC"}, \
    {"missed", 0, CLI_TEXT, CLI_CRON_FIELD(missed), "POLICY", "ticks that nobody could fire: once (default), skip or all"}, \
    {"cap", 0, CLI_COUNT, CLI_CRON_FIELD(cap), "N", "with --missed all: at most so many runs, the newest; default 100"}, \
    {"grace", 0, CLI_DURATION, CLI_CRON_FIELD(grace), "D", "with --missed skip: what is later than this is missed; default 1m"}, \
    {"overlap", 0, CLI_TEXT, CLI_CRON_FIELD(overlap), "POLICY", "while the run before is not over: allow (default), skip, queue or replace"}, \
    {"jitter", 0, CLI_DURATION, CLI_CRON_FIELD(jitter), "D", "start each job up to so much later"}, \
    {"queue", 'q', CLI_TEXT, CLI_CRON_JOB(queue), "Q", "its queue; default \"default\""}, \
    {"retry", 0, CLI_COUNT, CLI_CRON_JOB(retry), "N", "runs after the first that failed; default 3"}, \
    {"backoff", 0, CLI_TEXT, CLI_CRON_JOB(backoff), "SPEC", "exp:2s,1h (default), fixed:10s, linear:60s, list:0s,60s"}, \
    {"max-deliveries", 0, CLI_COUNT, CLI_CRON_JOB(max_deliveries), "N", "workers it may take with it; default 3, 0: no limit"}, \
    {"timeout", 0, CLI_DURATION, CLI_CRON_JOB(timeout), "D", "how long a run may take; default 30m, 0: no limit"}, \
    {"kill-after", 0, CLI_DURATION, CLI_CRON_JOB(kill_after), "D", "from SIGTERM to SIGKILL; default 10s"}, \
    {"expires", 0, CLI_TEXT, CLI_CRON_JOB(expires), "D", "do not start a job later than so long after its tick"}, \
    {"unique", 0, CLI_TEXT, CLI_CRON_JOB(unique), "KEY[:TTL]", "refuse it while another job holds KEY, and for TTL (with a unit: 5m)"}, \
    {"unique-states", 0, CLI_TEXT, CLI_CRON_JOB(unique_states), "LIST", "in which states it holds KEY; default ready,delayed,processing; more: dead, done"}, \
    {"key", 0, CLI_TEXT, CLI_CRON_JOB(key), "KEY", "with --ordered: the line that its jobs stand in"}, \
    {"ordered", 0, CLI_FLAG, CLI_CRON_JOB(ordered), NULL, "jobs of one --key run one after the other, as they came, failed ones first"}, \
    {"then", 0, CLI_TEXT, CLI_CRON_JOB(then), "TYPE[@Q],...", "when it succeeds, a job of this type with its result as payload; then the next"}, \
    {"meta", 0, CLI_LIST, CLI_CRON_JOB(meta), "K=V", "a text beside the payload; may be repeated"}, \
    {"keep-result", 0, CLI_DURATION, CLI_CRON_JOB(keep_result), "D", "how long it can be looked at when done; default 24h"}, \
    {"keep-progress", 0, CLI_DURATION, CLI_CRON_JOB(keep_progress), "D", "how long its progress is kept after its end; default as long as the job"}
#define CLI_CRON_PARTS \
    {"schedule", 0, CLI_TEXT, CLI_CRON_FIELD(schedule), "EXPR", "when: \"0 9 * * mon-fri\", @daily, \"every 20s\""}, \
    {"type", 0, CLI_TEXT, CLI_CRON_FIELD(type), "TYPE", "the type of its jobs"}, \
    {"payload", 0, CLI_TEXT, CLI_CRON_FIELD(payload), "PAYLOAD", "text, @FILE, or - for stdin"}
/* clang-format on */

/* Every one of them, for edit and apply. */
extern const struct cli_opt cli_cron_parts[];

/* Nothing given. */
void cli_cron_spec_init(struct cli_cron_spec *spec);

/* An entry made of a spec, with the memory it points to. */
struct cli_cron {
    struct weir_cron entry;
    struct cli_job made;
    struct weir_job job;
    struct wr_buf payload;
};

/* base: what is not given is as there; NULL: the defaults. Checks all, the schedule and
 * the zone as well. E_ARG, E_DATA, E_CONFIG, E_IO. Free with cli_cron_fini(), also on
 * failure. The spec, name and base must live as long. */
enum weir_err cli_cron_make(struct cli *cli, const struct cli_cron_spec *spec,
                            const char *name, const struct weir_cron *base,
                            struct cli_cron *out, struct weir_error *err) WEIR_MUST_CHECK;
void cli_cron_fini(struct cli_cron *cron);

/* Appends what it says that differs from the defaults, a line each: "retry = 5\n". */
void cli_cron_render(const struct weir_cron *entry, struct wr_buf *out);

#endif
