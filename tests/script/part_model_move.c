/* The model's moves between engines; see model.h. */
#include "script/model_parts.h"

#include <stdio.h>
#include <string.h>

/* What counts changes of the jobs that wait, other than one more at the back. */
static void
sign(const struct model *m, int64_t out[11])
{
    const int64_t counts[11] = {
        m->n.deliveries,      m->n.cancelled_ready,   m->n.expired_ready,
        m->n.lost_body_ready, m->n.deferred,          m->n.shelved,
        m->n.released,        m->n.reclaimed,         m->n.replaced,
        m->n.skipped,         (int64_t)model_tombs(m)};

    memcpy(out, counts, sizeof(counts));
}

static size_t
running(const struct model *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->jobs_n; i++)
        n += m->jobs[i].place == MODEL_PROCESSING;
    return n;
}

static size_t
entries(const struct model *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->jobs_n; i++)
        n += m->jobs[i].entry > 0 && !m->jobs[i].gone;
    return n;
}

static void
begin(struct model *m, bool to_stream)
{
    m->move = (struct model_move){
        .is_on = true, .to_stream = to_stream, .was = m->paused};
    if (m->paused)
        return;
    m->paused = true;
    m->paused_at = m->now;
    snprintf(m->paused_by, sizeof(m->paused_by), "mover moving%%20to%%20%s",
             to_stream ? "stream" : "list");
}

/* waits: jobs do. */
static void
end(struct model *m, bool waits)
{
    m->move.is_on = false;
    if (m->move.was)
        return;
    m->paused = false;
    m->wake = m->wake || waits;
}

static void
become_stream(struct model *m)
{
    struct model_job *old[MODEL_READY];
    size_t n = m->ready_n, tombs = model_tombs(m);

    memcpy(old, m->ready, n * sizeof(old[0]));
    m->move.left = n;
    m->move.phase = MODEL_MOVE_SWEEP;
    m->move.has_copy = false;
    m->stream = m->has_stream = true;
    m->generation++;
    m->ready_n = m->move.sofar;
    for (size_t i = n, at = m->ready_n; i > 0; i--) {
        struct model_job *j = old[i - 1];

        if (!j->tomb) {
            j->entry = j->indexed = ++m->entries;
            m->ready[--at] = j;
        }
    }
    /* Somebody deleted the body of one that was cancelled in its second life: nobody sees
     * that it stood there twice. */
    m->vanished += (int64_t)(n - m->move.sofar - tombs);
    for (size_t i = 0; i < n; i++)
        old[i]->tomb = false;
}

static void
become_list(struct model *m)
{
    size_t left = 0;

    for (size_t i = 0; i < m->ready_n; i++) {
        if (!m->ready[i]->gone)
            m->ready[left++] = m->ready[i];
    }
    m->ready_n = left;
    for (size_t i = 0; i < m->jobs_n; i++) {
        m->jobs[i].entry = m->jobs[i].count = m->jobs[i].indexed = 0;
        m->jobs[i].front = m->jobs[i].gone = false;
    }
    m->stream = m->has_stream = false;
}

/* Takes the i-th place from the left away. */
static void
remove_place(struct model *m, size_t i)
{
    memmove(&m->ready[i], &m->ready[i + 1], sizeof(m->ready[0]) * (--m->ready_n - i));
}

/* Those of the next n places that have no job of their own: dead, as in a reserve. */
static bool
bury_lost(struct model *m, size_t n)
{
    struct model_job *lost[MODEL_READY];
    bool copy[MODEL_READY];
    size_t lost_n = 0, first = m->ready_n - m->move.copied, copied = m->ready_n;

    for (size_t i = 0; i < n; i++) {
        struct model_job *j = m->ready[first - i - 1];
        bool again = j->place != MODEL_WAITS;

        for (size_t k = first - i; k < copied; k++)
            again = again || (m->ready[k] == j && !j->tomb);
        if (!j->tomb && (again || !j->record)) {
            copy[lost_n] = again;
            lost[lost_n++] = j;
        }
    }
    for (size_t i = 0; i < lost_n; i++) {
        size_t at = copy[i] ? 0 : m->ready_n - 1;

        while (m->ready[at] != lost[i])
            at += copy[i] ? 1 : (size_t)-1;
        remove_place(m, at);
        model_bury_lost(m, lost[i], copy[i]);
    }
    return lost_n > 0;
}

/* A step of a list. */
static void
leave_list(struct model *m, bool to_stream, size_t limit, size_t bytes,
           struct wr_buf *out)
{
    struct model_move *v = &m->move;
    size_t n = 0, jobs = 0, size = 0;
    int64_t signature[11];

