/* The scheduler against a real server: punctual, alone, and calm when Redis is not. */
#include "support/test_program.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sched/sched.h"
#include "support/engine.h"
#include "support/redis_server.h"
#include "support/worker_process.h"

#define COMMAND_TIMEOUT_MS 2000
#define HANG_MS 2000 /* late enough to be a fault on the busiest machine */

static struct redis_server *redis;
static struct wr_server *server;
static struct wr_store *store;
static struct wr_queue *queue;
static struct wr_channel channel;
static int64_t call;

/* ---- schedulers ---- */

struct running {
    struct wr_server *server;
    struct wr_sched *sched;
    struct wr_sched_options options;
    int stop_fd;
    pthread_t thread;
};

static void
connect_store(struct wr_server **out_server, struct wr_store **out)
{
    struct wr_server_options so = {.connect_timeout_ms = COMMAND_TIMEOUT_MS};
    struct wr_store_options to = {.command_timeout_ms = COMMAND_TIMEOUT_MS};

    assert_int_equal(wr_url_parse(redis_server_url(redis), &so.url, NULL), WEIR_OK);
    assert_int_equal(wr_server_new(&so, out_server, NULL), WEIR_OK);
    to.server = *out_server;
    assert_int_equal(wr_store_new(&to, out, NULL), WEIR_OK);
}

static void *
run(void *arg)
{
    struct running *r = arg;

    wr_sched_run(r->sched, r->stop_fd);
    return NULL;
}

static void
prepare(struct running *r, int64_t lease_ms)
{
    r->options = (struct wr_sched_options){.lease_ms = lease_ms};
    connect_store(&r->server, &r->options.store);
    r->stop_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(r->stop_fd >= 0);
    assert_int_equal(wr_sched_new(&r->options, &r->sched, NULL), WEIR_OK);
}

static void
finish(struct running *r)
{
    wr_sched_free(r->sched);
    wr_store_free(r->options.store);
    wr_server_free(r->server);
    close(r->stop_fd);
}

static void
start(struct running *r, int64_t lease_ms)
{
    prepare(r, lease_ms);
    assert_int_equal(pthread_create(&r->thread, NULL, run, r), 0);
}

/* Answers how long it took. */
static int64_t
stop(struct running *r)
{
    int64_t began = wr_clock_ms();

    assert_int_equal(eventfd_write(r->stop_fd, 1), 0);
    assert_int_equal(pthread_join(r->thread, NULL), 0);
    finish(r);
    return wr_clock_ms() - began;
}

/* One in a process of its own, to be killed. */
static pid_t
start_process(int64_t lease_ms)
{
    pid_t parent = getpid(), pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct running r;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        prepare(&r, lease_ms);
        wr_sched_run(r.sched, r.stop_fd);
        _exit(0);
    }
    return pid;
}

static void
kill_process(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- jobs ---- */

static void
put_in(struct wr_queue *q, const char *id, const char *tail, const char *due)
{
    struct wr_admit item = {.id = wr_span_str(id),
                            .head = wr_span_str("1 t"),
                            .tail = wr_span_str(tail),
                            .due = wr_span_str(due)};
    struct wr_admitted word;

    assert_int_equal(wr_store_enqueue(store, q, &channel, &item, 1, &word, NULL, NULL),
                     WEIR_OK);
    assert_int_equal(word.word, WR_ADMIT_STORED);
}

static void
put(const char *id, const char *due)
{
    put_in(queue, id, "\nx", due);
}

/* Takes one job; false if none is ready. What was taken is never answered. */
static bool
take_from(struct wr_queue *q, const char *worker, int64_t lease_ms, char id[64],
          char token[24])
{
    struct wr_reserve want = {
        .worker = worker, .call = ++call, .free = 1, .lease_ms = lease_ms};
    struct wr_batch batch;
    bool got;

    assert_int_equal(wr_store_reserve(store, q, &want, &batch, NULL), WEIR_OK);
    got = batch.n == 1;
    if (got) {
        snprintf(id, 64, "%.*s", (int)batch.jobs[0].id.len,
                 (const char *)batch.jobs[0].id.ptr);
        if (token)
            snprintf(token, 24, "%s", batch.jobs[0].state.token);
    }
    wr_batch_fini(&batch);
    return got;
}

static long
stat_of(const char *counter)
{
    return atol(redis_do(redis, "HGET weir:{q}:stats %s", counter));
}

static long
size_of(const char *command, const char *key)
{
    return atol(redis_do(redis, "%s weir:{q}:%s", command, key));
}

static bool
is_led(const char *name)
{
    return strcmp(redis_do(redis, "EXISTS weir:{%s}:lock", name), "1") == 0;
}

static long
commands(void)
{
    static const char *const names[] = {
        "cmdstat_evalsha:calls=", "cmdstat_blpop:calls=", "cmdstat_ping:calls="};
    const char *text = redis_do(redis, "INFO commandstats");
    long sum = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *at = strstr(text, names[i]);

        sum += at ? atol(at + strlen(names[i])) : 0;
    }
    return sum;
}

