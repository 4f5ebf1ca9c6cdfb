/* What jobs print; see model.h. */
#include "script/model_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t
run_size(const struct model_run *r)
{
    int64_t bytes = 0;

    for (size_t i = 0; i < r->n; i++)
        bytes += (int64_t)strlen(r->pieces[i].text);
    return bytes;
}

int64_t
model_log_bytes(const struct model *m)
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

        model_check(len + strlen(text) < sizeof(last->text), "piece");
        snprintf(last->text + len, sizeof(last->text) - len, "%s", text);
    } else {
        model_check(r->n < MODEL_PIECES, "too many pieces");
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
                if (model_log_bytes(m) <= bytes || bytes == 0)
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
        const char *word = model_held_word(m, j, a[i].token, worker);
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

void
model_runs_text(const struct model_job *j, struct wr_buf *out)
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
