#include "store/call.h"
#include "store/scripts.gen.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"

/* In the order of the enum. */
static const char *const words[] = {"DONE",  "RUNS",    "COPIED", "AGAIN",
                                    "SWEPT", "RESUMED", "FULL"};

enum weir_err
wr_store_migrate(struct wr_store *store, struct wr_queue *queue, const char *to,
                 const char *who, size_t limit, struct wr_migrated *out,
                 struct weir_error *err)
{
    struct wr_buf by = {0};
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_migrated){0};
    wr_text_given_word_encode(&by, wr_span_str(who));
    wr_call_init(&c, store, queue, wr_pair_migrate);
    wr_call_now(&c);
    wr_call_str(&c, to);
    wr_call_arg(&c, by.len > 0 ? wr_buf_span(&by) : wr_span_str("-"));
    wr_call_int(&c, (int64_t)limit);
    wr_call_int(&c, WR_BATCH_BYTES);
    rc = wr_call_run(&c, err);
    for (size_t i = 0; rc == WEIR_OK && i < sizeof(words) / sizeof(*words); i++) {
        if (wr_call_is(&c, words[i]))
            out->word = (enum wr_migrate_word)i;
    }
    if (rc == WEIR_OK) {
        out->n = wr_reply_int(wr_reply_at(c.reply, 1));
        out->copied = wr_reply_int(wr_reply_at(c.reply, 2));
    }
    wr_call_fini(&c);
    wr_buf_fini(&by);
    return rc;
}
