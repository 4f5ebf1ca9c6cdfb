/* Cron entries in Redis: changed by one of many, fired once, whoever tries. */
#include "script/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/entry.h"
#include "store/cron.h"

#define DUE (RIG_START + 60000)
#define STEP 60000

static int64_t
put(const char *name, int64_t rev, const char *options, const char *record)
{
    char def[256];
    int64_t out = 0;
    bool same;

    snprintf(def, sizeof(def), "spec=* zone=UTC%s\n%s", options, record);
    assert_int_equal(wr_store_cron_put(rig.store, rig.queue, name, rev, DUE,
                                       wr_span_str(def), &out, &same, &rig.err),
                     WEIR_OK);
    return out;
}

static struct wr_entry
entry(const char *name)
{
    static struct wr_reply *reply;
    struct wr_span text;
    struct wr_entry e;
    int64_t us;

    wr_reply_free(reply);
    assert_int_equal(
        wr_store_cron_get(rig.store, rig.queue, name, &us, &reply, &text, &rig.err),
        WEIR_OK);
    assert_int_equal(us, rig.now * 1000);
    assert_true(wr_entry_read(text, &e));
    return e;
}

static struct wr_cron_fired
fire_tick(struct wr_cron_tick tick)
{
    struct wr_cron_fired f;

    assert_int_equal(wr_store_cron_fire(rig.store, rig.queue, &tick, &f, &rig.err),
                     WEIR_OK);
    return f;
}

/* As a scheduler does that has read the entry just now. */
static struct wr_cron_fired
fire(const char *name)
{
    struct wr_entry e = entry(name);

    return fire_tick((struct wr_cron_tick){.name = name,
                                           .rev = e.rev,
                                           .expected_ms = e.due_ms,
                                           .tick_ms = e.due_ms,
                                           .next_ms = e.due_ms + STEP});
}

static struct wr_cron_fired
start_waiting(const char *name)
{
    struct wr_cron_fired f;

    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, name, "", &f, &rig.err),
                     WEIR_OK);
    return f;
}

static void
ignore(struct wr_span name, struct wr_span text, void *context)
{
    (void)name, (void)text, (void)context;
}

static bool
has_due_marker(void)
{
    return strcmp(redis_do(rig.redis, "LLEN %s", rig_key(WR_QUEUE_KEY_due)), "0") != 0;
}

/* ---- ticks ---- */

static void
a_tick_fires_once_however_many_try__C01(void **state)
{
    struct wr_cron_tick tick = {
        .name = "e", .expected_ms = DUE, .tick_ms = DUE, .next_ms = DUE + STEP};
    struct wr_cron_fired f;

    (void)state;
    tick.rev = put("e", WR_REV_NEW, "", "1 t\nhello");
    rig_clock(DUE);
    f = fire_tick(tick);
    assert_int_equal(f.word, WR_CRON_OK);
    assert_string_equal(f.detail, "cron:e:1796000060000");
    assert_int_equal(f.due_ms, DUE + STEP);
    assert_true(rig_has_marker());
    for (int i = 0; i < 4; i++)
        assert_int_equal(fire_tick(tick).word, WR_CRON_CHANGED);
    assert_int_equal(entry("e").fired, 1);
    assert_int_equal(rig_stat("enqueued"), 1);
    assert_string_equal(rig_take("w", 9)->ids, "cron:e:1796000060000");
    rig_assert_sums();
}

static void
a_tick_never_fires_early__C08(void **state)
{
    struct wr_cron_fired f;

    (void)state;
    put("e", WR_REV_NEW, "", "1 t\nx");
    rig_clock(DUE - 20);
    f = fire("e");
    assert_int_equal(f.word, WR_CRON_EARLY);
    assert_int_equal(f.early_us, 20000);
    assert_int_equal(f.due_ms, DUE);
    rig_clock(DUE - 1);
    assert_int_equal(fire("e").word, WR_CRON_EARLY);
    rig_clock(DUE);
    assert_int_equal(fire("e").word, WR_CRON_OK);
    assert_int_equal(fire("e").word, WR_CRON_EARLY); /* the next one */
    assert_int_equal(rig_stat("enqueued"), 1);
}

