/*
 * redis/url.h - where the server is and how to log in.
 *
 * redis:// rediss:// valkey:// valkeys:// [user[:password]@]host[:port][/db]
 * unix:///path?db=N        also redis+sentinel:// and redis+cluster://, which are
 * recognised and refused with a clear line until weir speaks them.
 */
#ifndef WR_REDIS_URL_H
#define WR_REDIS_URL_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/error.h>

struct wr_url {
    bool is_unix, use_tls;
    char host[256]; /* or the path of the socket (at most 107 bytes) */
    int port;
    char user[128], password[512]; /* percent-decoded; empty: none */
    int db;
};

/* Fills *out. E_ARG with a text that never contains the password. */
enum weir_err wr_url_parse(const char *text, struct wr_url *out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/* "redis://app:***@host:6379/0": for people; out_len >= 420. */
void wr_url_show(const struct wr_url *url, char *out, size_t out_len);
void wr_url_wipe(struct wr_url *url); /* overwrites the secret */

#endif
