/* The public face of the worker: options, handlers, what a handler may ask. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "command/command.h"
#include "model/progress.h"
#include "model/retry.h"
#include "worker/exec_config.h"
#include "worker/worker_internal.h"

#define LEASE_DEFAULT_MS 15000
#define LEASE_MIN_MS 1000
#define LEASE_MAX_MS 600000
#define GRACE_DEFAULT_MS 20000
#define STUCK_MS 20000 /* beyond the lease: then a child that stands still is killed */
#define PROCESSES_MAX 100
#define RESULT_MAX 65536

static struct weir_worker_options
known_options(const struct weir_worker_options *given)
{
    struct weir_worker_options o = {0};

    if (given)
        memcpy(&o, given,
               given->struct_size < sizeof(o) ? given->struct_size : sizeof(o));
    return o;
}

static enum weir_err
read_lease(int64_t given, int64_t *out, struct weir_error *err)
{
    static const char *const names[] = {"WEIR_LEASE", "VISIBILITY_TIMEOUT", NULL};
    const char *text = wr_env_first(names, NULL);

    *out = given > 0 ? given : LEASE_DEFAULT_MS;
    if (given <= 0 && text && !wr_text_duration(text, out))
        return wr_fail(err, WEIR_E_CONFIG, 0, "WEIR_LEASE=%.50s: not a duration like 15s",
                       text);
    if (*out < LEASE_MIN_MS || *out > LEASE_MAX_MS)
        return wr_fail(err, WEIR_E_CONFIG, 0, "lease: from 1s to 10m");
    return WEIR_OK;
}

static bool
copy_text(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

static enum weir_err
fill(struct weir_worker *w, const struct weir_worker_options *o, struct weir_error *err)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const char *engine;
    struct wr_url url;
    enum weir_err rc = read_lease(o->lease_ms, &w->lease_ms, err);

    if (rc != WEIR_OK)
        return rc;
    w->concurrency = o->concurrency ? o->concurrency : cpus > 0 ? (size_t)cpus : 1;
    w->processes = o->processes ? o->processes : 1;
    if (w->concurrency > WR_SLOTS_MAX || w->processes > PROCESSES_MAX)
        return wr_fail(err, WEIR_E_ARG, 0, "at most %d slots a child and %d children",
                       WR_SLOTS_MAX, PROCESSES_MAX);
    rc = wr_worker_copy_queues(w, o, err);
    if (rc != WEIR_OK)
        return rc;
    w->stuck_ms = STUCK_MS;
    w->grace_ms = o->grace_ms > 0 ? o->grace_ms : GRACE_DEFAULT_MS;
    w->max_jobs = o->once ? 1 : o->max_jobs;
    w->no_scheduler = o->no_scheduler;
    w->max_time_ms = o->max_time_ms > 0 ? o->max_time_ms : 0;
    w->notify = o->notify;
    w->drain = o->drain;
    if (o->job_timeout_ms < WEIR_NONE || o->job_timeout_ms > WR_TIME_MAX_MS ||
        o->keep_result_ms < 0 || o->keep_result_ms > WR_TIME_MAX_MS)
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "job_timeout and keep_result: not negative, at most till the year 9999");
    w->job_timeout_ms = o->job_timeout_ms;
    w->keep_result_ms = o->keep_result_ms;
    rc = wr_store_choose_engine(o->engine, &engine, err);
    if (rc != WEIR_OK)
        return rc;
    if (!copy_text(&w->url, o->url ? o->url : wr_env_url()) ||
        !copy_text(&w->ns, o->name_space ? o->name_space : wr_env_namespace()) ||
        !copy_text(&w->password, o->password) || !copy_text(&w->pidfile, o->pidfile) ||
        !copy_text(&w->engine, engine))
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "worker");
    rc = wr_url_parse(w->url, &url, err);
    wr_url_wipe(&url);
    return rc;
}

