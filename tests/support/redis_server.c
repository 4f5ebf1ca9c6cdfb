#include "support/redis_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "redis/conn.h"

#define START_MS 20000
#define WORDS_MAX 40

struct redis_server {
    char dir[64], socket[96], url[128];
    const char *argv[WORDS_MAX];
    char *extra[WORDS_MAX]; /* copies, for a restart */
    size_t extra_n;
    pid_t pid;
    struct wr_conn *conn;
    struct redis_server *next;
};

static struct redis_server *servers; /* for the end of the program */

static void
give_up(const char *what)
{
    fprintf(stderr, "redis_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void
forget_conn(struct redis_server *s)
{
    wr_conn_close(s->conn);
    s->conn = NULL;
}

static void
remove_dir(const char *dir)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    if (system(command) != 0)
        fprintf(stderr, "redis_server: %s stays\n", dir);
}

static void
stop_all(void)
{
    static pid_t owner;

    if (owner == 0)
        owner = getpid();
    while (servers && servers->pid >= 0 && getpid() == owner)
        redis_server_stop(servers);
}

static struct wr_conn *
connect_to(struct redis_server *s, int64_t deadline_ms)
{
    struct wr_url url;
    struct wr_conn *conn;
    struct wr_conn_options o = {.url = &url};

    if (wr_url_parse(s->url, &url, NULL) != WEIR_OK ||
        wr_conn_open(&o, deadline_ms, &conn, NULL) != WEIR_OK)
        return NULL;
    return conn;
}

static void
launch(struct redis_server *s)
{
    int64_t deadline = wr_clock_ms() + START_MS;
    pid_t parent = getpid();

    unlink(s->socket);
    s->pid = fork();
    if (s->pid < 0)
        give_up("fork");
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        setpgid(0, 0);
        execvp(s->argv[0], (char *const *)(uintptr_t)s->argv);
        _exit(127);
    }
    while ((s->conn = connect_to(s, wr_clock_ms() + 1000)) == NULL) {
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid || wr_clock_ms() > deadline)
            give_up("redis-server does not start");
        poll(NULL, 0, 5);
    }
}

struct redis_server *
redis_server_start(const char *const *extra)
{
    struct redis_server *s = calloc(1, sizeof(*s));
    const char *base[] = {"redis-server",
                          "--port",
                          "0",
                          "--unixsocket",
                          "",
                          "--dir",
                          "",
                          "--save",
                          "",
                          "--loglevel",
                          "warning",
                          "--logfile",
                          "redis.log"};
    size_t n = sizeof(base) / sizeof(base[0]);

    if (!s)
        give_up("memory");
    snprintf(s->dir, sizeof(s->dir), "/tmp/weir-test-XXXXXX");
    if (!mkdtemp(s->dir))
        give_up("mkdtemp");
    snprintf(s->socket, sizeof(s->socket), "%s/redis.sock", s->dir);
    snprintf(s->url, sizeof(s->url), "unix://%s", s->socket);
    base[4] = s->socket;
    base[6] = s->dir;
    memcpy(s->argv, base, sizeof(base));
    for (; extra && *extra && n + 1 < WORDS_MAX; extra++)
        s->argv[n++] = s->extra[s->extra_n++] = strdup(*extra);
    if (!servers) {
        stop_all(); /* notes whose servers these are */
        atexit(stop_all);
    }
    s->next = servers;
    servers = s;
    launch(s);
    return s;
}

void
redis_server_kill(struct redis_server *s)
{
    forget_conn(s);
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

void
redis_server_restart(struct redis_server *s)
{
    redis_server_kill(s);
    launch(s);
}

void
redis_server_stop(struct redis_server *s)
{
    struct redis_server **link;

    redis_server_kill(s);
    remove_dir(s->dir);
    for (link = &servers; *link && *link != s; link = &(*link)->next)
        continue;
    if (*link)
        *link = s->next;
    while (s->extra_n > 0)
        free(s->extra[--s->extra_n]);
    free(s);
}

void
redis_server_pause(struct redis_server *s)
{
    kill(s->pid, SIGSTOP);
}

void
redis_server_resume(struct redis_server *s)
{
    kill(s->pid, SIGCONT);
}

const char *
redis_server_url(const struct redis_server *s)
{
    return s->url;
}

const char *
redis_server_socket(const struct redis_server *s)
{
    return s->socket;
}

const char *
redis_server_dir(const struct redis_server *s)
{
    return s->dir;
}

pid_t
redis_server_pid(const struct redis_server *s)
{
    return s->pid;
}

struct wr_conn *
redis_server_conn(struct redis_server *s)
{
    if (s->conn && wr_conn_is_broken(s->conn))
        forget_conn(s);
    if (!s->conn)
        s->conn = connect_to(s, wr_clock_ms() + 5000);
    return s->conn;
}

int
redis_server_free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
        give_up("free port");
    close(fd);
    return ntohs(addr.sin_port);
}

static void
add_reply(struct wr_buf *out, const struct wr_reply *r)
{
    struct wr_span s = wr_reply_span(r);

    switch (wr_reply_kind(r)) {
    case WR_REPLY_NIL:
        wr_buf_add_str(out, "(nil)");
        break;
    case WR_REPLY_INTEGER:
        wr_buf_addf(out, "%lld", (long long)wr_reply_int(r));
        break;
    case WR_REPLY_STRING:
    case WR_REPLY_ERROR:
        wr_buf_add(out, s.ptr, s.len);
        break;
    case WR_REPLY_ARRAY:
        for (size_t i = 0; i < wr_reply_len(r); i++) {
            if (i > 0)
                wr_buf_add_str(out, " ");
            add_reply(out, wr_reply_at(r, i));
        }
        break;
    }
}

const char *
redis_do(struct redis_server *s, const char *fmt, ...)
{
    static struct wr_buf texts[8];
    static unsigned turn;
    struct wr_buf *out = &texts[turn++ % 8];
    struct wr_span argv[64];
    struct wr_reply *reply = NULL;
    char line[4096], *word, *save = NULL;
    size_t argc = 0;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    for (word = strtok_r(line, " ", &save); word && argc < 64;
         word = strtok_r(NULL, " ", &save))
        argv[argc++] = wr_span_str(word);
    redis_server_conn(s);
    wr_buf_clear(out);
    wr_buf_add_str(out, "");
    if (!s->conn ||
        wr_conn_send(s->conn, argv, argc, wr_clock_ms() + 10000, NULL) != WEIR_OK ||
        wr_conn_recv(s->conn, wr_clock_ms() + 10000, &reply, NULL) != WEIR_OK) {
        forget_conn(s);
        return "(broken)";
    }
    add_reply(out, reply);
    wr_reply_free(reply);
    return out->ptr;
}
