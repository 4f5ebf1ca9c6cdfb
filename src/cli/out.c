#include "cli/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"

static const char *const forms[] = {
    [CLI_OUT_TABLE] = "table", [CLI_OUT_WIDE] = "wide",   [CLI_OUT_PLAIN] = "plain",
    [CLI_OUT_JSON] = "json",   [CLI_OUT_JSONL] = "jsonl", [CLI_OUT_ID] = "id",
};

static bool
is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

static bool
wants_color(const struct cli *cli)
{
    const char *term = getenv("TERM");
    const char *force = getenv("CLICOLOR_FORCE");

    if (is_set("NO_COLOR") || cli->globals.no_color)
        return false;
    if (is_set("FORCE_COLOR") || (force && *force && strcmp(force, "0") != 0))
        return true;
    return cli->out_is_tty && term && *term && strcmp(term, "dumb") != 0;
}

enum weir_err
cli_out_setup(struct cli *cli, const char *form, const char *origin,
              struct weir_error *err)
{
    size_t i = 0;

    cli->color = wants_color(cli);
    cli->format = cli->out_is_tty ? CLI_OUT_TABLE : CLI_OUT_PLAIN;
    if (!form)
        return WEIR_OK;
    while (i < sizeof(forms) / sizeof(forms[0]) && strcmp(forms[i], form) != 0)
        i++;
    if (i == sizeof(forms) / sizeof(forms[0]))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "%s: \"%.20s\" is not table, wide, plain, json, jsonl or id",
                       origin, form);
    cli->format = (enum cli_format)i;
    return WEIR_OK;
}

bool
cli_out_is_json(const struct cli *cli)
{
    return cli->format == CLI_OUT_JSON || cli->format == CLI_OUT_JSONL;
}

bool
cli_out_is_table(const struct cli *cli)
{
    return cli->format == CLI_OUT_TABLE || cli->format == CLI_OUT_WIDE;
}

static const char *
color_code(enum cli_color color)
{
    switch (color) {
    case CLI_PLAIN:
        return "";
    case CLI_RED:
        return "\033[31m";
    case CLI_GREEN:
        return "\033[32m";
    case CLI_YELLOW:
        return "\033[33m";
    case CLI_DIM:
        return "\033[2m";
    case CLI_BOLD:
        return "\033[1m";
    }
    return "";
}

void
cli_print(struct cli *cli, enum cli_color color, const char *fmt, ...)
{
    bool colored = cli->color && color != CLI_PLAIN;
    va_list ap;

    if (colored)
        fputs(color_code(color), cli->out);
    va_start(ap, fmt);
    vfprintf(cli->out, fmt, ap);
    va_end(ap);
    if (colored)
        fputs("\033[0m", cli->out);
}

void
cli_print_text(struct cli *cli, const char *text)
{
    struct wr_buf shown = {0};

    wr_text_escape(&shown, wr_span_str(text));
    fputs(wr_buf_span(&shown).ptr, cli->out);
    wr_buf_fini(&shown);
}

void
cli_print_id(struct cli *cli, const char *id)
{
    if (cli->out_is_tty)
        cli_print_text(cli, id);
    else
        fputs(id, cli->out);
}

enum cli_color
cli_state_color(const char *state)
{
    static const struct {
        const char *state;
        enum cli_color color;
    } colors[] = {{"dead", CLI_RED},
                  {"done", CLI_GREEN},
                  {"processing", CLI_YELLOW},
                  {"PAUSED", CLI_YELLOW},
                  {"delayed", CLI_DIM}};

    for (size_t i = 0; i < sizeof(colors) / sizeof(colors[0]); i++) {
        if (strcmp(colors[i].state, state) == 0)
            return colors[i].color;
    }
    return CLI_PLAIN;
}

void
cli_when(const struct cli *cli, int64_t ms, int64_t now_ms, char *out, size_t out_len)
{
    char text[32];

    if (ms == 0) {
        snprintf(out, out_len, "-");
    } else if (!cli_out_is_table(cli) || cli->globals.utc) {
        wr_text_show_time(ms, text);
        snprintf(out, out_len, "%s", text);
    } else {
        wr_text_show_duration(ms > now_ms ? ms - now_ms : now_ms - ms, text,
                              sizeof(text));
        snprintf(out, out_len, "%s%s%s", ms > now_ms ? "in " : "", text,
                 ms > now_ms ? "" : " ago");
    }
}

void
cli_how_long(const struct cli *cli, int64_t ms, char *out, size_t out_len)
{
    if (cli_out_is_table(cli))
        wr_text_show_duration(ms, out, out_len);
    else
        snprintf(out, out_len, "%lld", (long long)ms);
}

/* ---- tables ---- */

struct cell {
    char *text;
    enum cli_color color;
};

