#include "script/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
check(bool ok, const char *what)
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

static void
say_int(struct wr_buf *out, int64_t number)
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

static struct model_job *
new_job(struct model *m, const char *id)
{
    struct model_job *j = m->jobs, *end = m->jobs + m->jobs_n;

    while (j < end && !is_free(m, j))
        j++;
    check(j < end || m->jobs_n < MODEL_JOBS, "too many jobs");
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
    return new_job(m, id);
}

/* ---- small parts ---- */

/* Of a run of that worker, who told facts; NULL: of no run. */
static void
add_run(struct model *m, struct model_job *j, const char *outcome, const char *text,
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
    add_run(m, j, outcome, text, NULL, "");
}

/* It is over: who waits for that is told. */
static void
ended(struct model *m, struct model_job *j, const char *word, const char *result)
{
    for (size_t i = 0; i < j->waiters_n; i++)
        wr_buf_addf(&m->told, "%s/%" PRId64 " %s %s %s\n",
                    model_waits_at(j->waiters[i].channel), j->waiters[i].number, j->id,
                    word, result);
    j->waiters_n = 0;
}

static void
forget_job(struct model_job *j)
{
    j->record = j->has_state = j->unstored = false;
    j->result[0] = '\0';
    j->errors_n = 0;
    j->runs_n = 0;
}

/* In place of the last line, if that tells of the same. */
static void
add_error_once(struct model *m, struct model_job *j, const char *outcome,
               const char *text)
{
    char wanted[32];

    snprintf(wanted, sizeof(wanted), " %s ", outcome);
    if (j->errors_n > 0 && strstr(j->errors[j->errors_n - 1], wanted))
        j->errors_n--;
    add_error(m, j, outcome, text);
}

static size_t
record_text(const struct model_job *j, char *out, size_t cap)
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

static int64_t
record_bytes(const struct model_job *j)
{
    char text[256];

    return (int64_t)record_text(j, text, sizeof(text));
}

size_t
model_record_bytes(const struct model_job *j)
{
    return (size_t)record_bytes(j);
}

static void
state_text(const struct model_job *j, char *out, size_t cap)
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
static void
drop_entry(struct model *m, struct model_job *j)
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

static bool
is_stub(const struct model_job *j)
{
    return strcmp(j->head, "1 -") == 0 && strcmp(j->tail, " lost_body=1\n") == 0;
}

static bool
has_body(const struct model_job *j)
{
    return j->record && !is_stub(j);
}

/* A stream: it was held, and goes elsewhere. Its record went with its entry. */
static void
store_body(struct model_job *j)
{
    if (j->gone)
        write_stub(j, 0);
}

/* Nobody knows whose entry it was that somebody deleted: another name stands for it. What
 * else is stored of the job stays. */
static struct model_job *
part_with_entry(struct model *m, struct model_job *j)
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
static void
become_stub(struct model *m, struct model_job *j)
{
    write_stub(j, m->now);
    add_error(m, j, "lost_body", "the stored job was gone");
}

static void
die(struct model *m, struct model_job *j)
{
    drop_entry(m, j);
    j->place = MODEL_DEAD;
    j->score = m->now;
}

static int64_t
dead_bytes(const struct model_job *j)
{
    int64_t bytes = record_bytes(j);

    for (size_t i = 0; i < j->errors_n; i++)
        bytes += (int64_t)strlen(j->errors[i]) + (i > 0);
    return bytes;
}

/* Its record and errors are written. */
static void
dead_in(struct model *m, struct model_job *j)
{
    m->n.dead_bytes += dead_bytes(j);
    ended(m, j, "dead", "");
}

/* They leave `dead`; what was taken by hand meanwhile is put right when none is left. */
static void
dead_out(struct model *m, struct model_job **jobs, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++) {
        m->n.dead_bytes -= dead_bytes(jobs[i]);
        jobs[i]->place = MODEL_WAITS;
    }
    for (size_t i = 0; i < m->jobs_n; i++)
        left += m->jobs[i].place == MODEL_DEAD;
    if (n > 0 && (left == 0 || m->n.dead_bytes < 0))
        m->n.dead_bytes = 0;
}

static void
free_key(struct model *m, int key, const struct model_job *j)
{
    if (key < 0 || m->keys[key].holder != j)
        return;
    m->keys[key].holder = m->keys[key].before;
    m->keys[key].before = NULL;
}

/* It ran, and is dead ('x'), done and kept ('k'), or waits again (' '): does it hold its
 * key there? One that let it go at its start takes it again, if nobody did meanwhile. */
static void
move_key(struct model *m, struct model_job *j, char where)
{
    const struct model_state *s = &j->state;

    if (s->key < 0)
        return;
    if (where != ' ' && !strchr(s->states, where))
        free_key(m, s->key, j);
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

/* Is it seen that a job waits? A stream counts: an entry that was deleted by hand while
 * it was held hides one that waits, until it is booked. */
static bool
any_waits(const struct model *m)
{
    size_t there = 0, pending = 0, front = 0;

    for (size_t i = 0; i < m->jobs_n; i++) {
        const struct model_job *j = &m->jobs[i];

        there += j->entry > 0 && !j->gone;
        front += j->front;
        pending += j->entry > 0 && (j->front || j->place == MODEL_PROCESSING);
    }
    return m->stream ? there > pending || front > 0 : m->ready_n > model_tombs(m);
}

static void
wake_worker(struct model *m)
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

static size_t
jobs_at(struct model *m, enum model_place place, struct model_job **out)
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

static void
delay(struct model *m, struct model_job *j, int64_t due)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = jobs_at(m, MODEL_DELAYED, all);

    drop_entry(m, j);
    if (n == 0 || due < all[0]->score)
        m->due = true;
    j->place = MODEL_DELAYED;
    j->score = due;
}

static void
to_back(struct model *m, struct model_job *j)
{
    j->place = MODEL_WAITS;
    if (m->stream) {
        drop_entry(m, j);
        m->generation += !m->has_stream;
        m->has_stream = true;
        j->entry = j->indexed = ++m->entries;
    }
    if (j->tomb) {
        j->tomb = false;
        return;
    }
    check(m->ready_n < MODEL_READY, "ready is full");
    memmove(m->ready + 1, m->ready, m->ready_n * sizeof(m->ready[0]));
    m->ready[0] = j;
    m->ready_n++;
}

/* This job has ended: the one that waits for that is ready. */
static void
next_key(struct model *m, int key, const struct model_job *j)
{
    struct model_job *h;

    if (key < 0 || m->keys[key].before != j)
        return;
    m->keys[key].before = NULL;
    h = m->keys[key].holder;
    if (h && !h->has_state && h->place == MODEL_DELAYED) {
        if (m->stream && !h->record) /* an entry has a record, whatever it says */
            write_stub(h, 0);
        to_back(m, h);
        m->n.promoted++;
        m->let_in = true;
        if (!m->wakes_later)
            wake_worker(m);
    }
}

/* ---- lines of order keys ---- */

/* The first of its line, if it is parked: ready, or waiting for its own time. A stream
 * finds out first that a body is lost. */
static void
let_in(struct model *m, struct model_job *j)
{
    if (j->place != MODEL_DELAYED || j->score < MODEL_PARKED)
        return;
    if (m->stream && !j->record) {
        delay(m, j, 1);
        return;
    }
    if (j->score > MODEL_PARKED) {
        delay(m, j, j->score - MODEL_PARKED);
        return;
    }
    to_back(m, j);
    m->n.promoted++;
    m->let_in = true;
    if (!m->wakes_later)
        wake_worker(m);
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
static const struct model_job *
behind(const struct model *m, const struct model_job *j)
{
    size_t at = j->line > 0 ? line_place(m, j) : 0;

    return at > 0 ? m->lines[j->line - 1].jobs[at - 1] : NULL;
}

static bool
leave_line(struct model *m, struct model_job *j)
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
        let_in(m, m->lines[line].jobs[0]);
    return true;
}

/* They were put where they belong already. One that stood in a line in an earlier life
 * leaves that first; who waits for that alone is let in. */
static void
join_lines(struct model *m, struct model_job *const *jobs, const int *orders, size_t n)
{
    struct model_job *first[MODEL_JOBS];
    size_t first_n = 0;
    bool left = false;

    for (size_t i = 0; i < n; i++)
        left = leave_line(m, jobs[i]) || left;
    for (size_t i = 0; i < n; i++) {
        int line = orders[i];

        if (m->lines[line].n == 0)
            first[first_n++] = jobs[i];
        jobs[i]->line = line + 1;
        m->lines[line].jobs[m->lines[line].n++] = jobs[i];
    }
    for (size_t i = 0; left && i < first_n; i++)
        let_in(m, first[i]);
}

/* Those who wait for the end of this job may go. order: what is known of its line. */
static void
end_of(struct model *m, int key, int order, struct model_job *j)
{
    if (order >= 0)
        leave_line(m, j);
    next_key(m, key, j);
}

