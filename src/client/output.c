/* What jobs print, as a reader asks for it. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "client/client_internal.h"
#include "model/output.h"

#define BYTES_MAX (256 * 1024) /* of one call: more than is kept of a run */
#define RUN_WORDS 5            /* of each run in the reply */

struct reading {
    struct weir_output_place *place;
    weir_output_fn each;
    void *context;
    int64_t started_at;
    bool go_on;
};

static int64_t
number_at(const struct wr_reply *reply, size_t i)
{
    return wr_reply_int(wr_reply_at(reply, i));
}

static void
tell(struct reading *r, const struct wr_output_record *record)
{
    struct weir_output_place *p = r->place;
    struct weir_output_line line = {
        .run = p->run,
        .at = r->started_at + record->ms,
        .ptr = record->bytes.ptr,
        .len = record->bytes.len,
        .part = record->kind == WR_OUTPUT_PART,
    };

    if (record->kind == WR_OUTPUT_AT) {
        line.ptr = "";
        line.len = 0;
        line.left_out = record->position - p->bytes;
        line.left_out_lines = record->lines - p->lines;
        p->bytes = record->position;
        if (record->lines > p->lines)
            p->lines = record->lines;
        else
            line.left_out_lines = 0;
        if (line.left_out <= 0)
            return;
    } else {
        p->bytes += (int64_t)line.len;
        p->lines += !line.part;
    }
    r->go_on = r->each(&line, r->context);
}

/* False: damaged, by somebody's hand. */
static bool
read_piece(struct reading *r, int64_t at, struct wr_span piece)
{
    struct wr_output_record record;
    struct wr_span left = piece;
    bool damaged = false;

    while (r->go_on && wr_output_read(&left, &record, &damaged))
        tell(r, &record);
    r->place->offset = at + (int64_t)(piece.len - left.len);
    return !damaged && (left.len == 0 || !r->go_on);
}

/* The line of this run among all; what comes after it. */
static void
find_run(struct reading *r, const struct wr_reply *reply, size_t runs)
{
    struct weir_output_place *p = r->place;

    p->next_run = 0;
    p->kept = p->open = false;
    for (size_t i = 0; i < runs; i++) {
        size_t at = 4 + RUN_WORDS * i;
        int64_t number = number_at(reply, at);

        if (number > p->run && p->next_run == 0)
            p->next_run = number;
        if (number != p->run)
            continue;
        r->started_at = number_at(reply, at + 1);
        p->kept = true;
        p->open = number_at(reply, at + 4) == 1;
    }
}

static enum weir_err
read_reply(struct reading *r, const struct wr_reply *reply, struct weir_error *err)
{
    struct weir_output_place *p = r->place;
    size_t runs = (size_t)number_at(reply, 3), first = 4 + RUN_WORDS * runs + 1;
    struct wr_span state = wr_reply_span(wr_reply_at(reply, 1));

    snprintf(p->state, sizeof(p->state), "%.*s", (int)state.len, (const char *)state.ptr);
    p->deliveries = number_at(reply, 2);
    if (p->run == 0 && runs > 0)
        p->run = number_at(reply, 4 + RUN_WORDS * (runs - 1));
    find_run(r, reply, runs);
    for (size_t i = first; i + 1 < wr_reply_len(reply) && r->go_on; i += 2) {
        if (!read_piece(r, number_at(reply, i), wr_reply_span(wr_reply_at(reply, i + 1))))
            return wr_fail(err, WEIR_E_CORRUPT, 0,
                           "what run %lld printed is not as a worker wrote it",
                           (long long)p->run);
    }
    return WEIR_OK;
}

enum weir_err
weir_job_output(struct weir_client *c, const char *queue, const char *id,
                struct weir_output_place *place, weir_output_fn each, void *context,
                struct weir_error *err)
{
    struct reading r = {.place = place, .each = each, .context = context, .go_on = true};
    struct wr_queue *found;
    struct wr_reply *reply;
    enum weir_err rc;

    if (place->queue[0] != '\0')
        rc = wr_client_queue(c, place->queue, &found, err);
    else
        rc = wr_client_find(c, queue, id, &found, err);
    if (rc == WEIR_OK)
        rc = wr_store_output(c->store, found, wr_span_str(id), place->run, place->offset,
                             BYTES_MAX, &reply, err);
    if (rc != WEIR_OK)
        return rc;
    snprintf(place->queue, sizeof(place->queue), "%s", wr_queue_name(found));
    rc = read_reply(&r, reply, err);
    wr_reply_free(reply);
    return rc;
}
