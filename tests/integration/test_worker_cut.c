/*
 * Workers cut off from Redis end their jobs before anybody else may start them.
 *
 * The job is this program itself, run as a command: it writes who it is and the monotonic
 * time into a file, again and again. So the file shows whether two runs of a job were
 * alive at once, whatever ended them.
 */
#include "integration/worker_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "redis/conn.h"
#include "support/proxy.h"

#define LEASE_MS 2000
#define TICK_MS 10

static char self[256], ticks[64]; /* this program; where its jobs write */
static struct proxy *proxy;

/* ---- the job ---- */

/* "PID MS\n" in one write, until FILE.end is there. It prints the same, so that output is
 * on its way on the connection of leases, whatever happens to that. */
static int
tick(const char *file)
{
    char end[300], line[64];
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    snprintf(end, sizeof(end), "%s.end", file);
    while (fd >= 0 && access(end, F_OK) != 0) {
        int len = snprintf(line, sizeof(line), "%d %lld\n", (int)getpid(),
                           (long long)wr_clock_ms());

        if (write(fd, line, (size_t)len) != len)
            return 1;
        (void)!write(STDERR_FILENO, line, (size_t)len);
        poll(NULL, 0, TICK_MS);
    }
    return fd < 0;
}

struct run {
    int pid;
    int64_t first, last; /* ms */
};

/* The runs of the file, in the order of their first line; how many. */
static size_t
read_runs(struct run *runs, size_t max)
{
    FILE *f = fopen(ticks, "r");
    long long at;
    size_t n = 0;
    int pid;

    while (f && fscanf(f, "%d %lld", &pid, &at) == 2) {
        size_t i = 0;

        while (i < n && runs[i].pid != pid)
            i++;
        if (i == n && n == max)
            break;
        if (i == n)
            runs[n++] = (struct run){.pid = pid, .first = at};
        runs[i].last = at;
    }
    if (f)
        fclose(f);
    return n;
}

static size_t
runs_n(void)
{
    struct run runs[8];

    return read_runs(runs, 8);
}

static void
let_jobs_end(void)
{
    char end[80];

    snprintf(end, sizeof(end), "%s.end", ticks);
    close(open(end, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* No two at once; answers how long after the end of the first the second began. */
static int64_t
assert_apart(void)
{
    struct run runs[8];
    size_t n = read_runs(runs, 8);

    for (size_t i = 1; i < n; i++) {
        if (runs[i].first <= runs[i - 1].last)
            fail_msg("run %zu began %lld ms before run %zu ended", i,
                     (long long)(runs[i - 1].last - runs[i].first), i - 1);
    }
    return n > 1 ? runs[1].first - runs[0].last : 0;
}

/* ---- workers ---- */

/* weir work, by exec: nothing of ours, the proxy's sockets above all, is in it. */
static pid_t
start_tool_leasing(const char *url, const char *lease)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(WEIR_TOOL, "weir", "work", "-q", "q", "-c", "1", "--url", url, "--lease",
              lease, "--grace", "5s", "--", self, "--tick", ticks, (char *)NULL);
        _exit(127);
    }
    rig.workers[rig.workers_n++] = pid;
    return pid;
}

static pid_t
start_tool(const char *url)
{
    return start_tool_leasing(url, "2s");
}

static int
setup(void **state)
{
    int rc = rig_setup(state);

    snprintf(ticks, sizeof(ticks), "/tmp/weir-ticks-%d-XXXXXX", (int)getpid());
    close(mkstemp(ticks));
    proxy = proxy_start(redis_server_socket(rig.server));
    return rc;
}

static int
teardown(void **state)
{
    char end[80];
    int rc;

    let_jobs_end();
    proxy_forward(proxy);
    rc = rig_teardown(state);
    proxy_stop(proxy);
    snprintf(end, sizeof(end), "%s.end", ticks);
    unlink(end);
    unlink(ticks);
    return rc;
}

static void
enqueue(const char *id)
{
    rig_enqueue(JOB(.timeout_ms = WEIR_NONE), id, "tick");
}

/* All processes below this one, itself first; how many. */
static size_t
tree_of(pid_t root, pid_t *out, size_t max)
{
    size_t n = 0;

    out[n++] = root;
    for (size_t i = 0; i < n; i++) {
        char path[64];
        DIR *d = opendir("/proc");
        struct dirent *e;

        while (d && (e = readdir(d)) != NULL) {
            int ppid = 0;
            FILE *f;

            snprintf(path, sizeof(path), "/proc/%.20s/stat", e->d_name);
            f = atoi(e->d_name) > 1 ? fopen(path, "r") : NULL;
            if (f && fscanf(f, "%*d (%*[^)]) %*c %d", &ppid) == 1 && ppid == out[i] &&
                n < max)
                out[n++] = (pid_t)atoi(e->d_name);
            if (f)
                fclose(f);
        }
        if (d)
            closedir(d);
    }
    return n;
}

static bool
any_lives(const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (process_lives(pids[i]))
            return true;
    }
    return false;
}

