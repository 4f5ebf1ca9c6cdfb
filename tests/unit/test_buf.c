/* Growing buffers. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/buf.h"

static void
an_empty_buffer_has_an_empty_span(void **state)
{
    struct wr_buf b = {0};

    (void)state;
    assert_int_equal(wr_buf_span(&b).len, 0);
    assert_non_null(wr_buf_span(&b).ptr);
    wr_buf_drop(&b, 0);
    wr_buf_clear(&b);
    wr_buf_fini(&b);
}

static void
what_is_added_stays_in_order_and_ends_with_nul(void **state)
{
    struct wr_buf b = {0};

    (void)state;
    wr_buf_add_str(&b, "ab");
    wr_buf_add(&b, "\0c", 2);
    wr_buf_addf(&b, "%d-%s", 7, "x");
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.ptr, "ab\0c7-x", 8);
    wr_buf_fini(&b);
    assert_null(b.ptr);
}

static void
it_grows_past_any_size_it_had(void **state)
{
    struct wr_buf b = {0};

    (void)state;
    for (int i = 0; i < 20000; i++)
        wr_buf_addf(&b, "%05d", i);
    assert_int_equal(b.len, 100000);
    assert_memory_equal(b.ptr + 5 * 12345, "12345", 5);
    assert_true(b.cap > b.len);
    wr_buf_fini(&b);
}

static void
dropping_forgets_from_the_front(void **state)
{
    struct wr_buf b = {0};

    (void)state;
    wr_buf_add_str(&b, "hello");
    wr_buf_drop(&b, 2);
    assert_string_equal(b.ptr, "llo");
    wr_buf_drop(&b, 99);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.ptr, "");
    wr_buf_fini(&b);
}

static void
room_is_writable_up_to_what_was_asked(void **state)
{
    struct wr_buf b = {0};
    char *to = wr_buf_room(&b, 1000);

    (void)state;
    assert_non_null(to);
    memset(to, 'x', 1000);
    b.len += 1000;
    wr_buf_add_str(&b, "y");
    assert_int_equal(b.ptr[1000], 'y');
    wr_buf_fini(&b);
}

static void
an_absurd_size_fails_and_stays_failed_until_cleared(void **state)
{
    struct wr_buf b = {0};

    (void)state;
    wr_buf_add_str(&b, "kept");
    assert_null(wr_buf_room(&b, SIZE_MAX - 2));
    assert_true(b.failed);
    wr_buf_add_str(&b, "lost");
    assert_string_equal(b.ptr, "kept");
    wr_buf_clear(&b);
    assert_false(b.failed);
    wr_buf_add_str(&b, "new");
    assert_string_equal(b.ptr, "new");
    wr_buf_fini(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_has_an_empty_span),
        cmocka_unit_test(what_is_added_stays_in_order_and_ends_with_nul),
        cmocka_unit_test(it_grows_past_any_size_it_had),
        cmocka_unit_test(dropping_forgets_from_the_front),
        cmocka_unit_test(room_is_writable_up_to_what_was_asked),
        cmocka_unit_test(an_absurd_size_fails_and_stays_failed_until_cleared),
    };

    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
