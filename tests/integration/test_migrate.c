/*
 * A queue moves between the engines while producers and workers use it and the process
 * that moves it is killed. What goes in comes out, once.
 *
 *   WEIR_MIGRATE_MOVES=200     the full length
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
#include "base/rand.h"
#include "integration/worker_rig.h"

#define JOBS_MAX 200000

static struct shared {
    _Atomic unsigned char stored[JOBS_MAX], runs[JOBS_MAX];
    _Atomic long sent; /* the producer has gone so far */
    _Atomic bool stop;
} * shared;

static enum weir_outcome
note(struct weir_delivery *d, void *context)
{
    long n = strtol(weir_delivery_id(d), NULL, 10);

    (void)context;
    if (n % 50 == 7 && weir_delivery_attempt(d) == 1)
        return WEIR_RETRY;
    if (n % 20 == 3)
        poll(NULL, 0, 5);
    shared->runs[n]++;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    if (weir_worker_handle(w, "note", note, NULL, NULL) != WEIR_OK)
        abort();
}

/* Sends jobs until it is told to stop; some with a time, a unique key, or to be kept. */
static void
produce(void)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                    .url = redis_server_url(rig.server)};
    struct weir_client *client;
    struct weir_error err;

    if (weir_client_open(&o, &client, NULL) != WEIR_OK)
        _exit(70);
    for (long n = 1; n < JOBS_MAX && !shared->stop; n++) {
        char id[16];
        struct weir_job job = {WEIR_JOB_INIT,
                               .queue = "q",
                               .type = "note",
                               .id = id,
                               .backoff = "fixed:10ms",
                               .unique = n % 11 == 1 ? id : NULL,
                               .keep_result_ms = n % 13 == 1 ? 60000 : 0,
                               .delay_ms = n % 17 == 1 ? n % 300 : 0};

        snprintf(id, sizeof(id), "%ld", n);
        if (weir_job_enqueue(client, &job, NULL, &err) != WEIR_OK) {
            fprintf(stderr, "enqueue: %s\n", err.text);
            _exit(1);
        }
        shared->stored[n] = 1;
        shared->sent = n + 1;
        if (n % 64 == 0)
            poll(NULL, 0, 1);
    }
    weir_client_close(client);
    _exit(0);
}

static const char *
engine_of(const char *queue)
{
    static char engine[16];

    snprintf(engine, sizeof(engine), "%s", audit_of(rig.client, queue).engine);
    return engine;
}

/* Moves it to the other engine; killed after so many us, if that is not -1. */
static void
move_away(int kill_after_us)
{
    const char *to = strcmp(engine_of("q"), "list") == 0 ? "stream" : "list";
    pid_t mover = fork();
    int status;

    assert_true(mover >= 0);
    if (mover == 0) {
        struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                        .url = redis_server_url(rig.server)};
        struct weir_error err = {0};
        struct weir_client *client;
        int64_t moved;
        enum weir_err rc = weir_client_open(&o, &client, &err);

        if (rc == WEIR_OK)
            rc = weir_queue_migrate(client, "q", to, NULL, &moved, &err);
        if (rc != WEIR_OK)
            fprintf(stderr, "migrate: %s\n", err.text);
        _exit(rc == WEIR_OK ? 0 : 1);
    }
    if (kill_after_us >= 0) {
        usleep((useconds_t)kill_after_us);
        kill(mover, SIGKILL);
    }
    assert_int_equal(waitpid(mover, &status, 0), mover);
    if (kill_after_us < 0)
        assert_int_equal(status, 0);
}

static void
check_audit(void)
{
    struct weir_audit a = audit_of(rig.client, "q");

    if (!weir_audit_is_good(&a))
        fail_msg("the sums are off: gap %lld", (long long)a.gap);
}

/* By one look: between two a job may go from where the second looks to where the first
 * did. */
static bool
nothing_is_left(void)
{
    struct weir_audit a = audit_of(rig.client, "q");

    return a.ready + a.delayed + a.processing == 0;
}

