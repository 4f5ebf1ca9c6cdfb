/* Workers under fire: handlers that call exit(), pills in company, stops of every kind,
 * Redis away at the end, a drain whose last answer lets more in. */
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
    _Atomic int runs, started, inside, most_inside, stops, starts_of_children, ends;
    _Atomic int release, pids[8];
} * shared;

static struct weir_worker *running; /* in the worker's own process */
static bool startup_fails;
static char said_to[64]; /* where the next worker writes what it says; "": as we do */

static enum weir_outcome
echo(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    shared->runs++;
    return WEIR_DONE;
}

/* Exits the whole process at its first delivery. */
static enum weir_outcome
exits(struct weir_delivery *d, void *context)
{
    (void)context;
    shared->started++;
    if (weir_delivery_number(d) == 1)
        _exit(*(const char *)weir_delivery_payload(d, &(size_t){0}) - '0');
    return WEIR_DONE;
}

/* Kills its worker at the first delivery; later it counts how many run beside it. */
static enum weir_outcome
pill_once(struct weir_delivery *d, void *context)
{
    (void)context;
    if (weir_delivery_number(d) == 1) {
        shared->started++;
        while (shared->started < 3)
            poll(NULL, 0, 1);
        abort();
    }
    int n = ++shared->inside;

    if (n > shared->most_inside)
        shared->most_inside = n;
    poll(NULL, 0, 30);
    shared->inside--;
    shared->runs++;
    return WEIR_DONE;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    int n = shared->started++;

    (void)context;
    if (n < 8)
        shared->pids[n] = (int)getpid();
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    return shared->release ? WEIR_DONE : WEIR_RETRY;
}

static enum weir_outcome
fails(struct weir_delivery *d, void *context)
{
    (void)patient(d, context);
    return WEIR_RETRY;
}

static enum weir_outcome
deaf(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    shared->started++;
    while (shared->inside == 0)
        poll(NULL, 0, 50);
    return WEIR_DONE;
}

static enum weir_err
startup(void **context, struct weir_error *err)
{
    static int thing = 7;

    if (startup_fails) {
        err->code = WEIR_E_DENIED;
        snprintf(err->text, sizeof(err->text), "the licence server says no");
        return WEIR_E_DENIED;
    }
    shared->starts_of_children++;
    *context = &thing;
    return WEIR_OK;
}

static void
at_end(void *context)
{
    shared->ends += *(int *)context;
}

static void
on_usr1(int sig)
{
    (void)sig;
    weir_worker_stop(running);
    weir_worker_stop(running); /* asking twice is no hurry */
}

static void
handlers(struct weir_worker *w)
{
    static const struct {
        const char *type;
        weir_handler_fn fn;
    } rows[] = {{"echo", echo},       {"exits", exits}, {"pill", pill_once},
                {"patient", patient}, {"fails", fails}, {"deaf", deaf}};
    static const char *const cat[] = {"cat", NULL};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (weir_worker_handle(w, rows[i].type, rows[i].fn, NULL, NULL) != WEIR_OK)
            _exit(70);
    }
    if (weir_worker_exec(w, "cat", cat, NULL) != WEIR_OK)
        _exit(70);
    weir_worker_on_startup(w, startup);
    weir_worker_on_shutdown(w, at_end);
    running = w;
    if (said_to[0] && !freopen(said_to, "ae", stderr))
        _exit(70);
    signal(SIGUSR1, on_usr1);
    signal(SIGCHLD, SIG_IGN); /* as some parents leave it */
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
    return rig_teardown(state);
}

/* ---- */

static void
a_handler_that_calls_exit_ends_neither_its_worker_nor_its_job(void **state)
{
    pid_t pid = rig_start();

    (void)state;
    rig_enqueue(JOB(.payload = "0", .payload_len = 1), "zero", "exits");
    AWAIT(rig_is("zero", "done"));
    rig_enqueue(JOB(.payload = "1", .payload_len = 1), "one", "exits");
    AWAIT(rig_is("one", "done"));
    assert_int_equal(shared->started, 4);
    assert_int_equal(rig_numbers("zero").lost, 0); /* an answer clears it */
    assert_int_equal(rig_numbers("zero").deliveries, 2);
    assert_true(process_lives(pid));
}

