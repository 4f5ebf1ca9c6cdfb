/*
 * The sender: one thread of a worker child that stores what its jobs print, by the
 * connection of the lease thread.
 *
 * An output is shared by its run and the sender, who gives it back last. A part that was
 * sent and not answered is sent again as it was, until it is known; the script stores
 * nothing twice.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/error.h"
#include "base/log.h"
#include "redis/backoff.h"
#include "worker/output.h"
#include "worker/worker_internal.h"

#define TICK_MS 200      /* between two parts of one run */
#define PARTS_MAX 32     /* of one call */
#define PIECE_MAX 32768  /* bytes of one call, and a part more: a renewal waits for it */
#define AWAY_MAX_MS 1000 /* between two tries */
#define KEEP_MS 10000    /* what runs that are over printed is kept so long */
#define KEEP_MAX 64      /* of so many runs */
#define STOP_MS 1000

struct wr_output {
    struct wr_output *next; /* in the sender's list, guarded by its lock */
    struct wr_sender *sender;
    char queue[132], id[256], token[WR_TOKEN_MAX];
    int64_t began_ms; /* monotonic: handed out */

    pthread_mutex_t mu; /* guards the buffer; taken alone, or after the sender's */
    struct wr_output_buffer buffer;
    _Atomic bool ended;     /* the run prints no more */
    _Atomic bool abandoned; /* nothing more is stored */
    _Atomic bool stored;    /* all of it, or given up */
    _Atomic int refs;

    /* The sender's alone. */
    struct wr_buf part; /* sent, and not yet known to be stored */
    bool part_is_last;
    int64_t at; /* of the stream: where part stands */
    int64_t sent_ms, ended_ms;
};

struct wr_sender {
    const struct weir_worker *worker;
    struct wr_runner *runner;
    struct wr_lease_thread *lease; /* its connection is ours too */
    char me[100];
    struct wr_store *store;
    pthread_t thread;
    pthread_mutex_t mu; /* guards the list, urgent, stopping */
    pthread_cond_t wake;
    struct wr_output *outputs;
    bool urgent, stopping;
    _Atomic bool sleeps; /* it waits without end: wake it for a first byte */
    _Atomic bool away;
    unsigned failures;
    int64_t again_ms;
};

/* ---- outputs ---- */

static void
let_go(struct wr_output *o)
{
    if (atomic_fetch_sub(&o->refs, 1) > 1)
        return;
    wr_output_buffer_fini(&o->buffer);
    wr_buf_fini(&o->part);
    pthread_mutex_destroy(&o->mu);
    free(o);
}

static void
wake_sender(struct wr_sender *s, bool urgent)
{
    if (!urgent && !atomic_exchange(&s->sleeps, false))
        return;
    pthread_mutex_lock(&s->mu);
    s->urgent = s->urgent || urgent;
    atomic_store(&s->sleeps, false);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mu);
}

static struct wr_output *
new_output(struct wr_sender *s, const struct weir_delivery *d)
{
    struct wr_output *o = calloc(1, sizeof(*o));

    if (!o)
        return NULL;
    o->sender = s;
    o->refs = 2;
    o->began_ms = d->handed_out_ms;
    o->buffer.free_left = WR_OUTPUT_FREE;
    snprintf(o->queue, sizeof(o->queue), "%s", d->queue);
    snprintf(o->id, sizeof(o->id), "%s", d->id);
    snprintf(o->token, sizeof(o->token), "%s", d->state.token);
    pthread_mutex_init(&o->mu, NULL);
    return o;
}

/* Of this run; made now if there is none. Threads of one handler may ask at once. */
static struct wr_output *
output_of(struct weir_delivery *d)
{
    struct wr_sender *s = d->sender;
    struct wr_output *o = atomic_load(&d->output);

    if (o || !s)
        return o;
    pthread_mutex_lock(&s->mu);
    o = atomic_load(&d->output);
    if (!o)
        o = new_output(s, d);
    if (o && !atomic_load(&d->output)) {
        o->next = s->outputs;
        s->outputs = o;
        atomic_store(&d->output, o);
    }
    pthread_mutex_unlock(&s->mu);
    return o;
}

