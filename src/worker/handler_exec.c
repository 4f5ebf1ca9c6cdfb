/*
 * Commands as handlers: payload on stdin, stdout is the result, the exit status the
 * outcome. What a command sees is in weir-exec(7).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "model/progress.h"
#include "worker/exec_args.h"
#include "worker/exec_config.h"
#include "worker/exec_env.h"
#include "worker/exec_result.h"
#include "worker/folder_pool.h"
#include "worker/push.h"
#include "worker/worker_internal.h"

#define SHUTDOWN_KILL_MS 5000
#define SHORT_OF_MS 5000 /* before another try, when the worker lacks something */
#define BROKEN_AFTER 3   /* failures to start in a row */
#define BROKEN_MS 60000  /* until one more try */

struct handler_exec {
    struct wr_handler base;
    struct wr_exec_config *config;
};

/* One attempt, on the stack of its slot's thread. */
struct attempt {
    struct wr_handler *handler;
    const struct wr_exec_config *config;
    struct weir_delivery *d;
    int64_t timeout_ms;
    struct wr_folder folder;
    struct wr_buf pushes; /* follow-up jobs it asked for, as lines of JSON */
};

/* ---- why it failed ---- */

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

/* Its own words, else its last line. */
static void
say(struct weir_delivery *d, const char *what)
{
    struct wr_span line = last_line(&d->log);

    if (d->exec.why[0] != '\0')
        weir_delivery_set_error(d, "%s: %s", what, d->exec.why);
    else if (line.len > 0)
        weir_delivery_set_error(d, "%s: %.*s", what, (int)line.len,
                                (const char *)line.ptr);
    else
        weir_delivery_set_error(d, "%s", what);
}

static void
note_start_failure(struct attempt *a)
{
    struct wr_handler *h = a->handler;

    if (atomic_fetch_add(&h->start_failures, 1) + 1 < BROKEN_AFTER)
        return;
    if (!wr_handler_is_broken(h))
        wr_log_error("handler %s is broken (%s): its jobs are left to other workers "
                     "for %d s",
                     h->type, a->d->error, BROKEN_MS / 1000);
    atomic_store(&h->broken_until_ms, wr_clock_ms() + BROKEN_MS);
}

static void
note_start(struct attempt *a)
{
    atomic_store(&a->handler->start_failures, 0);
    atomic_store(&a->handler->broken_until_ms, 0);
}

/* The worker has too little of something just now: that is not the job's fault. */
static bool
is_short_of(int why)
{
    return why == EAGAIN || why == ENOMEM || why == EMFILE || why == ENFILE ||
           why == ENOSPC || why == EDQUOT;
}

static enum weir_outcome
short_of(struct attempt *a, const char *what, int why)
{
    weir_delivery_set_error(a->d, "%s: %s", what, strerror(why));
    a->d->delay_ms = SHORT_OF_MS;
    return WEIR_SNOOZE;
}

static enum weir_outcome
not_started(struct attempt *a)
{
    static const char *const steps[] = {
        [WR_STEP_FORK] = "starting it",
        [WR_STEP_LIMITS] = "setting its limits",
        [WR_STEP_USER] = "changing its user or group",
        [WR_STEP_FOLDER] = "entering its working folder",
        [WR_STEP_EXEC] = NULL,
    };
    const struct wr_exec_end *end = &a->d->exec;
    const char *name = a->config->argv[0], *step = steps[end->start_step],
               *why = strerror(end->start_errno), *hint = "";

    if (is_short_of(end->start_errno))
        return short_of(a, "out of resources to start a command", end->start_errno);
    if (end->start_errno == E2BIG) {
        weir_delivery_set_error(a->d,
                                "cannot run %.300s: its arguments, environment and "
                                "metadata are too long for this system",
                                name);
        return WEIR_PERMANENT;
    }
    if (end->start_step == WR_STEP_EXEC && end->start_errno == ENOEXEC)
        hint = " (a script needs a #! line)";
    if (end->start_step == WR_STEP_EXEC && end->start_errno == ENOENT &&
        access(name, F_OK) == 0)
        hint = " (the program that its #! line names)";
    weir_delivery_set_error(a->d, "cannot run %.300s: %s%s%s%s", name, step ? step : "",
                            step ? ": " : "", why, hint);
    if (end->start_errno != ETXTBSY) /* it is just being written */
        note_start_failure(a);
    return WEIR_RETRY;
}

