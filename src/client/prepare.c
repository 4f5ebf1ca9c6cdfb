/* A job as a program gives it becomes what the scripts take: checked, and written. */
#include "client/prepare.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "client/client_internal.h"
#include "model/codec.h"
#include "model/follow.h"
#include "model/retry.h"
#include "model/unique.h"

#define META_MAX 64

void
wr_prepared_fini(struct wr_prepared *p)
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

void
wr_known_job(const struct weir_job *given, struct weir_job *known)
{
    size_t size = given->struct_size;

    *known = (struct weir_job){0};
    memcpy(known, given, size < sizeof(*known) ? size : sizeof(*known));
    known->max_deliveries = or_default(known->max_deliveries, WR_DELIVERIES_DEFAULT);
    known->timeout_ms = or_default(known->timeout_ms, WR_TIMEOUT_DEFAULT_MS);
    known->kill_after_ms = or_default(known->kill_after_ms, WR_KILL_AFTER_DEFAULT_MS);
}

/* clang-format off */
static const struct {
    const char *name;
    size_t field;
    int64_t max;
    bool or_none;
} numbers[] = {
    {"delay",          offsetof(struct weir_job, delay_ms),         WR_TIME_MAX_MS, false},
    {"at",             offsetof(struct weir_job, at_ms),            WR_TIME_MAX_MS, false},
    {"max_retry",      offsetof(struct weir_job, max_retry),        1000000,        true},
    {"max_deliveries", offsetof(struct weir_job, max_deliveries),   1000000,        false},
    {"timeout",        offsetof(struct weir_job, timeout_ms),       WR_TIME_MAX_MS, false},
    {"kill_after",     offsetof(struct weir_job, kill_after_ms),    86400000,       false},
    {"keep_result",    offsetof(struct weir_job, keep_result_ms),   WR_TIME_MAX_MS, false},
    {"expires",        offsetof(struct weir_job, expires_ms),       WR_TIME_MAX_MS, false},
    {"unique_window",  offsetof(struct weir_job, unique_window_ms), WR_TIME_MAX_MS, false},
    {"debounce",       offsetof(struct weir_job, debounce_ms),      WR_TIME_MAX_MS, false},
    {"keep_progress",  offsetof(struct weir_job, keep_progress_ms), WR_TIME_MAX_MS, true},
};
/* clang-format on */

static enum weir_err
check_numbers(const struct weir_job *job, struct weir_error *err)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int64_t value = *(const int64_t *)(const void *)((const char *)job +
                                                         numbers[i].field);

        if (value < 0 && !(numbers[i].or_none && value == WEIR_NONE))
            return wr_fail(err, WEIR_E_ARG, 0, "%s: negative", numbers[i].name);
        if (value > numbers[i].max)
            return wr_fail(err, WEIR_E_ARG, 0, "%s: more than %lld", numbers[i].name,
                           (long long)numbers[i].max);
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
write_record(const struct weir_job *job, struct wr_prepared *p, struct weir_error *err)
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

bool
wr_may_replace(const struct weir_job *job)
{
    return job->replace || *unique_mode(job);
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

enum weir_err
wr_prepare(const struct weir_job *known, struct wr_prepared *p, struct weir_error *err)
{
    enum weir_err rc = check_words(known, err);

    if (rc == WEIR_OK)
        rc = check_numbers(known, err);
    if (rc == WEIR_OK)
        rc = check_unique(known, err);
    if (rc == WEIR_OK)
        rc = write_record(known, p, err);
    if (rc != WEIR_OK)
        return rc;
    if (known->id)
        wr_span_copy(wr_span_str(known->id), p->id.str, sizeof(p->id.str));
    else
        wr_id_make(p->id.str);
    if (known->unique || known->order_key)
        write_keys(known, &p->unique);
    if (known->debounce_ms > 0)
        snprintf(p->due, sizeof(p->due), "+%lld", (long long)known->debounce_ms);
    else if (known->delay_ms > 0)
        snprintf(p->due, sizeof(p->due), "+%lld", (long long)known->delay_ms);
    else if (known->at_ms > 0)
        snprintf(p->due, sizeof(p->due), "@%lld", (long long)known->at_ms);
    p->item = (struct wr_admit){
        .id = wr_span_str(p->id.str),
        .head = wr_buf_span(&p->head),
        .tail = wr_buf_span(&p->tail),
        .unique = wr_buf_span(&p->unique),
        .due = wr_span_str(p->due),
        .made_up = !known->id,
    };
    return WEIR_OK;
}

enum weir_err
wr_client_template(const struct weir_job *job, struct wr_buf *head, struct wr_buf *tail,
                   struct weir_error *err)
{
    struct wr_prepared p = {0};
    struct weir_job known;
    enum weir_err rc;

    wr_known_job(job, &known);
    rc = wr_prepare(&known, &p, err);
    if (rc == WEIR_OK) {
        *head = p.head; /* theirs now */
        *tail = p.tail;
        p.head = p.tail = (struct wr_buf){0};
    }
    wr_prepared_fini(&p);
    return rc;
}

enum weir_err
wr_client_follow(const struct weir_job *given, const char *channel, size_t n,
                 struct wr_buf *out, struct weir_error *err)
{
    struct weir_job job;
    struct wr_prepared p = {0};
    char id[21];
    enum weir_err rc;

    wr_known_job(given, &job);
    if (!job.queue)
        job.queue = "default";
    wr_follow_id(channel, n, id);
    if (!job.id)
        job.id = id;
    if (!wr_text_is_queue(wr_span_str(job.queue)))
        return wr_fail(err, WEIR_E_ARG, 0, "queue %.100s: not a queue's name", job.queue);
    rc = wr_prepare(&job, &p, err);
    if (rc == WEIR_OK && wr_may_replace(&job))
        rc = wr_fail(err, WEIR_E_ARG, 0, "a follow-up job cannot replace another");
    if (rc == WEIR_OK)
        wr_follow_write(out, &(struct wr_follow){.queue = wr_span_str(job.queue),
                                                 .id = p.item.id,
                                                 .head = p.item.head,
                                                 .tail = p.item.tail,
                                                 .unique = p.item.unique,
                                                 .due = p.item.due});
    wr_prepared_fini(&p);
    if (rc == WEIR_OK && out->failed)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "follow-up job");
    return rc;
}
