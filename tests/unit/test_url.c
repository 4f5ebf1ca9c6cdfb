/* Addresses of servers, and the secrets in them. */
#include "support/cmocka_all.h"

#include <string.h>

#include "redis/url.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct wr_url
must_parse(const char *text)
{
    struct weir_error err = {0};
    struct wr_url u;

    if (wr_url_parse(text, &u, &err) != WEIR_OK)
        fail_msg("%s: %s", text, err.text);
    return u;
}

static void
a_network_url_has_defaults(void **state)
{
    struct wr_url u = must_parse("redis://");

    (void)state;
    assert_false(u.is_unix);
    assert_false(u.use_tls);
    assert_string_equal(u.host, "127.0.0.1");
    assert_int_equal(u.port, 6379);
    assert_int_equal(u.db, 0);
    assert_string_equal(u.user, "");
    assert_string_equal(u.password, "");
}

static void
every_part_is_read(void **state)
{
    struct wr_url u = must_parse("valkeys://app:pw@example.org:7000/3");

    (void)state;
    assert_true(u.use_tls);
    assert_string_equal(u.host, "example.org");
    assert_int_equal(u.port, 7000);
    assert_int_equal(u.db, 3);
    assert_string_equal(u.user, "app");
    assert_string_equal(u.password, "pw");
    u = must_parse("redis://[::1]:6380/");
    assert_string_equal(u.host, "::1");
    assert_int_equal(u.port, 6380);
    u = must_parse("redis://[::1]");
    assert_int_equal(u.port, 6379);
    assert_true(must_parse("rediss://h").use_tls);
    assert_false(must_parse("valkey://h").use_tls);
}

static void
a_unix_url_has_a_path_and_perhaps_a_database(void **state)
{
    struct wr_url u = must_parse("unix:///run/a%20b/redis.sock?db=12");
    char text[200] = "unix:///";

    (void)state;
    assert_true(u.is_unix);
    assert_string_equal(u.host, "/run/a b/redis.sock");
    assert_int_equal(u.db, 12);
    memset(text + 8, 'x', 106);
    text[8 + 106] = '\0';
    assert_int_equal(strlen(must_parse(text).host), 107);
    text[8 + 106] = 'x'; /* one more byte than a socket address holds */
    text[8 + 107] = '\0';
    assert_int_equal(wr_url_parse(text, &u, NULL), WEIR_E_ARG);
}

static void
n15_passwords_may_hold_anything_when_encoded(void **state)
{
    struct wr_url u = must_parse("redis://app:p%40s%3As%2Fw%25%23%C3%A9@h:1");

    (void)state;
    assert_string_equal(u.user, "app");
    assert_string_equal(u.password, "p@s:s/w%#\xc3\xa9");
    u = must_parse("redis://app:p@s:s@h"); /* what needs no encoding */
    assert_string_equal(u.password, "p@s:s");
    assert_string_equal(u.host, "h");
    u = must_parse("redis://:only@h");
    assert_string_equal(u.user, "");
    assert_string_equal(u.password, "only");
    u = must_parse("redis://app@h");
    assert_string_equal(u.user, "app");
    assert_string_equal(u.password, "");
}

static void
bad_urls_are_refused_without_showing_the_secret(void **state)
{
    static const char *const bad[] = {
        "",
        "localhost:6379",
        "http://h",
        "redis:/h",
        "REDIS://h",
        "redis://u:sesame@h:0",
        "redis://u:sesame@h:65536",
        "redis://u:sesame@h:-1",
        "redis://u:sesame@h:1x",
        "redis://u:sesame@h:",
        "redis://u:sesame@h/x",
        "redis://u:sesame@h/-1",
        "redis://u:sesame@h/1/2",
        "redis://u:sesame@h?db=1",
        "redis://u:sesame@h#1",
        "redis://u:sesame%@h",
        "redis://u:sesame%zz@h",
        "redis://u:sesame%00@h",
        "redis://u%0a:sesame@h",
        "redis://u:sesame@h%1b",
        "redis://u:sesame@[::1",
        "redis://u:sesame@[::1]x",
        "redis://u:sesame@h:99999999999999999999",
        "unix://relative",
        "unix://",
        "unix:///p?db=",
        "unix:///p?db=x",
        "unix:///p?pw=sesame",
        "unix:///p%00q",
        "unix:///p%1bq",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct weir_error err = {0};
        struct wr_url u;

        if (wr_url_parse(bad[i], &u, &err) != WEIR_E_ARG)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(err.code, WEIR_E_ARG);
        assert_true(err.text[0] != '\0');
        assert_null(strstr(err.text, "sesame"));
    }
}

static void
what_is_too_long_is_refused(void **state)
{
    char text[1200];
    struct wr_url u;

    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text, "redis://", 8);
    text[8 + 255] = '\0';
    assert_int_equal(strlen(must_parse(text).host), 255);
    text[8 + 255] = 'x';
    text[8 + 256] = '\0';
    assert_int_equal(wr_url_parse(text, &u, NULL), WEIR_E_ARG);
    memset(text + 8, 'x', 600);
    memcpy(text + 8, ":", 1);
    memcpy(text + 8 + 513, "@h", 3);
    assert_int_equal(wr_url_parse(text, &u, NULL), WEIR_E_ARG);
    memcpy(text + 8 + 512, "@h", 3);
    assert_int_equal(strlen(must_parse(text).password), 511);
}

static void
sentinel_and_cluster_are_known_but_refused(void **state)
{
    struct weir_error err;
    struct wr_url u;

    (void)state;
    assert_int_equal(wr_url_parse("redis+sentinel://h", &u, &err), WEIR_E_CONFIG);
    assert_non_null(strstr(err.text, "not built in"));
    assert_int_equal(wr_url_parse("redis+cluster://h", &u, &err), WEIR_E_CONFIG);
}

static void
check_shown(const char *text, const char *wanted)
{
    struct wr_url u = must_parse(text);
    char shown[420];

    wr_url_show(&u, shown, sizeof(shown));
    assert_string_equal(shown, wanted);
}

static void
a_shown_url_hides_the_password(void **state)
{
    (void)state;
    check_shown("redis://app:pw@h:1/2", "redis://app:***@h:1/2");
    check_shown("redis://:pw@h", "redis://:***@h:6379/0");
    check_shown("redis://app@h", "redis://app@h:6379/0");
    check_shown("rediss://[::1]", "rediss://[::1]:6379/0");
    check_shown("unix:///p", "unix:///p");
    check_shown("unix:///p?db=2", "unix:///p?db=2");
}

static void
wiping_overwrites_the_secret(void **state)
{
    struct wr_url u = must_parse("redis://:pw@h");

    (void)state;
    wr_url_wipe(&u);
    for (size_t i = 0; i < sizeof(u.password); i++)
        assert_int_equal(u.password[i], 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_url_has_defaults),
        cmocka_unit_test(every_part_is_read),
        cmocka_unit_test(a_unix_url_has_a_path_and_perhaps_a_database),
        cmocka_unit_test(n15_passwords_may_hold_anything_when_encoded),
        cmocka_unit_test(bad_urls_are_refused_without_showing_the_secret),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(sentinel_and_cluster_are_known_but_refused),
        cmocka_unit_test(a_shown_url_hides_the_password),
        cmocka_unit_test(wiping_overwrites_the_secret),
    };

    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
