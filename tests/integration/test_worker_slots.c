/* Who gets the slots: weights, strict order, reserved slots, types, and what idle costs.
 */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define STARTS_MAX 20000

/* What the workers write down: the queue (its first letter), number and process of each
 * start, in order. */
static struct shared {
    _Atomic int n, release, inside;
    char queue[STARTS_MAX];
    int number[STARTS_MAX];
    pid_t pid[STARTS_MAX];
} * shared;

static int
note_start(const struct weir_delivery *d)
{
    int n = shared->n++;
    size_t len;
    const char *payload = weir_delivery_payload(d, &len);

    if (n >= STARTS_MAX)
        abort();
    shared->queue[n] = weir_delivery_queue(d)[0];
    shared->number[n] = len > 0 ? atoi(payload) : 0;
    shared->pid[n] = getpid();
    return n;
}

static enum weir_outcome
brief(struct weir_delivery *d, void *context)
{
    (void)context;
    note_start(d);
    return WEIR_DONE;
}

static enum weir_outcome
five_ms(struct weir_delivery *d, void *context)
{
    (void)context;
    note_start(d);
    poll(NULL, 0, 5);
    return WEIR_DONE;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    note_start(d);
    shared->inside++;
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    shared->inside--;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    static const char *const nowhere[] = {"/nowhere/at/all", NULL};

    if (weir_worker_handle(w, "brief", brief, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "five_ms", five_ms, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "patient", patient, NULL, NULL) != WEIR_OK ||
        weir_worker_exec(w, "nowhere", nowhere, NULL) != WEIR_OK)
        abort();
}

static void
other_handlers(struct weir_worker *w)
{
    if (weir_worker_handle(w, "other", brief, NULL, NULL) != WEIR_OK)
        abort();
}

static int
setup(void **state)
{
    memset(shared, 0, sizeof(*shared));
    rig.handlers = handlers;
    return rig_setup(state);
}

static int
teardown(void **state)
{
    shared->release = 1;
    return rig_teardown(state);
}

/* n jobs in one go, numbered from 0, their ids made by the client. */
static void
fill(const char *queue, const char *type, int n)
{
    struct weir_job *jobs = calloc((size_t)n, sizeof(*jobs));
    struct weir_enqueued *out = calloc((size_t)n, sizeof(*out));
    char(*numbers)[12] = calloc((size_t)n, sizeof(*numbers));
    struct weir_error err = {0};

    assert_true(jobs && out && numbers);
    for (int i = 0; i < n; i++) {
        int len = snprintf(numbers[i], sizeof(numbers[i]), "%d", i);

        jobs[i] = (struct weir_job){WEIR_JOB_INIT, .queue = queue, .type = type,
                                    .payload = numbers[i],
                                    .payload_len = (size_t)len + 1};
    }
    for (int i = 0; i < n; i += 1000) {
        size_t some = n - i < 1000 ? (size_t)(n - i) : 1000;

        if (weir_job_enqueue_many(rig.client, jobs + i, some, out, &err) != WEIR_OK)
            fail_msg("%s", err.text);
    }
    free(jobs);
    free(out);
    free(numbers);
}

static int
count(char queue, int from, int to)
{
    int n = 0;

    for (int i = from; i < to; i++)
        n += shared->queue[i] == queue;
    return n;
}

static void
start_shares(const struct weir_worker_share *shares, size_t n, size_t slots, bool strict)
{
    rig_start_with((struct weir_worker_options){.shares = shares,
                                                .shares_count = n,
                                                .concurrency = slots,
                                                .strict = strict,
                                                .lease_ms = 15000});
}

/* ---- weights ---- */

static const struct weir_worker_share six_three_one[] = {
    {"a", 6, 0}, {"b", 3, 0}, {"c", 1, 0}};

static void
assert_shares(int of)
{
    int a = count('a', 0, of), b = count('b', 0, of), c = count('c', 0, of);

    print_message("of %d starts: %d %d %d\n", of, a, b, c);
    assert_in_range(a * 100 / of, 57, 63);
    assert_in_range(b * 100 / of, 27, 33);
    assert_in_range(c * 100 / of, 7, 13);
}

