/*
 * How many jobs a second each kind of handler runs, with a private Redis: a linked C
 * function, the same function in a plugin, co-processes in C and (if there is one)
 * Python, commands; and next to them `xargs -P`. The contestants take turns, so that what
 * else the machine does hits all alike. One line of JSON: the medians. Of commands and
 * xargs also the processor time of a job, in microseconds, and whose it is: on a machine
 * that is shared it tells more than the rate.
 *
 *     bench_handlers [rounds [slots [jobs [who...]]]]     jobs: of a fast contestant's
 * turn
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* Looks the more often the nearer the end seems: to look costs the machine too. */
static void
wait_for_all(int64_t n)
{
    int64_t start = wr_clock_ms(), nap_ms = 2;
    struct weir_audit a;

    for (;;) {
        int64_t left, passed;

        poll(NULL, 0, (int)nap_ms);
        passed = wr_clock_ms() - start;
        if (weir_queue_audit(client, "bench", &a, NULL) != WEIR_OK || passed > TURN_MS ||
            a.dead > 0 || a.retried > 0)
            die("a turn does not end as it should");
        left = done - a.done;
        if (left <= 0)
            return;
        nap_ms = left < n ? passed * left / (n - left) / 2 : 2;
        nap_ms = nap_ms < 2 ? 2 : nap_ms > 100 ? 100 : nap_ms;
    }
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
    wait_for_all(n);
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

/* ---- processor time ---- */

enum whose {
    WORKER,
    SPAWNER,
    COMMANDS, /* from fork to their end */
    REDIS,
    WHOSE,
};

static const char *const whose_names[WHOSE] = {"worker", "spawner", "commands", "redis"};
static pid_t worker;

/* All threads of a process, in microseconds. */
static double
own_us(pid_t pid)
{
    char path[64], line[128];
    struct dirent *e;
    double sum = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    d = opendir(path);
    while (d && (e = readdir(d)) != NULL) {
        char file[400];
        FILE *f;

        snprintf(file, sizeof(file), "%s/%s/schedstat", path, e->d_name);
        f = e->d_name[0] == '.' ? NULL : fopen(file, "re");
        if (f && fgets(line, sizeof(line), f))
            sum += strtod(line, NULL) / 1e3;
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return sum;
}

/* From the line of /proc/PID/stat behind the name: the parent, and the time of its ended
 * children. */
static bool
read_stat(pid_t pid, char name[32], pid_t *parent, double *children_us)
{
    char path[64], line[1024], *at;
    double tick_us = 1e6 / (double)sysconf(_SC_CLK_TCK);
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    ok = f && fgets(line, sizeof(line), f) && (at = strrchr(line, ')')) != NULL;
    if (f)
        fclose(f);
    if (!ok)
        return false;
    *at = '\0';
    snprintf(name, 32, "%s", strchr(line, '(') + 1);
    at += 4; /* the state */
    *parent = (pid_t)strtol(at, &at, 10);
    for (int i = 0; i < 11; i++)
        (void)strtoull(at, &at, 10);
    *children_us = (double)strtoull(at, &at, 10) * tick_us;
    *children_us += (double)strtoull(at, &at, 10) * tick_us;
    return true;
}

static void
read_times(double us[WHOSE])
{
    DIR *d = opendir("/proc");
    struct dirent *e;

    memset(us, 0, WHOSE * sizeof(*us));
    us[REDIS] = own_us(redis_server_pid(server));
    us[WORKER] = own_us(worker);
    while (d && (e = readdir(d)) != NULL) {
        pid_t pid = (pid_t)atoi(e->d_name), parent, above;
        char name[32], other[32];
        double children, no;

        if (pid <= 0 || !read_stat(pid, name, &parent, &children))
            continue;
        if (parent == worker) {
            us[WORKER] += own_us(pid);
        } else if (strcmp(name, "weir-spawner") == 0 &&
                   read_stat(parent, other, &above, &no) && above == worker) {
            us[SPAWNER] += own_us(pid);
            us[COMMANDS] += children;
        }
    }
    if (d)
        closedir(d);
}

static double
children_us(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* ---- */

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
    exec_ratio[ROUNDS_MAX], exec_us[WHOSE][ROUNDS_MAX], xargs_us[ROUNDS_MAX];

static double
timed_turn_of_exec(int64_t n, int64_t round)
{
    double before[WHOSE], after[WHOSE], rate;

    read_times(before);
    rate = turn(names[EXEC], n);
    read_times(after);
    for (int k = 0; k < WHOSE; k++)
        exec_us[k][round] = (after[k] - before[k]) / (double)n;
    return rate;
}

static double
timed_turn_of_xargs(int64_t n, int64_t round)
{
    double before = children_us(), rate = turn_of_xargs(n);

    xargs_us[round] = (children_us() - before) / (double)n;
    return rate;
}

static double
turn_of(int who, int64_t round)
{
    if (who == EXEC)
        return timed_turn_of_exec(jobs / 20, round);
    if (who == XARGS)
        return timed_turn_of_xargs(jobs / 20, round);
    return turn(names[who], jobs);
}

static void
play(int64_t rounds)
{
    bool python = has_python();

    for (int64_t r = 0; r < rounds; r++) {
        for (int k = 0; k < CONTESTANTS; k++) {
            int who = (k + (int)r) % CONTESTANTS; /* nobody is always the first */

            if (plays[who] && (who != PYTHON || python))
                rates[who][r] = turn_of(who, r);
        }
        if (plays[PLUGIN] && plays[FUNCTION])
            plugin_ratio[r] = rates[PLUGIN][r] / rates[FUNCTION][r];
        if (plays[EXEC] && plays[XARGS])
            exec_ratio[r] = rates[EXEC][r] / rates[XARGS][r];
    }
}

static void
report_times(size_t rounds)
{
    double sum = 0, theirs = median(xargs_us, rounds);

    printf(",\"exec_cpu_us\":{");
    for (int k = 0; k < WHOSE; k++) {
        double us = median(exec_us[k], rounds);

        printf("%s\"%s\":%.0f", k > 0 ? "," : "", whose_names[k], us);
        sum += us;
    }
    printf(",\"all\":%.0f},\"xargs_cpu_us\":%.0f,\"xargs_to_exec_cpu\":%.3f", sum, theirs,
           theirs / sum);
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
    if (exec_ratio[0] > 0) {
        printf(",\"exec_to_xargs\":%.3f", median(exec_ratio, n));
        report_times(n);
    }
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
