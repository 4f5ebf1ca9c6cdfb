#include "redis/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/sock.h"
#include "redis/resp.h"

#define REPLY_MAX_BYTES ((size_t)256 * 1024 * 1024)
#define READ_BYTES 65536
#define OUT_KEEP_BYTES (1 << 20)
#define WORDS_MAX 16
#define DROPS_MAX 16

struct wr_conn {
    int fd;
    const struct wr_sock_ops *io;
    pid_t owner;
    bool broken, holds; /* holds: out has a command that was not sent so far */
    int64_t opened_ms, last_reply_ms;
    struct wr_buf out;     /* the command being sent */
    struct wr_reply *next; /* a reply that wr_conn_has_reply() found */
    struct wr_resp *resp;
    uint64_t sent, received;  /* commands written, replies read */
    uint64_t drop[DROPS_MAX]; /* numbers of the replies nobody waits for; rising */
    size_t drop_n;
    char in[READ_BYTES]; /* here, not on the stack: the build clears stack variables */
};

static void
conn_free(struct wr_conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    wr_reply_free(c->next);
    wr_resp_free(c->resp);
    wr_buf_fini(&c->out);
    free(c);
}

void
wr_conn_close(struct wr_conn *c)
{
    if (c)
        conn_free(c);
}

void
wr_conn_abandon(struct wr_conn *c)
{
    /* Closing a plain descriptor writes nothing; TLS would have to take care. */
    conn_free(c);
}

pid_t
wr_conn_owner(const struct wr_conn *c)
{
    return c->owner;
}

int
wr_conn_fd(const struct wr_conn *c)
{
    return c->fd;
}

int64_t
wr_conn_idle_ms(const struct wr_conn *c)
{
    return wr_clock_ms() - c->last_reply_ms;
}

int64_t
wr_conn_opened_ms(const struct wr_conn *c)
{
    return c->opened_ms;
}

bool
wr_conn_is_broken(const struct wr_conn *c)
{
    return c->broken;
}

static enum weir_err
broken(struct wr_conn *c, enum weir_err code, int why, const char *what,
       struct weir_error *err)
{
    c->broken = true;
    return wr_fail(err, code, why, "%s", what);
}

/* Takes what the socket has. *got is false when there was nothing. */
static enum weir_err
read_some(struct wr_conn *c, bool *got, struct weir_error *err)
{
    size_t n;

    *got = false;
    switch (c->io->read(c->fd, c->in, sizeof(c->in), &n)) {
    case WR_IO_AGAIN:
        return WEIR_OK;
    case WR_IO_FAILED:
        return broken(c, WEIR_E_NO_REPLY, errno, "the connection broke", err);
    case WR_IO_DONE:
        break;
    }
    if (n == 0)
        return broken(c, WEIR_E_NO_REPLY, 0, "Redis closed the connection", err);
    *got = true;
    if (!wr_resp_feed(c->resp, c->in, n))
        return broken(c, WEIR_E_NO_REPLY, 0, wr_resp_why(c->resp), err);
    return WEIR_OK;
}

/* Writes all of c->out. Reads meanwhile, so that two full pipes cannot lock each other.
 */
static enum weir_err
write_out(struct wr_conn *c, int64_t deadline_ms, struct weir_error *err)
{
    size_t done = 0;

    while (done < c->out.len) {
        size_t put;
        bool got;

        switch (c->io->write(c->fd, c->out.ptr + done, c->out.len - done, &put)) {
        case WR_IO_DONE:
            done += put;
            continue;
        case WR_IO_FAILED:
            return broken(c, done > 0 ? WEIR_E_NO_REPLY : WEIR_E_CONNECT, errno,
                          "send to Redis", err);
        case WR_IO_AGAIN:
            break;
        }
        if (!wr_sock_wait(c->fd, POLLIN | POLLOUT, deadline_ms))
            return broken(c, done > 0 ? WEIR_E_NO_REPLY : WEIR_E_CONNECT, 0,
                          "Redis did not take the command in time", err);
        if (read_some(c, &got, err) != WEIR_OK) {
            enum weir_err code = done > 0 ? WEIR_E_NO_REPLY : WEIR_E_CONNECT;

            if (err)
                err->code = code;
            return code;
        }
    }
    return WEIR_OK;
}

