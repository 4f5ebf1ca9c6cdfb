/* job logs: what a job printed, also while it runs. */
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"

#define POLL_MS 250
#define CLOSE_MS 2000 /* after its end, for its last lines */

struct logs_opts {
    const char *queue;
    bool follow, raw;
    int64_t attempt, tail;
};

static const struct cli_opt logs_options[] = {
    {"queue", 'q', CLI_TEXT, offsetof(struct logs_opts, queue), "Q",
     "look only in this queue"},
    {"follow", 'f', CLI_FLAG, offsetof(struct logs_opts, follow), NULL,
     "go on with what it prints until it ends, retries included"},
    {"attempt", 0, CLI_COUNT, offsetof(struct logs_opts, attempt), "N",
     "of its N-th run; default the last one that printed"},
    {"tail", 0, CLI_COUNT, offsetof(struct logs_opts, tail), "N",
     "only the last N lines"},
    {"raw", 0, CLI_FLAG, offsetof(struct logs_opts, raw), NULL,
     "the bytes as the job wrote them, without times"},
    {0},
};

struct logs {
    struct cli *cli;
    const struct logs_opts *opts;
    const char *id;
    struct weir_output_place place;
    bool in_line;        /* the last bytes had no newline */
    int64_t count, skip; /* lines: counted, and not to be shown */
    int64_t ended_ms;    /* the run was seen to be over */
};

/* ---- printing ---- */

static void
print_json(const struct logs *l, const struct weir_output_line *line)
{
    struct cli_json *json = cli_json_new();

    cli_json_text(json, "id", l->id);
    cli_json_int(json, "run", line->run);
    cli_json_int(json, "at_ms", line->at);
    if (line->left_out > 0) {
        cli_json_int(json, "left_out_bytes", line->left_out);
        cli_json_int(json, "left_out_lines", line->left_out_lines);
    } else {
        cli_json_bytes(json, "text", line->ptr, line->len);
    }
    cli_json_print(json, l->cli->out);
    cli_json_free(json);
}

static void
print_time(const struct logs *l, int64_t at)
{
    time_t seconds = (time_t)(at / 1000);
    char text[40];
    struct tm tm;

    if (!cli_out_is_table(l->cli)) {
        wr_text_show_time(at, text);
        fprintf(l->cli->out, "%s\t", text);
        return;
    }
    if (l->cli->globals.utc)
        gmtime_r(&seconds, &tm);
    else
        localtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%H:%M:%S", &tm);
    cli_print(l->cli, CLI_DIM, "%s.%03d  ", text, (int)(at % 1000));
}

static void
end_line(struct logs *l)
{
    if (l->in_line)
        fputc('\n', l->cli->out);
    l->in_line = false;
}

/* Everything but tabs that could steer a terminal is escaped. */
static void
print_text(const struct logs *l, const char *ptr, size_t len)
{
    struct wr_buf shown = {0};

    while (len > 0) {
        const char *tab = memchr(ptr, '\t', len);
        size_t n = tab ? (size_t)(tab - ptr) : len;

        wr_text_escape(&shown, (struct wr_span){ptr, n});
        if (tab)
            wr_buf_add(&shown, "\t", 1);
        n += tab ? 1 : 0;
        ptr += n;
        len -= n;
    }
    fwrite(wr_buf_span(&shown).ptr, 1, shown.len, l->cli->out);
    wr_buf_fini(&shown);
}

static void
print_left_out(struct logs *l, const struct weir_output_line *line)
{
    if (l->opts->raw) {
        cli_note(l->cli, "%" PRId64 " byte%s %s left out here", line->left_out,
                 wr_text_s(line->left_out), wr_text_are(line->left_out));
        return;
    }
    end_line(l);
    print_time(l, line->at);
    if (line->left_out_lines > 0)
        cli_print(l->cli, CLI_DIM,
                  "[... %" PRId64 " byte%s, %" PRId64 " line%s left out ...]\n",
                  line->left_out, wr_text_s(line->left_out), line->left_out_lines,
                  wr_text_s(line->left_out_lines));
    else
        cli_print(l->cli, CLI_DIM, "[... %" PRId64 " byte%s left out ...]\n",
                  line->left_out, wr_text_s(line->left_out));
}

static bool
print_line(const struct weir_output_line *line, void *context)
{
    struct logs *l = context;
    size_t len = line->len;

    if (l->skip > 0) {
        l->skip -= !line->part && line->left_out == 0;
        return true;
    }
    if (!l->opts->raw && cli_out_is_json(l->cli)) {
        print_json(l, line);
    } else if (line->left_out > 0) {
        print_left_out(l, line);
    } else if (l->opts->raw) {
        fwrite(line->ptr, 1, len, l->cli->out);
    } else {
        if (!l->in_line)
            print_time(l, line->at);
        l->in_line = true;
        print_text(l, line->ptr, line->part ? len : len - 1);
        if (!line->part)
            end_line(l);
    }
    return !ferror(l->cli->out);
}

static bool
count_line(const struct weir_output_line *line, void *context)
{
    struct logs *l = context;

    l->count += !line->part && line->left_out == 0;
    return true;
}

/* ---- reading ---- */

