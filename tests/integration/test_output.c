/* What jobs of real workers print, as a client elsewhere reads it. */
#include "integration/worker_rig.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "support/proxy.h"
#include "worker/output.h"

#define LEASE_MS 3000 /* busy machines renew late */
#define POUR_JOBS 8

static char folder[64];

static bool
has_mark(const char *name)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void
make_mark(const char *name)
{
    char path[200];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "we");
    if (f)
        fclose(f);
}

/* ---- handlers ---- */

static enum weir_outcome
speak(struct weir_delivery *d, void *context)
{
    char longer[3000];

    (void)context;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    weir_delivery_log(d, "job %s begins", weir_delivery_id(d));
    weir_delivery_log(d, "%s", longer);
    weir_delivery_log(d, "%s", "");
    while (!has_mark("go") && !weir_delivery_should_stop(d))
        poll(NULL, 0, 5);
    weir_delivery_log(d, "it ends");
    return WEIR_DONE;
}

static void *
speak_often(void *arg)
{
    for (int i = 0; i < 500; i++)
        weir_delivery_log(arg, "%d", i);
    return NULL;
}

static enum weir_outcome
speak_in_threads(struct weir_delivery *d, void *context)
{
    pthread_t threads[4];

    (void)context;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, speak_often, d);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return WEIR_DONE;
}

/* 200,000 lines; says how long that took. */
static enum weir_outcome
flood(struct weir_delivery *d, void *context)
{
    int64_t began;
    char took[32];

    (void)context;
    weir_delivery_log(d, "ready");
    while (!has_mark("go"))
        poll(NULL, 0, 5);
    began = wr_clock_ms();
    for (int i = 0; i < 200000; i++)
        weir_delivery_log(d, "line %06d", i);
    snprintf(took, sizeof(took), "%d", (int)(wr_clock_ms() - began));
    weir_delivery_set_result(d, took, strlen(took));
    make_mark("flooded");
    return WEIR_DONE;
}

/* As much as can be stored, and more, for as long as it runs. */
static enum weir_outcome
pour(struct weir_delivery *d, void *context)
{
    char line[1000];

    (void)context;
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    while (!has_mark("go") && !weir_delivery_should_stop(d)) {
        for (int i = 0; i < 20; i++)
            weir_delivery_log(d, "%s", line);
        poll(NULL, 0, 10);
    }
    return weir_delivery_should_stop(d) ? WEIR_RETRY : WEIR_DONE;
}

/* Not so fast that any of it is left out. */
static enum weir_outcome
count(struct weir_delivery *d, void *context)
{
    int i = 0;

    (void)context;
    while (!has_mark("go") && !weir_delivery_should_stop(d)) {
        weir_delivery_log(d, "%d", i++);
        poll(NULL, 0, 25);
    }
    weir_delivery_log(d, "end %d", i);
    return weir_delivery_should_stop(d) ? WEIR_RETRY : WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    static const char *const sh[] = {"/bin/sh", NULL};
    static const char *const both[] = {"echo out; echo err >&2", NULL};
    const struct weir_exec_options none = {WEIR_EXEC_OPTIONS_INIT, .argv = both,
                                           .shell = true, .result = WEIR_EXEC_NONE};

    if (weir_worker_handle(w, "speak", speak, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "threads", speak_in_threads, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "flood", flood, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "pour", pour, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "count", count, NULL, NULL) != WEIR_OK ||
        weir_worker_exec_with(w, "none", &none, NULL) != WEIR_OK ||
        weir_worker_exec(w, "sh", sh, NULL) != WEIR_OK)
        _exit(70);
}

/* ---- reading ---- */

static struct {
    struct wr_buf text;
    int64_t left_out, lines, at; /* at: of the last line */
} got;

static bool
take(const struct weir_output_line *line, void *context)
{
    (void)context;
    wr_buf_add(&got.text, line->ptr, line->len);
    got.left_out += line->left_out;
    got.lines += !line->part && line->left_out == 0;
    got.at = line->at;
    return true;
}

