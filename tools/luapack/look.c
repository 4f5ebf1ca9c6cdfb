/*
 * Which commands of Redis a script calls, and with which keys: for `weir explain`.
 *
 * The script is read as Redis gets it, word by word, and followed through the functions
 * of its includes: what a caller passes is what the function's parameter is. There is no
 * flow: both ways of an `if` count, and a variable is all that it ever is. That shows a
 * key too many rather than one too few; a key that cannot be seen is told as such.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luapack.h"
#include "words.h"

#define FUNCTIONS_MAX 256
#define BINDINGS_MAX 128
#define ARGS_MAX 24
#define WORDS_MAX 8
#define DEPTH_MAX 24
#define CALLS_MAX 4096 /* followed in one script */

/* What an expression may be: keys of the contract, and words. */
struct value {
    bool keys[LIST_MAX];
    struct word words[WORDS_MAX];
    size_t words_n;
};

struct binding {
    const struct word *name;
    struct value value;
};

struct scope {
    struct binding bindings[BINDINGS_MAX];
    size_t n, params_n; /* the first ones are parameters: they hide keys */
    struct value rest;  /* what `...` is */
};

struct function {
    const struct word *name, *params[ARGS_MAX];
    size_t params_n, begin, end;
    bool takes_rest;
};

struct look {
    struct script *script;
    struct words words;
    struct function functions[FUNCTIONS_MAX];
    size_t functions_n, depth, calls;
};

/* ---- functions ---- */

static void
find_functions(struct look *l)
{
    for (size_t i = 0; i + 3 < l->words.n; i++) {
        struct function *f = &l->functions[l->functions_n];
        size_t at;

        if (!l->words.list[i].margin || !lp_word_is(&l->words.list[i], "local") ||
            !lp_word_is(&l->words.list[i + 1], "function"))
            continue;
        if (l->functions_n == FUNCTIONS_MAX)
            lp_die(l->script->path, 1, "more functions than explain can read");
        *f = (struct function){.name = &l->words.list[i + 2]};
        for (at = i + 4; at < l->words.n && !lp_word_is(&l->words.list[at], ")"); at++) {
            if (l->words.list[at].kind == NAME && f->params_n < ARGS_MAX)
                f->params[f->params_n++] = &l->words.list[at];
            f->takes_rest = f->takes_rest || l->words.list[at].kind == DOTS;
        }
        f->begin = ++at;
        while (at < l->words.n &&
               !(l->words.list[at].margin && lp_word_is(&l->words.list[at], "end")))
            at++;
        f->end = at;
        l->functions_n++;
        i = at;
    }
}

/* A call, or a function that is handed on, which somebody may call. */
static const struct function *
function_at(const struct look *l, size_t i)
{
    const struct word *t = &l->words.list[i];

    if (t->kind != NAME || i + 1 >= l->words.n ||
        lp_word_is(&l->words.list[i + 1], "=") ||
        (i > 0 && (lp_word_is(t - 1, ".") || lp_word_is(t - 1, ":") ||
                   lp_word_is(t - 1, "function"))))
        return NULL;
    for (size_t k = 0; k < l->functions_n; k++) {
        if (lp_word_same(l->functions[k].name, t))
            return &l->functions[k];
    }
    return NULL;
}

/* ---- values ---- */

static int
key_of(const struct script *s, const struct word *t)
{
    for (size_t i = 0; i < s->keys.n; i++) {
        if (lp_word_is(t, s->keys.items[i].name))
            return (int)i;
    }
    return -1;
}

static void
add_value(struct value *to, const struct value *v)
{
    for (size_t i = 0; i < LIST_MAX; i++)
        to->keys[i] = to->keys[i] || v->keys[i];
    for (size_t i = 0; i < v->words_n && to->words_n < WORDS_MAX; i++)
        to->words[to->words_n++] = v->words[i];
}

static bool
has_key(const struct value *v)
{
    for (size_t i = 0; i < LIST_MAX; i++) {
        if (v->keys[i])
            return true;
    }
    return false;
}

