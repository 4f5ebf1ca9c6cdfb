/* The wait of an idle I/O thread for the wake markers of its queues. With one queue the
 * claim is sent right behind the wait: when a marker comes the server runs it at once,
 * and a start costs one way there and back less. */
#include <string.h>

#include "base/clock.h"
#include "redis/backoff.h"
#include "redis/conn.h"
#include "worker/io.h"

#define BLOCK_MS 5000
/* After a marker was lost, to see the next; and after jobs were put off for other
 * workers, since of those that wait the server wakes the one that has waited longest. */
#define BLOCK_LOST_MS 1000
#define LOST_MEMORY_MS 30000 /* how long that is remembered */
#define ASK_MS 5000 /* of work for others: a queue is asked, whatever the markers say */
#define POLL_MS 50  /* while other queues keep it busy */
#define POLL_STRICT_MS 5

void
wr_io_drop_block(struct wr_io *io)
{
    wr_conn_close(io->block);
    io->block = NULL;
    io->posted = false;
    wr_io_doubt_claim(io);
    io->connect_ms = wr_clock_ms() + wr_backoff_ms(io->failures, WR_IO_AWAY_MAX_MS);
    for (struct wr_line *l = io->lines; l; l = l->next)
        l->maybe_ready = true; /* a marker may have been on its way to us */
}

/* Without a slot for it a marker would be taken and put back, again and again. */
static bool
has_slot(const struct wr_io *io, const struct wr_line *l)
{
    return wr_io_free_for(io, l, 0) > 0;
}

static bool
may_block(struct wr_io *io, int64_t now)
{
    bool any = false;

    if (io->posted || now < io->connect_ms || now < io->again_ms ||
        !wr_io_may_claim(io) || wr_io_jobs_left(io) <= 0)
        return false;
    for (struct wr_line *l = io->lines; l; l = l->next) {
        if (!has_slot(io, l))
            continue;
        if (l->maybe_ready && l->failures == 0)
            return false;
        any = true;
    }
    return any;
}

static bool
lost_lately(const struct wr_io *io, int64_t now)
{
    return io->marker_lost_ms > 0 && now - io->marker_lost_ms < LOST_MEMORY_MS;
}

static bool
open_block(struct wr_io *io, int64_t now)
{
    if (!io->block &&
        wr_server_open(io->server, "weir-wait", now + wr_io_command_timeout(io),
                       &io->block, NULL) != WEIR_OK) {
        wr_io_drop_block(io);
        return false;
    }
    return true;
}

/* The lease of what comes counts from the time it was sent, as far as we know: it must be
 * long enough for that. A limit of jobs is not to be held while nothing comes. */
static bool
may_claim(const struct wr_io *io)
{
    return io->lines && !io->lines->next && io->lines->repeat == 0 && !io->w->jobs_left &&
           io->w->lease_ms >= 3 * io->block_ms;
}

void
wr_io_post_block(struct wr_io *io, int64_t now)
{
    struct wr_span argv[1002];
    size_t n = 0;
    bool claims;
    enum weir_err rc;

    if (!may_block(io, now))
        return;
    if (!open_block(io, now))
        return;
    io->block_ms = lost_lately(io, now) ||
                           (io->shelved_ms > 0 && now - io->shelved_ms < LOST_MEMORY_MS)
                       ? BLOCK_LOST_MS
                       : BLOCK_MS;
    argv[n++] = wr_span_str("BLPOP");
    for (struct wr_line *l = io->lines; l && n < 1000; l = l->next) {
        if (has_slot(io, l))
            argv[n++] = wr_queue_wake_key(l->queue);
    }
    argv[n++] = wr_span_str(io->block_ms == BLOCK_MS ? "5" : "1");
    claims = may_claim(io);
    rc = claims ? wr_conn_hold(io->block, argv, n, NULL)
                : wr_conn_send(io->block, argv, n, now + wr_io_command_timeout(io), NULL);
    if (rc != WEIR_OK) {
        wr_io_drop_block(io);
        return;
    }
    io->posted = true;
    io->posted_ms = now;
    if (claims && !wr_io_post_claim(io, io->lines, now))
        wr_io_drop_block(io);
}

/* Asks of these queues are due: their last one said that they were empty. */
static bool
is_unwatched(const struct wr_line *l)
{
    return !l->maybe_ready && !l->owes_call && l->failures == 0;
}