/* ---- cuts ---- */

/* W1 behind the proxy has the job, W2 stands beside it; cut; then it is W2's. */
static void
cut_and_see(void (*cut)(void))
{
    int64_t gap;

    start_tool(proxy_url(proxy));
    enqueue("j");
    AWAIT(runs_n() == 1);
    start_tool(redis_server_url(rig.server));
    cut();
    AWAIT(runs_n() == 2);
    proxy_forward(proxy); /* W1 is back: it must not disturb */
    poll(NULL, 0, LEASE_MS);
    gap = assert_apart();
    print_message("the second run began %lld ms after the end of the first\n",
                  (long long)gap);
    assert_int_equal(runs_n(), 2);
    assert_true(rig_is("j", "processing"));
    let_jobs_end();
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 2);
}

static void
stall(void)
{
    proxy_stall(proxy);
}

static void
stall_to_server(void)
{
    proxy_stall_way(proxy, PROXY_TO_SERVER);
}

static void
stall_to_client(void)
{
    proxy_stall_way(proxy, PROXY_TO_CLIENT);
}

static void
a_black_hole_ends_the_job_before_another_starts_it(void **state)
{
    (void)state;
    cut_and_see(stall);
}

static void
what_is_not_heard_by_redis_ends_the_job_in_time(void **state)
{
    (void)state;
    cut_and_see(stall_to_server);
}

static void
replies_that_do_not_come_end_the_job_in_time(void **state)
{
    (void)state;
    cut_and_see(stall_to_client);
}

static void
cuts_that_heal_end_no_job(void **state)
{
    (void)state;
    start_tool(proxy_url(proxy));
    enqueue("j");
    AWAIT(runs_n() == 1);
    start_tool(redis_server_url(rig.server));
    for (int i = 0; i < 20; i++) {
        proxy_cut_all(proxy);
        poll(NULL, 0, LEASE_MS / 10);
    }
    assert_int_equal(runs_n(), 1);
    let_jobs_end();
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
}

static void
a_slow_link_ends_no_job(void **state)
{
    int64_t start = wr_clock_ms();

    (void)state;
    start_tool(proxy_url(proxy));
    enqueue("j");
    AWAIT(runs_n() == 1);
    start_tool(redis_server_url(rig.server));
    proxy_delay(proxy, 40); /* four round trips fit into what a renewal may take */
    AWAIT(wr_clock_ms() - start > 3 * LEASE_MS);
    assert_int_equal(runs_n(), 1);
    let_jobs_end();
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
}

/* ---- frozen ---- */

/* The deepest first: a job goes on before its worker does. */
static void
signal_all(const pid_t *pids, size_t n, int sig)
{
    while (n-- > 0)
        kill(pids[n], sig);
}

static void
a_thawed_worker_ends_what_it_lost_at_once_L04(void **state)
{
    pid_t first = start_tool(redis_server_url(rig.server)), pids[32];
    struct run runs[8];
    int64_t start, thawed;
    size_t n;

    (void)state;
    enqueue("j");
    AWAIT(runs_n() == 1);
    n = tree_of(first, pids, 32);
    signal_all(pids, n, SIGSTOP);
    start = wr_clock_ms();
    start_tool(redis_server_url(rig.server));
    AWAIT(runs_n() == 2);
    AWAIT(wr_clock_ms() - start > LEASE_MS + 1000 + 3000);
    thawed = wr_clock_ms();
    signal_all(pids, n, SIGCONT);
    poll(NULL, 0, LEASE_MS);
    assert_int_equal(read_runs(runs, 8), 2);
    print_message("the last line came %lld ms after the thaw\n",
                  (long long)(runs[0].last - thawed));
    assert_true(runs[0].last < thawed + LEASE_MS / 3); /* one renewal */
    let_jobs_end();
    AWAIT(rig_is("j", "done"));
    assert_int_equal(audit_of(rig.client, "q").done, 1);
}

/* ---- the lease connection alone ---- */

