/* Starting a command: its environment, its pipes, fork and exec. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/spawn.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

extern char **environ;

/* The worker's secrets, and names that belong to a job's own facts. */
static bool
is_passed(const char *variable)
{
    static const char *const kept_back[] = {"WEIR_", "REDIS", "VALKEY", NULL};

    for (size_t i = 0; kept_back[i]; i++) {
        if (strncmp(variable, kept_back[i], strlen(kept_back[i])) == 0)
            return false;
    }
    return true;
}

bool
wr_spawn_take_environment(struct wr_spawn *sp)
{
    size_t n = 0;

    while (environ && environ[n])
        n++;
    sp->env = calloc(n + 1, sizeof(*sp->env));
    if (!sp->env)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (is_passed(environ[i]))
            sp->env[sp->env_n++] = environ[i];
    }
    sp->path = getenv("PATH");
    if (!sp->path)
        sp->path = PATH_DEFAULT;
    return true;
}

/* ---- between fork and exec: async-signal-safe calls only ---- */

struct start {
    const char *path;
    char **argv, **env;
    const int *fds; /* for 0, 1, ... */
    int status_fd;
    pid_t parent;
    const struct rlimit *nofile; /* NULL: as it is */
};

/* execvp(3), but never by a shell: a file without a known format is ENOEXEC. Answers the
 * errno. */
static int
exec_by_path(const struct start *s)
{
    const char *file = s->argv[0], *at = s->path;
    size_t file_len = strlen(file);
    int why = ENOENT;
    char whole[PATH_MAX];

    if (strchr(file, '/') || file_len == 0) {
        execve(file, s->argv, s->env);
        return errno;
    }
    for (;;) {
        const char *end = strchrnul(at, ':');
        size_t len = (size_t)(end - at);

        if (len + file_len + 2 <= sizeof(whole)) {
            memcpy(whole, at, len);
            if (len > 0)
                whole[len++] = '/'; /* an empty entry is the working folder */
            memcpy(whole + len, file, file_len + 1);
            execve(whole, s->argv, s->env);
            if (errno == EACCES)
                why = EACCES; /* maybe another folder has it */
            else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE &&
                     errno != ENODEV && errno != ETIMEDOUT)
                return errno;
        }
        if (*end == '\0')
            return why;
        at = end + 1;
    }
}

static int
prepare(const struct start *s)
{
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return errno;
    if (getppid() != s->parent)
        _exit(127); /* the spawner is gone: nobody waits */
    for (int i = 0; i < WR_SPAWN_PIPES; i++) {
        if (dup2(s->fds[i], i) < 0)
            return errno;
    }
    if (s->nofile && setrlimit(RLIMIT_NOFILE, s->nofile) != 0)
        return errno;
    /* Ours are close-on-exec anyway; kernels before 5.11 have no such call. */
    (void)close_range(WR_SPAWN_PIPES, ~0U, CLOSE_RANGE_CLOEXEC);
    return 0;
}

static _Noreturn void
become_command(const struct start *s)
{
    int why = prepare(s);

    if (why == 0) {
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        why = exec_by_path(s);
    }
    (void)!write(s->status_fd, &why, sizeof(why));
    _exit(127);
}

/* ---- in the spawner ---- */

struct words {
    char **argv, **env;
    char key[64];
};

/* Points argv and env into the request's words and the environment of all. */
static bool
split_words(const struct wr_spawn_job *j, struct words *w)
{
    const struct wr_spawn *sp = j->spawn;
    const struct wr_spawn_request *r = &j->request;
    char *at = j->body, *end = at + r->words_len;
    size_t env_n = 0;

    w->argv = calloc((size_t)r->argc + 1 + r->envc + sp->env_n + 2, sizeof(*w->argv));
    if (!w->argv)
        return false;
    w->env = w->argv + r->argc + 1;
    for (size_t i = 0; i < r->argc && at < end; i++, at += strlen(at) + 1)
        w->argv[i] = at;
    for (size_t i = 0; i < r->envc && at < end; i++, at += strlen(at) + 1)
        w->env[env_n++] = at;
    wr_spawn_key(j, w->key, sizeof(w->key));
    w->env[env_n++] = w->key;
    memcpy(w->env + env_n, sp->env, sp->env_n * sizeof(*w->env));
    return true;
}

void
wr_spawn_close_pipe(struct wr_spawn_job *j, int i)
{
    wr_watch_free(j->pipes[i].watch);
    if (j->pipes[i].fd >= 0)
        close(j->pipes[i].fd);
    j->pipes[i] = (struct wr_spawn_pipe){.fd = -1};
}

/* The command's ends of the pipes go to theirs[]. */
static int
open_pipes(struct wr_spawn_job *j, int theirs[WR_SPAWN_PIPES],
           bool (*watch)(struct wr_spawn_job *job, int pipe))
{
    for (int i = 0; i < WR_SPAWN_PIPES; i++) {
        int fds[2];

        if (i == 0 && j->request.payload_len == 0) {
            theirs[0] = j->spawn->null_fd;
            continue;
        }
        if (pipe2(fds, O_CLOEXEC) != 0)
            return errno;
        j->pipes[i].fd = fds[i == 0 ? 1 : 0];
        theirs[i] = fds[i == 0 ? 0 : 1];
        if (!watch(j, i))
            return ENOMEM;
    }
    return 0;
}

/* vfork: no copy of the page tables, and no pthread_atfork handlers (libuv's would open
 * pipes). The child runs on our stack and leaves nothing there that we use: this function
 * has no more variables than it must. */
static pid_t __attribute__((noinline)) fork_command(const struct start *s)
{
    pid_t pid = vfork();

    if (pid == 0)
        become_command(s);
    return pid;
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

static int
fork_and_exec(struct wr_spawn_job *j, const struct words *w, const int *theirs)
{
    struct wr_spawn *sp = j->spawn;
    struct start s = {.path = sp->path,
                      .argv = w->argv,
                      .env = w->env,
                      .fds = theirs,
                      .parent = getpid(),
                      .nofile = sp->limit_raised ? &sp->nofile : NULL};
    int status[2], why;
    pid_t pid;

    if (pipe2(status, O_CLOEXEC) != 0)
        return errno;
    s.status_fd = status[1];
    pid = fork_command(&s);
    why = pid < 0 ? errno : 0;
    if (pid > 0) /* setsid makes this the group's number too */
        atomic_store(&sp->slots->slot[j->slot].pgid, (int)pid);
    close(status[1]);
    if (pid > 0)
        why = exec_result(status[0]);
    close(status[0]);
    if (why == 0) {
        j->pid = pid;
        return 0;
    }
    if (pid > 0) {
        waitpid(pid, NULL, 0);
        atomic_store(&sp->slots->slot[j->slot].pgid, 0);
    }
    return why;
}

int
wr_spawn_start(struct wr_spawn_job *j, bool (*watch)(struct wr_spawn_job *job, int pipe))
{
    int theirs[WR_SPAWN_PIPES] = {-1, -1, -1}, why;
    struct words w = {0};

    if (!split_words(j, &w))
        return ENOMEM;
    why = w.argv[0] ? open_pipes(j, theirs, watch) : EINVAL;
    if (why == 0)
        why = fork_and_exec(j, &w, theirs);
    for (int i = 0; i < WR_SPAWN_PIPES; i++) {
        if (theirs[i] >= 0 && theirs[i] != j->spawn->null_fd)
            close(theirs[i]);
        if (why != 0)
            wr_spawn_close_pipe(j, i);
    }
    free(w.argv);
    return why;
}
