/* Workers as real processes: C handlers, crashes, signals, leases. */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

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
    int64_t end = wr_clock_ms() + 3200; /* two leases and more */

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
    rig_start();
    rig_enqueue(JOB(.payload = bytes, .payload_len = 256), "j", "echo");
    assert_int_equal(weir_result_wait(rig.client, "q", "j", 20000, &v, NULL), WEIR_OK);
    assert_memory_equal(weir_job_view_result(v, &len), bytes, 256);
    assert_int_equal(len, 256);
    weir_job_view_free(v);
    assert_int_equal(shared->runs, 1);
}

static void
retry_n_means_n_runs_after_the_first_R01(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(.max_retry = WEIR_NONE), "r0", "fail");
    AWAIT(rig_is("r0", "dead"));
    assert_int_equal(shared->runs, 1);
    rig_enqueue(JOB(.max_retry = 3), "r3", "fail");
    AWAIT(rig_is("r3", "dead"));
    assert_int_equal(shared->runs, 5);
    assert_int_equal(rig_numbers("r3").attempts, 4);
}

static void
permanent_failure_and_snooze_are_obeyed_R08(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(), "n", "never");
    AWAIT(rig_is("n", "dead"));
    assert_int_equal(shared->runs, 1);
    rig_enqueue(JOB(.max_retry = WEIR_NONE), "l", "later");
    AWAIT(rig_is("l", "done"));
    assert_int_equal(rig_numbers("l").attempts, 1); /* the snooze used none up */
    assert_int_equal(rig_numbers("l").snoozes, 1);
}

static void
a_job_whose_child_is_killed_runs_again_at_once_and_keeps_its_attempts_L01_L15(
    void **state)
{
    pid_t pid = rig_start();
    int64_t killed;

    (void)state;
    rig_enqueue(JOB(.max_retry = WEIR_NONE), "j", "patient");
    AWAIT(shared->started == 1);
    kill(worker_child(pid, "weir-child"), SIGKILL);
    killed = wr_clock_ms();
    AWAIT(shared->started == 2);
    assert_true(wr_clock_ms() - killed < 5000); /* promised: 1 s */
    assert_int_equal(rig_numbers("j").lost, 1);
    assert_int_equal(rig_numbers("j").deliveries, 2);
    assert_int_equal(rig_numbers("j").attempts, 0);
    shared->release = 1;
    AWAIT(rig_is("j", "done"));
}

static void
a_whole_lost_worker_is_noticed_when_its_lease_ends_L01_L13(void **state)
{
    pid_t first = rig_start(), second;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    kill(first, SIGKILL);
    rig_end(first, 0);
    second = rig_start();
    AWAIT(shared->started == 2);
    assert_true(process_lives(second));
    shared->release = 1;
    AWAIT(rig_is("j", "done"));
}

static void
when_the_supervisor_is_killed_its_children_end_F2(void **state)
{
    pid_t pid = rig_start(), child = worker_child(pid, "weir-child");
    pid_t service = worker_child(pid, "weir-service");
    int64_t start;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    kill(pid, SIGKILL);
    start = wr_clock_ms();
    rig_end(pid, 0);
    AWAIT(!process_lives(child) && !process_lives(service));
    assert_true(wr_clock_ms() - start < 10000); /* promised: 2 s */
    AWAIT(rig_is("j", "ready"));                /* handed back, not lost */
    assert_int_equal(rig_numbers("j").lost, 0);
}

static void
a_poison_pill_kills_three_children_and_is_dead_and_others_finish_L16(void **state)
{
    char id[16];

    (void)state;
    for (int i = 0; i < 4; i++)
        rig_start();
    rig_enqueue(JOB(), "pill", "pill");
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof(id), "good%d", i);
        rig_enqueue(JOB(), id, "echo");
    }
    AWAIT(rig_is("pill", "dead"));
    assert_int_equal(shared->started, 3);
    assert_int_equal(rig_numbers("pill").lost, 3);
    AWAIT(audit_of(rig.client, "q").done == 100);
    assert_int_equal(audit_of(rig.client, "q").dead, 1);
}

