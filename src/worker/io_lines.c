/* The queues that a worker child serves, and whose turn it is. */
#include <stdlib.h>

#include "worker/io.h"

#define REGISTRY_MS 5000
#define REGISTRY_EMPTY_MS 1000 /* no queue so far: a first job waits no longer */

/* NULL: not now, it is tried again at the next look. */
static struct wr_line *
add_line(struct wr_io *io, const char *name)
{
    struct wr_line **last = &io->lines, *l;
    struct wr_queue *queue;

    if (wr_store_queue(io->store, name, &queue, NULL) != WEIR_OK)
        return NULL;
    for (; *last; last = &(*last)->next) {
        if ((*last)->queue == queue)
            return *last;
    }
    l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->queue = queue;
    l->maybe_ready = true;
    l->weight = 1;
    l->quota = SIZE_MAX;
    l->rank = io->lines_n++;
    for (int i = 0; i < WR_VERDICTS; i++)
        l->answers[i].last = &l->answers[i].first;
    *last = l;
    return l;
}

static bool
add_registered(const char *name, void *context)
{
    (void)add_line(context, name);
    return true;
}

/* True when all are there. */
static bool
add_named(struct wr_io *io)
{
    bool all = true;

    for (size_t i = 0; io->w->queues[i]; i++) {
        struct wr_line *l = add_line(io, io->w->queues[i]);

        if (l && io->w->shares) {
            l->weight = io->w->shares[i].weight;
            l->reserved = io->w->shares[i].reserved;
        }
        all = all && l;
    }
    return all;
}

void
wr_io_look_for_queues(struct wr_io *io, int64_t now)
{
    if (now < io->registry_ms)
        return;
    io->registry_ms = now + (io->lines ? REGISTRY_MS : REGISTRY_EMPTY_MS);
    if (io->w->queues) {
        if (add_named(io))
            io->registry_ms = INT64_MAX;
        return;
    }
    if (wr_store_each_queue(io->store, add_registered, io, NULL) != WEIR_OK)
        return; /* Redis is away: the commands say it */
}

void
wr_io_rotate_lines(struct wr_io *io)
{
    struct wr_line *first = io->lines, **last = &io->lines;

    if (!first || !first->next || io->w->strict)
        return;
    io->lines = first->next;
    while (*last)
        last = &(*last)->next;
    first->next = NULL;
    *last = first;
}

struct wr_line *
wr_io_line_of(struct wr_io *io, const struct wr_queue *queue)
{
    struct wr_line *l = io->lines;

    while (l && l->queue != queue)
        l = l->next;
    return l;
}
