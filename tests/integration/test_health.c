/* Does `weir status --check` tell the truth? Red while jobs cannot be done, whatever
 * still answers; green again after. The worker is reached through a proxy, the check is
 * not. */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/proxy.h"

static struct proxy *proxy;

/* The exit status of the check; what it says goes to a file. */
static int
check(void)
{
    char command[512];
    int status;

    snprintf(command, sizeof(command),
             "%s status --check --url %s >/dev/null 2>/tmp/weir-health-%d", WEIR_TOOL,
             redis_server_url(rig.server), (int)getpid());
    status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool
check_says(const char *text)
{
    char path[64], said[2000];
    FILE *f;

    snprintf(path, sizeof(path), "/tmp/weir-health-%d", (int)getpid());
    f = fopen(path, "r");
    said[f ? fread(said, 1, sizeof(said) - 1, f) : 0] = '\0';
    if (f)
        fclose(f);
    return strstr(said, text) != NULL;
}

/* Waits until it is as said; answers how long that took. */
static int64_t
until(bool green)
{
    int64_t start = wr_clock_ms();

    while ((check() == 0) != green) {
        if (wr_clock_ms() - start > 30000)
            fail_msg("it never became %s", green ? "green" : "red");
        poll(NULL, 0, 50);
    }
    print_message("%s after %lld ms\n", green ? "green" : "red",
                  (long long)(wr_clock_ms() - start));
    return wr_clock_ms() - start;
}

static void
start_tool(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(WEIR_TOOL, "weir", "work", "-q", "q", "-c", "1", "--url", proxy_url(proxy),
              "--", "true", (char *)NULL);
        _exit(127);
    }
    rig.workers[rig.workers_n++] = pid;
}

static int
setup(void **state)
{
    int rc = rig_setup(state);

    proxy = proxy_start(redis_server_socket(rig.server));
    start_tool();
    rig_enqueue(JOB(), "j", "any");
    AWAIT(rig_is("j", "done"));
    until(true);
    return rc;
}

static int
teardown(void **state)
{
    char path[64];
    int rc = rig_teardown(state);

    proxy_stop(proxy);
    snprintf(path, sizeof(path), "/tmp/weir-health-%d", (int)getpid());
    unlink(path);
    return rc;
}

static void
red_while_redis_is_away_N18_N01(void **state)
{
    (void)state;
    redis_server_pause(rig.server);
    assert_true(until(false) < 15000);
    redis_server_resume(rig.server);
    until(true);
}

static void
red_while_the_worker_is_cut_off_N18_N02(void **state)
{
    (void)state;
    proxy_stall(proxy);
    assert_true(until(false) < 20000); /* promised: 15 s */
    assert_true(check_says("not heard for"));
    proxy_forward(proxy);
    until(true);
}

/* Its heartbeats go through, its fetches do not. */
static void
red_while_a_worker_lives_and_fetches_nothing_N18(void **state)
{
    (void)state;
    proxy_stall_named(proxy, "weir-work");
    proxy_cut_all(proxy);
    assert_true(until(false) < 20000);
    assert_true(check_says("fetched nothing"));
    proxy_forward(proxy);
    until(true);
}

static void
red_while_redis_refuses_writes_N18_N06(void **state)
{
    char dir[300];

    (void)state;
    snprintf(dir, sizeof(dir), "%s/dump", redis_server_dir(rig.server));
    assert_int_equal(mkdir(dir, 0700), 0);
    redis_do(rig.server, "CONFIG SET dir %s", dir);
    assert_int_equal(rmdir(dir), 0);
    redis_do(rig.server, "BGSAVE");
    AWAIT(strstr(redis_do(rig.server, "INFO persistence"), "last_bgsave_status:err"));
    assert_true(until(false) < 15000);
    assert_true(check_says("refuses writes"));
    assert_int_equal(mkdir(dir, 0700), 0);
    redis_do(rig.server, "CONFIG SET dir %s", redis_server_dir(rig.server));
    redis_do(rig.server, "BGSAVE");
    AWAIT(strstr(redis_do(rig.server, "INFO persistence"), "last_bgsave_status:ok"));
    until(true);
    rmdir(dir);
    rig_enqueue(JOB(), "after", "any");
    AWAIT(rig_is("after", "done"));
}

static void
red_while_jobs_wait_and_nobody_serves_their_queue_N18(void **state)
{
    (void)state;
    rig_enqueue(JOB(.queue = "lonely"), "k", "any");
    assert_int_equal(check(), 1);
    assert_true(check_says("lonely: 1 job is ready and no worker serves it"));
    assert_int_equal(weir_job_cancel(rig.client, "lonely", "k", NULL, NULL), WEIR_OK);
    until(true);
}

int
main(void)
{
    static const char *const snapshots[] = {"--save", "3600 1",
                                            "--enable-protected-configs", "yes", NULL};
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(red_while_redis_is_away_N18_N01),
        TEST(red_while_the_worker_is_cut_off_N18_N02),
        TEST(red_while_a_worker_lives_and_fetches_nothing_N18),
        TEST(red_while_redis_refuses_writes_N18_N06),
        TEST(red_while_jobs_wait_and_nobody_serves_their_queue_N18),
    };
    int failed;

    rig.server = redis_server_start(snapshots);
    failed = RUN_TESTS("health", tests, NULL, NULL);
    redis_server_stop(rig.server);
    return failed;
}
