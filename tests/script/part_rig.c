#include "script/rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "redis/url.h"
#include "store/call.h"

#define OK(call)                                                                      \
    do {                                                                              \
        if ((call) != WEIR_OK)                                                        \
            fail_msg("%s: %s: %s", #call, weir_err_name(rig.err.code), rig.err.text); \
    } while (0)

struct rig rig;

char rig_list_only[] = "list", rig_stream_only[] = "stream";
static const char *const engines[] = {rig_list_only, rig_stream_only};

static enum rig_engine running;

static struct {
    char worker[64], id[256], token[64];
} tokens[4096];
static size_t tokens_n;

/* ---- setups ---- */

int
rig_open(void **state)
{
    struct wr_server_options so = {.max_connections = 4};
    struct wr_store_options o = {.test_now_ms = RIG_START, .command_timeout_ms = 20000};

    (void)state;
    setenv("LC_ALL", "C", 1); /* the server sorts as strcmp() does */
    rig.redis = redis_server_start(NULL);
    OK(wr_url_parse(redis_server_url(rig.redis), &so.url, &rig.err));
    OK(wr_server_new(&so, &rig.server, &rig.err));
    o.server = rig.server;
    OK(wr_store_new(&o, &rig.store, &rig.err));
    OK(wr_store_queue(rig.store, "q", &rig.queue, &rig.err));
    OK(wr_server_open(rig.server, "rig", wr_clock_ms() + 5000, &rig.conn, &rig.err));
    wr_keys_make(&rig.keys, "weir", "q");
    return 0;
}

int
rig_close(void **state)
{
    (void)state;
    wr_conn_close(rig.conn);
    wr_store_free(rig.store);
    wr_server_free(rig.server);
    redis_server_stop(rig.redis);
    return 0;
}

int
rig_fresh(void **state)
{
    (void)state;
    if (strcmp(redis_do(rig.redis, "FLUSHALL"), "OK") != 0)
        return -1;
    rig.channel = (struct wr_channel){0};
    rig.call = 1;
    tokens_n = 0;
    rig_clock(RIG_START);
    rig.engine = running;
    rig.queue->engine = (int)running; /* what the store believes */
    if (rig.engine != RIG_LIST)
        rig_make_queue();
    return 0;
}

void
rig_make_queue(void)
{
    redis_do(rig.redis, "HSET %s engine %s made m", rig_key(WR_QUEUE_KEY_config),
             engines[rig.engine]);
}

void
rig_follow_engine(void)
{
    const char *engine = redis_do(rig.redis, "HGET %s engine",
                                  rig_key(WR_QUEUE_KEY_config));

    rig.engine = strcmp(engine, "stream") == 0 ? RIG_STREAM : RIG_LIST;
}

/* The tests of one engine, in a group of their own. */
static int
run_engine(enum rig_engine engine, const struct CMUnitTest *tests, size_t n)
{
    struct CMUnitTest *own = calloc(n, sizeof(*own));
    size_t own_n = 0;
    int failed;

    assert_non_null(own);
    for (size_t i = 0; i < n; i++) {
        const char *only = tests[i].initial_state;

        if (!only || strcmp(only, engines[engine]) == 0)
            own[own_n++] = tests[i];
    }
    if (own_n == 0) {
        free(own);
        return 0;
    }
    running = engine;
    failed = _cmocka_run_group_tests(engines[engine], own, own_n, rig_open, rig_close);
    free(own);
    return failed;
}

int
rig_run(const struct CMUnitTest *tests, size_t n)
{
    const char *wanted = getenv("WEIR_TEST_ENGINE");
    int failed = 0;

    if (!wanted)
        wanted = "list, stream";
    for (enum rig_engine e = RIG_LIST; e <= RIG_STREAM; e++) {
        if (strstr(wanted, engines[e]))
            failed += run_engine(e, tests, n);
    }
    return failed;
}

void
rig_clock(int64_t now_ms)
{
    rig.now = now_ms;
    wr_store_set_test_clock(rig.store, now_ms);
}

void
rig_pass(int64_t ms)
{
    rig_clock(rig.now + ms);
}

/* ---- producers ---- */

struct wr_admit
rig_item(struct rig_job job)
{
    static struct wr_buf tails[64];
    static unsigned turn;
    struct wr_buf *tail = &tails[turn++ % 64];

    wr_buf_clear(tail);
    wr_buf_add_str(tail, job.options ? job.options : "");
    wr_buf_add_str(tail, "\n");
    if (job.payload.ptr)
        wr_buf_add(tail, job.payload.ptr, job.payload.len);
    else
        wr_buf_add_str(tail, "x");
    return (struct wr_admit){
        .id = wr_span_str(job.id),
        .head = wr_span_str("1 t"),
        .tail = wr_buf_span(tail),
        .unique = wr_span_str(job.unique ? job.unique : ""),
        .due = wr_span_str(job.due ? job.due : ""),
    };
}

enum wr_admit_word
rig_put_job(struct rig_job job)
{
    struct wr_admit item = rig_item(job);
    struct wr_admitted out;

    OK(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out, NULL,
                        &rig.err));
    return out.word;
}

