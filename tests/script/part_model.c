/* What a queue is made of, and the places of its jobs; see model.h. */
#include "script/model_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
model_check(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "model: %s\n", what);
        abort();
    }
}

/* Adds an element to a reply. */
void
model_say(struct wr_buf *out, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (out->len > 0)
        wr_buf_add_str(out, " ");
    wr_buf_add_str(out, text);
}

#define say model_say

void
model_say_int(struct wr_buf *out, int64_t number)
{
    say(out, "%" PRId64, number);
}

const char *
model_worker(int worker)
{
    static const char *const names[MODEL_WORKERS] = {"w0", "w1", "w2", "w3"};

    return worker < 0 ? "-" : names[worker];
}

const char *
model_channel(int channel)
{
    static const char *const names[MODEL_CHANNELS] = {"c0", "c1", "c2", "c3"};

    return channel < 0 ? "" : names[channel];
}

const char *
model_key(int key)
{
    static const char *const names[MODEL_KEYS] = {"k0", "k1", "k2"};

    return key < 0 ? "-" : names[key];
}

const char *
model_line(int order)
{
    static const char *const names[MODEL_LINES] = {"g0", "g1"};

    return order < 0 ? "" : names[order];
}

const char *
model_waits_at(int channel)
{
    return channel == 0 ? "ch0" : "ch1";
}

void
model_init(struct model *m, int64_t now, bool stream)
{
    wr_buf_fini(&m->told);
    memset(m, 0, sizeof(*m));
    m->now = now;
    m->stream = stream;
    for (int i = 0; i < MODEL_KEYS; i++)
        m->keys[i].window = -1;
}

/* Nothing is left of it, and nobody names it any more. Names of one letter stay. */
static bool
is_free(const struct model *m, const struct model_job *j)
{
    if (strlen(j->id) == 1 || j->record || j->has_state || j->tomb || j->gone ||
        j->meant || j->place != MODEL_WAITS || j->entry > 0 || j->indexed > 0 ||
        j->line > 0 || j->errors_n + j->runs_n + j->waiters_n > 0 || j->result[0])
        return false;
    for (size_t i = 0; i < m->ready_n; i++) {
        if (m->ready[i] == j)
            return false;
    }
    for (int i = 0; i < MODEL_KEYS; i++) {
        if (m->keys[i].holder == j || m->keys[i].before == j)
            return false;
    }
    for (int w = 0; w < MODEL_WORKERS; w++) {
        for (size_t i = 0; i < m->claims[w].n; i++) {
            if (m->claims[w].list[i].job == j)
                return false;
        }
    }
    return true;
}

struct model_job *
model_new_job(struct model *m, const char *id)
{
    struct model_job *j = m->jobs, *end = m->jobs + m->jobs_n;

    while (j < end && !is_free(m, j))
        j++;
    model_check(j < end || m->jobs_n < MODEL_JOBS, "too many jobs");
    m->jobs_n += j == end;
    memset(j, 0, sizeof(*j));
    snprintf(j->id, sizeof(j->id), "%s", id);
    return j;
}

struct model_job *
model_job(struct model *m, const char *id)
{
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (strcmp(m->jobs[i].id, id) == 0)
            return &m->jobs[i];
    }
    return model_new_job(m, id);
}

/* ---- small parts ---- */

/* Of a run of that worker, who told facts; NULL: of no run. */
void
model_add_run(struct model *m, struct model_job *j, const char *outcome, const char *text,
              const char *worker, const char *facts)
{
    char run[96] = "";

    if (worker)
        snprintf(run, sizeof(run), "=n:%" PRId64 ";worker:%s%s%s ", j->state.deliveries,
                 worker, facts[0] ? ";" : "", facts);
    if (j->errors_n == 10) {
        memmove(j->errors[0], j->errors[1], sizeof(j->errors[0]) * 9);
        j->errors_n = 9;
    }
    snprintf(j->errors[j->errors_n++], sizeof(j->errors[0]), "%" PRId64 " %s %s%s",
             m->now, outcome, run, text);
}

