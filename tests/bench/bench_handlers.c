/*
 * How many jobs a second each kind of handler runs, with a private Redis: a linked C
 * function, the same function in a plugin, co-processes in C and (if there is one)
 * Python, commands; and next to them `xargs -P`. The contestants take turns, so that what
 * else the machine does hits all alike. One line of JSON: the medians.
 *
 *     bench_handlers [rounds [slots [jobs [who...]]]]     jobs: of a fast contestant's
 * turn
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/client.h>
#include <weir/worker.h>

#include "base/clock.h"
#include "base/text.h"
#include "support/cmocka_all.h"
#include "support/redis_server.h"
#include "support/worker_process.h"

#define ROUNDS_MAX 99
#define BATCH 500
#define WARM_UP 200
#define TURN_MS 120000

static struct redis_server *server;
static struct weir_client *client;
static char self[4096];
static int64_t slots = 2, jobs = 30000, done;

static enum weir_outcome
noop(struct weir_delivery *d, void *context)
{
    (void)context;
    return weir_delivery_should_stop(d) ? WEIR_RETRY : WEIR_DONE;
}

/* A co-process in C: as little as it can do. */
static int
be_coprocess(void)
{
    static char line[1 << 20];

    while (fgets(line, sizeof(line), stdin)) {
        if (strncmp(line, "{\"call\":", 8) == 0)
            printf("{\"call\":%ld,\"answer\":\"ok\"}\n", strtol(line + 8, NULL, 10));
        else
            puts("{\"hello\":\"weir-coproc\",\"version\":1}");
        fflush(stdout);
    }
    return 0;
}

static void
die(const char *what)
{
    fprintf(stderr, "bench_handlers: %s\n", what);
    exit(70);
}

static bool
has_python(void)
{
    return system("python3 -c '' 2>/dev/null") == 0;
}

static void
setup(struct weir_worker *w)
{
    const char *c[] = {self, "--coproc", NULL},
               *python[] = {"python3", WEIR_SOURCE "/examples/coproc.py", NULL},
               *command[] = {"true", NULL};
    struct weir_exec_options stays = {WEIR_EXEC_OPTIONS_INIT, .argv = c, .coproc = true};

    if (weir_worker_handle(w, "function", noop, NULL, NULL) != WEIR_OK ||
        weir_worker_plugin(w, NOOP_PLUGIN, NULL) != WEIR_OK ||
        weir_worker_exec(w, "exec", command, NULL) != WEIR_OK ||
        weir_worker_exec_with(w, "coproc", &stays, NULL) != WEIR_OK)
        _exit(70);
    stays.argv = python;
    if (weir_worker_exec_with(w, "python", &stays, NULL) != WEIR_OK)
        _exit(70);
}

static void
put(const char *type, int64_t n)
{
    static struct weir_enqueued out[BATCH];
    struct weir_job batch[BATCH];
    struct weir_error err = {0};

    for (int64_t i = 0; i < BATCH; i++)
        batch[i] = (struct weir_job){WEIR_JOB_INIT, .queue = "bench", .type = type,
                                     .payload = "payload", .payload_len = 7};
    for (; n > 0; n -= BATCH) {
        if (weir_job_enqueue_many(client, batch, (size_t)(n < BATCH ? n : BATCH), out,
                                  &err) != WEIR_OK)
            die(err.text);
    }
}

static void
wait_for_all(void)
{
    int64_t deadline = wr_clock_ms() + TURN_MS;
    struct weir_audit a;

    do {
        poll(NULL, 0, 2);
        if (weir_queue_audit(client, "bench", &a, NULL) != WEIR_OK ||
            wr_clock_ms() > deadline || a.dead > 0 || a.retried > 0)
            die("a turn does not end as it should");
    } while (a.done < done);
}

/* Jobs a second, from the moment in which the queue is opened. */
static double
turn(const char *type, int64_t n)
{
    int64_t start;

    if (weir_queue_pause(client, "bench", "bench", "", NULL, NULL) != WEIR_OK)
        die("cannot pause");
    put(type, n);
    done += n;
    start = wr_clock_us();
    if (weir_queue_resume(client, "bench", NULL, NULL) != WEIR_OK)
        die("cannot resume");
    wait_for_all();
    return (double)n * 1e6 / (double)(wr_clock_us() - start);
}

