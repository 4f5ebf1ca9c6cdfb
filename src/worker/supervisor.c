/*
 * The supervisor: starts children, watches them, cleans up after them. It has no threads,
 * never speaks to Redis and never runs a handler, so nothing that goes wrong there can
 * reach it.
 *
 * When a worker child dies: kill what its slots had started and wait for that, tell the
 * service child which page to take back, start a replacement with the other page of that
 * place. A page is used again only after the service child is done with it.
 *
 * Children know that the supervisor died by the end of their lifeline.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "worker/supervisor.h"

#define LATE_TURN_MS 500 /* a sleep that is so much too long: we did not run */

static void
reap(struct wr_supervisor *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == s->service) {
            s->service = 0;
            close(s->service_fd);
            s->service_fd = -1;
            continue;
        }
        for (size_t i = 0; i < s->w->processes; i++) {
            if (s->places[i].pid == pid)
                wr_supervisor_child_ended(s, &s->places[i], status);
        }
    }
    wr_supervisor_end_orphans(s);
}

static void
hear_service(struct wr_supervisor *s)
{
    unsigned char byte;

    while (s->service_fd >= 0 && recv(s->service_fd, &byte, 1, MSG_DONTWAIT) == 1) {
        if (byte < 2 * s->w->processes)
            s->places[byte / 2].taken_back[byte % 2] = true;
        else if (byte == WR_BYTE_STOP)
            s->told_to_stop = true;
    }
}