/* A stream keeps the order of the entries in front. */
static void
to_front(struct model *m, struct model_job *j)
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
    check(m->ready_n < MODEL_READY, "ready is full");
    m->ready[m->ready_n++] = j;
}

/* A run of tombstones at the front is taken away; nothing but tombstones: all of it. */
static void
pop_tombs(struct model *m)
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
static void
defer(struct model *m, struct model_job *j, int64_t due)
{
    if (m->stream)
        drop_entry(m, j);
    else
        j->tomb = true;
    delay(m, j, due);
    m->n.deferred++;
    pop_tombs(m);
}

static const char *
place_word(const struct model_job *j)
{
    static const char *const words[] = {"ready", "processing", "delayed", "dead", "done"};

    return words[j->place];
}

static bool
is_held(const struct model_job *j, int64_t token, int worker)
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
            m->jobs[i].entry == (token - MODEL_TOKENS) / 1000)
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

    if (is_held(j, token, worker))
        return NULL;
    if (stored && j->state.token == token &&
        strcmp(j->state.worker, model_worker(worker)) == 0)
        return "ANSWERED";
    return stored || entry_stands(m, token) ? "STALE" : "GONE";
}

/* NULL if the delivery is held. */
static const char *
held_word(const struct model *m, const struct model_job *j, int64_t token, int worker)
{
    if (m->stream)
        return held_in_stream(m, j, token, worker);
    if (!j->has_state)
        return "GONE";
    if (j->state.token != token || strcmp(j->state.worker, model_worker(worker)) != 0)
        return "STALE";
    return j->place == MODEL_PROCESSING ? NULL : "ANSWERED";
}

/* ---- producers ---- */

/* A holder counts while it waits or runs, and where its record says so. */
static struct model_job *
key_holder(const struct model *m, int key, const struct model_job *j)
{
    struct model_job *h = m->keys[key].holder;

    if (!h || h == j)
        return NULL;
    if (h->place == MODEL_PROCESSING)
        return h;
    if (!h->record || (h->place == MODEL_DEAD && !strchr(h->options.states, 'x')) ||
        (h->place == MODEL_KEPT && !strchr(h->options.states, 'k')))
        return NULL;
    return h;
}

/* The one that refuses an item its key. */
static struct model_job *
refuser(const struct model *m, const struct model_item *it, const struct model_job *j)
{
    struct model_job *h = key_holder(m, it->options.key, j);

    return h && it->mode[0] == 'l' && h->place == MODEL_PROCESSING ? NULL : h;
}

/* The one that runs, from which it takes the key over; NULL: none. */
static struct model_job *
taken_from(const struct model *m, const struct model_item *it, const struct model_job *j)
{
    struct model_job *h = key_holder(m, it->options.key, j);

    return h && it->mode[0] == 'l' && h->place == MODEL_PROCESSING ? h : NULL;
}

static int64_t
due_of(const struct model *m, const char *due)
{
    int64_t at = due[0] ? strtoll(due + 1, NULL, 10) : 0;

    if (due[0] == '+')
        return at > 0 ? m->now + at : -1;
    return due[0] == '@' && at > m->now ? at : -1;
}

/* True when the job is refused; word and detail say why. */
static bool
is_refused(const struct model *m, const struct model_item *it, const char **word,
           char *detail, bool is_new)
{
    const struct model_job *j = it->job, *h;

    *word = "OTHER";
    snprintf(detail, 32, "%s", is_new || !j ? "ready" : place_word(j));
    if (j && j->record) {
        if (strcmp(j->head, it->head) == 0 && strcmp(j->tail, it->tail) == 0)
            *word = "EXISTS";
        return true;
    }
    if (j && j->place != MODEL_WAITS)
        return true;
    if (it->payload_len > MODEL_PAYLOAD_MAX) {
        *word = "BIG";
        snprintf(detail, 32, "%d", MODEL_PAYLOAD_MAX);
        return true;
    }
    if (it->options.key < 0)
        return false;
    *word = "UNIQUE";
    h = refuser(m, it, j);
    snprintf(detail, 32, "%s", h ? h->id : "-");
    return h || m->keys[it->options.key].window > m->now;
}

static void
write_record(const struct model *m, struct model_job *j, const struct model_item *it)
{
    /* What the job says itself goes before. */
    snprintf(j->defaults, sizeof(j->defaults), "%s",
             strstr(it->tail, " retry=") ? "" : m->defaults);
    snprintf(j->head, sizeof(j->head), "%s", it->head);
    snprintf(j->tail, sizeof(j->tail), "%s", it->tail);
    j->options = it->options;
}

/* Jobs of one call come in together: each is judged against what was before, and against
 * the earlier ones of the call. */
struct arrivals {
    struct model_job *ready[MODEL_BATCH], *delayed[MODEL_BATCH];
    size_t at[MODEL_BATCH]; /* ready: of which item */
    bool own[MODEL_BATCH];  /* ready: its id is that of its entry */
    int64_t due[MODEL_BATCH];
    size_t ready_n, delayed_n;
    int64_t windows[MODEL_KEYS];
    struct model_job *keys[MODEL_KEYS], *before[MODEL_KEYS];
    struct model_job *lined[MODEL_BATCH];
    int orders[MODEL_BATCH];
    size_t lined_n;
};

static bool
is_in(struct model_job *const *list, size_t n, const struct model_job *j)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] == j)
            return true;
    }
    return false;
}

static void
arrive(struct model *m, struct arrivals *a, const struct model_item *it, size_t at,
       bool schedule)
{
    struct model_job *j = it->job ? it->job : new_job(m, "##");
    int64_t due = schedule ? due_of(m, it->due) : -1;

    j->record = true;
    j->enqueued_at = m->now;
    write_record(m, j, it);
    if (it->options.key >= 0) {
        struct model_job *runs = taken_from(m, it, j);

        if (runs && due < 0) { /* it waits for the end of that one */
            a->before[it->options.key] = runs;
            due = m->now + MODEL_PARK;
        }
        a->keys[it->options.key] = j;
        if (it->window > 0)
            a->windows[it->options.key] = m->now + it->window;
    }
    if (it->options.order >= 0) {
        bool waits = m->lines[it->options.order].n > 0;

        for (size_t i = 0; i < a->lined_n; i++)
            waits = waits || a->orders[i] == it->options.order;
        a->orders[a->lined_n] = it->options.order;
        a->lined[a->lined_n++] = j;
        if (waits)
            due = MODEL_PARKED + (due >= 0 ? due : 0);
    }
    if (due >= 0) {
        a->due[a->delayed_n] = due;
        a->delayed[a->delayed_n++] = j;
    } else {
        a->at[a->ready_n] = at;
        a->own[a->ready_n] = !it->job;
        a->ready[a->ready_n++] = j;
    }
}

/* It has the id of its entry, which `ids` does not say. */
static void
name_by_entry(struct model_job *j)
{
    snprintf(j->id, sizeof(j->id), MODEL_ENTRY, j->entry);
    j->indexed = 0;
}

static void
settle(struct model *m, struct arrivals *a)
{
    m->let_in = false;
    for (size_t i = 0; i < a->ready_n; i++) {
        to_back(m, a->ready[i]);
        if (a->own[i])
            name_by_entry(a->ready[i]);
    }
    for (size_t i = 0; i < a->delayed_n; i++)
        delay(m, a->delayed[i], a->due[i]);
    join_lines(m, a->lined, a->orders, a->lined_n);
    for (int k = 0; k < MODEL_KEYS; k++) {
        if (a->keys[k]) {
            m->keys[k].holder = a->keys[k];
            m->keys[k].before = a->before[k];
        }
        if (a->windows[k] > 0)
            m->keys[k].window = a->windows[k];
    }
    m->n.enqueued += (int64_t)(a->ready_n + a->delayed_n);
    m->n.scheduled += (int64_t)a->delayed_n;
    if (a->ready_n > 0 && !m->let_in && !m->paused)
        m->wake = true; /* it is certain */
}

/* The ids of those that got their entry's: it is said of the first, and of each that does
 * not follow one of them. */
static void
say_ids(const struct arrivals *a, struct wr_buf *out, char notes[128])
{
    size_t len = strcmp(notes, "-") == 0 ? 0 : strlen(notes);

    for (size_t i = 0; i < a->ready_n; i++) {
        if (!a->own[i] || (i > 0 && a->own[i - 1]))
            continue;
        say(out, "%zu IDS %s", a->at[i], a->ready[i]->id);
        len += (size_t)snprintf(notes + len, 128 - len, "%s%zu:IDS=%s",
                                len > 0 ? "," : "", a->at[i], a->ready[i]->id);
    }
}

/* Those whose names the client made up: a stream has the id of their entry for them. */
static void
name_items(struct model *m, struct model_item *items, size_t n, bool schedule)
{
    for (size_t i = 0; i < n; i++) {
        struct model_item *it = &items[i];

        if (it->made_up[0] &&
            !(m->stream && it->tabbed && !it->unique[0] && !(schedule && it->due[0]))) {
            it->job = model_job(m, it->made_up);
            it->job->meant = true;
        }
    }
}

