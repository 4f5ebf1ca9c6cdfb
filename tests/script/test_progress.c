/* How far a job is, and how long that can be read after its end. */
#include "model/progress.h"
#include "redis/reply.h"
#include "script/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP 5000

/* A job that runs on w and said "70 nearly"; options as in its header. */
static void
take_said(const char *id, const char *options)
{
    const char *keep = strstr(options, "keep_progress=");

    assert_int_equal(rig_put_job((struct rig_job){.id = id, .options = options}),
                     WR_ADMIT_STORED);
    assert_string_equal(rig_take("w", 1)->ids, id);
    assert_int_equal(rig_progress_keep("w", id, "70 nearly",
                                       keep ? strtoll(strchr(keep, '=') + 1, NULL, 10)
                                            : WR_PROGRESS_WITH_JOB),
                     WR_EXTEND_OK);
}

/* "done 70 nearly": how a job that is over ended, and what it said last; "lives" while it
 * is stored, with what was kept beside it behind that; "gone". */
static const char *
last(const char *id)
{
    static char text[300];
    struct wr_progress_over over;
    struct wr_reply *reply;
    enum weir_err rc = wr_store_inspect_over(rig.store, rig.queue, wr_span_str(id),
                                             &reply, &rig.err);
    bool lives = rc == WEIR_OK && wr_reply_len(reply) > 3;

    snprintf(text, sizeof(text), "%s", lives ? "lives" : "gone");
    if (rc == WEIR_OK &&
        wr_progress_over_read(wr_reply_span(wr_reply_at(reply, lives ? 12 : 2)), &over))
        snprintf(text, sizeof(text), "%s%.*s %.*s", lives ? "lives, " : "",
                 (int)over.word.len, (const char *)over.word.ptr, (int)over.text.len,
                 (const char *)over.text.ptr);
    if (rc != WEIR_OK)
        assert_int_equal(rc, WEIR_E_NO_JOB);
    else
        wr_reply_free(reply);
    return text;
}

static const char *
in_state(const char *id)
{
    static char text[300];
    struct wr_job_state s = rig_state(id);

    snprintf(text, sizeof(text), "%.*s", (int)s.progress.len,
             (const char *)s.progress.ptr);
    return text;
}

static void
sweep(void)
{
    struct wr_sweep at = {"0", "0", 0};

    assert_int_equal(wr_store_sweep(rig.store, rig.queue, 3600000, 100, &at, &rig.err),
                     WEIR_OK);
}

static int
stored(void)
{
    return atoi(redis_do(rig.redis, "HLEN %s", rig_key(WR_QUEUE_KEY_progress)));
}

static void
the_last_progress_outlives_a_job_that_is_not_kept(void **state)
{
    (void)state;
    take_said("A", " keep_progress=5000");
    assert_string_equal(last("A"), "lives");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "");
    assert_string_equal(last("A"), "done 70 nearly");
    rig_pass(KEEP - 1);
    sweep();
    assert_string_equal(last("A"), "done 70 nearly");
    rig_pass(1);
    assert_string_equal(last("A"), "gone"); /* nobody is told what is too old */
    assert_int_equal(stored(), 1);
    sweep();
    assert_int_equal(stored(), 0);
    rig_assert_sums();
}

static void
it_goes_sooner_than_a_job_that_is_kept(void **state)
{
    (void)state;
    take_said("A", " keep=60000 keep_progress=5000");
    assert_int_equal(rig_ack_result("w", "A", "r"), WR_ANSWERED_OK);
    assert_string_equal(rig_where("A"), "JKS");
    assert_string_equal(last("A"), "lives, done 70 nearly");
    assert_string_equal(in_state("A"), "");
    rig_pass(KEEP);
    assert_string_equal(last("A"), "lives");
    sweep();
    assert_int_equal(stored(), 0);
    assert_string_equal(rig_where("A"), "JKS");
    rig_assert_sums();
}

static void
it_outlives_a_kept_job_that_is_forgotten(void **state)
{
    (void)state;
    take_said("A", " keep=1000 keep_progress=5000");
    rig_ack("w", "A");
    rig_pass(1000);
    assert_int_equal(rig_forget(10).moved, 1);
    assert_string_equal(last("A"), "done 70 nearly");
    rig_assert_sums();
}

static void
of_a_job_that_does_not_say_it_it_stays_with_the_job(void **state)
{
    (void)state;
    take_said("A", " keep=1000");
    take_said("B", "");
    rig_ack("w", "A");
    rig_ack("w", "B");
    assert_string_equal(in_state("A"), "70 nearly");
    assert_string_equal(last("A"), "lives");
    assert_string_equal(last("B"), "gone");
    assert_int_equal(stored(), 0);
}

static void
kept_for_no_time_it_ends_with_the_job(void **state)
{
    (void)state;
    take_said("A", " keep=60000 keep_progress=0");
    assert_string_equal(in_state("A"), "keep=0 70 nearly");
    rig_ack("w", "A");
    assert_string_equal(in_state("A"), "");
    assert_string_equal(last("A"), "lives");
    assert_int_equal(stored(), 0);
}

