/*
 * Children that stand still: stopped by a signal, or hung in the kernel, so that neither
 * thread that looks after the child's jobs can end it. When the first of its leases is
 * about to lapse all that its slots have started is killed, as its lease thread would
 * have done; if it stands still for much longer it is killed, and replaced as any that
 * died.
 *
 * A machine that was suspended, or a stop of all processes, is not taken for that: then
 * this process woke up late as well (supervisor.c). The lease threads get a moment from
 * there on to fence by themselves, and the children all the time before they are killed.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "worker/supervisor.h"

/* A line of /proc/PID/status that is not 0: "TracerPid:", "CoreDumping:". */
static bool
status_says(pid_t pid, const char *name)
{
    char path[64], line[128];
    bool says = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, name, strlen(name)) == 0)
            says = strspn(line + strlen(name), " \t0\n") < strlen(line + strlen(name));
    }
    if (f)
        fclose(f);
    return says;
}

static bool
holds_jobs(const struct wr_supervisor *s, const struct wr_slots *page)
{
    for (size_t i = 0; i < wr_page_size(s->w); i++) {
        if (atomic_load(&page->slot[i].state) != WR_SLOT_FREE)
            return true;
    }
    return false;
}

/* For how long neither its I/O thread nor its lease thread did anything. */
static int64_t
still_ms(const struct wr_supervisor *s, const struct wr_slots *page, int64_t now)
{
    int64_t tick = atomic_load(&page->tick_ms), fenced = atomic_load(&page->fenced_ms);
    int64_t last = tick > fenced ? tick : fenced;

    last = last > s->awake_ms ? last : s->awake_ms;
    return last < now ? now - last : 0; /* a child that ends has a tick of the future */
}

/* When what it has started must be ended. Its lease thread comes first, also if that is
 * late by half the margin. Of what was claimed since that looked the page may not tell
 * yet. */
static int64_t
fence_at_ms(const struct wr_supervisor *s, const struct wr_slots *page, int64_t now)
{
    int64_t lease = s->w->lease_ms, margin = wr_lease_margin_ms(lease);
    int64_t first = atomic_load(&page->fence_ms), looked = atomic_load(&page->fenced_ms);
    int64_t since = (looked < now ? looked : now) + lease - margin;
    int64_t at = (first < since ? first : since) + margin / 8 * 5;

    if (atomic_load(&page->tick_ms) > now + lease)
        return INT64_MAX; /* a child that ends has a tick of the future, and no jobs */
    return at > s->awake_ms + margin ? at : s->awake_ms + margin;
}

static void
fence(const struct wr_supervisor *s, struct wr_place *p)
{
    struct wr_slots *page = p->pages[p->page];

    p->fenced = true;
    if (!holds_jobs(s, page))
        return;
    wr_log_warn("worker child %d stands still and its leases lapse: what its jobs have "
                "started is ended",
                (int)p->pid);
    atomic_store(&page->cut_ms, wr_clock_ms());
    /* Nobody waits here: they may hang in the kernel, and the next child stand still. */
    (void)wr_supervisor_kill_groups(s, page);
}

static void
end(struct wr_place *p, int64_t still)
{
    const char *why = status_says(p->pid, "TracerPid:")     ? "is traced"
                      : status_says(p->pid, "CoreDumping:") ? "writes its core"
                                                            : NULL;

    if (why) { /* looked at again each turn */
        if (!p->spared)
            wr_log_warn("worker child %d stands still, but %s: it is left alone",
                        (int)p->pid, why);
        p->spared = true;
        return;
    }
    wr_log_error("worker child %d stands still for %" PRId64 " s: it is killed and "
                 "replaced",
                 (int)p->pid, still / 1000);
    p->killed = kill(p->pid, SIGKILL) == 0;
}

int64_t
wr_supervisor_watch(struct wr_supervisor *s, int64_t now)
{
    int64_t next = now + 1000;

    for (size_t i = 0; i < s->w->processes; i++) {
        struct wr_place *p = &s->places[i];
        int64_t still, at;

        if (p->pid <= 0 || p->killed || !atomic_load(&p->pages[p->page]->ready))
            continue;
        at = fence_at_ms(s, p->pages[p->page], now);
        if (now < at) {
            p->fenced = false;
            next = at < next ? at : next;
        } else if (!p->fenced) {
            fence(s, p);
        }
        still = still_ms(s, p->pages[p->page], now);
        if (still < s->w->lease_ms)
            p->spared = false;
        else if (still >= s->w->lease_ms + s->w->stuck_ms)
            end(p, still);
    }
    return next;
}
