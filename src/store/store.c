#include "store/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/digits.h"
#include "base/env.h"
#include "base/error.h"
#include "base/rand.h"
#include "base/text.h"
#include "redis/backoff.h"
#include "redis/conn.h"
#include "store/call.h"

#define COMMAND_TIMEOUT_MS 5000
#define BACKOFF_CAP_MS 500
#define ENGINE_TRIES 3

struct wr_store {
    struct wr_server *server;
    char ns[WR_NAMESPACE_MAX + 1];
    enum wr_engine engine; /* of queues that it makes */
    int64_t timeout_ms;
    _Atomic int64_t test_now_ms;

    pthread_mutex_t mu; /* guards queues; never held across I/O */
    struct wr_queue *queues;
};

static const char *const engine_words[] = {"list", "stream"};

bool
wr_engine_parse(const char *word, enum wr_engine *out)
{
    for (int e = WR_ENGINE_LIST; e <= WR_ENGINE_STREAM; e++) {
        if (strcmp(word, engine_words[e]) == 0) {
            *out = (enum wr_engine)e;
            return true;
        }
    }
    return false;
}

enum weir_err
wr_store_choose_engine(const char *given, const char **out, struct weir_error *err)
{
    enum wr_engine engine;

    *out = given ? given : wr_env_engine();
    if (wr_engine_parse(*out, &engine))
        return WEIR_OK;
    return wr_fail(err, given ? WEIR_E_ARG : WEIR_E_CONFIG, 0,
                   "%s: \"%.40s\" is not list or stream",
                   given ? "engine" : "WEIR_ENGINE", *out);
}

enum weir_err
wr_store_new(const struct wr_store_options *options, struct wr_store **out,
             struct weir_error *err)
{
    const char *ns = options->ns ? options->ns : "weir";
    enum wr_engine engine = WR_ENGINE_LIST;
    const char *word;
    struct wr_store *s;
    enum weir_err rc;

    *out = NULL;
    if (strlen(ns) > WR_NAMESPACE_MAX || !wr_text_is_queue(wr_span_str(ns)))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "namespace: 1 to %d bytes without braces or control characters",
                       WR_NAMESPACE_MAX);
    rc = wr_store_choose_engine(options->engine, &word, err);
    if (rc != WEIR_OK)
        return rc;
    (void)wr_engine_parse(word, &engine);
    s = calloc(1, sizeof(*s));
    if (!s)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "store");
    if (pthread_mutex_init(&s->mu, NULL) != 0) {
        free(s);
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "store");
    }
    s->server = options->server;
    s->engine = engine;
    snprintf(s->ns, sizeof(s->ns), "%s", ns);
    s->timeout_ms = options->command_timeout_ms > 0 ? options->command_timeout_ms
                                                    : COMMAND_TIMEOUT_MS;
    s->test_now_ms = options->test_now_ms;
    *out = s;
    return WEIR_OK;
}

void
wr_store_free(struct wr_store *s)
{
    if (!s)
        return;
    while (s->queues) {
        struct wr_queue *q = s->queues;

        s->queues = q->next;
        free(q);
    }
    pthread_mutex_destroy(&s->mu);
    free(s);
}

void
wr_store_set_test_clock(struct wr_store *s, int64_t now_ms)
{
    s->test_now_ms = now_ms;
}

void
wr_store_set_timeout(struct wr_store *s, int64_t command_timeout_ms)
{
    s->timeout_ms = command_timeout_ms;
}

const char *
wr_store_engine(const struct wr_store *s)
{
    return engine_words[s->engine];
}

const char *
wr_store_namespace(const struct wr_store *s)
{
    return s->ns;
}

struct wr_server *
wr_store_server(struct wr_store *s)
{
    return s->server;
}

static struct wr_queue *
find_queue(struct wr_store *s, const char *name)
{
    for (struct wr_queue *q = s->queues; q; q = q->next) {
        if (strcmp(q->name, name) == 0)
            return q;
    }
    return NULL;
}

enum weir_err
wr_store_queue(struct wr_store *s, const char *name, struct wr_queue **out,
               struct weir_error *err)
{
    struct wr_queue *q;

