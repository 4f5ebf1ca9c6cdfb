/* One command from its start to its answer: its times, its end, what it leaves behind. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "worker/spawn.h"

/* After the leader's end its group has SIGTERM, and so long until SIGKILL; the answer
 * waits for its pipes until a little later, and never a second. */
#define STRAGGLER_MS 700
#define ANSWER_MS 900
#define ERR_MAX 65536           /* of standard error that is kept */
#define ERR_HEAD 16384          /* of it: the begin; the rest is tail */
#define LIVE_MAX 49152          /* of what nobody has read yet: the newest bytes */
#define FRAMES_MAX (256 * 1024) /* that wait; more is left out */

/* ---- signals ---- */

void
wr_spawn_job_kill(const struct wr_spawn_job *j, int sig)
{
    if (j->pid > 1 && !j->group_gone)
        kill(-j->pid, sig);
}

static void
kill_at_once(struct wr_spawn_job *j)
{
    j->kill_sent = true;
    wr_spawn_job_kill(j, SIGKILL);
    wr_cgroup_kill(j);
}

/* After its leader was reaped only. */
static bool
signal_group(struct wr_spawn_job *j, int sig)
{
    if (j->pid <= 1 || j->group_gone)
        return false;
    if (kill(-j->pid, sig) == 0)
        return true;
    j->group_gone = errno == ESRCH;
    return false;
}

static bool
group_lives(struct wr_spawn_job *j)
{
    return signal_group(j, 0);
}

static bool
keeps_stragglers(const struct wr_spawn_job *j)
{
    return j->request.run.keep_stragglers;
}

/* ---- frames ---- */

static bool
has_frames(const struct wr_spawn_job *j)
{
    return j->frames_sent < j->frames.len;
}

void
wr_spawn_job_ask_sock(struct wr_spawn_job *j)
{
    wr_watch_ask(j->watch, has_frames(j) ? WR_READABLE | WR_WRITABLE : WR_READABLE);
}

/* Whole, or not at all. */
static void
append_frame(struct wr_spawn_job *j, const struct wr_spawn_frame *frame, const void *ptr,
             size_t len)
{
    struct wr_spawn_frame f = *frame;
    size_t before = j->frames.len;

    f.len = len;
    wr_buf_add(&j->frames, &f, sizeof(f));
    wr_buf_add(&j->frames, ptr, len);
    if (j->frames.failed) {
        j->frames.len = before;
        j->frames.failed = false;
    }
}

/* What is live becomes frames behind the others. */
static void
add_live(struct wr_spawn_job *j)
{
    struct wr_capture *c = &j->live;
    int64_t left_out;

    if (c->bytes == 0)
        return;
    if (c->tail.len > c->tail_max)
        wr_buf_drop(&c->tail, c->tail.len - c->tail_max);
    left_out = c->bytes - (int64_t)(c->head.len + c->tail.len);
    if (c->head.len > 0)
        append_frame(j, &(struct wr_spawn_frame){.kind = WR_FRAME_OUTPUT}, c->head.ptr,
                     c->head.len);
    if (c->tail.len > 0)
        append_frame(
            j, &(struct wr_spawn_frame){.kind = WR_FRAME_OUTPUT, .left_out = left_out},
            c->tail.ptr, c->tail.len);
    c->head_max -= c->head.len; /* the begin of the run is never left out */
    wr_buf_clear(&c->head);
    wr_buf_clear(&c->tail);
    c->bytes = 0;
}

void
wr_spawn_job_add_output(struct wr_spawn_job *j, const char *bytes, size_t len)
{
    wr_capture_add(&j->live, bytes, len);
    if (!has_frames(j))
        wr_spawn_job_send(j);
}

static void
clear_frames(struct wr_spawn_job *j)
{
    j->frames_sent = 0;
    if (j->frames.cap > FRAMES_MAX)
        wr_buf_fini(&j->frames);
    else
        wr_buf_clear(&j->frames);
}

void
wr_spawn_job_send(struct wr_spawn_job *j)
{
    for (;;) {
        ssize_t n;

        if (!has_frames(j)) {
            clear_frames(j);
            add_live(j);
        }
        if (!has_frames(j))
            break;
        n = send(j->sock, j->frames.ptr + j->frames_sent, j->frames.len - j->frames_sent,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            j->frames_sent += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            if (n < 0 && errno != EAGAIN)
                wr_loop_stop(j->spawn->loop); /* nobody is there any more */
            wr_spawn_job_ask_sock(j);
            return;
        }
    }
    if (j->phase == WR_SPAWN_ANSWERING) {
        free(j->body);
        j->body = NULL;
        j->phase = WR_SPAWN_IDLE;
    }
    wr_spawn_job_ask_sock(j);
}