static void
a_tick_lives_on_whatever_becomes_of_its_job__C10(void **state)
{
    (void)state;
    put("e", WR_REV_NEW, " overlap=skip", "1 t retry=0\nx");
    for (int i = 0; i < 4; i++) {
        char id[64];

        snprintf(id, sizeof(id), "cron:e:%lld", (long long)(DUE + i * STEP));
        rig_clock(DUE + i * STEP);
        assert_int_equal(fire("e").word, WR_CRON_OK);
        switch (i) {
        case 0:
            rig_take("w", 1);
            rig_bury("w", id);
            break;
        case 1:
            rig_cancel(id);
            break;
        case 2:
            rig_take("w", 1);
            rig_cancel(id);
            rig_release("w", id);
            break;
        default:
            break;
        }
    }
    assert_int_equal(entry("e").fired, 4);
    rig_assert_sums();
}

static void
what_is_not_the_due_tick_changes_nothing(void **state)
{
    struct wr_cron_tick tick = {
        .name = "e", .expected_ms = DUE, .tick_ms = DUE, .next_ms = DUE + STEP};
    bool was;

    (void)state;
    tick.rev = put("e", WR_REV_NEW, "", "1 t\nx");
    rig_clock(DUE);
    tick.rev++;
    assert_int_equal(fire_tick(tick).word, WR_CRON_CHANGED);
    tick.rev--;
    tick.expected_ms++;
    assert_int_equal(fire_tick(tick).word, WR_CRON_CHANGED);
    tick.expected_ms--;
    assert_int_equal(wr_store_cron_pause(rig.store, rig.queue, "e", &was, &rig.err),
                     WEIR_OK);
    assert_int_equal(fire_tick(tick).word, WR_CRON_CHANGED);
    tick.name = "other";
    assert_int_equal(fire_tick(tick).word, WR_CRON_GONE);
    assert_int_equal(rig_stat("enqueued"), 0);
}

static void
missed_ticks_are_counted_and_passed__C04(void **state)
{
    struct wr_cron_tick tick = {.name = "e", .expected_ms = DUE};
    struct wr_cron_fired f;

    (void)state;
    tick.rev = put("e", WR_REV_NEW, "", "1 t\nx");
    rig_clock(DUE + 100 * STEP);
    tick.tick_ms = DUE + 100 * STEP;
    tick.next_ms = DUE + 101 * STEP;
    tick.passed = 100;
    f = fire_tick(tick);
    assert_int_equal(f.word, WR_CRON_OK);
    assert_string_equal(f.detail, "cron:e:1796006060000");
    assert_int_equal(entry("e").skipped, 100);
    tick.expected_ms = tick.next_ms;
    tick.tick_ms = -1;
    tick.next_ms = -1;
    assert_int_equal(fire_tick(tick).word, WR_CRON_EARLY);
    rig_clock(DUE + 101 * STEP);
    assert_int_equal(fire_tick(tick).word, WR_CRON_PASSED);
    assert_int_equal(entry("e").due_ms, -1);
    assert_int_equal(rig_stat("enqueued"), 1);
}

static void
jitter_delays_the_job_and_not_the_tick(void **state)
{
    struct wr_cron_tick tick = {.name = "e",
                                .expected_ms = DUE,
                                .tick_ms = DUE,
                                .next_ms = DUE + STEP,
                                .at_ms = DUE + 700};

    (void)state;
    tick.rev = put("e", WR_REV_NEW, " jitter=1000", "1 t\nx");
    rig_clock(DUE);
    assert_int_equal(fire_tick(tick).word, WR_CRON_OK);
    assert_string_equal(rig_where("cron:e:1796000060000"), "JL");
    rig_clock(DUE + 699);
    assert_int_equal(rig_promote(9).moved, 0);
    rig_clock(DUE + 700);
    assert_int_equal(rig_promote(9).moved, 1);
    rig_assert_sums();
}

