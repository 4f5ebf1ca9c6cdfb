/*
 * On which engine the queues of a test program are stored: WEIR_TEST_ENGINE=stream, else
 * list. Whatever makes a queue in it, or in a process that it starts, follows that
 * without a word (WEIR_ENGINE); and what it made is looked at, so that no run tests
 * another engine than it says.
 */
#ifndef SUPPORT_ENGINE_H
#define SUPPORT_ENGINE_H

#include <stdbool.h>

struct redis_server;

bool engine_is_stream(void);
/* The jobs of a queue that nobody has taken. */
long engine_ready(struct redis_server *server, const char *queue);

/* Fails the test if a queue of the server has another engine. At the end of each test,
 * while its queues are there. */
void engine_check(struct redis_server *server);
/* The queue has it now, and is free to have another until the next check. */
void engine_is_free(struct redis_server *server, const char *queue);

/* For test_program_run(): before the first test; after the last, true if a run on a named
 * engine has seen a queue. */
void engine_choose(void);
bool engine_was_seen(void);

#endif