/* ---- fixtures ---- */

static int
open_all(void **state)
{
    static const char *const extra[] = {"--appendonly", "yes", "--appendfsync", "always",
                                        NULL};

    (void)state;
    redis = redis_server_start(extra);
    connect_store(&server, &store);
    return 0;
}

static int
close_all(void **state)
{
    (void)state;
    wr_store_free(store);
    wr_server_free(server);
    redis_server_stop(redis);
    return 0;
}

/* A store of its own for each test: it remembers what it put into the registry. */
static int
fresh(void **state)
{
    (void)state;
    redis_do(redis, "FLUSHALL");
    wr_store_free(store);
    wr_server_free(server);
    connect_store(&server, &store);
    wr_channel_renew(&channel);
    assert_int_equal(wr_store_queue(store, "q", &queue, NULL), WEIR_OK);
    return 0;
}

static int
same_engine(void **state)
{
    (void)state;
    engine_check(redis);
    return 0;
}

/* ---- promotion ---- */

#define JOBS 100

/* Takes jobs as they come, until all have. A job that is here before its time, by the
 * clock that the server has as well, is early. */
static void
take_all_in_time(size_t n)
{
    int64_t deadline = wr_clock_ms() + 20000;
    size_t got = 0;
    char id[64];

    while (got < n) {
        int64_t due;

        assert_true(wr_clock_ms() < deadline);
        if (!take_from(queue, "w", 600000, id, NULL)) {
            poll(NULL, 0, 1);
            continue;
        }
        due = atoll(id); /* a job's id is its time */
        assert_true(wr_clock_wall_ms() >= due);
        assert_true(wr_clock_wall_ms() < due + HANG_MS);
        got++;
    }
}

static void
T01_a_delayed_job_is_never_early_and_soon_ready(void **unused)
{
    struct running r;
    char id[64], due[64];

    (void)unused;
    put("9000000000000", "+3600000");
    start(&r, 15000);
    AWAIT(is_led("q"));
    for (int i = 0; i < JOBS; i++) {
        int64_t at = wr_clock_wall_ms() + 50 + i * 7919 % 1500;

        snprintf(id, sizeof(id), "%lld.%d", (long long)at, i);
        snprintf(due, sizeof(due), "@%lld", (long long)at);
        put(id, due);
    }
    take_all_in_time(JOBS);
    assert_int_equal(size_of("ZCARD", "delayed"), 1);
    stop(&r);
}

static void
an_earlier_job_wakes_a_leader_that_sleeps_until_a_later_one(void **unused)
{
    struct running r;
    char id[64];

    (void)unused;
    put("late", "+3600000");
    start(&r, 15000);
    AWAIT(is_led("q"));
    AWAIT(strcmp(redis_do(redis, "EXISTS weir:{q}:due"), "0") == 0); /* it listens */
    for (int i = 0; i < 3; i++) {
        int64_t began = wr_clock_ms();

        snprintf(id, sizeof(id), "soon%d", i);
        put(id, "+100");
        AWAIT(engine_ready(redis, "q") == i + 1);
        assert_in_range(wr_clock_ms() - began, 99, HANG_MS);
    }
    stop(&r);
}

static void
T02_what_is_due_already_is_ready_in_its_order(void **unused)
{
    char id[64];

    (void)unused; /* no scheduler: these never wait for one */
    put("a", "");
    put("b", "+0");
    put("c", "@0");
    put("d", "@1000");
    put("e", "");
    for (const char *want = "abcde"; *want; want++) {
        assert_true(take_from(queue, "w", 60000, id, NULL));
        assert_int_equal(id[0], *want);
    }
    assert_int_equal(size_of("ZCARD", "delayed"), 0);
}

