/*
 * A proxy between a Unix socket of its own and a server's: the network that fails when
 * told to. A process of its own, so that a test which forks workers has no thread beside
 * it; it ends with the test. The functions may be called from any thread, and by the
 * processes that the test forks.
 */
#ifndef SUPPORT_PROXY_H
#define SUPPORT_PROXY_H

#include <stddef.h>
#include <stdint.h>

struct proxy;

struct proxy *proxy_start(const char *server_socket);
void proxy_stop(struct proxy *proxy); /* closes all connections; NULL is allowed */
const char *proxy_url(const struct proxy *proxy); /* unix://... */

/* Back to passing everything on; what was held up in a stall goes on. */
void proxy_forward(struct proxy *proxy);
/* Nothing is passed on any more, nothing is closed: a firewall that forgot us. New
 * connections are taken and hear nothing. */
void proxy_stall(struct proxy *proxy);
/* The same for one direction alone. */
enum proxy_way {
    PROXY_TO_SERVER = 1,
    PROXY_TO_CLIENT = 2
};
void proxy_stall_way(struct proxy *proxy, enum proxy_way way);
/* The same, both ways, for connections that gave themselves this name (CLIENT SETNAME),
 * also later ones. */
void proxy_stall_named(struct proxy *proxy, const char *name);
/* A connection that asks for something with this text in its words hears nothing more. */
void proxy_mute_about(struct proxy *proxy, const char *text);
/* Everything takes so much longer, in both directions. */
void proxy_delay(struct proxy *proxy, int64_t ms);
/*
 * Once, from now on, all connections counted together (a greeting counts as well): the
 * n-th request is passed on; when the server has answered it, its connection is cut and
 * the answer is lost. Requests sent in one go with it are lost or done, nobody knows.
 */
void proxy_cut_after_requests(struct proxy *proxy, size_t n);
/* Once, from now on: n bytes of replies are passed, then that connection is cut. */
void proxy_cut_reply_at(struct proxy *proxy, size_t n);
/* Closes all connections now; new ones are welcome. */
void proxy_cut_all(struct proxy *proxy);

/* From now on the requests of connections with this name are measured. */
void proxy_measure_named(struct proxy *proxy, const char *name);
size_t proxy_largest_request(struct proxy *proxy); /* bytes of its words */

unsigned proxy_connections(struct proxy *proxy); /* taken since the start */
unsigned proxy_cuts(struct proxy *proxy);        /* connections cut on purpose */

#endif
