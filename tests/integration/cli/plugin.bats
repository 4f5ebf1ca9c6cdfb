#!/usr/bin/env bats
# weir work --plugin: handlers in a shared object, and what happens when they crash.

load server

root=$BATS_TEST_DIRNAME/../../..

build() { # OUT SOURCE FLAGS...: the line that plugin.c shows, and where the headers are
    local out=$1 source=$2
    shift 2
    "${CC:-cc}" -shared -fPIC -I"$root/include" -o "$BATS_FILE_TMPDIR/$out" "$root/$source" "$@"
}

setup_file() {
    start_server main
    build plugin.so examples/plugin.c -Wall -Wextra -Werror
    build crash.so tests/plugin/crash.c -O0 -w
    build hooks.so tests/plugin/hooks.c -Wall -Wextra -Werror
    build old.so tests/plugin/hooks.c -DOLD -w
}
teardown_file() { stop_server main; }
setup() {
    use_server main
    crash=$BATS_FILE_TMPDIR/crash.so
    ulimit -c 0
    export STARTS=$BATS_TEST_TMPDIR/starts
    : >"$STARTS"
}

job() { # ID FILTER
    "$WEIR" job show "$1" --json | jq -c "$2"
}

starts_of() { grep -cx "$1" "$STARTS" || true; }

@test "a plugin built by one line of cc runs jobs" {
    "$WEIR" enqueue greet ann --id g
    "$WEIR" enqueue count-lines "$(printf 'a\nb\nc')" --id c
    "$WEIR" enqueue greet '' --id nobody
    GREETING=ahoy exits 0 "$WEIR" work -q default --plugin "$BATS_FILE_TMPDIR/plugin.so" --drain
    [ "$("$WEIR" job result g)" = 'ahoy ann' ]
    [ "$("$WEIR" job result c)" = 2 ]
    [ "$(job nobody .state)" = '"dead"' ]
}

@test "plugins, commands and a command for the rest work side by side; hooks are the plugin's own" {
    "$WEIR" enqueue greet bob --id g
    "$WEIR" enqueue tell --id t
    "$WEIR" enqueue up abc --id u
    "$WEIR" enqueue else xyz --id e
    STOPPED=$BATS_TEST_TMPDIR/stopped exits 0 "$WEIR" work -q default --drain \
        --plugin "$BATS_FILE_TMPDIR/plugin.so" --plugin "$crash" --exec 'up=tr a-z A-Z' -- rev
    [ "$("$WEIR" job result g)" = 'hello bob' ]
    [ "$("$WEIR" job result t)" = 'of this plugin' ]
    [ "$("$WEIR" job result u)" = ABC ]
    [ "$("$WEIR" job result e)" = zyx ]
    [ "$(cat "$BATS_TEST_TMPDIR/stopped")" = 'of this plugin' ]
}

# What crashed waits a second or two before it runs again.
nothing_left() {
    [ "$("$WEIR" audit --json | jq -c '[.ready, .delayed, .processing]')" = '[0,0,0]' ]
}

work_until_empty() {
    local worker
    "$WEIR" work -q default -c 3 --plugin "$crash" --lease 5s "$@" 2>"$BATS_TEST_TMPDIR/log" 3>&- &
    worker=$!
    until_true nothing_left
    kill -TERM "$worker"
    wait "$worker"
}

