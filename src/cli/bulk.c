#include "cli/bulk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/progress.h"

#define LINE_MAX_BYTES (128 * 1024 * 1024)
#define HELD_MAX_BYTES (4 * 1024 * 1024) /* of lines in one batch */

struct bulk {
    struct cli *cli;
    const struct cli_bulk_options *o;
    const char *name; /* of the file, for messages */
    FILE *f;
    int64_t whole, taken; /* bytes */
    size_t line;          /* the number of the last one read */

    struct cli_job *jobs;
    struct weir_job *send;
    struct weir_enqueued *answers;
    size_t *lines; /* where each job comes from */
    size_t n, held;

    size_t stored, existed, refused;
    enum weir_err first; /* of the refused ones */
    struct cli_progress progress;
};

static void
tell_line(struct bulk *b, size_t line, enum weir_err rc, const char *why)
{
    struct wr_buf shown = {0};

    cli_progress_end(&b->progress);
    fflush(b->cli->out);
    wr_text_escape(&shown, wr_span_str(why));
    fprintf(stderr, "%s:%zu: %s  [%s]\n", b->name, line,
            (const char *)wr_buf_span(&shown).ptr, weir_err_name(rc));
    wr_buf_fini(&shown);
    b->refused++;
    if (b->first == WEIR_OK)
        b->first = rc;
}

static void
print_stored(struct bulk *b, size_t i)
{
    const struct weir_enqueued *a = &b->answers[i];
    struct cli *cli = b->cli;

    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "id", a->id.str);
        cli_json_int(json, "line", (int64_t)b->lines[i]);
        cli_json_bool(json, "existed", a->existed);
        cli_json_bool(json, "replaced", a->replaced);
        cli_json_print(json, cli->out);
        cli_json_free(json);
    } else if (!cli_out_is_table(cli)) {
        cli_print_id(cli, a->id.str);
        fputc('\n', cli->out);
    }
}

static void
why_refused(const struct weir_enqueued *a, char *out, size_t cap)
{
    if (a->detail[0] && a->code == WEIR_E_EXISTS)
        snprintf(out, cap, "another job \"%s\" exists, and is %s", a->id.str, a->detail);
    else if (a->detail[0] && a->code == WEIR_E_UNIQUE)
        snprintf(out, cap, "its unique key is held by %s", a->detail);
    else if (a->detail[0] && a->code == WEIR_E_TOO_BIG)
        snprintf(out, cap, "its payload is over the queue's limit of %s bytes",
                 a->detail);
    else
        snprintf(out, cap, "%s", weir_err_text(a->code));
}

/* True when the answer is about this one job, and not about the whole call. */
static bool
is_refused(enum weir_err code)
{
    return weir_err_kind_of(code) == WEIR_KIND_STATE ||
           weir_err_kind_of(code) == WEIR_KIND_USAGE;
}

/* Sends what is held. Answers that concern one job are told here. */
static enum weir_err
send_held(struct bulk *b, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;
    char why[600];

    if (b->n > 0 && !b->cli->globals.dry_run)
        rc = weir_job_enqueue_many(b->cli->client, b->send, b->n, b->answers, err);
    for (size_t i = 0; i < b->n && !b->cli->globals.dry_run; i++) {
        const struct weir_enqueued *a = &b->answers[i];

        if (a->code == WEIR_OK) {
            b->stored += !a->existed;
            b->existed += a->existed;
            print_stored(b, i);
        } else if (is_refused(a->code)) {
            why_refused(a, why, sizeof(why));
            tell_line(b, b->lines[i], a->code, why);
        }
    }
    for (size_t i = 0; i < b->n; i++)
        cli_job_fini(&b->jobs[i]);
    b->n = b->held = 0;
    cli_progress_show(&b->progress, (int64_t)(b->stored + b->existed), b->taken,
                      b->whole);
    return is_refused(rc) ? WEIR_OK : rc;
}

/* Reads a line without its newline. False at the end of the file or on failure. */
static bool
read_line(struct bulk *b, struct wr_buf *line, struct weir_error *err, enum weir_err *rc)
{
    char *room = wr_buf_room(line, 4096);
    size_t cap = 4096;
    int c;

    wr_buf_clear(line);
    while (room && (c = getc_unlocked(b->f)) != EOF && c != '\n') {
        if (line->len + 1 >= cap) {
            cap = cap * 2;
            room = wr_buf_room(line, cap - line->len);
        }
        if (!room || line->len >= LINE_MAX_BYTES)
            break;
        line->ptr[line->len++] = (char)c;
        b->taken++;
    }
    if (!room)
        cli_out_of_memory();
    b->line++;
    b->taken++;
    if (line->len >= LINE_MAX_BYTES)
        *rc = wr_fail(err, WEIR_E_DATA, 0, "%s:%zu: a line over 128 MiB", b->name,
                      b->line);
    else if (ferror(b->f))
        *rc = wr_fail(err, WEIR_E_IO, errno, "%s", b->name);
    return *rc == WEIR_OK && (line->len > 0 || !feof(b->f));
}

