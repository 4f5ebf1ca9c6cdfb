/*
 * Cron entries: checks what a program wants, and makes of what is stored what it gave.
 */
#include <weir/cron.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "client/client_internal.h"
#include "cron/schedule.h"
#include "model/entry.h"
#include "model/follow.h"
#include "store/cron.h"

_Static_assert((int)WEIR_MISSED_ALL == (int)WR_MISSED_ALL &&
                   (int)WEIR_MISSED_SKIP == (int)WR_MISSED_SKIP,
               "the same words in the same order");
_Static_assert((int)WEIR_OVERLAP_SKIP == (int)WR_OVERLAP_SKIP &&
                   (int)WEIR_OVERLAP_QUEUE == (int)WR_OVERLAP_QUEUE &&
                   (int)WEIR_OVERLAP_REPLACE == (int)WR_OVERLAP_REPLACE,
               "the same words in the same order");

#define RESUME_TRIES 5

/* ---- schedules ---- */

/* A schedule and its zone, ready to be asked. */
struct when {
    struct wr_schedule schedule;
    struct wr_zone *zone;
};

static enum weir_err
when_open(const char *schedule, const char *zone, struct when *out,
          struct weir_error *err)
{
    enum weir_err rc;

    out->zone = NULL;
    if (!schedule)
        return wr_fail(err, WEIR_E_ARG, 0, "schedule: missing");
    rc = wr_schedule_parse(schedule, &out->schedule, err);
    if (rc == WEIR_OK)
        rc = wr_zone_open(zone ? zone : "UTC", &out->zone, err);
    return rc;
}

enum weir_err
weir_cron_next(const char *schedule, const char *zone, int64_t after_ms, int64_t *out,
               size_t n, size_t *count, char *warning, size_t warning_len,
               struct weir_error *err)
{
    struct when w;
    enum weir_err rc = when_open(schedule, zone, &w, err);

    *count = 0;
    if (rc != WEIR_OK)
        return rc;
    if (warning && warning_len > 0)
        wr_schedule_warn(&w.schedule, warning, warning_len);
    while (*count < n) {
        after_ms = wr_schedule_next(&w.schedule, w.zone, after_ms);
        if (after_ms < 0)
            break;
        out[(*count)++] = after_ms;
    }
    wr_zone_free(w.zone);
    return WEIR_OK;
}

/* The first time after the server's now; -1: never. */
static enum weir_err
next_by_server(struct wr_store *store, const char *schedule, const char *zone,
               int64_t *out, struct weir_error *err)
{
    struct when w;
    int64_t us;
    enum weir_err rc = when_open(schedule, zone, &w, err);

    if (rc == WEIR_OK)
        rc = wr_store_time(store, &us, err);
    if (rc == WEIR_OK)
        *out = wr_schedule_next(&w.schedule, w.zone, us / 1000);
    wr_zone_free(w.zone);
    return rc;
}

/* ---- storing ---- */

/* Entries of an older program are shorter; what it does not know is 0. */
static struct weir_cron
known_entry(const struct weir_cron *given)
{
    struct weir_cron e = {0};

    memcpy(&e, given, given->struct_size < sizeof(e) ? given->struct_size : sizeof(e));
    return e;
}

static enum weir_err
check_name(const char *name, struct weir_error *err)
{
    if (!name || !wr_entry_is_name(wr_span_str(name)))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "cron entry: a name of 1 to %d bytes, no control characters",
                       WR_ENTRY_NAME_MAX);
    return WEIR_OK;
}

static enum weir_err
check_entry(const struct weir_cron *e, struct weir_error *err)
{
    enum weir_err rc = check_name(e->name, err);

    if (rc != WEIR_OK)
        return rc;
    if (!e->job)
        return wr_fail(err, WEIR_E_ARG, 0, "cron entry: no job");
    if (e->job->queue || e->job->id || e->job->delay_ms || e->job->at_ms ||
        e->job->replace)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "cron entry: queue, id, delay, at and replace are not its job's");
    if (e->job->debounce_ms || e->job->unique_conflict)
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "cron entry: debounce and unique conflict are not for its job; the "
            "overlap rule says what becomes of the run before");
    if (e->missed_cap < 0 || e->missed_cap > WR_CAP_MAX)
        return wr_fail(err, WEIR_E_ARG, 0, "missed runs: a limit from 1 to %d",
                       WR_CAP_MAX);
    if (e->jitter_ms < 0 || e->jitter_ms > WR_TIME_MAX_MS)
        return wr_fail(err, WEIR_E_ARG, 0, "jitter: negative, or too long");
    if (e->grace_ms < WEIR_NONE || e->grace_ms > WR_TIME_MAX_MS)
        return wr_fail(err, WEIR_E_ARG, 0, "grace: negative, or too long");
    if ((unsigned)e->missed > WEIR_MISSED_ALL ||
        (unsigned)e->overlap > WEIR_OVERLAP_REPLACE)
        return wr_fail(err, WEIR_E_ARG, 0, "cron entry: an unknown policy");
    return WEIR_OK;
}

