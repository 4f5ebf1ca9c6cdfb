/* Commands as jobs of a real worker: what becomes of the job. */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static char folder[64]; /* where commands leave their marks */
static bool mute;       /* nobody reads what the next worker says */

static void
add(struct weir_worker *w, const char *type, const char *script,
    struct weir_exec_options o)
{
    const char *argv[] = {script, NULL};

    o.struct_size = sizeof(o);
    o.argv = argv;
    o.shell = true;
    if (weir_worker_exec_with(w, type, &o, NULL) != WEIR_OK)
        _exit(70);
}

static void
handlers(struct weir_worker *w)
{
    static const char *const missing[] = {"/no/such/program", NULL};

    setenv("MARKS", folder, 1);
    if (mute) {
        int fds[2];

        if (pipe(fds) != 0 || dup2(fds[1], 1) < 0 || dup2(fds[1], 2) < 0)
            _exit(70);
        close(fds[0]);
        close(fds[1]);
    }
    /* Any script that the job brings. */
    add(w, "sh", "cat >s; . ./s", (struct weir_exec_options){0});
    add(w, "idle", "cat >s; . ./s", (struct weir_exec_options){.idle_timeout_ms = 300});
    add(w, "later", "exit 75",
        (struct weir_exec_options){.snooze_ms = 1, .max_snoozes = 3});
    add(w, "leaves",
        "(trap '' TERM; while :; do echo progress 99 >&3; sleep 0.05; done) &"
        " echo $!",
        (struct weir_exec_options){.keep_stragglers = true});
    if (weir_worker_exec(w, "missing", missing, NULL) != WEIR_OK)
        _exit(70);
}

#define SCRIPT(text) .payload = (text), .payload_len = strlen(text)

static bool
has_mark(const char *name)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* What a command wrote there; waits for it. */
static int
mark_number(const char *name)
{
    char path[200];
    int n = -1;
    FILE *f;

    AWAIT(has_mark(name));
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "re");
    if (f && fscanf(f, "%d", &n) != 1)
        n = -1;
    if (f)
        fclose(f);
    unlink(path);
    return n;
}

/* Lines that commands wrote there. */
static int
count_marks(const char *name)
{
    char path[200];
    int n = 0, c;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "re");
    assert_non_null(f);
    while ((c = fgetc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    unlink(path);
    return n;
}

enum view_part {
    VIEW_RESULT,
    VIEW_PROGRESS,
    VIEW_ERRORS
};

static const char *
view(const char *id, enum view_part part)
{
    static char text[8192];
    struct weir_job_view *v;
    size_t len = 0;
    const char *p;

    text[0] = '\0';
    if (weir_job_inspect(rig.client, "q", id, &v, NULL) != WEIR_OK)
        return text;
    p = part == VIEW_RESULT     ? weir_job_view_result(v, &len)
        : part == VIEW_PROGRESS ? weir_job_view_progress(v)
                                : weir_job_view_errors(v);
    if (p)
        snprintf(text, sizeof(text), "%.*s", (int)(part == VIEW_RESULT ? len : strlen(p)),
                 p);
    weir_job_view_free(v);
    return text;
}

/* ---- */

static void
what_a_command_says_of_itself_is_what_becomes_of_its_job_R08(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(SCRIPT("echo 'permanent no such month' >&3")), "p", "sh");
    rig_enqueue(JOB(SCRIPT("test $WEIR_DELIVERY -gt 1 || echo 'snooze 0.01 wait' >&3")),
                "s", "sh");
    rig_enqueue(JOB(SCRIPT("test $WEIR_ATTEMPT -gt 1 || echo 'retry 0.01 busy' >&3")),
                "r", "sh");
    AWAIT(rig_is("p", "dead") && rig_is("s", "done") && rig_is("r", "done"));
    assert_int_equal(rig_numbers("p").attempts, 1);
    assert_non_null(strstr(view("p", VIEW_ERRORS), "no such month"));
    assert_int_equal(rig_numbers("s").snoozes, 1);
    assert_int_equal(rig_numbers("s").deliveries, 2);
    assert_int_equal(rig_numbers("r").attempts, 2);
}

