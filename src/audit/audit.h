/*
 * audit/audit.h - the conservation sums: read them, prove them.
 */
#ifndef WR_AUDIT_AUDIT_H
#define WR_AUDIT_AUDIT_H

#include <weir/client.h>

#include "store/store.h"

/* Reads the reply of the audit script and computes the sums. */
enum weir_err wr_audit_read(const struct wr_reply *reply, struct weir_audit *out,
                            struct weir_error *err) WEIR_MUST_CHECK;
/* See weir_queue_audit_deep(). */
enum weir_err
wr_audit_deep(struct wr_store *store, struct wr_queue *queue, weir_finding_fn each,
              void *context, size_t *findings, struct weir_error *err) WEIR_MUST_CHECK;
/* See weir_queue_repair(). */
enum weir_err
wr_audit_repair(struct wr_store *store, struct wr_queue *queue, weir_finding_fn each,
                void *context, struct weir_repair *out,
                struct weir_error *err) WEIR_MUST_CHECK;

#endif
