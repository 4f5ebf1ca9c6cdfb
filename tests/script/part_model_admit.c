/* The model's producers; see model.h. */
#include "script/model_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A holder counts while it waits or runs, and where its record says so. */
struct model_job *
model_key_holder(const struct model *m, int key, const struct model_job *j)
{
    struct model_job *h = m->keys[key].holder;

    if (!h || h == j)
        return NULL;
    if (h->place == MODEL_PROCESSING)
        return h;
    if (!h->record || (h->place == MODEL_DEAD && !strchr(h->options.states, 'x')) ||
        (h->place == MODEL_KEPT && !strchr(h->options.states, 'k')))
        return NULL;
    return h;
}

/* The one that refuses an item its key. */
static struct model_job *
refuser(const struct model *m, const struct model_item *it, const struct model_job *j)
{
    struct model_job *h = model_key_holder(m, it->options.key, j);

    return h && it->mode[0] == 'l' && h->place == MODEL_PROCESSING ? NULL : h;
}

/* The one that runs, from which it takes the key over; NULL: none. */
static struct model_job *
taken_from(const struct model *m, const struct model_item *it, const struct model_job *j)
{
    struct model_job *h = model_key_holder(m, it->options.key, j);

    return h && it->mode[0] == 'l' && h->place == MODEL_PROCESSING ? h : NULL;
}

int64_t
model_due_of(const struct model *m, const char *due)
{
    int64_t at = due[0] ? strtoll(due + 1, NULL, 10) : 0;

    if (due[0] == '+')
        return at > 0 ? m->now + at : -1;
    return due[0] == '@' && at > m->now ? at : -1;
}

/* True when the job is refused; word and detail say why. */
static bool
is_refused(const struct model *m, const struct model_item *it, const char **word,
           char *detail, bool is_new)
{
    const struct model_job *j = it->job, *h;

    *word = "OTHER";
    snprintf(detail, 32, "%s", is_new || !j ? "ready" : model_place_word(j));
    if (j && j->record) {
        if (strcmp(j->head, it->head) == 0 && strcmp(j->tail, it->tail) == 0)
            *word = "EXISTS";
        return true;
    }
    if (j && j->place != MODEL_WAITS)
        return true;
    if (it->payload_len > MODEL_PAYLOAD_MAX) {
        *word = "BIG";
        snprintf(detail, 32, "%d", MODEL_PAYLOAD_MAX);
        return true;
    }
    if (it->options.key < 0)
        return false;
    *word = "UNIQUE";
    h = refuser(m, it, j);
    snprintf(detail, 32, "%s", h ? h->id : "-");
    return h || m->keys[it->options.key].window > m->now;
}

static void
write_record(const struct model *m, struct model_job *j, const struct model_item *it)
{
    /* What the job says itself goes before. */
    snprintf(j->defaults, sizeof(j->defaults), "%s",
             strstr(it->tail, " retry=") ? "" : m->defaults);
    snprintf(j->head, sizeof(j->head), "%s", it->head);
    snprintf(j->tail, sizeof(j->tail), "%s", it->tail);
    j->options = it->options;
}

/* Jobs of one call come in together: each is judged against what was before, and against
 * the earlier ones of the call. */
struct arrivals {
    struct model_job *ready[MODEL_BATCH], *delayed[MODEL_BATCH];
    size_t at[MODEL_BATCH]; /* ready: of which item */
    bool own[MODEL_BATCH];  /* ready: its id is that of its entry */
    int64_t due[MODEL_BATCH];
    size_t ready_n, delayed_n;
    int64_t windows[MODEL_KEYS];
    struct model_job *keys[MODEL_KEYS], *before[MODEL_KEYS];
    struct model_job *lined[MODEL_BATCH];
    int orders[MODEL_BATCH];
    size_t lined_n;
};

bool
model_is_in(struct model_job *const *list, size_t n, const struct model_job *j)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] == j)
            return true;
    }
    return false;
}