void
wr_output_add(struct weir_delivery *d, const char *bytes, size_t len, int64_t left_out)
{
    struct wr_output *o = output_of(d);

    if (!o || atomic_load(&o->abandoned) || (len == 0 && left_out <= 0))
        return;
    pthread_mutex_lock(&o->mu);
    wr_output_buffer_add(&o->buffer, bytes, len, left_out, wr_clock_ms() - o->began_ms);
    pthread_mutex_unlock(&o->mu);
    wake_sender(o->sender, false);
}

bool
wr_output_end(struct weir_delivery *d, bool discard)
{
    struct wr_output *o = atomic_load(&d->output);

    if (!o)
        return false;
    if (discard)
        atomic_store(&o->abandoned, true);
    atomic_store(&o->ended, true);
    wake_sender(o->sender, true);
    return !discard && !atomic_load(&o->sender->away);
}

bool
wr_output_is_stored(const struct weir_delivery *d)
{
    struct wr_output *o = atomic_load(&d->output);

    return !o || atomic_load(&o->stored) || atomic_load(&o->sender->away);
}

void
wr_output_let_go(struct weir_delivery *d)
{
    struct wr_output *o = atomic_exchange(&d->output, NULL);

    if (!o)
        return;
    if (!atomic_exchange(&o->ended, true)) { /* its answer came without a look at it */
        atomic_store(&o->abandoned, true);
        wake_sender(o->sender, true);
    }
    let_go(o);
}

/* ---- parts ---- */

/* When this one must be looked at. */
static int64_t
due_at(struct wr_output *o)
{
    int64_t due;

    if (atomic_load(&o->ended) || atomic_load(&o->abandoned))
        return 0;
    if (o->part.len > 0)
        return o->sent_ms + TICK_MS;
    pthread_mutex_lock(&o->mu);
    due = wr_output_buffer_due(&o->buffer);
    pthread_mutex_unlock(&o->mu);
    if (due == INT64_MAX)
        return due;
    due += o->began_ms;
    return due > o->sent_ms + TICK_MS ? due : o->sent_ms + TICK_MS;
}

/* Its next part; false: there is nothing to send. */
static bool
make_part(struct wr_output *o)
{
    bool ended = atomic_load(&o->ended), empty;

    if (o->part.len > 0 || o->part_is_last)
        return true; /* the last one again */
    pthread_mutex_lock(&o->mu);
    empty = wr_output_buffer_take(&o->buffer, &o->part, ended,
                                  wr_clock_ms() - o->began_ms);
    pthread_mutex_unlock(&o->mu);
    if (o->part.failed)
        wr_buf_clear(&o->part);
    o->part_is_last = ended && empty && (o->part.len > 0 || o->at > 0);
    if (o->part.len == 0 && !o->part_is_last) {
        if (ended)
            atomic_store(&o->stored, true); /* it never said a thing */
        return false;
    }
    return true;
}

static void
give_up(struct wr_output *o)
{
    atomic_store(&o->abandoned, true);
    atomic_store(&o->stored, true);
}

static void
part_is_stored(struct wr_output *o, enum wr_logged word)
{
    if (word != WR_LOGGED_OK) {
        give_up(o); /* somebody else's, or gone */
        return;
    }
    o->at += (int64_t)o->part.len;
    wr_buf_clear(&o->part);
    if (o->part_is_last)
        atomic_store(&o->stored, true);
}

static bool
is_for_this_queue_alone(enum weir_err rc)
{
    return rc == WEIR_E_NO_QUEUE || rc == WEIR_E_CORRUPT || rc == WEIR_E_WRONG_ENGINE ||
           rc == WEIR_E_ARG;
}

/* Not stored: later, or never. */
static void
note_failure(struct wr_sender *s, const struct weir_error *err)
{
    if (!atomic_exchange(&s->away, true))
        wr_log_warn("what jobs print is not stored now, the jobs go on: %s", err->text);
    wr_runner_wake_io(s->runner); /* answers wait for it no longer */
    s->again_ms = wr_clock_ms() + wr_backoff_ms(s->failures++, AWAY_MAX_MS);
}

