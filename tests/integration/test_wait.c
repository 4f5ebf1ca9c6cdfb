/*
 * Waiting for the end of jobs, and request and response: by message, without polling.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "integration/worker_rig.h"
#include "support/proxy.h"

static struct shared {
    _Atomic int started, release;
} * shared;

static enum weir_outcome
echo(struct weir_delivery *d, void *context)
{
    size_t len;
    const void *payload = weir_delivery_payload(d, &len);

    (void)context;
    return weir_delivery_set_result(d, payload, len) == WEIR_OK ? WEIR_DONE
                                                                : WEIR_PERMANENT;
}

static enum weir_outcome
never(struct weir_delivery *d, void *context)
{
    (void)context;
    weir_delivery_set_error(d, "cannot ever work");
    return WEIR_PERMANENT;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->started++;
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    return shared->release ? echo(d, context) : WEIR_RETRY;
}

static void
handlers(struct weir_worker *w)
{
    if (weir_worker_handle(w, "echo", echo, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "never", never, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "patient", patient, NULL, NULL) != WEIR_OK)
        abort();
}

static int
setup(void **state)
{
    *shared = (struct shared){0};
    return rig_setup(state);
}

/* ---- one waiter in a thread ---- */

struct waiter {
    pthread_t thread;
    const char *id;
    int64_t timeout_ms;
    enum weir_err rc;
    struct weir_error err;
    char state[16], result[32];
    size_t result_len;
};

static void *
waiter_main(void *arg)
{
    struct waiter *w = arg;
    struct weir_job_view *v;

    w->rc = weir_result_wait(rig.client, "q", w->id, w->timeout_ms, &v, &w->err);
    if (v) {
        size_t len;
        const void *result = weir_job_view_result(v, &len);

        snprintf(w->state, sizeof(w->state), "%s", weir_job_view_state(v));
        w->result_len = len;
        memcpy(w->result, result, len < sizeof(w->result) ? len : sizeof(w->result));
        weir_job_view_free(v);
    }
    return NULL;
}

static bool
waits(const char *id, int how_many)
{
    const char *text = redis_do(rig.server, "HGET weir:{q}:waiters %s", id);
    int n = 0;

    for (; (text = strstr(text, "weir:ended:")) != NULL; text++)
        n++;
    return n == how_many;
}

static void
waiter_start(struct waiter *w, const char *id, int64_t timeout_ms)
{
    *w = (struct waiter){.id = id, .timeout_ms = timeout_ms};
    assert_int_equal(pthread_create(&w->thread, NULL, waiter_main, w), 0);
}

static void
waiter_join(struct waiter *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
}

/* ---- tests ---- */

static void
a_result_that_is_not_kept_reaches_all_who_wait(void **state)
{
    static const char payload[] = "a\nb\0\xff\n";
    struct waiter w[20];

    (void)state;
    rig_start();
    rig_enqueue((struct weir_job){WEIR_JOB_INIT, .payload = payload,
                                  .payload_len = sizeof(payload)},
                "j", "patient");
    for (int i = 0; i < 20; i++)
        waiter_start(&w[i], "j", 30000);
    AWAIT(waits("j", 20));
    shared->release = 1;
    for (int i = 0; i < 20; i++) {
        waiter_join(&w[i]);
        assert_int_equal(w[i].rc, WEIR_OK);
        assert_string_equal(w[i].state, "done");
        assert_int_equal(w[i].result_len, sizeof(payload));
        assert_memory_equal(w[i].result, payload, sizeof(payload));
    }
    assert_true(rig_is("j", "gone"));
    assert_string_equal(redis_do(rig.server, "EXISTS weir:{q}:waiters"), "0");
}

static long
commands(void)
{
    const char *info = redis_do(rig.server, "INFO stats"),
               *at = strstr(info, "total_commands_processed:");

    return at ? strtol(at + strlen("total_commands_processed:"), NULL, 10) : -1;
}

static void
who_waits_sends_nothing_meanwhile(void **state)
{
    struct waiter w[10];
    long before;
    int64_t start;

    (void)state;
    rig_enqueue(JOB(), "j", "patient"); /* and no worker */
    for (int i = 0; i < 10; i++)
        waiter_start(&w[i], "j", 3500);
    AWAIT(waits("j", 10));
    before = commands();
    start = wr_clock_ms();
    AWAIT(wr_clock_ms() - start > 2000);
    assert_true(commands() - before < 5);
    for (int i = 0; i < 10; i++) {
        waiter_join(&w[i]);
        assert_int_equal(w[i].rc, WEIR_E_TIMEOUT);
        assert_string_equal(w[i].state, "ready");
    }
}