static void
T03_a_job_due_in_the_year_9999_waits_and_costs_nothing(void **unused)
{
    static const char *const dues[] = {"@253402300799999", "+2147483648000",
                                       "+4294967296000", "+3153600000000"};
    struct running r;
    char id[8];
    long before;

    (void)unused;
    for (size_t i = 0; i < sizeof(dues) / sizeof(dues[0]); i++) {
        snprintf(id, sizeof(id), "j%zu", i);
        put(id, dues[i]);
    }
    assert_string_equal(redis_do(redis, "ZSCORE weir:{q}:delayed j0"), "253402300799999");
    start(&r, 15000);
    AWAIT(is_led("q"));
    AWAIT(strcmp(redis_do(redis, "EXISTS weir:{q}:heartbeat:promote"), "1") == 0);
    before = commands();
    put("now", "+300");
    AWAIT(engine_ready(redis, "q") == 1);
    assert_true(commands() - before < 30);
    assert_int_equal(size_of("ZCARD", "delayed"), 4);
    assert_int_equal(stat_of("promoted"), 1);
    stop(&r);
}

static void
a_backlog_of_due_jobs_is_promoted_in_batches(void **unused)
{
    struct wr_admit items[500];
    struct wr_admitted words[500];
    char ids[500][16];
    struct running r;

    (void)unused;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 500; i++) {
            snprintf(ids[i], sizeof(ids[i]), "%d.%d", round, i);
            items[i] = (struct wr_admit){.id = wr_span_str(ids[i]),
                                         .head = wr_span_str("1 t"),
                                         .tail = wr_span_str("\nx"),
                                         .due = wr_span_str("+200")};
        }
        assert_int_equal(
            wr_store_enqueue(store, queue, &channel, items, 500, words, NULL, NULL),
            WEIR_OK);
    }
    start(&r, 15000);
    AWAIT(engine_ready(redis, "q") == 5000);
    assert_int_equal(stat_of("promoted"), 5000);
    stop(&r);
}

/* ---- leaders ---- */

/* Three at once, one killed again and again: each job is promoted exactly once. */
static void
T05_several_schedulers_promote_each_job_once(void **unused)
{
    enum {
        MANY = 1000
    };
    static bool seen[MANY];
    struct running a, b;
    pid_t c = start_process(15000);
    char id[64], due[32];

    (void)unused;
    start(&a, 15000);
    start(&b, 15000);
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof(id), "%d", i);
        snprintf(due, sizeof(due), "+%d", i * 7919 % 1500 + 1);
        put(id, due);
        if (i % 250 == 249) {
            kill_process(c);
            c = start_process(15000);
        }
    }
    AWAIT(stat_of("promoted") >= MANY);
    for (int i = 0; i < MANY; i++) {
        assert_true(take_from(queue, "w", 600000, id, NULL));
        assert_false(seen[atoi(id)]);
        seen[atoi(id)] = true;
    }
    assert_false(take_from(queue, "w", 600000, id, NULL));
    assert_int_equal(stat_of("promoted"), MANY);
    kill_process(c);
    stop(&a);
    stop(&b);
}

static void
a_leader_that_stops_hands_its_queue_over_at_once(void **unused)
{
    struct running a, b;
    int64_t began;

    (void)unused;
    put("late", "+3600000");
    start(&a, 15000);
    AWAIT(is_led("q"));
    start(&b, 15000);
    stop(&a);
    began = wr_clock_ms();
    AWAIT(is_led("q"));
    assert_true(wr_clock_ms() - began < 1000 + HANG_MS);
    stop(&b);
    assert_false(is_led("q"));
}

static void
a_killed_leader_is_replaced_and_nothing_stays_delayed(void **unused)
{
    struct running b;
    pid_t a = start_process(15000);
    int64_t began;
    char holder[128];

    (void)unused;
    put("late", "+3600000");
    AWAIT(is_led("q"));
    snprintf(holder, sizeof(holder), "%s", redis_do(redis, "GET weir:{q}:lock"));
    start(&b, 15000);
    kill_process(a);
    put("soon", "+50");
    began = wr_clock_ms();
    AWAIT(engine_ready(redis, "q") == 1);
    assert_true(wr_clock_ms() - began < 5000 + HANG_MS); /* three looks and a bit */
    *strrchr(holder, ' ') = '\0';
    assert_null(strstr(redis_do(redis, "GET weir:{q}:lock"), holder));
    stop(&b);
}

