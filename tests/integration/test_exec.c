/* The exec protocol, as one attempt of a handler sees it: environment, folders, control
 * lines, results, limits, ends. Real commands, no server. */
#include "support/test_program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/worker_process.h"
#include "worker/exec_config.h"
#include "worker/exec_folder.h"
#include "worker/handler.h"
#include "worker/spawner.h"

#define SLOTS 4

static struct wr_slots *slots;
static struct wr_spawner *spawner;
static char tmp[64]; /* TMPDIR of all: what is left in it is ours */

/* Of the next attempt, and what became of it. */
static struct {
    struct weir_delivery d;
    pthread_mutex_t mu;
    enum weir_outcome outcome;
    int64_t took_ms;
} a;

static int
start_all(void **state)
{
    struct weir_error err = {0};

    (void)state;
    snprintf(tmp, sizeof(tmp), "/tmp/weir-test-exec.XXXXXX");
    if (!mkdtemp(tmp) || chmod(tmp, 0755) != 0)
        return -1;
    setenv("TMPDIR", tmp, 1);
    setenv("WEIR_URL", "redis://:secret@nowhere", 1);
    setenv("REDISCLI_AUTH", "secret", 1);
    setenv("FRUIT", "pear", 1);
    setenv("NUT", "hazel", 1);
    slots = wr_slots_new(SLOTS);
    if (wr_spawner_start(slots, SLOTS, &spawner, &err) != WEIR_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    wr_spawner_set_current(spawner);
    return 0;
}

static int
count_entries(const char *folder, const char *prefix)
{
    DIR *dir = opendir(folder);
    struct dirent *e;
    int n = 0;

    while (dir && (e = readdir(dir)) != NULL)
        n += e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    if (dir)
        closedir(dir);
    return n;
}

static int
stop_all(void **state)
{
    int left;

    (void)state;
    wr_spawner_set_current(NULL);
    wr_spawner_stop(spawner);
    wr_slots_free(slots);
    wr_buf_fini(&a.d.result);
    wr_buf_fini(&a.d.log);
    wr_buf_fini(&a.d.follow);
    wr_buf_fini(&a.d.meta_value);
    left = count_entries(tmp, "weir-exec.");
    wr_folder_remove(tmp);
    return left; /* the base folder went with its spawner */
}

static int
fresh(void **state)
{
    (void)state;
    wr_buf_fini(&a.d.result);
    wr_buf_fini(&a.d.log);
    wr_buf_fini(&a.d.follow);
    a.mu = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    a.d = (struct weir_delivery){
        .slot = 1,
        .queue = "letters",
        .id = "job-7",
        .type = "mail",
        .worker = "w-1",
        .name_space = "weir",
        .record = {.max_retry = 3,
                   .timeout_ms = 20000,
                   .kill_after_ms = 300,
                   .enqueued_at_ms = 1796000000123,
                   .payload = wr_span_str("hello")},
        .state = {.attempts = 1, .deliveries = 5},
        .delay_ms = -1,
        .mu = &a.mu,
    };
    return 0;
}

static struct wr_handler *
handler_of(const struct weir_exec_options *o)
{
    struct weir_error err = {0};
    struct wr_exec_config *config;

    if (wr_exec_config_new(o, &config, &err) != WEIR_OK)
        fail_msg("%s", err.text);
    return wr_handler_exec_new("mail", config);
}

static void
attempt_by(struct wr_handler *handler)
{
    int64_t start = wr_clock_ms();

    wr_buf_clear(&a.d.result);
    a.d.error[0] = '\0';
    a.d.delay_ms = -1;
    a.d.not_taken = false;
    a.outcome = handler->ops->run(handler, &a.d);
    a.took_ms = wr_clock_ms() - start;
}

/* Answers the result. */
static const char *
attempt(const struct weir_exec_options *o)
{
    struct wr_handler *handler = handler_of(o);

    attempt_by(handler);
    handler->ops->free(handler);
    return wr_buf_span(&a.d.result).ptr;
}

#define WITH(...) (&(struct weir_exec_options){WEIR_EXEC_OPTIONS_INIT, __VA_ARGS__})
#define ARGV(...)                 \
    .argv = (const char *const[]) \
    {                             \
        __VA_ARGS__, NULL         \
    }
/* A shell's line, with more options after it. */
#define SH_WITH(script, ...)                                    \
    attempt(&(struct weir_exec_options){WEIR_EXEC_OPTIONS_INIT, \
                                        ARGV("sh", "-c", script), __VA_ARGS__})
#define SH(script) attempt(WITH(ARGV("sh", "-c", script)))

static const char *
log_text(void)
{
    return wr_buf_span(&a.d.log).ptr;
}

static void
assert_outcome(enum weir_outcome outcome, const char *error)
{
    if (a.outcome != outcome || strcmp(a.d.error, error) != 0)
        fail_msg("outcome %d (%s), log: %s", (int)a.outcome, a.d.error, log_text());
}

static void
assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

static void
assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" is in: %s", part, text);
}

static bool
is_root(void)
{
    return geteuid() == 0;
}

static bool
has_program(const char *name)
{
    char script[100];

    snprintf(script, sizeof(script), "command -v %s", name);
    SH_WITH(script, .result = WEIR_EXEC_NONE);
    if (a.outcome != WEIR_DONE)
        print_message("skipped: there is no %s here\n", name);
    fresh(NULL);
    return a.outcome == WEIR_DONE;
}

/* ---- environment ---- */

