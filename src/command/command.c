#include "command/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MAGIC "weir-command/1\n"

bool
wr_command_is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
              (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return len > 0;
}

/* ---- writing ---- */

static void
add_words(struct wr_buf *out, const char *name, const char *const *words, size_t n)
{
    wr_buf_add_str(out, name);
    for (size_t i = 0; i < n; i++) {
        wr_buf_add_str(out, " ");
        wr_text_word_encode(out, wr_span_str(words[i]));
    }
    wr_buf_add_str(out, "\n");
}

/* NAME=VALUE, of which = alone stays as it is. */
static void
add_env(struct wr_buf *out, const char *const *env, size_t n)
{
    wr_buf_add_str(out, "env");
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(env[i], '=');
        size_t len = equals ? (size_t)(equals - env[i]) : strlen(env[i]);

        wr_buf_add_str(out, " ");
        wr_text_word_encode(out, (struct wr_span){env[i], len});
        wr_buf_add_str(out, "=");
        wr_text_word_encode(out, wr_span_str(equals ? equals + 1 : ""));
    }
    wr_buf_add_str(out, "\n");
}

bool
wr_command_write(const struct wr_command *c, struct wr_buf *out)
{
    add_words(out, "argv", c->argv, c->argc);
    if (c->envc > 0)
        add_env(out, c->env, c->envc);
    if (c->cwd)
        add_words(out, "cwd", &c->cwd, 1);
    if (c->until_ms != 0)
        wr_buf_addf(out, "until %" PRId64 "\n", c->until_ms);
    wr_buf_add_str(out, "\n");
    wr_buf_add(out, c->input.ptr, c->input.len);
    return !out->failed;
}

bool
wr_command_finish(struct wr_span written, const char *sign, struct wr_buf *payload)
{
    wr_buf_add_str(payload, MAGIC);
    if (*sign)
        wr_buf_addf(payload, "sign hmac-sha256 %s\n", sign);
    wr_buf_add(payload, written.ptr, written.len);
    return !payload->failed;
}

/* ---- reading ---- */

struct reader {
    const char *at, *end;
    struct wr_command *out;
    size_t words;
};

/* The line "NAME REST\n", if it is the next; *rest is then what follows the blank. */
static bool
take_line(struct reader *r, const char *name, struct wr_span *rest)
{
    size_t len = strlen(name);
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));

    if (!stop || (size_t)(stop - r->at) <= len || memcmp(r->at, name, len) != 0 ||
        r->at[len] != ' ')
        return false;
    *rest = (struct wr_span){r->at + len + 1, (size_t)(stop - r->at) - len - 1};
    r->at = stop + 1;
    return true;
}

/* One word as text; NULL: not encoded as it should be, or with a NUL. */
static char *
word_text(const char *at, size_t len)
{
    struct wr_buf text = {0};

    wr_buf_add(&text, "", 0);
    if (!wr_text_word_decode(&text, (struct wr_span){at, len}) || text.failed ||
        (text.len > 0 && memchr(text.ptr, '\0', text.len))) {
        wr_buf_fini(&text);
        return NULL;
    }
    return text.ptr ? text.ptr : strdup("");
}

/* The name and the value of a variable are words of their own. */
static char *
env_text(const char *at, size_t len)
{
    const char *equals = memchr(at, '=', len);
    size_t name = equals ? (size_t)(equals - at) : 0;
    struct wr_buf text = {0};
    char *value;

    if (!equals || !wr_command_is_name(at, name))
        return NULL;
    value = word_text(equals + 1, len - name - 1);
    if (!value)
        return NULL;
    wr_buf_addf(&text, "%.*s=%s", (int)name, at, value);
    free(value);
    if (text.failed)
        wr_buf_fini(&text);
    return text.ptr;
}

static bool
take_words(struct reader *r, struct wr_span line, bool env, const char *const **out,
           size_t *n)
{
    char **list;
    const char *at = line.ptr, *end = at + line.len;
    size_t count = 1;

    for (const char *p = at; p < end; p++)
        count += *p == ' ';
    r->words += count;
    if (r->words > WR_COMMAND_WORDS_MAX)
        return false;
    list = calloc(count + 1, sizeof(*list));
    if (!list)
        return false;
    *out = (const char *const *)list;
    while (*n < count) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        size_t len = (size_t)((blank ? blank : end) - at);
        char *text = env ? env_text(at, len) : word_text(at, len);

        if (!text)
            return false;
        list[(*n)++] = text;
        at += len + 1;
    }
    return true;
}

static bool
take_number(struct wr_span text, int64_t *out)
{
    char copy[24];

    if (text.len >= sizeof(copy))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return wr_text_int(copy, 1, INT64_MAX, out);
}

static const char *
take_sign(struct reader *r)
{
    static const char kind[] = "hmac-sha256 ";
    size_t kind_len = sizeof(kind) - 1;
    struct wr_span line;

    if (!take_line(r, "sign", &line))
        return NULL;
    if (line.len != kind_len + WR_COMMAND_SIGN_LEN ||
        memcmp(line.ptr, kind, kind_len) != 0)
        return "a signature of an unknown kind";
    memcpy(r->out->sign, (const char *)line.ptr + kind_len, WR_COMMAND_SIGN_LEN);
    if (strspn(r->out->sign, "0123456789abcdef") != WR_COMMAND_SIGN_LEN)
        return "a signature that is none";
    return NULL;
}

static const char *
take_header(struct reader *r)
{
    struct wr_command *out = r->out;
    struct wr_span line;

    if (!take_line(r, "argv", &line) ||
        !take_words(r, line, false, &out->argv, &out->argc) || !out->argv ||
        !out->argv[0] || out->argv[0][0] == '\0')
        return "no line argv that names a command";
    if (take_line(r, "env", &line) && !take_words(r, line, true, &out->env, &out->envc))
        return "a line env that cannot be read";
    if (take_line(r, "cwd", &line)) {
        out->cwd = word_text(line.ptr, line.len);
        if (!out->cwd)
            return "a line cwd that cannot be read";
    }
    if (take_line(r, "until", &line) && !take_number(line, &out->until_ms))
        return "a line until that is no time";
    if (r->at == r->end || *r->at != '\n')
        return "a line that this version does not know";
    return NULL;
}

const char *
wr_command_read(struct wr_span payload, struct wr_command *out)
{
    const char *begin = payload.ptr, *why;
    size_t magic = strlen(MAGIC);
    struct reader r = {.out = out};

    *out = (struct wr_command){0};
    if (payload.len < magic || memcmp(begin, MAGIC, magic) != 0)
        return "it does not begin with weir-command/1";
    r.at = begin + magic;
    r.end = begin + payload.len;
    why = take_sign(&r);
    if (why)
        return why;
    out->signed_bytes = (struct wr_span){r.at, (size_t)(r.end - r.at)};
    why = take_header(&r);
    if (why)
        return why;
    r.at++;
    out->input = (struct wr_span){r.at, (size_t)(r.end - r.at)};
    return NULL;
}

static void
free_words(const char *const *words)
{
    for (size_t i = 0; words && words[i]; i++)
        free((void *)(uintptr_t)words[i]);
    free((void *)(uintptr_t)words);
}

void
wr_command_fini(struct wr_command *c)
{
    free_words(c->argv);
    free_words(c->env);
    free((void *)(uintptr_t)c->cwd);
    *c = (struct wr_command){0};
}
