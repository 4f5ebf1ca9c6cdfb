/*
 * Every call of a client is cut at every point: a child makes the call and dies by
 * SIGKILL before its first send, after it, before its first receive, and so on until it
 * comes through. After each death the sums must be right, and the same call by a new
 * client must end as if there had been one.
 */
#undef _FORTIFY_SOURCE /* it has a recv() of its own; here is another */
#include "script/rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/client.h>

#include "base/clock.h"
#include "client/client_internal.h"
#include "model/follow.h"

#define POINTS_MAX 400 /* no call has more */
#define WORKER "w"

/* ---- dying ---- */

static long points_left = -1; /* until death; -1: not now */

static void
pass_point(void)
{
    if (points_left > 0 && --points_left == 0)
        kill(getpid(), SIGKILL);
}

/* These stand before the C library's in this program. */
ssize_t
send(int fd, const void *bytes, size_t len, int flags)
{
    ssize_t n;

    pass_point();
    n = syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
    pass_point();
    return n;
}

ssize_t
recv(int fd, void *bytes, size_t len, int flags)
{
    ssize_t n;

    pass_point();
    n = syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
    pass_point();
    return n;
}

/* ---- what is called ---- */

static const char *moves_to; /* the other engine */

struct actor {
    struct weir_client *client;
    struct wr_store *store;
    struct wr_queue *queue;
    struct weir_error err;
};

static struct weir_job
job_of(const char *id)
{
    return (struct weir_job){WEIR_JOB_INIT, .queue = "q",   .type = "t",
                             .id = id,      .payload = "x", .payload_len = 1};
}

static enum weir_err
act_enqueue(struct actor *a)
{
    struct weir_job job = job_of("A");

    return weir_job_enqueue(a->client, &job, NULL, &a->err);
}

static enum weir_err
act_enqueue_many(struct actor *a)
{
    struct weir_job jobs[] = {job_of("A"), job_of("B"), job_of("C")};
    struct weir_enqueued out[3];

    return weir_job_enqueue_many(a->client, jobs, 3, out, &a->err);
}

static enum weir_err
act_schedule(struct actor *a)
{
    struct weir_job job = job_of("A");

    job.delay_ms = 500;
    return weir_job_enqueue(a->client, &job, NULL, &a->err);
}

static enum weir_err
act_call(struct actor *a)
{
    struct wr_waiter waiter = {"weir:ended:t/1", 30000};
    struct weir_job job = job_of("A");
    bool told;
    enum weir_err rc = wr_client_enqueue_waited(a->client, &job, &waiter, &told, &a->err);

    return rc == WEIR_OK && !told ? WEIR_E_BUG : rc;
}

static enum weir_err
act_replace(struct actor *a)
{
    struct weir_job job = job_of("A");

    job.payload = "y";
    job.replace = true;
    return weir_job_enqueue(a->client, &job, NULL, &a->err);
}

static enum weir_err
act_promote(struct actor *a)
{
    struct wr_moved m;

    return wr_store_promote(a->store, a->queue, 10, &m, &a->err);
}

/* The call number makes the repeat get the same job. */
static enum weir_err
act_reserve(struct actor *a)
{
    struct wr_reserve how = {
        .worker = WORKER, .call = 700, .free = 1, .lease_ms = RIG_LEASE};
    struct wr_batch batch;
    enum weir_err rc = wr_store_reserve(a->store, a->queue, &how, &batch, &a->err);

    if (rc == WEIR_OK && (batch.n != 1 || memcmp(batch.jobs[0].id.ptr, "A", 1) != 0))
        rc = WEIR_E_BUG;
    wr_batch_fini(&batch);
    return rc;
}

static struct wr_answer
answer_of(const char *id)
{
    return (struct wr_answer){.id = wr_span_str(id),
                              .token = wr_span_str(rig_token(WORKER, id)),
                              .result = wr_span_str("out"),
                              .delay_ms = 100,
                              .reason = "permanent",
                              .text = wr_span_str("why")};
}

