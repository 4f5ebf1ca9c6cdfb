#include "bin/bare_hops.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/error.h"

#define CONNECT_S 5
#define ANSWER_S 5 /* Redis' word that a BLPOP got nothing comes before COMMAND_S */
#define COMMAND_S 10

struct bare {
    redisContext *context;
};

static enum weir_err
refused(const char *text, struct weir_error *err)
{
    static const struct {
        const char *word;
        enum weir_err code;
    } rows[] = {{"NOPERM", WEIR_E_DENIED},    {"NOAUTH", WEIR_E_DENIED},
                {"WRONGPASS", WEIR_E_DENIED}, {"OOM", WEIR_E_FULL},
                {"LOADING", WEIR_E_LOADING},  {"READONLY", WEIR_E_READONLY}};
    enum weir_err code = WEIR_E_SERVER;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (strncmp(text, rows[i].word, strlen(rows[i].word)) == 0)
            code = rows[i].code;
    }
    return wr_fail(err, code, 0, "the bare loop: the server answered: %.160s", text);
}

/* hiredis has no words of its own for a time that ran out. */
static enum weir_err
broke(const redisContext *c, enum weir_err code, struct weir_error *err)
{
    if (c->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK))
        return wr_fail(err, code, 0, "the bare loop: Redis did not answer in time");
    return wr_fail(err, code, 0, "the bare loop: %.128s", c->errstr);
}

/* One command whose reply only has to be no error and no nil. */
static enum weir_err
command(struct bare *b, struct weir_error *err, const char *format, ...)
{
    enum weir_err rc = WEIR_OK;
    redisReply *reply;
    va_list ap;

    va_start(ap, format);
    reply = redisvCommand(b->context, format, ap);
    va_end(ap);
    if (!reply)
        return broke(b->context, WEIR_E_NO_REPLY, err);
    if (reply->type == REDIS_REPLY_ERROR)
        rc = refused(reply->str, err);
    else if (reply->type == REDIS_REPLY_NIL)
        rc = wr_fail(err, WEIR_E_TIMEOUT, 0, "the bare loop: no answer in %d s",
                     ANSWER_S);
    freeReplyObject(reply);
    return rc;
}

static enum weir_err
log_in(struct bare *b, const struct wr_url *url, struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    if (url->user[0])
        rc = command(b, err, "AUTH %s %s", url->user, url->password);
    else if (url->password[0])
        rc = command(b, err, "AUTH %s", url->password);
    if (rc == WEIR_OK && url->db != 0)
        rc = command(b, err, "SELECT %d", url->db);
    return rc;
}

enum weir_err
bare_open(const struct wr_url *url, struct bare **out, struct weir_error *err)
{
    struct timeval patience = {CONNECT_S, 0}, answer = {COMMAND_S, 0};
    struct bare *b;
    enum weir_err rc;

    *out = NULL;
    if (url->use_tls)
        return wr_fail(err, WEIR_E_CONFIG, 0, "the bare loop knows no TLS");
    b = calloc(1, sizeof(*b));
    if (!b)
        return wr_fail(err, WEIR_E_NO_MEMORY, 0, "the bare loop");
    b->context = url->is_unix ? redisConnectUnixWithTimeout(url->host, patience)
                              : redisConnectWithTimeout(url->host, url->port, patience);
    if (!b->context)
        rc = wr_fail(err, WEIR_E_NO_MEMORY, 0, "the bare loop");
    else if (b->context->err)
        rc = broke(b->context, WEIR_E_CONNECT, err);
    else if (redisSetTimeout(b->context, answer) != REDIS_OK)
        rc = broke(b->context, WEIR_E_CONNECT, err);
    else
        rc = log_in(b, url, err);
    if (rc != WEIR_OK)
        bare_close(b);
    else
        *out = b;
    return rc;
}

void
bare_close(struct bare *b)
{
    if (!b)
        return;
    if (b->context)
        redisFree(b->context);
    free(b);
}

enum weir_err
bare_push(struct bare *b, const char *key, struct weir_error *err)
{
    return command(b, err, "LPUSH %s 1", key);
}

enum weir_err
bare_there_and_back(struct bare *b, const char *there, const char *back,
                    struct weir_error *err)
{
    enum weir_err rc = command(b, err, "LPUSH %s 1", there);

    return rc == WEIR_OK ? command(b, err, "BLPOP %s %d", back, ANSWER_S) : rc;
}

/* Nothing came for a while: that is no failure of the side that waits. */
static enum weir_err
wait_for(struct bare *b, const char *key, struct weir_error *err)
{
    enum weir_err rc;

    do
        rc = command(b, err, "BLPOP %s %d", key, ANSWER_S);
    while (rc == WEIR_E_TIMEOUT);
    return rc;
}

enum weir_err
bare_take(const struct wr_url *url, const char *key, void (*taken)(void),
          struct weir_error *err)
{
    struct bare *b;
    enum weir_err rc = bare_open(url, &b, err);

    while (rc == WEIR_OK) {
        rc = wait_for(b, key, err);
        if (rc == WEIR_OK)
            rc = command(b, err, "PING");
        if (rc == WEIR_OK)
            taken();
    }
    bare_close(b);
    return rc;
}

enum weir_err
bare_return(const struct wr_url *url, const char *there, const char *back,
            struct weir_error *err)
{
    struct bare *b;
    enum weir_err rc = bare_open(url, &b, err);

    while (rc == WEIR_OK) {
        rc = wait_for(b, there, err);
        if (rc == WEIR_OK)
            rc = bare_push(b, back, err);
    }
    bare_close(b);
    return rc;
}