enum wr_admit_word
rig_put(const char *id)
{
    return rig_put_job((struct rig_job){.id = id});
}

void
rig_put_many(const char *ids)
{
    struct wr_admitted out[32];
    struct wr_admit items[32];
    char copy[512], *save = NULL;
    size_t n = 0;

    snprintf(copy, sizeof(copy), "%s", ids);
    for (char *id = strtok_r(copy, " ", &save); id && n < 32;
         id = strtok_r(NULL, " ", &save))
        items[n++] = rig_item((struct rig_job){.id = id});
    OK(wr_store_enqueue(rig.store, rig.queue, &rig.channel, items, n, out, NULL,
                        &rig.err));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(out[i].word, WR_ADMIT_STORED);
}

void
rig_put_thousand(int first)
{
    static struct wr_admit items[1000];
    static struct wr_admitted out[1000];
    static char ids[1000][16];

    for (int i = 0; i < 1000; i++) {
        snprintf(ids[i], sizeof(ids[i]), "n%d", first + i);
        items[i] = (struct wr_admit){.id = wr_span_str(ids[i]),
                                     .head = wr_span_str("1 t"),
                                     .tail = wr_span_str("\nx"),
                                     .unique = wr_span_str(""),
                                     .due = wr_span_str("")};
    }
    OK(wr_store_enqueue(rig.store, rig.queue, &rig.channel, items, 1000, out, NULL,
                        &rig.err));
}

/* ---- workers ---- */

void
rig_set_token(const char *worker, const char *id, const char *token)
{
    size_t i = 0;

    while (i < tokens_n &&
           (strcmp(tokens[i].worker, worker) != 0 || strcmp(tokens[i].id, id) != 0))
        i++;
    assert_true(i < sizeof(tokens) / sizeof(tokens[0]));
    if (i == tokens_n)
        tokens_n++;
    snprintf(tokens[i].worker, sizeof(tokens[i].worker), "%s", worker);
    snprintf(tokens[i].id, sizeof(tokens[i].id), "%s", id);
    snprintf(tokens[i].token, sizeof(tokens[i].token), "%s", token);
}

const char *
rig_token(const char *worker, const char *id)
{
    for (size_t i = 0; i < tokens_n; i++) {
        if (strcmp(tokens[i].worker, worker) == 0 && strcmp(tokens[i].id, id) == 0)
            return tokens[i].token;
    }
    return "0";
}

