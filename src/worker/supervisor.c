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
#include <fcntl.h>
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
#include "worker/worker_internal.h"

#define RAPID_MS 1000 /* a child that lives shorter died rapidly */
#define RAPID_FIRST_MS 100
#define RAPID_MAX_MS 5000
#define GROUP_GONE_MS 2000
#define LATE_MS 5000 /* beyond what a child may take to end */

struct place {
    pid_t pid;    /* 0: nobody */
    int lifeline; /* our end; closing it tells the child */
    struct wr_slots *pages[2];
    bool taken_back[2]; /* false: the service child still needs this page */
    int page;           /* the one in use */
    int64_t started_ms, start_at_ms;
    unsigned rapid; /* deaths in a row */
    bool over;      /* ended in order: not replaced */
};

struct supervisor {
    struct weir_worker *w;
    struct place *places;
    struct wr_slots **pages; /* all: 2 a place */
    pid_t service;
    int service_fd;
    int64_t service_at_ms;
    bool stopping, told_to_stop;
    unsigned starts; /* of worker children: each has a name of its own */
    int64_t kill_at_ms;
    enum wr_child_exit worst;
    struct weir_error startup; /* what a child's startup hook said */
    sigset_t signals, before;
    struct sigaction child_before, pipe_before;
};

/* ---- starting ---- */

static void
close_inherited(const struct supervisor *s, const struct place *own)
{
    for (size_t i = 0; i < s->w->processes; i++) {
        if (&s->places[i] != own && s->places[i].lifeline >= 0)
            close(s->places[i].lifeline);
    }
    if (s->service_fd >= 0)
        close(s->service_fd);
}

static void
start_child(struct supervisor *s, struct place *p)
{
    int line[2];
    int page = p->taken_back[p->page] ? p->page : 1 - p->page;

    if (!p->taken_back[page])
        return; /* the service child is at work on both */
    if (pipe2(line, O_CLOEXEC) != 0) {
        p->start_at_ms = wr_clock_ms() + RAPID_MAX_MS;
        return;
    }
    p->page = page;
    p->pages[page]->n = wr_page_size(s->w);
    wr_slots_clear(p->pages[page]);
    snprintf(p->pages[page]->worker, sizeof(p->pages[page]->worker), "%s/%u", s->w->id,
             ++s->starts);
    p->started_ms = wr_clock_ms();
    p->pages[page]->contact_ms = p->started_ms;
    p->pid = fork();
    if (p->pid == 0) {
        close(line[1]);
        close_inherited(s, p);
        sigprocmask(SIG_SETMASK, &s->before, NULL);
        wr_child_main(s->w, p->pages[page], line[0]);
    }
    close(line[0]);
    if (p->pid < 0) {
        wr_log_error("fork: %s", strerror(errno));
        close(line[1]);
        p->pid = 0;
        p->start_at_ms = wr_clock_ms() + RAPID_MAX_MS;
        return;
    }
    p->lifeline = line[1];
    atomic_store(&p->pages[page]->pid, (int)p->pid);
}

static void
start_service(struct supervisor *s)
{
    int pair[2];

    s->service_at_ms = wr_clock_ms() + RAPID_MAX_MS;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return;
    s->service = fork();
    if (s->service == 0) {
        close(pair[0]);
        close_inherited(s, NULL);
        sigprocmask(SIG_SETMASK, &s->before, NULL);
        wr_service_main(s->w, s->pages, 2 * s->w->processes, pair[1]);
    }
    close(pair[1]);
    if (s->service < 0) {
        s->service = 0;
        close(pair[0]);
        return;
    }
    s->service_fd = pair[0];
    /* What the one before had not finished. */
    for (size_t i = 0; i < 2 * s->w->processes; i++) {
        unsigned char number = (unsigned char)i;

        if (!s->places[i / 2].taken_back[i % 2])
            (void)!send(s->service_fd, &number, 1, MSG_NOSIGNAL);
    }
}

/* ---- a death ---- */

/* A scribbled page must not make us kill ourselves or a child that is well. */
static bool
is_ours(const struct supervisor *s, int pgid)
{
    if (pgid == (int)getpgrp() || pgid == (int)s->service)
        return true;
    for (size_t i = 0; i < s->w->processes; i++) {
        if (pgid == (int)s->places[i].pid)
            return true;
    }
    return false;
}