static void
arrive(struct model *m, struct arrivals *a, const struct model_item *it, size_t at,
       bool schedule)
{
    struct model_job *j = it->job ? it->job : model_new_job(m, "##");
    int64_t due = schedule ? model_due_of(m, it->due) : -1;

    j->record = true;
    j->enqueued_at = m->now;
    write_record(m, j, it);
    if (it->options.key >= 0) {
        struct model_job *runs = taken_from(m, it, j);

        if (runs && due < 0) { /* it waits for the end of that one */
            a->before[it->options.key] = runs;
            due = m->now + MODEL_PARK;
        }
        a->keys[it->options.key] = j;
        if (it->window > 0)
            a->windows[it->options.key] = m->now + it->window;
    }
    if (it->options.order >= 0) {
        bool waits = m->lines[it->options.order].n > 0;

        for (size_t i = 0; i < a->lined_n; i++)
            waits = waits || a->orders[i] == it->options.order;
        a->orders[a->lined_n] = it->options.order;
        a->lined[a->lined_n++] = j;
        if (waits)
            due = MODEL_PARKED + (due >= 0 ? due : 0);
    }
    if (due >= 0) {
        a->due[a->delayed_n] = due;
        a->delayed[a->delayed_n++] = j;
    } else {
        a->at[a->ready_n] = at;
        a->own[a->ready_n] = !it->job;
        a->ready[a->ready_n++] = j;
    }
}

/* It has the id of its entry, which `ids` does not say. */
static void
name_by_entry(struct model_job *j)
{
    snprintf(j->id, sizeof(j->id), MODEL_ENTRY, j->entry);
    j->indexed = 0;
}

/* One that comes alone, with no key and no line, and wakes a worker. */
static const struct model_offer *
offer_for(struct model *m, const struct arrivals *a)
{
    if (!m->hands || a->ready_n != 1 || a->delayed_n > 0 || a->lined_n > 0 ||
        a->ready[0]->options.key >= 0 || m->paused || m->wake)
        return NULL;
    return model_take_offer(m, a->ready[0]);
}

static void
settle(struct model *m, struct arrivals *a)
{
    const struct model_offer *offer = offer_for(m, a);

    m->let_in = false;
    for (size_t i = 0; i < a->ready_n; i++) {
        model_to_back(m, a->ready[i]);
        if (a->own[i])
            name_by_entry(a->ready[i]);
    }
    for (size_t i = 0; i < a->delayed_n; i++)
        model_delay(m, a->delayed[i], a->due[i]);
    model_join_lines(m, a->lined, a->orders, a->lined_n);
    for (int k = 0; k < MODEL_KEYS; k++) {
        if (a->keys[k]) {
            m->keys[k].holder = a->keys[k];
            m->keys[k].before = a->before[k];
        }
        if (a->windows[k] > 0)
            m->keys[k].window = a->windows[k];
    }
    m->n.enqueued += (int64_t)(a->ready_n + a->delayed_n);
    m->n.scheduled += (int64_t)a->delayed_n;
    if (a->ready_n > 0 && !m->let_in && !m->paused)
        m->wake = true; /* it is certain */
    if (offer)
        model_hand(m, offer, a->ready[0]);
}

/* The ids of those that got their entry's: it is said of the first, and of each that does
 * not follow one of them. */
static void
say_ids(const struct arrivals *a, struct wr_buf *out, char notes[128])
{
    size_t len = strcmp(notes, "-") == 0 ? 0 : strlen(notes);

    for (size_t i = 0; i < a->ready_n; i++) {
        if (!a->own[i] || (i > 0 && a->own[i - 1]))
            continue;
        say(out, "%zu IDS %s", a->at[i], a->ready[i]->id);
        len += (size_t)snprintf(notes + len, 128 - len, "%s%zu:IDS=%s",
                                len > 0 ? "," : "", a->at[i], a->ready[i]->id);
    }
}

/* Those whose names the client made up: a stream has the id of their entry for them. */
static void
name_items(struct model *m, struct model_item *items, size_t n, bool schedule)
{
    for (size_t i = 0; i < n; i++) {
        struct model_item *it = &items[i];

        if (it->made_up[0] &&
            !(m->stream && it->tabbed && !it->unique[0] && !(schedule && it->due[0]))) {
            it->job = model_job(m, it->made_up);
            it->job->meant = true;
        }
    }
}

/* A key that is still in the name of a job that comes in anew, from an earlier life of
 * its id, holds nobody off. Takes that name away; the caller puts it back. */
