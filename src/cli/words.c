#include "cli/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Reads a word at *at into out, which has room for all that is left. */
static const char *
take_word(const char **at, char *out, bool *quoted)
{
    const char *p = *at;
    char quote = '\0';

    for (*quoted = false; *p && (quote || !strchr(" \t", *p)); p++) {
        if (quote && *p == quote) {
            quote = '\0';
        } else if (!quote && (*p == '\'' || *p == '"')) {
            quote = *p;
            *quoted = true;
        } else if (*p == '\\' && quote != '\'' &&
                   (!quote || p[1] == '"' || p[1] == '\\')) {
            if (*++p == '\0')
                return "ends in a backslash";
            *quoted = true;
            *out++ = *p;
        } else {
            *out++ = *p;
        }
    }
    *out = '\0';
    *at = p;
    return quote ? "a quote is not closed" : NULL;
}

/* Made of these alone it would be no argument but a shell's doing. */
static bool
is_operator(const char *word)
{
    size_t len = strlen(word), digits = strspn(word, "012");

    if (len > 1 && word[len - 1] == ';')
        return true;
    return len > digits && strchr("|&;<>", word[digits]) != NULL;
}

const char *
cli_words_split(const char *text, struct cli_words *out)
{
    const char *why = NULL;

    *out = (struct cli_words){.list = cli_alloc(sizeof(char *))};
    while (!why) {
        bool quoted;
        char *word;

        text += strspn(text, " \t");
        if (*text == '\0')
            break;
        word = cli_alloc(strlen(text) + 1);
        out->list = cli_grow(out->list, out->n + 2, sizeof(*out->list));
        out->list[out->n++] = word;
        out->list[out->n] = NULL;
        why = take_word(&text, word, &quoted);
        if (!why && !quoted && is_operator(word))
            why = "there is no shell that would understand | & ; < >: quote them, or set "
                  "shell = yes";
    }
    return why;
}

void
cli_words_fini(struct cli_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        free(words->list[i]);
    free(words->list);
    *words = (struct cli_words){0};
}