enum weir_err
weir_worker_new(const struct weir_worker_options *options, struct weir_worker **out,
                struct weir_error *err)
{
    struct weir_worker_options o = known_options(options);
    struct weir_worker *w = calloc(1, sizeof(*w));
    enum weir_err rc;

    *out = NULL;
    if (!w)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "worker");
    rc = fill(w, &o, err);
    if (rc != WEIR_OK) {
        weir_worker_free(w);
        return rc;
    }
    *out = w;
    return WEIR_OK;
}

void
weir_worker_free(struct weir_worker *w)
{
    if (!w)
        return;
    while (w->handlers) {
        struct wr_handler *h = w->handlers;

        w->handlers = h->next;
        h->ops->free(h);
    }
    while (w->plugins) {
        struct wr_plugin *p = w->plugins;

        w->plugins = p->next;
        wr_plugin_free(p);
    }
    wr_crons_free(w->crons);
    wr_worker_free_queues(w);
    if (w->password)
        explicit_bzero(w->password, strlen(w->password));
    if (w->url)
        explicit_bzero(w->url, strlen(w->url));
    free(w->url);
    free(w->ns);
    free(w->password);
    free(w->pidfile);
    free(w->engine);
    free(w);
}

static enum weir_err
check_type(const struct weir_worker *w, const char *type, struct weir_error *err)
{
    if (!wr_text_is_type(wr_span_str(type)))
        return wr_fail(err, WEIR_E_ARG, 0, "type: 1 to 128 bytes, no control characters");
    for (const struct wr_handler *h = w->handlers; h; h = h->next) {
        if (strcmp(h->type, type) == 0)
            return wr_fail(err, WEIR_E_ARG, 0, "type %.100s has a handler already", type);
    }
    return WEIR_OK;
}

static enum weir_err
add_handler(struct weir_worker *w, struct wr_handler *h, struct weir_error *err)
{
    if (!h)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "handler");
    h->next = w->handlers;
    w->handlers = h;
    w->has_in_process = w->has_in_process || h->ops->in_process;
    return WEIR_OK;
}

enum weir_err
weir_worker_handle(struct weir_worker *w, const char *type, weir_handler_fn fn,
                   void *context, struct weir_error *err)
{
    enum weir_err rc = check_type(w, type, err);

    if (rc == WEIR_OK && !fn)
        rc = wr_fail(err, WEIR_E_ARG, 0, "a handler that is NULL");
    if (rc != WEIR_OK)
        return rc;
    return add_handler(w, wr_handler_fn_new(type, fn, context), err);
}

enum weir_err
weir_worker_exec_with(struct weir_worker *w, const char *type,
                      const struct weir_exec_options *options, struct weir_error *err)
{
    struct wr_exec_config *config = NULL;
    enum weir_err rc = check_type(w, type, err);

    if (rc == WEIR_OK)
        rc = wr_exec_config_new(options, &config, err);
    if (rc != WEIR_OK)
        return rc;
    w->has_exec = true;
    if (!config->o.coproc)
        return add_handler(w, wr_handler_exec_new(type, config), err);
    w->coprocs_n++;
    return add_handler(w,
                       wr_handler_coproc_new(type, config, w->concurrency * w->coprocs_n,
                                             w->concurrency),
                       err);
}

enum weir_err
weir_worker_exec(struct weir_worker *w, const char *type, const char *const *argv,
                 struct weir_error *err)
{
    struct weir_exec_options o = {WEIR_EXEC_OPTIONS_INIT, .argv = argv};
    char here[PATH_MAX];

    o.cwd = getcwd(here, sizeof(here));
    return weir_worker_exec_with(w, type, &o, err);
}

enum weir_err
weir_worker_commands(struct weir_worker *w, const struct weir_command_options *options,
                     struct weir_error *err)
{
    struct weir_command_options o = {0};
    struct wr_handler *h = NULL;
    enum weir_err rc = check_type(w, WR_COMMAND_TYPE, err);

