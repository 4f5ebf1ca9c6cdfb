/*
 * The wait of an idle worker and the offer that goes before it, under fire: its
 * connection is cut again and again, before a job comes, after it, and while it brings
 * one. And the wait of a busy one, for hints alone, which ends when a slot is free.
 */
#include "integration/worker_rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/proxy.h"

#define JOBS_MAX 4000
#define WAIT_LEASE_MS 1500
#define SOON_MS 3000 /* a worker that missed a marker looks after 5 s */

static struct shared {
    _Atomic int runs[JOBS_MAX];
    _Atomic int64_t began_ms[JOBS_MAX];
    _Atomic int busy, go; /* handlers that wait, and how many of them may end */
} * shared;

static enum weir_outcome
note(struct weir_delivery *d, void *context)
{
    int i = atoi(weir_delivery_id(d));

    (void)context;
    shared->began_ms[i] = wr_clock_ms();
    shared->runs[i]++;
    return WEIR_DONE;
}

static enum weir_outcome
hold(struct weir_delivery *d, void *context)
{
    int i = atoi(weir_delivery_id(d)), turn = ++shared->busy;

    (void)context;
    shared->began_ms[i] = wr_clock_ms();
    shared->runs[i]++;
    while (shared->go < turn && !weir_delivery_should_stop(d))
        usleep(1000);
    return weir_delivery_should_stop(d) ? WEIR_RETRY : WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    if (weir_worker_handle(w, "note", note, NULL, NULL) != WEIR_OK ||
        weir_worker_handle(w, "hold", hold, NULL, NULL) != WEIR_OK)
        _exit(70);
}

static int
setup(void **state)
{
    memset((void *)shared, 0, sizeof(*shared));
    return rig_setup(state);
}

/* One queue, and a lease that is long enough: then an offer goes before the wait. */
static void
start_idle_worker_of(size_t slots)
{
    static const char *const queues[] = {"q", NULL};

    rig_start_with((struct weir_worker_options){
        .queues = queues, .lease_ms = 15000, .concurrency = slots});
}

static void
start_idle_worker(void)
{
    start_idle_worker_of(0);
}

/* What the server says of the connection of the wait, while it waits; or 0: there is none
 * now. */
static int
wait_field(const char *field)
{
    const char *line = redis_do(rig.server, "CLIENT LIST TYPE normal");

    for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        size_t len = strcspn(line, "\n");
        const char *name = strstr(line, " name=weir-wait "),
                   *cmd = strstr(line, " cmd=blpop");

        if (name && name < line + len && cmd && cmd < line + len)
            return atoi(strstr(line, field) + strlen(field));
    }
    return 0;
}

static int
wait_id(void)
{
    return wait_field("id=");
}

static void
cut(void)
{
    int id = wait_id();

    if (id > 0)
        redis_do(rig.server, "CLIENT KILL ID %d", id);
}

/* Commands in one packet: the server runs them in one turn, and what a client sent behind
 * its wait comes only after it. */
static void
send_at_once(const char *text)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    char reply[256];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", redis_server_socket(rig.server));
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_true(read(fd, reply, sizeof(reply)) > 0);
    close(fd);
}

static void
put(int i)
{
    char id[16];

    snprintf(id, sizeof(id), "%d", i);
    rig_enqueue(JOB(), id, "note");
}

/* The marker is taken by a wait whose connection is gone before it is heard of. */
static void
put_and_lose_the_marker(int i)
{
    char text[128];
    int id;

    redis_do(rig.server, "HSET weir:{q}:config paused -"); /* no marker */
    put(i);
    redis_do(rig.server, "HDEL weir:{q}:config paused");
    AWAIT((id = wait_id()) > 0 || shared->runs[i] > 0);
    snprintf(text, sizeof(text), "LPUSH weir:{q}:wake 1\r\nCLIENT KILL ID %d\r\n", id);
    send_at_once(text);
}

static void
check(int n)
{
    struct weir_audit a;

    AWAIT(audit_of(rig.client, "q").done == n);
    for (int i = 0; i < n; i++)
        assert_int_equal(shared->runs[i], 1);
    a = audit_of(rig.client, "q");
    assert_int_equal(a.deliveries, n); /* none was lost with its marker */
    assert_int_equal(a.reclaimed, 0);
}

static unsigned
seeded(void)
{
    const char *text = getenv("WEIR_SEED");
    unsigned seed = text ? (unsigned)atoi(text) : (unsigned)getpid();

    print_message("WEIR_SEED=%u\n", seed);
    return seed;
}

