/*
 * weir bench: producers and workers on this server, in a namespace of their own. Figures
 * of one run, to be compared with the bare loops measured in the same run.
 */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/worker.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rand.h"
#include "bin/commands.h"
#include "cli/config.h"
#include "cli/json.h"
#include "redis/conn.h"

#define JOBS_DEFAULT 100000
#define PAYLOAD_DEFAULT 100
#define LATENCY_JOBS 1000
#define LATENESS_JOBS 200
#define QUEUE "bench"

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

/* Seen by the worker's handlers and by us. */
static struct shared {
    _Atomic int64_t started_us; /* CLOCK_MONOTONIC at the last start of a handler */
    _Atomic int64_t runs;
    _Atomic int64_t late_us[LATENESS_JOBS];
} * shared;

struct bench {
    struct cli *cli;
    struct weir_client *client;
    char ns[64];
    const char *url;
    int64_t jobs, payload_bytes, slots;
    int64_t p50; /* of what was measured last */
    struct cli_json *json;
    char *payload;
};

static enum weir_outcome
no_op(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    shared->started_us = wr_clock_us();
    shared->runs++;
    return WEIR_DONE;
}

/* The payload is the job's number, its due time is in a meta field: both clocks are this
 * machine's. */
static enum weir_outcome
note_lateness(struct weir_delivery *d, void *context)
{
    size_t len;
    const char *payload = weir_delivery_payload(d, &len);
    long number = strtol(payload, NULL, 10);
    const char *due = weir_delivery_meta(d, "due_us");

    (void)context;
    if (number >= 0 && number < LATENESS_JOBS && due)
        shared->late_us[number] = wr_clock_us() - strtoll(due, NULL, 10);
    shared->runs++;
    return WEIR_DONE;
}

static pid_t
start_worker(struct bench *b)
{
    static const char *const queues[] = {QUEUE, NULL};
    struct weir_worker_options o = {
        WEIR_WORKER_OPTIONS_INIT, .url = b->url,
        .name_space = b->ns,      .password = cli_password(b->cli->settings),
        .queues = queues,         .concurrency = (size_t)b->slots};
    struct weir_worker *w;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (weir_worker_new(&o, &w, NULL) != WEIR_OK ||
        weir_worker_handle(w, "noop", no_op, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "late", note_lateness, NULL, NULL) != WEIR_OK)
        _exit(70);
    _exit(weir_err_exit_status(weir_worker_run(w, NULL)));
}

