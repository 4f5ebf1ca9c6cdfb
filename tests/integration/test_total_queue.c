/*
 * The total-queue check: what goes in comes out. Producers write down which jobs were
 * acknowledged, handlers which ones they ran, while workers, their parts, connections and
 * scripts are killed at random and the queue is audited every 100 ms. At the end nothing
 * acknowledged is lost, nothing ran that nobody enqueued, and no audit was off.
 *
 *   WEIR_CHAOS_JOBS=20000 WEIR_CHAOS_KILLS=200     the full length (make chaos)
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "integration/worker_rig.h"

#define JOBS_MAX 20000
#define PRODUCERS 2
#define WORKERS 3
#define AUDIT_MS 100
#define TAG "WEIR_TOTAL_QUEUE"

/* What is known of one job, by all processes. */
enum said {
    NOT_SENT,
    SENT,       /* no answer: it may be stored or not */
    STORED,     /* acknowledged */
    CALLED_OFF, /* and then cancelled while it had not ended */
};

static struct ledger {
    _Atomic unsigned char said[JOBS_MAX];
    _Atomic unsigned short starts[JOBS_MAX], effects[JOBS_MAX];
    _Atomic unsigned strangers; /* runs of jobs that nobody sent */
    _Atomic int producers_done;
} * ledger;

static size_t jobs_n = 3000, kills_n = 40;
static unsigned seed;

/* The kind of a job is in its number, so that it is the same in every process. */
static bool
is_command(size_t i)
{
    return i % 16 == 5;
}

static bool
never_works(size_t i)
{
    return i % 50 == 7;
}

static enum weir_outcome
note(struct weir_delivery *d, void *context)
{
    char *end;
    size_t i = strtoul(weir_delivery_id(d), &end, 10);

    (void)context;
    if (*end || i >= jobs_n || ledger->said[i] == NOT_SENT) {
        ledger->strangers++;
        return WEIR_DONE;
    }
    ledger->starts[i]++;
    if (never_works(i))
        return WEIR_PERMANENT;
    if (i % 10 == 3 && weir_delivery_attempt(d) == 1)
        return WEIR_RETRY;
    if (i % 40 == 9 && weir_delivery_number(d) == 1) {
        weir_delivery_set_delay(d, 20);
        return WEIR_SNOOZE;
    }
    if (i % 25 == 0)
        poll(NULL, 0, 20);
    ledger->effects[i]++;
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    static const char *const command[] = {"sleep", "0.02", NULL};

    setenv(TAG, "1", 1); /* commands carry it: no one may outlive the worker */
    if (weir_worker_handle(w, "note", note, NULL, NULL) != WEIR_OK ||
        weir_worker_exec(w, "command", command, NULL) != WEIR_OK)
        abort();
}

/* ---- producers ---- */

/* Again after "unknown" would be right as well, but then a job that was over in between
 * could be stored twice; here each is sent once, and known as what it is. */
static void
send_one(struct weir_client *client, size_t i)
{
    char id[16];
    struct weir_job job = {WEIR_JOB_INIT,
                           .queue = "q",
                           .id = id,
                           .type = is_command(i) ? "command" : "note",
                           .max_deliveries = WEIR_NONE,
                           .max_retry = 20,
                           .backoff = "fixed:10ms",
                           .delay_ms = i % 7 == 0 ? (int64_t)(i % 400) : 0};
    struct weir_error err = {0};
    enum weir_err rc;

    snprintf(id, sizeof(id), "%zu", i);
    ledger->said[i] = SENT;
    rc = weir_job_enqueue(client, &job, NULL, &err);
    if (rc == WEIR_OK)
        ledger->said[i] = STORED;
    else if (weir_err_kind_of(rc) != WEIR_KIND_UNKNOWN &&
             weir_err_kind_of(rc) != WEIR_KIND_BUSY)
        fprintf(stderr, "producer: %s\n", err.text);
}

static pid_t
start_producer(size_t number)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                    .url = redis_server_url(rig.server)};
    struct weir_client *client;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (weir_client_open(&o, &client, NULL) != WEIR_OK)
        poll(NULL, 0, 10);
    for (size_t i = number; i < jobs_n; i += PRODUCERS) {
        send_one(client, i);
        if (i % 32 < PRODUCERS)
            poll(NULL, 0, 5); /* spread over the time in which things die */
    }
    ledger->producers_done++;
    weir_client_close(client);
    _exit(0);
}

/* ---- what goes wrong ---- */

/* A child of this name, if there is one now. */
static pid_t
part_of(pid_t supervisor, const char *comm)
{
    char path[64], line[1024] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)supervisor,
             (int)supervisor);
    f = fopen(path, "r");
    if (!f)
        return 0;
    line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
    fclose(f);
    for (char *at = line; *at;) {
        char name[32] = "";
        pid_t pid = (pid_t)strtol(at, &at, 10);

        if (pid <= 0)
            break;
        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        f = fopen(path, "r");
        if (!f)
            continue;
        if (fgets(name, sizeof(name), f) && strncmp(name, comm, strlen(comm)) == 0) {
            fclose(f);
            return pid;
        }
        fclose(f);
    }
    return 0;
}

static void
kill_something(pid_t workers[WORKERS])
{
    static const char *const parts[] = {"weir-child", "weir-service", "weir-spawner"};
    size_t which = (size_t)rand_r(&seed) % WORKERS, what = (size_t)rand_r(&seed) % 7;

    if (what == 0) {
        rig_end(workers[which], SIGKILL);
        workers[which] = rig_start();
    } else if (what == 1) {
        redis_do(rig.server, "SCRIPT FLUSH");
    } else if (what == 2) {
        redis_do(rig.server, "CLIENT KILL TYPE normal SKIPME yes");
    } else {
        pid_t child = part_of(workers[which], what == 3 ? parts[1] : parts[0]);

        if (what == 4 && child > 0)
            child = part_of(child, parts[2]);
        if (child > 0)
            kill(child, SIGKILL);
    }
}