static void
weights_divide_the_starts_of_10000_short_jobs_P01(void **state)
{
    (void)state;
    fill("a", "brief", 7000);
    fill("b", "brief", 4000);
    fill("c", "brief", 2000);
    start_shares(six_three_one, 3, 2, false);
    AWAIT(shared->n >= 10000);
    assert_shares(10000);
    AWAIT(shared->n == 13000);
}

static void
weights_divide_the_starts_of_longer_jobs_P01(void **state)
{
    (void)state;
    fill("a", "five_ms", 300);
    fill("b", "five_ms", 300);
    fill("c", "five_ms", 300);
    start_shares(six_three_one, 3, 2, false);
    AWAIT(shared->n >= 400);
    assert_shares(400);
}

static void
a_queue_that_was_empty_gets_its_share_while_another_is_full_P01(void **state)
{
    int mark;

    (void)state;
    fill("c", "five_ms", 600);
    start_shares(six_three_one, 3, 1, false);
    AWAIT(shared->n >= 5);
    fill("a", "five_ms", 1);
    mark = shared->n;
    AWAIT(count('a', 0, shared->n) == 1);
    assert_in_range(shared->n - mark, 0, 60);
    assert_in_range(count('c', 0, shared->n), 1, 599);
}

static void
a_queue_that_is_mended_is_served_again_beside_two_full_ones(void **state)
{
    static const struct weir_worker_share shares[] = {
        {"a", 1, 0}, {"b", 1, 0}, {"x", 1, 0}};
    const char *waiting = engine_is_stream() ? "stream" : "ready";

    (void)state;
    fill("a", "five_ms", 700);
    fill("b", "five_ms", 700);
    fill("x", "brief", 1);
    redis_do(rig.server, "RENAME weir:{x}:%s weir:{x}:aside", waiting);
    redis_do(rig.server, "SET weir:{x}:%s nonsense", waiting);
    start_shares(shares, 3, 1, false);
    AWAIT(shared->n >= 60);
    assert_int_equal(count('x', 0, shared->n), 0);
    redis_do(rig.server, "RENAME weir:{x}:aside weir:{x}:%s", waiting);
    AWAIT(count('x', 0, shared->n) == 1);
    assert_in_range(shared->n, 60, 1399);
}

/* ---- strict ---- */

static const struct weir_worker_share in_order[] = {
    {"high", 0, 0}, {"low", 0, 0}, {"zero", 0, 0}};

static void
in_strict_order_low_runs_only_when_high_is_empty_P01(void **state)
{
    int mark, low;

    (void)state;
    fill("low", "five_ms", 300);
    fill("high", "five_ms", 20);
    start_shares(in_order, 3, 1, true);
    AWAIT(shared->n >= 30);
    assert_int_equal(count('h', 0, 20), 20);
    fill("high", "five_ms", 20);
    mark = shared->n;
    AWAIT(count('h', 0, shared->n) == 40);
    low = count('l', mark, shared->n);
    print_message("%d low ones started after high ones had come\n", low);
    assert_in_range(low, 0, 6); /* they had been claimed, or come after the last */
    assert_int_equal(count('z', 0, shared->n), 0);
}

/* ---- reserved slots ---- */

static void
long_jobs_leave_the_reserved_slot_free_P01(void **state)
{
    static const struct weir_worker_share shares[] = {{"high", 0, 1}, {"low", 0, 0}};

    (void)state;
    fill("low", "brief", 50); /* so that it would claim ahead */
    start_shares(shares, 2, 3, false);
    AWAIT(shared->n == 50);
    fill("low", "patient", 10);
    AWAIT(shared->inside == 2);
    fill("high", "brief", 5);
    AWAIT(count('h', 0, shared->n) == 5);
    assert_int_equal(shared->inside, 2);
    fill("high", "patient", 3);
    AWAIT(shared->inside == 3);
    shared->release = 1;
    AWAIT(shared->n == 68);
}