static void
after_its_most_snoozes_a_job_has_failed(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(.max_retry = WEIR_NONE), "j", "later");
    AWAIT(rig_is("j", "dead"));
    assert_int_equal(rig_numbers("j").snoozes, 3);
    assert_int_equal(rig_numbers("j").attempts, 1);
    assert_non_null(strstr(view("j", VIEW_ERRORS), "snoozed 3 times"));
}

static void
a_retry_knows_why_the_attempt_before_it_failed_X14(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(.backoff = "fixed:0s",
                    SCRIPT("printf '%s.%s' \"$WEIR_ATTEMPT\" \"$WEIR_LAST_ERROR\";"
                           " echo oops $WEIR_ATTEMPT >&2; test $WEIR_ATTEMPT = 3")),
                "j", "sh");
    AWAIT(rig_is("j", "done"));
    assert_string_equal(view("j", VIEW_RESULT), "3.exit 1: oops 2");
}

static void
progress_is_seen_by_others_while_it_runs_and_never_after_its_end_M10(void **state)
{
    int pid;

    (void)state;
    rig_start();
    rig_enqueue(JOB(SCRIPT("echo 'progress 3/4 pages' >&3; sleep 30")), "j", "sh");
    AWAIT(strcmp(view("j", VIEW_PROGRESS), "75 3/4 pages") == 0);
    assert_int_equal(weir_job_cancel(rig.client, "q", "j", NULL, NULL), WEIR_OK);
    /* Its leftover goes on to speak, and nobody hears it. */
    rig_enqueue(JOB(), "l", "leaves");
    AWAIT(rig_is("l", "done"));
    pid = atoi(view("l", VIEW_RESULT));
    assert_true(pid > 1);
    for (int i = 0; i < 3; i++) {
        poll(NULL, 0, 300);
        assert_true(rig_is("l", "done"));
    }
    kill(pid, SIGKILL);
}

static void
a_cancelled_command_is_gone_before_its_job_is_X01(void **state)
{
    int64_t start;
    int pid;

    (void)state;
    rig_start_with((struct weir_worker_options){.lease_ms = 60000});
    rig_enqueue(JOB(SCRIPT("echo $$ >$MARKS/pid; exec sleep 1000")), "j", "sh");
    pid = mark_number("pid");
    start = wr_clock_ms();
    assert_int_equal(weir_job_cancel(rig.client, "q", "j", NULL, NULL), WEIR_OK);
    AWAIT(rig_is("j", "gone"));
    assert_false(process_lives(pid));
    assert_true(wr_clock_ms() - start < 10000); /* promised: 2 s */
    assert_int_equal(audit_of(rig.client, "q").cancelled_processing, 1);
}

static void
a_cancel_that_a_frozen_worker_missed_is_obeyed_when_it_thaws_X02(void **state)
{
    pid_t worker = rig_start_with((struct weir_worker_options){.lease_ms = 6000});
    pid_t child = worker_child(worker, "weir-child");
    int pid;

    (void)state;
    rig_enqueue(JOB(SCRIPT("echo $$ >$MARKS/pid; exec sleep 1000")), "j", "sh");
    pid = mark_number("pid");
    kill(child, SIGSTOP);
    assert_int_equal(weir_job_cancel(rig.client, "q", "j", NULL, NULL), WEIR_OK);
    poll(NULL, 0, 300);
    kill(child, SIGCONT);
    AWAIT(rig_is("j", "gone"));
    assert_false(process_lives(pid));
}

static void
a_job_is_cancelled_while_its_worker_drains_X02(void **state)
{
    pid_t worker = rig_start_with((struct weir_worker_options){.grace_ms = 600000});
    int pid;

    (void)state;
    rig_enqueue(JOB(SCRIPT("echo $$ >$MARKS/pid; exec sleep 1000")), "j", "sh");
    pid = mark_number("pid");
    kill(worker, SIGTERM);
    AWAIT(rig_worker_is("draining"));
    assert_true(process_lives(pid));
    assert_int_equal(weir_job_cancel(rig.client, "q", "j", NULL, NULL), WEIR_OK);
    assert_int_equal(rig_end(worker, 0), 0); /* nothing runs any more */
    assert_false(process_lives(pid));
    assert_true(rig_is("j", "gone"));
    assert_int_equal(audit_of(rig.client, "q").cancelled_processing, 1);
}

