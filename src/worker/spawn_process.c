/* The spawner process: requests, pipes, the ends of commands, and their times. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/spawn.h"

/* After the leader's end its group has SIGTERM, and so long until SIGKILL; the answer
 * waits for its pipes until a little later, and never a second. */
#define STRAGGLER_MS 700
#define ANSWER_MS 900
#define ERR_HEAD 16384 /* of stderr: what is kept of its begin; the rest is tail */
#define PIECE 65536
#define PIECES 4      /* a turn, so that a flood does not starve the others */
#define END_TURNS 200 /* of END_NAP_MS: for killed processes to be reaped */
#define END_NAP_MS 10

/* ---- the end of a command ---- */

static void
kill_group(const struct wr_spawn_job *j, int sig)
{
    if (j->pid > 1)
        kill(-j->pid, sig);
}

static bool
group_lives(const struct wr_spawn_job *j)
{
    return j->pid > 1 && kill(-j->pid, 0) == 0;
}

static void
ask_sock(struct wr_spawn_job *j)
{
    wr_watch_ask(j->watch, j->phase == WR_SPAWN_ANSWERING ? WR_READABLE | WR_WRITABLE
                                                          : WR_READABLE);
}

static void
send_answer(struct wr_spawn_job *j)
{
    while (j->reply_sent < j->reply.len) {
        ssize_t n = send(j->sock, j->reply.ptr + j->reply_sent,
                         j->reply.len - j->reply_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            j->reply_sent += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            if (n < 0 && errno != EAGAIN)
                wr_loop_stop(j->spawn->loop); /* nobody is there any more */
            return;
        }
    }
    wr_buf_fini(&j->reply);
    free(j->body);
    j->body = NULL;
    j->phase = WR_SPAWN_IDLE;
    ask_sock(j);
}

static void
answer(struct wr_spawn_job *j)
{
    struct wr_spawn_answer a = {.end = j->end};
    struct wr_buf err = {0};

    for (int i = 0; i < WR_SPAWN_PIPES; i++)
        wr_spawn_close_pipe(j, i);
    wr_timer_off(j->timer);
    if (group_lives(j))
        kill_group(j, SIGKILL);
    j->phase = WR_SPAWN_ANSWERING;
    if (j->pid != 0)
        wr_strays_sweep(j->spawn, NULL);
    atomic_store(&j->spawn->slots->slot[j->slot].pgid, 0);
    j->pid = 0;
    a.end.bytes_in = (int64_t)j->sent;
    a.end.bytes_out = j->out.bytes;
    a.end.bytes_err = j->err.bytes;
    a.end.out_truncated = j->out.bytes > (int64_t)j->out.head.len;
    wr_capture_text(&j->err, &err);
    a.result_len = j->out.head.len;
    a.err_len = err.len;
    wr_buf_clear(&j->reply);
    wr_buf_add(&j->reply, &a, sizeof(a));
    wr_buf_add(&j->reply, wr_buf_span(&j->out.head).ptr, j->out.head.len);
    wr_buf_add(&j->reply, wr_buf_span(&err).ptr, err.len);
    wr_buf_fini(&err);
    wr_capture_reset(&j->out, 0, 0);
    wr_capture_reset(&j->err, 0, 0);
    j->reply_sent = 0;
    if (j->reply.failed)
        wr_loop_stop(j->spawn->loop); /* half an answer is none: kill all, and end */
    ask_sock(j);
    send_answer(j);
}

static void
answer_if_over(struct wr_spawn_job *j)
{
    if (j->phase != WR_SPAWN_ENDING)
        return;
    if ((j->pipes[1].fd < 0 && j->pipes[2].fd < 0 && !group_lives(j)) ||
        wr_clock_ms() >= j->answer_at_ms)
        answer(j);
}

static void
set_timer(struct wr_spawn_job *j)
{
    int64_t at = 0;

    if (j->phase == WR_SPAWN_RUNNING) {
        at = j->term_at_ms;
        if (j->kill_at_ms != 0 && (at == 0 || j->kill_at_ms < at))
            at = j->kill_at_ms;
    } else if (j->phase == WR_SPAWN_ENDING) {
        at = j->stragglers_killed ? j->answer_at_ms : j->kill_at_ms;
    }
    if (at != 0)
        wr_timer_set(j->timer, at * 1000);
    else
        wr_timer_off(j->timer);
}

