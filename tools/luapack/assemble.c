/*
 * Puts a script together as Redis gets it: the shebang, the name of its engine, what it
 * includes (depth first, each once; the engine's own file before the shared one), the
 * names of its keys and arguments, its body.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "luapack.h"

#define DEPTH_MAX 16
#define INCLUDES_MAX 64

struct include_stack {
    const char *lua_dir, *folder;
    const char *names[DEPTH_MAX];
    size_t depth;
    char done[INCLUDES_MAX][64];
    size_t done_n;
};

static void
die_including(const struct include_stack *stack, const struct script *s, const char *from,
              size_t line, const char *why, const char *name)
{
    fprintf(stderr, "%s:%zu: %s: %s\n", from, line, why, name);
    for (size_t i = stack->depth; i > 0; i--)
        fprintf(stderr, "  in include %s\n", stack->names[i - 1]);
    fprintf(stderr, "  in %s\n", s->path);
    exit(1);
}

static void put_include(struct script *s, struct include_stack *stack, const char *name,
                        const char *from, size_t line);

/* What the file itself includes, and says of its functions. */
static void
put_nested(struct script *s, struct include_stack *stack, const struct source *src)
{
    const char *at = src->text;
    char name[64];

    for (size_t line = 1; *at; line++) {
        if (sscanf(at, "--- @include %63s", name) == 1)
            put_include(s, stack, name, src->path, line);
        if (sscanf(at, "--- @rare %63s", name) == 1 && !lp_declares(src->code, name))
            lp_die(src->path, line, "@rare: no function %s in this file", name);
        else if (strncmp(at, "--- @rare ", 10) == 0)
            lp_addf(&s->rare, " %s", name);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
}

static void
put_include(struct script *s, struct include_stack *stack, const char *name,
            const char *from, size_t line)
{
    char path[640];
    struct source src = {0};

    for (size_t i = 0; i < stack->depth; i++) {
        if (strcmp(stack->names[i], name) == 0)
            die_including(stack, s, from, line, "circular include", name);
    }
    for (size_t i = 0; i < stack->done_n; i++) {
        if (strcmp(stack->done[i], name) == 0)
            return;
    }
    snprintf(path, sizeof(path), "%s/%s/include/%s.lua", stack->lua_dir, stack->folder,
             name);
    if (access(path, R_OK) != 0)
        snprintf(path, sizeof(path), "%s/include/%s.lua", stack->lua_dir, name);
    if (access(path, R_OK) != 0)
        die_including(stack, s, from, line, "no such include", name);
    if (stack->depth == DEPTH_MAX || stack->done_n + stack->depth == INCLUDES_MAX)
        die_including(stack, s, from, line, "includes too deep or too many", name);
    lp_read_source(&src, path);
    stack->names[stack->depth++] = name;
    put_nested(s, stack, &src);
    stack->depth--;
    lp_check_source(&src, s->whole.ptr);
    lp_add(&s->whole, src.bare.ptr, src.bare.len);
    lp_free_source(&src);
    snprintf(stack->done[stack->done_n++], sizeof(stack->done[0]), "%s", name);
}

static void
put_names(struct script *s, const struct list *list, const char *from)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *name = lp_lua_name(list->items[i].name);

        if (!lp_is_name(name))
            lp_die(s->path, list->items[i].line, "%s cannot be the name of a local",
                   name);
        if (lp_declares(s->whole.ptr, name))
            lp_die(s->path, list->items[i].line,
                   "%s is already the name of a key or of something included", name);
    }
    for (size_t i = 0; i < list->n; i++)
        lp_addf(&s->whole, "%s%s", i ? ", " : "local ", lp_lua_name(list->items[i].name));
    for (size_t i = 0; i < list->n; i++)
        lp_addf(&s->whole, "%s%s[%zu]", i ? ", " : " = ", from, i + 1);
    lp_addf(&s->whole, "%s", list->n > 0 ? "\n" : "");
}

/* A script that uses k and does not make it gets a table of all its keys. */
static void
put_table(struct script *s)
{
    s->makes_k = lp_uses(s->src.code, "k") && !lp_declares(s->src.code, "k");
    if (!s->makes_k)
        return;
    for (size_t i = 0; i < s->keys.n; i++)
        lp_addf(&s->whole, "%s%s = %s", i ? ", " : "local k = {", s->keys.items[i].name,
                s->keys.items[i].name);
    lp_addf(&s->whole, "}\n");
}

void
lp_assemble(struct script *s, const char *lua_dir)
{
    struct include_stack stack = {.lua_dir = lua_dir, .folder = s->folder};

    lp_addf(&s->whole, "#!lua%s", s->flags ? " flags=" : "");
    for (const char *p = s->flags; p && *p; p++)
        lp_add(&s->whole, *p == ' ' ? "," : p, 1);
    lp_addf(&s->whole, "\nlocal ENGINE = '%s'\n",
            strcmp(s->folder, "common") == 0 ? "any" : s->folder);
    for (size_t i = 0; i < s->includes.n; i++)
        put_include(s, &stack, s->includes.items[i].name, s->path,
                    s->includes.items[i].line);
    put_names(s, &s->keys, "KEYS");
    put_names(s, &s->args, "ARGV");
    put_table(s);
    if (s->fields.n > 0)
        lp_addf(&s->whole, "local ITEM_FIRST, ITEM_WORDS = %zu, %zu\n", s->args.n + 1,
                s->fields.n);
    lp_check_source(&s->src, s->whole.ptr);
    lp_add(&s->whole, s->src.bare.ptr, s->src.bare.len);
}
