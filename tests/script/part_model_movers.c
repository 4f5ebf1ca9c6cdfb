/* Jobs that are due, lost or to be forgotten; see model.h. */
#include "script/model_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A stream needs the record now; a list finds out when the job is handed out. */
static bool
promote_one(struct model *m, struct model_job *j)
{
    if (!m->stream || model_has_body(j)) {
        model_to_back(m, j);
        m->n.promoted++;
        return true;
    }
    j->place = MODEL_WAITS;
    model_leave_line(m, j);
    if (j->has_state) {
        model_free_key(m, j->state.key, j);
        model_next_key(m, j->state.key, j);
    }
    model_become_stub(m, j);
    model_die(m, j);
    model_dead_in(m, j);
    m->n.lost_body_delayed++;
    return false;
}

void
model_promote(struct model *m, size_t limit, struct wr_buf *out)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = model_jobs_at(m, MODEL_DELAYED, all), moved = 0, due = 0;

    for (size_t i = 0; i < n && i < limit && all[i]->score <= m->now; i++)
        due++;
    for (size_t i = 0; i < due; i++)
        moved += (!m->stream || model_has_body(all[i])) && promote_one(m, all[i]);
    for (size_t i = 0; i < due; i++) { /* a stream buries what has no body after that */
        if (all[i]->place == MODEL_DELAYED && !model_has_body(all[i]))
            promote_one(m, all[i]);
    }
    model_wake_worker(m);
    n = model_jobs_at(m, MODEL_DELAYED, all);
    if (n > 0 && all[0]->score <= m->now)
        say(out, "MORE %zu 0", moved);
    else if (n > 0 && all[0]->score < MODEL_PARKED)
        say(out, "OK %zu %" PRId64, moved, (all[0]->score - m->now) * 1000);
    else
        say(out, "OK %zu -1", moved);
}

struct loss {
    struct model_job *job;
    bool charged;
};

static int
compare_losses(const void *a, const void *b)
{
    const struct loss *x = a, *y = b;

    return x->job->state.token < y->job->state.token
               ? -1
               : x->job->state.token > y->job->state.token;
}

/* What becomes of one lost job: 'f'ront, 'w'ait, 'd'ead, 'c'ancelled. */
static char
lose(struct model *m, const struct loss *l)
{
    struct model_job *j = l->job;
    struct model_state *s = &j->state;
    int64_t before = s->lost;
    char text[96], worker[16];

    snprintf(worker, sizeof(worker), "%s", s->worker);
    s->token = ++m->n.tokens;
    snprintf(s->worker, sizeof(s->worker), "-");
    s->lost += l->charged;
    if (s->flag) {
        model_end_cancelled(m, j);
        return 'c';
    }
    if (!j->record ||
        (l->charged && s->max_deliveries > 0 && s->lost >= s->max_deliveries)) {
        model_move_key(m, j, j->record ? 'x' : '-');
        model_end_of(m, s->key, s->order, j);
        model_die(m, j);
        m->n.buried++;
        snprintf(text, sizeof(text),
                 "worker %s died with it, loss %" PRId64 " of %" PRId64, worker, s->lost,
                 s->max_deliveries);
        if (j->record)
            model_add_run(m, j, "lost_worker", text, worker, "");
        else
            model_become_stub(m, j);
        model_dead_in(m, j);
        return 'd';
    }
    model_move_key(m, j, ' ');
    snprintf(text, sizeof(text), "worker %s was lost", worker);
    if (l->charged)
        model_add_run(m, j, "lost", text, worker, "");
    return l->charged && before >= 1 ? 'w' : 'f';
}

/* Second and later losses wait 1 s, 2 s, 4 s, ... at most an hour. */
static int64_t
loss_delay(int64_t before)
{
    int64_t ms = 1000;

    for (int64_t i = 1; i < before && ms < 3600000; i++)
        ms *= 2;
    return ms < 3600000 ? ms : 3600000;
}

static void
lose_all(struct model *m, struct loss *losses, size_t n, int64_t counts[4])
{
    struct model_job *front[MODEL_JOBS];
    size_t front_n = 0;

    if (n > 0 && !m->stream) /* entries know their order */
        qsort(losses, n, sizeof(losses[0]), compare_losses);
    memset(counts, 0, 4 * sizeof(counts[0]));
    for (size_t i = 0; i < n; i++) {
        int64_t before = losses[i].job->state.lost;

        switch (lose(m, &losses[i])) {
        case 'f':
            front[front_n++] = losses[i].job;
            counts[0]++;
            break;
        case 'w':
            model_delay(m, losses[i].job, m->now + loss_delay(before));
            counts[1]++;
            break;
        case 'd':
            counts[2]++;
            break;
        default:
            counts[3]++;
        }
    }
    model_all_to_front(m, front, front_n);
    m->n.reclaimed += counts[0];
    m->n.reclaimed_delayed += counts[1];
    model_wake_worker(m);
}

