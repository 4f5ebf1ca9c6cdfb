/* The model's workers: what they are handed, and their answers; see model.h. */
#include "script/model_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
model_worker_of(const char *name)
{
    for (int i = 0; i < MODEL_WORKERS; i++) {
        if (strcmp(model_worker(i), name) == 0)
            return i;
    }
    return -1;
}

int64_t
model_lease_of(const struct model *m, const struct model_job *j, int64_t otherwise)
{
    int w = model_worker_of(j->state.worker);

    return w >= 0 && m->claims[w].is_set ? m->claims[w].lease : otherwise;
}

/* ---- reserve ---- */

static void
say_job(struct wr_buf *out, const struct model_job *j)
{
    char state[256], record[256];

    model_state_text(j, state, sizeof(state));
    model_record_text(j, record, sizeof(record));
    say(out, "%s", j->id);
    say(out, "%s", state);
    say(out, "%s", record);
}

struct choice {
    struct model_job *taken[2 * MODEL_BATCH], *seen[MODEL_READY];
    struct model_job *lost[MODEL_READY], *late[MODEL_READY], *shelved[MODEL_READY];
    bool copy[MODEL_READY]; /* of lost: its id is another job's now */
    size_t taken_n, seen_n, lost_n, late_n, shelved_n, used, skipped;
    struct model_job *skips[MODEL_READY];
    int64_t bytes;
    bool more;
};

/* A stub's type is "-". */
static bool
is_of_type(const struct model_job *j, const char *type)
{
    return strcmp(j->head + 2, type) == 0;
}

/* What becomes of the id that is next. False: stop before it. */
static bool
choose_one(const struct model *m, const struct model_reserve *r, struct choice *c,
           struct model_job *j)
{
    bool again = model_is_in(c->seen, c->seen_n, j);

    if (j->tomb && !again) {
        c->skips[c->skipped++] = j;
        c->seen[c->seen_n++] = j;
        return true;
    }
    if (c->taken_n > 0 && c->bytes + model_record_bytes(j) > r->bytes) {
        c->more = true;
        return false;
    }
    if ((j->has_state || j->front) && c->taken_n >= r->free)
        return false;
    if (again || j->place != MODEL_WAITS) {
        c->copy[c->lost_n] = true;
        c->lost[c->lost_n++] = j;
        return true;
    }
    c->seen[c->seen_n++] = j;
    if (!j->record || model_is_stub(j))
        c->lost[c->lost_n++] = j;
    else if (j->options.expires > 0 && !j->has_state &&
             j->enqueued_at + j->options.expires <= m->now)
        c->late[c->late_n++] = j;
    else if (r->type && !is_of_type(j, r->type))
        c->shelved[c->shelved_n++] = j;
    else {
        c->bytes += model_record_bytes(j);
        c->taken[c->taken_n++] = j;
    }
    return true;
}

static void
shelve(struct model *m, const struct model_reserve *r, struct model_job *j)
{
    char text[64];

    snprintf(text, sizeof(text), "no handler for type %s on worker %s", j->head + 2,
             model_worker(r->worker));
    model_add_error_once(m, j, "no_handler", text);
    model_delay(m, j, m->now + 5000);
    m->n.shelved++;
    snprintf(m->shelved_last, sizeof(m->shelved_last), "%" PRId64 " %s", m->now,
             j->head + 2);
}

void
model_bury_lost(struct model *m, struct model_job *j, bool is_copy)
{
    char name[24];

    m->n.lost_body_ready++;
    if (is_copy) {
        snprintf(name, sizeof(name), "lost-%" PRId64, ++m->n.tokens);
        j = model_job(m, name);
    } else {
        model_leave_line(m, j);
        if (j->has_state) {
            model_free_key(m, j->state.key, j);
            model_next_key(m, j->state.key, j);
        }
    }
    model_become_stub(m, j);
    model_die(m, j);
    model_dead_in(m, j);
}

static void
apply_refused(struct model *m, const struct model_reserve *r, struct choice *c)
{
    m->ready_n -= c->used;
    for (size_t i = 0; i < c->late_n && m->stream; i++)
        model_drop_entry(m, c->late[i]);
    for (size_t i = 0; i < c->shelved_n && m->stream; i++)
        model_drop_entry(m, c->shelved[i]);
    for (size_t i = 0; i < c->skipped; i++)
        c->skips[i]->tomb = false;
    m->n.skipped += (int64_t)c->skipped;
    for (size_t i = 0; i < c->lost_n; i++)
        c->lost[i]->meant = true;
    for (size_t i = 0; i < c->lost_n; i++)
        model_bury_lost(m, c->lost[i], c->copy[i]);
    for (size_t i = 0; i < c->lost_n; i++)
        c->lost[i]->meant = false;
    for (size_t i = 0; i < c->late_n; i++) {
        model_ended(m, c->late[i], "expired", "");
        model_free_key(m, c->late[i]->options.key, c->late[i]);
        model_end_of(m, c->late[i]->options.key, c->late[i]->options.order, c->late[i]);
        model_forget_job(c->late[i]);
    }
    m->n.expired_ready += (int64_t)c->late_n;
    for (size_t i = 0; i < c->shelved_n; i++)
        shelve(m, r, c->shelved[i]);
}

