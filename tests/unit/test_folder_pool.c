/* Private folders of attempts that serve again: only as nobody could tell them from new
 * ones. */
#include "support/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/folder_pool.h"

#define OURS (uid_t) - 1, (gid_t)-1
#define BOUND_MS 20000

struct scene {
    char base[64];
    struct wr_folder_pool *pool;
};

static int
set_up(void **state)
{
    static struct scene s;

    snprintf(s.base, sizeof(s.base), "/tmp/weir-test-pool.XXXXXX");
    assert_non_null(mkdtemp(s.base));
    s.pool = wr_folder_pool_new(s.base);
    assert_non_null(s.pool);
    *state = &s;
    return 0;
}

static int
tear_down(void **state)
{
    struct scene *s = *state;

    wr_folder_pool_free(s->pool);
    assert_true(wr_folder_remove(s->base));
    return 0;
}

static void
assert_like_new(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    struct stat st;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL)
        assert_true(e->d_name[0] == '.' && strspn(e->d_name, ".") == strlen(e->d_name));
    closedir(d);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(st.st_uid, geteuid());
}

/* The file system's clock must go on before a folder may serve again. */
static void
take_provable(struct scene *s, struct wr_folder *f)
{
    int64_t until = wr_clock_ms() + BOUND_MS;

    for (;;) {
        assert_int_equal(wr_folder_take(s->pool, OURS, f), 0);
        assert_like_new(f->path);
        if (f->provable)
            return;
        assert_true(wr_clock_ms() < until);
        assert_true(wr_folder_give_back(s->pool, f, true));
        poll(NULL, 0, 1);
    }
}

