/* Starting a command: its environment, its pipes, fork and exec. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/exec_config.h"
#include "worker/spawn.h"

#define AT_ONCE 4096 /* bytes: a page, as much as the smallest pipe holds */
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

extern char **environ;

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
        if (!wr_exec_is_secret(environ[i]))
            sp->env[sp->env_n++] = environ[i];
    }
    sp->path = getenv("PATH");
    if (!sp->path)
        sp->path = PATH_DEFAULT;
    return true;
}

/* ---- between fork and exec: async-signal-safe calls only ---- */

/* What failed: in the spawner's memory, which waits until exec or the end; or by a pipe.
 */
struct failure {
    int why;
    enum wr_exec_step step;
};

struct start {
    const char *path, *cwd, *file; /* file NULL: argv[0], by path */
    char **argv, **env;
    const int *fds; /* for 0, 1, ... */
    int fds_n;
    int cgroup_fd; /* of cgroup.procs, or -1 */
    volatile struct failure failure;
    int status_fd; /* -1: the memory is shared */
    pid_t parent;
    const struct wr_exec_limits *limits; /* NULL: none */
    const struct rlimit *nofile;         /* NULL: as it is */
};

/* execvp(3), but never by a shell: a file without a known format is ENOEXEC. Answers the
 * errno. */
