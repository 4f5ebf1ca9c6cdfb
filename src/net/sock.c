#include "net/sock.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_INTERVAL_S 10
#define KEEPALIVE_PROBES 3
#define USER_TIMEOUT_MS 10000

static enum wr_io
plain_read(int fd, void *to, size_t cap, size_t *got)
{
    ssize_t n;

    do
        n = recv(fd, to, cap, 0);
    while (n < 0 && errno == EINTR);
    *got = n > 0 ? (size_t)n : 0;
    if (n >= 0)
        return WR_IO_DONE;
    return errno == EAGAIN || errno == EWOULDBLOCK ? WR_IO_AGAIN : WR_IO_FAILED;
}

static enum wr_io
plain_write(int fd, const void *from, size_t len, size_t *put)
{
    ssize_t n;

    do
        n = send(fd, from, len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    *put = n > 0 ? (size_t)n : 0;
    if (n >= 0)
        return WR_IO_DONE;
    return errno == EAGAIN || errno == EWOULDBLOCK ? WR_IO_AGAIN : WR_IO_FAILED;
}

const struct wr_sock_ops wr_sock_plain = {.read = plain_read, .write = plain_write};

bool
wr_sock_wait(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int64_t left = deadline_ms - wr_clock_ms();
        int n;

        if (left < 0)
            left = 0;
        n = poll(&p, 1, left > 1 << 30 ? 1 << 30 : (int)left);
        if (n > 0)
            return true;
        if (n == 0 && wr_clock_ms() >= deadline_ms)
            return false;
        if (n < 0 && errno != EINTR)
            return true; /* the next read or write says what is wrong */
    }
}

/* 0, or the errno of the failure. */
static int
connect_by(int fd, const struct sockaddr *addr, socklen_t len, int64_t deadline_ms)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if (connect(fd, addr, len) == 0)
        return 0;
    if (errno == EAGAIN) { /* a Unix socket whose backlog is full */
        while (errno == EAGAIN && wr_clock_ms() < deadline_ms) {
            poll(NULL, 0, 5);
            if (connect(fd, addr, len) == 0)
                return 0;
        }
        return errno;
    }
    if (errno != EINPROGRESS)
        return errno;
    if (!wr_sock_wait(fd, POLLOUT, deadline_ms))
        return ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return errno;
    return error;
}

static void
set_option(int fd, int level, int name, int value)
{
    /* They make failures be noticed sooner; a system without them still works. */
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

static void
tune_tcp(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
}

/* An address that swallows packets must leave time for the ones after it. */
static int64_t
share_of(const struct addrinfo *list, int64_t deadline_ms)
{
    int64_t now = wr_clock_ms(), n = 0;

    for (; list; list = list->ai_next)
        n++;
    return now + (deadline_ms - now) / n;
}

enum weir_err
wr_sock_connect_tcp(const char *host, int port, int64_t deadline_ms, int *fd,
                    struct weir_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    char service[12];
    int rc, why = ECONNREFUSED;

    *fd = -1;
    snprintf(service, sizeof(service), "%d", port);
    rc = getaddrinfo(host, service, &hints, &list);
    if (rc != 0)
        return wr_fail(err, WEIR_E_CONNECT, 0, "cannot resolve host %.100s: %s", host,
                       gai_strerror(rc));
    for (struct addrinfo *a = list; a && *fd < 0; a = a->ai_next) {
        int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (s < 0) {
            why = errno;
            continue;
        }
        tune_tcp(s);
        why = connect_by(s, a->ai_addr, a->ai_addrlen, share_of(a, deadline_ms));
        if (why == 0)
            *fd = s;
        else
            close(s);
    }
    freeaddrinfo(list);
    if (*fd < 0)
        return wr_fail(err, WEIR_E_CONNECT, why, "no server at %.100s:%d", host, port);
    return WEIR_OK;
}

enum weir_err
wr_sock_connect_unix(const char *path, int64_t deadline_ms, int *fd,
                     struct weir_error *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int why;

    *fd = -1;
    if (strlen(path) >= sizeof(addr.sun_path))
        return wr_fail(err, WEIR_E_ARG, 0, "socket path longer than %zu bytes",
                       sizeof(addr.sun_path) - 1);
    memcpy(addr.sun_path, path, strlen(path) + 1);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return wr_fail(err, WEIR_E_CONNECT, errno, "socket");
    why = connect_by(*fd, (const struct sockaddr *)&addr, sizeof(addr), deadline_ms);
    if (why == 0)
        return WEIR_OK;
    close(*fd);
    *fd = -1;
    return wr_fail(err, WEIR_E_CONNECT, why, "no server at %.110s", path);
}
