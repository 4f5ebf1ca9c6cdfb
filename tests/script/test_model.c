/*
 * Random operations on a queue and on its model: after each step the reply, the state,
 * and what was told to those who wait must be the same, and the equations true. Few ids,
 * used again and again, and jobs that name none; several workers and channels; old
 * handles; repeated calls; bodies and entries deleted by hand; a clock that steps.
 *
 *     WEIR_MODEL_SEED=7 WEIR_MODEL_STEPS=100000 script_test_model
 */
#include "script/rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/rand.h"
#include "script/model.h"

#define STEPS 50000 /* of each engine */
#define IDS 10
#define HANDLES 24
#define HISTORY 20
#define WORDS_MAX 64
#define ENTRIES_MAX 65536 /* older ones are in no handle any more */

static struct model model;
static struct model_cron cron;
static uint64_t seed, dice;
static long step_no, steps;

static struct model_job *ids[IDS];
static struct model_item last_items[IDS]; /* what was sent for each id */
static long made_up;                      /* names of those that have none */
static struct {
    int worker;
    struct model_job *job;
    int64_t token;
} handles[HANDLES];
static size_t handles_n;
static int64_t calls[MODEL_WORKERS]; /* numbers of the last reserve */
static char history[HISTORY][400];

/* The call being made. */
static struct {
    const char *script;
    char texts[WORDS_MAX][256];
    struct wr_span words[WORDS_MAX];
    size_t n;
} call;
static struct wr_buf expected;

