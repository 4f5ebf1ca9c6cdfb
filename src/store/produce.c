/* How jobs come in: enqueue, schedule, replace, farewell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/error.h"
#include "store/call.h"
#include "store/scripts.gen.h"

#define MARK_MAX (33 + WR_DIGITS_MAX) /* a channel's name, a dash, a number */

static const char *const admit_words[] = {"STORED", "EXISTS", "OTHER",
                                          "UNIQUE", "BIG",    NULL};

static bool
has_due(const struct wr_admit *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (items[i].due.len > 0)
            return true;
    }
    return false;
}

/* May the queue give this job an id of its own? */
static bool
is_unnamed(const struct wr_admit *item)
{
    return item->made_up && item->unique.len == 0 && item->due.len == 0;
}

/*
 * The ids of the unnamed ones: a note IDS said the first, and each that follows has the
 * next number behind the dash, until another note says one. Without a note they have
 * those that were made up: the queue is a list, or was one when it answered this call
 * first.
 */
static void
count_ids(const struct wr_admit *items, size_t n, struct wr_admitted *out)
{
    unsigned long long ms = 0, seq = 0;
    bool known = false;

    for (size_t i = 0; i < n; i++) {
        if (!is_unnamed(&items[i]) || out[i].word != WR_ADMIT_STORED)
            continue;
        if (out[i].id[0] != '\0')
            known = sscanf(out[i].id, "%llu-%llu", &ms, &seq) == 2;
        if (known)
            snprintf(out[i].id, sizeof(out[i].id), "%llu-%llu", ms, seq++);
    }
}

/* The notes of a reply from element `first` on: position, word, detail. */
static enum weir_err
read_notes(const struct wr_call *c, size_t first, size_t n, struct wr_admitted *out,
           struct weir_error *err)
{
    for (size_t i = first; i + 2 < wr_reply_len(c->reply); i += 3) {
        int64_t at = wr_reply_int(wr_reply_at(c->reply, i));
        bool is_ids = wr_reply_is(wr_reply_at(c->reply, i + 1), "IDS");
        int word = is_ids ? 0 : wr_call_word(c, i + 1, admit_words);
        struct wr_span detail = wr_reply_span(wr_reply_at(c->reply, i + 2));

        if (at < 0 || (size_t)at >= n || word < 0)
            return wr_fail(err, WEIR_E_CORRUPT, 0, "%s: odd note", c->script->name);
        if (is_ids) {
            wr_span_copy(detail, out[at].id, sizeof(out[at].id));
            continue;
        }
        out[at].word = (enum wr_admit_word)word;
        wr_span_copy(detail, out[at].detail, sizeof(out[at].detail));
    }
    return WEIR_OK;
}

/* A stream is told by a TAB before it that an id was made up. tabbed: room for those. */
static struct wr_span
id_word(const struct wr_admit *item, char tabbed[32])
{
    if (!tabbed || !is_unnamed(item) || item->id.len > 30)
        return item->id;
    tabbed[0] = '\t';
    memcpy(tabbed + 1, item->id.ptr, item->id.len);
    return (struct wr_span){tabbed, item->id.len + 1};
}

/* Jobs that go in one call. */
struct batch {
    struct wr_channel *channel;
    const struct wr_admit *items;
    size_t n;
    struct wr_admitted *out;
    const struct wr_waiter *waiter; /* NULL: nobody waits for the first one's end */
    bool gap;
};

/* "CHANNEL-NUMBER" of the call. */
static struct wr_span
write_mark(const struct wr_channel *channel, char mark[MARK_MAX])
{
    size_t len = strlen(channel->name);

    memcpy(mark, channel->name, len);
    mark[len++] = '-';
    len += wr_digits((uint64_t)channel->number, mark + len);
    return (struct wr_span){mark, len};
}

static void
fill_admit(struct wr_call *c, const struct batch *b, struct wr_span mark, bool due,
           char (*tabbed)[32])
{
    wr_call_now(c);
    wr_call_str(c, b->channel->name);
    wr_call_int(c, b->channel->number);
    wr_call_arg(c, mark);
    if (b->waiter) {
        wr_call_str(c, b->waiter->tag);
        wr_call_int(c, b->waiter->keep_ms);
    }
    for (size_t i = 0; i < b->n; i++) {
        const struct wr_admit *item = &b->items[i];

        wr_call_arg(c, id_word(item, tabbed ? tabbed[i] : NULL));
        wr_call_arg(c, item->head);
        wr_call_arg(c, item->tail);
        wr_call_arg(c, item->unique);
        if (due || b->waiter)
            wr_call_arg(c, item->due);
    }
}

