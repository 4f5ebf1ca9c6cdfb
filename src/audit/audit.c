#include "audit/audit.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "model/retry.h"

/* What the script says, and where it goes. */
/* clang-format off */
static const struct {
    const char *name;
    size_t field;
} numbers[] = {
#define NUMBER(name, member) {name, offsetof(struct weir_audit, member)}
#define COUNTER(member) NUMBER("stats." #member, member)
    NUMBER("now", now), NUMBER("ready", ready), NUMBER("delayed", delayed),
    NUMBER("processing", processing), NUMBER("dead", dead), NUMBER("kept", kept),
    NUMBER("jobs", jobs), NUMBER("bodies", bodies), NUMBER("overdue", overdue), NUMBER("parked", parked), NUMBER("stuck", stuck),
    NUMBER("config.payload_max", payload_max_bytes), NUMBER("config.kept_max", kept_max_jobs),
    NUMBER("config.kept_bytes_max", kept_max_bytes), NUMBER("config.dead_max", dead_max_jobs),
    NUMBER("config.dead_age_max", dead_max_age_ms),
    NUMBER("config.dead_bytes_max", dead_max_bytes),
    NUMBER("config.log_bytes_max", log_max_bytes), NUMBER("config.retry", max_retry),
    NUMBER("config.keep_progress", keep_progress_ms),
    NUMBER("next_due", next_due), NUMBER("oldest_ready", oldest_ready),
    NUMBER("heartbeat_promote", heartbeat_promote),
    NUMBER("heartbeat_reclaim", heartbeat_reclaim),
    COUNTER(enqueued), COUNTER(scheduled), COUNTER(promoted), COUNTER(released),
    COUNTER(reclaimed), COUNTER(reclaimed_delayed), COUNTER(replayed),
    COUNTER(deliveries), COUNTER(done), COUNTER(retried), COUNTER(buried),
    COUNTER(cancelled_ready), COUNTER(cancelled_delayed), COUNTER(cancelled_processing),
    COUNTER(expired_ready), COUNTER(expired_delayed), COUNTER(lost_body_ready),
    COUNTER(lost_body_delayed), COUNTER(purged), COUNTER(kept_in), COUNTER(forgotten),
    COUNTER(stale), COUNTER(replaced), COUNTER(skipped), COUNTER(tokens),
    COUNTER(kept_bytes), COUNTER(deferred), COUNTER(trimmed), COUNTER(dead_bytes),
    COUNTER(shelved), COUNTER(log_bytes), COUNTER(log_dropped),
#undef COUNTER
#undef NUMBER
};
/* clang-format on */

static void
take_number(struct weir_audit *a, struct wr_span name, int64_t value)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strlen(numbers[i].name) == name.len &&
            memcmp(numbers[i].name, name.ptr, name.len) == 0)
            memcpy((char *)a + numbers[i].field, &value, sizeof(value));
    }
}

static void
decode_word(struct wr_span word, char *out, size_t cap)
{
    struct wr_buf text = {0};

    if (word.len == 1 && memcmp(word.ptr, "-", 1) == 0)
        word.len = 0;
    if (wr_text_word_decode(&text, word))
        snprintf(out, cap, "%.*s", (int)text.len, (const char *)wr_buf_span(&text).ptr);
    wr_buf_fini(&text);
}

/* "ms who why" */
static void
take_paused(struct weir_audit *a, struct wr_span text)
{
    char copy[512], who[200] = "", why[300] = "";
    long long at = 0;

    snprintf(copy, sizeof(copy), "%.*s", (int)text.len, (const char *)text.ptr);
    a->paused = true;
    if (sscanf(copy, "%lld %199s %299s", &at, who, why) < 1)
        return;
    a->paused_at = at;
    decode_word(wr_span_str(who), a->paused_by, sizeof(a->paused_by));
    decode_word(wr_span_str(why), a->paused_why, sizeof(a->paused_why));
}

/* "TO WAS PHASE", and in a field of its own "BEGAN SEEN" */
static void
take_moving(struct weir_audit *a, struct wr_span text)
{
    char copy[64];

    snprintf(copy, sizeof(copy), "%.*s", (int)text.len, (const char *)text.ptr);
    if (sscanf(copy, "%15s", a->moving_to) != 1)
        a->moving_to[0] = '\0';
}