static bool
format(struct wr_conn *c, const struct wr_span *argv, size_t argc)
{
    if (c->out.cap > OUT_KEEP_BYTES && !c->holds)
        wr_buf_fini(&c->out);
    if (!c->holds)
        wr_buf_clear(&c->out);
    wr_resp_format(&c->out, argv, argc);
    c->holds = false;
    c->sent += !c->out.failed;
    return !c->out.failed;
}

enum weir_err
wr_conn_hold(struct wr_conn *c, const struct wr_span *argv, size_t argc,
             struct weir_error *err)
{
    if (c->broken)
        return wr_fail(err, WEIR_E_CONNECT, 0, "the connection is broken");
    if (!format(c, argv, argc))
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "a command of %zu words", argc);
    c->holds = true;
    return WEIR_OK;
}

enum weir_err
wr_conn_hold_unheard(struct wr_conn *c, const struct wr_span *argv, size_t argc,
                     struct weir_error *err)
{
    enum weir_err rc;

    if (c->drop_n == DROPS_MAX)
        return wr_fail(err, WEIR_E_LOADING, 0, "too many commands under way");
    rc = wr_conn_hold(c, argv, argc, err);
    if (rc == WEIR_OK)
        c->drop[c->drop_n++] = c->sent;
    return rc;
}

enum weir_err
wr_conn_hold_mute(struct wr_conn *c, const struct wr_span *argv, size_t argc,
                  struct weir_error *err)
{
    struct wr_span skip[] = {wr_span_str("CLIENT"), wr_span_str("REPLY"),
                             wr_span_str("SKIP")};
    uint64_t sent = c->sent;
    enum weir_err rc = wr_conn_hold(c, skip, 3, err);

    if (rc == WEIR_OK)
        rc = wr_conn_hold(c, argv, argc, err);
    c->sent = sent;
    return rc;
}

enum weir_err
wr_conn_send(struct wr_conn *c, const struct wr_span *argv, size_t argc,
             int64_t deadline_ms, struct weir_error *err)
{
    if (c->broken)
        return wr_fail(err, WEIR_E_CONNECT, 0, "the connection is broken");
    if (!format(c, argv, argc))
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "a command of %zu words", argc);
    return write_out(c, deadline_ms, err);
}

bool
wr_conn_is_idle(const struct wr_conn *c)
{
    return c->sent == c->received;
}

enum weir_err
wr_conn_post(struct wr_conn *c, const struct wr_span *argv, size_t argc,
             int64_t deadline_ms, struct weir_error *err)
{
    if (c->drop_n == DROPS_MAX)
        return wr_fail(err, WEIR_E_LOADING, 0, "too many commands under way");
    c->drop[c->drop_n++] = c->sent + 1;
    return wr_conn_send(c, argv, argc, deadline_ms, err);
}

/* Notes that one more reply came; true when nobody waits for it. */
static bool
is_dropped(struct wr_conn *c)
{
    c->received++;
    if (c->drop_n == 0 || c->drop[0] != c->received)
        return false;
    c->drop_n--;
    memmove(c->drop, c->drop + 1, c->drop_n * sizeof(c->drop[0]));
    return true;
}

/* A whole reply from what was read already, if there is one. */
static enum weir_err
parse_next(struct wr_conn *c, struct wr_reply **out, struct weir_error *err)
{
    *out = c->next;
    c->next = NULL;
    while (!*out) {
        enum wr_resp_state state = wr_resp_next(c->resp, out);

        if (state == WR_RESP_BROKEN)
            return broken(c, WEIR_E_NO_REPLY, 0, wr_resp_why(c->resp), err);
        if (state == WR_RESP_MORE)
            return WEIR_OK;
        c->last_reply_ms = wr_clock_ms();
        if (is_dropped(c)) {
            wr_reply_free(*out);
            *out = NULL;
        }
    }
    return WEIR_OK;
}

