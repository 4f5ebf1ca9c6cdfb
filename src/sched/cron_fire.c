#include "sched/cron_fire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cron/schedule.h"
#include "cron/zone.h"
#include "model/entry.h"

#define LOOK_MS 5000    /* between two looks at the version */
#define READ_MS 3600000 /* zone files may have been renewed */
#define FOLLOW_MS 2000  /* others than the leader fire what is so late */
#define WAITING_MS 200  /* between two looks whether the run before has ended */
#define FULL_MS 1000    /* Redis is full: before a tick is tried again */
#define FIRES_MAX 100   /* in one step */
#define NEVER INT64_MAX

/* An entry, read and ready. */
struct wr_cron_line {
    char name[WR_ENTRY_NAME_MAX + 1];
    struct wr_schedule schedule;
    const struct wr_zone *zone;
    int64_t rev, due_ms;
    enum wr_missed missed;
    int64_t cap, grace_ms, jitter_ms;
    bool paused, waits;
    bool bad;         /* cannot be fired from here */
    bool told;        /* what is wrong with it was said */
    int64_t retry_us; /* not before this time, monotonic */
    int64_t waiting_us;
};

struct wr_cron_zone {
    struct wr_cron_zone *next;
    char name[WR_ENTRY_ZONE_MAX + 1];
    struct wr_zone *zone; /* NULL: cannot be read, and why */
    char why[200];
};

/* What one step works on. */
struct step {
    struct wr_cron_watch *w;
    struct wr_store *store;
    struct wr_queue *queue;
    bool leads;
    int fires;
};

static int64_t
ms(int64_t n)
{
    return n * 1000;
}

static void
free_zones(struct wr_cron_zone *zones)
{
    while (zones) {
        struct wr_cron_zone *z = zones;

        zones = z->next;
        wr_zone_free(z->zone);
        free(z);
    }
}

void
wr_cron_watch_fini(struct wr_cron_watch *w)
{
    free(w->lines);
    free_zones(w->zones);
    *w = (struct wr_cron_watch){0};
}

void
wr_cron_watch_look(struct wr_cron_watch *w)
{
    w->look_at_us = 0;
}

/* ---- reading the entries ---- */

/* What is read: it takes the place of the old when all of it is there. */
struct reading {
    const struct wr_cron_watch *old;
    const char *queue;
    struct wr_cron_line *lines;
    struct wr_cron_zone *zones;
    size_t n, cap;
    bool failed;
};

static int
by_name(const void *a, const void *b)
{
    const struct wr_cron_line *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static struct wr_cron_zone *
find_zone(struct reading *r, const char *name)
{
    struct weir_error err = {0};
    struct wr_cron_zone *z;

    for (z = r->zones; z; z = z->next) {
        if (strcmp(z->name, name) == 0)
            return z;
    }
    z = calloc(1, sizeof(*z));
    if (!z)
        return NULL;
    snprintf(z->name, sizeof(z->name), "%s", name);
    if (wr_zone_open(name, &z->zone, &err) != WEIR_OK)
        snprintf(z->why, sizeof(z->why), "%.190s", err.text);
    z->next = r->zones;
    r->zones = z;
    return z;
}

/* Said once for each revision. */
static void
tell_bad(struct reading *r, struct wr_cron_line *line, const char *why)
{
    const struct wr_cron_line *was = NULL;

    line->bad = line->told = true;
    if (r->old->n > 0)
        was = bsearch(line, r->old->lines, r->old->n, sizeof(*line), by_name);
    if (!was || !was->told || was->rev != line->rev)
        wr_log_error("cron entry %s of queue %s does not fire from here: %s", line->name,
                     r->queue, why);
}

static void
fill_line(struct reading *r, struct wr_cron_line *line, struct wr_span text)
{
    struct weir_error err = {0};
    struct wr_cron_zone *zone;
    struct wr_entry e;

    if (!wr_entry_read(text, &e)) {
        tell_bad(r, line, "its text in Redis cannot be read");
        return;
    }
    line->rev = e.rev;
    line->due_ms = e.due_ms;
    line->paused = e.paused;
    line->waits = e.waits[0] != '\0';
    line->missed = e.missed;
    line->cap = e.cap;
    line->grace_ms = e.grace_ms;
    line->jitter_ms = e.jitter_ms;
    zone = find_zone(r, e.zone);
    if (!zone)
        r->failed = true;
    else if (!zone->zone)
        tell_bad(r, line, zone->why);
    else if (wr_schedule_parse(e.spec, &line->schedule, &err) != WEIR_OK)
        tell_bad(r, line, err.text);
    else
        line->zone = zone->zone;
}

static void
take_entry(struct wr_span name, struct wr_span text, void *context)
{
    struct reading *r = context;
    struct wr_cron_line *line;

    if (!wr_entry_is_name(name) || r->failed)
        return;
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 16;
        struct wr_cron_line *lines = realloc(r->lines, cap * sizeof(*lines));

        if (!lines) {
            r->failed = true;
            return;
        }
        r->lines = lines;
        r->cap = cap;
    }
    line = &r->lines[r->n++];
    *line = (struct wr_cron_line){0};
    memcpy(line->name, name.ptr, name.len);
    fill_line(r, line, text);
}

