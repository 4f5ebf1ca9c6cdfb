/* Commands as jobs: pipes, ends, what they leave behind. No server needed. */
#include "support/test_program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/worker_process.h"
#include "worker/exec_config.h"
#include "worker/handler.h"
#include "worker/spawner.h"

#define SLOTS 4

struct scene {
    struct wr_slots *slots;
    struct wr_spawner *spawner;
    char mark[40]; /* an argument of sleep that nobody else uses */
    /* Of the next run. */
    struct wr_exec_run run;
    /* Of the last one. */
    struct wr_buf out, err;
    struct wr_exec_end end;
    enum weir_err rc;
    int64_t took_ms;
};

/* One spawner serves all tests, as it serves many jobs: what one leaves, another sees. */
static struct scene scene;

static int
start_all(void **state)
{
    struct weir_error err = {0};

    (void)state;
    setenv("WEIR_URL", "redis://:secret@nowhere", 1);
    setenv("WEIR_PASSWORD_FILE", "/secret", 1);
    setenv("REDISCLI_AUTH", "secret", 1);
    setenv("VALKEY_URL", "valkey://:secret@nowhere", 1);
    setenv("FRUIT", "pear", 1);
    scene.slots = wr_slots_new(SLOTS);
    if (wr_spawner_start(scene.slots, SLOTS, &scene.spawner, &err) != WEIR_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    wr_spawner_set_current(scene.spawner);
    return 0;
}

static int
stop_all(void **state)
{
    (void)state;
    wr_spawner_set_current(NULL);
    wr_spawner_stop(scene.spawner);
    wr_slots_free(scene.slots);
    wr_buf_fini(&scene.out);
    wr_buf_fini(&scene.err);
    return 0;
}

static int
set_up(void **state)
{
    static int count;

    scene.run = (struct wr_exec_run){
        .payload = {"", 0}, .kill_after_ms = 10000, .result_max = 65536};
    snprintf(scene.mark, sizeof(scene.mark), "3%d.%d", (int)getpid(), ++count);
    *state = &scene;
    return 0;
}

/* Answers what it printed. */
static const char *
run_argv(struct scene *s, const char *const *argv)
{
    static const char *const env[] = {"COLOUR=blue", NULL};
    int64_t start = wr_clock_ms();
    struct weir_error err = {0};

    wr_buf_clear(&s->out);
    wr_buf_clear(&s->err);
    s->run.argv = argv;
    s->run.env = env;
    s->rc = wr_spawner_run(s->spawner, 0, &s->run, NULL, &s->out, &s->err, &s->end, &err);
    s->took_ms = wr_clock_ms() - start;
    return s->out.ptr ? s->out.ptr : "";
}

#define RUN(s, ...) run_argv(s, (const char *const[]){__VA_ARGS__, NULL})
/* $1 is the mark. */
#define SH(s, script) RUN(s, "sh", "-c", script, "sh", (s)->mark)

static void
assert_exit(const struct scene *s, int code)
{
    assert_int_equal(s->rc, WEIR_OK);
    assert_int_equal(s->end.start_errno, 0);
    assert_int_equal(s->end.signal, 0);
    assert_int_equal(s->end.exit_code, code);
}

/* ---- what runs on this machine ---- */

static bool
file_has(const char *path, const char *word)
{
    char text[4096];
    FILE *f = fopen(path, "re");
    size_t n;

    if (!f)
        return false;
    n = fread(text, 1, sizeof(text), f);
    fclose(f);
    return memmem(text, n, word, strlen(word)) != NULL;
}

/* Processes with this word in their command line; zombies have none. */
static int
count_marked(const char *word)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    int n = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        char path[300];

        if (atoi(e->d_name) <= 0 || atoi(e->d_name) == getpid())
            continue;
        snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        n += file_has(path, word);
    }
    closedir(d);
    return n;
}

/* Children of the spawner, zombies too. */
static int
count_children(const struct scene *s)
{
    char path[64], line[4096], *at = line, *end;
    FILE *f;
    int n = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
             (int)wr_spawner_pid(s->spawner), (int)wr_spawner_pid(s->spawner));
    f = fopen(path, "re");
    assert_non_null(f);
    line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
    fclose(f);
    for (;; at = end, n++) {
        (void)strtol(at, &end, 10);
        if (end == at)
            return n;
    }
}

