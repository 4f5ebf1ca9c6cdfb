/* queue create, queue set: what holds for a queue. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/queue_view.h"
#include "cli/queues.h"

struct set_opts {
    const char *engine, *backoff;
    int64_t payload_max, kept_max, kept_bytes;
    int64_t dead_count, dead_age, dead_bytes, retry, log_bytes, keep_progress;
};

/* clang-format off */
#define SET_OPTIONS                                                                     \
    {"payload-max", 0, CLI_SIZE, offsetof(struct set_opts, payload_max), "SIZE",        \
     "largest payload; at first 1M"},                                                   \
    {"kept-max", 0, CLI_COUNT, offsetof(struct set_opts, kept_max), "N",                \
     "finished jobs that are kept; at first 10000"},                                    \
    {"kept-bytes", 0, CLI_SIZE, offsetof(struct set_opts, kept_bytes), "SIZE",          \
     "bytes of finished jobs that are kept; at first 64M"},                             \
    {"dead-max-count", 0, CLI_COUNT, offsetof(struct set_opts, dead_count), "N",        \
     "dead jobs that are kept, 0: no limit; at first 1000000"},                         \
    {"dead-max-age", 0, CLI_DURATION, offsetof(struct set_opts, dead_age), "D",         \
     "how long dead jobs are kept, 0: no limit; at first 180d"},                        \
    {"dead-max-bytes", 0, CLI_SIZE, offsetof(struct set_opts, dead_bytes), "SIZE",      \
     "bytes of dead jobs that are kept, 0: no limit; at first 1G"},                     \
    {"log-max-bytes", 0, CLI_SIZE, offsetof(struct set_opts, log_bytes), "SIZE",        \
     "bytes of what jobs print that are kept, 0: no limit; at first 64M"},              \
    {"retry", 0, CLI_COUNT, offsetof(struct set_opts, retry), "N",                      \
     "--retry of jobs that do not say it; at first 3"},                                 \
    {"backoff", 0, CLI_TEXT, offsetof(struct set_opts, backoff), "SPEC",                \
     "--backoff of jobs that do not say it; \"\": the default again"},                    \
    {"keep-progress", 0, CLI_DURATION, offsetof(struct set_opts, keep_progress), "D",   \
     "--keep-progress of jobs that do not say it; at first as long as the job"}
/* clang-format on */

static const struct cli_opt create_options[] = {
    {"engine", 0, CLI_TEXT, offsetof(struct set_opts, engine), "ENGINE",
     "how it is stored: list or stream; at first list"},
    SET_OPTIONS,
    {0},
};

static const struct cli_opt set_options[] = {SET_OPTIONS, {0}};

static int64_t
limit_of(int64_t given)
{
    return given == CLI_UNSET ? -1 : given;
}

/* The library's way: 0 is "as it is", so a given 0 has another name. */
static int64_t
setting_of(int64_t given)
{
    return given == CLI_UNSET ? 0 : given == 0 ? WEIR_NONE : given;
}

static enum weir_err
configure(struct cli *cli, const char *queue, const struct set_opts *o,
          struct weir_error *err)
{
    struct weir_queue_settings s = {WEIR_QUEUE_SETTINGS_INIT,
                                    .dead_max_jobs = setting_of(o->dead_count),
                                    .dead_max_age_ms = setting_of(o->dead_age),
                                    .dead_max_bytes = setting_of(o->dead_bytes),
                                    .log_max_bytes = setting_of(o->log_bytes),
                                    .max_retry = setting_of(o->retry),
                                    .backoff = o->backoff,
                                    .keep_progress_ms = setting_of(o->keep_progress)};

    return weir_queue_configure(cli->client, queue, &s, err);
}

/* create: it need not be there. */
static enum weir_err
apply(struct cli *cli, const struct set_opts *o, const char *queue, bool create,
      struct weir_error *err)
{
    struct weir_queue_limits limits = {limit_of(o->payload_max), limit_of(o->kept_max),
                                       limit_of(o->kept_bytes)};
    struct weir_audit a;
    char sentence[300];
    bool made = false;
    enum weir_err rc = cli_check_queue(queue, err);

    if (rc == WEIR_OK && !create)
        rc = weir_queue_audit(cli->client, queue, &a, err);
    if (rc == WEIR_OK && cli->globals.dry_run) {
        cli_note(cli, "Would %s queue \"%s\". Nothing changed.",
                 create ? "make or change" : "change", queue);
        return WEIR_OK;
    }
    if (rc == WEIR_OK)
        rc = weir_queue_create(cli->client, queue, o->engine, &limits, &made, err);
    if (rc == WEIR_OK)
        rc = configure(cli, queue, o, err);
    if (rc != WEIR_OK)
        return rc;
    snprintf(sentence, sizeof(sentence), "Queue \"%s\" %s", queue,
             made     ? "made."
             : create ? "was there; its limits are set."
                      : "is set.");
    cli_queue_done(cli, queue, made ? "made" : create ? "was there" : "set", sentence);
    return WEIR_OK;
}

static enum weir_err
create_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    return apply(cli, opts, args[0], true, err);
}

const struct cli_cmd cmd_queue_create = {
    .noun = "queue",
    .verb = "create",
    .group = "Decide",
    .args = "Q",
    .summary = "make a queue, or set its limits",
    .examples = "  weir queue create video --payload-max 4M --kept-max 1000\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = create_options,
    .opts_size = sizeof(struct set_opts),
    .run = create_run,
};

static bool
says_nothing(const struct set_opts *o)
{
    const int64_t given[] = {o->payload_max, o->kept_max,  o->kept_bytes,
                             o->dead_count,  o->dead_age,  o->dead_bytes,
                             o->retry,       o->log_bytes, o->keep_progress};

    for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
        if (given[i] != CLI_UNSET)
            return false;
    return !o->backoff;
}

static enum weir_err
set_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    if (says_nothing(opts))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "nothing to change: give --retry, --payload-max or another; weir "
                       "queue show Q says what holds now");
    for (; *args && rc == WEIR_OK; args++)
        rc = apply(cli, opts, *args, false, err);
    return rc;
}

const struct cli_cmd cmd_queue_set = {
    .noun = "queue",
    .verb = "set",
    .group = "Decide",
    .args = "Q...",
    .summary = "change what holds for queues",
    .examples = "  weir queue set mail --dead-max-count 5000 --dead-max-age 30d\n"
                "  weir queue set mail --retry 8 --backoff exp:10s,6h,50%\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = set_options,
    .opts_size = sizeof(struct set_opts),
    .run = set_run,
};
