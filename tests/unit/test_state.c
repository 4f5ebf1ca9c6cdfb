/* The names of states, and the table of the moves between them. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "model/state.h"

static const enum wr_state all[] = {
#define X(name, word, text) WR_STATE_##name,
    WR_STATES(X)
#undef X
};
#define STATES (sizeof(all) / sizeof(all[0]))

static const struct {
    const char *name;
    enum wr_state from, to;
} moves[] = {
#define X(name, from, to) {#name, WR_STATE_##from, WR_STATE_##to},
    WR_TRANSITIONS(X)
#undef X
};
#define MOVES (sizeof(moves) / sizeof(moves[0]))

static void
every_word_reads_back_as_its_state(void **unused)
{
    enum wr_state found;

    (void)unused;
    for (size_t i = 0; i < STATES; i++) {
        assert_true(wr_state_parse(wr_state_word(all[i]), &found));
        assert_int_equal(found, all[i]);
    }
}

static void
other_words_are_no_state_and_change_nothing(void **unused)
{
    static const char *const words[] = {"",       "Ready", "ready ",  " ready",
                                        "readyx", "read",  "running", "READY"};
    enum wr_state found = WR_STATE_DEAD;

    (void)unused;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        assert_false(wr_state_parse(words[i], &found));
        assert_int_equal(found, WR_STATE_DEAD);
    }
}

static void
no_move_stands_twice(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MOVES; i++) {
        for (size_t k = 0; k < i; k++)
            assert_false(strcmp(moves[i].name, moves[k].name) == 0 &&
                         moves[i].from == moves[k].from && moves[i].to == moves[k].to);
    }
}

/* Marks what can be reached from `at`, or, backwards, from where `at` can be reached. */
static void
reach(enum wr_state at, bool backwards, bool *reached)
{
    if (reached[at])
        return;
    reached[at] = true;
    for (size_t i = 0; i < MOVES; i++) {
        enum wr_state from = backwards ? moves[i].to : moves[i].from;
        enum wr_state to = backwards ? moves[i].from : moves[i].to;

        if (from == at)
            reach(to, backwards, reached);
    }
}

static void
every_state_can_be_reached(void **unused)
{
    bool reached[STATES] = {false};

    (void)unused;
    reach(WR_STATE_NONE, false, reached);
    for (size_t i = 0; i < STATES; i++)
        assert_true(reached[all[i]]);
}

static void
no_job_can_get_stuck_on_its_way_to_an_end(void **unused)
{
    bool ends[STATES] = {false};

    (void)unused;
    reach(WR_STATE_NONE, true, ends);
    reach(WR_STATE_CANCELLED, true, ends);
    reach(WR_STATE_EXPIRED, true, ends);
    for (size_t i = 0; i < STATES; i++)
        assert_true(ends[all[i]]);
}

static void
only_a_worker_can_finish_a_job(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MOVES; i++) {
        if (moves[i].to != WR_STATE_DONE)
            continue;
        assert_int_equal(moves[i].from, WR_STATE_PROCESSING);
        assert_true(strcmp(moves[i].name, "ACK") == 0 ||
                    strcmp(moves[i].name, "ACK_THEN") == 0);
    }
}

static void
what_is_cancelled_or_expired_never_comes_back(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MOVES; i++) {
        assert_int_not_equal(moves[i].from, WR_STATE_CANCELLED);
        assert_int_not_equal(moves[i].from, WR_STATE_EXPIRED);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_reads_back_as_its_state),
        cmocka_unit_test(other_words_are_no_state_and_change_nothing),
        cmocka_unit_test(no_move_stands_twice),
        cmocka_unit_test(every_state_can_be_reached),
        cmocka_unit_test(no_job_can_get_stuck_on_its_way_to_an_end),
        cmocka_unit_test(only_a_worker_can_finish_a_job),
        cmocka_unit_test(what_is_cancelled_or_expired_never_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