/* What is stored of it. */
static enum weir_err
write_entry(const struct weir_cron *e, struct wr_buf *out, struct weir_error *err)
{
    struct wr_buf head = {0}, tail = {0};
    struct wr_entry entry = {
        .missed = (enum wr_missed)e->missed,
        .overlap = (enum wr_overlap)e->overlap,
        .cap = e->missed_cap > 0 ? e->missed_cap : WR_CAP_DEFAULT,
        .grace_ms = e->grace_ms == 0           ? WR_GRACE_DEFAULT_MS
                    : e->grace_ms == WEIR_NONE ? 0
                                               : e->grace_ms,
        .jitter_ms = e->jitter_ms,
    };
    enum weir_err rc = wr_client_template(e->job, &head, &tail, err);

    if (e->job && e->job->unique)
        entry.window_ms = e->job->unique_window_ms;
    snprintf(entry.spec, sizeof(entry.spec), "%s", e->schedule);
    snprintf(entry.zone, sizeof(entry.zone), "%s", e->zone ? e->zone : "UTC");
    if (rc == WEIR_OK) {
        wr_entry_write(&entry, wr_buf_span(&head), wr_buf_span(&tail), out);
        if (out->failed)
            rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "cron entry");
        else if (out->len > WR_ENTRY_BYTES_MAX)
            rc = wr_fail(err, WEIR_E_TOO_BIG, 0,
                         "cron entry: %zu bytes with its payload; at most %d", out->len,
                         WR_ENTRY_BYTES_MAX);
    }
    wr_buf_fini(&head);
    wr_buf_fini(&tail);
    return rc;
}

void
wr_cron_made_free(struct wr_cron_made *made)
{
    if (!made)
        return;
    wr_buf_fini(&made->def);
    free(made);
}

/* Is it a schedule that comes, in a zone that is? */
static enum weir_err
check_when(const char *schedule, const char *zone, struct weir_error *err)
{
    struct when w;
    enum weir_err rc = when_open(schedule, zone, &w, err);

    wr_zone_free(w.zone);
    return rc;
}

static enum weir_err
fill_made(struct wr_cron_made *made, const struct weir_cron *given,
          const char *default_queue, struct weir_error *err)
{
    struct weir_cron e = known_entry(given);
    struct weir_job job = {0};
    enum weir_err rc;

    if (e.job) { /* as known_entry() has it of the entry */
        memcpy(&job, e.job,
               e.job->struct_size < sizeof(job) ? e.job->struct_size : sizeof(job));
        e.job = &job;
    }
    e.queue = e.queue ? e.queue : default_queue;
    e.zone = e.zone ? e.zone : "UTC";
    rc = check_entry(&e, err);
    job.queue = e.queue; /* where its follow-up jobs go if they name none */
    if (rc == WEIR_OK && !wr_text_is_queue(wr_span_str(e.queue)))
        rc = wr_fail(err, WEIR_E_ARG, 0,
                     "queue: 1 to 128 bytes, no braces, no control characters");
    if (rc == WEIR_OK)
        rc = check_when(e.schedule, e.zone, err);
    if (rc == WEIR_OK)
        rc = write_entry(&e, &made->def, err);
    if (rc != WEIR_OK)
        return rc;
    snprintf(made->queue, sizeof(made->queue), "%s", e.queue);
    snprintf(made->name, sizeof(made->name), "%s", e.name);
    snprintf(made->schedule, sizeof(made->schedule), "%s", e.schedule);
    snprintf(made->zone, sizeof(made->zone), "%s", e.zone);
    return WEIR_OK;
}

enum weir_err
wr_cron_make(const struct weir_cron *entry, const char *default_queue,
             struct wr_cron_made **out, struct weir_error *err)
{
    struct wr_cron_made *made = calloc(1, sizeof(*made));
    enum weir_err rc;

