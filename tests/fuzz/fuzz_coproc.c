/* Lines of co-processes: what one writes, and what a job with any bytes is written as. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/coproc_line.h"
#include "worker/handler.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
must(bool holds)
{
    if (!holds)
        abort();
}

static void
read_line(const char *text, size_t len)
{
    static struct wr_coproc_line line;

    must(wr_coproc_read(&line, text, len));
    must(line.word != WR_COPROC_ANSWER || line.call >= 0);
    must(line.delay_ms >= -1 && line.percent >= -1 && line.percent <= 100);
    must(line.word != WR_COPROC_GARBAGE || line.why[0] != '\0');
}

/* One line, an object, whatever is in the job. */
static void
write_job(const char *text, size_t len)
{
    struct weir_delivery d = {.queue = "q", .id = text, .type = "t"};
    struct wr_buf out = {0};
    struct wr_json *json;

    d.record.payload = (struct wr_span){text, len};
    d.record.meta = (struct wr_span){text, strcspn(text, "\n")};
    wr_coproc_job(&out, &d, 1);
    must(!out.failed && out.len > 0);
    must((const char *)memchr(out.ptr, '\n', out.len) == out.ptr + out.len - 1);
    /* A meta field may be there twice by a hostile record; else it must be read. */
    if (wr_json_read(out.ptr, out.len, &json, NULL) == WEIR_OK)
        wr_json_free(json);
    else
        must(strstr(text, "meta.") || memchr(text, '=', len));
    wr_buf_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1);

    if (!text)
        return 0;
    memcpy(text, bytes, len);
    text[len] = '\0';
    read_line(text, len);
    write_job(text, len);
    free(text);
    return 0;
}
