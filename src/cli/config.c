#include "cli/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"
#include "embed/embed.h"
#include "redis/url.h"

#define URL_DEFAULT "redis://127.0.0.1:6379/0"
#define PASSWORD_MAX 512

enum kind {
    KIND_TEXT,
    KIND_SECRET,
    KIND_DURATION,
    KIND_COUNT,
    KIND_SWITCH,
    KIND_ENGINE
};

static const struct row {
    const char *key, *flag, *env[3], *built_in, *help;
    enum kind kind;
} rows[CLI_SET_COUNT] = {
#define X(name, key_, flag_, env1, env2, env3, built_in_, kind_, help) \
    [CLI_SET_##name] = {key_, flag_, {env1, env2, env3}, built_in_, help, KIND_##kind_},
    CLI_SETTINGS(X)
#undef X
};

struct value {
    char *text;
    char origin[300];
};

struct cli_settings {
    struct value values[CLI_SET_COUNT];
    char *password; /* the one to use */
    struct cli_handlers handlers;
    char *file; /* the one that was read */
};

static void
set_value(struct value *v, const char *text, const char *origin)
{
    free(v->text);
    v->text = cli_strdup(text);
    snprintf(v->origin, sizeof(v->origin), "%s", origin);
}

static bool
is_one_of(const char *text, const char *const *words)
{
    while (*words && strcasecmp(text, *words) != 0)
        words++;
    return *words != NULL;
}

static const char *const on_words[] = {"yes", "on", "true", "1", NULL};
static const char *const off_words[] = {"no", "off", "false", "0", NULL};

static bool
is_good(enum kind kind, const char *text)
{
    int64_t number;

    switch (kind) {
    case KIND_TEXT:
    case KIND_SECRET:
        return true;
    case KIND_DURATION:
        return wr_text_duration(text, &number);
    case KIND_COUNT:
        return wr_text_int(text, 0, 1000000000, &number);
    case KIND_SWITCH:
        return is_one_of(text, on_words) || is_one_of(text, off_words);
    case KIND_ENGINE:
        return strcmp(text, "list") == 0 || strcmp(text, "stream") == 0;
    }
    return false;
}

static const char *
kind_words(enum kind kind)
{
    return kind == KIND_SWITCH     ? "yes or no"
           : kind == KIND_ENGINE   ? "list or stream"
           : kind == KIND_DURATION ? "a duration like 250ms, 15s, 5m"
                                   : "a whole number from 0 to 1000000000";
}

/* ---- the file ---- */

/* Who can change it decides where secrets go, or what is run. */
static bool
is_trusted(enum cli_setting which)
{
    static const enum cli_setting all[] = {
        CLI_SET_PASSWORD,           CLI_SET_URL,
        CLI_SET_ALLOW_COMMAND_JOBS, CLI_SET_ALLOW_COMMAND_ENV,
        CLI_SET_ALLOW_COMMAND_CWD,  CLI_SET_REQUIRE_SIGNATURE,
        CLI_SET_SIGNATURE_KEY,
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i] == which)
            return true;
    }
    return false;
}

static enum weir_err
take_setting(struct cli_settings *s, const struct cli_conf_place *at, const char *key,
             const char *text, struct weir_error *err)
{
    const char *names[CLI_SET_COUNT + 1] = {0};
    char origin[300];
    size_t i = 0;

    while (i < CLI_SET_COUNT && strcmp(rows[i].key, key) != 0)
        names[i] = rows[i].key, i++;
    if (i == CLI_SET_COUNT)
        return cli_conf_unknown(at, "no setting", key, names, err);
    if (!is_good(rows[i].kind, text))
        return cli_conf_fail(at, err, "%s: not %s", key, kind_words(rows[i].kind));
    if (at->others_write && is_trusted((enum cli_setting)i))
        return cli_conf_fail(
            at, err, "holds a %s, and everybody may write the file: chmod o-w it", key);
    snprintf(origin, sizeof(origin), "%s:%u", at->path, at->line);
    set_value(&s->values[i], text, origin);
    return WEIR_OK;
}

static enum weir_err
take_pair(const struct cli_conf_place *at, const char *key, const char *value,
          void *context, struct weir_error *err)
{
    struct cli_settings *s = context;

    if (s->handlers.n > 0)
        return cli_handlers_pair(&s->handlers, at, key, value, err);
    return take_setting(s, at, key, value, err);
}

static enum weir_err
take_section(const struct cli_conf_place *at, const char *name, void *context,
             struct weir_error *err)
{
    struct cli_settings *s = context;

    return cli_handlers_section(&s->handlers, at, name, err);
}

static enum weir_err
read_file(struct cli_settings *s, const char *path, bool must, struct weir_error *err)
{
    const struct cli_conf_reader reader = {take_section, take_pair, s};
    struct stat st;
    enum weir_err rc = cli_conf_read(path, must, &reader, err);

    if (rc == WEIR_OK && stat(path, &st) == 0)
        s->file = cli_strdup(path);
    return rc == WEIR_OK ? cli_handlers_end(&s->handlers, err) : rc;
}

