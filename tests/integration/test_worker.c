/* Workers as real processes: C handlers, crashes, signals, leases. */
#include "support/cmocka_all.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/redis_server.h"
#include "support/worker_process.h"

static struct redis_server *server;
static struct weir_client *client;
static pid_t workers[4];
static size_t workers_n;

/* Counts of the handlers, seen by the test. */
static struct shared {
    _Atomic int runs, started, ended;
    _Atomic int release; /* the patient handler ends when this is set */
} * shared;

static enum weir_outcome
echo(struct weir_delivery *d, void *context)
{
    size_t len;
    const void *payload = weir_delivery_payload(d, &len);

    (void)context;
    shared->runs++;
    if (weir_delivery_set_result(d, payload, len) != WEIR_OK)
        return WEIR_PERMANENT;
    return WEIR_DONE;
}

static enum weir_outcome
always_fails(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->runs++;
    weir_delivery_set_error(d, "no luck in run %d", (int)weir_delivery_attempt(d));
    weir_delivery_set_delay(d, 1);
    return WEIR_RETRY;
}

static enum weir_outcome
never(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->runs++;
    weir_delivery_set_error(d, "cannot ever work");
    return WEIR_PERMANENT;
}

static enum weir_outcome
later_once(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->runs++;
    weir_delivery_set_delay(d, 10);
    return weir_delivery_number(d) == 1 ? WEIR_SNOOZE : WEIR_DONE;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->started++;
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    if (!shared->release)
        return WEIR_RETRY;
    shared->ended++;
    return WEIR_DONE;
}

/* Hears nothing: neither its flag nor signals. */
static enum weir_outcome
deaf(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    shared->started++;
    while (!shared->release)
        poll(NULL, 0, 5);
    return WEIR_DONE;
}

static enum weir_outcome
spin(struct weir_delivery *d, void *context)
{
    int64_t end = wr_clock_ms() + 4000;

    (void)d;
    (void)context;
    shared->started++;
    while (wr_clock_ms() < end)
        continue;
    shared->ended++;
    return WEIR_DONE;
}

static enum weir_outcome
pill(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    shared->started++;
    abort();
}

static void
handlers(struct weir_worker *w)
{
    static const struct {
        const char *type;
        weir_handler_fn fn;
    } rows[] = {{"echo", echo},        {"fail", always_fails}, {"never", never},
                {"later", later_once}, {"patient", patient},   {"deaf", deaf},
                {"spin", spin},        {"pill", pill}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (weir_worker_handle(w, rows[i].type, rows[i].fn, NULL, NULL) != WEIR_OK)
            _exit(70);
    }
}

static pid_t
start_worker_with(struct weir_worker_options o)
{
    static const char *const queues[] = {"q", NULL};

    o.struct_size = sizeof(o);
    o.url = redis_server_url(server);
    o.queues = queues;
    if (o.concurrency == 0)
        o.concurrency = 2;
    if (o.lease_ms == 0)
        o.lease_ms = 2000;
    workers[workers_n] = worker_start(&o, handlers);
    return workers[workers_n++];
}

static pid_t
start_worker(void)
{
    return start_worker_with((struct weir_worker_options){0});
}

static void
enqueue(struct weir_job job, const char *id, const char *type)
{
    struct weir_error err = {0};

    job.queue = "q";
    job.id = id;
    job.type = type;
    if (weir_job_enqueue(client, &job, NULL, &err) != WEIR_OK)
        fail_msg("enqueue: %s", err.text);
}

#define JOB(...) ((struct weir_job){WEIR_JOB_INIT, .keep_result_ms = 600000, __VA_ARGS__})

static struct weir_job_numbers
numbers(const char *id)
{
    struct weir_job_numbers n = {0};
    struct weir_job_view *v;

    if (weir_job_inspect(client, "q", id, &v, NULL) == WEIR_OK) {
        weir_job_view_numbers(v, &n);
        weir_job_view_free(v);
    }
    return n;
}

static bool
is_state(const char *id, const char *state)
{
    return strcmp(job_state(client, "q", id), state) == 0;
}

