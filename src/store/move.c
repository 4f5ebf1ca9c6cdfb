/* What schedulers call: promote, reclaim, forget, sweep, the leader lock. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/call.h"
#include "store/scripts.gen.h"

static int64_t
number_at(const struct wr_call *c, size_t i)
{
    return wr_reply_int(wr_reply_at(c->reply, i));
}

static void
copy_at(const struct wr_call *c, size_t i, char *out, size_t cap)
{
    struct wr_span s = wr_reply_span(wr_reply_at(c->reply, i));

    snprintf(out, cap, "%.*s", (int)(s.len < cap ? s.len : cap - 1), (const char *)s.ptr);
}

enum weir_err
wr_store_promote(struct wr_store *store, struct wr_queue *queue, size_t limit,
                 struct wr_moved *out, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_moved){.next_us = -1};
    wr_call_init(&c, store, queue, wr_pair_promote);
    wr_call_now(&c);
    wr_call_int(&c, (int64_t)limit);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        out->more = wr_call_is(&c, "MORE");
        out->moved = number_at(&c, 1);
        out->next_us = number_at(&c, 2);
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_reclaim(struct wr_store *store, struct wr_queue *queue,
                 const struct wr_reclaim *how, struct wr_moved *out,
                 struct weir_error *err)
{
    bool first = how->gap_ms < 0;
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_moved){.next_ms = -1};
    wr_call_init(&c, store, queue, wr_pair_reclaim);
    wr_call_now(&c);
    wr_call_int(&c, how->lease_ms);
    if (first) {
        wr_call_str(&c, "");
        wr_call_str(&c, "");
    } else {
        wr_call_int(&c, how->gap_ms);
        wr_call_int(&c, how->last_ms);
    }
    wr_call_str(&c, how->quiet ? "1" : "0");
    wr_call_int(&c, how->lease_max_ms);
    wr_call_int(&c, (int64_t)how->limit);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        out->more = wr_call_is(&c, "MORE");
        out->quiet = wr_call_is(&c, "QUIET");
        out->server_ms = number_at(&c, 1);
        out->next_ms = number_at(&c, 2);
        out->moved = number_at(&c, 3);
        out->delayed = number_at(&c, 4);
        out->dead = number_at(&c, 5);
        out->cancelled = number_at(&c, 6);
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_reclaim_held(struct wr_store *store, struct wr_queue *queue,
                      const char *dead_worker, const char *death,
                      const struct wr_holding *held, size_t n, struct wr_moved *out,
                      size_t *stale, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_moved){.next_ms = -1};
    wr_call_init(&c, store, queue, wr_pair_reclaim_held);
    wr_call_now(&c);
    wr_call_str(&c, dead_worker);
    wr_call_str(&c, death ? death : "");
    for (size_t i = 0; i < n; i++) {
        wr_call_arg(&c, held[i].id);
        wr_call_arg(&c, held[i].token);
        wr_call_str(&c, held[i].started ? "1" : "0");
    }
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        out->moved = number_at(&c, 1);
        out->delayed = number_at(&c, 2);
        out->dead = number_at(&c, 3);
        out->cancelled = number_at(&c, 4);
        if (stale)
            *stale = (wr_reply_len(c.reply) - 5) / 2;
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_forget(struct wr_store *store, struct wr_queue *queue, size_t limit,
                struct wr_moved *out, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_moved){.next_ms = -1};
    wr_call_init(&c, store, queue, wr_pair_forget);
    wr_call_now(&c);
    wr_call_int(&c, (int64_t)limit);
    wr_call_int(&c, WR_KEPT_MAX_JOBS);
    wr_call_int(&c, WR_KEPT_MAX_BYTES);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        out->more = wr_call_is(&c, "MORE");
        out->moved = number_at(&c, 1);
        out->next_ms = number_at(&c, 2);
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_trim(struct wr_store *store, struct wr_queue *queue, size_t limit,
              struct wr_moved *out, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_moved){.next_ms = -1};
    wr_call_init(&c, store, queue, wr_pair_trim);
    wr_call_now(&c);
    wr_call_int(&c, (int64_t)limit);
    wr_call_int(&c, WR_DEAD_MAX_JOBS);
    wr_call_int(&c, WR_DEAD_MAX_AGE_MS);
    wr_call_int(&c, WR_DEAD_MAX_BYTES);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        out->more = wr_call_is(&c, "MORE");
        out->moved = number_at(&c, 1);
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_sweep(struct wr_store *store, struct wr_queue *queue, int64_t idle_ms,
               size_t limit, struct wr_sweep *at, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_sweep);
    wr_call_now(&c);
    wr_call_int(&c, idle_ms);
    wr_call_str(&c, at->producers);
    wr_call_str(&c, at->claims);
    wr_call_int(&c, (int64_t)limit);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        copy_at(&c, 1, at->producers, sizeof(at->producers));
        copy_at(&c, 2, at->claims, sizeof(at->claims));
        at->removed = number_at(&c, 3);
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_lead(struct wr_store *store, struct wr_queue *queue, const char *me,
              const char *seen, bool *leads, char value[128], int64_t *server_ms,
              struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *leads = false;
    value[0] = '\0';
    wr_call_init(&c, store, queue, wr_pair_lead);
    wr_call_now(&c);
    wr_call_str(&c, me);
    wr_call_str(&c, seen);
    wr_call_str(&c, "0");
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        *leads = wr_call_is(&c, "LEADER");
        *server_ms = number_at(&c, 1);
        if (!*leads)
            copy_at(&c, 2, value, 128);
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_unlead(struct wr_store *store, struct wr_queue *queue, const char *me,
                struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_lead);
    wr_call_now(&c);
    wr_call_str(&c, me);
    wr_call_str(&c, "");
    wr_call_str(&c, "1");
    rc = wr_call_run(&c, err);
    wr_call_fini(&c);
    return rc;
}
