/* What people decide and look at: cancel, replay, purge, pause, limits, audit, pages. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "store/call.h"
#include "store/scripts.gen.h"

static const char *const cancel_words[] = {"READY", "DELAYED", "FLAGGED", "DEAD",
                                           "DONE",  "GONE",    "BROKEN",  NULL};
static const char *const order_words[] = {"", "run", "quiet", "stop", NULL};
static const char *const replay_words[] = {"OK", "GONE", "NOBODY", "UNIQUE", NULL};

/* Speed only, so failures do not matter: the flag is read at the next renewal. */
void
wr_store_tell_worker(struct wr_store *store, struct wr_span worker, const char *what)
{
    char name[100], key[WR_KEY_MAX];
    struct wr_call c;

    if (worker.len == 0 || worker.len >= sizeof(name))
        return;
    memcpy(name, worker.ptr, worker.len);
    name[worker.len] = '\0';
    wr_key_hint(key, wr_store_namespace(store), name);
    wr_call_init(&c, store, NULL, wr_pair_hint);
    wr_call_key(&c, key);
    wr_call_str(&c, what);
    if (wr_call_run(&c, NULL) != WEIR_OK)
        c.failed = true;
    wr_call_fini(&c);
}

enum weir_err
wr_store_cancel(struct wr_store *store, struct wr_queue *queue, const struct wr_span *ids,
                size_t n, enum wr_cancelled *out, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_cancel);
    wr_call_now(&c);
    for (size_t i = 0; i < n; i++)
        wr_call_arg(&c, ids[i]);
    rc = wr_call_run(&c, err);
    for (size_t i = 0; i < n && rc == WEIR_OK; i++) {
        int word = wr_call_word(&c, 1 + 2 * i, cancel_words);

        if (word < 0)
            rc = wr_fail(err, WEIR_E_CORRUPT, 0, "cancel: odd answer");
        else
            out[i] = (enum wr_cancelled)word;
        if (word == WR_CANCEL_FLAGGED)
            wr_store_tell_worker(store, wr_reply_span(wr_reply_at(c.reply, 2 + 2 * i)),
                                 "cancel");
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_reschedule(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
                    struct wr_span due, bool *delayed, int64_t *due_ms,
                    struct weir_error *err)
{
    int len = (int)(id.len < 100 ? id.len : 100);
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_reschedule);
    wr_call_now(&c);
    wr_call_arg(&c, id);
    wr_call_arg(&c, due);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK && wr_call_is(&c, "GONE"))
        rc = wr_fail(err, WEIR_E_NO_JOB, 0, "no job %.*s in queue %s", len,
                     (const char *)id.ptr, queue->name);
    else if (rc == WEIR_OK && wr_call_is(&c, "BROKEN"))
        rc = wr_fail(err, WEIR_E_CORRUPT, 0, "job %.*s has a record but no place", len,
                     (const char *)id.ptr);
    else if (rc == WEIR_OK && wr_call_is(&c, "OTHER")) {
        struct wr_span place = wr_reply_span(wr_reply_at(c.reply, 1));

        rc = wr_fail(err, WEIR_E_WRONG_STATE, 0, "job %.*s does not wait, it is %.*s",
                     len, (const char *)id.ptr, (int)place.len, (const char *)place.ptr);
    } else if (rc == WEIR_OK && wr_call_is(&c, "BEHIND")) {
        struct wr_span before = wr_reply_span(wr_reply_at(c.reply, 1));

        rc = wr_fail(err, WEIR_E_WRONG_STATE, 0,
                     "job %.*s waits for the end of %.*s, which has the same order key",
                     len, (const char *)id.ptr,
                     (int)(before.len < 100 ? before.len : 100),
                     (const char *)before.ptr);
    } else if (rc == WEIR_OK) {
        *delayed = wr_call_is(&c, "DELAYED");
        *due_ms = *delayed ? wr_reply_int(wr_reply_at(c.reply, 1)) : 0;
    }
    wr_call_fini(&c);
    return rc;
}