/* A key that is still in the name of a job that comes in anew, from an earlier life of
 * its id, holds nobody off. Takes that name away; the caller puts it back. */
static struct model_job *
forget_newcomer_key(struct model *m, const struct arrivals *a, int key)
{
    struct model_job *h = key >= 0 ? m->keys[key].holder : NULL;

    if (!h || (!is_in(a->ready, a->ready_n, h) && !is_in(a->delayed, a->delayed_n, h)))
        return NULL;
    m->keys[key].holder = NULL;
    return h;
}

static void
admit_items(struct model *m, const struct model_item *items, size_t n, bool schedule,
            struct wr_buf *out, char notes[128])
{
    struct arrivals a = {0};
    size_t len = 0;

    snprintf(notes, 128, "-");
    for (size_t i = 0; i < n; i++) {
        const struct model_item *it = &items[i];
        bool is_new = is_in(a.ready, a.ready_n, it->job) ||
                      is_in(a.delayed, a.delayed_n, it->job);
        int key = it->options.key;
        const char *word;
        char detail[32];
        struct model_job *stale = forget_newcomer_key(m, &a, key);
        bool no = is_refused(m, it, &word, detail, is_new);

        if (stale)
            m->keys[key].holder = stale;
        if (!no && key >= 0 && a.keys[key] && a.keys[key] != it->job) {
            no = true;
            word = "UNIQUE";
            snprintf(detail, sizeof(detail), "%s", a.keys[key]->id);
        }
        if (no) {
            say(out, "%zu %s %s", i, word, detail);
            len += (size_t)snprintf(notes + len, 128 - len, "%s%zu:%s",
                                    len > 0 ? "," : "", i, word);
        } else
            arrive(m, &a, it, i, schedule);
    }
    settle(m, &a);
    say_ids(&a, out, notes);
}

/* Notes as they were saved: words without details. */
static void
say_saved(struct wr_buf *out, const char *notes)
{
    char copy[128], *save = NULL;

    if (strcmp(notes, "-") == 0)
        return;
    snprintf(copy, sizeof(copy), "%s", notes);
    for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(p, ':'), *detail = strchr(p, '=');

        *colon = '\0';
        if (detail)
            *detail++ = '\0';
        say(out, "%s %s %s", p, colon + 1, detail ? detail : "-");
    }
}

/* NULL: apply (*gap: calls in between are missing). */
static const char *
channel_word(const struct model *m, int channel, int64_t number, const char *first,
             size_t count, bool *gap)
{
    int64_t last;

    *gap = false;
    if (channel < 0 || !m->channels[channel].is_set)
        return NULL;
    last = m->channels[channel].number;
    *gap = number > last + 1;
    if (number == last)
        return m->channels[channel].count == count &&
                       strcmp(m->channels[channel].first, first) == 0
                   ? "BEFORE"
                   : "CLASH";
    return number < last ? "LATE" : NULL;
}

static void
save_call(struct model *m, int channel, int64_t number, const char *first, size_t count,
          const char *notes, const char *detail)
{
    if (channel < 0)
        return;
    m->channels[channel].is_set = true;
    m->channels[channel].number = number;
    m->channels[channel].at = m->now;
    m->channels[channel].count = count;
    snprintf(m->channels[channel].first, 16, "%s", first);
    snprintf(m->channels[channel].notes, 128, "%s", notes);
    snprintf(m->channels[channel].detail, 32, "%s", detail);
}

void
model_admit(struct model *m, int channel, int64_t number, const struct model_item *items,
            size_t n, bool schedule, struct wr_buf *out)
{
    const char *first = items[0].made_up[0] ? items[0].made_up : items[0].job->id;
    bool gap;
    const char *word = channel_word(m, channel, number, first, n, &gap);
    struct model_item named[MODEL_BATCH];
    char notes[128];

    if (word) {
        say(out, "%s 0", word);
        if (strcmp(word, "BEFORE") == 0) {
            m->channels[channel].at = m->now;
            say_saved(out, m->channels[channel].notes);
        }
        return;
    }
    say(out, "%s 0", gap ? "GAP" : "OK");
    memcpy(named, items, n * sizeof(items[0]));
    name_items(m, named, n, schedule);
    admit_items(m, named, n, schedule, out, notes);
    for (size_t i = 0; i < n; i++) {
        if (named[i].job)
            named[i].job->meant = false;
    }
    save_call(m, channel, number, first, n, notes, "");
}

static void
wait_for(struct model *m, struct model_job *j, const struct model_tag *tag)
{
    size_t left = 0;

    for (size_t i = 0; i < j->waiters_n; i++) {
        if (j->waiters[i].until > m->now && j->waiters[i].channel != tag->channel)
            j->waiters[left++] = j->waiters[i];
    }
    check(left < MODEL_WAITERS, "too many wait");
    j->waiters[left] = (struct model_waiter){tag->channel, tag->number,
                                             m->now + tag->keep};
    j->waiters_n = left + 1;
}

void
model_call(struct model *m, int channel, int64_t number, const struct model_item *item,
           const struct model_tag *tag, struct wr_buf *out)
{
    struct model_item it = *item;
    char word[8] = "", note[16] = "", place[32] = "";

    it.tabbed = false; /* who waits knows the id */
    model_admit(m, channel, number, &it, 1, it.due[0] != '\0', out);
    sscanf(out->ptr, "%7s 0 0 %15s %31s", word, note, place);
    if ((strcmp(word, "OK") == 0 || strcmp(word, "GAP") == 0) &&
        (!note[0] || (strcmp(note, "EXISTS") == 0 && strcmp(place, "dead") != 0 &&
                      strcmp(place, "done") != 0)))
        wait_for(m, it.job ? it.job : model_job(m, it.made_up), tag);
}

void
model_wait(struct model *m, struct model_job *j, const struct model_tag *tag, bool early,
           struct wr_buf *out)
{
    if (!early && !j->record)
        say(out, "GONE");
    else if (j->place == MODEL_DEAD || j->place == MODEL_KEPT)
        say(out, "ENDED");
    else {
        wait_for(m, j, tag);
        say(out, "OK");
    }
}

void
model_farewell(struct model *m, int channel, struct wr_buf *out)
{
    m->channels[channel].is_set = false;
    say(out, "OK");
}

/* A kept job is forgotten, and comes in as a new one. */
static void
live_again(struct model *m, struct model_job *j, int64_t due)
{
    if (j->has_state)
        free_key(m, j->state.key, j);
    m->n.kept_bytes -= record_bytes(j) + (int64_t)strlen(j->result);
    forget_job(j);
    j->place = MODEL_WAITS;
    j->record = true;
    j->enqueued_at = m->now;
    m->n.forgotten++;
    m->n.enqueued++;
    if (due >= 0) {
        delay(m, j, due);
        m->n.scheduled++;
    } else {
        to_back(m, j);
        wake_worker(m);
    }
}

/* What becomes of one that waits. own: its time, -1: none. */
static void
rewrite(struct model *m, struct model_job *j, bool changes, bool waits_behind,
        int64_t own)
{
    if (waits_behind)
        own = MODEL_PARKED + (own >= 0 ? own : 0);
    if (j->place == MODEL_DELAYED && (changes || waits_behind))
        delay(m, j, own >= 0 ? own : m->now);
    else if (j->place == MODEL_WAITS && own >= 0)
        defer(m, j, own);
    else if (j->place == MODEL_WAITS && m->stream)
        to_back(m, j); /* an entry cannot be changed */
    m->n.replaced++;
}

/* The time of a job's own: what is given, else what it has. -1: none. */
static int64_t
own_time(const struct model *m, const struct model_job *j, const char *due, bool parked)
{
    if (due[0] || j->place != MODEL_DELAYED || parked)
        return due_of(m, due);
    if (j->score >= MODEL_PARKED)
        return j->score > MODEL_PARKED ? j->score - MODEL_PARKED : -1;
    return j->score;
}

/* The job that is meant: the waiting holder of the key, if nobody has the id. */
static struct model_job *
replace_target(const struct model *m, const struct model_item *it)
{
    struct model_job *h = it->options.key >= 0 ? m->keys[it->options.key].holder : NULL;

    if (it->job->record || !it->mode[0] || !h || !h->record)
        return it->job;
    return h == it->job || h->place == MODEL_WAITS || h->place == MODEL_DELAYED ? h
                                                                                : NULL;
}