static long
peak_kib(const struct scene *s)
{
    char path[64], line[256];
    long kib = -1;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)wr_spawner_pid(s->spawner));
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    }
    fclose(f);
    return kib;
}

static size_t
count_descriptors(const struct scene *s)
{
    char path[64];
    DIR *d;
    size_t n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)wr_spawner_pid(s->spawner));
    d = opendir(path);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* ---- pipes ---- */

static void
what_it_prints_comes_back(void **state)
{
    struct scene *s = *state;

    assert_string_equal(SH(s, "echo out; echo err >&2"), "out\n");
    assert_exit(s, 0);
    assert_string_equal(s->err.ptr, "err\n");
    assert_int_equal(s->end.bytes_out, 4);
    assert_int_equal(s->end.bytes_err, 4);
    assert_false(s->end.out_truncated);
}

static void
a_payload_of_all_bytes_passes_unchanged(void **state)
{
    struct scene *s = *state;
    unsigned char bytes[256];

    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    s->run.payload = (struct wr_span){bytes, sizeof(bytes)};
    RUN(s, "cat");
    assert_exit(s, 0);
    assert_int_equal(s->out.len, sizeof(bytes));
    assert_memory_equal(s->out.ptr, bytes, sizeof(bytes));
    assert_int_equal(s->end.bytes_in, 256);
}

static void
without_a_payload_stdin_is_at_its_end_X12(void **state)
{
    struct scene *s = *state;

    s->run.timeout_ms = 5000;
    assert_string_equal(RUN(s, "cat"), "");
    assert_exit(s, 0);
    assert_string_equal(RUN(s, "readlink", "/proc/self/fd/0"), "/dev/null\n");
}

static char *
big(size_t len)
{
    char *bytes = malloc(len);

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    return bytes;
}

static void
a_large_payload_waits_for_a_command_that_prints_first(void **state)
{
    struct scene *s = *state;
    size_t len = 1 << 20;
    char *bytes = big(len);

    s->run.payload = (struct wr_span){bytes, len};
    s->run.result_max = 3 << 20;
    s->run.timeout_ms = 20000;
    SH(s, "head -c 1048576 /dev/zero; cat");
    assert_exit(s, 0);
    assert_int_equal(s->out.len, 2 * len);
    assert_int_equal(s->out.ptr[len - 1], 0);
    assert_memory_equal(s->out.ptr + len, bytes, len);
    free(bytes);
}

static void
a_command_that_never_reads_64_MiB_ends_well_X12(void **state)
{
    struct scene *s = *state;
    size_t len = 64 << 20;
    char *bytes = big(len);

    s->run.payload = (struct wr_span){bytes, len};
    s->run.timeout_ms = 20000;
    assert_string_equal(SH(s, "sleep 0.05; echo done"), "done\n");
    assert_exit(s, 0);
    assert_true(s->end.bytes_in < (int64_t)len);
    free(bytes);
}

static void
a_command_may_close_its_stdin(void **state)
{
    struct scene *s = *state;
    size_t len = 4 << 20;
    char *bytes = big(len);

    s->run.payload = (struct wr_span){bytes, len};
    s->run.timeout_ms = 20000;
    assert_string_equal(SH(s, "exec <&-; sleep 0.05; echo done"), "done\n");
    assert_exit(s, 0);
    free(bytes);
}

static void
a_flood_is_cut_and_takes_no_memory(void **state)
{
    struct scene *s = *state;
    long before = peak_kib(s);

    s->run.timeout_ms = 50000;
    SH(s, "head -c 100000000 /dev/zero; head -c 20000000 /dev/zero >&2; echo last >&2");
    assert_exit(s, 0);
    assert_int_equal(s->out.len, 65536);
    assert_true(s->end.out_truncated);
    assert_int_equal(s->end.bytes_out, 100000000);
    assert_int_equal(s->end.bytes_err, 20000005);
    assert_in_range(s->err.len, 60000, 65536);
    assert_non_null(memmem(s->err.ptr, s->err.len, "bytes left out ...]",
                           strlen("bytes left out ...]")));
    assert_memory_equal(s->err.ptr + s->err.len - 5, "last\n", 5);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(peak_kib(s) - before < 4096);
#else
    (void)before;
#endif
}