static void
every_end_of_a_job_is_told_as_what_it_is(void **state)
{
    struct waiter dead, waiting, running, late, kept;
    pid_t worker = rig_start();

    (void)state;
    rig_enqueue(JOB(), "first", "echo");
    AWAIT(rig_is("first", "done"));
    assert_int_equal(weir_queue_pause(rig.client, "q", "me", NULL, NULL, NULL), WEIR_OK);
    rig_enqueue(JOB(), "dead", "never");
    rig_enqueue((struct weir_job){WEIR_JOB_INIT, .expires_ms = 1}, "late", "echo");
    rig_enqueue(JOB(.delay_ms = 60000), "waiting", "echo");
    rig_enqueue(JOB(.payload = "x", .payload_len = 1), "kept", "echo");
    waiter_start(&dead, "dead", 30000);
    waiter_start(&late, "late", 30000);
    waiter_start(&waiting, "waiting", 30000);
    waiter_start(&kept, "kept", 30000);
    AWAIT(waits("dead", 1) && waits("late", 1) && waits("waiting", 1) &&
          waits("kept", 1));
    assert_int_equal(weir_job_cancel(rig.client, "q", "waiting", NULL, NULL), WEIR_OK);
    assert_int_equal(weir_queue_resume(rig.client, "q", NULL, NULL), WEIR_OK);
    waiter_join(&dead);
    waiter_join(&late);
    waiter_join(&waiting);
    waiter_join(&kept);
    assert_int_equal(dead.rc, WEIR_E_JOB_FAILED);
    assert_string_equal(dead.state, "dead");
    assert_int_equal(late.rc, WEIR_E_EXPIRED);
    assert_int_equal(waiting.rc, WEIR_E_CANCELLED);
    assert_int_equal(kept.rc, WEIR_OK);
    assert_memory_equal(kept.result, "x", 1);

    rig_enqueue(JOB(), "running", "patient");
    waiter_start(&running, "running", 30000);
    AWAIT(shared->started == 1 && waits("running", 1));
    assert_int_equal(weir_job_cancel(rig.client, "q", "running", NULL, NULL), WEIR_OK);
    waiter_join(&running);
    assert_int_equal(running.rc, WEIR_E_CANCELLED);
    assert_int_equal(rig_end(worker, SIGTERM), 0);
}

static void
a_job_that_ended_before_is_seen_at_once(void **state)
{
    struct weir_job_view *v;

    (void)state;
    rig_start();
    rig_enqueue(JOB(), "j", "echo");
    AWAIT(rig_is("j", "done"));
    assert_int_equal(weir_result_wait(rig.client, "q", "j", 20000, &v, NULL), WEIR_OK);
    weir_job_view_free(v);
    assert_int_equal(weir_result_wait(rig.client, "q", "other", 20000, &v, NULL),
                     WEIR_E_NO_JOB);
    assert_null(v);
}

/* Connections of waiters break again and again, the server goes away once: the end is
 * still seen, by looking. */
static void
waiters_register_again_when_their_connection_breaks(void **state)
{
    struct waiter w;

    (void)state;
    rig_start();
    rig_enqueue(JOB(), "j", "patient");
    waiter_start(&w, "j", 60000);
    for (int i = 0; i < 10; i++) {
        AWAIT(waits("j", 1));
        redis_do(rig.server, "DEL weir:{q}:waiters");
        redis_do(rig.server, "CLIENT KILL TYPE pubsub");
    }
    AWAIT(waits("j", 1));
    redis_do(rig.server, "CLIENT KILL TYPE pubsub");
    shared->release = 1; /* perhaps it ends before the waiter is back */
    waiter_join(&w);
    assert_int_equal(w.rc, WEIR_OK);
}

static bool
count_end(size_t index, enum weir_err rc, struct weir_job_view *view,
          const struct weir_error *err, void *context)
{
    int *ends = context;

    (void)index;
    (void)err;
    *ends += rc == WEIR_OK;
    weir_job_view_free(view);
    return true;
}

static void *
release_soon(void *arg)
{
    AWAIT(waits("j", 1));
    shared->release = 1;
    return arg;
}

static void
a_job_may_be_named_twice_and_be_waited_for_without_end(void **state)
{
    static const char *const ids[] = {"j", "j"};
    int64_t start = wr_clock_ms();
    pthread_t thread;
    int ends = 0;

    (void)state;
    rig_start();
    rig_enqueue(JOB(), "j", "patient");
    assert_int_equal(pthread_create(&thread, NULL, release_soon, NULL), 0);
    assert_int_equal(
        weir_result_wait_each(rig.client, "q", ids, 2, INT64_MAX, count_end, &ends, NULL),
        WEIR_OK);
    pthread_join(thread, NULL);
    assert_int_equal(ends, 2);
    assert_true(wr_clock_ms() - start < 9000); /* else it looks after 10 s */
}

