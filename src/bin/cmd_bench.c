/*
 * weir bench: producers and workers on this server, in a namespace of their own. Figures
 * of one run, to be compared with the bare loops measured in the same run.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rand.h"
#include "bin/bench.h"
#include "bin/bench_keys.h"
#include "bin/commands.h"
#include "cli/config.h"

#define JOBS_DEFAULT 100000
#define PAYLOAD_DEFAULT 100

struct bench_opts {
    int64_t jobs, payload_bytes, concurrency;
    const char *only, *engine;
};

static const struct cli_opt bench_options[] = {
    {"jobs", 0, CLI_COUNT, offsetof(struct bench_opts, jobs), "N", "how many (100000)"},
    {"payload", 0, CLI_SIZE, offsetof(struct bench_opts, payload_bytes), "SIZE",
     "payload of each (100)"},
    {"concurrency", 'c', CLI_COUNT, offsetof(struct bench_opts, concurrency), "N",
     "slots of the worker (2)"},
    {"only", 0, CLI_TEXT, offsetof(struct bench_opts, only), "PART",
     "enqueue, process, latency, call or lateness"},
    {"engine", 0, CLI_TEXT, offsetof(struct bench_opts, engine), "ENGINE",
     "list or stream (list)"},
    {0},
};

struct weir_job
bench_job(const struct bench *b, const char *type)
{
    return (struct weir_job){WEIR_JOB_INIT, .queue = BENCH_QUEUE, .type = type,
                             .payload = b->payload,
                             .payload_len = (size_t)b->payload_bytes};
}

static int
by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

int64_t
bench_tell_spread(struct bench *b, const char *name, int64_t *values, size_t n,
                  double unit)
{
    struct cli_json *j = cli_json_new();

    qsort(values, n, sizeof(*values), by_size);
    cli_json_real(j, "p50", (double)values[n / 2] / unit);
    cli_json_real(j, "p99", (double)values[n - 1 - n / 100] / unit);
    cli_json_real(j, "max", (double)values[n - 1] / unit);
    cli_json_real(j, "min", (double)values[0] / unit);
    cli_json_adopt(b->json, name, j);
    return values[n / 2];
}

static const struct {
    const char *name;
    enum weir_err (*run)(struct bench *b, struct weir_error *err);
    const char *feeds; /* the part that needs this one before it */
} parts[] = {
    {"enqueue", bench_enqueue, "process"}, {"process", bench_process, NULL},
    {"latency", bench_start, NULL},        {"call", bench_call, NULL},
    {"lateness", bench_lateness, NULL},
};
#define PARTS (sizeof(parts) / sizeof(*parts))

static bool
is_wanted(const char *only, size_t i)
{
    return !only || strcmp(only, parts[i].name) == 0 ||
           (parts[i].feeds && strcmp(only, parts[i].feeds) == 0);
}

static enum weir_err
check(const struct bench_opts *o, struct weir_error *err)
{
    bool known = !o->only;

    for (size_t i = 0; i < PARTS; i++)
        known = known || strcmp(o->only, parts[i].name) == 0;
    if (!known)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "--only: \"%.50s\" is none of enqueue, process, latency, call, "
                       "lateness",
                       o->only);
    if (o->jobs == 0)
        return wr_fail(err, WEIR_E_ARG, 0, "--jobs: more than 0");
    if (o->concurrency == 0)
        return wr_fail(err, WEIR_E_ARG, 0, "--concurrency: more than 0");
    return WEIR_OK;
}

/* A Redis that was emptied meanwhile makes the queue anew, as it likes. */
static enum weir_err
tell_audit(struct bench *b, const char *engine, struct weir_error *err)
{
    struct weir_audit a;
    enum weir_err rc = weir_queue_audit(b->client, BENCH_QUEUE, &a, err);

    if (rc == WEIR_OK && strcmp(a.engine, engine) != 0)
        return wr_fail(err, WEIR_E_CHANGED, 0,
                       "the queue of this run is another one: was Redis emptied "
                       "meanwhile?");
    if (rc == WEIR_OK)
        cli_json_int(b->json, "gap", a.gap);
    return rc;
}

static enum weir_err
run_parts(struct bench *b, const char *engine, const char *only, struct weir_error *err)
{
    enum weir_err rc = weir_queue_create(b->client, BENCH_QUEUE, engine, NULL, NULL, err);

    for (size_t i = 0; i < PARTS && rc == WEIR_OK; i++) {
        if (is_wanted(only, i))
            rc = parts[i].run(b, err);
    }
    return rc == WEIR_OK ? tell_audit(b, engine, err) : rc;
}

