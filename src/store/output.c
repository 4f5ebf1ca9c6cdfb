/* What jobs print: stored by their workers, read by anybody. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/call.h"
#include "store/scripts.gen.h"

/* Of each run; and of a queue, unless its config says otherwise. docs/keys.md */
#define HEAD_MAX 16384
#define TAIL_MAX 49152
#define PIECE_MAX 4096
#define RUNS_MAX 4

static const char *const logged_words[] = {"OK", "STALE", "GONE", NULL};

static enum weir_err
read_words(const struct wr_call *c, enum wr_logged *out, size_t n, struct weir_error *err)
{
    for (size_t i = 1; i + 1 < wr_reply_len(c->reply); i += 2) {
        int64_t at = wr_reply_int(wr_reply_at(c->reply, i));
        int word = wr_call_word(c, i + 1, logged_words);

        if (at < 0 || (size_t)at >= n || word < 0)
            return wr_fail(err, WEIR_E_CORRUPT, 0, "%s: odd note", c->script->name);
        out[at] = (enum wr_logged)word;
    }
    return WEIR_OK;
}

enum weir_err
wr_store_log(struct wr_store *store, struct wr_queue *queue, const char *worker,
             const struct wr_log_part *parts, size_t n, enum wr_logged *out,
             struct weir_error *err)
{
    char(*numbers)[24] = calloc(n > 0 ? n : 1, sizeof(*numbers));
    struct wr_call c;
    enum weir_err rc;

    if (!numbers)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "log");
    memset(out, 0, n * sizeof(*out)); /* WR_LOGGED_OK */
    wr_call_init(&c, store, queue, wr_pair_log);
    wr_call_str(&c, worker);
    wr_call_int(&c, HEAD_MAX);
    wr_call_int(&c, TAIL_MAX);
    wr_call_int(&c, PIECE_MAX);
    wr_call_int(&c, RUNS_MAX);
    wr_call_int(&c, WR_LOG_MAX_BYTES);
    for (size_t i = 0; i < n; i++) {
        snprintf(numbers[i], sizeof(numbers[i]), "%lld", (long long)parts[i].at);
        wr_call_arg(&c, parts[i].id);
        wr_call_arg(&c, parts[i].token);
        wr_call_str(&c, numbers[i]);
        wr_call_str(&c, parts[i].last ? "1" : "0");
        wr_call_arg(&c, parts[i].bytes);
    }
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK)
        rc = read_words(&c, out, n, err);
    wr_call_fini(&c);
    free(numbers);
    return rc;
}

enum weir_err
wr_store_output(struct wr_store *store, struct wr_queue *queue, struct wr_span id,
                int64_t number, int64_t offset, size_t bytes_max, struct wr_reply **out,
                struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *out = NULL;
    wr_call_init(&c, store, queue, wr_pair_output);
    wr_call_arg(&c, id);
    if (number > 0)
        wr_call_int(&c, number);
    else
        wr_call_str(&c, "");
    wr_call_int(&c, offset);
    wr_call_int(&c, (int64_t)bytes_max);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK && wr_call_is(&c, "GONE"))
        rc = wr_fail(err, WEIR_E_NO_JOB, 0, "no job %.*s", (int)id.len,
                     (const char *)id.ptr);
    if (rc == WEIR_OK) {
        *out = c.reply;
        c.reply = NULL;
    }
    wr_call_fini(&c);
    return rc;
}
