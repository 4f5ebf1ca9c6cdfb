/* The worker child's side: fork, requests, answers. */
#include "worker/spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "worker/folder_pool.h"
#include "worker/spawn.h"

#define STOP_MS 5000
#define SMALL 32768 /* a payload up to this goes in one write with its header */

struct wr_spawner {
    pid_t pid;
    char folder[WR_FOLDER_MAX];
    int folder_lock; /* held by the spawner too */
    struct wr_folder_pool *folders;
    size_t n;
    struct seat {
        int fd;
        /* Guards what follows, and is not held while a request is written: a kill must
         * not wait for a large payload. */
        pthread_mutex_t mu;
        bool running;          /* a thread is in wr_spawner_run */
        bool armed;            /* kills count */
        bool sent;             /* the request is with the spawner: kills go there */
        bool killed;           /* one came before that */
        int64_t kill_after_ms; /* of it */
    } seats[];
};

/* ---- start and stop ---- */

static int
by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* For kernels without close_range(2). */
static void
close_from_list(const int *keep, size_t n)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;

    while (d && (e = readdir(d)) != NULL) {
        int fd = atoi(e->d_name);

        if (fd > 2 && fd != dirfd(d) && !bsearch(&fd, keep, n, sizeof(*keep), by_number))
            close(fd);
    }
    if (d)
        closedir(d);
}

/* Everything open but 0, 1, 2, the sockets of the spawner and the lock of its folder: a
 * copy of a lifeline or of a Redis connection must not live on here. */
static void
close_others(const int *fds, size_t n, int lock)
{
    int *keep = malloc((n + 1) * sizeof(*keep)), low = 3;

    if (!keep)
        _exit(1);
    memcpy(keep, fds, n * sizeof(*keep));
    keep[n++] = lock;
    qsort(keep, n, sizeof(*keep), by_number);
    for (size_t i = 0; i < n; low = keep[i++] + 1) {
        if (keep[i] > low && close_range((unsigned)low, (unsigned)keep[i] - 1, 0) != 0)
            break;
    }
    if (close_range((unsigned)low, ~0U, 0) != 0)
        close_from_list(keep, n);
    free(keep);
}

static void
free_spawner(struct wr_spawner *s)
{
    for (size_t i = 0; i < s->n; i++) {
        close(s->seats[i].fd);
        pthread_mutex_destroy(&s->seats[i].mu);
    }
    close(s->folder_lock);
    wr_folder_pool_free(s->folders);
    free(s);
}

/* A spawner with its sockets, not forked yet; theirs: the other ends. */
static struct wr_spawner *
open_seats(size_t n, int *theirs)
{
    struct wr_spawner *s = calloc(1, sizeof(*s) + n * sizeof(s->seats[0]));

    if (s)
        s->folder_lock = -1;
    for (; s && s->n < n; s->n++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
            int why = errno;

            for (size_t i = 0; i < s->n; i++)
                close(theirs[i]);
            free_spawner(s);
            errno = why;
            return NULL;
        }
        s->seats[s->n].fd = pair[0];
        theirs[s->n] = pair[1];
        pthread_mutex_init(&s->seats[s->n].mu, NULL);
    }
    return s;
}

/* No handler of this process may run in the other, so signals wait meanwhile. */
static pid_t
fork_spawner(const struct wr_spawner *s, struct wr_slots *slots, int *theirs, size_t n)
{
    pid_t parent = getpid(), pid;
    sigset_t all, old;
    int why;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pid = fork();
    if (pid == 0) {
        close_others(theirs, n, s->folder_lock);
        wr_spawn_main(slots, theirs, n, parent, s->folder);
    }
    why = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = why;
    return pid;
}

enum weir_err
wr_spawner_start(struct wr_slots *slots, size_t n, struct wr_spawner **out,
                 struct weir_error *err)
{
    int *theirs = calloc(n, sizeof(*theirs)), why;
    enum weir_err rc = WEIR_OK;
    struct wr_spawner *s;

    *out = NULL;
    if (!theirs)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "spawner");
    s = open_seats(n, theirs);
    if (!s) {
        why = errno;
        free(theirs);
        return wr_fail(err, WEIR_E_NO_MEMORY, why, "%zu sockets of the spawner", n);
    }
    s->pid = -1;
    if (!wr_folder_make_base(s->folder, sizeof(s->folder), &s->folder_lock))
        rc = wr_fail(err, WEIR_E_IO, errno, "working folder %.150s", s->folder);
    else if (!(s->folders = wr_folder_pool_new(s->folder)))
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "working folders");
    else if ((s->pid = fork_spawner(s, slots, theirs, n)) < 0)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, errno, "fork the spawner");
    for (size_t i = 0; i < n; i++)
        close(theirs[i]);
    free(theirs);
    if (rc != WEIR_OK) {
        if (s->folder_lock >= 0)
            (void)wr_folder_remove(s->folder);
        free_spawner(s);
        return rc;
    }
    *out = s;
    return WEIR_OK;
}