static int
setup(void **state)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                    .url = redis_server_url(server)};

    (void)state;
    redis_do(server, "FLUSHALL");
    memset((void *)shared, 0, sizeof(*shared));
    workers_n = 0;
    assert_int_equal(weir_client_open(&o, &client, NULL), WEIR_OK);
    return 0;
}

static int
teardown(void **state)
{
    struct weir_audit a = audit_of(client, "q");
    size_t findings = 0;

    (void)state;
    shared->release = 1;
    for (size_t i = 0; i < workers_n; i++) {
        if (workers[i] > 0)
            worker_end(workers[i], SIGTERM);
    }
    assert_true(weir_audit_is_good(&a));
    a = audit_of(client, "q");
    assert_true(weir_audit_is_good(&a));
    assert_int_equal(weir_queue_audit_deep(client, "q", NULL, NULL, &findings, NULL),
                     WEIR_OK);
    assert_int_equal(findings, 0);
    weir_client_close(client);
    return 0;
}

static void
forget_worker(pid_t pid)
{
    for (size_t i = 0; i < workers_n; i++) {
        if (workers[i] == pid)
            workers[i] = 0;
    }
}

static int
end_worker(pid_t pid, int sig)
{
    forget_worker(pid);
    return worker_end(pid, sig);
}

/* ---- */

static void
a_handler_gets_the_payload_and_its_result_is_kept_D03(void **state)
{
    struct weir_job_view *v;
    unsigned char bytes[256];
    size_t len;

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    start_worker();
    enqueue(JOB(.payload = bytes, .payload_len = 256), "j", "echo");
    assert_int_equal(weir_result_wait(client, "q", "j", 20000, &v, NULL), WEIR_OK);
    assert_memory_equal(weir_job_view_result(v, &len), bytes, 256);
    assert_int_equal(len, 256);
    weir_job_view_free(v);
    assert_int_equal(shared->runs, 1);
}

static void
retry_n_means_n_runs_after_the_first_R01(void **state)
{
    (void)state;
    start_worker();
    enqueue(JOB(.max_retry = WEIR_NONE), "r0", "fail");
    AWAIT(is_state("r0", "dead"));
    assert_int_equal(shared->runs, 1);
    enqueue(JOB(.max_retry = 3), "r3", "fail");
    AWAIT(is_state("r3", "dead"));
    assert_int_equal(shared->runs, 5);
    assert_int_equal(numbers("r3").attempts, 4);
}

static void
permanent_failure_and_snooze_are_obeyed_R08(void **state)
{
    (void)state;
    start_worker();
    enqueue(JOB(), "n", "never");
    AWAIT(is_state("n", "dead"));
    assert_int_equal(shared->runs, 1);
    enqueue(JOB(.max_retry = WEIR_NONE), "l", "later");
    AWAIT(is_state("l", "done"));
    assert_int_equal(numbers("l").attempts, 1); /* the snooze used none up */
    assert_int_equal(numbers("l").snoozes, 1);
}

static void
a_job_whose_child_is_killed_runs_again_at_once_and_keeps_its_attempts_L01_L15(
    void **state)
{
    pid_t pid = start_worker();
    int64_t killed;

    (void)state;
    enqueue(JOB(.max_retry = WEIR_NONE), "j", "patient");
    AWAIT(shared->started == 1);
    kill(worker_child(pid, "weir-child"), SIGKILL);
    killed = wr_clock_ms();
    AWAIT(shared->started == 2);
    assert_true(wr_clock_ms() - killed < 5000); /* promised: 1 s */
    assert_int_equal(numbers("j").lost, 1);
    assert_int_equal(numbers("j").deliveries, 2);
    assert_int_equal(numbers("j").attempts, 0);
    shared->release = 1;
    AWAIT(is_state("j", "done"));
}

static void
a_whole_lost_worker_is_noticed_when_its_lease_ends_L01_L13(void **state)
{
    pid_t first = start_worker(), second;

    (void)state;
    enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    kill(first, SIGKILL);
    end_worker(first, 0);
    second = start_worker();
    AWAIT(shared->started == 2);
    assert_true(process_lives(second));
    shared->release = 1;
    AWAIT(is_state("j", "done"));
}

