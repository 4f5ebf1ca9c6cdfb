#include "cli/queues.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"

enum weir_err
cli_check_queue(const char *name, struct weir_error *err)
{
    if (wr_text_is_queue(wr_span_str(name)))
        return WEIR_OK;
    return wr_fail(err, WEIR_E_ARG, 0,
                   "queue name: 1 to 128 bytes without braces or control characters");
}

static void
add_name(struct cli_names *names, const char *name)
{
    names->names = cli_grow(names->names, names->n + 1, sizeof(*names->names));
    names->names[names->n++] = cli_strdup(name);
}

static bool
take_name(const char *queue, void *context)
{
    add_name(context, queue);
    return true;
}

enum weir_err
cli_queues(struct cli *cli, const struct cli_list *given, struct cli_names *out,
           struct weir_error *err)
{
    *out = (struct cli_names){0};
    if (!given || given->n == 0)
        return weir_queue_list(cli->client, take_name, out, err);
    for (size_t i = 0; i < given->n; i++) {
        enum weir_err rc = cli_check_queue(given->items[i], err);

        if (rc != WEIR_OK) {
            cli_names_fini(out);
            return rc;
        }
        add_name(out, given->items[i]);
    }
    return WEIR_OK;
}

void
cli_names_fini(struct cli_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct cli_names){0};
}

bool
cli_queue_at_fault(enum weir_err rc)
{
    return rc == WEIR_E_CORRUPT || rc == WEIR_E_WRONG_ENGINE || rc == WEIR_E_NO_QUEUE ||
           rc == WEIR_E_DENIED;
}

bool
cli_is_broken(struct cli *cli, enum weir_err rc, const struct weir_error *err,
              struct cli_broken *broken)
{
    if (!cli_queue_at_fault(rc))
        return false;
    if (broken->rc == WEIR_OK) { /* told at the end, as every error is */
        broken->rc = rc;
        broken->error = *err;
    } else {
        cli_note(cli, "%s", err->text);
    }
    return true;
}

enum weir_err
cli_broken_end(const struct cli_broken *broken, enum weir_err rc, struct weir_error *err)
{
    if (rc != WEIR_OK || broken->rc == WEIR_OK)
        return rc;
    *err = broken->error;
    return broken->rc;
}
