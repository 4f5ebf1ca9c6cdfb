/*
 * The cron entries that a program declares. They are checked and made when they are
 * declared, in the program's own process; the service child stores them. Once for each
 * run of the worker, not once for each service child: what a person changed meanwhile
 * stays.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "client/client_internal.h"
#include "worker/worker_internal.h"

#define RETRY_MS 500

struct wr_worker_cron {
    struct wr_worker_cron *next;
    struct wr_cron_made *made;
};

void
wr_crons_free(struct wr_worker_cron *first)
{
    while (first) {
        struct wr_worker_cron *c = first;

        first = c->next;
        wr_cron_made_free(c->made);
        free(c);
    }
}

enum weir_err
weir_worker_cron(struct weir_worker *w, const struct weir_cron *entry,
                 struct weir_error *err)
{
    const char *home = w->queues && w->queues[0] ? w->queues[0] : "default";
    struct wr_worker_cron *c, **last = &w->crons;
    struct wr_cron_made *made;
    enum weir_err rc = wr_cron_make(entry, home, &made, err);

    if (!made)
        return rc;
    for (; *last; last = &(*last)->next) {
        if (strcmp((*last)->made->name, made->name) == 0 &&
            strcmp((*last)->made->queue, made->queue) == 0) {
            rc = wr_fail(err, WEIR_E_ARG, 0, "queue %.60s has two cron entries %.100s",
                         made->queue, made->name);
            wr_cron_made_free(made);
            return rc;
        }
    }
    c = calloc(1, sizeof(*c));
    if (!c) {
        wr_cron_made_free(made);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "cron entry");
    }
    c->made = made;
    *last = c;
    return WEIR_OK;
}

/* False: it is worth another try. */
static bool
store_one(struct wr_store *store, const struct wr_cron_made *made, bool *said)
{
    struct weir_error err = {0};
    bool same = false;
    enum weir_err rc = wr_cron_store(store, made, WEIR_REVISION_ANY, &same, &err);
    enum weir_err_kind kind = weir_err_kind_of(rc);

    if (rc == WEIR_OK) {
        if (!same)
            wr_log_info("queue %s: cron entry %s is stored", made->queue, made->name);
        return true;
    }
    if (kind == WEIR_KIND_BUSY || kind == WEIR_KIND_UNKNOWN || rc == WEIR_E_READONLY) {
        if (!*said)
            wr_log_warn("cron entry %s cannot be stored yet: %s", made->name, err.text);
        *said = true;
        return false;
    }
    wr_log_error("queue %s: cron entry %s is not stored: %s", made->queue, made->name,
                 err.text);
    return true;
}

bool
wr_crons_step(const struct weir_worker *w, struct wr_store *store, int64_t *next_ms)
{
    static int64_t again_ms; /* one service child, one worker */
    static bool said;
    size_t i = 0;

    *next_ms = INT64_MAX;
    if (!w->crons || atomic_load(&w->shared->cron_done))
        return true;
    if (wr_clock_ms() < again_ms) {
        *next_ms = again_ms;
        return false;
    }
    /* One after the other: of a service child that dies among them the next one stores
     * again only the one it was at. */
    for (struct wr_worker_cron *c = w->crons; c; c = c->next, i++) {
        if (i < atomic_load(&w->shared->crons_n))
            continue;
        if (!store_one(store, c->made,
                       &said)) { /* Redis is away: so it is for the others */
            again_ms = *next_ms = wr_clock_ms() + RETRY_MS;
            return false;
        }
        atomic_store(&w->shared->crons_n, i + 1);
    }
    atomic_store(&w->shared->cron_done, true);
    return true;
}
