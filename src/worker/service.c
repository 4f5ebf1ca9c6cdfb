/*
 * The service child: no handlers. It runs the scheduler, takes back at once what a
 * sibling held that the supervisor saw die, and beats for the whole worker.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "redis/backoff.h"
#include "sched/sched.h"
#include "worker/worker_internal.h"

#define COMMAND_TIMEOUT_MS 2000
#define RETRY_MAX_MS 200
#define THREADS 2 /* this one and the scheduler's: each has one call under way */

struct service {
    const struct weir_worker *w;
    struct wr_slots **pages;
    size_t pages_n;
    struct wr_server *server;
    struct wr_store *store;
    struct wr_beats *beats;
};

/* What the page says of one queue. It was written by a process that died: nothing in it
 * is trusted but by the script, which checks id, token and worker together. */
static size_t
read_page(const struct wr_slots *page, const char *name, struct wr_holding *out, size_t n)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        const struct wr_slot *slot = &page->slot[i];
        int state = atomic_load_explicit(&slot->state, memory_order_acquire);

        if (state == WR_SLOT_FREE || strncmp(slot->queue, name, sizeof(slot->queue)) != 0)
            continue;
        out[found++] = (struct wr_holding){
            .id = {slot->id, strnlen(slot->id, sizeof(slot->id))},
            .token = {slot->token, strnlen(slot->token, sizeof(slot->token))},
            .started = state == WR_SLOT_RUNNING,
        };
    }
    return found;
}

/* Also with nothing on the page: the queue's claims speak of a last call that nobody
 * read. */
static enum weir_err
reclaim_queue(struct service *s, const struct wr_slots *page, const char *name,
              struct weir_error *err)
{
    size_t size = wr_page_size(s->w), n = 0, first = 0;
    struct wr_holding *held = calloc(size, sizeof(*held));
    struct wr_queue *queue;
    struct wr_moved moved;
    char worker[sizeof(page->worker)];
    enum weir_err rc = wr_store_queue(s->store, name, &queue, err);

    if (!held)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "reclaim");
    snprintf(worker, sizeof(worker), "%.*s", (int)sizeof(page->worker) - 1, page->worker);
    if (rc == WEIR_OK)
        n = read_page(page, name, held, size);
    for (; rc == WEIR_OK && (first < n || first == 0); first += WR_BATCH_MAX) {
        size_t some = n - first < WR_BATCH_MAX ? n - first : WR_BATCH_MAX;

        rc = wr_store_reclaim_held(s->store, queue, worker, page->death, held + first,
                                   some, &moved, NULL, err);
        if (rc == WEIR_OK && moved.moved + moved.delayed + moved.dead > 0)
            wr_log_warn("queue %s: took back %lld job%s of a dead worker (delayed: %lld, "
                        "dead: %lld)",
                        name, (long long)(moved.moved + moved.delayed + moved.dead),
                        wr_text_s(moved.moved + moved.delayed + moved.dead),
                        (long long)moved.delayed, (long long)moved.dead);
    }
    free(held);
    return rc;
}

/* True when there is nothing more to try on this queue: done, or broken in a way that
 * only a person can mend, which must not keep the jobs of others waiting. */
static bool
reclaim_or_leave(struct service *s, const struct wr_slots *page, const char *name)
{
    struct weir_error err = {0};
    enum weir_err rc = reclaim_queue(s, page, name, &err);
    enum weir_err_kind kind = weir_err_kind_of(rc);

    if (rc == WEIR_OK || rc == WEIR_E_NO_QUEUE)
        return true;
    if (kind == WEIR_KIND_BUSY || kind == WEIR_KIND_UNKNOWN || rc == WEIR_E_READONLY)
        return false;
    wr_log_error("queue %s: %s", name, err.text);
    return true;
}

struct page_reclaim {
    struct service *service;
    const struct wr_slots *page;
    bool done;
};

static bool
reclaim_registered(const char *name, void *context)
{
    struct page_reclaim *r = context;

    r->done = reclaim_or_leave(r->service, r->page, name) && r->done;
    return true;
}

static bool
reclaim_page(struct service *s, const struct wr_slots *page)
{
    struct page_reclaim r = {.service = s, .page = page, .done = true};

    for (char **name = s->w->queues; name && *name; name++)
        r.done = reclaim_or_leave(s, page, *name) && r.done;
    if (!s->w->queues &&
        wr_store_each_queue(s->store, reclaim_registered, &r, NULL) != WEIR_OK)
        return false;
    return r.done;
}

