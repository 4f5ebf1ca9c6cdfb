#include "worker/spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"

#define STRAGGLER_TERM_MS 300 /* after the leader's end: SIGTERM, and then SIGKILL */
#define ANSWER_MS 600  /* after the leader's end the pipes are waited for so long */
#define ERR_HEAD 16384 /* of stderr: the head kept, the rest is tail */
#define PIPE_READ 65536
#define STOP_MS 5000

enum message {
    MESSAGE_RUN,
    MESSAGE_KILL
};

/* What a handler's thread sends: this, then argv and env as NUL-ended strings, payload.
 */
struct request {
    int message;
    uint32_t argc, envc;
    uint64_t words_len, payload_len;
    int64_t timeout_ms, kill_after_ms;
    uint64_t result_max, err_max;
};

/* What comes back: this, then the result, then stderr. */
struct answer {
    struct wr_exec_end end;
    uint64_t result_len, err_len;
};

struct wr_spawner {
    pid_t pid;
    size_t n;
    struct seat {
        int fd;
        pthread_mutex_t mu; /* whole messages only */
    } seats[];
};

/* ======== the spawner process ======== */

enum phase {
    IDLE,
    RUNNING,
    ENDING,
    ANSWERING
};

/* Head and tail of a stream of any length. */
struct capture {
    struct wr_buf head, tail;
    size_t head_max, tail_max;
    int64_t bytes;
};

struct job {
    int sock;
    enum phase phase;
    struct wr_buf in; /* from the handler's thread */
    struct request request;
    pid_t pid;
    char key[48]; /* WEIR_ATTEMPT_KEY=...: marks what it leaves behind */
    int pipes[3]; /* our ends of its 0, 1, 2; -1: closed */
    size_t sent;  /* of the payload */
    struct capture out, err;
    struct wr_exec_end end;
    int64_t started_ms, ended_ms, term_at_ms, kill_at_ms; /* 0: no such time */
    bool term_sent;
    struct wr_buf reply;
    size_t reply_sent;
};

struct spawner {
    struct wr_slots *slots;
    struct job *jobs;
    size_t n;
    int signals;
    unsigned long count;
    bool orphaned;
};

static void
capture_add(struct capture *c, const char *bytes, size_t len)
{
    size_t head = c->head_max - c->head.len;

    c->bytes += (int64_t)len;
    head = head < len ? head : len;
    wr_buf_add(&c->head, bytes, head);
    bytes += head;
    len -= head;
    if (len > c->tail_max) {
        bytes += len - c->tail_max;
        len = c->tail_max;
    }
    wr_buf_add(&c->tail, bytes, len);
    if (c->tail.len >
        2 * c->tail_max + 4096) /* not at every byte: dropping moves the rest */
        wr_buf_drop(&c->tail, c->tail.len - c->tail_max);
}

static void
capture_text(struct capture *c, struct wr_buf *out)
{
    int64_t left;

    if (c->tail.len > c->tail_max)
        wr_buf_drop(&c->tail, c->tail.len - c->tail_max);
    left = c->bytes - (int64_t)(c->head.len + c->tail.len);
    wr_buf_add(out, wr_buf_span(&c->head).ptr, c->head.len);
    if (left > 0)
        wr_buf_addf(out, "\n[... %lld bytes left out ...]\n", (long long)left);
    wr_buf_add(out, wr_buf_span(&c->tail).ptr, c->tail.len);
}

static void
capture_reset(struct capture *c, size_t head_max, size_t tail_max)
{
    wr_buf_fini(&c->head);
    wr_buf_fini(&c->tail);
    *c = (struct capture){.head_max = head_max, .tail_max = tail_max};
}

static void
close_pipe(struct job *j, int i)
{
    if (j->pipes[i] >= 0)
        close(j->pipes[i]);
    j->pipes[i] = -1;
}

/* ---- starting a command ---- */

/* Between fork and exec: async-signal-safe calls only. Never returns. */
static _Noreturn void
become_command(const int fds[3], int status_fd, pid_t parent, char *const *argv,
               char *const *env)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;
    int why;

    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &plain, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < 3; i++) {
        if (dup2(fds[i], i) < 0)
            _exit(127);
    }
    if (dup2(status_fd, 3) < 0 || fcntl(3, F_SETFD, FD_CLOEXEC) < 0)
        _exit(127);
    close_range(4, ~0U, 0);
    execvpe(argv[0], argv, env);
    why = errno;
    (void)!write(3, &why, sizeof(why));
    _exit(127);
}

