#include "cli/attempt_view.h"

#include <string.h>

#include "base/text.h"
#include "cli/json.h"
#include "cli/out.h"

/* "web-1/412" of "web-1.412.0a1b2c3d4e5f6071". */
static void
add_worker(struct wr_buf *out, const char *worker)
{
    const char *random = strrchr(worker, '.'), *pid = NULL;

    for (const char *p = random; p && p > worker && !pid; p--)
        pid = p < random && *p == '.' ? p : NULL;
    if (pid)
        wr_buf_addf(out, "  %.*s/%.*s", (int)(pid - worker), worker,
                    (int)(random - pid - 1), pid + 1);
    else if (*worker)
        wr_buf_addf(out, "  %s", worker);
}

static void
add_usage(struct wr_buf *out, const struct weir_attempt *a)
{
    char cpu[32];

    wr_text_show_duration((a->user_us + a->sys_us) / 1000, cpu, sizeof(cpu));
    wr_buf_addf(out, "  cpu %s", cpu);
    if (a->max_rss_kib >= 1024)
        wr_buf_addf(out, "  rss %.1fM", (double)a->max_rss_kib / 1024);
    else
        wr_buf_addf(out, "  rss %lldk", (long long)a->max_rss_kib);
    if (a->out_cut || a->err_cut)
        wr_buf_addf(out, "  %s cut", a->out_cut ? "result" : "log");
}

void
cli_attempt_text(struct cli *cli, const struct weir_attempt *a, int64_t now,
                 struct wr_buf *out)
{
    char text[64];

    if (a->number > 0)
        wr_buf_addf(out, "%lld  ", (long long)a->number);
    cli_when(cli, a->at, now, text, sizeof(text));
    wr_buf_addf(out, "%s %s", text, a->outcome);
    if (a->is_command && *a->text == '\0' && a->exit_code >= 0)
        wr_buf_addf(out, "  exit %d", a->exit_code);
    else if (a->is_command && *a->text == '\0' && a->signal > 0)
        wr_buf_addf(out, "  signal %d", a->signal);
    if (a->wall_ms >= 0) {
        wr_text_show_duration(a->wall_ms, text, sizeof(text));
        wr_buf_addf(out, "  %s", text);
    }
    if (a->is_command && a->start_errno == 0)
        add_usage(out, a);
    if (a->number > 0)
        add_worker(out, a->worker);
    if (*a->text)
        wr_buf_addf(out, "%s%s", a->number > 0 ? "  " : " ", a->text);
}

static void
put_command(struct cli_json *json, const struct weir_attempt *a)
{
    if (a->exit_code >= 0)
        cli_json_int(json, "exit_code", a->exit_code);
    if (a->signal != 0)
        cli_json_int(json, "signal", a->signal);
    if (a->start_errno != 0)
        cli_json_int(json, "start_errno", a->start_errno);
    cli_json_int(json, "pid", a->pid);
    cli_json_int(json, "user_us", a->user_us);
    cli_json_int(json, "sys_us", a->sys_us);
    cli_json_int(json, "max_rss_kib", a->max_rss_kib);
    cli_json_int(json, "bytes_in", a->bytes_in);
    cli_json_int(json, "bytes_out", a->bytes_out);
    cli_json_int(json, "bytes_err", a->bytes_err);
    cli_json_bool(json, "out_cut", a->out_cut);
    cli_json_bool(json, "err_cut", a->err_cut);
    if (a->core)
        cli_json_bool(json, "core", true);
    if (a->out_of_memory)
        cli_json_bool(json, "out_of_memory", true);
}

struct cli_json *
cli_attempts_json(const struct weir_job_view *v)
{
    struct cli_json *all = cli_json_new_array();
    size_t n;
    const struct weir_attempt *attempts = weir_job_view_attempts(v, &n);

    for (size_t i = 0; i < n; i++) {
        const struct weir_attempt *a = &attempts[i];
        struct cli_json *json = cli_json_new();

        if (a->number > 0)
            cli_json_int(json, "run", a->number);
        cli_json_int(json, "at", a->at);
        cli_json_text(json, "outcome", a->outcome);
        if (*a->worker)
            cli_json_text(json, "worker", a->worker);
        if (*a->text)
            cli_json_text(json, "error", a->text);
        if (a->wall_ms >= 0)
            cli_json_int(json, "wall_ms", a->wall_ms);
        if (a->is_command)
            put_command(json, a);
        cli_json_append(all, json);
    }
    return all;
}