static void
a_circulating_pill_can_be_cancelled_L18(void **state)
{
    int started;

    (void)state;
    rig_start();
    rig_enqueue(JOB(.max_deliveries = WEIR_NONE), "pill", "pill");
    AWAIT(shared->started >= 2);
    AWAIT(weir_job_cancel(rig.client, "q", "pill", NULL, NULL) == WEIR_OK);
    AWAIT(rig_is("pill", "gone"));
    started = shared->started;
    rig_enqueue(JOB(), "after", "echo");
    AWAIT(rig_is("after", "done"));
    assert_int_equal(shared->started, started);
}

static void
term_lets_running_jobs_finish_S01(void **state)
{
    pid_t pid = rig_start();

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    rig_enqueue(JOB(), "k", "patient");
    rig_enqueue(JOB(), "waits", "patient");
    AWAIT(shared->started == 2);
    kill(pid, SIGTERM);
    poll(NULL, 0, 100); /* a moment in which it could do wrong */
    assert_true(rig_is("j", "processing"));
    shared->release = 1;
    assert_int_equal(rig_end(pid, 0), 0);
    assert_true(rig_is("j", "done") && rig_is("k", "done"));
    assert_true(rig_is("waits", "ready"));
    assert_int_equal(audit_of(rig.client, "q").processing, 0);
}

static bool
is_j(const struct weir_job_view *view, void *context)
{
    *(bool *)context = strcmp(weir_job_view_id(view), "j") == 0;
    return false;
}

static void
a_job_that_outlives_the_grace_time_goes_back_to_the_front_uncharged_S02(void **state)
{
    bool first = false;
    pid_t pid = rig_start_with(
        (struct weir_worker_options){.grace_ms = 300, .concurrency = 1});

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    rig_enqueue(JOB(), "behind", "echo");
    assert_int_equal(rig_end(pid, SIGTERM), 0);
    assert_true(rig_is("j", "ready"));
    assert_int_equal(rig_numbers("j").attempts, 0);
    assert_int_equal(rig_numbers("j").lost, 0);
    assert_int_equal(rig_numbers("j").interrupted, 1);
    assert_int_equal(weir_job_list(rig.client, "q", "ready", 1, is_j, &first, NULL),
                     WEIR_OK);
    assert_true(first);
}

static void
leases_are_renewed_while_a_worker_drains_S03(void **state)
{
    pid_t pid = rig_start_with(
        (struct weir_worker_options){.lease_ms = 2000, .grace_ms = 20000});
    int64_t start = wr_clock_ms();

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    rig_start();
    kill(pid, SIGTERM);
    AWAIT(wr_clock_ms() - start > 5000); /* two leases and a half */
    assert_int_equal(shared->started, 1);
    shared->release = 1;
    rig_end(pid, 0);
    assert_true(rig_is("j", "done"));
}

static void
a_cpu_bound_handler_keeps_its_lease_L07(void **state)
{
    (void)state;
    rig_start_with((struct weir_worker_options){.lease_ms = 1500});
    rig_start_with((struct weir_worker_options){.lease_ms = 1500});
    rig_enqueue(JOB(), "j", "spin");
    AWAIT(rig_is("j", "done"));
    assert_int_equal(shared->started, 1);
}

static void
a_long_job_is_not_delivered_twice_L06_L12(void **state)
{
    pid_t once = rig_start_with(
        (struct weir_worker_options){.lease_ms = 2000, .once = true});
    int64_t start = wr_clock_ms();

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    rig_start();
    AWAIT(wr_clock_ms() - start > 5000);
    shared->release = 1;
    AWAIT(rig_is("j", "done"));
    assert_int_equal(shared->started, 1);
    assert_int_equal(rig_end(once, 0), 0);
}

static void
a_frozen_worker_cannot_close_the_run_of_another_L03(void **state)
{
    pid_t first = rig_start_with((struct weir_worker_options){.lease_ms = 1000});
    pid_t child = worker_child(first, "weir-child"),
          service = worker_child(first, "weir-service");

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    kill(child, SIGSTOP);
    kill(service, SIGSTOP);
    rig_start();
    AWAIT(shared->started == 2);
    assert_int_equal(rig_numbers("j").deliveries, 2);
    kill(service, SIGCONT);
    kill(child, SIGCONT); /* its handler is stopped: the lease is lost */
    AWAIT(audit_of(rig.client, "q").stale >= 1 || rig_numbers("j").deliveries == 2);
    poll(NULL, 0, 1500);
    assert_true(rig_is("j", "processing"));
    shared->release = 1;
    AWAIT(rig_is("j", "done"));
    assert_int_equal(audit_of(rig.client, "q").done, 1);
}