struct words {
    char **argv, **env;
};

/* Points argv and env into the request's words; the attempt's key is the last of env. */
static bool
split_words(struct job *j, struct words *w)
{
    char *at = j->in.ptr + sizeof(j->request), *end = at + j->request.words_len;
    size_t total = (size_t)j->request.argc + j->request.envc;

    w->argv = calloc(total + 3, sizeof(char *));
    if (!w->argv)
        return false;
    w->env = w->argv + j->request.argc + 1;
    for (size_t i = 0; i < total && at < end; i++) {
        (i < j->request.argc ? w->argv : w->env - j->request.argc)[i] = at;
        at += strlen(at) + 1;
    }
    w->env[j->request.envc] = j->key;
    return true;
}

static int
make_pipes(int ours[3], int theirs[3], bool has_payload)
{
    for (int i = 0; i < 3; i++)
        ours[i] = theirs[i] = -1;
    for (int i = 0; i < 3; i++) {
        int fds[2];

        if (i == 0 && !has_payload) {
            theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
            if (theirs[0] < 0)
                return errno;
            continue;
        }
        if (pipe2(fds, O_CLOEXEC) != 0)
            return errno;
        ours[i] = fds[i == 0 ? 1 : 0];
        theirs[i] = fds[i == 0 ? 0 : 1];
        fcntl(ours[i], F_SETFL, O_NONBLOCK);
    }
    return 0;
}

/* Waits for exec to succeed (end of the pipe) or to say why not. */
static int
exec_result(int fd)
{
    int why = 0;
    ssize_t n;

    do
        n = read(fd, &why, sizeof(why));
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(why) ? why : 0;
}

/* 0, or the errno that stopped it. */
static int
launch(struct spawner *sp, struct job *j, const struct words *w)
{
    int ours[3], theirs[3], status[2],
        why = make_pipes(ours, theirs, j->request.payload_len > 0);
    pid_t parent = getpid(), pid = -1;

    if (why == 0 && pipe2(status, O_CLOEXEC) != 0)
        why = errno;
    else if (why == 0) {
        pid = fork();
        if (pid == 0)
            become_command(theirs, status[1], parent, w->argv, w->env);
        if (pid < 0)
            why = errno;
        else /* setsid makes the group's number this one */
            atomic_store(&sp->slots->slot[j - sp->jobs].pgid, (int)pid);
        close(status[1]);
        if (pid > 0)
            why = exec_result(status[0]);
        close(status[0]);
    }
    for (int i = 0; i < 3; i++) {
        if (theirs[i] >= 0)
            close(theirs[i]);
        if (why != 0 && ours[i] >= 0)
            close(ours[i]);
        j->pipes[i] = why == 0 ? ours[i] : -1;
    }
    if (why != 0 && pid > 0)
        waitpid(pid, NULL, 0);
    j->pid = why == 0 ? pid : 0;
    return why;
}

/* ---- its end ---- */

static void
kill_group(const struct job *j, int sig)
{
    if (j->pid > 1)
        kill(-j->pid, sig);
}

static bool
group_lives(const struct job *j)
{
    return j->pid > 1 && kill(-j->pid, 0) == 0;
}

static bool
any_running(const struct spawner *sp)
{
    for (size_t i = 0; i < sp->n; i++) {
        if (sp->jobs[i].phase == RUNNING)
            return true;
    }
    return false;
}

static bool
is_leader(const struct spawner *sp, pid_t pid)
{
    for (size_t i = 0; i < sp->n; i++) {
        if (sp->jobs[i].phase != IDLE && sp->jobs[i].pid == pid)
            return true;
    }
    return false;
}

/* Does this process carry the key of the attempt in its environment? */
static bool
carries_key(pid_t pid, const char *key)
{
    char path[64], text[131072];
    size_t len = strlen(key);
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text));
    close(fd);
    return n > 0 && memmem(text, (size_t)n, key, len) != NULL;
}

/* What left its group by setsid has become our child when its parent ended. Those that
 * carry the ended attempt's key are killed; when nothing runs, all are. */
static void
kill_escaped(struct spawner *sp, const struct job *j)
{
    char path[64], line[16384], *at = line, *end;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "re");
    if (!f)
        return;
    line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
    fclose(f);
    for (;;) {
        pid_t pid = (pid_t)strtol(at, &end, 10);

        if (end == at)
            break;
        at = end;
        if (!is_leader(sp, pid) && (!any_running(sp) || carries_key(pid, j->key)))
            kill(pid, SIGKILL);
    }
}

