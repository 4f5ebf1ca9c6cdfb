/* A worker child: set-up, the I/O loop, the end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "worker/worker_internal.h"

/* The page says that this is an end in order, not an exit() somewhere in a handler. */
static _Noreturn void
leave(struct wr_slots *page, enum wr_child_exit how)
{
    if (how == WR_CHILD_DONE || how == WR_CHILD_STARTUP)
        fflush(NULL); /* else a handler that hangs may hold the lock of a FILE */
    atomic_store(&page->ended, 1 + (int)how);
    _exit((int)how);
}

static _Noreturn void
say_and_leave(struct wr_slots *page, const struct weir_error *err)
{
    wr_log_error("%s", err->text);
    page->error = *err;
    leave(page, WR_CHILD_STARTUP);
}

static enum weir_err
start_up(const struct weir_worker *w, void **context, struct weir_error *err)
{
    enum weir_err rc = w->startup ? w->startup(context, err) : WEIR_OK;

    if (rc != WEIR_OK && err->code == WEIR_OK)
        return wr_fail(err, rc, 0, "the startup hook failed");
    for (struct wr_plugin *p = w->plugins; rc == WEIR_OK && p; p = p->next)
        rc = wr_plugin_load(p, w->handlers, err);
    return rc;
}

/* A seat has a socket, and three pipes if it is a co-process's. The spawner, and so every
 * command, has the limit from before. */
static void
raise_limit(const struct weir_worker *w)
{
    rlim_t want = 256 + 4 * (rlim_t)wr_seats(w);
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
        return;
    limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* else a start says what is missing */
}

static void
end_handlers(struct wr_handler *first)
{
    for (struct wr_handler *h = first; h; h = h->next) {
        if (h->ops->end)
            h->ops->end(h);
    }
}

/* In the order opposite to that of their start. */
static void
shut_down_plugins(struct wr_plugin *first)
{
    if (!first)
        return;
    shut_down_plugins(first->next);
    wr_plugin_unload(first);
}

static int
open_signals(void)
{
    sigset_t mask;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTOU, SIG_IGN); /* its messages may go to a terminal that is not its own */
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    sigdelset(&mask, SIGHUP);
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

void
wr_child_main(const struct weir_worker *w, struct wr_slots *page, int lifeline_fd)
{
    struct weir_error err = {0};
    struct wr_spawner *spawner = NULL;
    struct wr_lease_thread *lease = NULL;
    struct wr_sender *sender = NULL;
    struct wr_runner runner;
    enum wr_child_exit how;
    void *context = NULL;
    int signals;

    prctl(PR_SET_NAME, "weir-child");
    setpgid(0, 0);
    signals = open_signals();
    page->tick_ms = page->fenced_ms = page->contact_ms = wr_clock_ms();
    page->fence_ms = INT64_MAX;
    if (w->has_exec && wr_spawner_start(page, wr_seats(w), &spawner, &err) != WEIR_OK)
        say_and_leave(page, &err);
    wr_spawner_set_current(spawner);
    raise_limit(w);
    if (start_up(w, &context, &err) != WEIR_OK)
        say_and_leave(page, &err);
    if (wr_runner_start(&runner, w->concurrency, page, &err) != WEIR_OK ||
        wr_lease_start(w, &runner, page->worker, &page->tick_ms, &lease, &err) !=
            WEIR_OK ||
        wr_sender_start(w, page->worker, &runner, lease, &sender, &err) != WEIR_OK)
        say_and_leave(page, &err);
    wr_log_info("worker %s: %zu slots", page->worker, w->concurrency);
    page->tick_ms = page->fenced_ms = wr_clock_ms(); /* the start-up hook took its time */
    atomic_store(&page->ready, true);
    how = wr_io_run(&(struct wr_io_options){.worker = w,
                                            .runner = &runner,
                                            .lease = lease,
                                            .page = page,
                                            .sender = sender,
                                            .context = context,
                                            .lifeline_fd = lifeline_fd,
                                            .signal_fd = signals});
    /* With handlers that did not return nothing can be joined or freed. */
    if (how == WR_CHILD_DONE) {
        wr_sender_stop(sender);
        wr_lease_free(lease);
        wr_runner_stop(&runner);
        end_handlers(w->handlers);
        shut_down_plugins(w->plugins);
        if (w->shutdown)
            w->shutdown(context);
    }
    wr_spawner_set_current(NULL); /* from now on its end is no accident */
    wr_spawner_stop(spawner);
    leave(page, how);
}
