/* What luapack writes: scripts.gen.h, scripts.gen.c, scripts.md. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "luapack.h"

static FILE *
create(const char *dir, const char *name)
{
    char path[640];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    if (!f)
        lp_die(path, 0, "cannot be written");
    return f;
}

/* A full disk shows here at the latest. */
static void
finish(FILE *f, const char *dir)
{
    bool failed = ferror(f) != 0;

    if (fclose(f) != 0 || failed)
        lp_die(dir, 0, "cannot be written");
}

static void
write_sha1(FILE *f, const struct text *t)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    if (EVP_Digest(t->ptr, t->len, hash, &len, EVP_sha1(), NULL) != 1)
        lp_die("luapack", 0, "no SHA-1 in this OpenSSL");
    for (unsigned i = 0; i < len; i++)
        fprintf(f, "%02x", hash[i]);
}

/* Bytes, not a string literal: C promises only 4095 of those. */
static void
write_body(FILE *f, const struct script *s, const char *name)
{
    fprintf(f, "static const char body_%s[] = {", name);
    for (size_t i = 0; i < s->whole.len; i++)
        fprintf(f, "%s%d,", i % 20 ? "" : "\n    ", (unsigned char)s->whole.ptr[i]);
    fprintf(f, "\n    0};\n");
}

static void
write_c(FILE *f, const struct script *s)
{
    char name[96];

    snprintf(name, sizeof(name), "%s_%s", s->folder, s->name);
    write_body(f, s, name);
    fprintf(f, "static const char *const statuses_%s[] = {", name);
    for (size_t i = 0; i < s->returns.n; i++)
        fprintf(f, "\"%s\", ", s->returns.items[i].name);
    fprintf(f, "NULL};\n");
    if (s->keys.n > 0 && lp_is_of_queue(s)) {
        fprintf(f, "static const unsigned char keys_%s[] = {", name);
        for (size_t i = 0; i < s->keys.n; i++)
            fprintf(f, "WR_QUEUE_KEY_%s, ", s->keys.items[i].name);
        fprintf(f, "};\n");
    }
    fprintf(f,
            "const struct wr_script wr_script_%s = {\n    .name = \"%s/%s\",\n"
            "    .body = body_%s,\n    .body_len = sizeof(body_%s) - 1,\n    .sha1 = \"",
            name, s->folder, s->name, name, name);
    write_sha1(f, &s->whole);
    fprintf(f, "\",\n    .nkeys = %zu,\n", s->keys.n);
    if (s->keys.n > 0 && lp_is_of_queue(s))
        fprintf(f, "    .keys = keys_%s,\n", name);
    fprintf(
        f, "    .nargs = %zu,\n    .repeats = %zu,\n    .statuses = statuses_%s,\n};\n\n",
        s->args.n, s->fields.n, name);
}

static void
write_table(FILE *f, const char *title, const struct list *list, bool typed)
{
    if (list->n == 0)
        return;
    fprintf(f, "%s\n\n", title);
    for (size_t i = 0; i < list->n; i++)
        fprintf(f, "- `%s`%s%s: %s\n", list->items[i].name, typed ? " " : "",
                typed ? list->items[i].type : "", list->items[i].text);
    fprintf(f, "\n");
}

/* A cell of a table: a bar would end it. */
static void
write_cell(FILE *f, const char *text)
{
    fputs("| ", f);
    for (; *text; text++)
        fprintf(f, "%s%c", *text == '|' ? "\\" : "", *text);
    fputc(' ', f);
}

static void
write_moves(FILE *f, const struct script *s, const char *between)
{
    for (size_t i = 0; i < s->transitions.n; i++)
        fprintf(f, "%s%s → %s", i ? between : "", s->transitions.items[i].name,
                s->transitions.items[i].type);
}

static void
write_overview(FILE *f, const struct script *scripts, size_t n)
{
    fprintf(f,
            "| script | what it does | moves | flags | cost |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < n; i++) {
        const struct script *s = &scripts[i];

        fprintf(f, "| [%s/%s](#%s%s) ", s->folder, s->name, s->folder, s->name);
        write_cell(f, s->summary);
        fprintf(f, "| ");
        write_moves(f, s, "<br>");
        fprintf(f, " ");
        write_cell(f, s->flags ? s->flags : "");
        write_cell(f, s->cost ? s->cost : "");
        fprintf(f, "|\n");
    }
    fprintf(f, "\n");
}

