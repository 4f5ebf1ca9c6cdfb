/* Command jobs: what is stored comes out again, signatures hold, and only what a worker
 * allows is run, whatever the job calls it. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "command/allow.h"
#include "command/sign.h"

static uint64_t seed = 12;

static uint64_t
below(uint64_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % limit;
}

static void
store(const struct wr_command *c, const char *sign, struct wr_buf *payload)
{
    struct wr_buf written = {0};

    assert_true(wr_command_write(c, &written));
    assert_true(wr_command_finish(wr_buf_span(&written), sign, payload));
    wr_buf_fini(&written);
}

/* ---- the stored form ---- */

static void
assert_same(const struct wr_command *a, const struct wr_command *b)
{
    assert_int_equal(a->argc, b->argc);
    for (size_t i = 0; i < a->argc; i++)
        assert_string_equal(a->argv[i], b->argv[i]);
    assert_null(a->argv[a->argc]);
    assert_int_equal(a->envc, b->envc);
    for (size_t i = 0; i < a->envc; i++)
        assert_string_equal(a->env[i], b->env[i]);
    assert_string_equal(a->cwd ? a->cwd : "(none)", b->cwd ? b->cwd : "(none)");
    assert_true(a->until_ms == b->until_ms);
    assert_int_equal(a->input.len, b->input.len);
    assert_memory_equal(a->input.ptr ? a->input.ptr : "",
                        b->input.ptr ? b->input.ptr : "", a->input.len);
}

static void
a_command_comes_out_as_it_went_in(void **state)
{
    const char *argv[] = {"tar", "", " ", "a b\n%41=\x7f\xff\xc3\xa4", "--", NULL};
    const char *env[] = {"A=", "LANG=C=D %\n", "_x9=1", NULL};
    struct wr_command c = {.argv = argv,
                           .argc = 5,
                           .env = env,
                           .envc = 3,
                           .cwd = "/srv/my data",
                           .until_ms = 1796000000000,
                           .input = {"\0argv x\n\n\nzz", 12}};
    struct wr_command out, plain = {.argv = argv, .argc = 1};
    struct wr_buf payload = {0};

    (void)state;
    store(&c, "", &payload);
    assert_null(wr_command_read(wr_buf_span(&payload), &out));
    assert_same(&out, &c);
    assert_string_equal(out.sign, "");
    wr_command_fini(&out);
    wr_buf_clear(&payload);
    store(&plain, "", &payload);
    assert_string_equal(payload.ptr, "weir-command/1\nargv tar\n\n");
    assert_null(wr_command_read(wr_buf_span(&payload), &out));
    assert_same(&out, &plain);
    wr_command_fini(&out);
    wr_buf_fini(&payload);
}

static void
random_words_come_out_as_they_went_in(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        const char *argv[9] = {0};
        char words[8][20];
        struct wr_command c = {.argv = argv, .argc = 1 + below(8)}, out;
        struct wr_buf payload = {0};

        for (size_t i = 0; i < c.argc; i++) {
            size_t len = below(19) + (i == 0);

            for (size_t j = 0; j < len; j++)
                words[i][j] = (char)(1 + below(255));
            words[i][len] = '\0';
            argv[i] = words[i];
        }
        store(&c, "", &payload);
        assert_null(wr_command_read(wr_buf_span(&payload), &out));
        assert_same(&out, &c);
        wr_command_fini(&out);
        wr_buf_fini(&payload);
    }
}

