/*
 * model/progress.h - how far a job is, as it is stored in its state.
 *
 *     40 stage=resizing 3 of 12 files
 *
 * Percent or "-", a blank, the stage if there is one (encoded as a word), the message.
 */
#ifndef WR_MODEL_PROGRESS_H
#define WR_MODEL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

#define WR_STAGE_MAX 64
#define WR_PROGRESS_TEXT_MAX 200

struct wr_progress {
    int percent; /* 0 to 100; -1: not said */
    struct wr_buf stage, message;
};

/* Appends it; stage and message may be empty, are escaped, and cut where they are too
 * long. */
void wr_progress_write(int percent, struct wr_span stage, struct wr_span message,
                       struct wr_buf *out);
/* What is not of this form is all message. The buffers are cleared first; free them with
 * wr_progress_fini(). */
void wr_progress_read(struct wr_span text, struct wr_progress *out);
void wr_progress_fini(struct wr_progress *progress);

/* What a state holds, without the "keep=MS " that may stand before it: how long it is
 * kept after the job's end. */
struct wr_span wr_progress_text(struct wr_span stored);

/* Of a job that is over, as it stands in the hash `progress`: "until ended word text". */
struct wr_progress_over {
    int64_t until_ms, ended_at_ms;
    struct wr_span word, text; /* "done" or "cancelled"; both point into what was read */
};
bool wr_progress_over_read(struct wr_span stored, struct wr_progress_over *out);

#endif