/* True: refused, and told why. */
static bool
refuse_replace(const struct model *m, const struct model_item *it,
               const struct model_job *j, struct wr_buf *out)
{
    const struct model_job *h;
    bool waits;

    if (!j || !j->record) {
        say(out, "ABSENT ");
        return true;
    }
    waits = j->place == MODEL_WAITS || j->place == MODEL_DELAYED;
    if (!waits && j->place != MODEL_KEPT) {
        say(out, "%s %s",
            strcmp(j->head, it->head) == 0 && strcmp(j->tail, it->tail) == 0 ? "EXISTS"
                                                                             : "OTHER",
            place_word(j));
        return true;
    }
    if (it->options.key < 0 || (waits && it->options.key == j->options.key))
        return false;
    h = refuser(m, it, j);
    if (!h && m->keys[it->options.key].window <= m->now)
        return false;
    say(out, "UNIQUE %s", h ? h->id : "-");
    return true;
}

void
model_replace(struct model *m, int channel, int64_t number, const struct model_item *it,
              struct wr_buf *out)
{
    struct model_job *j = replace_target(m, it), *before = NULL;
    int64_t due = due_of(m, it->due);
    bool again, gap, linked, parked, moves, waits_behind, was_behind;
    int old, key = it->options.key, line = it->options.order;
    int64_t own;
    const char *word = channel_word(m, channel, number, it->job->id, 1, &gap);
    char detail[32];

    if (it->payload_len > MODEL_PAYLOAD_MAX) {
        say(out, "BIG %d", MODEL_PAYLOAD_MAX);
        return;
    }
    if (word && strcmp(word, "BEFORE") == 0) {
        const char *notes = m->channels[channel].notes,
                   *at = strncmp(notes, "0:", 2) == 0 ? notes + 2 : "";
        const char *more = m->channels[channel].detail;

        say(out, "BEFORE %s %s%s", at, *more ? more : " ",
            *more ? "" : it->job->id); /* of an enqueue: neither place nor other id */
        return;
    }
    if (word) {
        say(out, "%s ", word);
        return;
    }
    if (refuse_replace(m, it, j, out))
        return;
    again = j->place == MODEL_KEPT;
    old = again ? -1 : j->options.key;
    if (key >= 0 && key != old)
        before = taken_from(m, it, j);
    linked = old >= 0 && m->keys[old].holder == j && m->keys[old].before;
    parked = linked && j->place == MODEL_DELAYED;
    if (!again || due >= 0)
        before = NULL;
    was_behind = j->place == MODEL_DELAYED && j->score >= MODEL_PARKED;
    moves = again || line != j->line - 1;
    own = own_time(m, j, it->due, parked);
    waits_behind = again && line >= 0 && m->lines[line].n > 0;
    if (again && waits_behind)
        live_again(m, j, MODEL_PARKED + (due >= 0 ? due : 0));
    else if (again)
        live_again(m, j, before ? m->now + MODEL_PARK : due);
    if (key != old) {
        free_key(m, old, j);
        next_key(m, old, j);
        if (key >= 0) {
            m->keys[key].holder = j;
            m->keys[key].before = before;
            if (it->window > 0)
                m->keys[key].window = m->now + it->window;
        }
    } else if (linked && (it->due[0] || line >= 0))
        m->keys[key].before = NULL;
    if (moves)
        leave_line(m, j);
    if (!again) {
        waits_behind = moves ? line >= 0 && m->lines[line].n > 0 : was_behind;
        rewrite(m, j,
                it->due[0] || was_behind ||
                    (parked && (key != old || key < 0 || line >= 0)),
                waits_behind, own);
    }
    if (moves && line >= 0)
        join_lines(m, &j, &line, 1);
    write_record(m, j, it);
    snprintf(detail, sizeof(detail), "%s %s", place_word(j), j->id);
    say(out, "%s %s", again ? "AGAIN" : "REPLACED", detail);
    save_call(m, channel, number, it->job->id, 1, again ? "0:AGAIN" : "0:REPLACED",
              detail);
}

/* ---- leases ---- */

static int
worker_of(const char *name)
{
    for (int i = 0; i < MODEL_WORKERS; i++) {
        if (strcmp(model_worker(i), name) == 0)
            return i;
    }
    return -1;
}

static int64_t
lease_of(const struct model *m, const struct model_job *j, int64_t otherwise)
{
    int w = worker_of(j->state.worker);

    return w >= 0 && m->claims[w].is_set ? m->claims[w].lease : otherwise;
}

/* ---- reserve ---- */

static void
say_job(struct wr_buf *out, const struct model_job *j)
{
    char state[256], record[256];

    state_text(j, state, sizeof(state));
    record_text(j, record, sizeof(record));
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
    bool again = is_in(c->seen, c->seen_n, j);

    if (j->tomb && !again) {
        c->skips[c->skipped++] = j;
        c->seen[c->seen_n++] = j;
        return true;
    }
    if (c->taken_n > 0 && c->bytes + record_bytes(j) > r->bytes) {
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
    if (!j->record || is_stub(j))
        c->lost[c->lost_n++] = j;
    else if (j->options.expires > 0 && !j->has_state &&
             j->enqueued_at + j->options.expires <= m->now)
        c->late[c->late_n++] = j;
    else if (r->type && !is_of_type(j, r->type))
        c->shelved[c->shelved_n++] = j;
    else {
        c->bytes += record_bytes(j);
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
    add_error_once(m, j, "no_handler", text);
    delay(m, j, m->now + 5000);
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
        leave_line(m, j);
        if (j->has_state) {
            free_key(m, j->state.key, j);
            next_key(m, j->state.key, j);
        }
    }
    become_stub(m, j);
    die(m, j);
    dead_in(m, j);
}

static void
apply_refused(struct model *m, const struct model_reserve *r, struct choice *c)
{
    m->ready_n -= c->used;
    for (size_t i = 0; i < c->late_n && m->stream; i++)
        drop_entry(m, c->late[i]);
    for (size_t i = 0; i < c->shelved_n && m->stream; i++)
        drop_entry(m, c->shelved[i]);
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
        ended(m, c->late[i], "expired", "");
        free_key(m, c->late[i]->options.key, c->late[i]);
        end_of(m, c->late[i]->options.key, c->late[i]->options.order, c->late[i]);
        forget_job(c->late[i]);
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

static void
lease(struct model *m, const struct model_reserve *r, struct model_job *j)
{
    struct model_state *s = &j->state;

    if (!j->has_state)
        memset(s, 0, sizeof(*s));
    if (m->stream) {
        j->unstored = !j->has_state && !has_ends(r, j);
        j->front = false;
        j->delivered_at = m->now;
        s->token = MODEL_TOKEN(j->entry, ++j->count);
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
        free_key(m, s->key, j);
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

static void
plan(const struct model *m, const struct model_reserve *r, struct choice *c)
{
    memset(c, 0, sizeof(*c));
    for (size_t i = m->ready_n; !m->paused && i > 0 && c->taken_n < r->free + r->ahead;
         i--) {
        if (!choose_one(m, r, c, m->ready[i - 1]))
            break;
        c->used++;
    }
}

/* Adds the jobs to `jobs`; answers the word. */
static const char *
reserve_jobs(struct model *m, const struct model_reserve *r, struct choice *c,
             struct wr_buf *jobs)
{
    if (is_repeat(m, r)) {
        for (size_t i = 0; i < m->claims[r->worker].n; i++) {
            struct model_claim *l = &m->claims[r->worker].list[i];

            if (is_held(l->job, l->token, r->worker))
                say_job(jobs, l->job);
        }
        wake_worker(m);
        return "REPEAT";
    }
    apply_refused(m, r, c);
    m->claims[r->worker].is_set = true;
    m->claims[r->worker].call = r->call;
    m->claims[r->worker].at = m->now;
    m->claims[r->worker].lease = r->lease;
    m->claims[r->worker].n = c->taken_n;
    for (size_t i = 0; i < c->taken_n; i++) {
        lease(m, r, c->taken[i]);
        m->claims[r->worker].list[i] = (struct model_claim){
            c->taken[i], c->taken[i]->state.token, i >= r->free};
        say_job(jobs, c->taken[i]);
    }
    wake_worker(m);
    if (m->paused)
        return "PAUSED";
    if (c->more)
        return "MORE";
    if (c->taken_n > 0 || r->free + r->ahead == 0)
        return "OK";
    return c->shelved_n > 0 ? "SHELVED" : "EMPTY";
}

static void
append(struct wr_buf *out, struct wr_buf *more)
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
    plan(m, r, &c);
    say(out, "%s", reserve_jobs(m, r, &c, &jobs));
    append(out, &jobs);
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
        const char *word = held_word(m, a[i].job, a[i].token, worker);

        if (!word && is_in(seen, held_n, a[i].job))
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

static void
end_cancelled(struct model *m, struct model_job *j)
{
    ended(m, j, "cancelled", "");
    free_key(m, j->state.key, j);
    end_of(m, j->state.key, j->state.order, j);
    drop_entry(m, j);
    j->place = MODEL_WAITS;
    forget_job(j);
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
            end_cancelled(m, held[i]->job);
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
        ended(m, j, j->state.keep > 0 ? "kept" : "done",
              j->state.keep > 0 ? "" : held[i]->text);
        if (j->state.keep > 0)
            store_body(j);
        drop_entry(m, j);
        end_of(m, j->state.key, j->state.order, j);
        if (j->state.keep == 0) {
            free_key(m, j->state.key, j);
            j->place = MODEL_WAITS;
            forget_job(j);
            continue;
        }
        move_key(m, j, 'k');
        j->unstored = false;
        j->state.attempts++;
        j->state.lost = 0;
        j->place = MODEL_KEPT;
        j->score = m->now + j->state.keep;
        if (held[i]->text[0])
            snprintf(j->result, sizeof(j->result), "%s", held[i]->text);
        if (held[i]->facts[0])
            add_run(m, j, "done", "", model_worker(worker), held[i]->facts);
        m->n.kept_in++;
        m->n.kept_bytes += (int64_t)strlen(held[i]->text) + record_bytes(j);
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
    size_t notes_n;

    m->wakes_later = true;
    notes_n = ack_items(m, r->worker, a, n, &notes);
    plan(m, r, &c);
    say(out, "%s", reserve_jobs(m, r, &c, &jobs));
    say(out, "%zu", notes_n);
    append(out, &notes);
    append(out, &jobs);
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
        move_key(m, j, ' ');
        add_run(m, j, held[i]->snoozed ? "snoozed" : "failed", held[i]->text,
                model_worker(worker), held[i]->facts);
        store_body(j);
        delay(m, j, m->now + held[i]->delay);
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
        move_key(m, j, 'x');
        end_of(m, j->state.key, j->state.order, j);
        add_run(m, j, "permanent", held[i]->text, model_worker(worker), held[i]->facts);
        store_body(j);
        die(m, j);
        dead_in(m, j);
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
static void
all_to_front(struct model *m, struct model_job **jobs, size_t n)
{
    for (size_t i = n; i > 0; i--)
        to_front(m, jobs[i - 1]);
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
            add_run(m, j, "released", "", model_worker(worker), held[i]->facts);
        move_key(m, j, ' ');
        if (!j->gone) /* else it stays until it is reclaimed, and booked */
            jobs[jobs_n++] = j;
    }
    m->n.released += (int64_t)jobs_n;
    if (jobs_n > 0)
        qsort(jobs, jobs_n, sizeof(jobs[0]), compare_tokens);
    all_to_front(m, jobs, jobs_n);
    wake_worker(m);
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
        const char *word = held_word(m, j, a[i].token, worker);

        if (!word && a[i].limit > 0 && m->now >= j->state.started + a[i].limit)
            word = "TIMEOUT";
        else if (!word) {
            renewed[renewed_n++] = j;
            word = j->state.flag ? "CANCEL" : NULL;
        }
        if (word)
            say(out, "%zu %s", i, word);
    }
    for (size_t i = 0; i < renewed_n; i++) { /* all were judged before */
        renewed[i]->score = m->now + lease_ms;
        if (!renewed[i]->gone)
            renewed[i]->delivered_at = m->now;
        renewed[i]->unstored = false;
    }
}

void
model_progress(struct model *m, int worker, const struct model_answer *a,
               struct wr_buf *out)
{
    const char *word = held_word(m, a->job, a->token, worker);

    if (!word) {
        snprintf(a->job->state.progress, sizeof(a->job->state.progress), "%s", a->text);
        a->job->unstored = false;
        word = a->job->state.flag ? "CANCEL" : "OK";
    }
    say(out, "%s", word);
}

/* ---- movers ---- */

/* ---- what jobs print ---- */

static int64_t
run_size(const struct model_run *r)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < r->n; i++)
        bytes += (int64_t)strlen(r->pieces[i].text);
    return bytes;
}

static int64_t
log_bytes(const struct model *m)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < m->jobs_n; i++) {
        for (size_t k = 0; k < m->jobs[i].runs_n; k++)
            bytes += run_size(&m->jobs[i].runs[k]);
    }
    return bytes;
}

