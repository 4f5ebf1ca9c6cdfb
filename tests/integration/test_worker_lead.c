/*
 * The thread of an idle slot leads its child (decisions/0018): what that saves, and that
 * nothing waits for the handler it runs meanwhile.
 */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "integration/worker_rig.h"

#define SLOTS 4
#define ROW 20 /* short jobs, until a slot leads for sure */
#define CALLS 300
/* The marker with its job, and the reply of the ack, are two; one for what comes between,
 * on a busy machine. A child whose main thread passes each job to a slot needs four. */
#define SLEEPS_A_CALL 3

static struct shared {
    _Atomic int started, ended, release, forks, strangers;
    _Atomic pid_t child, forked;
    _Atomic long threads[SLOTS];
} * shared;

/* A slot's jobs run on its own thread: so there are no more threads than slots. */
static void
note_thread(void)
{
    long me = syscall(SYS_gettid), none = 0;

    for (int i = 0; i < SLOTS; i++) {
        none = 0;
        if (shared->threads[i] == me ||
            atomic_compare_exchange_strong(&shared->threads[i], &none, me) || none == me)
            return;
    }
    shared->strangers++;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    note_thread();
    shared->started++;
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    shared->ended++;
    return shared->release ? WEIR_DONE : WEIR_RETRY;
}

/* Always over at once, but for one with a payload. */
static enum weir_outcome
quick(struct weir_delivery *d, void *context)
{
    size_t len;

    (void)weir_delivery_payload(d, &len);
    if (len > 0)
        return patient(d, context);
    shared->child = getpid();
    note_thread();
    return WEIR_DONE;
}

static enum weir_outcome
nap(struct weir_delivery *d, void *context)
{
    size_t len;
    int ms = atoi(weir_delivery_payload(d, &len));

    (void)context;
    note_thread();
    if (ms > 0)
        poll(NULL, 0, ms);
    shared->ended++;
    return WEIR_DONE;
}

/* Its child comes back from it too, which it must not. */
static enum weir_outcome
forks(struct weir_delivery *d, void *context)
{
    pid_t child = shared->forks++ == 0 ? fork() : getpid();

    (void)d;
    (void)context;
    if (child > 0)
        shared->forked = child;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    if (weir_worker_handle(w, "quick", quick, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "patient", patient, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "nap", nap, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "forks", forks, NULL, NULL) != WEIR_OK)
        abort();
}

static int
setup(void **state)
{
    *shared = (struct shared){0};
    return rig_setup(state);
}

/* Of one queue and with long leases, so that the marker brings the job with it. */
static pid_t
start(void)
{
    static const char *const queues[] = {"q", NULL};

    return rig_start_with((struct weir_worker_options){
        .queues = queues, .concurrency = SLOTS, .lease_ms = 30000, .grace_ms = 100});
}

static void
call_quick(int times)
{
    for (int i = 0; i < times; i++) {
        struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "quick"};
        struct weir_job_view *v = NULL;
        struct weir_error err = {0};

        if (weir_call(rig.client, &job, 30000, &v, &err) != WEIR_OK)
            fail_msg("call %d: %s", i, err.text);
        weir_job_view_free(v);
    }
}

/* How often the threads of this process went to sleep of their own will. */
static long
sleeps_of(pid_t pid)
{
    char path[300], line[200];
    struct dirent *e;
    long sum = 0, n;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL) {
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, e->d_name);
        f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (f && fgets(line, sizeof(line), f))
            sum += sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 ? n : 0;
        if (f)
            fclose(f);
    }
    closedir(dir);
    return sum;
}

/* ---- tests ---- */

static void
a_job_that_comes_alone_is_run_and_answered_without_a_hand_over(void **state)
{
    long before, sleeps;

    (void)state;
    start();
    call_quick(ROW);
    before = sleeps_of(shared->child);
    call_quick(CALLS);
    sleeps = sleeps_of(shared->child) - before;
    printf("%.2f sleeps a call\n", (double)sleeps / CALLS);
    assert_true(sleeps <= SLEEPS_A_CALL * CALLS);
    assert_int_equal(shared->strangers, 0);
}

