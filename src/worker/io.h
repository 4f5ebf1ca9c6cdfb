/*
 * worker/io.h - the I/O loop of a worker child, shared by its parts (io*.c); private to
 * worker/. All of it belongs to the one thread that leads (io_lead.c).
 */
#ifndef WR_WORKER_IO_H
#define WR_WORKER_IO_H

#include "redis/conn.h"
#include "store/keys.h"
#include "worker/worker_internal.h"

#define WR_IO_CALL_MAX 256        /* jobs reserved or answered in one call */
#define WR_IO_KEYS_MAX 1000       /* that one wait watches */
#define WR_IO_AWAY_MAX_MS 1000    /* between tries when Redis is away */
#define WR_IO_BLOCK_MS 5000       /* a wait for markers */
#define WR_IO_BLOCK_SLACK_MS 2000 /* beyond the server's own timeout */

enum wr_io_state {
    WR_IO_RUN,
    WR_IO_DRAIN,
    WR_IO_STOP
};

struct wr_pending {
    struct wr_run *first, **last;
    size_t n;
};

struct wr_line {
    struct wr_line *next;
    struct wr_queue *queue;
    bool maybe_ready; /* ask it: a marker came, or the last answer was full */
    bool owes_call;   /* a marker was taken: call, also with nothing wanted */
    bool polled;      /* its marker is being asked for */
    bool watched;     /* the wait that stands would take its marker */
    int64_t again_ms; /* this queue refused: not before */
    int64_t look_ms;  /* nothing is claimed before: much of it is not for this worker */
    unsigned failures;
    int64_t
        repeat;   /* number of a call whose end is not known: it is made again; 0: none */
    size_t doubt; /* jobs it may have claimed */
    size_t outstanding; /* claimed and not answered */
    struct wr_pending answers[WR_VERDICTS];
    int64_t asked_ms;       /* when it was called last */
    char other_worker[100]; /* the last marker brought it a job by its call other_call */
    int64_t other_call;     /* 0: none to give back */

    size_t rank; /* its place in the order of a strict worker */
    unsigned weight;
    size_t reserved;   /* slots that it alone may use */
    bool competes;     /* had work in the last turn */
    double pass, plan; /* what it ran, divided by its weight; the same while planning */
    size_t quota;      /* what it may claim in this turn */
};

/* Which thread that is: io_lead.c. */
struct wr_lead {
    _Atomic int leader;      /* enum wr_io_leader */
    int timer_fd;            /* the main thread sleeps on it while another leads */
    _Atomic bool ticks;      /* the main thread winds the timer up itself */
    _Atomic unsigned lent_n; /* how often it was lent */
    unsigned lonely;         /* jobs in a row that came alone to an idle child */
    int64_t again_ms;        /* not offered before */
};

/* What was noted last of a job that runs alone, or waits for that. */
struct wr_alone_note {
    const struct wr_run *run; /* NULL: there is none */
    int64_t claimed_ms;       /* with it: a run is used again */
    int64_t since_ms;
    bool runs, said;
};

struct wr_io {
    struct wr_lead lead;
    const struct wr_io_options *o;
    const struct weir_worker *w;
    struct wr_runner *runner;
    struct wr_server *server;
    struct wr_store *store;
    struct wr_line *lines;
    size_t lines_n;

    enum wr_io_state state;
    int64_t grace_ms; /* of a drain that was ordered; -1: none was */
    bool hurry, orphaned, lapsed, replace, handed_back;
    int64_t began_ms;        /* DRAIN or STOP */
    int64_t deadline_ms;     /* of DRAIN or STOP */
    int64_t call;            /* number of the next reserve or exchange */
    size_t outstanding;      /* claimed and not answered */
    size_t doubt;            /* sum of the lines' */
    struct wr_run *printing; /* over, but the last of their output is being stored */
    struct wr_run *alone, **alone_last; /* wait until nothing else runs */
    size_t alone_n;
    struct wr_run *alone_runs;
    struct wr_alone_note alone_note;
    int64_t again_ms; /* Redis is away: not before */
    unsigned failures;
    int64_t registry_ms;
    struct wr_buf types; /* as struct wr_reserve has them; empty: everything */
    bool types_listed, knows_nothing;
    size_t long_n; /* slots whose job will not end in a moment */
    int64_t counted_ms;
    int64_t stop_again_ms, progress_ms, checked_ms;

