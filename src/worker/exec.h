/*
 * worker/exec.h - one run of a command, as the spawner is asked for it and as it tells
 * what became of it. Plain data, no functions.
 */
#ifndef WR_WORKER_EXEC_H
#define WR_WORKER_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/span.h"

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

/* Where standard output goes. */
enum wr_exec_out {
    WR_OUT_HEAD, /* kept: its first result_max bytes */
    WR_OUT_TAIL, /* kept: its last result_max bytes */
    WR_OUT_LOG,  /* into what is kept of standard error */
};

struct wr_exec_run {
    const char *const *argv; /* NULL at the end; without a slash argv[0] is looked for in
                                PATH; never a shell */
    const char *file;        /* what is run instead of argv[0]; NULL: that */
    const char *const *env;  /* NAME=VALUE, NULL at the end; the first of a name counts */
    bool clean;              /* else what the spawner inherited comes after env */
    const char *cwd;         /* NULL: the spawner's */
    const struct wr_exec_limits *limits; /* NULL: none */
    struct wr_span payload;
    int64_t timeout_ms, idle_ms; /* 0: none */
    int64_t kill_after_ms;
    int stop_signal; /* 0: SIGTERM */
    bool keep_stragglers;
    enum wr_exec_out out;
    size_t result_max;
    bool control;   /* 3 is the control pipe, and there is a control socket */
    bool live;      /* on_output is called */
    bool hand_over; /* its pipes go to who asked, see wr_spawner_open() */
};

/* Why the spawner stopped it. */
enum wr_exec_stop {
    WR_EXEC_NOT_STOPPED,
    WR_EXEC_KILLED,  /* it was asked to */
    WR_EXEC_TIMEOUT, /* ran longer than it may */
    WR_EXEC_IDLE,    /* said nothing for too long */
};

/* What failed when it could not be started. */
enum wr_exec_step {
    WR_STEP_FORK, /* pipes, memory, fork: the worker's trouble */
    WR_STEP_LIMITS,
    WR_STEP_USER,
    WR_STEP_FOLDER,
    WR_STEP_EXEC,
};

/* The last word of a command about its own end, on the control pipe. */
enum wr_exec_said {
    WR_SAID_NOTHING,
    WR_SAID_SNOOZE,
    WR_SAID_PERMANENT,
    WR_SAID_RETRY,
};

/* What a command did. */
struct wr_exec_end {
    int exit_code;   /* -1: ended by a signal, or never started */
    int signal;      /* 0: none */
    int start_errno; /* exec or fork failed with this; 0: it started */
    enum wr_exec_step start_step;
    enum wr_exec_stop stop;
    pid_t pid;
    bool core, out_of_memory; /* the kernel ended something for memory just then */
    bool
        alone; /* it started, and when its leader ended no other process was left of it */
    int64_t wall_ms, user_us, sys_us, max_rss_kib;
    int64_t bytes_in, bytes_out, bytes_err;
    bool out_truncated, err_truncated;

    /* From the control pipe. */
    enum wr_exec_said said;
    int64_t delay_ms;   /* of snooze and retry; -1: not said */
    int64_t lines;      /* control lines */
    bool push_lost;     /* it asked for more follow-up jobs than are kept */
    char progress[256]; /* the last; empty: none */
    char why[512];      /* of what it said, or the error line; empty: none */
    char tags[256];     /* one line, blanks between */
    char result_file[1024];
};

/* What a command says while it runs; called on the thread that waits for its end. A flood
 * is thinned out: of progress the newest counts, of output parts may be missing. */
struct wr_exec_events {
    void *context;
    void (*on_progress)(void *context, const char *text); /* "40 resizing", "- text" */
    void (*on_push)(void *context, const char *lines, size_t len); /* JSON; at its end */
    void (*on_extend)(void *context, int64_t total_ms); /* its timeout is now this */
    /* What belongs into the log; left_out: bytes that are missing before these. */
    void (*on_output)(void *context, const char *bytes, size_t len, int64_t left_out);
};

#endif