static void
the_environment_names_the_job_X14(void **state)
{
    const char *text;
    char line[80];

    (void)state;
    snprintf(a.d.last_error, sizeof(a.d.last_error), "exit 3: disk full");
    a.d.record.meta = wr_span_str(
        "meta.LD_PRELOAD=evil.so meta.path=%2fevil meta.tags=red meta.traceparent="
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    text = SH("env");
    assert_has(text, "WEIR_JOB_ID=job-7\n");
    assert_has(text, "WEIR_JOB_TYPE=mail\n");
    assert_has(text, "WEIR_QUEUE=letters\n");
    assert_has(text, "WEIR_NAMESPACE=weir\n");
    assert_has(text, "WEIR_ATTEMPT=2\n");
    assert_has(text, "WEIR_MAX_ATTEMPTS=4\n");
    assert_has(text, "WEIR_ENQUEUED_AT=1796000000\n");
    assert_has(text, "WEIR_TIMEOUT_S=20\n");
    assert_has(text, "WEIR_LAST_ERROR=exit 3: disk full\n");
    assert_has(text, "WEIR_TAGS=red\n");
    assert_has(text, "WEIR_WORKER=w-1\n");
    assert_has(text, "WEIR_IDEMPOTENCY_KEY=job-7:1796000000123\n");
    assert_has(text, "WEIR_EXEC_PROTOCOL=1\n");
    assert_has(text, "WEIR_CONTROL_FD=3\n");
    assert_has(text, "WEIR_CONTROL_SOCKET=/");
    assert_has(text, "WEIR_META_LD_PRELOAD=evil.so\n");
    assert_has(text, "WEIR_META_PATH=/evil\n");
    assert_has(text, "\nTRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-"
                     "b7ad6b7169203331-01\n");
    assert_has_not(text, "\nLD_PRELOAD");
    assert_has_not(text, "\nPATH=/evil");
    assert_has_not(text, "secret");
    snprintf(line, sizeof(line), "WEIR_TMPDIR=%s/weir-exec.", tmp);
    assert_has(text, line);
    SH("test $WEIR_DEADLINE -ge $((WEIR_STARTED_AT + 19)) &&"
       " test $WEIR_DEADLINE -le $((WEIR_STARTED_AT + 21))");
    assert_outcome(WEIR_DONE, "");
}

static void
a_clean_environment_has_what_was_named_alone_X14(void **state)
{
    static const char *const pass[] = {"NU*", "WEIR_URL", "REDISCLI_AUTH", NULL},
                             *const env[] = {"COLOUR=blue", "LANG=C", NULL};
    const char *text = attempt(WITH(ARGV("env"), .clean_env = true));

    (void)state;
    assert_has(text, "PATH=");
    assert_has(text, "WEIR_JOB_ID=job-7\n");
    assert_has_not(text, "FRUIT");
    assert_has_not(text, "NUT");
    text = attempt(WITH(ARGV("env"), .clean_env = true, .pass_env = pass, .env = env));
    assert_has(text, "NUT=hazel\n");
    assert_has(text, "COLOUR=blue\n");
    assert_has(text, "LANG=C\n");
    assert_has_not(text, "FRUIT");
    assert_has_not(text, "secret");
    text = attempt(WITH(ARGV("env"), .env = (const char *const[]){"FRUIT=fig", NULL}));
    assert_has(text, "FRUIT=fig\n");
    assert_has_not(text, "FRUIT=pear");
    assert_has(text, "NUT=hazel\n");
}

static void
odd_bytes_in_names_reach_the_command_as_they_are(void **state)
{
    (void)state;
    a.d.id = "a\xff b'\"$(touch x)";
    a.d.record.meta = wr_span_str("meta.k=a%0ab%20c");
    assert_string_equal(SH("printf %s \"$WEIR_JOB_ID\""), "a\xff b'\"$(touch x)");
    assert_string_equal(SH("printf %s \"$WEIR_META_K\""), "a\nb c");
}

static void
what_makes_no_sense_is_refused_when_it_is_registered(void **state)
{
    const struct {
        struct weir_exec_options o;
        const char *text;
    } rows[] = {
        {{WEIR_EXEC_OPTIONS_INIT}, "command: it has no name"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("")}, "command: it has no name"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a", "b"), .shell = true},
         "command: with shell, argv is one string"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a"), .cwd = "tmp"},
         "command: cwd must begin with /"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a"), .env = (const char *const[]){"A", NULL}},
         "command: env is NAME=VALUE"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a"),
          .env = (const char *const[]){"WEIR_URL=x", NULL}},
         "command: env WEIR_URL: names that begin with WEIR_, REDIS or VALKEY are not "
         "passed"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a"), .user = "nobody-has-this-name"},
         is_root() ? "command: no such user: nobody-has-this-name"
                   : "command: user and group need a worker that runs as root"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a"), .result_max = 65537},
         "command: result_max: at most 65536"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a"), .rlimit_cpu = -2},
         "command: a limit is a number, or unlimited"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a"), .set_umask = true, .umask = 01000},
         "command: umask: 0 to 0777"},
        {{WEIR_EXEC_OPTIONS_INIT, ARGV("a"), .exits_n = 1,
          .exits = (const struct weir_exec_exit[]){{3, 2, WEIR_DONE}}},
         "command: exit statuses are ranges from 0 to 255"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wr_exec_config *config = NULL;
        struct weir_error err = {0};

        assert_int_equal(wr_exec_config_new(&rows[i].o, &config, &err), WEIR_E_ARG);
        assert_string_equal(err.text, rows[i].text);
        assert_null(config);
    }
}

/* ---- folders ---- */

static void
each_attempt_has_a_private_folder_that_is_removed_after_it(void **state)
{
    char folder[200];
    struct stat st;

    (void)state;
    SH("test \"$PWD\" = \"$WEIR_TMPDIR\" && test -z \"$(ls -A)\" &&"
       " stat -c %a . && echo x >f && mkdir -p d/e && ln -s / d/root && chmod 0 d &&"
       " touch .hidden -- -rf && printf %s \"$PWD\"");
    assert_outcome(WEIR_DONE, "");
    assert_int_equal(strncmp(a.d.result.ptr, "700\n", 4), 0);
    snprintf(folder, sizeof(folder), "%s", a.d.result.ptr + 4);
    assert_int_equal(stat(folder, &st), -1);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(SH_WITH("pwd; test -d $WEIR_TMPDIR", .cwd = "/"), "/\n");
    assert_outcome(WEIR_DONE, "");
}

/* Deeper than paths and stacks are: in full 10000, by WEIR_DEPTH. */
static void
a_very_deep_folder_is_removed(void **state)
{
    const char *depth = getenv("WEIR_DEPTH");
    char script[160];
    struct stat st;

    (void)state;
    if (!has_program("python3"))
        skip();
    snprintf(script, sizeof(script),
             "import os\n"
             "print(os.getcwd(), end='')\n"
             "for i in range(%d): os.mkdir('d'); os.chdir('d')\n",
             depth ? atoi(depth) : 2500);
    attempt(WITH(ARGV("python3", "-c", script)));
    assert_outcome(WEIR_DONE, "");
    assert_int_equal(stat(a.d.result.ptr, &st), -1);
    assert_int_equal(errno, ENOENT);
}

static void
the_folder_of_a_failure_is_kept_when_asked_for(void **state)
{
    char path[300], *at;

    (void)state;
    SH_WITH("echo 1 >f; exit 0", .keep_failed_dir = true);
    assert_int_equal(count_entries(tmp, "weir-kept"), 0);
    SH_WITH("echo 1 >f; echo oops >&2; exit 1", .keep_failed_dir = true);
    assert_outcome(WEIR_RETRY, "exit 1: oops");
    at = strstr(log_text(), "[weir] working folder kept: ");
    assert_non_null(at);
    snprintf(path, sizeof(path), "%.*s/f", (int)strcspn(at + 28, "\n"), at + 28);
    assert_int_equal(access(path, R_OK), 0);
}

