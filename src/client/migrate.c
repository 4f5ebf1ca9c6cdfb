/* Moves a queue to the other engine, step by step. */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/client_internal.h"

#define SLICE 500 /* jobs a step: some 2 ms of the server */
#define WAIT_DEFAULT_MS 60000
#define NAP_MS 50
/* A copy that began anew so often will not come to an end. */
#define RESTARTS_MAX 20

struct move {
    struct weir_client *client;
    struct wr_queue *queue;
    const char *from, *to, *who;
    struct weir_migrate_options o;
    struct weir_migration seen;
    int64_t deadline_ms; /* for deliveries to end */
};

/* Options of an older program are shorter. */
static struct weir_migrate_options
known(const struct weir_migrate_options *given)
{
    struct weir_migrate_options o = {0};

    if (given)
        memcpy(&o, given,
               given->struct_size < sizeof(o) ? given->struct_size : sizeof(o));
    if (o.wait_ms == 0)
        o.wait_ms = WAIT_DEFAULT_MS;
    return o;
}

/* The error that ends the move; nothing is lost by it. */
static enum weir_err
give_up(struct move *m, enum weir_err rc, const char *why, struct weir_error *err)
{
    struct wr_migrated step = {.word = WR_MIGRATE_COPIED};
    enum weir_err undone = WEIR_OK;

    while (undone == WEIR_OK && step.word != WR_MIGRATE_DONE)
        undone = wr_store_migrate(m->client->store, m->queue, m->from, m->who, SLICE,
                                  &step, err);
    if (undone != WEIR_OK)
        return undone;
    return wr_fail(err, rc, 0, "%s: queue %s stays a %s", why, wr_queue_name(m->queue),
                   m->from);
}

static enum weir_err
take_step(struct move *m, struct wr_migrated *step, struct weir_error *err)
{
    enum weir_err rc = wr_store_migrate(m->client->store, m->queue, m->to, m->who, SLICE,
                                        step, err);

    if (rc != WEIR_OK)
        return rc;
    m->seen.processing = step->word == WR_MIGRATE_RUNS ? step->n : 0;
    if (step->word == WR_MIGRATE_COPIED || step->copied > 0)
        m->seen.copied = step->copied;
    if (step->word == WR_MIGRATE_AGAIN)
        m->seen.restarts++;
    if (step->word == WR_MIGRATE_RESUMED)
        return give_up(m, WEIR_E_CHANGED, "somebody resumed it", err);
    if (step->word == WR_MIGRATE_FULL)
        return give_up(m, WEIR_E_FULL, "Redis has no room for a copy of what waits", err);
    if (m->seen.restarts > RESTARTS_MAX)
        return give_up(m, WEIR_E_CHANGED, "its waiting jobs are changed all the time",
                       err);
    if (step->word == WR_MIGRATE_RUNS && wr_clock_ms() >= m->deadline_ms)
        return give_up(m, WEIR_E_TIMEOUT, "jobs are still running", err);
    if (m->o.each && step->word != WR_MIGRATE_DONE && !m->o.each(&m->seen, m->o.context))
        return give_up(m, WEIR_E_CANCELLED, "called off", err);
    return WEIR_OK;
}

enum weir_err
weir_queue_migrate(struct weir_client *c, const char *queue, const char *engine,
                   const struct weir_migrate_options *options, int64_t *moved,
                   struct weir_error *err)
{
    struct move m = {.client = c, .to = engine, .o = known(options)};
    struct wr_migrated step = {.word = WR_MIGRATE_COPIED};
    struct weir_audit a;
    enum weir_err rc = wr_client_queue(c, queue, &m.queue, err);

    *moved = 0;
    if (rc == WEIR_OK && strcmp(engine, "list") != 0 && strcmp(engine, "stream") != 0)
        rc = wr_fail(err, WEIR_E_ARG, 0, "engine %.20s: neither list nor stream", engine);
    if (rc == WEIR_OK)
        rc = weir_queue_audit(c, queue, &a, err); /* E_NO_QUEUE */
    if (rc != WEIR_OK)
        return rc;
    m.from = a.engine;
    m.who = m.o.who ? m.o.who : wr_client_login_name();
    m.seen.engine = engine;
    m.deadline_ms = wr_clock_ms() + (m.o.wait_ms == WEIR_NONE ? 0 : m.o.wait_ms);
    while (rc == WEIR_OK && step.word != WR_MIGRATE_DONE) {
        rc = take_step(&m, &step, err);
        if (rc == WEIR_OK && step.word == WR_MIGRATE_RUNS)
            poll(NULL, 0, NAP_MS);
    }
    if (rc == WEIR_OK)
        *moved = m.seen.copied;
    return rc;
}
