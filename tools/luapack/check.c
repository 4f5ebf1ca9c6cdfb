/*
 * What no file of Lua may do, and whether a script does what its contract says.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "luapack.h"

#define NAMES_MAX 100 /* Lua has 200 locals a function; the rest is for the body */

/* The keys a script may declare, by the names of docs/keys.md. Those of the second list
 * belong to no queue. */
static const char *const queue_keys[] = {"ready",
                                         "tombs",
                                         "stream",
                                         "ids",
                                         "processing",
                                         "delayed",
                                         "dead",
                                         "kept",
                                         "jobs",
                                         "state",
                                         "results",
                                         "errors",
                                         "log",
                                         "stats",
                                         "claims",
                                         "offers",
                                         "config",
                                         "producers",
                                         "unique",
                                         "windows",
                                         "wake",
                                         "due",
                                         "lock",
                                         "heartbeat_promote",
                                         "heartbeat_reclaim",
                                         "cron",
                                         "waiters",
                                         "outbox",
                                         "next_ready",
                                         "next_stream",
                                         "next_ids",
                                         "order",
                                         "progress",
                                         NULL};
static const char *const other_keys[] = {"queues", "workers", "worker", "hint", NULL};
static const char *const key_types[] = {"LIST", "HASH",   "ZSET", "STRING",
                                        "SET",  "STREAM", NULL};

static void
check_global(const struct source *src, const char *at, const char *known)
{
    size_t len = strcspn(at, "\n"), n = 0;
    bool is_function = strncmp(at, "function ", 9) == 0;
    char name[64];

    at += is_function ? 9 : 0;
    while (n < len && n < sizeof(name) - 1 &&
           (isalnum((unsigned char)at[n]) || at[n] == '_'))
        n++;
    snprintf(name, sizeof(name), "%.*s", (int)n, at);
    at += n + strspn(at + n, " \t");
    if (n == 0 || lp_is_in(name, lp_keywords) || lp_declares(src->code, name) ||
        lp_declares(known, name))
        return;
    if (is_function || *at == ',' || (*at == '=' && at[1] != '='))
        lp_die(src->path, lp_line_of(src, at), "%s is not a local", name);
}

/* known: the Lua that stands before this file. */
void
lp_check_source(const struct source *src, const char *known)
{
    static const struct {
        const char *word, *instead, *but; /* the one file that may */
    } forbidden[] = {
        {"KEYS", "use the names of @key", NULL},
        {"pcall", "an error must not be hidden", "include/memory.lua"},
        {"math.random", "draw numbers in the client, pass them as @arg", NULL},
        {"error_reply", "return a status word", NULL}};

    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        const char *at = lp_find_word(src->code, src->code + strlen(src->code),
                                      forbidden[i].word);

        if (at && !(forbidden[i].but && strstr(src->path, forbidden[i].but)))
            lp_die(src->path, lp_line_of(src, at), "%s must not be used: %s",
                   forbidden[i].word, forbidden[i].instead);
    }
    for (const char *at = strstr(src->code, "ARGV["); at; at = strstr(at + 1, "ARGV[")) {
        if (isdigit((unsigned char)at[5]))
            lp_die(src->path, lp_line_of(src, at),
                   "ARGV by a number: use the names of @arg");
    }
    check_global(src, src->code, known);
    for (const char *at = src->code; (at = strchr(at, '\n')) != NULL; at++)
        check_global(src, at + 1, known);
}

bool
lp_is_queue_key(const char *name)
{
    return lp_is_in(name, queue_keys);
}

bool
lp_is_of_queue(const struct script *s)
{
    return s->keys.n == 0 || lp_is_in(s->keys.items[0].name, queue_keys);
}