static void
add_name(const struct look *l, const struct scope *scope, const struct word *t,
         bool is_field, struct value *out)
{
    int key = key_of(l->script, t);

    for (size_t i = 0; i < scope->n && !is_field; i++) {
        if (!lp_word_same(scope->bindings[i].name, t))
            continue;
        add_value(out, &scope->bindings[i].value);
        if (i < scope->params_n)
            return;
    }
    if (key >= 0)
        out->keys[key] = true;
}

static struct value
value_of(const struct look *l, const struct scope *scope, size_t begin, size_t end)
{
    struct value v = {0};

    for (size_t i = begin; i < end; i++) {
        const struct word *t = &l->words.list[i];

        if (t->kind == STRING && v.words_n < WORDS_MAX)
            v.words[v.words_n++] = *t;
        else if (t->kind == DOTS)
            add_value(&v, &scope->rest);
        else if (t->kind == NAME &&
                 !(i + 1 < end && lp_word_is(t + 1, "."))) /* a field is not k */
            add_name(l, scope, t, i > begin && lp_word_is(t - 1, "."), &v);
    }
    return v;
}

/* A parameter stands first and is new; any other name is all that it was given. */
static void
bind(const struct look *l, struct scope *scope, const struct word *name,
     const struct value *v, bool is_param)
{
    size_t i = is_param ? scope->n : scope->params_n;

    while (i < scope->n && !lp_word_same(scope->bindings[i].name, name))
        i++;
    if (i == BINDINGS_MAX)
        lp_die(l->script->path, 1, "more variables than explain can follow");
    if (i == scope->n)
        scope->bindings[scope->n++] = (struct binding){.name = name};
    add_value(&scope->bindings[i].value, v);
    scope->params_n += is_param;
}

/* Splits the words between two brackets at their commas; answers how many. */
static size_t
arguments(const struct look *l, size_t open, size_t begins[ARGS_MAX + 1])
{
    size_t close = lp_closing(&l->words, open), n = 0;
    int depth = 0;

    if (close == open + 1)
        return 0;
    begins[n++] = open + 1;
    for (size_t i = open + 1; i < close; i++) {
        depth += lp_word_depth(&l->words.list[i]);
        if (depth == 0 && lp_word_is(&l->words.list[i], ",") && n < ARGS_MAX)
            begins[n++] = i + 1;
    }
    begins[n] = close + 1;
    return n;
}

/* ---- commands ---- */

static void
put_command(struct script *s, const char *word, size_t len, int key)
{
    char name[32] = "";

    if (len >= sizeof(name))
        len = sizeof(name) - 1;
    memcpy(name, word, len);
    for (size_t i = 0; i < s->commands_n; i++) {
        if (strcmp(s->commands[i].name, name) == 0 && s->commands[i].key == key)
            return;
    }
    if (s->commands_n == COMMANDS_MAX)
        lp_die(s->path, 1, "more than %d commands", COMMANDS_MAX);
    memcpy(s->commands[s->commands_n].name, name, sizeof(name));
    s->commands[s->commands_n++].key = key;
}

/* Does a command of this name work on keys of this type? Of two that a place in the
 * source may stand for, only one does mostly. */
static bool
fits(const char *word, const char *type)
{
    static const char *const any[] = {"EXISTS", "UNLINK", "DEL",    "TOUCH",
                                      "RENAME", "TYPE",   "EXPIRE", "PEXPIRE",
                                      "MEMORY", "DUMP",   NULL};

    if (lp_is_in(word, any))
        return true;
    switch (*word) {
    case 'H':
        return strcmp(type, "HASH") == 0;
    case 'Z':
        return strcmp(type, "ZSET") == 0;
    case 'X':
        return strcmp(type, "STREAM") == 0;
    case 'L':
    case 'R':
        return strcmp(type, "LIST") == 0;
    default: /* SET and SADD, GET, INCR */
        return strcmp(type, "SET") == 0 || strcmp(type, "STRING") == 0;
    }
}

