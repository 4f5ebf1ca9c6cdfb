/* Follow-up jobs as they lie in an outbox, and the steps of a chain. */
#include <string.h>

#include "model/follow.h"
#include "support/cmocka_all.h"

static const struct wr_follow one = {.queue = {"other", 5},
                                     .id = {"a b", 3},
                                     .head = {"1 t", 3},
                                     .tail = {" x=1\n\0\n9 9", 11},
                                     .unique = {"0 k", 3},
                                     .due = {"+5", 2}};

static void
what_is_written_is_read(void **state)
{
    struct wr_buf text = {0};
    struct wr_span rest, channel;
    struct wr_follow got;
    char name[WR_FOLLOW_CHANNEL_LEN + 1];

    (void)state;
    wr_follow_channel("q", "id", "7", name);
    wr_follow_begin(&text, name);
    wr_follow_write(&text, &one);
    wr_follow_write(&text, &(struct wr_follow){.queue = {"q", 1}, .id = {"i", 1}});
    rest = wr_buf_span(&text);
    assert_true(wr_follow_open(&rest, &channel));
    assert_int_equal(channel.len, 32);
    assert_memory_equal(channel.ptr, name, 32);
    assert_true(wr_follow_next(&rest, &got));
    assert_int_equal(got.tail.len, 11);
    assert_memory_equal(got.tail.ptr, one.tail.ptr, 11);
    assert_memory_equal(got.due.ptr, "+5", 2);
    assert_true(wr_follow_next(&rest, &got));
    assert_int_equal(got.due.len, 0);
    assert_false(wr_follow_next(&rest, &got));
    assert_int_equal(rest.len, 0);
    wr_buf_fini(&text);
}

static void
each_part_of_a_delivery_makes_another_channel(void **state)
{
    static const char *const rows[][3] = {
        {"q", "id", "7"}, {"q", "id", "8"}, {"qi", "d", "7"}, {"q", "id7", ""}};
    char names[4][WR_FOLLOW_CHANNEL_LEN + 1], again[WR_FOLLOW_CHANNEL_LEN + 1], id[21];

    (void)state;
    for (int i = 0; i < 4; i++) {
        wr_follow_channel(rows[i][0], rows[i][1], rows[i][2], names[i]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
    }
    wr_follow_channel("q", "id", "7", again);
    assert_string_equal(again, names[0]);
    wr_follow_id(again, 12, id);
    assert_int_equal(strlen(id), 20);
    assert_string_equal(id + 16, "-012");
}

static void
garbage_is_seen_and_read_by_nobody(void **state)
{
    static const char *const texts[] = {
        "1 1 1 1 1 1\nabcdef",   "1 1 1 1 1 99999999\nabcdef\n", "1 1 1 1 1\nabcde\n",
        "x 1 1 1 1 1\nabcdef\n", "-1 1 1 1 1 1\nabcdef\n",       "999999999 1 1 1 1 1\na",
        "1 1 1 1 1 1\nabcdefg"};
    struct wr_span channel, short_text = {"0123456789abcdef0123456789abcdef", 32};
    struct wr_follow got;

    (void)state;
    assert_false(wr_follow_open(&short_text, &channel));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct wr_span text = {texts[i], strlen(texts[i])};

        assert_false(wr_follow_next(&text, &got));
        assert_true(text.len > 0);
    }
}

static void
the_steps_of_a_chain_are_taken_one_by_one(void **state)
{
    struct wr_buf then = {0}, type = {0}, queue = {0};
    struct wr_span rest, bad = {"a=", 2}, none = {"", 0};

    (void)state;
    wr_then_add(&then, (struct wr_span){"a b=", 4}, (struct wr_span){"q%", 2});
    wr_then_add(&then, (struct wr_span){"c", 1}, (struct wr_span){"d", 1});
    rest = wr_buf_span(&then);
    assert_true(wr_then_take(&rest, &type, &queue));
    assert_string_equal(type.ptr, "a b=");
    assert_string_equal(queue.ptr, "q%");
    wr_buf_clear(&type);
    wr_buf_clear(&queue);
    assert_true(wr_then_take(&rest, &type, &queue));
    assert_string_equal(type.ptr, "c");
    assert_int_equal(rest.len, 0);
    assert_false(wr_then_take(&none, &type, &queue));
    wr_buf_clear(&type);
    wr_buf_clear(&queue);
    assert_false(wr_then_take(&bad, &type, &queue));
    wr_buf_fini(&then);
    wr_buf_fini(&type);
    wr_buf_fini(&queue);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(each_part_of_a_delivery_makes_another_channel),
        cmocka_unit_test(garbage_is_seen_and_read_by_nobody),
        cmocka_unit_test(the_steps_of_a_chain_are_taken_one_by_one),
    };

    return cmocka_run_group_tests_name("follow", tests, NULL, NULL);
}
