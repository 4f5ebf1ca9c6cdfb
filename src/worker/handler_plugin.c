/*
 * Shared objects as handlers. A process of its own looks at the file first, so that what
 * it does while it is loaded reaches neither the supervisor, which must keep to one
 * thread, nor the user's terminal as a crash of the tool. Each child loads it for itself.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/handler.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "worker/worker_internal.h"

#define HANDLERS_MAX 1000
#define LOOK_MS 30000 /* a constructor may take as long */
/* Of a table as the first header of this ABI had it. */
#define FIRST_SIZE offsetof(struct weir_plugin, job_start)

struct handler_plugin {
    struct wr_handler base;
    struct wr_plugin *plugin;
    weir_handler_fn fn; /* in a child */
    void *context;
};

/* ---- a handler ---- */

static enum weir_outcome
plugin_run(struct wr_handler *handler, struct weir_delivery *d)
{
    struct handler_plugin *h = (struct handler_plugin *)handler;

    const struct weir_plugin *t = &h->plugin->table;
    enum weir_outcome outcome = WEIR_RETRY;

    if (t->startup)
        d->context = h->plugin->context;
    if (!t->job_start || wr_hook_start(t->job_start, d, d->context))
        outcome = h->fn(d, h->context);
    if (t->job_end)
        t->job_end(d, outcome, d->context);
    return outcome;
}

static void
plugin_stop(struct wr_handler *handler, struct weir_delivery *d, enum wr_stop why)
{
    (void)handler;
    (void)d;
    (void)why; /* the flag in the delivery says it */
}

static void
plugin_free(struct wr_handler *handler)
{
    free(handler);
}

static const struct wr_handler_ops plugin_ops = {
    .kind = "plugin",
    .in_process = true,
    .run = plugin_run,
    .stop = plugin_stop,
    .free = plugin_free,
};

struct wr_handler *
wr_handler_plugin_new(const char *type, struct wr_plugin *plugin)
{
    struct handler_plugin *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->base.ops = &plugin_ops;
    snprintf(h->base.type, sizeof(h->base.type), "%s", type);
    h->plugin = plugin;
    return &h->base;
}

/* ---- the table ---- */

/* One that an older header made is shorter in later versions, never in this one. */
static const struct weir_handler *
handler_at(const struct weir_plugin *t, size_t i)
{
    return (const struct weir_handler *)(const void *)((const char *)t->handlers +
                                                       i * t->handler_size);
}

static enum weir_err
check_handlers(const struct weir_plugin *t, const char *path, struct weir_error *err)
{
    if (!t->handlers || t->handlers_n < 1 || t->handlers_n > HANDLERS_MAX)
        return wr_fail(err, WEIR_E_CONFIG, 0, "plugin %.200s: not 1 to %d handlers", path,
                       HANDLERS_MAX);
    for (size_t i = 0; i < t->handlers_n; i++) {
        const struct weir_handler *h = handler_at(t, i);

        if (!h->type || !wr_text_is_type(wr_span_str(h->type)))
            return wr_fail(err, WEIR_E_CONFIG, 0,
                           "plugin %.200s: handler %zu: its type must be 1 to 128 bytes, "
                           "no control characters",
                           path, i + 1);
        if (!h->fn)
            return wr_fail(err, WEIR_E_CONFIG, 0,
                           "plugin %.200s: handler %.100s has no function", path,
                           h->type);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(handler_at(t, k)->type, h->type) == 0)
                return wr_fail(err, WEIR_E_CONFIG, 0,
                               "plugin %.200s: two handlers for type %.100s", path,
                               h->type);
        }
    }
    return WEIR_OK;
}

static enum weir_err
check_table(const struct weir_plugin *t, const char *path, struct weir_error *err)
{
    if (t->abi != WEIR_HANDLER_ABI)
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "plugin %.200s: built for handler ABI %u, this is %d: build it "
                       "again with this version's weir/handler.h",
                       path, (unsigned)t->abi, WEIR_HANDLER_ABI);
    if (t->struct_size < FIRST_SIZE || t->handler_size < sizeof(struct weir_handler))
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "plugin %.200s: its table says sizes that no header had", path);
    return check_handlers(t, path, err);
}

static enum weir_err
open_library(struct wr_plugin *p, struct weir_error *err)
{
    const struct weir_plugin *found;
    enum weir_err rc;
    const char *why;

    p->library = dlopen(p->path, RTLD_NOW | RTLD_LOCAL);
    if (!p->library) {
        why = dlerror(); /* mostly begins with the path */
        if (why && strncmp(why, p->path, strlen(p->path)) == 0)
            return wr_fail(err, WEIR_E_CONFIG, 0, "plugin %.450s", why);
        return wr_fail(err, WEIR_E_CONFIG, 0, "plugin %.200s: %.250s", p->path,
                       why ? why : "cannot be loaded");
    }
    found = dlsym(p->library, "weir_plugin");
    if (!found)
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "plugin %.200s: not a plugin, it has no symbol weir_plugin (see "
                       "weir/handler.h)",
                       p->path);
    rc = check_table(found, p->path, err);
    if (rc == WEIR_OK) /* of an older one the end is missing, of a newer one unknown */
        memcpy(&p->table, found,
               found->struct_size < sizeof(p->table) ? found->struct_size
                                                     : sizeof(p->table));
    return rc;
}

/* ---- looking ---- */

/* What the looking process says: the word, then the types if it is OK. */
struct look {
    struct weir_error err;
    size_t types_len;
};

