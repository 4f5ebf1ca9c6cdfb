/*
 * Enqueue: checks each job, writes its record, sends batches under a channel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "client/client_internal.h"
#include "model/codec.h"
#include "model/follow.h"
#include "model/retry.h"
#include "model/unique.h"

#define META_MAX 64

/* A job made ready to be sent. The spans of `item` point into it and into the job. */
struct prepared {
    struct weir_job_id id;
    struct wr_buf head, tail, meta, unique, states, then; /* unique: the line as well */
    char due[32];
    struct wr_admit item;
};

static void
prepared_fini(struct prepared *p)
{
    wr_buf_fini(&p->head);
    wr_buf_fini(&p->tail);
    wr_buf_fini(&p->meta);
    wr_buf_fini(&p->unique);
    wr_buf_fini(&p->states);
    wr_buf_fini(&p->then);
}

/* 0 is the default, WEIR_NONE is none. */
static int64_t
or_default(int64_t value, int64_t otherwise)
{
    return value == 0 ? otherwise : value == WEIR_NONE ? 0 : value;
}

/* Jobs of an older program are shorter; what it does not know is 0. */
static struct weir_job
known_job(const struct weir_job *given)
{
    struct weir_job job = {0};

    memcpy(&job, given,
           given->struct_size < sizeof(job) ? given->struct_size : sizeof(job));
    job.max_deliveries = or_default(job.max_deliveries, WR_DELIVERIES_DEFAULT);
    job.timeout_ms = or_default(job.timeout_ms, WR_TIMEOUT_DEFAULT_MS);
    job.kill_after_ms = or_default(job.kill_after_ms, WR_KILL_AFTER_DEFAULT_MS);
    return job;
}

static enum weir_err
check_numbers(const struct weir_job *job, struct weir_error *err)
{
    /* clang-format off */
    const struct {
        const char *name;
        int64_t value, max;
    } rows[] = {
        {"delay", job->delay_ms, WR_TIME_MAX_MS},
        {"at", job->at_ms, WR_TIME_MAX_MS},
        {"max_retry", job->max_retry == WEIR_NONE ? 0 : job->max_retry, 1000000},
        {"max_deliveries", job->max_deliveries, 1000000},
        {"timeout", job->timeout_ms, WR_TIME_MAX_MS},
        {"kill_after", job->kill_after_ms, 86400000},
        {"keep_result", job->keep_result_ms, WR_TIME_MAX_MS},
        {"expires", job->expires_ms, WR_TIME_MAX_MS},
        {"unique_window", job->unique_window_ms, WR_TIME_MAX_MS},
        {"debounce", job->debounce_ms, WR_TIME_MAX_MS},
        {"keep_progress", job->keep_progress_ms == WEIR_NONE ? 0 : job->keep_progress_ms,
         WR_TIME_MAX_MS},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].value < 0)
            return wr_fail(err, WEIR_E_ARG, 0, "%s: negative", rows[i].name);
        if (rows[i].value > rows[i].max)
            return wr_fail(err, WEIR_E_ARG, 0, "%s: more than %lld", rows[i].name,
                           (long long)rows[i].max);
    }
    if (job->delay_ms > 0 && job->at_ms > 0)
        return wr_fail(err, WEIR_E_ARG, 0, "delay and at: give one of them");
    return WEIR_OK;
}

