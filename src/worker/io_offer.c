/*
 * Offers (decisions/0019). Before an idle child waits for the marker of its one queue it
 * offers the call of reserve that it would make next. A job that comes alone is handed to
 * it by the step that stores it, and the marker brings it here.
 *
 * What else ends the wait leaves the offer in doubt: then the call itself is made, under
 * its number. It takes the offer back, or answers what was handed over meanwhile.
 *
 * The answer to an offer would wake the child once more for each job. While jobs come by
 * offers it is not asked for: should one fail, the next job comes by the marker as ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "worker/io.h"

/* The lease of what comes counts from the time of the offer, as far as we know: it must
 * be long enough for that. A limit of jobs is not to be held while nothing comes. */
bool
wr_io_makes_offers(const struct wr_io *io)
{
    return io->lines && !io->lines->next && !io->w->jobs_left &&
           io->w->lease_ms >= 3 * WR_IO_BLOCK_MS;
}

bool
wr_io_hold_offer(struct wr_io *io)
{
    struct wr_line *l = io->lines;
    struct wr_reserve r = {
        .worker = io->o->page->worker, .call = io->call, .lease_ms = io->w->lease_ms};

    if (!io->watches || !wr_io_makes_offers(io) || l->repeat > 0)
        return true;
    wr_io_want(io, l, 0, &r); /* what it runs, and how long it keeps results */
    io->call++;
    io->offer_line = l;
    io->offer_call = r.call;
    io->offer_unheard = !io->offers_well || !io->may_mute;
    l->doubt = 1;
    io->doubt += l->doubt;
    return wr_store_offer_hold(io->store, l->queue, &r, io->block_ms, io->block,
                               !io->offer_unheard, NULL) == WEIR_OK;
}

static void
end_offer(struct wr_io *io)
{
    io->doubt -= io->offer_line->doubt;
    io->offer_line->doubt = 0;
    io->offer_line = NULL;
    io->offer_unheard = false;
}

void
wr_io_doubt_offer(struct wr_io *io)
{
    if (!io->offer_line)
        return;
    io->offer_line->repeat = io->offer_call;
    io->offer_line = NULL;
    io->offer_unheard = io->offers_well = false;
}

bool
wr_io_hear_offer(struct wr_io *io)
{
    int64_t deadline = wr_clock_ms() + wr_io_command_timeout(io);
    enum wr_offer_word word = WR_OFFER_OFF;
    struct weir_error err = {0};
    enum weir_err rc;

    if (!io->offer_unheard)
        return true;
    rc = wr_store_offer_recv(io->store, io->offer_line->queue, io->block, deadline, &word,
                             &err);
    io->offer_unheard = false;
    io->offer_again = rc == WEIR_E_LOADING; /* the script is being loaded */
    if (wr_conn_is_broken(io->block))
        return false;
    if (rc == WEIR_OK && word == WR_OFFER_BEHIND)
        wr_io_doubt_offer(io);
    else if (rc != WEIR_OK || word != WR_OFFER_OK)
        end_offer(io);
    return true;
}

/* The batch takes the reply in which the job lies. */
static bool
make_batch(struct wr_batch *batch, const struct wr_handed *h, struct wr_reply *reply)
{
    batch->jobs = calloc(1, sizeof(*batch->jobs));
    if (!batch->jobs)
        return false;
    batch->jobs[0] = h->job;
    batch->n = 1;
    batch->reply = reply;
    return true;
}

bool
wr_io_take_handed(struct wr_io *io, struct wr_line *l, struct wr_reply *reply)
{
    struct wr_batch batch = {.word = WR_RESERVE_OK};
    struct wr_handed h;

    if (!wr_handed_read(wr_reply_span(wr_reply_at(reply, 1)), &h))
        return false;
    if (l != io->offer_line || h.call != io->offer_call ||
        strcmp(h.job.state.worker, io->o->page->worker) != 0) {
        wr_io_note_marker(l, &h);
        return false;
    }
    if (!make_batch(&batch, &h, reply))
        return false; /* the call itself asks for it again */
    end_offer(io);
    io->offers_well = true;
    l->asked_ms = io->posted_ms;
    l->maybe_ready = false; /* nothing waited when it came */
    wr_io_note_share(l, 1);
    wr_io_admit(io, l, &batch, io->posted_ms);
    return true;
}

void
wr_io_note_marker(struct wr_line *l, const struct wr_handed *h)
{
    snprintf(l->other_worker, sizeof(l->other_worker), "%s", h->job.state.worker);
    l->other_call = h->call;
}
