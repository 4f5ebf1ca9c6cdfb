#include "cli/cron_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/cron_spec.h"
#include "cli/json.h"
#include "cli/queues.h"
#include "cron/zone.h"
#include "model/entry.h"

static const char *
state_word(const struct weir_cron_info *i)
{
    if (i->paused)
        return "paused";
    if (i->waiting)
        return "waiting";
    return i->next_at > 0 ? "active" : "over";
}

/* ---- JSON ---- */

/* WEIR_NONE is 0 there. */
static void
set_number(struct cli_json *json, const char *key, int64_t value)
{
    cli_json_int(json, key, value == WEIR_NONE ? 0 : value);
}

static void
set_job(struct cli_json *json, const struct weir_job *j)
{
    struct cli_json *meta = cli_json_new(), *then = cli_json_new_array();

    cli_json_text(json, "type", j->type);
    if (j->payload)
        cli_json_bytes(json, "payload", j->payload, j->payload_len);
    if (j->max_retry != 0) /* else it is the queue's default */
        set_number(json, "max_retry", j->max_retry);
    if (j->backoff)
        cli_json_text(json, "backoff", j->backoff);
    set_number(json, "max_deliveries", j->max_deliveries);
    set_number(json, "timeout_ms", j->timeout_ms);
    set_number(json, "kill_after_ms", j->kill_after_ms);
    set_number(json, "keep_result_ms", j->keep_result_ms);
    if (j->keep_progress_ms != 0)
        set_number(json, "keep_progress_ms", j->keep_progress_ms);
    if (j->expires_ms > 0)
        cli_json_int(json, "expires_ms", j->expires_ms);
    if (j->unique) {
        cli_json_text(json, "unique", j->unique);
        cli_json_int(json, "unique_window_ms", j->unique_window_ms);
    }
    if (j->unique_states)
        cli_json_text(json, "unique_states", j->unique_states);
    if (j->order_key)
        cli_json_text(json, "order_key", j->order_key);
    for (size_t i = 0; i < j->then_count; i++) {
        struct cli_json *step = cli_json_new();

        cli_json_text(step, "type", j->then[i].type);
        cli_json_text(step, "queue", j->then[i].queue);
        cli_json_append(then, step);
    }
    cli_json_adopt(json, "then", then);
    for (size_t i = 0; i < j->meta_count; i++)
        cli_json_text(meta, j->meta[i].name, j->meta[i].value);
    cli_json_adopt(json, "meta", meta);
}

