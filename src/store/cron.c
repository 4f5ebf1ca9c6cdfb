#include "store/cron.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/call.h"
#include "store/scripts.gen.h"

#define SLICE 200

static struct wr_span
span_at(const struct wr_call *c, size_t i)
{
    return wr_reply_span(wr_reply_at(c->reply, i));
}

static int64_t
number_at(const struct wr_call *c, size_t i)
{
    return wr_reply_int(wr_reply_at(c->reply, i));
}

static void
copy_at(const struct wr_call *c, size_t i, char *out, size_t cap)
{
    struct wr_span s = span_at(c, i);

    snprintf(out, cap, "%.*s", (int)(s.len < cap ? s.len : cap - 1), (const char *)s.ptr);
}

static void
add_time(struct wr_call *c, int64_t ms)
{
    if (ms < 0)
        wr_call_str(c, "-");
    else
        wr_call_int(c, ms);
}

static void
add_rev(struct wr_call *c, int64_t rev)
{
    if (rev < 0)
        wr_call_str(c, "");
    else
        wr_call_int(c, rev);
}

/* ---- looking ---- */

enum weir_err
wr_store_cron_each(struct wr_store *store, struct wr_queue *queue,
                   char version[WR_CRON_VERSION_MAX], bool *same, int64_t *server_us,
                   wr_cron_fn each, void *context, struct weir_error *err)
{
    char cursor[24] = "0", known[WR_CRON_VERSION_MAX];
    enum weir_err rc = WEIR_OK;
    bool first = true;

    *same = false;
    *server_us = 0;
    snprintf(known, sizeof(known), "%s", version);
    do {
        struct wr_call c;

        wr_call_init(&c, store, queue, wr_pair_cron_list);
        wr_call_now(&c);
        wr_call_str(&c, known);
        wr_call_str(&c, cursor);
        wr_call_int(&c, SLICE);
        rc = wr_call_run(&c, err);
        if (rc == WEIR_OK) {
            *same = wr_call_is(&c, "SAME");
            if (first) /* what changes between two slices is seen at the next look */
                copy_at(&c, 1, version, WR_CRON_VERSION_MAX);
            *server_us = number_at(&c, 2);
            copy_at(&c, 3, cursor, sizeof(cursor));
            for (size_t i = 4; i + 1 < wr_reply_len(c.reply); i += 2)
                each(span_at(&c, i), span_at(&c, i + 1), context);
        }
        wr_call_fini(&c);
        known[0] = '\0';
        first = false;
    } while (rc == WEIR_OK && strcmp(cursor, "0") != 0);
    if (rc == WEIR_E_NO_QUEUE) {
        version[0] = '\0';
        return WEIR_OK;
    }
    return rc;
}

enum weir_err
wr_store_cron_get(struct wr_store *store, struct wr_queue *queue, const char *name,
                  int64_t *server_us, struct wr_reply **reply, struct wr_span *text,
                  struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *reply = NULL;
    *text = (struct wr_span){"", 0};
    wr_call_init(&c, store, queue, wr_pair_cron_list);
    wr_call_now(&c);
    wr_call_str(&c, "");
    wr_call_str(&c, "0");
    wr_call_int(&c, SLICE);
    wr_call_str(&c, name);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_E_NO_QUEUE || (rc == WEIR_OK && wr_reply_len(c.reply) < 6))
        rc = wr_fail(err, WEIR_E_NO_CRON, 0, "no cron entry \"%.100s\" in queue %s", name,
                     wr_queue_name(queue));
    if (rc == WEIR_OK) {
        *server_us = number_at(&c, 2);
        *text = span_at(&c, 5);
        *reply = c.reply;
        c.reply = NULL;
    }
    wr_call_fini(&c);
    return rc;
}

/* ---- people ---- */

