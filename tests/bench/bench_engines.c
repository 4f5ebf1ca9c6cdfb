/*
 * Both engines side by side, each on an empty server of its own: one object of JSON, with
 * `jobs`, and `list` and `stream`, in each of which there is:
 *
 *   enqueue_per_s, enqueue_bulk_per_s   one job a call; 1,000 a call
 *   process_per_s                       one worker process, two slots, no-op handlers
 *   start                               enqueue to start of the handler, worker idle:
 *                                       start_latency_us, and beside it the bare hop with
 *                                       a PING, hop_and_ping_us, start_per_hop_and_ping
 *   call                                enqueue, run, result: call_us, two_hops_us,
 *                                       call_per_two_hops
 *   *_redis_us                          CPU of the server for one job of that part
 *   waiting_bytes, delayed_bytes, processing_bytes   of one job in that state
 *   more_id_bytes                       what an id of the caller's costs a waiting job
 *   gap                                 of the audit, in the end
 *
 * start and call are what `weir bench` says, in turns with plain hiredis on this server.
 *
 * Of what is measured in bulk the median of ROUNDS counts: a worker that just starts, or
 * a neighbour on the machine, must not decide.
 *
 *     bench_engines [jobs [list|stream]]      100,000 jobs of 100 bytes, both
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/client.h>
#include <weir/worker.h>

#include "base/clock.h"
#include "client/client_internal.h"
#include "support/redis_server.h"
#include "support/worker_process.h"

#define BATCH 1000
#define SINGLE 5000
#define ROUNDS 5

static struct shared {
    _Atomic int64_t runs;
} * shared;

static struct redis_server *server;
static struct weir_client *client;
static const char *engine;

static void
must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench_engines: %s\n", what);
    exit(70);
}

/* ---- the server ---- */

static double
info(const char *section, const char *field)
{
    const char *text = redis_do(server, "INFO %s", section), *at = strstr(text, field);

    must(at != NULL, field);
    return strtod(at + strlen(field) + 1, NULL);
}

static double
redis_us(void)
{
    return (info("cpu", "used_cpu_user") + info("cpu", "used_cpu_sys")) * 1e6;
}

static void
empty_queue(void)
{
    bool made;

    redis_do(server, "FLUSHALL SYNC");
    must(weir_queue_create(client, "q", engine, NULL, &made, NULL) == WEIR_OK, "create");
}

/* ---- jobs ---- */

static const char payload[100] = "a payload of a hundred bytes";

static void
put_batch(int64_t delay_ms, int64_t first_id)
{
    static struct weir_job jobs[BATCH];
    static struct weir_enqueued out[BATCH];
    static char ids[BATCH][24];

    for (int i = 0; i < BATCH; i++) {
        jobs[i] = (struct weir_job){WEIR_JOB_INIT,
                                    .queue = "q",
                                    .type = "noop",
                                    .payload = payload,
                                    .payload_len = sizeof(payload),
                                    .delay_ms = delay_ms};
        if (first_id > 0) {
            snprintf(ids[i], sizeof(ids[i]), "%020lld", (long long)(first_id + i));
            jobs[i].id = ids[i];
        }
    }
    must(weir_job_enqueue_many(client, jobs, BATCH, out, NULL) == WEIR_OK, "enqueue");
}

static void
put_one(void)
{
    struct weir_job job = {WEIR_JOB_INIT,      .queue = "q",       .type = "noop",
                           .payload = payload, .payload_len = 100, .id = NULL};

    must(weir_job_enqueue(client, &job, NULL, NULL) == WEIR_OK, "enqueue");
}

static double
bytes_of(int64_t jobs, int64_t delay_ms, bool named)
{
    double before;

    empty_queue();
    put_one(); /* what a queue has anyway */
    before = info("memory", "used_memory");
    for (int64_t i = 0; i < jobs; i += BATCH)
        put_batch(delay_ms, named ? 1 + i : 0);
    return (info("memory", "used_memory") - before) / (double)jobs;
}

/* All that waits is taken by one worker that never ends it. */
static void
take_all(void)
{
    struct wr_store *store = wr_client_store(client);
    struct wr_reserve how = {
        .worker = "w", .call = 1, .free = BATCH, .lease_ms = 3600000};
    struct wr_queue *q;
    size_t taken = 1;

    must(wr_store_queue(store, "q", &q, NULL) == WEIR_OK, "queue");
    for (; taken > 0; how.call++) {
        struct wr_batch batch;

        must(wr_store_reserve(store, q, &how, &batch, NULL) == WEIR_OK, "reserve");
        taken = batch.n;
        wr_batch_fini(&batch);
    }
}

static void
bench_bytes(int64_t jobs)
{
    double waiting = bytes_of(jobs, 0, false), empty;

    printf(",\"waiting_bytes\":%.0f", waiting);
    empty = info("memory", "used_memory") - waiting * (double)jobs;
    take_all();
    printf(",\"processing_bytes\":%.0f",
           (info("memory", "used_memory") - empty) / (double)jobs);
    printf(",\"delayed_bytes\":%.0f", bytes_of(jobs, 3600000, false));
    printf(",\"more_id_bytes\":%.0f", bytes_of(jobs, 0, true) - waiting);
    fflush(stdout);
}