/* Was this delivery claimed ahead in its worker's last call? */
static bool
is_ahead(const struct model *m, const struct model_job *j)
{
    int w = model_worker_of(j->state.worker);

    for (size_t i = 0; w >= 0 && m->claims[w].is_set && i < m->claims[w].n; i++) {
        const struct model_claim *l = &m->claims[w].list[i];

        if (l->job == j && l->token == j->state.token)
            return l->ahead;
    }
    return false;
}

/* Pending entries of a stream behind the one where reclaim goes on, oldest first. */
static size_t
pending_rows(struct model *m, struct model_job **out)
{
    size_t n = 0;

    for (size_t i = 0; i < m->jobs_n; i++) {
        struct model_job *j = &m->jobs[i];
        size_t at = n;

        if (j->entry <= m->reclaim_at || (!j->front && j->place != MODEL_PROCESSING))
            continue;
        for (; at > 0 && out[at - 1]->entry > j->entry; at--)
            out[at] = out[at - 1];
        out[at] = j;
        n++;
    }
    return n;
}

static void
pull_back(struct model *m, const struct model_reclaim *r)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = m->stream ? pending_rows(m, all) : model_jobs_at(m, MODEL_PROCESSING, all);

    for (size_t i = 0; i < n; i++) {
        if (m->stream && !all[i]->front && !all[i]->gone &&
            all[i]->delivered_at >= m->now) {
            all[i]->delivered_at = m->now;
            if (all[i]->unstored) /* nothing else says when it began */
                all[i]->state.started = m->now;
        } else if (!m->stream && all[i]->score > m->now + r->lease_max)
            all[i]->score = m->now + model_lease_of(m, all[i], r->lease);
    }
}

/* By the ends of the leases. Answers how many, and whether there may be more. */
static size_t
leases_over(struct model *m, const struct model_reclaim *r, struct loss *losses,
            bool *more)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = model_jobs_at(m, MODEL_PROCESSING, all), lost = 0;

    for (; lost < n && lost < r->limit && all[lost]->score <= m->now; lost++)
        losses[lost] = (struct loss){all[lost], !is_ahead(m, all[lost])};
    *more = lost == r->limit;
    return lost;
}

/* By the order of the entries, from where the last call stopped. */
static size_t
entries_over(struct model *m, const struct model_reclaim *r, struct loss *losses,
             bool *more)
{
    struct model_job *rows[MODEL_JOBS];
    size_t n = pending_rows(m, rows), lost = 0;
    int64_t end = m->reclaim_at > 0 ? m->reclaim_end : -1;

    *more = false;
    for (size_t i = 0; i < n && !*more; i++) {
        int64_t entry = rows[i]->entry;

        if (!rows[i]->front) {
            int64_t ends = rows[i]->delivered_at + model_lease_of(m, rows[i], r->lease);

            if (ends <= m->now && rows[i]->gone)
                losses[lost++] = (struct loss){model_part_with_entry(m, rows[i]), true};
            else if (ends <= m->now)
                losses[lost++] = (struct loss){rows[i], !is_ahead(m, rows[i])};
            else if (end < 0 || ends < end)
                end = ends;
        }
        *more = lost == r->limit && i + 1 < n;
        if (*more)
            m->reclaim_at = entry;
    }
    if (!*more)
        m->reclaim_at = 0;
    m->reclaim_end = end;
    return lost;
}

static int64_t
next_lease_end(struct model *m)
{
    struct model_job *all[MODEL_JOBS];

    if (m->stream)
        return m->reclaim_end;
    return model_jobs_at(m, MODEL_PROCESSING, all) > 0 ? all[0]->score : -1;
}

void
model_reclaim(struct model *m, const struct model_reclaim *r, struct wr_buf *out)
{
    struct loss losses[MODEL_JOBS];
    int64_t counts[4], step = r->gap >= 0 ? m->now - r->last - r->gap : 0, end, at;
    size_t lost;
    bool more;

    if (r->quiet || r->gap < 0 || 2 * r->gap > r->lease || step > 1000 || step < -1000) {
        pull_back(m, r);
        say(out, "QUIET %" PRId64 " -1 0 0 0 0", m->now);
        return;
    }
    at = m->reclaim_at; /* these are looked at in this call, wherever the next goes on */
    lost = m->stream ? entries_over(m, r, losses, &more)
                     : leases_over(m, r, losses, &more);
    end = m->reclaim_at;
    m->reclaim_at = at;
    pull_back(m, r);
    m->reclaim_at = end;
    lose_all(m, losses, lost, counts);
    end = next_lease_end(m);
    say(out, "%s %" PRId64 " %" PRId64, more ? "MORE" : "OK", m->now,
        end < 0        ? -1
        : end > m->now ? end - m->now
                       : 0);
    for (int i = 0; i < 4; i++)
        model_say_int(out, counts[i]);
}

