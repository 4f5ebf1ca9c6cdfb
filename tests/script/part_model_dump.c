/* All of the model as one text; see model.h. */
#include "script/model_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is its record in `jobs`? A stream's entry has it while the job waits or runs. */
static bool
lies_in_jobs(const struct model *m, const struct model_job *j)
{
    return j->record && (!m->stream || j->entry == 0);
}

int64_t
model_missing_bodies(const struct model *m)
{
    int64_t places = m->stream ? 0 : (int64_t)(m->ready_n - model_tombs(m)), records = 0;

    for (size_t i = 0; i < m->jobs_n; i++) {
        const struct model_job *j = &m->jobs[i];

        places += j->place != MODEL_WAITS && j->entry == 0;
        records += lies_in_jobs(m, j);
    }
    return places - records;
}

/* ---- all of it as a text ---- */

const char model_dump_script[] =
    "local out, prefix = {}, KEYS[1]\n"
    "local function add(name, list)\n"
    "  out[#out + 1] = name .. '{' .. table.concat(list, ';') .. '}'\n"
    "end\n"
    "-- Entries sort as the model names them, '#' and a number.\n"
    "local function as_named(line)\n"
    "  return (string.gsub(line, '%d%d%d%d%d%d%d%d%d%d%d%d%d%-%d+', '#%0'))\n"
    "end\n"
    "local function pairs_of(name, all)\n"
    "  local list, named = {}, {}\n" /* named once each: this runs at every step */
    "  for i = 1, #all, 2 do\n"
    "    if name ~= 'stats' or all[i + 1] ~= '0' then\n"
    "      local line = all[i] .. '=' .. all[i + 1]\n"
    "      list[#list + 1], named[line] = line, as_named(line)\n"
    "    end\n"
    "  end\n"
    "  table.sort(list, function(a, b) return named[a] < named[b] end)\n"
    "  add(name, list)\n"
    "end\n"
    "add('ready', redis.call('LRANGE', prefix .. 'ready', 0, -1))\n"
    "if redis.call('EXISTS', prefix .. 'stream') == 1 then\n"
    "  local list = {}\n"
    "  for i, e in ipairs(redis.call('XRANGE', prefix .. 'stream', '-', '+')) do\n"
    "    list[i] = e[1] .. '=' .. (e[2][4] or e[1]) .. '=' .. e[2][2]\n"
    "  end\n"
    "  add('stream', list)\n"
    "  local rows, list, at, t = nil, {}, 0, nil\n"
    "  repeat\n"
    "    t = redis.call('TIME')\n"
    "    at = t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "    rows = redis.call('XPENDING', prefix .. 'stream', 'workers', '-', '+', 9999)\n"
    "    t = redis.call('TIME')\n"
    "  until at == t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "  for i, p in ipairs(rows) do\n"
    "    local time = at - p[3] + 1000000000000\n" /* as include/group.lua stores it */
    "    list[i] = p[1] .. '=' .. p[2] .. ':' .. p[4] .. ':' ..\n"
    "      (p[2] == '_front' and '-' or string.format('%.0f', time))\n"
    "  end\n"
    "  add('pending', list)\n"
    "  pairs_of('ids', redis.call('HGETALL', prefix .. 'ids'))\n"
    "end\n"
    "for _, name in ipairs({'processing', 'delayed', 'dead', 'kept', 'windows'}) do\n"
    "  pairs_of(name, redis.call('ZRANGE', prefix .. name, 0, -1, 'WITHSCORES'))\n"
    "end\n"
    "local moving = redis.call('HGET', prefix .. 'config', 'moving')\n"
    "local mine = redis.call('HGETALL', prefix .. 'jobs')\n"
    "if moving and redis.call('EXISTS', prefix .. 'stream') == 1 then\n"
    "  local all = mine\n" /* but for what is copied, or left over */
    "  mine = {}\n"
    "  for i = 1, #all, 2 do\n"
    "    if redis.call('ZSCORE', prefix .. 'delayed', all[i])\n"
    "       or redis.call('ZSCORE', prefix .. 'dead', all[i])\n"
    "       or redis.call('ZSCORE', prefix .. 'kept', all[i]) then\n"
    "      mine[#mine + 1], mine[#mine + 2] = all[i], all[i + 1]\n"
    "    end\n"
    "  end\n"
    "end\n"
    "pairs_of('jobs', mine)\n"
    "for _, name in ipairs({'tombs', 'state', 'results', 'errors', 'log', "
    "'unique', 'order',\n"
    "                       'claims', 'waiters', 'producers', 'stats'}) do\n"
    "  pairs_of(name, redis.call('HGETALL', prefix .. name))\n"
    "end\n"
    "local wake = redis.call('LRANGE', prefix .. 'wake', 0, -1)\n"
    "for i, marker in ipairs(wake) do\n"
    "  wake[i] = string.gsub(marker, '%z', '|')\n"
    "end\n"
    "add('wake', wake)\n"
    "pairs_of('offers', redis.call('ZRANGE', prefix .. 'offers', 0, -1, "
    "'WITHSCORES'))\n"
    "add('due', {redis.call('LLEN', prefix .. 'due')})\n"
    "add('paused', {redis.call('HGET', prefix .. 'config', 'paused') or ''})\n"
    "local moved = redis.call('HGET', prefix .. 'config', 'moved')\n"
    "add('moving', {moving or '', string.match(moved or '', '^%d+') or '',\n"
    "  not moving and redis.call('EXISTS', prefix .. 'next:ready', prefix .. "
    "'next:ids',\n"
    "                            prefix .. 'next:stream') or '-'})\n"
    "return table.concat(out, '\\n')\n";

