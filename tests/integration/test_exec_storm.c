/*
 * Commands of every kind of bad manners, while whatever runs them is killed at random: no
 * job is lost, every job ends as it must, and nothing of them is left.
 *
 *     WEIR_STORM_JOBS=100000 integration_test_exec_storm     (as the short run, and
 * longer)
 */
#include "integration/worker_rig.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"

#define KILL_MS 700

static char mark[40], folder[64];

static void
add(struct weir_worker *w, const char *type, const char *script)
{
    const char *argv[] = {script, NULL};
    struct weir_exec_options o = {WEIR_EXEC_OPTIONS_INIT, .argv = argv, .shell = true};

    if (weir_worker_exec_with(w, type, &o, NULL) != WEIR_OK)
        _exit(70);
}

static const struct kind {
    const char *type, *script;
    unsigned share;     /* of 100 */
    int64_t timeout_ms; /* short where it is awaited: no kill shall come between */
    bool dies;
} kinds[] = {
    {"true", "exec true", 70, 60000, false},
    {"fails", "echo no >&2; exit 3", 10, 60000, true},
    {"hangs", "exec sleep $MARK", 2, 400, true},
    {"daemon", "(setsid sleep $MARK >/dev/null 2>&1 &) ; (sleep $MARK &) ; exit 0", 6,
     60000, false},
    {"floods", "head -c ${FLOOD}M /dev/zero; head -c ${FLOOD}M /dev/zero >&2", 4, 60000,
     false},
    {"deaf", "trap '' TERM INT HUP; while :; do sleep 0.2; done; : $MARK", 2, 300, true},
    {"closes", "exec <&- >&- 2>&- 3>&-; exec true", 6, 60000, false},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void
handlers(struct weir_worker *w)
{
    for (size_t i = 0; i < KINDS; i++)
        add(w, kinds[i].type, kinds[i].script);
}

static long
storm_jobs(void)
{
    const char *given = getenv("WEIR_STORM_JOBS");

    return given && atol(given) > 0 ? atol(given) : 500;
}

/* The kind of the i-th job: all shares in each hundred. */
static const struct kind *
kind_of(long i)
{
    unsigned at = (unsigned)(i * 37 % 100), sum = 0;

    for (size_t k = 0; k < KINDS; k++) {
        sum += kinds[k].share;
        if (at < sum)
            return &kinds[k];
    }
    return &kinds[0];
}

static void
enqueue_all(const char *name, long n, int64_t *done, int64_t *dead)
{
    for (long i = 0; i < n; i++) {
        const struct kind *k = kind_of(i);
        char id[24];

        snprintf(id, sizeof(id), "%s%ld", name, i);
        rig_enqueue((struct weir_job){WEIR_JOB_INIT, .max_retry = WEIR_NONE,
                                      .timeout_ms = k->timeout_ms, .kill_after_ms = 200,
                                      .max_deliveries = WEIR_NONE, .payload = "payload",
                                      .payload_len = 7},
                    id, k->type);
        *(k->dies ? dead : done) += 1;
    }
}

/* ---- what runs on this machine ---- */

static size_t
children_of(pid_t pid, pid_t *out, size_t max)
{
    char path[64], line[4096], *at = line, *end;
    size_t n = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
    fclose(f);
    for (; n < max; at = end) {
        long one = strtol(at, &end, 10);

        if (end == at)
            break;
        out[n++] = (pid_t)one;
    }
    return n;
}

static bool
file_has(const char *path, const char *word)
{
    static char text[65536];
    FILE *f = fopen(path, "re");
    size_t n;

    if (!f)
        return false;
    n = fread(text, 1, sizeof(text), f);
    fclose(f);
    return memmem(text, n, word, strlen(word)) != NULL;
}

/* Processes that have the mark in their words or their environment: commands of ours. */
static int
count_marked(bool tell)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    int n = 0;

    while ((e = readdir(d)) != NULL) {
        char cmdline[300], environ_path[300];

        if (atoi(e->d_name) <= 0 || atoi(e->d_name) == getpid())
            continue;
        snprintf(cmdline, sizeof(cmdline), "/proc/%s/cmdline", e->d_name);
        snprintf(environ_path, sizeof(environ_path), "/proc/%s/environ", e->d_name);
        if (file_has(cmdline, mark) ||
            (file_has(environ_path, mark) && file_has(environ_path, "WEIR_JOB_ID="))) {
            n++;
            if (tell)
                print_error("left: %s\n", e->d_name);
        }
    }
    closedir(d);
    return n;
}