static void
drop_run(struct model_job *j, size_t at)
{
    memmove(&j->runs[at], &j->runs[at + 1], sizeof(j->runs[0]) * (j->runs_n - at - 1));
    j->runs_n--;
}

static void
drop_piece(struct model_run *r, size_t at)
{
    memmove(&r->pieces[at], &r->pieces[at + 1], sizeof(r->pieces[0]) * (r->n - at - 1));
    r->n--;
}

/* The last run if it is this delivery's; runs of the same number with another token, and
 * more than may be kept, go. */
static struct model_run *
run_of(struct model *m, struct model_job *j)
{
    const struct model_state *s = &j->state;
    struct model_run *r = j->runs_n > 0 ? &j->runs[j->runs_n - 1] : NULL;

    if (r && r->number == s->deliveries && r->token == s->token)
        return r;
    for (size_t i = j->runs_n; i-- > 0;) {
        if (j->runs[i].number == s->deliveries)
            drop_run(j, i);
    }
    if (j->runs_n == MODEL_RUNS)
        drop_run(j, 0);
    r = &j->runs[j->runs_n++];
    *r = (struct model_run){.number = s->deliveries,
                            .token = s->token,
                            .seq = ++m->n.log_next,
                            .started = s->started,
                            .open = true};
    return r;
}

static void
print_to(struct model_run *r, const struct model_log *l, const char *text)
{
    struct model_piece *last = r->n > 0 ? &r->pieces[r->n - 1] : NULL;
    size_t first = 0;

    if (last && r->end - last->at < l->piece &&
        (last->at >= l->head || r->end < l->head)) {
        size_t len = strlen(last->text);

        check(len + strlen(text) < sizeof(last->text), "piece");
        snprintf(last->text + len, sizeof(last->text) - len, "%s", text);
    } else {
        check(r->n < MODEL_PIECES, "too many pieces");
        r->pieces[r->n].at = r->end;
        snprintf(r->pieces[r->n].text, sizeof(r->pieces[0].text), "%s", text);
        r->n++;
    }
    r->end += (int64_t)strlen(text);
    while (first < r->n && r->pieces[first].at < l->head)
        first++;
    while (first + 1 < r->n && r->end - r->pieces[first + 1].at >= l->tail)
        drop_piece(r, first);
}

/* The runs that began first go, until the queue has room again. */
static void
bound_log(struct model *m, int64_t bytes, size_t steps)
{
    for (; steps > 0 && m->n.log_head < m->n.log_next; steps--) {
        for (size_t i = 0; i < m->jobs_n; i++) {
            struct model_job *j = &m->jobs[i];

            for (size_t k = 0; k < j->runs_n; k++) {
                if (j->runs[k].seq != m->n.log_head + 1)
                    continue;
                if (log_bytes(m) <= bytes || bytes == 0)
                    return;
                drop_run(j, k);
                m->n.log_dropped++;
            }
        }
        m->n.log_head++;
    }
}

void
model_log(struct model *m, int worker, const struct model_log *limits,
          const struct model_answer *a, size_t n, struct wr_buf *out)
{
    size_t stored = 0;

    say(out, "OK");
    for (size_t i = 0; i < n; i++) {
        struct model_job *j = a[i].job;
        int64_t len = (int64_t)strlen(a[i].text);
        const char *word = held_word(m, j, a[i].token, worker);
        struct model_run *r;

        if (word && strcmp(word, "ANSWERED") != 0) {
            say(out, "%zu %s", i, word);
            continue;
        }
        stored++;
        r = run_of(m, j);
        if (a[i].at + len > r->taken) {
            int64_t skip = r->taken > a[i].at ? r->taken - a[i].at : 0;

            r->taken = a[i].at + len;
            print_to(r, limits, a[i].text + skip);
        }
        if (a[i].last)
            r->open = false;
    }
    if (stored > 0)
        bound_log(m, limits->bytes, 64 + stored);
}

static void
runs_text(const struct model_job *j, struct wr_buf *out)
{
    for (size_t i = 0; i < j->runs_n; i++) {
        const struct model_run *r = &j->runs[i];

        wr_buf_addf(out,
                    "%s%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                    " %" PRId64 " %" PRId64 " %d|",
                    i > 0 ? "\n" : "", r->number, r->token, r->seq, r->started, r->taken,
                    run_size(r), r->end, r->open);
        for (size_t k = 0; k < r->n; k++)
            wr_buf_addf(out, "%s%" PRId64, k > 0 ? "," : "", r->pieces[k].at);
    }
}

/* A stream needs the record now; a list finds out when the job is handed out. */
static bool
promote_one(struct model *m, struct model_job *j)
{
    if (!m->stream || has_body(j)) {
        to_back(m, j);
        m->n.promoted++;
        return true;
    }
    j->place = MODEL_WAITS;
    leave_line(m, j);
    if (j->has_state) {
        free_key(m, j->state.key, j);
        next_key(m, j->state.key, j);
    }
    become_stub(m, j);
    die(m, j);
    dead_in(m, j);
    m->n.lost_body_delayed++;
    return false;
}