static void
the_folder_of_a_dead_worker_is_removed_by_the_next(void **state)
{
    char base[300], other[300], inside[320];
    int lock = -1, second = -1;

    (void)state;
    assert_true(wr_folder_make_base(base, sizeof(base), &lock));
    snprintf(inside, sizeof(inside), "%s/1", base);
    assert_int_equal(wr_folder_make(inside, (uid_t)-1, (gid_t)-1), 0);
    assert_true(wr_folder_make_base(other, sizeof(other), &second));
    assert_int_equal(access(inside, F_OK), 0); /* its worker lives */
    close(second);
    wr_folder_remove(other);
    close(lock); /* as the kernel does when it dies */
    assert_true(wr_folder_make_base(other, sizeof(other), &second));
    assert_int_equal(access(base, F_OK), -1);
    assert_int_equal(access(wr_spawner_folder(spawner), F_OK), 0);
    close(second);
    wr_folder_remove(other);
}

static void
a_base_folder_that_was_tidied_away_is_made_again_F41(void **state)
{
    char base[300], other[300];
    int lock = -1;

    (void)state;
    snprintf(base, sizeof(base), "%s", wr_spawner_folder(spawner));
    assert_true(wr_folder_remove(base));
    SH("pwd; echo 'progress 5' >&3");
    assert_outcome(WEIR_DONE, "");
    assert_int_equal(strncmp(a.d.result.ptr, base, strlen(base)), 0);
    SH("test -S \"$WEIR_CONTROL_SOCKET\""); /* at the latest with the next */
    assert_outcome(WEIR_DONE, "");
    assert_true(wr_folder_make_base(other, sizeof(other), &lock));
    assert_int_equal(access(base, F_OK), 0); /* its lock holds */
    close(lock);
    wr_folder_remove(other);
}

/* ---- control lines ---- */

static void
progress_reaches_the_delivery_while_it_runs(void **state)
{
    (void)state;
    SH("echo 'progress 3/4 pages' >&3");
    assert_outcome(WEIR_DONE, "");
    assert_string_equal(a.d.progress, "75 3/4 pages");
    assert_string_equal(a.d.exec.progress, "75 3/4 pages");
    SH("echo 'progress 3/4 stage=up%20load pages' >&3");
    assert_string_equal(a.d.progress, "75 stage=up%20load 3/4 pages");
    SH("i=0; while [ $i -lt 2000 ]; do echo progress $i/2000; i=$((i+1)); done >&3;"
       " printf 'progress 99 last one' >&3");
    assert_outcome(WEIR_DONE, "");
    assert_string_equal(a.d.exec.progress, "99 last one"); /* also without a newline */
    assert_int_equal(a.d.exec.lines, 2001);
}

static void
notes_and_levels_stand_in_the_log(void **state)
{
    (void)state;
    SH("echo one >&2; sleep 0.05; echo 'note two' >&3; sleep 0.05;"
       " echo 'level warn three' >&3; sleep 0.05; echo four >&2");
    assert_outcome(WEIR_DONE, "");
    assert_string_equal(log_text(), "one\ntwo\n[warn] three\nfour\n");
    assert_int_equal(a.d.exec.bytes_err, 9);
}