    *out = NULL;
    if (!made)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "cron entry");
    rc = fill_made(made, entry, default_queue, err);
    if (rc != WEIR_OK) {
        wr_cron_made_free(made);
        return rc;
    }
    *out = made;
    return WEIR_OK;
}

enum weir_err
wr_cron_store(struct wr_store *store, const struct wr_cron_made *made, int64_t revision,
              bool *same, struct weir_error *err)
{
    struct wr_queue *queue;
    int64_t next, rev;
    bool was = false;
    enum weir_err rc = wr_store_queue(store, made->queue, &queue, err);

    if (rc == WEIR_OK)
        rc = next_by_server(store, made->schedule, made->zone, &next, err);
    if (rc == WEIR_OK)
        rc = wr_store_cron_put(store, queue, made->name, revision, next,
                               wr_buf_span(&made->def), &rev, &was, err);
    if (rc == WEIR_OK && same)
        *same = was;
    return rc;
}

enum weir_err
weir_cron_put(struct weir_client *c, const struct weir_cron *entry, int64_t revision,
              bool *same, struct weir_error *err)
{
    struct wr_cron_made *made;
    enum weir_err rc = wr_cron_make(entry, "default", &made, err);

    if (!made)
        return rc;
    rc = wr_cron_store(c->store, made, revision, same, err);
    wr_cron_made_free(made);
    return rc;
}

/* ---- reading ---- */

/* An info with all that it points to. The info comes first: they are freed by it. */
struct holder {
    struct weir_cron_info info;
    struct weir_job job;
    struct wr_entry entry;
    struct wr_record record;
    struct wr_buf text; /* the record with a time, as the codec wants it */
    struct weir_meta *meta;
    struct wr_buf *meta_texts;
    size_t meta_n;
    struct weir_then then[WR_THEN_MAX];
    struct wr_buf then_texts[WR_THEN_MAX][2];
    size_t then_n;
    char name[WR_ENTRY_NAME_MAX + 1], queue[132], last_id[WR_ENTRY_NAME_MAX + 80];
};

static void
holder_free(struct holder *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->meta_n; i++)
        wr_buf_fini(&h->meta_texts[i]);
    for (size_t i = 0; i < WR_THEN_MAX; i++) {
        wr_buf_fini(&h->then_texts[i][0]);
        wr_buf_fini(&h->then_texts[i][1]);
    }
    free(h->meta_texts);
    free(h->meta);
    wr_record_fini(&h->record);
    wr_buf_fini(&h->text);
    free(h);
}

void
weir_cron_info_free(struct weir_cron_info *info)
{
    holder_free((struct holder *)(void *)info);
}

/* "1 mail retry=5\n..." -> "1 mail 0 retry=5\n...". */
static bool
add_time(struct wr_span record, struct wr_buf *out)
{
    const char *p = record.ptr, *end = p + record.len;
    const char *type = memchr(p, ' ', record.len), *rest;

    if (!type)
        return false;
    for (rest = type + 1; rest < end && *rest != ' ' && *rest != '\n';)
        rest++;
    wr_buf_add(out, p, (size_t)(rest - p));
    wr_buf_add_str(out, " 0");
    wr_buf_add(out, rest, (size_t)(end - rest));
    return !out->failed;
}

/* "meta.a=b meta.c=d", as the codec gives it. */
static bool
read_meta(struct holder *h)
{
    const char *p = h->record.meta.ptr, *end = p + h->record.meta.len;
    size_t words = 1;

    if (h->record.meta.len == 0)
        return true;
    for (const char *q = p; q < end; q++)
        words += *q == ' ';
    h->meta = calloc(words, sizeof(*h->meta));
    h->meta_texts = calloc(words, sizeof(*h->meta_texts));
    if (!h->meta || !h->meta_texts)
        return false;
    while (p < end) {
        const char *blank = memchr(p, ' ', (size_t)(end - p));
        const char *stop = blank ? blank : end;
        const char *equals = memchr(p, '=', (size_t)(stop - p));
        struct wr_buf *text = &h->meta_texts[h->meta_n];
        size_t value;

        if (equals && equals > p + 5) { /* after "meta." */
            h->meta_n++;
            wr_text_word_decode(text, (struct wr_span){p + 5, (size_t)(equals - p - 5)});
            wr_buf_add(text, "", 1);
            value = text->len;
            wr_text_word_decode(
                text, (struct wr_span){equals + 1, (size_t)(stop - equals - 1)});
            wr_buf_add(text, "", 1);
            if (text->failed)
                return false;
            h->meta[h->meta_n - 1] = (struct weir_meta){text->ptr, text->ptr + value};
        }
        p = blank ? blank + 1 : end;
    }
    return true;
}

