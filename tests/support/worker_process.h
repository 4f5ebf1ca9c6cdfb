/*
 * A worker in a process of its own, and ways to wait for what it does.
 */
#ifndef SUPPORT_WORKER_PROCESS_H
#define SUPPORT_WORKER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include <weir/client.h>
#include <weir/worker.h>

/* Forks a process that registers handlers by `setup` and runs; answers its pid. */
pid_t worker_start(const struct weir_worker_options *options,
                   void (*setup)(struct weir_worker *worker));
/* Sends the signal (0: none) and waits; answers the exit status, 128 + n for a signal. */
int worker_end(pid_t pid, int sig);
/* The n-th child of a worker whose name (comm) is this; waits for it. */
pid_t worker_child(pid_t supervisor, const char *comm);

/* Waits until the condition holds; fails the test after 30 s. */
bool wait_over(int *turns); /* naps; false when the time is up */
#define AWAIT(condition)                                       \
    do {                                                       \
        int turns_ = 0;                                        \
        while (!(condition))                                   \
            if (!wait_over(&turns_))                           \
                fail_msg("%s: never became true", #condition); \
    } while (0)

/* The state of a job, "gone" if there is none. */
const char *job_state(struct weir_client *client, const char *queue, const char *id);
struct weir_audit audit_of(struct weir_client *client, const char *queue);
bool process_lives(pid_t pid);

#endif
