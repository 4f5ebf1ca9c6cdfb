/* Puts right what was done to a stream by hand: in slices, each found and mended in one
 * step of the script. What is left is told by a walk over the whole queue afterwards:
 * only that sees every kind, and what came to light by a repair. */
#include <stdio.h>
#include <string.h>

#include "audit/audit.h"
#include "base/error.h"

#define SLICE 250

struct repair {
    weir_finding_fn each;
    void *context;
    struct weir_repair *done;
    bool stopped;
};

/* id, fault, entry, 1 or 0 of each, from element 3 on. Those with 0 the walk finds again.
 */
static void
take_slice(struct repair *r, const struct wr_reply *reply)
{
    r->done->booked += wr_reply_int(wr_reply_at(reply, 2));
    for (size_t i = 3; i + 3 < wr_reply_len(reply) && !r->stopped; i += 4) {
        char id[260], kind[32];

        if (!wr_reply_is(wr_reply_at(reply, i + 3), "1"))
            continue;
        wr_reply_copy(wr_reply_at(reply, i), id, sizeof(id));
        wr_reply_copy(wr_reply_at(reply, i + 1), kind, sizeof(kind));
        r->done->mended++;
        if (r->each && !r->each(kind, id, "put right", r->context))
            r->stopped = true;
    }
}

static enum weir_err
repair_one(struct repair *r, struct wr_store *store, struct wr_queue *queue,
           const char *name, struct weir_error *err)
{
    char cursor[WR_CURSOR_MAX] = "0";

    do {
        struct wr_reply *reply;
        enum weir_err rc = wr_store_repair(store, queue, name, cursor, SLICE, &reply,
                                           err);

        if (rc != WEIR_OK)
            return rc;
        wr_reply_copy(wr_reply_at(reply, 1), cursor, sizeof(cursor));
        take_slice(r, reply);
        wr_reply_free(reply);
    } while (strcmp(cursor, "0") != 0 && !r->stopped);
    return WEIR_OK;
}

static bool
take_left(const char *kind, const char *id, const char *detail, void *context)
{
    const struct repair *r = context;
    char text[64];

    if (!r->each)
        return true;
    snprintf(text, sizeof(text), "left: %s", detail);
    return r->each(kind, id, text, r->context);
}

enum weir_err
wr_audit_repair(struct wr_store *store, struct wr_queue *queue, weir_finding_fn each,
                void *context, struct weir_repair *out, struct weir_error *err)
{
    static const char *const names[] = {"stream", "ids", "sums"};
    struct repair r = {.each = each, .context = context, .done = out};
    enum weir_err rc = WEIR_OK;
    size_t left = 0;

    *out = (struct weir_repair){0};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == WEIR_OK; i++)
        rc = repair_one(&r, store, queue, names[i], err);
    if (rc == WEIR_OK && !r.stopped)
        rc = wr_audit_deep(store, queue, take_left, &r, &left, err);
    out->left = (int64_t)left;
    return rc;
}