static void
add_error(struct model *m, struct model_job *j, const char *outcome, const char *text)
{
    model_add_run(m, j, outcome, text, NULL, "");
}

/* It is over: who waits for that is told. */
void
model_ended(struct model *m, struct model_job *j, const char *word, const char *result)
{
    for (size_t i = 0; i < j->waiters_n; i++)
        wr_buf_addf(&m->told, "%s/%" PRId64 " %s %s %s\n",
                    model_waits_at(j->waiters[i].channel), j->waiters[i].number, j->id,
                    word, result);
    j->waiters_n = 0;
}

void
model_forget_job(struct model_job *j)
{
    j->record = j->has_state = j->unstored = false;
    j->result[0] = '\0';
    j->errors_n = 0;
    j->runs_n = 0;
}

/* In place of the last line, if that tells of the same. */
void
model_add_error_once(struct model *m, struct model_job *j, const char *outcome,
                     const char *text)
{
    char wanted[32];

    snprintf(wanted, sizeof(wanted), " %s ", outcome);
    if (j->errors_n > 0 && strstr(j->errors[j->errors_n - 1], wanted))
        j->errors_n--;
    add_error(m, j, outcome, text);
}

size_t
model_record_text(const struct model_job *j, char *out, size_t cap)
{
    size_t stop;

    if (!j->record) {
        out[0] = '\0';
        return 0;
    }
    stop = strcspn(j->tail, "\n");
    return (size_t)snprintf(out, cap, "%s %" PRId64 "%.*s%s%s%s", j->head, j->enqueued_at,
                            (int)stop, j->tail, j->defaults[0] ? " +" : "", j->defaults,
                            j->tail + stop);
}

int64_t
model_record_bytes(const struct model_job *j)
{
    char text[256];

    return (int64_t)model_record_text(j, text, sizeof(text));
}

void
model_state_text(const struct model_job *j, char *out, size_t cap)
{
    const struct model_state *s = &j->state;

    out[0] = '\0';
    if (!j->has_state)
        return;
    snprintf(out, cap,
             "%" PRId64 " %s %s %s%s%s%s%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
             " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "|%s",
             s->token, s->worker, s->flag ? "c" : "-", model_key(s->key),
             s->states[0] || s->order >= 0 ? "=" : "", s->states,
             s->order >= 0 ? "=" : "", model_line(s->order), s->keep, s->deliveries,
             s->attempts, s->lost, s->interrupted, s->snoozes, s->started,
             s->max_deliveries, s->progress);
}

/* A stream: out of the line, and its entry is deleted. What its state says is stored by
 * whatever does that. */
void
model_drop_entry(struct model *m, struct model_job *j)
{
    size_t left = 0;

    if (!m->stream || j->entry == 0)
        return;
    for (size_t i = 0; i < m->ready_n; i++) {
        if (m->ready[i] != j)
            m->ready[left++] = m->ready[i];
    }
    m->ready_n = left;
    j->entry = j->count = j->indexed = 0;
    j->front = j->unstored = j->gone = false;
}

static void
write_stub(struct model_job *j, int64_t now)
{
    j->record = true;
    snprintf(j->head, sizeof(j->head), "1 -");
    snprintf(j->tail, sizeof(j->tail), " lost_body=1\n");
    j->defaults[0] = '\0';
    j->enqueued_at = now;
    j->options = (struct model_options){.max_deliveries = 3, .key = -1, .order = -1};
}

bool
model_is_stub(const struct model_job *j)
{
    return strcmp(j->head, "1 -") == 0 && strcmp(j->tail, " lost_body=1\n") == 0;
}

bool
model_has_body(const struct model_job *j)
{
    return j->record && !model_is_stub(j);
}

/* A stream: it was held, and goes elsewhere. Its record went with its entry. */
void
model_store_body(struct model_job *j)
{
    if (j->gone)
        write_stub(j, 0);
}

/* Nobody knows whose entry it was that somebody deleted: another name stands for it. What
 * else is stored of the job stays. */
