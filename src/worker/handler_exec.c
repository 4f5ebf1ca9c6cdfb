/*
 * Commands as handlers: payload on stdin, stdout is the result, the exit status the
 * outcome. What a command sees is in weir-exec(7).
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "worker/exec_config.h"
#include "worker/worker_internal.h"

#define SHUTDOWN_KILL_MS 5000

struct handler_exec {
    struct wr_handler base;
    struct wr_exec_config *config;
};

/* ---- environment ---- */

struct env {
    char **list; /* NULL at the end */
    size_t n, cap;
    bool failed;
};

static void env_add(struct env *e, const char *fmt, ...) WEIR_PRINTF(2, 3);

static void
env_add(struct env *e, const char *fmt, ...)
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
env_add_meta(struct env *e, struct wr_span meta)
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

static void
env_fill(struct env *e, const struct weir_delivery *d)
{
    const struct wr_record *r = &d->record;

    env_add(e, "WEIR_JOB_ID=%s", d->id);
    env_add(e, "WEIR_JOB_TYPE=%s", d->type);
    env_add(e, "WEIR_QUEUE=%s", d->queue);
    env_add(e, "WEIR_ATTEMPT=%lld", (long long)d->state.attempts + 1);
    env_add(e, "WEIR_DELIVERY=%lld", (long long)d->state.deliveries);
    env_add(e, "WEIR_MAX_ATTEMPTS=%lld", (long long)r->max_retry + 1);
    env_add(e, "WEIR_ENQUEUED_AT=%lld", (long long)r->enqueued_at_ms / 1000);
    env_add(e, "WEIR_STARTED_AT=%lld", (long long)d->state.started_at_ms / 1000);
    env_add(e, "WEIR_TIMEOUT_S=%lld", (long long)r->timeout_ms / 1000);
    env_add(e, "WEIR_WORKER=%s", d->worker);
    env_add(e, "WEIR_IDEMPOTENCY_KEY=%s:%lld", d->id, (long long)r->enqueued_at_ms);
    env_add(e, "WEIR_EXEC_PROTOCOL=1");
    env_add_meta(e, r->meta);
}

static void
env_fini(struct env *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->list[i]);
    free(e->list);
}

/* ---- outcome ---- */

/* The last line of stderr that is not empty: what a person would look at first. */
static struct wr_span
last_line(const struct wr_buf *text)
{
    size_t end = text->len, start;

    while (end > 0 && (text->ptr[end - 1] == '\n' || text->ptr[end - 1] == '\r'))
        end--;
    for (start = end; start > 0 && text->ptr[start - 1] != '\n'; start--)
        continue;
    if (end - start > 500)
        start = end - 500;
    return (struct wr_span){text->ptr ? text->ptr + start : "", end - start};
}

static void
say(struct weir_delivery *d, const char *what, const struct wr_buf *err)
{
    struct wr_span line = last_line(err);

    if (line.len > 0)
        weir_delivery_set_error(d, "%s: %.*s", what, (int)line.len,
                                (const char *)line.ptr);
    else
        weir_delivery_set_error(d, "%s", what);
}

static enum weir_outcome
not_started(const struct handler_exec *h, struct weir_delivery *d, int why)
{
    switch (why) {
    case E2BIG:
        weir_delivery_set_error(d,
                                "cannot run %.300s: its arguments, environment and "
                                "metadata are too long for this system",
                                h->config->argv[0]);
        return WEIR_PERMANENT;
    case ENOEXEC:
        weir_delivery_set_error(d, "cannot run %.300s: %s (a script needs a #! line)",
                                h->config->argv[0], strerror(why));
        return WEIR_RETRY;
    default:
        weir_delivery_set_error(d, "cannot run %.300s: %s", h->config->argv[0],
                                strerror(why));
        return WEIR_RETRY;
    }
}

