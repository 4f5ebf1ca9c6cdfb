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
 *
 * The timer is wound up by the slot, for 1 ms; but that costs as much as all else that
 * stands between a job and its handler. So while jobs come the main thread winds it up
 * itself, for TICK_NS each, and the slot need not where the handler has always been
 * short: a handler that was lent the lead at one tick and still has it at the next loses
 * it.
 */
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "worker/io.h"

#define LEND_NS 1000000  /* how long jobs, signals and timeouts may wait for a handler */
#define TICK_NS 10000000 /* for one that never took long; and as long again */
#define TICKS_MAX 50     /* in which no job came, then no more */
#define SHORT_US 500     /* handlers that take longer on average are not lent the lead */
#define IDLE_MS 2        /* before the lead is offered */
#define LONELY_MIN 4     /* or at once, after so many jobs that came alone */
#define NOBODY_MS 100    /* no slot thread is idle although nothing runs */

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

bool
wr_io_slot_leads(const struct wr_io *io)
{
    return atomic_load_explicit(&io->lead.leader, memory_order_relaxed) == SLOT_LEADS;
}

/* ---- the thread of a slot ---- */

static void
step_down(struct wr_io *io)
{
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
    bool steady = wr_runner_next_is_steady(runner);
    int lent = LENT;

    atomic_fetch_add(&lead->lent_n, 1);
    atomic_store(&lead->leader, LENT);
    if (!steady || !atomic_load(&lead->ticks)) { /* in this order: see stop_ticking() */
        atomic_store(&lead->ticks, false);
        wake_main_in(lead, LEND_NS);
    }
    wr_runner_run_here(runner, slot);
    return atomic_compare_exchange_strong(&lead->leader, &lent, SLOT_LEADS);
}

/* Called on a slot's thread that was offered the lead; returns when it does not lead. */
static void
lead_from_slot(void *context, size_t slot)
{
    struct wr_io *io = context;

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
    atomic_store(&io->lead.ticks, false);
    atomic_store(&io->lead.leader, SLOT_LEADS);
    if (wr_runner_offer_lead(io->runner, lead_from_slot, io))
        return true;
    atomic_store(&io->lead.leader, MAIN_LEADS);
    io->lead.again_ms = wr_clock_ms() + NOBODY_MS;
    return false;
}

static void
sleep_on_timer(const struct wr_lead *lead)
{
    uint64_t times;

    if (read(lead->timer_fd, &times, sizeof(times)) < 0 && errno != EINTR)
        poll(NULL, 0, 1);
}

/* A slot that lends the lead after this winds up the timer itself; one that did before
 * may have counted on us. */
static void
stop_ticking(struct wr_lead *lead)
{
    atomic_store(&lead->ticks, false);
    if (atomic_load(&lead->leader) == LENT)
        atomic_store(&lead->ticks, true);
}

static void
tick(struct wr_lead *lead)
{
    wake_main_in(lead, TICK_NS);
    if (!atomic_load(&lead->ticks)) /* a slot wound it up meanwhile, for less */
        wake_main_in(lead, LEND_NS);
}

/* The timer went off. *seen: the number of the last handler that was lent the lead. */
static bool
take_lead(struct wr_lead *lead, unsigned *seen, unsigned *quiet)
{
    unsigned now = atomic_load(&lead->lent_n);
    bool long_enough = now == *seen || !atomic_load(&lead->ticks);
    int lent = LENT;

    if (long_enough && atomic_compare_exchange_strong(&lead->leader, &lent, MAIN_LEADS))
        return true;
    *quiet = now == *seen ? *quiet + 1 : 0;
    *seen = now;
    atomic_store(&lead->ticks, true);
    if (*quiet > TICKS_MAX)
        stop_ticking(lead);
    if (atomic_load(&lead->ticks))
        tick(lead);
    /* After that, for who steps down winds it up to wake us at once. */
    return atomic_load(&lead->leader) == MAIN_LEADS;
}

static void
wait_for_lead(struct wr_io *io)
{
    unsigned seen = atomic_load(&io->lead.lent_n), quiet = 0;

    do {
        sleep_on_timer(&io->lead);
    } while (!take_lead(&io->lead, &seen, &quiet));
    io->lead.lonely = 0;
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
