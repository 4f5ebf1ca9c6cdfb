/* The door to jansson, and base64. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/base64.h"
#include "base/rand.h"
#include "json/json.h"

static struct wr_buf buf;

static const char *
quoted(const char *text, size_t len)
{
    wr_buf_clear(&buf);
    assert_true(wr_json_quote(&buf, (struct wr_span){text, len}));
    return buf.ptr;
}

static void
a_quoted_string_is_one_line_of_ascii_or_utf8(void **state)
{
    (void)state;
    assert_string_equal(quoted("", 0), "\"\"");
    assert_string_equal(quoted("a\"b\\c\n\0d", 8), "\"a\\\"b\\\\c\\n\\u0000d\"");
    assert_string_equal(quoted("\xc3\xa9", 2), "\"\xc3\xa9\"");
    wr_buf_clear(&buf);
    assert_false(wr_json_quote(&buf, wr_span_str("\xff")));
    assert_int_equal(buf.len, 0);
}

static enum weir_err
only_string(const char *key, const struct wr_json_value *v, void *context,
            struct weir_error *err)
{
    (void)err;
    assert_string_equal(key, "k");
    assert_int_equal(v->kind, WR_JSON_STRING);
    *(struct wr_span *)context = (struct wr_span){v->text, v->len};
    return WEIR_OK;
}

static void
any_utf8_text_comes_back_as_it_was(void **state)
{
    static const char text[] = "\x01\x1f \"\\/ \xe2\x82\xac \xf0\x9f\x90\x9f \x7f";
    struct wr_span back = {0};
    struct wr_json *json;

    (void)state;
    wr_buf_clear(&buf);
    wr_buf_add_str(&buf, "{\"k\":");
    assert_true(wr_json_quote(&buf, (struct wr_span){text, sizeof(text)}));
    wr_buf_add_str(&buf, "}");
    assert_int_equal(wr_json_read(buf.ptr, buf.len, &json, NULL), WEIR_OK);
    assert_int_equal(wr_json_each(json, only_string, &back, NULL), WEIR_OK);
    assert_int_equal(back.len, sizeof(text));
    assert_memory_equal(back.ptr, text, sizeof(text));
    wr_json_free(json);
}

static void
what_is_no_object_is_refused_in_one_line(void **state)
{
    static const char *const bad[] = {
        "", "7", "[]", "{", "{}x", "{\"a\"}", "{\"a\":1,\"a\":2}", "nope"};
    struct weir_error err = {0};
    struct wr_json *json;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(wr_json_read(bad[i], strlen(bad[i]), &json, &err), WEIR_E_DATA);
        assert_null(json);
        assert_null(strchr(err.text, '\n'));
    }
}

static void
base64_brings_any_bytes_back(void **state)
{
    struct wr_buf text = {0}, back = {0};
    unsigned char bytes[67];

    (void)state;
    wr_rand_bytes(bytes, sizeof(bytes));
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        wr_buf_clear(&text);
        wr_buf_clear(&back);
        wr_base64_write(&text, (struct wr_span){(const char *)bytes, n});
        assert_int_equal(text.len, (n + 2) / 3 * 4);
        assert_true(wr_base64_read(&back, wr_buf_span(&text)));
        assert_int_equal(back.len, n);
        assert_memory_equal(wr_buf_span(&back).ptr, bytes, n);
    }
    wr_buf_fini(&text);
    wr_buf_fini(&back);
}

static void
what_is_not_base64_is_refused(void **state)
{
    static const char *const bad[] = {"a",    "ab",   "abc",  "ab=c",
                                      "a===", "ab!d", "====", "ab\nd"};
    struct wr_buf back = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(wr_base64_read(&back, wr_span_str(bad[i])));
        assert_int_equal(back.len, 0);
    }
    assert_true(wr_base64_read(&back, wr_span_str("Zm9vYg==")));
    assert_string_equal(back.ptr, "foob");
    wr_buf_fini(&back);
}

static int
fini(void **state)
{
    (void)state;
    wr_buf_fini(&buf);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quoted_string_is_one_line_of_ascii_or_utf8),
        cmocka_unit_test(any_utf8_text_comes_back_as_it_was),
        cmocka_unit_test(what_is_no_object_is_refused_in_one_line),
        cmocka_unit_test(base64_brings_any_bytes_back),
        cmocka_unit_test(what_is_not_base64_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, fini);
}
