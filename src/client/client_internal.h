/*
 * client/client_internal.h - the struct behind struct weir_client; private to client/
 * and to the tool.
 */
#ifndef WR_CLIENT_CLIENT_INTERNAL_H
#define WR_CLIENT_CLIENT_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include <weir/cron.h>

#include "base/buf.h"
#include "model/entry.h"
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

    pthread_mutex_t mu;            /* guards the slots; never held across I/O */
    struct wr_call_slot *slots;    /* idle ones */
    pid_t owner;                   /* whose channels these are: renewed after fork */
    struct wr_listener *listeners; /* idle ones, see listener.h; guarded by mu */
    pid_t listeners_owner;
};

/* view.c: as weir_job_inspect(), of a queue that is known. */
enum weir_err
wr_client_inspect(struct weir_client *client, struct wr_queue *queue, const char *id,
                  struct weir_job_view **out, struct weir_error *err) WEIR_MUST_CHECK;
/* A follow-up job, checked and appended as model/follow.h writes it; n numbers those of
 * one delivery. E_ARG. */
enum weir_err
wr_client_follow(const struct weir_job *given, const char *channel, size_t n,
                 struct wr_buf *out, struct weir_error *err) WEIR_MUST_CHECK;
/* A view of a job that is done and not stored any more; takes the message, in which the
 * result lies. NULL when out of memory, and the message is freed. */
struct weir_job_view *
wr_client_view_of_message(struct wr_queue *queue, const char *id,
                          struct wr_reply *message, struct wr_span result);
/* enqueue.c: as weir_job_enqueue() of one that may not take the place of another. *told:
 * its end will be told to the waiter; else it exists, and may have ended. *out has the id
 * in any case. */
enum weir_err
wr_client_enqueue_waited(struct weir_client *client, const struct weir_job *job,
                         const struct wr_waiter *waiter, bool *told,
                         struct weir_enqueued *out,
                         struct weir_error *err) WEIR_MUST_CHECK;
/* A cron entry that was checked, as it is stored. */
struct wr_cron_made {
    char queue[132], name[WR_ENTRY_NAME_MAX + 1];
    char schedule[WR_ENTRY_SPEC_MAX + 1], zone[WR_ENTRY_ZONE_MAX + 1];
    struct wr_buf def;
};
/* default_queue: where an entry goes that names none. E_ARG, E_DATA, E_CONFIG, E_TOO_BIG.
 */
enum weir_err
wr_cron_make(const struct weir_cron *entry, const char *default_queue,
             struct wr_cron_made **out, struct weir_error *err) WEIR_MUST_CHECK;
void wr_cron_made_free(struct wr_cron_made *made); /* NULL is allowed */
/* As weir_cron_put(). */
enum weir_err
wr_cron_store(struct wr_store *store, const struct wr_cron_made *made, int64_t revision,
              bool *same, struct weir_error *err) WEIR_MUST_CHECK;

struct wr_store *wr_client_store(struct weir_client *client);
const char *wr_client_login_name(void); /* of who runs this process */

/* queue NULL means "default". */
enum weir_err
wr_client_queue(struct weir_client *client, const char *queue, struct wr_queue **out,
                struct weir_error *err) WEIR_MUST_CHECK;

/* Finds the queue of a job: the named one, or the registered one that has the id.
 * E_NO_JOB. */
enum weir_err
wr_client_find(struct weir_client *client, const char *queue, const char *id,
               struct wr_queue **out, struct weir_error *err) WEIR_MUST_CHECK;
/* The same; where no job lives, the queue in which the progress of one that is over is
 * kept. */
enum weir_err
wr_client_find_over(struct weir_client *client, const char *queue, const char *id,
                    struct wr_queue **out, struct weir_error *err) WEIR_MUST_CHECK;

/* The record of a job in its two parts, as wr_record_write() makes them. E_ARG. */
enum weir_err
wr_client_template(const struct weir_job *job, struct wr_buf *head, struct wr_buf *tail,
                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