static enum weir_err
act_exchange(struct actor *a)
{
    struct wr_reserve how = {
        .worker = WORKER, .call = 700, .free = 1, .lease_ms = RIG_LEASE};
    struct wr_answer answer = answer_of("A");
    enum wr_answered word;
    struct wr_batch batch;
    enum weir_err rc = wr_store_exchange(a->store, a->queue, &how, &answer, 1, &word,
                                         &batch, &a->err);

    if (rc == WEIR_OK && (batch.n != 1 || memcmp(batch.jobs[0].id.ptr, "B", 1) != 0 ||
                          word == WR_ANSWERED_STALE))
        rc = WEIR_E_BUG;
    wr_batch_fini(&batch);
    return rc;
}

typedef enum weir_err (*answer_fn)(struct wr_store *, struct wr_queue *, const char *,
                                   const struct wr_answer *, size_t, enum wr_answered *,
                                   struct weir_error *);

static enum weir_err
give_answer(struct actor *a, answer_fn call)
{
    struct wr_answer answer = answer_of("A");
    enum wr_answered word;
    enum weir_err rc = call(a->store, a->queue, WORKER, &answer, 1, &word, &a->err);

    return rc == WEIR_OK && word == WR_ANSWERED_STALE ? WEIR_E_BUG : rc;
}

static enum weir_err
act_ack(struct actor *a)
{
    return give_answer(a, wr_store_ack);
}

/* As a worker does it: the answer, then the follow-up job from the outbox to its queue.
 */
static enum weir_err
act_ack_then(struct actor *a)
{
    static struct wr_buf follow;
    struct wr_answer answer = answer_of("A");
    char channel[WR_FOLLOW_CHANNEL_LEN + 1];
    enum wr_answered word;
    enum weir_err rc;

    wr_buf_clear(&follow);
    wr_follow_channel("q", "A", "1", channel);
    wr_follow_begin(&follow, channel);
    wr_follow_write(&follow, &(struct wr_follow){.queue = wr_span_str("q"),
                                                 .id = wr_span_str("F"),
                                                 .head = wr_span_str("1 t"),
                                                 .tail = wr_span_str("\nx")});
    answer.follow = wr_buf_span(&follow);
    rc = wr_store_ack_then(a->store, a->queue, WORKER, &answer, 1, &word, &a->err);
    if (rc == WEIR_OK && word == WR_ANSWERED_STALE)
        return WEIR_E_BUG;
    return rc == WEIR_OK && word == WR_ANSWERED_OK
               ? wr_store_relay(a->store, a->queue, answer.token, answer.follow, &a->err)
               : rc;
}

static enum weir_err
act_retry(struct actor *a)
{
    return give_answer(a, wr_store_retry);
}

static enum weir_err
act_bury(struct actor *a)
{
    return give_answer(a, wr_store_bury);
}

static enum weir_err
act_release(struct actor *a)
{
    return give_answer(a, wr_store_release);
}

static enum weir_err
act_extend(struct actor *a)
{
    struct wr_holding h = {.id = wr_span_str("A"),
                           .token = wr_span_str(rig_token(WORKER, "A"))};
    enum wr_extended word;
    enum weir_err rc = wr_store_extend(a->store, a->queue, WORKER, RIG_LEASE, &h, 1,
                                       &word, &a->err);

    return rc == WEIR_OK && word != WR_EXTEND_OK ? WEIR_E_BUG : rc;
}

static enum weir_err
act_progress(struct actor *a)
{
    enum wr_extended word;

    return wr_store_progress(a->store, a->queue, WORKER, wr_span_str("A"),
                             wr_span_str(rig_token(WORKER, "A")), wr_span_str("half"),
                             &word, &a->err);
}

static enum weir_err
act_reclaim(struct actor *a)
{
    struct wr_reclaim how = {.lease_ms = RIG_LEASE,
                             .lease_max_ms = 60000,
                             .gap_ms = 1000,
                             .last_ms = rig.now - 1000,
                             .limit = 10};
    struct wr_moved m;

    return wr_store_reclaim(a->store, a->queue, &how, &m, &a->err);
}