static bool
is_blank(const struct wr_buf *line)
{
    for (size_t i = 0; i < line->len; i++) {
        if (!strchr(" \t\r", line->ptr[i]) || line->ptr[i] == '\0')
            return false;
    }
    return true;
}

/* Holds the job of a line. A wrong line is told; without --continue-on-error that ends
 * the run: E_DATA. */
static enum weir_err
take_line(struct bulk *b, const struct wr_buf *line, struct weir_error *err)
{
    struct cli_job *j = &b->jobs[b->n];
    enum weir_err rc;

    if (is_blank(line))
        return WEIR_OK;
    rc = cli_job_read(line->ptr, line->len, b->o->base, b->o->max_retry, j, err);
    if (rc != WEIR_OK) {
        struct weir_error why = *err;

        cli_job_fini(j);
        /* First what comes before it, so that the messages are in order. */
        if (send_held(b, err) == WEIR_OK)
            tell_line(b, b->line, rc, why.text);
        return b->o->continue_on_error ? WEIR_OK : rc;
    }
    b->send[b->n] = j->job;
    b->lines[b->n] = b->line;
    b->held += line->len;
    b->n++;
    return WEIR_OK;
}

static enum weir_err
read_all(struct bulk *b, struct weir_error *err)
{
    struct wr_buf line = {0};
    enum weir_err rc = WEIR_OK;

    while (rc == WEIR_OK && read_line(b, &line, err, &rc)) {
        rc = take_line(b, &line, err);
        if (rc == WEIR_OK && (b->n == (size_t)b->o->batch || b->held > HELD_MAX_BYTES))
            rc = send_held(b, err);
        if (rc == WEIR_OK && b->refused > 0 && !b->o->continue_on_error)
            rc = b->first;
    }
    if (rc == WEIR_OK)
        rc = send_held(b, err);
    wr_buf_fini(&line);
    return rc;
}

static void
sum_up(struct bulk *b)
{
    size_t readable = b->line - (b->line > 0) - b->refused;

    if (b->cli->globals.dry_run)
        cli_note(b->cli, "%zu line%s can be read, %zu cannot. Nothing was stored.",
                 readable, wr_text_s((int64_t)readable), b->refused);
    else if (b->refused > 0 || cli_out_is_table(b->cli))
        cli_note(b->cli, "%zu job%s stored, %zu there before, %zu refused.", b->stored,
                 wr_text_s((int64_t)b->stored), b->existed, b->refused);
}

static enum weir_err
open_file(struct bulk *b, struct weir_error *err)
{
    struct stat st;

    b->name = b->o->file;
    b->f = stdin;
    if (strcmp(b->name, "-") != 0)
        b->f = fopen(b->name, "re");
    else
        b->name = "stdin";
    if (!b->f)
        return wr_fail(err, WEIR_E_IO, errno, "%.200s", b->name);
    if (fstat(fileno(b->f), &st) == 0 && S_ISREG(st.st_mode))
        b->whole = st.st_size;
    return WEIR_OK;
}

enum weir_err
cli_bulk(struct cli *cli, const struct cli_bulk_options *o, struct weir_error *err)
{
    struct bulk b = {.cli = cli, .o = o};
    size_t n = (size_t)o->batch;
    enum weir_err rc = cli_progress_init(&b.progress, cli, o->progress, "jobs", err);

    if (rc == WEIR_OK)
        rc = open_file(&b, err);
    if (rc != WEIR_OK)
        return rc;
    b.jobs = cli_alloc(n * sizeof(*b.jobs));
    b.send = cli_alloc(n * sizeof(*b.send));
    b.answers = cli_alloc(n * sizeof(*b.answers));
    b.lines = cli_alloc(n * sizeof(*b.lines));
    rc = read_all(&b, err);
    for (size_t i = 0; i < b.n; i++)
        cli_job_fini(&b.jobs[i]);
    cli_progress_end(&b.progress);
    if (b.refused > 0 && (rc == WEIR_OK || is_refused(rc))) {
        rc = b.first;
        cli->said = true;
    }
    sum_up(&b);
    free(b.jobs);
    free(b.send);
    free(b.answers);
    free(b.lines);
    if (b.f != stdin)
        fclose(b.f);
    return rc;
}
