/*
 * client/prepare.h - a job, checked and written as the scripts take it; private to
 * client/.
 */
#ifndef WR_CLIENT_PREPARE_H
#define WR_CLIENT_PREPARE_H

#include <weir/client.h>

#include "base/buf.h"
#include "store/store.h"

/* A job made ready to be sent. The spans of `item` point into it. */
struct wr_prepared {
    struct weir_job_id id;
    struct wr_buf head, tail, meta, unique, states, then; /* unique: the line as well */
    char due[32];
    struct wr_admit item;
};

/* The job with the defaults in their places. Jobs of an older program are shorter: what
 * it does not know is 0. Its texts stay the caller's. */
void wr_known_job(const struct weir_job *given, struct weir_job *known);
/* May it take the place of another? Then it goes alone. Its defaults do not matter. */
bool wr_may_replace(const struct weir_job *job);
/* *p is {0} before, and given to fini in any case. E_ARG. */
enum weir_err wr_prepare(const struct weir_job *known, struct wr_prepared *p,
                         struct weir_error *err) WEIR_MUST_CHECK;
void wr_prepared_fini(struct wr_prepared *prepared);

#endif
