/*
 * Ordered jobs with real workers: three of them, handlers that fail, are put off and are
 * killed, and a note of every start, from which the order of each key is proved.
 */
#include "integration/worker_rig.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEYS 6
#define JOBS 25 /* of each key */

static struct shared {
    _Atomic int ended[KEYS];    /* so many of the key have come to their end */
    _Atomic pid_t owner[KEYS];  /* who runs one; 0: nobody */
    _Atomic int runs, overtook; /* overtook: started before the one in front ended */
    _Atomic int together;       /* two of a key at once */
    _Atomic int busy, most;     /* keys that run at once */
} * shared;

static void
note_start(int key, int number)
{
    pid_t was = atomic_exchange(&shared->owner[key], getpid());
    int ended = shared->ended[key], busy = ++shared->busy, most = shared->most;

    shared->runs++;
    /* The answer of the last one may have died with its worker: that runs again. */
    if (number != ended && number != ended - 1)
        shared->overtook++;
    if (was != 0 && (was == getpid() || process_lives(was)))
        shared->together++;
    while (busy > most && !atomic_compare_exchange_weak(&shared->most, &most, busy))
        ;
}

static void
note_end(int key)
{
    shared->busy--;
    shared->owner[key] = 0;
}

/* The first runs of every third job fail, every fifth snoozes, every seventh is given up.
 */
static enum weir_outcome
step(struct weir_delivery *d, void *context)
{
    size_t len;
    int key, number;
    enum weir_outcome outcome = WEIR_DONE;

    (void)context;
    if (sscanf(weir_delivery_payload(d, &len), "%d %d", &key, &number) != 2)
        return WEIR_PERMANENT;
    note_start(key, number);
    poll(NULL, 0, 2);
    weir_delivery_set_delay(d, 5);
    if (number % 3 == 0 && weir_delivery_attempt(d) <= 2)
        outcome = WEIR_RETRY;
    else if (number % 5 == 0 && weir_delivery_number(d) == 1)
        outcome = WEIR_SNOOZE;
    else {
        if (shared->ended[key] == number)
            shared->ended[key]++;
        outcome = number % 7 == 0 ? WEIR_PERMANENT : WEIR_DONE;
    }
    note_end(key);
    return outcome;
}

static void
handlers(struct weir_worker *worker)
{
    assert_int_equal(weir_worker_handle(worker, "step", step, NULL, NULL), WEIR_OK);
}

static int
setup(void **state)
{
    *shared = (struct shared){.runs = 0};
    return rig_setup(state);
}

static void
put_all(void)
{
    for (int number = 0; number < JOBS; number++) {
        for (int key = 0; key < KEYS; key++) {
            char id[32], payload[32], name[16];

            snprintf(name, sizeof(name), "key %d", key);
            snprintf(id, sizeof(id), "%d-%d", key, number);
            snprintf(payload, sizeof(payload), "%d %d", key, number);
            rig_enqueue(JOB(.payload = payload, .payload_len = strlen(payload) + 1,
                            .order_key = name, .max_retry = 10,
                            .max_deliveries = WEIR_NONE),
                        id, "step");
        }
    }
}

static bool
all_ended(void)
{
    struct weir_audit a = audit_of(rig.client, "q");

    return a.done + a.dead == (int64_t)KEYS * JOBS;
}

static void
assert_order(void)
{
    for (int key = 0; key < KEYS; key++)
        assert_int_equal(shared->ended[key], JOBS);
    assert_int_equal(shared->overtook, 0);
    assert_int_equal(shared->together, 0);
}

static void
start_three(void)
{
    for (int i = 0; i < 3; i++)
        rig_start_with((struct weir_worker_options){.concurrency = 4});
}

static void
ordered_jobs_that_fail_keep_their_order_on_three_workers_R07(void **state)
{
    (void)state;
    start_three();
    put_all();
    AWAIT(all_ended());
    assert_order();
    assert_true(shared->most > 1); /* other keys run meanwhile */
}

static void
ordered_jobs_keep_their_order_whatever_is_killed_R07(void **state)
{
    const char *text = getenv("WEIR_SEED"), *kills = getenv("WEIR_KILLS");
    unsigned seed = text ? (unsigned)atoi(text) : (unsigned)getpid();

    (void)state;
    print_message("WEIR_SEED=%u\n", seed);
    put_all();
    start_three();
    for (int i = 0; i < (kills ? atoi(kills) : 12) && !all_ended(); i++) {
        pid_t worker = rig.workers[rand_r(&seed) % 3];

        poll(NULL, 0, rand_r(&seed) % 60);
        if (i % 4 == 3) { /* all of it: its jobs come back when their leases end */
            rig_end(worker, SIGKILL);
            rig_start_with((struct weir_worker_options){.concurrency = 4});
        } else
            kill(worker_child(worker, "weir-child"), SIGKILL);
    }
    AWAIT(all_ended());
    assert_order();
    print_message("%d runs\n", shared->runs);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(ordered_jobs_that_fail_keep_their_order_on_three_workers_R07),
        TEST(ordered_jobs_keep_their_order_whatever_is_killed_R07),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("order", tests, handlers);
}
