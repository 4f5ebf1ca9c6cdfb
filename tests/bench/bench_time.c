/*
 * How punctual delayed jobs are. Starts a server of its own. One line of JSON:
 *
 *   lateness_ms   of 2,000 jobs delayed by 0.1 to 5 s: start of the handler, less the
 * time before the enqueue and the delay; so min < 0 would be too early leader_killed the
 * same while the leading scheduler is killed at 2 s: jobs lost, and the longest wait for
 * a job that was due after that per_second    so many jobs due in each of 30 seconds: the
 * most that were overdue at any of the looks, ten a second
 *
 *     bench_time [jobs [per_second [seconds]]]
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <weir/client.h>
#include <weir/worker.h>

#include "base/clock.h"
#include "base/rand.h"
#include "support/redis_server.h"
#include "support/worker_process.h"

#define JOBS_MAX 10000

static struct shared {
    _Atomic int64_t late_us[JOBS_MAX];
    _Atomic int64_t noted, runs;
} * shared;

static struct weir_client *client;
static const char *url;

static void
must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench_time: %s\n", what);
    exit(70);
}

static enum weir_outcome
note_lateness(struct weir_delivery *d, void *context)
{
    int64_t now = wr_clock_us();
    size_t len;
    long n = strtol(weir_delivery_payload(d, &len), NULL, 10);
    const char *due = weir_delivery_meta(d, "due_us");

    (void)context;
    if (n >= 0 && n < JOBS_MAX && due) {
        shared->late_us[n] = now - strtoll(due, NULL, 10);
        shared->noted++;
    }
    return WEIR_DONE;
}

static enum weir_outcome
count_run(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    shared->runs++;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    must(weir_worker_handle(w, "late", note_lateness, NULL, NULL) == WEIR_OK &&
             weir_worker_handle(w, "run", count_run, NULL, NULL) == WEIR_OK,
         "handlers");
}

static pid_t
start_worker(const char *const *queues)
{
    struct weir_worker_options o = {WEIR_WORKER_OPTIONS_INIT, .url = url,
                                    .queues = queues, .concurrency = 2};

    return worker_start(&o, handlers);
}

static void
put_late(int n, const char *queue, int64_t due_us[])
{
    for (int i = 0; i < n; i++) {
        int64_t delay = 100 + (int64_t)wr_rand_below(4900);
        char number[16], due[32];
        struct weir_meta meta = {"due_us", due};
        struct weir_job job = {WEIR_JOB_INIT,     .queue = queue,    .type = "late",
                               .payload = number, .delay_ms = delay, .meta = &meta,
                               .meta_count = 1};

        due_us[i] = wr_clock_us() + delay * 1000;
        snprintf(number, sizeof(number), "%d", i);
        job.payload_len = strlen(number) + 1;
        snprintf(due, sizeof(due), "%lld", (long long)due_us[i]);
        must(weir_job_enqueue(client, &job, NULL, NULL) == WEIR_OK, "enqueue");
    }
}

static void
wait_for(_Atomic int64_t *count, int64_t n)
{
    int64_t last = -1, since = wr_clock_ms();

    while (*count < n && wr_clock_ms() - since < 30000) {
        if (*count != last) {
            last = *count;
            since = wr_clock_ms();
        }
        poll(NULL, 0, 5);
    }
}

static int
compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void
bench_lateness(int n)
{
    static const char *const queues[] = {"late", NULL};
    static int64_t due[JOBS_MAX], late[JOBS_MAX];
    pid_t worker = start_worker(queues);

    shared->noted = 0;
    put_late(n, "late", due);
    wait_for(&shared->noted, n);
    worker_end(worker, SIGTERM);
    for (int i = 0; i < n; i++)
        late[i] = shared->late_us[i];
    qsort(late, (size_t)n, sizeof(late[0]), compare);
    printf("\"lateness_ms\":{\"jobs\":%d,\"min\":%.3f,\"p50\":%.3f,\"p99\":%.3f,"
           "\"max\":%.3f}",
           n, (double)late[0] / 1000, (double)late[n / 2] / 1000,
           (double)late[n * 99 / 100] / 1000, (double)late[n - 1] / 1000);
}

static void
bench_leader(int n)
{
    static const char *const queues[] = {"led", NULL};
    static int64_t due[JOBS_MAX];
    pid_t leader = start_worker(queues), other;
    int64_t killed_us, longest = 0;
    struct weir_audit a = {0};

    shared->noted = 0;
    put_late(1, "led", due);
    wait_for(&shared->noted, 1); /* it leads */
    other = start_worker(queues);
    shared->noted = 0;
    put_late(n, "led", due);
    poll(NULL, 0, 1000);
    kill(leader, SIGSTOP);
    kill(worker_child(leader, "weir-service"), SIGKILL);
    killed_us = wr_clock_us();
    wait_for(&shared->noted, n);
    kill(leader, SIGCONT);
    for (int i = 0; i < n; i++) {
        if (due[i] > killed_us && shared->late_us[i] > longest)
            longest = shared->late_us[i];
    }
    must(weir_queue_audit(client, "led", &a, NULL) == WEIR_OK, "audit");
    printf(",\"leader_killed\":{\"jobs\":%d,\"lost\":%lld,\"gap\":%lld,"
           "\"longest_wait_ms\":%.1f}",
           n, (long long)(n - shared->noted), (long long)a.gap, (double)longest / 1000);
    worker_end(leader, SIGTERM);
    worker_end(other, SIGTERM);
}