    if (!to_stream) {
        if (v->is_on)
            end(m, m->ready_n > model_tombs(m));
        say(out, "DONE 0 0");
        return;
    }
    if (v->is_on && !m->paused) {
        v->is_on = false;
        say(out, "RESUMED");
        return;
    }
    if (!v->is_on)
        begin(m, true);
    if (running(m) > 0) {
        say(out, "RUNS %zu 0", running(m));
        return;
    }
    sign(m, signature);
    if (v->has_copy &&
        (memcmp(signature, v->signature, sizeof(signature)) != 0 ||
         (v->copied > 0 &&
          (v->copied > m->ready_n || m->ready[m->ready_n - v->copied] != v->last)))) {
        v->has_copy = false;
        say(out, "AGAIN 0 0");
        return;
    }
    if (!v->has_copy) {
        v->has_copy = true;
        v->copied = v->sofar = 0;
        memcpy(v->signature, signature, sizeof(signature));
    }
    for (; n < limit && v->copied + n < m->ready_n; n++) {
        size += (size_t)model_record_bytes(m->ready[m->ready_n - v->copied - n - 1]);
        if (n > 0 && size > bytes)
            break;
    }
    if (bury_lost(m, n)) {
        v->has_copy = false;
        say(out, "AGAIN 0 0");
        return;
    }
    for (size_t i = 0; i < n; i++)
        jobs += !m->ready[m->ready_n - v->copied - i - 1]->tomb;
    v->copied += n;
    v->sofar += jobs;
    v->last = n > 0 ? m->ready[m->ready_n - v->copied] : v->last;
    say(out, "COPIED %zu %zu", jobs, v->sofar);
    if (v->copied == m->ready_n)
        become_stream(m);
}

static void
sweep(struct model *m, bool to_stream, size_t limit, struct wr_buf *out)
{
    struct model_move *v = &m->move;
    size_t n = v->left < limit ? v->left : limit;
    bool is_over = v->left == n && v->phase == MODEL_MOVE_SWEEP;

    v->left -= n;
    if (is_over)
        end(m, entries(m) > 0); /* of one that was resumed meanwhile jobs may run */
    else if (v->left == 0) {
        v->phase = MODEL_MOVE_COPY;
        v->has_copy = false;
    }
    say(out, "%s %zu 0", is_over && to_stream ? "DONE" : "SWEPT", n);
}

/* Those in front whose entries were deleted by hand are dead, as in a reserve. */
static bool
bury_gone(struct model *m, size_t limit)
{
    size_t n = 0;

    for (size_t at = m->ready_n; at > 0 && n < limit; at--) {
        if (m->ready[at - 1]->gone) {
            model_bury_lost(m, m->ready[at - 1], false);
            n++;
        }
    }
    return n > 0;
}

/* A step of a stream. */
static void
leave_stream(struct model *m, bool to_stream, size_t limit, size_t bytes,
             struct wr_buf *out)
{
    struct model_move *v = &m->move;
    size_t n = 0, at, size = 0;
    int64_t signature[11];

    if (!v->is_on && to_stream) {
        say(out, "DONE 0 0");
        return;
    }
    if (v->is_on && !v->to_stream && (to_stream || !m->paused)) {
        v->to_stream = true;
        v->was = v->was || !m->paused;
        v->phase = MODEL_MOVE_SWEEP;
        v->has_copy = false;
        if (!m->paused) {
            say(out, "RESUMED");
            return;
        }
    }
    if (v->is_on && v->phase != MODEL_MOVE_COPY) {
        sweep(m, to_stream, limit, out);
        return;
    }
    if (!v->is_on)
        begin(m, false);
    if (running(m) > 0) {
        say(out, "RUNS %zu 0", running(m));
        return;
    }
    sign(m, signature);
    if (v->has_copy && memcmp(signature, v->signature, sizeof(signature)) != 0) {
        v->phase = MODEL_MOVE_AGAIN;
        v->has_copy = false;
        say(out, "AGAIN 0 0");
        return;
    }
    if (!v->has_copy && bury_gone(m, limit)) {
        v->phase = MODEL_MOVE_AGAIN;
        say(out, "AGAIN 0 0");
        return;
    }
    if (!v->has_copy) {
        v->has_copy = true;
        v->copied = 0;
        v->last_entry = 0;
        memcpy(v->signature, signature, sizeof(signature));
    }
    for (at = m->ready_n; at > 0 && n < limit && size <= bytes; at--) {
        struct model_job *j = m->ready[at - 1];

        if (j->gone || j->entry <= v->last_entry)
            continue;
        size += (size_t)model_record_bytes(j);
        v->last_entry = j->entry;
        n++;
    }
    v->copied += n;
    v->left += n;
    for (;
         at > 0 && (m->ready[at - 1]->gone || m->ready[at - 1]->entry <= v->last_entry);)
        at--;
    say(out, "%s %zu %zu", at == 0 ? "DONE" : "COPIED", n, v->copied);
    if (at == 0) {
        become_list(m);
        end(m, v->copied > 0);
        v->left = 0;
    }
}

void
model_migrate(struct model *m, bool to_stream, size_t limit, size_t bytes,
              struct wr_buf *out)
{
    if (m->stream)
        leave_stream(m, to_stream, limit, bytes, out);
    else
        leave_list(m, to_stream, limit, bytes, out);
}

void
model_move_dump(const struct model *m, struct wr_buf *out)
{
    static const char *const phases[] = {"copy", "again", "sweep"};
    const struct model_move *v = &m->move;

    wr_buf_add_str(out, "moving{");
    if (v->is_on)
        wr_buf_addf(out, "%s %d %s", v->to_stream ? "stream" : "list", v->was,
                    phases[v->phase]);
    wr_buf_add_str(out, ";");
    if (v->is_on && v->has_copy)
        wr_buf_addf(out, "%zu", v->copied);
    wr_buf_addf(out, ";%s}", v->is_on ? "-" : "0");
}
