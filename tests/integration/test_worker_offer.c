/*
 * A job that comes alone is handed to an idle worker by the step that stores it
 * (decisions/0019): what becomes of it when that worker is gone, when another one takes
 * the marker, and when the queue cannot do so.
 */
#include "integration/worker_rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define JOBS_MAX 100
#define LEASE_MS 60000 /* whoever waits for one to lapse fails the test */
#define SOON_MS 3000

static struct shared {
    _Atomic int runs[JOBS_MAX];
    _Atomic pid_t by[JOBS_MAX]; /* the supervisor of the child that ran it */
    _Atomic int64_t began_ms[JOBS_MAX];
} * shared;

static enum weir_outcome
note(struct weir_delivery *d, void *context)
{
    int i = atoi(weir_delivery_id(d));

    (void)context;
    shared->began_ms[i] = wr_clock_ms();
    shared->by[i] = getppid();
    shared->runs[i]++;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    if (weir_worker_handle(w, "note", note, NULL, NULL) != WEIR_OK)
        abort();
}

static int
setup(void **state)
{
    int rc;

    memset((void *)shared, 0, sizeof(*shared));
    rc = rig_setup(state);
    rig_make_queue();
    return rc;
}

static pid_t
start_of(const char *const *queues)
{
    return rig_start_with((struct weir_worker_options){
        .queues = queues, .lease_ms = LEASE_MS, .concurrency = 2});
}

/* Of one queue: it makes offers. */
static pid_t
start(void)
{
    static const char *const queues[] = {"q", NULL};

    return start_of(queues);
}

/* Of two: it makes none. */
static pid_t
start_mixed(void)
{
    static const char *const queues[] = {"q", "other", NULL};

    return start_of(queues);
}

static int
count(const char *text, const char *part)
{
    int n = 0;

    for (const char *at = text; at && (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

static int
offers(void)
{
    return count(redis_do(rig.server, "HVALS weir:{q}:claims"), " offers ");
}

/* How many children wait for a marker. */
static int
waits(void)
{
    const char *line = redis_do(rig.server, "CLIENT LIST TYPE normal");
    int n = 0;

    for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        size_t len = strcspn(line, "\n");
        const char *name = strstr(line, " name=weir-wait "),
                   *cmd = strstr(line, " cmd=blpop");

        n += name && name < line + len && cmd && cmd < line + len;
    }
    return n;
}

static void
put(int i)
{
    char id[16];

    snprintf(id, sizeof(id), "%d", i);
    rig_enqueue(JOB(), id, "note");
}

static void
check(int n, int given_back)
{
    struct weir_audit a;

    AWAIT(audit_of(rig.client, "q").done == n);
    for (int i = 0; i < n; i++)
        assert_int_equal(shared->runs[i], 1);
    a = audit_of(rig.client, "q");
    assert_int_equal(a.deliveries, n + given_back);
    assert_int_equal(a.released, given_back);
    assert_int_equal(a.reclaimed, 0);
}

static void
a_job_that_comes_alone_needs_no_call_of_reserve(void **state)
{
    const char *stats;
    char id[16];

    (void)state;
    start();
    for (int i = 0; i < 20; i++) {
        AWAIT(offers() == 1 && waits() == 1);
        redis_do(rig.server, "CONFIG RESETSTAT");
        snprintf(id, sizeof(id), "%d", i);
        rig_enqueue((struct weir_job){WEIR_JOB_INIT}, id, "note");
        AWAIT(shared->runs[i] > 0);
        /* Nobody has looked what waits. */
        stats = redis_do(rig.server, "INFO commandstats");
        assert_int_equal(
            count(stats, "cmdstat_lrange:") + count(stats, "cmdstat_xrange:"), 0);
    }
    check(20, 0);
}

/* Supervisor and children at once, as when a machine dies. */
static void
kill_all_of(pid_t supervisor)
{
    char path[64];
    FILE *f;
    int pid;

    kill(supervisor, SIGSTOP);
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)supervisor,
             (int)supervisor);
    f = fopen(path, "r");
    assert_non_null(f);
    while (fscanf(f, "%d", &pid) == 1)
        kill(pid, SIGKILL);
    fclose(f);
    kill(supervisor, SIGKILL);
}

/* The worker is gone with its supervisor, its offer is not: who waits next hands the job
 * back for it. */
