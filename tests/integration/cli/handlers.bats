#!/usr/bin/env bats
# The sections [handler.TYPE] of weir.conf: commands by type, and what is refused.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
    conf=$BATS_TEST_TMPDIR/weir.conf
    export WEIR_CONFIG=$conf
}

drain() {
    exits 0 "$WEIR" work -q default --drain "$@" 3>&-
}

# refuses LINE TEXT: with this file every command fails, and says where and why.
refuses() {
    exits 78 "$WEIR" config show
    says "$conf:$1: "
    says "$2"
}

error_of() {
    "$WEIR" job show "$1" --json | jq -r .error
}

@test "each type has its command, words as a shell would cut them but without a shell (X14)" {
    cat >"$conf" <<'E'
concurrency = 1
# comments and blank lines are fine here too

[handler.up]
command = tr a-z A-Z
[ handler.words ]
command = printf '<%s>' "two words" one\ too 'a"b' "it's" $HOME '' "a\\b" '|'
[handler.*]
command = echo "all others" | wc -w
shell = yes
E
    for t in up words other; do "$WEIR" enqueue $t 'some text' --id $t; done
    drain
    [ "$("$WEIR" job result up)" = 'SOME TEXT' ]
    [ "$("$WEIR" job result words)" = "<two words><one too><a\"b><it's><\$HOME><><a\\b><|>" ]
    [ "$("$WEIR" job result other | tr -d ' ')" = 2 ]
}

@test "a command of the file has a clean environment, one of the command line inherits (X14)" {
    cat >"$conf" <<'E'
[handler.env]
command = env
env = "GREETING=good day" KIND=a
env = B=b
pass_env = MY_*, ONE
[handler.all]
command = env
clean_env = no
E
    export MY_A=1 MY_B=2 ONE=3 TWO=4 LANG=C.UTF-8
    for t in env all flag clean; do "$WEIR" enqueue $t --id $t -q $t; done
    "$WEIR" work -q env -q all --drain 3>&-
    "$WEIR" job result env | sort >"$BATS_TEST_TMPDIR/got"
    for line in 'GREETING=good day' KIND=a B=b MY_A=1 MY_B=2 ONE=3 LANG=C.UTF-8 WEIR_JOB_ID=env; do
        grep -qxF "$line" "$BATS_TEST_TMPDIR/got"
    done
    run grep -E '^(TWO|WEIR_URL|BATS)' "$BATS_TEST_TMPDIR/got"
    [ -z "$output" ]
    "$WEIR" job result all | grep -qx TWO=4
    "$WEIR" work -q flag --drain --exec flag=env 3>&-
    "$WEIR" job result flag | grep -qx TWO=4
    "$WEIR" work -q clean --drain --clean-env --pass-env 'MY_*' --exec clean=env 3>&-
    "$WEIR" job result clean >"$BATS_TEST_TMPDIR/got"
    grep -qx MY_B=2 "$BATS_TEST_TMPDIR/got"
    run grep -x TWO=4 "$BATS_TEST_TMPDIR/got"
    [ -z "$output" ]
}

