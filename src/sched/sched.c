#include "sched/sched.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "redis/backoff.h"
#include "redis/conn.h"

#define LEASE_DEFAULT_MS 15000
#define LEASE_MAX_MS 600000
#define LEAD_MS 1000     /* between two renewals, or two looks at the lock */
#define STALE_LOOKS 3    /* a lock that stood still so often is taken over */
#define REGISTRY_MS 1000 /* between two looks for new queues */
#define PROMOTE_IDLE_MS 5000
#define RECLAIM_BUSY_MS 500 /* while something runs: lease + 1 s is promised */
#define RECLAIM_IDLE_MS 1000
#define TIDY_MS 10000
#define SWEEP_IDLE_MS 3600000
#define BATCH_FIRST 100
#define BATCH_MAX 1000
#define BLOCK_S "5"
#define BLOCK_MS 5000
#define BLOCK_SLACK_MS 2000
#define AWAY_MAX_MS 1000

/* What is known of one queue. All times are monotonic, in us. */
struct watch {
    struct watch *next;
    struct wr_queue *queue;
    bool leads;
    char seen[128]; /* the lock's value at the last look, while another leads */
    int stale_looks;
    int64_t lead_at, promote_at, reclaim_at, forget_at, sweep_at;
    size_t batch;

    int64_t reclaimed_us; /* the last good call; 0: none */
    int64_t server_ms;    /* the server's time then */
    int64_t quiet_until;
    struct wr_sweep sweep;
};

struct wr_sched {
    struct wr_store *store;
    const char *const *names;
    int64_t lease_ms;
    char me[100];
    struct watch *watches;
    int64_t registry_at;

    struct wr_conn *conn; /* blocks on the due markers of what this one leads */
    bool posted;
    int64_t posted_us, connect_at;
    unsigned failures;
    int timer;
    bool away; /* Redis does not answer: said once */
};

static int64_t
ms(int64_t n)
{
    return n * 1000;
}

enum weir_err
wr_sched_new(const struct wr_sched_options *o, struct wr_sched **out,
             struct weir_error *err)
{
    struct wr_sched *s = calloc(1, sizeof(*s));

    *out = NULL;
    if (!s)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "scheduler");
    s->store = o->store;
    s->names = o->queues;
    s->lease_ms = o->lease_ms > 0 ? o->lease_ms : LEASE_DEFAULT_MS;
    s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->timer < 0) {
        free(s);
        return wr_fail(err, WEIR_E_NO_MEMORY, errno, "timerfd");
    }
    wr_id_make_worker(s->me);
    *out = s;
    return WEIR_OK;
}

void
wr_sched_free(struct wr_sched *s)
{
    if (!s)
        return;
    while (s->watches) {
        struct watch *w = s->watches;

        s->watches = w->next;
        free(w);
    }
    wr_conn_close(s->conn);
    close(s->timer);
    free(s);
}

/* True if the call went well. Says once that Redis is away, and once that it is back. */
static bool
went_well(struct wr_sched *s, enum weir_err rc, const struct weir_error *err)
{
    if (rc == WEIR_OK || rc == WEIR_E_NO_QUEUE) {
        if (s->away)
            wr_log_warn("scheduler: Redis is back");
        s->away = false;
        s->failures = 0;
        return rc == WEIR_OK;
    }
    if (!s->away)
        wr_log_warn("scheduler: %s", err->text);
    s->away = true;
    return false;
}

/* ---- queues ---- */

static void
add_queue(struct wr_sched *s, const char *name)
{
    struct wr_queue *queue;
    struct watch *w;

    if (wr_store_queue(s->store, name, &queue, NULL) != WEIR_OK)
        return;
    for (w = s->watches; w; w = w->next) {
        if (w->queue == queue)
            return;
    }
    w = calloc(1, sizeof(*w));
    if (!w)
        return; /* tried again at the next look */
    w->queue = queue;
    w->batch = BATCH_FIRST;
    snprintf(w->sweep.producers, sizeof(w->sweep.producers), "0");
    snprintf(w->sweep.claims, sizeof(w->sweep.claims), "0");
    w->next = s->watches;
    s->watches = w;
}

static void
look_for_queues(struct wr_sched *s, int64_t now)
{
    struct weir_error err = {0};
    struct wr_reply *reply;
    enum weir_err rc;

    s->registry_at = now + ms(REGISTRY_MS);
    if (s->names) {
        for (const char *const *name = s->names; *name; name++)
            add_queue(s, *name);
        s->registry_at = INT64_MAX;
        return;
    }
    rc = wr_store_registry(s->store, &reply, &err);
    if (!went_well(s, rc, &err))
        return;
    for (size_t i = 1; i < wr_reply_len(reply); i++) {
        struct wr_span name = wr_reply_span(wr_reply_at(reply, i));
        char text[132];

        if (name.len < sizeof(text)) {
            snprintf(text, sizeof(text), "%.*s", (int)name.len, (const char *)name.ptr);
            add_queue(s, text);
        }
    }
    wr_reply_free(reply);
}

