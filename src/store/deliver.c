/* What workers call: reserve, exchange, the answers, extend, progress. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/call.h"
#include "store/scripts.gen.h"

static const char *const answered_words[] = {"OK",    "CANCELLED", "ANSWERED",
                                             "STALE", "GONE",      NULL};
static const char *const reserve_words[] = {"OK",     "EMPTY",   "MORE",
                                            "PAUSED", "SHELVED", NULL};
static const char *const extend_words[] = {"OK",    "CANCEL", "TIMEOUT", "ANSWERED",
                                           "STALE", "GONE",   NULL};

/* Notes are position, word pairs in elements first .. end-1. */
static enum weir_err
read_notes(const struct wr_call *c, size_t first, size_t end, const char *const *words,
           void (*put)(void *out, size_t at, int word), void *out, size_t n,
           struct weir_error *err)
{
    for (size_t i = first; i + 1 < end; i += 2) {
        int64_t at = wr_reply_int(wr_reply_at(c->reply, i));
        int word = wr_call_word(c, i + 1, words);

        if (at < 0 || (size_t)at >= n || word < 0)
            return wr_fail(err, WEIR_E_CORRUPT, 0, "%s: odd note", c->script->name);
        if (out)
            put(out, (size_t)at, word);
    }
    return WEIR_OK;
}

static void
put_answered(void *out, size_t at, int word)
{
    ((enum wr_answered *)out)[at] = (enum wr_answered)word;
}

static void
put_extended(void *out, size_t at, int word)
{
    ((enum wr_extended *)out)[at] = (enum wr_extended)word;
}

void
wr_batch_fini(struct wr_batch *batch)
{
    free(batch->jobs);
    wr_reply_free(batch->reply);
    *batch = (struct wr_batch){0};
}

/* Jobs are id, state, record triples from element `first` on. The batch takes the reply.
 */
static enum weir_err
read_jobs(struct wr_call *c, size_t first, struct wr_batch *out, struct weir_error *err)
{
    size_t len = wr_reply_len(c->reply), n = len > first ? (len - first) / 3 : 0;

    out->jobs = n > 0 ? calloc(n, sizeof(out->jobs[0])) : NULL;
    if (n > 0 && !out->jobs)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "reserve");
    for (size_t i = 0; i < n; i++) {
        struct wr_delivery *d = &out->jobs[i];
        struct wr_span state = wr_reply_span(wr_reply_at(c->reply, first + 3 * i + 1));

        d->id = wr_reply_span(wr_reply_at(c->reply, first + 3 * i));
        d->record = wr_reply_span(wr_reply_at(c->reply, first + 3 * i + 2));
        if (!wr_job_state_read(state, &d->state))
            return wr_fail(err, WEIR_E_CORRUPT, 0,
                           "reserve: a state that cannot be read");
    }
    out->n = n;
    out->reply = c->reply;
    c->reply = NULL;
    return WEIR_OK;
}

static void
fill_reserve(struct wr_call *c, const struct wr_reserve *want)
{
    wr_call_now(c);
    wr_call_str(c, want->worker);
    wr_call_int(c, want->call);
    wr_call_int(c, (int64_t)want->free);
    wr_call_int(c, (int64_t)want->ahead);
    wr_call_int(c, want->lease_ms);
    wr_call_int(c, WR_BATCH_BYTES);
    wr_call_str(c, want->types ? want->types : "");
    wr_call_int(c, want->keep_ms);
}

/* REPEAT is the saved answer of the same call: jobs like any others. */
static enum wr_reserve_word
reserve_word(const struct wr_call *c)
{
    int word = wr_call_word(c, 0, reserve_words);

    return word < 0 ? WR_RESERVE_MORE : (enum wr_reserve_word)word;
}

/* rc: of the call. */
static enum weir_err
read_reserve(struct wr_call *c, enum weir_err rc, struct wr_batch *out,
             struct weir_error *err)
{
    if (rc == WEIR_E_NO_QUEUE)
        return WEIR_OK; /* nobody made it yet: nothing is ready */
    if (rc != WEIR_OK)
        return rc;
    out->word = reserve_word(c);
    return read_jobs(c, 1, out, err);
}