struct cli_table {
    struct cli *cli;
    const struct cli_column *columns;
    size_t n, at; /* at: the next column */
    struct cell *cells;
    size_t cells_n, cells_cap;
};

struct cli_table *
cli_table_new(struct cli *cli, const struct cli_column *columns, size_t n)
{
    struct cli_table *t = cli_alloc(sizeof(*t));

    t->cli = cli;
    t->columns = columns;
    t->n = n;
    return t;
}

static void
keep_cell(struct cli_table *t, enum cli_color color, const char *text)
{
    if (t->cells_n == t->cells_cap) {
        t->cells_cap = t->cells_cap ? t->cells_cap * 2 : 64;
        t->cells = cli_grow(t->cells, t->cells_cap, sizeof(*t->cells));
    }
    t->cells[t->cells_n++] = (struct cell){cli_strdup(text), color};
}

static void
add_cell(struct cli_table *t, enum cli_color color, const char *text)
{
    FILE *out = t->cli->out;

    if (cli_out_is_table(t->cli)) {
        keep_cell(t, color, text);
    } else if (t->cli->format == CLI_OUT_ID) {
        if (t->at == 0)
            fprintf(out, "%s\n", text);
    } else {
        fprintf(out, "%s%s%s", t->at > 0 ? "\t" : "", text,
                t->at + 1 == t->n ? "\n" : "");
    }
    t->at = (t->at + 1) % t->n;
}

void
cli_cell(struct cli_table *t, enum cli_color color, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    add_cell(t, color, text);
}

void
cli_cell_text(struct cli_table *t, const char *text)
{
    struct wr_buf shown = {0};

    wr_text_escape(&shown, wr_span_str(text));
    add_cell(t, CLI_PLAIN, wr_buf_span(&shown).ptr);
    wr_buf_fini(&shown);
}

void
cli_cell_id(struct cli_table *t, const char *id)
{
    if (t->cli->out_is_tty)
        cli_cell_text(t, id);
    else
        add_cell(t, CLI_PLAIN, id);
}

void
cli_cell_int(struct cli_table *t, int64_t number)
{
    cli_cell(t, CLI_PLAIN, "%lld", (long long)number);
}

void
cli_cell_when(struct cli_table *t, int64_t ms, int64_t now_ms)
{
    char text[64];

    cli_when(t->cli, ms, now_ms, text, sizeof(text));
    add_cell(t, CLI_PLAIN, text);
}

void
cli_cell_how_long(struct cli_table *t, int64_t ms)
{
    char text[64] = "-";

    if (ms >= 0)
        cli_how_long(t->cli, ms, text, sizeof(text));
    add_cell(t, CLI_PLAIN, text);
}

/* Columns on the screen: characters, not bytes. */
static size_t
width_of(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static bool
is_shown(const struct cli_table *t, size_t column)
{
    return t->cli->format == CLI_OUT_WIDE || !t->columns[column].wide;
}

static size_t
column_width(const struct cli_table *t, size_t column)
{
    size_t width = width_of(t->columns[column].title);

    for (size_t i = column; i < t->cells_n; i += t->n) {
        size_t w = width_of(t->cells[i].text);

        width = w > width ? w : width;
    }
    return width;
}

static void
pad(FILE *out, size_t n)
{
    fprintf(out, "%*s", (int)n, "");
}

static void
print_padded(const struct cli_table *t, size_t column, enum cli_color color,
             const char *text, size_t width)
{
    size_t blanks = width - width_of(text);
    bool last = column + 1 == t->n;

    if (t->columns[column].right)
        pad(t->cli->out, blanks);
    cli_print(t->cli, color, "%s", text);
    if (!t->columns[column].right && !last)
        pad(t->cli->out, blanks);
    if (!last)
        fputs("  ", t->cli->out);
}

static void
print_rows(struct cli_table *t)
{
    size_t *widths = cli_alloc(t->n * sizeof(*widths));

    for (size_t c = 0; c < t->n; c++)
        widths[c] = column_width(t, c);
    for (size_t c = 0; c < t->n; c++) {
        if (is_shown(t, c))
            print_padded(t, c, CLI_DIM, t->columns[c].title, widths[c]);
    }
    fputc('\n', t->cli->out);
    WR_ASSERT(t->n > 0 || t->cells_n == 0);
    for (size_t i = 0; i < t->cells_n; i++) {
        size_t c = i % t->n;

        if (is_shown(t, c))
            print_padded(t, c, t->cells[i].color, t->cells[i].text, widths[c]);
        if (c + 1 == t->n)
            fputc('\n', t->cli->out);
    }
    free(widths);
}

void
cli_table_end(struct cli_table *t)
{
    if (t->cells_n > 0)
        print_rows(t);
    for (size_t i = 0; i < t->cells_n; i++)
        free(t->cells[i].text);
    free(t->cells);
    free(t);
}
