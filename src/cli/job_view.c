#include "cli/job_view.h"

#include <string.h>

#include "base/text.h"
#include "cli/attempt_view.h"
#include "cli/command_line.h"
#include "cli/json.h"
#include "cli/roster.h"
#include "model/retry.h"

#define PREVIEW_BYTES 100

/* The errors are lines "ms outcome text"; the last one without its first two words. */
static const char *
last_error(const char *errors, char *out, size_t cap)
{
    size_t len = strlen(errors), begin;
    const char *text;

    while (len > 0 && errors[len - 1] == '\n')
        len--;
    begin = len;
    while (begin > 0 && errors[begin - 1] != '\n')
        begin--;
    snprintf(out, cap, "%.*s", (int)(len - begin), errors + begin);
    text = strchr(out, ' ');
    text = text ? strchr(text + 1, ' ') : NULL;
    return text ? text + 1 : out;
}

static void
put_time(struct cli_json *json, const char *key, int64_t ms)
{
    if (ms != 0)
        cli_json_int(json, key, ms);
}

static void
put_text(struct cli_json *json, const char *key, const char *text)
{
    if (*text)
        cli_json_text(json, key, text);
}

static void
put_progress(struct cli_json *json, const struct weir_job_view *v)
{
    struct weir_progress progress;

    put_text(json, "progress", weir_job_view_progress(v));
    weir_job_view_progress_parts(v, &progress);
    if (progress.percent >= 0)
        cli_json_int(json, "progress_percent", progress.percent);
    put_text(json, "progress_stage", progress.stage);
    put_text(json, "progress_message", progress.message);
}

/* What holds for a run if not what the job says: its worker's --job-timeout where the job
 * says nothing, and of the handler of its type what is less. 0: no limit, -1: what the
 * job says. */
static int64_t
worker_timeout(struct cli *cli, const struct weir_job_view *v,
               const struct weir_job_numbers *n)
{
    struct cli_worker w;
    int64_t said_ms = -1, limit_ms, own_ms;

    if (strcmp(weir_job_view_state(v), "processing") != 0 ||
        !cli_worker_read(cli, weir_job_view_worker(v), &w))
        return -1;
    if (n->timeout_ms == WR_TIMEOUT_DEFAULT_MS)
        said_ms = w.job_timeout;
    limit_ms = said_ms >= 0 ? said_ms : n->timeout_ms;
    own_ms = cli_worker_timeout_of(&w, weir_job_view_type(v));
    cli_worker_fini(&w);
    return own_ms > 0 && (limit_ms == 0 || own_ms < limit_ms) ? own_ms : said_ms;
}

/* The keys are the contract of weir(1). */
static void
print_json(struct cli *cli, const struct weir_job_view *v, bool whole)
{
    struct wr_buf command = {0};
    struct cli_json *json = cli_json_new();
    struct weir_job_numbers n;
    size_t payload_len, result_len;
    const void *result = weir_job_view_result(v, &result_len);
    int64_t worker_ms;
    char error[1200];

    weir_job_view_numbers(v, &n);
    (void)weir_job_view_payload(v, &payload_len);
    cli_json_text(json, "id", weir_job_view_id(v));
    cli_json_text(json, "queue", weir_job_view_queue(v));
    cli_json_text(json, "type", weir_job_view_type(v));
    cli_json_text(json, "state", weir_job_view_state(v));
    cli_json_int(json, "deliveries", n.deliveries);
    cli_json_int(json, "attempts", n.attempts);
    cli_json_int(json, "lost", n.lost);
    cli_json_int(json, "max_retry", n.max_retry);
    cli_json_int(json, "max_deliveries", n.max_deliveries);
    cli_json_int(json, "timeout_ms", n.timeout_ms);
    if (whole && (worker_ms = worker_timeout(cli, v, &n)) >= 0)
        cli_json_int(json, "worker_timeout_ms", worker_ms);
    cli_json_int(json, "keep_result_ms", n.keep_result_ms);
    if (n.keep_progress_ms >= 0)
        cli_json_int(json, "keep_progress_ms", n.keep_progress_ms);
    put_time(json, "enqueued_at", n.enqueued_at);
    put_time(json, "due_at", n.due_at);
    put_time(json, "started_at", n.started_at);
    put_time(json, "finished_at", n.finished_at);
    put_time(json, "lease_until", n.lease_until);
    put_text(json, "waits_behind", weir_job_view_behind(v));
    put_text(json, "worker", weir_job_view_worker(v));
    put_text(json, "error", last_error(weir_job_view_errors(v), error, sizeof(error)));
    put_progress(json, v);
    if (weir_job_view_is_cancelled(v))
        cli_json_bool(json, "cancelled", true);
    if (whole && strcmp(weir_job_view_state(v), "done") == 0)
        cli_json_bytes(json, "result", result, result_len);
    if (cli_command_line(v, &command))
        cli_json_text(json, "command", command.ptr);
    wr_buf_fini(&command);
    cli_json_int(json, "payload_bytes", (int64_t)payload_len);
    if (whole)
        cli_json_adopt(json, "runs", cli_attempts_json(v));
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

struct cli_table *
cli_job_table(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"id", false, false},        {"queue", false, false},   {"type", false, false},
        {"state", false, false},     {"attempts", true, false}, {"lost", true, true},
        {"enqueued", false, false},  {"due", false, true},      {"worker", false, true},
        {"last error", false, false}};

    return cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
}

