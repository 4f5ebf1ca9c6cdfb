/*
 * Delayed jobs with real workers: none is lost and none starts early, whoever dies.
 *
 *     WEIR_TIME_JOBS=10000 integration_test_time
 */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define JOBS_MAX 100000

/* Of each job by its number: when it may start and when it did, by the machine's clock.
 */
static struct shared {
    _Atomic int64_t due_us[JOBS_MAX], started_us[JOBS_MAX];
    _Atomic int runs[JOBS_MAX];
    _Atomic int64_t done;
} * shared;

static int64_t
wall_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static enum weir_outcome
note_start(struct weir_delivery *d, void *context)
{
    int64_t now = wall_us();
    size_t len;
    long n = strtol(weir_delivery_payload(d, &len), NULL, 10);

    (void)context;
    if (n >= 0 && n < JOBS_MAX && shared->runs[n]++ == 0) {
        shared->started_us[n] = now;
        shared->done++;
    }
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    assert_int_equal(weir_worker_handle(w, "note", note_start, NULL, NULL), WEIR_OK);
}

static int
time_jobs(int otherwise)
{
    const char *text = getenv("WEIR_TIME_JOBS");
    int n = text ? atoi(text) : otherwise;

    memset(shared, 0, sizeof(*shared));
    return n < JOBS_MAX ? n : JOBS_MAX;
}

/* n jobs, due evenly spread over `span_ms` from `after_ms` from now on. */
static void
put_delayed(int n, int64_t after_ms, int64_t span_ms)
{
    static struct weir_job jobs[1000];
    static struct weir_enqueued out[1000];
    static char payloads[1000][12];

    for (int from = 0; from < n; from += 1000) {
        int count = n - from < 1000 ? n - from : 1000;

        for (int i = 0; i < count; i++) {
            int64_t delay = after_ms + (int64_t)(from + i) * span_ms / n;

            snprintf(payloads[i], sizeof(payloads[0]), "%d", from + i);
            jobs[i] = (struct weir_job){WEIR_JOB_INIT,
                                        .queue = "q",
                                        .type = "note",
                                        .payload = payloads[i],
                                        .payload_len = strlen(payloads[i]) + 1,
                                        .max_deliveries = WEIR_NONE,
                                        .delay_ms = delay};
            /* Read before the call: the server counts from a later moment. */
            shared->due_us[from + i] = wall_us() + delay * 1000;
        }
        assert_int_equal(
            weir_job_enqueue_many(rig.client, jobs, (size_t)count, out, NULL), WEIR_OK);
    }
}

static void
none_started_early(int n)
{
    for (int i = 0; i < n; i++) {
        if (shared->runs[i] == 0)
            fail_msg("job %d never ran", i);
        if (shared->started_us[i] < shared->due_us[i])
            fail_msg("job %d started %lld us early", i,
                     (long long)(shared->due_us[i] - shared->started_us[i]));
    }
}

static void
jobs_become_due_while_workers_die_and_every_one_runs_T05(void **state)
{
    int n = time_jobs(3000), span = n >= 10000 ? 5000 : 2000;
    pid_t workers[4];

    (void)state;
    put_delayed(n, 200, span);
    for (int i = 0; i < 4; i++)
        workers[i] = rig_start();
    for (int kills = 0; kills < span / 200; kills++) {
        int victim = kills % 4;

        poll(NULL, 0, 200);
        kill(workers[victim], SIGKILL);
        rig_end(workers[victim], 0);
        workers[victim] = rig_start();
    }
    AWAIT(audit_of(rig.client, "q").done == n);
    none_started_early(n);
}

static void
a_hundred_delayed_jobs_start_in_their_order_and_none_early_T01(void **state)
{
    int n = 100;

    (void)state;
    time_jobs(0);
    rig_start_with((struct weir_worker_options){.concurrency = 1});
    put_delayed(n, 100, 1000);
    AWAIT(audit_of(rig.client, "q").done == n);
    none_started_early(n);
    for (int i = 1; i < n; i++)
        assert_true(shared->started_us[i] >= shared->started_us[i - 1]);
}

/* The lock of the dead one stands still; another takes it over. */
static void
delayed_jobs_go_on_within_three_seconds_when_the_leader_dies_T01(void **state)
{
    int n = 40;
    int64_t killed_us, longest = 0;
    pid_t leader, service;

    (void)state;
    time_jobs(0);
    leader = rig_start();
    rig_enqueue(JOB(.delay_ms = 1, .payload = "0", .payload_len = 2), "first", "note");
    AWAIT(rig_is("first", "done")); /* so it leads */
    time_jobs(0);
    rig_start();
    put_delayed(n, 500, 4000);
    poll(NULL, 0, 1000);
    service = worker_child(leader, "weir-service");
    killed_us = wall_us();
    kill(leader, SIGSTOP); /* so that nobody starts it again */
    kill(service, SIGKILL);
    AWAIT(shared->done >= n);
    kill(leader, SIGCONT);
    none_started_early(n);
    for (int i = 0; i < n; i++) {
        int64_t late = shared->started_us[i] - shared->due_us[i];

        if (shared->due_us[i] > killed_us && late > longest)
            longest = late;
    }
    print_message("longest lateness after the death: %lld ms\n",
                  (long long)longest / 1000);
    assert_in_range(longest, 0, 4000000); /* three seconds, and a busy machine */
}

/* The offer that stands before the worker's wait is older than the job by then. */
static void
a_job_that_comes_after_a_long_wait_is_delivered_once_T06(void **state)
{
    struct weir_job_numbers n;

    (void)state;
    time_jobs(0);
    rig_start_with((struct weir_worker_options){.lease_ms = 15000});
    rig_enqueue(JOB(.delay_ms = 2600, .payload = "0", .payload_len = 2), "late", "note");
    AWAIT(rig_is("late", "done"));
    n = rig_numbers("late");
    assert_int_equal(n.deliveries, 1);
    assert_int_equal(n.interrupted, 0);
}

static void
all_due_at_one_moment_are_promoted_without_a_pause_T01(void **state)
{
    int n = time_jobs(10000);
    int64_t due, promoted;

    (void)state;
    put_delayed(n, 1500, 1);
    due = shared->due_us[n - 1];
    rig_start();
    AWAIT(audit_of(rig.client, "q").delayed == 0);
    promoted = wall_us();
    AWAIT(audit_of(rig.client, "q").done == n);
    none_started_early(n);
    print_message("%d jobs promoted %lld ms after they were due\n", n,
                  (long long)(promoted - due) / 1000);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(jobs_become_due_while_workers_die_and_every_one_runs_T05),
        TEST(a_hundred_delayed_jobs_start_in_their_order_and_none_early_T01),
        TEST(delayed_jobs_go_on_within_three_seconds_when_the_leader_dies_T01),
        TEST(a_job_that_comes_after_a_long_wait_is_delivered_once_T06),
        TEST(all_due_at_one_moment_are_promoted_without_a_pause_T01),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("time", tests, handlers);
}
