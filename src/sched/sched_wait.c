/* How the leader is woken: it blocks on the due markers of all queues that it leads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/backoff.h"
#include "sched/sched_internal.h"

#define BLOCK_S "5"
#define BLOCK_MS 5000
#define BLOCK_SLACK_MS 2000
#define CONNECT_MS 2000

/*
 * Whoever takes a marker owes a promote. If the queue has another leader by now, that one
 * was not woken: it looks by itself within WR_SCHED_PROMOTE_IDLE_MS, and till then this
 * one stays punctual for it.
 */
static void
owe_promote(struct watch *w)
{
    int64_t relay_at = wr_clock_us() + wr_sched_us(WR_SCHED_RELAY_AGE_MS * 3 / 2);

    w->at[PROMOTE] = w->at[CRON] = 0;
    if (relay_at < w->at[RELAY]) /* the marker may stand for them */
        w->at[RELAY] = relay_at;
    wr_cron_watch_look(&w->cron);
    w->owes_until = wr_clock_us() + wr_sched_us(WR_SCHED_PROMOTE_IDLE_MS);
}

/* A marker may have been taken and lost with the connection. */
static void
close_conn(struct wr_sched *s)
{
    wr_conn_close(s->conn);
    s->conn = NULL;
    s->posted = s->stale = false;
    for (struct watch *w = s->watches; w; w = w->next) {
        if (w->awaited)
            owe_promote(w);
        w->awaited = false;
    }
}

static void
drop_conn(struct wr_sched *s)
{
    close_conn(s);
    s->connect_at = wr_clock_us() +
                    wr_sched_us(wr_backoff_ms(s->conn_failures++, WR_SCHED_AWAY_MAX_MS));
}

/* A server that was started anew, or another one, may have lost the last renewals. */
static void
check_run_id(struct wr_sched *s)
{
    static const char label[] = "\nrun_id:";
    struct wr_reply *reply;
    struct wr_span text;
    const char *at;
    size_t len;

    if (wr_conn_do(s->conn, wr_clock_ms() + CONNECT_MS, &reply, NULL, "INFO", "server",
                   (char *)NULL) != WEIR_OK)
        return; /* not allowed to ask, or broken: the next use of it will tell */
    text = wr_reply_span(reply);
    at = memmem(text.ptr, text.len, label, sizeof(label) - 1);
    if (at) {
        at += sizeof(label) - 1;
        len = 0;
        while (at + len < (const char *)text.ptr + text.len && at[len] > ' ')
            len++;
        if (s->run_id[0] && (strlen(s->run_id) != len || memcmp(s->run_id, at, len) != 0))
            for (struct watch *w = s->watches; w; w = w->next)
                wr_quiet_lost(&w->quiet);
        snprintf(s->run_id, sizeof(s->run_id), "%.*s", (int)len, at);
    }
    wr_reply_free(reply);
}

size_t
wr_sched_count_led(const struct wr_sched *s)
{
    size_t led = 0;

    for (const struct watch *w = s->watches; w; w = w->next)
        led += w->leads;
    return led;
}

/* BLPOP looks at the keys in their order: each time another queue is the first, so that
 * a busy one cannot hide the markers of the others. */
static void
list_due_keys(struct wr_sched *s, struct wr_span *out, size_t led)
{
    size_t n = 0;

    s->turn = (s->turn + 1) % led;
    for (struct watch *w = s->watches; w; w = w->next) {
        w->awaited = w->leads;
        if (w->leads)
            out[(n++ + s->turn) % led] = wr_queue_due_key(w->queue);
    }
}

static bool
send_block(struct wr_sched *s, size_t led)
{
    struct wr_span *argv = calloc(led + 2, sizeof(*argv));
    bool sent;

    if (!argv)
        return false;
    argv[0] = wr_span_str("BLPOP");
    list_due_keys(s, argv + 1, led);
    argv[led + 1] = wr_span_str(BLOCK_S);
    sent = wr_conn_send(s->conn, argv, led + 2, wr_clock_ms() + CONNECT_MS, NULL) ==
           WEIR_OK;
    free(argv);
    return sent;
}

void
wr_sched_post_block(struct wr_sched *s)
{
    size_t led = wr_sched_count_led(s);

    if (s->stale)
        close_conn(s);
    if (s->posted || s->away || led == 0 || wr_clock_us() < s->connect_at)
        return;
    if (!s->conn) {
        if (wr_server_open(wr_store_server(s->store), "weir-scheduler",
                           wr_clock_ms() + CONNECT_MS, &s->conn, NULL) != WEIR_OK) {
            drop_conn(s);
            return;
        }
        check_run_id(s);
    }
    if (!send_block(s, led)) {
        drop_conn(s);
        return;
    }
    s->posted = true;
    s->posted_us = wr_clock_us();
}

static void
take_reply(struct wr_sched *s)
{
    struct wr_reply *reply;
    struct wr_span key;

    if (!s->posted || !wr_conn_has_reply(s->conn))
        return;
    s->posted = false;
    if (wr_conn_recv(s->conn, wr_clock_ms() + 1000, &reply, NULL) != WEIR_OK) {
        drop_conn(s);
        return;
    }
    key = wr_reply_span(wr_reply_at(reply, 0));
    for (struct watch *w = s->watches; w; w = w->next) {
        if (wr_span_same(wr_queue_due_key(w->queue), key))
            owe_promote(w);
    }
    if (wr_reply_kind(reply) == WR_REPLY_ERROR)
        drop_conn(s);
    else
        s->conn_failures = 0;
    wr_reply_free(reply);
}

static bool
is_late(const struct wr_sched *s)
{
    return s->posted &&
           wr_clock_us() > s->posted_us + wr_sched_us(BLOCK_MS + BLOCK_SLACK_MS);
}

void
wr_sched_take_marker(struct wr_sched *s)
{
    take_reply(s);
    if (is_late(s))
        drop_conn(s);
}

int64_t
wr_sched_block_until(const struct wr_sched *s)
{
    return s->posted ? s->posted_us + wr_sched_us(BLOCK_MS + BLOCK_SLACK_MS)
                     : s->connect_at;
}
