#include "cli/command_line.h"

#include <string.h>

#include "command/command.h"

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%=^"

static void
add_word(struct wr_buf *out, const char *word)
{
    if (*word && word[strspn(word, PLAIN)] == '\0') {
        wr_buf_add_str(out, word);
        return;
    }
    wr_buf_add_str(out, "'");
    for (; *word; word++) {
        if (*word == '\'')
            wr_buf_add_str(out, "'\\''");
        else
            wr_buf_add(out, word, 1);
    }
    wr_buf_add_str(out, "'");
}

bool
cli_command_line(const struct weir_job_view *v, struct wr_buf *out)
{
    size_t len;
    const void *payload = weir_job_view_payload(v, &len);
    struct wr_command c;
    bool good;

    if (strcmp(weir_job_view_type(v), WR_COMMAND_TYPE) != 0)
        return false;
    good = !wr_command_read((struct wr_span){payload, len}, &c);
    for (size_t i = 0; good && i < c.argc; i++) {
        if (i > 0)
            wr_buf_add_str(out, " ");
        add_word(out, c.argv[i]);
    }
    wr_command_fini(&c);
    if (out->failed)
        cli_out_of_memory();
    return good;
}