void
model_promote(struct model *m, size_t limit, struct wr_buf *out)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = jobs_at(m, MODEL_DELAYED, all), moved = 0, due = 0;

    for (size_t i = 0; i < n && i < limit && all[i]->score <= m->now; i++)
        due++;
    for (size_t i = 0; i < due; i++)
        moved += (!m->stream || has_body(all[i])) && promote_one(m, all[i]);
    for (size_t i = 0; i < due; i++) { /* a stream buries what has no body after that */
        if (all[i]->place == MODEL_DELAYED && !has_body(all[i]))
            promote_one(m, all[i]);
    }
    wake_worker(m);
    n = jobs_at(m, MODEL_DELAYED, all);
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
        end_cancelled(m, j);
        return 'c';
    }
    if (!j->record ||
        (l->charged && s->max_deliveries > 0 && s->lost >= s->max_deliveries)) {
        move_key(m, j, j->record ? 'x' : '-');
        end_of(m, s->key, s->order, j);
        die(m, j);
        m->n.buried++;
        snprintf(text, sizeof(text),
                 "worker %s died with it, loss %" PRId64 " of %" PRId64, worker, s->lost,
                 s->max_deliveries);
        if (j->record)
            add_run(m, j, "lost_worker", text, worker, "");
        else
            become_stub(m, j);
        dead_in(m, j);
        return 'd';
    }
    move_key(m, j, ' ');
    snprintf(text, sizeof(text), "worker %s was lost", worker);
    if (l->charged)
        add_run(m, j, "lost", text, worker, "");
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
            delay(m, losses[i].job, m->now + loss_delay(before));
            counts[1]++;
            break;
        case 'd':
            counts[2]++;
            break;
        default:
            counts[3]++;
        }
    }
    all_to_front(m, front, front_n);
    m->n.reclaimed += counts[0];
    m->n.reclaimed_delayed += counts[1];
    wake_worker(m);
}

/* Was this delivery claimed ahead in its worker's last call? */
static bool
is_ahead(const struct model *m, const struct model_job *j)
{
    int w = worker_of(j->state.worker);

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
    size_t n = m->stream ? pending_rows(m, all) : jobs_at(m, MODEL_PROCESSING, all);

    for (size_t i = 0; i < n; i++) {
        if (m->stream && !all[i]->front && !all[i]->gone &&
            all[i]->delivered_at >= m->now) {
            all[i]->delivered_at = m->now;
            if (all[i]->unstored) /* nothing else says when it began */
                all[i]->state.started = m->now;
        } else if (!m->stream && all[i]->score > m->now + r->lease_max)
            all[i]->score = m->now + lease_of(m, all[i], r->lease);
    }
}

/* By the ends of the leases. Answers how many, and whether there may be more. */
static size_t
leases_over(struct model *m, const struct model_reclaim *r, struct loss *losses,
            bool *more)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = jobs_at(m, MODEL_PROCESSING, all), lost = 0;

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
            int64_t ends = rows[i]->delivered_at + lease_of(m, rows[i], r->lease);

            if (ends <= m->now && rows[i]->gone)
                losses[lost++] = (struct loss){part_with_entry(m, rows[i]), true};
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
    return jobs_at(m, MODEL_PROCESSING, all) > 0 ? all[0]->score : -1;
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
        say_int(out, counts[i]);
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
        if (is_in(named, lost, a[i].job) || held_word(m, a[i].job, a[i].token, worker)) {
            say(&notes, "%zu STALE", i);
            continue;
        }
        named[lost] = a[i].job;
        losses[lost++] = (struct loss){a[i].job, a[i].started};
    }
    for (size_t i = 0; m->claims[worker].is_set && i < m->claims[worker].n; i++) {
        struct model_claim *l = &m->claims[worker].list[i];

        if (is_in(named, lost, l->job) || !is_held(l->job, l->token, worker))
            continue;
        named[lost] = l->job;
        losses[lost++] = (struct loss){l->job, false};
    }
    lose_all(m, losses, lost, counts);
    m->claims[worker].is_set = false;
    say(out, "OK");
    for (int i = 0; i < 4; i++)
        say_int(out, counts[i]);
    append(out, &notes);
}

void
model_forget(struct model *m, size_t limit, size_t count_max, int64_t bytes_max,
             struct wr_buf *out)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = jobs_at(m, MODEL_KEPT, all), i = 0;
    int64_t freed = 0, bytes = m->n.kept_bytes;

    for (; i < n && i < limit; i++) {
        bool due = all[i]->score <= m->now;

        if (!due && n - i <= count_max && bytes - freed <= bytes_max)
            break;
        freed += record_bytes(all[i]) + (int64_t)strlen(all[i]->result);
        all[i]->place = MODEL_WAITS;
        if (all[i]->has_state)
            free_key(m, all[i]->state.key, all[i]);
        forget_job(all[i]);
    }
    m->n.kept_bytes -= freed;
    if (i == n)
        m->n.kept_bytes = 0;
    m->n.forgotten += (int64_t)i;
    say(out, "%s %zu", i == limit ? "MORE" : "OK", i);
    if (i == n)
        say(out, "-1");
    else
        say_int(out, all[i]->score > m->now ? all[i]->score - m->now : 0);
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
        leave_line(m, over[i]);
        let_in(m, over[i]);
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
            m->claims[i].is_set = false;
            removed++;
        }
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

