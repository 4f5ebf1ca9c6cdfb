#!/usr/bin/env bats
# queue migrate: a queue goes to the other engine, from the one of this run.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() {
    use_server main
    here=${WEIR_ENGINE:-list}
    there=$([ "$here" = list ] && echo stream || echo list)
}

engine() {
    "$WEIR" audit -q "$1" --json | jq -r .engine
}

@test "a queue with jobs in each state goes to the other engine and back" {
    other_engine m
    for i in 1 2 3; do "$WEIR" enqueue t "p$i" --id "j$i" -q m; done
    "$WEIR" enqueue t --id late --in 1h -q m
    "$WEIR" job cancel j2 -q m
    [ "$(engine m)" = "$here" ]
    exits 0 "$WEIR" queue migrate m --engine "$there" --json
    [ "$(value "$output" '[.queue, .from, .engine, .moved]')" = "[\"m\",\"$here\",\"$there\",2]" ]
    [ "$(engine m)" = "$there" ]
    [ "$("$WEIR" job ls -q m -o id | tr '\n' ' ')" = 'j1 j3 late ' ]
    exits 0 "$WEIR" queue migrate m --engine "$here"
    [ "$output" = "m	$here" ]
    exits 0 "$WEIR" audit -q m --deep
    exits 0 "$WEIR" work -q m -c 1 --drain -- sh -c 'cat >>"$0"' "$BATS_TEST_TMPDIR/out"
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = p1p3 ]
    [ "$("$WEIR" status --json -q m | jq -c '[.paused, .delayed]')" = '[false,1]' ]
}

@test "a queue that has the engine is left alone, and a dry run changes nothing" {
    "$WEIR" enqueue t -q m
    exits 0 "$WEIR" queue migrate m --engine "$here"
    exits 0 "$WEIR" queue migrate m --engine "$there" --dry-run
    [ "$(engine m)" = "$here" ]
}

@test "jobs that run too long stop the move, and nothing else L20" {
    "$WEIR" enqueue t --id a -q m
    "$WEIR" work -q m -- sleep 1000 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" job show a --json | jq -r .state)" = processing ]' "$WEIR"
    exits 124 "$WEIR" queue migrate m --engine "$there" --wait 200ms
    says "stays a $here"
    [ "$("$WEIR" status --json -q m | jq -c '[.engine, .paused, .processing]')" = "[\"$here\",false,1]" ]
    kill -KILL "$pid"
    wait "$pid" || true
}

@test "what is not asked for as it should be is refused" {
    "$WEIR" enqueue t -q m
    exits 64 "$WEIR" queue migrate m
    says "list or stream"
    exits 64 "$WEIR" queue migrate m --engine tree
    exits 1 "$WEIR" queue migrate nobody --engine "$there"
    says E_NO_QUEUE
    exits 64 "$WEIR" queue migrate --engine stream
}

@test "a pause during the move outlives it" {
    "$WEIR" enqueue t --id a -q m
    "$WEIR" work -q m -- sleep 1000 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" job show a --json | jq -r .state)" = processing ]' "$WEIR"
    other_engine m
    "$WEIR" queue migrate m --engine "$there" --wait 1h 3>&- &
    mover=$!
    until_true sh -c '"$0" status --json -q m | jq -e .paused' "$WEIR"
    exits 0 "$WEIR" queue pause m --reason incident
    [ "$output" = $'m\tpaused' ]
    exits 0 "$WEIR" queue pause m
    [ "$output" = $'m\twas paused' ]
    kill -TERM "$pid"
    "$WEIR" worker stop --all --yes --grace 0
    wait "$pid" || true
    wait "$mover"
    [ "$("$WEIR" status --json -q m | jq -c '[.engine, .paused]')" = "[\"$there\",true]" ]
    exits 0 "$WEIR" queue ls
    says incident
}

@test "who asks for the other engine is told which one the queue has, and how to move it" {
    other_engine l s
    "$WEIR" queue create l --engine list
    exits 78 "$WEIR" queue create l --engine stream
    says "stored by the engine list"
    says "weir queue migrate"
    "$WEIR" queue create s --engine stream
    exits 78 "$WEIR" queue create s --engine list
    says "stored by the engine stream"
}

# A move that was killed: its last step was long ago.
left_move() { # QUEUE
    local mover
    "$WEIR" queue migrate "$1" --engine "$there" --wait 1h 3>&- &
    mover=$!
    until_true sh -c '"$0" status --json -q "$1" | jq -e .moving_step_ms' "$WEIR" "$1"
    exits 0 "$WEIR" status -q "$1" # somebody is at it
    says "moves to $there, begun"
    says "weir queue migrate $1 --engine $here takes it back"
    kill -KILL "$mover"
    wait "$mover" || true
    redis HSET "$WEIR_NAMESPACE:{$1}:config" moving_at "$((EPOCHSECONDS - 7200))000 $((EPOCHSECONDS - 3600))000"
}

@test "a move that was killed is told wherever one looks, with what goes on and what takes it back" {
    "$WEIR" enqueue t --id a -q m
    "$WEIR" work -q m --grace 0 -- sleep 1000 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" job show a --json | jq -r .state)" = processing ]' "$WEIR"
    left_move m
    for look in 'queue ls' 'queue show m' 'status'; do
        run "$WEIR" $look
        says "its move to $there, begun 2h00m ago, was left"
        says "weir queue migrate m --engine $there goes on, --engine $here takes it back"
    done
    exits 1 "$WEIR" status
    exits 1 "$WEIR" status --check
    says "weir queue migrate m --engine $there goes on"
    exits 1 "$WEIR" doctor --json
    fix=$(jq -r 'select(.check == "queue m") | .fix' <<<"$output")
    [ "$fix" = "weir queue migrate m --engine $there" ]
    [ "$("$WEIR" status --json -q m 2>/dev/null | jq -c '[.moving_to, .moving_ms >= 7200000]')" = "[\"$there\",true]" ]
    exits 0 "$WEIR" queue migrate m --engine "$here"
    says "was moving to $there before: this takes it back"
    exits 0 "$WEIR" status -q m
    [ "$("$WEIR" status --json -q m | jq -c '[.moving_to, .paused]')" = '[null,false]' ]

    left_move m
    exits 0 "$WEIR" queue resume m
    says "that is called off"
    run "$WEIR" status -q m
    says "was left: weir queue migrate m --engine $here ends it"
    kill -TERM "$pid"
    wait "$pid" || true
}
