/* weir scheduler: promotion, reclaim and tidying alone; safe to run many. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "bin/commands.h"
#include "cli/config.h"
#include "cli/queues.h"
#include "redis/server.h"
#include "sched/sched.h"
#include "store/store.h"

struct scheduler_opts {
    struct cli_list queues;
    int64_t lease_ms;
};

static const struct cli_opt scheduler_options[] = {
    {"queue", 'q', CLI_LIST, offsetof(struct scheduler_opts, queues), "Q",
     "serve this queue (default: every registered one)"},
    {"lease", 0, CLI_DURATION, offsetof(struct scheduler_opts, lease_ms), "D",
     "what the workers use (default 15s)"},
    {0},
};

static enum weir_err
connect_store(struct cli *cli, const char *url, struct wr_server **server,
              struct wr_store **store, struct weir_error *err)
{
    struct wr_server_options so = {
        .name = "weir-scheduler", .max_connections = 4, .reconnect_ms = 2000};
    struct wr_store_options to = {.ns = cli_setting(cli->settings, CLI_SET_NAMESPACE),
                                  .engine = cli_setting(cli->settings, CLI_SET_ENGINE)};
    const char *password = cli_password(cli->settings);
    enum weir_err rc = wr_url_parse(url, &so.url, err);

    *server = NULL;
    *store = NULL;
    if (rc == WEIR_OK)
        rc = cli_setting_check(cli->settings, CLI_SET_ENGINE, err);
    if (rc == WEIR_OK && password)
        snprintf(so.url.password, sizeof(so.url.password), "%s", password);
    if (rc == WEIR_OK)
        rc = wr_server_new(&so, server, err);
    wr_url_wipe(&so.url);
    to.server = *server;
    return rc == WEIR_OK ? wr_store_new(&to, store, err) : rc;
}

/* If the server answers now; the worker says the same each time that Redis comes. */
static void
check_server(struct wr_store *store)
{
    char policy[64];

    if (wr_store_eviction(store, policy, sizeof(policy), NULL) == WEIR_OK && policy[0])
        wr_log_error(WR_EVICTION_TEXT, policy);
}

static int
stop_signals(void)
{
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    return signalfd(-1, &mask, SFD_CLOEXEC);
}

enum weir_err
bin_scheduler_run(struct cli *cli, const char *url, const char *const *queues,
                  int64_t lease_ms, struct weir_error *err)
{
    struct wr_sched_options so = {.queues = queues, .lease_ms = lease_ms};
    struct wr_server *server;
    struct wr_sched *sched = NULL;
    enum weir_err rc = connect_store(cli, url, &server, &so.store, err);

    if (rc == WEIR_OK && lease_ms == CLI_UNSET)
        rc = cli_setting_number(cli->settings, CLI_SET_LEASE, &so.lease_ms, err);
    if (rc == WEIR_OK)
        rc = wr_sched_new(&so, &sched, err);
    if (rc == WEIR_OK) {
        int signals = stop_signals();

        check_server(so.store);
        wr_sched_run(sched, signals);
    }
    wr_sched_free(sched);
    wr_store_free(so.store);
    wr_server_free(server);
    return rc;
}

/* As weir work has it: a worker could have no other. */
static enum weir_err
check_lease(int64_t lease_ms, struct weir_error *err)
{
    if (lease_ms == CLI_UNSET || (lease_ms >= 1000 && lease_ms <= 600 * 1000))
        return WEIR_OK;
    return wr_fail(err, WEIR_E_CONFIG, 0, "lease: from 1s to 10m");
}

static enum weir_err
scheduler(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct scheduler_opts *o = opts;
    const char **queues = cli_alloc((o->queues.n + 1) * sizeof(*queues));
    enum weir_err rc;

    (void)args;
    rc = check_lease(o->lease_ms, err);
    for (size_t i = 0; i < o->queues.n && rc == WEIR_OK; i++) {
        queues[i] = o->queues.items[i];
        rc = cli_check_queue(queues[i], err);
    }
    if (rc == WEIR_OK)
        rc = bin_scheduler_run(cli, cli_setting(cli->settings, CLI_SET_URL),
                               o->queues.n > 0 ? queues : NULL, o->lease_ms, err);
    free(queues);
    return rc;
}

const struct cli_cmd cmd_scheduler = {
    .noun = "scheduler",
    .group = "Work",
    .args = "",
    .summary = "promote, reclaim and tidy; one leads a queue, the others watch",
    .needs = CLI_NEEDS_SETTINGS,
    .opts = scheduler_options,
    .opts_size = sizeof(struct scheduler_opts),
    .run = scheduler,
};
