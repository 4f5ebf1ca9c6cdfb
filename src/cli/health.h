/*
 * cli/health.h - are jobs done here? Judged by what workers and movers reached on the
 * very path that jobs take, not by whether something answers a ping.
 */
#ifndef WR_CLI_HEALTH_H
#define WR_CLI_HEALTH_H

#include "cli/roster.h"
#include "cli/server_info.h"

/* Each thing that is wrong is said on stderr; false if there was any. The roster needs
 * its details. */
bool cli_health_of_server(struct cli *cli, const struct cli_server_info *info);
bool cli_health_of_workers(struct cli *cli, const struct cli_roster *roster);
bool cli_health_of_queue(struct cli *cli, const char *queue, const struct weir_audit *a,
                         const struct cli_roster *roster);

#endif
