#include "cli/cron_spec.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/config.h"
#include "cli/payload.h"
#include "model/entry.h"
#include "model/retry.h"

#define KEEP_DEFAULT_MS 86400000 /* as cli_job_make() has it */

const struct cli_opt cli_cron_parts[] = {CLI_CRON_OPTIONS, CLI_CRON_PARTS, {0}};

void
cli_cron_spec_init(struct cli_cron_spec *spec)
{
    const int64_t unset = CLI_UNSET;

    *spec = (struct cli_cron_spec){0};
    spec->job.in = spec->job.at = spec->job.debounce = unset;
    for (const struct cli_opt *o = cli_cron_parts; o->name; o++) {
        if (o->type == CLI_COUNT || o->type == CLI_DURATION)
            memcpy((char *)spec + o->field, &unset, sizeof(unset));
    }
}

/* ---- an entry ---- */

static enum weir_err
read_word(const char *flag, const char *text, const char *const *words, int *out,
          struct weir_error *err)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return WEIR_OK;
        }
    }
    return wr_fail(err, WEIR_E_ARG, 0, "%s: \"%.40s\" is none of %s", flag, text,
                   words == wr_missed_words ? "once, skip, all"
                                            : "allow, skip, queue, replace");
}

static enum weir_err
take_policies(const struct cli_cron_spec *s, struct weir_cron *e, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;
    int word = 0;

    if (s->missed) {
        rc = read_word("missed", s->missed, wr_missed_words, &word, err);
        if (rc == WEIR_OK)
            e->missed = (enum weir_missed)word;
    }
    if (rc == WEIR_OK && s->overlap) {
        rc = read_word("overlap", s->overlap, wr_overlap_words, &word, err);
        if (rc == WEIR_OK)
            e->overlap = (enum weir_overlap)word;
    }
    if (rc != WEIR_OK)
        return rc;
    if (s->cap != CLI_UNSET && (s->cap < 1 || s->cap > WR_CAP_MAX))
        return wr_fail(err, WEIR_E_ARG, 0, "cap: from 1 to %d", WR_CAP_MAX);
    if (s->cap != CLI_UNSET)
        e->missed_cap = s->cap;
    if (s->grace != CLI_UNSET)
        e->grace_ms = s->grace == 0 ? WEIR_NONE : s->grace;
    if (s->jitter != CLI_UNSET)
        e->jitter_ms = s->jitter;
    return WEIR_OK;
}

/* What was given of the job, over what was there. */
static void
merge_job(const struct cli_job_spec *s, const struct weir_job *given,
          struct weir_job *job)
{
    if (s->retry != CLI_UNSET)
        job->max_retry = given->max_retry;
    if (s->backoff)
        job->backoff = given->backoff;
    if (s->max_deliveries != CLI_UNSET)
        job->max_deliveries = given->max_deliveries;
    if (s->timeout != CLI_UNSET)
        job->timeout_ms = given->timeout_ms;
    if (s->kill_after != CLI_UNSET)
        job->kill_after_ms = given->kill_after_ms;
    if (s->keep_result != CLI_UNSET)
        job->keep_result_ms = given->keep_result_ms;
    if (s->keep_progress != CLI_UNSET)
        job->keep_progress_ms = given->keep_progress_ms;
    if (s->expires)
        job->expires_ms = given->expires_ms;
    if (s->unique) {
        job->unique = given->unique;
        job->unique_window_ms = given->unique_window_ms;
    }
    if (s->unique_states)
        job->unique_states = given->unique_states;
    if (s->key)
        job->order_key = given->order_key;
    if (s->then) {
        job->then = given->then;
        job->then_count = given->then_count;
    }
    if (s->meta.n > 0) {
        job->meta = given->meta;
        job->meta_count = given->meta_count;
    }
}

/* What `weir cron edit --unset` names: all but what an entry cannot be without. */
/* clang-format off */
#define JOB(name, member) {name, true, offsetof(struct weir_job, member), sizeof(((struct weir_job *)0)->member)}
#define ENTRY(name, member) {name, false, offsetof(struct weir_cron, member), sizeof(((struct weir_cron *)0)->member)}
static const struct {
    const char *name;
    bool of_job;
    size_t field, size;
} parts[] = {
    ENTRY("tz", zone), ENTRY("missed", missed), ENTRY("cap", missed_cap),
    ENTRY("grace", grace_ms), ENTRY("overlap", overlap), ENTRY("jitter", jitter_ms),
    JOB("retry", max_retry), JOB("backoff", backoff), JOB("max-deliveries", max_deliveries),
    JOB("timeout", timeout_ms), JOB("kill-after", kill_after_ms),
    JOB("keep-result", keep_result_ms), JOB("keep-progress", keep_progress_ms),
    JOB("expires", expires_ms), JOB("unique", unique), JOB("unique", unique_window_ms),
    JOB("unique", unique_states), JOB("unique-states", unique_states),
    JOB("key", order_key), JOB("then", then), JOB("then", then_count), JOB("meta", meta),
    JOB("meta", meta_count), JOB("payload", payload), JOB("payload", payload_len),
};
#undef JOB
#undef ENTRY
/* clang-format on */

