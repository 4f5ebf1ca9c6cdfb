/*
 * audit/ids.h - sets of a walk: the ids of the ready list, and what was reported.
 */
#ifndef WR_AUDIT_IDS_H
#define WR_AUDIT_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* Sorted once all are in. */
struct wr_id_set {
    char **ids;
    size_t n, cap;
};

bool wr_id_set_add(struct wr_id_set *set, struct wr_span id); /* false: no memory */
void wr_id_set_sort(struct wr_id_set *set);
bool wr_id_set_has(const struct wr_id_set *set, struct wr_span id);
void wr_id_set_fini(struct wr_id_set *set);

/* Marks of 64 bits: few bytes also where a queue is broken a million times. */
struct wr_said {
    uint64_t *marks; /* 0: free */
    size_t n, cap;
};

/* Was that said of this id? If not, it is now. Without memory: it was not. */
bool wr_said_before(struct wr_said *said, const char *kind, struct wr_span id);
void wr_said_fini(struct wr_said *said);

#endif