/* Does the end of the job need to know something of its record? */
static bool
has_ends(const struct model_reserve *r, const struct model_job *j)
{
    const struct model_options *o = &j->options;

    return o->keep > 0 || r->keep > 0 || o->key >= 0 || o->order >= 0 ||
           o->max_deliveries != 3;
}

void
model_lease(struct model *m, const struct model_reserve *r, struct model_job *j)
{
    struct model_state *s = &j->state;

    if (!j->has_state)
        memset(s, 0, sizeof(*s));
    if (m->stream) {
        j->unstored = !j->has_state && !has_ends(r, j);
        j->front = false;
        j->delivered_at = m->now;
        s->token = MODEL_TOKEN(j->entry, m->generation, ++j->count);
    } else
        s->token = ++m->n.tokens;
    j->has_state = true;
    snprintf(s->worker, sizeof(s->worker), "%s", model_worker(r->worker));
    s->started = m->now;
    s->deliveries++;
    s->flag = false; /* of another life of the id */
    s->keep = j->options.keep > 0 ? j->options.keep : r->keep;
    s->key = j->options.key;
    s->order = j->options.order;
    snprintf(s->states, sizeof(s->states), "%s", j->options.states);
    if (strchr(s->states, 's'))
        model_free_key(m, s->key, j);
    s->max_deliveries = j->options.max_deliveries;
    j->place = MODEL_PROCESSING;
    j->score = m->now + r->lease;
    m->n.deliveries++;
}

static bool
is_repeat(const struct model *m, const struct model_reserve *r)
{
    return m->claims[r->worker].is_set && m->claims[r->worker].call == r->call;
}

/* An empty stream is not looked at: what was deleted in front is booked when a job comes.
 */
static bool
is_empty(const struct model *m)
{
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].entry > 0 && !m->jobs[i].gone)
            return false;
    }
    return m->stream;
}

static void
plan(const struct model *m, const struct model_reserve *r, struct choice *c, bool empty)
{
    memset(c, 0, sizeof(*c));
    for (size_t i = m->ready_n;
         !m->paused && !empty && i > 0 && c->taken_n < r->free + r->ahead; i--) {
        if (!choose_one(m, r, c, m->ready[i - 1]))
            break;
        c->used++;
    }
}

/* Of a job that is held. */
static void
renew(struct model *m, struct model_job *j, int64_t lease_ms)
{
    j->score = m->now + lease_ms;
    if (!j->gone)
        j->delivered_at = m->now;
    j->unstored = false;
}

/* Adds the jobs to `jobs`; answers the word. */
static const char *
reserve_jobs(struct model *m, const struct model_reserve *r, struct choice *c,
             struct wr_buf *jobs)
{
    if (is_repeat(m, r)) {
        for (size_t i = 0; i < m->claims[r->worker].n; i++) {
            struct model_claim *l = &m->claims[r->worker].list[i];

            if (!model_is_held(l->job, l->token, r->worker))
                continue;
            say_job(jobs, l->job);
            renew(m, l->job, r->lease);
        }
        if (m->claims[r->worker].head == MODEL_HANDED) { /* now it has heard of it */
            m->claims[r->worker].head = MODEL_ASKED;
            m->claims[r->worker].at = m->now;
            m->claims[r->worker].lease = r->lease;
        }
        model_wake_worker(m);
        return "REPEAT";
    }
    apply_refused(m, r, c);
    m->claims[r->worker].is_set = true;
    m->claims[r->worker].head = MODEL_ASKED;
    m->claims[r->worker].call = r->call;
    m->claims[r->worker].at = m->now;
    m->claims[r->worker].lease = r->lease;
    m->claims[r->worker].n = c->taken_n;
    for (size_t i = 0; i < c->taken_n; i++) {
        model_lease(m, r, c->taken[i]);
        m->claims[r->worker].list[i] = (struct model_claim){
            c->taken[i], c->taken[i]->state.token, i >= r->free};
        say_job(jobs, c->taken[i]);
    }
    model_wake_worker(m);
    if (m->paused)
        return "PAUSED";
    if (c->more)
        return "MORE";
    if (c->taken_n > 0 || r->free + r->ahead == 0)
        return "OK";
    return c->shelved_n > 0 ? "SHELVED" : "EMPTY";
}

