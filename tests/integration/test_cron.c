/*
 * Schedulers fire cron entries, against a real server and real time: each tick once,
 * whoever lives and dies.
 *
 * WEIR_CRON_SECONDS=N  how long the entry of each second is watched (default 5)
 */
#include "support/test_program.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/cron.h>

#include "base/clock.h"
#include "client/client_internal.h"
#include "sched/cron_fire.h"
#include "sched/sched.h"
#include "support/engine.h"
#include "support/redis_server.h"
#include "support/worker_process.h"

#define SCHEDULERS 5
#define HANG_MS 2000 /* late enough to be a fault on the busiest machine */

static struct redis_server *redis;
static struct wr_server *server;
static struct wr_store *store;
static struct wr_queue *queue;
static struct weir_client *client;

static void
connect_store(struct wr_server **out_server, struct wr_store **out)
{
    struct wr_server_options so = {.connect_timeout_ms = 2000};
    struct wr_store_options to = {.command_timeout_ms = 2000};

    assert_int_equal(wr_url_parse(redis_server_url(redis), &so.url, NULL), WEIR_OK);
    assert_int_equal(wr_server_new(&so, out_server, NULL), WEIR_OK);
    to.server = *out_server;
    assert_int_equal(wr_store_new(&to, out, NULL), WEIR_OK);
}

/* A scheduler in a process of its own; tzdir NULL: the system's. */
static pid_t
start(const char *tzdir)
{
    pid_t parent = getpid(), pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct wr_sched_options o = {.lease_ms = 15000};
        struct wr_server *own;
        struct wr_sched *sched;
        int stop = eventfd(0, EFD_CLOEXEC);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || stop < 0)
            _exit(1);
        if (tzdir)
            setenv("TZDIR", tzdir, 1);
        connect_store(&own, &o.store);
        if (wr_sched_new(&o, &sched, NULL) == WEIR_OK)
            wr_sched_run(sched, stop);
        _exit(0);
    }
    return pid;
}

static void
end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static bool
is_led(void)
{
    return strcmp(redis_do(redis, "EXISTS weir:{q}:lock"), "1") == 0;
}

static long
made(void)
{
    return atol(redis_do(redis, "HGET weir:{q}:stats enqueued"));
}

static void
add(const char *name, const char *schedule, enum weir_missed missed,
    enum weir_overlap overlap)
{
    struct weir_job job = {WEIR_JOB_INIT, .type = "t"};
    struct weir_cron entry = {WEIR_CRON_INIT,       .queue = "q",     .name = name,
                              .schedule = schedule, .missed = missed, .overlap = overlap,
                              .job = &job};
    struct weir_error err = {0};

    if (weir_cron_put(client, &entry, WEIR_REVISION_NEW, NULL, &err) != WEIR_OK)
        fail_msg("%s", err.text);
}

static struct weir_cron_info *
get(const char *name)
{
    struct weir_cron_info *info;
    struct weir_error err = {0};

    if (weir_cron_get(client, "q", name, &info, &err) != WEIR_OK)
        fail_msg("%s", err.text);
    return info;
}

/* ---- what was made: ticks from the ids, lateness from the records ---- */

struct jobs {
    int64_t tick[4096], late[4096];
    size_t n;
};

static int
by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static bool
take_job(const struct weir_job_view *view, void *context)
{
    const char *colon = strrchr(weir_job_view_id(view), ':');
    struct weir_job_numbers numbers;
    struct jobs *jobs = context;

    weir_job_view_numbers(view, &numbers);
    assert_true(jobs->n < 4096);
    jobs->tick[jobs->n] = strtoll(colon + 1, NULL, 10);
    jobs->late[jobs->n] = numbers.enqueued_at - jobs->tick[jobs->n];
    assert_true(jobs->late[jobs->n] >= 0);
    jobs->n++;
    return true;
}