static enum weir_outcome
judge(const struct handler_exec *h, struct weir_delivery *d,
      const struct wr_exec_end *end, const struct wr_buf *err)
{
    enum weir_outcome outcome;
    char what[80];

    if (end->timed_out) {
        wr_text_show_duration(d->record.timeout_ms, what, sizeof(what));
        weir_delivery_set_error(d, "timeout after %s", what);
        return WEIR_RETRY;
    }
    if (end->signal != 0) {
        snprintf(what, sizeof(what), "killed by SIG%s",
                 sigabbrev_np(end->signal) ? sigabbrev_np(end->signal) : "?");
        say(d, what, err);
        return WEIR_RETRY;
    }
    snprintf(what, sizeof(what), "exit %d", end->exit_code);
    outcome = wr_exec_config_outcome(h->config, end->exit_code);
    if (outcome != WEIR_DONE)
        say(d, what, err);
    if (outcome == WEIR_SNOOZE)
        d->delay_ms = h->config->o.snooze_ms;
    return outcome;
}

static enum weir_outcome
run_command(const struct handler_exec *h, struct wr_spawner *spawner,
            struct weir_delivery *d, const struct env *env)
{
    const struct wr_record *r = &d->record;
    struct wr_buf err = {0};
    struct wr_exec_end end;
    struct weir_error why = {0};
    enum weir_outcome outcome;
    enum weir_err rc = wr_spawner_run(
        spawner, d->slot, (const char *const *)h->config->argv,
        (const char *const *)env->list, r->payload, r->timeout_ms, r->kill_after_ms,
        h->config->o.result_max, &d->result, &err, &end, &why);

    if (rc == WEIR_E_BUG && wr_spawner_current()) {
        /* Nothing can be started any more, and what ran may still run. The supervisor
         * kills it, waits, and puts another child in this place. */
        wr_log_error("%s: this child ends, its jobs go to others", why.text);
        _exit(WR_CHILD_REPLACE);
    }
    if (rc != WEIR_OK) {
        weir_delivery_set_error(d, "%s", why.text);
        outcome = WEIR_RETRY;
    } else if (end.start_errno != 0) {
        outcome = not_started(h, d, end.start_errno);
    } else {
        outcome = judge(h, d, &end, &err);
    }
    wr_buf_fini(&err);
    return outcome;
}

static enum weir_outcome
exec_run(struct wr_handler *handler, struct weir_delivery *d)
{
    struct wr_spawner *spawner = wr_spawner_current();
    enum weir_outcome outcome = WEIR_RETRY;
    struct env env = {0};

    if (!spawner)
        return WEIR_RETRY; /* the child is about to end */
    wr_spawner_arm(spawner, d->slot);
    if (atomic_load(&d->stop) != WR_STOP_NONE)
        return WEIR_RETRY; /* it was told so before a kill could have reached it */
    env_fill(&env, d);
    for (char **e = ((const struct handler_exec *)handler)->config->env; e && *e; e++)
        env_add(&env, "%s", *e);
    if (env.failed)
        weir_delivery_set_error(d, "out of memory");
    else
        outcome = run_command((const struct handler_exec *)handler, spawner, d, &env);
    env_fini(&env);
    return outcome;
}

static void
exec_stop(struct wr_handler *handler, struct weir_delivery *d, enum wr_stop why)
{
    struct wr_spawner *spawner = wr_spawner_current();
    int64_t kill_after = d->record.kill_after_ms;

    (void)handler;
    switch (why) {
    case WR_STOP_NONE:
        return;
    case WR_STOP_SHUTDOWN:
        kill_after = SHUTDOWN_KILL_MS;
        break;
    case WR_STOP_TIMEOUT:
    case WR_STOP_CANCELLED:
        break;
    case WR_STOP_LOST:
        kill_after = 0;
        break;
    }
    if (spawner)
        wr_spawner_kill(spawner, d->slot, kill_after);
}

static void
exec_free(struct wr_handler *handler)
{
    struct handler_exec *h = (struct handler_exec *)handler;

    wr_exec_config_free(h->config);
    free(h);
}

static const struct wr_handler_ops exec_ops = {
    .kind = "exec",
    .in_process = false,
    .run = exec_run,
    .stop = exec_stop,
    .free = exec_free,
};

struct wr_handler *
wr_handler_exec_new(const char *type, struct wr_exec_config *config)
{
    struct handler_exec *h = calloc(1, sizeof(*h));

    if (!h) {
        wr_exec_config_free(config);
        return NULL;
    }
    h->base.ops = &exec_ops;
    snprintf(h->base.type, sizeof(h->base.type), "%s", type);
    h->config = config;
    return &h->base;
}
