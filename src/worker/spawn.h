/*
 * worker/spawn.h - the inside of the spawner; who wants a command run includes
 * worker/spawner.h.
 *
 * spawner.c is the side of the worker child: it writes requests and reads answers.
 * The rest is the spawner process, which has one thread and one event loop:
 * spawn_process.c moves bytes and keeps time, spawn_command.c starts commands,
 * spawn_strays.c finds what they leave behind, spawn_capture.c keeps their output.
 *
 * Every descriptor of the process is close-on-exec, every signal is blocked and has its
 * default action: what stands between fork and exec is short.
 */
#ifndef WR_WORKER_SPAWN_H
#define WR_WORKER_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "worker/slots.h"
#include "worker/spawner.h"

/* ---- what goes over a slot's socket; both ends are the same program ---- */

enum wr_spawn_message {
    WR_SPAWN_RUN,
    WR_SPAWN_KILL, /* only kill_after_ms counts, nothing follows */
};

/* Of RUN follow argv and env as NUL-ended strings, then the payload. */
struct wr_spawn_request {
    enum wr_spawn_message message;
    uint32_t argc, envc;
    uint64_t words_len, payload_len;
    int64_t timeout_ms, kill_after_ms;
    uint64_t result_max, err_max;
};

/* The result follows, then what is kept of stderr. */
struct wr_spawn_answer {
    struct wr_exec_end end;
    uint64_t result_len, err_len;
};

/* ---- spawn_capture.c: the head and the tail of a stream of any length ---- */

struct wr_capture {
    struct wr_buf head, tail;
    size_t head_max, tail_max;
    int64_t bytes; /* all that came */
};

void wr_capture_reset(struct wr_capture *capture, size_t head_max, size_t tail_max);
void wr_capture_add(struct wr_capture *capture, const char *bytes, size_t len);
/* Appends head, a line that says how much is missing (less than WR_CAPTURE_GAP bytes),
 * and tail. */
void wr_capture_text(struct wr_capture *capture, struct wr_buf *out);
#define WR_CAPTURE_GAP 64

/* ---- one slot ---- */

enum wr_spawn_phase {
    WR_SPAWN_IDLE,      /* no request, or a part of one */
    WR_SPAWN_RUNNING,   /* the command runs */
    WR_SPAWN_ENDING,    /* it ended; its pipes and what it left in its group not yet */
    WR_SPAWN_ANSWERING, /* nothing of it is left; the answer is being sent */
};

/* 0, 1, 2 of a command; 3 will be the control pipe. */
#define WR_SPAWN_PIPES 3

struct wr_spawn_pipe {
    int fd; /* our end; -1: closed */
    struct wr_watch *watch;
};

struct wr_spawn_job {
    struct wr_spawn *spawn;
    size_t slot;
    enum wr_spawn_phase phase;

    int sock;
    struct wr_watch *watch;
    struct wr_spawn_request next; /* what is being received: its first next_got bytes */
    size_t next_got;
    struct wr_spawn_request request;
    char *body; /* words and payload; NULL: none, or no memory: they are read past */
    size_t body_len, body_got;

    pid_t pid;            /* of the leader, and its group; 0: none */
    unsigned long number; /* rises with each start */
    struct wr_spawn_pipe pipes[WR_SPAWN_PIPES];
    size_t sent; /* of the payload */
    struct wr_capture out, err;
    struct wr_exec_end end;
    struct wr_timer *timer;
    int64_t started_ms, term_at_ms, kill_at_ms; /* monotonic; 0: no such time */
    int64_t answer_at_ms;                       /* ENDING */
    bool term_sent, stragglers_killed;

    struct wr_buf reply;
    size_t reply_sent;
};

struct wr_stray;

struct wr_spawn {
    struct wr_slots *slots;
    struct wr_spawn_job *jobs;
    size_t n;
    struct wr_loop *loop;
    int signal_fd, null_fd;
    pid_t parent;
    unsigned long count; /* commands started so far */
    char **env;          /* of every command; the worker's secrets are not in it */
    size_t env_n;
    const char *path;
    bool limit_raised;
    struct rlimit nofile; /* what commands get */
    struct wr_stray *strays;
    size_t strays_n, strays_cap;
};

/* ---- spawn_process.c ---- */

/* The spawner process from its fork to its end, all signals blocked. fds: its ends of the
 * n sockets. */
_Noreturn void wr_spawn_main(struct wr_slots *slots, int *fds, size_t n, pid_t parent);

/* ---- spawn_command.c ---- */

/* What of the worker's environment commands may see; false when out of memory. */
bool wr_spawn_take_environment(struct wr_spawn *spawn);
/* Starts the command of the job's request: sets its pid, pipes and the slot's pgid.
 * Answers 0, or the errno that stopped it, and then nothing is left open. Pipes get their
 * watches from `watch`, which answers false when out of memory. */
int wr_spawn_start(struct wr_spawn_job *job,
                   bool (*watch)(struct wr_spawn_job *job, int pipe));
void wr_spawn_close_pipe(struct wr_spawn_job *j, int i);

/* ---- spawn_strays.c ---- */

#define WR_SPAWN_KEY "WEIR_ATTEMPT_KEY"
/* WEIR_ATTEMPT_KEY=..., by which the descendants of one run are known. */
void wr_spawn_key(const struct wr_spawn_job *job, char *out, size_t out_len);

/* Looks at all children that are no leaders. Those whose run is over are killed; those of
 * `ending` (may be NULL) get SIGTERM. */
void wr_strays_sweep(struct wr_spawn *spawn, const struct wr_spawn_job *ending);
void wr_strays_forget(struct wr_spawn *spawn, pid_t pid); /* it was reaped */

/* Its descendants may still run. */
static inline bool
wr_spawn_is_live(const struct wr_spawn_job *job)
{
    return job->phase == WR_SPAWN_RUNNING ||
           (job->phase == WR_SPAWN_ENDING && !job->stragglers_killed);
}

#endif