static void
leader_ended(struct wr_spawn_job *j, int status, const struct rusage *usage)
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
    j->phase = WR_SPAWN_ENDING;
    j->kill_at_ms = now + STRAGGLER_MS;
    j->answer_at_ms = now + ANSWER_MS;
    kill_group(j, SIGTERM);
    kill_group(j, SIGCONT);
    wr_strays_sweep(j->spawn, j);
    set_timer(j);
}

static struct wr_spawn_job *
job_of_leader(struct wr_spawn *sp, pid_t pid)
{
    for (size_t i = 0; i < sp->n; i++) {
        if (sp->jobs[i].phase == WR_SPAWN_RUNNING && sp->jobs[i].pid == pid)
            return &sp->jobs[i];
    }
    return NULL;
}

static void
reap(struct wr_spawn *sp)
{
    bool strays = false;
    struct rusage usage;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        struct wr_spawn_job *j = job_of_leader(sp, pid);

        if (j) {
            leader_ended(j, status, &usage);
        } else {
            wr_strays_forget(sp, pid);
            strays = true;
        }
    }
    if (strays) /* their children may be ours now */
        wr_strays_sweep(sp, NULL);
    for (size_t i = 0; i < sp->n; i++)
        answer_if_over(&sp->jobs[i]);
}