static void
a_call_is_answered_also_by_a_job_that_is_over_at_once(void **state)
{
    struct weir_error err = {0};
    struct weir_job_view *v;
    size_t len;

    (void)state;
    rig_start();
    for (int i = 0; i < 300; i++) {
        char text[16];
        struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "echo",
                               .payload = text};

        job.payload_len = (size_t)snprintf(text, sizeof(text), "%d", i);
        if (weir_call(rig.client, &job, 20000, &v, &err) != WEIR_OK)
            fail_msg("call %d: %s", i, err.text);
        assert_memory_equal(weir_job_view_result(v, &len), text, job.payload_len);
        weir_job_view_free(v);
    }
    assert_string_equal(redis_do(rig.server, "EXISTS weir:{q}:waiters"), "0");
}

static void
a_call_says_what_became_of_its_job(void **state)
{
    struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "never"};
    struct weir_job_view *v;

    (void)state;
    rig_start();
    assert_int_equal(weir_call(rig.client, &job, 20000, &v, NULL), WEIR_E_JOB_FAILED);
    assert_string_equal(weir_job_view_state(v), "dead");
    weir_job_view_free(v);
    job.type = "patient";
    assert_int_equal(weir_call(rig.client, &job, 300, &v, NULL), WEIR_E_TIMEOUT);
    assert_string_equal(weir_job_view_state(v), "processing");
    weir_job_view_free(v);
    job.type = "";
    assert_int_equal(weir_call(rig.client, &job, 300, &v, NULL), WEIR_E_ARG);
    assert_null(v);
    shared->release = 1;
}

static void *
cancel_soon(void *arg)
{
    AWAIT(waits("c", 1));
    if (weir_job_cancel(rig.client, "q", "c", NULL, NULL) != WEIR_OK)
        abort();
    return arg;
}

static void
a_call_ends_with_a_job_that_is_called_off_or_was_there_before(void **state)
{
    struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "patient", .id = "c",
                           .delay_ms = 600000};
    struct weir_job_view *v;
    pthread_t thread;

    (void)state;
    rig_start();
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
    assert_int_equal(weir_call(rig.client, &job, 20000, &v, NULL), WEIR_E_CANCELLED);
    pthread_join(thread, NULL);
    assert_null(v);
    job = (struct weir_job){WEIR_JOB_INIT, .queue = "q",   .type = "patient",
                            .id = "j",     .payload = "p", .payload_len = 1};
    assert_int_equal(weir_job_enqueue(rig.client, &job, NULL, NULL), WEIR_OK);
    AWAIT(shared->started == 1);
    assert_int_equal(pthread_create(&thread, NULL, release_soon, NULL), 0);
    assert_int_equal(weir_call(rig.client, &job, 20000, &v, NULL), WEIR_OK);
    pthread_join(thread, NULL);
    assert_int_equal(shared->started, 1);
    weir_job_view_free(v);
    job.id = "k";
    job.keep_result_ms = 60000;
    for (int i = 0; i < 2; i++) { /* the second time it is done, and looked at */
        assert_int_equal(weir_call(rig.client, &job, 20000, &v, NULL), WEIR_OK);
        assert_string_equal(weir_job_view_state(v), "done");
        weir_job_view_free(v);
    }
    assert_int_equal(shared->started, 2);
    job.payload = "other";
    assert_int_equal(weir_call(rig.client, &job, 20000, &v, NULL), WEIR_E_EXISTS);
    assert_string_equal(redis_do(rig.server, "EXISTS weir:{q}:waiters"), "0");
}

