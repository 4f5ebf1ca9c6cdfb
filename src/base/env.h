/* base/env.h - settings from the environment. */
#ifndef WR_BASE_ENV_H
#define WR_BASE_ENV_H

/* The value of the first of these variables (NULL at the end) that is set and not empty,
 * else `otherwise`. Borrowed from the environment. */
const char *wr_env_first(const char *const *names, const char *otherwise);

/* WEIR_URL, REDIS_URL or VALKEY_URL, else redis://127.0.0.1:6379/0. */
const char *wr_env_url(void);
/* WEIR_NAMESPACE, else "weir". */
const char *wr_env_namespace(void);
/* WEIR_ENGINE, else "list". */
const char *wr_env_engine(void);

#endif
