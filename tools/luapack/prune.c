/*
 * Redis makes every function at the top level of a script anew at each call, which costs
 * a third of what a small command does. So those that nobody uses are left out, and those
 * that only rare functions use ("--- @rare NAME" in the file of such a one) move into
 * these: they are made when one is called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luapack.h"

#define PIECES_MAX 1024

/* A function at the top level, or the lines between two of them: then it has no name. */
struct piece {
    const char *text;
    char *code;
    size_t len;
    char name[64];
    bool rare, hot, wanted;
};

struct pieces {
    struct piece at[PIECES_MAX];
    size_t n;
};

static const char function_word[] = "local function ";

static size_t
line_len(const char *text)
{
    size_t len = strcspn(text, "\n");

    return len + (text[len] == '\n');
}

static bool
is_line(const char *text, const char *line)
{
    size_t len = strlen(line);

    return strncmp(text, line, len) == 0 && text[len] == '\n';
}

/* To the end of the function that begins here, or to where the next one does. */
static size_t
piece_len(const struct script *s, const char *text)
{
    bool is_function = strncmp(text, function_word, sizeof(function_word) - 1) == 0;
    size_t len = line_len(text);

    if (is_function && text[len - 2] != ')')
        lp_die(s->path, 0, "a function's first line must end with its parameters: %.60s",
               text);
    while (text[len] && (is_function ? !is_line(text + len, "end")
                                     : strncmp(text + len, function_word,
                                               sizeof(function_word) - 1) != 0))
        len += line_len(text + len);
    return is_function ? len + line_len(text + len) : len;
}

static void
split(const struct script *s, struct pieces *out)
{
    char *code = lp_code_of(s->whole.ptr);

    for (const char *at = s->whole.ptr; *at;) {
        struct piece *p = &out->at[out->n++];

        if (out->n == PIECES_MAX)
            lp_die(s->path, 0, "more than %d functions", PIECES_MAX);
        *p = (struct piece){.text = at, .len = piece_len(s, at)};
        p->code = lp_must(strndup(code + (at - s->whole.ptr), p->len));
        if (strncmp(at, function_word, sizeof(function_word) - 1) == 0) {
            at += sizeof(function_word) - 1;
            snprintf(p->name, sizeof(p->name), "%.*s", (int)strcspn(at, "("), at);
            p->rare = s->rare.ptr && lp_find_word(s->rare.ptr, s->rare.ptr + s->rare.len,
                                                  p->name) != NULL;
        }
        at = p->text + p->len;
    }
    free(code);
}

/* Marks what this one uses, and what that uses in turn, but for what is hot. */
static void
want(struct pieces *all, const struct piece *user)
{
    for (size_t i = 0; i < all->n; i++) {
        struct piece *p = &all->at[i];

        if (p->name[0] && !p->hot && !p->wanted && p != user &&
            lp_uses(user->code, p->name)) {
            p->wanted = true;
            want(all, p);
        }
    }
}

static void
heat(struct pieces *all, struct piece *user)
{
    user->hot = true;
    for (size_t i = 0; i < all->n && !user->rare; i++) {
        struct piece *p = &all->at[i];

        if (p->name[0] && !p->hot && lp_uses(user->code, p->name))
            heat(all, p);
    }
}

static void
put_piece(struct text *out, struct pieces *all, const struct piece *p)
{
    size_t head = line_len(p->text);

    if (!p->rare) {
        lp_add(out, p->text, p->len);
        return;
    }
    lp_add(out, p->text, head);
    for (size_t i = 0; i < all->n; i++)
        all->at[i].wanted = false;
    want(all, p);
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].wanted)
            lp_add(out, all->at[i].text, all->at[i].len);
    }
    lp_add(out, p->text + head, p->len - head);
}

void
lp_prune(struct script *s)
{
    struct pieces *all = lp_must(calloc(1, sizeof(*all)));
    struct text out = {0};

    split(s, all);
    for (size_t i = 0; i < all->n; i++) {
        if (!all->at[i].name[0])
            heat(all, &all->at[i]);
    }
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].hot)
            put_piece(&out, all, &all->at[i]);
    }
    for (size_t i = 0; i < all->n; i++)
        free(all->at[i].code);
    free(s->whole.ptr);
    s->whole = out;
    free(all);
}
