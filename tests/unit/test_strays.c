/* Whose a process is, as its environment says: /proc is played by pipes with names, of
 * which each look gets what the test says next. */
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/exec_folder.h"
#include "worker/spawn.h"

#define SPAWNER 77
#define PID 12345

struct scene {
    char proc[64], environ[96], exe[96];
    const char *texts[64]; /* what each look reads; the last is for all further ones */
    size_t lens[64], n;
    pthread_t thread;
    _Atomic bool over, broken;
    _Atomic size_t looks;
};

static int
set_up(void **state)
{
    static struct scene s;
    char folder[80];

    s = (struct scene){0};
    snprintf(s.proc, sizeof(s.proc), "/tmp/weir-test-proc.XXXXXX");
    assert_non_null(mkdtemp(s.proc));
    snprintf(folder, sizeof(folder), "%s/%d", s.proc, PID);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(s.environ, sizeof(s.environ), "%s/environ", folder);
    assert_int_equal(mkfifo(s.environ, 0600), 0);
    snprintf(s.exe, sizeof(s.exe), "%s/exe", folder);
    assert_int_equal(symlink("/bin/true", s.exe), 0);
    signal(SIGPIPE, SIG_IGN);
    *state = &s;
    return 0;
}

static int
tear_down(void **state)
{
    const struct scene *s = *state;

    return wr_folder_remove(s->proc) ? 0 : -1;
}

/* One pipe is one look: open waits for the one that looks, and another pipe takes its
 * place before that one comes to its end. */
static void *
answer_looks(void *arg)
{
    struct scene *s = arg;
    char next[100];

    snprintf(next, sizeof(next), "%s.next", s->environ);
    for (;;) {
        size_t i = s->looks < s->n ? s->looks : s->n - 1;
        int fd = open(s->environ, O_WRONLY | O_CLOEXEC);

        if (s->over || fd < 0) {
            close(fd);
            return NULL;
        }
        s->looks++;
        if (mkfifo(next, 0600) != 0 || rename(next, s->environ) != 0 ||
            write(fd, s->texts[i], s->lens[i]) != (ssize_t)s->lens[i])
            s->broken = true;
        close(fd);
    }
}

static void
say(struct scene *s, const char *text, size_t len)
{
    s->texts[s->n] = text;
    s->lens[s->n++] = len;
}
#define SAY(s, text) say(s, text, sizeof(text) - 1)

static struct wr_stray_says
ask(struct scene *s)
{
    struct wr_stray_says says;
    int fd;

    assert_int_equal(pthread_create(&s->thread, NULL, answer_looks, s), 0);
    says = wr_stray_ask(s->proc, PID, SPAWNER);
    s->over = true;
    fd = open(s->environ, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* lets the other go on */
    pthread_join(s->thread, NULL);
    close(fd);
    assert_false(s->broken);
    return says;
}

static void
one_that_says_whose_it_is_is_believed(void **state)
{
    struct scene *s = *state;
    struct wr_stray_says says;

    SAY(s, "A=1\0WEIR_ATTEMPT_KEY=77-42\0B=2\0");
    says = ask(s);
    assert_int_equal(says.number, 42);
    assert_false(says.kept);
    assert_int_equal(s->looks, 1);
}

static void
one_of_a_run_that_keeps_its_leftovers_says_so(void **state)
{
    struct scene *s = *state;
    struct wr_stray_says says;

    SAY(s, "WEIR_ATTEMPT_KEY=77-42k\0");
    says = ask(s);
    assert_int_equal(says.number, 42);
    assert_true(says.kept);
}

static void
in_the_middle_of_an_exec_it_is_asked_again_X05(void **state)
{
    struct scene *s = *state;

    SAY(s, "");
    SAY(s, "");
    SAY(s, "WEIR_ATTEMPT_KEY=77-42\0");
    assert_int_equal(ask(s).number, 42);
    assert_int_equal(s->looks, 3);
}

static void
one_that_wiped_its_environment_stays_unknown(void **state)
{
    struct scene *s = *state;

    SAY(s, "");
    assert_int_equal(ask(s).number, 0);
    assert_true(s->looks > 3); /* it had its chance */
}

static void
one_that_has_ended_is_not_waited_for(void **state)
{
    struct scene *s = *state;

    SAY(s, "");
    assert_int_equal(unlink(s->exe), 0);
    assert_int_equal(ask(s).number, 0);
    assert_int_equal(s->looks, 1);
}

static void
other_words_than_its_key_say_nothing(void **state)
{
    static const char *const texts[] = {
        "WEIR_ATTEMPT_KEY=78-42",  /* another worker's */
        "XWEIR_ATTEMPT_KEY=77-42", /* the end of a longer name */
        "A=WEIR_ATTEMPT_KEY=77-42",
        "WEIR_ATTEMPT_KEY=",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct scene *s = *state;

        s->n = 0;
        s->looks = 0;
        s->over = false;
        say(s, texts[i], strlen(texts[i]) + 1);
        assert_int_equal(ask(s).number, 0);
        assert_int_equal(s->looks, 1);
    }
}

static void
its_key_is_found_wherever_it_stands(void **state)
{
    static const char key[] = "WEIR_ATTEMPT_KEY=77-42";
    static char text[40000];
    struct scene *s = *state;

    /* Also across the pieces in which it is read. */
    for (size_t before = 16384 - sizeof(key) - 4; before < 16384 + 4; before += 3) {
        s->n = 0;
        s->looks = 0;
        s->over = false;
        memset(text, 'x', sizeof(text));
        text[before - 1] = '\0';
        memcpy(text + before, key, sizeof(key));
        say(s, text, sizeof(text));
        assert_int_equal(ask(s).number, 42);
    }
}

int
main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_that_says_whose_it_is_is_believed),
        TEST(one_of_a_run_that_keeps_its_leftovers_says_so),
        TEST(in_the_middle_of_an_exec_it_is_asked_again_X05),
        TEST(one_that_wiped_its_environment_stays_unknown),
        TEST(one_that_has_ended_is_not_waited_for),
        TEST(other_words_than_its_key_say_nothing),
        TEST(its_key_is_found_wherever_it_stands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
