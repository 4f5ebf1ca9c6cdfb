/* Lines on stderr, caught in a pipe. */
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static int saved_stderr, pipe_fds[2];

static int
catch_stderr(void **state)
{
    (void)state;
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    saved_stderr = dup(STDERR_FILENO);
    return dup2(pipe_fds[1], STDERR_FILENO) < 0 ? -1 : 0;
}

static int
let_stderr_go(void **state)
{
    (void)state;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    wr_log_setup(WR_LOG_WARN, false);
    return 0;
}

/* What was logged since, "" for nothing. */
static const char *
caught(void)
{
    static char text[8192];
    ssize_t n = read(pipe_fds[0], text, sizeof(text) - 1);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void
a_line_tells_when_who_and_how_bad(void **state)
{
    char who[40];
    const char *line;

    (void)state;
    wr_log_setup(WR_LOG_INFO, false);
    wr_log_warn("lease of %s lost", "j1");
    line = caught();
    snprintf(who, sizeof(who), "weir[%d] warn: ", (int)getpid());
    assert_non_null(strstr(line, who));
    assert_non_null(strstr(line, "lease of j1 lost\n"));
    assert_int_equal(line[10], 'T');
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void
levels_above_the_chosen_one_are_silent(void **state)
{
    (void)state;
    wr_log_setup(WR_LOG_WARN, false);
    wr_log_info("not this");
    wr_log_debug("nor this");
    assert_string_equal(caught(), "");
    assert_true(wr_log_on(WR_LOG_ERROR));
    assert_false(wr_log_on(WR_LOG_INFO));
}

static void
control_characters_do_not_make_lines(void **state)
{
    const char *line;

    (void)state;
    wr_log_setup(WR_LOG_WARN, false);
    wr_log_error("id %s", "a\nb\x1b[2J");
    line = caught();
    assert_non_null(strstr(line, "id a\\x0ab\\x1b[2J\n"));
}

static void
json_lines_stay_json_whatever_the_text(void **state)
{
    const char *line;

    (void)state;
    wr_log_setup(WR_LOG_WARN, true);
    wr_log_error("say \"%s\" \\ \x01", "hi\n");
    line = caught();
    assert_int_equal(line[0], '{');
    assert_non_null(strstr(line, "\"text\":\"say \\\"hi\\\\x0a\\\" \\\\ \\\\x01\"}\n"));
    assert_non_null(strstr(line, "\"level\":\"error\""));
}

static void
the_environment_chooses_level_and_form(void **state)
{
    (void)state;
    setenv("WEIR_LOG", "debug,json", 1);
    wr_log_setup_from_env();
    wr_log_debug("x");
    assert_non_null(strstr(caught(), "\"level\":\"debug\""));
    setenv("WEIR_LOG", "error", 1);
    wr_log_setup_from_env();
    wr_log_warn("x");
    assert_string_equal(caught(), "");
    setenv("WEIR_LOG", "nonsense", 1);
    wr_log_setup_from_env();
    assert_true(wr_log_on(WR_LOG_ERROR)); /* keeps what it had */
    unsetenv("WEIR_LOG");
}

static void
a_closed_stderr_does_not_end_the_program(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        close(pipe_fds[0]); /* the reader is gone: SIGPIPE would kill */
        wr_log_setup(WR_LOG_WARN, false);
        wr_log_warn("into the void");
        close(STDERR_FILENO);
        wr_log_warn("into nothing");
        _exit(7);
    }
    close(pipe_fds[0]); /* of the parent as well, or there still is a reader */
    pipe_fds[0] = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void
a_full_stderr_does_not_stop_the_program(void **state)
{
    int64_t before;
    int flags = fcntl(pipe_fds[1], F_GETFL);

    (void)state;
    while (write(pipe_fds[1], "x", 1) == 1)
        continue;
    assert_int_equal(fcntl(pipe_fds[1], F_SETFL, flags & ~O_NONBLOCK), 0);
    before = wr_clock_ms();
    wr_log_warn("no room");
    assert_true(wr_clock_ms() - before < 5000); /* it would block for ever */
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, catch_stderr, let_stderr_go)
    const struct CMUnitTest tests[] = {
        TEST(a_line_tells_when_who_and_how_bad),
        TEST(levels_above_the_chosen_one_are_silent),
        TEST(control_characters_do_not_make_lines),
        TEST(json_lines_stay_json_whatever_the_text),
        TEST(the_environment_chooses_level_and_form),
        TEST(a_closed_stderr_does_not_end_the_program),
        TEST(a_full_stderr_does_not_stop_the_program),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