/* False when a thread still waits for an answer: what it uses must stay, and the process
 * is about to end. */
static bool
hang_up(struct wr_spawner *s)
{
    bool idle = true;

    for (size_t i = 0; i < s->n; i++) {
        pthread_mutex_lock(&s->seats[i].mu);
        idle = idle && !s->seats[i].running;
        shutdown(s->seats[i].fd, SHUT_RDWR);
        pthread_mutex_unlock(&s->seats[i].mu);
    }
    return idle;
}

void
wr_spawner_stop(struct wr_spawner *s)
{
    int64_t deadline = wr_clock_ms() + STOP_MS;
    pid_t pid;

    if (!s)
        return;
    pid = s->pid;
    if (hang_up(s))
        free_spawner(s);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (wr_clock_ms() > deadline)
            kill(pid, SIGKILL);
        poll(NULL, 0, 2);
    }
}

pid_t
wr_spawner_pid(const struct wr_spawner *s)
{
    return s->pid;
}

const char *
wr_spawner_folder(const struct wr_spawner *s)
{
    return s->folder;
}

struct wr_folder_pool *
wr_spawner_folders(struct wr_spawner *s)
{
    return s->folders;
}

bool
wr_spawner_restore_folder(struct wr_spawner *s)
{
    static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
    bool ok;

    pthread_mutex_lock(&mu);
    ok = wr_folder_restore_base(s->folder, s->folder_lock);
    pthread_mutex_unlock(&mu);
    return ok;
}

static struct wr_spawner *_Atomic current;

void
wr_spawner_set_current(struct wr_spawner *s)
{
    current = s;
}

struct wr_spawner *
wr_spawner_current(void)
{
    return current;
}

/* ---- a run ---- */

