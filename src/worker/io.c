/*
 * The I/O loop of a worker child: claims jobs, hands them to the slots, gives their
 * answers. One exchange call acks what finished and reserves the next. Who leads runs it
 * (io_lead.c), the main thread unless the child is idle. It sleeps only on the wake
 * markers of its queues and on its own slots.
 *
 *   RUN ──told to stop, or nothing left──► DRAIN ──grace over──► STOP ──► end
 *
 * RUN claims and runs. DRAIN claims nothing, lets run what runs. STOP has told the rest
 * to stop and waits for it a moment. Answers are given in every state; one that Redis
 * does not take is kept and given again.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "redis/conn.h"
#include "worker/io.h"

#define COMMAND_TIMEOUT_MS 2000

int64_t
wr_io_command_timeout(const struct wr_io *io)
{
    return io->w->lease_ms / 2 < COMMAND_TIMEOUT_MS ? io->w->lease_ms / 2
                                                    : COMMAND_TIMEOUT_MS;
}

static bool
serve(struct wr_io *io)
{
    unsigned failures = io->failures;
    bool done = false;

    if (wr_clock_ms() < io->again_ms)
        return false;
    wr_io_look_at_types(io, wr_clock_ms());
    wr_io_rotate_lines(io);
    wr_io_poll_markers(io, wr_clock_ms());
    wr_io_count_long(io, wr_clock_ms());
    wr_io_share(io);
    /* One call that Redis did not answer is enough for a turn: signals must be heard. */
    for (struct wr_line *l = io->lines;
         l && io->failures <= failures && wr_clock_ms() >= io->again_ms; l = l->next) {
        atomic_store(&io->o->page->tick_ms, wr_clock_ms());
        if (wr_clock_ms() >= l->again_ms)
            done = wr_io_serve_line(io, l) || done;
    }
    if (done)
        io->timed_out = false;
    wr_io_start_alone(io);
    return done;
}

/* When there is something to look at, whatever comes. */
static int64_t
wake_at(const struct wr_io *io, int64_t next, int64_t now)
{
    if (wr_io_printing_until(io) < next)
        next = wr_io_printing_until(io);
    if (io->again_ms > now && io->again_ms < next)
        next = io->again_ms;
    for (const struct wr_line *l = io->lines; l; l = l->next) {
        if (l->again_ms > now && l->again_ms < next)
            next = l->again_ms;
        if (l->look_ms > now && l->look_ms < next)
            next = l->look_ms;
    }
    if (io->connect_ms > now && io->connect_ms < next)
        next = io->connect_ms;
    if (wr_io_reply_until(io) < next)
        next = wr_io_reply_until(io);
    if (wr_io_listen_at(io) < next)
        next = wr_io_listen_at(io);
    if (io->registry_ms < next)
        next = io->registry_ms;
    if (io->state != WR_IO_RUN && io->deadline_ms < next)
        next = io->deadline_ms > now ? io->deadline_ms : now + 20;
    /* The lease thread looks at our tick. */
    return next > now + 1000 ? now + 1000 : next;
}

bool
wr_io_rest(struct wr_io *io, int64_t next)
{
    struct wr_runner *r = io->runner;
    struct pollfd p[4];
    eventfd_t count;
    int64_t now = wr_clock_ms();
    bool sleeps = wr_runner_may_sleep(r);
    int n;

    next = wake_at(io, next, now);
    p[0] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
    p[1] = (struct pollfd){.fd = io->posted ? wr_conn_fd(io->block) : -1,
                           .events = POLLIN};
    p[2] = (struct pollfd){.fd = io->o->signal_fd, .events = POLLIN};
    p[3] = (struct pollfd){.fd = io->orphaned ? -1 : io->o->lifeline_fd,
                           .events = POLLIN};
    n = poll(p, 4, !sleeps || next <= now ? 0 : (int)(next - now));
    wr_runner_is_awake(r);
    if (p[0].revents)
        (void)!read(r->wake_fd, &count, sizeof(count));
    if (p[2].revents)
        wr_io_read_signals(io);
    if (p[3].revents) {
        wr_log_error("the supervisor is gone: jobs are stopped and handed back");
        io->orphaned = io->hurry = true;
        wr_io_end_soon();
        wr_io_begin_drain(io, 0, "orphaned");
        wr_io_begin_stop(io);
    }
    return n > 0 || !sleeps;
}

