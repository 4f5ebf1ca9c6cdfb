/*
 * script/offers.h - what the tests of offers say.
 *
 *     offers_none_waits();
 *     offers_stand("w", "3");
 *     rig_put("A");
 *     assert_string_equal(offers_pop(), "3 w A");
 */
#ifndef SCRIPT_OFFERS_H
#define SCRIPT_OFFERS_H

#include "script/rig.h"

#define OFFERS_LEASE 9000 /* of what is handed over */
#define OFFERS_WAIT 5000  /* so long an offer stands */

/* What the scripts take for the time. */
const char *offers_now(void);
/* A queue that had a job: a stream has its group. Nothing is in it now. */
void offers_none_waits(void);
/* The word that offer answers, for jobs of all types; it must be OK. */
const char *
offers_make(const char *worker, const char *call, const char *types, const char *keep);
void offers_stand(const char *worker, const char *call);
int offers_standing(void); /* how many, with those that are void */
const char *offers_withdraw(const char *worker, const char *call);
/* The call itself. */
const struct rig_taken *offers_call(const char *worker, int64_t call);

/* The marker, as a worker gets it by BLPOP: "CALL WORKER ID"; "1": an ordinary one; "-":
 * none. What it brings must be what is stored; the rig knows its token then. */
const char *offers_pop(void);
void offers_drop_marker(void);

/* In a queue where none waits, to w as its call 3; nobody has the marker yet. */
void offers_hand_unheard(const char *id);
/* To this worker, which has heard of it. */
void offers_hand(const char *worker, const char *id);
void offers_hand_job(const char *worker, struct rig_job job);

#endif