static void
a_job_cancelled_with_no_worker_about_never_runs_X02(void **state)
{
    (void)state;
    rig_enqueue(JOB(SCRIPT("touch $MARKS/ran")), "c", "sh");
    assert_int_equal(weir_job_cancel(rig.client, "q", "c", NULL, NULL), WEIR_OK);
    rig_start();
    rig_enqueue(JOB(SCRIPT("touch $MARKS/after")), "n", "sh");
    AWAIT(rig_is("n", "done"));
    AWAIT(has_mark("after"));
    assert_false(has_mark("ran"));
    assert_true(rig_is("c", "gone"));
}

static void
hung_jobs_give_their_slots_back_X11_F36(void **state)
{
    char id[8];
    int64_t start = wr_clock_ms();

    (void)state;
    rig_start();
    for (int i = 0; i < 2; i++) {
        snprintf(id, sizeof(id), "h%d", i);
        rig_enqueue(JOB(.max_retry = WEIR_NONE, .timeout_ms = 700, .kill_after_ms = 400,
                        SCRIPT("trap '' TERM; while :; do sleep 1; done")),
                    id, "sh");
    }
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof(id), "t%d", i);
        rig_enqueue(JOB(SCRIPT("true")), id, "sh");
    }
    AWAIT(audit_of(rig.client, "q").done == 10);
    assert_true(wr_clock_ms() - start < 10000); /* promised: 2.1 s */
    AWAIT(rig_is("h0", "dead") && rig_is("h1", "dead"));
    assert_non_null(strstr(view("h0", VIEW_ERRORS), "timeout after 700ms"));
}

/* A command that dies takes no worker with it: its retries are the job's own. */
static void
one_that_dies_or_fails_runs_as_often_as_it_may_be_tried_F35(void **state)
{
    static const struct {
        const char *id, *script, *error;
    } rows[] = {{"segv", "echo x >>$MARKS/segv; kill -SEGV $$", "killed by SIGSEGV"},
                {"abrt", "echo x >>$MARKS/abrt; kill -ABRT $$", "killed by SIGABRT"},
                {"kill", "echo x >>$MARKS/kill; kill -KILL $$", "killed by SIGKILL"},
                {"exit", "echo x >>$MARKS/exit; exit 1", "exit 1"}};

    (void)state;
    rig_start();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        rig_enqueue(JOB(.max_retry = 4, .backoff = "fixed:0s", .payload = rows[i].script,
                        .payload_len = strlen(rows[i].script)),
                    rows[i].id, "sh");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AWAIT(rig_is(rows[i].id, "dead"));
        assert_int_equal(rig_numbers(rows[i].id).attempts, 5);
        assert_int_equal(rig_numbers(rows[i].id).lost, 0);
        assert_int_equal(count_marks(rows[i].id), 5);
        assert_non_null(strstr(view(rows[i].id, VIEW_ERRORS), rows[i].error));
    }
}

static void
a_silent_job_ends_though_its_lease_is_renewed_L09(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(.max_retry = WEIR_NONE, SCRIPT("exec sleep 1000")), "j", "idle");
    AWAIT(rig_is("j", "dead"));
    assert_non_null(strstr(view("j", VIEW_ERRORS), "timeout: silent for 300ms"));
    assert_int_equal(rig_numbers("j").lost, 0);
}

static void
nobody_renews_for_a_supervisor_that_is_killed_L09_F2(void **state)
{
    pid_t worker = rig_start();
    int pid;

    (void)state;
    rig_enqueue(JOB(SCRIPT("echo $$ >$MARKS/pid; test $WEIR_DELIVERY = 2 ||"
                           " exec sleep 1000")),
                "j", "sh");
    pid = mark_number("pid");
    kill(worker, SIGKILL);
    rig_end(worker, 0);
    AWAIT(!process_lives(pid));
    rig_start();
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 2);
}

static void
a_longer_time_that_was_asked_for_is_given_by_the_lease_too(void **state)
{
    (void)state;
    rig_start();
    rig_enqueue(JOB(.timeout_ms = 1500, .kill_after_ms = WEIR_NONE,
                    SCRIPT("echo 'extend 60' >&3; sleep 8; echo ok")),
                "j", "sh");
    AWAIT(rig_is("j", "done")); /* 1.5 s and 5 s are over long ago */
    assert_int_equal(rig_numbers("j").attempts, 1);
    assert_string_equal(view("j", VIEW_RESULT), "ok\n");
}

