#include "worker/exec_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/json.h"

/* The word is {NAME}. */
static bool
stands_for(const char *word, const char *name)
{
    size_t len = strlen(name);

    return word[0] == '{' && strncmp(word + 1, name, len) == 0 &&
           strcmp(word + 1 + len, "}") == 0;
}

enum weir_err
wr_exec_args_check(const struct weir_exec_options *o, struct weir_error *err)
{
    for (size_t i = 0; o->json_fields && o->json_fields[i]; i++) {
        bool found = false;

        if (o->shell || o->coproc)
            return wr_fail(err, WEIR_E_ARG, 0,
                           "command: json_fields go with neither shell nor coproc");
        for (size_t j = 1; o->argv[0] && o->argv[j]; j++)
            found = found || stands_for(o->argv[j], o->json_fields[i]);
        if (!found)
            return wr_fail(err, WEIR_E_ARG, 0,
                           "command: json_fields: no word of it is {%.60s}",
                           o->json_fields[i]);
    }
    return WEIR_OK;
}

struct reading {
    const struct wr_exec_config *config;
    struct weir_delivery *d;
    struct wr_buf *text; /* the values, each NUL-ended */
    size_t *at; /* where in it the value of each field begins; SIZE_MAX: nowhere */
};

static enum weir_err
take(const char *key, const struct wr_json_value *v, void *context,
     struct weir_error *err)
{
    struct reading *r = context;

    for (size_t i = 0; r->config->json_fields[i]; i++) {
        if (strcmp(r->config->json_fields[i], key) != 0)
            continue;
        if ((v->kind != WR_JSON_STRING && v->kind != WR_JSON_NUMBER &&
             v->kind != WR_JSON_BOOL) ||
            (v->kind == WR_JSON_STRING && memchr(v->text, '\0', v->len)))
            return wr_fail(err, WEIR_E_DATA, 0,
                           "its member \"%.60s\" is no text, number or bool", key);
        r->at[i] = r->text->len;
        if (v->kind == WR_JSON_BOOL)
            wr_buf_add_str(r->text, v->yes ? "true" : "false");
        else
            wr_buf_add(r->text, v->text,
                       v->kind == WR_JSON_STRING ? v->len : strlen(v->text));
        wr_buf_add(r->text, "", 1);
    }
    return WEIR_OK;
}

static enum weir_err
read_fields(struct reading *r, struct weir_error *err)
{
    struct wr_span payload = r->d->record.payload;
    struct wr_json *json = NULL;
    enum weir_err rc = wr_json_read(payload.ptr ? payload.ptr : "", payload.len, &json,
                                    err);

    if (rc == WEIR_OK)
        rc = wr_json_each(json, take, r, err);
    wr_json_free(json);
    for (size_t i = 0; rc == WEIR_OK && r->config->json_fields[i]; i++) {
        if (r->at[i] == SIZE_MAX)
            rc = wr_fail(err, WEIR_E_DATA, 0, "it has no member \"%.60s\"",
                         r->config->json_fields[i]);
    }
    if (rc == WEIR_OK && r->text->failed)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "out of memory");
    return rc;
}

static char *
word_of(const struct reading *r, char *word)
{
    for (size_t i = 0; r->config->json_fields[i]; i++) {
        if (stands_for(word, r->config->json_fields[i]))
            return r->text->ptr + r->at[i];
    }
    return word;
}

bool
wr_exec_args_make(const struct wr_exec_config *config, struct weir_delivery *d,
                  char ***out, struct wr_buf *text, bool *no_memory)
{
    struct reading r = {.config = config, .d = d, .text = text};
    struct weir_error err = {0};
    enum weir_err rc = WEIR_OK;
    size_t fields = 0, n = 0;

    while (config->json_fields[fields])
        fields++;
    while (config->argv[n])
        n++;
    r.at = calloc(fields + 1, sizeof(*r.at));
    *out = calloc(n + 1, sizeof(**out));
    if (!r.at || !*out)
        rc = wr_fail(&err, WEIR_E_NO_MEMORY, 0, "out of memory");
    for (size_t i = 0; r.at && i < fields; i++)
        r.at[i] = SIZE_MAX;
    if (rc == WEIR_OK)
        rc = read_fields(&r, &err);
    for (size_t i = 0; rc == WEIR_OK && *out && i < n; i++)
        (*out)[i] = i == 0 ? config->argv[0] : word_of(&r, config->argv[i]);
    free(r.at);
    *no_memory = rc == WEIR_E_NO_MEMORY;
    if (rc != WEIR_OK)
        weir_delivery_set_error(d, "the payload cannot fill in the command: %s",
                                err.text);
    return rc == WEIR_OK;
}
