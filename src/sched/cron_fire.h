/*
 * sched/cron_fire.h - fires the cron entries of one queue.
 *
 * Entries are read once, and again when their version in Redis has changed: at once by
 * the leader, who is woken by the queue's `due` marker, within LOOK_MS by the others.
 * The next tick is always computed from the tick before, never from the time at which
 * somebody woke up. Whether a tick is due, and whether it still is to be fired, decides
 * the script cron_fire by the server's clock: so any number of schedulers may try. The
 * leader is punctual; the others fire what is FOLLOW_MS late, should the leader be dead,
 * or without time zone files.
 */
#ifndef WR_SCHED_CRON_FIRE_H
#define WR_SCHED_CRON_FIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/cron.h"
#include "store/store.h"

struct wr_cron_watch {
    struct wr_cron_line *lines; /* the entries, by name */
    size_t n;
    struct wr_cron_zone *zones;
    char version[WR_CRON_VERSION_MAX];
    int64_t look_at_us, read_at_us; /* monotonic: next look, last full reading */
    int64_t ahead_us;               /* the server's time - the monotonic one */
};

/* All zero is a new one. */
void wr_cron_watch_fini(struct wr_cron_watch *watch);
/* The entries may have changed: the next step looks. */
void wr_cron_watch_look(struct wr_cron_watch *watch);

/* Does what is due, in bounded slices; *at_us: when to call again (monotonic). An error
 * is one of the server or of the queue, never of a single entry. */
enum weir_err
wr_cron_step(struct wr_cron_watch *watch, struct wr_store *store, struct wr_queue *queue,
             bool leads, int64_t *at_us, struct weir_error *err) WEIR_MUST_CHECK;

#endif
