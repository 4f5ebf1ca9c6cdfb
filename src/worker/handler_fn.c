/* C functions as handlers. Whoever wants one to stop can only ask: see
 * weir_delivery_should_stop(). */
#include <stdio.h>
#include <stdlib.h>

#include "worker/handler.h"

struct handler_fn {
    struct wr_handler base;
    weir_handler_fn fn;
    void *context;
};

static enum weir_outcome
fn_run(struct wr_handler *handler, struct weir_delivery *d)
{
    struct handler_fn *h = (struct handler_fn *)handler;

    return h->fn(d, h->context);
}

static void
fn_stop(struct wr_handler *handler, struct weir_delivery *d, enum wr_stop why)
{
    (void)handler;
    (void)d;
    (void)why; /* the flag in the delivery says it */
}

static void
fn_free(struct wr_handler *handler)
{
    free(handler);
}

static const struct wr_handler_ops fn_ops = {
    .kind = "function",
    .in_process = true,
    .run = fn_run,
    .stop = fn_stop,
    .free = fn_free,
};

struct wr_handler *
wr_handler_fn_new(const char *type, weir_handler_fn fn, void *context)
{
    struct handler_fn *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->base.ops = &fn_ops;
    snprintf(h->base.type, sizeof(h->base.type), "%s", type);
    h->fn = fn;
    h->context = context;
    return &h->base;
}