/* The job has run, and its result has come, when the client asks again. */
static void
a_call_whose_answer_is_lost_is_made_once_E02(void **state)
{
    struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "echo", .payload = "p",
                           .payload_len = 1};
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT};
    struct weir_client *client;
    struct weir_job_view *v;
    struct weir_audit a;
    struct proxy *proxy;

    (void)state;
    rig_start();
    proxy = proxy_start(redis_server_socket(rig.server));
    o.url = proxy_url(proxy);
    assert_int_equal(weir_client_open(&o, &client, NULL), WEIR_OK);
    for (unsigned i = 0; i <= 20; i++) {
        size_t len;

        if (i > 0) /* the first one connects */
            proxy_cut_after_requests(proxy, 1);
        assert_int_equal(weir_call(client, &job, 20000, &v, NULL), WEIR_OK);
        assert_memory_equal(weir_job_view_result(v, &len), "p", 1);
        weir_job_view_free(v);
        assert_int_equal(proxy_cuts(proxy), i);
        assert_int_equal(weir_queue_audit(rig.client, "q", &a, NULL), WEIR_OK);
        assert_int_equal(a.enqueued, i + 1);
        assert_int_equal(a.done, i + 1);
    }
    weir_client_close(client);
    proxy_stop(proxy);
    assert_string_equal(redis_do(rig.server, "EXISTS weir:{q}:waiters"), "0");
}

static void *
call_often(void *arg)
{
    uintptr_t bad = 0;

    for (int i = 0; i < 25; i++) {
        struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "echo"};
        struct weir_job_view *v;
        char text[32];
        size_t len = 0;

        job.payload = text;
        job.payload_len = (size_t)snprintf(text, sizeof(text), "%d %d", *(const int *)arg,
                                           i);
        bad += weir_call(rig.client, &job, 20000, &v, NULL) != WEIR_OK ||
               memcmp(weir_job_view_result(v, &len), text, job.payload_len) != 0 ||
               len != job.payload_len;
        weir_job_view_free(v);
    }
    return (void *)bad;
}

static void
many_threads_call_by_one_client(void **state)
{
    pthread_t threads[16];
    int numbers[16];

    (void)state;
    rig_start();
    for (int i = 0; i < 16; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &numbers[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        void *bad;

        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    assert_string_equal(redis_do(rig.server, "EXISTS weir:{q}:waiters"), "0");
}

static void
a_forked_child_waits_by_a_connection_of_its_own(void **state)
{
    struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "echo", .payload = "p",
                           .payload_len = 1};
    struct weir_job_view *v;
    pid_t children[4];

    (void)state;
    rig_start();
    assert_int_equal(weir_call(rig.client, &job, 20000, &v, NULL), WEIR_OK);
    weir_job_view_free(v);
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            int bad = 0;

            for (int k = 0; k < 50; k++) {
                bad += weir_call(rig.client, &job, 20000, &v, NULL) != WEIR_OK;
                weir_job_view_free(v);
            }
            _exit(bad);
        }
    }
    for (int k = 0; k < 50; k++) {
        assert_int_equal(weir_call(rig.client, &job, 20000, &v, NULL), WEIR_OK);
        weir_job_view_free(v);
    }
    for (int i = 0; i < 4; i++) {
        int status = 0;

        waitpid(children[i], &status, 0);
        assert_int_equal(status, 0);
    }
}

/* A wait that timed out leaves its message behind; the next wait for the same id is not
 * ended by it. */
static void
a_late_message_does_not_end_the_next_wait(void **state)
{
    struct weir_job_view *v;

    (void)state;
    rig_start();
    rig_enqueue((struct weir_job){WEIR_JOB_INIT}, "j", "patient");
    AWAIT(shared->started == 1);
    assert_int_equal(weir_result_wait(rig.client, "q", "j", 100, &v, NULL),
                     WEIR_E_TIMEOUT);
    weir_job_view_free(v);
    shared->release = 1;
    AWAIT(rig_is("j", "gone"));
    shared->release = 0;
    rig_enqueue((struct weir_job){WEIR_JOB_INIT}, "j", "patient");
    AWAIT(shared->started == 2);
    assert_int_equal(weir_result_wait(rig.client, "q", "j", 300, &v, NULL),
                     WEIR_E_TIMEOUT);
    weir_job_view_free(v);
    shared->release = 1;
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_result_that_is_not_kept_reaches_all_who_wait),
        TEST(who_waits_sends_nothing_meanwhile),
        TEST(every_end_of_a_job_is_told_as_what_it_is),
        TEST(a_job_that_ended_before_is_seen_at_once),
        TEST(waiters_register_again_when_their_connection_breaks),
        TEST(a_job_may_be_named_twice_and_be_waited_for_without_end),
        TEST(a_call_is_answered_also_by_a_job_that_is_over_at_once),
        TEST(a_call_says_what_became_of_its_job),
        TEST(a_call_ends_with_a_job_that_is_called_off_or_was_there_before),
        TEST(a_call_whose_answer_is_lost_is_made_once_E02),
        TEST(many_threads_call_by_one_client),
        TEST(a_forked_child_waits_by_a_connection_of_its_own),
        TEST(a_late_message_does_not_end_the_next_wait),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("wait", tests, handlers);
}
