/*
 * Walks every structure of a queue in slices, on the live queue. An id may move while
 * the walk goes on, so what looks wrong is only a suspicion: it is looked at again in
 * one step (the locate script), where all places of an id are read at once.
 */
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "audit/fault.h"
#include "audit/ids.h"
#include "base/buf.h"
#include "base/error.h"

#define SLICE 500

struct walk {
    struct wr_found queue_is;
    struct wr_store *store;
    struct wr_queue *queue;
    weir_finding_fn each;
    void *context;
    size_t findings;
    struct wr_said said; /* of each id: it may stand in several structures */
    bool stopped;
    char slice[32]; /* where the slice at hand begins */
};

static void
report(struct walk *w, const char *kind, struct wr_span id, const char *detail)
{
    char text[260];

    snprintf(text, sizeof(text), "%.*s", (int)id.len, (const char *)id.ptr);
    w->findings++;
    if (w->each && !w->each(kind, text, detail, w->context))
        w->stopped = true;
}

/* In that slice, does `key` stand there still? Of unique: as that job's. */
static bool
stands_in(const struct wr_reply *reply, struct wr_span key, const struct wr_span *id)
{
    size_t step = id ? 2 : 1;

    for (size_t i = 2; i + step <= wr_reply_len(reply); i += step) {
        if (wr_span_same(wr_reply_span(wr_reply_at(reply, i)), key) &&
            (!id || wr_span_same(wr_reply_span(wr_reply_at(reply, i + 1)), *id)))
            return true;
    }
    return false;
}

/*
 * Something stands under a job that was seen to have no record. It may have ended since
 * the slice was read, with all that was stored of it: what was left behind stands there
 * also after that. holder: of the unique key; NULL: key is the job's id.
 */
static enum weir_err
is_left(struct walk *w, const char *name, struct wr_span key,
        const struct wr_span *holder, bool *left, struct weir_error *err)
{
    struct wr_reply *reply;
    enum weir_err rc = wr_store_walk(w->store, w->queue, name, w->slice, SLICE, &reply,
                                     err);

    *left = false;
    if (rc != WEIR_OK)
        return rc;
    *left = stands_in(reply, key, holder);
    wr_reply_free(reply);
    if (!*left)
        return WEIR_OK;
    rc = wr_store_locate(w->store, w->queue, holder ? holder : &key, 1, false, &reply,
                         err);
    if (rc != WEIR_OK)
        return rc;
    *left = !wr_fault_is_job(&w->queue_is, wr_reply_span(wr_reply_at(reply, 1)));
    wr_reply_free(reply);
    return WEIR_OK;
}

/* Looks at these ids again, each in one step with its places in ready counted. */
static enum weir_err
look_again(struct walk *w, const char *name, const struct wr_span *ids, size_t n,
           struct weir_error *err)
{
    for (size_t i = 0; i < n && !w->stopped; i++) {
        struct wr_reply *reply;
        enum weir_err rc = wr_store_locate(w->store, w->queue, &ids[i], 1, true, &reply,
                                           err);
        struct wr_span letters;
        const char *kind;
        char detail[32];
        bool left;

        if (rc != WEIR_OK)
            return rc;
        letters = wr_reply_span(wr_reply_at(reply, 1));
        kind = wr_fault(&w->queue_is, letters, true);
        if (!kind && wr_fault_orphan(name) && !wr_fault_is_job(&w->queue_is, letters)) {
            rc = is_left(w, name, ids[i], NULL, &left, err);
            kind = left ? wr_fault_orphan(name) : NULL;
        }
        snprintf(detail, sizeof(detail), "%.*s", (int)letters.len,
                 (const char *)letters.ptr);
        if (kind && !wr_said_before(&w->said, kind, ids[i]))
            report(w, kind, ids[i], detail);
        wr_reply_free(reply);
        if (rc != WEIR_OK)
            return rc;
    }
    return WEIR_OK;
}

/*
 * Which of the ids are suspect? *looked: so many of them were looked at, one at least.
 * Looking again walks the ready list, so of a record without a place elsewhere, which is
 * what every ready job looks like, only the ones that the ready list did not show are
 * looked at: `ready` holds its ids, sorted.
 */
static enum weir_err
check_some(struct walk *w, const char *name, const struct wr_span *ids, size_t n,
           const struct wr_id_set *ready, size_t *looked, struct weir_error *err)
{
    struct wr_span suspects[SLICE];
    struct wr_reply *reply;
    size_t count = 0;
    enum weir_err rc = wr_store_locate(w->store, w->queue, ids, n, false, &reply, err);

    if (rc != WEIR_OK)
        return rc;
    *looked = wr_reply_len(reply) - 1;
    if (*looked == 0 || *looked > n) {
        wr_reply_free(reply);
        return wr_fail(err, WEIR_E_CORRUPT, 0, "locate: odd answer");
    }
    for (size_t i = 0; i < *looked; i++) {
        struct wr_span letters = wr_reply_span(wr_reply_at(reply, i + 1));
        bool waits = wr_fault_count(letters, "J") > 0 &&
                     wr_fault_count(letters, "PLXKTO") == 0 &&
                     wr_id_set_has(ready, ids[i]);

        if ((!waits && wr_fault(&w->queue_is, letters, false)) ||
            !wr_fault_is_job(&w->queue_is, letters))
            suspects[count++] = ids[i];
    }
    rc = look_again(w, name, suspects, count, err);
    wr_reply_free(reply);
    return rc;
}

