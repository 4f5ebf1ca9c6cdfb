/* What an error reply means: each row with the text that servers really send. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "redis/conn.h"
#include "redis/resp.h"

#define SUFFIX " script: 8af3c1, on @user_script:1."

static enum weir_err
meaning_of(const char *text, struct weir_error *err)
{
    struct wr_resp *r = wr_resp_new(4096);
    struct wr_reply *reply;
    enum weir_err rc;

    assert_non_null(r);
    assert_true(wr_resp_feed(r, "-", 1) && wr_resp_feed(r, text, strlen(text)) &&
                wr_resp_feed(r, "\r\n", 2));
    assert_int_equal(wr_resp_next(r, &reply), WR_RESP_READY);
    rc = wr_reply_error(reply, err);
    wr_reply_free(reply);
    wr_resp_free(r);
    return rc;
}

/* clang-format off */
static const struct {
    const char *text;
    enum weir_err code;
    const char *says; /* a part of what people read */
} rows[] = {
    {"NOSCRIPT No matching script. Please use EVAL.", WEIR_E_BUG, "script"},
    {"LOADING Redis is loading the dataset in memory", WEIR_E_LOADING, "loading"},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", WEIR_E_LOADING, "busy"},
    {"TRYAGAIN Multiple keys request during rehashing of slot", WEIR_E_LOADING, "cluster"},
    {"CLUSTERDOWN Hash slot not served", WEIR_E_LOADING, "cluster"},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", WEIR_E_LOADING, "primary"},
    {"ERR max number of clients reached", WEIR_E_LOADING, "maxclients"},
    {"ERR Script attempted to access a non local key in a cluster node" SUFFIX, WEIR_E_LOADING, "cluster"},
    {"OOM command not allowed when used memory > 'maxmemory'.", WEIR_E_FULL, "maxmemory"},
    {"OOM command not allowed when used memory > 'maxmemory'." SUFFIX, WEIR_E_FULL, "maxmemory"},
    {"MISCONF Errors writing to the AOF file: No space left on device", WEIR_E_REFUSED, "No space left"},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", WEIR_E_REFUSED, "disk"},
    {"NOREPLICAS Not enough good replicas to write.", WEIR_E_REFUSED, "replicas"},
    {"READONLY You can't write against a read only replica.", WEIR_E_READONLY, "primary"},
    {"READONLY You can't write against a read only replica." SUFFIX, WEIR_E_READONLY, "primary"},
    {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)", WEIR_E_READONLY, "replica"},
    {"NOAUTH Authentication required.", WEIR_E_DENIED, "password"},
    {"WRONGPASS invalid username-password pair or user is disabled.", WEIR_E_DENIED, "wrong user or password"},
    {"ERR invalid password", WEIR_E_DENIED, "wrong password"},
    {"ERR AUTH <password> called without any password configured for the default user.", WEIR_E_DENIED, "wants none"},
    {"ERR Client sent AUTH, but no password is set", WEIR_E_DENIED, "wants none"},
    {"DENIED Redis is running in protected mode because protected mode is enabled", WEIR_E_DENIED, "protected mode"},
    {"NOPERM this user has no permissions to run the 'evalsha' command", WEIR_E_DENIED, "'evalsha'"},
    {"NOPERM User app has no permissions to run the 'script|load' command", WEIR_E_DENIED, "'script|load'"},
    {"NOPERM this user has no permissions to access one of the keys used as arguments", WEIR_E_DENIED, "keys"},
    {"ERR The user executing the script can't run this command or subcommand" SUFFIX, WEIR_E_DENIED, "right"},
    {"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments" SUFFIX, WEIR_E_DENIED, "keys"},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", WEIR_E_CORRUPT, "something else"},
    {"ERR WRONGTYPE Operation against a key" SUFFIX, WEIR_E_CORRUPT, "something else"},
    {"ERR user_script:7: attempt to index a nil value" SUFFIX, WEIR_E_CORRUPT, "attempt to index"},
    {"ERR Error running user_script: 8af3c1", WEIR_E_CORRUPT, "script"},
    {"ERR Error compiling script (new function): user_script:1: '=' expected", WEIR_E_SERVER, "7.0"},
    {"MOVED 3999 127.0.0.1:6381", WEIR_E_SERVER, "Cluster"},
    {"ERR DB index is out of range", WEIR_E_ARG, "database"},
    {"ERR unknown command 'EVALSHA_RO', with args beginning with: 'x' ", WEIR_E_SERVER, "EVALSHA_RO"},
    {"FANCY a code of tomorrow", WEIR_E_SERVER, "FANCY a code of tomorrow"},
    {"", WEIR_E_SERVER, "the server answered"},
};
/* clang-format on */

static void
every_known_error_has_a_code_and_says_what_to_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct weir_error err = {0};
        enum weir_err rc = meaning_of(rows[i].text, &err);

        if (rc != rows[i].code || err.code != rc || !strstr(err.text, rows[i].says))
            fail_msg("\"%s\": %s, %s", rows[i].text, weir_err_name(rc), err.text);
        assert_int_equal(meaning_of(rows[i].text, NULL), rows[i].code);
    }
}

static void
a_code_counts_only_at_the_start(void **state)
{
    (void)state;
    assert_int_equal(meaning_of("ERR value said OOM and READONLY", NULL), WEIR_E_SERVER);
    assert_int_equal(meaning_of("BUSYGROUP Consumer Group name already exists", NULL),
                     WEIR_E_SERVER);
}

static void
words_of_the_command_are_not_repeated(void **state)
{
    struct weir_error err;

    (void)state;
    assert_int_equal(
        meaning_of("ERR unknown command `AUTH`, with args beginning with: `sesame`, ",
                   &err),
        WEIR_E_SERVER);
    assert_null(strstr(err.text, "sesame"));
    assert_non_null(strstr(err.text, "AUTH"));
}

static void
the_servers_words_are_escaped_and_cut(void **state)
{
    struct weir_error err;
    char text[1001];

    (void)state;
    memset(text, 'x', 1000);
    text[1000] = '\0';
    assert_int_equal(meaning_of(text, &err), WEIR_E_SERVER);
    assert_true(strlen(err.text) < 200);
    meaning_of("ERR \x1b[2J", &err);
    assert_null(strchr(err.text, '\x1b'));
    assert_non_null(strstr(err.text, "\\x1b[2J"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_known_error_has_a_code_and_says_what_to_do),
        cmocka_unit_test(a_code_counts_only_at_the_start),
        cmocka_unit_test(words_of_the_command_are_not_repeated),
        cmocka_unit_test(the_servers_words_are_escaped_and_cut),
    };

    return cmocka_run_group_tests_name("conn_error", tests, NULL, NULL);
}
