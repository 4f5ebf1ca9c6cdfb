/* Connections, counted where they end: by CLIENT LIST, under the names that they have. */
#include "integration/worker_rig.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/proxy.h"

#define QUEUES 20
#define SLOTS 64
#define SOCKETS_MAX 256
#define LEASE_MS 1000

static struct shared {
    _Atomic int started, release;
} * shared;

/* How many have this name. */
static int
count(const char *name)
{
    const char *line = redis_do(rig.server, "CLIENT LIST");
    char word[80];
    int n = 0;

    snprintf(word, sizeof(word), " name=%s ", name);
    for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *found = strstr(line, word);

        n += found && (size_t)(found - line) < strcspn(line, "\n");
    }
    return n;
}

/* Of all there are, but for our own and the rig's. */
static int
count_workers(void)
{
    const char *line = redis_do(rig.server, "CLIENT LIST");
    int n = 0;

    for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "") {
        const char *found = strstr(line, " name=weir-");

        n += found && (size_t)(found - line) < strcspn(line, "\n");
    }
    return n;
}

/* The server's number of the one that has this name; 0: there is none. */
static long
number_of(const char *name)
{
    const char *line = redis_do(rig.server, "CLIENT LIST");
    char word[80];

    snprintf(word, sizeof(word), " name=%s ", name);
    for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *found = strstr(line, word);

        if (found && (size_t)(found - line) < strcspn(line, "\n"))
            return strtol(line + strlen("id="), NULL, 10);
    }
    return 0;
}

/* How often the server was asked this so far. */
static long
calls_of(const char *command)
{
    const char *text = redis_do(rig.server, "INFO commandstats"), *found;
    char word[64];

    snprintf(word, sizeof(word), "cmdstat_%s:calls=", command);
    found = strstr(text, word);
    return found ? strtol(found + strlen(word), NULL, 10) : 0;
}

struct sockets {
    unsigned long inode[SOCKETS_MAX];
    size_t n;
};

/* What a process has open, by the numbers that the kernel gives sockets. */
static struct sockets
sockets_of(pid_t pid)
{
    struct sockets s = {.n = 0};
    char path[300], to[64];
    struct dirent *e;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL) {
        ssize_t len;

        snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
        len = readlink(path, to, sizeof(to) - 1);
        to[len > 0 ? len : 0] = '\0';
        assert_true(s.n < SOCKETS_MAX);
        s.n += sscanf(to, "socket:[%lu]", &s.inode[s.n]) == 1;
    }
    closedir(dir);
    return s;
}

static bool
has_socket(const struct sockets *s, unsigned long inode)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->inode[i] == inode)
            return true;
    }
    return false;
}

/* Has this process one that is in `of` and is not in `but`? */
static bool
shares(pid_t pid, const struct sockets *of, const struct sockets *but)
{
    struct sockets s = sockets_of(pid);

    for (size_t i = 0; i < s.n; i++) {
        if (has_socket(of, s.inode[i]) && !has_socket(but, s.inode[i]))
            return true;
    }
    return false;
}

static struct weir_client *
open_client(struct weir_client_options o)
{
    struct weir_client *client;

    o.struct_size = sizeof(o);
    if (!o.url)
        o.url = redis_server_url(rig.server);
    o.name = "t-client";
    assert_int_equal(weir_client_open(&o, &client, NULL), WEIR_OK);
    return client;
}

static enum weir_err
look(struct weir_client *client)
{
    struct weir_audit a;

    return weir_queue_audit(client, "q", &a, NULL);
}

/* ---- a worker ---- */

static enum weir_outcome
patient(struct weir_delivery *d, void *context)
{
    (void)context;
    weir_delivery_log(d, "begun");
    weir_delivery_progress(d, 10, "waiting");
    shared->started++;
    while (!shared->release && !weir_delivery_should_stop(d))
        poll(NULL, 0, 5);
    return WEIR_DONE;
}

static void
handlers(struct weir_worker *w)
{
    static const char *const command[] = {"sleep", "100", NULL};

    if (weir_worker_handle(w, "patient", patient, NULL, NULL) != WEIR_OK ||
        weir_worker_exec(w, "sleep", command, NULL) != WEIR_OK)
        _exit(70);
}

