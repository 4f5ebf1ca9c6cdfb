#include "cli/json.h"

#include <string.h>

#include "cli/cli.h"
#include "json/json.h"

/* A struct cli_json is a struct wr_json whose every failure ends the command. */
static struct wr_json *
inside(const struct cli_json *json)
{
    return (struct wr_json *)(uintptr_t)json;
}

static struct cli_json *
outside(struct wr_json *json)
{
    if (!json)
        cli_out_of_memory();
    return (struct cli_json *)(void *)json;
}

static void
must(bool ok)
{
    if (!ok)
        cli_out_of_memory();
}

struct cli_json *
cli_json_new(void)
{
    return outside(wr_json_new());
}

struct cli_json *
cli_json_new_array(void)
{
    return outside(wr_json_new_array());
}

void
cli_json_free(struct cli_json *json)
{
    wr_json_free(inside(json));
}

void
cli_json_int(struct cli_json *json, const char *key, int64_t value)
{
    must(wr_json_set_int(inside(json), key, value));
}

void
cli_json_real(struct cli_json *json, const char *key, double value)
{
    must(wr_json_set_real(inside(json), key, value));
}

void
cli_json_bool(struct cli_json *json, const char *key, bool value)
{
    must(wr_json_set_bool(inside(json), key, value));
}

void
cli_json_null(struct cli_json *json, const char *key)
{
    must(wr_json_set_null(inside(json), key));
}

void
cli_json_text(struct cli_json *json, const char *key, const char *value)
{
    cli_json_bytes(json, key, value, strlen(value));
}

void
cli_json_bytes(struct cli_json *json, const char *key, const void *ptr, size_t len)
{
    must(wr_json_set_bytes(inside(json), key, (struct wr_span){ptr, len}));
}

void
cli_json_adopt(struct cli_json *json, const char *key, struct cli_json *value)
{
    must(wr_json_adopt(inside(json), key, inside(value)));
}

void
cli_json_append(struct cli_json *array, struct cli_json *value)
{
    must(wr_json_append(inside(array), inside(value)));
}

void
cli_json_append_text(struct cli_json *array, const char *value)
{
    must(wr_json_append_text(inside(array), value));
}

void
cli_json_print(const struct cli_json *json, FILE *out)
{
    wr_json_print(inside(json), out);
}
