/*
 * script/kill_acts.h - the calls that test_kill_points.c cuts at every point: one or more
 * for each script.
 */
#ifndef SCRIPT_KILL_ACTS_H
#define SCRIPT_KILL_ACTS_H

#include <stddef.h>

#include <weir/client.h>

#include "store/store.h"

/* Who makes the call: a client of its own. */
struct kill_actor {
    struct weir_client *client;
    struct wr_store *store;
    struct wr_queue *queue; /* "q" */
    struct weir_error err;
};

struct kill_act {
    const char *name; /* the script that it is about, and more */
    void (*before)(void);
    enum weir_err (*act)(struct kill_actor *a);
    const char *where;   /* letters of rig_where("A") in the end */
    const char *counter; /* in the end exactly `count` */
    int count;
    void (*after)(void);
};
/* What moves jobs; and all else: entries, output, workers, and what only looks. */
extern const struct kill_act kill_acts[], kill_others[];
extern const size_t kill_acts_count, kill_others_count;

#define KILL_WORKER "w"

/* What was before. */
void kill_no_world(void);
void kill_two_wait(void); /* A and B */
void kill_one_runs(void); /* A; B waits */
/* What must be in the end: the queue is known to schedulers. */
void kill_must_be_registered(void);

#endif