static void
what_it_says_wins_over_its_exit_status_R08(void **state)
{
    static const struct {
        const char *script, *error;
        enum weir_outcome outcome;
        int64_t delay_ms;
    } rows[] = {
        {"echo 'snooze 600 upstream down' >&3", "upstream down", WEIR_SNOOZE, 600000},
        {"echo snooze >&3; exit 3", "its command said so", WEIR_SNOOZE, 30000},
        {"echo 'permanent no such month' >&3; exit 75", "no such month", WEIR_PERMANENT,
         -1},
        {"echo 'retry 30 busy' >&3", "busy", WEIR_RETRY, 30000},
        {"echo 'retry busy' >&3; exit 65", "busy", WEIR_RETRY, -1},
        {"printf 'permanent a\\nretry 1 b\\nsnooze 2 c' >&3", "c", WEIR_SNOOZE, 2000},
        {"echo 'permanent it broke' >&3; kill -SEGV $$", "it broke", WEIR_PERMANENT, -1},
        {"echo 'error the moon' >&3; echo sun >&2; exit 4", "exit 4: the moon",
         WEIR_RETRY, -1},
        {"echo 'error the moon' >&3", "", WEIR_DONE, -1},
        {"echo 'success' >&3; exit 4", "exit 4", WEIR_RETRY, -1},
        {"echo 'teleport 12' >&3", "", WEIR_DONE, -1},
        {"head -c 5000 /dev/zero | tr '\\0' x >&3; echo >&3; echo 'snooze 1 after' >&3",
         "after", WEIR_SNOOZE, 1000},
        {"echo 'push {}' >&3", "push 1: type: 1 to 128 bytes, no control characters",
         WEIR_RETRY, -1},
        {"echo 'push {\"type\":\"t\",\"size\":1}' >&3",
         "push 1: no member \"size\" is known", WEIR_RETRY, -1},
        {"echo 'push {\"type\":\"t\"}' >&3; exit 4", "exit 4", WEIR_RETRY, -1},
        {"echo 'push {\"type\":\"t\",\"payload\":\"x\"}' >&3", "", WEIR_DONE, -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SH(rows[i].script);
        assert_outcome(rows[i].outcome, rows[i].error);
        assert_int_equal(a.d.delay_ms, rows[i].delay_ms);
    }
}

static void
a_command_that_closed_3_speaks_by_datagrams(void **state)
{
    (void)state;
    if (!has_program("python3"))
        skip();
    attempt(WITH(ARGV("python3", "-c",
                      "import os, socket\n"
                      "os.close(3)\n"
                      "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                      "s.connect(os.environ['WEIR_CONTROL_SOCKET'])\n"
                      "s.send(b'progress 10 half\\nnote by datagram')\n"
                      "s.send(b'snooze 5 later')\n")));
    assert_outcome(WEIR_SNOOZE, "later");
    assert_int_equal(a.d.delay_ms, 5000);
    assert_string_equal(a.d.exec.progress, "10 half");
    assert_string_equal(log_text(), "by datagram\n");
}

static void
what_a_late_descendant_sends_does_not_count_for_the_next(void **state)
{
    int pid;

    (void)state;
    if (!has_program("python3"))
        skip();
    /* It knows the name of its run's socket and outlives it. */
    attempt(WITH(ARGV("python3", "-c",
                      "import os, socket, time\n"
                      "pid = os.fork()\n"
                      "if pid: print(pid); os._exit(0)\n"
                      "for i in range(4): os.close(i)\n"
                      "while True:\n"
                      "    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                      "    try: s.sendto(b'permanent a ghost',\n"
                      "                  os.environ['WEIR_CONTROL_SOCKET'])\n"
                      "    except OSError: pass\n"
                      "    s.close(); time.sleep(0.005)\n"),
                 .keep_stragglers = true));
    pid = atoi(wr_buf_span(&a.d.result).ptr);
    assert_true(pid > 1);
    for (int i = 0; i < 3; i++) {
        SH("sleep 0.1");
        assert_outcome(WEIR_DONE, "");
    }
    kill(pid, SIGKILL);
}

static void
extend_lengthens_the_timeout_and_no_more(void **state)
{
    (void)state;
    a.d.record.timeout_ms = 1500; /* a shell starts in less, on a busy machine too */
    SH("echo 'extend 30' >&3; sleep 2; echo ok");
    assert_outcome(WEIR_DONE, "");
    assert_in_range(a.d.limit_ms, 30000, 32000);
    a.d.limit_ms = 0;
    SH("echo 'extend 2.5' >&3; sleep 60");
    assert_outcome(WEIR_RETRY, a.d.error);
    assert_in_range(a.d.limit_ms, 2500, a.took_ms);
    a.d.limit_ms = 0;
    SH("echo 'extend 0.001' >&3; sleep 60"); /* sooner than it may run already */
    assert_outcome(WEIR_RETRY, "timeout after 1.5s");
}

/* ---- results ---- */

static void
the_result_is_what_the_handler_says_it_is(void **state)
{
    static const struct {
        const char *script;
        enum weir_exec_result how;
        const char *result, *log;
    } rows[] = {
        {"echo a; echo b; echo e >&2", WEIR_EXEC_STDOUT, "a\nb\n", "e\n"},
        {"echo a; echo b", WEIR_EXEC_NONE, "", "a\nb\n"},
        {"echo a; echo b; echo", WEIR_EXEC_LAST_LINE, "b", ""},
        {"printf 'a\\nb'", WEIR_EXEC_LAST_LINE, "b", ""},
        {"true", WEIR_EXEC_LAST_LINE, "", ""},
        {"yes | head -100000; echo end", WEIR_EXEC_LAST_LINE, "end", ""},
        {"printf ' {\"a\":[1,2,{}],\"b\":1e999}\\n'", WEIR_EXEC_JSON,
         " {\"a\":[1,2,{}],\"b\":1e99}\n", ""},
        {"echo 12", WEIR_EXEC_JSON, "12\n", ""},
        {"echo from-stdout; echo 17 >f; echo 'result-file f' >&3", WEIR_EXEC_JSON, "17\n",
         ""},
        {"echo x >f; echo \"result-file $PWD/f\" >&3", WEIR_EXEC_STDOUT, "x\n", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(rows[i].script, "1e999"))
            SH_WITH("printf ' {\"a\":[1,2,{}],\"b\":1e99}\\n'", .result = rows[i].how);
        else
            SH_WITH(rows[i].script, .result = rows[i].how);
        assert_outcome(WEIR_DONE, "");
        assert_string_equal(wr_buf_span(&a.d.result).ptr, rows[i].result);
        assert_string_equal(log_text(), rows[i].log);
    }
}

static void
a_result_that_is_no_JSON_fails_the_attempt(void **state)
{
    static const char *const scripts[] = {"true",
                                          "echo",
                                          "echo '{\"a\":}'",
                                          "echo '{} {}'",
                                          "echo '[1,]'",
                                          "printf '\"\\377\"'",
                                          "yes 1 | head -c 70000"};

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        SH_WITH(scripts[i], .result = WEIR_EXEC_JSON);
        assert_int_equal(a.outcome, WEIR_RETRY);
        assert_int_equal(strncmp(a.d.error, "E_RESULT_NOT_JSON: ", 19), 0);
    }
}

static void
a_result_file_is_read_with_the_rights_of_its_owner(void **state)
{
    static const char *const scripts[] = {
        "echo 'result-file none' >&3", "echo 'result-file .' >&3",
        "mkfifo p; echo 'result-file p' >&3",
        "ln -s /etc/passwd l; echo 'result-file l' >&3",
        "head -c 70000 /dev/zero >f; echo 'result-file f' >&3"};

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        SH(scripts[i]);
        assert_int_equal(a.outcome, WEIR_RETRY);
        assert_int_equal(strncmp(a.d.error, "result-file ", 12), 0);
        assert_int_equal(a.d.result.len, 0);
    }
    if (!is_root())
        skip();
    SH_WITH("echo 'result-file /etc/shadow' >&3", .user = "nobody");
    assert_outcome(WEIR_RETRY, "result-file /etc/shadow: Operation not permitted");
    SH_WITH("echo mine >f; echo 'result-file f' >&3", .user = "nobody");
    assert_outcome(WEIR_DONE, "");
    assert_string_equal(a.d.result.ptr, "mine\n");
}

static void
a_long_output_is_cut_and_said_to_be(void **state)
{
    (void)state;
    SH_WITH("head -c 100 /dev/zero", .result_max = 10);
    assert_outcome(WEIR_DONE, "");
    assert_int_equal(a.d.result.len, 10);
    assert_int_equal(a.d.exec.bytes_out, 100);
    assert_true(a.d.exec.out_truncated);
    assert_false(a.d.exec.err_truncated);
    SH_WITH("head -c 300000 /dev/zero >&2", .result = WEIR_EXEC_NONE);
    assert_true(a.d.exec.err_truncated);
    assert_int_equal(a.d.exec.bytes_err, 300000);
    assert_true(a.d.log.len <= 65536);
    assert_non_null(memmem(a.d.log.ptr, a.d.log.len, " bytes left out ...]", 20));
}