@test "umask, working folder and limits are those of the section (X14)" {
    mkdir "$BATS_TEST_TMPDIR/work"
    cat >"$conf" <<E
[handler.t]
command = pwd; umask; ulimit -n; ulimit -t; ulimit -c; ulimit -f; nice
shell = yes
cwd = $BATS_TEST_TMPDIR/work
umask = 0027
rlimit_nofile = 77
rlimit_cpu = 90s
rlimit_core = 0
rlimit_fsize = 1M
nice = 3
E
    "$WEIR" enqueue t --id t
    drain
    before=$(nice)
    [ "$("$WEIR" job result t)" = "$BATS_TEST_TMPDIR/work
0027
77
90
0
2048
$((before + 3 < 19 ? before + 3 : 19))" ]
}

@test "exit statuses mean what the section says, the first rule first (R08)" {
    cat >"$conf" <<'E'
[handler.exit]
command = read -r code; exit $code
shell = yes
exit.success = 24
exit.permanent = 2,64-66
exit.snooze = 3
exit.retry = 64,75
snooze = 1h
E
    for code in 0 24 2 64 66 3 75 7; do
        "$WEIR" enqueue exit $code --id e$code --backoff fixed:2h --retry 1
    done
    "$WEIR" work -q default --drain 3>&- || true
    state() { "$WEIR" job show "$1" --json | jq -r "${2:-.state}"; }
    for code in 0 24; do [ "$(state e$code)" = done ]; done
    for code in 2 64 66; do [ "$(state e$code)" = dead ]; done
    for code in 3 75 7; do [ "$(state e$code)" = delayed ]; done
    [ "$(state e3 .attempts)" = 0 ]
    [ "$(state e75 .attempts)" = 1 ]
    [ "$(state e7 .attempts)" = 1 ]
}

@test "a flag names another command, the section keeps the rest; -- CMD is for every job" {
    cat >"$conf" <<'E'
[handler.a]
command = echo file a
env = SAID=yes
[handler.b]
command = echo file b
E
    "$WEIR" enqueue a --id a1
    "$WEIR" enqueue b --id b1
    drain --exec 'a=echo flag $SAID'
    [ "$("$WEIR" job result a1)" = 'flag yes' ]
    [ "$("$WEIR" job result b1)" = 'file b' ]
    "$WEIR" enqueue a --id a2
    "$WEIR" enqueue b --id b2
    drain -- echo all
    [ "$("$WEIR" job result a2)" = all ]
    [ "$("$WEIR" job result b2)" = all ]
}

@test "members of a JSON payload become words, each one word, and only those that are listed" {
    cat >"$conf" <<'E'
[handler.t]
command = printf '<%s>' {src} -w {width} {other} x{src} {on} {src}
json_fields = src, width on
E
    "$WEIR" enqueue t '{"src":"a b; $(id) \"q\" *","width":200,"on":true,"other":"no"}' --id good
    "$WEIR" enqueue t '{"width":200,"on":true}' --id missing
    "$WEIR" enqueue t '{"src":["a"],"width":200,"on":true}' --id list
    "$WEIR" enqueue t '{"src":"a\u0000b","width":200,"on":true}' --id nul
    "$WEIR" enqueue t 'text' --id text
    "$WEIR" enqueue t --id empty
    "$WEIR" work -q default --drain 3>&- || true
    odd='a b; $(id) "q" *'
    [ "$("$WEIR" job result good)" = "<$odd><-w><200><{other}><x{src}><true><$odd>" ]
    for id in missing list nul text empty; do
        [ "$("$WEIR" job show $id --json | jq -r '[.state, .deliveries] | join(" ")')" = 'dead 1' ]
        [[ "$(error_of $id)" == 'the payload cannot fill in the command: '* ]]
    done
    [[ "$(error_of missing)" == *'no member "src"'* ]]
    printf '[handler.t]\ncommand = cat {a}\njson_fields = a, b\n' >"$conf"
    exits 78 "$WEIR" config check
    says 'no word of it is {b}'
    printf '[handler.t]\ncommand = cat {a}\nshell = yes\njson_fields = a\n' >"$conf"
    exits 78 "$WEIR" config check
    printf '[handler.t]\ncommand = cat {a}\njson_fields =\n' >"$conf"
    refuses 3 'json_fields: not names'
}

@test "config show prints them with their origin, and no value of a variable" {
    printf '[handler.x.y]\ncommand = true "a b"\nenv = KEY=hushhush A=2\n' >"$conf"
    exits 0 "$WEIR" config show --origin
    says $'handler.x.y.command\ttrue "a b"\t'"$conf:2"
    says $'handler.x.y.env\tKEY=*** A=***\t'"$conf:3"
    [[ "$output" != *hushhush* ]]
    [ "$("$WEIR" config show --json | jq -rc 'select(.key == "handler.x.y.command") | [.value, .origin]')" \
        = "[\"true \\\"a b\\\"\",\"$conf:2\"]" ]
}

@test "what cannot be right is refused with its line" {
    printf '[handler.a]\ncomand = x\n' >"$conf"
    refuses 2 'no setting of a handler "comand"; did you mean "command"?'
    printf '[handler.a]\ncommand = x\nexit.permanet = 2\n' >"$conf"
    refuses 3 'did you mean "exit.permanent"?'
    printf '\n[handlers.a]\n' >"$conf"
    refuses 2 'no section [handlers.a]'
    printf '[handler.a\n' >"$conf"
    refuses 1 'without ]'
    printf '[handler.]\n' >"$conf"
    refuses 1 'the type has'
    printf '[handler.a]\ntimeout = 1s\n' >"$conf"
    refuses 1 '[handler.a] has no command'
    printf '[handler.a]\ncommand = x\n[handler.a]\n' >"$conf"
    refuses 3 'there already, in line 1'
    printf '[handler.a]\ncommand = x\ncommand = y\n' >"$conf"
    refuses 3 'there already, in line 2'
    printf '[handler.a]\ncommand =\n' >"$conf"
    refuses 2 'command: not a command'
    printf '[handler.a]\ncommand = ""\n' >"$conf"
    refuses 2 'no program'
    printf '[handler.a]\ncommand = cat | wc\n' >"$conf"
    refuses 2 'shell = yes'
    printf "[handler.a]\ncommand = echo 'oh\n" >"$conf"
    refuses 2 'a quote is not closed'
    printf '[handler.a]\ncommand = x\nurl = redis://h/0\n' >"$conf"
    refuses 3 'no setting of a handler "url"'
    printf '[handler.weir.exec]\ncommand = x\n' >"$conf"
    refuses 2 'bring their own command'
    printf '[handler.a]\ncommand = x\n' >"$conf"
    chmod 666 "$conf"
    refuses 1 'everybody may write'
}

@test "each kind of value is checked" {
    while read -r line; do
        printf '[handler.a]\ncommand = x\n%s\n' "$line" >"$conf"
        refuses 3 "${line%% *}: not "
    done <<'E'
shell = perhaps
timeout = soon
timeout = 0
result = all
result_max = 1G
stop_signal = SIGNOTHING
rlimit_as = 0
rlimit_nofile = many
rlimit_cpu = -1
nice = 20
ioprio = idle:3
ioprio = best-effort:8
umask = 999
umask = 01000
oom_score_adj = 1001
cwd = here
env = NAME
env = 1A=b
env = WEIR_URL=x
env = A="b
pass_env = a-b
pass_env = A*B
exit.success = 256
exit.success = 5-3
exit.retry = some
exit.retry =
max_snoozes = 0
kill_stragglers = 2
user =
E
}

@test "an unknown user is refused when the worker starts, with file and line" {
    printf '[handler.a]\ncommand = x\nuser = no-such-user-here\n' >"$conf"
    exits 78 "$WEIR" work -q default --drain
    says "$conf:1: [handler.a]"
    says no-such-user-here
}

@test "a file without handlers gives nothing to run" {
    printf 'concurrency = 1\n' >"$conf"
    exits 64 "$WEIR" work -q default
    says '[handler.TYPE]'
}

@test "a missing program, a folder and a file that cannot be run are named, and the worker lives (R10)" {
    touch "$BATS_TEST_TMPDIR/plain"
    cat >"$conf" <<E
[handler.missing]
command = /no/such/program
[handler.name]
command = no-such-program-anywhere
[handler.folder]
command = $BATS_TEST_TMPDIR
[handler.plain]
command = $BATS_TEST_TMPDIR/plain
[handler.good]
command = echo fine
E
    for t in missing name folder plain; do "$WEIR" enqueue $t --id $t --retry 0; done
    "$WEIR" enqueue good --id good
    "$WEIR" work -q default --drain 3>&- || true
    [[ "$(error_of missing)" == *"/no/such/program"*"No such file"* ]]
    [[ "$(error_of name)" == *no-such-program-anywhere*"No such file"* ]]
    [[ "$(error_of folder)" == *"$BATS_TEST_TMPDIR"*"ermission denied"* ]]
    [[ "$(error_of plain)" == *plain*"ermission denied"* ]]
    [ "$("$WEIR" job result good)" = fine ]
}

@test "config default is a configuration with every key, and the manual knows each" {
    "$WEIR" config default >"$conf"
    exits 0 "$WEIR" config check
    says "$conf: good, 0 handlers"
    man=$BATS_TEST_DIRNAME/../../../docs/man/weir.conf.5.scd
    sed -n 's/^# \([a-z._]*\) =.*/\1/p' "$conf" >"$BATS_TEST_TMPDIR/keys"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/keys")" -ge 50 ]
    while read -r key; do
        grep -q "^\*$key\*" "$man" || { echo "not in weir.conf.5: $key"; false; }
    done <"$BATS_TEST_TMPDIR/keys"
    # Every setting with what is built in can be read as well.
    sed -n 's/^# \(.* = .*\)/\1/p' "$conf" >"$BATS_TEST_TMPDIR/set"
    exits 0 "$WEIR" config check --config "$BATS_TEST_TMPDIR/set"
}

