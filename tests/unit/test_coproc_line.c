/* The lines of weir-coproc/1: what a process may write, and what of it counts. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "worker/coproc_line.h"

static struct wr_coproc_line line;

static enum wr_coproc_word
read_line(const char *text)
{
    assert_true(wr_coproc_read(&line, text, strlen(text)));
    return line.word;
}

static void
what_is_no_object_is_noise(void **state)
{
    static const char *const noise[] = {"",      "hello", "[1]",    "7",
                                        "\"{\"", "  ",    "\x1b[1m"};

    (void)state;
    for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
        assert_int_equal(read_line(noise[i]), WR_COPROC_NOISE);
}

static void
an_object_that_nobody_knows_is_passed_over(void **state)
{
    (void)state;
    assert_int_equal(read_line("{}"), WR_COPROC_OTHER);
    assert_int_equal(read_line("  {\"metrics\":{\"a\":1}}"), WR_COPROC_OTHER);
    assert_int_equal(read_line("{\"call\":1,\"answer\":\"ok\",\"new\":[{}]}"),
                     WR_COPROC_ANSWER);
}

static void
half_an_object_or_wrong_members_are_garbage(void **state)
{
    static const char *const bad[] = {
        "{",
        "{\"call\":1,\"answer\":\"ok\"",
        "{\"answer\":\"ok\"}",
        "{\"call\":-1,\"answer\":\"ok\"}",
        "{\"call\":1.5,\"answer\":\"ok\"}",
        "{\"call\":\"1\",\"answer\":\"ok\"}",
        "{\"call\":1,\"answer\":\"yes\"}",
        "{\"call\":1,\"answer\":true}",
        "{\"call\":1,\"answer\":\"ok\",\"answer\":\"retry\"}",
        "{\"call\":1,\"answer\":\"ok\",\"delay_ms\":-5}",
        "{\"call\":1,\"answer\":\"ok\",\"delay_ms\":1e300}",
        "{\"call\":1,\"answer\":\"ok\",\"result_base64\":\"a\"}",
        "{\"call\":1,\"answer\":\"ok\",\"result_base64\":7}",
        "{\"call\":1,\"answer\":\"ok\",\"result\":\"a\",\"result_base64\":\"\"}",
        "{\"call\":1,\"answer\":\"retry\",\"error\":7}",
        "{\"call\":1,\"progress\":true}",
        "{\"hello\":\"somebody else\"}",
        "{\"hello\":\"weir-coproc\",\"version\":\"1\"}",
        "{\"call\":1,\"answer\":\"ok\",\"result\":\"\xff\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (read_line(bad[i]) != WR_COPROC_GARBAGE)
            fail_msg("taken for good: %s", bad[i]);
        assert_true(line.why[0] != '\0');
    }
}

static void
an_answer_says_what_becomes_of_the_job(void **state)
{
    static const struct {
        const char *word;
        enum weir_outcome outcome;
    } rows[] = {{"ok", WEIR_DONE},
                {"retry", WEIR_RETRY},
                {"snooze", WEIR_SNOOZE},
                {"permanent", WEIR_PERMANENT}};
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(text, sizeof(text),
                 "{\"call\":9,\"answer\":\"%s\",\"error\":\"why\",\"delay_ms\":1500.0}",
                 rows[i].word);
        assert_int_equal(read_line(text), WR_COPROC_ANSWER);
        assert_int_equal(line.call, 9);
        assert_int_equal(line.outcome, rows[i].outcome);
        assert_int_equal(line.delay_ms, 1500);
        assert_string_equal(line.text.ptr, "why");
        assert_false(line.has_result);
        assert_false(line.last);
    }
}

static const char *
result_of(const char *member)
{
    char text[300];

    snprintf(text, sizeof(text), "{\"call\":1,\"answer\":\"ok\",%s}", member);
    assert_int_equal(read_line(text), WR_COPROC_ANSWER);
    return line.has_result ? wr_buf_span(&line.result).ptr : "(none)";
}

static void
a_result_is_a_strings_bytes_or_json_itself(void **state)
{
    (void)state;
    assert_string_equal(result_of("\"result\":\"a\\u00e9\""), "a\xc3\xa9");
    assert_string_equal(result_of("\"result\":{\"a\":[1, true]}"), "{\"a\":[1,true]}");
    assert_string_equal(result_of("\"result\":42"), "42");
    assert_string_equal(result_of("\"result\":null"), "(none)");
    assert_string_equal(result_of("\"result\":\"\""), "");
    assert_string_equal(result_of("\"result_base64\":\"Zm9v\""), "foo");
    (void)result_of("\"result\":\"\\u0000x\"");
    assert_int_equal(line.result.len, 2);
    (void)result_of("\"last\":true");
    assert_true(line.last);
}

/* Nothing of one line is left in the next. */
static void
a_line_begins_anew(void **state)
{
    (void)state;
    (void)result_of("\"result\":\"x\",\"last\":true,\"delay_ms\":5,\"error\":\"e\"");
    assert_int_equal(read_line("{\"call\":2,\"answer\":\"retry\"}"), WR_COPROC_ANSWER);
    assert_false(line.last);
    assert_false(line.has_result);
    assert_int_equal(line.delay_ms, -1);
    assert_int_equal(line.text.len, 0);
    assert_int_equal(line.result.len, 0);
}

static void
progress_is_a_number_a_text_or_both(void **state)
{
    (void)state;
    assert_int_equal(read_line("{\"call\":1,\"progress\":33.3,\"text\":\"x\"}"),
                     WR_COPROC_PROGRESS);
    assert_int_equal(line.percent, 33);
    assert_string_equal(line.text.ptr, "x");
    assert_int_equal(line.stage.len, 0);
    assert_int_equal(read_line("{\"progress\":9,\"stage\":\"cut\"}"), WR_COPROC_PROGRESS);
    assert_string_equal(line.stage.ptr, "cut");
    assert_int_equal(read_line("{\"progress\":\"nearly\"}"), WR_COPROC_PROGRESS);
    assert_int_equal(line.percent, -1);
    assert_int_equal(line.call, -1);
    assert_int_equal(read_line("{\"progress\":1e9}"), WR_COPROC_PROGRESS);
    assert_int_equal(line.percent, 100);
    assert_int_equal(read_line("{\"progress\":-4}"), WR_COPROC_PROGRESS);
    assert_int_equal(line.percent, 0);
}

static int
fini(void **state)
{
    (void)state;
    wr_coproc_line_fini(&line);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_object_is_noise),
        cmocka_unit_test(an_object_that_nobody_knows_is_passed_over),
        cmocka_unit_test(half_an_object_or_wrong_members_are_garbage),
        cmocka_unit_test(an_answer_says_what_becomes_of_the_job),
        cmocka_unit_test(a_result_is_a_strings_bytes_or_json_itself),
        cmocka_unit_test(a_line_begins_anew),
        cmocka_unit_test(progress_is_a_number_a_text_or_both),
    };

    return cmocka_run_group_tests(tests, NULL, fini);
}