static void
a_reserved_slot_is_used_though_strict_order_comes_first_P01(void **state)
{
    static const struct weir_worker_share shares[] = {{"high", 0, 0}, {"low", 0, 1}};

    (void)state;
    fill("high", "patient", 5);
    start_shares(shares, 2, 2, true);
    AWAIT(shared->inside == 1);
    fill("low", "brief", 5);
    AWAIT(count('l', 0, shared->n) == 5);
    assert_int_equal(shared->inside, 1);
}

/* ---- claims ---- */

static void
a_busy_worker_leaves_what_waits_to_another_P03(void **state)
{
    pid_t first, busy;
    int64_t began;

    (void)state;
    first = rig_start_with((struct weir_worker_options){.concurrency = 1});
    busy = worker_child(first, "weir-child");
    fill("q", "brief", 2000); /* so that it claims ahead */
    AWAIT(shared->n == 2000);
    fill("q", "patient", 1);
    AWAIT(shared->inside == 1);
    fill("q", "brief", 10);
    began = wr_clock_ms();
    rig_start_with((struct weir_worker_options){.concurrency = 1});
    AWAIT(shared->n == 2011);
    assert_in_range(wr_clock_ms() - began, 0, 1500); /* the start of a process included */
    assert_int_equal(shared->inside, 1);
    for (int i = 2001; i < 2011; i++)
        assert_int_not_equal(shared->pid[i], busy);
}