/* ---- leading ---- */

static void
begin_to_lead(struct wr_sched *s, struct watch *w, int64_t now)
{
    wr_log_info("scheduler: leads queue %s", wr_queue_name(w->queue));
    w->leads = true;
    w->stale_looks = 0;
    w->promote_at = w->reclaim_at = w->forget_at = w->sweep_at = now;
    w->reclaimed_us = 0; /* a new reclaimer waits one lease */
    w->quiet_until = 0;
    (void)s;
}

static void
step_lead(struct wr_sched *s, struct watch *w, int64_t now)
{
    const char *take = !w->leads && w->stale_looks >= STALE_LOOKS ? w->seen : "";
    struct weir_error err = {0};
    char value[128];
    bool leads;
    enum weir_err rc = wr_store_lead(s->store, w->queue, s->me, take, &leads, value,
                                     &err);

    w->lead_at = now + ms(LEAD_MS);
    if (!went_well(s, rc, &err))
        return;
    if (leads) {
        if (!w->leads)
            begin_to_lead(s, w, now);
        return;
    }
    w->leads = false;
    w->stale_looks = strcmp(value, w->seen) == 0 ? w->stale_looks + 1 : 0;
    snprintf(w->seen, sizeof(w->seen), "%s", value);
}

/* ---- what a leader does ---- */

static void
step_promote(struct wr_sched *s, struct watch *w)
{
    struct weir_error err = {0};
    struct wr_moved m;
    enum weir_err rc = wr_store_promote(s->store, w->queue, w->batch, &m, &err);
    int64_t now = wr_clock_us(); /* after the call: the script's time is in between */

    w->promote_at = now + ms(PROMOTE_IDLE_MS);
    if (!went_well(s, rc, &err)) {
        if (rc != WEIR_E_NO_QUEUE)
            w->promote_at = now + ms(200);
        return;
    }
    if (m.more) {
        w->batch = w->batch * 2 < BATCH_MAX ? w->batch * 2 : BATCH_MAX;
        w->promote_at = now;
    } else {
        w->batch = BATCH_FIRST;
        if (m.next_us >= 0 && m.next_us < ms(PROMOTE_IDLE_MS))
            w->promote_at = now + m.next_us;
    }
}

static void
say_reclaimed(const struct watch *w, const struct wr_moved *m)
{
    if (m->moved + m->delayed + m->dead + m->cancelled > 0)
        wr_log_warn(
            "queue %s: reclaimed %lld jobs of lost workers (%lld wait, %lld are dead)",
            wr_queue_name(w->queue), (long long)(m->moved + m->delayed + m->dead),
            (long long)m->delayed, (long long)m->dead);
}

/*
 * An outage, a pause of ours or a step of the server's clock must charge nobody: then the
 * script answers QUIET, and nothing is taken back for one lease, in which workers that
 * live renew.
 */
static void
step_reclaim(struct wr_sched *s, struct watch *w, int64_t now)
{
    struct wr_reclaim how = {
        .lease_ms = s->lease_ms,
        .lease_max_ms = LEASE_MAX_MS,
        .gap_ms = w->reclaimed_us == 0 ? -1 : (now - w->reclaimed_us) / 1000,
        .last_ms = w->server_ms,
        .quiet = now < w->quiet_until,
        .limit = BATCH_FIRST,
    };
    struct weir_error err = {0};
    struct wr_moved m;
    enum weir_err rc = wr_store_reclaim(s->store, w->queue, &how, &m, &err);
    int64_t wait = RECLAIM_IDLE_MS;

    w->reclaim_at = now + ms(RECLAIM_BUSY_MS);
    if (!went_well(s, rc, &err)) {
        w->reclaimed_us = 0;
        return;
    }
    w->reclaimed_us = now;
    w->server_ms = m.server_ms;
    if (m.quiet && !how.quiet)
        w->quiet_until = now + ms(s->lease_ms);
    say_reclaimed(w, &m);
    if (m.next_ms >= 0)
        wait = m.next_ms + 1 < RECLAIM_BUSY_MS ? m.next_ms + 1 : RECLAIM_BUSY_MS;
    if (wait > s->lease_ms / 4)
        wait = s->lease_ms / 4;
    w->reclaim_at = now + ms(m.more ? 0 : wait);
}

static void
step_forget(struct wr_sched *s, struct watch *w, int64_t now)
{
    struct weir_error err = {0};
    struct wr_moved m;
    enum weir_err rc = wr_store_forget(s->store, w->queue, BATCH_FIRST, &m, &err);

    w->forget_at = now + ms(TIDY_MS);
    if (!went_well(s, rc, &err))
        return;
    if (m.more)
        w->forget_at = now;
    else if (m.next_ms >= 0 && m.next_ms < TIDY_MS)
        w->forget_at = now + ms(m.next_ms + 1);
}