    *out = NULL;
    if (!wr_text_is_queue(wr_span_str(name)))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "queue name: 1 to 128 bytes without braces or control characters");
    pthread_mutex_lock(&s->mu);
    q = find_queue(s, name);
    if (!q && (q = calloc(1, sizeof(*q))) != NULL) {
        snprintf(q->name, sizeof(q->name), "%s", name);
        wr_keys_make(&q->keys, s->ns, name);
        q->engine = (int)s->engine;
        q->next = s->queues;
        s->queues = q;
    }
    pthread_mutex_unlock(&s->mu);
    if (!q)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "queue %s", name);
    *out = q;
    return WEIR_OK;
}

const char *
wr_queue_name(const struct wr_queue *queue)
{
    return queue->name;
}

struct wr_span
wr_queue_wake_key(const struct wr_queue *queue)
{
    return queue->keys.key[WR_QUEUE_KEY_wake];
}

struct wr_span
wr_queue_due_key(const struct wr_queue *queue)
{
    return queue->keys.key[WR_QUEUE_KEY_due];
}

void
wr_channel_renew(struct wr_channel *channel)
{
    unsigned char bytes[16];

    wr_rand_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(channel->name + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    channel->number = 1;
}

/* ---- one call ---- */

static void
put_keys(struct wr_call *c)
{
    for (size_t i = 0; c->queue && c->script->keys && i < c->script->nkeys; i++)
        wr_call_arg(c, c->queue->keys.key[c->script->keys[i]]);
}

void
wr_call_init(struct wr_call *c, struct wr_store *store, struct wr_queue *queue,
             const struct wr_script *const *pair)
{
    c->store = store;
    c->queue = queue;
    c->pair = pair;
    c->engine = queue ? (enum wr_engine)queue->engine : WR_ENGINE_LIST;
    c->script = pair[c->engine];
    c->argv = c->inline_argv;
    c->argc = 0;
    c->cap = sizeof(c->inline_argv) / sizeof(c->inline_argv[0]);
    c->failed = false;
    c->by_token = c->one_engine = c->others_first = false;
    c->numbers_n = 0;
    c->reply = NULL;
    c->status = 0;
    put_keys(c);
}

void
wr_call_init_held(struct wr_call *c, struct wr_store *store, struct wr_queue *queue,
                  const struct wr_script *const *pair, struct wr_span token)
{
    bool stream = token.len > 0 && memchr(token.ptr, '-', token.len) != NULL;

    wr_call_init(c, store, queue, pair);
    c->by_token = true;
    c->engine = stream ? WR_ENGINE_STREAM : WR_ENGINE_LIST;
    c->script = pair[c->engine];
    c->argc = 0;
    put_keys(c);
}

static bool
grow(struct wr_call *c)
{
    size_t cap = c->cap * 4;
    bool was_inline = c->argv == c->inline_argv;
    struct wr_span *argv;

    WR_ASSERT(cap > c->cap);
    argv = realloc(was_inline ? NULL : c->argv, cap * sizeof(*argv));
    if (!argv)
        return false;
    if (was_inline)
        memcpy(argv, c->inline_argv, c->argc * sizeof(*argv));
    c->argv = argv;
    c->cap = cap;
    return true;
}

void
wr_call_arg(struct wr_call *c, struct wr_span word)
{
    if (c->failed || (c->argc == c->cap && !grow(c))) {
        c->failed = true;
        return;
    }
    c->argv[c->argc++] = word;
}

void
wr_call_key(struct wr_call *c, const char *key)
{
    wr_call_str(c, key);
}

void
wr_call_str(struct wr_call *c, const char *word)
{
    wr_call_arg(c, wr_span_str(word));
}

void
wr_call_int(struct wr_call *c, int64_t number)
{
    size_t len = 0;
    char *text;

    if (c->numbers_n == sizeof(c->numbers) / sizeof(c->numbers[0])) {
        c->failed = true;
        return;
    }
    text = c->numbers[c->numbers_n++];
    if (number < 0)
        text[len++] = '-';
    len += wr_digits(number < 0 ? 0 - (uint64_t)number : (uint64_t)number, text + len);
    wr_call_arg(c, (struct wr_span){text, len});
}

void
wr_call_now(struct wr_call *c)
{
    int64_t now = c->store->test_now_ms;

    if (now == 0)
        wr_call_str(c, "");
    else
        wr_call_int(c, now);
}

bool
wr_call_is(const struct wr_call *c, const char *word)
{
    return strcmp(c->script->statuses[c->status], word) == 0;
}

int
wr_call_word(const struct wr_call *c, size_t i, const char *const *words)
{
    const struct wr_reply *r = wr_reply_at(c->reply, i);

    for (int w = 0; words[w]; w++) {
        if (wr_reply_is(r, words[w]))
            return w;
    }
    return -1;
}

/* What may pass if the same call is made again a little later. */
static bool
is_passing(enum weir_err rc)
{
    return rc == WEIR_E_CONNECT || rc == WEIR_E_LOADING || rc == WEIR_E_NO_REPLY;
}

static enum weir_err
run_once(struct wr_call *c, int64_t deadline_ms, struct weir_error *err)
{
    struct wr_server *server = c->store->server;
    struct wr_span ping[] = {wr_span_str("PING")};
    struct wr_conn *conn;
    enum weir_err rc = wr_server_take(server, deadline_ms, &conn, err);

    if (rc != WEIR_OK)
        return rc;
    if (c->others_first)
        rc = wr_conn_hold_unheard(conn, ping, 1, err);
    if (rc == WEIR_OK)
        rc = wr_script_run(conn, c->script, c->argv, c->argc, deadline_ms, &c->reply,
                           &c->status, err);
    wr_server_give(server, conn);
    return rc;
}

/*
 * A repeat is harmless: it carries the same channel number, call number or tokens. Once
 * a try ended as unknown the whole call does, unless a later try is answered.
 */
static enum weir_err
run_until(struct wr_call *c, int64_t deadline_ms, struct weir_error *err)
{
    int64_t tenth = c->store->timeout_ms / 10,
            cap = tenth < BACKOFF_CAP_MS ? tenth : BACKOFF_CAP_MS;
    bool unknown = false;

    for (unsigned failures = 0;; failures++) {
        enum weir_err rc = run_once(c, deadline_ms, err);

        if (rc == WEIR_E_NO_REPLY)
            unknown = true;
        if (!is_passing(rc))
            return rc;
        if (!wr_backoff_sleep(failures, cap, deadline_ms)) {
            if (unknown && rc != WEIR_E_NO_REPLY)
                return wr_fail(err, WEIR_E_NO_REPLY, 0,
                               "%s: sent, no answer, and now Redis is away",
                               c->script->name);
            return rc;
        }
    }
}

/* After ENGINE: the same call by the other engine's script, which has other keys. */
static void
change_engine(struct wr_call *c)
{
    size_t had = c->script->nkeys, words = c->argc - had;
    struct wr_span *args = malloc((words > 0 ? words : 1) * sizeof(*args));

    if (!args) {
        c->failed = true;
        return;
    }
    memcpy(args, c->argv + had, words * sizeof(*args));
    wr_reply_free(c->reply);
    c->reply = NULL;
    c->engine = c->engine == WR_ENGINE_LIST ? WR_ENGINE_STREAM : WR_ENGINE_LIST;
    c->script = c->pair[c->engine];
    c->argc = 0;
    put_keys(c);
    for (size_t i = 0; i < words; i++)
        wr_call_arg(c, args[i]);
    free(args);
}

/* Some scripts say which one it has. */
static enum weir_err
wrong_engine(const struct wr_call *c, const char *queue, struct weir_error *err)
{
    struct wr_span has = wr_reply_span(wr_reply_at(c->reply, 1));

    if (has.len > 0)
        return wr_fail(err, WEIR_E_WRONG_ENGINE, 0,
                       "queue %s is stored by the engine %.*s", queue,
                       (int)(has.len < 20 ? has.len : 20), (const char *)has.ptr);
    return wr_fail(err, WEIR_E_WRONG_ENGINE, 0,
                   "queue %s is stored by another engine than %s", queue,
                   c->engine == WR_ENGINE_LIST ? "list" : "stream");
}

static enum weir_err
common_word(const struct wr_call *c, struct weir_error *err)
{
    const char *queue = c->queue ? c->queue->name : "";

    if (wr_call_is(c, "NOQUEUE"))
        return wr_fail(err, WEIR_E_NO_QUEUE, 0, "no such queue: %s", queue);
    if (wr_call_is(c, "ENGINE"))
        return wrong_engine(c, queue, err);
    if (wr_call_is(c, "CORRUPT"))
        return wr_fail(err, WEIR_E_CORRUPT, 0,
                       "queue %s: its config key is gone but jobs are there (evicted, or "
                       "deleted by hand); HSET %s engine list (or stream) brings it back",
                       queue,
                       c->queue ? wr_key_text(&c->queue->keys, WR_QUEUE_KEY_config) : "");
    return WEIR_OK;
}

/* The server names no key: with many queues, nobody would know where to look. */
static enum weir_err
name_queue(const struct wr_call *c, enum weir_err rc, struct weir_error *err)
{
    char text[sizeof(err->text)];

    if (rc != WEIR_E_CORRUPT || !c->queue || !err)
        return rc;
    memcpy(text, err->text, sizeof(text));
    return wr_fail(err, rc, 0, "queue %s: %s", wr_queue_name(c->queue), text);
}

/* The engine that did not answer ENGINE is the queue's. */
static void
believe(struct wr_call *c)
{
    if (c->queue && !c->by_token && c->queue->engine != (int)c->engine)
        c->queue->engine = (int)c->engine;
}

static enum weir_err
run(struct wr_call *c, int64_t deadline_ms, struct weir_error *err)
{
    enum weir_err rc;

    if (c->failed)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "%s", c->script->name);
    rc = run_until(c, deadline_ms, err);
    if (rc != WEIR_OK)
        return name_queue(c, rc, err);
    return common_word(c, err);
}