const struct rig_taken *
rig_take_how(const struct wr_reserve *how)
{
    static struct rig_taken taken;
    struct wr_batch batch;
    size_t len = 0;

    OK(wr_store_reserve(rig.store, rig.queue, how, &batch, &rig.err));
    taken = (struct rig_taken){.word = batch.word, .n = batch.n};
    if (batch.n > 0)
        taken.first = batch.jobs[0].state;
    for (size_t i = 0; i < batch.n; i++) {
        char id[256];

        snprintf(id, sizeof(id), "%.*s", (int)batch.jobs[i].id.len,
                 (const char *)batch.jobs[i].id.ptr);
        if (batch.n <= 64)
            rig_set_token(how->worker, id, batch.jobs[i].state.token);
        if (len < sizeof(taken.ids) - 260)
            len += (size_t)snprintf(taken.ids + len, sizeof(taken.ids) - len, "%s%s",
                                    i > 0 ? " " : "", id);
    }
    taken.first.progress = (struct wr_span){"", 0};
    wr_batch_fini(&batch);
    return &taken;
}

const struct rig_taken *
rig_take(const char *worker, size_t free)
{
    struct wr_reserve how = {
        .worker = worker, .call = rig.call++, .free = free, .lease_ms = RIG_LEASE};

    return rig_take_how(&how);
}

static struct wr_answer
answer_of(const char *worker, const char *id)
{
    return (struct wr_answer){
        .id = wr_span_str(id),
        .token = wr_span_str(rig_token(worker, id)),
        .result = wr_span_str(""),
        .reason = "permanent",
        .text = wr_span_str("why"),
    };
}

enum wr_answered
rig_ack_result(const char *worker, const char *id, const char *result)
{
    struct wr_answer a = answer_of(worker, id);
    enum wr_answered out;

    a.result = wr_span_str(result);
    OK(wr_store_ack(rig.store, rig.queue, worker, &a, 1, &out, &rig.err));
    return out;
}

enum wr_answered
rig_ack(const char *worker, const char *id)
{
    return rig_ack_result(worker, id, "");
}

enum wr_answered
rig_retry(const char *worker, const char *id, int64_t delay_ms)
{
    struct wr_answer a = answer_of(worker, id);
    enum wr_answered out;

    a.delay_ms = delay_ms;
    OK(wr_store_retry(rig.store, rig.queue, worker, &a, 1, &out, &rig.err));
    return out;
}

enum wr_answered
rig_bury(const char *worker, const char *id)
{
    struct wr_answer a = answer_of(worker, id);
    enum wr_answered out;

    OK(wr_store_bury(rig.store, rig.queue, worker, &a, 1, &out, &rig.err));
    return out;
}

enum wr_answered
rig_release(const char *worker, const char *id)
{
    struct wr_answer a = answer_of(worker, id);
    enum wr_answered out;

    OK(wr_store_release(rig.store, rig.queue, worker, &a, 1, &out, &rig.err));
    return out;
}

enum wr_extended
rig_extend(const char *worker, const char *id, int64_t limit_ms)
{
    struct wr_holding h = {.id = wr_span_str(id),
                           .token = wr_span_str(rig_token(worker, id)),
                           .limit_ms = limit_ms};
    enum wr_extended out;

    OK(wr_store_extend(rig.store, rig.queue, worker, RIG_LEASE, &h, 1, &out, &rig.err));
    return out;
}

enum wr_extended
rig_progress_keep(const char *worker, const char *id, const char *text, int64_t keep_ms)
{
    enum wr_extended out;

    OK(wr_store_progress(rig.store, rig.queue, worker, wr_span_str(id),
                         wr_span_str(rig_token(worker, id)), wr_span_str(text), keep_ms,
                         &out, &rig.err));
    return out;
}

enum wr_extended
rig_progress(const char *worker, const char *id, const char *text)
{
    return rig_progress_keep(worker, id, text, WR_PROGRESS_WITH_JOB);
}

/* ---- movers and people ---- */

enum wr_cancelled
rig_cancel(const char *id)
{
    struct wr_span span = wr_span_str(id);
    enum wr_cancelled out;

    OK(wr_store_cancel(rig.store, rig.queue, &span, 1, &out, &rig.err));
    return out;
}

enum wr_replayed
rig_replay(const char *id)
{
    struct wr_span span = wr_span_str(id);
    enum wr_replayed out;
    size_t moved;

    OK(wr_store_replay(rig.store, rig.queue, &span, 1, 0, &out, &moved, &rig.err));
    assert_int_equal(moved, out == WR_REPLAY_OK);
    return out;
}