/* GiB by WEIR_FLOOD_MIB=10240; 200 MiB say as much about memory. */
static void
a_flood_of_both_outputs_blocks_nothing_F39(void **state)
{
    const char *given = getenv("WEIR_FLOOD_MIB");
    int mib = given ? atoi(given) : 200;
    char script[200], path[64];
    long before, after;

    (void)state;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)wr_spawner_pid(spawner));
    SH("true");
    FILE *f = fopen(path, "re");
    assert_int_equal(fscanf(f, "%*d %ld", &before), 1);
    fclose(f);
    snprintf(script, sizeof(script),
             "exec <&-; head -c %dM /dev/urandom & head -c %dM /dev/zero >&2; wait",
             mib / 2, mib / 2);
    a.d.record.timeout_ms = 0;
    SH(script);
    assert_outcome(WEIR_DONE, "");
    assert_int_equal(a.d.result.len, 65536);
    assert_true(a.d.log.len <= 65536);
    assert_int_equal(a.d.exec.bytes_out + a.d.exec.bytes_err,
                     (int64_t)(mib / 2) * 2 * 1048576);
    f = fopen(path, "re");
    assert_int_equal(fscanf(f, "%*d %ld", &after), 1);
    fclose(f);
    assert_true((after - before) * getpagesize() < 4 * 1048576);
}

/* ---- ends ---- */

static void
exit_rules_are_tried_in_order_R08(void **state)
{
    static const struct weir_exec_exit rules[] = {{24, 24, WEIR_DONE},
                                                  {20, 30, WEIR_SNOOZE},
                                                  {2, 2, WEIR_PERMANENT},
                                                  {65, 65, WEIR_RETRY},
                                                  {127, 127, WEIR_PERMANENT}};
    static const struct {
        int status;
        enum weir_outcome outcome;
    } rows[] = {{0, WEIR_DONE},      {24, WEIR_DONE},   {23, WEIR_SNOOZE},
                {2, WEIR_PERMANENT}, {65, WEIR_RETRY},  {75, WEIR_SNOOZE},
                {1, WEIR_RETRY},     {255, WEIR_RETRY}, {127, WEIR_PERMANENT}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char script[20];

        snprintf(script, sizeof(script), "exit %d", rows[i].status);
        SH_WITH(script, .exits = rules, .exits_n = 5, .snooze_ms = 7000);
        assert_int_equal(a.outcome, rows[i].outcome);
        assert_int_equal(a.d.delay_ms, a.outcome == WEIR_SNOOZE ? 7000 : -1);
    }
}

static void
one_that_is_silent_too_long_is_stopped_L09(void **state)
{
    (void)state;
    SH_WITH("echo a; exec sleep 60", .idle_timeout_ms = 400);
    assert_outcome(WEIR_RETRY, "timeout: silent for 400ms");
    assert_int_equal(a.d.exec.stop, WR_EXEC_IDLE);
    assert_in_range(a.took_ms, 400, 5000);
    SH_WITH("for i in 1 2 3 4 5; do sleep 0.5; echo heartbeat >&3; done",
            .idle_timeout_ms = 2000);
    assert_outcome(WEIR_DONE, "");
    SH_WITH("for i in 1 2 3 4 5; do sleep 0.5; echo $i; done", .idle_timeout_ms = 2000);
    assert_outcome(WEIR_DONE, "");
}

static void
the_shorter_timeout_of_handler_and_job_counts_X11(void **state)
{
    (void)state;
    SH_WITH("sleep 60", .timeout_ms = 300);
    assert_outcome(WEIR_RETRY, "timeout after 300ms");
    a.d.record.timeout_ms = 200;
    SH_WITH("sleep 60", .timeout_ms = 30000);
    assert_outcome(WEIR_RETRY, "timeout after 200ms");
}

static void
the_stop_signal_is_the_handler_s_and_SIGKILL_follows_X10(void **state)
{
    (void)state;
    SH_WITH("trap 'echo int; exit 3' INT; while :; do sleep 0.02; done",
            .timeout_ms = 1000, .stop_signal = SIGINT, .kill_after_ms = 10000);
    assert_outcome(WEIR_RETRY, "timeout after 1.0s");
    assert_int_equal(a.d.exec.exit_code, 3);
    SH_WITH("trap '' TERM; while :; do sleep 0.02; done", .timeout_ms = 1000,
            .kill_after_ms = 200);
    assert_int_equal(a.d.exec.signal, SIGKILL);
    assert_in_range(a.took_ms, 1200, 9000);
}

/* Two that stay, one in a session of its own; true if the answer came sooner than it
 * would from waiting for them. */
static bool
leave_two_behind(int pids[2])
{
    char script[300];

    snprintf(script, sizeof(script),
             "setsid sleep 31%d.5 >/dev/null 2>&1 3>&- & echo $!;"
             " sleep 31%d.5 >/dev/null 2>&1 3>&- & echo $!; sleep 0.1",
             (int)getpid(), (int)getpid());
    SH_WITH(script, .keep_stragglers = true);
    assert_outcome(WEIR_DONE, "");
    assert_int_equal(sscanf(a.d.result.ptr, "%d %d", &pids[0], &pids[1]), 2);
    return a.took_ms - a.d.exec.wall_ms < 600; /* what is left gets 0.7 s */
}

static void
stragglers_may_stay_when_the_handler_says_so_X05(void **state)
{
    int pids[10][2], n = 0;
    bool at_once = false;

    (void)state;
    while (!at_once && n < 10) /* this machine may have been asleep */
        at_once = leave_two_behind(pids[n++]);
    SH("sleep 0.1"); /* the ends of others do not touch them */
    for (int i = 0; i < 2 * n; i++) {
        assert_true(process_lives(pids[i / 2][i % 2]));
        kill(pids[i / 2][i % 2], SIGKILL);
        AWAIT(!process_lives(pids[i / 2][i % 2]));
    }
    assert_true(at_once);
}

static void
the_record_of_an_attempt_is_complete(void **state)
{
    (void)state;
    SH("cat >/dev/null; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo 12345;"
       " echo 123 >&2; sleep 0.05; echo 'tag red' >&3; echo 'progress 5 x' >&3");
    assert_outcome(WEIR_DONE, "");
    assert_true(a.d.has_exec);
    assert_true(a.d.exec.pid > 0);
    assert_int_equal(a.d.exec.exit_code, 0);
    assert_int_equal(a.d.exec.bytes_in, 5);
    assert_int_equal(a.d.exec.bytes_out, 6);
    assert_int_equal(a.d.exec.bytes_err, 4);
    assert_true(a.d.exec.user_us + a.d.exec.sys_us > 0);
    assert_true(a.d.exec.max_rss_kib > 0);
    assert_in_range(a.d.exec.wall_ms, 50, 10000);
    assert_string_equal(a.d.exec.tags, "red");
    assert_string_equal(a.d.exec.progress, "5 x");
}

