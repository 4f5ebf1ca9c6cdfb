/*
 * Waiting for the end of a job. A waiting call has a connection that listens on a channel
 * of its own; it registers with the job, and the script that ends the job tells it. If
 * the connection breaks, it registers again by another one and sees then whether the job
 * ended meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "client/client_internal.h"
#include "client/listener.h"
#include "client/prepare.h"
#include "redis/backoff.h"
#include "redis/conn.h"

#define KEEP_MS 30000 /* a registration is forgotten so long after the last time */
#define OPEN_MAX_MS 5000
#define AWAY_MAX_MS 500
#define LONGEST_MS (INT64_C(1) << 60) /* for ever: it is added to a time */

struct target {
    struct wr_queue *queue;
    const char *id;
    bool over;
};

/* One wait for the ends of some jobs. */
struct wait {
    struct weir_client *client;
    struct target *targets;
    size_t n, left;
    bool early; /* the jobs may come only after the registration */
    int64_t deadline_ms;
    struct wr_listener *listener; /* NULL: none so far, or it broke */
    char tag[WR_LISTENER_TAG_MAX];
    int64_t refresh_ms;
    weir_result_fn each;
    void *context;
    bool stopped; /* each() has enough */
};

static int64_t
sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static enum weir_err
find_listener(struct wait *w, struct weir_error *err)
{
    enum weir_err rc;

    if (w->listener && !wr_listener_is_alive(w->listener)) {
        wr_listener_free(w->listener);
        w->listener = NULL;
    }
    if (w->listener)
        return WEIR_OK;
    rc = wr_listener_take(w->client, sooner(w->deadline_ms, wr_clock_ms() + OPEN_MAX_MS),
                          &w->listener, err);
    if (rc != WEIR_OK)
        return rc;
    WR_ASSERT(w->listener);
    wr_listener_begin(w->listener, w->tag);
    return WEIR_OK;
}

/* How one job ended. The view is freed by each(). */
static void
conclude(struct wait *w, struct target *t, enum weir_err rc, struct weir_job_view *view,
         const struct weir_error *err)
{
    t->over = true;
    w->left--;
    if (!w->each((size_t)(t - w->targets), rc, view, err, w->context))
        w->stopped = true;
}

/* The state of a job that is stored, as an answer. */
static enum weir_err
look(struct wait *w, const struct target *t, struct weir_job_view **out,
     struct weir_error *err)
{
    enum weir_err rc = wr_client_inspect(w->client, t->queue, t->id, out, err);

    if (rc != WEIR_OK)
        return rc;
    if (strcmp(weir_job_view_state(*out), "done") == 0)
        return WEIR_OK;
    if (strcmp(weir_job_view_state(*out), "dead") == 0)
        return wr_fail(err, WEIR_E_JOB_FAILED, 0, "job %.100s is dead", t->id);
    return wr_fail(err, WEIR_E_TIMEOUT, 0, "job %.100s is still %s", t->id,
                   weir_job_view_state(*out));
}

static bool
is_passing(enum weir_err rc)
{
    return weir_err_kind_of(rc) == WEIR_KIND_BUSY || rc == WEIR_E_NO_REPLY;
}

/* Looks at a job that needs no message. What cannot be said now is asked again later. */
static enum weir_err
look_and_conclude(struct wait *w, struct target *t, struct weir_error *err)
{
    struct weir_job_view *view = NULL;
    enum weir_err rc = look(w, t, &view, err);

    if (is_passing(rc))
        return rc;
    if (rc == WEIR_E_TIMEOUT) { /* replayed in between: it lives again */
        weir_job_view_free(view);
        return WEIR_OK;
    }
    conclude(w, t, rc, view, err);
    return WEIR_OK;
}

/* With every job that has not ended. An error is one that may pass. */
static enum weir_err
wait_register(struct wait *w, struct weir_error *err)
{
    enum weir_err rc = find_listener(w, err);
    struct wr_waiter waiter = {w->tag, KEEP_MS};

    w->refresh_ms = wr_clock_ms() + WR_LISTENER_REFRESH_MS;
    for (size_t i = 0; i < w->n && rc == WEIR_OK && !w->stopped; i++) {
        struct target *t = &w->targets[i];
        bool ended;

        if (t->over)
            continue;
        rc = wr_store_wait(w->client->store, t->queue, wr_span_str(t->id), &waiter,
                           w->early, &ended, err);
        if (rc == WEIR_OK && ended)
            rc = look_and_conclude(w, t, err);
        if (rc != WEIR_OK && !is_passing(rc)) {
            conclude(w, t, rc, NULL, err);
            rc = WEIR_OK;
        }
    }
    return rc;
}

/* One message is the end of all that have this id: the others look. */
static void
look_again_for(struct wait *w, const struct target *told)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct target *t = &w->targets[i];

        if (t != told && !t->over && strcmp(t->id, told->id) == 0)
            w->refresh_ms = 0;
    }
}