static void
fill_queues(int jobs)
{
    for (int i = 0; i < jobs; i++) {
        struct weir_job job = {WEIR_JOB_INIT, .type = "patient"};
        char queue[16];

        snprintf(queue, sizeof(queue), "q%d", i % QUEUES);
        job.queue = queue;
        assert_int_equal(weir_job_enqueue(rig.client, &job, NULL, NULL), WEIR_OK);
    }
}

static pid_t
start_worker(size_t processes)
{
    static char names[QUEUES][16];
    static const char *queues[QUEUES + 1];
    bool made;

    for (int i = 0; i < QUEUES; i++) {
        snprintf(names[i], sizeof(names[i]), "q%d", i);
        queues[i] = names[i];
        assert_int_equal(weir_queue_create(rig.client, names[i], NULL, NULL, &made, NULL),
                         WEIR_OK);
    }
    return rig_start_with((struct weir_worker_options){.queues = queues,
                                                       .concurrency = SLOTS,
                                                       .processes = processes,
                                                       .lease_ms = LEASE_MS});
}

/* While all slots are busy and print, through two renewals. */
static void
expect_of_children(int children)
{
    int64_t end = wr_clock_ms() + LEASE_MS;

    AWAIT(count("weir-lease") == children && count("weir-wait") == children &&
          count("weir-hints") == 1 && count("weir-scheduler") == 1);
    do {
        assert_int_equal(count("weir-work"), children);
        assert_int_equal(count("weir-wait"), children);
        assert_int_equal(count("weir-lease"), children);
        assert_true(count("weir-service") <= 2);
        assert_int_equal(count("weir-hints"), 1);
        assert_int_equal(count("weir-scheduler"), 1);
        assert_in_range(count_workers(), 3 * children + 3, 3 * children + 4);
        poll(NULL, 0, 50);
    } while (wr_clock_ms() < end);
}

static void
a_worker_child_has_three_connections_with_64_slots_on_20_queues(void **state)
{
    (void)state;
    start_worker(1);
    AWAIT(count("weir-wait") == 1); /* idle: it blocks for all its queues on one */
    assert_int_equal(count("weir-work"), 1);
    assert_int_equal(count("weir-lease"), 0); /* nothing to renew so far */
    fill_queues(SLOTS);
    AWAIT(shared->started == SLOTS);
    expect_of_children(1);
    shared->release = 1;
    AWAIT(count("weir-wait") == 1);
    assert_int_equal(count("weir-work"), 1);
    assert_int_equal(count("weir-lease"), 1);
}

static void
each_child_more_has_three_more_and_none_stays_behind(void **state)
{
    pid_t pid;

    (void)state;
    pid = start_worker(2);
    fill_queues(2 * SLOTS);
    AWAIT(shared->started == 2 * SLOTS);
    expect_of_children(2);
    kill(worker_child(pid, "weir-child"), SIGKILL);
    AWAIT(shared->started > 2 * SLOTS); /* its successor runs them, one at a time */
    AWAIT(count("weir-lease") == 2);
    assert_int_equal(count("weir-work"), 2);
    AWAIT(count("weir-wait") == 2);
    shared->release = 1;
    assert_int_equal(rig_end(pid, SIGTERM), 0);
    AWAIT(count_workers() == 0);
}

/* ---- the pool of a client ---- */

struct caller {
    struct weir_client *client;
    int calls;
    enum weir_err rc;
};

static void *
call_often(void *arg)
{
    struct caller *c = arg;

    for (int i = 0; i < c->calls && c->rc == WEIR_OK; i++)
        c->rc = look(c->client);
    return NULL;
}

static void
threads_share_few_connections_and_one_thread_needs_one(void **state)
{
    struct weir_client *client;
    pthread_t threads[32];
    struct caller callers[32];
    int most = 0;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    client = open_client((struct weir_client_options){.max_connections = 3});
    for (int i = 0; i < 50; i++)
        assert_int_equal(look(client), WEIR_OK);
    assert_int_equal(count("t-client"), 1);
    for (int i = 0; i < 32; i++) {
        callers[i] = (struct caller){.client = client, .calls = 100};
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < 20; i++) {
        int n = count("t-client");

        most = n > most ? n : most;
    }
    for (int i = 0; i < 32; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].rc, WEIR_OK);
    }
    assert_in_range(most, 1, 3);
    assert_in_range(count("t-client"), 1, 3);
    weir_client_close(client);
    AWAIT(count("t-client") == 0);
}

static void *
enqueue_one(void *arg)
{
    struct caller *c = arg;
    struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .type = "patient"};

    c->rc = weir_job_enqueue(c->client, &job, NULL, NULL);
    return NULL;
}