static void
cancel_something(void)
{
    size_t i = (size_t)rand_r(&seed) % jobs_n;
    char id[16];
    enum weir_cancel_result how;

    snprintf(id, sizeof(id), "%zu", i);
    if (ledger->said[i] == STORED &&
        weir_job_cancel(rig.client, "q", id, &how, NULL) == WEIR_OK)
        ledger->said[i] = CALLED_OFF;
}

static bool
audit_is_good(struct weir_audit *a)
{
    int turns = 0;

    while (weir_queue_audit(rig.client, "q", a, NULL) != WEIR_OK) {
        if (!wait_over(&turns))
            fail_msg("no audit in 30 s");
    }
    return weir_audit_is_good(a);
}

/* Until so many things were killed, all was sent, and nothing is left to run. */
static int
rage(pid_t workers[WORKERS])
{
    size_t kills = 0;
    int audits = 0;
    int64_t next_kill = 0, next_audit = 0, calm_since = 0;
    struct weir_audit a = {0};

    for (;;) {
        int64_t now = wr_clock_ms();

        if (now >= next_kill && kills < kills_n) {
            kill_something(workers);
            cancel_something();
            kills++;
            next_kill = wr_clock_ms() + 50 + rand_r(&seed) % 250;
            calm_since = wr_clock_ms();
        }
        if (now >= next_audit) {
            if (!audit_is_good(&a))
                fail_msg("audit %d is off: gap %lld", audits, (long long)a.gap);
            audits++;
            next_audit = now + AUDIT_MS;
        }
        if (kills == kills_n && ledger->producers_done == PRODUCERS &&
            a.ready + a.delayed + a.processing == 0)
            return audits;
        if (kills == kills_n && now - calm_since > 60000)
            fail_msg("after a minute of peace %lld ready, %lld delayed, %lld processing",
                     (long long)a.ready, (long long)a.delayed, (long long)a.processing);
        poll(NULL, 0, 5);
    }
}

/* ---- the reckoning ---- */

static size_t
commands_alive(void)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    size_t n = 0;

    while (proc && (e = readdir(proc)) != NULL) {
        char path[280], env[65536];
        FILE *f;
        size_t len;

        snprintf(path, sizeof(path), "/proc/%s/environ", e->d_name);
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || !(f = fopen(path, "r")))
            continue;
        len = fread(env, 1, sizeof(env), f);
        fclose(f);
        n += memmem(env, len, TAG "=1", strlen(TAG "=1")) != NULL;
    }
    if (proc)
        closedir(proc);
    return n;
}

static void
count_up(int audits)
{
    size_t stored = 0, unknown = 0, lost = 0, cancelled = 0, again = 0;
    struct weir_audit a;

    for (size_t i = 0; i < jobs_n; i++) {
        stored += ledger->said[i] >= STORED;
        unknown += ledger->said[i] == SENT;
        cancelled += ledger->said[i] == CALLED_OFF;
        again += ledger->starts[i] > 1;
        if (ledger->said[i] != STORED || is_command(i))
            continue;
        if (never_works(i) ? ledger->starts[i] == 0 : ledger->effects[i] == 0) {
            fprintf(stderr, "job %zu was acknowledged and never ran\n", i);
            lost++;
        }
    }
    assert_true(audit_is_good(&a));
    print_message(
        "%zu acknowledged, %zu of unknown end, %zu cancelled; %zu ran more than "
        "once; %d audits; lost %zu, unexpected %u\n",
        stored, unknown, cancelled, again, audits, lost, ledger->strangers);
    assert_int_equal(lost, 0);
    assert_int_equal(ledger->strangers, 0);
    assert_in_range(a.enqueued, stored, stored + unknown);
    assert_int_equal(a.enqueued, a.done + a.dead + a.cancelled);
    assert_true(stored > jobs_n / 2); /* else the test did not see much */
}

static void
what_goes_in_comes_out_whatever_is_killed(void **state)
{
    pid_t workers[WORKERS], producers[PRODUCERS];
    const char *text = getenv("WEIR_SEED");
    int audits;

    (void)state;
    seed = text ? (unsigned)atoi(text) : (unsigned)getpid();
    print_message("WEIR_SEED=%u\n", seed);
    for (size_t i = 0; i < WORKERS; i++)
        workers[i] = rig_start();
    for (size_t i = 0; i < PRODUCERS; i++)
        producers[i] = start_producer(i);
    audits = rage(workers);
    for (size_t i = 0; i < PRODUCERS; i++)
        waitpid(producers[i], NULL, 0);
    for (size_t i = 0; i < WORKERS; i++) {
        /* One that was started just now would die of the signal. */
        assert_true(worker_child(workers[i], "weir-child") > 0);
        assert_int_equal(rig_end(workers[i], SIGTERM), 0);
    }
    count_up(audits);
    AWAIT(commands_alive() == 0);
}

static size_t
number(const char *name, size_t otherwise, size_t most)
{
    const char *text = getenv(name);
    size_t n = text ? strtoul(text, NULL, 10) : otherwise;

    return n > 0 && n <= most ? n : otherwise;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_goes_in_comes_out_whatever_is_killed,
                                        rig_setup, rig_teardown),
    };

    jobs_n = number("WEIR_CHAOS_JOBS", jobs_n, JOBS_MAX);
    kills_n = number("WEIR_CHAOS_KILLS", kills_n, 100000);
    ledger = rig_shared(sizeof(*ledger));
    return RIG_RUN("total queue", tests, handlers);
}
