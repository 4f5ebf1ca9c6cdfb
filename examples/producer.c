/*
 * Stores a job per argument and waits for the results:
 *
 *     producer ann bob
 *
 * The server is WEIR_URL's. Run worker.c beside it.
 */
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

static int
fail(const char *what, const struct weir_error *err)
{
    fprintf(stderr, "producer: %s: %s [%s]\n", what, err->text, weir_err_name(err->code));
    return weir_err_exit_status(err->code);
}

static int
greet(struct weir_client *client, const char *name)
{
    struct weir_error err = {0};
    struct weir_job job = {
        WEIR_JOB_INIT,   .queue = "greetings",        .type = "greet",
        .payload = name, .payload_len = strlen(name), .keep_result_ms = 60000};
    struct weir_enqueued stored;
    struct weir_job_view *view;
    const char *result;
    size_t len;

    if (weir_job_enqueue(client, &job, &stored, &err) != WEIR_OK)
        return fail("enqueue", &err);
    if (weir_result_wait(client, "greetings", stored.id.str, 30000, &view, &err) !=
        WEIR_OK)
        return fail("wait", &err);
    result = weir_job_view_result(view, &len);
    printf("%s: %.*s\n", stored.id.str, (int)len, result);
    weir_job_view_free(view);
    return 0;
}

int
main(int argc, char **argv)
{
    struct weir_client_options options = {WEIR_CLIENT_OPTIONS_INIT};
    struct weir_client *client;
    struct weir_error err = {0};
    int status = 0;

    if (weir_client_open(&options, &client, &err) != WEIR_OK)
        return fail("open", &err);
    for (int i = 1; i < argc && status == 0; i++)
        status = greet(client, argv[i]);
    weir_client_close(client);
    return status;
}