static enum weir_err
check_words(const struct weir_job *job, struct weir_error *err)
{
    struct wr_backoff backoff;

    if (!job->type || !wr_text_is_type(wr_span_str(job->type)))
        return wr_fail(err, WEIR_E_ARG, 0, "type: 1 to 128 bytes, no control characters");
    if (job->id && !wr_text_is_job_id(wr_span_str(job->id)))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "job id: 1 to 255 bytes, no control characters");
    if (!job->payload && job->payload_len > 0)
        return wr_fail(err, WEIR_E_ARG, 0, "payload: NULL with a length");
    if (!wr_backoff_parse(job->backoff, &backoff))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "backoff %s: not exp:2s,1h, fixed:10s, linear:60s or list:0s,60s",
                       job->backoff);
    if (job->unique && (*job->unique == '\0' || strlen(job->unique) > 255))
        return wr_fail(err, WEIR_E_ARG, 0, "unique key: 1 to 255 bytes");
    if (job->order_key && (*job->order_key == '\0' || strlen(job->order_key) > 255))
        return wr_fail(err, WEIR_E_ARG, 0, "order key: 1 to 255 bytes");
    if (!wr_unique_states_write(job->unique_states, NULL))
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "unique states: ready, delayed, and any of processing, dead, done");
    if (job->meta_count > META_MAX || (job->meta_count > 0 && !job->meta))
        return wr_fail(err, WEIR_E_ARG, 0, "meta: at most %d fields", META_MAX);
    return WEIR_OK;
}

static enum weir_err
check_unique(const struct weir_job *job, struct weir_error *err)
{
    bool last = job->debounce_ms > 0 || job->unique_conflict == WEIR_UNIQUE_KEEP_LAST;

    if (!job->unique &&
        (job->debounce_ms > 0 || job->unique_conflict || job->unique_states))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "debounce, unique states and conflict need a unique key");
    if (job->unique_conflict > WEIR_UNIQUE_KEEP_LAST)
        return wr_fail(err, WEIR_E_ARG, 0, "unique conflict: %d",
                       (int)job->unique_conflict);
    if (last && job->order_key)
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "an ordered job keeps its place in its line, debounce and keep-last "
            "move it: give one of them");
    if (job->debounce_ms > 0 && (job->delay_ms > 0 || job->at_ms > 0))
        return wr_fail(err, WEIR_E_ARG, 0, "debounce, delay and at: give one of them");
    if (last && job->unique_window_ms > 0)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "a unique window refuses what debounce and keep-last let in: "
                       "give one of them");
    return WEIR_OK;
}

static enum weir_err
write_meta(const struct weir_job *job, struct wr_buf *out, struct weir_error *err)
{
    for (size_t i = 0; i < job->meta_count; i++) {
        const struct weir_meta *m = &job->meta[i];

        if (!m->name || *m->name == '\0' || !m->value)
            return wr_fail(err, WEIR_E_ARG, 0, "meta: a field without name or value");
        if (i > 0)
            wr_buf_add_str(out, " ");
        wr_buf_add_str(out, "meta.");
        wr_text_word_encode(out, wr_span_str(m->name));
        wr_buf_add_str(out, "=");
        wr_text_word_encode(out, wr_span_str(m->value));
    }
    return WEIR_OK;
}

static enum weir_err
write_then(const struct weir_job *job, struct wr_buf *out, struct weir_error *err)
{
    if (job->then_count > WR_THEN_MAX || (job->then_count > 0 && !job->then))
        return wr_fail(err, WEIR_E_ARG, 0, "then: at most %d steps", WR_THEN_MAX);
    for (size_t i = 0; i < job->then_count; i++) {
        const char *queue = job->then[i].queue ? job->then[i].queue
                            : job->queue       ? job->queue
                                               : "default";

        if (!job->then[i].type || !wr_text_is_type(wr_span_str(job->then[i].type)))
            return wr_fail(err, WEIR_E_ARG, 0,
                           "then: a type is 1 to 128 bytes, no control characters");
        if (!wr_text_is_queue(wr_span_str(queue)))
            return wr_fail(err, WEIR_E_ARG, 0, "then: queue %.100s: not a queue's name",
                           queue);
        wr_then_add(out, wr_span_str(job->then[i].type), wr_span_str(queue));
    }
    return WEIR_OK;
}

