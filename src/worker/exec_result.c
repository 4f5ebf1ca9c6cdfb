#include "worker/exec_result.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/json.h"

/* A command that runs as another user must not make us read what that user may not: it
 * has to own the file, which is no link. */
static bool
may_read(int fd, const struct wr_exec_limits *limits)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    errno = EPERM;
    return S_ISREG(st.st_mode) && (!limits->switch_user || st.st_uid == limits->uid);
}

/* At most max + 1 bytes, so that too much is seen. */
static bool
read_file(int fd, size_t max, struct wr_buf *out)
{
    ssize_t n = 1;

    while (n > 0 && out->len <= max) {
        char *to = wr_buf_room(out, max + 1 - out->len);

        if (!to) {
            errno = ENOMEM;
            return false;
        }
        do
            n = read(fd, to, max + 1 - out->len);
        while (n < 0 && errno == EINTR);
        if (n > 0)
            out->len += (size_t)n;
    }
    if (out->ptr)
        out->ptr[out->len] = '\0';
    return n >= 0;
}

static bool
take_file(struct weir_delivery *d, const struct wr_exec_config *c, const char *name,
          const char *folder)
{
    int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, why = 0;

    fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    wr_buf_clear(&d->result);
    if (fd < 0 || !may_read(fd, &c->limits) ||
        !read_file(fd, c->o.result_max, &d->result))
        why = errno;
    if (fd >= 0)
        close(fd);
    if (at >= 0)
        close(at);
    if (why == 0 && d->result.len <= c->o.result_max)
        return true;
    wr_buf_clear(&d->result);
    if (why == 0)
        weir_delivery_set_error(d, "result-file %.300s: more than %zu bytes", name,
                                c->o.result_max);
    else
        weir_delivery_set_error(d, "result-file %.300s: %s", name, strerror(why));
    return false;
}

static void
keep_last_line(struct wr_buf *result)
{
    size_t end = result->len, start;

    while (end > 0 && (result->ptr[end - 1] == '\n' || result->ptr[end - 1] == '\r'))
        end--;
    for (start = end; start > 0 && result->ptr[start - 1] != '\n'; start--)
        continue;
    if (!result->ptr)
        return;
    result->len = end;
    result->ptr[end] = '\0';
    wr_buf_drop(result, start);
}

static bool
check_json(struct weir_delivery *d, const struct wr_exec_end *end)
{
    struct weir_error why = {0};

    if (end->out_truncated && end->result_file[0] == '\0') {
        weir_delivery_set_error(d, "E_RESULT_NOT_JSON: %lld bytes are too many",
                                (long long)end->bytes_out);
        return false;
    }
    if (wr_json_check(wr_buf_span(&d->result).ptr, d->result.len, &why) == WEIR_OK)
        return true;
    weir_delivery_set_error(d, "E_RESULT_NOT_JSON: %s", why.text);
    return false;
}

bool
wr_exec_result_take(struct weir_delivery *d, const struct wr_exec_config *c,
                    const struct wr_exec_end *end, const char *folder)
{
    if (end->result_file[0] != '\0') {
        if (!take_file(d, c, end->result_file, folder))
            return false;
    } else if (c->o.result == WEIR_EXEC_LAST_LINE) {
        keep_last_line(&d->result);
    }
    return c->o.result != WEIR_EXEC_JSON || check_json(d, end);
}