static void
each_job_starts_soon_whenever_the_wait_is_cut(void **state)
{
    const char *text = getenv("WEIR_CHAOS_JOBS");
    int n = text && atoi(text) > 0 && atoi(text) < JOBS_MAX ? atoi(text) : 120;
    unsigned seed = seeded();

    (void)state;
    start_idle_worker();
    for (int i = 0; i < n; i++) {
        int64_t begin;

        if (rand_r(&seed) % 3 > 0)
            AWAIT(wait_id() > 0);
        begin = wr_clock_ms();
        if (i % 3 == 0) {
            put(i);
            usleep((unsigned)rand_r(&seed) % 1500);
            cut();
        } else if (i % 3 == 1) {
            cut();
            put(i);
        } else {
            put_and_lose_the_marker(i);
        }
        AWAIT(shared->runs[i] > 0);
        if (shared->began_ms[i] - begin > SOON_MS)
            fail_msg("job %d began after %lld ms", i,
                     (long long)(shared->began_ms[i] - begin));
    }
    check(n);
}

static void
no_job_is_lost_that_trickles_in_while_the_wait_is_cut(void **state)
{
    const char *text = getenv("WEIR_CHAOS_JOBS");
    int n = text && atoi(text) > 0 && atoi(text) < JOBS_MAX ? atoi(text) : 400;
    unsigned seed = seeded();

    (void)state;
    start_idle_worker();
    for (int i = 0; i < n; i++) {
        put(i);
        usleep((unsigned)rand_r(&seed) % 4000);
        if (rand_r(&seed) % 2)
            cut();
    }
    check(n);
}

/* Does the worker's offer stand? */
static bool
has_offer(void)
{
    const char *claims = redis_do(rig.server, "HVALS weir:{q}:claims");

    return claims && strstr(claims, " offers ");
}

/* A job was handed over, the marker never came: the call itself gets it, and it is
 * nobody's loss. */
static void
a_job_whose_marker_was_lost_is_asked_for_by_its_call(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(rig.server));
    int n = 20;

    (void)state;
    rig_make_queue();
    rig.url = proxy_url(proxy);
    start_idle_worker();
    for (int i = 0; i < n; i++) {
        char id[16];
        int64_t begin;

        snprintf(id, sizeof(id), "%d", i);
        AWAIT(wait_id() > 0 && has_offer());
        proxy_stall_named(proxy, "weir-wait");
        put(i);
        AWAIT(!rig_is(id, "ready"));
        begin = wr_clock_ms();
        proxy_cut_all(proxy);
        proxy_forward(proxy);
        AWAIT(shared->runs[i] > 0);
        assert_true(shared->began_ms[i] - begin <= SOON_MS);
    }
    check(n);
    assert_int_equal(rig_end(rig.workers[0], SIGTERM), 0);
    proxy_stop(proxy);
}

/* As above, but the worker is told to end before it hears of the job: it goes back
 * uncharged, and another worker has it soon. */
static void
a_job_in_doubt_is_handed_back_by_a_worker_that_ends(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(rig.server));
    int64_t begin;

    (void)state;
    rig_make_queue();
    rig.url = proxy_url(proxy);
    start_idle_worker();
    AWAIT(wait_id() > 0 && has_offer());
    proxy_stall_named(proxy, "weir-wait");
    put(0);
    AWAIT(!rig_is("0", "ready"));
    assert_int_equal(shared->runs[0], 0);
    begin = wr_clock_ms();
    assert_int_equal(rig_end(rig.workers[0], SIGTERM), 0);
    rig.url = NULL;
    start_idle_worker();
    AWAIT(shared->runs[0] > 0);
    assert_true(shared->began_ms[0] - begin <= SOON_MS);
    AWAIT(audit_of(rig.client, "q").done == 1);
    assert_int_equal(audit_of(rig.client, "q").reclaimed, 0);
    proxy_stop(proxy);
}

/* ---- with all slots busy ---- */

static pid_t
start_small_worker(int64_t grace_ms)
{
    static const char *const queues[] = {"q", NULL};

    return rig_start_with((struct weir_worker_options){
        .queues = queues, .concurrency = 1, .lease_ms = 60000, .grace_ms = grace_ms});
}

static void
cancel(int i)
{
    enum weir_cancel_result how;
    char id[16];
    int64_t start = wr_clock_ms();

    snprintf(id, sizeof(id), "%d", i);
    assert_int_equal(weir_job_cancel(rig.client, "q", id, &how, NULL), WEIR_OK);
    assert_int_equal(how, WEIR_CANCEL_FLAGGED);
    AWAIT(rig_is(id, "gone"));
    if (wr_clock_ms() - start > SOON_MS) /* a renewal would take 20 s */
        fail_msg("cancelled after %lld ms", (long long)(wr_clock_ms() - start));
}