    struct wr_conn *block; /* waits for hints, and for markers */
    int64_t block_id;      /* the server's number of it */
    char hint_key[WR_KEY_MAX];
    bool posted;
    bool watches;    /* what is posted takes markers too, not hints alone */
    bool released;   /* it was told to end, so that another can be posted */
    bool no_release; /* the server does not allow that */
    int64_t released_ms, rested_ms; /* rested_ms: since no marker was waited for */
    struct wr_line *offer_line;     /* its offer stands (io_offer.c); NULL: none does */
    int64_t offer_call;
    bool offer_unheard; /* its answer comes before the marker */
    bool offer_again;   /* it failed, and would not with the next wait */
    bool offers_well; /* the last one brought a job: the answer to the next can be spared
                       */
    bool may_mute;    /* the server allows that */
    int64_t polled_ms, shelved_ms;
    unsigned waits; /* that ended without a marker */
    int64_t posted_ms, block_ms, connect_ms, marker_lost_ms;
    bool timed_out; /* the last block ended without a marker: look, to be sure */

    /* What the call under way answers, and what it hears of that; the words of a wait.
     * Here, not on the stack: the build clears stack variables. */
    struct wr_answer answers[WR_IO_CALL_MAX];
    enum wr_answered words[WR_IO_CALL_MAX];
    struct wr_span wait_words[WR_IO_KEYS_MAX + 2];
};

/* ---- io.c ---- */

/* A worker that cannot reach Redis must see it well before its leases end. */
int64_t wr_io_command_timeout(const struct wr_io *io);
/* One turn. True: something was done; else *next is when to look again. */
bool wr_io_step(struct wr_io *io, int64_t *next);
/* Sleeps until then, or until something came: true. */
bool wr_io_rest(struct wr_io *io, int64_t next);

/* ---- io_lead.c ---- */

enum weir_err wr_io_lead_init(struct wr_lead *lead, struct weir_error *err);
void wr_io_lead_fini(struct wr_lead *lead);
/* Asked by who leads: is it the thread of a slot? */
bool wr_io_slot_leads(const struct wr_io *io);
/* Of the main thread: it sleeps, or has a slot's thread lead until it must itself. */
void wr_io_rest_or_offer(struct wr_io *io, int64_t next);

/* ---- io_lines.c ---- */

void wr_io_look_for_queues(struct wr_io *io, int64_t now);
/* Each turn begins with another queue. */
void wr_io_rotate_lines(struct wr_io *io);
struct wr_line *wr_io_line_of(struct wr_io *io, const struct wr_queue *queue);

/* ---- io_share.c ---- */

/* Divides what can be claimed in this turn among the queues that have work. */
void wr_io_share(struct wr_io *io);
/* Finished jobs whose acks go with the next calls: their slots are free already. */
size_t wr_io_ending(const struct wr_io *io);
void wr_io_note_share(struct wr_line *l, size_t n); /* it got n jobs */
/* Slots that jobs of this queue can start in, once `ending` of its jobs are answered. */
size_t wr_io_free_for(const struct wr_io *io, const struct wr_line *l, size_t ending);

/* ---- io_types.c ---- */

void wr_io_look_at_types(struct wr_io *io, int64_t now);

/* ---- io_claim.c ---- */

int64_t wr_io_jobs_left(const struct wr_io *io);
/* No reason stands against new jobs, but that of free slots. */
bool wr_io_may_claim(const struct wr_io *io);
/* What to claim in a call on this queue that gives `ending` answers; NULL: on any. */
void wr_io_want(const struct wr_io *io, const struct wr_line *l, size_t ending,
                struct wr_reserve *r);