static struct model_job *
forget_newcomer_key(struct model *m, const struct arrivals *a, int key)
{
    struct model_job *h = key >= 0 ? m->keys[key].holder : NULL;

    if (!h || (!model_is_in(a->ready, a->ready_n, h) &&
               !model_is_in(a->delayed, a->delayed_n, h)))
        return NULL;
    m->keys[key].holder = NULL;
    return h;
}

static void
admit_items(struct model *m, const struct model_item *items, size_t n, bool schedule,
            struct wr_buf *out, char notes[128])
{
    struct arrivals a = {0};
    size_t len = 0;

    snprintf(notes, 128, "-");
    for (size_t i = 0; i < n; i++) {
        const struct model_item *it = &items[i];
        bool is_new = model_is_in(a.ready, a.ready_n, it->job) ||
                      model_is_in(a.delayed, a.delayed_n, it->job);
        int key = it->options.key;
        const char *word;
        char detail[32];
        struct model_job *stale = forget_newcomer_key(m, &a, key);
        bool no = is_refused(m, it, &word, detail, is_new);

        if (stale)
            m->keys[key].holder = stale;
        if (!no && key >= 0 && a.keys[key] && a.keys[key] != it->job) {
            no = true;
            word = "UNIQUE";
            snprintf(detail, sizeof(detail), "%s", a.keys[key]->id);
        }
        if (no) {
            say(out, "%zu %s %s", i, word, detail);
            len += (size_t)snprintf(notes + len, 128 - len, "%s%zu:%s",
                                    len > 0 ? "," : "", i, word);
        } else
            arrive(m, &a, it, i, schedule);
    }
    settle(m, &a);
    say_ids(&a, out, notes);
}

/* Notes as they were saved: words without details. */
static void
say_saved(struct wr_buf *out, const char *notes)
{
    char copy[128], *save = NULL;

    if (strcmp(notes, "-") == 0)
        return;
    snprintf(copy, sizeof(copy), "%s", notes);
    for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        char *colon = strchr(p, ':'), *detail = strchr(p, '=');

        *colon = '\0';
        if (detail)
            *detail++ = '\0';
        say(out, "%s %s %s", p, colon + 1, detail ? detail : "-");
    }
}

/* NULL: apply (*gap: calls in between are missing). */
static const char *
channel_word(const struct model *m, int channel, int64_t number, const char *first,
             size_t count, bool *gap)
{
    int64_t last;

    *gap = false;
    if (channel < 0 || !m->channels[channel].is_set)
        return NULL;
    last = m->channels[channel].number;
    *gap = number > last + 1;
    if (number == last)
        return m->channels[channel].count == count &&
                       strcmp(m->channels[channel].first, first) == 0
                   ? "BEFORE"
                   : "CLASH";
    return number < last ? "LATE" : NULL;
}

static void
save_call(struct model *m, int channel, int64_t number, const char *first, size_t count,
          const char *notes, const char *detail)
{
    if (channel < 0)
        return;
    m->channels[channel].is_set = true;
    m->channels[channel].number = number;
    m->channels[channel].at = m->now;
    m->channels[channel].count = count;
    snprintf(m->channels[channel].first, 16, "%s", first);
    snprintf(m->channels[channel].notes, 128, "%s", notes);
    snprintf(m->channels[channel].detail, 32, "%s", detail);
}

static void
admit(struct model *m, int channel, int64_t number, const struct model_item *items,
      size_t n, bool schedule, struct wr_buf *out)
{
    const char *first = items[0].made_up[0] ? items[0].made_up : items[0].job->id;
    bool gap;
    const char *word = channel_word(m, channel, number, first, n, &gap);
    struct model_item named[MODEL_BATCH];
    char notes[128];

    if (word) {
        say(out, "%s 0", word);
        if (strcmp(word, "BEFORE") == 0) {
            m->channels[channel].at = m->now;
            say_saved(out, m->channels[channel].notes);
        }
        return;
    }
    say(out, "%s 0", gap ? "GAP" : "OK");
    memcpy(named, items, n * sizeof(items[0]));
    name_items(m, named, n, schedule);
    admit_items(m, named, n, schedule, out, notes);
    for (size_t i = 0; i < n; i++) {
        if (named[i].job)
            named[i].job->meant = false;
    }
    save_call(m, channel, number, first, n, notes, "");
}

