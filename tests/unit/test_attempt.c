#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "model/attempt.h"

static bool
is(struct wr_span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
}

static void
facts_come_back_as_they_were_written(void **state)
{
    struct wr_attempt a = {.wall_ms = 204,
                           .is_command = true,
                           .exit_code = -1,
                           .signal = 9,
                           .pid = 4121,
                           .user_us = 12000,
                           .sys_us = 3000,
                           .max_rss_kib = 48000,
                           .bytes_in = INT64_C(5000000000),
                           .bytes_err = 7,
                           .err_cut = true,
                           .out_of_memory = true},
                      b;
    struct wr_buf facts = {0};
    char line[600];
    struct wr_span from;

    (void)state;
    wr_attempt_write_facts(&facts, &a);
    assert_true(facts.len < WR_FACTS_MAX);
    snprintf(line, sizeof(line), "1796000000123 failed =n:3;worker:web.9.ab;%s why: it\n",
             facts.ptr);
    from = wr_span_str(line);
    assert_true(wr_attempt_read(&from, &b));
    assert_int_equal(b.at_ms, INT64_C(1796000000123));
    assert_int_equal(b.number, 3);
    assert_true(is(b.outcome, "failed") && is(b.worker, "web.9.ab") &&
                is(b.text, "why: it"));
    assert_true(b.is_command && b.exit_code == -1 && b.signal == 9 && b.pid == 4121);
    assert_true(b.wall_ms == 204 && b.user_us == 12000 && b.sys_us == 3000);
    assert_true(b.max_rss_kib == 48000 && b.bytes_in == a.bytes_in && b.bytes_err == 7);
    assert_true(b.err_cut && b.out_of_memory && !b.out_cut && !b.core);
    assert_false(wr_attempt_read(&from, &b));
    wr_buf_fini(&facts);
}

static void
lines_without_facts_are_read_as_before(void **state)
{
    struct wr_span from = wr_span_str("17 lost_body the stored job was gone\n"
                                      "18 failed =not facts\n"
                                      "19 failed =n:x;y z\n"
                                      "20\n"
                                      "nonsense");
    struct wr_attempt a;

    (void)state;
    assert_true(wr_attempt_read(&from, &a));
    assert_true(a.number == 0 && a.wall_ms == -1 &&
                is(a.text, "the stored job was gone"));
    assert_true(wr_attempt_read(&from, &a) && is(a.text, "=not facts"));
    assert_true(wr_attempt_read(&from, &a) && is(a.text, "=n:x;y z"));
    assert_true(wr_attempt_read(&from, &a) && a.at_ms == 20 && a.outcome.len == 0);
    assert_true(wr_attempt_read(&from, &a) && a.at_ms == 0);
    assert_false(wr_attempt_read(&from, &a));
}

static void
facts_of_a_newer_worker_are_passed_over(void **state)
{
    struct wr_span from = wr_span_str("17 done =n:2;worker:w;new;newer:9;wall:5 ");
    struct wr_attempt a;

    (void)state;
    assert_true(wr_attempt_read(&from, &a));
    assert_true(a.number == 2 && a.wall_ms == 5 && !a.is_command && a.text.len == 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_come_back_as_they_were_written),
        cmocka_unit_test(lines_without_facts_are_read_as_before),
        cmocka_unit_test(facts_of_a_newer_worker_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