/* Between two renewals. */
static enum weir_err
store_parts(struct wr_sender *s, struct wr_queue *queue, const struct wr_log_part *parts,
            size_t n, enum wr_logged *words, struct weir_error *err)
{
    enum weir_err rc;
    int64_t until;

    if (!wr_lease_lend(s->lease, &until))
        return wr_fail(err, WEIR_E_CONNECT, 0, "leases cannot be renewed either");
    wr_store_set_timeout(s->store, until - wr_clock_ms());
    rc = wr_store_log(s->store, queue, s->me, parts, n, words, err);
    wr_lease_give_back(s->lease);
    return rc;
}

/* One call: parts of one queue. False: Redis is away. */
static bool
send_parts(struct wr_sender *s, struct wr_output **outputs, size_t n)
{
    struct wr_log_part parts[PARTS_MAX];
    enum wr_logged words[PARTS_MAX] = {0};
    struct weir_error err = {0};
    struct wr_queue *queue;
    enum weir_err rc = wr_store_queue(s->store, outputs[0]->queue, &queue, &err);

    for (size_t i = 0; i < n; i++)
        parts[i] = (struct wr_log_part){.id = wr_span_str(outputs[i]->id),
                                        .token = wr_span_str(outputs[i]->token),
                                        .bytes = wr_buf_span(&outputs[i]->part),
                                        .at = outputs[i]->at,
                                        .last = outputs[i]->part_is_last};
    if (rc == WEIR_OK)
        rc = store_parts(s, queue, parts, n, words, &err);
    for (size_t i = 0; i < n; i++) {
        outputs[i]->sent_ms = wr_clock_ms();
        if (rc == WEIR_OK)
            part_is_stored(outputs[i], words[i]);
        else if (is_for_this_queue_alone(rc))
            give_up(outputs[i]);
    }
    if (rc != WEIR_OK && !is_for_this_queue_alone(rc)) {
        note_failure(s, &err);
        return false;
    }
    s->failures = 0;
    if (atomic_exchange(&s->away, false))
        wr_log_warn("what jobs print is stored again");
    return true;
}

/* ---- rounds ---- */

/* The outputs as they are now: others only add to the front. */
static struct wr_output *
first_output(struct wr_sender *s)
{
    struct wr_output *first;

    pthread_mutex_lock(&s->mu);
    first = s->outputs;
    pthread_mutex_unlock(&s->mu);
    return first;
}

/* Parts of the runs that are due, of one queue a call, until nothing is due. False: Redis
 * is away. */
static bool
send_what_is_due(struct wr_sender *s)
{
    struct wr_output *batch[PARTS_MAX];
    size_t n, bytes;

    do {
        int64_t now = wr_clock_ms();

        n = bytes = 0;
        for (struct wr_output *o = first_output(s);
             o && n < PARTS_MAX && bytes < PIECE_MAX; o = o->next) {
            if (atomic_load(&o->stored) || atomic_load(&o->abandoned) ||
                due_at(o) > now || (n > 0 && strcmp(o->queue, batch[0]->queue) != 0))
                continue;
            if (!make_part(o)) {
                o->sent_ms = now;
                continue;
            }
            batch[n++] = o;
            bytes += o->part.len;
        }
        if (n > 0 && !send_parts(s, batch, n))
            return false;
    } while (n > 0);
    return true;
}

/* Is nothing left to do for it? One that waited too long for Redis is given up, or that
 * has too many before it. */
static bool
is_done(struct wr_output *o, bool away, int64_t now, size_t *ended)
{
    if (!atomic_load(&o->ended))
        return false;
    if (o->ended_ms == 0)
        o->ended_ms = now;
    ++*ended;
    if (!atomic_load(&o->stored) &&
        (atomic_load(&o->abandoned) ||
         (away && (*ended > KEEP_MAX || now - o->ended_ms > KEEP_MS))))
        give_up(o);
    return atomic_load(&o->stored);
}

