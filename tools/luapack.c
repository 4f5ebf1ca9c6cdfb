/*
 * luapack: checks lua/ and turns it into C.
 *
 *     luapack LUA_DIR OUT_DIR    writes scripts.gen.c, scripts.gen.h, scripts.md
 *
 * A script begins with its contract: comment lines with @flags, @transition, @key,
 * @arg, @item, @returns, @answer, @cost, and `--- @include NAME` lines. From it come the
 * names of keys and arguments inside the script (no position is written by hand), the
 * numbers of its keys for C, and a page of documentation. What the contract says and the
 * body does not do is an error: FILE:LINE: why.
 */
#include <ctype.h>
#include <dirent.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 128
#define DEPTH_MAX 16

struct item {
    char *name, *type, *text;
    int line;
};

struct list {
    struct item items[LIST_MAX];
    size_t n;
};

struct text {
    char *ptr;
    size_t len, cap;
};

struct script {
    char folder[16], name[64], path[512];
    char *summary, *flags, *cost;
    struct list keys, args, fields, returns, answers, transitions, includes;
    struct text notes; /* free prose of the header */
    struct text body;  /* without comments, includes not yet put in */
    struct text whole; /* as Redis gets it */
};

/* The keys a script may declare, by the names of docs/keys.md. Those of the second list
 * belong to no queue. */
static const char *const queue_keys[] = {
    "ready",   "tombs", "stream", "ids",    "processing",        "delayed",
    "dead",    "kept",  "jobs",   "state",  "results",           "errors",
    "log",     "stats", "claims", "config", "producers",         "unique",
    "windows", "wake",  "due",    "lock",   "heartbeat_promote", "heartbeat_reclaim",
    NULL};
static const char *const other_keys[] = {"queues", "workers", "worker", "hint", NULL};
static const char *const key_types[] = {"LIST", "HASH",   "ZSET", "STRING",
                                        "SET",  "STREAM", NULL};
static const char *const states[] = {"none", "ready",     "delayed", "processing", "dead",
                                     "done", "cancelled", "expired", NULL};
static const char *const flags_known[] = {"allow-oom", "no-writes", "allow-stale", NULL};

static const char *lua_dir;
static char *law; /* src/model/state.h, for its table of transitions; NULL: not there */

static void die(const char *path, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
static void
addf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
die(const char *path, int line, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%s:%d: ", path, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static void *
must(void *ptr)
{
    if (!ptr) {
        fputs("luapack: out of memory\n", stderr);
        exit(1);
    }
    return ptr;
}

static void
add(struct text *t, const char *bytes, size_t len)
{
    if (t->len + len + 1 > t->cap) {
        t->cap = (t->len + len + 1) * 2;
        t->ptr = must(realloc(t->ptr, t->cap));
    }
    memcpy(t->ptr + t->len, bytes, len);
    t->len += len;
    t->ptr[t->len] = '\0';
}

static void
addf(struct text *t, const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(line))
        die("luapack", 0, "a line of more than %zu bytes", sizeof(line));
    add(t, line, (size_t)n);
}

static bool
is_in(const char *word, const char *const *words)
{
    for (; *words; words++) {
        if (strcmp(word, *words) == 0)
            return true;
    }
    return false;
}

static char *
read_file(const char *path)
{
    struct text t = {0};
    char bytes[4096];
    size_t n;
    FILE *f = fopen(path, "r");

    if (!f)
        return NULL;
    add(&t, "", 0);
    while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
        add(&t, bytes, n);
    fclose(f);
    return t.ptr;
}

/* ---- the contract ---- */

static void
put(struct script *s, struct list *list, const char *rest, bool typed, int line)
{
    char name[64] = "", type[64] = "";
    int used = 0;
    struct item *item;

    int words;

    if (list->n == LIST_MAX)
        die(s->path, line, "more than %d of a kind", LIST_MAX);
    words = typed ? sscanf(rest, "%63s %63s %n", name, type, &used)
                  : sscanf(rest, "%63s %n", name, &used);
    if (words < 1)
        die(s->path, line, "a tag without a name");
    for (size_t i = 0; i < list->n; i++) {
        if (list != &s->transitions && strcmp(list->items[i].name, name) == 0)
            die(s->path, line, "%s is named twice", name);
    }
    item = &list->items[list->n++];
    item->name = must(strdup(name));
    item->type = must(strdup(type));
    item->text = must(strdup(rest + used));
    item->line = line;
}

static void
put_transition(struct script *s, const char *rest, int line)
{
    char from[32], to[32];

    if (sscanf(rest, "%31s -> %31s", from, to) != 2 || !is_in(from, states) ||
        !is_in(to, states))
        die(s->path, line, "@transition wants STATE -> STATE, both known: %s", rest);
    put(s, &s->transitions, from, false, line);
    s->transitions.items[s->transitions.n - 1].type = must(strdup(to));
}

static void
put_flags(struct script *s, const char *rest, int line)
{
    char copy[128], *word, *save = NULL;

    snprintf(copy, sizeof(copy), "%s", rest);
    for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (!is_in(word, flags_known))
            die(s->path, line, "@flags: %s is not known", word);
    }
    s->flags = must(strdup(rest));
}