enum wr_replayed
rig_purge(const char *id)
{
    struct wr_span span = wr_span_str(id);
    enum wr_replayed out;
    size_t moved;

    OK(wr_store_purge(rig.store, rig.queue, &span, 1, 0, &out, &moved, &rig.err));
    assert_int_equal(moved, out == WR_REPLAY_OK);
    return out;
}

struct wr_moved
rig_promote(size_t limit)
{
    struct wr_moved out;

    OK(wr_store_promote(rig.store, rig.queue, limit, &out, &rig.err));
    return out;
}

struct wr_moved
rig_reclaim(void)
{
    struct wr_reclaim how = {.lease_ms = RIG_LEASE,
                             .lease_max_ms = 60000,
                             .gap_ms = 1000,
                             .last_ms = rig.now - 1000,
                             .limit = 100};
    struct wr_moved out;

    OK(wr_store_reclaim(rig.store, rig.queue, &how, &out, &rig.err));
    return out;
}

struct wr_moved
rig_forget(size_t limit)
{
    struct wr_moved out;

    OK(wr_store_forget(rig.store, rig.queue, limit, &out, &rig.err));
    return out;
}

void
rig_kill_job(const char *id)
{
    assert_int_equal(rig_put(id), WR_ADMIT_STORED);
    assert_string_equal(rig_take("killer", 1)->ids, id);
    assert_int_equal(rig_bury("killer", id), WR_ANSWERED_OK);
}

void
rig_kill_thousand(void)
{
    struct wr_reserve how = {
        .worker = "killer", .call = rig.call++, .free = 1000, .lease_ms = RIG_LEASE};
    struct wr_answer answers[1000];
    enum wr_answered out[1000];
    struct wr_batch batch;

    OK(wr_store_reserve(rig.store, rig.queue, &how, &batch, &rig.err));
    assert_true(batch.n <= 1000);
    for (size_t i = 0; i < batch.n; i++)
        answers[i] = (struct wr_answer){.id = batch.jobs[i].id,
                                        .token = wr_span_str(batch.jobs[i].state.token),
                                        .reason = "permanent",
                                        .text = wr_span_str("why")};
    OK(wr_store_bury(rig.store, rig.queue, "killer", answers, batch.n, out, &rig.err));
    for (size_t i = 0; i < batch.n; i++)
        assert_int_equal(out[i], WR_ANSWERED_OK);
    wr_batch_fini(&batch);
}

bool
rig_pause(void)
{
    bool was;

    OK(wr_store_pause(rig.store, rig.queue, "me", NULL, &was, &rig.err));
    return was;
}

bool
rig_resume(void)
{
    bool was;

    OK(wr_store_resume(rig.store, rig.queue, &was, &rig.err));
    return was;
}

/* ---- looking ---- */

static bool
has_letter(struct wr_span letters, char letter)
{
    return letters.len > 0 && memchr(letters.ptr, letter, letters.len) != NULL;
}

/* Is this what a stream's entry says in place of a hash? */
static bool
is_in_entry(struct wr_span letters, char letter)
{
    if (rig.engine != RIG_STREAM || has_letter(letters, letter))
        return false;
    return (letter == 'J' && (has_letter(letters, 'R') || has_letter(letters, 'P'))) ||
           (letter == 'S' && has_letter(letters, 'P'));
}

const char *
rig_where(const char *id)
{
    static char texts[8][32];
    static unsigned turn;
    struct wr_span span = wr_span_str(id), letters;
    char *out = texts[turn++ % 8];
    struct wr_reply *reply;
    size_t n = 0;

    OK(wr_store_locate(rig.store, rig.queue, &span, 1, true, &reply, &rig.err));
    letters = wr_reply_span(wr_reply_at(reply, 1));
    for (const char *l = "JKLPRSTX"; *l; l++) {
        if (is_in_entry(letters, *l))
            out[n++] = *l;
        for (size_t i = 0; i < letters.len && n < 30; i++) {
            if (((const char *)letters.ptr)[i] == *l)
                out[n++] = *l;
        }
    }
    out[n] = '\0';
    wr_reply_free(reply);
    return out;
}