static void
begin_answer(struct spawner *sp, struct job *j)
{
    struct wr_buf err = {0};
    struct answer a = {.end = j->end};

    for (int i = 0; i < 3; i++)
        close_pipe(j, i);
    if (group_lives(j))
        kill_group(j, SIGKILL);
    j->phase = ANSWERING;
    kill_escaped(sp, j);
    atomic_store(&sp->slots->slot[j - sp->jobs].pgid, 0);
    j->pid = 0;
    a.end.bytes_in = (int64_t)j->sent;
    a.end.bytes_out = j->out.bytes;
    a.end.bytes_err = j->err.bytes;
    a.end.out_truncated = j->out.bytes > (int64_t)j->out.head.len;
    capture_text(&j->err, &err);
    a.result_len = j->out.head.len;
    a.err_len = err.len;
    wr_buf_clear(&j->reply);
    wr_buf_add(&j->reply, &a, sizeof(a));
    wr_buf_add(&j->reply, wr_buf_span(&j->out.head).ptr, j->out.head.len);
    wr_buf_add(&j->reply, wr_buf_span(&err).ptr, err.len);
    wr_buf_fini(&err);
    j->reply_sent = 0;
}

static void
start_job(struct spawner *sp, struct job *j)
{
    struct words w = {0};
    int64_t now = wr_clock_ms();

    j->end = (struct wr_exec_end){.exit_code = -1};
    j->sent = 0;
    j->started_ms = now;
    j->ended_ms = j->kill_at_ms = 0;
    j->term_sent = false;
    j->term_at_ms = j->request.timeout_ms > 0 ? now + j->request.timeout_ms : 0;
    snprintf(j->key, sizeof(j->key), "WEIR_ATTEMPT_KEY=%d-%lu", (int)getpid(),
             ++sp->count);
    capture_reset(&j->out, (size_t)j->request.result_max, 0);
    capture_reset(
        &j->err, j->request.err_max < ERR_HEAD ? (size_t)j->request.err_max : ERR_HEAD,
        j->request.err_max < ERR_HEAD ? 0 : (size_t)j->request.err_max - ERR_HEAD);
    j->end.start_errno = split_words(j, &w) ? launch(sp, j, &w) : ENOMEM;
    free(w.argv);
    if (j->end.start_errno != 0)
        begin_answer(sp, j);
    else
        j->phase = RUNNING;
}

static void
leader_ended(struct job *j, int status, const struct rusage *usage)
{
    int64_t now = wr_clock_ms();

    if (WIFEXITED(status))
        j->end.exit_code = WEXITSTATUS(status);
    else
        j->end.signal = WTERMSIG(status);
    j->end.wall_ms = now - j->started_ms;
    j->end.user_us = (int64_t)usage->ru_utime.tv_sec * 1000000 + usage->ru_utime.tv_usec;
    j->end.sys_us = (int64_t)usage->ru_stime.tv_sec * 1000000 + usage->ru_stime.tv_usec;
    j->end.max_rss_kib = usage->ru_maxrss;
    j->ended_ms = now;
    j->phase = ENDING;
    kill_group(j, SIGTERM); /* what it left in its group */
}

static void
reap(struct spawner *sp)
{
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        for (size_t i = 0; i < sp->n; i++) {
            if (sp->jobs[i].phase == RUNNING && sp->jobs[i].pid == pid)
                leader_ended(&sp->jobs[i], status, &usage);
        }
    }
}

/* ---- moving bytes ---- */

static void
feed_stdin(struct job *j)
{
    size_t before = sizeof(j->request) + (size_t)j->request.words_len;

    while (j->sent < j->request.payload_len) {
        ssize_t n = write(j->pipes[0], j->in.ptr + before + j->sent,
                          (size_t)j->request.payload_len - j->sent);

        if (n > 0)
            j->sent += (size_t)n;
        else if (n < 0 && errno == EINTR)
            continue;
        else if (n < 0 && errno == EAGAIN)
            return;
        else
            break; /* it does not read: that is its right */
    }
    close_pipe(j, 0);
}

/* At most a few pieces a turn, so that one flood cannot starve the others. */
static void
drain_pipe(struct job *j, int i, struct capture *c)
{
    char bytes[PIPE_READ];

    for (int turns = 0; turns < 4; turns++) {
        ssize_t n = read(j->pipes[i], bytes, sizeof(bytes));

        if (n > 0)
            capture_add(c, bytes, (size_t)n);
        else if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        else {
            close_pipe(j, i);
            return;
        }
    }
}

