/*
 * command/allow.h - which command jobs a worker runs.
 *
 * Three lists of patterns with commas between. A program:
 *
 *     /usr/bin/conv*     a pattern of the path where the program really lies, that is
 *                        without symbolic links; * and ? do not match a slash
 *     /usr/bin/convert   a path: the program that lies there, or to which the link leads
 *     ffmpeg             a name: the program that this name stands for in the worker's
 *                        PATH
 *     *                  every program
 *
 * The job names its program by a name or by an absolute path without "..". What is looked
 * at is what is run: by its real path. Programs that are several in one (xz is unxz,
 * busybox is everything) do what the name tells them: so the name that the job uses must
 * be the file's own, or fit the pattern as well. A program that everybody may write, or
 * that lies in a folder everybody may write, is refused.
 *
 * The variables a job sets: patterns of names, by default LANG, LC_* and TZ: others steer
 * programs (LD_PRELOAD, PATH, GIT_SSH...). The folder it asks for: patterns of real
 * paths, by default none.
 */
#ifndef WR_COMMAND_ALLOW_H
#define WR_COMMAND_ALLOW_H

#include <limits.h>

#include <weir/error.h>

#include "command/command.h"

struct wr_allow;

enum wr_allow_verdict {
    WR_ALLOW_YES,
    WR_ALLOW_NO,      /* against the rules: never */
    WR_ALLOW_MISSING, /* no such program here, or none that can be run: maybe later */
};

struct wr_allow_answer {
    char file[PATH_MAX]; /* what to run */
    char cwd[PATH_MAX];  /* empty: none asked for */
    bool missing;        /* there is no such file; else it cannot be run */
    char why[400];       /* of NO and MISSING, one line */
};

/* env, cwd NULL: the defaults. path: of the worker. E_CONFIG: a pattern that can never
 * match. */
enum weir_err
wr_allow_new(const char *commands, const char *env, const char *cwd, const char *path,
             struct wr_allow **out, struct weir_error *err) WEIR_MUST_CHECK;
void wr_allow_free(struct wr_allow *allow); /* NULL is allowed */

/* Looks at the file system each time. Any thread. */
enum wr_allow_verdict
wr_allow_check(const struct wr_allow *allow, const struct wr_command *command,
               struct wr_allow_answer *out);

/* The path of a program as the given PATH finds it; false: there is none. Empty entries
 * and relative ones are left out. */
bool wr_allow_find(const char *path, const char *name, char out[PATH_MAX]);

#endif