static void
what_is_no_command_is_refused_and_every_cut_of_one_read_without_harm(void **state)
{
    static const char *const bad[] = {
        "",
        "weir-command/1",
        "weir-command/1\n",
        "weir-command/2\nargv ls\n\n",
        "weir-command/1\nargv\n\n",
        "weir-command/1\nargv \n\n",
        "weir-command/1\nargv ls\n",
        "weir-command/1\nargv ls%0\n\n",
        "weir-command/1\nargv ls%00x\n\n",
        "weir-command/1\nargv ls\nenv 1A=b\n\n",
        "weir-command/1\nargv ls\nenv AB\n\n",
        "weir-command/1\nargv ls\nenv =b\n\n",
        "weir-command/1\nargv ls\nuntil soon\n\n",
        "weir-command/1\nargv ls\nuntil 0\n\n",
        "weir-command/1\nargv ls\nuser root\n\n",
        "weir-command/1\nargv ls\ncwd /\nenv A=b\n\n",
        "weir-command/1\nenv A=b\nargv ls\n\n",
        "weir-command/1\nargv ls\nargv rm\n\n",
        "weir-command/1\nsign md5 00\nargv ls\n\n",
        "weir-command/1\nargv ls\nsign hmac-sha256 00\n\n",
    };
    struct wr_command out;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (!wr_command_read(wr_span_str(bad[i]), &out))
            fail_msg("taken: %s", bad[i]);
        wr_command_fini(&out);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (size_t len = 0; len < strlen(bad[i]); len++) {
            char *exact = malloc(len ? len : 1);

            assert_non_null(exact);
            memcpy(exact, bad[i], len);
            (void)wr_command_read((struct wr_span){exact, len}, &out);
            wr_command_fini(&out);
            free(exact);
        }
    }
}

static void
a_command_of_too_many_words_is_refused(void **state)
{
    struct wr_buf payload = {0};
    struct wr_command out;

    (void)state;
    wr_buf_add_str(&payload, "weir-command/1\nargv x");
    for (int i = 0; i < WR_COMMAND_WORDS_MAX; i++)
        wr_buf_add_str(&payload, " ");
    wr_buf_add_str(&payload, "\n\n");
    assert_non_null(wr_command_read(wr_buf_span(&payload), &out));
    wr_command_fini(&out);
    wr_buf_fini(&payload);
}

/* ---- a folder of its own ---- */

static char folder[PATH_MAX];

/* in("bin/a") is its path there; several can be used in one call. */
static const char *
in(const char *name)
{
    static char paths[8][PATH_MAX];
    static size_t next;
    char *out = paths[next++ % 8];

    snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return out;
}