static void
jobs_that_took_their_worker_with_them_run_one_at_a_time_L16(void **state)
{
    (void)state;
    rig_enqueue(JOB(), "a", "pill");
    rig_enqueue(JOB(), "b", "pill");
    rig_enqueue(JOB(), "c", "pill");
    rig_start_with((struct weir_worker_options){.concurrency = 3});
    AWAIT(rig_is("a", "done") && rig_is("b", "done") && rig_is("c", "done"));
    assert_int_equal(shared->runs, 3);
    assert_int_equal(shared->most_inside, 1);
}

/* The only worker's child says so, and so do its heartbeats. */
static void
assert_alone_is_told(const char *id)
{
    char line[300], wanted[300];
    bool said = false, told = false;
    int turns = 0;
    FILE *f = fopen(said_to, "re");

    snprintf(wanted, sizeof(wanted),
             "job %s will run alone, for a worker was lost with it", id);
    assert_non_null(f);
    while (!said && wait_over(&turns)) {
        clearerr(f);
        while (!said && fgets(line, sizeof(line), f))
            said = strstr(line, wanted) && strstr(line, "waits for the end of 1");
    }
    fclose(f);
    assert_true(said);
    snprintf(wanted, sizeof(wanted), "q\t%s", id);
    while (!told && wait_over(&turns)) {
        char ids[512];

        snprintf(ids, sizeof(ids), "%s",
                 redis_do(rig.server, "ZRANGE weir:workers 0 -1"));
        for (char *at = strtok(ids, " "); at && !told; at = strtok(NULL, " "))
            told = strcmp(redis_do(rig.server, "HGET weir:worker:%s alone", at),
                          wanted) == 0;
    }
    assert_true(told);
}

static void
a_job_that_waits_to_run_alone_keeps_its_lease_and_is_not_charged(void **state)
{
    struct weir_worker_options o = {.concurrency = 1};
    pid_t first = rig_start_with(o);
    int64_t start;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    o.concurrency = 2;
    snprintf(said_to, sizeof(said_to), "/tmp/weir-said-%d-XXXXXX", (int)getpid());
    close(mkstemp(said_to));
    rig_start_with(o);
    rig_enqueue(JOB(), "neighbour", "patient");
    AWAIT(shared->started == 2);
    rig_lose(first);
    AWAIT(rig_numbers("j").lost == 1 && rig_numbers("j").deliveries == 2);
    start = wr_clock_ms();
    AWAIT(wr_clock_ms() - start > 5000); /* two leases and what a reclaim may take */
    assert_int_equal(shared->started, 2);
    assert_int_equal(rig_numbers("j").lost, 1);
    assert_int_equal(rig_numbers("j").deliveries, 2);
    rig_enqueue(JOB(), "later", "echo"); /* and nothing new is claimed */
    assert_true(rig_is("later", "ready"));
    assert_alone_is_told("j");
    unlink(said_to);
    said_to[0] = '\0';
    shared->release = 1;
    AWAIT(rig_is("j", "done") && rig_is("neighbour", "done"));
    AWAIT(rig_is("later", "done"));
    assert_int_equal(shared->started, 3);
}

static void
short_jobs_dealt_behind_a_long_one_do_not_wait_for_it(void **state)
{
    struct weir_job jobs[200];
    struct weir_enqueued out[200];

    (void)state;
    rig_start_with((struct weir_worker_options){.lease_ms = 10000});
    for (int i = 0; i < 200; i++)
        jobs[i] = (struct weir_job){WEIR_JOB_INIT, .queue = "q", .type = "echo"};
    assert_int_equal(weir_job_enqueue_many(rig.client, jobs, 200, out, NULL), WEIR_OK);
    AWAIT(shared->runs == 200); /* now it is known that jobs are short */
    jobs[0].type = "patient";
    assert_int_equal(weir_job_enqueue_many(rig.client, jobs, 200, out, NULL), WEIR_OK);
    AWAIT(shared->runs == 399);
    assert_int_equal(shared->started, 1);
    AWAIT(audit_of(rig.client, "q").done == 399);
    assert_int_equal(audit_of(rig.client, "q").released, 0); /* nobody gave up waiting */
    shared->release = 1;
    AWAIT(audit_of(rig.client, "q").done == 400);
}

