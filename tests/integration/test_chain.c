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
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "integration/worker_rig.h"
#include "model/follow.h"
#include "redis/server.h"
#include "store/store.h"

#define JOBS_MAX 2000

static struct shared {
    _Atomic int runs, fail_next;
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
    } rows[] = {{"append", append},      {"upper", append}, {"last", append},
                {"never", never},        {"fan", fan_out},  {"first", count_first},
                {"second", count_second}};

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

/* The worker died right after its answer: the scheduler enqueues what lies in the outbox,
 * and another who does it once more changes nothing, even when the job is over by then.
 */
static void
what_a_dead_worker_left_in_the_outbox_is_enqueued_once(void **state)
{
    struct wr_server_options so = {0};
    struct wr_server *server;
    struct wr_store_options o = {0};
    struct wr_store *store;
    struct wr_queue *queue;
    struct wr_batch batch;
    struct wr_reserve r = {.worker = "gone", .call = 1, .free = 1, .lease_ms = 60000};
    struct wr_buf follow = {0};
    char channel[WR_FOLLOW_CHANNEL_LEN + 1];
    struct wr_answer answer = {0};
    enum wr_answered word;

    (void)state;
    rig_enqueue(JOB(), "a", "append");
    assert_int_equal(wr_url_parse(redis_server_url(rig.server), &so.url, NULL), WEIR_OK);
    assert_int_equal(wr_server_new(&so, &server, NULL), WEIR_OK);
    o.server = server;
    o.ns = "weir";
    assert_int_equal(wr_store_new(&o, &store, NULL), WEIR_OK);
    assert_int_equal(wr_store_queue(store, "q", &queue, NULL), WEIR_OK);
    assert_int_equal(wr_store_reserve(store, queue, &r, &batch, NULL), WEIR_OK);
    assert_int_equal(batch.n, 1);
    wr_follow_channel("q", "a", batch.jobs[0].state.token, channel);
    wr_follow_begin(&follow, channel);
    wr_follow_write(&follow, &(struct wr_follow){.queue = wr_span_str("other"),
                                                 .id = wr_span_str("f"),
                                                 .head = wr_span_str("1 append"),
                                                 .tail = wr_span_str("\nx")});
    answer = (struct wr_answer){.id = wr_span_str("a"),
                                .token = wr_span_str(batch.jobs[0].state.token),
                                .follow = wr_buf_span(&follow)};
    assert_int_equal(wr_store_ack_then(store, queue, "gone", &answer, 1, &word, NULL),
                     WEIR_OK);
    assert_int_equal(word, WR_ANSWERED_OK);
    assert_string_equal(redis_do(rig.server, "HLEN weir:{q}:outbox"), "1");

    rig_start();
    AWAIT(audit_of(rig.client, "other").done == 1);
    AWAIT(strcmp(redis_do(rig.server, "EXISTS weir:{q}:outbox"), "0") == 0);
    assert_int_equal(wr_store_relay(store, queue, answer.token, answer.follow, NULL),
                     WEIR_OK);
    assert_int_equal(audit_of(rig.client, "other").enqueued, 1);
    wr_buf_fini(&follow);
    wr_batch_fini(&batch);
    wr_store_free(store);
    wr_server_free(server);
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
        TEST(what_a_dead_worker_left_in_the_outbox_is_enqueued_once),
        TEST(chains_stay_whole_while_workers_are_killed),
    };
    int failed;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    rig.handlers = handlers;
    rig.server = redis_server_start(NULL);
    failed = cmocka_run_group_tests_name("chain", tests, NULL, NULL);
    redis_server_stop(rig.server);
    return failed;
}
