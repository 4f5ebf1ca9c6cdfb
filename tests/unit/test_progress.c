/* How far a job is, as it is stored. */
#include "support/cmocka_all.h"

#include <string.h>

#include "model/progress.h"

static void
reads_back(int percent, const char *stage, const char *message, const char *stored)
{
    struct wr_progress p = {0};
    struct wr_buf text = {0};

    wr_progress_write(percent, wr_span_str(stage), wr_span_str(message), &text);
    assert_string_equal(wr_buf_span(&text).ptr, stored);
    wr_progress_read(wr_buf_span(&text), &p);
    assert_int_equal(p.percent, percent < 0 ? -1 : percent > 100 ? 100 : percent);
    assert_string_equal(wr_buf_span(&p.stage).ptr, stage);
    assert_string_equal(wr_buf_span(&p.message).ptr, message);
    wr_progress_fini(&p);
    wr_buf_fini(&text);
}

static void
percent_stage_and_message_come_back_as_they_were_said(void **state)
{
    (void)state;
    reads_back(40, "", "resizing", "40 resizing");
    reads_back(40, "resize", "3 of 12", "40 stage=resize 3 of 12");
    reads_back(-1, "", "waiting", "- waiting");
    reads_back(-7, "a b", "", "- stage=a%20b ");
    reads_back(0, "", "", "0 ");
    reads_back(101, "x", "done", "100 stage=x done");
}

static void
what_others_wrote_is_read_as_far_as_it_goes(void **state)
{
    static const struct {
        const char *text;
        int percent;
        const char *stage, *message;
    } rows[] = {{"", -1, "", ""},
                {"half way", -1, "", "half way"},
                {"-", -1, "", ""},
                {"7", 7, "", ""},
                {"101 x", -1, "", "101 x"},
                {"5 stage=", 5, "", "stage="},
                {"5 stage=%zz x", 5, "", "stage=%zz x"},
                {"5 stage=a", 5, "a", ""},
                {"stage=a b", -1, "a", "b"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wr_progress p = {0};

        wr_progress_read(wr_span_str(rows[i].text), &p);
        assert_int_equal(p.percent, rows[i].percent);
        assert_string_equal(wr_buf_span(&p.stage).ptr, rows[i].stage);
        assert_string_equal(wr_buf_span(&p.message).ptr, rows[i].message);
        wr_progress_fini(&p);
    }
}

static void
long_and_hostile_words_are_cut_and_escaped(void **state)
{
    struct wr_buf text = {0};
    char stage[300], message[3000];

    (void)state;
    memset(stage, 's', sizeof(stage) - 1);
    memset(message, '\n', sizeof(message) - 1);
    stage[sizeof(stage) - 1] = message[sizeof(message) - 1] = '\0';
    wr_progress_write(1, wr_span_str(stage), wr_span_str(message), &text);
    assert_true(text.len < 2 + 6 + WR_STAGE_MAX + 1 + WR_PROGRESS_TEXT_MAX + 1);
    assert_null(memchr(text.ptr, '\n', text.len));
    wr_buf_fini(&text);
}

static void
how_long_it_is_kept_is_no_part_of_what_was_said(void **state)
{
    static const char *const rows[][2] = {
        {"keep=5000 40 half", "40 half"},
        {"keep=0 - x", "- x"},
        {"keep=5000", ""},
        {"keep=5x 40", "keep=5x 40"},
        {"keep= 40", "keep= 40"},
        {"40 keep=5 apples", "40 keep=5 apples"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wr_span text = wr_progress_text(wr_span_str(rows[i][0]));

        assert_int_equal(text.len, strlen(rows[i][1]));
        assert_memory_equal(text.ptr, rows[i][1], text.len);
    }
}

static void
of_a_job_that_is_over_the_end_is_read(void **state)
{
    static const char *const odd[] = {
        "",           "5",           "5 ",
        "5 6",        "5 6 ",        "x 6 done t",
        "5 y done t", "-5 6 done t", "99999999999999999999999 6 done t"};
    struct wr_progress_over over;

    (void)state;
    assert_true(wr_progress_over_read(wr_span_str("1796000005000 1796000000000 done "
                                                  "40 stage=a b c"),
                                      &over));
    assert_int_equal(over.until_ms, INT64_C(1796000005000));
    assert_int_equal(over.ended_at_ms, INT64_C(1796000000000));
    assert_int_equal(over.word.len, 4);
    assert_int_equal(over.text.len, strlen("40 stage=a b c"));
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        assert_false(wr_progress_over_read(wr_span_str(odd[i]), &over));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percent_stage_and_message_come_back_as_they_were_said),
        cmocka_unit_test(what_others_wrote_is_read_as_far_as_it_goes),
        cmocka_unit_test(long_and_hostile_words_are_cut_and_escaped),
        cmocka_unit_test(how_long_it_is_kept_is_no_part_of_what_was_said),
        cmocka_unit_test(of_a_job_that_is_over_the_end_is_read),
    };

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
