#include "support/cmocka_all.h"

#include <string.h>

#include "model/output.h"

static void
records_come_back_as_they_were_written_D03(void **state)
{
    char bytes[256];
    struct wr_buf text = {0};
    struct wr_output_record r;
    struct wr_span from;
    bool damaged;

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    wr_output_write(&text, &(struct wr_output_record){
                               .kind = WR_OUTPUT_LINE, .ms = 12, .bytes = {bytes, 256}});
    wr_output_write(
        &text, &(struct wr_output_record){
                   .kind = WR_OUTPUT_AT, .ms = 13, .position = 5000000000, .lines = 7});
    wr_output_write(&text, &(struct wr_output_record){.kind = WR_OUTPUT_PART, .ms = 14});
    from = wr_buf_span(&text);
    assert_true(wr_output_read(&from, &r, &damaged));
    assert_int_equal(r.kind, WR_OUTPUT_LINE);
    assert_int_equal(r.ms, 12);
    assert_int_equal(r.bytes.len, 256);
    assert_memory_equal(r.bytes.ptr, bytes, 256);
    assert_true(wr_output_read(&from, &r, &damaged));
    assert_int_equal(r.kind, WR_OUTPUT_AT);
    assert_true(r.position == 5000000000 && r.lines == 7);
    assert_true(wr_output_read(&from, &r, &damaged));
    assert_int_equal(r.kind, WR_OUTPUT_PART);
    assert_int_equal(r.bytes.len, 0);
    assert_false(wr_output_read(&from, &r, &damaged));
    assert_false(damaged);
    wr_buf_fini(&text);
}

static void
half_a_record_is_not_damaged_and_nonsense_is(void **state)
{
    static const char *const bad[] = {
        "x1 2\nab",
        "e 2\nab",
        "e1  2\nab",
        "e1 2ab\n",
        "e-1 2\nab",
        "e1 x\nab",
        "a1 1\nx",
        "e9999999999999999999 1\na",
        "no record is so long before its first newline, is it"};
    struct wr_output_record r;
    bool damaged;

    (void)state;
    for (size_t len = 0; len < strlen("e10 4\nabcd"); len++) {
        struct wr_span from = {"e10 4\nabcd", len};

        assert_false(wr_output_read(&from, &r, &damaged));
        assert_false(damaged);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wr_span from = wr_span_str(bad[i]);

        assert_false(wr_output_read(&from, &r, &damaged));
        assert_true(damaged);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_they_were_written_D03),
        cmocka_unit_test(half_a_record_is_not_damaged_and_nonsense_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
