#include "embed/embed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "redis/conn.h"

#define START_MS 30000
#define STOP_MS 10000
#define SOCKET_MAX 107

struct wr_embed {
    char dir[400], socket[SOCKET_MAX + 1], url[128];
    int lock_fd;
    pid_t pid;
};

bool
wr_embed_default_dir(const char *ns, char *out, size_t cap)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n;

    if (state && *state)
        n = snprintf(out, cap, "%s/weir/%s", state, ns);
    else if (home && *home)
        n = snprintf(out, cap, "%s/.local/state/weir/%s", home, ns);
    else
        return false;
    return n > 0 && (size_t)n < cap;
}

bool
wr_embed_default_socket(const char *ns, char *out, size_t cap)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    char dir[400];
    int n;

    if (run && *run)
        n = snprintf(out, cap, "%s/weir-%s.sock", run, ns);
    else if (wr_embed_default_dir(ns, dir, sizeof(dir)))
        n = snprintf(out, cap, "%s/redis.sock", dir);
    else
        return false;
    return n > 0 && (size_t)n < cap && n <= SOCKET_MAX;
}

bool
wr_embed_answers(const char *text)
{
    struct wr_url url;
    struct wr_conn_options o = {.url = &url};
    struct wr_conn *conn;

    if (wr_url_parse(text, &url, NULL) != WEIR_OK ||
        (url.is_unix && access(url.host, F_OK) != 0))
        return false;
    if (wr_conn_open(&o, wr_clock_ms() + 1000, &conn, NULL) != WEIR_OK)
        return false;
    wr_conn_close(conn);
    return true;
}

static enum weir_err
make_dirs(const char *path, struct weir_error *err)
{
    char part[400];

    snprintf(part, sizeof(part), "%s", path);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return wr_fail(err, WEIR_E_CONFIG, errno, "folder %.150s", part);
        *p = '/';
    }
    if (mkdir(part, 0700) != 0 && errno != EEXIST)
        return wr_fail(err, WEIR_E_CONFIG, errno, "folder %.150s", part);
    return WEIR_OK;
}

/* Two servers on one append-only file would ruin it. */
static enum weir_err
lock_dir(struct wr_embed *e, struct weir_error *err)
{
    char path[450], holder[32] = "";

    snprintf(path, sizeof(path), "%s/lock", e->dir);
    e->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (e->lock_fd < 0)
        return wr_fail(err, WEIR_E_CONFIG, errno, "folder %.150s", e->dir);
    if (flock(e->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (read(e->lock_fd, holder, sizeof(holder) - 1) < 0)
            holder[0] = '\0';
        holder[strcspn(holder, "\n")] = '\0';
        return wr_fail(err, WEIR_E_CONFIG, 0, "folder %.150s is in use by process %s",
                       e->dir, holder);
    }
    if (ftruncate(e->lock_fd, 0) != 0 || dprintf(e->lock_fd, "%d\n", (int)getpid()) < 0)
        return wr_fail(err, WEIR_E_CONFIG, errno, "folder %.150s cannot be written",
                       e->dir);
    return WEIR_OK;
}

static enum weir_err
last_words(const struct wr_embed *e, const char *what, struct weir_error *err)
{
    char path[450], line[300], last[300] = "it left no log";
    FILE *f;

    snprintf(path, sizeof(path), "%s/redis.log", e->dir);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (strlen(line) > 2)
            snprintf(last, sizeof(last), "%s", line);
    }
    if (f)
        fclose(f);
    last[strcspn(last, "\n")] = '\0';
    return wr_fail(err, WEIR_E_IO, 0, "%s: %.180s", what, last);
}

static _Noreturn void
become_server(const struct wr_embed *e, const char *fsync, pid_t parent)
{
    static const char *const names[] = {"redis-server", "valkey-server"};
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    for (size_t i = 0; i < 2; i++) {
        const char *argv[] = {names[i],     "--port",
                              "0",          "--unixsocket",
                              e->socket,    "--unixsocketperm",
                              "700",        "--dir",
                              e->dir,       "--appendonly",
                              "yes",        "--appendfsync",
                              fsync,        "--save",
                              "",           "--maxmemory-policy",
                              "noeviction", "--logfile",
                              "redis.log",  "--daemonize",
                              "no",         NULL};

        execvp(argv[0], (char *const *)(uintptr_t)argv);
    }
    _exit(127);
}

static enum weir_err
wait_until_ready(struct wr_embed *e, struct weir_error *err)
{
    int64_t deadline = wr_clock_ms() + START_MS;
    int status;

    while (!wr_embed_answers(e->url)) {
        if (waitpid(e->pid, &status, WNOHANG) == e->pid) {
            e->pid = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                return wr_fail(
                    err, WEIR_E_CONFIG, 0,
                    "redis-server is not installed: apt-get install redis-server");
            return last_words(e, "redis-server ended at once", err);
        }
        if (wr_clock_ms() > deadline)
            return last_words(e, "redis-server does not answer", err);
        poll(NULL, 0, 10);
    }
    return WEIR_OK;
}

enum weir_err
wr_embed_start(const struct wr_embed_options *o, struct wr_embed **out,
               struct weir_error *err)
{
    struct wr_embed *e = calloc(1, sizeof(*e));
    pid_t parent = getpid();
    enum weir_err rc;

    *out = NULL;
    if (!e)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "embedded server");
    e->lock_fd = -1;
    snprintf(e->dir, sizeof(e->dir), "%s", o->dir);
    snprintf(e->socket, sizeof(e->socket), "%s", o->socket);
    snprintf(e->url, sizeof(e->url), "unix://%s", o->socket);
    rc = strlen(o->socket) > SOCKET_MAX || strlen(o->dir) >= sizeof(e->dir)
             ? wr_fail(
                   err, WEIR_E_CONFIG, 0,
                   "socket path longer than %d bytes: set XDG_RUNTIME_DIR to a short one",
                   SOCKET_MAX)
             : make_dirs(e->dir, err);
    if (rc == WEIR_OK)
        rc = lock_dir(e, err);
    if (rc == WEIR_OK) {
        unlink(e->socket);
        e->pid = fork();
        if (e->pid == 0)
            become_server(e, o->fsync ? o->fsync : "everysec", parent);
        rc = e->pid < 0 ? wr_fail(err, WEIR_E_NO_MEMORY, errno, "fork")
                        : wait_until_ready(e, err);
    }
    if (rc != WEIR_OK) {
        wr_embed_stop(e);
        return rc;
    }
    *out = e;
    return WEIR_OK;
}

void
wr_embed_stop(struct wr_embed *e)
{
    int64_t deadline = wr_clock_ms() + STOP_MS;

    if (!e)
        return;
    if (e->pid > 0) {
        kill(e->pid, SIGTERM);
        while (waitpid(e->pid, NULL, WNOHANG) == 0) {
            if (wr_clock_ms() > deadline)
                kill(e->pid, SIGKILL);
            poll(NULL, 0, 5);
        }
        unlink(e->socket);
    }
    if (e->lock_fd >= 0)
        close(e->lock_fd);
    free(e);
}

pid_t
wr_embed_pid(const struct wr_embed *e)
{
    return e->pid;
}

const char *
wr_embed_url(const struct wr_embed *e)
{
    return e->url;
}

bool
wr_embed_lives(struct wr_embed *e, struct weir_error *err)
{
    if (e->pid > 0 && waitpid(e->pid, NULL, WNOHANG) == 0)
        return true;
    e->pid = 0;
    (void)last_words(e, "redis-server ended", err);
    return false;
}