/* Kills the groups that the child's slots had started, and waits until they are gone:
 * else a job could run twice at a time. Spawners and commands of dead children become
 * ours; those of other groups are reaped by the main loop. */
static void
kill_groups(const struct supervisor *s, const struct wr_slots *page)
{
    int64_t deadline = wr_clock_ms() + GROUP_GONE_MS;
    bool any = true;

    for (bool first = true; any && wr_clock_ms() < deadline; first = false) {
        any = false;
        for (size_t i = 0; i < page->n; i++) {
            int pgid = atomic_load(&page->slot[i].pgid);

            if (pgid <= 1 || is_ours(s, pgid))
                continue;
            if (first)
                kill(-pgid, SIGKILL);
            while (waitpid(-pgid, NULL, WNOHANG) > 0)
                continue;
            any = any || kill(-pgid, 0) == 0;
        }
        if (any)
            poll(NULL, 0, 2);
    }
}

static void
take_back(struct supervisor *s, struct place *p)
{
    unsigned char number = (unsigned char)(2 * (size_t)(p - s->places) + (size_t)p->page);

    p->taken_back[p->page] = false;
    if (s->service_fd >= 0)
        (void)!send(s->service_fd, &number, 1, MSG_NOSIGNAL);
}

/* The jobs that it held keep what is on the page. */
static void
say_death(pid_t pid, int status, struct wr_slots *page)
{
    char *out = page->death;

    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        if (name)
            snprintf(out, sizeof(page->death), "killed by SIG%s", name);
        else
            snprintf(out, sizeof(page->death), "killed by signal %d", WTERMSIG(status));
        wr_log_warn("worker child %d was %s", (int)pid, out);
    } else {
        snprintf(out, sizeof(page->death), "ended with status %d", WEXITSTATUS(status));
        wr_log_info("worker child %d %s", (int)pid, out);
    }
}

static void
child_ended(struct supervisor *s, struct place *p, int status)
{
    struct wr_slots *page = p->pages[p->page];
    int ended = atomic_load(&page->ended);
    bool orderly = WIFEXITED(status) && ended == 1 + WEXITSTATUS(status) &&
                   ended != 1 + WR_CHILD_REPLACE;
    int64_t now = wr_clock_ms();

    say_death(p->pid, status, page);
    if (WIFEXITED(status) && ended == 0)
        wr_log_error("worker child %d ended in the middle: did a handler call exit()?",
                     (int)p->pid);
    page->n = wr_page_size(s->w);
    atomic_store(&page->pid, 0);
    close(p->lifeline);
    p->lifeline = -1;
    p->pid = 0;
    if (orderly) {
        enum wr_child_exit how = (enum wr_child_exit)WEXITSTATUS(status);

        p->over = true;
        s->worst = how > s->worst ? how : s->worst;
        if (how == WR_CHILD_STARTUP)
            s->startup = page->error;
        return;
    }
    kill_groups(s, page);
    take_back(s, p);
    p->rapid = now - p->started_ms < RAPID_MS ? p->rapid + 1 : 0;
    p->start_at_ms = now;
    if (p->rapid > 1) { /* the first replacement comes at once */
        int64_t wait = p->rapid > 8 ? RAPID_MAX_MS
                                    : (int64_t)RAPID_FIRST_MS << (p->rapid - 2);

        p->start_at_ms = now + (wait < RAPID_MAX_MS ? wait : RAPID_MAX_MS);
    }
    if (s->stopping)
        p->over = true;
}

static void
reap(struct supervisor *s)
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
                child_ended(s, &s->places[i], status);
        }
    }
}

