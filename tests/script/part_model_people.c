/* What people decide about jobs, and do to them by hand; see model.h. */
#include "script/model_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The record names the key of a job that waits. */
static int
waiting_key(const struct model_job *j)
{
    if (j->record)
        return j->options.key;
    return j->has_state ? j->state.key : -1;
}

/* The same for its line. Nothing says it of one without both: it leaves any. */
static int
waiting_order(const struct model_job *j)
{
    if (j->record)
        return j->options.order;
    return j->has_state && (j->state.key >= 0 || j->state.order >= 0) ? j->state.order
                                                                      : 0;
}

static const char *
cancel_one(struct model *m, struct model_job *j, bool seen)
{
    if (j->place == MODEL_PROCESSING) {
        j->state.flag = true;
        j->unstored = false;
        return "FLAGGED";
    }
    if (seen)
        return "GONE";
    if (j->place == MODEL_DEAD)
        return "DEAD";
    if (j->place == MODEL_KEPT)
        return "DONE";
    if (j->place == MODEL_DELAYED) {
        model_ended(m, j, "cancelled", "");
        model_free_key(m, waiting_key(j), j);
        j->place = MODEL_WAITS;
        model_forget_job(j);
        m->n.cancelled_delayed++;
        return "DELAYED";
    }
    if (!j->record)
        return "GONE";
    model_ended(m, j, "cancelled", "");
    model_free_key(m, waiting_key(j), j);
    model_forget_job(j);
    if (m->stream)
        model_drop_entry(m, j);
    else
        j->tomb = true;
    m->n.cancelled_ready++;
    return "READY";
}

void
model_cancel(struct model *m, struct model_job *const *jobs, size_t n, struct wr_buf *out)
{
    int64_t before = m->n.cancelled_ready;
    int keys[MODEL_BATCH], orders[MODEL_BATCH];
    bool all_ended[MODEL_BATCH];

    say(out, "OK");
    for (size_t i = 0; i < n; i++) {
        int key = waiting_key(jobs[i]), order = waiting_order(jobs[i]);
        const char *word = cancel_one(m, jobs[i], model_is_in(jobs, i, jobs[i]));
        bool ended = strcmp(word, "READY") == 0 || strcmp(word, "DELAYED") == 0;

        keys[i] = ended ? key : -1;
        all_ended[i] = ended;
        orders[i] = order;
        say(out, "%s", word);
        say(out, "%s", strcmp(word, "FLAGGED") == 0 ? jobs[i]->state.worker : "");
    }
    if (m->n.cancelled_ready > before)
        model_pop_tombs(m);
    for (size_t i = 0; i < n; i++) {
        if (!all_ended[i])
            continue;
        model_free_key(m, keys[i], jobs[i]);
        model_end_of(m, keys[i], orders[i], jobs[i]);
    }
}

/* It does not wait for the end of another any more. */
static void
unpark(struct model *m, const struct model_job *j)
{
    int key = j->options.key;

    if (key >= 0 && m->keys[key].holder == j)
        m->keys[key].before = NULL;
}

/* due "": now, before all others. */
void
model_reschedule(struct model *m, struct model_job *j, const char *due,
                 struct wr_buf *out)
{
    int64_t at = model_due_of(m, due);

    if (!j->record)
        say(out, "GONE ");
    else if (j->place != MODEL_WAITS && j->place != MODEL_DELAYED)
        say(out, "OTHER %s", model_place_word(j));
    else if (j->place == MODEL_WAITS && m->ready_n <= model_tombs(m))
        say(out, "BROKEN ");
    else if (j->place == MODEL_DELAYED && j->score >= MODEL_PARKED) {
        if (at < 0) {
            say(out, "BEHIND %s", model_behind(m, j)->id);
            return;
        }
        model_delay(m, j, MODEL_PARKED + at);
        say(out, "DELAYED %" PRId64, at);
    } else if (at >= 0) {
        unpark(m, j);
        if (j->place == MODEL_WAITS)
            model_defer(m, j, at);
        else
            model_delay(m, j, at);
        say(out, "DELAYED %" PRId64, at);
    } else {
        unpark(m, j);
        if (j->place == MODEL_DELAYED) {
            if (due[0] || m->stream) /* which has no front for a new entry */
                model_to_back(m, j);
            else
                model_to_front(m, j);
            m->n.promoted++;
            model_wake_worker(m);
        }
        say(out, "READY ");
    }
}

/* The dead jobs asked for; notes those that are not dead. Positions in at[]. */
static size_t
choose_dead(struct model *m, struct model_job *const *jobs, size_t n, size_t limit,
            int64_t before, size_t skip, struct model_job **out, size_t *at,
            struct wr_buf *notes)
{
    struct model_job *all[MODEL_JOBS];
    size_t chosen = 0, all_n;