/* ---- outcome ---- */

static enum weir_outcome
stopped(struct attempt *a)
{
    int64_t limit = atomic_load(&a->d->limit_ms);
    char what[64];

    if (a->d->exec.stop == WR_EXEC_IDLE) {
        wr_text_show_duration(a->config->o.idle_timeout_ms, what, sizeof(what));
        weir_delivery_set_error(a->d, "timeout: silent for %s", what);
    } else {
        wr_text_show_duration(limit > 0 ? limit : a->timeout_ms, what, sizeof(what));
        weir_delivery_set_error(a->d, "timeout after %s", what);
    }
    return WEIR_RETRY;
}

/* What it said on the control pipe wins over its exit status. */
static enum weir_outcome
as_it_said(struct attempt *a)
{
    struct weir_delivery *d = a->d;
    const struct wr_exec_end *end = &d->exec;
    const char *why = end->why[0] != '\0' ? end->why : "its command said so";

    weir_delivery_set_error(d, "%s", why);
    switch (end->said) {
    case WR_SAID_SNOOZE:
        d->delay_ms = end->delay_ms >= 0 ? end->delay_ms : a->config->o.snooze_ms;
        return WEIR_SNOOZE;
    case WR_SAID_PERMANENT:
        return WEIR_PERMANENT;
    case WR_SAID_RETRY:
    case WR_SAID_NOTHING:
        break;
    }
    d->delay_ms = end->delay_ms;
    return WEIR_RETRY;
}

static enum weir_outcome
killed(struct attempt *a)
{
    const struct wr_exec_end *end = &a->d->exec;
    const char *name = sigabbrev_np(end->signal);
    char what[80];

    snprintf(what, sizeof(what), "killed by SIG%s%s%s", name ? name : "?",
             end->core ? " (core dumped)" : "",
             end->out_of_memory ? " (out of memory?)" : "");
    say(a->d, what);
    return WEIR_RETRY;
}

static enum weir_outcome
exited(struct attempt *a)
{
    struct weir_delivery *d = a->d;
    int status = d->exec.exit_code;
    enum weir_outcome outcome = wr_exec_config_outcome(a->config, status);
    char what[32];

    if (outcome == WEIR_DONE) {
        if (d->exec.push_lost || a->pushes.failed) {
            weir_delivery_set_error(d, "push: more than %d bytes of follow-up jobs",
                                    WR_PUSH_BYTES_MAX);
            return WEIR_RETRY;
        }
        if (!wr_push_take(d, wr_buf_span(&a->pushes)))
            return WEIR_RETRY;
        return wr_exec_result_take(d, a->config, &d->exec,
                                   a->config->cwd ? a->config->cwd : a->folder.path)
                   ? WEIR_DONE
                   : WEIR_RETRY;
    }
    snprintf(what, sizeof(what), "exit %d", status);
    say(d, what);
    if (outcome == WEIR_SNOOZE)
        d->delay_ms = a->config->o.snooze_ms;
    return outcome;
}

static enum weir_outcome
judge(struct attempt *a)
{
    const struct wr_exec_end *end = &a->d->exec;
    enum weir_outcome outcome;

    if (end->start_errno != 0)
        return not_started(a);
    if (end->signal == 0 && wr_exec_config_is_broken(a->config, end->exit_code)) {
        outcome = exited(a);
        note_start_failure(a);
        return outcome;
    }
    note_start(a);
    if (end->stop == WR_EXEC_TIMEOUT || end->stop == WR_EXEC_IDLE)
        return stopped(a);
    if (end->said != WR_SAID_NOTHING)
        return as_it_said(a);
    return end->signal != 0 ? killed(a) : exited(a);
}

/* ---- while it runs ---- */

static void
on_progress(void *context, const char *text)
{
    const struct attempt *a = context;
    struct wr_progress p = {0};

    wr_progress_read(wr_span_str(text), &p);
    weir_delivery_progress_stage(a->d, wr_buf_span(&p.stage).ptr, p.percent,
                                 wr_buf_span(&p.message).ptr);
    wr_progress_fini(&p);
}

