#include "worker/exec_config.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "model/retry.h"
#include "worker/exec_args.h"

#define EXIT_SNOOZE 75
#define EXIT_PERMANENT 65
#define GROUPS_MAX 1024
#define ID_MAX 4294967294 /* -1 means "no change" to the system calls */

extern char **environ;

bool
wr_exec_is_secret(const char *variable)
{
    static const char *const kept_back[] = {"WEIR_", "REDIS", "VALKEY", NULL};

    for (size_t i = 0; kept_back[i]; i++) {
        if (strncmp(variable, kept_back[i], strlen(kept_back[i])) == 0)
            return true;
    }
    return false;
}

/* ---- lists of strings ---- */

static size_t
count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static void
free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

/* Adds a copy; false when out of memory. */
static bool
add(char ***list, const char *text)
{
    size_t n = count((const char *const *)*list);
    char **longer = realloc(*list, (n + 2) * sizeof(*longer));

    if (!longer)
        return false;
    *list = longer;
    longer[n] = strdup(text);
    longer[n + 1] = NULL;
    return longer[n] != NULL;
}

static bool
add_variable(char ***list, const char *name, const char *value)
{
    char *text = malloc(strlen(name) + strlen(value) + 2);
    bool ok;

    if (!text)
        return false;
    stpcpy(stpcpy(stpcpy(text, name), "="), value);
    ok = add(list, text);
    free(text);
    return ok;
}

static bool
has_variable(char **list, const char *text)
{
    size_t len = (size_t)(strchrnul(text, '=') - text);

    for (size_t i = 0; list && list[i]; i++) {
        if (strncmp(list[i], text, len) == 0 && list[i][len] == '=')
            return true;
    }
    return false;
}

/* ---- checks ---- */

static enum weir_err
bad(struct weir_error *err, const char *what)
{
    return wr_fail(err, WEIR_E_ARG, 0, "command: %s", what);
}

static enum weir_err
check_command(const struct weir_exec_options *o, struct weir_error *err)
{
    if (count(o->argv) == 0 || o->argv[0][0] == '\0')
        return bad(err, "it has no name");
    if (o->shell && count(o->argv) != 1)
        return bad(err, "with shell, argv is one string");
    if (o->cwd && o->cwd[0] != '/')
        return bad(err, "cwd must begin with /");
    for (size_t i = 0; o->env && o->env[i]; i++) {
        const char *equals = strchr(o->env[i], '=');

        if (!equals || equals == o->env[i])
            return bad(err, "env is NAME=VALUE");
        if (wr_exec_is_secret(o->env[i]))
            return wr_fail(err, WEIR_E_ARG, 0,
                           "command: env %.*s: names that begin with WEIR_, REDIS or "
                           "VALKEY are not passed",
                           (int)(equals - o->env[i]), o->env[i]);
    }
    return WEIR_OK;
}

static enum weir_err
check_numbers(const struct weir_exec_options *o, struct weir_error *err)
{
    const int64_t limits[] = {o->rlimit_as,  o->rlimit_fsize,  o->rlimit_core,
                              o->rlimit_cpu, o->rlimit_nofile, o->rlimit_nproc};

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (limits[i] < WEIR_EXEC_UNLIMITED)
            return bad(err, "a limit is a number, or unlimited");
    }
    if (o->timeout_ms < 0 || o->kill_after_ms < 0 || o->idle_timeout_ms < 0 ||
        o->snooze_ms < 0 || o->max_snoozes < 0)
        return bad(err, "times and counts cannot be negative");
    if (o->result_max > WR_RESULT_MAX)
        return bad(err, "result_max: at most 65536");
    if ((unsigned)o->result > WEIR_EXEC_JSON)
        return bad(err, "result: stdout, none, last-line or json");
    if (o->stop_signal < 0 || o->stop_signal >= NSIG)
        return bad(err, "stop_signal: no such signal");
    if (o->nice < -40 || o->nice > 40)
        return bad(err, "nice: -20 to 19");
    if (o->ioprio_class < 0 || o->ioprio_class > 3 || o->ioprio_level < 0 ||
        o->ioprio_level > 7)
        return bad(err, "ioprio: class 1 to 3, level 0 to 7");
    if (o->set_umask && o->umask > 0777)
        return bad(err, "umask: 0 to 0777");
    if (o->oom_score_adj < -1000 || o->oom_score_adj > 1000)
        return bad(err, "oom_score_adj: -1000 to 1000");
    return WEIR_OK;
}