static void
read_jobs(struct jobs *jobs)
{
    jobs->n = 0;
    assert_int_equal(weir_job_list(client, "q", "ready", 4096, take_job, jobs, NULL),
                     WEIR_OK);
    assert_int_equal(jobs->n, made());
    qsort(jobs->tick, jobs->n, sizeof(jobs->tick[0]), by_number);
    qsort(jobs->late, jobs->n, sizeof(jobs->late[0]), by_number);
}

static void
assert_each_tick_once(const struct jobs *jobs, int64_t step_ms)
{
    for (size_t i = 1; i < jobs->n; i++)
        assert_int_equal(jobs->tick[i], jobs->tick[i - 1] + step_ms);
}

/* ---- fixtures ---- */

static int
open_all(void **state)
{
    (void)state;
    redis = redis_server_start(NULL);
    connect_store(&server, &store);
    return 0;
}

static int
close_all(void **state)
{
    (void)state;
    weir_client_close(client);
    wr_store_free(store);
    wr_server_free(server);
    redis_server_stop(redis);
    return 0;
}

static int
fresh(void **state)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT};
    char url[300];

    (void)state;
    redis_do(redis, "FLUSHALL");
    wr_store_free(store);
    wr_server_free(server);
    connect_store(&server, &store);
    weir_client_close(client);
    snprintf(url, sizeof(url), "%s", redis_server_url(redis));
    o.url = url;
    assert_int_equal(weir_client_open(&o, &client, NULL), WEIR_OK);
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

/* ---- once, and on time ---- */

static void
five_schedulers_make_one_job_a_tick__C01_C16(void **state)
{
    const char *wanted = getenv("WEIR_CRON_SECONDS");
    long seconds = wanted ? atol(wanted) : 5;
    static struct jobs jobs;
    pid_t pids[SCHEDULERS];

    (void)state;
    for (int i = 0; i < SCHEDULERS; i++)
        pids[i] = start(NULL);
    add("a", "* * * * * *", WEIR_MISSED_ALL, WEIR_OVERLAP_ALLOW);
    poll(NULL, 0, (int)(seconds * 1000));
    AWAIT(made() >= seconds);
    for (int i = 0; i < SCHEDULERS; i++)
        end(pids[i]);
    read_jobs(&jobs);
    assert_each_tick_once(&jobs, 1000);
    print_message("%zu ticks, late by %lld ms (median), %lld ms (most)\n", jobs.n,
                  (long long)jobs.late[jobs.n / 2], (long long)jobs.late[jobs.n - 1]);
    assert_in_range(jobs.late[0], 0, 250); /* the best: nothing makes all of them late */
    /* A bound on hangs alone: how late most are is the machine's affair. */
    assert_true(jobs.late[jobs.n - 1] < 10000);
}

static void
an_entry_added_by_a_client_fires_at_its_next_tick__C15(void **state)
{
    struct jobs jobs;
    pid_t pid;

    (void)state;
    assert_int_equal(wr_store_create(store, queue, NULL, NULL, NULL), WEIR_OK);
    pid = start(NULL);
    AWAIT(is_led());
    poll(NULL, 0, 300); /* it has nothing to do and sleeps */
    for (int i = 0; i < 3; i++) {
        char name[8];
        long before = made();
        int64_t began = wr_clock_ms();

        snprintf(name, sizeof(name), "e%d", i);
        add(name, "every 1s", WEIR_MISSED_ONCE, WEIR_OVERLAP_ALLOW);
        AWAIT(made() > before);
        assert_true(wr_clock_ms() - began < 1000 + HANG_MS);
        assert_int_equal(weir_cron_remove(client, "q", name, WEIR_REVISION_ANY, NULL),
                         WEIR_OK);
    }
    end(pid);
    read_jobs(&jobs);
}

