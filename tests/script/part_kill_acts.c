/* What a client calls in the kill points, what was before it, and what must be in the
 * end. */
#include "script/kill_acts.h"

#include <stdio.h>
#include <string.h>

#include "client/client_internal.h"
#include "model/follow.h"
#include "script/rig.h"
#include "store/call.h"
#include "store/cron.h"

#define KILL_CALL 700 /* of reserve: the worker makes it, or offers it */

/* ---- what is called ---- */

static const char *moves_to; /* the other engine */

static struct weir_job
job_of(const char *id)
{
    return (struct weir_job){WEIR_JOB_INIT, .queue = "q",   .type = "t",
                             .id = id,      .payload = "x", .payload_len = 1};
}

static enum weir_err
act_enqueue(struct kill_actor *a)
{
    struct weir_job job = job_of("A");

    return weir_job_enqueue(a->client, &job, NULL, &a->err);
}

static enum weir_err
act_enqueue_many(struct kill_actor *a)
{
    struct weir_job jobs[] = {job_of("A"), job_of("B"), job_of("C")};
    struct weir_enqueued out[3];

    return weir_job_enqueue_many(a->client, jobs, 3, out, &a->err);
}

static enum weir_err
act_schedule(struct kill_actor *a)
{
    struct weir_job job = job_of("A");

    job.delay_ms = 500;
    return weir_job_enqueue(a->client, &job, NULL, &a->err);
}

static enum weir_err
act_call(struct kill_actor *a)
{
    struct wr_waiter waiter = {"weir:ended:t/1", 30000};
    struct weir_job job = job_of("A");
    struct weir_enqueued out;
    bool told;
    enum weir_err rc = wr_client_enqueue_waited(a->client, &job, &waiter, &told, &out,
                                                &a->err);

    return rc == WEIR_OK && !told ? WEIR_E_BUG : rc;
}

static enum weir_err
act_replace(struct kill_actor *a)
{
    struct weir_job job = job_of("A");

    job.payload = "y";
    job.replace = true;
    return weir_job_enqueue(a->client, &job, NULL, &a->err);
}

static enum weir_err
act_promote(struct kill_actor *a)
{
    struct wr_moved m;

    return wr_store_promote(a->store, a->queue, 10, &m, &a->err);
}

/* The call number makes the repeat get the same job. */
static enum weir_err
act_reserve(struct kill_actor *a)
{
    struct wr_reserve how = {
        .worker = KILL_WORKER, .call = KILL_CALL, .free = 1, .lease_ms = RIG_LEASE};
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
                              .token = wr_span_str(rig_token(KILL_WORKER, id)),
                              .result = wr_span_str("out"),
                              .delay_ms = 100,
                              .reason = "permanent",
                              .text = wr_span_str("why")};
}

