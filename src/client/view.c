/* What is known of jobs: inspect, list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "client/client_internal.h"
#include "model/attempt.h"
#include "model/codec.h"
#include "model/progress.h"

#define VIEW_BYTES_MAX (64 * 1024 * 1024)
#define HEADER_BYTES (WR_HEADER_MAX + 64) /* all of a record but its payload */
#define PAGE 200
#define ATTEMPTS_MAX 10

struct weir_job_view {
    struct wr_reply *reply; /* NULL in lists: the list owns it */
    char id[256], queue[132], type[132], state[16], behind[256];
    struct wr_record record;
    struct wr_job_state job_state;
    struct wr_span result;
    struct wr_buf errors;
    struct weir_attempt attempts[ATTEMPTS_MAX];
    size_t attempts_n;
    char *attempts_text, *progress; /* text: what the attempts point to */
    struct wr_progress parts;
    struct wr_buf meta_value;
    struct weir_job_numbers numbers;
};

void
weir_job_view_free(struct weir_job_view *v)
{
    if (!v)
        return;
    wr_record_fini(&v->record);
    wr_reply_free(v->reply);
    wr_buf_fini(&v->errors);
    free(v->attempts_text);
    free(v->progress);
    wr_progress_fini(&v->parts);
    wr_buf_fini(&v->meta_value);
    free(v);
}

static void
fill_numbers(struct weir_job_view *v, int64_t now, int64_t score)
{
    const struct wr_job_state *s = &v->job_state;
    bool done = strcmp(v->state, "done") == 0;

    v->numbers = (struct weir_job_numbers){
        .now = now,
        .enqueued_at = v->record.enqueued_at_ms,
        .started_at = s->started_at_ms,
        .due_at = strcmp(v->state, "delayed") != 0 ? 0
                  : score >= WR_PARKED_MS          ? score - WR_PARKED_MS
                                                   : score,
        .lease_until = strcmp(v->state, "processing") == 0 ? score : 0,
        .finished_at = done                            ? score - s->keep_ms
                       : strcmp(v->state, "dead") == 0 ? score
                                                       : 0,
        .deliveries = s->deliveries,
        .attempts = s->attempts,
        .lost = s->lost,
        .interrupted = s->interrupted,
        .snoozes = s->snoozes,
        .max_retry = v->record.max_retry,
        .max_deliveries = v->record.max_deliveries,
        .timeout_ms = v->record.timeout_ms,
        .keep_result_ms = s->deliveries > 0 ? s->keep_ms : v->record.keep_ms,
        .keep_progress_ms = v->record.keep_progress_ms == WR_PROGRESS_WITH_JOB
                                ? -1
                                : v->record.keep_progress_ms,
    };
}

struct raw {
    struct wr_span id, place, record, state, result, errors, before;
    struct wr_progress_over over;
    int64_t now, score;
};

/* The next text behind *at, ended by a NUL. */
static const char *
put_text(char **at, struct wr_span text)
{
    char *begin = *at;

    memcpy(begin, text.ptr, text.len);
    begin[text.len] = '\0';
    *at += text.len + 1;
    return begin;
}

static void
fill_attempt(struct weir_attempt *out, const struct wr_attempt *a, char **text)
{
    *out = (struct weir_attempt){
        .at = a->at_ms,
        .number = a->number,
        .outcome = put_text(text, a->outcome),
        .worker = put_text(text, a->worker),
        .text = put_text(text, a->text),
        .wall_ms = a->wall_ms,
        .is_command = a->is_command,
        .exit_code = a->exit_code,
        .signal = a->signal,
        .start_errno = a->start_errno,
        .pid = a->pid,
        .user_us = a->user_us,
        .sys_us = a->sys_us,
        .max_rss_kib = a->max_rss_kib,
        .bytes_in = a->bytes_in,
        .bytes_out = a->bytes_out,
        .bytes_err = a->bytes_err,
        .out_cut = a->out_cut,
        .err_cut = a->err_cut,
        .core = a->core,
        .out_of_memory = a->out_of_memory,
    };
}

