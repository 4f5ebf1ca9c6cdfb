#include "support/fake_redis.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"

#define PATIENCE_MS 10000

struct fake_redis {
    char dir[32], socket[64];
    const struct fake_step *steps; /* the next one; only the thread moves it */
    int listener, stop;            /* stop: an eventfd */
    bool failed;                   /* read after the thread has ended */
    pthread_t thread;
};

static void
give_up(const char *what)
{
    fprintf(stderr, "fake_redis: %s: %s\n", what, strerror(errno));
    abort();
}

/* Waits for events on fd; false when the fake is to stop, or nothing came for long. */
static bool
wait_for(struct fake_redis *f, int fd, short events)
{
    struct pollfd p[] = {{.fd = f->stop, .events = POLLIN}, {.fd = fd, .events = events}};
    int n;

    do
        n = poll(p, fd >= 0 ? 2 : 1, PATIENCE_MS);
    while (n < 0 && errno == EINTR);
    return n > 0 && !p[0].revents;
}

static void
complain(struct fake_redis *f, const char *wanted, const char *got)
{
    f->failed = true;
    fprintf(stderr, "fake_redis: expected \"%s\", got \"%s\"\n", wanted, got);
}

static bool
expect(struct fake_redis *f, int fd, redisReader *reader, const char *wanted)
{
    struct wr_buf got = {0};
    void *any = NULL;
    redisReply *r;
    bool fits;

    while (redisReaderGetReply(reader, &any) == REDIS_OK && !any) {
        char bytes[4096];
        ssize_t n = wait_for(f, fd, POLLIN) ? read(fd, bytes, sizeof(bytes)) : 0;

        if (n <= 0) {
            complain(f, wanted, "the end");
            return false;
        }
        redisReaderFeed(reader, bytes, (size_t)n);
    }
    r = any;
    for (size_t i = 0; r && r->type == REDIS_REPLY_ARRAY && i < r->elements; i++) {
        wr_buf_add_str(&got, i > 0 ? " " : "");
        wr_buf_add(&got, r->element[i]->str, (size_t)r->element[i]->len);
    }
    fits = strcmp(wanted, "*") == 0 || (got.ptr && strcmp(wanted, got.ptr) == 0);
    if (!fits)
        complain(f, wanted, got.ptr ? got.ptr : "no command");
    wr_buf_fini(&got);
    freeReplyObject(any);
    return fits;
}

static bool
send_all(struct fake_redis *f, int fd, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        ssize_t n = wait_for(f, fd, POLLOUT) ? send(fd, text, left, MSG_NOSIGNAL)
                                             : (ssize_t)-1;

        if (n < 0)
            return false;
        text += n;
        left -= (size_t)n;
    }
    return true;
}

/* One connection; false when the fake is to end. */
static bool
serve(struct fake_redis *f, int fd)
{
    redisReader *reader = redisReaderCreate();
    bool goes_on = true, closed = false;
    char byte;

    while (goes_on && !closed) {
        const struct fake_step *step = f->steps;

        if (step->kind != FAKE_END)
            f->steps++;
        switch (step->kind) {
        case FAKE_EXPECT:
            goes_on = expect(f, fd, reader, step->text);
            break;
        case FAKE_SEND:
            goes_on = send_all(f, fd, step->text);
            break;
        case FAKE_CLOSE:
            closed = true;
            break;
        case FAKE_STALL:
            wait_for(f, -1, 0);
            goes_on = false;
            break;
        case FAKE_END:
            if (!wait_for(f, fd, POLLIN))
                goes_on = false;
            else if (read(fd, &byte, 1) == 1)
                complain(f, "the end", "more");
            else
                goes_on = false;
            break;
        }
    }
    redisReaderFree(reader);
    close(fd);
    return goes_on;
}

static void *
run(void *arg)
{
    struct fake_redis *f = arg;
    bool goes_on = true;

    while (goes_on && wait_for(f, f->listener, POLLIN)) {
        int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            give_up("accept");
        goes_on = serve(f, fd);
    }
    return NULL;
}

struct fake_redis *
fake_redis_start(const struct fake_step *steps)
{
    struct fake_redis *f = calloc(1, sizeof(*f));
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    if (!f)
        give_up("memory");
    f->steps = steps;
    snprintf(f->dir, sizeof(f->dir), "/tmp/weir-fake-XXXXXX");
    if (!mkdtemp(f->dir))
        give_up("mkdtemp");
    snprintf(f->socket, sizeof(f->socket), "%s/sock", f->dir);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f->socket);
    f->stop = eventfd(0, EFD_CLOEXEC);
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (f->stop < 0 || f->listener < 0 ||
        bind(f->listener, (const struct sockaddr *)&addr, sizeof(addr)) != 0 ||
        listen(f->listener, 16) != 0)
        give_up("listen");
    if (pthread_create(&f->thread, NULL, run, f) != 0)
        give_up("thread");
    return f;
}

bool
fake_redis_stop(struct fake_redis *f)
{
    bool fine;

    if (eventfd_write(f->stop, 1) != 0)
        give_up("stop");
    pthread_join(f->thread, NULL);
    fine = !f->failed && f->steps->kind == FAKE_END;
    if (f->steps->kind != FAKE_END)
        fprintf(stderr, "fake_redis: not reached: \"%s\"\n",
                f->steps->text ? f->steps->text : "");
    close(f->listener);
    close(f->stop);
    unlink(f->socket);
    rmdir(f->dir);
    free(f);
    return fine;
}

const char *
fake_redis_socket(const struct fake_redis *f)
{
    return f->socket;
}

enum weir_err
fake_redis_open(struct fake_redis *f, int64_t deadline_ms, struct wr_conn **out,
                struct weir_error *err)
{
    struct wr_url url = {.is_unix = true};
    struct wr_conn_options o = {.url = &url};

    snprintf(url.host, sizeof(url.host), "%s", f->socket);
    return wr_conn_open(&o, deadline_ms, out, err);
}
