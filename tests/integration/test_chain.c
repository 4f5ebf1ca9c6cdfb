/*
 * Chains and follow-up jobs: enqueued exactly once when their job succeeds, whoever dies
 * in between.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "integration/worker_rig.h"
#include "model/follow.h"
#include "redis/server.h"
#include "store/store.h"
#include "support/proxy.h"

#define JOBS_MAX 2000

static struct shared {
    _Atomic int runs, fail_next, asked, release;
    _Atomic int firsts[JOBS_MAX], seconds[JOBS_MAX];
} * shared;

/* Its result is the payload and its type. */
static enum weir_outcome
append(struct weir_delivery *d, void *context)
{
    size_t len;
    const char *payload = weir_delivery_payload(d, &len);
    char text[200];
    int n = snprintf(text, sizeof(text), "%.*s %s", (int)len, payload,
                     weir_delivery_type(d));

    (void)context;
    shared->runs++;
    if (shared->fail_next > 0) {
        shared->fail_next--;
        weir_delivery_set_delay(d, 10);
        return WEIR_RETRY;
    }
    return weir_delivery_set_result(d, text, (size_t)n) == WEIR_OK ? WEIR_DONE
                                                                   : WEIR_PERMANENT;
}

static enum weir_outcome
never(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    return WEIR_PERMANENT;
}

/* Asks for two more, in two queues, one of them later. */
static enum weir_outcome
fan_out(struct weir_delivery *d, void *context)
{
    struct weir_job one = {
        WEIR_JOB_INIT,  .queue = "other", .type = "append",       .id = "one",
        .payload = "1", .payload_len = 1, .keep_result_ms = 60000};
    struct weir_job two = {WEIR_JOB_INIT,          .queue = "q",     .type = "append",
                           .payload = "2",         .payload_len = 1, .delay_ms = 200,
                           .keep_result_ms = 60000};
    struct weir_job bad = {WEIR_JOB_INIT, .queue = "q{", .type = "append"};
    struct weir_error err = {0};

    (void)context;
    if (weir_delivery_then(d, &bad, &err) != WEIR_E_ARG ||
        weir_delivery_then(d, &one, &err) != WEIR_OK ||
        weir_delivery_then(d, &two, &err) != WEIR_OK)
        return WEIR_PERMANENT;
    if (weir_delivery_attempt(d) ==
        1) { /* what a failed attempt asked for is forgotten */
        weir_delivery_set_delay(d, 10);
        return WEIR_RETRY;
    }
    return WEIR_DONE;
}

/* Asks for as many as it gets, in two queues. */
static enum weir_outcome
many(struct weir_delivery *d, void *context)
{
    struct weir_error err = {0};

    (void)context;
    for (int i = 0;; i++) {
        struct weir_job job = {WEIR_JOB_INIT, .queue = i % 2 ? "q" : "other",
                               .type = "append"};

        if (weir_delivery_then(d, &job, &err) != WEIR_OK)
            break;
        shared->asked++;
    }
    return err.code == WEIR_E_TOO_BIG ? WEIR_DONE : WEIR_PERMANENT;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->runs++;
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 1);
    return shared->release ? WEIR_DONE : WEIR_RETRY;
}

static enum weir_outcome
count_first(struct weir_delivery *d, void *context)
{
    int i = atoi(weir_delivery_id(d));

    (void)context;
    shared->firsts[i]++;
    poll(NULL, 0, i % 4);
    return weir_delivery_set_result(d, weir_delivery_id(d),
                                    strlen(weir_delivery_id(d))) == WEIR_OK
               ? WEIR_DONE
               : WEIR_RETRY;
}

static enum weir_outcome
count_second(struct weir_delivery *d, void *context)
{
    size_t len;
    int i = atoi(weir_delivery_payload(d, &len));

    (void)context;
    if (weir_delivery_number(d) == 1)
        shared->seconds[i]++;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    static const struct {
        const char *type;
        weir_handler_fn fn;
    } rows[] = {{"append", append}, {"upper", append},      {"last", append},
                {"never", never},   {"many", many},         {"patient", patient},
                {"fan", fan_out},   {"first", count_first}, {"second", count_second}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (weir_worker_handle(w, rows[i].type, rows[i].fn, NULL, NULL) != WEIR_OK)
            abort();
    }
}

