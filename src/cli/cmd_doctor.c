/* doctor: what would hurt, and what to do about it. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/queue_view.h"
#include "cli/queues.h"
#include "cli/roster.h"
#include "cli/server_info.h"

#define SKEW_WARN_MS 2000
#define SKEW_FAIL_MS 60000
#define FILES_MIN 1024

enum verdict {
    OK,
    WARN,
    FAIL
};

struct doctor {
    struct cli *cli;
    struct cli_table *table;
    bool failed;
};

/* One line; fix may be "". */
static void report(struct doctor *d, enum verdict verdict, const char *name,
                   const char *fix, const char *fmt, ...) WEIR_PRINTF(5, 6);

static void
report(struct doctor *d, enum verdict verdict, const char *name, const char *fix,
       const char *fmt, ...)
{
    static const char *const words[] = {"OK", "WARN", "FAIL"};
    static const enum cli_color colors[] = {CLI_GREEN, CLI_YELLOW, CLI_RED};
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    d->failed = d->failed || verdict == FAIL;
    if (cli_out_is_json(d->cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "check", name);
        cli_json_text(json, "verdict", words[verdict]);
        cli_json_text(json, "text", text);
        if (*fix)
            cli_json_text(json, "fix", fix);
        cli_json_print(json, d->cli->out);
        cli_json_free(json);
        return;
    }
    cli_cell(d->table, CLI_PLAIN, "%s", name);
    cli_cell(d->table, colors[verdict], "%s", words[verdict]);
    cli_cell_text(d->table, text);
    cli_cell_text(d->table, fix);
}

/* ---- the server ---- */

static bool
is_old(const struct cli_server_info *i)
{
    int major = 0, minor = 0;

    (void)sscanf(i->version, "%d.%d", &major, &minor);
    if (strcmp(i->name, "valkey") == 0)
        return major < 7 || (major == 7 && minor < 2);
    return major < 7;
}

static void
check_server(struct doctor *d, const struct cli_server_info *i)
{
    if (is_old(i))
        report(d, FAIL, "version", "install Redis 7.0 or Valkey 7.2, or later", "%s %s",
               i->name, i->version);
    else
        report(d, OK, "version", "", "%s %s", i->name, i->version);
    if (strcmp(i->role, "master") != 0)
        report(d, FAIL, "role", "use the URL of the primary server", "%s: cannot write",
               i->role);
    else
        report(d, OK, "role", "", "primary");
    if (strcmp(i->policy, "noeviction") != 0)
        report(d, FAIL, "eviction", "CONFIG SET maxmemory-policy noeviction",
               "maxmemory-policy %s: a full server would throw jobs away", i->policy);
    else
        report(d, OK, "eviction", "", "maxmemory-policy noeviction");
    if (i->max_memory > 0 && i->used_memory > i->max_memory / 10 * 9)
        report(d, WARN, "memory", "raise maxmemory", "%lld of %lld MiB used",
               (long long)(i->used_memory >> 20), (long long)(i->max_memory >> 20));
    else
        report(d, OK, "memory", "", "%lld MiB used, limit %lld MiB%s",
               (long long)(i->used_memory >> 20), (long long)(i->max_memory >> 20),
               i->max_memory == 0 ? " (none)" : "");
    if (i->clients_max > 0 && i->clients > i->clients_max / 10 * 8)
        report(d, WARN, "clients", "raise maxclients", "%lld of %lld connections",
               (long long)i->clients, (long long)i->clients_max);
    else
        report(d, OK, "clients", "", "%lld connections, limit %lld",
               (long long)i->clients, (long long)i->clients_max);
}

static void
check_persistence(struct doctor *d, const struct cli_server_info *i)
{
    if (i->aof_failing)
        report(d, FAIL, "persistence",
               "look into the log of the server: is the disk full?",
               "the append-only file cannot be written");
    else if (i->aof)
        report(d, OK, "persistence", "", "append-only file");
    else if (i->rdb)
        report(d, WARN, "persistence", "CONFIG SET appendonly yes",
               "snapshots only: a crash of the server loses the jobs since the last one");
    else
        report(d, WARN, "persistence", "CONFIG SET appendonly yes",
               "off: a restart of the server loses every job");
    if (i->rdb_failing)
        report(d, WARN, "snapshot", "look into the log of the server",
               "the last one failed; the server may refuse writes");
}

/* Names of queues also prove that scripts can be loaded and run. */
static enum weir_err
check_scripts(struct doctor *d, struct cli_names *queues, struct weir_error *err)
{
    enum weir_err rc = cli_queues(d->cli, NULL, queues, err);

    if (rc == WEIR_OK)
        report(d, OK, "scripts", "", "can be loaded and run");
    else
        report(d, FAIL, "scripts", "allow EVALSHA and SCRIPT LOAD to this user", "%s",
               err->text);
    return rc;
}

