/* Cron entries in memory; the jobs that they make come in and go out as any others. */
#include "script/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const model_overlaps[4] = {"allow", "skip", "queue", "replace"};
enum overlap {
    ALLOW,
    SKIP,
    QUEUE,
    REPLACE
};

const char *
model_entry_name(int entry)
{
    static const char *const names[MODEL_ENTRIES] = {"e0", "e1"};

    return names[entry];
}

/* Adds an element to a reply. */
static void
say(struct wr_buf *out, const char *text)
{
    if (out->len > 0)
        wr_buf_add_str(out, " ");
    wr_buf_add_str(out, text);
}

static void
say_int(struct wr_buf *out, int64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, number);
    say(out, text);
}

void
model_entry_define(struct model_entry *e)
{
    size_t len = (size_t)snprintf(e->def, sizeof(e->def), "spec=s%d zone=Z", e->spec);

    if (e->overlap != ALLOW)
        len += (size_t)snprintf(e->def + len, sizeof(e->def) - len, " overlap=%s",
                                model_overlaps[e->overlap]);
    if (e->item.window > 0)
        len += (size_t)snprintf(e->def + len, sizeof(e->def) - len, " window=%" PRId64,
                                e->item.window);
    snprintf(e->def + len, sizeof(e->def) - len, "\n%s%s", e->item.head, e->item.tail);
}

static void
changed(struct model *m, struct model_cron *c)
{
    c->version++;
    c->version_at = m->now;
    m->due = true;
}

void
model_cron_put(struct model *m, struct model_cron *c, int entry, int64_t rev,
               const char *next, const struct model_entry *wanted, struct wr_buf *out)
{
    struct model_entry *e = &c->entries[entry];
    const char *word = "OK";

    if (e->is_set && strcmp(e->def, wanted->def) == 0)
        word = "SAME";
    else if (e->is_set && rev == 0)
        word = "EXISTS";
    else if (!e->is_set && rev > 0)
        word = "GONE";
    else if (e->is_set && rev > 0 && rev != e->rev)
        word = "CHANGED";
    if (strcmp(word, "OK") == 0) {
        if (!e->is_set) {
            *e = (struct model_entry){.is_set = true, .last = "-", .waits = "-"};
            snprintf(e->due, sizeof(e->due), "%s", next);
        } else if (e->spec != wanted->spec) {
            snprintf(e->due, sizeof(e->due), "%s", next);
        }
        e->rev = e->rev + 1 > m->now ? e->rev + 1 : m->now;
        e->spec = wanted->spec;
        e->overlap = wanted->overlap;
        e->item = wanted->item;
        memcpy(e->def, wanted->def, sizeof(e->def));
        changed(m, c);
    }
    say(out, word);
    say_int(out, e->is_set ? e->rev : 0);
}

void
model_cron_remove(struct model *m, struct model_cron *c, int entry, int64_t rev,
                  struct wr_buf *out)
{
    struct model_entry *e = &c->entries[entry];
    int left = 0;

    if (!e->is_set) {
        say(out, "GONE 0");
        return;
    }
    say(out, rev >= 0 && rev != e->rev ? "CHANGED" : "OK");
    say_int(out, e->rev);
    if (rev >= 0 && rev != e->rev)
        return;
    *e = (struct model_entry){.is_set = false};
    for (int i = 0; i < MODEL_ENTRIES; i++)
        left += c->entries[i].is_set;
    if (left > 0)
        changed(m, c);
    else
        c->version = 0;
}

void
model_cron_pause(struct model *m, struct model_cron *c, int entry, struct wr_buf *out)
{
    struct model_entry *e = &c->entries[entry];

    say(out, !e->is_set ? "GONE" : e->paused ? "AGAIN" : "OK");
    if (!e->is_set || e->paused)
        return;
    e->skipped += strcmp(e->waits, "-") != 0;
    snprintf(e->waits, sizeof(e->waits), "-");
    e->paused = true;
    changed(m, c);
}