void
model_append(struct wr_buf *out, struct wr_buf *more)
{
    if (more->len > 0) {
        wr_buf_add_str(out, " ");
        wr_buf_add(out, more->ptr, more->len);
    }
    wr_buf_fini(more);
}

void
model_reserve(struct model *m, const struct model_reserve *r, struct wr_buf *out)
{
    static struct choice c;
    struct wr_buf jobs = {0};

    m->wakes_later = true;
    plan(m, r, &c, is_empty(m));
    say(out, "%s", reserve_jobs(m, r, &c, &jobs));
    model_append(out, &jobs);
    m->wakes_later = false;
}

/* ---- answers ---- */

/* Answers which are held; notes the others. */
static size_t
held_of(struct model *m, int worker, const struct model_answer *a, size_t n,
        const struct model_answer **held, struct wr_buf *out, size_t *notes)
{
    struct model_job *seen[MODEL_BATCH];
    size_t held_n = 0;

    for (size_t i = 0; i < n; i++) {
        const char *word = model_held_word(m, a[i].job, a[i].token, worker);

        if (!word && model_is_in(seen, held_n, a[i].job))
            word = "ANSWERED";
        if (word) {
            say(out, "%zu %s", i, word);
            *notes += 2;
            m->n.stale += strcmp(word, "STALE") == 0;
        } else {
            seen[held_n] = a[i].job;
            held[held_n++] = &a[i];
        }
    }
    return held_n;
}

void
model_end_cancelled(struct model *m, struct model_job *j)
{
    model_ended(m, j, "cancelled", "");
    model_free_key(m, j->state.key, j);
    model_end_of(m, j->state.key, j->state.order, j);
    model_drop_entry(m, j);
    j->place = MODEL_WAITS;
    model_forget_job(j);
    m->n.cancelled_processing++;
}

/* As held_of, and flagged ones end here. */
static size_t
movable_of(struct model *m, int worker, const struct model_answer *a, size_t n,
           const struct model_answer **held, struct wr_buf *out)
{
    size_t notes = 0, left = 0, held_n = held_of(m, worker, a, n, held, out, &notes);

    for (size_t i = 0; i < held_n; i++) {
        if (held[i]->job->state.flag) {
            model_end_cancelled(m, held[i]->job);
            say(out, "%zu CANCELLED", (size_t)(held[i] - a));
        } else
            held[left++] = held[i];
    }
    return left;
}

static size_t
ack_items(struct model *m, int worker, const struct model_answer *a, size_t n,
          struct wr_buf *out)
{
    const struct model_answer *held[MODEL_BATCH];
    size_t notes = 0, held_n = held_of(m, worker, a, n, held, out, &notes);

    for (size_t i = 0; i < held_n; i++) {
        struct model_job *j = held[i]->job;

        m->n.done++;
        model_ended(m, j, j->state.keep > 0 ? "kept" : "done",
                    j->state.keep > 0 ? "" : held[i]->text);
        if (j->state.keep > 0)
            model_store_body(j);
        model_drop_entry(m, j);
        model_end_of(m, j->state.key, j->state.order, j);
        if (j->state.keep == 0) {
            model_free_key(m, j->state.key, j);
            j->place = MODEL_WAITS;
            model_forget_job(j);
            continue;
        }
        model_move_key(m, j, 'k');
        j->unstored = false;
        j->state.attempts++;
        j->state.lost = 0;
        j->place = MODEL_KEPT;
        j->score = m->now + j->state.keep;
        if (held[i]->text[0])
            snprintf(j->result, sizeof(j->result), "%s", held[i]->text);
        if (held[i]->facts[0])
            model_add_run(m, j, "done", "", model_worker(worker), held[i]->facts);
        m->n.kept_in++;
        m->n.kept_bytes += (int64_t)strlen(held[i]->text) + model_record_bytes(j);
    }
    return notes;
}

void
model_ack(struct model *m, int worker, const struct model_answer *a, size_t n,
          struct wr_buf *out)
{
    say(out, "OK");
    ack_items(m, worker, a, n, out);
}

void
model_ack_then(struct model *m, int worker, const struct model_answer *a, size_t n,
               struct wr_buf *out)
{
    int64_t before = m->n.done;

    model_ack(m, worker, a, n, out);
    if (m->n.done > before)
        m->due = true; /* wakes the scheduler, which looks into the outbox */
}

void
model_exchange(struct model *m, const struct model_reserve *r,
               const struct model_answer *a, size_t n, struct wr_buf *out)
{
    static struct choice c;
    struct wr_buf notes = {0}, jobs = {0};
    bool was_empty = is_empty(m);
    size_t notes_n;

    m->wakes_later = true;
    notes_n = ack_items(m, r->worker, a, n, &notes);
    plan(m, r, &c, was_empty && is_empty(m));
    say(out, "%s", reserve_jobs(m, r, &c, &jobs));
    say(out, "%zu", notes_n);
    model_append(out, &notes);
    model_append(out, &jobs);
    m->wakes_later = false;
}

