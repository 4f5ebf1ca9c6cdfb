#!/usr/bin/env bats
# weir worker ls, show, quiet, resume, stop: from heartbeats and orders in Redis.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

teardown() {
    for pid in ${daemons:-}; do kill -9 "$pid" 2>/dev/null || true; done
}

# start_work ARGUMENTS...: the pid is $daemon
start_work() {
    "$WEIR" work "$@" 3>&- 2>>"$BATS_TEST_TMPDIR/said" &
    daemon=$!
    daemons="${daemons:-} $daemon"
}

workers() {
    "$WEIR" worker ls --json | jq -s "$1"
}

workers_are() {
    [ "$(workers 'map(.state) | sort | join(" ")')" = "\"$1\"" ]
}

state_is() {
    [ "$("$WEIR" job show "$1" --json | jq -r .state)" = "$2" ]
}

@test "show tells what a worker is and what it runs" {
    start_work -q w -c 2 --processes 2 -- sh -c "until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done"
    "$WEIR" enqueue t -q w --id slow
    until_true state_is slow processing
    id=$("$WEIR" worker ls -o id)
    until_true sh -c '"$0" worker show "$1" --json | jq -e ".running[0].id == \"slow\"" >/dev/null' "$WEIR" "$id"
    exits 0 "$WEIR" worker show "$id" --json
    [ "$(value "$output" '[.slots,.busy,.children,.queues,.mode,.protocol,.pid]')" = "[4,1,2,\"w\",\"running\",2,$daemon]" ]
    [ "$(value "$output" '.rss_bytes > 1000000 and .contact_ms >= 0 and (.boot | length) == 16')" = true ]
    # The worker of a job, as job show names it, is a child of it.
    exits 0 "$WEIR" worker show "$("$WEIR" job show slow --json | jq -r .worker)"
    says slow
    says 'queue w'
    exits 1 "$WEIR" worker show nobody
    says E_NO_WORKER
    touch "$BATS_TEST_TMPDIR/go"
}

@test "a handler that cannot be started three times in a row is shown as broken (R10)" {
    start_work -q w -c 1 --exec "gone=exec /no/such/program" --exec "well=true"
    for i in 1 2 3; do "$WEIR" enqueue gone -q w --id "gone$i" --retry 5; done
    until_true sh -c '"$0" worker ls -o id | xargs "$0" worker show --json | jq -e ".broken == \"gone\"" >/dev/null' "$WEIR"
    exits 0 "$WEIR" worker show "$("$WEIR" worker ls -o id)"
    says $'broken\tgone'
    "$WEIR" enqueue well -q w --id well
    until_true state_is well done
}

@test "a quiet worker claims nothing, lets run, and claims again after resume" {
    start_work -q w -c 2 -- sh -c "until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done"
    "$WEIR" enqueue t -q w --id runs
    until_true state_is runs processing
    id=$("$WEIR" worker ls -o id)
    exits 0 "$WEIR" worker quiet "$id" --json
    [ "$(value "$output" .result)" = quiet ]
    until_true workers_are quiet
    "$WEIR" enqueue t -q w --id waits
    touch "$BATS_TEST_TMPDIR/go"
    until_true state_is runs done
    sleep 0.3 # a moment in which it could do wrong
    state_is waits ready
    # Also a child that takes the place of another is quiet.
    kill -9 "$(pgrep -P "$daemon" -x weir-child)"
    until_true sh -c 'pgrep -P "$0" -x weir-child >/dev/null' "$daemon"
    sleep 0.3
    state_is waits ready
    exits 0 "$WEIR" worker resume --all
    until_true state_is waits done
    until_true workers_are up
    [ "$(workers '.[0] | has("order")')" = false ]
}

@test "stop is as SIGTERM: the running job ends first" {
    start_work -q w -- sh -c "until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done"
    "$WEIR" enqueue t -q w --id slow
    until_true state_is slow processing
    id=$("$WEIR" worker ls -o id)
    exits 0 "$WEIR" worker stop "$id"
    until_true workers_are draining
    exits 0 "$WEIR" worker resume "$id"
    says stops
    touch "$BATS_TEST_TMPDIR/go"
    wait "$daemon"
    state_is slow done
    [ "$(workers length)" = 0 ]
    exits 1 "$WEIR" worker stop "$id"
    says E_NO_WORKER
}