static void
wait_end(struct wait *w)
{
    if (w->listener && wr_conn_is_broken(w->listener->conn))
        wr_listener_free(w->listener);
    else
        wr_listener_give(w->client, w->listener);
    w->listener = NULL;
}

/* The next line of *text, without its newline. */
static struct wr_span
take_line(struct wr_span *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    struct wr_span line = {text->ptr,
                           end ? (size_t)(end - (const char *)text->ptr) : text->len};

    text->ptr = end ? end + 1 : (const char *)text->ptr + text->len;
    text->len -= line.len + (end ? 1 : 0);
    return line;
}

static bool
is_text(struct wr_span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
}

/* The job that a message is about; NULL: of an earlier wait. word and result lie in it.
 */
static struct target *
find_target(const struct wait *w, const struct wr_reply *message, struct wr_span *word,
            struct wr_span *result)
{
    struct wr_span text = wr_reply_span(wr_reply_at(message, 2)), id;

    if (wr_reply_len(message) != 3 || !text.ptr || !is_text(take_line(&text), w->tag))
        return NULL;
    id = take_line(&text);
    *word = take_line(&text);
    *result = text;
    for (size_t i = 0; i < w->n; i++) {
        if (!w->targets[i].over && is_text(id, w->targets[i].id))
            return &w->targets[i];
    }
    return NULL;
}

/* What the message says; it goes into the view, or is freed. */
static enum weir_err
take_message(struct wait *w, struct wr_reply *message, struct weir_error *err)
{
    struct wr_span word, result;
    struct target *t = find_target(w, message, &word, &result);
    struct weir_job_view *view;
    enum weir_err rc = WEIR_OK;

    if (t)
        look_again_for(w, t);
    if (t && is_text(word, "done")) {
        view = wr_client_view_of_message(t->queue, t->id, message, result);
        if (!view)
            rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "wait");
        conclude(w, t, rc, view, err);
        return WEIR_OK;
    }
    if (t && is_text(word, "cancelled")) {
        rc = wr_fail(err, WEIR_E_CANCELLED, 0, "job %.100s was cancelled", t->id);
        conclude(w, t, rc, NULL, err);
    } else if (t && is_text(word, "expired")) {
        rc = wr_fail(err, WEIR_E_EXPIRED, 0, "job %.100s expired before it could start",
                     t->id);
        conclude(w, t, rc, NULL, err);
    } else if (t) {
        rc = look_and_conclude(w, t, err);
        wr_reply_free(message);
        return rc;
    }
    wr_reply_free(message);
    return WEIR_OK;
}

/* Until all have ended, the time to register again, or the end of the connection. */
static enum weir_err
listen(struct wait *w, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    while (rc == WEIR_OK && w->left > 0 && !w->stopped) {
        struct wr_reply *message;

        if (!wr_conn_wait_reply(w->listener->conn, sooner(w->deadline_ms, w->refresh_ms)))
            return WEIR_OK;
        if (wr_conn_recv(w->listener->conn, wr_clock_ms(), &message, NULL) != WEIR_OK) {
            wr_listener_free(w->listener);
            w->listener = NULL;
            return WEIR_OK;
        }
        rc = take_message(w, message, err);
    }
    return rc;
}

/* Those that have not ended when the time is up. */
static void
give_up(struct wait *w, const struct weir_error *last)
{
    for (size_t i = 0; i < w->n && !w->stopped; i++) {
        struct target *t = &w->targets[i];
        struct weir_job_view *view = NULL;
        struct weir_error err = *last;
        enum weir_err rc;

        if (t->over)
            continue;
        rc = look(w, t, &view, &err);
        conclude(w, t, rc, view, &err);
    }
}

/* Registered already when `registered`. */
static void
wait_for_ends(struct wait *w, bool registered)
{
    struct weir_error err = {0};
    unsigned failures = 0;

    while (w->left > 0 && !w->stopped && wr_clock_ms() < w->deadline_ms) {
        enum weir_err rc = registered ? WEIR_OK : wait_register(w, &err);

        registered = false;
        if (rc == WEIR_OK && w->listener && w->left > 0 && !w->stopped)
            rc = listen(w, &err);
        w->early = false;
        failures = rc == WEIR_OK ? 0 : failures + 1;
        if (rc != WEIR_OK && !wr_backoff_sleep(failures, AWAY_MAX_MS, w->deadline_ms))
            break;
    }
    give_up(w, &err);
    wait_end(w);
}

enum weir_err
weir_result_wait_each(struct weir_client *c, const char *queue, const char *const *ids,
                      size_t n, int64_t timeout_ms, weir_result_fn each, void *context,
                      struct weir_error *err)
{
    struct wait w = {.client = c,
                     .n = n,
                     .left = n,
                     .each = each,
                     .context = context,
                     .deadline_ms = wr_clock_ms() + sooner(timeout_ms, LONGEST_MS),
                     .targets = calloc(n ? n : 1, sizeof(struct target))};

