/* The model's idle workers: what they offer, and the job that is handed to one of them;
 * see model.h. */
#include "script/model_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OFF_MS 30000
#define VOID_MAX 8 /* offers that one call takes away for nothing */

/* Whose turn it is; -1: nobody waits. */
static int
first_in_line(const struct model *m)
{
    int first = -1;

    for (int w = 0; w < MODEL_WORKERS; w++) {
        if (m->offered[w] > 0 && (first < 0 || m->offered[w] < m->offered[first]))
            first = w;
    }
    return first;
}

/* It has none of its own in its record. */
static bool
has_limit(const struct model_job *j)
{
    return strstr(j->tail, " max_deliveries=") != NULL;
}

/* A worker began to wait, and that is not over; nor was the clock set back since. */
static bool
stands(const struct model *m, int worker)
{
    return m->claims[worker].is_set && m->claims[worker].head == MODEL_OFFERS &&
           m->claims[worker].at <= m->now && m->claims[worker].offer.until > m->now;
}

/* A stream without a group has nobody to hand anything to. */
static bool
has_group(const struct model *m)
{
    return !m->stream || m->has_stream;
}

/* The marker brings the worker the job of its call. */
static void
bring(struct model *m, int worker)
{
    const struct model_job *j = m->claims[worker].list[0].job;
    char state[256], record[256];

    m->claims[worker].head = MODEL_HANDED;
    model_state_text(j, state, sizeof(state));
    model_record_text(j, record, sizeof(record));
    m->wake = true;
    m->brought.worker = worker;
    m->brought.call = m->claims[worker].call;
    snprintf(m->brought.text, sizeof(m->brought.text), "%" PRId64 "\n%s|%s\n%s",
             m->brought.call, j->id, state, record);
    m->handed++;
}

/* One job waits, whose marker nobody has taken: that came before the offer did. */
static bool
one_waits(const struct model *m)
{
    return m->wake && m->brought.call == 0 && !m->paused && !m->is_long && has_group(m) &&
           m->ready_n == 1 && !m->ready[0]->front && !m->ready[0]->tomb;
}

/* As if it had made the call. Answers whether it got the job. */
static bool
offer_takes(struct model *m, const struct model_offer *o)
{
    struct model_reserve r = {.worker = o->worker,
                              .call = o->call,
                              .lease = o->lease,
                              .free = 1,
                              .type = o->type,
                              .keep = o->keep};
    struct model_asked before = m->claims[o->worker];
    struct wr_buf reply = {0};

    m->wake = false;
    model_reserve(m, &r, &reply);
    wr_buf_fini(&reply);
    if (m->claims[o->worker].n > 0) {
        bring(m, o->worker);
        return true;
    }
    m->claims[o->worker] = before;
    return false;
}

void
model_offer(struct model *m, const struct model_offer *o, int64_t wait,
            struct wr_buf *out)
{
    bool off = m->offers_off > m->now && m->offers_off <= m->now + OFF_MS;
    struct model_asked *a = &m->claims[o->worker];

    if (a->is_set && a->call >= o->call) {
        say(out, "BEHIND");
        return;
    }
    say(out, off ? "OFF" : "OK");
    if (!off && one_waits(m) && offer_takes(m, o))
        return;
    if (!off) {
        a->call = a->is_set ? a->call : 0;
        a->n = a->is_set ? a->n : 0;
        a->is_set = true;
        a->at = m->now;
        a->lease = o->lease;
        a->head = MODEL_OFFERS;
        a->offer = *o;
        a->offer.until = m->now + wait;
        m->offered[o->worker] = m->now;
    }
    model_wake_worker(m);
}