static uint64_t
roll(void)
{
    uint64_t z = (dice += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int
below(int n)
{
    return (int)(roll() % (uint64_t)n);
}

static bool
one_in(int n)
{
    return below(n) == 0;
}

/* ---- writing a call ---- */

static void word(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void
word(const char *fmt, ...)
{
    va_list ap;

    assert_true(call.n < WORDS_MAX);
    va_start(ap, fmt);
    vsnprintf(call.texts[call.n], sizeof(call.texts[0]), fmt, ap);
    va_end(ap);
    call.words[call.n] = wr_span_str(call.texts[call.n]);
    call.n++;
}

/*
 * A stream: its entries by the numbers that the model gives them, in the order in which
 * they were added; what the server writes is turned into that.
 */
static struct {
    char ids[ENTRIES_MAX][40], last[40]; /* last: seen */
    int64_t n;                           /* the newest */
} entries;

/* The next number that the model gave after this one to an entry that is still there: one
 * that came and went in the same call was never seen. */
static int64_t
next_entry(int64_t after)
{
    int64_t next = 0;

    for (size_t i = 0; i < model.jobs_n; i++) {
        int64_t n = model.jobs[i].entry;

        if (n > after && (next == 0 || n < next))
            next = n;
    }
    return next > 0 ? next : after + 1;
}

static void
learn_entries(void)
{
    struct wr_span argv[] = {wr_span_str("XRANGE"),
                             wr_span_str(rig_key(WR_QUEUE_KEY_stream)),
                             {NULL, 0},
                             wr_span_str("+")};
    char from[48];
    struct wr_reply *reply;

    argv[2].ptr = from;
    argv[2].len = (size_t)snprintf(from, sizeof(from), "%s%s",
                                   entries.last[0] ? "(" : "-", entries.last);
    assert_int_equal(
        wr_conn_call(rig.conn, argv, 4, wr_clock_ms() + 20000, &reply, &rig.err),
        WEIR_OK);
    for (size_t i = 0; i < wr_reply_len(reply); i++) {
        struct wr_span id = wr_reply_span(wr_reply_at(wr_reply_at(reply, i), 0));

        int64_t number = next_entry(entries.n);

        while (entries.n < number)
            entries.ids[++entries.n % ENTRIES_MAX][0] = '\0';
        snprintf(entries.last, sizeof(entries.last), "%.*s", (int)id.len,
                 (const char *)id.ptr);
        snprintf(entries.ids[number % ENTRIES_MAX], sizeof(entries.ids[0]), "%s",
                 entries.last);
    }
    while (entries.n < model.entries)
        entries.ids[++entries.n % ENTRIES_MAX][0] = '\0';
    wr_reply_free(reply);
}

/* The number of an entry, 0 if it is none. */
static int64_t
entry_number(const char *id, size_t len)
{
    for (int64_t i = entries.n; i > 0 && i > entries.n - ENTRIES_MAX; i--) {
        const char *known = entries.ids[i % ENTRIES_MAX];

        if (strlen(known) == len && memcmp(known, id, len) == 0)
            return i;
    }
    return 0;
}

/* "1796000000000-3" becomes "#0000007", and "1796000000000-3.2", a token, its number. */
static void
number_entries(struct wr_buf *text)
{
    static struct wr_buf copy;
    const char *at = text->ptr;

    if (entries.n == 0)
        return;
    wr_buf_clear(&copy);
    wr_buf_add_str(&copy, "");
    while (*at) {
        size_t ms = strspn(at, "0123456789"),
               seq = ms >= 13 && at[ms] == '-' ? strspn(at + ms + 1, "0123456789") : 0;
        int64_t number = seq > 0 ? entry_number(at, ms + 1 + seq) : 0;
        size_t len = ms > 0 ? ms : 1;

        if (number > 0 && at[ms + 1 + seq] == '.') {
            char *end;
            long count = strtol(at + ms + 2 + seq, &end, 10), generation = 1;

            if (*end == '.')
                generation = strtol(end + 1, &end, 10);
            wr_buf_addf(&copy, "%" PRId64,
                        MODEL_TOKEN(number, (int64_t)generation, (int64_t)count));
            at = end;
        } else if (number > 0) {
            wr_buf_addf(&copy, MODEL_ENTRY, number);
            at += ms + 1 + seq;
        } else {
            wr_buf_add(&copy, at, len);
            at += len;
        }
    }
    wr_buf_clear(text);
    wr_buf_add(text, wr_buf_span(&copy).ptr, wr_buf_span(&copy).len);
}

/* As the server writes it. */
static void
token_word(int64_t token)
{
    int64_t entry = (token - MODEL_TOKENS) / 1000000,
            generation = (token - MODEL_TOKENS) / 1000 % 1000;
    char suffix[24] = "";

    if (generation > 1)
        snprintf(suffix, sizeof(suffix), ".%" PRId64, generation);
    if (token < MODEL_TOKENS)
        word("%" PRId64, token);
    else
        word("%s.%d%s", entries.ids[entry % ENTRIES_MAX], (int)(token % 1000), suffix);
}

/* A job's id as the server knows it. */
static void
id_word(const struct model_job *job)
{
    const char *number = strchr(job->id, '#');

    if (number)
        word("%.*s%s", (int)(number - job->id), job->id,
             entries.ids[strtoll(number + 1, NULL, 10) % ENTRIES_MAX]);
    else
        word("%s", job->id);
}

static void
begin(const char *script)
{
    call.script = script;
    call.n = 0;
    wr_buf_clear(&expected);
}

static void
now_word(void)
{
    word("%" PRId64, model.now);
}

static void
remember_call(void)
{
    char *line = history[step_no % HISTORY];
    size_t len = (size_t)snprintf(line, sizeof(history[0]), "%ld %s", step_no,
                                  call.script ? call.script : "");

    for (size_t i = 0; i < call.n && len < sizeof(history[0]); i++)
        len += (size_t)snprintf(line + len, sizeof(history[0]) - len, " '%s'",
                                call.texts[i]);
    for (; *line; line++) {
        if (*line == '\n')
            *line = '~';
    }
}

static void
print_history(void)
{
    print_error("seed %" PRIu64 ", step %ld; the last operations:\n", seed, step_no);
    for (long i = step_no >= HISTORY ? step_no - HISTORY + 1 : 0; i <= step_no; i++)
        print_error("  %s\n", history[i % HISTORY]);
}

static void
compare(const char *what, const char *got, const char *wanted)
{
    if (strcmp(got, wanted) == 0)
        return;
    print_history();
    /* cmocka would cut them */
    fprintf(stderr, "%s differs\n-- the queue --\n%s\n-- the model --\n%s\n", what, got,
            wanted);
    for (; *got && *got == *wanted; got++)
        wanted++;
    print_error("-- from where they differ --\n%.300s\n--\n%.300s\n", got, wanted);
    fail_msg("%s differs from the model, seed %" PRIu64 ", step %ld", what, seed,
             step_no);
}

/* ---- who waits for the ends of jobs ---- */

static struct wr_conn *ends; /* hears them */

static struct wr_reply *
ask_ends(const char *command, const char *argument)
{
    struct wr_span argv[] = {wr_span_str(command), wr_span_str(argument)};
    struct wr_reply *reply;

    assert_int_equal(wr_conn_call(ends, argv, 2, wr_clock_ms() + 20000, &reply, &rig.err),
                     WEIR_OK);
    return reply;
}

static void
listen_to_ends(void)
{
    assert_int_equal(
        wr_server_open(rig.server, "ends", wr_clock_ms() + 5000, &ends, &rig.err),
        WEIR_OK);
    for (int i = 0; i < 2; i++)
        wr_reply_free(ask_ends("SUBSCRIBE", model_waits_at(i)));
}

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines in the order of their letters: in which order jobs end in a call is open. */
static void
sort_lines(struct wr_buf *text)
{
    static struct wr_buf copy;
    char *lines[64], *save = NULL;
    size_t n = 0;

    wr_buf_clear(&copy);
    wr_buf_add(&copy, wr_buf_span(text).ptr, text->len);
    wr_buf_add_str(&copy, "");
    for (char *line = strtok_r(copy.ptr, "\n", &save); line && n < 64;
         line = strtok_r(NULL, "\n", &save))
        lines[n++] = line;
    if (n > 0)
        qsort(lines, n, sizeof(lines[0]), compare_texts);
    wr_buf_clear(text);
    wr_buf_add_str(text, "");
    for (size_t i = 0; i < n; i++)
        wr_buf_addf(text, "%s\n", lines[i]);
}

/* What was published since the last time: it comes before the answer to a PING. Where
 * nothing is expected it is asked for now and then. */
static void
compare_ends(void)
{
    static struct wr_buf heard;
    bool more = true;

    if (model.told.len == 0 && step_no % 4 != 0)
        return;
    wr_buf_clear(&heard);
    wr_buf_add_str(&heard, "");
    for (struct wr_reply *reply = ask_ends("PING", "x"); more;) {
        struct wr_span text = wr_reply_span(wr_reply_at(reply, 2));

        more = wr_reply_is(wr_reply_at(reply, 0), "message");
        for (size_t i = 0; more && i < text.len; i++)
            wr_buf_addf(
                &heard, "%c",
                ((const char *)text.ptr)[i] == '\n' ? ' ' : ((const char *)text.ptr)[i]);
        if (more)
            wr_buf_add_str(&heard, "\n");
        wr_reply_free(reply);
        if (more)
            assert_int_equal(wr_conn_recv(ends, wr_clock_ms() + 20000, &reply, &rig.err),
                             WEIR_OK);
    }
    number_entries(&heard);
    sort_lines(&heard);
    sort_lines(&model.told);
    compare("what those who wait heard", heard.ptr, model.told.ptr);
    wr_buf_clear(&model.told);
}

/* The script of the other engine, as somebody calls it who does not know that the queue
 * moved: it answers that, and changes nothing. */
static void
run_on_the_wrong_engine(void)
{
    static const char *const blind[] = {"extend",   "progress", "log",
                                        "farewell", "forget",   "purge",
                                        "trim",     "inspect",  "create"};
    enum rig_engine right = rig.engine;
    struct wr_reply *reply;

    for (size_t i = 0; i < sizeof(blind) / sizeof(blind[0]); i++) {
        if (strcmp(call.script, blind[i]) == 0)
            return;
    }
    if (strncmp(rig_script_of(call.script)->name, "common/", 7) == 0)
        return;
    rig.engine = right == RIG_LIST ? RIG_STREAM : RIG_LIST;
    reply = rig_script_argv(call.script, call.words, call.n);
    rig.engine = right;
    if (!wr_reply_is(wr_reply_at(reply, 0), "ENGINE")) {
        print_history();
        fail_msg("%s of the other engine does not say ENGINE", call.script);
    }
    wr_reply_free(reply);
}

/* Runs the call that was written; its reply must be the model's. */
static void
run(void)
{
    static struct wr_buf got;
    struct wr_reply *reply;

    if (one_in(20))
        run_on_the_wrong_engine();
    reply = rig_script_argv(call.script, call.words, call.n);

    rig_reply_text(reply, &got);
    wr_reply_free(reply);
    rig.engine = model.stream ? RIG_STREAM : RIG_LIST;
    if (model.stream)
        learn_entries();
    number_entries(&got);
    compare("the reply", got.ptr, expected.ptr);
    compare_ends();
}

/* ---- what the parts of a call are ---- */

/* In which states it holds its key, as the record says it. */
static size_t
make_states(struct model_item *it, char *out, size_t cap)
{
    int bits = one_in(2) ? below(8) : 0;

    if (bits == 0)
        return 0;
    snprintf(it->options.states, sizeof(it->options.states), "%s%s%s",
             bits & 1 ? "s" : "", bits & 2 ? "x" : "", bits & 4 ? "k" : "");
    return (size_t)snprintf(out, cap, " unique_states=ready,delayed%s%s%s",
                            bits & 1 ? "" : ",processing", bits & 2 ? ",dead" : "",
                            bits & 4 ? ",done" : "");
}

/* What the scripts are told about both keys. */
static void
write_keys(struct model_item *it)
{
    it->unique[0] = '\0';
    if (it->options.key >= 0 || it->options.order >= 0)
        snprintf(it->unique, sizeof(it->unique), "%" PRId64 " %s%s%s%s%s", it->window,
                 model_key(it->options.key), it->mode[0] ? " " : "", it->mode,
                 it->options.order >= 0 ? " =" : "", model_line(it->options.order));
}

static void
make_item(struct model_item *it, int index)
{
    static const char *const fills =
        "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
        "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy";
    size_t len = 0;

    if (index >= 0 && last_items[index].job && one_in(3)) {
        *it = last_items[index];
        return;
    }
    memset(it, 0, sizeof(*it));
    if (index >= 0)
        it->job = ids[index];
    else
        snprintf(it->made_up, sizeof(it->made_up), "m%ld", ++made_up);
    it->tabbed = index < 0;
    it->options.key = one_in(3) ? below(MODEL_KEYS) : -1;
    it->options.max_deliveries = one_in(3) ? below(4) : 3;
    it->options.keep = one_in(3) ? 1000 + below(20000) : 0;
    it->options.expires = one_in(6) ? 1 + below(9000) : 0;
    it->window = it->options.key >= 0 && one_in(3) ? 1 + below(4000) : 0;
    it->payload_len = (size_t)(one_in(12) ? 60 + below(10) : below(8));
    snprintf(it->head, sizeof(it->head), "1 t%d", below(2));
    if (one_in(5))
        len += (size_t)snprintf(it->tail, sizeof(it->tail), " retry=2");
    if (it->options.max_deliveries != 3)
        len += (size_t)snprintf(it->tail + len, sizeof(it->tail) - len,
                                " max_deliveries=%" PRId64, it->options.max_deliveries);
    if (it->options.keep > 0)
        len += (size_t)snprintf(it->tail + len, sizeof(it->tail) - len, " keep=%" PRId64,
                                it->options.keep);
    if (it->options.expires > 0)
        len += (size_t)snprintf(it->tail + len, sizeof(it->tail) - len,
                                " expires=%" PRId64, it->options.expires);
    if (it->options.key >= 0) {
        len += (size_t)snprintf(it->tail + len, sizeof(it->tail) - len, " unique=%s",
                                model_key(it->options.key));
        len += make_states(it, it->tail + len, sizeof(it->tail) - len);
        if (one_in(3))
            snprintf(it->mode, sizeof(it->mode), one_in(2) ? "r" : "l");
    }
    it->options.order = one_in(4) ? below(MODEL_LINES) : -1;
    if (it->options.order >= 0)
        len += (size_t)snprintf(it->tail + len, sizeof(it->tail) - len, " order=%s",
                                model_line(it->options.order));
    write_keys(it);
    if (it->options.order >= 0 && it->mode[0] == 'l')
        snprintf(it->mode, sizeof(it->mode), "r"); /* it keeps its place in its line */
    snprintf(it->tail + len, sizeof(it->tail) - len, "\n%.*s", (int)it->payload_len,
             fills);
    if (index >= 0)
        last_items[index] = *it;
}

/* -1: of a job that names no id; not too many of them at a time. */
static int
any_index(void)
{
    size_t n = 0;

    for (size_t i = IDS; i < model.jobs_n; i++)
        n += model.jobs[i].record;
    return one_in(4) && n < 16 ? -1 : below(IDS);
}

static void
make_due(struct model_item *it)
{
    static const int spans[] = {0, 1, 700, 3000, 20000};

    it->due[0] = '\0';
    if (one_in(5))
        return;
    if (one_in(3))
        snprintf(it->due, sizeof(it->due), "@%" PRId64, model.now + below(6000) - 1500);
    else
        snprintf(it->due, sizeof(it->due), "+%d", spans[below(5)]);
}

static struct model_job *
any_job(void)
{
    if (one_in(6) && model.jobs_n > IDS)
        return &model.jobs[IDS + below((int)model.jobs_n - IDS)];
    return ids[below(IDS)];
}

/* A delivery that is held now; false: there is none. */
static bool
pick_held(struct model_answer *a, int *worker, bool first)
{
    size_t from = (size_t)below((int)model.jobs_n);

    for (size_t i = 0; i < model.jobs_n; i++) {
        struct model_job *j = &model.jobs[(from + i) % model.jobs_n];

        if (j->place != MODEL_PROCESSING)
            continue;
        a->job = j;
        a->token = j->state.token;
        for (int w = 0; first && w < MODEL_WORKERS; w++) {
            if (strcmp(model_worker(w), j->state.worker) == 0)
                *worker = w;
        }
        return true;
    }
    return false;
}

/* Fills n answers from old and new handles; answers the worker who sends them. */
static int
make_answers(struct model_answer *a, size_t n)
{
    int worker = below(MODEL_WORKERS);

    for (size_t i = 0; i < n; i++) {
        size_t h = handles_n > 0 ? (size_t)below((int)handles_n) : 0;

        a[i] = (struct model_answer){.job = any_job(), .token = below(50)};
        if (one_in(2) && pick_held(&a[i], &worker, i == 0))
            a[i].delay = 0;
        else if (handles_n > 0 && !one_in(20)) {
            a[i].job = handles[h].job;
            a[i].token = handles[h].token;
            if (i == 0 && !one_in(12))
                worker = handles[h].worker;
        }
        a[i].delay = below(4) * 900;
        a[i].limit = one_in(2) ? 0 : 1 + below(20000);
        a[i].snoozed = one_in(3);
        a[i].started = !one_in(3);
        if (one_in(2))
            snprintf(a[i].facts, sizeof(a[i].facts), "wall:%d", below(9));
        if (one_in(2))
            snprintf(a[i].text, sizeof(a[i].text), "text%d", below(3));
        /* the same one twice in a call */
        if (i > 0 && one_in(8))
            a[i] = a[i - 1];
    }
    return worker;
}

static void
remember_handles(int worker)
{
    for (size_t i = 0; i < model.claims[worker].n; i++) {
        size_t at = handles_n < HANDLES ? handles_n++ : (size_t)below(HANDLES);

        handles[at].worker = worker;
        handles[at].job = model.claims[worker].list[i].job;
        handles[at].token = model.claims[worker].list[i].token;
    }
}

/* ---- operations ---- */

static int64_t
channel_number(int channel)
{
    int64_t last = channel >= 0 && model.channels[channel].is_set
                       ? model.channels[channel].number
                       : 0;

    switch (below(10)) {
    case 0:
        return last; /* the same again: before or clash */
    case 1:
        return last > 1 ? last - 1 : 1;
    case 2:
        return last + 2 + below(3);
    default:
        return last + 1;
    }
}

static struct {
    struct model_item items[3];
    size_t n;
    bool schedule;
} sent[MODEL_CHANNELS]; /* the last call of each channel */

static struct model_tag
any_tag(void)
{
    return (struct model_tag){below(2), below(1000), 1 + below(9000)};
}

static void
tag_words(const struct model_tag *tag)
{
    word("%s/%" PRId64, model_waits_at(tag->channel), tag->number);
    word("%" PRId64, tag->keep);
}

static void
admit_words(int channel, int64_t number)
{
    now_word();
    word("%s", model_channel(channel));
    word("%" PRId64, number);
    word("mark");
}

/* has_due: "" if it has none; not: no word. */
static void
item_words(const struct model_item *it, bool tabbed, bool has_due)
{
    if (it->made_up[0])
        word("%s%s", tabbed && rig.engine == RIG_STREAM ? "\t" : "", it->made_up);
    else
        id_word(it->job);
    word("%s", it->head);
    word("%s", it->tail);
    word("%s", it->unique);
    if (has_due)
        word("%s", it->due);
}

static void
admit_items(int channel, int64_t number, const struct model_item *items, size_t n,
            bool schedule)
{
    begin(schedule ? "schedule" : "enqueue");
    admit_words(channel, number);
    for (size_t i = 0; i < n; i++)
        item_words(&items[i], items[i].tabbed, schedule);
    remember_call();
    model_admit(&model, channel, number, items, n, schedule, &expected);
    run();
}

/* The same moves and the same channels, and somebody waits for the end. */
static void
call_item(int channel, int64_t number, const struct model_item *item, bool schedule)
{
    struct model_tag tag = any_tag();
    struct model_item it = *item;

    if (!schedule)
        it.due[0] = '\0';
    begin("call");
    admit_words(channel, number);
    tag_words(&tag);
    item_words(&it, false, true);
    remember_call();
    model_call(&model, channel, number, &it, &tag, &expected);
    run();
}

static void
op_admit(void)
{
    struct model_item items[3];
    int channel = below(MODEL_CHANNELS + 1) - 1;
    int64_t number = channel_number(channel);
    bool schedule = one_in(2);
    size_t n = 1 + (size_t)below(3);
    for (size_t i = 0; i < n; i++) {
        make_item(&items[i], any_index());
        make_due(&items[i]);
    }
    if (channel >= 0 && sent[channel].n > 0 && number == model.channels[channel].number &&
        !one_in(3)) {
        n = sent[channel].n;
        schedule = sent[channel].schedule;
        memcpy(items, sent[channel].items, sizeof(items));
    }
    if (n == 1 && one_in(2))
        call_item(channel, number, &items[0], schedule);
    else
        admit_items(channel, number, items, n, schedule);
    if (channel >= 0) {
        memcpy(sent[channel].items, items, sizeof(items));
        sent[channel].n = n;
        sent[channel].schedule = schedule;
    }
}

static void
op_wait(void)
{
    struct model_job *job = any_job();
    struct model_tag tag = any_tag();
    bool early = one_in(3);

    begin("wait");
    now_word();
    id_word(job);
    tag_words(&tag);
    word(early ? "1" : "");
    remember_call();
    model_wait(&model, job, &tag, early, &expected);
    run();
}

static void
op_replace(void)
{
    int channel = below(MODEL_CHANNELS + 1) - 1;
    int64_t number = channel_number(channel);
    struct model_item it;

    make_item(&it, below(IDS));
    make_due(&it);
    if (channel >= 0 && sent[channel].n == 1 && sent[channel].items[0].job &&
        number == model.channels[channel].number && !one_in(3))
        it = sent[channel].items[0];
    begin("replace");
    now_word();
    word("%s", model_channel(channel));
    word("%" PRId64, number);
    id_word(it.job);
    word("%s", it.head);
    word("%s", it.tail);
    word("%s", it.unique);
    word("%s", it.due);
    remember_call();
    model_replace(&model, channel, number, &it, &expected);
    if (channel >= 0) {
        sent[channel].items[0] = it;
        sent[channel].n = 1;
        sent[channel].schedule = it.due[0] != '\0';
    }
    run();
}

static void
op_farewell(void)
{
    int channel = below(MODEL_CHANNELS);

    begin("farewell");
    word("%s", model_channel(channel));
    remember_call();
    model_farewell(&model, channel, &expected);
    run();
}

static struct model_reserve
make_reserve(int worker)
{
    struct model_reserve r = {.worker = worker,
                              .free = (size_t)below(4),
                              .ahead = (size_t)(one_in(2) ? 0 : below(3)),
                              .lease = 2000 + 1000 * below(9),
                              .bytes = one_in(4) ? 40 + below(60) : 262144,
                              .type = one_in(4) ? one_in(2) ? "t0" : "t1" : NULL};

    if (!one_in(8))
        calls[worker]++;
    r.call = calls[worker];
    r.keep = one_in(3) ? 1 + below(20000) : 0;
    return r;
}

static const char *
any_types(const char *type)
{
    return !type                     ? ""
           : strcmp(type, "t0") != 0 ? " t0x t1 "
           : one_in(2)               ? " xt1 t0 "
                                     : "! t1 xt0 ";
}

static void
reserve_words(const struct model_reserve *r)
{
    now_word();
    word("%s", model_worker(r->worker));
    word("%" PRId64, r->call);
    word("%zu", r->free);
    word("%zu", r->ahead);
    word("%" PRId64, r->lease);
    word("%" PRId64, r->bytes);
    word("%s", any_types(r->type));
    word("%" PRId64, r->keep);
}

static void
op_reserve(void)
{
    struct model_reserve r = make_reserve(below(MODEL_WORKERS));

    begin("reserve");
    reserve_words(&r);
    remember_call();
    model_reserve(&model, &r, &expected);
    remember_handles(r.worker);
    run();
}

/* An idle worker says which call it would make: mostly the next. */
static void
op_offer(void)
{
    int worker = below(MODEL_WORKERS);
    int64_t wait = one_in(4) ? below(500) : 5000 + below(30000);
    struct model_offer o = {.worker = worker,
                            .call = calls[worker] + (one_in(8) ? below(4) - 1 : 1),
                            .lease = 2000 + 1000 * below(9),
                            .type = one_in(4) ? one_in(2) ? "t0" : "t1" : NULL,
                            .keep = one_in(3) ? 1 + below(20000) : 0};

    if (o.call < 1)
        o.call = 1;
    snprintf(o.types, sizeof(o.types), "%s", any_types(o.type));
    begin("offer");
    now_word();
    word("%s", model_worker(worker));
    word("%" PRId64, o.call);
    word("%" PRId64, o.lease);
    word("%" PRId64, wait);
    word("%s", o.types);
    word("%" PRId64, o.keep);
    remember_call();
    model_offer(&model, &o, wait, &expected);
    run();
}

/* One that asks for nothing, so that a worker that waits may get it. */
static void
op_lone(void)
{
    struct model_item it;
    int tries = one_in(8) ? 20 : 0; /* some are special all the same */

    if ((!model.wake || model.brought.call > 0) && !one_in(3))
        op_offer();
    do
        make_item(&it, any_index());
    while (++tries < 20 &&
           (it.options.key >= 0 || it.options.order >= 0 ||
            it.options.max_deliveries != 3 || (it.job && it.job->record)));
    it.due[0] = '\0';
    if (one_in(2))
        call_item(-1, 0, &it, false);
    else
        admit_items(-1, 0, &it, 1, false);
}

static void
withdraw(int worker, int64_t number)
{
    bool off = below(4) == 0; /* else no job would be handed over most of the time */

    begin("withdraw");
    now_word();
    word("%s", model_worker(worker));
    word("%" PRId64, number);
    word("%s", off ? "1" : "");
    remember_call();
    model_withdraw(&model, worker, number, off, &expected);
    run();
}

static void by_hand(const char *what, const char *detail);

/* A worker takes the marker. One that brings its own job has that now, and will not make
 * the call; another's is given back. */
static void
op_pop(void)
{
    int64_t number = model.brought.call;
    int worker = model.brought.worker;

    if (number == 0 && one_in(6)) {
        worker = below(MODEL_WORKERS);
        withdraw(worker, calls[worker] + below(3) - 1);
        return;
    }
    by_hand("LPOP", "wake");
    model_pop_marker(&model);
    redis_do(rig.redis, "LPOP %s", rig_key(WR_QUEUE_KEY_wake));
    if (number > 0 && one_in(3)) {
        withdraw(worker, number);
    } else if (number > 0) {
        remember_handles(worker);
        if (calls[worker] < number)
            calls[worker] = number;
    }
}

static void
answer_words(const struct model_answer *a, size_t n, const char *kind)
{
    for (size_t i = 0; i < n; i++) {
        id_word(a[i].job);
        token_word(a[i].token);
        if (kind[0] == 'r') {
            word("%" PRId64, a[i].delay);
            word(a[i].snoozed ? "snoozed" : "failed");
        } else if (kind[0] == 'b')
            word("permanent");
        else if (kind[0] == 'e')
            word("%" PRId64, a[i].limit);
        else if (kind[0] == 'h')
            word(a[i].started ? "1" : "0");
        if (strchr("arbt", kind[0]))
            word("%s", a[i].text);
        if (strchr("arb-t", kind[0]))
            word("%s", a[i].facts);
        if (kind[0] == 't')
            word("follow-up of %s", a[i].job->id);
    }
}

static void
op_exchange(void)
{
    struct model_answer a[3];
    size_t n = (size_t)below(4);
    int worker = make_answers(a, n);
    struct model_reserve r = make_reserve(worker);

    begin("exchange");
    reserve_words(&r);
    answer_words(a, n, "ack");
    remember_call();
    model_exchange(&model, &r, a, n, &expected);
    remember_handles(r.worker);
    run();
}

static void
op_answer(void)
{
    static const struct {
        const char *script;
        void (*change)(struct model *m, int worker, const struct model_answer *a,
                       size_t n, struct wr_buf *out);
        const char *kind;
    } rows[] = {{"ack", model_ack, "ack"},
                {"ack_then", model_ack_then, "then"},
                {"retry", model_retry, "retry"},
                {"bury", model_bury, "bury"},
                {"release", model_release, "-"}};
    size_t which = (size_t)below(5), n = 1 + (size_t)below(3);
    struct model_answer a[3];
    int worker = make_answers(a, n);

    begin(rows[which].script);
    now_word();
    word("%s", model_worker(worker));
    answer_words(a, n, rows[which].kind);
    remember_call();
    rows[which].change(&model, worker, a, n, &expected);
    run();
}

static void
op_extend(void)
{
    struct model_answer a[3];
    size_t n = 1 + (size_t)below(3);
    int worker = make_answers(a, n);
    int64_t lease = one_in(6) ? 200000 : 5000 + below(9000);

    begin("extend");
    now_word();
    word("%s", model_worker(worker));
    word("%" PRId64, lease);
    answer_words(a, n, "extend");
    remember_call();
    model_extend(&model, worker, lease, a, n, &expected);
    run();
}

static void
op_progress(void)
{
    struct model_answer a;
    int worker = make_answers(&a, 1);

    begin("progress");
    word("%s", model_worker(worker));
    id_word(a.job);
    token_word(a.token);
    word("%s", a.text);
    word("%s", ""); /* kept as long as the job */
    remember_call();
    model_progress(&model, worker, &a, &expected);
    run();
}

static void
op_log(void)
{
    struct model_log limits = {.head = 8, .tail = 20, .piece = 6};
    size_t n = 1 + (size_t)below(3);
    struct model_answer a[3];
    int worker = make_answers(a, n);

    limits.bytes = one_in(3) ? 20 + below(100) : one_in(8) ? 0 : 10000;
    begin("log");
    word("%s", model_worker(worker));
    word("%" PRId64, limits.head);
    word("%" PRId64, limits.tail);
    word("%" PRId64, limits.piece);
    word("%d", MODEL_RUNS);
    word("%" PRId64, limits.bytes);
    for (size_t i = 0; i < n; i++) {
        const struct model_job *j = a[i].job;
        int64_t taken = j->runs_n > 0 ? j->runs[j->runs_n - 1].taken : 0;

        snprintf(a[i].text, sizeof(a[i].text), "%.*s", below(10), "abcdefghijkl");
        a[i].at = one_in(4) ? below(30) : taken;
        a[i].last = one_in(5);
        id_word(j);
        token_word(a[i].token);
        word("%" PRId64, a[i].at);
        word(a[i].last ? "1" : "0");
        word("%s", a[i].text);
    }
    remember_call();
    model_log(&model, worker, &limits, a, n, &expected);
    run();
}

static void
op_promote(void)
{
    size_t limit = 1 + (size_t)below(4);

    begin("promote");
    now_word();
    word("%zu", limit);
    remember_call();
    model_promote(&model, limit, &expected);
    run();
}

static void
op_reclaim(void)
{
    struct model_reclaim r = {.lease = 10000,
                              .lease_max = 60000,
                              .gap = below(5) * 1000,
                              .limit = 1 + (size_t)below(5)};

    if (one_in(10))
        r.gap = one_in(2) ? 5000 + below(2) : -1;
    r.quiet = one_in(10);
    r.last = model.now - r.gap + (one_in(8) ? below(5000) - 2500 : below(2001) - 1000);
    begin("reclaim");
    now_word();
    word("%" PRId64, r.lease);
    if (r.gap < 0) {
        word("%s", "");
        word("%s", "");
    } else {
        word("%" PRId64, r.gap);
        word("%" PRId64, r.last);
    }
    word(r.quiet ? "1" : "0");
    word("%" PRId64, r.lease_max);
    word("%zu", r.limit);
    remember_call();
    model_reclaim(&model, &r, &expected);
    run();
}

static void
op_reclaim_held(void)
{
    struct model_answer a[3];
    size_t n = (size_t)below(4);
    int worker = make_answers(a, n);

    begin("reclaim_held");
    now_word();
    word("%s", model_worker(worker));
    word("%s", "");
    answer_words(a, n, "held");
    remember_call();
    model_reclaim_held(&model, worker, a, n, &expected);
    run();
}

static void
op_forget(void)
{
    size_t limit = 1 + (size_t)below(3), count = one_in(4) ? (size_t)below(3) : 1000;
    int64_t bytes = one_in(4) ? below(100) : 1000000;

    begin("forget");
    now_word();
    word("%zu", limit);
    word("%zu", count);
    word("%" PRId64, bytes);
    remember_call();
    model_forget(&model, limit, count, bytes, &expected);
    run();
}

static void
op_sweep(void)
{
    int idle = 5000 + below(30000);

    begin("sweep");
    now_word();
    word("%d", idle);
    word("0");
    word("0");
    word("100");
    remember_call();
    model_sweep(&model, idle, &expected);
    run();
}

static void
op_cancel(void)
{
    struct model_job *jobs[3];
    size_t n = 1 + (size_t)below(3);

    begin("cancel");
    now_word();
    for (size_t i = 0; i < n; i++) {
        jobs[i] = i > 0 && one_in(4) ? jobs[i - 1] : any_job();
        id_word(jobs[i]);
    }
    remember_call();
    model_cancel(&model, jobs, n, &expected);
    run();
}

static void
op_reschedule(void)
{
    struct model_item it = {.job = any_job()};

    make_due(&it);
    begin("reschedule");
    now_word();
    id_word(it.job);
    word("%s", it.due);
    remember_call();
    model_reschedule(&model, it.job, it.due, &expected);
    run();
}

/* replay or purge */
static void
op_dead(void)
{
    struct model_job *jobs[3];
    bool purge = one_in(3), named = !one_in(3);
    size_t n = 1 + (size_t)below(3), limit = 1 + (size_t)below(purge ? 30 : 3);
    int64_t before = one_in(2) ? -1 : model.now - below(4000);
    size_t skip = purge || one_in(2) ? 0 : (size_t)below(3);

    begin(purge ? "purge" : "replay");
    word("%zu", limit);
    if (before < 0)
        word("%s", "");
    else
        word("%" PRId64, before);
    if (!purge)
        word("%zu", skip);
    for (size_t i = 0; named && i < n; i++) {
        jobs[i] = i > 0 && one_in(5) ? jobs[i - 1] : any_job();
        id_word(jobs[i]);
    }
    remember_call();
    if (purge)
        model_purge(&model, named ? jobs : NULL, n, limit, before, &expected);
    else
        model_replay(&model, named ? jobs : NULL, n, limit, before, skip, &expected);
    run();
}

static void
op_trim(void)
{
    struct model_trim t = {.limit = 1 + (size_t)below(4)};

    if (one_in(2))
        t.count = (size_t)below(4);
    if (one_in(3))
        t.age = below(30000);
    if (one_in(3))
        t.bytes = below(400);
    begin("trim");
    now_word();
    word("%zu", t.limit);
    word("%zu", t.count);
    word("%" PRId64, t.age);
    word("%" PRId64, t.bytes);
    remember_call();
    model_trim(&model, &t, &expected);
    run();
}

static void
op_pause(void)
{
    bool pause = one_in(4);

    begin(pause ? "pause" : "resume");
    if (pause) {
        now_word();
        word("me");
        word("-");
    }
    remember_call();
    if (pause)
        model_pause(&model, &expected);
    else
        model_resume(&model, &expected);
    run();
}

static void
op_inspect(void)
{
    struct model_job *job = any_job();

    begin("inspect");
    now_word();
    id_word(job);
    word("100000");
    remember_call();
    model_inspect(&model, job, &expected);
    run();
}

static void
by_hand(const char *what, const char *detail)
{
    call.script = NULL;
    call.n = 0;
    word("%s %s", what, detail);
    remember_call();
}

/* The record in `jobs`, or the entry of a stream. */
static void
lose_by_hand(struct model_job *job)
{
    const char *id;

    /* What is copied has it still. */
    if (job->gone ||
        (model.move.is_on && model.move.has_copy && job->place == MODEL_WAITS)) {
        by_hand("nothing", "");
        return;
    }
    by_hand("lost body", job->id);
    if (job->entry > 0) {
        redis_do(rig.redis, "XDEL %s %s", rig_key(WR_QUEUE_KEY_stream),
                 entries.ids[job->entry % ENTRIES_MAX]);
    } else {
        id_word(job);
        id = call.texts[call.n - 1];
        redis_do(rig.redis, "HDEL %s %s", rig_key(WR_QUEUE_KEY_jobs), id);
    }
    model_lose_body(&model, job);
}

/* One that a stream holds; this one if there is none. */
static struct model_job *
some_entry(struct model_job *job)
{
    for (int i = 0; i < 20; i++) {
        struct model_job *j = &model.jobs[below((int)model.jobs_n)];

        if (j->entry > 0)
            return j;
    }
    return job;
}

/* Of a stream that has entries; the next reserve makes it again. */
static void
op_lose_group(void)
{
    struct model_reserve r = make_reserve(below(MODEL_WORKERS));
    bool there = false;

    for (size_t i = 0; i < model.jobs_n; i++)
        there = there || (model.jobs[i].entry > 0 && !model.jobs[i].gone);
    if (!there || model.move.is_on)
        return;
    r.call = ++calls[r.worker];
    if (model.claims[r.worker].is_set && model.claims[r.worker].call >= r.call)
        return; /* it was made for it, by an offer that another one withdrew: a repeat */
    redis_do(rig.redis, "XGROUP DESTROY %s workers", rig_key(WR_QUEUE_KEY_stream));
    begin("reserve");
    reserve_words(&r);
    remember_call();
    model_lose_group(&model, &r, &expected);
    run();
}

static void
op_hand(void)
{
    struct model_job *job = any_job();

    if (one_in(10)) {
        op_lose_group();
        return;
    }

    switch (below(3)) {
    case 0:
        lose_by_hand(one_in(2) ? job : some_entry(job));
        break;
    case 1: /* somebody takes the marker */
        by_hand("DEL", "wake");
        model_pop_marker(&model);
        redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_wake));
        break;
    default:
        by_hand("DEL", "due");
        model.due = false;
        redis_do(rig.redis, "DEL %s", rig_key(WR_QUEUE_KEY_due));
    }
}

/* A step of a move. One that is begun is often left alone, or taken back. */
static void
op_migrate(void)
{
    bool moves = model.move.is_on,
         to_stream = moves ? model.move.to_stream : !model.stream;
    size_t limit = 1 + (size_t)below(one_in(3) ? 40 : 5);
    size_t bytes = one_in(4) ? 20 + (size_t)below(100) : 262144;

    if (!moves && !one_in(8))
        return;
    if (moves && one_in(12))
        to_stream = !to_stream;
    begin("migrate");
    now_word();
    word(to_stream ? "stream" : "list");
    word("mover");
    word("%zu", limit);
    word("%zu", bytes);
    remember_call();
    model_migrate(&model, to_stream, limit, bytes, &expected);
    run();
}

static void
op_configure(void)
{
    bool set = one_in(2);

    begin("create");
    word("mark");
    word("retry");
    word("%s", set ? "7" : "");
    remember_call();
    snprintf(model.defaults, sizeof(model.defaults), "%s", set ? " retry=7" : "");
    wr_buf_add_str(&expected, "AGAIN");
    run();
}

static void
op_clock(void)
{
    int64_t by = below(1500);

    if (one_in(6))
        by = below(20000);
    else if (one_in(8))
        by = -below(3000);
    else if (one_in(60))
        by = one_in(2) ? 3600000 : -3600000;
    model.now += by;
    by_hand("clock", by < 0 ? "back" : "on");
}

/* ---- cron entries ---- */

static void
any_tick(char out[24])
{
    if (one_in(12))
        snprintf(out, 24, one_in(3) ? "9000000000000" : "-");
    else
        snprintf(out, 24, "%d", 1 + below(4));
}

static int64_t
any_rev(int entry)
{
    return one_in(8) ? below(3) : cron.entries[entry].rev;
}

static void
rev_word(int64_t rev)
{
    if (rev < 0)
        word("%s", ""); /* any */
    else
        word("%" PRId64, rev);
}

static void
op_cron_put(int entry)
{
    struct model_entry wanted = {.spec = below(2), .overlap = below(4)};
    int64_t rev = one_in(3) ? -1 : one_in(3) ? 0 : any_rev(entry);
    char next[24];

    make_item(&wanted.item, below(IDS));
    wanted.item.mode[0] = '\0'; /* an entry has none */
    wanted.item.job = NULL;
    write_keys(&wanted.item);
    model_entry_define(&wanted);
    if (cron.entries[entry].is_set && one_in(6))
        wanted = cron.entries[entry];
    any_tick(next);
    begin("cron_put");
    now_word();
    word("%s", model_entry_name(entry));
    rev_word(rev);
    word("%s", next);
    word("9");
    assert_true(strlen(wanted.def) < sizeof(call.texts[0]));
    word("%s", wanted.def);
    remember_call();
    model_cron_put(&model, &cron, entry, rev, next, &wanted, &expected);
    run();
}

static void
op_cron_fire(int entry)
{
    const struct model_entry *e = &cron.entries[entry];
    struct model_tick t = {.rev = any_rev(entry), .passed = one_in(3) ? below(3) : 0};

    snprintf(t.expected, sizeof(t.expected), "%s",
             e->is_set && strcmp(e->due, "-") != 0 && !one_in(8) ? e->due : "1");
    if (!one_in(6))
        snprintf(t.tick, sizeof(t.tick), "%s", t.expected);
    any_tick(t.next);
    if (one_in(4))
        snprintf(t.at, sizeof(t.at), "@%" PRId64, model.now + below(4000) - 500);
    begin("cron_fire");
    now_word();
    word("%s", model_entry_name(entry));
    word("%" PRId64, t.rev);
    word("%s", t.expected);
    word("%s", t.tick);
    word("%s", t.next);
    word("%s", t.at);
    word("%" PRId64, t.passed);
    remember_call();
    model_cron_fire(&model, &cron, entry, &t, &expected);
    run();
}

static void
op_cron_run(int entry)
{
    char by_hand_word[8] = "";

    if (one_in(3))
        snprintf(by_hand_word, sizeof(by_hand_word), "r%d", below(2));
    begin("cron_run");
    now_word();
    word("%s", model_entry_name(entry));
    word("%s", by_hand_word);
    word("%s", ""); /* words come again */
    remember_call();
    model_cron_run(&model, &cron, entry, by_hand_word, &expected);
    run();
}

static void
op_cron_switch(int entry)
{
    bool pause = one_in(3);
    int64_t rev = any_rev(entry);
    char next[24];

    any_tick(next);
    begin(pause ? "cron_pause" : "cron_resume");
    now_word();
    word("%s", model_entry_name(entry));
    if (!pause) {
        word("%" PRId64, rev);
        word("%s", next);
    }
    remember_call();
    if (pause)
        model_cron_pause(&model, &cron, entry, &expected);
    else
        model_cron_resume(&model, &cron, entry, rev, next, &expected);
    run();
}

static void
op_cron_remove(int entry)
{
    int64_t rev = one_in(2) ? -1 : any_rev(entry);

    begin("cron_remove");
    now_word();
    word("%s", model_entry_name(entry));
    rev_word(rev);
    remember_call();
    model_cron_remove(&model, &cron, entry, rev, &expected);
    run();
}

static void
op_cron(void)
{
    int entry = below(MODEL_ENTRIES), what = below(20);

    if (what < 4)
        op_cron_put(entry);
    else if (what < 13)
        op_cron_fire(entry);
    else if (what < 16)
        op_cron_run(entry);
    else if (what < 19)
        op_cron_switch(entry);
    else
        op_cron_remove(entry);
}

/* ---- a run ---- */

static const struct {
    int weight;
    void (*run)(void);
} operations[] = {
    {16, op_admit},   {6, op_replace},   {2, op_wait},     {1, op_farewell},
    {18, op_reserve}, {6, op_exchange},  {14, op_answer},  {4, op_extend},
    {3, op_progress}, {8, op_promote},   {6, op_reclaim},  {3, op_reclaim_held},
    {4, op_forget},   {1, op_sweep},     {3, op_cancel},   {4, op_reschedule},
    {8, op_dead},     {2, op_trim},      {4, op_pause},    {2, op_inspect},
    {3, op_hand},     {1, op_configure}, {10, op_migrate}, {10, op_clock},
    {8, op_log},      {10, op_cron},     {8, op_offer},    {8, op_lone},
    {8, op_pop},
};

/* For a while nothing waits, as far as it goes: only then is a job handed to a worker
 * that offers to take it. */
static long calm;

static void
calm_step(void)
{
    static void (*const some[])(void) = {
        op_offer,    op_offer,   op_offer,  op_offer,        op_offer,    op_offer,
        op_lone,     op_lone,    op_lone,   op_lone,         op_lone,     op_lone,
        op_lone,     op_lone,    op_answer, op_answer,       op_answer,   op_pop,
        op_clock,    op_clock,   op_cancel, op_reclaim_held, op_exchange, op_reserve,
        op_progress, op_hand,    op_sweep,  op_migrate,      op_extend,   op_log,
        op_reclaim,  op_reclaim,
    };

    calm--;
    if (model.paused && !one_in(8))
        op_pause();
    else if (model.wake && !one_in(model.brought.call > 0 ? 2 : 8))
        op_pop();
    else if (model.ready_n > 0 && !one_in(model.brought.call > 0 ? 2 : 8))
        op_reserve();
    else
        some[below(sizeof(some) / sizeof(some[0]))]();
}

static void
one_step(void)
{
    int total = 0, pick;
    size_t i = 0;

    if (calm == 0 && one_in(60))
        calm = 1 + below(80);
    if (calm > 0) {
        calm_step();
        return;
    }
    for (size_t k = 0; k < sizeof(operations) / sizeof(operations[0]); k++)
        total += operations[k].weight;
    for (pick = below(total); pick >= operations[i].weight; i++)
        pick -= operations[i].weight;
    operations[i].run();
}

/* The scripts that write all state down, by their hashes. */
static char dump_sha[48], cron_sha[48];

static void
load(const char *script, char sha[48])
{
    struct wr_reply *reply;

    assert_int_equal(wr_conn_do(rig.conn, wr_clock_ms() + 20000, &reply, &rig.err,
                                "SCRIPT", "LOAD", script, (char *)NULL),
                     WEIR_OK);
    wr_reply_copy(reply, sha, 48);
    wr_reply_free(reply);
}

/* What it writes, with entries by their numbers. */
static void
read_state(const char *sha, struct wr_buf *out)
{
    struct wr_reply *reply;
    struct wr_span text;

    assert_int_equal(wr_conn_do(rig.conn, wr_clock_ms() + 20000, &reply, &rig.err,
                                "EVALSHA", sha, "1", "weir:{q}:", (char *)NULL),
                     WEIR_OK);
    text = wr_reply_span(reply);
    wr_buf_clear(out);
    wr_buf_add(out, text.ptr, text.len);
    wr_reply_free(reply);
    number_entries(out);
}

static void
compare_state(void)
{
    static struct wr_buf wanted, got;

    read_state(dump_sha, &got);
    model_dump(&model, &wanted);
    compare("the state", got.ptr, wanted.ptr);
    read_state(cron_sha, &got);
    model_cron_dump(&cron, &wanted);
    compare("the entries", got.ptr, wanted.ptr);
}

static void
compare_sums(void)
{
    char now[32];
    struct wr_span words[] = {{now, 0}};
    struct wr_reply *reply;
    struct weir_audit a;
    int64_t missing = model_missing_entries(&model);
    int64_t bodies = model.move.is_on ? 0 : -model_missing_bodies(&model);

    words[0].len = (size_t)snprintf(now, sizeof(now), "%" PRId64, model.now);
    reply = rig_script_argv("audit", words, 1);
    assert_int_equal(wr_audit_read(reply, &a, &rig.err), WEIR_OK);
    wr_reply_free(reply);
    if (a.gap != missing || a.gap_processing != model.ungrouped ||
        a.gap_ready != missing - model.ungrouped || a.gap_delayed != 0 ||
        a.gap_dead != 0 || a.gap_kept != 0 || a.gap_bodies != bodies) {
        print_history();
        fail_msg("an equation is off: sum %" PRId64 ", processing %" PRId64
                 ", ready %" PRId64 ", delayed %" PRId64 ", dead %" PRId64
                 ", kept %" PRId64 ", bodies %" PRId64 " not %" PRId64,
                 a.gap, a.gap_processing, a.gap_ready, a.gap_delayed, a.gap_dead,
                 a.gap_kept, a.gap_bodies, bodies);
    }
}

/* ready > 0 and not paused: a marker stands, or somebody took it by hand. */
static void
no_key_has_an_end(void)
{
    for (int key = 0; key < WR_QUEUE_KEY_COUNT; key++) {
        const char *ttl;

        if (key == WR_QUEUE_KEY_heartbeat_promote ||
            key == WR_QUEUE_KEY_heartbeat_reclaim)
            continue;
        ttl = redis_do(rig.redis, "TTL %s",
                       wr_key_text(&rig.keys, (enum wr_queue_key)key));
        assert_true(strcmp(ttl, "-1") == 0 || strcmp(ttl, "-2") == 0);
    }
}

static long
from_env(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static void
print_counters(void)
{
#define X(name) print_message(#name "=%" PRId64 " ", model.n.name);
    MODEL_COUNTERS(X)
#undef X
    print_message("\n");
}

static void
the_queue_does_what_the_model_does_T09(void **state)
{
    int64_t began = wr_clock_ms();

    (void)state;
    wr_rand_bytes(&seed, sizeof(seed));
    seed = (uint64_t)from_env("WEIR_MODEL_SEED", (long)(seed % 1000000000));
    steps = from_env("WEIR_MODEL_STEPS", STEPS);
    print_message("WEIR_MODEL_SEED=%" PRIu64 " WEIR_MODEL_STEPS=%ld\n", seed, steps);
    dice = seed;
    model_init(&model, RIG_START, rig.engine == RIG_STREAM);
    cron = (struct model_cron){0};
    memset(last_items, 0, sizeof(last_items));
    memset(sent, 0, sizeof(sent));
    memset(calls, 0, sizeof(calls));
    memset(&entries, 0, sizeof(entries));
    handles_n = 0;
    made_up = calm = 0;
    listen_to_ends();
    load(model_dump_script, dump_sha);
    load(model_cron_dump_script, cron_sha);
    for (int i = 0; i < IDS; i++)
        ids[i] = model_job(&model, (char[2]){(char)('A' + i), '\0'});
    rig_make_queue();
    redis_do(rig.redis, "HSET %s payload_max 64", rig_key(WR_QUEUE_KEY_config));
    for (step_no = 0; step_no < steps; step_no++) {
        if (step_no == steps / 2 &&
            model.n.enqueued > 0) { /* reserve reads another way */
            redis_do(rig.redis, "HSET %s long 1", rig_key(WR_QUEUE_KEY_config));
            model.is_long = true;
        }
        one_step();
        compare_state();
        compare_sums();
    }
    no_key_has_an_end();
    wr_conn_close(ends);
    print_message("%ld steps in %" PRId64 " ms\n", steps, wr_clock_ms() - began);
    print_counters();
    print_message("handed=%" PRId64 " withdrawn=%" PRId64 "\n", model.handed,
                  model.withdrawn);
    print_message("vanished=%" PRId64 " streams made=%" PRId64 "\n", model.vanished,
                  model.generation);
    print_message("cron: made=%" PRId64 " refused=%" PRId64 " skipped=%" PRId64
                  " waited=%" PRId64 " replaced=%" PRId64 "\n",
                  cron.made, cron.refused, cron.skipped, cron.waited, cron.replaced);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_queue_does_what_the_model_does_T09),
    };

    return RIG_MAIN(tests);
}