/* One slice of ids, SLICE at most. */
static enum weir_err
check_slice(struct walk *w, const char *name, const struct wr_span *ids, size_t n,
            const struct wr_id_set *ready, struct weir_error *err)
{
    size_t looked = 0;
    enum weir_err rc = WEIR_OK;

    for (size_t at = 0; at < n && rc == WEIR_OK && !w->stopped; at += looked)
        rc = check_some(w, name, ids + at, n - at, ready, &looked, err);
    return rc;
}

static enum weir_err
walk_one(struct walk *w, const char *name, const struct wr_id_set *ready,
         struct weir_error *err)
{
    char cursor[32] = "0";

    do {
        struct wr_span ids[SLICE];
        struct wr_reply *reply;
        enum weir_err rc = wr_store_walk(w->store, w->queue, name, cursor, SLICE / 2,
                                         &reply, err);
        size_t n = 0, total;

        if (rc != WEIR_OK)
            return rc;
        snprintf(w->slice, sizeof(w->slice), "%s", cursor);
        snprintf(cursor, sizeof(cursor), "%.*s",
                 (int)wr_reply_span(wr_reply_at(reply, 1)).len,
                 (const char *)wr_reply_span(wr_reply_at(reply, 1)).ptr);
        total = wr_reply_len(reply);
        for (size_t i = 2; i < total && rc == WEIR_OK; i++) {
            ids[n++] = wr_reply_span(wr_reply_at(reply, i));
            if (n == SLICE || i + 1 == total) {
                rc = check_slice(w, name, ids, n, ready, err);
                n = 0;
            }
        }
        wr_reply_free(reply);
        if (rc != WEIR_OK)
            return rc;
    } while (strcmp(cursor, "0") != 0 && !w->stopped);
    return WEIR_OK;
}

/* Reads the ready list in slices; a copy that stands twice is reported. */
static enum weir_err
read_ready(struct walk *w, struct wr_id_set *set, struct weir_error *err)
{
    char cursor[32] = "0";

    do {
        struct wr_reply *reply;
        enum weir_err rc = wr_store_walk(w->store, w->queue, "ready", cursor, 1000,
                                         &reply, err);

        if (rc != WEIR_OK)
            return rc;
        snprintf(cursor, sizeof(cursor), "%.*s",
                 (int)wr_reply_span(wr_reply_at(reply, 1)).len,
                 (const char *)wr_reply_span(wr_reply_at(reply, 1)).ptr);
        for (size_t i = 2; i < wr_reply_len(reply) && rc == WEIR_OK; i++) {
            if (!wr_id_set_add(set, wr_reply_span(wr_reply_at(reply, i))))
                rc = wr_fail(err, WEIR_E_NO_MEMORY, 0,
                             "audit: the ids of the ready list");
        }
        wr_reply_free(reply);
        if (rc != WEIR_OK)
            return rc;
    } while (strcmp(cursor, "0") != 0);
    wr_id_set_sort(set);
    return WEIR_OK;
}

static enum weir_err
check_ready(struct walk *w, const struct wr_id_set *set, struct weir_error *err)
{
    struct wr_span ids[SLICE];
    enum weir_err rc = WEIR_OK;
    size_t n = 0;

    for (size_t i = 0; i < set->n && rc == WEIR_OK && !w->stopped; i++) {
        bool twice = i > 0 && strcmp(set->ids[i - 1], set->ids[i]) == 0;

        ids[n++] = wr_span_str(set->ids[i]);
        if (twice)
            rc = look_again(w, "ready", &ids[n - 1], 1, err);
        if (rc == WEIR_OK && (n == SLICE || i + 1 == set->n)) {
            rc = check_slice(w, "ready", ids, n, set, err);
            n = 0;
        }
    }
    return rc;
}

