#include "worker/coproc_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/text.h"
#include "worker/handler.h"
#include "json/json.h"

/* ---- writing ---- */

/* ,"key":"text", or ,"key_base64":"..." for what is not UTF-8. */
static void
add_bytes(struct wr_buf *out, const char *key, struct wr_span bytes)
{
    size_t before = out->len;

    wr_buf_addf(out, ",\"%s\":", key);
    if (wr_json_quote(out, bytes))
        return;
    if (!out->failed)
        out->len = before;
    wr_buf_addf(out, ",\"%s_base64\":\"", key);
    wr_base64_write(out, bytes);
    wr_buf_add_str(out, "\"");
}

void
wr_coproc_hello(struct wr_buf *out, const char *type, const char *worker)
{
    wr_buf_addf(out, "{\"hello\":\"weir-coproc\",\"version\":%d", WR_COPROC_VERSION);
    add_bytes(out, "type", wr_span_str(type));
    add_bytes(out, "worker", wr_span_str(worker));
    wr_buf_addf(out, ",\"result_max\":%d,\"line_max\":%d}\n", WR_COPROC_RESULT_MAX,
                WR_COPROC_LINE_MAX);
}

/* One word "meta.NAME=VALUE" of a record. Names and values that are not UTF-8 are left
 * out: JSON has no place for them. */
static void
add_meta_word(struct wr_buf *out, struct wr_span word, bool *first)
{
    const char *text = word.ptr, *equals = memchr(text, '=', word.len);
    struct wr_buf name = {0}, value = {0}, member = {0};
    size_t name_len = equals ? (size_t)(equals - text) : 0;

    if (name_len > 5 &&
        wr_text_word_decode(&name, (struct wr_span){text + 5, name_len - 5}) &&
        wr_text_word_decode(&value,
                            (struct wr_span){equals + 1, word.len - name_len - 1}) &&
        wr_json_quote(&member, wr_buf_span(&name))) {
        wr_buf_add_str(&member, ":");
        if (wr_json_quote(&member, wr_buf_span(&value))) {
            wr_buf_add_str(out, *first ? "" : ",");
            wr_buf_add(out, member.ptr, member.len);
            *first = false;
        }
    }
    wr_buf_fini(&name);
    wr_buf_fini(&value);
    wr_buf_fini(&member);
}

static void
add_meta(struct wr_buf *out, struct wr_span meta)
{
    const char *at = meta.ptr, *end = at + meta.len;
    bool first = true;

    if (meta.len == 0)
        return;
    wr_buf_add_str(out, ",\"meta\":{");
    while (at < end) {
        const char *blank = memchr(at, ' ', (size_t)(end - at)),
                   *stop = blank ? blank : end;

        add_meta_word(out, (struct wr_span){at, (size_t)(stop - at)}, &first);
        at = stop + 1;
    }
    wr_buf_add_str(out, "}");
}

void
wr_coproc_job(struct wr_buf *out, const struct weir_delivery *d, int64_t call)
{
    const struct wr_record *r = &d->record;

    wr_buf_addf(out, "{\"call\":%lld", (long long)call);
    add_bytes(out, "id", wr_span_str(d->id));
    add_bytes(out, "type", wr_span_str(d->type));
    add_bytes(out, "queue", wr_span_str(d->queue));
    wr_buf_addf(out,
                ",\"attempt\":%lld,\"max_attempts\":%lld,\"delivery\":%lld,"
                "\"enqueued_at\":%lld,\"timeout_ms\":%lld",
                (long long)d->state.attempts + 1, (long long)r->max_retry + 1,
                (long long)d->state.deliveries, (long long)r->enqueued_at_ms,
                (long long)r->timeout_ms);
    add_meta(out, r->meta);
    add_bytes(out, "payload", r->payload);
    wr_buf_add_str(out, "}\n");
}

/* ---- reading ---- */

struct reading {
    struct wr_coproc_line *line;
    bool has_hello, has_answer, has_progress, has_log;
};

static enum weir_err
bad(const char *key, const char *what, struct weir_error *err)
{
    return wr_fail(err, WEIR_E_DATA, 0, "\"%.40s\": %s", key, what);
}

static enum weir_err
take_number(const char *key, const struct wr_json_value *v, int64_t max, int64_t *out,
            struct weir_error *err)
{
    if (v->kind != WR_JSON_NUMBER || !wr_text_int(v->number, 0, max, out))
        return bad(key, "not a whole number that makes sense", err);
    return WEIR_OK;
}

static enum weir_err
take_text(const char *key, const struct wr_json_value *v, struct wr_buf *out,
          struct weir_error *err)
{
    if (v->kind == WR_JSON_NULL)
        return WEIR_OK;
    if (v->kind != WR_JSON_STRING)
        return bad(key, "not a string", err);
    wr_buf_clear(out);
    wr_buf_add(out, v->text, v->len);
    return WEIR_OK;
}

/* A string is its bytes; anything else is its JSON. */
static enum weir_err
take_result(const char *key, const struct wr_json_value *v, struct wr_coproc_line *l,
            struct weir_error *err)
{
    bool base64 = strcmp(key, "result_base64") == 0;

    if (l->has_result)
        return bad(key, "result and result_base64: give one of them", err);
    if (v->kind == WR_JSON_NULL && !base64)
        return WEIR_OK;
    l->has_result = true;
    if (base64 && (v->kind != WR_JSON_STRING ||
                   !wr_base64_read(&l->result, (struct wr_span){v->text, v->len})))
        return bad(key, "not base64", err);
    if (!base64 && v->kind == WR_JSON_STRING)
        wr_buf_add(&l->result, v->text, v->len);
    else if (!base64)
        wr_json_write(v->tree, &l->result);
    return WEIR_OK;
}

