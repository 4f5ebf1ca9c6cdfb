/* Follow-up jobs of a delivery: what its handler asked for, and the next step of its
 * chain. They are sent with its success (store/relay.c). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "client/client_internal.h"
#include "model/follow.h"
#include "worker/worker_internal.h"

#define CHAIN_ROOM 131072 /* for a result, beyond what the handler may use */

static enum weir_err
add(struct weir_delivery *d, const struct weir_job *job, size_t bytes_max,
    struct weir_error *err)
{
    char channel[WR_FOLLOW_CHANNEL_LEN + 1];
    size_t before = d->follow.len;
    enum weir_err rc;

    if (d->follow_n == WR_FOLLOW_MAX)
        return wr_fail(err, WEIR_E_TOO_BIG, 0, "at most %d follow-up jobs",
                       WR_FOLLOW_MAX);
    wr_follow_channel(d->queue, d->id, d->state.token, channel);
    if (before == 0)
        wr_follow_begin(&d->follow, channel);
    rc = wr_client_follow(job, channel, d->follow_n, &d->follow, err);
    if (rc == WEIR_OK && d->follow.len > bytes_max)
        rc = wr_fail(err, WEIR_E_TOO_BIG, 0, "follow-up jobs: more than %zu bytes in all",
                     bytes_max);
    if (rc == WEIR_OK)
        d->follow_n++;
    else
        d->follow.len = d->follow_n == 0 ? 0 : before;
    return rc;
}

enum weir_err
weir_delivery_then(struct weir_delivery *d, const struct weir_job *job,
                   struct weir_error *err)
{
    /* Refused here, not when the handler is done and its chain has no place left. */
    if (d->record.then.len > 0 && d->follow_n == WR_FOLLOW_MAX - 1)
        return wr_fail(err, WEIR_E_TOO_BIG, 0,
                       "at most %d follow-up jobs beside the next step of a chain",
                       WR_FOLLOW_MAX - 1);
    return add(d, job, WR_FOLLOW_BYTES_MAX, err);
}

/* The steps of a chain after its first, as an array for struct weir_job. */
struct rest {
    struct weir_then steps[WR_THEN_MAX];
    struct wr_buf words[2 * WR_THEN_MAX];
    size_t n;
};

static bool
read_rest(struct rest *r, struct wr_span then)
{
    while (then.len > 0 && r->n < WR_THEN_MAX) {
        struct wr_buf *type = &r->words[2 * r->n], *queue = type + 1;

        if (!wr_then_take(&then, type, queue))
            return false;
        r->steps[r->n] = (struct weir_then){.type = wr_buf_span(type).ptr,
                                            .queue = wr_buf_span(queue).ptr};
        r->n++;
    }
    return then.len == 0;
}

static enum weir_err
add_next_step(struct weir_delivery *d, struct weir_error *err)
{
    struct rest *r = calloc(1, sizeof(*r));
    enum weir_err rc = WEIR_OK;

    if (!r)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "chain");
    if (!read_rest(r, d->record.then))
        rc = wr_fail(err, WEIR_E_CORRUPT, 0, "its chain cannot be read");
    if (rc == WEIR_OK && r->n > 0) {
        struct wr_span result = wr_buf_span(&d->result);
        struct weir_job job = {WEIR_JOB_INIT,
                               .type = r->steps[0].type,
                               .queue = r->steps[0].queue,
                               .payload = result.ptr,
                               .payload_len = result.len,
                               .keep_result_ms = d->record.keep_ms,
                               .then = r->steps + 1,
                               .then_count = r->n - 1};

        rc = add(d, &job, WR_FOLLOW_BYTES_MAX + CHAIN_ROOM, err);
    }
    for (size_t i = 0; i < 2 * WR_THEN_MAX; i++)
        wr_buf_fini(&r->words[i]);
    free(r);
    return rc;
}

bool
wr_follow_up(struct wr_run *run)
{
    struct weir_delivery *d = &run->d;
    struct weir_error err = {0};

    if (d->record.then.len == 0 || add_next_step(d, &err) == WEIR_OK)
        return true;
    /* Rather not done than a chain that ends in silence. */
    weir_delivery_set_error(d, "the next step of its chain: %.200s", err.text);
    return false;
}
