/* What a co-process says, and what is said to it: lines on its pipes. */
#include "worker/coproc_talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define PIECE 65536
#define ERR_LINE_MAX 4096

/* ---- what it writes beside the protocol ---- */

/* Into the output of the job that it has. What nobody stores, and what it says between
 * two jobs, people find in the worker's log. */
static void
log_line(struct wr_coproc *p, const char *what, const char *text, size_t len)
{
    const struct weir_delivery *d = p->current; /* set by this very thread */
    enum wr_log_level level = d && d->sender ? WR_LOG_DEBUG : WR_LOG_WARN;

    if (p->current) {
        wr_output_add(p->current, text, len, 0);
        wr_output_add(p->current, "\n", 1, 0);
    }
    if (p->logged++ < WR_COPROC_LOG_LINES)
        wr_log(level, "%s %s: %.*s", p->type, what, (int)(len < 1000 ? len : 1000), text);
    else if (p->logged == WR_COPROC_LOG_LINES + 1)
        wr_log(level, "%s: more than %d lines of one job, the rest is left out", p->type,
               WR_COPROC_LOG_LINES);
}

static void
take_complaint(struct wr_coproc *p, size_t len)
{
    size_t shown = len;

    while (shown > 0 && p->err.ptr[shown - 1] == '\r')
        shown--;
    if (shown > 0) {
        snprintf(p->err_last, sizeof(p->err_last), "%.*s",
                 (int)(shown < 500 ? shown : 500), p->err.ptr);
        log_line(p, "says", p->err.ptr, shown);
    }
    wr_buf_drop(&p->err, len < p->err.len ? len + 1 : len);
}

static void
take_complaints(struct wr_coproc *p)
{
    char *newline;

    while (p->err.len > 0 && (newline = memchr(p->err.ptr, '\n', p->err.len)) != NULL)
        take_complaint(p, (size_t)(newline - p->err.ptr));
    if (p->err.len >= ERR_LINE_MAX)
        take_complaint(p, p->err.len);
}

