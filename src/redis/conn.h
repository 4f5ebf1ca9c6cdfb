/*
 * redis/conn.h - one connection to one server.
 *
 * Blocking calls with a deadline on the monotonic clock (wr_clock_ms()). Not
 * thread-safe: one thread at a time. Opened close-on-exec, with keepalive and
 * TCP_USER_TIMEOUT; a connection is called open only after the server answered
 * a PING within the deadline (connect() alone proves nothing).
 *
 * After any error from send or recv the connection is broken: its state on the
 * wire is unknown and it must be closed. An error *reply* does not break it.
 */
#ifndef WR_REDIS_CONN_H
#define WR_REDIS_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

#include "base/span.h"
#include "redis/reply.h"
#include "redis/url.h"

struct wr_conn;

struct wr_conn_options {
    const struct wr_url *url; /* borrowed until the connection is open */
    const char *name;         /* CLIENT SETNAME; NULL: none */
    size_t reply_max_bytes;   /* longer replies break the connection; 0: 256 MiB */
};

/*
 * Connects, AUTHs, SELECTs, SETNAMEs and PINGs.
 *
 * E_CONNECT   nothing answers there in time (text says where and why)
 * E_LOADING   it answers LOADING, MASTERDOWN or "max number of clients"
 * E_DENIED    NOAUTH, WRONGPASS, NOPERM (text says what to do)
 * E_SERVER    what answers is not a Redis
 * E_CONFIG    rediss:// or valkeys://: TLS is not built in yet
 */
enum weir_err wr_conn_open(const struct wr_conn_options *options, int64_t deadline_ms,
                           struct wr_conn **out, struct weir_error *err) WEIR_MUST_CHECK;
void wr_conn_close(struct wr_conn *conn);   /* NULL is allowed */
void wr_conn_abandon(struct wr_conn *conn); /* after fork: frees, writes nothing */

pid_t wr_conn_owner(const struct wr_conn *conn); /* the process that opened it */
int wr_conn_fd(const struct wr_conn *conn);      /* for poll(); stays the connection's */
int64_t wr_conn_idle_ms(const struct wr_conn *conn); /* since the last reply */
int64_t wr_conn_opened_ms(const struct wr_conn *conn);
bool wr_conn_is_broken(const struct wr_conn *conn);

/*
 * Sends one command of argc words. Several may be sent before the first is
 * received; replies come in the order of the commands. While the socket is full
 * it reads, so that two full pipes cannot lock each other.
 *
 * E_CONNECT   nothing of it was written: certainly not done
 * E_NO_REPLY  part of it was written: unknown
 */
enum weir_err wr_conn_send(struct wr_conn *conn, const struct wr_span *argv, size_t argc,
                           int64_t deadline_ms, struct weir_error *err) WEIR_MUST_CHECK;
/* One that goes out with the next one that is sent, in the same write. */
enum weir_err wr_conn_hold(struct wr_conn *conn, const struct wr_span *argv, size_t argc,
                           struct weir_error *err) WEIR_MUST_CHECK;
/* The same for one whose reply nobody waits for. */
enum weir_err wr_conn_hold_unheard(struct wr_conn *conn, const struct wr_span *argv,
                                   size_t argc, struct weir_error *err) WEIR_MUST_CHECK;
/* The same for one whose reply the server keeps to itself, so that it wakes nobody. For
 * who knows by `CLIENT REPLY ON` that the server allows this. After an error the
 * connection is to be closed. */
enum weir_err wr_conn_hold_mute(struct wr_conn *conn, const struct wr_span *argv,
                                size_t argc, struct weir_error *err) WEIR_MUST_CHECK;
/*
 * Receives the next reply, which may be an error reply: check wr_reply_kind().
 *
 * E_NO_REPLY  the connection broke, timed out, or sent garbage
 */
enum weir_err wr_conn_recv(struct wr_conn *conn, int64_t deadline_ms,
                           struct wr_reply **out, struct weir_error *err) WEIR_MUST_CHECK;
/* Sends a command whose reply is dropped when it comes, in its turn. E_LOADING when
 * sixteen of them are under way; else as wr_conn_send(). */
enum weir_err wr_conn_post(struct wr_conn *conn, const struct wr_span *argv, size_t argc,
                           int64_t deadline_ms, struct weir_error *err) WEIR_MUST_CHECK;
/* Every command sent has its reply read. */
bool wr_conn_is_idle(const struct wr_conn *conn);
/* True when a whole reply can be received without waiting: reads what the socket
 * has, never blocks. Also true when the connection is broken (recv then says so). */
bool wr_conn_has_reply(struct wr_conn *conn);
/* Waits for one until the deadline. True as above: also when the connection broke. */
bool wr_conn_wait_reply(struct wr_conn *conn, int64_t deadline_ms);
/* Send and receive. An error reply becomes a code by wr_reply_error(). */
enum weir_err wr_conn_call(struct wr_conn *conn, const struct wr_span *argv, size_t argc,
                           int64_t deadline_ms, struct wr_reply **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/* The same for at most 16 words given as C strings, NULL at the end. */
enum weir_err
wr_conn_do(struct wr_conn *conn, int64_t deadline_ms, struct wr_reply **out,
           struct weir_error *err, ...) WEIR_MUST_CHECK __attribute__((sentinel));

/*
 * What an error reply means (the table is in conn_error.c; docs/errors.md is made
 * from the same list): LOADING BUSY TRYAGAIN CLUSTERDOWN MASTERDOWN -> E_LOADING;
 * OOM -> E_FULL; MISCONF NOREPLICAS -> E_REFUSED; READONLY UNBLOCKED -> E_READONLY;
 * NOAUTH WRONGPASS NOPERM and the ACL texts of scripts -> E_DENIED;
 * WRONGTYPE, errors raised inside a script -> E_CORRUPT; NOSCRIPT -> E_BUG (script.c
 * handles it before); unknown -> E_SERVER. The server's own first line is quoted,
 * escaped, at most 160 bytes; words of a command that it repeats are left out, since
 * one of them may be a secret.
 */
enum weir_err wr_reply_error(const struct wr_reply *reply, struct weir_error *err);

#endif