void
wr_spawn_job_add_frame(struct wr_spawn_job *j, enum wr_spawn_frame_kind kind,
                       const void *ptr, size_t len)
{
    bool wakes = !has_frames(j);

    if (j->frames.len - j->frames_sent + len > FRAMES_MAX)
        return;
    append_frame(j, &(struct wr_spawn_frame){.kind = kind}, ptr, len);
    if (wakes)
        wr_spawn_job_send(j);
}

static void
add_end(struct wr_spawn_job *j)
{
    struct wr_spawn_frame f = {.kind = WR_FRAME_END};
    struct wr_buf out = {0}, err = {0};

    if (j->progress_new) /* the last word counts, however soon after the one before */
        wr_spawn_send_progress(j, j->progress_ms + WR_PROGRESS_MS);
    add_live(j);
    j->end.push_lost = j->end.push_lost || j->pushes.failed;
    if (j->pushes.len > 0) {
        size_t before = j->frames.len;

        append_frame(j, &(struct wr_spawn_frame){.kind = WR_FRAME_PUSH},
                     wr_buf_span(&j->pushes).ptr, j->pushes.len);
        j->end.push_lost = j->end.push_lost || j->frames.len == before;
    }
    wr_buf_fini(&j->pushes);
    if (j->request.run.out == WR_OUT_TAIL && j->out.tail.len > j->out.tail_max)
        wr_buf_drop(&j->out.tail, j->out.tail.len - j->out.tail_max);
    wr_buf_add(&out, wr_buf_span(&j->out.head).ptr, j->out.head.len);
    wr_buf_add(&out, wr_buf_span(&j->out.tail).ptr, j->out.tail.len);
    wr_capture_text(&j->err, &err);
    /* A result is whole or lost; of a log what is there is good enough. */
    f.result_lost = out.failed || j->out.head.failed || j->out.tail.failed;
    if (f.result_lost)
        wr_buf_clear(&out);
    f.result_len = out.len;
    f.len = sizeof(j->end) + out.len + err.len;
    wr_buf_add(&j->frames, &f, sizeof(f));
    wr_buf_add(&j->frames, &j->end, sizeof(j->end));
    wr_buf_add(&j->frames, wr_buf_span(&out).ptr, out.len);
    wr_buf_add(&j->frames, wr_buf_span(&err).ptr, err.len);
    if (j->frames.failed)
        wr_loop_stop(j->spawn->loop); /* half an answer is none: kill all, and end */
    wr_buf_fini(&out);
    wr_buf_fini(&err);
}

/* ---- the end ---- */

static void
answer(struct wr_spawn_job *j)
{
    struct wr_spawn *sp = j->spawn;

    /* What stands in the pipes counts, also when we come late to it. */
    wr_spawn_drain_pipes(j);
    if (j->pid != 0)
        wr_spawn_drain_control(j);
    for (int i = 0; i < WR_SPAWN_PIPES; i++)
        wr_spawn_close_pipe(j, i);
    wr_timer_off(j->timer);
    if (j->pid != 0 && !keeps_stragglers(j)) {
        if (group_lives(j))
            wr_spawn_job_kill(j, SIGKILL);
        wr_cgroup_kill(j);
    }
    j->phase = WR_SPAWN_ANSWERING;
    if (j->pid != 0 && !j->end.alone) {
        j->control_known = true;
        (void)wr_strays_sweep(sp, NULL);
    }
    atomic_store(&sp->slots->slot[j->slot].pgid, 0);
    j->pid = 0;
    j->end.bytes_in = (int64_t)j->sent;
    j->end.out_truncated = wr_capture_is_cut(&j->out);
    j->end.err_truncated = wr_capture_is_cut(&j->err);
    add_end(j);
    wr_capture_reset(&j->out, 0, 0);
    wr_capture_reset(&j->err, 0, 0);
    wr_capture_reset(&j->live, 0, 0);
    wr_spawn_job_send(j);
}

static bool
pipes_are_drained(const struct wr_spawn_job *j)
{
    for (int i = 1; i < WR_SPAWN_PIPES; i++) {
        if (j->pipes[i].fd >= 0)
            return false;
    }
    return true;
}