void
cli_job_row(struct cli *cli, struct cli_table *t, const struct weir_job_view *v)
{
    struct weir_job_numbers n;
    char error[1200];

    if (cli_out_is_json(cli)) {
        print_json(cli, v, false);
        return;
    }
    weir_job_view_numbers(v, &n);
    cli_cell_id(t, weir_job_view_id(v));
    cli_cell_text(t, weir_job_view_queue(v));
    cli_cell_text(t, weir_job_view_type(v));
    cli_cell(t, cli_state_color(weir_job_view_state(v)), "%s", weir_job_view_state(v));
    cli_cell_int(t, n.attempts);
    cli_cell_int(t, n.lost);
    cli_cell_when(t, n.enqueued_at, n.now);
    if (*weir_job_view_behind(v))
        cli_cell(t, CLI_DIM, "behind %s", weir_job_view_behind(v));
    else
        cli_cell_when(t, n.due_at, n.now);
    cli_cell_text(t, weir_job_view_worker(v));
    cli_cell_text(t, last_error(weir_job_view_errors(v), error, sizeof(error)));
}

/* ---- whole ---- */

static void
field(struct cli *cli, const char *name, const char *text)
{
    if (*text == '\0')
        return;
    if (cli_out_is_table(cli))
        cli_print(cli, CLI_DIM, "  %-12s", name);
    else
        fprintf(cli->out, "%s\t", name);
    if (strcmp(name, "id") == 0)
        cli_print_id(cli, text);
    else
        cli_print_text(cli, text);
    fputc('\n', cli->out);
}

static void
field_int(struct cli *cli, const char *name, int64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)number);
    field(cli, name, text);
}

static void
field_when(struct cli *cli, const char *name, int64_t ms, int64_t now)
{
    char text[64];

    if (ms == 0)
        return;
    cli_when(cli, ms, now, text, sizeof(text));
    field(cli, name, text);
}

static void
field_of(struct cli *cli, const char *name, int64_t used, int64_t limit)
{
    char text[64];

    if (limit > 0)
        snprintf(text, sizeof(text), "%lld of %lld", (long long)used, (long long)limit);
    else
        snprintf(text, sizeof(text), "%lld", (long long)used);
    field(cli, name, text);
}

static void
field_bytes(struct cli *cli, const char *name, const void *ptr, size_t len)
{
    struct wr_buf shown = {0};
    size_t part = len < PREVIEW_BYTES ? len : PREVIEW_BYTES;

    wr_buf_addf(&shown, "%zu B  ", len);
    wr_buf_add(&shown, ptr, part);
    if (part < len)
        wr_buf_add_str(&shown, " ...");
    if (memchr(ptr, '\0', part) && shown.ptr) { /* as text it would end there */
        struct wr_buf escaped = {0};

        wr_text_escape(&escaped, wr_buf_span(&shown));
        field(cli, name, wr_buf_span(&escaped).ptr);
        wr_buf_fini(&escaped);
    } else {
        field(cli, name, wr_buf_span(&shown).ptr);
    }
    wr_buf_fini(&shown);
}

static void
show_attempts(struct cli *cli, const struct weir_job_view *v, int64_t now)
{
    size_t n;
    const struct weir_attempt *attempts = weir_job_view_attempts(v, &n);

    for (size_t i = 0; i < n; i++) {
        struct wr_buf line = {0};

        cli_attempt_text(cli, &attempts[i], now, &line);
        field(cli, attempts[i].number > 0 ? "run" : "error", wr_buf_span(&line).ptr);
        wr_buf_fini(&line);
    }
}