static const char *
output_of(const char *id, int64_t run)
{
    struct weir_output_place place = {.run = run};

    wr_buf_clear(&got.text);
    wr_buf_add_str(&got.text, "");
    got.left_out = got.lines = 0;
    if (weir_job_output(rig.client, "q", id, &place, take, NULL, NULL) != WEIR_OK)
        wr_buf_clear(&got.text);
    return got.text.ptr;
}

static bool
shows(const char *id, const char *what)
{
    return strstr(output_of(id, 0), what) != NULL;
}

static int64_t
stat_of(const char *name)
{
    return atoll(redis_do(rig.server, "HGET weir:{q}:stats %s", name));
}

static int64_t
peak_kib(pid_t pid)
{
    char path[64], line[200];
    long kib = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, "VmHWM: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* ---- tests ---- */

static void
lines_of_a_handler_are_read_elsewhere_while_it_runs_X09(void **state)
{
    struct weir_output_place place = {0};

    (void)state;
    rig_start();
    rig_enqueue(JOB(0), "a", "speak");
    AWAIT(shows("a", "job a begins\nxxx"));
    AWAIT(shows("a", "xxx\n\n"));
    assert_false(shows("a", "it ends"));
    output_of("a", 0);
    assert_int_equal(weir_job_output(rig.client, NULL, "a", &place, take, NULL, NULL),
                     WEIR_OK);
    assert_true(place.open && place.kept && place.run == 1);
    assert_string_equal(place.state, "processing");
    make_mark("go");
    AWAIT(rig_is("a", "done"));
    assert_true(shows("a", "it ends\n")); /* at once: it was stored before the answer */
    wr_buf_clear(&got.text);
    assert_int_equal(weir_job_output(rig.client, NULL, "a", &place, take, NULL, NULL),
                     WEIR_OK);
    assert_string_equal(got.text.ptr, "it ends\n"); /* what is new, and no more */
    assert_false(place.open);
}

static bool
waits_for_two_seconds(void)
{
    const char *line = strstr(redis_do(rig.server, "CLIENT LIST"), "name=weir-wait ");
    const char *idle = line ? strstr(line, " idle=") : NULL;

    return idle && atoi(idle + strlen(" idle=")) >= 2;
}

/* The offer that brings such a job was sent when the wait for it began. */
static void
what_is_printed_after_a_long_wait_for_work_is_not_of_the_future_X09(void **state)
{
    static const char *const queues[] = {"q", NULL};
    int64_t now;

    (void)state;
    rig_start_with((struct weir_worker_options){WEIR_WORKER_OPTIONS_INIT,
                                                .queues = queues, .lease_ms = 15000});
    AWAIT(waits_for_two_seconds());
    make_mark("go");
    rig_enqueue(JOB(0), "a", "speak");
    AWAIT(rig_is("a", "done"));
    now = atoll(redis_do(rig.server, "TIME")) * 1000 +
          1000; /* whole seconds, rounded up */
    assert_true(shows("a", "it ends\n"));
    assert_true(got.at <= now);
}

static void
threads_of_one_handler_may_speak_at_once(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(0), "a", "threads");
    AWAIT(rig_is("a", "done"));
    output_of("a", 0);
    assert_int_equal(got.lines, 2000);
    assert_int_equal(got.left_out, 0);
}

/* Nothing waits for Redis, and what it missed is counted. */
static void
a_job_prints_at_its_own_speed_while_redis_stands_still_N01(void **state)
{
    struct weir_worker_options o = {WEIR_WORKER_OPTIONS_INIT, .lease_ms = 60000};
    struct weir_job_view *v;
    const char *took;
    size_t len;

    (void)state;
    rig_start_with(o);
    rig_enqueue(JOB(0), "a", "flood");
    AWAIT(shows("a", "ready"));
    redis_server_pause(rig.server);
    make_mark("go");
    AWAIT(has_mark("flooded"));
    redis_server_resume(rig.server);
    AWAIT(rig_is("a", "done"));
    assert_int_equal(weir_job_inspect(rig.client, "q", "a", &v, NULL), WEIR_OK);
    took = weir_job_view_result(v, &len);
    assert_true(len > 0 && atoi(took) < 5000);
    weir_job_view_free(v);
    AWAIT(shows("a", "line 199999\n"));
    assert_int_equal((int64_t)got.text.len + got.left_out, 6 + 200000 * 12);
}