/* A queue may change its engine between two tries: a few are enough. */
enum weir_err
wr_call_run(struct wr_call *c, struct weir_error *err)
{
    int64_t deadline = wr_clock_ms() + c->store->timeout_ms;
    enum weir_err rc = run(c, deadline, err);

    for (int tries = 0; rc == WEIR_E_WRONG_ENGINE && c->queue && tries < ENGINE_TRIES;
         tries++) {
        enum wr_engine other = c->engine == WR_ENGINE_LIST ? WR_ENGINE_STREAM
                                                           : WR_ENGINE_LIST;

        if (!c->pair[other] || c->pair[other] == c->script)
            return rc;
        if (c->one_engine) {
            c->queue->engine = (int)other;
            return rc;
        }
        change_engine(c);
        rc = run(c, deadline, err);
    }
    if (rc == WEIR_OK)
        believe(c);
    return rc;
}

enum weir_err
wr_call_hold(struct wr_call *c, struct wr_conn *conn, bool mute, struct weir_error *err)
{
    if (c->failed)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "%s", c->script->name);
    return wr_script_hold(conn, c->script, c->argv, c->argc, mute, err);
}

enum weir_err
wr_call_recv(struct wr_call *c, struct wr_conn *conn, int64_t deadline_ms,
             struct weir_error *err)
{
    enum weir_err rc = wr_script_recv(conn, c->script, deadline_ms, &c->reply, &c->status,
                                      err);

