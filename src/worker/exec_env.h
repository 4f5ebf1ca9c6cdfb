/* worker/exec_env.h - what a command learns of its job from its environment. */
#ifndef WR_WORKER_EXEC_ENV_H
#define WR_WORKER_EXEC_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "worker/exec_config.h"
#include "worker/handler.h"

struct wr_exec_env {
    char **list; /* NULL at the end, after the first fill */
    size_t n, cap;
    bool failed; /* out of memory */
};

/* The variables of weir-exec(7), then those of the handler. tmpdir: WEIR_TMPDIR;
 * timeout_ms: how long it may run, 0: as long as it likes. */
void wr_exec_env_fill(struct wr_exec_env *env, const struct weir_delivery *d,
                      const struct wr_exec_config *config, const char *tmpdir,
                      int64_t timeout_ms);
void wr_exec_env_fini(struct wr_exec_env *env);

#endif
