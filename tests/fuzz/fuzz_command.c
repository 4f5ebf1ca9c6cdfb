/*
 * Reaches command/command.c: the payload of a command job.
 *
 * What can be read must be written again and read back as the same; everything else must
 * be refused. Build with clang and -DWEIR_FUZZ=ON.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
    if (!holds)
        abort();
}

static void
same_words(const char *const *a, size_t a_n, const char *const *b, size_t b_n)
{
    must(a_n == b_n);
    for (size_t i = 0; i < a_n; i++)
        must(strcmp(a[i], b[i]) == 0);
}

static void
round_trip(const struct wr_command *c)
{
    struct wr_buf written = {0}, payload = {0};
    struct wr_command again;

    must(wr_command_write(c, &written));
    must(
        wr_command_finish((struct wr_span){written.ptr, written.len}, c->sign, &payload));
    must(!wr_command_read((struct wr_span){payload.ptr, payload.len}, &again));
    same_words(c->argv, c->argc, again.argv, again.argc);
    same_words(c->env, c->envc, again.env, again.envc);
    must((c->cwd == NULL) == (again.cwd == NULL));
    must(!c->cwd || strcmp(c->cwd, again.cwd) == 0);
    must(c->until_ms == again.until_ms && strcmp(c->sign, again.sign) == 0);
    must(c->input.len == again.input.len &&
         memcmp(c->input.ptr, again.input.ptr, c->input.len) == 0);
    wr_command_fini(&again);
    wr_buf_fini(&written);
    wr_buf_fini(&payload);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wr_command c;

    if (!wr_command_read((struct wr_span){data, size}, &c)) {
        must(c.argc > 0 && c.argv[0][0] != '\0' && !c.argv[c.argc]);
        must(c.signed_bytes.len < size && c.input.len < c.signed_bytes.len);
        for (size_t i = 0; i < c.envc; i++)
            must(wr_command_is_name(c.env[i], strcspn(c.env[i], "=")));
        round_trip(&c);
    }
    wr_command_fini(&c);
    return 0;
}