/* The server's clock decides; ours is only for what people read and type. */
static enum weir_err
check_clock(struct doctor *d, struct weir_error *err)
{
    int64_t before = wr_clock_wall_ms(), skew, size;
    struct cli_roster r;
    char text[32];
    enum weir_err rc = cli_roster_read(d->cli, false, &r, err);

    if (rc != WEIR_OK)
        return rc;
    skew = r.now - (before + wr_clock_wall_ms()) / 2;
    size = skew < 0 ? -skew : skew;
    wr_text_show_duration(size, text, sizeof(text));
    report(d,
           size > SKEW_FAIL_MS   ? FAIL
           : size > SKEW_WARN_MS ? WARN
                                 : OK,
           "clock", size > SKEW_WARN_MS ? "set the clocks by NTP" : "",
           "the server is %s %s of this machine", text, skew < 0 ? "behind" : "ahead");
    report(d, r.late > 0 ? WARN : OK, "workers", r.late > 0 ? "see: weir worker ls" : "",
           "%zu up, %zu late", r.n - r.late, r.late);
    cli_roster_fini(&r);
    return WEIR_OK;
}

static void
check_limits(struct doctor *d)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    report(d, limit.rlim_cur < FILES_MIN ? WARN : OK, "open files",
           limit.rlim_cur < FILES_MIN ? "ulimit -n 4096" : "", "limit %llu here",
           (unsigned long long)limit.rlim_cur);
}

/* ---- queues ---- */

static void
check_move(struct doctor *d, const char *queue, const char *name,
           const struct weir_audit *a)
{
    bool left = cli_queue_move_is_left(a);
    char what[300], fix[200] = "";

    cli_queue_say_move(queue, a, what, sizeof(what));
    if (left)
        cli_queue_move_fix(queue, a, fix, sizeof(fix));
    report(d, left && a->paused ? FAIL : WARN, name, fix, "%s", what);
}

static void
check_queue(struct doctor *d, const char *queue, const struct weir_audit *a)
{
    char name[160], why[200];
    bool silent = a->heartbeat_promote == 0 || a->heartbeat_reclaim == 0;

    snprintf(name, sizeof(name), "queue %s", queue);
    if (!weir_audit_is_good(a))
        report(d, FAIL, name, "weir audit --deep", "the sums are off by %lld",
               (long long)a->gap);
    else if (cli_queue_move_is_left(a))
        check_move(d, queue, name, a);
    else if (cli_queue_complaint(queue, a, why, sizeof(why)))
        report(d, FAIL, name, "start weir work or weir scheduler", "%s", why);
    else if (a->moving_to[0])
        check_move(d, queue, name, a);
    else if (silent)
        report(d, WARN, name, "start weir work or weir scheduler",
               "no heartbeat of a scheduler: delays, retries and recovery stand still");
    else if (a->stuck > 0)
        report(d, WARN, name, "wait a moment, then look again",
               "%lld lease%s ran out and %s not taken back yet", (long long)a->stuck,
               wr_text_s(a->stuck), wr_text_are(a->stuck));
    else if (a->paused)
        report(d, WARN, name, "weir queue resume", "paused by %s", a->paused_by);
    else
        report(d, OK, name, "", "%lld ready, %lld delayed, %lld processing, %lld dead",
               (long long)a->ready, (long long)a->delayed, (long long)a->processing,
               (long long)a->dead);
}

static enum weir_err
check_queues(struct doctor *d, const struct cli_names *queues, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < queues->n && rc == WEIR_OK; i++) {
        struct weir_audit a;
        char name[160];

        snprintf(name, sizeof(name), "queue %s", queues->names[i]);
        rc = weir_queue_audit(d->cli->client, queues->names[i], &a, err);
        if (rc == WEIR_OK) {
            check_queue(d, queues->names[i], &a);
        } else if (cli_queue_at_fault(rc)) {
            report(d, FAIL, name, "weir audit --deep", "%s", err->text);
            rc = WEIR_OK;
        }
    }
    return rc;
}

static enum weir_err
doctor_run(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    static const struct cli_column columns[] = {{"check", false, false},
                                                {"verdict", false, false},
                                                {"what", false, false},
                                                {"fix", false, false}};
    struct doctor d = {.cli = cli};
    struct cli_server_info info;
    struct cli_names queues = {0};
    enum weir_err rc = cli_server_info_read(cli, &info, err);

    (void)opts;
    (void)args;
    if (rc != WEIR_OK)
        return rc;
    d.table = cli_table_new(cli, columns, sizeof(columns) / sizeof(columns[0]));
    check_server(&d, &info);
    check_persistence(&d, &info);
    check_limits(&d);
    rc = check_scripts(&d, &queues, err);
    if (rc == WEIR_OK)
        rc = check_clock(&d, err);
    if (rc == WEIR_OK)
        rc = check_queues(&d, &queues, err);
    cli_table_end(d.table);
    cli_names_fini(&queues);
    if (rc == WEIR_OK && d.failed) {
        cli->said = true;
        return WEIR_E_CHECK_FAILED;
    }
    return rc;
}

const struct cli_cmd cmd_doctor = {
    .noun = "doctor",
    .group = "Run it",
    .args = "",
    .summary = "check the server and the queues; exit 1 if something fails",
    .examples = "  weir doctor\n",
    .needs = CLI_NEEDS_CLIENT,
    .run = doctor_run,
};