static void
read_request(struct spawner *sp, struct job *j)
{
    char bytes[PIPE_READ];
    ssize_t n = recv(j->sock, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        sp->orphaned = true;
        return;
    }
    if (n > 0)
        wr_buf_add(&j->in, bytes, (size_t)n);
    if (j->in.failed)
        sp->orphaned = true;
}

static void
stop_job(struct job *j, int64_t kill_after_ms)
{
    int64_t now = wr_clock_ms();

    if (j->phase != RUNNING)
        return;
    if (kill_after_ms <= 0) {
        kill_group(j, SIGKILL);
        return;
    }
    if (!j->term_sent)
        kill_group(j, SIGTERM);
    j->term_sent = true;
    if (j->kill_at_ms == 0 || now + kill_after_ms < j->kill_at_ms)
        j->kill_at_ms = now + kill_after_ms;
}

/* The bytes of a running job's request stay in front of j->in: its payload is still being
 * sent. Kill messages come behind them. */
static size_t
request_len(const struct job *j)
{
    return sizeof(j->request) + (size_t)j->request.words_len +
           (size_t)j->request.payload_len;
}

static void
take_messages(struct spawner *sp, struct job *j)
{
    for (;;) {
        size_t before = j->phase == IDLE ? 0 : request_len(j);
        struct request r;

        if (j->in.len < before + sizeof(r))
            return;
        memcpy(&r, j->in.ptr + before, sizeof(r));
        if (r.message == MESSAGE_KILL) {
            stop_job(j, r.kill_after_ms);
            memmove(j->in.ptr + before, j->in.ptr + before + sizeof(r),
                    j->in.len - before - sizeof(r));
            j->in.len -= sizeof(r);
            continue;
        }
        if (j->phase != IDLE)
            return;
        j->request = r;
        if (j->in.len < request_len(j)) {
            return;
        }
        start_job(sp, j);
    }
}

static void
send_answer(struct spawner *sp, struct job *j)
{
    while (j->reply_sent < j->reply.len) {
        ssize_t n = send(j->sock, j->reply.ptr + j->reply_sent,
                         j->reply.len - j->reply_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0)
            j->reply_sent += (size_t)n;
        else if (n < 0 && errno == EINTR)
            continue;
        else {
            sp->orphaned = sp->orphaned || (n < 0 && errno != EAGAIN);
            return;
        }
    }
    j->phase = IDLE;
    wr_buf_drop(&j->in, request_len(j));
    if (j->in.len == 0 && j->in.cap > 1 << 20)
        wr_buf_fini(&j->in);
    wr_buf_fini(&j->reply);
    take_messages(sp, j);
}

/* ---- time ---- */

static void
check_times(struct spawner *sp, struct job *j, int64_t now)
{
    if (j->phase == RUNNING) {
        if (j->term_at_ms != 0 && now >= j->term_at_ms) {
            j->term_at_ms = 0;
            j->end.timed_out = true;
            stop_job(j, j->request.kill_after_ms);
        }
        if (j->kill_at_ms != 0 && now >= j->kill_at_ms) {
            j->kill_at_ms = 0;
            kill_group(j, SIGKILL);
        }
    } else if (j->phase == ENDING) {
        bool open = j->pipes[1] >= 0 || j->pipes[2] >= 0;

        if (now >= j->ended_ms + STRAGGLER_TERM_MS && group_lives(j))
            kill_group(j, SIGKILL);
        if (!open || now >= j->ended_ms + ANSWER_MS) {
            begin_answer(sp, j);
            send_answer(sp, j);
        }
    }
}

static int64_t
sooner(int64_t a, int64_t b)
{
    return b != 0 && b < a ? b : a;
}

static int
wait_ms(const struct spawner *sp, int64_t now)
{
    int64_t at = now + 60000;

    for (size_t i = 0; i < sp->n; i++) {
        const struct job *j = &sp->jobs[i];

        if (j->phase == RUNNING)
            at = sooner(sooner(at, j->term_at_ms), j->kill_at_ms);
        if (j->phase == ENDING)
            at = sooner(at, now < j->ended_ms + STRAGGLER_TERM_MS
                                ? j->ended_ms + STRAGGLER_TERM_MS
                                : j->ended_ms + ANSWER_MS);
    }
    return at > now ? (int)(at - now) : 0;
}

