#include "bin/bench_keys.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "redis/conn.h"

#define ANSWER_MS 5000

static enum weir_err
unlink_all(struct wr_conn *c, const struct wr_reply *keys, struct weir_error *err)
{
    size_t n = wr_reply_len(keys);
    struct wr_span *words = cli_alloc((n + 1) * sizeof(*words));
    struct wr_reply *reply = NULL;
    enum weir_err rc = WEIR_OK;

    words[0] = wr_span_str("UNLINK");
    for (size_t i = 0; i < n; i++)
        words[1 + i] = wr_reply_span(wr_reply_at(keys, i));
    if (n > 0)
        rc = wr_conn_call(c, words, n + 1, wr_clock_ms() + ANSWER_MS, &reply, err);
    wr_reply_free(reply);
    free(words);
    return rc;
}

enum weir_err
bench_delete_keys(const struct wr_url *url, const char *ns, struct weir_error *err)
{
    struct wr_conn_options o = {.url = url};
    char pattern[100], cursor[32] = "0";
    struct wr_conn *c = NULL;
    enum weir_err rc = wr_conn_open(&o, wr_clock_ms() + ANSWER_MS, &c, err);

    snprintf(pattern, sizeof(pattern), "%s:*", ns);
    while (rc == WEIR_OK) {
        struct wr_reply *reply = NULL;

        rc = wr_conn_do(c, wr_clock_ms() + ANSWER_MS, &reply, err, "SCAN", cursor,
                        "MATCH", pattern, "COUNT", "1000", (char *)NULL);
        if (rc == WEIR_OK)
            rc = unlink_all(c, wr_reply_at(reply, 1), err);
        if (rc == WEIR_OK)
            wr_reply_copy(wr_reply_at(reply, 0), cursor, sizeof(cursor));
        wr_reply_free(reply);
        if (cursor[0] == '0' && cursor[1] == '\0')
            break;
    }
    wr_conn_close(c);
    return rc;
}
