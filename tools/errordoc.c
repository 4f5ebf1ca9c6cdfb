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

static const char *
advice(enum weir_err code)
{
    switch (code) {
    case WEIR_OK:
        return "";
    case WEIR_E_ARG:
        return "Read the message: it names the argument and the rule. `weir help "
               "COMMAND` "
               "shows the flags.";
    case WEIR_E_TOO_BIG:
        return "Store the bytes elsewhere and enqueue where they are, or raise the "
               "queue's "
               "limit with `weir queue create`.";
    case WEIR_E_DATA:
        return "Mend the line that the message names. `--continue-on-error` skips such "
               "lines.";
    case WEIR_E_CANCELLED:
        return "Somebody called it off while it waited or ran. Enqueue it again if that "
               "was wrong.";
    case WEIR_E_EXPIRED:
        return "It waited longer than its `--expires`. More workers, or a longer time.";
    case WEIR_E_NO_WORKER:
        return "It ended, or was silent for so long that it is forgotten. `weir worker "
               "ls` "
               "shows who works.";
    case WEIR_E_NO_JOB:
        return "Finished jobs are kept for `--keep-result` only. `weir job ls` shows "
               "what is "
               "there.";
    case WEIR_E_NO_QUEUE:
        return "`weir queue ls` shows the queues. A queue is made by its first job or by "
               "`weir queue create`.";
    case WEIR_E_NO_CRON:
        return "`weir cron ls` shows the entries of every queue. An entry is named by "
               "its "
               "queue (`-q`) and its name.";
    case WEIR_E_CHANGED:
        return "Look at it again (`weir cron show`), then repeat what you wanted.";
    case WEIR_E_EXISTS:
        return "Take another id, or `--replace` while the job waits.";
    case WEIR_E_UNIQUE:
        return "The message names the job that holds the key. Wait until it ends.";
    case WEIR_E_WRONG_STATE:
        return "`weir job show` tells the state. Only a job that waits can be replaced, "
               "only "
               "a dead one replayed or purged.";
    case WEIR_E_WRONG_ENGINE:
        return "`weir queue migrate` moves a queue to the other engine; `weir audit` "
               "names "
               "the one it has.";
    case WEIR_E_LEASE_LOST:
        return "The job was given to another worker, or ended. Stop working on it: the "
               "result is dropped.";
    case WEIR_E_JOB_FAILED:
        return "`weir job show` has its last errors, `weir dead retry` gives it a new "
               "life.";
    case WEIR_E_TIMEOUT:
        return "The job goes on. Ask again, or wait longer.";
    case WEIR_E_CHECK_FAILED:
        return "The lines above say which check, and what to do.";
    case WEIR_E_POOL_FULL:
        return "Raise `max_connections`, or let fewer threads share a client.";
    case WEIR_E_CONNECT:
        return "Does the server run, and is the address right? `weir doctor` and "
               "`weir config show --origin` tell.";
    case WEIR_E_LOADING:
        return "Wait: the server reads its data, or runs a long script. Weir repeats by "
               "itself until its deadline.";
    case WEIR_E_FULL:
        return "Let workers drain the queues, purge, or give Redis more memory. Workers "
               "go "
               "on while Redis is full.";
    case WEIR_E_REFUSED:
        return "Look at the disk and the replicas of the server (MISCONF, NOREPLICAS).";
    case WEIR_E_NO_MEMORY:
        return "This machine, or this process's limit, has no memory left.";
    case WEIR_E_NO_REPLY:
        return "Repeat it with the same id: a job that was stored is not stored twice.";
    case WEIR_E_DENIED:
        return "Check user and password. The message names the right that is missing "
               "(ACL).";
    case WEIR_E_READONLY:
        return "Give the address of the primary.";
    case WEIR_E_SERVER:
        return "Redis 7.0 or Valkey 7.2 and newer. `weir doctor` says what it found.";
    case WEIR_E_CONFIG:
        return "The message names file and line. `weir config show --origin` tells where "
               "each value comes from.";
    case WEIR_E_IO:
        return "The message names the file and the reason.";
    case WEIR_E_CORRUPT:
        return "Somebody else writes keys of this namespace, or a newer weir did. "
               "`weir audit --deep` names the jobs.";
    case WEIR_E_BUG:
        return "Please report it with the message and the output of `weir version`.";
    }
    abort();
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
                   r->exit_status, r->text, advice(r->code));
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