enum weir_err
wr_store_reserve(struct wr_store *store, struct wr_queue *queue,
                 const struct wr_reserve *want, struct wr_batch *out,
                 struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_batch){.word = WR_RESERVE_EMPTY};
    wr_call_init(&c, store, queue, wr_pair_reserve);
    fill_reserve(&c, want);
    rc = read_reserve(&c, wr_call_run(&c, err), out, err);
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_exchange(struct wr_store *store, struct wr_queue *queue,
                  const struct wr_reserve *want, const struct wr_answer *answers,
                  size_t n, enum wr_answered *acked, struct wr_batch *out,
                  struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_batch){.word = WR_RESERVE_EMPTY};
    if (acked)
        memset(acked, 0, n * sizeof(*acked)); /* WR_ANSWERED_OK */
    wr_call_init(&c, store, queue, wr_pair_exchange);
    fill_reserve(&c, want);
    for (size_t i = 0; i < n; i++) {
        wr_call_arg(&c, answers[i].id);
        wr_call_arg(&c, answers[i].token);
        wr_call_arg(&c, answers[i].result);
        wr_call_arg(&c, answers[i].facts);
    }
    rc = wr_call_run(&c, err);
    if (rc == WEIR_E_NO_QUEUE && n == 0)
        rc = WEIR_OK;
    else if (rc == WEIR_OK) {
        size_t notes = (size_t)wr_reply_int(wr_reply_at(c.reply, 1));

        out->word = reserve_word(&c);
        rc = read_notes(&c, 2, 2 + notes, answered_words, put_answered, acked, n, err);
        if (rc == WEIR_OK)
            rc = read_jobs(&c, 2 + notes, out, err);
    }
    wr_call_fini(&c);
    return rc;
}

/* The words of one item after id and token, as each script wants them. */
typedef void (*item_fn)(struct wr_call *c, const struct wr_answer *a, char number[24]);

static void
ack_item(struct wr_call *c, const struct wr_answer *a, char number[24])
{
    (void)number;
    wr_call_arg(c, a->result);
    wr_call_arg(c, a->facts);
}

static void
then_item(struct wr_call *c, const struct wr_answer *a, char number[24])
{
    (void)number;
    wr_call_arg(c, a->result);
    wr_call_arg(c, a->facts);
    wr_call_arg(c, a->follow);
}

static void
retry_item(struct wr_call *c, const struct wr_answer *a, char number[24])
{
    snprintf(number, 24, "%lld", (long long)(a->delay_ms > 0 ? a->delay_ms : 0));
    wr_call_str(c, number);
    wr_call_str(c, a->snoozed ? "snoozed" : "failed");
    wr_call_arg(c, a->text);
    wr_call_arg(c, a->facts);
}

static void
bury_item(struct wr_call *c, const struct wr_answer *a, char number[24])
{
    (void)number;
    wr_call_str(c, a->reason);
    wr_call_arg(c, a->text);
    wr_call_arg(c, a->facts);
}

static void
release_item(struct wr_call *c, const struct wr_answer *a, char number[24])
{
    (void)number;
    wr_call_arg(c, a->facts);
}

static enum weir_err
answer(struct wr_store *store, struct wr_queue *queue,
       const struct wr_script *const *pair, item_fn item, const char *worker,
       const struct wr_answer *answers, size_t n, enum wr_answered *out,
       struct weir_error *err)
{
    char(*numbers)[24] = calloc(n > 0 ? n : 1, sizeof(*numbers));
    struct wr_call c;
    enum weir_err rc;

