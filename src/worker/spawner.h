/*
 * worker/spawner.h - the process that starts commands for one worker child.
 *
 * Forked by the child before it has threads, so that fork is cheap and safe here and
 * PR_SET_PDEATHSIG means what it says. Single-threaded: an event loop over one socket
 * pair per slot, the pipes of the running commands, and their timers. When the child dies
 * (EOF on a socket) it kills every group and exits. spawn.h is its inside.
 *
 * A command runs in a session of its own with 0, 1, 2 and nothing else open, all signals
 * at their defaults. What it leaves in its process group when it ends gets SIGTERM, and
 * SIGKILL 0.7 s later; an answer never waits a second for it. The spawner is a child
 * subreaper, so that what left the group comes back to it; such a process is known by
 * WEIR_ATTEMPT_KEY in its environment and killed with its run. One that has wiped its
 * environment is killed when every run that was under way when it was first seen is over,
 * which on a busy worker may be later. Processes started for it by others (at, systemd,
 * docker) are out of reach.
 *
 * A job over a slot's socket: the handler's thread writes one request (header struct,
 * then argv, environment, payload) and blocks reading one answer (header struct, then
 * result, then the tail of stderr). A kill of another thread is one small write behind
 * the whole request.
 */
#ifndef WR_WORKER_SPAWNER_H
#define WR_WORKER_SPAWNER_H

#include <stddef.h>
#include <sys/types.h>

#include <weir/error.h>

#include "worker/handler.h"
#include "worker/slots.h"

struct wr_spawner;

/* Forks it. slots->slot[i].pgid are written by it, i < n_slots: the number of a handler's
 * slot, not of the entry that holds its job. Call before any thread, from the one that
 * lives longest. Commands get the environment of this moment less the worker's secrets:
 * what begins with WEIR_, REDIS or VALKEY. E_NO_MEMORY: also of descriptors. */
enum weir_err
wr_spawner_start(struct wr_slots *slots, size_t n_slots, struct wr_spawner **out,
                 struct weir_error *err) WEIR_MUST_CHECK;
/* Closes the sockets (it kills what runs and exits) and waits for it, at most 5 s, then
 * SIGKILL. NULL is allowed. */
void wr_spawner_stop(struct wr_spawner *spawner);
pid_t wr_spawner_pid(const struct wr_spawner *spawner);
/* The one of this process, used by handler_exec.c; set once by the child at its start. */
void wr_spawner_set_current(struct wr_spawner *spawner);
struct wr_spawner *wr_spawner_current(void);

enum wr_exec_limit {
    WR_LIMIT_AS,
    WR_LIMIT_FSIZE,
    WR_LIMIT_CORE,
    WR_LIMIT_CPU,
    WR_LIMIT_NOFILE,
    WR_LIMIT_NPROC,
    WR_LIMITS
};

/* What a command gets between fork and exec. Zero, and -1 for umask, change nothing. */
struct wr_exec_limits {
    int64_t values[WR_LIMITS]; /* as in struct weir_exec_options */
    int nice, ioprio_class, ioprio_level, umask, oom_score_adj;
    bool new_privs, switch_user, switch_group;
    uid_t uid;
    gid_t gid, *groups;
    size_t groups_n;
};

/* What a command did. */
struct wr_exec_end {
    int exit_code;   /* -1: ended by a signal, or never started */
    int signal;      /* 0: none */
    int start_errno; /* exec or fork failed with this; 0: it started */
    bool timed_out;
    int64_t wall_ms, user_us, sys_us, max_rss_kib;
    int64_t bytes_in, bytes_out, bytes_err;
    bool out_truncated;
};

/* Runs argv with payload on stdin; blocks until it is over and its pipes are drained.
 * argv[0] without a slash is looked for in PATH; no shell is ever used. env: NAME=VALUE
 * strings put before the inherited environment. timeout_ms: 0: none. result: what is
 * appended is cut at result_max bytes. stderr_tail: at most 64 KiB, head and tail. Any
 * thread, one call per slot at a time. E_NO_MEMORY: nothing ran, or what it said is lost;
 * E_BUG: the spawner is gone, now and for good. */
enum weir_err
wr_spawner_run(struct wr_spawner *spawner, size_t slot, const char *const *argv,
               const char *const *env, struct wr_span payload, int64_t timeout_ms,
               int64_t kill_after_ms, size_t result_max, struct wr_buf *result,
               struct wr_buf *stderr_tail, struct wr_exec_end *end,
               struct weir_error *err) WEIR_MUST_CHECK;
/* Optional, before run, by the same thread: from here on a kill counts for the run to
 * come. Look whether it shall run at all after this, and no kill is missed. */
void wr_spawner_arm(struct wr_spawner *spawner, size_t slot);
/* From another thread: SIGTERM to the group, SIGKILL after kill_after_ms (0: SIGKILL at
 * once). Does not block for long. Nothing happens if the slot runs nothing. */
void wr_spawner_kill(struct wr_spawner *spawner, size_t slot, int64_t kill_after_ms);

#endif
