/*
 * cli/out.h - the answers of a command, in the form that was asked for.
 *
 * On a terminal: a table, colours, relative times. In a pipe: one record a line, tab
 * separated, times as RFC 3339 in UTC, durations in ms. What strangers wrote (errors,
 * reasons, ids on a terminal) is escaped; ids in a pipe are given as they are, they hold
 * no control characters.
 */
#ifndef WR_CLI_OUT_H
#define WR_CLI_OUT_H

#include "cli/cli.h"

enum cli_color {
    CLI_PLAIN,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW,
    CLI_DIM,
    CLI_BOLD
};

/* Reads -o, NO_COLOR and its kin. E_ARG: an unknown form. */
enum weir_err cli_out_setup(struct cli *cli, const char *form, const char *origin,
                            struct weir_error *err) WEIR_MUST_CHECK;
bool cli_out_is_json(const struct cli *cli);
/* Table or wide: for people. */
bool cli_out_is_table(const struct cli *cli);

/* Text in a colour, or as it is. fmt's result is printed unescaped. */
void
cli_print(struct cli *cli, enum cli_color color, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* An id, escaped on a terminal. */
void cli_print_id(struct cli *cli, const char *id);
/* Text of a stranger, escaped always. */
void cli_print_text(struct cli *cli, const char *text);
enum cli_color cli_state_color(const char *state);

/* "3m05s ago" on a terminal, else RFC 3339; "-" for 0. out_len >= 40 */
void
cli_when(const struct cli *cli, int64_t ms, int64_t now_ms, char *out, size_t out_len);
/* "3m05s" on a terminal, else ms. */
void cli_how_long(const struct cli *cli, int64_t ms, char *out, size_t out_len);

/* ---- tables ---- */

struct cli_column {
    const char *title;
    bool right; /* a number */
    bool wide;  /* on a terminal only with -o wide */
};

struct cli_table;

struct cli_table *
cli_table_new(struct cli *cli, const struct cli_column *columns, size_t n);
/* The cells of a row, in order; the last one ends the row. The first is the id of the
 * record: all that -o id prints. */
void cli_cell(struct cli_table *table, enum cli_color color, const char *fmt, ...)
    WEIR_PRINTF(3, 4);
void cli_cell_id(struct cli_table *table, const char *id);
void cli_cell_text(struct cli_table *table, const char *text);
void cli_cell_int(struct cli_table *table, int64_t number);
void cli_cell_when(struct cli_table *table, int64_t ms, int64_t now_ms);
void cli_cell_how_long(struct cli_table *table, int64_t ms); /* < 0: "-" */
void cli_table_end(struct cli_table *table);                 /* prints and frees */

#endif