struct model_job *
model_part_with_entry(struct model *m, struct model_job *j)
{
    struct model_job *lost;
    char id[16];

    snprintf(id, sizeof(id), "lost-" MODEL_ENTRY, j->entry);
    lost = model_job(m, id);
    lost->entry = j->entry;
    lost->count = j->count;
    lost->delivered_at = j->delivered_at;
    lost->front = j->front;
    lost->place = j->place;
    lost->gone = true;
    lost->options = (struct model_options){.key = -1, .order = -1};
    lost->state = (struct model_state){.token = j->state.token,
                                       .deliveries = j->count,
                                       .started = j->delivered_at,
                                       .max_deliveries = 3,
                                       .key = -1,
                                       .order = -1};
    lost->has_state = lost->unstored = j->place == MODEL_PROCESSING;
    snprintf(lost->state.worker, sizeof(lost->state.worker), "%s", j->state.worker);
    for (size_t i = 0; i < m->ready_n; i++) {
        if (m->ready[i] == j)
            m->ready[i] = lost;
    }
    j->has_state = j->has_state && !j->unstored;
    j->entry = j->count = 0;
    j->front = j->unstored = j->gone = j->record = false;
    j->place = MODEL_WAITS;
    return lost;
}

/* A job that stands for one whose body is gone. */
void
model_become_stub(struct model *m, struct model_job *j)
{
    write_stub(j, m->now);
    add_error(m, j, "lost_body", "the stored job was gone");
}

void
model_die(struct model *m, struct model_job *j)
{
    model_drop_entry(m, j);
    j->place = MODEL_DEAD;
    j->score = m->now;
}

int64_t
model_dead_bytes(const struct model_job *j)
{
    int64_t bytes = model_record_bytes(j);

    for (size_t i = 0; i < j->errors_n; i++)
        bytes += (int64_t)strlen(j->errors[i]) + (i > 0);
    return bytes;
}

/* Its record and errors are written. */
void
model_dead_in(struct model *m, struct model_job *j)
{
    m->n.dead_bytes += model_dead_bytes(j);
    model_ended(m, j, "dead", "");
}

/* They leave `dead`; what was taken by hand meanwhile is put right when none is left. */
void
model_dead_out(struct model *m, struct model_job **jobs, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        m->n.dead_bytes -= model_dead_bytes(jobs[i]);
        jobs[i]->place = MODEL_WAITS;
    }
    for (size_t i = 0; i < m->jobs_n; i++)
        left += m->jobs[i].place == MODEL_DEAD;
    if (n > 0 && (left == 0 || m->n.dead_bytes < 0))
        m->n.dead_bytes = 0;
}

void
model_free_key(struct model *m, int key, const struct model_job *j)
{
    if (key < 0 || m->keys[key].holder != j)
        return;
    m->keys[key].holder = m->keys[key].before;
    m->keys[key].before = NULL;
}

/* It ran, and is dead ('x'), done and kept ('k'), or waits again (' '): does it hold its
 * key there? One that let it go at its start takes it again, if nobody did meanwhile. */
void
model_move_key(struct model *m, struct model_job *j, char where)
{
    const struct model_state *s = &j->state;

    if (s->key < 0)
        return;
    if (where != ' ' && !strchr(s->states, where))
        model_free_key(m, s->key, j);
    else if (strchr(s->states, 's') && !m->keys[s->key].holder)
        m->keys[s->key].holder = j;
}

size_t
model_tombs(const struct model *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->jobs_n; i++)
        n += m->jobs[i].tomb;
    return n;
}

/* Does a job wait for a worker? One in front counts until it is booked, also if its entry
 * was deleted by hand. */
static bool
any_waits(const struct model *m)
{
    bool waits = false;

    for (size_t i = 0; i < m->jobs_n; i++) {
        const struct model_job *j = &m->jobs[i];
        bool is_held = j->front || j->place == MODEL_PROCESSING;

        waits = waits || j->front || (j->entry > 0 && !j->gone && !is_held);
    }
    return m->stream ? waits : m->ready_n > model_tombs(m);
}

