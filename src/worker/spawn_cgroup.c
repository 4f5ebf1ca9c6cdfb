/*
 * One cgroup (v2) a slot, where making them is ours to do: nothing that a command starts
 * leaves it, and all in it is killed at once. A cgroup is empty between two runs, so that
 * it serves the next. Where nothing is delegated to us there are none, and that is fine.
 *
 * Delegated is the cgroup of this process if it says so (systemd's Delegate=yes marks it)
 * or belongs to us, and the folder that WEIR_CGROUP names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "worker/spawn.h"

static bool
is_marked(const char *path)
{
    static const char *const names[] = {"trusted.delegate", "user.delegate"};
    char value[8];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (getxattr(path, names[i], value, sizeof(value)) == 1 && value[0] == '1')
            return true;
    }
    return false;
}

static bool
is_delegated(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, W_OK) == 0 &&
           (is_marked(path) || (st.st_uid != 0 && st.st_uid == geteuid()));
}

/* "0::/path" in /proc/self/cgroup is ours in the second version's tree. */
static bool
own_cgroup(char *out, size_t out_len)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[400], path[400] = "";

    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "0::/", 4) == 0)
            snprintf(path, sizeof(path), "%s", line + 3);
    }
    if (f)
        fclose(f);
    for (size_t i = 0; path[0] != '\0' && i < sizeof(roots) / sizeof(roots[0]); i++) {
        char probe[600];

        snprintf(probe, sizeof(probe), "%s%s/cgroup.procs", roots[i], path);
        if (access(probe, F_OK) == 0) {
            snprintf(out, out_len, "%s%s", roots[i], path);
            return true;
        }
    }
    return false;
}

static int64_t
count_oom_kills(void)
{
    FILE *f = fopen("/proc/vmstat", "re");
    char line[128];
    long long n = 0;

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "oom_kill ", 9) == 0)
            n = atoll(line + 9);
    }
    if (f)
        fclose(f);
    return n;
}

bool
wr_oom_happened(struct wr_spawn *sp)
{
    int64_t before = sp->oom_kills;

    sp->oom_kills = count_oom_kills();
    return sp->oom_kills > before;
}

void
wr_cgroup_look(struct wr_spawn *sp)
{
    const char *named = getenv("WEIR_CGROUP");
    char path[450];

    sp->oom_kills = count_oom_kills();
    if (named && named[0] == '/')
        snprintf(sp->cgroup, sizeof(sp->cgroup), "%s", named);
    else if (own_cgroup(path, sizeof(path)) && is_delegated(path))
        snprintf(sp->cgroup, sizeof(sp->cgroup), "%s", path);
}

static void
path_of(const struct wr_spawn *sp, size_t slot, char *out, size_t out_len)
{
    snprintf(out, out_len, "%s/weir-%d-%zu", sp->cgroup, (int)getpid(), slot);
}

int
wr_cgroup_open(struct wr_spawn_job *j)
{
    struct wr_spawn *sp = j->spawn;
    char path[600];

    if (j->cgroup_fd >= 0 || sp->cgroup[0] == '\0')
        return j->cgroup_fd;
    path_of(sp, j->slot, path, sizeof(path));
    if (mkdir(path, 0755) == 0 || errno == EEXIST)
        j->cgroup_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j->cgroup_fd < 0)
        sp->cgroup[0] = '\0'; /* not ours after all: not tried again */
    return j->cgroup_fd;
}

void
wr_cgroup_kill(const struct wr_spawn_job *j)
{
    int fd = j->cgroup_fd < 0 ? -1
                              : openat(j->cgroup_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return; /* none, or a kernel before 5.14 */
    (void)!write(fd, "1", 1);
    close(fd);
}

void
wr_cgroup_remove_all(struct wr_spawn *sp)
{
    for (size_t i = 0; i < sp->n; i++) {
        char path[600];

        if (sp->jobs[i].cgroup_fd < 0)
            continue;
        path_of(sp, i, path, sizeof(path));
        (void)rmdir(path); /* one that is still busy stays, empty of our commands soon */
    }
}