const char *
rig_either(const char *list, const char *stream)
{
    return rig.engine == RIG_LIST ? list : stream;
}

const char *
rig_or_tomb(const char *letters)
{
    static char texts[4][8];
    static unsigned turn;
    char *out = texts[turn++ % 4];
    size_t n = 0;

    for (; *letters; letters++) {
        if (rig.engine == RIG_LIST || (*letters != 'R' && *letters != 'T'))
            out[n++] = *letters;
    }
    out[n] = '\0';
    return out;
}

/* One element of what inspect answers; "" if the job is gone. */
static const char *
inspected(const char *id, size_t element)
{
    static struct wr_buf texts[8];
    static unsigned turn;
    struct wr_buf *text = &texts[turn++ % 8];
    char now[32] = "";
    struct wr_span words[] = {wr_span_str(now), wr_span_str(id), wr_span_str("1000000")};
    struct wr_reply *reply;

    words[0].len = (size_t)snprintf(now, sizeof(now), "%" PRId64, rig.now);
    reply = rig_script_argv("inspect", words, 3);
    wr_buf_clear(text);
    wr_buf_add_str(text, "");
    if (wr_reply_is(wr_reply_at(reply, 0), "OK")) {
        struct wr_span found = wr_reply_span(wr_reply_at(reply, element));

        wr_buf_add(text, found.ptr, found.len);
    }
    wr_reply_free(reply);
    return wr_buf_span(text).ptr;
}

const char *
rig_record(const char *id)
{
    return inspected(id, 4);
}

struct wr_job_state
rig_state(const char *id)
{
    const char *text = inspected(id, 6);
    struct wr_job_state s = {0};

    if (text[0] != '\0')
        assert_true(wr_job_state_read(wr_span_str(text), &s));
    return s;
}

int64_t
rig_score(const char *id)
{
    const char *text = inspected(id, 3);

    return text[0] == '\0' ? -1 : strtoll(text, NULL, 10);
}

void
rig_lose_body(const char *id)
{
    const char *entry;

    if (strcmp(redis_do(rig.redis, "HDEL %s %s", rig_key(WR_QUEUE_KEY_jobs), id), "1") ==
            0 ||
        rig.engine == RIG_LIST)
        return;
    entry = redis_do(rig.redis, "HGET %s %s", rig_key(WR_QUEUE_KEY_ids), id);
    redis_do(rig.redis, "XDEL %s %s", rig_key(WR_QUEUE_KEY_stream),
             strcmp(entry, "(nil)") == 0 ? id : entry);
}

int64_t
rig_stat(const char *counter)
{
    const char *text = redis_do(rig.redis, "HGET %s %s", rig_key(WR_QUEUE_KEY_stats),
                                counter);

    return strcmp(text, "(nil)") == 0 ? 0 : strtoll(text, NULL, 10);
}

struct weir_audit
rig_audit(void)
{
    struct wr_reply *reply;
    struct weir_audit a;

    OK(wr_store_audit(rig.store, rig.queue, &reply, &rig.err));
    OK(wr_audit_read(reply, &a, &rig.err));
    wr_reply_free(reply);
    return a;
}

void
rig_assert_equations(int64_t bodies)
{
    struct weir_audit a = rig_audit();

    assert_int_equal(a.gap, 0);
    assert_int_equal(a.gap_processing, 0);
    assert_int_equal(a.gap_ready, 0);
    assert_int_equal(a.gap_delayed, 0);
    assert_int_equal(a.gap_dead, 0);
    assert_int_equal(a.gap_kept, 0);
    assert_int_equal(a.gap_bodies, bodies);
}

static bool
print_finding(const char *kind, const char *id, const char *detail, void *context)
{
    (void)context;
    print_error("finding: %s %s %s\n", kind, id, detail);
    return true;
}

