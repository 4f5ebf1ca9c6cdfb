/*
 * Writes docs/errors.md from the list of errors in weir/error.h:
 *
 *     errordoc >docs/errors.md
 *
 * What a person should do stands here. An error that has no advice does not
 * compile (-Wswitch-enum with -Werror, as in CI).
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/error.h>

struct row {
    enum weir_err code;
    const char *name;
    enum weir_err_kind kind;
    int exit_status;
    const char *text;
};

static const struct row rows[] = {
#define X(name_, kind_, exit_, text_) \
    {WEIR_##name_, #name_, WEIR_KIND_##kind_, exit_, text_},
    WEIR_ERRORS(X)
#undef X
};

static const char *
kind_name(enum weir_err_kind kind)
{
    switch (kind) {
    case WEIR_KIND_OK:
        return "ok";
    case WEIR_KIND_USAGE:
        return "usage";
    case WEIR_KIND_STATE:
        return "state";
    case WEIR_KIND_BUSY:
        return "busy";
    case WEIR_KIND_UNKNOWN:
        return "unknown";
    case WEIR_KIND_BROKEN:
        return "broken";
    }
    abort();
}

/* What to do. A code that is missing here stops the build: advice() says which. */
static const struct {
    enum weir_err code;
    const char *text;
} advices[] = {
    {WEIR_OK, ""},
    {WEIR_E_ARG, "Read the message: it names the argument and the rule. `weir help "
                 "COMMAND` shows the flags."},
    {WEIR_E_TOO_BIG, "Store the bytes elsewhere and enqueue where they are, or raise the "
                     "queue's limit with `weir queue create`."},
    {WEIR_E_DATA, "Mend the line that the message names. `--continue-on-error` skips "
                  "such lines."},
    {WEIR_E_CANCELLED,
     "Somebody called it off while it waited or ran. Enqueue it again if "
     "that was wrong."},
    {WEIR_E_EXPIRED,
     "It waited longer than its `--expires`. More workers, or a longer time."},
    {WEIR_E_NO_WORKER, "It ended, or was silent for so long that it is forgotten. `weir "
                       "worker ls` shows who works."},
    {WEIR_E_NO_JOB,
     "Finished jobs are kept for `--keep-result` only. `weir job ls` shows "
     "what is there."},
    {WEIR_E_NO_QUEUE,
     "`weir queue ls` shows the queues. A queue is made by its first job or "
     "by `weir queue create`."},
    {WEIR_E_NO_CRON,
     "`weir cron ls` shows the entries of every queue. An entry is named by "
     "its queue (`-q`) and its name."},
    {WEIR_E_CHANGED, "Look at it again (`weir cron show`), then repeat what you wanted."},
    {WEIR_E_EXISTS, "Take another id, or `--replace` while the job waits."},
    {WEIR_E_UNIQUE, "The message names the job that holds the key. Wait until it ends."},
    {WEIR_E_WRONG_STATE, "`weir job show` tells the state. Only a job that waits can be "
                         "replaced, only a dead one replayed or purged."},
    {WEIR_E_WRONG_ENGINE,
     "`weir queue migrate` moves a queue to the other engine; `weir audit` "
     "names the one it has."},
    {WEIR_E_LEASE_LOST,
     "The job was given to another worker, or ended. Stop working on it: "
     "the result is dropped."},
    {WEIR_E_JOB_FAILED,
     "`weir job show` has its last errors, `weir dead retry` gives it a new "
     "life."},
    {WEIR_E_TIMEOUT, "The job goes on. Ask again, or wait longer."},
    {WEIR_E_CHECK_FAILED, "The lines above say which check, and what to do."},
    {WEIR_E_POOL_FULL, "Raise `max_connections`, or let fewer threads share a client."},
    {WEIR_E_CONNECT, "Does the server run, and is the address right? `weir doctor` and "
                     "`weir config show --origin` tell."},
    {WEIR_E_LOADING,
     "Wait: the server reads its data, or runs a long script. Weir repeats "
     "by itself until its deadline."},
    {WEIR_E_FULL, "Let workers drain the queues, purge, or give Redis more memory. "
                  "Workers go on while Redis is full."},
    {WEIR_E_REFUSED,
     "Look at the disk and the replicas of the server (MISCONF, NOREPLICAS)."},
    {WEIR_E_NO_MEMORY, "This machine, or this process's limit, has no memory left."},
    {WEIR_E_NO_REPLY,
     "Repeat it with the same id: a job that was stored is not stored twice."},
    {WEIR_E_DENIED,
     "Check user and password. The message names the right that is missing "
     "(ACL)."},
    {WEIR_E_READONLY, "Give the address of the primary."},
    {WEIR_E_SERVER,
     "Redis 7.0 or Valkey 7.2 and newer. `weir doctor` says what it found."},
    {WEIR_E_CONFIG, "The message names file and line. `weir config show --origin` tells "
                    "where each value comes from."},
    {WEIR_E_IO, "The message names the file and the reason."},
    {WEIR_E_CORRUPT,
     "Somebody else writes keys of this namespace, or a newer weir did. "
     "`weir audit --deep` names the jobs. If the config key of a "
     "queue is gone, do as the message says: `stream` if the queue has a "
     "key `stream` or `ids`, else `list`; its limits are the defaults then."},
    {WEIR_E_BUG, "Please report it with the message and the output of `weir version`."},
};

static const char *
advice(enum weir_err code, const char *name)
{
    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
        if (advices[i].code == code)
            return advices[i].text;
    }
    fprintf(stderr, "errordoc: no advice for %s\n", name);
    exit(1);
}

int
main(void)
{
    puts("# Errors\n\n"
         "Made from `include/weir/error.h` by `make docs`; do not edit.\n\n"
         "The kind says what a program should do:\n\n"
         "- **usage** The call is wrong: fix the program. Nothing was sent.\n"
         "- **state** The job or the queue is in another state. Nothing changed.\n"
         "- **busy** Not now. Nothing changed; the same call may work later.\n"
         "- **unknown** Sent, no answer came: it may have happened. Repeat it with the "
         "same "
         "id.\n"
         "- **broken** Setup, rights, damage or a bug: a person must look.\n\n"
         "| code | kind | exit | meaning | what to do |\n"
         "|---|---|---|---|---|");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];

        if (r->code != WEIR_OK)
            printf("| `%s` | %s | %d | %s | %s |\n", r->name, kind_name(r->kind),
                   r->exit_status, r->text, advice(r->code, r->name));
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
