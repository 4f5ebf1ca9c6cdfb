/* model/unique.h - in which states a job holds its unique key. */
#ifndef WR_MODEL_UNIQUE_H
#define WR_MODEL_UNIQUE_H

#include <stdbool.h>

#include "base/buf.h"

/*
 * Reads "ready,delayed,dead", in any order; NULL or "" is the default, ready, delayed and
 * processing. False if ready or delayed is missing (a job that waits always holds its
 * key) or a word is unknown. Appends what a record says of it to out, which may be NULL:
 * always in the same order, nothing for the default.
 */
bool wr_unique_states_write(const char *spec, struct wr_buf *out);

#endif
