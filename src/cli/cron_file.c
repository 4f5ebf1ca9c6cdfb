#include "cli/cron_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/payload.h"
#include "model/entry.h"

static enum weir_err
read_all(const char *path, struct wr_buf *out, struct weir_error *err)
{
    enum weir_err rc = cli_payload_file(path, out, err);

    if (rc != WEIR_OK)
        return rc;
    if (out->len > CLI_CRON_FILE_MAX)
        return wr_fail(err, WEIR_E_DATA, 0, "%.200s: more than 16 MiB", path);
    wr_buf_add(out, "", 1);
    if (out->failed)
        cli_out_of_memory();
    if (strlen(out->ptr) != out->len - 1)
        return wr_fail(err, WEIR_E_DATA, 0, "%.200s: holds a NUL byte", path);
    return WEIR_OK;
}

/* ---- lines ---- */

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without the blanks around it. */
static char *
trim(char *text)
{
    size_t len;

    while (is_blank(*text))
        text++;
    len = strlen(text);
    while (len > 0 && is_blank(text[len - 1]))
        text[--len] = '\0';
    return text;
}

static const char *
take_head(struct cli_cron_file *f, char *text, size_t line)
{
    struct cli_cron_section *s;
    char *end = text + strlen(text) - 1;

    if (*end != ']')
        return "a section without its ]";
    *end = '\0';
    text = trim(text + 1);
    if (!wr_entry_is_name(wr_span_str(text)))
        return "a name of 1 to 100 bytes, no control characters";
    f->sections = cli_grow(f->sections, f->n + 1, sizeof(*f->sections));
    s = &f->sections[f->n++];
    cli_cron_spec_init(&s->spec);
    s->name = text;
    s->line = line;
    return NULL;
}

static const struct cli_opt *
find_part(const char *name)
{
    for (const struct cli_opt *o = cli_cron_parts; o->name; o++) {
        if (strcmp(o->name, name) == 0)
            return o;
    }
    return NULL;
}

/* Was it given before in this section? Lists may be. */
static bool
is_twice(const struct cli_cron_spec *spec, const struct cli_opt *o)
{
    struct cli_cron_spec none;
    size_t size = o->type == CLI_TEXT   ? sizeof(const char *)
                  : o->type == CLI_FLAG ? sizeof(bool)
                                        : sizeof(int64_t);

    cli_cron_spec_init(&none);
    return o->type != CLI_LIST && memcmp((const char *)spec + o->field,
                                         (const char *)&none + o->field, size) != 0;
}

static const char *
take_part(struct cli_cron_file *f, char *text, struct weir_error *why)
{
    char *equals = strchr(text, '=');
    struct cli_cron_spec *spec;
    const struct cli_opt *o;
    char *name, *value;

    if (!equals)
        return "neither [NAME] nor NAME = VALUE";
    if (f->n == 0)
        return "a value before the first [NAME]";
    *equals = '\0';
    name = trim(text);
    value = trim(equals + 1);
    o = find_part(name);
    spec = &f->sections[f->n - 1].spec;
    if (!o) {
        (void)wr_fail(why, WEIR_E_DATA, 0, "\"%.40s\" is nothing of a cron entry", name);
        return why->text;
    }
    if (is_twice(spec, o)) {
        (void)wr_fail(why, WEIR_E_DATA, 0, "%s is given twice", name);
        return why->text;
    }
    if (o->type == CLI_FLAG && strcmp(value, "true") != 0) {
        (void)wr_fail(why, WEIR_E_DATA, 0, "%s: only \"true\", or leave the line out",
                      name);
        return why->text;
    }
    if (strcmp(name, "payload") == 0 && strcmp(value, "-") == 0)
        return "payload: no standard input here; take @FILE";
    return cli_option_store(o, name, value, spec, why) == WEIR_OK ? NULL : why->text;
}

static enum weir_err
read_lines(struct cli_cron_file *f, const char *path, struct weir_error *err)
{
    char *next = f->text;

    for (size_t line = 1; next; line++) {
        char *text = next, *newline = strchr(text, '\n');
        struct weir_error why = {0};
        const char *wrong = NULL;

        next = newline ? newline + 1 : NULL;
        if (newline)
            *newline = '\0';
        text = trim(text);
        if (*text == '\0' || *text == '#' || *text == ';')
            continue;
        wrong = *text == '[' ? take_head(f, text, line) : take_part(f, text, &why);
        if (wrong)
            return wr_fail(err, WEIR_E_DATA, 0, "%.80s:%zu: %.150s", path, line, wrong);
    }
    return WEIR_OK;
}

static const char *
queue_of(const struct cli_cron_section *s)
{
    return s->spec.job.queue ? s->spec.job.queue : "default";
}

static int
by_queue_and_name(const void *a, const void *b)
{
    const struct cli_cron_section *x = *(const struct cli_cron_section *const *)a;
    const struct cli_cron_section *y = *(const struct cli_cron_section *const *)b;
    int order = strcmp(queue_of(x), queue_of(y));

    return order ? order : strcmp(x->name, y->name);
}

static enum weir_err
check_names(const struct cli_cron_file *f, const char *path, struct weir_error *err)
{
    const struct cli_cron_section **all = cli_alloc((f->n + 1) * sizeof(*all));
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < f->n; i++)
        all[i] = &f->sections[i];
    if (f->n > 0)
        qsort(all, f->n, sizeof(*all), by_queue_and_name);
    for (size_t i = 1; i < f->n && rc == WEIR_OK; i++) {
        if (by_queue_and_name(&all[i - 1], &all[i]) == 0)
            rc = wr_fail(
                err, WEIR_E_DATA, 0,
                "%.80s:%zu: \"%.60s\" of queue %.60s is there already (line %zu)", path,
                all[i]->line, all[i]->name, queue_of(all[i]), all[i - 1]->line);
    }
    free(all);
    return rc;
}

enum weir_err
cli_cron_file_read(const char *path, struct cli_cron_file *out, struct weir_error *err)
{
    struct wr_buf text = {0};
    enum weir_err rc = read_all(path, &text, err);

    *out = (struct cli_cron_file){.text = text.ptr};
    if (rc == WEIR_OK)
        rc = read_lines(out, path, err);
    if (rc == WEIR_OK)
        rc = check_names(out, path, err);
    return rc;
}

void
cli_cron_file_fini(struct cli_cron_file *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->sections[i].spec.job.meta.items);
    free(f->sections);
    free(f->text);
    *f = (struct cli_cron_file){0};
}