/* Nothing to fetch for is as good as a fetch, as long as leases can be renewed. */
static void
note_contact(struct wr_io *io)
{
    struct wr_reserve r = {0};

    if (io->failures > 0 || io->doubt > 0 || wr_lease_is_away(io->o->lease))
        return; /* in doubt: a call is owed, or its wait will tell */
    wr_io_want(io, NULL, 0, &r);
    if (r.free == 0)
        atomic_store(&io->o->page->contact_ms, wr_clock_ms());
}

static bool
setup(struct wr_io *io)
{
    struct weir_error err = {0};

    io->alone_last = &io->alone;
    if (wr_worker_connect(io->w, "weir-work", 1, wr_io_command_timeout(io), &io->server,
                          &io->store, &err) != WEIR_OK) {
        wr_log_error("%s", err.text);
        return false;
    }
    if (wr_io_lead_init(&io->lead, &err) != WEIR_OK) {
        wr_log_error("%s", err.text);
        return false;
    }
    wr_key_hint(io->hint_key, wr_store_namespace(io->store), io->o->page->worker);
    return true;
}

static void
teardown(struct wr_io *io)
{
    wr_conn_close(io->block);
    while (io->lines) {
        struct wr_line *l = io->lines;

        io->lines = l->next;
        free(l);
    }
    wr_buf_fini(&io->types);
    wr_io_lead_fini(&io->lead);
    wr_store_free(io->store);
    wr_server_free(io->server);
}

/* True: something was done, and there may be more. A slot's thread that leads starts the
 * job that came before it looks at anything else. */
bool
wr_io_step(struct wr_io *io, int64_t *next)
{
    int64_t now = wr_clock_ms();
    bool done;

    *next = now;
    atomic_store(&io->o->page->tick_ms, now);
    wr_io_look_for_queues(io, now);
    wr_io_collect(io);
    wr_io_take_marker(io);
    if (wr_io_slot_leads(io) && wr_runner_waiting(io->runner) > 0)
        return true;
    done = serve(io);
    note_contact(io);
    *next = wr_io_check_runs(io, wr_clock_ms());
    wr_io_send_progress(io, wr_clock_ms());
    wr_io_check_end(io);
    if (done)
        wr_io_listen(io, wr_clock_ms());
    else
        wr_io_post_block(io, wr_clock_ms());
    return done;
}

enum wr_child_exit
wr_io_run(const struct wr_io_options *o)
{
    struct wr_io io = {
        .o = o, .w = o->worker, .runner = o->runner, .call = 1, .grace_ms = -1};

    if (!setup(&io))
        return WR_CHILD_STARTUP;
    while (!wr_io_is_over(&io)) {
        int64_t next;

        if (wr_io_step(&io, &next))
            (void)wr_io_rest(&io, 0); /* signals and markers, without waiting */
        else
            wr_io_rest_or_offer(&io, next);
    }
    if (io.lapsed)
        wr_log_error(
            "%zu job%s could not be handed back: leases will lapse and others run what "
            "is left",
            io.outstanding, wr_text_s((int64_t)io.outstanding));
    atomic_store(&o->page->tick_ms,
                 INT64_MAX / 2); /* the end may take longer than a tick */
    /* The lease thread uses our queues. With Redis away it may be in a long call, then
     * both end with the process, in a moment. */
    if (!io.lapsed) {
        wr_lease_stop(o->lease);
        teardown(&io);
    }
    return io.lapsed        ? WR_CHILD_LAPSE
           : io.replace     ? WR_CHILD_REPLACE
           : io.handed_back ? WR_CHILD_HUNG
                            : WR_CHILD_DONE;
}