static bool
send_all(int fd, const void *from, size_t len)
{
    const char *at = from;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* What one recv brought and is not used yet: an answer is mostly small. Nothing is sent
 * behind an end before the next request. */
struct incoming {
    int fd;
    size_t at, len;
    char bytes[4096];
};

static void
listen_to(struct incoming *in, int fd)
{
    in->fd = fd;
    in->at = in->len = 0;
}

static bool
recv_some(int fd, void *to, size_t len, size_t *got)
{
    ssize_t n;

    do
        n = recv(fd, to, len, 0);
    while (n < 0 && errno == EINTR);
    *got = n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool
recv_all(struct incoming *in, void *to, size_t len)
{
    char *at = to;

    while (len > 0) {
        size_t n = in->len - in->at;

        if (n > 0) {
            n = n < len ? n : len;
            memcpy(at, in->bytes + in->at, n);
            in->at += n;
        } else if (len >= sizeof(in->bytes)) {
            if (!recv_some(in->fd, at, len, &n))
                return false;
        } else {
            in->at = 0;
            if (!recv_some(in->fd, in->bytes, sizeof(in->bytes), &in->len))
                return false;
        }
        at += n;
        len -= n;
    }
    return true;
}

/* Without memory the bytes are read past, and out->failed is set. */
static bool
recv_into(struct incoming *in, struct wr_buf *out, uint64_t len)
{
    char *to = len > 0 ? wr_buf_room(out, (size_t)len) : NULL;
    char trash[4096];

    if (to) {
        if (!recv_all(in, to, (size_t)len))
            return false;
        out->len += (size_t)len;
        out->ptr[out->len] = '\0';
        return true;
    }
    while (len > 0) {
        size_t piece = len < sizeof(trash) ? (size_t)len : sizeof(trash);

        if (!recv_all(in, trash, piece))
            return false;
        len -= piece;
    }
    return true;
}

static uint32_t
add_words(struct wr_buf *out, const char *const *words)
{
    uint32_t n = 0;

    for (; words[n]; n++)
        wr_buf_add(out, words[n], strlen(words[n]) + 1);
    return n;
}

static bool
send_kill(const struct seat *seat, int64_t kill_after_ms)
{
    struct wr_spawn_request r = {.message = WR_SPAWN_KILL,
                                 .kill_after_ms = kill_after_ms};

    return send_all(seat->fd, &r, sizeof(r));
}

static bool
send_request(struct seat *seat, const struct wr_buf *head, struct wr_span payload)
{
    bool ok = send_all(seat->fd, head->ptr, head->len) &&
              send_all(seat->fd, payload.ptr, payload.len);

    pthread_mutex_lock(&seat->mu);
    seat->sent = true;
    if (ok && seat->killed)
        ok = send_kill(seat, seat->kill_after_ms);
    pthread_mutex_unlock(&seat->mu);
    return ok;
}

static void
arm(struct seat *seat, bool anew)
{
    pthread_mutex_lock(&seat->mu);
    if (anew || !seat->armed)
        seat->sent = seat->killed = false;
    seat->armed = true;
    seat->running = !anew;
    pthread_mutex_unlock(&seat->mu);
}

static void
disarm(struct seat *seat)
{
    pthread_mutex_lock(&seat->mu);
    seat->running = seat->armed = seat->sent = seat->killed = false;
    pthread_mutex_unlock(&seat->mu);
}

void
wr_spawner_arm(struct wr_spawner *s, size_t slot)
{
    arm(&s->seats[slot], true);
}

void
wr_spawner_kill(struct wr_spawner *s, size_t slot, int64_t kill_after_ms)
{
    struct seat *seat = &s->seats[slot];

    pthread_mutex_lock(&seat->mu);
    if (seat->sent) {
        (void)send_kill(seat, kill_after_ms); /* a spawner that is gone has killed it */
    } else if (seat->armed) {
        if (!seat->killed || kill_after_ms < seat->kill_after_ms)
            seat->kill_after_ms = kill_after_ms;
        seat->killed = true;
    }
    pthread_mutex_unlock(&seat->mu);
}

/* The header, the words, and a small payload, which is then empty. */
static void
write_request(struct wr_buf *out, const struct wr_exec_run *run, struct wr_span *payload)
{
    struct wr_spawn_request r = {.message = WR_SPAWN_RUN,
                                 .run = *run,
                                 .has_cwd = run->cwd != NULL,
                                 .has_file = run->file != NULL,
                                 .has_limits = run->limits != NULL};

    if (run->limits)
        r.limits = *run->limits;
    if (r.run.stop_signal == 0)
        r.run.stop_signal = SIGTERM;
    wr_buf_add(out, &r, sizeof(r));
    r.argc = add_words(out, run->argv);
    r.envc = add_words(out, run->env);
    if (run->cwd)
        wr_buf_add(out, run->cwd, strlen(run->cwd) + 1);
    if (run->file)
        wr_buf_add(out, run->file, strlen(run->file) + 1);
    if (run->limits && run->limits->groups_n > 0)
        wr_buf_add(out, run->limits->groups, run->limits->groups_n * sizeof(gid_t));
    r.words_len = out->len - sizeof(r);
    r.payload_len = payload->len;
    if (payload->len <= SMALL) {
        wr_buf_add(out, payload->ptr, payload->len);
        *payload = (struct wr_span){NULL, 0};
    }
    if (!out->failed)
        memcpy(out->ptr, &r, sizeof(r));
}

static void
tell(const struct wr_exec_events *events, const struct wr_spawn_frame *f,
     const struct wr_buf *body)
{
    int64_t total;

    if (!events)
        return;
    if (f->kind == WR_FRAME_PROGRESS && events->on_progress) {
        events->on_progress(events->context, wr_buf_span(body).ptr);
    } else if (f->kind == WR_FRAME_OUTPUT && events->on_output) {
        events->on_output(events->context, wr_buf_span(body).ptr, body->len, f->left_out);
    } else if (f->kind == WR_FRAME_PUSH && events->on_push) {
        events->on_push(events->context, wr_buf_span(body).ptr, body->len);
    } else if (f->kind == WR_FRAME_EXTEND && body->len == sizeof(total)) {
        memcpy(&total, body->ptr, sizeof(total));
        if (events->on_extend)
            events->on_extend(events->context, total);
    }
}

/* Frames until the end's; false when the spawner is gone. */
static bool
read_frames(int fd, const struct wr_exec_events *events, struct wr_exec_end *end,
            struct wr_buf *result, struct wr_buf *log)
{
    struct incoming in;
    struct wr_spawn_frame f;
    struct wr_buf body = {0};

    listen_to(&in, fd);
    while (recv_all(&in, &f, sizeof(f))) {
        if (f.kind == WR_FRAME_END) {
            bool ok = recv_all(&in, end, sizeof(*end)) &&
                      recv_into(&in, result, f.result_len) &&
                      recv_into(&in, log, f.len - sizeof(*end) - f.result_len);

            result->failed = result->failed || f.result_lost;
            wr_buf_fini(&body);
            return ok;
        }
        wr_buf_clear(&body);
        if (!recv_into(&in, &body, f.len))
            break;
        if (!body.failed)
            tell(events, &f, &body);
    }
    wr_buf_fini(&body);
    return false;
}

enum weir_err
wr_spawner_run(struct wr_spawner *s, size_t slot, const struct wr_exec_run *run,
               const struct wr_exec_events *events, struct wr_buf *result,
               struct wr_buf *log, struct wr_exec_end *end, struct weir_error *err)
{
    struct seat *seat = &s->seats[slot];
    struct wr_span payload = run->payload;
    struct wr_buf head = {0};
    bool ok;

    write_request(&head, run, &payload);
    if (head.failed) {
        wr_buf_fini(&head);
        disarm(seat);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "the words of a command");
    }
    arm(seat, false);
    ok = send_request(seat, &head, payload) &&
         read_frames(seat->fd, events, end, result, log);
    disarm(seat);
    wr_buf_fini(&head);
    if (!ok)
        return wr_fail(err, WEIR_E_BUG, 0, "the spawner is gone");
    if (result->failed)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "the output of a command");
    return WEIR_OK;
}

