/*
 * The blocking connection of a child. An idle one waits for the wake markers of its
 * queues and for hints about its jobs; one whose slots are all busy for hints alone. So
 * the wait that stands may have to be another one: then it is told to end, by CLIENT
 * UNBLOCK from the connection for commands. A marker that came just before is in its
 * reply as ever.
 *
 * With one queue an offer goes before the wait (io_offer.c): then a job that comes alone
 * comes with the marker.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "redis/backoff.h"
#include "redis/conn.h"
#include "worker/io.h"

/* After a marker was lost, to see the next; and after jobs were put off for other
 * workers, since of those that wait the server wakes the one that has waited longest. */
#define BLOCK_LOST_MS 1000
#define LOST_MEMORY_MS 30000 /* how long that is remembered */
#define HINTS_MS 10000
#define HINTS_SHORT_MS 200 /* where a wait cannot be told to end */
#define LISTEN_AFTER_MS 50 /* shorter jobs are over before a hint matters */
#define RELEASED_MS 1000   /* until the reply of one that was told to end */
#define LISTEN_OPEN_MS 500 /* to connect anew while jobs end: signals must be heard */

void
wr_io_drop_block(struct wr_io *io)
{
    wr_conn_close(io->block);
    io->block = NULL;
    io->posted = io->released = false;
    io->rested_ms = wr_clock_ms();
    wr_io_doubt_offer(io);
    io->connect_ms = wr_clock_ms() + wr_backoff_ms(io->failures, WR_IO_AWAY_MAX_MS);
    for (struct wr_line *l = io->lines; l; l = l->next)
        l->maybe_ready = true; /* a marker may have been on its way to us */
}

/* Without a slot for it a marker would be taken and put back, again and again. And one
 * queue that is broken or denied would end the wait for all: it is asked now and then. */
static bool
has_slot(const struct wr_io *io, const struct wr_line *l)
{
    return l->failures == 0 && wr_io_free_for(io, l, 0) > 0;
}