static void
print_json(struct cli *cli, const struct weir_cron_info *i)
{
    const struct weir_cron *e = &i->entry;
    struct cli_json *json = cli_json_new();

    cli_json_text(json, "name", e->name);
    cli_json_text(json, "queue", e->queue);
    cli_json_text(json, "schedule", e->schedule);
    cli_json_text(json, "zone", e->zone);
    cli_json_text(json, "state", state_word(i));
    cli_json_bool(json, "paused", i->paused);
    if (i->next_at > 0)
        cli_json_int(json, "next_at", i->next_at);
    if (i->last_at > 0) {
        cli_json_int(json, "last_at", i->last_at);
        cli_json_text(json, "last_id", i->last_id);
    }
    cli_json_int(json, "fired", i->fired);
    cli_json_int(json, "skipped", i->skipped);
    cli_json_text(json, "missed", wr_missed_words[e->missed]);
    cli_json_int(json, "missed_cap", e->missed_cap);
    set_number(json, "grace_ms", e->grace_ms);
    cli_json_text(json, "overlap", wr_overlap_words[e->overlap]);
    cli_json_int(json, "jitter_ms", e->jitter_ms);
    set_job(json, e->job);
    cli_json_int(json, "revision", i->revision);
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

/* ---- tables ---- */

static const struct cli_column columns[] = {
    {"NAME", false, false},  {"QUEUE", false, false}, {"SCHEDULE", false, false},
    {"ZONE", false, false},  {"NEXT", false, false},  {"LAST", false, false},
    {"TYPE", false, false},  {"STATE", false, false}, {"FIRED", true, true},
    {"SKIPPED", true, true},
};

struct cli_table *
cli_cron_table(struct cli *cli)
{
    return cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
}

void
cli_cron_row(struct cli *cli, struct cli_table *t, const struct weir_cron_info *i)
{
    const struct weir_cron *e = &i->entry;

    if (cli_out_is_json(cli)) {
        print_json(cli, i);
        return;
    }
    cli_cell_id(t, e->name);
    cli_cell_text(t, e->queue);
    cli_cell_text(t, e->schedule);
    cli_cell_text(t, e->zone);
    cli_cell_when(t, i->next_at, i->now);
    cli_cell_when(t, i->last_at, i->now);
    cli_cell_text(t, e->job->type);
    cli_cell(t, i->paused ? CLI_YELLOW : CLI_PLAIN, "%s", state_word(i));
    cli_cell_int(t, i->fired);
    cli_cell_int(t, i->skipped);
}

static void
show_line(struct cli *cli, const char *name, const char *value)
{
    if (cli_out_is_table(cli))
        cli_print(cli, CLI_DIM, "  %-14s", name);
    else
        fprintf(cli->out, "%s\t", name);
    cli_print_text(cli, value);
    fputc('\n', cli->out);
}

static void
show_when(struct cli *cli, const char *name, int64_t ms, int64_t now)
{
    char text[64];

    cli_when(cli, ms, now, text, sizeof(text));
    show_line(cli, name, text);
}

/* "retry = 5\n...": as in a file. */
static void
show_parts(struct cli *cli, const struct weir_cron *e)
{
    struct wr_buf text = {0};
    char *save = NULL;

    cli_cron_render(e, &text);
    for (char *line = strtok_r(text.ptr, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *equals = strstr(line, " = ");

        *equals = '\0';
        show_line(cli, line, equals + 3);
    }
    wr_buf_fini(&text);
}

void
cli_cron_show(struct cli *cli, const struct weir_cron_info *i)
{
    char number[32];

    if (cli_out_is_json(cli)) {
        print_json(cli, i);
        return;
    }
    if (cli->format == CLI_OUT_ID) {
        cli_print_id(cli, i->entry.name);
        fputc('\n', cli->out);
        return;
    }
    show_line(cli, "name", i->entry.name);
    show_parts(cli, &i->entry);
    show_line(cli, "state", state_word(i));
    show_when(cli, "next", i->next_at, i->now);
    show_when(cli, "last", i->last_at, i->now);
    if (i->last_id[0])
        show_line(cli, "last id", i->last_id);
    snprintf(number, sizeof(number), "%lld", (long long)i->fired);
    show_line(cli, "fired", number);
    snprintf(number, sizeof(number), "%lld", (long long)i->skipped);
    show_line(cli, "skipped", number);
}

/* ---- the next times ---- */

/* "2026-12-01 03:00:00 +01:00": what the clocks there show. */
static void
local_time(const struct wr_zone *zone, int64_t ms, char *out, size_t cap)
{
    int32_t offset = wr_zone_at(zone, ms / 1000).offset;
    int32_t minutes = (offset < 0 ? -offset : offset) / 60;
    char text[32];

    wr_text_show_time(ms + (int64_t)offset * 1000, text);
    text[10] = ' ';
    snprintf(out, cap, "%.19s %c%02d:%02d", text, offset < 0 ? '-' : '+', minutes / 60,
             minutes % 60);
}

static void
print_times(struct cli *cli, const struct wr_zone *zone, const int64_t *times, size_t n,
            int64_t now)
{
    char text[64], when[64];

    for (size_t i = 0; i < n; i++) {
        wr_text_show_time(times[i], text);
        if (!cli_out_is_table(cli)) {
            fprintf(cli->out, "%s\n", text);
            continue;
        }
        if (!cli->globals.utc)
            local_time(zone, times[i], text, sizeof(text));
        cli_when(cli, times[i], now, when, sizeof(when));
        fprintf(cli->out, "  %s", text);
        cli_print(cli, CLI_DIM, "  %s", when);
        fputc('\n', cli->out);
    }
}

static void
print_json_times(struct cli *cli, const char *name, const char *schedule,
                 const char *zone, const int64_t *times, size_t n, const char *warning)
{
    char rest[600], *save = NULL;
    struct cli_json *json = cli_json_new(), *all = cli_json_new_array(),
                    *warnings = cli_json_new_array();

    cli_json_text(json, "name", name);
    cli_json_text(json, "schedule", schedule);
    cli_json_text(json, "zone", zone);
    for (size_t i = 0; i < n; i++) {
        struct cli_json *one = cli_json_new();

        cli_json_int(one, "at", times[i]);
        cli_json_append(all, one);
    }
    cli_json_adopt(json, "next", all);
    snprintf(rest, sizeof(rest), "%s", warning);
    for (char *line = strtok_r(rest, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        struct cli_json *one = cli_json_new();

        cli_json_text(one, "text", line);
        cli_json_append(warnings, one);
    }
    cli_json_adopt(json, "warnings", warnings);
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

static void
print_warnings(struct cli *cli, const char *warning)
{
    char rest[600], *save = NULL;

    fflush(cli->out); /* after the times, wherever both go */
    snprintf(rest, sizeof(rest), "%s", warning);
    for (char *line = strtok_r(rest, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        cli_note(cli, "Note: %s.", line);
}

enum weir_err
cli_cron_preview(struct cli *cli, const char *name, const char *schedule,
                 const char *zone, int64_t after_ms, size_t count, struct weir_error *err)
{
    int64_t *times = cli_alloc((count + 1) * sizeof(*times));
    struct wr_zone *z = NULL;
    char warning[600] = "";
    size_t n = 0;
    enum weir_err rc = weir_cron_next(schedule, zone, after_ms, times, count, &n, warning,
                                      sizeof(warning), err);

    if (rc == WEIR_OK)
        rc = wr_zone_open(zone, &z, err);
    if (rc == WEIR_OK && cli_out_is_json(cli)) {
        print_json_times(cli, name, schedule, zone, times, n, warning);
    } else if (rc == WEIR_OK) {
        if (cli->format == CLI_OUT_ID) {
            cli_print_id(cli, name);
            fputc('\n', cli->out);
        } else {
            print_times(cli, z, times, n, after_ms);
        }
        print_warnings(cli, warning);
    }
    wr_zone_free(z);
    free(times);
    return rc;
}

/* ---- finding ---- */

enum weir_err
cli_cron_find(struct cli *cli, const char *queue, const char *name,
              struct weir_cron_info **info, struct weir_error *err)
{
    struct cli_list one = {&queue, queue ? 1 : 0};
    struct cli_names queues;
    enum weir_err rc = cli_queues(cli, &one, &queues, err);

    *info = NULL;
    for (size_t i = 0; i < queues.n && rc == WEIR_OK; i++) {
        struct weir_cron_info *found;

        rc = weir_cron_get(cli->client, queues.names[i], name, &found, err);
        if (rc == WEIR_E_NO_CRON) {
            rc = WEIR_OK;
        } else if (rc == WEIR_OK && *info) {
            rc = wr_fail(
                err, WEIR_E_ARG, 0,
                "cron entry \"%.60s\": queues %.60s and %.60s have one; say which "
                "with -q",
                name, (*info)->entry.queue, found->entry.queue);
            weir_cron_info_free(found);
        } else if (rc == WEIR_OK) {
            *info = found;
        }
    }
    cli_names_fini(&queues);
    if (rc == WEIR_OK && !*info)
        rc = wr_fail(err, WEIR_E_NO_CRON, 0, "no cron entry \"%.100s\"%s%.100s", name,
                     queue ? " in queue " : "", queue ? queue : "");
    if (rc != WEIR_OK) {
        weir_cron_info_free(*info);
        *info = NULL;
    }
    return rc;
}

void
cli_cron_done(struct cli *cli, const char *queue, const char *name, const char *word,
              const char *sentence)
{
    struct cli_json *json;

    if (cli_out_is_json(cli)) {
        json = cli_json_new();
        cli_json_text(json, "name", name);
        cli_json_text(json, "queue", queue);
        cli_json_text(json, "action", word);
        cli_json_print(json, cli->out);
        cli_json_free(json);
        return;
    }
    if (cli->format == CLI_OUT_ID) {
        cli_print_id(cli, name);
    } else if (cli_out_is_table(cli)) {
        cli_print_text(cli, sentence);
    } else {
        fprintf(cli->out, "%s\t", word);
        cli_print_text(cli, queue);
        fputc('\t', cli->out);
        cli_print_id(cli, name);
    }
    fputc('\n', cli->out);
}

/* ---- for status ---- */

struct summary {
    size_t n;
    int64_t next_at, now;
    char name[WR_ENTRY_NAME_MAX + 1], zone[WR_ENTRY_ZONE_MAX + 1];
};

static bool
sum_up(const char *name, const struct weir_cron_info *info, void *context)
{
    struct summary *s = context;

    s->n++;
    if (!info || info->next_at == 0 || (s->next_at > 0 && info->next_at >= s->next_at))
        return true;
    s->next_at = info->next_at;
    s->now = info->now;
    snprintf(s->name, sizeof(s->name), "%s", name);
    snprintf(s->zone, sizeof(s->zone), "%s", info->entry.zone);
    return true;
}

enum weir_err
cli_cron_summary(struct cli *cli, char *const *queues, size_t n, struct weir_error *err)
{
    struct summary s = {0};
    char when[64];

    for (size_t i = 0; i < n; i++) {
        enum weir_err rc = weir_cron_list(cli->client, queues[i], sum_up, &s, err);

        if (rc != WEIR_OK)
            return rc;
    }
    if (s.n == 0)
        return WEIR_OK;
    fprintf(cli->out, "schedules %zu", s.n);
    if (s.next_at > 0) {
        cli_when(cli, s.next_at, s.now, when, sizeof(when));
        fputs(", next \"", cli->out);
        cli_print_text(cli, s.name);
        fprintf(cli->out, "\" %s (%s)", when, s.zone);
    }
    fputc('\n', cli->out);
    return WEIR_OK;
}