    if (!jobs) {
        all_n = model_jobs_at(m, MODEL_DEAD, all);
        for (; skip + chosen < all_n && chosen < limit; chosen++) {
            if (before >= 0 && all[skip + chosen]->score > before)
                break;
            out[chosen] = all[skip + chosen];
            at[chosen] = chosen;
        }
        return chosen;
    }
    for (size_t i = 0; i < n; i++) {
        if (jobs[i]->place != MODEL_DEAD || model_is_in(out, chosen, jobs[i])) {
            say(notes, "%zu GONE ", i);
            continue;
        }
        at[chosen] = i;
        out[chosen++] = jobs[i];
    }
    return chosen;
}

/* Why it cannot live again; NULL: it can. */
static const char *
replay_word(const struct model *m, const struct model_job *j,
            struct model_job *const *taken, const char **detail)
{
    const struct model_job *h = NULL;

    *detail = "";
    if (!j->record || strncmp(j->tail, " lost_body=1", 12) == 0)
        return "NOBODY";
    if (!j->has_state || j->state.key < 0)
        return NULL;
    h = taken[j->state.key] ? taken[j->state.key] : model_key_holder(m, j->state.key, j);
    if (!h || h == j)
        return NULL;
    *detail = h->id;
    return "UNIQUE";
}

static void
revive(struct model *m, struct model_job *j)
{
    struct model_state *s = &j->state;

    if (j->has_state)
        s->attempts = s->lost = s->interrupted = s->snoozes = 0;
    m->n.replayed++;
}

/* An ordered one goes to the end of its line. */
static void
revive_all(struct model *m, struct model_job **jobs, size_t n)
{
    struct model_job *wait[MODEL_JOBS], *lined[MODEL_JOBS] = {0};
    bool full[MODEL_LINES] = {false};
    int orders[MODEL_JOBS] = {0};
    size_t wait_n = 0, lined_n = 0;

    for (size_t i = 0; i < n; i++) {
        int order = jobs[i]->has_state ? jobs[i]->state.order : -1;
        bool waits = order >= 0 && (full[order] || m->lines[order].n > 0);

        revive(m, jobs[i]);
        if (order >= 0) {
            full[order] = true;
            orders[lined_n] = order;
            lined[lined_n++] = jobs[i];
        }
        if (waits)
            wait[wait_n++] = jobs[i];
        else
            model_to_back(m, jobs[i]);
    }
    for (size_t i = 0; i < wait_n; i++)
        model_delay(m, wait[i], MODEL_PARKED);
    m->n.deferred += (int64_t)wait_n;
    model_join_lines(m, lined, orders, lined_n);
}

void
model_replay(struct model *m, struct model_job *const *jobs, size_t n, size_t limit,
             int64_t before, size_t skip, struct wr_buf *out)
{
    struct model_job *ids[MODEL_JOBS], *moved[MODEL_JOBS], *taken[MODEL_KEYS] = {0};
    size_t at[MODEL_JOBS], moved_n = 0, i;
    struct wr_buf notes = {0};
    size_t ids_n = choose_dead(m, jobs, n, limit, before, skip, ids, at, &notes);

    for (i = 0; i < ids_n; i++) {
        struct model_job *j = ids[i];
        const char *detail, *word = replay_word(m, j, taken, &detail);

        if (word) {
            say(&notes, "%zu %s %s", at[i], word, detail);
            continue;
        }
        if (j->has_state && j->state.key >= 0)
            taken[j->state.key] = j;
        moved[moved_n++] = j;
    }
    for (int k = 0; k < MODEL_KEYS; k++) {
        if (taken[k])
            m->keys[k].holder = taken[k];
    }
    model_dead_out(m, moved, moved_n);
    revive_all(m, moved, moved_n);
    if (moved_n > 0)
        model_wake_worker(m);
    say(out, "OK %zu %zu", moved_n, ids_n);
    model_append(out, &notes);
}

static void
remove_dead(struct model *m, struct model_job **ids, size_t n)
{
    model_dead_out(m, ids, n);
    for (size_t i = 0; i < n; i++) {
        if (ids[i]->has_state)
            model_free_key(m, ids[i]->state.key, ids[i]);
        model_forget_job(ids[i]);
    }
    m->n.purged += (int64_t)n;
}

void
model_purge(struct model *m, struct model_job *const *jobs, size_t n, size_t limit,
            int64_t before, struct wr_buf *out)
{
    struct model_job *ids[MODEL_JOBS];
    size_t at[MODEL_JOBS];
    struct wr_buf notes = {0};
    size_t ids_n = choose_dead(m, jobs, n, limit, before, 0, ids, at, &notes);

    remove_dead(m, ids, ids_n);
    say(out, "OK %zu", ids_n);
    model_append(out, &notes);
}

