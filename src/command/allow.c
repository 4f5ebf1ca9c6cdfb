#include "command/allow.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define ENV_DEFAULT "LANG, LC_*, TZ"
#define PATTERNS_MAX 256
#define GLOB_CHARS "*?[\\"

struct patterns {
    char *text; /* the list, cut at its commas */
    char *list[PATTERNS_MAX];
    size_t n;
};

struct wr_allow {
    struct patterns commands, env, cwd;
    char *path;
};

/* ---- making ---- */

static bool
has_dots(const char *path)
{
    for (const char *p = strstr(path, ".."); p; p = strstr(p + 1, "..")) {
        if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == '\0'))
            return true;
    }
    return false;
}

static enum weir_err
split(const char *text, struct patterns *out, struct weir_error *err)
{
    char *rest = NULL;

    out->text = strdup(text);
    if (!out->text)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "patterns");
    for (char *p = strtok_r(out->text, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
        size_t len;

        p += strspn(p, " \t");
        for (len = strlen(p); len > 0 && strchr(" \t", p[len - 1]); len--)
            p[len - 1] = '\0';
        if (len == 0)
            continue;
        if (out->n == PATTERNS_MAX)
            return wr_fail(err, WEIR_E_CONFIG, 0, "more than %d patterns", PATTERNS_MAX);
        out->list[out->n++] = p;
    }
    return WEIR_OK;
}

/* Absolute, without ".."; or, for programs, a name or *. */
static enum weir_err
check_paths(const struct patterns *all, const char *what, bool names,
            struct weir_error *err)
{
    for (size_t i = 0; i < all->n; i++) {
        const char *p = all->list[i];
        bool good = *p == '/' || strcmp(p, "*") == 0 ||
                    (names && !strpbrk(p, "/" GLOB_CHARS));

        if (!good || has_dots(p))
            return wr_fail(err, WEIR_E_CONFIG, 0,
                           "%s: \"%.80s\" is neither a pattern of absolute paths without "
                           "\"..\"%s nor *",
                           what, p, names ? " nor a name" : "");
    }
    return WEIR_OK;
}

enum weir_err
wr_allow_new(const char *commands, const char *env, const char *cwd, const char *path,
             struct wr_allow **out, struct weir_error *err)
{
    struct wr_allow *a = calloc(1, sizeof(*a));
    enum weir_err rc = WEIR_OK;

    *out = NULL;
    if (!a)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "patterns");
    a->path = strdup(path);
    if (!a->path)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "patterns");
    if (rc == WEIR_OK)
        rc = split(commands, &a->commands, err);
    if (rc == WEIR_OK)
        rc = split(env ? env : ENV_DEFAULT, &a->env, err);
    if (rc == WEIR_OK)
        rc = split(cwd ? cwd : "", &a->cwd, err);
    if (rc == WEIR_OK)
        rc = check_paths(&a->commands, "allowed command", true, err);
    if (rc == WEIR_OK)
        rc = check_paths(&a->cwd, "allowed folder", false, err);
    if (rc == WEIR_OK && a->commands.n == 0)
        rc = wr_fail(err, WEIR_E_CONFIG, 0, "allowed commands: none are named");
    if (rc != WEIR_OK) {
        wr_allow_free(a);
        return rc;
    }
    *out = a;
    return WEIR_OK;
}

void
wr_allow_free(struct wr_allow *a)
{
    if (!a)
        return;
    free(a->commands.text);
    free(a->env.text);
    free(a->cwd.text);
    free(a->path);
    free(a);
}

/* ---- asking ---- */

static enum wr_allow_verdict
answer_with(struct wr_allow_answer *a, enum wr_allow_verdict verdict, const char *fmt,
            ...) WEIR_PRINTF(3, 4);

static enum wr_allow_verdict
answer_with(struct wr_allow_answer *a, enum wr_allow_verdict verdict, const char *fmt,
            ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->why, sizeof(a->why), fmt, ap);
    va_end(ap);
    return verdict;
}

