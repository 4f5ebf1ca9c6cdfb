#include "cli/run_wait.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/job_view.h"
#include "cli/run_follow.h"

#define SLICE_MS 5000
#define LOOK_MS 250    /* while it runs */
#define NOBODY_MS 5000 /* until a word about what may be missing */

/* ---- Ctrl-C ---- */

static char farewell[400];

static void
on_interrupt(int sig)
{
    (void)!write(STDERR_FILENO, farewell, strlen(farewell));
    _exit(128 + sig);
}

static void
catch_interrupt(struct cli *cli, const char *id)
{
    struct sigaction action = {.sa_handler = on_interrupt}, before;
    struct wr_buf shown = {0};

    wr_text_escape(&shown, wr_span_str(id));
    if (!cli->globals.quiet)
        snprintf(farewell, sizeof(farewell),
                 "\nweir: the job goes on. Follow it: weir job wait %.260s\n",
                 (const char *)wr_buf_span(&shown).ptr);
    wr_buf_fini(&shown);
    /* Ignored by who started this (nohup, a shell's &): that holds. */
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}

/* ---- its end ---- */

/* The errors are lines "ms outcome text"; the text of the last one. */
static void
last_error(const char *errors, char *out, size_t cap)
{
    size_t len = strlen(errors), begin;
    const char *text;

    while (len > 0 && errors[len - 1] == '\n')
        len--;
    for (begin = len; begin > 0 && errors[begin - 1] != '\n'; begin--)
        continue;
    snprintf(out, cap, "%.*s", (int)(len - begin), errors + begin);
    text = strchr(out, ' ');
    text = text ? strchr(text + 1, ' ') : NULL;
    if (text)
        memmove(out, text + 1, strlen(text + 1) + 1);
}

static int
signal_of(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");

    for (int sig = 1; sig < 65; sig++) {
        const char *known = sigabbrev_np(sig);

        if (known && strlen(known) == len && strncmp(known, name, len) == 0)
            return sig;
    }
    return 0;
}

/* Of a job that is dead, by what its worker said of the last run. */
static int
status_of(const char *error)
{
    int code;

    if (sscanf(error, "exit %d", &code) == 1 && code > 0 && code < 256)
        return code;
    if (strncmp(error, "killed by SIG", 13) == 0 && signal_of(error + 13) != 0)
        return 128 + signal_of(error + 13);
    if (strncmp(error, "timeout", 7) == 0)
        return 124;
    if (strncmp(error, "cannot run ", 11) == 0 && strstr(error, "No such file"))
        return 127;
    if (strncmp(error, "cannot ", 7) == 0 || strncmp(error, "not allowed: ", 13) == 0)
        return 126;
    return 125;
}

static void
print_end(struct cli *cli, const struct weir_job_view *v, bool failed)
{
    struct weir_error why = {0};
    char error[1200];
    const void *bytes;
    size_t len;

    last_error(weir_job_view_errors(v), error, sizeof(error));
    cli->exit_status = failed ? status_of(error) : 0;
    if (cli->format == CLI_OUT_JSON || cli->format == CLI_OUT_JSONL) {
        cli_job_show(cli, v);
    } else if (!failed) {
        bytes = weir_job_view_result(v, &len);
        fwrite(bytes, 1, len, cli->out);
    }
    if (failed) {
        wr_fail(&why, WEIR_E_JOB_FAILED, 0, "job %.60s: %.180s", weir_job_view_id(v),
                error[0] ? error : "it is dead");
        cli->said = false;
        cli_tell(cli, WEIR_E_JOB_FAILED, &why);
    }
}

/* Its error tells: "exit 3: text" has the last line that it wrote. */
static bool
has_printed(const struct weir_job_view *v)
{
    char error[1200];

    if (strcmp(weir_job_view_state(v), "dead") != 0)
        return false;
    last_error(weir_job_view_errors(v), error, sizeof(error));
    return strncmp(error, "exit ", 5) == 0 && strstr(error, ": ");
}

/* ---- while it is not over ---- */

struct wait {
    struct cli *cli;
    const char *id;
    int64_t began_ms, attempts;
    bool later, told_nobody, told_away;
    struct cli_follow follow;
    bool shows; /* what it prints */
};

static void
note_progress(struct wait *w, const struct weir_job_view *v)
{
    const char *state = weir_job_view_state(v);
    struct weir_job_numbers n;
    char error[1200];

    weir_job_view_numbers(v, &n);
    if (n.attempts > w->attempts && (w->cli->err_is_tty || w->cli->globals.verbose)) {
        struct wr_buf shown = {0};

        last_error(weir_job_view_errors(v), error, sizeof(error));
        wr_text_escape(&shown, wr_span_str(error));
        cli_note(w->cli, "attempt %lld of %lld failed: %.300s", (long long)n.attempts,
                 (long long)n.max_retry + 1, (const char *)wr_buf_span(&shown).ptr);
        wr_buf_fini(&shown);
    }
    w->attempts = n.attempts;
    if (!w->told_nobody && !w->later && n.deliveries == 0 &&
        wr_clock_ms() - w->began_ms >= NOBODY_MS && strcmp(state, "processing") != 0) {
        w->told_nobody = true;
        cli_note(w->cli,
                 "no worker has taken job %.100s so far. One that runs commands has "
                 "allow_command_jobs: see weir-run(1). Ctrl-C leaves the job waiting.",
                 w->id);
    }
}

/* The server went away: the job is safe there, so wait on. */
static bool
may_come_back(struct wait *w, enum weir_err rc, const struct weir_error *err)
{
    enum weir_err_kind kind = weir_err_kind_of(rc);

    if (kind != WEIR_KIND_BUSY && kind != WEIR_KIND_UNKNOWN)
        return false;
    if (!w->told_away)
        cli_note(w->cli, "%s; waiting for it", err->text);
    w->told_away = true;
    usleep(500000);
    return true;
}

enum weir_err
cli_run_wait(struct cli *cli, const char *queue, const char *id, bool later,
             struct weir_error *err)
{
    struct wait w = {.cli = cli, .id = id, .began_ms = wr_clock_ms(), .later = later};
    int64_t slice = 200;

    w.follow = (struct cli_follow){.cli = cli, .queue = queue, .id = id};
    w.shows = !cli->globals.quiet && !cli_out_is_json(cli);
    catch_interrupt(cli, id);
    if (cli->err_is_tty || cli->globals.verbose)
        cli_note(cli, "Queued %s → %s", id, queue);
    for (;;) {
        struct weir_job_view *v = NULL;
        enum weir_err rc = weir_result_wait(cli->client, queue, id, slice, &v, err);

        if (rc == WEIR_OK || rc == WEIR_E_JOB_FAILED) {
            if (w.shows)
                cli_follow_end(&w.follow, has_printed(v));
            print_end(cli, v, rc != WEIR_OK);
            weir_job_view_free(v);
            return WEIR_OK;
        }
        if (rc == WEIR_E_TIMEOUT) {
            bool runs = strcmp(weir_job_view_state(v), "processing") == 0;

            if (w.shows && (runs || w.attempts > 0))
                cli_follow_read(&w.follow);
            note_progress(&w, v);
            w.told_away = false;
            if (runs && w.shows)
                slice = LOOK_MS / 2;
        } else if (rc == WEIR_E_NO_JOB) {
            return wr_fail(err, rc, 0, "job %.100s was cancelled or removed", id);
        } else if (!may_come_back(&w, rc, err)) {
            return rc;
        }
        weir_job_view_free(v);
        slice = slice < SLICE_MS ? slice * 2 : SLICE_MS;
    }
}
