/*
 * The beat of a worker: what the service child tells of all its processes, every few
 * seconds, and what it hears in the reply. An order is a state that stands in Redis until
 * another comes: it is obeyed with the next beat, or at once when the hint of it comes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/version.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "redis/backoff.h"
#include "worker/worker_internal.h"

#define BEAT_PROTOCOL 2 /* of the fields; 1 was a row of each child */
#define BEAT_MS 5000
#define AWAY_MAX_MS 2000    /* between tries when Redis does not take it */
#define TIMEOUT_MS 1000     /* of a call: the service child has other duties */
#define RUNNING_MAX 20      /* jobs that are told by name */
#define FIELDS_MAX (2 * 24) /* names and values */

struct wr_beats {
    const struct weir_worker *w;
    struct wr_slots **pages;
    size_t pages_n;
    struct wr_store *store;
    struct wr_hints hints;
    int64_t next_ms;
    unsigned failures;
    bool checked; /* the server's settings, since it answers */
};

/* What is told, as text. */
struct facts {
    const char *fields[FIELDS_MAX + 1];
    size_t n;
    char texts[FIELDS_MAX / 2][32];
    size_t texts_n;
    char host[64];
    struct wr_buf queues, running, alone, broken, timeouts;
};

static void
add_text(struct facts *f, const char *name, const char *value)
{
    if (f->n + 2 > FIELDS_MAX)
        return;
    f->fields[f->n++] = name;
    f->fields[f->n++] = value;
}

static void
add_number(struct facts *f, const char *name, int64_t value)
{
    char *text = f->texts[f->texts_n++];

    snprintf(text, sizeof(f->texts[0]), "%lld", (long long)value);
    add_text(f, name, text);
}

/* ---- facts ---- */

