/*
 * worker/folder_pool.h - the private folders of attempts; one that was left as it was
 * found serves a later attempt.
 *
 * Making and removing a folder costs the system more than all else that a short command
 * needs from us. So a folder is kept when its attempt has left nobody behind and has not
 * changed it in any way, and is given out again under a new name, to the same owner: it
 * cannot be told from one that was just made. That it is unchanged is read from its time
 * of change, which some file systems count in coarse steps. A folder therefore is given
 * out only when something that was done after it got a later time: then a change would
 * show.
 *
 * Any thread.
 */
#ifndef WR_WORKER_FOLDER_POOL_H
#define WR_WORKER_FOLDER_POOL_H

#include <stdbool.h>
#include <sys/stat.h>

#include "worker/exec_folder.h"

struct wr_folder_pool;

struct wr_folder {
    char path[WR_FOLDER_MAX];
    uid_t uid; /* -1: ours */
    gid_t gid;
    bool provable;     /* a change of it since `found` would show */
    struct stat found; /* as it was given out */
};

/* NULL when out of memory. base is copied. */
struct wr_folder_pool *wr_folder_pool_new(const char *base);
/* Removes no folder: they end with their base. NULL is allowed. */
void wr_folder_pool_free(struct wr_folder_pool *pool);
/* An empty folder, 0700, of this owner. 0 or the errno; ENOENT: the base is gone. */
int
wr_folder_take(struct wr_folder_pool *pool, uid_t uid, gid_t gid, struct wr_folder *out);
/* The attempt is over. alone: none of its processes is left. False if something of the
 * folder stays. */
bool wr_folder_give_back(struct wr_folder_pool *pool, const struct wr_folder *folder,
                         bool alone);

#endif
