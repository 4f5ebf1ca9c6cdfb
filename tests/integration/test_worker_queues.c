/* One queue is broken, denied, or has no answers: what stands beside it is served as
 * ever. */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/proxy.h"

static struct shared {
    _Atomic int started, release;
} * shared;

static enum weir_outcome
echo(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
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
    if (weir_worker_handle(w, "echo", echo, NULL, NULL) != WEIR_OK ||
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
    redis_do(rig.server, "ACL SETUSER default allkeys");
    return rig_teardown(state);
}

/* What was broken by hand is not to be audited. */
static void
forget_other(void)
{
    redis_do(
        rig.server,
        "EVAL return{redis.call('DEL',unpack(redis.call('KEYS','weir:{other}:*')))} 0");
    redis_do(rig.server, "SREM weir:queues other");
}

static void
a_broken_queue_does_not_slow_the_one_beside_it(void **state)
{
    int64_t start;

    (void)state;
    redis_do(rig.server, "SET weir:{other}:%s x",
             engine_is_stream() ? "stream" : "ready");
    redis_do(rig.server, "HSET weir:{other}:config engine %s",
             engine_is_stream() ? "stream" : "list");
    rig_start();
    rig_enqueue(JOB(), "first", "echo");
    AWAIT(rig_is("first", "done"));
    start = wr_clock_ms();
    for (int i = 0; i < 20; i++) {
        char id[16];

        snprintf(id, sizeof(id), "j%d", i);
        rig_enqueue(JOB(), id, "echo");
        AWAIT(rig_is(id, "done"));
    }
    assert_true(wr_clock_ms() - start <
                5000); /* waiting for its backoff would take 10 s */
    forget_other();
}

/* The leases of the one cannot be renewed: its job is stopped. Nothing else is. */
static void
a_queue_that_breaks_costs_its_own_jobs_alone(void **state)
{
    int64_t start = wr_clock_ms();
    pid_t pid = rig_start_with((struct weir_worker_options){
        .lease_ms = 2000, .concurrency = 3, .grace_ms = 100});
    const char *leases = engine_is_stream() ? "stream" : "processing";

    (void)state;
    rig_enqueue(JOB(.queue = "other"), "k", "patient");
    AWAIT(shared->started == 1);
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 2);
    redis_do(rig.server, "DEL weir:{other}:%s", leases);
    redis_do(rig.server, "SET weir:{other}:%s x", leases);
    AWAIT(wr_clock_ms() - start > 6000); /* three leases */
    rig_enqueue(JOB(), "next", "echo");
    AWAIT(rig_is("next", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
    shared->release = 1;
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
    /* Or the end waits for an answer that is not taken. */
    redis_do(rig.server, "DEL weir:{other}:%s", leases);
    rig_end(pid, SIGTERM);
    forget_other();
}

static long
connections(void)
{
    static const char name[] = "total_connections_received:";
    const char *at = strstr(redis_do(rig.server, "INFO stats"), name);

    assert_non_null(at);
    return atol(at + strlen(name));
}

/* Denied is what all queues may be, too: with this one the others go on, also while
 * nothing else is held that could be renewed, and the wait for them stands. */
static void
a_queue_that_is_denied_costs_its_own_jobs_alone(void **state)
{
    pid_t pid = rig_start_with((struct weir_worker_options){.concurrency = 4});
    int64_t denied;
    long opened;

    (void)state;
    rig_enqueue(JOB(.queue = "other"), "k", "patient");
    AWAIT(shared->started == 1);
    redis_do(rig.server, "ACL SETUSER default resetkeys ~weir:[a-z]* ~weir:{q}:*");
    denied = wr_clock_ms();
    AWAIT(wr_clock_ms() - denied > 1000); /* two renewals */
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 2);
    opened = connections();
    AWAIT(wr_clock_ms() - denied > 3500);
    assert_in_range(connections() - opened, 0, 20);
    rig_enqueue(JOB(), "next", "echo");
    AWAIT(rig_is("next", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
    redis_do(rig.server, "ACL SETUSER default allkeys");
    shared->release = 1;
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
    AWAIT(strcmp(job_state(rig.client, "other", "k"), "done") == 0);
    rig_end(pid, SIGTERM);
}

/* Whichever of the two comes first: calls about one have no answer, then about the other.
 */
static void
a_queue_without_answers_costs_its_own_jobs_alone(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(rig.server));
    int64_t start;
    pid_t pid;

    (void)state;
    rig.url = proxy_url(proxy);
    pid = rig_start();
    rig_enqueue(JOB(.queue = "other"), "k", "patient");
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 2);
    proxy_mute_about(proxy, "{other}");
    start = wr_clock_ms();
    AWAIT(wr_clock_ms() - start > 2500);
    assert_int_equal(rig_numbers("j").deliveries, 1);
    proxy_forward(proxy);
    AWAIT(shared->started == 3); /* k once more */
    proxy_mute_about(proxy, "{q}");
    start = wr_clock_ms();
    AWAIT(wr_clock_ms() - start > 2500);
    proxy_forward(proxy);
    AWAIT(shared->started >= 4); /* j once more */
    shared->release = 1;
    AWAIT(rig_is("j", "done") &&
          strcmp(job_state(rig.client, "other", "k"), "done") == 0);
    assert_int_equal(shared->started, 4);
    rig_end(pid, SIGTERM);
    proxy_stop(proxy);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_broken_queue_does_not_slow_the_one_beside_it),
        TEST(a_queue_that_breaks_costs_its_own_jobs_alone),
        TEST(a_queue_that_is_denied_costs_its_own_jobs_alone),
        TEST(a_queue_without_answers_costs_its_own_jobs_alone),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_queues", tests, handlers);
}