/* Counted while it is: the calls of all its connections hang. */
static void
an_exhausted_pool_says_so_in_time_and_opens_no_more(void **state)
{
    struct weir_client *client;
    struct caller callers[3];
    pthread_t threads[3];
    int64_t begin;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    client = open_client(
        (struct weir_client_options){.max_connections = 3, .pool_timeout_ms = 100});
    redis_do(rig.server, "CLIENT PAUSE 60000 WRITE");
    for (int i = 0; i < 3; i++) {
        callers[i] = (struct caller){.client = client};
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_one, &callers[i]), 0);
    }
    AWAIT(strstr(redis_do(rig.server, "INFO clients"), "blocked_clients:3"));
    assert_int_equal(count("t-client"), 3);
    for (int i = 0; i < 3; i++) {
        begin = wr_clock_ms();
        assert_int_equal(look(client), WEIR_E_POOL_FULL);
        assert_in_range(wr_clock_ms() - begin, 90, 2000);
    }
    assert_int_equal(count("t-client"), 3);
    redis_do(rig.server, "CLIENT UNPAUSE");
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].rc, WEIR_OK);
    }
    assert_int_equal(look(client), WEIR_OK);
    assert_int_equal(count("t-client"), 3);
    weir_client_close(client);
    AWAIT(count("t-client") == 0);
}

static void
a_connection_that_was_idle_is_asked_before_it_is_used_again(void **state)
{
    struct weir_client *client;
    long id, pings;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    client = open_client((struct weir_client_options){.health_check_interval_ms = 40});
    assert_int_equal(look(client), WEIR_OK);
    id = number_of("t-client");
    pings = calls_of("ping");
    poll(NULL, 0, 60);
    assert_int_equal(look(client), WEIR_OK);
    assert_int_equal(calls_of("ping"), pings + 1);
    assert_int_equal(number_of("t-client"), id); /* it answered: the same one */
    assert_int_equal(count("t-client"), 1);
    /* One that does not is replaced, and the call knows nothing of it. */
    redis_do(rig.server, "CLIENT KILL ID %ld", id);
    poll(NULL, 0, 60);
    assert_int_equal(look(client), WEIR_OK);
    assert_true(number_of("t-client") != id);
    assert_int_equal(count("t-client"), 1);
    weir_client_close(client);
}

static void
a_call_that_heard_nothing_is_repeated_on_a_new_connection_and_done_once(void **state)
{
    struct proxy *proxy = proxy_start(redis_server_socket(rig.server));
    struct weir_client *client = open_client(
        (struct weir_client_options){.url = proxy_url(proxy), .command_timeout_ms = 300});
    struct weir_job job = {WEIR_JOB_INIT, .queue = "q", .id = "j", .type = "patient"};
    struct weir_enqueued out;
    unsigned before = proxy_connections(proxy);

    (void)state;
    assert_int_equal(weir_job_enqueue(client, &job, &out, NULL), WEIR_OK);
    job.id = "i";
    proxy_stall_way(proxy, PROXY_TO_CLIENT);
    assert_int_equal(weir_job_enqueue(client, &job, &out, NULL), WEIR_E_NO_REPLY);
    proxy_forward(proxy);
    assert_int_equal(weir_job_enqueue(client, &job, &out, NULL), WEIR_OK);
    assert_true(out.existed);
    AWAIT(count("t-client") == 1);
    assert_true(proxy_connections(proxy) > before);
    /* A cut is seen at once: the repeat is the library's own. */
    proxy_cut_after_requests(proxy, 1);
    job.id = "k";
    assert_int_equal(weir_job_enqueue(client, &job, &out, NULL), WEIR_OK);
    assert_int_equal(proxy_cuts(proxy), 1);
    AWAIT(count("t-client") == 1);
    assert_int_equal(audit_of(rig.client, "q").enqueued, 3);
    weir_client_close(client);
    proxy_stop(proxy);
}

/* ---- fork, spawn ---- */