    if (!w.targets)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "wait");
    for (size_t i = 0; i < n; i++)
        w.targets[i].id = ids[i];
    for (size_t i = 0; i < n && !w.stopped; i++) {
        struct weir_error own = {0};
        enum weir_err rc = wr_client_find(c, queue, ids[i], &w.targets[i].queue, &own);

        if (rc != WEIR_OK)
            conclude(&w, &w.targets[i], rc, NULL, &own);
    }
    wait_for_ends(&w, false);
    free(w.targets);
    return WEIR_OK;
}

/* ---- one job ---- */

struct one {
    enum weir_err rc;
    struct weir_job_view *view;
    struct weir_error err;
};

static bool
keep_one(size_t index, enum weir_err rc, struct weir_job_view *view,
         const struct weir_error *err, void *context)
{
    struct one *one = context;

    (void)index;
    *one = (struct one){rc, view, *err};
    return false;
}

static enum weir_err
answer(const struct one *one, struct weir_job_view **out, struct weir_error *err)
{
    *out = one->view;
    if (err && one->rc != WEIR_OK)
        *err = one->err;
    return one->rc;
}

enum weir_err
weir_result_wait(struct weir_client *c, const char *queue, const char *id,
                 int64_t timeout_ms, struct weir_job_view **out, struct weir_error *err)
{
    struct one one = {0};
    enum weir_err rc = weir_result_wait_each(c, queue, &id, 1, timeout_ms, keep_one, &one,
                                             err);

    *out = NULL;
    return rc == WEIR_OK ? answer(&one, out, err) : rc;
}

/* ---- request and response ---- */

/* The first job makes the queue; here somebody waits before it comes. */
static enum weir_err
register_early(struct wait *w, struct one *one, struct weir_error *err)
{
    const char *queue = wr_queue_name(w->targets[0].queue);
    enum weir_err rc = wait_register(w, err);
    bool made;

    if (rc != WEIR_OK || one->rc != WEIR_E_NO_QUEUE)
        return rc;
    rc = weir_queue_create(w->client, queue, NULL, NULL, &made, err);
    if (rc != WEIR_OK)
        return rc;
    *one = (struct one){0};
    w->targets[0].over = w->stopped = false;
    w->left = 1;
    return wait_register(w, err);
}

/* Of a job that may take the place of another: the registration comes first, for nothing
 * if it gets that one's id. *told: that id's end will be told. */
static enum weir_err
replace_waited(struct wait *w, struct one *one, const struct weir_job *job, bool *told,
               struct weir_enqueued *out, struct weir_error *err)
{
    enum weir_err rc = register_early(w, one, err);

    *told = false;
    if (rc != WEIR_OK)
        return rc;
    rc = weir_job_enqueue(w->client, job, out, err);
    if (rc == WEIR_OK && strcmp(out->id.str, job->id) != 0)
        w->targets[0].id = out->id.str;
    else
        *told = true;
    return rc;
}

/* In one call: the script that stores the job registers who waits. */
static enum weir_err
enqueue_waited(struct wait *w, const struct weir_job *job, bool *told,
               struct weir_enqueued *out, struct weir_error *err)
{
    struct wr_waiter waiter = {w->tag, KEEP_MS};
    enum weir_err rc = find_listener(w, err);

    *told = false;
    w->refresh_ms = wr_clock_ms() + WR_LISTENER_REFRESH_MS;
    if (rc == WEIR_OK)
        rc = wr_client_enqueue_waited(w->client, job, &waiter, told, out, err);
    w->targets[0].id = out->id.str;
    return rc;
}

enum weir_err
weir_call(struct weir_client *c, const struct weir_job *given, int64_t timeout_ms,
          struct weir_job_view **out, struct weir_error *err)
{
    size_t size = given->struct_size;
    struct weir_job job = {0};
    struct one one = {0};
    struct target target = {0};
    struct wait w = {.client = c,
                     .targets = &target,
                     .n = 1,
                     .left = 1,
                     .early = true,
                     .deadline_ms = wr_clock_ms() + sooner(timeout_ms, LONGEST_MS),
                     .each = keep_one,
                     .context = &one};
    char id[WR_ID_LEN + 1];
    struct weir_enqueued placed = {0};
    struct weir_error own = {0};
    enum weir_err rc;
    bool told = false, replaces;

    *out = NULL;
    err = err ? err : &own;
    memcpy(&job, given, size < sizeof(job) ? size : sizeof(job));
    job.struct_size = sizeof(job);
    replaces = wr_may_replace(&job);
    if (!job.id && replaces) { /* it is waited for before it comes */
        wr_id_make(id);
        job.id = id;
    }
    target.id = job.id;
    rc = wr_client_queue(c, job.queue, &target.queue, err);
    if (rc == WEIR_OK)
        rc = replaces ? replace_waited(&w, &one, &job, &told, &placed, err)
                      : enqueue_waited(&w, &job, &told, &placed, err);
    if (rc != WEIR_OK) {
        weir_job_view_free(one.view);
        wait_end(&w);
        return rc;
    }
    w.early = false;
    wait_for_ends(&w, told);
    return answer(&one, out, err);
}