static int
setup(void **state)
{
    int rc = rig_setup(state);
    bool made;

    memset(shared, 0, sizeof(*shared));
    redis_do(rig.server, "CONFIG SET maxmemory 0");
    assert_int_equal(weir_queue_create(rig.client, "other", NULL, NULL, &made, NULL),
                     WEIR_OK);
    return rc;
}

/* ---- tests ---- */

static void
each_step_of_a_chain_gets_the_result_of_the_one_before(void **state)
{
    static const struct weir_then then[] = {{"upper", "other"}, {"last", NULL}};
    struct weir_audit a;
    struct weir_job_view *v;
    struct weir_error err = {0};
    size_t len;
    char id[64];

    (void)state;
    shared->fail_next = 1;
    rig_enqueue(JOB(.payload = "x", .payload_len = 1, .then = then, .then_count = 2), "a",
                "append");
    rig_start();
    AWAIT(shared->runs == 4); /* one of them failed */
    AWAIT(audit_of(rig.client, "q").done == 2);
    AWAIT(audit_of(rig.client, "other").done == 1);
    snprintf(id, sizeof(id), "%s", redis_do(rig.server, "HKEYS weir:{q}:results"));
    char *second = strchr(id, ' ');

    assert_non_null(second);
    *second++ = '\0';
    if (weir_result_wait(rig.client, "q", strcmp(id, "a") == 0 ? second : id, 5000, &v,
                         &err) != WEIR_OK)
        fail_msg("%s", err.text);
    assert_string_equal(weir_job_view_result(v, &len), "x append upper last");
    weir_job_view_free(v);
    a = audit_of(rig.client, "other");
    assert_int_equal(a.enqueued, 1);
    assert_string_equal(
        redis_do(rig.server, "EXISTS weir:{q}:outbox weir:{other}:outbox"), "0");
}

static void
a_job_that_fails_has_no_follow_up(void **state)
{
    static const struct weir_then then[] = {{"append", NULL}};

    (void)state;
    rig_start();
    rig_enqueue(JOB(.then = then, .then_count = 1), "a", "never");
    AWAIT(rig_is("a", "dead"));
    assert_int_equal(audit_of(rig.client, "q").enqueued, 1);
}

static void
a_handler_asks_for_jobs_that_come_if_it_succeeds(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(), "a", "fan");
    AWAIT(rig_is("a", "done"));
    AWAIT(audit_of(rig.client, "q").done == 2);
    AWAIT(audit_of(rig.client, "other").done == 1);
    assert_string_equal(job_state(rig.client, "other", "one"), "done");
    assert_int_equal(audit_of(rig.client, "q").enqueued, 2);
    assert_int_equal(audit_of(rig.client, "other").enqueued, 1);
}

static void
a_job_has_a_hundred_follow_up_jobs_its_chain_among_them(void **state)
{
    static const struct weir_then then[] = {{"append", "other"}};

    (void)state;
    rig_start();
    rig_enqueue(JOB(), "a", "many");
    AWAIT(shared->runs == 100);
    assert_int_equal(shared->asked, 100);
    rig_enqueue(JOB(.then = then, .then_count = 1), "b", "many");
    AWAIT(shared->runs == 200);
    assert_int_equal(shared->asked, 199);
    AWAIT(audit_of(rig.client, "q").done == 2 + 50 + 49);
    AWAIT(audit_of(rig.client, "other").done == 50 + 51);
}

/* ---- a worker that died right after its answer ---- */

/* It held the jobs a and b, said that a is done, with a follow-up in the queue other. */
struct dead_worker {
    struct wr_server *server;
    struct wr_store *store;
    struct wr_queue *queue;
    struct wr_batch batch;
    struct wr_buf follow;
    struct wr_answer answer;
};