void
model_reclaim_held(struct model *m, int worker, const struct model_answer *a, size_t n,
                   struct wr_buf *out)
{
    struct loss losses[MODEL_JOBS];
    struct model_job *named[MODEL_JOBS];
    struct wr_buf notes = {0};
    size_t lost = 0;
    int64_t counts[4];

    for (size_t i = 0; i < n; i++) {
        if (model_is_in(named, lost, a[i].job) ||
            model_held_word(m, a[i].job, a[i].token, worker)) {
            say(&notes, "%zu STALE", i);
            continue;
        }
        named[lost] = a[i].job;
        losses[lost++] = (struct loss){a[i].job, a[i].started};
    }
    for (size_t i = 0; m->claims[worker].is_set && i < m->claims[worker].n; i++) {
        struct model_claim *l = &m->claims[worker].list[i];

        if (model_is_in(named, lost, l->job) || !model_is_held(l->job, l->token, worker))
            continue;
        named[lost] = l->job;
        losses[lost++] = (struct loss){l->job, false};
    }
    lose_all(m, losses, lost, counts);
    model_forget_claims(m, worker);
    m->offered[worker] = 0;
    say(out, "OK");
    for (int i = 0; i < 4; i++)
        model_say_int(out, counts[i]);
    model_append(out, &notes);
}

void
model_forget(struct model *m, size_t limit, size_t count_max, int64_t bytes_max,
             struct wr_buf *out)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = model_jobs_at(m, MODEL_KEPT, all), i = 0;
    int64_t freed = 0, bytes = m->n.kept_bytes;

    for (; i < n && i < limit; i++) {
        bool due = all[i]->score <= m->now;

        if (!due && n - i <= count_max && bytes - freed <= bytes_max)
            break;
        freed += model_record_bytes(all[i]) + (int64_t)strlen(all[i]->result);
        all[i]->place = MODEL_WAITS;
        if (all[i]->has_state)
            model_free_key(m, all[i]->state.key, all[i]);
        model_forget_job(all[i]);
    }
    m->n.kept_bytes -= freed;
    if (i == n)
        m->n.kept_bytes = 0;
    m->n.forgotten += (int64_t)i;
    say(out, "%s %zu", i == limit ? "MORE" : "OK", i);
    if (i == n)
        say(out, "-1");
    else
        model_say_int(out, all[i]->score > m->now ? all[i]->score - m->now : 0);
}

static int
compare_ids(const void *a, const void *b)
{
    return strcmp((*(struct model_job *const *)a)->id,
                  (*(struct model_job *const *)b)->id);
}

/* Whose record was deleted by hand, and who does not run, will not leave its line. */
static int
mend_lines(struct model *m)
{
    struct model_job *over[MODEL_JOBS];
    size_t n = 0;

    for (int l = 0; l < MODEL_LINES; l++) {
        for (size_t i = 0; i < m->lines[l].n; i++) {
            struct model_job *j = m->lines[l].jobs[i];

            if ((!j->record && j->place != MODEL_PROCESSING) || j->place == MODEL_DEAD ||
                j->place == MODEL_KEPT)
                over[n++] = j;
        }
    }
    if (n > 0)
        qsort(over, n, sizeof(over[0]), compare_ids);
    for (size_t i = 0; i < n; i++) {
        model_leave_line(m, over[i]);
        model_let_in(m, over[i]);
    }
    return (int)n;
}

void
model_sweep(struct model *m, int64_t idle, struct wr_buf *out)
{
    int removed = 0;

    for (int i = 0; i < MODEL_CHANNELS; i++) {
        if (m->channels[i].is_set && m->now - m->channels[i].at > idle) {
            m->channels[i].is_set = false;
            removed++;
        }
    }
    for (int i = 0; i < MODEL_WORKERS; i++) {
        if (m->claims[i].is_set && m->now - m->claims[i].at > idle) {
            model_forget_claims(m, i);
            removed++;
        }
        if (m->offered[i] > 0 && m->now - m->offered[i] >= idle)
            m->offered[i] = 0;
    }
    for (int i = 0; i < MODEL_KEYS; i++) {
        if (m->keys[i].window >= 0 && m->keys[i].window <= m->now) {
            m->keys[i].window = -1;
            removed++;
        }
    }
    removed += mend_lines(m);
    for (size_t i = 0; i < m->jobs_n; i++) {
        struct model_job *j = &m->jobs[i];
        int64_t last = 0;

        for (size_t k = 0; k < j->waiters_n; k++)
            last = j->waiters[k].until > last ? j->waiters[k].until : last;
        if (last <= m->now)
            j->waiters_n = 0;
    }
    say(out, "OK 0 0 %d", removed);
}