void
model_retry(struct model *m, int worker, const struct model_answer *a, size_t n,
            struct wr_buf *out)
{
    const struct model_answer *held[MODEL_BATCH];
    size_t held_n;

    say(out, "OK");
    held_n = movable_of(m, worker, a, n, held, out);
    for (size_t i = 0; i < held_n; i++) {
        struct model_job *j = held[i]->job;

        if (held[i]->snoozed)
            j->state.snoozes++;
        else
            j->state.attempts++;
        j->state.lost = 0;
        model_move_key(m, j, ' ');
        model_add_run(m, j, held[i]->snoozed ? "snoozed" : "failed", held[i]->text,
                      model_worker(worker), held[i]->facts);
        model_store_body(j);
        model_delay(m, j, m->now + held[i]->delay);
        m->n.retried++;
    }
}

void
model_bury(struct model *m, int worker, const struct model_answer *a, size_t n,
           struct wr_buf *out)
{
    const struct model_answer *held[MODEL_BATCH];
    size_t held_n;

    say(out, "OK");
    held_n = movable_of(m, worker, a, n, held, out);
    for (size_t i = 0; i < held_n; i++) {
        struct model_job *j = held[i]->job;

        j->state.attempts++;
        j->state.lost = 0;
        model_move_key(m, j, 'x');
        model_end_of(m, j->state.key, j->state.order, j);
        model_add_run(m, j, "permanent", held[i]->text, model_worker(worker),
                      held[i]->facts);
        model_store_body(j);
        model_die(m, j);
        model_dead_in(m, j);
        m->n.buried++;
    }
}

static int
compare_tokens(const void *a, const void *b)
{
    const struct model_job *x = *(struct model_job *const *)a;
    const struct model_job *y = *(struct model_job *const *)b;

    return x->state.token < y->state.token ? -1 : x->state.token > y->state.token;
}

/* To the front in the order of their deliveries: the oldest is taken next. */
void
model_all_to_front(struct model *m, struct model_job **jobs, size_t n)
{
    for (size_t i = n; i > 0; i--)
        model_to_front(m, jobs[i - 1]);
}

void
model_release(struct model *m, int worker, const struct model_answer *a, size_t n,
              struct wr_buf *out)
{
    const struct model_answer *held[MODEL_BATCH];
    struct model_job *jobs[MODEL_BATCH];
    size_t held_n, jobs_n = 0;

    say(out, "OK");
    held_n = movable_of(m, worker, a, n, held, out);
    for (size_t i = 0; i < held_n; i++) {
        struct model_job *j = held[i]->job;

        j->state.interrupted++;
        j->unstored = false;
        if (held[i]->facts[0])
            model_add_run(m, j, "released", "", model_worker(worker), held[i]->facts);
        model_move_key(m, j, ' ');
        if (!j->gone) /* else it stays until it is reclaimed, and booked */
            jobs[jobs_n++] = j;
    }
    m->n.released += (int64_t)jobs_n;
    if (jobs_n > 0)
        qsort(jobs, jobs_n, sizeof(jobs[0]), compare_tokens);
    model_all_to_front(m, jobs, jobs_n);
    model_wake_worker(m);
}

void
model_extend(struct model *m, int worker, int64_t lease_ms, const struct model_answer *a,
             size_t n, struct wr_buf *out)
{
    struct model_job *renewed[MODEL_BATCH];
    size_t renewed_n = 0;

    say(out, "OK");
    for (size_t i = 0; i < n; i++) {
        struct model_job *j = a[i].job;
        const char *word = model_held_word(m, j, a[i].token, worker);

        if (!word && a[i].limit > 0 && m->now >= j->state.started + a[i].limit)
            word = "TIMEOUT";
        else if (!word) {
            renewed[renewed_n++] = j;
            word = j->state.flag ? "CANCEL" : NULL;
        }
        if (word)
            say(out, "%zu %s", i, word);
    }
    for (size_t i = 0; i < renewed_n; i++) /* all were judged before */
        renew(m, renewed[i], lease_ms);
}

void
model_progress(struct model *m, int worker, const struct model_answer *a,
               struct wr_buf *out)
{
    const char *word = model_held_word(m, a->job, a->token, worker);

    if (!word) {
        snprintf(a->job->state.progress, sizeof(a->job->state.progress), "%s", a->text);
        a->job->unstored = false;
        word = a->job->state.flag ? "CANCEL" : "OK";
    }
    say(out, "%s", word);
}
