/* The private server: starts with nothing configured, keeps its jobs, leaves nothing. */
#include "support/test_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "embed/embed.h"
#include "redis/conn.h"
#include "support/worker_process.h"

static char root[64], dir[100], socket_path[110];
static struct weir_error err;

/* ---- helpers of these tests ---- */

static enum weir_err
start_at(const char *where, const char *socket, struct wr_embed **out)
{
    struct wr_embed_options o = {.dir = where, .socket = socket, .fsync = "always"};

    err = (struct weir_error){0};
    return wr_embed_start(&o, out, &err);
}

static struct wr_embed *
start(void)
{
    struct wr_embed *e;

    if (start_at(dir, socket_path, &e) != WEIR_OK)
        fail_msg("%s", err.text);
    return e;
}

static void
command(const char *url_text, const char *a, const char *b, const char *c, char *out,
        size_t cap)
{
    struct wr_url url;
    struct wr_conn_options o = {.url = &url};
    struct wr_conn *conn;
    struct wr_reply *reply;
    struct wr_span text;

    assert_int_equal(wr_url_parse(url_text, &url, NULL), WEIR_OK);
    assert_int_equal(wr_conn_open(&o, wr_clock_ms() + 5000, &conn, NULL), WEIR_OK);
    assert_int_equal(
        wr_conn_do(conn, wr_clock_ms() + 5000, &reply, NULL, a, b, c, (char *)NULL),
        WEIR_OK);
    text = wr_reply_span(wr_reply_len(reply) > 1 ? wr_reply_at(reply, 1) : reply);
    snprintf(out, cap, "%.*s", (int)text.len, (const char *)text.ptr);
    wr_reply_free(reply);
    wr_conn_close(conn);
}

static void
set_key(const struct wr_embed *e, const char *value)
{
    char reply[32];

    command(wr_embed_url(e), "SET", "k", value, reply, sizeof(reply));
    assert_string_equal(reply, "OK");
}

static void
assert_key(const struct wr_embed *e, const char *value)
{
    char reply[32];

    command(wr_embed_url(e), "GET", "k", NULL, reply, sizeof(reply));
    assert_string_equal(reply, value);
}

static void
assert_config(const struct wr_embed *e, const char *name, const char *value)
{
    char reply[256];

    command(wr_embed_url(e), "CONFIG", "GET", name, reply, sizeof(reply));
    assert_string_equal(reply, value);
}

static int
mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (int)(st.st_mode & 0777);
}

/* Runs what comes in a child that starts a server, and answers the server's process. */
static pid_t
start_in_child(pid_t *child)
{
    int ends[2];
    pid_t server = 0;

    assert_int_equal(pipe(ends), 0);
    *child = fork();
    assert_true(*child >= 0);
    if (*child == 0) {
        struct wr_embed *e;

        if (start_at(dir, socket_path, &e) == WEIR_OK)
            server = wr_embed_pid(e);
        if (write(ends[1], &server, sizeof(server)) != sizeof(server))
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &server, sizeof(server)), sizeof(server));
    close(ends[0]);
    close(ends[1]);
    assert_true(server > 0);
    return server;
}

static int
fresh(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/weir-embed-XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(dir, sizeof(dir), "%s/state/weir", root);
    snprintf(socket_path, sizeof(socket_path), "%s/s", root);
    return 0;
}

static int
clean(void **state)
{
    char line[128];

    (void)state;
    snprintf(line, sizeof(line), "rm -rf '%s'", root);
    return system(line);
}

/* ---- starting and stopping ---- */

static void
a_server_starts_in_a_folder_that_it_makes_and_that_is_private(void **unused)
{
    struct wr_embed *e = start();

    (void)unused;
    assert_true(wr_embed_answers(wr_embed_url(e)));
    assert_true(wr_embed_lives(e, &err));
    assert_int_equal(mode_of(dir), 0700);
    assert_int_equal(mode_of(socket_path), 0700);
    assert_config(e, "port", "0");
    assert_config(e, "appendonly", "yes");
    assert_config(e, "appendfsync", "always");
    assert_config(e, "maxmemory-policy", "noeviction");
    assert_config(e, "dir", dir);
    assert_config(e, "save", "");
    wr_embed_stop(e);
}

