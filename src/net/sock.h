/*
 * net/sock.h - non-blocking stream sockets: TCP and Unix.
 *
 * All descriptors are close-on-exec. Reading and writing have three answers, by a
 * table of functions, so that TLS can stand in the place of the plain socket. TLS is
 * not built in yet: redis/conn.c refuses rediss:// and valkeys:// with E_CONFIG.
 * Resolving a host name may block for as long as the system's resolver takes.
 */
#ifndef WR_NET_SOCK_H
#define WR_NET_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

enum wr_io {
    WR_IO_DONE,
    WR_IO_AGAIN,
    WR_IO_FAILED
};

/*
 * read: *got > 0 with DONE; DONE with *got == 0 is the end of the stream.
 * write: *put > 0 with DONE. FAILED leaves the reason in errno.
 */
struct wr_sock_ops {
    enum wr_io (*read)(int fd, void *to, size_t cap, size_t *got);
    enum wr_io (*write)(int fd, const void *from, size_t len, size_t *put);
};

extern const struct wr_sock_ops wr_sock_plain;

/*
 * Connects within the deadline (monotonic ms). TCP gets NODELAY, keepalive and
 * TCP_USER_TIMEOUT, so that a peer that vanished is noticed. The caller closes *fd.
 *
 * E_CONNECT  with the address and the reason
 */
enum weir_err wr_sock_connect_tcp(const char *host, int port, int64_t deadline_ms,
                                  int *fd, struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_sock_connect_unix(const char *path, int64_t deadline_ms, int *fd,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/* Waits for POLLIN or POLLOUT until the deadline; false when it passed. */
bool wr_sock_wait(int fd, short events, int64_t deadline_ms);

#endif
