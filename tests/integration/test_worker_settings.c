/* What a worker program says once for all its jobs: hooks around them, times, its cron
 * entries. */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/cron.h>

#define EVENTS_MAX 64

/* One call of a hook or a handler, as the child saw it. */
struct event {
    char what[16], id[32], type[32], error[160];
    long thread;
    int64_t attempt;
    int outcome;
    int thing; /* of the startup hook */
    bool stopped;
};

static struct shared {
    _Atomic int events_n, crashes, hangs, release;
    struct event events[EVENTS_MAX];
} * shared;

static bool with_hooks, with_cron;
static const char *cron_payload = "one";

static void
note(const char *what, const struct weir_delivery *d, const void *context, int outcome)
{
    int n = shared->events_n++;
    struct event *e = &shared->events[n % EVENTS_MAX];

    snprintf(e->what, sizeof(e->what), "%s", what);
    snprintf(e->id, sizeof(e->id), "%s", weir_delivery_id(d));
    snprintf(e->type, sizeof(e->type), "%s", weir_delivery_type(d));
    snprintf(e->error, sizeof(e->error), "%s", weir_delivery_error(d));
    e->thread = syscall(SYS_gettid);
    e->attempt = weir_delivery_attempt(d);
    e->outcome = outcome;
    e->thing = context ? *(const int *)context : 0;
    e->stopped = weir_delivery_should_stop(d);
}

static bool
is_payload(const struct weir_delivery *d, const char *text)
{
    size_t len;
    const char *payload = weir_delivery_payload(d, &len);

    return len == strlen(text) && memcmp(payload, text, len) == 0;
}

/* ---- the worker ---- */

static enum weir_err
startup(void **context, struct weir_error *err)
{
    static int thing = 7;

    (void)err;
    *context = &thing;
    return WEIR_OK;
}

static enum weir_err
on_start(struct weir_delivery *d, void *context, struct weir_error *err)
{
    note("start", d, context, -1);
    if (is_payload(d, "crash") && shared->crashes++ == 0)
        abort();
    if (!is_payload(d, "refuse"))
        return WEIR_OK;
    snprintf(err->text, sizeof(err->text), "no licence left");
    return WEIR_E_DENIED;
}

static void
on_end(struct weir_delivery *d, enum weir_outcome outcome, void *context)
{
    note("end", d, context, (int)outcome);
    if (is_payload(d, "hang") && shared->hangs++ == 0) {
        while (!shared->release)
            poll(NULL, 0, 5);
    }
}

static enum weir_outcome
work(struct weir_delivery *d, void *context)
{
    (void)context;
    note("run", d, weir_delivery_context(d), -1);
    if (is_payload(d, "fail")) {
        weir_delivery_set_error(d, "as it was told");
        return WEIR_PERMANENT;
    }
    return WEIR_DONE;
}

static enum weir_outcome
stages(struct weir_delivery *d, void *context)
{
    (void)context;
    weir_delivery_progress_stage(d, "up load", 30, "3 of 10");
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    return WEIR_DONE;
}

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    note("run", d, weir_delivery_context(d), -1);
    while (!weir_delivery_should_stop(d))
        poll(NULL, 0, 2);
    return WEIR_RETRY;
}

static struct weir_cron
entry_of(const struct weir_job *job, const char *name)
{
    return (struct weir_cron){WEIR_CRON_INIT, .name = name, .schedule = "0 3 * * *",
                              .job = job};
}

static void
handlers(struct weir_worker *w)
{
    static const char *const cat[] = {"cat", NULL}, *const words[] = {
                                                        "sh",
                                                        WEIR_SOURCE "/examples/coproc.sh",
                                                        NULL};
    struct weir_exec_options stays = {WEIR_EXEC_OPTIONS_INIT, .argv = words,
                                      .coproc = true};
    struct weir_error err = {0};
    struct weir_job job = {WEIR_JOB_INIT, .type = "work", .payload = cron_payload,
                           .payload_len = strlen(cron_payload)};
    struct weir_cron nightly = entry_of(&job, "nightly"), other = entry_of(&job, "other");

    other.queue = "other";
    if (weir_worker_handle(w, "work", work, NULL, &err) != WEIR_OK ||
        weir_worker_handle(w, "patient", patient, NULL, &err) != WEIR_OK ||
        weir_worker_handle(w, "stages", stages, NULL, &err) != WEIR_OK ||
        weir_worker_exec(w, "cat", cat, &err) != WEIR_OK ||
        weir_worker_exec_with(w, "words", &stays, &err) != WEIR_OK ||
        (with_cron && (weir_worker_cron(w, &nightly, &err) != WEIR_OK ||
                       weir_worker_cron(w, &other, &err) != WEIR_OK))) {
        fprintf(stderr, "%s\n", err.text);
        _exit(70);
    }
    weir_worker_on_startup(w, startup);
    if (with_hooks) {
        weir_worker_on_job_start(w, on_start);
        weir_worker_on_job_end(w, on_end);
    }
}

