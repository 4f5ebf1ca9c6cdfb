/* progress, note, heartbeat, extend, snooze, fail, result, token: what a command says
 * from inside its job. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/control.h"

#define RESULT_PATH_MAX 1000
#define STAGE_MAX 64
#define RESULT_FILE "/weir-result-XXXXXX"

static void
add_words(struct wr_buf *line, char *const *words)
{
    for (; *words; words++) {
        wr_buf_add_str(line, " ");
        wr_buf_add_str(line, *words);
    }
}

/* Sends "WORD" and the arguments with blanks between. */
static enum weir_err
send_words(const char *word, char *const *args, struct weir_error *err)
{
    struct wr_buf line = {0};
    enum weir_err rc;

    wr_buf_add_str(&line, word);
    add_words(&line, args);
    rc = cli_control_send(&line, err);
    wr_buf_fini(&line);
    return rc;
}

static enum weir_err
check_duration(const char *what, const char *text, struct weir_error *err)
{
    int64_t ms;

    if (wr_text_duration(text, &ms))
        return WEIR_OK;
    return wr_fail(err, WEIR_E_ARG, 0,
                   "%s: \"%.60s\" is not a duration like 250ms, 15s, 5m, 2h or 3d", what,
                   text);
}

/* "40", "40%", "3/12". */
static bool
is_progress(const char *text)
{
    char part[24];
    size_t len = strcspn(text, "/%");
    int64_t done, all;

    if (len >= sizeof(part))
        return false;
    memcpy(part, text, len);
    part[len] = '\0';
    if (text[len] == '/')
        return wr_text_int(part, 0, INT32_MAX, &done) &&
               wr_text_int(text + len + 1, 1, INT32_MAX, &all) && done <= all;
    return wr_text_int(part, 0, 100, &done) &&
           (text[len] == '\0' || text[len + 1] == '\0');
}

struct progress_opts {
    const char *stage;
};

static const struct cli_opt progress_options[] = {
    {"stage", 0, CLI_TEXT, offsetof(struct progress_opts, stage), "NAME",
     "what the job is at: download, resize"},
    {0},
};

static enum weir_err
progress_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct progress_opts *o = opts;
    struct wr_buf line = {0};
    enum weir_err rc;

    (void)cli;
    if (!is_progress(args[0]))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "progress: \"%.60s\" is neither a percentage from 0 to 100 nor "
                       "like 3/12",
                       args[0]);
    if (o->stage && (!*o->stage || strlen(o->stage) > STAGE_MAX))
        return wr_fail(err, WEIR_E_ARG, 0, "progress: --stage: 1 to %d bytes", STAGE_MAX);
    wr_buf_add_str(&line, "progress ");
    wr_buf_add_str(&line, args[0]);
    if (o->stage) {
        wr_buf_add_str(&line, " stage=");
        wr_text_word_encode(&line, wr_span_str(o->stage));
    }
    add_words(&line, args + 1);
    rc = cli_control_send(&line, err);
    wr_buf_fini(&line);
    return rc;
}

const struct cli_cmd cmd_progress = {
    .noun = "progress",
    .group = "Inside a job",
    .args = "N[/M] [TEXT...]",
    .summary = "how far this job is: percent, or N of M",
    .examples = "  weir progress 40 resizing\n  weir progress 3/12 --stage upload\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_NOTHING,
    .opts = progress_options,
    .opts_size = sizeof(struct progress_opts),
    .run = progress_run,
};

static enum weir_err
note_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    (void)cli;
    (void)opts;
    return send_words("note", args, err);
}

const struct cli_cmd cmd_note = {
    .noun = "note",
    .group = "Inside a job",
    .args = "TEXT...",
    .summary = "a line for this job's log",
    .examples = "  weir note downloaded 12 files\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_NOTHING,
    .run = note_run,
};

static enum weir_err
heartbeat_run(struct cli *cli, const void *opts, char *const *args,
              struct weir_error *err)
{
    (void)cli;
    (void)opts;
    return send_words("heartbeat", args, err);
}

const struct cli_cmd cmd_heartbeat = {
    .noun = "heartbeat",
    .group = "Inside a job",
    .args = "",
    .summary = "this job is alive: its idle timeout begins anew",
    .examples = "  weir heartbeat\n",
    .needs = CLI_NEEDS_NOTHING,
    .run = heartbeat_run,
};

static enum weir_err
extend_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    enum weir_err rc = check_duration("extend", args[0], err);

    (void)cli;
    (void)opts;
    return rc == WEIR_OK ? send_words("extend", args, err) : rc;
}

const struct cli_cmd cmd_extend = {
    .noun = "extend",
    .group = "Inside a job",
    .args = "D",
    .summary = "this run may take so long from now",
    .examples = "  weir extend 10m\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_NOTHING,
    .run = extend_run,
};

static enum weir_err
snooze_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    enum weir_err rc = check_duration("snooze", args[0], err);

    (void)cli;
    (void)opts;
    return rc == WEIR_OK ? send_words("snooze", args, err) : rc;
}

const struct cli_cmd cmd_snooze = {
    .noun = "snooze",
    .group = "Inside a job",
    .args = "D [WHY...]",
    .summary = "not now: when this run has ended, the job waits so long; not charged",
    .examples = "  weir snooze 5m upstream is down; exit\n",
    .min_args = 1,
    .max_args = -1,
    .needs = CLI_NEEDS_NOTHING,
    .run = snooze_run,
};

