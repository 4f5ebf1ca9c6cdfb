#include "redis/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/cond.h"
#include "base/error.h"

struct wr_pool {
    /* Never written after wr_pool_new(). */
    const struct wr_pool_ops *ops;
    void *ctx;
    size_t max;

    pthread_mutex_t mu; /* guards all below; never held across I/O */
    pthread_cond_t freed;
    size_t lent;            /* borrowed, or being opened for a borrower */
    size_t idle_n;          /* lent + idle_n <= max */
    struct wr_pool *next;   /* in the registry; guarded by registry_mu */
    struct wr_conn *idle[]; /* a stack: the warmest connection is lent first */
};

/*
 * fork() may come while another thread holds a pool's lock, and that thread
 * does not exist in the child. So all locks are taken around fork(), in one
 * order: the registry, then the pools as they stand in it.
 */
static pthread_once_t fork_hooks_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t registry_mu = PTHREAD_MUTEX_INITIALIZER;
static struct wr_pool *registry;

static void
before_fork(void)
{
    pthread_mutex_lock(&registry_mu);
    for (struct wr_pool *p = registry; p; p = p->next)
        pthread_mutex_lock(&p->mu);
}

static void
after_fork_in_parent(void)
{
    for (struct wr_pool *p = registry; p; p = p->next)
        pthread_mutex_unlock(&p->mu);
    pthread_mutex_unlock(&registry_mu);
}

static void
after_fork_in_child(void)
{
    for (struct wr_pool *p = registry; p; p = p->next) {
        while (p->idle_n > 0)
            p->ops->abandon(p->idle[--p->idle_n]);
        /* Borrowed ones are abandoned as they are given back. The condition
         * still counts waiters that exist only in the parent. */
        p->lent = 0;
        wr_cond_init(&p->freed);
        pthread_mutex_unlock(&p->mu);
    }
    pthread_mutex_unlock(&registry_mu);
}

static void
install_fork_hooks(void)
{
    int rc = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

    WR_ASSERT(rc == 0);
}

enum weir_err
wr_pool_new(const struct wr_pool_ops *ops, void *ctx, size_t max_conns,
            struct wr_pool **out)
{
    struct wr_pool *p;

    *out = NULL;
    if (max_conns == 0)
        return WEIR_E_ARG;

    p = calloc(1, sizeof(*p) + max_conns * sizeof(p->idle[0]));
    if (!p)
        return WEIR_E_NO_MEMORY;
    p->ops = ops;
    p->ctx = ctx;
    p->max = max_conns;

    if (pthread_mutex_init(&p->mu, NULL) != 0)
        goto fail_free;
    if (wr_cond_init(&p->freed) != 0)
        goto fail_mutex;

    pthread_once(&fork_hooks_once, install_fork_hooks);
    pthread_mutex_lock(&registry_mu);
    p->next = registry;
    registry = p;
    pthread_mutex_unlock(&registry_mu);

    *out = p;
    return WEIR_OK;

fail_mutex:
    pthread_mutex_destroy(&p->mu);
fail_free:
    free(p);
    return WEIR_E_NO_MEMORY;
}

void
wr_pool_free(struct wr_pool *p)
{
    struct wr_pool **link;

    if (!p)
        return;
    WR_ASSERT(p->lent == 0);

    pthread_mutex_lock(&registry_mu);
    for (link = &registry; *link != p; link = &(*link)->next)
        continue;
    *link = p->next;
    pthread_mutex_unlock(&registry_mu);

    while (p->idle_n > 0)
        p->ops->close(p->idle[--p->idle_n]);
    pthread_cond_destroy(&p->freed);
    pthread_mutex_destroy(&p->mu);
    free(p);
}

/* Waits, with p->mu held, until one more connection may be lent. */
static enum weir_err
wait_for_slot(struct wr_pool *p, int64_t deadline_ms)
{
    while (p->lent == p->max) {
        /* One that was freed just then is taken: its signal may have been ours. */
        if (wr_cond_wait_until(&p->freed, &p->mu, deadline_ms) == ETIMEDOUT &&
            p->lent == p->max)
            return WEIR_E_POOL_FULL;
    }
    return WEIR_OK;
}

static void
free_slot(struct wr_pool *p)
{
    pthread_mutex_lock(&p->mu);
    WR_ASSERT(p->lent > 0);
    p->lent--;
    pthread_cond_signal(&p->freed);
    pthread_mutex_unlock(&p->mu);
}

enum weir_err
wr_pool_take(struct wr_pool *p, int64_t slot_deadline_ms, int64_t deadline_ms,
             struct wr_conn **out, struct weir_error *err)
{
    struct wr_conn *c = NULL;
    enum weir_err rc;

    *out = NULL;

    pthread_mutex_lock(&p->mu);
    rc = wait_for_slot(p, slot_deadline_ms);
    if (rc == WEIR_OK) {
        p->lent++;
        if (p->idle_n > 0)
            c = p->idle[--p->idle_n];
    }
    pthread_mutex_unlock(&p->mu);
    if (rc != WEIR_OK)
        return wr_fail(err, rc, 0, "too many connections: all %zu are in use", p->max);

    if (c && !p->ops->is_healthy(p->ctx, c, deadline_ms)) {
        p->ops->close(c);
        c = NULL;
    }
    if (!c) {
        rc = p->ops->open(p->ctx, deadline_ms, &c, err);
        if (rc != WEIR_OK) {
            free_slot(p);
            return rc;
        }
    }
    *out = c;
    return WEIR_OK;
}

void
wr_pool_give(struct wr_pool *p, struct wr_conn *c, enum wr_give how)
{
    /* Borrowed before a fork, given back after it: it was never ours. */
    if (p->ops->owner(c) != getpid()) {
        p->ops->abandon(c);
        return;
    }
    if (how == WR_GIVE_BROKEN) {
        p->ops->close(c);
        free_slot(p);
        return;
    }

    pthread_mutex_lock(&p->mu);
    WR_ASSERT(p->lent > 0 && p->idle_n < p->max);
    p->lent--;
    p->idle[p->idle_n++] = c;
    pthread_cond_signal(&p->freed);
    pthread_mutex_unlock(&p->mu);
}