static enum weir_err
unset(const struct cli_list *names, struct weir_cron *entry, struct weir_job *job,
      struct weir_error *err)
{
    for (size_t i = 0; i < names->n; i++) {
        bool known = false;

        for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
            char *of = parts[p].of_job ? (char *)job : (char *)entry;

            if (strcmp(parts[p].name, names->items[i]) != 0)
                continue;
            memset(of + parts[p].field, 0, parts[p].size);
            known = true;
        }
        if (!known)
            return wr_fail(err, WEIR_E_ARG, 0,
                           "unset: \"%.40s\" is no flag of weir cron add that has a "
                           "default",
                           names->items[i]);
        if (strcmp(names->items[i], "keep-result") == 0)
            job->keep_result_ms = KEEP_DEFAULT_MS;
    }
    return WEIR_OK;
}

static enum weir_err
make_job(struct cli *cli, const struct cli_cron_spec *s, bool base, struct cli_cron *out,
         struct weir_error *err)
{
    struct cli_job_spec job = s->job;
    int64_t max_retry = CLI_UNSET, ms;
    enum weir_err rc = cli_setting_number(cli->settings, CLI_SET_MAX_RETRY, &max_retry,
                                          err);

    job.in = job.at = job.debounce = CLI_UNSET; /* no flags of ours */
    /* Nobody said it: the queue's setting goes before ours. */
    if (rc == WEIR_OK &&
        strcmp(cli_setting_origin(cli->settings, CLI_SET_MAX_RETRY), "built in") == 0)
        max_retry = CLI_UNSET;
    if (rc == WEIR_OK && s->job.expires && !wr_text_duration(s->job.expires, &ms))
        rc = wr_fail(err, WEIR_E_ARG, 0, "expires: \"%.60s\" is no duration",
                     s->job.expires);
    if (rc == WEIR_OK)
        rc = cli_job_make(&job, max_retry, &out->made, err);
    if (rc != WEIR_OK)
        return rc;
    if (!base)
        out->job = out->made.job;
    else
        merge_job(&s->job, &out->made.job, &out->job);
    out->job.queue = NULL;
    if (s->type)
        out->job.type = s->type;
    if (!out->job.type || !wr_text_is_type(wr_span_str(out->job.type)))
        return wr_fail(err, WEIR_E_ARG, 0, "type: 1 to 128 bytes, no control characters");
    if (!s->payload)
        return WEIR_OK;
    rc = cli_payload_read(s->payload, &out->payload, err);
    out->job.payload = wr_buf_span(&out->payload).ptr;
    out->job.payload_len = out->payload.len;
    return rc;
}

enum weir_err
cli_cron_make(struct cli *cli, const struct cli_cron_spec *s, const char *name,
              const struct weir_cron *base, struct cli_cron *out, struct weir_error *err)
{
    size_t count;
    enum weir_err rc;

    *out = (struct cli_cron){.entry = {WEIR_CRON_INIT}};
    if (!wr_entry_is_name(wr_span_str(name)))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "cron entry: a name of 1 to %d bytes, no control characters",
                       WR_ENTRY_NAME_MAX);
    if (base)
        out->entry = *base;
    out->entry.name = name;
    if (!base)
        out->entry.queue = s->job.queue ? s->job.queue : "default";
    if (base)
        out->job = *base->job;
    rc = unset(&s->unset, &out->entry, &out->job, err);
    if (rc != WEIR_OK)
        return rc;
    if (s->schedule)
        out->entry.schedule = s->schedule;
    if (s->tz)
        out->entry.zone = s->tz;
    if (!out->entry.schedule)
        return wr_fail(err, WEIR_E_ARG, 0, "schedule: missing");
    rc = take_policies(s, &out->entry, err);
    if (rc == WEIR_OK)
        rc = weir_cron_next(out->entry.schedule, out->entry.zone, 0, NULL, 0, &count,
                            NULL, 0, err);
    if (rc == WEIR_OK)
        rc = make_job(cli, s, base != NULL, out, err);
    out->entry.job = &out->job;
    return rc;
}

void
cli_cron_fini(struct cli_cron *cron)
{
    cli_job_fini(&cron->made);
    wr_buf_fini(&cron->payload);
    *cron = (struct cli_cron){0};
}

/* ---- as lines ---- */

static void
add_text(struct wr_buf *out, const char *name, struct wr_span value)
{
    wr_buf_addf(out, "%s = ", name);
    wr_text_escape(out, value);
    wr_buf_add_str(out, "\n");
}

