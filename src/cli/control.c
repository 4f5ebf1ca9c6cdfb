#include "cli/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/cli.h"

#define SEND_TIMEOUT_S 10

static const char *
variable(const char *name)
{
    return wr_env_first((const char *const[]){name, NULL}, NULL);
}

/* The number may belong to something else by now: it must be a pipe that can be written.
 * -1: there is none. */
static int
find_pipe(void)
{
    const char *text = variable("WEIR_CONTROL_FD");
    struct stat st;
    int64_t fd;
    int flags;

    if (!text || !wr_text_int(text, 0, 1 << 20, &fd))
        return -1;
    flags = fcntl((int)fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat((int)fd, &st) != 0)
        return -1;
    return S_ISFIFO(st.st_mode) ? (int)fd : -1;
}

static enum weir_err
not_inside(struct weir_error *err)
{
    if (!variable("WEIR_CONTROL_FD"))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "this works only inside a job: neither WEIR_CONTROL_FD nor "
                       "WEIR_CONTROL_SOCKET is set");
    return wr_fail(
        err, WEIR_E_ARG, 0,
        "descriptor %.10s is no control pipe here: whoever started this closed "
        "it, and WEIR_CONTROL_SOCKET is not set",
        variable("WEIR_CONTROL_FD"));
}

enum weir_err
cli_control_check(struct weir_error *err)
{
    if (find_pipe() < 0 && !variable("WEIR_CONTROL_SOCKET"))
        return not_inside(err);
    return WEIR_OK;
}

/* Lines of this length arrive whole or not at all (PIPE_BUF), whoever else writes. */
static enum weir_err
to_pipe(int fd, const struct wr_buf *line, struct weir_error *err)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    ssize_t n;

    signal(SIGPIPE, SIG_IGN);
    do {
        n = write(fd, line->ptr, line->len);
        if (n < 0 && errno == EAGAIN && poll(&room, 1, SEND_TIMEOUT_S * 1000) == 0)
            return wr_fail(err, WEIR_E_IO, 0, "the worker does not read what jobs say");
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0)
        return wr_fail(err, WEIR_E_IO, errno, "control pipe");
    return WEIR_OK;
}

static enum weir_err
to_socket(const char *path, const struct wr_buf *line, struct weir_error *err)
{
    const struct timeval patience = {.tv_sec = SEND_TIMEOUT_S};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd, failed = 0;

    if (strlen(path) >= sizeof(to.sun_path))
        return wr_fail(err, WEIR_E_ARG, 0, "WEIR_CONTROL_SOCKET: its path is too long");
    memcpy(to.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return wr_fail(err, WEIR_E_IO, errno, "control socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (sendto(fd, line->ptr, line->len, MSG_NOSIGNAL, (const struct sockaddr *)&to,
               sizeof(to)) < 0)
        failed = errno;
    close(fd);
    if (failed != 0)
        return wr_fail(err, WEIR_E_IO, failed, "control socket %.100s", path);
    return WEIR_OK;
}

/* One line, with its newline. */
static void
make_line(const struct wr_buf *text, struct wr_buf *out)
{
    size_t len = text->len;

    if (len > CLI_CONTROL_LINE_MAX - 1) {
        len = CLI_CONTROL_LINE_MAX - 1;
        while (len > 0 && ((unsigned char)text->ptr[len] & 0xc0) == 0x80)
            len--; /* to the first byte of the character that does not fit */
    }
    wr_buf_add(out, text->ptr, len);
    for (size_t i = 0; i < out->len; i++) {
        if (out->ptr[i] == '\n' || out->ptr[i] == '\r')
            out->ptr[i] = ' ';
    }
    wr_buf_add_str(out, "\n");
    if (text->failed || out->failed)
        cli_out_of_memory();
}

enum weir_err
cli_control_send(const struct wr_buf *text, struct weir_error *err)
{
    const char *path = variable("WEIR_CONTROL_SOCKET");
    struct wr_buf line = {0};
    int fd = find_pipe();
    enum weir_err rc;

    if (fd < 0 && !path)
        return not_inside(err);
    make_line(text, &line);
    rc = fd >= 0 ? to_pipe(fd, &line, err) : to_socket(path, &line, err);
    wr_buf_fini(&line);
    return rc;
}
