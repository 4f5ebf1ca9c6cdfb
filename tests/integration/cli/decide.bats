#!/usr/bin/env bats
# job cancel, dead retry/purge, queue pause/resume/purge/create.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

@test "a waiting job is cancelled at once and cannot be cancelled twice" {
    "$WEIR" enqueue t --id a
    exits 0 "$WEIR" job cancel a
    [ "$output" = $'a\tcancelled' ]
    exits 1 "$WEIR" job cancel a
    says E_NO_JOB
}

@test "a running job is flagged and ends as cancelled within two seconds X01" {
    "$WEIR" enqueue t --id r -q run
    "$WEIR" work -q run -- sleep 1000 3>&- &
    pid=$!
    until_true sh -c '[ "$("$0" job show r --json | jq -r .state)" = processing ]' "$WEIR"
    begin=$SECONDS
    exits 0 "$WEIR" job cancel r
    [ "$output" = $'r\tflagged' ]
    until_true sh -c '[ "$("$0" status --json | jq .processing)" = 0 ]' "$WEIR"
    ((SECONDS - begin <= 3))
    [ "$("$WEIR" audit --json | jq -c '[.cancelled, .gap]')" = '[1,0]' ]
    kill -TERM "$pid"
    wait "$pid"
}

@test "ids can be piped from a list, and one that fails does not stop the others" {
    for i in 1 2 3; do "$WEIR" enqueue t --id "j$i"; done
    exits 0 bash -c '"$0" job ls | "$0" job cancel - -o id | sort | tr "\n" " "' "$WEIR"
    [ "$output" = 'j1 j2 j3 ' ]
    "$WEIR" enqueue t --id again
    exits 1 "$WEIR" job cancel nope again
    says nope
    says $'again\tcancelled'
}

@test "a done or dead job is not cancelled" {
    "$WEIR" enqueue t --id d
    "$WEIR" work -q default --once -- true 3>&-
    exits 1 "$WEIR" job cancel d
    says "is done"
}

@test "dead jobs are listed, shown, retried and purged by id" {
    id=$(make_dead d)
    [ "$("$WEIR" dead ls -o id)" = "$id" ]
    exits 0 "$WEIR" dead show "$id" --json
    [ "$(value "$output" '[.state, .error]')" = '["dead","exit 65: it broke"]' ]
    exits 0 "$WEIR" dead retry "$id"
    [ "$output" = "$id"$'\tretried' ]
    exits 1 "$WEIR" dead retry "$id"
    exits 1 "$WEIR" dead show "$id"
    "$WEIR" work -q d --drain -- sh -c 'exit 65' 3>&-
    exits 0 "$WEIR" dead purge "$id"
    [ "$("$WEIR" audit --json | jq -c '[.purged, .dead, .gap]')" = '[1,0,0]' ]
}

@test "dead purge --all asks, and without a terminal wants --yes" {
    for i in {1..7}; do echo '{"type":"t","queue":"d"}'; done | "$WEIR" enqueue --from -
    "$WEIR" work -q d --drain -- sh -c 'exit 65' 3>&-
    exits 64 "$WEIR" dead purge --all -q d </dev/null
    says "--yes"
    exits 0 "$WEIR" dead purge --all -n
    says "Would purge 7 jobs"
    exits 0 "$WEIR" dead retry --all --limit 2 --yes
    [ "$output" = 2 ]
    exits 0 "$WEIR" dead purge --all --yes -q d
    [ "$output" = 5 ]
    [ "$("$WEIR" audit --json | jq -c '[.purged, .replayed, .dead, .gap]')" = '[5,2,0,0]' ]
    exits 64 "$WEIR" dead purge
    exits 64 "$WEIR" dead purge x --all
}

@test "on a terminal the answer no changes nothing" {
    make_dead d
    run bash -c 'echo n | TERM=xterm script -qec "\"$0\" dead purge --all" /dev/null' "$WEIR"
    says "This will purge 1 dead job"
    says "Continue? [y/N]"
    [ "$("$WEIR" status --json | jq .dead)" = 1 ]
}