static enum weir_err
read_more(struct logs *l, weir_output_fn each, struct weir_error *err)
{
    enum weir_err rc = weir_job_output(l->cli->client, l->opts->queue, l->id, &l->place,
                                       each, l, err);

    fflush(l->cli->out);
    return rc;
}

/* With --tail the lines are counted first. */
static enum weir_err
read_first(struct logs *l, struct weir_error *err)
{
    struct weir_output_place begin = l->place;
    enum weir_err rc = WEIR_OK;

    if (l->opts->tail != CLI_UNSET) {
        rc = read_more(l, count_line, err);
        l->skip = l->count > l->opts->tail ? l->count - l->opts->tail : 0;
        begin.run = l->place.run; /* not a newer one */
        l->place = begin;
    }
    return rc == WEIR_OK ? read_more(l, print_line, err) : rc;
}

static bool
job_is_over(const struct logs *l)
{
    return strcmp(l->place.state, "done") == 0 || strcmp(l->place.state, "dead") == 0;
}

/* The run that is read prints no more, as far as the job's state tells. */
static bool
run_is_over(const struct logs *l)
{
    return strcmp(l->place.state, "processing") != 0 ||
           (l->place.run > 0 && l->place.deliveries > l->place.run);
}

/* The last lines may come a moment after the end of the run. */
static bool
all_has_come(struct logs *l)
{
    if (!run_is_over(l)) {
        l->ended_ms = 0;
        return false;
    }
    if (l->ended_ms == 0)
        l->ended_ms = wr_clock_ms();
    return !l->place.open || wr_clock_ms() - l->ended_ms > CLOSE_MS;
}

static void
next_run(struct logs *l)
{
    int64_t run = l->place.next_run;

    if (!l->opts->raw)
        end_line(l);
    cli_note(l->cli, "run %" PRId64 ":", run);
    l->place.run = run;
    l->place.offset = l->place.bytes = l->place.lines = 0;
    l->ended_ms = 0;
}

static enum weir_err
how_it_ended(const struct logs *l, struct weir_error *err)
{
    if (strcmp(l->place.state, "dead") == 0 && l->opts->attempt == CLI_UNSET)
        return wr_fail(err, WEIR_E_JOB_FAILED, 0, "job %.100s is dead", l->id);
    return WEIR_OK;
}

static enum weir_err
follow(struct logs *l, struct weir_error *err)
{
    for (;;) {
        enum weir_err rc;

        if (all_has_come(l)) {
            if (l->opts->attempt != CLI_UNSET)
                return l->place.kept || l->place.deliveries >= l->place.run
                           ? WEIR_OK
                           : how_it_ended(l, err);
            if (l->place.next_run > 0)
                next_run(l);
            else if (job_is_over(l))
                return how_it_ended(l, err);
        }
        poll(NULL, 0, POLL_MS);
        rc = read_more(l, print_line, err);
        if (rc == WEIR_E_NO_JOB)
            return wr_fail(err, rc, 0,
                           "job %.100s is over and left nothing: its last lines may be "
                           "missing (enqueue it with --keep-result, and they are kept)",
                           l->id);
        if (rc != WEIR_OK || ferror(l->cli->out))
            return rc;
    }
}

static enum weir_err
show(struct logs *l, struct weir_error *err)
{
    int64_t deadline = wr_clock_ms() + CLOSE_MS;
    enum weir_err rc = read_first(l, err);

    if (rc != WEIR_OK)
        return rc;
    if (l->opts->follow)
        return follow(l, err);
    while (run_is_over(l) && l->place.open && wr_clock_ms() < deadline) {
        poll(NULL, 0, POLL_MS / 5);
        rc = read_more(l, print_line, err);
        if (rc != WEIR_OK)
            return rc;
    }
    if (!l->place.kept && l->opts->attempt != CLI_UNSET)
        return wr_fail(err, WEIR_E_WRONG_STATE, 0,
                       "job %.100s: nothing is kept of run %" PRId64
                       " (it is %s, %" PRId64 " run%s so far)",
                       l->id, l->opts->attempt, l->place.state, l->place.deliveries,
                       wr_text_s(l->place.deliveries));
    if (!l->place.kept)
        cli_note(l->cli, "job %s printed nothing (%s, %" PRId64 " run%s so far)", l->id,
                 l->place.state, l->place.deliveries, wr_text_s(l->place.deliveries));
    return WEIR_OK;
}

static enum weir_err
logs_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct logs_opts *o = opts;
    struct logs l = {.cli = cli, .opts = o, .id = args[0]};
    enum weir_err rc;

    if (o->attempt == 0)
        return wr_fail(err, WEIR_E_ARG, 0, "--attempt 0: runs are counted from 1");
    l.place.run = o->attempt == CLI_UNSET ? 0 : o->attempt;
    rc = show(&l, err);
    if (!o->raw)
        end_line(&l);
    return rc;
}

const struct cli_cmd cmd_job_logs = {
    .noun = "job",
    .verb = "logs",
    .group = "Look",
    .args = "ID",
    .summary = "what a job printed, also while it runs",
    .examples = "  weir job logs -f 06e5k3...\n"
                "  weir job logs --attempt 1 --raw 06e5k3... > run-1.log\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = logs_options,
    .opts_size = sizeof(struct logs_opts),
    .run = logs_run,
};
