/* What the service manager is told of a worker: ready, its state in a line, and that it
 * is not stuck. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "worker/supervisor.h"

#define STATUS_MS 2000       /* between two looks at what the status line would be */
#define SILENT_MS 15000      /* without a word of Redis: that is worth saying */
#define STUCK_SLACK_MS 10000 /* beyond the time at which such a child is killed */
#define END_SLACK_MS 15000   /* beyond the grace time, till the end */

static bool
all_ready(const struct wr_supervisor *s)
{
    for (size_t i = 0; i < s->w->processes; i++) {
        const struct wr_place *p = &s->places[i];

        if (!p->over && (p->pid == 0 || !atomic_load(&p->pages[p->page]->ready)))
            return false;
    }
    return true;
}

/* A child that neither its own lease thread nor this process could end in time. One at
 * which a debugger looks, or that dies slowly, is not worth the other children. */
static bool
any_stuck(const struct wr_supervisor *s, int64_t now)
{
    for (size_t i = 0; i < s->w->processes; i++) {
        const struct wr_place *p = &s->places[i];

        if (p->pid > 0 && !p->killed && !p->spared &&
            atomic_load(&p->pages[p->page]->ready) &&
            now - atomic_load(&p->pages[p->page]->tick_ms) >
                s->w->lease_ms + s->w->stuck_ms + STUCK_SLACK_MS)
            return true;
    }
    return false;
}

struct sums {
    size_t busy;
    int64_t silent_ms; /* the longest */
};

static struct sums
add_up(const struct wr_supervisor *s, int64_t now)
{
    struct sums sums = {0};

    for (size_t i = 0; i < s->w->processes; i++) {
        const struct wr_place *p = &s->places[i];
        const struct wr_slots *page = p->pages[p->page];
        int64_t silent = now - atomic_load(&page->contact_ms);

        if (p->pid <= 0)
            continue;
        if (silent > sums.silent_ms)
            sums.silent_ms = silent;
        for (size_t k = 0; k < wr_page_size(s->w); k++)
            sums.busy += atomic_load(&page->slot[k].state) == WR_SLOT_RUNNING;
    }
    return sums;
}

static void
write_status(const struct wr_supervisor *s, int64_t now, char *out, size_t cap)
{
    struct sums sums = add_up(s, now);
    const char *what = atomic_load(&s->w->shared->stopping) ? "Ends"
                       : atomic_load(&s->w->shared->quiet)  ? "Quiet"
                                                            : "Runs";

    if (sums.silent_ms > SILENT_MS && !s->stopping)
        snprintf(out, cap, "No word of Redis since %" PRId64 " s",
                 sums.silent_ms / 10000 * 10);
    else
        snprintf(
            out, cap, "%s: %zu of %zu slots busy, %" PRId64 " done, %" PRId64 " failed",
            what, sums.busy, s->w->processes * s->w->concurrency,
            atomic_load(&s->w->shared->processed) - atomic_load(&s->w->shared->failed),
            atomic_load(&s->w->shared->failed));
}

void
wr_supervisor_say_state(struct wr_supervisor *s)
{
    int64_t now = wr_clock_ms();
    char status[sizeof(s->status)];

    if (!wr_notify_listens(&s->notify))
        return;
    if (!s->said_ready && !s->stopping && s->renewing >= s->w->processes && all_ready(s))
        s->said_ready = wr_notify_say(&s->notify, "READY=1");
    if (now >= s->status_at_ms) {
        s->status_at_ms = now + STATUS_MS;
        write_status(s, now, status, sizeof(status));
        if (strcmp(status, s->status) != 0 &&
            wr_notify_say(&s->notify, "STATUS=%s", status))
            snprintf(s->status, sizeof(s->status), "%s", status);
    }
    if (s->notify.watchdog_ms > 0 && now >= s->watchdog_at_ms && !any_stuck(s, now) &&
        wr_notify_say(&s->notify, "WATCHDOG=1"))
        s->watchdog_at_ms = now + s->notify.watchdog_ms / 3;
}

void
wr_supervisor_say_stopping(struct wr_supervisor *s)
{
    s->status_at_ms = 0;
    (void)wr_notify_say(&s->notify, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRId64,
                        (s->grace_ms + END_SLACK_MS) * 1000);
}

void
wr_supervisor_say_reloading(struct wr_supervisor *s)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    (void)wr_notify_say(&s->notify, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
                        (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000);
    s->said_ready = false;
}
