/* dead retry, dead purge: what becomes of the jobs that were given up. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/queues.h"

#define SLICE 100 /* a few ms of the server: others shall not notice */

struct dead_opts {
    struct cli_list queues;
    bool all;
    int64_t limit, before;
    const char *rate;
};

static const struct cli_opt dead_options[] = {
    {"queue", 'q', CLI_LIST, offsetof(struct dead_opts, queues), "Q",
     "only this queue; with --all it may be repeated"},
    {"all", 0, CLI_FLAG, offsetof(struct dead_opts, all), NULL,
     "every job that is dead now"},
    {"limit", 0, CLI_COUNT, offsetof(struct dead_opts, limit), "N",
     "with --all: the N oldest of each queue"},
    {"rate", 0, CLI_TEXT, offsetof(struct dead_opts, rate), "N/s",
     "with --all: no more than so many a second (or /m, /h)"},
    {"before", 0, CLI_TIME, offsetof(struct dead_opts, before), "T",
     "with --all: only those that died before this time"},
    {0},
};

/* The two commands differ in these. */
struct verb {
    const char *will, *did; /* "retry", "retried" */
    enum weir_err (*one)(struct weir_client *client, const char *queue, const char *id,
                         struct weir_error *err);
    enum weir_err (*page)(struct weir_client *client, const char *queue, size_t limit,
                          int64_t before_ms, size_t *skip, bool *more, size_t *moved,
                          struct weir_error *err);
};

/* Every dead job can be purged. */
static enum weir_err
purge_page(struct weir_client *client, const char *queue, size_t limit, int64_t before_ms,
           size_t *skip, bool *more, size_t *moved, struct weir_error *err)
{
    enum weir_err rc = weir_dead_purge_all(client, queue, limit, before_ms, moved, err);

    (void)skip;
    *more = *moved > 0;
    return rc;
}

static const struct verb retry = {"retry", "retried", weir_dead_replay,
                                  weir_dead_replay_page};
static const struct verb purge = {"purge", "purged", weir_dead_purge, purge_page};

struct deciding {
    const struct verb *verb;
    const char *queue;
};

static void
print_one(struct cli *cli, const char *id, const char *word)
{
    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "id", id);
        cli_json_text(json, "result", word);
        cli_json_print(json, cli->out);
        cli_json_free(json);
        return;
    }
    cli_print_id(cli, id);
    if (cli->format != CLI_OUT_ID)
        fprintf(cli->out, "\t%s", word);
    fputc('\n', cli->out);
}

static enum weir_err
decide_one(struct cli *cli, const char *id, void *context, struct weir_error *err)
{
    const struct deciding *d = context;
    struct weir_job_view *v;
    enum weir_err rc;

    if (!cli->globals.dry_run) {
        rc = d->verb->one(cli->client, d->queue, id, err);
        if (rc == WEIR_OK)
            print_one(cli, id, d->verb->did);
        return rc;
    }
    rc = weir_job_inspect(cli->client, d->queue, id, &v, err);
    if (rc == WEIR_OK && strcmp(weir_job_view_state(v), "dead") != 0)
        rc = wr_fail(err, WEIR_E_WRONG_STATE, 0, "job %.100s is not dead, it is %s", id,
                     weir_job_view_state(v));
    if (rc == WEIR_OK)
        print_one(cli, id, "dead");
    weir_job_view_free(v);
    return rc;
}

/* ---- all ---- */

struct plan {
    struct cli_names queues;
    int64_t *counts;
    int64_t *before; /* by the server's clock: what dies later is left alone */
    int64_t sum;
    double per_ms; /* --rate; 0: as fast as it goes */
    int64_t begin_ms;
};

/* "500/s", "30/m", "500" (a second). */
static enum weir_err
read_rate(const char *text, double *per_ms, struct weir_error *err)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1000}, {"/s", 1000}, {"/m", 60000}, {"/h", 3600000}};
    char *end;
    long n;

    *per_ms = 0;
    if (!text)
        return WEIR_OK;
    n = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;
    for (size_t i = 0; n > 0 && n <= 1000000 && i < sizeof(units) / sizeof(units[0]);
         i++) {
        if (strcmp(end, units[i].unit) == 0)
            *per_ms = (double)n / units[i].ms;
    }
    if (*per_ms > 0)
        return WEIR_OK;
    return wr_fail(err, WEIR_E_ARG, 0,
                   "--rate: \"%.40s\" is not like 500/s, 30/m or 10/h", text);
}