static void
write_md(FILE *f, const struct script *s)
{
    fprintf(f, "## %s/%s\n\n%s\n\n", s->folder, s->name, s->summary);
    if (s->transitions.n > 0) {
        fprintf(f, "Moves: ");
        write_moves(f, s, ", ");
        fprintf(f, ". ");
    }
    if (s->flags)
        fprintf(f, "Flags: %s. ", s->flags);
    fprintf(f, "Cost: %s.\n\n", s->cost ? s->cost : "not stated");
    if (s->notes.len > 0)
        fprintf(f, "%s\n", s->notes.ptr);
    write_table(f, "Keys:", &s->keys, true);
    write_table(f, "Arguments:", &s->args, false);
    write_table(f, "Then for each item:", &s->fields, false);
    write_table(f, "First word of the reply:", &s->returns, false);
    write_table(f, "An item may be answered:", &s->answers, false);
}

static const struct script *
find(const struct script *scripts, size_t n, const char *folder, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(scripts[i].folder, folder) == 0 && strcmp(scripts[i].name, name) == 0)
            return &scripts[i];
    }
    return NULL;
}

/* One name, one script of each engine; a common one serves both. */
static void
write_pair(FILE *h, FILE *c, const struct script *scripts, size_t n,
           const struct script *of)
{
    static const char *const engines[] = {"list", "stream"};

    fprintf(h, "extern const struct wr_script *const wr_pair_%s[];\n", of->name);
    fprintf(c, "const struct wr_script *const wr_pair_%s[] = {\n", of->name);
    for (size_t i = 0; i < 2; i++) {
        const struct script *s = find(scripts, n, engines[i], of->name);

        s = s ? s : find(scripts, n, "common", of->name);
        if (s)
            fprintf(c, "    &wr_script_%s_%s,\n", s->folder, s->name);
        else
            fprintf(c, "    NULL,\n");
    }
    fprintf(c, "};\n");
}

/* Each name once. */
static void
write_pairs(FILE *h, FILE *c, const struct script *scripts, size_t n)
{
    fprintf(h,
            "\n/* The script of each engine, by enum wr_engine; NULL: it has none. */\n");
    for (size_t i = 0; i < n; i++) {
        if (find(scripts, i, "list", scripts[i].name) ||
            find(scripts, i, "common", scripts[i].name))
            continue;
        write_pair(h, c, scripts, n, &scripts[i]);
    }
}

void
lp_write_all(const struct script *scripts, size_t n, const char *out_dir)
{
    FILE *h = create(out_dir, "scripts.gen.h"), *c = create(out_dir, "scripts.gen.c"),
         *md = create(out_dir, "scripts.md");

    fprintf(h, "/* Made by tools/luapack from lua/. Do not edit. */\n"
               "#ifndef WR_STORE_SCRIPTS_GEN_H\n#define WR_STORE_SCRIPTS_GEN_H\n\n"
               "#include \"redis/script.h\"\n\n");
    fprintf(c, "/* Made by tools/luapack from lua/. Do not edit. */\n"
               "#include \"store/scripts.gen.h\"\n\n#include \"store/keys.h\"\n\n");
    fprintf(md,
            "# The scripts\n\nMade by tools/luapack from the contracts in `lua/`.\n\n");
    write_overview(md, scripts, n);
    for (size_t i = 0; i < n; i++) {
        fprintf(
            h,
            "/* lua/%s/%s.lua: %s */\nextern const struct wr_script wr_script_%s_%s;\n",
            scripts[i].is_both ? "both" : scripts[i].folder, scripts[i].name,
            scripts[i].summary, scripts[i].folder, scripts[i].name);
        write_c(c, &scripts[i]);
        write_md(md, &scripts[i]);
    }
    write_pairs(h, c, scripts, n);
    fprintf(h, "\nextern const struct wr_script *const wr_scripts[];\n"
               "extern const size_t wr_scripts_count;\n\n#endif\n");
    fprintf(c, "const struct wr_script *const wr_scripts[] = {\n");
    for (size_t i = 0; i < n; i++)
        fprintf(c, "    &wr_script_%s_%s,\n", scripts[i].folder, scripts[i].name);
    fprintf(c, "};\nconst size_t wr_scripts_count = %zu;\n", n);
    finish(h, out_dir);
    finish(c, out_dir);
    finish(md, out_dir);
}