/* ---- people ---- */

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
        ended(m, j, "cancelled", "");
        free_key(m, waiting_key(j), j);
        j->place = MODEL_WAITS;
        forget_job(j);
        m->n.cancelled_delayed++;
        return "DELAYED";
    }
    if (!j->record)
        return "GONE";
    ended(m, j, "cancelled", "");
    free_key(m, waiting_key(j), j);
    forget_job(j);
    if (m->stream)
        drop_entry(m, j);
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
        const char *word = cancel_one(m, jobs[i], is_in(jobs, i, jobs[i]));
        bool ended = strcmp(word, "READY") == 0 || strcmp(word, "DELAYED") == 0;

        keys[i] = ended ? key : -1;
        all_ended[i] = ended;
        orders[i] = order;
        say(out, "%s", word);
        say(out, "%s", strcmp(word, "FLAGGED") == 0 ? jobs[i]->state.worker : "");
    }
    if (m->n.cancelled_ready > before)
        pop_tombs(m);
    for (size_t i = 0; i < n; i++) {
        if (!all_ended[i])
            continue;
        free_key(m, keys[i], jobs[i]);
        end_of(m, keys[i], orders[i], jobs[i]);
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
    int64_t at = due_of(m, due);

    if (!j->record)
        say(out, "GONE ");
    else if (j->place != MODEL_WAITS && j->place != MODEL_DELAYED)
        say(out, "OTHER %s", place_word(j));
    else if (j->place == MODEL_WAITS && m->ready_n <= model_tombs(m))
        say(out, "BROKEN ");
    else if (j->place == MODEL_DELAYED && j->score >= MODEL_PARKED) {
        if (at < 0) {
            say(out, "BEHIND %s", behind(m, j)->id);
            return;
        }
        delay(m, j, MODEL_PARKED + at);
        say(out, "DELAYED %" PRId64, at);
    } else if (at >= 0) {
        unpark(m, j);
        if (j->place == MODEL_WAITS)
            defer(m, j, at);
        else
            delay(m, j, at);
        say(out, "DELAYED %" PRId64, at);
    } else {
        unpark(m, j);
        if (j->place == MODEL_DELAYED) {
            if (due[0] || m->stream) /* which has no front for a new entry */
                to_back(m, j);
            else
                to_front(m, j);
            m->n.promoted++;
            wake_worker(m);
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
        all_n = jobs_at(m, MODEL_DEAD, all);
        for (; skip + chosen < all_n && chosen < limit; chosen++) {
            if (before >= 0 && all[skip + chosen]->score > before)
                break;
            out[chosen] = all[skip + chosen];
            at[chosen] = chosen;
        }
        return chosen;
    }
    for (size_t i = 0; i < n; i++) {
        if (jobs[i]->place != MODEL_DEAD || is_in(out, chosen, jobs[i])) {
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
    h = taken[j->state.key] ? taken[j->state.key] : key_holder(m, j->state.key, j);
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
            to_back(m, jobs[i]);
    }
    for (size_t i = 0; i < wait_n; i++)
        delay(m, wait[i], MODEL_PARKED);
    m->n.deferred += (int64_t)wait_n;
    join_lines(m, lined, orders, lined_n);
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
    dead_out(m, moved, moved_n);
    revive_all(m, moved, moved_n);
    if (moved_n > 0)
        wake_worker(m);
    say(out, "OK %zu %zu", moved_n, ids_n);
    append(out, &notes);
}

static void
remove_dead(struct model *m, struct model_job **ids, size_t n)
{
    dead_out(m, ids, n);
    for (size_t i = 0; i < n; i++) {
        if (ids[i]->has_state)
            free_key(m, ids[i]->state.key, ids[i]);
        forget_job(ids[i]);
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
    append(out, &notes);
}

/* A limit of 0 is none. */
void
model_trim(struct model *m, const struct model_trim *t, struct wr_buf *out)
{
    struct model_job *all[MODEL_JOBS];
    size_t n = jobs_at(m, MODEL_DEAD, all), i = 0;
    int64_t bytes = m->n.dead_bytes;

    for (; i < n && i < t->limit; i++) {
        if (!(t->count > 0 && n - i > t->count) &&
            !(t->age > 0 && all[i]->score + t->age <= m->now) &&
            !(t->bytes > 0 && bytes > t->bytes))
            break;
        bytes -= dead_bytes(all[i]);
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
    wake_worker(m);
}

static void
errors_text(const struct model_job *j, struct wr_buf *out)
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
    record_text(j, record, sizeof(record));
    state_text(j, state, sizeof(state));
    say(out, "OK %" PRId64 " %s", m->now, place_word(j));
    if (j->place == MODEL_WAITS)
        say(out, "%s", "");
    else
        say_int(out, m->stream && j->place == MODEL_PROCESSING
                         ? j->delivered_at + lease_of(m, j, MODEL_LEASE)
                         : j->score);
    say(out, "%s", record);
    say(out, "%zu", strlen(record));
    say(out, "%s", state);
    say(out, "%s", j->result);
    say(out, "%zu", strlen(j->result));
    say(out, "%s", "");
    errors_text(j, out);
    say(out, "%s", "");
    runs_text(j, out);
    say(out, "%s", behind(m, j) ? behind(m, j)->id : "");
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
        part_with_entry(m, j);
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

int64_t
model_missing_entries(const struct model *m)
{
    int64_t n = m->vanished;

    for (size_t i = 0; i < m->jobs_n; i++)
        n += m->jobs[i].gone;
    return n;
}

/* Is its record in `jobs`? A stream's entry has it while the job waits or runs. */
static bool
lies_in_jobs(const struct model *m, const struct model_job *j)
{
    return j->record && (!m->stream || j->entry == 0);
}

int64_t
model_missing_bodies(const struct model *m)
{
    int64_t places = m->stream ? 0 : (int64_t)(m->ready_n - model_tombs(m)), records = 0;

    for (size_t i = 0; i < m->jobs_n; i++) {
        const struct model_job *j = &m->jobs[i];

        places += j->place != MODEL_WAITS && j->entry == 0;
        records += lies_in_jobs(m, j);
    }
    return places - records;
}

/* ---- all of it as a text ---- */

const char model_dump_script[] =
    "local out, prefix = {}, KEYS[1]\n"
    "local function add(name, list)\n"
    "  out[#out + 1] = name .. '{' .. table.concat(list, ';') .. '}'\n"
    "end\n"
    "local function pairs_of(name, all)\n"
    "  local list = {}\n"
    "  for i = 1, #all, 2 do\n"
    "    if name ~= 'stats' or all[i + 1] ~= '0' then\n"
    "      list[#list + 1] = all[i] .. '=' .. all[i + 1]\n"
    "    end\n"
    "  end\n"
    "  table.sort(list)\n"
    "  add(name, list)\n"
    "end\n"
    "add('ready', redis.call('LRANGE', prefix .. 'ready', 0, -1))\n"
    "if redis.call('EXISTS', prefix .. 'stream') == 1 then\n"
    "  local list = {}\n"
    "  for i, e in ipairs(redis.call('XRANGE', prefix .. 'stream', '-', '+')) do\n"
    "    list[i] = e[1] .. '=' .. (e[2][4] or e[1]) .. '=' .. e[2][2]\n"
    "  end\n"
    "  add('stream', list)\n"
    "  local rows, list, at, t = nil, {}, 0, nil\n"
    "  repeat\n"
    "    t = redis.call('TIME')\n"
    "    at = t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "    rows = redis.call('XPENDING', prefix .. 'stream', 'workers', '-', '+', 9999)\n"
    "    t = redis.call('TIME')\n"
    "  until at == t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "  for i, p in ipairs(rows) do\n"
    "    local time = at - p[3] + 1000000000000\n" /* as include/group.lua stores it */
    "    list[i] = p[1] .. '=' .. p[2] .. ':' .. p[4] .. ':' ..\n"
    "      (p[2] == '_front' and '-' or string.format('%.0f', time))\n"
    "  end\n"
    "  add('pending', list)\n"
    "  pairs_of('ids', redis.call('HGETALL', prefix .. 'ids'))\n"
    "end\n"
    "for _, name in ipairs({'processing', 'delayed', 'dead', 'kept', 'windows'}) do\n"
    "  pairs_of(name, redis.call('ZRANGE', prefix .. name, 0, -1, 'WITHSCORES'))\n"
    "end\n"
    "local moving = redis.call('HGET', prefix .. 'config', 'moving')\n"
    "local mine = redis.call('HGETALL', prefix .. 'jobs')\n"
    "if moving and redis.call('EXISTS', prefix .. 'stream') == 1 then\n"
    "  local all = mine\n" /* but for what is copied, or left over */
    "  mine = {}\n"
    "  for i = 1, #all, 2 do\n"
    "    if redis.call('ZSCORE', prefix .. 'delayed', all[i])\n"
    "       or redis.call('ZSCORE', prefix .. 'dead', all[i])\n"
    "       or redis.call('ZSCORE', prefix .. 'kept', all[i]) then\n"
    "      mine[#mine + 1], mine[#mine + 2] = all[i], all[i + 1]\n"
    "    end\n"
    "  end\n"
    "end\n"
    "pairs_of('jobs', mine)\n"
    "for _, name in ipairs({'tombs', 'state', 'results', 'errors', 'log', "
    "'unique', 'order',\n"
    "                       'claims', 'waiters', 'producers', 'stats'}) do\n"
    "  pairs_of(name, redis.call('HGETALL', prefix .. name))\n"
    "end\n"
    "add('wake', {redis.call('LLEN', prefix .. 'wake')})\n"
    "add('due', {redis.call('LLEN', prefix .. 'due')})\n"
    "add('paused', {redis.call('HGET', prefix .. 'config', 'paused') or ''})\n"
    "local moved = redis.call('HGET', prefix .. 'config', 'moved')\n"
    "add('moving', {moving or '', string.match(moved or '', '^%d+') or '',\n"
    "  not moving and redis.call('EXISTS', prefix .. 'next:ready', prefix .. "
    "'next:ids',\n"
    "                            prefix .. 'next:stream') or '-'})\n"
    "return table.concat(out, '\\n')\n";

struct lines {
    char text[MODEL_JOBS][2000];
    size_t n;
};

static void
add_line(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void
add_line(struct lines *l, const char *fmt, ...)
{
    va_list ap;

    check(l->n < MODEL_JOBS, "too many lines");
    va_start(ap, fmt);
    vsnprintf(l->text[l->n++], sizeof(l->text[0]), fmt, ap);
    va_end(ap);
}

static int
compare_lines(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void
flush_lines(struct lines *l, const char *name, struct wr_buf *out)
{
    if (l->n > 0)
        qsort(l->text, l->n, sizeof(l->text[0]), compare_lines);
    wr_buf_addf(out, "%s%s{", out->len > 0 ? "\n" : "", name);
    for (size_t i = 0; i < l->n; i++) {
        wr_buf_add_str(out, i > 0 ? ";" : "");
        wr_buf_add_str(out, l->text[i]);
    }
    wr_buf_add_str(out, "}");
    l->n = 0;
}

static void
dump_places(const struct model *m, struct lines *l, struct wr_buf *out)
{
    static const struct {
        const char *name;
        enum model_place place;
    } rows[] = {{"processing", MODEL_PROCESSING},
                {"delayed", MODEL_DELAYED},
                {"dead", MODEL_DEAD},
                {"kept", MODEL_KEPT}};

    for (size_t r = 0; r < 4; r++) {
        for (size_t i = 0; i < m->jobs_n; i++) {
            if (m->jobs[i].place == rows[r].place &&
                (!m->stream || rows[r].place != MODEL_PROCESSING))
                add_line(l, "%s=%" PRId64, m->jobs[i].id, m->jobs[i].score);
        }
        flush_lines(l, rows[r].name, out);
    }
}

static void
dump_jobs(const struct model *m, struct lines *l, struct wr_buf *out)
{
    char text[256];

    for (size_t i = 0; i < m->jobs_n; i++) {
        if (lies_in_jobs(m, &m->jobs[i]) &&
            record_text(&m->jobs[i], text, sizeof(text)) > 0)
            add_line(l, "%s=%s", m->jobs[i].id, text);
    }
    flush_lines(l, "jobs", out);
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].tomb)
            add_line(l, "%s=1", m->jobs[i].id);
    }
    flush_lines(l, "tombs", out);
    for (size_t i = 0; i < m->jobs_n; i++) {
        state_text(&m->jobs[i], text, sizeof(text));
        if (text[0] && !m->jobs[i].unstored)
            add_line(l, "%s=%s", m->jobs[i].id, text);
    }
    flush_lines(l, "state", out);
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].result[0])
            add_line(l, "%s=%s", m->jobs[i].id, m->jobs[i].result);
    }
    flush_lines(l, "results", out);
}

