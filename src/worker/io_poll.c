/* Markers of the queues that a busy worker does not wait for: taken now and then, with
 * the connection for commands. */
#include "base/clock.h"
#include "worker/io.h"

#define ASK_MS 5000 /* of work for others: a queue is asked, whatever the markers say */
#define POLL_MS 50  /* while other queues keep it busy */
#define POLL_STRICT_MS 5

/* Asks of these queues are due: their last one said that they were empty. */
static bool
is_unwatched(const struct wr_line *l)
{
    return !l->maybe_ready && !l->owes_call && l->failures == 0;
}

static bool
send_polls(struct wr_io *io, struct wr_conn *conn, int64_t now, int64_t deadline)
{
    for (struct wr_line *l = io->lines; l; l = l->next) {
        struct wr_span argv[] = {wr_span_str("LPOP"), wr_queue_wake_key(l->queue)};

        if (now - l->asked_ms > ASK_MS)
            l->maybe_ready = true; /* its marker may have been lost */
        l->polled = is_unwatched(l);
        if (l->polled && wr_conn_send(conn, argv, 2, deadline, NULL) != WEIR_OK)
            return false;
    }
    return true;
}

static bool
take_polls(struct wr_io *io, struct wr_conn *conn, int64_t deadline)
{
    struct wr_handed h;

    for (struct wr_line *l = io->lines; l; l = l->next) {
        struct wr_reply *reply;

        if (!l->polled)
            continue;
        if (wr_conn_recv(conn, deadline, &reply, NULL) != WEIR_OK)
            return false;
        l->owes_call = wr_reply_kind(reply) == WR_REPLY_STRING;
        l->maybe_ready = l->owes_call;
        if (l->owes_call && wr_handed_read(wr_reply_span(reply), &h))
            wr_io_note_marker(l, &h);
        wr_reply_free(reply);
    }
    return true;
}

static bool
poll_all(struct wr_io *io, int64_t now)
{
    int64_t deadline = now + wr_io_command_timeout(io);
    struct wr_conn *conn;
    bool well;

    if (wr_server_take(io->server, deadline, &conn, NULL) != WEIR_OK)
        return false;
    well = send_polls(io, conn, now, deadline) && take_polls(io, conn, deadline);
    wr_server_give(io->server, conn);
    return well;
}

void
wr_io_poll_markers(struct wr_io *io, int64_t now)
{
    bool busy = false, any = false;

    for (struct wr_line *l = io->lines; l; l = l->next) {
        busy = busy || l->maybe_ready;
        any = any || is_unwatched(l);
    }
    /* Without a slot the markers would only be put back. */
    any = any && (io->w->reserved > 0 ||
                  io->outstanding + io->doubt < io->runner->slots + wr_io_ending(io));
    if (!busy || !any || (io->posted && io->watches) || !wr_io_may_claim(io) ||
        now < io->polled_ms + (io->w->strict ? POLL_STRICT_MS : POLL_MS))
        return;
    io->polled_ms = now;
    if (poll_all(io, now))
        return;
    for (struct wr_line *l = io->lines; l; l = l->next)
        l->maybe_ready = true; /* a marker may have been on its way to us */
}
