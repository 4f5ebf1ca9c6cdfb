#include "worker/exec_env.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define TRACEPARENT_LEN 55

static void env_add(struct wr_exec_env *e, const char *fmt, ...) WEIR_PRINTF(2, 3);

static void
env_add(struct wr_exec_env *e, const char *fmt, ...)
{
    char *copy = NULL;
    va_list ap;
    int n;

    if (e->n + 1 >= e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 32;
        char **list = realloc(e->list, cap * sizeof(*list));

        if (!list) {
            e->failed = true;
            return;
        }
        e->list = list;
        e->cap = cap;
    }
    va_start(ap, fmt);
    n = vasprintf(&copy, fmt, ap);
    va_end(ap);
    if (n < 0) {
        e->failed = true;
        return;
    }
    e->list[e->n++] = copy;
    e->list[e->n] = NULL;
}

/* meta.NAME=VALUE words become WEIR_META_NAME=value. */
static void
env_add_meta(struct wr_exec_env *e, struct wr_span meta)
{
    const char *at = meta.ptr, *end = at + meta.len;

    while (meta.len > 0 && at < end) {
        const char *blank = memchr(at, ' ', (size_t)(end - at)),
                   *stop = blank ? blank : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        struct wr_buf name = {0}, value = {0};

        if (equals && equals - at > 5 &&
            wr_text_word_decode(&name,
                                (struct wr_span){at + 5, (size_t)(equals - at - 5)}) &&
            wr_text_word_decode(
                &value, (struct wr_span){equals + 1, (size_t)(stop - equals - 1)})) {
            for (size_t i = 0; i < name.len; i++) {
                char c = name.ptr[i];

                name.ptr[i] = (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9')))
                    name.ptr[i] = '_';
            }
            env_add(e, "WEIR_META_%.*s=%.*s", (int)name.len, name.ptr, (int)value.len,
                    (const char *)wr_buf_span(&value).ptr);
        }
        wr_buf_fini(&name);
        wr_buf_fini(&value);
        at = stop + 1;
    }
}

/* The W3C's form, else it is not passed on. */
static bool
is_traceparent(struct wr_span text)
{
    const char *at = text.ptr;

    for (size_t i = 0; i < text.len; i++) {
        if (!((at[i] >= '0' && at[i] <= '9') || (at[i] >= 'a' && at[i] <= 'f') ||
              at[i] == '-'))
            return false;
    }
    return text.len == TRACEPARENT_LEN;
}

static void
env_add_known_meta(struct wr_exec_env *e, const struct wr_record *r)
{
    struct wr_buf value = {0};

    if (wr_record_meta(r, "traceparent", &value) && is_traceparent(wr_buf_span(&value)))
        env_add(e, "TRACEPARENT=%s", value.ptr);
    wr_buf_clear(&value);
    if (wr_record_meta(r, "tags", &value))
        env_add(e, "WEIR_TAGS=%s", (const char *)wr_buf_span(&value).ptr);
    else
        env_add(e, "WEIR_TAGS=");
    wr_buf_fini(&value);
}

static void
env_add_times(struct wr_exec_env *e, const struct weir_delivery *d, int64_t timeout_ms)
{
    int64_t now = wr_clock_wall_ms();

    env_add(e, "WEIR_ENQUEUED_AT=%lld", (long long)d->record.enqueued_at_ms / 1000);
    env_add(e, "WEIR_STARTED_AT=%lld", (long long)now / 1000);
    env_add(e, "WEIR_TIMEOUT_S=%lld", (long long)(timeout_ms + 999) / 1000);
    if (timeout_ms > 0)
        env_add(e, "WEIR_DEADLINE=%lld", (long long)(now + timeout_ms) / 1000);
}

void
wr_exec_env_fill(struct wr_exec_env *e, const struct weir_delivery *d,
                 const struct wr_exec_config *c, const char *tmpdir, int64_t timeout_ms)
{
    const struct wr_record *r = &d->record;

    env_add(e, "WEIR_JOB_ID=%s", d->id);
    env_add(e, "WEIR_JOB_TYPE=%s", d->type);
    env_add(e, "WEIR_QUEUE=%s", d->queue);
    env_add(e, "WEIR_NAMESPACE=%s", d->name_space ? d->name_space : "");
    env_add(e, "WEIR_ATTEMPT=%lld", (long long)d->state.attempts + 1);
    env_add(e, "WEIR_DELIVERY=%lld", (long long)d->state.deliveries);
    env_add(e, "WEIR_MAX_ATTEMPTS=%lld", (long long)r->max_retry + 1);
    env_add_times(e, d, timeout_ms);
    env_add(e, "WEIR_LAST_ERROR=%s", d->last_error);
    env_add(e, "WEIR_WORKER=%s", d->worker);
    env_add(e, "WEIR_TMPDIR=%s", tmpdir);
    env_add(e, "WEIR_CONTROL_FD=3");
    env_add(e, "WEIR_IDEMPOTENCY_KEY=%s:%lld", d->id, (long long)r->enqueued_at_ms);
    env_add(e, "WEIR_EXEC_PROTOCOL=1");
    env_add_known_meta(e, r);
    env_add_meta(e, r->meta);
    for (char **own = c->env; own && *own; own++)
        env_add(e, "%s", *own);
}

void
wr_exec_env_fini(struct wr_exec_env *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->list[i]);
    free(e->list);
}