/* ---- speed ---- */

static enum weir_outcome
no_op(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    shared->runs++;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    must(weir_worker_handle(w, "noop", no_op, NULL, NULL) == WEIR_OK, "handlers");
}

static pid_t
start_worker(void)
{
    static const char *const queues[] = {"q", NULL};
    struct weir_worker_options o = {WEIR_WORKER_OPTIONS_INIT,
                                    .url = redis_server_url(server), .queues = queues,
                                    .concurrency = 2};

    return worker_start(&o, handlers);
}

static void
wait_runs(int64_t n)
{
    int64_t last = -1, since = wr_clock_ms();

    while (shared->runs < n) {
        must(wr_clock_ms() - since < 30000, "jobs do not run");
        if (shared->runs != last) {
            last = shared->runs;
            since = wr_clock_ms();
        }
        poll(NULL, 0, 1);
    }
}

/* One round of a part. */
struct round {
    int64_t since_us;
    double redis_before, per_s, redis_us;
};

static struct round
begin(void)
{
    struct round r = {.redis_before = redis_us()};

    r.since_us = wr_clock_us();
    return r;
}

static void
end(struct round *r, int64_t n)
{
    r->per_s = (double)n * 1e6 / (double)(wr_clock_us() - r->since_us);
    r->redis_us = (redis_us() - r->redis_before) / (double)n;
}

static int
by_rate(const void *a, const void *b)
{
    double x = ((const struct round *)a)->per_s, y = ((const struct round *)b)->per_s;

    return x < y ? -1 : x > y;
}

static void
print_rate(const char *name, struct round *rounds, size_t n)
{
    qsort(rounds, n, sizeof(*rounds), by_rate);
    printf(",\"%s_per_s\":%.0f,\"%s_redis_us\":%.2f", name, rounds[n / 2].per_s, name,
           rounds[n / 2].redis_us);
    fflush(stdout);
}

static void
bench_throughput(int64_t jobs)
{
    struct round bulk[ROUNDS], process[ROUNDS], single;

    empty_queue();
    single = begin();
    for (int i = 0; i < SINGLE; i++)
        put_one();
    end(&single, SINGLE);
    print_rate("enqueue", &single, 1);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t first;
        pid_t worker;

        empty_queue();
        bulk[i] = begin();
        for (int64_t n = 0; n < jobs; n += BATCH)
            put_batch(0, 0);
        end(&bulk[i], jobs);
        shared->runs = 0;
        worker = start_worker();
        wait_runs(jobs / 10); /* it has come to speed */
        process[i] = begin();
        first = shared->runs;
        wait_runs(jobs);
        end(&process[i], jobs - first);
        worker_end(worker, SIGTERM);
    }
    print_rate("enqueue_bulk", bulk, ROUNDS);
    print_rate("process", process, ROUNDS);
}

/* The yardstick is the tool's (src/bin/bench_turns.c): what it prints, as the member
 * `name`. */
static void
bench_beside_bare(const char *name, const char *part)
{
    char command[300], said[4096];
    size_t len;
    FILE *tool;

    snprintf(command, sizeof(command), "'%s' bench --only %s --engine %s", WEIR_TOOL,
             part, engine);
    tool = popen(command, "r");
    must(tool != NULL, command);
    len = fread(said, 1, sizeof(said) - 1, tool);
    said[len] = '\0';
    must(pclose(tool) == 0 && said[0] == '{', command);
    said[strcspn(said, "\n")] = '\0';
    printf(",\"%s\":%s", name, said);
    fflush(stdout);
}

static void
bench_engine(const char *name, int64_t jobs)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT};
    struct weir_audit a = {0};

    engine = name;
    server = redis_server_start(NULL);
    o.url = redis_server_url(server);
    must(setenv("WEIR_URL", o.url, 1) == 0, "environment");
    must(weir_client_open(&o, &client, NULL) == WEIR_OK, "open");
    printf(",\"%s\":{\"engine\":\"%s\"", name, name);
    bench_bytes(jobs);
    bench_throughput(jobs);
    bench_beside_bare("start", "latency");
    bench_beside_bare("call", "call");
    must(weir_queue_audit(client, "q", &a, NULL) == WEIR_OK, "audit");
    printf(",\"gap\":%lld}", (long long)a.gap);
    fflush(stdout);
    weir_client_close(client);
    redis_server_stop(server);
}

int
main(int argc, char **argv)
{
    int64_t jobs = argc > 1 ? atoll(argv[1]) : 100000;

    must(jobs >= BATCH, "usage: bench_engines [jobs [list|stream]], 1000 jobs or more");
    jobs -= jobs % BATCH;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED, "memory");
    printf("{\"jobs\":%lld", (long long)jobs);
    if (argc <= 2 || strcmp(argv[2], "list") == 0)
        bench_engine("list", jobs);
    if (argc <= 2 || strcmp(argv[2], "stream") == 0)
        bench_engine("stream", jobs);
    puts("}");
    return 0;
}
