/* What holds for a queue: limits of its dead jobs and of what jobs print, how its jobs
 * are retried. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "client/client_internal.h"
#include "model/retry.h"

#define PAIRS_MAX 7

struct pairs {
    struct wr_span words[2 * PAIRS_MAX];
    char numbers[PAIRS_MAX][24];
    size_t n;
};

static void
add_pair(struct pairs *p, const char *name, struct wr_span value)
{
    p->words[2 * p->n] = wr_span_str(name);
    p->words[2 * p->n + 1] = value;
    p->n++;
}

static enum weir_err
add_limit(struct pairs *p, const char *name, int64_t value, int64_t max,
          struct weir_error *err)
{
    if (value == 0)
        return WEIR_OK;
    if (value < WEIR_DEFAULT || value > max)
        return wr_fail(err, WEIR_E_ARG, 0, "%s: from 1 to %lld, or none", name,
                       (long long)max);
    p->numbers[p->n][0] = '\0';
    if (value != WEIR_DEFAULT)
        snprintf(p->numbers[p->n], sizeof(p->numbers[0]), "%lld",
                 value == WEIR_NONE ? 0LL : (long long)value);
    add_pair(p, name, wr_span_str(p->numbers[p->n]));
    return WEIR_OK;
}

/* Settings of an older program are shorter; what it does not know stays as it is. */
static struct weir_queue_settings
known(const struct weir_queue_settings *given)
{
    struct weir_queue_settings s = {0};

    memcpy(&s, given, given->struct_size < sizeof(s) ? given->struct_size : sizeof(s));
    return s;
}

enum weir_err
weir_queue_configure(struct weir_client *c, const char *queue,
                     const struct weir_queue_settings *settings, struct weir_error *err)
{
    struct weir_queue_settings s = known(settings);
    struct pairs p = {.n = 0};
    struct wr_buf backoff = {0};
    struct wr_backoff read;
    struct weir_audit audit;
    struct wr_queue *q;
    enum weir_err rc = wr_client_queue(c, queue, &q, err);

    if (rc == WEIR_OK)
        rc = add_limit(&p, "dead_max", s.dead_max_jobs, 1000000000, err);
    if (rc == WEIR_OK)
        rc = add_limit(&p, "dead_age_max", s.dead_max_age_ms, WR_TIME_MAX_MS, err);
    if (rc == WEIR_OK)
        rc = add_limit(&p, "dead_bytes_max", s.dead_max_bytes, INT64_C(1) << 50, err);
    if (rc == WEIR_OK)
        rc = add_limit(&p, "log_bytes_max", s.log_max_bytes, INT64_C(1) << 50, err);
    if (rc == WEIR_OK)
        rc = add_limit(&p, "retry", s.max_retry, 1000000, err);
    if (rc == WEIR_OK)
        rc = add_limit(&p, "keep_progress", s.keep_progress_ms, WR_TIME_MAX_MS, err);
    if (rc == WEIR_OK && !wr_backoff_parse(s.backoff, &read))
        rc = wr_fail(err, WEIR_E_ARG, 0,
                     "backoff %.40s: not like exp:2s,1h, fixed:10s, linear:60s, "
                     "list:0s,60s or fixed:10s,25%%",
                     s.backoff);
    if (rc == WEIR_OK && s.backoff) {
        wr_text_word_encode(&backoff, wr_span_str(s.backoff));
        add_pair(&p, "backoff", wr_buf_span(&backoff));
    }
    if (rc == WEIR_OK)
        rc = weir_queue_audit(c, queue, &audit, err); /* E_NO_QUEUE */
    if (rc == WEIR_OK && p.n > 0)
        rc = wr_store_configure(c->store, q, p.words, p.n, err);
    wr_buf_fini(&backoff);
    return rc;
}