static void
a_leader_that_renews_is_never_pushed_aside(void **unused)
{
    struct running a, b;
    char before[128];
    long count;

    (void)unused;
    put("late", "+3600000");
    start(&a, 15000);
    AWAIT(is_led("q"));
    snprintf(before, sizeof(before), "%s", redis_do(redis, "GET weir:{q}:lock"));
    count = atol(strrchr(before, ' '));
    start(&b, 15000);
    AWAIT(atol(strrchr(redis_do(redis, "GET weir:{q}:lock"), ' ')) >= count + 5);
    *strrchr(before, ' ') = '\0';
    assert_non_null(strstr(redis_do(redis, "GET weir:{q}:lock"), before));
    stop(&a);
    stop(&b);
}

/* ---- queues ---- */

static void
a_queue_that_is_made_later_is_found_and_listened_to(void **unused)
{
    struct running r;
    struct wr_queue *later;
    int64_t began;

    (void)unused;
    put("late", "+3600000");
    start(&r, 15000);
    AWAIT(is_led("q"));
    assert_int_equal(wr_store_queue(store, "later", &later, NULL), WEIR_OK);
    put_in(later, "a", "\nx", "+3600000");
    AWAIT(is_led("later"));
    AWAIT(strcmp(redis_do(redis, "EXISTS weir:{later}:due"), "0") == 0);
    began = wr_clock_ms();
    put_in(later, "b", "\nx", "+50");
    AWAIT(engine_ready(redis, "later") == 1);
    assert_true(wr_clock_ms() - began < HANG_MS);
    stop(&r);
}

static void
a_broken_queue_does_not_hold_up_the_others(void **unused)
{
    struct wr_queue *broken;
    struct running r;
    int64_t began;

    (void)unused;
    assert_int_equal(wr_store_queue(store, "broken", &broken, NULL), WEIR_OK);
    put_in(broken, "a", "\nx", "+1");
    redis_do(redis, "DEL weir:{broken}:config");
    put("late", "+3600000");
    start(&r, 15000);
    AWAIT(is_led("q") && is_led("broken"));
    for (int i = 0; i < 5; i++) {
        char id[8];

        snprintf(id, sizeof(id), "j%d", i);
        began = wr_clock_ms();
        put(id, "+50");
        AWAIT(engine_ready(redis, "q") == i + 1);
        assert_true(wr_clock_ms() - began < HANG_MS);
    }
    assert_string_equal(redis_do(redis, "ZCARD weir:{broken}:delayed"), "1");
    assert_true(stop(&r) < HANG_MS);
}

/* The first round is over, each script is loaded: in a second and a bit the lead is
 * renewed, so the scheduler has its share of the machine, and no more comes than then is
 * due. */
static bool
is_calm(void)
{
    long before = commands(), sent;

    poll(NULL, 0, 1200);
    sent = commands() - before;
    return sent >= 1 && sent <= 4;
}

static void
an_idle_scheduler_sends_few_commands(void **unused)
{
    struct running r;
    int64_t began, deadline;
    long before, sent, allowed;

    (void)unused;
    put("late", "+3600000");
    start(&r, 15000);
    AWAIT(is_led("q"));
    AWAIT(strcmp(redis_do(redis, "EXISTS weir:{q}:heartbeat:reclaim"), "1") == 0);
    AWAIT(is_calm());
    before = commands();
    began = wr_clock_ms();
    deadline = began + 5000;
    while (wr_clock_ms() < deadline) /* what is measured is this time */
        poll(NULL, 0, (int)(deadline - wr_clock_ms()) + 1);
    sent = commands() - before;
    print_message("%ld commands in %lld ms\n", sent, (long long)(wr_clock_ms() - began));
    /* Each second the lead, every other one a sweep and the registry; and a round of what
     * is done every five or ten. */
    allowed = (wr_clock_ms() - began) * 2 / 1000 + 8;
    assert_in_range(sent, 5, allowed);
    stop(&r);
}

static void
a_kept_result_is_forgotten_when_its_time_is_over(void **unused)
{
    struct wr_answer answer = {.result = wr_span_str("r")};
    enum wr_answered word;
    struct running r;
    char id[64], token[24];

    (void)unused;
    put_in(queue, "a", " keep=300\nx", "");
    assert_true(take_from(queue, "w", 60000, id, token));
    answer.id = wr_span_str(id);
    answer.token = wr_span_str(token);
    assert_int_equal(wr_store_ack(store, queue, "w", &answer, 1, &word, NULL), WEIR_OK);
    assert_int_equal(size_of("ZCARD", "kept"), 1);
    start(&r, 15000);
    AWAIT(size_of("ZCARD", "kept") == 0);
    assert_int_equal(stat_of("forgotten"), 1);
    assert_int_equal(size_of("HLEN", "jobs"), 0);
    stop(&r);
}

