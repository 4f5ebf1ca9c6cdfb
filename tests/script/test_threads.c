/* One client in many threads: what the sanitizer for threads looks at. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/client.h>

#include "support/cmocka_all.h"
#include "support/redis_server.h"

#define THREADS 32

static struct redis_server *server;
static struct weir_client *client;
static long each = 200; /* jobs a thread; WEIR_THREADS_JOBS: of all threads */

static void *
push(void *arg)
{
    long number = *(long *)arg, bad = 0;

    for (long i = 0; i < each; i++) {
        char id[32];
        struct weir_job job = {WEIR_JOB_INIT, .queue = i % 2 ? "q" : "p", .type = "t",
                               .id = id, .delay_ms = i % 5 == 0 ? 60000 : 0};
        struct weir_job_view *v = NULL;

        snprintf(id, sizeof(id), "%ld-%ld", number, i);
        bad += weir_job_enqueue(client, &job, NULL, NULL) != WEIR_OK;
        if (i % 10 == 0) {
            bad += weir_job_inspect(client, job.queue, id, &v, NULL) != WEIR_OK;
            weir_job_view_free(v);
            bad += weir_result_wait(client, job.queue, id, 1, &v, NULL) != WEIR_E_TIMEOUT;
            weir_job_view_free(v);
        }
        if (i % 20 == 0)
            bad += weir_job_cancel(client, job.queue, id, NULL, NULL) != WEIR_OK;
    }
    *(long *)arg = bad;
    return NULL;
}

static void
thirty_two_threads_share_one_client_X16(void **state)
{
    pthread_t threads[THREADS];
    long numbers[THREADS];
    struct weir_audit p, q;

    (void)state;
    for (long i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, push, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(numbers[i], 0);
    }
    assert_int_equal(weir_queue_audit(client, "p", &p, NULL), WEIR_OK);
    assert_int_equal(weir_queue_audit(client, "q", &q, NULL), WEIR_OK);
    assert_true(weir_audit_is_good(&p) && weir_audit_is_good(&q));
    assert_int_equal(p.enqueued + q.enqueued, THREADS * each);
    assert_int_equal(p.cancelled, THREADS * ((each + 19) / 20));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thirty_two_threads_share_one_client_X16)};
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT, .pool_timeout_ms = 60000,
                                    .command_timeout_ms = 60000};
    const char *text = getenv("WEIR_THREADS_JOBS");
    int failed;

    if (text && atol(text) >= THREADS)
        each = atol(text) / THREADS;
    server = redis_server_start(NULL);
    o.url = redis_server_url(server);
    if (weir_client_open(&o, &client, NULL) != WEIR_OK)
        return 2;
    failed = cmocka_run_group_tests_name("threads", tests, NULL, NULL);
    weir_client_close(client);
    redis_server_stop(server);
    return failed;
}
