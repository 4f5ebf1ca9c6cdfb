/*
 * luapack: checks lua/ and turns it into C.
 *
 *     luapack LUA_DIR OUT_DIR    writes scripts.gen.c, scripts.gen.h, scripts.md
 *     luapack --check LUA_DIR    writes nothing
 *
 * A script begins with its contract: comment lines with @flags, @transition, @key,
 * @arg, @item, @returns, @answer, @cost, and `--- @include NAME` lines. From it come the
 * names of keys and arguments inside the script (no position is written by hand), the
 * numbers of its keys for C, and a page of documentation. What the contract says and the
 * body does not do is an error: FILE:LINE: why. The first error ends the run, exit 1,
 * before anything is written.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luapack.h"

#define SCRIPTS_MAX 128

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t
find_scripts(const char *lua_dir, const char *folder, struct script *out, size_t max)
{
    char dir[512], *names[SCRIPTS_MAX];
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
        names[n++] = lp_must(strndup(e->d_name, len - 4));
    }
    if (d)
        closedir(d);
    qsort(names, n, sizeof(names[0]), compare_names);
    for (size_t i = 0; i < n; i++) {
        snprintf(out[i].folder, sizeof(out[i].folder), "%s", folder);
        snprintf(out[i].name, sizeof(out[i].name), "%s", names[i]);
        snprintf(out[i].path, sizeof(out[i].path), "%.400s/%s.lua", dir, names[i]);
        if (!lp_is_name(names[i]))
            lp_die(out[i].path, 1, "the name must also be one in C: a-z, 0-9, _");
        free(names[i]);
    }
    return n;
}

static size_t
read_all(struct script *scripts, const char *lua_dir)
{
    static const char *const folders[] = {"common", "list", "stream"};
    char path[640], *law;
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/../src/model/state.h", lua_dir);
    law = lp_read_file(path); /* NULL: a lua/ that stands alone, as those of tests */
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        n += find_scripts(lua_dir, folders[i], scripts + n, SCRIPTS_MAX - n);
    if (n == 0)
        lp_die(lua_dir, 0, "no scripts");
    for (size_t i = 0; i < n; i++) {
        lp_read_script(&scripts[i]);
        lp_assemble(&scripts[i], lua_dir);
        lp_check_script(&scripts[i], law);
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
    if (!check_only)
        lp_write_all(scripts, n, argv[2]);
    return 0;
}
