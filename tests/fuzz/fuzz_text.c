/* Numbers, durations, sizes, times and words as people and strangers write them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define NOW_MS INT64_C(1796000000123)

static void
must(bool holds)
{
    if (!holds)
        abort();
}

static void
read_values(const char *text)
{
    static const char *const names[] = {"enqueue", "work", "status", NULL};
    char shown[32];
    int64_t v, back;

    if (wr_text_int(text, -1000, 1000, &v))
        must(v >= -1000 && v <= 1000);
    if (wr_text_duration(text, &v)) {
        must(v >= 0 && v <= INT64_C(1) << 53);
        wr_text_show_duration(v, shown, 24);
    }
    if (wr_text_size(text, &v))
        must(v >= 0);
    if (wr_text_time(text, NOW_MS, &v)) {
        must(v >= 0 && v <= WR_TIME_MAX_MS);
        wr_text_show_time(v, shown);
        must(wr_text_time(shown, NOW_MS, &back) && back == v);
    }
    (void)wr_text_nearest(text, names);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct wr_span all = {len > 0 ? (const void *)bytes : "", len};
    struct wr_buf text = {0}, word = {0}, back = {0}, shown = {0};

    wr_buf_add(&text, all.ptr, len);
    read_values(text.ptr);
    (void)wr_text_word_decode(&back, all);
    wr_buf_clear(&back);
    wr_text_word_encode(&word, all);
    must(wr_text_word_decode(&back, wr_buf_span(&word)));
    must(back.len == len && memcmp(wr_buf_span(&back).ptr, all.ptr, len) == 0);
    wr_text_escape(&shown, all);
    for (size_t i = 0; i < shown.len; i++)
        must((unsigned char)shown.ptr[i] >= 0x20 && shown.ptr[i] != 0x7f);
    (void)(wr_text_is_job_id(all) || wr_text_is_queue(all) || wr_text_is_type(all));
    wr_buf_fini(&text);
    wr_buf_fini(&word);
    wr_buf_fini(&back);
    wr_buf_fini(&shown);
    return 0;
}