static void
a_cancel_is_heard_at_once_by_a_worker_that_has_no_slot_free_X01(void **state)
{
    (void)state;
    start_small_worker(0);
    for (int i = 0; i < 3; i++) {
        rig_enqueue(JOB(), (char[]){(char)('0' + i), '\0'}, "hold");
        AWAIT(shared->runs[i] > 0);
        if (i > 0)
            AWAIT(wait_id() > 0);
        if (i > 1) {
            cut();
            AWAIT(wait_id() > 0);
        }
        cancel(i);
    }
    assert_int_equal(audit_of(rig.client, "q").cancelled_processing, 3);
}

static void
a_cancel_is_heard_at_once_by_a_worker_that_ends_X01(void **state)
{
    pid_t pid = start_small_worker(60000);

    (void)state;
    rig_enqueue(JOB(), "0", "hold");
    AWAIT(shared->runs[0] > 0);
    kill(pid, SIGTERM);
    AWAIT(rig_worker_is("draining"));
    AWAIT(wait_id() > 0);
    cut();
    AWAIT(wait_id() > 0); /* it listens anew */
    cancel(0);
    assert_int_equal(rig_end(pid, 0), 0);
}

/* The lease of a job that was handed over counts from the begin of the wait. */
static void
a_job_has_its_whole_lease_however_long_it_was_waited_for(void **state)
{
    static const char *const queues[] = {"q", NULL};

    (void)state;
    rig_start_with(
        (struct weir_worker_options){.queues = queues, .lease_ms = WAIT_LEASE_MS});
    AWAIT(wait_id() > 0);
    assert_false(has_offer());
    usleep(WAIT_LEASE_MS * 1000);
    rig_enqueue(JOB(), "0", "hold");
    AWAIT(shared->runs[0] > 0);
    shared->go = 1;
    check(1);
}

static void
an_offer_goes_before_the_wait_again_after_one_for_hints(void **state)
{
    (void)state;
    rig_make_queue();
    start_idle_worker_of(1);
    AWAIT(has_offer());
    rig_enqueue(JOB(), "0", "hold");
    AWAIT(shared->runs[0] > 0);
    AWAIT(wait_id() > 0);
    assert_false(has_offer());
    shared->go = 1;
    AWAIT(has_offer());
    check(1);
}

/* Long jobs and short ones come one by one, just before the end of the one before, just
 * after it, or later. */
static void
all_start_soon(int n, bool cuts)
{
    unsigned seed = seeded();

    start_small_worker(0);
    for (int i = 0; i < n; i++) {
        char id[16];
        int64_t begin;

        snprintf(id, sizeof(id), "%d", i);
        if (rand_r(&seed) % 2)
            usleep((unsigned)rand_r(&seed) % 5000);
        begin = wr_clock_ms();
        rig_enqueue(JOB(), id, "hold");
        AWAIT(shared->runs[i] > 0);
        if (shared->began_ms[i] - begin > SOON_MS)
            fail_msg("job %d began after %lld ms", i,
                     (long long)(shared->began_ms[i] - begin));
        if (rand_r(&seed) % 4)
            AWAIT(wait_id() > 0); /* for hints */
        if (cuts && rand_r(&seed) % 3 == 0)
            cut();
        shared->go = i + 1;
        if (cuts && rand_r(&seed) % 3 == 0)
            cut();
    }
    check(n);
}

static void
a_slot_that_gets_free_is_filled_as_soon_as_a_job_comes(void **state)
{
    (void)state;
    all_start_soon(40, false);
}

static void
so_it_is_while_the_wait_is_cut(void **state)
{
    (void)state;
    all_start_soon(40, true);
}

static void
so_it_is_where_no_wait_may_be_told_to_end(void **state)
{
    (void)state;
    redis_do(rig.server, "ACL SETUSER default -client|unblock");
    all_start_soon(10, false);
    rig_enqueue(JOB(), "10", "hold");
    AWAIT(shared->runs[10] > 0);
    cancel(10);
    redis_do(rig.server, "ACL SETUSER default +client|unblock");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_job_starts_soon_whenever_the_wait_is_cut),
        TEST(a_job_whose_marker_was_lost_is_asked_for_by_its_call),
        TEST(a_job_in_doubt_is_handed_back_by_a_worker_that_ends),
        TEST(no_job_is_lost_that_trickles_in_while_the_wait_is_cut),
        TEST(a_cancel_is_heard_at_once_by_a_worker_that_has_no_slot_free_X01),
        TEST(a_cancel_is_heard_at_once_by_a_worker_that_ends_X01),
        TEST(a_job_has_its_whole_lease_however_long_it_was_waited_for),
        TEST(an_offer_goes_before_the_wait_again_after_one_for_hints),
        TEST(a_slot_that_gets_free_is_filled_as_soon_as_a_job_comes),
        TEST(so_it_is_while_the_wait_is_cut),
        TEST(so_it_is_where_no_wait_may_be_told_to_end),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("worker_wait", tests, handlers);
}