static void
the_jitter_of_a_tick_is_the_same_for_all_who_ask(void **state)
{
    int64_t low = 1000, high = 0;

    (void)state;
    for (int64_t tick = 0; tick < 2000; tick++) {
        int64_t j = wr_entry_jitter("nightly", DUE + tick * STEP, 1000);

        assert_in_range(j, 0, 1000);
        assert_int_equal(j, wr_entry_jitter("nightly", DUE + tick * STEP, 1000));
        low = j < low ? j : low;
        high = j > high ? j : high;
    }
    assert_true(low < 20 && high > 980);
    assert_int_equal(wr_entry_jitter("nightly", DUE, 0), 0);
    assert_true(wr_entry_jitter("a", DUE, 100000) != wr_entry_jitter("b", DUE, 100000));
}

/* ---- overlap ---- */

static void
fire_twice(const char *options, bool running)
{
    put("e", WR_REV_NEW, options, "1 t unique=k\nx");
    rig_clock(DUE);
    assert_int_equal(fire("e").word, WR_CRON_OK);
    if (running)
        rig_take("w", 1);
    rig_clock(DUE + STEP);
}

static void
overlap_skip_leaves_the_tick_out__C14(void **state)
{
    struct wr_cron_fired f;

    (void)state;
    fire_twice(" overlap=skip", true);
    f = fire("e");
    assert_int_equal(f.word, WR_CRON_SKIPPED);
    assert_string_equal(f.detail, "cron:e:1796000060000");
    assert_int_equal(entry("e").skipped, 1);
    rig_ack("w", "cron:e:1796000060000");
    rig_clock(DUE + 2 * STEP);
    assert_int_equal(fire("e").word, WR_CRON_OK);
    rig_assert_sums();
}

static void
overlap_queue_lets_the_last_one_wait__C14(void **state)
{
    (void)state;
    fire_twice(" overlap=queue", true);
    assert_int_equal(fire("e").word, WR_CRON_WAITS);
    assert_int_equal(start_waiting("e").word, WR_CRON_WAITS);
    rig_clock(DUE + 2 * STEP);
    assert_int_equal(fire("e").word, WR_CRON_WAITS);
    assert_int_equal(entry("e").skipped, 1);
    assert_int_equal(rig_stat("enqueued"), 1);
    rig_ack("w", "cron:e:1796000060000");
    assert_int_equal(start_waiting("e").word, WR_CRON_OK);
    assert_string_equal(rig_take("w", 9)->ids, "cron:e:1796000180000");
    assert_int_equal(start_waiting("e").word, WR_CRON_NONE);
    rig_assert_sums();
}

static void
overlap_queue_runs_the_waiting_one_before_a_newer__C14(void **state)
{
    (void)state;
    fire_twice(" overlap=queue", true);
    assert_int_equal(fire("e").word, WR_CRON_WAITS);
    rig_ack("w", "cron:e:1796000060000");
    rig_clock(DUE + 2 * STEP);
    assert_int_equal(fire("e").word,
                     WR_CRON_WAITS); /* takes the turn of the one before */
    assert_int_equal(start_waiting("e").word, WR_CRON_OK);
    assert_int_equal(entry("e").fired, 2);
    assert_int_equal(entry("e").skipped, 1);
}

static void
overlap_replace_calls_the_one_before_off__C14(void **state)
{
    (void)state;
    fire_twice(" overlap=replace", false);
    assert_int_equal(fire("e").word, WR_CRON_OK); /* its unique key was free in time */
    assert_int_equal(rig_stat("cancelled_ready"), 1);
    assert_string_equal(rig_take("w", 9)->ids, "cron:e:1796000120000");
    rig_assert_sums();
}

static void
overlap_replace_flags_a_running_one__C14(void **state)
{
    (void)state;
    put("e", WR_REV_NEW, " overlap=replace", "1 t\nx");
    rig_clock(DUE);
    assert_int_equal(fire("e").word, WR_CRON_OK);
    rig_take("w", 1);
    rig_clock(DUE + STEP);
    assert_int_equal(fire("e").word, WR_CRON_OK);
    assert_int_equal(rig_extend("w", "cron:e:1796000060000", 0), WR_EXTEND_CANCEL);
    assert_int_equal(rig_retry("w", "cron:e:1796000060000", 0), WR_ANSWERED_CANCELLED);
    rig_assert_sums();
}