static bool
read_then(struct holder *h)
{
    struct wr_span rest = h->record.then;

    while (rest.len > 0) {
        struct wr_buf *text = h->then_texts[h->then_n];

        if (h->then_n == WR_THEN_MAX || !wr_then_take(&rest, &text[0], &text[1]))
            return false;
        h->then[h->then_n++] = (struct weir_then){text[0].ptr, text[1].ptr};
    }
    return true;
}

static int64_t
or_none(int64_t value)
{
    return value == 0 ? WEIR_NONE : value;
}

/* Does the record say it itself? Else the queue's default holds, whatever that will be.
 */
static bool
says_retry(struct wr_span record)
{
    const char *newline = memchr(record.ptr, '\n', record.len);
    size_t len = newline ? (size_t)(newline - (const char *)record.ptr) : record.len;

    return memmem(record.ptr, len, " retry=", 7) != NULL;
}

static void
fill_job(struct holder *h)
{
    const struct wr_record *r = &h->record;

    h->job = (struct weir_job){
        WEIR_JOB_INIT,
        .type = r->type.ptr,
        .payload = r->payload.ptr,
        .payload_len = r->payload.len,
        .max_retry = says_retry(h->entry.record) ? or_none(r->max_retry) : 0,
        .backoff = r->backoff.len > 0 ? r->backoff.ptr : NULL,
        .max_deliveries = or_none(r->max_deliveries),
        .timeout_ms = or_none(r->timeout_ms),
        .kill_after_ms = or_none(r->kill_after_ms),
        .keep_result_ms = r->keep_ms,
        .keep_progress_ms = r->keep_progress_ms == WR_PROGRESS_WITH_JOB
                                ? 0
                                : or_none(r->keep_progress_ms),
        .expires_ms = r->expires_ms,
        .unique = r->unique.len > 0 ? r->unique.ptr : NULL,
        .unique_window_ms = h->entry.window_ms,
        .unique_states = r->unique_states.len > 0 ? r->unique_states.ptr : NULL,
        .order_key = r->order.len > 0 ? r->order.ptr : NULL,
        .meta = h->meta,
        .meta_count = h->meta_n,
        .then = h->then_n > 0 ? h->then : NULL,
        .then_count = h->then_n,
    };
}

static void
fill_info(struct holder *h, int64_t server_us)
{
    const struct wr_entry *e = &h->entry;

    if (e->last[0])
        snprintf(h->last_id, sizeof(h->last_id), "cron:%s:%s", h->name, e->last);
    h->info = (struct weir_cron_info){
        .entry =
            {
                WEIR_CRON_INIT,
                .queue = h->queue,
                .name = h->name,
                .schedule = e->spec,
                .zone = e->zone,
                .missed = (enum weir_missed)e->missed,
                .missed_cap = e->cap,
                .grace_ms = or_none(e->grace_ms),
                .overlap = (enum weir_overlap)e->overlap,
                .jitter_ms = e->jitter_ms,
                .job = &h->job,
            },
        .revision = e->rev,
        .paused = e->paused,
        .waiting = e->waits[0] != '\0',
        .next_at = e->paused || e->due_ms < 0 ? 0 : e->due_ms,
        .last_at = e->last_at_ms,
        .last_id = h->last_id,
        .fired = e->fired,
        .skipped = e->skipped,
        .now = server_us / 1000,
    };
}

/* *out NULL with OK: the text is no entry. */
static enum weir_err
read_entry(const char *queue, struct wr_span name, struct wr_span text, int64_t server_us,
           struct holder **out)
{
    struct holder *h = calloc(1, sizeof(*h));
    int version;

    *out = NULL;
    if (!h)
        return WEIR_E_NO_MEMORY;
    memcpy(h->name, name.ptr, name.len);
    snprintf(h->queue, sizeof(h->queue), "%s", queue);
    if (wr_entry_read(text, &h->entry) && add_time(h->entry.record, &h->text) &&
        wr_record_read(wr_buf_span(&h->text), &h->record, &version) && read_meta(h) &&
        read_then(h)) {
        fill_job(h);
        fill_info(h, server_us);
        *out = h;
        return WEIR_OK;
    }
    if (h->text.failed) {
        holder_free(h);
        return WEIR_E_NO_MEMORY;
    }
    holder_free(h);
    return WEIR_OK;
}

