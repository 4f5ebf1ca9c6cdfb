/*
 * What commands left behind whose spawner is gone. The supervisor is a subreaper, so it
 * becomes its child. A spawner that ends in order has ended all of its own first; one
 * that was killed could not.
 *
 * A process that has the key of an attempt in its environment was a command's, or comes
 * from one. One that has wiped its environment is known only where nothing else can have
 * left it: in a worker without handlers of its own process, which had no children before
 * it ran. The spawners of dead children are ours for the moment in which they end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "worker/spawn.h"
#include "worker/supervisor.h"

#define PIECE 16384
#define END_TURNS 200 /* of END_NAP_MS: for what was killed to end */
#define END_NAP_MS 10

/* All of a file of /proc; false if it cannot be read. */
static bool
read_file(const char *path, struct wr_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    if (fd < 0)
        return false;
    do {
        char *to = wr_buf_room(out, PIECE);

        n = to ? read(fd, to, PIECE) : -1;
        if (n > 0)
            out->len += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR && !out->failed));
    close(fd);
    if (out->ptr)
        out->ptr[out->len] = '\0';
    return n == 0;
}

static bool
has_key(pid_t pid)
{
    static const char key[] = "\0" WR_SPAWN_KEY "=";
    struct wr_buf text = {0};
    char path[64];
    bool found;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    wr_buf_add(&text, "", 1); /* a variable's whole name has a NUL before it */
    found = read_file(path, &text) && memmem(text.ptr, text.len, key, sizeof(key) - 1);
    wr_buf_fini(&text);
    return found;
}

static bool
is_spawner(pid_t pid)
{
    struct wr_buf name = {0};
    char path[64];
    bool yes;

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    /* A command may take the name, but has left our session. */
    yes = read_file(path, &name) && name.len > 0 &&
          strcmp(name.ptr, WR_SPAWNER_NAME "\n") == 0 && getsid(pid) == getsid(0);
    wr_buf_fini(&name);
    return yes;
}

static bool
is_known(const struct wr_supervisor *s, pid_t pid)
{
    if (pid == s->service)
        return true;
    for (size_t i = 0; i < s->w->processes; i++) {
        if (s->places[i].pid == pid)
            return true;
    }
    return false;
}

/* Calls fn for each child until it answers false. */
static void
each_child(struct wr_supervisor *s, bool (*fn)(struct wr_supervisor *s, pid_t pid))
{
    struct wr_buf list = {0};
    char path[64], *end;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    if (read_file(path, &list)) {
        for (const char *at = wr_buf_span(&list).ptr;; at = end) {
            pid_t pid = (pid_t)strtol(at, &end, 10);

            if (end == at || !fn(s, pid))
                break;
        }
    }
    wr_buf_fini(&list);
}

static bool
note_stranger(struct wr_supervisor *s, pid_t pid)
{
    (void)pid;
    s->strangers = true;
    return false;
}

void
wr_supervisor_look_around(struct wr_supervisor *s)
{
    s->strangers = s->w->has_in_process;
    each_child(s, note_stranger);
}

static bool
end_orphan(struct wr_supervisor *s, pid_t pid)
{
    if (is_known(s, pid))
        return true;
    if (is_spawner(pid)) {
        s->orphans = true;  /* it ends by itself, and what it has with it, */
        kill(pid, SIGCONT); /* unless it was stopped with its child */
        return true;
    }
    if (has_key(pid) || !s->strangers) {
        s->orphans = true;
        kill(pid, SIGKILL);
    }
    return true;
}

void
wr_supervisor_end_orphans(struct wr_supervisor *s)
{
    if (!s->w->has_exec)
        return;
    s->orphans = false;
    each_child(s, end_orphan);
}

/* Their children become ours when they end, and so on. */
void
wr_supervisor_end_all_orphans(struct wr_supervisor *s)
{
    for (int turns = 0; turns < END_TURNS; turns++) {
        wr_supervisor_end_orphans(s);
        if (!s->w->has_exec || !s->orphans)
            return;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        poll(NULL, 0, END_NAP_MS);
    }
}