    if (rc == WEIR_OK)
        rc = common_word(c, err);
    if (rc == WEIR_E_WRONG_ENGINE)
        c->queue->engine = c->engine == WR_ENGINE_LIST ? WR_ENGINE_STREAM
                                                       : WR_ENGINE_LIST;
    return rc;
}

void
wr_call_fini(struct wr_call *c)
{
    if (c->argv != c->inline_argv)
        free(c->argv);
    wr_reply_free(c->reply);
    c->reply = NULL;
}

/* ---- the clock ---- */

static enum weir_err
ask_time(struct wr_server *server, int64_t deadline_ms, int64_t *us,
         struct weir_error *err)
{
    struct wr_reply *reply;
    struct wr_conn *conn;
    enum weir_err rc = wr_server_take(server, deadline_ms, &conn, err);

    if (rc != WEIR_OK)
        return rc;
    rc = wr_conn_do(conn, deadline_ms, &reply, err, "TIME", (char *)NULL);
    if (rc == WEIR_OK) {
        *us = wr_reply_int(wr_reply_at(reply, 0)) * 1000000 +
              wr_reply_int(wr_reply_at(reply, 1));
        wr_reply_free(reply);
    }
    wr_server_give(server, conn);
    return rc;
}

enum weir_err
wr_store_time(struct wr_store *s, int64_t *us, struct weir_error *err)
{
    int64_t deadline = wr_clock_ms() + s->timeout_ms;

    *us = s->test_now_ms * 1000;
    if (*us > 0)
        return WEIR_OK;
    for (unsigned failures = 0;; failures++) {
        enum weir_err rc = ask_time(s->server, deadline, us, err);

        if (rc == WEIR_OK && *us <= 0)
            return wr_fail(err, WEIR_E_CORRUPT, 0, "TIME: odd answer");
        if (!is_passing(rc) || !wr_backoff_sleep(failures, BACKOFF_CAP_MS, deadline))
            return rc;
    }
}
