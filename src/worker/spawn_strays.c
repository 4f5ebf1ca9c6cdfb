/*
 * What a command leaves behind. Members of its process group are reached by the group; a
 * descendant that left it (setsid, a daemon, a shell with job control) becomes our child
 * when its parent ends, since we are its subreaper. Whose it is stands in its
 * environment. One that has wiped its environment, or whose environment may not be read,
 * is known only to be of a run that was under way when we first saw it: it is killed when
 * all of those are over.
 *
 * Its own children become ours when it is killed, and so on until none is left. Without
 * /proc, or on a kernel without its `children` files, only groups are reached.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/spawn.h"

#define PIECE 16384
#define OVERLAP 80 /* more than a key has */
#define EXEC_TURNS 20

struct wr_stray {
    pid_t pid;
    unsigned long seen; /* the newest run when it was first seen */
};

void
wr_spawn_key(const struct wr_spawn_job *job, char *out, size_t out_len)
{
    snprintf(out, out_len, WR_SPAWN_KEY "=%d-%lu%s", (int)getpid(), job->number,
             job->request.run.keep_stragglers ? "k" : "");
}

#define KEPT ULONG_MAX

/* The number of the run in text, whose environment strings end with NUL; 0: none; KEPT:
 * of a run whose leftovers may stay. */
static unsigned long
find_number(const char *text, size_t len)
{
    char want[64]; /* with the NUL before it: a variable's whole name */
    int want_len = snprintf(want, sizeof(want), "%c" WR_SPAWN_KEY "=%d-", '\0',
                            (int)getpid());
    const char *at = memmem(text, len, want, (size_t)want_len);
    unsigned long number;
    char *end;

    if (!at || !memchr(at + want_len, '\0', len - (size_t)(at - text) - (size_t)want_len))
        return 0;
    number = strtoul(at + want_len, &end, 10);
    return *end == 'k' ? KEPT : number;
}

/* One that ended and waits to be reaped has no program any more. */
static bool
has_program(pid_t pid)
{
    char path[64], program[8];

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return readlink(path, program, sizeof(program)) >= 0;
}

/* 0: it does not say. *empty: it has no environment at all. */
static unsigned long
read_number(pid_t pid, bool *empty)
{
    char text[PIECE + OVERLAP], path[64];
    unsigned long number = 0;
    size_t len = 1;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    text[0] = '\0';
    while (number == 0 && (n = read(fd, text + len, PIECE)) > 0) {
        len += (size_t)n;
        number = find_number(text, len);
        if (len > OVERLAP) {
            memmove(text, text + len - OVERLAP, OVERLAP);
            len = OVERLAP;
        }
    }
    close(fd);
    *empty = len == 1;
    return number;
}

/* In the middle of an exec a process has no environment either, for a moment. */
static unsigned long
number_of(pid_t pid)
{
    bool empty = false;
    unsigned long number = read_number(pid, &empty);

    for (int turn = 0; empty && has_program(pid) && turn < EXEC_TURNS; turn++) {
        poll(NULL, 0, 1);
        empty = false;
        number = read_number(pid, &empty);
    }
    return number;
}

static unsigned long
first_seen(struct wr_spawn *sp, pid_t pid)
{
    for (size_t i = 0; i < sp->strays_n; i++) {
        if (sp->strays[i].pid == pid)
            return sp->strays[i].seen;
    }
    if (sp->strays_n == sp->strays_cap) {
        size_t cap = sp->strays_cap ? sp->strays_cap * 2 : 16;
        struct wr_stray *strays = realloc(sp->strays, cap * sizeof(*strays));

        if (!strays)
            return sp->count; /* asked again at the next sweep */
        sp->strays = strays;
        sp->strays_cap = cap;
    }
    sp->strays[sp->strays_n++] = (struct wr_stray){pid, sp->count};
    return sp->count;
}

void
wr_strays_forget(struct wr_spawn *sp, pid_t pid)
{
    for (size_t i = 0; i < sp->strays_n; i++) {
        if (sp->strays[i].pid == pid) {
            sp->strays[i] = sp->strays[--sp->strays_n];
            return;
        }
    }
}

static bool
is_leader(const struct wr_spawn *sp, pid_t pid)
{
    for (size_t i = 0; i < sp->n; i++) {
        if (sp->jobs[i].phase == WR_SPAWN_RUNNING && sp->jobs[i].pid == pid)
            return true;
    }
    return false;
}

static const struct wr_spawn_job *
live_job(const struct wr_spawn *sp, unsigned long number)
{
    for (size_t i = 0; i < sp->n; i++) {
        if (sp->jobs[i].number == number && wr_spawn_is_live(&sp->jobs[i]))
            return &sp->jobs[i];
    }
    return NULL;
}

static bool
older_live(const struct wr_spawn *sp, unsigned long number)
{
    for (size_t i = 0; i < sp->n; i++) {
        if (sp->jobs[i].number <= number && wr_spawn_is_live(&sp->jobs[i]))
            return true;
    }
    return false;
}

static void
judge(struct wr_spawn *sp, pid_t pid, const struct wr_spawn_job *ending)
{
    unsigned long number;

    if (is_leader(sp, pid))
        return;
    number = number_of(pid);
    if (sp->ends) {
        kill(pid, SIGKILL);
    } else if (number == KEPT) {
        return;
    } else if (number == 0) {
        if (!older_live(sp, first_seen(sp, pid)))
            kill(pid, SIGKILL);
    } else if (!live_job(sp, number)) {
        kill(pid, SIGKILL);
    } else if (ending && ending->number == number) {
        kill(pid, SIGTERM);
    }
}

void
wr_strays_sweep(struct wr_spawn *sp, const struct wr_spawn_job *ending)
{
    struct wr_buf list = {0};
    char path[64], *at, *end;
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    do {
        char *to = wr_buf_room(&list, 4096);

        n = to ? read(fd, to, 4096) : -1;
        if (n > 0)
            list.len += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR && !list.failed));
    close(fd);
    if (list.ptr) {
        list.ptr[list.len] = '\0';
        for (at = list.ptr;; at = end) {
            pid_t pid = (pid_t)strtol(at, &end, 10);

            if (end == at)
                break;
            judge(sp, pid, ending);
        }
    }
    wr_buf_fini(&list);
}