static void
a_job_that_was_handed_to_a_worker_that_is_gone_is_run_by_the_next_one_L01(void **state)
{
    pid_t gone = start();
    int64_t begin;

    (void)state;
    AWAIT(offers() == 1 && waits() == 1);
    kill_all_of(gone);
    AWAIT(waits() == 0);
    put(0);
    assert_true(rig_is("0", "processing"));
    begin = wr_clock_ms();
    start();
    AWAIT(shared->runs[0] > 0);
    assert_true(shared->began_ms[0] - begin < SOON_MS);
    check(1, 1);
    /* Nobody shares the queue who makes no offers. */
    assert_string_equal(redis_do(rig.server, "HEXISTS weir:{q}:stats offers_off"), "0");
}

/* It has waited longer, so the marker comes to it, with the job of the other one. */
static void
a_worker_of_several_queues_gives_back_what_it_was_woken_by(void **state)
{
    pid_t mixed = start_mixed();

    (void)state;
    AWAIT(waits() == 1);
    start();
    AWAIT(offers() == 1 && waits() == 2);
    put(0);
    AWAIT(shared->runs[0] > 0);
    assert_int_equal(shared->by[0], mixed);
    check(1, 1);
    assert_true(atoll(redis_do(rig.server, "HGET weir:{q}:stats offers_off")) > 0);
    /* For a while it does not come to that again. */
    for (int i = 1; i < 20; i++) {
        put(i);
        AWAIT(shared->runs[i] > 0);
    }
    check(20, 1);
}

static void
jobs_go_in_turn_to_workers_that_wait(void **state)
{
    pid_t a = start(), b = start();
    int by_a = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        AWAIT(offers() == 2 && waits() == 2);
        put(i);
        AWAIT(shared->runs[i] > 0);
        assert_true(shared->by[i] == a || shared->by[i] == b);
        by_a += shared->by[i] == a;
    }
    assert_int_equal(by_a, 10);
    check(20, 0);
}

/* The queue refuses the call that an offer leaves owed, again and again: others have the
 * slot meanwhile. */
static void
an_offer_in_doubt_of_a_queue_that_refuses_holds_no_slot(void **state)
{
    static const char *const all[] = {NULL};

    (void)state;
    rig_start_with((struct weir_worker_options){
        .queues = all, .lease_ms = LEASE_MS, .concurrency = 1});
    AWAIT(offers() == 1 && waits() == 1);
    redis_do(rig.server, "DEL weir:{q}:claims");
    redis_do(rig.server, "SET weir:{q}:claims x");
    rig_enqueue(JOB(.queue = "b"), "1", "note");
    AWAIT(shared->runs[1] > 0);
    redis_do(rig.server, "DEL weir:{q}:claims");
    put(0);
    AWAIT(shared->runs[0] > 0);
    check(1, 0);
}

/* A server that does not know the script any more: jobs come by markers, until it does.
 */
static void
offers_are_made_again_after_the_scripts_were_flushed(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 10; i++) {
        AWAIT(offers() == 1 && waits() == 1);
        if (i == 3)
            redis_do(rig.server, "SCRIPT FLUSH");
        put(i);
        AWAIT(shared->runs[i] > 0);
    }
    check(10, 0);
}

/* Where the answer to an offer cannot be left out it is read. */
static void
a_user_without_client_reply_works_as_well(void **state)
{
    (void)state;
    redis_do(rig.server, "ACL SETUSER default -client|reply");
    start();
    for (int i = 0; i < 20; i++) {
        AWAIT(offers() == 1 && waits() == 1);
        put(i);
        AWAIT(shared->runs[i] > 0);
    }
    check(20, 0);
    redis_do(rig.server, "ACL SETUSER default +client|reply");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_job_that_comes_alone_needs_no_call_of_reserve),
        TEST(a_job_that_was_handed_to_a_worker_that_is_gone_is_run_by_the_next_one_L01),
        TEST(a_worker_of_several_queues_gives_back_what_it_was_woken_by),
        TEST(jobs_go_in_turn_to_workers_that_wait),
        TEST(an_offer_in_doubt_of_a_queue_that_refuses_holds_no_slot),
        TEST(offers_are_made_again_after_the_scripts_were_flushed),
        TEST(a_user_without_client_reply_works_as_well),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_offer", tests, handlers);
}