/* replay and purge: word, how many moved, then from element `first` on the notes. */
static enum weir_err
move_dead(struct wr_store *store, struct wr_queue *queue,
          const struct wr_script *const *pair, size_t first, const struct wr_span *ids,
          size_t n, int64_t before_ms, enum wr_replayed *out, size_t *moved,
          struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *moved = 0;
    if (out)
        memset(out, 0, n * sizeof(*out)); /* WR_REPLAY_OK */
    wr_call_init(&c, store, queue, pair);
    wr_call_int(&c, (int64_t)n);
    if (before_ms > 0)
        wr_call_int(&c, before_ms);
    else
        wr_call_str(&c, "");
    if (pair == wr_pair_replay)
        wr_call_str(&c, "0");
    for (size_t i = 0; ids && i < n; i++)
        wr_call_arg(&c, ids[i]);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK)
        *moved = (size_t)wr_reply_int(wr_reply_at(c.reply, 1));
    for (size_t i = first; rc == WEIR_OK && ids && out && i + 2 < wr_reply_len(c.reply);
         i += 3) {
        int64_t at = wr_reply_int(wr_reply_at(c.reply, i));
        int word = wr_call_word(&c, i + 1, replay_words);

        if (at < 0 || (size_t)at >= n || word < 0)
            rc = wr_fail(err, WEIR_E_CORRUPT, 0, "%s: odd note", c.script->name);
        else
            out[at] = (enum wr_replayed)word;
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_replay(struct wr_store *store, struct wr_queue *queue, const struct wr_span *ids,
                size_t n, int64_t before_ms, enum wr_replayed *out, size_t *moved,
                struct weir_error *err)
{
    return move_dead(store, queue, wr_pair_replay, 3, ids, n, before_ms, out, moved, err);
}

enum weir_err
wr_store_replay_page(struct wr_store *store, struct wr_queue *queue, size_t n,
                     int64_t before_ms, size_t skip, size_t *looked, size_t *moved,
                     struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *looked = *moved = 0;
    wr_call_init(&c, store, queue, wr_pair_replay);
    wr_call_int(&c, (int64_t)n);
    if (before_ms > 0)
        wr_call_int(&c, before_ms);
    else
        wr_call_str(&c, "");
    wr_call_int(&c, (int64_t)skip);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        *moved = (size_t)wr_reply_int(wr_reply_at(c.reply, 1));
        *looked = (size_t)wr_reply_int(wr_reply_at(c.reply, 2));
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_purge(struct wr_store *store, struct wr_queue *queue, const struct wr_span *ids,
               size_t n, int64_t before_ms, enum wr_replayed *out, size_t *moved,
               struct weir_error *err)
{
    return move_dead(store, queue, wr_pair_purge, 2, ids, n, before_ms, out, moved, err);
}

enum weir_err
wr_store_pause(struct wr_store *store, struct wr_queue *queue, const char *who,
               const char *why, bool *was, struct weir_error *err)
{
    struct wr_buf by = {0}, reason = {0};
    struct wr_call c;
    enum weir_err rc;

    wr_text_given_word_encode(&by, wr_span_str(who));
    wr_text_given_word_encode(&reason, wr_span_str(why ? why : ""));
    wr_call_init(&c, store, queue, wr_pair_pause);
    wr_call_now(&c);
    wr_call_arg(&c, by.len > 0 ? wr_buf_span(&by) : wr_span_str("-"));
    wr_call_arg(&c, reason.len > 0 ? wr_buf_span(&reason) : wr_span_str("-"));
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK && was)
        *was = wr_call_is(&c, "AGAIN");
    wr_call_fini(&c);
    wr_buf_fini(&by);
    wr_buf_fini(&reason);
    return rc;
}

enum weir_err
wr_store_resume(struct wr_store *store, struct wr_queue *queue, bool *was,
                struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_resume);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK && was)
        *was = wr_call_is(&c, "AGAIN");
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_order(struct wr_store *store, const char *worker, const struct wr_told *told,
               const char *by, bool *known, enum wr_order *before, struct weir_error *err)
{
    char key[WR_KEY_MAX];
    struct wr_call c;
    enum weir_err rc;
    int word = 0;

    wr_key_worker(key, wr_store_namespace(store), worker);
    wr_call_init(&c, store, NULL, wr_pair_order);
    wr_call_key(&c, key);
    wr_call_now(&c);
    wr_call_str(&c, order_words[told->order]);
    wr_call_str(&c, by);
    wr_call_int(&c, WR_ORDER_KEEP_MS);
    if (told->grace_ms >= 0)
        wr_call_int(&c, told->grace_ms);
    else
        wr_call_str(&c, "");
    rc = wr_call_run(&c, err);
    *known = rc == WEIR_OK && wr_call_is(&c, "OK");
    if (*known)
        word = wr_call_word(&c, 1, order_words);
    *before = word > 0 ? (enum wr_order)word : WR_ORDER_NONE;
    wr_call_fini(&c);
    if (*known)
        wr_store_tell_worker(store, wr_span_str(worker), "order");
    return rc;
}

static void
add_limit(struct wr_call *c, const char *name, int64_t value)
{
    if (value < 0)
        return;
    wr_call_str(c, name);
    wr_call_int(c, value);
}

enum weir_err
wr_store_create(struct wr_store *store, struct wr_queue *queue,
                const struct wr_limits *limits, bool *made, struct weir_error *err)
{
    struct wr_channel mark;
    struct wr_call c;
    enum weir_err rc;

    wr_channel_renew(&mark);
    wr_call_init(&c, store, queue, wr_pair_create);
    wr_call_str(&c, mark.name);
    if (limits) {
        add_limit(&c, "payload_max", limits->payload_max);
        add_limit(&c, "kept_max", limits->kept_max);
        add_limit(&c, "kept_bytes_max", limits->kept_bytes_max);
    }
    wr_call_str(&c, limits && limits->engine ? "engine" : "engine_if_new");
    wr_call_str(&c, limits && limits->engine ? limits->engine : wr_store_engine(store));
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK && made)
        *made = wr_call_is(&c, "MADE");
    wr_call_fini(&c);
    if (rc == WEIR_OK)
        rc = wr_store_enroll(store, queue, err);
    return rc;
}

