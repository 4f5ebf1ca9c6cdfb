#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

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
    if (!line.failed && write(STDERR_FILENO, line.ptr, line.len) < 0)
        line.failed = true; /* stderr is full or closed: a log never stops the work */
    wr_buf_fini(&text);
    wr_buf_fini(&line);
}
