/*
 * Runs the jobs of producer.c until it is told to stop (SIGTERM, Ctrl-C):
 *
 *     worker [--drain]      --drain: end when the queue is empty
 */
#include <stdio.h>
#include <string.h>

#include <weir/worker.h>

/* Runs in a thread of a child process; several at a time. It may run again for the same
 * job when a worker died, so its effects should bear that. */
static enum weir_outcome
greet(struct weir_delivery *delivery, void *context)
{
    char text[128];
    size_t len;
    const char *name = weir_delivery_payload(delivery, &len);

    (void)context;
    if (len == 0) {
        weir_delivery_set_error(delivery, "nobody to greet");
        return WEIR_PERMANENT; /* trying again would not help */
    }
    snprintf(text, sizeof(text), "hello %.*s", (int)(len < 100 ? len : 100), name);
    if (weir_delivery_set_result(delivery, text, strlen(text)) != WEIR_OK)
        return WEIR_RETRY;
    return WEIR_DONE;
}

int
main(int argc, char **argv)
{
    const char *queues[] = {"greetings", NULL};
    struct weir_worker_options options = {WEIR_WORKER_OPTIONS_INIT, .queues = queues};
    struct weir_worker *worker = NULL;
    struct weir_error err = {0};

    options.drain = argc > 1 && strcmp(argv[1], "--drain") == 0;
    if (weir_worker_new(&options, &worker, &err) != WEIR_OK ||
        weir_worker_handle(worker, "greet", greet, NULL, &err) != WEIR_OK ||
        weir_worker_run(worker, &err) != WEIR_OK) {
        fprintf(stderr, "worker: %s [%s]\n", err.text, weir_err_name(err.code));
        weir_worker_free(worker);
        return weir_err_exit_status(err.code);
    }
    weir_worker_free(worker);
    return 0;
}
