/*
 * luapack against the scripts of tests/unit/luapack. They are right; each bad case
 * changes one thing in a copy and must be answered with its file, line and reason.
 */
#include <ftw.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"

#define FIXTURES WEIR_SOURCE "/tests/unit/luapack"
#define FINISH "lua/list/finish.lua"
#define TEXT_MAX 65536

static const char *const files[] = {FINISH,
                                    "lua/include/clock.lua",
                                    "lua/include/notes.lua",
                                    "lua/common/names.lua",
                                    "src/model/state.h",
                                    NULL};

static char dir[64]; /* the copy of this test */

static void
read_text(const char *path, char out[TEXT_MAX])
{
    FILE *f = fopen(path, "r");
    size_t n;

    if (!f)
        fail_msg("%s cannot be read", path);
    n = fread(out, 1, TEXT_MAX - 1, f);
    out[n] = '\0';
    fclose(f);
    assert_true(n < TEXT_MAX - 1);
}

static void
write_text(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int
make_copy(void **state)
{
    static const char *const folders[] = {
        "lua",      "lua/list",         "lua/include", "lua/common",
        "lua/both", "lua/list/include", "lua/stream",  "lua/stream/include",
        "src",      "src/model",        "out"};
    static char text[TEXT_MAX];
    char path[512];

    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/weir-luapack-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, folders[i]);
        if (mkdir(path, 0700) != 0)
            return -1;
    }
    for (size_t i = 0; files[i]; i++) {
        snprintf(path, sizeof(path), "%s/%s", FIXTURES, files[i]);
        read_text(path, text);
        write_text(files[i], text);
    }
    return 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static int
remove_copy(void **state)
{
    (void)state;
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Replaces old, which must be there once, in a file of the copy. */
static void
change(const char *name, const char *old, const char *new)
{
    static char text[TEXT_MAX], changed[2 * TEXT_MAX];
    char path[256], *at;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    read_text(path, text);
    at = strstr(text, old);
    if (!at || strstr(at + 1, old))
        fail_msg("%s: \"%s\" is not there once", name, old);
    snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, new,
             at + strlen(old));
    write_text(name, changed);
}