static enum weir_err
act_reclaim_held(struct actor *a)
{
    struct wr_holding h = {.id = wr_span_str("A"),
                           .token = wr_span_str(rig_token(WORKER, "A")),
                           .started = true};
    struct wr_moved m;

    return wr_store_reclaim_held(a->store, a->queue, WORKER, NULL, &h, 1, &m, NULL,
                                 &a->err);
}

static enum weir_err
act_forget(struct actor *a)
{
    struct wr_moved m;

    return wr_store_forget(a->store, a->queue, 10, &m, &a->err);
}

static enum weir_err
act_sweep(struct actor *a)
{
    struct wr_sweep at = {"0", "0", 0};

    return wr_store_sweep(a->store, a->queue, 1, 100, &at, &a->err);
}

static enum weir_err
act_cancel(struct actor *a)
{
    enum weir_cancel_result word;

    return weir_job_cancel(a->client, "q", "A", &word, &a->err);
}

static enum weir_err
act_replay(struct actor *a)
{
    return weir_dead_replay(a->client, "q", "A", &a->err);
}

static enum weir_err
act_purge(struct actor *a)
{
    return weir_dead_purge(a->client, "q", "A", &a->err);
}

static enum weir_err
act_pause(struct actor *a)
{
    bool was;

    return weir_queue_pause(a->client, "q", "me", NULL, &was, &a->err);
}

static enum weir_err
act_resume(struct actor *a)
{
    bool was;

    return weir_queue_resume(a->client, "q", &was, &a->err);
}

static enum weir_err
act_create(struct actor *a)
{
    bool made;

    return weir_queue_create(a->client, "q", NULL, NULL, &made, &a->err);
}

/* As the client does it, in steps of one job. */
static enum weir_err
act_migrate(struct actor *a)
{
    struct wr_migrated m = {.word = WR_MIGRATE_COPIED};
    enum weir_err rc = WEIR_OK;

    while (rc == WEIR_OK && m.word != WR_MIGRATE_DONE)
        rc = wr_store_migrate(a->store, a->queue, moves_to, "me", 1, &m, &a->err);
    return rc;
}

/* ---- what was before, and what must be in the end ---- */

static void
two_wait(void)
{
    rig_put_many("A B");
}

static void
one_is_due(void)
{
    rig_put_job((struct rig_job){.id = "A", .due = "+10"});
    rig_pass(10);
}

static void
one_is_delayed(void)
{
    rig_put_job((struct rig_job){.id = "A", .due = "+1000"});
}

static void
one_runs(void)
{
    rig_put_many("A B");
    assert_string_equal(rig_take(WORKER, 1)->ids, "A");
    rig_pass(1000);
}

static void
one_runs_to_be_kept(void)
{
    rig_put_job((struct rig_job){.id = "A", .options = " keep=5000"});
    rig_take(WORKER, 1);
}

static void
one_is_lost(void)
{
    one_runs();
    rig_pass(RIG_LEASE);
}

static void
one_is_dead(void)
{
    rig_kill_job("A");
}

static void
one_is_kept_long_enough(void)
{
    one_runs_to_be_kept();
    rig_ack(WORKER, "A");
    rig_pass(5000);
}

static void
a_window_is_over(void)
{
    rig_put_job((struct rig_job){.id = "A", .options = " unique=k", .unique = "5 k"});
    rig_pass(10000);
}

static void
it_is_paused(void)
{
    rig_put("A");
    rig_pause();
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
}

static void
nothing(void)
{
}

static void
must_be_renewed(void)
{
    assert_int_equal(rig_score("A"), INT64_C(1796000016000));
}

static void
must_be_half(void)
{
    struct wr_span progress = rig_state("A").progress;

    assert_int_equal(progress.len, 4);
    assert_memory_equal(progress.ptr, "half", 4);
}

static void
must_be_new(void)
{
    assert_string_equal(rig_record("A"), "1 t 1796000000000\ny");
}

static void
must_be_flagged(void)
{
    assert_int_equal(rig_release(WORKER, "A"), WR_ANSWERED_CANCELLED);
}

