/*
 * Handlers for `weir work`, in a shared object:
 *
 *     cc -shared -fPIC -o plugin.so plugin.c
 *     weir work --plugin ./plugin.so
 *
 * It needs the headers of Weir and none of its libraries: the calls come from the program
 * that loads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>

/* What the handlers of one worker child share. They run in several threads at a time, so
 * it is made before the first and never changed. */
struct phrases {
    const char *greeting;
};

static enum weir_err
start(void **context, struct weir_error *err)
{
    struct phrases *phrases = malloc(sizeof(*phrases));

    (void)err;
    if (!phrases)
        return WEIR_E_NO_MEMORY;
    phrases->greeting = getenv("GREETING") ? getenv("GREETING") : "hello";
    *context = phrases;
    return WEIR_OK;
}

static void
stop(void *context)
{
    free(context);
}

static enum weir_outcome
greet(struct weir_delivery *delivery, void *context)
{
    const struct phrases *phrases = weir_delivery_context(delivery);
    char text[128];
    size_t len;
    const char *name = weir_delivery_payload(delivery, &len);

    (void)context;
    if (len == 0) {
        weir_delivery_set_error(delivery, "nobody to greet");
        return WEIR_PERMANENT; /* trying again would not help */
    }
    snprintf(text, sizeof(text), "%.20s %.*s", phrases->greeting,
             (int)(len < 100 ? len : 100), name);
    return weir_delivery_set_result(delivery, text, strlen(text)) == WEIR_OK ? WEIR_DONE
                                                                             : WEIR_RETRY;
}

/* One function can serve several types: its context says which. */
static enum weir_outcome
count(struct weir_delivery *delivery, void *context)
{
    const char *what = context;
    size_t len, n = 0;
    const char *text = weir_delivery_payload(delivery, &len);
    char result[32];

    for (size_t i = 0; i < len; i++) {
        if (weir_delivery_should_stop(delivery))
            return WEIR_RETRY; /* cancelled, late, or the worker ends */
        n += *what == '\0' || text[i] == *what;
    }
    snprintf(result, sizeof(result), "%zu", n);
    return weir_delivery_set_result(delivery, result, strlen(result)) == WEIR_OK
               ? WEIR_DONE
               : WEIR_RETRY;
}

static char bytes[] = "", lines[] = "\n";

static const struct weir_handler handlers[] = {
    {"greet", greet, NULL},
    {"count-bytes", count, bytes},
    {"count-lines", count, lines},
};

WEIR_PLUGIN = {
    WEIR_PLUGIN_INIT(handlers),
    .name = "examples",
    .startup = start,
    .shutdown = stop,
};