void
model_wake_worker(struct model *m)
{
    if (!m->paused && any_waits(m))
        m->wake = true;
}

/* The jobs of one place by score, then id. */
static int
compare_places(const void *a, const void *b)
{
    const struct model_job *x = *(struct model_job *const *)a;
    const struct model_job *y = *(struct model_job *const *)b;

    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return strcmp(x->id, y->id);
}

size_t
model_jobs_at(struct model *m, enum model_place place, struct model_job **out)
{
    size_t n = 0;

    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].place == place && place != MODEL_WAITS)
            out[n++] = &m->jobs[i];
    }
    if (n > 0)
        qsort(out, n, sizeof(*out), compare_places);
    return n;
}

void
model_delay(struct model *m, struct model_job *j, int64_t due)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = model_jobs_at(m, MODEL_DELAYED, all);

    model_drop_entry(m, j);
    if (n == 0 || due < all[0]->score)
        m->due = true;
    j->place = MODEL_DELAYED;
    j->score = due;
}

void
model_to_back(struct model *m, struct model_job *j)
{
    j->place = MODEL_WAITS;
    if (m->stream) {
        model_drop_entry(m, j);
        m->generation += !m->has_stream;
        m->has_stream = true;
        j->entry = j->indexed = ++m->entries;
    }
    if (j->tomb) {
        j->tomb = false;
        return;
    }
    model_check(m->ready_n < MODEL_READY, "ready is full");
    memmove(m->ready + 1, m->ready, m->ready_n * sizeof(m->ready[0]));
    m->ready[0] = j;
    m->ready_n++;
}

/* This job has ended: the one that waits for that is ready. */
void
model_next_key(struct model *m, int key, const struct model_job *j)
{
    struct model_job *h;

    if (key < 0 || m->keys[key].before != j)
        return;
    m->keys[key].before = NULL;
    h = m->keys[key].holder;
    if (h && !h->has_state && h->place == MODEL_DELAYED) {
        if (m->stream && !h->record) /* an entry has a record, whatever it says */
            write_stub(h, 0);
        model_to_back(m, h);
        m->n.promoted++;
        m->let_in = true;
        if (!m->wakes_later)
            model_wake_worker(m);
    }
}

/* ---- lines of order keys ---- */

/* The first of its line, if it is parked: ready, or waiting for its own time. A stream
 * finds out first that a body is lost. */
void
model_let_in(struct model *m, struct model_job *j)
{
    if (j->place != MODEL_DELAYED || j->score < MODEL_PARKED)
        return;
    if (m->stream && !j->record) {
        model_delay(m, j, 1);
        return;
    }
    if (j->score > MODEL_PARKED) {
        model_delay(m, j, j->score - MODEL_PARKED);
        return;
    }
    model_to_back(m, j);
    m->n.promoted++;
    m->let_in = true;
    if (!m->wakes_later)
        model_wake_worker(m);
}

static size_t
line_place(const struct model *m, const struct model_job *j)
{
    size_t i = 0;

    while (m->lines[j->line - 1].jobs[i] != j)
        i++;
    return i;
}

/* The one before it, or NULL. */
const struct model_job *
model_behind(const struct model *m, const struct model_job *j)
{
    size_t at = j->line > 0 ? line_place(m, j) : 0;

    return at > 0 ? m->lines[j->line - 1].jobs[at - 1] : NULL;
}

bool
model_leave_line(struct model *m, struct model_job *j)
{
    int line = j->line - 1;
    size_t at;

    if (line < 0)
        return false;
    at = line_place(m, j);
    memmove(&m->lines[line].jobs[at], &m->lines[line].jobs[at + 1],
            sizeof(j) * (m->lines[line].n - at - 1));
    m->lines[line].n--;
    j->line = 0;
    if (at == 0 && m->lines[line].n > 0)
        model_let_in(m, m->lines[line].jobs[0]);
    return true;
}

/* They were put where they belong already. One that stood in a line in an earlier life
 * leaves that first; who waits for that alone is let in. */
