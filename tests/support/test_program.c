#include "support/test_program.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/engine.h"

int
test_program_run(const char *name, const struct CMUnitTest *tests, size_t n,
                 CMFixtureFunction setup, CMFixtureFunction teardown)
{
    const char *only = getenv("WEIR_ONLY"), *text = getenv("WEIR_PART");
    size_t part = 1, parts = 1, chosen = 0;
    struct CMUnitTest *some = calloc(n, sizeof(*some));
    int failed;

    if (!some || (text && (sscanf(text, "%zu/%zu", &part, &parts) != 2 || part < 1 ||
                           part > parts || parts > n))) {
        fprintf(stderr, "%s: there is no part %s of its %zu tests\n", name, text, n);
        exit(2);
    }
    for (size_t i = part - 1; i < n; i += parts)
        some[chosen++] = tests[i];
    if (only)
        cmocka_set_test_filter(only);
    engine_choose();
    failed = _cmocka_run_group_tests(name, some, chosen, setup, teardown);
    free(some);
    if (!only && !engine_was_seen()) {
        fprintf(stderr, "%s: no queue of the engine that WEIR_TEST_ENGINE names\n", name);
        failed++;
    }
    return failed;
}