/* Runs that succeeded or were handed back are no errors. */
static bool
is_error(const char *outcome)
{
    return strcmp(outcome, "done") != 0 && strcmp(outcome, "released") != 0;
}

static void
read_attempts(struct weir_job_view *v, struct wr_span errors)
{
    struct wr_attempt a;
    /* Three ends a line, where there were two blanks and a newline. */
    char *text = malloc(errors.len + 3 * ATTEMPTS_MAX + 1);

    v->attempts_text = text;
    while (text && v->attempts_n < ATTEMPTS_MAX && wr_attempt_read(&errors, &a)) {
        struct weir_attempt *out = &v->attempts[v->attempts_n++];

        fill_attempt(out, &a, &text);
        if (is_error(out->outcome))
            wr_buf_addf(&v->errors, "%s%lld %s %s", v->errors.len > 0 ? "\n" : "",
                        (long long)out->at, out->outcome, out->text);
    }
}

static void
read_progress(struct weir_job_view *v, struct wr_span text)
{
    v->progress = strndup(text.ptr, text.len);
    wr_progress_read(text, &v->parts);
}

static struct weir_job_view *
view_new(const char *queue, const struct raw *raw)
{
    struct weir_job_view *v = calloc(1, sizeof(*v));
    int version;

    if (!v)
        return NULL;
    wr_span_copy(raw->id, v->id, sizeof(v->id));
    wr_span_copy(wr_span_str(queue), v->queue, sizeof(v->queue));
    wr_span_copy(raw->place, v->state, sizeof(v->state));
    if (wr_record_read(raw->record, &v->record, &version))
        wr_span_copy(v->record.type, v->type, sizeof(v->type));
    if (raw->state.len > 0 && wr_job_state_read(raw->state, &v->job_state))
        read_progress(v, raw->over.text.len > 0
                             ? raw->over.text
                             : wr_progress_text(v->job_state.progress));
    else if (raw->over.text.len > 0)
        read_progress(v, raw->over.text);
    read_attempts(v, raw->errors);
    v->result = raw->result;
    if (raw->score >= WR_PARKED_MS)
        wr_span_copy(raw->before, v->behind, sizeof(v->behind));
    fill_numbers(v, raw->now, raw->score);
    if (!v->attempts_text || v->errors.failed) {
        weir_job_view_free(v);
        return NULL;
    }
    return v;
}

static enum weir_err
view_of_reply(struct wr_queue *queue, const char *id, struct wr_reply *reply,
              struct weir_job_view **out, struct weir_error *err)
{
    struct raw raw = {
        .id = wr_span_str(id),
        .now = wr_reply_int(wr_reply_at(reply, 1)),
        .place = wr_reply_span(wr_reply_at(reply, 2)),
        .score = wr_reply_int(wr_reply_at(reply, 3)),
        .record = wr_reply_span(wr_reply_at(reply, 4)),
        .state = wr_reply_span(wr_reply_at(reply, 6)),
        .result = wr_reply_span(wr_reply_at(reply, 7)),
        .errors = wr_reply_span(wr_reply_at(reply, 9)),
        .before = wr_reply_span(wr_reply_at(reply, 11)),
    };

    (void)wr_progress_over_read(wr_reply_span(wr_reply_at(reply, 12)), &raw.over);
    *out = view_new(wr_queue_name(queue), &raw);
    if (!*out) {
        wr_reply_free(reply);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "inspect");
    }
    (*out)->reply = reply;
    return WEIR_OK;
}

enum weir_err
wr_client_inspect(struct weir_client *c, struct wr_queue *queue, const char *id,
                  struct weir_job_view **out, struct weir_error *err)
{
    struct wr_reply *reply;
    enum weir_err rc = wr_store_inspect(c->store, queue, wr_span_str(id), VIEW_BYTES_MAX,
                                        &reply, err);

    return rc == WEIR_OK ? view_of_reply(queue, id, reply, out, err) : rc;
}