void
rig_assert_sums(void)
{
    size_t findings;

    rig_assert_equations(0);
    OK(wr_audit_deep(rig.store, rig.queue, print_finding, NULL, &findings, &rig.err));
    assert_int_equal(findings, 0);
}

const char *
rig_key(enum wr_queue_key key)
{
    return wr_key_text(&rig.keys, key);
}

bool
rig_has_marker(void)
{
    return strcmp(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_wake)), "0") != 0;
}

/* ---- scripts by hand ---- */

const struct wr_script *
rig_script_of(const char *name)
{
    for (size_t i = 0; i < wr_scripts_count; i++) {
        const char *slash = strchr(wr_scripts[i]->name, '/');
        size_t len = (size_t)(slash - wr_scripts[i]->name);

        if (strcmp(slash + 1, name) == 0 &&
            (strncmp(wr_scripts[i]->name, engines[rig.engine], len) == 0 ||
             strncmp(wr_scripts[i]->name, "common", len) == 0))
            return wr_scripts[i];
    }
    fail_msg("no script %s of the engine %s", name, engines[rig.engine]);
    return NULL;
}

struct wr_reply *
rig_script_argv(const char *name, const struct wr_span *words, size_t n)
{
    const struct wr_script *script = rig_script_of(name);
    struct wr_span *argv = calloc(n + script->nkeys + 3, sizeof(*argv));
    struct wr_reply *reply;
    char nkeys[16];
    size_t argc = 3;

    assert_non_null(argv);
    snprintf(nkeys, sizeof(nkeys), "%zu", script->nkeys);
    argv[0] = wr_span_str("EVALSHA");
    argv[1] = wr_span_str(script->sha1);
    argv[2] = wr_span_str(nkeys);
    for (size_t i = 0; i < script->nkeys && script->keys; i++)
        argv[argc++] = rig.keys.key[script->keys[i]];
    for (size_t i = 0; i < n; i++)
        argv[argc++] = words[i];
    for (int tries = 0; tries < 2; tries++) {
        struct wr_span load[] = {
            wr_span_str("SCRIPT"), wr_span_str("LOAD"), {script->body, script->body_len}};

        OK(wr_conn_send(rig.conn, argv, argc, wr_clock_ms() + 20000, &rig.err));
        OK(wr_conn_recv(rig.conn, wr_clock_ms() + 20000, &reply, &rig.err));
        if (wr_reply_kind(reply) != WR_REPLY_ERROR ||
            strncmp(wr_reply_span(reply).ptr, "NOSCRIPT", 8) != 0)
            break;
        wr_reply_free(reply);
        OK(wr_conn_call(rig.conn, load, 3, wr_clock_ms() + 20000, &reply, &rig.err));
        wr_reply_free(reply);
        reply = NULL;
    }
    free(argv);
    return reply;
}

void
rig_reply_text(const struct wr_reply *r, struct wr_buf *out)
{
    wr_buf_clear(out);
    wr_buf_add_str(out, "");
    for (size_t i = 0; i < wr_reply_len(r); i++) {
        struct wr_span s = wr_reply_span(wr_reply_at(r, i));

        wr_buf_add_str(out, i > 0 ? " " : "");
        wr_buf_add(out, s.ptr, s.len);
    }
    if (wr_reply_kind(r) == WR_REPLY_ERROR) {
        wr_buf_add_str(out, "ERR ");
        wr_buf_add(out, wr_reply_span(r).ptr, wr_reply_span(r).len);
    }
}

const char *
rig_script(const char *name, ...)
{
    static struct wr_buf texts[8];
    static unsigned turn;
    struct wr_buf *out = &texts[turn++ % 8];
    struct wr_span words[64];
    struct wr_reply *reply;
    const char *word;
    size_t n = 0;
    va_list ap;

    va_start(ap, name);
    while ((word = va_arg(ap, const char *)) != NULL && n < 64)
        words[n++] = wr_span_str(word);
    va_end(ap);
    reply = rig_script_argv(name, words, n);
    rig_reply_text(reply, out);
    wr_reply_free(reply);
    return wr_buf_span(out).ptr;
}
