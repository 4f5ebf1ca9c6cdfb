#include "cli/job_spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/args.h"
#include "model/retry.h"
#include "model/unique.h"
#include "json/json.h"

#define KEEP_DEFAULT_MS 86400000

static const struct cli_opt members[] = {CLI_JOB_OPTIONS(0), {0}};

/* The library's way: 0 is the default, so a given 0 has another name. */
static int64_t
given(int64_t value)
{
    return value == CLI_UNSET ? 0 : value == 0 ? WEIR_NONE : value;
}

/* "0", "-1", "-5s", "0.0ms": meant as a window, and none. */
static bool
is_no_window(const char *text)
{
    int64_t ms;

    if (text[0] == '-' && text[1] >= '0' && text[1] <= '9')
        return true;
    return text[0] >= '0' && text[0] <= '9' && wr_text_duration(text, &ms) && ms == 0;
}

/* A window has a unit, so that "user:42" is a key; "user:0:" is the key "user:0". */
static enum weir_err
read_unique(const char *text, struct cli_job *out, struct weir_error *err)
{
    const char *colon = strrchr(text, ':');
    int64_t ms;

    out->unique = cli_strdup(text);
    if (colon && is_no_window(colon + 1))
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "unique: \"%.60s\" ends in a window of nothing; a window is like :5m, "
            "a key that ends so gets one more colon",
            text);
    if (colon && colon[1] == '\0')
        out->unique[colon - text] = '\0';
    else if (colon && strpbrk(colon + 1, "smhdw") && wr_text_duration(colon + 1, &ms)) {
        out->unique[colon - text] = '\0';
        out->job.unique_window_ms = ms;
    }
    if (out->unique[0] == '\0' || strlen(out->unique) > 255)
        return wr_fail(err, WEIR_E_ARG, 0, "unique: a key of 1 to 255 bytes");
    out->job.unique = out->unique;
    return WEIR_OK;
}

static enum weir_err
read_expires(const char *text, int64_t *out, struct weir_error *err)
{
    int64_t now = wr_clock_wall_ms(), at;

    if (wr_text_duration(text, out) && *out > 0)
        return WEIR_OK;
    if (!wr_text_time(text, now, &at))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "expires: \"%.60s\" is neither a duration nor a time", text);
    if (at <= now)
        return wr_fail(err, WEIR_E_ARG, 0, "expires: \"%.60s\" is over already", text);
    *out = at - now;
    return WEIR_OK;
}

/* "thumb@images,mail": types, each with the queue it goes to if that is another one. */
static enum weir_err
read_then(const char *text, struct cli_job *out, struct weir_error *err)
{
    size_t n = 0;

    out->then_text = cli_strdup(text);
    for (char *at = out->then_text; at;) {
        char *step = at, *comma = strchr(at, ','), *queue;

        at = comma ? comma + 1 : NULL;
        if (comma)
            *comma = '\0';
        queue = strrchr(step, '@');
        if (queue)
            *queue++ = '\0';
        if (*step == '\0' || (queue && *queue == '\0'))
            return wr_fail(err, WEIR_E_ARG, 0, "then: \"%.60s\" is not TYPE[@Q],...",
                           text);
        out->then = cli_grow(out->then, n + 1, sizeof(*out->then));
        out->then[n++] = (struct weir_then){step, queue};
    }
    out->job.then = out->then;
    out->job.then_count = n;
    return WEIR_OK;
}

static enum weir_err
read_meta(const struct cli_list *list, struct cli_job *out, struct weir_error *err)
{
    if (list->n == 0)
        return WEIR_OK;
    out->meta = cli_alloc(list->n * sizeof(*out->meta));
    out->meta_texts = cli_alloc(list->n * sizeof(*out->meta_texts));
    for (size_t i = 0; i < list->n; i++) {
        char *text = cli_strdup(list->items[i]), *equals = strchr(text, '=');

        out->meta_texts[i] = text;
        out->meta_n++;
        if (!equals || equals == text)
            return wr_fail(err, WEIR_E_ARG, 0, "meta: \"%.60s\" is not NAME=VALUE", text);
        *equals = '\0';
        out->meta[i] = (struct weir_meta){text, equals + 1};
    }
    out->job.meta = out->meta;
    out->job.meta_count = list->n;
    return WEIR_OK;
}

