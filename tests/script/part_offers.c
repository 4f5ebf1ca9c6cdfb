#include "script/offers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* ---- who offers ---- */

/* What the scripts take for the time. */
const char *
offers_now(void)
{
    static char texts[4][24];
    static unsigned turn;
    char *out = texts[turn++ % 4];

    if (rig.now == 0)
        return "";
    snprintf(out, sizeof(texts[0]), "%" PRId64, rig.now);
    return out;
}

const char *
offers_make(const char *worker, const char *call, const char *types, const char *keep)
{
    char lease[16], wait[16];

    snprintf(lease, sizeof(lease), "%d", OFFERS_LEASE);
    snprintf(wait, sizeof(wait), "%d", OFFERS_WAIT);
    return rig_script("offer", offers_now(), worker, call, lease, wait, types, keep,
                      NULL);
}

void
offers_stand(const char *worker, const char *call)
{
    assert_string_equal(offers_make(worker, call, "", "0"), "OK");
}

const char *
offers_withdraw(const char *worker, const char *call)
{
    return rig_script("withdraw", offers_now(), worker, call, "1", NULL);
}

const struct rig_taken *
offers_call(const char *worker, int64_t call)
{
    struct wr_reserve how = {
        .worker = worker, .call = call, .free = 1, .lease_ms = RIG_LEASE};

    return rig_take_how(&how);
}

int
offers_standing(void)
{
    return atoi(redis_do(rig.redis, "ZCARD %s", rig_key(WR_QUEUE_KEY_offers)));
}

void
offers_drop_marker(void)
{
    redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
}

/* A queue that had a job: a stream has its group. Nothing is in it now. */
void
offers_none_waits(void)
{
    rig_put("first");
    rig_take("z", 1);
    assert_int_equal(rig_ack("z", "first"), WR_ANSWERED_OK);
    offers_drop_marker();
}

/* ---- what the marker brings ---- */

/* As a worker gets it by BLPOP: "CALL WORKER ID"; "1": an ordinary one; "-": none. Its
 * token is known to the rig. */
const char *
offers_pop(void)
{
    static char texts[4][300];
    static unsigned turn;
    char *out = texts[turn++ % 4], id[256];
    struct wr_span argv[] = {wr_span_str("LPOP"), rig.keys.key[WR_QUEUE_KEY_wake]};
    struct wr_reply *reply;
    struct wr_handed h;

    assert_int_equal(
        wr_conn_call(rig.conn, argv, 2, wr_clock_ms() + 5000, &reply, &rig.err), WEIR_OK);
    if (wr_reply_kind(reply) == WR_REPLY_NIL) {
        snprintf(out, sizeof(texts[0]), "-");
    } else if (!wr_handed_read(wr_reply_span(reply), &h)) {
        snprintf(out, sizeof(texts[0]), "%s", (const char *)wr_reply_span(reply).ptr);
    } else {
        snprintf(id, sizeof(id), "%.*s", (int)h.job.id.len, (const char *)h.job.id.ptr);
        assert_int_equal(h.job.record.len, strlen(rig_record(id)));
        assert_memory_equal(h.job.record.ptr, rig_record(id), h.job.record.len);
        assert_string_equal(rig_state(id).token, h.job.state.token);
        rig_set_token(h.job.state.worker, id, h.job.state.token);
        snprintf(out, sizeof(texts[0]), "%" PRId64 " %s %s", h.call, h.job.state.worker,
                 id);
    }
    wr_reply_free(reply);
    return out;
}

/* To this worker, which has heard of it. */
void
offers_hand_job(const char *worker, struct rig_job job)
{
    static int64_t call = 1000;
    char number[16], wanted[300];

    snprintf(number, sizeof(number), "%" PRId64, ++call);
    offers_stand(worker, number);
    assert_int_equal(rig_put_job(job), WR_ADMIT_STORED);
    snprintf(wanted, sizeof(wanted), "%s %s %s", number, worker, job.id);
    assert_string_equal(offers_pop(), wanted);
}

void
offers_hand(const char *worker, const char *id)
{
    offers_hand_job(worker, (struct rig_job){.id = id});
}

void
offers_hand_unheard(const char *id)
{
    offers_none_waits();
    offers_stand("w", "3");
    rig_put(id);
    assert_string_equal(rig_where(id), "JPS");
}
