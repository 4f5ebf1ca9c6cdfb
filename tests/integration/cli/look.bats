#!/usr/bin/env bats
# status, audit, job ls/show/wait, queue ls, worker ls, doctor: the contract for scripts.

bats_require_minimum_version 1.5.0

load server

setup_file() { start_server main; }
teardown_file() { stop_server main; }
setup() { use_server main; }

has_keys() { # JSON KEY...
    local json=$1 key
    shift
    for key in "$@"; do
        if [ "$(value "$json" "has(\"$key\")")" != true ]; then
            echo "no $key in $json"
            return 1
        fi
    done
}

@test "audit --json has the keys of the contract and no gap" {
    "$WEIR" enqueue t -q a
    "$WEIR" enqueue t -q b --in 1h
    exits 0 "$WEIR" audit --json
    [ "${#lines[@]}" = 2 ]
    for line in "${lines[@]}"; do
        has_keys "$line" queue engine enqueued ready delayed processing dead done cancelled \
            purged expired kept gap
        [ "$(value "$line" '.enqueued - .ready - .delayed - .processing - .dead - .done - .cancelled - .purged - .expired - .gap')" = 0 ]
        [ "$(value "$line" .gap)" = 0 ]
    done
    exits 0 "$WEIR" audit -q a --deep --json
    [ "${#lines[@]}" = 1 ]
    [ "$(value "$output" .findings)" = '[]' ]
}

@test "audit exits 1 when something was lost, and says what" {
    id=$("$WEIR" enqueue t)
    if engine_is list; then
        redis LPOP "$WEIR_NAMESPACE:{default}:ready"
    else
        redis XDEL "$WEIR_NAMESPACE:{default}:stream" "$id"
    fi
    exits 1 "$WEIR" audit
    says "E_CHECK_FAILED"
    run --separate-stderr "$WEIR" audit --json --deep
    [ "$status" = 1 ]
    [ "$(value "$output" .gap)" = 1 ]
    if engine_is list; then
        [ "$(value "$output" '.findings[0].kind')" = no_place ]
        [ "$(value "$output" '.findings[0].id')" = "$id" ]
    fi
    exits 1 "$WEIR" status
}

@test "audit --repair puts right what was done to a stream by hand" {
    export WEIR_ENGINE=stream
    other_engine default
    "$WEIR" enqueue t --id lost
    redis XREADGROUP GROUP workers me COUNT 1 STREAMS "$WEIR_NAMESPACE:{default}:stream" '>'
    redis XGROUP DELCONSUMER "$WEIR_NAMESPACE:{default}:stream" workers me
    exits 1 "$WEIR" audit --deep
    says 'default: passed_over lost'
    run --separate-stderr "$WEIR" audit --repair --json
    [ "$status" = 0 ]
    [ "$(value "$output" '[.findings, .repairs]')" = \
        '[[],[{"kind":"passed_over","id":"lost","detail":"put right"}]]' ]
    exits 0 "$WEIR" audit --deep
    "$WEIR" work --drain -q default -- true 3>&- 2>/dev/null
    [ "$("$WEIR" audit --json | jq -c '[.done, .gap]')" = '[1,0]' ]
}

@test "audit --repair tells as left what the next audit finds, on either engine" {
    "$WEIR" enqueue t -q left
    redis HSET "$WEIR_NAMESPACE:{left}:errors" ghost x
    exits 1 "$WEIR" audit --repair -q left
    says 'left: orphan_error ghost'
    says '0 put right, 1 left'
    [ "$(grep -c orphan_error <<<"$output")" = 1 ]
    run --separate-stderr "$WEIR" audit --repair -q left --json
    [ "$(value "$output" '[[.findings[].kind], .repairs]')" = '[["orphan_error"],[]]' ]
    redis HDEL "$WEIR_NAMESPACE:{left}:errors" ghost
    exits 0 "$WEIR" audit --repair -q left
}

@test "status --json has the keys of the contract" {
    "$WEIR" enqueue t
    exits 0 "$WEIR" status --json
    has_keys "$output" queue engine paused ready delayed processing dead done oldest_ready_ms \
        overdue next_due_ms heartbeat_promote_ms heartbeat_reclaim_ms retried reclaimed stale
    exits 0 "$WEIR" queue ls --json
    has_keys "$output" queue engine paused ready
}

@test "status --check decides the exit status" {
    "$WEIR" enqueue t
    exits 0 "$WEIR" status --check 'dead<10,ready>=1,age<60s'
    exits 1 "$WEIR" status --check 'ready=0'
    says "ready=0 does not hold: it is 1"
    exits 1 "$WEIR" status --check 'dead<10,ready!=1'
    for expr in '' dead 'dead<' 'dead<x' 'colour<1' 'dead<>1' 'age<-5s' 'dead<1,'; do
        if [ "$expr" = 'dead<1,' ]; then
            exits 0 "$WEIR" status --check "$expr"
        else
            exits 64 "$WEIR" status --check "$expr"
        fi
    done
}

@test "status is degraded when jobs are overdue and nobody promotes" {
    "$WEIR" enqueue t --in 1h --id late
    redis ZADD "$WEIR_NAMESPACE:{default}:delayed" 1000 late
    exits 1 "$WEIR" status
    says "no scheduler runs"
    exits 1 "$WEIR" doctor
    says FAIL
}

@test "job show --json has the keys of the contract and leaves absent ones out" {
    "$WEIR" enqueue greet hello --id j
    job=$("$WEIR" job show j --json)
    has_keys "$job" id queue type state deliveries attempts lost max_retry enqueued_at payload_bytes
    [ "$(value "$job" '[has("due_at","started_at","finished_at","worker","error","progress","result")] | any')" = false ]
    "$WEIR" work -q default --once -- tr a-z A-Z 3>&-
    job=$("$WEIR" job show j --json)
    has_keys "$job" started_at finished_at worker result
    [ "$(value "$job" '[.state,.result,.payload_bytes,.deliveries,.attempts]')" = '["done","HELLO",5,1,1]' ]
}

@test "a result that is no UTF-8 comes as base64" {
    "$WEIR" enqueue t --id b
    "$WEIR" work -q default --once -- printf '\377\000' 3>&-
    job=$("$WEIR" job show b --json)
    [ "$(value "$job" .result_base64)" = /wA= ]
    [ "$(value "$job" 'has("result")')" = false ]
    exits 0 "$WEIR" job result b --json
    [ "$(value "$output" .result_base64)" = /wA= ]
}

@test "results of many jobs come as lines of id and result" {
    for i in 1 2 3; do "$WEIR" enqueue t "p$i" --id "r$i"; done
    "$WEIR" work -q default --drain -c 1 -- cat 3>&-
    [ "$("$WEIR" job ls -s done -o id | sort | "$WEIR" job result -)" = $'r1\tp1\nr2\tp2\nr3\tp3' ]
    exits 1 "$WEIR" job result r1 nope
    says "nope"
}

@test "job ls filters by queue, state and type and stops at its limit" {
    "$WEIR" enqueue a -q x --id 1
    "$WEIR" enqueue b -q x --id 2 --in 1h
    "$WEIR" enqueue a -q y --id 3
    [ "$("$WEIR" job ls -o id | sort | tr '\n' ' ')" = '1 2 3 ' ]
    [ "$("$WEIR" job ls -q x -o id | sort | tr '\n' ' ')" = '1 2 ' ]
    [ "$("$WEIR" job ls -s delayed -o id)" = 2 ]
    [ "$("$WEIR" job ls -t a -o id | sort | tr '\n' ' ')" = '1 3 ' ]
    [ "$("$WEIR" job ls --limit 1 -o id | wc -l)" = 1 ]
    [ "$("$WEIR" job ls -q x --json | jq -s 'map(.state) | sort' -c)" = '["delayed","ready"]' ]
    exits 64 "$WEIR" job ls -s nowhere
    exits 64 "$WEIR" job ls --limit -1
}

@test "in a pipe: one record a line, tab separated, UTC, no colour" {
    "$WEIR" enqueue a --id 1
    exits 0 "$WEIR" job ls
    [ "$(tr -cd '\t' <<<"$output" | wc -c)" = 9 ]
    [[ "$output" =~ [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z ]]
    [[ "$output" != *$'\033'* ]]
}

@test "what a stranger wrote does not steer the terminal" {
    redis FLUSHALL
    "$WEIR" enqueue t --id $'evil\xc2\x9b31m'
    "$WEIR" work -q default --once -- sh -c 'printf "\033[31mred\033[0m" >&2; exit 65' 3>&-
    run "$WEIR" job show $'evil\xc2\x9b31m'
    [[ "$output" != *$'\033'* ]]
    run on_terminal NO_COLOR=1 "$WEIR" job ls
    [[ "$output" != *$'\033'* ]]
    [[ "$output" != *$'\xc2\x9b'* ]]
}

@test "job wait: 0 when done, 1 when dead or unknown, 124 when time ran out" {
    "$WEIR" enqueue t good -q w --id ok
    "$WEIR" enqueue t bad -q w --id no
    exits 124 "$WEIR" job wait ok --timeout 50ms
    says E_TIMEOUT
    "$WEIR" work -q w --drain -- sh -c 'read x; [ "$x" = good ] || exit 65' 3>&-
    exits 0 "$WEIR" job wait ok
    [ "$output" = $'ok\tdone' ]
    exits 0 "$WEIR" job wait ok --quiet
    [ -z "$output" ]
    exits 1 "$WEIR" job wait ok no
    exits 1 "$WEIR" job wait nope
    exits 0 "$WEIR" job wait --any ok
    echo ok | "$WEIR" job wait -
}

@test "worker ls shows who works" {
    "$WEIR" work -q w -- sleep 60 3>&- &
    pid=$!
    until_true sh -c '"$0" worker ls -o id | grep -q .' "$WEIR"
    exits 0 "$WEIR" worker ls --json
    [ "$(value "$output" .state)" = up ]
    [ "$(value "$output" .queues)" = w ]
    kill -TERM "$pid"
    wait "$pid"
    [ -z "$("$WEIR" worker ls -o id --quiet)" ]
}

@test "doctor checks the server and says how to mend it" {
    "$WEIR" enqueue t
    redis CONFIG SET maxmemory-policy allkeys-lru
    exits 1 "$WEIR" doctor --json
    [ "$(jq -rs '.[] | select(.check == "eviction") | .verdict' <<<"$output")" = FAIL ]
    [ "$(jq -rs '.[] | select(.check == "eviction") | .fix' <<<"$output")" != null ]
    redis CONFIG SET maxmemory-policy noeviction
    exits 0 "$WEIR" doctor --json
    for check in version role eviction memory persistence clients scripts clock workers; do
        [ "$(jq -rs "map(.check) | index(\"$check\") != null" <<<"$output")" = true ]
    done
}

@test "lists into head end quietly" {
    for i in {1..3000}; do echo '{"type":"t"}'; done | "$WEIR" enqueue --from - >/dev/null
    run bash -c '"$0" job ls --limit 3000 2>&1 | head -n 1' "$WEIR"
    [ "${#lines[@]}" = 1 ]
}

@test "a queue that is broken is told of, and hides no other" {
    "$WEIR" enqueue t -q good
    "$WEIR" enqueue t -q bad
    redis SET "$WEIR_NAMESPACE:{bad}:delayed" x
    for command in status audit 'audit --deep' 'queue ls'; do
        # shellcheck disable=SC2086
        exits 70 "$WEIR" $command
        says 'queue bad: a key of weir'
        [[ "$output" == *good* ]]
    done
}
