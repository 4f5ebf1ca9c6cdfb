/*
 * One file of Lua: what in it is code, what a string, what a comment.
 *
 * It is looked at by its words, not parsed. That is enough for the checks here; the
 * script tests load every script into a server.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luapack.h"

const char *const lp_keywords[] = {
    "and",      "break", "do",   "else",  "elseif", "end", "false", "for",
    "function", "if",    "in",   "local", "nil",    "not", "or",    "repeat",
    "return",   "then",  "true", "until", "while",  NULL};

size_t
lp_line_of(const struct source *src, const char *at)
{
    size_t line = 1;

    for (const char *p = src->code; p < at; p++)
        line += *p == '\n';
    return line;
}

/* The bytes of "[[" or "[==[" at p; 0: none. */
static size_t
long_open(const char *p)
{
    size_t n = *p == '[' ? 1 + strspn(p + 1, "=") : 0;

    return n > 0 && p[n] == '[' ? n + 1 : 0;
}

/* The end of what starts with a long bracket of so many bytes; NULL: it has none. */
static const char *
long_end(const char *p, size_t open)
{
    for (p += open; (p = strchr(p, ']')) != NULL; p++) {
        if (strspn(p + 1, "=") == open - 2 && p[open - 1] == ']')
            return p + open;
    }
    return NULL;
}

static const char *
quote_end(const char *p)
{
    char quote = *p++;

    for (; *p && *p != '\n'; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == quote)
            return p + 1;
    }
    return NULL;
}

/* The end of the string or comment at p, which is p where there is none. */
static const char *
token_end(const char *p, bool *comment)
{
    size_t open;

    *comment = p[0] == '-' && p[1] == '-';
    if (*comment) {
        open = long_open(p + 2);
        return open ? long_end(p + 2, open) : p + strcspn(p, "\n");
    }
    if (*p == '\'' || *p == '"')
        return quote_end(p);
    open = long_open(p);
    return open ? long_end(p, open) : p;
}

/* Ends a line of bare: no blanks at its end, and no line where that leaves nothing. */
static void
end_line(struct text *bare)
{
    while (bare->len > 0 &&
           (bare->ptr[bare->len - 1] == ' ' || bare->ptr[bare->len - 1] == '\t'))
        bare->len--;
    bare->ptr[bare->len] = '\0';
    if (bare->len > 0 && bare->ptr[bare->len - 1] != '\n')
        lp_add(bare, "\n", 1);
}

void
lp_read_source(struct source *src, const char *path)
{
    bool comment;
    const char *p, *end;

    src->path = path;
    src->text = lp_read_file(path);
    if (!src->text)
        lp_die(path, 1, "cannot be read");
    src->code = lp_must(strdup(src->text));
    lp_add(&src->bare, "", 0);
    for (p = src->text; *p; p = end) {
        end = token_end(p, &comment);
        if (!end)
            lp_die(path, lp_line_of(src, src->code + (p - src->text)),
                   "this string or comment never ends");
        for (const char *q = p; q < end; q++) {
            if (*q != '\n')
                src->code[q - src->text] = ' ';
        }
        if (comment)
            lp_add(&src->bare, " ", 1); /* a comment parts two words */
        else if (end > p)
            lp_add(&src->bare, p, (size_t)(end - p));
        else if (*end++ == '\n')
            end_line(&src->bare);
        else
            lp_add(&src->bare, p, 1);
    }
    end_line(&src->bare);
}

char *
lp_code_of(const char *bare)
{
    char *code = lp_must(strdup(bare));
    const char *end;
    bool comment;

    for (const char *p = bare; p && *p; p = end) {
        end = token_end(p, &comment);
        for (const char *q = p; q < end; q++)
            code[q - bare] = ' ';
        end += end == p;
    }
    return code;
}

void
lp_free_source(struct source *src)
{
    free(src->text);
    free(src->code);
    free(src->bare.ptr);
}

const char *
lp_find_word(const char *text, const char *end, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = text; (at = strstr(at, word)) != NULL && at < end; at++) {
        bool before = at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool after = isalnum((unsigned char)at[len]) || at[len] == '_';

        if (!before && !after)
            return at;
    }
    return NULL;
}

bool
lp_uses(const char *code, const char *name)
{
    const char *end = code + strlen(code), *at = code;

    while ((at = lp_find_word(at, end, name)) != NULL) {
        bool field = at > code && at[-1] == '.' && (at == code + 1 || at[-2] != '.');

        if (!field)
            return true;
        at += strlen(name);
    }
    return false;
}

bool
lp_uses_field(const char *code, const char *table, const char *name)
{
    char word[80];
    size_t len = (size_t)snprintf(word, sizeof(word), "%s.%s", table, name);

    for (const char *at = code; (at = strstr(at, word)) != NULL; at += len) {
        bool before = at > code && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool after = isalnum((unsigned char)at[len]) || at[len] == '_';

        if (!before && !after)
            return true;
    }
    return false;
}

bool
lp_has_quoted(const char *text, const char *word)
{
    char quoted[80];

    snprintf(quoted, sizeof(quoted), "'%s'", word);
    if (strstr(text, quoted))
        return true;
    snprintf(quoted, sizeof(quoted), "\"%s\"", word);
    return strstr(text, quoted) != NULL;
}

bool
lp_declares(const char *text, const char *name)
{
    static const char function[] = "local function ";

    for (const char *at = text; at; at = strchr(at, '\n')) {
        const char *end;

        at += *at == '\n';
        if (strncmp(at, function, sizeof(function) - 1) == 0) {
            at += sizeof(function) - 1;
            end = at + strcspn(at, "(\n");
        } else if (strncmp(at, "local ", 6) == 0) {
            end = at + strcspn(at, "=\n");
        } else
            continue;
        if (lp_find_word(at, end, name))
            return true;
    }
    return false;
}

bool
lp_is_name(const char *word)
{
    return islower((unsigned char)*word) &&
           word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0' &&
           !lp_is_in(word, lp_keywords);
}

bool
lp_is_status(const char *word)
{
    return isupper((unsigned char)*word) &&
           word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0';
}

const char *
lp_lua_name(const char *name)
{
    return strcmp(name, "now") == 0 ? "now_arg" : name;
}
