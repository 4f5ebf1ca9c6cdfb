#include "cli/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

struct each {
    struct cli *cli;
    cli_id_fn fn;
    void *context;
    enum weir_err first; /* of those that were told */
};

static enum weir_err
one(struct each *e, const char *id, struct weir_error *err)
{
    enum weir_err rc;

    if (!wr_text_is_job_id(wr_span_str(id)))
        rc = wr_fail(err, WEIR_E_ARG, 0,
                     "job id: 1 to 255 bytes, no control characters (given: %zu bytes)",
                     strlen(id));
    else
        rc = e->fn(e->cli, id, e->context, err);
    if (weir_err_kind_of(rc) != WEIR_KIND_STATE &&
        weir_err_kind_of(rc) != WEIR_KIND_USAGE)
        return rc;
    if (!strstr(err->text, id)) { /* of many, which one? */
        struct weir_error why = *err;

        (void)wr_fail(err, rc, 0, "%.100s: %.140s", id, why.text);
    }
    cli_tell(e->cli, rc, err);
    if (e->first == WEIR_OK)
        e->first = rc;
    return WEIR_OK;
}

static enum weir_err
from_stdin(struct each *e, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    errno = 0;
    while (rc == WEIR_OK && (len = getline(&line, &cap, stdin)) >= 0) {
        if (strlen(line) != (size_t)len) {
            rc = wr_fail(err, WEIR_E_DATA, 0, "standard input: a line with a NUL byte");
            break;
        }
        line[strcspn(line, "\t\n")] = '\0';
        if (*line)
            rc = one(e, line, err);
    }
    free(line);
    if (rc == WEIR_OK && ferror(stdin))
        rc = wr_fail(err, WEIR_E_IO, errno, "standard input");
    return rc;
}

enum weir_err
cli_each_id(struct cli *cli, char *const *args, cli_id_fn each, void *context,
            struct weir_error *err)
{
    struct each e = {.cli = cli, .fn = each, .context = context};
    enum weir_err rc = WEIR_OK;

    for (; *args && rc == WEIR_OK; args++) {
        if (strcmp(*args, "-") == 0)
            rc = from_stdin(&e, err);
        else
            rc = one(&e, *args, err);
    }
    return rc != WEIR_OK ? rc : e.first;
}

bool
cli_ids_are_many(char *const *args)
{
    return args[0] && (args[1] || strcmp(args[0], "-") == 0);
}