static void
a_timer_that_wakes_early_makes_no_second_job__C08(void **state)
{
    struct wr_cron_watch watch = {0};
    int64_t until, at, calls = 0;
    static struct jobs jobs;

    (void)state;
    add("a", "* * * * * *", WEIR_MISSED_ALL, WEIR_OVERLAP_ALLOW);
    for (until = wr_clock_ms() + 4000; wr_clock_ms() < until; calls++) {
        assert_int_equal(wr_cron_step(&watch, store, queue, true, &at, NULL), WEIR_OK);
        watch.ahead_us += 20000; /* this clock is 20 ms fast, always */
        poll(NULL, 0, 1);
    }
    wr_cron_watch_fini(&watch);
    read_jobs(&jobs);
    assert_each_tick_once(&jobs, 1000);
    assert_in_range(jobs.n, 3, 5);
}

static void
the_death_of_the_leader_costs_no_tick__C02(void **state)
{
    static struct jobs jobs;
    pid_t leader = start(NULL), next;

    (void)state;
    assert_int_equal(wr_store_create(store, queue, NULL, NULL, NULL), WEIR_OK);
    AWAIT(is_led());
    add("a", "every 2s", WEIR_MISSED_ALL, WEIR_OVERLAP_ALLOW);
    for (int round = 1; round <= 2; round++) {
        struct weir_cron_info *info;
        int64_t due;
        long before;

        AWAIT(made() >= 1); /* the leader has read it */
        before = made();
        next = start(NULL);
        info = get("a");
        due = info->next_at;
        weir_cron_info_free(info);
        while (wr_clock_wall_ms() < due - 100 && wr_clock_wall_ms() > due - 5000)
            poll(NULL, 0, 5);
        end(leader);
        AWAIT(made() > before + 1);
        leader = next;
        AWAIT(is_led());
    }
    end(leader);
    read_jobs(&jobs);
    assert_each_tick_once(&jobs, 2000);
    print_message("late by %lld ms at most\n", (long long)jobs.late[jobs.n - 1]);
    assert_true(jobs.late[jobs.n - 1] < 5000 + HANG_MS);
}

/* ---- nobody was there ---- */

#define AWAY_MS 100000

/* An entry of every second whose next tick was due AWAY_MS ago. */
static int64_t
add_late(const char *options)
{
    int64_t now = wr_clock_wall_ms(), due = now - now % 1000 - AWAY_MS, rev;
    char def[200];
    bool same;

    snprintf(def, sizeof(def), "spec=*%%20*%%20*%%20*%%20*%%20* zone=UTC%s\n1 t\n",
             options);
    assert_int_equal(wr_store_cron_put(store, queue, "a", WR_REV_NEW, due,
                                       wr_span_str(def), &rev, &same, NULL),
                     WEIR_OK);
    return now;
}

/* How many jobs of ticks until `until` there are, once the entry is up to date. *all: of
 * later ones as well. */
static size_t
missed_jobs(int64_t until, size_t *all)
{
    struct wr_cron_watch watch = {0};
    static struct jobs jobs;
    int64_t at, due;
    size_t n = 0;

    do {
        struct weir_cron_info *info;

        assert_int_equal(wr_cron_step(&watch, store, queue, true, &at, NULL), WEIR_OK);
        info = get("a");
        due = info->next_at;
        weir_cron_info_free(info);
    } while (due <= until);
    wr_cron_watch_fini(&watch);
    read_jobs(&jobs);
    for (size_t i = 0; i < jobs.n; i++)
        n += jobs.tick[i] <= until;
    *all = jobs.n;
    return n;
}

static void
missed_ticks_make_as_many_jobs_as_the_entry_wants__C04(void **state)
{
    size_t all;
    int64_t now;

    (void)state;
    now = add_late(" missed=skip grace=1000");
    assert_int_equal(missed_jobs(now - 2000, &all), 0);
    fresh(NULL);
    now = add_late("");
    (void)missed_jobs(now, &all);
    assert_in_range(all, 1, 3); /* one, and what came on time meanwhile */
    fresh(NULL);
    now = add_late(" missed=all cap=1000");
    assert_int_equal(missed_jobs(now, &all), AWAY_MS / 1000 + 1);
    fresh(NULL);
    now = add_late(" missed=all cap=30");
    assert_in_range(missed_jobs(now, &all), 25,
                    30); /* the newest, of which some are newer */
    assert_in_range(all, 30, 35);
}

