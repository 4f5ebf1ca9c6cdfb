/*
 * What the tests of workers share: a server, a client, and workers as real processes that
 * serve the queues q and other. A test program sets `handlers` before its first worker.
 */
#ifndef INTEGRATION_WORKER_RIG_H
#define INTEGRATION_WORKER_RIG_H

#include "support/engine.h"
#include "support/redis_server.h"
#include "support/test_program.h"
#include "support/worker_process.h"

struct worker_rig {
    struct redis_server *server;
    struct weir_client *client;
    void (*handlers)(struct weir_worker *worker);
    const char *url;   /* what new workers connect to; NULL: the server itself */
    pid_t workers[64]; /* those of the running test; 0: ended */
    size_t workers_n;
};
extern struct worker_rig rig;

/* What is not said: queues q and other, two slots, a lease of 2 s. */
pid_t rig_start_with(struct weir_worker_options options);
pid_t rig_start(void);
/* As worker_end(); the end of the test leaves it alone then. */
int rig_end(pid_t worker, int sig);
/* Loses the whole worker at once, so that nobody hears of it before the lease ends. */
void rig_lose(pid_t worker);

#define JOB(...) ((struct weir_job){WEIR_JOB_INIT, .keep_result_ms = 600000, __VA_ARGS__})
/* Into the queue q, unless the job says another; fails the test if it is refused. */
void rig_enqueue(struct weir_job job, const char *id, const char *type);
/* The queue q, with nothing in it; on a stream with its group: what offers need. */
void rig_make_queue(void);
struct weir_job_numbers rig_numbers(const char *id);
bool rig_is(const char *id, const char *state);
/* What the one worker told last: running, quiet, draining. */
bool rig_worker_is(const char *state);

/* Of each test: an empty server; at its end no worker, an audit that is good, and queues
 * of the program's engine alone. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* What main() does: the tests of a program, as RUN_TESTS(), with a server for all. */
int rig_run(const char *name, const struct CMUnitTest *tests, size_t n,
            void (*handlers)(struct weir_worker *worker));
#define RIG_RUN(name, tests, handlers) \
    rig_run(name, tests, sizeof(tests) / sizeof((tests)[0]), handlers)
/* Zeroed memory that the workers share with the tests; ends the program if there is none.
 */
void *rig_shared(size_t size);

#endif
