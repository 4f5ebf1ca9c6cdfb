/*
 * command/command.h - a command job as it is stored: what `weir run` puts into the
 * payload of a job of type weir.exec.
 *
 *     weir-command/1
 *     sign hmac-sha256 5e0b...            (if it is signed)
 *     argv tar -cf - my%20folder
 *     env LANG=C PGHOST=db1               (if there is any)
 *     cwd /srv/data                       (if it is said)
 *     until 1796000000000                 (if it is signed)
 *
 *     standard input of the command, to the end of the payload
 *
 * Words are those of records: blanks, '%', '=' and control bytes are percent-encoded,
 * one blank stands between two of them, and a word may be empty. Lines come in this
 * order. A line that is not known is an error: it might be a bound.
 *
 * The signature is the HMAC-SHA256, with a line of the key file as the key, of the bytes
 *
 *     weir-command/1\n queue QUEUE\n id ID\n and all that follows the line `sign`
 *
 * where QUEUE and ID are words.
 */
#ifndef WR_COMMAND_COMMAND_H
#define WR_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

#define WR_COMMAND_TYPE "weir.exec"
#define WR_COMMAND_WORDS_MAX 65536 /* argv and env together */
#define WR_COMMAND_SIGN_LEN 64     /* hexadecimal digits */

struct wr_command {
    const char *const *argv, *const *env; /* NULL at the end; env: NAME=VALUE */
    size_t argc, envc;
    const char *cwd;                    /* NULL: not said */
    int64_t until_ms;                   /* wall clock; 0: not said */
    char sign[WR_COMMAND_SIGN_LEN + 1]; /* empty: not signed */
    struct wr_span signed_bytes; /* what follows the line `sign`; into the payload */
    struct wr_span input;        /* into the payload */
};

/* All of it but `sign`, without the first line: what a signature is made of. Unsigned it
 * is the payload behind its first line. input is not copied but appended. */
bool wr_command_write(const struct wr_command *command, struct wr_buf *out);
/* The payload, of what wr_command_write() wrote and a signature, or "". */
bool wr_command_finish(struct wr_span written, const char *sign, struct wr_buf *payload);
/* NULL, or what is wrong with the payload, in a few words. The payload must live as long
 * as *out. Free with wr_command_fini(), in either case; what
 * is written belongs to the caller. */
const char *wr_command_read(struct wr_span payload, struct wr_command *out);
void wr_command_fini(struct wr_command *command);

/* A name of a variable: letters, digits and _, no digit at its beginning. */
bool wr_command_is_name(const char *text, size_t len);

#endif
