/*
 * cron/zone.h - what the clocks on the wall show, zone by zone.
 *
 * Reads the compiled time zone files of the system (TZif, RFC 9636): 64-bit data of
 * version 2 and later, and the rule in their last line for times after the table. A zone
 * is read once and never changes; any thread may use it. "UTC" needs no file.
 *
 * A zone is never replaced by another: what cannot be read is an error.
 */
#ifndef WR_CRON_ZONE_H
#define WR_CRON_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "cron/rule.h"

#define WR_ZONE_NAME_MAX 64
#define WR_ZONE_FILE_MAX (256 * 1024)
#define WR_ZONE_DIR "/usr/share/zoneinfo"

struct wr_zone;

/* A stretch of time in which the clocks keep one offset: [from, until), in s since 1970.
 * INT64_MIN and INT64_MAX stand for "always". Local time = time + offset. */
struct wr_zone_span {
    int64_t from, until;
    int32_t offset;
};

/* Words of letters, digits, '_', '+', '-', '.' with '/' between; none begins with a '.'.
 */
bool wr_zone_is_name(const char *name);

/*
 * Reads zone `name` from $TZDIR or WR_ZONE_DIR. Free with wr_zone_free().
 * E_DATA     no such zone, or no zone's name
 * E_CONFIG   there are no zone files on this machine, or this one cannot be read
 */
enum weir_err wr_zone_open(const char *name, struct wr_zone **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/* The same from the bytes of a file. E_DATA: they are no TZif file that can be used. */
enum weir_err wr_zone_read(const void *bytes, size_t len, struct wr_zone **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
void wr_zone_free(struct wr_zone *zone); /* NULL is allowed */

/* The span that holds second t. Neighbours may have the same offset. */
struct wr_zone_span wr_zone_at(const struct wr_zone *zone, int64_t t);

#endif