static enum weir_err
write_record(const struct weir_job *job, struct prepared *p, struct weir_error *err)
{
    struct wr_record r = {
        .type = wr_span_str(job->type),
        .max_retry = or_default(job->max_retry, WR_RETRY_DEFAULT),
        .max_retry_given = job->max_retry != 0,
        .max_deliveries = job->max_deliveries,
        .timeout_ms = job->timeout_ms,
        .kill_after_ms = job->kill_after_ms,
        .keep_ms = job->keep_result_ms,
        .expires_ms = job->expires_ms,
        .keep_progress_ms = or_default(job->keep_progress_ms, WR_PROGRESS_WITH_JOB),
        .backoff = wr_span_str(job->backoff ? job->backoff : ""),
        .unique = wr_span_str(job->unique ? job->unique : ""),
        .order = wr_span_str(job->order_key ? job->order_key : ""),
        .payload = {job->payload ? job->payload : "", job->payload_len},
    };
    enum weir_err rc = write_meta(job, &p->meta, err);

    if (rc == WEIR_OK)
        rc = write_then(job, &p->then, err);
    if (rc != WEIR_OK)
        return rc;
    r.then = wr_buf_span(&p->then);
    r.meta = wr_buf_span(&p->meta);
    (void)wr_unique_states_write(job->unique_states, &p->states);
    r.unique_states = wr_buf_span(&p->states);
    if (!wr_record_write(&r, &p->head, &p->tail))
        return p->head.failed || p->tail.failed
                   ? wr_fail(err, WEIR_E_NO_MEMORY, 0, "enqueue")
                   : wr_fail(err, WEIR_E_ARG, 0,
                             "type, options and meta: more than %d bytes", WR_HEADER_MAX);
    return WEIR_OK;
}

/* How the scripts name a conflict's way out. */
static const char *
unique_mode(const struct weir_job *job)
{
    if (job->debounce_ms > 0 || job->unique_conflict == WEIR_UNIQUE_KEEP_LAST)
        return " l";
    return job->unique_conflict == WEIR_UNIQUE_REPLACE ? " r" : "";
}

/* May this job take the place of another? Then it goes alone. */
static bool
may_replace(const struct weir_job *job)
{
    return job->replace || *unique_mode(job);
}

bool
wr_client_may_replace(const struct weir_job *given)
{
    struct weir_job job = known_job(given);

    return may_replace(&job);
}

/* "WINDOW KEY[ MODE][ =ORDER]", as the scripts read it. */
static void
write_keys(const struct weir_job *job, struct wr_buf *out)
{
    wr_buf_addf(out, "%lld ", (long long)job->unique_window_ms);
    if (job->unique)
        wr_text_given_word_encode(out, wr_span_str(job->unique));
    else
        wr_buf_add_str(out, "-");
    wr_buf_add_str(out, unique_mode(job));
    if (job->order_key) {
        wr_buf_add_str(out, " =");
        wr_text_given_word_encode(out, wr_span_str(job->order_key));
    }
}

static enum weir_err
prepare(const struct weir_job *given, struct prepared *p, struct weir_error *err)
{
    struct weir_job job = known_job(given);
    enum weir_err rc = check_words(&job, err);

    if (rc == WEIR_OK)
        rc = check_numbers(&job, err);
    if (rc == WEIR_OK)
        rc = check_unique(&job, err);
    if (rc == WEIR_OK)
        rc = write_record(&job, p, err);
    if (rc != WEIR_OK)
        return rc;
    if (job.id)
        wr_span_copy(wr_span_str(job.id), p->id.str, sizeof(p->id.str));
    else
        wr_id_make(p->id.str);
    if (job.unique || job.order_key)
        write_keys(&job, &p->unique);
    if (job.debounce_ms > 0)
        snprintf(p->due, sizeof(p->due), "+%lld", (long long)job.debounce_ms);
    else if (job.delay_ms > 0)
        snprintf(p->due, sizeof(p->due), "+%lld", (long long)job.delay_ms);
    else if (job.at_ms > 0)
        snprintf(p->due, sizeof(p->due), "@%lld", (long long)job.at_ms);
    p->item = (struct wr_admit){
        .id = wr_span_str(p->id.str),
        .head = wr_buf_span(&p->head),
        .tail = wr_buf_span(&p->tail),
        .unique = wr_buf_span(&p->unique),
        .due = wr_span_str(p->due),
        .made_up = !job.id,
    };
    return WEIR_OK;
}