const struct model_offer *
model_take_offer(struct model *m, const struct model_job *j)
{
    if (m->ready_n > 0 || !has_group(m))
        return NULL;
    for (int i = 0; i < VOID_MAX; i++) {
        int w = first_in_line(m);
        const struct model_offer *o;

        if (w < 0)
            return NULL;
        o = &m->claims[w].offer;
        if (!stands(m, w)) {
            m->offered[w] = 0;
            continue;
        }
        if (has_limit(j) || (o->type && strcmp(j->head + 2, o->type) != 0))
            return NULL;
        m->offered[w] = 0;
        return o;
    }
    return NULL;
}

void
model_hand(struct model *m, const struct model_offer *o, struct model_job *j)
{
    struct model_reserve r = {
        .worker = o->worker, .call = o->call, .lease = o->lease, .keep = o->keep};
    bool stored = j->has_state && !j->unstored; /* some state is */
    int w = o->worker;

    model_check(m->ready_n == 1 && m->ready[0] == j, "it is not alone");
    m->ready_n = 0;
    j->has_state = false; /* of an earlier life of the id */
    for (size_t i = 0; i < m->jobs_n; i++)
        stored = stored || (m->jobs[i].has_state && !m->jobs[i].unstored);
    model_lease(m, &r, j);
    j->unstored = j->unstored && !stored;
    m->claims[w].call = o->call;
    m->claims[w].at = m->now;
    m->claims[w].lease = o->lease;
    m->claims[w].list[0] = (struct model_claim){j, j->state.token, false};
    m->claims[w].n = 1;
    bring(m, w);
}

void
model_pop_marker(struct model *m)
{
    m->wake = false;
    m->brought.call = 0;
}

void
model_withdraw(struct model *m, int worker, int64_t call, bool off, struct wr_buf *out)
{
    struct model_claim *l = &m->claims[worker].list[0];
    struct model_job *j = l->job;

    if (!m->claims[worker].is_set || m->claims[worker].head != MODEL_HANDED ||
        m->claims[worker].call != call || !model_is_held(j, l->token, worker)) {
        say(out, "STALE");
        return;
    }
    if (off)
        m->offers_off = m->now + OFF_MS;
    m->claims[worker].head = MODEL_ASKED;
    m->claims[worker].n = 0;
    m->withdrawn++;
    if (j->state.flag) {
        model_end_cancelled(m, j);
    } else {
        j->unstored = false;
        model_move_key(m, j, ' ');
        if (!j->gone) { /* else it stays until it is reclaimed, and booked */
            model_to_front(m, j);
            m->n.released++;
        }
    }
    model_wake_worker(m);
    say(out, "OK");
}

void
model_forget_claims(struct model *m, int worker)
{
    m->claims[worker].is_set = false;
    m->claims[worker].head = MODEL_ASKED;
}

/* ---- as text ---- */

void
model_claims_head(const struct model *m, int worker, struct wr_buf *out)
{
    const struct model_offer *o = &m->claims[worker].offer;

    wr_buf_addf(out, "%" PRId64 " %" PRId64 " %" PRId64, m->claims[worker].call,
                m->claims[worker].at, m->claims[worker].lease);
    if (m->claims[worker].head == MODEL_OFFERS)
        wr_buf_addf(out, " offers %" PRId64 " %" PRId64 " %" PRId64 "|%s", o->call,
                    o->until, o->keep, o->types);
    if (m->claims[worker].head == MODEL_HANDED)
        wr_buf_add_str(out, " handed");
    wr_buf_add_str(out, "\n");
}

void
model_wake_dump(const struct model *m, struct wr_buf *out)
{
    const char *sep = "";

    wr_buf_addf(out, "\nwake{%s}\noffers{",
                m->brought.call > 0 ? m->brought.text
                : m->wake           ? "1"
                                    : "");
    for (int w = 0; w < MODEL_WORKERS; w++) {
        if (m->offered[w] == 0)
            continue;
        wr_buf_addf(out, "%s%s=%" PRId64 "000", sep, model_worker(w), m->offered[w]);
        sep = ";";
    }
    wr_buf_add_str(out, "}");
}
