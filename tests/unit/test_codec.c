/* The stored form of a job: what goes in comes out, and nothing else gets in. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/codec.h"
#include "model/retry.h"

static const struct wr_record plain = {.type = {"mail", 4},
                                       .max_retry = WR_RETRY_DEFAULT,
                                       .max_deliveries = WR_DELIVERIES_DEFAULT,
                                       .timeout_ms = WR_TIMEOUT_DEFAULT_MS,
                                       .kill_after_ms = WR_KILL_AFTER_DEFAULT_MS,
                                       .keep_progress_ms = WR_PROGRESS_WITH_JOB};

/* Random numbers with a seed: every run is the same. */
static uint64_t seed = 20;

static uint64_t
below(uint64_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % limit;
}

/* As the enqueue script puts it together. */
static void
store(const struct wr_record *r, struct wr_buf *out)
{
    struct wr_buf head = {0}, tail = {0};

    assert_true(wr_record_write(r, &head, &tail));
    wr_buf_add(out, head.ptr, head.len);
    wr_buf_add_str(out, " 1796000000000");
    wr_buf_add(out, tail.ptr, tail.len);
    wr_buf_fini(&head);
    wr_buf_fini(&tail);
}

static void
assert_span(struct wr_span got, struct wr_span wanted)
{
    assert_int_equal(got.len, wanted.len);
    if (wanted.len > 0)
        assert_memory_equal(got.ptr, wanted.ptr, wanted.len);
}

static void
assert_same(const struct wr_record *got, const struct wr_record *wanted)
{
    assert_span(got->type, wanted->type);
    assert_int_equal(got->max_retry, wanted->max_retry);
    assert_int_equal(got->max_deliveries, wanted->max_deliveries);
    assert_int_equal(got->timeout_ms, wanted->timeout_ms);
    assert_int_equal(got->kill_after_ms, wanted->kill_after_ms);
    assert_int_equal(got->keep_ms, wanted->keep_ms);
    assert_int_equal(got->expires_ms, wanted->expires_ms);
    assert_span(got->backoff, wanted->backoff);
    assert_span(got->unique, wanted->unique);
    assert_span(got->meta, wanted->meta);
    assert_span(got->payload, wanted->payload);
}

static bool
reads(const char *record, size_t len, int *version)
{
    struct wr_record r;
    /* In memory of its own, so that a sanitizer sees a read past the end. */
    char *copy = malloc(len + (len == 0));
    bool ok;

    assert_non_null(copy);
    memcpy(copy, record, len);
    ok = wr_record_read((struct wr_span){copy, len}, &r, version);
    wr_record_fini(&r);
    free(copy);
    return ok;
}

static void
defaults_are_not_written(void **unused)
{
    struct wr_buf head = {0}, tail = {0};

    (void)unused;
    assert_true(wr_record_write(&plain, &head, &tail));
    assert_string_equal(head.ptr, "1 mail");
    assert_string_equal(tail.ptr, "\n");
    wr_buf_fini(&head);
    wr_buf_fini(&tail);
}

/* These are the patterns of the scripts: a name must be exactly this. */
static void
options_have_the_names_that_the_scripts_look_for(void **unused)
{
    struct wr_record r = plain;
    struct wr_buf head = {0}, tail = {0};

    (void)unused;
    r.max_retry = 5;
    r.max_deliveries = 0;
    r.timeout_ms = 0;
    r.kill_after_ms = 1;
    r.keep_ms = 86400000;
    r.expires_ms = 60000;
    r.keep_progress_ms = 5000;
    r.backoff = wr_span_str("list:0s,1m");
    r.unique = wr_span_str("a b=c");
    r.meta = wr_span_str("meta.trace=abc meta.x=1");
    r.payload = wr_span_str("line\nline");
    assert_true(wr_record_write(&r, &head, &tail));
    assert_string_equal(tail.ptr, " retry=5 max_deliveries=0 timeout=0 kill_after=1 "
                                  "keep=86400000 expires=60000 keep_progress=5000 "
                                  "backoff=list:0s,1m "
                                  "unique=a%20b%3Dc meta.trace=abc meta.x=1\nline\nline");
    wr_buf_fini(&head);
    wr_buf_fini(&tail);
}

