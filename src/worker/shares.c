/* Which queues a worker serves, with their weights and reserved slots. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "worker/worker_internal.h"

static enum weir_err
check_share(const struct weir_worker_options *o, size_t i, struct weir_error *err)
{
    const struct weir_worker_share *s = &o->shares[i];

    if (!s->queue)
        return wr_fail(err, WEIR_E_ARG, 0, "a share without a queue");
    if (s->weight > WEIR_WEIGHT_MAX)
        return wr_fail(err, WEIR_E_ARG, 0, "queue %.130s: a weight over %d", s->queue,
                       WEIR_WEIGHT_MAX);
    if (o->strict && s->weight > 0)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "queue %.130s: strict order and weights exclude each other, leave "
                       "out one of them",
                       s->queue);
    for (size_t k = 0; k < i; k++) {
        if (strcmp(o->shares[k].queue, s->queue) == 0)
            return wr_fail(err, WEIR_E_ARG, 0, "queue %.130s is named twice", s->queue);
    }
    return WEIR_OK;
}

static enum weir_err
check_slots(const struct weir_worker *w, struct weir_error *err)
{
    bool all = true;

    for (size_t i = 0; w->queues && w->queues[i]; i++)
        all = all && w->shares && w->shares[i].reserved > 0;
    if (w->reserved > w->concurrency)
        return wr_fail(err, WEIR_E_ARG, 0, "%zu slots are reserved, a child has %zu",
                       w->reserved, w->concurrency);
    if (w->reserved == w->concurrency && !all)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "all %zu slots are reserved: none is left for the other queues",
                       w->reserved);
    return WEIR_OK;
}

static enum weir_err
add_queue(struct weir_worker *w, size_t i, const char *name, struct weir_error *err)
{
    if (!wr_text_is_queue(wr_span_str(name)))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "queue name: 1 to 128 bytes without braces or control characters");
    w->queues[i] = strdup(name);
    return w->queues[i] ? WEIR_OK : wr_fail(err, WEIR_E_NO_MEMORY, 0, "worker");
}

static enum weir_err
copy_names(struct weir_worker *w, const char *const *names, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;
    size_t n = 0;

    while (names && names[n])
        n++;
    if (n == 0)
        return WEIR_OK;
    w->queues = calloc(n + 1, sizeof(*w->queues));
    if (!w->queues)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "worker");
    for (size_t i = 0; i < n && rc == WEIR_OK; i++)
        rc = add_queue(w, i, names[i], err);
    return rc;
}

static enum weir_err
copy_shares(struct weir_worker *w, const struct weir_worker_options *o,
            struct weir_error *err)
{
    size_t n = o->shares_count;
    enum weir_err rc = WEIR_OK;

    w->queues = calloc(n + 1, sizeof(*w->queues));
    w->shares = calloc(n, sizeof(*w->shares));
    if (!w->queues || !w->shares)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "worker");
    for (size_t i = 0; i < n && rc == WEIR_OK; i++) {
        rc = check_share(o, i, err);
        if (rc == WEIR_OK)
            rc = add_queue(w, i, o->shares[i].queue, err);
        w->shares[i].weight = o->shares[i].weight > 0 ? o->shares[i].weight : 1;
        w->shares[i].reserved = o->shares[i].reserved;
        if (o->shares[i].reserved > WR_SLOTS_MAX)
            return wr_fail(err, WEIR_E_ARG, 0, "queue %.130s: over %d reserved slots",
                           o->shares[i].queue, WR_SLOTS_MAX);
        w->reserved += o->shares[i].reserved;
    }
    return rc;
}

enum weir_err
wr_worker_copy_queues(struct weir_worker *w, const struct weir_worker_options *o,
                      struct weir_error *err)
{
    enum weir_err rc;

    if (o->shares_count > 0 && o->queues && o->queues[0])
        return wr_fail(err, WEIR_E_ARG, 0, "queues or shares, not both");
    rc = o->shares_count > 0 ? copy_shares(w, o, err) : copy_names(w, o->queues, err);
    if (rc != WEIR_OK)
        return rc;
    w->strict = o->strict;
    if (w->strict && !w->queues)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "strict order: name the queues, the most important first");
    return check_slots(w, err);
}

void
wr_worker_free_queues(struct weir_worker *w)
{
    for (size_t i = 0; w->queues && w->queues[i]; i++)
        free(w->queues[i]);
    free(w->queues);
    free(w->shares);
}
