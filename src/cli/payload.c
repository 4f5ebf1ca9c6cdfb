#include "cli/payload.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "cli/json.h"
#include "cli/out.h"

#define PAYLOAD_MAX_BYTES (256 * 1024 * 1024) /* no queue can be set to take more */

enum weir_err
cli_payload_stream(FILE *f, const char *name, struct wr_buf *out, struct weir_error *err)
{
    size_t n = 1;

    while (n > 0 && out->len <= PAYLOAD_MAX_BYTES) {
        char *room = wr_buf_room(out, 65536);

        if (!room)
            cli_out_of_memory();
        n = fread(room, 1, 65536, f);
        out->len += n;
    }
    if (ferror(f))
        return wr_fail(err, WEIR_E_IO, errno, "%.200s", name);
    if (out->len > PAYLOAD_MAX_BYTES)
        return wr_fail(err, WEIR_E_TOO_BIG, 0, "%.200s: payload over 256 MiB", name);
    return WEIR_OK;
}

enum weir_err
cli_payload_file(const char *path, struct wr_buf *out, struct weir_error *err)
{
    enum weir_err rc;
    FILE *f;

    if (strcmp(path, "-") == 0)
        return cli_payload_stream(stdin, "standard input", out, err);
    f = fopen(path, "re");
    if (!f)
        return wr_fail(err, WEIR_E_IO, errno, "file \"%.200s\"", path);
    rc = cli_payload_stream(f, path, out, err);
    fclose(f);
    return rc;
}

enum weir_err
cli_payload_read(const char *arg, struct wr_buf *out, struct weir_error *err)
{
    if (!arg)
        return WEIR_OK;
    if (strcmp(arg, "-") == 0)
        return cli_payload_file(arg, out, err);
    if (arg[0] == '@' && arg[1] != '@')
        return cli_payload_file(strcmp(arg, "@-") == 0 ? "./-" : arg + 1, out, err);
    wr_buf_add_str(out, arg[0] == '@' ? arg + 1 : arg);
    return WEIR_OK;
}

void
cli_job_queued(struct cli *cli, const struct weir_job *job, const struct weir_enqueued *a)
{
    if (cli_out_is_json(cli)) {
        struct cli_json *json = cli_json_new();

        cli_json_text(json, "id", a->id.str);
        cli_json_text(json, "queue", job->queue);
        cli_json_text(json, "type", job->type);
        cli_json_bool(json, "existed", a->existed);
        cli_json_bool(json, "replaced", a->replaced);
        cli_json_print(json, cli->out);
        cli_json_free(json);
        return;
    }
    if (!cli_out_is_table(cli)) {
        cli_print_id(cli, a->id.str);
        fputc('\n', cli->out);
        return;
    }
    fputs(a->existed    ? "Already there: "
          : a->replaced ? "Replaced "
                        : "Queued ",
          cli->out);
    cli_print_id(cli, a->id.str);
    fputs("  ", cli->out);
    cli_print_text(cli, job->type);
    fputs(" → ", cli->out);
    cli_print_text(cli, job->queue);
    fputs("   (follow: weir job wait ", cli->out);
    cli_print_id(cli, a->id.str);
    fputs(")\n", cli->out);
}
