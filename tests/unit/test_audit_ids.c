/* What the deep audit remembers of a walk. */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "audit/ids.h"

static void
what_was_said_of_an_id_is_known_however_much_that_is(void **state)
{
    struct wr_said said = {0};
    char id[16];

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 10000; i++) {
            snprintf(id, sizeof(id), "id%d", i);
            assert_int_equal(wr_said_before(&said, "no_body", wr_span_str(id)), round);
        }
    }
    assert_int_equal(said.n, 10000);
    assert_false(wr_said_before(&said, "two_places", wr_span_str("id7")));
    assert_false(wr_said_before(&said, "no_body", wr_span_str("id")));
    wr_said_fini(&said);
}

static void
a_set_has_the_ids_that_were_put_into_it(void **state)
{
    struct wr_id_set set = {0};
    char id[16];

    (void)state;
    assert_false(wr_id_set_has(&set, wr_span_str("a")));
    for (int i = 5000; i > 0; i--) {
        snprintf(id, sizeof(id), "%d", i);
        assert_true(wr_id_set_add(&set, wr_span_str(id)));
    }
    wr_id_set_sort(&set);
    assert_true(wr_id_set_has(&set, wr_span_str("1")));
    assert_true(wr_id_set_has(&set, wr_span_str("5000")));
    assert_false(wr_id_set_has(&set, wr_span_str("5001")));
    wr_id_set_fini(&set);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_said_of_an_id_is_known_however_much_that_is),
        cmocka_unit_test(a_set_has_the_ids_that_were_put_into_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