/* Runs `luapack WORDS` in the copy; out is what it says. Answers the exit status. */
static int
run(const char *words, char *out, size_t size)
{
    char command[512];
    size_t n;
    FILE *f;
    int status;

    snprintf(command, sizeof(command), "cd %s && '%s' %s 2>&1", dir, LUAPACK, words);
    f = popen(command, "r");
    assert_non_null(f);
    n = fread(out, 1, size - 1, f);
    out[n] = '\0';
    status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool
is_written(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/out/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void
expect_refusal(const char *expected)
{
    char said[4096];
    int status = run("lua out", said, sizeof(said));

    if (status != 1 || strncmp(said, expected, strlen(expected)) != 0)
        fail_msg("exit %d: %s\nexpected: %s", status, said, expected);
    assert_false(is_written("scripts.gen.c"));
    assert_false(is_written("scripts.gen.h"));
    assert_false(is_written("scripts.md"));
}

static void
pack_good(void)
{
    char said[4096];

    if (run("lua out", said, sizeof(said)) != 0)
        fail_msg("%s", said);
}

static void
read_output(const char *name, char out[TEXT_MAX])
{
    char path[256];

    snprintf(path, sizeof(path), "%s/out/%s", dir, name);
    read_text(path, out);
}

/* The bytes of `body_NAME[] = { 1,2,3, 0};` without the zero at the end. */
static size_t
read_body(const char *c, const char *name, char *out)
{
    char start[64];
    const char *at;
    size_t n = 0;

    snprintf(start, sizeof(start), "body_%s[] = {", name);
    at = strstr(c, start);
    assert_non_null(at);
    for (at += strlen(start);; at++) {
        char *end;

        out[n] = (char)strtol(at, &end, 10);
        if (out[n] == '\0')
            return n;
        n++;
        at = end;
    }
}

static void
expect_in(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void
a_script_is_put_together_without_comments_and_with_each_include_once(void **state)
{
    static char c[TEXT_MAX], whole[TEXT_MAX], body[TEXT_MAX];
    size_t n;

    (void)state;
    pack_good();
    read_output("scripts.gen.c", c);
    read_text(FIXTURES "/finish.whole", whole);
    n = read_body(c, "list_finish", body);
    assert_string_equal(body, whole);
    assert_int_equal(n, strlen(whole));
}

/* Ways in which a script comes to a key, and the line that explain has of it. */
static void
the_commands_of_a_script_are_followed_to_their_keys(void **state)
{
    static const char script[] =
        "--- shapes: ways to a key.\n"
        "--\n"
        "-- @key jobs HASH 0\n"
        "-- @key stats HASH 1\n"
        "-- @key dead ZSET 2\n"
        "-- @key kept ZSET 3\n"
        "-- @key ready LIST 4\n"
        "-- @key wake LIST 5\n"
        "-- @arg which one of them\n"
        "-- @returns OK done\n"
        "--- @include shapes\n"
        "\n"
        "local k = {jobs = jobs, ready = ready, wake = wake}\n"
        "local zset = ({dead = dead, kept = kept})[which]\n"
        "touch_all('HLEN', jobs, stats)\n"
        "push(k, 'redis.call(1)')\n"
        "redis.call(zset and 'ZSCAN' or 'HSCAN', zset or jobs, 0)\n"
        "if redis.call('EXISTS', ready, dead) > 0 then\n"
        "  redis.call('TIME')\n"
        "end\n"
        "for _, key in ipairs({kept}) do\n"
        "  redis.call('ZCARD', key)\n"
        "end\n"
        "local special = ({other = uses_wake})[which]\n"
        "redis.call('HGET', k.results, which)\n"
        "redis.call('ZREM', redis.sha1hex(which), 'x')\n"
        "return {'OK'}\n";
    static const char include[] = "--- Functions, one of which nobody calls.\n"
                                  "local function touch_all(command, ...)\n"
                                  "  for _, key in ipairs({...}) do\n"
                                  "    redis.call(command, key)\n"
                                  "  end\n"
                                  "end\n"
                                  "local function push_to(list, text)\n"
                                  "  redis.call('LPUSH', list, text)\n"
                                  "end\n"
                                  "local function push(k, text)\n"
                                  "  push_to(k.ready, [[ redis.call('DEL', wake) ]])\n"
                                  "end\n"
                                  "local function unused(k)\n"
                                  "  redis.call('LPOP', k.wake)\n"
                                  "end\n"
                                  "local function uses_wake(wake)\n"
                                  "  redis.call('LLEN', wake)\n"
                                  "end\n";
    static char c[TEXT_MAX];

    (void)state;
    write_text("lua/list/shapes.lua", script);
    write_text("lua/include/shapes.lua", include);
    pack_good();
    read_output("explain.gen.c", c);
    expect_in(c, "commands_list_shapes[] = {\n"
                 "    {\"HLEN\", 0, false},\n"
                 "    {\"HLEN\", 1, false},\n"
                 "    {\"LPUSH\", 4, true},\n"
                 "    {\"ZSCAN\", 2, false},\n"
                 "    {\"ZSCAN\", 3, false},\n"
                 "    {\"HSCAN\", 0, false},\n"
                 "    {\"EXISTS\", 2, false},\n"
                 "    {\"EXISTS\", 4, false},\n"
                 "    {\"TIME\", -1, false},\n"
                 "    {\"ZCARD\", 3, false},\n"
                 "    {\"LLEN\", 5, false},\n" /* nothing of results: no key of it */
                 "    {\"ZREM\", -2, true},\n"
                 "    {0},\n");
}

/* notes is rare: what it alone uses is made in it, what others use as well is not, and
 * what nobody uses is nowhere. */
static void
functions_that_are_seldom_used_are_made_when_they_are(void **state)
{
    static char c[TEXT_MAX], body[TEXT_MAX];
    static const char wanted[] = "local function clock(given)\n"
                                 "  return tonumber(given)\n"
                                 "end\n"
                                 "local LAST = 3\n"
                                 "local function notes(jobs, argv, first, words, worker, "
                                 "now, text)\n"
                                 "local function deep(x)\n"
                                 "  return clock(x) + LAST\n"
                                 "end\n"
                                 "local function low(x)\n"
                                 "  return deep(x)\n"
                                 "end\n"
                                 "  return {first, 'STALE', low(now), words";

    (void)state;
    change("lua/include/notes.lua", "--- notes(...): what became of each item.\n",
           "local LAST = 3\n"
           "local function deep(x)\n  return clock(x) + LAST\nend\n"
           "local function unused(x)\n  return unused(x, 'notes(')\nend\n"
           "local function low(x)\n  return deep(x)\nend\n"
           "--- @rare notes\n");
    change("lua/include/notes.lua", "clock(now)", "low(now)");
    pack_good();
    read_output("scripts.gen.c", c);
    read_body(c, "list_finish", body);
    expect_in(body, wanted);
}

static void
the_structure_names_the_digest_the_keys_and_the_words(void **state)
{
    static char c[TEXT_MAX], whole[TEXT_MAX];
    unsigned char hash[EVP_MAX_MD_SIZE];
    char sha1[64] = "";
    unsigned len;

    (void)state;
    pack_good();
    read_output("scripts.gen.c", c);
    read_text(FIXTURES "/finish.whole", whole);
    assert_int_equal(EVP_Digest(whole, strlen(whole), hash, &len, EVP_sha1(), NULL), 1);
    for (unsigned i = 0; i < len; i++)
        snprintf(sha1 + 2 * i, 3, "%02x", hash[i]);
    expect_in(c, sha1);
    expect_in(c, "keys_list_finish[] = {WR_QUEUE_KEY_jobs, WR_QUEUE_KEY_stats, };");
    expect_in(c, "statuses_list_finish[] = {\"OK\", \"NOQUEUE\", NULL};");
    expect_in(c, "    .nkeys = 2,\n    .keys = keys_list_finish,\n    .nargs = 2,\n"
                 "    .repeats = 2,\n");
    expect_in(c, "    .nkeys = 1,\n    .nargs = 0,\n"); /* names: a key of no queue */
    expect_in(c, "wr_scripts_count = 2;");
}

static void
the_header_and_the_page_name_every_script(void **state)
{
    static char text[TEXT_MAX];

    (void)state;
    pack_good();
    read_output("scripts.gen.h", text);
    expect_in(text, "/* lua/list/finish.lua: ends deliveries. */\n"
                    "extern const struct wr_script wr_script_list_finish;\n");
    expect_in(text, "extern const struct wr_script wr_script_common_names;\n");
    read_output("scripts.md", text);
    expect_in(text, "| [list/finish](#listfinish) | ends deliveries. "
                    "| processing → done<br>processing → cancelled "
                    "| allow-oom allow-stale | O(jobs) \\| a bar |\n");
    expect_in(text, "## list/finish\n\nends deliveries.\n\nMoves: processing → done, "
                    "processing → cancelled. Flags: allow-oom allow-stale. ");
    expect_in(text, "Flags: no-writes. Cost: O(queues).\n");
    expect_in(text, "Reply: word, then notes.\n");
    expect_in(text, "- `stats` HASH: the counters\n");
    expect_in(text, "An item may be answered:\n\n- `STALE`: another");
}

/* A script of both engines, and an include that each has its own of. */
static void
write_both(void)
{
    write_text("lua/both/look.lua",
               "--- look: looks.\n--\n-- @flags no-writes\n"
               "-- @key list:ready LIST ids that wait\n"
               "-- @key stream:stream STREAM entries\n"
               "-- @key stats HASH the counters\n"
               "-- @returns OK seen\n"
               "--- @include waits\n"
               "return {'OK', waits(k), redis.call('HLEN', k.stats), ENGINE}\n");
    write_text("lua/list/include/waits.lua", "--- waits(k): so many.\n"
                                             "local function waits(k)\n"
                                             "  return redis.call('LLEN', k.ready)\n"
                                             "end\n");
    write_text("lua/stream/include/waits.lua", "--- waits(k): so many.\n"
                                               "local function waits(k)\n"
                                               "  return redis.call('XLEN', k.stream)\n"
                                               "end\n");
    write_text("lua/include/waits.lua", "this is taken only where an engine has none\n");
}

static void
a_script_of_both_engines_is_built_for_each(void **state)
{
    static char text[TEXT_MAX];

    (void)state;
    write_both();
    pack_good();
    read_output("scripts.gen.h", text);
    expect_in(text, "extern const struct wr_script wr_script_list_look;\n");
    expect_in(text, "extern const struct wr_script wr_script_stream_look;\n");
    expect_in(text, "extern const struct wr_script *const wr_pair_look[];\n");
    read_output("scripts.gen.c", text);
    expect_in(text, "keys_list_look[] = {WR_QUEUE_KEY_ready, WR_QUEUE_KEY_stats, };");
    expect_in(text, "keys_stream_look[] = {WR_QUEUE_KEY_stream, WR_QUEUE_KEY_stats, };");
    expect_in(text, "wr_pair_look[] = {\n    &wr_script_list_look,\n"
                    "    &wr_script_stream_look,\n};\n");
    expect_in(text, "wr_pair_finish[] = {\n    &wr_script_list_finish,\n    NULL,\n};\n");
    expect_in(text, "wr_pair_names[] = {\n    &wr_script_common_names,\n"
                    "    &wr_script_common_names,\n};\n");
    read_output("scripts.md", text);
    expect_in(text, "## list/look\n");
    expect_in(text, "## stream/look\n");
}

static void
a_key_of_one_engine_is_checked_for_that_engine(void **state)
{
    char said[4096];

    (void)state;
    write_both();
    change("lua/both/look.lua", "@key stream:stream STREAM entries",
           "@key stream:stream STREAM entries\n-- @key list:tombs HASH none");
    assert_int_equal(run("--check lua", said, sizeof(said)), 1);
    expect_in(said, "lua/both/look.lua:6: key tombs is declared and not used");
    change("lua/both/look.lua", "\n-- @key list:tombs HASH none", "");
    change(FINISH, "-- @key jobs HASH", "-- @key list:jobs HASH");
    assert_int_equal(run("--check lua", said, sizeof(said)), 1);
    expect_in(said, "only scripts in lua/both/ serve several engines");
}

static void
check_alone_writes_nothing(void **state)
{
    char said[4096];

    (void)state;
    assert_int_equal(run("--check lua", said, sizeof(said)), 0);
    assert_string_equal(said, "");
    assert_false(is_written("scripts.gen.c"));
    change(FINISH, "-- @key jobs HASH", "-- @key cellar HASH");
    assert_int_equal(run("--check lua", said, sizeof(said)), 1);
}

static void
other_words_on_the_command_line_get_the_usage(void **state)
{
    char said[4096];

    (void)state;
    assert_int_equal(run("lua", said, sizeof(said)), 64);
    assert_int_equal(strncmp(said, "usage: luapack ", 15), 0);
}

static void
a_folder_that_cannot_be_written_is_an_error(void **state)
{
    char said[4096];

    (void)state;
    assert_int_equal(run("lua nowhere", said, sizeof(said)), 1);
    expect_in(said, "nowhere/scripts.gen.h: cannot be written");
}

static void
a_folder_without_scripts_is_an_error(void **state)
{
    char said[4096];

    (void)state;
    assert_int_equal(run("src out", said, sizeof(said)), 1);
    expect_in(said, "src: no scripts");
}

static void
without_the_table_of_transitions_any_known_state_will_do(void **state)
{
    char path[256];

    (void)state;
    change(FINISH, "-> done", "-> dead");
    snprintf(path, sizeof(path), "%s/src/model/state.h", dir);
    assert_int_equal(remove(path), 0);
    pack_good();
}

static void
a_circle_of_includes_is_refused_with_the_way_into_it(void **state)
{
    (void)state;
    change("lua/include/clock.lua", "the time, ms.\n",
           "the time, ms.\n--- @include notes\n");
    expect_refusal("lua/include/clock.lua:2: circular include: notes\n"
                   "  in include clock\n  in include notes\n  in lua/list/finish.lua\n");
}

static void
a_missing_include_is_refused_with_the_way_to_it(void **state)
{
    (void)state;
    change("lua/include/notes.lua", "@include clock", "@include watch");
    expect_refusal("lua/include/notes.lua:2: no such include: watch\n"
                   "  in include notes\n  in lua/list/finish.lua\n");
}

static void
more_than_a_hundred_keys_and_arguments_are_refused(void **state)
{
    static char args[8192], uses[8192];
    size_t a, u;

    (void)state;
    a = (size_t)snprintf(args, sizeof(args), "-- @arg worker x\n");
    u = (size_t)snprintf(uses, sizeof(uses), "local out = {");
    for (unsigned i = 0; i < 97; i++) {
        a += (size_t)snprintf(args + a, sizeof(args) - a, "-- @arg a%u x\n", i);
        u += (size_t)snprintf(uses + u, sizeof(uses) - u, "a%u, ", i);
    }
    snprintf(uses + u, sizeof(uses) - u, "}\nlocal now =");
    change(FINISH, "-- @arg worker the worker's id\n", args);
    change(FINISH, "local now =", uses);
    expect_refusal("lua/list/finish.lua:1: more than 100 keys and arguments\n");
}

/* One change each to a script that was right. */
static const struct bad {
    const char *name, *file, *old, *new, *said;
} bad[] = {
    {"another name than the file's", FINISH, "--- finish:", "--- end:",
     "lua/list/finish.lua:1: the first line must be \"--- finish: what it does\""},
    {"a summary that would end its comment in C", FINISH, "ends deliveries.", "a */ b",
     "lua/list/finish.lua:1: the summary"},
    {"a rare function that is not there", "lua/include/notes.lua", "--- @include clock",
     "--- @include clock\n--- @rare clocks",
     "lua/include/notes.lua:3: @rare: no function"},
    {"a rare function whose head has several lines", "lua/include/notes.lua", "text)",
     "text\n)", "lua/list/finish.lua: a function's first line must end"},
    {"an unknown tag", FINISH, "@cost", "@price",
     "lua/list/finish.lua:15: unknown tag @price"},
    {"a tag after the first code", FINISH, "  -- nobody", "-- @key dead ZSET x",
     "lua/list/finish.lua:29: a tag after the first line of code"},
    {"an unknown flag", FINISH, "allow-stale", "allow-all",
     "lua/list/finish.lua:3: @flags: allow-all is not known"},
    {"a second @cost", FINISH, "-- @cost", "-- @cost O(1)\n-- @cost",
     "lua/list/finish.lua:16: a tag that may stand once"},
    {"an unknown key", FINISH, "-- @key jobs HASH", "-- @key cellar HASH",
     "lua/list/finish.lua:6: key cellar is not one of docs/keys.md"},
    {"an unknown type", FINISH, "@key jobs HASH", "@key jobs TREE",
     "lua/list/finish.lua:6: key jobs: TREE is no type"},
    {"a key without a type", FINISH, "@key jobs HASH id -> record", "@key jobs",
     "lua/list/finish.lua:6: a tag lacks a word: jobs"},
    {"a key named twice", FINISH, "@key stats HASH", "@key jobs HASH",
     "lua/list/finish.lua:7: jobs is named twice"},
    {"an unused key", FINISH, "redis.call('EXISTS', stats)", "#'stats'",
     "lua/list/finish.lua:7: key stats is declared and not used"},
    {"a key that is only the name of a field", FINISH, "('EXISTS', stats)",
     "('EXISTS', text.stats)", "lua/list/finish.lua:7: key stats is declared and not"},
    {"a key of the queue beside one of none", FINISH, "@key stats HASH",
     "@key workers HASH", "lua/list/finish.lua:7: keys of a queue and keys of none"},
    {"an unused argument", FINISH, "ITEM_WORDS, worker,", "ITEM_WORDS, 'worker',",
     "lua/list/finish.lua:9: argument worker is declared and not used"},
    {"an argument with a key's name", FINISH, "@arg worker", "@arg jobs",
     "lua/list/finish.lua:9: jobs is already the name"},
    {"an argument that hides an include", FINISH, "@arg worker", "@arg notes",
     "lua/list/finish.lua:9: notes is already the name"},
    {"an argument with a name Lua keeps", FINISH, "@arg worker", "@arg end",
     "lua/list/finish.lua:9: end cannot be the name of a local"},
    {"items nobody reads", FINISH, "ARGV, ITEM_FIRST", "ARGV, 3",
     "lua/list/finish.lua:10: @item is declared, ITEM_FIRST not used"},
    {"a word that is never answered", FINISH, "@returns NOQUEUE", "@returns PAUSED",
     "lua/list/finish.lua:13: PAUSED is promised and never answered"},
    {"a word for an item that is never answered", FINISH, "@answer STALE", "@answer GONE",
     "lua/list/finish.lua:14: GONE is promised and never answered"},
    {"a word that is not promised", FINISH, "  -- nobody",
     "  if now then\n    return {\"LATE\"}\n  end",
     "lua/list/finish.lua:30: LATE is answered and not promised"},
    {"a word not in capitals", FINISH, "@returns OK", "@returns Ok",
     "lua/list/finish.lua:12: Ok is not a word in capitals"},
    {"no @returns", "lua/common/names.lua", "-- @returns OK names\n", "",
     "lua/common/names.lua:1: no @returns"},
    {"an unknown state", FINISH, "-> done", "-> finished",
     "lua/list/finish.lua:4: @transition wants STATE -> STATE"},
    {"a transition twice", FINISH, "-> cancelled", "-> done",
     "lua/list/finish.lua:5: processing -> done is named twice"},
    {"a transition that the model lacks", FINISH, "-> done", "-> dead",
     "lua/list/finish.lua:4: src/model/state.h has no row X(FINISH, PROCESSING, DEAD)"},
    {"a transition too few", FINISH, "-- @transition processing -> done\n", "",
     "lua/list/finish.lua:1: src/model/state.h has 2 rows of finish, the contract 1"},
    {"KEYS by number", FINISH, "'EXISTS', stats", "'EXISTS', KEYS[2] or stats",
     "lua/list/finish.lua:28: KEYS must not be used"},
    {"ARGV by number", FINISH, "clock(now_arg)", "clock(now_arg or ARGV[1])",
     "lua/list/finish.lua:21: ARGV by a number"},
    {"an error that is hidden", FINISH, "redis.call(", "redis.pcall(",
     "lua/list/finish.lua:28: pcall must not be used"},
    {"chance", "lua/include/clock.lua", "tonumber(given)", "math.random(given)",
     "lua/include/clock.lua:3: math.random must not be used"},
    {"an error reply", FINISH, "return {'NOQUEUE'}",
     "return redis.error_reply('NOQUEUE')",
     "lua/list/finish.lua:30: error_reply must not be used"},
    {"a global", FINISH,
     "local text =", "text =", "lua/list/finish.lua:22: text is not a local"},
    {"a global function of an include", "lua/include/clock.lua", "local function clock",
     "function clock", "lua/include/clock.lua:2: clock is not a local"},
    {"a string that never ends", FINISH, "'a -- no comment'", "'a -- no comment",
     "lua/list/finish.lua:22: this string or comment never ends"},
    {"a comment that never ends", FINISH, "two lines ]]", "two lines",
     "lua/list/finish.lua:26: this string or comment never ends"},
    {"a carriage return", FINISH, "ends deliveries.", "ends deliveries.\r",
     "lua/list/finish.lua: a NUL or a carriage return in it"},
};

static void
is_refused(void **state)
{
    const struct bad *b = *state;

    change(b->file, b->old, b->new);
    expect_refusal(b->said);
}

#define GOOD(f) cmocka_unit_test_setup_teardown(f, make_copy, remove_copy)

int
main(void)
{
    static const struct CMUnitTest good[] = {
        GOOD(a_script_is_put_together_without_comments_and_with_each_include_once),
        GOOD(the_commands_of_a_script_are_followed_to_their_keys),
        GOOD(functions_that_are_seldom_used_are_made_when_they_are),
        GOOD(the_structure_names_the_digest_the_keys_and_the_words),
        GOOD(the_header_and_the_page_name_every_script),
        GOOD(a_script_of_both_engines_is_built_for_each),
        GOOD(a_key_of_one_engine_is_checked_for_that_engine),
        GOOD(check_alone_writes_nothing),
        GOOD(other_words_on_the_command_line_get_the_usage),
        GOOD(a_folder_that_cannot_be_written_is_an_error),
        GOOD(a_folder_without_scripts_is_an_error),
        GOOD(without_the_table_of_transitions_any_known_state_will_do),
        GOOD(a_circle_of_includes_is_refused_with_the_way_into_it),
        GOOD(a_missing_include_is_refused_with_the_way_to_it),
        GOOD(more_than_a_hundred_keys_and_arguments_are_refused),
    };
    static struct CMUnitTest rows[sizeof(bad) / sizeof(bad[0])];
    static struct bad states[sizeof(bad) / sizeof(bad[0])];
    static char names[sizeof(bad) / sizeof(bad[0])][96];
    int failed;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        states[i] = bad[i];
        snprintf(names[i], sizeof(names[i]), "%s is refused", bad[i].name);
        rows[i] = (struct CMUnitTest){.name = names[i],
                                      .test_func = is_refused,
                                      .setup_func = make_copy,
                                      .teardown_func = remove_copy,
                                      .initial_state = &states[i]};
    }
    failed = cmocka_run_group_tests_name("luapack", good, NULL, NULL);
    failed += cmocka_run_group_tests_name("luapack refuses", rows, NULL, NULL);
    return failed;
}