/* The words that all of these share. */
static enum weir_err
read_word(const struct wr_call *c, const char *name, struct weir_error *err)
{
    if (wr_call_is(c, "GONE"))
        return wr_fail(err, WEIR_E_NO_CRON, 0, "no cron entry \"%.100s\" in queue %s",
                       name, wr_queue_name(c->queue));
    if (wr_call_is(c, "CHANGED"))
        return wr_fail(err, WEIR_E_CHANGED, 0,
                       "cron entry \"%.100s\" was changed meanwhile", name);
    return WEIR_OK;
}

static enum weir_err
put_once(struct wr_store *store, struct wr_queue *queue, const char *name, int64_t rev,
         int64_t next_ms, struct wr_span def, int64_t *new_rev, bool *same,
         struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    wr_call_init(&c, store, queue, wr_pair_cron_put);
    wr_call_now(&c);
    wr_call_str(&c, name);
    add_rev(&c, rev);
    add_time(&c, next_ms);
    wr_call_int(&c, WR_ENTRIES_MAX);
    wr_call_arg(&c, def);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK) {
        *new_rev = number_at(&c, 1);
        *same = wr_call_is(&c, "SAME");
        rc = read_word(&c, name, err);
    }
    if (rc == WEIR_OK && wr_call_is(&c, "EXISTS"))
        rc = wr_fail(err, WEIR_E_EXISTS, 0,
                     "cron entry \"%.100s\" of queue %s exists and says something else",
                     name, wr_queue_name(queue));
    if (rc == WEIR_OK && wr_call_is(&c, "FULL"))
        rc = wr_fail(err, WEIR_E_ARG, 0,
                     "queue %s has %d cron entries; no more are taken",
                     wr_queue_name(queue), WR_ENTRIES_MAX);
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_cron_put(struct wr_store *store, struct wr_queue *queue, const char *name,
                  int64_t rev, int64_t next_ms, struct wr_span def, int64_t *new_rev,
                  bool *same, struct weir_error *err)
{
    enum weir_err rc = put_once(store, queue, name, rev, next_ms, def, new_rev, same,
                                err);

    if (rc == WEIR_E_NO_QUEUE && rev <= WR_REV_NEW) {
        rc = wr_store_create(store, queue, NULL, NULL, err);
        if (rc == WEIR_OK)
            rc = put_once(store, queue, name, rev, next_ms, def, new_rev, same, err);
    }
    if (rc == WEIR_E_NO_QUEUE && rev > WR_REV_NEW)
        rc = wr_fail(err, WEIR_E_NO_CRON, 0, "no cron entry \"%.100s\" in queue %s", name,
                     wr_queue_name(queue));
    /* Schedulers serve the queues of the registry; a flush may have taken this one out.
     */
    if (rc == WEIR_OK && !*same)
        rc = wr_store_enroll(store, queue, err);
    return rc;
}

/* remove, pause, resume: name, then what the script takes besides. */
static enum weir_err
change(struct wr_call *c, const char *name, bool *was, struct weir_error *err)
{
    enum weir_err rc = wr_call_run(c, err);

    if (rc == WEIR_E_NO_QUEUE)
        rc = wr_fail(err, WEIR_E_NO_CRON, 0, "no cron entry \"%.100s\" in queue %s", name,
                     wr_queue_name(c->queue));
    if (rc == WEIR_OK)
        rc = read_word(c, name, err);
    if (rc == WEIR_OK && was)
        *was = wr_call_is(c, "AGAIN");
    wr_call_fini(c);
    return rc;
}

enum weir_err
wr_store_cron_remove(struct wr_store *store, struct wr_queue *queue, const char *name,
                     int64_t rev, struct weir_error *err)
{
    struct wr_call c;

    wr_call_init(&c, store, queue, wr_pair_cron_remove);
    wr_call_now(&c);
    wr_call_str(&c, name);
    add_rev(&c, rev);
    return change(&c, name, NULL, err);
}

enum weir_err
wr_store_cron_pause(struct wr_store *store, struct wr_queue *queue, const char *name,
                    bool *was, struct weir_error *err)
{
    struct wr_call c;

    wr_call_init(&c, store, queue, wr_pair_cron_pause);
    wr_call_now(&c);
    wr_call_str(&c, name);
    return change(&c, name, was, err);
}

