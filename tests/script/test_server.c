/*
 * What every script must do whatever it moves: stop before its first write when a key is
 * foreign, respect another engine, drain a full server, survive a forgotten script, set
 * no time to live, and carry any bytes.
 */
#include "script/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define NOW "1796000020000" /* after all leases, and after the due times */
#define ARGS_MAX 20

/* A call of each script, and its other paths, in a queue that has something everywhere:
 * R1 R2 ready, T1 with a tombstone, P1 P2 P3 processing by w (P2 keeps its result, P3 is
 * flagged), W1 of type odd waits for the end of P2, L1 delayed, X1 dead, K1 kept. PN
 * stands for the token of that delivery. The cron entry E is due and its last job waits,
 * F is paused; REV is the revision of both. If it is idle, nothing waits there but
 * workers: z has what waited, to o the job H was handed over, to p the job I, which is
 * flagged, and q would take the next one.
 */
#define REV "1796000000000"
#define TICK "1796000010000"
#define NEXT "1796000030000"
#define LONG_16 "xxxxxxxxxxxxxxxx"
#define LONG_256                                                                    \
    LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 \
        LONG_16 LONG_16 LONG_16 LONG_16 LONG_16 LONG_16
/* No literal may be longer: the type is long as well, and their record is over 4 KiB. */
#define LONG_3840                                                                    \
    LONG_256 LONG_256 LONG_256 LONG_256 LONG_256 LONG_256 LONG_256 LONG_256 LONG_256 \
        LONG_256 LONG_256 LONG_256 LONG_256 LONG_256 LONG_256
