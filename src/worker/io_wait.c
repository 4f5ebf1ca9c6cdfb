/* The wait of an idle I/O thread for the wake markers of its queues. With one queue the
 * claim is sent right behind the wait: when a marker comes the server runs it at once,
 * and a start costs one way there and back less. */
#include <string.h>

#include "base/clock.h"
#include "redis/backoff.h"
#include "redis/conn.h"
#include "worker/io.h"

#define BLOCK_MS 5000
#define BLOCK_LOST_MS 1000   /* after a marker was lost */
#define LOST_MEMORY_MS 30000 /* how long a lost marker is remembered */

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

static bool
may_block(struct wr_io *io, int64_t now)
{
    struct wr_reserve r = {0};

    if (io->posted || now < io->connect_ms || now < io->again_ms || io->lines_n == 0)
        return false;
    wr_io_want(io, NULL, &r);
    if (r.free == 0)
        return false; /* a marker would be taken and put back, again and again */
    for (struct wr_line *l = io->lines; l; l = l->next) {
        if (l->maybe_ready && l->failures == 0)
            return false;
    }
    return true;
}

/* The lease of what comes counts from the time it was sent, as far as we know: it must be
 * long enough for that. A limit of jobs is not to be held while nothing comes. */
static bool
may_claim(const struct wr_io *io)
{
    return io->lines_n == 1 && io->lines->repeat == 0 && !io->w->jobs_left &&
           io->w->lease_ms >= 3 * io->block_ms;
}

void
wr_io_post_block(struct wr_io *io, int64_t now)
{
    struct wr_span argv[1002];
    size_t n = 0;

    if (!may_block(io, now))
        return;
    if (!io->block &&
        wr_server_open(io->server, "weir-wait", now + wr_io_command_timeout(io),
                       &io->block, NULL) != WEIR_OK) {
        wr_io_drop_block(io);
        return;
    }
    io->block_ms = io->marker_lost_ms > 0 && now - io->marker_lost_ms < LOST_MEMORY_MS
                       ? BLOCK_LOST_MS
                       : BLOCK_MS;
    argv[n++] = wr_span_str("BLPOP");
    for (struct wr_line *l = io->lines; l && n < 1000; l = l->next)
        argv[n++] = wr_queue_wake_key(l->queue);
    argv[n++] = wr_span_str(io->block_ms == BLOCK_MS ? "5" : "1");
    if (wr_conn_send(io->block, argv, n, now + wr_io_command_timeout(io), NULL) !=
        WEIR_OK) {
        wr_io_drop_block(io);
        return;
    }
    io->posted = true;
    io->posted_ms = now;
    if (may_claim(io) && !wr_io_post_claim(io, io->lines, now))
        wr_io_drop_block(io);
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
            l->owes_call = true;
        if (mine || io->timed_out)
            l->maybe_ready = true;
    }
    wr_reply_free(reply);
    if (io->claim_line && !wr_io_take_claim(io))
        wr_io_drop_block(io);
}
