/* Lending connections: limits, waiting, threads, fork. */
#include "support/cmocka_all.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/pool.h"

/* A network that never blocks and counts what is done to it. */
struct wr_conn {
    struct fake_net *net;
    pid_t owner;
    bool healthy;
};

struct fake_net {
    _Atomic int opened, closed, abandoned;
    enum weir_err open_fails_with; /* WEIR_OK: open works */
};

static enum weir_err
fake_open(void *ctx, int64_t deadline_ms, struct wr_conn **out, struct weir_error *err)
{
    struct fake_net *net = ctx;

    (void)deadline_ms;
    if (net->open_fails_with != WEIR_OK)
        return wr_fail(err, net->open_fails_with, 0, "no luck");
    *out = calloc(1, sizeof(**out));
    assert_non_null(*out);
    **out = (struct wr_conn){.net = net, .owner = getpid(), .healthy = true};
    net->opened++;
    return WEIR_OK;
}

static bool
fake_is_healthy(void *ctx, struct wr_conn *c, int64_t deadline_ms)
{
    (void)ctx;
    (void)deadline_ms;
    return c->healthy;
}

static pid_t
fake_owner(const struct wr_conn *c)
{
    return c->owner;
}

static void
fake_close(struct wr_conn *c)
{
    c->net->closed++;
    free(c);
}

static void
fake_abandon(struct wr_conn *c)
{
    c->net->abandoned++;
    free(c);
}

static const struct wr_pool_ops fake_ops = {
    .open = fake_open,
    .is_healthy = fake_is_healthy,
    .owner = fake_owner,
    .close = fake_close,
    .abandon = fake_abandon,
};

struct fixture {
    struct fake_net net;
    struct wr_pool *pool; /* two connections at most */
};

static int
setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_int_equal(wr_pool_new(&fake_ops, &f->net, 2, &f->pool), WEIR_OK);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;

    wr_pool_free(f->pool);
    assert_int_equal(f->net.opened, f->net.closed + f->net.abandoned);
    free(f);
    return 0;
}

static int64_t
in_ms(int64_t ms)
{
    return wr_clock_ms() + ms;
}

static struct wr_conn *
must_take(struct fixture *f)
{
    struct wr_conn *c = NULL;

    assert_int_equal(wr_pool_take(f->pool, in_ms(1000), in_ms(1000), &c, NULL), WEIR_OK);
    assert_non_null(c);
    return c;
}

static void
a_clean_connection_is_lent_again(void **state)
{
    struct fixture *f = *state;
    struct wr_conn *first = must_take(f), *second;

    wr_pool_give(f->pool, first, WR_GIVE_CLEAN);
    second = must_take(f);
    assert_ptr_equal(first, second);
    assert_int_equal(f->net.opened, 1);
    wr_pool_give(f->pool, second, WR_GIVE_CLEAN);
}

static void
a_broken_connection_is_closed_and_its_slot_freed(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 5; i++) /* more often than there are slots */
        wr_pool_give(f->pool, must_take(f), WR_GIVE_BROKEN);
    assert_int_equal(f->net.closed, 5);
}

static void
an_idle_connection_that_died_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct wr_conn *c = must_take(f);

    wr_pool_give(f->pool, c, WR_GIVE_CLEAN);
    c->healthy = false;
    wr_pool_give(f->pool, must_take(f), WR_GIVE_CLEAN);
    assert_int_equal(f->net.opened, 2);
    assert_int_equal(f->net.closed, 1);
}

static void
taking_more_than_the_maximum_times_out(void **state)
{
    struct fixture *f = *state;
    struct wr_conn *a = must_take(f), *b = must_take(f), *c;
    struct weir_error err;

    assert_int_equal(wr_pool_take(f->pool, in_ms(10), in_ms(1000), &c, &err),
                     WEIR_E_POOL_FULL);
    assert_null(c);
    assert_int_equal(err.code, WEIR_E_POOL_FULL);
    assert_int_equal(f->net.opened, 2);
    wr_pool_give(f->pool, a, WR_GIVE_CLEAN);
    wr_pool_give(f->pool, b, WR_GIVE_CLEAN);
}

static void
a_failed_open_frees_its_slot(void **state)
{
    struct fixture *f = *state;
    struct wr_conn *c;

    f->net.open_fails_with = WEIR_E_CONNECT;
    for (int i = 0; i < 5; i++)
        assert_int_equal(wr_pool_take(f->pool, in_ms(10), in_ms(1000), &c, NULL),
                         WEIR_E_CONNECT);

    f->net.open_fails_with = WEIR_OK;
    wr_pool_give(f->pool, must_take(f), WR_GIVE_CLEAN);
}

struct waiter {
    struct fixture *f;
    enum weir_err rc;
};

static void *
wait_for_a_connection(void *arg)
{
    struct waiter *w = arg;
    struct wr_conn *c;

    w->rc = wr_pool_take(w->f->pool, in_ms(5000), in_ms(5000), &c, NULL);
    if (w->rc == WEIR_OK)
        wr_pool_give(w->f->pool, c, WR_GIVE_CLEAN);
    return NULL;
}

