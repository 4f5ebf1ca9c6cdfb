#include "cli/progress.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"

#define FIRST_MS 500
#define EVERY_MS 100
#define BAR 30

enum weir_err
cli_progress_init(struct cli_progress *p, struct cli *cli, const char *form,
                  const char *what, struct weir_error *err)
{
    *p = (struct cli_progress){.what = what, .begin_ms = wr_clock_ms()};
    p->on = cli->err_is_tty && !cli->globals.quiet;
    if (!form || !*form || strcmp(form, "auto") == 0)
        return WEIR_OK;
    p->json = strcmp(form, "json") == 0;
    p->on = p->json;
    if (!p->json && strcmp(form, "none") != 0)
        return wr_fail(err, WEIR_E_ARG, 0,
                       "--progress: \"%.20s\" is not auto, json or none", form);
    return WEIR_OK;
}

static void
show_bar(int64_t part, int64_t whole)
{
    char bar[BAR + 1];
    int64_t full = part >= whole ? BAR : part * BAR / whole;

    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = '\0';
    fprintf(stderr, "  [%s] %3lld%%", bar,
            (long long)(part >= whole ? 100 : part * 100 / whole));
}

void
cli_progress_show(struct cli_progress *p, int64_t done, int64_t part, int64_t whole)
{
    int64_t now = wr_clock_ms(), took = now - p->begin_ms;
    long long rate = (long long)(took > 0 ? done * 1000 / took : 0);

    if (!p->on || took < FIRST_MS || now - p->last_ms < EVERY_MS)
        return;
    p->last_ms = now;
    p->shown = true;
    if (p->json) {
        fprintf(stderr, "{\"done\":%lld,\"part\":%lld,\"whole\":%lld,\"per_s\":%lld}\n",
                (long long)done, (long long)part, (long long)whole, rate);
        return;
    }
    fprintf(stderr, "\r\033[K%lld %s  %lld/s", (long long)done, p->what, rate);
    if (whole > 0)
        show_bar(part, whole);
    fflush(stderr);
}

void
cli_progress_end(struct cli_progress *p)
{
    if (p->shown && !p->json)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
