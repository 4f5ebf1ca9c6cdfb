/*
 * Who gets the free slots when several queues have work.
 *
 * Weights: each queue has run so much work, divided by its weight; the one that has run
 * least is next. A queue that was empty begins where the others are, so it cannot make up
 * for the time it did not need. Strict: the first queue of the order that has work.
 *
 * Reserved slots are no threads but a count: of the slots, so many are kept free for jobs
 * of that queue.
 */
#include "base/clock.h"
#include "worker/io.h"

#define SHORT_STEP 8 /* jobs given at once while they are so short that calls count */

static size_t
less(size_t a, size_t b)
{
    return a > b ? a - b : 0;
}

/* What is claimed or may be, but for the doubt of the line that is about to repeat its
 * call. */
static size_t
out_of(const struct wr_line *l, const struct wr_line *asks)
{
    return l->outstanding + (l == asks ? 0 : l->doubt);
}

/* Slots that any queue may use and none does. */
static size_t
shared_free(const struct wr_io *io, const struct wr_line *asks)
{
    size_t used = 0;

    if (io->w->reserved == 0)
        return less(io->runner->slots,
                    io->outstanding + io->doubt - (asks ? asks->doubt : 0));
    for (const struct wr_line *l = io->lines; l; l = l->next)
        used += less(out_of(l, asks), l->reserved);
    return less(less(io->runner->slots, io->w->reserved), used);
}

static size_t
reserved_free(const struct wr_line *l, const struct wr_line *asks)
{
    return less(l->reserved, out_of(l, asks));
}

/* Has work, as far as we know, and may be asked now. */
static bool
competes(const struct wr_line *l, int64_t now)
{
    return (l->maybe_ready || l->owes_call) && l->failures == 0 && now >= l->look_ms &&
           now >= l->again_ms;
}

/* It refused a call, and may be asked again: with one job, to see. */
static bool
is_retried(const struct wr_line *l, int64_t now)
{
    return l->maybe_ready && l->failures > 0 && now >= l->again_ms;
}

/* In strict order the shared slots are not for a queue while one before it may have
 * work. */
static bool
is_its_turn(const struct wr_io *io, const struct wr_line *l)
{
    int64_t now = wr_clock_ms();

    if (!io->w->strict)
        return true;
    for (const struct wr_line *h = io->lines; h; h = h->next) {
        if (h->rank < l->rank && competes(h, now))
            return false;
    }
    return true;
}

size_t
wr_io_free_for(const struct wr_io *io, const struct wr_line *l, size_t ending)
{
    size_t held = less(out_of(l, l), l->reserved); /* of the shared ones */
    size_t back = ending < held ? ending : held;
    size_t own = less(l->reserved, less(out_of(l, l), ending));

    return own + (is_its_turn(io, l) ? shared_free(io, l) + back : 0);
}

size_t
wr_io_ending(const struct wr_io *io)
{
    size_t n = 0;

    for (const struct wr_line *l = io->lines; l; l = l->next)
        n += l->answers[WR_VERDICT_ACK].n;
    return n;
}

/* Where those stand that competed in the last turn; what joins them begins there. */
static double
common_pass(const struct wr_io *io)
{
    double least = -1;

    for (const struct wr_line *l = io->lines; l; l = l->next) {
        if (l->competes && (least < 0 || l->pass < least))
            least = l->pass;
    }
    return least < 0 ? 0 : least;
}

static size_t
join(struct wr_io *io, int64_t now)
{
    double pass = common_pass(io);
    bool fresh = true;
    size_t n = 0;

    for (const struct wr_line *l = io->lines; l; l = l->next)
        fresh = fresh && !l->competes;
    for (struct wr_line *l = io->lines; l; l = l->next) {
        bool before = l->competes;

        l->competes = competes(l, now);
        if (l->competes && (fresh || (!before && l->pass < pass)))
            l->pass = pass;
        l->plan = l->pass;
        l->quota = l->competes ? reserved_free(l, l) : is_retried(l, now);
        n += l->competes;
    }
    return n;
}

static struct wr_line *
least(struct wr_io *io)
{
    struct wr_line *next = NULL;

    for (struct wr_line *l = io->lines; l; l = l->next) {
        if (l->competes && (!next || l->plan < next->plan))
            next = l;
    }
    return next;
}

void
wr_io_share(struct wr_io *io)
{
    struct wr_reserve r = {0};
    size_t left, step;

    wr_io_want(io, NULL, wr_io_ending(io), &r);
    left = io->w->reserved > 0 ? shared_free(io, NULL) + wr_io_ending(io)
                               : r.free + r.ahead;
    left = left < WR_IO_CALL_MAX ? left : WR_IO_CALL_MAX;
    step = r.ahead > 0 ? SHORT_STEP : 1;
    if (join(io, wr_clock_ms()) < 2 || io->w->strict) {
        for (struct wr_line *l = io->lines; l; l = l->next)
            l->quota = SIZE_MAX;
        return;
    }
    while (left > 0) {
        struct wr_line *l = least(io);
        size_t some = step < left ? step : left;

        l->quota += some;
        l->plan += (double)some / l->weight;
        left -= some;
    }
}

void
wr_io_note_share(struct wr_line *l, size_t n)
{
    l->pass += (double)n / l->weight;
}
