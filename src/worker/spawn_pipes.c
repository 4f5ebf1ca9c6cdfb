/* The bytes of a command: its input, its output, and what it says on the control pipe or
 * the control socket. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/push.h"
#include "worker/spawn.h"

#define PIECE 65536
#define PIECES 4 /* a turn, so that a flood does not starve the others */
#define DATAGRAMS 64

void
wr_spawn_close_pipe(struct wr_spawn_job *j, int i)
{
    wr_watch_free(j->pipes[i].watch);
    if (j->pipes[i].fd >= 0)
        close(j->pipes[i].fd);
    j->pipes[i] = (struct wr_spawn_pipe){.fd = -1};
}

/* ---- 0 ---- */

static void
feed_stdin(void *arg, unsigned events)
{
    struct wr_spawn_job *j = arg;
    const char *payload = j->body + j->request.words_len;

    (void)events;
    while (j->sent < j->request.payload_len) {
        ssize_t n = write(j->pipes[0].fd, payload + j->sent,
                          (size_t)j->request.payload_len - j->sent);

        if (n > 0)
            j->sent += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
            return;
        else if (n == 0 || errno != EINTR)
            break; /* it does not read: that is its right */
    }
    wr_spawn_close_pipe(j, 0);
}

/* ---- 1 and 2 ---- */

static void
take_output(struct wr_spawn_job *j, int i, const char *bytes, size_t len)
{
    bool to_log = i == 2 || j->request.run.out == WR_OUT_LOG;

    wr_capture_add(to_log ? &j->err : &j->out, bytes, len);
    if (i == 1)
        j->end.bytes_out += (int64_t)len;
    else
        j->end.bytes_err += (int64_t)len;
    if (j->request.run.live && to_log)
        wr_spawn_job_add_output(j, bytes, len);
}

/* ---- 3 ---- */

void
wr_spawn_send_progress(struct wr_spawn_job *j, int64_t now)
{
    if (!j->progress_new || now < j->progress_ms + WR_PROGRESS_MS)
        return;
    j->progress_new = false;
    j->progress_ms = now;
    wr_spawn_job_add_frame(j, WR_FRAME_PROGRESS, j->end.progress,
                           strlen(j->end.progress));
}

static void
take_line(struct wr_spawn_job *j, const char *line, size_t len)
{
    struct wr_buf note = {0};
    int64_t extend_ms = 0;
    bool waits;

    switch (wr_control_line(line, len, &j->end, &note, &extend_ms)) {
    case WR_CONTROL_NOTHING:
        break;
    case WR_CONTROL_PROGRESS:
        waits = j->progress_new;
        j->progress_new = true;
        wr_spawn_send_progress(j, wr_clock_ms());
        if (j->progress_new && !waits)
            wr_spawn_job_set_timer(j);
        break;
    case WR_CONTROL_EXTEND:
        wr_spawn_job_extend(j, extend_ms);
        break;
    case WR_CONTROL_PUSH:
        if (j->pushes.len + note.len > WR_PUSH_BYTES_MAX)
            j->end.push_lost = true;
        else
            wr_buf_add(&j->pushes, note.ptr, note.len);
        break;
    case WR_CONTROL_NOTE:
        take_output(j, 2, note.ptr, note.len);
        j->end.bytes_err -= (int64_t)note.len; /* it wrote nothing there */
        break;
    }
    wr_buf_fini(&note);
}

static void
take_control(struct wr_spawn_job *j, const char *bytes, size_t len)
{
    struct wr_control *c = &j->control;

    while (len > 0) {
        const char *newline = memchr(bytes, '\n', len);
        size_t piece = newline ? (size_t)(newline - bytes) : len,
               room = sizeof(c->line) - c->len;

        if (piece > room)
            c->too_long = true;
        if (!c->too_long) {
            memcpy(c->line + c->len, bytes, piece);
            c->len += piece;
        }
        if (!newline)
            return;
        if (!c->too_long && c->len > 0)
            take_line(j, c->line, c->len);
        c->len = 0;
        c->too_long = false;
        bytes = newline + 1;
        len -= piece + 1;
    }
}

/* The last line may have no newline. */
static void
end_control(struct wr_spawn_job *j)
{
    struct wr_control *c = &j->control;

    if (c->len > 0 && !c->too_long)
        take_line(j, c->line, c->len);
    c->len = 0;
}

/* ---- reading ---- */

static void
end_pipe(struct wr_spawn_job *j, int i)
{
    if (i == WR_SPAWN_CONTROL)
        end_control(j);
    wr_spawn_close_pipe(j, i);
}

/* Without a watch a pipe would block. */
static bool
is_readable(const struct wr_spawn_pipe *p)
{
    struct pollfd fd = {.fd = p->fd, .events = POLLIN};

    return p->watch || poll(&fd, 1, 0) > 0;
}

static void
drain_pipe(struct wr_spawn_job *j, int i)
{
    static char bytes[PIECE];

    for (int turns = 0; turns < PIECES && is_readable(&j->pipes[i]); turns++) {
        ssize_t n = read(j->pipes[i].fd, bytes, sizeof(bytes));

        if (n > 0) {
            wr_spawn_job_heard(j);
            if (i == WR_SPAWN_CONTROL)
                take_control(j, bytes, (size_t)n);
            else
                take_output(j, i, bytes, (size_t)n);
        } else if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            return;
        } else {
            end_pipe(j, i);
            wr_spawn_job_answer_if_over(j);
            return;
        }
    }
}

void
wr_spawn_drain_pipes(struct wr_spawn_job *j)
{
    j->draining = true;
    for (int i = 1; i < WR_SPAWN_PIPES; i++) {
        if (j->pipes[i].fd >= 0)
            drain_pipe(j, i);
    }
    j->draining = false;
}