static void
a_running_job_is_cancelled_within_two_seconds_X01(void **state)
{
    enum weir_cancel_result how;
    int64_t start;

    (void)state;
    rig_start_with((struct weir_worker_options){.lease_ms = 60000});
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    start = wr_clock_ms();
    assert_int_equal(weir_job_cancel(rig.client, "q", "j", &how, NULL), WEIR_OK);
    assert_int_equal(how, WEIR_CANCEL_FLAGGED);
    AWAIT(rig_is("j", "gone"));
    assert_true(wr_clock_ms() - start <
                10000); /* promised: 2 s; a renewal would take 20 */
    assert_int_equal(audit_of(rig.client, "q").cancelled_processing, 1);
}

static void
a_handler_that_ignores_its_timeout_costs_its_child_and_nothing_else(void **state)
{
    pid_t pid = rig_start_with((struct weir_worker_options){.grace_ms = 1000});
    pid_t child = worker_child(pid, "weir-child");

    (void)state;
    rig_enqueue(JOB(.timeout_ms = 300, .kill_after_ms = 300, .max_retry = WEIR_NONE),
                "hung", "deaf");
    AWAIT(rig_is("hung", "dead"));
    AWAIT(!process_lives(child));
    rig_enqueue(JOB(), "next", "echo");
    AWAIT(rig_is("next", "done"));
    assert_int_equal(rig_numbers("hung").lost, 0);
}

static void
a_delayed_job_runs_once_also_with_a_short_lease_T06(void **state)
{
    (void)state;
    rig_start_with((struct weir_worker_options){.lease_ms = 1000});
    rig_enqueue(JOB(.delay_ms = 2500), "j", "echo");
    AWAIT(rig_is("j", "done"));
    assert_int_equal(shared->runs, 1);
    assert_true(rig_numbers("j").started_at >= rig_numbers("j").enqueued_at + 2500);
}

static void
workers_go_on_after_an_outage_longer_than_the_block_time_N01(void **state)
{
    int64_t start = wr_clock_ms();

    (void)state;
    rig_start();
    rig_enqueue(JOB(), "before", "echo");
    AWAIT(rig_is("before", "done"));
    redis_server_pause(rig.server);
    AWAIT(wr_clock_ms() - start > 11000); /* twice the block time */
    redis_server_resume(rig.server);
    start = wr_clock_ms();
    rig_enqueue(JOB(), "after", "echo");
    AWAIT(rig_is("after", "done"));
    assert_true(wr_clock_ms() - start < 25000); /* promised: 5 s */
}

static void
a_flood_of_no_scripts_is_not_seen_by_anybody_N05(void **state)
{
    struct weir_job jobs[100];
    struct weir_enqueued out[100];
    int64_t flush = 0;

    (void)state;
    rig_start();
    for (int i = 0; i < 100; i++)
        jobs[i] = (struct weir_job){WEIR_JOB_INIT, .queue = "q", .type = "echo"};
    for (int i = 0; i < 50; i++) {
        assert_int_equal(weir_job_enqueue_many(rig.client, jobs, 100, out, NULL),
                         WEIR_OK);
        redis_do(rig.server, "SCRIPT FLUSH");
    }
    AWAIT((wr_clock_ms() - flush < 10 ||
           (flush = wr_clock_ms(), redis_do(rig.server, "SCRIPT FLUSH"))) &&
          audit_of(rig.client, "q").done == 5000);
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
        assert_int_equal(weir_job_enqueue_many(rig.client, jobs, 100, out, NULL),
                         WEIR_OK);
    }
    for (int i = 0; i < 40; i++) {
        pid_t pid = rig_start();

        poll(NULL, 0, 5 + rand_r(&seed) % 60);
        kill(pid, SIGKILL);
        rig_end(pid, 0);
        struct weir_audit a = audit_of(rig.client, "q");
        assert_true(weir_audit_is_good(&a));
    }
    rig_start();
    AWAIT(audit_of(rig.client, "q").done == 10000);
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

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker", tests, handlers);
}
