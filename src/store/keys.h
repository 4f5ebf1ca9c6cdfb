/*
 * store/keys.h - every Redis key that weir uses; docs/keys.md says what each holds.
 *
 * The queue's name is in braces, so that in a cluster all keys of a queue live on
 * one node and a script may use them together.
 */
#ifndef WR_STORE_KEYS_H
#define WR_STORE_KEYS_H

#include "base/span.h"

/* X(member, suffix after "NS:{QUEUE}:") */
/* clang-format off */
#define WR_QUEUE_KEYS(X) \
    X(ready, "ready") X(tombs, "tombs") X(processing, "processing") \
    X(delayed, "delayed") X(dead, "dead") X(kept, "kept") X(jobs, "jobs") \
    X(state, "state") X(results, "results") X(errors, "errors") X(log, "log") \
    X(stats, "stats") X(claims, "claims") X(offers, "offers") X(producers, "producers") \
    X(unique, "unique") X(windows, "windows") X(wake, "wake") X(due, "due") \
    X(progress, "progress") X(waiters, "waiters") X(outbox, "outbox") \
    X(order, "order") X(lock, "lock") \
    X(stream, "stream") X(ids, "ids") \
    X(next_ready, "next:ready") X(next_stream, "next:stream") X(next_ids, "next:ids") \
    X(heartbeat_promote, "heartbeat:promote") \
    X(heartbeat_reclaim, "heartbeat:reclaim") X(config, "config") X(cron, "cron")
/* clang-format on */

enum wr_queue_key {
#define X(member, suffix) WR_QUEUE_KEY_##member,
    WR_QUEUE_KEYS(X)
#undef X
    WR_QUEUE_KEY_COUNT,
};

#define WR_NAMESPACE_MAX 64
#define WR_KEY_MAX 256

/* The keys of one queue; made once, then read by any thread. */
struct wr_keys {
    struct wr_span key[WR_QUEUE_KEY_COUNT];
    /* What key[] points to, each ended by a NUL, close together since a call sends most
     * of them: do not copy. */
    char text[WR_QUEUE_KEY_COUNT * WR_KEY_MAX];
};

/* As a text, which lives as long as the keys. */
static inline const char *
wr_key_text(const struct wr_keys *keys, enum wr_queue_key key)
{
    return keys->key[key].ptr;
}

/* ns and queue must be valid names (wr_text_is_queue). */
void wr_keys_make(struct wr_keys *keys, const char *ns, const char *queue);

/* The keys that belong to no queue: "NS:queues", "NS:workers", "NS:worker:ID", and
 * "NS:worker:ID:hint". */
void wr_key_queues(char out[WR_KEY_MAX], const char *ns);
void wr_key_workers(char out[WR_KEY_MAX], const char *ns);
void wr_key_worker(char out[WR_KEY_MAX], const char *ns, const char *worker);
void wr_key_hint(char out[WR_KEY_MAX], const char *ns, const char *worker);

#endif
