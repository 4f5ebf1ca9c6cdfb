#!/usr/bin/env bats
# weir work, weir scheduler, weir dev: the daemons of the tool.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

teardown() {
    [ -z "${daemon:-}" ] || kill -9 "$daemon" 2>/dev/null || true
}

state_of() {
    "$WEIR" job show "$1" --json | jq -r .state
}

is_state() {
    [ "$(state_of "$1")" = "$2" ]
}

@test "a command gets the payload on stdin and its stdout is the result" {
    "$WEIR" enqueue t 'some text' --id a
    exits 0 "$WEIR" work -q default --once -- sed s/some/any/
    [ "$("$WEIR" job result a)" = 'any text' ]
}

@test "exit 65 is never, 75 is later, else it is tried again" {
    for i in 65 75 1; do "$WEIR" enqueue t "$i" --id "e$i" --backoff fixed:1h; done
    "$WEIR" work -q default --drain -- sh -c 'read x; exit "$x"' 3>&- || true
    [ "$(state_of e65)" = dead ]
    [ "$("$WEIR" job show e75 --json | jq -c '[.state, .attempts]')" = '["delayed",0]' ]
    [ "$("$WEIR" job show e1 --json | jq -c '[.state, .attempts]')" = '["delayed",1]' ]
    [ "$("$WEIR" audit --json | jq .gap)" = 0 ]
}

@test "a job's environment says who it is and holds no secret" {
    "$WEIR" enqueue greet --id who --meta trace=abc
    "$WEIR" work -q default --once -- env 3>&-
    result=$("$WEIR" job result who)
    [[ "$result" == *WEIR_JOB_ID=who* ]]
    [[ "$result" == *WEIR_JOB_TYPE=greet* ]]
    [[ "$result" != *WEIR_URL* ]]
}

@test "types can have commands of their own" {
    "$WEIR" enqueue up abc --id u
    "$WEIR" enqueue count abc --id c
    exits 0 "$WEIR" work -q default --drain --exec 'up=tr a-z A-Z' --exec 'count=wc -c'
    [ "$("$WEIR" job result u)" = ABC ]
    [ "$("$WEIR" job result c | tr -d ' ')" = 3 ]
}

one_worker_is_up() {
    [ "$("$WEIR" worker ls --json | jq -s length)" = 1 ]
}

@test "a worker without -q soon serves the first queue there is" {
    "$WEIR" work -- cat 2>/dev/null 3>&- &
    daemon=$!
    until_true one_worker_is_up
    "$WEIR" enqueue t now --id first
    exits 0 "$WEIR" job wait first --timeout 3s
    kill -TERM "$daemon"
    wait "$daemon"
    daemon=
}

@test "weights and --strict together are an error that says so, on the command line and in the file (P02)" {
    exits 64 "$WEIR" work -q a -q b:2 -q c --strict -- true
    says "queue b: strict order and weights exclude each other"
    printf 'queues = a, b:2, c\nstrict = yes\n' >"$BATS_TEST_TMPDIR/weir.conf"
    exits 64 "$WEIR" work --config "$BATS_TEST_TMPDIR/weir.conf" -- true
    says "queue b: strict order and weights exclude each other"
    printf 'strict = perhaps\n' >"$BATS_TEST_TMPDIR/weir.conf"
    exits 78 "$WEIR" work --config "$BATS_TEST_TMPDIR/weir.conf" -- true
    says "weir.conf:1: strict: not yes or no"
}

@test "weights, order and reserved slots that make no sense are refused (P02)" {
    exits 64 "$WEIR" work -q a:0 -- true
    says "queue a:0: a weight is from 1 to 1000"
    exits 64 "$WEIR" work -q a:1001 -- true
    exits 64 "$WEIR" work -q a:6 -q a:2 -- true
    says "queue a is named twice"
    exits 64 "$WEIR" work --strict -- true
    says "name the queues, the most important first"
    exits 64 "$WEIR" work -q a --reserve b=1 -- true
    says "does not serve that queue"
    exits 64 "$WEIR" work -q a --reserve a -- true
    says "not QUEUE=SLOTS"
    exits 64 "$WEIR" work -q a -q b --reserve a=2 -c 2 -- true
    says "none is left for the other queues"
}

