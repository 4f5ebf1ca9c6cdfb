/*
 * weir/handler.h - handlers in a shared object, run by `weir work --plugin FILE.so` or
 * weir_worker_plugin(). The file exports one symbol, a table:
 *
 *     #include <weir/handler.h>
 *
 *     static enum weir_outcome greet(struct weir_delivery *d, void *context) { ... }
 *
 *     static const struct weir_handler handlers[] = {{"greet", greet, NULL}};
 *
 *     WEIR_PLUGIN = {
 *         WEIR_PLUGIN_INIT(handlers),
 *         .name = "greeter 1.2",
 *     };
 *
 *     cc -shared -fPIC -o greeter.so greeter.c
 *
 * Linking    the weir_delivery_* calls of weir/worker.h come from the program that loads
 *            the file: link it with none of Weir's libraries, and not with -z defs.
 * Loading    once by a short-lived process that looks at the table, when the worker is
 *            set up; then by each worker child at its start, before its threads and after
 *            it has forked what starts commands. So a constructor may do what a startup
 *            hook may, threads included; it runs more than once on a machine. Replace the
 *            file by rename(2): a child that starts later loads what is there then.
 * Crashes    one that aborts, faults, overflows its stack or calls exit() takes its child
 *            with it, not the worker. All jobs of the child come back; each that had
 * begun is charged one loss and runs alone from then on, so only the one at fault gets to
 * max_deliveries, and is dead then, with the signal in its errors. Versions
 * WEIR_HANDLER_ABI counts breaks of this header or of what it includes. The loader
 * refuses another number. What is added later goes to the ends of the structs, whose
 * sizes are in the table: a plugin built with an older header of the same number goes on
 * working, and so does a newer one.
 */
#ifndef WEIR_HANDLER_H
#define WEIR_HANDLER_H

#include <stdint.h>

#include <weir/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_HANDLER_ABI 1

struct weir_handler {
    const char *type;   /* as in weir_worker_handle(); "*": all that have none */
    weir_handler_fn fn; /* called from any of the child's slots, several at a time */
    void *context;      /* passed to fn */
};

/* Constant data: it and all it points to must be filled in when the file is loaded. */
struct weir_plugin {
    uint32_t abi;         /* WEIR_HANDLER_ABI; this place never moves */
    uint32_t struct_size; /* sizeof(struct weir_plugin); nor does this */
    size_t handler_size;  /* sizeof(struct weir_handler) */
    size_t handlers_n;    /* 1 to 1000 */
    const struct weir_handler *handlers;
    const char *name; /* for people; NULL: the file's */
    /* As weir_worker_on_startup() and _on_shutdown(), after the worker's own and for this
     * plugin alone: what startup stores is the weir_delivery_context() of its handlers.
     * Without one they see the worker's. NULL: none. */
    weir_startup_fn startup;
    weir_shutdown_fn shutdown;
    /* Around each job of this plugin's handlers and no others, in the slot's thread, as
     * weir_worker_on_job_start() and _on_job_end() say; inside the worker's own hooks:
     * its start, this start, the handler, this end, its end. context is that of the
     * handlers. NULL, or a table that ends before them: none. */
    weir_job_start_fn job_start;
    weir_job_end_fn job_end;
};

/* Of an array of handlers. */
#define WEIR_PLUGIN_INIT(array)                                         \
    .abi = WEIR_HANDLER_ABI, .struct_size = sizeof(struct weir_plugin), \
    .handler_size = sizeof(struct weir_handler),                        \
    .handlers_n = sizeof(array) / sizeof((array)[0]), .handlers = (array)

#define WEIR_PLUGIN WEIR_API const struct weir_plugin weir_plugin

/* What the file defines; nobody else does. */
extern WEIR_PLUGIN;

#ifdef __cplusplus
}
#endif

#endif
