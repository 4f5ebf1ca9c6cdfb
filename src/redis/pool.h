/*
 * redis/pool.h - lends connections to threads.
 *
 * Threads  take and give may be called from any thread.
 * fork     the child finds the pool empty: connections opened by the parent are
 *          abandoned (descriptor closed, nothing sent).
 * Order    last in, first out, so few connections stay warm and the rest age.
 * Health   a connection that was idle longer than the interval is PINGed before it
 *          is lent, and replaced if it does not answer.
 */
#ifndef WR_REDIS_POOL_H
#define WR_REDIS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

struct wr_conn;
struct wr_pool;

/* How the pool handles connections; conn_pool.c has the real one, tests a fake. */
struct wr_pool_ops {
    enum weir_err (*open)(void *ctx, int64_t deadline_ms, struct wr_conn **out,
                          struct weir_error *err);
    /* May ask the server, within the deadline. */
    bool (*is_healthy)(void *ctx, struct wr_conn *conn, int64_t deadline_ms);
    pid_t (*owner)(const struct wr_conn *conn);
    void (*close)(struct wr_conn *conn);
    void (*abandon)(struct wr_conn *conn);
};

/* How a borrowed connection comes back. */
enum wr_give {
    WR_GIVE_CLEAN,  /* every reply was read: may be lent again */
    WR_GIVE_BROKEN, /* state unknown: must be closed */
};

/* ops and ctx stay the caller's and must outlive the pool. */
enum weir_err wr_pool_new(const struct wr_pool_ops *ops, void *ctx, size_t max_conns,
                          struct wr_pool **out) WEIR_MUST_CHECK;
/* Every connection must have been given back. NULL is allowed. */
void wr_pool_free(struct wr_pool *pool);

/*
 * Borrows a connection; return it with wr_pool_give() on any thread.
 * slot_deadline_ms bounds the wait for a free one, deadline_ms the opening.
 *
 * E_POOL_FULL  all were in use until slot_deadline_ms
 * or whatever ops->open() reports
 */
enum weir_err
wr_pool_take(struct wr_pool *pool, int64_t slot_deadline_ms, int64_t deadline_ms,
             struct wr_conn **out, struct weir_error *err) WEIR_MUST_CHECK;
void wr_pool_give(struct wr_pool *pool, struct wr_conn *conn, enum wr_give how);

#endif
