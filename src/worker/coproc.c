/*
 * One co-process: its start, a job and its answer, its end.
 *
 * A wait is a poll() on what it says, on what it complains, and on the spawner's word
 * that it has ended. An answer that came before the end counts.
 */
#include "worker/coproc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

#define HELLO_MS 60000 /* it may import a lot */
#define HELLO_KILL_MS 2000
/* One whose pipe has ended has so long until it is said to have closed it, and alive.
 * What it left in its group may take the spawner nearly a second. */
#define END_MS 1500
#define PIECE 65536
#define LOG_LINES 200 /* of one job */
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
    if (p->logged++ < LOG_LINES)
        wr_log(level, "%s %s: %.*s", p->type, what, (int)(len < 1000 ? len : 1000), text);
    else if (p->logged == LOG_LINES + 1)
        wr_log(level, "%s: more than %d lines of one job, the rest is left out", p->type,
               LOG_LINES);
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

/* What stands in the pipe now, but no more than a piece: false at its end. */
static bool
read_piece(int fd, struct wr_buf *to)
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
    if (!read_piece(p->fds[2], &p->err)) {
        close(p->fds[2]);
        p->fds[2] = -1;
    }
    take_complaints(p);
}

/* ---- lines ---- */

enum heard {
    HEARD_NOTHING, /* wait for more */
    HEARD_WORD,    /* what was waited for is in line */
    HEARD_BAD,     /* it cannot be trusted any more */
};

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

static enum heard
bad_word(char *why, size_t why_len, const char *text)
{
    snprintf(why, why_len, "%s", text);
    return HEARD_BAD;
}

static enum heard
judge_answer(struct wr_coproc *p, bool waits, char *why, size_t why_len)
{
    const struct wr_coproc_line *l = &p->line;

    if (waits && l->call == p->call)
        return HEARD_WORD;
    if (l->call > 0 && l->call <= p->call) { /* a second answer, or a late one: no harm */
        wr_log_warn("%s: an answer to call %lld came late and is ignored", p->type,
                    (long long)l->call);
        return HEARD_NOTHING;
    }
    snprintf(why, why_len, "answered call %lld, which nobody made", (long long)l->call);
    return HEARD_BAD;
}

/* d: whose job it has; NULL: none. */
static enum heard
judge_line(struct wr_coproc *p, struct weir_delivery *d, bool hello, char *why,
           size_t why_len)
{
    struct wr_coproc_line *l = &p->line;
    const char *text = wr_buf_span(&l->text).ptr;

    switch (l->word) {
    case WR_COPROC_NOISE:
    case WR_COPROC_OTHER:
        return HEARD_NOTHING;
    case WR_COPROC_GARBAGE:
        snprintf(why, why_len, "wrote a line that is none of the protocol: %.150s",
                 l->why);
        return HEARD_BAD;
    case WR_COPROC_HELLO:
        if (!hello)
            return bad_word(why, why_len, "said hello twice");
        if (l->version == WR_COPROC_VERSION)
            return HEARD_WORD;
        snprintf(why, why_len, "speaks version %lld of weir-coproc, this worker %d",
                 (long long)l->version, WR_COPROC_VERSION);
        return HEARD_BAD;
    case WR_COPROC_ANSWER:
        if (hello)
            return bad_word(why, why_len, "answered before it said hello");
        return judge_answer(p, d != NULL, why, why_len);
    case WR_COPROC_PROGRESS:
        if (d && (l->call < 0 || l->call == p->call))
            weir_delivery_progress(d, l->percent, text);
        return HEARD_NOTHING;
    case WR_COPROC_LOG:
        log_line(p, "logs", text, l->text.len);
        return HEARD_NOTHING;
    }
    return HEARD_NOTHING;
}

/* All lines that have come, up to the one that was waited for. */
static enum heard
read_lines(struct wr_coproc *p, struct weir_delivery *d, bool hello, char *why,
           size_t why_len)
{
    enum heard heard = HEARD_NOTHING;
    size_t len;

    while (heard == HEARD_NOTHING && next_line(p, &len)) {
        size_t shown = len > 0 && p->in.ptr[len - 1] == '\r' ? len - 1 : len;

        if (!wr_coproc_read(&p->line, p->in.ptr, shown))
            return bad_word(why, why_len, "out of memory for its answer");
        if (p->line.word == WR_COPROC_NOISE && shown > 0)
            log_line(p, "prints", p->in.ptr, shown);
        heard = judge_line(p, d, hello, why, why_len);
        wr_buf_drop(&p->in, len + 1);
    }
    if (heard == HEARD_NOTHING && p->in.len > WR_COPROC_LINE_MAX) {
        snprintf(why, why_len, "wrote a line of more than %d bytes", WR_COPROC_LINE_MAX);
        return HEARD_BAD;
    }
    return heard;
}