bool
wr_coproc_read_piece(int fd, struct wr_buf *to)
{
    char *room = wr_buf_room(to, PIECE);
    ssize_t n;

    if (!room)
        return false;
    n = read(fd, room, PIECE);
    if (n > 0)
        to->len += (size_t)n;
    to->ptr[to->len] = '\0';
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void
hear_complaints(struct wr_coproc *p)
{
    if (p->fds[2] < 0)
        return;
    if (!wr_coproc_read_piece(p->fds[2], &p->err)) {
        close(p->fds[2]);
        p->fds[2] = -1;
    }
    take_complaints(p);
}

/* ---- lines ---- */

/* The next whole line of `in`; false: there is none. */
static bool
next_line(struct wr_coproc *p, size_t *len)
{
    char *newline = p->in.len > p->looked
                        ? memchr(p->in.ptr + p->looked, '\n', p->in.len - p->looked)
                        : NULL;

    p->looked = newline ? 0 : p->in.len;
    *len = newline ? (size_t)(newline - p->in.ptr) : 0;
    return newline != NULL;
}

static enum wr_heard
bad_word(char *why, size_t why_len, const char *text)
{
    snprintf(why, why_len, "%s", text);
    return WR_HEARD_BAD;
}

static enum wr_heard
judge_answer(struct wr_coproc *p, bool waits, char *why, size_t why_len)
{
    const struct wr_coproc_line *l = &p->line;

    if (waits && l->call == p->call)
        return WR_HEARD_WORD;
    if (l->call > 0 && l->call <= p->call) { /* a second answer, or a late one: no harm */
        wr_log_warn("%s: an answer to call %lld came late and is ignored", p->type,
                    (long long)l->call);
        return WR_HEARD_NOTHING;
    }
    snprintf(why, why_len, "answered call %lld, which nobody made", (long long)l->call);
    return WR_HEARD_BAD;
}

/* d: whose job it has; NULL: none. */
static enum wr_heard
judge_line(struct wr_coproc *p, struct weir_delivery *d, bool hello, char *why,
           size_t why_len)
{
    struct wr_coproc_line *l = &p->line;
    const char *text = wr_buf_span(&l->text).ptr;

    switch (l->word) {
    case WR_COPROC_NOISE:
    case WR_COPROC_OTHER:
        return WR_HEARD_NOTHING;
    case WR_COPROC_GARBAGE:
        snprintf(why, why_len, "wrote a line that is none of the protocol: %.150s",
                 l->why);
        return WR_HEARD_BAD;
    case WR_COPROC_HELLO:
        if (!hello)
            return bad_word(why, why_len, "said hello twice");
        if (l->version == WR_COPROC_VERSION)
            return WR_HEARD_WORD;
        snprintf(why, why_len, "speaks version %lld of weir-coproc, this worker %d",
                 (long long)l->version, WR_COPROC_VERSION);
        return WR_HEARD_BAD;
    case WR_COPROC_ANSWER:
        if (hello)
            return bad_word(why, why_len, "answered before it said hello");
        return judge_answer(p, d != NULL, why, why_len);
    case WR_COPROC_PROGRESS:
        if (d && (l->call < 0 || l->call == p->call))
            weir_delivery_progress_stage(d, wr_buf_span(&l->stage).ptr, l->percent, text);
        return WR_HEARD_NOTHING;
    case WR_COPROC_LOG:
        log_line(p, "logs", text, l->text.len);
        return WR_HEARD_NOTHING;
    }
    return WR_HEARD_NOTHING;
}

enum wr_heard
wr_coproc_read_lines(struct wr_coproc *p, struct weir_delivery *d, bool hello, char *why,
                     size_t why_len)
{
    enum wr_heard heard = WR_HEARD_NOTHING;
    size_t len;

    while (heard == WR_HEARD_NOTHING && next_line(p, &len)) {
        size_t shown = len > 0 && p->in.ptr[len - 1] == '\r' ? len - 1 : len;

        if (!wr_coproc_read(&p->line, p->in.ptr, shown))
            return bad_word(why, why_len, "out of memory for its answer");
        if (p->line.word == WR_COPROC_NOISE && shown > 0)
            log_line(p, "prints", p->in.ptr, shown);
        heard = judge_line(p, d, hello, why, why_len);
        wr_buf_drop(&p->in, len + 1);
    }
    if (heard == WR_HEARD_NOTHING && p->in.len > WR_COPROC_LINE_MAX) {
        snprintf(why, why_len, "wrote a line of more than %d bytes", WR_COPROC_LINE_MAX);
        return WR_HEARD_BAD;
    }
    return heard;
}

/* ---- waiting ---- */

void
wr_coproc_write_out(struct wr_coproc *p)
{
    while (p->sent < p->out.len) {
        ssize_t n = write(p->fds[0], p->out.ptr + p->sent, p->out.len - p->sent);

        if (n > 0) {
            p->sent += (size_t)n;
            p->wrote = p->sent;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else if (n == 0 || errno != EINTR) {
            p->sent = p->out.len; /* it closed it, or ended: its other pipe says more */
        }
    }
}

bool
wr_coproc_is_unread(const struct wr_coproc *p)
{
    int n = 0;

    return p->fds[0] >= 0 && ioctl(p->fds[0], FIONREAD, &n) == 0 && (size_t)n >= p->wrote;
}

/* Its last bytes, when the spawner says that it has ended. */
static enum wr_heard
hear_rest(struct wr_coproc *p, const struct wr_coproc_wait *w)
{
    for (;;) {
        size_t before = p->in.len;
        bool more = wr_coproc_read_piece(p->fds[1], &p->in) && p->in.len > before;
        enum wr_heard heard = wr_coproc_read_lines(p, w->d, w->hello, w->why, w->why_len);

        if (heard != WR_HEARD_NOTHING || !more)
            return heard;
    }
}

enum wr_heard
wr_coproc_turn(struct wr_coproc *p, const struct wr_coproc_wait *w, int seat_fd,
               bool *ended)
{
    int64_t left = w->until_ms > 0 ? w->until_ms - wr_clock_ms() : -1;
    struct pollfd f[4] = {
        {.fd = p->fds[1], .events = POLLIN},
        {.fd = p->fds[2], .events = POLLIN},
        {.fd = seat_fd, .events = POLLIN},
        {.fd = p->sent < p->out.len ? p->fds[0] : -1, .events = POLLOUT},
    };

    if (w->until_ms > 0 && left < 0)
        left = 0;
    if (poll(f, 4, left > 3600000 ? 3600000 : (int)left) < 0)
        return WR_HEARD_NOTHING; /* EINTR */
    if (f[1].revents)
        hear_complaints(p);
    if (f[3].revents)
        wr_coproc_write_out(p);
    if (f[2].revents) {
        *ended = true;
        return hear_rest(p, w);
    }
    if (!f[0].revents)
        return WR_HEARD_NOTHING;
    *ended = !wr_coproc_read_piece(p->fds[1], &p->in);
    return wr_coproc_read_lines(p, w->d, w->hello, w->why, w->why_len);
}

/* It may have said more than one piece before its end; the last line counts most. */
void
wr_coproc_hear_last(struct wr_coproc *p)
{
    for (int i = 0; i < 64 && p->fds[2] >= 0; i++) {
        struct pollfd f = {.fd = p->fds[2], .events = POLLIN};

        if (poll(&f, 1, 0) <= 0)
            break;
        hear_complaints(p);
    }
    if (p->err.len > 0)
        take_complaint(p, p->err.len);
}