static enum weir_err
act_exchange(struct kill_actor *a)
{
    struct wr_reserve how = {
        .worker = KILL_WORKER, .call = KILL_CALL, .free = 1, .lease_ms = RIG_LEASE};
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
give_answer(struct kill_actor *a, answer_fn call)
{
    struct wr_answer answer = answer_of("A");
    enum wr_answered word;
    enum weir_err rc = call(a->store, a->queue, KILL_WORKER, &answer, 1, &word, &a->err);

    return rc == WEIR_OK && word == WR_ANSWERED_STALE ? WEIR_E_BUG : rc;
}

static enum weir_err
act_ack(struct kill_actor *a)
{
    return give_answer(a, wr_store_ack);
}

static struct wr_answer
answer_with_follower(void)
{
    static struct wr_buf follow;
    struct wr_answer answer = answer_of("A");
    char channel[WR_FOLLOW_CHANNEL_LEN + 1];

    wr_buf_clear(&follow);
    wr_follow_channel("q", "A", "1", channel);
    wr_follow_begin(&follow, channel);
    wr_follow_write(&follow, &(struct wr_follow){.queue = wr_span_str("q"),
                                                 .id = wr_span_str("F"),
                                                 .head = wr_span_str("1 t"),
                                                 .tail = wr_span_str("\nx")});
    answer.follow = wr_buf_span(&follow);
    return answer;
}

/* As a worker does it: the answer, then the follow-up job from the outbox to its queue.
 */
static enum weir_err
act_ack_then(struct kill_actor *a)
{
    struct wr_answer answer = answer_with_follower();
    enum wr_answered word;
    enum weir_err rc = wr_store_ack_then(a->store, a->queue, KILL_WORKER, &answer, 1,
                                         &word, &a->err);

    if (rc == WEIR_OK && word == WR_ANSWERED_STALE)
        return WEIR_E_BUG;
    return rc == WEIR_OK && word == WR_ANSWERED_OK
               ? wr_store_relay(a->store, a->queue, answer.token, answer.follow, &a->err)
               : rc;
}

/* As the scheduler's leader does it for a dead worker. */
static enum weir_err
act_relay_late(struct kill_actor *a)
{
    size_t relayed;
    bool more;

    return wr_store_relay_late(a->store, a->queue, 0, 10, &relayed, &more, &a->err);
}

static enum weir_err
act_retry(struct kill_actor *a)
{
    return give_answer(a, wr_store_retry);
}

static enum weir_err
act_bury(struct kill_actor *a)
{
    return give_answer(a, wr_store_bury);
}

static enum weir_err
act_release(struct kill_actor *a)
{
    return give_answer(a, wr_store_release);
}

static enum weir_err
act_extend(struct kill_actor *a)
{
    struct wr_holding h = {.id = wr_span_str("A"),
                           .token = wr_span_str(rig_token(KILL_WORKER, "A"))};
    enum wr_extended word;
    enum weir_err rc = wr_store_extend(a->store, a->queue, KILL_WORKER, RIG_LEASE, &h, 1,
                                       &word, &a->err);

    return rc == WEIR_OK && word != WR_EXTEND_OK ? WEIR_E_BUG : rc;
}

static enum weir_err
act_progress(struct kill_actor *a)
{
    enum wr_extended word;

    return wr_store_progress(a->store, a->queue, KILL_WORKER, wr_span_str("A"),
                             wr_span_str(rig_token(KILL_WORKER, "A")),
                             wr_span_str("half"), WR_PROGRESS_WITH_JOB, &word, &a->err);
}

static enum weir_err
act_reclaim(struct kill_actor *a)
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
act_reclaim_held(struct kill_actor *a)
{
    struct wr_holding h = {.id = wr_span_str("A"),
                           .token = wr_span_str(rig_token(KILL_WORKER, "A")),
                           .started = true};
    struct wr_moved m;

    return wr_store_reclaim_held(a->store, a->queue, KILL_WORKER, NULL, &h, 1, &m, NULL,
                                 &a->err);
}

static enum weir_err
act_forget(struct kill_actor *a)
{
    struct wr_moved m;

    return wr_store_forget(a->store, a->queue, 10, &m, &a->err);
}

static enum weir_err
act_sweep(struct kill_actor *a)
{
    struct wr_sweep at = {"0", "0", 0};

    return wr_store_sweep(a->store, a->queue, 1, 100, &at, &a->err);
}

static enum weir_err
act_cancel(struct kill_actor *a)
{
    enum weir_cancel_result word;

    return weir_job_cancel(a->client, "q", "A", &word, &a->err);
}

static enum weir_err
act_replay(struct kill_actor *a)
{
    return weir_dead_replay(a->client, "q", "A", &a->err);
}

static enum weir_err
act_purge(struct kill_actor *a)
{
    return weir_dead_purge(a->client, "q", "A", &a->err);
}

static enum weir_err
act_pause(struct kill_actor *a)
{
    bool was;

    return weir_queue_pause(a->client, "q", "me", NULL, &was, &a->err);
}

static enum weir_err
act_resume(struct kill_actor *a)
{
    bool was;

    return weir_queue_resume(a->client, "q", &was, &a->err);
}

static enum weir_err
act_create(struct kill_actor *a)
{
    bool made;

    return weir_queue_create(a->client, "q", NULL, NULL, &made, &a->err);
}

/* And makes it anew, for there must be sums in the end. */
static enum weir_err
act_drop(struct kill_actor *a)
{
    enum weir_err rc = weir_queue_remove(a->client, "q", NULL, &a->err);
    bool made;

    if (rc != WEIR_OK && rc != WEIR_E_NO_QUEUE)
        return rc;
    return weir_queue_create(a->client, "q", rig_either("list", "stream"), NULL, &made,
                             &a->err);
}

static void
must_be_made_anew(void)
{
    assert_string_equal(redis_do(rig.redis, "KEYS weir:{q}:*"), "weir:{q}:config");
    kill_must_be_registered();
}

/* As the client does it, in steps of one job. */
static enum weir_err
act_migrate(struct kill_actor *a)
{
    struct wr_migrated m = {.word = WR_MIGRATE_COPIED};
    enum weir_err rc = WEIR_OK;

    while (rc == WEIR_OK && m.word != WR_MIGRATE_DONE)
        rc = wr_store_migrate(a->store, a->queue, moves_to, "me", 1, &m, &a->err);
    return rc;
}

static enum weir_err
act_offer(struct kill_actor *a)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, a->store, a->queue, wr_pair_offer);
    wr_call_now(&c);
    wr_call_str(&c, KILL_WORKER);
    wr_call_int(&c, KILL_CALL);
    wr_call_int(&c, RIG_LEASE);
    wr_call_int(&c, 5000);
    wr_call_str(&c, "");
    wr_call_int(&c, 0);
    rc = wr_call_run(&c, &a->err);
    wr_call_fini(&c);
    return rc;
}