static void
hear_service(struct supervisor *s)
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
tell_service(const struct supervisor *s, unsigned char byte)
{
    if (s->service_fd >= 0)
        (void)!send(s->service_fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- stopping ---- */

static void
tell_children(struct supervisor *s, int sig)
{
    for (size_t i = 0; i < s->w->processes; i++) {
        if (s->places[i].pid > 0)
            kill(s->places[i].pid, sig);
        else
            s->places[i].over = true;
    }
}

static void
begin_stop(struct supervisor *s)
{
    int64_t now = wr_clock_ms();

    if (!s->stopping)
        s->kill_at_ms = now + s->w->grace_ms + 2 * LATE_MS;
    else if (s->kill_at_ms > now + LATE_MS)
        s->kill_at_ms = now + LATE_MS;
    s->stopping = true;
    atomic_store(&s->w->shared->stopping, true);
    tell_service(s, WR_BYTE_BEAT);
    tell_children(s, SIGTERM);
}

static bool
all_over(const struct supervisor *s)
{
    for (size_t i = 0; i < s->w->processes; i++) {
        if (!s->places[i].over)
            return false;
    }
    return true;
}

static void
end_service(struct supervisor *s)
{
    int64_t deadline = wr_clock_ms() + LATE_MS;

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

/* ---- the loop ---- */

static int64_t
step(struct supervisor *s)
{
    int64_t now = wr_clock_ms(), next = now + 1000;

    hear_service(s);
    if (s->told_to_stop && !s->stopping) {
        wr_log_warn("told to stop");
        begin_stop(s);
    }
    for (size_t i = 0; i < s->w->processes; i++) {
        struct place *p = &s->places[i];

        if (p->over || p->pid > 0 || s->stopping)
            continue;
        if (now >= p->start_at_ms)
            start_child(s, p);
        if (p->pid == 0 && now + 20 < next)
            next = now + 20;
    }
    if (s->service == 0 && now >= s->service_at_ms && !all_over(s))
        start_service(s);
    if (s->worst == WR_CHILD_STARTUP && !s->stopping)
        begin_stop(s);
    if (s->stopping && now >= s->kill_at_ms)
        tell_children(s, SIGKILL);
    return next;
}

static void
wait_for_event(struct supervisor *s, int64_t next)
{
    int64_t left = next - wr_clock_ms();
    struct timespec t;
    siginfo_t info;

    if (left < 0)
        left = 0;
    t = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    switch (sigtimedwait(&s->signals, &info, &t)) {
    case SIGTERM:
    case SIGINT:
        /* weir_worker_stop() asks, it does not hurry, however often it is called. */
        if (!s->stopping || info.si_pid != getpid())
            begin_stop(s);
        break;
    case SIGCHLD:
    default:
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
    w->jobs_left = w->max_jobs > 0 ? &w->shared->jobs_left : NULL;
    w->shared->jobs_left = (int64_t)w->max_jobs;
    return true;
}

static enum weir_err
make_places(struct supervisor *s, struct weir_error *err)
{
    size_t n = s->w->processes;

    s->places = calloc(n, sizeof(*s->places));
    s->pages = calloc(2 * n, sizeof(*s->pages));
    if (!s->places || !s->pages || !share(s->w))
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "supervisor");
    for (size_t i = 0; i < 2 * n; i++) {
        struct place *p = &s->places[i / 2];

        p->lifeline = -1;
        p->taken_back[i % 2] = true;
        p->pages[i % 2] = s->pages[i] = wr_slots_new(wr_page_size(s->w));
        if (!s->pages[i])
            return wr_fail(err, WEIR_E_NO_MEMORY, errno, "supervisor");
    }
    return WEIR_OK;
}

static void
free_places(struct supervisor *s)
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
outcome(const struct supervisor *s, struct weir_error *err)
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

static void
take_signals(struct supervisor *s)
{
    /* An ignored SIGCHLD would let the kernel reap, and nobody learn how they ended. */
    struct sigaction plain = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};

    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &s->signals, &s->before);
    sigaction(SIGCHLD, &plain, &s->child_before);
    sigaction(SIGPIPE, &ignore, &s->pipe_before);
}

static void
give_signals_back(struct supervisor *s)
{
    sigaction(SIGCHLD, &s->child_before, NULL);
    sigaction(SIGPIPE, &s->pipe_before, NULL);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

enum weir_err
wr_supervise(struct weir_worker *w, struct weir_error *err)
{
    struct supervisor s = {.w = w, .service_fd = -1};
    enum weir_err rc = make_places(&s, err);

    fflush(NULL); /* else each child prints again what waits in our buffers */
    take_signals(&s);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (rc == WEIR_OK) {
        atomic_store(&w->stop_pid, (int)getpid());
        start_service(&s);
        while (!all_over(&s))
            wait_for_event(&s, step(&s));
        end_service(&s);
        atomic_store(&w->stop_pid, 0);
        rc = outcome(&s, err);
    }
    atomic_store(&w->stop_asked, false);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    give_signals_back(&s);
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