static void
a_forked_child_opens_its_own_and_leaves_its_parents_alone(void **state)
{
    struct sockets before = sockets_of(getpid()), with;
    struct weir_client *client;
    int status, both[2], go[2];
    char byte;
    pid_t pid;
    long id;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    client = open_client((struct weir_client_options){0});
    assert_int_equal(look(client), WEIR_OK);
    id = number_of("t-client");
    with = sockets_of(getpid());
    assert_true(shares(getpid(), &with, &before)); /* that of the client */
    assert_true(pipe(both) == 0 && pipe(go) == 0);
    pid = fork();
    if (pid == 0) {
        close(go[1]);
        if (look(client) != WEIR_OK || write(both[1], "x", 1) != 1)
            _exit(1);
        (void)!read(go[0], &byte, 1); /* until it has been counted */
        _exit(look(client) == WEIR_OK ? 0 : 2);
    }
    assert_int_equal(read(both[0], &byte, 1), 1);
    assert_int_equal(count("t-client"), 2);
    assert_false(shares(pid, &with, &before));
    assert_int_equal(look(client), WEIR_OK);
    assert_int_equal(count("t-client"), 2);
    close(go[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    AWAIT(count("t-client") == 1);
    assert_int_equal(look(client), WEIR_OK);
    assert_int_equal(number_of("t-client"), id);
    weir_client_close(client);
    close(both[0]);
    close(both[1]);
    close(go[0]);
}

static void
a_program_that_is_started_inherits_no_connection(void **state)
{
    extern char **environ;
    char *argv[] = {(char[]){"sleep"}, (char[]){"60"}, NULL};
    struct sockets before = sockets_of(getpid()), with;
    struct weir_client *client;
    pid_t pid;

    (void)state;
    rig_enqueue(JOB(), "j", "patient");
    client = open_client((struct weir_client_options){0});
    assert_int_equal(look(client), WEIR_OK);
    with = sockets_of(getpid());
    assert_int_equal(posix_spawnp(&pid, "sleep", NULL, NULL, argv, environ), 0);
    assert_false(shares(pid, &with, &before));
    weir_client_close(client);
    AWAIT(count("t-client") == 0); /* nobody holds it open */
    assert_true(process_lives(pid));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* While commands run the server sees what it sees without them, and they have no socket
 * of any process of the worker. */
static void
commands_inherit_no_connection_of_their_worker(void **state)
{
    static const struct sockets none;
    pid_t worker, child, spawner, command;
    pid_t processes[4];

    (void)state;
    worker = rig_start_with(
        (struct weir_worker_options){.concurrency = 4, .lease_ms = LEASE_MS});
    for (int i = 0; i < 4; i++)
        rig_enqueue(JOB(), (char[]){(char)('a' + i), '\0'}, "sleep");
    child = worker_child(worker, "weir-child");
    spawner = worker_child(child, "weir-spawner");
    command = worker_child(spawner, "sleep");
    AWAIT(audit_of(rig.client, "q").processing == 4);
    AWAIT(count("weir-lease") == 1 && count("weir-wait") == 1 &&
          count("weir-hints") == 1 && count("weir-scheduler") == 1);
    assert_int_equal(count("weir-work"), 1);
    assert_in_range(count_workers(), 6, 7);
    processes[0] = worker;
    processes[1] = worker_child(worker, "weir-service");
    processes[2] = child;
    processes[3] = spawner;
    for (int i = 0; i < 4; i++) {
        struct sockets s = sockets_of(processes[i]);

        assert_true(s.n > 0 || i == 0);
        assert_false(shares(command, &s, &none));
    }
    rig_lose(worker);
    AWAIT(count_workers() == 0);
}

static int
setup(void **state)
{
    memset((void *)shared, 0, sizeof(*shared));
    return rig_setup(state);
}

static int
teardown(void **state)
{
    shared->release = 1;
    redis_do(rig.server, "CLIENT UNPAUSE");
    return rig_teardown(state);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_worker_child_has_three_connections_with_64_slots_on_20_queues),
        TEST(each_child_more_has_three_more_and_none_stays_behind),
        TEST(threads_share_few_connections_and_one_thread_needs_one),
        TEST(an_exhausted_pool_says_so_in_time_and_opens_no_more),
        TEST(a_connection_that_was_idle_is_asked_before_it_is_used_again),
        TEST(a_call_that_heard_nothing_is_repeated_on_a_new_connection_and_done_once),
        TEST(a_forked_child_opens_its_own_and_leaves_its_parents_alone),
        TEST(a_program_that_is_started_inherits_no_connection),
        TEST(commands_inherit_no_connection_of_their_worker),
    };

    shared = rig_shared(sizeof(*shared));
    return RIG_RUN("connections", tests, handlers);
}