/* ---- a command that stays ---- */

/* Our ends of the pipes, from beside a frame. False without all three: no more
 * descriptors may be open here. */
static bool
take_descriptors(struct msghdr *m, int fds[3])
{
    bool got = false;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        got = c->cmsg_len == CMSG_LEN(3 * sizeof(int));
        for (size_t i = 0; !got && CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            close(fd);
        }
        if (got)
            memcpy(fds, CMSG_DATA(c), 3 * sizeof(int));
    }
    return got;
}

/* The first frame of what was asked to stay. */
static bool
recv_handed(int sock, struct wr_spawn_frame *f, int fds[3], bool *got)
{
    struct iovec bytes = {f, sizeof(*f)};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = &bytes,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    ssize_t n;
    size_t len = 0, more = 0;

    do
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    *got = n > 0 && take_descriptors(&m, fds);
    /* No byte more than its own: the next frame is for another reader. */
    for (len = n > 0 ? (size_t)n : 0; len > 0 && len < sizeof(*f); len += more) {
        if (!recv_some(sock, (char *)f + len, sizeof(*f) - len, &more))
            return false;
    }
    return n > 0;
}

static bool
read_end(struct incoming *in, const struct wr_spawn_frame *f, struct wr_exec_end *end)
{
    struct wr_buf rest = {0};
    bool ok = f->kind == WR_FRAME_END && recv_all(in, end, sizeof(*end)) &&
              recv_into(in, &rest, f->len - sizeof(*end));

    wr_buf_fini(&rest);
    return ok;
}

static enum weir_err
gone(struct seat *seat, struct weir_error *err)
{
    disarm(seat);
    return wr_fail(err, WEIR_E_BUG, 0, "the spawner is gone");
}

enum weir_err
wr_spawner_open(struct wr_spawner *s, size_t slot, const struct wr_exec_run *run,
                int fds[3], struct wr_exec_end *start, struct weir_error *err)
{
    struct seat *seat = &s->seats[slot];
    struct wr_span none = {NULL, 0};
    struct wr_exec_run stays = *run;
    struct wr_buf head = {0};
    struct wr_spawn_frame f = {0};
    struct incoming in;
    bool ok, got = false;

    listen_to(&in, seat->fd);
    *start = (struct wr_exec_end){0};
    stays.hand_over = true;
    stays.payload = none;
    stays.timeout_ms = stays.idle_ms = 0;
    stays.control = stays.live = false;
    write_request(&head, &stays, &none);
    if (head.failed) {
        wr_buf_fini(&head);
        disarm(seat);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "the words of a command");
    }
    arm(seat, false);
    ok = send_request(seat, &head, none) && recv_handed(seat->fd, &f, fds, &got);
    wr_buf_fini(&head);
    if (!ok)
        return gone(seat, err);
    if (f.kind == WR_FRAME_HANDED && got) {
        for (int i = 0; i < 3; i++)
            (void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
        return WEIR_OK;
    }
    if (f.kind == WR_FRAME_HANDED) { /* no room for its descriptors */
        wr_spawner_kill(s, slot, 0);
        if (wr_spawner_close(s, slot, start, err) != WEIR_OK)
            return WEIR_E_BUG;
        start->start_errno = EMFILE;
        return WEIR_OK;
    }
    if (!read_end(&in, &f, start))
        return gone(seat, err);
    disarm(seat);
    return WEIR_OK;
}

int
wr_spawner_seat_fd(const struct wr_spawner *s, size_t slot)
{
    return s->seats[slot].fd;
}

enum weir_err
wr_spawner_close(struct wr_spawner *s, size_t slot, struct wr_exec_end *end,
                 struct weir_error *err)
{
    struct seat *seat = &s->seats[slot];
    struct wr_spawn_frame f;
    struct incoming in;

    listen_to(&in, seat->fd);
    if (!recv_all(&in, &f, sizeof(f)) || !read_end(&in, &f, end))
        return gone(seat, err);
    disarm(seat);
    return WEIR_OK;
}
