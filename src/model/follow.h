/*
 * model/follow.h - follow-up jobs, as they wait in the outbox of the queue whose job
 * asked for them.
 *
 * A text begins with the name of a channel (32 hex digits and a newline), under which
 * they are enqueued, so that doing it twice does no harm. Then, for each job: six lengths
 * in decimal, blanks between, a newline, and the bytes of queue, id, head, tail, unique
 * and due (see store/store.h, struct wr_admit), and a newline.
 */
#ifndef WR_MODEL_FOLLOW_H
#define WR_MODEL_FOLLOW_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

#define WR_FOLLOW_MAX 100           /* of one job */
#define WR_FOLLOW_BYTES_MAX 1048576 /* of all of them */
#define WR_FOLLOW_CHANNEL_LEN 32

struct wr_follow {
    struct wr_span queue, id, head, tail, unique, due;
};

/* What no other delivery has: of the job whose success they follow. out: NUL-ended. */
void wr_follow_channel(const char *queue, const char *id, const char *token,
                       char out[WR_FOLLOW_CHANNEL_LEN + 1]);
/* The id of the n-th follow-up that was given none: 20 characters. */
void wr_follow_id(const char *channel, size_t n, char out[21]);

void wr_follow_begin(struct wr_buf *out, const char *channel);
void wr_follow_write(struct wr_buf *out, const struct wr_follow *follow);

/* Takes the channel off *text; false if it has none. */
bool wr_follow_open(struct wr_span *text, struct wr_span *channel);
/* The next one, its spans point into the text. False at the end, and with text->len > 0
 * when what is left makes no sense. */
bool wr_follow_next(struct wr_span *text, struct wr_follow *out);

/*
 * The option `then` of a record: "TYPE=QUEUE TYPE=QUEUE", each part encoded as a word.
 * The first follows the success of the job, with its result as payload, and gets the
 * rest.
 */
#define WR_THEN_MAX 16

void wr_then_add(struct wr_buf *out, struct wr_span type, struct wr_span queue);
/* Takes the first off *then and appends its parts, decoded. False: there is none, or it
 * cannot be read. */
bool wr_then_take(struct wr_span *then, struct wr_buf *type, struct wr_buf *queue);

#endif
