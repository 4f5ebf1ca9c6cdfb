#include "redis/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/error.h"

#define TRIES 3

static bool
is_noscript(const struct wr_reply *reply)
{
    struct wr_span s = wr_reply_span(reply);

    return wr_reply_kind(reply) == WR_REPLY_ERROR && s.len >= 8 &&
           memcmp(s.ptr, "NOSCRIPT", 8) == 0;
}

typedef enum weir_err (*hold_fn)(struct wr_conn *conn, const struct wr_span *argv,
                                 size_t argc, struct weir_error *err);

/* hold: it goes with the next command; NULL: now. */
static enum weir_err
write_call(struct wr_conn *conn, const struct wr_script *script,
           const struct wr_span *argv, size_t argc, int64_t deadline_ms, hold_fn hold,
           struct weir_error *err)
{
    struct wr_span some[64], *words = argc + 3 <= 64 ? some : NULL;
    char nkeys[WR_DIGITS_MAX];
    enum weir_err rc;

    if (!words && !(words = malloc((argc + 3) * sizeof(*words))))
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "%s", script->name);
    words[0] = wr_span_str("EVALSHA");
    words[1] = (struct wr_span){script->sha1, 40};
    words[2] = (struct wr_span){nkeys, wr_digits(script->nkeys, nkeys)};
    if (argc > 0)
        memcpy(words + 3, argv, argc * sizeof(*words));
    rc = hold ? hold(conn, words, argc + 3, err)
              : wr_conn_send(conn, words, argc + 3, deadline_ms, err);
    if (words != some)
        free(words);
    return rc;
}

enum weir_err
wr_script_send(struct wr_conn *conn, const struct wr_script *script,
               const struct wr_span *argv, size_t argc, int64_t deadline_ms,
               struct weir_error *err)
{
    return write_call(conn, script, argv, argc, deadline_ms, NULL, err);
}

enum weir_err
wr_script_hold(struct wr_conn *conn, const struct wr_script *script,
               const struct wr_span *argv, size_t argc, bool mute, struct weir_error *err)
{
    return write_call(conn, script, argv, argc, 0,
                      mute ? wr_conn_hold_mute : wr_conn_hold, err);
}

static enum weir_err
load(struct wr_conn *conn, const struct wr_script *script, int64_t deadline_ms,
     struct weir_error *err)
{
    struct wr_span words[] = {
        wr_span_str("SCRIPT"), wr_span_str("LOAD"), {script->body, script->body_len}};
    struct wr_reply *reply;
    enum weir_err rc;

    /* The next reply belongs to another command under way. */
    if (!wr_conn_is_idle(conn))
        return wr_conn_post(conn, words, 3, deadline_ms, err);
    rc = wr_conn_call(conn, words, 3, deadline_ms, &reply, err);
    wr_reply_free(reply);
    return rc;
}

static enum weir_err
read_status(const struct wr_script *script, const struct wr_reply *reply,
            unsigned *status, struct weir_error *err)
{
    const struct wr_reply *word = wr_reply_at(reply, 0);

    if (wr_reply_kind(reply) == WR_REPLY_ERROR)
        return wr_reply_error(reply, err);
    for (unsigned i = 0; script->statuses[i]; i++) {
        if (wr_reply_is(word, script->statuses[i])) {
            *status = i;
            return WEIR_OK;
        }
    }
    return wr_fail(err, WEIR_E_CORRUPT, 0, "%s answered a word outside its contract",
                   script->name);
}

/* *missing: the server did not know the script; it has been loaded. */
static enum weir_err
receive(struct wr_conn *conn, const struct wr_script *script, int64_t deadline_ms,
        struct wr_reply **out, unsigned *status, bool *missing, struct weir_error *err)
{
    enum weir_err rc = wr_conn_recv(conn, deadline_ms, out, err);

    *missing = false;
    if (rc != WEIR_OK)
        return rc;
    *missing = is_noscript(*out);
    rc = *missing ? load(conn, script, deadline_ms, err)
                  : read_status(script, *out, status, err);
    if (*missing || rc != WEIR_OK) {
        wr_reply_free(*out);
        *out = NULL;
    }
    return rc;
}

enum weir_err
wr_script_recv(struct wr_conn *conn, const struct wr_script *script, int64_t deadline_ms,
               struct wr_reply **out, unsigned *status, struct weir_error *err)
{
    bool missing = false;
    enum weir_err rc = receive(conn, script, deadline_ms, out, status, &missing, err);

    if (rc == WEIR_OK && missing)
        return wr_fail(err, WEIR_E_LOADING, 0, "%s: loaded, send it again", script->name);
    return rc;
}

enum weir_err
wr_script_run(struct wr_conn *conn, const struct wr_script *script,
              const struct wr_span *argv, size_t argc, int64_t deadline_ms,
              struct wr_reply **out, unsigned *status, struct weir_error *err)
{
    *out = NULL;
    for (int i = 0; i < TRIES; i++) {
        bool missing = false;
        enum weir_err rc = wr_script_send(conn, script, argv, argc, deadline_ms, err);

        if (rc == WEIR_OK)
            rc = receive(conn, script, deadline_ms, out, status, &missing, err);
        if (rc != WEIR_OK || !missing)
            return rc;
    }
    return wr_fail(err, WEIR_E_LOADING, 0, "%s: the server forgets it again and again",
                   script->name);
}