/* ---- fail ---- */

struct fail_opts {
    int64_t in;
};

static const struct cli_opt fail_options[] = {
    {"in", 0, CLI_DURATION, offsetof(struct fail_opts, in), "D",
     "not for ever: a failed attempt, and again after so long"},
    {0},
};

static enum weir_err
fail_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct fail_opts *o = opts;
    char word[48];

    (void)cli;
    if (o->in == CLI_UNSET)
        return send_words("permanent", args, err);
    snprintf(word, sizeof(word), "retry %lldms", (long long)o->in);
    return send_words(word, args, err);
}

const struct cli_cmd cmd_fail = {
    .noun = "fail",
    .group = "Inside a job",
    .args = "[WHY...]",
    .summary = "when this run has ended the job is dead, whatever the exit status",
    .examples = "  weir fail no such customer; exit\n"
                "  weir fail --in 1h disk is full; exit\n",
    .max_args = -1,
    .needs = CLI_NEEDS_NOTHING,
    .opts = fail_options,
    .opts_size = sizeof(struct fail_opts),
    .run = fail_run,
};

/* ---- result ---- */

static enum weir_err
copy_stdin(int to, const char *path, struct weir_error *err)
{
    char part[65536];
    ssize_t n;

    while ((n = read(STDIN_FILENO, part, sizeof(part))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wr_fail(err, WEIR_E_IO, errno, "standard input");
        for (ssize_t done = 0, m; done < n; done += m) {
            m = write(to, part + done, (size_t)(n - done));
            if (m < 0 && errno != EINTR)
                return wr_fail(err, WEIR_E_IO, errno, "%.150s", path);
            m = m < 0 ? 0 : m;
        }
    }
    return WEIR_OK;
}

/* Standard input into a file of the job's folder, whose path goes to out. */
static enum weir_err
keep_stdin(char *out, size_t cap, struct weir_error *err)
{
    const char *dir = wr_env_first((const char *const[]){"WEIR_TMPDIR", NULL}, NULL);
    enum weir_err rc;
    int fd;

    if (!dir || strlen(dir) + sizeof(RESULT_FILE) > cap)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "result -: this job has no folder (WEIR_TMPDIR): write the result "
                       "to a file and name it");
    snprintf(out, cap, "%s%s", dir, RESULT_FILE);
    fd = mkostemp(out, O_CLOEXEC);
    if (fd < 0)
        return wr_fail(err, WEIR_E_IO, errno, "%.150s", out);
    rc = copy_stdin(fd, out, err);
    if (close(fd) != 0 && rc == WEIR_OK)
        rc = wr_fail(err, WEIR_E_IO, errno, "%.150s", out);
    if (rc != WEIR_OK)
        unlink(out);
    return rc;
}

static enum weir_err
find_file(const char *name, char **out, struct weir_error *err)
{
    size_t len;

    *out = realpath(name, NULL); /* the worker has another working folder */
    if (!*out || access(*out, R_OK) != 0)
        return wr_fail(err, WEIR_E_IO, errno, "result file %.150s", name);
    len = strlen(*out);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)(*out)[i] < 0x20)
            return wr_fail(err, WEIR_E_ARG, 0,
                           "result: a path with control characters cannot be told");
    }
    if (len > RESULT_PATH_MAX || (*out)[len - 1] == ' ')
        return wr_fail(err, WEIR_E_ARG, 0,
                       "result: a path of at most %d bytes, no blank at its end",
                       RESULT_PATH_MAX);
    return WEIR_OK;
}

static enum weir_err
result_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    char kept[PATH_MAX], *path = NULL;
    const char *name = args[0];
    enum weir_err rc = cli_control_check(err);

    (void)cli;
    (void)opts;
    if (rc == WEIR_OK && strcmp(name, "-") == 0) {
        rc = keep_stdin(kept, sizeof(kept), err);
        name = kept;
    }
    if (rc == WEIR_OK)
        rc = find_file(name, &path, err);
    if (rc == WEIR_OK)
        rc = send_words("result-file", (char *const[]){path, NULL}, err);
    free(path);
    return rc;
}

const struct cli_cmd cmd_result = {
    .noun = "result",
    .group = "Inside a job",
    .args = "FILE|-",
    .summary =
        "this file, as it is when the run ends, is the result; not standard output",
    .examples = "  weir result out.png\n  make-report | weir result -\n",
    .min_args = 1,
    .max_args = 1,
    .needs = CLI_NEEDS_NOTHING,
    .run = result_run,
};

/* ---- token ---- */

static enum weir_err
token_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const char *key = wr_env_first((const char *const[]){"WEIR_IDEMPOTENCY_KEY", NULL},
                                   NULL);

    (void)opts;
    (void)args;
    if (!key)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "this works only inside a job: WEIR_IDEMPOTENCY_KEY is not set");
    fprintf(cli->out, "%s\n", key);
    return WEIR_OK;
}

const struct cli_cmd cmd_token = {
    .noun = "token",
    .group = "Inside a job",
    .args = "",
    .summary = "a word that is the same in every run of this job, for calls of others",
    .examples = "  curl -H \"Idempotency-Key: $(weir token)\" ...\n",
    .needs = CLI_NEEDS_NOTHING,
    .run = token_run,
};
