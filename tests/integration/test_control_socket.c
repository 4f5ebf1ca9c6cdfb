/* Who may speak for a run on its control socket: those of the run, and nobody who is left
 * of another. No server needed. */
#include "support/test_program.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/worker_process.h"
#include "worker/exec_folder.h"
#include "worker/spawner.h"

/* A command that says where its socket is, and ends when the file of that is gone. */
#define SCRIPT                                                                    \
    "%s; echo \"$WEIR_CONTROL_SOCKET\" >%s/new && mv %s/new %s/here; while test " \
    "-e %s/here; do sleep 0.01; done"

struct scene {
    struct wr_slots *slots;
    struct wr_spawner *spawner;
    char tmp[64], here[80];
    /* The run that goes on. */
    pthread_t thread;
    char script[600];
    bool keep;
    enum weir_err rc;
    struct wr_exec_end end;
};

static int
set_up(void **state)
{
    static struct scene s;

    s = (struct scene){0};
    snprintf(s.tmp, sizeof(s.tmp), "/tmp/weir-test-talk.XXXXXX");
    assert_non_null(mkdtemp(s.tmp));
    snprintf(s.here, sizeof(s.here), "%s/here", s.tmp);
    s.slots = wr_slots_new(1);
    assert_int_equal(wr_spawner_start(s.slots, 1, &s.spawner, NULL), WEIR_OK);
    *state = &s;
    return 0;
}

static int
tear_down(void **state)
{
    struct scene *s = *state;

    wr_spawner_stop(s->spawner);
    wr_slots_free(s->slots);
    return wr_folder_remove(s->tmp) ? 0 : -1;
}

static void *
run(void *arg)
{
    struct scene *s = arg;
    const char *argv[] = {"sh", "-c", s->script, NULL};
    static const char *const env[] = {NULL};
    struct wr_buf out = {0}, err = {0};
    const struct wr_exec_run r = {.argv = argv,
                                  .env = env,
                                  .kill_after_ms = 1000,
                                  .result_max = 1000,
                                  .keep_stragglers = s->keep,
                                  .control = true};

    s->rc = wr_spawner_run(s->spawner, 0, &r, NULL, &out, &err, &s->end, NULL);
    wr_buf_fini(&out);
    wr_buf_fini(&err);
    return NULL;
}

/* Starts a run that does `first` and then waits; tells where its socket is. */
static struct sockaddr_un
begin(struct scene *s, const char *first)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    FILE *f;

    snprintf(s->script, sizeof(s->script), SCRIPT, first, s->tmp, s->tmp, s->tmp, s->tmp);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
    AWAIT(access(s->here, F_OK) == 0);
    f = fopen(s->here, "re");
    assert_non_null(f);
    assert_non_null(fgets(name.sun_path, sizeof(name.sun_path), f));
    fclose(f);
    name.sun_path[strcspn(name.sun_path, "\n")] = '\0';
    return name;
}

static void
finish(struct scene *s)
{
    assert_int_equal(unlink(s->here), 0);
    pthread_join(s->thread, NULL);
    assert_int_equal(s->rc, WEIR_OK);
    assert_int_equal(s->end.exit_code, 0);
}

static int
connect_to(const struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)name, sizeof(*name)), 0);
    return fd;
}

static int
say_at(const struct sockaddr_un *name, const char *line)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ssize_t n = sendto(fd, line, strlen(line), 0, (const struct sockaddr *)name,
                       sizeof(*name));
    int why = n < 0 ? errno : 0;

    close(fd);
    return why;
}

static void
what_is_said_while_it_runs_counts(void **state)
{
    struct scene *s = *state;
    struct sockaddr_un name = begin(s, ":");

    assert_int_equal(say_at(&name, "retry 30 outside\n"), 0);
    finish(s);
    assert_int_equal(s->end.said, WR_SAID_RETRY);
    assert_string_equal(s->end.why, "outside");
    assert_true(s->end.alone);
}

static void
the_address_of_a_run_that_is_over_is_nobodys(void **state)
{
    struct scene *s = *state;
    struct sockaddr_un old = begin(s, ":"), next;

    finish(s);
    for (int i = 0; i < 3; i++) {
        next = begin(s, ":");
        assert_string_not_equal(next.sun_path, old.sun_path);
        assert_int_equal(say_at(&old, "permanent late\n"), ENOENT);
        finish(s);
        assert_int_equal(s->end.said, WR_SAID_NOTHING);
        assert_int_equal(s->end.lines, 0);
    }
}

/* What it is connected to is gone as well, whatever its name is now. */
static void
assert_cannot_speak_for_the_next(struct scene *s, int fd)
{
    begin(s, ":");
    assert_int_equal(send(fd, "permanent late\n", 15, 0), -1);
    assert_true(errno == ECONNREFUSED || errno == ECONNRESET || errno == ENOTCONN);
    finish(s);
    assert_int_equal(s->end.said, WR_SAID_NOTHING);
    assert_int_equal(s->end.lines, 0);
}

static void
one_that_was_left_behind_cannot_speak_for_the_next_run(void **state)
{
    struct scene *s = *state;
    struct sockaddr_un name = begin(s, "setsid sleep 300 >/dev/null 2>&1 3>&- & true");
    int fd = connect_to(&name);

    assert_int_equal(send(fd, "note in time\n", 13, 0), 13);
    finish(s);
    assert_int_equal(s->end.lines, 1);
    assert_false(s->end.alone);
    assert_cannot_speak_for_the_next(s, fd);
    close(fd);
}

static void
nor_can_one_that_may_stay(void **state)
{
    struct scene *s = *state;
    struct sockaddr_un name;
    int fd;

    s->keep = true;
    name = begin(s, "(setsid sleep 2 >/dev/null 2>&1 3>&- &)");
    fd = connect_to(&name);
    finish(s);
    assert_false(s->end.alone);
    s->keep = false;
    assert_cannot_speak_for_the_next(s, fd);
    assert_true(s->end.alone); /* the other is known to be another run's */
    close(fd);
}

int
main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_said_while_it_runs_counts),
        TEST(the_address_of_a_run_that_is_over_is_nobodys),
        TEST(one_that_was_left_behind_cannot_speak_for_the_next_run),
        TEST(nor_can_one_that_may_stay),
    };

    return RUN_TESTS("control socket", tests, NULL, NULL);
}
