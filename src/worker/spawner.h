/*
 * worker/spawner.h - the process that starts commands for one worker child.
 *
 * Forked by the child before it has threads, so that fork is cheap and safe here and
 * PR_SET_PDEATHSIG means what it says. Single-threaded: an event loop over one socket
 * pair per slot, the pipes of the running commands, and their timers. When the child dies
 * (EOF on a socket) it kills every group and exits. spawn.h is its inside.
 *
 * A command runs in a session of its own with 0, 1, 2, the control pipe as 3 if asked
 * for, and nothing else open, all signals at their defaults. What it leaves in its
 * process group when it ends gets SIGTERM, and SIGKILL 0.7 s later; an answer never waits
 * a second for it. The spawner is a child subreaper, so that what left the group comes
 * back to it; such a process is known by WEIR_ATTEMPT_KEY in its environment and killed
 * with its run. One that has wiped its environment is killed when every run that was
 * under way when it was first seen is over, which on a busy worker may be later.
 * Processes started for it by others (at, systemd, docker) are out of reach.
 *
 * A job over a slot's socket: the handler's thread writes one request (header struct,
 * then argv, environment, payload) and reads frames: what the command says while it runs,
 * and at last its end with the result and what is kept of stderr. A kill of another
 * thread is one small write behind the whole request.
 */
#ifndef WR_WORKER_SPAWNER_H
#define WR_WORKER_SPAWNER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

#include "base/buf.h"
#include "worker/exec.h"
#include "worker/slots.h"

struct wr_folder_pool;
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

/* The folder, made by start, in which handlers make the working folders of their
 * commands: only this user can make files there. Removed with all in it when the spawner
 * ends. */
const char *wr_spawner_folder(const struct wr_spawner *spawner);
/* Those in it. */
struct wr_folder_pool *wr_spawner_folders(struct wr_spawner *spawner);
/* Makes it again, if somebody has removed it. False with errno. Any thread. */
bool wr_spawner_restore_folder(struct wr_spawner *spawner);

/* Runs a command; blocks until it is over and its pipes are drained. result and log are
 * appended to: what is kept of standard output, and at most 64 KiB of standard error,
 * head and tail. events may be NULL. Any thread, one call per slot at a time.
 * E_NO_MEMORY: nothing ran, or what it said is lost; E_BUG: the spawner is gone, now and
 * for good. */
enum weir_err
wr_spawner_run(struct wr_spawner *spawner, size_t slot, const struct wr_exec_run *run,
               const struct wr_exec_events *events, struct wr_buf *result,
               struct wr_buf *log, struct wr_exec_end *end,
               struct weir_error *err) WEIR_MUST_CHECK;
/* Starts a command that stays, and hands its standard input, output and error over: the
 * caller's, to close; they do not block. Of `run` times, payload and output do not count.
 * The slot belongs to it until wr_spawner_close(). *start: start_errno is not 0 if it
 * could not be started, and then nothing is open. Errors as of run. */
enum weir_err
wr_spawner_open(struct wr_spawner *spawner, size_t slot, const struct wr_exec_run *run,
                int fds[3], struct wr_exec_end *start,
                struct weir_error *err) WEIR_MUST_CHECK;
/* Of what was opened: readable when it has ended. */
int wr_spawner_seat_fd(const struct wr_spawner *spawner, size_t slot);
/* Waits for the end of what was opened. E_BUG as of run. */
enum weir_err
wr_spawner_close(struct wr_spawner *spawner, size_t slot, struct wr_exec_end *end,
                 struct weir_error *err) WEIR_MUST_CHECK;
/* Optional, before run or open, by the same thread: from here on a kill counts for the
 * run to come. Look whether it shall run at all after this, and no kill is missed. */
void wr_spawner_arm(struct wr_spawner *spawner, size_t slot);
/* From another thread: the stop signal to the group, SIGKILL after kill_after_ms (0:
 * SIGKILL at once). Does not block for long. Nothing happens if the slot runs nothing. */
void wr_spawner_kill(struct wr_spawner *spawner, size_t slot, int64_t kill_after_ms);

#endif