static int
count_entries(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)) != NULL)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static const char *
first_entry(const char *path)
{
    static char name[300];
    DIR *d = opendir(path);
    struct dirent *e;

    name[0] = '\0';
    while (d && (e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.')
            snprintf(name, sizeof(name), "%s", e->d_name);
    }
    if (d)
        closedir(d);
    return name;
}

/* Descriptors and resident KiB of a worker: supervisor, children, their spawners. */
struct weight {
    int processes, descriptors;
    long kib;
};

static void
weigh(pid_t pid, int depth, struct weight *w)
{
    pid_t children[64];
    size_t n = children_of(pid, children, 64);
    char path[64];
    long pages = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    w->descriptors += count_entries(path);
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    f = fopen(path, "re");
    if (f && fscanf(f, "%*d %ld", &pages) == 1)
        w->kib += pages * 4;
    if (f)
        fclose(f);
    w->processes++;
    for (size_t i = 0; depth > 0 && i < n; i++)
        weigh(children[i], depth - 1, w);
}

/* ---- the storm ---- */

static const struct weir_worker_options two = {.processes = 2, .concurrency = 4};

/* One of: a child with all it runs, a child's spawner, any process of it, the whole. */
static pid_t
kill_something(pid_t worker, uint32_t random)
{
    pid_t children[64], spawners[64], victim = worker;
    size_t n = children_of(worker, children, 64), m;

    if (random % 10 < 8 && n > 0) {
        victim = children[random / 10 % n];
        m = children_of(victim, spawners, 64);
        if (random % 10 < 3 && m > 0)
            victim = spawners[random / 100 % m];
    }
    kill(victim, SIGKILL);
    if (victim != worker)
        return worker;
    rig_end(worker, 0);
    return rig_start_with(two);
}

/* False until all have ended; fails the test when that takes too long. */
static bool
all_ended(int64_t done, int64_t dead, int64_t give_up)
{
    struct weir_audit a = audit_of(rig.client, "q");

    if (wr_clock_ms() > give_up)
        fail_msg("done %lld of %lld, dead %lld of %lld", (long long)a.done,
                 (long long)done, (long long)a.dead, (long long)dead);
    poll(NULL, 0, 50);
    return a.done >= done && a.dead >= dead;
}

static int64_t
long_enough(long n)
{
    return wr_clock_ms() + 60000 + n * 100;
}

static void
storm(long n, int64_t done, int64_t dead)
{
    pid_t worker = rig_start_with(two);
    int64_t give_up = long_enough(n), next_kill = 0;
    uint64_t seed, kills = 0, kills_max = 10 + (uint64_t)n / 100;

    wr_rand_bytes(&seed, sizeof(seed));
    srand((unsigned)seed);
    print_message("seed %u\n", (unsigned)seed);
    while (!all_ended(done, dead, give_up)) {
        if (wr_clock_ms() >= next_kill && next_kill > 0 && kills < kills_max) {
            worker = kill_something(worker, (uint32_t)rand());
            kills++;
        }
        if (wr_clock_ms() >= next_kill)
            next_kill = wr_clock_ms() + KILL_MS;
    }
    print_message("%ld jobs, %llu kills\n", n, (unsigned long long)kills);
    rig_end(worker, SIGTERM);
}

static void
no_job_is_lost_and_nothing_is_left_F35_F37_X06(void **state)
{
    int64_t done = 0, dead = 0;
    long n = storm_jobs();
    int turns = 0;
    pid_t worker;

    (void)state;
    enqueue_all("s", n, &done, &dead);
    storm(n, done, dead);
    assert_int_equal(audit_of(rig.client, "q").done, done);
    assert_int_equal(audit_of(rig.client, "q").dead, dead);
    while (count_marked(false) > 0) {
        if (!wait_over(&turns)) {
            count_marked(true);
            fail_msg("commands are left");
        }
    }
    /* Folders of workers that were killed go with the next that starts. */
    worker = rig_start();
    rig_enqueue(JOB(), "last", "true");
    AWAIT(rig_is("last", "done"));
    rig_end(worker, SIGTERM);
    if (count_entries(folder) != 0)
        fail_msg("left: %s", first_entry(folder));
}

static void
a_worker_s_weight_does_not_grow_with_its_jobs(void **state)
{
    int64_t done = 0, dead = 0;
    long n = storm_jobs() / 2;
    struct weight before = {0}, after = {0};
    pid_t worker = rig_start_with(two);

    (void)state;
    for (int round = 0; round < 3; round++) { /* the first one warms up */
        int64_t give_up = long_enough(n);

        enqueue_all((const char *[]){"a", "b", "c"}[round], n, &done, &dead);
        while (!all_ended(done, dead, give_up))
            continue;
        poll(NULL, 0, 300); /* the last folders */
        if (round > 0)
            weigh(worker, 2, round == 1 ? &before : &after);
    }
    print_message("%d processes, %d descriptors, %ld KiB; then %d, %d, %ld\n",
                  before.processes, before.descriptors, before.kib, after.processes,
                  after.descriptors, after.kib);
    assert_int_equal(after.processes, before.processes);
    assert_true(after.descriptors <= before.descriptors + 2);
    assert_true(after.kib <= before.kib + before.kib / 10);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(no_job_is_lost_and_nothing_is_left_F35_F37_X06),
        TEST(a_worker_s_weight_does_not_grow_with_its_jobs),
    };
    int failed;

    snprintf(mark, sizeof(mark), "32%d.25", (int)getpid());
    snprintf(folder, sizeof(folder), "/tmp/weir-test-storm.XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    setenv("TMPDIR", folder, 1);
    setenv("MARK", mark, 1);
    setenv("FLOOD", storm_jobs() >= 10000 ? "100" : "3", 1);
    failed = RIG_RUN("exec storm", tests, handlers);
    rmdir(folder);
    return failed;
}
