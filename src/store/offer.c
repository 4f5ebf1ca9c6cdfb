/* Offers: what a worker that waits would reserve, and the job that a marker brings. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "store/call.h"
#include "store/scripts.gen.h"

static const char *const offer_words[] = {"OK", "OFF", "BEHIND", NULL};

enum weir_err
wr_store_offer_hold(struct wr_store *store, struct wr_queue *queue,
                    const struct wr_reserve *want, int64_t wait_ms, struct wr_conn *conn,
                    bool mute, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_offer);
    wr_call_now(&c);
    wr_call_str(&c, want->worker);
    wr_call_int(&c, want->call);
    wr_call_int(&c, want->lease_ms);
    wr_call_int(&c, wait_ms);
    wr_call_str(&c, want->types ? want->types : "");
    wr_call_int(&c, want->keep_ms);
    rc = wr_call_hold(&c, conn, mute, err);
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_offer_recv(struct wr_store *store, struct wr_queue *queue, struct wr_conn *conn,
                    int64_t deadline_ms, enum wr_offer_word *word, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_offer);
    rc = wr_call_recv(&c, conn, deadline_ms, err);
    if (rc == WEIR_OK) {
        int found = wr_call_word(&c, 0, offer_words);

        *word = found < 0 ? WR_OFFER_OFF : (enum wr_offer_word)found;
    }
    wr_call_fini(&c);
    return rc;
}

/* Up to the next `end`, which is cut off. False: there is none. */
static bool
take_until(struct wr_span *text, char end, struct wr_span *out)
{
    const char *at = text->len > 0 ? memchr(text->ptr, end, text->len) : NULL;

    if (!at)
        return false;
    *out = (struct wr_span){text->ptr, (size_t)(at - (const char *)text->ptr)};
    *text = (struct wr_span){at + 1, text->len - out->len - 1};
    return true;
}

bool
wr_handed_read(struct wr_span marker, struct wr_handed *out)
{
    struct wr_span call, state;

    if (!take_until(&marker, '\n', &call) || !take_until(&marker, '\0', &out->job.id) ||
        !take_until(&marker, '\n', &state))
        return false;
    out->job.record = marker;
    return wr_span_int(call, &out->call) && wr_job_state_read(state, &out->job.state);
}

enum weir_err
wr_store_withdraw(struct wr_store *store, struct wr_queue *queue, const char *worker,
                  int64_t call, bool makes_offers, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_withdraw);
    wr_call_now(&c);
    wr_call_str(&c, worker);
    wr_call_int(&c, call);
    wr_call_str(&c, makes_offers ? "" : "1");
    rc = wr_call_run(&c, err);
    wr_call_fini(&c);
    return rc;
}
