/* The processes that weir bench starts, and how it hears of them. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/worker.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bin/bench.h"
#include "cli/config.h"

#define STALL_MS 500      /* without a run: look whether all is well */
#define PATIENCE_MS 60000 /* without a run, though all is well */
/* For a process that was told to end: until it is told again, is killed, is given up. */
#define HURRY_MS 1000
#define KILL_MS 2000
#define GONE_MS 10000

struct bench_shared *bench_shared;
static volatile sig_atomic_t interrupted;

static void
on_interrupt(int signal)
{
    interrupted = signal;
}

enum weir_err
bench_prepare(struct weir_error *err)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};

    bench_shared = mmap(NULL, sizeof(*bench_shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bench_shared == MAP_FAILED)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "bench");
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* hiredis writes to a Redis that is gone */
    /* The children of a worker that was killed come to us, and are waited for. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return WEIR_OK;
}

int
bench_interrupted(void)
{
    return interrupted;
}

enum weir_err
bench_go_on(struct weir_error *err)
{
    return interrupted ? wr_fail(err, WEIR_E_CANCELLED, 0, "interrupted") : WEIR_OK;
}

/* ---- handlers ---- */

void
bench_note_start(void)
{
    bench_shared->started_us = wr_clock_us();
    bench_shared->runs++;
}

static enum weir_outcome
no_op(struct weir_delivery *d, void *context)
{
    (void)d;
    (void)context;
    bench_note_start();
    return WEIR_DONE;
}

/* The payload is the job's number, its due time is in a meta field: both clocks are this
 * machine's. */
static enum weir_outcome
note_lateness(struct weir_delivery *d, void *context)
{
    size_t len;
    const char *payload = weir_delivery_payload(d, &len);
    long number = strtol(payload, NULL, 10);
    const char *due = weir_delivery_meta(d, "due_us");

    (void)context;
    if (number >= 0 && number < BENCH_LATENESS_JOBS && due)
        bench_shared->late_us[number] = wr_clock_us() - strtoll(due, NULL, 10);
    bench_shared->runs++;
    return WEIR_DONE;
}

static enum weir_err
run_worker(struct bench *b, struct weir_error *err)
{
    static const char *const queues[] = {BENCH_QUEUE, NULL};
    struct weir_worker_options o = {
        WEIR_WORKER_OPTIONS_INIT, .url = b->url,
        .name_space = b->ns,      .password = cli_password(b->cli->settings),
        .queues = queues,         .concurrency = (size_t)b->slots};
    struct weir_worker *w;
    enum weir_err rc = weir_worker_new(&o, &w, err);

    if (rc == WEIR_OK)
        rc = weir_worker_handle(w, "noop", no_op, NULL, err);
    if (rc == WEIR_OK)
        rc = weir_worker_handle(w, "late", note_lateness, NULL, err);
    return rc == WEIR_OK ? weir_worker_run(w, err) : rc;
}

/* ---- beginning and ending ---- */

/* In the new process. Its own group: a Ctrl-C on the terminal is for us alone, who then
 * end it. */
_Noreturn static void
be_other(struct bench *b, enum weir_err (*run)(struct bench *b, struct weir_error *err),
         pid_t parent, const sigset_t *mask)
{
    struct weir_error why = {0};
    enum weir_err rc;

    setpgid(0, 0);
    /* What goes wrong is told by us, once. */
    if (!getenv("WEIR_LOG"))
        wr_log_setup(WR_LOG_NONE, false);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (getppid() != parent)
        _exit(0);
    rc = run(b, &why);
    if (rc != WEIR_OK)
        bench_shared->why = why;
    _exit(weir_err_exit_status(rc));
}

enum weir_err
bench_begin(struct bench *b, const char *name,
            enum weir_err (*run)(struct bench *b, struct weir_error *err),
            struct weir_error *err)
{
    struct bench_process *p = &b->others[b->others[0].pid != 0];
    pid_t parent = getpid(), pid;
    enum weir_err rc = WEIR_OK;
    sigset_t all, before;