static void
after_a_stop_nothing_runs_and_the_next_start_finds_everything(void **unused)
{
    struct wr_embed *e = start();
    pid_t pid = wr_embed_pid(e);

    (void)unused;
    set_key(e, "v");
    wr_embed_stop(e);
    assert_false(process_lives(pid));
    assert_int_not_equal(access(socket_path, F_OK), 0);
    e = start();
    assert_key(e, "v");
    wr_embed_stop(e);
}

static void
a_killed_server_is_noticed_and_leaves_its_jobs_to_the_next(void **unused)
{
    struct wr_embed *e = start();

    (void)unused;
    set_key(e, "v");
    kill(wr_embed_pid(e), SIGKILL);
    AWAIT(!wr_embed_lives(e, &err));
    assert_non_null(strstr(err.text, "redis-server ended"));
    wr_embed_stop(e); /* of what has ended */
    e = start();
    assert_key(e, "v");
    wr_embed_stop(e);
}

static void
stopping_nothing_is_allowed(void **unused)
{
    (void)unused;
    wr_embed_stop(NULL);
}

static void
a_server_ends_with_the_process_that_started_it(void **unused)
{
    pid_t child, server = start_in_child(&child);

    (void)unused;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    AWAIT(!process_lives(server));
}

/* The old server may still be writing: the new one waits for it. */
static void
a_start_right_after_its_owner_was_killed_gets_the_folder_and_the_jobs(void **unused)
{
    struct wr_embed *e;
    char reply[32], url[128];
    pid_t child, server = start_in_child(&child);

    (void)unused;
    snprintf(url, sizeof(url), "unix://%s", socket_path);
    command(url, "SET", "k", "v", reply, sizeof(reply));
    kill(server, SIGSTOP); /* it takes its time to end */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (fork() == 0) {
        poll(NULL, 0, 300);
        kill(server, SIGCONT);
        _exit(0);
    }
    e = start();
    assert_false(process_lives(server));
    assert_key(e, "v");
    wr_embed_stop(e);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static void
signals_for_the_terminals_group_do_not_reach_the_server(void **unused)
{
    struct wr_embed *e = start();

    (void)unused;
    assert_int_equal(getpgid(wr_embed_pid(e)), wr_embed_pid(e));
    wr_embed_stop(e);
}

/* ---- what is in the way ---- */

static void
a_folder_in_use_is_refused_and_its_user_named(void **unused)
{
    struct wr_embed *e = start(), *second;
    char pid[32];

    (void)unused;
    set_key(e, "v");
    assert_int_equal(start_at(dir, socket_path, &second), WEIR_E_CONFIG);
    assert_null(second);
    snprintf(pid, sizeof(pid), "by process %d", (int)getpid());
    assert_non_null(strstr(err.text, pid));
    assert_key(e, "v"); /* the first was not touched */
    wr_embed_stop(e);
}

static void
the_socket_of_another_server_is_left_alone(void **unused)
{
    struct wr_embed *e = start(), *second;
    char other[120];

    (void)unused;
    snprintf(other, sizeof(other), "%s/other", root);
    assert_int_equal(start_at(other, socket_path, &second), WEIR_E_CONFIG);
    assert_non_null(strstr(err.text, "another server"));
    assert_true(wr_embed_answers(wr_embed_url(e)));
    wr_embed_stop(e);
    assert_int_equal(start_at(other, socket_path, &second), WEIR_OK); /* it is free now */
    wr_embed_stop(second);
}

static void
a_socket_that_nobody_listens_on_is_replaced(void **unused)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)unused;
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", socket_path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
    close(fd);
    wr_embed_stop(start());
}