static enum weir_err
check_names(const struct cli_job_spec *s, struct weir_error *err)
{
    struct wr_backoff backoff;

    if (s->queue && !wr_text_is_queue(wr_span_str(s->queue)))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "queue name: 1 to 128 bytes without braces or control characters");
    if (s->id && !wr_text_is_job_id(wr_span_str(s->id)))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "job id: 1 to 255 bytes, no control characters (given: %zu bytes)",
                       strlen(s->id));
    if (s->backoff && (*s->backoff == '\0' || !wr_backoff_parse(s->backoff, &backoff)))
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "backoff: \"%.40s\" is not like exp:2s,1h, fixed:10s, linear:60s or "
            "list:0s,60s",
            s->backoff);
    if (s->in != CLI_UNSET && s->at != CLI_UNSET)
        return wr_fail(err, WEIR_E_ARG, 0, "in and at: give one of them");
    if (!wr_unique_states_write(s->unique_states, NULL))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "unique-states: \"%.60s\" is not ready,delayed and any of "
                       "processing,dead,done",
                       s->unique_states);
    if (s->debounce == 0)
        return wr_fail(err, WEIR_E_ARG, 0, "debounce: more than 0");
    if (!s->unique && (s->debounce != CLI_UNSET || s->keep_last || s->unique_states))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "debounce, keep-last and unique-states need --unique KEY");
    if (!s->key != !s->ordered)
        return wr_fail(err, WEIR_E_ARG, 0,
                       s->key ? "key: give --ordered as well; a key alone does nothing"
                              : "ordered: give --key KEY, the line it stands in");
    if (s->key && (*s->key == '\0' || strlen(s->key) > 255))
        return wr_fail(err, WEIR_E_ARG, 0, "key: 1 to 255 bytes");
    if (s->key && (s->debounce != CLI_UNSET || s->keep_last))
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "ordered: not together with debounce or keep-last, which move a job "
            "that has its place in a line");
    return WEIR_OK;
}

enum weir_err
cli_job_make(const struct cli_job_spec *s, int64_t max_retry, struct cli_job *out,
             struct weir_error *err)
{
    enum weir_err rc = check_names(s, err);

    out->job = (struct weir_job){
        WEIR_JOB_INIT,
        .queue = s->queue ? s->queue : "default",
        .id = s->id,
        .delay_ms = s->in == CLI_UNSET ? 0 : s->in,
        .at_ms = s->at == CLI_UNSET ? 0 : s->at,
        .max_retry = given(s->retry == CLI_UNSET ? max_retry : s->retry),
        .backoff = s->backoff,
        .max_deliveries = given(s->max_deliveries),
        .timeout_ms = given(s->timeout),
        .kill_after_ms = given(s->kill_after),
        .keep_result_ms = s->keep_result == CLI_UNSET ? KEEP_DEFAULT_MS : s->keep_result,
        .keep_progress_ms = given(s->keep_progress),
        .replace = s->replace,
        .unique_states = s->unique_states,
        .order_key = s->key,
        .unique_conflict = s->keep_last              ? WEIR_UNIQUE_KEEP_LAST
                           : s->replace && s->unique ? WEIR_UNIQUE_REPLACE
                                                     : WEIR_UNIQUE_REJECT,
        .debounce_ms = s->debounce == CLI_UNSET ? 0 : s->debounce,
    };
    if (rc == WEIR_OK && s->unique)
        rc = read_unique(s->unique, out, err);
    if (rc == WEIR_OK && s->expires)
        rc = read_expires(s->expires, &out->job.expires_ms, err);
    if (rc == WEIR_OK && s->then)
        rc = read_then(s->then, out, err);
    if (rc == WEIR_OK)
        rc = read_meta(&s->meta, out, err);
    return rc;
}

void
cli_job_fini(struct cli_job *j)
{
    for (size_t i = 0; i < j->meta_n; i++)
        free(j->meta_texts[i]);
    for (size_t i = 0; i < j->lists.n; i++)
        free((void *)(uintptr_t)j->lists.items[i]);
    free(j->lists.items);
    free(j->meta_texts);
    free(j->meta);
    free(j->unique);
    free(j->then);
    free(j->then_text);
    free(j->payload);
    wr_json_free(j->line);
    *j = (struct cli_job){0};
}

/* ---- a line ---- */

struct reading {
    struct cli_job_spec spec;
    struct cli_job *out;
    const char *type;
    const void *payload;
    size_t payload_len;
    bool has_payload;
};

static enum weir_err
take_meta(const char *key, const struct wr_json_value *v, void *context,
          struct weir_error *err)
{
    struct reading *r = context;
    struct cli_list *lists = &r->out->lists;
    struct wr_buf text = {0};

    if ((v->kind != WR_JSON_STRING && v->kind != WR_JSON_NUMBER) ||
        memchr(v->text, '\0', v->len))
        return wr_fail(err, WEIR_E_DATA, 0, "meta: \"%.40s\" is no text", key);
    if (strchr(key, '=') || *key == '\0')
        return wr_fail(err, WEIR_E_DATA, 0, "meta: a name without \"=\", not empty");
    wr_buf_addf(&text, "%s=%s", key, v->text);
    if (text.failed)
        cli_out_of_memory();
    lists->items = cli_grow(lists->items, lists->n + 1, sizeof(*lists->items));
    lists->items[lists->n++] = text.ptr;
    return WEIR_OK;
}

static enum weir_err
take_payload(struct reading *r, const char *key, const struct wr_json_value *v,
             struct weir_error *err)
{
    bool base64 = strcmp(key, "payload_base64") == 0;
    struct wr_buf bytes = {0};