/* Told to stop, or the supervisor is gone: waits at most this long for it. */
static bool
is_told(int fd, int signals, int wait_ms)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLRDHUP},
                          {.fd = signals, .events = POLLIN}};

    return poll(p, 2, wait_ms) > 0;
}

/* Until Redis takes it, but no longer than the leases last: they would do it too. */
static void
reclaim_until_done(struct service *s, unsigned char number, int fd, int signals)
{
    const struct wr_slots *page = number < s->pages_n ? s->pages[number] : NULL;
    int64_t deadline = wr_clock_ms() + s->w->lease_ms;
    unsigned failures = 0;

    while (page && !reclaim_page(s, page) && wr_clock_ms() < deadline) {
        if (is_told(fd, signals, (int)wr_backoff_ms(failures++, RETRY_MAX_MS)))
            break;
    }
    (void)!write(fd, &number, 1);
}

struct scheduler {
    struct wr_sched *sched;
    int stop_fd;
};

static void *
scheduler_main(void *arg)
{
    struct scheduler *s = arg;

    wr_sched_run(s->sched, s->stop_fd);
    return NULL;
}

static bool
start_scheduler(struct service *s, struct scheduler *out, pthread_t *thread,
                struct weir_error *err)
{
    struct wr_sched_options o = {.store = s->store,
                                 .queues = (const char *const *)s->w->queues,
                                 .lease_ms = s->w->lease_ms};

    out->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (wr_sched_new(&o, &out->sched, err) != WEIR_OK)
        return false;
    return pthread_create(thread, NULL, scheduler_main, out) == 0;
}

/* False: the supervisor is gone. */
static bool
hear_supervisor(struct service *s, int fd, int signals, bool *beat)
{
    unsigned char byte;

    if (read(fd, &byte, 1) != 1)
        return false;
    if (byte == WR_BYTE_BEAT)
        *beat = true;
    else
        reclaim_until_done(s, byte, fd, signals);
    return true;
}

/* The supervisor sleeps on signals alone; this one says nothing but: look. */
static bool
ask_to_stop(const struct service *s, int fd)
{
    static const unsigned char stop = WR_BYTE_STOP;
    pid_t supervisor = (pid_t)atomic_load(&s->w->stop_pid);

    if (write(fd, &stop, 1) != 1)
        return false;
    if (getppid() == supervisor)
        kill(supervisor, SIGCHLD);
    return true;
}

static int
wait_ms(int64_t until)
{
    int64_t left = until - wr_clock_ms();

    return left <= 0 ? 0 : left < 60000 ? (int)left : 60000;
}

static void
serve(struct service *s, int fd, int signals)
{
    bool beat = true, stopping = false;

    for (;;) {
        int64_t next, cron_next;
        struct pollfd p[3];

        if (wr_beats_step(s->beats, beat, &next) && !stopping)
            stopping = ask_to_stop(s, fd);
        if (!wr_crons_step(s->w, s->store, &cron_next) && cron_next < next)
            next = cron_next;
        beat = false;
        p[0] = (struct pollfd){.fd = fd, .events = POLLIN};
        p[1] = (struct pollfd){.fd = signals, .events = POLLIN};
        p[2] = (struct pollfd){.fd = wr_beats_fd(s->beats), .events = POLLIN};
        if (poll(p, 3, wait_ms(next)) < 0 && errno != EINTR)
            return;
        if (p[0].revents && !hear_supervisor(s, fd, signals, &beat))
            return;
        if (p[1].revents)
            return;
    }
}

void
wr_service_main(const struct weir_worker *w, struct wr_slots **pages, size_t pages_n,
                int fd)
{
    struct service s = {.w = w, .pages = pages, .pages_n = pages_n};
    struct scheduler scheduler = {.stop_fd = -1};
    struct weir_error err = {0};
    pthread_t thread;
    bool scheduling = false;
    sigset_t mask;

    prctl(PR_SET_NAME, "weir-service");
    setpgid(0, 0);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    if (wr_worker_connect(w, "weir-service", THREADS, COMMAND_TIMEOUT_MS, &s.server,
                          &s.store, &err) != WEIR_OK ||
        wr_beats_new(w, s.server, pages, pages_n, &s.beats, &err) != WEIR_OK) {
        wr_log_error("%s", err.text);
        _exit(WR_CHILD_STARTUP);
    }
    if (!w->no_scheduler)
        scheduling = start_scheduler(&s, &scheduler, &thread, &err);
    serve(&s, fd, signalfd(-1, &mask, SFD_CLOEXEC));
    wr_beats_leave(s.beats);
    if (scheduling && eventfd_write(scheduler.stop_fd, 1) == 0)
        pthread_join(thread, NULL);
    _exit(WR_CHILD_DONE);
}
