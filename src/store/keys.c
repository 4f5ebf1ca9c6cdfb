#include "store/keys.h"

#include <stdio.h>

static const char *const suffixes[] = {
#define X(member, suffix) [WR_QUEUE_KEY_##member] = suffix,
    WR_QUEUE_KEYS(X)
#undef X
};

void
wr_keys_make(struct wr_keys *keys, const char *ns, const char *queue)
{
    char *text = keys->text;

    for (size_t i = 0; i < WR_QUEUE_KEY_COUNT; i++) {
        snprintf(text, WR_KEY_MAX, "%s:{%s}:%s", ns, queue, suffixes[i]);
        keys->key[i] = wr_span_str(text);
        text += keys->key[i].len + 1;
    }
}

void
wr_key_queues(char out[WR_KEY_MAX], const char *ns)
{
    snprintf(out, WR_KEY_MAX, "%s:queues", ns);
}

void
wr_key_workers(char out[WR_KEY_MAX], const char *ns)
{
    snprintf(out, WR_KEY_MAX, "%s:workers", ns);
}

void
wr_key_worker(char out[WR_KEY_MAX], const char *ns, const char *worker)
{
    snprintf(out, WR_KEY_MAX, "%s:worker:%s", ns, worker);
}

void
wr_key_hint(char out[WR_KEY_MAX], const char *ns, const char *worker)
{
    snprintf(out, WR_KEY_MAX, "%s:worker:%s:hint", ns, worker);
}
