#include "support/worker_process.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAP_MS 5
#define TURNS_MAX 6000

pid_t
worker_start(const struct weir_worker_options *options,
             void (*setup)(struct weir_worker *worker))
{
    struct weir_error err = {0};
    struct weir_worker *worker;
    enum weir_err rc;
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rc = weir_worker_new(options, &worker, &err);
    if (rc == WEIR_OK) {
        setup(worker);
        rc = weir_worker_run(worker, &err);
        weir_worker_free(worker);
    }
    if (rc != WEIR_OK)
        fprintf(stderr, "worker: %s\n", err.text);
    _exit(weir_err_exit_status(rc));
}

int
worker_end(pid_t pid, int sig)
{
    int status = 0;

    if (sig != 0)
        kill(pid, sig);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool
wait_over(int *turns)
{
    poll(NULL, 0, NAP_MS);
    return ++*turns < TURNS_MAX;
}

bool
process_lives(pid_t pid)
{
    char path[64], line[512] = "";
    FILE *f;
    const char *end;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "r");
    if (!f)
        return false;
    line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
    fclose(f);
    end = strrchr(line, ')');
    return end && end[1] == ' ' && end[2] != 'Z';
}

static bool
is_child(pid_t pid, pid_t parent, const char *comm)
{
    char path[64], line[512] = "", name[64];
    int ppid;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "r");
    if (!f)
        return false;
    line[fread(line, 1, sizeof(line) - 1, f)] = '\0';
    fclose(f);
    return sscanf(line, "%*d (%63[^)]) %*c %d", name, &ppid) == 2 && ppid == parent &&
           strcmp(name, comm) == 0;
}

pid_t
worker_child(pid_t supervisor, const char *comm)
{
    int turns = 0;

    do {
        DIR *d = opendir("/proc");
        struct dirent *e;
        pid_t found = 0;

        while (d && (e = readdir(d)) != NULL) {
            pid_t pid = (pid_t)atoi(e->d_name);

            if (pid > 1 && is_child(pid, supervisor, comm))
                found = pid;
        }
        if (d)
            closedir(d);
        if (found)
            return found;
    } while (wait_over(&turns));
    return 0;
}

const char *
job_state(struct weir_client *client, const char *queue, const char *id)
{
    static char state[16];
    struct weir_job_view *view;

    if (weir_job_inspect(client, queue, id, &view, NULL) != WEIR_OK)
        return "gone";
    snprintf(state, sizeof(state), "%s", weir_job_view_state(view));
    weir_job_view_free(view);
    return state;
}

struct weir_audit
audit_of(struct weir_client *client, const char *queue)
{
    struct weir_audit audit = {0};
    struct weir_error err = {0};

    if (weir_queue_audit(client, queue, &audit, &err) != WEIR_OK) {
        fprintf(stderr, "audit of %s: %s\n", queue, err.text);
        audit.gap = -1;
    }
    return audit;
}
