/* A plugin with hooks around its jobs: each writes a line to $HOOKS. Built by
 * plugin.bats. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>

static void
say(const char *fmt, ...)
{
    const char *path = getenv("HOOKS");
    FILE *f = path ? fopen(path, "a") : NULL;
    va_list ap;

    if (!f)
        return;
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fclose(f);
}

static int
says(const struct weir_delivery *d, const char *word)
{
    size_t len;
    const char *text = weir_delivery_payload(d, &len);

    return len == strlen(word) && memcmp(text, word, len) == 0;
}

static enum weir_outcome
handle(struct weir_delivery *d, void *context)
{
    (void)context;
    say("run %s\n", weir_delivery_id(d));
    if (says(d, "fail"))
        return WEIR_PERMANENT;
    return weir_delivery_set_result(d, "mine", 4) == WEIR_OK ? WEIR_DONE : WEIR_RETRY;
}

static enum weir_err
job_start(struct weir_delivery *d, void *context, struct weir_error *err)
{
    say("start %s %s\n", weir_delivery_id(d), (const char *)context);
    if (!says(d, "refuse"))
        return WEIR_OK;
    err->code = WEIR_E_DENIED;
    snprintf(err->text, sizeof(err->text), "not today");
    return WEIR_E_DENIED;
}

static void
job_end(struct weir_delivery *d, enum weir_outcome outcome, void *context)
{
    say("end %s %s %d %s\n", weir_delivery_id(d), (const char *)context, (int)outcome,
        weir_delivery_error(d));
    if (says(d, "add"))
        (void)weir_delivery_set_result(d, "the hook's", 10);
}

static enum weir_err
start(void **context, struct weir_error *err)
{
    static char mine[] = "own";

    (void)err;
    *context = mine;
    return WEIR_OK;
}

static const struct weir_handler handlers[] = {{"hooked", handle, NULL}};

#ifdef OLD /* as the first header of this ABI had it, and then nothing good */
const struct {
    uint32_t abi, struct_size;
    size_t handler_size, handlers_n;
    const struct weir_handler *handlers;
    const char *name;
    weir_startup_fn startup;
    weir_shutdown_fn shutdown;
    const char *poison[2];
} old_plugin __asm__("weir_plugin") __attribute__((used, visibility("default"))) = {
    .abi = 1,
    .struct_size = offsetof(struct weir_plugin, job_start),
    .handler_size = sizeof(struct weir_handler),
    .handlers_n = 1,
    .handlers = handlers,
    .startup = start,
    .poison = {"call", "me"},
};
#else
WEIR_PLUGIN = {
    WEIR_PLUGIN_INIT(handlers),
    .startup = start,
    .job_start = job_start,
    .job_end = job_end,
};
#endif