static const struct row {
    const char *script;
    enum world {
        BUSY,
        PAUSED,
        IDLE,
        ONE,
        LATE
    } world;
    const char *args[ARGS_MAX];
} rows[] = {
    {"enqueue", BUSY, {NOW, "c", "9", "m", "N", "1 t", "\nx", "7 key"}},
    {"enqueue", BUSY, {NOW, "c", "9", "m", "N", "1 " LONG_256, "\n" LONG_3840, ""}},
    {"enqueue", BUSY, {NOW, "", "0", "m", "N", "1 t", "\nx", "0 u2 l"}},
    {"schedule",
     BUSY,
     {NOW, "c", "9", "m", "N", "1 t", "\nx", "", "+9", "M", "1 t", "\nx", "7 key", ""}},
    {"replace", BUSY, {NOW, "c", "9", "R1", "1 t", "\ny", "7 key", ""}},
    {"replace", BUSY, {NOW, "", "0", "R2", "1 t", "\ny", "", "+5"}},
    {"replace", BUSY, {NOW, "", "0", "K1", "1 t", "\ny", "", ""}},
    {"replace", BUSY, {NOW, "", "0", "W1", "1 " LONG_256, "\n" LONG_3840, "7 key", ""}},
    {"replace", BUSY, {NOW, "", "0", "W1", "1 t", "\ny", "0 u2 l", "+5"}},
    {"replace", BUSY, {NOW, "", "0", "L1", "1 t", "\ny", "", "+1"}},
    {"farewell", BUSY, {"c"}},
    {"promote", BUSY, {NOW, "10"}},
    {"reserve", BUSY, {NOW, "v", "1", "2", "1", "9000", "99999", "", "0"}},
    {"reserve", BUSY, {NOW, "v", "1", "0", "0", "9000", "99999", "", "0"}},
    {"reserve", BUSY, {NOW, "w", "5", "2", "0", "9000", "99999", "", "0"}},
    {"reserve", BUSY, {NOW, "v", "1", "2", "1", "9000", "99999", " other ", "0"}},
    {"reserve", PAUSED, {NOW, "v", "1", "2", "0", "9000", "99999", "", "0"}},
    {"exchange",
     BUSY,
     {NOW, "w", "9", "2", "0", "9000", "99999", "", "0", "P1", "PN", "", "", "P2", "PN",
      "out", "wall:5"}},
    {"exchange",
     BUSY,
     {NOW, "w", "9", "9", "0", "9000", "99999", "! odd ", "0", "P2", "PN", "", ""}},
    {"exchange",
     PAUSED,
     {NOW, "w", "9", "0", "0", "9000", "99999", "", "0", "P2", "PN", "out", ""}},
    {"extend", BUSY, {NOW, "w", "9000", "P1", "PN", "0"}},
    {"progress", BUSY, {"w", "P1", "PN", "half", ""}},
    {"log",
     BUSY,
     {"w", "9", "9", "9", "4", "99", "P1", "PN", "0", "0", "text", "P2", "PN", "0", "1",
      "x"}},
    {"output", BUSY, {"P1", "", "0", "100"}},
    {"ack", BUSY, {NOW, "w", "P1", "PN", "", "", "P2", "PN", "out", "wall:5"}},
    {"ack_then",
     BUSY,
     {NOW, "w", "P1", "PN", "", "", "ch\nx", "P2", "PN", "out", "", "ch\ny"}},
    {"outbox", BUSY, {NOW, "0", "10"}},
    {"outbox_done", BUSY, {"7"}},
    {"retry",
     BUSY,
     {NOW, "w", "P1", "PN", "5", "failed", "x", "wall:5", "P3", "PN", "5", "failed", "x",
      ""}},
    {"bury",
     BUSY,
     {NOW, "w", "P1", "PN", "permanent", "x", "wall:5", "P3", "PN", "permanent", "x",
      ""}},
    {"bury", BUSY, {NOW, "w", "P2", "PN", "permanent", "x", ""}},
    {"release", BUSY, {NOW, "w", "P1", "PN", "wall:5", "P3", "PN", ""}},
    {"reclaim", BUSY, {NOW, "9000", "10", NOW, "0", "60000", "10"}},
    {"reclaim", BUSY, {NOW, "9000", "", "", "1", "1", "10"}},
    {"reclaim_held", BUSY, {NOW, "w", "", "P1", "PN", "1"}},
    {"forget", BUSY, {"1996000000000", "10", "100", "100000"}},
    {"sweep", BUSY, {"1996000000000", "1", "0", "0", "10"}},
    {"cancel", BUSY, {NOW, "R1", "L1", "P1", "X1", "K1", "none"}},
    {"cancel", BUSY, {NOW, "W1"}},
    {"reschedule", BUSY, {NOW, "L1", ""}},
    {"reschedule", BUSY, {NOW, "W1", "+700"}},
    {"reschedule", BUSY, {NOW, "R2", "+700"}},
    {"replay", BUSY, {"10", "", "0", "X1"}},
    {"replay", BUSY, {"10", "", "0"}},
    {"trim", BUSY, {NOW, "10", "0", "1", "0"}},
    {"purge", BUSY, {"10", "", "X1"}},
    {"pause", BUSY, {NOW, "me", "-"}},
    {"resume", PAUSED, {NULL}},
    {"create", BUSY, {"m", "kept_max", "5"}},
    {"drop", BUSY, {NOW, "60000", ""}},
    {"migrate", BUSY, {NOW, "list", "me", "10", "99999"}},
    {"migrate", BUSY, {NOW, "stream", "me", "10", "99999"}},
    {"audit", BUSY, {NOW}},
    {"inspect", BUSY, {NOW, "R1", "100"}},
    {"browse", BUSY, {NOW, "ready", "0", "10"}},
    {"locate", BUSY, {"1", "R1", "P1"}},
    {"walk", BUSY, {"jobs", "0", "10"}},
    {"walk", BUSY, {"stream", "0", "10"}},
    {"walk", BUSY, {"ids", "0", "10"}},
    {"repair", BUSY, {NOW, "stream", "0", "10"}},
    {"repair", BUSY, {NOW, "ids", "0", "10"}},
    {"repair", BUSY, {NOW, "sums", "0", "10"}},
    {"cron_put", BUSY, {NOW, "N", "0", NEXT, "9", "spec=x zone=z\n1 t\nx"}},
    {"cron_put", BUSY, {NOW, "E", "", NEXT, "9", "spec=x zone=z\n1 t\nx"}},
    {"cron_remove", BUSY, {NOW, "E", ""}},
    {"cron_pause", BUSY, {NOW, "E"}},
    {"cron_resume", BUSY, {NOW, "F", REV, NEXT}},
    {"cron_fire", BUSY, {NOW, "E", REV, TICK, TICK, NEXT, "", "0"}},
    {"cron_fire", PAUSED, {NOW, "E", REV, TICK, TICK, NEXT, "@" NEXT, "2"}},
    {"cron_fire", BUSY, {NOW, "E", REV, TICK, "", NEXT, "", "2"}},
    {"cron_run", BUSY, {NOW, "E", "run", "1"}},
    {"cron_list", BUSY, {NOW, "", "0", "10"}},
    {"cron_list", BUSY, {NOW, "", "0", "10", "E"}},
    {"call",
     BUSY,
     {NOW, "c", "9", "m", "ch/1", "9000", "N", "1 t", "\nx", "7 key", "+9"}},
    {"call", BUSY, {NOW, "", "0", "m", "ch/1", "9000", "N", "1 t", "\nx", "0 u2 l", ""}},
    {"call", BUSY, {NOW, "", "0", "m", "ch/1", "9000", "R2", "1 t", "\nx", "", ""}},
    {"wait", BUSY, {NOW, "R2", "ch/1", "9000", ""}},
    {"wait", BUSY, {NOW, "new", "ch/2", "9000", "1"}},
    {"enqueue", IDLE, {NOW, "c", "9", "m", "N", "1 t", "\nx", ""}},
    {"enqueue", IDLE, {NOW, "", "0", "m", "\tN", "1 t", " keep=5\nx", ""}},
    {"call", IDLE, {NOW, "c", "9", "m", "ch/1", "9000", "N", "1 t", "\nx", "", ""}},
    {"offer", BUSY, {NOW, "w", "9", "9000", "5000", "", "0"}},
    {"offer", IDLE, {NOW, "q", "9", "9000", "5000", " t ", "0"}},
    {"offer", ONE, {NOW, "w", "9", "9000", "5000", "", "5"}},
    {"offer", ONE, {NOW, "w", "9", "9000", "5000", " s ", "0"}},
    {"offer", LATE, {NOW, "w", "9", "9000", "5000", "", "0"}},
    {"withdraw", IDLE, {NOW, "o", "3", "1"}},
    {"withdraw", IDLE, {NOW, "p", "3", ""}},
    {"reserve", IDLE, {NOW, "o", "3", "1", "0", "9000", "99999", "", "0"}},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void
put_with(const char *id, const char *options, const char *unique, const char *due)
{
    assert_int_equal(rig_put_job((struct rig_job){
                         .id = id, .options = options, .unique = unique, .due = due}),
                     WR_ADMIT_STORED);
}

static void
hand_over(const char *worker, const char *id)
{
    assert_string_equal(
        rig_script("offer", REV, worker, "3", "90000", "90000", "", "0", NULL), "OK");
    rig_put(id);
    assert_string_equal(rig_where(id), "JPS");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
}

static void
make_idle(void)
{
    rig_take("z", 9);
    hand_over("o", "H");
    hand_over("p", "I");
    rig_cancel("I");
    rig_script("wait", NOW, "I", "ch/9", "9000", "", NULL);
    rig_script("offer", REV, "q", "3", "90000", "90000", "", "0", NULL);
}

static void
make_one(enum world world)
{
    redis_do(rig.redis, "LPUSH %s 1", rig_key(WR_QUEUE_KEY_wake));
    put_with("G",
             world == LATE ? " expires=1 unique=u7 keep=5"
                           : " unique=u7 unique_states=ready",
             "0 u7", NULL);
    rig_script("wait", NOW, "G", "ch/9", "9000", "", NULL);
}

static void
make_world(const struct row *row)
{
    static const char *const waited[] = {"P1", "P2", "P3", "R1"};

    rig_fresh(NULL);
    rig_kill_job("X1");
    put_with("K1", " keep=9000", NULL, NULL);
    rig_take("w", 1);
    rig_ack_result("w", "K1", "out");
    rig_put("P1");
    put_with("P2", " keep=9000 unique=u2", "0 u2", NULL);
    put_with("P3", " unique=u3", "50 u3", NULL);
    rig.call = 5;
    assert_string_equal(rig_take("w", 3)->ids, "P1 P2 P3");
    rig_cancel("P3");
    rig_put_many("T1 R2");
    put_with("R1", " unique=u1", "0 u1", NULL);
    rig_cancel("T1");
    rig_script("enqueue", REV, "c", "7", "m", "W1", "1 odd", " unique=u2\nx", "0 u2 l",
               NULL);
    put_with("L1", "", NULL, "+500");
    rig_script("enqueue", NOW, "c", "8", "m", "R1", "1 t", "\nx", "", NULL);
    rig_script("cron_put", REV, "E", "0", TICK, "9",
               "spec=x zone=z overlap=replace\n1 t unique=u9\nx", NULL);
    rig_script("cron_put", REV, "F", "0", TICK, "9", "spec=x zone=z\n1 t\nx", NULL);
    rig_script("cron_pause", REV, "F", NULL);
    rig_script("cron_run", REV, "E", "last", NULL);
    for (int i = 0; i < 4; i++)
        rig_script("wait", NOW, waited[i], "ch/9", "9000", "", NULL);
    if (row->world == PAUSED)
        rig_pause();
    redis_do(rig.redis, "DEL %s %s", rig_key(WR_QUEUE_KEY_wake),
             rig_key(WR_QUEUE_KEY_due));
    if (row->world == IDLE || row->world == ONE || row->world == LATE)
        make_idle();
    if (row->world == ONE || row->world == LATE)
        make_one(row->world);
}

static const char *
run_row(const struct row *row)
{
    static struct wr_buf text;
    struct wr_span words[ARGS_MAX];
    struct wr_reply *reply;
    size_t n = 0;

    for (; n < ARGS_MAX && row->args[n]; n++)
        words[n] = wr_span_str(strcmp(row->args[n], "PN") == 0
                                   ? rig_token("w", row->args[n - 1])
                                   : row->args[n]);
    reply = rig_script_argv(row->script, words, n);
    rig_reply_text(reply, &text);
    wr_reply_free(reply);
    return text.ptr;
}

/* All keys and what they hold. */
static const char *
snapshot(void)
{
    static const char script[] =
        "local keys, out = redis.call('KEYS', '*'), {}\n"
        "table.sort(keys)\n"
        "for i, key in ipairs(keys) do\n"
        "  out[i] = key .. '=' .. redis.sha1hex(redis.call('DUMP', key))\n"
        "end\n"
        "return table.concat(out, '\\n')\n";
    static struct wr_buf texts[2];
    static unsigned turn;
    struct wr_buf *text = &texts[turn++ % 2];
    struct wr_span argv[] = {wr_span_str("EVAL"), wr_span_str(script), wr_span_str("0")};
    struct wr_reply *reply;

    assert_int_equal(
        wr_conn_call(rig.conn, argv, 3, wr_clock_ms() + 5000, &reply, &rig.err), WEIR_OK);
    wr_buf_clear(text);
    wr_buf_add(text, wr_reply_span(reply).ptr, wr_reply_span(reply).len);
    wr_reply_free(reply);
    return text->ptr;
}

static void
every_script_has_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < wr_scripts_count; i++) {
        const char *slash = strchr(wr_scripts[i]->name, '/');
        /* The leader's lock moves no job, nor do those that are about no queue. */
        bool found = !wr_scripts[i]->keys ||
                     strcmp(wr_scripts[i]->name, "common/lead") == 0;

        for (size_t r = 0; r < ROWS; r++)
            found = found || strcmp(rows[r].script, slash + 1) == 0;
        if (!found)
            fail_msg("%s: add a row for it here", wr_scripts[i]->name);
    }
}

