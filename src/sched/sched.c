#include "sched/sched_internal.h"

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
#include "base/text.h"
#include "redis/backoff.h"

#define LEASE_DEFAULT_MS 15000
#define LEASE_MAX_MS 600000
#define LEAD_MS 1000         /* between two renewals, or two looks at the lock */
#define SUSPECT_MS 400       /* the same once the lock stood still */
#define STALE_LOOKS 3        /* a lock that stood still at so many looks is taken over */
#define REGISTRY_MS 2000     /* between two looks for new queues */
#define RECLAIM_BUSY_MS 500  /* while something runs: lease + 1 s is promised */
#define RECLAIM_IDLE_MS 2000 /* what starts now has a lease of a second at least */
#define TIDY_MS 10000
#define SWEEP_IDLE_MS 3600000
#define FAULT_MS 5000 /* before a queue that is broken is tried again */
#define BATCH_FIRST 100
#define BATCH_MAX 1000
#define RELAY_IDLE_MS 10000

static const char *const step_names[] = {"lead",   "promote", "cron",  "reclaim",
                                         "forget", "trim",    "sweep", "relay"};

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
        wr_cron_watch_fini(&w->cron);
        free(w);
    }
    wr_conn_close(s->conn);
    close(s->timer);
    free(s);
}

/* ---- failures ---- */

/* Not one queue's fault: the server, or the way to it. */
static bool
is_outage(enum weir_err rc)
{
    enum weir_err_kind kind = weir_err_kind_of(rc);

    return kind == WEIR_KIND_BUSY || kind == WEIR_KIND_UNKNOWN || rc == WEIR_E_READONLY ||
           rc == WEIR_E_SERVER;
}

static void
go_away(struct wr_sched *s, const struct weir_error *err)
{
    if (!s->away)
        wr_log_warn("scheduler: %s", err->text);
    s->away = true;
    s->retry_at = wr_clock_us() +
                  wr_sched_us(wr_backoff_ms(s->failures++, WR_SCHED_AWAY_MAX_MS));
    for (struct watch *w = s->watches; w; w = w->next) {
        wr_quiet_lost(&w->quiet);
        w->still = 0; /* the leader could not renew either */
    }
}

static void
come_back(struct wr_sched *s)
{
    if (s->away)
        wr_log_warn("scheduler: Redis is back");
    s->away = false;
    s->failures = 0;
}

/* True if the call went well. Else it has been told, and when to try again is set. */
static bool
went_well(struct wr_sched *s, struct watch *w, enum step step, enum weir_err rc,
          const struct weir_error *err)
{
    if (is_outage(rc)) {
        go_away(s, err); /* w->at is over: it comes first after the wait */
        return false;
    }
    come_back(s);
    if (rc == WEIR_OK) {
        w->broken[step] = false;
        return true;
    }
    w->at[step] = wr_clock_us() + wr_sched_us(FAULT_MS);
    if (rc != WEIR_E_NO_QUEUE && !w->broken[step]) { /* one without jobs is nothing bad */
        wr_log_error("scheduler: %s of queue %s: %s", step_names[step],
                     wr_queue_name(w->queue), err->text);
        w->broken[step] = true;
    }
    return false;
}

/* ---- queues ---- */

static bool
add_queue(const char *name, void *context)
{
    struct wr_sched *s = context;
    struct wr_queue *queue;
    struct watch *w;

    if (wr_store_queue(s->store, name, &queue, NULL) != WEIR_OK)
        return true;
    for (w = s->watches; w; w = w->next) {
        if (w->queue == queue) {
            w->listed = true;
            return true;
        }
    }
    w = calloc(1, sizeof(*w));
    if (!w)
        return true; /* tried again at the next look */
    w->queue = queue;
    w->listed = true;
    w->batch = BATCH_FIRST;
    snprintf(w->sweep.producers, sizeof(w->sweep.producers), "0");
    snprintf(w->sweep.claims, sizeof(w->sweep.claims), "0");
    w->next = s->watches;
    s->watches = w;
    return true;
}