/* ---- waiting ---- */

struct wait {
    struct weir_delivery *d; /* whose answer; NULL with hello */
    bool hello;
    int64_t until_ms; /* 0: no limit */
    char *why;
    size_t why_len;
};

static void
write_out(struct wr_coproc *p)
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

/* What it did not read still stands in the pipe: all that was written. */
static bool
is_unread(const struct wr_coproc *p)
{
    int n = 0;

    return p->fds[0] >= 0 && ioctl(p->fds[0], FIONREAD, &n) == 0 && (size_t)n >= p->wrote;
}

/* Its last bytes, when the spawner says that it has ended. */
static enum heard
hear_rest(struct wr_coproc *p, const struct wait *w)
{
    for (;;) {
        size_t before = p->in.len;
        bool more = read_piece(p->fds[1], &p->in) && p->in.len > before;
        enum heard heard = read_lines(p, w->d, w->hello, w->why, w->why_len);

        if (heard != HEARD_NOTHING || !more)
            return heard;
    }
}

/* One turn: sends what is to be sent, waits, reads. *ended: it will say no more. */
static enum heard
turn(struct wr_coproc *p, const struct wait *w, int seat_fd, bool *ended)
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
        return HEARD_NOTHING; /* EINTR */
    if (f[1].revents)
        hear_complaints(p);
    if (f[3].revents)
        write_out(p);
    if (f[2].revents) {
        *ended = true;
        return hear_rest(p, w);
    }
    if (!f[0].revents)
        return HEARD_NOTHING;
    *ended = !read_piece(p->fds[1], &p->in);
    return read_lines(p, w->d, w->hello, w->why, w->why_len);
}

/* How its process ended belongs to the attempt. */
static void
note_end(const struct wr_coproc *p, const struct wait *w)
{
    if (!w->d)
        return;
    w->d->exec = p->end;
    w->d->has_exec = true;
}

static enum wr_coproc_end
fail(struct wr_coproc *p, const struct wait *w, enum heard heard)
{
    char how[600];
    bool unread = is_unread(p);
    enum wr_coproc_end end;

    if (heard == HEARD_BAD) /* why stands already */
        return wr_coproc_close(p, 0, 0, NULL, 0);
    end = wr_coproc_close(p, END_MS, 0, how, sizeof(how));
    snprintf(w->why, w->why_len, "%s", how);
    if (!unread)
        note_end(p, w);
    return end == WR_COPROC_FAILED && unread ? WR_COPROC_UNREAD : end;
}

/* Until it is heard, ends, or the time is up: then it is stopped, and given kill_after_ms
 * for its end. */
static enum wr_coproc_end
wait_for(struct wr_coproc *p, const struct wait *w, int64_t kill_after)
{
    struct wr_spawner *spawner = wr_spawner_current();
    int seat_fd = spawner ? wr_spawner_seat_fd(spawner, p->seat) : -1;
    enum heard heard = HEARD_NOTHING;
    bool ended = !spawner; /* the child is about to end */

    write_out(p);
    while (heard == HEARD_NOTHING && !ended) {
        heard = turn(p, w, seat_fd, &ended);
        if (heard == HEARD_NOTHING && !ended && w->until_ms > 0 &&
            wr_clock_ms() >= w->until_ms) {
            enum wr_coproc_end end = wr_coproc_close(p, 0, kill_after, NULL, 0);

            p->end.stop = WR_EXEC_TIMEOUT;
            note_end(p, w);
            return end == WR_COPROC_FAILED ? WR_COPROC_TIMEOUT : end;
        }
    }
    return heard == HEARD_WORD ? WR_COPROC_OK : fail(p, w, heard);
}

/* ---- start ---- */

static void
set_out(struct wr_coproc *p)
{
    wr_buf_clear(&p->out);
    p->sent = p->wrote = 0;
    p->logged = 0;
    p->err_last[0] = '\0';
}