static void
when_the_supervisor_is_killed_its_children_end_F2(void **state)
{
    pid_t pid = start_worker(), child = worker_child(pid, "weir-child");
    pid_t service = worker_child(pid, "weir-service");
    int64_t start;

    (void)state;
    enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    kill(pid, SIGKILL);
    start = wr_clock_ms();
    end_worker(pid, 0);
    AWAIT(!process_lives(child) && !process_lives(service));
    assert_true(wr_clock_ms() - start < 10000); /* promised: 2 s */
    AWAIT(is_state("j", "ready"));              /* handed back, not lost */
    assert_int_equal(numbers("j").lost, 0);
}

static void
a_poison_pill_kills_three_children_and_is_dead_and_others_finish_L16(void **state)
{
    char id[16];

    (void)state;
    start_worker();
    enqueue(JOB(), "pill", "pill");
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "good%d", i);
        enqueue(JOB(), id, "echo");
    }
    AWAIT(is_state("pill", "dead"));
    assert_int_equal(shared->started, 3);
    assert_int_equal(numbers("pill").lost, 3);
    AWAIT(audit_of(client, "q").done == 50);
    assert_int_equal(audit_of(client, "q").dead, 1);
}

static void
a_circulating_pill_can_be_cancelled_L18(void **state)
{
    int started;

    (void)state;
    start_worker();
    enqueue(JOB(.max_deliveries = WEIR_NONE), "pill", "pill");
    AWAIT(shared->started >= 2);
    AWAIT(weir_job_cancel(client, "q", "pill", NULL, NULL) == WEIR_OK);
    AWAIT(is_state("pill", "gone"));
    started = shared->started;
    enqueue(JOB(), "after", "echo");
    AWAIT(is_state("after", "done"));
    assert_int_equal(shared->started, started);
}

static void
term_lets_running_jobs_finish_S01(void **state)
{
    pid_t pid = start_worker();

    (void)state;
    enqueue(JOB(), "j", "patient");
    enqueue(JOB(), "k", "patient");
    enqueue(JOB(), "waits", "patient");
    AWAIT(shared->started == 2);
    kill(pid, SIGTERM);
    poll(NULL, 0, 100); /* a moment in which it could do wrong */
    assert_true(is_state("j", "processing"));
    shared->release = 1;
    assert_int_equal(end_worker(pid, 0), 0);
    assert_true(is_state("j", "done") && is_state("k", "done"));
    assert_true(is_state("waits", "ready"));
    assert_int_equal(audit_of(client, "q").processing, 0);
}

static void
a_job_that_outlives_the_grace_time_goes_back_to_the_front_uncharged_S02(void **state)
{
    pid_t pid = start_worker_with(
        (struct weir_worker_options){.grace_ms = 300, .concurrency = 1});

    (void)state;
    enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    enqueue(JOB(), "behind", "echo");
    assert_int_equal(end_worker(pid, SIGTERM), 0);
    assert_true(is_state("j", "ready"));
    assert_int_equal(numbers("j").attempts, 0);
    assert_int_equal(numbers("j").lost, 0);
    assert_int_equal(numbers("j").interrupted, 1);
    assert_string_equal(redis_do(server, "LINDEX weir:{q}:ready -1"), "j");
}

static void
leases_are_renewed_while_a_worker_drains_S03(void **state)
{
    pid_t pid = start_worker_with(
        (struct weir_worker_options){.lease_ms = 1000, .grace_ms = 20000});
    int64_t start = wr_clock_ms();

    (void)state;
    enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    start_worker();
    kill(pid, SIGTERM);
    AWAIT(wr_clock_ms() - start > 4000); /* four leases */
    assert_int_equal(shared->started, 1);
    shared->release = 1;
    end_worker(pid, 0);
    assert_true(is_state("j", "done"));
}

