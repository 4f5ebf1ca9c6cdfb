/* run: a command as a job. It waits for its end and ends as the command did. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/job_spec.h"
#include "cli/payload.h"
#include "cli/run_wait.h"
#include "command/sign.h"

#define FAILED 125 /* weir, not the command: as env, timeout and docker run say it */
#define SIGNED_FOR_MS (INT64_C(7) * 86400 * 1000)

struct run_opts {
    struct cli_job_spec spec;
    struct cli_list env;
    const char *cwd, *input, *name;
    int64_t signed_for;
    bool detach, wait, shell;
};

static const struct cli_opt run_options[] = {
    CLI_JOB_OPTIONS(offsetof(struct run_opts, spec)),
    {"detach", 0, CLI_FLAG, offsetof(struct run_opts, detach), NULL,
     "print the id and do not wait"},
    {"wait", 0, CLI_FLAG, offsetof(struct run_opts, wait), NULL,
     "wait for its end, which is the default"},
    {"stdin", 0, CLI_MAYBE, offsetof(struct run_opts, input), "FILE",
     "what is on standard input here, or the file, is its standard input"},
    {"env", 0, CLI_LIST, offsetof(struct run_opts, env), "K[=V]",
     "a variable for it; without a value, as it is here"},
    {"cwd", 0, CLI_TEXT, offsetof(struct run_opts, cwd), "DIR",
     "its working folder, there; default a private one"},
    {"shell", 0, CLI_FLAG, offsetof(struct run_opts, shell), NULL,
     "the command is one line for /bin/sh"},
    {"name", 0, CLI_TEXT, offsetof(struct run_opts, name), "LABEL",
     "for people: stored as the meta field name"},
    {"signed-for", 0, CLI_DURATION, offsetof(struct run_opts, signed_for), "D",
     "how long after its start a signature holds; default 7d"},
    {0},
};

/* ---- the command ---- */

static enum weir_err
choose_argv(struct cli *cli, const struct run_opts *o, const char **shell,
            struct wr_command *out, struct weir_error *err)
{
    char *const *words = cli->command;

    if (!words || !words[0] || words[0][0] == '\0')
        return wr_fail(err, WEIR_E_ARG, 0,
                       "no command: weir run [FLAGS] -- CMD [ARG...]");
    if (o->shell && words[1])
        return wr_fail(err, WEIR_E_ARG, 0, "--shell takes one word: the line, in quotes");
    shell[0] = "/bin/sh";
    shell[1] = "-c";
    shell[2] = words[0];
    shell[3] = "weir-job";
    shell[4] = NULL;
    out->argv = o->shell ? shell : (const char *const *)words;
    while (out->argv[out->argc])
        out->argc++;
    return WEIR_OK;
}

/* NAME=VALUE, or the NAME of a variable here. */
static enum weir_err
choose_env(const struct run_opts *o, char **env, struct wr_command *out,
           struct weir_error *err)
{
    for (size_t i = 0; i < o->env.n; i++) {
        const char *text = o->env.items[i], *value = NULL;
        size_t len = strcspn(text, "=");
        struct wr_buf pair = {0};

        if (!wr_command_is_name(text, len))
            return wr_fail(err, WEIR_E_ARG, 0, "env: \"%.60s\" is not NAME=VALUE", text);
        if (strncmp(text, "WEIR_", 5) == 0)
            return wr_fail(err, WEIR_E_ARG, 0,
                           "env: names that begin with WEIR_ are the "
                           "worker's");
        if (text[len] == '=')
            value = text + len + 1;
        else
            value = getenv(text);
        if (!value)
            return wr_fail(err, WEIR_E_ARG, 0, "env: there is no variable %.60s here",
                           text);
        wr_buf_addf(&pair, "%.*s=%s", (int)len, text, value);
        if (pair.failed)
            cli_out_of_memory();
        env[i] = pair.ptr;
        out->envc++;
    }
    out->env = (const char *const *)env;
    return WEIR_OK;
}

static enum weir_err
read_input(const struct run_opts *o, struct wr_buf *input, struct weir_error *err)
{
    if (!o->input)
        return WEIR_OK;
    return cli_payload_file(*o->input ? o->input : "-", input, err);
}

/* With a key, its signature holds for this id, in this queue, until then. */
static enum weir_err
make_payload(struct cli *cli, const struct run_opts *o, const struct weir_job *job,
             struct wr_command *c, struct wr_buf *payload, struct weir_error *err)
{
    const char *path = cli_setting(cli->settings, CLI_SET_SIGNATURE_KEY);
    int64_t hold = o->signed_for == CLI_UNSET ? SIGNED_FOR_MS : o->signed_for;
    char sign[WR_COMMAND_SIGN_LEN + 1] = "";
    struct wr_buf written = {0};
    struct wr_keys *keys = NULL;
    enum weir_err rc = WEIR_OK;

    if (path) {
        rc = wr_keys_read(path, &keys, err);
        c->until_ms = (job->at_ms ? job->at_ms : wr_clock_wall_ms() + job->delay_ms) +
                      hold;
    }
    if (rc == WEIR_OK && (!wr_command_write(c, &written) ||
                          (keys && !wr_command_sign(keys, job->queue, job->id,
                                                    wr_buf_span(&written), sign)) ||
                          !wr_command_finish(wr_buf_span(&written), sign, payload)))
        cli_out_of_memory();
    wr_keys_free(keys);
    wr_buf_fini(&written);
    return rc;
}

