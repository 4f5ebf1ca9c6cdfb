/*
 * Command jobs: the job brings the command, the worker says which it runs. What is
 * against its rules is dead at once; what is not there may come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "command/allow.h"
#include "command/sign.h"
#include "worker/exec_config.h"
#include "worker/worker_internal.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

struct handler_command {
    struct wr_handler base;
    struct wr_exec_config *config; /* bounds of all; argv, file, cwd, env are the job's */
    struct wr_allow *allow;
    struct wr_keys *keys; /* NULL: signatures are not looked at */
};

/* The job's variables, then those of the handler: the first of a name counts. */
static char **
join_env(const struct wr_command *c, char **more)
{
    size_t n = 0;
    char **list;

    while (more && more[n])
        n++;
    list = calloc(c->envc + n + 1, sizeof(*list));
    for (size_t i = 0; list && i < c->envc; i++)
        list[i] = (char *)(uintptr_t)c->env[i];
    if (list && n > 0)
        memcpy(list + c->envc, more, n * sizeof(*list));
    return list;
}

static enum weir_outcome
run_it(const struct handler_command *h, struct weir_delivery *d,
       const struct wr_command *c, struct wr_allow_answer *answer)
{
    /* A handler of this job alone: that its command cannot be started says nothing of
     * others. */
    struct wr_handler own = {.ops = h->base.ops};
    struct wr_exec_config config = *h->config;
    struct wr_span payload = d->record.payload;
    char **env = join_env(c, h->config->env);
    enum weir_outcome outcome;

    if (!env) {
        weir_delivery_set_error(d, "cannot start a command: out of memory");
        d->delay_ms = 5000;
        return WEIR_SNOOZE;
    }
    memcpy(own.type, h->base.type, sizeof(own.type));
    config.argv = (char **)(uintptr_t)c->argv;
    config.file = answer->file;
    config.env = env;
    if (answer->cwd[0] != '\0')
        config.cwd = answer->cwd;
    d->record.payload = c->input;
    outcome = wr_exec_attempt(&own, &config, d);
    d->record.payload = payload;
    free(env);
    return outcome;
}

static enum weir_outcome
run_command(const struct handler_command *h, struct weir_delivery *d,
            const struct wr_command *c)
{
    struct wr_allow_answer answer;
    const char *why = NULL;

    if (h->keys)
        why = wr_command_verify(h->keys, d->queue, d->id, c, wr_clock_wall_ms());
    if (why) {
        weir_delivery_set_error(d, "not allowed: %s (require_signature)", why);
        return WEIR_PERMANENT;
    }
    switch (wr_allow_check(h->allow, c, &answer)) {
    case WR_ALLOW_NO:
        weir_delivery_set_error(d, "%s", answer.why);
        return WEIR_PERMANENT;
    case WR_ALLOW_MISSING:
        weir_delivery_set_error(d, "%s", answer.why);
        return WEIR_RETRY;
    case WR_ALLOW_YES:
        break;
    }
    return run_it(h, d, c, &answer);
}

static enum weir_outcome
command_run(struct wr_handler *handler, struct weir_delivery *d)
{
    struct wr_command c;
    const char *why = wr_command_read(d->record.payload, &c);
    enum weir_outcome outcome = WEIR_PERMANENT;

    if (why)
        weir_delivery_set_error(d, "not a command job: %s", why);
    else
        outcome = run_command((const struct handler_command *)handler, d, &c);
    wr_command_fini(&c);
    return outcome;
}

static void
command_stop(struct wr_handler *handler, struct weir_delivery *d, enum wr_stop why)
{
    (void)handler;
    wr_exec_attempt_stop(d, why);
}

static void
command_free(struct wr_handler *handler)
{
    struct handler_command *h = (struct handler_command *)handler;

    wr_exec_config_free(h->config);
    wr_allow_free(h->allow);
    wr_keys_free(h->keys);
    free(h);
}

static const struct wr_handler_ops command_ops = {
    .kind = "command",
    .in_process = false,
    .run = command_run,
    .stop = command_stop,
    .free = command_free,
};

/* The bounds; what is run comes with each job. */
static enum weir_err
make_config(const struct weir_command_options *o, struct wr_exec_config **out,
            struct weir_error *err)
{
    static const char *const later[] = {WR_COMMAND_TYPE, NULL};
    struct weir_exec_options exec = {WEIR_EXEC_OPTIONS_INIT, .clean_env = true};

    if (o->exec)
        memcpy(&exec, o->exec,
               o->exec->struct_size < sizeof(exec) ? o->exec->struct_size : sizeof(exec));
    exec.struct_size = sizeof(exec);
    exec.argv = later;
    exec.shell = false;
    return wr_exec_config_new(&exec, out, err);
}

enum weir_err
wr_handler_command_new(const struct weir_command_options *o, struct wr_handler **out,
                       struct weir_error *err)
{
    struct handler_command *h = calloc(1, sizeof(*h));
    const char *path = getenv("PATH");
    enum weir_err rc;

    *out = NULL;
    if (!h)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "handler");
    h->base.ops = &command_ops;
    snprintf(h->base.type, sizeof(h->base.type), "%s", WR_COMMAND_TYPE);
    rc = wr_allow_new(o->allow, o->allow_env, o->allow_cwd, path ? path : PATH_DEFAULT,
                      &h->allow, err);
    if (rc == WEIR_OK && o->signature_file)
        rc = wr_keys_read(o->signature_file, &h->keys, err);
    if (rc == WEIR_OK)
        rc = make_config(o, &h->config, err);
    if (rc != WEIR_OK) {
        command_free(&h->base);
        return rc;
    }
    *out = &h->base;
    return WEIR_OK;
}