# The one at fault is dead after max_deliveries, with its signal in its record. Those that
# ran beside it are charged one loss at most (a second would be their death here), run
# alone, and end well.
pill() { # TYPE HOW
    for i in 1 2; do "$WEIR" enqueue sleep 400 --id "long$i" --retry 0 --max-deliveries 2; done
    "$WEIR" enqueue "$1" --id pill --retry 0
    for i in $(seq 20); do "$WEIR" enqueue sleep 0 --id "s$i" --retry 0 --max-deliveries 2; done
    work_until_empty
    [ "$(job pill .state)" = '"dead"' ]
    redis hget "$WEIR_NAMESPACE:{default}:errors" pill | grep -q " lost_worker "
    [[ "$(job pill .error)" == *"loss 3 of 3"* ]]
    [[ "$(job pill .error)" == *"$2"* ]]
    [ "$(starts_of pill)" = 3 ]
    for i in long1 long2 $(seq -f 's%g' 20); do
        [ "$(job "$i" .state)" = '"done"' ]
    done
    [ "$("$WEIR" audit --json | jq .gap)" = 0 ]
    [ "$("$WEIR" audit --deep --json | jq -c .findings)" = '[]' ]
}

@test "a handler that aborts kills its child, is dead after three, its long neighbours are not (L15, L16, F35)" {
    pill abort 'killed by SIGABRT'
}

@test "a handler that faults is dead with SIGSEGV in its record (L16, F35)" {
    pill segv 'killed by SIGSEGV'
}

@test "a handler that overflows its stack is dead with SIGSEGV in its record (L16)" {
    pill overflow 'killed by SIGSEGV'
}

@test "a handler that calls exit() is dead with the status in its record (L16)" {
    pill exit 'ended with status 7'
}

started_twice() { [ "$(starts_of pill)" -ge 2 ]; }

@test "a job that circulates can be cancelled (L18)" {
    "$WEIR" enqueue abort --id pill --max-deliveries 0
    "$WEIR" work -q default -c 2 --plugin "$crash" 2>/dev/null 3>&- &
    daemon=$!
    until_true started_twice
    "$WEIR" job cancel pill
    cancelled() { [ "$("$WEIR" audit --json | jq .cancelled)" = 1 ]; }
    until_true cancelled
    before=$(starts_of pill)
    "$WEIR" enqueue sleep 0 --id after
    exits 0 "$WEIR" job wait after --timeout 10s
    kill -TERM "$daemon"
    wait "$daemon"
    [ "$(starts_of pill)" -le $((before + 1)) ]
    [ "$("$WEIR" audit --json | jq .gap)" = 0 ]
}

@test "one who may not be lost even once runs alone from the start, a command too (L16)" {
    "$WEIR" enqueue sleep 300 --id dear --max-deliveries 1
    "$WEIR" enqueue nap --id command --max-deliveries 1
    "$WEIR" enqueue abort --id pill
    work_until_empty --exec 'nap=sleep 0.3'
    [ "$(job dear .state)" = '"done"' ]
    [ "$(job command .state)" = '"done"' ]
    [ "$(job pill .state)" = '"dead"' ]
}

@test "what is wrong with a plugin is one clear line, before any job is taken" {
    exits 78 "$WEIR" work --plugin /no/such.so
    says "/no/such.so: No such file"
    echo 'not an object' >"$BATS_TEST_TMPDIR/text.so"
    exits 78 "$WEIR" work --plugin "$BATS_TEST_TMPDIR/text.so"
    says "text.so"
    echo 'int x;' | "${CC:-cc}" -shared -fPIC -x c -o "$BATS_TEST_TMPDIR/none.so" -
    exits 78 "$WEIR" work --plugin "$BATS_TEST_TMPDIR/none.so"
    says "not a plugin"
    build abi.so tests/plugin/crash.c -w -DOTHER_ABI
    exits 78 "$WEIR" work --plugin "$BATS_FILE_TMPDIR/abi.so"
    says "built for handler ABI 4711, this is 1"
    build twice.so tests/plugin/crash.c -w -DTWICE
    exits 78 "$WEIR" work --plugin "$BATS_FILE_TMPDIR/twice.so"
    says "two handlers for type sleep"
    build construct.so tests/plugin/crash.c -w -DCONSTRUCTOR_FAULTS
    exits 78 "$WEIR" work --plugin "$BATS_FILE_TMPDIR/construct.so"
    says "loading it ends in SIGSEGV"
    exits 64 "$WEIR" work --plugin "$crash" --plugin "$crash"
    says "has a handler already"
    exits 64 "$WEIR" work --plugin "$crash" --exec 'sleep=true'
    says "type sleep has a handler already"
    STARTUP_FAILS='the licence server says no' exits 77 "$WEIR" work -q default --plugin "$crash"
    says "the licence server says no"
}

