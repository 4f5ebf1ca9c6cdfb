/* How workers are told: signals of every kind at every moment, a terminal, being the
 * first process of a container, a service manager, a time limit. */
#include "integration/worker_rig.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/worker_internal.h"

static struct shared {
    _Atomic int runs, started;
    _Atomic int release;
} * shared;

static int64_t stuck_ms; /* of the next worker; 0: as it is */

static enum weir_outcome
echo(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    shared->runs++;
    return WEIR_DONE;
}

/* Long enough to be met in the middle. */
static enum weir_outcome
brief(struct weir_delivery *d, void *context)
{
    (void)context;
    for (int i = 0; i < 20 && !weir_delivery_should_stop(d); i++)
        poll(NULL, 0, 1);
    return WEIR_DONE;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->started++;
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    return shared->release ? WEIR_DONE : WEIR_RETRY;
}

static void
handlers(struct weir_worker *w)
{
    static const struct {
        const char *type;
        weir_handler_fn fn;
    } rows[] = {{"echo", echo}, {"brief", brief}, {"patient", patient}};
    static const char *const shell[] = {"sh", NULL};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (weir_worker_handle(w, rows[i].type, rows[i].fn, NULL, NULL) != WEIR_OK)
            _exit(70);
    }
    if (stuck_ms > 0)
        w->stuck_ms = stuck_ms;
    if (weir_worker_exec(w, "sh", shell, NULL) != WEIR_OK)
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

#define SHELL(script) JOB(.payload = script, .payload_len = strlen(script))

/* What a job printed; lives until the next call. */
static const char *
result_of(const char *id)
{
    static char text[4096];
    struct weir_job_view *v;
    size_t len;
    const char *bytes;

    assert_int_equal(weir_result_wait(rig.client, "q", id, 20000, &v, NULL), WEIR_OK);
    bytes = weir_job_view_result(v, &len);
    snprintf(text, sizeof(text), "%.*s", (int)len, bytes ? bytes : "");
    weir_job_view_free(v);
    return text;
}

/* ---- every signal, every moment ---- */

static unsigned seed;

static int
random_below(int n)
{
    return rand_r(&seed) % n;
}

static void
any_stop_at_any_moment_charges_nothing_F6(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct weir_job jobs[200];
    struct weir_enqueued out[200];
    const char *text = getenv("WEIR_SEED");
    int rounds = getenv("WEIR_STOPS") ? atoi(getenv("WEIR_STOPS")) : 12;
    struct weir_audit a;

    (void)state;
    seed = text ? (unsigned)atoi(text) : (unsigned)getpid();
    print_message("WEIR_SEED=%u\n", seed);
    for (int i = 0; i < 200; i++)
        jobs[i] = (struct weir_job){WEIR_JOB_INIT, .queue = "q",
                                    .type = i % 4 == 0 ? "brief" : "echo"};
    for (int round = 0; round < rounds; round++) {
        bool twice = round % 3 == 0;
        pid_t pid;
        int64_t start;

        assert_int_equal(weir_job_enqueue_many(rig.client, jobs, 200, out, NULL),
                         WEIR_OK);
        pid = rig_start_with(
            (struct weir_worker_options){.processes = 2, .grace_ms = 3000});
        worker_child(pid, "weir-child");
        poll(NULL, 0, random_below(150));
        start = wr_clock_ms();
        kill(pid, signals[round % 3]);
        if (twice) {
            poll(NULL, 0, random_below(10));
            kill(pid, SIGTERM);
        }
        assert_int_equal(rig_end(pid, 0), 0);
        assert_true(wr_clock_ms() - start < 10000); /* promised: grace + 1 s */
        a = audit_of(rig.client, "q");
        assert_true(weir_audit_is_good(&a));
        assert_int_equal(a.processing, 0);
        assert_int_equal(a.retried + a.buried + a.reclaimed + a.reclaimed_delayed, 0);
    }
    rig_start();
    AWAIT(audit_of(rig.client, "q").done == 200 * rounds);
    assert_int_equal(audit_of(rig.client, "q").stale, 0);
}

static void
a_hang_up_that_was_ignored_stays_ignored(void **state)
{
    pid_t pid;

    (void)state;
    signal(SIGHUP, SIG_IGN); /* as nohup(1) does */
    pid = rig_start();
    signal(SIGHUP, SIG_DFL);
    worker_child(pid, "weir-child");
    kill(pid, SIGHUP);
    rig_enqueue(JOB(), "after", "echo");
    AWAIT(rig_is("after", "done"));
    assert_true(process_lives(pid));
}

