#include "json/json.h"

#include <jansson.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"

/* A struct wr_json is a json_t; the name keeps jansson out of the other files. */
static json_t *
to_jansson(const struct wr_json *json)
{
    return (json_t *)(uintptr_t)json;
}

static struct wr_json *
from_jansson(json_t *json)
{
    return (struct wr_json *)(void *)json;
}

struct wr_json *
wr_json_new(void)
{
    return from_jansson(json_object());
}

struct wr_json *
wr_json_new_array(void)
{
    return from_jansson(json_array());
}

void
wr_json_free(struct wr_json *json)
{
    json_decref(to_jansson(json));
}

static bool
set_new(struct wr_json *object, const char *key, json_t *value)
{
    return value && json_object_set_new(to_jansson(object), key, value) == 0;
}

bool
wr_json_set_int(struct wr_json *object, const char *key, int64_t value)
{
    return set_new(object, key, json_integer(value));
}

bool
wr_json_set_real(struct wr_json *object, const char *key, double value)
{
    return set_new(object, key, json_real(value));
}

bool
wr_json_set_bool(struct wr_json *object, const char *key, bool value)
{
    return set_new(object, key, json_boolean(value));
}

bool
wr_json_set_null(struct wr_json *object, const char *key)
{
    return set_new(object, key, json_null());
}

bool
wr_json_set_bytes(struct wr_json *object, const char *key, struct wr_span bytes)
{
    json_t *value = json_stringn(bytes.ptr, bytes.len);
    struct wr_buf text = {0};
    char name[64];
    bool ok;

    if (value)
        return set_new(object, key, value);
    wr_base64_write(&text, bytes);
    snprintf(name, sizeof(name), "%s_base64", key);
    ok = !text.failed && set_new(object, name, json_stringn(text.ptr, text.len));
    wr_buf_fini(&text);
    return ok;
}

bool
wr_json_adopt(struct wr_json *object, const char *key, struct wr_json *value)
{
    return set_new(object, key, to_jansson(value));
}

bool
wr_json_append(struct wr_json *array, struct wr_json *value)
{
    return value && json_array_append_new(to_jansson(array), to_jansson(value)) == 0;
}

bool
wr_json_append_text(struct wr_json *array, const char *value)
{
    return json_array_append_new(to_jansson(array), json_string(value)) == 0;
}

void
wr_json_print(const struct wr_json *json, FILE *out)
{
    /* Any failure is the stream's, and found when it is closed. */
    (void)json_dumpf(to_jansson(json), out, JSON_COMPACT | JSON_REAL_PRECISION(12));
    fputc('\n', out);
}

static int
append(const char *text, size_t len, void *context)
{
    struct wr_buf *out = context;

    wr_buf_add(out, text, len);
    return out->failed ? -1 : 0;
}

void
wr_json_write(const struct wr_json *json, struct wr_buf *out)
{
    if (json_dump_callback(to_jansson(json), append, out,
                           JSON_ENCODE_ANY | JSON_COMPACT) != 0)
        out->failed = true;
}

bool
wr_json_quote(struct wr_buf *out, struct wr_span text)
{
    json_t *string = json_stringn(text.ptr, text.len);

    if (!string)
        return false;
    wr_json_write(from_jansson(string), out);
    json_decref(string);
    return true;
}

/* ---- reading ---- */

enum weir_err
wr_json_read(const char *text, size_t len, struct wr_json **out, struct weir_error *err)
{
    json_error_t why;
    json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);

    *out = NULL;
    if (!json && json_error_code(&why) == json_error_out_of_memory)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "JSON");
    if (!json)
        return wr_fail(err, WEIR_E_DATA, 0, "not JSON: %.120s (column %d)", why.text,
                       why.column);
    if (!json_is_object(json)) {
        json_decref(json);
        return wr_fail(err, WEIR_E_DATA, 0, "not a JSON object like {\"type\":\"...\"}");
    }
    *out = from_jansson(json);
    return WEIR_OK;
}

enum weir_err
wr_json_check(const char *text, size_t len, struct weir_error *err)
{
    json_error_t why;
    /* Numbers of any size are JSON, whoever may read them. */
    json_t *json = json_loadb(
        text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);

    if (!json && json_error_code(&why) == json_error_out_of_memory)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "JSON");
    if (!json)
        return wr_fail(err, WEIR_E_DATA, 0, "not JSON: %.120s (line %d, column %d)",
                       why.text, why.line, why.column);
    json_decref(json);
    return WEIR_OK;
}

static void
read_value(json_t *json, struct wr_json_value *v)
{
    *v = (struct wr_json_value){.tree = from_jansson(json)};
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        v->kind = WR_JSON_OBJECT;
        return;
    case JSON_ARRAY:
        v->kind = WR_JSON_ARRAY;
        return;
    case JSON_STRING:
        v->kind = WR_JSON_STRING;
        v->text = json_string_value(json);
        v->len = json_string_length(json);
        return;
    case JSON_INTEGER:
        v->kind = WR_JSON_NUMBER;
        snprintf(v->number, sizeof(v->number), "%lld",
                 (long long)json_integer_value(json));
        break;
    case JSON_REAL:
        v->kind = WR_JSON_NUMBER;
        snprintf(v->number, sizeof(v->number), "%.15g", json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        v->kind = WR_JSON_BOOL;
        v->yes = json_is_true(json);
        return;
    case JSON_NULL:
        v->kind = WR_JSON_NULL;
        return;
    }
    v->text = v->number;
    v->len = strlen(v->number);
}

enum weir_err
wr_json_each(struct wr_json *object,
             enum weir_err (*each)(const char *key, const struct wr_json_value *value,
                                   void *context, struct weir_error *err),
             void *context, struct weir_error *err)
{
    const char *key;
    json_t *member;

    json_object_foreach(to_jansson(object), key, member)
    {
        struct wr_json_value value;
        enum weir_err rc;

        read_value(member, &value);
        rc = each(key, &value, context, err);
        if (rc != WEIR_OK)
            return rc;
    }
    return WEIR_OK;
}