/* ---- a simulated year ---- */

#define YEAR_BEGIN INT64_C(1798761600000) /* 2027-01-01 */
#define DAY_MS INT64_C(86400000)

/* Fires for so many days by a test clock that jumps from tick to tick. */
static void
simulate(const char *schedule, const char *zone, int64_t days, size_t expected)
{
    struct weir_job job = {WEIR_JOB_INIT, .type = "t"};
    struct weir_cron entry = {WEIR_CRON_INIT,       .queue = "q", .name = "a",
                              .schedule = schedule, .zone = zone, .job = &job};
    static int64_t times[40000];
    struct wr_cron_watch watch = {0};
    struct weir_cron_info *info;
    size_t n, fired = 0;
    int64_t at;

    fresh(NULL);
    assert_int_equal(
        weir_cron_next(schedule, zone, YEAR_BEGIN - 1, times, 40000, &n, NULL, 0, NULL),
        WEIR_OK);
    wr_store_set_test_clock(store, YEAR_BEGIN - 1);
    wr_store_set_test_clock(wr_client_store(client), YEAR_BEGIN - 1);
    assert_int_equal(weir_cron_put(client, &entry, WEIR_REVISION_NEW, NULL, NULL),
                     WEIR_OK);
    for (size_t i = 0; i < n && times[i] < YEAR_BEGIN + days * DAY_MS; i++) {
        info = get("a");
        assert_int_equal(info->next_at, times[i]);
        weir_cron_info_free(info);
        wr_store_set_test_clock(store, times[i]);
        wr_cron_watch_look(&watch);
        assert_int_equal(wr_cron_step(&watch, store, queue, true, &at, NULL), WEIR_OK);
        fired++;
    }
    wr_cron_watch_fini(&watch);
    assert_int_equal(fired, expected);
    assert_int_equal(made(), expected);
    wr_store_set_test_clock(store, 0);
}

static void
a_preview_is_what_a_simulated_year_fires__C12(void **state)
{
    (void)state;
    simulate("@daily", "America/Santiago", 365, 365);
    simulate("0 9 13 * 5", "UTC", 365, 64); /* 53 Fridays, 12 13ths, one is both */
    simulate("* 0 * * *", "UTC", 10, 600);
    simulate("*/7 * * * *", "UTC", 3, 3 * 24 * 9);
}

/* ---- who is not able to ---- */

static void
a_leader_without_zone_files_leaves_it_to_others_and_never_takes_utc__C07(void **state)
{
    struct weir_job job = {WEIR_JOB_INIT, .type = "t"};
    struct weir_cron entry = {WEIR_CRON_INIT,
                              .queue = "q",
                              .name = "a",
                              .schedule = "* * * * * *",
                              .zone = "Asia/Kolkata",
                              .missed = WEIR_MISSED_ALL,
                              .job = &job};
    pid_t leader, other;

    (void)state;
    assert_int_equal(wr_store_create(store, queue, NULL, NULL, NULL), WEIR_OK);
    leader = start("/nowhere");
    AWAIT(is_led());
    assert_int_equal(weir_cron_put(client, &entry, WEIR_REVISION_NEW, NULL, NULL),
                     WEIR_OK);
    poll(NULL, 0, 2500);
    assert_int_equal(made(), 0);
    other = start(NULL);
    AWAIT(made() > 0);
    end(leader);
    end(other);
}

/* ---- changes ---- */

