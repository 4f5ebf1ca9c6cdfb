/* The lease thread of a worker child: what is stopped in time, whatever it waits for. */
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "support/redis_server.h"
#include "support/test_program.h"
#include "worker/worker_internal.h"

#define LEASE_MS 10000 /* a call may take 2 s, the margin is 1 s */

static char url[200], name_space[] = "weir", engine[] = "list";
static struct redis_server *server;
static struct weir_worker worker;
static struct wr_slots *page;
static struct wr_runner runner;
static struct wr_server *own_server;
static struct wr_store *store;
static struct wr_lease_thread *lease;
static _Atomic int64_t tick;

/* As a job that runs: its lease counts as lost in so many ms. */
static struct wr_run *
hold(int64_t ms)
{
    struct wr_run *run = &runner.runs[0];

    assert_int_equal(wr_store_queue(store, "q", &run->queue, NULL), WEIR_OK);
    run->d.id = "j";
    snprintf(run->d.state.token, sizeof(run->d.state.token), "1");
    atomic_store(&run->fence_ms, wr_clock_ms() + ms);
    pthread_mutex_lock(&runner.mu);
    atomic_store(&run->phase, WR_RUN_RUNNING);
    run->in_use = true;
    pthread_mutex_unlock(&runner.mu);
    return run;
}

/* How late it is stopped, ms. */
static int64_t
await_fence(struct wr_run *run)
{
    while (atomic_load(&run->d.stop) != WR_STOP_LOST)
        poll(NULL, 0, 1);
    return wr_clock_ms() - atomic_load(&run->fence_ms);
}

static void
let_go(struct wr_run *run)
{
    pthread_mutex_lock(&runner.mu);
    run->in_use = false;
    pthread_mutex_unlock(&runner.mu);
}

/* It finds a job that Redis does not know. What is lent before it is over would be waited
 * for without a look at a job that begins meanwhile; no worker begins one so near its
 * end. */
static void
await_first_renewal(void)
{
    struct wr_run *run = hold(60000);

    wr_lease_hint(lease);
    (void)await_fence(run);
    let_go(run);
    atomic_store(&run->d.stop, WR_STOP_NONE);
}

static int
setup(void **state)
{
    (void)state;
    snprintf(url, sizeof(url), "%s", redis_server_url(server));
    worker = (struct weir_worker){
        .url = url, .ns = name_space, .engine = engine, .lease_ms = LEASE_MS};
    atomic_store(&tick, INT64_MAX / 2);
    page = wr_slots_new(1);
    assert_non_null(page);
    assert_int_equal(wr_runner_start(&runner, 1, page, NULL), WEIR_OK);
    assert_int_equal(
        wr_worker_connect(&worker, "test", 1, 5000, &own_server, &store, NULL), WEIR_OK);
    assert_int_equal(wr_lease_start(&worker, &runner, "w", &tick, &lease, NULL), WEIR_OK);
    await_first_renewal();
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    wr_lease_stop(lease);
    wr_lease_free(lease);
    wr_store_free(store);
    wr_server_free(own_server);
    wr_runner_stop(&runner);
    wr_slots_free(page);
    return 0;
}

static void
a_renewal_that_waits_for_a_piece_of_output_still_fences_L08(void **state)
{
    struct wr_run *run;
    int64_t until, late;

    (void)state;
    assert_true(wr_lease_lend(lease, &until));
    run = hold(200);
    wr_lease_hint(lease);
    late = await_fence(run);
    print_message("%lld ms late\n", (long long)late);
    assert_true(late < wr_lease_margin_ms(LEASE_MS));
    assert_true(wr_clock_ms() < until); /* the piece is still under way */
    let_go(run);
    wr_lease_give_back(lease);
}

static void
a_renewal_without_an_answer_still_fences_before_the_lease_ends_L08(void **state)
{
    struct wr_run *run;
    int64_t until, late;

    (void)state;
    assert_true(wr_lease_lend(lease, &until)); /* the first renewal is over */
    redis_server_pause(server);
    run = hold(200);
    wr_lease_give_back(lease);
    wr_lease_hint(lease);
    late = await_fence(run);
    redis_server_resume(server);
    print_message("%lld ms late\n", (long long)late);
    assert_true(late < wr_lease_margin_ms(LEASE_MS));
    let_go(run);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_renewal_that_waits_for_a_piece_of_output_still_fences_L08),
        TEST(a_renewal_without_an_answer_still_fences_before_the_lease_ends_L08),
    };
    int failed;

    server = redis_server_start(NULL);
    failed = RUN_TESTS("lease", tests, NULL, NULL);
    redis_server_stop(server);
    return failed;
}
