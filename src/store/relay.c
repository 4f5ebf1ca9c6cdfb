/* Follow-up jobs on their way from the outbox of one queue into their own queues. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "model/follow.h"
#include "store/call.h"
#include "store/scripts.gen.h"

struct relay {
    struct wr_store *store;
    struct wr_span channel;
    struct wr_follow follow[WR_FOLLOW_MAX];
    bool sent[WR_FOLLOW_MAX];
    size_t n;
};

/* A job that is refused for good is given up, loudly: nobody waits for the answer. */
static void
say_refused(const struct wr_follow *f, const struct wr_admitted *a)
{
    static const char *const why[] = {
        [WR_ADMIT_OTHER] = "another job has its id",
        [WR_ADMIT_UNIQUE] = "its unique key is held",
        [WR_ADMIT_BIG] = "its payload is larger than the queue allows"};

    if (a->word != WR_ADMIT_STORED && a->word != WR_ADMIT_EXISTS)
        wr_log_error("follow-up job %.*s for queue %.*s is lost: %s", (int)f->id.len,
                     (const char *)f->id.ptr, (int)f->queue.len,
                     (const char *)f->queue.ptr, why[a->word]);
}

/* All for the queue of the first that is not sent, in one call. */
static enum weir_err
send_some(struct relay *r, size_t first, struct weir_error *err)
{
    struct wr_admit items[WR_FOLLOW_MAX];
    struct wr_admitted out[WR_FOLLOW_MAX];
    size_t which[WR_FOLLOW_MAX], n = 0;
    struct wr_span name = r->follow[first].queue;
    struct wr_channel channel = {.number = 1};
    struct wr_queue *queue;
    char text[132];
    enum weir_err rc;

    for (size_t i = first; i < r->n; i++) {
        const struct wr_follow *f = &r->follow[i];

        if (!wr_span_same(f->queue, name))
            continue;
        which[n] = i;
        items[n++] = (struct wr_admit){.id = f->id,
                                       .head = f->head,
                                       .tail = f->tail,
                                       .unique = f->unique,
                                       .due = f->due};
        r->sent[i] = true;
    }
    memcpy(channel.name, r->channel.ptr, WR_FOLLOW_CHANNEL_LEN);
    snprintf(text, sizeof(text), "%.*s", (int)name.len, (const char *)name.ptr);
    rc = wr_store_queue(r->store, text, &queue, err);
    if (rc == WEIR_OK)
        rc = wr_store_enqueue(r->store, queue, &channel, items, n, out, NULL, err);
    for (size_t i = 0; i < n && rc == WEIR_OK; i++)
        say_refused(&r->follow[which[i]], &out[i]);
    return rc;
}

/* What is wrong with one queue, or one text, says nothing of the next. */
static bool
concerns_all(enum weir_err rc)
{
    enum weir_err_kind kind = weir_err_kind_of(rc);

    return kind == WEIR_KIND_BUSY || kind == WEIR_KIND_UNKNOWN || rc == WEIR_E_READONLY ||
           rc == WEIR_E_SERVER;
}

/* The first error; the jobs of queues that are well are sent all the same. */
static enum weir_err
send_all(struct relay *r, struct weir_error *err)
{
    enum weir_err first = WEIR_OK;

    for (size_t i = 0; i < r->n && !concerns_all(first); i++) {
        struct weir_error own = {0};
        enum weir_err rc = r->sent[i] ? WEIR_OK : send_some(r, i, &own);

        if (rc != WEIR_OK && (first == WEIR_OK || concerns_all(rc))) {
            first = rc;
            if (err)
                *err = own;
        }
    }
    return first;
}

static enum weir_err
outbox_done(struct wr_store *store, struct wr_queue *queue, struct wr_span token,
            struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_outbox_done);
    wr_call_arg(&c, token);
    rc = wr_call_run(&c, err);
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_relay(struct wr_store *store, struct wr_queue *queue, struct wr_span token,
               struct wr_span text, struct weir_error *err)
{
    struct relay r = {.store = store};
    enum weir_err rc;

    if (!wr_follow_open(&text, &r.channel))
        return wr_fail(err, WEIR_E_CORRUPT, 0, "outbox: %.*s has no channel",
                       (int)token.len, (const char *)token.ptr);
    while (r.n < WR_FOLLOW_MAX && wr_follow_next(&text, &r.follow[r.n]))
        r.n++;
    if (text.len > 0)
        return wr_fail(err, WEIR_E_CORRUPT, 0, "outbox: %.*s cannot be read",
                       (int)token.len, (const char *)token.ptr);
    rc = send_all(&r, err);
    return rc == WEIR_OK ? outbox_done(store, queue, token, err) : rc;
}

enum weir_err
wr_store_relay_late(struct wr_store *store, struct wr_queue *queue, int64_t age_ms,
                    size_t limit, size_t *relayed, bool *more, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc, first;

    *relayed = 0;
    *more = false;
    wr_call_init(&c, store, queue, wr_pair_outbox);
    wr_call_now(&c);
    wr_call_int(&c, age_ms);
    wr_call_int(&c, (int64_t)limit);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK)
        *more = wr_call_is(&c, "MORE");
    first = rc;
    /* One that cannot be relayed does not keep the others waiting. */
    for (size_t i = 1; !concerns_all(rc) && i + 1 < wr_reply_len(c.reply); i += 2) {
        struct weir_error own = {0};

        rc = wr_store_relay(store, queue, wr_reply_span(wr_reply_at(c.reply, i)),
                            wr_reply_span(wr_reply_at(c.reply, i + 1)), &own);
        *relayed += rc == WEIR_OK;
        if (rc != WEIR_OK && (first == WEIR_OK || concerns_all(rc))) {
            first = rc;
            if (err)
                *err = own;
        }
    }
    wr_call_fini(&c);
    return first;
}