static void
a_long_job_after_short_ones_keeps_nobody_waiting(void **state)
{
    (void)state;
    start();
    for (int i = 1; i < SLOTS; i++) {
        call_quick(ROW);
        rig_enqueue(JOB(.payload = "long", .payload_len = 4),
                    i == 1   ? "a"
                    : i == 2 ? "b"
                             : "c",
                    i == 2 ? "patient" : "quick");
        AWAIT(shared->started == i);
    }
    call_quick(ROW);
    assert_int_equal(shared->ended, 0);
    shared->release = 1;
    AWAIT(rig_is("a", "done") && rig_is("b", "done") && rig_is("c", "done"));
    call_quick(ROW);
    assert_int_equal(shared->strangers, 0);
}

static void
a_long_job_after_short_ones_is_stopped_in_its_time(void **state)
{
    enum weir_cancel_result out;
    pid_t worker = start();

    (void)state;
    call_quick(ROW);
    rig_enqueue(JOB(.timeout_ms = 300, .max_retry = WEIR_NONE, .payload = "long",
                    .payload_len = 4),
                "late", "quick");
    AWAIT(rig_is("late", "dead"));
    call_quick(ROW);
    rig_enqueue(JOB(), "unwanted", "patient");
    AWAIT(shared->started == 2);
    assert_int_equal(weir_job_cancel(rig.client, "q", "unwanted", &out, NULL), WEIR_OK);
    AWAIT(rig_is("unwanted", "cancelled") || rig_is("unwanted", "gone"));
    call_quick(ROW);
    rig_enqueue(JOB(), "last", "patient");
    AWAIT(shared->started == 3);
    assert_int_equal(rig_end(worker, SIGTERM), 0);
    assert_true(rig_is("last", "ready"));
}

static void
a_process_that_a_handler_forked_does_not_go_on_as_a_worker(void **state)
{
    (void)state;
    start();
    call_quick(ROW);
    rig_enqueue(JOB(), "f", "forks");
    AWAIT(rig_is("f", "done"));
    call_quick(ROW);
    AWAIT(shared->forked > 0 && !process_lives(shared->forked));
    assert_int_equal(rig_numbers("f").deliveries, 1);
}

/* ---- all that in any order ---- */

#define CALLERS 3
#define MIXED_MS 1200

struct caller {
    pthread_t thread;
    unsigned seed;
    int64_t until_ms;
    int calls;
    struct weir_error err;
};

/* Mostly alone, sometimes in crowds; mostly short, sometimes up to 30 ms. */
static void *
call_at_random(void *arg)
{
    struct caller *c = arg;

    while (wr_clock_ms() < c->until_ms && c->err.code == WEIR_OK) {
        unsigned dice = (unsigned)rand_r(&c->seed);
        bool naps = dice % 16 == 0;
        char ms[8];
        struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "nap", .payload = ms};
        struct weir_job_view *v = NULL;

        snprintf(ms, sizeof(ms), "%u", naps ? dice / 16 % 30 : 0);
        job.payload_len = strlen(ms) + 1;
        if (weir_call(rig.client, &job, 30000, &v, &c->err) == WEIR_OK)
            c->calls++;
        weir_job_view_free(v);
        if (dice / 512 % 4 == 0)
            usleep(dice / 2048 % 8000);
    }
    return NULL;
}

static void
each_of_short_and_long_jobs_in_any_order_runs_once_and_is_answered(void **state)
{
    struct caller callers[CALLERS];
    const char *text = getenv("WEIR_SEED");
    unsigned seed = text ? (unsigned)atoi(text) : (unsigned)getpid();
    int calls = 0;

    (void)state;
    print_message("WEIR_SEED=%u\n", seed);
    start();
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.seed = seed + i,
                                     .until_ms = wr_clock_ms() + MIXED_MS};
        assert_int_equal(
            pthread_create(&callers[i].thread, NULL, call_at_random, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        if (callers[i].err.code != WEIR_OK)
            fail_msg("%s", callers[i].err.text);
        calls += callers[i].calls;
    }
    assert_true(calls > 0);
    assert_int_equal(shared->ended, calls);
    assert_int_equal(shared->strangers, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_job_that_comes_alone_is_run_and_answered_without_a_hand_over),
        TEST(a_long_job_after_short_ones_keeps_nobody_waiting),
        TEST(a_long_job_after_short_ones_is_stopped_in_its_time),
        TEST(a_process_that_a_handler_forked_does_not_go_on_as_a_worker),
        TEST(each_of_short_and_long_jobs_in_any_order_runs_once_and_is_answered),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_lead", tests, handlers);
}
