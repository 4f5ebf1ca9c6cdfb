/* weir: the tool and the daemons. */
#include "base/log.h"
#include "bin/commands.h"

int
main(int argc, char **argv)
{
    static const struct cli_cmd *const more[] = {&cmd_work,  &cmd_scheduler,    &cmd_dev,
                                                 &cmd_bench, &cmd_config_check, NULL};

    wr_log_setup_from_env();
    return cli_main(argc, argv, more);
}
