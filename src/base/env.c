#include "base/env.h"

#include <stdlib.h>

const char *
wr_env_first(const char *const *names, const char *otherwise)
{
    for (; *names; names++) {
        const char *value = getenv(*names);

        if (value && *value)
            return value;
    }
    return otherwise;
}

const char *
wr_env_url(void)
{
    static const char *const names[] = {"WEIR_URL", "REDIS_URL", "VALKEY_URL", NULL};

    return wr_env_first(names, "redis://127.0.0.1:6379/0");
}

const char *
wr_env_namespace(void)
{
    static const char *const names[] = {"WEIR_NAMESPACE", NULL};

    return wr_env_first(names, "weir");
}

const char *
wr_env_engine(void)
{
    static const char *const names[] = {"WEIR_ENGINE", NULL};

    return wr_env_first(names, "list");
}