    if (options)
        memcpy(&o, options,
               options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    if (rc == WEIR_OK && !o.allow)
        rc = wr_fail(err, WEIR_E_ARG, 0, "commands of jobs: none are allowed");
    if (rc == WEIR_OK)
        rc = wr_handler_command_new(&o, &h, err);
    if (rc != WEIR_OK)
        return rc;
    w->has_exec = true;
    return add_handler(w, h, err);
}

/* All of its types or none. */
static enum weir_err
add_plugin_types(struct weir_worker *w, struct wr_plugin *p, struct weir_error *err)
{
    const char *end = p->types + p->types_len;
    enum weir_err rc = WEIR_OK;

    for (const char *at = p->types; at < end; at += strlen(at) + 1) {
        rc = check_type(w, at, err);
        if (rc != WEIR_OK)
            return rc;
    }
    for (const char *at = p->types; at < end && rc == WEIR_OK; at += strlen(at) + 1)
        rc = add_handler(w, wr_handler_plugin_new(at, p), err);
    return rc;
}

enum weir_err
weir_worker_plugin(struct weir_worker *w, const char *path, struct weir_error *err)
{
    struct wr_plugin *p, **last = &w->plugins;
    enum weir_err rc;

    if (!path || path[0] == '\0')
        return wr_fail(err, WEIR_E_ARG, 0, "a plugin without a path");
    rc = wr_plugin_new(path, &p, err);
    if (rc != WEIR_OK)
        return rc;
    while (*last)
        last = &(*last)->next;
    *last = p; /* from here on the worker frees it */
    return add_plugin_types(w, p, err);
}

void
weir_worker_on_startup(struct weir_worker *w, weir_startup_fn fn)
{
    w->startup = fn;
}

void
weir_worker_on_shutdown(struct weir_worker *w, weir_shutdown_fn fn)
{
    w->shutdown = fn;
}

void
weir_worker_on_job_start(struct weir_worker *w, weir_job_start_fn fn)
{
    w->hooks.start = fn;
    w->has_in_process = true;
}

void
weir_worker_on_job_end(struct weir_worker *w, weir_job_end_fn fn)
{
    w->hooks.end = fn;
    w->has_in_process = true;
}

enum weir_err
wr_worker_connect(const struct weir_worker *w, const char *name, size_t connections,
                  int64_t command_timeout_ms, struct wr_server **server,
                  struct wr_store **store, struct weir_error *err)
{
    struct wr_server_options so = {.max_connections = connections,
                                   .reconnect_ms = wr_lease_reconnect_ms(w->lease_ms),
                                   .connect_timeout_ms = command_timeout_ms};
    struct wr_store_options to = {
        .ns = w->ns, .command_timeout_ms = command_timeout_ms, .engine = w->engine};
    enum weir_err rc = wr_url_parse(w->url, &so.url, err);

    *server = NULL;
    *store = NULL;
    if (rc == WEIR_OK && w->password)
        snprintf(so.url.password, sizeof(so.url.password), "%s", w->password);
    snprintf(so.name, sizeof(so.name), "%s", name);
    if (rc == WEIR_OK)
        rc = wr_server_new(&so, server, err);
    wr_url_wipe(&so.url);
    to.server = *server;
    if (rc == WEIR_OK)
        rc = wr_store_new(&to, store, err);
    return rc;
}

static enum weir_err
write_pidfile(const struct weir_worker *w, struct weir_error *err)
{
    FILE *f = fopen(w->pidfile, "we");

    if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f) != 0)
        return wr_fail(err, WEIR_E_IO, errno, "pidfile %.150s", w->pidfile);
    return WEIR_OK;
}

enum weir_err
weir_worker_run(struct weir_worker *w, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    if (!w->handlers)
        return wr_fail(err, WEIR_E_ARG, 0, "a worker without handlers");
    if (w->pidfile)
        rc = write_pidfile(w, err);
    if (rc != WEIR_OK)
        return rc;
    rc = wr_supervise(w, err);
    if (w->pidfile)
        unlink(w->pidfile);
    return rc;
}