static void
step_sweep(struct wr_sched *s, struct watch *w, int64_t now)
{
    struct weir_error err = {0};

    w->sweep_at = now + ms(TIDY_MS);
    went_well(
        s,
        wr_store_sweep(s->store, w->queue, SWEEP_IDLE_MS, BATCH_FIRST, &w->sweep, &err),
        &err);
}

/* Does what is due; one step of each kind a turn, so that no queue starves another. */
static void
step_watch(struct wr_sched *s, struct watch *w)
{
    int64_t now = wr_clock_us();

    if (now >= w->lead_at)
        step_lead(s, w, now);
    if (w->leads && now >= w->promote_at)
        step_promote(s, w);
    if (w->leads && now >= w->reclaim_at)
        step_reclaim(s, w, now);
    if (w->leads && now >= w->forget_at)
        step_forget(s, w, now);
    if (w->leads && now >= w->sweep_at)
        step_sweep(s, w, now);
}

/* ---- waiting ---- */

static void
drop_conn(struct wr_sched *s)
{
    wr_conn_close(s->conn);
    s->conn = NULL;
    s->posted = false;
    s->connect_at = wr_clock_us() + ms(wr_backoff_ms(s->failures++, AWAY_MAX_MS));
}

/* Asks to be woken by the due markers of the queues it leads. */
static void
post_block(struct wr_sched *s, int64_t now)
{
    struct wr_span argv[1000];
    size_t n = 0;

    if (s->posted || now < s->connect_at)
        return;
    argv[n++] = wr_span_str("BLPOP");
    for (const struct watch *w = s->watches; w && n < 998; w = w->next) {
        if (w->leads)
            argv[n++] = wr_queue_due_key(w->queue);
    }
    if (n == 1)
        return;
    argv[n++] = wr_span_str(BLOCK_S);
    if (!s->conn && wr_server_open(wr_store_server(s->store), "weir-scheduler",
                                   wr_clock_ms() + 2000, &s->conn, NULL) != WEIR_OK) {
        drop_conn(s);
        return;
    }
    if (wr_conn_send(s->conn, argv, n, wr_clock_ms() + 2000, NULL) != WEIR_OK) {
        drop_conn(s);
        return;
    }
    s->posted = true;
    s->posted_us = now;
}

static void
take_marker(struct wr_sched *s)
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
        struct wr_span due = wr_queue_due_key(w->queue);

        if (due.len == key.len && memcmp(due.ptr, key.ptr, key.len) == 0)
            w->promote_at = 0;
    }
    if (wr_reply_kind(reply) == WR_REPLY_ERROR)
        drop_conn(s);
    wr_reply_free(reply);
}

static int64_t
next_time(const struct wr_sched *s)
{
    int64_t at = s->registry_at;

    if (s->posted)
        at = s->posted_us + ms(BLOCK_MS + BLOCK_SLACK_MS);
    for (const struct watch *w = s->watches; w; w = w->next) {
        const int64_t times[] = {w->lead_at, w->promote_at, w->reclaim_at, w->forget_at,
                                 w->sweep_at};
        size_t n = w->leads ? sizeof(times) / sizeof(times[0]) : 1;

        for (size_t i = 0; i < n; i++)
            at = times[i] < at ? times[i] : at;
    }
    return at < s->registry_at ? at : s->registry_at;
}

/* Sleeps exactly: the timer counts microseconds, poll() only milliseconds. True: stop. */
static bool
sleep_until(struct wr_sched *s, int64_t at_us, int stop_fd)
{
    struct itimerspec t = {
        .it_value = {.tv_sec = at_us / 1000000, .tv_nsec = at_us % 1000000 * 1000 + 1}};
    struct pollfd p[3] = {{.fd = stop_fd, .events = POLLIN},
                          {.fd = s->timer, .events = POLLIN},
                          {.fd = s->posted ? wr_conn_fd(s->conn) : -1, .events = POLLIN}};
    uint64_t count;

    timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &t, NULL);
    if (at_us <= wr_clock_us())
        poll(p, 3, 0);
    else
        poll(p, 3, 60000);
    if (p[1].revents && read(s->timer, &count, sizeof(count)) < 0)
        count = 0; /* it was set again meanwhile */
    return p[0].revents != 0;
}

static void
resign(struct wr_sched *s)
{
    for (struct watch *w = s->watches; w; w = w->next) {
        if (w->leads && !s->away &&
            wr_store_unlead(s->store, w->queue, s->me, NULL) != WEIR_OK)
            s->away = true; /* the others take over in three looks */
    }
}

void
wr_sched_run(struct wr_sched *s, int stop_fd)
{
    bool stop = false;

    while (!stop) {
        int64_t now = wr_clock_us();

        if (now >= s->registry_at)
            look_for_queues(s, now);
        take_marker(s);
        for (struct watch *w = s->watches; w; w = w->next)
            step_watch(s, w);
        if (s->posted && wr_clock_us() > s->posted_us + ms(BLOCK_MS + BLOCK_SLACK_MS))
            drop_conn(s);
        post_block(s, wr_clock_us());
        stop = sleep_until(s, next_time(s), stop_fd);
    }
    resign(s);
}