static void
on_signal(void *arg, unsigned events)
{
    struct wr_spawn *sp = arg;
    struct signalfd_siginfo info;

    (void)events;
    while (read(sp->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        continue;
    if (getppid() != sp->parent)
        wr_loop_stop(sp->loop);
    else
        reap(sp);
}

/* ---- stopping one ---- */

static void
stop_command(struct wr_spawn_job *j, int64_t kill_after_ms)
{
    int64_t now = wr_clock_ms();

    if (j->phase != WR_SPAWN_RUNNING)
        return;
    if (kill_after_ms <= 0) {
        kill_group(j, SIGKILL);
        return;
    }
    if (!j->term_sent) {
        kill_group(j, SIGTERM);
        kill_group(j, SIGCONT); /* one that is stopped could not act on it */
    }
    j->term_sent = true;
    if (j->kill_at_ms == 0 || now + kill_after_ms < j->kill_at_ms)
        j->kill_at_ms = now + kill_after_ms;
    set_timer(j);
}

static void
on_timer(void *arg)
{
    struct wr_spawn_job *j = arg;
    int64_t now = wr_clock_ms();

    if (j->phase == WR_SPAWN_RUNNING) {
        if (j->term_at_ms != 0 && now >= j->term_at_ms) {
            j->term_at_ms = 0;
            j->end.timed_out = true;
            stop_command(j, j->request.kill_after_ms);
        }
        if (j->kill_at_ms != 0 && now >= j->kill_at_ms) {
            j->kill_at_ms = 0;
            kill_group(j, SIGKILL);
        }
    } else if (j->phase == WR_SPAWN_ENDING && !j->stragglers_killed &&
               now >= j->kill_at_ms) {
        j->stragglers_killed = true;
        if (group_lives(j))
            kill_group(j, SIGKILL);
        wr_strays_sweep(j->spawn, NULL);
    }
    set_timer(j);
    answer_if_over(j);
}

/* ---- pipes ---- */

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

static void
drain_pipe(struct wr_spawn_job *j, int i, struct wr_capture *c)
{
    static char bytes[PIECE];

    for (int turns = 0; turns < PIECES; turns++) {
        ssize_t n = read(j->pipes[i].fd, bytes, sizeof(bytes));

        if (n > 0) {
            wr_capture_add(c, bytes, (size_t)n);
        } else if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            return;
        } else {
            wr_spawn_close_pipe(j, i);
            answer_if_over(j);
            return;
        }
    }
}

static void
drain_stdout(void *arg, unsigned events)
{
    struct wr_spawn_job *j = arg;

    (void)events;
    drain_pipe(j, 1, &j->out);
}

static void
drain_stderr(void *arg, unsigned events)
{
    struct wr_spawn_job *j = arg;

    (void)events;
    drain_pipe(j, 2, &j->err);
}

static bool
watch_pipe(struct wr_spawn_job *j, int i)
{
    static wr_watch_fn *const fn[WR_SPAWN_PIPES] = {feed_stdin, drain_stdout,
                                                    drain_stderr};
    struct wr_spawn_pipe *p = &j->pipes[i];

    if (wr_watch_new(j->spawn->loop, p->fd, fn[i], j, &p->watch, NULL) != WEIR_OK)
        return false;
    wr_watch_ask(p->watch, i == 0 ? WR_WRITABLE : WR_READABLE);
    return true;
}

/* ---- requests ---- */

static void
start_job(struct wr_spawn_job *j)
{
    const struct wr_spawn_request *r = &j->request;
    size_t err_max = (size_t)r->err_max,
           head = err_max < 2 * ERR_HEAD ? err_max / 2 : ERR_HEAD,
           tail = err_max - head > WR_CAPTURE_GAP ? err_max - head - WR_CAPTURE_GAP : 0;

    j->end = (struct wr_exec_end){.exit_code = -1};
    j->sent = 0;
    j->kill_at_ms = 0;
    j->term_sent = j->stragglers_killed = false;
    j->number = ++j->spawn->count;
    wr_capture_reset(&j->out, (size_t)r->result_max, 0);
    wr_capture_reset(&j->err, head, tail);
    j->started_ms = wr_clock_ms();
    j->term_at_ms = r->timeout_ms > 0 ? j->started_ms + r->timeout_ms : 0;
    j->end.start_errno = j->body ? wr_spawn_start(j, watch_pipe) : ENOMEM;
    if (j->end.start_errno != 0) {
        answer(j);
        return;
    }
    j->phase = WR_SPAWN_RUNNING;
    set_timer(j);
}

/* A whole header has come: false if it makes no sense here. */
static bool
take_header(struct wr_spawn_job *j)
{
    const struct wr_spawn_request r = j->next;

    j->next_got = 0;
    switch (r.message) {
    case WR_SPAWN_KILL:
        stop_command(j, r.kill_after_ms);
        return true;
    case WR_SPAWN_RUN:
        if (j->phase != WR_SPAWN_IDLE || r.words_len > SIZE_MAX / 2 ||
            r.payload_len > SIZE_MAX / 2)
            return false;
        j->request = r;
        j->body_len = (size_t)(r.words_len + r.payload_len);
        j->body_got = 0;
        j->body = malloc(j->body_len + 1);
        if (j->body_len == 0)
            start_job(j);
        return true;
    }
    return false;
}

/* Where the next bytes of the socket go, and how many at most. */
static char *
place_of_next(struct wr_spawn_job *j, size_t *len)
{
    static char trash[PIECE];

    if (j->body_got == j->body_len) {
        *len = sizeof(j->next) - j->next_got;
        return (char *)&j->next + j->next_got;
    }
    *len = j->body_len - j->body_got;
    if (j->body)
        return j->body + j->body_got;
    if (*len > sizeof(trash))
        *len = sizeof(trash);
    return trash;
}

static bool
take_bytes(struct wr_spawn_job *j, size_t n)
{
    if (j->body_got == j->body_len) {
        j->next_got += n;
        return j->next_got < sizeof(j->next) || take_header(j);
    }
    j->body_got += n;
    if (j->body_got == j->body_len)
        start_job(j);
    return true;
}

static void
receive(struct wr_spawn_job *j)
{
    for (int turns = 0; turns < 4 * PIECES; turns++) {
        size_t len;
        char *to = place_of_next(j, &len);
        ssize_t n = recv(j->sock, to, len, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0 || !take_bytes(j, (size_t)n)) {
            wr_loop_stop(j->spawn->loop); /* the child is gone, or mad */
            return;
        }
    }
}

static void
on_sock(void *arg, unsigned events)
{
    struct wr_spawn_job *j = arg;

    if ((events & WR_WRITABLE) && j->phase == WR_SPAWN_ANSWERING)
        send_answer(j);
    if (events & WR_READABLE)
        receive(j);
}

/* ---- the process ---- */

/* Nothing runs any more when it returns, unless the kernel cannot end it. */
static void
kill_all(struct wr_spawn *sp)
{
    for (size_t i = 0; i < sp->n; i++) {
        kill_group(&sp->jobs[i], SIGKILL);
        sp->jobs[i].phase = WR_SPAWN_IDLE;
    }
    for (int turns = 0; turns < END_TURNS; turns++) {
        pid_t pid;

        wr_strays_sweep(sp, NULL);
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            wr_strays_forget(sp, pid);
        if (pid < 0)
            return; /* no children are left */
        poll(NULL, 0, END_NAP_MS);
    }
}

/* 0 to 3 are taken, so that no descriptor of ours has a number that a command's gets. */
static bool
take_low_numbers(struct wr_spawn *sp, int *fds)
{
    for (size_t i = 0; i < sp->n; i++) {
        int low = fds[i];

        if (low > WR_SPAWN_PIPES)
            continue;
        fds[i] = fcntl(low, F_DUPFD_CLOEXEC, WR_SPAWN_PIPES + 1);
        if (fds[i] < 0)
            return false;
        close(low);
    }
    do
        sp->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (sp->null_fd >= 0 && sp->null_fd <= WR_SPAWN_PIPES);
    return sp->null_fd >= 0;
}

static bool
open_signals(struct wr_spawn *sp)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t mask;

    for (int s = 1; s < NSIG; s++)
        sigaction(s, &plain, NULL);
    sigfillset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGUSR1); /* the parent's death: a copy of its sockets may live on */
    sp->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return sp->signal_fd >= 0 && prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0;
}