static int
setup(void **state)
{
    memset((void *)shared, 0, sizeof(*shared));
    with_hooks = true;
    with_cron = false;
    cron_payload = "one";
    return rig_setup(state);
}

static int
teardown(void **state)
{
    shared->release = 1;
    return rig_teardown(state);
}

static void
enqueue_with(const char *id, const char *type, const char *payload)
{
    rig_enqueue(
        JOB(.max_retry = WEIR_NONE, .payload = payload, .payload_len = strlen(payload)),
        id, type);
}

static const struct event *
event(int n, const char *what, const char *id)
{
    const struct event *e = &shared->events[n];

    assert_true(n < shared->events_n);
    assert_string_equal(e->what, what);
    assert_string_equal(e->id, id);
    return e;
}

/* ---- hooks ---- */

static void
hooks_are_called_around_every_kind_of_handler_in_its_thread_with_the_context(void **state)
{
    static const struct {
        const char *id, *type;
        int runs; /* the handler notes itself */
    } rows[] = {{"f", "work", 1}, {"c", "cat", 0}, {"p", "words", 0}};
    int at = 0;

    (void)state;
    rig_start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct event *start, *end;

        enqueue_with(rows[i].id, rows[i].type, "x");
        AWAIT(rig_is(rows[i].id, "done"));
        start = event(at++, "start", rows[i].id);
        assert_string_equal(start->type, rows[i].type);
        assert_int_equal(start->attempt, 1);
        assert_int_equal(start->thing, 7);
        if (rows[i].runs)
            assert_int_equal(event(at++, "run", rows[i].id)->thread, start->thread);
        end = event(at++, "end", rows[i].id);
        assert_int_equal(end->thread, start->thread);
        assert_int_equal(end->outcome, WEIR_DONE);
        assert_int_equal(end->thing, 7);
        assert_false(end->stopped);
    }
}

static void
the_hook_after_a_job_learns_how_it_went(void **state)
{
    const struct event *end;

    (void)state;
    rig_start();
    enqueue_with("p", "work", "fail");
    AWAIT(rig_is("p", "dead"));
    end = event(2, "end", "p");
    assert_int_equal(end->outcome, WEIR_PERMANENT);
    assert_string_equal(end->error, "as it was told");

    rig_enqueue(JOB(.max_retry = WEIR_NONE, .timeout_ms = 50), "t", "patient");
    AWAIT(rig_is("t", "dead"));
    end = event(5, "end", "t");
    assert_true(end->stopped);
}

static void
a_hook_that_refuses_a_job_fails_its_attempt_and_the_handler_is_not_called(void **state)
{
    struct weir_job_view *v;

    (void)state;
    rig_start();
    enqueue_with("r", "work", "refuse");
    AWAIT(rig_is("r", "dead"));
    assert_int_equal(shared->events_n, 2);
    event(0, "start", "r");
    assert_int_equal(event(1, "end", "r")->outcome, WEIR_RETRY);
    assert_int_equal(weir_job_inspect(rig.client, "q", "r", &v, NULL), WEIR_OK);
    assert_non_null(strstr(weir_job_view_errors(v), "no licence left"));
    assert_int_equal(rig_numbers("r").attempts, 1);
    weir_job_view_free(v);
}

static void
a_hook_that_crashes_costs_its_child_and_the_job_comes_back(void **state)
{
    pid_t pid = rig_start(), child = worker_child(pid, "weir-child");

    (void)state;
    enqueue_with("k", "cat", "crash"); /* a command: its own crash would be its own */
    AWAIT(rig_is("k", "done"));
    assert_false(process_lives(child));
    assert_int_equal(rig_numbers("k").deliveries, 2);
    assert_int_equal(rig_numbers("k").attempts, 1);
}

static void
a_hook_that_hangs_is_given_up_with_the_jobs_timeout_and_its_child_replaced(void **state)
{
    pid_t pid = rig_start(), child = worker_child(pid, "weir-child");

    (void)state;
    rig_enqueue(JOB(.backoff = "fixed:10ms", .max_retry = 1, .timeout_ms = 200,
                    .kill_after_ms = WEIR_NONE, .payload = "hang", .payload_len = 4),
                "h", "cat");
    AWAIT(rig_is("h", "done"));
    assert_int_equal(shared->hangs, 2);
    assert_int_equal(rig_numbers("h").attempts, 2);
    AWAIT(!process_lives(child));
}