static void
read_tag(struct script *s, const char *tag, int line)
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
            put(s, lists[i].list, tag + len, lists[i].typed, line);
            return;
        }
    }
    if (strncmp(tag, "transition ", 11) == 0)
        put_transition(s, tag + 11, line);
    else if (strncmp(tag, "flags ", 6) == 0)
        put_flags(s, tag + 6, line);
    else if (strncmp(tag, "cost ", 5) == 0)
        s->cost = must(strdup(tag + 5));
    else
        die(s->path, line, "unknown tag @%s", tag);
}

static void
read_first_line(struct script *s, const char *text)
{
    size_t len = strlen(s->name);

    if (strncmp(text, "--- ", 4) != 0 || strncmp(text + 4, s->name, len) != 0 ||
        strncmp(text + 4 + len, ": ", 2) != 0)
        die(s->path, 1, "the first line must be \"--- %s: what it does\"", s->name);
    s->summary = must(strdup(text + 6 + len));
}

static void
read_line(struct script *s, char *text, int line)
{
    char *start = text + strspn(text, " \t");

    if (line == 1)
        read_first_line(s, text);
    else if (strncmp(text, "--- @include ", 13) == 0)
        put(s, &s->includes, text + 13, false, line);
    else if (strncmp(text, "-- @", 4) == 0)
        read_tag(s, text + 4, line);
    else if (strncmp(text, "-- ", 3) == 0 && s->body.len == 0)
        addf(&s->notes, "%s\n", text + 3);
    else if (*start != '\0' && strncmp(start, "--", 2) != 0)
        addf(&s->body, "%s\n", text);
}

static void
read_script(struct script *s)
{
    char *text = read_file(s->path), *at = text;

    if (!text)
        die(s->path, 0, "cannot be read");
    add(&s->body, "", 0);
    add(&s->notes, "", 0);
    for (int line = 1; *at; line++) {
        size_t len = strcspn(at, "\n");
        bool last = at[len] == '\0';

        at[len] = '\0';
        read_line(s, at, line);
        at += len + !last;
    }
    free(text);
}

/* ---- includes ---- */

struct include_stack {
    const char *names[DEPTH_MAX];
    size_t depth;
    char done[64][64];
    size_t done_n;
};

static void
print_stack(const struct include_stack *stack)
{
    for (size_t i = 0; i < stack->depth; i++)
        fprintf(stderr, "  included by %s\n", stack->names[i]);
}

static void put_include(struct script *s, struct include_stack *stack, const char *name,
                        const char *from, int line);