static enum weir_err
make_plan(struct cli *cli, const struct dead_opts *o, struct plan *p,
          struct weir_error *err)
{
    enum weir_err rc = read_rate(o->rate, &p->per_ms, err);

    if (rc == WEIR_OK)
        rc = cli_queues(cli, &o->queues, &p->queues, err);
    if (rc != WEIR_OK)
        return rc;
    p->counts = cli_alloc(p->queues.n * sizeof(*p->counts));
    p->before = cli_alloc(p->queues.n * sizeof(*p->before));
    for (size_t i = 0; i < p->queues.n && rc == WEIR_OK; i++) {
        struct weir_audit a = {0};

        rc = weir_queue_audit(cli->client, p->queues.names[i], &a, err);
        p->counts[i] = o->limit != CLI_UNSET && o->limit < a.dead ? o->limit : a.dead;
        p->before[i] = o->before != CLI_UNSET && o->before < a.now ? o->before : a.now;
        p->sum += p->counts[i];
    }
    return rc;
}

static volatile sig_atomic_t interrupted;

static void
on_interrupt(int signal)
{
    interrupted = signal;
}

static void
catch_interrupts(bool on)
{
    struct sigaction action = {.sa_handler = on ? on_interrupt : SIG_DFL};

    interrupted = on ? 0 : interrupted;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* How many may go now; waits until one may. A slice is a tenth of a second's worth. */
static size_t
pace(const struct plan *p, int64_t total)
{
    double slice = p->per_ms * 100;
    int64_t wait;

    if (p->per_ms <= 0)
        return SLICE;
    wait = p->begin_ms + (int64_t)((double)total / p->per_ms) - wr_clock_ms();
    while (wait > 0 && !interrupted) {
        poll(NULL, 0, wait < 200 ? (int)wait : 200);
        wait = p->begin_ms + (int64_t)((double)total / p->per_ms) - wr_clock_ms();
    }
    return slice < 1 ? 1 : slice < SLICE ? (size_t)slice : SLICE;
}

static enum weir_err
decide_queue(struct cli *cli, const struct verb *verb, const struct plan *p, size_t i,
             int64_t *total, struct cli_progress *progress, struct weir_error *err)
{
    int64_t left = p->counts[i];
    size_t skip = 0, moved;
    bool more = true;
    enum weir_err rc = WEIR_OK;

    while (rc == WEIR_OK && more && left > 0) {
        size_t limit = pace(p, *total);

        if (interrupted)
            break;
        limit = left < (int64_t)limit ? (size_t)left : limit;
        rc = verb->page(cli->client, p->queues.names[i], limit, p->before[i], &skip,
                        &more, &moved, err);
        left -= (int64_t)moved;
        *total += (int64_t)moved;
        cli_progress_show(progress, *total, *total, p->sum);
    }
    return rc;
}

/* A slice is done or not, so nothing is half done. Ends as the signal ends a program. */
static void
end_interrupted(struct cli *cli, const struct verb *verb, const struct plan *p,
                int64_t total)
{
    bool one = p->queues.n == 1;
    char when[32];

    wr_text_show_time(p->before[0], when);
    cli_note(
        cli,
        "Interrupted: %lld of %lld job%s %s. The rest: weir dead %s --all%s%s --before "
        "%s",
        (long long)total, (long long)p->sum, wr_text_s(p->sum), verb->did, verb->will,
        one ? " -q " : "", one ? p->queues.names[0] : "", when);
    fflush(cli->out);
    raise(interrupted);
}

static void
print_total(struct cli *cli, const struct verb *verb, int64_t total)
{
    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_int(json, verb->did, total);
        cli_json_print(json, cli->out);
        cli_json_free(json);
    } else if (cli_out_is_table(cli)) {
        fprintf(cli->out, "%lld job%s %s.\n", (long long)total, wr_text_s(total),
                verb->did);
    } else {
        fprintf(cli->out, "%lld\n", (long long)total);
    }
}