static bool
may_watch(struct wr_io *io, int64_t now)
{
    bool any = false;

    if (now < io->connect_ms || now < io->again_ms || !wr_io_may_claim(io) ||
        wr_io_jobs_left(io) <= 0)
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

static void
note_refusal(struct wr_io *io, const struct weir_error *err)
{
    if (!io->no_release)
        wr_log_warn("a wait cannot be told to end, so a worker with all slots busy may "
                    "start its next job %d ms late: %s",
                    HINTS_SHORT_MS, err->text);
    io->no_release = true;
}

/* Which one it is to the server. */
static bool
ask_id(struct wr_io *io, int64_t deadline)
{
    struct weir_error err = {0};
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_conn_do(io->block, deadline, &reply, &err, "CLIENT", "ID",
                                  (char *)NULL);

    io->block_id = rc == WEIR_OK ? wr_reply_int(reply) : 0;
    wr_reply_free(reply);
    if (rc != WEIR_OK && !wr_conn_is_broken(io->block))
        note_refusal(io, &err);
    return !wr_conn_is_broken(io->block);
}

/* Can it keep the answers to offers to itself? */
static bool
ask_mute(struct wr_io *io, int64_t deadline)
{
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_conn_do(io->block, deadline, &reply, NULL, "CLIENT", "REPLY",
                                  "ON", (char *)NULL);

    wr_reply_free(reply);
    io->may_mute = rc == WEIR_OK;
    return !wr_conn_is_broken(io->block);
}

static bool
open_block(struct wr_io *io, int64_t now)
{
    int64_t most = wr_io_command_timeout(io), deadline;

    if (io->block)
        return true;
    if (io->state != WR_IO_RUN && most > LISTEN_OPEN_MS)
        most = LISTEN_OPEN_MS;
    deadline = now + most;
    if (wr_server_open(io->server, "weir-wait", deadline, &io->block, NULL) == WEIR_OK &&
        (io->no_release || ask_id(io, deadline)) && ask_mute(io, deadline))
        return true;
    wr_io_drop_block(io);
    return false;
}

/* Hints stand first: markers that come without end do not keep them waiting. */
static size_t
fill_keys(struct wr_io *io)
{
    struct wr_span *argv = io->wait_words;
    size_t n = 0;

    argv[n++] = wr_span_str("BLPOP");
    argv[n++] = wr_span_str(io->hint_key);
    for (struct wr_line *l = io->lines; l; l = l->next) {
        l->watched = io->watches && n < WR_IO_KEYS_MAX && has_slot(io, l);
        if (l->watched)
            argv[n++] = wr_queue_wake_key(l->queue);
    }
    return n;
}

static void
post(struct wr_io *io, int64_t ms, int64_t now)
{
    struct wr_span *argv = io->wait_words;
    char seconds[24];
    size_t n;

    if (!open_block(io, now))
        return;
    io->block_ms = ms;
    n = fill_keys(io);
    snprintf(seconds, sizeof(seconds), "%d.%03d", (int)(ms / 1000), (int)(ms % 1000));
    argv[n++] = wr_span_str(seconds);
    if (!wr_io_hold_offer(io) ||
        wr_conn_send(io->block, argv, n, now + wr_io_command_timeout(io), NULL) !=
            WEIR_OK) {
        wr_io_drop_block(io);
        return;
    }
    io->posted = true;
    io->posted_ms = now;
}

/* Is there a queue with a slot whose marker the wait that stands would not take? */
static bool
misses_one(const struct wr_io *io)
{
    size_t watched = 0;
    bool missed = false;

    for (const struct wr_line *l = io->lines; l; l = l->next) {
        watched += l->watched;
        missed = missed || (!l->watched && has_slot(io, l));
    }
    return missed && watched + 2 < WR_IO_KEYS_MAX;
}

/* By a connection that is older than the wait's: a newer one may lead to another server,
 * on which the number is somebody else's. */
static enum weir_err
unblock(struct wr_io *io, int64_t now, struct weir_error *err)
{
    int64_t deadline = now + wr_io_command_timeout(io);
    struct wr_reply *reply = NULL;
    struct wr_conn *conn;
    enum weir_err rc = wr_server_take(io->server, deadline, &conn, err);
    char id[24];

    if (rc != WEIR_OK)
        return rc;
    snprintf(id, sizeof(id), "%lld", (long long)io->block_id);
    if (wr_conn_opened_ms(conn) > wr_conn_opened_ms(io->block))
        rc = WEIR_E_CONNECT;
    else
        rc = wr_conn_do(conn, deadline, &reply, err, "CLIENT", "UNBLOCK", id,
                        (char *)NULL);
    wr_reply_free(reply);
    wr_server_give(io->server, conn);
    return rc;
}

/* Its reply comes at once; or has come, then that is what was to be waited for. */
static void
release(struct wr_io *io, int64_t now)
{
    struct weir_error err = {0};
    enum weir_err rc;

    if (io->released || io->no_release)
        return;
    rc = unblock(io, now, &err);
    io->released = rc == WEIR_OK;
    io->released_ms = now;
    if (rc == WEIR_E_DENIED || rc == WEIR_E_SERVER)
        note_refusal(io, &err);
    if (rc != WEIR_OK)
        wr_io_drop_block(io); /* a new one waits for all from its begin */
}

void
wr_io_post_block(struct wr_io *io, int64_t now)
{
    bool short_wait = lost_lately(io, now) ||
                      (io->shelved_ms > 0 && now - io->shelved_ms < LOST_MEMORY_MS);

    if (!may_watch(io, now)) {
        wr_io_listen(io, now);
        return;
    }
    if (!io->posted) {
        io->watches = true;
        post(io, short_wait ? BLOCK_LOST_MS : WR_IO_BLOCK_MS, now);
    } else if (misses_one(io)) {
        release(io, now);
    }
}

int64_t
wr_io_listen_at(const struct wr_io *io)
{
    int64_t at = io->rested_ms + LISTEN_AFTER_MS;

    if (io->posted || io->outstanding == 0 || io->failures > 0 || io->state == WR_IO_STOP)
        return INT64_MAX;
    return at > io->connect_ms ? at : io->connect_ms;
}

void
wr_io_listen(struct wr_io *io, int64_t now)
{
    if (now < wr_io_listen_at(io))
        return;
    io->watches = false;
    post(io, io->no_release ? HINTS_SHORT_MS : HINTS_MS, now);
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

/* The server's own timeout follows its wall clock, which may stand still. */
int64_t
wr_io_reply_until(const struct wr_io *io)
{
    int64_t until = io->posted_ms + io->block_ms + WR_IO_BLOCK_SLACK_MS;

    if (!io->posted)
        return INT64_MAX;
    if (io->released && io->released_ms + RELEASED_MS < until)
        until = io->released_ms + RELEASED_MS;
    return until;
}

/* A hint, or the marker of one of the queues. True: the reply is taken. */
static bool
take_key(struct wr_io *io, struct wr_reply *reply)
{
    struct wr_span key = wr_reply_span(wr_reply_at(reply, 0));

    if (wr_span_same(key, wr_span_str(io->hint_key)))
        wr_lease_hint(io->o->lease);
    for (struct wr_line *l = io->lines; l; l = l->next) {
        if (!wr_span_same(key, wr_queue_wake_key(l->queue)))
            continue;
        if (wr_io_take_handed(io, l, reply))
            return true;
        l->owes_call = l->maybe_ready = true;
    }
    return false;
}

/* The wait has ended: by something that came, its time, or because it was told to. */
static void
take_reply(struct wr_io *io, struct wr_reply *reply)
{
    bool taken = false;

    if (io->watches)
        atomic_store(&io->o->page->contact_ms, wr_clock_ms());
    io->timed_out = wr_reply_kind(reply) == WR_REPLY_NIL && io->watches && !io->released;
    io->released = false;
    if (io->timed_out)
        look_without_marker(io);
    else if (wr_reply_kind(reply) == WR_REPLY_ARRAY)
        taken = take_key(io, reply);
    if (!taken)
        wr_reply_free(reply);
    wr_io_doubt_offer(io);
}

/* True: the reply of the wait is there. What comes before it is read. */
static bool
has_come(struct wr_io *io)
{
    while (wr_conn_has_reply(io->block)) {
        if (!io->offer_unheard)
            return true;
        if (!wr_io_hear_offer(io)) {
            wr_io_drop_block(io);
            return false;
        }
        if (io->offer_again)
            release(io, wr_clock_ms());
        if (!io->posted)
            return false;
    }
    if (wr_clock_ms() > wr_io_reply_until(io))
        wr_io_drop_block(io);
    return false;
}

void
wr_io_take_marker(struct wr_io *io)
{
    struct wr_reply *reply;

    if (!io->posted)
        return;
    if (io->offer_line && (io->lines->next || !wr_io_may_claim(io))) {
        wr_io_drop_block(io); /* it would still be taken */
        return;
    }
    if (!has_come(io))
        return;
    io->posted = false;
    if (io->watches) /* till now all were watched */
        io->polled_ms = io->rested_ms = wr_clock_ms();
    if (wr_conn_recv(io->block, wr_clock_ms() + 1000, &reply, NULL) != WEIR_OK ||
        wr_reply_kind(reply) == WR_REPLY_ERROR) {
        wr_reply_free(reply);
        wr_io_drop_block(io);
        return;
    }
    take_reply(io, reply);
}