/* ---- reclaim ---- */

/* The scheduler has been quiet for its first lease: a job whose lease is over long ago
 * comes back then and no earlier. */
static void
wait_for_trust(void)
{
    char id[64];

    put("probe", "");
    assert_true(take_from(queue, "gone", 1, id, NULL));
    AWAIT(stat_of("reclaimed") == 1);
    assert_true(take_from(queue, "w", 600000, id, NULL));
    assert_string_equal(id, "probe");
}

static void
the_first_lease_of_a_scheduler_reclaims_nothing(void **unused)
{
    int64_t began = wr_clock_ms();
    struct running r;

    (void)unused;
    start(&r, 1500);
    wait_for_trust();
    /* Not before. Later when its own gaps were long, on a busy machine, which begins the
     * quiet time anew: that it comes at all is what wait_for_trust() waits for. */
    assert_true(wr_clock_ms() - began >= 1500);
    stop(&r);
}

static void
a_lost_job_is_back_within_its_lease_and_a_second(void **unused)
{
    struct running r;
    int64_t began, took = INT64_MAX;
    char id[64];

    (void)unused;
    start(&r, 1500);
    wait_for_trust();
    /* A busy machine may make it late now and then, not every time. */
    for (long i = 1; i <= 5 && took > 1500 + 1000; i++) {
        char name[8];

        snprintf(name, sizeof(name), "a%ld", i);
        put(name, "");
        began = wr_clock_ms();
        assert_true(take_from(queue, "gone", 1500, id, NULL));
        AWAIT(stat_of("reclaimed") == 1 + i);
        took = wr_clock_ms() - began;
        assert_true(took >= 1499);
        assert_true(take_from(queue, "w", 600000, id, NULL));
    }
    assert_true(took <= 1500 + 1000);
    stop(&r);
}

/* Recovery does not need the leader that is lost with the host: the one that takes over
 * has watched the clock all the time. */
static void
a_lost_host_that_led_is_no_longer_missed_than_another(void **unused)
{
    struct running b;
    pid_t a = start_process(4000);
    int64_t began;
    char id[64];

    (void)unused;
    put("late", "+3600000");
    AWAIT(is_led("q"));
    start(&b, 4000);
    wait_for_trust();
    put("a", "");
    assert_true(take_from(queue, "gone", 4000, id, NULL));
    kill_process(a);
    began = wr_clock_ms();
    AWAIT(stat_of("reclaimed") == 2);
    assert_in_range(wr_clock_ms() - began, 3000, 4000 + 1000 + HANG_MS);
    stop(&b);
}

static long
heartbeat_ms(void)
{
    return atol(redis_do(redis, "GET weir:{q}:heartbeat:reclaim"));
}

/* F14: an outage longer than the lease charges nobody. */
static void
F14_a_server_that_stood_still_takes_no_job_from_a_live_worker(void **unused)
{
    enum wr_extended word;
    struct wr_holding held = {.started = true};
    struct running r;
    char id[64], token[24];
    long beat;

    (void)unused;
    start(&r, 1500);
    wait_for_trust();
    put("a", "");
    assert_true(take_from(queue, "alive", 1500, id, token));
    redis_server_pause(redis);
    poll(NULL, 0, 2500); /* the outage */
    redis_server_resume(redis);
    for (int i = 0; i < 2; i++) { /* the reclaimer looks, and looks again */
        beat = heartbeat_ms();
        AWAIT(heartbeat_ms() > beat);
    }
    held.id = wr_span_str(id);
    held.token = wr_span_str(token);
    assert_int_equal(wr_store_extend(store, queue, "alive", 1500, &held, 1, &word, NULL),
                     WEIR_OK);
    assert_int_equal(word, WR_EXTEND_OK);
    assert_int_equal(stat_of("reclaimed"), 1); /* the probe */
    AWAIT(stat_of("reclaimed") == 2);          /* and when it renews no more it is lost */
    stop(&r);
}

/* ---- Redis away ---- */

