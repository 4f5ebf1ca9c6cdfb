/* The values of a handler's section: each take_KIND() answers NULL, or what the value
 * should have been. */
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/handlers.h"
#include "cli/words.h"

#define RESULT_MAX 65536
#define LIMIT_MAX (INT64_C(1) << 53)

/* ---- memory ---- */

void *
cli_handler_own(struct cli_handler *h, void *ptr)
{
    h->owned = cli_grow(h->owned, h->owned_n + 1, sizeof(*h->owned));
    h->owned[h->owned_n++] = ptr;
    return ptr;
}

/* Appends to a list with NULL at its end. */
static const char *const *
append(struct cli_handler *h, const char *const *list, const char *text)
{
    const char **longer;
    size_t n = 0;

    while (list && list[n])
        n++;
    longer = cli_handler_own(h, cli_alloc((n + 2) * sizeof(*longer)));
    for (size_t i = 0; i < n; i++)
        longer[i] = list[i];
    longer[n] = text;
    return longer;
}

/* ---- values: each answers NULL, or what it should have been ---- */

static char *
field(struct cli_handler *h, const struct cli_handler_key *key)
{
    return (char *)&h->options + key->field;
}

static const char *
store_bool(struct cli_handler *h, const struct cli_handler_key *key, const char *text,
           bool turned)
{
    static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {
                                                                     "no", "false", "off",
                                                                     "0"};

    for (size_t i = 0; i < 4; i++) {
        bool value = (strcmp(text, yes[i]) == 0) != turned;

        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            memcpy(field(h, key), &value, sizeof(value));
            return NULL;
        }
    }
    return "yes or no";
}

static const char *
take_bool(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    return store_bool(h, key, text, false);
}

/* The option says the opposite of the key. */
static const char *
take_not(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    return store_bool(h, key, text, true);
}

/* The words are made at the end of the section, when it is known whether it is for a
 * shell. */
static const char *
take_command(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    (void)h;
    (void)key;
    return *text ? NULL : "a command";
}

static const char *
take_text(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    text = cli_handler_own(h, cli_strdup(text));
    memcpy(field(h, key), &text, sizeof(text));
    return *text ? NULL : "a name or number";
}

static const char *
take_path(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    return *text == '/' ? take_text(h, key, text) : "an absolute path";
}

static const char *
take_size(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    int64_t number;
    size_t size;

    if (!wr_text_size(text, &number) || number < 1 || number > RESULT_MAX)
        return "a size from 1 to 64k";
    size = (size_t)number;
    memcpy(field(h, key), &size, sizeof(size));
    return NULL;
}

static const char *
take_count(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    int64_t number;

    if (!wr_text_int(text, 1, 1000000000, &number))
        return "a whole number from 1";
    memcpy(field(h, key), &number, sizeof(number));
    return NULL;
}

static bool
is_name(const char *text, size_t len)
{
    if (len == 0 || isdigit((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    }
    return true;
}

/* Names with commas or blanks between, with one * at their end. */
static const char *
take_names(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    char *copy = cli_handler_own(h, cli_strdup(text)), *rest = NULL;

    for (char *name = strtok_r(copy, ", \t", &rest); name;
         name = strtok_r(NULL, ", \t", &rest)) {
        size_t len = strlen(name);

        if (!is_name(name, name[len - 1] == '*' ? len - 1 : len))
            return "names of variables with commas between";
        h->options.pass_env = append(h, h->options.pass_env, name);
    }
    (void)key;
    return NULL;
}

/* Names with commas between. */
static const char *
take_fields(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    char *copy = cli_handler_own(h, cli_strdup(text)), *rest = NULL;

    (void)key;
    for (char *name = strtok_r(copy, ", \t", &rest); name;
         name = strtok_r(NULL, ", \t", &rest)) {
        if (strpbrk(name, "{}"))
            return "names of members with commas between";
        h->options.json_fields = append(h, h->options.json_fields, name);
    }
    return h->options.json_fields ? NULL : "names of members with commas between";
}

static const char *
take_env(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    struct cli_words words;
    const char *why = cli_words_split(text, &words);

    for (size_t i = 0; i < words.n && !why; i++) {
        const char *equals = strchr(words.list[i], '=');

        if (!equals || !is_name(words.list[i], (size_t)(equals - words.list[i])))
            why = "NAME=VALUE, in quotes if it has blanks";
        else if (strncmp(words.list[i], "WEIR_", 5) == 0)
            why = "a variable of another name: WEIR_ is the worker's";
        else
            h->options.env = append(h, h->options.env,
                                    cli_handler_own(h, cli_strdup(words.list[i])));
    }
    cli_words_fini(&words);
    (void)key;
    return why;
}

static const char *
take_result(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    static const char *const names[] = {
        [WEIR_EXEC_STDOUT] = "stdout",
        [WEIR_EXEC_NONE] = "none",
        [WEIR_EXEC_LAST_LINE] = "last-line",
        [WEIR_EXEC_JSON] = "json",
    };

    (void)key;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            h->options.result = (enum weir_exec_result)i;
            return NULL;
        }
    }
    return "stdout, none, last-line or json";
}

