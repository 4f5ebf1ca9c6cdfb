#include "embed/embed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
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

#define START_MS 30000 /* without a sign of life; loading a large file is one */
#define STOP_MS 10000
#define SOCKET_MAX 107
#define DIR_MAX 400

struct wr_embed {
    char dir[DIR_MAX], socket[SOCKET_MAX + 1], url[3 * SOCKET_MAX + 8];
    int lock_fd; /* until the server has it */
    pid_t pid;
};

/* ---- where ---- */

static uint32_t
hash(const char *text)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* A namespace as the name of a file: one that has other characters than these gets its
 * hash, so that two never share a folder. */
static void
file_name(const char *ns, char out[160])
{
    size_t len = strlen(ns);

    snprintf(out, 160, "%.128s", ns);
    for (char *p = out; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || *p == '-' || *p == '_' ||
                     (*p == '.' && p != out);

        if (!plain)
            *p = '_';
    }
    if (strcmp(out, ns) != 0)
        snprintf(out + strlen(out), 160 - strlen(out), "-%08x", hash(ns) ^ (unsigned)len);
}

bool
wr_embed_default_dir(const char *ns, char *out, size_t cap)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char name[160];
    int n;

    file_name(ns, name);
    if (state && *state == '/')
        n = snprintf(out, cap, "%s/weir/%s", state, name);
    else if (home && *home)
        n = snprintf(out, cap, "%s/.local/state/weir/%s", home, name);
    else
        return false;
    return n > 0 && (size_t)n < cap;
}

/* The kernel takes 107 bytes. What is longer gets a short stand-in in a folder of this
 * user's own, always the same, so that others find it. */
static void
shorten(const char *path, char out[SOCKET_MAX + 1])
{
    if (strlen(path) <= SOCKET_MAX)
        snprintf(out, SOCKET_MAX + 1, "%s", path);
    else
        snprintf(out, SOCKET_MAX + 1, "/tmp/weir-%u/%08x.sock", (unsigned)geteuid(),
                 hash(path));
}

bool
wr_embed_default_socket(const char *ns, char *out, size_t cap)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    char dir[DIR_MAX], name[160], path[DIR_MAX + 200], short_path[SOCKET_MAX + 1];
    int n;

    file_name(ns, name);
    if (run && *run == '/' && strlen(run) < DIR_MAX)
        snprintf(path, sizeof(path), "%s/weir-%s.sock", run, name);
    else if (wr_embed_default_dir(ns, dir, sizeof(dir)))
        snprintf(path, sizeof(path), "%s/redis.sock", dir);
    else
        return false;
    shorten(path, short_path);
    n = snprintf(out, cap, "%s", short_path);
    return n > 0 && (size_t)n < cap;
}

static enum weir_err
probe(const char *text)
{
    struct wr_url url;
    struct wr_conn_options o = {.url = &url};
    struct wr_conn *conn;
    enum weir_err rc = wr_url_parse(text, &url, NULL);

    if (rc == WEIR_OK && url.is_unix && access(url.host, F_OK) != 0)
        rc = WEIR_E_CONNECT;
    if (rc == WEIR_OK)
        rc = wr_conn_open(&o, wr_clock_ms() + 1000, &conn, NULL);
    if (rc == WEIR_OK)
        wr_conn_close(conn);
    return rc;
}

bool
wr_embed_answers(const char *url)
{
    return probe(url) == WEIR_OK;
}

/* ---- the folder ---- */