void
model_admit(struct model *m, int channel, int64_t number, const struct model_item *items,
            size_t n, bool schedule, struct wr_buf *out)
{
    m->hands = !schedule;
    admit(m, channel, number, items, n, schedule, out);
}

static void
wait_for(struct model *m, struct model_job *j, const struct model_tag *tag)
{
    size_t left = 0;

    for (size_t i = 0; i < j->waiters_n; i++) {
        if (j->waiters[i].until > m->now && j->waiters[i].channel != tag->channel)
            j->waiters[left++] = j->waiters[i];
    }
    model_check(left < MODEL_WAITERS, "too many wait");
    j->waiters[left] = (struct model_waiter){tag->channel, tag->number,
                                             m->now + tag->keep};
    j->waiters_n = left + 1;
}

void
model_call(struct model *m, int channel, int64_t number, const struct model_item *item,
           const struct model_tag *tag, struct wr_buf *out)
{
    struct model_item it = *item;
    char word[8] = "", note[16] = "", place[32] = "";

    it.tabbed = false; /* who waits knows the id */
    m->hands = true;
    admit(m, channel, number, &it, 1, it.due[0] != '\0', out);
    sscanf(out->ptr, "%7s 0 0 %15s %31s", word, note, place);
    if ((strcmp(word, "OK") == 0 || strcmp(word, "GAP") == 0) &&
        (!note[0] || (strcmp(note, "EXISTS") == 0 && strcmp(place, "dead") != 0 &&
                      strcmp(place, "done") != 0)))
        wait_for(m, it.job ? it.job : model_job(m, it.made_up), tag);
}

void
model_wait(struct model *m, struct model_job *j, const struct model_tag *tag, bool early,
           struct wr_buf *out)
{
    if (!early && !j->record)
        say(out, "GONE");
    else if (j->place == MODEL_DEAD || j->place == MODEL_KEPT)
        say(out, "ENDED");
    else {
        wait_for(m, j, tag);
        say(out, "OK");
    }
}

void
model_farewell(struct model *m, int channel, struct wr_buf *out)
{
    m->channels[channel].is_set = false;
    say(out, "OK");
}

/* A kept job is forgotten, and comes in as a new one. */
static void
live_again(struct model *m, struct model_job *j, int64_t due)
{
    if (j->has_state)
        model_free_key(m, j->state.key, j);
    m->n.kept_bytes -= model_record_bytes(j) + (int64_t)strlen(j->result);
    model_forget_job(j);
    j->place = MODEL_WAITS;
    j->record = true;
    j->enqueued_at = m->now;
    m->n.forgotten++;
    m->n.enqueued++;
    if (due >= 0) {
        model_delay(m, j, due);
        m->n.scheduled++;
    } else {
        model_to_back(m, j);
        model_wake_worker(m);
    }
}

/* What becomes of one that waits. own: its time, -1: none. */
static void
rewrite(struct model *m, struct model_job *j, bool changes, bool waits_behind,
        int64_t own)
{
    if (waits_behind)
        own = MODEL_PARKED + (own >= 0 ? own : 0);
    if (j->place == MODEL_DELAYED && (changes || waits_behind))
        model_delay(m, j, own >= 0 ? own : m->now);
    else if (j->place == MODEL_WAITS && own >= 0)
        model_defer(m, j, own);
    else if (j->place == MODEL_WAITS && m->stream)
        model_to_back(m, j); /* an entry cannot be changed */
    m->n.replaced++;
}

/* The time of a job's own: what is given, else what it has. -1: none. */
static int64_t
own_time(const struct model *m, const struct model_job *j, const char *due, bool parked)
{
    if (due[0] || j->place != MODEL_DELAYED || parked)
        return model_due_of(m, due);
    if (j->score >= MODEL_PARKED)
        return j->score > MODEL_PARKED ? j->score - MODEL_PARKED : -1;
    return j->score;
}

/* The job that is meant: the waiting holder of the key, if nobody has the id. */
static struct model_job *
replace_target(const struct model *m, const struct model_item *it)
{
    struct model_job *h = it->options.key >= 0 ? m->keys[it->options.key].holder : NULL;

    if (it->job->record || !it->mode[0] || !h || !h->record)
        return it->job;
    return h == it->job || h->place == MODEL_WAITS || h->place == MODEL_DELAYED ? h
                                                                                : NULL;
}