static enum weir_err
take_answer(const char *key, const struct wr_json_value *v, struct wr_coproc_line *l,
            struct weir_error *err)
{
    static const struct {
        const char *word;
        enum weir_outcome outcome;
    } rows[] = {{"ok", WEIR_DONE},
                {"retry", WEIR_RETRY},
                {"snooze", WEIR_SNOOZE},
                {"permanent", WEIR_PERMANENT}};

    for (size_t i = 0; v->kind == WR_JSON_STRING && i < sizeof(rows) / sizeof(rows[0]);
         i++) {
        if (strcmp(v->text, rows[i].word) == 0) {
            l->outcome = rows[i].outcome;
            return WEIR_OK;
        }
    }
    return bad(key, "none of ok, retry, snooze, permanent", err);
}

static enum weir_err
take_progress(const char *key, const struct wr_json_value *v, struct wr_coproc_line *l,
              struct weir_error *err)
{
    double percent;

    if (v->kind == WR_JSON_STRING)
        return take_text(key, v, &l->text, err);
    if (v->kind != WR_JSON_NUMBER)
        return bad(key, "neither a number nor a string", err);
    percent = strtod(v->number, NULL); /* 33.3 is as good as 33 */
    l->percent = percent < 0 ? 0 : percent < 100 ? (int)percent : 100;
    return WEIR_OK;
}

/* Names that nobody knows are passed over: the protocol may grow. */
static enum weir_err
take_member(const char *key, const struct wr_json_value *v, void *context,
            struct weir_error *err)
{
    struct reading *r = context;
    struct wr_coproc_line *l = r->line;

    if (strcmp(key, "call") == 0)
        return take_number(key, v, INT64_MAX, &l->call, err);
    if (strcmp(key, "delay_ms") == 0)
        return v->kind == WR_JSON_NULL
                   ? WEIR_OK
                   : take_number(key, v, WR_TIME_MAX_MS, &l->delay_ms, err);
    if (strcmp(key, "answer") == 0) {
        r->has_answer = true;
        return take_answer(key, v, l, err);
    }
    if (strcmp(key, "result") == 0 || strcmp(key, "result_base64") == 0)
        return take_result(key, v, l, err);
    if (strcmp(key, "error") == 0 || strcmp(key, "text") == 0)
        return take_text(key, v, &l->text, err);
    if (strcmp(key, "stage") == 0)
        return take_text(key, v, &l->stage, err);
    if (strcmp(key, "last") == 0) {
        l->last = v->kind == WR_JSON_BOOL && v->yes;
        return WEIR_OK;
    }
    if (strcmp(key, "progress") == 0) {
        r->has_progress = true;
        return take_progress(key, v, l, err);
    }
    if (strcmp(key, "log") == 0) {
        r->has_log = true;
        return take_text(key, v, &l->text, err);
    }
    if (strcmp(key, "hello") == 0) {
        r->has_hello = v->kind == WR_JSON_STRING && strcmp(v->text, "weir-coproc") == 0;
        return r->has_hello ? WEIR_OK : bad(key, "not \"weir-coproc\"", err);
    }
    if (strcmp(key, "version") == 0)
        return take_number(key, v, 1000000, &l->version, err);
    return WEIR_OK;
}

static enum wr_coproc_word
word_of(const struct reading *r)
{
    if (r->has_answer)
        return WR_COPROC_ANSWER;
    if (r->has_hello)
        return WR_COPROC_HELLO;
    if (r->has_progress)
        return WR_COPROC_PROGRESS;
    return r->has_log ? WR_COPROC_LOG : WR_COPROC_OTHER;
}

static void
clear(struct wr_coproc_line *l)
{
    l->word = WR_COPROC_NOISE;
    l->version = l->call = l->delay_ms = -1;
    l->percent = -1;
    l->outcome = WEIR_RETRY;
    l->last = l->has_result = false;
    l->why[0] = '\0';
    wr_buf_clear(&l->result);
    wr_buf_clear(&l->text);
    wr_buf_clear(&l->stage);
}

static bool
is_object(const char *text, size_t len)
{
    while (len > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        len--;
    }
    return len > 0 && *text == '{';
}

bool
wr_coproc_read(struct wr_coproc_line *l, const char *text, size_t len)
{
    struct reading r = {.line = l};
    struct weir_error err = {0};
    struct wr_json *json;
    enum weir_err rc;

    clear(l);
    if (!is_object(text, len))
        return true;
    rc = wr_json_read(text, len, &json, &err);
    if (rc == WEIR_OK)
        rc = wr_json_each(json, take_member, &r, &err);
    wr_json_free(json);
    l->word = word_of(&r);
    if (rc == WEIR_OK && l->word == WR_COPROC_ANSWER && l->call < 0)
        rc = wr_fail(&err, WEIR_E_DATA, 0, "an answer without its \"call\"");
    if (rc != WEIR_OK) {
        l->word = WR_COPROC_GARBAGE;
        snprintf(l->why, sizeof(l->why), "%s", err.text);
    }
    return rc != WEIR_E_NO_MEMORY && !l->result.failed && !l->text.failed &&
           !l->stage.failed;
}

void
wr_coproc_line_fini(struct wr_coproc_line *l)
{
    wr_buf_fini(&l->result);
    wr_buf_fini(&l->text);
    wr_buf_fini(&l->stage);
}