static void
overlap_allow_looks_at_nothing__C14(void **state)
{
    (void)state;
    put("e", WR_REV_NEW, "", "1 t\nx");
    for (int i = 0; i < 3; i++) {
        rig_clock(DUE + i * STEP);
        assert_int_equal(fire("e").word, WR_CRON_OK);
    }
    assert_int_equal(rig_take("w", 9)->n, 3);
}

static void
what_the_queue_refuses_is_said_and_the_next_tick_comes(void **state)
{
    struct wr_cron_fired f;

    (void)state;
    fire_twice("", true);
    f = fire("e");
    assert_int_equal(f.word, WR_CRON_REFUSED);
    assert_string_equal(f.detail, "UNIQUE cron:e:1796000060000");
    assert_int_equal(entry("e").due_ms, DUE + 2 * STEP);
    assert_int_equal(entry("e").skipped, 1);
    redis_do(rig.redis, "HSET %s payload_max 0", rig_key(WR_QUEUE_KEY_config));
    rig_ack("w", "cron:e:1796000060000");
    rig_clock(DUE + 2 * STEP);
    assert_string_equal(fire("e").detail, "BIG 0");
    rig_assert_sums();
}

static void
a_server_that_went_back_in_time_makes_no_second_job(void **state)
{
    struct wr_cron_fired f;

    (void)state;
    put("e", WR_REV_NEW, "", "1 t\nx");
    redis_do(rig.redis, "COPY %s saved", rig_key(WR_QUEUE_KEY_cron));
    rig_clock(DUE);
    assert_int_equal(fire("e").word, WR_CRON_OK);
    redis_do(rig.redis, "COPY saved %s REPLACE", rig_key(WR_QUEUE_KEY_cron));
    f = fire("e");
    assert_int_equal(f.word, WR_CRON_OK);
    assert_int_equal(f.due_ms, DUE + STEP);
    assert_int_equal(rig_stat("enqueued"), 1);
}

/* ---- people ---- */

static void
a_put_is_compared_with_what_is_there__C09(void **state)
{
    struct wr_span def = wr_span_str("spec=* zone=UTC\n1 t\nother");
    int64_t rev, out;
    bool same;

    (void)state;
    rev = put("e", WR_REV_NEW, "", "1 t\nx");
    assert_int_equal(put("e", WR_REV_NEW, "", "1 t\nx"), rev); /* the repeat of a call */
    assert_int_equal(wr_store_cron_put(rig.store, rig.queue, "e", WR_REV_NEW, DUE, def,
                                       &out, &same, &rig.err),
                     WEIR_E_EXISTS);
    assert_int_equal(wr_store_cron_put(rig.store, rig.queue, "e", rev + 7, DUE, def, &out,
                                       &same, &rig.err),
                     WEIR_E_CHANGED);
    assert_int_equal(wr_store_cron_put(rig.store, rig.queue, "f", rev, DUE, def, &out,
                                       &same, &rig.err),
                     WEIR_E_NO_CRON);
    assert_int_equal(wr_store_cron_put(rig.store, rig.queue, "e", rev, DUE, def, &out,
                                       &same, &rig.err),
                     WEIR_OK);
    assert_false(same);
    assert_true(out > rev);
    assert_int_equal(wr_store_cron_remove(rig.store, rig.queue, "e", rev, &rig.err),
                     WEIR_E_CHANGED);
    assert_int_equal(wr_store_cron_remove(rig.store, rig.queue, "e", out, &rig.err),
                     WEIR_OK);
    assert_int_equal(
        wr_store_cron_remove(rig.store, rig.queue, "e", WR_REV_ANY, &rig.err),
        WEIR_E_NO_CRON);
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_cron)),
                        "0");
}

static void
a_change_keeps_the_due_tick_unless_the_schedule_is_new__C09(void **state)
{
    struct wr_span def = wr_span_str("spec=new zone=UTC\n1 t\nx");
    int64_t rev, out;
    bool same;

    (void)state;
    put("e", WR_REV_NEW, "", "1 t\nx");
    rig_clock(DUE + 5);
    assert_int_equal(fire("e").word, WR_CRON_OK);
    rev = put("e", WR_REV_ANY, " jitter=5", "1 t\nx");
    assert_int_equal(entry("e").due_ms, DUE + STEP);
    assert_int_equal(entry("e").fired, 1);
    assert_int_equal(wr_store_cron_put(rig.store, rig.queue, "e", rev, DUE + 7, def, &out,
                                       &same, &rig.err),
                     WEIR_OK);
    assert_int_equal(entry("e").due_ms, DUE + 7);
}

