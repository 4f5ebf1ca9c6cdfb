/* How the I/O thread ends: states and their time limits (see the top of io.c). */
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/io.h"

#define STOP_GRACE_MS 6000 /* SIGTERM, 5 s, SIGKILL, and the answer */
#define HURRY_MS 1500
#define HAND_BACK_MS 1500 /* to hand back the jobs of handlers that did not stop */
#define ORPHAN_STOP_MS 800
#define ORPHAN_HAND_BACK_MS 500
#define ORPHAN_MAX_S 2      /* and the end, whatever hangs */
#define END_TIMEOUT_MS 500  /* of a call at the end: no call may use up its time */
#define AWAY_GIVE_UP_MS 700 /* at the end, with Redis away */

static void
stop_running(struct wr_io *io, enum wr_stop why)
{
    pthread_mutex_lock(&io->runner->mu);
    for (size_t i = 0; i < io->runner->n; i++) {
        if (io->runner->runs[i].in_use)
            wr_run_stop(&io->runner->runs[i], why);
    }
    pthread_mutex_unlock(&io->runner->mu);
}

void
wr_io_release_waiting(struct wr_io *io)
{
    struct wr_run *list = wr_runner_take_waiting(io->runner);

    while (list) {
        struct wr_run *run = list;

        list = run->next;
        wr_io_put_answer(wr_io_line_of(io, run->queue), WR_VERDICT_RELEASE, run);
    }
}

void
wr_io_begin_drain(struct wr_io *io, int64_t grace_ms, const char *why)
{
    if (io->state != WR_IO_RUN)
        return;
    wr_log_info("%s: no more jobs are claimed, %zu run", why, io->outstanding);
    io->state = WR_IO_DRAIN;
    if (END_TIMEOUT_MS < wr_io_command_timeout(io))
        wr_store_set_timeout(io->store, END_TIMEOUT_MS);
    io->began_ms = wr_clock_ms();
    io->deadline_ms = io->began_ms + grace_ms;
    wr_io_release_waiting(io);
    wr_io_release_alone(io);
    /* The marker that might be sent to us must not be lost with us. */
    if (io->posted && io->watches)
        wr_io_drop_block(io);
    for (struct wr_line *l = io->lines; l; l = l->next)
        l->owes_call = true;
}

void
wr_io_begin_stop(struct wr_io *io)
{
    io->state = WR_IO_STOP;
    io->began_ms = wr_clock_ms();
    io->deadline_ms = io->began_ms + (io->orphaned ? ORPHAN_STOP_MS
                                      : io->hurry  ? HURRY_MS
                                                   : STOP_GRACE_MS);
    stop_running(io, io->hurry || io->orphaned ? WR_STOP_LOST : WR_STOP_SHUTDOWN);
}

void
wr_io_read_signals(struct wr_io *io)
{
    struct signalfd_siginfo info;

    while (read(io->o->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (io->state == WR_IO_RUN) {
            io->grace_ms = atomic_load(&io->w->shared->grace_ms);
            wr_io_begin_drain(io, io->grace_ms, "told to stop");
        } else {
            io->hurry = true;
            if (io->state == WR_IO_DRAIN)
                io->deadline_ms = 0;
            else
                wr_io_begin_stop(io);
        }
    }
}

static bool
all_empty(const struct wr_io *io)
{
    for (struct wr_line *l = io->lines; l; l = l->next) {
        if (l->maybe_ready || l->owes_call)
            return false;
    }
    return io->lines_n > 0 && io->outstanding == 0;
}

/* It may be said anew while jobs have it. */
static void
heed_grace(struct wr_io *io)
{
    int64_t grace_ms = atomic_load(&io->w->shared->grace_ms);

    if (io->state != WR_IO_DRAIN || io->grace_ms < 0 || io->hurry ||
        grace_ms == io->grace_ms)
        return;
    io->grace_ms = grace_ms;
    io->deadline_ms = io->began_ms + grace_ms;
}

void
wr_io_check_end(struct wr_io *io)
{
    int64_t now = wr_clock_ms();

    heed_grace(io);

    if (io->replace)
        wr_io_begin_drain(io, io->w->grace_ms, "a handler hangs");
    if (io->state == WR_IO_RUN && wr_io_jobs_left(io) <= 0 && io->outstanding == 0 &&
        io->doubt == 0)
        wr_io_begin_drain(io, 0, "did as many jobs as it was told");
    if (io->state == WR_IO_RUN && io->w->drain && all_empty(io))
        wr_io_begin_drain(io, 0, "nothing is ready");
    if (io->state == WR_IO_DRAIN && io->outstanding > 0 && now >= io->deadline_ms)
        wr_io_begin_stop(io);
}

/* Answers still to be given, or markers to be given back. */
static bool
owes(const struct wr_io *io)
{
    for (struct wr_line *l = io->lines; l; l = l->next) {
        if (l->owes_call || l->repeat > 0)
            return true;
    }
    return wr_io_answers_n(io) > 0;
}

/* C handlers that did not stop end with this process, in a moment: their jobs are handed
 * back before. Commands are not handed back while they may still run. */
static void
hand_back(struct wr_io *io)
{
    struct wr_runner *r = io->runner;

    io->handed_back = true;
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n; i++) {
        struct wr_run *run = &r->runs[i];

        int running = WR_RUN_RUNNING;

        if (!run->in_use || !run->handler ||
            !(run->handler->ops->in_process || atomic_load(&run->d.in_hook)) ||
            !atomic_compare_exchange_strong(&run->phase, &running, WR_RUN_ABANDONED))
            continue;
        wr_log_error("job %s: its handler did not stop, it ends with this child",
                     run->d.id);
        wr_io_put_answer(wr_io_line_of(io, run->queue),
                         wr_judge_given_up(run, (enum wr_stop)atomic_load(&run->d.stop)),
                         run);
    }
    pthread_mutex_unlock(&r->mu);
    io->deadline_ms = wr_clock_ms() + (io->orphaned ? ORPHAN_HAND_BACK_MS : HAND_BACK_MS);
}

/* Nothing more to wait for, or no more time to wait. */
bool
wr_io_is_over(struct wr_io *io)
{
    int64_t now = wr_clock_ms();

    if (io->state == WR_IO_RUN)
        return false;
    if (io->outstanding == 0 && !owes(io))
        return true;
    if (io->outstanding == 0) /* only markers are owed: they are not worth a long wait */
        return now >= io->began_ms + AWAY_GIVE_UP_MS;
    if (io->state == WR_IO_DRAIN)
        return false;
    if (now < io->deadline_ms &&
        (io->failures == 0 || now < io->began_ms + AWAY_GIVE_UP_MS))
        return false;
    if (io->failures == 0 && !io->handed_back) {
        hand_back(io);
        return false;
    }
    io->lapsed = true;
    return true;
}

/* Whatever hangs: a handler, Redis, the spawner. */
void
wr_io_end_soon(void)
{
    sigset_t mask;

    signal(SIGALRM, SIG_DFL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    alarm(ORPHAN_MAX_S);
}