static void
a_command_runs_on_while_redis_is_away_for_less_than_its_lease(void **state)
{
    (void)state;
    rig_start_with((struct weir_worker_options){.lease_ms = 8000});
    rig_enqueue(JOB(SCRIPT("echo $$ >$MARKS/pid; sleep 1; echo done")), "j", "sh");
    (void)mark_number("pid");
    redis_server_pause(rig.server);
    poll(NULL, 0, 1500);
    redis_server_resume(rig.server);
    AWAIT(rig_is("j", "done"));
    assert_int_equal(rig_numbers("j").deliveries, 1);
    assert_string_equal(view("j", VIEW_RESULT), "done\n");
}

/* As after `weir work 2>&1 | head -1`, or a log that rotates by copy and delete. */
static void
a_worker_whose_own_output_is_gone_goes_on_F41(void **state)
{
    (void)state;
    mute = true;
    rig_start();
    mute = false;
    rig_enqueue(JOB(.max_retry = WEIR_NONE, SCRIPT("echo x; echo y >&2; exit 3")), "f",
                "sh");
    rig_enqueue(JOB(), "m", "missing");
    rig_enqueue(JOB(SCRIPT("echo x; echo y >&2")), "d", "sh");
    AWAIT(rig_is("f", "dead") && rig_is("d", "done") && rig_is("m", "delayed"));
    assert_string_equal(view("d", VIEW_RESULT), "x\n");
}

static void
a_handler_that_cannot_be_started_is_left_to_others_after_three_R10(void **state)
{
    char id[8];

    (void)state;
    rig_start();
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof(id), "m%d", i);
        rig_enqueue(JOB(), id, "missing");
    }
    AWAIT(audit_of(rig.client, "q").delayed == 6);
    int64_t attempts = 0, charged = 0;
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof(id), "m%d", i);
        attempts += rig_numbers(id).attempts;
        charged += rig_numbers(id).attempts > 0;
    }
    assert_in_range(attempts, 3, 4); /* two slots may start the third at once */
    assert_int_equal(attempts, charged);
    rig_enqueue(JOB(SCRIPT("true")), "other", "sh"); /* other types go on */
    AWAIT(rig_is("other", "done"));
}

static int
setup(void **state)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/ran", folder);
    unlink(path);
    return rig_setup(state);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_a_command_says_of_itself_is_what_becomes_of_its_job_R08),
        TEST(after_its_most_snoozes_a_job_has_failed),
        TEST(a_retry_knows_why_the_attempt_before_it_failed_X14),
        TEST(progress_is_seen_by_others_while_it_runs_and_never_after_its_end_M10),
        TEST(a_cancelled_command_is_gone_before_its_job_is_X01),
        TEST(a_cancel_that_a_frozen_worker_missed_is_obeyed_when_it_thaws_X02),
        TEST(a_job_is_cancelled_while_its_worker_drains_X02),
        TEST(a_job_cancelled_with_no_worker_about_never_runs_X02),
        TEST(hung_jobs_give_their_slots_back_X11_F36),
        TEST(one_that_dies_or_fails_runs_as_often_as_it_may_be_tried_F35),
        TEST(a_silent_job_ends_though_its_lease_is_renewed_L09),
        TEST(nobody_renews_for_a_supervisor_that_is_killed_L09_F2),
        TEST(a_longer_time_that_was_asked_for_is_given_by_the_lease_too),
        TEST(a_command_runs_on_while_redis_is_away_for_less_than_its_lease),
        TEST(a_worker_whose_own_output_is_gone_goes_on_F41),
        TEST(a_handler_that_cannot_be_started_is_left_to_others_after_three_R10),
    };
    char remove[100];
    int failed;

    snprintf(folder, sizeof(folder), "/tmp/weir-test-marks.XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    failed = RIG_RUN("exec jobs", tests, handlers);
    snprintf(remove, sizeof(remove), "rm -rf %s", folder);
    return system(remove) != 0 ? 1 : failed;
}