static int
exec_by_path(const struct start *s)
{
    const char *file = s->file ? s->file : s->argv[0], *at = s->path;
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
prepare(const struct start *s, enum wr_exec_step *step)
{
    int why;

    *step = WR_STEP_FORK;
    if (setsid() < 0)
        return errno;
    if (s->nofile && setrlimit(RLIMIT_NOFILE, s->nofile) != 0)
        return errno;
    why = wr_limits_apply(s->limits, s->cgroup_fd, step);
    if (why != 0)
        return why;
    /* After the user: a change of user takes it back. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return errno;
    if (getppid() != s->parent)
        _exit(127); /* the spawner is gone: nobody waits */
    *step = WR_STEP_FOLDER;
    if (s->cwd && chdir(s->cwd) != 0)
        return errno;
    *step = WR_STEP_FORK;
    for (int i = 0; i < s->fds_n; i++) {
        if (dup2(s->fds[i], i) < 0)
            return errno;
    }
    /* Ours are close-on-exec anyway; kernels before 5.11 have no such call. */
    (void)close_range((unsigned)s->fds_n, ~0U, CLOSE_RANGE_CLOEXEC);
    *step = WR_STEP_LIMITS;
    return wr_limits_apply_last(s->limits);
}

static _Noreturn void
become_command(struct start *s)
{
    enum wr_exec_step step;
    int why = prepare(s, &step);

    if (why == 0) {
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        step = WR_STEP_EXEC;
        why = exec_by_path(s);
    }
    if (s->status_fd >= 0) {
        const struct failure f = {why, step};

        (void)!write(s->status_fd, &f, sizeof(f));
    }
    s->failure.step = step;
    s->failure.why = why;
    _exit(127);
}

/* ---- in the spawner ---- */

struct words {
    char **argv, **env;
    size_t env_n;
    const char *cwd, *file;
    struct wr_exec_limits limits;
    char key[64], socket[160];
};

static char *
take_word(char **at, const char *end)
{
    char *word = *at;

    if (word >= end)
        return NULL;
    *at += strlen(word) + 1;
    return word;
}

static bool
has_variable(const struct words *w, const char *text)
{
    size_t len = (size_t)(strchrnul(text, '=') - text);

    for (size_t i = 0; i < w->env_n; i++) {
        if (strncmp(w->env[i], text, len) == 0 && w->env[i][len] == '=')
            return true;
    }
    return false;
}

/* The request's own come first, and the first of a name counts. */
static void
fill_environment(const struct wr_spawn_job *j, struct words *w, char **at, char *end)
{
    const struct wr_spawn *sp = j->spawn;

    wr_spawn_key(j, w->key, sizeof(w->key));
    w->env[w->env_n++] = w->key;
    if (j->request.run.control && j->control_path[0] != '\0') {
        snprintf(w->socket, sizeof(w->socket), "WEIR_CONTROL_SOCKET=%s", j->control_path);
        w->env[w->env_n++] = w->socket;
    }
    for (uint32_t i = 0; i < j->request.envc; i++) {
        char *text = take_word(at, end);

        if (text && !has_variable(w, text))
            w->env[w->env_n++] = text;
    }
    for (size_t i = 0; !j->request.run.clean && i < sp->env_n; i++) {
        if (!has_variable(w, sp->env[i]))
            w->env[w->env_n++] = sp->env[i];
    }
}

/* Points argv and env into the request's words and the environment of all. */
static bool
split_words(const struct wr_spawn_job *j, struct words *w)
{
    const struct wr_spawn_request *r = &j->request;
    char *at = j->body, *end = at + r->words_len;
    size_t groups_len = r->has_limits ? r->limits.groups_n * sizeof(gid_t) : 0;

    if (groups_len > r->words_len)
        return false;
    end -= groups_len;
    w->argv = calloc((size_t)r->argc + 1 + r->envc + j->spawn->env_n + 3,
                     sizeof(*w->argv));
    w->limits = r->limits;
    w->limits.groups = malloc(groups_len + 1);
    if (!w->argv || !w->limits.groups)
        return false;
    memcpy(w->limits.groups, end, groups_len);
    w->env = w->argv + r->argc + 1;
    for (uint32_t i = 0; i < r->argc; i++)
        w->argv[i] = take_word(&at, end);
    fill_environment(j, w, &at, end);
    w->cwd = r->has_cwd ? take_word(&at, end) : NULL;
    w->file = r->has_file ? take_word(&at, end) : NULL;
    return true;
}

static const char *
path_of(const struct wr_spawn_job *j, const struct words *w)
{
    for (size_t i = 0; i < w->env_n; i++) {
        if (strncmp(w->env[i], "PATH=", 5) == 0)
            return w->env[i] + 5;
    }
    return j->request.run.clean ? PATH_DEFAULT : j->spawn->path;
}

static int
pipes_n(const struct wr_spawn_job *j)
{
    return j->request.run.control ? WR_SPAWN_PIPES : WR_SPAWN_CONTROL;
}

/* True if the whole payload is in the pipe, where there is always room for so much. */
static bool
feed_at_once(struct wr_spawn_job *j)
{
    const char *payload = j->body + j->request.words_len;
    size_t len = (size_t)j->request.payload_len;

    if (len > AT_ONCE || write(j->pipes[0].fd, payload, len) != (ssize_t)len)
        return false;
    j->sent = len;
    wr_spawn_close_pipe(j, 0);
    return true;
}

/* The command's ends of the pipes go to theirs[]. */
static int
open_pipes(struct wr_spawn_job *j, int theirs[WR_SPAWN_PIPES])
{
    for (int i = 0; i < pipes_n(j); i++) {
        int fds[2];

        if (i == 0 && j->request.payload_len == 0 && !j->request.run.hand_over) {
            theirs[0] = j->spawn->null_fd;
            continue;
        }
        if (pipe2(fds, O_CLOEXEC) != 0)
            return errno;
        j->pipes[i].fd = fds[i == 0 ? 1 : 0];
        theirs[i] = fds[i == 0 ? 0 : 1];
        if (i == 0 && !j->request.run.hand_over && !feed_at_once(j) &&
            !wr_spawn_watch_pipe(j, 0))
            return ENOMEM;
    }
    return 0;
}

/* vfork: no copy of the page tables, and no pthread_atfork handlers (libuv's would open
 * pipes). The child runs on our stack and leaves nothing there that we use: this function
 * has no more variables than it must. When it returns the command runs, or has failed. */
static pid_t __attribute__((noinline)) fork_command(struct start *s)
{
    pid_t pid = vfork();

    if (pid == 0)
        become_command(s);
    return pid;
}

/* Emulators and some sanitizers make a fork of it: another memory, and nobody waits. */
void
wr_spawn_try_vfork(struct wr_spawn *sp)
{
    volatile bool shared = false;
    pid_t pid = vfork();

    if (pid == 0) {
        shared = true;
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    sp->vforks = shared;
}

/* By the pipe: exec closes it. */
static pid_t
fork_and_read(struct start *s)
{
    struct failure f = {0};
    int status[2];
    ssize_t n = 0;
    pid_t pid;

    if (pipe2(status, O_CLOEXEC) != 0)
        return -1;
    s->status_fd = status[1];
    pid = fork_command(s);
    close(status[1]);
    do
        n = pid > 0 ? read(status[0], &f, sizeof(f)) : 0;
    while (n < 0 && errno == EINTR);
    close(status[0]);
    if (n == (ssize_t)sizeof(f)) {
        s->failure.why = f.why;
        s->failure.step = f.step;
    }
    return pid;
}

static int
fork_and_exec(struct wr_spawn_job *j, struct start *s)
{
    struct wr_spawn *sp = j->spawn;
    pid_t pid;

    s->failure.why = 0;
    s->failure.step = 0;
    s->status_fd = -1;
    pid = sp->vforks ? fork_command(s) : fork_and_read(s);
    if (pid < 0) {
        s->failure.why = errno;
    } else if (s->failure.why == 0) {
        /* setsid made this the group's number too */
        atomic_store(&sp->slots->slot[j->slot].pgid, (int)pid);
        j->pid = pid;
        return 0;
    } else {
        waitpid(pid, NULL, 0);
    }
    j->end.start_step = s->failure.step;
    return s->failure.why;
}

/* -1 where there is none, or where what it leaves behind may stay. */
static int
open_cgroup_procs(struct wr_spawn_job *j)
{
    int folder = j->request.run.keep_stragglers ? -1 : wr_cgroup_open(j);

    return folder < 0 ? -1 : openat(folder, "cgroup.procs", O_WRONLY | O_CLOEXEC);
}

static int
start_words(struct wr_spawn_job *j, const struct words *w, const int *theirs)
{
    struct wr_spawn *sp = j->spawn;
    struct start s = {.path = path_of(j, w),
                      .cwd = w->cwd,
                      .file = w->file,
                      .argv = w->argv,
                      .env = w->env,
                      .fds = theirs,
                      .fds_n = pipes_n(j),
                      .cgroup_fd = open_cgroup_procs(j),
                      .parent = sp->self,
                      .limits = j->request.has_limits ? &w->limits : NULL,
                      .nofile = sp->limit_raised ? &sp->nofile : NULL};
    int why = fork_and_exec(j, &s);

    if (s.cgroup_fd >= 0)
        close(s.cgroup_fd);
    return why;
}

int
wr_spawn_start(struct wr_spawn_job *j)
{
    int theirs[WR_SPAWN_PIPES] = {-1, -1, -1, -1}, why = ENOMEM;
    struct words w = {0};

    j->end.start_step = WR_STEP_FORK;
    if (split_words(j, &w))
        why = w.argv[0] ? open_pipes(j, theirs) : EINVAL;
    if (why == 0)
        why = start_words(j, &w, theirs);
    for (int i = 0; i < WR_SPAWN_PIPES; i++) {
        if (theirs[i] >= 0 && theirs[i] != j->spawn->null_fd)
            close(theirs[i]);
        if (why != 0)
            wr_spawn_close_pipe(j, i);
    }
    free(w.limits.groups);
    free(w.argv);
    return why;
}
