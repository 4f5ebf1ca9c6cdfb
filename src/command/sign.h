/*
 * command/sign.h - signatures of command jobs. sign.c is the door to libcrypto: no other
 * file includes it.
 *
 * A key file has a key a line, of 16 bytes or more as they stand; blank lines and lines
 * that begin with # are ignored. The first key signs, each of them verifies, so that a
 * new key can be put in front of the old one on one machine after the other. Nobody but
 * its owner and group may read it.
 */
#ifndef WR_COMMAND_SIGN_H
#define WR_COMMAND_SIGN_H

#include <stdbool.h>

#include <weir/error.h>

#include "command/command.h"

struct wr_keys;

/* E_CONFIG: it cannot be read, is open to everybody, or holds no key. */
enum weir_err wr_keys_read(const char *path, struct wr_keys **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
void wr_keys_free(struct wr_keys *keys); /* wipes; NULL is allowed */

/* The signature of what wr_command_write() wrote. False: no memory. */
bool wr_command_sign(const struct wr_keys *keys, const char *queue, const char *id,
                     struct wr_span written, char out[WR_COMMAND_SIGN_LEN + 1]);
/* NULL, or why it is not good: there is none, it is wrong, or over. */
const char *
wr_command_verify(const struct wr_keys *keys, const char *queue, const char *id,
                  const struct wr_command *command, int64_t now_ms);

#endif
