/* Control lines of commands: what is kept stays in its bounds, whatever is said. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/spawn.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
check_text(const char *text, size_t cap)
{
    if (!memchr(text, '\0', cap) || strchr(text, '\n'))
        abort();
}

static void
check(const struct wr_exec_end *end)
{
    check_text(end->progress, sizeof(end->progress));
    check_text(end->why, sizeof(end->why));
    check_text(end->tags, sizeof(end->tags));
    check_text(end->result_file, sizeof(end->result_file));
    if (end->progress[0] != '\0' && end->progress[0] != '-') {
        char *rest;
        long percent = strtol(end->progress, &rest, 10);

        if (percent < 0 || percent > 100 || *rest != ' ')
            abort();
    }
    if (end->delay_ms < -1 || (end->said == WR_SAID_NOTHING && end->delay_ms != -1))
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *at = (const char *)bytes, *end = at + len;
    struct wr_exec_end told = {.delay_ms = -1};
    struct wr_buf note = {0};

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)),
                   *stop = newline ? newline : end;
        int64_t extend_ms = 0;
        enum wr_control_word word = wr_control_line(at, (size_t)(stop - at), &told, &note,
                                                    &extend_ms);

        check(&told);
        if ((word == WR_CONTROL_EXTEND) != (extend_ms > 0))
            abort();
        if (word == WR_CONTROL_NOTE && (note.len == 0 || note.ptr[note.len - 1] != '\n'))
            abort();
        wr_buf_clear(&note);
        at = stop + 1;
    }
    wr_buf_fini(&note);
    return 0;
}
