/*
 * cli/control.h - the way from inside a job to its worker: lines of weir-exec(7).
 *
 * The pipe that WEIR_CONTROL_FD names, or, where a program has closed it (Python's
 * subprocess does), the datagram socket WEIR_CONTROL_SOCKET. No Redis is needed.
 */
#ifndef WR_CLI_CONTROL_H
#define WR_CLI_CONTROL_H

#include <weir/error.h>

#include "base/buf.h"

#define CLI_CONTROL_LINE_MAX 4096 /* with its newline */

/* Sends `text` (no newline at its end) in one piece: newlines in it become blanks, and
 * it is cut, never within a character. E_ARG: not inside a job. E_IO: the worker is gone.
 */
enum weir_err
cli_control_send(const struct wr_buf *text, struct weir_error *err) WEIR_MUST_CHECK;
/* E_ARG, as above, without sending anything. */
enum weir_err cli_control_check(struct weir_error *err) WEIR_MUST_CHECK;

#endif
