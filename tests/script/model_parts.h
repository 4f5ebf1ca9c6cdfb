/*
 * script/model_parts.h - what the parts of the model ask of each other. What each does is
 * said where it is.
 */
#ifndef SCRIPT_MODEL_PARTS_H
#define SCRIPT_MODEL_PARTS_H

#include "script/model.h"

#define say model_say

/* part_model.c */
void
model_say(struct wr_buf *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t model_tombs(const struct model *m);
void model_check(bool ok, const char *what);
void model_say_int(struct wr_buf *out, int64_t number);
struct model_job *model_new_job(struct model *m, const char *id);
void model_add_run(struct model *m, struct model_job *j, const char *outcome,
                   const char *text, const char *worker, const char *facts);
void
model_ended(struct model *m, struct model_job *j, const char *word, const char *result);
void model_forget_job(struct model_job *j);
void model_add_error_once(struct model *m, struct model_job *j, const char *outcome,
                          const char *text);
size_t model_record_text(const struct model_job *j, char *out, size_t cap);
int64_t model_record_bytes(const struct model_job *j);
void model_state_text(const struct model_job *j, char *out, size_t cap);
void model_drop_entry(struct model *m, struct model_job *j);
bool model_is_stub(const struct model_job *j);
bool model_has_body(const struct model_job *j);
void model_store_body(struct model_job *j);
struct model_job *model_part_with_entry(struct model *m, struct model_job *j);
void model_become_stub(struct model *m, struct model_job *j);
void model_die(struct model *m, struct model_job *j);
int64_t model_dead_bytes(const struct model_job *j);
void model_dead_in(struct model *m, struct model_job *j);
void model_dead_out(struct model *m, struct model_job **jobs, size_t n);
void model_free_key(struct model *m, int key, const struct model_job *j);
void model_move_key(struct model *m, struct model_job *j, char where);
void model_wake_worker(struct model *m);
size_t model_jobs_at(struct model *m, enum model_place place, struct model_job **out);
void model_delay(struct model *m, struct model_job *j, int64_t due);
void model_to_back(struct model *m, struct model_job *j);
void model_next_key(struct model *m, int key, const struct model_job *j);
void model_let_in(struct model *m, struct model_job *j);
const struct model_job *model_behind(const struct model *m, const struct model_job *j);
bool model_leave_line(struct model *m, struct model_job *j);
void model_join_lines(struct model *m, struct model_job *const *jobs, const int *orders,
                      size_t n);
void model_end_of(struct model *m, int key, int order, struct model_job *j);
void model_to_front(struct model *m, struct model_job *j);
void model_pop_tombs(struct model *m);
void model_defer(struct model *m, struct model_job *j, int64_t due);
const char *model_place_word(const struct model_job *j);
bool model_is_held(const struct model_job *j, int64_t token, int worker);
const char *model_held_word(const struct model *m, const struct model_job *j,
                            int64_t token, int worker);

/* part_model_admit.c */
struct model_job *
model_key_holder(const struct model *m, int key, const struct model_job *j);
int64_t model_due_of(const struct model *m, const char *due);
bool model_is_in(struct model_job *const *list, size_t n, const struct model_job *j);

/* part_model_reserve.c */
/* One that waits has no body: it is dead. is_copy: its id is another job's. */
void model_bury_lost(struct model *m, struct model_job *j, bool is_copy);
int model_worker_of(const char *name);
int64_t
model_lease_of(const struct model *m, const struct model_job *j, int64_t otherwise);
void model_append(struct wr_buf *out, struct wr_buf *more);
void model_end_cancelled(struct model *m, struct model_job *j);
void model_all_to_front(struct model *m, struct model_job **jobs, size_t n);

void model_lease(struct model *m, const struct model_reserve *r, struct model_job *j);

/* part_model_offer.c */
/* The offer that this job, which comes alone, is handed to; NULL: none. */
const struct model_offer *model_take_offer(struct model *m, const struct model_job *j);
/* It stands in ready, alone. */
void model_hand(struct model *m, const struct model_offer *o, struct model_job *j);
void model_forget_claims(struct model *m, int worker);
void model_claims_head(const struct model *m, int worker, struct wr_buf *out);
void model_wake_dump(const struct model *m, struct wr_buf *out);

/* part_model_log.c */
int64_t model_log_bytes(const struct model *m);
void model_runs_text(const struct model_job *j, struct wr_buf *out);

/* part_model_people.c */
void model_errors_text(const struct model_job *j, struct wr_buf *out);

#endif