static void
a_second_signal_hurries_and_the_job_goes_back_uncharged(void **state)
{
    pid_t pid = rig_start();
    int64_t start;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    kill(pid, SIGTERM);
    poll(NULL, 0, 200);
    start = wr_clock_ms();
    assert_int_equal(rig_end(pid, SIGINT), 0);
    assert_true(wr_clock_ms() - start < 5000);
    assert_true(rig_is("j", "ready"));
    assert_int_equal(rig_numbers("j").attempts, 0);
    assert_int_equal(rig_numbers("j").lost, 0);
}

static void
weir_worker_stop_gives_running_jobs_their_grace_also_when_called_twice(void **state)
{
    pid_t pid = rig_start();

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    for (int i = 0; i < 3; i++) {
        kill(pid, SIGUSR1);
        poll(NULL, 0, 150); /* time in which a hurry would stop it */
    }
    assert_true(rig_is("j", "processing"));
    shared->release = 1;
    assert_int_equal(rig_end(pid, 0), 0);
    assert_true(rig_is("j", "done"));
    assert_int_equal(shared->ends, 7 * shared->starts_of_children);
}

static void
a_handler_that_never_stops_does_not_keep_its_job_nor_the_worker(void **state)
{
    pid_t pid = rig_start_with((struct weir_worker_options){.grace_ms = 100});
    int64_t start = wr_clock_ms();

    (void)state;
    rig_enqueue(JOB(.timeout_ms = WEIR_NONE), "j", "deaf");
    AWAIT(shared->started == 1);
    assert_int_equal(rig_end(pid, SIGTERM), 0);
    assert_true(wr_clock_ms() - start < 15000);
    assert_true(rig_is("j", "ready"));
    assert_int_equal(rig_numbers("j").lost, 0);
    assert_int_equal(rig_numbers("j").interrupted, 1);
}

static void
with_redis_away_a_worker_ends_soon_and_says_that_leases_lapse_S07(void **state)
{
    pid_t pid = rig_start_with(
        (struct weir_worker_options){.grace_ms = 2000, .lease_ms = 5000});
    int64_t start;
    int status;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    AWAIT(shared->started == 1);
    redis_server_pause(rig.server);
    start = wr_clock_ms();
    status = rig_end(pid, SIGTERM);
    start = wr_clock_ms() - start;
    redis_server_resume(rig.server);
    assert_int_equal(status, weir_err_exit_status(WEIR_E_CONNECT));
    print_message("ended %lld ms after it was told, with 2000 ms of grace\n",
                  (long long)start);
    assert_true(start < 8000); /* promised: grace + 2 s */
    rig_start();
    AWAIT(shared->started == 2);
    shared->release = 1;
    AWAIT(rig_is("j", "done"));
}

static void
max_jobs_counts_over_all_children(void **state)
{
    pid_t pid;
    char id[16];

    (void)state;
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "j%d", i);
        rig_enqueue(JOB(), id, "echo");
    }
    pid = rig_start_with((struct weir_worker_options){.processes = 2, .max_jobs = 10});
    assert_int_equal(rig_end(pid, 0), 0);
    assert_int_equal(shared->runs, 10);
    assert_int_equal(audit_of(rig.client, "q").ready, 40);
}

static void
drain_ends_when_nothing_is_ready(void **state)
{
    pid_t pid;
    char id[16];

    (void)state;
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "j%d", i);
        rig_enqueue(JOB(), id, "echo");
    }
    pid = rig_start_with((struct weir_worker_options){.drain = true});
    assert_int_equal(rig_end(pid, 0), 0);
    assert_int_equal(shared->runs, 50);
}

/* Does a connection of this name block at the server? */
static bool
waits_there(const char *name)
{
    const char *line = redis_do(rig.server, "CLIENT LIST TYPE normal");

    for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *end = line + strcspn(line, "\n"), *called = strstr(line, name),
                   *waits = strstr(line, " flags=b");

        if (called && called < end && waits && waits < end)
            return true;
    }
    return false;
}

static bool
no_marker(void)
{
    return strcmp(redis_do(rig.server, "LLEN weir:{q}:wake"), "0") == 0;
}

/* The worker's wait takes a marker at the server and the worker does not hear of it. A
 * wait for hints alone takes none: then once more. */
static void
take_marker_unheard(struct proxy *proxy)
{
    for (int i = 0; i < 100; i++) {
        int64_t end;

        AWAIT(waits_there(" name=weir-wait "));
        proxy_stall_named(proxy, "weir-wait");
        redis_do(rig.server, "LPUSH weir:{q}:wake 1");
        end = wr_clock_ms() + 200;
        while (wr_clock_ms() < end) {
            if (no_marker())
                return;
        }
        proxy_forward(proxy);
        AWAIT(no_marker());
    }
    fail_msg("no wait took a marker");
}

