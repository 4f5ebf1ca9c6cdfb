#include "integration/worker_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"

struct worker_rig rig;

pid_t
rig_start_with(struct weir_worker_options o)
{
    static const char *const queues[] = {"q", "other", NULL};

    assert_true(rig.workers_n < sizeof(rig.workers) / sizeof(rig.workers[0]));
    o.struct_size = sizeof(o);
    if (!o.url)
        o.url = rig.url ? rig.url : redis_server_url(rig.server);
    if (!o.queues && o.shares_count == 0)
        o.queues = queues;
    if (o.concurrency == 0)
        o.concurrency = 2;
    if (o.lease_ms == 0)
        o.lease_ms = 2000;
    rig.workers[rig.workers_n] = worker_start(&o, rig.handlers);
    return rig.workers[rig.workers_n++];
}

pid_t
rig_start(void)
{
    return rig_start_with((struct weir_worker_options){0});
}

int
rig_end(pid_t worker, int sig)
{
    for (size_t i = 0; i < rig.workers_n; i++) {
        if (rig.workers[i] == worker)
            rig.workers[i] = rig.workers[--rig.workers_n];
    }
    return worker_end(worker, sig);
}

void
rig_lose(pid_t worker)
{
    pid_t child = worker_child(worker, "weir-child"),
          service = worker_child(worker, "weir-service");

    kill(worker, SIGSTOP);
    kill(child, SIGKILL);
    kill(service, SIGKILL);
    rig_end(worker, SIGKILL);
}

void
rig_enqueue(struct weir_job job, const char *id, const char *type)
{
    struct weir_error err = {0};

    job.queue = job.queue ? job.queue : "q";
    job.id = id;
    job.type = type;
    if (weir_job_enqueue(rig.client, &job, NULL, &err) != WEIR_OK)
        fail_msg("enqueue: %s", err.text);
}

void
rig_make_queue(void)
{
    enum weir_cancel_result how;

    rig_enqueue(JOB(), "first", "note");
    assert_int_equal(weir_job_cancel(rig.client, "q", "first", &how, NULL), WEIR_OK);
    redis_do(rig.server, "DEL weir:{q}:wake");
}

struct weir_job_numbers
rig_numbers(const char *id)
{
    struct weir_job_numbers n = {0};
    struct weir_job_view *v;

    if (weir_job_inspect(rig.client, "q", id, &v, NULL) == WEIR_OK) {
        weir_job_view_numbers(v, &n);
        weir_job_view_free(v);
    }
    return n;
}

bool
rig_is(const char *id, const char *state)
{
    return strcmp(job_state(rig.client, "q", id), state) == 0;
}

bool
rig_worker_is(const char *state)
{
    const char *worker = redis_do(rig.server, "ZRANGE weir:workers 0 0");

    return strcmp(redis_do(rig.server, "HGET weir:worker:%s state", worker), state) == 0;
}

int
rig_setup(void **state)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                    .url = redis_server_url(rig.server)};

    (void)state;
    redis_do(rig.server, "FLUSHALL");
    rig.workers_n = 0;
    rig.url = NULL;
    assert_int_equal(weir_client_open(&o, &rig.client, NULL), WEIR_OK);
    return 0;
}

static bool
add_name(const char *queue, void *context)
{
    char(*names)[32] = context;
    size_t n = 0;

    while (n < 31 && names[n][0])
        n++;
    snprintf(names[n], sizeof(names[n]), "%s", queue);
    return true;
}

/* Every queue there is. deep: also the walk through their structures. */
static void
audit_all(bool deep)
{
    char names[32][32] = {{0}};

    assert_int_equal(weir_queue_list(rig.client, add_name, names, NULL), WEIR_OK);
    for (size_t i = 0; names[i][0]; i++) {
        struct weir_audit a = audit_of(rig.client, names[i]);
        size_t findings = 0;

        if (!weir_audit_is_good(&a))
            fail_msg("queue %s: the sums are off", names[i]);
        if (deep)
            assert_int_equal(
                weir_queue_audit_deep(rig.client, names[i], NULL, NULL, &findings, NULL),
                WEIR_OK);
        assert_int_equal(findings, 0);
    }
}

int
rig_teardown(void **state)
{
    (void)state;
    audit_all(false);
    engine_check(rig.server);
    while (rig.workers_n > 0)
        worker_end(rig.workers[--rig.workers_n], SIGTERM);
    audit_all(true);
    weir_client_close(rig.client);
    return 0;
}

int
rig_run(const char *name, const struct CMUnitTest *tests, size_t n,
        void (*handlers)(struct weir_worker *worker))
{
    int failed;

    wr_log_setup_from_env();
    rig.handlers = handlers;
    rig.server = redis_server_start(NULL);
    failed = test_program_run(name, tests, n, NULL, NULL);
    redis_server_stop(rig.server);
    return failed;
}

void *
rig_shared(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);

    if (at != MAP_FAILED)
        return at;
    perror("mmap");
    exit(2);
}