enum weir_err
weir_cron_get(struct weir_client *c, const char *queue_name, const char *name,
              struct weir_cron_info **out, struct weir_error *err)
{
    struct wr_reply *reply = NULL;
    struct wr_queue *queue;
    struct wr_span text;
    struct holder *h = NULL;
    int64_t us;
    enum weir_err rc = check_name(name, err);

    *out = NULL;
    if (rc == WEIR_OK)
        rc = wr_client_queue(c, queue_name, &queue, err);
    if (rc == WEIR_OK)
        rc = wr_store_cron_get(c->store, queue, name, &us, &reply, &text, err);
    if (rc != WEIR_OK)
        return rc;
    if (read_entry(wr_queue_name(queue), wr_span_str(name), text, us, &h) != WEIR_OK)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "cron entry");
    else if (!h)
        rc = wr_fail(
            err, WEIR_E_CORRUPT, 0,
            "cron entry \"%.100s\" of queue %s cannot be read (written by hand, or "
            "by a later version); remove it or put it anew",
            name, wr_queue_name(queue));
    else
        *out = &h->info;
    wr_reply_free(reply);
    return rc;
}

/* ---- the list ---- */

struct listed {
    char name[WR_ENTRY_NAME_MAX + 1];
    struct holder *h; /* NULL: unreadable */
};

struct list {
    const char *queue;
    struct listed *items;
    size_t n, cap;
    bool failed;
};

static void
list_add(struct wr_span name, struct wr_span text, void *context)
{
    struct list *l = context;
    struct listed *item;

    if (l->failed || !wr_entry_is_name(name))
        return;
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        struct listed *items = realloc(l->items, cap * sizeof(*items));

        if (!items) {
            l->failed = true;
            return;
        }
        l->items = items;
        l->cap = cap;
    }
    item = &l->items[l->n];
    *item = (struct listed){.h = NULL};
    memcpy(item->name, name.ptr, name.len);
    if (read_entry(l->queue, name, text, 0, &item->h) != WEIR_OK)
        l->failed = true;
    else
        l->n++;
    if (item->h) /* lists come without payloads: what is there is none */
        item->h->job.payload = NULL;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

enum weir_err
weir_cron_list(struct weir_client *c, const char *queue_name, weir_cron_fn each,
               void *context, struct weir_error *err)
{
    char version[WR_CRON_VERSION_MAX] = "";
    struct list l = {0};
    struct wr_queue *queue;
    int64_t us = 0;
    bool same, go_on = true;
    enum weir_err rc = wr_client_queue(c, queue_name, &queue, err);

    if (rc != WEIR_OK)
        return rc;
    l.queue = wr_queue_name(queue);
    rc = wr_store_cron_each(c->store, queue, version, &same, &us, list_add, &l, err);
    if (rc == WEIR_OK && l.failed)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "cron entries");
    if (l.n > 0)
        qsort(l.items, l.n, sizeof(*l.items), by_name);
    for (size_t i = 0; i < l.n; i++) {
        struct listed *item = &l.items[i];
        bool twice = i > 0 && strcmp(item->name, l.items[i - 1].name) == 0;

        if (item->h)
            item->h->info.now = us / 1000;
        if (rc == WEIR_OK && go_on && !twice)
            go_on = each(item->name, item->h ? &item->h->info : NULL, context);
    }
    for (size_t i = 0; i < l.n; i++)
        holder_free(l.items[i].h);
    free(l.items);
    return rc;
}

/* ---- deciding ---- */

enum weir_err
weir_cron_remove(struct weir_client *c, const char *queue_name, const char *name,
                 int64_t revision, struct weir_error *err)
{
    struct wr_queue *queue;
    enum weir_err rc = check_name(name, err);

    if (rc == WEIR_OK)
        rc = wr_client_queue(c, queue_name, &queue, err);
    if (rc == WEIR_OK)
        rc = wr_store_cron_remove(c->store, queue, name, revision, err);
    return rc;
}

enum weir_err
weir_cron_pause(struct weir_client *c, const char *queue_name, const char *name,
                bool *was, struct weir_error *err)
{
    struct wr_queue *queue;
    enum weir_err rc = check_name(name, err);

    if (rc == WEIR_OK)
        rc = wr_client_queue(c, queue_name, &queue, err);
    if (rc == WEIR_OK)
        rc = wr_store_cron_pause(c->store, queue, name, was, err);
    return rc;
}