struct lines {
    char text[MODEL_JOBS][2000];
    size_t n;
};

static void
add_line(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void
add_line(struct lines *l, const char *fmt, ...)
{
    va_list ap;

    model_check(l->n < MODEL_JOBS, "too many lines");
    va_start(ap, fmt);
    vsnprintf(l->text[l->n++], sizeof(l->text[0]), fmt, ap);
    va_end(ap);
}

static int
compare_lines(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void
flush_lines(struct lines *l, const char *name, struct wr_buf *out)
{
    if (l->n > 0)
        qsort(l->text, l->n, sizeof(l->text[0]), compare_lines);
    wr_buf_addf(out, "%s%s{", out->len > 0 ? "\n" : "", name);
    for (size_t i = 0; i < l->n; i++) {
        wr_buf_add_str(out, i > 0 ? ";" : "");
        wr_buf_add_str(out, l->text[i]);
    }
    wr_buf_add_str(out, "}");
    l->n = 0;
}

static void
dump_places(const struct model *m, struct lines *l, struct wr_buf *out)
{
    static const struct {
        const char *name;
        enum model_place place;
    } rows[] = {{"processing", MODEL_PROCESSING},
                {"delayed", MODEL_DELAYED},
                {"dead", MODEL_DEAD},
                {"kept", MODEL_KEPT}};

    for (size_t r = 0; r < 4; r++) {
        for (size_t i = 0; i < m->jobs_n; i++) {
            if (m->jobs[i].place == rows[r].place &&
                (!m->stream || rows[r].place != MODEL_PROCESSING))
                add_line(l, "%s=%" PRId64, m->jobs[i].id, m->jobs[i].score);
        }
        flush_lines(l, rows[r].name, out);
    }
}

static void
dump_jobs(const struct model *m, struct lines *l, struct wr_buf *out)
{
    char text[256];

    for (size_t i = 0; i < m->jobs_n; i++) {
        if (lies_in_jobs(m, &m->jobs[i]) &&
            model_record_text(&m->jobs[i], text, sizeof(text)) > 0)
            add_line(l, "%s=%s", m->jobs[i].id, text);
    }
    flush_lines(l, "jobs", out);
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].tomb)
            add_line(l, "%s=1", m->jobs[i].id);
    }
    flush_lines(l, "tombs", out);
    for (size_t i = 0; i < m->jobs_n; i++) {
        model_state_text(&m->jobs[i], text, sizeof(text));
        if (text[0] && !m->jobs[i].unstored)
            add_line(l, "%s=%s", m->jobs[i].id, text);
    }
    flush_lines(l, "state", out);
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].result[0])
            add_line(l, "%s=%s", m->jobs[i].id, m->jobs[i].result);
    }
    flush_lines(l, "results", out);
}

