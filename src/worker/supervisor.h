/*
 * worker/supervisor.h - the supervisor's state, shared by its parts (supervisor*.c);
 * private to worker/.
 */
#ifndef WR_WORKER_SUPERVISOR_H
#define WR_WORKER_SUPERVISOR_H

#include <signal.h>
#include <sys/types.h>

#include "worker/notify.h"
#include "worker/worker_internal.h"

#define WR_LATE_MS 5000 /* beyond what a child may take to end */

/* Where a worker child lives, one after the other. */
struct wr_place {
    pid_t pid;    /* 0: nobody */
    int lifeline; /* our end; closing it tells the child */
    struct wr_slots *pages[2];
    bool taken_back[2]; /* false: the service child still needs this page */
    int page;           /* the one in use */
    int64_t started_ms, start_at_ms;
    unsigned rapid;  /* deaths in a row */
    unsigned number; /* of the child, counted over all places */
    bool fenced;     /* it stands still, and what it had started was ended */
    bool killed;     /* because it stands still */
    bool spared;     /* that it is not killed was said */
    bool renew;      /* told to end, so that another takes its place */
    bool over;       /* ended in order: not replaced */
};

struct wr_supervisor {
    struct weir_worker *w;
    struct wr_place *places;
    struct wr_slots **pages; /* all: 2 a place */
    pid_t service;
    int service_fd;
    int64_t service_at_ms;
    int64_t
        awake_ms; /* since then no sleep was too long: before, all may have been frozen */
    bool stopping, told_to_stop;
    bool hurried;                 /* told a second time: no grace any more */
    size_t renewing;              /* the place that is renewed; processes: none */
    unsigned renew_after;         /* children with a higher number are new */
    unsigned starts;              /* of worker children: each has a name of its own */
    int64_t end_at_ms;            /* max_time; INT64_MAX: never */
    int64_t kill_at_ms, grace_ms; /* once it stops */
    enum wr_child_exit worst;
    struct weir_error startup; /* what a child's startup hook said */
    sigset_t signals, before, of_children;
    struct sigaction child_before, pipe_before;
    struct wr_notify notify;
    bool said_ready;
    int64_t status_at_ms, watchdog_at_ms;
    char status[128]; /* said last */
    bool strangers;   /* children may be adopted that are no command's */
    bool orphans;     /* the last look found some that are */
};

/* ---- supervisor_children.c ---- */

void wr_supervisor_start_child(struct wr_supervisor *s, struct wr_place *p);
void wr_supervisor_start_service(struct wr_supervisor *s);
/* Kills the groups that the child's slots had started. True: there were some. */
bool
wr_supervisor_kill_groups(const struct wr_supervisor *s, const struct wr_slots *page);
/* A worker child is dead: its commands are ended, its jobs go to the service child. */
void wr_supervisor_child_ended(struct wr_supervisor *s, struct wr_place *p, int status);

/* ---- supervisor_watch.c: children that stand still ---- */

/* Each turn; answers when to look again, at the latest. */
int64_t wr_supervisor_watch(struct wr_supervisor *s, int64_t now);

/* ---- supervisor_orphans.c: what commands left behind whose spawner was killed ---- */

/* Before the first fork: is there anything that could be mistaken for it? */
void wr_supervisor_look_around(struct wr_supervisor *s);
/* Kills those that are ours now. */
void wr_supervisor_end_orphans(struct wr_supervisor *s);
/* The same when all children have ended, until none is left; takes two seconds at most.
 */
void wr_supervisor_end_all_orphans(struct wr_supervisor *s);

/* ---- supervisor_notify.c: what the service manager is told ---- */

void
wr_supervisor_say_state(struct wr_supervisor *s); /* each turn: READY, STATUS, WATCHDOG */
void wr_supervisor_say_stopping(struct wr_supervisor *s);
void
wr_supervisor_say_reloading(struct wr_supervisor *s); /* READY comes after it again */

#endif