/* A limit of 0 is none. */
void
model_trim(struct model *m, const struct model_trim *t, struct wr_buf *out)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = model_jobs_at(m, MODEL_DEAD, all), i = 0;
    int64_t bytes = m->n.dead_bytes;

    for (; i < n && i < t->limit; i++) {
        if (!(t->count > 0 && n - i > t->count) &&
            !(t->age > 0 && all[i]->score + t->age <= m->now) &&
            !(t->bytes > 0 && bytes > t->bytes))
            break;
        bytes -= model_dead_bytes(all[i]);
    }
    remove_dead(m, all, i);
    m->n.trimmed += (int64_t)i;
    say(out, "%s %zu", i == t->limit ? "MORE" : "OK", i);
}

/* One that moves is paused already: its end will not resume it then. */
void
model_pause(struct model *m, struct wr_buf *out)
{
    bool moves = m->move.is_on && !m->move.was;

    say(out, m->paused && !moves ? "AGAIN" : "OK");
    if (m->paused && !moves)
        return;
    m->move.was = m->move.was || moves;
    m->paused = true;
    m->paused_at = m->now;
    snprintf(m->paused_by, sizeof(m->paused_by), "me -");
}

void
model_resume(struct model *m, struct wr_buf *out)
{
    say(out, m->paused ? "OK" : "AGAIN");
    m->paused = false;
    model_wake_worker(m);
}

void
model_errors_text(const struct model_job *j, struct wr_buf *out)
{
    for (size_t i = 0; i < j->errors_n; i++) {
        wr_buf_add_str(out, i > 0 ? "\n" : "");
        wr_buf_add_str(out, j->errors[i]);
    }
}

void
model_inspect(struct model *m, struct model_job *j, struct wr_buf *out)
{
    char record[256], state[256];

    if (!j->record) {
        say(out, "GONE %" PRId64, m->now);
        return;
    }
    model_record_text(j, record, sizeof(record));
    model_state_text(j, state, sizeof(state));
    say(out, "OK %" PRId64 " %s", m->now, model_place_word(j));
    if (j->place == MODEL_WAITS)
        say(out, "%s", "");
    else
        model_say_int(out, m->stream && j->place == MODEL_PROCESSING
                               ? j->delivered_at + model_lease_of(m, j, MODEL_LEASE)
                               : j->score);
    say(out, "%s", record);
    say(out, "%zu", strlen(record));
    say(out, "%s", state);
    say(out, "%s", j->result);
    say(out, "%zu", strlen(j->result));
    say(out, "%s", "");
    model_errors_text(j, out);
    say(out, "%s", "");
    model_runs_text(j, out);
    say(out, "%s", model_behind(m, j) ? model_behind(m, j)->id : "");
}

void
model_lose_body(struct model *m, struct model_job *j)
{
    size_t at = 0;

    if (!m->stream || j->entry == 0) {
        j->record = false;
    } else if (j->place == MODEL_PROCESSING) {
        j->record = false;
        j->gone = true;
    } else if (j->front) {
        model_part_with_entry(m, j);
    } else { /* nothing is left but its places elsewhere */
        while (m->ready[at] != j)
            at++;
        memmove(&m->ready[at], &m->ready[at + 1],
                sizeof(m->ready[0]) * (--m->ready_n - at));
        j->record = false;
        j->entry = j->count = 0;
        m->vanished++;
    }
}

/* What it had given out is nobody's any more, and it knows no front. An entry that was
 * deleted meanwhile leaves nothing but its places elsewhere. */
static void
leave_group(struct model *m, struct model_job *j)
{
    m->ungrouped += j->place == MODEL_PROCESSING;
    if (j->gone) {
        j->entry = 0;
        j->record = false;
        m->vanished++;
    }
    j->has_state = j->has_state && !j->unstored;
    j->front = j->unstored = j->gone = false;
    j->count = 0;
    j->place = MODEL_WAITS;
}

void
model_lose_group(struct model *m, const struct model_reserve *r, struct wr_buf *out)
{
    m->generation++;
    m->ready_n = 0;
    for (size_t i = 0; i < m->jobs_n; i++) {
        struct model_job *j = &m->jobs[i];
        size_t at;

        if (j->entry == 0)
            continue;
        leave_group(m, j);
        if (j->entry == 0)
            continue;
        for (at = m->ready_n++; at > 0 && m->ready[at - 1]->entry < j->entry; at--)
            m->ready[at] = m->ready[at - 1];
        m->ready[at] = j;
    }
    m->claims[r->worker].is_set = true;
    m->claims[r->worker].call = r->call;
    m->claims[r->worker].at = m->now;
    m->claims[r->worker].lease = r->lease;
    m->claims[r->worker].head = MODEL_ASKED;
    m->claims[r->worker].n = 0;
    model_wake_worker(m);
    say(out, m->paused ? "PAUSED" : "MORE");
}

int64_t
model_missing_entries(const struct model *m)
{
    int64_t n = m->vanished;

    for (size_t i = 0; i < m->jobs_n; i++)
        n += m->jobs[i].gone;
    return n;
}
