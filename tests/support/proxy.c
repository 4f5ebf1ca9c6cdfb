#include "support/proxy.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define LINKS_MAX 64
#define HELD_BYTES 65536
#define FDS_MAX 1024 /* that a test program may have open */

/* One direction: what was read from one side and is not yet written to the other. */
struct flow {
    int from, to;
    size_t len, done;
    int64_t due_ms;
    char held[HELD_BYTES];
};

struct link {
    struct flow up, down; /* to the server, to the client */
    redisReader *requests;
    char name[32];     /* by CLIENT SETNAME */
    bool cut_at_reply; /* the next bytes of the server end it */
    bool mute;         /* it asked for what is not answered */
};

/* In memory that the test and the proxy's process share. */
struct proxy {
    char dir[32], url[80], server[108];
    int listener, wake; /* wake: an eventfd */
    pid_t pid;

    pthread_mutex_t mu; /* guards all below; not held in poll() */
    bool stopping, cut_all;
    unsigned stalled;      /* enum proxy_way, together */
    char stalled_name[32]; /* only those; empty: all */
    char muted_text[32];   /* a request with it has no answer; empty: none */
    int64_t delay_ms;
    bool count_requests, count_bytes; /* one of the cuts is armed */
    size_t requests_left, bytes_left;
    unsigned connections, cuts;
    char measured_name[32];        /* of whose requests the largest is kept */
    size_t largest;                /* bytes of its words */
    struct link *links[LINKS_MAX]; /* in the memory of the proxy's process alone */
    size_t links_n;
};

static void
give_up(const char *what)
{
    fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
    abort();
}