static void
put(const char *name, const char *text, mode_t mode)
{
    FILE *f = fopen(in(name), "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(in(name), mode), 0);
}

static int
make_folder(void **state)
{
    char name[] = "/tmp/weir-command-XXXXXX";

    (void)state;
    umask(022);
    if (!mkdtemp(name) || !realpath(name, folder))
        return -1;
    mkdir(in("bin"), 0755);
    mkdir(in("other"), 0755);
    mkdir(in("open"), 0777);
    chmod(in("open"), 0777);
    put("bin/tool", "#!/bin/sh\n", 0755);
    put("bin/.hidden", "#!/bin/sh\n", 0755);
    put("bin/plain", "no program", 0644);
    put("bin/loose", "#!/bin/sh\n", 0757);
    put("other/evil", "#!/bin/sh\n", 0755);
    put("open/anybody", "#!/bin/sh\n", 0755);
    mkdir(in("open/bin"), 0755);
    put("open/bin/below", "#!/bin/sh\n", 0755);
    mkdir(in("bin/sub"), 0755);
    put("bin/sub/deep", "#!/bin/sh\n", 0755);
    return symlink("tool", in("bin/alias")) || symlink("../other/evil", in("bin/evil")) ||
           symlink("../bin/tool", in("other/tool")) ||
           symlink("../bin/tool", in("other/rm")) || symlink("bin", in("link"));
}

static int
remove_folder(void **state)
{
    char command[PATH_MAX + 20];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

/* ---- signatures ---- */

static void
a_signature_is_good_for_one_job_until_its_time(void **state)
{
    const char *argv[] = {"ls", "-l", NULL};
    struct wr_command c = {.argv = argv, .argc = 2, .until_ms = 5000, .input = {"in", 2}};
    char sign[WR_COMMAND_SIGN_LEN + 1];
    struct wr_buf written = {0}, payload = {0};
    struct wr_command got;
    struct wr_keys *keys;

    (void)state;
    put("key", "# mine\n\nabcdefghijklmnopqrstuvwxyz\n", 0600);
    assert_int_equal(wr_keys_read(in("key"), &keys, NULL), WEIR_OK);
    assert_true(wr_command_write(&c, &written));
    assert_true(wr_command_sign(keys, "q", "id 1", wr_buf_span(&written), sign));
    assert_true(wr_command_finish(wr_buf_span(&written), sign, &payload));
    assert_null(wr_command_read(wr_buf_span(&payload), &got));
    assert_null(wr_command_verify(keys, "q", "id 1", &got, 5000));
    assert_non_null(wr_command_verify(keys, "q", "id 1", &got, 5001));
    assert_non_null(wr_command_verify(keys, "q", "id 2", &got, 5000));
    assert_non_null(wr_command_verify(keys, "p", "id 1", &got, 5000));
    assert_non_null(wr_command_verify(keys, "q\nid id 1", "", &got, 5000));
    wr_command_fini(&got);
    for (size_t i = 0; i < payload.len; i++) { /* whatever byte is changed */
        payload.ptr[i] ^= 1;
        if (!wr_command_read(wr_buf_span(&payload), &got))
            assert_non_null(wr_command_verify(keys, "q", "id 1", &got, 5000));
        wr_command_fini(&got);
        payload.ptr[i] ^= 1;
    }
    wr_keys_free(keys);
    wr_buf_fini(&payload);
    wr_buf_fini(&written);
}

/* What the documentation tells other languages to compute; made with
 * printf 'weir-command/1\nqueue q\nid a%%20b\nargv ls\nuntil 9\n\nx' |
 *     openssl dgst -sha256 -hmac 0123456789abcdef */
static void
a_signature_is_what_openssl_says(void **state)
{
    const char *argv[] = {"ls", NULL};
    struct wr_command c = {.argv = argv, .argc = 1, .until_ms = 9, .input = {"x", 1}};
    char sign[WR_COMMAND_SIGN_LEN + 1], line[200];
    struct wr_buf written = {0};
    struct wr_keys *keys;
    FILE *f;

    (void)state;
    put("key2", "0123456789abcdef\n", 0640);
    assert_int_equal(wr_keys_read(in("key2"), &keys, NULL), WEIR_OK);
    assert_true(wr_command_write(&c, &written));
    assert_true(wr_command_sign(keys, "q", "a b", wr_buf_span(&written), sign));
    f = popen(
        "printf 'weir-command/1\\nqueue q\\nid a%%20b\\nargv ls\\nuntil 9\\n\\nx' | "
        "openssl dgst -sha256 -hmac 0123456789abcdef 2>/dev/null",
        "r");
    assert_non_null(f);
    if (fgets(line, sizeof(line), f))
        assert_non_null(strstr(line, sign));
    pclose(f);
    wr_keys_free(keys);
    wr_buf_fini(&written);
}

static void
each_key_of_the_file_verifies_and_the_first_signs(void **state)
{
    const char *argv[] = {"ls", NULL};
    struct wr_command c = {.argv = argv, .argc = 1, .until_ms = 9}, got;
    char sign[WR_COMMAND_SIGN_LEN + 1];
    struct wr_buf written = {0}, payload = {0};
    struct wr_keys *old, *both, *other;

    (void)state;
    put("old", "old-key-old-key-old\n", 0600);
    put("both", "new-key-new-key-new\nold-key-old-key-old", 0600);
    put("new", "new-key-new-key-new\n", 0600);
    assert_int_equal(wr_keys_read(in("old"), &old, NULL), WEIR_OK);
    assert_int_equal(wr_keys_read(in("both"), &both, NULL), WEIR_OK);
    assert_int_equal(wr_keys_read(in("new"), &other, NULL), WEIR_OK);
    assert_true(wr_command_write(&c, &written));
    assert_true(wr_command_sign(old, "q", "i", wr_buf_span(&written), sign));
    assert_true(wr_command_finish(wr_buf_span(&written), sign, &payload));
    assert_null(wr_command_read(wr_buf_span(&payload), &got));
    assert_null(wr_command_verify(both, "q", "i", &got, 1));
    assert_non_null(wr_command_verify(other, "q", "i", &got, 1));
    wr_command_fini(&got);
    wr_keys_free(old);
    wr_keys_free(both);
    wr_keys_free(other);
    wr_buf_fini(&written);
    wr_buf_fini(&payload);
}

static void
a_key_file_that_is_open_short_or_empty_is_refused(void **state)
{
    struct wr_keys *keys;
    struct weir_error err;

    (void)state;
    put("k", "abcdefghijklmnopqrstuvwxyz\n", 0644);
    assert_int_equal(wr_keys_read(in("k"), &keys, &err), WEIR_E_CONFIG);
    assert_non_null(strstr(err.text, "everybody"));
    put("k", "short\n", 0600);
    assert_int_equal(wr_keys_read(in("k"), &keys, &err), WEIR_E_CONFIG);
    put("k", "# none\n\n", 0600);
    assert_int_equal(wr_keys_read(in("k"), &keys, &err), WEIR_E_CONFIG);
    assert_int_equal(wr_keys_read(in("nowhere"), &keys, &err), WEIR_E_CONFIG);
    assert_null(keys);
}

/* ---- what is allowed ---- */

static enum wr_allow_verdict
ask(const char *patterns, const char *program, struct wr_allow_answer *out)
{
    char list[2 * PATH_MAX], path[PATH_MAX];
    const char *argv[] = {program, NULL};
    struct wr_command c = {.argv = argv, .argc = 1};
    enum wr_allow_verdict verdict;
    struct wr_allow *a;

    snprintf(path, sizeof(path), "%s:relative::%s", in("bin"), in("other"));
    if (*patterns == '@')
        snprintf(list, sizeof(list), "%s%s", folder, patterns + 1);
    else
        snprintf(list, sizeof(list), "%s", patterns);
    assert_int_equal(wr_allow_new(list, NULL, NULL, path, &a, NULL), WEIR_OK);
    verdict = wr_allow_check(a, &c, out);
    wr_allow_free(a);
    return verdict;
}

/* "@" is the folder, in patterns and programs. */
static void
assert_verdict(const char *patterns, const char *program, enum wr_allow_verdict wanted)
{
    struct wr_allow_answer out;
    enum wr_allow_verdict got = ask(patterns, *program == '@' ? in(program + 2) : program,
                                    &out);

    if (got != wanted)
        fail_msg("%s by %s: %d instead of %d: %s", program, patterns, (int)got,
                 (int)wanted, out.why);
    if (wanted != WR_ALLOW_YES)
        assert_true(out.why[0] != '\0');
}

static void
a_pattern_allows_what_really_lies_there(void **state)
{
    struct wr_allow_answer out;

    (void)state;
    assert_verdict("@/bin/*", "@/bin/tool", WR_ALLOW_YES);
    assert_verdict("@/bin/*", "tool", WR_ALLOW_YES);
    assert_verdict(" /nowhere/* ,, /bin/x", "tool", WR_ALLOW_NO);
    assert_verdict("@/link/*", "tool", WR_ALLOW_YES); /* the link is the rule's own */
    assert_verdict("@/bin/*", "@/link/tool", WR_ALLOW_YES);
    assert_verdict("@/bin/t??l", "tool", WR_ALLOW_YES);
    assert_verdict("@/bin/tool", "@/bin/tool", WR_ALLOW_YES);
    assert_verdict("*", "@/other/evil", WR_ALLOW_YES);
    assert_int_equal(ask("@/bin/*", in("link/tool"), &out), WR_ALLOW_YES);
    assert_string_equal(out.file, in("bin/tool"));
}

static void
links_dots_and_relative_names_lead_nowhere(void **state)
{
    (void)state;
    assert_verdict("@/bin/*", "@/bin/evil", WR_ALLOW_NO); /* leads out */
    assert_verdict("@/bin/*", "evil", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/bin/../other/evil", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/bin/../bin/tool", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/bin/..", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "../bin/tool", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "./tool", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "bin/tool", WR_ALLOW_NO);
    assert_verdict("*", "bin/tool", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "..", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/bin/sub/deep", WR_ALLOW_NO); /* * stops at a slash */
    assert_verdict("@/bin/*", "@/bin/.hidden", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/bin/sub", WR_ALLOW_NO);
    assert_verdict("*", "@/bin", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/other/evil", WR_ALLOW_NO);
    assert_verdict("@/bin*", "@/bin/tool", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/bin//tool", WR_ALLOW_YES);
    assert_verdict("@/bin/*", "@/bin/./tool", WR_ALLOW_YES);
    assert_verdict("@/bin/*", "@/bin/tool/", WR_ALLOW_MISSING);
}

/* One file, several programs: the name decides what it does. */
static void
another_name_for_an_allowed_file_is_refused(void **state)
{
    (void)state;
    assert_verdict("@/bin/tool", "@/other/rm", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/other/rm", WR_ALLOW_NO);
    assert_verdict("tool", "rm", WR_ALLOW_NO);
    assert_verdict("tool", "@/other/rm", WR_ALLOW_NO);
    assert_verdict("@/bin/*", "@/other/tool", WR_ALLOW_YES); /* the same name */
    assert_verdict("@/bin/*", "@/bin/alias", WR_ALLOW_YES);  /* a name of that folder */
    assert_verdict("@/bin/alias", "@/bin/alias", WR_ALLOW_YES);
    /* Under its own name such a file does everything: busybox sh. */
    assert_verdict("@/bin/alias", "@/bin/tool", WR_ALLOW_NO);
    assert_verdict("@/bin/alias", "@/other/rm", WR_ALLOW_NO);
}

static void
a_name_allows_the_program_of_the_path_alone(void **state)
{
    (void)state;
    assert_verdict("tool", "tool", WR_ALLOW_YES);
    assert_verdict("tool", "@/bin/tool", WR_ALLOW_YES);
    assert_verdict("evil", "@/other/evil", WR_ALLOW_YES); /* where bin/evil leads */
    put("other/plain", "#!/bin/sh\n", 0755);
    assert_verdict("plain", "plain", WR_ALLOW_YES); /* the first that can be run */
    assert_verdict("plain", "@/bin/plain", WR_ALLOW_NO);
}

static void
what_is_missing_or_cannot_be_run_may_come_later__R10(void **state)
{
    struct wr_allow_answer out;

    (void)state;
    assert_int_equal(ask("@/bin/*", in("bin/none"), &out), WR_ALLOW_MISSING);
    assert_true(out.missing);
    assert_non_null(strstr(out.why, "No such file"));
    assert_int_equal(ask("@/bin/*", "none", &out), WR_ALLOW_MISSING);
    assert_true(out.missing);
    assert_int_equal(ask("@/bin/*", in("bin/plain"), &out), WR_ALLOW_MISSING);
    assert_false(out.missing);
    assert_non_null(strstr(out.why, "ermission denied"));
}

static void
what_everybody_may_write_is_refused(void **state)
{
    (void)state;
    assert_verdict("@/bin/*", "@/bin/loose", WR_ALLOW_NO);
    assert_verdict("@/open/*", "@/open/anybody", WR_ALLOW_NO);
    assert_verdict("@/open/bin/*", "@/open/bin/below", WR_ALLOW_NO);
    assert_int_equal(chmod(in("open"), 01777), 0);
    assert_verdict("@/open/bin/*", "@/open/bin/below", WR_ALLOW_YES);
    assert_verdict("@/open/*", "@/open/anybody", WR_ALLOW_NO);
    assert_int_equal(chmod(in("open"), 0777), 0);
    assert_verdict("*", "@/open/anybody", WR_ALLOW_YES); /* that was said */
}

static void
variables_and_folders_have_rules_of_their_own__X14(void **state)
{
    static const struct {
        const char *patterns, *env;
        enum wr_allow_verdict wanted;
    } rows[] = {
        {NULL, "LANG=C", WR_ALLOW_YES},      {NULL, "LC_ALL=C", WR_ALLOW_YES},
        {NULL, "TZ=UTC", WR_ALLOW_YES},      {NULL, "LD_PRELOAD=/x.so", WR_ALLOW_NO},
        {NULL, "PATH=/tmp", WR_ALLOW_NO},    {"APP_*", "APP_A=1", WR_ALLOW_YES},
        {"APP_*", "LANG=C", WR_ALLOW_NO},    {"*", "LD_PRELOAD=/x.so", WR_ALLOW_YES},
        {"*", "WEIR_JOB_ID=x", WR_ALLOW_NO},
    };
    const char *argv[] = {"tool", NULL};
    struct wr_command c = {.argv = argv, .argc = 1};
    struct wr_allow_answer out;
    struct wr_allow *a;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *env[] = {rows[i].env, NULL};

        c.env = env;
        c.envc = 1;
        assert_int_equal(wr_allow_new("*", rows[i].patterns, NULL, in("bin"), &a, NULL),
                         WEIR_OK);
        if (wr_allow_check(a, &c, &out) != rows[i].wanted)
            fail_msg("%s by %s", rows[i].env, rows[i].patterns);
        wr_allow_free(a);
    }
    c.envc = 0;
    c.cwd = in("link");
    assert_int_equal(wr_allow_new("*", NULL, NULL, in("bin"), &a, NULL), WEIR_OK);
    assert_int_equal(wr_allow_check(a, &c, &out), WR_ALLOW_NO);
    assert_non_null(strstr(out.why, "allow_command_cwd"));
    wr_allow_free(a);
    assert_int_equal(wr_allow_new("*", NULL, in("b*"), in("bin"), &a, NULL), WEIR_OK);
    assert_int_equal(wr_allow_check(a, &c, &out), WR_ALLOW_YES);
    assert_string_equal(out.cwd, in("bin"));
    c.cwd = in("bin/../bin");
    assert_int_equal(wr_allow_check(a, &c, &out), WR_ALLOW_NO);
    c.cwd = "bin";
    assert_int_equal(wr_allow_check(a, &c, &out), WR_ALLOW_NO);
    c.cwd = in("nowhere");
    assert_int_equal(wr_allow_check(a, &c, &out), WR_ALLOW_MISSING);
    wr_allow_free(a);
}

static void
patterns_that_make_no_sense_are_refused(void **state)
{
    static const char *const bad[] = {"",          " , ",  "bin/tool", "./x",
                                      "/bin/../x", "../x", "ff*",      "/.."};
    struct wr_allow *a;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(wr_allow_new(bad[i], NULL, NULL, "/bin", &a, NULL),
                         WEIR_E_CONFIG);
    assert_int_equal(wr_allow_new("*", NULL, "here", "/bin", &a, NULL), WEIR_E_CONFIG);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_comes_out_as_it_went_in),
        cmocka_unit_test(random_words_come_out_as_they_went_in),
        cmocka_unit_test(
            what_is_no_command_is_refused_and_every_cut_of_one_read_without_harm),
        cmocka_unit_test(a_command_of_too_many_words_is_refused),
        cmocka_unit_test(a_signature_is_good_for_one_job_until_its_time),
        cmocka_unit_test(a_signature_is_what_openssl_says),
        cmocka_unit_test(each_key_of_the_file_verifies_and_the_first_signs),
        cmocka_unit_test(a_key_file_that_is_open_short_or_empty_is_refused),
        cmocka_unit_test(a_pattern_allows_what_really_lies_there),
        cmocka_unit_test(links_dots_and_relative_names_lead_nowhere),
        cmocka_unit_test(another_name_for_an_allowed_file_is_refused),
        cmocka_unit_test(a_name_allows_the_program_of_the_path_alone),
        cmocka_unit_test(what_is_missing_or_cannot_be_run_may_come_later__R10),
        cmocka_unit_test(what_everybody_may_write_is_refused),
        cmocka_unit_test(variables_and_folders_have_rules_of_their_own__X14),
        cmocka_unit_test(patterns_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