/* Kills every connection of this name; how many. */
static int
kill_connections(const char *name)
{
    char wanted[48];
    int killed = 0;
    char *list = strdup(redis_do(rig.server, "CLIENT LIST")), *rest = NULL;

    snprintf(wanted, sizeof(wanted), " name=%s ", name);
    for (char *line = strtok_r(list, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strstr(line, wanted) && strncmp(line, "id=", 3) == 0) {
            redis_do(rig.server, "CLIENT KILL ID %ld", strtol(line + 3, NULL, 10));
            killed++;
        }
    }
    free(list);
    return killed;
}

/* How much of its lease is left, on the server's clock. */
static int64_t
lease_left(const char *id)
{
    struct weir_job_numbers n = rig_numbers(id);

    return n.lease_until - n.now;
}

static void
a_lease_never_lapses_while_its_connection_is_killed_L08(void **state)
{
    int killed = 0;
    int64_t least = 2000;

    (void)state;
    start_tool(redis_server_url(rig.server));
    enqueue("j");
    AWAIT(runs_n() == 1);
    for (int i = 0; i < 400 && killed < 20; i++) {
        int64_t left = lease_left("j");

        least = left < least ? left : least;
        killed += kill_connections("weir-lease");
        kill_connections("weir-service");
        poll(NULL, 0, 150);
    }
    print_message("killed %d, the least left of the lease was %lld ms\n", killed,
                  (long long)least);
    assert_true(killed >= 20);
    assert_true(least > 0);
    assert_int_equal(runs_n(), 1);
    let_jobs_end();
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
}

/* The lease thread cannot reach Redis, the I/O thread can. */
static void
a_worker_that_cannot_renew_claims_nothing_L08_F5(void **state)
{
    int64_t start;

    (void)state;
    start_tool(proxy_url(proxy));
    enqueue("j");
    AWAIT(runs_n() == 1);
    proxy_stall_named(proxy, "weir-lease");
    start = wr_clock_ms();
    AWAIT(!rig_is("j", "processing")); /* stopped and handed back, uncharged */
    assert_true(wr_clock_ms() - start < 5 * LEASE_MS);
    assert_int_equal(rig_numbers("j").lost, 0);
    poll(NULL, 0, LEASE_MS);
    assert_int_equal(runs_n(), 1);
    assert_true(rig_is("j", "ready"));
    proxy_forward(proxy);
    AWAIT(runs_n() == 2);
    assert_apart();
}

/* ---- the supervisor ---- */

static void
nothing_outlives_a_supervisor_that_is_killed_F2(void **state)
{
    pid_t first = start_tool(redis_server_url(rig.server)), pids[32];
    int64_t start;
    size_t n;

    (void)state;
    enqueue("j");
    AWAIT(runs_n() == 1);
    n = tree_of(first, pids, 32);
    assert_true(n >= 5); /* supervisor, service, child, spawner, job */
    start = wr_clock_ms();
    kill(first, SIGKILL);
    rig_end(first, 0);
    AWAIT(!any_lives(pids, n));
    print_message("all gone after %lld ms\n", (long long)(wr_clock_ms() - start));
    assert_true(wr_clock_ms() - start < 10000); /* promised: 2 s */
    AWAIT(rig_is("j", "ready"));
    assert_int_equal(rig_numbers("j").lost, 0);
}

static void
children_of_a_frozen_supervisor_fence_themselves_F5(void **state)
{
    pid_t first = start_tool(proxy_url(proxy));

    (void)state;
    enqueue("j");
    AWAIT(runs_n() == 1);
    kill(first, SIGSTOP);
    start_tool(redis_server_url(rig.server));
    proxy_stall(proxy);
    AWAIT(runs_n() == 2);
    assert_apart();
    kill(first, SIGCONT);
    let_jobs_end();
    AWAIT(rig_is("j", "done"));
}

int
main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_black_hole_ends_the_job_before_another_starts_it),
        TEST(what_is_not_heard_by_redis_ends_the_job_in_time),
        TEST(replies_that_do_not_come_end_the_job_in_time),
        TEST(cuts_that_heal_end_no_job),
        TEST(a_slow_link_ends_no_job),
        TEST(a_thawed_worker_ends_what_it_lost_at_once_L04),
        TEST(a_lease_never_lapses_while_its_connection_is_killed_L08),
        TEST(a_worker_that_cannot_renew_claims_nothing_L08_F5),
        TEST(nothing_outlives_a_supervisor_that_is_killed_F2),
        TEST(children_of_a_frozen_supervisor_fence_themselves_F5),
    };
    int failed;

    if (argc == 3 && strcmp(argv[1], "--tick") == 0)
        return tick(argv[2]);
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    rig.server = redis_server_start(NULL);
    failed = RUN_TESTS("worker_cut", tests, NULL, NULL);
    redis_server_stop(rig.server);
    return failed;
}
