/*
 * model/output.h - what a job printed, as it is stored: records one behind the other.
 *
 *     e1250 10\nfirst line
 *
 * kind, ms since the run began, length, a newline, and so many bytes of anything. Kinds:
 *   e  a line with its newline
 *   p  a part of a line, without one
 *   a  "BYTES LINES": so much was printed before what follows
 * A reader puts the bytes of e and p together and has what the job printed; where it has
 * seen less than an `a` says, the difference was left out.
 */
#ifndef WR_MODEL_OUTPUT_H
#define WR_MODEL_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

enum wr_output_kind {
    WR_OUTPUT_LINE = 'e',
    WR_OUTPUT_PART = 'p',
    WR_OUTPUT_AT = 'a',
};

struct wr_output_record {
    enum wr_output_kind kind;
    int64_t ms;              /* since the run began */
    struct wr_span bytes;    /* LINE, PART */
    int64_t position, lines; /* AT: bytes and lines before it */
};

void wr_output_write(struct wr_buf *out, const struct wr_output_record *record);
/* Takes the first record off `from`; false when it is not whole, or no record at all
 * (*damaged: not by more bytes either). */
bool wr_output_read(struct wr_span *from, struct wr_output_record *out, bool *damaged);

#endif