/* True: refused, and told why. */
static bool
refuse_replace(const struct model *m, const struct model_item *it,
               const struct model_job *j, struct wr_buf *out)
{
    const struct model_job *h;
    bool waits;

    if (!j || !j->record) {
        say(out, "ABSENT ");
        return true;
    }
    waits = j->place == MODEL_WAITS || j->place == MODEL_DELAYED;
    if (!waits && j->place != MODEL_KEPT) {
        say(out, "%s %s",
            strcmp(j->head, it->head) == 0 && strcmp(j->tail, it->tail) == 0 ? "EXISTS"
                                                                             : "OTHER",
            model_place_word(j));
        return true;
    }
    if (it->options.key < 0 || (waits && it->options.key == j->options.key))
        return false;
    h = refuser(m, it, j);
    if (!h && m->keys[it->options.key].window <= m->now)
        return false;
    say(out, "UNIQUE %s", h ? h->id : "-");
    return true;
}

void
model_replace(struct model *m, int channel, int64_t number, const struct model_item *it,
              struct wr_buf *out)
{
    struct model_job *j = replace_target(m, it), *before = NULL;
    int64_t due = model_due_of(m, it->due);
    bool again, gap, linked, parked, moves, waits_behind, was_behind;
    int old, key = it->options.key, line = it->options.order;
    int64_t own;
    const char *word = channel_word(m, channel, number, it->job->id, 1, &gap);
    char detail[32];

    if (it->payload_len > MODEL_PAYLOAD_MAX) {
        say(out, "BIG %d", MODEL_PAYLOAD_MAX);
        return;
    }
    if (word && strcmp(word, "BEFORE") == 0) {
        const char *notes = m->channels[channel].notes,
                   *at = strncmp(notes, "0:", 2) == 0 ? notes + 2 : "";
        const char *more = m->channels[channel].detail;

        say(out, "BEFORE %s %s%s", at, *more ? more : " ",
            *more ? "" : it->job->id); /* of an enqueue: neither place nor other id */
        return;
    }
    if (word) {
        say(out, "%s ", word);
        return;
    }
    if (refuse_replace(m, it, j, out))
        return;
    again = j->place == MODEL_KEPT;
    old = again ? -1 : j->options.key;
    if (key >= 0 && key != old)
        before = taken_from(m, it, j);
    linked = old >= 0 && m->keys[old].holder == j && m->keys[old].before;
    parked = linked && j->place == MODEL_DELAYED;
    if (!again || due >= 0)
        before = NULL;
    was_behind = j->place == MODEL_DELAYED && j->score >= MODEL_PARKED;
    moves = again || line != j->line - 1;
    own = own_time(m, j, it->due, parked);
    waits_behind = again && line >= 0 && m->lines[line].n > 0;
    if (again && waits_behind)
        live_again(m, j, MODEL_PARKED + (due >= 0 ? due : 0));
    else if (again)
        live_again(m, j, before ? m->now + MODEL_PARK : due);
    if (key != old) {
        model_free_key(m, old, j);
        model_next_key(m, old, j);
        if (key >= 0) {
            m->keys[key].holder = j;
            m->keys[key].before = before;
            if (it->window > 0)
                m->keys[key].window = m->now + it->window;
        }
    } else if (linked && (it->due[0] || line >= 0))
        m->keys[key].before = NULL;
    if (moves)
        model_leave_line(m, j);
    if (!again) {
        waits_behind = moves ? line >= 0 && m->lines[line].n > 0 : was_behind;
        rewrite(m, j,
                it->due[0] || was_behind ||
                    (parked && (key != old || key < 0 || line >= 0)),
                waits_behind, own);
    }
    if (moves && line >= 0)
        model_join_lines(m, &j, &line, 1);
    write_record(m, j, it);
    snprintf(detail, sizeof(detail), "%s %s", model_place_word(j), j->id);
    say(out, "%s %s", again ? "AGAIN" : "REPLACED", detail);
    save_call(m, channel, number, it->job->id, 1, again ? "0:AGAIN" : "0:REPLACED",
              detail);
}
