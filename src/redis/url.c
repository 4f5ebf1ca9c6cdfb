#include "redis/url.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define UNIX_PATH_MAX_BYTES 107

/* Decodes %XX of text[0..len) into out. False: too long, a bad escape, or a NUL byte. */
static bool
decode(const char *text, size_t len, char *out, size_t cap)
{
    struct wr_buf buf = {0};
    bool ok = wr_text_word_decode(&buf, (struct wr_span){text, len}) && buf.len < cap &&
              (buf.len == 0 || !memchr(buf.ptr, '\0', buf.len));

    if (ok)
        memcpy(out, wr_buf_span(&buf).ptr, buf.len + (buf.len > 0));
    if (ok)
        out[buf.len] = '\0';
    if (buf.ptr)
        explicit_bzero(buf.ptr, buf.cap);
    wr_buf_fini(&buf);
    return ok;
}

/* What is shown to people must not steer a terminal. */
static bool
is_showable(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    }
    return true;
}

static bool
read_number(const char *text, size_t len, int max, int *out)
{
    char copy[8];
    int64_t value;

    if (len == 0 || len >= sizeof(copy))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (!wr_text_int(copy, 0, max, &value))
        return false;
    *out = (int)value;
    return true;
}

static enum weir_err
parse_unix(const char *rest, struct wr_url *out, struct weir_error *err)
{
    size_t len = strcspn(rest, "?");

    out->is_unix = true;
    if (!decode(rest, len, out->host, sizeof(out->host)) || out->host[0] != '/' ||
        !is_showable(out->host))
        return wr_fail(err, WEIR_E_ARG, 0, "URL: unix:// wants an absolute path");
    if (strlen(out->host) > UNIX_PATH_MAX_BYTES)
        return wr_fail(err, WEIR_E_ARG, 0, "URL: a socket path has at most %d bytes",
                       UNIX_PATH_MAX_BYTES);
    rest += len;
    if (*rest == '\0')
        return WEIR_OK;
    if (strncmp(rest, "?db=", 4) != 0 ||
        !read_number(rest + 4, strlen(rest + 4), 99999, &out->db))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "URL: after a socket path only ?db=N is known");
    return WEIR_OK;
}

static enum weir_err
parse_user(const char *text, size_t len, struct wr_url *out, struct weir_error *err)
{
    const char *colon = memchr(text, ':', len);
    size_t user = colon ? (size_t)(colon - text) : len;

    if (!decode(text, user, out->user, sizeof(out->user)) || !is_showable(out->user) ||
        (colon &&
         !decode(colon + 1, len - user - 1, out->password, sizeof(out->password))))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "URL: user or password is too long or badly percent-encoded");
    return WEIR_OK;
}

static enum weir_err
parse_host(const char *text, size_t len, struct wr_url *out, struct weir_error *err)
{
    const char *end = text + len, *port = NULL;
    size_t host = len;

    if (len > 0 && *text == '[') { /* IPv6 */
        const char *close = memchr(text, ']', len);

        if (!close)
            return wr_fail(err, WEIR_E_ARG, 0, "URL: [ without ] around an IPv6 address");
        text++;
        host = (size_t)(close - text);
        port = close + 1 < end ? close + 1 : NULL;
        if (port && *port != ':')
            return wr_fail(err, WEIR_E_ARG, 0, "URL: after ] comes a : and the port");
    } else {
        port = memchr(text, ':', len);
        host = port ? (size_t)(port - text) : len;
    }
    out->port = 6379;
    if (port && (!read_number(port + 1, (size_t)(end - port - 1), 65535, &out->port) ||
                 out->port == 0))
        return wr_fail(err, WEIR_E_ARG, 0, "URL: the port is a number from 1 to 65535");
    if (host == 0)
        snprintf(out->host, sizeof(out->host), "127.0.0.1");
    else if (!decode(text, host, out->host, sizeof(out->host)) || !is_showable(out->host))
        return wr_fail(err, WEIR_E_ARG, 0, "URL: the host is too long or badly encoded");
    return WEIR_OK;
}

static enum weir_err
parse_network(const char *rest, struct wr_url *out, struct weir_error *err)
{
    size_t len = strcspn(rest, "/?#");
    const char *at = NULL, *path = rest + len;
    enum weir_err rc = WEIR_OK;

    for (size_t i = 0; i < len; i++) { /* the last @: a password may hold others */
        if (rest[i] == '@')
            at = rest + i;
    }
    if (at)
        rc = parse_user(rest, (size_t)(at - rest), out, err);
    if (rc == WEIR_OK) {
        const char *host = at ? at + 1 : rest;

        rc = parse_host(host, (size_t)(rest + len - host), out, err);
    }
    if (rc != WEIR_OK || *path == '\0' || strcmp(path, "/") == 0)
        return rc;
    if (*path != '/' || !read_number(path + 1, strlen(path + 1), 99999, &out->db))
        return wr_fail(err, WEIR_E_ARG, 0,
                       "URL: after the host comes /N, a database number");
    return WEIR_OK;
}

enum weir_err
wr_url_parse(const char *text, struct wr_url *out, struct weir_error *err)
{
    static const struct {
        const char *prefix;
        bool tls;
    } schemes[] = {{"redis://", false},
                   {"valkey://", false},
                   {"rediss://", true},
                   {"valkeys://", true}};

    *out = (struct wr_url){0};
    if (strncmp(text, "unix://", 7) == 0)
        return parse_unix(text + 7, out, err);
    if (strncmp(text, "redis+sentinel://", 17) == 0 ||
        strncmp(text, "redis+cluster://", 16) == 0)
        return wr_fail(err, WEIR_E_CONFIG, 0,
                       "Sentinel and Cluster are not built in yet");
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i].prefix);

        if (strncmp(text, schemes[i].prefix, len) == 0) {
            out->use_tls = schemes[i].tls;
            return parse_network(text + len, out, err);
        }
    }
    return wr_fail(
        err, WEIR_E_ARG, 0,
        "URL: it begins with redis://, valkey:// or unix:// (rediss:// with TLS)");
}

void
wr_url_show(const struct wr_url *u, char *out, size_t out_len)
{
    const char *auth = u->password[0] ? ":***@" : u->user[0] ? "@" : "";
    char db[20] = "";
    bool v6 = strchr(u->host, ':') != NULL;

    if (u->is_unix) {
        if (u->db != 0)
            snprintf(db, sizeof(db), "?db=%d", u->db);
        snprintf(out, out_len, "unix://%s%s", u->host, db);
        return;
    }
    snprintf(out, out_len, "redis%s://%s%s%s%s%s:%d/%d", u->use_tls ? "s" : "", u->user,
             auth, v6 ? "[" : "", u->host, v6 ? "]" : "", u->port, u->db);
}

void
wr_url_wipe(struct wr_url *u)
{
    explicit_bzero(u->password, sizeof(u->password));
}
