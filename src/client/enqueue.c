/* Enqueue: sends jobs in batches, under the channel of a call slot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "client/client_internal.h"
#include "client/prepare.h"

/* ---- call slots ---- */

static struct wr_call_slot *
take_slot(struct weir_client *c, struct wr_queue *queue)
{
    struct wr_call_slot **link, *slot = NULL;

    pthread_mutex_lock(&c->mu);
    if (c->owner != getpid()) { /* after fork: these channels are the parent's */
        for (slot = c->slots; slot; slot = slot->next)
            wr_channel_renew(&slot->channel);
        c->owner = getpid();
    }
    for (link = &c->slots; *link && (*link)->queue != queue; link = &(*link)->next)
        continue;
    slot = *link;
    if (slot)
        *link = slot->next;
    pthread_mutex_unlock(&c->mu);
    if (!slot && (slot = calloc(1, sizeof(*slot))) != NULL) {
        slot->queue = queue;
        wr_channel_renew(&slot->channel);
    }
    return slot;
}

static void
give_slot(struct weir_client *c, struct wr_call_slot *slot)
{
    pthread_mutex_lock(&c->mu);
    slot->next = c->slots;
    c->slots = slot;
    pthread_mutex_unlock(&c->mu);
}

/* ---- sending ---- */

static enum weir_err
read_answer(const struct wr_admitted *a, struct weir_enqueued *out,
            struct weir_error *err)
{
    wr_span_copy(wr_span_str(a->detail), out->detail, sizeof(out->detail));
    if (a->id[0] != '\0')
        wr_span_copy(wr_span_str(a->id), out->id.str, sizeof(out->id.str));
    switch (a->word) {
    case WR_ADMIT_STORED:
        return out->code = WEIR_OK;
    case WR_ADMIT_EXISTS:
        out->existed = true;
        return out->code = WEIR_OK;
    case WR_ADMIT_OTHER:
        return out->code = wr_fail(err, WEIR_E_EXISTS, 0,
                                   "job %.100s exists with another record, and is %.20s",
                                   out->id.str, a->detail);
    case WR_ADMIT_UNIQUE:
        if (strcmp(a->detail, "-") == 0)
            return out->code = wr_fail(err, WEIR_E_UNIQUE, 0,
                                       "the window of its unique key is not over");
        return out->code = wr_fail(err, WEIR_E_UNIQUE, 0,
                                   "its unique key is held by %.200s", a->detail);
    case WR_ADMIT_BIG:
        return out->code = wr_fail(err, WEIR_E_TOO_BIG, 0,
                                   "payload over the queue's limit of %.30s bytes",
                                   a->detail);
    }
    return out->code = wr_fail(err, WEIR_E_BUG, 0, "enqueue: an answer without a case");
}

/* One call; out[] has one entry per item. */
static enum weir_err
send_batch(struct weir_client *c, struct wr_queue *queue, const struct wr_admit *items,
           size_t n, struct weir_enqueued *const *out, struct weir_error *err)
{
    struct wr_admitted *answers = calloc(n, sizeof(*answers));
    struct wr_call_slot *slot = answers ? take_slot(c, queue) : NULL;
    enum weir_err rc, first = WEIR_OK;

    if (!slot) {
        free(answers);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "enqueue");
    }
    rc = wr_store_enqueue(c->store, queue, &slot->channel, items, n, answers, NULL, err);
    give_slot(c, slot);
    for (size_t i = 0; i < n; i++) {
        if (rc != WEIR_OK)
            out[i]->code = rc;
        else {
            enum weir_err one = read_answer(&answers[i], out[i],
                                            first == WEIR_OK ? err : NULL);

            if (first == WEIR_OK)
                first = one;
        }
    }
    free(answers);
    return rc != WEIR_OK ? rc : first;
}

static enum weir_err
try_replace(struct weir_client *c, struct wr_queue *queue, struct wr_prepared *p,
            struct weir_enqueued *out, struct weir_error *err)
{
    struct wr_call_slot *slot = take_slot(c, queue);
    struct wr_replaced r;
    enum weir_err rc;

    if (!slot)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "enqueue");
    rc = wr_store_replace(c->store, queue, &slot->channel, &p->item, &r, err);
    give_slot(c, slot);
    if (rc == WEIR_OK) {
        snprintf(out->id.str, sizeof(out->id.str), "%s", r.id);
        out->existed = r.existed;
        out->replaced = !r.existed && !r.anew;
    }
    return rc;
}

static enum weir_err
replace_or_send(struct weir_client *c, struct wr_queue *queue, struct wr_prepared *p,
                struct weir_enqueued *out, struct weir_error *err)
{
    /* Absent now and taken a moment later: look again, a few times. The key of one that
     * runs can only be taken over. */
    int most = p->unique.len > 0 && p->unique.ptr[p->unique.len - 1] == 'l' ? 10 : 3;

    for (int tries = 0; tries < most; tries++) {
        enum weir_err rc = try_replace(c, queue, p, out, err);

        if (rc == WEIR_E_NO_JOB) {
            rc = send_batch(c, queue, &p->item, 1, &out, err);
            if (rc == WEIR_E_UNIQUE && strcmp(out->detail, "-") == 0)
                return rc; /* its window: nobody to look at */
        }
        if (rc != WEIR_E_EXISTS && rc != WEIR_E_UNIQUE)
            return out->code = rc;
        out->code = rc;
    }
    return out->code;
}

enum weir_err
weir_job_enqueue(struct weir_client *c, const struct weir_job *job,
                 struct weir_enqueued *out, struct weir_error *err)
{
    struct weir_enqueued answer = {0}, *to = out ? out : &answer;
    struct wr_prepared p = {0};
    struct weir_job known;
    struct wr_queue *queue;
    enum weir_err rc = wr_client_queue(c, job->queue, &queue, err);