static enum weir_err
check_exits(const struct weir_exec_options *o, struct weir_error *err)
{
    if (o->exits_n > 256 || (o->exits_n > 0 && !o->exits))
        return bad(err, "at most 256 rules for exit statuses");
    for (size_t i = 0; i < o->exits_n; i++) {
        const struct weir_exec_exit *e = &o->exits[i];

        if (e->first < 0 || e->last > 255 || e->first > e->last ||
            (unsigned)e->outcome > WEIR_PERMANENT)
            return bad(err, "exit statuses are ranges from 0 to 255");
    }
    return WEIR_OK;
}

/* ---- who it runs as ---- */

static bool
read_id(const char *text, int64_t *out)
{
    return wr_text_int(text, 0, ID_MAX, out);
}

static enum weir_err
find_groups(struct wr_exec_config *c, const char *user, struct weir_error *err)
{
    int n = GROUPS_MAX;

    c->limits.groups = calloc(GROUPS_MAX, sizeof(*c->limits.groups));
    if (!c->limits.groups)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "command");
    if (getgrouplist(user, c->limits.gid, c->limits.groups, &n) < 0)
        return wr_fail(err, WEIR_E_ARG, 0, "command: user %.60s has more than %d groups",
                       user, GROUPS_MAX);
    c->limits.groups_n = (size_t)n;
    return WEIR_OK;
}

static enum weir_err
find_group(struct wr_exec_config *c, const char *name, struct weir_error *err)
{
    const struct group *g = getgrnam(name);
    int64_t id;

    if (g)
        c->limits.gid = g->gr_gid;
    else if (read_id(name, &id))
        c->limits.gid = (gid_t)id;
    else
        return wr_fail(err, WEIR_E_ARG, 0, "command: no such group: %.60s", name);
    c->limits.switch_group = true;
    return WEIR_OK;
}

static enum weir_err
find_user(struct wr_exec_config *c, const struct weir_exec_options *o,
          struct weir_error *err)
{
    const struct passwd *p = getpwnam(o->user);
    int64_t id = 0;
    bool ok = true;

    if (!p && read_id(o->user, &id))
        p = getpwuid((uid_t)id);
    else if (!p)
        return wr_fail(err, WEIR_E_ARG, 0, "command: no such user: %.60s", o->user);
    c->limits.switch_user = c->limits.switch_group = true;
    c->limits.uid = p ? p->pw_uid : (uid_t)id;
    c->limits.gid = p ? p->pw_gid : (gid_t)id;
    if (p && !has_variable(c->env, "HOME="))
        ok = add_variable(&c->env, "HOME", p->pw_dir);
    if (ok && p && !has_variable(c->env, "USER="))
        ok = add_variable(&c->env, "USER", p->pw_name);
    if (ok && p && !has_variable(c->env, "LOGNAME="))
        ok = add_variable(&c->env, "LOGNAME", p->pw_name);
    if (!ok)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "command");
    return p ? find_groups(c, p->pw_name, err) : WEIR_OK;
}

static enum weir_err
find_identity(struct wr_exec_config *c, const struct weir_exec_options *o,
              struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    if ((o->user || o->group) && geteuid() != 0)
        return bad(err, "user and group need a worker that runs as root");
    if (o->user)
        rc = find_user(c, o, err);
    if (rc == WEIR_OK && o->group)
        rc = find_group(c, o->group, err);
    return rc;
}

/* ---- environment ---- */

static bool
matches(const char *variable, const char *pattern)
{
    size_t len = strlen(pattern);

    if (len > 0 && pattern[len - 1] == '*')
        return strncmp(variable, pattern, len - 1) == 0;
    return strncmp(variable, pattern, len) == 0 && variable[len] == '=';
}

static bool
is_wanted(const char *variable, const char *const *names)
{
    static const char *const always[] = {"PATH", "HOME", "USER", "LANG", "TZ", NULL};

    if (wr_exec_is_secret(variable))
        return false;
    for (size_t i = 0; always[i]; i++) {
        if (matches(variable, always[i]))
            return true;
    }
    for (size_t i = 0; names && names[i]; i++) {
        if (matches(variable, names[i]))
            return true;
    }
    return false;
}

