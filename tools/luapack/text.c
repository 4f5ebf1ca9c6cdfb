/* Errors, memory, growing texts, files. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luapack.h"

/* line 0: the error is not about one line */
void
lp_die(const char *path, size_t line, const char *fmt, ...)
{
    va_list ap;

    if (line > 0)
        fprintf(stderr, "%s:%zu: ", path, line);
    else
        fprintf(stderr, "%s: ", path);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

void *
lp_must(void *ptr)
{
    if (!ptr) {
        fputs("luapack: out of memory\n", stderr);
        exit(1);
    }
    return ptr;
}

void
lp_add(struct text *t, const char *bytes, size_t len)
{
    if (t->len + len + 1 > t->cap) {
        t->cap = (t->len + len + 1) * 2;
        t->ptr = lp_must(realloc(t->ptr, t->cap));
    }
    memcpy(t->ptr + t->len, bytes, len);
    t->len += len;
    t->ptr[t->len] = '\0';
}

void
lp_addf(struct text *t, const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(line))
        lp_die("luapack", 0, "a line of more than %zu bytes", sizeof(line));
    lp_add(t, line, (size_t)n);
}

bool
lp_is_in(const char *word, const char *const *words)
{
    for (; *words; words++) {
        if (strcmp(word, *words) == 0)
            return true;
    }
    return false;
}

char *
lp_read_file(const char *path)
{
    struct text t = {0};
    char bytes[4096];
    size_t n;
    FILE *f = fopen(path, "r");

    if (!f)
        return NULL;
    lp_add(&t, "", 0);
    while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
        lp_add(&t, bytes, n);
    if (ferror(f))
        lp_die(path, 0, "cannot be read");
    if (strlen(t.ptr) != t.len || strchr(t.ptr, '\r'))
        lp_die(path, 0, "a NUL or a carriage return in it");
    fclose(f);
    return t.ptr;
}