void
model_join_lines(struct model *m, struct model_job *const *jobs, const int *orders,
                 size_t n)
{
    struct model_job *first[MODEL_JOBS];
    size_t first_n = 0;
    bool left = false;

    for (size_t i = 0; i < n; i++)
        left = model_leave_line(m, jobs[i]) || left;
    for (size_t i = 0; i < n; i++) {
        int line = orders[i];

        if (m->lines[line].n == 0)
            first[first_n++] = jobs[i];
        jobs[i]->line = line + 1;
        m->lines[line].jobs[m->lines[line].n++] = jobs[i];
    }
    for (size_t i = 0; left && i < first_n; i++)
        model_let_in(m, first[i]);
}

/* Those who wait for the end of this job may go. order: what is known of its line. */
void
model_end_of(struct model *m, int key, int order, struct model_job *j)
{
    if (order >= 0)
        model_leave_line(m, j);
    model_next_key(m, key, j);
}

/* A stream keeps the order of the entries in front. */
void
model_to_front(struct model *m, struct model_job *j)
{
    j->place = MODEL_WAITS;
    if (m->stream) {
        size_t at = m->ready_n++;

        for (; at > 0 && m->ready[at - 1]->entry < j->entry; at--)
            m->ready[at] = m->ready[at - 1];
        m->ready[at] = j;
        j->front = true;
        j->unstored = false;
        return;
    }
    if (j->tomb) {
        j->tomb = false;
        return;
    }
    model_check(m->ready_n < MODEL_READY, "ready is full");
    m->ready[m->ready_n++] = j;
}

/* A run of tombstones at the front is taken away; nothing but tombstones: all of it. */
void
model_pop_tombs(struct model *m)
{
    if (m->stream)
        return;
    if (model_tombs(m) == m->ready_n) {
        for (size_t i = 0; i < m->jobs_n; i++)
            m->jobs[i].tomb = false;
        m->ready_n = 0;
    }
    while (m->ready_n > 0 && m->ready[m->ready_n - 1]->tomb) {
        m->ready[--m->ready_n]->tomb = false;
        m->n.skipped++;
    }
}

/* Its place in ready stays, under a tombstone; a stream has none. */
void
model_defer(struct model *m, struct model_job *j, int64_t due)
{
    if (m->stream)
        model_drop_entry(m, j);
    else
        j->tomb = true;
    model_delay(m, j, due);
    m->n.deferred++;
    model_pop_tombs(m);
}

const char *
model_place_word(const struct model_job *j)
{
    static const char *const words[] = {"ready", "processing", "delayed", "dead", "done"};

    return words[j->place];
}

bool
model_is_held(const struct model_job *j, int64_t token, int worker)
{
    return j->has_state && j->state.token == token &&
           strcmp(j->state.worker, model_worker(worker)) == 0 &&
           j->place == MODEL_PROCESSING;
}

static bool
entry_stands(const struct model *m, int64_t token)
{
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].entry > 0 && !m->jobs[i].gone &&
            m->jobs[i].entry == (token - MODEL_TOKENS) / 1000000)
            return true;
    }
    return false;
}

/* A stream knows an answered delivery by its stored state alone, and else that somebody
 * has the entry now. */
static const char *
held_in_stream(const struct model *m, const struct model_job *j, int64_t token,
               int worker)
{
    bool stored = j->has_state && !j->unstored;

    if (model_is_held(j, token, worker))
        return NULL;
    if (stored && j->state.token == token &&
        strcmp(j->state.worker, model_worker(worker)) == 0)
        return "ANSWERED";
    return stored || entry_stands(m, token) ? "STALE" : "GONE";
}

/* NULL if the delivery is held. */
const char *
model_held_word(const struct model *m, const struct model_job *j, int64_t token,
                int worker)
{
    if (m->stream)
        return held_in_stream(m, j, token, worker);
    if (!j->has_state)
        return "GONE";
    if (j->state.token != token || strcmp(j->state.worker, model_worker(worker)) != 0)
        return "STALE";
    return j->place == MODEL_PROCESSING ? NULL : "ANSWERED";
}