static void
a_file_in_the_place_of_the_socket_is_not_deleted(void **unused)
{
    struct wr_embed *e;
    int fd = open(socket_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    (void)unused;
    close(fd);
    assert_int_equal(start_at(dir, socket_path, &e), WEIR_E_CONFIG);
    assert_non_null(strstr(err.text, "is not a socket"));
    assert_int_equal(access(socket_path, F_OK), 0);
}

static void
a_file_in_the_place_of_the_folder_is_an_error(void **unused)
{
    struct wr_embed *e;
    int fd;

    (void)unused;
    snprintf(dir, sizeof(dir), "%s/file", root);
    fd = open(dir, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    assert_int_equal(start_at(dir, socket_path, &e), WEIR_E_CONFIG);
    assert_non_null(strstr(err.text, dir));
}

static void
without_a_redis_the_error_says_what_to_install(void **unused)
{
    struct wr_embed *e;
    char *path = strdup(getenv("PATH"));
    enum weir_err rc;

    (void)unused;
    assert_non_null(path);
    setenv("PATH", root, 1);
    rc = start_at(dir, socket_path, &e);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(rc, WEIR_E_CONFIG);
    assert_non_null(strstr(err.text, "apt-get install redis-server"));
}

static void
a_server_that_cannot_start_has_its_last_words_quoted(void **unused)
{
    struct wr_embed *e = start();
    char path[160];
    FILE *f;

    (void)unused;
    wr_embed_stop(e);
    snprintf(path, sizeof(path), "%s/appendonlydir/appendonly.aof.manifest", dir);
    f = fopen(path, "we");
    assert_non_null(f);
    fputs("this is no manifest\n", f);
    fclose(f);
    assert_int_equal(start_at(dir, socket_path, &e), WEIR_E_IO);
    assert_null(e);
    assert_non_null(strstr(err.text, "redis-server ended at once: "));
    assert_non_null(strstr(err.text, "manifest"));
}

/* ---- paths ---- */

static void
a_folder_relative_to_the_current_one_works(void **unused)
{
    struct wr_embed *e;
    char cwd[512];

    (void)unused;
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_int_equal(chdir(root), 0);
    if (start_at("rel/dir", "rel/dir/redis.sock", &e) != WEIR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(chdir(cwd), 0);
    assert_true(wr_embed_answers(wr_embed_url(e)));
    wr_embed_stop(e);
}

static void
a_path_too_long_for_a_socket_gets_a_short_one_in_a_private_folder(void **unused)
{
    char deep[300], longer[320], folder[64];
    struct wr_embed *e;
    size_t len;

    (void)unused;
    snprintf(deep, sizeof(deep), "%s/", root);
    len = strlen(deep);
    memset(deep + len, 'd', 150);
    deep[len + 150] = '\0';
    snprintf(longer, sizeof(longer), "%s/redis.sock", deep);
    if (start_at(deep, longer, &e) != WEIR_OK)
        fail_msg("%s", err.text);
    snprintf(folder, sizeof(folder), "/tmp/weir-%u", (unsigned)geteuid());
    assert_int_equal(mode_of(folder), 0700);
    assert_non_null(strstr(wr_embed_url(e), folder));
    set_key(e, "v");
    wr_embed_stop(e);
}

static void
odd_characters_in_a_path_reach_the_url_encoded(void **unused)
{
    struct wr_embed *e;
    char odd[120];

    (void)unused;
    snprintf(odd, sizeof(odd), "%s/a%%41?db=1", root);
    if (start_at(dir, odd, &e) != WEIR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(access(odd, F_OK), 0);
    set_key(e, "v");
    wr_embed_stop(e);
}

/* Default places for the values of three variables; NULL: not set. */
static void
places(const char *state, const char *home, const char *run, const char *ns,
       char *out_dir, char *out_socket, bool expected)
{
    static const char *const names[] = {"XDG_STATE_HOME", "HOME", "XDG_RUNTIME_DIR"};
    const char *values[] = {state, home, run};
    char *before[3];

    for (size_t i = 0; i < 3; i++) {
        before[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    }
    assert_int_equal(wr_embed_default_dir(ns, out_dir, 400), expected);
    assert_int_equal(wr_embed_default_socket(ns, out_socket, 200), expected || run);
    for (size_t i = 0; i < 3; i++) {
        if (before[i])
            setenv(names[i], before[i], 1);
        else
            unsetenv(names[i]);
        free(before[i]);
    }
}

static void
default_places_follow_the_xdg_variables(void **unused)
{
    char d[400], s[200];

    (void)unused;
    places("/s", "/h", "/r", "weir", d, s, true);
    assert_string_equal(d, "/s/weir/weir");
    assert_string_equal(s, "/r/weir-weir.sock");
    places(NULL, "/h", NULL, "shop", d, s, true);
    assert_string_equal(d, "/h/.local/state/weir/shop");
    assert_string_equal(s, "/h/.local/state/weir/shop/redis.sock");
    places("", "/h", "", "shop", d, s, true);
    assert_string_equal(d, "/h/.local/state/weir/shop");
    places(NULL, NULL, NULL, "shop", d, s, false);
}

static void
a_namespace_never_leads_out_of_its_folder_or_into_that_of_another(void **unused)
{
    static const char *const spaces[] = {"a/b", "a_b", "../x", "..", ".", "a b", "a%b"};
    char d[400], s[200], seen[7][400];

    (void)unused;
    for (size_t i = 0; i < 7; i++) {
        places("/s", NULL, "/r", spaces[i], d, s, true);
        assert_int_equal(strncmp(d, "/s/weir/", 8), 0);
        assert_null(strchr(d + 8, '/'));
        assert_int_not_equal(d[8], '.');
        assert_null(strchr(s + 3, '/'));
        snprintf(seen[i], sizeof(seen[i]), "%s", d);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(seen[i], seen[k]);
    }
}

static void
nobody_answers_where_there_is_nothing(void **unused)
{
    char url[140];

    (void)unused;
    snprintf(url, sizeof(url), "unix://%s", socket_path);
    assert_false(wr_embed_answers(url));
    assert_false(wr_embed_answers("no url"));
}

#define EMBED_TEST(name) cmocka_unit_test_setup_teardown(name, fresh, clean)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        EMBED_TEST(a_server_starts_in_a_folder_that_it_makes_and_that_is_private),
        EMBED_TEST(after_a_stop_nothing_runs_and_the_next_start_finds_everything),
        EMBED_TEST(a_killed_server_is_noticed_and_leaves_its_jobs_to_the_next),
        EMBED_TEST(stopping_nothing_is_allowed),
        EMBED_TEST(a_server_ends_with_the_process_that_started_it),
        EMBED_TEST(a_start_right_after_its_owner_was_killed_gets_the_folder_and_the_jobs),
        EMBED_TEST(signals_for_the_terminals_group_do_not_reach_the_server),
        EMBED_TEST(a_folder_in_use_is_refused_and_its_user_named),
        EMBED_TEST(the_socket_of_another_server_is_left_alone),
        EMBED_TEST(a_socket_that_nobody_listens_on_is_replaced),
        EMBED_TEST(a_file_in_the_place_of_the_socket_is_not_deleted),
        EMBED_TEST(a_file_in_the_place_of_the_folder_is_an_error),
        EMBED_TEST(without_a_redis_the_error_says_what_to_install),
        EMBED_TEST(a_server_that_cannot_start_has_its_last_words_quoted),
        EMBED_TEST(a_folder_relative_to_the_current_one_works),
        EMBED_TEST(a_path_too_long_for_a_socket_gets_a_short_one_in_a_private_folder),
        EMBED_TEST(odd_characters_in_a_path_reach_the_url_encoded),
        EMBED_TEST(default_places_follow_the_xdg_variables),
        EMBED_TEST(a_namespace_never_leads_out_of_its_folder_or_into_that_of_another),
        EMBED_TEST(nobody_answers_where_there_is_nothing),
    };

    return RUN_TESTS("embed", tests, NULL, NULL);
}
