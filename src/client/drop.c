/* Removing a queue that holds nothing. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "client/client_internal.h"

#define REPEAT_MS 60000 /* a producer repeats no call after that */

static enum weir_err
say_used(const char *queue, const struct wr_reply *reply, struct weir_error *err)
{
    static const struct {
        const char *what, *one, *more;
    } rows[] = {
        {"processing", "job runs", "jobs run"},
        {"ready", "job waits", "jobs wait"},
        {"delayed", "job is delayed", "jobs are delayed"},
        {"dead", "job is dead", "jobs are dead"},
        {"done", "finished job is kept", "finished jobs are kept"},
        {"broken", "record is in no place", "records are in no place"},
        {"outbox", "job has follow-up jobs on their way",
         "jobs have follow-up jobs on their way"},
        {"moving", "move to another engine is not over", "moves are not over"},
        {"cron", "cron entry makes jobs in it", "cron entries make jobs in it"},
        {"windows", "unique key refuses jobs still", "unique keys refuse jobs still"},
        {"producers", "producer called in the last minute",
         "producers called in the last minute"},
    };
    int64_t n = wr_reply_int(wr_reply_at(reply, 2));

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (wr_reply_is(wr_reply_at(reply, 1), rows[i].what))
            return wr_fail(err, WEIR_E_WRONG_STATE, 0, "queue %s is in use: %lld %s",
                           queue, (long long)n, n == 1 ? rows[i].one : rows[i].more);
    }
    return wr_fail(err, WEIR_E_WRONG_STATE, 0, "queue %s is in use", queue);
}

static void
read_past(const struct wr_reply *reply, struct weir_queue_past *out)
{
    const struct {
        const char *name;
        int64_t *sum;
    } rows[] = {
        {"enqueued", &out->enqueued},
        {"done", &out->done},
        {"cancelled_ready", &out->cancelled},
        {"cancelled_delayed", &out->cancelled},
        {"cancelled_processing", &out->cancelled},
        {"expired_ready", &out->expired},
        {"expired_delayed", &out->expired},
        {"purged", &out->purged},
    };

    *out = (struct weir_queue_past){0};
    for (size_t i = 1; i + 1 < wr_reply_len(reply); i += 2) {
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
            if (wr_reply_is(wr_reply_at(reply, i), rows[k].name))
                *rows[k].sum += wr_reply_int(wr_reply_at(reply, i + 1));
        }
    }
}

/* Who makes it anew in that moment enrolls it, and we must not undo that. */
static enum weir_err
delist(struct weir_client *c, struct wr_queue *q, struct weir_error *err)
{
    struct weir_audit a;
    enum weir_err rc = wr_store_delist(c->store, q, err);

    if (rc == WEIR_OK && weir_queue_audit(c, wr_queue_name(q), &a, NULL) == WEIR_OK)
        rc = wr_store_enroll(c->store, q, err);
    return rc;
}

static enum weir_err
drop(struct weir_client *c, struct wr_queue *q, bool only_look,
     struct weir_queue_past *past, struct weir_error *err)
{
    struct wr_reply *reply;
    enum weir_err rc = wr_store_drop(c->store, q, REPEAT_MS, only_look, &reply, err);

    if (rc != WEIR_OK)
        return rc;
    if (wr_reply_is(wr_reply_at(reply, 0), "USED"))
        rc = say_used(wr_queue_name(q), reply, err);
    else if (past)
        read_past(reply, past);
    wr_reply_free(reply);
    return rc;
}

enum weir_err
weir_queue_remove(struct weir_client *c, const char *queue, struct weir_queue_past *past,
                  struct weir_error *err)
{
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    if (rc == WEIR_OK)
        rc = drop(c, q, false, past, err);
    if (rc == WEIR_OK || rc == WEIR_E_NO_QUEUE) {
        enum weir_err gone = delist(c, q, rc == WEIR_OK ? err : NULL);

        rc = rc == WEIR_OK ? gone : rc;
    }
    return rc;
}

enum weir_err
weir_queue_check_unused(struct weir_client *c, const char *queue, struct weir_error *err)
{
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    return rc == WEIR_OK ? drop(c, q, true, NULL, err) : rc;
}

enum weir_err
weir_queue_used_by(struct weir_client *c, const char *queue, struct weir_queue_use *out,
                   struct weir_error *err)
{
    struct wr_reply *reply;
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    *out = (struct weir_queue_use){0};
    if (rc == WEIR_OK)
        rc = wr_store_drop(c->store, q, REPEAT_MS, true, &reply, err);
    if (rc != WEIR_OK)
        return rc;
    if (wr_reply_is(wr_reply_at(reply, 0), "USED")) {
        wr_reply_copy(wr_reply_at(reply, 1), out->what, sizeof(out->what));
        out->count = wr_reply_int(wr_reply_at(reply, 2));
    }
    wr_reply_free(reply);
    return WEIR_OK;
}