static void
one_slot_starts_jobs_in_the_order_they_came_P12(void **state)
{
    (void)state;
    rig_start_with((struct weir_worker_options){.concurrency = 1});
    fill("q", "brief", 10000);
    AWAIT(shared->n == 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(shared->number[i], i);
}

/* ---- types ---- */

static void
a_type_that_one_worker_does_not_run_is_run_by_the_one_that_does(void **state)
{
    struct weir_audit a;

    (void)state;
    rig_start();
    rig_enqueue(JOB(.max_retry = WEIR_NONE), "j", "other");
    fill("q", "brief", 50);
    AWAIT(shared->n == 50); /* it does not block the queue */
    AWAIT(rig_is("j", "delayed"));
    assert_int_equal(rig_numbers("j").deliveries, 0);
    rig.handlers = other_handlers;
    rig_start();
    /* Each time it is due either of the two may be the first to look. */
    for (int i = 0; i < 20 && !rig_is("j", "done"); i++) {
        int turns = 0;

        while (turns < 1000 && !rig_is("j", "done"))
            wait_over(&turns);
    }
    assert_true(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
    a = audit_of(rig.client, "q");
    assert_true(a.shelved >= 1);
    assert_string_equal(a.shelved_type, "other");
}

static void
a_type_whose_command_does_not_start_is_left_to_others_for_a_while(void **state)
{
    (void)state;
    rig_start_with((struct weir_worker_options){.concurrency = 1});
    for (int i = 0; i < 4; i++)
        rig_enqueue(JOB(.max_retry = WEIR_NONE), (const char *[]){"0", "1", "2", "3"}[i],
                    "nowhere");
    AWAIT(audit_of(rig.client, "q").shelved > 0);
    fill("q", "brief", 1); /* its other types go on */
    AWAIT(shared->n == 1);
}

/* ---- options ---- */

static void
assert_refused(struct weir_worker_options o, const char *why)
{
    struct weir_worker *w;
    struct weir_error err = {0};

    o.struct_size = sizeof(o);
    o.concurrency = 2;
    assert_int_equal(weir_worker_new(&o, &w, &err), WEIR_E_ARG);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void
shares_that_contradict_themselves_are_refused_P02(void **state)
{
    static const char *const queues[] = {"a", NULL};
    static const struct weir_worker_share mixed[] = {{"a", 0, 0}, {"b", 2, 0}},
                                          twice[] = {{"a", 1, 0}, {"a", 2, 0}},
                                          many[] = {{"a", 1, 2}, {"b", 1, 1}},
                                          none[] = {{"a", 1, 2}, {"b", 1, 0}},
                                          heavy[] = {{"a", 1001, 0}},
                                          odd[] = {{"a{b", 1, 0}};

    (void)state;
    assert_refused(
        (struct weir_worker_options){.shares = mixed, .shares_count = 2, .strict = true},
        "strict order and weights exclude each other");
    assert_refused((struct weir_worker_options){.strict = true}, "name the queues");
    assert_refused((struct weir_worker_options){.shares = mixed,
                                                .shares_count = 2,
                                                .queues = queues},
                   "not both");
    assert_refused((struct weir_worker_options){.shares = twice, .shares_count = 2},
                   "twice");
    assert_refused((struct weir_worker_options){.shares = many, .shares_count = 2},
                   "3 slots are reserved, a child has 2");
    assert_refused((struct weir_worker_options){.shares = none, .shares_count = 2},
                   "none is left");
    assert_refused((struct weir_worker_options){.shares = heavy, .shares_count = 1},
                   "weight");
    assert_refused((struct weir_worker_options){.shares = odd, .shares_count = 1},
                   "queue name");
}

/* ---- idle ---- */

/* What was sent; what scripts call inside does not count. */
static long
commands(struct redis_server *server)
{
    static const char *const sent[] = {
        "cmdstat_evalsha:calls=", "cmdstat_blpop:calls=", "cmdstat_ping:calls=",
        "cmdstat_lpop:calls=", NULL};
    const char *all = redis_do(server, "INFO commandstats");
    long n = 0;

    for (const char *const *name = sent; *name; name++) {
        const char *text = strstr(all, *name);

        n += text ? strtol(text + strlen(*name), NULL, 10) : 0;
    }
    return n;
}

static void
an_idle_worker_sends_at_most_one_command_a_second_T13(void **state)
{
    static const char *const one[] = {"q", NULL};
    struct redis_server *server = redis_server_start(NULL);
    const char *twenty[21] = {0};
    char names[20][8];
    int64_t start;
    long before[2], after[2];

    (void)state;
    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof(names[i]), "q%d", i);
        twenty[i] = names[i];
        fill(names[i], "brief", 1);
    }
    rig_start_with((struct weir_worker_options){.no_scheduler = true, .queues = twenty});
    rig_start_with((struct weir_worker_options){
        .no_scheduler = true, .queues = one, .url = redis_server_url(server)});
    AWAIT(shared->n == 20);
    start = wr_clock_ms();
    AWAIT(wr_clock_ms() - start > 1500);
    before[0] = commands(rig.server);
    before[1] = commands(server);
    start = wr_clock_ms();
    AWAIT(wr_clock_ms() - start > 10000);
    after[0] = commands(rig.server) - before[0];
    after[1] = commands(server) - before[1];
    print_message("in 10 s: %ld for 20 queues, %ld for one\n", after[0], after[1]);
    /* Ten, and the window may cut off one more of some. */
    assert_in_range(after[0], 1, 13);
    assert_in_range(after[1], 1, 13);
    rig_end(rig.workers[1], SIGTERM);
    redis_server_stop(server);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(weights_divide_the_starts_of_10000_short_jobs_P01),
        TEST(weights_divide_the_starts_of_longer_jobs_P01),
        TEST(a_queue_that_was_empty_gets_its_share_while_another_is_full_P01),
        TEST(a_queue_that_is_mended_is_served_again_beside_two_full_ones),
        TEST(in_strict_order_low_runs_only_when_high_is_empty_P01),
        TEST(long_jobs_leave_the_reserved_slot_free_P01),
        TEST(a_reserved_slot_is_used_though_strict_order_comes_first_P01),
        TEST(a_busy_worker_leaves_what_waits_to_another_P03),
        TEST(one_slot_starts_jobs_in_the_order_they_came_P12),
        TEST(a_type_that_one_worker_does_not_run_is_run_by_the_one_that_does),
        TEST(a_type_whose_command_does_not_start_is_left_to_others_for_a_while),
        TEST(shares_that_contradict_themselves_are_refused_P02),
        TEST(an_idle_worker_sends_at_most_one_command_a_second_T13),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_slots", tests, rig.handlers);
}
