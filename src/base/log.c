#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define WAIT_MS 50

static const char *const level_names[] = {
    [WR_LOG_ERROR] = "error",
    [WR_LOG_WARN] = "warn",
    [WR_LOG_INFO] = "info",
    [WR_LOG_DEBUG] = "debug",
};

/* Written at the start of the program, before it has threads. */
static enum wr_log_level max_level = WR_LOG_WARN;
static bool as_json;

void
wr_log_setup(enum wr_log_level level, bool json)
{
    max_level = level;
    as_json = json;
}

void
wr_log_setup_from_env(void)
{
    const char *text = getenv("WEIR_LOG");
    size_t len = text ? strcspn(text, ",") : 0;

    if (!text)
        return;
    for (int i = WR_LOG_ERROR; i <= WR_LOG_DEBUG; i++) {
        if (strlen(level_names[i]) == len && strncmp(level_names[i], text, len) == 0)
            max_level = (enum wr_log_level)i;
    }
    as_json = strstr(text, ",json") != NULL;
}

bool
wr_log_on(enum wr_log_level level)
{
    return level <= max_level;
}

/* JSON forbids what the escape for terminals leaves: quotes and backslashes. */
static void
add_json_text(struct wr_buf *line, const struct wr_buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        if (text->ptr[i] == '"' || text->ptr[i] == '\\')
            wr_buf_add_str(line, "\\");
        wr_buf_add(line, &text->ptr[i], 1);
    }
}

/*
 * A reader of stderr that is gone or stopped must not end or halt the work: SIGPIPE is
 * held back for this one write, and taken away if it was ours; a line for which there is
 * no room within WAIT_MS is lost.
 */
static void
write_line(const struct wr_buf *line)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    const struct timespec none = {0};
    sigset_t pipe_only, before, pending;
    bool was_pending;
    ssize_t n = 0;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    if (poll(&out, 1, WAIT_MS) > 0)
        n = write(STDERR_FILENO, line->ptr, line->len);
    if (n < 0 && errno == EPIPE && !was_pending)
        sigtimedwait(&pipe_only, NULL, &none);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void
wr_log(enum wr_log_level level, const char *fmt, ...)
{
    struct wr_buf text = {0}, line = {0};
    char at[32], message[1024];
    va_list ap;

    if (!wr_log_on(level))
        return;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    wr_text_escape(&text, wr_span_str(message));
    wr_text_show_time(wr_clock_wall_ms(), at);
    if (as_json) {
        wr_buf_addf(&line, "{\"at\":\"%s\",\"level\":\"%s\",\"pid\":%d,\"text\":\"", at,
                    level_names[level], (int)getpid());
        add_json_text(&line, &text);
        wr_buf_add_str(&line, "\"}\n");
    } else {
        wr_buf_addf(&line, "%s weir[%d] %s: ", at, (int)getpid(), level_names[level]);
        wr_buf_add(&line, wr_buf_span(&text).ptr, text.len);
        wr_buf_add_str(&line, "\n");
    }
    if (!line.failed)
        write_line(&line);
    wr_buf_fini(&text);
    wr_buf_fini(&line);
}
