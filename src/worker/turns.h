/*
 * worker/turns.h - two threads share something, and one of them goes first: it waits at
 * most for the turn that the other has begun. Nobody holds a lock during a turn.
 */
#ifndef WR_WORKER_TURNS_H
#define WR_WORKER_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct wr_turns {
    pthread_mutex_t mu; /* guards the next line; taken alone */
    bool first, second; /* first: has it, or waits for it; second: has it */
    pthread_cond_t changed;
};

void wr_turns_init(struct wr_turns *t);
void wr_turns_fini(struct wr_turns *t);

/* ---- the one that goes first ---- */

/* From now on no turn of the other begins. True: none is under way any more; false: until
 * then one was, call again. */
bool wr_turns_claim(struct wr_turns *t, int64_t until_ms);
void wr_turns_leave(struct wr_turns *t);

/* ---- the other one ---- */

void wr_turns_take(struct wr_turns *t); /* waits while the first has it or wants it */
void wr_turns_give(struct wr_turns *t);

#endif