/* ---- the loop ---- */

/* Descriptors of all jobs, four each: socket, stdin, stdout, stderr. */
static void
fill_poll(const struct spawner *sp, struct pollfd *p)
{
    p[0] = (struct pollfd){.fd = sp->signals, .events = POLLIN};
    for (size_t i = 0; i < sp->n; i++) {
        const struct job *j = &sp->jobs[i];
        struct pollfd *q = p + 1 + 4 * i;

        q[0] = (struct pollfd){.fd = j->sock, .events = POLLIN};
        if (j->phase == ANSWERING)
            q[0].events |= POLLOUT;
        q[1] = (struct pollfd){.fd = j->pipes[0], .events = POLLOUT};
        q[2] = (struct pollfd){.fd = j->pipes[1], .events = POLLIN};
        q[3] = (struct pollfd){.fd = j->pipes[2], .events = POLLIN};
    }
}

static void
serve(struct spawner *sp, struct job *j, const struct pollfd *q)
{
    if (q[1].revents && j->pipes[0] >= 0)
        feed_stdin(j);
    if (q[2].revents && j->pipes[1] >= 0)
        drain_pipe(j, 1, &j->out);
    if (q[3].revents && j->pipes[2] >= 0)
        drain_pipe(j, 2, &j->err);
    if (q[0].revents & (POLLIN | POLLHUP | POLLERR)) {
        read_request(sp, j);
        take_messages(sp, j);
    }
    if (j->phase == ANSWERING)
        send_answer(sp, j);
}

static _Noreturn void
end_all(struct spawner *sp)
{
    for (size_t i = 0; i < sp->n; i++)
        kill_group(&sp->jobs[i], SIGKILL);
    for (int turns = 0; turns < 100; turns++) {
        struct job none = {.key = "-"};
        int status;
        pid_t pid;

        for (size_t i = 0; i < sp->n; i++)
            sp->jobs[i].phase = IDLE;
        kill_escaped(sp, &none);
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            continue;
        if (pid < 0)
            break; /* no children are left */
        poll(NULL, 0, 10);
    }
    _exit(0);
}

static _Noreturn void
spawner_main(struct spawner *sp)
{
    struct pollfd *p = calloc(1 + 4 * sp->n, sizeof(*p));

    if (!p)
        _exit(1);
    while (!sp->orphaned) {
        struct signalfd_siginfo info;

        fill_poll(sp, p);
        if (poll(p, 1 + 4 * sp->n, wait_ms(sp, wr_clock_ms())) < 0 && errno != EINTR)
            break;
        for (size_t i = 0; i < sp->n; i++)
            serve(sp, &sp->jobs[i], p + 1 + 4 * i);
        if (p[0].revents && read(sp->signals, &info, sizeof(info)) > 0)
            reap(sp);
        for (size_t i = 0; i < sp->n; i++)
            check_times(sp, &sp->jobs[i], wr_clock_ms());
    }
    end_all(sp);
}

/* In the forked process: keeps its sockets and 0, 1, 2 and nothing else. */
static _Noreturn void
spawner_enter(struct wr_slots *slots, const int *fds, size_t n)
{
    struct spawner sp = {.slots = slots, .n = n, .jobs = calloc(n, sizeof(*sp.jobs))};
    sigset_t mask;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "weir-spawner");
    setpgid(0, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_IGN); /* its end is the end of its sockets */
    signal(SIGINT, SIG_IGN);
    sigfillset(&mask);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    sp.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (!sp.jobs || sp.signals < 0)
        _exit(1);
    for (size_t i = 0; i < n; i++)
        sp.jobs[i] = (struct job){.sock = fds[i], .pipes = {-1, -1, -1}};
    spawner_main(&sp);
}

/* ======== the child's side ======== */

/* Everything open but the sockets of the spawner and 0, 1, 2: a copy of a lifeline or of
 * a Redis connection must not live on here. */
static void
close_others(const int *keep, size_t n)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;

    while (d && (e = readdir(d)) != NULL) {
        int fd = atoi(e->d_name);
        bool kept = fd <= 2 || fd == dirfd(d);

        for (size_t i = 0; i < n && !kept; i++)
            kept = keep[i] == fd;
        if (!kept)
            close(fd);
    }
    if (d)
        closedir(d);
}

enum weir_err
wr_spawner_start(struct wr_slots *slots, size_t n, struct wr_spawner **out,
                 struct weir_error *err)
{
    struct wr_spawner *s = calloc(1, sizeof(*s) + n * sizeof(s->seats[0]));
    int *theirs = calloc(n, sizeof(*theirs));
    size_t made = 0;