static void
check_keys(const struct script *s)
{
    for (size_t i = 0; i < s->keys.n; i++) {
        const struct item *k = &s->keys.items[i];

        if (!lp_is_in(k->name, queue_keys) && !lp_is_in(k->name, other_keys))
            lp_die(s->path, k->line, "key %s is not one of docs/keys.md", k->name);
        if (!lp_is_in(k->type, key_types))
            lp_die(s->path, k->line, "key %s: %s is no type", k->name, k->type);
        if (lp_is_in(k->name, queue_keys) != lp_is_of_queue(s))
            lp_die(s->path, k->line, "keys of a queue and keys of none in one script");
        if (!lp_uses(s->src.code, k->name) &&
            !(s->makes_k && lp_uses_field(s->whole.ptr, "k", k->name)))
            lp_die(s->path, k->line, "key %s is declared and not used", k->name);
    }
}

static void
check_args(const struct script *s)
{
    for (size_t i = 0; i < s->args.n; i++) {
        const struct item *a = &s->args.items[i];

        if (!lp_uses(s->src.code, lp_lua_name(a->name)))
            lp_die(s->path, a->line, "argument %s is declared and not used", a->name);
    }
    if (s->fields.n > 0 && !lp_uses(s->src.code, "ITEM_FIRST"))
        lp_die(s->path, s->fields.items[0].line,
               "@item is declared, ITEM_FIRST not used");
    if (s->fields.n == 0 && lp_uses(s->src.code, "ITEM_FIRST"))
        lp_die(s->path, 1, "ITEM_FIRST is used and no @item declared");
    if (s->keys.n + s->args.n > NAMES_MAX)
        lp_die(s->path, 1, "more than %d keys and arguments", NAMES_MAX);
}

/* The first word of each reply of the body is one of @returns. */
static void
check_replies(const struct script *s)
{
    static const char start[] = "return {";

    for (const char *at = s->src.code; (at = strstr(at, start)) != NULL; at++) {
        const char *text = s->src.text + (at - s->src.code) + sizeof(start) - 1;
        char word[64];
        bool known = false;

        text += strspn(text, " \t\n");
        if ((*text != '\'' && *text != '"') ||
            sscanf(text + 1, "%63[A-Z0-9_]", word) != 1)
            continue;
        for (size_t i = 0; i < s->returns.n; i++)
            known = known || strcmp(s->returns.items[i].name, word) == 0;
        if (!known)
            lp_die(s->path, lp_line_of(&s->src, at),
                   "%s is answered and not promised by @returns", word);
    }
}

static void
check_words(const struct script *s)
{
    if (s->returns.n == 0)
        lp_die(s->path, 1, "no @returns");
    for (size_t i = 0; i < s->returns.n + s->answers.n; i++) {
        const struct item *w = i < s->returns.n ? &s->returns.items[i]
                                                : &s->answers.items[i - s->returns.n];

        if (!lp_is_status(w->name))
            lp_die(s->path, w->line, "%s is not a word in capitals", w->name);
        if (!lp_has_quoted(s->whole.ptr, w->name))
            lp_die(s->path, w->line, "%s is promised and never answered", w->name);
    }
    check_replies(s);
}

static void
to_upper(char *text)
{
    for (; *text; text++)
        *text = (char)toupper((unsigned char)*text);
}

/* The @transition lines are the rows X(ACK, PROCESSING, DONE) of src/model/state.h, no
 * more and no less. A script that has no rows there moves nothing by its own name. */
static void
check_law(const struct script *s, const char *law)
{
    char row[192], prefix[80];
    size_t rows = 0;

    for (size_t i = 0; i < s->transitions.n; i++) {
        const struct item *t = &s->transitions.items[i];

        snprintf(row, sizeof(row), "X(%s, %s, %s)", s->name, t->name, t->type);
        to_upper(row);
        if (!strstr(law, row))
            lp_die(s->path, t->line, "src/model/state.h has no row %s", row);
    }
    snprintf(prefix, sizeof(prefix), "X(%s, ", s->name);
    to_upper(prefix);
    for (const char *at = law; (at = strstr(at, prefix)) != NULL; at++)
        rows++;
    if (rows != s->transitions.n + s->other_transitions)
        lp_die(s->path, 1, "src/model/state.h has %zu rows of %s, the contract %zu", rows,
               s->name, s->transitions.n + s->other_transitions);
}

void
lp_check_script(const struct script *s, const char *law)
{
    check_keys(s);
    check_args(s);
    check_words(s);
    if (law)
        check_law(s, law);
}