static void
every_change_wakes_the_leader_and_changes_the_version__C15(void **state)
{
    char version[WR_CRON_VERSION_MAX] = "", last[WR_CRON_VERSION_MAX];
    bool same, was;

    (void)state;
    for (int i = 0; i < 5; i++) {
        int64_t us;

        redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_due));
        snprintf(last, sizeof(last), "%s", version);
        if (i == 0)
            put("e", WR_REV_NEW, "", "1 t\nx");
        else if (i == 1)
            put("e", WR_REV_ANY, "", "1 t\ny");
        else if (i == 2)
            assert_int_equal(wr_store_cron_pause(rig.store, rig.queue, "e", &was, NULL),
                             0);
        else if (i == 3)
            assert_int_equal(wr_store_cron_resume(rig.store, rig.queue, "e",
                                                  entry("e").rev, DUE, &was, NULL),
                             0);
        else {
            put("f", WR_REV_NEW, "", "1 t\ny");
            redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_due));
            assert_int_equal(
                wr_store_cron_remove(rig.store, rig.queue, "e", WR_REV_ANY, NULL), 0);
        }
        assert_true(has_due_marker());
        assert_int_equal(wr_store_cron_each(rig.store, rig.queue, version, &same, &us,
                                            ignore, NULL, NULL),
                         WEIR_OK);
        assert_false(same);
        assert_string_not_equal(version, last);
    }
}

static void
a_paused_entry_lets_its_ticks_pass(void **state)
{
    int64_t rev = 0;
    bool was;

    (void)state;
    rev = put("e", WR_REV_NEW, "", "1 t\nx");
    assert_int_equal(wr_store_cron_pause(rig.store, rig.queue, "e", &was, NULL), WEIR_OK);
    assert_false(was);
    assert_int_equal(wr_store_cron_pause(rig.store, rig.queue, "e", &was, NULL), WEIR_OK);
    assert_true(was);
    rig_clock(DUE + 10 * STEP);
    assert_int_equal(fire("e").word, WR_CRON_CHANGED);
    assert_int_equal(
        wr_store_cron_resume(rig.store, rig.queue, "e", rev + 1, DUE, &was, NULL),
        WEIR_E_CHANGED);
    assert_int_equal(
        wr_store_cron_resume(rig.store, rig.queue, "e", rev, DUE + 11 * STEP, &was, NULL),
        WEIR_OK);
    assert_int_equal(fire("e").word, WR_CRON_EARLY);
    assert_int_equal(rig_stat("enqueued"), 0);
}

static void
a_run_by_hand_is_beside_the_ticks(void **state)
{
    struct wr_cron_fired f;

    (void)state;
    put("e", WR_REV_NEW, " overlap=skip", "1 t\nx");
    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", "run-1", &f, NULL),
                     WEIR_OK);
    assert_string_equal(f.detail, "cron:e:run-1");
    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", "run-1", &f, NULL),
                     WEIR_OK); /* a repeated call */
    assert_int_equal(f.word, WR_CRON_OK);
    assert_int_equal(rig_stat("enqueued"), 1);
    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", "run-2", &f, NULL),
                     WEIR_OK);
    assert_int_equal(f.word, WR_CRON_SKIPPED);
    assert_int_equal(entry("e").due_ms, DUE);
    assert_int_equal(entry("e").skipped, 0);
}

/* Its reply may be lost and the call come again much later, when other runs were made and
 * this one's job is over. */
static void
a_repeated_run_by_hand_finds_the_first_whatever_ran_meanwhile_N12(void **state)
{
    struct wr_cron_fired f;

    (void)state;
    put("e", WR_REV_NEW, "", "1 t\nx");
    for (int i = 1; i <= 3; i++) {
        char run[16];

        snprintf(run, sizeof(run), "run-%d", i);
        assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", run, &f, NULL),
                         WEIR_OK);
    }
    rig_take("w", 3);
    rig_ack("w", "cron:e:run-1");
    assert_string_equal(rig_where("cron:e:run-1"), "");
    rig_pass(3599000);
    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", "run-1", &f, NULL),
                     WEIR_OK);
    assert_int_equal(f.word, WR_CRON_OK);
    assert_string_equal(f.detail, "cron:e:run-1");
    assert_int_equal(rig_stat("enqueued"), 3);
    assert_int_equal(entry("e").fired, 3);
    rig_assert_sums();
}