static void
show_numbers(struct cli *cli, const struct weir_job_numbers *n, int64_t worker_ms)
{
    char text[64];

    field_of(cli, "attempts", n->attempts, n->max_retry + 1);
    field_of(cli, "lost", n->lost, n->max_deliveries);
    field_int(cli, "deliveries", n->deliveries);
    if (n->timeout_ms > 0) {
        cli_how_long(cli, n->timeout_ms, text, sizeof(text));
        field(cli, "timeout", text);
    }
    if (worker_ms > 0)
        cli_how_long(cli, worker_ms, text, sizeof(text));
    if (worker_ms >= 0)
        field(cli, "worker_timeout", worker_ms > 0 ? text : "none");
    field_when(cli, "enqueued", n->enqueued_at, n->now);
    field_when(cli, "due", n->due_at, n->now);
    field_when(cli, "started", n->started_at, n->now);
    field_when(cli, "finished", n->finished_at, n->now);
    field_when(cli, "lease_until", n->lease_until, n->now);
}

/* "40%  upload: 3 of 12 files" on a terminal; in a pipe as it is stored. */
static void
show_progress(struct cli *cli, const struct weir_job_view *v)
{
    struct weir_progress p;
    char text[600], percent[16] = "";

    weir_job_view_progress_parts(v, &p);
    if (!cli_out_is_table(cli) || *weir_job_view_progress(v) == '\0') {
        field(cli, "progress", weir_job_view_progress(v));
        return;
    }
    if (p.percent >= 0)
        snprintf(percent, sizeof(percent), "%d%%  ", p.percent);
    snprintf(text, sizeof(text), "%s%s%s%s", percent, p.stage,
             *p.stage && *p.message ? ": " : "", p.message);
    field(cli, "progress", text);
}

void
cli_job_show(struct cli *cli, const struct weir_job_view *v)
{
    struct wr_buf command = {0};
    const char *state = weir_job_view_state(v);
    struct weir_job_numbers n;
    const void *bytes;
    size_t len;

    if (cli_out_is_json(cli)) {
        print_json(cli, v, true);
        return;
    }
    if (cli->format == CLI_OUT_ID) {
        cli_print_id(cli, weir_job_view_id(v));
        fputc('\n', cli->out);
        return;
    }
    weir_job_view_numbers(v, &n);
    if (cli_out_is_table(cli)) {
        cli_print_id(cli, weir_job_view_id(v));
        fputs("  ", cli->out);
        cli_print_text(cli, weir_job_view_type(v));
        fputs("  ", cli->out);
        cli_print(cli, cli_state_color(state), "%s", state);
        fputs(weir_job_view_is_cancelled(v) ? ", told to stop\n" : "\n", cli->out);
    } else {
        field(cli, "id", weir_job_view_id(v));
        field(cli, "type", weir_job_view_type(v));
        field(cli, "state", state);
    }
    field(cli, "queue", weir_job_view_queue(v));
    show_numbers(cli, &n, worker_timeout(cli, v, &n));
    field(cli, "waits_behind", weir_job_view_behind(v));
    field(cli, "worker", weir_job_view_worker(v));
    show_progress(cli, v);
    show_attempts(cli, v, n.now);
    if (cli_command_line(v, &command))
        field(cli, "command", command.ptr);
    wr_buf_fini(&command);
    bytes = weir_job_view_payload(v, &len);
    field_bytes(cli, "payload", bytes, len);
    if (strcmp(state, "done") == 0) {
        bytes = weir_job_view_result(v, &len);
        field_bytes(cli, "result", bytes, len);
    }
}

void
cli_job_show_over(struct cli *cli, const struct weir_job_view *v)
{
    struct weir_job_numbers n;

    weir_job_view_numbers(v, &n);
    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "id", weir_job_view_id(v));
        cli_json_text(json, "queue", weir_job_view_queue(v));
        cli_json_text(json, "state", weir_job_view_state(v));
        cli_json_int(json, "finished_at", n.finished_at);
        put_progress(json, v);
        cli_json_print(json, cli->out);
        cli_json_free(json);
        return;
    }
    if (cli->format == CLI_OUT_ID) {
        cli_print_id(cli, weir_job_view_id(v));
        fputc('\n', cli->out);
        return;
    }
    if (cli_out_is_table(cli)) {
        cli_print_id(cli, weir_job_view_id(v));
        fputs("  ", cli->out);
        cli_print(cli, CLI_DIM, "%s, and not kept\n", weir_job_view_state(v));
    } else {
        field(cli, "id", weir_job_view_id(v));
        field(cli, "state", weir_job_view_state(v));
    }
    field(cli, "queue", weir_job_view_queue(v));
    field_when(cli, "finished", n.finished_at, n.now);
    show_progress(cli, v);
}