static void
put_with_keys(struct script *s, const char *word, size_t len, const struct value *v)
{
    bool seen = false;

    for (size_t i = 0; i < s->keys.n; i++) {
        if (v->keys[i] && fits(word, s->keys.items[i].type)) {
            put_command(s, word, len, (int)i);
            seen = true;
        }
    }
    if (!seen)
        put_command(s, word, len, COMMAND_KEY_UNSEEN);
}

/* k.ids in a script that does not declare it: nil there, and never called. */
static bool
names_absent_key(const struct look *l, const struct value *v, size_t begin, size_t end)
{
    char name[64];

    if (has_key(v) || end != begin + 3 || !lp_word_is(&l->words.list[begin + 1], "."))
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)l->words.list[begin + 2].len,
             l->words.list[begin + 2].at);
    return lp_is_queue_key(name);
}

/* redis.call(...), the bracket at open. */
static void
note_call(struct look *l, const struct scope *scope, size_t open)
{
    static const char *const keyless[] = {"TIME", "INFO", "PUBLISH", NULL},
                             *const second[] = {"XGROUP", "XINFO", "OBJECT", "MEMORY",
                                                NULL},
                             *const all[] = {"EXISTS", "UNLINK",     "DEL",
                                             "TOUCH",  "RENAME",     "LMOVE",
                                             "XREAD",  "XREADGROUP", NULL};
    size_t begins[ARGS_MAX + 1], n = arguments(l, open, begins);
    struct value commands;

    if (n == 0)
        return;
    commands = value_of(l, scope, begins[0], begins[1] - 1);
    for (size_t i = 0; i < commands.words_n; i++) {
        char word[32] = "";
        struct value keys = {0};
        size_t from = 1, to = 1, len = commands.words[i].len;

        len = len < sizeof(word) - 1 ? len : sizeof(word) - 1;
        memcpy(word, commands.words[i].at, len);
        if (lp_is_in(word, keyless)) {
            put_command(l->script, word, len, COMMAND_KEY_NONE);
            continue;
        }
        from = lp_is_in(word, second) ? 2 : 1;
        to = lp_is_in(word, all) ? n - 1 : from;
        if (from < n)
            keys = value_of(l, scope, begins[from], begins[to + 1] - 1);
        if (from >= n || !names_absent_key(l, &keys, begins[from], begins[to + 1] - 1))
            put_with_keys(l->script, word, len, &keys);
    }
}

/* ---- following ---- */

static void follow(struct look *l, struct scope *scope, size_t begin, size_t end);

/* at: the word behind its name. Of a function that is handed on no argument is known: a
 * parameter is the key of its name. */
static void
enter(struct look *l, const struct scope *caller, const struct function *f, size_t at)
{
    size_t begins[ARGS_MAX + 1];
    bool is_call = lp_word_is(&l->words.list[at], "(");
    size_t n = is_call ? arguments(l, at, begins) : 0;
    struct scope *scope;

    if (l->depth == DEPTH_MAX || ++l->calls > CALLS_MAX)
        lp_die(l->script->path, 1, "more calls of functions than explain can follow");
    scope = lp_must(calloc(1, sizeof(*scope)));
    for (size_t i = 0; is_call && i < f->params_n; i++) {
        struct value v = {0};

        if (i < n)
            v = value_of(l, caller, begins[i], begins[i + 1] - 1);
        bind(l, scope, f->params[i], &v, true);
    }
    if (f->takes_rest && n > f->params_n)
        scope->rest = value_of(l, caller, begins[f->params_n], begins[n] - 1);
    l->depth++;
    follow(l, scope, f->begin, f->end);
    l->depth--;
    free(scope);
}