/* Of a job that is over: its end, and what it said last. */
static enum weir_err
inspect_over(struct weir_client *c, struct wr_queue *queue, const char *id,
             struct weir_job_view **out, struct weir_error *err)
{
    struct wr_reply *reply;
    enum weir_err rc = wr_store_inspect_over(c->store, queue, wr_span_str(id), &reply,
                                             err);
    struct raw raw = {.id = wr_span_str(id)};

    if (rc != WEIR_OK)
        return rc;
    if (wr_reply_len(reply) > 3) /* it came to life meanwhile */
        return view_of_reply(queue, id, reply, out, err);
    raw.now = wr_reply_int(wr_reply_at(reply, 1));
    (void)wr_progress_over_read(wr_reply_span(wr_reply_at(reply, 2)), &raw.over);
    raw.place = raw.over.word;
    *out = view_new(wr_queue_name(queue), &raw);
    if (*out) {
        (*out)->reply = reply;
        (*out)->numbers = (struct weir_job_numbers){.now = raw.now,
                                                    .finished_at = raw.over.ended_at_ms};
        return WEIR_OK;
    }
    wr_reply_free(reply);
    return wr_fail(err, WEIR_E_NO_MEMORY, 0, "inspect");
}

enum weir_err
weir_job_inspect(struct weir_client *c, const char *queue, const char *id,
                 struct weir_job_view **out, struct weir_error *err)
{
    struct wr_queue *found;
    enum weir_err rc = wr_client_find(c, queue, id, &found, err);

    *out = NULL;
    if (rc != WEIR_OK)
        return rc;
    return wr_client_inspect(c, found, id, out, err);
}

enum weir_err
weir_job_progress(struct weir_client *c, const char *queue, const char *id,
                  struct weir_job_view **out, struct weir_error *err)
{
    struct wr_queue *found;
    struct wr_reply *reply;
    enum weir_err rc = wr_client_find_over(c, queue, id, &found, err);

    *out = NULL;
    if (rc != WEIR_OK)
        return rc;
    rc = wr_store_inspect(c->store, found, wr_span_str(id), HEADER_BYTES, &reply, err);
    if (rc == WEIR_E_NO_JOB)
        return inspect_over(c, found, id, out, err);
    if (rc == WEIR_OK)
        rc = view_of_reply(found, id, reply, out, err);
    if (rc == WEIR_OK)
        (*out)->record.payload = (*out)->result = (struct wr_span){"", 0};
    return rc;
}

struct weir_job_view *
wr_client_view_of_message(struct wr_queue *queue, const char *id,
                          struct wr_reply *message, struct wr_span result)
{
    struct raw raw = {
        .id = wr_span_str(id), .place = wr_span_str("done"), .result = result};
    struct weir_job_view *v = view_new(wr_queue_name(queue), &raw);

    if (v)
        v->reply = message;
    else
        wr_reply_free(message);
    return v;
}

const char *
weir_job_view_id(const struct weir_job_view *v)
{
    return v->id;
}

const char *
weir_job_view_queue(const struct weir_job_view *v)
{
    return v->queue;
}

const char *
weir_job_view_type(const struct weir_job_view *v)
{
    return v->type;
}

const char *
weir_job_view_state(const struct weir_job_view *v)
{
    return v->state;
}

const char *
weir_job_view_behind(const struct weir_job_view *v)
{
    return v->behind;
}

const char *
weir_job_view_worker(const struct weir_job_view *v)
{
    return strcmp(v->job_state.worker, "-") == 0 ? "" : v->job_state.worker;
}

const char *
weir_job_view_errors(const struct weir_job_view *v)
{
    return wr_buf_span(&v->errors).ptr;
}

const struct weir_attempt *
weir_job_view_attempts(const struct weir_job_view *v, size_t *n)
{
    *n = v->attempts_n;
    return v->attempts;
}

const char *
weir_job_view_progress(const struct weir_job_view *v)
{
    return v->progress ? v->progress : "";
}