static const char *
take_signal(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    int64_t number;

    (void)key;
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (int sig = 1; sig < 32; sig++) {
        const char *name = sigabbrev_np(sig);

        if ((name && strcmp(name, text) == 0) ||
            (wr_text_int(text, 1, 31, &number) && number == sig)) {
            h->options.stop_signal = sig;
            return NULL;
        }
    }
    return "a signal like TERM, INT or USR1";
}

/* A limit, of which `good` says whether it could be read. 0 would mean "as the worker's"
 * there. */
static const char *
store_limit(struct cli_handler *h, const struct cli_handler_key *key, const char *text,
            bool good, int64_t number, const char *otherwise)
{
    if (strcmp(text, "unlimited") == 0) {
        good = true;
        number = WEIR_EXEC_UNLIMITED;
    }
    if (!good || number == 0)
        return otherwise;
    memcpy(field(h, key), &number, sizeof(number));
    return NULL;
}

static const char *
take_limit(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    int64_t number = 0;
    bool good = wr_text_int(text, 1, LIMIT_MAX, &number);

    return store_limit(h, key, text, good, number, "a number, more than 0, or unlimited");
}

static const char *
take_limit_size(struct cli_handler *h, const struct cli_handler_key *key,
                const char *text)
{
    int64_t number = 0;
    bool good = wr_text_size(text, &number);

    if (good && number == 0 && strcmp(key->key, "rlimit_core") == 0)
        number = 1; /* a core file of one byte is none */
    return store_limit(h, key, text, good, number,
                       "a size like 512M, more than 0, or unlimited");
}

static const char *
take_limit_time(struct cli_handler *h, const struct cli_handler_key *key,
                const char *text)
{
    int64_t ms = 0;
    bool good = wr_text_duration(text, &ms);

    return store_limit(h, key, text, good, (ms + 999) / 1000,
                       "a time like 60s, more than 0, or unlimited");
}

static const char *
store_int(struct cli_handler *h, const struct cli_handler_key *key, const char *text,
          int low, int high)
{
    int64_t number;
    int value;

    if (!wr_text_int(text, low, high, &number))
        return "a number within bounds";
    value = (int)number;
    memcpy(field(h, key), &value, sizeof(value));
    return NULL;
}

static const char *
take_nice(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    return store_int(h, key, text, -20, 19) ? "a number from -20 to 19" : NULL;
}

static const char *
take_oom(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    return store_int(h, key, text, -1000, 1000) ? "a number from -1000 to 1000" : NULL;
}

static const char *
take_ioprio(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    static const char *const names[] = {NULL, "realtime", "best-effort", "idle"};
    size_t len = strcspn(text, ":");
    int64_t level = 4; /* the kernel's own default */

    (void)key;
    for (int i = 1; i < 4; i++) {
        if (strlen(names[i]) != len || strncmp(text, names[i], len) != 0)
            continue;
        if (text[len] == ':' && (i == 3 || !wr_text_int(text + len + 1, 0, 7, &level)))
            break;
        h->options.ioprio_class = i;
        h->options.ioprio_level = i == 3 ? 0 : (int)level;
        return NULL;
    }
    return "idle, best-effort, best-effort:0 to best-effort:7, or realtime with the same";
}

