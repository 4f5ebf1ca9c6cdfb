/*
 * Out of memory at any call of malloc, in the worker's child and in its spawner: an error
 * comes back, nothing hangs, nothing crashes, and the next command runs. This program
 * has a malloc of its own; under the sanitizers, which have theirs, it does nothing.
 */
#include "support/test_program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/worker_process.h"
#include "worker/exec_config.h"
#include "worker/handler.h"
#include "worker/spawner.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

/* In memory of all processes: which of them fails at which call. */
static struct shared {
    _Atomic int pid;   /* 0: none */
    _Atomic long left; /* calls that still succeed */
    _Atomic int failed;
} * shared;

#ifndef HAS_SANITIZER
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static bool
fails(void)
{
    if (!shared || shared->pid == 0)
        return false;
    if (shared->pid != getpid())
        return false;
    if (shared->left-- > 0)
        return false;
    shared->pid = 0; /* one call, not all after it */
    shared->failed = 1;
    errno = ENOMEM;
    return true;
}

void *
malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}
#endif

static void
fail_at(int pid, long n)
{
    shared->failed = 0;
    shared->left = n;
    shared->pid = pid;
}

/* Did the call come at all? */
static bool
end_of_sweep(void)
{
    shared->pid = 0;
    return !shared->failed;
}

static const struct weir_exec_options options = {
    WEIR_EXEC_OPTIONS_INIT,
    .argv = (const char *const[]){"sh", "-c", "cat; echo 'progress 5 x' >&3; echo e >&2",
                                  NULL},
    .env = (const char *const[]){"A=1", "B=2", NULL},
    .clean_env = true,
    .exits = (const struct weir_exec_exit[]){{3, 4, WEIR_DONE}},
    .exits_n = 1,
    .cwd = "/",
    .result = WEIR_EXEC_JSON,
};

static void
a_handler_is_made_whole_or_not_at_all_F42(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        struct wr_exec_config *config;
        struct weir_error err = {0};
        enum weir_err rc;

        fail_at(getpid(), n);
        rc = wr_exec_config_new(&options, &config, &err);
        if (end_of_sweep()) {
            assert_int_equal(rc, WEIR_OK);
            wr_exec_config_free(config);
            print_message("%ld calls\n", n);
            return;
        }
        assert_int_equal(rc, WEIR_E_NO_MEMORY);
        assert_null(config);
    }
}

static struct weir_delivery d;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

static void
fresh_delivery(void)
{
    wr_buf_fini(&d.result);
    wr_buf_fini(&d.log);
    wr_buf_fini(&d.meta_value);
    d = (struct weir_delivery){.slot = 0,
                               .queue = "q",
                               .id = "j",
                               .type = "t",
                               .worker = "w",
                               .record = {.max_retry = 3,
                                          .timeout_ms = 20000,
                                          .kill_after_ms = 300,
                                          .meta = wr_span_str("meta.a=1 meta.b=%20"),
                                          .payload = wr_span_str("17")},
                               .delay_ms = -1,
                               .mu = &mu};
}

static void
an_attempt_fails_or_succeeds_whole_F42(void **state)
{
    struct wr_slots *slots = wr_slots_new(1);
    struct wr_spawner *spawner;
    struct wr_exec_config *config;
    struct wr_handler *h;
    bool over = false;
    long n;

    (void)state;
    assert_int_equal(wr_spawner_start(slots, 1, &spawner, NULL), WEIR_OK);
    wr_spawner_set_current(spawner);
    assert_int_equal(wr_exec_config_new(&options, &config, NULL), WEIR_OK);
    h = wr_handler_exec_new("t", config);
    assert_non_null(h);
    for (n = 0; !over; n++) {
        enum weir_outcome outcome;

        fresh_delivery();
        fail_at(getpid(), n);
        outcome = h->ops->run(h, &d);
        over = end_of_sweep();
        if (outcome == WEIR_DONE)
            assert_string_equal(wr_buf_span(&d.result).ptr, "17");
        else
            assert_true(d.error[0] != '\0' || outcome == WEIR_SNOOZE);
        assert_false(wr_handler_is_broken(h));
        if (over)
            assert_int_equal(outcome, WEIR_DONE);
    }
    print_message("%ld calls\n", n);
    fresh_delivery();
    h->ops->free(h);
    wr_spawner_set_current(NULL);
    wr_spawner_stop(spawner);
    wr_slots_free(slots);
}

/* The spawner may end for it, and then what it ran ends too: the child sees that. */
static void
a_spawner_answers_or_ends_F42(void **state)
{
    const struct wr_exec_run run = {.argv = options.argv,
                                    .env = options.env,
                                    .payload = wr_span_str("in"),
                                    .timeout_ms = 20000,
                                    .kill_after_ms = 300,
                                    .result_max = 65536,
                                    .control = true};
    struct wr_slots *slots = wr_slots_new(1);
    long n, ended = 0;
    bool over = false;

    (void)state;
    for (n = 0; !over; n++) {
        struct wr_buf out = {0}, log = {0};
        struct wr_exec_end end = {0};
        struct wr_spawner *spawner;
        enum weir_err rc;
        pid_t pid;

        assert_int_equal(wr_spawner_start(slots, 1, &spawner, NULL), WEIR_OK);
        pid = wr_spawner_pid(spawner);
        /* It is ready when it has run one. */
        assert_int_equal(wr_spawner_run(spawner, 0, &run, NULL, &out, &log, &end, NULL),
                         WEIR_OK);
        wr_buf_fini(&out);
        wr_buf_fini(&log);
        fail_at(pid, n);
        rc = wr_spawner_run(spawner, 0, &run, NULL, &out, &log, &end, NULL);
        over = end_of_sweep();
        if (rc == WEIR_OK && end.start_errno == 0) {
            assert_string_equal(wr_buf_span(&out).ptr, "in");
            assert_int_equal(end.exit_code, 0);
        } else if (rc == WEIR_OK) {
            assert_int_equal(end.start_errno, ENOMEM);
        } else if (rc != WEIR_E_NO_MEMORY) {
            assert_int_equal(rc, WEIR_E_BUG);
            ended++;
        }
        if (over)
            assert_int_equal(rc, WEIR_OK);
        wr_buf_fini(&out);
        wr_buf_fini(&log);
        wr_spawner_stop(spawner);
        assert_false(process_lives(pid));
    }
    print_message("%ld calls, it ended at %ld of them\n", n, ended);
    wr_slots_free(slots);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_is_made_whole_or_not_at_all_F42),
        cmocka_unit_test(an_attempt_fails_or_succeeds_whole_F42),
        cmocka_unit_test(a_spawner_answers_or_ends_F42),
    };

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return RUN_TESTS("exec_memory", tests, NULL, NULL);
}