static void
poison_is_told_from_failure_F35(void **state)
{
    static const struct {
        const char *script, *error;
    } rows[] = {{"kill -SEGV $$", "killed by SIGSEGV"},
                {"kill -ABRT $$", "killed by SIGABRT"},
                {"kill -KILL $$", "killed by SIGKILL"},
                {"exit 1", "exit 1"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SH_WITH(rows[i].script, .rlimit_core = 1);
        assert_outcome(WEIR_RETRY, a.d.error);
        assert_int_equal(strncmp(a.d.error, rows[i].error, strlen(rows[i].error)), 0);
    }
}

/* ---- limits ---- */

static void
limits_are_set_before_the_command_runs_X14(void **state)
{
    const char *text;

    (void)state;
    text = SH_WITH("umask; ulimit -n; ulimit -f; ulimit -c; ulimit -t; ulimit -v; nice;"
                   " cat /proc/self/oom_score_adj",
                   .set_umask = true, .umask = 027, .rlimit_nofile = 77,
                   .rlimit_fsize = 4 * 512, .rlimit_core = 2 * 512, .rlimit_cpu = 9,
                   .rlimit_as = 512 * 1048576, .nice = 3, .oom_score_adj = 300);
    assert_outcome(WEIR_DONE, "");
    assert_string_equal(text, "0027\n77\n4\n2\n9\n524288\n3\n300\n");
    SH("grep NoNewPrivs /proc/self/status");
    assert_string_equal(a.d.result.ptr, "NoNewPrivs:\t1\n");
    SH_WITH("grep NoNewPrivs /proc/self/status", .allow_new_privs = true);
    assert_string_equal(a.d.result.ptr, "NoNewPrivs:\t0\n");
    SH_WITH("head -c 100000 /dev/zero >f", .rlimit_fsize = 1000);
    assert_int_equal(a.outcome, WEIR_RETRY);
    SH_WITH("while :; do :; done", .rlimit_cpu = 1);
    assert_outcome(WEIR_RETRY, "killed by SIGXCPU");
    if (has_program("ionice")) {
        SH_WITH("ionice", .ioprio_class = 3);
        assert_string_equal(a.d.result.ptr, "idle\n");
    }
}

static void
it_runs_as_another_user_X14(void **state)
{
    (void)state;
    if (!is_root())
        skip();
    SH_WITH("id -un; id -Gn; echo $HOME $USER; stat -c %U .; touch f && cat;"
            " echo 'progress 9' >&3; test -w \"$WEIR_CONTROL_SOCKET\" && echo writable",
            .user = "nobody");
    assert_outcome(WEIR_DONE, "");
    assert_string_equal(a.d.result.ptr, "nobody\nnogroup\n/nonexistent nobody\nnobody\n"
                                        "hellowritable\n");
    assert_string_equal(a.d.exec.progress, "9 ");
    SH_WITH("id -u; id -g; id -G", .user = "12345", .group = "daemon");
    assert_string_equal(a.d.result.ptr, "12345\n1\n1\n");
    SH_WITH("id -u", .user = "nobody", .cwd = "/root");
    assert_has(a.d.error, "cannot run sh: entering its working folder: Permission");
    SH("id -u; test -O \"$WEIR_CONTROL_SOCKET\" && echo own"); /* and back */
    assert_string_equal(a.d.result.ptr, "0\nown\n");
}

/* The limit counts all processes of the user, so it is one that nobody else is. */
static void
a_fork_bomb_meets_its_limit_and_nothing_is_left_F38(void **state)
{
    char user[16], left[80];

    (void)state;
    if (!is_root() || !has_program("ps"))
        skip();
    snprintf(user, sizeof(user), "%d", 100000000 + (int)getpid());
    snprintf(left, sizeof(left), "ps -eo uid= | grep -c '^ *%s$' || true", user);
    SH_WITH("b() { b & b & wait; }; b; sleep 60", .user = user, .group = "nogroup",
            .rlimit_nproc = 60, .timeout_ms = 700, .kill_after_ms = 300);
    assert_int_equal(a.outcome, WEIR_RETRY);
    assert_true(a.took_ms < 20000);
    SH("echo fine");
    assert_outcome(WEIR_DONE, "");
    for (int i = 0; i < 50; i++) {
        SH(left);
        if (strcmp(wr_buf_span(&a.d.result).ptr, "0\n") == 0)
            return;
    }
    fail_msg("left: %s", (const char *)wr_buf_span(&a.d.result).ptr);
}

/* ---- what cannot start ---- */

static size_t
count_descriptors(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)wr_spawner_pid(spawner));
    return (size_t)count_entries(path, "");
}

static void
write_file(const char *name, const char *text, mode_t mode)
{
    FILE *f = fopen(name, "we");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(name, mode), 0);
}

static void
each_failure_to_start_is_judged_for_what_it_is_F40(void **state)
{
    char plain[100], script[100], busy[100], loop[100];
    size_t before;
    int fd;

    (void)state;
    snprintf(plain, sizeof(plain), "%s/plain", tmp);
    snprintf(script, sizeof(script), "%s/script", tmp);
    snprintf(busy, sizeof(busy), "%s/busy", tmp);
    snprintf(loop, sizeof(loop), "%s/loop", tmp);
    write_file(plain, "echo x\n", 0644);
    write_file(script, "#!/no/such\necho x\n", 0755);
    assert_int_equal(symlink(loop, loop), 0);
    SH("true");
    before = count_descriptors();
    const struct {
        const char *path, *cwd, *error;
        enum weir_outcome outcome;
    } rows[] = {
        {"/no/such", NULL, "cannot run /no/such: No such file", WEIR_RETRY},
        {"no-such-name", NULL, "cannot run no-such-name: No such file", WEIR_RETRY},
        {tmp, NULL, ": Permission denied", WEIR_RETRY},
        {plain, NULL, ": Permission denied", WEIR_RETRY},
        {script, NULL, "(the program that its #! line names)", WEIR_RETRY},
        {loop, NULL, ": Too many levels of symbolic links", WEIR_RETRY},
        {"/bin/true", "/no/such", "entering its working folder: No such file",
         WEIR_RETRY},
        {"/bin/true", "/bin/true", "entering its working folder: Not a directory",
         WEIR_RETRY},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        attempt(WITH(ARGV(rows[i].path), .cwd = rows[i].cwd));
        assert_has(a.d.error, rows[i].error);
        assert_int_equal(a.outcome, rows[i].outcome);
        assert_true(a.d.exec.start_errno != 0);
    }
    write_file(busy, "#!/bin/sh\n", 0755);
    fd = open(busy, O_WRONLY);
    attempt(WITH(ARGV(busy)));
    close(fd);
    assert_has(a.d.error, ": Text file busy");
    assert_int_equal(a.outcome, WEIR_RETRY);
    assert_int_equal(count_descriptors(), before);
}