/* Every way to be over but that of a dead job, which is not over. */
static void
it_is_kept_on_every_way_out(void **state)
{
    (void)state;
    take_said("A", " keep_progress=5000"); /* flagged, and another answer */
    rig_cancel("A");
    assert_int_equal(rig_retry("w", "A", 1), WR_ANSWERED_CANCELLED);
    assert_string_equal(last("A"), "cancelled 70 nearly");
    take_said("B", " keep_progress=5000"); /* called off while it waits for its retry */
    assert_int_equal(rig_retry("w", "B", 1000), WR_ANSWERED_OK);
    rig_cancel("B");
    assert_string_equal(last("B"), "cancelled 70 nearly");
    take_said("C", " keep_progress=5000"); /* in ready again */
    rig_release("w", "C");
    rig_cancel("C");
    assert_string_equal(last("C"), "cancelled 70 nearly");
    take_said("D", " keep_progress=5000"); /* flagged, and its worker lost */
    rig_cancel("D");
    rig_pass(RIG_LEASE);
    rig_reclaim();
    assert_string_equal(last("D"), "cancelled 70 nearly");
    rig_pass(KEEP);
    take_said("E", " keep_progress=5000"); /* ack wins over the flag */
    rig_cancel("E");
    assert_int_equal(rig_ack("w", "E"), WR_ANSWERED_OK);
    assert_string_equal(last("E"), "done 70 nearly");
    take_said("F", " keep_progress=5000");
    assert_int_equal(rig_bury("w", "F"), WR_ANSWERED_OK);
    assert_string_equal(in_state("F"), "keep=5000 70 nearly");
    rig_pass(KEEP);
    assert_string_equal(last("F"), "lives");
    rig_purge("F");
    assert_string_equal(last("F"), "gone");
    rig_assert_sums();
}

static void
what_an_earlier_run_said_is_kept_when_a_later_one_ends_the_job(void **state)
{
    (void)state;
    take_said("A", " keep_progress=5000");
    rig_retry("w", "A", 1000);
    rig_pass(1000);
    rig_promote(9);
    assert_string_equal(rig_take("w", 1)->ids, "A");
    assert_int_equal(rig_ack("w", "A"), WR_ANSWERED_OK);
    assert_string_equal(last("A"), "done 70 nearly");
    take_said("B", " keep_progress=5000");
    rig_release("w", "B");
    rig_take("w", 1);
    rig_pass(RIG_LEASE); /* and lost once */
    rig_reclaim();
    rig_take("w", 1);
    assert_int_equal(rig_ack("w", "B"), WR_ANSWERED_OK);
    assert_string_equal(last("B"), "done 70 nearly");
    take_said("C", " keep=60000 keep_progress=5000");
    rig_bury("w", "C");
    rig_replay("C");
    rig_take("w", 1);
    rig_ack("w", "C");
    assert_string_equal(last("C"), "lives, done 70 nearly");
    assert_string_equal(in_state("C"), "");
    rig_assert_sums();
}

static void
what_another_job_of_the_same_id_said_is_not_told_of_this(void **state)
{
    (void)state;
    take_said("A", " keep_progress=5000");
    rig_ack("w", "A");
    rig_pass(1);
    assert_int_equal(rig_put_job((struct rig_job){.id = "A", .options = " keep=60000"}),
                     WR_ADMIT_STORED);
    assert_string_equal(last("A"), "lives");
    rig_take("w", 1);
    assert_string_equal(last("A"), "lives");
    rig_ack("w", "A");
    assert_string_equal(rig_where("A"), "JKS");
    assert_string_equal(last("A"), "lives");
}

static void
a_stale_delivery_changes_nothing_of_it_M10(void **state)
{
    char old[WR_TOKEN_MAX], now[WR_TOKEN_MAX];

    (void)state;
    take_said("A", " keep_progress=5000");
    snprintf(old, sizeof(old), "%s", rig_token("w", "A"));
    rig_pass(RIG_LEASE);
    rig_reclaim();
    rig_take("w", 1);
    snprintf(now, sizeof(now), "%s", rig_token("w", "A"));
    rig_set_token("w", "A", old);
    assert_int_equal(rig_progress_keep("w", "A", "99 false", KEEP), WR_EXTEND_STALE);
    assert_string_equal(in_state("A"), "keep=5000 70 nearly");
    rig_set_token("w", "A", now);
    assert_int_equal(rig_progress_keep("w", "A", "80 true", KEEP), WR_EXTEND_OK);
    rig_ack("w", "A");
    rig_set_token("w", "A", old);
    assert_int_equal(rig_progress_keep("w", "A", "99 false", KEEP), WR_EXTEND_GONE);
    assert_string_equal(last("A"), "done 80 true");
    rig_assert_sums();
}

static void
the_queue_says_it_for_jobs_that_do_not(void **state)
{
    struct wr_span pair[] = {wr_span_str("keep_progress"), wr_span_str("5000")};

    (void)state;
    rig_make_queue();
    assert_int_equal(wr_store_configure(rig.store, rig.queue, pair, 1, &rig.err),
                     WEIR_OK);
    rig_put("A");
    assert_non_null(strstr(rig_record("A"), " + keep_progress=5000\n"));
    rig_put_job((struct rig_job){.id = "B", .options = " keep_progress=7"});
    assert_null(strstr(rig_record("B"), " + "));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_last_progress_outlives_a_job_that_is_not_kept),
        RIG_TEST(it_goes_sooner_than_a_job_that_is_kept),
        RIG_TEST(it_outlives_a_kept_job_that_is_forgotten),
        RIG_TEST(of_a_job_that_does_not_say_it_it_stays_with_the_job),
        RIG_TEST(kept_for_no_time_it_ends_with_the_job),
        RIG_TEST(it_is_kept_on_every_way_out),
        RIG_TEST(what_an_earlier_run_said_is_kept_when_a_later_one_ends_the_job),
        RIG_TEST(what_another_job_of_the_same_id_said_is_not_told_of_this),
        RIG_TEST(a_stale_delivery_changes_nothing_of_it_M10),
        RIG_TEST(the_queue_says_it_for_jobs_that_do_not),
    };

    return RIG_MAIN(tests);
}