static void
dump_errors(const struct model *m, struct lines *l, struct wr_buf *out)
{
    for (size_t i = 0; i < m->jobs_n; i++) {
        struct wr_buf text = {0};

        errors_text(&m->jobs[i], &text);
        if (text.len > 0)
            add_line(l, "%s=%s", m->jobs[i].id, text.ptr);
        wr_buf_fini(&text);
    }
    flush_lines(l, "errors", out);
}

static void
dump_log(const struct model *m, struct lines *l, struct wr_buf *out)
{
    for (size_t i = 0; i < m->jobs_n; i++) {
        const struct model_job *j = &m->jobs[i];
        struct wr_buf text = {0};

        runs_text(j, &text);
        if (text.len > 0)
            add_line(l, "%s=%s", j->id, text.ptr);
        wr_buf_fini(&text);
        for (size_t k = 0; k < j->runs_n; k++) {
            const struct model_run *r = &j->runs[k];

            add_line(l, "\t%" PRId64 "=%s\t%" PRId64, r->seq, j->id, r->number);
            for (size_t p = 0; p < r->n; p++)
                add_line(l, "%s\t%" PRId64 "\t%" PRId64 "=%s", j->id, r->number,
                         r->pieces[p].at, r->pieces[p].text);
        }
    }
    flush_lines(l, "log", out);
}

static void
dump_callers(const struct model *m, struct lines *l, struct wr_buf *out)
{
    for (int w = 0; w < MODEL_WORKERS; w++) {
        struct wr_buf list = {0};

        if (!m->claims[w].is_set)
            continue;
        wr_buf_add_str(&list, "");
        for (size_t i = 0; i < m->claims[w].n; i++)
            wr_buf_addf(&list, "%s\t%" PRId64 "\t%d\n", m->claims[w].list[i].job->id,
                        m->claims[w].list[i].token, m->claims[w].list[i].ahead);
        add_line(l, "%s=%" PRId64 " %" PRId64 " %" PRId64 "\n%s", model_worker(w),
                 m->claims[w].call, m->claims[w].at, m->claims[w].lease,
                 (const char *)wr_buf_span(&list).ptr);
        wr_buf_fini(&list);
    }
    flush_lines(l, "claims", out);
    for (size_t i = 0; i < m->jobs_n; i++) {
        struct wr_buf list = {0};

        for (size_t k = 0; k < m->jobs[i].waiters_n; k++)
            wr_buf_addf(&list, "%s%s/%" PRId64 " %" PRId64, k > 0 ? " " : "",
                        model_waits_at(m->jobs[i].waiters[k].channel),
                        m->jobs[i].waiters[k].number, m->jobs[i].waiters[k].until);
        if (list.len > 0)
            add_line(l, "%s=%s", m->jobs[i].id, list.ptr);
        wr_buf_fini(&list);
    }
    flush_lines(l, "waiters", out);
    for (int c = 0; c < MODEL_CHANNELS; c++) {
        if (m->channels[c].is_set)
            add_line(l, "%s=%" PRId64 " %" PRId64 " %zu %s %s%s%s", model_channel(c),
                     m->channels[c].number, m->channels[c].at, m->channels[c].count,
                     m->channels[c].notes, m->channels[c].first,
                     m->channels[c].detail[0] ? "\n" : "", m->channels[c].detail);
    }
    flush_lines(l, "producers", out);
}

static void
dump_keys(const struct model *m, struct lines *l, struct wr_buf *windows,
          struct wr_buf *unique)
{
    for (int k = 0; k < MODEL_KEYS; k++) {
        if (m->keys[k].window >= 0)
            add_line(l, "%s=%" PRId64, model_key(k), m->keys[k].window);
    }
    wr_buf_add_str(windows, "");
    flush_lines(l, "windows", windows);
    for (int k = 0; k < MODEL_KEYS; k++) {
        if (m->keys[k].holder)
            add_line(l, "%s=%s", model_key(k), m->keys[k].holder->id);
        if (m->keys[k].before)
            add_line(l, "=%s=%s", model_key(k), m->keys[k].before->id);
    }
    flush_lines(l, "unique", unique);
    for (int o = 0; o < MODEL_LINES; o++) {
        struct model_job *const *jobs = m->lines[o].jobs;
        size_t n = m->lines[o].n;

        for (size_t i = 0; i < n; i++)
            add_line(l, "=%s=%s\t%s\t%s", jobs[i]->id, model_line(o),
                     i > 0 ? jobs[i - 1]->id : "", i + 1 < n ? jobs[i + 1]->id : "");
        if (n > 0)
            add_line(l, "%s=%s", model_line(o), jobs[n - 1]->id);
    }
    flush_lines(l, "order", unique);
}

static int
compare_entries(const void *a, const void *b)
{
    const struct model_job *x = *(const struct model_job *const *)a;
    const struct model_job *y = *(const struct model_job *const *)b;

    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* Entries by their numbers, as the test writes those of the server. */
static void
dump_stream(const struct model *m, struct lines *l, struct wr_buf *out)
{
    const struct model_job *all[MODEL_JOBS];
    size_t n = 0, there = 0, pending = 0;
    char text[256];

    if (!m->has_stream)
        return;
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].entry > 0)
            all[n++] = &m->jobs[i];
    }
    if (n > 0)
        qsort(all, n, sizeof(all[0]), compare_entries);
    wr_buf_add_str(out, "\nstream{");
    for (size_t i = 0; i < n; i++) {
        if (all[i]->gone)
            continue;
        record_text(all[i], text, sizeof(text));
        wr_buf_addf(out, "%s" MODEL_ENTRY "=%s=%s", there++ > 0 ? ";" : "", all[i]->entry,
                    all[i]->id, text);
    }
    wr_buf_add_str(out, "}\npending{");
    for (size_t i = 0; i < n; i++) {
        const struct model_job *j = all[i];
        bool runs = j->place == MODEL_PROCESSING;

        if (!runs && !j->front)
            continue;
        wr_buf_addf(out, "%s" MODEL_ENTRY "=%s", pending++ > 0 ? ";" : "", j->entry,
                    runs ? j->state.worker : "_front");
        if (runs && m->generation > 1)
            wr_buf_addf(out, "#%" PRId64, m->generation);
        wr_buf_addf(out, ":%" PRId64 ":", j->count);
        if (runs)
            wr_buf_addf(out, "%" PRId64, j->delivered_at);
        else
            wr_buf_add_str(out, "-");
    }
    wr_buf_add_str(out, "}");
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].indexed > 0)
            add_line(l, "%s=" MODEL_ENTRY, m->jobs[i].id, m->jobs[i].indexed);
    }
    flush_lines(l, "ids", out);
}

void
model_dump(const struct model *m, struct wr_buf *out)
{
    static struct lines l;
    struct wr_buf windows = {0}, unique = {0};

    wr_buf_clear(out);
    dump_keys(m, &l, &windows, &unique);
    wr_buf_add_str(out, "ready{");
    for (size_t i = 0; i < m->ready_n && !m->stream; i++)
        wr_buf_addf(out, "%s%s", i > 0 ? ";" : "", m->ready[i]->id);
    wr_buf_add_str(out, "}");
    if (m->stream)
        dump_stream(m, &l, out);
    dump_places(m, &l, out);
    wr_buf_addf(out, "\n%s", windows.ptr);
    dump_jobs(m, &l, out);
    dump_errors(m, &l, out);
    dump_log(m, &l, out);
    wr_buf_addf(out, "\n%s", unique.ptr);
    dump_callers(m, &l, out);
#define X(name)         \
    if (m->n.name != 0) \
        add_line(&l, #name "=%" PRId64, m->n.name);
    MODEL_COUNTERS(X)
#undef X
    if (m->reclaim_at > 0)
        add_line(&l, "reclaim_at=" MODEL_ENTRY " %" PRId64, m->reclaim_at,
                 m->reclaim_end);
    if (m->shelved_last[0])
        add_line(&l, "shelved_last=%s", m->shelved_last);
    if (log_bytes(m) != 0)
        add_line(&l, "log_bytes=%" PRId64, log_bytes(m));
    flush_lines(&l, "stats", out);
    wr_buf_addf(out, "\nwake{%d}\ndue{%d}\npaused{", m->wake, m->due);
    if (m->paused)
        wr_buf_addf(out, "%" PRId64 " %s", m->paused_at, m->paused_by);
    wr_buf_add_str(out, "}\n");
    model_move_dump(m, out);
    wr_buf_fini(&windows);
    wr_buf_fini(&unique);
}
