/*
 * worker/exec_args.h - members of a JSON payload as words of a command: the word {NAME}
 * of argv, for a NAME that the handler lists, is that member, always one word.
 */
#ifndef WR_WORKER_EXEC_ARGS_H
#define WR_WORKER_EXEC_ARGS_H

#include "worker/exec_config.h"
#include "worker/handler.h"

/* E_ARG: a name that no word stands for, or a shell's line. */
enum weir_err wr_exec_args_check(const struct weir_exec_options *options,
                                 struct weir_error *err) WEIR_MUST_CHECK;
/* The words for this job, in *out; its strings are those of config but for what stands in
 * `text`, which the caller ends after the run. False: d has the error, and the payload
 * can never give them, or *no_memory. Free *out. */
bool wr_exec_args_make(const struct wr_exec_config *config, struct weir_delivery *d,
                       char ***out, struct wr_buf *text, bool *no_memory);

#endif