/* Its own, and those of the handler. Of the job there is nothing: it runs many. */
static const char **
make_environment(const struct wr_coproc *p, char *type, char *worker)
{
    static const char protocol[] = "WEIR_COPROC_PROTOCOL=1";
    size_t n = 0;
    const char **env;

    while (p->config->env && p->config->env[n])
        n++;
    env = calloc(n + 4, sizeof(*env));
    if (!env)
        return NULL;
    env[0] = protocol;
    env[1] = type;
    env[2] = worker;
    for (size_t i = 0; i < n; i++)
        env[3 + i] = p->config->env[i];
    return env;
}

static enum weir_err
ask_spawner(struct wr_coproc *p, const struct weir_delivery *d,
            struct wr_spawner *spawner, struct wr_exec_end *start, struct weir_error *err)
{
    char type[160], worker[128];
    const char **env = make_environment(p, type, worker);
    struct wr_exec_run run = {.argv = (const char *const *)p->config->argv,
                              .env = env,
                              .clean = p->config->o.clean_env,
                              .cwd = p->config->cwd,
                              .limits = &p->config->limits,
                              .stop_signal = p->config->o.stop_signal,
                              .keep_stragglers = p->config->o.keep_stragglers};
    enum weir_err rc;

    if (!env)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "environment");
    snprintf(type, sizeof(type), "WEIR_JOB_TYPE=%s", p->type);
    snprintf(worker, sizeof(worker), "WEIR_WORKER=%s", d->worker);
    rc = wr_spawner_open(spawner, p->seat, &run, p->fds, start, err);
    free(env);
    return rc;
}

static enum wr_coproc_end
start(struct wr_coproc *p, const struct weir_delivery *d, char *why, size_t why_len)
{
    struct wr_spawner *spawner = wr_spawner_current();
    struct wr_exec_end began = {0};
    struct weir_error err = {0};
    enum weir_err rc;

    if (!spawner)
        return WR_COPROC_GONE;
    wr_spawner_arm(spawner, p->seat);
    if (atomic_load(&d->stop) != WR_STOP_NONE) {
        snprintf(why, why_len, "told to stop"); /* before a kill could reach it */
        return WR_COPROC_FAILED;
    }
    rc = ask_spawner(p, d, spawner, &began, &err);
    if (rc == WEIR_E_BUG)
        return WR_COPROC_GONE;
    if (rc != WEIR_OK || began.start_errno != 0) {
        snprintf(why, why_len, "cannot run %.200s: %s", p->config->argv[0],
                 rc != WEIR_OK ? err.text : strerror(began.start_errno));
        return WR_COPROC_FAILED;
    }
    p->open = true;
    p->call = 0;
    p->looked = 0;
    wr_buf_clear(&p->in);
    wr_buf_clear(&p->err);
    return WR_COPROC_OK;
}

enum wr_coproc_end
wr_coproc_open(struct wr_coproc *p, const struct weir_delivery *d, char *why,
               size_t why_len)
{
    struct wait w = {.hello = true, .why = why, .why_len = why_len};
    enum wr_coproc_end end = start(p, d, why, why_len);

    if (end != WR_COPROC_OK)
        return end;
    set_out(p);
    wr_coproc_hello(&p->out, p->type, d->worker);
    w.until_ms = wr_clock_ms() + HELLO_MS;
    end = wait_for(p, &w, HELLO_KILL_MS);
    if (end == WR_COPROC_TIMEOUT)
        snprintf(why, why_len, "did not say hello within %d s", HELLO_MS / 1000);
    return end == WR_COPROC_TIMEOUT || end == WR_COPROC_UNREAD ? WR_COPROC_FAILED : end;
}

bool
wr_coproc_is_well(struct wr_coproc *p)
{
    char why[256];
    bool open;

    set_out(p);
    do {
        size_t before = p->in.len;

        open = read_piece(p->fds[1], &p->in);
        if (open && p->in.len == before)
            return true; /* as nearly always */
        if (read_lines(p, NULL, false, why, sizeof(why)) == HEARD_BAD) {
            wr_log_warn("%s: with nothing to do, it %s", p->type, why);
            (void)wr_coproc_close(p, 0, 0, NULL, 0);
            return false;
        }
    } while (open && p->logged < LOG_LINES);
    (void)wr_coproc_close(p, END_MS, 0, why, sizeof(why));
    wr_log_info("%s: ended between two jobs: %s", p->type, why);
    return false;
}

