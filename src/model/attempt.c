#include "model/attempt.h"

#include <stdlib.h>
#include <string.h>

/* The number of a fact, 0 when it is none. */
static int64_t
number_of(struct wr_span value)
{
    char text[24];

    if (value.len == 0 || value.len >= sizeof(text))
        return 0;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    return strtoll(text, NULL, 10);
}

static bool
is(struct wr_span name, const char *word)
{
    return name.len == strlen(word) && memcmp(name.ptr, word, name.len) == 0;
}

static void
take_fact(struct wr_attempt *a, struct wr_span name, struct wr_span value)
{
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {
        {"n", &a->number},     {"wall", &a->wall_ms},  {"pid", &a->pid},
        {"user", &a->user_us}, {"sys", &a->sys_us},    {"rss", &a->max_rss_kib},
        {"in", &a->bytes_in},  {"out", &a->bytes_out}, {"err", &a->bytes_err}};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (is(name, numbers[i].name))
            *numbers[i].to = number_of(value);
    }
    if (is(name, "worker"))
        a->worker = value;
    else if (is(name, "exit"))
        a->exit_code = (int)number_of(value);
    else if (is(name, "signal"))
        a->signal = (int)number_of(value);
    else if (is(name, "errno"))
        a->start_errno = (int)number_of(value);
    a->is_command = a->is_command || is(name, "command");
    a->out_cut = a->out_cut || is(name, "out_cut");
    a->err_cut = a->err_cut || is(name, "err_cut");
    a->core = a->core || is(name, "core");
    a->out_of_memory = a->out_of_memory || is(name, "oom");
}

static struct wr_span
cut_at(struct wr_span *from, char stop)
{
    const char *begin = from->ptr,
               *found = from->len > 0 ? memchr(begin, stop, from->len) : NULL;
    size_t len = found ? (size_t)(found - begin) : from->len;

    from->ptr = begin + len + (found ? 1 : 0);
    from->len -= len + (found ? 1 : 0);
    return (struct wr_span){begin, len};
}

static bool
has_facts(struct wr_span rest)
{
    const char *p = rest.ptr;

    return rest.len >= 4 && memcmp(p, "=n:", 3) == 0 && p[3] >= '0' && p[3] <= '9';
}

bool
wr_attempt_read(struct wr_span *from, struct wr_attempt *out)
{
    struct wr_span line, facts;

    if (from->len == 0)
        return false;
    *out = (struct wr_attempt){.wall_ms = -1, .exit_code = -1, .worker = {"", 0}};
    line = cut_at(from, '\n');
    out->at_ms = number_of(cut_at(&line, ' '));
    out->outcome = cut_at(&line, ' ');
    if (has_facts(line)) {
        facts = cut_at(&line, ' ');
        facts.ptr = (const char *)facts.ptr + 1;
        facts.len--;
        while (facts.len > 0) {
            struct wr_span value = cut_at(&facts, ';'), name = cut_at(&value, ':');

            take_fact(out, name, value);
        }
    }
    out->text = line;
    return true;
}

static void
add(struct wr_buf *out, const char *name, int64_t value)
{
    wr_buf_addf(out, "%s%s:%lld", out->len > 0 ? ";" : "", name, (long long)value);
}

static void
add_mark(struct wr_buf *out, const char *name, bool is_set)
{
    if (is_set)
        wr_buf_addf(out, "%s%s", out->len > 0 ? ";" : "", name);
}

void
wr_attempt_write_facts(struct wr_buf *out, const struct wr_attempt *a)
{
    if (a->wall_ms >= 0)
        add(out, "wall", a->wall_ms);
    if (!a->is_command)
        return;
    add_mark(out, "command", true);
    if (a->exit_code >= 0)
        add(out, "exit", a->exit_code);
    if (a->signal != 0)
        add(out, "signal", a->signal);
    if (a->start_errno != 0)
        add(out, "errno", a->start_errno);
    add(out, "pid", a->pid);
    add(out, "user", a->user_us);
    add(out, "sys", a->sys_us);
    add(out, "rss", a->max_rss_kib);
    add(out, "in", a->bytes_in);
    add(out, "out", a->bytes_out);
    add(out, "err", a->bytes_err);
    add_mark(out, "out_cut", a->out_cut);
    add_mark(out, "err_cut", a->err_cut);
    add_mark(out, "core", a->core);
    add_mark(out, "oom", a->out_of_memory);
}