/* All are enqueued before the first is due, so that the looks see the movers alone. */
static void
bench_flow(int per_second, int seconds)
{
    static const char *const queues[] = {"flow", NULL};
    static struct weir_job jobs[1000];
    static struct weir_enqueued out[1000];
    int64_t total = (int64_t)per_second * seconds, worst = 0, looks = 0, begin;
    int64_t head_start = 2000 + total / 20;
    pid_t worker;
    struct weir_audit a = {0};

    begin = wr_clock_ms();
    for (int64_t from = 0; from < total; from += 1000) {
        for (int i = 0; i < 1000; i++) {
            int64_t at = begin + head_start + (from + i) * 1000 / per_second;

            jobs[i] = (struct weir_job){WEIR_JOB_INIT, .queue = "flow", .type = "run",
                                        .delay_ms = at - wr_clock_ms()};
            must(jobs[i].delay_ms > 0, "enqueueing is too slow for so many");
        }
        must(weir_job_enqueue_many(client, jobs, 1000, out, NULL) == WEIR_OK, "enqueue");
    }
    worker = start_worker(queues);
    while (wr_clock_ms() < begin + head_start + seconds * 1000) {
        must(weir_queue_audit(client, "flow", &a, NULL) == WEIR_OK, "audit");
        worst = a.overdue > worst ? a.overdue : worst;
        looks++;
        poll(NULL, 0, 100);
    }
    for (int i = 0; i < 600 && (a.done < total || a.delayed > 0); i++) {
        poll(NULL, 0, 100);
        must(weir_queue_audit(client, "flow", &a, NULL) == WEIR_OK, "audit");
    }
    worker_end(worker, SIGTERM);
    printf(",\"due_per_second\":{\"rate\":%d,\"seconds\":%d,\"looks\":%lld,"
           "\"most_overdue\":%lld,\"done\":%lld,\"gap\":%lld}",
           per_second, seconds, (long long)looks, (long long)worst, (long long)a.done,
           (long long)a.gap);
}

int
main(int argc, char **argv)
{
    int jobs = argc > 1 ? atoi(argv[1]) : 2000;
    int per_second = argc > 2 ? atoi(argv[2]) : 10000,
        seconds = argc > 3 ? atoi(argv[3]) : 30;
    struct redis_server *server = redis_server_start(NULL);
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT};

    must(jobs > 0 && jobs <= JOBS_MAX && per_second >= 1000 && seconds > 0,
         "usage: bench_time [jobs [per_second [seconds]]]");
    o.url = url = redis_server_url(server);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED && weir_client_open(&o, &client, NULL) == WEIR_OK, "start");
    printf("{");
    fflush(stdout);
    bench_lateness(jobs);
    fflush(stdout);
    bench_leader(jobs < 500 ? jobs : 500);
    fflush(stdout);
    bench_flow(per_second, seconds);
    printf("}\n");
    weir_client_close(client);
    redis_server_stop(server);
    return 0;
}