/* A marker comes while nothing is ready, and the network holds back what the worker then
 * was told: it hears of the empty queue when its last answer has let in the next job. */
static void
what_the_last_answer_let_in(const char *type, const char *end)
{
    static const char *const queues[] = {"q", NULL};
    struct proxy *proxy = proxy_start(redis_server_socket(rig.server));
    pid_t pid;

    rig.url = proxy_url(proxy);
    rig_enqueue(JOB(.order_key = "K", .max_retry = WEIR_NONE), "a", type);
    rig_enqueue(JOB(.order_key = "K"), "b", "echo");
    pid = rig_start_with(
        (struct weir_worker_options){.queues = queues, .lease_ms = 15000, .drain = true});
    AWAIT(shared->started == 1);
    take_marker_unheard(proxy);
    shared->release = 1;
    AWAIT(rig_is("a", end));
    proxy_forward(proxy);
    assert_int_equal(rig_end(pid, 0), 0);
    assert_int_equal(shared->runs, 1);
    assert_true(rig_is("b", "done"));
    proxy_stop(proxy);
}

static void
drain_runs_what_its_last_answer_let_in_R07(void **state)
{
    (void)state;
    what_the_last_answer_let_in("patient", "done");
}

static void
so_it_does_behind_a_job_that_died_R07(void **state)
{
    (void)state;
    what_the_last_answer_let_in("fails", "dead");
}

static void
a_startup_hook_that_fails_ends_the_worker_with_its_error(void **state)
{
    pid_t pid;

    (void)state;
    rig_enqueue(JOB(), "j", "echo");
    startup_fails = true;
    pid = rig_start();
    startup_fails = false;
    assert_int_equal(rig_end(pid, 0), weir_err_exit_status(WEIR_E_DENIED));
    assert_int_equal(shared->runs, 0);
}

static void
a_spawner_that_is_killed_costs_its_child_and_no_attempt(void **state)
{
    pid_t pid = rig_start(), child = worker_child(pid, "weir-child");

    (void)state;
    kill(worker_child(child, "weir-spawner"), SIGKILL);
    rig_enqueue(JOB(.max_retry = WEIR_NONE, .payload = "hi", .payload_len = 2), "j",
                "cat");
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").attempts, 1);
    assert_false(process_lives(child));
}

static void
a_job_without_a_handler_waits_for_a_worker_that_has_one(void **state)
{
    struct weir_job_view *v;

    (void)state;
    rig_start();
    rig_enqueue(JOB(.max_retry = WEIR_NONE), "j", "nobody");
    AWAIT(rig_is("j", "delayed"));
    assert_int_equal(rig_numbers("j").attempts, 0);
    assert_int_equal(weir_job_inspect(rig.client, "q", "j", &v, NULL), WEIR_OK);
    assert_non_null(
        strstr(weir_job_view_errors(v), "no_handler no handler for type nobody"));
    assert_int_equal(rig_numbers("j").deliveries, 0);
    weir_job_view_free(v);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_handler_that_calls_exit_ends_neither_its_worker_nor_its_job),
        TEST(jobs_that_took_their_worker_with_them_run_one_at_a_time_L16),
        TEST(a_job_that_waits_to_run_alone_keeps_its_lease_and_is_not_charged),
        TEST(short_jobs_dealt_behind_a_long_one_do_not_wait_for_it),
        TEST(a_second_signal_hurries_and_the_job_goes_back_uncharged),
        TEST(weir_worker_stop_gives_running_jobs_their_grace_also_when_called_twice),
        TEST(a_handler_that_never_stops_does_not_keep_its_job_nor_the_worker),
        TEST(with_redis_away_a_worker_ends_soon_and_says_that_leases_lapse_S07),
        TEST(max_jobs_counts_over_all_children),
        TEST(drain_ends_when_nothing_is_ready),
        TEST(drain_runs_what_its_last_answer_let_in_R07),
        TEST(so_it_does_behind_a_job_that_died_R07),
        TEST(a_startup_hook_that_fails_ends_the_worker_with_its_error),
        TEST(a_spawner_that_is_killed_costs_its_child_and_no_attempt),
        TEST(a_job_without_a_handler_waits_for_a_worker_that_has_one),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_faults", tests, handlers);
}