/* ---- the job ---- */

static enum weir_err
check(const struct run_opts *o, char *const *args, struct weir_error *err)
{
    if (args[0])
        return wr_fail(err, WEIR_E_ARG, 0,
                       "\"%.60s\": the command comes after --, as in weir run -- ls -l",
                       args[0]);
    if (o->detach && o->wait)
        return wr_fail(err, WEIR_E_ARG, 0, "--detach and --wait: give one of them");
    if (!o->detach && o->spec.keep_result == 0)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "waiting needs a result that is kept: take --keep-result 1m or "
                       "more, or --detach");
    if (o->cwd && o->cwd[0] != '/')
        return wr_fail(err, WEIR_E_ARG, 0,
                       "cwd: an absolute path, on the worker's machine");
    if (o->signed_for == 0)
        return wr_fail(err, WEIR_E_ARG, 0, "--signed-for: more than 0");
    return WEIR_OK;
}

static enum weir_err
enqueue(struct cli *cli, const struct run_opts *o, struct weir_job *job,
        struct weir_error *err)
{
    struct weir_enqueued answer = {0};
    enum weir_err rc;

    if (cli->globals.dry_run) {
        cli_note(cli, "Would queue one command of %zu bytes. Nothing was stored.",
                 job->payload_len);
        return WEIR_OK;
    }
    rc = weir_job_enqueue(cli->client, job, &answer, err);
    if (rc != WEIR_OK)
        return rc;
    if (o->detach) {
        cli_job_queued(cli, job, &answer);
        return WEIR_OK;
    }
    return cli_run_wait(cli, job->queue, answer.id.str, job->delay_ms || job->at_ms, err);
}

static enum weir_err
make_job(struct cli *cli, const struct run_opts *o, struct cli_job *j, char id[],
         struct wr_buf *payload, struct weir_error *err)
{
    char **env = cli_alloc((o->env.n + 1) * sizeof(*env));
    struct wr_command c = {.cwd = o->cwd};
    struct wr_buf input = {0};
    const char *shell[5];
    enum weir_err rc = choose_argv(cli, o, shell, &c, err);

    if (rc == WEIR_OK)
        rc = choose_env(o, env, &c, err);
    if (rc == WEIR_OK)
        rc = read_input(o, &input, err);
    c.input = wr_buf_span(&input);
    if (rc == WEIR_OK && !j->job.id) {
        wr_id_make(id);
        j->job.id = id;
    }
    if (rc == WEIR_OK)
        rc = make_payload(cli, o, &j->job, &c, payload, err);
    for (size_t i = 0; i < o->env.n; i++)
        free(env[i]);
    free(env);
    wr_buf_fini(&input);
    return rc;
}

/* The meta field of --name is one more --meta. */
static struct cli_job_spec
spec_with_name(const struct run_opts *o, char **text)
{
    struct cli_job_spec spec = o->spec;
    struct wr_buf pair = {0};

    if (!o->name)
        return spec;
    wr_buf_addf(&pair, "name=%s", o->name);
    if (pair.failed)
        cli_out_of_memory();
    *text = pair.ptr;
    spec.meta.items = cli_alloc((spec.meta.n + 1) * sizeof(*spec.meta.items));
    for (size_t i = 0; i < spec.meta.n; i++)
        spec.meta.items[i] = o->spec.meta.items[i];
    spec.meta.items[spec.meta.n++] = pair.ptr;
    return spec;
}

static enum weir_err
run_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct run_opts *o = opts;
    char id[WR_ID_LEN + 1], *name = NULL;
    struct cli_job_spec spec = spec_with_name(o, &name);
    int64_t max_retry = CLI_UNSET;
    struct wr_buf payload = {0};
    struct cli_job j = {0};
    enum weir_err rc = check(o, args, err);

    if (rc == WEIR_OK)
        rc = cli_setting_number(cli->settings, CLI_SET_MAX_RETRY, &max_retry, err);
    if (rc == WEIR_OK)
        rc = cli_job_make(&spec, max_retry, &j, err);
    if (rc == WEIR_OK)
        rc = make_job(cli, o, &j, id, &payload, err);
    j.job.type = WR_COMMAND_TYPE;
    j.job.payload = wr_buf_span(&payload).ptr;
    j.job.payload_len = payload.len;
    if (rc == WEIR_OK)
        rc = enqueue(cli, o, &j.job, err);
    if (rc != WEIR_OK && o->detach) /* it is like weir enqueue then */
        cli->exit_status = weir_err_exit_status(rc);
    wr_buf_fini(&payload);
    cli_job_fini(&j);
    if (name)
        free(spec.meta.items);
    free(name);
    return rc;
}

const struct cli_cmd cmd_run = {
    .noun = "run",
    .group = "Produce",
    .args = "-- CMD [ARG...]",
    .summary = "a command as a job: wait for its end, print its output, exit as it did",
    .examples =
        "  weir run -- make -C /srv/site\n"
        "  weir run -q batch --retry 5 --timeout 2h --detach -- ./import big.csv\n"
        "  weir run --stdin -- sort < lines\n",
    .min_args = 0,
    .max_args = -1,
    .takes_command = true,
    .needs = CLI_NEEDS_CLIENT,
    .failure_status = FAILED,
    .opts = run_options,
    .opts_size = sizeof(struct run_opts),
    .run = run_run,
};