static enum weir_err
act_withdraw(struct kill_actor *a)
{
    return wr_store_withdraw(a->store, a->queue, KILL_WORKER, KILL_CALL, false, &a->err);
}

/* ---- what was before, and what must be in the end ---- */

void
kill_two_wait(void)
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

void
kill_one_runs(void)
{
    rig_put_many("A B");
    assert_string_equal(rig_take(KILL_WORKER, 1)->ids, "A");
    rig_pass(1000);
}

static void
one_left_its_follower(void)
{
    struct wr_answer answer;
    enum wr_answered word;

    kill_one_runs();
    answer = answer_with_follower();
    assert_int_equal(
        wr_store_ack_then(rig.store, rig.queue, KILL_WORKER, &answer, 1, &word, &rig.err),
        WEIR_OK);
}

static void
one_runs_to_be_kept(void)
{
    rig_put_job((struct rig_job){.id = "A", .options = " keep=5000"});
    rig_take(KILL_WORKER, 1);
}

static void
one_is_lost(void)
{
    kill_one_runs();
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
    rig_ack(KILL_WORKER, "A");
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

void
kill_no_world(void)
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
    assert_int_equal(rig_release(KILL_WORKER, "A"), WR_ANSWERED_CANCELLED);
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
    kill_two_wait();
}

void
kill_must_be_registered(void)
{
    assert_string_equal(redis_do(rig.redis, "SISMEMBER weir:queues q"), "1");
}

static void
must_be_waited_for(void)
{
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_waiters)),
                        "weir:ended:t/1 1796000030000");
    kill_must_be_registered();
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
    assert_string_equal(rig_take(KILL_WORKER, 9)->ids, "A B");
}

/* B runs. */
static void
nothing_waits(void)
{
    rig_put("B");
    assert_string_equal(rig_take("other", 1)->ids, "B");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
}

static void
one_waits_for_an_offer(void)
{
    nothing_waits();
    rig_put("A");
}

static void
one_is_offered(void)
{
    struct kill_actor a = {.store = rig.store, .queue = rig.queue};

    nothing_waits();
    assert_int_equal(act_offer(&a), WEIR_OK);
}

static void
one_is_handed_over(void)
{
    one_is_offered();
    rig_put("A");
}

/* Who waits hears of it by the marker, or by the call. */
static void
must_be_handed_over(void)
{
    struct wr_reserve how = {
        .worker = KILL_WORKER, .call = KILL_CALL, .free = 1, .lease_ms = RIG_LEASE};

    assert_string_equal(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_wake)), "1");
    assert_string_equal(rig_state("A").worker, KILL_WORKER);
    assert_string_equal(rig_take_how(&how)->ids, "A");
    assert_int_equal(rig_ack(KILL_WORKER, "A"), WR_ANSWERED_OK);
}

static void
must_be_handed_over_to_be_waited_for(void)
{
    must_be_waited_for();
    must_be_handed_over();
}

static void
the_next_must_be_handed_over(void)
{
    rig_put("A");
    must_be_handed_over();
}

/* Once: what it got by its call nobody takes back. */
static void
must_be_known_to_its_worker(void)
{
    struct kill_actor a = {.store = rig.store, .queue = rig.queue};

    assert_int_equal(act_withdraw(&a), WEIR_OK);
    must_be_handed_over();
}

static void
must_wait_again(void)
{
    assert_true(rig_has_marker());
    assert_string_equal(rig_take("other", 9)->ids, "A");
}

