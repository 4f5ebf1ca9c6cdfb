/*
 * worker/slots.h - what each slot of one worker child runs, in memory shared with the
 * supervisor and the spawner.
 *
 * The page outlives the child, so that the supervisor can kill what the child's slots
 * had started and say which jobs were held. A child that went mad may scribble on it:
 * whoever reads it checks lengths, and the (id, token, worker) triple is checked again
 * by the reclaim_held script, so nonsense does no harm.
 *
 * Writers: the child's I/O thread writes a slot before it hands the job to it and
 * clears it after the answer was given; `state` is written last (release) and read
 * first (acquire). The spawner alone writes pgid.
 */
#ifndef WR_WORKER_SLOTS_H
#define WR_WORKER_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

#include "model/codec.h"

#define WR_SLOTS_MAX 1024

enum wr_slot_state {
    WR_SLOT_FREE,
    WR_SLOT_CLAIMED, /* waits for its handler: not charged if the child dies */
    WR_SLOT_RUNNING, /* its handler has started */
};

struct wr_slot {
    _Atomic int state; /* enum wr_slot_state */
    _Atomic int pgid;  /* process group of its exec job; 0: none */
    char queue[132];   /* NUL-terminated */
    char id[256];
    char token[WR_TOKEN_MAX];
};

struct wr_slots {
    char
        worker[100]; /* the child's worker id; the supervisor writes it before the fork */
    _Atomic int pid; /* of the child that uses it; 0: none. The supervisor's */
    _Atomic bool ready;        /* its start-up hook is done, it claims */
    _Atomic int64_t answered;  /* jobs */
    _Atomic int64_t tick_ms;   /* monotonic: its I/O thread is alive */
    _Atomic int64_t fenced_ms; /* monotonic: its lease thread looked at the fences */
    _Atomic int64_t fence_ms;  /* monotonic: the earliest of those; INT64_MAX: none */
    _Atomic int64_t cut_ms;    /* monotonic: it stood still, and the supervisor ended what
                                  its slots had started; 0: never */
    _Atomic int64_t contact_ms; /* monotonic: it fetched from Redis, or had no need to */
    size_t n;          /* entries: one per job that the child can hold; not to be trusted
                          when the child is dead: the supervisor sets it again */
    _Atomic int ended; /* 1 + its exit status, said just before it ends in order; 0: it
                          crashed, or a handler called exit() */
    struct weir_error error; /* why it could not start */
    char death[40];          /* how it died; the supervisor writes it afterwards */
    _Atomic int alone; /* 1 + the slot of a job for which this child takes no others: it
                          runs alone, or will; 0: none */
    char broken[256];  /* types whose handlers cannot be started, commas between, for
                          people: may be cut, and be read while it is written */
    struct wr_slot slot[];
};

/* Shared anonymous memory for n slots; NULL when out of memory. */
struct wr_slots *wr_slots_new(size_t n);
void wr_slots_clear(struct wr_slots *slots); /* for the next child */
void wr_slots_free(struct wr_slots *slots);

#endif
