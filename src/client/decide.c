/* What people decide: cancel, replay, purge, pause, limits; and the audit. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/error.h"
#include "base/text.h"
#include "client/client_internal.h"

enum weir_err
weir_job_cancel(struct weir_client *c, const char *queue, const char *id,
                enum weir_cancel_result *out, struct weir_error *err)
{
    struct wr_span span = wr_span_str(id);
    enum wr_cancelled word = WR_CANCEL_GONE;
    enum weir_cancel_result how = WEIR_CANCELLED;
    struct wr_queue *q;
    enum weir_err rc = wr_client_find(c, queue, id, &q, err);

    if (rc == WEIR_OK)
        rc = wr_store_cancel(c->store, q, &span, 1, &word, err);
    if (rc != WEIR_OK)
        return rc;
    switch (word) {
    case WR_CANCEL_READY:
    case WR_CANCEL_DELAYED:
        how = WEIR_CANCELLED;
        break;
    case WR_CANCEL_FLAGGED:
        how = WEIR_CANCEL_FLAGGED;
        break;
    case WR_CANCEL_DEAD:
        return wr_fail(err, WEIR_E_WRONG_STATE, 0, "job %.100s is dead", id);
    case WR_CANCEL_DONE:
        return wr_fail(err, WEIR_E_WRONG_STATE, 0, "job %.100s is done", id);
    case WR_CANCEL_GONE:
        return wr_fail(err, WEIR_E_NO_JOB, 0, "no job %.100s in queue %.100s", id,
                       wr_queue_name(q));
    case WR_CANCEL_BROKEN:
        return wr_fail(err, WEIR_E_CORRUPT, 0, "job %.100s has a record but no place",
                       id);
    }
    if (out)
        *out = how;
    return WEIR_OK;
}

enum weir_err
weir_job_reschedule(struct weir_client *c, const char *queue, const char *id,
                    int64_t delay_ms, int64_t at_ms, int64_t *due_ms,
                    struct weir_error *err)
{
    char due[32] = "";
    int64_t at = 0;
    bool delayed;
    struct wr_queue *q;
    enum weir_err rc;

    if (delay_ms < 0 || delay_ms > WR_TIME_MAX_MS || at_ms < 0 || at_ms > WR_TIME_MAX_MS)
        return wr_fail(err, WEIR_E_ARG, 0, "delay and at: from 0 to the year 9999");
    if (delay_ms > 0 && at_ms > 0)
        return wr_fail(err, WEIR_E_ARG, 0, "delay and at: give one of them");
    if (delay_ms > 0)
        snprintf(due, sizeof(due), "+%lld", (long long)delay_ms);
    else if (at_ms > 0)
        snprintf(due, sizeof(due), "@%lld", (long long)at_ms);
    rc = wr_client_find(c, queue, id, &q, err);
    if (rc == WEIR_OK)
        rc = wr_store_reschedule(c->store, q, wr_span_str(id), wr_span_str(due), &delayed,
                                 &at, err);
    if (rc == WEIR_OK && due_ms)
        *due_ms = at;
    return rc;
}

typedef enum weir_err (*dead_fn)(struct wr_store *store, struct wr_queue *queue,
                                 const struct wr_span *ids, size_t n, int64_t before_ms,
                                 enum wr_replayed *out, size_t *moved,
                                 struct weir_error *err);

static enum weir_err
decide_dead(struct weir_client *c, dead_fn decide, const char *queue, const char *id,
            struct weir_error *err)
{
    struct wr_span span = wr_span_str(id);
    enum wr_replayed word = WR_REPLAY_GONE;
    struct wr_queue *q;
    size_t moved;
    enum weir_err rc = wr_client_find(c, queue, id, &q, err);

    if (rc == WEIR_OK)
        rc = decide(c->store, q, &span, 1, 0, &word, &moved, err);
    if (rc != WEIR_OK)
        return rc;
    switch (word) {
    case WR_REPLAY_OK:
        return WEIR_OK;
    case WR_REPLAY_GONE:
        return wr_fail(err, WEIR_E_NO_JOB, 0, "job %.100s is not dead in queue %.100s",
                       id, wr_queue_name(q));
    case WR_REPLAY_NOBODY:
        return wr_fail(err, WEIR_E_WRONG_STATE, 0,
                       "job %.100s: its body is lost, it can only be purged", id);
    case WR_REPLAY_UNIQUE:
        return wr_fail(err, WEIR_E_UNIQUE, 0, "job %.100s: another holds its unique key",
                       id);
    }
    return wr_fail(err, WEIR_E_BUG, 0, "dead: an answer without a case");
}

enum weir_err
weir_dead_replay(struct weir_client *c, const char *queue, const char *id,
                 struct weir_error *err)
{
    return decide_dead(c, wr_store_replay, queue, id, err);
}

enum weir_err
weir_dead_purge(struct weir_client *c, const char *queue, const char *id,
                struct weir_error *err)
{
    return decide_dead(c, wr_store_purge, queue, id, err);
}

static enum weir_err
decide_all(struct weir_client *c, dead_fn decide, const char *queue, size_t limit,
           int64_t before_ms, size_t *moved, struct weir_error *err)
{
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    *moved = 0;
    if (rc != WEIR_OK)
        return rc;
    if (limit == 0 || limit > WR_BATCH_MAX)
        return wr_fail(err, WEIR_E_ARG, 0, "limit: 1 to %d", WR_BATCH_MAX);
    return decide(c->store, q, NULL, limit, before_ms, NULL, moved, err);
}

enum weir_err
weir_dead_replay_page(struct weir_client *c, const char *queue, size_t limit,
                      int64_t before_ms, size_t *skip, bool *more, size_t *moved,
                      struct weir_error *err)
{
    struct wr_queue *q;
    size_t looked = 0;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    *moved = 0;
    *more = false;
    if (rc != WEIR_OK)
        return rc;
    if (limit == 0 || limit > WR_BATCH_MAX)
        return wr_fail(err, WEIR_E_ARG, 0, "limit: 1 to %d", WR_BATCH_MAX);
    rc = wr_store_replay_page(c->store, q, limit, before_ms, *skip, &looked, moved, err);
    if (rc == WEIR_OK) {
        *skip += looked - *moved;
        *more = looked > 0;
    }
    return rc;
}

enum weir_err
weir_dead_replay_all(struct weir_client *c, const char *queue, size_t limit,
                     int64_t before_ms, size_t *moved, struct weir_error *err)
{
    bool more = true;
    size_t skip = 0;
    enum weir_err rc = WEIR_OK;

    *moved = 0;
    while (rc == WEIR_OK && more && *moved == 0)
        rc = weir_dead_replay_page(c, queue, limit, before_ms, &skip, &more, moved, err);
    return rc;
}

enum weir_err
weir_dead_purge_all(struct weir_client *c, const char *queue, size_t limit,
                    int64_t before_ms, size_t *moved, struct weir_error *err)
{
    return decide_all(c, wr_store_purge, queue, limit, before_ms, moved, err);
}

enum weir_err
weir_queue_create(struct weir_client *c, const char *queue, const char *engine,
                  const struct weir_queue_limits *limits, bool *made,
                  struct weir_error *err)
{
    struct wr_limits l = {-1, -1, -1, engine};
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    if (rc != WEIR_OK)
        return rc;
    if (engine && strcmp(engine, "list") != 0 && strcmp(engine, "stream") != 0)
        return wr_fail(err, WEIR_E_ARG, 0, "engine %.20s: it is list or stream", engine);
    if (limits)
        l = (struct wr_limits){limits->payload_max_bytes, limits->kept_max_jobs,
                               limits->kept_max_bytes, engine};
    return wr_store_create(c->store, q, &l, made, err);
}

const char *
wr_client_login_name(void)
{
    const struct passwd *p = getpwuid(getuid());

    return p && p->pw_name ? p->pw_name : "unknown";
}

enum weir_err
weir_queue_pause(struct weir_client *c, const char *queue, const char *who,
                 const char *why, bool *was, struct weir_error *err)
{
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    if (rc != WEIR_OK)
        return rc;
    return wr_store_pause(c->store, q, who ? who : wr_client_login_name(), why, was, err);
}

enum weir_err
weir_queue_resume(struct weir_client *c, const char *queue, bool *was,
                  struct weir_error *err)
{
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    if (rc != WEIR_OK)
        return rc;
    return wr_store_resume(c->store, q, was, err);
}

enum weir_err
weir_queue_purge(struct weir_client *c, const char *queue, const char *state,
                 size_t limit, size_t *moved, struct weir_error *err)
{
    enum wr_cancelled words[WR_BATCH_MAX];
    struct wr_span ids[WR_BATCH_MAX];
    char cursor[WR_CURSOR_MAX] = "0";
    struct wr_reply *reply;
    struct wr_queue *q;
    size_t n = 0;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    *moved = 0;
    if (rc != WEIR_OK)
        return rc;
    if (strcmp(state, "ready") != 0 && strcmp(state, "delayed") != 0)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "state %.20s: only ready and delayed jobs wait", state);
    limit = limit < WR_BATCH_MAX ? limit : WR_BATCH_MAX;
    /* Places of jobs that were cancelled before are walked over. */
    do {
        rc = wr_store_browse(c->store, q, state, cursor, limit, &reply, err);
        if (rc != WEIR_OK)
            return rc;
        snprintf(cursor, sizeof(cursor), "%.*s",
                 (int)wr_reply_span(wr_reply_at(reply, 1)).len,
                 (const char *)wr_reply_span(wr_reply_at(reply, 1)).ptr);
        for (size_t i = 2; i + 5 < wr_reply_len(reply); i += 6)
            ids[n++] = wr_reply_span(wr_reply_at(reply, i));
        if (n > 0) {
            rc = wr_store_cancel(c->store, q, ids, n, words, err);
            for (size_t i = 0; rc == WEIR_OK && i < n; i++)
                *moved += words[i] == WR_CANCEL_READY || words[i] == WR_CANCEL_DELAYED;
        }
        wr_reply_free(reply);
    } while (rc == WEIR_OK && n == 0 && strcmp(cursor, "0") != 0);
    return rc;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
    char **names;
    size_t n;
    bool failed;
};