    /* No handler of ours shall run in the new process. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid == 0)
        be_other(b, run, parent, &before);
    if (pid < 0)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, errno, "start the %s", name);
    else
        *p = (struct bench_process){pid, name};
    if (pid > 0)
        setpgid(pid, pid); /* it does so too; whoever is first */
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

enum weir_err
bench_begin_worker(struct bench *b, struct weir_error *err)
{
    return bench_begin(b, "worker", run_worker, err);
}

static void
tell_others(struct bench *b, int sig)
{
    for (size_t i = 0; i < 2; i++) {
        if (b->others[i].pid != 0)
            kill(b->others[i].pid, sig);
    }
}

/* One that ended, or 0; -1: there is none any more. */
static pid_t
reap(struct bench *b)
{
    pid_t pid = waitpid(-1, NULL, WNOHANG);

    for (size_t i = 0; i < 2; i++) {
        if (pid > 0 && b->others[i].pid == pid)
            b->others[i].pid = 0;
    }
    return pid;
}

/* The second SIGTERM hurries a worker whose Redis is gone. */
void
bench_end(struct bench *b)
{
    int64_t since = wr_clock_ms(), now = since;
    bool hurried = false;
    pid_t pid;

    tell_others(b, SIGTERM);
    while ((pid = reap(b)) >= 0 && now - since < GONE_MS) {
        if (pid > 0)
            continue;
        now = wr_clock_ms();
        if (now - since > HURRY_MS && !hurried) {
            tell_others(b, SIGTERM);
            hurried = true;
        }
        if (now - since > KILL_MS)
            tell_others(b, SIGKILL); /* a worker's children end with it */
        poll(NULL, 0, 1);
    }
}

/* ---- waiting ---- */

static enum weir_err
check_others(struct bench *b, struct weir_error *err)
{
    const struct weir_error *why = &bench_shared->why;

    for (size_t i = 0; i < 2; i++) {
        struct bench_process *p = &b->others[i];
        int status;

        if (p->pid == 0 || waitpid(p->pid, &status, WNOHANG) == 0)
            continue;
        p->pid = 0;
        if (WIFSIGNALED(status))
            return wr_fail(err, WEIR_E_BUG, 0, "the %s was killed by signal %d", p->name,
                           WTERMSIG(status));
        return wr_fail(err, why->code != WEIR_OK ? why->code : WEIR_E_BUG, 0,
                       "the %s ended by itself: %.180s", p->name, why->text);
    }
    return WEIR_OK;
}

/* Is the queue there, on a server that answers? */
static enum weir_err
check_queue(struct bench *b, struct weir_error *err)
{
    enum weir_err rc = weir_queue_check_unused(b->client, BENCH_QUEUE, err);

    if (rc == WEIR_E_NO_QUEUE)
        return wr_fail(err, WEIR_E_CHANGED, 0,
                       "the queue of this run is gone: was Redis emptied meanwhile?");
    return rc == WEIR_E_WRONG_STATE ? WEIR_OK : rc; /* it holds jobs */
}

enum weir_err
bench_check(struct bench *b, struct weir_error *err)
{
    enum weir_err rc = check_queue(b, err);

    return rc == WEIR_OK ? check_others(b, err) : rc;
}

enum weir_err
bench_wait_runs(struct bench *b, int64_t runs, struct weir_error *err)
{
    int64_t last = bench_shared->runs, since = wr_clock_ms(), looked = since;
    enum weir_err rc = bench_go_on(err);

    while (rc == WEIR_OK && bench_shared->runs < runs) {
        int64_t now = wr_clock_ms();

        if (bench_shared->runs != last) {
            last = bench_shared->runs;
            since = looked = now;
        }
        if (now - looked > STALL_MS) {
            rc = bench_check(b, err);
            looked = wr_clock_ms();
        }
        if (rc == WEIR_OK && now - since > PATIENCE_MS)
            rc = wr_fail(err, WEIR_E_BUG, 0, "nothing runs for a minute");
        if (rc == WEIR_OK)
            poll(NULL, 0, 1);
        if (rc == WEIR_OK)
            rc = bench_go_on(err);
    }
    return rc;
}
