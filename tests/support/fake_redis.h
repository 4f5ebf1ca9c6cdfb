/*
 * A scripted server on a Unix socket: it expects commands and answers bytes, in one
 * thread, for one connection after the other. What a real server does only on a bad day
 * (a half reply, a close, silence) it does when told.
 */
#ifndef SUPPORT_FAKE_REDIS_H
#define SUPPORT_FAKE_REDIS_H

#include <stdbool.h>

#include "redis/conn.h"

enum fake_step_kind {
    FAKE_END,    /* keeps the connection open until the other side closes it */
    FAKE_EXPECT, /* reads one command; words as text, blanks between; "*" fits all */
    FAKE_SEND,   /* writes these bytes */
    FAKE_CLOSE,  /* closes the connection; what follows is for the next one */
    FAKE_STALL,  /* neither reads nor writes until fake_redis_stop() */
};

struct fake_step {
    enum fake_step_kind kind;
    const char *text;
};

#define EXPECT(text)      \
    {                     \
        FAKE_EXPECT, text \
    }
#define SEND(text)      \
    {                   \
        FAKE_SEND, text \
    }
#define CLOSE            \
    {                    \
        FAKE_CLOSE, NULL \
    }
#define STALL            \
    {                    \
        FAKE_STALL, NULL \
    }
#define END            \
    {                  \
        FAKE_END, NULL \
    }
/* What a connection without name, password and database says first. */
#define GREETING EXPECT("PING"), SEND("+PONG\r\n")

struct fake_redis;

/* steps end with END and stay the caller's until stop. */
struct fake_redis *fake_redis_start(const struct fake_step *steps);
/* Ends the thread. False when a command came that was not expected (it is printed), or
 * steps were left over. */
bool fake_redis_stop(struct fake_redis *fake);
const char *fake_redis_socket(const struct fake_redis *fake);
/* Opens a connection to it. */
enum weir_err fake_redis_open(struct fake_redis *fake, int64_t deadline_ms,
                              struct wr_conn **out, struct weir_error *err);

#endif