/* Of queues that were removed the lock goes as well: a look at it had made it anew. */
static void
drop_removed(struct wr_sched *s)
{
    for (struct watch **at = &s->watches; *at;) {
        struct watch *w = *at;

        if (w->listed) {
            at = &w->next;
            continue;
        }
        wr_log_info("scheduler: queue %s was removed", wr_queue_name(w->queue));
        (void)!wr_store_unlead(s->store, w->queue, s->me, NULL);
        s->stale = s->posted;
        *at = w->next;
        wr_cron_watch_fini(&w->cron);
        free(w);
    }
}

static void
look_for_queues(struct wr_sched *s, int64_t now)
{
    struct weir_error err = {0};
    enum weir_err rc;

    s->registry_at = now + wr_sched_us(REGISTRY_MS);
    if (s->names) {
        for (const char *const *name = s->names; *name; name++)
            add_queue(*name, s);
        s->registry_at = INT64_MAX;
        return;
    }
    for (struct watch *w = s->watches; w; w = w->next)
        w->listed = false;
    rc = wr_store_each_queue(s->store, add_queue, s, &err);
    if (is_outage(rc)) {
        go_away(s, &err);
        return;
    }
    come_back(s);
    if (rc == WEIR_OK)
        drop_removed(s);
    if (rc != WEIR_OK && !s->registry_broken)
        wr_log_error("scheduler: looking for queues: %s", err.text);
    s->registry_broken = rc != WEIR_OK;
}

/* ---- leading ---- */

static void
begin_to_lead(struct wr_sched *s, struct watch *w, int64_t now)
{
    wr_log_info("scheduler: leads queue %s", wr_queue_name(w->queue));
    w->leads = true;
    w->still = 0;
    for (int step = PROMOTE; step < STEPS; step++)
        w->at[step] = now;
    s->stale = s->posted;
}

static void
step_lead(struct wr_sched *s, struct watch *w)
{
    int64_t began = wr_clock_us(), server_ms;
    /* This call ends one more period: if nothing moved in it either, take over. */
    const char *take = !w->leads && w->still + 1 >= STALE_LOOKS ? w->seen : "";
    struct weir_error err = {0};
    char value[128];
    bool leads;
    enum weir_err rc = wr_store_lead(s->store, w->queue, s->me, take, &leads, value,
                                     &server_ms, &err);

    if (!went_well(s, w, LEAD, rc, &err))
        return;
    wr_quiet_contact(&w->quiet, began, wr_clock_us(), server_ms, s->lease_ms);
    w->at[LEAD] = began + wr_sched_us(LEAD_MS);
    if (leads && !w->leads)
        begin_to_lead(s, w, began);
    if (leads)
        return;
    if (w->leads) {
        w->leads = false;
        s->stale = s->posted;
    }
    w->still = strcmp(value, w->seen) == 0 ? w->still + 1 : 0;
    if (w->still > 0)
        w->at[LEAD] = began + wr_sched_us(SUSPECT_MS);
    snprintf(w->seen, sizeof(w->seen), "%s", value);
}

/* ---- what a leader does ---- */

static void
step_promote(struct wr_sched *s, struct watch *w)
{
    struct weir_error err = {0};
    struct wr_moved m;
    int64_t began = wr_clock_us(), now;
    enum weir_err rc = wr_store_promote(s->store, w->queue, w->batch, &m, &err);

    now = wr_clock_us();
    if (!went_well(s, w, PROMOTE, rc, &err))
        return;
    w->at[PROMOTE] = now + wr_sched_us(WR_SCHED_PROMOTE_IDLE_MS);
    if (m.more) {
        w->batch = w->batch * 2 < BATCH_MAX ? w->batch * 2 : BATCH_MAX;
        w->at[PROMOTE] = now;
    } else {
        w->batch = BATCH_FIRST;
        /* Counted from before the call: so the next one is under way when the job is due,
         * by as much as this one took to get there. Come too early, it moves nothing. */
        if (m.next_us >= 0 && m.next_us < wr_sched_us(WR_SCHED_PROMOTE_IDLE_MS))
            w->at[PROMOTE] = began + m.next_us;
    }
}

static void
say_reclaimed(const struct watch *w, const struct wr_moved *m)
{
    int64_t all = m->moved + m->delayed + m->dead;

    if (all + m->cancelled > 0)
        wr_log_warn(
            "queue %s: reclaimed %lld job%s of lost workers (delayed: %lld, dead: %lld)",
            wr_queue_name(w->queue), (long long)all, wr_text_s(all),
            (long long)m->delayed, (long long)m->dead);
}