static bool
add_name(const char *name, void *context)
{
    struct names *l = context;
    char **names = realloc(l->names, (l->n + 1) * sizeof(*names));

    if (names)
        l->names = names;
    l->failed = !names || !(l->names[l->n] = strdup(name));
    l->n += !l->failed;
    return !l->failed;
}

enum weir_err
weir_queue_list(struct weir_client *c, weir_queue_fn each, void *context,
                struct weir_error *err)
{
    struct names l = {0};
    enum weir_err rc = wr_store_each_queue(c->store, add_name, &l, err);
    bool go_on;

    if (rc == WEIR_OK && l.failed)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "queue list");
    if (l.n > 0)
        qsort(l.names, l.n, sizeof(l.names[0]), compare_names);
    go_on = rc == WEIR_OK;
    for (size_t i = 0; i < l.n; i++) {
        go_on = go_on && each(l.names[i], context);
        free(l.names[i]);
    }
    free(l.names);
    return rc;
}

enum weir_err
weir_queue_audit(struct weir_client *c, const char *queue, struct weir_audit *out,
                 struct weir_error *err)
{
    struct wr_reply *reply;
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    if (rc == WEIR_OK)
        rc = wr_store_audit(c->store, q, &reply, err);
    if (rc != WEIR_OK)
        return rc;
    rc = wr_audit_read(reply, out, err);
    wr_reply_free(reply);
    return rc;
}

bool
weir_audit_is_good(const struct weir_audit *a)
{
    return a->gap == 0 && a->gap_processing == 0 && a->gap_ready == 0 &&
           a->gap_delayed == 0 && a->gap_dead == 0 && a->gap_kept == 0 &&
           a->gap_bodies == 0;
}

enum weir_err
weir_queue_repair(struct weir_client *c, const char *queue, weir_finding_fn each,
                  void *context, struct weir_repair *out, struct weir_error *err)
{
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    *out = (struct weir_repair){0};
    if (rc != WEIR_OK)
        return rc;
    return wr_audit_repair(c->store, q, each, context, out, err);
}

enum weir_err
weir_queue_audit_deep(struct weir_client *c, const char *queue, weir_finding_fn each,
                      void *context, size_t *findings, struct weir_error *err)
{
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    if (rc != WEIR_OK)
        return rc;
    return wr_audit_deep(c->store, q, each, context, findings, err);
}