@test "a plugin that is linked with the shared library all the same uses the calls of its host" {
    lib=$(dirname "$WEIR")
    [ -e "$lib/libweir-worker.so" ] || skip "no shared library beside the tool"
    ! ldd "$WEIR" | grep -q asan || skip "another runtime"
    build linked.so examples/plugin.c -L"$lib" -lweir-worker -Wl,-rpath,"$lib" -Wl,-z,defs
    "$WEIR" enqueue greet zoe --id z
    exits 0 "$WEIR" work -q default --plugin "$BATS_FILE_TMPDIR/linked.so" --once
    [ "$("$WEIR" job result z)" = 'hello zoe' ]
}

@test "hooks of a plugin stand around its own jobs, and a start that refuses fails the attempt" {
    export HOOKS=$BATS_TEST_TMPDIR/hooks
    for id in good fail refuse add; do "$WEIR" enqueue hooked $id --id $id --retry 0; done
    "$WEIR" enqueue tell --id t # of another plugin
    "$WEIR" enqueue up abc --id u
    exits 0 "$WEIR" work -q default -c 1 --drain --plugin "$BATS_FILE_TMPDIR/hooks.so" --plugin "$crash" \
        --exec 'up=tr a-z A-Z'
    [ "$(grep good "$HOOKS")" = $'start good own\nrun good\nend good own 0 ' ]
    [ "$(grep fail "$HOOKS" | cut -d ' ' -f 1 | tr '\n' ' ')" = 'start run end ' ]
    [ "$(grep -c refuse "$HOOKS")" = 2 ] # not run, and its end is told why
    grep -q '^end refuse own 1 the hook before the job: not today$' "$HOOKS"
    [ "$(job refuse '[.state, .attempts]')" = '["dead",1]' ]
    [[ "$(job refuse .error)" == *'not today'* ]]
    [ "$("$WEIR" job result good)" = mine ]
    [ "$("$WEIR" job result add)" = "the hook's" ]
    [ "$("$WEIR" job result t)" = 'of this plugin' ]
    [ "$("$WEIR" job result u)" = ABC ]
    [ "$(grep -cE ' (t|u) ' "$HOOKS")" = 0 ]
}

@test "a plugin whose table ends before the hooks goes on working" {
    export HOOKS=$BATS_TEST_TMPDIR/hooks
    "$WEIR" enqueue hooked good --id good --retry 0
    exits 0 "$WEIR" work -q default --once --plugin "$BATS_FILE_TMPDIR/old.so"
    [ "$("$WEIR" job result good)" = mine ]
    [ "$(cat "$HOOKS")" = 'run good' ]
}

deaf_has_ended() { [ "$(starts_of deaf)" = 2 ]; }

@test "that a lease is somebody else's is said once of a handler that does not heed it (L03)" {
    local worker key=$WEIR_NAMESPACE:{default} log=$BATS_TEST_TMPDIR/log
    "$WEIR" work -q default -c 1 --plugin "$crash" --lease 2s --no-scheduler 2>"$log" 3>&- &
    worker=$!
    "$WEIR" enqueue deaf --id deaf
    until_true grep -qx deaf "$STARTS"
    redis DEL "$key:processing" "$key:stream" "$key:state"
    until_true deaf_has_ended # after three seconds, with a renewal every half
    kill -TERM "$worker"
    wait "$worker"
    cat "$log"
    [ "$(grep -c 'deaf: its lease is no longer ours' "$log")" = 1 ]
}
