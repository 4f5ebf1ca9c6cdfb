/*
 * Many workers, many deaths: children killed all the time, workers that thaw too late,
 * a crowd at one server that is stopped, and no server at all. Longer runs by the
 * environment: WEIR_STORM_JOBS (default 8000), WEIR_CROWD and WEIR_OUTAGE_S (their
 * figures in full are 50 workers and 60 s).
 */
#include "integration/worker_rig.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/call.h"
#include "store/scripts.gen.h"

#define JOBS_MAX 10000000
#define ZOMBIES 256

static struct shared {
    _Atomic int started, release;
} * shared;
static _Atomic unsigned char *runs; /* of each job of a storm */

static size_t
index_of(struct weir_delivery *d)
{
    return (size_t)strtoul(weir_delivery_id(d), NULL, 10);
}

static enum weir_outcome
counted(struct weir_delivery *d, void *context)
{
    (void)context;
    poll(NULL, 0, 5);
    runs[index_of(d)]++;
    return WEIR_DONE;
}

/* Its first delivery comes back to life late and says that it succeeded. */
static enum weir_outcome
zombie(struct weir_delivery *d, void *context)
{
    (void)context;
    if (weir_delivery_number(d) == 1) {
        shared->started++;
        while (!shared->release)
            poll(NULL, 0, 5);
    }
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    if (weir_worker_handle(w, "counted", counted, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "zombie", zombie, NULL, NULL) != WEIR_OK)
        _exit(70);
}

static int
setup(void **state)
{
    memset((void *)shared, 0, sizeof(*shared));
    return rig_setup(state);
}

static int
teardown(void **state)
{
    shared->release = 1;
    return rig_teardown(state);
}

/* Ids from `from` on; kept when done, so that a late answer is told from a repeated one.
 */
static void
enqueue_numbered(const char *type, size_t from, size_t n)
{
    struct weir_job jobs[500];
    struct weir_enqueued out[500];
    char ids[500][16];

    for (size_t first = 0; first < n; first += 500) {
        size_t some = n - first < 500 ? n - first : 500;

        for (size_t i = 0; i < some; i++) {
            snprintf(ids[i], sizeof(ids[i]), "%zu", from + first + i);
            jobs[i] = (struct weir_job){WEIR_JOB_INIT,
                                        .queue = "q",
                                        .id = ids[i],
                                        .type = type,
                                        .max_deliveries = WEIR_NONE,
                                        .keep_result_ms = from > 0 ? 600000 : 0};
        }
        assert_int_equal(weir_job_enqueue_many(rig.client, jobs, some, out, NULL),
                         WEIR_OK);
    }
}

/* ---- F1 ---- */

static void
killed_children_lose_nothing_and_repeat_little_F1(void **state)
{
    struct weir_worker_options o = {.processes = 2, .concurrency = 4};
    size_t n = getenv("WEIR_STORM_JOBS") ? strtoul(getenv("WEIR_STORM_JOBS"), NULL, 10)
                                         : 8000;
    size_t kills = 0, again = 0, never = 0;
    int64_t start = wr_clock_ms();
    pid_t pid;

    (void)state;
    assert_true(n <= JOBS_MAX);
    for (size_t i = 0; i < n; i++)
        runs[i] = 0;
    enqueue_numbered("counted", 0, n);
    pid = rig_start_with(o);
    while (audit_of(rig.client, "q").done < (int64_t)n) {
        kill(worker_child(pid, "weir-child"), SIGKILL);
        kills++;
        poll(NULL, 0, 200);
        if (wr_clock_ms() - start > 60000 + (int64_t)n)
            fail_msg("%lld of %zu done", (long long)audit_of(rig.client, "q").done, n);
    }
    for (size_t i = 0; i < n; i++) {
        never += runs[i] == 0;
        again += runs[i] > 1 ? (size_t)(runs[i] - 1) : 0;
    }
    print_message("%zu jobs, %zu kills: %zu never ran, %zu runs too many (%zu allowed)\n",
                  n, kills, never, again, kills * o.concurrency);
    assert_int_equal(never, 0);
    assert_true(again <= kills * o.concurrency);
}

/* ---- F4 ---- */

static void
late_answers_of_a_thousand_zombies_are_refused_F4(void **state)
{
    struct weir_worker_options o = {.concurrency = ZOMBIES, .lease_ms = 1000}, heir = o;

    (void)state;
    heir.lease_ms = 2000; /* on a busy machine 256 slots are slow to start */
    for (int round = 1; round <= 4; round++) {
        pid_t first, child, service, second;
        struct weir_audit a;

        shared->started = shared->release = 0;
        enqueue_numbered("zombie", (size_t)ZOMBIES * (size_t)round, ZOMBIES);
        first = rig_start_with(o);
        AWAIT(shared->started == ZOMBIES);
        child = worker_child(first, "weir-child");
        service = worker_child(first, "weir-service");
        kill(service, SIGSTOP);
        kill(child, SIGSTOP);
        second = rig_start_with(heir);
        AWAIT(audit_of(rig.client, "q").done == (int64_t)ZOMBIES * round);
        shared->release = 1;
        kill(child, SIGCONT);
        kill(service, SIGCONT);
        rig_end(first, SIGTERM); /* when it has given, or tried to give, its answers */
        rig_end(second, SIGTERM);
        a = audit_of(rig.client, "q");
        assert_true(a.stale >= (int64_t)ZOMBIES * round);
        assert_int_equal(a.done, (int64_t)ZOMBIES * round);
        assert_int_equal(a.deliveries, (int64_t)2 * ZOMBIES * round);
        assert_true(weir_audit_is_good(&a));
    }
    print_message("%lld stale answers refused\n",
                  (long long)audit_of(rig.client, "q").stale);
}