/* Unless it is the default. Exact, and as it may be written. */
static void
add_duration(struct wr_buf *out, const char *name, int64_t ms, int64_t otherwise)
{
    ms = ms == WEIR_NONE ? 0 : ms == 0 ? otherwise : ms;
    if (ms == otherwise)
        return;
    if (ms % 1000 == 0)
        wr_buf_addf(out, "%s = %llds\n", name, (long long)(ms / 1000));
    else
        wr_buf_addf(out, "%s = %lldms\n", name, (long long)ms);
}

static void
add_count(struct wr_buf *out, const char *name, int64_t n, int64_t otherwise)
{
    n = n == WEIR_NONE ? 0 : n == 0 ? otherwise : n;
    if (n != otherwise)
        wr_buf_addf(out, "%s = %lld\n", name, (long long)n);
}

static void
add_unique(struct wr_buf *out, const struct weir_job *j)
{
    struct wr_buf text = {0};

    if (!j->unique)
        return;
    wr_buf_add_str(&text, j->unique);
    if (j->unique_window_ms > 0)
        wr_buf_addf(&text, ":%lldms", (long long)j->unique_window_ms);
    add_text(out, "unique", wr_buf_span(&text));
    if (j->unique_states)
        add_text(out, "unique-states", wr_span_str(j->unique_states));
    wr_buf_fini(&text);
}

/* "thumb@images,mail@images": each with its queue, as it is stored. */
static void
add_then(struct wr_buf *out, const char *queue, const struct weir_job *j)
{
    struct wr_buf text = {0};

    for (size_t i = 0; i < j->then_count; i++)
        wr_buf_addf(&text, "%s%s@%s", i > 0 ? "," : "", j->then[i].type,
                    j->then[i].queue ? j->then[i].queue : queue);
    if (j->then_count > 0)
        add_text(out, "then", wr_buf_span(&text));
    wr_buf_fini(&text);
}

static void
render_job(const char *queue, const struct weir_job *j, struct wr_buf *out)
{
    if (j->max_retry != 0) /* else it is the queue's default */
        wr_buf_addf(out, "retry = %lld\n",
                    (long long)(j->max_retry == WEIR_NONE ? 0 : j->max_retry));
    if (j->backoff && *j->backoff)
        add_text(out, "backoff", wr_span_str(j->backoff));
    add_count(out, "max-deliveries", j->max_deliveries, WR_DELIVERIES_DEFAULT);
    add_duration(out, "timeout", j->timeout_ms, WR_TIMEOUT_DEFAULT_MS);
    add_duration(out, "kill-after", j->kill_after_ms, WR_KILL_AFTER_DEFAULT_MS);
    if (j->keep_result_ms == 0)
        wr_buf_add_str(out, "keep-result = 0s\n");
    add_duration(out, "keep-result", j->keep_result_ms, KEEP_DEFAULT_MS);
    if (j->keep_progress_ms == WEIR_NONE)
        wr_buf_add_str(out, "keep-progress = 0s\n");
    else
        add_duration(out, "keep-progress", j->keep_progress_ms, 0);
    add_duration(out, "expires", j->expires_ms, 0);
    add_unique(out, j);
    if (j->order_key) {
        add_text(out, "key", wr_span_str(j->order_key));
        wr_buf_add_str(out, "ordered = true\n");
    }
    add_then(out, queue, j);
    for (size_t i = 0; i < j->meta_count; i++) {
        struct wr_buf text = {0};

        wr_buf_addf(&text, "%s=%s", j->meta[i].name, j->meta[i].value);
        add_text(out, "meta", wr_buf_span(&text));
        wr_buf_fini(&text);
    }
}

void
cli_cron_render(const struct weir_cron *e, struct wr_buf *out)
{
    const struct weir_job *j = e->job;

    add_text(out, "schedule", wr_span_str(e->schedule));
    add_text(out, "tz", wr_span_str(e->zone ? e->zone : "UTC"));
    add_text(out, "queue", wr_span_str(e->queue));
    add_text(out, "type", wr_span_str(j->type));
    if (j->payload_len > 0)
        add_text(out, "payload", (struct wr_span){j->payload, j->payload_len});
    if (e->missed != WEIR_MISSED_ONCE)
        add_text(out, "missed", wr_span_str(wr_missed_words[e->missed]));
    add_count(out, "cap", e->missed_cap, WR_CAP_DEFAULT);
    add_duration(out, "grace", e->grace_ms, WR_GRACE_DEFAULT_MS);
    if (e->overlap != WEIR_OVERLAP_ALLOW)
        add_text(out, "overlap", wr_span_str(wr_overlap_words[e->overlap]));
    add_duration(out, "jitter", e->jitter_ms, 0);
    render_job(e->queue, j, out);
    if (out->failed)
        cli_out_of_memory();
}