@test "a worker with weights, an order or reserved slots runs its jobs (P01)" {
    for args in '-q w1:6 -q w2' '-q w1 -q w2 --strict' '-q w1 -q w2 --reserve w1=1 -c 2'; do
        "$WEIR" enqueue t -q w1 --id one
        "$WEIR" enqueue t -q w2 --id two
        # shellcheck disable=SC2086
        exits 0 "$WEIR" work $args --drain -- true
        [ "$("$WEIR" audit -q w1 -q w2 --json | jq -s 'map(.ready) | add')" = 0 ]
    done
}

@test "a name that ends like a weight is written with a colon more" {
    "$WEIR" enqueue t -q 'odd:6' --id odd
    "$WEIR" enqueue t -q odd --id even
    exits 0 "$WEIR" work -q 'odd:6:' --strict --drain -- true
    [ "$(state_of even)" = ready ]
    [ "$("$WEIR" audit -q 'odd:6' --json | jq .done)" = 1 ]
    exits 0 "$WEIR" work -q 'odd:6' --drain -- true
    [ "$("$WEIR" audit -q odd --json | jq .done)" = 1 ]
}

@test "a job without a handler is shown: status, queue show, job show" {
    "$WEIR" enqueue unknown -q shelf --id nobody
    exits 0 "$WEIR" work -q shelf --drain --exec 'known=true'
    [ "$("$WEIR" status -q shelf --json | jq -c '[.shelved, .shelved_type, .delayed]')" = '[1,"unknown",1]' ]
    exits 0 "$WEIR" queue show shelf
    says "$(printf 'shelved\t1')"
    exits 0 "$WEIR" job show nobody -q shelf
    says "no_handler no handler for type unknown on worker"
}

@test "mistakes on the command line of work" {
    exits 64 "$WEIR" work -q x
    says "nothing to run"
    exits 64 "$WEIR" work -q x --
    exits 64 "$WEIR" work --exec nonsense
    exits 64 "$WEIR" work --exec 't=a' --exec 't=b'
    exits 64 "$WEIR" work -q 'a{b' -- true
    exits 64 "$WEIR" work -c 0 -- true
    exits 64 "$WEIR" work -c -1 -- true
    exits 64 "$WEIR" work --processes 0 -- true
    exits 64 "$WEIR" work --grace soon -- true
    exits 78 "$WEIR" work --lease 1ms -- true
    exits 64 "$WEIR" work extra -- true
    exits 74 "$WEIR" work --once --pidfile /no/such/dir/pid -- true
    exits 74 "$WEIR" work --once --log /no/such/dir/log -- true
    exits 78 env WEIR_CONCURRENCY=lots "$WEIR" work -- true
}

@test "settings name queues, pidfile and log, and the pidfile goes at the end" {
    printf 'queues = one, two\nconcurrency = 2\npidfile = %s/pid\nlog_file = %s/log\n' \
        "$PWD" "$PWD" >conf
    for q in one two three; do "$WEIR" enqueue t -q $q --id "j$q"; done
    WEIR_LOG=info "$WEIR" work --config conf -- true 3>&- &
    daemon=$!
    until_true is_state jone done
    until_true is_state jtwo done
    [ "$(state_of jthree)" = ready ]
    [ "$(cat pid)" = "$daemon" ]
    kill -TERM "$daemon"
    wait "$daemon"
    [ ! -e pid ]
    [ -s log ]
}

has_line_of() { grep -q "job $1:" "$2"; }