static void
put_include_text(struct script *s, struct include_stack *stack, const char *path,
                 char *text)
{
    struct text body = {0};
    char *at = text;

    add(&body, "", 0);
    for (int line = 1; *at; line++) {
        size_t len = strcspn(at, "\n");
        bool last = at[len] == '\0';
        char *start;

        at[len] = '\0';
        start = at + strspn(at, " \t");
        if (strncmp(at, "--- @include ", 13) == 0)
            put_include(s, stack, at + 13, path, line);
        else if (*start != '\0' && strncmp(start, "--", 2) != 0)
            addf(&body, "%s\n", at);
        at += len + !last;
    }
    add(&s->whole, body.ptr, body.len);
    free(body.ptr);
}

static void
put_include(struct script *s, struct include_stack *stack, const char *name,
            const char *from, int line)
{
    char path[640];
    char *text;

    for (size_t i = 0; i < stack->depth; i++) {
        if (strcmp(stack->names[i], name) == 0) {
            print_stack(stack);
            die(from, line, "%s includes itself", name);
        }
    }
    for (size_t i = 0; i < stack->done_n; i++) {
        if (strcmp(stack->done[i], name) == 0)
            return;
    }
    snprintf(path, sizeof(path), "%s/include/%s.lua", lua_dir, name);
    text = read_file(path);
    if (!text) {
        print_stack(stack);
        die(from, line, "no include %s", name);
    }
    if (stack->depth == DEPTH_MAX || stack->done_n == 64)
        die(from, line, "includes too deep or too many");
    stack->names[stack->depth++] = name;
    put_include_text(s, stack, path, text);
    stack->depth--;
    snprintf(stack->done[stack->done_n++], 64, "%s", name);
    free(text);
}

static const char *
lua_name(const char *name)
{
    return strcmp(name, "now") == 0 ? "now_arg" : name;
}

static void
put_names(struct script *s, const struct list *list, const char *from)
{
    if (list->n == 0)
        return;
    addf(&s->whole, "local ");
    for (size_t i = 0; i < list->n; i++)
        addf(&s->whole, "%s%s", i ? ", " : "", lua_name(list->items[i].name));
    addf(&s->whole, " = ");
    for (size_t i = 0; i < list->n; i++)
        addf(&s->whole, "%s%s[%zu]", i ? ", " : "", from, i + 1);
    addf(&s->whole, "\n");
}

static void
assemble(struct script *s)
{
    struct include_stack stack = {0};

    addf(&s->whole, "#!lua");
    if (s->flags)
        addf(&s->whole, " flags=");
    for (const char *p = s->flags; p && *p; p++)
        add(&s->whole, *p == ' ' ? "," : p, 1);
    addf(&s->whole, "\n");
    for (size_t i = 0; i < s->includes.n; i++)
        put_include(s, &stack, s->includes.items[i].name, s->path,
                    s->includes.items[i].line);
    put_names(s, &s->keys, "KEYS");
    put_names(s, &s->args, "ARGV");
    if (s->fields.n > 0)
        addf(&s->whole, "local ITEM_FIRST, ITEM_WORDS = %zu, %zu\n", s->args.n + 1,
             s->fields.n);
    add(&s->whole, s->body.ptr, s->body.len);
}

/* ---- checks ---- */

static bool
has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        bool before = at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool after = isalnum((unsigned char)at[len]) || at[len] == '_';

        if (!before && !after)
            return true;
    }
    return false;
}

static bool
has_quoted(const char *text, const char *word)
{
    char quoted[80];

    snprintf(quoted, sizeof(quoted), "'%s'", word);
    return strstr(text, quoted) != NULL;
}

static void
check_keys(const struct script *s)
{
    for (size_t i = 0; i < s->keys.n; i++) {
        const struct item *k = &s->keys.items[i];

        if (!is_in(k->name, queue_keys) && !is_in(k->name, other_keys))
            die(s->path, k->line, "key %s is not one of docs/keys.md", k->name);
        if (!is_in(k->type, key_types))
            die(s->path, k->line, "key %s: %s is no type", k->name, k->type);
        if (!has_word(s->body.ptr, k->name))
            die(s->path, k->line, "key %s is declared and not used", k->name);
        for (size_t a = 0; a < s->args.n; a++) {
            if (strcmp(s->args.items[a].name, k->name) == 0)
                die(s->path, k->line, "%s is a key and an argument", k->name);
        }
    }
    for (size_t i = 0; i < s->args.n; i++) {
        const struct item *a = &s->args.items[i];

        if (!has_word(s->body.ptr, lua_name(a->name)))
            die(s->path, a->line, "argument %s is declared and not used", a->name);
    }
}

