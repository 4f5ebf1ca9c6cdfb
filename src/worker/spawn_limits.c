/*
 * What a command gets between fork and exec. The child shares our memory (vfork), so that
 * system calls are made as such where the library would also tell its threads, and
 * nothing is allocated.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker/spawn.h"

#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_CLASS_SHIFT 13

/* Where ids once had 16 bits the plain names still mean those. */
#ifdef SYS_setresuid32
#define SET_UID SYS_setresuid32
#define SET_GID SYS_setresgid32
#define SET_GROUPS SYS_setgroups32
#else
#define SET_UID SYS_setresuid
#define SET_GID SYS_setresgid
#define SET_GROUPS SYS_setgroups
#endif

static int
set_limits(const struct wr_exec_limits *l)
{
    static const int names[WR_LIMITS] = {
        [WR_LIMIT_AS] = RLIMIT_AS,         [WR_LIMIT_FSIZE] = RLIMIT_FSIZE,
        [WR_LIMIT_CORE] = RLIMIT_CORE,     [WR_LIMIT_CPU] = RLIMIT_CPU,
        [WR_LIMIT_NOFILE] = RLIMIT_NOFILE, [WR_LIMIT_NPROC] = RLIMIT_NPROC,
    };

    for (int i = 0; i < WR_LIMITS; i++) {
        struct rlimit limit;
        rlim_t want = l->values[i] < 0 ? RLIM_INFINITY : (rlim_t)l->values[i];

        if (l->values[i] == 0)
            continue;
        if (getrlimit((__rlimit_resource_t)names[i], &limit) != 0)
            return errno;
        /* Of CPU time the hard limit comes later: SIGXCPU first, then SIGKILL. */
        limit.rlim_cur = want;
        limit.rlim_max = i == WR_LIMIT_CPU && want != RLIM_INFINITY ? want + 5 : want;
        if (setrlimit((__rlimit_resource_t)names[i], &limit) != 0)
            return errno;
    }
    return 0;
}

/* The text of a small number into out, which has room for it; answers its length. */
static size_t
write_number(int number, char *out)
{
    char digits[12];
    unsigned rest = number < 0 ? 0U - (unsigned)number : (unsigned)number;
    size_t n = 0, len = 0;

    do
        digits[n++] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        out[len++] = '-';
    while (n > 0)
        out[len++] = digits[--n];
    return len;
}

static int
set_oom_score(int score)
{
    char text[12];
    size_t len = write_number(score, text);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC), why = 0;

    if (fd < 0)
        return errno;
    if (write(fd, text, len) != (ssize_t)len)
        why = errno;
    close(fd);
    return why;
}

static int
set_priorities(const struct wr_exec_limits *l)
{
    if (l->nice != 0) {
        int now;

        errno = 0;
        now = getpriority(PRIO_PROCESS, 0);
        if (errno != 0 || setpriority(PRIO_PROCESS, 0, now + l->nice) != 0)
            return errno;
    }
    if (l->ioprio_class != 0 &&
        syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
                l->ioprio_class << IOPRIO_CLASS_SHIFT | l->ioprio_level) != 0)
        return errno;
    return l->oom_score_adj != 0 ? set_oom_score(l->oom_score_adj) : 0;
}

static int
set_user(const struct wr_exec_limits *l)
{
    if (!l->switch_user && !l->switch_group)
        return 0;
    if (l->switch_user && syscall(SET_GROUPS, l->groups_n, l->groups) != 0)
        return errno;
    if (l->switch_group && syscall(SET_GID, l->gid, l->gid, l->gid) != 0)
        return errno;
    if (l->switch_user && syscall(SET_UID, l->uid, l->uid, l->uid) != 0)
        return errno;
    return 0;
}

int
wr_limits_apply(const struct wr_exec_limits *l, int cgroup_procs_fd,
                enum wr_exec_step *step)
{
    int why = 0;

    /* Not worth a failure: the group and the strays are still found. */
    if (cgroup_procs_fd >= 0)
        (void)!write(cgroup_procs_fd, "0", 1);
    if (!l)
        return 0;
    *step = WR_STEP_LIMITS;
    if (l->umask >= 0)
        umask((mode_t)l->umask);
    why = set_priorities(l);
    if (why == 0)
        why = set_limits(l);
    if (why != 0)
        return why;
    *step = WR_STEP_USER;
    return set_user(l);
}

int
wr_limits_apply_last(const struct wr_exec_limits *l)
{
    if (l && !l->new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return errno;
    return 0;
}