/* Whoever died where: the scheduler's leader enqueues what lies in the outbox. */
static void
one_follows(void)
{
    size_t relayed;
    bool more;

    assert_int_equal(
        wr_store_relay_late(rig.store, rig.queue, 0, 10, &relayed, &more, &rig.err),
        WEIR_OK);
    assert_string_equal(redis_do(rig.redis, "EXISTS weir:{q}:outbox"), "0");
    assert_string_equal(rig_where("F"), "JR");
}

static void
must_be_swept(void)
{
    assert_string_equal(redis_do(rig.redis, "EXISTS %s %s", rig_key(WR_QUEUE_KEY_windows),
                                 rig_key(WR_QUEUE_KEY_producers)),
                        "0");
}

static void
two_will_move(void)
{
    moves_to = rig.engine == RIG_LIST ? "stream" : "list";
    two_wait();
}

static void
must_be_registered(void)
{
    assert_string_equal(redis_do(rig.redis, "SISMEMBER weir:queues q"), "1");
}

static void
must_be_waited_for(void)
{
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_waiters)),
                        "weir:ended:t/1 1796000030000");
    must_be_registered();
}

static void
must_be_paused(void)
{
    assert_true(rig_audit().paused);
}

static void
must_run_again(void)
{
    assert_false(rig_audit().paused);
    assert_true(rig_has_marker());
}

static void
must_have_moved(void)
{
    assert_string_equal(
        redis_do(rig.redis, "HGET %s engine", rig_key(WR_QUEUE_KEY_config)), moves_to);
    must_run_again();
    assert_string_equal(rig_take(WORKER, 9)->ids, "A B");
}

/* counter: in the end exactly `count`. */
static const struct transition {
    const char *name;
    void (*before)(void);
    enum weir_err (*act)(struct actor *a);
    const char *where; /* A must be there; NULL: see after */
    const char *counter;
    int count;
    void (*after)(void);
} transitions[] = {
    {"enqueue", nothing, act_enqueue, "JR", "enqueued", 1, must_be_registered},
    {"enqueue many", nothing, act_enqueue_many, "JR", "enqueued", 3, must_be_registered},
    {"schedule", nothing, act_schedule, "JL", "scheduled", 1, must_be_registered},
    {"call", nothing, act_call, "JR", "enqueued", 1, must_be_waited_for},
    {"replace", two_wait, act_replace, "JR", "enqueued", 2, must_be_new},
    {"promote", one_is_due, act_promote, "JR", "promoted", 1, nothing},
    {"reserve", two_wait, act_reserve, "JPS", "deliveries", 1, nothing},
    {"exchange", one_runs, act_exchange, "", "deliveries", 2, nothing},
    {"exchange", one_runs, act_exchange, "", "done", 1, nothing},
    {"extend", one_runs, act_extend, "JPS", "deliveries", 1, must_be_renewed},
    {"progress", one_runs, act_progress, "JPS", "deliveries", 1, must_be_half},
    {"ack", one_runs, act_ack, "", "done", 1, nothing},
    {"ack_then", one_runs, act_ack_then, "", "done", 1, one_follows},
    {"ack, kept", one_runs_to_be_kept, act_ack, "JKS", "kept_in", 1, nothing},
    {"retry", one_runs, act_retry, "JLS", "retried", 1, nothing},
    {"bury", one_runs, act_bury, "JSX", "buried", 1, nothing},
    {"release", one_runs, act_release, "JRS", "released", 1, nothing},
    {"reclaim", one_is_lost, act_reclaim, "JRS", "reclaimed", 1, nothing},
    {"reclaim_held", one_runs, act_reclaim_held, "JRS", "reclaimed", 1, nothing},
    {"cancel ready", two_wait, act_cancel, "", "cancelled_ready", 1, nothing},
    {"cancel delayed", one_is_delayed, act_cancel, "", "cancelled_delayed", 1, nothing},
    {"cancel running", one_runs, act_cancel, "JPS", "deliveries", 1, must_be_flagged},
    {"replay", one_is_dead, act_replay, "JRS", "replayed", 1, nothing},
    {"purge", one_is_dead, act_purge, "", "purged", 1, nothing},
    {"forget", one_is_kept_long_enough, act_forget, "", "forgotten", 1, nothing},
    {"sweep", a_window_is_over, act_sweep, "JR", "enqueued", 1, must_be_swept},
    {"pause", two_wait, act_pause, "JR", "enqueued", 2, must_be_paused},
    {"resume", it_is_paused, act_resume, "JR", "enqueued", 1, must_run_again},
    {"migrate", two_will_move, act_migrate, "JR", "enqueued", 2, must_have_moved},
    {"create", nothing, act_create, "", "enqueued", 0, must_be_registered},
};