static void
check_words(const struct script *s)
{
    const char *at = s->body.ptr;
    char word[64];

    if (s->returns.n == 0)
        die(s->path, 1, "no @returns");
    for (size_t i = 0; i < s->returns.n + s->answers.n; i++) {
        const struct item *w = i < s->returns.n ? &s->returns.items[i]
                                                : &s->answers.items[i - s->returns.n];

        if (!has_quoted(s->whole.ptr, w->name))
            die(s->path, w->line, "%s is promised and never answered", w->name);
    }
    while ((at = strstr(at, "return {'")) != NULL) {
        bool known = false;

        at += 9;
        if (sscanf(at, "%63[A-Z]", word) != 1)
            continue;
        for (size_t i = 0; i < s->returns.n; i++)
            known = known || strcmp(s->returns.items[i].name, word) == 0;
        if (!known)
            die(s->path, 1, "%s is answered and not promised by @returns", word);
    }
}

static void
check_body(const struct script *s)
{
    static const char *const forbidden[] = {
        "KEYS[", "ARGV[1]", "redis.pcall", "math.random", "redis.error_reply", NULL};

    for (size_t i = 0; forbidden[i]; i++) {
        if (strstr(s->body.ptr, forbidden[i]))
            die(s->path, 1, "%s must not be used here", forbidden[i]);
    }
    if (s->keys.n + s->args.n > 100)
        die(s->path, 1, "more than 100 keys and arguments");
}

/* The rows X(ACK, PROCESSING, DONE) of src/model/state.h must be the @transition lines.
 */
