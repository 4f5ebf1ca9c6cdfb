/* The kill points of what moves no job, or moves one for another reason than its own. */
#include "script/kill_acts.h"

#include <string.h>

#include "script/rig.h"
#include "store/cron.h"

#define DUE (RIG_START + 60000)

/* ---- output, and what people decide ---- */

static enum weir_err
act_log(struct kill_actor *a)
{
    struct wr_log_part part = {.id = wr_span_str("A"),
                               .token = wr_span_str(rig_token(KILL_WORKER, "A")),
                               .bytes = wr_span_str("text"),
                               .last = true};
    enum wr_logged word;
    enum weir_err rc = wr_store_log(a->store, a->queue, KILL_WORKER, &part, 1, &word,
                                    &a->err);

    return rc == WEIR_OK && word != WR_LOGGED_OK ? WEIR_E_BUG : rc;
}

static enum weir_err
act_reschedule(struct kill_actor *a)
{
    int64_t due_ms;
    bool delayed;

    return wr_store_reschedule(a->store, a->queue, wr_span_str("A"),
                               wr_span_str("@1796000900000"), &delayed, &due_ms, &a->err);
}

static enum weir_err
act_trim(struct kill_actor *a)
{
    struct wr_moved m;

    return wr_store_trim(a->store, a->queue, 10, &m, &a->err);
}

static enum weir_err
act_wait(struct kill_actor *a)
{
    struct wr_waiter waiter = {"weir:ended:t/1", 30000};
    bool ended;

    return wr_store_wait(a->store, a->queue, wr_span_str("A"), &waiter, false, &ended,
                         &a->err);
}

static enum weir_err
act_farewell(struct kill_actor *a)
{
    wr_store_farewell(a->store, a->queue, &rig.channel, 1);
    return WEIR_OK;
}

static enum weir_err
act_cancel(struct kill_actor *a)
{
    enum weir_cancel_result word;

    return weir_job_cancel(a->client, "q", "A", &word, &a->err);
}

static enum weir_err
act_repair(struct kill_actor *a)
{
    static const char *const names[] = {"stream", "ids", "sums"};
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; rc == WEIR_OK && i < 3; i++) {
        struct wr_reply *reply = NULL;

        rc = wr_store_repair(a->store, a->queue, names[i], "0", 100, &reply, &a->err);
        wr_reply_free(reply);
    }
    return rc;
}

/* ---- cron entries ---- */

static enum weir_err
act_put(struct kill_actor *a)
{
    int64_t rev;
    bool same;

    return wr_store_cron_put(a->store, a->queue, "e", WR_REV_ANY, DUE,
                             wr_span_str("spec=* zone=UTC\n1 t\nx"), &rev, &same,
                             &a->err);
}

static enum weir_err
act_remove(struct kill_actor *a)
{
    return wr_store_cron_remove(a->store, a->queue, "e", WR_REV_ANY, &a->err);
}

static enum weir_err
act_pause_entry(struct kill_actor *a)
{
    bool was;

    return wr_store_cron_pause(a->store, a->queue, "e", &was, &a->err);
}

static enum weir_err
act_resume_entry(struct kill_actor *a)
{
    bool was;

    return wr_store_cron_resume(a->store, a->queue, "e", RIG_START, DUE, &was, &a->err);
}

static enum weir_err
act_fire(struct kill_actor *a)
{
    struct wr_cron_tick tick = {
        .name = "e", .rev = RIG_START, .expected_ms = DUE, .tick_ms = DUE, .next_ms = -1};
    struct wr_cron_fired out;

    return wr_store_cron_fire(a->store, a->queue, &tick, &out, &a->err);
}

static enum weir_err
act_run(struct kill_actor *a)
{
    struct wr_cron_fired out;

    return wr_store_cron_run(a->store, a->queue, "e", "r1", &out, &a->err);
}

/* ---- workers and schedulers ---- */

static enum weir_err
act_lead(struct kill_actor *a)
{
    char value[128];
    int64_t now;
    bool leads;
    enum weir_err rc = wr_store_lead(a->store, a->queue, "me", "", &leads, value, &now,
                                     &a->err);

    return rc == WEIR_OK && !leads ? WEIR_E_BUG : rc;
}

static enum weir_err
act_beat(struct kill_actor *a)
{
    return wr_store_beat(a->store, &(struct wr_beat){.worker = KILL_WORKER}, NULL,
                         &a->err);
}

static enum weir_err
act_order(struct kill_actor *a)
{
    struct wr_told told = {WR_ORDER_QUIET, -1};
    enum wr_order before;
    bool known;
    enum weir_err rc = wr_store_order(a->store, KILL_WORKER, &told, "me", &known, &before,
                                      &a->err);

    return rc == WEIR_OK && !known ? WEIR_E_BUG : rc;
}

