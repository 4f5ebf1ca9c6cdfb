/* Lines by which commands speak of themselves. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/rand.h"
#include "worker/spawn.h"

static struct wr_exec_end end;
static struct wr_buf note;
static int64_t extend_ms;

static int
fresh(void **state)
{
    (void)state;
    end = (struct wr_exec_end){.delay_ms = -1};
    wr_buf_fini(&note);
    extend_ms = 0;
    return 0;
}

static enum wr_control_word
say_bytes(const char *line, size_t len)
{
    return wr_control_line(line, len, &end, &note, &extend_ms);
}

static enum wr_control_word
say(const char *line)
{
    return say_bytes(line, strlen(line));
}

static void
progress_is_a_percentage_and_a_text(void **state)
{
    static const char *const rows[][2] = {
        {"progress 40 resizing", "40 resizing"},
        {"progress 40% resizing", "40 resizing"},
        {"progress 3/12", "25 3/12"},
        {"progress 3/12 pages", "25 3/12 pages"},
        {"progress 13/12", "100 13/12"},
        {"progress 250", "100 "},
        {"progress   7", "7 "},
        {"progress almost there", "- almost there"},
        {"progress 3/0 odd", "- 3/0 odd"},
        {"progress -5", "- -5"},
        {"progress", "- "},
        {"progress 99999999999999999999 x", "- 99999999999999999999 x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(say(rows[i][0]), WR_CONTROL_PROGRESS);
        assert_string_equal(end.progress, rows[i][1]);
    }
}

static void
the_last_verdict_counts_with_its_time_and_reason(void **state)
{
    (void)state;
    say("snooze 600 upstream is down");
    assert_int_equal(end.said, WR_SAID_SNOOZE);
    assert_int_equal(end.delay_ms, 600000);
    assert_string_equal(end.why, "upstream is down");
    say("snooze until later");
    assert_int_equal(end.delay_ms, -1);
    assert_string_equal(end.why, "until later");
    say("retry 1m30s");
    assert_int_equal(end.said, WR_SAID_RETRY);
    assert_int_equal(end.delay_ms, 90000);
    assert_string_equal(end.why, "");
    say("permanent 12 is no month");
    assert_int_equal(end.said, WR_SAID_PERMANENT);
    assert_int_equal(end.delay_ms, -1);
    assert_string_equal(end.why, "12 is no month");
}

static void
notes_levels_and_tags_are_kept(void **state)
{
    (void)state;
    assert_int_equal(say("note half way"), WR_CONTROL_NOTE);
    assert_int_equal(say("level warn slow disk"), WR_CONTROL_NOTE);
    assert_string_equal(note.ptr, "half way\n[warn] slow disk\n");
    say("tag red");
    say("tag big");
    assert_string_equal(end.tags, "red big");
    say("error the moon is full");
    assert_string_equal(end.why, "the moon is full");
    assert_int_equal(end.said, WR_SAID_NOTHING);
    say("result-file out put.png");
    assert_string_equal(end.result_file, "out put.png");
    wr_buf_clear(&note);
    assert_int_equal(say("push {\"queue\":\"q\"}"), WR_CONTROL_PUSH);
    assert_string_equal(note.ptr, "{\"queue\":\"q\"}\n");
    wr_buf_clear(&note);
    assert_int_equal(say("extend 5m"), WR_CONTROL_EXTEND);
    assert_int_equal(extend_ms, 300000);
    assert_int_equal(say("extend soon"), WR_CONTROL_NOTHING);
}

static void
unknown_words_and_a_word_of_success_say_nothing(void **state)
{
    static const char *const lines[] = {"",     "success",     "done 0", "heartbeat",
                                        "ack",  "SNOOZE 5",    " ",      "snoozed 5",
                                        "exit", "progressing", "\xff"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_int_equal(say(lines[i]), WR_CONTROL_NOTHING);
    assert_int_equal(end.said, WR_SAID_NOTHING);
    assert_int_equal(end.lines, 11);
    assert_string_equal(end.progress, "");
}

/* What is said is cut to its room, and no byte of it can do harm: run under the
 * sanitizers. */
static void
any_bytes_of_any_length_are_safe(void **state)
{
    static const char *const words[] = {"progress ", "note ",        "level ", "extend ",
                                        "snooze ",   "result-file ", "error ", "tag "};
    char line[2 * WR_CONTROL_LINE_MAX];

    (void)state;
    for (int i = 0; i < 4000; i++) {
        uint32_t random[2];
        const char *word;
        size_t len;

        wr_rand_bytes(random, sizeof(random));
        wr_rand_bytes(line, sizeof(line));
        word = words[random[0] % 8];
        memcpy(line, word, strlen(word));
        len = random[1] % sizeof(line);
        if (random[0] % 16 > 8)
            memset(line + strlen(word), 'x', sizeof(line) - strlen(word));
        say_bytes(line, len);
        wr_buf_clear(&note);
        assert_true(strlen(end.progress) < sizeof(end.progress));
    }
    assert_true(end.lines == 4000);
}

static int
forget(void **state)
{
    (void)state;
    wr_buf_fini(&note);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, fresh)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(progress_is_a_percentage_and_a_text),
        TEST(the_last_verdict_counts_with_its_time_and_reason),
        TEST(notes_levels_and_tags_are_kept),
        TEST(unknown_words_and_a_word_of_success_say_nothing),
        TEST(any_bytes_of_any_length_are_safe),
    };

    return cmocka_run_group_tests(tests, NULL, forget);
}
