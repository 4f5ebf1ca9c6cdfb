/* Names that weir makes. */
#include "support/cmocka_all.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/rand.h"

#define PER_THREAD 5000
#define THREADS 4

static int
compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int64_t
time_of(const char *id)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    uint64_t high = 0;

    for (int i = 0; i < 10; i++)
        high = high << 5 | (uint64_t)(strchr(digits, id[i]) - digits);
    return (int64_t)(high >> 2);
}

static void
an_id_is_20_digits_and_begins_with_the_time(void **state)
{
    char id[WR_ID_LEN + 1];
    int64_t before = wr_clock_wall_ms(), made;

    (void)state;
    wr_id_make(id);
    assert_int_equal(strlen(id), WR_ID_LEN);
    assert_int_equal(strspn(id, "0123456789abcdefghijklmnopqrstuv"), WR_ID_LEN);
    made = time_of(id);
    assert_true(made >= before && made <= wr_clock_wall_ms());
}

static void
ids_of_one_process_rise(void **state)
{
    char last[WR_ID_LEN + 1], id[WR_ID_LEN + 1];

    (void)state;
    wr_id_make(last);
    for (int i = 0; i < 100000; i++) {
        wr_id_make(id);
        assert_true(strcmp(last, id) < 0);
        memcpy(last, id, sizeof(last));
    }
}

static void *
make_many(void *arg)
{
    char(*ids)[WR_ID_LEN + 1] = arg;

    for (int i = 0; i < PER_THREAD; i++)
        wr_id_make(ids[i]);
    return NULL;
}

static void
threads_never_make_the_same_id(void **state)
{
    char(*ids)[WR_ID_LEN + 1] = calloc(THREADS * PER_THREAD, sizeof(*ids));
    pthread_t threads[THREADS];

    (void)state;
    assert_non_null(ids);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(
            pthread_create(&threads[t], NULL, make_many, ids + t * PER_THREAD), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    qsort(ids, THREADS * PER_THREAD, sizeof(*ids), compare_ids);
    for (int i = 1; i < THREADS * PER_THREAD; i++)
        assert_string_not_equal(ids[i - 1], ids[i]);
    free(ids);
}

static void
a_child_process_makes_other_ids_than_its_parent(void **state)
{
    char ours[50][WR_ID_LEN + 1], theirs[50][WR_ID_LEN + 1], worker[97], other[97] = "";
    int fds[2], status;
    pid_t pid;

    (void)state;
    wr_id_make(ours[0]);
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < 50; i++)
            wr_id_make(theirs[i]);
        wr_id_make_worker(worker);
        _exit(write(fds[1], theirs, sizeof(theirs)) != sizeof(theirs) ||
              write(fds[1], worker, sizeof(worker)) != sizeof(worker));
    }
    for (int i = 0; i < 50; i++)
        wr_id_make(ours[i]);
    wr_id_make_worker(worker);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(fds[0], theirs, sizeof(theirs)), sizeof(theirs));
    assert_int_equal(read(fds[0], other, sizeof(other)), sizeof(other));
    for (int i = 0; i < 50; i++) {
        for (int j = 0; j < 50; j++)
            assert_string_not_equal(ours[i], theirs[j]);
    }
    assert_string_not_equal(worker, other);
    close(fds[0]);
    close(fds[1]);
}

static void
a_worker_has_a_short_name_without_blanks_that_never_returns(void **state)
{
    char a[97], b[97], pid[16];

    (void)state;
    wr_id_make_worker(a);
    wr_id_make_worker(b);
    assert_string_not_equal(a, b);
    assert_true(strlen(a) <= 96);
    for (const char *p = a; *p; p++)
        assert_true(*p > ' ' && *p < 0x7f);
    snprintf(pid, sizeof(pid), ".%d.", (int)getpid());
    assert_non_null(strstr(a, pid));
}

static void
random_numbers_stay_below_their_limit_and_reach_all(void **state)
{
    int seen[7] = {0};

    (void)state;
    for (int i = 0; i < 2000; i++) {
        uint64_t n = wr_rand_below(7);

        assert_true(n < 7);
        seen[n]++;
    }
    for (int i = 0; i < 7; i++)
        assert_true(seen[i] > 0); /* fails once in 10^133 runs */
    assert_int_equal(wr_rand_below(1), 0);
    (void)wr_rand_below(UINT64_MAX);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_20_digits_and_begins_with_the_time),
        cmocka_unit_test(ids_of_one_process_rise),
        cmocka_unit_test(threads_never_make_the_same_id),
        cmocka_unit_test(a_child_process_makes_other_ids_than_its_parent),
        cmocka_unit_test(a_worker_has_a_short_name_without_blanks_that_never_returns),
        cmocka_unit_test(random_numbers_stay_below_their_limit_and_reach_all),
    };

    return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