/* unique: key, id pairs; the holder must have a record. */
static enum weir_err
walk_unique(struct walk *w, struct weir_error *err)
{
    char cursor[32] = "0";

    do {
        struct wr_reply *reply;
        enum weir_err rc = wr_store_walk(w->store, w->queue, "unique", cursor, SLICE,
                                         &reply, err);

        if (rc != WEIR_OK)
            return rc;
        snprintf(w->slice, sizeof(w->slice), "%s", cursor);
        snprintf(cursor, sizeof(cursor), "%.*s",
                 (int)wr_reply_span(wr_reply_at(reply, 1)).len,
                 (const char *)wr_reply_span(wr_reply_at(reply, 1)).ptr);
        for (size_t i = 2; i + 1 < wr_reply_len(reply) && rc == WEIR_OK; i += 2) {
            struct wr_span key = wr_reply_span(wr_reply_at(reply, i));
            struct wr_span id = wr_reply_span(wr_reply_at(reply, i + 1));
            struct wr_reply *where;
            bool left = false;

            rc = wr_store_locate(w->store, w->queue, &id, 1, false, &where, err);
            if (rc != WEIR_OK)
                break;
            if (!wr_fault_is_job(&w->queue_is, wr_reply_span(wr_reply_at(where, 1))))
                rc = is_left(w, "unique", key, &id, &left, err);
            if (left)
                report(w, "orphan_unique", id, "its key is still held");
            wr_reply_free(where);
        }
        wr_reply_free(reply);
        if (rc != WEIR_OK)
            return rc;
    } while (strcmp(cursor, "0") != 0 && !w->stopped);
    return WEIR_OK;
}

/* id, fault, entry of stream, pending and ids: the faults are certain. The ids of entries
 * are looked at as all others are. */
static enum weir_err
check_entries(struct walk *w, const char *name, const struct wr_reply *reply,
              struct weir_error *err)
{
    static const struct wr_id_set none = {0};
    size_t total = wr_reply_len(reply), n = 0;
    struct wr_span ids[SLICE];
    enum weir_err rc = WEIR_OK;

    for (size_t i = 2; i + 2 < total && rc == WEIR_OK && !w->stopped; i += 3) {
        struct wr_span id = wr_reply_span(wr_reply_at(reply, i));
        char kind[32], entry[64];

        wr_reply_copy(wr_reply_at(reply, i + 1), kind, sizeof(kind));
        wr_reply_copy(wr_reply_at(reply, i + 2), entry, sizeof(entry));
        if (kind[0])
            report(w, kind, id, entry);
        else
            ids[n++] = id;
        if (n == SLICE || (n > 0 && i + 5 >= total)) {
            rc = check_slice(w, name, ids, n, &none, err);
            n = 0;
        }
    }
    return rc;
}

static enum weir_err
walk_entries(struct walk *w, const char *name, struct weir_error *err)
{
    char cursor[WR_CURSOR_MAX] = "0";

    do {
        struct wr_reply *reply;
        enum weir_err rc = wr_store_walk(w->store, w->queue, name, cursor, SLICE / 2,
                                         &reply, err);

        if (rc != WEIR_OK)
            return rc;
        snprintf(cursor, sizeof(cursor), "%.*s",
                 (int)wr_reply_span(wr_reply_at(reply, 1)).len,
                 (const char *)wr_reply_span(wr_reply_at(reply, 1)).ptr);
        rc = check_entries(w, name, reply, err);
        wr_reply_free(reply);
        if (rc != WEIR_OK)
            return rc;
    } while (strcmp(cursor, "0") != 0 && !w->stopped);
    return WEIR_OK;
}

static enum weir_err
walk_stream(struct walk *w, struct weir_error *err)
{
    static const char *const names[] = {"stream", "pending", "ids"};
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == WEIR_OK; i++)
        rc = walk_entries(w, names[i], err);
    return rc;
}

/* Which engine? An audit says so. */
static enum weir_err
ask_engine(struct walk *w, struct weir_error *err)
{
    struct wr_reply *reply;
    enum weir_err rc = wr_store_audit(w->store, w->queue, &reply, err);

    if (rc != WEIR_OK)
        return rc;
    for (size_t i = 1; i + 1 < wr_reply_len(reply); i += 2) {
        const struct wr_reply *name = wr_reply_at(reply, i);

        if (wr_reply_is(name, "config.engine"))
            w->queue_is.in_stream = wr_reply_is(wr_reply_at(reply, i + 1), "stream");
        else if (wr_reply_is(name, "config.moving"))
            w->queue_is.moving = true;
    }
    wr_reply_free(reply);
    return WEIR_OK;
}

enum weir_err
wr_audit_deep(struct wr_store *store, struct wr_queue *queue, weir_finding_fn each,
              void *context, size_t *findings, struct weir_error *err)
{
    static const char *const names[] = {"jobs",   "state", "processing", "delayed",
                                        "dead",   "kept",  "tombs",      "results",
                                        "errors", "log",   "order"};
    struct walk w = {.store = store, .queue = queue, .each = each, .context = context};
    struct wr_id_set ready = {0};
    enum weir_err rc = ask_engine(&w, err);

    if (rc == WEIR_OK)
        rc = read_ready(&w, &ready, err);
    if (rc == WEIR_OK)
        rc = check_ready(&w, &ready, err);
    if (rc == WEIR_OK)
        rc = walk_stream(&w, err);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == WEIR_OK; i++)
        rc = walk_one(&w, names[i], &ready, err);
    if (rc == WEIR_OK)
        rc = walk_unique(&w, err);
    wr_id_set_fini(&ready);
    wr_said_fini(&w.said);
    *findings = w.findings;
    return rc;
}
