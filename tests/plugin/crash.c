/* Handlers that end in every bad way, and good ones beside them. Built by plugin.bats. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>

static int started; /* a line in $STARTS for each start, to count them */

static void
note_start(const struct weir_delivery *d)
{
    const char *path = getenv("STARTS");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;

    started++;
    if (fd >= 0) {
        dprintf(fd, "%s\n", weir_delivery_id(d));
        close(fd);
    }
}

static enum weir_outcome
aborts(struct weir_delivery *d, void *context)
{
    (void)context;
    note_start(d);
    poll(NULL, 0, 100); /* its neighbours are well under way */
    abort();
}

static enum weir_outcome
faults(struct weir_delivery *d, void *context)
{
    volatile int *nowhere = context;

    note_start(d);
    poll(NULL, 0, 100);
    *nowhere = 1;
    return WEIR_DONE;
}

static int
deeper(volatile char *from)
{
    volatile char room[4096];

    room[0] = from ? from[0] : 1;
    return deeper(room) + room[0];
}

static enum weir_outcome
overflows(struct weir_delivery *d, void *context)
{
    (void)context;
    note_start(d);
    return deeper(NULL) ? WEIR_DONE : WEIR_RETRY;
}

static enum weir_outcome
exits(struct weir_delivery *d, void *context)
{
    (void)context;
    note_start(d);
    exit(7);
}

/* Does not look whether it should stop; a second line says that it ended. */
static enum weir_outcome
hears_nothing(struct weir_delivery *d, void *context)
{
    int left = 3000;

    (void)context;
    note_start(d);
    for (; left > 0; left -= 10)
        poll(NULL, 0, 10);
    note_start(d);
    return WEIR_DONE;
}

/* As many ms as its payload says. */
static enum weir_outcome
sleeps(struct weir_delivery *d, void *context)
{
    size_t len;
    const char *text = weir_delivery_payload(d, &len);
    char number[16];

    (void)context;
    note_start(d);
    snprintf(number, sizeof(number), "%.*s", (int)(len < 10 ? len : 10), text);
    for (int left = atoi(number); left > 0; left -= 10) {
        if (weir_delivery_should_stop(d))
            return WEIR_RETRY;
        poll(NULL, 0, 10);
    }
    return WEIR_DONE;
}

static enum weir_outcome
tells(struct weir_delivery *d, void *context)
{
    const char *text = weir_delivery_context(d);

    (void)context;
    return weir_delivery_set_result(d, text, strlen(text)) == WEIR_OK ? WEIR_DONE
                                                                      : WEIR_PERMANENT;
}

static enum weir_err
start(void **context, struct weir_error *err)
{
    const char *fails = getenv("STARTUP_FAILS");
    static char mine[] = "of this plugin";

    *context = mine;
    if (!fails)
        return WEIR_OK;
    err->code = WEIR_E_DENIED;
    snprintf(err->text, sizeof(err->text), "%.100s", fails);
    return WEIR_E_DENIED;
}

static void
stop(void *context)
{
    const char *path = getenv("STOPPED");
    FILE *f = path ? fopen(path, "a") : NULL;

    if (f) {
        fprintf(f, "%s\n", (const char *)context);
        fclose(f);
    }
}

#ifdef CONSTRUCTOR_FAULTS
__attribute__((constructor)) static void
construct(void)
{
    raise(SIGSEGV);
}
#endif

static const struct weir_handler handlers[] = {
    {"abort", aborts, NULL},       {"segv", faults, NULL},  {"overflow", overflows, NULL},
    {"exit", exits, NULL},         {"sleep", sleeps, NULL}, {"tell", tells, NULL},
    {"deaf", hears_nothing, NULL},
#ifdef TWICE
    {"sleep", sleeps, NULL},
#endif
};

WEIR_PLUGIN = {
    WEIR_PLUGIN_INIT(handlers),
    .startup = start,
    .shutdown = stop,
#ifdef OTHER_ABI
    .abi = 4711,
#endif
};
