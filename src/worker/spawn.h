/*
 * worker/spawn.h - the inside of the spawner; who wants a command run includes
 * worker/spawner.h.
 *
 * spawner.c is the side of the worker child: it writes requests and reads frames.
 * The rest is the spawner process, which has one thread and one event loop:
 * spawn_process.c sets it up and reads requests, spawn_command.c starts commands,
 * spawn_limits.c is what they get between fork and exec, spawn_job.c watches over one
 * from its start to its answer, spawn_pipes.c moves its bytes, spawn_control.c
 * understands what it says about itself, spawn_strays.c finds what it leaves behind,
 * spawn_cgroup.c does so where the system allows, spawn_capture.c keeps its output.
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

/* Of RUN follow argv, env, the folder and the file as NUL-ended strings, then the groups,
 * then the payload. Pointers in it mean nothing to the spawner. */
struct wr_spawn_request {
    enum wr_spawn_message message;
    uint32_t argc, envc;
    bool has_cwd, has_file, has_limits;
    uint64_t words_len; /* with the groups */
    uint64_t payload_len;
    int64_t kill_after_ms;
    struct wr_exec_run run;
    struct wr_exec_limits limits;
};

enum wr_spawn_frame_kind {
    WR_FRAME_PROGRESS, /* text */
    WR_FRAME_EXTEND,   /* an int64_t */
    WR_FRAME_OUTPUT,   /* bytes for the log */
    WR_FRAME_HANDED,   /* beside it our ends of its pipes 0, 1 and 2; nothing follows */
    WR_FRAME_PUSH,     /* lines of JSON, right before the end */
    WR_FRAME_END,      /* a struct wr_exec_end, result_len bytes, the log */
};

struct wr_spawn_frame {
    enum wr_spawn_frame_kind kind;
    uint64_t len; /* of what follows */
    uint64_t result_len;
    int64_t left_out; /* OUTPUT: bytes that are missing before these */
    bool result_lost; /* out of memory */
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

static inline bool
wr_capture_is_cut(const struct wr_capture *c)
{
    return c->bytes > (int64_t)(c->head_max + c->tail_max);
}

/* ---- spawn_control.c: lines by which a command speaks of itself ---- */

#define WR_CONTROL_LINE_MAX 4096

struct wr_control {
    char line[WR_CONTROL_LINE_MAX]; /* of the pipe: what has come of one */
    size_t len;
    bool too_long; /* the rest of this line is passed over */
};

/* What one line changed. */
enum wr_control_word {
    WR_CONTROL_NOTHING, /* also of words that nobody knows: the protocol may grow */
    WR_CONTROL_PROGRESS,
    WR_CONTROL_EXTEND,
    WR_CONTROL_NOTE, /* for the log */
    WR_CONTROL_PUSH, /* a follow-up job, as JSON, where a note would be */
};

/* Takes one line without its newline into *end. note: what belongs into the log, a whole
 * line; extend_ms: how long it wants from now. */
enum wr_control_word
wr_control_line(const char *line, size_t len, struct wr_exec_end *end,
                struct wr_buf *note, int64_t *extend_ms);

/* ---- one slot ---- */

enum wr_spawn_phase {
    WR_SPAWN_IDLE,      /* no request, or a part of one */
    WR_SPAWN_RUNNING,   /* the command runs */
    WR_SPAWN_ENDING,    /* it ended; its pipes and what it left in its group not yet */
    WR_SPAWN_ANSWERING, /* nothing of it is left; the answer is being sent */
};

/* 0, 1, 2 of a command, and 3, the control pipe. */
#define WR_SPAWN_PIPES 4
#define WR_SPAWN_CONTROL 3

struct wr_spawn_pipe {
    int fd;                 /* our end; -1: closed */
    struct wr_watch *watch; /* NULL: not yet watched, and it may block */
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
    struct wr_spawn_pipe control_sock; /* renamed for each run */
    char control_path[108];            /* empty: none */
    bool control_owned;                /* it was once given to another user */
    bool control_known; /* to somebody who may still live: the next run gets another */
    struct wr_control control;
    size_t sent; /* of the payload */
    struct wr_capture out, err;
    struct wr_capture live; /* for the log, and not yet in a frame: its newest bytes */
    struct wr_exec_end end;
    struct wr_timer *timer;
    int64_t started_ms, term_at_ms, kill_at_ms; /* monotonic; 0: no such time */
    int64_t watch_at_ms;                        /* when its pipes are watched */
    int64_t answer_at_ms;                       /* ENDING */
    int64_t heard_ms;                           /* of its last output or control line */
    bool term_sent, kill_sent, stragglers_killed;
    bool group_gone; /* nobody is in its group any more: its number may be another's */
    bool draining;   /* its answer does not begin in the middle of that */
    int cgroup_fd;   /* its cgroup's folder; -1: none */