static void
what_goes_in_comes_out_while_the_queue_moves(void **state)
{
    const char *full = getenv("WEIR_MIGRATE_MOVES");
    int moves = full ? atoi(full) : 12, status;
    pid_t producer;
    long sent;

    (void)state;
    memset(shared, 0, sizeof(*shared));
    rig_enqueue(JOB(), "0", "note"); /* now there is a queue */
    engine_is_free(rig.server, "q");
    rig_start();
    rig_start();
    producer = fork();
    if (producer == 0)
        produce();
    for (int i = 0; i < moves; i++) {
        AWAIT(shared->sent > 100 * (i + 1) || shared->sent == JOBS_MAX);
        move_away(i % 3 == 2 ? (int)wr_rand_below(20000) : -1);
        check_audit();
        poll(NULL, 0, 20);
    }
    shared->stop = true;
    assert_int_equal(waitpid(producer, &status, 0), producer);
    assert_int_equal(status, 0);
    move_away(-1); /* one that was killed before is done now */
    sent = shared->sent;
    AWAIT(nothing_is_left());
    for (long n = 1; n < sent; n++) {
        if (shared->runs[n] != 1)
            fail_msg("job %ld ran %d times", n, shared->runs[n]);
    }
    print_message("%ld jobs, %d moves\n", sent, moves);
}

/* A thousand that wait, a worker that sleeps: it wakes when they have moved. */
static void
a_worker_that_waits_finds_the_queue_again(void **state)
{
    (void)state;
    memset(shared, 0, sizeof(*shared));
    rig_enqueue(JOB(), "1", "note");
    engine_is_free(rig.server, "q");
    rig_start();
    AWAIT(shared->runs[1] == 1);
    for (int i = 2; i < 8; i++) {
        char id[16];

        move_away(-1);
        snprintf(id, sizeof(id), "%d", i);
        rig_enqueue(JOB(), id, "note");
        AWAIT(shared->runs[i] == 1 || (i == 7 && shared->runs[7] == 1));
    }
}

static void
a_job_that_runs_too_long_stops_the_move_alone(void **state)
{
    struct weir_migrate_options o = {WEIR_MIGRATE_OPTIONS_INIT, .wait_ms = 300};
    const char *from, *to;
    struct weir_error err;
    int64_t moved;

    (void)state;
    memset(shared, 0, sizeof(*shared));
    rig_enqueue(JOB(), "1", "never");
    engine_is_free(rig.server, "q");
    assert_int_equal(
        weir_queue_migrate(rig.client, "q", engine_of("q"), NULL, &moved, NULL), WEIR_OK);
    from = engine_of("q");
    to = strcmp(from, "list") == 0 ? "stream" : "list";
    assert_int_equal(weir_queue_migrate(rig.client, "none", to, NULL, &moved, NULL),
                     WEIR_E_NO_QUEUE);
    assert_int_equal(weir_queue_migrate(rig.client, "q", "tree", NULL, &moved, NULL),
                     WEIR_E_ARG);
    rig_enqueue(JOB(), "3", "slow");
    rig_start();
    AWAIT(rig_is("3", "processing"));
    assert_int_equal(weir_queue_migrate(rig.client, "q", to, &o, &moved, &err),
                     WEIR_E_TIMEOUT);
    assert_non_null(strstr(err.text, from));
    assert_false(audit_of(rig.client, "q").paused);
    AWAIT(rig_is("3", "done"));
    assert_int_equal(weir_queue_migrate(rig.client, "q", to, NULL, &moved, NULL),
                     WEIR_OK);
    assert_string_equal(engine_of("q"), to);
    check_audit();
}

static enum weir_outcome
be_slow(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    poll(NULL, 0, 1000);
    return WEIR_DONE;
}

static void
all_handlers(struct weir_worker *w)
{
    handlers(w);
    if (weir_worker_handle(w, "slow", be_slow, NULL, NULL) != WEIR_OK)
        abort();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_goes_in_comes_out_while_the_queue_moves,
                                        rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(a_worker_that_waits_finds_the_queue_again,
                                        rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(a_job_that_runs_too_long_stops_the_move_alone,
                                        rig_setup, rig_teardown),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("migrate", tests, all_handlers);
}