/* The queue was remade, so the registry may be gone as well (FLUSHALL). The jobs are
 * stored by now: not to be told apart from a lost answer, and repeating cures both. */
static enum weir_err
enroll_again(struct wr_store *store, struct wr_queue *queue, struct weir_error *err)
{
    queue->enrolled = false;
    if (wr_store_enroll(store, queue, err) == WEIR_OK)
        return WEIR_OK;
    return wr_fail(err, WEIR_E_NO_REPLY, 0,
                   "stored, but queue %s could not be registered again", queue->name);
}

/* Sends it once, in the words of the engine that the queue is believed to have. */
static enum weir_err
admit_call(struct wr_call *c, const struct batch *b, bool *again, struct weir_error *err)
{
    char(*tabbed)[32] = NULL, mark[MARK_MAX];
    enum weir_err rc;

    for (size_t i = 0; i < b->n; i++)
        c->one_engine = c->one_engine || is_unnamed(&b->items[i]);
    if (c->one_engine && c->engine == WR_ENGINE_STREAM) {
        tabbed = calloc(b->n, sizeof(*tabbed));
        if (!tabbed)
            return wr_fail(err, WEIR_E_NO_MEMORY, 0, "enqueue");
    }
    fill_admit(c, b, write_mark(b->channel, mark), has_due(b->items, b->n), tabbed);
    rc = wr_call_run(c, err);
    *again = rc == WEIR_OK && (wr_call_is(c, "CLASH") || wr_call_is(c, "LATE"));
    if (rc == WEIR_OK && b->waiter && wr_call_is(c, "MANY"))
        rc = wr_fail(err, WEIR_E_REFUSED, 0,
                     "too many wait for the end of this job already");
    if (rc == WEIR_OK && !*again)
        rc = read_notes(c, 2, b->n, b->out, err);
    if (rc == WEIR_OK && !*again)
        count_ids(b->items, b->n, b->out);
    free(tabbed);
    return rc;
}

static const struct wr_script *const *
admit_pair(const struct batch *b)
{
    return b->waiter                 ? wr_pair_call
           : has_due(b->items, b->n) ? wr_pair_schedule
                                     : wr_pair_enqueue;
}

/* One try under one channel number. *again: the number was spent by another call, so a
 * new channel is needed; nothing changed. */
static enum weir_err
admit_once(struct wr_store *store, struct wr_queue *queue, struct batch *b, bool *again,
           struct weir_error *err)
{
    bool fresh = !queue->enrolled, other;
    struct wr_call c;
    enum weir_err rc;

    /* Before the first job: a crash in between leaves a name without a queue, which is
     * harmless, and not a queue that no scheduler knows. */
    if (fresh) {
        rc = wr_store_enroll(store, queue, err);
        if (rc != WEIR_OK)
            return rc;
    }
    for (int tries = 0;; tries++) {
        wr_call_init(&c, store, queue, admit_pair(b));
        rc = admit_call(&c, b, again, err);
        other = rc == WEIR_E_WRONG_ENGINE && (int)c.engine != queue->engine;
        if (!other || tries == 3)
            break;
        wr_call_fini(&c);
    }
    if (rc == WEIR_OK && !*again) {
        b->gap = wr_call_is(&c, "GAP");
        if (wr_reply_int(wr_reply_at(c.reply, 1)) == 1 && !fresh)
            rc = enroll_again(store, queue, err);
    }
    wr_call_fini(&c);
    return rc;
}

static enum weir_err
admit_all(struct wr_store *store, struct wr_queue *queue, struct batch *b,
          struct weir_error *err)
{
    bool again = true;
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < b->n; i++)
        b->out[i] = (struct wr_admitted){.word = WR_ADMIT_STORED};
    if (b->n == 0 || b->n > WR_BATCH_MAX)
        return wr_fail(err, WEIR_E_ARG, 0, "a batch has 1 to %d jobs", WR_BATCH_MAX);
    for (int tries = 0; again && tries < 3; tries++) {
        if (b->channel->name[0] == '\0')
            wr_channel_renew(b->channel);
        rc = admit_once(store, queue, b, &again, err);
        if (again || rc != WEIR_OK)
            wr_channel_renew(b->channel);
        else
            b->channel->number++;
        if (rc != WEIR_OK)
            return rc;
    }
    if (again)
        return wr_fail(err, WEIR_E_BUG, 0, "new channels clash again and again");
    return WEIR_OK;
}