/* ---- ends ---- */

static void
exit_codes_and_signals_are_told(void **state)
{
    struct scene *s = *state;

    SH(s, "exit 3");
    assert_exit(s, 3);
    SH(s, "kill -SEGV $$");
    assert_int_equal(s->end.signal, SIGSEGV);
    assert_int_equal(s->end.exit_code, -1);
}

static void
one_that_ignores_SIGTERM_is_killed_X10(void **state)
{
    struct scene *s = *state;

    s->run.timeout_ms = 1000; /* by then it has set its trap */
    s->run.kill_after_ms = 300;
    SH(s, "trap '' TERM; while :; do sleep 0.05; done");
    assert_int_equal(s->end.signal, SIGKILL);
    assert_true(s->end.stop == WR_EXEC_TIMEOUT);
    assert_in_range(s->took_ms, 1300, 9000);
}

static void
one_that_obeys_SIGTERM_may_finish(void **state)
{
    struct scene *s = *state;

    s->run.timeout_ms = 1000; /* by then it has set its trap */
    SH(s, "trap 'echo bye; exit 4' TERM; while :; do sleep 0.02; done");
    assert_exit(s, 4);
    assert_true(s->end.stop == WR_EXEC_TIMEOUT);
    assert_string_equal(s->out.ptr, "bye\n");
}

static void
one_that_is_stopped_ends_too(void **state)
{
    struct scene *s = *state;

    s->run.timeout_ms = 200;
    SH(s, "kill -STOP $$");
    assert_int_equal(s->end.signal, SIGTERM);
    assert_true(s->took_ms < 5000);
}

static void
a_timeout_leaves_no_descendants_X03(void **state)
{
    struct scene *s = *state;

    s->run.timeout_ms = 200;
    s->run.kill_after_ms = 300;
    SH(s, "sleep $1 & sh -c \"sleep $1\" & wait");
    assert_true(s->end.stop == WR_EXEC_TIMEOUT);
    AWAIT(count_marked(s->mark) == 0);
}

/* ---- what is left behind ---- */

static void
a_child_left_behind_does_not_delay_the_answer_X05(void **state)
{
    struct scene *s = *state;

    bool at_once = false;

    for (int i = 0; i < 10 && !at_once; i++) { /* this machine may have been asleep */
        assert_string_equal(SH(s, "sleep $1 & echo ok"), "ok\n");
        assert_exit(s, 0);
        at_once = s->took_ms < 1000;
    }
    assert_true(at_once);
    AWAIT(count_marked(s->mark) == 0);
}

/* What it left behind has made its file. */
#define UNTIL_UP "until rm /tmp/weir-up-$1 2>/dev/null; do sleep 0.01; done; "

static void
nor_does_one_that_ignores_SIGTERM(void **state)
{
    struct scene *s = *state;

    assert_string_equal(
        SH(s, "(trap '' TERM; : >/tmp/weir-up-$1; exec sleep $1) & " UNTIL_UP "echo ok"),
        "ok\n");
    assert_true(s->end.wall_ms + 1000 > s->took_ms);
    AWAIT(count_marked(s->mark) == 0);
}

static void
a_child_left_behind_may_tidy_up(void **state)
{
    struct scene *s = *state;

    SH(s, "(trap 'sleep 0.1; echo tidy; exit' TERM; : >/tmp/weir-up-$1;"
          " while :; do sleep 0.01; done) & " UNTIL_UP "echo ok");
    assert_exit(s, 0);
    assert_string_equal(s->out.ptr, "ok\ntidy\n");
}

static void
a_daemon_in_its_own_session_is_killed_with_its_run(void **state)
{
    struct scene *s = *state;

    assert_string_equal(
        SH(s, "setsid sh -c \"setsid sleep $1 & sleep $1\" sh & sleep 0.1; echo ok"),
        "ok\n");
    assert_exit(s, 0);
    AWAIT(count_marked(s->mark) == 0);
}

static void
and_so_are_the_daemons_it_started(void **state)
{
    struct scene *s = *state;

    /* Nobody holds our pipes, so the answer comes at once; each of them becomes the
     * spawner's child only when the one before it has been killed. */
    SH(s, "setsid sh -c \"setsid sh -c 'setsid sleep $1 & sleep $1' & sleep $1\" "
          ">/dev/null 2>&1 & "
          "sleep 0.3");
    assert_exit(s, 0);
    AWAIT(count_marked(s->mark) == 0);
}