static const char *
base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool
wr_allow_find(const char *path, const char *name, char out[PATH_MAX])
{
    char whole[PATH_MAX];
    bool found = false;

    while (*path) {
        size_t len = strcspn(path, ":");
        struct stat st;

        if (*path == '/' &&
            snprintf(whole, sizeof(whole), "%.*s/%s", (int)len, path, name) <
                (int)sizeof(whole) &&
            stat(whole, &st) == 0 && S_ISREG(st.st_mode)) {
            bool runs = faccessat(AT_FDCWD, whole, X_OK, AT_EACCESS) == 0;

            if (runs || !found)
                memcpy(out, whole, sizeof(whole));
            found = true;
            if (runs)
                return true;
        }
        path += len + (path[len] == ':');
    }
    return found;
}

/* The pattern with links resolved in the part before the first component that has a
 * character of a pattern: where /bin is a link to /usr/bin, a pattern of /bin means what
 * is there. */
static bool
resolve_pattern(const char *pattern, char out[PATH_MAX])
{
    size_t len = strcspn(pattern, GLOB_CHARS), used;
    char head[PATH_MAX];

    if (pattern[len] == '\0')
        return realpath(pattern, out) != NULL;
    while (len > 1 && pattern[len - 1] != '/')
        len--;
    if (len >= sizeof(head))
        return false;
    memcpy(head, pattern, len);
    head[len] = '\0';
    if (!realpath(head, out))
        return false;
    used = strcmp(out, "/") == 0 ? 0 : strlen(out);
    return snprintf(out + used, PATH_MAX - used, "/%s", pattern + len) <
           (int)(PATH_MAX - used);
}

static bool
fits(const char *pattern, const char *path)
{
    return fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0;
}

/* named: as the job named it, file: where that leads. */
static bool
command_fits(const struct wr_allow *a, const char *pattern, const char *named,
             const char *file)
{
    char at[PATH_MAX], real[PATH_MAX];
    bool own_name = strcmp(base_of(named), base_of(file)) == 0;

    if (*pattern != '/') /* a name */
        return strcmp(base_of(named), pattern) == 0 &&
               wr_allow_find(a->path, pattern, at) && realpath(at, real) &&
               strcmp(real, file) == 0;
    if (!resolve_pattern(pattern, real))
        return false;
    /* A program of many names, as busybox, is allowed under the one that the rule says.
     */
    if (!strpbrk(pattern, GLOB_CHARS))
        return strcmp(real, file) == 0 && strcmp(base_of(named), base_of(pattern)) == 0;
    return fits(real, file) && (own_name || fits(real, named) || fits(pattern, named));
}

/* Who may write a folder of the path puts another program in the place of this one; above
 * the last folder a sticky one, as /tmp, protects what others have there. */
static enum wr_allow_verdict
check_owner(const char *file, struct wr_allow_answer *out)
{
    char folder[PATH_MAX];
    size_t len = (size_t)(base_of(file) - file);
    bool last = true;
    struct stat st;

    if (stat(file, &st) == 0 && (st.st_mode & S_IWOTH))
        return answer_with(out, WR_ALLOW_NO,
                           "not allowed: everybody may write the program %.200s", file);
    for (; len > 0; last = false) {
        snprintf(folder, sizeof(folder), "%.*s", (int)len, file);
        if (stat(folder, &st) == 0 && (st.st_mode & S_IWOTH) &&
            (last || !(st.st_mode & S_ISVTX)))
            return answer_with(out, WR_ALLOW_NO,
                               "not allowed: everybody may write %s folder of the "
                               "program %.200s",
                               last ? "the" : "a", file);
        for (len--; len > 0 && file[len - 1] != '/'; len--)
            continue;
    }
    return WR_ALLOW_YES;
}

static enum wr_allow_verdict
check_rules(const struct wr_allow *a, const char *named, struct wr_allow_answer *out)
{
    for (size_t i = 0; i < a->commands.n; i++) {
        if (strcmp(a->commands.list[i], "*") == 0)
            return WR_ALLOW_YES;
    }
    for (size_t i = 0; i < a->commands.n; i++) {
        if (command_fits(a, a->commands.list[i], named, out->file))
            return check_owner(out->file, out);
    }
    if (strcmp(base_of(named), base_of(out->file)) != 0)
        return answer_with(out, WR_ALLOW_NO,
                           "not allowed: %.100s, which is %.150s, fits no pattern of "
                           "allow_command_jobs",
                           named, out->file);
    return answer_with(out, WR_ALLOW_NO,
                       "not allowed: %.200s fits no pattern of allow_command_jobs",
                       out->file);
}

