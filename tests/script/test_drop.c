/* Removing a queue: only one that holds nothing, and then all of it. */
#include "script/rig.h"

#include <stdio.h>
#include <string.h>

static struct weir_client *client;

/* OK, or what is in the way: "queue q is in use: 2 jobs wait". */
static const char *
remove_queue(struct weir_queue_past *past)
{
    static struct weir_error err;
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                    .url = redis_server_url(rig.redis)};
    enum weir_err rc;

    assert_int_equal(weir_client_open(&o, &client, NULL), WEIR_OK);
    rc = weir_queue_remove(client, "q", past, &err);
    weir_client_close(client);
    return rc == WEIR_OK ? "OK" : err.text;
}

static const char *
drop(void)
{
    return rig_script("drop", "", "60000", "1", NULL);
}

static void
forget_callers(void)
{
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_producers));
}

static void
a_queue_in_use_stays_and_says_why_M08(void **state)
{
    (void)state;
    rig_clock(0); /* the server's: leases and windows end by it */
    rig_put_many("A B");
    assert_string_equal(remove_queue(NULL), "queue q is in use: 2 jobs wait");
    rig_cancel("B");
    assert_string_equal(drop(), "USED ready 1");
    rig_take("w", 1);
    assert_memory_equal(drop(), "USED ", 5);
    rig_retry("w", "A", 60000);
    assert_string_equal(drop(), "USED delayed 1");
    rig_cancel("A");
    rig_kill_job("C");
    assert_string_equal(drop(), "USED dead 1");
    rig_purge("C");
    rig_put_job((struct rig_job){.id = "D", .options = " keep=60000"});
    rig_take("w", 1);
    rig_ack("w", "D");
    assert_string_equal(drop(), "USED done 1");
    assert_string_equal(remove_queue(NULL), "queue q is in use: 1 finished job is kept");
    redis_do(rig.redis, "ZADD %s 1 D", rig_key(WR_QUEUE_KEY_kept));
    rig_forget(9);
    assert_string_equal(drop(), "USED producers 1"); /* it might repeat its call */
    forget_callers();
    redis_do(rig.redis, "HSET %s e entry", rig_key(WR_QUEUE_KEY_cron));
    assert_string_equal(drop(), "USED cron 1");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_cron));
    redis_do(rig.redis, "HSET %s 1 x", rig_key(WR_QUEUE_KEY_outbox));
    assert_string_equal(drop(), "USED outbox 1");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_outbox));
    redis_do(rig.redis, "ZADD %s 9999999999999 k", rig_key(WR_QUEUE_KEY_windows));
    assert_string_equal(drop(), "USED windows 1");
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_windows));
    rig_assert_sums();
    assert_string_equal(remove_queue(NULL), "OK");
}

static void
a_queue_that_holds_nothing_goes_whole_and_its_past_is_told_M08(void **state)
{
    struct weir_queue_past past;

    (void)state;
    rig_clock(0);
    rig_put_many("A B C");
    rig_take("w", 2);
    rig_ack("w", "A");
    rig_bury("w", "B");
    rig_purge("B");
    rig_cancel("C");
    rig_promote(1);
    rig_reclaim();
    assert_int_equal(wr_store_enroll(rig.store, rig.queue, &rig.err), WEIR_OK);
    forget_callers();
    assert_string_equal(remove_queue(&past), "OK");
    assert_int_equal(past.enqueued, 3);
    assert_int_equal(past.done, 1);
    assert_int_equal(past.cancelled, 1);
    assert_int_equal(past.purged, 1);
    assert_string_equal(redis_do(rig.redis, "KEYS *"), "");
    assert_string_equal(remove_queue(NULL), "no such queue: q");
    rig_put("A"); /* made anew, with new counters */
    rig_take("w", 1);
    rig_ack("w", "A");
    assert_int_equal(rig_stat("enqueued"), 1);
    rig_assert_sums();
}

static void
a_name_without_a_queue_leaves_the_registry_M08(void **state)
{
    (void)state;
    redis_do(rig.redis, "FLUSHALL");
    assert_int_equal(wr_store_enroll(rig.store, rig.queue, &rig.err), WEIR_OK);
    assert_string_equal(remove_queue(NULL), "no such queue: q");
    assert_string_equal(redis_do(rig.redis, "KEYS *"), "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_queue_in_use_stays_and_says_why_M08),
        RIG_TEST(a_queue_that_holds_nothing_goes_whole_and_its_past_is_told_M08),
        RIG_TEST(a_name_without_a_queue_leaves_the_registry_M08),
    };

    return RIG_MAIN(tests);
}