/* Held open, so that no other folder gets its number. */
static int
hold(const struct wr_folder *f)
{
    int fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static bool
is_removed(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return st.st_nlink == 0;
}

static void
a_folder_left_as_it_was_serves_again_under_another_name(void **state)
{
    struct scene *s = *state;
    int64_t until = wr_clock_ms() + BOUND_MS;
    struct wr_folder first, next;
    struct stat st;
    int fd;

    take_provable(s, &first);
    fd = hold(&first);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(wr_folder_give_back(s->pool, &first, true));
    assert_int_equal(access(first.path, F_OK), -1);
    assert_false(is_removed(fd));
    for (;;) {
        assert_int_equal(wr_folder_take(s->pool, OURS, &next), 0);
        assert_like_new(next.path);
        assert_string_not_equal(next.path, first.path);
        if (next.found.st_ino == st.st_ino)
            break;
        assert_true(wr_clock_ms() < until);
        assert_true(wr_folder_give_back(s->pool, &next, true));
        poll(NULL, 0, 1);
    }
    assert_true(wr_folder_give_back(s->pool, &next, true));
    close(fd);
}

/* ---- what an attempt may have done ---- */

static void
leave_a_file(const char *path)
{
    char file[WR_FOLDER_MAX + 8];
    int fd;

    snprintf(file, sizeof(file), "%s/x", path);
    fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void
make_and_remove_a_file(const char *path)
{
    char file[WR_FOLDER_MAX + 8];

    leave_a_file(path);
    snprintf(file, sizeof(file), "%s/x", path);
    assert_int_equal(unlink(file), 0);
}

static void
open_it_to_all(const char *path)
{
    assert_int_equal(chmod(path, 0777), 0);
}

static void
open_and_close_it(const char *path)
{
    open_it_to_all(path);
    assert_int_equal(chmod(path, 0700), 0);
}

static void
turn_its_clock_back(const char *path)
{
    const struct timespec old[2] = {{1, 0}, {1, 0}};

    make_and_remove_a_file(path);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static void
give_it_an_attribute(const char *path)
{
    if (setxattr(path, "user.weir", "x", 1, 0) != 0)
        leave_a_file(path); /* there are none here */
}

static void
put_another_in_its_place(const char *path)
{
    char away[WR_FOLDER_MAX + 8];

    snprintf(away, sizeof(away), "%s.away", path);
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(rmdir(away), 0);
}

static void
put_a_link_in_its_place(const char *path)
{
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/", path), 0);
}

static void
remove_it(const char *path)
{
    assert_int_equal(rmdir(path), 0);
}

static void
a_folder_that_was_changed_in_any_way_is_removed(void **state)
{
    static void (*const changes[])(const char *path) = {
        leave_a_file,
        make_and_remove_a_file,
        open_it_to_all,
        open_and_close_it,
        turn_its_clock_back,
        give_it_an_attribute,
        put_another_in_its_place,
        put_a_link_in_its_place,
        remove_it,
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct wr_folder f;
        struct stat st;
        int fd;

        take_provable(s, &f);
        fd = hold(&f);
        changes[i](f.path);
        /* A link to the root of the system is not removed as a folder. */
        if (changes[i] == put_a_link_in_its_place) {
            (void)wr_folder_give_back(s->pool, &f, true);
            assert_int_equal(lstat(f.path, &st), 0);
            assert_true(S_ISLNK(st.st_mode));
            assert_int_equal(unlink(f.path), 0);
        } else {
            assert_true(wr_folder_give_back(s->pool, &f, true));
        }
        assert_int_equal(lstat(f.path, &st), -1);
        if (!is_removed(fd))
            fail_msg("change %zu was not seen", i);
        close(fd);
    }
}

static void
a_folder_whose_attempt_left_somebody_behind_is_removed(void **state)
{
    struct scene *s = *state;
    struct wr_folder f;
    int fd;

    take_provable(s, &f);
    fd = hold(&f);
    assert_true(wr_folder_give_back(s->pool, &f, false));
    assert_true(is_removed(fd));
    close(fd);
}

static void
one_that_was_changed_while_nobody_had_it_is_not_given_out(void **state)
{
    struct scene *s = *state;
    struct wr_folder f;
    struct dirent *e;
    DIR *d;

    take_provable(s, &f);
    assert_true(wr_folder_give_back(s->pool, &f, true));
    d = opendir(s->base); /* all that wait */
    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", s->base, e->d_name);
        if (e->d_name[0] != '.')
            leave_a_file(path);
    }
    closedir(d);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(wr_folder_take(s->pool, OURS, &f), 0);
        assert_like_new(f.path);
        assert_true(wr_folder_give_back(s->pool, &f, true));
    }
}

static void
another_owner_gets_a_folder_of_its_own(void **state)
{
    struct scene *s = *state;
    struct wr_folder f, other;
    struct stat st;

    if (geteuid() != 0)
        skip();
    take_provable(s, &f);
    assert_true(wr_folder_give_back(s->pool, &f, true));
    for (int i = 0; i < 50; i++) {
        assert_int_equal(wr_folder_take(s->pool, 12345, 54321, &other), 0);
        assert_int_equal(stat(other.path, &st), 0);
        assert_int_equal(st.st_uid, 12345);
        assert_int_equal(st.st_gid, 54321);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_true(wr_folder_give_back(s->pool, &other, true));
    }
}

static void
without_its_base_it_says_so(void **state)
{
    struct scene *s = *state;
    struct wr_folder f;

    take_provable(s, &f);
    assert_true(wr_folder_give_back(s->pool, &f, true));
    assert_true(wr_folder_remove(s->base));
    assert_int_equal(wr_folder_take(s->pool, OURS, &f), ENOENT);
    assert_int_equal(mkdir(s->base, 0700), 0);
    assert_int_equal(wr_folder_take(s->pool, OURS, &f), 0);
    assert_like_new(f.path);
}

int
main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_folder_left_as_it_was_serves_again_under_another_name),
        TEST(a_folder_that_was_changed_in_any_way_is_removed),
        TEST(a_folder_whose_attempt_left_somebody_behind_is_removed),
        TEST(one_that_was_changed_while_nobody_had_it_is_not_given_out),
        TEST(another_owner_gets_a_folder_of_its_own),
        TEST(without_its_base_it_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