static void
what_is_written_is_read_back(void **unused)
{
    static const char odd[] = {'a',  ' ',  '=',  '%',    '\0',  '\n',
                               '\r', '\t', 0x7f, '\x80', '\xff'};
    static const char bytes[] = "\0\n\0payload\n";
    struct wr_record r = plain, got;
    struct wr_buf record = {0};
    int version;

    (void)unused;
    r.type = (struct wr_span){odd, sizeof(odd)};
    r.unique = (struct wr_span){odd, sizeof(odd)};
    r.backoff = wr_span_str("exp:1s,2h");
    r.max_retry = INT64_MAX;
    r.keep_ms = 1;
    r.meta = wr_span_str("meta.a=1 meta.b=%20");
    r.payload = (struct wr_span){bytes, sizeof(bytes)};
    store(&r, &record);
    assert_true(wr_record_read(wr_buf_span(&record), &got, &version));
    assert_int_equal(version, WR_FORMAT_VERSION);
    assert_int_equal(got.enqueued_at_ms, INT64_C(1796000000000));
    assert_same(&got, &r);
    assert_int_equal(strlen(got.backoff.ptr), got.backoff.len); /* also a C string */
    wr_record_fini(&got);
    wr_buf_fini(&record);
}

static struct wr_span
random_word(char *out, size_t max)
{
    size_t len = below(max);

    for (size_t i = 0; i < len; i++)
        out[i] = (char)below(256);
    return (struct wr_span){out, len};
}

static int64_t
random_number(void)
{
    static const int64_t odd[] = {0, 1, 3, 1800000, INT64_C(1) << 53, INT64_MAX};

    return below(2) ? odd[below(sizeof(odd) / sizeof(odd[0]))] : (int64_t)below(100000);
}

static void
random_jobs_survive_the_round_trip_and_give_the_same_bytes_again(void **unused)
{
    char words[4][200];

    (void)unused;
    for (int round = 0; round < 20000; round++) {
        struct wr_record r = plain, got;
        struct wr_buf first = {0}, again = {0};
        int version;

        words[0][0] = (char)below(256);
        r.type = random_word(words[0] + 1, 100);
        r.type = (struct wr_span){words[0], r.type.len + 1};
        r.max_retry = random_number();
        r.max_deliveries = random_number();
        r.timeout_ms = random_number();
        r.kill_after_ms = random_number();
        r.keep_ms = random_number();
        r.expires_ms = random_number();
        r.backoff = random_word(words[1], 30);
        r.unique = random_word(words[2], 200);
        r.payload = random_word(words[3], 200);
        store(&r, &first);
        assert_true(wr_record_read(wr_buf_span(&first), &got, &version));
        assert_same(&got, &r);
        store(&got, &again);
        assert_span(wr_buf_span(&again), wr_buf_span(&first));
        wr_record_fini(&got);
        wr_buf_fini(&first);
        wr_buf_fini(&again);
    }
}

/* No value of a user may look like an option to a script: ' keep=(%d+)' and the like are
 * looked for in the whole header line. */
static void
no_value_can_pose_as_an_option(void **unused)
{
    struct wr_record r = plain, got;
    struct wr_buf record = {0};
    const char *newline;
    int version;

    (void)unused;
    r.type = wr_span_str("x keep=1 unique=y");
    r.unique = wr_span_str("k max_deliveries=9\n1 z 0 keep=7");
    r.backoff = wr_span_str("fixed:1s expires=5");
    r.meta = wr_span_str("meta.keep=5 meta.unique=z");
    store(&r, &record);
    newline = strchr(record.ptr, '\n');
    assert_ptr_equal(newline, record.ptr + record.len - 1);
    assert_null(strstr(record.ptr, " keep="));
    assert_null(strstr(record.ptr, " max_deliveries="));
    assert_null(strstr(record.ptr, " expires="));
    assert_null(strstr(strstr(record.ptr, " unique=") + 1, " unique="));
    assert_true(wr_record_read(wr_buf_span(&record), &got, &version));
    assert_same(&got, &r);
    wr_record_fini(&got);
    wr_buf_fini(&record);
}