@test "a log file that is moved, cut by copy and truncate, or deleted stops nothing (F41)" {
    cd "$BATS_TEST_TMPDIR"
    WEIR_LOG=debug "$WEIR" work -q default --log log -- true 3>&- &
    daemon=$!
    "$WEIR" enqueue t --id a
    until_true has_line_of a log
    mv log log.1
    "$WEIR" enqueue t --id b
    until_true has_line_of b log.1 # the open file, until the worker is started anew
    [ ! -e log ]
    cp log.1 log.2
    : >log.1
    "$WEIR" enqueue t --id c
    until_true has_line_of c log.1
    [ "$(head -c 2 log.1)" = 20 ] # it goes on at the begin, not behind a hole
    [ "$(grep -c 'job a:' log.1)" = 0 ]
    rm log.1
    "$WEIR" enqueue t --id d
    until_true is_state d done
    kill -TERM "$daemon"
    wait "$daemon"
}

@test "without -q every registered queue is served" {
    "$WEIR" enqueue t -q one --id a
    "$WEIR" enqueue t -q two --id b
    "$WEIR" work -- true 3>&- &
    daemon=$!
    until_true is_state a done
    until_true is_state b done
    kill -TERM "$daemon"
    wait "$daemon"
}

@test "SIGTERM lets the running job finish and ends with 0" {
    "$WEIR" enqueue t --id slow
    "$WEIR" work -q default -- sh -c "until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done" 3>&- &
    daemon=$!
    until_true is_state slow processing
    kill -TERM "$daemon"
    touch "$BATS_TEST_TMPDIR/go"
    wait "$daemon"
    [ "$(state_of slow)" = done ]
}

@test "weir scheduler promotes what is due, and stops in order" {
    "$WEIR" enqueue t -q s --in 200ms --id due
    "$WEIR" scheduler 3>&- &
    daemon=$!
    until_true is_state due ready
    kill -TERM "$daemon"
    wait "$daemon"
}

@test "a worker waits for a server that is away, takes its jobs when it comes, and stops" {
    dir=$(mktemp -d)
    WEIR_URL=unix://$dir/s
    "$WEIR" work -q x --once -- tr a-z A-Z 3>&- 2>"$BATS_TEST_TMPDIR/said" &
    daemon=$!
    until_true grep -q 'no server' "$BATS_TEST_TMPDIR/said"
    redis-server --port 0 --unixsocket "$dir/s" --save '' --dir "$dir" >/dev/null 2>&1 3>&- &
    server=$!
    until_true "$WEIR" enqueue t hello -q x --id first
    wait "$daemon"
    [ "$("$WEIR" job result first)" = HELLO ]
    kill "$server"
    wait "$server" || true
    rm -rf "$dir"
}

@test "a worker that never had a server stops when told" {
    export WEIR_URL=unix:///no/such/socket
    "$WEIR" work -q x -- true 3>&- 2>"$BATS_TEST_TMPDIR/said" &
    daemon=$!
    until_true grep -q 'no server' "$BATS_TEST_TMPDIR/said"
    kill -TERM "$daemon"
    until_true sh -c '! kill -0 "$0" 2>/dev/null' "$daemon"
}

# Its own sleep, with nothing of the job in its environment, in a session of its own.
sleeper_runs() { pgrep -f "^sleep 99732.$$\$"; }

@test "what commands left behind ends, also when their spawner is killed (F37)" {
    "$WEIR" enqueue t --id leaves
    "$WEIR" work -q default -c 1 -- sh -c "env -i setsid sleep 99732.$$ & exec sleep 1000" 2>/dev/null 3>&- &
    daemon=$!
    until_true sleeper_runs
    until_true is_state leaves processing
    first=$(sleeper_runs)
    spawner=$(pgrep -x weir-spawner -P "$(pgrep -x weir-child -P "$daemon")")
    kill -9 "$spawner"
    first_gone() { ! sleeper_runs | grep -qx "$first"; }
    until_true first_gone
    until_true sleeper_runs # the job is tried again at once
    "$WEIR" job cancel leaves
    gone() { ! sleeper_runs; }
    until_true gone
    kill -TERM "$daemon"
    wait "$daemon"
    daemon=
}