    struct wr_buf pushes; /* what it asked for, a line each */
    struct wr_buf frames; /* to be sent, from frames_sent on */
    size_t frames_sent;
    int64_t progress_ms; /* when progress was last sent */
    bool progress_new;   /* and there is more */
};

struct wr_stray;

struct wr_spawn {
    struct wr_slots *slots;
    struct wr_spawn_job *jobs;
    size_t n;
    const char *folder;
    struct wr_loop *loop;
    int signal_fd, null_fd;
    pid_t self, parent;
    uid_t user;
    int children_fd;     /* the list of our children; -1: not open */
    unsigned long count; /* commands started so far */
    char **env;          /* of every command; the worker's secrets are not in it */
    size_t env_n;
    const char *path;
    bool limit_raised;
    bool vforks;          /* the child shares our memory, and we wait for its exec */
    struct rlimit nofile; /* what commands get */
    struct wr_stray *strays;
    size_t strays_n, strays_cap;
    char cgroup[512]; /* in which cgroups may be made; empty: nowhere */
    int64_t oom_kills;
    bool ends; /* nothing may stay, not even what was to be kept */
};

/* ---- spawn_process.c ---- */

/* The spawner process from its fork to its end, all signals blocked. fds: its ends of the
 * n sockets. */
_Noreturn void wr_spawn_main(struct wr_slots *slots, int *fds, size_t n, pid_t parent,
                             const char *folder);

/* ---- spawn_job.c ---- */

/* The whole request is here. */
void wr_spawn_job_start(struct wr_spawn_job *job);
/* Asked from outside: the stop signal, and SIGKILL later; 0: SIGKILL at once. */
void wr_spawn_job_stop(struct wr_spawn_job *job, int64_t kill_after_ms);
/* Its leader was reaped. */
void wr_spawn_job_leader_ended(struct wr_spawn_job *job, int status,
                               const struct rusage *usage);
void wr_spawn_job_answer_if_over(struct wr_spawn_job *job);
void wr_spawn_job_kill(const struct wr_spawn_job *job, int sig); /* its group */
void wr_spawn_job_on_timer(void *arg);
void wr_spawn_job_set_timer(struct wr_spawn_job *job); /* for what comes next */
/* It said something. */
void wr_spawn_job_heard(struct wr_spawn_job *job);
/* Its timeout begins anew, for at least so long. */
void wr_spawn_job_extend(struct wr_spawn_job *job, int64_t ms);
/* Sends what stands in frames; the loop goes on with the rest. */
void wr_spawn_job_send(struct wr_spawn_job *job);
/* A frame beside the end's; left out when many wait already. */
void wr_spawn_job_add_frame(struct wr_spawn_job *job, enum wr_spawn_frame_kind kind,
                            const void *ptr, size_t len);
/* Bytes for the log, as frames; the oldest are left out when nobody reads them. */
void wr_spawn_job_add_output(struct wr_spawn_job *job, const char *bytes, size_t len);
void wr_spawn_job_ask_sock(struct wr_spawn_job *job);

/* ---- spawn_pipes.c ---- */

/* A watch for one of its pipes; false when out of memory. */
bool wr_spawn_watch_pipe(struct wr_spawn_job *job, int pipe);
/* Most commands end before anybody had to look at their pipes. Those of one that runs on
 * are watched; tried again later when out of memory. */
void wr_spawn_watch_pipes(struct wr_spawn_job *job, int64_t now);
#define WR_WATCH_AFTER_MS 5
/* Its leader ended: reads what there is, closes what is at its end, and the rest is
 * watched. */
void wr_spawn_settle_pipes(struct wr_spawn_job *job);
void wr_spawn_close_pipe(struct wr_spawn_job *j, int i);
/* The control socket of this run, which belongs to its user; without one the path stays
 * empty. */
void wr_spawn_open_control(struct wr_spawn_job *job);
/* What is in the pipes of its output now is read. */
void wr_spawn_drain_pipes(struct wr_spawn_job *job);
/* The same of the control socket. */
void wr_spawn_drain_control(struct wr_spawn_job *job);
/* Progress that waited for its time. */
void wr_spawn_send_progress(struct wr_spawn_job *job, int64_t now);
#define WR_PROGRESS_MS 200 /* between two frames of progress */

/* ---- spawn_command.c ---- */

/* What of the worker's environment commands may see; false when out of memory. */
bool wr_spawn_take_environment(struct wr_spawn *spawn);
/* Finds out whether vfork is one. */
void wr_spawn_try_vfork(struct wr_spawn *spawn);
/* Starts the command of the job's request: sets its pid, pipes and the slot's pgid.
 * Answers 0, or the errno that stopped it with end.start_step, and then nothing is left
 * open. */
int wr_spawn_start(struct wr_spawn_job *job);

/* ---- spawn_limits.c: between fork and exec, async-signal-safe calls only ---- */

/* Before the command's signal of its parent's death is set, as root if we are. 0 or the
 * errno. */
int wr_limits_apply(const struct wr_exec_limits *limits, int cgroup_procs_fd,
                    enum wr_exec_step *step);
int wr_limits_apply_last(const struct wr_exec_limits *limits);

/* ---- spawn_cgroup.c ---- */

/* Finds out where cgroups may be made. */
void wr_cgroup_look(struct wr_spawn *spawn);
/* The cgroup of a slot, made when it is first asked for: its folder, or -1. */
int wr_cgroup_open(struct wr_spawn_job *job);
void wr_cgroup_kill(const struct wr_spawn_job *job); /* all in it */
void wr_cgroup_remove_all(struct wr_spawn *spawn);
/* True if the kernel ended something for memory since the last call. */
bool wr_oom_happened(struct wr_spawn *spawn);

/* ---- spawn_strays.c ---- */

#define WR_SPAWNER_NAME "weir-spawner"
#define WR_SPAWN_KEY "WEIR_ATTEMPT_KEY"
/* WEIR_ATTEMPT_KEY=..., by which the descendants of one run are known. */
void wr_spawn_key(const struct wr_spawn_job *job, char *out, size_t out_len);

/* What the environment of a process says of the run it belongs to. */
struct wr_stray_says {
    unsigned long number; /* of the run; 0: it does not say */
    bool kept;            /* what that run leaves behind may stay */
};
/* proc: where that file system is. One that is in the middle of an exec is asked again
 * for a while. */
struct wr_stray_says wr_stray_ask(const char *proc, pid_t pid, pid_t spawner);

/* Looks at all children that are no leaders. Those whose run is over are killed; those of
 * `ending` (may be NULL) get SIGTERM. True if there are none that may be of `ending`. */
bool wr_strays_sweep(struct wr_spawn *spawn, const struct wr_spawn_job *ending);
void wr_strays_forget(struct wr_spawn *spawn, pid_t pid); /* it was reaped */

/* Its descendants may still run. */
static inline bool
wr_spawn_is_live(const struct wr_spawn_job *job)
{
    return job->phase == WR_SPAWN_RUNNING ||
           (job->phase == WR_SPAWN_ENDING && !job->stragglers_killed);
}

#endif