/* for _, key in ipairs({k.errors, k.results}) do */
static void
bind_loop(const struct look *l, struct scope *scope, size_t i, size_t end)
{
    size_t first = i + 1, in = first;
    struct value v;

    while (in < end && !lp_word_is(&l->words.list[in], "in") &&
           !lp_word_is(&l->words.list[in], "=") && !lp_word_is(&l->words.list[in], "do"))
        in++;
    if (in + 2 >= end || !lp_word_is(&l->words.list[in], "in") ||
        !(lp_word_is(&l->words.list[in + 1], "ipairs") ||
          lp_word_is(&l->words.list[in + 1], "pairs")))
        return;
    v = value_of(l, scope, in + 3, lp_closing(&l->words, in + 2));
    for (; first < in; first++) {
        if (l->words.list[first].kind == NAME)
            bind(l, scope, &l->words.list[first], &v, false);
    }
}

/* The end of the expression that begins at i: a line that does not go on with it. */
static size_t
expression_end(const struct look *l, size_t i, size_t end)
{
    static const char *const joins[] = {"and", "or", "not", NULL};
    size_t begin = i;
    int depth = 0;

    for (; i < end; i++) {
        const struct word *t = &l->words.list[i];

        if (i > begin && t->new_line && depth == 0 && t->kind == NAME &&
            !lp_word_is(t, joins[0]) && !lp_word_is(t, joins[1]) &&
            !lp_word_is(t - 1, joins[0]) && !lp_word_is(t - 1, joins[1]) &&
            !lp_word_is(t - 1, joins[2]) && !lp_word_is(t - 1, ","))
            break;
        depth += lp_word_depth(t);
        if (depth < 0)
            break;
    }
    return i;
}

/* A key under another name: `zset = zsets[name]`. What a function answers is no key. */
static void
bind_names(const struct look *l, struct scope *scope, size_t first, size_t equals,
           size_t end)
{
    size_t to = expression_end(l, equals + 1, end);
    struct value v;

    for (size_t i = equals + 1; i + 1 < to; i++) {
        if (l->words.list[i].kind == NAME && lp_word_is(&l->words.list[i + 1], "("))
            return;
    }
    v = value_of(l, scope, equals + 1, to);
    if (!has_key(&v) && v.words_n == 0)
        return;
    for (; first < equals; first++) {
        if (l->words.list[first].kind == NAME &&
            key_of(l->script, &l->words.list[first]) < 0)
            bind(l, scope, &l->words.list[first], &v, false);
    }
}

static void
follow_assignment(const struct look *l, struct scope *scope, size_t i, size_t end)
{
    size_t first = lp_word_is(&l->words.list[i], "local") ? i + 1 : i, at = first;

    while (at < end &&
           (l->words.list[at].kind == NAME || lp_word_is(&l->words.list[at], ",")))
        at++;
    if (at > first && at + 1 < end && lp_word_is(&l->words.list[at], "=") &&
        !lp_word_is(&l->words.list[at + 1], "="))
        bind_names(l, scope, first, at, end);
}

static void
follow(struct look *l, struct scope *scope, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        const struct word *t = &l->words.list[i];
        const struct function *f = function_at(l, i);

        if (f)
            enter(l, scope, f, i + 1);
        else if (lp_word_is(t, "redis") && i + 3 < end && lp_word_is(t + 1, ".") &&
                 (lp_word_is(t + 2, "call") || lp_word_is(t + 2, "pcall")))
            note_call(l, scope, i + 3);
        else if (lp_word_is(t, "for"))
            bind_loop(l, scope, i, end);
        else if (t->new_line && t->kind == NAME)
            follow_assignment(l, scope, i, end);
    }
}

/* The script's own lines: all that stands in no function. */
void
lp_look(struct script *s)
{
    struct look *l = lp_must(calloc(1, sizeof(*l)));
    struct scope *scope = lp_must(calloc(1, sizeof(*scope)));
    size_t at = 0;

    l->script = s;
    lp_split(&l->words, s->whole.ptr, s->path);
    find_functions(l);
    for (size_t i = 0; i < l->functions_n; i++) {
        const struct function *f = &l->functions[i];

        follow(l, scope, at, (size_t)(f->name - l->words.list) - 2);
        at = f->end;
    }
    follow(l, scope, at, l->words.n);
    free(scope);
    free(l->words.list);
    free(l);
}