const struct kill_act kill_acts[] = {
    {"enqueue", kill_no_world, act_enqueue, "JR", "enqueued", 1, kill_must_be_registered},
    {"enqueue many", kill_no_world, act_enqueue_many, "JR", "enqueued", 3,
     kill_must_be_registered},
    {"schedule", kill_no_world, act_schedule, "JL", "scheduled", 1,
     kill_must_be_registered},
    {"call", kill_no_world, act_call, "JR", "enqueued", 1, must_be_waited_for},
    {"replace", kill_two_wait, act_replace, "JR", "enqueued", 2, must_be_new},
    {"offer", nothing_waits, act_offer, "", "enqueued", 1, the_next_must_be_handed_over},
    {"offer, one waits", one_waits_for_an_offer, act_offer, "JPS", "deliveries", 2,
     must_be_handed_over},
    {"enqueue, handed over", one_is_offered, act_enqueue, "JPS", "deliveries", 2,
     must_be_handed_over},
    {"call, handed over", one_is_offered, act_call, "JPS", "deliveries", 2,
     must_be_handed_over_to_be_waited_for},
    {"reserve, handed over", one_is_handed_over, act_reserve, "JPS", "deliveries", 2,
     must_be_known_to_its_worker},
    {"withdraw", one_is_handed_over, act_withdraw, "JRS", "released", 1, must_wait_again},
    {"promote", one_is_due, act_promote, "JR", "promoted", 1, kill_no_world},
    {"reserve", kill_two_wait, act_reserve, "JPS", "deliveries", 1, kill_no_world},
    {"exchange", kill_one_runs, act_exchange, "", "deliveries", 2, kill_no_world},
    {"exchange", kill_one_runs, act_exchange, "", "done", 1, kill_no_world},
    {"extend", kill_one_runs, act_extend, "JPS", "deliveries", 1, must_be_renewed},
    {"progress", kill_one_runs, act_progress, "JPS", "deliveries", 1, must_be_half},
    {"ack", kill_one_runs, act_ack, "", "done", 1, kill_no_world},
    {"ack_then", kill_one_runs, act_ack_then, "", "done", 1, one_follows},
    {"outbox", one_left_its_follower, act_relay_late, "", "done", 1, one_follows},
    {"outbox_done", one_left_its_follower, act_relay_late, "", "enqueued", 3,
     one_follows},
    {"ack, kept", one_runs_to_be_kept, act_ack, "JKS", "kept_in", 1, kill_no_world},
    {"retry", kill_one_runs, act_retry, "JLS", "retried", 1, kill_no_world},
    {"bury", kill_one_runs, act_bury, "JSX", "buried", 1, kill_no_world},
    {"release", kill_one_runs, act_release, "JRS", "released", 1, kill_no_world},
    {"reclaim", one_is_lost, act_reclaim, "JRS", "reclaimed", 1, kill_no_world},
    {"reclaim_held", kill_one_runs, act_reclaim_held, "JRS", "reclaimed", 1,
     kill_no_world},
    {"cancel ready", kill_two_wait, act_cancel, "", "cancelled_ready", 1, kill_no_world},
    {"cancel delayed", one_is_delayed, act_cancel, "", "cancelled_delayed", 1,
     kill_no_world},
    {"cancel running", kill_one_runs, act_cancel, "JPS", "deliveries", 1,
     must_be_flagged},
    {"replay", one_is_dead, act_replay, "JRS", "replayed", 1, kill_no_world},
    {"purge", one_is_dead, act_purge, "", "purged", 1, kill_no_world},
    {"forget", one_is_kept_long_enough, act_forget, "", "forgotten", 1, kill_no_world},
    {"sweep", a_window_is_over, act_sweep, "JR", "enqueued", 1, must_be_swept},
    {"pause", kill_two_wait, act_pause, "JR", "enqueued", 2, must_be_paused},
    {"resume", it_is_paused, act_resume, "JR", "enqueued", 1, must_run_again},
    {"migrate", two_will_move, act_migrate, "JR", "enqueued", 2, must_have_moved},
    {"enroll", kill_no_world, act_enqueue, "JR", "enqueued", 1, kill_must_be_registered},
    {"create", kill_no_world, act_create, "", "enqueued", 0, kill_must_be_registered},
    {"drop", kill_no_world, act_drop, "", "enqueued", 0, must_be_made_anew},
    {"delist", kill_no_world, act_drop, "", "enqueued", 0, must_be_made_anew},
};
const size_t kill_acts_count = sizeof(kill_acts) / sizeof(kill_acts[0]);
