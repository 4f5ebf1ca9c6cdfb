/*
 * weir work: -q NAME[:WEIGHT], --strict, --reserve NAME=N, and the settings for them.
 *
 * What follows the last colon is the weight if it is a number, or nothing: so a queue
 * whose name ends like "a:6" is written "a:6:1" or "a:6:".
 */
#include "bin/work_queues.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/config.h"

static enum weir_err
read_weight(const char *spec, const char *digits, unsigned *out, struct weir_error *err)
{
    int64_t weight;

    if (!wr_text_int(digits, 1, WEIR_WEIGHT_MAX, &weight))
        return wr_fail(err, WEIR_E_ARG, 0, "queue %.130s: a weight is from 1 to %d", spec,
                       WEIR_WEIGHT_MAX);
    *out = (unsigned)weight;
    return WEIR_OK;
}

static enum weir_err
add_queue(struct bin_queues *q, const char *spec, struct weir_error *err)
{
    char *name = cli_strdup(spec), *colon = strrchr(name, ':');
    struct weir_worker_share *s;

    q->shares = cli_grow(q->shares, q->n + 1, sizeof(*q->shares));
    s = &q->shares[q->n++];
    *s = (struct weir_worker_share){.queue = name};
    if (!colon || colon[1 + strspn(colon + 1, "0123456789")] != '\0')
        return WEIR_OK;
    *colon = '\0';
    return colon[1] == '\0' ? WEIR_OK : read_weight(spec, colon + 1, &s->weight, err);
}

static enum weir_err
add_reserve(struct bin_queues *q, const char *spec, struct weir_error *err)
{
    const char *equals = strrchr(spec, '=');
    int64_t slots;

    if (!equals || equals == spec || !wr_text_int(equals + 1, 1, 1000000, &slots))
        return wr_fail(err, WEIR_E_ARG, 0, "reserve %.130s: not QUEUE=SLOTS", spec);
    for (size_t i = 0; i < q->n; i++) {
        struct weir_worker_share *s = &q->shares[i];

        if (strlen(s->queue) != (size_t)(equals - spec) ||
            memcmp(s->queue, spec, strlen(s->queue)) != 0)
            continue;
        if (s->reserved > 0)
            return wr_fail(err, WEIR_E_ARG, 0, "reserve %.130s: said twice", spec);
        s->reserved = (size_t)slots;
        return WEIR_OK;
    }
    return wr_fail(
        err, WEIR_E_ARG, 0,
        "reserve %.130s: this worker does not serve that queue, name it with -q", spec);
}

typedef enum weir_err (*add_fn)(struct bin_queues *q, const char *spec,
                                struct weir_error *err);

/* The flags, else the setting, with commas between. */
static enum weir_err
add_all(struct cli *cli, struct bin_queues *q, const struct cli_list *given,
        enum cli_setting setting, add_fn add, struct weir_error *err)
{
    const char *text = cli_setting(cli->settings, setting);
    enum weir_err rc = WEIR_OK;
    char *copy, *rest = NULL;

    for (size_t i = 0; i < given->n && rc == WEIR_OK; i++)
        rc = add(q, given->items[i], err);
    if (given->n > 0 || !text)
        return rc;
    copy = cli_strdup(text);
    for (char *word = strtok_r(copy, ", ", &rest); word && rc == WEIR_OK;
         word = strtok_r(NULL, ", ", &rest))
        rc = add(q, word, err);
    free(copy);
    return rc;
}

enum weir_err
bin_queues_read(struct cli *cli, const struct work_opts *o, struct bin_queues *out,
                struct weir_error *err)
{
    enum weir_err rc;

    *out = (struct bin_queues){0};
    rc = cli_setting_switch(cli->settings, CLI_SET_STRICT, &out->strict, err);
    out->strict = out->strict || o->strict;
    if (rc == WEIR_OK)
        rc = add_all(cli, out, &o->queues, CLI_SET_QUEUES, add_queue, err);
    if (rc == WEIR_OK)
        rc = add_all(cli, out, &o->reserve, CLI_SET_RESERVE, add_reserve, err);
    return rc;
}

void
bin_queues_fini(struct bin_queues *q)
{
    for (size_t i = 0; i < q->n; i++)
        free((char *)(uintptr_t)q->shares[i].queue);
    free(q->shares);
    *q = (struct bin_queues){0};
}