void
wr_spawn_job_answer_if_over(struct wr_spawn_job *j)
{
    if (j->phase != WR_SPAWN_ENDING || j->draining)
        return;
    if ((pipes_are_drained(j) && (keeps_stragglers(j) || !group_lives(j))) ||
        wr_clock_ms() >= j->answer_at_ms)
        answer(j);
}

/* ---- times ---- */

static int64_t
sooner(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static int64_t
idle_at(const struct wr_spawn_job *j)
{
    int64_t idle = j->request.run.idle_ms;

    return idle > 0 && !j->term_sent ? j->heard_ms + idle : 0;
}

void
wr_spawn_job_set_timer(struct wr_spawn_job *j)
{
    int64_t at = 0;

    if (j->phase == WR_SPAWN_RUNNING) {
        at = sooner(sooner(j->term_at_ms, j->kill_at_ms), idle_at(j));
        at = sooner(at, j->watch_at_ms);
        if (j->progress_new)
            at = sooner(at, j->progress_ms + WR_PROGRESS_MS);
    } else if (j->phase == WR_SPAWN_ENDING) {
        at = j->stragglers_killed ? j->answer_at_ms : j->kill_at_ms;
    }
    if (at != 0)
        wr_timer_set(j->timer, at * 1000);
    else
        wr_timer_off(j->timer);
}

void
wr_spawn_job_leader_ended(struct wr_spawn_job *j, int status, const struct rusage *usage)
{
    int64_t now = wr_clock_ms();
    struct wr_exec_end *end = &j->end;

    if (WIFEXITED(status)) {
        end->exit_code = WEXITSTATUS(status);
    } else {
        end->signal = WTERMSIG(status);
        end->core = WCOREDUMP(status);
        end->out_of_memory = end->signal == SIGKILL && !j->kill_sent &&
                             wr_oom_happened(j->spawn);
    }
    end->wall_ms = now - j->started_ms;
    end->user_us = (int64_t)usage->ru_utime.tv_sec * 1000000 + usage->ru_utime.tv_usec;
    end->sys_us = (int64_t)usage->ru_stime.tv_sec * 1000000 + usage->ru_stime.tv_usec;
    end->max_rss_kib = usage->ru_maxrss;
    j->phase = WR_SPAWN_ENDING;
    j->kill_at_ms = now + STRAGGLER_MS;
    j->answer_at_ms = now + ANSWER_MS;
    if (!keeps_stragglers(j)) {
        if (signal_group(j, SIGTERM))
            (void)signal_group(j, SIGCONT);
        end->alone = wr_strays_sweep(j->spawn, j) && j->group_gone;
    }
    wr_spawn_settle_pipes(j);
    wr_spawn_job_set_timer(j);
}

static void
stop_for(struct wr_spawn_job *j, enum wr_exec_stop why, int64_t kill_after_ms)
{
    int64_t now = wr_clock_ms();

    if (j->end.stop == WR_EXEC_NOT_STOPPED)
        j->end.stop = why;
    if (kill_after_ms <= 0) {
        kill_at_once(j);
        return;
    }
    if (!j->term_sent) {
        wr_spawn_job_kill(j, j->request.run.stop_signal);
        wr_spawn_job_kill(j, SIGCONT); /* one that is stopped could not act on it */
    }
    j->term_sent = true;
    j->term_at_ms = 0;
    j->kill_at_ms = sooner(j->kill_at_ms, now + kill_after_ms);
    wr_spawn_job_set_timer(j);
}

void
wr_spawn_job_stop(struct wr_spawn_job *j, int64_t kill_after_ms)
{
    if (j->phase == WR_SPAWN_RUNNING)
        stop_for(j, WR_EXEC_KILLED, kill_after_ms);
}

static void
look_at_times(struct wr_spawn_job *j, int64_t now)
{
    int64_t kill_after_ms = j->request.run.kill_after_ms;

    if (j->watch_at_ms != 0 && now >= j->watch_at_ms)
        wr_spawn_watch_pipes(j, now);
    if (j->term_at_ms != 0 && now >= j->term_at_ms)
        stop_for(j, WR_EXEC_TIMEOUT, kill_after_ms);
    if (idle_at(j) != 0 && now >= idle_at(j)) {
        wr_spawn_drain_pipes(j); /* perhaps it is we who were asleep */
        wr_spawn_drain_control(j);
    }
    if (idle_at(j) != 0 && now >= idle_at(j))
        stop_for(j, WR_EXEC_IDLE, kill_after_ms);
    if (j->kill_at_ms != 0 && now >= j->kill_at_ms) {
        j->kill_at_ms = 0;
        kill_at_once(j);
    }
    wr_spawn_send_progress(j, now);
}

static void
kill_stragglers(struct wr_spawn_job *j)
{
    j->stragglers_killed = true;
    if (keeps_stragglers(j))
        return;
    if (group_lives(j))
        kill_at_once(j);
    (void)wr_strays_sweep(j->spawn, NULL);
}

void
wr_spawn_job_on_timer(void *arg)
{
    struct wr_spawn_job *j = arg;
    int64_t now = wr_clock_ms();

    if (j->phase == WR_SPAWN_RUNNING)
        look_at_times(j, now);
    else if (j->phase == WR_SPAWN_ENDING && !j->stragglers_killed && now >= j->kill_at_ms)
        kill_stragglers(j);
    wr_spawn_job_set_timer(j);
    wr_spawn_job_answer_if_over(j);
}

/* The timer is not touched: it looks again when it rings. */
void
wr_spawn_job_heard(struct wr_spawn_job *j)
{
    if (j->request.run.idle_ms > 0)
        j->heard_ms = wr_clock_ms();
}

void
wr_spawn_job_extend(struct wr_spawn_job *j, int64_t ms)
{
    int64_t until = wr_clock_ms() + ms, total;

    if (j->phase != WR_SPAWN_RUNNING || j->term_at_ms == 0 || until <= j->term_at_ms)
        return; /* it has no limit, is being stopped, or may run longer already */
    j->term_at_ms = until;
    total = until - j->started_ms;
    wr_spawn_job_add_frame(j, WR_FRAME_EXTEND, &total, sizeof(total));
    wr_spawn_job_set_timer(j);
}

/* ---- the start ---- */

static void
reset(struct wr_spawn_job *j)
{
    const struct wr_exec_run *r = &j->request.run;
    bool tail = r->out == WR_OUT_TAIL;

    j->end = (struct wr_exec_end){.exit_code = -1, .delay_ms = -1};
    wr_buf_fini(&j->pushes);
    j->sent = 0;
    j->kill_at_ms = j->progress_ms = 0;
    j->term_sent = j->kill_sent = j->stragglers_killed = j->progress_new = false;
    j->group_gone = false;
    j->control.len = 0;
    j->control.too_long = false;
    j->number = ++j->spawn->count;
    wr_capture_reset(&j->out, tail ? 0 : r->result_max, tail ? r->result_max : 0);
    wr_capture_reset(&j->err, ERR_HEAD, ERR_MAX - ERR_HEAD - WR_CAPTURE_GAP);
    wr_capture_reset(&j->live, ERR_HEAD, LIVE_MAX);
    j->started_ms = j->heard_ms = wr_clock_ms();
    j->term_at_ms = r->timeout_ms > 0 ? j->started_ms + r->timeout_ms : 0;
    j->watch_at_ms = r->hand_over ? 0 : j->started_ms + WR_WATCH_AFTER_MS;
}

/* They are the child's from here on. It waits for this and has asked for nothing before,
 * so there is room in the socket. */
static bool
hand_pipes_over(struct wr_spawn_job *j)
{
    struct wr_spawn_frame f = {.kind = WR_FRAME_HANDED};
    struct iovec bytes = {&f, sizeof(f)};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = &bytes,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof(control.room)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int fds[3];
    ssize_t n;

    for (int i = 0; i < 3; i++)
        fds[i] = j->pipes[i].fd;
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(c), fds, sizeof(fds));
    do
        n = sendmsg(j->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    for (int i = 0; i < 3; i++)
        wr_spawn_close_pipe(j, i);
    return n == (ssize_t)sizeof(f);
}

void
wr_spawn_job_start(struct wr_spawn_job *j)
{
    reset(j);
    if (j->body && j->request.run.control)
        wr_spawn_open_control(j);
    j->end.start_errno = j->body ? wr_spawn_start(j) : ENOMEM;
    if (j->end.start_errno != 0) {
        answer(j);
        return;
    }
    j->end.pid = j->pid;
    j->phase = WR_SPAWN_RUNNING;
    if (j->request.run.hand_over && !hand_pipes_over(j))
        wr_loop_stop(j->spawn->loop); /* nobody is there any more */
    wr_spawn_job_set_timer(j);
}