static const char *
env(const char *name)
{
    const char *value = name ? getenv(name) : NULL;

    return value && *value ? value : NULL;
}

/* Only the first that is there. */
static enum weir_err
read_files(struct cli_settings *s, const char *given, struct weir_error *err)
{
    char path[1024];
    struct stat st;

    if (!given)
        given = env("WEIR_CONFIG");
    if (given)
        return read_file(s, given, true, err);
    if (env("XDG_CONFIG_HOME"))
        snprintf(path, sizeof(path), "%s/weir/weir.conf", env("XDG_CONFIG_HOME"));
    else
        snprintf(path, sizeof(path), "%s/.config/weir/weir.conf",
                 env("HOME") ? env("HOME") : "");
    if (stat(path, &st) == 0)
        return read_file(s, path, false, err);
    return read_file(s, "/etc/weir/weir.conf", false, err);
}

/* ---- the others ---- */

static void
read_environment(struct cli_settings *s)
{
    for (size_t i = 0; i < CLI_SET_COUNT; i++) {
        for (size_t j = 0; j < 3; j++) {
            if (env(rows[i].env[j])) {
                set_value(&s->values[i], env(rows[i].env[j]), rows[i].env[j]);
                break;
            }
        }
    }
}

/* Everybody on the machine can read the arguments of a process. */
static enum weir_err
check_url_flag(const char *url, struct weir_error *err)
{
    struct wr_url parsed;
    enum weir_err rc = wr_url_parse(url, &parsed, err);
    bool has_password = parsed.password[0] != '\0';

    wr_url_wipe(&parsed);
    if (rc == WEIR_OK && has_password)
        return wr_fail(
            err, WEIR_E_ARG, 0,
            "--url with a password would show it to everybody on this machine: "
            "put the URL into WEIR_URL or weir.conf, or use --password-file");
    return rc;
}

static enum weir_err
read_flags(struct cli_settings *s, const struct cli_globals *g, struct weir_error *err)
{
    char text[32];

    if (g->url) {
        enum weir_err rc = check_url_flag(g->url, err);

        if (rc != WEIR_OK)
            return rc;
        set_value(&s->values[CLI_SET_URL], g->url, "--url");
    }
    if (g->name_space)
        set_value(&s->values[CLI_SET_NAMESPACE], g->name_space, "--namespace");
    if (g->password_file)
        set_value(&s->values[CLI_SET_PASSWORD_FILE], g->password_file, "--password-file");
    if (g->output || g->json)
        set_value(&s->values[CLI_SET_OUTPUT], g->json ? "json" : g->output,
                  g->json ? "--json" : "--output");
    if (g->command_timeout_ms != CLI_UNSET) {
        snprintf(text, sizeof(text), "%lldms", (long long)g->command_timeout_ms);
        set_value(&s->values[CLI_SET_COMMAND_TIMEOUT], text, "--command-timeout");
    }
    return WEIR_OK;
}

static void
find_server(struct cli_settings *s)
{
    char path[256], url[300];

    if (s->values[CLI_SET_URL].text)
        return;
    if (wr_embed_default_socket(s->values[CLI_SET_NAMESPACE].text, path, sizeof(path))) {
        struct stat st;

        snprintf(url, sizeof(url), "unix://%s", path);
        if (stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && wr_embed_answers(url)) {
            set_value(&s->values[CLI_SET_URL], url, "the server of weir dev");
            return;
        }
    }
    set_value(&s->values[CLI_SET_URL], URL_DEFAULT, "built in");
}

static enum weir_err
read_password_file(struct cli_settings *s, struct weir_error *err)
{
    const char *path = s->values[CLI_SET_PASSWORD_FILE].text;
    char line[PASSWORD_MAX + 2] = "";
    enum weir_err rc = WEIR_OK;
    struct stat st;
    FILE *f;

    if (!path)
        return WEIR_OK;
    f = fopen(path, "re");
    if (!f || fstat(fileno(f), &st) != 0 || (!fgets(line, sizeof(line), f) && ferror(f)))
        rc = wr_fail(err, WEIR_E_CONFIG, errno, "password file %.150s", path);
    else if (st.st_mode & S_IWOTH)
        rc = wr_fail(err, WEIR_E_CONFIG, 0,
                     "password file %.150s: everybody may write it: chmod o-w it", path);
    line[strcspn(line, "\r\n")] = '\0';
    if (rc == WEIR_OK && line[0] == '\0')
        rc = wr_fail(err, WEIR_E_CONFIG, 0,
                     "password file %.150s: its first line is empty", path);
    if (rc == WEIR_OK)
        s->password = cli_strdup(line);
    explicit_bzero(line, sizeof(line));
    if (f)
        fclose(f);
    return rc;
}