static void
dead_worker_take(struct dead_worker *w)
{
    struct wr_reserve r = {.worker = "gone", .call = 1, .free = 2, .lease_ms = 2000};
    struct wr_server_options so = {0};
    struct wr_store_options o = {.ns = "weir"};

    *w = (struct dead_worker){0};
    assert_int_equal(wr_url_parse(redis_server_url(rig.server), &so.url, NULL), WEIR_OK);
    assert_int_equal(wr_server_new(&so, &w->server, NULL), WEIR_OK);
    o.server = w->server;
    assert_int_equal(wr_store_new(&o, &w->store, NULL), WEIR_OK);
    assert_int_equal(wr_store_queue(w->store, "q", &w->queue, NULL), WEIR_OK);
    assert_int_equal(wr_store_reserve(w->store, w->queue, &r, &w->batch, NULL), WEIR_OK);
    assert_int_equal(w->batch.n, 2);
}

static void
dead_worker_answer(struct dead_worker *w)
{
    char channel[WR_FOLLOW_CHANNEL_LEN + 1];
    enum wr_answered word;

    wr_follow_channel("q", "a", w->batch.jobs[0].state.token, channel);
    wr_follow_begin(&w->follow, channel);
    wr_follow_write(&w->follow, &(struct wr_follow){.queue = wr_span_str("other"),
                                                    .id = wr_span_str("f"),
                                                    .head = wr_span_str("1 append"),
                                                    .tail = wr_span_str("\nx")});
    w->answer = (struct wr_answer){.id = wr_span_str("a"),
                                   .token = wr_span_str(w->batch.jobs[0].state.token),
                                   .follow = wr_buf_span(&w->follow)};
    assert_int_equal(
        wr_store_ack_then(w->store, w->queue, "gone", &w->answer, 1, &word, NULL),
        WEIR_OK);
    assert_int_equal(word, WR_ANSWERED_OK);
    assert_string_equal(redis_do(rig.server, "HLEN weir:{q}:outbox"), "1");
}

static void
dead_worker_free(struct dead_worker *w)
{
    wr_buf_fini(&w->follow);
    wr_batch_fini(&w->batch);
    wr_store_free(w->store);
    wr_server_free(w->server);
}

/* The scheduler enqueues what lies in the outbox, and another who does it once more
 * changes nothing, even when the job is over by then. */
static void
what_a_dead_worker_left_in_the_outbox_is_enqueued_once(void **state)
{
    struct dead_worker w;

    (void)state;
    rig_enqueue(JOB(), "a", "append");
    rig_enqueue(JOB(), "b", "append");
    dead_worker_take(&w);
    dead_worker_answer(&w);
    rig_start();
    AWAIT(audit_of(rig.client, "other").done == 1);
    AWAIT(strcmp(redis_do(rig.server, "EXISTS weir:{q}:outbox"), "0") == 0);
    assert_int_equal(
        wr_store_relay(w.store, w.queue, w.answer.token, w.answer.follow, NULL), WEIR_OK);
    assert_int_equal(audit_of(rig.client, "other").enqueued, 1);
    dead_worker_free(&w);
}

/* The follow-up job has no room. That is no outage: the dead worker's other job is taken
 * from it and done. */
static void
a_full_server_keeps_follow_up_jobs_waiting_and_nothing_else(void **state)
{
    struct dead_worker w;

    (void)state;
    rig_enqueue(JOB(), "a", "append");
    rig_enqueue(JOB(), "b", "append");
    dead_worker_take(&w);
    dead_worker_answer(&w);
    redis_do(rig.server, "CONFIG SET maxmemory 1");
    rig_start();
    AWAIT(rig_is("b", "done"));
    assert_string_equal(redis_do(rig.server, "HLEN weir:{q}:outbox"), "1");
    redis_do(rig.server, "CONFIG SET maxmemory 0");
    AWAIT(audit_of(rig.client, "other").done == 1);
    dead_worker_free(&w);
}

/* Many jobs are answered in one call, and then nothing comes through: the worker is not
 * to wait for each of their follow-up jobs in turn. */