static enum weir_err
make_dirs(const char *path, struct weir_error *err)
{
    char part[DIR_MAX];

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

/* The folder of stand-in sockets is in a place where anybody may make one before us. */
static enum weir_err
check_socket_dir(const struct wr_embed *e, struct weir_error *err)
{
    char dir[SOCKET_MAX + 1];
    struct stat st;

    snprintf(dir, sizeof(dir), "/tmp/weir-%u", (unsigned)geteuid());
    if (strncmp(e->socket, dir, strlen(dir)) != 0 || e->socket[strlen(dir)] != '/')
        return WEIR_OK;
    if ((mkdir(dir, 0700) != 0 && errno != EEXIST) || lstat(dir, &st) != 0)
        return wr_fail(err, WEIR_E_CONFIG, errno, "folder %s", dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "folder %s belongs to somebody else: set XDG_RUNTIME_DIR", dir);
    return WEIR_OK;
}

/* Only a socket that nobody listens on is taken away. */
static enum weir_err
free_socket(const struct wr_embed *e, struct weir_error *err)
{
    struct stat st;
    enum weir_err rc;

    if (lstat(e->socket, &st) != 0)
        return WEIR_OK;
    if (!S_ISSOCK(st.st_mode))
        return wr_fail(err, WEIR_E_CONFIG, 0, "%s is not a socket", e->socket);
    rc = probe(e->url);
    if (rc != WEIR_E_CONNECT)
        return wr_fail(err, WEIR_E_CONFIG, 0, "another server listens at %s", e->socket);
    if (unlink(e->socket) != 0 && errno != ENOENT)
        return wr_fail(err, WEIR_E_CONFIG, errno, "socket %s", e->socket);
    return WEIR_OK;
}

static pid_t
read_holder(int fd)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    return n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/*
 * Two servers on one append-only file would ruin it. The lock is the server's: it
 * inherits the descriptor, so the folder is free when the server has ended, and not when
 * the process that started it has. What was left behind by one that was killed is about
 * to end, and is waited for.
 */
static enum weir_err
lock_dir(struct wr_embed *e, struct weir_error *err)
{
    int64_t deadline = wr_clock_ms() + STOP_MS;
    char path[DIR_MAX + 8];

    snprintf(path, sizeof(path), "%s/lock", e->dir);
    e->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (e->lock_fd < 0)
        return wr_fail(err, WEIR_E_CONFIG, errno, "folder %.150s", e->dir);
    while (flock(e->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        pid_t holder = read_holder(e->lock_fd);
        bool left_behind = holder > 0 && kill(holder, 0) != 0 && errno == ESRCH;

        if (!left_behind || wr_clock_ms() > deadline)
            return wr_fail(err, WEIR_E_CONFIG, 0,
                           "folder %.150s is in use by process %d: stop it, or choose "
                           "another with --dir",
                           e->dir, (int)holder);
        poll(NULL, 0, 10);
    }
    if (ftruncate(e->lock_fd, 0) != 0 || dprintf(e->lock_fd, "%d\n", (int)getpid()) < 0)
        return wr_fail(err, WEIR_E_CONFIG, errno, "folder %.150s cannot be written",
                       e->dir);
    return WEIR_OK;
}

static enum weir_err
prepare_dir(struct wr_embed *e, struct weir_error *err)
{
    enum weir_err rc = make_dirs(e->dir, err);

    if (rc == WEIR_OK)
        rc = lock_dir(e, err);
    if (rc == WEIR_OK)
        rc = check_socket_dir(e, err);
    if (rc == WEIR_OK)
        rc = free_socket(e, err);
    return rc;
}

/* ---- the server ---- */

static enum weir_err
last_words(const struct wr_embed *e, const char *what, struct weir_error *err)
{
    char path[DIR_MAX + 16], line[300], last[300] = "it left no log";
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
    fcntl(e->lock_fd, F_SETFD, 0);
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
    enum weir_err rc;
    int status;

    while ((rc = probe(e->url)) != WEIR_OK) {
        if (waitpid(e->pid, &status, WNOHANG) == e->pid) {
            e->pid = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                return wr_fail(
                    err, WEIR_E_CONFIG, 0,
                    "redis-server is not installed: apt-get install redis-server");
            return last_words(e, "redis-server ended at once", err);
        }
        if (rc == WEIR_E_LOADING)
            deadline = wr_clock_ms() + START_MS;
        if (wr_clock_ms() > deadline)
            return last_words(e, "redis-server does not answer", err);
        poll(NULL, 0, 10);
    }
    return WEIR_OK;
}

/* The server changes to its folder, so both must be absolute. */
static bool
absolute(const char *path, char *out, size_t cap)
{
    char cwd[DIR_MAX];
    int n;

    if (*path == '/')
        n = snprintf(out, cap, "%s", path);
    else if (getcwd(cwd, sizeof(cwd)))
        n = snprintf(out, cap, "%s/%s", cwd, path);
    else
        return false;
    return n > 0 && (size_t)n < cap;
}

static void
make_url(const char *path, char *out)
{
    out += sprintf(out, "unix://");
    for (; *path; path++) {
        if (*path == '%' || *path == '?')
            out += sprintf(out, "%%%02X", (unsigned char)*path);
        else
            *out++ = *path;
    }
    *out = '\0';
}

static enum weir_err
set_places(struct wr_embed *e, const struct wr_embed_options *o, struct weir_error *err)
{
    char socket[2 * DIR_MAX];

    if (!absolute(o->dir, e->dir, sizeof(e->dir)) ||
        !absolute(o->socket, socket, sizeof(socket)))
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "folder or socket: a path of more than %d bytes", DIR_MAX);
    shorten(socket, e->socket);
    make_url(e->socket, e->url);
    return WEIR_OK;
}

static void
close_lock(struct wr_embed *e)
{
    if (e->lock_fd >= 0)
        close(e->lock_fd);
    e->lock_fd = -1;
}

static enum weir_err
launch(struct wr_embed *e, const char *fsync, struct weir_error *err)
{
    pid_t parent = getpid();

    e->pid = fork();
    if (e->pid == 0)
        become_server(e, fsync, parent);
    close_lock(e); /* the server has it */
    if (e->pid < 0)
        return wr_fail(err, WEIR_E_NO_MEMORY, errno, "fork");
    return wait_until_ready(e, err);
}

enum weir_err
wr_embed_start(const struct wr_embed_options *o, struct wr_embed **out,
               struct weir_error *err)
{
    struct wr_embed *e = calloc(1, sizeof(*e));
    enum weir_err rc;

    *out = NULL;
    if (!e)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "embedded server");
    e->lock_fd = -1;
    rc = set_places(e, o, err);
    if (rc == WEIR_OK)
        rc = prepare_dir(e, err);
    if (rc == WEIR_OK)
        rc = launch(e, o->fsync ? o->fsync : "everysec", err);
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
    }
    close_lock(e);
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
