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
#define CHILDREN_PIECE 4096

struct wr_stray {
    pid_t pid;
    unsigned long seen; /* the newest run when it was first seen */
};

void
wr_spawn_key(const struct wr_spawn_job *job, char *out, size_t out_len)
{
    snprintf(out, out_len, WR_SPAWN_KEY "=%d-%lu%s", (int)job->spawn->self, job->number,
             job->request.run.keep_stragglers ? "k" : "");
}

/* What text says, whose environment strings end with NUL. */
static struct wr_stray_says
find_key(pid_t spawner, const char *text, size_t len)
{
    char want[64]; /* with the NUL before it: a variable's whole name */
    int want_len = snprintf(want, sizeof(want), "%c" WR_SPAWN_KEY "=%d-", '\0',
                            (int)spawner);
    const char *at = memmem(text, len, want, (size_t)want_len);
    struct wr_stray_says says = {0};
    char *end;

    if (!at || !memchr(at + want_len, '\0', len - (size_t)(at - text) - (size_t)want_len))
        return says;
    says.number = strtoul(at + want_len, &end, 10);
    says.kept = *end == 'k';
    return says;
}

/* One that ended and waits to be reaped has no program any more. */
static bool
has_program(const char *proc, pid_t pid)
{
    char path[PATH_MAX], program[8];

    snprintf(path, sizeof(path), "%s/%d/exe", proc, (int)pid);
    return readlink(path, program, sizeof(program)) >= 0;
}

/* *empty: it has no environment at all. */
static struct wr_stray_says
read_key(const char *proc, pid_t pid, pid_t spawner, bool *empty)
{
    char text[PIECE + OVERLAP], path[PATH_MAX];
    struct wr_stray_says says = {0};
    size_t len = 1;
    ssize_t n;
    int fd;

    *empty = false;
    snprintf(path, sizeof(path), "%s/%d/environ", proc, (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return says;
    text[0] = '\0';
    while (says.number == 0 && (n = read(fd, text + len, PIECE)) > 0) {
        len += (size_t)n;
        says = find_key(spawner, text, len);
        if (len > OVERLAP) {
            memmove(text, text + len - OVERLAP, OVERLAP);
            len = OVERLAP;
        }
    }
    close(fd);
    *empty = len == 1;
    return says;
}

/* In the middle of an exec a process has no environment either, for a moment. */
struct wr_stray_says
wr_stray_ask(const char *proc, pid_t pid, pid_t spawner)
{
    bool empty;
    struct wr_stray_says says = read_key(proc, pid, spawner, &empty);

    for (int turn = 0; empty && has_program(proc, pid) && turn < EXEC_TURNS; turn++) {
        poll(NULL, 0, 1);
        says = read_key(proc, pid, spawner, &empty);
    }
    return says;
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

/* Of whom it may be, as far as is known. */
static bool
may_be_of(struct wr_spawn *sp, pid_t pid, struct wr_stray_says says,
          const struct wr_spawn_job *job)
{
    return says.number != 0 ? says.number == job->number
                            : first_seen(sp, pid) >= job->number;
}

/* True if it may be of the one that ends. */
static bool
judge(struct wr_spawn *sp, pid_t pid, const struct wr_spawn_job *ending)
{
    struct wr_stray_says says;

    if (is_leader(sp, pid))
        return false;
    says = wr_stray_ask("/proc", pid, sp->self);
    if (sp->ends) {
        kill(pid, SIGKILL);
    } else if (says.number == 0) {
        if (!older_live(sp, first_seen(sp, pid)))
            kill(pid, SIGKILL);
    } else if (says.kept) {
        ; /* it may stay */
    } else if (!live_job(sp, says.number)) {
        kill(pid, SIGKILL);
    } else if (ending && ending->number == says.number) {
        kill(pid, SIGTERM);
    }
    return ending && may_be_of(sp, pid, says, ending);
}

/* The file stays open: it is read more often than all others. */
static bool
read_children(struct wr_spawn *sp, struct wr_buf *list)
{
    char path[64];
    ssize_t n;

    if (sp->children_fd < 0) {
        snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)sp->self);
        sp->children_fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (sp->children_fd < 0)
        return false;
    do {
        char *to = wr_buf_room(list, CHILDREN_PIECE);

        n = to ? pread(sp->children_fd, to, CHILDREN_PIECE, (off_t)list->len) : -1;
        if (n > 0)
            list->len += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR && !list->failed));
    if (list->ptr)
        list->ptr[list->len] = '\0';
    return n == 0;
}

bool
wr_strays_sweep(struct wr_spawn *sp, const struct wr_spawn_job *ending)
{
    struct wr_buf list = {0};
    bool alone = read_children(sp, &list);
    char *at = list.ptr, *end;

    for (; at; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);

        if (end == at)
            break;
        if (judge(sp, pid, ending))
            alone = false;
    }
    wr_buf_fini(&list);
    return alone;
}