static void
options_of_later_versions_are_passed_over(void **unused)
{
    struct wr_record r;
    int version;

    (void)unused;
    assert_true(wr_record_read(
        wr_span_str("1 mail 5 shiny=new retries=9 keepx=1 flag keep=7 xkeep=8\npay"), &r,
        &version));
    assert_int_equal(r.keep_ms, 7);
    assert_int_equal(r.max_retry, WR_RETRY_DEFAULT);
    assert_span(r.payload, wr_span_str("pay"));
    wr_record_fini(&r);
}

static void
extra_blanks_hide_no_option(void **unused)
{
    struct wr_record r;
    int version;

    (void)unused;
    assert_true(
        wr_record_read(wr_span_str("1 mail 5  keep=7   retry=1 \n"), &r, &version));
    assert_int_equal(r.keep_ms, 7);
    assert_int_equal(r.max_retry, 1);
    wr_record_fini(&r);
}

static void
a_later_format_is_an_error_that_says_which(void **unused)
{
    int version;

    (void)unused;
    assert_false(reads("2 mail 5\nx", 10, &version));
    assert_int_equal(version, 2);
    assert_false(reads("1000000 what ever\n", 18, &version));
    assert_int_equal(version, 1000000);
}

static void
what_is_no_record_is_refused(void **unused)
{
    static const char *const records[] = {"",
                                          "\n",
                                          " \n",
                                          "1",
                                          "1\n",
                                          "1 \n",
                                          "1 mail\n",
                                          "1 mail \n",
                                          "1 mail 5",
                                          "x mail 5\n",
                                          "-1 mail 5\n",
                                          "+1 mail 5\n",
                                          " 1 mail 5\n",
                                          "1  mail 5\n",
                                          "1 mail  5\n",
                                          "1 mail x\n",
                                          "1 mail -5\n",
                                          "1 mail 5x\n",
                                          "1 mail 99999999999999999999\n",
                                          "1 mail 9223372036854775808\n",
                                          "1 ma%il 5\n",
                                          "1 mail% 5\n",
                                          "1 mail%2 5\n",
                                          "1 mail%ZZ 5\n",
                                          "1 mail 5 keep=\n",
                                          "1 mail 5 keep=x\n",
                                          "1 mail 5 keep=-1\n",
                                          "1 mail 5 keep=1e3\n",
                                          "1 mail 5 retry=9223372036854775808\n",
                                          "1 mail 5 unique=%\n",
                                          "1 mail 5 backoff=%0\n",
                                          "1 mail 5 keep=1 keep=\n",
                                          "1000001 mail 5\n",
                                          "99999999999999999999999999 mail 5\n",
                                          "0x1 mail 5\n",
                                          "1.0 mail 5\n"};
    int version;

    (void)unused;
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        if (reads(records[i], strlen(records[i]), &version))
            fail_msg("was read: %s", records[i]);
    }
    assert_false(reads("1 mail 5\0 \n", 11, &version));
    assert_false(reads("1 mail 5 keep=5\0x\n", 18, &version));
}

static void
a_refused_record_leaves_its_payload_to_show(void **unused)
{
    struct wr_record r;
    int version;

    (void)unused;
    assert_false(
        wr_record_read(wr_span_str("1 mail 5 keep=x\nthe payload"), &r, &version));
    assert_int_equal(version, 1);
    assert_span(r.payload, wr_span_str("the payload"));
    assert_null(r.text.ptr);
    wr_record_fini(&r);
}

static void
a_stub_says_that_the_body_is_lost(void **unused)
{
    struct wr_record r;
    int version;

    (void)unused;
    assert_true(wr_record_read(wr_span_str("1 - 5 lost_body=1\n"), &r, &version));
    assert_true(r.lost_body);
    wr_record_fini(&r);
}

