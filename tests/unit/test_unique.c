/* In which states a job holds its unique key: what can be asked for, what is stored. */
#include "support/cmocka_all.h"

#include <string.h>

#include "model/unique.h"

static const char *
stored(const char *spec)
{
    static struct wr_buf out;

    wr_buf_clear(&out);
    assert_true(wr_unique_states_write(spec, &out));
    return out.len > 0 ? out.ptr : "";
}

static void
states_are_stored_in_one_order_and_the_default_not_at_all_U04(void **state)
{
    (void)state;
    assert_string_equal(stored(NULL), "");
    assert_string_equal(stored(""), "");
    assert_string_equal(stored("processing,delayed,ready"), "");
    assert_string_equal(stored("dead,ready,delayed"), "ready,delayed,dead");
    assert_string_equal(stored("done,dead,processing,delayed,ready"),
                        "ready,delayed,processing,dead,done");
    assert_string_equal(stored("ready,delayed,ready"), "ready,delayed");
}

static void
a_job_that_waits_always_holds_its_key_U04(void **state)
{
    static const char *const bad[] = {
        "dead",           "ready",          "delayed,dead",
        "processing",     "ready,delayed,", ",ready",
        "ready,,delayed", "READY,DELAYED",  "ready,delayed,gone",
        " ready,delayed"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(wr_unique_states_write(bad[i], NULL));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_stored_in_one_order_and_the_default_not_at_all_U04),
        cmocka_unit_test(a_job_that_waits_always_holds_its_key_U04),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
