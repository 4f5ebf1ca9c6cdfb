/*
 * weir/error.h - how libweir reports failure.
 *
 * Every function that can fail returns an enum weir_err. The code says what
 * happened; its kind says what the caller should do about it.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to do after a failure. */
enum weir_err_kind {
    WEIR_KIND_OK,      /* it is done */
    WEIR_KIND_USAGE,   /* the call is wrong: fix the program; nothing was sent */
    WEIR_KIND_STATE,   /* the job or queue is in another state; nothing changed */
    WEIR_KIND_BUSY,    /* not now: the same call may work later; nothing changed */
    WEIR_KIND_UNKNOWN, /* sent, but no answer: it may or may not have happened */
    WEIR_KIND_BROKEN,  /* setup, permission, corruption or bug: a person must look */
};

/*
 * The one list of errors. The enum, the names, the texts, the exit statuses of
 * the command line and docs/errors.md are all made from it.
 *
 * X(name, kind, exit status, text)
 */
/* clang-format off */
#define WEIR_ERRORS(X) \
    X(OK,             OK,       0, "success") \
    X(E_ARG,          USAGE,   64, "invalid argument") \
    X(E_TOO_BIG,      USAGE,   65, "payload is larger than the queue allows") \
    X(E_DATA,         USAGE,   65, "the input cannot be read as what it should be") \
    X(E_NO_JOB,       STATE,    1, "no such job") \
    X(E_NO_QUEUE,     STATE,    1, "no such queue") \
    X(E_EXISTS,       STATE,    1, "another job with this id exists") \
    X(E_UNIQUE,       STATE,    1, "another job holds this unique key") \
    X(E_WRONG_STATE,  STATE,    1, "the job is in another state") \
    X(E_WRONG_ENGINE, STATE,   78, "the queue is stored by another engine") \
    X(E_LEASE_LOST,   STATE,    1, "the lease on the job is no longer ours") \
    X(E_JOB_FAILED,   STATE,    1, "the job did not succeed") \
    X(E_TIMEOUT,      STATE,  124, "the time to wait ran out") \
    X(E_CHECK_FAILED, STATE,    1, "a check failed") \
    X(E_POOL_FULL,    BUSY,    75, "too many connections: every one is in use") \
    X(E_CONNECT,      BUSY,    69, "cannot connect to Redis") \
    X(E_LOADING,      BUSY,    75, "Redis is busy or still loading") \
    X(E_FULL,         BUSY,    75, "Redis is full (maxmemory)") \
    X(E_REFUSED,      BUSY,    75, "Redis refuses writes for now") \
    X(E_NO_MEMORY,    BUSY,    75, "out of memory") \
    X(E_NO_REPLY,     UNKNOWN, 76, "sent, but Redis did not answer: it may have happened") \
    X(E_DENIED,       BROKEN,  77, "Redis refused the credentials or the right to do this") \
    X(E_READONLY,     BROKEN,  77, "this Redis is a read-only replica") \
    X(E_SERVER,       BROKEN,  69, "the server is not a Redis or Valkey that weir can use") \
    X(E_CONFIG,       BROKEN,  78, "the configuration is wrong") \
    X(E_IO,           BROKEN,  74, "input or output failed") \
    X(E_CORRUPT,      BROKEN,  70, "stored data does not make sense") \
    X(E_NO_WORKER,    STATE,    1, "no such worker") \
    X(E_NO_CRON,      STATE,    1, "no such cron entry") \
    X(E_CHANGED,      STATE,   75, "somebody else changed it meanwhile") \
    X(E_CANCELLED,    STATE,    1, "the job was cancelled") \
    X(E_EXPIRED,      STATE,    1, "the job expired before it could start") \
    X(E_BUG,          BROKEN,  70, "a bug in weir")
/* clang-format on */

enum weir_err {
#define X(name, kind, exit_status, text) WEIR_##name,
    WEIR_ERRORS(X)
#undef X
};

/*
 * The details of one failure, for people. Optional everywhere: a caller that
 * does not want them passes NULL. Filled only when the call fails.
 */
struct weir_error {
    enum weir_err code;
    int sys_errno;  /* 0 if no system call was at fault */
    char text[256]; /* one line, no newline: "connect /run/redis.sock: ..." */
};

/* "E_NO_JOB": stable, for logs and metric labels. */
WEIR_API const char *weir_err_name(enum weir_err code);

/* "no such job": may change between versions. */
WEIR_API const char *weir_err_text(enum weir_err code);

WEIR_API enum weir_err_kind weir_err_kind_of(enum weir_err code);

/* The exit status of the command line for this code; see weir(1). */
WEIR_API int weir_err_exit_status(enum weir_err code);

#ifdef __cplusplus
}
#endif

#endif