/* Takes the batch: its jobs go to the slots. */
void
wr_io_admit(struct wr_io *io, struct wr_line *l, struct wr_batch *batch, int64_t sent_ms);
void wr_io_start_alone(struct wr_io *io);
/* Each turn: of a job that keeps others from this child, for those who look at it. */
void wr_io_note_alone(struct wr_io *io);
void wr_io_release_alone(struct wr_io *io);

/* ---- io_recall.c ---- */

/* Asks for the last errors of those that have one and whose handler can use it. */
void wr_io_recall(struct wr_io *io, struct wr_run *list);

/* ---- io_answer.c ---- */

void wr_io_put_answer(struct wr_line *l, enum wr_verdict kind, struct wr_run *run);
/* What finished becomes answers to give. */
void wr_io_collect(struct wr_io *io);
/* When an answer that waits for its output must be given; INT64_MAX: none waits. */
int64_t wr_io_printing_until(const struct wr_io *io);
size_t wr_io_answers_n(const struct wr_io *io);
/* Answers and claims of one queue. True if something was done. */
bool wr_io_serve_line(struct wr_io *io, struct wr_line *l);

/* ---- io_offer.c ---- */

/* Writes an offer that goes with the wait, if one is to be made; false: no memory. */
bool wr_io_hold_offer(struct wr_io *io);
/* Reads its answer, once a reply has come; false: the connection broke. */
bool wr_io_hear_offer(struct wr_io *io);
/* The wait is over otherwise: nobody knows what became of the offer, so its call is made.
 */
void wr_io_doubt_offer(struct wr_io *io);
/* The reply of the wait, a marker of this queue. True: it was the job of our offer, and
 * the reply is taken. */
bool wr_io_take_handed(struct wr_io *io, struct wr_line *l, struct wr_reply *reply);
/* It brought another worker's job, which is to be given back. */
void wr_io_note_marker(struct wr_line *l, const struct wr_handed *h);
/* Is this a worker that does, whenever it waits? */
bool wr_io_makes_offers(const struct wr_io *io);

/* ---- io_wait.c ---- */

/* Posts the blocking command, if there is nothing better to do. */
void wr_io_post_block(struct wr_io *io, int64_t now);
/* In a turn that does not call it: waits for hints alone, if it is time. */
void wr_io_listen(struct wr_io *io, int64_t now);
int64_t wr_io_listen_at(const struct wr_io *io); /* INT64_MAX: not as things are */
/* Reads its reply, if it has come. */
void wr_io_take_marker(struct wr_io *io);
/* When a reply that has not come by then will not come; INT64_MAX: none is awaited. */
int64_t wr_io_reply_until(const struct wr_io *io);
void wr_io_drop_block(struct wr_io *io);

/* ---- io_poll.c ---- */

/* While some queues keep it busy it does not wait for the others: it takes their markers
 * now and then. */
void wr_io_poll_markers(struct wr_io *io, int64_t now);

/* ---- io_runs.c ---- */

void wr_io_count_long(struct wr_io *io, int64_t now);
/* Answers when to look again. */
int64_t wr_io_check_runs(struct wr_io *io, int64_t now);
void wr_io_send_progress(struct wr_io *io, int64_t now);
void wr_io_send_last_progress(struct wr_io *io, struct wr_run *run, enum wr_verdict kind);

/* ---- io_stop.c ---- */

/* What was claimed and has not started goes back at once. */
void wr_io_release_waiting(struct wr_io *io);
void wr_io_begin_drain(struct wr_io *io, int64_t grace_ms, const char *why);
void wr_io_begin_stop(struct wr_io *io);
void wr_io_read_signals(struct wr_io *io);
void wr_io_check_end(struct wr_io *io);
bool wr_io_is_over(struct wr_io *io);
/* The supervisor is gone: this process ends soon, whatever hangs. */
void wr_io_end_soon(void);

#endif