static void
changed_bytes_are_read_or_refused_but_never_misread_past_the_end(void **unused)
{
    static const char good[] = "1 ma%20il 1796000000000 retry=5 keep=8 unique=a%3Db "
                               "meta.t=%41bc x=y meta.u= backoff=fixed:1s\npay\nload";
    size_t read = 0;
    int version;

    (void)unused;
    for (int round = 0; round < 50000; round++) {
        char record[sizeof(good)];
        size_t len = sizeof(good) - 1 - (below(4) == 0 ? below(sizeof(good)) : 0);

        memcpy(record, good, sizeof(good));
        for (size_t n = below(4); n > 0; n--)
            record[below(sizeof(good) - 1)] = "% =\n\0019m\0"[below(8)];
        read += reads(record, len, &version);
    }
    assert_in_range(read, 1000, 49000); /* both happen */
}

static void
meta_fields_are_found_by_name(void **unused)
{
    struct wr_buf value = {0};
    struct wr_record r;
    int version;

    (void)unused;
    assert_true(wr_record_read(
        wr_span_str(
            "1 mail 5 meta.trace=a%20b meta.tracer=c meta.e= meta.odd%20name=d\n"),
        &r, &version));
    assert_true(wr_record_meta(&r, "trace", &value));
    assert_string_equal(value.ptr, "a b");
    wr_buf_clear(&value);
    assert_true(wr_record_meta(&r, "odd name", &value));
    assert_string_equal(value.ptr, "d");
    wr_buf_clear(&value);
    assert_true(wr_record_meta(&r, "e", &value));
    assert_int_equal(value.len, 0);
    assert_false(wr_record_meta(&r, "trac", &value));
    assert_false(wr_record_meta(&r, "", &value));
    assert_false(wr_record_meta(&r, "mail", &value));
    wr_buf_fini(&value);
    wr_record_fini(&r);
}

static void
options_between_metas_are_not_taken_for_metas(void **unused)
{
    struct wr_record r, again;
    struct wr_buf record = {0};
    int version;

    (void)unused;
    assert_true(wr_record_read(
        wr_span_str("1 mail 5 meta.a=1 unique=u meta.b=2  keep=3 meta.c=3\n"), &r,
        &version));
    assert_span(r.meta, wr_span_str("meta.a=1 meta.b=2 meta.c=3"));
    store(&r, &record);
    assert_true(wr_record_read(wr_buf_span(&record), &again, &version));
    assert_same(&again, &r);
    wr_record_fini(&again);
    wr_record_fini(&r);
    wr_buf_fini(&record);
}

static void
what_no_reader_would_take_is_not_written(void **unused)
{
    struct wr_buf head = {0}, tail = {0};
    struct wr_record r = plain;
    char *big = calloc(1, WR_HEADER_MAX);

    (void)unused;
    assert_non_null(big);
    r.keep_ms = -1;
    assert_false(wr_record_write(&r, &head, &tail));
    r = plain;
    r.type.len = 0;
    assert_false(wr_record_write(&r, &head, &tail));
    r = plain;
    memset(big, 'u', WR_HEADER_MAX);
    r.unique = (struct wr_span){big, WR_HEADER_MAX};
    assert_false(wr_record_write(&r, &head, &tail));
    free(big);
    wr_buf_fini(&head);
    wr_buf_fini(&tail);
}

static void
the_longest_header_still_fits_with_its_time(void **unused)
{
    static char key[WR_HEADER_MAX];
    struct wr_record r = plain;
    size_t longest = 0;

    (void)unused;
    memset(key, 'u', sizeof(key));
    for (size_t len = WR_HEADER_MAX - 100; len < WR_HEADER_MAX; len++) {
        struct wr_buf head = {0}, tail = {0};

        r.unique = (struct wr_span){key, len};
        if (wr_record_write(&r, &head, &tail))
            longest = head.len + strlen(" 253402300799999") + tail.len - 1;
        wr_buf_fini(&head);
        wr_buf_fini(&tail);
    }
    assert_in_range(longest, WR_HEADER_MAX - 10, WR_HEADER_MAX);
}

/* ---- state ---- */

