/*
 * embed/embed.h - a private redis-server (or valkey-server): nothing to configure.
 *
 * It listens on a Unix socket only, keeps its jobs in an append-only file in its folder,
 * and ends with the process that started it (with the thread, to be exact: start it from
 * one that lives as long). Its folder is locked for as long as the server lives.
 */
#ifndef WR_EMBED_EMBED_H
#define WR_EMBED_EMBED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <weir/error.h>

struct wr_embed;

struct wr_embed_options {
    const char *dir;    /* made if it is not there; 0700 */
    const char *socket; /* over 107 bytes: a short one in /tmp/weir-UID stands in */
    const char *fsync;  /* "everysec" (default), "always" */
};

/* E_CONFIG: no redis-server installed, the folder is in use or cannot be used, another
 * server has the socket; E_IO: it ended at once (its last words are quoted). Returns when
 * it has loaded its file and answers. */
enum weir_err
wr_embed_start(const struct wr_embed_options *options, struct wr_embed **out,
               struct weir_error *err) WEIR_MUST_CHECK;
void
wr_embed_stop(struct wr_embed *embed); /* NULL is allowed; waits until all is saved */
pid_t wr_embed_pid(const struct wr_embed *embed);
const char *wr_embed_url(const struct wr_embed *embed);
/* False when it has ended by itself; *err says what it said last. */
bool wr_embed_lives(struct wr_embed *embed, struct weir_error *err);

/* Does a server answer a PING there? */
bool wr_embed_answers(const char *url);

/* ${XDG_STATE_HOME:-~/.local/state}/weir/NAMESPACE and the socket of `weir dev`
 * ($XDG_RUNTIME_DIR/weir-NAMESPACE.sock, else in the folder). A namespace that is no
 * plain file name is made one. False: no home, or too long. */
bool wr_embed_default_dir(const char *ns, char *out, size_t cap);
bool wr_embed_default_socket(const char *ns, char *out, size_t cap);

#endif
