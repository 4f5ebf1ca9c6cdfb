/* weir dev: a private server, a scheduler and a worker; nothing to configure. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/worker.h>

#include "base/error.h"
#include "bin/commands.h"
#include "bin/handlers.h"
#include "cli/config.h"
#include "embed/embed.h"
#include "redis/url.h"

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

struct dev_opts {
    struct work_opts work;
    const char *dir, *socket, *fsync;
};

static const struct cli_opt dev_options[] = {
    {"exec", 0, CLI_LIST, offsetof(struct dev_opts, work.exec), "TYPE=CMD",
     "run CMD by /bin/sh for jobs of this type"},
    {"coproc", 0, CLI_LIST, offsetof(struct dev_opts, work.coprocs), "TYPE=CMD",
     "keep CMD running and give it jobs of this type as lines of JSON"},
    {"plugin", 0, CLI_LIST, offsetof(struct dev_opts, work.plugins), "FILE.so",
     "run the handlers of this shared object"},
    {"concurrency", 'c', CLI_COUNT, offsetof(struct dev_opts, work.concurrency), "N",
     "slots (default: the number of CPUs)"},
    {"dir", 0, CLI_TEXT, offsetof(struct dev_opts, dir), "DIR",
     "where the jobs are kept (default: the state folder)"},
    {"socket", 0, CLI_TEXT, offsetof(struct dev_opts, socket), "PATH",
     "where the server listens"},
    {"fsync", 0, CLI_TEXT, offsetof(struct dev_opts, fsync), "WHEN",
     "everysec (default) or always"},
    {0},
};

static volatile sig_atomic_t told;

static void
on_signal(int sig)
{
    told = sig;
}

static void
catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

/* Something that runs in a process of its own until SIGTERM. */
static pid_t
start_child(struct cli *cli, struct weir_worker *worker, const char *url)
{
    pid_t parent = getpid(), pid = fork();
    struct weir_error why = {0};
    enum weir_err rc;

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    /* What runs here sets its own; until then a stop is the end, also one that came. */
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (told || getppid() != parent)
        _exit(0);
    setpgid(0, 0);
    rc = worker ? weir_worker_run(worker, &why)
                : bin_scheduler_run(cli, url, NULL, CLI_UNSET, &why);
    if (rc != WEIR_OK)
        fprintf(stderr, "weir: %s\n", why.text);
    _exit(weir_err_exit_status(rc));
}

/* The worker, which has a scheduler; only a scheduler when there is nothing to run: a
 * worker without handlers would take jobs and hand them back. */
static pid_t
start_worker(struct cli *cli, const struct work_opts *o, const char *url,
             struct weir_error *err)
{
    struct weir_worker *worker = NULL;
    bool handlers = bin_has_handlers(cli, o);
    pid_t pid;

    if (handlers && bin_worker_new(cli, o, url, &worker, err) != WEIR_OK)
        return -1;
    pid = start_child(cli, worker, url);
    if (pid < 0)
        wr_fail(err, WEIR_E_NO_MEMORY, errno, "start the worker");
    weir_worker_free(worker);
    return pid;
}

static enum weir_err
watch(pid_t worker, struct wr_embed *embed, struct weir_error *err)
{
    int status;

    while (!told) {
        if (embed && !wr_embed_lives(embed, err))
            return WEIR_E_IO;
        if (waitpid(worker, &status, WNOHANG) == worker)
            return wr_fail(err, WEIR_E_BUG, 0, "the worker ended by itself");
        poll(NULL, 0, 200);
    }
    kill(worker, SIGTERM);
    while (waitpid(worker, &status, 0) < 0)
        continue; /* a second Ctrl-C */
    return WEIR_OK;
}

static enum weir_err
start_server(struct cli *cli, const struct dev_opts *o, struct wr_embed **embed,
             struct weir_error *err)
{
    const char *ns = cli_setting(cli->settings, CLI_SET_NAMESPACE);
    struct wr_embed_options e = {.dir = o->dir, .socket = o->socket, .fsync = o->fsync};
    char dir[400], socket[420];