void
model_cron_resume(struct model *m, struct model_cron *c, int entry, int64_t rev,
                  const char *next, struct wr_buf *out)
{
    struct model_entry *e = &c->entries[entry];
    const char *word = !e->is_set      ? "GONE"
                       : !e->paused    ? "AGAIN"
                       : e->rev != rev ? "CHANGED"
                                       : "OK";

    say(out, word);
    if (strcmp(word, "OK") != 0)
        return;
    e->paused = false;
    snprintf(e->due, sizeof(e->due), "%s", next);
    changed(m, c);
}

/* ---- jobs ---- */

static struct model_job *
job_of(struct model *m, int entry, const char *word)
{
    char id[16];

    snprintf(id, sizeof(id), "cron:%s:%.6s", model_entry_name(entry), word);
    return model_job(m, id);
}

/* The job before, if it still waits or runs. */
static struct model_job *
before(struct model *m, const struct model_entry *e, int entry)
{
    struct model_job *j;

    if (strcmp(e->last, "-") == 0)
        return NULL;
    j = job_of(m, entry, e->last);
    if (j->place == MODEL_PROCESSING)
        return j;
    return j->record && j->place != MODEL_DEAD && j->place != MODEL_KEPT ? j : NULL;
}

/* Its worker if it runs, else "". */
static void
call_off(struct model_cron *c, struct model *m, struct model_job *j, char worker[16])
{
    struct wr_buf reply = {0};

    c->replaced++;
    model_cancel(m, &j, 1, &reply);
    worker[0] = '\0';
    if (strncmp(reply.ptr, "OK FLAGGED ", 11) == 0)
        snprintf(worker, 16, "%s", reply.ptr + 11);
    wr_buf_fini(&reply);
}

/* False: refused; detail says why. */
static bool
make(struct model *m, struct model_entry *e, int entry, const char *word, const char *at,
     char detail[64])
{
    struct model_item it = e->item;
    struct wr_buf reply = {0};
    const char *note;
    bool ok;

    it.job = job_of(m, entry, word);
    snprintf(it.due, sizeof(it.due), "%s", at);
    snprintf(detail, 64, "%s", it.job->id);
    model_admit(m, -1, 0, &it, 1, true, &reply);
    note = strlen(reply.ptr) > 5 ? reply.ptr + 7 : ""; /* after "OK 0 0 " */
    ok = *note == '\0' || strncmp(note, "EXISTS", 6) == 0;
    if (ok) {
        snprintf(e->last, sizeof(e->last), "%s", word);
        e->at = m->now;
        e->fired++;
    } else {
        snprintf(detail, 64, "%s", note);
    }
    wr_buf_fini(&reply);
    return ok;
}

static void
count(struct model_cron *c, const char *word)
{
    c->made += strcmp(word, "OK") == 0;
    c->refused += strcmp(word, "REFUSED") == 0;
    c->skipped += strcmp(word, "SKIPPED") == 0;
    c->waited += strcmp(word, "WAITS") == 0;
}

static void
answer(const struct model_entry *e, const char *word, const char *detail,
       const char *worker, struct wr_buf *out)
{
    say(out, word);
    say(out, detail);
    say_int(out, e->rev);
    say(out, e->due);
    say(out, e->paused ? "p" : "-");
    say(out, e->waits);
    say(out, worker);
}