static void
end_worker(pid_t pid)
{
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

/* Waits until so many handlers ran; false after a minute without any. */
static bool
wait_for_runs(int64_t runs)
{
    int64_t last = shared->runs, since = wr_clock_ms();

    while (shared->runs < runs) {
        if (shared->runs != last) {
            last = shared->runs;
            since = wr_clock_ms();
        }
        if (wr_clock_ms() - since > 60000)
            return false;
        poll(NULL, 0, 1);
    }
    return true;
}

static struct weir_job
job_of(const struct bench *b, const char *type)
{
    return (struct weir_job){WEIR_JOB_INIT, .queue = QUEUE, .type = type,
                             .payload = b->payload,
                             .payload_len = (size_t)b->payload_bytes};
}

static double
per_second(int64_t n, int64_t us)
{
    return us > 0 ? (double)n * 1e6 / (double)us : 0;
}

static enum weir_err
bench_enqueue(struct bench *b, struct weir_error *err)
{
    struct weir_job job = job_of(b, "noop"), *jobs = cli_alloc(1000 * sizeof(*jobs));
    struct weir_enqueued *out = cli_alloc(1000 * sizeof(*out));
    int64_t start = wr_clock_us(), n = b->jobs < 5000 ? b->jobs : 5000;
    enum weir_err rc = WEIR_OK;

    for (int64_t i = 0; i < n && rc == WEIR_OK; i++)
        rc = weir_job_enqueue(b->client, &job, NULL, err);
    cli_json_real(b->json, "enqueue_per_s", per_second(n, wr_clock_us() - start));
    for (int i = 0; i < 1000; i++)
        jobs[i] = job;
    start = wr_clock_us();
    for (int64_t left = b->jobs; left > 0 && rc == WEIR_OK; left -= 1000)
        rc = weir_job_enqueue_many(b->client, jobs, left < 1000 ? (size_t)left : 1000,
                                   out, err);
    cli_json_real(b->json, "enqueue_bulk_per_s",
                  per_second(b->jobs, wr_clock_us() - start));
    free(jobs);
    free(out);
    return rc;
}

static int64_t
cpu_us(const struct rusage *u)
{
    return (int64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 +
           u->ru_utime.tv_usec + u->ru_stime.tv_usec;
}

static enum weir_err
bench_process(struct bench *b, struct weir_error *err)
{
    struct rusage before, after;
    struct weir_audit a;
    int64_t start, us, backlog;
    enum weir_err rc = weir_queue_audit(b->client, QUEUE, &a, err);
    pid_t worker;

    if (rc != WEIR_OK)
        return rc;
    backlog = a.ready;
    shared->runs = 0;
    getrusage(RUSAGE_CHILDREN, &before);
    worker = start_worker(b);
    if (!wait_for_runs(1))
        return wr_fail(err, WEIR_E_BUG, 0, "the worker runs nothing");
    start = wr_clock_us();
    if (!wait_for_runs(backlog))
        return wr_fail(err, WEIR_E_BUG, 0, "the worker stopped");
    us = wr_clock_us() - start;
    end_worker(worker);
    getrusage(RUSAGE_CHILDREN, &after);
    cli_json_real(b->json, "process_per_s", per_second(backlog, us));
    cli_json_real(b->json, "worker_us_per_job",
                  (double)(cpu_us(&after) - cpu_us(&before)) / (double)backlog);
    return WEIR_OK;
}

static int
by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* p50, p99, max and min of n numbers, divided by `unit`. *p50: undivided. */
static struct cli_json *
spread(int64_t *values, size_t n, double unit, int64_t *p50)
{
    struct cli_json *j = cli_json_new();

    qsort(values, n, sizeof(*values), by_size);
    *p50 = values[n / 2];
    cli_json_real(j, "p50", (double)values[n / 2] / unit);
    cli_json_real(j, "p99", (double)values[n - 1 - n / 100] / unit);
    cli_json_real(j, "max", (double)values[n - 1] / unit);
    cli_json_real(j, "min", (double)values[0] / unit);
    return j;
}

/* The bare loop, and what was measured before as a multiple of it. */
static void
tell_against(struct bench *b, int64_t *us, const char *name, const char *ratio)
{
    int64_t measured = b->p50;

    cli_json_adopt(b->json, name, spread(us, LATENCY_JOBS, 1, &b->p50));
    cli_json_real(b->json, ratio, b->p50 > 0 ? (double)measured / (double)b->p50 : 0);
}

static enum weir_err
bench_latency(struct bench *b, struct weir_error *err)
{
    int64_t *us = cli_alloc(LATENCY_JOBS * sizeof(*us));
    struct weir_job job = job_of(b, "noop");
    pid_t worker = start_worker(b);
    enum weir_err rc = WEIR_OK;

    shared->runs = 0;
    poll(NULL, 0, 500); /* until it waits */
    for (int i = 0; i < LATENCY_JOBS && rc == WEIR_OK; i++) {
        int64_t start = wr_clock_us();

        rc = weir_job_enqueue(b->client, &job, NULL, err);
        if (rc == WEIR_OK && !wait_for_runs(i + 1))
            rc = wr_fail(err, WEIR_E_BUG, 0, "a job did not start in a minute");
        us[i] = shared->started_us - start;
        poll(NULL, 0, 1); /* idle again */
    }
    end_worker(worker);
    if (rc == WEIR_OK)
        cli_json_adopt(b->json, "start_latency_us", spread(us, LATENCY_JOBS, 1, &b->p50));
    free(us);
    return rc;
}

static enum weir_err
open_bare(const struct bench *b, struct wr_conn **out, struct weir_error *err)
{
    struct wr_url url;
    struct wr_conn_options o = {.url = &url};
    enum weir_err rc = wr_url_parse(b->url, &url, err);

    return rc == WEIR_OK ? wr_conn_open(&o, wr_clock_ms() + 5000, out, err) : rc;
}

/* What the bare worker does with each element: a BLPOP, a PING, and the time. */
static void
take_hops(struct bench *b, const char *key)
{
    struct wr_conn *c = NULL;
    enum weir_err rc = open_bare(b, &c, NULL);

    for (int i = 0; i < LATENCY_JOBS && rc == WEIR_OK; i++) {
        int64_t deadline = wr_clock_ms() + 10000;
        struct wr_reply *reply = NULL;

        rc = wr_conn_do(c, deadline, &reply, NULL, "BLPOP", key, "5", (char *)NULL);
        wr_reply_free(reply);
        if (rc == WEIR_OK)
            rc = wr_conn_do(c, deadline, &reply, NULL, "PING", (char *)NULL);
        wr_reply_free(reply);
        shared->started_us = wr_clock_us();
        shared->runs++;
    }
    wr_conn_close(c);
}

/* An LPUSH here that ends the BLPOP of another process, which then makes one call: what a
 * start cannot be faster than. */
static enum weir_err
bench_hop(struct bench *b, struct weir_error *err)
{
    int64_t *us = cli_alloc(LATENCY_JOBS * sizeof(*us));
    struct wr_conn *push = NULL;
    enum weir_err rc = open_bare(b, &push, err);
    char key[100];
    pid_t taker;

    snprintf(key, sizeof(key), "%s:hop", b->ns);
    shared->runs = 0;
    taker = fork();
    if (taker == 0) {
        take_hops(b, key);
        _exit(0);
    }
    poll(NULL, 0, 500); /* until it waits */
    for (int i = 0; i < LATENCY_JOBS && rc == WEIR_OK; i++) {
        int64_t start = wr_clock_us();
        struct wr_reply *reply = NULL;

        rc = wr_conn_do(push, wr_clock_ms() + 5000, &reply, err, "LPUSH", key, "1",
                        (char *)NULL);
        wr_reply_free(reply);
        if (rc == WEIR_OK && !wait_for_runs(i + 1))
            rc = wr_fail(err, WEIR_E_BUG, 0, "a bare BLPOP was not answered");
        us[i] = shared->started_us - start;
        poll(NULL, 0, 1);
    }
    wr_conn_close(push);
    end_worker(taker);
    if (rc == WEIR_OK)
        tell_against(b, us, "hop_and_ping_us", "start_per_hop_and_ping");
    free(us);
    return rc;
}

/* The other side of two hops: what comes by one list goes back by another. */
static void
return_hops(struct bench *b, const char *there, const char *back)
{
    struct wr_conn *c = NULL;
    enum weir_err rc = open_bare(b, &c, NULL);

    for (int i = 0; i < LATENCY_JOBS && rc == WEIR_OK; i++) {
        int64_t deadline = wr_clock_ms() + 10000;
        struct wr_reply *reply = NULL;

        rc = wr_conn_do(c, deadline, &reply, NULL, "BLPOP", there, "5", (char *)NULL);
        wr_reply_free(reply);
        if (rc == WEIR_OK)
            rc = wr_conn_do(c, deadline, &reply, NULL, "LPUSH", back, "1", (char *)NULL);
        wr_reply_free(reply);
    }
    wr_conn_close(c);
}

static enum weir_err
one_return(struct wr_conn *c, const char *there, const char *back, struct weir_error *err)
{
    int64_t deadline = wr_clock_ms() + 5000;
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_conn_do(c, deadline, &reply, err, "LPUSH", there, "1",
                                  (char *)NULL);

    wr_reply_free(reply);
    if (rc == WEIR_OK)
        rc = wr_conn_do(c, deadline, &reply, err, "BLPOP", back, "5", (char *)NULL);
    wr_reply_free(reply);
    return rc;
}

static enum weir_err
bench_two_hops(struct bench *b, struct weir_error *err)
{
    int64_t *us = cli_alloc(LATENCY_JOBS * sizeof(*us));
    struct wr_conn *c = NULL;
    enum weir_err rc = open_bare(b, &c, err);
    char there[100], back[100];
    pid_t other;

    snprintf(there, sizeof(there), "%s:there", b->ns);
    snprintf(back, sizeof(back), "%s:back", b->ns);
    other = fork();
    if (other == 0) {
        return_hops(b, there, back);
        _exit(0);
    }
    poll(NULL, 0, 500); /* until it waits */
    for (int i = 0; i < LATENCY_JOBS && rc == WEIR_OK; i++) {
        int64_t start = wr_clock_us();

        rc = one_return(c, there, back, err);
        us[i] = wr_clock_us() - start;
        poll(NULL, 0, 1);
    }
    wr_conn_close(c);
    end_worker(other);
    if (rc == WEIR_OK)
        tell_against(b, us, "two_hops_us", "call_per_two_hops");
    free(us);
    return rc;
}

/* Request and response, against two bare hops. */
static enum weir_err
bench_call(struct bench *b, struct weir_error *err)
{
    int64_t *us = cli_alloc(LATENCY_JOBS * sizeof(*us));
    struct weir_job job = job_of(b, "noop");
    pid_t worker = start_worker(b);
    enum weir_err rc = WEIR_OK;

    poll(NULL, 0, 500); /* until it waits */
    for (int i = 0; i < LATENCY_JOBS && rc == WEIR_OK; i++) {
        int64_t start = wr_clock_us();
        struct weir_job_view *v;

        rc = weir_call(b->client, &job, 10000, &v, err);
        us[i] = wr_clock_us() - start;
        weir_job_view_free(v);
        poll(NULL, 0, 1);
    }
    end_worker(worker);
    if (rc == WEIR_OK)
        cli_json_adopt(b->json, "call_us", spread(us, LATENCY_JOBS, 1, &b->p50));
    free(us);
    return rc == WEIR_OK ? bench_two_hops(b, err) : rc;
}

static enum weir_err
bench_lateness(struct bench *b, struct weir_error *err)
{
    int64_t *us = cli_alloc(LATENESS_JOBS * sizeof(*us));
    pid_t worker = start_worker(b);
    enum weir_err rc = WEIR_OK;

    shared->runs = 0;
    poll(NULL, 0, 500);
    for (int i = 0; i < LATENESS_JOBS && rc == WEIR_OK; i++) {
        int64_t delay = 100 + (int64_t)wr_rand_below(3000);
        char number[16], due[32];
        struct weir_meta meta = {"due_us", due};
        struct weir_job job = {WEIR_JOB_INIT,     .queue = QUEUE,    .type = "late",
                               .payload = number, .delay_ms = delay, .meta = &meta,
                               .meta_count = 1};

        snprintf(number, sizeof(number), "%d", i);
        job.payload_len = strlen(number) + 1;
        snprintf(due, sizeof(due), "%lld", (long long)(wr_clock_us() + delay * 1000));
        rc = weir_job_enqueue(b->client, &job, NULL, err);
    }
    if (rc == WEIR_OK && !wait_for_runs(LATENESS_JOBS))
        rc = wr_fail(err, WEIR_E_BUG, 0, "delayed jobs did not run");
    end_worker(worker);
    for (int i = 0; i < LATENESS_JOBS; i++)
        us[i] = shared->late_us[i];
    if (rc == WEIR_OK)
        cli_json_adopt(b->json, "lateness_ms", spread(us, LATENESS_JOBS, 1000, &b->p50));
    free(us);
    return rc;
}

static bool
is_wanted(const struct bench_opts *o, const char *part)
{
    return !o->only || strcmp(o->only, part) == 0;
}

static enum weir_err
check(const struct bench_opts *o, struct weir_error *err)
{
    static const char *const parts[] = {"enqueue", "process", "latency", "call",
                                        "lateness"};
    bool known = !o->only;

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        known = known || strcmp(o->only, parts[i]) == 0;
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

static enum weir_err
run_parts(struct bench *b, const struct bench_opts *o, struct weir_error *err)
{
    struct weir_audit a;
    enum weir_err rc = WEIR_OK;

    if (is_wanted(o, "enqueue") || is_wanted(o, "process"))
        rc = bench_enqueue(b, err);
    if (rc == WEIR_OK && is_wanted(o, "process"))
        rc = bench_process(b, err);
    if (rc == WEIR_OK && is_wanted(o, "latency"))
        rc = bench_latency(b, err);
    if (rc == WEIR_OK && is_wanted(o, "latency"))
        rc = bench_hop(b, err);
    if (rc == WEIR_OK && is_wanted(o, "call"))
        rc = bench_call(b, err);
    if (rc == WEIR_OK && is_wanted(o, "lateness"))
        rc = bench_lateness(b, err);
    if (rc == WEIR_OK)
        rc = weir_queue_audit(b->client, QUEUE, &a, err);
    if (rc == WEIR_OK)
        cli_json_int(b->json, "gap", a.gap);
    return rc;
}

/* Cancels what is left; the few keys of the queue stay until they are deleted by hand. */
static void
tidy(struct bench *b)
{
    size_t moved = 1;

    while (moved > 0 &&
           weir_queue_purge(b->client, QUEUE, "ready", 1000, &moved, NULL) == WEIR_OK)
        continue;
}

static enum weir_err
bench(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct bench_opts *o = opts;
    struct bench b = {.cli = cli, .url = cli_setting(cli->settings, CLI_SET_URL)};
    struct weir_client_options co = {WEIR_CLIENT_OPTIONS_INIT, .url = b.url,
                                     .name_space = b.ns,
                                     .password = cli_password(cli->settings)};
    const char *engine = o->engine ? o->engine : "list";
    enum weir_err rc = check(o, err);

    (void)args;
    if (rc != WEIR_OK)
        return rc;
    b.jobs = o->jobs == CLI_UNSET ? JOBS_DEFAULT : o->jobs;
    b.payload_bytes = o->payload_bytes == CLI_UNSET ? PAYLOAD_DEFAULT : o->payload_bytes;
    b.slots = o->concurrency == CLI_UNSET ? 2 : o->concurrency;
    snprintf(b.ns, sizeof(b.ns), "weir-bench-%d", (int)getpid());
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "bench");
    rc = weir_client_open(&co, &b.client, err);
    if (rc != WEIR_OK)
        return rc;
    rc = weir_queue_create(b.client, QUEUE, engine, NULL, NULL, err);
    if (rc != WEIR_OK) {
        weir_client_close(b.client);
        return rc;
    }
    b.payload = cli_alloc((size_t)b.payload_bytes + 1);
    memset(b.payload, 'x', (size_t)b.payload_bytes);
    b.json = cli_json_new();
    cli_json_text(b.json, "engine", engine);
    cli_json_int(b.json, "jobs", b.jobs);
    cli_json_int(b.json, "payload_bytes", b.payload_bytes);
    rc = run_parts(&b, o, err);
    tidy(&b);
    cli_json_print(b.json, cli->out);
    cli_json_free(b.json);
    free(b.payload);
    weir_client_close(b.client);
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
