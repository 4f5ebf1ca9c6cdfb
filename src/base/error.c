#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum weir_err_kind kind;
    int exit_status;
    const char *text;
} errors[] = {
#define X(name_, kind_, exit_, text_) \
    [WEIR_##name_] = {#name_, WEIR_KIND_##kind_, exit_, text_},
    WEIR_ERRORS(X)
#undef X
};

/* A code from a newer library, or garbage: say so rather than read past the end. */
static size_t
row_of(enum weir_err code)
{
    size_t n = sizeof(errors) / sizeof(errors[0]);

    return (size_t)code < n ? (size_t)code : (size_t)WEIR_E_BUG;
}

const char *
weir_err_name(enum weir_err code)
{
    return errors[row_of(code)].name;
}

const char *
weir_err_text(enum weir_err code)
{
    return errors[row_of(code)].text;
}

enum weir_err_kind
weir_err_kind_of(enum weir_err code)
{
    return errors[row_of(code)].kind;
}

int
weir_err_exit_status(enum weir_err code)
{
    return errors[row_of(code)].exit_status;
}

enum weir_err
wr_fail(struct weir_error *err, enum weir_err code, int sys_errno, const char *fmt, ...)
{
    va_list ap;
    int used;

    if (!err)
        return code;

    err->code = code;
    err->sys_errno = sys_errno;

    va_start(ap, fmt);
    used = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);

    if (sys_errno != 0 && used >= 0 && (size_t)used < sizeof(err->text))
        snprintf(err->text + used, sizeof(err->text) - (size_t)used, ": %s",
                 strerror(sys_errno));
    return code;
}
