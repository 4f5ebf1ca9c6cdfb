/*
 * cli/json.h - writing JSON as a command does: it ends without memory. One object,
 * printed as one line. Reading is in json/json.h, and so is the door to jansson.
 */
#ifndef WR_CLI_JSON_H
#define WR_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
void cli_json_append_text(struct cli_json *array, const char *value); /* UTF-8 */
void cli_json_print(const struct cli_json *json, FILE *out);          /* and a newline */

#endif