static void
take_moving_at(struct weir_audit *a, struct wr_span text)
{
    char copy[64];
    long long began = 0, seen = 0;

    snprintf(copy, sizeof(copy), "%.*s", (int)text.len, (const char *)text.ptr);
    if (sscanf(copy, "%lld %lld", &began, &seen) == 2) {
        a->moving_at = began;
        a->moving_step_at = seen;
    }
}

/* "ms type" */
static void
take_shelved(struct weir_audit *a, struct wr_span text)
{
    char copy[512], type[420] = "";
    long long at = 0;

    snprintf(copy, sizeof(copy), "%.*s", (int)text.len, (const char *)text.ptr);
    if (sscanf(copy, "%lld %419s", &at, type) < 1)
        return;
    a->shelved_at = at;
    decode_word(wr_span_str(type), a->shelved_type, sizeof(a->shelved_type));
}

static bool
is_name(struct wr_span name, const char *wanted)
{
    return name.len == strlen(wanted) && memcmp(name.ptr, wanted, name.len) == 0;
}

/* The equations, as docs/guarantees.md states them. */
static void
check_sums(struct weir_audit *a)
{
    a->cancelled = a->cancelled_ready + a->cancelled_delayed + a->cancelled_processing;
    a->expired = a->expired_ready + a->expired_delayed;
    a->gap = a->enqueued - (a->ready + a->delayed + a->processing + a->dead + a->done +
                            a->cancelled + a->expired + a->purged);
    a->gap_processing = a->deliveries -
                        (a->done + a->retried + a->buried + a->released + a->reclaimed +
                         a->reclaimed_delayed + a->cancelled_processing + a->processing);
    a->gap_ready = a->enqueued - a->scheduled + a->promoted + a->released + a->reclaimed +
                   a->replayed -
                   (a->deliveries + a->shelved + a->cancelled_ready + a->expired_ready +
                    a->lost_body_ready + a->deferred + a->ready);
    a->gap_delayed = a->scheduled + a->deferred + a->retried + a->reclaimed_delayed +
                     a->shelved -
                     (a->promoted + a->cancelled_delayed + a->expired_delayed +
                      a->lost_body_delayed + a->delayed);
    a->gap_dead = a->buried + a->lost_body_ready + a->lost_body_delayed -
                  (a->replayed + a->purged + a->dead);
    a->gap_kept = a->kept_in - (a->forgotten + a->kept);
    a->gap_bodies = a->jobs - a->bodies;
}

enum weir_err
wr_audit_read(const struct wr_reply *reply, struct weir_audit *out,
              struct weir_error *err)
{
    size_t n = wr_reply_len(reply);

    *out = (struct weir_audit){
        .payload_max_bytes = WR_PAYLOAD_MAX_BYTES,
        .kept_max_jobs = WR_KEPT_MAX_JOBS,
        .kept_max_bytes = WR_KEPT_MAX_BYTES,
        .dead_max_jobs = WR_DEAD_MAX_JOBS,
        .dead_max_age_ms = WR_DEAD_MAX_AGE_MS,
        .dead_max_bytes = WR_DEAD_MAX_BYTES,
        .log_max_bytes = WR_LOG_MAX_BYTES,
        .max_retry = WR_RETRY_DEFAULT,
        .backoff = "exp:2s,1h",
        .keep_progress_ms = -1,
    };
    if (n < 3)
        return wr_fail(err, WEIR_E_CORRUPT, 0, "audit: a reply of %zu words", n);
    for (size_t i = 1; i + 1 < n; i += 2) {
        struct wr_span name = wr_reply_span(wr_reply_at(reply, i));
        const struct wr_reply *value = wr_reply_at(reply, i + 1);

        if (is_name(name, "config.engine"))
            snprintf(out->engine, sizeof(out->engine), "%.*s",
                     (int)wr_reply_span(value).len,
                     (const char *)wr_reply_span(value).ptr);
        else if (is_name(name, "config.paused"))
            take_paused(out, wr_reply_span(value));
        else if (is_name(name, "config.moving"))
            take_moving(out, wr_reply_span(value));
        else if (is_name(name, "config.moving_at"))
            take_moving_at(out, wr_reply_span(value));
        else if (is_name(name, "config.backoff"))
            decode_word(wr_reply_span(value), out->backoff, sizeof(out->backoff));
        else if (is_name(name, "stats.shelved_last"))
            take_shelved(out, wr_reply_span(value));
        else
            take_number(out, name, wr_reply_int(value));
    }
    check_sums(out);
    return WEIR_OK;
}