static const char *
take_umask(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    size_t len = strlen(text);

    (void)key;
    if (len < 1 || len > 4 || strspn(text, "01234567") != len ||
        strtoul(text, NULL, 8) > 0777)
        return "an octal number like 027";
    h->options.umask = (unsigned)strtoul(text, NULL, 8);
    h->options.set_umask = true;
    return NULL;
}

static const char *
take_duration(struct cli_handler *h, const struct cli_handler_key *key, const char *text)
{
    int64_t ms;

    if (!wr_text_duration(text, &ms))
        return "a duration like 250ms, 15s, 5m";
    if (ms == 0 &&
        (strcmp(key->key, "kill_after") == 0 || strcmp(key->key, "snooze") == 0))
        ms = 1; /* 0 is the default there */
    if (ms == 0)
        return "more than 0; leave the line out for no such time";
    memcpy(field(h, key), &ms, sizeof(ms));
    return NULL;
}

/* "2", "64-65", "*" (all but 0). */
static bool
read_statuses(const char *text, struct weir_exec_exit *out)
{
    const char *dash = strchr(text, '-');
    char first[8];
    int64_t from, to;

    if (strcmp(text, "*") == 0) {
        out->first = 1;
        out->last = 255;
        return true;
    }
    if ((dash ? (size_t)(dash - text) : strlen(text)) >= sizeof(first))
        return false;
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(text, "-"), text);
    if (!wr_text_int(first, 0, 255, &from))
        return false;
    to = from;
    if (dash && (!wr_text_int(dash + 1, 0, 255, &to) || to < from))
        return false;
    out->first = (int)from;
    out->last = (int)to;
    return true;
}

static const char *
take_exits(struct cli_handler *h, enum weir_outcome outcome, const char *text)
{
    char *copy = cli_strdup(text), *rest = NULL;
    struct weir_exec_options *o = &h->options;
    const char *why = *text ? NULL : "statuses like 2,64-65 or *";

    for (char *part = strtok_r(copy, ", \t", &rest); part && !why;
         part = strtok_r(NULL, ", \t", &rest)) {
        struct weir_exec_exit rule = {.outcome = outcome};
        struct weir_exec_exit *longer = cli_handler_own(
            h, cli_alloc((o->exits_n + 1) * sizeof(rule)));

        if (!read_statuses(part, &rule))
            why = "statuses from 0 to 255 like 2,64-65 or *";
        if (o->exits_n > 0)
            memcpy(longer, o->exits, o->exits_n * sizeof(rule));
        longer[o->exits_n++] = rule;
        o->exits = longer;
    }
    free(copy);
    return why;
}

static const char *
take_exit_success(struct cli_handler *h, const struct cli_handler_key *key,
                  const char *text)
{
    (void)key;
    return take_exits(h, WEIR_DONE, text);
}

static const char *
take_exit_permanent(struct cli_handler *h, const struct cli_handler_key *key,
                    const char *text)
{
    (void)key;
    return take_exits(h, WEIR_PERMANENT, text);
}

static const char *
take_exit_snooze(struct cli_handler *h, const struct cli_handler_key *key,
                 const char *text)
{
    (void)key;
    return take_exits(h, WEIR_SNOOZE, text);
}

static const char *
take_exit_retry(struct cli_handler *h, const struct cli_handler_key *key,
                const char *text)
{
    (void)key;
    return take_exits(h, WEIR_RETRY, text);
}

const struct cli_handler_key cli_handler_keys[] = {
#define X(key, kind, member, help) \
    {key, help, take_##kind, offsetof(struct weir_exec_options, member)},
    CLI_HANDLER_KEYS(X)
#undef X
        {0},
};
