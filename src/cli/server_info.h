/* cli/server_info.h - what the server tells about itself. */
#ifndef WR_CLI_SERVER_INFO_H
#define WR_CLI_SERVER_INFO_H

#include "base/buf.h"
#include "cli/cli.h"
#include "redis/conn.h"

struct cli_server_info {
    char name[16];                /* "redis", "valkey" */
    char version[24];             /* "7.0.15" */
    char role[16];                /* "master", "slave" */
    int64_t clients, clients_max; /* 0: not told */
    int64_t used_memory, max_memory;
    bool aof, rdb; /* aof: on and its last write succeeded */
    bool aof_failing, rdb_failing, loading;
    char policy[32]; /* maxmemory-policy */
};

enum weir_err cli_server_info_read(struct cli *cli, struct cli_server_info *out,
                                   struct weir_error *err) WEIR_MUST_CHECK;

#endif