static void
the_repeat_of_a_run_that_waited_makes_no_second_one_N12(void **state)
{
    struct wr_cron_fired f;

    (void)state;
    put("e", WR_REV_NEW, " overlap=queue", "1 t\nx");
    for (int i = 1; i <= 2; i++)
        assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e",
                                           i == 1 ? "run-1" : "run-2", &f, NULL),
                         WEIR_OK);
    assert_int_equal(f.word, WR_CRON_WAITS);
    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", "run-2", &f, NULL),
                     WEIR_OK);
    assert_int_equal(f.word, WR_CRON_WAITS);
    assert_string_equal(f.detail, "cron:e:run-1");
    rig_take("w", 1);
    rig_ack("w", "cron:e:run-1");
    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", "", &f, NULL), WEIR_OK);
    assert_string_equal(f.detail, "cron:e:run-2");
    rig_take("w", 1);
    rig_ack("w", "cron:e:run-2");
    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", "run-3", &f, NULL),
                     WEIR_OK);
    assert_int_equal(wr_store_cron_run(rig.store, rig.queue, "e", "run-2", &f, NULL),
                     WEIR_OK);
    assert_int_equal(f.word, WR_CRON_OK);
    assert_string_equal(f.detail, "cron:e:run-2");
    assert_int_equal(rig_stat("enqueued"), 3);
}

struct seen {
    int n;
    bool payload;
};

static void
count_entry(struct wr_span name, struct wr_span text, void *context)
{
    struct seen *seen = context;
    struct wr_entry e;

    seen->n++;
    assert_true(wr_entry_is_name(name));
    assert_true(wr_entry_read(text, &e));
    seen->payload = seen->payload || memmem(text.ptr, text.len, "hello", 5);
}

static void
many_entries_come_in_slices_without_payloads(void **state)
{
    char version[WR_CRON_VERSION_MAX] = "";
    struct seen seen = {0};
    int64_t us;
    bool same;

    (void)state;
    for (int i = 0; i < 500; i++) {
        char name[16];

        snprintf(name, sizeof(name), "e%d", i);
        put(name, WR_REV_NEW, "", "1 t meta.a=b\nhello");
    }
    assert_int_equal(wr_store_cron_each(rig.store, rig.queue, version, &same, &us,
                                        count_entry, &seen, &rig.err),
                     WEIR_OK);
    assert_true(seen.n >= 500);
    assert_false(seen.payload);
    assert_int_equal(wr_store_cron_each(rig.store, rig.queue, version, &same, &us,
                                        count_entry, &seen, &rig.err),
                     WEIR_OK);
    assert_true(same);
}

static void
a_full_queue_of_entries_takes_no_more(void **state)
{
    const char *args[] = {"1796000000000", "a", "0", "-", "1", "spec=x zone=z\n1 t\nx"};

    (void)state;
    rig_put("A");
    assert_memory_equal(
        rig_script("cron_put", args[0], "a", args[2], args[3], args[4], args[5], NULL),
        "OK", 2);
    assert_memory_equal(
        rig_script("cron_put", args[0], "b", args[2], args[3], args[4], args[5], NULL),
        "FULL", 4);
}

