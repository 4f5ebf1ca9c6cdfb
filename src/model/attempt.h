/*
 * model/attempt.h - what became of a run: a line of the `errors` hash.
 *
 *     1796000000123 failed =n:2;worker:web-1.412.0a1b;exit:1;wall:204;err:61 exit 1: no
 *
 * ms, outcome, facts, text. Without facts it was no run (lost_body, no_handler), or it
 * was written by an older version. Facts are name:value or a name alone; those that a
 * reader does not know are passed over. Values hold no blanks and no semicolons.
 */
#ifndef WR_MODEL_ATTEMPT_H
#define WR_MODEL_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

#define WR_FACTS_MAX 300 /* the script cuts there */

struct wr_attempt {
    int64_t at_ms;
    struct wr_span outcome; /* failed, snoozed, attempts, permanent, released, lost... */
    int64_t number;         /* of the delivery; 0: this was no run */
    struct wr_span worker, text;

    int64_t wall_ms;         /* -1: not known */
    bool is_command;         /* the rest is valid */
    int exit_code;           /* -1: it was killed, or never started */
    int signal, start_errno; /* 0: none */
    int64_t pid, user_us, sys_us, max_rss_kib, bytes_in, bytes_out, bytes_err;
    bool out_cut, err_cut, core, out_of_memory;
};

/* Takes the first line off `from`; false when nothing is left. What cannot be read is
 * taken as text. */
bool wr_attempt_read(struct wr_span *from, struct wr_attempt *out);
/* Appends the facts that a worker knows: all but number and worker. */
void wr_attempt_write_facts(struct wr_buf *out, const struct wr_attempt *a);

#endif
