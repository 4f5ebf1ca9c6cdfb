#include "audit/fault.h"

#include <string.h>

size_t
wr_fault_count(struct wr_span letters, const char *which)
{
    size_t n = 0;

    for (size_t i = 0; i < letters.len; i++)
        n += strchr(which, ((const char *)letters.ptr)[i]) != NULL;
    return n;
}

/* Lines of order keys: all but the first wait in delayed, parked. */
static const char *
order_fault(const struct wr_found *q, struct wr_span letters)
{
    bool parked = wr_fault_count(letters, "W") > 0,
         behind = wr_fault_count(letters, "O") > 0,
         lives = wr_fault_count(letters, q->in_stream ? "JRP" : "JP") > 0;

    if (wr_fault_count(letters, "OF") > 0 &&
        (!lives || wr_fault_count(letters, "XK") > 0))
        return "orphan_order";
    return parked && !behind ? "not_let_in" : behind && !parked ? "out_of_line" : NULL;
}

/* The same of a queue whose stream has its waiting and running jobs: their entries are
 * their records, and what stands in `jobs` belongs to those that are elsewhere. */
static const char *
stream_fault(struct wr_span letters)
{
    bool record = wr_fault_count(letters, "J") > 0;
    size_t entries = wr_fault_count(letters, "RP"),
           places = wr_fault_count(letters, "LXK");

    if (entries + places > 1)
        return "two_places";
    if (record && entries > 0)
        return "two_bodies";
    if (record && places == 0)
        return "no_place";
    if (!record && places > 0)
        return "no_body";
    if (entries + places == 0 && wr_fault_count(letters, "S") > 0)
        return "orphan_state";
    return NULL;
}

bool
wr_fault_is_job(const struct wr_found *q, struct wr_span letters)
{
    return wr_fault_count(letters, q->in_stream ? "JRP" : "J") > 0;
}

/* What is wrong with an id, given all its letters (with R scanned); NULL: nothing. A
 * tombstone's id may stand in ready without a record, and with one if it was enqueued
 * again with a delay. */
static const char *
list_fault(struct wr_span letters, bool scanned)
{
    bool record = wr_fault_count(letters, "J") > 0,
         tomb = wr_fault_count(letters, "T") > 0;
    size_t ready = wr_fault_count(letters, "R"), places = wr_fault_count(letters, "PLXK");

    if (!scanned) /* without R only a suspicion */
        return (record && places != 1) || (!record && letters.len > 0) ? "suspect" : NULL;
    if (tomb && ready != 1)
        return "orphan_tomb";
    if (tomb)
        ready = 0;
    if (ready + places > 1)
        return "two_places";
    if (record && ready + places == 0)
        return "no_place";
    if (!record && ready + places > 0)
        return "no_body";
    if (!record && wr_fault_count(letters, "S") > 0)
        return "orphan_state";
    return NULL;
}

const char *
wr_fault(const struct wr_found *q, struct wr_span letters, bool scanned)
{
    const char *kind = q->in_stream ? stream_fault(letters)
                                    : list_fault(letters, scanned);

    if (kind && q->moving &&
        (strcmp(kind, "no_place") == 0 || strcmp(kind, "two_bodies") == 0))
        return NULL;
    return kind ? kind : order_fault(q, letters);
}

const char *
wr_fault_orphan(const char *name)
{
    return strcmp(name, "errors") == 0    ? "orphan_error"
           : strcmp(name, "results") == 0 ? "orphan_result"
           : strcmp(name, "log") == 0     ? "orphan_log"
                                          : NULL;
}