/* ---- a try ---- */

static enum weir_err
act_as_new_client(const struct transition *t)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                    .url = redis_server_url(rig.redis)};
    struct actor a = {0};
    enum weir_err rc = weir_client_open(&o, &a.client, &a.err);

    if (rc != WEIR_OK)
        return rc;
    a.store = wr_client_store(a.client);
    wr_store_set_test_clock(a.store, rig.now);
    rc = wr_store_queue(a.store, "q", &a.queue, &a.err);
    if (rc == WEIR_OK)
        rc = t->act(&a);
    weir_client_close(a.client);
    return rc;
}

static int
clients(void)
{
    const char *text = strstr(redis_do(rig.redis, "INFO clients"), "connected_clients:");

    return text ? atoi(text + strlen("connected_clients:")) : -1;
}

/* The server has read all that the dead child sent when it has seen its end. */
static void
wait_until_gone(int before)
{
    int64_t deadline = wr_clock_ms() + 10000;

    while (clients() != before) {
        if (wr_clock_ms() > deadline)
            fail_msg("the dead client's connection stays");
    }
}

/* False: the child came through before it passed that many points. */
static bool
die_at(const struct transition *t, long point)
{
    int before = clients(), status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        enum weir_err rc;

        points_left = point;
        rc = act_as_new_client(t);
        _exit(rc == WEIR_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    wait_until_gone(before);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    if (WEXITSTATUS(status) != 0)
        fail_msg("%s: the call fails, at point %ld", t->name, point);
    return false;
}

static void
check_end(const struct transition *t, long point)
{
    enum weir_err rc = act_as_new_client(t);
    enum weir_err_kind kind = weir_err_kind_of(rc);

    rig_follow_engine();
    if (kind != WEIR_KIND_OK && kind != WEIR_KIND_STATE)
        fail_msg("%s, point %ld: the repeat fails: %s", t->name, point,
                 weir_err_name(rc));
    if (strcmp(rig_where("A"), t->where) != 0)
        fail_msg("%s, point %ld: A is in %s, not %s", t->name, point, rig_where("A"),
                 t->where);
    if (rig_stat(t->counter) != t->count)
        fail_msg("%s, point %ld: %s is %lld, not %d", t->name, point, t->counter,
                 (long long)rig_stat(t->counter), t->count);
    t->after();
    rig_assert_sums();
}

static void
a_client_may_die_at_any_point_of_any_call_F3(void **state)
{
    long total = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
        const struct transition *t = &transitions[i];
        bool died = true;
        long point = 0;

        while (died) {
            assert_true(++point < POINTS_MAX);
            rig_fresh(NULL);
            rig_make_queue();
            t->before();
            died = die_at(t, point);
            rig_follow_engine();
            rig_assert_sums();
            if (t->before == nothing && rig_stat("enqueued") > 0)
                must_be_registered(); /* no job in a queue that no scheduler knows */
            check_end(t, point);
        }
        if (point < 12) /* the greeting, the probe, the call: a send and a receive each */
            fail_msg("%s: only %ld points: is the connection hooked?", t->name, point);
        total += point;
    }
    print_message("%ld deaths\n", total);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_client_may_die_at_any_point_of_any_call_F3),
    };

    return RIG_MAIN(tests);
}