    *to = (struct weir_enqueued){0};
    wr_known_job(job, &known);
    if (rc == WEIR_OK)
        rc = wr_prepare(&known, &p, err);
    if (rc == WEIR_OK) {
        to->id = p.id;
        rc = wr_may_replace(&known) ? replace_or_send(c, queue, &p, to, err)
                                    : send_batch(c, queue, &p.item, 1, &to, err);
    }
    to->code = rc;
    wr_prepared_fini(&p);
    return rc;
}

enum weir_err
wr_client_enqueue_waited(struct weir_client *c, const struct weir_job *job,
                         const struct wr_waiter *waiter, bool *told,
                         struct weir_enqueued *out, struct weir_error *err)
{
    struct wr_prepared p = {0};
    struct wr_call_slot *slot = NULL;
    struct wr_admitted answer = {0};
    struct weir_job known;
    struct wr_queue *queue;
    enum weir_err rc = wr_client_queue(c, job->queue, &queue, err);

    *told = false;
    *out = (struct weir_enqueued){0};
    wr_known_job(job, &known);
    if (rc == WEIR_OK)
        rc = wr_prepare(&known, &p, err);
    out->id = p.id;
    if (rc == WEIR_OK && !(slot = take_slot(c, queue)))
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "enqueue");
    if (slot) {
        rc = wr_store_call(c->store, queue, &slot->channel, &p.item, waiter, &answer,
                           err);
        give_slot(c, slot);
    }
    if (rc == WEIR_OK) {
        rc = read_answer(&answer, out, err);
        *told = answer.word == WR_ADMIT_STORED ||
                (answer.word == WR_ADMIT_EXISTS && strcmp(answer.detail, "-") != 0 &&
                 strcmp(answer.detail, "dead") != 0 &&
                 strcmp(answer.detail, "done") != 0);
    }
    wr_prepared_fini(&p);
    return rc;
}

/* ---- many ---- */

/* Consecutive jobs of one queue, up to a batch's bounds. */
struct batch {
    struct wr_queue *queue;
    struct wr_admit items[WR_BATCH_MAX];
    struct weir_enqueued *out[WR_BATCH_MAX];
    struct wr_prepared jobs[WR_BATCH_MAX];
    size_t n, bytes;
};

/* A failure of this kind says that the next call would fail as well. */
static bool
ends_all(enum weir_err rc)
{
    enum weir_err_kind kind = weir_err_kind_of(rc);

    return kind == WEIR_KIND_BUSY || kind == WEIR_KIND_UNKNOWN ||
           kind == WEIR_KIND_BROKEN;
}

static enum weir_err
flush(struct weir_client *c, struct batch *b, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    if (b->n > 0)
        rc = send_batch(c, b->queue, b->items, b->n, b->out, err);
    for (size_t i = 0; i < b->n; i++)
        wr_prepared_fini(&b->jobs[i]);
    b->n = b->bytes = 0;
    return rc;
}

static void
keep_first(enum weir_err rc, const struct weir_error *one, enum weir_err *first,
           struct weir_error *err)
{
    if (rc == WEIR_OK || *first != WEIR_OK)
        return;
    *first = rc;
    if (err)
        *err = *one;
}

/* Adds one job to the batch, sending what is there when it does not fit. */
static enum weir_err
add_job(struct weir_client *c, struct batch *b, const struct weir_job *job,
        struct weir_enqueued *out, struct weir_error *err)
{
    struct wr_queue *queue;
    struct weir_job known;
    struct wr_prepared *p;
    enum weir_err rc = wr_client_queue(c, job->queue, &queue, err), sent = WEIR_OK;

    *out = (struct weir_enqueued){0};
    wr_known_job(job, &known);
    if (rc == WEIR_OK && wr_may_replace(&known)) {
        sent = flush(c, b, err);
        if (ends_all(sent))
            return out->code = sent;
        rc = weir_job_enqueue(c, job, out, err);
        return rc != WEIR_OK ? rc : sent;
    }
    if (rc != WEIR_OK)
        return out->code = rc;
    if (b->n == WR_BATCH_MAX ||
        (b->n > 0 && (b->queue != queue || b->bytes > WR_BATCH_BYTES)))
        sent = flush(c, b, err);
    if (ends_all(sent))
        return out->code = sent;
    p = &b->jobs[b->n];
    *p = (struct wr_prepared){0};
    rc = wr_prepare(&known, p, err);
    if (rc != WEIR_OK) {
        wr_prepared_fini(p);
        out->code = rc;
        return sent != WEIR_OK ? sent : rc;
    }
    out->id = p->id;
    b->queue = queue;
    b->items[b->n] = p->item;
    b->out[b->n] = out;
    b->bytes += p->tail.len;
    b->n++;
    return sent;
}

enum weir_err
weir_job_enqueue_many(struct weir_client *c, const struct weir_job *jobs, size_t n,
                      struct weir_enqueued *out, struct weir_error *err)
{
    struct batch *b = calloc(1, sizeof(*b));
    enum weir_err rc = WEIR_OK, first = WEIR_OK;
    struct weir_error one = {0};
    size_t i = 0;

    if (!b)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "enqueue");
    for (; i < n && !ends_all(rc); i++) {
        const struct weir_job *job = (const struct weir_job *)((const char *)jobs +
                                                               i * jobs[0].struct_size);

        rc = add_job(c, b, job, &out[i], &one);
        keep_first(rc, &one, &first, err);
    }
    if (!ends_all(rc)) {
        rc = flush(c, b, &one);
        keep_first(rc, &one, &first, err);
    }
    for (; i < n; i++)
        out[i] = (struct weir_enqueued){.code = WEIR_E_CONNECT};
    free(b);
    return first;
}
