#!/usr/bin/env bats
# enqueue --unique, its windows, states and what may take whose place.

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

@test "who holds a unique key is said, and a window of nothing is refused (U11)" {
    id=$("$WEIR" enqueue t --unique user:42)
    exits 1 "$WEIR" enqueue t --unique user:42
    says "$id"
    for bad in K:0 K:-1 K:0s K:0ms K:-5m :5m; do
        exits 64 "$WEIR" enqueue t --unique "$bad"
        says E_ARG
    done
    "$WEIR" enqueue t --unique zero:0:
    [ "$(redis HEXISTS "$WEIR_NAMESPACE:{default}:unique" zero:0)" = 1 ]
    "$WEIR" enqueue t --unique short:200ms --in 100ms
    exits 1 "$WEIR" enqueue t --unique short:200ms
    "$WEIR" enqueue t -q w --unique window:300ms
    "$WEIR" work -q w --drain -- true 3>&-
    "$WEIR" enqueue t -q w --unique window2:1h
    "$WEIR" work -q w --drain -- true 3>&-
    exits 1 "$WEIR" enqueue t -q w --unique window2:1h
    says 'window'
    until_true "$WEIR" enqueue t -q w --unique window:300ms
}

@test "ten enqueues with --debounce are one run, with the last payload, in its time (U06)" {
    "$WEIR" work -q d -- sh -c 'printf "%s %s\n" "$(cat)" "$(date +%s%3N)"' >/dev/null 2>&1 3>&- &
    pid=$!
    for i in 1 2 3 4 5 6 7 8 9 10; do
        last=$(date +%s%3N)
        id=$("$WEIR" enqueue t "p$i" -q d --unique doc:7 --debounce 2s)
    done
    exits 0 "$WEIR" job wait --timeout 30s "$id"
    read -r payload at <<<"$("$WEIR" job result "$id")"
    kill "$pid"
    wait "$pid" || true
    [ "$payload" = p10 ]
    ((at >= last + 2000))
    exits 0 "$WEIR" audit -q d --json
    says '"deliveries":1,'
    [ "$(value "$output" '[.enqueued, .replaced, .gap]')" = '[1,9,0]' ]
}

@test "a lone dash is a unique key like others (U10)" {
    id=$("$WEIR" enqueue t p0 -q dash --unique=- --keep-last)
    exits 0 "$WEIR" enqueue t p1 -q dash --unique=- --keep-last --json
    [ "$(value "$output" '[.id, .replaced]')" = "[\"$id\",true]" ]
    [ "$("$WEIR" work -q dash --drain -- cat 3>&- >/dev/null; "$WEIR" audit -q dash --json | jq .done)" = 1 ]
    [ "$(redis HLEN "$WEIR_NAMESPACE:{dash}:unique")" = 0 ]
}

@test "--keep-last: five while one runs give exactly one more (U06)" {
    "$WEIR" enqueue t p0 -q k --unique key --keep-last
    "$WEIR" work -q k -c 4 -- sh -c 'cat >>"$0"; echo >>"$0"; until [ -e "$0.go" ]; do sleep 0.02; done' \
        "$BATS_TEST_TMPDIR/runs" 3>&- &
    pid=$!
    until_true grep -q p0 "$BATS_TEST_TMPDIR/runs"
    for i in 1 2 3 4 5; do exits 0 "$WEIR" enqueue t "p$i" -q k --unique key --keep-last --json; done
    [ "$(value "$output" '[.existed, .replaced]')" = '[false,true]' ]
    touch "$BATS_TEST_TMPDIR/runs.go"
    until_true sh -c '[ "$("$0" audit --json | jq .done)" = 2 ]' "$WEIR"
    kill "$pid"
    wait "$pid" || true
    [ "$(tr '\n' ' ' <"$BATS_TEST_TMPDIR/runs")" = 'p0 p5 ' ]
}

@test "--replace takes the place of the one that waits, by its id or by its key (U06)" {
    a=$("$WEIR" enqueue t one --unique k)
    b=$("$WEIR" enqueue t two --unique k --replace)
    [ "$a" = "$b" ]
    [ "$("$WEIR" job payload "$a")" = two ]
    printf '{"type":"t","payload":"three","unique":"k","replace":true}\n' | "$WEIR" enqueue --from -
    [ "$("$WEIR" job payload "$a")" = three ]
    [ "$("$WEIR" audit --json | jq -c '[.enqueued, .replaced]')" = '[1,2]' ]
}

@test "a dead job blocks its key only with --unique-states (U04)" {
    "$WEIR" enqueue t -q d --unique k
    "$WEIR" work -q d --drain -- sh -c 'exit 65' 3>&-
    "$WEIR" enqueue t -q d --id x --unique k --unique-states ready,delayed,processing,dead
    "$WEIR" work -q d --drain -- sh -c 'exit 65' 3>&-
    exits 1 "$WEIR" enqueue t -q d --unique k
    says x
    exits 64 "$WEIR" enqueue t --unique k --unique-states dead
    exits 64 "$WEIR" enqueue t --unique-states ready,delayed
    exits 64 "$WEIR" enqueue t --debounce 5s
    exits 64 "$WEIR" enqueue t --unique k --debounce 0
    exits 64 "$WEIR" enqueue t --unique k:5m --debounce 5s
    "$WEIR" dead purge x -q d
    "$WEIR" enqueue t -q d --unique k
}

@test "an id whose result is kept comes again with --replace, and clean (U07)" {
    "$WEIR" enqueue t one --id again
    "$WEIR" work -q default --drain -- cat 3>&-
    [ "$("$WEIR" job result again)" = one ]
    exits 1 "$WEIR" enqueue t two --id again
    exits 0 "$WEIR" enqueue t one --id again
    exits 0 "$WEIR" enqueue t two --id again --replace
    [ "$(value "$("$WEIR" job show again --json)" '[.state, .attempts, .deliveries, .result, .started_at]')" = '["ready",0,0,null,null]' ]
    "$WEIR" work -q default --drain -- cat 3>&-
    [ "$("$WEIR" job result again)" = two ]
    exits 0 "$WEIR" audit --deep --quiet
}
