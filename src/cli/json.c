#include "cli/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/base64.h"
#include "cli/cli.h"

/* A struct cli_json is a json_t; the name keeps jansson out of the other files. */
static json_t *
to_jansson(const struct cli_json *json)
{
    return (json_t *)(uintptr_t)json;
}

static struct cli_json *
from_jansson(json_t *json)
{
    if (!json)
        cli_out_of_memory();
    return (struct cli_json *)(void *)json;
}

struct cli_json *
cli_json_new(void)
{
    return from_jansson(json_object());
}

struct cli_json *
cli_json_new_array(void)
{
    return from_jansson(json_array());
}

void
cli_json_free(struct cli_json *json)
{
    json_decref(to_jansson(json));
}

static void
set_new(struct cli_json *json, const char *key, json_t *value)
{
    if (!value || json_object_set_new(to_jansson(json), key, value) != 0)
        cli_out_of_memory();
}

void
cli_json_int(struct cli_json *json, const char *key, int64_t value)
{
    set_new(json, key, json_integer(value));
}

void
cli_json_real(struct cli_json *json, const char *key, double value)
{
    set_new(json, key, json_real(value));
}

void
cli_json_bool(struct cli_json *json, const char *key, bool value)
{
    set_new(json, key, json_boolean(value));
}

void
cli_json_null(struct cli_json *json, const char *key)
{
    set_new(json, key, json_null());
}

void
cli_json_text(struct cli_json *json, const char *key, const char *value)
{
    cli_json_bytes(json, key, value, strlen(value));
}

void
cli_json_bytes(struct cli_json *json, const char *key, const void *ptr, size_t len)
{
    json_t *value = json_stringn(ptr, len);
    char name[64], *text;

    if (value) {
        set_new(json, key, value);
        return;
    }
    text = cli_base64_write(ptr, len);
    snprintf(name, sizeof(name), "%s_base64", key);
    set_new(json, name, json_string(text));
    free(text);
}

void
cli_json_adopt(struct cli_json *json, const char *key, struct cli_json *value)
{
    set_new(json, key, to_jansson(value));
}

void
cli_json_append(struct cli_json *array, struct cli_json *value)
{
    if (json_array_append_new(to_jansson(array), to_jansson(value)) != 0)
        cli_out_of_memory();
}

void
cli_json_print(const struct cli_json *json, FILE *out)
{
    /* Any failure is the stream's, and found when it is closed. */
    (void)json_dumpf(to_jansson(json), out, JSON_COMPACT | JSON_REAL_PRECISION(12));
    fputc('\n', out);
}

/* ---- reading ---- */

enum weir_err
cli_json_read(const char *text, size_t len, struct cli_json **out, struct weir_error *err)
{
    json_error_t why;
    json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);

    *out = NULL;
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

static void
read_value(json_t *json, struct cli_json_value *v)
{
    *v = (struct cli_json_value){0};
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        v->kind = CLI_JSON_OBJECT;
        v->object = from_jansson(json);
        return;
    case JSON_ARRAY:
        v->kind = CLI_JSON_ARRAY;
        return;
    case JSON_STRING:
        v->kind = CLI_JSON_STRING;
        v->text = json_string_value(json);
        v->len = json_string_length(json);
        return;
    case JSON_INTEGER:
        v->kind = CLI_JSON_NUMBER;
        snprintf(v->number, sizeof(v->number), "%lld",
                 (long long)json_integer_value(json));
        break;
    case JSON_REAL:
        v->kind = CLI_JSON_NUMBER;
        snprintf(v->number, sizeof(v->number), "%.15g", json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        v->kind = CLI_JSON_BOOL;
        v->yes = json_is_true(json);
        return;
    case JSON_NULL:
        v->kind = CLI_JSON_NULL;
        return;
    }
    v->text = v->number;
    v->len = strlen(v->number);
}

enum weir_err
cli_json_each(struct cli_json *json,
              enum weir_err (*each)(const char *key, const struct cli_json_value *value,
                                    void *context, struct weir_error *err),
              void *context, struct weir_error *err)
{
    const char *key;
    json_t *member;

    json_object_foreach(to_jansson(json), key, member)
    {
        struct cli_json_value value;
        enum weir_err rc;

        read_value(member, &value);
        rc = each(key, &value, context, err);
        if (rc != WEIR_OK)
            return rc;
    }
    return WEIR_OK;
}