/* The next call comes when the next lease ends, when the quiet period does, and in any
 * case before the gap is so long that it would begin a new one. */
static int64_t
reclaim_wait(const struct wr_sched *s, const struct watch *w, const struct wr_moved *m)
{
    int64_t wait = wr_sched_us(RECLAIM_IDLE_MS), now = wr_clock_us();

    if (m->more)
        return 0;
    if (m->next_ms >= 0)
        wait = wr_sched_us(m->next_ms < RECLAIM_BUSY_MS ? m->next_ms + 1
                                                        : RECLAIM_BUSY_MS);
    if (wr_quiet_holds(&w->quiet, now) && wait > w->quiet.until_us - now)
        wait = w->quiet.until_us - now;
    return wait < wr_sched_us(s->lease_ms) / 4 ? wait : wr_sched_us(s->lease_ms) / 4;
}

static void
step_reclaim(struct wr_sched *s, struct watch *w)
{
    int64_t began = wr_clock_us();
    struct wr_reclaim how = {
        .lease_ms = s->lease_ms,
        .lease_max_ms = LEASE_MAX_MS,
        .gap_ms = wr_quiet_gap_ms(&w->quiet, began),
        .last_ms = w->quiet.server_ms,
        .quiet = wr_quiet_holds(&w->quiet, began),
        .limit = BATCH_FIRST,
    };
    struct weir_error err = {0};
    struct wr_moved m;
    enum weir_err rc = wr_store_reclaim(s->store, w->queue, &how, &m, &err);

    if (!went_well(s, w, RECLAIM, rc, &err)) {
        if (rc == WEIR_E_NO_QUEUE)
            w->at[RECLAIM] = began + wr_sched_us(RECLAIM_IDLE_MS);
        return;
    }
    wr_quiet_contact(&w->quiet, began, wr_clock_us(), m.server_ms, s->lease_ms);
    say_reclaimed(w, &m);
    w->at[RECLAIM] = began + reclaim_wait(s, w, &m);
}

static void
step_forget(struct wr_sched *s, struct watch *w)
{
    struct weir_error err = {0};
    struct wr_moved m;
    enum weir_err rc = wr_store_forget(s->store, w->queue, BATCH_FIRST, &m, &err);
    int64_t wait = TIDY_MS;

    if (!went_well(s, w, FORGET, rc, &err))
        return;
    if (m.more)
        wait = 0;
    else if (m.next_ms >= 0 && m.next_ms < TIDY_MS)
        wait = m.next_ms + 1;
    w->at[FORGET] = wr_clock_us() + wr_sched_us(wait);
}

/* A queue far over its limits is brought back slice by slice; said once, at the end. */
static void
step_trim(struct wr_sched *s, struct watch *w)
{
    struct weir_error err = {0};
    struct wr_moved m;
    enum weir_err rc = wr_store_trim(s->store, w->queue, BATCH_FIRST, &m, &err);

    if (!went_well(s, w, TRIM, rc, &err))
        return;
    w->trimmed += m.moved;
    if (!m.more && w->trimmed > 0) {
        wr_log_warn("queue %s: trimmed %lld dead job%s: over the queue's limits",
                    wr_queue_name(w->queue), (long long)w->trimmed,
                    wr_text_s(w->trimmed));
        w->trimmed = 0;
    }
    w->at[TRIM] = wr_clock_us() + (m.more ? 0 : wr_sched_us(TIDY_MS));
}

static void
step_sweep(struct wr_sched *s, struct watch *w)
{
    struct weir_error err = {0};
    enum weir_err rc = wr_store_sweep(s->store, w->queue, SWEEP_IDLE_MS, BATCH_FIRST,
                                      &w->sweep, &err);

    /* Each chain leaves a channel, some thousand a second: where a tenth of them is over,
     * it goes on. */
    if (went_well(s, w, SWEEP, rc, &err))
        w->at[SWEEP] = wr_clock_us() +
                       (w->sweep.removed >= BATCH_FIRST / 10 ? 0 : wr_sched_us(TIDY_MS));
}

static void
say_full(struct wr_sched *s, struct watch *w, const struct weir_error *err)
{
    come_back(s);
    if (!w->broken[RELAY])
        wr_log_error("scheduler: follow-up jobs of queue %s wait: %s",
                     wr_queue_name(w->queue), err->text);
    w->broken[RELAY] = true;
    w->at[RELAY] = wr_clock_us() + wr_sched_us(FAULT_MS);
}

