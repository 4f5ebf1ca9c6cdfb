/* The spawner process: its set-up, its requests, the ends of its children, its own end.
 */
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
#include "worker/exec_folder.h"
#include "worker/spawn.h"

#define PIECE 65536
#define PIECES 16     /* a turn */
#define SIGNALS 4     /* there are two, and each is waiting once or not at all */
#define END_TURNS 200 /* of END_NAP_MS: for killed processes to be reaped */
#define END_NAP_MS 10

/* ---- the ends of processes ---- */

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
            wr_spawn_job_leader_ended(j, status, &usage);
        } else {
            wr_strays_forget(sp, pid);
            strays = true;
        }
    }
    if (strays) /* their children may be ours now */
        (void)wr_strays_sweep(sp, NULL);
    for (size_t i = 0; i < sp->n; i++)
        wr_spawn_job_answer_if_over(&sp->jobs[i]);
}

static void
on_signal(void *arg, unsigned events)
{
    struct wr_spawn *sp = arg;
    struct signalfd_siginfo infos[SIGNALS];
    ssize_t n = read(sp->signal_fd, infos, sizeof(infos));

    (void)events;
    for (ssize_t i = 0; i * (ssize_t)sizeof(infos[0]) < n; i++) {
        if (infos[i].ssi_signo == SIGUSR1 && getppid() != sp->parent) {
            wr_loop_stop(sp->loop);
            return;
        }
    }
    reap(sp);
}

/* ---- requests ---- */

/* A whole header has come: false if it makes no sense here. */
static bool
take_header(struct wr_spawn_job *j)
{
    const struct wr_spawn_request r = j->next;

    j->next_got = 0;
    switch (r.message) {
    case WR_SPAWN_KILL:
        wr_spawn_job_stop(j, r.kill_after_ms);
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
            wr_spawn_job_start(j);
        return true;
    }
    return false;
}

/* The next bytes of the socket; false if they make no sense. */
static bool
take_bytes(struct wr_spawn_job *j, const char *bytes, size_t len)
{
    while (len > 0) {
        bool header = j->body_got == j->body_len;
        size_t n = header ? sizeof(j->next) - j->next_got : j->body_len - j->body_got;

        n = n < len ? n : len;
        if (header) {
            memcpy((char *)&j->next + j->next_got, bytes, n);
            j->next_got += n;
            if (j->next_got == sizeof(j->next) && !take_header(j))
                return false;
        } else {
            if (j->body && j->body + j->body_got != bytes)
                memcpy(j->body + j->body_got, bytes, n);
            j->body_got += n;
            if (j->body_got == j->body_len)
                wr_spawn_job_start(j);
        }
        bytes += n;
        len -= n;
    }
    return true;
}

/* A large payload goes where it shall be, all else through a room of all slots. */
static void
receive(struct wr_spawn_job *j)
{
    static char room[PIECE];

    for (int turns = 0; turns < PIECES; turns++) {
        size_t missing = j->body_len - j->body_got, len = sizeof(room);
        char *to = room;
        ssize_t n;

        if (j->body && missing > sizeof(room)) {
            to = j->body + j->body_got;
            len = missing;
        }
        n = recv(j->sock, to, len, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0 || !take_bytes(j, to, (size_t)n)) {
            wr_loop_stop(j->spawn->loop); /* the child is gone, or mad */
            return;
        }
        if ((size_t)n < len)
            return;
    }
}

static void
on_sock(void *arg, unsigned events)
{
    struct wr_spawn_job *j = arg;

    if (events & WR_WRITABLE)
        wr_spawn_job_send(j);
    if (events & WR_READABLE)
        receive(j);
}

/* ---- the process ---- */

/* Nothing runs any more when it returns, unless the kernel cannot end it. */
static void
kill_all(struct wr_spawn *sp)
{
    sp->ends = true;
    for (size_t i = 0; i < sp->n; i++) {
        wr_spawn_job_kill(&sp->jobs[i], SIGKILL);
        wr_cgroup_kill(&sp->jobs[i]);
        sp->jobs[i].phase = WR_SPAWN_IDLE;
    }
    for (int turns = 0; turns < END_TURNS; turns++) {
        pid_t pid;

        (void)wr_strays_sweep(sp, NULL);
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

/* Two sockets, four pipes and a cgroup a slot, and some of its own. Commands get the old
 * limit. */
static void
raise_limit(struct wr_spawn *sp)
{
    rlim_t want = 64 + 8 * (rlim_t)sp->n;
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
        j->control_sock.fd = j->cgroup_fd = -1;
        j->timer = wr_timer_new(sp->loop, wr_spawn_job_on_timer, j);
        if (!j->timer ||
            wr_watch_new(sp->loop, j->sock, on_sock, j, &j->watch, NULL) != WEIR_OK)
            return false;
        wr_spawn_job_ask_sock(j);
    }
    return true;
}

void
wr_spawn_main(struct wr_slots *slots, int *fds, size_t n, pid_t parent,
              const char *folder)
{
    struct wr_spawn sp = {.slots = slots,
                          .n = n,
                          .self = getpid(),
                          .user = geteuid(),
                          .parent = parent,
                          .children_fd = -1,
                          .folder = folder};
    struct wr_watch *signals;
    int status = 0;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, WR_SPAWNER_NAME);
    setpgid(0, 0);
    raise_limit(&sp);
    wr_spawn_try_vfork(&sp);
    sp.jobs = calloc(n, sizeof(*sp.jobs));
    if (!sp.jobs || !take_low_numbers(&sp, fds) || !open_signals(&sp) ||
        !wr_spawn_take_environment(&sp) || wr_loop_new(&sp.loop, NULL) != WEIR_OK ||
        wr_watch_new(sp.loop, sp.signal_fd, on_signal, &sp, &signals, NULL) != WEIR_OK ||
        !open_jobs(&sp, fds))
        _exit(1); /* the child sees the end of its sockets */
    wr_watch_ask(signals, WR_READABLE);
    wr_cgroup_look(&sp);
    if (getppid() == parent && wr_loop_run(sp.loop, NULL) != WEIR_OK)
        status = 1;
    kill_all(&sp);
    wr_cgroup_remove_all(&sp);
    (void)wr_folder_remove(folder);
    _exit(status);
}