static void
what_the_worker_lacks_is_no_fault_of_the_job_F40(void **state)
{
    (void)state;
    if (!is_root())
        skip();
    struct rlimit old, none;
    assert_int_equal(prlimit(wr_spawner_pid(spawner), RLIMIT_NOFILE, NULL, &old), 0);
    none = old;
    none.rlim_cur = 6;
    assert_int_equal(prlimit(wr_spawner_pid(spawner), RLIMIT_NOFILE, &none, NULL), 0);
    SH("true");
    assert_int_equal(prlimit(wr_spawner_pid(spawner), RLIMIT_NOFILE, &old, NULL), 0);
    assert_outcome(WEIR_SNOOZE,
                   "out of resources to start a command: Too many open files");
    assert_int_equal(a.d.delay_ms, 5000);
    SH("true");
    assert_outcome(WEIR_DONE, "");
}

static void
after_three_failures_to_start_a_handler_is_broken_and_rests_R10(void **state)
{
    static const char *const argvs[][4] = {{"/no/such", NULL},
                                           {"sh", "-c", "exit 127", NULL},
                                           {"sh", "-c", "no-such-word", NULL}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct wr_handler *h = handler_of(WITH(.argv = argvs[i]));

        for (int n = 0; n < 3; n++) {
            assert_false(wr_handler_is_broken(h));
            attempt_by(h);
            assert_int_equal(a.outcome, WEIR_RETRY);
            assert_false(a.d.not_taken);
        }
        assert_true(wr_handler_is_broken(h));
        attempt_by(h);
        assert_true(a.d.not_taken); /* it was not run, nor charged */
        atomic_store(&h->broken_until_ms, wr_clock_ms() - 1); /* a minute later */
        attempt_by(h);
        assert_false(a.d.not_taken);
        assert_true(wr_handler_is_broken(h)); /* one more failure is enough */
        h->ops->free(h);
    }
    struct wr_handler *h = handler_of(WITH(ARGV("sh", "-c", "exit $(cat)")));
    const char *statuses[] = {"127", "126", "3", "127", "127", "0", "127"};
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        a.d.record.payload = wr_span_str(statuses[i]);
        attempt_by(h);
        assert_false(wr_handler_is_broken(h)); /* never three in a row */
    }
    h->ops->free(h);
}

/* A spawner of its own, with another TMPDIR. */
static void
a_full_disk_puts_jobs_off_and_no_more_F41(void **state)
{
    struct wr_spawner *old = spawner;
    char full[100], name[150];
    int made = 0;

    (void)state;
    snprintf(full, sizeof(full), "%s/full", tmp);
    assert_int_equal(mkdir(full, 0755), 0);
    if (!is_root() || mount("tmpfs", full, "tmpfs", 0, "size=64k,nr_inodes=16") != 0)
        skip();
    setenv("TMPDIR", full, 1);
    assert_int_equal(wr_spawner_start(slots, SLOTS, &spawner, NULL), WEIR_OK);
    setenv("TMPDIR", tmp, 1);
    wr_spawner_set_current(spawner);
    SH("echo fine");
    assert_outcome(WEIR_DONE, "");
    for (;; made++) {
        snprintf(name, sizeof(name), "%s/%d", full, made);
        if (mkdir(name, 0755) != 0)
            break;
    }
    assert_int_equal(errno, ENOSPC);
    SH("echo fine");
    assert_outcome(WEIR_SNOOZE, "cannot make a working folder: No space left on device");
    assert_int_equal(a.d.delay_ms, 5000);
    while (made-- > 0) {
        snprintf(name, sizeof(name), "%s/%d", full, made);
        rmdir(name);
    }
    SH("head -c 1M /dev/zero >f || echo full"); /* its own disk is full: its own matter */
    assert_string_equal(wr_buf_span(&a.d.result).ptr, "full\n");
    SH("echo fine");
    assert_outcome(WEIR_DONE, "");
    wr_spawner_set_current(NULL);
    wr_spawner_stop(spawner);
    spawner = old;
    wr_spawner_set_current(spawner);
    assert_int_equal(umount(full), 0); /* nothing holds it */
}

/* ---- threads ---- */

static _Atomic bool busy;

static void *
be_busy(void *arg)
{
    FILE *null = fopen("/dev/null", "we");

    (void)arg;
    while (busy) {
        void *p = malloc(1000);

        fprintf(null, "%p %s\n", p, setlocale(LC_ALL, NULL));
        free(p);
        poll(NULL, 0, 1); /* busy, not greedy: the commands need a CPU as well */
    }
    fclose(null);
    return NULL;
}

struct own_slot {
    size_t slot;
    int n, bad;
};

static void *
run_many(void *arg)
{
    struct own_slot *own = arg;
    struct wr_handler *h = handler_of(WITH(ARGV("cat")));
    struct weir_delivery d = a.d;

    for (int i = 0; i < own->n; i++) {
        wr_buf_clear(&d.result);
        d.slot = own->slot;
        d.log = (struct wr_buf){0};
        d.record.timeout_ms = 0; /* however slow this machine is just now */
        if (h->ops->run(h, &d) != WEIR_DONE || d.result.len != 5) {
            print_error("%s, %zu bytes\n", d.error, d.result.len);
            own->bad++;
        }
        wr_buf_fini(&d.log);
    }
    wr_buf_fini(&d.result);
    h->ops->free(h);
    return NULL;
}

/* 10,000 by WEIR_THREADED_JOBS. */
static void
commands_start_from_a_process_of_many_busy_threads_X15(void **state)
{
    const char *given = getenv("WEIR_THREADED_JOBS");
    int n = given ? atoi(given) : 200, bad = 0;
    pthread_t threads[64], runners[SLOTS];
    struct own_slot own[SLOTS];

    (void)state;
    busy = true;
    for (int i = 0; i < 64; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_busy, NULL), 0);
    for (size_t i = 0; i < SLOTS; i++) {
        own[i] = (struct own_slot){.slot = i, .n = n / SLOTS};
        assert_int_equal(pthread_create(&runners[i], NULL, run_many, &own[i]), 0);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        pthread_join(runners[i], NULL);
        bad += own[i].bad;
    }
    busy = false;
    for (int i = 0; i < 64; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(bad, 0);
}

/* ---- cgroups ---- */

/* A daemon of its own session, whose environment is wiped: without a cgroup nobody knows
 * whose it is while another run goes on. */
