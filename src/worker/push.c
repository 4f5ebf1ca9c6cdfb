#include "worker/push.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/text.h"
#include "json/json.h"

#define META_MAX 16

/* A line being read: what the job points to lies in the JSON tree or here. */
struct reading {
    struct weir_job job;
    struct wr_buf payload;
    struct weir_meta meta[META_MAX];
    bool has_payload, ordered;
};

static enum weir_err
take_text(const char *key, const struct wr_json_value *v, const char **out,
          struct weir_error *err)
{
    if (v->kind != WR_JSON_STRING || memchr(v->text, '\0', v->len))
        return wr_fail(err, WEIR_E_DATA, 0, "%s: not a text", key);
    *out = v->text;
    return WEIR_OK;
}

/* "5m", or ms as a number. */
static enum weir_err
take_duration(const char *key, const struct wr_json_value *v, int64_t *out,
              struct weir_error *err)
{
    bool ok = v->kind == WR_JSON_NUMBER
                  ? wr_text_int(v->text, 0, INT64_MAX, out)
                  : v->kind == WR_JSON_STRING && wr_text_duration(v->text, out);

    return ok ? WEIR_OK
              : wr_fail(err, WEIR_E_DATA, 0, "%s: neither a duration nor ms", key);
}

static enum weir_err
take_payload(struct reading *r, const char *key, const struct wr_json_value *v,
             struct weir_error *err)
{
    struct wr_span text = {v->text, v->len};

    if (v->kind != WR_JSON_STRING || r->has_payload)
        return wr_fail(err, WEIR_E_DATA, 0, "%s: one string", key);
    r->has_payload = true;
    if (strcmp(key, "payload") == 0)
        wr_buf_add(&r->payload, text.ptr, text.len);
    else if (!wr_base64_read(&r->payload, text))
        return wr_fail(err, WEIR_E_DATA, 0, "payload_base64: not base64");
    return r->payload.failed ? wr_fail(err, WEIR_E_NO_MEMORY, 0, "payload") : WEIR_OK;
}

static enum weir_err
take_meta(const char *key, const struct wr_json_value *v, void *context,
          struct weir_error *err)
{
    struct reading *r = context;
    const char *value;
    enum weir_err rc = take_text(key, v, &value, err);

    if (rc != WEIR_OK)
        return rc;
    if (r->job.meta_count == META_MAX)
        return wr_fail(err, WEIR_E_DATA, 0, "meta: more than %d fields", META_MAX);
    r->meta[r->job.meta_count++] = (struct weir_meta){key, value};
    r->job.meta = r->meta;
    return WEIR_OK;
}

static enum weir_err
take_retry(const struct wr_json_value *v, struct weir_job *job, struct weir_error *err)
{
    if (v->kind != WR_JSON_NUMBER || !wr_text_int(v->text, 0, 1000000, &job->max_retry))
        return wr_fail(err, WEIR_E_DATA, 0, "retry: not a number");
    if (job->max_retry == 0)
        job->max_retry = WEIR_NONE;
    return WEIR_OK;
}

static enum weir_err
take_member(const char *key, const struct wr_json_value *v, void *context,
            struct weir_error *err)
{
    struct reading *r = context;
    const struct {
        const char *name;
        const char **text;
        int64_t *ms;
    } rows[] = {{"type", &r->job.type, NULL},
                {"queue", &r->job.queue, NULL},
                {"id", &r->job.id, NULL},
                {"backoff", &r->job.backoff, NULL},
                {"unique", &r->job.unique, NULL},
                {"key", &r->job.order_key, NULL},
                {"in", NULL, &r->job.delay_ms},
                {"timeout", NULL, &r->job.timeout_ms},
                {"keep_result", NULL, &r->job.keep_result_ms},
                {"expires", NULL, &r->job.expires_ms}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(key, rows[i].name) == 0)
            return rows[i].text ? take_text(key, v, rows[i].text, err)
                                : take_duration(key, v, rows[i].ms, err);
    }
    if (strcmp(key, "ordered") == 0 && v->kind == WR_JSON_BOOL) {
        r->ordered = v->yes;
        return WEIR_OK;
    }
    if (strcmp(key, "keep_progress") == 0) {
        enum weir_err rc = take_duration(key, v, &r->job.keep_progress_ms, err);

        if (rc == WEIR_OK && r->job.keep_progress_ms == 0)
            r->job.keep_progress_ms = WEIR_NONE;
        return rc;
    }
    if (strcmp(key, "retry") == 0)
        return take_retry(v, &r->job, err);
    if (strcmp(key, "payload") == 0 || strcmp(key, "payload_base64") == 0)
        return take_payload(r, key, v, err);
    if (strcmp(key, "meta") == 0 && v->kind == WR_JSON_OBJECT)
        return wr_json_each(v->tree, take_meta, r, err);
    return wr_fail(err, WEIR_E_DATA, 0, "no member \"%.40s\" is known", key);
}

static enum weir_err
take_line(struct weir_delivery *d, struct wr_span line, struct weir_error *err)
{
    struct reading r = {.job = {WEIR_JOB_INIT, .queue = d->queue}};
    struct wr_json *tree = NULL;
    enum weir_err rc = wr_json_read(line.ptr, line.len, &tree, err);

    if (rc == WEIR_OK)
        rc = wr_json_each(tree, take_member, &r, err);
    if (rc == WEIR_OK && r.ordered != (r.job.order_key != NULL))
        rc = wr_fail(err, WEIR_E_DATA, 0, "key and ordered: one needs the other");
    if (rc == WEIR_OK) {
        r.job.payload = r.payload.ptr;
        r.job.payload_len = r.payload.len;
        rc = weir_delivery_then(d, &r.job, err);
    }
    wr_json_free(tree);
    wr_buf_fini(&r.payload);
    return rc;
}

bool
wr_push_take(struct weir_delivery *d, struct wr_span lines)
{
    struct weir_error err = {0};

    for (int number = 1; lines.len > 0; number++) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        size_t len = end ? (size_t)(end - (const char *)lines.ptr) : lines.len;
        struct wr_span line = {lines.ptr, len};

        lines.ptr = (const char *)lines.ptr + len + (end ? 1 : 0);
        lines.len -= len + (end ? 1 : 0);
        if (take_line(d, line, &err) != WEIR_OK) {
            weir_delivery_set_error(d, "push %d: %.200s", number, err.text);
            return false;
        }
    }
    return true;
}
