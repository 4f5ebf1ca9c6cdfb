#include "cli/run_follow.h"

#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define END_MS 2000 /* the last lines come within this, or are lost to a server away */
#define LOOK_MS 20

static void
put(const struct cli_follow *f, const char *ptr, size_t len)
{
    struct wr_buf shown = {0};

    if (!f->cli->err_is_tty) {
        fwrite(ptr, 1, len, stderr);
        return;
    }
    for (size_t i = 0, from = 0; i <= len; i++) { /* tabs and newlines are harmless */
        if (i < len && ptr[i] != '\t' && ptr[i] != '\n')
            continue;
        wr_text_escape(&shown, (struct wr_span){ptr + from, i - from});
        if (i < len)
            wr_buf_add(&shown, ptr + i, 1);
        from = i + 1;
    }
    fwrite(wr_buf_span(&shown).ptr, 1, shown.len, stderr);
    wr_buf_fini(&shown);
}

static bool
each(const struct weir_output_line *line, void *context)
{
    struct cli_follow *f = context;

    if (line->left_out > 0)
        fprintf(stderr, "%s[... %lld bytes left out ...]\n", f->in_line ? "\n" : "",
                (long long)line->left_out);
    else
        put(f, line->ptr, line->len);
    f->in_line = line->left_out == 0 && line->part;
    return true;
}

/* Of one run. */
static bool
read_run(struct cli_follow *f)
{
    struct weir_error err;

    return weir_job_output(f->cli->client, f->queue, f->id, &f->place, each, f, &err) ==
           WEIR_OK;
}

static void
end_line(struct cli_follow *f)
{
    if (f->in_line)
        fputc('\n', stderr);
    f->in_line = false;
}

void
cli_follow_read(struct cli_follow *f)
{
    if (f->place.run == 0)
        f->place.run = 1;
    while (read_run(f) && !f->place.open && f->place.next_run > 0) {
        end_line(f);
        f->place.run = f->place.next_run;
        f->place.offset = f->place.bytes = f->place.lines = 0;
    }
}

void
cli_follow_end(struct cli_follow *f, bool printed)
{
    int64_t deadline = wr_clock_ms() + END_MS;

    cli_follow_read(f);
    while ((f->place.open || (printed && !f->place.kept)) && wr_clock_ms() < deadline) {
        poll(NULL, 0, LOOK_MS);
        cli_follow_read(f);
    }
    end_line(f);
}