static void
on_extend(void *context, int64_t total_ms)
{
    const struct attempt *a = context;

    atomic_store(&a->d->limit_ms, total_ms);
}

static void
on_push(void *context, const char *lines, size_t len)
{
    struct attempt *a = context;

    wr_buf_add(&a->pushes, lines, len);
}

static void
on_output(void *context, const char *bytes, size_t len, int64_t left_out)
{
    const struct attempt *a = context;

    wr_output_add(a->d, bytes, len, left_out);
}

/* ---- one attempt ---- */

static int64_t
shorter(int64_t a, int64_t b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

static enum wr_exec_out
where_to(enum weir_exec_result result)
{
    switch (result) {
    case WEIR_EXEC_NONE:
        return WR_OUT_LOG;
    case WEIR_EXEC_LAST_LINE:
        return WR_OUT_TAIL;
    case WEIR_EXEC_STDOUT:
    case WEIR_EXEC_JSON:
        break;
    }
    return WR_OUT_HEAD;
}

static enum weir_outcome
run_in_folder(struct attempt *a, struct wr_spawner *spawner,
              const struct wr_exec_env *env)
{
    const struct wr_exec_config *c = a->config;
    struct weir_delivery *d = a->d;
    struct weir_error why = {0};
    const struct wr_exec_run run = {
        .argv = (const char *const *)c->argv,
        .file = c->file,
        .env = (const char *const *)env->list,
        .clean = c->o.clean_env,
        .cwd = c->cwd ? c->cwd : a->folder.path,
        .limits = &c->limits,
        .payload = d->record.payload,
        .timeout_ms = a->timeout_ms,
        .idle_ms = c->o.idle_timeout_ms,
        .kill_after_ms = d->kill_after_ms,
        .stop_signal = c->o.stop_signal,
        .keep_stragglers = c->o.keep_stragglers,
        .out = where_to(c->o.result),
        .result_max = c->o.result_max,
        .control = true,
        .live = d->sender != NULL,
    };
    const struct wr_exec_events events = {
        .context = a,
        .on_progress = on_progress,
        .on_extend = on_extend,
        .on_output = on_output,
        .on_push = on_push,
    };
    enum weir_err rc = wr_spawner_run(spawner, d->slot, &run, &events, &d->result,
                                      &d->log, &d->exec, &why);

    if (rc == WEIR_E_BUG && wr_spawner_current()) {
        /* Nothing can be started any more, and what ran may still run. The supervisor
         * kills it, waits, and puts another child in this place. */
        wr_log_error("%s: this child ends, its jobs go to others", why.text);
        _exit(WR_CHILD_REPLACE);
    }
    if (rc != WEIR_OK)
        return short_of(a, why.text, ENOMEM);
    d->has_exec = true;
    return judge(a);
}

static int
take_folder(struct attempt *a, struct wr_spawner *spawner)
{
    const struct wr_exec_limits *l = &a->config->limits;

    for (int turn = 0;; turn++) {
        int why = wr_folder_take(wr_spawner_folders(spawner),
                                 l->switch_user ? l->uid : (uid_t)-1,
                                 l->switch_group ? l->gid : (gid_t)-1, &a->folder);

        /* Somebody tidied up TMPDIR under us. */
        if (why != ENOENT || turn > 0 || !wr_spawner_restore_folder(spawner))
            return why;
    }
}

/* Out of the base folder, which ends with the worker. */
static void
keep_folder(struct attempt *a, struct wr_spawner *spawner)
{
    const char *base = wr_spawner_folder(spawner), *name = strrchr(base, '.'),
               *own = strrchr(a->folder.path, '/');
    char kept[WR_FOLDER_MAX];

    snprintf(kept, sizeof(kept), "%.*s/weir-kept%s.%s", (int)(strrchr(base, '/') - base),
             base, name, own + 1);
    if (rename(a->folder.path, kept) == 0) {
        wr_log_warn("job %s: its working folder is kept: %s", a->d->id, kept);
        wr_buf_addf(&a->d->log, "%s[weir] working folder kept: %s\n",
                    a->d->log.len > 0 && a->d->log.ptr[a->d->log.len - 1] != '\n' ? "\n"
                                                                                  : "",
                    kept);
    } else {
        (void)wr_folder_remove(a->folder.path);
    }
}

static enum weir_outcome
attempt(struct attempt *a, struct wr_spawner *spawner)
{
    struct wr_exec_env env = {0};
    enum weir_outcome outcome;
    int why = take_folder(a, spawner);

    if (why != 0)
        return short_of(a, "cannot make a working folder", why);
    wr_exec_env_fill(&env, a->d, a->config, a->folder.path, a->timeout_ms);
    if (env.failed)
        outcome = short_of(a, "cannot start a command", ENOMEM);
    else
        outcome = run_in_folder(a, spawner, &env);
    wr_exec_env_fini(&env);
    if (a->config->o.keep_failed_dir && outcome != WEIR_DONE)
        keep_folder(a, spawner);
    else if (!wr_folder_give_back(wr_spawner_folders(spawner), &a->folder,
                                  a->d->has_exec && a->d->exec.alone))
        wr_log_warn("job %s: its working folder %s cannot be removed whole", a->d->id,
                    a->folder.path);
    return outcome;
}

enum weir_outcome
wr_exec_attempt(struct wr_handler *handler, const struct wr_exec_config *config,
                struct weir_delivery *d)
{
    struct wr_spawner *spawner = wr_spawner_current();
    struct attempt a = {.handler = handler, .config = config, .d = d};
    enum weir_outcome outcome;

    a.timeout_ms = shorter(config->o.timeout_ms, d->record.timeout_ms);
    d->kill_after_ms = config->o.kill_after_ms > 0 ? config->o.kill_after_ms
                                                   : d->record.kill_after_ms;
    d->max_snoozes = config->o.max_snoozes;
    wr_buf_clear(&d->log);
    d->has_exec = false;
    if (!spawner)
        return WEIR_RETRY; /* the child is about to end */
    if (wr_handler_is_broken(handler)) {
        d->not_taken = true;
        weir_delivery_set_error(d, "handler %.100s cannot be started on this worker",
                                handler->type);
        return WEIR_RETRY;
    }
    wr_spawner_arm(spawner, d->slot);
    if (atomic_load(&d->stop) != WR_STOP_NONE)
        return WEIR_RETRY; /* it was told so before a kill could have reached it */
    outcome = attempt(&a, spawner);
    wr_buf_fini(&a.pushes);
    return outcome;
}

void
wr_exec_attempt_stop(struct weir_delivery *d, enum wr_stop why)
{
    struct wr_spawner *spawner = wr_spawner_current();
    int64_t kill_after = d->kill_after_ms;

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

/* ---- as a handler ---- */

/* The payload says some of the words. */
static enum weir_outcome
run_filled_in(struct wr_handler *handler, const struct wr_exec_config *config,
              struct weir_delivery *d)
{
    struct wr_exec_config own = *config;
    enum weir_outcome outcome = WEIR_PERMANENT;
    struct wr_buf text = {0};
    bool no_memory;

    if (wr_exec_args_make(config, d, &own.argv, &text, &no_memory)) {
        outcome = wr_exec_attempt(handler, &own, d);
    } else if (no_memory) {
        d->delay_ms = SHORT_OF_MS;
        outcome = WEIR_SNOOZE;
    }
    free(own.argv);
    wr_buf_fini(&text);
    return outcome;
}

static enum weir_outcome
exec_run(struct wr_handler *handler, struct weir_delivery *d)
{
    const struct wr_exec_config *config = ((struct handler_exec *)handler)->config;

    return config->json_fields ? run_filled_in(handler, config, d)
                               : wr_exec_attempt(handler, config, d);
}

static void
exec_stop(struct wr_handler *handler, struct weir_delivery *d, enum wr_stop why)
{
    (void)handler;
    wr_exec_attempt_stop(d, why);
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
    h->base.timeout_ms = config->o.timeout_ms;
    snprintf(h->base.type, sizeof(h->base.type), "%s", type);
    h->config = config;
    return &h->base;
}