static void
every_row_is_answered_as_it_should_be(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        const char *reply;

        make_world(&rows[r]);
        reply = run_row(&rows[r]);
        if (strncmp(reply, "ERR", 3) == 0 || strncmp(reply, "ENGINE", 6) == 0 ||
            strncmp(reply, "NOQUEUE", 7) == 0 || strncmp(reply, "CORRUPT", 7) == 0)
            fail_msg("%s: %s", rows[r].script, reply);
        rig_assert_equations(0);
    }
}

static void
a_foreign_key_stops_every_script_before_its_first_write(void **state)
{
    int stopped = 0;

    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        const struct wr_script *s = rig_script_of(rows[r].script);

        for (size_t k = 0; k < s->nkeys; k++) {
            const char *key = rig_key((enum wr_queue_key)s->keys[k]);
            char before[8192];
            const char *reply;
            bool is_text;

            make_world(&rows[r]);
            is_text = strcmp(redis_do(rig.redis, "TYPE %s", key), "string") == 0;
            redis_do(rig.redis, "DEL %s", key);
            redis_do(rig.redis, is_text ? "LPUSH %s x" : "SET %s x", key);
            snprintf(before, sizeof(before), "%s", snapshot());
            reply = run_row(&rows[r]);
            if (strncmp(reply, "ERR", 3) != 0)
                continue; /* its path does not need this key */
            stopped++;
            if (strcmp(before, snapshot()) != 0)
                fail_msg("%s wrote before it found %s foreign: %s", s->name, key, reply);
        }
    }
    print_message("%d calls stopped\n", stopped);
    assert_true(stopped > 250);
}

