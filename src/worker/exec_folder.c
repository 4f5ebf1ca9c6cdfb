#include "worker/exec_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "weir-exec."
#define DEPTH_MAX 32

/* ---- removal ---- */

struct removal {
    int top;
    dev_t dev;
    unsigned long moved; /* folders that lay too deep and were moved to the top */
    bool failed;
};

static void empty(struct removal *r, int fd, int depth);

static int
open_folder(int at, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, name, flags);

    if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
        fd = openat(at, name, flags);
    return fd;
}

/* Too deep for recursion: to the top, where it is found again. */
static void
move_up(struct removal *r, int at, const char *name)
{
    char to[32];

    snprintf(to, sizeof(to), ".deep.%lu", r->moved);
    if (renameat(at, name, r->top, to) == 0)
        r->moved++;
    else
        r->failed = true;
}

static void
remove_folder(struct removal *r, int at, const char *name, int depth)
{
    struct stat st;
    int fd;

    if (depth >= DEPTH_MAX) {
        move_up(r, at, name);
        return;
    }
    fd = open_folder(at, name);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_dev != r->dev) {
        r->failed = true;
        if (fd >= 0)
            close(fd);
        return;
    }
    empty(r, fd, depth + 1); /* closes fd */
    if (unlinkat(at, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        r->failed = true;
}

static bool
is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void
empty(struct removal *r, int fd, int depth)
{
    DIR *d;
    struct dirent *e;

    (void)fchmod(fd, 0700); /* the command may have taken its own rights away */
    d = fdopendir(fd);
    if (!d) {
        r->failed = true;
        close(fd);
        return;
    }
    while ((e = readdir(d)) != NULL) {
        if (is_dot(e->d_name) || unlinkat(fd, e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno == EISDIR || errno == EPERM || errno == EACCES)
            remove_folder(r, fd, e->d_name, depth);
        else
            r->failed = true;
    }
    closedir(d);
}

bool
wr_folder_remove(const char *path)
{
    struct removal r = {0};
    struct stat st;
    unsigned long moved;

    if (rmdir(path) == 0 || errno == ENOENT)
        return true;
    do {
        moved = r.moved;
        r.failed = false;
        r.top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (r.top < 0 || fstat(r.top, &st) != 0) {
            if (r.top >= 0)
                close(r.top);
            return false;
        }
        r.dev = st.st_dev;
        empty(&r, r.top, 0);
    } while (r.moved > moved); /* what was moved up is one level less deep than before */
    return rmdir(path) == 0;
}

/* ---- base folders ---- */

static const char *
parent_folder(void)
{
    const char *given = getenv("TMPDIR");

    return given && given[0] == '/' && strlen(given) < 1000 ? given : "/tmp";
}

/* Locked, and still where it was: nobody removed it between its making and the lock. */
static int
lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat mine, there;

    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &mine) != 0 ||
        stat(path, &there) != 0 || mine.st_ino != there.st_ino) {
        close(fd);
        return -1;
    }
    return fd;
}

static void
remove_dead(const char *parent)
{
    DIR *d = opendir(parent);
    struct dirent *e;

    while (d && (e = readdir(d)) != NULL) {
        char path[WR_FOLDER_MAX];
        struct stat st;
        int fd;

        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", parent, e->d_name);
        if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
            continue;
        fd = lock(path);
        if (fd < 0)
            continue; /* its worker lives */
        (void)wr_folder_remove(path);
        close(fd);
    }
    if (d)
        closedir(d);
}

bool
wr_folder_make_base(char *out, size_t out_len, int *lock_fd)
{
    const char *parent = parent_folder();

    remove_dead(parent);
    for (int turns = 0; turns < 5; turns++) {
        snprintf(out, out_len, "%s/" PREFIX "XXXXXX", parent);
        if (!mkdtemp(out))
            return false;
        *lock_fd = lock(out);
        if (*lock_fd >= 0) {
            /* Others may pass through to a folder whose name they know. */
            return chmod(out, 0711) == 0;
        }
    }
    errno = EBUSY;
    return false;
}

bool
wr_folder_restore_base(const char *base, int lock_fd)
{
    int fd;

    if (mkdir(base, 0700) != 0 && errno != EEXIST)
        return false;
    fd = lock(base);
    if (fd < 0)
        return errno == EWOULDBLOCK; /* it is there, and locked by us */
    if (chmod(base, 0711) != 0 || dup3(fd, lock_fd, O_CLOEXEC) < 0) {
        close(fd);
        return false;
    }
    close(fd);
    return true;
}

int
wr_folder_make(const char *path, uid_t uid, gid_t gid)
{
    if (mkdir(path, 0700) != 0) {
        if (errno != EEXIST || !wr_folder_remove(path) || mkdir(path, 0700) != 0)
            return errno;
    }
    if ((uid != (uid_t)-1 || gid != (gid_t)-1) && lchown(path, uid, gid) != 0) {
        int why = errno;

        (void)rmdir(path);
        return why;
    }
    return 0;
}
