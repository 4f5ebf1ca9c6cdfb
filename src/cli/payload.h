/* cli/payload.h - payloads from the command line, and the line about a job queued. */
#ifndef WR_CLI_PAYLOAD_H
#define WR_CLI_PAYLOAD_H

#include "base/buf.h"
#include "cli/cli.h"

/* All of a stream; name is for the message. E_IO; E_TOO_BIG: over what any queue takes.
 */
enum weir_err cli_payload_stream(FILE *f, const char *name, struct wr_buf *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;
/* The same of a file, - is standard input. */
enum weir_err cli_payload_file(const char *path, struct wr_buf *out,
                               struct weir_error *err) WEIR_MUST_CHECK;
/* Text, @FILE, @@text for text that begins with @, - for stdin; NULL: none. */
enum weir_err cli_payload_read(const char *arg, struct wr_buf *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/* The id; on a terminal a line about it; or JSON. */
void cli_job_queued(struct cli *cli, const struct weir_job *job,
                    const struct weir_enqueued *answer);

#endif
