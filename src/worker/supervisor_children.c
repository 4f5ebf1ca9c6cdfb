/* The children of a supervisor: how they start, and what their death means. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/supervisor.h"

#define RAPID_MS 1000 /* a child that lives shorter, and did nothing, died rapidly */
#define RAPID_FIRST_MS 100
#define RAPID_MAX_MS 5000
#define GROUP_GONE_MS 2000

/* ---- starting ---- */

static void
close_inherited(const struct wr_supervisor *s, const struct wr_place *own)
{
    for (size_t i = 0; i < s->w->processes; i++) {
        if (&s->places[i] != own && s->places[i].lifeline >= 0)
            close(s->places[i].lifeline);
    }
    if (s->service_fd >= 0)
        close(s->service_fd);
}

void
wr_supervisor_start_child(struct wr_supervisor *s, struct wr_place *p)
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
    p->number = s->starts;
    p->fenced = p->killed = p->spared = false;
    p->started_ms = wr_clock_ms();
    p->pages[page]->contact_ms = p->started_ms;
    p->pid = fork();
    if (p->pid == 0) {
        close(line[1]);
        close_inherited(s, p);
        sigprocmask(SIG_SETMASK, &s->of_children, NULL);
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

void
wr_supervisor_start_service(struct wr_supervisor *s)
{
    int pair[2];

    s->service_at_ms = wr_clock_ms() + RAPID_MAX_MS;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return;
    s->service = fork();
    if (s->service == 0) {
        close(pair[0]);
        close_inherited(s, NULL);
        sigprocmask(SIG_SETMASK, &s->of_children, NULL);
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
is_ours(const struct wr_supervisor *s, int pgid)
{
    if (pgid == (int)getpgrp() || pgid == (int)s->service)
        return true;
    for (size_t i = 0; i < s->w->processes; i++) {
        if (pgid == (int)s->places[i].pid)
            return true;
    }
    return false;
}

bool
wr_supervisor_kill_groups(const struct wr_supervisor *s, const struct wr_slots *page)
{
    bool any = false;

    for (size_t i = 0; i < wr_page_size(s->w); i++) {
        int pgid = atomic_load(&page->slot[i].pgid);

        if (pgid > 1 && !is_ours(s, pgid))
            any = kill(-pgid, SIGKILL) == 0 || any;
    }
    return any;
}

static bool
any_group(const struct wr_supervisor *s, const struct wr_slots *page)
{
    bool any = false;

    for (size_t i = 0; i < wr_page_size(s->w); i++) {
        int pgid = atomic_load(&page->slot[i].pgid);

        if (pgid <= 1 || is_ours(s, pgid))
            continue;
        while (waitpid(-pgid, NULL, WNOHANG) > 0)
            continue;
        any = any || kill(-pgid, 0) == 0;
    }
    return any;
}

/* Waits, else a job could run twice at a time. Spawners and commands of dead children
 * become ours; those of other groups are reaped by the main loop. */
static void
end_groups(struct wr_supervisor *s, const struct wr_slots *page)
{
    int64_t deadline = wr_clock_ms() + GROUP_GONE_MS;

    if (!wr_supervisor_kill_groups(s, page))
        return;
    wr_supervisor_end_orphans(s); /* a spawner that was stopped has to reap its own */
    while (any_group(s, page) && wr_clock_ms() < deadline)
        poll(NULL, 0, 2);
}

static void
take_back(struct wr_supervisor *s, struct wr_place *p)
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

void
wr_supervisor_child_ended(struct wr_supervisor *s, struct wr_place *p, int status)
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

        if (p->renew && !s->stopping && how != WR_CHILD_STARTUP) {
            p->renew = false;
            p->start_at_ms = now;
            return;
        }
        p->over = true;
        s->worst = how > s->worst ? how : s->worst;
        if (how == WR_CHILD_STARTUP)
            s->startup = page->error;
        return;
    }
    end_groups(s, page);
    take_back(s, p);
    p->renew = false;
    p->rapid = now - p->started_ms < RAPID_MS && atomic_load(&page->answered) == 0
                   ? p->rapid + 1
                   : 0;
    p->start_at_ms = now;
    if (p->rapid > 1) { /* the first replacement comes at once */
        int64_t wait = p->rapid > 8 ? RAPID_MAX_MS
                                    : (int64_t)RAPID_FIRST_MS << (p->rapid - 2);

        p->start_at_ms = now + (wait < RAPID_MAX_MS ? wait : RAPID_MAX_MS);
    }
    if (s->stopping)
        p->over = true;
}
