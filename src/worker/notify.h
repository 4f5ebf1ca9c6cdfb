/*
 * worker/notify.h - says to a service manager how things are: datagrams to the socket
 * that NOTIFY_SOCKET names, as sd_notify(3) describes them. Without that variable nothing
 * is said. Not thread-safe; nothing blocks.
 */
#ifndef WR_WORKER_NOTIFY_H
#define WR_WORKER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/export.h>

struct wr_notify {
    int fd;              /* -1: nobody listens */
    int64_t watchdog_ms; /* how often WATCHDOG=1 must come at least; 0: need not */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and takes them out of the
 * environment: they are not for our children. */
void wr_notify_open(struct wr_notify *n);
void wr_notify_close(struct wr_notify *n);
bool wr_notify_listens(const struct wr_notify *n);
/* "READY=1\nSTATUS=well". False: not now, its queue is full; say it again later. */
bool wr_notify_say(struct wr_notify *n, const char *fmt, ...) WEIR_PRINTF(2, 3);

#endif
