/* What belongs to no queue: the names of all queues, the workers. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "redis/conn.h"
#include "redis/server.h"
#include "store/call.h"
#include "store/scripts.gen.h"

#define WR_QUEUE_NAME_MAX 128
#define INFO_TIMEOUT_MS 2000
#define GRACE_MAX_MS INT64_C(2592000000) /* 30 days */
#define WORKER_OLD_MS 60000 /* the roster forgets workers silent for so long */

/* Copies an element if it is a queue's name. */
static bool
read_name(const struct wr_reply *element, char out[WR_QUEUE_NAME_MAX + 1])
{
    struct wr_span name = wr_reply_span(element);

    if (name.len > WR_QUEUE_NAME_MAX || !wr_text_is_queue(name))
        return false;
    memcpy(out, name.ptr, name.len);
    out[name.len] = '\0';
    return true;
}

enum weir_err
wr_store_each_queue(struct wr_store *store, wr_queue_name_fn each, void *context,
                    struct weir_error *err)
{
    char key[WR_KEY_MAX], name[WR_QUEUE_NAME_MAX + 1];
    bool go_on = each != NULL;
    struct wr_call c;
    enum weir_err rc;

    wr_key_queues(key, wr_store_namespace(store));
    wr_call_init(&c, store, NULL, wr_pair_registry);
    wr_call_key(&c, key);
    rc = wr_call_run(&c, err);
    for (size_t i = 1; rc == WEIR_OK && go_on && i < wr_reply_len(c.reply); i++) {
        if (read_name(wr_reply_at(c.reply, i), name))
            go_on = each(name, context);
    }
    wr_call_fini(&c);
    return rc;
}

/* Says the queue's name to a script about the registry. */
static enum weir_err
tell_registry(struct wr_store *store, const struct wr_script *const *pair,
              const struct wr_queue *queue, struct weir_error *err)
{
    char key[WR_KEY_MAX];
    struct wr_call c;
    enum weir_err rc;

    wr_key_queues(key, wr_store_namespace(store));
    wr_call_init(&c, store, NULL, pair);
    wr_call_key(&c, key);
    wr_call_str(&c, queue->name);
    rc = wr_call_run(&c, err);
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_enroll(struct wr_store *store, struct wr_queue *queue, struct weir_error *err)
{
    enum weir_err rc = tell_registry(store, wr_pair_enroll, queue, err);

    if (rc == WEIR_OK)
        queue->enrolled = true;
    return rc;
}

enum weir_err
wr_store_delist(struct wr_store *store, struct wr_queue *queue, struct weir_error *err)
{
    enum weir_err rc = tell_registry(store, wr_pair_delist, queue, err);

    if (rc == WEIR_OK)
        queue->enrolled = false;
    return rc;
}

enum weir_err
wr_store_roster(struct wr_store *store, size_t limit, struct wr_reply **out,
                struct weir_error *err)
{
    char key[WR_KEY_MAX];
    struct wr_call c;
    enum weir_err rc;

    *out = NULL;
    wr_key_workers(key, wr_store_namespace(store));
    wr_call_init(&c, store, NULL, wr_pair_roster);
    wr_call_key(&c, key);
    wr_call_now(&c);
    wr_call_int(&c, (int64_t)limit);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        *out = c.reply;
        c.reply = NULL;
    }
    wr_call_fini(&c);
    return rc;
}

/* Whoever wrote it: a time that makes sense, or none. */
static int64_t
grace_of(const struct wr_call *c)
{
    struct wr_span text = wr_reply_span(wr_reply_at(c->reply, 2));
    int64_t ms = text.len > 0 ? wr_reply_int(wr_reply_at(c->reply, 2)) : -1;

    return ms < 0 ? -1 : ms < GRACE_MAX_MS ? ms : GRACE_MAX_MS;
}

static const char *const order_words[] = {"", "run", "quiet", "stop", NULL};

static enum weir_err
describe(struct wr_store *store, const struct wr_beat *beat, struct wr_told *told,
         struct weir_error *err)
{
    char key[WR_KEY_MAX];
    struct wr_call c;
    enum weir_err rc;
    int word = 0;

    wr_key_worker(key, wr_store_namespace(store), beat->worker);
    wr_call_init(&c, store, NULL, wr_pair_describe);
    wr_call_key(&c, key);
    wr_call_int(&c, beat->leave ? 0 : WORKER_OLD_MS);
    wr_call_int(&c, WR_ORDER_KEEP_MS);
    wr_call_str(&c, beat->state ? beat->state : "running");
    for (size_t i = 0; beat->fields && beat->fields[i]; i++)
        wr_call_str(&c, beat->fields[i]);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK)
        word = wr_call_word(&c, 1, order_words);
    if (told) {
        told->order = word > 0 ? (enum wr_order)word : WR_ORDER_NONE;
        told->grace_ms = rc == WEIR_OK ? grace_of(&c) : -1;
    }
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_beat(struct wr_store *store, const struct wr_beat *beat, struct wr_told *told,
              struct weir_error *err)
{
    char key[WR_KEY_MAX];
    struct wr_call c;
    enum weir_err rc;

    wr_key_workers(key, wr_store_namespace(store));
    wr_call_init(&c, store, NULL, wr_pair_beat);
    wr_call_key(&c, key);
    wr_call_now(&c);
    wr_call_str(&c, beat->worker);
    wr_call_str(&c, beat->leave ? "1" : "0");
    wr_call_int(&c, WORKER_OLD_MS);
    rc = wr_call_run(&c, err);
    wr_call_fini(&c);
    if (rc == WEIR_OK)
        rc = describe(store, beat, told, err);
    return rc;
}

enum weir_err
wr_store_eviction(struct wr_store *store, char *policy, size_t cap,
                  struct weir_error *err)
{
    static const char label[] = "\nmaxmemory_policy:";
    int64_t deadline = wr_clock_ms() + INFO_TIMEOUT_MS;
    struct wr_server *server = wr_store_server(store);
    struct wr_reply *reply = NULL;
    struct wr_conn *conn;
    const char *at;
    struct wr_span info;
    enum weir_err rc = wr_server_take(server, deadline, &conn, err);

    *policy = '\0';
    if (rc != WEIR_OK)
        return rc;
    rc = wr_conn_do(conn, deadline, &reply, err, "INFO", "memory", NULL);
    wr_server_give(server, conn);
    if (rc != WEIR_OK)
        return rc == WEIR_E_DENIED ? WEIR_OK : rc;
    info = wr_reply_span(reply);
    at = memmem(info.ptr, info.len, label, strlen(label));
    if (at) {
        at += strlen(label);
        snprintf(policy, cap, "%.*s", (int)strcspn(at, "\r\n"), at);
    }
    if (strcmp(policy, "noeviction") == 0)
        *policy = '\0';
    wr_reply_free(reply);
    return WEIR_OK;
}