static void
a_flood_of_100_MB_fills_neither_worker_nor_redis_F39(void **state)
{
    static const char script[] = "yes 0123456789 | head -c 100000000 >&2\n";
    int64_t child_kib, spawner_kib;
    pid_t worker, child, spawner;

    (void)state;
    worker = rig_start();
    child = worker_child(worker, "weir-child");
    spawner = worker_child(child, "weir-spawner");
    rig_enqueue(JOB(.payload = "echo one >&2", .payload_len = 12), "a", "sh");
    AWAIT(rig_is("a", "done"));
    child_kib = peak_kib(child);
    spawner_kib = peak_kib(spawner);
    rig_enqueue(JOB(.payload = script, .payload_len = strlen(script)), "b", "sh");
    AWAIT(rig_is("b", "done"));
    assert_in_range(peak_kib(child) - child_kib, 0, 8192);
    assert_in_range(peak_kib(spawner) - spawner_kib, 0, 8192);
    assert_in_range(stat_of("log_bytes"), 64000, 100000);
    output_of("b", 0);
    assert_int_equal((int64_t)got.text.len + got.left_out, 100000000);
}

static void
each_run_has_its_own_output_also_one_whose_child_was_killed_L01(void **state)
{
    static const char script[] =
        "echo run $WEIR_DELIVERY >&2; [ $WEIR_DELIVERY -gt 1 ] ||"
        " exec sleep 100\n";
    pid_t worker;

    (void)state;
    worker = rig_start();
    rig_enqueue(JOB(.payload = script, .payload_len = strlen(script)), "a", "sh");
    AWAIT(shows("a", "run 1\n"));
    kill(worker_child(worker, "weir-child"), SIGKILL);
    AWAIT(rig_is("a", "done"));
    assert_string_equal(output_of("a", 1), "run 1\n");
    assert_string_equal(output_of("a", 2), "run 2\n");
}

static void
without_a_result_both_streams_are_the_output(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(0), "a", "none");
    AWAIT(rig_is("a", "done"));
    assert_true(shows("a", "out\n") && shows("a", "err\n"));
}

/* ---- beside the renewals, on one connection ---- */

static int64_t
least_left(int jobs)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < jobs; i++) {
        struct weir_job_numbers n = rig_numbers((char[]){(char)('0' + i), '\0'});

        least = n.lease_until - n.now < least ? n.lease_until - n.now : least;
    }
    return least;
}

/* 32 KiB, and the part of one run more, and the words beside them. */
static void
assert_pieces_are_small(struct proxy *proxy)
{
    size_t largest = proxy_largest_request(proxy);

    print_message("the largest piece had %zu bytes\n", largest);
    assert_true(largest > WR_OUTPUT_PART_MAX); /* several runs share one */
    assert_true(largest <= 32768 + WR_OUTPUT_PART_MAX + WR_OUTPUT_LINE_MAX + 2048);
}

static void
a_flood_over_a_slow_link_delays_no_renewal_by_more_than_a_piece_L08(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(rig.server));
    int64_t end, least = LEASE_MS;

    (void)state;
    proxy_measure_named(proxy, "weir-lease");
    rig.url = proxy_url(proxy);
    rig_start_with(
        (struct weir_worker_options){.lease_ms = LEASE_MS, .concurrency = POUR_JOBS});
    for (int i = 0; i < POUR_JOBS; i++)
        rig_enqueue(JOB(0), (char[]){(char)('0' + i), '\0'}, "pour");
    for (int i = 0; i < POUR_JOBS; i++)
        AWAIT(shows((char[]){(char)('0' + i), '\0'}, "xxx"));
    proxy_delay(proxy, 30);
    for (end = wr_clock_ms() + LEASE_MS; wr_clock_ms() < end; poll(NULL, 0, 20)) {
        int64_t left = least_left(POUR_JOBS);

        least = left < least ? left : least;
    }
    print_message("the least left of a lease was %lld ms\n", (long long)least);
    assert_true(least > 0);
    assert_pieces_are_small(proxy);
    proxy_delay(proxy, 0);
    make_mark("go");
    AWAIT(audit_of(rig.client, "q").done == POUR_JOBS);
    assert_int_equal(audit_of(rig.client, "q").deliveries, POUR_JOBS);
    rig_end(rig.workers[0], SIGTERM);
    rig.url = NULL;
    proxy_stop(proxy);
}