static int64_t
rss_of(pid_t pid)
{
    char path[64];
    long long pages = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (fscanf(f, "%*s %lld", &pages) != 1)
        pages = 0;
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Sums of the children that live. */
struct census {
    size_t children, busy;
    int64_t rss, contact_ms; /* contact_ms: how long the slowest child fetched nothing */
};

static void
add_job(struct wr_buf *list, const struct wr_slot *slot)
{
    wr_buf_addf(list, "%s%.*s\t%.*s", list->len ? "\n" : "",
                (int)strnlen(slot->queue, sizeof(slot->queue)), slot->queue,
                (int)strnlen(slot->id, sizeof(slot->id)), slot->id);
}

static void
look_at_child(const struct wr_beats *b, const struct wr_slots *page, struct census *c,
              struct facts *f)
{
    int64_t silent = wr_clock_ms() - atomic_load(&page->contact_ms);
    int alone = atomic_load(&page->alone);

    c->children++;
    if (alone > 0 && (size_t)alone <= wr_page_size(b->w))
        add_job(&f->alone, &page->slot[alone - 1]);
    if (page->broken[0] != '\0' && !f->broken.len) /* what one cannot start none can */
        wr_buf_addf(&f->broken, "%.*s", (int)sizeof(page->broken) - 1, page->broken);
    c->rss += rss_of((pid_t)atomic_load(&page->pid));
    c->contact_ms = silent > c->contact_ms ? silent : c->contact_ms;
    for (size_t i = 0; i < wr_page_size(b->w); i++) {
        const struct wr_slot *slot = &page->slot[i];

        if (atomic_load_explicit(&slot->state, memory_order_acquire) != WR_SLOT_RUNNING)
            continue;
        if (c->busy++ < RUNNING_MAX)
            add_job(&f->running, slot);
    }
}

static struct census
take_census(const struct wr_beats *b, struct facts *f)
{
    struct census c = {.rss = rss_of(getpid()) + rss_of(getppid())};

    for (size_t i = 0; i < b->pages_n; i++) {
        if (atomic_load(&b->pages[i]->pid) > 0)
            look_at_child(b, b->pages[i], &c, f);
    }
    return c;
}

static const char *
state_of(const struct weir_worker *w)
{
    if (atomic_load(&w->shared->stopping))
        return "draining";
    return atomic_load(&w->shared->quiet) ? "quiet" : "running";
}

/* Of every handler, if one has any: "*" holds for types without a handler of their own.
 */
static void
add_timeouts(const struct weir_worker *w, struct facts *f)
{
    bool any = false;

    for (const struct wr_handler *h = w->handlers; h; h = h->next)
        any = any || h->timeout_ms > 0;
    for (const struct wr_handler *h = w->handlers; any && h; h = h->next)
        wr_buf_addf(&f->timeouts, "%s%s\t%lld", f->timeouts.len ? "\n" : "", h->type,
                    (long long)h->timeout_ms);
    if (any)
        add_text(f, "timeouts", wr_buf_span(&f->timeouts).ptr);
}

static void
collect(const struct wr_beats *b, struct facts *f)
{
    struct census c = take_census(b, f);
    const char *boot = strrchr(b->w->id, '.');

    gethostname(f->host, sizeof(f->host) - 1);
    for (char **q = b->w->queues; q && *q; q++)
        wr_buf_addf(&f->queues, "%s%s", f->queues.len ? "," : "", *q);
    add_number(f, "protocol", BEAT_PROTOCOL);
    add_text(f, "version", WEIR_VERSION);
    add_text(f, "host", f->host);
    add_number(f, "pid", (int64_t)getppid());
    add_text(f, "boot", boot ? boot + 1 : "");
    add_number(f, "children", (int64_t)c.children);
    add_number(f, "slots", (int64_t)(b->w->processes * b->w->concurrency));
    add_number(f, "busy", (int64_t)c.busy);
    add_number(f, "processed", atomic_load(&b->w->shared->processed));
    add_number(f, "failed", atomic_load(&b->w->shared->failed));
    add_number(f, "rss", c.rss);
    add_number(f, "contact_ms", c.contact_ms);
    add_number(f, "started_at", b->w->shared->started_ms);
    if (b->w->job_timeout_ms != 0)
        add_number(f, "job_timeout",
                   b->w->job_timeout_ms == WEIR_NONE ? 0 : b->w->job_timeout_ms);
    add_timeouts(b->w, f);
    add_text(f, "queues", f->queues.len ? wr_buf_span(&f->queues).ptr : "*");
    add_text(f, "broken", f->broken.len ? wr_buf_span(&f->broken).ptr : "");
    add_text(f, "running", f->running.len ? wr_buf_span(&f->running).ptr : "");
    add_text(f, "alone", f->alone.len ? wr_buf_span(&f->alone).ptr : "");
}

/* ---- beating ---- */

static enum weir_err
send_beat(struct wr_beats *b, struct wr_told *told, struct weir_error *err)
{
    struct facts f = {.n = 0};
    struct wr_beat beat = {
        .worker = b->w->id, .state = state_of(b->w), .fields = f.fields};
    enum weir_err rc;

    collect(b, &f);
    rc = wr_store_beat(b->store, &beat, told, err);
    wr_buf_fini(&f.queues);
    wr_buf_fini(&f.running);
    wr_buf_fini(&f.broken);
    wr_buf_fini(&f.timeouts);
    wr_buf_fini(&f.alone);
    return rc;
}

/* Before the stop that it belongs to. */
static void
take_grace(struct wr_beats *b, int64_t grace_ms)
{
    char text[32];

    if (grace_ms < 0 || atomic_exchange(&b->w->shared->grace_ms, grace_ms) == grace_ms)
        return;
    wr_text_show_duration(grace_ms, text, sizeof(text));
    wr_log_warn("told to give running jobs %s at the end", text);
}

/* True when the state changed by it. */
static bool
obey(struct wr_beats *b, const struct wr_told *told)
{
    bool quiet = told->order == WR_ORDER_QUIET;

    if (told->order == WR_ORDER_STOP)
        take_grace(b, told->grace_ms);
    if (told->order != WR_ORDER_QUIET && told->order != WR_ORDER_RUN)
        return false;
    if (atomic_exchange(&b->w->shared->quiet, quiet) == quiet)
        return false;
    wr_log_warn(quiet ? "told to be quiet: nothing more is claimed, what runs goes on"
                      : "told to run: jobs are claimed again");
    return true;
}

/* Once for each time that Redis comes: it may be another one. */
static void
check_server(struct wr_beats *b)
{
    char policy[64];

    b->checked = wr_store_eviction(b->store, policy, sizeof(policy), NULL) == WEIR_OK;
    if (b->checked && policy[0])
        wr_log_error(WR_EVICTION_TEXT, policy);
}

static void
note_failure(struct wr_beats *b, const struct weir_error *err)
{
    b->checked = false;
    if (b->failures == 0)
        wr_log_info("no heartbeat: %s", err->text);
    b->next_ms = wr_clock_ms() + 100 + wr_backoff_ms(b->failures++, AWAY_MAX_MS);
}

bool
wr_beats_step(struct wr_beats *b, bool now, int64_t *next_ms)
{
    struct wr_told told = {.order = WR_ORDER_NONE, .grace_ms = -1};

    if (wr_hints_take(&b->hints))
        now = true;
    if (now || wr_clock_ms() >= b->next_ms) {
        struct weir_error err = {0};
        enum weir_err rc = send_beat(b, &told, &err);

        b->next_ms = wr_clock_ms() + BEAT_MS;
        if (rc == WEIR_OK && obey(b, &told)) /* and say so */
            rc = send_beat(b, &told, &err);
        if (rc == WEIR_OK)
            b->failures = 0;
        else
            note_failure(b, &err);
        if (rc == WEIR_OK && !b->checked)
            check_server(b);
    }
    if (b->failures == 0)
        wr_hints_post(&b->hints);
    *next_ms = b->next_ms;
    return told.order == WR_ORDER_STOP;
}

int
wr_beats_fd(const struct wr_beats *b)
{
    return wr_hints_fd(&b->hints);
}

enum weir_err
wr_beats_new(const struct weir_worker *w, struct wr_server *server,
             struct wr_slots **pages, size_t pages_n, struct wr_beats **out,
             struct weir_error *err)
{
    struct wr_store_options o = {
        .server = server, .ns = w->ns, .command_timeout_ms = TIMEOUT_MS};
    struct wr_beats *b = calloc(1, sizeof(*b));
    enum weir_err rc;

    *out = NULL;
    if (!b)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "heartbeat");
    b->w = w;
    b->pages = pages;
    b->pages_n = pages_n;
    rc = wr_store_new(&o, &b->store, err);
    if (rc != WEIR_OK) {
        free(b);
        return rc;
    }
    wr_hints_init(&b->hints, server, wr_store_namespace(b->store), w->id, TIMEOUT_MS);
    *out = b;
    return WEIR_OK;
}

void
wr_beats_leave(struct wr_beats *b)
{
    struct wr_beat beat = {.leave = true};

    if (!b)
        return;
    beat.worker = b->w->id;
    /* If Redis is away the row goes by itself, in a minute. */
    if (b->failures == 0 && wr_store_beat(b->store, &beat, NULL, NULL) != WEIR_OK)
        wr_log_info("the last heartbeat was not taken");
    wr_hints_close(&b->hints);
    wr_store_free(b->store);
    free(b);
}