/* Sorts, and drops what came twice. */
static void
put_in_order(struct reading *r)
{
    size_t kept = 0;

    if (r->n == 0)
        return;
    qsort(r->lines, r->n, sizeof(*r->lines), by_name);
    for (size_t i = 1; i < r->n; i++) {
        if (strcmp(r->lines[kept].name, r->lines[i].name) != 0)
            r->lines[++kept] = r->lines[i];
    }
    r->n = kept + 1;
}

static enum weir_err
look(struct step *s, struct weir_error *err)
{
    struct wr_cron_watch *w = s->w;
    struct reading r = {.old = w, .queue = wr_queue_name(s->queue)};
    int64_t server_us, now = wr_clock_us();
    char version[WR_CRON_VERSION_MAX];
    bool same;
    enum weir_err rc;

    snprintf(version, sizeof(version), "%s",
             now - w->read_at_us < ms(READ_MS) ? w->version : "");
    rc = wr_store_cron_each(s->store, s->queue, version, &same, &server_us, take_entry,
                            &r, err);
    if (rc == WEIR_OK && server_us > 0)
        w->ahead_us = server_us - wr_clock_us();
    if (rc != WEIR_OK || same || r.failed) {
        free(r.lines);
        free_zones(r.zones);
        if (rc == WEIR_OK) /* out of memory: again at the next look */
            w->look_at_us = now + ms(LOOK_MS);
        return rc;
    }
    put_in_order(&r);
    free(w->lines);
    free_zones(w->zones);
    w->lines = r.lines;
    w->n = r.n;
    w->zones = r.zones;
    w->read_at_us = now;
    w->look_at_us = now + ms(LOOK_MS);
    snprintf(w->version, sizeof(w->version), "%s", version);
    return WEIR_OK;
}

/* ---- firing ---- */

/*
 * The ticks from the due one until now, and what the entry wants of them: which one makes
 * a job, which one is the next.
 */
static struct wr_cron_tick
plan(const struct wr_cron_line *l, int64_t now_ms)
{
    int64_t ticks[WR_CAP_MAX], passed, first, last;
    size_t cap = l->missed == WR_MISSED_ALL ? (size_t)l->cap : 1;
    size_t n = wr_schedule_passed(&l->schedule, l->zone, l->due_ms, now_ms, ticks, cap,
                                  &passed);
    struct wr_cron_tick t = {.name = l->name, .rev = l->rev, .expected_ms = l->due_ms};

    if (n == 0) { /* not due by this clock; the server's decides */
        ticks[0] = l->due_ms;
        n = 1;
    }
    first = ticks[0];
    last = ticks[n - 1];
    t.passed = passed;
    t.tick_ms = first;
    t.next_ms = n > 1 ? ticks[1] : wr_schedule_next(&l->schedule, l->zone, last);
    if (l->missed == WR_MISSED_SKIP && now_ms - first > l->grace_ms) {
        t.tick_ms = -1;
        t.passed++;
    }
    if (l->jitter_ms > 0 && t.tick_ms >= 0)
        t.at_ms = t.tick_ms + wr_entry_jitter(l->name, t.tick_ms, l->jitter_ms);
    return t;
}

/* Says what people should know; the rest is in the entry's counters. */
static void
say(const struct step *s, struct wr_cron_line *l, const struct wr_cron_tick *t,
    const struct wr_cron_fired *f)
{
    const char *queue = wr_queue_name(s->queue);

    if (t->passed > 0 && f->word != WR_CRON_EARLY && f->word != WR_CRON_CHANGED)
        wr_log_warn("cron entry %s of queue %s: %lld ticks were missed and are skipped",
                    l->name, queue, (long long)t->passed);
    if (f->word == WR_CRON_REFUSED && !l->told)
        wr_log_error("cron entry %s of queue %s: no job was made: %s", l->name, queue,
                     f->detail);
    else if (f->word == WR_CRON_SKIPPED || f->word == WR_CRON_WAITS)
        wr_log_debug("cron entry %s of queue %s: %s is not over yet", l->name, queue,
                     f->detail);
    if (f->word == WR_CRON_OK || f->word == WR_CRON_REFUSED)
        l->told = f->word == WR_CRON_REFUSED;
}