static void
giving_back_wakes_a_waiting_thread(void **state)
{
    struct fixture *f = *state;
    struct wr_conn *a = must_take(f), *b = must_take(f);
    struct waiter w = {.f = f};
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, wait_for_a_connection, &w), 0);
    wr_pool_give(f->pool, a, WR_GIVE_CLEAN);
    pthread_join(t, NULL);
    assert_int_equal(w.rc, WEIR_OK);
    wr_pool_give(f->pool, b, WR_GIVE_CLEAN);
}

static void
the_warmest_connection_is_lent_first(void **state)
{
    struct fixture *f = *state;
    struct wr_conn *a = must_take(f), *b = must_take(f);

    wr_pool_give(f->pool, a, WR_GIVE_CLEAN);
    wr_pool_give(f->pool, b, WR_GIVE_CLEAN);
    assert_ptr_equal(must_take(f), b);
    wr_pool_give(f->pool, b, WR_GIVE_CLEAN);
}

static void
a_pool_of_nothing_is_refused(void **state)
{
    struct fake_net net = {0};
    struct wr_pool *pool;

    (void)state;
    assert_int_equal(wr_pool_new(&fake_ops, &net, 0, &pool), WEIR_E_ARG);
    assert_null(pool);
    wr_pool_free(NULL);
}

/* Counts who holds a connection, to see that never more do than allowed. */
struct crowd {
    struct fixture *f;
    _Atomic int holding, most, failed;
};

static void *
take_and_give(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < 500; i++) {
        struct wr_conn *c;
        int now;

        if (wr_pool_take(crowd->f->pool, in_ms(20000), in_ms(20000), &c, NULL) !=
            WEIR_OK) {
            crowd->failed++;
            continue;
        }
        now = ++crowd->holding;
        if (now > crowd->most)
            crowd->most = now;
        c->healthy = i % 7 != 0; /* a write that a second holder would race with */
        crowd->holding--;
        wr_pool_give(crowd->f->pool, c, i % 5 == 0 ? WR_GIVE_BROKEN : WR_GIVE_CLEAN);
    }
    return NULL;
}

static void
many_threads_share_few_connections(void **state)
{
    struct crowd crowd = {.f = *state};
    pthread_t threads[6];

    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &crowd), 0);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.failed, 0);
    assert_true(crowd.most >= 1 && crowd.most <= 2);
}

/* Runs in the child; its exit status is the number of the check that failed. */
static int
check_pool_after_fork(struct fixture *f, struct wr_conn *borrowed_by_parent)
{
    struct wr_conn *c;

    if (f->net.abandoned != 1) /* the idle one, by the fork hook */
        return 1;
    wr_pool_give(f->pool, borrowed_by_parent, WR_GIVE_CLEAN);
    if (f->net.abandoned != 2 || f->net.closed != 0)
        return 2;
    for (int i = 0; i < 2; i++) { /* what the parent holds takes none of our slots */
        if (wr_pool_take(f->pool, in_ms(1000), in_ms(1000), &c, NULL) != WEIR_OK ||
            c->owner != getpid())
            return 3;
    }
    return 0;
}

static void
a_child_process_starts_with_an_empty_pool(void **state)
{
    struct fixture *f = *state;
    struct wr_conn *idle = must_take(f), *lent = must_take(f);
    int status;
    pid_t pid;

    wr_pool_give(f->pool, idle, WR_GIVE_CLEAN);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(check_pool_after_fork(f, lent));

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);

    /* The parent did not notice. */
    wr_pool_give(f->pool, lent, WR_GIVE_CLEAN);
    assert_ptr_equal(must_take(f), lent);
    wr_pool_give(f->pool, lent, WR_GIVE_CLEAN);
}

/* Not _exit(): ThreadSanitizer would call the parent's threads leaked by the child. */
static void
leave_child(int status)
{
    syscall(SYS_exit_group, status);
}

static void
a_fork_while_threads_use_the_pool_never_hangs_the_child(void **state)
{
    struct crowd crowd = {.f = *state};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &crowd), 0);
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            struct wr_conn *c;

            alarm(20); /* a child that hangs dies of it */
            if (wr_pool_take(crowd.f->pool, in_ms(5000), in_ms(5000), &c, NULL) !=
                WEIR_OK)
                leave_child(1);
            if (c->owner != getpid())
                leave_child(2);
            wr_pool_give(crowd.f->pool, c, WR_GIVE_CLEAN);
            leave_child(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.failed, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_clean_connection_is_lent_again),
        TEST(a_broken_connection_is_closed_and_its_slot_freed),
        TEST(an_idle_connection_that_died_is_replaced),
        TEST(taking_more_than_the_maximum_times_out),
        TEST(a_failed_open_frees_its_slot),
        TEST(giving_back_wakes_a_waiting_thread),
        TEST(a_child_process_starts_with_an_empty_pool),
        TEST(the_warmest_connection_is_lent_first),
        TEST(a_pool_of_nothing_is_refused),
        TEST(many_threads_share_few_connections),
        TEST(a_fork_while_threads_use_the_pool_never_hangs_the_child),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