static void
tell_service(const struct wr_supervisor *s, unsigned char byte)
{
    if (s->service_fd >= 0)
        (void)!send(s->service_fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- stopping ---- */

static void
tell_children(struct wr_supervisor *s, int sig)
{
    for (size_t i = 0; i < s->w->processes; i++) {
        if (s->places[i].pid > 0)
            kill(s->places[i].pid, sig);
        else
            s->places[i].over = true;
    }
}

static void
begin_stop(struct wr_supervisor *s)
{
    int64_t now = wr_clock_ms();

    if (s->stopping) {
        s->hurried = true;
        if (s->kill_at_ms > now + WR_LATE_MS)
            s->kill_at_ms = now + WR_LATE_MS;
    } else {
        s->grace_ms = atomic_load(&s->w->shared->grace_ms);
        s->kill_at_ms = now + s->grace_ms + 2 * WR_LATE_MS;
        wr_supervisor_say_stopping(s);
    }
    s->stopping = true;
    atomic_store(&s->w->shared->stopping, true);
    tell_service(s, WR_BYTE_BEAT);
    tell_children(s, SIGTERM);
}

/* It may be said anew while they end. */
static void
heed_grace(struct wr_supervisor *s)
{
    int64_t grace_ms = atomic_load(&s->w->shared->grace_ms);

    if (!s->stopping || s->hurried || grace_ms == s->grace_ms)
        return;
    s->kill_at_ms += grace_ms - s->grace_ms;
    s->grace_ms = grace_ms;
    wr_supervisor_say_stopping(s);
}

static bool
all_over(const struct wr_supervisor *s)
{
    for (size_t i = 0; i < s->w->processes; i++) {
        if (!s->places[i].over)
            return false;
    }
    return true;
}

static void
end_service(struct wr_supervisor *s)
{
    int64_t deadline = wr_clock_ms() + WR_LATE_MS;

    if (s->service <= 0)
        return;
    /* With Redis away it would only wait for it. */
    kill(s->service, s->worst == WR_CHILD_LAPSE ? SIGKILL : SIGTERM);
    while (waitpid(s->service, NULL, WNOHANG) == 0) {
        if (wr_clock_ms() > deadline)
            kill(s->service, SIGKILL);
        poll(NULL, 0, 5);
    }
    close(s->service_fd);
    s->service_fd = -1;
}

/* ---- renewing ---- */

/* SIGUSR2: each place gets a new child, one after the other, so that work goes on. */
static void
begin_renewal(struct wr_supervisor *s)
{
    if (s->stopping)
        return;
    wr_log_warn("the children are replaced, one after the other");
    wr_supervisor_say_reloading(s);
    s->renewing = 0;
    s->renew_after = s->starts;
}

static void
go_on_renewing(struct wr_supervisor *s)
{
    for (; s->renewing < s->w->processes && !s->stopping; s->renewing++) {
        struct wr_place *p = &s->places[s->renewing];
        bool is_new = p->number > s->renew_after;

        if (!p->over && !(is_new && atomic_load(&p->pages[p->page]->ready))) {
            if (p->pid > 0 && !is_new && !p->renew)
                p->renew = kill(p->pid, SIGTERM) == 0;
            return;
        }
    }
}

/* ---- the loop ---- */

static int64_t
step(struct wr_supervisor *s)
{
    int64_t now = wr_clock_ms(), next = now + 1000, watch_ms;

    hear_service(s);
    if (s->told_to_stop && !s->stopping) {
        wr_log_warn("told to stop");
        begin_stop(s);
    }
    if (now >= s->end_at_ms && !s->stopping) {
        wr_log_info("it has worked for as long as it was told");
        begin_stop(s);
    }
    for (size_t i = 0; i < s->w->processes; i++) {
        struct wr_place *p = &s->places[i];

        if (p->over || p->pid > 0 || s->stopping)
            continue;
        if (now >= p->start_at_ms)
            wr_supervisor_start_child(s, p);
        if (p->pid == 0 && now + 20 < next)
            next = now + 20;
    }
    if (s->service == 0 && now >= s->service_at_ms && !all_over(s))
        wr_supervisor_start_service(s);
    if (s->worst == WR_CHILD_STARTUP && !s->stopping)
        begin_stop(s);
    heed_grace(s);
    if (s->stopping && now >= s->kill_at_ms)
        tell_children(s, SIGKILL);
    go_on_renewing(s);
    wr_supervisor_say_state(s);
    watch_ms = wr_supervisor_watch(s, now);
    next = watch_ms < next ? watch_ms : next;
    if (s->end_at_ms < next && !s->stopping)
        next = s->end_at_ms;
    if (s->notify.watchdog_ms > 0 && s->watchdog_at_ms < next)
        next = s->watchdog_at_ms;
    return next;
}

static void
wait_for_event(struct wr_supervisor *s, int64_t next)
{
    int64_t now = wr_clock_ms(), due = next > now ? next : now, left = due - now;
    struct timespec t;
    siginfo_t info;
    int sig;

    t = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    sig = sigtimedwait(&s->signals, &info, &t);
    /* What a turn itself takes, as the wait for commands to be gone, is no sleep. */
    if (wr_clock_ms() - due > LATE_TURN_MS)
        s->awake_ms = wr_clock_ms();
    switch (sig) {
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
        /* weir_worker_stop() asks, it does not hurry, however often it is called. */
        if (!s->stopping || info.si_pid != getpid())
            begin_stop(s);
        break;
    case SIGUSR2:
        begin_renewal(s);
        break;
    default: /* SIGCHLD, or the time is up */
        break;
    }
    if (atomic_load(&s->w->stop_asked) && !s->stopping)
        begin_stop(s);
    reap(s);
}

/* max_jobs is the worker's, whatever its number of children and however often they are
 * replaced; so are its name and its counters. */
static bool
share(struct weir_worker *w)
{
    void *at = mmap(NULL, sizeof(*w->shared), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return false;
    wr_id_make_worker(w->id);
    w->shared = at;
    w->shared->started_ms = wr_clock_wall_ms();
    w->shared->grace_ms = w->grace_ms;
    w->jobs_left = w->max_jobs > 0 ? &w->shared->jobs_left : NULL;
    w->shared->jobs_left = (int64_t)w->max_jobs;
    return true;
}

static enum weir_err
make_places(struct wr_supervisor *s, struct weir_error *err)
{
    size_t n = s->w->processes;

    s->places = calloc(n, sizeof(*s->places));
    s->pages = calloc(2 * n, sizeof(*s->pages));
    if (!s->places || !s->pages || !share(s->w))
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "supervisor");
    for (size_t i = 0; i < 2 * n; i++) {
        struct wr_place *p = &s->places[i / 2];

        p->lifeline = -1;
        p->taken_back[i % 2] = true;
        p->pages[i % 2] = s->pages[i] = wr_slots_new(wr_page_size(s->w));
        if (!s->pages[i])
            return wr_fail(err, WEIR_E_NO_MEMORY, errno, "supervisor");
    }
    return WEIR_OK;
}

static void
free_places(struct wr_supervisor *s)
{
    for (size_t i = 0; s->pages && i < 2 * s->w->processes; i++) {
        if (s->pages[i])
            s->pages[i]->n = wr_page_size(s->w);
        wr_slots_free(s->pages[i]);
    }
    free(s->pages);
    free(s->places);
    if (s->w->shared)
        munmap(s->w->shared, sizeof(*s->w->shared));
    s->w->shared = NULL;
    s->w->jobs_left = NULL;
}

static enum weir_err
outcome(const struct wr_supervisor *s, struct weir_error *err)
{
    switch (s->worst) {
    case WR_CHILD_DONE:
    case WR_CHILD_HUNG:
    case WR_CHILD_REPLACE:
        return WEIR_OK;
    case WR_CHILD_STARTUP:
        return wr_fail(err, s->startup.code == WEIR_OK ? WEIR_E_CONFIG : s->startup.code,
                       0, "a worker child could not start: %.200s",
                       s->startup.text[0] ? s->startup.text : "see its log");
    case WR_CHILD_LAPSE:
        return wr_fail(err, WEIR_E_CONNECT, 0,
                       "jobs could not be handed back: their leases will lapse");
    }
    return wr_fail(err, WEIR_E_BUG, 0, "a child ended with status %d", (int)s->worst);
}

/* Those are ours only if the program has no use of its own for them; nohup(1) has the
 * hang-up ignored. */
static void
take_if_unused(struct wr_supervisor *s, int sig)
{
    struct sigaction now;

    if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaddset(&s->signals, sig);
}

static void
take_signals(struct wr_supervisor *s)
{
    /* An ignored SIGCHLD would let the kernel reap, and nobody learn how they ended. */
    struct sigaction plain = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGCHLD);
    take_if_unused(s, SIGHUP);
    take_if_unused(s, SIGUSR2);
    sigprocmask(SIG_BLOCK, &s->signals, &s->before);
    sigaction(SIGCHLD, &plain, &s->child_before);
    sigaction(SIGPIPE, &ignore, &s->pipe_before);
    /* Until a child hears signals in its own way, none may end it. */
    s->of_children = s->before;
    sigaddset(&s->of_children, SIGTERM);
    sigaddset(&s->of_children, SIGINT);
    sigaddset(&s->of_children, SIGHUP);
}

/* A second signal that came too late must not end the program now. */
static void
give_signals_back(struct wr_supervisor *s)
{
    static const struct timespec none = {0};

    while (sigtimedwait(&s->signals, NULL, &none) > 0)
        continue;
    sigaction(SIGCHLD, &s->child_before, NULL);
    sigaction(SIGPIPE, &s->pipe_before, NULL);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

enum weir_err
wr_supervise(struct weir_worker *w, struct weir_error *err)
{
    struct wr_supervisor s = {.w = w,
                              .service_fd = -1,
                              .renewing = w->processes,
                              .end_at_ms = INT64_MAX,
                              .notify = {.fd = -1}};
    enum weir_err rc = make_places(&s, err);

    fflush(NULL); /* else each child prints again what waits in our buffers */
    take_signals(&s);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    wr_supervisor_look_around(&s);
    if (w->notify)
        wr_notify_open(&s.notify);
    if (w->max_time_ms > 0)
        s.end_at_ms = wr_clock_ms() + w->max_time_ms;
    if (rc == WEIR_OK) {
        atomic_store(&w->stop_pid, (int)getpid());
        wr_supervisor_start_service(&s);
        while (!all_over(&s))
            wait_for_event(&s, step(&s));
        end_service(&s);
        wr_supervisor_end_all_orphans(&s);
        atomic_store(&w->stop_pid, 0);
        rc = outcome(&s, err);
    }
    atomic_store(&w->stop_asked, false);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    give_signals_back(&s);
    wr_notify_close(&s.notify);
    free_places(&s);
    return rc;
}

void
weir_worker_stop(struct weir_worker *w)
{
    int pid = atomic_load(&w->stop_pid);

    atomic_store(&w->stop_asked, true);
    if (pid > 0)
        kill((pid_t)pid, SIGTERM);
}
