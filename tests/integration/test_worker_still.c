/* Worker children that stand still: stopped by hand, as one is that hangs in the kernel.
 */
#include "integration/worker_rig.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/worker_internal.h"

#define LEASE_MS 1000
#define LONG_LEASE_MS 6000

static char folder[64]; /* where commands leave their marks */
static int64_t stuck_ms;

static enum weir_outcome
echo(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    return WEIR_DONE;
}

/* Each run writes its process into a file, after it has looked at the one before. */
static void
handlers(struct weir_worker *w)
{
    const char *script =
        "cd $MARKS; if [ -e pid ] && kill -0 $(cat pid) 2>alone; then touch both; fi;"
        " echo $$ >new; mv new pid; exec sleep 1000";
    struct weir_exec_options o = {
        .struct_size = sizeof(o), .argv = (const char *[]){script, NULL}, .shell = true};
    static const char *const nap[] = {"sh", "-c", "touch $MARKS/nap; exec sleep 1000",
                                      NULL};

    setenv("MARKS", folder, 1);
    w->stuck_ms = stuck_ms;
    if (weir_worker_handle(w, "echo", echo, NULL, NULL) != WEIR_OK ||
        weir_worker_exec_with(w, "sleep", &o, NULL) != WEIR_OK ||
        weir_worker_exec(w, "nap", nap, NULL) != WEIR_OK)
        _exit(70);
}

static pid_t
start(int64_t stuck)
{
    stuck_ms = stuck;
    return rig_start_with(
        (struct weir_worker_options){.lease_ms = LEASE_MS, .concurrency = 1});
}

static bool
has_mark(const char *name)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static int
pid_of_job(void)
{
    char path[200];
    int pid = -1;
    FILE *f;

    snprintf(path, sizeof(path), "%s/pid", folder);
    f = fopen(path, "re");
    if (f && fscanf(f, "%d", &pid) != 1)
        pid = -1;
    if (f)
        fclose(f);
    return pid;
}

static void
pass(int64_t ms)
{
    int64_t begin = wr_clock_ms();

    AWAIT(wr_clock_ms() - begin > ms);
}

static bool
is_stopped(pid_t pid)
{
    char path[64], state = '?';
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    if (f)
        fclose(f);
    return state == 'T';
}

/* At its end a worker waits for a job that runs. */
static void
cancel(const char *id)
{
    assert_int_equal(weir_job_cancel(rig.client, "q", id, NULL, NULL), WEIR_OK);
    AWAIT(rig_is(id, "gone"));
}

static void
run_one(const char *id)
{
    rig_enqueue(JOB(), id, "echo");
    AWAIT(rig_is(id, "done"));
}

static void
a_child_that_was_stopped_is_replaced_and_the_next_job_runs(void **state)
{
    pid_t worker = start(500), child = worker_child(worker, "weir-child");

    (void)state;
    run_one("before");
    kill(child, SIGSTOP);
    AWAIT(is_stopped(child)); /* till then it may take the job */
    run_one("after");
    assert_false(process_lives(child));
    assert_int_not_equal(worker_child(worker, "weir-child"), child);
}

/* By the supervisor: the child cannot. It comes back before it would be replaced. */
static void
what_a_stopped_child_had_started_is_over_before_another_starts_it_L04(void **state)
{
    pid_t worker = start(600000), child = worker_child(worker, "weir-child");
    int first;

    (void)state;
    rig_enqueue(JOB(), "j", "sleep");
    AWAIT(pid_of_job() > 0);
    first = pid_of_job();
    kill(child, SIGSTOP);
    start(600000);
    AWAIT(pid_of_job() != first);
    assert_false(has_mark("both"));
    assert_true(process_lives(child));
    kill(child, SIGCONT);
    cancel("j");
    run_one("after");
    assert_true(process_lives(child));
}

/* Just after a renewal: until when the lease holds then, wall clock. */
static int64_t
renewed_until(const char *id)
{
    int64_t before = rig_numbers(id).lease_until;

    AWAIT(rig_numbers(id).lease_until > before);
    return rig_numbers(id).lease_until;
}

static pid_t
start_long(int64_t *until)
{
    pid_t worker;

    stuck_ms = 600000;
    worker = rig_start_with(
        (struct weir_worker_options){.lease_ms = LONG_LEASE_MS, .concurrency = 2});
    rig_enqueue(JOB(), "j", "sleep");
    AWAIT(pid_of_job() > 0);
    *until = renewed_until("j");
    return worker;
}

/* The I/O thread did something since the last renewal, which says nothing of the lease.
 * The child is back before that lapses: no attempt was made, neither of a job that came
 * later, though its lease thread finds nothing wrong with that. */