enum weir_err
wr_conn_recv(struct wr_conn *c, int64_t deadline_ms, struct wr_reply **out,
             struct weir_error *err)
{
    *out = NULL;
    if (c->broken)
        return wr_fail(err, WEIR_E_NO_REPLY, 0, "the connection is broken");
    for (;;) {
        bool got;
        enum weir_err rc = parse_next(c, out, err);

        if (rc != WEIR_OK || *out)
            return rc;
        /* No look before the wait: what was sent just now has no answer yet. */
        if (!wr_sock_wait(c->fd, POLLIN, deadline_ms))
            return broken(c, WEIR_E_NO_REPLY, 0, "Redis did not answer in time", err);
        rc = read_some(c, &got, err);
        if (rc != WEIR_OK)
            return rc;
    }
}

bool
wr_conn_has_reply(struct wr_conn *c)
{
    struct wr_reply *reply;
    bool got = true;

    while (!c->broken && !c->next && got) {
        if (parse_next(c, &reply, NULL) != WEIR_OK)
            return true;
        c->next = reply;
        if (!reply && read_some(c, &got, NULL) != WEIR_OK)
            return true;
    }
    return c->broken || c->next != NULL;
}

bool
wr_conn_wait_reply(struct wr_conn *c, int64_t deadline_ms)
{
    while (!wr_conn_has_reply(c)) {
        if (!wr_sock_wait(c->fd, POLLIN, deadline_ms))
            return false;
    }
    return true;
}

enum weir_err
wr_conn_call(struct wr_conn *c, const struct wr_span *argv, size_t argc,
             int64_t deadline_ms, struct wr_reply **out, struct weir_error *err)
{
    enum weir_err rc = wr_conn_send(c, argv, argc, deadline_ms, err);

    *out = NULL;
    if (rc == WEIR_OK)
        rc = wr_conn_recv(c, deadline_ms, out, err);
    if (rc == WEIR_OK && wr_reply_kind(*out) == WR_REPLY_ERROR) {
        rc = wr_reply_error(*out, err);
        wr_reply_free(*out);
        *out = NULL;
    }
    return rc;
}

enum weir_err
wr_conn_do(struct wr_conn *c, int64_t deadline_ms, struct wr_reply **out,
           struct weir_error *err, ...)
{
    struct wr_span argv[WORDS_MAX];
    const char *word;
    size_t argc = 0;
    va_list ap;

    va_start(ap, err);
    while ((word = va_arg(ap, const char *)) != NULL) {
        WR_ASSERT(argc < WORDS_MAX);
        argv[argc++] = wr_span_str(word);
    }
    va_end(ap);
    return wr_conn_call(c, argv, argc, deadline_ms, out, err);
}

/* ---- opening ---- */

/* The words of the greeting go out in one write; each has a reply. */
static size_t
format_greeting(struct wr_conn *c, const struct wr_conn_options *o, char db[16])
{
    const struct wr_url *u = o->url;
    size_t n = 0;

    wr_buf_clear(&c->out);
    /* A user without a password must not end up as the default user in silence. */
    if (u->user[0]) {
        struct wr_span auth[] = {wr_span_str("AUTH"), wr_span_str(u->user),
                                 wr_span_str(u->password)};
        wr_resp_format(&c->out, auth, 3);
        n++;
    } else if (u->password[0]) {
        struct wr_span auth[] = {wr_span_str("AUTH"), wr_span_str(u->password)};
        wr_resp_format(&c->out, auth, 2);
        n++;
    }
    if (u->db != 0) {
        struct wr_span select[] = {wr_span_str("SELECT"), wr_span_str(db)};
        wr_resp_format(&c->out, select, 2);
        n++;
    }
    if (o->name) {
        struct wr_span name[] = {wr_span_str("CLIENT"), wr_span_str("SETNAME"),
                                 wr_span_str(o->name)};
        wr_resp_format(&c->out, name, 3);
        n++;
    }
    struct wr_span ping[] = {wr_span_str("PING")};
    wr_resp_format(&c->out, ping, 1);
    return n + 1;
}

