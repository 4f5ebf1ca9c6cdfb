#include "words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "luapack.h"

#define WORDS_MAX 40000

bool
lp_word_is(const struct word *t, const char *word)
{
    return t->len == strlen(word) && t->kind != STRING &&
           memcmp(t->at, word, t->len) == 0;
}

bool
lp_word_same(const struct word *a, const struct word *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

static const char *
string_end(const char *p)
{
    char quote = *p++;

    while (*p && *p != quote)
        p += *p == '\\' && p[1] ? 2 : 1;
    return *p ? p + 1 : p;
}

static void
put(struct words *w, struct word t, const char *path)
{
    if (w->n == WORDS_MAX)
        lp_die(path, 1, "more words than explain can read");
    w->list[w->n++] = t;
}

void
lp_split(struct words *out, const char *text, const char *path)
{
    const char *p = text + strcspn(text, "\n"); /* behind the shebang */
    bool new_line = true;

    *out = (struct words){.list = lp_must(calloc(WORDS_MAX, sizeof(*out->list)))};
    while (*p) {
        struct word t = {.kind = OTHER, .at = p, .len = 1};

        if (isspace((unsigned char)*p)) {
            new_line = new_line || *p == '\n';
            p++;
            continue;
        }
        t.new_line = new_line;
        t.margin = new_line && p[-1] == '\n';
        new_line = false;
        if (isalpha((unsigned char)*p) || *p == '_') {
            t.kind = NAME;
            while (isalnum((unsigned char)t.at[t.len]) || t.at[t.len] == '_')
                t.len++;
        } else if (*p == '\'' || *p == '"') {
            t.kind = STRING;
            t.at = p + 1;
            t.len = (size_t)(string_end(p) - p);
            p += t.len;
            t.len -= 2;
            put(out, t, path);
            continue;
        } else if (*p == '[' && (p[1] == '[' || p[1] == '=')) {
            const char *end = strstr(p, "]]");

            t.kind = STRING; /* no key, and no command */
            t.len = end ? (size_t)(end + 2 - p) : strlen(p);
        } else if (strncmp(p, "...", 3) == 0) {
            t.kind = DOTS;
            t.len = 3;
        } else if (isdigit((unsigned char)*p)) {
            while (isalnum((unsigned char)t.at[t.len]))
                t.len++;
        }
        p += t.len;
        put(out, t, path);
    }
}

int
lp_word_depth(const struct word *t)
{
    if (t->kind != OTHER)
        return 0;
    return strchr("({[", *t->at) ? 1 : strchr(")}]", *t->at) ? -1 : 0;
}

size_t
lp_closing(const struct words *w, size_t i)
{
    int depth = 0;

    for (; i < w->n; i++) {
        depth += lp_word_depth(&w->list[i]);
        if (depth == 0)
            return i;
    }
    return w->n;
}
