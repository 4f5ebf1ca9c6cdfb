/* What an error reply means: one row each; the first that fits counts. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "redis/conn.h"

/* clang-format off */
static const struct {
    bool anywhere; /* else: at the start */
    const char *text;
    enum weir_err code;
    const char *advice;
} rows[] = {
    {false, "NOSCRIPT",    WEIR_E_BUG,      "a script is missing"},
    {false, "LOADING",     WEIR_E_LOADING,  "Redis is loading its data; try again soon"},
    {false, "BUSY ",       WEIR_E_LOADING,  "Redis is busy with a script of somebody"},
    {false, "TRYAGAIN",    WEIR_E_LOADING,  "the cluster is moving this queue"},
    {false, "CLUSTERDOWN", WEIR_E_LOADING,  "the cluster is down"},
    {false, "MASTERDOWN",  WEIR_E_LOADING,  "the replica has lost its primary"},
    {false, "ERR max number of clients", WEIR_E_LOADING, "Redis has no room for more clients (maxclients)"},
    {false, "OOM",         WEIR_E_FULL,     "Redis is full: let workers drain it, or raise maxmemory"},
    {false, "MISCONF",     WEIR_E_REFUSED,  "Redis cannot save to its disk and refuses writes"},
    {false, "NOREPLICAS",  WEIR_E_REFUSED,  "too few replicas answer"},
    {false, "READONLY",    WEIR_E_READONLY, "this is a read-only replica: use the primary's address"},
    {false, "UNBLOCKED",   WEIR_E_READONLY, "the server became a replica"},
    {false, "NOAUTH",      WEIR_E_DENIED,   "it wants a password: set it in the URL or WEIR_PASSWORD_FILE"},
    {false, "WRONGPASS",   WEIR_E_DENIED,   "wrong user or password"},
    {false, "ERR invalid password", WEIR_E_DENIED, "wrong password"},
    {false, "ERR AUTH",    WEIR_E_DENIED,   "a password was given but the server wants none"},
    {false, "ERR Client sent AUTH", WEIR_E_DENIED, "a password was given but the server wants none"},
    {false, "DENIED",      WEIR_E_DENIED,   "protected mode: set a password or bind it to an address"},
    {false, "NOPERM",      WEIR_E_DENIED,   "its user lacks a right"},
    {true,  "can't run this command", WEIR_E_DENIED, "its user lacks a right that a script needs"},
    {true,  "can't access at least one of the keys", WEIR_E_DENIED, "its user may not touch these keys"},
    {false, "WRONGTYPE",   WEIR_E_CORRUPT,  "a key of weir's holds something else"},
    {true,  "WRONGTYPE",   WEIR_E_CORRUPT,  "a key of weir's holds something else"},
    {true,  "Error compiling script", WEIR_E_SERVER, "weir needs Redis 7.0 or Valkey 7.2 or newer"},
    {true,  "access a non local key", WEIR_E_LOADING, "the cluster is moving this queue"},
    {true,  "script: ",    WEIR_E_CORRUPT,  "a script of weir's failed"},
    {true,  "user_script", WEIR_E_CORRUPT,  "a script of weir's failed"},
    {false, "MOVED",       WEIR_E_SERVER,   "this is a Redis Cluster, which weir does not speak yet"},
    {false, "ERR DB index", WEIR_E_ARG,     "the server has no database of this number"},
};
/* clang-format on */

/* "ERR unknown command 'AUTH', with args beginning with: 'secret'": not to be shown. */
static void
cut_words(char *text)
{
    char *args = strstr(text, ", with args beginning");

    if (args)
        *args = '\0';
}

enum weir_err
wr_reply_error(const struct wr_reply *reply, struct weir_error *err)
{
    struct wr_span s = wr_reply_span(reply);
    struct wr_buf shown = {0};
    enum weir_err rc;
    char text[200];
    size_t row = 0, count = sizeof(rows) / sizeof(rows[0]);

    snprintf(text, sizeof(text), "%.*s", (int)(s.len < 160 ? s.len : 160),
             (const char *)s.ptr);
    cut_words(text);
    for (; row < count; row++) {
        const char *found = strstr(text, rows[row].text);

        if (found && (rows[row].anywhere || found == text))
            break;
    }
    wr_text_escape(&shown, wr_span_str(text));
    if (row < count)
        rc = wr_fail(err, rows[row].code, 0, "%s (%.160s)", rows[row].advice,
                     (const char *)wr_buf_span(&shown).ptr);
    else
        rc = wr_fail(err, WEIR_E_SERVER, 0, "the server answered: %.160s",
                     (const char *)wr_buf_span(&shown).ptr);
    wr_buf_fini(&shown);
    return rc;
}