static void
drain_stdout(void *arg, unsigned events)
{
    (void)events;
    drain_pipe(arg, 1);
}

static void
drain_stderr(void *arg, unsigned events)
{
    (void)events;
    drain_pipe(arg, 2);
}

static void
drain_control(void *arg, unsigned events)
{
    (void)events;
    drain_pipe(arg, WR_SPAWN_CONTROL);
}

bool
wr_spawn_watch_pipe(struct wr_spawn_job *j, int i)
{
    static wr_watch_fn *const fn[WR_SPAWN_PIPES] = {feed_stdin, drain_stdout,
                                                    drain_stderr, drain_control};
    struct wr_spawn_pipe *p = &j->pipes[i];

    if (wr_watch_new(j->spawn->loop, p->fd, fn[i], j, &p->watch, NULL) != WEIR_OK)
        return false;
    wr_watch_ask(p->watch, i == 0 ? WR_WRITABLE : WR_READABLE);
    return true;
}

static bool
needs_watch(const struct wr_spawn_job *j, int i)
{
    return j->pipes[i].fd >= 0 && !j->pipes[i].watch;
}

void
wr_spawn_watch_pipes(struct wr_spawn_job *j, int64_t now)
{
    j->watch_at_ms = 0;
    for (int i = 1; i < WR_SPAWN_PIPES; i++) {
        if (needs_watch(j, i) && !wr_spawn_watch_pipe(j, i)) {
            wr_spawn_drain_pipes(j);
            j->watch_at_ms = now + WR_WATCH_AFTER_MS;
        }
    }
}

void
wr_spawn_settle_pipes(struct wr_spawn_job *j)
{
    struct pollfd fds[WR_SPAWN_PIPES];

    j->watch_at_ms = 0;
    for (int i = 0; i < WR_SPAWN_PIPES; i++)
        fds[i] = (struct pollfd){.fd = i == 0 ? -1 : j->pipes[i].fd, .events = POLLIN};
    if (poll(fds, WR_SPAWN_PIPES, 0) < 0)
        return; /* the answer's time comes */
    j->draining = true;
    for (int i = 1; i < WR_SPAWN_PIPES; i++) {
        if (fds[i].revents & POLLIN)
            drain_pipe(j, i);
        else if (fds[i].revents != 0)
            end_pipe(j, i);
        if (needs_watch(j, i))
            (void)wr_spawn_watch_pipe(j, i);
    }
    j->draining = false;
}

/* ---- the control socket ---- */

/* A datagram holds one line or more. Those that another run's leftover sends late count
 * for nobody: its path is gone, and what it sent is read before the next run begins. */
static void
read_datagrams(struct wr_spawn_job *j)
{
    char bytes[WR_CONTROL_LINE_MAX];
    bool wanted = wr_spawn_is_live(j);

    for (int turns = 0; turns < DATAGRAMS; turns++) {
        ssize_t n = recv(j->control_sock.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        char *at = bytes, *end = bytes + (n > 0 ? n : 0);

        if (n < 0)
            return;
        if (!wanted)
            continue;
        wr_spawn_job_heard(j);
        while (at < end) {
            char *newline = memchr(at, '\n', (size_t)(end - at)),
                 *stop = newline ? newline : end;

            if (stop > at)
                take_line(j, at, (size_t)(stop - at));
            at = stop + 1;
        }
    }
}

static void
on_datagram(void *arg, unsigned events)
{
    (void)events;
    read_datagrams(arg);
}

void
wr_spawn_drain_control(struct wr_spawn_job *j)
{
    if (j->control_sock.fd >= 0)
        read_datagrams(j);
}

static bool
bind_control(struct wr_spawn_job *j, const struct sockaddr_un *name)
{
    struct wr_spawn_pipe *p = &j->control_sock;

    p->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->fd >= 0 && bind(p->fd, (const struct sockaddr *)name, sizeof(*name)) == 0 &&
        chmod(name->sun_path, 0600) == 0 &&
        wr_watch_new(j->spawn->loop, p->fd, on_datagram, j, &p->watch, NULL) == WEIR_OK) {
        wr_watch_ask(p->watch, WR_READABLE);
        return true;
    }
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    return false;
}

static void
close_control(struct wr_spawn_job *j)
{
    if (j->control_sock.fd < 0)
        return;
    wr_watch_free(j->control_sock.watch);
    close(j->control_sock.fd);
    (void)unlink(j->control_path);
    j->control_sock = (struct wr_spawn_pipe){.fd = -1};
    j->control_owned = false;
}

/* A new name keeps those away who know the old one, but not those who are connected. */
void
wr_spawn_open_control(struct wr_spawn_job *j)
{
    const struct wr_exec_limits *l = &j->request.limits;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    uid_t owner = j->request.has_limits && l->switch_user ? l->uid : j->spawn->user;
    bool ok;

    if (snprintf(name.sun_path, sizeof(name.sun_path), "%s/control-%lu", j->spawn->folder,
                 j->number) >= (int)sizeof(name.sun_path)) {
        j->control_path[0] = '\0'; /* TMPDIR is too long for a socket's name */
        return;
    }
    if (j->control_known)
        close_control(j);
    if (j->control_sock.fd >= 0) {
        ok = rename(j->control_path, name.sun_path) == 0;
        wr_spawn_drain_control(j); /* of the last one's; this one has not begun */
    } else {
        ok = bind_control(j, &name);
    }
    if (ok && (owner != j->spawn->user || j->control_owned)) {
        ok = lchown(name.sun_path, owner, (gid_t)-1) == 0;
        j->control_owned = true;
    }
    if (!ok)
        close_control(j);
    j->control_known = false;
    snprintf(j->control_path, sizeof(j->control_path), "%s", ok ? name.sun_path : "");
}
