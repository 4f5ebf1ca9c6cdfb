#include "cli/config_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"

#define LINE_MAX_BYTES 4096

enum weir_err
cli_conf_fail(const struct cli_conf_place *at, struct weir_error *err, const char *fmt,
              ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return wr_fail(err, WEIR_E_CONFIG, 0, "%.120s:%u: %s", at->path, at->line, text);
}

enum weir_err
cli_conf_unknown(const struct cli_conf_place *at, const char *what, const char *name,
                 const char *const *names, struct weir_error *err)
{
    const char *near = wr_text_nearest(name, names);

    return cli_conf_fail(at, err, "%s \"%.40s\"%s%s%s", what, name,
                         near ? "; did you mean \"" : "", near ? near : "",
                         near ? "\"?" : "");
}

static char *
trim(char *text)
{
    size_t len;

    text += strspn(text, " \t\r\n");
    len = strlen(text);
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    text[len] = '\0';
    return text;
}

static enum weir_err
take_line(const struct cli_conf_place *at, char *line, const struct cli_conf_reader *r,
          struct weir_error *err)
{
    char *key = trim(line), *equals;
    size_t len = strlen(key);

    if (len == 0 || *key == '#')
        return WEIR_OK;
    if (*key == '[') {
        if (key[len - 1] != ']')
            return cli_conf_fail(at, err, "a section without ] at its end");
        key[len - 1] = '\0';
        return r->section(at, trim(key + 1), r->context, err);
    }
    equals = strchr(key, '=');
    if (!equals)
        return cli_conf_fail(at, err, "not a line like key = value");
    *equals = '\0';
    return r->pair(at, trim(key), trim(equals + 1), r->context, err);
}

static enum weir_err
read_lines(FILE *f, struct cli_conf_place *at, const struct cli_conf_reader *r,
           struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;
    char line[LINE_MAX_BYTES];

    while (rc == WEIR_OK && fgets(line, sizeof(line), f)) {
        at->line++;
        if (!strchr(line, '\n') && !feof(f))
            rc = cli_conf_fail(at, err, "a line over %d bytes, or with a NUL",
                               LINE_MAX_BYTES - 2);
        else
            rc = take_line(at, line, r, err);
    }
    if (rc == WEIR_OK && ferror(f))
        rc = wr_fail(err, WEIR_E_CONFIG, errno, "configuration file %.150s", at->path);
    explicit_bzero(line, sizeof(line));
    return rc;
}

enum weir_err
cli_conf_read(const char *path, bool must, const struct cli_conf_reader *reader,
              struct weir_error *err)
{
    struct cli_conf_place at = {.path = path};
    FILE *f = fopen(path, "re");
    struct stat st;
    enum weir_err rc;

    if (!f || fstat(fileno(f), &st) != 0) {
        int failed = errno;

        if (f)
            fclose(f);
        if (!must && (failed == ENOENT || failed == ENOTDIR || failed == EACCES))
            return WEIR_OK;
        return wr_fail(err, WEIR_E_CONFIG, failed, "configuration file %.150s", path);
    }
    at.others_write = (st.st_mode & S_IWOTH) != 0;
    rc = read_lines(f, &at, reader, err);
    fclose(f);
    return rc;
}
