/*
 * A worker with settings, and the program that gives it work:
 *
 *     downloads work             runs jobs until it is told to stop
 *     downloads http://... ...   stores a job per page, waits, prints how long each is
 *
 * The server is WEIR_URL's.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/weir.h>
#include <weir/worker.h>

/* ---- what the jobs share: opened once in each child, used by all of its jobs ---- */

struct session {
    char agent[64];
    int timeout_s;
};

static enum weir_err
startup(void **context, struct weir_error *err)
{
    struct session *session = calloc(1, sizeof(*session));

    if (!session) {
        snprintf(err->text, sizeof(err->text), "no memory for the session");
        return WEIR_E_NO_MEMORY;
    }
    snprintf(session->agent, sizeof(session->agent), "weir-example/%d", (int)getpid());
    session->timeout_s = 10;
    *context = session;
    return WEIR_OK;
}

static void
shutdown_session(void *context)
{
    free(context);
}

/* A connected socket; -1: none. */
static int
dial(const struct session *session, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *at;
    struct timeval limit = {.tv_sec = session->timeout_s};
    int fd = -1;

    if (getaddrinfo(host, port, &hints, &list) != 0)
        return -1;
    for (at = list; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

/* How many bytes the page has, -1: it does not come. */
static long
get(const struct session *session, struct weir_delivery *delivery, const char *host,
    const char *port, const char *path)
{
    char text[4096];
    int fd = dial(session, host, port);
    int n = snprintf(text, sizeof(text),
                     "GET /%s HTTP/1.0\r\nHost: %s\r\nUser-Agent: %s\r\n\r\n", path, host,
                     session->agent);
    long total = 0, head = -1;
    ssize_t got;

    if (fd < 0)
        return -1;
    if (n >= (int)sizeof(text) || send(fd, text, (size_t)n, MSG_NOSIGNAL) != n) {
        close(fd);
        return -1;
    }
    while ((got = recv(fd, text, sizeof(text) - 1, 0)) > 0) {
        char *body;

        text[got] = '\0';
        body = head < 0 ? strstr(text, "\r\n\r\n") : NULL;
        if (total == 0 && (got < 12 || strncmp(text + 9, "200", 3) != 0))
            break;
        if (body)
            head = total + (body + 4 - text);
        total += got;
        weir_delivery_progress(delivery, -1, "reading");
        if (weir_delivery_should_stop(delivery))
            break;
    }
    close(fd);
    return got == 0 && head >= 0 ? total - head : -1;
}

/* ---- the function that jobs of type download_content run ---- */

static enum weir_outcome
download_content(struct weir_delivery *delivery, void *unused)
{
    const struct session *session = weir_delivery_context(delivery);
    char url[1024], host[256], port[8] = "80", path[1024] = "", text[32];
    size_t len;
    const char *payload = weir_delivery_payload(delivery, &len);
    long size;

    (void)unused;
    snprintf(url, sizeof(url), "%.*s", (int)(len < 1023 ? len : 1023), payload);
    if (sscanf(url, "http://%255[^:/]:%7[0-9]/%1023[!-~]", host, port, path) < 2 &&
        sscanf(url, "http://%255[^:/]/%1023[!-~]", host, path) < 1) {
        weir_delivery_set_error(delivery, "no address of a page: %.100s", url);
        return WEIR_PERMANENT; /* trying again would not help */
    }
    size = get(session, delivery, host, port, path);
    if (size < 0) {
        weir_delivery_set_error(delivery, "%.200s does not come", url);
        return WEIR_RETRY; /* later, by the job's policy */
    }
    snprintf(text, sizeof(text), "%ld", size);
    if (weir_delivery_set_result(delivery, text, strlen(text)) != WEIR_OK)
        return WEIR_RETRY;
    return WEIR_DONE;
}

/* ---- around each job ---- */

static void
on_job_end(struct weir_delivery *delivery, enum weir_outcome outcome, void *context)
{
    (void)context;
    weir_delivery_log(delivery, "%s, attempt %lld: %s", weir_delivery_id(delivery),
                      (long long)weir_delivery_attempt(delivery),
                      outcome == WEIR_DONE ? "done" : weir_delivery_error(delivery));
}

/* ---- the worker and its settings ---- */

static enum weir_err
work(struct weir_error *err)
{
    static const char home[] = "http://www.example.org/";
    const char *queues[] = {"downloads", NULL};
    struct weir_worker_options options = {WEIR_WORKER_OPTIONS_INIT, .queues = queues,
                                          .concurrency = 10, .job_timeout_ms = 60000,
                                          .keep_result_ms = 3600000};
    struct weir_job job = {WEIR_JOB_INIT, .type = "download_content", .payload = home,
                           .payload_len = sizeof(home) - 1};
    struct weir_cron nightly = {WEIR_CRON_INIT, .name = "nightly",
                                .schedule = "0 3 * * *", .job = &job};
    struct weir_worker *worker;
    enum weir_err rc = weir_worker_new(&options, &worker, err);

    if (rc != WEIR_OK)
        return rc;
    weir_worker_on_startup(worker, startup);
    weir_worker_on_shutdown(worker, shutdown_session);
    weir_worker_on_job_end(worker, on_job_end);
    rc = weir_worker_handle(worker, "download_content", download_content, NULL, err);
    if (rc == WEIR_OK)
        rc = weir_worker_cron(worker, &nightly, err);
    if (rc == WEIR_OK)
        rc = weir_worker_run(worker, err);
    weir_worker_free(worker);
    return rc;
}

/* ---- the program that wants pages ---- */

static enum weir_err
download(struct weir_client *client, const char *url, struct weir_error *err)
{
    struct weir_job job = {
        WEIR_JOB_INIT,  .queue = "downloads",       .type = "download_content",
        .payload = url, .payload_len = strlen(url), .max_retry = WEIR_NONE};
    struct weir_job_view *view = NULL;
    enum weir_err rc = weir_call(client, &job, 30000, &view, err);
    size_t len;

    if (rc == WEIR_OK) {
        const char *result = weir_job_view_result(view, &len);

        printf("%s: %.*s bytes\n", url, (int)len, result);
    } else if (rc == WEIR_E_JOB_FAILED) {
        const struct weir_attempt *runs = weir_job_view_attempts(view, &len);

        fprintf(stderr, "%s: %s\n", url, len > 0 ? runs[len - 1].text : "no attempt");
    }
    weir_job_view_free(view);
    return rc;
}

int
main(int argc, char **argv)
{
    struct weir_client_options options = {WEIR_CLIENT_OPTIONS_INIT};
    struct weir_client *client = NULL;
    struct weir_error err = {0};
    enum weir_err rc;

    if (argc == 2 && strcmp(argv[1], "work") == 0) {
        rc = work(&err);
    } else {
        rc = weir_client_open(&options, &client, &err);
        for (int i = 1; i < argc && rc == WEIR_OK; i++)
            rc = download(client, argv[i], &err);
        weir_client_close(client);
    }
    if (rc != WEIR_OK)
        fprintf(stderr, "downloads: %s [%s]\n", err.text, weir_err_name(rc));
    return weir_err_exit_status(rc);
}
