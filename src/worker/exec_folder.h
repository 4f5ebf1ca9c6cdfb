/*
 * worker/exec_folder.h - private folders of commands, and their removal with whatever a
 * stranger left in them.
 *
 * A base folder TMPDIR/weir-exec.XXXXXX lives as long as its lock is held. One whose
 * holder is gone, by SIGKILL or a power cut, is removed by the next worker that makes
 * one.
 */
#ifndef WR_WORKER_EXEC_FOLDER_H
#define WR_WORKER_EXEC_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WR_FOLDER_MAX 4000

/* Makes a base folder of this process and removes dead ones of this user. lock_fd: keep
 * it open as long as the folder is wanted. False with errno. */
bool wr_folder_make_base(char *out, size_t out_len, int *lock_fd);
/* Makes a base folder again that somebody removed, and moves the lock to it: lock_fd
 * keeps its number. False with errno. */
bool wr_folder_restore_base(const char *base, int lock_fd);
/* Makes a folder, 0700, for uid and gid (-1: ours), in place of what may be there. 0 or
 * the errno. */
int wr_folder_make(const char *path, uid_t uid, gid_t gid);
/* Removes a folder with all in it: never follows a symbolic link, never leaves its file
 * system, needs few descriptors however deep it is. False if something stays. */
bool wr_folder_remove(const char *path);

#endif