static double
turn_of_xargs(int64_t n)
{
    int64_t start = wr_clock_us();
    char line[128];

    snprintf(line, sizeof(line), "seq %lld | xargs -P%lld -n1 true", (long long)n,
             (long long)slots);
    if (system(line) != 0)
        die("cannot run xargs");
    return (double)n * 1e6 / (double)(wr_clock_us() - start);
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double
median(double *values, size_t n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof(*values), by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

enum who {
    FUNCTION,
    PLUGIN,
    COPROC,
    PYTHON,
    EXEC,
    XARGS,
    CONTESTANTS
};

static const char *const names[] = {"function", "plugin", "coproc",
                                    "python",   "exec",   "xargs"};
static bool plays[CONTESTANTS];
static double rates[CONTESTANTS][ROUNDS_MAX], plugin_ratio[ROUNDS_MAX],
    exec_ratio[ROUNDS_MAX];

static void
play(int64_t rounds)
{
    bool python = has_python();

    for (int64_t r = 0; r < rounds; r++) {
        for (int k = 0; k < CONTESTANTS; k++) {
            int who = (k + (int)r) % CONTESTANTS; /* nobody is always the first */
            int64_t n = who == EXEC || who == XARGS ? jobs / 20 : jobs;

            if (!plays[who] || (who == PYTHON && !python))
                continue;
            rates[who][r] = who == XARGS ? turn_of_xargs(n) : turn(names[who], n);
        }
        if (plays[PLUGIN] && plays[FUNCTION])
            plugin_ratio[r] = rates[PLUGIN][r] / rates[FUNCTION][r];
        if (plays[EXEC] && plays[XARGS])
            exec_ratio[r] = rates[EXEC][r] / rates[XARGS][r];
    }
}

static void
report(int64_t rounds)
{
    size_t n = (size_t)rounds;

    printf("{\"rounds\":%lld,\"slots\":%lld,\"jobs\":%lld", (long long)rounds,
           (long long)slots, (long long)jobs);
    for (int k = 0; k < CONTESTANTS; k++) {
        if (rates[k][0] > 0)
            printf(",\"%s_per_s\":%.0f", names[k], median(rates[k], n));
    }
    if (plugin_ratio[0] > 0)
        printf(",\"plugin_to_function\":%.3f", median(plugin_ratio, n));
    if (exec_ratio[0] > 0)
        printf(",\"exec_to_xargs\":%.3f", median(exec_ratio, n));
    puts("}");
}

static bool
take_numbers(int argc, char **argv, int64_t *rounds)
{
    return (argc < 2 || wr_text_int(argv[1], 1, ROUNDS_MAX, rounds)) &&
           (argc < 3 || wr_text_int(argv[2], 1, 64, &slots)) &&
           (argc < 4 || wr_text_int(argv[3], 100, 10000000, &jobs));
}

/* Nobody named: all. */
static bool
take_names(int argc, char **argv)
{
    for (int k = 0; k < CONTESTANTS; k++)
        plays[k] = argc <= 4;
    for (int i = 4; i < argc; i++) {
        int who = 0;

        while (who < CONTESTANTS && strcmp(names[who], argv[i]) != 0)
            who++;
        if (who == CONTESTANTS)
            return false;
        plays[who] = true;
    }
    return true;
}

int
main(int argc, char **argv)
{
    static const char *const queues[] = {"bench", NULL};
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT};
    struct weir_worker_options w = {WEIR_WORKER_OPTIONS_INIT, .queues = queues};
    int64_t rounds = 5;
    pid_t worker;

    if (argc == 2 && strcmp(argv[1], "--coproc") == 0)
        return be_coprocess();
    if (!take_numbers(argc, argv, &rounds) || !take_names(argc, argv)) {
        fputs("usage: bench_handlers [rounds [slots [jobs [who...]]]]\n", stderr);
        return 64;
    }
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        die("cannot find itself");
    server = redis_server_start(NULL);
    o.url = w.url = redis_server_url(server);
    w.concurrency = (size_t)slots;
    if (weir_client_open(&o, &client, NULL) != WEIR_OK)
        die("no client");
    put("function", 1); /* makes the queue */
    done = 1;
    worker = worker_start(&w, setup);
    for (int k = 0; k < XARGS; k++) {
        if (k != PYTHON || has_python())
            (void)turn(names[k], WARM_UP);
    }
    play(rounds);
    worker_end(worker, SIGTERM);
    weir_client_close(client);
    redis_server_stop(server);
    report(rounds);
    return 0;
}