/* ---- a crowd ---- */

static int
from_env(const char *name, int otherwise, int most)
{
    const char *text = getenv(name);
    int n = text ? atoi(text) : otherwise;

    assert_in_range(n, 1, most);
    return n;
}

#define CROWD_MAX 60
#define CROWD() from_env("WEIR_CROWD", 6, CROWD_MAX)
#define OUTAGE_MS(s) (1000 * from_env("WEIR_OUTAGE_S", s, 600))

/* Ticks of CPU of a worker and its children. */
static long
cpu_of(pid_t supervisor)
{
    char command[200], line[64] = "0";
    FILE *p;

    snprintf(
        command, sizeof(command),
        "cat /proc/%d/stat $(pgrep -P %d | sed 's|.*|/proc/&/stat|') | sed 's/.*) //' "
        "| awk '{t += $12 + $13} END {print t}'",
        (int)supervisor, (int)supervisor);
    p = popen(command, "r");
    if (p && !fgets(line, sizeof(line), p))
        line[0] = '\0';
    if (p)
        pclose(p);
    return strtol(line, NULL, 10);
}

/* None burns more than 1 % of a CPU while this passes; a look at it is off by a tick. */
static void
assert_all_idle(const pid_t *pids, int n, int64_t ms)
{
    long before[CROWD_MAX], most = 0;
    int64_t start;

    for (int i = 0; i < n; i++)
        before[i] = cpu_of(pids[i]);
    start = wr_clock_ms();
    poll(NULL, 0, (int)ms);
    for (int i = 0; i < n; i++) {
        long burnt = cpu_of(pids[i]) - before[i];

        most = burnt > most ? burnt : most;
        assert_true(burnt <= (wr_clock_ms() - start) * sysconf(_SC_CLK_TCK) / 100000 + 2);
    }
    print_message("%d workers in %lld ms: at most %ld ticks of CPU each\n", n,
                  (long long)ms, most);
}

/* All at once: one after another takes long without a server. */
static void
end_all(const pid_t *pids, int n)
{
    shared->release = 1;
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGTERM);
    for (int i = 0; i < n; i++)
        rig_end(pids[i], 0);
}

static void
leave_out(pid_t *pids, int *n, pid_t pid)
{
    for (int i = 0; i < *n; i++) {
        if (pids[i] == pid)
            pids[i] = pids[--*n];
    }
}

/* ---- L19 ---- */

/* How often Redis was asked to run this script for q within so many ms. */
static size_t
count_calls(const struct wr_script *script, int64_t ms)
{
    redisContext *c = redisConnectUnix(redis_server_socket(rig.server));
    struct timeval patience = {.tv_usec = 50000};
    int64_t end = wr_clock_ms() + ms;
    size_t n = 0;

    assert_true(c && !c->err);
    freeReplyObject(redisCommand(c, "MONITOR"));
    redisSetTimeout(c, patience);
    while (wr_clock_ms() < end) {
        void *reply = NULL;

        if (redisGetReply(c, &reply) == REDIS_OK) {
            const char *line = ((redisReply *)reply)->str;

            n += strstr(line, script->sha1) && strstr(line, "weir:{q}:");
            freeReplyObject(reply);
        } else if (c->err == REDIS_ERR_IO) {
            c->err = 0; /* nothing came for a moment */
        } else {
            break;
        }
    }
    redisFree(c);
    return n;
}

/* Which of them sweeps: the lock names the process of its scheduler. */
static pid_t
find_leader(const pid_t *pids, int n)
{
    char mark[32];

    for (int i = 0; i < n; i++) {
        snprintf(mark, sizeof(mark), ".%d.", (int)worker_child(pids[i], "weir-service"));
        if (strstr(redis_do(rig.server, "GET weir:{q}:lock"), mark))
            return pids[i];
    }
    return 0;
}

#define SWEEP_MS 500 /* between two, while something runs */
#define WINDOW_MS 2000

static const struct wr_script *
rig_reclaim(void)
{
    return wr_pair_reclaim[engine_is_stream() ? WR_ENGINE_STREAM : WR_ENGINE_LIST];
}

static size_t
sweeps_of_a_window(void)
{
    return count_calls(rig_reclaim(), WINDOW_MS);
}