    *out = NULL;
    if (!s || !theirs)
        goto fail_memory;
    for (; made < n; made++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            goto fail_sockets;
        s->seats[made].fd = pair[0];
        theirs[made] = pair[1];
        pthread_mutex_init(&s->seats[made].mu, NULL);
    }
    s->n = n;
    s->pid = fork();
    if (s->pid == 0) {
        close_others(theirs, n);
        spawner_enter(slots, theirs, n);
    }
    for (size_t i = 0; i < n; i++)
        close(theirs[i]);
    free(theirs);
    if (s->pid > 0) {
        *out = s;
        return WEIR_OK;
    }
    wr_spawner_stop(s);
    return wr_fail(err, WEIR_E_NO_MEMORY, errno, "fork the spawner");

fail_sockets:
    for (size_t i = 0; i < made; i++) {
        close(s->seats[i].fd);
        close(theirs[i]);
    }
    free(theirs);
    free(s);
    return wr_fail(err, WEIR_E_NO_MEMORY, errno, "sockets of the spawner");
fail_memory:
    free(theirs);
    free(s);
    return wr_fail(err, WEIR_E_NO_MEMORY, 0, "spawner");
}

void
wr_spawner_stop(struct wr_spawner *s)
{
    int64_t deadline = wr_clock_ms() + STOP_MS;

    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        close(s->seats[i].fd);
        pthread_mutex_destroy(&s->seats[i].mu);
    }
    while (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) == 0) {
        if (wr_clock_ms() > deadline)
            kill(s->pid, SIGKILL);
        poll(NULL, 0, 2);
    }
    free(s);
}

pid_t
wr_spawner_pid(const struct wr_spawner *s)
{
    return s->pid;
}

static struct wr_spawner *current;

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

static bool
recv_all(int fd, void *to, size_t len)
{
    char *at = to;

    while (len > 0) {
        ssize_t n = recv(fd, at, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
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
recv_into(int fd, struct wr_buf *out, uint64_t len)
{
    char *to = wr_buf_room(out, (size_t)len);

    if (!to || !recv_all(fd, to, (size_t)len))
        return false;
    out->len += (size_t)len;
    out->ptr[out->len] = '\0';
    return true;
}

enum weir_err
wr_spawner_run(struct wr_spawner *s, size_t slot, const char *const *argv,
               const char *const *env, struct wr_span payload, int64_t timeout_ms,
               int64_t kill_after_ms, size_t result_max, struct wr_buf *result,
               struct wr_buf *stderr_tail, struct wr_exec_end *end,
               struct weir_error *err)
{
    struct seat *seat = &s->seats[slot];
    struct wr_buf words = {0};
    struct request r = {.message = MESSAGE_RUN,
                        .payload_len = payload.len,
                        .timeout_ms = timeout_ms,
                        .kill_after_ms = kill_after_ms,
                        .result_max = result_max,
                        .err_max = 65536};
    struct answer a;
    bool ok;

    r.argc = add_words(&words, argv);
    r.envc = add_words(&words, env);
    r.words_len = words.len;
    if (words.failed) {
        wr_buf_fini(&words);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "the words of a command");
    }
    pthread_mutex_lock(&seat->mu);
    ok = send_all(seat->fd, &r, sizeof(r)) && send_all(seat->fd, words.ptr, words.len) &&
         send_all(seat->fd, payload.ptr, payload.len);
    pthread_mutex_unlock(&seat->mu);
    wr_buf_fini(&words);
    ok = ok && recv_all(seat->fd, &a, sizeof(a)) &&
         recv_into(seat->fd, result, a.result_len) &&
         recv_into(seat->fd, stderr_tail, a.err_len);
    if (!ok)
        return wr_fail(err, WEIR_E_BUG, 0, "the spawner is gone");
    *end = a.end;
    return WEIR_OK;
}

void
wr_spawner_kill(struct wr_spawner *s, size_t slot, int64_t kill_after_ms)
{
    struct seat *seat = &s->seats[slot];
    struct request r = {.message = MESSAGE_KILL, .kill_after_ms = kill_after_ms};

    pthread_mutex_lock(&seat->mu);
    (void)send_all(seat->fd, &r, sizeof(r)); /* a spawner that is gone has killed it */
    pthread_mutex_unlock(&seat->mu);
}
