/*
 * cli/words.h - a line cut into words as a shell would, but nothing is expanded.
 *
 * Blanks separate; '...' is as it stands, "..." knows \" and \\, and a backslash outside
 * takes the next character as it is. Words that only a shell understands (| && ; > ...)
 * are refused unless they are quoted.
 */
#ifndef WR_CLI_WORDS_H
#define WR_CLI_WORDS_H

#include <stddef.h>

struct cli_words {
    char **list; /* NULL at the end */
    size_t n;
};

/* NULL, or in a few words why the text cannot be cut. Free with cli_words_fini() in
 * either case. */
const char *cli_words_split(const char *text, struct cli_words *out);
void cli_words_fini(struct cli_words *words);

#endif