@test "a paused queue hands out nothing until it is resumed" {
    "$WEIR" enqueue t -q p
    exits 0 "$WEIR" queue pause p --reason 'smtp down'
    [ "$output" = $'p\tpaused' ]
    exits 0 "$WEIR" queue pause p
    [ "$output" = $'p\twas paused' ]
    exits 0 "$WEIR" queue ls --json
    [ "$(value "$output" .paused)" = true ]
    exits 0 "$WEIR" queue resume p
    [ "$output" = $'p\tresumed' ]
    exits 0 "$WEIR" queue resume p
    [ "$output" = $'p\twas running' ]
    exits 0 "$WEIR" queue ls --json
    [ "$(value "$output" .paused)" = false ]
    run on_terminal "$WEIR" queue pause p
    says 'Paused queue "p". 1 ready job will wait. Resume with: weir queue resume p'
    exits 1 "$WEIR" queue pause nosuch
    says E_NO_QUEUE
    exits 64 "$WEIR" queue pause 'a{b'
}

@test "queue purge cancels what waits and nothing else" {
    for i in 1 2 3; do "$WEIR" enqueue t -q p; done
    "$WEIR" enqueue t -q p --in 1h
    exits 64 "$WEIR" queue purge p </dev/null
    exits 64 "$WEIR" queue purge p -s dead --yes
    exits 0 "$WEIR" queue purge p -n
    says "3 ready and 1 delayed"
    exits 0 "$WEIR" queue purge p -s delayed --yes
    [ "$output" = $'p\t1' ]
    exits 0 "$WEIR" queue purge p --yes
    [ "$output" = $'p\t3' ]
    [ "$("$WEIR" audit --json | jq -c '[.cancelled, .ready, .delayed, .gap]')" = '[4,0,0,0]' ]
}

@test "queue create makes a queue or sets its limits" {
    exits 0 "$WEIR" queue create c
    [ "$output" = $'c\tmade' ]
    exits 0 "$WEIR" queue create c --payload-max 10 --kept-max 5 --kept-bytes 1M
    [ "$output" = $'c\twas there' ]
    exits 65 "$WEIR" enqueue t 12345678901 -q c
    other_engine d
    exits 0 "$WEIR" queue create d --engine stream
    [ "$("$WEIR" audit -q d --json | jq -r .engine)" = stream ]
    exits 64 "$WEIR" queue create f --engine tree
    exits 64 "$WEIR" queue create 'a}b'
    exits 64 "$WEIR" queue create e --payload-max lots
    [ "$("$WEIR" queue ls -o id | sort | tr '\n' ' ')" = 'c d ' ]
}

@test "a queue that its first job makes has the engine of the settings" {
    other_engine s l c
    unset WEIR_ENGINE
    WEIR_ENGINE=stream "$WEIR" enqueue t -q s
    "$WEIR" enqueue t -q l
    WEIR_ENGINE=stream "$WEIR" enqueue t -q l
    WEIR_ENGINE=stream "$WEIR" queue create c
    "$WEIR" queue create c
    [ "$("$WEIR" queue ls --json | jq -r '.queue + " " + .engine' | sort | tr '\n' ' ')" = \
        'c stream l list s stream ' ]
    exits 78 "$WEIR" queue create c --engine list
    exits 78 env WEIR_ENGINE=heap "$WEIR" enqueue t
    says 'list or stream'
}

@test "queue show has sizes and counters" {
    "$WEIR" enqueue t -q s
    exits 0 "$WEIR" queue show s
    says dead_max
    says $'enqueued\t1'
    exits 1 "$WEIR" queue show nosuch
}

@test "queue purge walks over many pages, also past jobs that were cancelled before" {
    for i in {1..1800}; do echo "{\"type\":\"t\",\"queue\":\"p\",\"id\":\"j$i\"}"; done |
        "$WEIR" enqueue --from - >/dev/null
    for i in {1..700}; do echo "j$i"; done | "$WEIR" job cancel - >/dev/null
    exits 0 "$WEIR" queue purge p --yes
    [ "$output" = $'p\t1100' ]
    [ "$("$WEIR" audit --deep --json | jq -c '[.cancelled, .ready, .gap, .findings]')" = '[1800,0,0,[]]' ]
}