static void
a_second_signal_ends_it_within_two_seconds_S08(void **state)
{
    pid_t pid = rig_start();
    int64_t start;

    (void)state;
    rig_enqueue(SHELL("trap '' TERM INT; echo on >&2; while :; do sleep 0.1; done"), "j",
                "sh");
    rig_enqueue(JOB(), "k", "patient");
    AWAIT(shared->started == 1 && rig_is("j", "processing"));
    kill(pid, SIGTERM);
    poll(NULL, 0, 200); /* a moment in which it could do wrong */
    assert_true(rig_is("j", "processing"));
    start = wr_clock_ms();
    assert_int_equal(rig_end(pid, SIGTERM), 0);
    start = wr_clock_ms() - start;
    print_message("%lld ms\n", (long long)start);
    assert_true(start < 6000); /* promised: 2 s */
    assert_true(rig_is("j", "ready") && rig_is("k", "ready"));
    assert_int_equal(rig_numbers("j").attempts + rig_numbers("j").lost, 0);
}

static void
a_command_inherits_neither_mask_nor_ignored_signals_S09(void **state)
{
    const char *text;

    (void)state;
    signal(SIGINT, SIG_IGN); /* as a shell starts what it puts into the background */
    signal(SIGUSR1, SIG_IGN);
    rig_start();
    signal(SIGINT, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    rig_enqueue(SHELL("exec grep -E 'Sig(Blk|Ign)' /proc/self/status"), "j", "sh");
    text = result_of("j");
    assert_non_null(strstr(text, "SigBlk:\t0000000000000000"));
    assert_non_null(strstr(text, "SigIgn:\t0000000000000000"));
}

/* ---- a terminal ---- */

/* weir work in the foreground of a terminal of its own; *terminal: its other end. */
static pid_t
start_on_terminal(int *terminal, const char *command)
{
    pid_t pid = forkpty(terminal, NULL, NULL, NULL);

    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(WEIR_TOOL, "weir", "work", "-q", "q", "--url", redis_server_url(rig.server),
          "--grace", "20s", "--", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static int
end_of(pid_t pid)
{
    int status = 0;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A worker on a terminal, whose job has begun: what was only claimed would go back. */
static pid_t
start_job_on_terminal(int *terminal)
{
    char mark[64], command[160];
    pid_t pid;

    snprintf(mark, sizeof(mark), "/tmp/weir-terminal-%d", (int)getpid());
    unlink(mark);
    snprintf(command, sizeof(command), ": >%s; sleep 0.7; echo finished", mark);
    pid = start_on_terminal(terminal, command);
    rig_enqueue(JOB(.payload = "", .payload_len = 0), "j", "any");
    AWAIT(access(mark, F_OK) == 0);
    unlink(mark);
    return pid;
}

static void
ctrl_c_lets_the_job_finish_S05(void **state)
{
    int terminal;
    pid_t pid = start_job_on_terminal(&terminal);

    (void)state;
    assert_int_equal(write(terminal, "\003", 1), 1);
    assert_int_equal(end_of(pid), 0);
    close(terminal);
    assert_memory_equal(result_of("j"), "finished\n", 9);
    assert_int_equal(rig_numbers("j").deliveries, 1);
}

static void
a_terminal_that_goes_away_ends_the_worker_in_order(void **state)
{
    int terminal;
    pid_t pid = start_job_on_terminal(&terminal);

    (void)state;
    close(terminal);
    assert_int_equal(end_of(pid), 0);
    assert_string_equal(result_of("j"), "finished\n");
    assert_int_equal(rig_numbers("j").deliveries, 1);
}

/* ---- pid 1 ---- */

/* The worker as the first process of a new pid namespace; 0: not allowed here. */
static pid_t
start_as_first(void)
{
    int fds[2];
    pid_t outer, first = 0;

    assert_int_equal(pipe(fds), 0);
    outer = fork();
    if (outer == 0) {
        struct weir_worker_options o = {.processes = 1};

        if (unshare(CLONE_NEWPID) != 0)
            _exit(1);
        first = rig_start_with(o);
        if (write(fds[1], &first, sizeof(first)) != sizeof(first))
            _exit(1);
        _exit(worker_end(first, 0));
    }
    close(fds[1]);
    if (read(fds[0], &first, sizeof(first)) != sizeof(first))
        first = 0;
    close(fds[0]);
    if (first == 0)
        waitpid(outer, NULL, 0);
    else
        rig.workers[rig.workers_n++] = outer;
    return first;
}

static bool
has_zombies(pid_t parent)
{
    char command[128];

    snprintf(command, sizeof(command), "ps --ppid %d -o stat= | grep -q Z", (int)parent);
    return system(command) == 0;
}

static void
as_pid_1_it_reaps_orphans_and_hears_signals(void **state)
{
    pid_t first = start_as_first(), outer;

    (void)state;
    if (first == 0)
        skip();
    outer = rig.workers[0];
    rig_enqueue(SHELL("(sh -c 'sleep 0.3 & exit' &); echo done"), "j", "sh");
    assert_string_equal(result_of("j"), "done\n");
    AWAIT(!has_zombies(first));
    rig_enqueue(JOB(), "p", "patient");
    AWAIT(shared->started == 1);
    kill(first, SIGTERM);
    poll(NULL, 0, 100); /* a moment in which it could do wrong */
    assert_true(rig_is("p", "processing"));
    shared->release = 1;
    assert_int_equal(rig_end(outer, 0), 0);
    assert_true(rig_is("p", "done"));
}

/* ---- a service manager ---- */

static int listener = -1;
static char heard[8192];

/* Binds where NOTIFY_SOCKET will point; abstract: in the abstract namespace. */
static void
listen_as_manager(bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[80];
    size_t len;

    snprintf(name, sizeof(name), "%s/weir-notify-%d", abstract ? "@" : "/tmp",
             (int)getpid());
    len = strlen(name);
    unlink(name);
    memcpy(address.sun_path, name, len);
    if (abstract)
        address.sun_path[0] = '\0';
    listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
    heard[0] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
}

static void
stop_listening(void)
{
    close(listener);
    unlink(getenv("NOTIFY_SOCKET") ? getenv("NOTIFY_SOCKET") : "");
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
}

/* True once these lines have come, in this order; each line ends with a newline. */
static bool
hears(const char *text)
{
    size_t len = strlen(heard);
    ssize_t n;

    while ((n = recv(listener, heard + len, sizeof(heard) - len - 2, MSG_DONTWAIT)) > 0) {
        len += (size_t)n;
        heard[len++] = '\n';
        heard[len] = '\0';
    }
    return strstr(heard, text) != NULL;
}

static size_t
count_heard(const char *text)
{
    size_t n = 0;

    (void)hears("");
    for (const char *at = heard; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

static void
tells_its_manager(bool abstract)
{
    pid_t pid;

    listen_as_manager(abstract);
    setenv("WATCHDOG_USEC", "300000", 1);
    pid = rig_start_with((struct weir_worker_options){.notify = true, .grace_ms = 4000});
    AWAIT(hears("READY=1\n"));
    AWAIT(hears("STATUS=Runs: 0 of 2 slots busy, 0 done, 0 failed\n"));
    AWAIT(count_heard("WATCHDOG=1\n") >= 3);
    rig_enqueue(SHELL("env"), "j", "sh");
    assert_null(strstr(result_of("j"), "NOTIFY_SOCKET"));
    assert_null(strstr(result_of("j"), "WATCHDOG"));
    AWAIT(hears("STATUS=Runs: 0 of 2 slots busy, 1 done, 0 failed\n"));
    assert_null(strstr(heard, "STOPPING"));
    rig_enqueue(JOB(), "p", "patient");
    AWAIT(shared->started == 1);
    kill(pid, SIGTERM);
    AWAIT(hears("STOPPING=1\nEXTEND_TIMEOUT_USEC=19000000\n"));
    AWAIT(hears("STATUS=Ends: 1 of 2 slots busy"));
    assert_int_equal(count_heard("READY=1\n"), 1);
    shared->release = 1;
    assert_int_equal(rig_end(pid, 0), 0);
    stop_listening();
}

static void
a_service_manager_is_told_what_happens(void **state)
{
    (void)state;
    tells_its_manager(false);
}

static void
a_service_manager_may_listen_in_the_abstract_namespace(void **state)
{
    (void)state;
    tells_its_manager(true);
}

static void
a_worker_without_redis_is_ready_and_says_what_it_lacks(void **state)
{
    pid_t pid;

    (void)state;
    rig_enqueue(JOB(), "waits", "echo");
    listen_as_manager(false);
    pid = rig_start_with(
        (struct weir_worker_options){.notify = true, .url = "unix:///no/such/socket"});
    AWAIT(hears("READY=1\n"));
    AWAIT(hears("STATUS=No word of Redis since"));
    assert_int_equal(rig_end(pid, SIGTERM), 0);
    stop_listening();
}

/* It is replaced, or a debugger looks at it: the other children need not end for that. */
static void
the_watchdog_is_fed_while_a_child_that_stands_still_is_replaced(void **state)
{
    int64_t start, last;
    pid_t pid, child;
    size_t n;

    (void)state;
    listen_as_manager(false);
    setenv("WATCHDOG_USEC", "300000", 1);
    stuck_ms = 12000;
    pid = rig_start_with((struct weir_worker_options){.notify = true, .lease_ms = 1000});
    stuck_ms = 0;
    child = worker_child(pid, "weir-child");
    AWAIT(hears("READY=1\n"));
    kill(child, SIGSTOP);
    start = last = wr_clock_ms();
    for (n = count_heard("WATCHDOG=1\n"); process_lives(child); poll(NULL, 0, 10)) {
        if (count_heard("WATCHDOG=1\n") > n)
            last = wr_clock_ms();
        n = count_heard("WATCHDOG=1\n");
        assert_true(wr_clock_ms() - last < 1500);
    }
    assert_true(wr_clock_ms() - start > 12000);
    rig_enqueue(JOB(), "after", "echo");
    AWAIT(rig_is("after", "done"));
    AWAIT(count_heard("WATCHDOG=1\n") > n + 2);
    stop_listening();
}

static void
its_children_are_renewed_one_by_one_and_work_goes_on(void **state)
{
    pid_t pid, old[2];
    char id[16];

    (void)state;
    listen_as_manager(false);
    pid = rig_start_with((struct weir_worker_options){
        .notify = true, .processes = 2, .concurrency = 1, .grace_ms = 20000});
    AWAIT(hears("READY=1\n"));
    rig_enqueue(JOB(), "a", "patient");
    rig_enqueue(JOB(), "b", "patient");
    AWAIT(shared->started == 2);
    old[0] = worker_child(pid, "weir-child");
    kill(pid, SIGUSR2);
    AWAIT(hears("RELOADING=1\nMONOTONIC_USEC="));
    assert_int_equal(count_heard("READY=1\n"), 1); /* it waits for the job of the first */
    shared->release = 1;
    AWAIT(count_heard("READY=1\n") == 2);
    old[1] = worker_child(pid, "weir-child");
    assert_int_not_equal(old[0], old[1]);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "j%d", i);
        rig_enqueue(JOB(), id, "echo");
        if (i % 20 == 0)
            kill(pid, SIGUSR2);
    }
    AWAIT(audit_of(rig.client, "q").done == 52);
    assert_int_equal(shared->runs, 50);
    assert_int_equal(audit_of(rig.client, "q").reclaimed, 0);
    assert_true(process_lives(pid));
    stop_listening();
}

/* ---- a time limit ---- */

static void
max_time_ends_it_and_lets_the_running_job_finish(void **state)
{
    pid_t pid = rig_start_with((struct weir_worker_options){.max_time_ms = 700});
    int64_t start = wr_clock_ms();

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    AWAIT(wr_clock_ms() - start > 1200);
    rig_enqueue(JOB(), "late", "echo");
    shared->release = 1;
    assert_int_equal(rig_end(pid, 0), 0);
    assert_true(rig_is("j", "done"));
    assert_true(rig_is("late", "ready"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(any_stop_at_any_moment_charges_nothing_F6),
        TEST(a_hang_up_that_was_ignored_stays_ignored),
        TEST(a_second_signal_ends_it_within_two_seconds_S08),
        TEST(a_command_inherits_neither_mask_nor_ignored_signals_S09),
        TEST(ctrl_c_lets_the_job_finish_S05),
        TEST(a_terminal_that_goes_away_ends_the_worker_in_order),
        TEST(as_pid_1_it_reaps_orphans_and_hears_signals),
        TEST(a_service_manager_is_told_what_happens),
        TEST(a_service_manager_may_listen_in_the_abstract_namespace),
        TEST(a_worker_without_redis_is_ready_and_says_what_it_lacks),
        TEST(the_watchdog_is_fed_while_a_child_that_stands_still_is_replaced),
        TEST(its_children_are_renewed_one_by_one_and_work_goes_on),
        TEST(max_time_ends_it_and_lets_the_running_job_finish),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_signals", tests, handlers);
}