@test "config check says what a worker would miss" {
    touch "$BATS_TEST_TMPDIR/plain"
    printf '[handler.a]\ncommand = no-such-program-anywhere\n[handler.b]\ncommand = cat\n[handler.c]\ncommand = %s\n' \
        "$BATS_TEST_TMPDIR/plain" >"$conf"
    exits 1 "$WEIR" config check
    says "$conf:1: [handler.a] no such program in PATH: no-such-program-anywhere"
    says "$conf:5: [handler.c] may not be run: "
    exits 1 "$WEIR" config check --json
    [ "$(value "$output" '[.ok, .handlers, .problems[0].line, (.problems | length)] | tostring')" = '[false,3,1,2]' ]
    printf '[handler.b]\ncommand = cat\n' >"$conf"
    exits 0 "$WEIR" config check --json
    [ "$(value "$output" '[.ok, .file] | tostring')" = "[true,\"$conf\"]" ]
    printf 'concurency = 1\n' >"$conf"
    exits 78 "$WEIR" config check
    printf 'allow_command_jobs = ./x\n' >"$conf"
    exits 78 "$WEIR" config check
}

# worker_timeout_ms of the four jobs below.
timeouts() {
    local id all=
    for id in default long other none; do
        all+=" $("$WEIR" job show "$id" --json | jq .worker_timeout_ms)"
    done
    echo "${all# }"
}

@test "job show tells the timeout of the handler where that is the shorter one" {
    cat >"$conf" <<'E'
concurrency = 4
[handler.own]
command = sleep 1000
timeout = 2h
[handler.*]
command = sleep 1000
timeout = 10m
[handler.none]
command = sleep 1000
E
    "$WEIR" enqueue own --id default
    "$WEIR" enqueue own --id long --timeout 3h
    "$WEIR" enqueue other --id other
    "$WEIR" enqueue none --id none --timeout 1h
    "$WEIR" work -q default --job-timeout 5h -c 4 3>&- &
    pid=$!
    until_true eval '[ "$(timeouts)" = "7200000 7200000 600000 null" ]'
    [[ "$("$WEIR" job show other)" == *$'worker_timeout\t600000'* ]]
    "$WEIR" worker stop --all --yes --grace 0
    wait "$pid" || true
}