static void
a_cpu_bound_handler_keeps_its_lease_L07(void **state)
{
    (void)state;
    start_worker_with((struct weir_worker_options){.lease_ms = 1000});
    start_worker_with((struct weir_worker_options){.lease_ms = 1000});
    enqueue(JOB(), "j", "spin");
    AWAIT(is_state("j", "done"));
    assert_int_equal(shared->started, 1);
}

static void
a_long_job_is_not_delivered_twice_L06_L12(void **state)
{
    pid_t once = start_worker_with(
        (struct weir_worker_options){.lease_ms = 1000, .once = true});
    int64_t start = wr_clock_ms();

    (void)state;
    enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    start_worker_with((struct weir_worker_options){.lease_ms = 1000});
    AWAIT(wr_clock_ms() - start > 3500);
    shared->release = 1;
    AWAIT(is_state("j", "done"));
    assert_int_equal(shared->started, 1);
    assert_int_equal(end_worker(once, 0), 0);
}

static void
a_frozen_worker_cannot_close_the_run_of_another_L03(void **state)
{
    pid_t first = start_worker_with((struct weir_worker_options){.lease_ms = 1000});
    pid_t child = worker_child(first, "weir-child"),
          service = worker_child(first, "weir-service");

    (void)state;
    enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    kill(child, SIGSTOP);
    kill(service, SIGSTOP);
    start_worker_with((struct weir_worker_options){.lease_ms = 1000});
    AWAIT(shared->started == 2);
    assert_int_equal(numbers("j").deliveries, 2);
    kill(service, SIGCONT);
    kill(child, SIGCONT); /* its handler is stopped: the lease is lost */
    AWAIT(audit_of(client, "q").stale >= 1 || numbers("j").deliveries == 2);
    poll(NULL, 0, 1500);
    assert_true(is_state("j", "processing"));
    shared->release = 1;
    AWAIT(is_state("j", "done"));
    assert_int_equal(audit_of(client, "q").done, 1);
}

static void
a_running_job_is_cancelled_within_two_seconds_X01(void **state)
{
    enum weir_cancel_result how;
    int64_t start;

    (void)state;
    start_worker_with((struct weir_worker_options){.lease_ms = 60000});
    enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    start = wr_clock_ms();
    assert_int_equal(weir_job_cancel(client, "q", "j", &how, NULL), WEIR_OK);
    assert_int_equal(how, WEIR_CANCEL_FLAGGED);
    AWAIT(is_state("j", "gone"));
    assert_true(wr_clock_ms() - start <
                10000); /* promised: 2 s; a renewal would take 20 */
    assert_int_equal(audit_of(client, "q").cancelled_processing, 1);
}

static void
a_handler_that_ignores_its_timeout_costs_its_child_and_nothing_else(void **state)
{
    pid_t pid = start_worker_with((struct weir_worker_options){.grace_ms = 1000});
    pid_t child = worker_child(pid, "weir-child");

    (void)state;
    enqueue(JOB(.timeout_ms = 300, .kill_after_ms = 300, .max_retry = WEIR_NONE), "hung",
            "deaf");
    AWAIT(is_state("hung", "dead"));
    AWAIT(!process_lives(child));
    enqueue(JOB(), "next", "echo");
    AWAIT(is_state("next", "done"));
    assert_int_equal(numbers("hung").lost, 0);
}

static void
a_delayed_job_runs_once_also_with_a_short_lease_T06(void **state)
{
    (void)state;
    start_worker_with((struct weir_worker_options){.lease_ms = 1000});
    enqueue(JOB(.delay_ms = 2500), "j", "echo");
    AWAIT(is_state("j", "done"));
    assert_int_equal(shared->runs, 1);
    assert_true(numbers("j").started_at >= numbers("j").enqueued_at + 2500);
}

static void
workers_go_on_after_an_outage_longer_than_the_block_time_N01(void **state)
{
    int64_t start = wr_clock_ms();

    (void)state;
    start_worker();
    enqueue(JOB(), "before", "echo");
    AWAIT(is_state("before", "done"));
    redis_server_pause(server);
    AWAIT(wr_clock_ms() - start > 11000); /* twice the block time */
    redis_server_resume(server);
    start = wr_clock_ms();
    enqueue(JOB(), "after", "echo");
    AWAIT(is_state("after", "done"));
    assert_true(wr_clock_ms() - start < 25000); /* promised: 5 s */
}