void
model_cron_fire(struct model *m, struct model_cron *c, int entry,
                const struct model_tick *t, struct wr_buf *out)
{
    struct model_entry *e = &c->entries[entry];
    int64_t tick = strtoll(t->tick[0] ? t->tick : t->expected, NULL, 10);
    char detail[64] = "", worker[16] = "";
    const char *word = "PASSED";
    struct model_job *j;

    if (!e->is_set) {
        say(out, "GONE");
        return;
    }
    if (e->rev != t->rev || strcmp(e->due, t->expected) != 0 || e->paused) {
        answer(e, "CHANGED", "", "", out);
        return;
    }
    if (tick > m->now) {
        snprintf(detail, sizeof(detail), "%" PRId64, (tick - m->now) * 1000);
        answer(e, "EARLY", detail, "", out);
        return;
    }
    snprintf(e->due, sizeof(e->due), "%s", t->next);
    e->skipped += t->passed;
    if (!t->tick[0]) {
        answer(e, word, "", "", out);
        return;
    }
    j = before(m, e, entry);
    if (j)
        snprintf(detail, sizeof(detail), "%s", j->id);
    if (j && e->overlap == SKIP) {
        word = "SKIPPED";
        e->skipped++;
    } else if ((j && e->overlap == QUEUE) ||
               (strcmp(e->waits, "-") != 0 && (!j || e->overlap == ALLOW))) {
        if (e->overlap == ALLOW || !j)
            snprintf(detail, sizeof(detail), "%s", j ? j->id : "");
        word = "WAITS";
        e->skipped += strcmp(e->waits, "-") != 0;
        snprintf(e->waits, sizeof(e->waits), "%s", t->tick);
    } else {
        if (j && e->overlap == REPLACE)
            call_off(c, m, j, worker);
        word = "OK";
        if (!make(m, e, entry, t->tick, t->at, detail)) {
            word = "REFUSED";
            e->skipped++;
        }
    }
    count(c, word);
    answer(e, word, detail, worker, out);
}

void
model_cron_run(struct model *m, struct model_cron *c, int entry, const char *run,
               struct wr_buf *out)
{
    struct model_entry *e = &c->entries[entry];
    bool waiting = run[0] == '\0';
    char detail[64] = "", worker[16] = "", mark[24];
    const char *word = "OK";
    struct model_job *j;

    if (!e->is_set) {
        say(out, "GONE");
        return;
    }
    snprintf(mark, sizeof(mark), "%s", waiting ? e->waits : run);
    if (strcmp(mark, "-") == 0) {
        answer(e, "NONE", "", "", out);
        return;
    }
    if (strcmp(mark, e->last) == 0) {
        answer(e, "OK", job_of(m, entry, mark)->id, "", out);
        return;
    }
    j = before(m, e, entry);
    if (j)
        snprintf(detail, sizeof(detail), "%s", j->id);
    if (j && e->overlap == QUEUE) {
        if (strcmp(e->waits, "-") == 0)
            snprintf(e->waits, sizeof(e->waits), "%s", mark);
        answer(e, "WAITS", detail, "", out);
        return;
    }
    if (j && e->overlap == SKIP && !waiting) {
        answer(e, "SKIPPED", detail, "", out);
        return;
    }
    if (waiting)
        snprintf(e->waits, sizeof(e->waits), "-");
    if (j && e->overlap == SKIP) {
        word = "SKIPPED";
        e->skipped++;
    } else {
        if (j && e->overlap == REPLACE)
            call_off(c, m, j, worker);
        if (!make(m, e, entry, mark, "", detail)) {
            word = "REFUSED";
            e->skipped += waiting;
        }
    }
    count(c, word);
    answer(e, word, detail, worker, out);
}

/* ---- the state as one text ---- */

void
model_cron_dump(const struct model_cron *c, struct wr_buf *out)
{
    wr_buf_clear(out);
    wr_buf_add_str(out, "cron");
    if (c->version > 0)
        wr_buf_addf(out, "\n=%" PRId64 " %" PRId64, c->version, c->version_at);
    for (int i = 0; i < MODEL_ENTRIES; i++) {
        const struct model_entry *e = &c->entries[i];

        if (e->is_set)
            wr_buf_addf(out,
                        "\n%s=%" PRId64 " %s %s %s %" PRId64 " %" PRId64 " %" PRId64
                        " %s\n%s",
                        model_entry_name(i), e->rev, e->due, e->paused ? "p" : "-",
                        e->last, e->at, e->fired, e->skipped, e->waits, e->def);
    }
}

const char model_cron_dump_script[] =
    "local all, names, out = redis.call('HGETALL', KEYS[1] .. 'cron'), {}, {'cron'}\n"
    "local texts = {}\n"
    "for i = 1, #all, 2 do\n"
    "  names[#names + 1] = all[i]\n"
    "  texts[all[i]] = all[i + 1]\n"
    "end\n"
    "table.sort(names)\n"
    "for _, name in ipairs(names) do\n"
    "  out[#out + 1] = name .. '=' .. texts[name]\n"
    "end\n"
    "return table.concat(out, '\\n')\n";
