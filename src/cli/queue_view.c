#include "cli/queue_view.h"

#include <string.h>

#include "base/text.h"
#include "cli/json.h"

#define SHELVED_MS 15000 /* for how long it is worth a note */
#define LEFT_MS 10000    /* a move takes some steps a second, and says so once a second */
#define LATE_MS 5000     /* a scheduler that lives promotes and reclaims much sooner */

static void
put_since(struct cli_json *json, const char *key, int64_t at, int64_t now)
{
    if (at == 0)
        cli_json_null(json, key);
    else
        cli_json_int(json, key, now - at);
}

/* Of the delayed job that is due the longest. */
static int64_t
lateness(const struct weir_audit *a)
{
    return a->overdue > 0 && a->now > a->next_due ? a->now - a->next_due : 0;
}

/* The keys are the contract of weir(1). */
static void
print_json(struct cli *cli, const char *queue, const struct weir_audit *a)
{
    struct cli_json *json = cli_json_new();

    cli_json_text(json, "queue", queue);
    cli_json_text(json, "engine", a->engine);
    cli_json_bool(json, "paused", a->paused);
    if (a->paused) {
        cli_json_text(json, "paused_by", a->paused_by);
        cli_json_text(json, "paused_reason", a->paused_why);
        cli_json_int(json, "paused_at", a->paused_at);
    }
    if (a->moving_to[0]) {
        cli_json_text(json, "moving_to", a->moving_to);
        put_since(json, "moving_ms", a->moving_at, a->now);
        put_since(json, "moving_step_ms", a->moving_step_at, a->now);
    }
    cli_json_int(json, "ready", a->ready);
    cli_json_int(json, "delayed", a->delayed);
    cli_json_int(json, "processing", a->processing);
    cli_json_int(json, "dead", a->dead);
    cli_json_int(json, "done", a->done);
    put_since(json, "oldest_ready_ms", a->oldest_ready, a->now);
    cli_json_int(json, "overdue", a->overdue);
    cli_json_int(json, "stuck", a->stuck);
    cli_json_int(json, "overdue_ms", lateness(a));
    if (a->next_due == 0)
        cli_json_null(json, "next_due_ms");
    else
        cli_json_int(json, "next_due_ms", a->next_due - a->now);
    cli_json_int(json, "parked", a->parked);
    cli_json_int(json, "payload_max_bytes", a->payload_max_bytes);
    cli_json_int(json, "kept_max", a->kept_max_jobs);
    cli_json_int(json, "kept_max_bytes", a->kept_max_bytes);
    cli_json_int(json, "dead_max", a->dead_max_jobs);
    cli_json_int(json, "dead_max_age_ms", a->dead_max_age_ms);
    cli_json_int(json, "dead_max_bytes", a->dead_max_bytes);
    cli_json_int(json, "log_max_bytes", a->log_max_bytes);
    cli_json_int(json, "max_retry", a->max_retry);
    cli_json_text(json, "backoff", a->backoff);
    if (a->keep_progress_ms >= 0)
        cli_json_int(json, "keep_progress_ms", a->keep_progress_ms);
    put_since(json, "heartbeat_promote_ms", a->heartbeat_promote, a->now);
    put_since(json, "heartbeat_reclaim_ms", a->heartbeat_reclaim, a->now);
    cli_json_int(json, "retried", a->retried);
    cli_json_int(json, "reclaimed", a->reclaimed + a->reclaimed_delayed);
    cli_json_int(json, "stale", a->stale);
    cli_json_int(json, "shelved", a->shelved);
    put_since(json, "shelved_ms", a->shelved_at, a->now);
    if (a->shelved_at == 0)
        cli_json_null(json, "shelved_type");
    else
        cli_json_text(json, "shelved_type", a->shelved_type);
    cli_json_int(json, "enqueued", a->enqueued);
    cli_json_int(json, "kept", a->kept);
    cli_json_int(json, "gap", a->gap);
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

/* Schedulers beat every five seconds; the heartbeat itself ends after thirty. */
static bool
is_silent(const struct weir_audit *a, int64_t heartbeat)
{
    return heartbeat == 0 || a->now - heartbeat > 3 * LATE_MS;
}

bool
cli_queue_move_is_left(const struct weir_audit *a)
{
    return a->moving_to[0] && a->moving_step_at > 0 &&
           a->now - a->moving_step_at > LEFT_MS;
}

void
cli_queue_move_fix(const char *queue, const struct weir_audit *a, char *out, size_t cap)
{
    snprintf(out, cap, "weir queue migrate %s --engine %s", queue,
             a->paused ? a->moving_to : a->engine);
}

/* One that only cleans up, or under which somebody resumed the queue, has one end. */
static void
add_what_to_do(struct wr_buf *text, const char *queue, const struct weir_audit *a)
{
    bool left = cli_queue_move_is_left(a),
         one_end = !a->paused || strcmp(a->engine, a->moving_to) == 0;
    char fix[200];

    cli_queue_move_fix(queue, a, fix, sizeof(fix));
    if (left && one_end)
        wr_buf_addf(text, ": %s ends it", fix);
    else if (left)
        wr_buf_addf(text, ": %s goes on, --engine %s takes it back", fix, a->engine);
    else if (!one_end)
        wr_buf_addf(text, ": weir queue migrate %s --engine %s takes it back", queue,
                    a->engine);
}

void
cli_queue_say_move(const char *queue, const struct weir_audit *a, char *out, size_t cap)
{
    bool left = cli_queue_move_is_left(a);
    char began[32] = "some time";
    struct wr_buf text = {0};

    if (a->moving_at > 0)
        wr_text_show_duration(a->now - a->moving_at, began, sizeof(began));
    wr_buf_addf(&text, "%s to %s, begun %s ago%s", left ? "its move" : "moves",
                a->moving_to, began, left ? ", was left" : "");
    add_what_to_do(&text, queue, a);
    snprintf(out, cap, "%s", (const char *)wr_buf_span(&text).ptr);
    wr_buf_fini(&text);
}

bool
cli_queue_complaint(const char *queue, const struct weir_audit *a, char *out, size_t cap)
{
    char text[32];

    if (!weir_audit_is_good(a)) {
        snprintf(out, cap, "the sums are off: weir audit");
        return true;
    }
    if (a->paused && cli_queue_move_is_left(a)) {
        cli_queue_say_move(queue, a, out, cap);
        return true;
    }
    if (lateness(a) > LATE_MS) {
        wr_text_show_duration(lateness(a), text, sizeof(text));
        snprintf(out, cap, "%lld job%s %s overdue, the first since %s: %s",
                 (long long)a->overdue, wr_text_s(a->overdue), wr_text_are(a->overdue),
                 text,
                 is_silent(a, a->heartbeat_promote) ? "no scheduler runs"
                                                    : "the scheduler does not keep up");
        return true;
    }
    if (a->delayed > 0 && is_silent(a, a->heartbeat_promote)) {
        snprintf(out, cap,
                 "%lld delayed job%s, and no scheduler runs: weir work, or weir "
                 "scheduler",
                 (long long)a->delayed, wr_text_s(a->delayed));
        return true;
    }
    if ((a->processing > 0 && is_silent(a, a->heartbeat_reclaim)) ||
        (a->stuck > 0 && a->now - a->heartbeat_reclaim > 2 * LATE_MS)) {
        snprintf(out, cap,
                 "%lld job%s, and no scheduler would take what runs back from a lost "
                 "worker",
                 (long long)a->processing, a->processing == 1 ? " runs" : "s run");
        return true;
    }
    return false;
}

void
cli_queue_done(struct cli *cli, const char *queue, const char *word, const char *sentence)
{
    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "queue", queue);
        cli_json_text(json, "result", word);
        cli_json_print(json, cli->out);
        cli_json_free(json);
    } else if (cli_out_is_table(cli)) {
        fprintf(cli->out, "%s\n", sentence);
    } else {
        cli_print_id(cli, queue);
        if (cli->format != CLI_OUT_ID)
            fprintf(cli->out, "\t%s", word);
        fputc('\n', cli->out);
    }
}