/* Follow-up jobs whose worker died between the end of its job and their enqueue. */
static void
step_relay(struct wr_sched *s, struct watch *w)
{
    struct weir_error err = {0};
    size_t relayed;
    bool more;
    enum weir_err rc = wr_store_relay_late(s->store, w->queue, WR_SCHED_RELAY_AGE_MS,
                                           BATCH_FIRST, &relayed, &more, &err);

    if (relayed > 0)
        wr_log_info("scheduler: queue %s: the follow-up jobs of %zu job%s enqueued",
                    wr_queue_name(w->queue), relayed, wr_text_s((int64_t)relayed));
    if (rc == WEIR_E_FULL) /* of new jobs only: all else goes on */
        say_full(s, w, &err);
    else if (went_well(s, w, RELAY, rc, &err))
        w->at[RELAY] = wr_clock_us() +
                       wr_sched_us(more ? WR_SCHED_RELAY_AGE_MS : RELAY_IDLE_MS);
}

/* Not the leader's alone: what it does not fire, others do a little later. */
static void
step_cron(struct wr_sched *s, struct watch *w)
{
    struct weir_error err = {0};
    int64_t at;
    enum weir_err rc = wr_cron_step(&w->cron, s->store, w->queue, w->leads, &at, &err);

    if (went_well(s, w, CRON, rc, &err))
        w->at[CRON] = at;
}

static bool
has_step(const struct watch *w, int step, int64_t now)
{
    return step == LEAD || step == CRON || w->leads ||
           (step == PROMOTE && now < w->owes_until);
}

/* Does what is due; one step of each kind a turn, so that no queue starves another. One
 * failed call is enough to know that the server is away: what is due waits. */
static void
step_watch(struct wr_sched *s, struct watch *w)
{
    static void (*const steps[])(struct wr_sched *, struct watch *) = {
        [LEAD] = step_lead,       [PROMOTE] = step_promote, [CRON] = step_cron,
        [RECLAIM] = step_reclaim, [FORGET] = step_forget,   [TRIM] = step_trim,
        [SWEEP] = step_sweep,     [RELAY] = step_relay,
    };

    for (int step = LEAD; step < STEPS && !(s->away && wr_clock_us() < s->retry_at);
         step++) {
        int64_t now = wr_clock_us();

        if (has_step(w, step, now) && now >= w->at[step])
            steps[step](s, w);
    }
}

static int64_t
next_time(const struct wr_sched *s)
{
    int64_t at = s->registry_at, now = wr_clock_us(), block;

    if (s->away)
        return s->retry_at;
    block = wr_sched_block_until(s);
    if (s->posted || wr_sched_count_led(s) > 0)
        at = block < at ? block : at;
    for (const struct watch *w = s->watches; w; w = w->next) {
        for (int step = LEAD; step < STEPS; step++) {
            if (has_step(w, step, now) && w->at[step] < at)
                at = w->at[step];
        }
    }
    return at;
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
    for (struct watch *w = s->watches; w && !s->away; w = w->next) {
        if (w->leads && wr_store_unlead(s->store, w->queue, s->me, NULL) != WEIR_OK)
            s->away = true; /* the others take over when the lock stands still */
    }
}

static bool
is_told(int stop_fd)
{
    struct pollfd p = {.fd = stop_fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/* One turn. After each queue it asks whether to stop: calls may take their time. */
static bool
take_turn(struct wr_sched *s, int stop_fd)
{
    if (s->away && wr_clock_us() < s->retry_at)
        return false;
    wr_sched_take_marker(s);
    if (wr_clock_us() >= s->registry_at)
        look_for_queues(s, wr_clock_us());
    for (struct watch *w = s->watches; w; w = w->next) {
        if (s->away && wr_clock_us() < s->retry_at)
            break;
        step_watch(s, w);
        if (is_told(stop_fd))
            return true;
    }
    wr_sched_post_block(s);
    return false;
}

void
wr_sched_run(struct wr_sched *s, int stop_fd)
{
    while (!take_turn(s, stop_fd)) {
        if (sleep_until(s, next_time(s), stop_fd))
            break;
    }
    resign(s);
}
