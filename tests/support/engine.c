#include "support/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/redis_server.h"
#include "support/test_program.h"

static const char *engine; /* NULL: the program does not run by RUN_TESTS() */
static bool is_named;
static unsigned seen; /* queues that were looked at */
static char freed[4][64];
static size_t freed_n;

void
engine_choose(void)
{
    const char *name = getenv("WEIR_TEST_ENGINE");

    is_named = name != NULL;
    engine = name ? name : "list";
    if (strcmp(engine, "list") != 0 && strcmp(engine, "stream") != 0) {
        fprintf(stderr, "WEIR_TEST_ENGINE: %s is not list or stream\n", engine);
        exit(2);
    }
    setenv("WEIR_ENGINE", engine, 1);
}

bool
engine_was_seen(void)
{
    return !is_named || seen > 0;
}

bool
engine_is_stream(void)
{
    return strcmp(engine, "stream") == 0;
}

long
engine_ready(struct redis_server *server, const char *queue)
{
    const char *pending, *front;

    if (!engine_is_stream())
        return atol(redis_do(server, "LLEN weir:{%s}:ready", queue));
    if (strcmp(redis_do(server, "EXISTS weir:{%s}:stream", queue), "0") == 0)
        return 0;
    pending = redis_do(server, "XPENDING weir:{%s}:stream workers", queue);
    front = strstr(pending, " _front "); /* they wait */
    return atol(redis_do(server, "XLEN weir:{%s}:stream", queue)) - atol(pending) +
           (front ? atol(front + strlen(" _front ")) : 0);
}

/* Of a key: fails the test if it is another one. */
static void
check(struct redis_server *server, const char *key)
{
    const char *has = redis_do(server, "HGET %s engine", key);

    if (strcmp(has, engine) != 0)
        fail_msg("%s: engine %s, but the test is of %s", key, has, engine);
    seen++;
}

void
engine_is_free(struct redis_server *server, const char *queue)
{
    assert_true(freed_n < sizeof(freed) / sizeof(freed[0]));
    snprintf(freed[freed_n], sizeof(freed[0]), "weir:{%s}:config", queue);
    check(server, freed[freed_n++]);
}

static bool
is_free(const char *key)
{
    for (size_t i = 0; i < freed_n; i++) {
        if (strcmp(freed[i], key) == 0)
            return true;
    }
    return false;
}

void
engine_check(struct redis_server *server)
{
    char keys[4096], *key, *save = NULL;

    assert_non_null(engine);
    snprintf(keys, sizeof(keys), "%s", redis_do(server, "KEYS weir:{*}:config"));
    for (key = strtok_r(keys, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
        if (!is_free(key))
            check(server, key);
    }
    freed_n = 0;
}
