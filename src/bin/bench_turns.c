/*
 * weir bench: a start and a call, each in turns with the bare loop that it is compared
 * with. How long it takes to wake an idle machine changes from second to second, by more
 * than what is to be measured; so twenty of ours are followed by twenty of theirs, and so
 * on, and both meet the same machine. Each is measured between processes that have done
 * nothing for a millisecond. The worker and the other side of the bare loop are there all
 * the time.
 *
 * A turn of one would be shorter still, but then each is measured in the state in which
 * the other has left the processors and their caches: a bare hop became faster than it is
 * alone, and a start slower. In turns of twenty the ratio is that of one long row of
 * each, with less of its spread.
 */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "bin/bare_hops.h"
#include "bin/bench.h"

#define SAMPLES_MAX 1000
#define TURN 20
#define CALL_MS 10000

/* What is measured: us[] of it, once(), and its name. */
struct side {
    const char *name;
    enum weir_err (*once)(struct bench *b, struct bare *bare, int64_t *us,
                          struct weir_error *err);
    int64_t us[SAMPLES_MAX];
};

static void
key_of(const struct bench *b, const char *name, char out[100])
{
    snprintf(out, 100, "%s:%s", b->ns, name);
}

/* ---- a start, and what it cannot be faster than ---- */

/* Both sides note the time where they have got something, by the same words. */
static enum weir_err
since(struct bench *b, int64_t start, int64_t runs, int64_t *us, struct weir_error *err)
{
    enum weir_err rc = bench_wait_runs(b, runs, err);

    *us = bench_shared->started_us - start;
    return rc;
}

static enum weir_err
start_once(struct bench *b, struct bare *bare, int64_t *us, struct weir_error *err)
{
    struct weir_job job = bench_job(b, "noop");
    int64_t runs = bench_shared->runs + 1, start = wr_clock_us();
    enum weir_err rc = weir_job_enqueue(b->client, &job, NULL, err);

    (void)bare;
    return rc == WEIR_OK ? since(b, start, runs, us, err) : rc;
}

static enum weir_err
hop_once(struct bench *b, struct bare *bare, int64_t *us, struct weir_error *err)
{
    int64_t runs = bench_shared->runs + 1, start;
    char key[100];
    enum weir_err rc;

    key_of(b, "hop", key);
    start = wr_clock_us();
    rc = bare_push(bare, key, err);
    return rc == WEIR_OK ? since(b, start, runs, us, err) : rc;
}

/* The other side: a BLPOP, and the PING that stands for the one call which a worker needs
 * at the least before it runs anything. */
static enum weir_err
take_hops(struct bench *b, struct weir_error *err)
{
    char key[100];

    key_of(b, "hop", key);
    return bare_take(&b->where, key, bench_note_start, err);
}

/* ---- a call, and two hops ---- */

static enum weir_err
call_once(struct bench *b, struct bare *bare, int64_t *us, struct weir_error *err)
{
    struct weir_job job = bench_job(b, "noop");
    int64_t start = wr_clock_us();
    struct weir_job_view *v;
    enum weir_err rc = weir_call(b->client, &job, CALL_MS, &v, err);

    (void)bare;
    *us = wr_clock_us() - start;
    weir_job_view_free(v);
    return rc;
}

static enum weir_err
two_hops_once(struct bench *b, struct bare *bare, int64_t *us, struct weir_error *err)
{
    char there[100], back[100];
    int64_t start;
    enum weir_err rc;

    key_of(b, "there", there);
    key_of(b, "back", back);
    start = wr_clock_us();
    rc = bare_there_and_back(bare, there, back, err);
    *us = wr_clock_us() - start;
    return rc;
}

static enum weir_err
return_hops(struct bench *b, struct weir_error *err)
{
    char there[100], back[100];

    key_of(b, "there", there);
    key_of(b, "back", back);
    return bare_return(&b->where, there, back, err);
}

/* ---- turns ---- */

/* The first one of a turn does not count: it meets what the other side left behind, and
 * once makes connections. */
static enum weir_err
take_turn(struct bench *b, struct bare *bare, struct side *side, int64_t from, int64_t to,
          struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    for (int64_t i = from - 1; i < to && rc == WEIR_OK; i++) {
        int64_t us;

        rc = side->once(b, bare, &us, err);
        if (rc == WEIR_OK && i >= from)
            side->us[i] = us;
        poll(NULL, 0, 1); /* idle again */
        if (rc == WEIR_OK)
            rc = bench_go_on(err);
    }
    return rc;
}

static enum weir_err
take_turns(struct bench *b, struct bare *bare, struct side *sides, int64_t n,
           struct weir_error *err)
{
    enum weir_err rc = WEIR_OK;

    for (int64_t from = 0; from < n && rc == WEIR_OK; from += TURN) {
        int64_t to = n - from < TURN ? n : from + TURN;

        for (int i = 0; i < 2 && rc == WEIR_OK; i++)
            rc = take_turn(b, bare, &sides[i], from, to, err);
    }
    return rc;
}

/* p50 by p50. */
static void
tell(struct bench *b, struct side *sides, size_t n, const char *ratio)
{
    int64_t ours = bench_tell_spread(b, sides[0].name, sides[0].us, n, 1);
    int64_t bares = bench_tell_spread(b, sides[1].name, sides[1].us, n, 1);

    cli_json_real(b->json, ratio, bares > 0 ? (double)ours / (double)bares : 0);
}

/* sides[0] is ours, sides[1] is the yardstick, whose other side is `other`. */
static enum weir_err
compare(struct bench *b, struct side *sides,
        enum weir_err (*other)(struct bench *b, struct weir_error *err),
        const char *ratio, struct weir_error *err)
{
    int64_t n = b->jobs < SAMPLES_MAX ? b->jobs : SAMPLES_MAX;
    struct weir_error why;
    struct bare *bare = NULL;
    enum weir_err rc = bench_begin_worker(b, err);

    bench_shared->runs = 0;
    if (rc == WEIR_OK)
        rc = bench_begin(b, "other side of the bare loop", other, err);
    if (rc == WEIR_OK)
        rc = bare_open(&b->where, &bare, err);
    if (rc == WEIR_OK) {
        poll(NULL, 0, 500); /* until both wait */
        rc = take_turns(b, bare, sides, n, err);
    }
    bare_close(bare);
    if (rc == WEIR_E_TIMEOUT && bench_check(b, &why) != WEIR_OK)
        rc = wr_fail(err, why.code, 0, "%s", why.text);
    bench_end(b);
    if (rc == WEIR_OK)
        tell(b, sides, (size_t)n, ratio);
    return rc;
}

enum weir_err
bench_start(struct bench *b, struct weir_error *err)
{
    static struct side sides[] = {{.name = "start_latency_us", .once = start_once},
                                  {.name = "hop_and_ping_us", .once = hop_once}};

    return compare(b, sides, take_hops, "start_per_hop_and_ping", err);
}

enum weir_err
bench_call(struct bench *b, struct weir_error *err)
{
    static struct side sides[] = {{.name = "call_us", .once = call_once},
                                  {.name = "two_hops_us", .once = two_hops_once}};

    return compare(b, sides, return_hops, "call_per_two_hops", err);
}
