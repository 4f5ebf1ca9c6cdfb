#include "worker/folder_pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPARE_MAX 256

struct spare {
    unsigned long name;
    uid_t uid;
    gid_t gid;
    struct stat found;
};

struct wr_folder_pool {
    pthread_mutex_t mu;
    unsigned long count;  /* of names so far */
    struct timespec last; /* the newest time of change that was seen */
    size_t n;
    struct spare spares[SPARE_MAX]; /* the oldest first */
    char base[];
};

struct wr_folder_pool *
wr_folder_pool_new(const char *base)
{
    struct wr_folder_pool *p = calloc(1, sizeof(*p) + strlen(base) + 1);

    if (!p)
        return NULL;
    memcpy(p->base, base, strlen(base) + 1);
    pthread_mutex_init(&p->mu, NULL);
    return p;
}

void
wr_folder_pool_free(struct wr_folder_pool *p)
{
    if (!p)
        return;
    pthread_mutex_destroy(&p->mu);
    free(p);
}

static unsigned long
next_name(struct wr_folder_pool *p)
{
    unsigned long name;

    pthread_mutex_lock(&p->mu);
    name = ++p->count;
    pthread_mutex_unlock(&p->mu);
    return name;
}

static bool
path_of(const struct wr_folder_pool *p, unsigned long name, char out[WR_FOLDER_MAX])
{
    return snprintf(out, WR_FOLDER_MAX, "%s/%lu", p->base, name) < WR_FOLDER_MAX;
}

/* ---- is it as it was? ---- */

static bool
is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode &&
           a->st_uid == b->st_uid && a->st_gid == b->st_gid &&
           a->st_nlink == b->st_nlink && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool
is_unchanged(const char *path, const struct stat *found)
{
    struct stat now;

    return lstat(path, &now) == 0 && S_ISDIR(now.st_mode) && is_same(&now, found);
}

static void
note_time(struct wr_folder_pool *p, const struct stat *st)
{
    pthread_mutex_lock(&p->mu);
    p->last = st->st_ctim;
    pthread_mutex_unlock(&p->mu);
}

/* ---- spares ---- */

static bool
is_for(const struct wr_folder_pool *p, const struct spare *s, uid_t uid, gid_t gid)
{
    return s->uid == uid && s->gid == gid && is_before(s->found.st_ctim, p->last);
}

static bool
take_spare(struct wr_folder_pool *p, uid_t uid, gid_t gid, struct spare *out)
{
    bool found = false;

    pthread_mutex_lock(&p->mu);
    for (size_t i = 0; i < p->n && !found; i++) {
        if (!is_for(p, &p->spares[i], uid, gid))
            continue;
        *out = p->spares[i];
        memmove(&p->spares[i], &p->spares[i + 1], (p->n - i - 1) * sizeof(p->spares[0]));
        p->n--;
        found = true;
    }
    pthread_mutex_unlock(&p->mu);
    return found;
}

static bool
add_spare(struct wr_folder_pool *p, const struct spare *s)
{
    bool room;

    pthread_mutex_lock(&p->mu);
    p->last = s->found.st_ctim;
    room = p->n < SPARE_MAX;
    if (room)
        p->spares[p->n++] = *s;
    pthread_mutex_unlock(&p->mu);
    return room;
}

/* ---- */

/* What was just made is as young as the clock of its file system can tell. */
static int
make(struct wr_folder_pool *p, struct wr_folder *f, unsigned long name)
{
    int why;

    if (!path_of(p, name, f->path))
        return ENAMETOOLONG;
    why = wr_folder_make(f->path, f->uid, f->gid);
    if (why != 0)
        return why;
    f->provable = false;
    if (lstat(f->path, &f->found) != 0)
        return errno;
    note_time(p, &f->found);
    return 0;
}

int
wr_folder_take(struct wr_folder_pool *p, uid_t uid, gid_t gid, struct wr_folder *out)
{
    struct spare s;

    out->uid = uid;
    out->gid = gid;
    while (take_spare(p, uid, gid, &s)) {
        if (!path_of(p, s.name, out->path))
            continue;
        if (is_unchanged(out->path, &s.found)) {
            out->found = s.found;
            out->provable = true;
            return 0;
        }
        (void)wr_folder_remove(out->path); /* somebody was there */
    }
    return make(p, out, next_name(p));
}

/* Its own two entries and no other. */
static bool
is_empty(int fd)
{
    _Alignas(struct dirent64) char room[1024];
    ssize_t n;

    while ((n = getdents64(fd, room, sizeof(room))) > 0) {
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *e = (const void *)(room + at);

            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                return false;
            at += e->d_reclen;
        }
    }
    return n == 0;
}

/* Its time says so, and a look into it: not every file system keeps its times well. */
static bool
is_as_found(const struct wr_folder *f)
{
    int fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
    struct stat now;
    bool same;

    if (fd < 0)
        return false;
    same = fstat(fd, &now) == 0 && is_same(&now, &f->found) && is_empty(fd);
    close(fd);
    return same;
}

/* Another name, so that who knows the old one does not find the next attempt's. */
static bool
keep(struct wr_folder_pool *p, const struct wr_folder *f)
{
    struct spare s = {.name = next_name(p), .uid = f->uid, .gid = f->gid};
    char path[WR_FOLDER_MAX];

    if (!is_as_found(f) || !path_of(p, s.name, path) || rename(f->path, path) != 0)
        return false;
    if (lstat(path, &s.found) == 0 && s.found.st_ino == f->found.st_ino &&
        add_spare(p, &s))
        return true;
    (void)wr_folder_remove(path);
    return true; /* the old name is free */
}

/* A change of the first folders would not show, so others are made for later attempts. */
static void
make_spare(struct wr_folder_pool *p, uid_t uid, gid_t gid)
{
    struct spare s = {.name = next_name(p), .uid = uid, .gid = gid};
    struct wr_folder f = {.uid = uid, .gid = gid};

    if (make(p, &f, s.name) != 0)
        return; /* the next attempt will say so */
    s.found = f.found;
    if (!add_spare(p, &s))
        (void)wr_folder_remove(f.path);
}

bool
wr_folder_give_back(struct wr_folder_pool *p, const struct wr_folder *f, bool alone)
{
    if (alone && f->provable && keep(p, f))
        return true;
    if (!wr_folder_remove(f->path))
        return false;
    if (alone && !f->provable)
        make_spare(p, f->uid, f->gid);
    return true;
}
