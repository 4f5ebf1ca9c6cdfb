/* What of a run's output may be stored, and when. Times are passed in. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/output.h"
#include "worker/output.h"

static struct wr_output_buffer buffer;
static struct wr_buf part, text;
static int64_t lines, left_out, seen;

static int
fresh(void **state)
{
    (void)state;
    wr_output_buffer_fini(&buffer);
    buffer = (struct wr_output_buffer){.free_left = WR_OUTPUT_FREE};
    wr_buf_clear(&text);
    wr_buf_add_str(&text, "");
    lines = left_out = seen = 0;
    return 0;
}

static void
add(const char *bytes, int64_t now)
{
    wr_output_buffer_add(&buffer, bytes, strlen(bytes), 0, now);
}

/* Takes one part into text, as a reader would. */
static bool
take(bool ended, int64_t now)
{
    struct wr_output_record r;
    struct wr_span from;
    bool damaged, empty;

    wr_buf_clear(&part);
    empty = wr_output_buffer_take(&buffer, &part, ended, now);
    from = wr_buf_span(&part);
    while (wr_output_read(&from, &r, &damaged)) {
        if (r.kind == WR_OUTPUT_AT) {
            left_out += r.position - seen;
            seen = r.position;
            continue;
        }
        wr_buf_add(&text, r.bytes.ptr, r.bytes.len);
        seen += (int64_t)r.bytes.len;
        lines++;
    }
    assert_false(damaged);
    assert_int_equal(from.len, 0);
    return empty;
}

static void
take_all(bool ended, int64_t now)
{
    for (int i = 0; i < 1000 && !take(ended, now); i++)
        continue;
}

static void
a_line_goes_at_once_and_half_a_line_after_a_moment_X09(void **state)
{
    (void)state;
    assert_true(wr_output_buffer_due(&buffer) == INT64_MAX);
    add("one\ntw", 5);
    assert_false(take(false, 6));
    assert_string_equal(text.ptr, "one\n");
    assert_int_equal(wr_output_buffer_due(&buffer), 5 + WR_OUTPUT_PARTIAL_MS);
    assert_true(take(false, 5 + WR_OUTPUT_PARTIAL_MS));
    assert_string_equal(text.ptr, "one\ntw");
    add("o\n", 300);
    assert_true(take(false, 301));
    assert_string_equal(text.ptr, "one\ntwo\n");
    assert_int_equal(left_out, 0);
}

static void
a_progress_bar_without_newlines_comes_through_X09(void **state)
{
    char wanted[400] = "";

    (void)state;
    for (int i = 0; i < 20; i++) {
        char step[16];

        snprintf(step, sizeof(step), "\r%3d%%", i * 5);
        strcat(wanted, step);
        add(step, i * 250);
        take(false, i * 250 + 210);
    }
    take(true, 9000);
    assert_string_equal(text.ptr, wanted);
}

/* 1,000 lines a second for 10 s, looked at five times a second. */
static void
of_a_flood_50_lines_a_second_are_stored_and_the_rest_is_counted(void **state)
{
    int64_t printed = 0, first;

    (void)state;
    for (int64_t now = 0; now < 10000; now++) {
        char line[64];

        snprintf(line, sizeof(line), "this is the line number %06d of many\n", (int)now);
        add(line, now);
        printed += (int64_t)strlen(line);
        if (now % 200 == 0)
            take(false, now);
        if (now == 1000) /* the free begin is over by now */
            fresh(NULL), buffer.free_left = 0, printed = 0;
    }
    first = lines;
    assert_in_range(first, 9 * WR_OUTPUT_RATE - 20, 10 * WR_OUTPUT_RATE + 10);
    take_all(true, 10000);
    assert_true(left_out > 0);
    assert_int_equal((int64_t)text.len + left_out, printed);
    /* The last second is whole. */
    for (int n = 9100; n < 10000; n += 10) {
        char wanted[32];

        snprintf(wanted, sizeof(wanted), "number %06d of", n);
        assert_non_null(strstr(text.ptr, wanted));
    }
}

static void
after_a_flood_the_end_is_stored_though_the_run_goes_on(void **state)
{
    (void)state;
    buffer.free_left = 0;
    for (int i = 0; i < 500; i++)
        add("a line of the burst\n", 1000);
    take(false, 1001);
    assert_in_range(lines, 40, 60);
    take_all(false, 1001 + WR_OUTPUT_QUIET_MS);
    assert_int_equal(lines, 500);
    assert_int_equal(left_out, 0);
}

static void
a_buffer_nobody_empties_is_bounded_and_keeps_the_newest(void **state)
{
    int64_t printed = 0;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        char line[64];

        snprintf(line, sizeof(line), "%d\n", i);
        add(line, i / 10);
        printed += (int64_t)strlen(line);
        assert_true(buffer.ring.len <= 2 * WR_OUTPUT_RING_MAX + 8192);
    }
    take_all(true, 20000);
    assert_non_null(strstr(text.ptr, "\n199999\n"));
    assert_int_equal((int64_t)text.len + left_out, printed);
}

static void
any_bytes_in_any_pieces_come_out_as_they_went_in_D03(void **state)
{
    static char bytes[30000];
    unsigned seed = 7;
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(rand_r(&seed) % 20 == 0 ? '\n' : rand_r(&seed) % 256);
    memset(bytes + 9000, 'x', 6000); /* a line longer than a record may be */
    while (at < sizeof(bytes)) {
        size_t n = (size_t)rand_r(&seed) % 900;

        n = n < sizeof(bytes) - at ? n : sizeof(bytes) - at;
        wr_output_buffer_add(&buffer, bytes + at, n, 0, (int64_t)at);
        at += n;
    }
    take_all(true, 100000);
    assert_int_equal(text.len, sizeof(bytes));
    assert_memory_equal(text.ptr, bytes, sizeof(bytes));
    assert_int_equal(left_out, 0);
}

static void
what_was_lost_before_it_came_is_told(void **state)
{
    (void)state;
    add("a\nb", 1);
    wr_output_buffer_add(&buffer, "z\n", 2, 1000, 2);
    take_all(true, 3);
    assert_string_equal(text.ptr, "a\nbz\n");
    assert_int_equal(left_out, 1000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, fresh)
        T(a_line_goes_at_once_and_half_a_line_after_a_moment_X09),
        T(a_progress_bar_without_newlines_comes_through_X09),
        T(of_a_flood_50_lines_a_second_are_stored_and_the_rest_is_counted),
        T(after_a_flood_the_end_is_stored_though_the_run_goes_on),
        T(a_buffer_nobody_empties_is_bounded_and_keeps_the_newest),
        T(any_bytes_in_any_pieces_come_out_as_they_went_in_D03),
        T(what_was_lost_before_it_came_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
