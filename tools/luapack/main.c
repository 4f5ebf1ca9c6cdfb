/*
 * luapack: checks lua/ and turns it into C.
 *
 *     luapack LUA_DIR OUT_DIR    writes scripts.gen.[ch], explain.gen.c, scripts.md
 *     luapack --check LUA_DIR    writes nothing
 *
 * A script begins with its contract: comment lines with @flags, @transition, @key,
 * @arg, @item, @returns, @answer, @cost, and `--- @include NAME` lines. From it come the
 * names of keys and arguments inside the script (no position is written by hand), the
 * numbers of its keys for C, and a page of documentation. What the contract says and the
 * body does not do is an error: FILE:LINE: why. The first error ends the run, exit 1,
 * before anything is written.
 *
 * lua/list and lua/stream hold the scripts of one engine, lua/common those that look at
 * nothing in which engines differ, lua/both those that are built once for each engine:
 * what they include is looked for in lua/ENGINE/include first, and a @key or @transition
 * of one engine alone says so: "@key list:ready LIST ...".
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luapack.h"

#define SCRIPTS_MAX 128

/* Those of lua/FOLDER, for this engine. */
static size_t
find_scripts(const char *lua_dir, const char *folder, const char *engine,
             struct script *out, size_t max)
{
    char dir[512];
    size_t n = 0;
    struct dirent *e;
    DIR *d;

    snprintf(dir, sizeof(dir), "%s/%s", lua_dir, folder);
    d = opendir(dir);
    while (d && (e = readdir(d)) != NULL) {
        size_t len = strlen(e->d_name);

        if (len <= 4 || strcmp(e->d_name + len - 4, ".lua") != 0)
            continue;
        if (n == max || len >= sizeof(out->name))
            lp_die(dir, 0, "too many scripts, or too long a name: %s", e->d_name);
        snprintf(out[n].folder, sizeof(out[n].folder), "%s", engine);
        snprintf(out[n].name, sizeof(out[n].name), "%.*s", (int)(len - 4), e->d_name);
        snprintf(out[n].path, sizeof(out[n].path), "%.400s/%s.lua", dir, out[n].name);
        out[n].is_both = strcmp(folder, engine) != 0;
        if (!lp_is_name(out[n].name))
            lp_die(out[n].path, 1, "the name must also be one in C: a-z, 0-9, _");
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

static int
compare_scripts(const void *a, const void *b)
{
    return strcmp(((const struct script *)a)->name, ((const struct script *)b)->name);
}

/* An engine's own and those of lua/both/, by name. */
static size_t
find_engine(const char *lua_dir, const char *engine, struct script *out, size_t max)
{
    size_t n = find_scripts(lua_dir, engine, engine, out, max);

    if (strcmp(engine, "common") != 0)
        n += find_scripts(lua_dir, "both", engine, out + n, max - n);
    qsort(out, n, sizeof(*out), compare_scripts);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(out[i - 1].name, out[i].name) == 0)
            lp_die(out[i].path, 1, "there is also %s", out[i - 1].path);
    }
    return n;
}

static size_t
read_all(struct script *scripts, const char *lua_dir)
{
    static const char *const engines[] = {"common", "list", "stream"};
    char path[640], *law;
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/../src/model/state.h", lua_dir);
    law = lp_read_file(path); /* NULL: a lua/ that stands alone, as those of tests */
    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
        n += find_engine(lua_dir, engines[i], scripts + n, SCRIPTS_MAX - n);
    if (n == 0)
        lp_die(lua_dir, 0, "no scripts");
    for (size_t i = 0; i < n; i++) {
        lp_read_script(&scripts[i]);
        lp_assemble(&scripts[i], lua_dir);
        lp_check_script(&scripts[i], law);
        lp_look(&scripts[i]);
        lp_prune(&scripts[i]);
    }
    free(law);
    return n;
}

int
main(int argc, char **argv)
{
    static struct script scripts[SCRIPTS_MAX];
    bool check_only;
    size_t n;

    if (argc != 3) {
        fputs("usage: luapack LUA_DIR OUT_DIR\n       luapack --check LUA_DIR\n", stderr);
        return 64;
    }
    check_only = strcmp(argv[1], "--check") == 0;
    n = read_all(scripts, check_only ? argv[2] : argv[1]);
    if (!check_only) {
        lp_write_all(scripts, n, argv[2]);
        lp_write_explain(scripts, n, argv[2]);
    }
    return 0;
}