void
weir_job_view_progress_parts(const struct weir_job_view *v, struct weir_progress *out)
{
    *out = (struct weir_progress){
        .percent = v->progress ? v->parts.percent : -1,
        .stage = wr_buf_span(&v->parts.stage).ptr,
        .message = wr_buf_span(&v->parts.message).ptr,
    };
}

const char *
weir_job_view_meta(const struct weir_job_view *v, const char *name)
{
    struct weir_job_view *changeable = (struct weir_job_view *)(uintptr_t)v;

    wr_buf_clear(&changeable->meta_value);
    if (!wr_record_meta(&v->record, name, &changeable->meta_value))
        return NULL;
    return wr_buf_span(&v->meta_value).ptr;
}

const void *
weir_job_view_payload(const struct weir_job_view *v, size_t *len)
{
    *len = v->record.payload.len;
    return v->record.payload.ptr ? v->record.payload.ptr : "";
}

const void *
weir_job_view_result(const struct weir_job_view *v, size_t *len)
{
    *len = v->result.len;
    return v->result.ptr ? v->result.ptr : "";
}

bool
weir_job_view_is_cancelled(const struct weir_job_view *v)
{
    return v->job_state.cancelled;
}

void
weir_job_view_numbers(const struct weir_job_view *v, struct weir_job_numbers *out)
{
    *out = v->numbers;
}

/* Rows are id, score, record, state, errors, the job before it, from element 2 on. *shown
 * counts on. */
static enum weir_err
show_page(const char *queue, const char *state, const struct wr_reply *reply,
          size_t limit, size_t *shown, weir_job_fn each, void *context, bool *go_on,
          struct weir_error *err)
{
    for (size_t i = 2; i + 5 < wr_reply_len(reply) && *shown < limit && *go_on; i += 6) {
        struct raw raw = {
            .id = wr_reply_span(wr_reply_at(reply, i)),
            .score = wr_reply_int(wr_reply_at(reply, i + 1)),
            .record = wr_reply_span(wr_reply_at(reply, i + 2)),
            .state = wr_reply_span(wr_reply_at(reply, i + 3)),
            .errors = wr_reply_span(wr_reply_at(reply, i + 4)),
            .before = wr_reply_span(wr_reply_at(reply, i + 5)),
            .place = wr_span_str(state),
            .now = wr_clock_wall_ms(),
        };
        struct weir_job_view *v = view_new(queue, &raw);

        if (!v)
            return wr_fail(err, WEIR_E_NO_MEMORY, 0, "list");
        *go_on = each(v, context);
        weir_job_view_free(v);
        (*shown)++;
    }
    return WEIR_OK;
}

enum weir_err
weir_job_list(struct weir_client *c, const char *queue, const char *state, size_t limit,
              weir_job_fn each, void *context, struct weir_error *err)
{
    static const char *const states[] = {"ready", "delayed", "processing", "dead",
                                         "done"};
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);
    char cursor[WR_CURSOR_MAX] = "0";
    size_t shown = 0;
    bool go_on = true, known = false;

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        known = known || strcmp(states[i], state) == 0;
    if (rc == WEIR_OK && !known)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "state %.20s: not ready, delayed, processing, dead or done",
                       state);
    if (rc != WEIR_OK)
        return rc;
    do {
        struct wr_reply *reply;

        rc = wr_store_browse(c->store, q, state, cursor, PAGE, &reply, err);
        if (rc != WEIR_OK)
            return rc;
        snprintf(cursor, sizeof(cursor), "%.*s",
                 (int)wr_reply_span(wr_reply_at(reply, 1)).len,
                 (const char *)wr_reply_span(wr_reply_at(reply, 1)).ptr);
        rc = show_page(wr_queue_name(q), state, reply, limit, &shown, each, context,
                       &go_on, err);
        wr_reply_free(reply);
    } while (rc == WEIR_OK && go_on && shown < limit && strcmp(cursor, "0") != 0);
    return rc;
}