static void
change_often(int who)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                    .url = redis_server_url(redis)};
    struct weir_client *c;

    if (weir_client_open(&o, &c, NULL) != WEIR_OK)
        _exit(1);
    for (int i = 0; i < 100; i++) {
        char payload[32];
        struct weir_job job = {WEIR_JOB_INIT, .type = "t", .payload = payload};
        struct weir_cron entry = {WEIR_CRON_INIT, .queue = "q", .name = "a",
                                  .schedule = i % 2 ? "every 1s" : "* * * * * *",
                                  .job = &job};

        snprintf(payload, sizeof(payload), "%d %d", who, i);
        job.payload_len = strlen(payload);
        if (weir_cron_put(c, &entry, WEIR_REVISION_ANY, NULL, NULL) != WEIR_OK)
            _exit(2);
        if (i % 10 == who &&
            weir_cron_remove(c, "q", "a", WEIR_REVISION_ANY, NULL) != WEIR_OK)
            (void)who; /* another one was faster */
    }
    weir_client_close(c);
    _exit(0);
}

static void
an_entry_that_many_change_has_one_tick_and_none_when_removed__C09(void **state)
{
    static struct jobs jobs;
    pid_t sched = start(NULL), writers[3];
    struct weir_cron_info *info;
    int status;
    long before;

    (void)state;
    for (int i = 0; i < 3; i++) {
        writers[i] = fork();
        assert_true(writers[i] >= 0);
        if (writers[i] == 0)
            change_often(i);
    }
    for (int i = 0; i < 3; i++) {
        waitpid(writers[i], &status, 0);
        assert_int_equal(status, 0);
    }
    before = made();
    assert_string_equal(redis_do(redis, "HLEN weir:{q}:cron"), "2"); /* and the version */
    AWAIT(made() > before);
    assert_int_equal(weir_cron_remove(client, "q", "a", WEIR_REVISION_ANY, NULL),
                     WEIR_OK);
    before = made();
    poll(NULL, 0, 2500);
    assert_int_equal(made(), before);
    assert_int_equal(weir_cron_get(client, "q", "a", &info, NULL), WEIR_E_NO_CRON);
    end(sched);
    read_jobs(&jobs);
    for (size_t i = 1; i < jobs.n; i++)
        assert_true(jobs.tick[i] > jobs.tick[i - 1]);
}

static void
a_run_that_waits_starts_when_the_one_before_has_ended__C14(void **state)
{
    struct wr_answer answer = {.id = wr_span_str("")};
    struct wr_reserve want = {.worker = "w", .call = 1, .free = 9, .lease_ms = 60000};
    enum wr_answered word;
    struct wr_batch batch;
    pid_t pid = start(NULL);

    (void)state;
    add("a", "every 1s", WEIR_MISSED_ONCE, WEIR_OVERLAP_QUEUE);
    AWAIT(made() == 1);
    assert_int_equal(wr_store_reserve(store, queue, &want, &batch, NULL), WEIR_OK);
    assert_int_equal(batch.n, 1);
    poll(NULL, 0, 2500); /* two ticks or three pass */
    assert_int_equal(made(), 1);
    answer.id = batch.jobs[0].id;
    answer.token = wr_span_str(batch.jobs[0].state.token);
    assert_int_equal(wr_store_ack(store, queue, "w", &answer, 1, &word, NULL), WEIR_OK);
    wr_batch_fini(&batch);
    AWAIT(made() == 2);
    end(pid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, same_engine)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(five_schedulers_make_one_job_a_tick__C01_C16),
        TEST(an_entry_added_by_a_client_fires_at_its_next_tick__C15),
        TEST(a_timer_that_wakes_early_makes_no_second_job__C08),
        TEST(the_death_of_the_leader_costs_no_tick__C02),
        TEST(missed_ticks_make_as_many_jobs_as_the_entry_wants__C04),
        TEST(a_preview_is_what_a_simulated_year_fires__C12),
        TEST(a_leader_without_zone_files_leaves_it_to_others_and_never_takes_utc__C07),
        TEST(an_entry_that_many_change_has_one_tick_and_none_when_removed__C09),
        TEST(a_run_that_waits_starts_when_the_one_before_has_ended__C14),
    };

    return RUN_TESTS("cron", tests, open_all, close_all);
}
