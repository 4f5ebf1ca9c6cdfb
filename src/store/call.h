/*
 * store/call.h - how a transition's function reaches its script; private to store/.
 *
 *     struct wr_call call;
 *
 *     wr_call_init(&call, store, queue, wr_pair_ack);
 *     wr_call_arg(&call, wr_span_str(worker));
 *     wr_call_arg(&call, id);
 *     rc = wr_call_run(&call, err);
 *     ... call.reply, call.word ...
 *     wr_call_fini(&call);
 *
 * The keys come from the script's contract, and both engines' scripts of a name take the
 * same arguments: so a function here serves every engine. Which one a queue has is
 * believed (a list, at first) until a script answers ENGINE: then the call is made again
 * with the other one's script, and the belief is changed.
 */
#ifndef WR_STORE_CALL_H
#define WR_STORE_CALL_H

#include "redis/script.h"
#include "store/keys.h"
#include "store/store.h"

enum wr_engine {
    WR_ENGINE_LIST,
    WR_ENGINE_STREAM
};

/* "list", "stream"; false: another word. */
bool wr_engine_parse(const char *word, enum wr_engine *out);
/* Of queues that the store makes. */
const char *wr_store_engine(const struct wr_store *store);

/* An order waits so long for a worker that is silent. */
#define WR_ORDER_KEEP_MS 3600000

struct wr_call {
    struct wr_store *store;
    struct wr_queue *queue; /* NULL: the script is about no queue */
    const struct wr_script *const *pair;
    enum wr_engine engine;
    const struct wr_script *script;
    struct wr_span *argv;
    size_t argc, cap;
    bool failed;     /* out of memory, or too many words: run says so */
    bool by_token;   /* the engine is that of a token, and tells nothing of the queue */
    bool one_engine; /* its words are for this engine alone: no other one is tried, but
                        the belief is changed */
    /* Redis writes last to the connection that had output first. With a PING before the
     * script that is ours: whom the script tells something hears of it sooner. */
    bool others_first;
    char numbers[8][24];
    size_t numbers_n;
    struct wr_span inline_argv[48];

    struct wr_reply *reply; /* after run; freed by fini */
    unsigned status;        /* index of the first word in script->statuses */
};

/* pair: the script of each engine. */
void wr_call_init(struct wr_call *call, struct wr_store *store, struct wr_queue *queue,
                  const struct wr_script *const *pair);
/* The same for a script that does not look at the queue's config: the token of a delivery
 * says which engine gave it out. */
void
wr_call_init_held(struct wr_call *call, struct wr_store *store, struct wr_queue *queue,
                  const struct wr_script *const *pair, struct wr_span token);
void wr_call_key(struct wr_call *call, const char *key); /* of a script about no queue */
void wr_call_arg(struct wr_call *call, struct wr_span word);
void wr_call_str(struct wr_call *call, const char *word);
/* The number's text lives in the call: eight of them at most. */
void wr_call_int(struct wr_call *call, int64_t number);
void wr_call_now(struct wr_call *call); /* the test clock, or empty */

/*
 * Runs the script, with repeats until the deadline. ENGINE, NOQUEUE and CORRUPT become
 * E_WRONG_ENGINE, E_NO_QUEUE and E_CORRUPT.
 */
enum weir_err wr_call_run(struct wr_call *call, struct weir_error *err) WEIR_MUST_CHECK;
/* The two halves of one try of it, on a connection of the caller's: hold writes it with
 * the next command that is sent; mute: nothing is received of it. */
enum weir_err wr_call_hold(struct wr_call *call, struct wr_conn *conn, bool mute,
                           struct weir_error *err) WEIR_MUST_CHECK;
enum weir_err wr_call_recv(struct wr_call *call, struct wr_conn *conn,
                           int64_t deadline_ms, struct weir_error *err) WEIR_MUST_CHECK;
void wr_call_fini(struct wr_call *call);

/* True if the script's first word was this. */
bool wr_call_is(const struct wr_call *call, const char *word);

/* The index of the reply's i-th element in words (NULL at the end); -1: none of them. */
int wr_call_word(const struct wr_call *call, size_t i, const char *const *words);

/* Pushes a hint to a worker: speed only, so failures do not matter. */
void
wr_store_tell_worker(struct wr_store *store, struct wr_span worker, const char *what);

struct wr_queue {
    struct wr_queue *next;
    struct wr_keys keys;
    char name[132];
    _Atomic bool enrolled; /* this process has put it into the registry */
    _Atomic int engine;    /* enum wr_engine: the one that answered last */
};

#endif