/* Else the test above would say nothing of them. */
static void
what_hands_a_job_over_and_takes_it_back_has_a_world_to_do_so(void **state)
{
    size_t handed = 0, taken_back = 0;

    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        int64_t before, released;

        if (rows[r].world < IDLE)
            continue;
        make_world(&rows[r]);
        before = rig_stat("deliveries");
        released = rig_stat("released") + rig_stat("cancelled_processing");
        run_row(&rows[r]);
        handed += rig_stat("deliveries") > before;
        taken_back += rig_stat("released") + rig_stat("cancelled_processing") > released;
        rig_assert_equations(0);
    }
    assert_int_equal(handed, 4);
    assert_int_equal(taken_back, 2);
}

/* The one behind it in its line is too late, and is seen only when this one has ended. */
static void
a_foreign_key_stops_an_exchange_that_lets_another_in(void **state)
{
    static const struct row row = {
        "exchange",
        BUSY,
        {NOW, "w", "9", "2", "0", "9000", "99999", "", "0", "A", "PN", "", ""}};
    const struct wr_script *s = rig_script_of("exchange");

    (void)state;
    for (size_t k = 0; k <= s->nkeys; k++) { /* the last time none is foreign */
        const char *key = k < s->nkeys ? rig_key((enum wr_queue_key)s->keys[k]) : NULL;
        char before[8192];
        const char *reply;

        rig_fresh(NULL);
        put_with("A", " order=K", "0 - =K", NULL);
        put_with("B", " order=K expires=1", "0 - =K", NULL);
        assert_string_equal(rig_take("w", 1)->ids, "A");
        if (key) {
            redis_do(rig.redis, "DEL %s", key);
            redis_do(rig.redis, "SET %s x", key);
        }
        snprintf(before, sizeof(before), "%s", snapshot());
        reply = run_row(&row);
        if (!key)
            assert_int_equal(rig_stat("expired_ready"), 1);
        else if (strncmp(reply, "ERR", 3) == 0 && strcmp(before, snapshot()) != 0)
            fail_msg("it wrote before it found %s foreign: %s", key, reply);
    }
}