static void
commands_of_a_child_stopped_long_after_its_last_renewal_end_in_time_L04(void **state)
{
    int64_t until;
    pid_t worker = start_long(&until), child = worker_child(worker, "weir-child");
    int first = pid_of_job();

    (void)state;
    pass(LONG_LEASE_MS / 4 - 400);
    run_one("tick");
    rig_enqueue(JOB(), "late", "nap");
    AWAIT(has_mark("nap"));
    kill(child, SIGSTOP);
    assert_int_equal(rig_numbers("j").lease_until, until);
    AWAIT(!process_lives(first));
    assert_true(wr_clock_wall_ms() < until);
    kill(child, SIGCONT);
    AWAIT(pid_of_job() != first);
    assert_false(has_mark("both"));
    AWAIT(rig_numbers("late").deliveries == 2);
    assert_int_equal(rig_numbers("j").attempts, 0);
    assert_int_equal(rig_numbers("late").attempts, 0);
    cancel("late");
    cancel("j");
}

/* Its lease thread was alive, but could renew nothing. */
static void
commands_of_a_child_stopped_in_an_outage_end_in_time_L04(void **state)
{
    int64_t until;
    pid_t worker = start_long(&until), child = worker_child(worker, "weir-child");
    int first = pid_of_job();

    (void)state;
    redis_do(rig.server, "REPLICAOF 127.0.0.1 1"); /* takes no writes */
    pass(LONG_LEASE_MS / 2);
    kill(child, SIGSTOP);
    AWAIT(!process_lives(first));
    redis_do(rig.server, "REPLICAOF NO ONE");
    assert_true(wr_clock_wall_ms() < until);
    kill(child, SIGCONT);
    AWAIT(pid_of_job() != first);
    assert_false(has_mark("both"));
    cancel("j");
}

/* Nobody reaps the command then, so its group does not go away. */
static void
a_child_that_was_stopped_with_its_spawner_is_replaced(void **state)
{
    pid_t worker = start(500), child = worker_child(worker, "weir-child"),
          spawner = worker_child(child, "weir-spawner");
    int first;

    (void)state;
    rig_enqueue(JOB(), "j", "sleep");
    AWAIT(pid_of_job() > 0);
    first = pid_of_job();
    kill(spawner, SIGSTOP);
    kill(child, SIGSTOP);
    AWAIT(pid_of_job() != first);
    assert_false(has_mark("both"));
    assert_false(process_lives(child));
    AWAIT(!process_lives(spawner));
    cancel("j");
}

/* A suspended machine, or a container that was paused: the supervisor is the first to
 * wake up. */
static void
when_all_processes_were_stopped_none_is_killed(void **state)
{
    pid_t worker = start(500), child = worker_child(worker, "weir-child");

    (void)state;
    run_one("before");
    kill(child, SIGSTOP);
    kill(worker, SIGSTOP);
    pass(2 * LEASE_MS + 500);
    kill(worker, SIGCONT);
    poll(NULL, 0, 50);
    kill(child, SIGCONT);
    run_one("after");
    pass(LEASE_MS);
    assert_true(process_lives(child));
    assert_int_equal(worker_child(worker, "weir-child"), child);
}

static void
a_child_at_which_a_debugger_looks_is_left_alone(void **state)
{
    pid_t worker = start(200), child = worker_child(worker, "weir-child");

    (void)state;
    run_one("before");
    kill(child, SIGSTOP);
    AWAIT(is_stopped(child)); /* all of its threads */
    if (ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0) {
        print_message("ptrace: %s\n", strerror(errno));
        skip();
    }
    rig_enqueue(JOB(), "after", "echo");
    pass(2 * LEASE_MS + 1000);
    assert_true(process_lives(child));
    assert_false(rig_is("after", "done"));
    ptrace(PTRACE_DETACH, child, NULL, NULL);
    kill(child, SIGCONT);
    AWAIT(rig_is("after", "done"));
}

static int
setup(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/weir-still-%d-XXXXXX", (int)getpid());
    return mkdtemp(folder) ? rig_setup(state) : -1;
}

static int
teardown(void **state)
{
    static const char *const names[] = {"pid", "alone", "both", "new", "nap"};
    int rc = rig_teardown(state);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[200];

        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    return rc;
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_child_that_was_stopped_is_replaced_and_the_next_job_runs),
        TEST(what_a_stopped_child_had_started_is_over_before_another_starts_it_L04),
        TEST(commands_of_a_child_stopped_long_after_its_last_renewal_end_in_time_L04),
        TEST(commands_of_a_child_stopped_in_an_outage_end_in_time_L04),
        TEST(a_child_that_was_stopped_with_its_spawner_is_replaced),
        TEST(when_all_processes_were_stopped_none_is_killed),
        TEST(a_child_at_which_a_debugger_looks_is_left_alone),
    };

    return RIG_RUN("worker_still", tests, handlers);
}