/* ---- times ---- */

static bool
has_result(const char *id, const char *text)
{
    struct weir_job_view *v;
    const char *result;
    bool has;
    size_t len;

    if (weir_job_inspect(rig.client, "q", id, &v, NULL) != WEIR_OK)
        return false;
    result = weir_job_view_result(v, &len);
    has = len == strlen(text) && memcmp(result, text, len) == 0;
    weir_job_view_free(v);
    return has;
}

static void
the_workers_job_timeout_is_that_of_jobs_which_name_none(void **state)
{
    struct weir_job_view *v;

    (void)state;
    rig_start_with((struct weir_worker_options){.job_timeout_ms = 100});
    rig_enqueue(JOB(.max_retry = WEIR_NONE), "short", "patient");
    rig_enqueue(JOB(.max_retry = WEIR_NONE, .timeout_ms = 250), "own", "patient");
    AWAIT(rig_is("short", "dead") && rig_is("own", "dead"));
    assert_int_equal(weir_job_inspect(rig.client, "q", "short", &v, NULL), WEIR_OK);
    assert_non_null(strstr(weir_job_view_errors(v), "timeout after 100ms"));
    weir_job_view_free(v);
    assert_int_equal(weir_job_inspect(rig.client, "q", "own", &v, NULL), WEIR_OK);
    assert_non_null(strstr(weir_job_view_errors(v), "timeout after 250ms"));
    weir_job_view_free(v);
}

static void
the_workers_keep_result_is_that_of_jobs_which_name_none(void **state)
{
    (void)state;
    rig_start_with((struct weir_worker_options){.keep_result_ms = 60000});
    rig_enqueue(((struct weir_job){WEIR_JOB_INIT, .payload = "hi", .payload_len = 2}),
                "silent", "cat");
    rig_enqueue(JOB(), "own", "cat");
    AWAIT(rig_is("silent", "done") && rig_is("own", "done"));
    assert_int_equal(rig_numbers("silent").keep_result_ms, 60000);
    assert_int_equal(rig_numbers("own").keep_result_ms, 600000);
    assert_true(has_result("silent", "hi"));
}

/* ---- progress ---- */

static bool
is_at(const char *id, int percent, const char *stage, const char *message)
{
    struct weir_job_view *v;
    struct weir_progress p;
    bool is;

    if (weir_job_inspect(rig.client, "q", id, &v, NULL) != WEIR_OK)
        return false;
    weir_job_view_progress_parts(v, &p);
    is = p.percent == percent && strcmp(p.stage, stage) == 0 &&
         strcmp(p.message, message) == 0;
    weir_job_view_free(v);
    return is;
}

static void
stage_percent_and_message_of_a_handler_are_read_while_it_runs_and_as_long_as_it_is_kept(
    void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(), "p", "stages");
    AWAIT(is_at("p", 30, "up load", "3 of 10"));
    shared->release = 1;
    AWAIT(rig_is("p", "done"));
    assert_true(is_at("p", 30, "up load", "3 of 10"));
    rig_enqueue(((struct weir_job){WEIR_JOB_INIT}), "q", "stages");
    AWAIT(rig_is("q", "gone")); /* and so is what it said */
    assert_false(is_at("q", 30, "up load", "3 of 10"));
}

/* ---- cron entries ---- */

static struct weir_cron_info *
look(const char *queue, const char *name)
{
    struct weir_cron_info *info = NULL;

    (void)!weir_cron_get(rig.client, queue, name, &info, NULL);
    return info;
}

static bool
says(const char *queue, const char *name, const char *payload)
{
    struct weir_cron_info *info = look(queue, name);
    bool good = info && info->entry.job->payload_len == strlen(payload) &&
                memcmp(info->entry.job->payload, payload, strlen(payload)) == 0;

    weir_cron_info_free(info);
    return good;
}

static int64_t
revision(const char *name)
{
    struct weir_cron_info *info = look("q", name);
    int64_t n = info ? info->revision : -1;

    weir_cron_info_free(info);
    return n;
}

static void
the_programs_cron_entries_are_stored_once_however_many_workers_declare_them(void **state)
{
    int64_t before;

    (void)state;
    with_cron = true;
    rig_start();
    AWAIT(says("q", "nightly", "one") && says("other", "other", "one"));
    before = revision("nightly");
    for (int i = 0; i < 3; i++) {
        pid_t pid = rig_start();

        worker_child(pid, "weir-child");
        assert_int_equal(rig_end(pid, SIGTERM), 0);
    }
    assert_int_equal(revision("nightly"), before);
}