static void
so_is_one_that_wiped_its_environment(void **state)
{
    struct scene *s = *state;

    SH(s, "env -i setsid sleep $1 >/dev/null 2>&1 & sleep 0.1; echo ok");
    AWAIT(count_marked(s->mark) == 0);
}

struct other {
    struct scene *s;
    enum weir_err rc;
    struct wr_exec_end end;
    struct wr_buf out;
    char script[200];
};

static void *
run_other(void *arg)
{
    struct other *o = arg;
    const char *argv[] = {"sh", "-c", o->script, NULL};
    static const char *const env[] = {NULL};
    struct wr_buf err = {0};

    const struct wr_exec_run run = {
        .argv = argv, .env = env, .kill_after_ms = 10000, .result_max = 65536};

    o->rc = wr_spawner_run(o->s->spawner, 1, &run, NULL, &o->out, &err, &o->end, NULL);
    wr_buf_fini(&err);
    return NULL;
}

static void
the_daemons_of_other_runs_live_on(void **state)
{
    struct scene *s = *state;
    struct other o = {.s = s};
    pthread_t thread;

    /* Its parent ends at once: it becomes the spawner's child while its run goes on. */
    snprintf(o.script, sizeof(o.script),
             "(setsid sleep %s >/dev/null 2>&1 &); while :; do sleep 0.02; done",
             s->mark);
    assert_int_equal(pthread_create(&thread, NULL, run_other, &o), 0);
    AWAIT(count_marked(s->mark) ==
          2); /* the shell, whose script has it, and the daemon */
    for (int i = 0; i < 5; i++) {
        SH(s, "(setsid true &) ; true");
        assert_exit(s, 0);
    }
    assert_true(count_marked(s->mark) >= 2); /* 3 while a shell forks */
    wr_spawner_kill(s->spawner, 1, 1000);
    pthread_join(thread, NULL);
    assert_int_equal(o.rc, WEIR_OK);
    assert_int_equal(o.end.signal, SIGTERM);
    wr_buf_fini(&o.out);
    AWAIT(count_marked(s->mark) == 0);
}

/* In full 1000, by WEIR_ORPHAN_JOBS. */
static void
no_zombies_and_descriptors_are_left_by_many_jobs_X06(void **state)
{
    const char *given = getenv("WEIR_ORPHAN_JOBS");
    int n = given ? atoi(given) : 200;
    struct scene *s = *state;
    size_t before;

    SH(s, "true");
    before = count_descriptors(s);
    for (int i = 0; i < n; i++) {
        SH(s, "(sleep 0.01 &); (true &); true");
        assert_exit(s, 0);
    }
    AWAIT(count_children(s) == 0);
    assert_int_equal(count_descriptors(s), before);
}

/* ---- kills ---- */

struct killer {
    struct scene *s;
    int64_t kill_after_ms;
};

static void *
kill_when_it_runs(void *arg)
{
    struct killer *k = arg;

    while (count_marked(k->s->mark) == 0)
        poll(NULL, 0, 2);
    wr_spawner_kill(k->s->spawner, 0, k->kill_after_ms);
    return NULL;
}

static void
another_thread_can_kill_it(void **state)
{
    static const int64_t after[] = {0, 5000};
    static const int signals[] = {SIGKILL, SIGTERM};
    struct scene *s = *state;

    for (int i = 0; i < 2; i++) {
        struct killer k = {s, after[i]};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, kill_when_it_runs, &k), 0);
        RUN(s, "sleep", s->mark);
        pthread_join(thread, NULL);
        assert_int_equal(s->end.signal, signals[i]);
        assert_false(s->end.stop == WR_EXEC_TIMEOUT);
    }
}

static void
a_kill_before_the_start_is_not_missed(void **state)
{
    struct scene *s = *state;

    wr_spawner_arm(s->spawner, 0);
    wr_spawner_kill(s->spawner, 0, 0);
    RUN(s, "sleep", s->mark);
    assert_int_equal(s->end.signal, SIGKILL);
}

