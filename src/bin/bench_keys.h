/* bin/bench_keys.h - what weir bench leaves behind: nothing. */
#ifndef WR_BIN_BENCH_KEYS_H
#define WR_BIN_BENCH_KEYS_H

#include <weir/error.h>

#include "redis/url.h"

/* Deletes every key of a namespace that nobody uses any more: letters, digits and dashes,
 * long and random enough to be nobody else's. Looks at all keys of the database. */
enum weir_err bench_delete_keys(const struct wr_url *url, const char *ns,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