/* A clean environment is made here, once; an inherited one is added by the spawner. */
static bool
take_environment(struct wr_exec_config *c, const struct weir_exec_options *o)
{
    for (size_t i = 0; o->clean_env && environ && environ[i]; i++) {
        if (is_wanted(environ[i], o->pass_env) && !has_variable(c->env, environ[i]) &&
            !add(&c->env, environ[i]))
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static void
fill_limits(struct wr_exec_limits *l, const struct weir_exec_options *o)
{
    l->values[WR_LIMIT_AS] = o->rlimit_as;
    l->values[WR_LIMIT_FSIZE] = o->rlimit_fsize;
    l->values[WR_LIMIT_CORE] = o->rlimit_core;
    l->values[WR_LIMIT_CPU] = o->rlimit_cpu;
    l->values[WR_LIMIT_NOFILE] = o->rlimit_nofile;
    l->values[WR_LIMIT_NPROC] = o->rlimit_nproc;
    l->nice = o->nice;
    l->ioprio_class = o->ioprio_class;
    l->ioprio_level = o->ioprio_level;
    l->umask = o->set_umask ? (int)o->umask : -1;
    l->oom_score_adj = o->oom_score_adj;
    l->new_privs = o->allow_new_privs;
}

static bool
copy_words(struct wr_exec_config *c, const struct weir_exec_options *o)
{
    bool ok = true;

    if (o->shell)
        ok = add(&c->argv, "/bin/sh") && add(&c->argv, "-c");
    for (size_t i = 0; ok && o->argv && o->argv[i]; i++)
        ok = add(&c->argv, o->argv[i]);
    if (ok && o->shell)
        ok = add(&c->argv, "weir-job");
    for (size_t i = 0; ok && o->env && o->env[i]; i++)
        ok = has_variable(c->env, o->env[i]) || add(&c->env, o->env[i]);
    for (size_t i = 0; ok && o->json_fields && o->json_fields[i]; i++)
        ok = add(&c->json_fields, o->json_fields[i]);
    if (ok && o->cwd)
        ok = (c->cwd = strdup(o->cwd)) != NULL;
    if (ok && o->exits_n > 0) {
        c->exits = calloc(o->exits_n, sizeof(*c->exits));
        ok = c->exits != NULL;
        if (ok)
            memcpy(c->exits, o->exits, o->exits_n * sizeof(*c->exits));
    }
    return ok;
}

/* The caller's pointers must not live on in the copy. */
static void
fill_options(struct wr_exec_config *c, const struct weir_exec_options *o)
{
    c->o = *o;
    c->o.argv = (const char *const *)c->argv;
    c->o.cwd = c->cwd;
    c->o.exits = c->exits;
    c->o.pass_env = c->o.env = c->o.json_fields = NULL;
    c->o.user = c->o.group = NULL;
    if (c->o.result_max == 0)
        c->o.result_max = WR_RESULT_MAX;
    if (c->o.stop_signal == 0)
        c->o.stop_signal = SIGTERM;
    if (c->o.snooze_ms == 0)
        c->o.snooze_ms = WR_SNOOZE_DEFAULT_MS;
    if (c->o.max_snoozes == 0)
        c->o.max_snoozes = WR_SNOOZES_MAX;
}

enum weir_err
wr_exec_config_new(const struct weir_exec_options *options, struct wr_exec_config **out,
                   struct weir_error *err)
{
    struct weir_exec_options o = {0};
    struct wr_exec_config *c;
    enum weir_err rc;

    *out = NULL;
    if (options)
        memcpy(&o, options,
               options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
    rc = check_command(&o, err);
    if (rc == WEIR_OK)
        rc = wr_exec_args_check(&o, err);
    if (rc == WEIR_OK)
        rc = check_numbers(&o, err);
    if (rc == WEIR_OK)
        rc = check_exits(&o, err);
    if (rc != WEIR_OK)
        return rc;
    c = calloc(1, sizeof(*c));
    if (!c)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "command");
    if (!copy_words(c, &o))
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "command");
    if (rc == WEIR_OK)
        rc = find_identity(c, &o, err);
    if (rc == WEIR_OK && !take_environment(c, &o))
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "command");
    if (rc != WEIR_OK) {
        wr_exec_config_free(c);
        return rc;
    }
    fill_limits(&c->limits, &o);
    fill_options(c, &o);
    *out = c;
    return WEIR_OK;
}

void
wr_exec_config_free(struct wr_exec_config *c)
{
    if (!c)
        return;
    free_list(c->argv);
    free_list(c->env);
    free_list(c->json_fields);
    free(c->cwd);
    free(c->exits);
    free(c->limits.groups);
    free(c);
}

static const struct weir_exec_exit *
find_rule(const struct wr_exec_config *c, int status)
{
    for (size_t i = 0; i < c->o.exits_n; i++) {
        if (status >= c->exits[i].first && status <= c->exits[i].last)
            return &c->exits[i];
    }
    return NULL;
}

enum weir_outcome
wr_exec_config_outcome(const struct wr_exec_config *c, int status)
{
    const struct weir_exec_exit *rule = find_rule(c, status);

    if (rule)
        return rule->outcome;
    return status == 0                ? WEIR_DONE
           : status == EXIT_SNOOZE    ? WEIR_SNOOZE
           : status == EXIT_PERMANENT ? WEIR_PERMANENT
                                      : WEIR_RETRY;
}

bool
wr_exec_config_is_broken(const struct wr_exec_config *c, int status)
{
    return (status == 126 || status == 127) && !find_rule(c, status);
}