/* ---- inside a handler ---- */

const char *
weir_delivery_id(const struct weir_delivery *d)
{
    return d->id;
}

const char *
weir_delivery_queue(const struct weir_delivery *d)
{
    return d->queue;
}

const char *
weir_delivery_type(const struct weir_delivery *d)
{
    return d->type;
}

const void *
weir_delivery_payload(const struct weir_delivery *d, size_t *len)
{
    *len = d->record.payload.len;
    return d->record.payload.ptr;
}

int64_t
weir_delivery_number(const struct weir_delivery *d)
{
    return d->state.deliveries;
}

int64_t
weir_delivery_attempt(const struct weir_delivery *d)
{
    return d->state.attempts + 1;
}

int64_t
weir_delivery_enqueued_at(const struct weir_delivery *d)
{
    return d->record.enqueued_at_ms;
}

void *
weir_delivery_context(const struct weir_delivery *d)
{
    return d->context;
}

const char *
weir_delivery_error(const struct weir_delivery *d)
{
    return d->error;
}

bool
weir_delivery_should_stop(const struct weir_delivery *d)
{
    return atomic_load(&d->stop) != WR_STOP_NONE;
}

enum weir_err
weir_delivery_set_result(struct weir_delivery *d, const void *ptr, size_t len)
{
    if (len > RESULT_MAX)
        return WEIR_E_TOO_BIG;
    wr_buf_clear(&d->result);
    wr_buf_add(&d->result, ptr, len);
    return d->result.failed ? WEIR_E_NO_MEMORY : WEIR_OK;
}

void
weir_delivery_set_error(struct weir_delivery *d, const char *fmt, ...)
{
    struct wr_buf shown = {0};
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    wr_text_escape(&shown, wr_span_str(text));
    snprintf(d->error, sizeof(d->error), "%s", (const char *)wr_buf_span(&shown).ptr);
    wr_buf_fini(&shown);
}

void
weir_delivery_set_delay(struct weir_delivery *d, int64_t ms)
{
    d->delay_ms = ms < 0 ? 0 : ms;
}

const char *
weir_delivery_meta(const struct weir_delivery *d, const char *name)
{
    struct weir_delivery *changeable = (struct weir_delivery *)(uintptr_t)d;
    struct wr_buf *value = &changeable->meta_value;

    wr_buf_clear(value);
    return wr_record_meta(&d->record, name, value) ? wr_buf_span(value).ptr : NULL;
}

static void
set_progress(struct weir_delivery *d, const char *stage, int percent, const char *text)
{
    struct wr_buf line = {0};

    wr_progress_write(percent, wr_span_str(stage ? stage : ""),
                      wr_span_str(text ? text : ""), &line);
    pthread_mutex_lock(d->mu);
    snprintf(d->progress, sizeof(d->progress), "%s",
             (const char *)wr_buf_span(&line).ptr);
    d->progress_new = true;
    pthread_mutex_unlock(d->mu);
    wr_buf_fini(&line);
}

void
weir_delivery_progress(struct weir_delivery *d, int percent, const char *text)
{
    set_progress(d, NULL, percent, text);
}

void
weir_delivery_progress_stage(struct weir_delivery *d, const char *stage, int percent,
                             const char *text)
{
    set_progress(d, stage, percent, text);
}

void
weir_delivery_log(struct weir_delivery *d, const char *fmt, ...)
{
    char small[512];
    char *line = small;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof(small)) {
        line = malloc((size_t)n + 1);
        if (!line)
            return;
        va_start(ap, fmt);
        n = vsnprintf(line, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    if (n >= 0) {
        line[n] = '\n'; /* in the place of the NUL */
        wr_output_add(d, line, (size_t)n + 1, 0);
    }
    if (line != small)
        free(line);
}