static void
dump_errors(const struct model *m, struct lines *l, struct wr_buf *out)
{
    for (size_t i = 0; i < m->jobs_n; i++) {
        struct wr_buf text = {0};

        model_errors_text(&m->jobs[i], &text);
        if (text.len > 0)
            add_line(l, "%s=%s", m->jobs[i].id, text.ptr);
        wr_buf_fini(&text);
    }
    flush_lines(l, "errors", out);
}

static void
dump_log(const struct model *m, struct lines *l, struct wr_buf *out)
{
    for (size_t i = 0; i < m->jobs_n; i++) {
        const struct model_job *j = &m->jobs[i];
        struct wr_buf text = {0};

        model_runs_text(j, &text);
        if (text.len > 0)
            add_line(l, "%s=%s", j->id, text.ptr);
        wr_buf_fini(&text);
        for (size_t k = 0; k < j->runs_n; k++) {
            const struct model_run *r = &j->runs[k];

            add_line(l, "\t%" PRId64 "=%s\t%" PRId64, r->seq, j->id, r->number);
            for (size_t p = 0; p < r->n; p++)
                add_line(l, "%s\t%" PRId64 "\t%" PRId64 "=%s", j->id, r->number,
                         r->pieces[p].at, r->pieces[p].text);
        }
    }
    flush_lines(l, "log", out);
}

static void
dump_callers(const struct model *m, struct lines *l, struct wr_buf *out)
{
    for (int w = 0; w < MODEL_WORKERS; w++) {
        struct wr_buf list = {0};

        if (!m->claims[w].is_set)
            continue;
        model_claims_head(m, w, &list);
        for (size_t i = 0; i < m->claims[w].n; i++)
            wr_buf_addf(&list, "%s\t%" PRId64 "\t%d\n", m->claims[w].list[i].job->id,
                        m->claims[w].list[i].token, m->claims[w].list[i].ahead);
        add_line(l, "%s=%s", model_worker(w), (const char *)wr_buf_span(&list).ptr);
        wr_buf_fini(&list);
    }
    flush_lines(l, "claims", out);
    for (size_t i = 0; i < m->jobs_n; i++) {
        struct wr_buf list = {0};

        for (size_t k = 0; k < m->jobs[i].waiters_n; k++)
            wr_buf_addf(&list, "%s%s/%" PRId64 " %" PRId64, k > 0 ? " " : "",
                        model_waits_at(m->jobs[i].waiters[k].channel),
                        m->jobs[i].waiters[k].number, m->jobs[i].waiters[k].until);
        if (list.len > 0)
            add_line(l, "%s=%s", m->jobs[i].id, list.ptr);
        wr_buf_fini(&list);
    }
    flush_lines(l, "waiters", out);
    for (int c = 0; c < MODEL_CHANNELS; c++) {
        if (m->channels[c].is_set)
            add_line(l, "%s=%" PRId64 " %" PRId64 " %zu %s %s%s%s", model_channel(c),
                     m->channels[c].number, m->channels[c].at, m->channels[c].count,
                     m->channels[c].notes, m->channels[c].first,
                     m->channels[c].detail[0] ? "\n" : "", m->channels[c].detail);
    }
    flush_lines(l, "producers", out);
}

static void
dump_keys(const struct model *m, struct lines *l, struct wr_buf *windows,
          struct wr_buf *unique)
{
    for (int k = 0; k < MODEL_KEYS; k++) {
        if (m->keys[k].window >= 0)
            add_line(l, "%s=%" PRId64, model_key(k), m->keys[k].window);
    }
    wr_buf_add_str(windows, "");
    flush_lines(l, "windows", windows);
    for (int k = 0; k < MODEL_KEYS; k++) {
        if (m->keys[k].holder)
            add_line(l, "%s=%s", model_key(k), m->keys[k].holder->id);
        if (m->keys[k].before)
            add_line(l, "=%s=%s", model_key(k), m->keys[k].before->id);
    }
    flush_lines(l, "unique", unique);
    for (int o = 0; o < MODEL_LINES; o++) {
        struct model_job *const *jobs = m->lines[o].jobs;
        size_t n = m->lines[o].n;

        for (size_t i = 0; i < n; i++)
            add_line(l, "=%s=%s\t%s\t%s", jobs[i]->id, model_line(o),
                     i > 0 ? jobs[i - 1]->id : "", i + 1 < n ? jobs[i + 1]->id : "");
        if (n > 0)
            add_line(l, "%s=%s", model_line(o), jobs[n - 1]->id);
    }
    flush_lines(l, "order", unique);
}