static bool
no_more(const char *name, void *context)
{
    (void)name;
    (void)context;
    return false;
}

static enum weir_err
act_registry(struct kill_actor *a)
{
    return wr_store_each_queue(a->store, no_more, NULL, &a->err);
}

/* ---- what only looks ---- */

static enum weir_err
act_audit(struct kill_actor *a)
{
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_store_audit(a->store, a->queue, &reply, &a->err);

    wr_reply_free(reply);
    return rc;
}

static enum weir_err
act_inspect(struct kill_actor *a)
{
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_store_inspect(a->store, a->queue, wr_span_str("A"), 100, &reply,
                                        &a->err);

    wr_reply_free(reply);
    return rc;
}

static enum weir_err
act_browse(struct kill_actor *a)
{
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_store_browse(a->store, a->queue, "ready", "0", 10, &reply,
                                       &a->err);

    wr_reply_free(reply);
    return rc;
}

static enum weir_err
act_locate(struct kill_actor *a)
{
    struct wr_span id = wr_span_str("A");
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_store_locate(a->store, a->queue, &id, 1, false, &reply,
                                       &a->err);

    wr_reply_free(reply);
    return rc;
}

static enum weir_err
act_walk(struct kill_actor *a)
{
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_store_walk(a->store, a->queue, "jobs", "0", 10, &reply,
                                     &a->err);

    wr_reply_free(reply);
    return rc;
}

static enum weir_err
act_output(struct kill_actor *a)
{
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_store_output(a->store, a->queue, wr_span_str("A"), 0, 0, 100,
                                       &reply, &a->err);

    wr_reply_free(reply);
    return rc;
}

static enum weir_err
act_roster(struct kill_actor *a)
{
    struct wr_reply *reply = NULL;
    enum weir_err rc = wr_store_roster(a->store, 10, &reply, &a->err);

    wr_reply_free(reply);
    return rc;
}

static enum weir_err
act_list(struct kill_actor *a)
{
    struct wr_reply *reply = NULL;
    struct wr_span text;
    int64_t now;
    enum weir_err rc = wr_store_cron_get(a->store, a->queue, "e", &now, &reply, &text,
                                         &a->err);

    wr_reply_free(reply);
    return rc;
}

/* ---- what was before, and what must be in the end ---- */

static void
one_is_delayed(void)
{
    rig_put_job((struct rig_job){.id = "A", .due = "+1000"});
}

static void
two_are_dead(void)
{
    rig_kill_job("A");
    rig_pass(1);
    rig_kill_job("B");
    redis_do(rig.redis, "HSET %s dead_max 1", rig_key(WR_QUEUE_KEY_config));
}

/* A stream: A was handed out, and nobody has it. */
static void
one_is_passed_over(void)
{
    kill_two_wait();
    if (rig.engine != RIG_STREAM)
        return;
    rig_take(KILL_WORKER, 1);
    redis_do(rig.redis, "XGROUP DELCONSUMER %s workers " KILL_WORKER,
             rig_key(WR_QUEUE_KEY_stream));
}

static void
an_entry(void)
{
    struct kill_actor a = {.store = rig.store, .queue = rig.queue};

    kill_two_wait();
    assert_int_equal(act_put(&a), WEIR_OK);
}

static void
an_entry_is_due(void)
{
    an_entry();
    rig_clock(DUE);
}

static void
an_entry_is_paused(void)
{
    struct kill_actor a = {.store = rig.store, .queue = rig.queue};

    an_entry();
    assert_int_equal(act_pause_entry(&a), WEIR_OK);
}

static void
a_worker_lives(void)
{
    const char *const fields[] = {"started_at", "1", NULL};
    struct wr_beat beat = {.worker = KILL_WORKER, .fields = fields};

    kill_two_wait();
    assert_int_equal(wr_store_beat(rig.store, &beat, NULL, &rig.err), WEIR_OK);
}

static void
one_prints(void)
{
    struct kill_actor a = {.store = rig.store, .queue = rig.queue};

    kill_one_runs();
    assert_int_equal(act_log(&a), WEIR_OK);
}

static void
must_be_put_off(void)
{
    assert_int_equal(rig_score("A"), INT64_C(1796000900000));
}

static void
must_be_waited_for(void)
{
    assert_string_equal(redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_waiters)),
                        "weir:ended:t/1 1796000030000");
}

static void
must_be_unknown(void)
{
    assert_string_equal(redis_do(rig.redis, "HEXISTS %s %s",
                                 rig_key(WR_QUEUE_KEY_producers), rig.channel.name),
                        "0");
}