static bool
send_polls(struct wr_io *io, int64_t now, int64_t deadline)
{
    for (struct wr_line *l = io->lines; l; l = l->next) {
        struct wr_span argv[] = {wr_span_str("LPOP"), wr_queue_wake_key(l->queue)};

        if (now - l->asked_ms > ASK_MS)
            l->maybe_ready = true; /* its marker may have been lost */
        l->polled = is_unwatched(l);
        if (l->polled && wr_conn_send(io->block, argv, 2, deadline, NULL) != WEIR_OK)
            return false;
    }
    return true;
}

static bool
take_polls(struct wr_io *io, int64_t deadline)
{
    for (struct wr_line *l = io->lines; l; l = l->next) {
        struct wr_reply *reply;

        if (!l->polled)
            continue;
        if (wr_conn_recv(io->block, deadline, &reply, NULL) != WEIR_OK)
            return false;
        l->owes_call = wr_reply_kind(reply) == WR_REPLY_STRING;
        l->maybe_ready = l->owes_call;
        wr_reply_free(reply);
    }
    return true;
}

void
wr_io_poll_markers(struct wr_io *io, int64_t now)
{
    int64_t deadline = now + wr_io_command_timeout(io);
    bool busy = false, any = false;

    for (struct wr_line *l = io->lines; l; l = l->next) {
        busy = busy || l->maybe_ready;
        any = any || is_unwatched(l);
    }
    /* Without a slot the markers would only be put back. */
    any = any && (io->w->reserved > 0 ||
                  io->outstanding + io->doubt < io->runner->slots + wr_io_ending(io));
    if (!busy || !any || io->posted || now < io->connect_ms || !wr_io_may_claim(io) ||
        now < io->polled_ms + (io->w->strict ? POLL_STRICT_MS : POLL_MS))
        return;
    io->polled_ms = now;
    if (open_block(io, now) &&
        (!send_polls(io, now, deadline) || !take_polls(io, deadline)))
        wr_io_drop_block(io);
}

/* The one that has not been asked for the longest time. */
static struct wr_line *
oldest(const struct wr_io *io)
{
    struct wr_line *found = io->lines;

    for (struct wr_line *l = io->lines; l; l = l->next) {
        if (l->asked_ms < found->asked_ms)
            found = l;
    }
    return found;
}

/* The wait is over and no marker came. One may have been lost with the worker that took
 * it; where a scheduler runs it has been put back by now. So one queue is looked at, in
 * turn, now and then; or all, after it was needed. */
static void
look_without_marker(struct wr_io *io)
{
    if (!lost_lately(io, wr_clock_ms())) {
        io->waits++;
        if (io->lines_n == 1 || io->waits % 2 == 0)
            oldest(io)->maybe_ready = true;
        return;
    }
    for (struct wr_line *l = io->lines; l; l = l->next)
        l->maybe_ready = true;
}

void
wr_io_take_marker(struct wr_io *io)
{
    struct wr_reply *reply;
    struct wr_span key;

    if (!io->posted)
        return;
    if (io->claim_line && !wr_io_may_claim(io)) {
        wr_io_drop_block(io); /* it would still claim */
        return;
    }
    if (!wr_conn_has_reply(io->block)) {
        /* The server's own timeout follows its wall clock, which may stand still. */
        if (wr_clock_ms() > io->posted_ms + io->block_ms + WR_IO_BLOCK_SLACK_MS)
            wr_io_drop_block(io);
        return;
    }
    io->posted = false;
    io->polled_ms = wr_clock_ms(); /* till now all were watched */
    if (wr_conn_recv(io->block, wr_clock_ms() + 1000, &reply, NULL) != WEIR_OK ||
        wr_reply_kind(reply) == WR_REPLY_ERROR) {
        wr_reply_free(reply);
        wr_io_drop_block(io);
        return;
    }
    key = wr_reply_span(wr_reply_at(reply, 0));
    io->timed_out = wr_reply_kind(reply) == WR_REPLY_NIL;
    atomic_store(&io->o->page->contact_ms, wr_clock_ms());
    for (struct wr_line *l = io->lines; l; l = l->next) {
        struct wr_span wake = wr_queue_wake_key(l->queue);
        bool mine = wake.len == key.len && memcmp(wake.ptr, key.ptr, key.len) == 0;

        if (mine)
            l->owes_call = l->maybe_ready = true;
    }
    if (io->timed_out)
        look_without_marker(io);
    wr_reply_free(reply);
    if (io->claim_line && !wr_io_take_claim(io))
        wr_io_drop_block(io);
}