static int
compare_entries(const void *a, const void *b)
{
    const struct model_job *x = *(const struct model_job *const *)a;
    const struct model_job *y = *(const struct model_job *const *)b;

    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* Entries by their numbers, as the test writes those of the server. */
static void
dump_stream(const struct model *m, struct lines *l, struct wr_buf *out)
{
    const struct model_job *all[MODEL_JOBS];
    size_t n = 0, there = 0, pending = 0;
    char text[256];

    if (!m->has_stream)
        return;
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].entry > 0)
            all[n++] = &m->jobs[i];
    }
    if (n > 0)
        qsort(all, n, sizeof(all[0]), compare_entries);
    wr_buf_add_str(out, "\nstream{");
    for (size_t i = 0; i < n; i++) {
        if (all[i]->gone)
            continue;
        model_record_text(all[i], text, sizeof(text));
        wr_buf_addf(out, "%s" MODEL_ENTRY "=%s=%s", there++ > 0 ? ";" : "", all[i]->entry,
                    all[i]->id, text);
    }
    wr_buf_add_str(out, "}\npending{");
    for (size_t i = 0; i < n; i++) {
        const struct model_job *j = all[i];
        bool runs = j->place == MODEL_PROCESSING;

        if (!runs && !j->front)
            continue;
        wr_buf_addf(out, "%s" MODEL_ENTRY "=%s", pending++ > 0 ? ";" : "", j->entry,
                    runs ? j->state.worker : "_front");
        if (runs && m->generation > 1)
            wr_buf_addf(out, "#%" PRId64, m->generation);
        wr_buf_addf(out, ":%" PRId64 ":", j->count);
        if (runs)
            wr_buf_addf(out, "%" PRId64, j->delivered_at);
        else
            wr_buf_add_str(out, "-");
    }
    wr_buf_add_str(out, "}");
    for (size_t i = 0; i < m->jobs_n; i++) {
        if (m->jobs[i].indexed > 0)
            add_line(l, "%s=" MODEL_ENTRY, m->jobs[i].id, m->jobs[i].indexed);
    }
    flush_lines(l, "ids", out);
}

void
model_dump(const struct model *m, struct wr_buf *out)
{
    static struct lines l;
    struct wr_buf windows = {0}, unique = {0};

    wr_buf_clear(out);
    dump_keys(m, &l, &windows, &unique);
    wr_buf_add_str(out, "ready{");
    for (size_t i = 0; i < m->ready_n && !m->stream; i++)
        wr_buf_addf(out, "%s%s", i > 0 ? ";" : "", m->ready[i]->id);
    wr_buf_add_str(out, "}");
    if (m->stream)
        dump_stream(m, &l, out);
    dump_places(m, &l, out);
    wr_buf_addf(out, "\n%s", windows.ptr);
    dump_jobs(m, &l, out);
    dump_errors(m, &l, out);
    dump_log(m, &l, out);
    wr_buf_addf(out, "\n%s", unique.ptr);
    dump_callers(m, &l, out);
#define X(name)         \
    if (m->n.name != 0) \
        add_line(&l, #name "=%" PRId64, m->n.name);
    MODEL_COUNTERS(X)
#undef X
    if (m->reclaim_at > 0)
        add_line(&l, "reclaim_at=" MODEL_ENTRY " %" PRId64, m->reclaim_at,
                 m->reclaim_end);
    if (m->offers_off > 0)
        add_line(&l, "offers_off=%" PRId64, m->offers_off);
    if (m->shelved_last[0])
        add_line(&l, "shelved_last=%s", m->shelved_last);
    if (model_log_bytes(m) != 0)
        add_line(&l, "log_bytes=%" PRId64, model_log_bytes(m));
    flush_lines(&l, "stats", out);
    model_wake_dump(m, out);
    wr_buf_addf(out, "\ndue{%d}\npaused{", m->due);
    if (m->paused)
        wr_buf_addf(out, "%" PRId64 " %s", m->paused_at, m->paused_by);
    wr_buf_add_str(out, "}\n");
    model_move_dump(m, out);
    wr_buf_fini(&windows);
    wr_buf_fini(&unique);
}