static bool
write_all(int fd, const void *from, size_t len)
{
    const char *at = from;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* False at the end, or when the time is up. */
static bool
read_all(int fd, void *to, size_t len, int64_t deadline_ms)
{
    char *at = to;

    while (len > 0) {
        int64_t left = deadline_ms - wr_clock_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (left <= 0 || (poll(&p, 1, (int)left) < 0 && errno != EINTR))
            return false;
        if (!p.revents)
            continue;
        n = read(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* No destructors and no exit handlers: they belong to the children that work with it. */
static _Noreturn void
look_and_tell(struct wr_plugin *p, int fd)
{
    struct wr_buf types = {0};
    struct look look = {0};

    signal(SIGPIPE, SIG_IGN);
    if (open_library(p, &look.err) == WEIR_OK) {
        for (size_t i = 0; i < p->table.handlers_n; i++) {
            const char *type = handler_at(&p->table, i)->type;

            wr_buf_add(&types, type, strlen(type) + 1);
        }
    }
    if (types.failed)
        (void)wr_fail(&look.err, WEIR_E_NO_MEMORY, 0, "plugin");
    look.types_len = types.len;
    _exit(write_all(fd, &look, sizeof(look)) && write_all(fd, types.ptr, types.len) ? 0
                                                                                    : 1);
}

static enum weir_err
hear(struct wr_plugin *p, int fd, int64_t deadline_ms, bool *heard,
     struct weir_error *err)
{
    struct look look;

    *heard = read_all(fd, &look, sizeof(look), deadline_ms);
    if (!*heard)
        return WEIR_E_CONFIG;
    if (look.err.code != WEIR_OK) {
        if (err)
            *err = look.err;
        return look.err.code;
    }
    if (look.types_len > HANDLERS_MAX * sizeof(((struct wr_handler *)NULL)->type))
        return wr_fail(err, WEIR_E_CONFIG, 0, "plugin %.200s: too many types", p->path);
    p->types = malloc(look.types_len + 1);
    if (!p->types)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "plugin");
    p->types_len = look.types_len;
    *heard = read_all(fd, p->types, p->types_len, deadline_ms);
    return *heard ? WEIR_OK : WEIR_E_CONFIG;
}

static enum weir_err
say_silence(const struct wr_plugin *p, int status, bool late, struct weir_error *err)
{
    if (late)
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "plugin %.200s: not loaded after %d s: does a constructor wait?",
                       p->path, LOOK_MS / 1000);
    if (WIFSIGNALED(status))
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "plugin %.200s: loading it ends in SIG%s: a constructor of it?",
                       p->path, sigabbrev_np(WTERMSIG(status)));
    return wr_fail(err, WEIR_E_CONFIG, 0,
                   "plugin %.200s: loading it ends the process with status %d", p->path,
                   WEXITSTATUS(status));
}

static enum weir_err
look_at(struct wr_plugin *p, struct weir_error *err)
{
    int64_t deadline = wr_clock_ms() + LOOK_MS;
    int fds[2], status = 0;
    bool heard, late;
    enum weir_err rc;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return wr_fail(err, WEIR_E_NO_MEMORY, errno, "plugin");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        look_and_tell(p, fds[1]);
    }
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return wr_fail(err, WEIR_E_NO_MEMORY, errno, "fork");
    }
    rc = hear(p, fds[0], deadline, &heard, err);
    late = !heard && wr_clock_ms() >= deadline;
    if (heard || late)
        kill(pid, SIGKILL); /* threads that it started must not keep us waiting */
    close(fds[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return heard ? rc : say_silence(p, status, late, err);
}

enum weir_err
wr_plugin_new(const char *path, struct wr_plugin **out, struct weir_error *err)
{
    struct wr_plugin *p = calloc(1, sizeof(*p));
    enum weir_err rc;

    *out = NULL;
    if (!p)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "plugin");
    p->path = realpath(path, NULL);
    if (!p->path) {
        free(p);
        return wr_fail(err, WEIR_E_CONFIG, errno, "plugin %.200s", path);
    }
    rc = look_at(p, err);
    if (rc != WEIR_OK) {
        wr_plugin_free(p);
        return rc;
    }
    *out = p;
    return WEIR_OK;
}

void
wr_plugin_free(struct wr_plugin *p)
{
    if (!p)
        return;
    free(p->path);
    free(p->types);
    free(p); /* a library stays loaded: its threads may still run */
}

/* ---- in a child ---- */

static enum weir_err
bind_handler(struct handler_plugin *h, struct weir_error *err)
{
    const struct weir_plugin *t = &h->plugin->table;

    for (size_t i = 0; i < t->handlers_n; i++) {
        const struct weir_handler *found = handler_at(t, i);

        if (strcmp(found->type, h->base.type) == 0) {
            h->fn = found->fn;
            h->context = found->context;
            return WEIR_OK;
        }
    }
    return wr_fail(
        err, WEIR_E_CONFIG, 0,
        "plugin %.200s: replaced meanwhile, and without type %.100s: start the "
        "worker again",
        h->plugin->path, h->base.type);
}

enum weir_err
wr_plugin_load(struct wr_plugin *p, struct wr_handler *handlers, struct weir_error *err)
{
    enum weir_err rc = open_library(p, err);

    for (struct wr_handler *h = handlers; rc == WEIR_OK && h; h = h->next) {
        struct handler_plugin *own = (struct handler_plugin *)h;

        if (h->ops == &plugin_ops && own->plugin == p)
            rc = bind_handler(own, err);
    }
    if (rc == WEIR_OK && p->table.startup)
        rc = p->table.startup(&p->context, err);
    if (rc != WEIR_OK && err->code == WEIR_OK)
        return wr_fail(err, rc, 0, "plugin %.200s: its startup hook failed", p->path);
    return rc;
}

void
wr_plugin_unload(struct wr_plugin *p)
{
    if (p->table.shutdown)
        p->table.shutdown(p->context);
}