static void
check_law(const struct script *s)
{
    char upper[64], row[160], prefix[80];
    size_t rows = 0;

    if (!law || strcmp(s->folder, "common") == 0 || s->transitions.n == 0)
        return;
    snprintf(upper, sizeof(upper), "%s", s->name);
    for (char *p = upper; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    for (size_t i = 0; i < s->transitions.n; i++) {
        const struct item *t = &s->transitions.items[i];

        snprintf(row, sizeof(row), "X(%s, %s, %s)", upper, t->name, t->type);
        for (char *p = row; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        if (!strstr(law, row))
            die(s->path, t->line, "src/model/state.h has no row %s", row);
    }
    snprintf(prefix, sizeof(prefix), "X(%s, ", upper);
    for (const char *at = law; (at = strstr(at, prefix)) != NULL; at++)
        rows++;
    if (rows != s->transitions.n)
        die(s->path, 1, "src/model/state.h has %zu rows of %s, the contract %zu", rows,
            upper, s->transitions.n);
}

/* ---- output ---- */

static FILE *
create(const char *dir, const char *name)
{
    char path[640];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    if (!f)
        die(path, 0, "cannot be written");
    return f;
}

static void
write_sha1(FILE *f, const struct text *t)
{
    unsigned char hash[SHA_DIGEST_LENGTH];

    SHA1((const unsigned char *)t->ptr, t->len, hash);
    for (size_t i = 0; i < sizeof(hash); i++)
        fprintf(f, "%02x", hash[i]);
}

static bool
is_of_queue(const struct script *s)
{
    for (size_t i = 0; i < s->keys.n; i++) {
        if (!is_in(s->keys.items[i].name, queue_keys))
            return false;
    }
    return true;
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
    if (is_of_queue(s)) {
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
    if (is_of_queue(s))
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

static void
write_md(FILE *f, const struct script *s)
{
    fprintf(f, "## %s/%s\n\n%s%s\n\n", s->folder, s->name, s->summary,
            s->flags ? " (runs on a full Redis)" : "");
    if (s->transitions.n > 0) {
        fprintf(f, "Moves:");
        for (size_t i = 0; i < s->transitions.n; i++)
            fprintf(f, "%s %s → %s", i ? "," : "", s->transitions.items[i].name,
                    s->transitions.items[i].type);
        fprintf(f, ". ");
    }
    fprintf(f, "Cost: %s.\n\n", s->cost ? s->cost : "not stated");
    if (s->notes.len > 0)
        fprintf(f, "%s\n", s->notes.ptr);
    write_table(f, "Keys:", &s->keys, true);
    write_table(f, "Arguments:", &s->args, false);
    write_table(f, "Then for each item:", &s->fields, false);
    write_table(f, "First word of the reply:", &s->returns, false);
    write_table(f, "An item may be answered:", &s->answers, false);
}

static void
write_all(const struct script *scripts, size_t n, const char *out_dir)
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
    for (size_t i = 0; i < n; i++) {
        fprintf(
            h,
            "/* lua/%s/%s.lua: %s */\nextern const struct wr_script wr_script_%s_%s;\n",
            scripts[i].folder, scripts[i].name, scripts[i].summary, scripts[i].folder,
            scripts[i].name);
        write_c(c, &scripts[i]);
        write_md(md, &scripts[i]);
    }
    fprintf(h, "\nextern const struct wr_script *const wr_scripts[];\n"
               "extern const size_t wr_scripts_count;\n\n#endif\n");
    fprintf(c, "const struct wr_script *const wr_scripts[] = {\n");
    for (size_t i = 0; i < n; i++)
        fprintf(c, "    &wr_script_%s_%s,\n", scripts[i].folder, scripts[i].name);
    fprintf(c, "};\nconst size_t wr_scripts_count = %zu;\n", n);
    if (fclose(h) != 0 || fclose(c) != 0 || fclose(md) != 0)
        die(out_dir, 0, "cannot be written");
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t
find_scripts(const char *folder, struct script *out, size_t max)
{
    char dir[512], *names[128];
    size_t n = 0;
    struct dirent *e;
    DIR *d;

    snprintf(dir, sizeof(dir), "%s/%s", lua_dir, folder);
    d = opendir(dir);
    while (d && (e = readdir(d)) != NULL) {
        size_t len = strlen(e->d_name);

        if (n < 128 && len > 4 && len < 64 && strcmp(e->d_name + len - 4, ".lua") == 0)
            names[n++] = must(strdup(e->d_name));
    }
    if (d)
        closedir(d);
    if (n > max)
        die(dir, 0, "more than %zu scripts", max);
    qsort(names, n, sizeof(names[0]), compare_names);
    for (size_t i = 0; i < n; i++) {
        snprintf(out[i].folder, sizeof(out[i].folder), "%s", folder);
        snprintf(out[i].name, sizeof(out[i].name), "%.*s", (int)(strlen(names[i]) - 4),
                 names[i]);
        snprintf(out[i].path, sizeof(out[i].path), "%.400s/%.80s", dir, names[i]);
        free(names[i]);
    }
    return n;
}

int
main(int argc, char **argv)
{
    static const char *const folders[] = {"common", "list", "stream"};
    static struct script scripts[128];
    char path[640];
    size_t n = 0;

    if (argc != 3) {
        fputs("usage: luapack LUA_DIR OUT_DIR\n", stderr);
        return 64;
    }
    lua_dir = argv[1];
    snprintf(path, sizeof(path), "%s/../src/model/state.h", lua_dir);
    law = read_file(path);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        n += find_scripts(folders[i], scripts + n, 128 - n);
    if (n == 0)
        die(lua_dir, 0, "no scripts");
    for (size_t i = 0; i < n; i++) {
        read_script(&scripts[i]);
        assemble(&scripts[i]);
        check_keys(&scripts[i]);
        check_words(&scripts[i]);
        check_body(&scripts[i]);
        check_law(&scripts[i]);
    }
    write_all(scripts, n, argv[2]);
    return 0;
}
