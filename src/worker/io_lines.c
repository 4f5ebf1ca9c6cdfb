/* The queues that a worker child serves, and whose turn it is. */
#include <stdlib.h>

#include "worker/io.h"

#define REGISTRY_MS 5000
#define REGISTRY_EMPTY_MS 1000 /* no queue so far: a first job waits no longer */

static bool
add_line(const char *name, void *context)
{
    struct wr_io *io = context;
    struct wr_queue *queue;
    struct wr_line *l;

    if (wr_store_queue(io->store, name, &queue, NULL) != WEIR_OK)
        return true;
    for (l = io->lines; l; l = l->next) {
        if (l->queue == queue)
            return true;
    }
    l = calloc(1, sizeof(*l));
    if (!l)
        return true; /* tried again at the next look */
    l->queue = queue;
    l->maybe_ready = true;
    for (int i = 0; i < WR_VERDICTS; i++)
        l->answers[i].last = &l->answers[i].first;
    l->next = io->lines;
    io->lines = l;
    io->lines_n++;
    return true;
}

void
wr_io_look_for_queues(struct wr_io *io, int64_t now)
{
    if (now < io->registry_ms)
        return;
    if (io->w->queues) {
        for (char **name = io->w->queues; *name; name++)
            add_line(*name, io);
        io->registry_ms = INT64_MAX;
        return;
    }
    io->registry_ms = now + (io->lines ? REGISTRY_MS : REGISTRY_EMPTY_MS);
    if (wr_store_each_queue(io->store, add_line, io, NULL) != WEIR_OK)
        return; /* Redis is away: the commands say it */
}

void
wr_io_rotate_lines(struct wr_io *io)
{
    struct wr_line *first = io->lines, **last = &io->lines;

    if (!first || !first->next)
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
