/*
 * redis/script.h - runs one Lua script on one connection.
 *
 * EVALSHA; after NOSCRIPT the script is loaded and the call repeated, three times
 * at most. The SHA-1 of a body is computed once per process.
 */
#ifndef WR_REDIS_SCRIPT_H
#define WR_REDIS_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "base/span.h"
#include "redis/conn.h"
#include "redis/reply.h"

/* Made by tools/luapack from lua/; see the generated scripts.gen.h. */
struct wr_script {
    const char *name; /* "list/ack" */
    const char *body; /* with its includes put in */
    size_t body_len;
    const char *sha1; /* 40 hex digits, computed by luapack */
    size_t nkeys;
    const unsigned char *keys;   /* which ones, as enum wr_queue_key; NULL: no queue's */
    size_t nargs;                /* fixed arguments; more may follow when `repeats` */
    size_t repeats;              /* arguments per item after the fixed ones; 0: none */
    const char *const *statuses; /* the @returns words, NULL at the end */
};

/*
 * Runs the script. argv holds nkeys keys, then the arguments, argc in all. *out is
 * the whole reply, an array whose first element is one of the @returns words;
 * *status its index.
 *
 * E_NO_REPLY  the connection broke: the script may have run
 * E_CORRUPT   the script answered something its contract does not name
 * or what wr_reply_error() makes of an error reply
 */
enum weir_err wr_script_run(struct wr_conn *conn, const struct wr_script *script,
                            const struct wr_span *argv, size_t argc, int64_t deadline_ms,
                            struct wr_reply **out, unsigned *status,
                            struct weir_error *err) WEIR_MUST_CHECK;

/* The two halves of it, to have several under way on one connection. After
 * NOSCRIPT recv loads the script, and answers E_LOADING once: send it again. */
enum weir_err wr_script_send(struct wr_conn *conn, const struct wr_script *script,
                             const struct wr_span *argv, size_t argc, int64_t deadline_ms,
                             struct weir_error *err) WEIR_MUST_CHECK;
/* As send, but it goes with the next command on this connection, in one write. mute: the
 * server keeps its reply to itself, see wr_conn_hold_mute(). */
enum weir_err wr_script_hold(struct wr_conn *conn, const struct wr_script *script,
                             const struct wr_span *argv, size_t argc, bool mute,
                             struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_script_recv(struct wr_conn *conn, const struct wr_script *script,
                             int64_t deadline_ms, struct wr_reply **out, unsigned *status,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