static enum weir_err
carry_out(struct cli *cli, const struct verb *verb, struct plan *p,
          struct weir_error *err)
{
    struct cli_progress progress;
    int64_t total = 0;
    enum weir_err rc = cli_progress_init(&progress, cli, NULL, verb->did, err);

    p->begin_ms = wr_clock_ms();
    catch_interrupts(true);
    for (size_t i = 0; i < p->queues.n && rc == WEIR_OK && !interrupted; i++)
        rc = decide_queue(cli, verb, p, i, &total, &progress, err);
    catch_interrupts(false);
    cli_progress_end(&progress);
    if (interrupted)
        end_interrupted(cli, verb, p, total);
    if (rc == WEIR_OK)
        print_total(cli, verb, total);
    else if (total > 0)
        cli_note(cli, "%lld job%s %s before this failed.", (long long)total,
                 wr_text_s(total), verb->did);
    return rc;
}

static enum weir_err
decide_all(struct cli *cli, const struct verb *verb, const struct dead_opts *o,
           struct weir_error *err)
{
    struct plan p = {0};
    enum weir_err rc = make_plan(cli, o, &p, err);

    if (rc == WEIR_OK && cli->globals.dry_run) {
        cli_note(cli, "Would %s %lld job%s. Nothing changed.", verb->will,
                 (long long)p.sum, wr_text_s(p.sum));
        print_total(cli, verb, 0);
    } else if (rc == WEIR_OK) {
        if (p.sum > 0)
            rc = cli_confirm(cli, err, "This will %s %lld dead job%s of %zu queue%s.",
                             verb->will, (long long)p.sum, wr_text_s(p.sum), p.queues.n,
                             wr_text_s((int64_t)p.queues.n));
        if (rc == WEIR_OK)
            rc = carry_out(cli, verb, &p, err);
    }
    cli_names_fini(&p.queues);
    free(p.counts);
    free(p.before);
    return rc;
}

static enum weir_err
decide(struct cli *cli, const struct verb *verb, const struct dead_opts *o,
       char *const *args, struct weir_error *err)
{
    struct deciding d = {verb, o->queues.n > 0 ? o->queues.items[0] : NULL};

    if (!o->all && (o->rate || o->before != CLI_UNSET))
        return wr_fail(err, WEIR_E_ARG, 0, "--rate and --before go with --all");
    if (o->all && args[0])
        return wr_fail(err, WEIR_E_ARG, 0, "ids or --all: give one of them");
    if (o->all)
        return decide_all(cli, verb, o, err);
    if (!args[0])
        return wr_fail(err, WEIR_E_ARG, 0,
                       "an argument is missing; usage: weir dead %s ID...|--all",
                       verb->will);
    if (o->queues.n > 1)
        return wr_fail(err, WEIR_E_ARG, 0, "--queue: one at most, with ids");
    return cli_each_id(cli, args, decide_one, &d, err);
}

static enum weir_err
retry_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    return decide(cli, &retry, opts, args, err);
}

static enum weir_err
purge_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    return decide(cli, &purge, opts, args, err);
}

const struct cli_cmd cmd_dead_retry = {
    .noun = "dead",
    .verb = "retry",
    .group = "Decide",
    .args = "ID...|--all",
    .summary = "give dead jobs a new life",
    .examples = "  weir dead retry 06e5k3...\n  weir dead retry --all -q mail --yes "
                "--rate 500/s\n",
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = dead_options,
    .opts_size = sizeof(struct dead_opts),
    .run = retry_run,
};

const struct cli_cmd cmd_dead_purge = {
    .noun = "dead",
    .verb = "purge",
    .group = "Decide",
    .args = "ID...|--all",
    .summary = "remove dead jobs for good",
    .examples =
        "  weir dead purge 06e5k3...\n  weir dead purge --all -q mail --dry-run\n",
    .max_args = -1,
    .needs = CLI_NEEDS_CLIENT,
    .opts = dead_options,
    .opts_size = sizeof(struct dead_opts),
    .run = purge_run,
};