    if (!numbers)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "%s", pair[0]->name);
    if (out)
        memset(out, 0, n * sizeof(*out)); /* WR_ANSWERED_OK */
    wr_call_init(&c, store, queue, pair);
    c.others_first = n == 1; /* a caller may wait for it */
    wr_call_now(&c);
    wr_call_str(&c, worker);
    for (size_t i = 0; i < n; i++) {
        wr_call_arg(&c, answers[i].id);
        wr_call_arg(&c, answers[i].token);
        item(&c, &answers[i], numbers[i]);
    }
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK)
        rc = read_notes(&c, 1, wr_reply_len(c.reply), answered_words, put_answered, out,
                        n, err);
    wr_call_fini(&c);
    free(numbers);
    return rc;
}

enum weir_err
wr_store_ack(struct wr_store *store, struct wr_queue *queue, const char *worker,
             const struct wr_answer *answers, size_t n, enum wr_answered *out,
             struct weir_error *err)
{
    return answer(store, queue, wr_pair_ack, ack_item, worker, answers, n, out, err);
}

enum weir_err
wr_store_ack_then(struct wr_store *store, struct wr_queue *queue, const char *worker,
                  const struct wr_answer *answers, size_t n, enum wr_answered *out,
                  struct weir_error *err)
{
    return answer(store, queue, wr_pair_ack_then, then_item, worker, answers, n, out,
                  err);
}

enum weir_err
wr_store_retry(struct wr_store *store, struct wr_queue *queue, const char *worker,
               const struct wr_answer *answers, size_t n, enum wr_answered *out,
               struct weir_error *err)
{
    return answer(store, queue, wr_pair_retry, retry_item, worker, answers, n, out, err);
}

enum weir_err
wr_store_bury(struct wr_store *store, struct wr_queue *queue, const char *worker,
              const struct wr_answer *answers, size_t n, enum wr_answered *out,
              struct weir_error *err)
{
    return answer(store, queue, wr_pair_bury, bury_item, worker, answers, n, out, err);
}

enum weir_err
wr_store_release(struct wr_store *store, struct wr_queue *queue, const char *worker,
                 const struct wr_answer *answers, size_t n, enum wr_answered *out,
                 struct weir_error *err)
{
    return answer(store, queue, wr_pair_release, release_item, worker, answers, n, out,
                  err);
}

enum weir_err
wr_store_extend(struct wr_store *store, struct wr_queue *queue, const char *worker,
                int64_t lease_ms, const struct wr_holding *held, size_t n,
                enum wr_extended *out, struct weir_error *err)
{
    char(*limits)[24] = calloc(n > 0 ? n : 1, sizeof(*limits));
    struct wr_call c;
    enum weir_err rc;

    if (!limits)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "extend");
    memset(out, 0, n * sizeof(*out)); /* WR_EXTEND_OK */
    wr_call_init_held(&c, store, queue, wr_pair_extend,
                      n > 0 ? held[0].token : wr_span_str(""));
    wr_call_now(&c);
    wr_call_str(&c, worker);
    wr_call_int(&c, lease_ms);
    for (size_t i = 0; i < n; i++) {
        snprintf(limits[i], sizeof(limits[i]), "%lld", (long long)held[i].limit_ms);
        wr_call_arg(&c, held[i].id);
        wr_call_arg(&c, held[i].token);
        wr_call_str(&c, limits[i]);
    }
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK)
        rc = read_notes(&c, 1, wr_reply_len(c.reply), extend_words, put_extended, out, n,
                        err);
    wr_call_fini(&c);
    free(limits);
    return rc;
}

enum weir_err
wr_store_progress(struct wr_store *store, struct wr_queue *queue, const char *worker,
                  struct wr_span id, struct wr_span token, struct wr_span text,
                  int64_t keep_ms, enum wr_extended *word, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init_held(&c, store, queue, wr_pair_progress, token);
    wr_call_str(&c, worker);
    wr_call_arg(&c, id);
    wr_call_arg(&c, token);
    wr_call_arg(&c, text);
    if (keep_ms == WR_PROGRESS_WITH_JOB)
        wr_call_str(&c, "");
    else
        wr_call_int(&c, keep_ms);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        int found = wr_call_word(&c, 0, extend_words);

        *word = found < 0 ? WR_EXTEND_GONE : (enum wr_extended)found;
    }
    wr_call_fini(&c);
    return rc;
}