enum weir_err
wr_store_configure(struct wr_store *store, struct wr_queue *queue,
                   const struct wr_span *pairs, size_t n, struct weir_error *err)
{
    struct wr_channel mark;
    struct wr_call c;
    enum weir_err rc;

    wr_channel_renew(&mark);
    wr_call_init(&c, store, queue, wr_pair_create);
    wr_call_str(&c, mark.name);
    wr_call_str(&c, "engine_if_new");
    wr_call_str(&c, wr_store_engine(store));
    for (size_t i = 0; i < 2 * n; i++)
        wr_call_arg(&c, pairs[i]);
    rc = wr_call_run(&c, err);
    wr_call_fini(&c);
    if (rc == WEIR_OK)
        rc = wr_store_enroll(store, queue, err);
    return rc;
}

/* Runs a script that only looks; *out takes the reply. */
static enum weir_err
look(struct wr_call *c, struct wr_reply **out, struct weir_error *err)
{
    enum weir_err rc = wr_call_run(c, err);

    *out = NULL;
    if (rc == WEIR_OK) {
        *out = c->reply;
        c->reply = NULL;
    }
    return rc;
}

enum weir_err
wr_store_drop(struct wr_store *store, struct wr_queue *queue, int64_t recent_ms,
              bool only_look, struct wr_reply **out, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_drop);
    wr_call_now(&c);
    wr_call_int(&c, recent_ms);
    wr_call_str(&c, only_look ? "1" : "");
    rc = look(&c, out, err);
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_audit(struct wr_store *store, struct wr_queue *queue, struct wr_reply **out,
               struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_audit);
    wr_call_now(&c);
    rc = look(&c, out, err);
    wr_call_fini(&c);
    return rc;
}

static enum weir_err
inspect(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
        size_t bytes_max, bool over, struct wr_reply **out, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_inspect);
    wr_call_now(&c);
    wr_call_arg(&c, id);
    wr_call_int(&c, (int64_t)bytes_max);
    rc = look(&c, out, err);
    if (rc == WEIR_OK && wr_call_is(&c, "GONE") &&
        !(over && wr_reply_span(wr_reply_at(*out, 2)).len > 0)) {
        wr_reply_free(*out);
        *out = NULL;
        rc = wr_fail(err, WEIR_E_NO_JOB, 0, "no such job in queue %s", queue->name);
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_inspect(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
                 size_t bytes_max, struct wr_reply **out, struct weir_error *err)
{
    return inspect(store, queue, id, bytes_max, false, out, err);
}

enum weir_err
wr_store_inspect_over(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
                      struct wr_reply **out, struct weir_error *err)
{
    return inspect(store, queue, id, 0, true, out, err);
}

/* What comes behind the cursor in one of a queue's structures, and the end of the call.
 */
static enum weir_err
take_page(struct wr_call *c, const char *of, const char *cursor, size_t limit,
          struct wr_reply **out, struct weir_error *err)
{
    enum weir_err rc;

    wr_call_str(c, of);
    wr_call_str(c, cursor);
    wr_call_int(c, (int64_t)limit);
    rc = look(c, out, err);
    wr_call_fini(c);
    return rc;
}

enum weir_err
wr_store_browse(struct wr_store *store, struct wr_queue *queue, const char *place,
                const char *cursor, size_t limit, struct wr_reply **out,
                struct weir_error *err)
{
    struct wr_call c;

    wr_call_init(&c, store, queue, wr_pair_browse);
    wr_call_now(&c);
    return take_page(&c, place, cursor, limit, out, err);
}

enum weir_err
wr_store_locate(struct wr_store *store, struct wr_queue *queue, const struct wr_span *ids,
                size_t n, bool scan, struct wr_reply **out, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_locate);
    wr_call_str(&c, scan ? "1" : "0");
    for (size_t i = 0; i < n; i++)
        wr_call_arg(&c, ids[i]);
    rc = look(&c, out, err);
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_walk(struct wr_store *store, struct wr_queue *queue, const char *name,
              const char *cursor, size_t limit, struct wr_reply **out,
              struct weir_error *err)
{
    struct wr_call c;

    wr_call_init(&c, store, queue, wr_pair_walk);
    return take_page(&c, name, cursor, limit, out, err);
}

enum weir_err
wr_store_repair(struct wr_store *store, struct wr_queue *queue, const char *name,
                const char *cursor, size_t limit, struct wr_reply **out,
                struct weir_error *err)
{
    struct wr_call c;

    wr_call_init(&c, store, queue, wr_pair_repair);
    wr_call_now(&c);
    return take_page(&c, name, cursor, limit, out, err);
}