static void
a_restarted_server_is_served_again(void **unused)
{
    struct running r;
    int64_t began;

    (void)unused;
    put("late", "+3600000");
    start(&r, 1500);
    wait_for_trust();
    for (int i = 1; i <= 2; i++) {
        char id[8];

        redis_server_restart(redis);
        snprintf(id, sizeof(id), "j%d", i);
        put(id, "+100");
        began = wr_clock_ms();
        AWAIT(engine_ready(redis, "q") == i);
        assert_true(wr_clock_ms() - began < 5000 + HANG_MS);
    }
    stop(&r);
}

static void
a_server_that_is_away_for_long_is_found_again(void **unused)
{
    struct running r;

    (void)unused;
    put("soon", "+100");
    start(&r, 1500);
    AWAIT(engine_ready(redis, "q") == 1);
    redis_server_kill(redis);
    poll(NULL, 0, COMMAND_TIMEOUT_MS + 500); /* the outage: longer than one call lasts */
    redis_server_restart(redis);
    put("later", "+100");
    AWAIT(engine_ready(redis, "q") == 2);
    stop(&r);
}

static void
it_stops_in_one_command_timeout_while_redis_hangs(void **unused)
{
    struct running r;
    int64_t took;

    (void)unused;
    for (int i = 0; i < 5; i++) {
        struct wr_queue *q;
        char name[8];

        snprintf(name, sizeof(name), "q%d", i);
        assert_int_equal(wr_store_queue(store, name, &q, NULL), WEIR_OK);
        put_in(q, "a", "\nx", "+3600000");
    }
    start(&r, 15000);
    AWAIT(is_led("q0") && is_led("q1") && is_led("q2") && is_led("q3") && is_led("q4"));
    redis_server_pause(redis);
    poll(NULL, 0, 1200); /* by now it waits for an answer */
    took = stop(&r);
    redis_server_resume(redis);
    assert_true(took < COMMAND_TIMEOUT_MS + 1000);
}

static void
it_ends_when_the_other_end_of_its_stop_pipe_is_closed(void **unused)
{
    struct running r;
    int ends[2];

    (void)unused;
    prepare(&r, 15000);
    close(r.stop_fd);
    assert_int_equal(pipe(ends), 0);
    r.stop_fd = ends[0];
    assert_int_equal(pthread_create(&r.thread, NULL, run, &r), 0);
    close(ends[1]);
    assert_int_equal(pthread_join(r.thread, NULL), 0);
    finish(&r);
}

#define SCHED_TEST(name) cmocka_unit_test_setup_teardown(name, fresh, same_engine)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        SCHED_TEST(T01_a_delayed_job_is_never_early_and_soon_ready),
        SCHED_TEST(an_earlier_job_wakes_a_leader_that_sleeps_until_a_later_one),
        SCHED_TEST(T02_what_is_due_already_is_ready_in_its_order),
        SCHED_TEST(T03_a_job_due_in_the_year_9999_waits_and_costs_nothing),
        SCHED_TEST(a_backlog_of_due_jobs_is_promoted_in_batches),
        SCHED_TEST(T05_several_schedulers_promote_each_job_once),
        SCHED_TEST(a_leader_that_stops_hands_its_queue_over_at_once),
        SCHED_TEST(a_killed_leader_is_replaced_and_nothing_stays_delayed),
        SCHED_TEST(a_leader_that_renews_is_never_pushed_aside),
        SCHED_TEST(a_queue_that_is_made_later_is_found_and_listened_to),
        SCHED_TEST(a_broken_queue_does_not_hold_up_the_others),
        SCHED_TEST(an_idle_scheduler_sends_few_commands),
        SCHED_TEST(a_kept_result_is_forgotten_when_its_time_is_over),
        SCHED_TEST(the_first_lease_of_a_scheduler_reclaims_nothing),
        SCHED_TEST(a_lost_job_is_back_within_its_lease_and_a_second),
        SCHED_TEST(a_lost_host_that_led_is_no_longer_missed_than_another),
        SCHED_TEST(F14_a_server_that_stood_still_takes_no_job_from_a_live_worker),
        SCHED_TEST(a_restarted_server_is_served_again),
        SCHED_TEST(a_server_that_is_away_for_long_is_found_again),
        SCHED_TEST(it_stops_in_one_command_timeout_while_redis_hangs),
        SCHED_TEST(it_ends_when_the_other_end_of_its_stop_pipe_is_closed),
    };

    return RUN_TESTS("sched", tests, open_all, close_all);
}