# Its worker has no handler for this type: another may come.
was_put_off() {
    [ "$("$WEIR" audit --json | jq .shelved)" -ge 1 ]
}

@test "weir dev needs nothing, is found without a URL, and keeps its jobs" {
    unset WEIR_URL WEIR_NAMESPACE
    export XDG_RUNTIME_DIR
    XDG_RUNTIME_DIR=$(mktemp -d)
    "$WEIR" dev 3>&- 2>"$BATS_TEST_TMPDIR/said" &
    daemon=$!
    until_true "$WEIR" status --quiet
    "$WEIR" enqueue t hello --id kept
    until_true was_put_off
    [ "$("$WEIR" job show kept --json | jq .attempts)" = 0 ]
    grep -q 'unix://' "$BATS_TEST_TMPDIR/said"
    [[ "$("$WEIR" config show --origin)" == *"the server of weir dev"* ]]
    kill -INT "$daemon" 2>/dev/null || kill -TERM "$daemon"
    kill -TERM "$daemon"
    wait "$daemon"
    "$WEIR" dev -- tr a-z A-Z 3>&- 2>/dev/null &
    daemon=$!
    until_true is_state kept done
    [ "$("$WEIR" job result kept)" = HELLO ]
    kill -TERM "$daemon"
    wait "$daemon"
    [ -z "$(ls "$XDG_RUNTIME_DIR")" ] || true
    [ -d "$XDG_STATE_HOME/weir/weir" ]
    rm -rf "$XDG_RUNTIME_DIR"
}

@test "a second weir dev in the same folder is refused" {
    unset WEIR_URL
    export XDG_RUNTIME_DIR
    XDG_RUNTIME_DIR=$(mktemp -d)
    "$WEIR" dev 3>&- 2>/dev/null &
    daemon=$!
    until_true "$WEIR" status --quiet
    exits 78 timeout 20 "$WEIR" dev
    kill -TERM "$daemon"
    wait "$daemon"
    rm -rf "$XDG_RUNTIME_DIR"
}

@test "--job-timeout and --keep-result hold for jobs that do not say it themselves" {
    "$WEIR" enqueue t --id a --keep-result 0
    timeout 60 "$WEIR" work -q default --once --keep-result 1h -- echo hi
    [ "$("$WEIR" job result a)" = hi ]
    "$WEIR" enqueue t --id b --retry 0
    "$WEIR" enqueue t --id c --retry 0 --timeout 300ms
    WEIR_JOB_TIMEOUT=100ms timeout 60 "$WEIR" work -q default --max-jobs 2 -- sleep 20
    [[ "$("$WEIR" job show b --json | jq -r .error)" == *"timeout after 100ms"* ]]
    [[ "$("$WEIR" job show c --json | jq -r .error)" == *"timeout after 300ms"* ]]
    "$WEIR" enqueue t --id e
    "$WEIR" enqueue t --id f --timeout 1h
    timeout 60 "$WEIR" work -q default --max-jobs 2 -c 2 --job-timeout 20s -- sh -c 'until [ -e go ]; do sleep 0.05; done' &
    until_true eval '[ "$("$WEIR" job show e --json | jq .worker_timeout_ms)" = 20000 ]'
    until_true eval '[ "$("$WEIR" job show f --json | jq -c "[.state,.timeout_ms,.worker_timeout_ms]")" = "[\"processing\",3600000,null]" ]'
    [[ "$("$WEIR" job show e)" == *$'worker_timeout\t20000'* ]]
    touch go
    wait $!
    [ "$("$WEIR" job show e --json | jq .worker_timeout_ms)" = null ]
    "$WEIR" enqueue t --id d
    timeout 60 "$WEIR" work -q default --once --job-timeout 0 -- sh -c 'echo $WEIR_TIMEOUT_S'
    [ "$("$WEIR" job result d)" = 0 ]
}