    if (e.fsync && strcmp(e.fsync, "always") != 0 && strcmp(e.fsync, "everysec") != 0)
        return wr_fail(err, WEIR_E_ARG, 0, "--fsync %.20s: everysec or always", e.fsync);
    if (!e.dir && !wr_embed_default_dir(ns, dir, sizeof(dir)))
        return wr_fail(err, WEIR_E_CONFIG, 0, "no HOME: say where with --dir");
    e.dir = e.dir ? e.dir : dir;
    if (!e.socket && o->dir) {
        snprintf(socket, sizeof(socket), "%s/redis.sock", o->dir);
        e.socket = socket;
    } else if (!e.socket) {
        if (!wr_embed_default_socket(ns, socket, sizeof(socket)))
            return wr_fail(err, WEIR_E_CONFIG, 0,
                           "the socket's path is too long: say another with --socket");
        e.socket = socket;
    }
    /* The server would cut the path, and listen where nobody looks. */
    if (strlen(e.socket) > SOCKET_PATH_MAX)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "the socket's path has %zu bytes, at most %zu are possible: say a "
                       "shorter one with --socket",
                       strlen(e.socket), SOCKET_PATH_MAX);
    return wr_embed_start(&e, embed, err);
}

/* On this machine: a socket, or an address that no other one reaches. */
static bool
is_local(const char *url)
{
    struct wr_url u;
    bool local = wr_url_parse(url, &u, NULL) == WEIR_OK &&
                 (u.is_unix || strcmp(u.host, "localhost") == 0 ||
                  strncmp(u.host, "127.", 4) == 0 || strcmp(u.host, "::1") == 0);

    wr_url_wipe(&u);
    return local;
}

/* What a person wants to know; the last word is a warning. */
static void
introduce(struct cli *cli, const struct work_opts *work, const char *server)
{
    bool typed = work->exec.n + work->coprocs.n + work->plugins.n > 0 ||
                 cli_handlers(cli->settings)->n > 0;

    cli_note(cli,
             "server     %s\nworker     %s\nenqueue    weir enqueue TYPE PAYLOAD\n"
             "stop with Ctrl-C",
             server,
             cli->command && cli->command[0] ? cli->command[0]
             : typed                         ? "by type"
             : work->allow_all_commands      ? "none, but for weir run"
                                             : "none: a scheduler only");
    if (work->allow_all_commands &&
        !cli_setting(cli->settings, CLI_SET_ALLOW_COMMAND_JOBS))
        cli_note(cli,
                 "warning    jobs may bring their command (weir run -- CMD): whoever "
                 "can use this\n           server runs programs as this user");
}

static enum weir_err
dev(struct cli *cli, const void *opts, char *const *args, struct weir_error *err)
{
    const struct dev_opts *o = opts;
    struct work_opts work = o->work;
    struct wr_embed *embed = NULL;
    bool private = !cli->globals.url && !getenv("WEIR_URL");
    const char *url = cli_setting(cli->settings, CLI_SET_URL);
    enum weir_err rc = WEIR_OK;
    pid_t worker;

    (void)args;
    work.processes = work.grace_ms = work.lease_ms = CLI_UNSET;
    work.max_jobs = work.max_time_ms = CLI_UNSET;
    work.job_timeout_ms = work.keep_result_ms = CLI_UNSET;
    catch_signals();
    if (private)
        rc = start_server(cli, o, &embed, err);
    if (rc != WEIR_OK)
        return rc;
    url = embed ? wr_embed_url(embed) : url;
    work.allow_all_commands = is_local(url);
    worker = start_worker(cli, &work, url, err);
    if (worker < 0) {
        wr_embed_stop(embed);
        return err->code;
    }
    introduce(cli, &work, embed ? url : "as configured");
    rc = watch(worker, embed, err);
    wr_embed_stop(embed);
    return rc;
}

const struct cli_cmd cmd_dev = {
    .noun = "dev",
    .group = "Work",
    .args = "[-- CMD ARG...]",
    .summary = "a private server, a scheduler and a worker: nothing to configure",
    .examples = "  weir dev -- sh -c 'cat; echo done'\n",
    .takes_command = true,
    .needs = CLI_NEEDS_SETTINGS,
    .opts = dev_options,
    .opts_size = sizeof(struct dev_opts),
    .run = dev,
};
