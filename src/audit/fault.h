/*
 * audit/fault.h - what is wrong with an id, judged by where it was seen to stand in one
 * step: the letters of lua/common/locate.lua.
 */
#ifndef WR_AUDIT_FAULT_H
#define WR_AUDIT_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/* What the letters are judged against. */
struct wr_found {
    bool in_stream; /* the queue's engine */
    bool moving;    /* to another engine: records are copied */
};

/* The kind of the finding; NULL: nothing is wrong. scanned: the letters say as well where
 * in ready it stands; without that what comes of a list is only a suspicion. */
const char *wr_fault(const struct wr_found *q, struct wr_span letters, bool scanned);
/* Is there a job at all? */
bool wr_fault_is_job(const struct wr_found *q, struct wr_span letters);
/* Of an id without a record that stands in results, errors or log; NULL: in none. */
const char *wr_fault_orphan(const char *name);
/* How many of the letters are among these? */
size_t wr_fault_count(struct wr_span letters, const char *which);

#endif