struct cli_table *
cli_queue_table(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"queue", false, false},  {"state", false, false},     {"ready", true, false},
        {"delayed", true, false}, {"processing", true, false}, {"dead", true, false},
        {"done", true, false},    {"oldest", true, false},     {"next due", true, true},
        {"engine", false, true},  {"note", false, false}};

    return cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
}

static void
note_cell(struct cli_table *t, const char *queue, const struct weir_audit *a)
{
    char text[300] = "", since[32];
    struct wr_buf shown = {0};

    if (cli_queue_complaint(queue, a, text, sizeof(text))) {
        cli_cell(t, CLI_RED, "! %s", text);
        return;
    }
    if (a->moving_to[0]) {
        cli_queue_say_move(queue, a, text, sizeof(text));
        cli_cell(t, CLI_YELLOW, "%s", text);
        return;
    }
    if (!a->paused && a->shelved_at > 0 && a->now - a->shelved_at < SHELVED_MS) {
        wr_text_show_duration(a->now - a->shelved_at, since, sizeof(since));
        cli_cell(t, CLI_YELLOW, "no handler for type %s %s ago", a->shelved_type, since);
        return;
    }
    if (!a->paused) {
        cli_cell_text(t, "");
        return;
    }
    wr_text_show_duration(a->now - a->paused_at, since, sizeof(since));
    wr_buf_addf(&shown, "paused %s ago by %s%s%s", since, a->paused_by,
                a->paused_why[0] ? ": " : "", a->paused_why);
    cli_cell_text(t, wr_buf_span(&shown).ptr);
    wr_buf_fini(&shown);
}

void
cli_queue_row(struct cli *cli, struct cli_table *t, const char *queue,
              const struct weir_audit *a)
{
    const char *state = a->paused ? "PAUSED" : "run";

    if (cli_out_is_json(cli)) {
        print_json(cli, queue, a);
        return;
    }
    cli_cell_text(t, queue);
    cli_cell(t, cli_state_color(state), "%s", state);
    cli_cell_int(t, a->ready);
    cli_cell_int(t, a->delayed);
    cli_cell_int(t, a->processing);
    cli_cell(t, a->dead > 0 ? CLI_RED : CLI_PLAIN, "%lld", (long long)a->dead);
    cli_cell_int(t, a->done);
    cli_cell_how_long(t, a->oldest_ready > 0 ? a->now - a->oldest_ready : -1);
    cli_cell_how_long(t, a->next_due > a->now ? a->next_due - a->now
                         : a->next_due > 0    ? 0
                                              : -1);
    cli_cell_text(t, a->engine);
    note_cell(t, queue, a);
}