static void
a_worker_that_loses_redis_after_its_answers_waits_once(void **state)
{
    static const struct weir_then then[] = {{"append", "other"}};
    struct proxy *proxy = proxy_start(redis_server_socket(rig.server));
    int64_t start = wr_clock_ms();
    pid_t worker;

    (void)state;
    rig.url = proxy_url(proxy);
    worker = rig_start_with((struct weir_worker_options){
        .lease_ms = 4000,
        .concurrency = 8,
        .grace_ms = 1000}); /* for answers not given so far */
    for (int i = 0; i < 8; i++) {
        char id[2] = {(char)('a' + i), '\0'};

        rig_enqueue(JOB(.then = then, .then_count = 1), id, "patient");
    }
    AWAIT(shared->runs == 8);
    proxy_delay(proxy, 20); /* so that there is time between the two */
    shared->release = 1;
    while (atoi(redis_do(rig.server, "HLEN weir:{q}:outbox")) < 4)
        assert_true(wr_clock_ms() - start < 30000);
    proxy_stall_way(proxy, PROXY_TO_SERVER);
    start = wr_clock_ms();
    (void)rig_end(worker, SIGTERM);
    assert_true(wr_clock_ms() - start < 8000); /* a call waits for 2 s */
    rig.url = NULL;
    rig_start();
    AWAIT(audit_of(rig.client, "other").done == 8);
    proxy_stop(proxy);
}

/* Each follow-up job leaves a channel in its queue for an hour: they go as fast as they
 * come, else a busy queue would grow for ever. */
static void
what_chains_leave_behind_is_swept_as_fast_as_it_comes(void **state)
{
    (void)state;
    rig_enqueue(JOB(.delay_ms = 600000), "a", "append");
    for (int i = 0; i < 3000; i++)
        redis_do(rig.server, "HSET weir:{q}:producers old%d -", i);
    rig_start();
    AWAIT(atoi(redis_do(rig.server, "HLEN weir:{q}:producers")) < 500);
    assert_int_not_equal(atoi(redis_do(rig.server, "HLEN weir:{q}:producers")), 0);
}

static void
chains_stay_whole_while_workers_are_killed(void **state)
{
    static const struct weir_then then[] = {{"second", "other"}};
    const char *text = getenv("WEIR_CHAOS_JOBS");
    int n = text && atoi(text) > 0 && atoi(text) < JOBS_MAX ? atoi(text) : 400;
    unsigned seed = (unsigned)getpid();

    (void)state;
    text = getenv("WEIR_SEED");
    seed = text ? (unsigned)atoi(text) : seed;
    print_message("WEIR_SEED=%u\n", seed);
    for (int i = 0; i < n; i++) {
        char id[16];

        snprintf(id, sizeof(id), "%d", i);
        rig_enqueue((struct weir_job){WEIR_JOB_INIT, .max_deliveries = WEIR_NONE,
                                      .then = then, .then_count = 1},
                    id, "first");
    }
    for (int i = 0; i < 15; i++) {
        pid_t pid = rig_start();

        poll(NULL, 0, 30 + rand_r(&seed) % 120);
        kill(pid, SIGKILL);
        rig_end(pid, 0);
    }
    rig_start();
    AWAIT(audit_of(rig.client, "q").done == n);
    AWAIT(audit_of(rig.client, "other").done == n);
    assert_int_equal(audit_of(rig.client, "other").enqueued, n);
    for (int i = 0; i < n; i++)
        assert_true(shared->seconds[i] <=
                    1); /* as a job of its own; it may be repeated */
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_step_of_a_chain_gets_the_result_of_the_one_before),
        TEST(a_job_that_fails_has_no_follow_up),
        TEST(a_handler_asks_for_jobs_that_come_if_it_succeeds),
        TEST(a_job_has_a_hundred_follow_up_jobs_its_chain_among_them),
        TEST(what_a_dead_worker_left_in_the_outbox_is_enqueued_once),
        TEST(a_full_server_keeps_follow_up_jobs_waiting_and_nothing_else),
        TEST(a_worker_that_loses_redis_after_its_answers_waits_once),
        TEST(what_chains_leave_behind_is_swept_as_fast_as_it_comes),
        TEST(chains_stay_whole_while_workers_are_killed),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("chain", tests, handlers);
}