/* Where, and as whom: for the client, the worker and the bare loops alike. */
static enum weir_err
set_up(struct bench *b, const struct bench_opts *o, struct weir_error *err)
{
    const char *password = cli_password(b->cli->settings);
    struct weir_client_options co = {WEIR_CLIENT_OPTIONS_INIT, .url = b->url,
                                     .name_space = b->ns, .password = password};
    enum weir_err rc = wr_url_parse(b->url, &b->where, err);

    if (rc == WEIR_OK)
        rc = cli_setting_number(b->cli->settings, CLI_SET_COMMAND_TIMEOUT,
                                &co.command_timeout_ms, err);
    if (rc == WEIR_OK && co.command_timeout_ms == 0)
        rc = wr_fail(err, WEIR_E_ARG, 0, "command timeout: more than 0");
    if (rc != WEIR_OK)
        return rc;
    if (password)
        snprintf(b->where.password, sizeof(b->where.password), "%s", password);
    b->jobs = o->jobs == CLI_UNSET ? JOBS_DEFAULT : o->jobs;
    b->payload_bytes = o->payload_bytes == CLI_UNSET ? PAYLOAD_DEFAULT : o->payload_bytes;
    b->slots = o->concurrency == CLI_UNSET ? 2 : o->concurrency;
    /* Two machines may have the same process id. */
    snprintf(b->ns, sizeof(b->ns), "weir-bench-%d-%06x", (int)getpid(),
             (unsigned)wr_rand_below(1 << 24));
    rc = bench_prepare(err);
    return rc == WEIR_OK ? weir_client_open(&co, &b->client, err) : rc;
}

/* The keys go, whatever became of the run; what stays is said. An interrupted run ends
 * as the signal ends a program. */
static enum weir_err
end(struct bench *b, enum weir_err rc, struct weir_error *err)
{
    struct weir_error left = {0};
    bool clean = bench_delete_keys(&b->where, b->ns, &left) == WEIR_OK;
    int signal_number = bench_interrupted();

    if (signal_number) {
        cli_note(b->cli,
                 clean ? "Interrupted; the keys of this run are deleted."
                       : "Interrupted; keys that begin with %s: may be left: %s",
                 b->ns, left.text);
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    if (!clean && rc == WEIR_OK)
        cli_note(b->cli, "Keys that begin with %s: may be left: %s", b->ns, left.text);
    if (rc == WEIR_E_NO_REPLY) /* what may have happened is of no interest */
        rc = WEIR_E_CONNECT;
    if (!clean && rc != WEIR_OK) {
        char text[sizeof(err->text)];

        snprintf(text, sizeof(text), "%s", err->text);
        wr_fail(err, rc, 0, "%.160s; keys that begin with %s: may be left", text, b->ns);
    }
    return rc;
}

static enum weir_err
bench(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct bench_opts *o = opts;
    struct bench b = {.cli = cli, .url = cli_setting(cli->settings, CLI_SET_URL)};
    const char *engine = o->engine ? o->engine : "list";
    enum weir_err rc = check(o, err);

    (void)args;
    if (rc == WEIR_OK)
        rc = set_up(&b, o, err);
    if (rc == WEIR_OK) {
        b.payload = cli_alloc((size_t)b.payload_bytes + 1);
        memset(b.payload, 'x', (size_t)b.payload_bytes);
        b.json = cli_json_new();
        cli_json_text(b.json, "engine", engine);
        cli_json_int(b.json, "jobs", b.jobs);
        cli_json_int(b.json, "payload_bytes", b.payload_bytes);
        rc = run_parts(&b, engine, o->only, err);
        weir_client_close(b.client); /* it may write a last word */
        rc = end(&b, rc, err);
        if (rc == WEIR_OK)
            cli_json_print(b.json, cli->out);
        cli_json_free(b.json);
        free(b.payload);
    }
    wr_url_wipe(&b.where);
    return rc;
}

const struct cli_cmd cmd_bench = {
    .noun = "bench",
    .group = "Run it",
    .args = "",
    .summary =
        "measure this server with producers and workers, in a namespace of its own",
    .examples = "  weir bench --jobs 200000 --json\n",
    .needs = CLI_NEEDS_SETTINGS,
    .opts = bench_options,
    .opts_size = sizeof(struct bench_opts),
    .run = bench,
};
