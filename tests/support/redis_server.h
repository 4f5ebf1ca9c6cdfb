/*
 * A private redis-server for one test program: its own folder, a Unix socket, nothing on
 * the network, gone when the program ends however it ends.
 */
#ifndef SUPPORT_REDIS_SERVER_H
#define SUPPORT_REDIS_SERVER_H

#include <sys/types.h>

struct redis_server;
struct wr_conn;

/* extra: more words for its command line, NULL at the end, copied; may be NULL. Ends the
 * test program when no server can be had. */
struct redis_server *redis_server_start(const char *const *extra);
void redis_server_stop(struct redis_server *server);
void redis_server_kill(struct redis_server *server);    /* SIGKILL, waited for */
void redis_server_restart(struct redis_server *server); /* after kill; same folder */
void redis_server_pause(struct redis_server *server);   /* SIGSTOP */
void redis_server_resume(struct redis_server *server);  /* SIGCONT */

const char *redis_server_url(const struct redis_server *server);
const char *redis_server_socket(const struct redis_server *server);
const char *redis_server_dir(const struct redis_server *server);
pid_t redis_server_pid(const struct redis_server *server);
/* The connection that redis_do() uses, opened when needed; stays the server's. */
struct wr_conn *redis_server_conn(struct redis_server *server);
/* A port of the loopback that nobody listens on now, for "--port". */
int redis_server_free_port(void);

/* Runs one command, its words split at blanks, and answers the reply as text: arrays as
 * their elements with blanks between, nil as "(nil)". Lives until the eighth call after.
 */
const char *redis_do(struct redis_server *server, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
