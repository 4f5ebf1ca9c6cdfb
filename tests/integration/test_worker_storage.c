/* What a worker leaves in Redis, and what it does when Redis has lost all. */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESULT_BYTES 10240
#define MARGIN_BYTES (1024 * 1024)
#define BATCH 500

static struct shared {
    _Atomic int started, release, runs;
} * shared;

static enum weir_outcome
large(struct weir_delivery *d, void *context)
{
    static char result[RESULT_BYTES];

    (void)context;
    shared->runs++;
    return weir_delivery_set_result(d, result, sizeof(result)) == WEIR_OK ? WEIR_DONE
                                                                          : WEIR_RETRY;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->started++;
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    shared->runs++;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    if (weir_worker_handle(w, "large", large, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "patient", patient, NULL, NULL) != WEIR_OK)
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

/* ---- memory ---- */

static int64_t
used_memory(void)
{
    const char *found = strstr(redis_do(rig.server, "INFO memory"), "used_memory:");

    return strtoll(found + strlen("used_memory:"), NULL, 10);
}

static void
run_large(int n)
{
    int before = shared->runs;

    for (int i = 0; i < n; i += BATCH) {
        static struct weir_job jobs[BATCH];
        static struct weir_enqueued out[BATCH];

        for (int j = 0; j < BATCH; j++)
            jobs[j] = (struct weir_job){WEIR_JOB_INIT, .queue = "q", .type = "large"};
        assert_int_equal(weir_job_enqueue_many(rig.client, jobs, BATCH, out, NULL),
                         WEIR_OK);
    }
    AWAIT(shared->runs == before + n);
    AWAIT(audit_of(rig.client, "q").processing == 0);
}

/* WEIR_M01_JOBS=100000 is its full length. */
static void
results_that_are_not_kept_leave_nothing_in_redis_M01(void **state)
{
    const char *given = getenv("WEIR_M01_JOBS");
    int jobs = given ? atoi(given) / BATCH * BATCH : 4 * BATCH;
    int64_t before, after;
    pid_t pid;

    (void)state;
    pid = rig_start_with((struct weir_worker_options){.concurrency = 4});
    run_large(BATCH); /* scripts, tables, buffers are there */
    before = used_memory();
    run_large(jobs);
    for (int i = 0; i < 20; i++) { /* waiters are told, and nothing is kept for them */
        struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "large"};
        struct weir_job_view *v;
        size_t len;

        assert_int_equal(weir_call(rig.client, &job, 20000, &v, NULL), WEIR_OK);
        (void)weir_job_view_result(v, &len);
        assert_int_equal(len, RESULT_BYTES);
        weir_job_view_free(v);
    }
    after = used_memory();
    print_message("%d jobs with results of %d bytes: %+lld bytes\n", jobs, RESULT_BYTES,
                  (long long)(after - before));
    assert_true(after - before < MARGIN_BYTES && before - after < MARGIN_BYTES);
    assert_int_equal(rig_end(pid, SIGTERM), 0);
}

/* ---- loss ---- */

static void
everything_is_lost_under_an_idle_worker_and_the_next_job_runs_L20(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(), "a", "large");
    AWAIT(rig_is("a", "done"));
    for (int i = 0; i < 3; i++) {
        redis_do(rig.server, "FLUSHALL");
        rig_enqueue(JOB(), "b", "large");
        AWAIT(rig_is("b", "done"));
        assert_int_equal(audit_of(rig.client, "q").enqueued, 1);
    }
}

static void
everything_is_lost_while_jobs_run_and_their_ends_harm_nobody_L20(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(), "a", "patient");
    rig_enqueue(JOB(), "b", "patient");
    AWAIT(shared->started == 2);
    redis_do(rig.server, "FLUSHALL");
    rig_enqueue(JOB(), "a", "large"); /* the same id again, another job */
    AWAIT(shared->runs >= 2);         /* their leases are nobody's: told to stop */
    AWAIT(rig_is("a", "done"));
    assert_true(rig_is("b", "gone"));
    rig_enqueue(JOB(), "c", "large");
    AWAIT(rig_is("c", "done"));
    assert_int_equal(audit_of(rig.client, "q").done, 2);
}

static void
a_producer_goes_on_after_everything_was_lost_L20(void **state)
{
    struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "large"};

    (void)state;
    rig_start();
    for (int i = 0; i < 20; i++) {
        if (i % 5 == 4) {
            redis_do(rig.server, "FLUSHALL");
        }
        assert_int_equal(weir_job_enqueue(rig.client, &job, NULL, NULL), WEIR_OK);
    }
    AWAIT(audit_of(rig.client, "q").ready == 0 &&
          audit_of(rig.client, "q").processing == 0);
    assert_int_equal(audit_of(rig.client, "q").enqueued, 1);
    assert_int_equal(audit_of(rig.client, "q").done, 1);
}

/* By hand, or by a server that lost its last seconds. */
static void
a_group_that_is_gone_is_made_again_under_a_running_worker_L20(void **state)
{
    (void)state;
    if (!engine_is_stream())
        skip(); /* a list has none */
    rig_start();
    rig_enqueue(JOB(), "a", "large");
    AWAIT(rig_is("a", "done"));
    redis_do(rig.server, "XGROUP DESTROY weir:{q}:stream workers");
    for (int i = 0; i < 5; i++) {
        char id[8];

        snprintf(id, sizeof(id), "n%d", i);
        rig_enqueue(JOB(), id, "large");
        AWAIT(rig_is(id, "done"));
    }
    assert_non_null(
        strstr(redis_do(rig.server, "XINFO GROUPS weir:{q}:stream"), "workers"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(results_that_are_not_kept_leave_nothing_in_redis_M01),
        TEST(everything_is_lost_under_an_idle_worker_and_the_next_job_runs_L20),
        TEST(everything_is_lost_while_jobs_run_and_their_ends_harm_nobody_L20),
        TEST(a_producer_goes_on_after_everything_was_lost_L20),
        TEST(a_group_that_is_gone_is_made_again_under_a_running_worker_L20),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_storage", tests, handlers);
}