/* All of it, in its order. */
static void
assert_counted(void)
{
    char line[32];
    const char *at = output_of("a", 0), *end = strstr(at, "end ");
    int n = end ? atoi(end + strlen("end ")) : 0;

    assert_true(n > 20);
    assert_int_equal(got.left_out, 0);
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof(line), "%d\n", i);
        if (strncmp(at, line, strlen(line)) != 0)
            fail_msg("line %d is %.20s", i, at);
        at += strlen(line);
    }
    assert_ptr_equal(at, end);
}

static void
what_is_printed_while_the_connection_is_killed_is_whole_and_in_order_N01(void **state)
{
    int killed = 0;

    (void)state;
    rig_start_with((struct weir_worker_options){.lease_ms = LEASE_MS});
    rig_enqueue(JOB(0), "a", "count");
    AWAIT(shows("a", "0\n"));
    for (int i = 0; i < 15; i++) {
        killed += atoi(redis_do(rig.server, "CLIENT KILL TYPE normal SKIPME yes"));
        poll(NULL, 0, 100);
    }
    assert_true(killed >= 15);
    make_mark("go");
    AWAIT(rig_is("a", "done"));
    AWAIT(shows("a", "end "));
    assert_counted();
    assert_int_equal(rig_numbers("a").deliveries, 1);
}

/* However the part of output that is on its way falls to the renewal. */
static void
a_stall_of_a_third_of_the_lease_ends_no_job_that_prints_L08(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(rig.server));
    unsigned seed = getenv("WEIR_SEED") ? (unsigned)atoi(getenv("WEIR_SEED"))
                                        : (unsigned)getpid();

    (void)state;
    print_message("WEIR_SEED=%u\n", seed);
    rig.url = proxy_url(proxy);
    rig_start_with((struct weir_worker_options){.lease_ms = LEASE_MS});
    rig_enqueue(JOB(0), "a", "count");
    AWAIT(shows("a", "0\n"));
    for (int i = 0; i < 2; i++) {
        poll(NULL, 0, rand_r(&seed) % (LEASE_MS / 3));
        proxy_stall(proxy);
        poll(NULL, 0, LEASE_MS / 3);
        proxy_forward(proxy);
        poll(NULL, 0, LEASE_MS / 6);
    }
    make_mark("go");
    AWAIT(rig_is("a", "done"));
    AWAIT(shows("a", "end "));
    assert_counted();
    assert_int_equal(rig_numbers("a").deliveries, 1);
    rig_end(rig.workers[0], SIGTERM);
    rig.url = NULL;
    proxy_stop(proxy);
}

static int
setup(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/weir-output-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    rig.handlers = handlers;
    return rig_setup(state);
}

static int
teardown(void **state)
{
    char command[100];
    int rc = rig_teardown(state);

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command) == 0 ? rc : -1;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(lines_of_a_handler_are_read_elsewhere_while_it_runs_X09),
        T(what_is_printed_after_a_long_wait_for_work_is_not_of_the_future_X09),
        T(threads_of_one_handler_may_speak_at_once),
        T(a_job_prints_at_its_own_speed_while_redis_stands_still_N01),
        T(a_flood_of_100_MB_fills_neither_worker_nor_redis_F39),
        T(each_run_has_its_own_output_also_one_whose_child_was_killed_L01),
        T(without_a_result_both_streams_are_the_output),
        T(a_flood_over_a_slow_link_delays_no_renewal_by_more_than_a_piece_L08),
        T(what_is_printed_while_the_connection_is_killed_is_whole_and_in_order_N01),
        T(a_stall_of_a_third_of_the_lease_ends_no_job_that_prints_L08),
    };

    return RIG_RUN("output", tests, rig.handlers);
}