    if (v->kind != WR_JSON_STRING)
        return wr_fail(err, WEIR_E_DATA, 0, "%s: not a string", key);
    if (r->has_payload)
        return wr_fail(err, WEIR_E_DATA, 0,
                       "payload and payload_base64: give one of them");
    r->has_payload = true;
    r->payload = v->text;
    r->payload_len = v->len;
    if (!base64)
        return WEIR_OK;
    if (!wr_base64_read(&bytes, (struct wr_span){v->text, v->len})) {
        wr_buf_fini(&bytes);
        return wr_fail(err, WEIR_E_DATA, 0, "payload_base64: not base64");
    }
    if (bytes.failed)
        cli_out_of_memory();
    r->payload = r->out->payload = bytes.ptr; /* theirs now */
    r->payload_len = bytes.len;
    return WEIR_OK;
}

/* "max_deliveries" is --max-deliveries. */
static const struct cli_opt *
find_member(const char *key)
{
    char name[40];

    snprintf(name, sizeof(name), "%s", key);
    for (char *p = name; *p; p++)
        *p = *p == '_' ? '-' : *p == '-' ? '_' : *p;
    for (const struct cli_opt *o = members; o->name; o++) {
        if (strcmp(o->name, name) == 0)
            return o;
    }
    return NULL;
}

static enum weir_err
take_option(struct reading *r, const char *key, const struct wr_json_value *v,
            struct weir_error *err)
{
    const struct cli_opt *o = find_member(key);
    enum weir_err rc;

    if (!o)
        return wr_fail(err, WEIR_E_DATA, 0, "no member \"%.40s\" is known", key);
    if (o->type == CLI_FLAG) {
        if (v->kind != WR_JSON_BOOL)
            return wr_fail(err, WEIR_E_DATA, 0, "%s: neither true nor false", key);
        memcpy((char *)&r->spec + o->field, &v->yes, sizeof(bool));
        return WEIR_OK;
    }
    if (v->kind == WR_JSON_NULL)
        return WEIR_OK; /* as if it were not there */
    if ((v->kind != WR_JSON_STRING && v->kind != WR_JSON_NUMBER) ||
        (v->kind == WR_JSON_NUMBER && o->type == CLI_TEXT && strcmp(key, "expires") != 0))
        return wr_fail(err, WEIR_E_DATA, 0, "%s: a value of the wrong kind", key);
    if (memchr(v->text, '\0', v->len))
        return wr_fail(err, WEIR_E_DATA, 0, "%s: holds a NUL character", key);
    if (v->kind == WR_JSON_NUMBER && o->type == CLI_TEXT) { /* lives on the stack */
        r->out->unique = cli_strdup(v->text);
        r->spec.expires = r->out->unique;
        return WEIR_OK;
    }
    rc = cli_option_store(o, key, v->text, &r->spec, err);
    return rc == WEIR_E_ARG ? WEIR_E_DATA : rc;
}

static enum weir_err
take_member(const char *key, const struct wr_json_value *v, void *context,
            struct weir_error *err)
{
    struct reading *r = context;

    if (strcmp(key, "payload") == 0 || strcmp(key, "payload_base64") == 0)
        return take_payload(r, key, v, err);
    if (strcmp(key, "type") == 0) {
        if (v->kind != WR_JSON_STRING ||
            !wr_text_is_type((struct wr_span){v->text, v->len}))
            return wr_fail(err, WEIR_E_DATA, 0,
                           "type: 1 to 128 bytes, no control characters");
        r->type = v->text;
        return WEIR_OK;
    }
    if (strcmp(key, "meta") == 0) {
        if (v->kind != WR_JSON_OBJECT)
            return wr_fail(err, WEIR_E_DATA, 0, "meta: not an object");
        return wr_json_each(v->tree, take_meta, r, err);
    }
    return take_option(r, key, v, err);
}

enum weir_err
cli_job_read(const char *line, size_t len, const struct cli_job_spec *base,
             int64_t max_retry, struct cli_job *out, struct weir_error *err)
{
    struct reading r = {.spec = *base, .out = out};
    char *scratch;
    enum weir_err rc = wr_json_read(line, len, &out->line, err);

    if (rc == WEIR_OK)
        rc = wr_json_each(out->line, take_member, &r, err);
    if (rc == WEIR_OK && !r.type)
        rc = wr_fail(err, WEIR_E_DATA, 0, "type: missing");
    if (rc != WEIR_OK)
        return rc;
    if (out->lists.n > 0)
        r.spec.meta = out->lists;
    scratch = out->unique; /* a number given as expires */
    out->unique = NULL;
    rc = cli_job_make(&r.spec, max_retry, out, err);
    free(scratch);
    out->job.type = r.type;
    out->job.payload = r.payload;
    out->job.payload_len = r.payload_len;
    return rc == WEIR_E_ARG ? WEIR_E_DATA : rc;
}
