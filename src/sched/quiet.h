/*
 * sched/quiet.h - may a reclaimer trust time? Pure: the clocks come in as arguments.
 *
 * A lease that ran out means a lost worker only if its worker could have renewed it. So
 * nothing is taken back for one lease after the first contact with the server, after a
 * gap between two contacts of more than half a lease (the server, the network or this
 * process stood still), after a step of the server's clock against the monotonic one, and
 * after a change of servers. In that time workers that live renew.
 *
 * A contact is any call that tells the server's time. A follower has contacts too, by
 * looking at the lock: when it takes over it may reclaim at once.
 */
#ifndef WR_SCHED_QUIET_H
#define WR_SCHED_QUIET_H

#include <stdbool.h>
#include <stdint.h>

struct wr_quiet {       /* {0}: no contact yet */
    int64_t contact_us; /* monotonic, before the last good call; 0: none to build on */
    int64_t server_ms;  /* the server's time in it */
    int64_t until_us;   /* monotonic end of the quiet period */
};

/* A call failed, or the server is another one: the next contact begins anew. */
void wr_quiet_lost(struct wr_quiet *quiet);
/* A call that began and ended then was answered with the server's time. */
void wr_quiet_contact(struct wr_quiet *quiet, int64_t began_us, int64_t ended_us,
                      int64_t server_ms, int64_t lease_ms);
/* ms since the last contact; -1: there was none. */
int64_t wr_quiet_gap_ms(const struct wr_quiet *quiet, int64_t now_us);
bool wr_quiet_holds(const struct wr_quiet *quiet, int64_t now_us);

#endif
