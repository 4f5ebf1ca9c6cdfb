/*
 * Who leads: runs the I/O loop, and owns struct wr_io meanwhile.
 *
 *   main thread ──offers, when nothing is to do──► idle slot thread
 *        ▲                                          │       │
 *        └────steps down: more than one short job───┘       │ a handler
 *        └──────────takes it back, after 1 ms──── lent ◄────┘ runs
 *
 * An idle child costs a job two wakes the less if the thread that hears of it runs it and
 * gives its answer. So while nothing but short jobs come, one at a time, the thread of a
 * slot leads. It lends the lead while its handler runs: the main thread sleeps on a timer
 * and takes the lead from a handler that turns out to be long. In everything else the
 * main thread leads and the slots run.
 */
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "worker/io.h"

#define LEND_NS 1000000 /* how long jobs, signals and timeouts may wait for a handler */
#define SHORT_US 500    /* handlers that take longer on average are not lent the lead */
#define IDLE_MS 2       /* before the lead is offered */
#define LONELY_MIN 4    /* or at once, after so many jobs that came alone */
#define NOBODY_MS 100   /* no slot thread is idle although nothing runs */

enum wr_io_leader {
    MAIN_LEADS,
    SLOT_LEADS,
    LENT /* a slot's thread leads and runs a handler: the main thread may take it */
};

static void
wake_main_in(struct wr_lead *lead, long ns)
{
    struct itimerspec at = {.it_value.tv_nsec = ns};

    (void)timerfd_settime(lead->timer_fd, 0, &at, NULL); /* fails for no valid time */
}

enum weir_err
wr_io_lead_init(struct wr_lead *lead, struct weir_error *err)
{
    lead->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return lead->timer_fd < 0 ? wr_fail(err, WEIR_E_NO_MEMORY, errno, "a timer")
                              : WEIR_OK;
}

void
wr_io_lead_fini(struct wr_lead *lead)
{
    close(lead->timer_fd);
}

/* ---- the thread of a slot ---- */

static void
step_down(struct wr_io *io)
{
    io->lead.slot_leads = false;
    atomic_store(&io->lead.leader, MAIN_LEADS);
    wake_main_in(&io->lead, 1);
}

static bool
is_short(const struct wr_io *io)
{
    return atomic_load_explicit(&io->runner->ewma_us, memory_order_relaxed) <= SHORT_US;
}

/* Runs the one job that waits. False: the main thread leads now. */
static bool
run_here(struct wr_io *io, size_t slot)
{
    struct wr_lead *lead = &io->lead;
    struct wr_runner *runner = io->runner; /* io may be another's in a moment */
    int lent = LENT;

    lead->armed = true;
    atomic_store(&lead->leader, LENT);
    wake_main_in(lead, LEND_NS);
    wr_runner_run_here(runner, slot);
    return atomic_compare_exchange_strong(&lead->leader, &lent, SLOT_LEADS);
}

/* Called on a slot's thread that was offered the lead; returns when it does not lead. */
static void
lead_from_slot(void *context, size_t slot)
{
    struct wr_io *io = context;

    io->lead.slot_leads = true;
    while (io->state == WR_IO_RUN) {
        int64_t next;
        bool done = wr_io_step(io, &next);

        if (wr_runner_waiting(io->runner) > 0) {
            if (io->outstanding > 1 || !is_short(io))
                break; /* its own part of them it takes as any slot does */
            if (!run_here(io, slot))
                return;
            continue;
        }
        if (io->outstanding > 0)
            break; /* it stands aside, or its answer waits for something */
        if (io->lead.armed)
            wake_main_in(&io->lead, 0);
        io->lead.armed = false;
        (void)wr_io_rest(io, done ? 0 : next);
    }
    step_down(io);
}

/* ---- the main thread ---- */

static bool
is_idle(const struct wr_io *io)
{
    return io->state == WR_IO_RUN && io->outstanding == 0 && io->posted && io->watches &&
           wr_clock_ms() >= io->lead.again_ms;
}

/* False: no slot's thread is there to take it. */
static bool
offer(struct wr_io *io)
{
    wake_main_in(&io->lead, 0); /* whatever it was wound up for */
    io->lead.armed = false;
    atomic_store(&io->lead.leader, SLOT_LEADS);
    if (wr_runner_offer_lead(io->runner, lead_from_slot, io))
        return true;
    atomic_store(&io->lead.leader, MAIN_LEADS);
    io->lead.again_ms = wr_clock_ms() + NOBODY_MS;
    return false;
}

static void
wait_for_lead(struct wr_io *io)
{
    struct wr_lead *lead = &io->lead;

    for (;;) {
        int lent = LENT;
        uint64_t times;

        if (read(lead->timer_fd, &times, sizeof(times)) < 0 && errno != EINTR)
            poll(NULL, 0, 1);
        if (atomic_load(&lead->leader) == MAIN_LEADS ||
            atomic_compare_exchange_strong(&lead->leader, &lent, MAIN_LEADS))
            break;
    }
    lead->slot_leads = false;
    lead->lonely = 0;
}

void
wr_io_rest_or_offer(struct wr_io *io, int64_t next)
{
    int64_t soon = wr_clock_ms() + IDLE_MS;

    if (!is_idle(io)) {
        (void)wr_io_rest(io, next);
        return;
    }
    if (io->lead.lonely < LONELY_MIN && wr_io_rest(io, next < soon ? next : soon))
        return;
    if (is_idle(io) && offer(io))
        wait_for_lead(io);
}