/* Takes out what is done. Answers when the next is due. */
static int64_t
tidy(struct wr_sender *s)
{
    int64_t now = wr_clock_ms(), next = INT64_MAX;
    struct wr_output *done = NULL;
    bool away = atomic_load(&s->away);
    size_t ended = 0;

    pthread_mutex_lock(&s->mu);
    for (struct wr_output **at = &s->outputs, *o; (o = *at) != NULL;) {
        int64_t due;

        if (is_done(o, away, now, &ended)) {
            *at = o->next;
            o->next = done;
            done = o;
            continue;
        }
        if (away) {
            pthread_mutex_lock(&o->mu);
            o->buffer.whole = true; /* the rate is not to blame for what waits now */
            pthread_mutex_unlock(&o->mu);
        }
        due = atomic_load(&o->abandoned) ? INT64_MAX : due_at(o);
        next = due < next ? due : next;
        at = &o->next;
    }
    pthread_mutex_unlock(&s->mu);
    if (done)
        wr_runner_wake_io(s->runner);
    while (done) {
        struct wr_output *o = done;

        done = o->next;
        let_go(o);
    }
    return away && next < s->again_ms ? s->again_ms : next;
}

/* Until the next is due; false: told to stop. */
static bool
wait_until(struct wr_sender *s, int64_t next)
{
    bool stopping;

    if (next == INT64_MAX) {
        atomic_store(&s->sleeps, true);
        for (struct wr_output *o = first_output(s); o; o = o->next) {
            if (!atomic_load(&o->abandoned) && due_at(o) != INT64_MAX)
                next = 0; /* it has just come */
        }
    }
    pthread_mutex_lock(&s->mu);
    while (!s->urgent && !s->stopping && next > wr_clock_ms()) {
        if (next == INT64_MAX) {
            if (!atomic_load(&s->sleeps))
                break;
            pthread_cond_wait(&s->wake, &s->mu);
            continue;
        }
        (void)wr_cond_wait_until(&s->wake, &s->mu, next);
    }
    atomic_store(&s->sleeps, false);
    stopping = s->stopping;
    s->urgent = false;
    pthread_mutex_unlock(&s->mu);
    return !stopping;
}

static void *
sender_main(void *arg)
{
    struct wr_sender *s = arg;
    int64_t deadline;

    while (wait_until(s, tidy(s))) {
        if (wr_clock_ms() >= s->again_ms)
            (void)send_what_is_due(s);
    }
    for (struct wr_output *o = first_output(s); o; o = o->next)
        atomic_store(&o->ended, true);
    deadline = wr_clock_ms() + STOP_MS;
    while (first_output(s) && wr_clock_ms() < deadline && send_what_is_due(s) &&
           tidy(s) != INT64_MAX)
        continue;
    return NULL;
}

/* ---- start and stop ---- */

static void
free_sender(struct wr_sender *s)
{
    while (s->outputs) {
        struct wr_output *o = s->outputs;

        s->outputs = o->next;
        let_go(o);
    }
    wr_store_free(s->store);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mu);
    free(s);
}

enum weir_err
wr_sender_start(const struct weir_worker *w, const char *worker, struct wr_runner *runner,
                struct wr_lease_thread *lease, struct wr_sender **out,
                struct weir_error *err)
{
    struct wr_store_options to = {.ns = w->ns, .server = wr_lease_server(lease)};
    struct wr_sender *s = calloc(1, sizeof(*s));
    enum weir_err rc;
    int why;

    *out = NULL;
    if (!s)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "sender");
    s->worker = w;
    s->runner = runner;
    s->lease = lease;
    snprintf(s->me, sizeof(s->me), "%s", worker);
    pthread_mutex_init(&s->mu, NULL);
    (void)wr_cond_init(&s->wake);
    rc = wr_store_new(&to, &s->store, err);
    why = rc == WEIR_OK ? pthread_create(&s->thread, NULL, sender_main, s) : 0;
    if (why != 0)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, why, "sender");
    if (rc != WEIR_OK) {
        free_sender(s);
        return rc;
    }
    *out = s;
    return WEIR_OK;
}

void
wr_sender_stop(struct wr_sender *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mu);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mu);
    pthread_join(s->thread, NULL);
    free_sender(s);
}
