/* What a command is told of the attempt before its own (WEIR_LAST_ERROR). A retry that
 * takes a call more is no matter: each starts a process. */
#include <stdio.h>
#include <string.h>

#include "redis/reply.h"
#include "worker/io.h"

/* The text of the newest line that tells of a failure. */
static void
take_last(struct wr_span errors, char *out, size_t out_len)
{
    struct wr_attempt a;

    while (wr_attempt_read(&errors, &a)) {
        if (a.text.len > 0)
            snprintf(out, out_len, "%.*s", (int)a.text.len, (const char *)a.text.ptr);
    }
}

void
wr_io_recall(struct wr_io *io, struct wr_run *list)
{
    for (struct wr_run *run = list; run; run = run->next) {
        struct wr_reply *reply = NULL;
        enum weir_err rc;

        if (run->d.state.attempts == 0 || !run->handler || run->handler->ops->in_process)
            continue;
        rc = wr_store_inspect(io->store, run->queue, wr_span_str(run->d.id), 0, &reply,
                              NULL);
        if (rc == WEIR_OK)
            take_last(wr_reply_span(wr_reply_at(reply, 9)), run->d.last_error,
                      sizeof(run->d.last_error));
        wr_reply_free(reply);
        if (rc != WEIR_OK && rc != WEIR_E_NO_JOB)
            return; /* Redis has other troubles now: they start without it */
    }
}