static void
an_entry_changed_by_hand_harms_nobody(void **state)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "1 2 3",
                                        "1 2 - - 0 0 0 -\nspec",
                                        "1 2 - - 0 0 0 -\nspec=a zone=b cap=0\n1 t\nx",
                                        "1 - - - 0 0 0 -\nspec=a zone=b\n"};
    struct wr_cron_tick tick = {
        .name = "e", .rev = 1, .expected_ms = 2, .tick_ms = 2, .next_ms = 3};

    (void)state;
    rig_put("A");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct wr_span words[4] = {wr_span_str("HSET"),
                                   wr_span_str(rig_key(WR_QUEUE_KEY_cron)),
                                   wr_span_str("e"), wr_span_str(texts[i])};
        struct wr_reply *reply;
        struct wr_cron_fired f;
        struct wr_entry e;

        assert_int_equal(
            wr_conn_call(rig.conn, words, 4, INT64_MAX / 2, &reply, &rig.err), WEIR_OK);
        wr_reply_free(reply);
        assert_false(wr_entry_read(wr_span_str(texts[i]), &e));
        assert_int_equal(wr_store_cron_fire(rig.store, rig.queue, &tick, &f, &rig.err),
                         WEIR_OK);
        assert_true(f.word == WR_CRON_GONE || f.word == WR_CRON_REFUSED ||
                    f.word == WR_CRON_CHANGED || f.word == WR_CRON_OK);
    }
    assert_int_equal(
        wr_store_cron_remove(rig.store, rig.queue, "e", WR_REV_ANY, &rig.err), WEIR_OK);
}

static void
a_full_redis_refuses_a_tick_and_keeps_it_due__F17(void **state)
{
    struct wr_cron_tick tick = {
        .name = "e", .expected_ms = DUE, .tick_ms = DUE, .next_ms = DUE + STEP};
    struct wr_cron_fired f;
    bool was;

    (void)state;
    tick.rev = put("e", WR_REV_NEW, "", "1 t\nx");
    rig_clock(DUE);
    redis_do(rig.redis, "CONFIG SET maxmemory 1");
    assert_int_equal(wr_store_cron_fire(rig.store, rig.queue, &tick, &f, &rig.err),
                     WEIR_E_FULL);
    assert_int_equal(wr_store_cron_pause(rig.store, rig.queue, "e", &was, NULL), WEIR_OK);
    assert_int_equal(
        wr_store_cron_resume(rig.store, rig.queue, "e", tick.rev, DUE, &was, NULL),
        WEIR_OK);
    redis_do(rig.redis, "CONFIG SET maxmemory 0");
    assert_int_equal(fire_tick(tick).word, WR_CRON_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_tick_fires_once_however_many_try__C01),
        RIG_TEST(a_tick_never_fires_early__C08),
        RIG_TEST(a_tick_lives_on_whatever_becomes_of_its_job__C10),
        RIG_TEST(what_is_not_the_due_tick_changes_nothing),
        RIG_TEST(missed_ticks_are_counted_and_passed__C04),
        RIG_TEST(jitter_delays_the_job_and_not_the_tick),
        RIG_TEST(the_jitter_of_a_tick_is_the_same_for_all_who_ask),
        RIG_TEST(overlap_skip_leaves_the_tick_out__C14),
        RIG_TEST(overlap_queue_lets_the_last_one_wait__C14),
        RIG_TEST(overlap_queue_runs_the_waiting_one_before_a_newer__C14),
        RIG_TEST(overlap_replace_calls_the_one_before_off__C14),
        RIG_TEST(overlap_replace_flags_a_running_one__C14),
        RIG_TEST(overlap_allow_looks_at_nothing__C14),
        RIG_TEST(what_the_queue_refuses_is_said_and_the_next_tick_comes),
        RIG_TEST(a_server_that_went_back_in_time_makes_no_second_job),
        RIG_TEST(a_put_is_compared_with_what_is_there__C09),
        RIG_TEST(a_change_keeps_the_due_tick_unless_the_schedule_is_new__C09),
        RIG_TEST(every_change_wakes_the_leader_and_changes_the_version__C15),
        RIG_TEST(a_paused_entry_lets_its_ticks_pass),
        RIG_TEST(a_run_by_hand_is_beside_the_ticks),
        RIG_TEST(a_repeated_run_by_hand_finds_the_first_whatever_ran_meanwhile_N12),
        RIG_TEST(the_repeat_of_a_run_that_waited_makes_no_second_one_N12),
        RIG_TEST(many_entries_come_in_slices_without_payloads),
        RIG_TEST(a_full_queue_of_entries_takes_no_more),
        RIG_TEST(an_entry_changed_by_hand_harms_nobody),
        RIG_TEST(a_full_redis_refuses_a_tick_and_keeps_it_due__F17),
    };

    return RIG_MAIN(tests);
}
