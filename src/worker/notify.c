#include "worker/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"

/* "/path" or "@name", the latter in the abstract namespace. False: neither. */
static bool
read_address(const char *text, struct sockaddr_un *out, socklen_t *len)
{
    size_t n = strlen(text);

    if (n < 2 || n >= sizeof(out->sun_path) || (text[0] != '/' && text[0] != '@'))
        return false;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path, text, n);
    if (text[0] == '@')
        out->sun_path[0] = '\0';
    /* A name ends where the address does, a path with its NUL. */
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (text[0] == '/'));
    return true;
}

static int
open_socket(const char *text)
{
    struct sockaddr_un address;
    socklen_t len;
    int fd;

    if (!read_address(text, &address, &len)) {
        wr_log_warn("NOTIFY_SOCKET=%.120s: not a path and no @name", text);
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, len) == 0)
        return fd;
    wr_log_warn("NOTIFY_SOCKET=%.120s: %s", text, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* WATCHDOG_PID, if it is there, says for whom it is meant. */
static int64_t
read_watchdog(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us, whom;

    if (!usec || !wr_text_int(usec, 1000, INT64_MAX, &us))
        return 0;
    if (pid && (!wr_text_int(pid, 1, INT32_MAX, &whom) || whom != (int64_t)getpid()))
        return 0;
    return us / 1000;
}

void
wr_notify_open(struct wr_notify *n)
{
    const char *socket = getenv("NOTIFY_SOCKET");

    *n = (struct wr_notify){.fd = -1};
    if (socket && *socket)
        n->fd = open_socket(socket);
    if (n->fd >= 0)
        n->watchdog_ms = read_watchdog();
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void
wr_notify_close(struct wr_notify *n)
{
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
}

bool
wr_notify_listens(const struct wr_notify *n)
{
    return n->fd >= 0;
}

bool
wr_notify_say(struct wr_notify *n, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int len;

    if (n->fd < 0)
        return true;
    va_start(ap, fmt);
    len = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (len < 0 || len >= (int)sizeof(text))
        return true;
    if (send(n->fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return true;
    return errno != EAGAIN && errno != ENOBUFS && errno != EINTR;
}