static void
a_flood_of_no_scripts_is_not_seen_by_anybody_N05(void **state)
{
    struct weir_job jobs[100];
    struct weir_enqueued out[100];
    int64_t flush = 0;

    (void)state;
    start_worker();
    for (int i = 0; i < 100; i++)
        jobs[i] = (struct weir_job){WEIR_JOB_INIT, .queue = "q", .type = "echo"};
    for (int i = 0; i < 50; i++) {
        assert_int_equal(weir_job_enqueue_many(client, jobs, 100, out, NULL), WEIR_OK);
        redis_do(server, "SCRIPT FLUSH");
    }
    AWAIT((wr_clock_ms() - flush < 10 ||
           (flush = wr_clock_ms(), redis_do(server, "SCRIPT FLUSH"))) &&
          audit_of(client, "q").done == 5000);
}

static void
a_kill_loop_loses_nothing_L02(void **state)
{
    struct weir_job jobs[100];
    struct weir_enqueued out[100];
    unsigned seed = (unsigned)getpid();
    const char *text = getenv("WEIR_SEED");

    (void)state;
    seed = text ? (unsigned)atoi(text) : seed;
    print_message("WEIR_SEED=%u\n", seed);
    for (int i = 0; i < 100; i++)
        jobs[i] = (struct weir_job){WEIR_JOB_INIT, .queue = "q", .type = "echo"};
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 100; k++)
            jobs[k].max_deliveries = WEIR_NONE;
        assert_int_equal(weir_job_enqueue_many(client, jobs, 100, out, NULL), WEIR_OK);
    }
    for (int i = 0; i < 40; i++) {
        pid_t pid = start_worker();

        poll(NULL, 0, 5 + rand_r(&seed) % 60);
        kill(pid, SIGKILL);
        end_worker(pid, 0);
        workers_n--;
        struct weir_audit a = audit_of(client, "q");
        assert_true(weir_audit_is_good(&a));
    }
    start_worker();
    AWAIT(audit_of(client, "q").done == 10000);
    assert_true(shared->runs >= 10000);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_handler_gets_the_payload_and_its_result_is_kept_D03),
        TEST(retry_n_means_n_runs_after_the_first_R01),
        TEST(permanent_failure_and_snooze_are_obeyed_R08),
        TEST(
            a_job_whose_child_is_killed_runs_again_at_once_and_keeps_its_attempts_L01_L15),
        TEST(a_whole_lost_worker_is_noticed_when_its_lease_ends_L01_L13),
        TEST(when_the_supervisor_is_killed_its_children_end_F2),
        TEST(a_poison_pill_kills_three_children_and_is_dead_and_others_finish_L16),
        TEST(a_circulating_pill_can_be_cancelled_L18),
        TEST(term_lets_running_jobs_finish_S01),
        TEST(a_job_that_outlives_the_grace_time_goes_back_to_the_front_uncharged_S02),
        TEST(leases_are_renewed_while_a_worker_drains_S03),
        TEST(a_cpu_bound_handler_keeps_its_lease_L07),
        TEST(a_long_job_is_not_delivered_twice_L06_L12),
        TEST(a_frozen_worker_cannot_close_the_run_of_another_L03),
        TEST(a_running_job_is_cancelled_within_two_seconds_X01),
        TEST(a_handler_that_ignores_its_timeout_costs_its_child_and_nothing_else),
        TEST(a_delayed_job_runs_once_also_with_a_short_lease_T06),
        TEST(workers_go_on_after_an_outage_longer_than_the_block_time_N01),
        TEST(a_flood_of_no_scripts_is_not_seen_by_anybody_N05),
        TEST(a_kill_loop_loses_nothing_L02),
    };
    int failed;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    server = redis_server_start(NULL);
    failed = cmocka_run_group_tests_name("worker", tests, NULL, NULL);
    redis_server_stop(server);
    return failed;
}
