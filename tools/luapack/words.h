/*
 * words.h - Lua as a row of words, for what looks at a whole script.
 */
#ifndef LUAPACK_WORDS_H
#define LUAPACK_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum word_kind {
    NAME,
    STRING,
    OTHER, /* a number, or one character of punctuation; "..." is one */
    DOTS,
};

struct word {
    enum word_kind kind;
    const char *at;
    size_t len;
    bool new_line, margin; /* the first of its line; at the margin */
};

struct words {
    struct word *list;
    size_t n;
};

/* text: as Redis gets it, without comments; it must live as long. path: for errors. */
void lp_split(struct words *out, const char *text, const char *path);
/* Of a word that is no string. */
bool lp_word_is(const struct word *word, const char *text);
bool lp_word_same(const struct word *a, const struct word *b);
int lp_word_depth(const struct word *t); /* 1: an opening bracket, -1: a closing one */
/* The place of the bracket that closes the one at i. */
size_t lp_closing(const struct words *words, size_t i);

#endif