enum weir_err
wr_store_cron_resume(struct wr_store *store, struct wr_queue *queue, const char *name,
                     int64_t rev, int64_t next_ms, bool *was, struct weir_error *err)
{
    struct wr_call c;

    wr_call_init(&c, store, queue, wr_pair_cron_resume);
    wr_call_now(&c);
    wr_call_str(&c, name);
    add_rev(&c, rev);
    add_time(&c, next_ms);
    return change(&c, name, was, err);
}

/* ---- ticks ---- */

static const char *const fire_words[] = {
    [WR_CRON_OK] = "OK",           [WR_CRON_PASSED] = "PASSED",
    [WR_CRON_SKIPPED] = "SKIPPED", [WR_CRON_WAITS] = "WAITS",
    [WR_CRON_REFUSED] = "REFUSED", [WR_CRON_NONE] = "NONE",
    [WR_CRON_EARLY] = "EARLY",     [WR_CRON_CHANGED] = "CHANGED",
    [WR_CRON_GONE] = "GONE",       NULL,
};

static enum weir_err
read_fired(struct wr_call *c, struct wr_cron_fired *out, struct weir_error *err)
{
    int word = wr_call_word(c, 0, fire_words);

    if (word < 0)
        return wr_fail(err, WEIR_E_CORRUPT, 0, "%s: odd answer", c->script->name);
    out->word = (enum wr_cron_word)word;
    if (out->word == WR_CRON_GONE)
        return WEIR_OK;
    copy_at(c, 1, out->detail, sizeof(out->detail));
    if (out->word == WR_CRON_EARLY)
        out->early_us = number_at(c, 1);
    out->rev = number_at(c, 2);
    out->due_ms = wr_reply_is(wr_reply_at(c->reply, 3), "-") ? -1 : number_at(c, 3);
    out->paused = !wr_reply_is(wr_reply_at(c->reply, 4), "-");
    out->waits = !wr_reply_is(wr_reply_at(c->reply, 5), "-");
    wr_store_tell_worker(c->store, span_at(c, 6), "cancel");
    return WEIR_OK;
}

enum weir_err
wr_store_cron_fire(struct wr_store *store, struct wr_queue *queue,
                   const struct wr_cron_tick *tick, struct wr_cron_fired *out,
                   struct weir_error *err)
{
    char at[32] = "";
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_cron_fired){.word = WR_CRON_GONE};
    if (tick->at_ms > 0)
        snprintf(at, sizeof(at), "@%lld", (long long)tick->at_ms);
    wr_call_init(&c, store, queue, wr_pair_cron_fire);
    wr_call_now(&c);
    wr_call_str(&c, tick->name);
    wr_call_int(&c, tick->rev);
    wr_call_int(&c, tick->expected_ms);
    if (tick->tick_ms < 0)
        wr_call_str(&c, "");
    else
        wr_call_int(&c, tick->tick_ms);
    add_time(&c, tick->next_ms);
    wr_call_str(&c, at);
    wr_call_int(&c, tick->passed);
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK)
        rc = read_fired(&c, out, err);
    wr_call_fini(&c);
    return rc;
}

enum weir_err
wr_store_cron_run(struct wr_store *store, struct wr_queue *queue, const char *name,
                  const char *run, struct wr_cron_fired *out, struct weir_error *err)
{
    struct wr_call c;
    enum weir_err rc;

    *out = (struct wr_cron_fired){.word = WR_CRON_GONE};
    wr_call_init(&c, store, queue, wr_pair_cron_run);
    wr_call_now(&c);
    wr_call_str(&c, name);
    wr_call_str(&c, run);
    wr_call_str(&c, *run ? "1" : ""); /* a person's may be repeated */
    rc = wr_call_run(&c, err);
    if (rc == WEIR_OK)
        rc = read_fired(&c, out, err);
    wr_call_fini(&c);
    return rc;
}