enum weir_err
wr_client_template(const struct weir_job *job, struct wr_buf *head, struct wr_buf *tail,
                   struct weir_error *err)
{
    struct prepared p = {0};
    enum weir_err rc = prepare(job, &p, err);

    if (rc == WEIR_OK) {
        *head = p.head; /* theirs now */
        *tail = p.tail;
        p.head = p.tail = (struct wr_buf){0};
    }
    prepared_fini(&p);
    return rc;
}

enum weir_err
wr_client_follow(const struct weir_job *given, const char *channel, size_t n,
                 struct wr_buf *out, struct weir_error *err)
{
    struct weir_job job = {0};
    struct prepared p = {0};
    char id[21];
    enum weir_err rc;

    memcpy(&job, given,
           given->struct_size < sizeof(job) ? given->struct_size : sizeof(job));
    job.struct_size = sizeof(job);
    if (!job.queue)
        job.queue = "default";
    wr_follow_id(channel, n, id);
    if (!job.id)
        job.id = id;
    if (!wr_text_is_queue(wr_span_str(job.queue)))
        return wr_fail(err, WEIR_E_ARG, 0, "queue %.100s: not a queue's name", job.queue);
    rc = prepare(&job, &p, err);
    if (rc == WEIR_OK && may_replace(&job))
        rc = wr_fail(err, WEIR_E_ARG, 0, "a follow-up job cannot replace another");
    if (rc == WEIR_OK)
        wr_follow_write(out, &(struct wr_follow){.queue = wr_span_str(job.queue),
                                                 .id = p.item.id,
                                                 .head = p.item.head,
                                                 .tail = p.item.tail,
                                                 .unique = p.item.unique,
                                                 .due = p.item.due});
    prepared_fini(&p);
    if (rc == WEIR_OK && out->failed)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "follow-up job");
    return rc;
}

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
try_replace(struct weir_client *c, struct wr_queue *queue, struct prepared *p,
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
replace_or_send(struct weir_client *c, struct wr_queue *queue, struct prepared *p,
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
    struct prepared p = {0};
    struct wr_queue *queue;
    enum weir_err rc = wr_client_queue(c, job->queue, &queue, err);

    *to = (struct weir_enqueued){0};
    if (rc == WEIR_OK)
        rc = prepare(job, &p, err);
    if (rc == WEIR_OK) {
        struct weir_job known = known_job(job);
        bool replaces = may_replace(&known);

        to->id = p.id;
        rc = replaces ? replace_or_send(c, queue, &p, to, err)
                      : send_batch(c, queue, &p.item, 1, &to, err);
    }
    to->code = rc;
    prepared_fini(&p);
    return rc;
}

enum weir_err
wr_client_enqueue_waited(struct weir_client *c, const struct weir_job *job,
                         const struct wr_waiter *waiter, bool *told,
                         struct weir_enqueued *out, struct weir_error *err)
{
    struct prepared p = {0};
    struct wr_call_slot *slot = NULL;
    struct wr_admitted answer = {0};
    struct wr_queue *queue;
    enum weir_err rc = wr_client_queue(c, job->queue, &queue, err);

    *told = false;
    *out = (struct weir_enqueued){0};
    if (rc == WEIR_OK)
        rc = prepare(job, &p, err);
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
    prepared_fini(&p);
    return rc;
}

/* ---- many ---- */

/* Consecutive jobs of one queue, up to a batch's bounds. */
struct batch {
    struct wr_queue *queue;
    struct wr_admit items[WR_BATCH_MAX];
    struct weir_enqueued *out[WR_BATCH_MAX];
    struct prepared jobs[WR_BATCH_MAX];
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
        prepared_fini(&b->jobs[i]);
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
    struct prepared *p;
    enum weir_err rc = wr_client_queue(c, job->queue, &queue, err), sent = WEIR_OK;

    *out = (struct weir_enqueued){0};
    known = known_job(job);
    if (rc == WEIR_OK && may_replace(&known)) {
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
    *p = (struct prepared){0};
    rc = prepare(job, p, err);
    if (rc != WEIR_OK) {
        prepared_fini(p);
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