@test "stop --grace says how long running jobs have, also while they have it (S02)" {
    start_work -q w --grace 300 -- sh -c "exec sleep 1000"
    "$WEIR" enqueue t -q w --id endless
    until_true state_is endless processing
    id=$("$WEIR" worker ls -o id)
    exits 64 "$WEIR" worker quiet "$id" --grace 5s
    exits 64 "$WEIR" worker stop "$id" --grace soon
    exits 0 "$WEIR" worker stop "$id" --grace 200s --dry-run
    says 'get 3m'
    exits 0 "$WEIR" worker stop "$id" --grace 200s --json
    [ "$(value "$output" '[.result,.grace_ms]')" = '["told to stop",200000]' ]
    until_true workers_are draining
    exits 0 "$WEIR" worker show "$id" --json
    [ "$(value "$output" '[.order,.order_grace_ms]')" = '["stop",200000]' ]
    exits 0 "$WEIR" worker show "$id"
    says 'stop with a grace of 3m'
    state_is endless processing
    SECONDS=0
    exits 0 "$WEIR" worker stop "$id" --grace 0 -o table
    says 'running jobs get 0'
    wait "$daemon"
    [ "$SECONDS" -lt 30 ]
    state_is endless ready # handed back, uncharged
    [ "$("$WEIR" job show endless --json | jq -c '[.attempts,.lost]')" = '[0,0]' ]
    [ "$(workers length)" = 0 ]
}

@test "to stop all asks, and --host chooses" {
    start_work -q a -- true
    start_work -q b -- true
    until_true workers_are 'up up'
    exits 64 "$WEIR" worker stop
    exits 64 "$WEIR" worker stop --all x
    exits 64 "$WEIR" worker stop --all
    says --yes
    exits 0 "$WEIR" worker stop --all --dry-run
    exits 0 "$WEIR" worker quiet --host nowhere
    says "No workers"
    workers_are 'up up'
    exits 0 "$WEIR" worker quiet --host "$(hostname)"
    until_true workers_are 'quiet quiet'
    exits 0 "$WEIR" worker stop --all --yes
    for pid in $daemons; do wait "$pid"; done
}

@test "an order waits in Redis for a worker that is cut off" {
    start_work -q w -- true
    until_true workers_are up
    id=$("$WEIR" worker ls -o id)
    service=$(pgrep -P "$daemon" -x weir-service)
    kill -STOP "$service"
    exits 0 "$WEIR" worker quiet "$id"
    # The row is gone, the hint too, as after a long silence.
    redis DEL "$WEIR_NAMESPACE:workers" "$WEIR_NAMESPACE:worker:$id:hint"
    exits 0 "$WEIR" worker quiet "$id"
    redis DEL "$WEIR_NAMESPACE:worker:$id:hint"
    kill -CONT "$service"
    until_true workers_are quiet
}

@test "two workers of one host name and pid are two (L10)" {
    [ "$(id -u)" = 0 ] && unshare -fpu true || skip "needs namespaces"
    for i in 1 2; do
        unshare -fpu --mount-proc sh -c 'hostname box && exec "$0" work -q w -- true' "$WEIR" \
            3>&- 2>/dev/null &
        daemons="${daemons:-} $!"
    done
    until_true workers_are 'up up'
    [ "$(workers 'map([.host, .pid]) | unique | length')" = 1 ]
    "$WEIR" worker stop --all --yes
    for pid in $daemons; do wait "$pid"; done
    [ "$(workers length)" = 0 ]
}

@test "a container that is killed and starts again as the same host and pid recovers its job (L10)" {
    [ "$(id -u)" = 0 ] && unshare -fpu true || skip "needs namespaces"
    boxed() {
        # --kill-child: with the namespace's first process everything in it ends.
        unshare -fpu --mount-proc --kill-child sh -c 'hostname box && exec "$0" work -q w --lease 2s \
            -- sh -c "echo run >>$1; until [ -e $1.go ]; do sleep 0.05; done"' \
            "$WEIR" "$BATS_TEST_TMPDIR/runs" 3>&- 2>/dev/null &
        daemons="${daemons:-} $!"
    }
    runs() { [ "$(wc -l <"$BATS_TEST_TMPDIR/runs")" = "$1" ]; }
    touch "$BATS_TEST_TMPDIR/runs"
    boxed
    first=$!
    "$WEIR" enqueue t -q w --id j
    until_true runs 1
    kill -9 "$first"
    boxed
    until_true runs 2
    touch "$BATS_TEST_TMPDIR/runs.go"
    until_true state_is j done
    [ "$("$WEIR" job show j --json | jq -c '[.deliveries, .attempts]')" = '[2,1]' ]
}

@test "show tells a job for which a child takes no others" {
    redis ZADD "$WEIR_NAMESPACE:workers" "$(date +%s)000" w
    redis HSET "$WEIR_NAMESPACE:worker:w" protocol 2 state running alone $'q\tj\nq\tk'
    exits 0 "$WEIR" worker show w
    says $'alone\tj  (queue q): a worker was lost with it'
    says 'k  (queue q)'
    [ "$("$WEIR" worker show w --json | jq -c .alone)" = '[{"queue":"q","id":"j"},{"queue":"q","id":"k"}]' ]
}