/* A socket and three pipes a slot, and some of its own. Commands get the old limit. */
static void
raise_limit(struct wr_spawn *sp)
{
    rlim_t want = 64 + 6 * (rlim_t)sp->n;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &sp->nofile) != 0 || sp->nofile.rlim_cur >= want)
        return;
    limit = sp->nofile;
    limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
    sp->limit_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static bool
open_jobs(struct wr_spawn *sp, const int *fds)
{
    for (size_t i = 0; i < sp->n; i++) {
        struct wr_spawn_job *j = &sp->jobs[i];

        *j = (struct wr_spawn_job){.spawn = sp, .slot = i, .sock = fds[i]};
        for (int k = 0; k < WR_SPAWN_PIPES; k++)
            j->pipes[k].fd = -1;
        j->timer = wr_timer_new(sp->loop, on_timer, j);
        if (!j->timer ||
            wr_watch_new(sp->loop, j->sock, on_sock, j, &j->watch, NULL) != WEIR_OK)
            return false;
        ask_sock(j);
    }
    return true;
}

void
wr_spawn_main(struct wr_slots *slots, int *fds, size_t n, pid_t parent)
{
    struct wr_spawn sp = {.slots = slots, .n = n, .parent = parent};
    struct wr_watch *signals;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "weir-spawner");
    setpgid(0, 0);
    raise_limit(&sp);
    sp.jobs = calloc(n, sizeof(*sp.jobs));
    if (!sp.jobs || !take_low_numbers(&sp, fds) || !open_signals(&sp) ||
        !wr_spawn_take_environment(&sp) || wr_loop_new(&sp.loop, NULL) != WEIR_OK ||
        wr_watch_new(sp.loop, sp.signal_fd, on_signal, &sp, &signals, NULL) != WEIR_OK ||
        !open_jobs(&sp, fds))
        _exit(1); /* the child sees the end of its sockets */
    wr_watch_ask(signals, WR_READABLE);
    if (getppid() == parent && wr_loop_run(sp.loop, NULL) != WEIR_OK) {
        kill_all(&sp);
        _exit(1);
    }
    kill_all(&sp);
    _exit(0);
}