/* Finds the file, and whether it may be run. */
static enum wr_allow_verdict
check_program(const struct wr_allow *a, const char *given, struct wr_allow_answer *out)
{
    char named[PATH_MAX];
    struct stat st;

    if (strchr(given, '/') && *given != '/')
        return answer_with(out, WR_ALLOW_NO,
                           "not allowed: %.100s is a relative path: give a name or an "
                           "absolute one (allow_command_jobs)",
                           given);
    if (has_dots(given))
        return answer_with(out, WR_ALLOW_NO,
                           "not allowed: a path with \"..\": %.150s (allow_command_jobs)",
                           given);
    out->missing = true;
    if (strlen(given) >= sizeof(named))
        return answer_with(out, WR_ALLOW_NO, "not allowed: a path of %zu bytes",
                           strlen(given));
    snprintf(named, sizeof(named), "%s", given);
    if (*given != '/' && !wr_allow_find(a->path, given, named))
        return answer_with(out, WR_ALLOW_MISSING, "cannot run %.200s: %s", given,
                           strerror(ENOENT));
    if (!realpath(named, out->file)) {
        out->missing = errno == ENOENT || errno == ENOTDIR;
        return answer_with(out, WR_ALLOW_MISSING, "cannot run %.200s: %s", given,
                           strerror(errno));
    }
    out->missing = false;
    if (stat(out->file, &st) != 0 || !S_ISREG(st.st_mode))
        return answer_with(out, WR_ALLOW_NO, "not allowed: %.200s is no program",
                           out->file);
    return check_rules(a, named, out);
}

static enum wr_allow_verdict
check_env(const struct wr_allow *a, const struct wr_command *c,
          struct wr_allow_answer *out)
{
    for (size_t i = 0; i < c->envc; i++) {
        char name[256];
        bool good = false;

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(c->env[i], "="), c->env[i]);
        for (size_t j = 0; j < a->env.n && strlen(name) < sizeof(name) - 1; j++)
            good = good || fnmatch(a->env.list[j], name, 0) == 0;
        if (!good || strncmp(name, "WEIR_", 5) == 0)
            return answer_with(out, WR_ALLOW_NO,
                               "not allowed: the variable %.100s fits no pattern of "
                               "allow_command_env",
                               name);
    }
    return WR_ALLOW_YES;
}

static enum wr_allow_verdict
check_cwd(const struct wr_allow *a, const char *cwd, struct wr_allow_answer *out)
{
    char real[PATH_MAX];

    out->cwd[0] = '\0';
    if (!cwd)
        return WR_ALLOW_YES;
    if (*cwd != '/' || has_dots(cwd))
        return answer_with(out, WR_ALLOW_NO,
                           "not allowed: the folder %.150s is no absolute path without "
                           "\"..\" (allow_command_cwd)",
                           cwd);
    if (!realpath(cwd, out->cwd))
        return answer_with(out, WR_ALLOW_MISSING, "cannot go to the folder %.150s: %s",
                           cwd, strerror(errno));
    for (size_t i = 0; i < a->cwd.n; i++) {
        if (strcmp(a->cwd.list[i], "*") == 0 ||
            (resolve_pattern(a->cwd.list[i], real) && fits(real, out->cwd)))
            return WR_ALLOW_YES;
    }
    return answer_with(out, WR_ALLOW_NO,
                       "not allowed: the folder %.150s fits no pattern of "
                       "allow_command_cwd",
                       out->cwd);
}

enum wr_allow_verdict
wr_allow_check(const struct wr_allow *a, const struct wr_command *c,
               struct wr_allow_answer *out)
{
    enum wr_allow_verdict verdict;

    out->why[0] = out->file[0] = out->cwd[0] = '\0';
    verdict = check_env(a, c, out);
    if (verdict == WR_ALLOW_YES)
        verdict = check_cwd(a, c->cwd, out);
    if (verdict == WR_ALLOW_YES)
        verdict = check_program(a, c->argv[0], out);
    if (verdict == WR_ALLOW_YES && faccessat(AT_FDCWD, out->file, X_OK, AT_EACCESS) != 0)
        return answer_with(out, WR_ALLOW_MISSING, "cannot run %.200s: %s", out->file,
                           strerror(errno));
    return verdict;
}
