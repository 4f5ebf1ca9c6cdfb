/* explain.gen.c: what `weir explain` tells of each script. */
#include <stdio.h>
#include <string.h>

#include "luapack.h"

static void
write_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (; text && *text; text++)
        fprintf(f, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    fputc('"', f);
}

static bool
writes(const char *command)
{
    static const char *const words[] = {
        "HSET",  "HSETNX", "HDEL",    "HINCRBY", "ZADD",       "ZREM",       "ZPOPMIN",
        "LPUSH", "RPUSH",  "LPOP",    "RPOP",    "LREM",       "LSET",       "LTRIM",
        "LMOVE", "SADD",   "SREM",    "SET",     "INCR",       "DEL",        "UNLINK",
        "XADD",  "XDEL",   "XACK",    "XCLAIM",  "XAUTOCLAIM", "XREADGROUP", "XGROUP",
        "XTRIM", "EXPIRE", "PEXPIRE", "RENAME",  "ZINCRBY",    "XSETID",     NULL};

    return lp_is_in(command, words);
}

static void
write_items(FILE *f, const char *what, const char *name, const struct list *list)
{
    fprintf(f, "static const struct cli_explained_item %s_%s[] = {\n", what, name);
    for (size_t i = 0; i < list->n; i++) {
        fputs("    {", f);
        write_text(f, list->items[i].name);
        fputs(", ", f);
        write_text(f, list->items[i].type);
        fputs(", ", f);
        write_text(f, list->items[i].text);
        fputs("},\n", f);
    }
    fputs("    {0},\n};\n", f);
}

static void
write_script(FILE *f, const struct script *s)
{
    char name[96];

    snprintf(name, sizeof(name), "%s_%s", s->folder, s->name);
    write_items(f, "keys", name, &s->keys);
    write_items(f, "moves", name, &s->transitions);
    write_items(f, "answers", name, &s->returns);
    fprintf(f, "static const struct cli_explained_command commands_%s[] = {\n", name);
    for (size_t i = 0; i < s->commands_n; i++)
        fprintf(f, "    {\"%s\", %d, %s},\n", s->commands[i].name, s->commands[i].key,
                writes(s->commands[i].name) ? "true" : "false");
    fputs("    {0},\n};\n\n", f);
}

static void
write_row(FILE *f, const struct script *s)
{
    char name[96];

    snprintf(name, sizeof(name), "%s_%s", s->folder, s->name);
    fprintf(f, "    {\"%s\", \"%s\", &wr_script_%s, ", s->folder, s->name, name);
    write_text(f, s->summary);
    fputs(", ", f);
    write_text(f, s->flags);
    fputs(", ", f);
    write_text(f, s->cost);
    fprintf(f, ", keys_%s, moves_%s, answers_%s, commands_%s},\n", name, name, name,
            name);
}

void
lp_write_explain(const struct script *scripts, size_t n, const char *out_dir)
{
    char path[640];
    FILE *f;
    bool failed;

    snprintf(path, sizeof(path), "%s/explain.gen.c", out_dir);
    f = fopen(path, "w");
    if (!f)
        lp_die(path, 0, "cannot be written");
    fputs("/* Made by tools/luapack from lua/. Do not edit. */\n"
          "#include \"cli/explained.h\"\n\n#include \"store/scripts.gen.h\"\n\n",
          f);
    for (size_t i = 0; i < n; i++)
        write_script(f, &scripts[i]);
    fputs("const struct cli_explained cli_explained[] = {\n", f);
    for (size_t i = 0; i < n; i++)
        write_row(f, &scripts[i]);
    fputs("    {0},\n};\n", f);
    failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed)
        lp_die(path, 0, "cannot be written");
}