static void
a_foreign_key_is_reported_as_corrupt(void **state)
{
    struct wr_admit item = rig_item((struct rig_job){.id = "A"});
    struct wr_admitted out;

    (void)state;
    redis_do(rig.redis, "SET %s x", rig_key(WR_QUEUE_KEY_ready));
    rig_script("create", "m", NULL);
    redis_do(rig.redis, "HSET %s engine list", rig_key(WR_QUEUE_KEY_config));
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_E_CORRUPT);
    assert_non_null(strstr(rig.err.text, "WRONGTYPE"));
    assert_string_equal(redis_do(rig.redis, "EXISTS %s", rig_key(WR_QUEUE_KEY_jobs)),
                        "0");
}

/* Is it one of these words? */
static bool
is_one_of(const char *script, const char *words)
{
    size_t len = strlen(script);

    for (const char *at = strstr(words, script); at; at = strstr(at + 1, script)) {
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    }
    return false;
}

static bool
asks_for_the_engine(const char *script)
{
    return !is_one_of(script, "extend progress farewell outbox_done");
}

static void
every_script_respects_another_engine_A21(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        char before[8192];

        if (!asks_for_the_engine(rows[r].script))
            continue;
        make_world(&rows[r]);
        redis_do(rig.redis, "HSET %s engine other", rig_key(WR_QUEUE_KEY_config));
        snprintf(before, sizeof(before), "%s", snapshot());
        assert_memory_equal(run_row(&rows[r]), "ENGINE", 6);
        assert_string_equal(before, snapshot());
    }
}

/* The config itself is no answer. */
static void
copy_answer(char *out, size_t cap, const char *reply)
{
    const char *config = strstr(reply, " config.");

    snprintf(out, cap, "%.*s", config ? (int)(config - reply) : (int)strlen(reply),
             reply);
}

/* The same answer whatever the engine. */
static void
scripts_of_no_engine_serve_each_of_them_A21(void **state)
{
    static const char *const engines[] = {"list", "stream"};

    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        char wanted[8192], got[8192];

        if (strncmp(rig_script_of(rows[r].script)->name, "common/", 7) != 0 ||
            (rows[r].args[0] && strcmp(rows[r].args[0], "stream") == 0))
            continue; /* entries have other ids in another world */
        make_world(&rows[r]);
        copy_answer(wanted, sizeof(wanted), run_row(&rows[r]));
        for (size_t e = 0; e < 2; e++) {
            make_world(&rows[r]);
            redis_do(rig.redis, "HSET %s engine %s", rig_key(WR_QUEUE_KEY_config),
                     engines[e]);
            copy_answer(got, sizeof(got), run_row(&rows[r]));
            assert_string_equal(got, wanted);
        }
    }
}

static void
no_script_makes_a_queue_again_whose_config_is_gone_A21b(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        char before[8192];

        if (!asks_for_the_engine(rows[r].script))
            continue;
        make_world(&rows[r]);
        redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_config));
        snprintf(before, sizeof(before), "%s", snapshot());
        assert_memory_equal(run_row(&rows[r]), "CORRUPT", 7);
        assert_string_equal(before, snapshot());
    }
}

static void
only_enqueue_schedule_call_and_create_make_a_queue_A21d(void **state)
{
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        const char *s = rows[r].script, *reply;

        rig_fresh(NULL);
        redis_do(rig.redis, "FLUSHALL");
        reply = run_row(&rows[r]);
        if (is_one_of(s, "enqueue schedule call"))
            assert_memory_equal(reply, "OK 1", 4);
        else if (is_one_of(s, "create"))
            assert_string_equal(reply, "MADE");
        else {
            if (is_one_of(s, "replace"))
                assert_memory_equal(reply, "ABSENT", 6);
            else if (asks_for_the_engine(s))
                assert_string_equal(reply, "NOQUEUE");
            assert_string_equal(redis_do(rig.redis, "DBSIZE"), "0");
        }
    }
}