static int
open_socket(const char *path, bool listening)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const struct sockaddr *a = (const struct sockaddr *)&addr;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    if (fd < 0)
        give_up("socket");
    if (listening ? bind(fd, a, sizeof(addr)) == 0 && listen(fd, LINKS_MAX) == 0
                  : connect(fd, a, sizeof(addr)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void
take_connection(struct proxy *p)
{
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC), server;
    struct link *l;

    if (client < 0)
        return;
    p->connections++;
    server = open_socket(p->server, false);
    if (server < 0 || p->links_n == LINKS_MAX) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    l = calloc(1, sizeof(*l));
    if (!l)
        give_up("memory");
    l->up = (struct flow){.from = client, .to = server};
    l->down = (struct flow){.from = server, .to = client};
    l->requests = redisReaderCreate();
    p->links[p->links_n++] = l;
}

static void
drop_link(struct proxy *p, size_t i)
{
    struct link *l = p->links[i];

    close(l->up.from);
    close(l->up.to);
    redisReaderFree(l->requests);
    free(l);
    p->links[i] = p->links[--p->links_n];
}

static void
note_name(struct link *l, const redisReply *r)
{
    if (r->type == REDIS_REPLY_ARRAY && r->elements == 3 &&
        strcmp(r->element[0]->str, "CLIENT") == 0 &&
        strcmp(r->element[1]->str, "SETNAME") == 0)
        snprintf(l->name, sizeof(l->name), "%s", r->element[2]->str);
}

static void
measure(struct proxy *p, const struct link *l, const redisReply *r)
{
    size_t bytes = 0;

    if (p->measured_name[0] == '\0' || strcmp(p->measured_name, l->name) != 0)
        return;
    for (size_t i = 0; i < r->elements; i++)
        bytes += r->element[i]->len;
    p->largest = bytes > p->largest ? bytes : p->largest;
}

static void
note_mute(struct proxy *p, struct link *l, const redisReply *r)
{
    for (size_t i = 0; p->muted_text[0] && i < r->elements; i++)
        l->mute = l->mute || strstr(r->element[i]->str, p->muted_text);
}

static void
count_requests(struct proxy *p, struct link *l)
{
    void *request = NULL;

    redisReaderFeed(l->requests, l->up.held, l->up.len);
    while (redisReaderGetReply(l->requests, &request) == REDIS_OK && request) {
        note_name(l, request);
        measure(p, l, request);
        note_mute(p, l, request);
        freeReplyObject(request);
        if (p->count_requests && --p->requests_left == 0) {
            p->count_requests = false;
            l->cut_at_reply = true;
        }
    }
}

/* Bytes of the server arrived; false: the connection is to be cut now. */
static bool
count_reply(struct proxy *p, struct link *l)
{
    struct flow *f = &l->down;

    if (l->cut_at_reply)
        return false;
    if (!p->count_bytes)
        return true;
    if (p->bytes_left >= f->len) {
        p->bytes_left -= f->len;
        return true;
    }
    p->count_bytes = false;
    if (send(f->to, f->held, p->bytes_left, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return false;
    return false;
}

static bool
is_stalled(const struct proxy *p, const struct link *l, const struct flow *f)
{
    if (l->mute && f == &l->down)
        return true;
    if (!(p->stalled & (f == &l->up ? PROXY_TO_SERVER : PROXY_TO_CLIENT)))
        return false;
    return p->stalled_name[0] == '\0' || strcmp(p->stalled_name, l->name) == 0;
}

/* What poll() should wait for on this flow; *wait_ms becomes shorter when it is held. */
static struct pollfd
interest(const struct proxy *p, const struct link *l, const struct flow *f,
         int64_t *wait_ms)
{
    int64_t left = f->due_ms - wr_clock_ms();

    if (is_stalled(p, l, f))
        return (struct pollfd){.fd = -1};
    if (f->len == 0)
        return (struct pollfd){.fd = f->from, .events = POLLIN};
    if (left <= 0)
        return (struct pollfd){.fd = f->to, .events = POLLOUT};
    if (*wait_ms < 0 || left < *wait_ms)
        *wait_ms = left;
    return (struct pollfd){.fd = -1};
}

/* Moves one flow on; false: the connection is over. */
static bool
move_on(struct proxy *p, struct link *l, struct flow *f)
{
    ssize_t n;

    if (f->len > 0) {
        n = send(f->to, f->held + f->done, f->len - f->done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        f->done += (size_t)n;
        if (f->done == f->len)
            f->len = f->done = 0;
        return true;
    }
    n = recv(f->from, f->held, sizeof(f->held), MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    f->len = (size_t)n;
    f->due_ms = wr_clock_ms() + p->delay_ms;
    if (f == &l->up)
        count_requests(p, l);
    else if (!count_reply(p, l)) {
        p->cuts++;
        return false;
    }
    return true;
}

static void
handle(struct proxy *p, const struct pollfd *fds, size_t links_n)
{
    eventfd_t n;

    if (fds[0].revents)
        eventfd_read(p->wake, &n);
    if (fds[1].revents)
        take_connection(p);
    for (size_t i = links_n; i-- > 0;) { /* backwards: dropping moves the last one */
        struct link *l = p->links[i];
        bool alive = true;

        l->mute = l->mute && p->muted_text[0] != '\0';
        if (p->cut_all) {
            p->cuts++;
            alive = false;
        }
        if (alive && fds[2 + 2 * i].revents && !is_stalled(p, l, &l->up))
            alive = move_on(p, l, &l->up);
        if (alive && fds[3 + 2 * i].revents && !is_stalled(p, l, &l->down))
            alive = move_on(p, l, &l->down);
        if (!alive)
            drop_link(p, i);
    }
    p->cut_all = false;
}

static void
run(struct proxy *p)
{
    pthread_mutex_lock(&p->mu);
    while (!p->stopping) {
        struct pollfd fds[2 + 2 * LINKS_MAX] = {{.fd = p->wake, .events = POLLIN},
                                                {.fd = p->listener, .events = POLLIN}};
        int64_t wait_ms = -1;
        size_t links_n = p->links_n;

        for (size_t i = 0; i < links_n; i++) {
            fds[2 + 2 * i] = interest(p, p->links[i], &p->links[i]->up, &wait_ms);
            fds[3 + 2 * i] = interest(p, p->links[i], &p->links[i]->down, &wait_ms);
        }
        pthread_mutex_unlock(&p->mu);
        if (poll(fds, 2 + 2 * links_n, (int)wait_ms) < 0 && errno != EINTR)
            give_up("poll");
        pthread_mutex_lock(&p->mu);
        handle(p, fds, links_n);
    }
    while (p->links_n > 0)
        drop_link(p, 0);
    pthread_mutex_unlock(&p->mu);
}

/* Of what the test has open it keeps nothing: a socket that the test closes is closed. */
static _Noreturn void
be_proxy(struct proxy *p, pid_t test)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != test)
        _exit(0);
    for (int fd = STDERR_FILENO + 1; fd < FDS_MAX; fd++) {
        if (fd != p->listener && fd != p->wake)
            close(fd);
    }
    run(p);
    _exit(0);
}

static struct proxy *
share_proxy(void)
{
    struct proxy *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attr;

    if (p == MAP_FAILED)
        give_up("memory");
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&p->mu, &attr);
    pthread_mutexattr_destroy(&attr);
    return p;
}

struct proxy *
proxy_start(const char *server_socket)
{
    struct proxy *p = share_proxy();
    char socket_path[64];
    pid_t test = getpid();

    snprintf(p->server, sizeof(p->server), "%s", server_socket);
    snprintf(p->dir, sizeof(p->dir), "/tmp/weir-proxy-XXXXXX");
    if (!mkdtemp(p->dir))
        give_up("mkdtemp");
    snprintf(socket_path, sizeof(socket_path), "%s/sock", p->dir);
    snprintf(p->url, sizeof(p->url), "unix://%s", socket_path);
    p->listener = open_socket(socket_path, true);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->listener < 0 || p->wake < 0)
        give_up("listen");
    p->pid = fork();
    if (p->pid == 0)
        be_proxy(p, test);
    if (p->pid < 0)
        give_up("fork");
    close(p->listener);
    return p;
}

static void
wake_up(struct proxy *p)
{
    pthread_mutex_unlock(&p->mu);
    if (eventfd_write(p->wake, 1) != 0)
        give_up("wake");
}

void
proxy_stop(struct proxy *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mu);
    p->stopping = true;
    wake_up(p);
    while (waitpid(p->pid, NULL, 0) < 0) {
        if (errno != EINTR)
            give_up("wait");
    }
    close(p->wake);
    unlink(p->url + strlen("unix://"));
    rmdir(p->dir);
    pthread_mutex_destroy(&p->mu);
    munmap(p, sizeof(*p));
}

