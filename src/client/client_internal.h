/*
 * client/client_internal.h - the struct behind struct weir_client; private to client/
 * and to the tool.
 */
#ifndef WR_CLIENT_CLIENT_INTERNAL_H
#define WR_CLIENT_CLIENT_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include <weir/client.h>

#include "store/store.h"

/* Call slots: each has a channel per queue it was used for. */
struct wr_call_slot {
    struct wr_call_slot *next;
    struct wr_queue *queue;
    struct wr_channel channel;
};

struct weir_client {
    struct wr_server *server;
    struct wr_store *store;

    pthread_mutex_t mu;         /* guards the slots; never held across I/O */
    struct wr_call_slot *slots; /* idle ones */
    pid_t owner;                /* whose channels these are: renewed after fork */
};

struct wr_store *wr_client_store(struct weir_client *client);

/* queue NULL means "default". */
enum weir_err
wr_client_queue(struct weir_client *client, const char *queue, struct wr_queue **out,
                struct weir_error *err) WEIR_MUST_CHECK;

/* Finds the queue of a job: the named one, or the registered one that has the id.
 * E_NO_JOB. */
enum weir_err
wr_client_find(struct weir_client *client, const char *queue, const char *id,
               struct wr_queue **out, struct weir_error *err) WEIR_MUST_CHECK;

/* The record of a job in its two parts, as wr_record_write() makes them. E_ARG. */
enum weir_err
wr_client_template(const struct weir_job *job, struct wr_buf *head, struct wr_buf *tail,
                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