static void
nothing_that_is_counted_has_a_time_to_live_T09(void **state)
{
    char keys[4096], *save = NULL;

    (void)state;
    make_world(&rows[0]);
    rig_pass(20000);
    rig_promote(9);
    rig_reclaim();
    rig_forget(9);
    snprintf(keys, sizeof(keys), "%s", redis_do(rig.redis, "KEYS weir:{q}:*"));
    for (char *key = strtok_r(keys, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
        if (!strstr(key, ":heartbeat:"))
            assert_string_equal(redis_do(rig.redis, "TTL %s", key), "-1");
    }
    rig_assert_sums();
}

static void
without_a_test_clock_the_servers_counts_in_ms_T16(void **state)
{
    int64_t before = wr_clock_wall_ms(), score;

    (void)state;
    rig_clock(0);
    rig_put_job((struct rig_job){.id = "A", .due = "+60000"});
    score = strtoll(redis_do(rig.redis, "ZSCORE %s A", rig_key(WR_QUEUE_KEY_delayed)),
                    NULL, 10);
    assert_in_range(score, before + 60000 - 2, wr_clock_wall_ms() + 60000 + 2);
    assert_int_equal(rig_promote(1).moved, 0);
    rig_put("B");
    score = strtoll(rig_record("B") + 4, NULL, 10);
    assert_in_range(score, before - 2, wr_clock_wall_ms() + 2);
}

/* ---- a full server ---- */

static bool
drains(const char *script)
{
    return !is_one_of(script,
                      "enqueue schedule call replace progress log create cron_put "
                      "cron_fire cron_run wait");
}

static void
a_full_server_refuses_new_jobs_and_can_be_drained_F17(void **state)
{
    struct wr_admit item = rig_item((struct rig_job){.id = "new"});
    struct wr_admitted out;

    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        const char *reply;

        make_world(&rows[r]);
        redis_do(rig.redis, "CONFIG SET maxmemory 1");
        reply = run_row(&rows[r]);
        redis_do(rig.redis, "CONFIG SET maxmemory 0");
        if (drains(rows[r].script) && strncmp(reply, "ERR", 3) == 0)
            fail_msg("%s cannot drain a full server: %s", rows[r].script, reply);
        if (!drains(rows[r].script))
            assert_memory_equal(reply, "ERR OOM", 7);
    }
    make_world(&rows[0]);
    redis_do(rig.redis, "CONFIG SET maxmemory 1");
    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_E_FULL);
    assert_int_equal(
        wr_store_beat(rig.store, &(struct wr_beat){.worker = "w"}, NULL, &rig.err),
        WEIR_OK);
    redis_do(rig.redis, "CONFIG SET maxmemory 0");
    assert_string_equal(rig_where("new"), "");
    rig_assert_sums();
}

