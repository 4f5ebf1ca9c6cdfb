/*
 * Many jobs: dead ones live again while producers go on, and what that costs them
 * (WEIR_DEAD_JOBS=500000 is the full length); finished ones, of which a queue keeps so
 * many (WEIR_KEPT_JOBS=1000000).
 */
#include "integration/worker_rig.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define PUSHES_MAX 200000
#define PAGE 100 /* as the tool takes them */

static enum weir_outcome
never(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    return WEIR_PERMANENT;
}

static enum weir_outcome
fine(struct weir_delivery *d, void *context)
{
    (void)context;
    return weir_delivery_set_result(d, "well done", 9) == WEIR_OK ? WEIR_DONE
                                                                  : WEIR_RETRY;
}

static void
handlers(struct weir_worker *worker)
{
    assert_int_equal(weir_worker_handle(worker, "fine", fine, NULL, NULL), WEIR_OK);
    assert_int_equal(weir_worker_handle(worker, "never", never, NULL, NULL), WEIR_OK);
}

/* A producer that pushes 200 jobs a second into another queue of the same server. */
static struct producer {
    struct weir_client *client;
    _Atomic bool stop;
    size_t n;
    bool failed;
    int64_t us[PUSHES_MAX];
} producer;

static void *
push(void *context)
{
    struct producer *p = context;

    while (!p->stop && p->n < PUSHES_MAX) {
        struct weir_job job = {WEIR_JOB_INIT, .queue = "other", .type = "push"};
        int64_t began = wr_clock_us();

        if (weir_job_enqueue(p->client, &job, NULL, NULL) != WEIR_OK)
            p->failed = true;
        p->us[p->n++] = wr_clock_us() - began;
        poll(NULL, 0, 5);
    }
    return NULL;
}

static int
compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* p99 of the pushes while `what` goes on; all of them have come in. */
static int64_t
pushes_while(const char *name, void (*what)(void))
{
    pthread_t thread;
    int64_t p99;

    producer.stop = false;
    producer.n = 0;
    assert_int_equal(pthread_create(&thread, NULL, push, &producer), 0);
    what();
    producer.stop = true;
    pthread_join(thread, NULL);
    assert_false(producer.failed);
    assert_true(producer.n > 0);
    qsort(producer.us, producer.n, sizeof(producer.us[0]), compare_times);
    p99 = producer.us[producer.n * 99 / 100];
    print_message("%s: %zu pushes, p50 %lld us, p99 %lld us, most %lld us\n", name,
                  producer.n, (long long)producer.us[producer.n / 2], (long long)p99,
                  (long long)producer.us[producer.n - 1]);
    return p99;
}

static void
nothing(void)
{
    poll(NULL, 0, 500);
}

static void
replay_all(void)
{
    size_t skip = 0, moved;

    for (bool more = true; more;) {
        struct weir_error err = {0};

        if (weir_dead_replay_page(rig.client, "q", PAGE, 0, &skip, &more, &moved, &err) !=
            WEIR_OK)
            fail_msg("replay: %s", err.text);
    }
}

static void
make_dead(int64_t wanted)
{
    static struct weir_job jobs[1000];
    static struct weir_enqueued out[1000];
    pid_t worker = rig_start_with((struct weir_worker_options){.concurrency = 8});

    for (size_t i = 0; i < 1000; i++)
        jobs[i] = (struct weir_job){WEIR_JOB_INIT, .queue = "q", .type = "never"};
    for (int64_t n = 0; n < wanted; n += 1000)
        assert_int_equal(weir_job_enqueue_many(rig.client, jobs, 1000, out, NULL),
                         WEIR_OK);
    for (int64_t last = -1, dead; (dead = audit_of(rig.client, "q").dead) < wanted;) {
        AWAIT(audit_of(rig.client, "q").dead > last);
        last = dead;
    }
    rig_end(worker, SIGTERM);
}

static void
producers_hardly_notice_a_replay_of_all_R04(void **state)
{
    const char *text = getenv("WEIR_DEAD_JOBS");
    int64_t wanted = text ? atoi(text) / 1000 * 1000 : 10000, began, p99;
    struct weir_client_options options = {.struct_size = sizeof(options),
                                          .url = redis_server_url(rig.server)};

    (void)state;
    assert_int_equal(weir_client_open(&options, &producer.client, NULL), WEIR_OK);
    make_dead(wanted);
    pushes_while("before", nothing);
    began = wr_clock_ms();
    p99 = pushes_while("during the replay", replay_all);
    print_message("%lld jobs in %lld ms\n", (long long)wanted,
                  (long long)(wr_clock_ms() - began));
    assert_int_equal(audit_of(rig.client, "q").replayed, wanted); /* each once */
    assert_int_equal(audit_of(rig.client, "q").dead, 0);
    if (text) /* the promise; a short run on a busy machine measures the machine */
        assert_true(p99 < 20000);
    weir_client_close(producer.client);
}

static int64_t
memory_used(void)
{
    const char *at = strstr(redis_do(rig.server, "INFO memory"), "used_memory:");

    assert_non_null(at);
    return strtoll(at + strlen("used_memory:"), NULL, 10);
}

/* A day of results would be kept, but a queue keeps 10,000 of them. */
static void
a_queue_of_finished_jobs_does_not_grow_M03(void **state)
{
    static struct weir_job jobs[1000];
    static struct weir_enqueued out[1000];
    const char *text = getenv("WEIR_KEPT_JOBS");
    int64_t wanted = text ? atoi(text) / 1000 * 1000 : 0, early = 0, began, late;

    (void)state;
    if (wanted == 0) {
        print_message("only with WEIR_KEPT_JOBS: the rule itself is a script test's\n");
        return;
    }
    began = wr_clock_ms();
    rig_start_with((struct weir_worker_options){.concurrency = 8});
    for (size_t i = 0; i < 1000; i++)
        jobs[i] = (struct weir_job){WEIR_JOB_INIT,     .queue = "q",
                                    .type = "fine",    .payload = "0123456789",
                                    .payload_len = 10, .keep_result_ms = 86400000};
    for (int64_t n = 1000; n <= wanted; n += 1000) {
        assert_int_equal(weir_job_enqueue_many(rig.client, jobs, 1000, out, NULL),
                         WEIR_OK);
        AWAIT(audit_of(rig.client, "q").done >= n - 2000);
        if (n == wanted / 3000 * 1000) {
            AWAIT(audit_of(rig.client, "q").kept <= 13000);
            early = memory_used();
        }
    }
    AWAIT(audit_of(rig.client, "q").done == wanted);
    AWAIT(audit_of(rig.client, "q").kept <= 10000);
    late = memory_used();
    print_message("%lld jobs in %lld ms; %lld bytes after a third, %lld at the end\n",
                  (long long)wanted, (long long)(wr_clock_ms() - began), (long long)early,
                  (long long)late);
    assert_true(late < early + early / 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(producers_hardly_notice_a_replay_of_all_R04,
                                        rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(a_queue_of_finished_jobs_does_not_grow_M03,
                                        rig_setup, rig_teardown),
    };

    return RIG_RUN("replay", tests, handlers);
}
