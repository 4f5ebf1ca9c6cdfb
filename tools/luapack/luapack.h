/*
 * luapack: what its parts share. One run reads, checks, writes and ends: nothing is freed
 * that lives until then, and an error ends the program.
 */
#ifndef LUAPACK_H
#define LUAPACK_H

#include <stdbool.h>
#include <stddef.h>

#define LIST_MAX 128

struct item {
    char *name, *type, *text;
    size_t line;
};

struct list {
    struct item items[LIST_MAX];
    size_t n;
};

struct text {
    char *ptr;
    size_t len, cap;
};

/* A file of Lua. text and code have the same bytes at the same places, but code has
 * blanks for strings and comments. */
struct source {
    const char *path;
    char *text, *code;
    struct text bare; /* without comments and empty lines: what Redis gets */
};

/* A command that a script calls. key: its place in the contract, or one of these. */
#define COMMAND_KEY_NONE (-1)   /* it has none */
#define COMMAND_KEY_UNSEEN (-2) /* it has one, and the source does not tell which */
#define COMMANDS_MAX 256

struct command {
    char name[32];
    int key;
};

struct script {
    char folder[16], name[64], path[512];
    bool is_both;                 /* from lua/both/: built for each engine */
    char *summary, *flags, *cost; /* flags, cost: NULL when not stated */
    struct list keys, args, fields, returns, answers, transitions, includes;
    size_t other_transitions; /* of the other engine alone */
    struct text notes;        /* free prose of the header */
    struct source src;
    struct text rare;  /* " NAME NAME": functions that are seldom called */
    struct text whole; /* as Redis gets it */
    bool makes_k;      /* the table k of all keys is made for it */
    struct command commands[COMMANDS_MAX]; /* in the order they are met */
    size_t commands_n;
};

/* ---- text.c ---- */

/* Says "PATH:LINE: why" and exits with 1. line 0: it is not about one line. */
void lp_die(const char *path, size_t line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void *lp_must(void *ptr); /* ends the program for NULL */
void lp_add(struct text *t, const char *bytes, size_t len);
void lp_addf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool lp_is_in(const char *word, const char *const *words);
char *lp_read_file(const char *path); /* to be freed; NULL: cannot be opened */

/* ---- source.c ---- */

extern const char *const lp_keywords[]; /* of Lua */

void lp_read_source(struct source *src, const char *path); /* borrows path */
void lp_free_source(struct source *src);
char *lp_code_of(const char *bare); /* blanks for strings; to be freed */
size_t lp_line_of(const struct source *src, const char *at); /* at: in src->code */
/* The first place of word as a word of its own in text, up to end. */
const char *lp_find_word(const char *text, const char *end, const char *word);
/* True if code reads or writes a variable of this name; x.name is none. */
bool lp_uses(const char *code, const char *name);
/* True if field table.name is read or written. */
bool lp_uses_field(const char *code, const char *table, const char *name);
bool lp_has_quoted(const char *text, const char *word);
/* True if a line of text that is not indented makes a local of this name. */
bool lp_declares(const char *text, const char *name);
bool lp_is_name(const char *word);
bool lp_is_status(const char *word);
/* What an argument is called in the script. "now" is the time itself there. */
const char *lp_lua_name(const char *name);

/* ---- contract.c, assemble.c, check.c, look.c, prune.c, write.c: the steps, in this
 * order
 * ---- */

void lp_read_script(struct script *s); /* folder, name and path are set */
void lp_assemble(struct script *s, const char *lua_dir);
/* known: the Lua that stands before this file. */
void lp_check_source(const struct source *src, const char *known);
/* law: the text of src/model/state.h, or NULL. */
void lp_check_script(const struct script *s, const char *law);
bool lp_is_of_queue(const struct script *s);
bool lp_is_queue_key(const char *name);
void lp_look(struct script *s); /* look.c: fills in its commands */
void lp_prune(struct script *s);
void lp_write_all(const struct script *scripts, size_t n, const char *out_dir);
/* write_explain.c: explain.gen.c, what `weir explain` tells. */
void lp_write_explain(const struct script *scripts, size_t n, const char *out_dir);

#endif
