#!/usr/bin/env bats
# The command line itself: help, mistakes, output, configuration.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

# Every command, one a line, as help --all names them.
command_names() {
    "$WEIR" help --all | sed -n 's/^weir \([a-z]*\( [a-z]*\)\{0,1\}\).*/\1/p' | sed 's/ *$//'
}

@test "every command has help, and it needs no server" {
    export WEIR_URL=unix:///nowhere
    [ "$(command_names | wc -l)" -ge 20 ]
    while read -r name; do
        exits 0 "$WEIR" $name --help
        says "weir $name - "
        says "usage: weir $name"
        exits 0 "$WEIR" help $name
    done < <(command_names)
    exits 0 "$WEIR" --help
    exits 0 "$WEIR" help exit-status
    exits 0 "$WEIR" job --help
    says "job cancel"
}

@test "weir alone and a noun alone say what there is, and fail" {
    exits 64 "$WEIR"
    says "weir enqueue"
    exits 64 "$WEIR" job
    says "job show"
}

@test "version" {
    exits 0 "$WEIR" version
    [[ "$output" =~ ^weir\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    exits 0 "$WEIR" --version
    exits 0 "$WEIR" version --json
    grep -q "VERSION $(value "$output" .version)" "$BATS_TEST_DIRNAME/../../../CMakeLists.txt"
}

@test "unknown commands and flags: one line with the nearest name" {
    exits 64 "$WEIR" enqeue
    says 'did you mean "enqueue"'
    exits 64 "$WEIR" job shwo x
    says 'did you mean "job show"'
    exits 64 "$WEIR" enqueue t --retyr 3
    says 'did you mean --retry'
    exits 64 "$WEIR" status -Z
    says 'no flag -Z'
    exits 64 "$WEIR" xyzzy
    exits 64 "$WEIR" $'evil\033[31m'
    [[ "$output" != *$'\033'* ]]
    exits 64 "$WEIR" help xyzzy
    exits 64 "$WEIR" status extra
    exits 64 "$WEIR" job show
    exits 64 "$WEIR" status --json=yes
    exits 64 "$WEIR" status -o yaml
    exits 64 "$WEIR" enqueue t --id
    says 'needs a value'
}

@test "an argument that is not the last word of a flag is not swallowed" {
    "$WEIR" enqueue t -yq mail --id x
    [ "$("$WEIR" job show x -o json | jq -r .queue)" = mail ]
    "$WEIR" enqueue t -qmail2 --id y
    [ "$("$WEIR" job show y -ojson | jq -r .queue)" = mail2 ]
}

@test "messages go to stderr, answers to stdout" {
    "$WEIR" job show nope 2>/dev/null >"$BATS_TEST_TMPDIR/out" || true
    [ ! -s "$BATS_TEST_TMPDIR/out" ]
    "$WEIR" worker ls --json 2>/dev/null >"$BATS_TEST_TMPDIR/out"
    [ ! -s "$BATS_TEST_TMPDIR/out" ]
}

@test "a full or closed stdout is a failure" {
    exits 74 bash -c '"$0" version >/dev/full' "$WEIR"
    exits 74 bash -c '"$0" status --help >&-' "$WEIR"
    exits 74 bash -c '"$0" enqueue t >/dev/full' "$WEIR"
    exits 0 bash -c '"$0" version <&-' "$WEIR"
}

@test "colour only on a terminal, and NO_COLOR wins" {
    "$WEIR" queue create c
    run on_terminal "$WEIR" status
    [[ "$output" == *$'\033['* ]]
    run on_terminal NO_COLOR=1 "$WEIR" status
    [[ "$output" != *$'\033['* ]]
    run on_terminal NO_COLOR=1 FORCE_COLOR=1 "$WEIR" status
    [[ "$output" != *$'\033['* ]]
    run on_terminal "$WEIR" status --no-color
    [[ "$output" != *$'\033['* ]]
    run env TERM=dumb script -qec "$WEIR status" /dev/null
    [[ "$output" != *$'\033['* ]]
    run "$WEIR" status -o table
    [[ "$output" != *$'\033['* ]]
    FORCE_COLOR=1 run "$WEIR" status -o table
    [[ "$output" == *$'\033['* ]]
}

@test "flag beats environment beats file, and config show tells which" {
    conf=$BATS_TEST_TMPDIR/w.conf
    printf '# mine\nnamespace = fromfile\ngrace = 7s\n' >"$conf"
    origin() { "$WEIR" config show --json "$@" | jq -rc 'select(.key == "namespace") | [.value, .origin]'; }
    unset WEIR_NAMESPACE
    [ "$(origin)" = '["weir","built in"]' ]
    [ "$(origin --config "$conf")" = "[\"fromfile\",\"$conf:2\"]" ]
    [ "$(WEIR_CONFIG=$conf WEIR_NAMESPACE=fromenv origin)" = '["fromenv","WEIR_NAMESPACE"]' ]
    [ "$(WEIR_CONFIG=$conf WEIR_NAMESPACE=fromenv origin -N fromflag)" = '["fromflag","--namespace"]' ]
    mkdir -p "$XDG_CONFIG_HOME/weir"
    cp "$conf" "$XDG_CONFIG_HOME/weir/weir.conf"
    [ "$(origin | jq -r '.[0]')" = fromfile ]
    exits 0 "$WEIR" config show --origin
    says $'grace\t7s\t'
}

@test "a bad configuration is named by file and line, exit 78" {
    conf=$BATS_TEST_TMPDIR/w.conf
    printf 'namespace = a\nnamespce = b\n' >"$conf"
    exits 78 "$WEIR" status --config "$conf"
    says "$conf:2: no setting \"namespce\"; did you mean \"namespace\"?"
    printf '\n\njust words\n' >"$conf"
    exits 78 "$WEIR" status --config "$conf"
    says "$conf:3:"
    printf 'grace = soon\n' >"$conf"
    exits 78 "$WEIR" status --config "$conf"
    exits 78 "$WEIR" status --config /does/not/exist
    exits 78 "$WEIR" status --password-file /does/not/exist
    printf 'password = x\n' >"$conf"
    chmod 666 "$conf"
    exits 78 "$WEIR" status --config "$conf"
    says "everybody may write"
    chmod 600 "$conf"
    exits 0 "$WEIR" config show --config "$conf"
    says $'password\t***'
    exits 78 env WEIR_URL=http://x "$WEIR" status
    exits 64 "$WEIR" status --url http://x
    exits 64 "$WEIR" status -N 'a{b'
}

@test "a password is never shown and not taken as a flag" {
    exits 64 "$WEIR" status -u redis://:hushhush@127.0.0.1/0
    [[ "$output" != *hushhush* ]]
    WEIR_URL=redis://app:hushhush@127.0.0.1:1/0 run "$WEIR" config show
    [[ "$output" != *hushhush* ]]
    says 'redis://app:***@127.0.0.1:1/0'
    WEIR_URL=redis://app:hushhush@127.0.0.1:1/0 run "$WEIR" status
    [ "$status" = 69 ]
    [[ "$output" != *hushhush* ]]
}

@test "the completion script is good bash and knows the commands" {
    "$WEIR" completion bash >"$BATS_TEST_TMPDIR/c"
    bash -n "$BATS_TEST_TMPDIR/c"
    run bash -c '. "$0"; COMP_WORDS=(weir enq); COMP_CWORD=1; _weir; echo "${COMPREPLY[@]}"' \
        "$BATS_TEST_TMPDIR/c"
    [ "$output" = enqueue ]
    run bash -c '. "$0"; COMP_WORDS=(weir job show --js); COMP_CWORD=3; _weir; echo "${COMPREPLY[@]}"' \
        "$BATS_TEST_TMPDIR/c"
    [ "$output" = --json ]
    exits 64 "$WEIR" completion tcsh
}

@test "the manual names every command and flag" {
    man=$BATS_TEST_DIRNAME/../../../docs/man
    while read -r name; do
        grep -q "^\*weir $name\*" "$man/weir.1.scd" || { echo "not in weir.1: $name"; false; }
    done < <(command_names)
    while read -r flag; do
        grep -qe "\*$flag\*" "$man"/*.scd || { echo "in no manual page: $flag"; false; }
    done < <("$WEIR" help --all | grep -o -- '^ .*  --[a-z-]*' | grep -o -- '--[a-z-]*' | sort -u)
    while read -r key; do
        grep -q "^\*$key\*" "$man/weir.conf.5.scd" || { echo "not in weir.conf.5: $key"; false; }
    done < <("$WEIR" config show --json | jq -r .key)
}

@test "what cannot be is refused before anything runs: bench, scheduler, queue set" {
    exits 64 "$WEIR" bench --only lateral
    says '--only: "lateral" is none of enqueue'
    [[ "$output" != *'{'* ]]
    exits 64 "$WEIR" bench --jobs 0
    exits 64 "$WEIR" bench -c 0
    exits 64 "$WEIR" scheduler -q '{x}'
    says "queue name:"
    exits 78 "$WEIR" scheduler --lease 1ms
    says "lease: from 1s to 10m"
    exits 0 "$WEIR" queue create q
    exits 64 "$WEIR" queue set q
    says "nothing to change"
}

@test "a file that is not there is called a file, whatever it would have held" {
    exits 74 "$WEIR" cron apply /nope
    says 'weir: file "/nope": No such file'
    exits 74 "$WEIR" enqueue t @/nope
    says 'weir: file "/nope": No such file'
}

@test "help exit-status knows those of weir run" {
    exits 0 "$WEIR" help exit-status
    says "125  weir itself failed"
    says "127  the worker has no such command"
}

@test "weir dev refuses a socket whose path no server can use" {
    long=$BATS_TEST_TMPDIR/$(printf '%0110d' 1)
    exits 64 env -u WEIR_URL "$WEIR" dev --dir "$BATS_TEST_TMPDIR" --socket "$long"
    says 'at most 107'
    exits 64 env -u WEIR_URL "$WEIR" dev --dir "$long"
    says 'at most 107'
}

@test "an engine that does not exist is refused where it is set" {
    WEIR_ENGINE=tree exits 78 "$WEIR" status
    says "WEIR_ENGINE: \"tree\" is not list or stream"
    echo 'engine = tree' >"$BATS_TEST_TMPDIR/c.conf"
    exits 78 "$WEIR" config check --config "$BATS_TEST_TMPDIR/c.conf"
    says "c.conf:1: engine: not list or stream"
    for command in 'work -q q --once -- true' scheduler; do
        WEIR_ENGINE=tree exits 78 timeout 20 "$WEIR" $command
        says "WEIR_ENGINE: \"tree\" is not list or stream"
    done
    other_engine q
    WEIR_ENGINE= exits 0 "$WEIR" queue create q
}
