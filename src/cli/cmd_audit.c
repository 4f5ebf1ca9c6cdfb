/* audit: the proof that nothing was lost. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/queues.h"

struct audit_opts {
    struct cli_list queues;
    bool deep, repair;
};

static const struct cli_opt audit_options[] = {
    {"queue", 'q', CLI_LIST, offsetof(struct audit_opts, queues), "Q",
     "only this queue; may be repeated"},
    {"deep", 0, CLI_FLAG, offsetof(struct audit_opts, deep), NULL,
     "also look at every job: each in one place, each with a body"},
    {"repair", 0, CLI_FLAG, offsetof(struct audit_opts, repair), NULL,
     "first put right what was done to a stream by hand; then as --deep"},
    {0},
};

/* What the deep walk found in one queue. */
struct findings {
    struct cli *cli;
    const char *queue;
    struct cli_json *array;   /* NULL: they are printed */
    struct cli_json *repairs; /* what was put right; NULL: printed, or not asked for */
    size_t n;
};

static void
tell_finding(const struct findings *f, struct cli_json *array, const char *kind,
             const char *id, const char *detail)
{
    if (array) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "kind", kind);
        cli_json_text(json, "id", id);
        cli_json_text(json, "detail", detail);
        cli_json_append(array, json);
        return;
    }
    fflush(f->cli->out);
    cli_note(f->cli, "%s: %s %s %s", f->queue, kind, id, detail);
}

static bool
take_finding(const char *kind, const char *id, const char *detail, void *context)
{
    struct findings *f = context;

    f->n++;
    tell_finding(f, f->array, kind, id, detail);
    return true;
}

/* What a repair leaves is what --deep finds after it. */
static bool
take_repair(const char *kind, const char *id, const char *detail, void *context)
{
    static const char left[] = "left: ";
    struct findings *f = context;

    if (strncmp(detail, left, strlen(left)) == 0)
        return take_finding(kind, id, detail + strlen(left), f);
    tell_finding(f, f->repairs, kind, id, detail);
    return true;
}

static enum weir_err
repair_queue(struct findings *f, struct weir_error *err)
{
    struct weir_repair r;
    enum weir_err rc = weir_queue_repair(f->cli->client, f->queue, take_repair, f, &r,
                                         err);

    if (rc == WEIR_OK && !f->repairs && r.mended + r.left + r.booked > 0)
        cli_note(f->cli, "%s: %lld put right, %lld left, %lld deliver%s booked", f->queue,
                 (long long)r.mended, (long long)r.left, (long long)r.booked,
                 r.booked == 1 ? "y" : "ies");
    return rc;
}

static void
print_json(struct cli *cli, const char *queue, const struct weir_audit *a,
           struct findings *f)
{
    /* clang-format off */
    const struct { const char *key; int64_t value; } rows[] = {
        {"enqueued", a->enqueued}, {"ready", a->ready}, {"delayed", a->delayed},
        {"processing", a->processing}, {"dead", a->dead}, {"done", a->done},
        {"cancelled", a->cancelled}, {"purged", a->purged}, {"expired", a->expired},
        {"kept", a->kept}, {"gap", a->gap}, {"gap_processing", a->gap_processing},
        {"gap_ready", a->gap_ready}, {"gap_delayed", a->gap_delayed},
        {"gap_dead", a->gap_dead}, {"gap_kept", a->gap_kept},
        {"gap_bodies", a->gap_bodies}, {"deliveries", a->deliveries},
        {"retried", a->retried}, {"released", a->released}, {"reclaimed", a->reclaimed},
        {"reclaimed_delayed", a->reclaimed_delayed}, {"replayed", a->replayed},
        {"stale", a->stale}, {"replaced", a->replaced}, {"skipped", a->skipped},
        {"deferred", a->deferred}, {"trimmed", a->trimmed},
        {"shelved", a->shelved},
    };
    /* clang-format on */
    struct cli_json *json = cli_json_new();

    cli_json_text(json, "queue", queue);
    cli_json_text(json, "engine", a->engine);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cli_json_int(json, rows[i].key, rows[i].value);
    if (f->array) {
        cli_json_adopt(json, "findings", f->array);
        f->array = NULL;
    }
    if (f->repairs) {
        cli_json_adopt(json, "repairs", f->repairs);
        f->repairs = NULL;
    }
    cli_json_print(json, cli->out);
    cli_json_free(json);
}