enum weir_err
wr_store_enqueue(struct wr_store *store, struct wr_queue *queue,
                 struct wr_channel *channel, const struct wr_admit *items, size_t n,
                 struct wr_admitted *out, bool *gap, struct weir_error *err)
{
    struct batch b = {.channel = channel, .items = items, .n = n, .out = out};
    enum weir_err rc = admit_all(store, queue, &b, err);

    if (gap)
        *gap = b.gap;
    return rc;
}

enum weir_err
wr_store_call(struct wr_store *store, struct wr_queue *queue, struct wr_channel *channel,
              const struct wr_admit *item, const struct wr_waiter *waiter,
              struct wr_admitted *out, struct weir_error *err)
{
    struct batch b = {
        .channel = channel, .items = item, .n = 1, .out = out, .waiter = waiter};

    return admit_all(store, queue, &b, err);
}

static void
fill_replace(struct wr_call *c, const struct wr_channel *channel,
             const struct wr_admit *item)
{
    wr_call_now(c);
    wr_call_str(c, channel->name);
    wr_call_int(c, channel->number);
    wr_call_arg(c, item->id);
    wr_call_arg(c, item->head);
    wr_call_arg(c, item->tail);
    wr_call_arg(c, item->unique);
    wr_call_arg(c, item->due);
}

static enum weir_err
refused_replace(const struct wr_call *c, struct weir_error *err)
{
    char detail[256];

    wr_reply_copy(wr_reply_at(c->reply, 1), detail, sizeof(detail));
    if (wr_call_is(c, "ABSENT"))
        return wr_fail(err, WEIR_E_NO_JOB, 0, "no job to replace");
    if (wr_call_is(c, "OTHER"))
        return wr_fail(err, WEIR_E_WRONG_STATE, 0, "the job is %s", detail);
    if (wr_call_is(c, "UNIQUE"))
        return wr_fail(err, WEIR_E_UNIQUE, 0, "its unique key is held by %.200s", detail);
    if (wr_call_is(c, "BIG"))
        return wr_fail(err, WEIR_E_TOO_BIG, 0, "payload over the limit of %s bytes",
                       detail);
    return wr_fail(err, WEIR_E_CORRUPT, 0, "replace: odd answer");
}

static enum weir_err
replace_once(struct wr_store *store, struct wr_queue *queue, struct wr_channel *channel,
             const struct wr_admit *item, struct wr_replaced *out, bool *again,
             struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_replace);
    fill_replace(&c, channel, item);
    rc = wr_call_run(&c, err);
    *again = rc == WEIR_OK && (wr_call_is(&c, "CLASH") || wr_call_is(&c, "LATE"));
    if (rc == WEIR_OK && !*again) {
        static const char *const words[] = {"REPLACED", "AGAIN", "BEFORE", NULL};
        size_t at = wr_call_is(&c, "BEFORE");
        int word = wr_call_word(&c, at, words);

        wr_reply_copy(wr_reply_at(c.reply, at + 2), out->id, sizeof(out->id));
        out->anew = word == 1;
        out->existed = wr_call_is(&c, "EXISTS");
        if (out->existed)
            wr_span_copy(item->id, out->id, sizeof(out->id));
        else if (word < 0)
            rc = refused_replace(&c, err);
        else
            channel->number++;
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_replace(struct wr_store *store, struct wr_queue *queue,
                 struct wr_channel *channel, const struct wr_admit *item,
                 struct wr_replaced *out, struct weir_error *err)
{
    bool again = true;
    enum weir_err rc = WEIR_OK;

    *out = (struct wr_replaced){.existed = false};
    for (int tries = 0; again && tries < 3; tries++) {
        if (channel->name[0] == '\0')
            wr_channel_renew(channel);
        rc = replace_once(store, queue, channel, item, out, &again, err);
        if (again || weir_err_kind_of(rc) == WEIR_KIND_UNKNOWN)
            wr_channel_renew(channel);
    }
    if (again)
        return wr_fail(err, WEIR_E_BUG, 0, "new channels clash again and again");
    return rc;
}

void
wr_store_farewell(struct wr_store *store, struct wr_queue *queue,
                  const struct wr_channel *channels, size_t n)
{
    struct wr_call c;

    wr_call_init(&c, store, queue, wr_pair_farewell);
    for (size_t i = 0; i < n; i++) {
        if (channels[i].name[0] != '\0')
            wr_call_str(&c, channels[i].name);
    }
    if (c.argc > c.script->nkeys && wr_call_run(&c, NULL) != WEIR_OK)
        c.failed = true; /* best effort: sweep trims what stays */
    wr_call_fini(&c);
}