/* Takes over what the entry is now. Another revision, or none: it is read again. */
static void
take_answer(struct step *s, struct wr_cron_line *l, const struct wr_cron_fired *f)
{
    if (f->word == WR_CRON_GONE || f->rev != l->rev) {
        wr_cron_watch_look(s->w);
        l->bad = true; /* until then */
        return;
    }
    l->due_ms = f->due_ms;
    l->paused = f->paused;
    l->waits = f->waits;
}

/* A full Redis takes no new jobs: that is the entry's trouble, not the scheduler's. */
static bool
is_full(const struct step *s, struct wr_cron_line *l, enum weir_err rc,
        const struct weir_error *err)
{
    if (rc != WEIR_E_FULL)
        return false;
    if (!l->told)
        wr_log_error("cron entry %s of queue %s: %s", l->name, wr_queue_name(s->queue),
                     err->text);
    l->told = true;
    l->retry_us = l->waiting_us = wr_clock_us() + ms(FULL_MS);
    return true;
}

static enum weir_err
fire(struct step *s, struct wr_cron_line *l, struct weir_error *err)
{
    struct weir_error local = {0};
    int64_t server_ms = (wr_clock_us() + s->w->ahead_us) / 1000, now;
    struct wr_cron_tick t = plan(l, server_ms);
    struct wr_cron_fired f;
    enum weir_err rc = wr_store_cron_fire(s->store, s->queue, &t, &f, &local);

    s->fires++;
    if (is_full(s, l, rc, &local))
        return WEIR_OK;
    if (rc != WEIR_OK) {
        *err = local;
        return rc;
    }
    now = wr_clock_us();
    l->retry_us = 0;
    if (f.word == WR_CRON_EARLY) {
        int64_t tick = t.tick_ms < 0 ? t.expected_ms : t.tick_ms;

        s->w->ahead_us = ms(tick) - f.early_us - now;
        /* Clocks of servers are set, forwards too: so look again before long. */
        l->retry_us = now + (f.early_us < ms(LOOK_MS) ? f.early_us : ms(LOOK_MS));
    }
    say(s, l, &t, &f);
    take_answer(s, l, &f);
    return WEIR_OK;
}

/* The run that waits for the one before it. */
static enum weir_err
start_waiting(struct step *s, struct wr_cron_line *l, struct weir_error *err)
{
    struct weir_error local = {0};
    struct wr_cron_fired f;
    enum weir_err rc = wr_store_cron_run(s->store, s->queue, l->name, "", &f, &local);

    s->fires++;
    if (is_full(s, l, rc, &local))
        return WEIR_OK;
    if (rc != WEIR_OK) {
        *err = local;
        return rc;
    }
    l->waiting_us = wr_clock_us() + ms(s->leads ? WAITING_MS : LOOK_MS);
    take_answer(s, l, &f);
    return WEIR_OK;
}

/* ---- when ---- */

/* When its tick is to be fired from here; monotonic. */
static int64_t
fire_time(const struct step *s, const struct wr_cron_line *l)
{
    int64_t at;

    if (l->bad || l->paused || l->due_ms < 0)
        return NEVER;
    at = ms(l->due_ms) - s->w->ahead_us + (s->leads ? 0 : ms(FOLLOW_MS));
    return at > l->retry_us ? at : l->retry_us;
}

static int64_t
waiting_time(const struct wr_cron_line *l)
{
    return l->waits && !l->bad && !l->paused ? l->waiting_us : NEVER;
}

/* Ticks come in their order: of one entry many may be due, each is an own call. */
static enum weir_err
step_line(struct step *s, struct wr_cron_line *l, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    while (rc == WEIR_OK && s->fires < FIRES_MAX && fire_time(s, l) <= wr_clock_us())
        rc = fire(s, l, err);
    if (rc == WEIR_OK && s->fires < FIRES_MAX && waiting_time(l) <= wr_clock_us())
        rc = start_waiting(s, l, err);
    return rc;
}

enum weir_err
wr_cron_step(struct wr_cron_watch *w, struct wr_store *store, struct wr_queue *queue,
             bool leads, int64_t *at_us, struct weir_error *err)
{
    struct step s = {w, store, queue, leads, 0};
    struct weir_error local = {0};
    enum weir_err rc = WEIR_OK;

    if (wr_clock_us() >= w->look_at_us)
        rc = look(&s, &local);
    for (size_t i = 0; rc == WEIR_OK && i < w->n; i++)
        rc = step_line(&s, &w->lines[i], &local);
    if (rc != WEIR_OK) {
        if (err)
            *err = local;
        return rc;
    }
    *at_us = w->look_at_us;
    for (size_t i = 0; i < w->n; i++) {
        int64_t fire_at = fire_time(&s, &w->lines[i]), wait = waiting_time(&w->lines[i]);

        *at_us = fire_at < *at_us ? fire_at : *at_us;
        *at_us = wait < *at_us ? wait : *at_us;
    }
    return WEIR_OK;
}