static void
print_row(struct cli_table *t, const char *queue, const struct weir_audit *a)
{
    const int64_t numbers[] = {a->enqueued, a->ready,  a->delayed, a->processing,
                               a->dead,     a->done,   a->kept,    a->cancelled,
                               a->purged,   a->expired};

    cli_cell_text(t, queue);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        cli_cell_int(t, numbers[i]);
    cli_cell(t, a->gap == 0 ? CLI_GREEN : CLI_RED, "%lld", (long long)a->gap);
}

/* Which equation is off says where the fault sits. */
static void
tell_gaps(struct cli *cli, const char *queue, const struct weir_audit *a)
{
    /* clang-format off */
    const struct { const char *name; int64_t gap; } rows[] = {
        {"the sum of all places", a->gap}, {"processing", a->gap_processing},
        {"ready", a->gap_ready}, {"delayed", a->gap_delayed}, {"dead", a->gap_dead},
        {"kept results", a->gap_kept}, {"bodies", a->gap_bodies},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].gap != 0)
            cli_note(cli, "%s: %s is off by %lld", queue, rows[i].name,
                     (long long)rows[i].gap);
    }
}

static enum weir_err
audit_queue(struct cli *cli, const char *queue, const struct audit_opts *o,
            struct cli_table *t, bool *good, struct weir_error *err)
{
    struct findings f = {.cli = cli, .queue = queue};
    bool deep = o->deep || o->repair, json = cli_out_is_json(cli);
    struct weir_audit a;
    size_t counted;
    enum weir_err rc = WEIR_OK;

    if (json && deep)
        f.array = cli_json_new_array();
    if (json && o->repair)
        f.repairs = cli_json_new_array();
    if (o->repair)
        rc = repair_queue(&f, err);
    if (rc == WEIR_OK)
        rc = weir_queue_audit(cli->client, queue, &a, err);
    if (rc == WEIR_OK && o->deep && !o->repair)
        rc = weir_queue_audit_deep(cli->client, queue, take_finding, &f, &counted, err);
    if (rc == WEIR_OK && json)
        print_json(cli, queue, &a, &f);
    else if (rc == WEIR_OK)
        print_row(t, queue, &a);
    if (rc == WEIR_OK && (!weir_audit_is_good(&a) || f.n > 0)) {
        *good = false;
        tell_gaps(cli, queue, &a);
    }
    cli_json_free(f.array);
    cli_json_free(f.repairs);
    return rc;
}

static enum weir_err
audit_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"queue", false, false},  {"enqueued", true, false},   {"ready", true, false},
        {"delayed", true, false}, {"processing", true, false}, {"dead", true, false},
        {"done", true, false},    {"kept", true, true},        {"cancelled", true, false},
        {"purged", true, false},  {"expired", true, false},    {"gap", true, false}};
    const struct audit_opts *o = opts;
    struct cli_broken broken = {0};
    struct cli_names queues;
    struct cli_table *t;
    bool good = true;
    enum weir_err rc = cli_queues(cli, &o->queues, &queues, err);

    (void)args;
    if (rc != WEIR_OK)
        return rc;
    t = cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < queues.n && rc == WEIR_OK; i++) {
        rc = audit_queue(cli, queues.names[i], o, t, &good, err);
        if (cli_is_broken(cli, rc, err, &broken))
            rc = WEIR_OK;
    }
    cli_table_end(t);
    if (rc == WEIR_OK && queues.n == 0)
        cli_note(cli, "No queues.");
    cli_names_fini(&queues);
    rc = cli_broken_end(&broken, rc, err);
    if (rc == WEIR_OK && !good)
        return wr_fail(err, WEIR_E_CHECK_FAILED, 0, "the audit found what must not be");
    if (rc == WEIR_OK && cli_out_is_table(cli))
        cli_note(cli, o->deep || o->repair
                          ? "Every sum is right, and every job is where it belongs."
                          : "Every sum is right.");
    return rc;
}

const struct cli_cmd cmd_audit = {
    .noun = "audit",
    .group = "Look",
    .args = "",
    .summary = "the proof that nothing was lost; exit 1 if something was",
    .examples = "  weir audit\n  weir audit --deep -q mail --json\n",
    .needs = CLI_NEEDS_CLIENT,
    .opts = audit_options,
    .opts_size = sizeof(struct audit_opts),
    .run = audit_run,
};
