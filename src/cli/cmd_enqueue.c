/* enqueue: one job, or the jobs of a file. */
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/bulk.h"
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/job_view.h"
#include "cli/out.h"
#include "cli/payload.h"

#define WAIT_FOR_EVER_MS (INT64_C(1) << 50)

struct enqueue_opts {
    struct cli_job_spec spec;
    const char *from, *progress;
    int64_t batch;
    bool wait, continue_on_error;
};

static const struct cli_opt enqueue_options[] = {
    CLI_JOB_OPTIONS(offsetof(struct enqueue_opts, spec)),
    {"wait", 0, CLI_FLAG, offsetof(struct enqueue_opts, wait), NULL,
     "wait until it ended; the exit status says how"},
    {"from", 0, CLI_TEXT, offsetof(struct enqueue_opts, from), "FILE",
     "jobs of a file (- is stdin), one JSON object a line; flags are its defaults"},
    {"batch", 0, CLI_COUNT, offsetof(struct enqueue_opts, batch), "N",
     "lines sent at once, 1 to 1000; default 1000"},
    {"continue-on-error", 0, CLI_FLAG, offsetof(struct enqueue_opts, continue_on_error),
     NULL, "skip lines that are wrong"},
    {"progress", 0, CLI_MAYBE, offsetof(struct enqueue_opts, progress), "FORM",
     "auto, json or none"},
    {0},
};

/* ---- one job ---- */

static enum weir_err
wait_for(struct cli *cli, const struct weir_job *job, const char *id,
         struct weir_error *err)
{
    struct weir_job_view *v;
    enum weir_err rc;

    fflush(cli->out);
    rc = weir_result_wait(cli->client, job->queue, id, WAIT_FOR_EVER_MS, &v, err);
    if (rc == WEIR_OK && cli_out_is_table(cli))
        cli_job_show(cli, v);
    weir_job_view_free(v);
    return rc;
}

static enum weir_err
enqueue_one(struct cli *cli, const struct enqueue_opts *o, int64_t max_retry,
            char *const *args, struct weir_error *err)
{
    struct weir_enqueued answer = {0};
    struct wr_buf payload = {0};
    struct cli_job j = {0};
    enum weir_err rc = cli_job_make(&o->spec, max_retry, &j, err);

    j.job.type = args[0];
    if (rc == WEIR_OK && !wr_text_is_type(wr_span_str(args[0])))
        rc = wr_fail(err, WEIR_E_ARG, 0, "type: 1 to 128 bytes, no control characters");
    if (rc == WEIR_OK && o->wait && j.job.keep_result_ms == 0)
        rc = wr_fail(err, WEIR_E_ARG, 0,
                     "--wait needs a result that is kept: take "
                     "--keep-result 1m or more");
    if (rc == WEIR_OK)
        rc = cli_payload_read(args[1], &payload, err);
    j.job.payload = wr_buf_span(&payload).ptr;
    j.job.payload_len = payload.len;
    if (rc == WEIR_OK && cli->globals.dry_run)
        cli_note(cli, "Would queue one job of %zu bytes. Nothing was stored.",
                 payload.len);
    else if (rc == WEIR_OK)
        rc = weir_job_enqueue(cli->client, &j.job, &answer, err);
    if (rc == WEIR_OK && !cli->globals.dry_run) {
        cli_job_queued(cli, &j.job, &answer);
        if (o->wait)
            rc = wait_for(cli, &j.job, answer.id.str, err);
    }
    wr_buf_fini(&payload);
    cli_job_fini(&j);
    return rc;
}

static enum weir_err
enqueue_file(struct cli *cli, const struct enqueue_opts *o, int64_t max_retry,
             struct weir_error *err)
{
    struct cli_bulk_options bulk = {
        .file = o->from,
        .progress = o->progress,
        .batch = o->batch == CLI_UNSET ? 1000 : o->batch,
        .continue_on_error = o->continue_on_error,
        .base = &o->spec,
        .max_retry = max_retry,
    };

    if (bulk.batch < 1 || bulk.batch > 1000)
        return wr_fail(err, WEIR_E_ARG, 0, "--batch: from 1 to 1000");
    if (o->spec.id || o->wait)
        return wr_fail(err, WEIR_E_ARG, 0, "--from goes with neither --id nor --wait");
    return cli_bulk(cli, &bulk, err);
}

static enum weir_err
enqueue_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct enqueue_opts *o = opts;
    int64_t max_retry = CLI_UNSET;
    enum weir_err rc = cli_setting_number(cli->settings, CLI_SET_MAX_RETRY, &max_retry,
                                          err);

    if (rc != WEIR_OK)
        return rc;
    /* Nobody said it: the queue's setting goes before ours. */
    if (strcmp(cli_setting_origin(cli->settings, CLI_SET_MAX_RETRY), "built in") == 0)
        max_retry = CLI_UNSET;
    if (o->from && args[0])
        return wr_fail(err, WEIR_E_ARG, 0,
                       "--from takes types and payloads from the file, not as arguments");
    if (o->from)
        return enqueue_file(cli, o, max_retry, err);
    if (!args[0])
        return wr_fail(err, WEIR_E_ARG, 0,
                       "an argument is missing; usage: weir enqueue TYPE "
                       "[PAYLOAD|@FILE|-]");
    return enqueue_one(cli, o, max_retry, args, err);
}

const struct cli_cmd cmd_enqueue = {
    .noun = "enqueue",
    .alias = "push",
    .group = "Produce",
    .args = "TYPE [PAYLOAD|@FILE|-]",
    .summary = "store a job, or the jobs of a file (--from)",
    .examples = "  weir enqueue thumbnail '{\"src\":\"a.jpg\"}'\n"
                "  weir enqueue report @report.json -q mail --in 10m --retry 5\n"
                "  generate | weir enqueue --from - -q import\n",
    .min_args = 0,
    .max_args = 2,
    .needs = CLI_NEEDS_CLIENT,
    .opts = enqueue_options,
    .opts_size = sizeof(struct enqueue_opts),
    .run = enqueue_run,
};