static void
a_full_server_drops_a_result_and_says_so_A25(void **state)
{
    char big[2000];

    (void)state;
    memset(big, 'r', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    rig_put_job((struct rig_job){.id = "A", .options = " keep=9000"});
    rig_put_job((struct rig_job){.id = "B", .options = " keep=9000"});
    assert_int_equal(rig_take("w", 2)->n, 2);
    redis_do(rig.redis, "CONFIG SET maxmemory 1");
    assert_int_equal(rig_ack_result("w", "A", big), WR_ANSWERED_OK);
    redis_do(rig.redis, "CONFIG SET maxmemory 0");
    assert_int_equal(rig_ack_result("w", "B", big), WR_ANSWERED_OK);
    assert_string_equal(
        redis_do(rig.redis, "HEXISTS %s A", rig_key(WR_QUEUE_KEY_results)), "0");
    assert_string_equal(
        redis_do(rig.redis, "HSTRLEN %s B", rig_key(WR_QUEUE_KEY_results)), "1999");
    assert_string_equal(
        redis_do(rig.redis, "HGET %s A", rig_key(WR_QUEUE_KEY_errors)),
        "1796000000000 result_dropped the server was full: 1999 bytes not kept");
    assert_int_equal(rig_stat("results_dropped"), 1);
    assert_int_equal(rig_stat("done"), 2);
    rig_assert_sums();
    rig_pass(9000);
    assert_int_equal(rig_forget(9).moved, 2);
    assert_int_equal(rig_stat("kept_bytes"), 0);
    rig_assert_sums();
}

/* Of memory.lua, with an answer of INFO that a test cannot bring about. */
static const char *
is_full(const char *info)
{
    static char text[32];
    struct wr_buf script = {0};
    struct wr_reply *reply;
    char piece[4096];
    size_t n;
    FILE *f = fopen(WEIR_SOURCE "/lua/include/memory.lua", "r");

    assert_non_null(f);
    wr_buf_add_str(&script, "local redis = {pcall = function() return ARGV[1] end}\n");
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        wr_buf_add(&script, piece, n);
    fclose(f);
    wr_buf_add_str(&script, "return tostring(memory_is_full())");
    assert_int_equal(
        wr_conn_call(rig.conn,
                     (struct wr_span[]){wr_span_str("EVAL"), wr_buf_span(&script),
                                        wr_span_str("0"), wr_span_str(info)},
                     4, wr_clock_ms() + 5000, &reply, &rig.err),
        WEIR_OK);
    snprintf(text, sizeof(text), "%s", (const char *)wr_reply_span(reply).ptr);
    wr_reply_free(reply);
    wr_buf_fini(&script);
    return text;
}

static void
what_waits_for_a_replica_does_not_make_a_server_full_A25(void **state)
{
    (void)state;
#define INFO(used, most, apart)                                       \
    "used_memory:" used "\r\nused_memory_human:9M\r\nmaxmemory:" most \
    "\r\nmem_not_counted_for_evict:" apart "\r\n"
    assert_string_equal(is_full(INFO("1000", "0", "0")), "false");
    assert_string_equal(is_full(INFO("1001", "1000", "0")), "true");
    assert_string_equal(is_full(INFO("1000", "1000", "0")), "false");
    assert_string_equal(is_full(INFO("1500", "1000", "500")), "false");
    assert_string_equal(is_full(INFO("1501", "1000", "500")), "true");
    assert_string_equal(is_full("nothing that is known"), "false");
#undef INFO
}

/* ---- forgotten scripts ---- */

static void
forget_scripts(void)
{
    assert_string_equal(redis_do(rig.redis, "SCRIPT FLUSH"), "OK");
}

static void
a_forgotten_script_is_loaded_again_N05(void **state)
{
    (void)state;
    forget_scripts();
    rig_put_job((struct rig_job){.id = "A", .options = " keep=10", .due = "+5"});
    forget_scripts();
    rig_pass(5);
    assert_int_equal(rig_promote(1).moved, 1);
    forget_scripts();
    assert_string_equal(rig_take("w", 1)->ids, "A");
    forget_scripts();
    assert_int_equal(rig_extend("w", "A", 0), WR_EXTEND_OK);
    forget_scripts();
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    rig_pass(10);
    forget_scripts();
    assert_int_equal(rig_forget(1).moved, 1);
    forget_scripts();
    rig_assert_sums();
}

/* ---- any bytes ---- */

static void
goes_through_unchanged(const void *payload, size_t len)
{
    struct wr_admit item = rig_item(
        (struct rig_job){.id = "A", .options = " keep=10", .payload = {payload, len}});
    struct wr_reserve how = {
        .worker = "w", .call = rig.call++, .free = 1, .lease_ms = RIG_LEASE};
    struct wr_record record;
    struct wr_admitted out;
    struct wr_batch batch;
    struct wr_answer a;
    enum wr_answered word;
    struct wr_reply *reply;
    int version;

    assert_int_equal(wr_store_enqueue(rig.store, rig.queue, &rig.channel, &item, 1, &out,
                                      NULL, &rig.err),
                     WEIR_OK);
    assert_int_equal(out.word, WR_ADMIT_STORED);
    assert_int_equal(wr_store_reserve(rig.store, rig.queue, &how, &batch, &rig.err),
                     WEIR_OK);
    assert_int_equal(batch.n, 1);
    assert_true(wr_record_read(batch.jobs[0].record, &record, &version));
    assert_int_equal(record.payload.len, len);
    assert_memory_equal(record.payload.ptr, payload, len);
    a = (struct wr_answer){.id = wr_span_str("A"),
                           .token = wr_span_str(batch.jobs[0].state.token),
                           .result = {payload, len}};
    assert_int_equal(wr_store_ack(rig.store, rig.queue, "w", &a, 1, &word, &rig.err),
                     WEIR_OK);
    assert_int_equal(word, WR_ANSWERED_OK);
    wr_record_fini(&record);
    wr_batch_fini(&batch);
    assert_int_equal(wr_store_inspect(rig.store, rig.queue, wr_span_str("A"), 1 << 20,
                                      &reply, &rig.err),
                     WEIR_OK);
    assert_int_equal(wr_reply_span(wr_reply_at(reply, 7)).len, len);
    assert_memory_equal(wr_reply_span(wr_reply_at(reply, 7)).ptr, payload, len);
    wr_reply_free(reply);
    rig_pass(10);
    assert_int_equal(rig_forget(1).moved, 1);
}

static void
any_payload_and_result_goes_through_unchanged_D03(void **state)
{
    unsigned char all[256], *big = malloc(65536);
    unsigned x = 1;

    (void)state;
    assert_non_null(big);
    for (size_t i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    for (size_t i = 0; i < 65536; i++)
        big[i] = (unsigned char)((x = x * 1103515245U + 12345U) >> 16);
    goes_through_unchanged("", 0);
    goes_through_unchanged("\n", 1);
    goes_through_unchanged(all, 256);
    goes_through_unchanged(big, 65536);
    free(big);
    rig_assert_sums();
}

static void
live_a_whole_life(const char *id)
{
    assert_int_equal(rig_put(id), WR_ADMIT_STORED);
    assert_int_equal(rig_cancel(id), WR_CANCEL_READY);
    assert_int_equal(
        rig_put_job((struct rig_job){.id = id, .options = " keep=10", .due = "+5"}),
        WR_ADMIT_STORED);
    rig_pass(5);
    assert_int_equal(rig_promote(1).moved, 1);
    assert_string_equal(rig_take("w", 1)->ids, id);
    assert_int_equal(rig_extend("w", id, 0), WR_EXTEND_OK);
    assert_int_equal(rig_progress("w", id, "half"), WR_EXTEND_OK);
    assert_int_equal(rig_release("w", id), WR_ANSWERED_OK);
    rig_take("w", 1);
    rig.call--; /* the repeat finds it by its name */
    assert_string_equal(rig_take("w", 1)->ids, id);
    assert_int_equal(rig_retry("w", id, 0), WR_ANSWERED_OK);
    assert_int_equal(rig_promote(1).moved, 1);
    rig_take("w", 1);
    rig_pass(RIG_LEASE);
    assert_int_equal(rig_reclaim().moved, 1);
    rig_take("w", 1);
    assert_int_equal(rig_bury("w", id), WR_ANSWERED_OK);
    assert_int_equal(rig_replay(id), WR_REPLAY_OK);
    assert_string_equal(rig_take("w", 1)->ids, id);
    assert_int_equal(rig_ack("w", id), WR_ANSWERED_OK);
    assert_string_equal(rig_where(id), "JKS");
    rig_assert_sums();
    rig_pass(10);
    assert_int_equal(rig_forget(1).moved, 1);
}

static void
odd_ids_work_everywhere_D01(void **state)
{
    char longest[256];
    const char *ids[] = {
        "a:b",      "123", "0",        "-1",   "{x}", " a",     "a b c", "b ", "\xc3\xbc",
        "\xff\xfe", "%",   "%00",      "a%41", "=",   "'\"\\",  "*",     "..", "-",
        "|",        ",",   "0:EXISTS", "1e5",  "nil", "lost-1", longest};

    (void)state;
    memset(longest, 'x', 255);
    longest[255] = '\0';
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        live_a_whole_life(ids[i]);
}

static void
a_repeat_finds_an_odd_first_id_D01(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_string_equal(rig_script("enqueue", NOW, "c", "1", "m", " 0:BIG - x ",
                                       "1 t", "\nx", "", NULL),
                            i == 0 ? rig_either("OK 1", "OK 0") : "BEFORE 0");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(every_script_has_a_row),
        RIG_TEST(every_row_is_answered_as_it_should_be),
        RIG_TEST(a_foreign_key_stops_every_script_before_its_first_write),
        RIG_TEST(what_hands_a_job_over_and_takes_it_back_has_a_world_to_do_so),
        RIG_TEST(a_foreign_key_stops_an_exchange_that_lets_another_in),
        RIG_TEST(a_foreign_key_is_reported_as_corrupt),
        RIG_TEST(every_script_respects_another_engine_A21),
        RIG_TEST(scripts_of_no_engine_serve_each_of_them_A21),
        RIG_TEST(no_script_makes_a_queue_again_whose_config_is_gone_A21b),
        RIG_TEST(only_enqueue_schedule_call_and_create_make_a_queue_A21d),
        RIG_TEST(nothing_that_is_counted_has_a_time_to_live_T09),
        RIG_TEST(without_a_test_clock_the_servers_counts_in_ms_T16),
        RIG_TEST(a_full_server_refuses_new_jobs_and_can_be_drained_F17),
        RIG_TEST(a_full_server_drops_a_result_and_says_so_A25),
        RIG_TEST(what_waits_for_a_replica_does_not_make_a_server_full_A25),
        RIG_TEST(a_forgotten_script_is_loaded_again_N05),
        RIG_TEST(any_payload_and_result_goes_through_unchanged_D03),
        RIG_TEST(odd_ids_work_everywhere_D01),
        RIG_TEST(a_repeat_finds_an_odd_first_id_D01),
    };

    return RIG_MAIN(tests);
}
