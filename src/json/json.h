/*
 * json/json.h - the door to jansson: no other file includes it.
 *
 * Trees are made, printed and read here. What is written often and has a fixed shape
 * needs no tree: wr_json_quote() writes one string of it.
 */
#ifndef WR_JSON_JSON_H
#define WR_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/buf.h"

struct wr_json; /* a value; free with wr_json_free() unless another has adopted it */

struct wr_json *wr_json_new(void);       /* {}; NULL: out of memory */
struct wr_json *wr_json_new_array(void); /* [] */
void wr_json_free(struct wr_json *json); /* NULL is allowed */

/* False: out of memory, and the object is as it was. */
bool wr_json_set_int(struct wr_json *object, const char *key, int64_t value);
bool wr_json_set_real(struct wr_json *object, const char *key, double value);
bool wr_json_set_bool(struct wr_json *object, const char *key, bool value);
bool wr_json_set_null(struct wr_json *object, const char *key);
/* Bytes that are not UTF-8 go under KEY_base64. */
bool wr_json_set_bytes(struct wr_json *object, const char *key, struct wr_span bytes);
/* The value is theirs from here on, also when it fails. */
bool wr_json_adopt(struct wr_json *object, const char *key, struct wr_json *value);
bool wr_json_append(struct wr_json *array, struct wr_json *value);
bool wr_json_append_text(struct wr_json *array, const char *value); /* UTF-8 */

/* One line and a newline; failures are the stream's. */
void wr_json_print(const struct wr_json *json, FILE *out);
/* Appends it in one line without a newline. */
void wr_json_write(const struct wr_json *json, struct wr_buf *out);
/* Appends a string with its quotes. False: not UTF-8, and then nothing was appended. */
bool wr_json_quote(struct wr_buf *out, struct wr_span text);

/* ---- reading ---- */

enum wr_json_kind {
    WR_JSON_STRING,
    WR_JSON_NUMBER,
    WR_JSON_BOOL,
    WR_JSON_NULL,
    WR_JSON_OBJECT,
    WR_JSON_ARRAY
};

/* Texts live as long as the object they come from. */
struct wr_json_value {
    enum wr_json_kind kind;
    const char *text; /* of a string; a number as it would be written */
    size_t len;
    bool yes; /* of a bool */
    char number[40];
    struct wr_json *tree; /* borrowed: the value itself */
};

/* E_DATA: no JSON object, said in one line; E_NO_MEMORY. Two members of one name are an
 * error. */
enum weir_err wr_json_read(const char *text, size_t len, struct wr_json **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/* E_DATA: not one JSON text of any kind, where and why in one line; E_NO_MEMORY. */
enum weir_err
wr_json_check(const char *text, size_t len, struct weir_error *err) WEIR_MUST_CHECK;
/* Calls each(key, value) for every member of an object until it fails. */
enum weir_err
wr_json_each(struct wr_json *object,
             enum weir_err (*each)(const char *key, const struct wr_json_value *value,
                                   void *context, struct weir_error *err),
             void *context, struct weir_error *err) WEIR_MUST_CHECK;

#endif
