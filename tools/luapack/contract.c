/* Reads the comment lines at the head of a script: its contract. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luapack.h"

static const char *const states[] = {"none", "ready",     "delayed", "processing", "dead",
                                     "done", "cancelled", "expired", NULL};
static const char *const flags_known[] = {"allow-oom", "no-writes", "allow-stale", NULL};

static void
put(struct script *s, struct list *list, const char *rest, bool typed, size_t line)
{
    char name[64] = "", type[64] = "";
    int used = 0, words;
    struct item *item;

    if (list->n == LIST_MAX)
        lp_die(s->path, line, "more than %d of a kind", LIST_MAX);
    words = typed ? sscanf(rest, "%63s %63s %n", name, type, &used)
                  : sscanf(rest, "%63s %n", name, &used);
    if (words < (typed ? 2 : 1))
        lp_die(s->path, line, "a tag lacks a word: %s", rest);
    for (size_t i = 0; i < list->n; i++) {
        if (list != &s->transitions && strcmp(list->items[i].name, name) == 0)
            lp_die(s->path, line, "%s is named twice", name);
    }
    item = &list->items[list->n++];
    item->name = lp_must(strdup(name));
    item->type = lp_must(strdup(type));
    item->text = lp_must(strdup(rest + used));
    item->line = line;
}

static void
put_transition(struct script *s, const char *rest, size_t line)
{
    char from[32], to[32], more;

    if (sscanf(rest, "%31s -> %31s %c", from, to, &more) != 2 ||
        !lp_is_in(from, states) || !lp_is_in(to, states))
        lp_die(s->path, line, "@transition wants STATE -> STATE, both known: %s", rest);
    for (size_t i = 0; i < s->transitions.n; i++) {
        if (strcmp(s->transitions.items[i].name, from) == 0 &&
            strcmp(s->transitions.items[i].type, to) == 0)
            lp_die(s->path, line, "%s -> %s is named twice", from, to);
    }
    put(s, &s->transitions, from, false, line);
    free(s->transitions.items[s->transitions.n - 1].type);
    s->transitions.items[s->transitions.n - 1].type = lp_must(strdup(to));
}

static void
put_once(struct script *s, char **field, const char *rest, size_t line)
{
    if (*field)
        lp_die(s->path, line, "a tag that may stand once stands twice");
    *field = lp_must(strdup(rest));
}

static void
put_flags(struct script *s, const char *rest, size_t line)
{
    char copy[128], *word, *save = NULL;

    snprintf(copy, sizeof(copy), "%s", rest);
    for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (!lp_is_in(word, flags_known))
            lp_die(s->path, line, "@flags: %s is not known", word);
    }
    put_once(s, &s->flags, rest, line);
}

/* In lua/both/ what is said of one engine alone begins with its name: "list:ready LIST
 * ...". Answers the words without that; NULL: it is said of the other one. A move that
 * the other engine's script of that name makes may be named everywhere: they share their
 * rows of src/model/state.h. */
static const char *
of_this_engine(const struct script *s, const char *rest, bool is_move, size_t line)
{
    size_t len = strcspn(rest, ": ");
    bool is_list = len == 4 && strncmp(rest, "list", 4) == 0,
         is_stream = len == 6 && strncmp(rest, "stream", 6) == 0;

    if (rest[len] != ':' || (!is_list && !is_stream))
        return rest;
    if (!s->is_both && !is_move)
        lp_die(s->path, line, "only scripts in lua/both/ serve several engines");
    return strncmp(rest, s->folder, len) == 0 ? rest + len + 1 : NULL;
}

static void
read_tag(struct script *s, const char *tag, size_t line)
{
    const struct {
        const char *word;
        struct list *list;
        bool typed;
    } lists[] = {{"key ", &s->keys, true},
                 {"arg ", &s->args, false},
                 {"item ", &s->fields, false},
                 {"returns ", &s->returns, false},
                 {"answer ", &s->answers, false}};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        size_t len = strlen(lists[i].word);

        if (strncmp(tag, lists[i].word, len) == 0) {
            const char *rest = of_this_engine(s, tag + len, false, line);

            if (rest)
                put(s, lists[i].list, rest, lists[i].typed, line);
            return;
        }
    }
    if (strncmp(tag, "transition ", 11) == 0) {
        const char *rest = of_this_engine(s, tag + 11, true, line);

        if (rest)
            put_transition(s, rest, line);
        else
            s->other_transitions++;
    } else if (strncmp(tag, "flags ", 6) == 0)
        put_flags(s, tag + 6, line);
    else if (strncmp(tag, "cost ", 5) == 0)
        put_once(s, &s->cost, tag + 5, line);
    else
        lp_die(s->path, line, "unknown tag @%s", tag);
}

static void
read_first_line(struct script *s, const char *text)
{
    size_t len = strlen(s->name);

    if (strncmp(text, "--- ", 4) != 0 || strncmp(text + 4, s->name, len) != 0 ||
        strncmp(text + 4 + len, ": ", 2) != 0)
        lp_die(s->path, 1, "the first line must be \"--- %s: what it does\"", s->name);
    s->summary = lp_must(strdup(text + 6 + len));
    if (strstr(s->summary, "*/") || strstr(s->summary, "/*"))
        lp_die(s->path, 1,
               "the summary becomes a comment in C and must not hold another");
}

static void
read_header_line(struct script *s, const char *text, size_t line)
{
    if (line == 1)
        read_first_line(s, text);
    else if (strncmp(text, "--- @include ", 13) == 0)
        put(s, &s->includes, text + 13, false, line);
    else if (strncmp(text, "-- @", 4) == 0)
        read_tag(s, text + 4, line);
    else if (strncmp(text, "-- ", 3) == 0)
        lp_addf(&s->notes, "%s\n", text + 3);
}

void
lp_read_script(struct script *s)
{
    bool in_header = true;
    size_t len;
    size_t line = 1;

    lp_read_source(&s->src, s->path);
    lp_add(&s->notes, "", 0);
    if (s->src.text[0] == '\0')
        read_first_line(s, "");
    for (size_t at = 0; s->src.text[at]; at += len + (s->src.text[at + len] != '\0')) {
        char *text;

        len = strcspn(s->src.text + at, "\n");
        text = lp_must(strndup(s->src.text + at, len));
        in_header = in_header && strspn(s->src.code + at, " \t") >= len;
        if (in_header || line == 1)
            read_header_line(s, text, line);
        else if (strncmp(text, "--- @", 5) == 0 || strncmp(text, "-- @", 4) == 0)
            lp_die(s->path, line, "a tag after the first line of code");
        free(text);
        line++;
    }
}
