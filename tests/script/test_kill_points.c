/*
 * Every call of a client is cut at every point: a child makes the call and dies by
 * SIGKILL before its first send, after it, before its first receive, and so on until it
 * comes through. After each death the sums must be right, and the same call by a new
 * client must end as if there had been one.
 */
#undef _FORTIFY_SOURCE /* it has a recv() of its own; here is another */
#include "script/kill_acts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client_internal.h"
#include "script/rig.h"

#define POINTS_MAX 400 /* no call has more */

/* ---- dying ---- */

/* Of a child. */
static long points_left;      /* until death; 0: it lives */
static const char *looks_for; /* the hash of the script that the call is about */
static bool is_due;           /* points count; false: not before that script is sent */

static bool *was_sent; /* the script, by the last child: they share this */

static void
pass_point(void)
{
    if (is_due && points_left > 0 && --points_left == 0)
        kill(getpid(), SIGKILL);
}

/* These stand before the C library's in this program. */
ssize_t
send(int fd, const void *bytes, size_t len, int flags)
{
    ssize_t n;

    if (looks_for && memmem(bytes, len, looks_for, strlen(looks_for)))
        is_due = *was_sent = true;
    pass_point();
    n = syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
    pass_point();
    return n;
}

ssize_t
recv(int fd, void *bytes, size_t len, int flags)
{
    ssize_t n;

    pass_point();
    n = syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
    pass_point();
    return n;
}

/* ---- a try ---- */

static enum weir_err
act_as_new_client(const struct kill_act *t)
{
    struct weir_client_options o = {WEIR_CLIENT_OPTIONS_INIT,
                                    .url = redis_server_url(rig.redis)};
    struct kill_actor a = {0};
    enum weir_err rc = weir_client_open(&o, &a.client, &a.err);

    if (rc != WEIR_OK)
        return rc;
    a.store = wr_client_store(a.client);
    wr_store_set_test_clock(a.store, rig.now);
    rc = wr_store_queue(a.store, "q", &a.queue, &a.err);
    if (rc == WEIR_OK)
        rc = t->act(&a);
    weir_client_close(a.client);
    return rc;
}

static int
clients(void)
{
    const char *text = strstr(redis_do(rig.redis, "INFO clients"), "connected_clients:");

    return text ? atoi(text + strlen("connected_clients:")) : -1;
}

/* The server has read all that the dead child sent when it has seen its end. */
static void
wait_until_gone(int before)
{
    int64_t deadline = wr_clock_ms() + 10000;

    while (clients() != before) {
        if (wr_clock_ms() > deadline)
            fail_msg("the dead client's connection stays");
    }
}

/* The one that a call is about: the first word of its name. */
static const struct wr_script *
script_of(const struct kill_act *t)
{
    char name[32];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(t->name, " ,"), t->name);
    return rig_script_of(name);
}

/* False: the child came through before it passed that many points. */
static bool
die_at(const struct kill_act *t, long point, bool whole)
{
    int before = clients(), status;
    pid_t child;

    *was_sent = false;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        enum weir_err rc;

        points_left = point;
        looks_for = script_of(t)->sha1;
        is_due = whole;
        rc = act_as_new_client(t);
        _exit(rc == WEIR_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    wait_until_gone(before);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    if (WEXITSTATUS(status) != 0)
        fail_msg("%s: the call fails, at point %ld", t->name, point);
    return false;
}

static void
check_end(const struct kill_act *t, long point)
{
    enum weir_err rc = act_as_new_client(t);
    enum weir_err_kind kind = weir_err_kind_of(rc);

    rig_follow_engine();
    if (kind != WEIR_KIND_OK && kind != WEIR_KIND_STATE)
        fail_msg("%s, point %ld: the repeat fails: %s", t->name, point,
                 weir_err_name(rc));
    if (strcmp(rig_where("A"), t->where) != 0)
        fail_msg("%s, point %ld: A is in %s, not %s", t->name, point, rig_where("A"),
                 t->where);
    if (rig_stat(t->counter) != t->count)
        fail_msg("%s, point %ld: %s is %lld, not %d", t->name, point, t->counter,
                 (long long)rig_stat(t->counter), t->count);
    t->after();
    rig_assert_sums();
}

static void
make_world(const struct kill_act *t)
{
    rig_fresh(NULL);
    rig_make_queue();
    t->before();
}

/* whole: also while it connects and registers the queue, which is the same for all that
 * make one. Answers how often it died. */
static long
cut_everywhere(const struct kill_act *t, bool whole)
{
    bool died = true;
    long point = 0;

    while (died) {
        assert_true(++point < POINTS_MAX);
        make_world(t);
        died = die_at(t, point, whole);
        rig_follow_engine();
        if (strcmp(t->name, "repair") != 0 && /* it mends them */
            strcmp(rig_script("drop", "", "0", "1", NULL), "NOQUEUE") != 0)
            rig_assert_sums();
        if (t->before == kill_no_world && rig_stat("enqueued") > 0)
            kill_must_be_registered(); /* no job in a queue that no scheduler knows */
        check_end(t, point);
    }
    if (!*was_sent)
        fail_msg("%s: the script is not called", t->name);
    if (point <= 4) /* a send and a receive */
        fail_msg("%s: only %ld points: is the connection hooked?", t->name, point);
    return point - 1;
}

static void
a_client_may_die_at_any_point_of_any_call_F3(void **state)
{
    long total = 0;

    (void)state;
    was_sent = mmap(NULL, sizeof(*was_sent), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(was_sent != MAP_FAILED);
    for (size_t i = 0; i < kill_acts_count; i++)
        total += cut_everywhere(&kill_acts[i], kill_acts[i].before == kill_no_world);
    for (size_t i = 0; i < kill_others_count; i++)
        total += cut_everywhere(&kill_others[i], false);
    print_message("%ld deaths\n", total);
    munmap(was_sent, sizeof(*was_sent));
}

static bool
is_cut(const struct wr_script *script, const struct kill_act *acts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (script_of(&acts[i]) == script)
            return true;
    }
    return false;
}

static void
every_script_is_cut(void **state)
{
    const char *engine = rig_either("list/", "stream/");

    (void)state;
    for (size_t i = 0; i < wr_scripts_count; i++) {
        const struct wr_script *script = wr_scripts[i];

        if ((strncmp(script->name, engine, strlen(engine)) == 0 ||
             strncmp(script->name, "common/", 7) == 0) &&
            !is_cut(script, kill_acts, kill_acts_count) &&
            !is_cut(script, kill_others, kill_others_count))
            fail_msg("%s has no row in part_kill_acts.c or part_kill_others.c",
                     script->name);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(every_script_is_cut),
        RIG_TEST(a_client_may_die_at_any_point_of_any_call_F3),
    };

    return RIG_MAIN(tests);
}