/* REDISCLI_AUTH and the file's password are for a URL that has none. */
static enum weir_err
choose_password(struct cli_settings *s, struct weir_error *err)
{
    struct wr_url url;
    enum weir_err rc = wr_url_parse(s->values[CLI_SET_URL].text, &url, err);
    bool has_own = url.password[0] != '\0';

    wr_url_wipe(&url);
    if (rc == WEIR_E_ARG && strcmp(s->values[CLI_SET_URL].origin, "--url") != 0)
        rc = WEIR_E_CONFIG;
    if (rc == WEIR_OK)
        rc = read_password_file(s, err);
    if (rc == WEIR_OK && !s->password && !has_own && s->values[CLI_SET_PASSWORD].text)
        s->password = cli_strdup(s->values[CLI_SET_PASSWORD].text);
    return rc;
}

enum weir_err
cli_settings_load(const struct cli_globals *globals, struct cli_settings **out,
                  struct weir_error *err)
{
    struct cli_settings *s = cli_alloc(sizeof(*s));
    enum weir_err rc;

    *out = NULL;
    for (size_t i = 0; i < CLI_SET_COUNT; i++) {
        if (rows[i].built_in)
            set_value(&s->values[i], rows[i].built_in, "built in");
    }
    rc = read_files(s, globals->config, err);
    if (rc == WEIR_OK) {
        read_environment(s);
        rc = read_flags(s, globals, err);
    }
    if (rc == WEIR_OK &&
        !wr_text_is_queue(wr_span_str(s->values[CLI_SET_NAMESPACE].text)))
        rc = wr_fail(err, WEIR_E_ARG, 0,
                     "namespace: 1 to 64 bytes without braces or control characters");
    if (rc == WEIR_OK) {
        find_server(s);
        rc = choose_password(s, err);
    }
    if (rc != WEIR_OK) {
        cli_settings_free(s);
        return rc;
    }
    *out = s;
    return WEIR_OK;
}

void
cli_settings_free(struct cli_settings *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < CLI_SET_COUNT; i++) {
        if (s->values[i].text)
            explicit_bzero(s->values[i].text, strlen(s->values[i].text));
        free(s->values[i].text);
    }
    if (s->password)
        explicit_bzero(s->password, strlen(s->password));
    free(s->password);
    cli_handlers_fini(&s->handlers);
    free(s->file);
    free(s);
}

const char *
cli_setting(const struct cli_settings *s, enum cli_setting which)
{
    return s->values[which].text;
}

const char *
cli_setting_origin(const struct cli_settings *s, enum cli_setting which)
{
    return s->values[which].text ? s->values[which].origin : "not set";
}

const char *
cli_setting_key(enum cli_setting which)
{
    return rows[which].key;
}

void
cli_setting_show(const struct cli_settings *s, enum cli_setting which, char *out,
                 size_t cap)
{
    const char *text = s->values[which].text;
    struct wr_url url;

    if (!text)
        snprintf(out, cap, "-");
    else if (rows[which].kind == KIND_SECRET)
        snprintf(out, cap, "***");
    else if (which != CLI_SET_URL)
        snprintf(out, cap, "%s", text);
    else if (wr_url_parse(text, &url, NULL) == WEIR_OK)
        wr_url_show(&url, out, cap);
    else
        snprintf(out, cap, "(cannot be read)");
    if (text && which == CLI_SET_URL)
        wr_url_wipe(&url);
}

static enum weir_err
check_value(const struct value *v, enum kind kind, struct weir_error *err)
{
    if (is_good(kind, v->text))
        return WEIR_OK;
    return wr_fail(err, WEIR_E_CONFIG, 0, "%s: \"%.40s\" is not %s", v->origin, v->text,
                   kind_words(kind));
}

enum weir_err
cli_setting_check(const struct cli_settings *s, enum cli_setting which,
                  struct weir_error *err)
{
    const struct value *v = &s->values[which];

    return v->text ? check_value(v, rows[which].kind, err) : WEIR_OK;
}

enum weir_err
cli_setting_switch(const struct cli_settings *s, enum cli_setting which, bool *out,
                   struct weir_error *err)
{
    const struct value *v = &s->values[which];
    enum weir_err rc = cli_setting_check(s, which, err);

    if (v->text && rc == WEIR_OK)
        *out = is_one_of(v->text, on_words);
    return rc;
}

enum weir_err
cli_setting_number(const struct cli_settings *s, enum cli_setting which, int64_t *out,
                   struct weir_error *err)
{
    const struct value *v = &s->values[which];
    enum weir_err rc = v->text ? check_value(v, rows[which].kind, err) : WEIR_OK;

    if (!v->text || rc != WEIR_OK)
        return rc;
    if (rows[which].kind == KIND_DURATION)
        (void)wr_text_duration(v->text, out);
    else
        (void)wr_text_int(v->text, 0, 1000000000, out);
    return WEIR_OK;
}

const char *
cli_password(const struct cli_settings *s)
{
    return s->password;
}

const struct cli_handlers *
cli_handlers(const struct cli_settings *s)
{
    return &s->handlers;
}

const char *
cli_settings_file(const struct cli_settings *s)
{
    return s->file;
}

const char *
cli_setting_help(enum cli_setting which)
{
    return rows[which].help;
}

const char *
cli_setting_built_in(enum cli_setting which)
{
    return rows[which].built_in;
}