/* One leads and sweeps, whoever dies; after an outage they do not sweep all at once. */
static void
a_crowd_sweeps_like_one_whatever_dies_L19(void **state)
{
    struct weir_worker_options o = {.concurrency = 2};
    int n = CROWD(), most = WINDOW_MS / SWEEP_MS + 1;
    size_t calm, after;
    pid_t pids[CROWD_MAX], leader;
    int64_t start;

    (void)state;
    enqueue_numbered("zombie", 0, 1); /* it runs until the outage */
    for (int i = 0; i < n; i++)
        pids[i] = rig_start_with(o);
    AWAIT(shared->started == 1 && find_leader(pids, n) != 0);
    /* The first loads the script and counts twice, and at the end of the scheduler's
     * first lease, when it may take jobs back, there is one more than usual. */
    for (int sweeps = 0; sweeps < 5; sweeps++)
        AWAIT(count_calls(rig_reclaim(), 100) > 0);
    calm = sweeps_of_a_window();
    redis_do(rig.server, "SAVE");
    redis_server_kill(rig.server);
    poll(NULL, 0, 2000); /* the first tries come soon after another, and what ran ends */
    assert_all_idle(pids, n, OUTAGE_MS(1));
    redis_server_restart(rig.server);
    after = sweeps_of_a_window();
    print_message("%d workers: %zu sweeps in %d ms, %zu after an outage, at most %d\n", n,
                  calm, WINDOW_MS, after, most);
    assert_in_range(calm, 1, most);
    assert_in_range(after, 1, most + 1); /* the first is told that scripts were lost */
    AWAIT((leader = find_leader(pids, n)) != 0);
    start = wr_clock_ms();
    rig_lose(leader);
    leave_out(pids, &n, leader);
    while (count_calls(rig_reclaim(), 100) == 0)
        assert_true(wr_clock_ms() - start < 5 * 3000); /* R is 3 s; slow machines */
    print_message("the next sweep came %lld ms after the leader's death\n",
                  (long long)(wr_clock_ms() - start));
    end_all(pids, n);
}

/* ---- N14 ---- */

struct door {
    int fd;
    _Atomic bool closing;
    _Atomic int visits;
    int most; /* within one of the slices of 50 ms */
};

/* Takes each connection and closes it: a server that is always just about to go. */
static void *
keep_door(void *arg)
{
    struct door *d = arg;
    int64_t slice = 0;
    int in_slice = 0;

    while (!d->closing) {
        struct pollfd p = {.fd = d->fd, .events = POLLIN};
        int64_t now;

        if (poll(&p, 1, 50) <= 0)
            continue;
        close(accept(d->fd, NULL, NULL));
        d->visits++;
        now = wr_clock_ms() / 50;
        in_slice = now == slice ? in_slice + 1 : 1;
        slice = now;
        d->most = in_slice > d->most ? in_slice : d->most;
    }
    return NULL;
}

static void
open_door(struct door *d, struct sockaddr_un *address, pthread_t *thread)
{
    *d = (struct door){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "/tmp/weir-door-%d",
             (int)getpid());
    unlink(address->sun_path);
    assert_int_equal(bind(d->fd, (const struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(listen(d->fd, 64), 0);
    assert_int_equal(pthread_create(thread, NULL, keep_door, d), 0);
}

static void
without_redis_workers_burn_nothing_and_do_not_storm_N14(void **state)
{
    struct sockaddr_un address;
    struct door door;
    pthread_t thread;
    char url[128];
    pid_t pids[CROWD_MAX];
    int n = CROWD(), ms = OUTAGE_MS(4), visits;

    (void)state;
    enqueue_numbered("nobody", 0, 1);
    open_door(&door, &address, &thread);
    snprintf(url, sizeof(url), "unix://%s", address.sun_path);
    for (int i = 0; i < n; i++) {
        pids[i] = rig_start_with(
            (struct weir_worker_options){.url = url, .lease_ms = 15000});
        worker_child(pids[i], "weir-child");
    }
    poll(NULL, 0, 2000); /* the first tries come soon after another */
    door.most = 0;
    visits = door.visits;
    assert_all_idle(pids, n, ms);
    visits = door.visits - visits;
    print_message("%d workers in %d ms: %d connects, at most %d in 50 ms\n", n, ms,
                  visits, door.most);
    /* Four parts each with connections of their own; a try a second, more or less. */
    assert_in_range(visits, n * ms / 5000, n * (ms / 1000 + 1) * 4 * 2);
    assert_true(door.most <= visits / (ms / 1000) + 4);
    end_all(pids, n);
    door.closing = true;
    pthread_join(thread, NULL);
    close(door.fd);
    unlink(address.sun_path);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(killed_children_lose_nothing_and_repeat_little_F1),
        TEST(late_answers_of_a_thousand_zombies_are_refused_F4),
        TEST(a_crowd_sweeps_like_one_whatever_dies_L19),
        TEST(without_redis_workers_burn_nothing_and_do_not_storm_N14),
    };

    shared = rig_shared(sizeof(*shared));
    runs = rig_shared(JOBS_MAX);
    return RIG_RUN("worker_storm", tests, handlers);
}