static void
a_state_is_read_field_by_field(void **unused)
{
    struct wr_job_state s;

    (void)unused;
    assert_true(wr_job_state_read(
        wr_span_str("17 host.4.ab c key%20x 1 2 3 4 5 6 7 8|50 half|way"), &s));
    assert_string_equal(s.token, "17");
    assert_string_equal(s.worker, "host.4.ab");
    assert_true(s.cancelled);
    assert_int_equal(s.keep_ms, 1);
    assert_int_equal(s.deliveries, 2);
    assert_int_equal(s.attempts, 3);
    assert_int_equal(s.lost, 4);
    assert_int_equal(s.interrupted, 5);
    assert_int_equal(s.snoozes, 6);
    assert_int_equal(s.started_at_ms, 7);
    assert_int_equal(s.max_deliveries, 8);
    assert_span(s.progress, wr_span_str("50 half|way"));
    assert_true(wr_job_state_read(wr_span_str("17 - - - 1 2 3 4 5 6 7 8|"), &s));
    assert_false(s.cancelled);
    assert_int_equal(s.progress.len, 0);
    assert_true(
        wr_job_state_read(wr_span_str("1796000000000-5.2.3 w - - 1 2 3 4 5 6 7 8|"), &s));
    assert_string_equal(s.token, "1796000000000-5.2.3"); /* of the stream engine */
}

static void
what_is_no_state_is_refused(void **unused)
{
    static const char *const states[] = {"",
                                         "|",
                                         "1|",
                                         "17 w - - 1 2 3 4 5 6 7|",
                                         "17 w - - 1 2 3 4 5 6 7 8",
                                         "17 w - - 1 2 3 4 5 6 7 x|",
                                         "17 w - - 1 2 3 4 5 6 7 -8|",
                                         "17  w - - 1 2 3 4 5 6 7 8|",
                                         "x w - - 1 2 3 4 5 6 7 8|",
                                         "17 w - - 1 2 3 4 5 6 7 8 9|",
                                         "17..x w - - 1 2 3 4 5 6 7 8|",
                                         "-17 w - - 1 2 3 4 5 6 7 8|",
                                         "12345678901234567890123456789012345678901234567"
                                         "89012345678901234 w - - 1 2 3 4 5 "
                                         "6 7 8|",
                                         "17 w - - 99999999999999999999 2 3 4 5 6 7 8|"};
    char long_worker[200];
    struct wr_job_state s;

    (void)unused;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        if (wr_job_state_read(wr_span_str(states[i]), &s))
            fail_msg("was read: %s", states[i]);
    }
    snprintf(long_worker, sizeof(long_worker), "17 %0100d - - 1 2 3 4 5 6 7 8|", 7);
    assert_false(wr_job_state_read(wr_span_str(long_worker), &s));
    snprintf(long_worker, sizeof(long_worker), "17 %099d - - 1 2 3 4 5 6 7 8|", 7);
    assert_true(wr_job_state_read(wr_span_str(long_worker), &s));
    assert_false(wr_job_state_read((struct wr_span){NULL, 0}, &s));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_not_written),
        cmocka_unit_test(options_have_the_names_that_the_scripts_look_for),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(
            random_jobs_survive_the_round_trip_and_give_the_same_bytes_again),
        cmocka_unit_test(no_value_can_pose_as_an_option),
        cmocka_unit_test(options_of_later_versions_are_passed_over),
        cmocka_unit_test(extra_blanks_hide_no_option),
        cmocka_unit_test(a_later_format_is_an_error_that_says_which),
        cmocka_unit_test(what_is_no_record_is_refused),
        cmocka_unit_test(a_refused_record_leaves_its_payload_to_show),
        cmocka_unit_test(a_stub_says_that_the_body_is_lost),
        cmocka_unit_test(
            changed_bytes_are_read_or_refused_but_never_misread_past_the_end),
        cmocka_unit_test(meta_fields_are_found_by_name),
        cmocka_unit_test(options_between_metas_are_not_taken_for_metas),
        cmocka_unit_test(what_no_reader_would_take_is_not_written),
        cmocka_unit_test(the_longest_header_still_fits_with_its_time),
        cmocka_unit_test(a_state_is_read_field_by_field),
        cmocka_unit_test(what_is_no_state_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
