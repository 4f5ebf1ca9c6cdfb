/*
 * base/log.h - lines for people and log collectors, on stderr.
 *
 * WEIR_LOG=level[,json] chooses the level (error, warn, info, debug; default
 * warn) and the form. One write(2) per line, so lines of several processes do
 * not mix; control characters are escaped, since ids and errors come from
 * anybody. A full or closed stderr is ignored. Any thread; safe after fork.
 */
#ifndef WR_BASE_LOG_H
#define WR_BASE_LOG_H

#include <stdbool.h>

#include <weir/export.h>

enum wr_log_level {
    WR_LOG_NONE = -1, /* for wr_log_setup() alone */
    WR_LOG_ERROR,
    WR_LOG_WARN,
    WR_LOG_INFO,
    WR_LOG_DEBUG
};

void wr_log_setup(enum wr_log_level level, bool json);
void wr_log_setup_from_env(void); /* reads WEIR_LOG */
bool wr_log_on(enum wr_log_level level);
void wr_log(enum wr_log_level level, const char *fmt, ...) WEIR_PRINTF(2, 3);

#define wr_log_error(...) wr_log(WR_LOG_ERROR, __VA_ARGS__)
#define wr_log_warn(...) wr_log(WR_LOG_WARN, __VA_ARGS__)
#define wr_log_info(...) wr_log(WR_LOG_INFO, __VA_ARGS__)
#define wr_log_debug(...) wr_log(WR_LOG_DEBUG, __VA_ARGS__)

#endif