/* The next tick is computed here, of a definition that may change meanwhile: then again.
 */
enum weir_err
weir_cron_resume(struct weir_client *c, const char *queue_name, const char *name,
                 bool *was, struct weir_error *err)
{
    struct wr_queue *queue;
    enum weir_err rc = wr_client_queue(c, queue_name, &queue, err);

    for (int tries = 0; rc == WEIR_OK || rc == WEIR_E_CHANGED; tries++) {
        struct weir_cron_info *info;
        int64_t next;

        rc = weir_cron_get(c, queue_name, name, &info, err);
        if (rc != WEIR_OK || !info)
            return rc;
        rc = next_by_server(c->store, info->entry.schedule, info->entry.zone, &next, err);
        if (rc == WEIR_OK)
            rc = wr_store_cron_resume(c->store, queue, name, info->revision, next, was,
                                      err);
        weir_cron_info_free(info);
        if (rc != WEIR_E_CHANGED || tries == RESUME_TRIES)
            return rc;
    }
    return rc;
}

static enum weir_err
read_run(const struct wr_cron_fired *f, const char *name, struct weir_job_id *id,
         struct weir_error *err)
{
    switch (f->word) {
    case WR_CRON_OK:
        if (id)
            snprintf(id->str, sizeof(id->str), "%.255s", f->detail);
        return WEIR_OK;
    case WR_CRON_GONE:
        return wr_fail(err, WEIR_E_NO_CRON, 0, "no cron entry \"%.100s\"", name);
    case WR_CRON_SKIPPED:
        return wr_fail(err, WEIR_E_UNIQUE, 0, "the run before is not over: %.150s",
                       f->detail);
    case WR_CRON_WAITS:
        return wr_fail(err, WEIR_E_WRONG_STATE, 0,
                       "it waits for the end of the run before: %.150s", f->detail);
    case WR_CRON_REFUSED:
        if (strncmp(f->detail, "UNIQUE ", 7) == 0)
            return wr_fail(err, WEIR_E_UNIQUE, 0, "its unique key is held by %.180s",
                           f->detail + 7);
        if (strncmp(f->detail, "BIG ", 4) == 0)
            return wr_fail(err, WEIR_E_TOO_BIG, 0,
                           "payload over the queue's limit of %.30s bytes",
                           f->detail + 4);
        return wr_fail(err, WEIR_E_EXISTS, 0, "the queue refused the job: %.180s",
                       f->detail);
    case WR_CRON_PASSED:
    case WR_CRON_NONE:
    case WR_CRON_EARLY:
    case WR_CRON_CHANGED:
        break;
    }
    return wr_fail(err, WEIR_E_BUG, 0, "cron run: an answer without a case");
}

enum weir_err
weir_cron_run(struct weir_client *c, const char *queue_name, const char *name,
              struct weir_job_id *id, struct weir_error *err)
{
    char request[WR_ID_LEN + 1];

    wr_id_make(request);
    return weir_cron_run_as(c, queue_name, name, request, id, err);
}

/* It becomes a part of the job's id, and of the entry's first line. */
static bool
is_request(const char *request)
{
    size_t len = strspn(request, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789._-");

    return len > 0 && len <= WEIR_CRON_REQUEST_MAX && request[len] == '\0';
}

enum weir_err
weir_cron_run_as(struct weir_client *c, const char *queue_name, const char *name,
                 const char *request, struct weir_job_id *id, struct weir_error *err)
{
    struct wr_cron_fired f;
    struct wr_queue *queue;
    char run[WEIR_CRON_REQUEST_MAX + 8];
    enum weir_err rc = check_name(name, err);

    if (rc == WEIR_OK && !is_request(request))
        rc = wr_fail(err, WEIR_E_ARG, 0,
                     "request: 1 to %d letters, digits, dots, dashes, underscores",
                     WEIR_CRON_REQUEST_MAX);
    if (rc == WEIR_OK)
        rc = wr_client_queue(c, queue_name, &queue, err);
    if (rc != WEIR_OK)
        return rc;
    snprintf(run, sizeof(run), "run-%s", request);
    rc = wr_store_cron_run(c->store, queue, name, run, &f, err);
    if (rc == WEIR_E_NO_QUEUE)
        return wr_fail(err, WEIR_E_NO_CRON, 0, "no cron entry \"%.100s\"", name);
    return rc == WEIR_OK ? read_run(&f, name, id, err) : rc;
}