static void
an_entry_that_a_person_changed_stays_so_until_a_worker_starts_anew(void **state)
{
    struct weir_job job = {WEIR_JOB_INIT, .type = "work", .payload = "mine",
                           .payload_len = 4};
    struct weir_cron mine = entry_of(&job, "nightly");
    struct weir_cron_info *info;
    pid_t pid, service;

    (void)state;
    with_cron = true;
    mine.queue = "q";
    pid = rig_start();
    AWAIT(says("q", "nightly", "one") && says("other", "other", "one"));
    assert_int_equal(weir_cron_put(rig.client, &mine, WEIR_REVISION_ANY, NULL, NULL), 0);
    assert_int_equal(weir_cron_pause(rig.client, "q", "nightly", NULL, NULL), 0);
    service = worker_child(pid, "weir-service");
    kill(service, SIGKILL); /* the next one is not a start of the worker */
    AWAIT(!process_lives(service) && worker_child(pid, "weir-service") != service);
    rig_end(pid, SIGTERM);
    assert_true(says("q", "nightly", "mine"));

    cron_payload = "two"; /* the next version of the program */
    rig_start();
    AWAIT(says("q", "nightly", "two"));
    info = look("q", "nightly");
    assert_true(info->paused);
    weir_cron_info_free(info);
}

static void
cron_entries_wait_until_redis_takes_them(void **state)
{
    (void)state;
    with_cron = true;
    redis_do(rig.server, "CONFIG SET maxmemory 1mb");
    rig_start();
    AWAIT(strstr(redis_do(rig.server, "INFO errorstats"), "errorstat_OOM"));
    assert_false(says("q", "nightly", "one"));
    redis_do(rig.server, "CONFIG SET maxmemory 0");
    AWAIT(says("q", "nightly", "one"));
}

static void
an_entry_that_cannot_be_is_refused_where_it_is_declared(void **state)
{
    struct weir_job job = {WEIR_JOB_INIT, .type = "work"};
    struct weir_worker_options o = {WEIR_WORKER_OPTIONS_INIT,
                                    .url = redis_server_url(rig.server)};
    struct weir_cron entry = entry_of(&job, "nightly");
    struct weir_worker *w;
    struct weir_error err = {0};

    (void)state;
    assert_int_equal(weir_worker_new(&o, &w, &err), WEIR_OK);
    entry.schedule = "every tuesday";
    assert_int_equal(weir_worker_cron(w, &entry, &err), WEIR_E_DATA);
    entry = entry_of(&job, "nightly");
    entry.zone = "Europe/Atlantis";
    assert_int_equal(weir_worker_cron(w, &entry, &err), WEIR_E_DATA);
    entry = entry_of(NULL, "nightly");
    assert_int_equal(weir_worker_cron(w, &entry, &err), WEIR_E_ARG);
    entry = entry_of(&job, "nightly");
    entry.queue = "{bad}";
    assert_int_equal(weir_worker_cron(w, &entry, &err), WEIR_E_ARG);
    entry.queue = NULL;
    assert_int_equal(weir_worker_cron(w, &entry, &err), WEIR_OK);
    assert_int_equal(weir_worker_cron(w, &entry, &err), WEIR_E_ARG); /* twice */
    weir_worker_free(w);
    o.job_timeout_ms = -2;
    assert_int_equal(weir_worker_new(&o, &w, &err), WEIR_E_ARG);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(
            hooks_are_called_around_every_kind_of_handler_in_its_thread_with_the_context),
        TEST(the_hook_after_a_job_learns_how_it_went),
        TEST(a_hook_that_refuses_a_job_fails_its_attempt_and_the_handler_is_not_called),
        TEST(a_hook_that_crashes_costs_its_child_and_the_job_comes_back),
        TEST(a_hook_that_hangs_is_given_up_with_the_jobs_timeout_and_its_child_replaced),
        TEST(the_workers_job_timeout_is_that_of_jobs_which_name_none),
        TEST(the_workers_keep_result_is_that_of_jobs_which_name_none),
        TEST(
            stage_percent_and_message_of_a_handler_are_read_while_it_runs_and_as_long_as_it_is_kept),
        TEST(the_programs_cron_entries_are_stored_once_however_many_workers_declare_them),
        TEST(an_entry_that_a_person_changed_stays_so_until_a_worker_starts_anew),
        TEST(cron_entries_wait_until_redis_takes_them),
        TEST(an_entry_that_cannot_be_is_refused_where_it_is_declared),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_settings", tests, handlers);
}