/* ---- a job ---- */

static int64_t
kill_after_ms(const struct wr_coproc *p, const struct weir_delivery *d)
{
    int64_t own = p->config->o.kill_after_ms;

    return own > 0 ? own : d->record.kill_after_ms;
}

enum wr_coproc_end
wr_coproc_run(struct wr_coproc *p, struct weir_delivery *d, char *why, size_t why_len)
{
    int64_t timeout = d->record.timeout_ms, own = p->config->o.timeout_ms;
    struct wait w = {.d = d, .why = why, .why_len = why_len};
    enum wr_coproc_end end;

    set_out(p);
    wr_coproc_job(&p->out, d, ++p->call);
    if (p->out.failed) {
        snprintf(why, why_len, "out of memory for the job's line");
        (void)wr_coproc_close(p, 0, 0, NULL, 0);
        return WR_COPROC_FAILED;
    }
    if (own > 0 && (timeout == 0 || own < timeout))
        timeout = own;
    w.until_ms = timeout > 0 ? wr_clock_ms() + timeout : 0;
    end = wait_for(p, &w, kill_after_ms(p, d));
    if (end == WR_COPROC_TIMEOUT) {
        char limit[32];

        wr_text_show_duration(timeout, limit, sizeof(limit));
        snprintf(why, why_len, "timeout after %s", limit);
    }
    return end;
}

/* ---- end ---- */

static void
say_end(const struct wr_coproc *p, const struct wr_exec_end *e, char *how, size_t how_len)
{
    const char *name = e->signal != 0 ? sigabbrev_np(e->signal) : NULL;
    int n = e->signal != 0
                ? snprintf(how, how_len, "killed by SIG%s", name ? name : "?")
                : snprintf(how, how_len, "exit %d without an answer", e->exit_code);

    if (p->err_last[0] && n > 0 && (size_t)n < how_len)
        snprintf(how + n, how_len - (size_t)n, ": %s", p->err_last);
}

/* It may have said more than one piece before its end; the last line counts most. */
static void
hear_last_complaints(struct wr_coproc *p)
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

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* False: it did not end by itself. */
static bool
wait_for_end(const struct wr_coproc *p, struct wr_spawner *spawner, int64_t wait_ms)
{
    struct pollfd f = {.fd = wr_spawner_seat_fd(spawner, p->seat), .events = POLLIN};

    return poll(&f, 1, (int)wait_ms) != 0;
}

enum wr_coproc_end
wr_coproc_close(struct wr_coproc *p, int64_t wait_ms, int64_t kill_after_ms, char *how,
                size_t how_len)
{
    struct wr_spawner *spawner = wr_spawner_current();
    enum weir_err rc = WEIR_E_BUG;
    bool ended = true;

    close_fd(&p->fds[0]);
    if (spawner) {
        ended = wait_for_end(p, spawner, wait_ms);
        if (!ended)
            wr_spawner_kill(spawner, p->seat, kill_after_ms);
        rc = wr_spawner_close(spawner, p->seat, &p->end, NULL);
    }
    hear_last_complaints(p);
    close_fd(&p->fds[1]);
    close_fd(&p->fds[2]);
    p->open = false;
    wr_buf_fini(&p->in);
    wr_buf_fini(&p->out);
    if (rc == WEIR_E_BUG)
        return WR_COPROC_GONE;
    if (how && ended)
        say_end(p, &p->end, how, how_len);
    else if (how)
        snprintf(how, how_len, "closed its standard output");
    return WR_COPROC_FAILED;
}

void
wr_coproc_close_all(struct wr_coproc *list, size_t n)
{
    int64_t deadline = wr_clock_ms() + END_MS;

    for (size_t i = 0; i < n; i++) {
        if (list[i].open)
            close_fd(&list[i].fds[0]);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t left = deadline - wr_clock_ms();

        if (list[i].open)
            (void)wr_coproc_close(&list[i], left > 0 ? left : 0, 0, NULL, 0);
    }
}

void
wr_coproc_stop(struct wr_coproc *p, const struct weir_delivery *d, int64_t kill_after_ms)
{
    struct wr_spawner *spawner = wr_spawner_current();

    pthread_mutex_lock(&p->mu);
    if (p->current == d) {
        p->killed = true;
        if (spawner)
            wr_spawner_kill(spawner, p->seat, kill_after_ms);
    }
    pthread_mutex_unlock(&p->mu);
}
