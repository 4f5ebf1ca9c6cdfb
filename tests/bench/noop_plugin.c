/* The plugin of bench_handlers: what its own handler does, no more. */
#include <weir/handler.h>

static enum weir_outcome
noop(struct weir_delivery *d, void *context)
{
    (void)context;
    return weir_delivery_should_stop(d) ? WEIR_RETRY : WEIR_DONE;
}

static const struct weir_handler handlers[] = {{"plugin", noop, NULL}};

WEIR_PLUGIN = {WEIR_PLUGIN_INIT(handlers)};