static void
in_a_cgroup_nothing_escapes_F37(void **state)
{
    static const char folder[] = "/sys/fs/cgroup/unified/weir-test-exec";
    struct wr_spawner *old = spawner;
    char killer[100];

    (void)state;
    snprintf(killer, sizeof(killer), "%s/probe", folder);
    if (!is_root() || (mkdir(folder, 0755) != 0 && errno != EEXIST))
        skip();
    mkdir(killer, 0755);
    snprintf(killer, sizeof(killer), "%s/probe/cgroup.kill", folder);
    bool kills = access(killer, W_OK) == 0;
    snprintf(killer, sizeof(killer), "%s/probe", folder);
    rmdir(killer);
    if (!kills) {
        rmdir(folder);
        skip();
    }
    setenv("WEIR_CGROUP", folder, 1);
    assert_int_equal(wr_spawner_start(slots, SLOTS, &spawner, NULL), WEIR_OK);
    unsetenv("WEIR_CGROUP");
    wr_spawner_set_current(spawner);
    SH("env -i setsid sh -c 'echo $$; exec sleep 300' & sleep 0.3; grep 0:: "
       "/proc/self/cgroup");
    int pid = atoi(wr_buf_span(&a.d.result).ptr);
    assert_has(a.d.result.ptr, "0::/weir-test-exec/weir-");
    assert_true(pid > 1);
    AWAIT(!process_lives(pid));
    SH("echo again");
    assert_string_equal(a.d.result.ptr, "again\n");
    wr_spawner_set_current(NULL);
    wr_spawner_stop(spawner);
    spawner = old;
    wr_spawner_set_current(spawner);
    AWAIT(rmdir(folder) == 0); /* and its own are gone as well */
}

/* ---- the examples of docs/exec-protocol.md ---- */

static void
run_example(const char *const *argv)
{
    fresh(NULL);
    a.d.state.attempts = 0;
    a.d.record.payload = wr_span_str("one two\nthree\n");
    attempt(WITH(.argv = argv, .result = WEIR_EXEC_JSON));
    assert_outcome(WEIR_DONE, "");
    assert_string_equal(a.d.result.ptr, "{\"lines\":2,\"words\":3,\"bytes\":14}\n");
    assert_string_equal(a.d.exec.progress, "100 2/2 done");
    assert_string_equal(log_text(), "attempt 1 of 4\n");
    a.d.record.payload = wr_span_str("");
    attempt(WITH(.argv = argv));
    assert_outcome(WEIR_PERMANENT, "there is nothing to count");
    a.d.record.payload = wr_span_str("later\n");
    attempt(WITH(.argv = argv));
    assert_outcome(WEIR_SNOOZE, "the text is not ready");
    assert_int_equal(a.d.delay_ms, 60000);
    a.d.state.attempts = 1;
    attempt(WITH(.argv = argv));
    assert_outcome(WEIR_DONE, "");
}

#define EXAMPLE(name) WEIR_SOURCE "/examples/exec/" name

static void
the_example_in_shell_works(void **state)
{
    (void)state;
    run_example((const char *const[]){EXAMPLE("count.sh"), NULL});
}

static void
the_example_in_Python_works(void **state)
{
    (void)state;
    if (!has_program("python3"))
        skip();
    run_example((const char *const[]){EXAMPLE("count.py"), NULL});
}

static void
the_example_in_JavaScript_works(void **state)
{
    (void)state;
    if (!has_program("node"))
        skip();
    run_example((const char *const[]){EXAMPLE("count.js"), NULL});
}

static void
the_example_in_C_works(void **state)
{
    static const char program[] = WEIR_BINARY "/examples/example-exec";

    (void)state;
    if (access(program, X_OK) != 0) {
        print_message("skipped: the examples are not built\n");
        skip();
    }
    run_example((const char *const[]){program, NULL});
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_environment_names_the_job_X14),
        TEST(a_clean_environment_has_what_was_named_alone_X14),
        TEST(odd_bytes_in_names_reach_the_command_as_they_are),
        TEST(what_makes_no_sense_is_refused_when_it_is_registered),
        TEST(each_attempt_has_a_private_folder_that_is_removed_after_it),
        TEST(a_very_deep_folder_is_removed),
        TEST(the_folder_of_a_failure_is_kept_when_asked_for),
        TEST(the_folder_of_a_dead_worker_is_removed_by_the_next),
        TEST(a_base_folder_that_was_tidied_away_is_made_again_F41),
        TEST(progress_reaches_the_delivery_while_it_runs),
        TEST(notes_and_levels_stand_in_the_log),
        TEST(what_it_says_wins_over_its_exit_status_R08),
        TEST(a_command_that_closed_3_speaks_by_datagrams),
        TEST(what_a_late_descendant_sends_does_not_count_for_the_next),
        TEST(extend_lengthens_the_timeout_and_no_more),
        TEST(the_result_is_what_the_handler_says_it_is),
        TEST(a_result_that_is_no_JSON_fails_the_attempt),
        TEST(a_result_file_is_read_with_the_rights_of_its_owner),
        TEST(a_long_output_is_cut_and_said_to_be),
        TEST(a_flood_of_both_outputs_blocks_nothing_F39),
        TEST(exit_rules_are_tried_in_order_R08),
        TEST(one_that_is_silent_too_long_is_stopped_L09),
        TEST(the_shorter_timeout_of_handler_and_job_counts_X11),
        TEST(the_stop_signal_is_the_handler_s_and_SIGKILL_follows_X10),
        TEST(stragglers_may_stay_when_the_handler_says_so_X05),
        TEST(the_record_of_an_attempt_is_complete),
        TEST(poison_is_told_from_failure_F35),
        TEST(limits_are_set_before_the_command_runs_X14),
        TEST(it_runs_as_another_user_X14),
        TEST(a_fork_bomb_meets_its_limit_and_nothing_is_left_F38),
        TEST(each_failure_to_start_is_judged_for_what_it_is_F40),
        TEST(what_the_worker_lacks_is_no_fault_of_the_job_F40),
        TEST(after_three_failures_to_start_a_handler_is_broken_and_rests_R10),
        TEST(a_full_disk_puts_jobs_off_and_no_more_F41),
        TEST(commands_start_from_a_process_of_many_busy_threads_X15),
        TEST(in_a_cgroup_nothing_escapes_F37),
        TEST(the_example_in_shell_works),
        TEST(the_example_in_Python_works),
        TEST(the_example_in_JavaScript_works),
        TEST(the_example_in_C_works),
    };

    return RUN_TESTS("exec", tests, start_all, stop_all);
}
