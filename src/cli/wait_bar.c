#include "cli/wait_bar.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/progress.h"

#define EVERY_MS 500
#define BAR 30
#define LINE_MAX 600

struct cli_wait_bar {
    struct cli *cli;
    const char *queue;
    char *const *ids;
    size_t n;
    bool json;

    pthread_t thread;
    pthread_mutex_t mu; /* guards the rest, and stderr while a line is drawn */
    pthread_cond_t changed;
    size_t ended;
    bool stops, shown;
    char last[LINE_MAX]; /* of JSON: what was said last */
};

static size_t
screen_width(void)
{
    struct winsize w;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

/* With mu held. */
static void
wipe(struct cli_wait_bar *b)
{
    if (b->shown)
        fputs("\r\033[K", stderr);
    b->shown = false;
    fflush(stderr);
}

/* A line no wider than the screen: it could not be wiped. Not cut within a character. */
static void
draw(struct cli_wait_bar *b, int percent, const char *text)
{
    char bar[BAR + 1] = "", line[LINE_MAX];
    size_t width = screen_width() - 1;

    if (percent >= 0) {
        memset(bar, '.', BAR);
        memset(bar, '#', (size_t)(percent * BAR / 100));
        bar[BAR] = '\0';
        snprintf(line, sizeof(line), "[%s] %3d%%  %s", bar, percent, text);
    } else {
        snprintf(line, sizeof(line), "%s", text);
    }
    if (strlen(line) > width) {
        while (width > 0 && ((unsigned char)line[width] & 0xc0) == 0x80)
            width--;
        line[width] = '\0';
    }
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    b->shown = true;
}

/* ---- one job ---- */

static void
say_json(struct cli_wait_bar *b, const struct weir_job_view *v,
         const struct weir_progress *p)
{
    struct cli_json *json;
    char now[LINE_MAX];

    snprintf(now, sizeof(now), "%s %s", weir_job_view_state(v),
             weir_job_view_progress(v));
    if (strcmp(now, b->last) == 0)
        return;
    snprintf(b->last, sizeof(b->last), "%s", now);
    json = cli_json_new();
    cli_json_text(json, "id", weir_job_view_id(v));
    cli_json_text(json, "state", weir_job_view_state(v));
    if (p->percent >= 0)
        cli_json_int(json, "percent", p->percent);
    if (*p->stage)
        cli_json_text(json, "stage", p->stage);
    if (*p->message)
        cli_json_text(json, "message", p->message);
    cli_json_print(json, stderr);
    cli_json_free(json);
    fflush(stderr);
}

static void
show_one(struct cli_wait_bar *b, const struct weir_job_view *v)
{
    struct wr_buf shown = {0};
    struct weir_progress p;
    char text[LINE_MAX];

    weir_job_view_progress_parts(v, &p);
    if (b->json) {
        say_json(b, v, &p);
        return;
    }
    snprintf(text, sizeof(text), "%.80s%s%.300s", *p.stage ? p.stage : "",
             *p.stage && *p.message ? ": " : "", p.message);
    if (text[0] == '\0')
        snprintf(text, sizeof(text), "%s", weir_job_view_state(v));
    wr_text_escape(&shown, wr_span_str(text));
    draw(b, p.percent, wr_buf_span(&shown).ptr);
    wr_buf_fini(&shown);
}

/* ---- several ---- */

static void
show_count(struct cli_wait_bar *b)
{
    char text[80];

    if (b->json)
        return;
    snprintf(text, sizeof(text), "%zu of %zu job%s ended", b->ended, b->n,
             wr_text_s((int64_t)b->n));
    draw(b, (int)(b->ended * 100 / b->n), text);
}

/* ---- the thread ---- */

/* With mu held; false: told to stop. */
static bool
sleep_ms(struct cli_wait_bar *b, int64_t ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!b->stops && pthread_cond_clockwait(&b->changed, &b->mu, CLOCK_MONOTONIC,
                                               &until) != ETIMEDOUT)
        continue;
    return !b->stops;
}

static void *
bar_main(void *arg)
{
    struct cli_wait_bar *b = arg;

    pthread_mutex_lock(&b->mu);
    while (sleep_ms(b, EVERY_MS)) {
        struct weir_job_view *v = NULL;
        enum weir_err rc = WEIR_OK;

        if (b->n == 1) {
            pthread_mutex_unlock(&b->mu);
            rc = weir_job_inspect(b->cli->client, b->queue, b->ids[0], &v, NULL);
            pthread_mutex_lock(&b->mu);
        }
        if (!b->stops && b->ended == 0 && rc == WEIR_OK && v)
            show_one(b, v);
        else if (!b->stops && b->n > 1)
            show_count(b);
        weir_job_view_free(v);
    }
    wipe(b);
    pthread_mutex_unlock(&b->mu);
    return NULL;
}

/* ---- */

enum weir_err
cli_wait_bar_start(struct cli *cli, const char *form, const char *queue, char *const *ids,
                   size_t n, struct cli_wait_bar **out, struct weir_error *err)
{
    struct cli_progress how;
    struct cli_wait_bar *b;
    enum weir_err rc = cli_progress_init(&how, cli, form, "jobs", err);

    *out = NULL;
    if (rc != WEIR_OK || !how.on || n == 0)
        return rc;
    b = cli_alloc(sizeof(*b));
    b->cli = cli;
    b->json = how.json;
    b->queue = queue;
    b->ids = ids;
    b->n = n;
    pthread_mutex_init(&b->mu, NULL);
    pthread_cond_init(&b->changed, NULL);
    if (pthread_create(&b->thread, NULL, bar_main, b) != 0) {
        free(b); /* it is waited for all the same */
        return WEIR_OK;
    }
    *out = b;
    return WEIR_OK;
}

void
cli_wait_bar_hide(struct cli_wait_bar *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->mu);
    wipe(b);
}

void
cli_wait_bar_go_on(struct cli_wait_bar *b, bool one_ended)
{
    if (!b)
        return;
    b->ended += one_ended;
    pthread_mutex_unlock(&b->mu);
}

void
cli_wait_bar_stop(struct cli_wait_bar *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->mu);
    b->stops = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->mu);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->mu);
    free(b);
}
