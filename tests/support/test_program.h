/*
 * Runs the tests of a program, or what the environment says of them:
 *
 *   WEIR_ONLY=PATTERN   those whose names match: WEIR_ONLY='*zombies*'
 *   WEIR_PART=K/N       the K-th, K+N-th, K+2N-th, ...: ctest runs the parts of a program
 *                       that mostly waits beside each other
 *   WEIR_TEST_ENGINE=stream   on that engine (support/engine.h)
 */
#ifndef SUPPORT_TEST_PROGRAM_H
#define SUPPORT_TEST_PROGRAM_H

#include "support/cmocka_all.h"

/* Answers how many failed: the exit status of main(). */
int test_program_run(const char *name, const struct CMUnitTest *tests, size_t n,
                     CMFixtureFunction setup, CMFixtureFunction teardown);

#define RUN_TESTS(name, tests, setup, teardown) \
    test_program_run(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

#endif