/* A name is for people alone: who may not have one works without. */
static bool
is_no_right(const struct wr_reply *reply)
{
    struct wr_span text = wr_reply_span(reply);

    return text.len >= 6 && memcmp(text.ptr, "NOPERM", 6) == 0;
}

static enum weir_err
greet(struct wr_conn *c, const struct wr_conn_options *o, int64_t deadline_ms,
      struct weir_error *err)
{
    struct wr_reply *reply = NULL;
    enum weir_err rc, first = WEIR_OK;
    char db[16];
    size_t n;

    snprintf(db, sizeof(db), "%d", o->url->db);
    n = format_greeting(c, o, db);
    if (c->out.failed)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "greeting");
    c->sent += n;
    rc = write_out(c, deadline_ms, err);
    if (c->out.ptr) /* it held a password */
        explicit_bzero(c->out.ptr, c->out.cap);
    /* A server that refuses says why and closes, perhaps before the greeting is out:
     * its words count more than that the connection broke. */
    if (rc != WEIR_OK)
        c->broken = false;
    for (size_t i = 0; i < n && first == WEIR_OK; i++) {
        struct weir_error *why = rc == WEIR_OK ? err : NULL;
        enum weir_err got;

        wr_reply_free(reply);
        got = wr_conn_recv(c, rc == WEIR_OK ? deadline_ms : 0, &reply, why);
        if (got == WEIR_OK && wr_reply_kind(reply) == WR_REPLY_ERROR &&
            !(o->name && i + 2 == n && is_no_right(reply)))
            first = wr_reply_error(reply, err);
        rc = rc == WEIR_OK ? got : rc;
        if (got != WEIR_OK)
            break;
    }
    if (rc == WEIR_OK && first == WEIR_OK && !wr_reply_is(reply, "PONG"))
        first = wr_fail(err, WEIR_E_SERVER, 0,
                        "PING was not answered by PONG: no Redis?");
    wr_reply_free(reply);
    if (first != WEIR_OK)
        return first;
    return rc;
}

/* Nothing that the greeting sent matters when it fails: say where it was. */
static enum weir_err
greeting_error(enum weir_err rc, const struct wr_url *url, struct weir_error *err)
{
    char where[460], why[120];

    if (rc != WEIR_E_NO_REPLY && rc != WEIR_E_CONNECT)
        return rc;
    wr_url_show(url, where, sizeof(where));
    snprintf(why, sizeof(why), "%.110s", err ? err->text : "");
    if (strstr(why, "Protocol error") || strstr(why, "protocol"))
        return wr_fail(err, WEIR_E_SERVER, 0, "%.100s is no Redis: %s", where, why);
    return wr_fail(err, WEIR_E_CONNECT, 0, "no answer from %.100s: %s", where, why);
}

enum weir_err
wr_conn_open(const struct wr_conn_options *o, int64_t deadline_ms, struct wr_conn **out,
             struct weir_error *err)
{
    struct weir_error own = {0};
    struct wr_conn *c;
    enum weir_err rc;

    *out = NULL;
    err = err ? err : &own;
    if (o->url->use_tls)
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "TLS is not built in yet: use redis:// or unix://");
    c = calloc(1, sizeof(*c));
    if (!c)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "connection");
    c->fd = -1;
    c->io = &wr_sock_plain;
    c->owner = getpid();
    c->opened_ms = wr_clock_ms();
    c->resp = wr_resp_new(o->reply_max_bytes ? o->reply_max_bytes : REPLY_MAX_BYTES);
    if (!c->resp) {
        conn_free(c);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "connection");
    }
    rc = o->url->is_unix
             ? wr_sock_connect_unix(o->url->host, deadline_ms, &c->fd, err)
             : wr_sock_connect_tcp(o->url->host, o->url->port, deadline_ms, &c->fd, err);
    if (rc == WEIR_OK)
        rc = greeting_error(greet(c, o, deadline_ms, err), o->url, err);
    if (rc != WEIR_OK) {
        conn_free(c);
        return rc;
    }
    *out = c;
    return WEIR_OK;
}
