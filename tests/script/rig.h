/*
 * script/rig.h - what every test of the transitions stands on: one redis-server, one
 * store with a test clock, one queue, and short words for the common calls.
 *
 *     rig_put("A");
 *     rig_take("w1", 1);
 *     assert_int_equal(rig_ack("w1", "A"), WR_ANSWERED_OK);
 *
 * The rig remembers the token of each worker's last delivery of an id, so a test names
 * worker and id. One per program; setup flushes the server.
 *
 * The tests of a program run once for each engine, by the same bodies: what they ask
 * about the storage they ask by rig_where() and its relatives. WEIR_TEST_ENGINE=stream
 * runs them for that one alone.
 */
#ifndef SCRIPT_RIG_H
#define SCRIPT_RIG_H

#include "support/cmocka_all.h"

#include <stdbool.h>

#include <weir/client.h>

#include "base/buf.h"
#include "redis/script.h"
#include "store/keys.h"
#include "store/scripts.gen.h"
#include "store/store.h"
#include "support/redis_server.h"

#define RIG_START INT64_C(1796000000000)
#define RIG_LEASE 15000
#define RIG_TAKEN 1100

enum rig_engine {
    RIG_LIST,
    RIG_STREAM
};

struct rig {
    enum rig_engine engine; /* of the queue in this run of the tests */
    struct redis_server *redis;
    struct wr_server *server;
    struct wr_store *store;
    struct wr_queue *queue;
    struct wr_conn *conn; /* for scripts called by hand */
    struct wr_keys keys;
    struct wr_channel channel;
    struct weir_error err;
    int64_t now;  /* the test clock */
    int64_t call; /* number of the next reserve */
};
extern struct rig rig;

/* cmocka's group and test setups. */
int rig_open(void **state);
int rig_close(void **state);
int rig_fresh(void **state); /* an empty server, the clock at RIG_START; what comes in
                                makes the queue, but for one that is no list */
void rig_make_queue(void);   /* an empty one of the engine, registered nowhere */
void
rig_follow_engine(void); /* the queue may have moved: goes on with the engine it has */

void rig_clock(int64_t now_ms);
void rig_pass(int64_t ms);

/* What a job asks for; all may be zero. */
struct rig_job {
    const char *id, *options; /* " keep=5000": as in the header */
    struct wr_span payload;   /* empty: "x" */
    const char *unique, *due; /* "0 key"; "+500" */
};
enum wr_admit_word rig_put(const char *id); /* one plain job */
enum wr_admit_word rig_put_job(struct rig_job job);
void rig_put_many(const char *ids); /* "A B C": in one call, all must be stored */
void rig_put_thousand(int first);   /* in one call: "n7000" to "n7999" from 7000 on */
struct wr_admit rig_item(struct rig_job job); /* lives until the 64th call after */

/* What a reserve got. */
struct rig_taken {
    enum wr_reserve_word word;
    size_t n;
    char ids[4096]; /* "A B C" */
    struct wr_job_state first;
};
const struct rig_taken *rig_take(const char *worker, size_t free);
const struct rig_taken *rig_take_how(const struct wr_reserve *how);
/* "12": the token of this worker's last delivery of this id; lives on. */
const char *rig_token(const char *worker, const char *id);
void rig_set_token(const char *worker, const char *id, const char *token);

enum wr_answered rig_ack(const char *worker, const char *id);
enum wr_answered rig_ack_result(const char *worker, const char *id, const char *result);
enum wr_answered rig_retry(const char *worker, const char *id, int64_t delay_ms);
enum wr_answered rig_bury(const char *worker, const char *id);
enum wr_answered rig_release(const char *worker, const char *id);
enum wr_extended rig_extend(const char *worker, const char *id, int64_t limit_ms);
enum wr_extended rig_progress(const char *worker, const char *id, const char *text);
/* The same of a job that says how long it is kept after its end. */
enum wr_extended
rig_progress_keep(const char *worker, const char *id, const char *text, int64_t keep_ms);
enum wr_cancelled rig_cancel(const char *id);
enum wr_replayed rig_replay(const char *id);
enum wr_replayed rig_purge(const char *id);
struct wr_moved rig_promote(size_t limit);
struct wr_moved rig_reclaim(void); /* of a reclaimer that has been here all the time */
struct wr_moved rig_forget(size_t limit);
void rig_kill_job(const char *id); /* put, take and bury: a dead job */
void rig_kill_thousand(void);      /* takes and buries all that waits, 1000 at most */
bool rig_pause(void);              /* was it paused? */
bool rig_resume(void);

/* Where an id is: letters in order, J record, K kept, L delayed, P processing, R for
 * each place in ready, S state, T tombstone, X dead. A stream's entry counts as the
 * record of a job that waits or runs, and as the state of one that runs: it says what
 * they say. */
const char *rig_where(const char *id);
/* What is right for this engine. */
const char *rig_either(const char *list, const char *stream);
/* Those letters; on an engine that leaves no tombstones without T and its place R. */
const char *rig_or_tomb(const char *letters);
/* As inspect tells it of a job, wherever it stands: its record, "" if it is gone; what
 * changes, all zero if it was never delivered; the end of its lease, or the score of the
 * place where it is, -1 if there is none. */
const char *rig_record(const char *id);
struct wr_job_state rig_state(const char *id);
int64_t rig_score(const char *id);
void rig_lose_body(const char *id); /* by hand */
int64_t rig_stat(const char *counter);
struct weir_audit rig_audit(void);
void rig_assert_sums(void); /* every equation, and the walk through all structures */
void rig_assert_equations(int64_t bodies);  /* the same without the walk; bodies: what
                                               the record count may be off by */
const char *rig_key(enum wr_queue_key key); /* its name in Redis */
bool rig_has_marker(void);                  /* wake */

/* The engine's script of that name, or the one that serves both. */
const struct wr_script *rig_script_of(const char *name);
/*
 * Calls a script by hand: its queue keys first, then the words, NULL at the end. Answers
 * the reply as text, elements with blanks between, or "ERR ..." for an error reply.
 */
const char *rig_script(const char *name, ...) __attribute__((sentinel));
/* The same for words in an array, bytes of any kind; the reply is the caller's. */
struct wr_reply *rig_script_argv(const char *name, const struct wr_span *words, size_t n);

/* A reply as text: its elements with blanks between. */
void rig_reply_text(const struct wr_reply *reply, struct wr_buf *out);

/* Of all engines; of one. */
extern char rig_list_only[], rig_stream_only[];
#define RIG_TEST(name) cmocka_unit_test_setup(name, rig_fresh)
#define RIG_LIST_TEST(name) \
    cmocka_unit_test_prestate_setup_teardown(name, rig_fresh, NULL, rig_list_only)
#define RIG_STREAM_TEST(name) \
    cmocka_unit_test_prestate_setup_teardown(name, rig_fresh, NULL, rig_stream_only)
int rig_run(const struct CMUnitTest *tests, size_t n);
#define RIG_MAIN(tests) rig_run(tests, sizeof(tests) / sizeof((tests)[0]))

#endif
