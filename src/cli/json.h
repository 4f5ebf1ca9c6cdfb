/*
 * cli/json.h - the door to jansson: no other file includes it.
 *
 * Writing: one object, printed as one line. Reading: one object of a line.
 */
#ifndef WR_CLI_JSON_H
#define WR_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/error.h>

struct cli_json;

struct cli_json *cli_json_new(void);       /* {} */
struct cli_json *cli_json_new_array(void); /* [] */
void cli_json_free(struct cli_json *json); /* NULL is allowed */
void cli_json_int(struct cli_json *json, const char *key, int64_t value);
void cli_json_real(struct cli_json *json, const char *key, double value);
void cli_json_bool(struct cli_json *json, const char *key, bool value);
void cli_json_null(struct cli_json *json, const char *key);
/* Bytes that are not UTF-8 go under KEY_base64. */
void cli_json_text(struct cli_json *json, const char *key, const char *value);
void cli_json_bytes(struct cli_json *json, const char *key, const void *ptr, size_t len);
void cli_json_adopt(struct cli_json *json, const char *key, struct cli_json *value);
void cli_json_append(struct cli_json *array, struct cli_json *value); /* adopts */
void cli_json_print(const struct cli_json *json, FILE *out);          /* and a newline */

/* ---- reading ---- */

enum cli_json_kind {
    CLI_JSON_STRING,
    CLI_JSON_NUMBER,
    CLI_JSON_BOOL,
    CLI_JSON_NULL,
    CLI_JSON_OBJECT,
    CLI_JSON_ARRAY
};

/* Texts live as long as the object they come from. */
struct cli_json_value {
    enum cli_json_kind kind;
    const char *text; /* of a string; a number as it would be written */
    size_t len;
    bool yes; /* of a bool */
    char number[40];
    struct cli_json *object; /* borrowed; of an object */
};

/* E_DATA: no JSON object, said in one line. */
enum weir_err cli_json_read(const char *text, size_t len, struct cli_json **out,
                            struct weir_error *err) WEIR_MUST_CHECK;
/* Calls each(key, value) for every member until it fails. */
enum weir_err
cli_json_each(struct cli_json *json,
              enum weir_err (*each)(const char *key, const struct cli_json_value *value,
                                    void *context, struct weir_error *err),
              void *context, struct weir_error *err) WEIR_MUST_CHECK;

#endif
