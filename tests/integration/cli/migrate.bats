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