static void
a_kill_of_an_idle_slot_does_nothing_to_the_next_run(void **state)
{
    struct scene *s = *state;

    wr_spawner_kill(s->spawner, 0, 0);
    assert_string_equal(SH(s, "echo ok"), "ok\n");
    assert_exit(s, 0);
}

static void
the_page_names_the_process_group_while_it_runs(void **state)
{
    struct scene *s = *state;
    struct other o = {.s = s, .script = "while :; do sleep 0.02; done"};
    pthread_t thread;
    int pgid;

    assert_int_equal(pthread_create(&thread, NULL, run_other, &o), 0);
    AWAIT(atomic_load(&s->slots->slot[1].pgid) > 1);
    pgid = atomic_load(&s->slots->slot[1].pgid);
    AWAIT(getpgid(pgid) == pgid);
    assert_int_equal(getsid(pgid), pgid);
    assert_int_equal(kill(-pgid, SIGKILL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(o.end.signal, SIGKILL);
    assert_int_equal(atomic_load(&s->slots->slot[1].pgid), 0);
    wr_buf_fini(&o.out);
}

/* ---- commands that cannot start ---- */

static void
what_cannot_run_says_why_R10(void **state)
{
    struct scene *s = *state;
    char path[] = "/tmp/weir-spawner-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "echo never\n", 11), 11);
    close(fd);
    RUN(s, "/no/such");
    assert_int_equal(s->end.start_errno, ENOENT);
    assert_int_equal(s->end.exit_code, -1);
    RUN(s, "no-such-command-anywhere");
    assert_int_equal(s->end.start_errno, ENOENT);
    RUN(s, "");
    assert_int_equal(s->end.start_errno, ENOENT);
    RUN(s, "/tmp");
    assert_int_equal(s->end.start_errno, EACCES);
    RUN(s, path);
    assert_int_equal(s->end.start_errno, EACCES);
    chmod(path, 0700);
    RUN(s, path); /* no #! line, and no shell guesses */
    assert_int_equal(s->end.start_errno, ENOEXEC);
    assert_string_equal(s->out.ptr ? s->out.ptr : "", "");
    unlink(path);
    assert_int_equal(atomic_load(&s->slots->slot[0].pgid), 0);
    assert_string_equal(SH(s, "echo ok"), "ok\n");
}

static void
words_too_long_for_the_system_say_so_R10(void **state)
{
    struct scene *s = *state;
    size_t len = 3 << 20;
    char *word = malloc(len + 1);

    assert_non_null(word);
    memset(word, 'x', len);
    word[len] = '\0';
    RUN(s, "true", word);
    assert_int_equal(s->end.start_errno, E2BIG);
    free(word);
}

/* ---- what a command sees ---- */

static void
signals_are_all_at_their_defaults_S09(void **state)
{
    struct scene *s = *state;

    RUN(s, "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status");
    assert_string_equal(s->out.ptr,
                        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void
only_0_1_2_are_open_N16(void **state)
{
    struct scene *s = *state;

    /* 3 is what ls reads the folder with. */
    assert_string_equal(RUN(s, "ls", "/proc/self/fd"), "0\n1\n2\n3\n");
    assert_string_equal(
        SH(s, "for f in /proc/$$/fd/*; do case ${f##*/} in 0|1|2) ;; *) readlink $f;; "
              "esac; done; echo end"),
        "end\n");
}

static void
secrets_stay_here_and_the_rest_is_inherited(void **state)
{
    struct scene *s = *state;

    RUN(s, "env");
    assert_non_null(strstr(s->out.ptr, "FRUIT=pear\n"));
    assert_non_null(strstr(s->out.ptr, "COLOUR=blue\n"));
    assert_non_null(strstr(s->out.ptr, "PATH="));
    assert_null(strstr(s->out.ptr, "secret"));
    assert_null(strstr(s->out.ptr, "WEIR_URL"));
    assert_null(strstr(s->out.ptr, "REDIS"));
}

static void
it_leads_a_session_of_its_own(void **state)
{
    struct scene *s = *state;
    int pid = -1, pgrp = -2, sid = -3;

    RUN(s, "cut", "-d", " ", "-f", "1,5,6", "/proc/self/stat");
    assert_int_equal(sscanf(s->out.ptr, "%d %d %d", &pid, &pgrp, &sid), 3);
    assert_int_equal(pid, pgrp);
    assert_int_equal(pid, sid);
}

/* ---- as a handler ---- */

struct handled {
    struct weir_delivery d;
    pthread_mutex_t mu;
    enum weir_outcome outcome;
};

static void
handle(struct handled *h, const char *const *argv, int stop)
{
    struct weir_exec_options o = {WEIR_EXEC_OPTIONS_INIT, .argv = argv};
    struct wr_exec_config *config;
    struct wr_handler *handler;

    assert_int_equal(wr_exec_config_new(&o, &config, NULL), WEIR_OK);
    handler = wr_handler_exec_new("mail", config);
    assert_non_null(handler);
    wr_buf_fini(&h->d.result);
    wr_buf_fini(&h->d.log);
    *h = (struct handled){.mu = PTHREAD_MUTEX_INITIALIZER};
    h->d = (struct weir_delivery){
        .slot = 2,
        .queue = "letters",
        .id = "job-7",
        .type = "mail",
        .worker = "w-1",
        .record = {.max_retry = 3,
                   .timeout_ms = 1500,
                   .kill_after_ms = 100,
                   .enqueued_at_ms = 1796000000123,
                   .meta = wr_span_str("meta.trace-id=abc%20d meta.LD_PRELOAD=evil.so"),
                   .payload = wr_span_str("hello")},
        .state = {.attempts = 1, .deliveries = 5},
        .stop = stop,
        .delay_ms = -1,
        .mu = &h->mu,
    };
    h->outcome = handler->ops->run(handler, &h->d);
    handler->ops->free(handler);
}

#define HANDLE(h, ...) handle(h, (const char *const[]){__VA_ARGS__, NULL}, WR_STOP_NONE)

static void
the_exit_status_is_the_outcome(void **state)
{
    static const struct {
        const char *script;
        enum weir_outcome outcome;
        const char *error;
    } cases[] = {
        {"cat", WEIR_DONE, ""},
        {"exit 75", WEIR_SNOOZE, "exit 75"},
        {"echo bad input >&2; exit 65", WEIR_PERMANENT, "exit 65: bad input"},
        {"echo one >&2; echo two >&2; exit 3", WEIR_RETRY, "exit 3: two"},
        {"kill -SEGV $$", WEIR_RETRY, "killed by SIGSEGV"},
        {"sleep 100", WEIR_RETRY, "timeout after 1.5s"},
    };
    struct handled h = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        HANDLE(&h, "sh", "-c", cases[i].script);
        assert_int_equal(h.outcome, cases[i].outcome);
        if (!strstr(cases[i].script, "sleep"))
            assert_string_equal(h.d.error, cases[i].error);
        else
            assert_int_equal(strncmp(h.d.error, "timeout after 1", 15), 0);
        if (h.outcome == WEIR_DONE)
            assert_string_equal(h.d.result.ptr, "hello");
    }
    wr_buf_fini(&h.d.result);
    wr_buf_fini(&h.d.log);
}

static void
a_command_that_is_missing_is_named_R10(void **state)
{
    struct handled h = {0};

    (void)state;
    HANDLE(&h, "/no/such");
    assert_int_equal(h.outcome, WEIR_RETRY);
    assert_string_equal(h.d.error, "cannot run /no/such: No such file or directory");
    wr_buf_fini(&h.d.result);
    wr_buf_fini(&h.d.log);
}

static void
words_that_are_too_long_are_permanent_R10(void **state)
{
    struct handled h = {0};
    char *word = malloc(3000001);

    (void)state;
    assert_non_null(word);
    memset(word, 'x', 3000000);
    word[3000000] = '\0';
    HANDLE(&h, "true", word);
    assert_int_equal(h.outcome, WEIR_PERMANENT);
    assert_non_null(strstr(h.d.error, "too long"));
    free(word);
    wr_buf_fini(&h.d.result);
    wr_buf_fini(&h.d.log);
}

static void
the_facts_of_the_job_are_in_its_environment(void **state)
{
    static const char *const lines[] = {
        "WEIR_JOB_ID=job-7\n",
        "WEIR_JOB_TYPE=mail\n",
        "WEIR_QUEUE=letters\n",
        "WEIR_ATTEMPT=2\n",
        "WEIR_DELIVERY=5\n",
        "WEIR_MAX_ATTEMPTS=4\n",
        "WEIR_ENQUEUED_AT=1796000000\n",
        "WEIR_TIMEOUT_S=2\n",
        "WEIR_WORKER=w-1\n",
        "WEIR_META_TRACE_ID=abc d\n",
        "WEIR_META_LD_PRELOAD=evil.so\n",
        "WEIR_IDEMPOTENCY_KEY=job-7:",
        "WEIR_EXEC_PROTOCOL=1\n",
    };
    struct handled h = {0};

    (void)state;
    HANDLE(&h, "env");
    assert_int_equal(h.outcome, WEIR_DONE);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (!strstr(h.d.result.ptr, lines[i]))
            fail_msg("%s is missing", lines[i]);
    }
    assert_null(strstr(h.d.result.ptr, "\nLD_PRELOAD=evil"));
    assert_null(strstr(h.d.result.ptr, "WEIR_URL"));
    wr_buf_fini(&h.d.result);
    wr_buf_fini(&h.d.log);
}

static void
a_run_that_was_stopped_before_it_began_starts_nothing(void **state)
{
    char path[] = "/tmp/weir-spawner-XXXXXX";
    int fd = mkstemp(path);
    struct handled h = {0};

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    handle(&h, (const char *const[]){"rm", path, NULL}, WR_STOP_LOST);
    assert_int_equal(h.outcome, WEIR_RETRY);
    assert_int_equal(unlink(path), 0);
}

/* ---- the spawner's own end; each has one of its own ---- */

static void
start_own(struct scene *own, const char *mark)
{
    *own = (struct scene){.run = {.result_max = 65536, .kill_after_ms = 1000}};
    own->slots = wr_slots_new(SLOTS);
    snprintf(own->mark, sizeof(own->mark), "%s", mark);
    assert_int_equal(wr_spawner_start(own->slots, SLOTS, &own->spawner, NULL), WEIR_OK);
}

static void
end_own(struct scene *own)
{
    wr_slots_free(own->slots);
    wr_buf_fini(&own->out);
    wr_buf_fini(&own->err);
}

static void *
kill_spawner(void *arg)
{
    struct scene *own = arg;

    while (count_marked(own->mark) == 0)
        poll(NULL, 0, 2);
    kill(wr_spawner_pid(own->spawner), SIGKILL);
    return NULL;
}

static void
a_run_whose_spawner_is_killed_fails_and_its_command_dies(void **state)
{
    struct scene *s = *state, own;
    pthread_t thread;

    start_own(&own, s->mark);
    assert_int_equal(pthread_create(&thread, NULL, kill_spawner, &own), 0);
    RUN(&own, "sleep", own.mark);
    pthread_join(thread, NULL);
    assert_int_equal(own.rc, WEIR_E_BUG);
    AWAIT(count_marked(own.mark) == 0);
    RUN(&own, "true");
    assert_int_equal(own.rc, WEIR_E_BUG);
    wr_spawner_kill(own.spawner, 0, 0);
    wr_spawner_stop(own.spawner);
    end_own(&own);
}

static void
when_the_child_is_killed_all_that_ran_is_gone(void **state)
{
    struct scene *s = *state;
    int hold[2];
    pid_t pid;

    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct scene own;

        close(hold[1]);
        start_own(&own, s->mark);
        /* A copy of the sockets lives on elsewhere: their end does not come. */
        if (fork() == 0) {
            char byte;

            _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
        }
        SH(&own, "trap '' TERM; (setsid sleep $1 &); sleep $1");
        _exit(0);
    }
    AWAIT(count_marked(s->mark) >= 3);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    AWAIT(count_marked(s->mark) == 0);
    close(hold[0]);
    close(hold[1]);
}

/* In a process whose descriptors 0, 1, 2 are closed where mask says so. */
static _Noreturn void
run_without(int mask)
{
    struct scene own;

    for (int fd = 0; fd < 3; fd++) {
        if (mask & 1 << fd)
            close(fd);
    }
    start_own(&own, "1");
    SH(&own, "cat; echo err >&2");
    if (own.rc != WEIR_OK || own.end.exit_code != 0 || own.out.len != 0 ||
        own.err.len != 4)
        _exit(1);
    own.run.payload = wr_span_str("in");
    SH(&own, "cat; echo err >&2");
    _exit(own.rc == WEIR_OK && own.end.exit_code == 0 && own.out.len == 2 &&
                  own.err.len == 4
              ? 0
              : 2);
}

static void
missing_standard_descriptors_of_the_worker_do_no_harm(void **state)
{
    (void)state;
    for (int mask = 1; mask < 8; mask++) {
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0)
            run_without(mask);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

static void
without_descriptors_a_start_fails_and_the_next_works(void **state)
{
    struct scene *s = *state, own;
    struct rlimit limit;

    start_own(&own, s->mark);
    RUN(&own, "true");
    assert_int_equal(own.end.exit_code, 0);
    assert_int_equal(prlimit(wr_spawner_pid(own.spawner), RLIMIT_NOFILE, NULL, &limit),
                     0);
    assert_int_equal(prlimit(wr_spawner_pid(own.spawner), RLIMIT_NOFILE,
                             &(struct rlimit){count_descriptors(&own), limit.rlim_max},
                             NULL),
                     0);
    RUN(&own, "true");
    assert_int_equal(own.rc, WEIR_OK);
    assert_int_equal(own.end.start_errno, EMFILE);
    assert_int_equal(prlimit(wr_spawner_pid(own.spawner), RLIMIT_NOFILE, &limit, NULL),
                     0);
    RUN(&own, "true");
    assert_int_equal(own.end.start_errno, 0);
    assert_int_equal(own.end.exit_code, 0);
    wr_spawner_stop(own.spawner);
    end_own(&own);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_it_prints_comes_back),
        TEST(a_payload_of_all_bytes_passes_unchanged),
        TEST(without_a_payload_stdin_is_at_its_end_X12),
        TEST(a_large_payload_waits_for_a_command_that_prints_first),
        TEST(a_command_that_never_reads_64_MiB_ends_well_X12),
        TEST(a_command_may_close_its_stdin),
        TEST(a_flood_is_cut_and_takes_no_memory),
        TEST(exit_codes_and_signals_are_told),
        TEST(one_that_ignores_SIGTERM_is_killed_X10),
        TEST(one_that_obeys_SIGTERM_may_finish),
        TEST(one_that_is_stopped_ends_too),
        TEST(a_timeout_leaves_no_descendants_X03),
        TEST(a_child_left_behind_does_not_delay_the_answer_X05),
        TEST(nor_does_one_that_ignores_SIGTERM),
        TEST(a_child_left_behind_may_tidy_up),
        TEST(a_daemon_in_its_own_session_is_killed_with_its_run),
        TEST(and_so_are_the_daemons_it_started),
        TEST(so_is_one_that_wiped_its_environment),
        TEST(the_daemons_of_other_runs_live_on),
        TEST(no_zombies_and_descriptors_are_left_by_many_jobs_X06),
        TEST(another_thread_can_kill_it),
        TEST(a_kill_before_the_start_is_not_missed),
        TEST(a_kill_of_an_idle_slot_does_nothing_to_the_next_run),
        TEST(the_page_names_the_process_group_while_it_runs),
        TEST(what_cannot_run_says_why_R10),
        TEST(words_too_long_for_the_system_say_so_R10),
        TEST(signals_are_all_at_their_defaults_S09),
        TEST(only_0_1_2_are_open_N16),
        TEST(secrets_stay_here_and_the_rest_is_inherited),
        TEST(it_leads_a_session_of_its_own),
        TEST(the_exit_status_is_the_outcome),
        TEST(a_command_that_is_missing_is_named_R10),
        TEST(words_that_are_too_long_are_permanent_R10),
        TEST(the_facts_of_the_job_are_in_its_environment),
        TEST(a_run_that_was_stopped_before_it_began_starts_nothing),
        TEST(a_run_whose_spawner_is_killed_fails_and_its_command_dies),
        TEST(when_the_child_is_killed_all_that_ran_is_gone),
        TEST(missing_standard_descriptors_of_the_worker_do_no_harm),
        TEST(without_descriptors_a_start_fails_and_the_next_works),
    };

    signal(SIGPIPE, SIG_IGN); /* as a worker child has it */
    return RUN_TESTS("spawner", tests, start_all, stop_all);
}
