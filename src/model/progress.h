/*
 * model/progress.h - how far a job is, as it is stored in its state.
 *
 *     40 stage=resizing 3 of 12 files
 *
 * Percent or "-", a blank, the stage if there is one (encoded as a word), the message.
 */
#ifndef WR_MODEL_PROGRESS_H
#define WR_MODEL_PROGRESS_H

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

#endif
