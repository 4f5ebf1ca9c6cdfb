/*
 * cli/explained.h - what `weir explain` knows of each script of lua/: made by
 * tools/luapack from the scripts themselves (explain.gen.c).
 */
#ifndef WR_CLI_EXPLAINED_H
#define WR_CLI_EXPLAINED_H

#include <stdbool.h>

struct wr_script;

/* A key: its name, type, and what it holds. A move: from, to. An answer: its word. */
struct cli_explained_item {
    const char *name, *type, *text;
};

/* In the order in which the script calls them, about. key: its place among the keys. */
#define CLI_KEY_NONE (-1)   /* the command has none */
#define CLI_KEY_UNSEEN (-2) /* the source does not tell which */
struct cli_explained_command {
    const char *name;
    int key;
    bool writes;
};

/* Lists end with a name that is NULL, and so does the table. */
struct cli_explained {
    const char *engine, *name; /* "list", "stream" or "common"; "ack" */
    const struct wr_script *script;
    const char *summary, *flags, *cost; /* "" when not stated */
    const struct cli_explained_item *keys, *moves, *answers;
    const struct cli_explained_command *commands;
};

extern const struct cli_explained cli_explained[];

#endif
