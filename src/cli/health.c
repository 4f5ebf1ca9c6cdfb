#include "cli/health.h"

#include "base/text.h"
#include "cli/queue_view.h"

#define CONTACT_MS 9000 /* an idle worker fetches every 5 s, with 2 s to answer */
#define MOVER_MS 12000  /* promote is called every 5 s at least */

bool
cli_health_of_server(struct cli *cli, const struct cli_server_info *info)
{
    bool well = true;

    if (info->aof_failing || (info->rdb_failing && info->rdb)) {
        cli_note(cli, "Redis refuses writes: it could not %s. Is its disk full?",
                 info->aof_failing ? "append to its file" : "store a snapshot");
        well = false;
    }
    if (info->loading) {
        cli_note(cli, "Redis is loading its data");
        well = false;
    }
    if (info->max_memory > 0 && info->used_memory >= info->max_memory) {
        cli_note(cli, "Redis is full: it takes no new jobs");
        well = false;
    }
    return well;
}

static bool
is_well(struct cli *cli, const struct cli_worker *w)
{
    char text[32];

    if (w->silent_ms > CLI_WORKER_LATE_MS) {
        wr_text_show_duration(w->silent_ms, text, sizeof(text));
        cli_note(cli, "worker %s: not heard for %s", w->id, text);
        return false;
    }
    if (w->contact_ms > CONTACT_MS) {
        wr_text_show_duration(w->contact_ms + w->silent_ms, text, sizeof(text));
        cli_note(cli, "worker %s: lives, but fetched nothing from Redis for %s", w->id,
                 text);
        return false;
    }
    return true;
}

bool
cli_health_of_workers(struct cli *cli, const struct cli_roster *r)
{
    bool well = true;

    for (size_t i = 0; i < r->n; i++)
        well = is_well(cli, &r->workers[i]) && well;
    return well;
}

static bool
has_worker(const struct cli_roster *r, const char *queue)
{
    for (size_t i = 0; i < r->n; i++) {
        if (cli_worker_serves(&r->workers[i], queue))
            return true;
    }
    return false;
}

static bool
is_silent(int64_t heartbeat, int64_t now)
{
    return heartbeat == 0 || now - heartbeat > MOVER_MS;
}

bool
cli_health_of_queue(struct cli *cli, const char *queue, const struct weir_audit *a,
                    const struct cli_roster *roster)
{
    char why[300] = "";

    if (cli_queue_complaint(queue, a, why, sizeof(why)))
        ;
    else if (a->ready > 0 && !a->paused && !has_worker(roster, queue))
        snprintf(why, sizeof(why), "%lld job%s %s ready and no worker serves it",
                 (long long)a->ready, wr_text_s(a->ready), wr_text_are(a->ready));
    else if (a->delayed > 0 && is_silent(a->heartbeat_promote, a->now))
        snprintf(why, sizeof(why), "%lld job%s %s delayed and no scheduler promotes %s",
                 (long long)a->delayed, wr_text_s(a->delayed), wr_text_are(a->delayed),
                 a->delayed == 1 ? "it" : "them");
    else if (a->processing > 0 && is_silent(a->heartbeat_reclaim, a->now))
        snprintf(why, sizeof(why), "jobs run and no scheduler would take them back");
    else
        return true;
    cli_note(cli, "%s: %s", queue, why);
    return false;
}
