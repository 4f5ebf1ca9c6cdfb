/*
 * bin/bare_hops.h - the yardstick of weir bench: what two processes cannot go without
 * that hand something to each other by Redis, and nothing more.
 *
 * The second door to hiredis, beside redis/resp.h. A yardstick must not be made of what
 * it measures: if these loops went through our own connections, whatever made those
 * slower would make the bare hop slower too, and the ratio would hide it. So they are
 * what anybody would write with redisConnect() and redisCommand(), blocking.
 *
 * One process and one thread for each. hiredis writes without MSG_NOSIGNAL: the caller
 * ignores SIGPIPE.
 */
#ifndef WR_BIN_BARE_HOPS_H
#define WR_BIN_BARE_HOPS_H

#include <weir/error.h>

#include "redis/url.h"

struct bare;

/* Connects, and does what the URL says beside the place: AUTH, SELECT. */
enum weir_err bare_open(const struct wr_url *url, struct bare **out,
                        struct weir_error *err) WEIR_MUST_CHECK;
void bare_close(struct bare *bare); /* NULL is allowed */

/* One hop: LPUSH. */
enum weir_err
bare_push(struct bare *bare, const char *key, struct weir_error *err) WEIR_MUST_CHECK;
/* Two hops: LPUSH, and a BLPOP of what the other process sends back. E_TIMEOUT after
 * 5 s. */
enum weir_err bare_there_and_back(struct bare *bare, const char *there, const char *back,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/* The other process: they connect, and come back only when that breaks. */

/* BLPOP, PING, taken(), and again. */
enum weir_err bare_take(const struct wr_url *url, const char *key, void (*taken)(void),
                        struct weir_error *err) WEIR_MUST_CHECK;
/* What comes by one list goes back by the other. */
enum weir_err bare_return(const struct wr_url *url, const char *there, const char *back,
                          struct weir_error *err) WEIR_MUST_CHECK;

#endif