static void
must_be_told(void)
{
    assert_string_equal(redis_do(rig.redis, "EXISTS weir:worker:" KILL_WORKER ":hint"),
                        "1");
}

static void
must_be_next(void)
{
    assert_string_equal(rig_take(KILL_WORKER, 1)->ids, "A");
}

/* Once, whoever died: an entry's text begins with its revision, its next tick and whether
 * it is paused. */
static void
entry_must_be(const char *begin)
{
    const char *text = redis_do(rig.redis, "HGET %s e", rig_key(WR_QUEUE_KEY_cron));

    if (strncmp(text, begin, strlen(begin)) != 0)
        fail_msg("the entry is %s, not %s", text, begin);
}

static void
entry_must_be_new(void)
{
    entry_must_be("1796000000000 1796000060000 - ");
}

static void
entry_must_be_paused(void)
{
    entry_must_be("1796000000000 1796000060000 p ");
}

static void
entry_must_be_over(void)
{
    entry_must_be("1796000000000 - - 1796000060000 ");
}

static void
entry_must_have_run(void)
{
    entry_must_be("1796000000000 1796000060000 - r1 ");
}

static void
entry_must_be_gone(void)
{
    assert_string_equal(redis_do(rig.redis, "HEXISTS %s e", rig_key(WR_QUEUE_KEY_cron)),
                        "0");
}

static void
must_lead(void)
{
    const char *value = redis_do(rig.redis, "GET %s", rig_key(WR_QUEUE_KEY_lock));

    assert_int_equal(strncmp(value, "me ", 3), 0);
}

static void
must_live(void)
{
    assert_string_equal(redis_do(rig.redis, "HGET weir:worker:" KILL_WORKER " state"),
                        "running");
    assert_string_equal(redis_do(rig.redis, "ZCARD weir:workers"), "1");
}

static void
must_be_ordered(void)
{
    assert_string_equal(redis_do(rig.redis, "HGET weir:worker:" KILL_WORKER " order"),
                        "quiet");
}

const struct kill_act kill_others[] = {
    {"log", kill_one_runs, act_log, "JPS", "log_bytes", 4, kill_no_world},
    {"reschedule", one_is_delayed, act_reschedule, "JL", "scheduled", 1, must_be_put_off},
    {"trim", two_are_dead, act_trim, "", "trimmed", 1, kill_no_world},
    {"wait", kill_two_wait, act_wait, "JR", "enqueued", 2, must_be_waited_for},
    {"farewell", kill_two_wait, act_farewell, "JR", "enqueued", 2, must_be_unknown},
    {"hint", kill_one_runs, act_cancel, "JPS", "deliveries", 1, must_be_told},
    {"repair", one_is_passed_over, act_repair, "JR", "enqueued", 2, must_be_next},
    {"cron_put", kill_two_wait, act_put, "JR", "enqueued", 2, entry_must_be_new},
    {"cron_fire", an_entry_is_due, act_fire, "JR", "enqueued", 3, entry_must_be_over},
    {"cron_run", an_entry, act_run, "JR", "enqueued", 3, entry_must_have_run},
    {"cron_pause", an_entry, act_pause_entry, "JR", "enqueued", 2, entry_must_be_paused},
    {"cron_resume", an_entry_is_paused, act_resume_entry, "JR", "enqueued", 2,
     entry_must_be_new},
    {"cron_remove", an_entry, act_remove, "JR", "enqueued", 2, entry_must_be_gone},
    {"cron_list", an_entry, act_list, "JR", "enqueued", 2, entry_must_be_new},
    {"lead", kill_two_wait, act_lead, "JR", "enqueued", 2, must_lead},
    {"beat", kill_two_wait, act_beat, "JR", "enqueued", 2, must_live},
    {"describe", kill_two_wait, act_beat, "JR", "enqueued", 2, must_live},
    {"order", a_worker_lives, act_order, "JR", "enqueued", 2, must_be_ordered},
    {"roster", a_worker_lives, act_roster, "JR", "enqueued", 2, must_live},
    {"registry", kill_two_wait, act_registry, "JR", "enqueued", 2, kill_no_world},
    {"audit", kill_two_wait, act_audit, "JR", "enqueued", 2, kill_no_world},
    {"inspect", kill_two_wait, act_inspect, "JR", "enqueued", 2, kill_no_world},
    {"browse", kill_two_wait, act_browse, "JR", "enqueued", 2, kill_no_world},
    {"locate", kill_two_wait, act_locate, "JR", "enqueued", 2, kill_no_world},
    {"walk", kill_two_wait, act_walk, "JR", "enqueued", 2, kill_no_world},
    {"output", one_prints, act_output, "JPS", "log_bytes", 4, kill_no_world},
};
const size_t kill_others_count = sizeof(kill_others) / sizeof(kill_others[0]);
