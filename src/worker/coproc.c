/*
 * One co-process: its start, a job and its answer, its end.
 *
 * A wait is a poll() on what it says, on what it complains, and on the spawner's word
 * that it has ended. An answer that came before the end counts.
 */
#include "worker/coproc_talk.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* How its process ended belongs to the attempt. */
static void
note_end(const struct wr_coproc *p, const struct wr_coproc_wait *w)
{
    if (!w->d)
        return;
    w->d->exec = p->end;
    w->d->has_exec = true;
}

static enum wr_coproc_end
fail(struct wr_coproc *p, const struct wr_coproc_wait *w, enum wr_heard heard)
{
    char how[600];
    bool unread = wr_coproc_is_unread(p);
    enum wr_coproc_end end;

    if (heard == WR_HEARD_BAD) /* why stands already */
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
wait_for(struct wr_coproc *p, const struct wr_coproc_wait *w, int64_t kill_after)
{
    struct wr_spawner *spawner = wr_spawner_current();
    int seat_fd = spawner ? wr_spawner_seat_fd(spawner, p->seat) : -1;
    enum wr_heard heard = WR_HEARD_NOTHING;
    bool ended = !spawner; /* the child is about to end */

    wr_coproc_write_out(p);
    while (heard == WR_HEARD_NOTHING && !ended) {
        heard = wr_coproc_turn(p, w, seat_fd, &ended);
        if (heard == WR_HEARD_NOTHING && !ended && w->until_ms > 0 &&
            wr_clock_ms() >= w->until_ms) {
            enum wr_coproc_end end = wr_coproc_close(p, 0, kill_after, NULL, 0);

            p->end.stop = WR_EXEC_TIMEOUT;
            note_end(p, w);
            return end == WR_COPROC_FAILED ? WR_COPROC_TIMEOUT : end;
        }
    }
    return heard == WR_HEARD_WORD ? WR_COPROC_OK : fail(p, w, heard);
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
    struct wr_coproc_wait w = {.hello = true, .why = why, .why_len = why_len};
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

        open = wr_coproc_read_piece(p->fds[1], &p->in);
        if (open && p->in.len == before)
            return true; /* as nearly always */
        if (wr_coproc_read_lines(p, NULL, false, why, sizeof(why)) == WR_HEARD_BAD) {
            wr_log_warn("%s: with nothing to do, it %s", p->type, why);
            (void)wr_coproc_close(p, 0, 0, NULL, 0);
            return false;
        }
    } while (open && p->logged < WR_COPROC_LOG_LINES);
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
    struct wr_coproc_wait w = {.d = d, .why = why, .why_len = why_len};
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
    wr_coproc_hear_last(p);
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