const char *
proxy_url(const struct proxy *p)
{
    return p->url;
}

void
proxy_forward(struct proxy *p)
{
    pthread_mutex_lock(&p->mu);
    p->stalled = 0;
    p->count_requests = p->count_bytes = false;
    p->delay_ms = 0;
    p->muted_text[0] = '\0';
    wake_up(p);
}

void
proxy_mute_about(struct proxy *p, const char *text)
{
    pthread_mutex_lock(&p->mu);
    snprintf(p->muted_text, sizeof(p->muted_text), "%s", text);
    wake_up(p);
}

static void
stall(struct proxy *p, unsigned ways, const char *name)
{
    pthread_mutex_lock(&p->mu);
    p->stalled = ways;
    snprintf(p->stalled_name, sizeof(p->stalled_name), "%s", name);
    wake_up(p);
}

void
proxy_stall(struct proxy *p)
{
    stall(p, PROXY_TO_SERVER | PROXY_TO_CLIENT, "");
}

void
proxy_stall_way(struct proxy *p, enum proxy_way way)
{
    stall(p, way, "");
}

void
proxy_stall_named(struct proxy *p, const char *name)
{
    stall(p, PROXY_TO_SERVER | PROXY_TO_CLIENT, name);
}

void
proxy_delay(struct proxy *p, int64_t ms)
{
    pthread_mutex_lock(&p->mu);
    p->delay_ms = ms;
    wake_up(p);
}

void
proxy_cut_after_requests(struct proxy *p, size_t n)
{
    pthread_mutex_lock(&p->mu);
    p->count_requests = n > 0;
    p->requests_left = n;
    wake_up(p);
}

void
proxy_cut_reply_at(struct proxy *p, size_t n)
{
    pthread_mutex_lock(&p->mu);
    p->count_bytes = true;
    p->bytes_left = n;
    wake_up(p);
}

void
proxy_cut_all(struct proxy *p)
{
    pthread_mutex_lock(&p->mu);
    p->cut_all = true;
    wake_up(p);
}

unsigned
proxy_connections(struct proxy *p)
{
    unsigned n;

    pthread_mutex_lock(&p->mu);
    n = p->connections;
    pthread_mutex_unlock(&p->mu);
    return n;
}

unsigned
proxy_cuts(struct proxy *p)
{
    unsigned n;

    pthread_mutex_lock(&p->mu);
    n = p->cuts;
    pthread_mutex_unlock(&p->mu);
    return n;
}

void
proxy_measure_named(struct proxy *p, const char *name)
{
    pthread_mutex_lock(&p->mu);
    snprintf(p->measured_name, sizeof(p->measured_name), "%s", name);
    p->largest = 0;
    pthread_mutex_unlock(&p->mu);
}

size_t
proxy_largest_request(struct proxy *p)
{
    size_t n;

    pthread_mutex_lock(&p->mu);
    n = p->largest;
    pthread_mutex_unlock(&p->mu);
    return n;
}
